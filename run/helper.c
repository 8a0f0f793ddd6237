/* A small program run for its answer: bounded in time and size, no terminal, no input. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_internal.h"

static _Noreturn void helper_child(char *const *argv, int out)
{
	sigset_t none;
	sigemptyset(&none);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0)
		_exit(126);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(argv[0], argv);
	_exit(127);
}

int run_helper(char *const *argv, int64_t timeout_ns, char *out, size_t out_size, int *exit_code)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC))
		return SW_EIO;
	pid_t pid = fork();
	if (pid < 0) {
		close(p[0]);
		close(p[1]);
		return SW_EIO;
	}
	if (pid == 0)
		helper_child(argv, p[1]);
	close(p[1]);
	int64_t until = sw_monotonic_ns() + timeout_ns;
	size_t n = 0;
	bool late = false;
	for (;;) {
		int64_t left = until - sw_monotonic_ns();
		struct pollfd pf = {.fd = p[0], .events = POLLIN};
		int got = left > 0 ? sw_poll(&pf, 1, left) : 0;
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			late = true;
			break;
		}
		char bytes[4096];
		ssize_t k = read(p[0], bytes, sizeof bytes);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			break;
		size_t room = out_size - 1 - n, take = (size_t)k < room ? (size_t)k : room;
		memcpy(out + n, bytes, take);
		n += take;
	}
	out[n] = '\0';
	close(p[0]);
	int status = 0;
	if (late)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (late)
		return SW_EBUSY;
	*exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return SW_OK;
}
