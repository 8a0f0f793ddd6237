/* child.c - see child.h. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DRAIN_MS 100 /* for a writer that outlives the child */

static const int reset_signals[] = {SIGPIPE, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD, SIGALRM};

/* Each of these can run out of memory, and without it the child would have what is the caller's. */
static int set_up(posix_spawn_file_actions_t *fa, posix_spawnattr_t *at, const pb_command *c,
                  int in, int out)
{
	sigset_t none, defaults;
	sigemptyset(&none);
	sigemptyset(&defaults);
	for (size_t i = 0; i < sizeof(reset_signals) / sizeof(*reset_signals); i++)
		sigaddset(&defaults, reset_signals[i]);
	int rc = posix_spawnattr_setflags(at, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
	                                          POSIX_SPAWN_SETSIGDEF);
	if (!rc)
		rc = posix_spawnattr_setsigmask(at, &none);
	if (!rc)
		rc = posix_spawnattr_setsigdefault(at, &defaults);
	if (!rc)
		rc = posix_spawn_file_actions_addchdir_np(fa, c->cwd ? c->cwd : "/");
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(fa, in, 0);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(fa, out, 1);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(fa, out, 2);
	if (!rc)
		rc = posix_spawn_file_actions_addclosefrom_np(fa, 3);
	return rc;
}

static int spawn_program(const pb_command *c, int in, int out, pid_t *pid)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	if (posix_spawn_file_actions_init(&fa))
		return ENOMEM;
	if (posix_spawnattr_init(&at)) {
		posix_spawn_file_actions_destroy(&fa);
		return ENOMEM;
	}
	int rc = set_up(&fa, &at, c, in, out);
	if (!rc)
		rc = posix_spawn(pid, c->argv[0], &fa, &at, c->argv, c->envp);
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&at);
	return rc;
}

extern char **environ;

static int spawn_child(const pb_command *c, int in, int out, pid_t *pid)
{
	*pid = fork();
	if (*pid < 0)
		return errno;
	if (*pid)
		return 0;
	setsid();
	sigset_t none;
	sigemptyset(&none);
	for (size_t i = 0; i < sizeof(reset_signals) / sizeof(*reset_signals); i++)
		signal(reset_signals[i], SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	int argc = 0;
	while (c->argv[argc])
		argc++;
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || chdir(c->cwd ? c->cwd : "/"))
		_exit(125);
	environ = (char **)c->envp;
	_exit(c->child(argc, (char **)c->argv));
}

static void keep(pb_outcome *o, const char *p, size_t n)
{
	size_t room = SW_PROBE_OUTPUT_MAX - o->n;
	if (n > room)
		n = room;
	memcpy(o->out + o->n, p, n);
	o->n += n;
	o->out[o->n] = '\0';
}

/* Reads what is there. False: the end, nobody writes any more. */
static bool drain(pb_outcome *o, int fd)
{
	char buf[8192];
	for (;;) {
		ssize_t n = read(fd, buf, sizeof(buf));
		if (n > 0)
			keep(o, buf, (size_t)n);
		else if (n == 0)
			return false;
		else if (errno != EINTR)
			return errno == EAGAIN;
	}
}

static bool reaped(pid_t pid, int *status)
{
	pid_t r;
	do
		r = waitpid(pid, status, WNOHANG);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		*status = 0; /* somebody else reaped it: nothing is known, the files decide */
	return r != 0;
}

static int left_ms(int64_t until)
{
	int64_t ms = (until - sw_monotonic_ns() + 999999) / 1000000;
	return ms < 0 ? 0 : ms > 1000000 ? 1000000 : (int)ms;
}

/*
 * The caller holds these back while its files lie about, so that they are always removed;
 * one that waits ends the probe at once.
 */
static bool asked_to_stop(void)
{
	sigset_t waiting;
	return !sigpending(&waiting) &&
	       (sigismember(&waiting, SIGINT) || sigismember(&waiting, SIGTERM) ||
	        sigismember(&waiting, SIGHUP));
}

static void watch(const pb_command *c, pb_outcome *o, int fd, pid_t pid)
{
	int64_t until = sw_monotonic_ns() + (int64_t)c->deadline_ms * 1000000;
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), status = 0;
	bool open = true, done = false;
	while (!done) {
		struct pollfd p[2] = {{.fd = open ? fd : -1, .events = POLLIN},
		                      {.fd = pidfd, .events = POLLIN}};
		int wait = left_ms(until);
		if (wait > 100)
			wait = 100;
		/* without pidfd (old kernels) the end is looked for every few ms */
		poll(p, 2, pidfd >= 0 ? wait : wait > 3 ? 3 : wait);
		if (open && (p[0].revents & (POLLIN | POLLHUP | POLLERR)))
			open = drain(o, fd);
		done = reaped(pid, &status);
		if (!done && (!left_ms(until) || asked_to_stop())) {
			o->timed_out = true;
			kill(-pid, SIGKILL);
			kill(pid, SIGKILL);
			while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
				;
			done = true;
		}
	}
	int64_t cut = sw_monotonic_ns() + DRAIN_MS * 1000000LL;
	while (open && left_ms(cut)) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (poll(&p, 1, left_ms(cut)) > 0)
			open = drain(o, fd);
	}
	if (open)
		kill(-pid, SIGKILL); /* what it left behind in its session */
	if (pidfd >= 0)
		close(pidfd);
	o->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	o->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

void pb_run(const pb_command *c, pb_outcome *o)
{
	*o = (pb_outcome){.code = -1};
	int64_t start = sw_monotonic_ns();
	int fds[2], in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	o->out = calloc(1, SW_PROBE_OUTPUT_MAX + 1);
	if (in < 0 || !o->out || pipe2(fds, O_CLOEXEC)) {
		o->spawn_errno = o->out ? errno : ENOMEM;
		if (in >= 0)
			close(in);
		return;
	}
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	pid_t pid = -1;
	o->spawn_errno =
	    c->child ? spawn_child(c, in, fds[1], &pid) : spawn_program(c, in, fds[1], &pid);
	close(in);
	close(fds[1]);
	o->spawned = !o->spawn_errno;
	if (o->spawned)
		watch(c, o, fds[0], pid);
	close(fds[0]);
	o->ms = (double)(sw_monotonic_ns() - start) / 1e6;
}

void pb_outcome_free(pb_outcome *o)
{
	free(o->out);
	*o = (pb_outcome){0};
}

sw_exit pb_exit(const pb_outcome *o)
{
	if (o->timed_out)
		return (sw_exit){.timed_out = true};
	return o->signal ? (sw_exit){.signal = o->signal} : sw_exit_code(o->code);
}
