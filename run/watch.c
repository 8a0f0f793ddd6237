/*
 * The first exec of the wrapped command, seen by the kernel without a gap: the runner's
 * tree is followed by ptrace until anything is executed after the runner itself, then
 * let go, before that program's first instruction. What runs afterwards runs untraced.
 *
 * Used only where it cannot change what happens: not over set-id runners, and without
 * privileges only where the runner sets no_new_privs (an unprivileged tracer would take
 * the set-uid bit from the command).
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_internal.h"
#include "trace.h"

#define OPTIONS \
	(PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)

bool run_watch_attach(run_watch *w, pid_t pid, const sw_run_program *program)
{
	w->program = program;
	w->main = pid;
	/* a tree under the filter must not outlive who answers for it */
	long more =
	    w->trace ? PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL : 0;
	w->on = ptrace(PTRACE_SEIZE, pid, 0, OPTIONS | more) == 0;
	w->whole = w->on;
	if (w->trace)
		w->trace->on = w->on;
	if (w->on)
		w->pids[w->n++] = pid;
	return w->on;
}

static void forget(run_watch *w, pid_t pid)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->pids[i] == pid)
			w->pids[i] = w->pids[--w->n];
	if (w->n == 0 && w->letting_go)
		w->on = false;
}

static void remember(run_watch *w, pid_t pid)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->pids[i] == pid)
			return;
	if (w->n < RUN_WATCH_PIDS)
		w->pids[w->n++] = pid;
	if (w->n > RUN_WATCH_MAX)
		run_watch_let_go(w); /* no runner starts so many processes before the command */
}

void run_watch_let_go(run_watch *w)
{
	if (!w->on || w->letting_go)
		return;
	w->letting_go = true;
	if (!w->seen)
		w->whole = false;
	for (size_t i = 0; i < w->n; i++)
		ptrace(PTRACE_INTERRUPT, w->pids[i], 0, 0);
}

void run_watch_gone(run_watch *w, pid_t pid)
{
	if (w->trace)
		run_trace_gone(w->trace, pid);
	else if (w->on)
		forget(w, pid);
}

/*
 * A child of a followed process is followed from its birth, and stands still until its first stop
 * is taken. It is nobody's child here: who waits by number must hear of it from its parent.
 */
static void newborn(run_watch *w, pid_t parent, int event)
{
	unsigned long pid;
	bool birth = event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
	             event == PTRACE_EVENT_CLONE;
	if (w->by_number && birth && ptrace(PTRACE_GETEVENTMSG, parent, 0, &pid) == 0)
		remember(w, (pid_t)pid);
}

static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/*
 * The first exec of the process that was made is the runner's own. Every later one in its tree
 * is the command's, whatever file it is: runner and command may be the same (busybox, a
 * runner within itself), and the runners that are proved in this way start no helpers.
 */
static bool executes_command(run_watch *w, pid_t pid)
{
	bool runner = pid == w->main && !w->runner_executed;
	w->runner_executed |= runner;
	return !runner;
}

/* Nobody is let go: each stop is looked at and the process sent on. */
static void traced_stop(run_watch *w, pid_t pid, int sig, int event)
{
	int deliver = 0;
	bool ends = false, group = event == PTRACE_EVENT_STOP && is_stop_signal(sig);
	if (event == PTRACE_EVENT_SECCOMP) {
		bool refused = run_trace_filter_answers(w->trace, pid);
		ends = run_trace_begin(w->trace, pid);
		if (refused)
			run_trace_filter_refuse(pid);
	} else if (event == PTRACE_EVENT_EXEC) {
		unsigned long old;
		/* the thread that executes gives its own number up for its leader's */
		if (ptrace(PTRACE_GETEVENTMSG, pid, 0, &old) == 0 && (pid_t)old != pid)
			run_trace_gone(w->trace, (pid_t)old);
		/* runners that are only traced may start helpers and themselves again */
		bool first = executes_command(w, pid) && !w->seen &&
		             (w->proves || run_other_program_runs(pid, w->program, 0));
		w->seen |= first;
		run_trace_executed(w->trace, pid, first);
	} else if (event == PTRACE_EVENT_STOP) {
		run_trace_born(w->trace, pid);
	} else if (event == 0 && sig == (SIGTRAP | 0x80)) {
		run_trace_call(w->trace, pid);
	} else if (event == 0) {
		deliver = sig;
	}
	int how = group                                      ? PTRACE_LISTEN
	          : ends || run_trace_follows(w->trace, pid) ? PTRACE_SYSCALL
	                                                     : PTRACE_CONT;
	ptrace(how, pid, 0, (void *)(intptr_t)deliver);
}

void run_watch_stopped(run_watch *w, pid_t pid, int status)
{
	int sig = status & 0xff, event = status >> 8;
	if (w->trace) {
		traced_stop(w, pid, sig, event);
		return;
	}
	newborn(w, pid, event);
	if (event == PTRACE_EVENT_EXEC && executes_command(w, pid)) {
		w->seen = true;
		run_watch_let_go(w);
	}
	remember(w, pid);
	if (w->letting_go) {
		/* a signal on its way is delivered by letting go; a group stop goes on */
		bool group = event == PTRACE_EVENT_STOP && is_stop_signal(sig);
		ptrace(PTRACE_DETACH, pid, 0, (void *)(intptr_t)(event ? 0 : sig));
		if (group)
			kill(pid, sig);
		forget(w, pid);
		return;
	}
	if (event == PTRACE_EVENT_STOP && is_stop_signal(sig))
		ptrace(PTRACE_LISTEN, pid, 0, 0);
	else
		ptrace(PTRACE_CONT, pid, 0, (void *)(intptr_t)(event ? 0 : sig));
}
