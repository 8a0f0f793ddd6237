/* run: output, signals, descriptors, exit, proof of start. One rule a test. */
#include "helpers.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

static sw_run_report r;
static seen s;

static void both_streams_come_merged_in_order_and_the_exit_is_the_commands(void **state)
{
	(void)state;
	char *const argv[] = {"sh", "-c", "echo a; echo b >&2; echo c; exit 42", NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	assert_string_equal(s.text, "a\nb\nc\n");
	assert_int_equal(r.exit.code, 42);
	assert_int_equal(sw_run_exit_status(&r), 42);
	assert_int_equal(r.started, SW_STARTED_YES);
	assert_int_equal(r.source, SW_SOURCE_EXEC_PIPE);
	assert_int_equal(s.spawns, 1);
	assert_true(no_children());
}

static void a_signal_is_128_plus_n(void **state)
{
	(void)state;
	char *const argv[] = {"sh", "-c", "kill -SEGV $$", NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	assert_false(r.exit.has_code);
	assert_int_equal(r.exit.signal, SIGSEGV);
	assert_int_equal(sw_run_exit_status(&r), 128 + SIGSEGV);
}

static void a_missing_program_is_127_and_one_that_may_not_run_126(void **state)
{
	(void)state;
	char *const missing[] = {"nosuchprogram", NULL}, *const denied[] = {"/etc/passwd", NULL};
	sw_run_options o = options_for(missing, &s);
	RUN(o, &r);
	assert_int_equal(sw_run_exit_status(&r), 127);
	assert_int_equal(r.started, SW_STARTED_NO);
	assert_false(r.spawned);
	o = options_for(denied, &s);
	RUN(o, &r);
	assert_int_equal(sw_run_exit_status(&r), 126);
	assert_int_equal(r.spawn_errno, EACCES);
	assert_int_equal(r.started, SW_STARTED_NO);
}

static void what_refuses_before_spawn_stops_everything(void **state)
{
	(void)state;
	char path[] = "/tmp/sw-refused.XXXXXX";
	close(mkstemp(path));
	unlink(path);
	char *const argv[] = {"touch", path, NULL};
	sw_run_options o = options_for(argv, &s);
	s.refuse = 1;
	sw_error err;
	assert_int_equal(sw_run_supervise(&o, &r, &err), SW_EBUSY);
	assert_int_equal(access(path, F_OK), -1);
	assert_true(no_children());
}

static void no_descriptor_of_ours_reaches_the_command(void **state)
{
	(void)state;
	int mine = open("/dev/null", O_RDONLY); /* inherited by others, not chosen */
	char *const argv[] = {victim(), "descriptors", NULL};
	sw_run_options o = options_for(argv, &s);
	int before = count_fds();
	RUN(o, &r);
	assert_string_equal(s.text, "");
	assert_int_equal(count_fds(), before);
	o.keep_fds = &mine;
	o.n_keep_fds = 1;
	memset(&s, 0, sizeof s);
	RUN(o, &r);
	assert_int_equal(atoi(s.text), mine);
	close(mine);
}

static void the_sandboxed_command_sees_no_descriptor_either(void **state)
{
	(void)state;
	char *const argv[] = {SANDBOX, "--die-with-parent", victim(), "descriptors", NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	assert_string_equal(s.text, "");
	assert_int_equal(r.exit.code, 0);
	assert_int_equal(r.started, SW_STARTED_YES);
}

static void descriptors_that_bwrap_options_name_are_handed_on(void **state)
{
	(void)state;
	int p[2];
	assert_int_equal(pipe(p), 0);
	(void)!write(p[1], "inside\n", 7);
	close(p[1]);
	int fd = fcntl(p[0], F_DUPFD, 40);
	close(p[0]);
	char number[16];
	snprintf(number, sizeof number, "%d", fd);
	char *const argv[] = {SANDBOX, "--tmpfs", "/tmp", "--ro-bind-data", number, "/tmp/f",
	                      "cat",   "/tmp/f",  NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	assert_string_equal(s.text, "inside\n");
	close(fd);
}

static void signal_mask_and_dispositions_are_the_callers(void **state)
{
	(void)state;
	char *const argv[] = {victim(), "signals", NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	assert_string_equal(s.text, "");
	sigset_t set, old, after;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	/* as some callers leave it: neither run nor a runner may lose a status by it */
	signal(SIGCHLD, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	memset(&s, 0, sizeof s);
	RUN(o, &r);
	sigprocmask(SIG_SETMASK, &old, &after);
	assert_true(signal(SIGCHLD, SIG_DFL) == SIG_IGN);
	signal(SIGUSR2, SIG_DFL);
	assert_string_equal(s.text, "blocked 10\nignored 12\nblocked 15\n");
	assert_int_equal(r.exit.code, 0);
	assert_true(sigismember(&after, SIGTERM) == 1);
	assert_true(sigismember(&after, SIGINT) == 0);
}

static void an_ignored_sigchld_does_not_make_bwrap_wait_for_ever(void **state)
{
	(void)state;
	if (!bwrap_works())
		skip();
	char *const argv[] = {SANDBOX, "--unshare-pid", "sh", "-c", "exit 9", NULL};
	sw_run_options o = options_for(argv, &s);
	o.deadline_ns = 20000 * MS;
	signal(SIGCHLD, SIG_IGN);
	RUN(o, &r);
	signal(SIGCHLD, SIG_DFL);
	assert_false(r.timed_out);
	assert_int_equal(r.exit.code, 9);
}

/* Linux lets an argv be far longer than any table here. */
static void an_argv_is_executed_whole_however_long(void **state)
{
	(void)state;
	enum { WORDS = 70000 };
	char **argv = calloc(WORDS + 16, sizeof *argv);
	size_t n = 0;
	argv[n++] = "unshare";
	argv[n++] = "--fork";
	argv[n++] = "sh";
	argv[n++] = "-c";
	argv[n++] = "echo $#";
	argv[n++] = "sh";
	for (size_t i = 0; i < WORDS; i++)
		argv[n++] = "x";
	for (size_t from = 0; from <= 2; from += 2) { /* with a runner and without */
		sw_run_options o = options_for(argv + from, &s);
		RUN(o, &r);
		assert_string_equal(s.text, "70000\n");
	}
	free(argv);
}

static void children_the_caller_had_are_neither_reaped_nor_ended(void **state)
{
	(void)state;
	pid_t sleeper = fork();
	if (sleeper == 0) {
		sleep(60);
		_exit(0);
	}
	pid_t dead = fork();
	if (dead == 0)
		_exit(5);
	siginfo_t si;
	waitid(P_PID, (id_t)dead, &si, WEXITED | WNOWAIT);
	char *const argv[] = {victim(), "daemon", "60", NULL};
	sw_run_options o = options_for(argv, &s);
	o.grace_ns = 50 * MS;
	RUN(o, &r);
	int status;
	assert_int_equal(waitpid(dead, &status, 0), dead);
	assert_int_equal(WEXITSTATUS(status), 5);
	assert_int_equal(kill(sleeper, 0), 0);
	assert_int_equal(waitpid(sleeper, &status, WNOHANG), 0);
	kill(sleeper, SIGKILL);
	waitpid(sleeper, &status, 0);
	assert_int_equal(r.leftovers, 1);
}

/* An orphan of such a child comes to the subreaper, and is none of the command's. */
static void orphans_of_children_the_caller_had_are_left_alone(void **state)
{
	(void)state;
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0) {
		pid_t orphan = fork();
		if (orphan == 0) {
			sleep(60);
			_exit(0);
		}
		(void)!write(p[1], &orphan, sizeof orphan);
		usleep(300000);
		_exit(0);
	}
	pid_t orphan;
	assert_int_equal(read(p[0], &orphan, sizeof orphan), sizeof orphan);
	close(p[0]);
	close(p[1]);
	usleep(30000); /* a tick of the clock that tells starts apart */
	char *const argv[] = {"sh", "-c", "\"$0\" daemon 60; sleep 0.6", victim(), NULL};
	sw_run_options o = options_for(argv, &s);
	o.grace_ns = 50 * MS;
	RUN(o, &r);
	char path[64], state_of = '?';
	snprintf(path, sizeof path, "/proc/%d/stat", (int)orphan);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d %*s %c", &state_of), 1);
	fclose(f);
	assert_int_equal(state_of, 'S');
	assert_int_equal(r.leftovers, 1);
	kill(orphan, SIGKILL);
	waitpid(child, NULL, 0);
	waitpid(orphan, NULL, 0);
}

static void stdin_is_inherited_or_null(void **state)
{
	(void)state;
	int p[2], old = dup(0);
	assert_int_equal(pipe(p), 0);
	(void)!write(p[1], "question\n", 9);
	close(p[1]);
	dup2(p[0], 0);
	close(p[0]);
	char *const argv[] = {"cat", NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	assert_string_equal(s.text, "question\n");
	o.quiet_stdin = true;
	memset(&s, 0, sizeof s);
	RUN(o, &r);
	assert_string_equal(s.text, "");
	dup2(old, 0);
	close(old);
}

static void no_merge_leaves_stdout_alone_and_reads_stderr(void **state)
{
	(void)state;
	int p[2], e[2];
	assert_int_equal(pipe(p) | pipe(e), 0);
	char *const argv[] = {"sh", "-c", "echo out; echo err >&2", NULL};
	sw_run_options o = options_for(argv, &s);
	o.no_merge = true;
	o.out_fd = p[1];
	o.err_fd = e[1];
	RUN(o, &r);
	close(p[1]);
	close(e[1]);
	char text[64] = "";
	assert_int_equal(read(p[0], text, sizeof text), 4);
	assert_memory_equal(text, "out\n", 4);
	assert_int_equal(read(e[0], text, sizeof text), 4);
	assert_memory_equal(text, "err\n", 4);
	assert_string_equal(s.text, "err\n");
	close(p[0]);
	close(e[0]);
}

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

static void a_slow_reader_gets_every_byte(void **state)
{
	(void)state;
	int out[2], result;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	char *const argv[] = {victim(), "flood", "8000000", NULL};
	pid_t pid = in_background(argv, out[1], 0, &result);
	close(out[1]);
	usleep(300000);
	char bytes[65536];
	ssize_t n;
	long long total = 0;
	while ((n = read(out[0], bytes, sizeof bytes)) > 0)
		total += n;
	close(out[0]);
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
	char bytes[65536];
	ssize_t n;
	long long total = 0;
	while ((n = read(out[0], bytes, sizeof bytes)) > 0)
		total += n;
	close(out[0]);
	take_report(result, pid);
	assert_int_equal(total, 3000000);
	assert_int_equal(r.output_bytes, 3000000);
	assert_int_equal(r.exit.code, 7);
	assert_false(r.timed_out);
	assert_int_equal(r.n_notes, 0);
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

/* ---- proof of start ---- */

static void bwrap_says_that_the_command_started(void **state)
{
	(void)state;
	char *const argv[] = {SANDBOX,
	                      "--unshare-all",
	                      "sh",
	                      "-c",
	                      "echo 'bwrap: setting up uid map: Permission denied'; exit 1",
	                      NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	assert_int_equal(r.started, SW_STARTED_YES);
	assert_int_equal(r.source, SW_SOURCE_STATUS_FD);
	assert_int_equal(r.exit.code, 1);
	/* attested by the option that was added, with nothing else changed */
	assert_string_equal(s.text, "bwrap: setting up uid map: Permission denied\n");
}

/* A child that the caller had, dead or alive, changes nothing in what is followed or traced. */
static void a_followed_runner_beside_children_of_the_caller(void **state)
{
	(void)state;
	pid_t dead = fork();
	if (dead == 0)
		_exit(5);
	siginfo_t si;
	assert_int_equal(waitid(P_PID, (id_t)dead, &si, WEXITED | WNOWAIT), 0);
	char *const argv[] = {SANDBOX, "--unshare-all", "--new-session", "sh", "-c", "(:); exit 6",
	                      NULL};
	sw_run_options o = options_for(argv, &s);
	o.deadline_ns = 20000 * MS;
	RUN(o, &r);
	assert_false(r.timed_out);
	assert_int_equal(r.started, SW_STARTED_YES);
	assert_int_equal(r.exit.code, 6);
	int status;
	assert_int_equal(waitpid(dead, &status, 0), dead);
	assert_int_equal(WEXITSTATUS(status), 5);
}

static void bwrap_that_fails_itself_says_not_started(void **state)
{
	(void)state;
	char *const setup[] = {"bwrap", "--ro-bind", "/nosuch", "/nosuch", "true", NULL};
	char *const exec[] = {SANDBOX, "--unshare-all", "nosuchcommand", NULL};
	char *const usage[] = {"bwrap", "--nosuchoption", "true", NULL};
	char *const *all[] = {setup, exec, usage};
	for (size_t i = 0; i < 3; i++) {
		sw_run_options o = options_for(all[i], &s);
		RUN(o, &r);
		if (r.started != SW_STARTED_NO)
			fail_msg("%zu: %s", i, sw_started_name(r.started));
		assert_int_equal(r.source, SW_SOURCE_STATUS_FD);
		assert_int_equal(r.exit.code, 1);
	}
}

static void a_bwrap_killed_over_its_command_is_lost(void **state)
{
	(void)state;
	char *const argv[] = {
	    SANDBOX,
	    "--die-with-parent",
	    "sh",
	    "-c",
	    ("echo 'bwrap: Creating new namespace failed: Operation not permitted'; "
	     "kill -9 $PPID; sleep 5"),
	    NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	assert_int_equal(r.exit.signal, SIGKILL);
	assert_int_equal(r.started, SW_STARTED_YES);
	assert_int_equal(r.source, SW_SOURCE_KERNEL);
	assert_true(r.runner_lost);
	assert_true(no_children());
}

static void nothing_is_added_where_the_argv_has_its_own_status_channel(void **state)
{
	(void)state;
	int p[2];
	assert_int_equal(pipe(p), 0);
	int fd = fcntl(p[1], F_DUPFD, 50);
	close(p[1]);
	char number[16];
	snprintf(number, sizeof number, "%d", fd);
	char *const argv[] = {"bwrap", "--json-status-fd", number, "--ro-bind", "/", "/", "true",
	                      NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	close(fd);
	char text[512];
	ssize_t n = read(p[0], text, sizeof text - 1);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "exit-code")); /* the caller's own channel works */
	close(p[0]);
	assert_true(has_note(&r, SW_RUN_NOTE_NOT_ATTESTED));
	assert_int_equal(r.exit.code, 0);
	char *const behind[] = {SANDBOX, "sh", "-c", "exit 3", "--json-status-fd", "--args", NULL};
	o = options_for(behind, &s);
	RUN(o, &r); /* the command's arguments are not bwrap's */
	assert_int_equal(r.source, SW_SOURCE_STATUS_FD);
	assert_int_equal(r.exit.code, 3);
}

static void a_bwrap_that_others_can_change_proves_nothing(void **state)
{
	(void)state;
	char dir[] = "/tmp/sw-bwrap.XXXXXX", path[64];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/bwrap", dir);
	FILE *f = fopen(path, "w");
	fputs("#!/bin/sh\n# --json-status-fd\necho \"$@\"\nexit 1\n", f);
	fclose(f);
	chmod(path, 0757);
	char *const argv[] = {path, "--ro-bind", "/", "/", "true", NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	assert_string_equal(s.text, "--ro-bind / / true\n");
	assert_int_equal(r.started, SW_STARTED_UNKNOWN);
	unlink(path);
	rmdir(dir);
}

static void no_attack_on_the_status_channel_changes_what_is_known(void **state)
{
	(void)state;
	static char *const ways[] = {"write", "shut"};
	char self[16];
	snprintf(self, sizeof self, "%d", getpid());
	setenv("SW_SUPERVISOR", self, 1);
	for (size_t way = 0; way < 2; way++)
		for (int unshared = 0; unshared < 3; unshared++) {
			char *argv[24] = {SANDBOX};
			size_t n = 8;
			if (unshared >= 1)
				argv[n++] = "--unshare-user";
			if (unshared == 2)
				argv[n++] = "--unshare-pid";
			argv[n++] = victim();
			argv[n++] = "attacker";
			argv[n++] = ways[way];
			argv[n] = NULL;
			sw_run_options o = options_for(argv, &s);
			RUN(o, &r);
			if (r.started != SW_STARTED_YES)
				fail_msg("way %zu, unshared %d: %s\n%s", way, unshared,
				         sw_started_name(r.started), s.text);
			assert_non_null(strstr(s.text, "bwrap: setting up uid map"));
			assert_null(strstr(s.text, "reopened socket"));
			if (unshared == 2)
				assert_null(strstr(s.text, "reached"));
		}
}

static void a_runner_that_executes_in_its_own_place_is_followed_by_the_kernel(void **state)
{
	(void)state;
	char *const short_one[] = {"setpriv", "--no-new-privs", "true", NULL};
	char *const fails[] = {"setpriv", "--no-new-privs", "nosuchcommand", NULL};
	char *const long_one[] = {"unshare", "-U", "sleep", "0.3", NULL};
	static const sw_started wanted[] = {SW_STARTED_YES, SW_STARTED_NO, SW_STARTED_YES};
	char *const *all[] = {short_one, fails, long_one};
	for (size_t i = 0; i < 3; i++) {
		sw_run_options o = options_for(all[i], &s);
		RUN(o, &r);
		if (r.started != wanted[i] || r.source != SW_SOURCE_KERNEL)
			fail_msg("%zu: %s by %s", i, sw_started_name(r.started),
			         sw_source_name(r.source));
	}
}

static void a_followed_command_runs_free(void **state)
{
	(void)state;
	/* let go before its first instruction: no tracer, and it may trace and stop itself */
	char *const argv[] = {SANDBOX,
	                      "--unshare-user",
	                      "sh",
	                      "-c",
	                      ("grep TracerPid /proc/self/status; (kill -STOP $$; until grep -q "
	                       "'State:.T' /proc/$$/status; do sleep 0.01; done; kill -CONT $$) & "
	                       "wait; exit 6"),
	                      NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	assert_string_equal(s.text, "TracerPid:\t0\n");
	assert_int_equal(r.exit.code, 6);
}

static void the_fixed_merge_wrapper_is_seen_through(void **state)
{
	(void)state;
	char *const argv[] = {"/bin/sh", "-c", "exec \"$@\" 2>&1",   "sh", SANDBOX,
	                      "sh",      "-c", "echo x >&2; exit 4", NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	assert_string_equal(s.text, "x\n");
	assert_int_equal(r.source, SW_SOURCE_STATUS_FD);
	assert_int_equal(r.exit.code, 4);
}

static void a_script_without_an_interpreter_line_runs_in_the_shell(void **state)
{
	(void)state;
	char path[] = "/tmp/sw-script.XXXXXX";
	int fd = mkstemp(path);
	(void)!write(fd, "echo $1; exit 9\n", 16);
	fchmod(fd, 0755);
	close(fd);
	char *const argv[] = {path, "word", NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	unlink(path);
	assert_string_equal(s.text, "word\n");
	assert_int_equal(r.exit.code, 9);
}

static void our_descriptors_cannot_be_opened_by_the_command(void **state)
{
	(void)state;
	if (geteuid() == 0) /* root may read anything: the rule is about users */
		return;
	char script[128];
	snprintf(script, sizeof script, "ls /proc/%d/fd >/dev/null 2>&1 && echo open", getpid());
	char *const argv[] = {"sh", "-c", script, NULL};
	sw_run_options o = options_for(argv, &s);
	RUN(o, &r);
	assert_string_equal(s.text, "");
	assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
}

int main(void)
{
	/* An attacker writes to every descriptor that the supervisor holds: none may be a
	 * stranger's. */
	close_range(3, ~0u, 0);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(both_streams_come_merged_in_order_and_the_exit_is_the_commands),
	    cmocka_unit_test(a_signal_is_128_plus_n),
	    cmocka_unit_test(a_missing_program_is_127_and_one_that_may_not_run_126),
	    cmocka_unit_test(what_refuses_before_spawn_stops_everything),
	    cmocka_unit_test(no_descriptor_of_ours_reaches_the_command),
	    cmocka_unit_test(the_sandboxed_command_sees_no_descriptor_either),
	    cmocka_unit_test(descriptors_that_bwrap_options_name_are_handed_on),
	    cmocka_unit_test(signal_mask_and_dispositions_are_the_callers),
	    cmocka_unit_test(an_ignored_sigchld_does_not_make_bwrap_wait_for_ever),
	    cmocka_unit_test(an_argv_is_executed_whole_however_long),
	    cmocka_unit_test(children_the_caller_had_are_neither_reaped_nor_ended),
	    cmocka_unit_test(orphans_of_children_the_caller_had_are_left_alone),
	    cmocka_unit_test(stdin_is_inherited_or_null),
	    cmocka_unit_test(no_merge_leaves_stdout_alone_and_reads_stderr),
	    cmocka_unit_test(a_slow_reader_gets_every_byte),
	    cmocka_unit_test(a_stuck_reader_does_not_keep_a_deadline_from_being_met),
	    cmocka_unit_test(a_stuck_reader_after_the_end_keeps_neither_leftovers_nor_the_deadline),
#ifndef __SANITIZE_ADDRESS__
	    cmocka_unit_test(a_supervisor_that_cannot_open_files_leaves_nobody_behind),
	    cmocka_unit_test(a_supervisor_that_cannot_poll_reads_to_the_end),
#endif
	    cmocka_unit_test(a_closed_stdout_does_not_stop_the_reading),
	    cmocka_unit_test(a_gibibyte_takes_no_more_memory_than_ten_mebibytes),
	    cmocka_unit_test(a_writer_that_stays_is_drained_for_the_time_given_then_cut),
	    cmocka_unit_test(a_short_writer_that_stays_is_heard_to_its_end),
	    cmocka_unit_test(signals_are_passed_on),
	    cmocka_unit_test(a_second_signal_ends_a_stubborn_command),
	    cmocka_unit_test(bwrap_says_that_the_command_started),
	    cmocka_unit_test(a_followed_runner_beside_children_of_the_caller),
	    cmocka_unit_test(bwrap_that_fails_itself_says_not_started),
	    cmocka_unit_test(a_bwrap_killed_over_its_command_is_lost),
	    cmocka_unit_test(nothing_is_added_where_the_argv_has_its_own_status_channel),
	    cmocka_unit_test(a_bwrap_that_others_can_change_proves_nothing),
	    cmocka_unit_test(no_attack_on_the_status_channel_changes_what_is_known),
	    cmocka_unit_test(a_runner_that_executes_in_its_own_place_is_followed_by_the_kernel),
	    cmocka_unit_test(a_followed_command_runs_free),
	    cmocka_unit_test(the_fixed_merge_wrapper_is_seen_through),
	    cmocka_unit_test(a_script_without_an_interpreter_line_runs_in_the_shell),
	    cmocka_unit_test(our_descriptors_cannot_be_opened_by_the_command),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
