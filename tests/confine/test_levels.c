/* Levels as sets, their comparison, their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "levels.h"

/* A small generator: the same numbers everywhere. */
static uint32_t seed = 20261;
static uint32_t random_number(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed;
}

static const uint32_t bwrap_bits = SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(NETWORK) | SW_G(PID) |
                                   SW_G(IPC) | SW_G(ENV) | SW_G(TREE_KILL);

static uint32_t parse(const char *z)
{
	uint32_t bits = 0;
	sw_error e = {0};
	if (sw_level_parse(sw_builtin_levels(), sw_str_of(z), &bits, NULL, &e))
		fail_msg("%s: %s", z, e.what);
	return bits;
}

static void known_levels(void **state)
{
	(void)state;
	assert_int_equal(parse("none"), 0);
	assert_int_equal(parse("process_group"), SW_G(TREE_KILL));
	assert_int_equal(parse("bwrap"), bwrap_bits);
	assert_int_equal(parse("job_object"), SW_G(RESOURCES) | SW_G(TREE_KILL));
	/* UDP cannot be restricted at any ABI */
	assert_int_equal(parse("landlock") & SW_G(NETWORK), 0);
	assert_int_equal(parse("landrun") & SW_G(NETWORK), 0);
	/* the partial one holds less, and nothing more */
	assert_int_equal(parse("bwrap_partial") & ~bwrap_bits, 0);
	assert_int_not_equal(parse("bwrap_partial"), bwrap_bits);
}

static void every_backend_has_a_level(void **state)
{
	(void)state;
#define X_NAME(s, n) n,
	static const char *const backends[] = {SW_BACKEND_LIST(X_NAME)};
#undef X_NAME
	for (size_t i = 0; i < sizeof(backends) / sizeof(*backends); i++)
		assert_non_null(sw_level_find(sw_builtin_levels(), sw_str_of(backends[i])));
}

static void aliases(void **state)
{
	(void)state;
	const char *const same[][2] = {{"job-object", "job_object"}, {"JOB_OBJECT", "job_object"},
	                               {"bubblewrap", "bwrap"},      {"runsc", "gvisor"},
	                               {"sandbox-exec", "seatbelt"}, {"unconfined", "none"}};
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		const sw_level_def *l = sw_level_find(sw_builtin_levels(), sw_str_of(same[i][0]));
		assert_non_null(l);
		assert_string_equal(l->id, same[i][1]);
	}
	assert_null(sw_level_find(sw_builtin_levels(), sw_str_of("bwra")));
	assert_null(sw_level_find(sw_builtin_levels(), sw_str_of("")));
}

static void combinations(void **state)
{
	(void)state;
	assert_int_equal(parse("bwrap,syscalls"), bwrap_bits | SW_G(SYSCALLS));
	assert_int_equal(parse("bwrap, -network"), bwrap_bits & ~SW_G(NETWORK));
	assert_int_equal(parse("fs_write,network"), SW_G(FS_WRITE) | SW_G(NETWORK));
	assert_int_equal(parse("fs-write"), SW_G(FS_WRITE));
	const sw_level_def *def = NULL;
	uint32_t bits;
	assert_int_equal(sw_level_parse(sw_builtin_levels(), SW_STR("bwrap"), &bits, &def, NULL),
	                 0);
	assert_string_equal(def->id, "bwrap");
	assert_int_equal(
	    sw_level_parse(sw_builtin_levels(), SW_STR("bwrap,pid"), &bits, &def, NULL), 0);
	assert_null(def);
}

static void refused_words(void **state)
{
	(void)state;
	const char *const bad[] = {
	    "", ",", "bwrap,", "nonsense", "bwrap,nonsense", "-", "bwrap network"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		uint32_t bits = 77;
		sw_error e = {0};
		assert_int_equal(
		    sw_level_parse(sw_builtin_levels(), sw_str_of(bad[i]), &bits, NULL, &e),
		    SW_EINVAL);
		assert_int_equal(bits, 77);
		assert_true(e.what[0] && e.fix[0]);
	}
	char many[200] = "pid";
	for (int i = 0; i < 40; i++)
		strcat(many, ",pid");
	uint32_t bits;
	assert_int_equal(sw_level_parse(sw_builtin_levels(), sw_str_of(many), &bits, NULL, NULL),
	                 SW_ETOOBIG);
}

static void names(void **state)
{
	(void)state;
	const sw_level_set *set = sw_builtin_levels();
	assert_string_equal(sw_level_name(set, SW_STR("bwrap"), bwrap_bits), "bwrap");
	assert_string_equal(sw_level_name(set, SW_STR("bwrap"), SW_GUARANTEES_ALL), "bwrap");
	assert_string_equal(sw_level_name(set, SW_STR("bwrap"), parse("bwrap_partial")),
	                    "bwrap_partial");
	assert_string_equal(sw_level_name(set, SW_STR("bwrap"), SW_G(FS_WRITE)), "partial");
	assert_string_equal(sw_level_name(set, SW_STR("bwrap"), SW_G(TREE_KILL)), "process_group");
	assert_string_equal(sw_level_name(set, SW_STR("bwrap"), SW_G(ENV)), "none");
	assert_string_equal(sw_level_name(set, SW_STR("bwrap"), 0), "none");
	assert_string_equal(sw_level_name(set, SW_STR("job-object"), parse("job_object")),
	                    "job_object");
	assert_string_equal(sw_level_name(set, (sw_str){NULL, 0}, bwrap_bits), "partial");
	/* a name never claims what the set lacks */
	for (size_t f = 0; f < set->n; f++)
		for (uint32_t bits = 0; bits <= SW_GUARANTEES_ALL; bits++) {
			const char *name = sw_level_name(set, sw_str_of(set->levels[f].id), bits);
			const sw_level_def *l = sw_level_find(set, sw_str_of(name));
			assert_non_null(l);
			assert_int_equal(l->guarantees & ~bits, 0);
		}
}

static void text(void **state)
{
	(void)state;
	char out[SW_GUARANTEES_TEXT_MAX];
	assert_int_equal(sw_guarantees_text(0, out), 0);
	assert_string_equal(out, "");
	sw_guarantees_text(SW_G(NETWORK) | SW_G(FS_WRITE), out);
	assert_string_equal(out, "fs_write, network");
	size_t n = sw_guarantees_text(SW_GUARANTEES_ALL, out);
	assert_int_equal(n, strlen(out));
	assert_non_null(strstr(out, "tree_kill"));
}

/* ---- comparing ---- */

static sw_level_outcome compare(sw_level_input in)
{
	return sw_level_compare(&in);
}

static void nothing_lost(void **state)
{
	(void)state;
	sw_level_outcome o = compare((sw_level_input){.has_requested = true,
	                                              .requested = bwrap_bits,
	                                              .effective = bwrap_bits,
	                                              .basis = SW_BASIS_BUILT});
	assert_true(o.contained && o.isolated && o.known);
	assert_false(o.downgrade || o.violation || o.unexplained || o.exempt);
	assert_int_equal(o.enforcement, SW_ENFORCEMENT_FULL);
}

static void a_downgrade(void **state)
{
	(void)state;
	sw_level_input in = {.has_requested = true,
	                     .requested = bwrap_bits,
	                     .effective = bwrap_bits & ~SW_G(NETWORK),
	                     .basis = SW_BASIS_DERIVED};
	sw_level_outcome o = compare(in);
	assert_int_equal(o.lost, SW_G(NETWORK));
	assert_true(o.downgrade && o.unexplained);
	assert_false(o.contained);
	assert_int_equal(o.enforcement, SW_ENFORCEMENT_PARTIAL);
	in.reason = SW_REASON_EXPLAINED;
	o = compare(in);
	assert_true(o.downgrade && !o.unexplained && !o.exempt);
	in.reason = SW_REASON_EXEMPT;
	o = compare(in);
	assert_true(o.downgrade && o.exempt && !o.unexplained && !o.contained);
}

static void a_grant_is_no_loss(void **state)
{
	(void)state;
	sw_level_outcome o = compare((sw_level_input){.has_requested = true,
	                                              .requested = bwrap_bits,
	                                              .has_minimum = true,
	                                              .minimum = SW_G(NETWORK) | SW_G(FS_WRITE),
	                                              .granted = SW_G(NETWORK),
	                                              .effective = bwrap_bits & ~SW_G(NETWORK),
	                                              .basis = SW_BASIS_BUILT});
	assert_false(o.downgrade || o.violation);
	assert_int_equal(o.requested & SW_G(NETWORK), 0);
	assert_true(o.contained);
}

static void unknown_is_never_contained(void **state)
{
	(void)state;
	sw_level_outcome o = compare((sw_level_input){.has_requested = true,
	                                              .requested = SW_G(FS_WRITE),
	                                              .has_minimum = true,
	                                              .minimum = SW_G(PID),
	                                              .effective = SW_GUARANTEES_ALL,
	                                              .basis = SW_BASIS_UNKNOWN});
	assert_false(o.known || o.contained || o.isolated);
	assert_int_equal(o.effective, 0);
	assert_int_equal(o.lost, SW_G(FS_WRITE));
	assert_int_equal(o.violated, SW_G(PID));
	assert_int_equal(o.enforcement, SW_ENFORCEMENT_UNKNOWN);
	/* nothing asked for is no reason either */
	o = compare((sw_level_input){.effective = SW_GUARANTEES_ALL, .basis = SW_BASIS_UNKNOWN});
	assert_false(o.contained || o.downgrade);
}

static void a_minimum_no_reason_cures(void **state)
{
	(void)state;
	sw_level_outcome o = compare((sw_level_input){.has_minimum = true,
	                                              .minimum = bwrap_bits,
	                                              .effective = SW_G(FS_WRITE),
	                                              .basis = SW_BASIS_DECLARED,
	                                              .reason = SW_REASON_EXEMPT});
	assert_true(o.violation);
	assert_false(o.contained || o.downgrade);
}

static void a_deadline_alone_isolates_nothing(void **state)
{
	(void)state;
	/* macOS without sandbox-exec: the process group is all there is */
	sw_level_outcome o = compare(
	    (sw_level_input){.effective = parse("process_group"), .basis = SW_BASIS_DECLARED});
	assert_false(o.isolated || o.contained);
	assert_int_equal(o.enforcement, SW_ENFORCEMENT_NONE);
}

static void what_did_not_run_was_not_contained(void **state)
{
	(void)state;
	sw_level_outcome o = compare(
	    (sw_level_input){.effective = bwrap_bits, .basis = SW_BASIS_BUILT, .not_run = true});
	assert_true(o.isolated);
	assert_false(o.contained);
}

static void notices_only_lower(void **state)
{
	(void)state;
	for (int i = 0; i < 20000; i++) {
		sw_level_input in = {.has_requested = random_number() & 1,
		                     .requested = random_number() & SW_GUARANTEES_ALL,
		                     .has_minimum = random_number() & 1,
		                     .minimum = random_number() & SW_GUARANTEES_ALL,
		                     .granted = random_number() & 1 ? SW_G(NETWORK) : 0,
		                     .effective = random_number() & SW_GUARANTEES_ALL,
		                     .basis = (sw_basis)(random_number() % SW_BASIS_COUNT),
		                     .reason =
		                         (sw_reason_class)(random_number() % SW_REASON_COUNT)};
		sw_level_outcome before = sw_level_compare(&in);
		in.lowered = random_number() & SW_GUARANTEES_ALL;
		sw_level_outcome after = sw_level_compare(&in);
		assert_int_equal(after.effective & ~before.effective, 0);
		assert_int_equal(before.lost & ~after.lost, 0);
		assert_false(after.contained && !before.contained);
		/* laws that hold for every outcome */
		assert_int_equal(after.lost, after.requested & ~after.effective);
		assert_int_equal(after.downgrade, after.lost != 0);
		assert_int_equal(after.violation, after.violated != 0);
		assert_false(after.contained &&
		             (after.downgrade || after.violation || !after.known));
		assert_false(after.unexplained && after.exempt);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(known_levels),
	    cmocka_unit_test(every_backend_has_a_level),
	    cmocka_unit_test(aliases),
	    cmocka_unit_test(combinations),
	    cmocka_unit_test(refused_words),
	    cmocka_unit_test(names),
	    cmocka_unit_test(text),
	    cmocka_unit_test(nothing_lost),
	    cmocka_unit_test(a_downgrade),
	    cmocka_unit_test(a_grant_is_no_loss),
	    cmocka_unit_test(unknown_is_never_contained),
	    cmocka_unit_test(a_minimum_no_reason_cures),
	    cmocka_unit_test(a_deadline_alone_isolates_nothing),
	    cmocka_unit_test(what_did_not_run_was_not_contained),
	    cmocka_unit_test(notices_only_lower),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
