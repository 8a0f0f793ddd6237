/* One test for each rule of docs/verdict.md, named by its number and what it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "packs.h"

#define CASE(...) ((test_input){.backend = "box", .exit = 1, __VA_ARGS__})
#define UIDMAP "box: uid map: Permission denied\n"
#define EROFS_X "touch: cannot touch '/etc/x': Read-only file system\n"

static void check(test_input in, sw_verdict verdict, const char *sig, int rule)
{
	sw_result *r = test_classify(in);
	assert_string_equal(sw_verdict_name(r->verdict), sw_verdict_name(verdict));
	assert_string_equal(test_sig(r), sig);
	assert_int_equal(r->rule, rule);
	sw_result_free(r);
}

#define OK(in, rule) check(in, SW_VERDICT_OK, "-", rule)
#define FAILED(in, sig, rule) check(in, SW_VERDICT_RUNNER_FAILED, sig, rule)
#define DENIED(in, sig, rule) check(in, SW_VERDICT_SANDBOX_DENIED, sig, rule)
#define TEST(name) static void name(void **state)
#define UNUSED (void)state

TEST(rule_1_unconfined_backend_is_ok)
{
	UNUSED;
	OK(CASE(.backend = "free", .text = UIDMAP EROFS_X), 1);
	OK(CASE(.backend = "free", .text = UIDMAP, .exit = 159, .started = SW_STARTED_NO), 1);
}

TEST(rule_1_danger_full_access_is_ok)
{
	UNUSED;
	OK(CASE(.text = UIDMAP, .mode = SW_MODE_DANGER_FULL_ACCESS), 1);
	OK(CASE(.text = "", .exit = 159, .mode = SW_MODE_DANGER_FULL_ACCESS), 1);
}

TEST(rule_2_exit_0_is_ok_whatever_is_printed)
{
	UNUSED;
	OK(CASE(.text = UIDMAP, .exit = 0), 2);
	OK(CASE(.text = EROFS_X, .exit = 0), 2);
	OK(CASE(.text = UIDMAP, .exit = 0, .started = SW_STARTED_NO), 2);
	OK(CASE(.text = UIDMAP, .exit = 0, .started = SW_STARTED_YES), 2);
}

TEST(rule_3_not_started_is_runner_failed_without_any_output)
{
	UNUSED;
	sw_result *r = test_classify(CASE(.text = "", .started = SW_STARTED_NO));
	assert_int_equal(r->verdict, SW_VERDICT_RUNNER_FAILED);
	assert_int_equal(r->evidence, SW_EVIDENCE_ATTESTED);
	assert_int_equal(r->evidence_source, SW_SOURCE_CALLER);
	assert_string_equal(r->cause, "unknown");
	assert_int_equal(r->stage, SW_STAGE_NONE);
	assert_false(r->has_hit);
	sw_result_free(r);
}

TEST(rule_3_not_started_with_unknown_wording)
{
	UNUSED;
	FAILED(CASE(.text = "what is this\n", .started = SW_STARTED_NO), "-", 3);
	FAILED(CASE(.text = EROFS_X, .started = SW_STARTED_NO), "-", 3);
}

TEST(rule_3_line_cause_and_stage_as_rule_4_gives_them)
{
	UNUSED;
	sw_result *r =
	    test_classify(CASE(.text = "x\nbox: execvp /bin/no: none\n", .started = SW_STARTED_NO));
	assert_int_equal(r->verdict, SW_VERDICT_RUNNER_FAILED);
	assert_string_equal(test_sig(r), "box.exec");
	assert_string_equal(r->cause, "exec");
	assert_int_equal(r->stage, SW_STAGE_EXEC);
	assert_int_equal(r->hit.line_number, 2);
	sw_result_free(r);
	FAILED(CASE(.text = "", .exit = 217, .started = SW_STARTED_NO), "box.exit-only", 3);
}

TEST(rule_3_exception_a_line_that_is_both_is_denied)
{
	UNUSED;
	DENIED(CASE(.text = "box: apply: Operation not permitted\n", .started = SW_STARTED_NO),
	       "box.apply-denied", 3);
}

TEST(rule_3_the_line_that_is_both_is_the_one_reported)
{
	UNUSED;
	sw_result *r = test_classify(
	    CASE(.text =
	             "note: apply: Operation not permitted\nbox: apply: Operation not permitted\n",
	         .started = SW_STARTED_NO));
	assert_int_equal(r->verdict, SW_VERDICT_SANDBOX_DENIED);
	assert_int_equal(r->hit.line_number, 2);
	sw_result_free(r);
}

TEST(rule_3_another_fatal_line_outweighs_the_exception)
{
	UNUSED;
	FAILED(
	    CASE(.text = "box: apply: Operation not permitted\n" UIDMAP, .started = SW_STARTED_NO),
	    "box.userns", 3);
}

TEST(rule_3_started_leaves_only_lost_to_the_runner)
{
	UNUSED;
	OK(CASE(.text = UIDMAP, .started = SW_STARTED_YES), 6);
	FAILED(CASE(.text = "box: connection lost\n", .started = SW_STARTED_YES), "box.lost", 4);
	OK(CASE(.text = "", .exit = 217, .started = SW_STARTED_YES), 6);
}

TEST(rule_3_started_no_other_line_is_the_runners)
{
	UNUSED;
	/* A prefixed line is the command's own then, so its denial counts. */
	DENIED(CASE(.text = "boxhelper: x: Read-only file system\n", .started = SW_STARTED_YES),
	       "common.write.erofs-bare", 5);
	OK(CASE(.text = "boxhelper: x: Read-only file system\n"), 6);
}

TEST(rule_4_a_fatal_line_is_runner_failed)
{
	UNUSED;
	sw_result *r = test_classify(CASE(.text = UIDMAP));
	assert_int_equal(r->verdict, SW_VERDICT_RUNNER_FAILED);
	assert_int_equal(r->rule, 4);
	assert_int_equal(r->stage, SW_STAGE_SETUP);
	assert_string_equal(r->cause, "userns");
	assert_int_equal(r->evidence, SW_EVIDENCE_TEXT);
	assert_int_equal(r->confidence, SW_CONFIDENCE_CERTAIN);
	assert_int_equal(r->hit.line.len, strlen(UIDMAP) - 1);
	sw_result_free(r);
}

TEST(rule_4_before_rule_5)
{
	UNUSED;
	FAILED(CASE(.text = EROFS_X UIDMAP), "box.userns", 4);
}

TEST(rule_4_only_at_column_0)
{
	UNUSED;
	OK(CASE(.text = " box: uid map\n"), 6);
	OK(CASE(.text = "test log: box: uid map\n"), 6);
}

TEST(rule_4_informational_lines_do_not_count)
{
	UNUSED;
	OK(CASE(.text = "box: entering the box\n"), 6);
	OK(CASE(.text = "BOX: ENTERING THE BOX\n"), 6);
	FAILED(CASE(.text = "box: entering the box!\n"), "box.unknown", 4);
	OK(CASE(.text = "box: pid 12\n"), 6);
	FAILED(CASE(.text = "box: pid 12 gone\n"), "box.unknown", 4);
}

TEST(rule_4_exit_gates)
{
	UNUSED;
	FAILED(CASE(.text = "box: uid map\n", .exit = 9), "box.userns", 4);
	FAILED(CASE(.text = "box: uid map\n", .exit = 2), "box.unknown", 4);
	FAILED(CASE(.text = "box: odd end\n", .exit = 1), "box.not125", 4);
	FAILED(CASE(.text = "box: odd end\n", .exit = 125), "box.unknown", 4);
	OK(CASE(.text = "bash: line 1: box: command not found\n", .exit = 1), 6);
	FAILED(CASE(.text = "bash: line 1: box: command not found\n", .exit = 127),
	       "common.missing", 4);
}

TEST(rule_4_a_line_that_a_denial_matches_too_is_none)
{
	UNUSED;
	DENIED(CASE(.text = "box: apply: Operation not permitted\n"), "box.apply-denied", 5);
	FAILED(CASE(.text = "box: apply: Invalid argument\n"), "box.apply", 4);
}

TEST(rule_4_words_of_a_command_denial_on_a_runner_line_do_not_make_it_one)
{
	UNUSED;
	FAILED(CASE(.text = "box: uid map: Read-only file system\n"), "box.userns", 4);
}

TEST(rule_4_exit_only)
{
	UNUSED;
	sw_result *r = test_classify(CASE(.text = "anything\n", .exit = 217));
	assert_int_equal(r->verdict, SW_VERDICT_RUNNER_FAILED);
	assert_int_equal(r->evidence, SW_EVIDENCE_EXIT_CODE);
	assert_string_equal(test_sig(r), "box.exit-only");
	assert_int_equal(r->hit.line.len, 0);
	sw_result_free(r);
	/* A line says more than a code. */
	FAILED(CASE(.text = "box: boom\n", .exit = 217), "box.unknown", 4);
}

TEST(rule_4_the_first_line_that_is_no_summary_is_reported)
{
	UNUSED;
	FAILED(CASE(.text = "box: child died\nbox: uid map\n"), "box.userns", 4);
	FAILED(CASE(.text = "box: child died\n"), "box.summary", 4);
	sw_result *r = test_classify(CASE(.text = "box: first\nbox: uid map\n"));
	assert_string_equal(test_sig(r), "box.unknown");
	assert_int_equal(r->hit.line_number, 1);
	sw_result_free(r);
}

TEST(rule_4_a_runner_lost_by_proof)
{
	UNUSED;
	sw_facts facts = {.runner_lost = true};
	sw_result *r = test_classify(CASE(.text = "half of the outp", .exit = 137,
	                                  .started = SW_STARTED_YES, .facts = &facts));
	assert_int_equal(r->verdict, SW_VERDICT_RUNNER_FAILED);
	assert_int_equal(r->stage, SW_STAGE_LOST);
	assert_int_equal(r->evidence, SW_EVIDENCE_ATTESTED);
	sw_result_free(r);
}

TEST(rule_5_a_deciding_denial)
{
	UNUSED;
	sw_result *r = test_classify(CASE(.text = "compiling\n" EROFS_X));
	assert_int_equal(r->verdict, SW_VERDICT_SANDBOX_DENIED);
	assert_int_equal(r->rule, 5);
	assert_string_equal(test_sig(r), "common.write.erofs");
	assert_int_equal(r->operation, SW_OPERATION_WRITE);
	assert_int_equal(r->hit.resource.len, 6);
	assert_memory_equal(r->hit.resource.ptr, "/etc/x", 6);
	assert_string_equal(r->hit.resource_kind, "path");
	assert_int_equal(r->denied_lines, 1);
	sw_result_free(r);
}

TEST(rule_5_the_first_line_of_the_highest_confidence)
{
	UNUSED;
	sw_result *r = test_classify(CASE(.text = "sed: EROFS\n" EROFS_X EROFS_X));
	assert_string_equal(test_sig(r), "common.write.erofs");
	assert_int_equal(r->hit.line_number, 2);
	assert_int_equal(r->denied_lines, 3);
	sw_result_free(r);
}

TEST(rule_5_sigsys)
{
	UNUSED;
	sw_result *r = test_classify(CASE(.text = "", .exit = 159));
	assert_int_equal(r->verdict, SW_VERDICT_SANDBOX_DENIED);
	assert_int_equal(r->evidence, SW_EVIDENCE_EXIT_CODE);
	sw_result_free(r);
	DENIED(CASE(.text = "", .exit = -31), "common.sigsys", 5);
	sw_exit by_signal = {.signal = 31};
	sw_result *s = NULL;
	assert_int_equal(sw_classify(test_pack("box"), NULL, by_signal, SW_STARTED_UNKNOWN,
	                             SW_SOURCE_NONE, "", 0, &s, NULL),
	                 0);
	assert_int_equal(s->verdict, SW_VERDICT_SANDBOX_DENIED);
	sw_result_free(s);
}

TEST(rule_5_a_line_matching_both_is_a_denial)
{
	UNUSED;
	sw_result *r = test_classify(CASE(.text = "box: apply: Operation not permitted\n"));
	assert_int_equal(r->verdict, SW_VERDICT_SANDBOX_DENIED);
	assert_string_equal(r->cause, "escape");
	assert_int_equal(r->operation, SW_OPERATION_PRIVILEGE);
	sw_result_free(r);
}

TEST(rule_5_another_fatal_line_still_comes_first)
{
	UNUSED;
	FAILED(CASE(.text = "box: apply: Operation not permitted\nbox: uid map\n"), "box.userns",
	       4);
}

TEST(rule_6_otherwise_ok)
{
	UNUSED;
	OK(CASE(.text = "make: *** [all] Error 2\n", .exit = 2), 6);
	OK(CASE(.text = ""), 6);
}

TEST(rule_6_a_limit_signature)
{
	UNUSED;
	sw_result *r = test_classify(CASE(.text = "ld: Out of memory\n"));
	assert_int_equal(r->verdict, SW_VERDICT_OK);
	assert_int_equal(r->limit, SW_LIMIT_MEMORY);
	assert_int_equal(r->limit_certainty, SW_CERTAINTY_LIKELY);
	assert_string_equal(r->limit_hit.sig->id, "common.limit.memory");
	sw_result_free(r);
}

TEST(rule_6_a_bare_137_is_only_possible)
{
	UNUSED;
	sw_result *r = test_classify(CASE(.text = "", .exit = 137));
	assert_int_equal(r->limit, SW_LIMIT_MEMORY);
	assert_int_equal(r->limit_certainty, SW_CERTAINTY_POSSIBLE);
	sw_result_free(r);
	r = test_classify(CASE(.text = "Out of memory\n", .exit = 137));
	assert_int_equal(r->limit_certainty, SW_CERTAINTY_LIKELY);
	sw_result_free(r);
}

TEST(rule_6_a_deadline_is_proven)
{
	UNUSED;
	sw_result *r = NULL;
	sw_exit e = {.timed_out = true};
	assert_int_equal(sw_classify(test_pack("box"), NULL, e, SW_STARTED_UNKNOWN, SW_SOURCE_NONE,
	                             "", 0, &r, NULL),
	                 0);
	assert_int_equal(r->verdict, SW_VERDICT_OK);
	assert_int_equal(r->limit, SW_LIMIT_DEADLINE);
	assert_int_equal(r->limit_certainty, SW_CERTAINTY_PROVEN);
	sw_result_free(r);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(rule_1_unconfined_backend_is_ok),
	    T(rule_1_danger_full_access_is_ok),
	    T(rule_2_exit_0_is_ok_whatever_is_printed),
	    T(rule_3_not_started_is_runner_failed_without_any_output),
	    T(rule_3_not_started_with_unknown_wording),
	    T(rule_3_line_cause_and_stage_as_rule_4_gives_them),
	    T(rule_3_exception_a_line_that_is_both_is_denied),
	    T(rule_3_the_line_that_is_both_is_the_one_reported),
	    T(rule_3_another_fatal_line_outweighs_the_exception),
	    T(rule_3_started_leaves_only_lost_to_the_runner),
	    T(rule_3_started_no_other_line_is_the_runners),
	    T(rule_4_a_fatal_line_is_runner_failed),
	    T(rule_4_before_rule_5),
	    T(rule_4_only_at_column_0),
	    T(rule_4_informational_lines_do_not_count),
	    T(rule_4_exit_gates),
	    T(rule_4_a_line_that_a_denial_matches_too_is_none),
	    T(rule_4_words_of_a_command_denial_on_a_runner_line_do_not_make_it_one),
	    T(rule_4_exit_only),
	    T(rule_4_the_first_line_that_is_no_summary_is_reported),
	    T(rule_4_a_runner_lost_by_proof),
	    T(rule_5_a_deciding_denial),
	    T(rule_5_the_first_line_of_the_highest_confidence),
	    T(rule_5_sigsys),
	    T(rule_5_a_line_matching_both_is_a_denial),
	    T(rule_5_another_fatal_line_still_comes_first),
	    T(rule_6_otherwise_ok),
	    T(rule_6_a_limit_signature),
	    T(rule_6_a_bare_137_is_only_possible),
	    T(rule_6_a_deadline_is_proven),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
