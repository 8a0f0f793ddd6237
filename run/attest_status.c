/*
 * bwrap --json-status-fd: an object with "exit-code" is written only after execvp() of
 * the command has succeeded; one with "child-pid" says nothing, it comes before.
 *
 * The descriptor is one end of a socket pair, not a pipe: a pipe could be opened again
 * through /proc/PID/fd by a command that shares the pid namespace and the user. A socket
 * cannot, and each message carries its sender's pid from the kernel: only words of the
 * runner's own process count, even if the command got hold of the descriptor by
 * pidfd_getfd(). What remains is ptrace on the runner itself, which a command can do
 * only where it runs as the same user outside every namespace; docs/run.md says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run_internal.h"

#define PROGRAM_MAX (4u << 20)

/* bwrap before 0.3.2 does not know the option and would refuse to run. */
static bool knows_option(const char *path)
{
	char *text;
	size_t n;
	if (sw_read_file(path, PROGRAM_MAX, &text, &n, NULL))
		return false;
	bool known = memmem(text, n, "--json-status-fd", 16) != NULL;
	free(text);
	return known;
}

/* Among the runner's own options; behind one we do not know, anywhere. */
static bool has_own_status(const run_attest *a)
{
	size_t i = 1;
	while (i < a->argc && a->argv[i][0] == '-') {
		const run_option *o = run_bwrap_option(a->argv[i]);
		if (!o) {
			if (!strcmp(a->argv[i], "--"))
				return false;
			for (; i < a->argc; i++)
				if (!strcmp(a->argv[i], "--args") ||
				    !strcmp(a->argv[i], "--json-status-fd"))
					return true;
			return false;
		}
		if (!strcmp(o->name, "--args") || !strcmp(o->name, "--json-status-fd"))
			return true;
		i += 1 + (size_t)o->values;
	}
	return false;
}

static const char *plan(run_attest *a)
{
	if (has_own_status(a))
		return "the argv uses --json-status-fd or --args itself";
	if (!knows_option(a->program->path))
		return "this bwrap has no --json-status-fd";
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return "no socket pair could be made";
	a->fd = pair[0];
	a->child_fd = pair[1];
	int on = 1;
	char number[16];
	snprintf(number, sizeof number, "%d", a->child_fd);
	if (setsockopt(a->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) ||
	    !run_attest_insert(a, 1, "--json-status-fd", number)) {
		close(pair[0]);
		close(pair[1]);
		a->fd = a->child_fd = -1;
		return "the socket pair could not be used";
	}
	fcntl(a->fd, F_SETFL, O_NONBLOCK);
	a->wants_watch = !a->program->setid; /* bwrap sets no_new_privs always */
	return NULL;
}

static void take_object(run_attest *a, const char *text, size_t n)
{
	json_t *j = json_loadb(text, n, 0, NULL);
	if (json_is_integer(json_object_get(j, "exit-code")))
		a->exit_code_seen = true;
	if (json_is_integer(json_object_get(j, "child-pid")))
		a->child_pid_seen = true;
	json_decref(j);
}

static void take(run_attest *a, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (a->text_len == sizeof a->text)
			a->text_len = 0; /* no object of bwrap's is as long */
		a->text[a->text_len++] = bytes[i];
		if (bytes[i] == '}') { /* its objects are flat */
			take_object(a, a->text, a->text_len);
			a->text_len = 0;
		}
	}
}

static void readable(run_attest *a)
{
	while (a->fd >= 0) {
		char bytes[1024];
		union {
			char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int) * 8)];
			struct cmsghdr align;
		} control;
		struct iovec iov = {bytes, sizeof bytes};
		struct msghdr m = {.msg_iov = &iov,
		                   .msg_iovlen = 1,
		                   .msg_control = &control,
		                   .msg_controllen = sizeof control};
		ssize_t n = recvmsg(a->fd, &m, MSG_CMSG_CLOEXEC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n <= 0) {
			/*
			 * We hold the other end open too, so it never ends by itself: somebody shut
			 * it down to keep the last word from us. Silence proves nothing any more.
			 */
			a->foreign = a->silenced = true;
			run_attest_look(a);
			close(a->fd);
			a->fd = -1;
			return;
		}
		pid_t sender = -1;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
			if (c->cmsg_level != SOL_SOCKET)
				continue;
			if (c->cmsg_type == SCM_CREDENTIALS) {
				struct ucred who;
				memcpy(&who, CMSG_DATA(c), sizeof who);
				sender = who.pid;
			} else if (c->cmsg_type == SCM_RIGHTS) { /* not ours to keep */
				size_t fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
				for (size_t i = 0; i < fds; i++) {
					int fd;
					memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
					close(fd);
				}
			}
		}
		if (sender == a->pid && !a->pid_gone)
			take(a, bytes, (size_t)n);
		else
			a->foreign = true;
	}
}

static bool look(run_attest *a)
{
	return run_other_program_runs(a->pid, a->program, 3);
}

/*
 * A command that is root in our own user namespace can meddle with bwrap's descriptors
 * and so keep it from saying that the command ran. Then its silence counts only if the
 * kernel agrees.
 */
static bool silence_counts(const run_attest *a)
{
	if (a->silenced || a->foreign)
		return a->watch.whole;
	if (geteuid() != 0)
		return true;
	for (size_t i = 1; i < a->argc && a->argv[i][0] == '-';) {
		const run_option *o = run_bwrap_option(a->argv[i]);
		if (!o)
			break;
		if (!strcmp(o->name, "--unshare-user") || !strcmp(o->name, "--unshare-all") ||
		    !strcmp(o->name, "--userns"))
			return true;
		i += 1 + (size_t)o->values;
	}
	return a->watch.whole || !a->child_pid_seen;
}

static void conclude(run_attest *a, int code, int sig, bool we_killed)
{
	(void)code;
	readable(a);
	if (a->exit_code_seen) {
		a->started = SW_STARTED_YES;
		a->source = SW_SOURCE_STATUS_FD;
	} else if (a->kernel_seen) {
		/* the runner was ended before it could say how the command ended */
		a->started = SW_STARTED_YES;
		a->source = SW_SOURCE_KERNEL;
		a->lost = sig != 0 && !we_killed;
	} else if (sig == 0 && !we_killed && silence_counts(a)) {
		a->started = SW_STARTED_NO;
		a->source = SW_SOURCE_STATUS_FD;
	}
}

const run_attest_method run_attest_status_fd = {
    .name = "status-fd", .plan = plan, .readable = readable, .look = look, .conclude = conclude};
