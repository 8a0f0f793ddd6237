/* Making the child: descriptors, signals, and word from execve() itself. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_internal.h"
#include "trace.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

static const int held[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};

int run_signals_hold(run_signals *s, sw_error *err)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
		sigaddset(&set, held[i]);
	/*
	 * A caller may have left SIGCHLD ignored: the kernel would then reap for us and
	 * the exit status would be lost.
	 */
	struct sigaction plain = {.sa_handler = SIG_DFL};
	sigaction(SIGCHLD, &plain, &s->old_chld);
	sigprocmask(SIG_BLOCK, &set, &s->old_mask);
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->fd >= 0)
		return SW_OK;
	int e = errno;
	run_signals_release(s);
	return sw_error_set(err, SW_EIO, "signalfd: %s", strerror(e));
}

void run_signals_release(run_signals *s)
{
	if (s->fd >= 0) {
		struct signalfd_siginfo si; /* what was seen is not to strike again */
		while (read(s->fd, &si, sizeof si) > 0)
			;
		close(s->fd);
	}
	s->fd = -1;
	sigaction(SIGCHLD, &s->old_chld, NULL);
	sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}

static void set_cloexec(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFD);
	if (flags >= 0)
		fcntl(fd, F_SETFD, on ? flags | FD_CLOEXEC : flags & ~FD_CLOEXEC);
}

/* Everything from 3 on closes at exec, but for those chosen. */
static void choose_descriptors(const run_spawn *s)
{
	if (!s->keep_all) {
		int rc = -1;
#ifdef SYS_close_range
		rc = (int)syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
#endif
		if (rc) { /* before Linux 5.11 */
			long max = sysconf(_SC_OPEN_MAX);
			if (max < 0 || max > 65536)
				max = 65536;
			for (int fd = 3; fd < max; fd++)
				set_cloexec(fd, true);
		}
	}
	for (size_t i = 0; i < s->n_keep; i++)
		if (s->keep[i] > 2)
			set_cloexec(s->keep[i], false);
}

static int become(int from, int to)
{
	if (from < 0)
		return 0;
	if (from == to) {
		set_cloexec(to, false);
		return 0;
	}
	return dup2(from, to) < 0 ? -1 : 0;
}

/* A script without "#!" is run by the shell, as execvp() and every shell do it. */
static void exec_by_shell(const run_spawn *s)
{
	size_t n = 0;
	while (s->argv[n])
		n++;
	char **more = calloc(n + 3, sizeof *more);
	if (!more)
		return;
	more[0] = (char *)(uintptr_t) "/bin/sh";
	more[1] = (char *)(uintptr_t)s->path;
	for (size_t i = 1; i < n; i++)
		more[i + 1] = s->argv[i];
	execve(more[0], more, s->env);
	errno = ENOEXEC;
}

/*
 * kill(0) means the whole group, whatever the pid namespace: without one of its own the
 * command could stop or kill us and our caller. In a terminal's foreground it has to stay in
 * the group that may read there.
 */
static void leave_group(void)
{
	int tty = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
	bool foreground = tty >= 0 && tcgetpgrp(tty) == getpgrp();
	if (tty >= 0)
		close(tty);
	if (!foreground)
		setpgid(0, 0);
}

static _Noreturn void child(const run_spawn *s, int report, int go, pid_t parent)
{
	int e = 0;
	char byte = 'n';
	/* If the supervisor is killed, nobody is left who could end or record the command. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(SW_RUN_EXIT_REFUSED);
	if (s->cgroup)
		run_cgroup_join(s->cgroup);
	if (s->own_group)
		leave_group();
	if (become(s->in, 0) || become(s->out, 1) || become(s->err, 2) || (s->cwd && chdir(s->cwd)))
		e = errno;
	if (!e) {
		choose_descriptors(s);
		if (go >= 0) /* until we are followed */
			(void)!read(go, &byte, 1);
		/* a filter whose stops nobody answers would break every call in it */
		if (s->filter && byte == 'y')
			e = run_trace_install(s->filter);
		/* SIGCHLD stays at its default: ignored, as some callers leave it, a runner
		 * would wait for ever for the end of the command */
		sigprocmask(SIG_SETMASK, &s->signals->old_mask, NULL);
		if (!e) {
			execve(s->path, s->argv, s->env);
			if (errno == ENOEXEC)
				exec_by_shell(s);
			e = errno;
		}
	}
	(void)!write(report, &e, sizeof e);
	_exit(e == ENOENT ? 127 : 126);
}

/* Waits for execve(). A child that is followed may stop on the way and must be sent on. */
static int exec_result(const run_spawn *s, pid_t pid, int from)
{
	int e = 0;
	for (;;) {
		bool on = s->watch && s->watch->on;
		struct pollfd pf = {.fd = from, .events = POLLIN};
		int got =
		    sw_poll(&pf, 1, on ? 1000000 : -1); /* the command may be at work already */
		if (got > 0) {
			ssize_t n = read(from, &e, sizeof e);
			if (n >= 0 || errno != EINTR)
				return n == (ssize_t)sizeof e ? e : 0;
		}
		siginfo_t si = {0};
		if (on && waitid(P_PID, (id_t)pid, &si, WSTOPPED | WNOHANG | __WALL) == 0 &&
		    si.si_pid && si.si_code == CLD_TRAPPED)
			run_watch_stopped(s->watch, pid, si.si_status);
	}
}

pid_t run_spawn_child(const run_spawn *s, int *exec_errno, sw_error *err)
{
	int report[2], go[2] = {-1, -1};
	if (pipe2(report, O_CLOEXEC))
		return sw_error_set(err, SW_EIO, "no pipe: %s", strerror(errno));
	if (s->watch && pipe2(go, O_CLOEXEC))
		go[0] = go[1] = -1;
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0) {
		if (go[1] >= 0)
			close(go[1]);
		child(s, report[1], go[0], parent);
	}
	int e = errno;
	close(report[1]);
	if (pid > 0 && go[1] >= 0 && run_watch_attach(s->watch, pid, s->program))
		(void)!write(go[1], "y", 1);
	if (go[0] >= 0) { /* its end of file lets the child go on */
		close(go[0]);
		close(go[1]);
	}
	if (pid > 0) {
		*exec_errno = exec_result(s, pid, report[0]);
	} else {
		sw_error_set(err, SW_EIO, "no process could be made: %s", strerror(e));
		sw_error_more(err, NULL, "the limit of processes or of memory is reached",
		              "free processes or raise ulimit -u, then run again");
		pid = SW_EIO;
	}
	close(report[0]);
	return pid;
}
