/* The store's own behaviour: records, replays, groups, locks, migrations. */
#include "store_test.h"

#include <signal.h>

static char *dir;
static char path[300];

static int setup(void **state)
{
	(void)state;
	dir = temp_dir();
	in_dir(path, sizeof path, dir, "sub/trail.db");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	remove_dir(dir);
	return 0;
}

static json_t *show(sw_store *s, const char *id)
{
	json_t *j = NULL;
	sw_error e = {0};
	if (sw_store_invocation(s, id, &j, &e) != 0)
		sw_error_print(stderr, &e);
	return j;
}

static const char *text_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return json_is_string(v) ? json_string_value(v) : "(none)";
}

static void test_modes(void **state)
{
	(void)state;
	struct stat st;
	mode_t old = umask(0);
	sw_store *s = open_rw(path, NULL);
	umask(old);
	assert_int_equal(post(s, "{\"backend\":\"bwrap\",\"exit\":0}", NULL, NULL), 0);
	char p[320];
	in_dir(p, sizeof p, dir, "sub");
	assert_int_equal(stat(p, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	static const char *const names[] = {"", "-wal", "-shm", ".key", ".lock"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(p, sizeof p, "%s%s", path, names[i]);
		assert_int_equal(stat(p, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
	sw_store_close(s);
	sqlite3 *db;
	sqlite3_stmt *q;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	static const struct {
		const char *sql, *want;
	} pragmas[] = {
	    {"PRAGMA journal_mode", "wal"},
	    {"PRAGMA user_version", "1"},
	    {"PRAGMA application_id", "1398227285"},
	    {"SELECT count(*) FROM sqlite_schema WHERE type='table' AND sql NOT LIKE '%STRICT'",
	     "0"}};
	for (size_t i = 0; i < sizeof pragmas / sizeof *pragmas; i++) {
		assert_int_equal(sqlite3_prepare_v2(db, pragmas[i].sql, -1, &q, NULL), SQLITE_OK);
		assert_int_equal(sqlite3_step(q), SQLITE_ROW);
		assert_string_equal((const char *)sqlite3_column_text(q, 0), pragmas[i].want);
		sqlite3_finalize(q);
	}
	sqlite3_close(db);
}

/* The columns that the chain covers are the columns that the tables have. */
static void test_columns_are_covered(void **state)
{
	(void)state;
	sqlite3 *db;
	sw_store_close(open_rw(path, NULL));
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	for (int t = 0; t < T_COUNT; t++) {
		char sql[200];
		sqlite3_stmt *q;
		snprintf(sql, sizeof sql, "SELECT name FROM pragma_table_info('%s')",
		         st_tables[t].name);
		assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
		for (int i = -1; i <= st_tables[t].n; i++) {
			const char *want = i < 0                 ? "seq"
			                   : i == st_tables[t].n ? "hash"
			                                         : st_tables[t].cols[i];
			assert_int_equal(sqlite3_step(q), SQLITE_ROW);
			assert_string_equal((const char *)sqlite3_column_text(q, 0), want);
		}
		assert_int_equal(sqlite3_step(q), SQLITE_DONE);
		sqlite3_finalize(q);
	}
	sqlite3_close(db);
}

static void test_begin_and_end(void **state)
{
	(void)state;
	sw_store *s = open_rw(path, NULL);
	sw_receipt a, b;
	const char *begin =
	    "{\"id\":\"one\",\"event\":\"begin\",\"backend\":\"bwrap\",\"session\":\"s\","
	    "\"command\":[\"ls\"],\"requested\":\"bwrap\",\"effective\":\"bwrap\"}";
	assert_int_equal(post(s, begin, &a, NULL), 0);
	json_t *j = show(s, "one");
	assert_string_equal(text_of(j, "verdict"), "unfinished");
	json_decref(j);
	sw_store_counts c;
	assert_int_equal(sw_store_counts_get(s, &c, NULL), 0);
	assert_int_equal(c.unfinished, 1);
	assert_int_equal(c.total, 0);
	/* replays: the same answer; another content: a conflict */
	assert_int_equal(post(s, begin, &b, NULL), 0);
	assert_true(b.replay && b.seq == a.seq && memcmp(a.hash, b.hash, 32) == 0);
	assert_int_equal(
	    post(s, "{\"id\":\"one\",\"event\":\"begin\",\"backend\":\"docker\"}", &b, NULL),
	    SW_ECONFLICT);
	assert_int_equal(post(s, "{\"id\":\"one\",\"backend\":\"bwrap\",\"exit\":0}", &b, NULL),
	                 SW_ECONFLICT);
	const char *end = "{\"id\":\"one\",\"event\":\"end\",\"backend\":\"bwrap\",\"exit\":1,"
	                  "\"output\":\"bwrap: setting up uid map: Permission denied\\n\"}";
	assert_int_equal(post(s, end, &a, NULL), 0);
	assert_int_equal(post(s, end, &b, NULL), 0);
	assert_true(b.replay && b.seq == a.seq);
	assert_int_equal(post(s,
	                      "{\"id\":\"one\",\"event\":\"end\",\"backend\":\"bwrap\",\"exit\":2}",
	                      &b, NULL),
	                 SW_ECONFLICT);
	assert_int_equal(post(s,
	                      "{\"id\":\"two\",\"event\":\"end\",\"backend\":\"bwrap\",\"exit\":2}",
	                      &b, NULL),
	                 SW_ENOTFOUND);
	j = show(s, "one");
	assert_string_equal(text_of(j, "verdict"), "runner_failed");
	assert_string_equal(text_of(j, "requested"), "bwrap"); /* the begin's, kept */
	assert_string_equal(text_of(j, "session"), "s");
	assert_true(json_is_false(json_object_get(j, "contained"))); /* it never ran */
	assert_string_equal(json_string_value(json_array_get(json_object_get(j, "command"), 0)),
	                    "ls");
	json_decref(j);
	assert_int_equal(sw_store_counts_get(s, &c, NULL), 0);
	assert_int_equal(c.unfinished, 0);
	assert_int_equal(c.verdict[SW_RECORD_RUNNER_FAILED], 1);
	/* a begin may be repeated after its end */
	assert_int_equal(post(s, begin, &b, NULL), 0);
	assert_true(b.replay);
	/* a secret in the body: the same request is still a replay */
	const char *secret = "{\"id\":\"sec\",\"backend\":\"none\",\"exit\":0,\"command\":[\"x\","
	                     "\"--password\",\"hunter2\"]}";
	assert_int_equal(post(s, secret, &a, NULL), 0);
	assert_int_equal(post(s, secret, &b, NULL), 0);
	assert_true(b.replay);
	sw_store_close(s);
	assert_int_equal(verify_path(path, NULL, NULL), SW_VERIFY_UNSEALED);
}

static void test_group(void **state)
{
	(void)state;
	sw_store *s = open_rw(path, NULL);
	sw_record r[5];
	sw_store_op ops[5];
	memset(r, 0, sizeof r);
	for (int i = 0; i < 5; i++) {
		r[i].backend = SW_STR("bwrap");
		r[i].outcome.has_exit = true;
		ops[i] = (sw_store_op){.kind = SW_STORE_COMPLETE, .record = &r[i]};
	}
	r[0].id = SW_STR("g0");
	r[1].id = SW_STR("g0"); /* the same within the group */
	r[2].id = SW_STR("g0");
	r[2].outcome.verdict = SW_RECORD_SANDBOX_DENIED;
	r[3].backend = (sw_str){"", 0};
	r[4].id = SW_STR("g4");
	assert_int_equal(sw_store_write(s, ops, 5, NULL), 0);
	assert_int_equal(ops[0].code, 0);
	assert_int_equal(ops[1].code, 0);
	assert_true(ops[1].receipt.replay && ops[1].receipt.seq == ops[0].receipt.seq);
	assert_int_equal(ops[2].code, SW_ECONFLICT);
	assert_int_equal(ops[3].code, SW_EINVAL);
	assert_int_equal(ops[4].code, 0);
	assert_int_equal(sw_store_write(s, ops, 0, NULL), SW_EINVAL);
	assert_int_equal(sw_store_write(s, ops, SW_STORE_GROUP_MAX + 1, NULL), SW_EINVAL);
	sw_store_close(s);
}

static void test_refused(void **state)
{
	(void)state;
	static const struct {
		const char *json;
		const char *field;
	} bad[] = {
	    {"{\"exit\":0}", "backend"},
	    {"{\"backend\":\"bwrap\"}", "exit"},
	    {"{\"backend\":\"bwrap\",\"exit\":0,\"nosuch\":1}", "nosuch"},
	    {"{\"backend\":\"bwrap\",\"exit\":\"0\"}", "exit"},
	    {"{\"backend\":\"bwrap\",\"exit\":9,\"signal\":9}", "signal"},
	    {"{\"backend\":\"bwrap\",\"exit\":0,\"mode\":\"rw\"}", "mode"},
	    {"{\"backend\":\"bwrap\",\"exit\":0,\"requested\":\"fortress\"}", "requested"},
	    {"{\"backend\":\"bwrap\",\"exit\":0,\"verdict\":\"fine\"}", "verdict"},
	    {"{\"backend\":\"bwrap\",\"exit\":0,\"labels\":{\"a\":1}}", "labels"},
	    {"{\"backend\":\"bwrap\",\"exit\":0,\"command\":[1]}", "command"},
	    {"{\"backend\":\"bwrap\",\"exit\":0,\"started_at\":\"yesterday\"}", "started_at"},
	    {"{\"backend\":\"bwrap\",\"exit\":0,\"started_at\":20,\"ended_at\":10}", "ended_at"},
	    {"{\"backend\":\"bwrap\",\"exit\":0,\"id\":\"a b\"}", "id"},
	    {"{\"backend\":\"nosuch\",\"exit\":0}", "backend"},
	    {"{\"event\":\"begin\",\"backend\":\"bwrap\",\"exit\":0}", "event"},
	    {"{\"backend\":\"bwrap\",\"exit\":0,\"exempt\":true}", "reason"},
	};
	sw_store *s = open_rw(path, NULL);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		sw_error e = {0};
		int code = post(s, bad[i].json, NULL, &e);
		if (code >= 0 || !strstr(e.where, bad[i].field))
			fail_msg("%s: code %d, where \"%s\" (%s)", bad[i].json, code, e.where,
			         e.what);
	}
	sw_store_counts c;
	assert_int_equal(sw_store_counts_get(s, &c, NULL), 0);
	assert_int_equal(c.total, 0);
	sw_store_close(s);
}

/* The words of three runtimes. */
static void test_vocabulary(void **state)
{
	(void)state;
	static const struct {
		const char *json, *id;
		const char *want[6][2];
	} cases[] = {
	    {"{\"id\":\"m1\",\"runtime\":\"metnos\",\"device\":\"pc\",\"platform\":\"windows\","
	     "\"sandbox\":\"job-object\","
	     "\"sandbox_downgrade_reason\":\"scope too broad\",\"exit\":0}",
	     "m1",
	     {{"backend", "job_object"},
	      {"requested", "appcontainer"},
	      {"effective", "job_object"},
	      {"reason", "scope too broad"},
	      {"reason_class", "explained"},
	      {"basis", "declared"}}},
	    {"{\"id\":\"m2\",\"runtime\":\"metnos\",\"platform\":\"macos\",\"sandbox\":\"none\","
	     "\"exit\":0}",
	     "m2",
	     {{"backend", "none"}, {"effective", "none"}, {"verdict", "ok"}}},
	    {"{\"id\":\"n1\",\"runtime\":\"nous\",\"backend\":\"bwrap\",\"mode\":\"workspace_"
	     "write\","
	     "\"enforcement\":\"partial\",\"exit_status\":1,\"output\":\"bwrap: setting up uid "
	     "map: Permission denied\\n\"}",
	     "n1",
	     {{"verdict", "runner_failed"},
	      {"enforcement", "partial"},
	      {"effective", "bwrap_partial"},
	      {"mode", "workspace_write"},
	      {"stage", "setup"}}},
	    {"{\"id\":\"c1\",\"runtime\":\"mecha\",\"kind\":\"bwrap\",\"network\":false,\"exit\":0,"
	     "\"command\":[\"/usr/bin/bwrap\",\"--bind\",\"/\",\"/"
	     "\",\"sh\"],\"requested\":\"bwrap\"}",
	     "c1",
	     {{"backend", "bwrap"}, {"basis", "derived"}, {"network", "denied"}}},
	    {"{\"id\":\"u1\",\"backend\":\"bwrap\",\"exit\":0,\"requested\":\"bwrap\"}",
	     "u1",
	     {{"basis", "unknown"}, {"effective", "unknown"}}},
	    {"{\"id\":\"u2\",\"backend\":\"bwrap\",\"verdict\":\"sandbox_unavailable\",\"reason\":"
	     "\"bwrap missing\"}",
	     "u2",
	     {{"verdict", "sandbox_unavailable"}}},
	};
	sw_store *s = open_rw(path, NULL);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		sw_error e = {0};
		if (post(s, cases[i].json, NULL, &e) != 0)
			fail_msg("%s: %s %s %s", cases[i].json, e.where, e.what, e.why);
		json_t *j = show(s, cases[i].id);
		for (int k = 0; k < 6 && cases[i].want[k][0]; k++)
			if (strcmp(text_of(j, cases[i].want[k][0]), cases[i].want[k][1]) != 0)
				fail_msg("%s: %s is %s, not %s", cases[i].id, cases[i].want[k][0],
				         text_of(j, cases[i].want[k][0]), cases[i].want[k][1]);
		if (strcmp(cases[i].id, "u1") == 0) {
			assert_true(json_is_false(json_object_get(j, "contained")));
			assert_true(json_is_true(json_object_get(j, "downgrade")));
			assert_true(json_is_true(json_object_get(j, "unexplained")));
		}
		json_decref(j);
	}
	sw_store_close(s);
}

/* Hostile bytes come back as they were, or safe. */
static void test_hostile(void **state)
{
	(void)state;
	sw_store *s = open_rw(path, NULL);
	sw_record r = {.id = SW_STR("h"), .backend = SW_STR("bwrap")};
	char line[] = "bad \xff\xfe \0 nul \x1b[31m";
	sw_str argv[2] = {SW_STR("bad \xff\xfe \x1b[31m"), SW_STR("b")};
	r.argv = argv;
	r.argc = 2;
	r.session = SW_STR("s\xffx");
	r.outcome.has_line = true;
	r.outcome.line = (sw_str){line, sizeof line - 1};
	r.outcome.line_number = 1;
	r.outcome.verdict = SW_RECORD_SANDBOX_DENIED;
	r.outcome.resource = (sw_str){"/a\xff", 3};
	r.outcome.resource_kind = SW_STR("path");
	sw_error e = {0};
	assert_int_equal(sw_store_complete(s, &r, NULL, &e), 0);
	json_t *j = show(s, "h");
	char *bytes = NULL;
	size_t n = 0;
	const json_t *b64 = json_object_get(j, "line_b64");
	assert_non_null(b64);
	assert_int_equal(
	    sw_base64_decode(json_string_value(b64), json_string_length(b64), &bytes, &n), 0);
	assert_int_equal(n, sizeof line - 1);
	assert_memory_equal(bytes, line, n);
	free(bytes);
	json_decref(j);
	sw_store_close(s);
	assert_int_equal(verify_path(path, NULL, NULL), SW_VERIFY_UNSEALED);
}

static void test_limits(void **state)
{
	(void)state;
	sw_store *s = open_rw(path, NULL);
	char *big = malloc(200000);
	memset(big, 'a', 200000);
	sw_record r = {.id = SW_STR("big"),
	               .backend = SW_STR("bwrap"),
	               .output = {big, 200000},
	               .keep_output = 1000};
	sw_str argv[3] = {{big, 100000}, SW_STR("b"), SW_STR("c")};
	r.argv = argv;
	r.argc = 3;
	r.reason = (sw_str){big, 5000};
	r.outcome.has_line = true;
	r.outcome.line = (sw_str){big, 9000};
	assert_int_equal(sw_store_complete(s, &r, NULL, NULL), 0);
	json_t *j = show(s, "big");
	assert_true(json_string_length(json_object_get(j, "reason")) <= SW_RECORD_REASON_MAX);
	assert_int_equal(json_string_length(json_object_get(j, "line")), SW_LINE_REPORT_MAX);
	assert_true(json_is_true(json_object_get(j, "line_truncated")));
	assert_int_equal(json_string_length(json_object_get(j, "output")), 1000);
	assert_int_equal(json_integer_value(json_object_get(j, "output_cut")), 199000);
	char *z = json_dumps(json_object_get(j, "command"), 0);
	assert_true(strlen(z) < SW_RECORD_COMMAND_MAX);
	assert_non_null(strstr(z, "[cut: 2 more arguments]"));
	free(z);
	json_decref(j);
	r.id = (sw_str){big, SW_RECORD_ID_MAX + 1};
	assert_int_equal(sw_store_complete(s, &r, NULL, NULL), SW_ETOOBIG);
	r.id = SW_STR("x");
	r.session = (sw_str){big, SW_RECORD_NAME_MAX + 1};
	assert_int_equal(sw_store_complete(s, &r, NULL, NULL), SW_ETOOBIG);
	free(big);
	sw_store_close(s);
}

static int event_order(void *arg, uint64_t seq, json_t *o)
{
	uint64_t *last = arg;
	(void)o;
	assert_true(seq > *last);
	*last = seq;
	return 0;
}

static void test_events_and_fork(void **state)
{
	(void)state;
	sw_store *s = open_rw(path, NULL), *r = open_ro(path);
	uint64_t last = 0;
	sw_store_head a, b;
	assert_int_equal(sw_store_head_get(r, &a, NULL), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(post(s, "{\"backend\":\"none\",\"exit\":0}", NULL, NULL), 0);
	assert_int_equal(sw_store_head_get(r, &b, NULL), 0);
	assert_true(b.seq > a.seq); /* another connection's commits are seen */
	assert_int_equal(sw_store_events(r, a.seq, 3, event_order, &last, NULL), 0);
	assert_int_equal(sw_store_events(r, last, 100, event_order, &last, NULL), 0);
	assert_int_equal(last, b.seq);
	/* a reader cannot write */
	assert_int_equal(post(r, "{\"backend\":\"none\",\"exit\":0}", NULL, NULL), SW_EINVAL);
	pid_t pid = fork();
	if (pid == 0) {
		sw_error e = {0};
		bool refused =
		    post(s, "{\"backend\":\"none\",\"exit\":0}", NULL, &e) == SW_EINVAL &&
		    sw_store_head_get(r, &b, &e) == SW_EINVAL;
		/* what the child must not close stays with it until it ends */
		static sqlite3 *left[2];
		left[0] = s->db;
		left[1] = r->db;
		sw_store_close(s);
		sw_store_close(r);
		_exit(refused && left[0] && left[1] ? 0 : 1);
	}
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	/* and the parent's locks are whole after the child closed its copies */
	assert_int_equal(post(s, "{\"backend\":\"none\",\"exit\":0}", NULL, NULL), 0);
	sw_store_close(s);
	sw_store_close(r);
}

static void test_lock_is_waited_for(void **state)
{
	(void)state;
	sw_store_close(open_rw(path, NULL));
	st_lock *l = NULL;
	assert_int_equal(st_lock_open(&l, path, NULL), 0);
	assert_int_equal(st_lock_take(l, 1000, NULL), 0);
	sw_store *s = NULL;
	sw_store_options o = {.busy_ms = 150};
	assert_int_equal(sw_store_open(&s, path, SW_STORE_WRITE, &o, NULL), 0);
	int64_t t = sw_monotonic_ns();
	sw_error e = {0};
	assert_int_equal(post(s, "{\"backend\":\"none\",\"exit\":0}", NULL, &e), SW_EBUSY);
	assert_true(sw_monotonic_ns() - t >= 140000000);
	assert_non_null(strstr(e.what, "busy"));
	/* the one who gave up does not block those behind */
	st_lock_give(l);
	assert_int_equal(post(s, "{\"backend\":\"none\",\"exit\":0}", NULL, NULL), 0);
	/* one who dies with the lock, or in the queue, is passed over */
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			st_lock *mine = NULL;
			if (st_lock_open(&mine, path, NULL) == 0)
				st_lock_take(mine, 1000, NULL);
			raise(SIGKILL);
		}
		int status;
		waitpid(pid, &status, 0);
		assert_int_equal(post(s, "{\"backend\":\"none\",\"exit\":0}", NULL, NULL), 0);
	}
	st_lock_close(l);
	/* one who is stopped in the queue, before it has the lock, delays but does not block */
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	l = NULL;
	assert_int_equal(st_lock_open(&l, path, NULL), 0);
	assert_int_equal(st_lock_take(l, 1000, NULL), 0);
	pid_t pid = fork();
	if (pid == 0) {
		st_lock *mine = NULL;
		if (st_lock_open(&mine, path, NULL) == 0 && write(ready[1], "x", 1) == 1)
			st_lock_take(mine, 20000, NULL);
		_exit(0);
	}
	char c;
	assert_int_equal(read(ready[0], &c, 1), 1);
	usleep(30000); /* it has drawn its ticket by now */
	kill(pid, SIGSTOP);
	st_lock_give(l);
	sw_store_close(s);
	assert_int_equal(sw_store_open(&s, path, SW_STORE_WRITE, NULL, NULL), 0);
	t = sw_monotonic_ns();
	assert_int_equal(post(s, "{\"backend\":\"none\",\"exit\":0}", NULL, NULL), 0);
	assert_true(sw_monotonic_ns() - t < 5000000000);
	kill(pid, SIGKILL);
	int status;
	waitpid(pid, &status, 0);
	close(ready[0]);
	close(ready[1]);
	st_lock_close(l);
	sw_store_close(s);
}

static const st_migration steps[] = {{1, "ALTER TABLE store ADD COLUMN later TEXT"},
                                     {2, "CREATE TABLE more(x)"},
                                     {3, "CREATE TABLE broken("}};

static void test_migrations(void **state)
{
	(void)state;
	char copy[400];
	sw_store_close(open_rw(path, NULL));
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sw_error e = {0};
	assert_int_equal(st_migrate(db, path, steps, 2, 3, &e), 0);
	snprintf(copy, sizeof copy, "%s.v1.bak", path);
	struct stat st;
	assert_int_equal(stat(copy, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* a step that fails leaves everything as it was */
	assert_int_not_equal(st_migrate(db, path, steps, 3, 4, &e), 0);
	sqlite3_stmt *q;
	sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &q, NULL);
	sqlite3_step(q);
	assert_int_equal(sqlite3_column_int(q, 0), 3);
	sqlite3_finalize(q);
	assert_int_equal(
	    sqlite3_exec(db, "SELECT later FROM store; SELECT x FROM more", NULL, NULL, NULL),
	    SQLITE_OK);
	sqlite3_close(db);
	/* to this program the file is now of a newer one */
	sw_store *s = NULL;
	for (int w = 0; w < 2; w++) {
		assert_int_equal(
		    sw_store_open(&s, path, w ? SW_STORE_WRITE : SW_STORE_READ, NULL, &e),
		    SW_EUNSUPPORTED);
		assert_non_null(strstr(e.what, "schema 3"));
	}
}

static int kept_one(void *arg, const sw_kept *k)
{
	assert_string_equal(k->id, "k");
	assert_true(k->whole);
	++*(int *)arg;
	return 0;
}

static void test_kept(void **state)
{
	(void)state;
	sw_store *s = open_rw(path, NULL);
	int n = 0;
	assert_int_equal(post(s,
	                      "{\"id\":\"k\",\"backend\":\"none\",\"exit\":1,\"output\":\"PASSWORD="
	                      "abc\\nx\\n\",\"keep_output\":true}",
	                      NULL, NULL),
	                 0);
	assert_int_equal(
	    post(s, "{\"id\":\"l\",\"backend\":\"none\",\"exit\":1,\"output\":\"y\"}", NULL, NULL),
	    0);
	assert_int_equal(sw_store_kept(s, NULL, kept_one, &n, NULL), 0);
	assert_int_equal(n, 1);
	json_t *j = show(s, "k");
	assert_string_equal(text_of(j, "output"), "PASSWORD=[redacted:password]\nx\n");
	/* the digest is the raw output's: whoever has it can prove what it was */
	assert_string_equal(text_of(j, "output_sha256"),
	                    "9d740a1985575d4868e771af6006599bbc88d6286a28c8115f7d8e1ba8c30be0");
	json_decref(j);
	sw_store_close(s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(test_modes),           T(test_columns_are_covered),
	    T(test_begin_and_end),   T(test_group),
	    T(test_refused),         T(test_vocabulary),
	    T(test_hostile),         T(test_limits),
	    T(test_events_and_fork), T(test_lock_is_waited_for),
	    T(test_migrations),      T(test_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
