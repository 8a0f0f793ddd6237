/* Reports against a plain count over the same records; paging. */
#include "store_test.h"

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

static const char *text_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return json_is_string(v) ? json_string_value(v) : "(none)";
}

static uint64_t seed = 42;
static unsigned rnd(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % n;
}

#define PLAIN 700
static struct plain {
	const char *backend, *verdict, *cause;
	char session[16], actor[16], device[16], team[16];
	int64_t at;
	bool down, unexplained;
} plain[PLAIN];

static void fill_plain(sw_store *s)
{
	static const char *const backends[] = {"bwrap", "docker", "landlock"};
	static const char *const verdicts[] = {"ok", "ok", "ok", "runner_failed", "sandbox_denied"};
	for (int i = 0; i < PLAIN; i++) {
		struct plain *p = &plain[i];
		char text[800];
		p->backend = backends[rnd(3)];
		p->verdict = verdicts[rnd(5)];
		p->cause = strcmp(p->verdict, "ok")
		               ? (rnd(2) ? "daemon-not-running" : "write-outside-workspace")
		               : NULL;
		snprintf(p->session, sizeof p->session, "s%u", rnd(40));
		snprintf(p->actor, sizeof p->actor, "a%u", rnd(5));
		snprintf(p->device, sizeof p->device, "d%u", rnd(3));
		snprintf(p->team, sizeof p->team, "t%u", rnd(4));
		p->at = 1700000000 + rnd(1000000);
		p->down = rnd(4) == 0;
		p->unexplained = p->down && rnd(2);
		snprintf(text, sizeof text,
		         "{\"id\":\"p%d\",\"backend\":\"%s\",\"verdict\":\"%s\",\"exit\":1,%s%s%"
		         "s\"session\":\"%s\","
		         "\"actor\":\"%s\",\"device\":\"%s\",\"labels\":{\"team\":\"%s\"},"
		         "\"started_at\":%lld,"
		         "\"requested\":\"bwrap\",\"effective\":\"%s\"%s}",
		         i, p->backend, p->verdict, p->cause ? "\"cause\":\"" : "",
		         p->cause ? p->cause : "", p->cause ? "\"," : "", p->session, p->actor,
		         p->device, p->team, (long long)p->at, p->down ? "none" : "bwrap",
		         p->down && !p->unexplained ? ",\"reason\":\"known\"" : "");
		sw_error e = {0};
		if (post(s, text, NULL, &e) != 0)
			fail_msg("%s: %s %s", text, e.where, e.what);
	}
}

static int64_t total_of(sw_store *s, const char *report, const sw_query *q, const char *column)
{
	json_t *j = NULL, *row;
	size_t i;
	int64_t n = 0;
	assert_int_equal(sw_store_report(s, report, q, &j, NULL), 0);
	json_array_foreach(json_object_get(j, "rows"), i, row) n +=
	    json_integer_value(json_object_get(row, column));
	json_decref(j);
	return n;
}

static bool is(const char *a, const char *b)
{
	return !b || (a && strcmp(a, b) == 0);
}

static void compare_all(sw_store *s)
{
	static const char *const f[][2] = {{NULL, NULL},
	                                   {"backend", "bwrap"},
	                                   {"verdict", "runner_failed"},
	                                   {"cause", "daemon-not-running"},
	                                   {"session", "s7"},
	                                   {"actor", "a1"},
	                                   {"device", "d2"},
	                                   {"label", "team=t3"},
	                                   {"level", "none"},
	                                   {"since", "2023-11-20"},
	                                   {"until", "2023-11-18T12:00:00Z"},
	                                   {"session", "nosuch"}};
	for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
		for (size_t k = i; k < sizeof f / sizeof *f; k++) {
			sw_query q = {.limit = 1000};
			const char *v[12] = {0};
			static const char *const keys[] = {"backend", "verdict", "cause", "session",
			                                   "actor",   "device",  "label", "level",
			                                   "since",   "until"};
			size_t use[2] = {i, k};
			bool clash = i != k && f[i][0] && f[k][0] && strcmp(f[i][0], f[k][0]) == 0;
			if (clash)
				continue;
			for (int u = 0; u < 2; u++) {
				if (!f[use[u]][0] || (u && i == k))
					continue;
				assert_int_equal(
				    sw_query_set(&q, f[use[u]][0], f[use[u]][1], 0, NULL), 0);
				for (int n = 0; n < 10; n++)
					if (strcmp(keys[n], f[use[u]][0]) == 0)
						v[n] = f[use[u]][1];
			}
			int64_t all = 0, failed = 0, down = 0, unexplained = 0, with_cause = 0;
			for (int n = 0; n < PLAIN; n++) {
				const struct plain *p = &plain[n];
				char label[32];
				snprintf(label, sizeof label, "team=%s", p->team);
				if (!is(p->backend, v[0]) || !is(p->verdict, v[1]) ||
				    !is(p->cause, v[2]) || !is(p->session, v[3]) ||
				    !is(p->actor, v[4]) || !is(p->device, v[5]) ||
				    !is(label, v[6]) || !is(p->down ? "none" : "bwrap", v[7]) ||
				    (q.since_ns && p->at * 1000000000 < q.since_ns) ||
				    (q.until_ns && p->at * 1000000000 >= q.until_ns))
					continue;
				all++;
				failed += strcmp(p->verdict, "runner_failed") == 0;
				with_cause += p->cause != NULL;
				down += p->down;
				unexplained += p->unexplained;
			}
			assert_int_equal(total_of(s, "verdicts", &q, "invocations"), all);
			assert_int_equal(total_of(s, "backends", &q, "invocations"), all);
			assert_int_equal(total_of(s, "levels", &q, "invocations"), all);
			assert_int_equal(total_of(s, "sessions", &q, "invocations"), all);
			assert_int_equal(total_of(s, "devices", &q, "invocations"), all);
			assert_int_equal(total_of(s, "devices", &q, "runner_failed"), failed);
			assert_int_equal(total_of(s, "failures", &q, "invocations"), failed);
			assert_int_equal(total_of(s, "downgrades", &q, "invocations"), down);
			assert_int_equal(total_of(s, "unexplained", &q, "invocations"),
			                 unexplained);
			assert_int_equal(total_of(s, "causes", &q, "invocations"), with_cause);
			sw_query_free(&q);
		}
	}
}

static void test_reports(void **state)
{
	(void)state;
	sw_store_options o = {.segment_rows = 100};
	sw_store *s = open_rw(path, &o);
	fill_plain(s);
	compare_all(s); /* rolled up and not */
	assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
	compare_all(s); /* all rolled up */
	sw_store_close(s);
	assert_int_equal(verify_path(path, NULL, NULL), SW_VERIFY_INTACT);
}

static int count_ids(void *arg, json_t *o)
{
	char *seen = arg;
	int n = atoi(text_of(o, "id") + 1);
	assert_true(n >= 0 && n < PLAIN);
	assert_int_equal(seen[n], 0); /* no page repeats another's row */
	seen[n] = 1;
	return 0;
}

/* Every listed report can be run, and has columns with the kinds that the table knows. */
static void test_names(void **state)
{
	(void)state;
	static const char *const kinds[] = {"text",  "set", "count",  "time",
	                                    "share", "id",  "command"};
	const char *const *lines, *const *names = sw_report_names(&lines);
	sw_store *s = open_rw(path, NULL);
	fill_plain(s);
	size_t n = 0;
	for (; names[n]; n++) {
		json_t *j = NULL, *c;
		size_t i;
		assert_non_null(lines[n]);
		assert_int_equal(sw_store_report(s, names[n], NULL, &j, NULL), 0);
		assert_string_equal(text_of(j, "report"), names[n]);
		json_array_foreach(json_object_get(j, "columns"), i, c)
		{
			bool known = false;
			for (size_t k = 0; k < 7; k++)
				known |= strcmp(kinds[k], text_of(c, "kind")) == 0;
			assert_true(known);
			const json_t *row = json_array_get(json_object_get(j, "rows"), 0);
			if (row)
				assert_non_null(json_object_get(row, text_of(c, "name")));
		}
		json_decref(j);
	}
	assert_int_equal(n, 15);
	assert_null(lines[n]);
	sw_store_close(s);
}

static void test_paging(void **state)
{
	(void)state;
	sw_store_options o = {.segment_rows = 100};
	sw_store *s = open_rw(path, &o);
	fill_plain(s);
	char seen[PLAIN] = {0}, *next = NULL;
	sw_query q = {.limit = 23};
	int pages = 0, total = 0;
	do {
		free(q.cursor);
		q.cursor = next;
		assert_int_equal(sw_store_invocations(s, &q, count_ids, seen, &next, NULL), 0);
		pages++;
	} while (next);
	for (int i = 0; i < PLAIN; i++)
		total += seen[i];
	assert_int_equal(total, PLAIN);
	assert_int_equal(pages, (PLAIN + 22) / 23);
	sw_query_free(&q);
	/* reports page too: sessions by number, downgrades by text */
	static const char *const reports[] = {"sessions", "causes",   "levels",
	                                      "devices",  "backends", "downgrades"};
	for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
		sw_query all = {.limit = 1000}, one = {.limit = 1};
		int64_t want = total_of(s, reports[i], &all, "invocations"), have = 0;
		for (int p = 0; p < 100; p++) {
			json_t *j = NULL;
			assert_int_equal(sw_store_report(s, reports[i], &one, &j, NULL), 0);
			const json_t *row = json_array_get(json_object_get(j, "rows"), 0);
			have += json_integer_value(json_object_get(row, "invocations"));
			const json_t *n = json_object_get(j, "next");
			free(one.cursor);
			one.cursor = json_is_string(n) ? strdup(json_string_value(n)) : NULL;
			json_decref(j);
			if (!one.cursor)
				break;
		}
		assert_null(one.cursor);
		assert_int_equal(have, want);
		sw_query_free(&one);
	}
	q.cursor = strdup("garbage");
	assert_int_equal(sw_store_invocations(s, &q, count_ids, seen, NULL, NULL), SW_EINVAL);
	sw_query_free(&q);
	sw_store_close(s);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {T(test_reports), T(test_names), T(test_paging)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
