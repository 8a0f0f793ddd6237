/* run: proof of start. One rule a test. */
#include "helpers.h"

#include <sys/stat.h>

static sw_run_report r;
static seen s;

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

int main(void)
{
	/* An attacker writes to every descriptor that the supervisor holds: none may be a
	 * stranger's. */
	close_range(3, ~0u, 0);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bwrap_says_that_the_command_started),
	    cmocka_unit_test(a_followed_runner_beside_children_of_the_caller),
	    cmocka_unit_test(bwrap_that_fails_itself_says_not_started),
	    cmocka_unit_test(a_bwrap_killed_over_its_command_is_lost),
	    cmocka_unit_test(nothing_is_added_where_the_argv_has_its_own_status_channel),
	    cmocka_unit_test(a_bwrap_that_others_can_change_proves_nothing),
	    cmocka_unit_test(no_attack_on_the_status_channel_changes_what_is_known),
	    cmocka_unit_test(a_runner_that_executes_in_its_own_place_is_followed_by_the_kernel),
	    cmocka_unit_test(a_followed_command_runs_free),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
