/*
 * Our own Landlock launcher: it writes "ready" once the sandbox stands, and its end of
 * the pipe is close-on-exec, so that "ready" followed by the end of the pipe means that
 * execve() has replaced it by the command. The command never holds the descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run_internal.h"

static const char *plan(run_attest *a)
{
	struct stat st;
	size_t at = a->shape->options;
	/* only this very program is known to speak like that, wherever it was built */
	if (stat("/proc/self/exe", &st) || st.st_dev != a->program->dev ||
	    st.st_ino != a->program->ino)
		return "the launcher is not this program";
	for (size_t i = at; i < a->argc && strcmp(a->argv[i], "--") != 0; i++)
		if (!strcmp(a->argv[i], "--exec-fd"))
			return "the argv uses --exec-fd itself";
	int p[2];
	if (pipe2(p, O_CLOEXEC))
		return "no pipe could be made";
	char number[16];
	snprintf(number, sizeof number, "%d", p[1]);
	a->fd = p[0];
	a->child_fd = p[1];
	if (!run_attest_insert(a, at, "--exec-fd", number))
		return "out of memory";
	fcntl(a->fd, F_SETFL, O_NONBLOCK);
	a->wants_watch = !a->program->setid; /* it sets no_new_privs always */
	return NULL;
}

static void readable(run_attest *a)
{
	while (a->fd >= 0) {
		size_t room = sizeof a->text - a->text_len;
		char sink[64];
		ssize_t n =
		    read(a->fd, room ? a->text + a->text_len : sink, room ? room : sizeof sink);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		if (n == 0) {
			close(a->fd);
			a->fd = -1;
			a->ended = true;
			return;
		}
		if (room)
			a->text_len += (size_t)n;
	}
}

static void conclude(run_attest *a, int code, int sig, bool we_killed)
{
	(void)code;
	readable(a);
	bool ready = a->text_len == 6 && !memcmp(a->text, "ready\n", 6);
	bool failed = memmem(a->text, a->text_len, "failed", 6) != NULL;
	/* between "ready" and execve() it does nothing that could end it but a signal */
	bool certain = sig == 0 || a->kernel_seen;
	if (ready && a->ended && certain) {
		a->started = SW_STARTED_YES;
		a->source = SW_SOURCE_EXEC_PIPE;
	} else if (failed || (!ready && sig == 0 && !we_killed)) {
		a->started = SW_STARTED_NO;
		a->source = SW_SOURCE_EXEC_PIPE;
	}
}

static bool look(run_attest *a)
{
	/* the launcher is this program and so is its image: only another one is the command */
	return run_other_program_runs(a->pid, a->program, 0);
}

const run_attest_method run_attest_launcher = {
    .name = "exec-pipe", .plan = plan, .readable = readable, .look = look, .conclude = conclude};
