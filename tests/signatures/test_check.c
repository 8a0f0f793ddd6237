/* signatures check: every refusal of docs/signatures.md, and the built-in packs are clean. */
#include "signatures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct found {
	const char *want;
	bool seen;
	char all[2000];
} found;

static void problem(void *payload, const sw_error *e)
{
	found *f = payload;
	size_t n = strlen(f->all);
	snprintf(f->all + n, sizeof(f->all) - n, "%s | ", e->what);
	if (f->want && strstr(e->what, f->want))
		f->seen = true;
}

static size_t check(const char *text, found *f)
{
	static const sw_cause causes[] = {{.slug = "unknown", .title = "t", .why = "w"}};
	sw_loaded *l;
	sw_error err = {0};
	assert_int_equal(sw_loaded_new(&l, &err), 0);
	if (sw_load_text(l, "demo.yaml", text, strlen(text), &err)) {
		/* What the loader refuses already must name the line. */
		assert_non_null(strstr(err.where, "demo.yaml:"));
		problem(f, &err);
		sw_loaded_free(l);
		return 1;
	}
	const sw_pack_file *files;
	size_t n = sw_loaded_files(l, &files);
	sw_check_report report = {.problem = problem, .payload = f};
	assert_int_equal(sw_check_packs(files, n, NULL, 0, causes, 1, NULL, &report, &err), 0);
	sw_loaded_free(l);
	return report.problems;
}

#define HEAD "schema: 1\nbackend: demo\nrunner: {prefixes: ['demo: ']}\n"
#define FATAL(rest) HEAD "fatal: [{id: demo.x, cause: unknown, " rest "}]\n"
#define DENIAL(rest) HEAD "denial: [{id: demo.x, cause: unknown, operation: write, " rest "}]\n"
#define LINES "samples: ['demo: broken thing'], near_misses: ['fine']"

static void refusals(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {FATAL("literal: 'demo: broken', near_misses: ['fine']"), "no sample"},
	    {FATAL("literal: 'demo: broken', samples: ['demo: broken thing']"), "no near miss"},
	    {FATAL("literal: 'demo: broken', samples: ['demo: whole'], near_misses: ['fine']"),
	     "does not match its sample"},
	    {FATAL("literal: 'demo: broken', samples: ['demo: broken'], near_misses: ['demo: "
	           "broken too']"),
	     "matches its near miss"},
	    {FATAL("literal: 'demo: broken', regex: '(?:demo: broken)?', " LINES),
	     "match the empty string"},
	    {FATAL("literal: 'demo: broken', regex: '(d)emo: broken (?:thing|\\1)', " LINES),
	     "back-reference"},
	    {FATAL("literal: 'demo: broken', regex: '(demo: broken thing|(?1))', " LINES),
	     "recursion"},
	    {FATAL("literal: 'demo: broken', regex: '(*LIMIT_MATCH=99999)demo: broken', " LINES),
	     "a verb"},
	    {FATAL("literal: 'demo: broken', regex: 'demo: broken\\C+', " LINES),
	     "does not compile"},
	    {FATAL("literal: 'demo: broken', regex: 'demo: (', " LINES), "does not compile"},
	    {DENIAL("literal: 'read-only', regex: '.*: (?<path>/\\S+) read-only', samples: [{line: "
	            "'a: /x read-only', path: /x}], near_misses: ['fine']"),
	     "a catch-all before a capture"},
	    {DENIAL("literal: 'read-only', regex: '(?<path>/\\S+) read-only', samples: ['a: /x "
	            "read-only'], near_misses: ['fine']"),
	     "no sample shows what it extracts"},
	    {DENIAL("literal: 'read-only', regex: '(?<path>/\\S+) read-only', samples: [{line: 'a: "
	            "/x read-only', path: /y}], near_misses: ['fine']"),
	     "extracts \"/x\""},
	    {HEAD "fatal: [{id: demo.x, cause: nosuch, literal: 'demo: broken', " LINES "}]\n",
	     "unknown cause nosuch"},
	    {HEAD "fatal: [{id: other.x, cause: unknown, literal: 'demo: broken', " LINES "}]\n",
	     "does not begin with demo."},
	    {HEAD
	     "fatal: [{id: demo.all, cause: unknown, literal: 'demo: ', samples: ['demo: any'], "
	     "near_misses: ['fine']}, {id: demo.x, cause: unknown, literal: 'demo: broken', " LINES
	     "}]\n",
	     "belongs to demo.all"},
	    {FATAL("literal: 'demo: broken', regex: 'demo: broken(?C1)', " LINES), "a callout"},
	    {FATAL("literal: 'demo: broken', regex: 'demo: broken(*SKIP)', " LINES), "a verb"},
	    {FATAL("literal: 'demo: broken', regex: '[d', " LINES), "does not compile at byte 0"},
	    {"schema: 1\nbackend: demo\nrunner: {prefix_regexes: ['[d']}\n", "does not compile"},
	    {"schema: 1\nbackend: demo\nrunner: {prefix_regexes: ['d*']}\n",
	     "match the empty string"},
	    {"schema: 1\nbackend: demo\nrunner: {names: [zz]}\n", "less than 3 bytes"},
	    {HEAD "extends: [nope]\n", "no pack for backend nope"},
	    {HEAD "extends: [demo]\n", "the pack itself"},
	    {HEAD "adjust: [{id: 'demo.*'}]\nfatal: [{id: demo.x, cause: unknown, literal: 'demo: "
	          "broken', " LINES "}]\n",
	     "nothing is changed"},
	    {HEAD "adjust: [{id: 'common.nosuch.*', decides: no}]\n",
	     "no signature is called common.nosuch.*"},
	    {HEAD
	     "informational: [{line: 'demo: hi', samples: ['demo: ho'], near_misses: ['fine']}]\n",
	     "does not match its sample"},
	    {HEAD "veto: [{id: demo.v, literal: 'joke', samples: ['a joke'], near_misses: ['no "
	          "joke']}]\n",
	     "matches its near miss"},
	    {DENIAL("literal: 'ing ', samples: ['running it'], near_misses: ['fine']"),
	     "too common"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		found f = {.want = rows[i].want};
		size_t n = check(rows[i].text, &f);
		if (!n || !f.seen)
			fail_msg("row %zu: \"%s\" not among: %s", i, rows[i].want, f.all);
	}
}

static void a_clean_pack(void **state)
{
	found f = {0};
	size_t n = check(FATAL("literal: 'demo: broken', " LINES), &f);
	if (n)
		fail_msg("%s", f.all);
}

static void built_in_packs_are_clean(void **state)
{
	const sw_pack_file *files;
	const sw_cause *causes;
	size_t n = sw_builtin_files(&files), n_causes = sw_builtin_causes(&causes);
	found f = {0};
	sw_error err;
	sw_check_report report = {.problem = problem, .payload = &f};
	assert_int_equal(sw_check_packs(files, n, NULL, 0, causes, n_causes, NULL, &report, &err),
	                 0);
	assert_true(report.signatures > 500);
	if (report.problems)
		fail_msg("%zu problems: %s", report.problems, f.all);
}

static void every_regex_compiles(void **state)
{
	const sw_pack_set *set = sw_builtin_packs();
	sw_error err;
	for (size_t i = 0; i < set->n_defs; i++) {
		sw_pack *pack;
		assert_int_equal(sw_pack_new(&pack, set, set->defs[i]->backend, &err), 0);
		if (sw_pack_compile_all(pack, &err))
			fail_msg("%s: %s", err.where, err.what);
		sw_pack_free(pack);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(refusals),
	    cmocka_unit_test(a_clean_pack),
	    cmocka_unit_test(built_in_packs_are_clean),
	    cmocka_unit_test(every_regex_compiles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
