/* The guard, the routes, the settings and the token file, each without a socket. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guard.h"
#include "http.h"
#include "listen.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static http_config config(void)
{
	http_config c;
	http_config_init(&c);
	return c;
}

static int parse(http_config *c, int argc, const char **argv, sw_error *err)
{
	bool answered;
	return http_config_parse(c, argc, (char **)argv, &answered, err);
}

static http_once once(const char *value)
{
	return (http_once){.value = value, .count = value != NULL};
}

static http_head good(void)
{
	return (http_head){.method = "GET",
	                   .port = 8765,
	                   .host = once("127.0.0.1:8765"),
	                   .authorization = once("Bearer " TOKEN)};
}

static http_problem judge(const http_config *c, const http_head *h)
{
	char detail[320];
	http_problem p = http_guard(c, TOKEN, h, detail);
	assert_non_null(memchr(detail, 0, sizeof(detail)));
	return p;
}

static void hosts(void **state)
{
	static const struct {
		const char *host;
		bool on_tcp, on_unix;
	} cases[] = {
	    {"localhost", true, true},
	    {"LocalHost", true, true},
	    {"127.0.0.1", true, true},
	    {"[::1]", true, true},
	    {"sandwitness", false, true},
	    {"localhost:8765", true, false},
	    {"127.0.0.1:8765", true, false},
	    {"[::1]:8765", true, false},
	    {"localhost:8766", false, false},
	    {"localhost:08765", false, false},
	    {"localhost:", false, false},
	    {"localhost.", false, false},
	    {"localhost.evil.example", false, false},
	    {"evil.example", false, false},
	    {"evil.example:8765", false, false},
	    {"127.0.0.2", false, false},
	    {"0.0.0.0:8765", false, false},
	    {"::1", false, false},
	    {"", false, false},
	    {"127.0.0.1:8765 ", false, false},
	    {"127.0.0.1:8765,localhost", false, false},
	};
	http_config c = config();
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (http_guard_host(&c, false, 8765, cases[i].host) != cases[i].on_tcp ||
		    http_guard_host(&c, true, 0, cases[i].host) != cases[i].on_unix)
			fail_msg("%s", cases[i].host);
	}
	http_config_free(&c);
}

static void hosts_added(void **state)
{
	const char *argv[] = {"x", "--allow-host", "Gate.example", "--allow-host=gate.example:444"};
	http_config c = config();
	(void)state;

	assert_int_equal(parse(&c, 4, argv, NULL), 0);
	assert_true(http_guard_host(&c, false, 8765, "gate.example"));
	assert_true(http_guard_host(&c, false, 8765, "GATE.example:8765"));
	assert_true(http_guard_host(&c, false, 8765, "gate.example:444"));
	assert_false(http_guard_host(&c, false, 8765, "gate.example:445"));
	assert_false(http_guard_host(&c, false, 8765, "sub.gate.example"));
	http_config_free(&c);
}

static void each_rule_alone(void **state)
{
	http_config c = config();
	http_head h = good();
	(void)state;

	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_NONE);
	h.host.count = 2;
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_HOST);
	h = good();
	h.host = (http_once){0};
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_HOST);
	h = good();
	h.host.odd = true;
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_HOST);
	h = good();
	h.origin = once("http://evil.example");
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_ORIGIN);
	h.origin = once("http://127.0.0.1:8765");
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_NONE);
	h.origin = once("https://127.0.0.1:8765");
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_ORIGIN);
	h = good();
	h.sec_fetch_site = once("cross-site");
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_ORIGIN);
	h = good();
	h.method = "POST";
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_MEDIA_TYPE);
	h.content_type = once("text/plain");
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_MEDIA_TYPE);
	h.content_type = once("Application/JSON ; charset=utf-8");
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_NONE);
	h = good();
	h.authorization = (http_once){0};
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_TOKEN_MISSING);
	h.is_public = true;
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_NONE);
	h = good();
	h.authorization = once("Bearer " TOKEN "0");
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_TOKEN_WRONG);
	h = good();
	h.content_length = once("5");
	h.transfer_encoding = once("chunked");
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_BAD_REQUEST);
	h = good();
	h.content_length = once("5");
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_NONE);
	h.content_length.odd = true;
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_BAD_REQUEST);
	h = good();
	h.transfer_encoding = once("chunked");
	h.transfer_encoding.odd = true;
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_BAD_REQUEST);
	http_config_free(&c);
}

/* What the gate counts is never less than what the JSON takes. */
static void json_costs_what_it_takes(void **state)
{
	static const char *const items[] = {"[]",
	                                    "{}",
	                                    "1",
	                                    "\"\"",
	                                    "{\"\":1}",
	                                    "[1]",
	                                    "true",
	                                    "1.5",
	                                    "{\"a\":[]}",
	                                    "\"abcdefgh\"",
	                                    "\"[[{{\"",
	                                    "\"a\\\"[[\"",
	                                    "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5}"};
	(void)state;
	for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
		size_t len = strlen(items[i]), n = 300000 / (len + 1);
		char *text = malloc(n * (len + 1) + 2), *p = text;
		assert_non_null(text);
		*p++ = '[';
		for (size_t k = 0; k < n; k++) {
			memcpy(p, items[i], len);
			p += len;
			*p++ = k + 1 < n ? ',' : ']';
		}
		size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
		json_t *j = json_loadb(text, (size_t)(p - text), 0, NULL);
		size_t took = mallinfo2().uordblks + mallinfo2().hblkhd - before;
		assert_non_null(j);
		size_t cost = http_json_cost(text, (size_t)(p - text));
		if (took > cost)
			fail_msg("%s: %zu bytes, counted as %zu", items[i], took, cost);
		json_decref(j);
		free(text);
	}
	/* texts are cheap: an output of 8 MiB passes, 8 MiB of empty lists do not */
	char *text = malloc(8 << 20);
	assert_non_null(text);
	memset(text, '[', 8 << 20);
	assert_false(http_gate_admits(http_json_cost(text, 8 << 20)));
	text[0] = '"';
	assert_true(http_gate_admits(http_json_cost(text, 8 << 20)));
	free(text);
}

static void a_service_without_token_lets_nobody_in(void **state)
{
	http_config c = config();
	http_head h = good();
	char detail[320];
	(void)state;

	h.authorization = once("Bearer ");
	assert_int_equal(http_guard(&c, NULL, &h, detail), HTTP_PROBLEM_TOKEN_WRONG);
	http_config_free(&c);
}

static void origins_of_a_socket(void **state)
{
	const char *argv[] = {"x", "--allow-origin", "https://gate.example"};
	http_config c = config();
	http_head h = {.method = "GET", .is_unix = true, .host = once("localhost")};
	(void)state;

	/* no page has a unix socket as its origin */
	h.origin = once("http://localhost");
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_ORIGIN);
	assert_int_equal(parse(&c, 3, argv, NULL), 0);
	h.origin = once("https://gate.example");
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_NONE);
	h.origin = once("https://gate.example.evil.example");
	assert_int_equal(judge(&c, &h), HTTP_PROBLEM_ORIGIN);
	http_config_free(&c);
}

static void routes(void **state)
{
	static const struct {
		const char *path, *name, *arg;
	} cases[] = {
	    {"/", "dashboard", ""},
	    {"/v1/status", "status", ""},
	    {"/v1/invocations", "invocations", ""},
	    {"/v1/invocations/abc", "invocation", "abc"},
	    {"/v1/invocations/a/b", "invocation", "a/b"},
	    {"/v1/invocations/", NULL, ""},
	    {"/v1/status/", NULL, ""},
	    {"/v1", NULL, ""},
	    {"", NULL, ""},
	    {"/V1/status", NULL, ""},
	    {"/ui/dashboard.css", "asset", "dashboard.css"},
	    {"/v1/reports", "reports", ""},
	    {"/v1/reports/summary", "report", "summary"},
	};
	char arg[HTTP_PATH_ARG_MAX], longest[2 * HTTP_PATH_ARG_MAX];
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const http_route *r = http_route_find(cases[i].path, arg);
		if (!r != !cases[i].name || (r && strcmp(r->name, cases[i].name) != 0) ||
		    (r && strcmp(arg, cases[i].arg) != 0))
			fail_msg("%s", cases[i].path);
	}
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "/v1/invocations/", 16);
	longest[sizeof(longest) - 1] = 0;
	assert_null(http_route_find(longest, arg));
	for (size_t i = 0; i < http_n_routes; i++) {
		assert_int_equal(!!(http_routes[i].methods & HTTP_GET), http_routes[i].get != NULL);
		assert_int_equal(!!(http_routes[i].methods & HTTP_POST),
		                 http_routes[i].post != NULL);
		/* what holds data is never public */
		if (http_routes[i].is_public)
			assert_int_not_equal(strncmp(http_routes[i].pattern, "/v1/", 4), 0);
	}
}

static void settings(void **state)
{
	static const char *const bad[][2] = {
	    {"--listen", "0.0.0.0:80"},
	    {"--listen", "192.168.0.1:80"},
	    {"--listen", "*:80"},
	    {"--listen", "[::]:80"},
	    {"--listen", "unix:"},
	    {"--listen", "127.0.0.1:65536"},
	    {"--listen", "127.0.0.1:-1"},
	    {"--listen", "8080"},
	    {"--max-body", "0"},
	    {"--max-body", "8XB"},
	    {"--max-body", "99999999999999999999"},
	    {"--timeout", "-1s"},
	    {"--timeout", "soon"},
	    {"--max-connections", "0"},
	    {"--max-connections", "1x"},
	    {"--socket-mode", "9"},
	    {"--allow-host", "*"},
	    {"--allow-host", "0.0.0.0"},
	    {"--allow-host", ""},
	    {"--allow-origin", "evil.example"},
	    {"--allow-origin", "https://x/y"},
	    {"--nonsense", "1"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *argv[] = {"x", bad[i][0], bad[i][1]};
		http_config c = config();
		sw_error err = {0};
		if (!parse(&c, 3, argv, &err) || !*err.what || !*err.fix)
			fail_msg("%s %s: %s", bad[i][0], bad[i][1], err.what);
		http_config_free(&c);
	}
	const char *argv[] = {"x",       "--listen",        "unix:/run/a.sock", "--listen",
	                      "[::1]:0", "--max-body=1MiB", "--timeout=250ms",  "--socket-mode",
	                      "0660",    "--quiet",         "--probe-age",      "0s"};
	http_config c = config();
	assert_int_equal(c.max_body, 8 << 20);
	assert_int_equal(c.max_connections, 64);
	assert_int_equal(c.timeout_ns, INT64_C(10000000000));
	assert_int_equal(c.max_header, 16 << 10);
	assert_int_equal(parse(&c, 12, argv, NULL), 0);
	assert_int_equal(c.n_listen, 2);
	assert_string_equal(c.listen[0].path, "/run/a.sock");
	assert_string_equal(c.listen[1].host, "::1");
	assert_int_equal(c.max_body, 1 << 20);
	assert_int_equal(c.timeout_ns, 250000000);
	assert_int_equal(c.socket_mode, 0660);
	assert_int_equal(c.probe_age_ns, 0);
	assert_true(c.quiet);
	http_config_free(&c);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	chmod(path, mode);
}

static void token_file(void **state)
{
	char dir[] = "/tmp/sw-token-XXXXXX", path[64];
	char *a = NULL, *b = NULL;
	struct stat st;
	(void)state;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/token", dir);
	assert_int_equal(http_token_load(&a, path, NULL), 0);
	assert_int_equal(strlen(a), 64);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(http_token_load(&b, path, NULL), 0);
	assert_string_equal(a, b);
	free(b);
	b = NULL;
	chmod(path, 0644);
	assert_int_not_equal(http_token_load(&b, path, NULL), 0);
	write_file(path, "short\n", 0600);
	assert_int_not_equal(http_token_load(&b, path, NULL), 0);
	write_file(path, "0123456789abcdef0123456789abcde#token", 0600);
	assert_int_not_equal(http_token_load(&b, path, NULL), 0);
	write_file(path, TOKEN "\r\n", 0600);
	assert_int_equal(http_token_load(&b, path, NULL), 0);
	assert_string_equal(b, TOKEN);
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	char *c = NULL;
	assert_int_not_equal(http_token_load(&c, path, NULL), 0);
	unlink(path);
	rmdir(dir);
	free(a);
	free(b);
}

static void socket_files(void **state)
{
	char dir[] = "/tmp/sw-listen-XXXXXX", path[64], folder[64], longest[200];
	http_listener a, b;
	sw_error err = {0};
	(void)state;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/new/s.sock", dir);
	http_listen_spec spec = {.kind = HTTP_LISTEN_UNIX, .path = path};
	assert_int_equal(http_listener_open(&a, &spec, 0600, &err), 0);
	/* a second service must not take a living one's place */
	assert_int_not_equal(http_listener_open(&b, &spec, 0600, &err), 0);
	/* a dead one's file is replaced */
	close(a.fd);
	a.fd = -1;
	assert_int_equal(http_listener_open(&b, &spec, 0600, &err), 0);
	/* the old owner's end leaves the new one's file alone */
	http_listener_close(&a);
	assert_int_equal(access(path, F_OK), 0);
	http_listener_close(&b);
	assert_int_not_equal(access(path, F_OK), 0);
	snprintf(folder, sizeof(folder), "%s/new", dir);
	/* a folder in which others can rename */
	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_not_equal(http_listener_open(&b, &spec, 0600, &err), 0);
	assert_int_equal(chmod(folder, 01777), 0);
	assert_int_equal(http_listener_open(&b, &spec, 0600, &err), 0);
	http_listener_close(&b);
	assert_int_equal(chmod(folder, 0700), 0);
	write_file(path, "precious", 0600);
	assert_int_not_equal(http_listener_open(&b, &spec, 0600, &err), 0);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = 0;
	spec.path = longest;
	assert_int_not_equal(http_listener_open(&b, &spec, 0600, &err), 0);
	snprintf(path, sizeof(path), "%s/new", dir);
	rmdir(path);
	rmdir(dir);
}

static void problems(void **state)
{
	(void)state;
	for (int p = 0; p < HTTP_PROBLEM_COUNT; p++) {
		json_t *j = http_problem_json((http_problem)p, "bytes \xff\x1b here", NULL);
		assert_non_null(j);
		const char *type = json_string_value(json_object_get(j, "type"));
		assert_int_equal(
		    strncmp(type, HTTP_PROBLEM_TYPE_PREFIX, strlen(HTTP_PROBLEM_TYPE_PREFIX)), 0);
		assert_true(json_integer_value(json_object_get(j, "status")) >= 400);
		assert_true(json_string_length(json_object_get(j, "title")) > 0);
		assert_true(json_string_length(json_object_get(j, "fix")) > 0);
		assert_true(json_string_length(json_object_get(j, "detail")) > 0);
		json_decref(j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(hosts),
	    cmocka_unit_test(hosts_added),
	    cmocka_unit_test(each_rule_alone),
	    cmocka_unit_test(json_costs_what_it_takes),
	    cmocka_unit_test(a_service_without_token_lets_nobody_in),
	    cmocka_unit_test(origins_of_a_socket),
	    cmocka_unit_test(routes),
	    cmocka_unit_test(settings),
	    cmocka_unit_test(token_file),
	    cmocka_unit_test(socket_files),
	    cmocka_unit_test(problems),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
