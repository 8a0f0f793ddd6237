/* run: output, readers, signals passed on. One rule a test. */
#include "helpers.h"

static sw_run_report r;
static seen s;

/* Forks a process that runs argv with out_fd = fd; the report comes back through a pipe. */
static pid_t in_background(char *const *argv, int fd, int64_t deadline, int *result)
{
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		static sw_run_report mine;
		static seen my_seen;
		sw_run_options o = options_for(argv, &my_seen);
		o.out_fd = fd;
		o.deadline_ns = deadline;
		int rc = sw_run_supervise(&o, &mine, NULL);
		(void)!write(p[1], &mine, sizeof mine);
		_exit(rc ? 125 : sw_run_exit_status(&mine));
	}
	close(p[1]);
	*result = p[0];
	return pid;
}

static void take_report(int fd, pid_t pid)
{
	int status;
	assert_int_equal(read(fd, &r, sizeof r), sizeof r);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* How many bytes there were; closes. */
static long long read_to_end(int fd)
{
	char bytes[65536];
	ssize_t n;
	long long total = 0;
	while ((n = read(fd, bytes, sizeof bytes)) > 0)
		total += n;
	close(fd);
	return total;
}

static void a_slow_reader_gets_every_byte(void **state)
{
	(void)state;
	int out[2], result;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	char *const argv[] = {victim(), "flood", "8000000", NULL};
	pid_t pid = in_background(argv, out[1], 0, &result);
	close(out[1]);
	usleep(300000);
	long long total = read_to_end(out[0]);
	take_report(result, pid);
	assert_int_equal(total, 8000000);
	assert_int_equal(r.output_bytes, 8000000);
	assert_int_equal(r.passed_bytes, 8000000);
	assert_int_equal(r.exit.code, 0);
}

static void a_stuck_reader_does_not_keep_a_deadline_from_being_met(void **state)
{
	(void)state;
	int out[2], result;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	char *const argv[] = {victim(), "flood", "100000000", NULL};
	int64_t before = sw_monotonic_ns();
	pid_t pid = in_background(argv, out[1], 200 * MS, &result);
	close(out[1]);
	take_report(result, pid);
	assert_true(sw_monotonic_ns() - before < 2200 * MS);
	close(out[0]);
	assert_true(r.timed_out);
	assert_true(r.exit.timed_out);
	assert_true(has_note(&r, SW_RUN_NOTE_OUTPUT_DROPPED));
}

/* The command has ended in time; its reader does not read what it left in the pipe. */
static void a_stuck_reader_after_the_end_keeps_neither_leftovers_nor_the_deadline(void **state)
{
	(void)state;
	int out[2], result;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	char mark[64];
	snprintf(mark, sizeof mark, "SW_TEST_STUCK=%d.%lld", getpid(),
	         (long long)sw_monotonic_ns());
	putenv(mark);
	char *const argv[] = {"sh", "-c", "\"$0\" daemon 1000; \"$0\" flood 1300000", victim(),
	                      NULL};
	int64_t before = sw_monotonic_ns();
	pid_t pid = in_background(argv, out[1], 2500 * MS, &result);
	close(out[1]);
	usleep(1800000);
	assert_int_equal(count_marked(mark), 0);
	take_report(result, pid);
	assert_true(sw_monotonic_ns() - before < 3800 * MS);
	unsetenv("SW_TEST_STUCK");
	close(out[0]);
	assert_false(r.timed_out);
	assert_int_equal(r.exit.code, 0);
	assert_int_equal(r.leftovers, 1);
	assert_int_equal(r.output_bytes, 1300000);
	assert_true(has_note(&r, SW_RUN_NOTE_OUTPUT_DROPPED));
}

/* Takes the right to open files from the supervisor, then leaves somebody behind. */
static void a_supervisor_that_cannot_open_files_leaves_nobody_behind(void **state)
{
	(void)state;
	if (access("/usr/bin/prlimit", X_OK))
		skip();
	char mark[64];
	snprintf(mark, sizeof mark, "SW_TEST_BLIND=%d.%lld", getpid(),
	         (long long)sw_monotonic_ns());
	putenv(mark);
	char *const argv[] = {"sh", "-c",
	                      "prlimit --pid $PPID --nofile=0:0; setsid sh -c 'trap \"\" TERM; "
	                      "sleep 1000 & sleep 1000' </dev/null >/dev/null 2>&1 & sleep 0.2",
	                      NULL};
	int result;
	pid_t pid = in_background(argv, -1, 0, &result);
	take_report(result, pid);
	int alive = count_marked(mark);
	unsetenv("SW_TEST_BLIND");
	assert_int_equal(alive, 0);
	assert_true(r.leftovers >= 1);
	assert_int_equal(r.survivors, 0);
	assert_true(has_note(&r, SW_RUN_NOTE_LEFTOVER));
}

/* poll(2) fails then; what the command says and how it ends must arrive all the same. */
static void a_supervisor_that_cannot_poll_reads_to_the_end(void **state)
{
	(void)state;
	if (access("/usr/bin/prlimit", X_OK))
		skip();
	int out[2], result;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	char *const argv[] = {
	    "sh", "-c", "prlimit --pid $PPID --nofile=0:; sleep 0.1; \"$0\" flood 3000000; exit 7",
	    victim(), NULL};
	pid_t pid = in_background(argv, out[1], 10000 * MS, &result);
	close(out[1]);
	usleep(300000); /* the reader is slow as well */
	long long total = read_to_end(out[0]);
	take_report(result, pid);
	assert_int_equal(total, 3000000);
	assert_int_equal(r.output_bytes, 3000000);
	assert_int_equal(r.exit.code, 7);
	assert_false(r.timed_out);
	assert_int_equal(r.n_notes, 0);
}

/* A flood of signals keeps it neither from its deadline nor from what else there is to say. */
static void a_flood_of_signals_keeps_the_supervisor_from_nothing(void **state)
{
	(void)state;
	int out[2], result;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	char *const argv[] = {
	    "sh", "-c",
	    "trap '' TERM HUP INT QUIT; s=$PPID; end=$(($(date +%s) + 9)); for i in 1 2 3; do "
	    "(while [ $(date +%s) -lt $end ]; do for k in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do "
	    "kill -HUP $s; kill -TERM $s; kill -INT $s; kill -QUIT $s; done; done) & done; wait",
	    NULL};
	int64_t before = sw_monotonic_ns();
	pid_t pid = in_background(argv, out[1], 500 * MS, &result);
	close(out[1]);
	take_report(result, pid);
	close(out[0]);
	assert_true(sw_monotonic_ns() - before < 4000 * MS);
	assert_true(has_note(&r, SW_RUN_NOTE_FORWARDED));
	assert_true(r.leftovers >= 1);
	assert_int_equal(r.survivors, 0);
	size_t forwarded = 0;
	for (size_t i = 0; i < r.n_notes; i++)
		forwarded += r.notes[i].kind == SW_RUN_NOTE_FORWARDED;
	assert_true(forwarded <= 8); /* each once */
}

static void a_closed_stdout_does_not_stop_the_reading(void **state)
{
	(void)state;
	int out[2];
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	close(out[0]);
	char *const argv[] = {victim(), "flood", "5000000", NULL};
	sw_run_options o = options_for(argv, &s);
	o.out_fd = out[1];
	RUN(o, &r);
	close(out[1]);
	assert_int_equal(s.total, 5000000);
	assert_int_equal(r.exit.code, 0);
	assert_true(has_note(&r, SW_RUN_NOTE_STDOUT_CLOSED));
}

static long peak_kib(void)
{
	char text[4096] = "";
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	char *peak = n > 0 ? strstr(text, "VmHWM:") : NULL;
	assert_non_null(peak);
	return peak ? atol(peak + 6) : 0;
}

static void a_gibibyte_takes_no_more_memory_than_ten_mebibytes(void **state)
{
	(void)state;
	char *const few[] = {victim(), "flood", "10485760", NULL};
	char *const many[] = {victim(), "flood",
	                      getenv("SW_TEST_SMOKE") ? "104857600" : "1073741824", NULL};
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	sw_run_options o = options_for(few, &s);
	o.out_fd = null;
	RUN(o, &r);
	long before = peak_kib();
	o = options_for(many, &s);
	o.out_fd = null;
	RUN(o, &r);
	close(null);
	assert_int_equal(s.total, atoll(many[2]));
	assert_int_equal(r.passed_bytes, s.total);
	assert_true(peak_kib() - before < 2048);
}

static void a_writer_that_stays_is_drained_for_the_time_given_then_cut(void **state)
{
	(void)state;
	char *const argv[] = {victim(), "holder", "5000", NULL};
	sw_run_options o = options_for(argv, &s);
	o.grace_ns = 100 * MS;
	int64_t before = sw_monotonic_ns();
	RUN(o, &r);
	int64_t took = sw_monotonic_ns() - before;
	assert_true(has_note(&r, SW_RUN_NOTE_CUT));
	/* it dies of SIGPIPE, so there may be nothing left to end */
	assert_true(took > 150 * MS && took < 1500 * MS);
	assert_non_null(strstr(s.text, "parent\n"));
	assert_non_null(strstr(s.text, "child\n"));
	assert_int_equal(r.exit.code, 0);
	assert_true(no_children());
}

static void a_short_writer_that_stays_is_heard_to_its_end(void **state)
{
	(void)state;
	char *const argv[] = {"sh", "-c", "(sleep 0.05; echo late) & echo early", NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	assert_string_equal(s.text, "early\nlate\n");
	assert_false(has_note(&r, SW_RUN_NOTE_CUT));
	assert_int_equal(r.leftovers, 0);
}

static void signals_are_passed_on(void **state)
{
	(void)state;
	static const int list[] = {SIGINT, SIGHUP, SIGTERM};
	for (size_t sandboxed = 0; sandboxed < 2; sandboxed++) {
		int out[2], result;
		assert_int_equal(pipe2(out, O_CLOEXEC), 0);
		char *const bare[] = {victim(), "listener", NULL};
		char *const boxed[] = {SANDBOX,
		                       "--unshare-all",
		                       "--die-with-parent",
		                       "--new-session",
		                       victim(),
		                       "listener",
		                       NULL};
		pid_t pid = in_background(sandboxed ? boxed : bare, out[1], 0, &result);
		close(out[1]);
		char text[256];
		ssize_t n = read(out[0], text, sizeof text);
		assert_int_equal(n, 6); /* ready */
		for (size_t i = sandboxed ? 2 : 0; i < 3; i++) {
			/* two that ask for an end would end it hard: each alone, TERM last */
			if (list[i] == SIGHUP)
				continue;
			kill(pid, list[i]);
			n = read(out[0], text, sizeof text - 1);
			assert_true(n > 0);
			text[n] = '\0';
			char wanted[32];
			snprintf(wanted, sizeof wanted, "signal %d\n", list[i]);
			assert_string_equal(text, wanted);
			if (list[i] == SIGINT)
				break;
		}
		if (!sandboxed) {
			kill(pid, SIGTERM);
		}
		take_report(result, pid);
		close(out[0]);
		assert_int_equal(r.exit.code, 7);
		assert_int_equal(r.started, SW_STARTED_YES);
		assert_int_equal(r.source, sandboxed ? SW_SOURCE_STATUS_FD : SW_SOURCE_EXEC_PIPE);
		assert_false(r.runner_lost);
	}
}

static void a_second_signal_ends_a_stubborn_command(void **state)
{
	(void)state;
	int out[2], result;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	char *const argv[] = {victim(), "stubborn", "60", NULL};
	pid_t pid = in_background(argv, out[1], 0, &result);
	close(out[1]);
	usleep(100000);
	kill(pid, SIGTERM);
	usleep(50000);
	kill(pid, SIGTERM);
	take_report(result, pid);
	close(out[0]);
	assert_int_equal(r.exit.signal, SIGKILL);
	assert_false(r.runner_lost);
}

int main(void)
{
	/* An attacker writes to every descriptor that the supervisor holds: none may be a
	 * stranger's. */
	close_range(3, ~0u, 0);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_slow_reader_gets_every_byte),
	    cmocka_unit_test(a_stuck_reader_does_not_keep_a_deadline_from_being_met),
	    cmocka_unit_test(a_stuck_reader_after_the_end_keeps_neither_leftovers_nor_the_deadline),
	    cmocka_unit_test(a_supervisor_that_cannot_open_files_leaves_nobody_behind),
	    cmocka_unit_test(a_supervisor_that_cannot_poll_reads_to_the_end),
	    cmocka_unit_test(a_flood_of_signals_keeps_the_supervisor_from_nothing),
	    cmocka_unit_test(a_closed_stdout_does_not_stop_the_reading),
	    cmocka_unit_test(a_gibibyte_takes_no_more_memory_than_ten_mebibytes),
	    cmocka_unit_test(a_writer_that_stays_is_drained_for_the_time_given_then_cut),
	    cmocka_unit_test(a_short_writer_that_stays_is_heard_to_its_end),
	    cmocka_unit_test(signals_are_passed_on),
	    cmocka_unit_test(a_second_signal_ends_a_stubborn_command),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
