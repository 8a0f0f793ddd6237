/*
 * What callers give: times, names with NULs, cursors and anchors. And what a spreadsheet
 * may be given.
 */
#include "store_test.h"

static char *dir;
static char path[300];

static int setup(void **state)
{
	(void)state;
	dir = temp_dir();
	in_dir(path, sizeof path, dir, "trail.db");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	remove_dir(dir);
	return 0;
}

static int64_t number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return json_is_integer(v) ? json_integer_value(v) : -1;
}

static const char *word(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return json_is_string(v) ? json_string_value(v) : "(none)";
}

/* The missing one of start, end and duration follows from the others. */
static void test_times(void **state)
{
	(void)state;
	static const struct {
		const char *fields, *start, *end;
		int64_t ms;
	} rows[] = {
	    {"\"started_at\":1000,\"duration_ms\":2500", "1970-01-01T00:16:40.000Z",
	     "1970-01-01T00:16:42.500Z", 2500},
	    {"\"ended_at\":1000,\"duration_ms\":2500", "1970-01-01T00:16:37.500Z",
	     "1970-01-01T00:16:40.000Z", 2500},
	    {"\"started_at\":1000,\"ended_at\":1001,\"duration_ms\":5", "1970-01-01T00:16:40.000Z",
	     "1970-01-01T00:16:41.000Z", 1000},
	    {"\"started_at\":1000,\"duration_ms\":0", "1970-01-01T00:16:40.000Z",
	     "1970-01-01T00:16:40.000Z", 0},
	    {"\"ended_at\":1000", "1970-01-01T00:16:40.000Z", "1970-01-01T00:16:40.000Z", 0},
	    {"\"started_at\":1000", "1970-01-01T00:16:40.000Z", "(none)", -1},
	    {"\"duration_ms\":500", NULL, NULL, 500},
	    {"\"duration_ms\":0", NULL, NULL, 0},
	    {"\"duration_ms\":null", NULL, "(none)", -1},
	    {"\"ended_at\":\"2200-01-01T00:00:00Z\"", NULL, "2200-01-01T00:00:00.000Z", -2},
	};
	static const char *const bad[] = {
	    "\"duration_ms\":\"junk\"",
	    "\"duration_ms\":-1",
	    "\"duration_ms\":9e18",
	    "\"duration_ms\":true",
	    "\"duration_ms\":[5]",
	    "\"started_at\":1000,\"duration_ms\":-1",
	    "\"started_at\":1000,\"ended_at\":1001,\"duration_ms\":\"junk\"",
	    "\"ended_at\":1,\"duration_ms\":1001",
	    "\"started_at\":1001,\"ended_at\":1000",
	    "\"started_at\":\"2026-02-30T00:00:00Z\"",
	    "\"started_at\":\"2026-01-01\\u0000zzz\"",
	    "\"started_at\":\"2026-01-01T00:00:00Z\\u0000\""};
	sw_store *s = open_rw(path, NULL);
	char text[300], id[20];
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *j = NULL;
		snprintf(id, sizeof id, "t%zu", i);
		snprintf(text, sizeof text, "{\"id\":\"%s\",\"backend\":\"bwrap\",\"exit\":0,%s}",
		         id, rows[i].fields);
		assert_int_equal(post(s, text, NULL, NULL), 0);
		sw_receipt again = {0};
		assert_int_equal(post(s, text, &again, NULL), 0);
		assert_true(again.replay);
		assert_int_equal(sw_store_invocation(s, id, &j, NULL), 0);
		if (rows[i].start)
			assert_string_equal(word(j, "started_at"), rows[i].start);
		if (rows[i].end)
			assert_string_equal(word(j, "ended_at"), rows[i].end);
		if (rows[i].ms > -2)
			assert_int_equal(number(j, "duration_ms"), rows[i].ms);
		else
			assert_true(number(j, "duration_ms") >= 0);
		json_decref(j);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, "{\"backend\":\"bwrap\",\"exit\":0,%s}", bad[i]);
		if (post(s, text, NULL, NULL) != SW_EINVAL)
			fail_msg("%s was taken", bad[i]);
	}
	/* begin and end */
	json_t *j = NULL;
	assert_int_equal(post(s,
	                      "{\"id\":\"x\",\"event\":\"begin\",\"backend\":\"bwrap\","
	                      "\"duration_ms\":5}",
	                      NULL, NULL),
	                 SW_EINVAL);
	assert_int_equal(post(s,
	                      "{\"id\":\"x\",\"event\":\"begin\",\"backend\":\"bwrap\","
	                      "\"started_at\":1000}",
	                      NULL, NULL),
	                 0);
	assert_int_equal(post(s,
	                      "{\"id\":\"x\",\"event\":\"end\",\"backend\":\"bwrap\","
	                      "\"exit\":0,\"duration_ms\":700}",
	                      NULL, NULL),
	                 0);
	assert_int_equal(sw_store_invocation(s, "x", &j, NULL), 0);
	assert_int_equal(number(j, "duration_ms"), 700);
	json_decref(j);
	/* an end before its begin: two clocks, or whole seconds */
	assert_int_equal(
	    post(s, "{\"id\":\"y\",\"event\":\"begin\",\"backend\":\"bwrap\"}", NULL, NULL), 0);
	assert_int_equal(post(s,
	                      "{\"id\":\"y\",\"event\":\"end\",\"backend\":\"bwrap\","
	                      "\"exit\":0,\"ended_at\":1000}",
	                      NULL, NULL),
	                 0);
	assert_int_equal(sw_store_invocation(s, "y", &j, NULL), 0);
	assert_int_equal(number(j, "duration_ms"), 0);
	json_decref(j);
	sw_store_close(s);
}

/* A name that another reader would end at its NUL is not recorded; captured bytes are. */
static void test_nul(void **state)
{
	(void)state;
	static const char *const fields[] = {
	    "device",  "platform",  "runtime", "session",    "actor",        "cwd",
	    "command", "reason",    "mode",    "requested",  "minimum",      "effective",
	    "cause",   "signature", "verdict", "started_at", "resource_kind"};
	sw_store *s = open_rw(path, NULL);
	sw_error e = {0};
	char text[300];
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		snprintf(text, sizeof text,
		         "{\"backend\":\"bwrap\",\"exit\":0,\"%s\":\"none\\u0000x\"}", fields[i]);
		memset(&e, 0, sizeof e);
		if (post(s, text, NULL, &e) != SW_EINVAL || !strstr(e.why, "NUL"))
			fail_msg("%s: %s: %s", text, e.what, e.why);
	}
	static const char *const whole[] = {
	    "{\"backend\":\"bwrap\\u0000x\",\"exit\":0}",
	    "{\"id\":\"a\\u0000b\",\"backend\":\"bwrap\",\"exit\":0}",
	    "{\"backend\":\"bwrap\",\"exit\":0,\"labels\":{\"k\":\"v\\u0000w\"}}",
	    "{\"backend\":\"bwrap\",\"exit\":0,\"argv\":[\"ls\",\"a\\u0000b\"]}",
	    "{\"backend\":\"bwrap\",\"exit\":0,\"event\":\"complete\\u0000\"}",
	    "{\"backend\":\"bwrap\",\"exit\":0,\"writable_roots\":[\"/w\\u0000\"]}"};
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		if (post(s, whole[i], NULL, NULL) != SW_EINVAL)
			fail_msg("%s was taken", whole[i]);
	/* through the library too */
	sw_record r = {.backend = SW_STR("bwrap"), .session = {"a\0b", 3}};
	assert_int_equal(sw_store_complete(s, &r, NULL, &e), SW_EINVAL);
	/* what was captured is what it is */
	assert_int_equal(post(s,
	                      "{\"backend\":\"bwrap\",\"exit\":1,\"output\":\"a\\u0000b\\n\","
	                      "\"keep_output\":true}",
	                      NULL, NULL),
	                 0);
	assert_int_equal(post(s,
	                      "{\"id\":\"l\",\"backend\":\"bwrap\",\"exit\":1,"
	                      "\"verdict\":\"sandbox_denied\",\"line\":\"a\\u0000b\","
	                      "\"resource\":\"/x\\u0000y\",\"resource_kind\":\"path\"}",
	                      NULL, NULL),
	                 0);
	json_t *j = NULL;
	assert_int_equal(sw_store_invocation(s, "l", &j, NULL), 0);
	assert_int_equal(json_string_length(json_object_get(j, "line")), 3);
	json_decref(j);
	sw_store_close(s);
}

static int take_none(void *arg, json_t *o)
{
	(void)arg;
	(void)o;
	return 0;
}

static void test_cursors_and_anchors(void **state)
{
	(void)state;
	static const char *const bad[] = {"-1",
	                                  "+5",
	                                  " 5",
	                                  "5 ",
	                                  "05",
	                                  "0",
	                                  "",
	                                  "5x",
	                                  "18446744073709551616",
	                                  "99999999999999999999999",
	                                  "9223372036854775808"};
	static const char *const pages[] = {
	    "-1.61",         "+5.61", " 5.61", "5", "5.6", "5.zz", "99999999999999999999999.61",
	    "4294967296.61", ".61",   "05.61"};
	static const char *const ids[] = {"5.2d31", "5.2b35",
	                                  "5.2035", "5.",
	                                  "5.3561", "5.3939393939393939393939393939393939393939"};
	char hash[65], anchor[120];
	sw_store *s = open_rw(path, NULL);
	assert_int_equal(
	    post(s, "{\"backend\":\"bwrap\",\"exit\":0,\"session\":\"s\"}", NULL, NULL), 0);
	memset(hash, '0', 64);
	hash[64] = 0;
	json_t *j = NULL;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		sw_query q = {.cursor = strdup(bad[i])};
		if (sw_store_invocations(s, &q, take_none, NULL, NULL, NULL) != SW_EINVAL ||
		    sw_store_report(s, "unfinished", &q, &j, NULL) != SW_EINVAL)
			fail_msg("cursor \"%s\" was taken", bad[i]);
		free(q.cursor);
		int status;
		snprintf(anchor, sizeof anchor, "%s:%s", bad[i], hash);
		const char *anchors[] = {anchor};
		const sw_verify_options o = {.anchors = anchors, .n_anchors = 1};
		if (sw_store_verify(s, &o, &status, &j, NULL) != SW_EINVAL)
			fail_msg("anchor %s was taken", anchor);
	}
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
		sw_query q = {.cursor = strdup(pages[i])};
		if (sw_store_report(s, "backends", &q, &j, NULL) != SW_EINVAL)
			fail_msg("cursor \"%s\" was taken", pages[i]);
		free(q.cursor);
	}
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		sw_query q = {.cursor = strdup(ids[i])};
		if (sw_store_report(s, "sessions", &q, &j, NULL) != SW_EINVAL)
			fail_msg("cursor \"%s\" was taken", ids[i]);
		free(q.cursor);
	}
	sw_query good = {.cursor = strdup("5.35")};
	assert_int_equal(sw_store_report(s, "sessions", &good, &j, NULL), 0);
	json_decref(j);
	free(good.cursor);
	sw_store_close(s);
}

static void test_csv(void **state)
{
	(void)state;
	static const struct {
		const char *text, *cell;
		size_t n;
	} rows[] = {
	    {"plain", "plain", 5},
	    {"", "", 0},
	    {"a b-c=d", "a b-c=d", 7},
	    {"a,b", "\"a,b\"", 3},
	    {"say \"hi\"", "\"say \"\"hi\"\"\"", 8},
	    {"=1", "\"'=1\"", 2},
	    {"+1", "\"'+1\"", 2},
	    {"@x", "\"'@x\"", 2},
	    {" =1", "\" '=1\"", 3},
	    {"\t =1", "\"\t '=1\"", 4},
	    {";=1", "\";'=1\"", 3},
	    {"a;=1", "\"a;'=1\"", 4},
	    {"a\n-1", "\"a\n'-1\"", 4},
	    {"a\t@b", "\"a\t'@b\"", 4},
	    {"\xef\xbc\x9d"
	     "1",
	     "\"'\xef\xbc\x9d"
	     "1\"",
	     4},
	    {"a;b", "\"a;b\"", 3},
	    {"a\0b",
	     "a\xef\xbf\xbd"
	     "b",
	     3},
	    {"\0=1", "\xef\xbf\xbd=1", 3},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		sw_buf b;
		sw_buf_init(&b, 1000);
		sw_csv_text(&b, rows[i].text, rows[i].n);
		assert_string_equal(b.ptr ? b.ptr : "", rows[i].cell);
		sw_buf_free(&b);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {T(test_times), T(test_nul), T(test_cursors_and_anchors),
	                                   T(test_csv)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
