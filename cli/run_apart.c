/*
 * A process of its own for `run`, where this one has children already (`job & exec sandwitness
 * run ...`). Orphans come to the subreaper above them: beside such children nobody could tell
 * the command's from theirs. So this process only waits, and passes signals and status on.
 */
#include "run_cli.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static bool has_children(void)
{
	siginfo_t si;
	return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/* Ends as the other did. */
static int status_of(int status, const sigset_t *mask)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	struct rlimit none = {0, 0}; /* its dump is enough */
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static int wait_for(pid_t pid, const sigset_t *set, const sigset_t *mask)
{
	int status;
	prctl(PR_SET_DUMPABLE, 0); /* it holds the descriptors of the verdict too */
	for (;;) {
		siginfo_t si;
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status_of(status, mask);
		int sig = sigwaitinfo(set, &si);
		/* a terminal signals the whole group, the other one with it */
		if (sig > 0 && sig != SIGCHLD && si.si_code != SI_KERNEL)
			kill(pid, sig);
	}
}

int run_cli_apart(void)
{
	static const int passed[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t set, mask;
	if (!has_children())
		return -1;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
		sigaddset(&set, passed[i]);
	sigprocmask(SIG_BLOCK, &set, &mask);
	struct sigaction plain = {.sa_handler = SIG_DFL}, old;
	sigaction(SIGCHLD, &plain, &old);
	pid_t parent = getpid(), pid = fork();
	if (pid > 0)
		return wait_for(pid, &set, &mask);
	sigaction(SIGCHLD, &old, NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(SW_RUN_EXIT_REFUSED);
	}
	return -1; /* where no process could be made, here: docs/run.md says what that means */
}
