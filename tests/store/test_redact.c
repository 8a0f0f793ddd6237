/*
 * Secrets of every documented kind, planted in arguments, assignments, URLs and output
 * lines, must not be in the file's bytes; ordinary text that looks alike must be.
 */
#include "store_test.h"

/* kind; a text with the secret; what must not remain (the secret itself) */
static const struct {
	const char *text, *secret;
} secrets[] = {
    /* bearer and basic auth, headers */
    {"curl -H 'Authorization: Bearer abc.DEF-123_x' https://h/", "abc.DEF-123_x"},
    {"Authorization: Basic dXNlcjpodW50ZXIy", "dXNlcjpodW50ZXIy"},
    {"proxy-authorization: Digest username=\"u\", response=\"99aa\"", "username="},
    {"got header Bearer feed0123456789beef77", "feed0123456789beef77"},
    {"sent Basic dXNlcjpodW50ZXIy to server", "dXNlcjpodW50ZXIy"},
    {"X-Api-Key: zzTopSecret1", "zzTopSecret1"},
    {"PRIVATE-TOKEN: plainlettersonly", "plainlettersonly"},
    /* clouds and forges */
    {"key AKIAIOSFODNN7EXAMPLE used", "AKIAIOSFODNN7EXAMPLE"},
    {"ASIAIOSFODNN7EXAMPLF", "ASIAIOSFODNN7EXAMPLF"},
    {"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"},
    {"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "K7MDENG"},
    {"AIzaSyA1234567890abcdefghijklmnopqrstuv", "SyA1234567890abcdefg"},
    {"token ya29.a0AfH6SMBx1234567890abcdefghij", "a0AfH6SMBx"},
    {"AccountName=x;AccountKey=Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4==;EndpointSuffix=y",
     "Zm9vYmFyYmF6"},
    {"https://x.blob.core.windows.net/c?sv=2020&sig=aB%2FcD1234567890%3D&se=2030",
     "aB%2FcD1234567890"},
    {"ghp_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F292c6912"},
    {"gho_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F292c6912"},
    {"ghs_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F292c6912"},
    {"github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz0123", "11ABCDEFG0abcdef"},
    {"glpat-abcdEFGHijkl12345678", "abcdEFGHijkl"},
    {"glrt-abcdEFGHijkl12345678", "abcdEFGHijkl"},
    {"xoxb-123456789012-abcdefGHIJKL", "123456789012-abc"},
    {"https://hooks.slack.com/services/T000/B000/XXXXsecretXXXX", "XXXXsecretXXXX"},
    {"npm_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijklmnop"},
    {"sk-proj-abcDEF0123456789abcDEF0123456789", "abcDEF0123456789"},
    {"sk-ant-api03-abcDEF0123456789abcDEF", "abcDEF0123456789"},
    {"sk_live_abcdefghij0123456789", "abcdefghij0123456789"},
    {"hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "abcdefghijklmnop"},
    {"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27u", "eyJzdWIiOiIxMjM0In0"},
    /* private keys */
    {"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabcd\n-----END RSA PRIVATE "
     "KEY-----\nafter",
     "MIIEpAIBAAKCAQEA"},
    {"x -----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk", "b3BlbnNzaC1rZXk"},
    {"\"private_key\": \"-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBg\\n-----END PRIVATE "
     "KEY-----\\n\"",
     "MIIEvQIBADANBg"},
    /* options and assignments */
    {"mytool --password hunter2secret --verbose", "hunter2secret"},
    {"mytool --password=hunter2secret", "hunter2secret"},
    {"mytool --api-key 'hunter2 secret' x", "hunter2 secret"},
    {"mytool --auth-token hunter2secret", "hunter2secret"},
    {"export DB_PASSWORD='hun ter2'; ls", "hun ter2"},
    {"PGPASSWORD=hunter2secret psql -h h", "hunter2secret"},
    {"MYSQL_ROOT_PASSWORD=a,b)c next", "a,b)c"},
    {"GITHUB_TOKEN=plainwordtoken make", "plainwordtoken"},
    {"client_secret: \"s3cr3t-value\"", "s3cr3t-value"},
    {"{\"password\":\"p4ss,word\",\"user\":\"u\"}", "p4ss,word"},
    {"{\"accessToken\": \"abcd-efgh\"}", "abcd-efgh"},
    {"password: hunter2secret", "hunter2secret"},
    {"passwd = hunter2secret", "hunter2secret"},
    {"https://h/login?user=u&access_token=abQueryToken&x=1", "abQueryToken"},
    /* userinfo in URLs, cookies */
    {"git clone https://user:s3cretpw@github.com/o/r.git", "s3cretpw"},
    {"postgres://admin:p@ss@db.example:5432/x", "p@ss"},
    {"https://abcdefghij0123456789token@host/x", "abcdefghij0123456789token"},
    {"Cookie: session=deadbeefcafe; theme=dark", "deadbeefcafe"},
    {"Set-Cookie: sid=deadbeefcafe; HttpOnly", "deadbeefcafe"},
};

/* Must come back unchanged. */
static const char *const ordinary[] = {
    "d41d8cd98f00b204e9800998ecf8427e",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
    "550e8400-e29b-41d4-a716-446655440000",
    "0190163d-8694-739b-aea5-966c26f8ad91",
    "/home/user/.ssh/id_ed25519",
    "/etc/shadow: Permission denied",
    "bwrap: setting up uid map: Permission denied",
    "error: unexpected token: '}' at line 3",
    "PWD=/home/user/project OLDPWD=/tmp",
    "TOKEN_FILE=/run/secrets/token",
    "PASSWORD_FILE=/run/secrets/pw",
    "PASSWORD=$SECRET_FROM_ENV make",
    "--password-file /run/secrets/pw",
    "max_tokens=4096",
    "token_count=17",
    "ssh://git@github.com/org/repo.git",
    "https://example.com:8443/path?x=1&y=2",
    "git@github.com:org/repo.git",
    "bearer authentication is required",
    "a basic example of usage",
    "task-0123456789abcdef0123456789",
    "disk-sk-learn-pipeline-with-words-only",
    "password authentication failed for user \"x\"",
    "user=alice host=db port=5432",
    "key=value other=thing",
    "docker run -u 1000:1000 image",
    "-----BEGIN CERTIFICATE-----",
    "0x7ffd1234abcd",
    "node_modules/npm_config/index.js",
    "AKIA is a prefix",
    "x == y; secret == nothing",
};

static void test_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
		size_t n = 0;
		char *z = sw_redact(secrets[i].text, strlen(secrets[i].text), &n);
		assert_non_null(z);
		if (memmem(z, n, secrets[i].secret, strlen(secrets[i].secret)) ||
		    !strstr(z, "[redacted:"))
			fail_msg("\"%s\" became \"%s\"", secrets[i].text, z);
		/* what was hidden once stays as it is */
		size_t m = 0;
		char *again = sw_redact(z, n, &m);
		if (m != n || memcmp(again, z, n) != 0)
			fail_msg("\"%s\" became \"%s\", and then \"%s\"", secrets[i].text, z,
			         again);
		free(again);
		free(z);
	}
	for (size_t i = 0; i < sizeof ordinary / sizeof *ordinary; i++) {
		size_t n = 0;
		char *z = sw_redact(ordinary[i], strlen(ordinary[i]), &n);
		if (n != strlen(ordinary[i]) || memcmp(z, ordinary[i], n) != 0)
			fail_msg("\"%s\" became \"%s\"", ordinary[i], z);
		free(z);
	}
}

static const struct {
	const char *argv[8];
	const char *secret; /* NULL: nothing is hidden */
} lists[] = {
    {{"curl", "-u", "user:hunter2", "https://h/"}, "hunter2"},
    {{"/usr/bin/curl", "--user", "user:hunter2"}, "hunter2"},
    {{"curl", "-b", "sid=hunter2"}, "hunter2"},
    {{"sshpass", "-p", "hunter2", "ssh", "h"}, "hunter2"},
    {{"sshpass", "-phunter2", "ssh", "h"}, "hunter2"},
    {{"mysql", "-uroot", "-phunter2"}, "hunter2"},
    {{"bwrap", "--ro-bind", "/", "/", "mysql", "-phunter2"}, "hunter2"},
    {{"redis-cli", "-a", "hunter2"}, "hunter2"},
    {{"docker", "login", "-u", "me", "-p", "hunter2"}, "hunter2"},
    {{"docker", "run", "-e", "DB_PASSWORD=hunter2 with space&more"}, "hunter2"},
    {{"env", "API_KEY=hunter2", "x"}, "hunter2"},
    {{"x", "--token", "hunter2"}, "hunter2"},
    {{"x", "--client-secret", "hunter2"}, "hunter2"},
    {{"x", "--password=hunter2;more"}, "more"},
    {{"openssl", "rsa", "-passin", "pass:hunter2"}, "hunter2"},
    {{"sh", "-c", "curl -H 'Authorization: Bearer hunter2x' h"}, "hunter2x"},
    {{"git", "clone", "https://u:hunter2@h/r"}, "hunter2"},
    {{"docker", "run", "-u", "1000:1000", "-p", "8080:80", "image"}, NULL},
    {{"ls", "-p", "dir"}, NULL},
    {{"x", "--token", "--verbose"}, NULL},
    {{"x", "--password-file", "/run/pw"}, NULL},
    {{"x", "--key", "name", "--author", "me"}, NULL},
    {{"sha256sum", "-c", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4"}, NULL},
};

static void test_lists(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		sw_str in[8], out[8];
		size_t n = 0;
		bool changed = false;
		for (; n < 8 && lists[i].argv[n]; n++)
			in[n] = sw_str_of(lists[i].argv[n]);
		assert_int_equal(sw_redact_argv(in, n, out), 0);
		for (size_t k = 0; k < n; k++) {
			changed |= !sw_str_eq(in[k], out[k]);
			if (lists[i].secret && memmem(out[k].ptr, out[k].len, lists[i].secret,
			                              strlen(lists[i].secret)))
				fail_msg("list %zu: \"%.*s\" still holds it", i, (int)out[k].len,
				         out[k].ptr);
			free((char *)out[k].ptr);
		}
		if (changed != (lists[i].secret != NULL))
			fail_msg("list %zu (%s ...): %s", i, lists[i].argv[0],
			         changed ? "changed" : "unchanged");
	}
}

/* Planted in every field that a record has, then looked for in the file's own bytes. */
static void test_file_bytes(void **state)
{
	(void)state;
	char *dir = temp_dir(), path[300], p[320];
	in_dir(path, sizeof path, dir, "t.db");
	sw_store *s = open_rw(path, NULL);
	for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
		sw_str text = sw_str_of(secrets[i].text),
		       argv[4] = {SW_STR("sh"), SW_STR("-c"), text, text};
		sw_label label = {SW_STR("note"), text.len < 200 ? text : SW_STR("x")};
		json_t *detail = json_pack("{s:[{s:s}]}", "observations", "line", secrets[i].text);
		sw_record r = {.backend = SW_STR("bwrap"),
		               .argv = argv,
		               .argc = 4,
		               .cwd = text,
		               .session = text.len < 200 ? text : SW_STR("x"),
		               .actor = text.len < 200 ? text : SW_STR("x"),
		               .labels = &label,
		               .n_labels = 1,
		               .reason = text,
		               .output = text,
		               .keep_output = 4096};
		r.outcome.verdict = SW_RECORD_SANDBOX_DENIED;
		r.outcome.has_line = true;
		r.outcome.line = text;
		r.outcome.resource = text;
		r.outcome.resource_kind = SW_STR("path");
		r.outcome.detail = detail;
		sw_error e = {0};
		if (sw_store_complete(s, &r, NULL, &e) != 0)
			fail_msg("%s: %s %s", secrets[i].text, e.where, e.what);
		json_decref(detail);
	}
	for (size_t i = 0; i < sizeof ordinary / sizeof *ordinary; i++) {
		sw_str argv[1] = {sw_str_of(ordinary[i])};
		sw_record r = {.backend = SW_STR("none"), .argv = argv, .argc = 1};
		assert_int_equal(sw_store_complete(s, &r, NULL, NULL), 0);
	}
	for (int pass = 0; pass < 2; pass++) {
		/* as written (in the log), then after everything was copied back */
		for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
			snprintf(p, sizeof p, "%s-wal", path);
			if (file_holds(path, secrets[i].secret) || file_holds(p, secrets[i].secret))
				fail_msg("\"%s\" is in the file", secrets[i].secret);
		}
		sw_store_close(pass == 0 ? s : NULL);
		sqlite3 *db;
		assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
		sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
		sqlite3_close(db);
	}
	for (size_t i = 0; i < sizeof ordinary / sizeof *ordinary; i++) {
		/* as JSON has it: a quote is escaped there */
		if (!strpbrk(ordinary[i], "\"\\") && !file_holds(path, ordinary[i]))
			fail_msg("\"%s\" is not in the file", ordinary[i]);
	}
	remove_dir(dir);
}

/* Any bytes, any length: no crash, no read beyond the end. */
static void test_any_bytes(void **state)
{
	(void)state;
	static const char *const pieces[] = {
	    "password", "=",        ":",           "://",
	    "@",        "'",        "\"",          "\\",
	    "--",       "token",    "-----BEGIN ", "PRIVATE KEY",
	    "eyJ",      ".",        "Bearer ",     "AKIA",
	    "ghp_",     "\0x",      "\xff",        " ",
	    "\n",       "Cookie: ", "Basic ",      "{",
	    "}",        "a",        "1",           "A0b1C2d3E4f5G6h7I8j9"};
	uint64_t seed = 7;
	for (int round = 0; round < 3000; round++) {
		char *buf = malloc(400);
		size_t n = 0;
		while (n < 300) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			const char *p = pieces[(seed >> 33) % (sizeof pieces / sizeof *pieces)];
			size_t k = strlen(p) ? strlen(p) : 2;
			memcpy(buf + n, p, k);
			n += k;
			if ((seed >> 20) % 40 == 0)
				break;
		}
		/* exactly as long as it is, so that a checker sees any step beyond */
		char *exact = malloc(n ? n : 1);
		memcpy(exact, buf, n);
		size_t m = 0;
		char *z = sw_redact(exact, n, &m);
		assert_non_null(z);
		sw_str in[2] = {{exact, n / 2}, {exact + n / 2, n - n / 2}}, out[2];
		assert_int_equal(sw_redact_argv(in, 2, out), 0);
		free((char *)out[0].ptr);
		free((char *)out[1].ptr);
		free(z);
		free(exact);
		free(buf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_text), cmocka_unit_test(test_lists),
	    cmocka_unit_test(test_file_bytes), cmocka_unit_test(test_any_bytes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
