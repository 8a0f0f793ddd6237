/*
 * Memory runs out at each allocation in turn: classifier, explanation and loader give
 * SW_ENOMEM or a right answer, never crash, and leak nothing (the sanitizer build looks).
 */
#include "confine.h"
#include "derive.h"
#include "signatures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *z);

/* Allocation number `fail_at` fails, and with `for_good` all after it. */
static long count, fail_at;
static bool for_good;

static bool fails(void)
{
	count++;
	return fail_at && (count == fail_at || (for_good && count > fail_at));
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m)
{
	return fails() ? NULL : __real_calloc(n, m);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *z)
{
	return fails() ? NULL : __real_strdup(z);
}

static const char OUTPUT[] =
    "make: all\n\033[31mtouch: cannot touch '/etc/x': Read-only file system\033[0m\n"
    "bwrap: setting up uid map: Permission denied\ncurl: (6) Could not resolve host: "
    "a.example\nKilled\n";

/* What a scenario's result says where nothing failed: the first run. */
static struct {
	bool known;
	sw_verdict verdict;
	const char *signature;
	uint64_t line_number;
	size_t denied, observations;
} wanted;

/* 0, or 1: memory that was missing for one line must not make another line the verdict's. */
static int right(const sw_result *r)
{
	const char *signature = r->has_hit && r->hit.sig ? r->hit.sig->id : "";
	if (!wanted.known) {
		wanted.known = true;
		wanted.verdict = r->verdict;
		wanted.signature = signature; /* of the built-in packs: static */
		wanted.line_number = r->hit.line_number;
		wanted.denied = r->denied_lines;
		wanted.observations = r->n_observations;
	}
	return r->n_faults || r->verdict != wanted.verdict ||
	       strcmp(signature, wanted.signature) != 0 ||
	       r->hit.line_number != wanted.line_number || r->denied_lines != wanted.denied ||
	       r->n_observations != wanted.observations;
}

static int classify(void)
{
	sw_error err;
	sw_pack *pack = NULL;
	sw_result *r = NULL;
	sw_facts facts = {.observe_ok = true};
	int rc = sw_pack_new(&pack, sw_builtin_packs(), "bwrap", &err);
	if (!rc)
		rc = sw_classify(pack, &facts, sw_exit_code(1), SW_STARTED_UNKNOWN, SW_SOURCE_NONE,
		                 OUTPUT, sizeof(OUTPUT) - 1, &r, &err);
	if (!rc)
		rc = right(r);
	sw_result_free(r);
	sw_pack_free(pack);
	return rc;
}

static int stream_long(void)
{
	sw_error err;
	sw_pack *pack = NULL;
	sw_scan *scan = NULL;
	sw_result *r = NULL;
	static char chunk[50000];
	memset(chunk, 'x', sizeof(chunk));
	int rc = sw_pack_new(&pack, sw_builtin_packs(), "docker", &err);
	if (!rc)
		rc = sw_scan_begin(&scan, pack, NULL, &err);
	for (int i = 0; i < 4 && !rc; i++)
		rc = sw_scan_feed(scan, chunk, sizeof(chunk));
	if (!rc)
		rc = sw_scan_feed(scan, OUTPUT, sizeof(OUTPUT) - 1);
	if (!rc)
		rc = sw_scan_finish(scan, sw_exit_code(1), SW_STARTED_UNKNOWN, SW_SOURCE_NONE, &r,
		                    &err);
	if (!rc)
		rc = right(r);
	sw_result_free(r);
	sw_scan_free(scan);
	sw_pack_free(pack);
	return rc;
}

static int explain(void)
{
	sw_error err;
	sw_pack *pack = NULL;
	sw_explanation *e = NULL;
	int rc = sw_pack_new(&pack, sw_builtin_packs(), "seatbelt", &err);
	if (!rc)
		rc = sw_explain(pack, NULL, sw_exit_code(1), SW_STARTED_UNKNOWN, SW_SOURCE_NONE,
		                OUTPUT, sizeof(OUTPUT) - 1, &e, &err);
	if (!rc)
		sw_explanation_free(e);
	sw_pack_free(pack);
	return rc;
}

static int load(void)
{
	static const char text[] =
	    "schema: 1\nbackend: demo\ntitle: Demo\nrunner: {names: [aaa, bbb], prefixes: ['demo: "
	    "'], "
	    "prefix_regexes: ['d\\d: ']}\n"
	    "fatal: [{id: demo.a, literal: ['demo: x', 'demo: y'], cause: unknown, only_exit: [1, "
	    "2], samples: ['demo: x'], near_misses: ['x']}]\n"
	    "denial: [{id: demo.d, literal: 'no no', regex: '(?:no )+no', cause: c, decides: "
	    "{with: [read_only]}, "
	    "samples: [{line: 'no no', path: /x}]}]\n"
	    "adjust: [{id: common.x, decides: no}]\n";
	static const char causes[] = "- {slug: a, title: b, why: c, check: [d, e], remedies: "
	                             "[{for: f, do: g, risk: h, tested: true}], verify: i}\n";
	sw_error err;
	sw_loaded *l = NULL;
	int rc = sw_loaded_new(&l, &err);
	if (!rc)
		rc = sw_load_text(l, "demo.yaml", text, sizeof(text) - 1, &err);
	if (!rc)
		rc = sw_load_text(l, "causes.yaml", causes, sizeof(causes) - 1, &err);
	sw_loaded_free(l);
	return rc;
}

static int json(void)
{
	sw_error err;
	sw_buf b;
	sw_buf_init(&b, 1000);
	int rc = sw_buf_addf(&b, "%s-%d", "some text that grows", 42);
	char *z = sw_buf_take(&b);
	free(z);
	z = sw_escape_tty("\033[1mx", 5);
	free(z);
	z = sw_base64("abc", 3);
	free(z);
	(void)err;
	return rc;
}

static sw_confine_policy policy(const sw_confine_host *host)
{
	static const char *const readable[] = {"/opt/a", "/opt/b"}, *const writable[] = {
	                                                                "/ws/more"};
	return (sw_confine_policy){.mode = SW_MODE_WORKSPACE_WRITE,
	                           .workspace = "/ws/p",
	                           .readable = readable,
	                           .n_readable = 2,
	                           .writable = writable,
	                           .n_writable = 1,
	                           .image = "image",
	                           .self = "/usr/bin/sandwitness",
	                           .host = host};
}

static const char *backend;
static size_t args, roots;

static int confine(void)
{
	static char *masks[] = {"/etc/shadow", "/etc/ssl/private/", NULL};
	static const sw_confine_host host = {
	    .masks = masks, .n_masks = 2, .home = "/home/u", .uid = 1000, .gid = 100};
	static const sw_str make[] = {{"make", 4}, {"test", 4}};
	sw_error err;
	sw_confined *c = NULL;
	sw_confine_policy p = policy(&host);
	int rc = sw_confine(&c, backend, &p, make, 2, &err);
	if (!rc && !args) {
		args = c->argc;
		roots = c->n_writable_roots;
	}
	if (!rc && (c->argc != args || c->n_writable_roots != roots || c->argv[c->argc]))
		rc = 1;
	sw_confined_free(c);
	return rc;
}

static uint32_t given;

/* What the argv promises must not grow because something of it could not be kept. */
static int derive(void)
{
	static char *argv[] = {"bwrap",     "--unshare-all", "--ro-bind", "/usr",   "/usr",
	                       "--symlink", "usr/bin",       "/bin",      "--dev",  "/dev",
	                       "--bind",    "/ws/p",         "/ws/p",     "--bind", "/home/u",
	                       "/mnt",      "--chdir",       "/ws/p",     "--",     "make"};
	sw_derive_options o = {.backend = "bwrap", .cwd = "/ws/p", .home = "/home/u", .uid = 1000};
	sw_derived d;
	sw_derive(&d, argv, sizeof argv / sizeof *argv, &o);
	if (!given)
		given = d.guarantees | 1u << 31;
	int rc = d.guarantees & ~given ? 1 : 0;
	sw_derived_clear(&d);
	return rc;
}

static void each_allocation_fails(int (*scenario)(void))
{
	fail_at = 0;
	count = 0;
	wanted.known = false;
	assert_int_equal(scenario(), 0);
	long total = count;
	assert_true(total > 0);
	for (int good = 0; good < 2; good++) {
		for_good = good;
		for (long k = 1; k <= total; k++) {
			count = 0;
			fail_at = k;
			int rc = scenario();
			fail_at = 0;
			/* A failure that is survived may leave a right answer; anything else is
			 * ENOMEM. */
			if (rc != 0 && rc != SW_ENOMEM)
				fail_msg("allocation %ld of %ld (%s): %d", k, total,
				         good ? "for good" : "once", rc);
		}
	}
}

static void classify_survives(void **state)
{
	each_allocation_fails(classify);
}

static void streams_survive(void **state)
{
	each_allocation_fails(stream_long);
}

static void explain_survives(void **state)
{
	each_allocation_fails(explain);
}

static void loader_survives(void **state)
{
	each_allocation_fails(load);
}

static void confine_survives(void **state)
{
	static const char *const backends[] = {"bwrap", "landlock", "podman", "docker", "seatbelt"};
	for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
		backend = backends[i];
		args = 0;
		each_allocation_fails(confine);
	}
}

static void derive_survives(void **state)
{
	each_allocation_fails(derive);
}

static void base_survives(void **state)
{
	each_allocation_fails(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(classify_survives), cmocka_unit_test(streams_survive),
	    cmocka_unit_test(explain_survives),  cmocka_unit_test(loader_survives),
	    cmocka_unit_test(confine_survives),  cmocka_unit_test(derive_survives),
	    cmocka_unit_test(base_survives),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
