/* run: descriptors, signals set, exits. One rule a test. */
#include "helpers.h"

#include <sys/prctl.h>
#include <sys/stat.h>

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
	    cmocka_unit_test(the_fixed_merge_wrapper_is_seen_through),
	    cmocka_unit_test(a_script_without_an_interpreter_line_runs_in_the_shell),
	    cmocka_unit_test(our_descriptors_cannot_be_opened_by_the_command),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
