/* One test for each detail that decides real cases (docs/verdict.md), named by what it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "packs.h"

#define CASE(...) ((test_input){.backend = "box", .exit = 1, __VA_ARGS__})
#define TEST(name) static void name(void **state)
#define UNUSED (void)state
#define BYTES(z) .text = (z), .len = sizeof(z) - 1

static void check(test_input in, sw_verdict verdict, const char *sig)
{
	sw_result *r = test_classify(in);
	assert_string_equal(sw_verdict_name(r->verdict), sw_verdict_name(verdict));
	assert_string_equal(test_sig(r), sig);
	sw_result_free(r);
}
#define OK(in) check(in, SW_VERDICT_OK, "-")
#define FAILED(in, sig) check(in, SW_VERDICT_RUNNER_FAILED, sig)
#define DENIED(in, sig) check(in, SW_VERDICT_SANDBOX_DENIED, sig)

static void check_line(test_input in, const char *line, size_t len, uint64_t number,
                       uint64_t offset)
{
	sw_result *r = test_classify(in);
	assert_true(r->has_hit);
	assert_int_equal(r->hit.line.len, len);
	assert_memory_equal(r->hit.line.ptr, line, len);
	assert_int_equal(r->hit.line_number, number);
	assert_int_equal(r->hit.offset, offset);
	sw_result_free(r);
}
#define LINE(in, z, number, offset) check_line(in, z, sizeof(z) - 1, number, offset)

/* ---- lines ---- */

TEST(lines_end_at_lf_or_the_end)
{
	UNUSED;
	LINE(CASE(.text = "a\nb\nbox: uid map"), "box: uid map", 3, 4);
	LINE(CASE(.text = "a\n\n\nbox: uid map\nrest"), "box: uid map", 4, 4);
}

TEST(lines_trailing_crs_are_stripped)
{
	UNUSED;
	LINE(CASE(.text = "box: uid map\r\n"), "box: uid map", 1, 0);
	LINE(CASE(.text = "box: uid map\r\r\r\nx\r\n"), "box: uid map", 1, 0);
	OK(CASE(.text = "box: entering the box\r\n"));
}

TEST(lines_a_bare_cr_begins_a_segment_with_its_own_column_0)
{
	UNUSED;
	LINE(CASE(.text = "10%\r20%\rbox: uid map\ndone\n"), "box: uid map", 1, 8);
	LINE(CASE(.text = "x\n10%\r'/etc/x': Read-only file system\r\n"),
	     "'/etc/x': Read-only file system", 2, 6);
}

TEST(lines_escapes_are_skipped_in_tests_and_kept_in_the_report)
{
	UNUSED;
	LINE(CASE(.text = "\x1b[1;31mbox: uid\x1b[0m map\n"), "\x1b[1;31mbox: uid\x1b[0m map", 1,
	     0);
	LINE(CASE(.text = "\x1b]0;title\x07"
	                  "box: uid map\n"),
	     "\x1b]0;title\x07"
	     "box: uid map",
	     1, 0);
	LINE(CASE(.text = "\x1bP1$r\x1b\\box: uid map\n"), "\x1bP1$r\x1b\\box: uid map", 1, 0);
	FAILED(CASE(.text = "\x1b(Bbox: uid map\n"), "box.userns");
	FAILED(CASE(.text = "\x1bMbox: uid map\n"), "box.userns");
}

TEST(lines_of_an_unterminated_escape_only_the_esc_is_skipped)
{
	UNUSED;
	OK(CASE(.text = "\x1b]0;box: uid map\n"));
	DENIED(CASE(.text = "\x1b]0;EROFS\n"), "common.write.erofs-bare");
	FAILED(CASE(.text = "box: uid map\x1b"), "box.userns");
	OK(CASE(.text = "\x1b[1;31\n"));
}

TEST(lines_an_escape_may_leave_a_line_blank)
{
	UNUSED;
	FAILED(CASE(.backend = "jail", .text = "\x1b[0m\njail: setup\n\x1b[K \n"), "jail.setup");
}

TEST(lines_no_other_white_space_is_trimmed)
{
	UNUSED;
	OK(CASE(.text = " box: uid map\n"));
	OK(CASE(.text = "\tbox: uid map\n"));
	FAILED(CASE(.text = "box: entering the box \n"), "box.unknown");
}

TEST(lines_nul_and_invalid_utf8_are_ordinary_bytes)
{
	UNUSED;
	FAILED(CASE(BYTES("a\0b\n\xff\xfe\nbox: uid map\0tail")), "box.userns");
	OK(CASE(BYTES("\0box: uid map\n")));
	DENIED(CASE(BYTES("\xc3\x28\0: Read-only file system\n")), "common.write.erofs-bare");
}

TEST(lines_ascii_case_does_not_matter)
{
	UNUSED;
	FAILED(CASE(.text = "BOX: Uid Map\n"), "box.userns");
	DENIED(CASE(.text = "x: READ-ONLY FILE SYSTEM\n"), "common.write.erofs-bare");
}

TEST(lines_over_4_kib_are_cut_in_the_report)
{
	UNUSED;
	char text[6000];
	memset(text, 'x', sizeof(text));
	memcpy(text, "box: uid map ", 13);
	sw_result *r = test_classify(CASE(.text = text, .len = sizeof(text)));
	assert_int_equal(r->hit.line.len, SW_LINE_REPORT_MAX);
	assert_true(r->hit.line_truncated);
	assert_false(r->hit.line_windowed);
	sw_result_free(r);
}

TEST(lines_over_64_kib_are_matched_in_windows)
{
	UNUSED;
	size_t n = 200000;
	char *text = malloc(n);
	assert_non_null(text);
	memset(text, 'x', n);
	/* Across the edge of the first window: found in the overlap. */
	memcpy(text + SW_WINDOW_SIZE - 10, "'/etc/x': Read-only file system", 31);
	sw_result *r = test_classify(CASE(.text = text, .len = n));
	assert_int_equal(r->verdict, SW_VERDICT_SANDBOX_DENIED);
	assert_true(r->hit.line_windowed);
	assert_int_equal(r->hit.offset, 0);
	assert_int_equal(r->denied_lines, 1);
	sw_result_free(r);
	/* Column 0 exists in the first window only. */
	memset(text, 'x', n);
	memcpy(text + SW_WINDOW_SIZE - SW_WINDOW_OVERLAP, "box: uid map", 12);
	OK(CASE(.text = text, .len = n));
	memcpy(text, "box: uid map", 12);
	FAILED(CASE(.text = text, .len = n), "box.userns");
	free(text);
}

TEST(lines_utf16le_where_the_pack_says_so)
{
	UNUSED;
	static const char z[] = "w\0i\0n\0b\0o\0x\0:\0 \0n\0o\0\n\0";
	FAILED(CASE(.backend = "win", .text = z, .len = sizeof(z) - 1), "win.text");
	OK(CASE(.backend = "box", .text = z, .len = sizeof(z) - 1));
}

/* ---- scope ---- */

TEST(scope_command_does_not_see_the_runners_lines)
{
	UNUSED;
	OK(CASE(.text = "boxhelper: Read-only file system\n"));
	OK(CASE(.text = "box[12]: Read-only file system\n"));
	OK(CASE(.text = "it runs without isolation: Read-only file system\n")); /* a downgrade */
}

TEST(scope_any_sees_every_line)
{
	UNUSED;
	DENIED(CASE(.text = "boxhelper: apply: Operation not permitted\n"), "box.apply-denied");
}

TEST(scope_of_a_line_that_only_quotes_the_runner)
{
	UNUSED;
	DENIED(CASE(.text = "log: box: x: Read-only file system\n"), "common.write.erofs-bare");
}

/* ---- position ---- */

TEST(position_alone_among_blank_informational_and_runner_lines)
{
	UNUSED;
	FAILED(CASE(.backend = "jail", .text = "\n\t\njail notice\njail: x\njail: setup\n\n"),
	       "jail.setup");
	OK(CASE(.backend = "jail", .text = "building\njail: setup\n"));
	OK(CASE(.backend = "jail", .text = "jail: setup\nbuilding\n"));
}

TEST(position_of_one_signature_overrides_the_packs)
{
	UNUSED;
	FAILED(CASE(.backend = "jail", .text = "building\njail: speaks any time\nmore\n"),
	       "jail.any");
}

TEST(position_first)
{
	UNUSED;
	FAILED(CASE(.backend = "head", .text = "head: setup\nbuilding\n"), "head.setup");
	OK(CASE(.backend = "head", .text = "building\nhead: setup\n"));
}

TEST(position_last)
{
	UNUSED;
	FAILED(CASE(.backend = "tail", .text = "building\ntail: setup\n"), "tail.setup");
	OK(CASE(.backend = "tail", .text = "tail: setup\nbuilding\n"));
	FAILED(CASE(.backend = "tail", .text = "tail: setup\nbuilding\ntail: setup\n"),
	       "tail.setup");
}

TEST(position_anywhere)
{
	UNUSED;
	FAILED(CASE(.text = "building\nbox: uid map\nmore\n"), "box.userns");
}

/* ---- exits ---- */

TEST(exits_signal_n_minus_n_and_128_plus_n_are_one)
{
	UNUSED;
	DENIED(CASE(.text = "write refused by policy\n", .exit = 137), "common.kill9");
	DENIED(CASE(.text = "write refused by policy\n", .exit = -9), "common.kill9");
	OK(CASE(.text = "write refused by policy\n", .exit = 9));
}

TEST(exits_on_windows_compare_as_unsigned_32_bit)
{
	UNUSED;
	FAILED(CASE(.backend = "win", .text = "", .exit = 0xC0000142), "win.init");
	FAILED(CASE(.backend = "win", .text = "", .exit = -1073741502), "win.init");
	OK(CASE(.backend = "win", .text = "", .exit = 142));
}

TEST(exits_125_to_127_alone_prove_nothing)
{
	UNUSED;
	for (int64_t e = 125; e <= 127; e++)
		OK(CASE(.text = "", .exit = e));
}

/* ---- what decides ---- */

TEST(decides_network_by_the_network_fact)
{
	UNUSED;
	static const char text[] = "connect: Network is unreachable\n";
	sw_result *r = test_classify(CASE(.text = text, .network = SW_NETWORK_DENIED));
	assert_int_equal(r->verdict, SW_VERDICT_SANDBOX_DENIED);
	assert_int_equal(r->confidence, SW_CONFIDENCE_LIKELY);
	sw_result_free(r);
	r = test_classify(CASE(.text = text));
	assert_int_equal(r->verdict, SW_VERDICT_SANDBOX_DENIED);
	assert_int_equal(r->confidence, SW_CONFIDENCE_WEAK);
	sw_result_free(r);
	OK(CASE(.text = text, .network = SW_NETWORK_ALLOWED));
}

TEST(decides_no_is_an_observation)
{
	UNUSED;
	sw_result *r = test_classify(CASE(.text = "cat: x: Permission denied\n"));
	assert_int_equal(r->verdict, SW_VERDICT_OK);
	assert_true(r->n_observations >= 1);
	assert_int_equal(r->observations[0].kind, SW_OBSERVATION_DENIAL_NOT_DECIDING);
	sw_result_free(r);
}

TEST(decides_with_facts_about_the_path)
{
	UNUSED;
	static const sw_str roots[] = {{"/srv/ws", 7}}, accessible[] = {{"/etc", 4}, {"/srv", 4}};
	sw_facts f = {.writable_roots = roots,
	              .n_writable_roots = 1,
	              .accessible = accessible,
	              .n_accessible = 2};
	static const char outside[] = "sh: cannot create /etc/y: Permission denied\n";
	DENIED(CASE(.text = outside, .facts = &f), "common.eacces.outside");
	OK(CASE(.text = "sh: cannot create /srv/ws/y: Permission denied\n", .facts = &f));
	OK(CASE(.text = "sh: cannot create /root/y: Permission denied\n", .facts = &f));
	OK(CASE(.text = "sh: cannot create rel/y: Permission denied\n", .facts = &f));
	f.cwd = SW_STR("/srv/ws/deep");
	OK(CASE(.text = "sh: cannot create rel/y: Permission denied\n", .facts = &f));
	DENIED(CASE(.text = "sh: cannot create ../../other: Permission denied\n", .facts = &f),
	       "common.eacces.outside");
	/* /srv/ws-other is no part of /srv/ws */
	DENIED(CASE(.text = "sh: cannot create /srv/ws-other: Permission denied\n", .facts = &f),
	       "common.eacces.outside");
	f.n_writable_roots = 0;
	OK(CASE(.text = outside, .facts = &f));
}

TEST(decides_with_the_mode)
{
	UNUSED;
	DENIED(CASE(.text = "mode forbids it\n", .mode = SW_MODE_READ_ONLY), "common.ro-mode");
	OK(CASE(.text = "mode forbids it\n", .mode = SW_MODE_WORKSPACE_WRITE));
}

TEST(confidence_never_changes_the_verdict)
{
	UNUSED;
	DENIED(CASE(.text = "mode forbids it\n", .mode = SW_MODE_READ_ONLY),
	       "common.ro-mode"); /* weak */
}

TEST(adjustments_change_what_is_taken_over)
{
	UNUSED;
	DENIED(CASE(.backend = "outer", .text = "Permission denied\n"), "common.eacces");
	OK(CASE(.backend = "box", .text = "Permission denied\n"));
	sw_result *r = test_classify(CASE(.backend = "outer", .text = "Out of memory\n"));
	assert_int_equal(r->limit, SW_LIMIT_NONE);
	sw_result_free(r);
}

TEST(ownership_the_first_that_matches_has_the_line_even_where_it_does_not_decide)
{
	UNUSED;
	/* common.eacces would decide under "outer", but common.eacces.outside, before it, does not.
	 */
	OK(CASE(.backend = "outer", .text = "cat: x: Permission denied\n"));
	DENIED(CASE(.backend = "outer", .text = "cat: x: Permission denied\nPermission denied\n"),
	       "common.eacces");
}

/* ---- vetoes ---- */

TEST(vetoes_take_the_denials_of_their_line)
{
	UNUSED;
	OK(CASE(.backend = "outer", .text = "git@host: Permission denied (publickey).\n"));
	OK(CASE(.text = "ERROR: EROFS of table x\n"));
	DENIED(CASE(.text = "ERROR: EROFS of table x\nEROFS\n"), "common.write.erofs-bare");
}

TEST(vetoes_never_take_a_fatal)
{
	UNUSED;
	FAILED(CASE(.text = "box: uid map of table\n"), "box.userns");
}

/* ---- downgrades and observations ---- */

TEST(downgrades_lower_and_leave_the_verdict)
{
	UNUSED;
	sw_result *r = test_classify(CASE(.text = "box: warning: no seccomp\nhi\n", .exit = 0));
	assert_int_equal(r->verdict, SW_VERDICT_OK);
	assert_int_equal(r->n_downgrades, 1);
	assert_int_equal(r->lowers, 1u << SW_GUARANTEE_SYSCALLS);
	sw_result_free(r);
	r = test_classify(CASE(.text = "it runs without isolation\n"
	                               "'/etc/x': Read-only file system\n"));
	assert_int_equal(r->verdict, SW_VERDICT_SANDBOX_DENIED);
	assert_int_equal(r->lowers, 1u << SW_GUARANTEE_FS_WRITE | 1u << SW_GUARANTEE_PID);
	sw_result_free(r);
}

TEST(observations_at_exit_0_on_request_only)
{
	UNUSED;
	sw_facts f = {.observe_ok = true};
	sw_result *r = test_classify(CASE(.text = "'/etc/x': Read-only file system\n", .exit = 0));
	assert_int_equal(r->n_observations, 0);
	sw_result_free(r);
	r = test_classify(
	    CASE(.text = "'/etc/x': Read-only file system\n", .exit = 0, .facts = &f));
	assert_true(r->n_observations >= 1);
	assert_int_equal(r->observations[0].kind, SW_OBSERVATION_DENIAL_AT_EXIT_0);
	assert_int_equal(r->verdict, SW_VERDICT_OK);
	sw_result_free(r);
}

TEST(observations_not_started_with_exit_0)
{
	UNUSED;
	sw_result *r = test_classify(CASE(.text = "", .exit = 0, .started = SW_STARTED_NO));
	assert_int_equal(r->verdict, SW_VERDICT_OK);
	assert_int_equal(r->n_observations, 1);
	assert_int_equal(r->observations[0].kind, SW_OBSERVATION_NOT_STARTED_AT_EXIT_0);
	sw_result_free(r);
}

/* ---- names, ownership, extraction ---- */

TEST(names_priority_prefix)
{
	UNUSED;
	FAILED(CASE(.text = "<3>box: uid map\n"), "box.userns");
	OK(CASE(.text = "<33>box: uid map\n"));
	OK(CASE(.backend = "jail", .text = "<3>jail: setup\n"));
}

TEST(names_runner_missing)
{
	UNUSED;
	FAILED(CASE(.text = "bash: box.static: command not found\n", .exit = 127),
	       "common.missing");
	OK(CASE(.text = "bash: boxxstatic: command not found\n", .exit = 127));
	OK(CASE(.backend = "jail", .text = "bash: box: command not found\n", .exit = 127));
}

TEST(names_extends_takes_lines_and_prefixes_over)
{
	UNUSED;
	FAILED(CASE(.backend = "outer", .text = "box: uid map\n"), "box.userns");
	OK(CASE(.backend = "outer", .text = "box: entering the box\n"));
	OK(CASE(.backend = "jail", .text = "box: uid map\n"));
}

TEST(ownership_pack_before_common_then_file_order)
{
	UNUSED;
	DENIED(CASE(.text = "'/etc/x': Read-only file system\n"), "common.write.erofs");
	FAILED(CASE(.text = "box: uid map\n"), "box.userns");
	FAILED(CASE(.text = "box: uid\n"), "box.unknown");
}

static void resource_is(test_input in, const char *kind, const char *value)
{
	sw_result *r = test_classify(in);
	assert_non_null(r->hit.resource_kind);
	assert_string_equal(r->hit.resource_kind, kind);
	assert_int_equal(r->hit.resource.len, strlen(value));
	assert_memory_equal(r->hit.resource.ptr, value, strlen(value));
	sw_result_free(r);
}

TEST(extraction_path_host_and_syscall)
{
	UNUSED;
	resource_is(CASE(.text = "touch: '/etc/x': Read-only file system\n"), "path", "/etc/x");
	resource_is(CASE(.text = "Could not resolve host: files.example.org\n"), "host",
	            "files.example.org");
	resource_is(CASE(.text = "mount(): operation not permitted\n"), "syscall", "mount");
}

/* ---- limits on matching, streaming ---- */

static sw_result *with_pattern(const char *regex, const char *text, size_t n)
{
	static const char *const literals[] = {"aaaa"};
	const sw_sig_def sigs[] = {{.id = "slow.x",
	                            .kind = SW_KIND_DENIAL,
	                            .position = -1,
	                            .literals = literals,
	                            .n_literals = 1,
	                            .regex = regex,
	                            .confidence = SW_CONFIDENCE_CERTAIN}};
	const sw_pack_def def = {.backend = "slow", .sigs = sigs, .n_sigs = 1};
	const sw_pack_def *const defs[] = {&def};
	const sw_pack_set set = {defs, 1};
	sw_pack *pack = NULL;
	sw_result *r = NULL;
	assert_int_equal(sw_pack_new(&pack, &set, "slow", NULL), 0);
	assert_int_equal(sw_classify(pack, NULL, sw_exit_code(1), SW_STARTED_UNKNOWN,
	                             SW_SOURCE_NONE, text, n, &r, NULL),
	                 0);
	sw_pack_free(pack);
	return r;
}

TEST(patterns_that_backtrack_without_end_elsewhere_are_decided)
{
	UNUSED;
	char text[4000];
	memset(text, 'a', sizeof(text));
	sw_result *r = with_pattern("(?:(?:a|aa)+b?)+[cd]$", text, sizeof(text));
	assert_int_equal(r->verdict, SW_VERDICT_OK);
	assert_int_equal(r->n_faults, 0);
	sw_result_free(r);
	text[sizeof(text) - 1] = 'd';
	r = with_pattern("(?:(?:a|aa)+b?)+[cd]$", text, sizeof(text));
	assert_int_equal(r->verdict, SW_VERDICT_SANDBOX_DENIED);
	sw_result_free(r);
}

TEST(faults_a_regex_that_cannot_be_used_does_not_match_and_is_reported)
{
	UNUSED;
	sw_result *r = with_pattern("(a)\\1aaa", "aaaaaa", 6);
	assert_int_equal(r->verdict, SW_VERDICT_OK);
	assert_int_equal(r->n_faults, 1);
	assert_string_equal(r->faults[0], "slow.x");
	sw_result_free(r);
}

TEST(streaming_an_empty_output_and_empty_feeds)
{
	UNUSED;
	sw_scan *scan = NULL;
	sw_result *r = NULL;
	assert_int_equal(sw_scan_begin(&scan, test_pack("box"), NULL, NULL), 0);
	assert_int_equal(sw_scan_feed(scan, NULL, 0), 0);
	assert_int_equal(sw_scan_feed(scan, "box: uid", 8), 0);
	assert_int_equal(sw_scan_feed(scan, "", 0), 0);
	assert_int_equal(sw_scan_feed(scan, " map", 4), 0);
	assert_int_equal(
	    sw_scan_finish(scan, sw_exit_code(1), SW_STARTED_UNKNOWN, SW_SOURCE_NONE, &r, NULL), 0);
	assert_string_equal(test_sig(r), "box.userns");
	assert_int_equal(r->output_size, 12);
	assert_int_equal(r->lines, 1);
	sw_result_free(r);
	sw_scan_free(scan);
}

TEST(streaming_finish_only_once)
{
	UNUSED;
	sw_scan *scan = NULL;
	sw_result *r = NULL;
	assert_int_equal(sw_scan_begin(&scan, test_pack("box"), NULL, NULL), 0);
	assert_int_equal(
	    sw_scan_finish(scan, sw_exit_code(0), SW_STARTED_UNKNOWN, SW_SOURCE_NONE, &r, NULL), 0);
	sw_result_free(r);
	assert_int_equal(
	    sw_scan_finish(scan, sw_exit_code(0), SW_STARTED_UNKNOWN, SW_SOURCE_NONE, &r, NULL),
	    SW_EINVAL);
	assert_int_equal(sw_scan_feed(scan, "x", 1), SW_EINVAL);
	sw_scan_free(scan);
}

TEST(packs_unknown_backend)
{
	UNUSED;
	sw_pack *pack = NULL;
	sw_error err = {0};
	assert_int_equal(sw_pack_new(&pack, &test_packs, "nosuch", &err), SW_ENOTFOUND);
	assert_non_null(strstr(err.what, "nosuch"));
	assert_null(pack);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(lines_end_at_lf_or_the_end),
	    T(lines_trailing_crs_are_stripped),
	    T(lines_a_bare_cr_begins_a_segment_with_its_own_column_0),
	    T(lines_escapes_are_skipped_in_tests_and_kept_in_the_report),
	    T(lines_of_an_unterminated_escape_only_the_esc_is_skipped),
	    T(lines_an_escape_may_leave_a_line_blank),
	    T(lines_no_other_white_space_is_trimmed),
	    T(lines_nul_and_invalid_utf8_are_ordinary_bytes),
	    T(lines_ascii_case_does_not_matter),
	    T(lines_over_4_kib_are_cut_in_the_report),
	    T(lines_over_64_kib_are_matched_in_windows),
	    T(lines_utf16le_where_the_pack_says_so),
	    T(scope_command_does_not_see_the_runners_lines),
	    T(scope_any_sees_every_line),
	    T(scope_of_a_line_that_only_quotes_the_runner),
	    T(position_alone_among_blank_informational_and_runner_lines),
	    T(position_of_one_signature_overrides_the_packs),
	    T(position_first),
	    T(position_last),
	    T(position_anywhere),
	    T(exits_signal_n_minus_n_and_128_plus_n_are_one),
	    T(exits_on_windows_compare_as_unsigned_32_bit),
	    T(exits_125_to_127_alone_prove_nothing),
	    T(decides_network_by_the_network_fact),
	    T(decides_no_is_an_observation),
	    T(decides_with_facts_about_the_path),
	    T(decides_with_the_mode),
	    T(confidence_never_changes_the_verdict),
	    T(adjustments_change_what_is_taken_over),
	    T(ownership_the_first_that_matches_has_the_line_even_where_it_does_not_decide),
	    T(vetoes_take_the_denials_of_their_line),
	    T(vetoes_never_take_a_fatal),
	    T(downgrades_lower_and_leave_the_verdict),
	    T(observations_at_exit_0_on_request_only),
	    T(observations_not_started_with_exit_0),
	    T(names_priority_prefix),
	    T(names_runner_missing),
	    T(names_extends_takes_lines_and_prefixes_over),
	    T(ownership_pack_before_common_then_file_order),
	    T(extraction_path_host_and_syscall),
	    T(patterns_that_backtrack_without_end_elsewhere_are_decided),
	    T(faults_a_regex_that_cannot_be_used_does_not_match_and_is_reported),
	    T(streaming_an_empty_output_and_empty_feeds),
	    T(streaming_finish_only_once),
	    T(packs_unknown_backend),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
