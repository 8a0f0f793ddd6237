/* run: a deadline, or the end, ends every descendant within two seconds, each time. */
#include "helpers.h"

#define BOUND (2000 * MS)

static sw_run_report r;
static seen s;
static char mark[64];

/* Runs argv with a deadline; afterwards nothing that carries the mark is alive. */
static void deadline_over(char *const *argv, int64_t deadline, int64_t grace)
{
	sw_run_options o = options_for(argv, &s);
	o.deadline_ns = deadline;
	o.grace_ns = grace;
	int64_t before = sw_monotonic_ns();
	RUN(o, &r);
	int64_t after = sw_monotonic_ns() - before - deadline;
	int alive = count_marked(mark);
	if (alive || r.survivors || !no_children())
		fail_msg("%d alive, %u survivors", alive, r.survivors);
	if (after > BOUND)
		fail_msg("%lld ms after the deadline", (long long)(after / MS));
	assert_true(r.timed_out);
}

static int rounds(int wanted)
{
	return getenv("SW_TEST_SMOKE") ? 3 : wanted;
}

static void bwrap_with_a_new_session_100_times(void **state)
{
	(void)state;
	char *const argv[] = {SANDBOX, "--unshare-all", "--new-session", "sleep", "1000", NULL};
	for (int i = 0; i < rounds(100); i++) {
		deadline_over(argv, (1 + i % 20) * MS, 0);
		assert_false(r.runner_lost);
	}
}

static void double_forked_daemons_100_times(void **state)
{
	(void)state;
	char *const argv[] = {"sh", "-c", "\"$0\" daemon 1000; \"$0\" daemon 1000; sleep 1000",
	                      victim(), NULL};
	for (int i = 0; i < rounds(100); i++)
		deadline_over(argv, (1 + i % 30) * MS, 20 * MS);
}

static void a_command_that_ignores_every_signal_100_times(void **state)
{
	(void)state;
	char *const bare[] = {victim(), "stubborn", "1000", NULL};
	char *const boxed[] = {SANDBOX, "--new-session", victim(), "stubborn", "1000", NULL};
	for (int i = 0; i < rounds(100); i++) {
		deadline_over(i % 2 ? boxed : bare, (5 + i % 20) * MS, 20 * MS);
	}
}

static void daemons_inside_a_pid_namespace(void **state)
{
	(void)state;
	char *const argv[] = {SANDBOX,
	                      "--unshare-all",
	                      "--new-session",
	                      "sh",
	                      "-c",
	                      "\"$0\" daemon 1000; \"$0\" stubborn 1000",
	                      victim(),
	                      NULL};
	for (int i = 0; i < rounds(20); i++)
		deadline_over(argv, (10 + i) * MS, 20 * MS);
}

static void processes_that_fork_while_they_are_ended(void **state)
{
	(void)state;
	char *const hop[] = {victim(), "hopper", NULL};
	char *const crowd[] = {victim(), "bomb", "60", NULL};
	for (int i = 0; i < rounds(10); i++) {
		deadline_over(hop, (10 + 3 * i) * MS, 20 * MS);
		deadline_over(crowd, (10 + 3 * i) * MS, 20 * MS);
	}
}

static void the_default_grace_keeps_the_bound(void **state)
{
	(void)state;
	char *const argv[] = {SANDBOX, "--new-session", victim(), "stubborn", "1000", NULL};
	deadline_over(argv, 500 * MS, 0);
	assert_int_equal(r.exit.signal, SIGKILL);
}

static void a_command_that_heeds_term_can_tidy_up(void **state)
{
	(void)state;
	char *const argv[] = {
	    SANDBOX,
	    "--unshare-all",
	    "--die-with-parent",
	    "sh",
	    "-c",
	    "trap 'echo tidied; exit 5' TERM; echo up; while :; do sleep 0.01; done",
	    NULL};
	deadline_over(argv, 800 * MS, 0);
	assert_non_null(strstr(s.text, "tidied\n")); /* its own children get TERM too */
	assert_int_equal(r.exit.code, 5);
	assert_int_equal(r.source, SW_SOURCE_STATUS_FD);
}

static void a_stopped_command_is_ended_too(void **state)
{
	(void)state;
	char *const argv[] = {"sh", "-c", "kill -STOP $$", NULL};
	deadline_over(argv, 50 * MS, 50 * MS);
}

static void the_end_of_run_ends_what_is_left(void **state)
{
	(void)state;
	char *const argv[] = {victim(), "daemon", "1000", NULL};
	char *const boxed[] = {SANDBOX, "--new-session", victim(), "daemon", "1000", NULL};
	for (int i = 0; i < rounds(20); i++) {
		sw_run_options o = options_for(i % 2 ? boxed : argv, &s);
		o.grace_ns = 20 * MS;
		int64_t before = sw_monotonic_ns();
		RUN(o, &r);
		assert_true(sw_monotonic_ns() - before < BOUND);
		assert_int_equal(count_marked(mark), 0);
		assert_int_equal(r.leftovers, 1);
		assert_true(has_note(&r, SW_RUN_NOTE_LEFTOVER));
		assert_int_equal(r.exit.code, 0);
		assert_false(r.timed_out);
	}
}

static void a_supervisor_that_is_killed_takes_the_runner_with_it(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		char *const argv[] = {SANDBOX, "--unshare-all", "--die-with-parent",
		                      "sleep", "1000",          NULL};
		static seen mine;
		sw_run_options o = options_for(argv, &mine);
		sw_run_supervise(&o, &r, NULL);
		_exit(0);
	}
	usleep(150000);
	assert_true(count_marked(mark) > 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	int alive = 1;
	for (int i = 0; i < 100 && alive; i++) {
		usleep(10000);
		alive = count_marked(mark);
	}
	assert_int_equal(alive, 0);
}

int main(void)
{
	snprintf(mark, sizeof mark, "SW_TEST_MARK=%d.%lld", getpid(), (long long)sw_monotonic_ns());
	putenv(mark);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bwrap_with_a_new_session_100_times),
	    cmocka_unit_test(double_forked_daemons_100_times),
	    cmocka_unit_test(a_command_that_ignores_every_signal_100_times),
	    cmocka_unit_test(daemons_inside_a_pid_namespace),
	    cmocka_unit_test(processes_that_fork_while_they_are_ended),
	    cmocka_unit_test(the_default_grace_keeps_the_bound),
	    cmocka_unit_test(a_command_that_heeds_term_can_tidy_up),
	    cmocka_unit_test(a_stopped_command_is_ended_too),
	    cmocka_unit_test(the_end_of_run_ends_what_is_left),
	    cmocka_unit_test(a_supervisor_that_is_killed_takes_the_runner_with_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
