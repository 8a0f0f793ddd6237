/*
 * What somebody who can write the file but has no key can do to it, and what the owner's
 * own next seal, pruning or change of keys must not make good. And keys that change while
 * others write.
 */
#include "store_test.h"

#include <glob.h>
#include <nettle/eddsa.h>

#include "verify_int.h"

static char *dir;
static char base[300], work[300], pub[320], key[320];

static void post_some(sw_store *s, int from, int to)
{
	char text[300];
	for (int i = from; i < to; i++) {
		snprintf(text, sizeof text,
		         "{\"id\":\"r%d\",\"backend\":\"bwrap\",\"exit\":1,\"session\":\"s%d\","
		         "\"output\":\"touch: cannot touch '/etc/x%d': Read-only file system\\n\"}",
		         i, i % 5, i % 7);
		assert_int_equal(post(s, text, NULL, NULL), 0);
	}
}

static int setup(void **state)
{
	(void)state;
	dir = temp_dir();
	in_dir(base, sizeof base, dir, "base.db");
	in_dir(work, sizeof work, dir, "work.db");
	in_dir(pub, sizeof pub, dir, "base.db.pub");
	in_dir(key, sizeof key, dir, "base.db.key");
	sw_store *s = open_rw(base, NULL);
	post_some(s, 0, 30);
	assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
	post_some(s, 30, 60);
	assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
	sw_store_close(s);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	remove_dir(dir);
	return 0;
}

/* As an owner does who has put back an older copy and knows it. */
static void forget_seals(void)
{
	glob_t g;
	char pattern[340];
	snprintf(pattern, sizeof pattern, "%s/*.sealed", dir);
	if (glob(pattern, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++)
			unlink(g.gl_pathv[i]);
	globfree(&g);
}

static void remove_work(void)
{
	forget_seals();
	static const char *const ends[] = {"", "-wal", "-shm", ".pub", ".key", ".key.new", ".lock"};
	char p[340];
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		snprintf(p, sizeof p, "%s%s", work, ends[i]);
		unlink(p);
	}
}

/* A copy without the key, opened for writing as only the forger does. */
static sw_store *stolen(void)
{
	remove_work();
	sw_store *s = open_ro(base);
	assert_int_equal(sw_store_backup(s, work, NULL), 0);
	sw_store_close(s);
	const sw_store_options none = {.key_path = "/nonexistent/key", .no_seal = true};
	return open_rw(work, &none);
}

static sw_store *owner(void)
{
	const sw_store_options o = {.key_path = key};
	return open_rw(work, &o);
}

static int judged(const char *pin, const char *anchor)
{
	const char *anchors[] = {anchor};
	const sw_verify_options o = {
	    .public_key = pin, .anchors = anchors, .n_anchors = anchor ? 1 : 0};
	return verify_path(work, &o, NULL);
}

static void run_sql(sw_store *s, const char *sql, long long n)
{
	char *text = sqlite3_mprintf(sql, n);
	s->committing = true; /* as another program would, which has no such guard */
	assert_int_equal(st_exec(s, text, NULL), 0);
	s->committing = false;
	sqlite3_free(text);
}

struct sum {
	struct sha256_ctx h;
	uint64_t to;
	uint8_t resume[32];
};

static int add_row(void *arg, st_table t, uint64_t seq, const st_cell *cells, st_cell hash)
{
	struct sum *d = arg;
	if (seq > d->to)
		return 1;
	if (st_tables[t].kept)
		vf_dict_digest(&d->h, t, seq, cells, hash);
	if (seq == d->to)
		memcpy(d->resume, hash.p, 32);
	return 0;
}

typedef enum { UNSIGNED, EMPTY_SIGNATURE, STRANGE_KEY, OWN_KEY, FORGERIES } forgery;

/* Removes the first segment, makes verdicts and resources of what stays harmless, and says
 * that this was a pruning. */
static void forge_prune(forgery how)
{
	sw_store *s = stolen();
	uint8_t secret[32], public[32], print[32], uuid[16], message[ST_MESSAGE_MAX];
	uint8_t dict[ST_PRUNE_SIGNED] = {0};
	st_key_new(secret, public, NULL);
	assert_int_equal(st_begin(s, NULL), 0);
	assert_int_equal(st_uuid(s, uuid, NULL), 0);
	if (how == OWN_KEY) {
		st_cell k[] = {st_int(sw_now_ns()), st_blob(public, 32), st_null()};
		assert_int_equal(st_append(s, T_KEY, k, NULL, NULL), 0);
	}
	sqlite3_stmt *q;
	sqlite3_prepare_v2(s->db, "SELECT min(seq) FROM seal", -1, &q, NULL);
	sqlite3_step(q);
	struct sum d = {.to = (uint64_t)sqlite3_column_int64(q, 0)};
	sqlite3_finalize(q);
	run_sql(s, "DELETE FROM record WHERE seq<=%lld", (long long)d.to);
	run_sql(s, "DELETE FROM rollup WHERE id<8", 0);
	run_sql(s, "UPDATE shape SET verdict='ok', cause=NULL WHERE seq<=%lld", (long long)d.to);
	run_sql(s, "UPDATE resource SET value='/tmp/harmless' WHERE seq<=%lld", (long long)d.to);
	sha256_init(&d.h);
	assert_int_equal(vf_merge(s, VF_ALL_TABLES, add_row, &d, NULL), 0);
	sha256_digest(&d.h, 32, dict);
	st_sha256(print, public, 32);
	memcpy(dict + ST_PRUNE_DIGEST, print, 8);
	st_cell c[C_PRUNE_N] = {st_int(sw_now_ns()),
	                        st_int(1),
	                        st_int((int64_t)d.to),
	                        st_int(30),
	                        st_blob(d.resume, 32),
	                        st_blob(dict, how == UNSIGNED ? 32 : sizeof dict),
	                        st_null()};
	size_t n = st_prune_message(message, uuid, s->head.seq + 1, c);
	if (how >= STRANGE_KEY)
		ed25519_sha512_sign(public, secret, n, message, dict + ST_PRUNE_KEYED);
	assert_int_equal(st_append(s, T_PRUNE, c, NULL, NULL), 0);
	assert_int_equal(st_commit(s, NULL), 0);
	sw_store_close(s);
}

static int put(void *arg, const char *p, size_t n)
{
	return fwrite(p, 1, n, arg) == n ? 0 : -1;
}

static void test_forged_pruning(void **state)
{
	(void)state;
	sw_store *s = open_ro(base);
	sw_store_head head;
	char anchor[100], hash[65];
	assert_int_equal(sw_store_head_get(s, &head, NULL), 0);
	sw_store_close(s);
	st_hex(hash, head.hash, 32);
	snprintf(anchor, sizeof anchor, "%llu:%s", (unsigned long long)head.seq, hash);
	for (forgery how = 0; how < FORGERIES; how++) {
		forge_prune(how);
		assert_int_equal(judged(pub, anchor), SW_VERIFY_BAD_SEAL);
		assert_int_equal(judged(NULL, NULL), SW_VERIFY_BAD_SEAL);
		/* the owner, who knows nothing of it, seals ... */
		s = owner();
		post_some(s, 100, 103);
		(void)sw_store_seal(s, NULL, NULL);
		assert_int_equal(judged(pub, anchor), SW_VERIFY_BAD_SEAL);
		/* ... prunes ... */
		json_t *j = NULL;
		const sw_prune_options p = {.keep_rows = 2};
		assert_true(sw_store_prune(s, &p, &j, NULL) < 0);
		assert_int_equal(judged(pub, anchor), SW_VERIFY_BAD_SEAL);
		sw_store_close(s);
		/* ... and an export of it is no better */
		char file[300];
		int status = 0;
		in_dir(file, sizeof file, dir, "e.ndjson");
		FILE *f = fopen(file, "w");
		s = open_ro(work);
		assert_int_equal(sw_store_export(s, put, f, NULL), 0);
		sw_store_close(s);
		fclose(f);
		const sw_verify_options o = {.public_key = pub};
		j = NULL;
		assert_int_equal(sw_export_verify(file, &o, &status, &j, NULL), 0);
		assert_int_equal(status, SW_VERIFY_BAD_SEAL);
		json_decref(j);
	}
}

/* A change to what will be pruned, or to a name that stays, is not signed by the owner. */
static void test_changed_before_pruning(void **state)
{
	(void)state;
	static const char *const changes[] = {
	    "UPDATE shape SET verdict='ok' WHERE id=%lld",
	    "UPDATE resource SET value='/tmp/harmless' WHERE id=%lld",
	    "DELETE FROM record WHERE seq=(SELECT seq FROM record LIMIT 1 OFFSET %lld)",
	    "UPDATE record SET command='[]' WHERE seq=(SELECT max(seq) - 40 * %lld FROM record)"};
	const sw_prune_options p = {.keep_rows = 30};
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		sw_store *s = stolen();
		run_sql(s, changes[i], 1);
		sw_store_close(s);
		s = owner();
		json_t *j = NULL;
		assert_int_equal(sw_store_prune(s, &p, &j, NULL), SW_ECORRUPT);
		sw_store_close(s);
		assert_true(judged(pub, NULL) >= SW_VERIFY_CHANGED);
	}
	/* names that an earlier pruning kept */
	for (int i = 0; i < 3; i++) {
		sw_store_close(stolen());
		sw_store *s = owner();
		json_t *j = NULL;
		assert_int_equal(sw_store_prune(s, &p, &j, NULL), 0);
		json_decref(j);
		assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
		assert_int_equal(judged(pub, NULL), SW_VERIFY_INTACT);
		if (i < 2)
			run_sql(s, changes[i], 1);
		const sw_prune_options all = {.older_than_ns = INT64_MAX};
		j = NULL;
		assert_int_equal(sw_store_prune(s, &all, &j, NULL), i < 2 ? SW_ECORRUPT : 0);
		json_decref(j);
		sw_store_close(s);
		assert_int_equal(judged(pub, NULL), i < 2 ? SW_VERIFY_CHANGED : SW_VERIFY_UNSEALED);
	}
}

/* A pruning needs the key; without one nothing goes. */
static void test_pruning_without_key(void **state)
{
	(void)state;
	sw_store *s = stolen();
	json_t *j = NULL;
	sw_error e = {0};
	const sw_prune_options p = {.keep_rows = 30}, look = {.keep_rows = 30, .dry_run = true};
	assert_int_equal(sw_store_prune(s, &p, &j, &e), SW_ENOTFOUND);
	assert_non_null(strstr(e.what, "a pruning is signed"));
	assert_int_equal(sw_store_prune(s, &look, &j, NULL), 0);
	json_decref(j);
	sw_store_close(s);
	assert_int_equal(judged(pub, NULL), SW_VERIFY_INTACT);
}

/* Seals that were kept still tell what an anchor of their time should be. */
static void test_anchors_of_pruned_rows(void **state)
{
	(void)state;
	sw_store_close(stolen());
	sw_store *s = owner();
	sqlite3_stmt *q;
	char good[2][100], hash[65];
	sqlite3_prepare_v2(s->db, "SELECT seq, hash, last_seq, head FROM seal ORDER BY seq", -1, &q,
	                   NULL);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	for (int i = 0; i < 2; i++) {
		st_hex(hash, sqlite3_column_blob(q, 2 * i + 1), 32);
		snprintf(good[i], sizeof good[i], "%lld:%s",
		         (long long)sqlite3_column_int64(q, 2 * i), hash);
	}
	sqlite3_finalize(q);
	const sw_prune_options p = {.keep_rows = 30};
	json_t *j = NULL;
	assert_int_equal(sw_store_prune(s, &p, &j, NULL), 0);
	json_decref(j);
	sw_store_close(s);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(judged(pub, good[i]), SW_VERIFY_UNSEALED);
		char *last = good[i] + strlen(good[i]) - 1;
		*last = *last == '0' ? '1' : '0';
		assert_int_equal(judged(pub, good[i]), SW_VERIFY_CHANGED);
	}
}

/* The whole of it written anew without key and seals, or nothing left of it. */
static void test_without_its_beginning(void **state)
{
	(void)state;
	sw_store *s = stolen();
	run_sql(s, "DELETE FROM key", 0);
	run_sql(s, "DELETE FROM seal", 0);
	run_sql(s, "DELETE FROM rollup", 0);
	sw_store_close(s);
	assert_int_equal(judged(pub, NULL), SW_VERIFY_BAD_SEAL);
	static const char *const tables[] = {"store",  "key",   "session",   "resource",
	                                     "origin", "shape", "record",    "seal",
	                                     "rollup", "kept",  "unfinished"};
	s = stolen();
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		char sql[60];
		snprintf(sql, sizeof sql, "DELETE FROM %s", tables[i]);
		run_sql(s, sql, 0);
	}
	run_sql(s,
	        "UPDATE state SET seq=0, hash=zeroblob(32), sealed_seq=0, sealed_ns=0,"
	        " segments=0, unsealed_ns=0",
	        0);
	sw_store_close(s);
	assert_int_equal(judged(NULL, NULL), SW_VERIFY_MISSING);
	assert_int_equal(judged(pub, NULL), SW_VERIFY_BAD_SEAL);
	char file[300];
	int status = 0;
	json_t *j = NULL;
	in_dir(file, sizeof file, dir, "two.ndjson");
	FILE *f = fopen(file, "w");
	s = open_ro(work);
	assert_int_equal(sw_store_export(s, put, f, NULL), 0);
	sw_store_close(s);
	fclose(f);
	assert_int_equal(sw_export_verify(file, NULL, &status, &j, NULL), 0);
	assert_int_equal(status, SW_VERIFY_MISSING);
	json_decref(j);
}

/* A key that is not trusted has no business where a trusted one is in use. */
static void test_seal_between_trusted_ones(void **state)
{
	(void)state;
	sw_store *s = stolen();
	uint8_t secret[32], public[32], print[32], uuid[16], message[ST_MESSAGE_MAX], sig[64];
	uint8_t rollup[32];
	st_facts none = {0};
	st_key_new(secret, public, NULL);
	assert_int_equal(st_begin(s, NULL), 0);
	assert_int_equal(st_uuid(s, uuid, NULL), 0);
	st_cell k[] = {st_int(sw_now_ns()), st_blob(public, 32), st_null()};
	assert_int_equal(st_append(s, T_KEY, k, NULL, NULL), 0);
	st_sha256(print, public, 32);
	assert_int_equal(st_rollup_digest(rollup, &none), 0);
	uint8_t head[32];
	memcpy(head, s->head.hash, 32);
	st_cell c[C_SEAL_N] = {st_int(s->head.segments + 1),
	                       st_int(sw_now_ns()),
	                       st_int((int64_t)s->head.sealed_seq + 1),
	                       st_int((int64_t)s->head.seq),
	                       st_blob(head, 32),
	                       st_blob(rollup, 32),
	                       st_blob(print, 8),
	                       st_blob(sig, 64)};
	size_t n = st_seal_message(message, uuid, c);
	ed25519_sha512_sign(public, secret, n, message, sig);
	uint64_t seq;
	assert_int_equal(st_append(s, T_SEAL, c, &seq, NULL), 0);
	s->head.sealed_seq = seq;
	s->head.sealed_ns = c[C_SEAL_AT].i;
	s->head.segments++;
	s->head.unsealed_ns = 0;
	/* the owner's key named once more, so that the owner seals on */
	uint8_t own[32];
	assert_int_equal(st_public_read(pub, own, NULL), 0);
	k[C_KEY_PUBLIC] = st_blob(own, 32);
	assert_int_equal(st_append(s, T_KEY, k, NULL, NULL), 0);
	assert_int_equal(st_commit(s, NULL), 0);
	sw_store_close(s);
	assert_int_equal(judged(pub, NULL), SW_VERIFY_BAD_SEAL);
	s = owner();
	assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
	sw_store_close(s);
	assert_int_equal(judged(pub, NULL), SW_VERIFY_BAD_SEAL);
}

/* What the file itself can be made to hold is a finding, not a reason to give up. */
static void test_tampered_file(void **state)
{
	(void)state;
	static const char *const sql[] = {
	    "UPDATE record SET cwd=cast(zeroblob(30000000) AS text)"
	    " WHERE seq=(SELECT max(seq) FROM record)",
	    "ALTER TABLE session RENAME TO session_old",
	    "DROP TABLE unfinished",
	    "PRAGMA user_version=0",
	    "PRAGMA ignore_check_constraints=ON;"
	    "INSERT INTO state SELECT 2, seq, hash, sealed_seq, sealed_ns, segments, unsealed_ns"
	    " FROM state",
	    /* these cannot even be opened */
	    "PRAGMA application_id=5",
	    "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql='junk' WHERE name='kept'",
	    "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage=99999 WHERE name='kept'",
	};
	for (size_t i = 0; i < sizeof sql / sizeof *sql; i++) {
		sw_store_close(stolen());
		sqlite3 *db;
		assert_int_equal(sqlite3_open(work, &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, sql[i], NULL, NULL, NULL), SQLITE_OK);
		sqlite3_close(db);
		sw_store *s = NULL;
		sw_error e = {0};
		json_t *j = NULL;
		int status = -1;
		int code = sw_store_open(&s, work, SW_STORE_READ, NULL, &e);
		if (code == 0) {
			assert_int_equal(sw_store_verify(s, NULL, &status, &j, NULL), 0);
			sw_store_close(s);
		} else {
			assert_int_equal(code, SW_ECORRUPT);
			assert_int_equal(sw_verify_unopened(work, &e, NULL, &status, &j, NULL), 0);
		}
		json_decref(j);
		if (status != SW_VERIFY_CHANGED && status != SW_VERIFY_MISSING)
			fail_msg("%s: verify says %d", sql[i], status);
	}
}

static int judge_text(const char *text, size_t n)
{
	char file[300];
	int status = 0;
	json_t *j = NULL;
	in_dir(file, sizeof file, dir, "text.ndjson");
	FILE *f = fopen(file, "w");
	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
	int code = sw_export_verify(file, NULL, &status, &j, NULL);
	json_decref(j);
	return code ? code : status;
}

/* Whatever an export would not hold is a change, also where no hash covers it. */
static void test_strict_export(void **state)
{
	(void)state;
	static const char *const edits[][2] = {
	    {"\"table\":\"record\"", "\"note\":\"x\",\"table\":\"record\""},
	    {"\"table\":\"kept\"", "\"note\":\"x\",\"table\":\"kept\""},
	    {"\"cut\":0", "\"cut\":\"0\""},
	    {"\"cut\":0", "\"cut\":false"},
	    {"\"cut\":0,", ""},
	    {"\"schema\":1", "\"schema\":-5"},
	    {"\"schema\":1", "\"schema\":\"x\""},
	    {"\"schema\":1,", ""},
	    {"\"program\":", "\"note\":1,\"program\":"},
	    {"\"pruned\":null", "\"pruned\":{}"},
	    {"\"table\":\"head\"", "\"table\":\"head\",\"note\":1"},
	    {"{\"b64\":", "{\"note\":1,\"b64\":"},
	    {"\n{\"table\":\"store\"", "\n{\"table\":\"nothing\"}\n{\"table\":\"store\""},
	};
	char file[300], *text = NULL;
	size_t n = 0;
	remove_work();
	sw_store *s = open_rw(work, NULL);
	post_some(s, 0, 3);
	assert_int_equal(post(s,
	                      "{\"backend\":\"bwrap\",\"exit\":1,\"output\":\"x\\n\","
	                      "\"keep_output\":true}",
	                      NULL, NULL),
	                 0);
	assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
	in_dir(file, sizeof file, dir, "strict.ndjson");
	FILE *f = fopen(file, "w");
	assert_int_equal(sw_store_export(s, put, f, NULL), 0);
	fclose(f);
	sw_store_close(s);
	assert_int_equal(sw_read_file(file, 1u << 24, &text, &n, NULL), 0);
	char *buf = malloc(n + (18u << 20));
	assert_int_equal(judge_text(text, n), SW_VERIFY_INTACT);
	for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
		const char *at = memmem(text, n, edits[i][0], strlen(edits[i][0]));
		assert_non_null(at);
		size_t before = (size_t)(at - text), gone = strlen(edits[i][0]);
		size_t add = strlen(edits[i][1]);
		memcpy(buf, text, before);
		memcpy(buf + before, edits[i][1], add);
		memcpy(buf + before + add, at + gone, n - before - gone);
		int status = judge_text(buf, n - gone + add);
		if (status != SW_VERIFY_CHANGED)
			fail_msg("%s -> %s: verify says %d", edits[i][0], edits[i][1], status);
	}
	/* the head twice, in the midst, and first */
	const char *head = memrchr(text, '\n', n - 1);
	size_t len = n - 1 - (size_t)(head - text); /* with one newline */
	const char *second = memchr(text, '\n', n);
	size_t first = (size_t)(second + 1 - text);
	memcpy(buf, text, n);
	memcpy(buf + n, head + 1, len);
	assert_int_equal(judge_text(buf, n + len), SW_VERIFY_CHANGED);
	memcpy(buf, text, first);
	memcpy(buf + first, head + 1, len);
	memcpy(buf + first + len, text + first, n - first - len);
	assert_int_equal(judge_text(buf, n), SW_VERIFY_CHANGED);
	/* a line without end is read up to a limit only */
	memcpy(buf, text, n);
	memset(buf + n, 'x', 17u << 20);
	assert_int_equal(judge_text(buf, n + (17u << 20)), SW_VERIFY_CHANGED);
	assert_int_equal(judge_text(buf + n, 17u << 20), SW_EINVAL);
	/* and a pipe is not waited for */
	in_dir(file, sizeof file, dir, "pipe.ndjson");
	assert_int_equal(mkfifo(file, 0600), 0);
	int status = 0;
	json_t *j = NULL;
	assert_int_equal(sw_export_verify(file, NULL, &status, &j, NULL), SW_EIO);
	free(buf);
	free(text);
}

/*
 * History written anew without the seals, which the owner's next seal would cover. The
 * key's side knows the seal that it made last.
 */
static void test_seals_taken_out(void **state)
{
	(void)state;
	char mine[320], mine_pub[320], place[340];
	sw_error e = {0};
	json_t *j = NULL;
	remove_work();
	in_dir(mine, sizeof mine, dir, "work.db.key");
	in_dir(mine_pub, sizeof mine_pub, dir, "work.db.pub");
	const sw_store_options o = {.segment_rows = 8};
	sw_store *s = open_rw(work, &o);
	post_some(s, 0, 10);
	assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
	sw_store_close(s);
	/* all rows up to the first seal stay, the seals go, others are written behind them */
	s = open_rw(work, &(sw_store_options){.key_path = "/nonexistent/key", .no_seal = true});
	run_sql(s, "DELETE FROM record WHERE seq>(SELECT min(seq) FROM record)", 0);
	run_sql(s, "DELETE FROM seal", 0);
	run_sql(s, "DELETE FROM rollup", 0);
	static const char *const names[] = {"session", "resource", "origin", "shape"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char sql[100];
		snprintf(sql, sizeof sql, "DELETE FROM %s WHERE seq>(SELECT min(seq) FROM record)",
		         names[i]);
		run_sql(s, sql, 0);
	}
	run_sql(s,
	        "UPDATE state SET (seq, hash)=(SELECT max(seq), hash FROM record), sealed_seq=0,"
	        " sealed_ns=0, segments=0, unsealed_ns=(SELECT at_ns FROM store)",
	        0);
	sw_store_close(s);
	s = open_rw(work, &o);
	assert_int_equal(judged(mine_pub, NULL), SW_VERIFY_UNSEALED);
	assert_int_equal(sw_store_seal(s, NULL, &e), SW_ECORRUPT);
	assert_non_null(strstr(e.what, "does not hold row"));
	assert_non_null(strstr(e.fix, ".sealed"));
	assert_int_equal(sw_store_rotate_key(s, NULL), SW_ECORRUPT);
	const sw_prune_options p = {.keep_rows = 1};
	/* recording goes on, and what closes by itself is not signed */
	post_some(s, 100, 130);
	assert_int_equal(judged(mine_pub, NULL), SW_VERIFY_UNSEALED);
	assert_int_equal(sw_store_prune(s, &p, &j, NULL), SW_ECORRUPT);
	/* another place is another trail */
	snprintf(place, sizeof place, "%s.copy", work);
	assert_int_equal(sw_store_backup(s, place, NULL), 0);
	sw_store *copy = open_rw(place, &(sw_store_options){.key_path = mine});
	assert_int_equal(sw_store_seal(copy, NULL, NULL), 0);
	sw_store_close(copy);
	assert_int_equal(sw_store_seal(s, NULL, NULL), SW_ECORRUPT);
	/* whoever knows that it is an older copy says so */
	forget_seals();
	assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
	sw_store_close(s);
}

/* ---- keys that change ---- */

static void test_rotation_after_pruning(void **state)
{
	(void)state;
	char first[320], mine[320], mine_pub[320];
	remove_work();
	in_dir(first, sizeof first, dir, "first.pub");
	in_dir(mine, sizeof mine, dir, "work.db.key");
	in_dir(mine_pub, sizeof mine_pub, dir, "work.db.pub");
	sw_store *s = open_rw(work, NULL);
	for (int i = 0; i < 3; i++) {
		post_some(s, 20 * i, 20 * i + 20);
		assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
	}
	copy_file(mine_pub, first);
	const sw_prune_options p = {.keep_rows = 40};
	json_t *j = NULL;
	assert_int_equal(sw_store_prune(s, &p, &j, NULL), 0);
	json_decref(j);
	/* twice, signed by the one before */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sw_store_rotate_key(s, NULL), 0);
		assert_int_equal(judged(mine_pub, NULL), SW_VERIFY_INTACT);
		assert_int_equal(judged(first, NULL), SW_VERIFY_INTACT);
	}
	/* lost: whoever pins the new one still hears what was pruned */
	sw_store_close(s);
	unlink(mine);
	s = open_rw(work, NULL);
	assert_int_equal(sw_store_rotate_key(s, NULL), 0);
	assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
	assert_int_equal(judged(mine_pub, NULL), SW_VERIFY_INTACT);
	assert_int_equal(judged(first, NULL), SW_VERIFY_BAD_SEAL);
	/* and pruning goes on */
	const sw_prune_options more = {.keep_rows = 20};
	j = NULL;
	assert_int_equal(sw_store_prune(s, &more, &j, NULL), 0);
	assert_int_equal(json_integer_value(json_object_get(j, "rows")), 20);
	json_decref(j);
	assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
	assert_int_equal(judged(mine_pub, NULL), SW_VERIFY_INTACT);
	sw_store_close(s);
}

/* A change of keys does not make a forged pruning good either. */
static void test_rotation_after_forgery(void **state)
{
	(void)state;
	char mine[320], mine_pub[320];
	in_dir(mine, sizeof mine, dir, "work.db.key");
	in_dir(mine_pub, sizeof mine_pub, dir, "work.db.pub");
	for (forgery how = 0; how < FORGERIES; how++) {
		forge_prune(how);
		copy_file(key, mine);
		copy_file(pub, mine_pub);
		chmod(mine, 0600);
		sw_store *s = open_rw(work, NULL);
		assert_int_equal(sw_store_rotate_key(s, NULL), 0);
		(void)sw_store_seal(s, NULL, NULL);
		sw_store_close(s);
		assert_int_equal(judged(pub, NULL), SW_VERIFY_BAD_SEAL);
		assert_int_equal(judged(mine_pub, NULL), SW_VERIFY_BAD_SEAL);
	}
}

static void test_rotation_under_a_writer(void **state)
{
	(void)state;
	char mine[320], next[320], mine_pub[320], old[320];
	remove_work();
	in_dir(mine, sizeof mine, dir, "work.db.key");
	in_dir(next, sizeof next, dir, "work.db.key.new");
	in_dir(old, sizeof old, dir, "old.key");
	in_dir(mine_pub, sizeof mine_pub, dir, "work.db.pub");
	sw_store *writer = open_rw(work, NULL), *other = open_rw(work, NULL);
	post_some(writer, 0, 3);
	assert_int_equal(sw_store_seal(writer, NULL, NULL), 0);
	copy_file(mine, old);
	assert_int_equal(sw_store_rotate_key(other, NULL), 0);
	post_some(writer, 3, 6);
	assert_int_equal(sw_store_seal(writer, NULL, NULL), 0);
	assert_int_equal(judged(mine_pub, NULL), SW_VERIFY_INTACT);
	/* killed after the commit: the new key still lies beside the old one */
	assert_int_equal(rename(mine, next), 0);
	copy_file(old, mine);
	chmod(mine, 0600);
	post_some(writer, 6, 9);
	assert_int_equal(sw_store_seal(writer, NULL, NULL), 0);
	sw_store_close(other);
	other = open_rw(work, NULL);
	post_some(other, 9, 12);
	assert_int_equal(sw_store_seal(other, NULL, NULL), 0);
	assert_int_equal(judged(mine_pub, NULL), SW_VERIFY_INTACT);
	/* the same where it had not been read yet, or the old one is gone */
	for (int lost = 0; lost < 2; lost++) {
		sw_store_close(other);
		assert_int_equal(rename(mine, next), 0);
		if (!lost) {
			copy_file(old, mine);
			chmod(mine, 0600);
		}
		other = open_rw(work, NULL);
		post_some(other, 12 + lost, 13 + lost);
		assert_int_equal(sw_store_seal(other, NULL, NULL), 0);
		assert_int_equal(access(next, F_OK), -1);
		assert_int_equal(judged(mine_pub, NULL), SW_VERIFY_INTACT);
	}
	sw_store_close(writer);
	sw_store_close(other);
}

/* Another trail's key seals nothing here, and is not overwritten by a change of keys. */
static void test_another_key(void **state)
{
	(void)state;
	sw_error e = {0};
	char before[200] = "", after[200] = "";
	remove_work();
	sw_store_close(open_rw(work, NULL)); /* with a key of its own */
	sw_store *s = owner();               /* with base's */
	post_some(s, 0, 3);
	assert_int_equal(sw_store_seal(s, NULL, &e), SW_EINVAL);
	assert_non_null(strstr(e.why, "never announced"));
	FILE *f = fopen(key, "r");
	assert_non_null(fgets(before, sizeof before, f));
	fclose(f);
	assert_int_equal(sw_store_rotate_key(s, NULL), SW_EINVAL);
	f = fopen(key, "r");
	assert_non_null(fgets(after, sizeof after, f));
	fclose(f);
	assert_string_equal(before, after);
	/* what seals by itself closes without a key, and says no untruth */
	sw_store_close(s);
	const sw_store_options o = {.key_path = key, .segment_rows = 2};
	s = open_rw(work, &o);
	post_some(s, 3, 9);
	sw_store_close(s);
	assert_int_equal(judged(NULL, NULL), SW_VERIFY_UNSEALED);
	s = open_rw(work, NULL);
	assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
	sw_store_close(s);
	assert_int_equal(judged(NULL, NULL), SW_VERIFY_INTACT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_forged_pruning),
	    cmocka_unit_test(test_changed_before_pruning),
	    cmocka_unit_test(test_pruning_without_key),
	    cmocka_unit_test(test_anchors_of_pruned_rows),
	    cmocka_unit_test(test_without_its_beginning),
	    cmocka_unit_test(test_seal_between_trusted_ones),
	    cmocka_unit_test(test_seals_taken_out),
	    cmocka_unit_test(test_tampered_file),
	    cmocka_unit_test(test_strict_export),
	    cmocka_unit_test(test_rotation_after_pruning),
	    cmocka_unit_test(test_rotation_after_forgery),
	    cmocka_unit_test(test_rotation_under_a_writer),
	    cmocka_unit_test(test_another_key),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
