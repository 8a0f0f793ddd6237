/* What happens between the start of the command and the end of its last descendant. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "loop.h"

#define MS INT64_C(1000000)
#define SETTLE_NS (50 * MS)       /* a runner's own helpers end a moment after it */
#define LINGER_NS (5000 * MS)     /* podman tidies up after its client has ended */
#define SLOW_READER_NS (500 * MS) /* after a deadline */
#define KILL_NS (900 * MS)        /* with the grace: two seconds at most */
#define READS_PER_TURN 16
#define SIGNALS_PER_TURN 4
#define SLACK_NS 50000 /* the kernel's own default */

/* ---- output ---- */

static void close_in(run_loop *l)
{
	if (l->in >= 0)
		close(l->in);
	l->in = -1;
	l->owed = 0;
}

static void drop_reader(run_loop *l)
{
	if (!l->pump)
		return;
	l->r->passed_bytes = run_pump_written(l->pump);
	l->dropped += run_pump_free(l->pump);
	l->pump = NULL;
	l->blocked = false;
	l->abandoned = true;
}

static void read_output(run_loop *l)
{
	for (int i = 0; i < READS_PER_TURN && l->in >= 0; i++) {
		void *at = l->scratch;
		size_t room = sizeof l->scratch;
		if (l->pump && (room = run_pump_room(l->pump, &at)) == 0) {
			l->blocked = true;
			return;
		}
		if (l->cut && (int64_t)room > l->owed) /* what came later is nobody's */
			room = (size_t)l->owed;
		ssize_t n = room ? read(l->in, at, room) : 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			if (l->cut) /* what was owed has been taken out of the pipe by others */
				close_in(l);
			return;
		}
		if (n <= 0) {
			close_in(l);
			return;
		}
		if (!l->looked_at_output) { /* whoever wrote this is alive now, perhaps not later */
			l->looked_at_output = true;
			run_attest_look(l->attest);
		}
		run_attest_output(l->attest, at, (size_t)n);
		if (l->o->on_output)
			l->o->on_output(l->o->ctx, at, (size_t)n);
		l->r->output_bytes += (uint64_t)n;
		if (l->pump)
			run_pump_commit(l->pump, (size_t)n);
		else if (l->abandoned)
			l->dropped += (uint64_t)n;
		l->owed = l->owed > n ? l->owed - n : 0;
		if (l->cut && l->owed == 0)
			close_in(l);
	}
}

static void pump_event(run_loop *l)
{
	run_pump_clear_event(l->pump);
	l->blocked = false;
	int e = run_pump_error(l->pump);
	if (e && !l->told_closed) {
		l->told_closed = true;
		run_note(l, SW_RUN_NOTE_STDOUT_CLOSED, e, strerror(e));
	}
}

/* ---- signals ---- */

/* What ends the runner after this is run's own doing, and no loss. */
static void reached_runner(run_loop *l, int sig)
{
	if (!l->tree.main_done)
		l->sent_to_runner |= UINT64_C(1) << (sig - 1);
}

/*
 * bwrap passes no signals on: one that ends bwrap ends the command by SIGKILL, without a
 * chance to tidy up and without bwrap's word on how it ended. The command gets it instead.
 */
static bool spares_runner(const run_loop *l)
{
	return !strcmp(l->r->shape.backend, "bwrap") && l->r->program.path[0] &&
	       l->r->shape.runner == 0;
}

static unsigned signal_command(run_loop *l, int sig)
{
	unsigned sent = 0;
	if (run_tree_walk(&l->tree))
		return 0;
	for (size_t i = 0; i < l->tree.n; i++) {
		const run_proc *p = &l->tree.procs[i];
		if (p->pid == l->tree.main_pid || run_same_program_runs(p->pid, &l->r->program))
			continue;
		sent += run_tree_signal_one(&l->tree, p, sig);
	}
	return sent;
}

/*
 * Signals that the command's own processes send are passed on like others, but whoever asked for
 * the runner's end by one of them has no claim that run ended it. A sender that is gone already
 * may have been one of them.
 */
static bool sent_from_outside(const run_loop *l, const struct signalfd_siginfo *si)
{
	/* of these the kernel fills in the sender; who queues a signal names one at will */
	if (si->ssi_code != SI_USER && si->ssi_code != SI_TKILL)
		return false;
	return si->ssi_pid == 0 || run_is_below((pid_t)si->ssi_pid, l->tree.self) == 0;
}

static void forward(run_loop *l, const struct signalfd_siginfo *si)
{
	int sig = (int)si->ssi_signo;
	bool from_terminal = si->ssi_code == SI_KERNEL;
	bool outside = from_terminal || sent_from_outside(l, si);
	run_attest_look(l->attest);
	l->r->forwarded = sig;
	run_note(l, SW_RUN_NOTE_FORWARDED, sig,
	         outside ? NULL : " (its sender was a process of the command's, or is gone)");
	if (l->tree.main_done)
		return;
	/* the terminal has signalled the whole foreground group, the command with it */
	if (from_terminal && getpgid(l->tree.main_pid) == getpgrp()) {
		reached_runner(l, sig);
		return;
	}
	if (spares_runner(l) && signal_command(l, sig))
		return;
	if (outside)
		reached_runner(l, sig);
	kill(l->tree.main_pid, sig); /* unreaped: the number is still its own */
}

#define CROWD 1000 /* a tree of so many is not asked to tidy up */

static void kill_all(run_loop *l);

static void begin_term(run_loop *l)
{
	l->phase = RUN_TERM_SENT;
	l->term_at = sw_monotonic_ns();
	l->ending_runner |= !l->tree.main_done;
	run_attest_look(l->attest);
	if (run_tree_walk(&l->tree)) {
		reached_runner(l, SIGTERM);
		if (!l->tree.main_done)
			kill(l->tree.main_pid, SIGTERM);
		unsigned n = run_tree_count(&l->tree);
		l->r->leftovers = n - (l->tree.main_done || n == 0 ? 0 : 1);
		run_note(l, SW_RUN_NOTE_BLIND, 0, NULL);
		return;
	}
	l->r->leftovers = (unsigned)l->tree.n - (l->tree.main_done || l->tree.n == 0 ? 0 : 1);
	if (l->tree.n > CROWD) {
		kill_all(l);
		return;
	}
	if (!spares_runner(l) || l->tree.main_done) {
		reached_runner(l, SIGTERM);
		run_tree_signal(&l->tree, SIGTERM);
	} else if (signal_command(l, SIGTERM) == 0) {
		/* only the runner is there, half-built: nothing that could tidy up */
		kill_all(l);
		return;
	}
	run_tree_signal(&l->tree, SIGCONT); /* a stopped process cannot act on TERM */
}

static void kill_all(run_loop *l)
{
	char text[200] = "";
	l->phase = RUN_KILLED;
	if (l->r->timed_out && l->attest->method && l->attest->method->end_outside) {
		l->attest->method->end_outside(l->attest, text, sizeof text);
		if (text[0])
			run_note(l, SW_RUN_NOTE_CONTAINER, 0, text);
	}
	l->ending_runner |= !l->tree.main_done;
	reached_runner(l, SIGKILL);
	run_cgroup_kill(&l->cgroup);
	/* what the grace did not use is there for the killing */
	l->r->survivors = run_tree_kill(&l->tree, l->term_at + l->grace + KILL_NS);
	/* dead, but held by somebody who traces it: its end cannot be seen here */
	if (!l->tree.main_done && !l->r->survivors)
		l->r->survivors = 1;
	if (l->r->survivors)
		run_note(l, SW_RUN_NOTE_SURVIVOR, l->r->survivors, NULL);
}

static void take_signals(run_loop *l)
{
	struct signalfd_siginfo si;
	/* a flood of them must not keep the deadline from its turn */
	for (int i = 0; i < SIGNALS_PER_TURN; i++) {
		if (read(l->signals.fd, &si, sizeof si) != (ssize_t)sizeof si)
			return;
		if (si.ssi_signo == SIGCHLD)
			continue; /* reaping is done after every wake-up */
		bool terminal = si.ssi_code == SI_KERNEL;
		if (l->tree.main_done) /* somebody is impatient */
			l->hurry = true;
		else
			forward(l, &si);
		if (!terminal && ++l->endings == 2 && l->phase == RUN_GOING)
			begin_term(l);
	}
}

/* ---- time ---- */

/* A runner that ended without a word cannot say whether the command ran; what it left can. */
static void look_at_orphans(run_loop *l)
{
	run_attest *a = l->attest;
	if (a->kernel_seen || !a->method || !a->method->look || run_tree_walk(&l->tree))
		return;
	for (size_t i = 0; i < l->tree.n && !a->kernel_seen; i++)
		a->kernel_seen = run_other_program_runs(l->tree.procs[i].pid, a->program, 0);
}

/* What counts by the number of the runner is read before that number can be used again. */
static void main_ends(void *ctx)
{
	run_attest *a = ctx;
	if (a->fd >= 0)
		a->method->readable(a);
	a->pid_gone = true;
}

static void reap(run_loop *l)
{
	bool was = l->tree.main_done;
	l->tree.main_ends = l->attest->fd >= 0 ? main_ends : NULL;
	l->tree.main_ends_ctx = l->attest;
	run_tree_reap(&l->tree);
	if (was || !l->tree.main_done)
		return;
	l->main_done_at = sw_monotonic_ns();
	if (!l->attest->exit_code_seen)
		look_at_orphans(l);
}

static void on_time(run_loop *l, int64_t now)
{
	if (l->phase == RUN_GOING && !l->tree.main_done && l->deadline && now >= l->deadline) {
		l->r->timed_out = true;
		run_note(l, SW_RUN_NOTE_DEADLINE, now - l->start, NULL);
		begin_term(l);
	} else if (l->phase == RUN_TERM_SENT && now >= l->term_at + l->grace) {
		kill_all(l);
		reap(l);
	}
	if (l->attest->next_look && now >= l->attest->next_look && !l->tree.main_done)
		run_attest_look(l->attest);
}

static int64_t sooner(int64_t a, int64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* Waits for anything to happen, `until` at the latest (0: no limit of its own). */
static void turn(run_loop *l, int64_t until)
{
	struct pollfd pf[5];
	int n = 0, at_in = -1, at_pump = -1, at_status = -1, at_log = -1;
	pf[n++] = (struct pollfd){.fd = l->signals.fd, .events = POLLIN};
	if (l->in >= 0 && !l->blocked) {
		at_in = n;
		pf[n++] = (struct pollfd){.fd = l->in, .events = POLLIN};
	}
	if (l->pump) {
		at_pump = n;
		pf[n++] = (struct pollfd){.fd = run_pump_event_fd(l->pump), .events = POLLIN};
	}
	if (l->attest->fd >= 0) {
		at_status = n;
		pf[n++] = (struct pollfd){.fd = l->attest->fd, .events = POLLIN};
	}
	if (l->kernel_log >= 0) {
		at_log = n;
		pf[n++] = (struct pollfd){.fd = l->kernel_log, .events = POLLIN};
	}
	int64_t next = until;
	if (!l->tree.main_done) {
		if (l->phase == RUN_GOING)
			next = sooner(next, l->deadline);
		next = sooner(next, l->attest->next_look);
	}
	if (l->phase == RUN_TERM_SENT)
		next = sooner(next, l->term_at + l->grace);
	int64_t now = sw_monotonic_ns();
	if (next) /* root can make this process sleep longer than it asks for */
		prctl(PR_SET_TIMERSLACK, SLACK_NS);
	int got = sw_poll(pf, (size_t)n, !next ? -1 : next > now ? next - now : 0);
	if (got > 0) {
		/* first: it is about processes that are reaped below */
		if (at_log >= 0 && pf[at_log].revents)
			run_kernel_log_read(l->kernel_log, l->tree.self, l->r);
		if (at_status >= 0 && pf[at_status].revents)
			l->attest->method->readable(l->attest);
		if (at_pump >= 0 && pf[at_pump].revents)
			pump_event(l);
		if (at_in >= 0 && pf[at_in].revents)
			read_output(l);
		if (pf[0].revents)
			take_signals(l);
	}
	reap(l);
	on_time(l, sw_monotonic_ns());
}

/* ---- after the command ---- */

/*
 * Those who write on after the command are heard for a while. Then its output ends: whoever
 * holds the pipe open is cut off, and what lies in it by then is still owed to the reader, who
 * may be slow. Nobody's end waits for the reader.
 */
static void hear_out(run_loop *l)
{
	int64_t end = l->main_done_at + l->drain;
	while (l->in >= 0 && !l->hurry && sw_monotonic_ns() < end)
		turn(l, end);
	if (l->in < 0)
		return;
	struct pollfd pf = {.fd = l->in, .events = POLLIN};
	if (sw_poll(&pf, 1, 0) == 1 && (pf.revents & POLLHUP))
		return; /* nobody can write any more: it ends by itself */
	int waiting = 0;
	if (ioctl(l->in, FIONREAD, &waiting) == 0)
		l->owed = waiting;
	l->cut = true;
	run_note(l, SW_RUN_NOTE_CUT, l->drain / MS, NULL);
	if (l->owed <= 0)
		close_in(l);
}

/* Waits until no child is left. */
static bool empty_within(run_loop *l, int64_t wait)
{
	int64_t now = sw_monotonic_ns(), end = now + wait;
	if (l->deadline && end > l->deadline) /* but a moment is given always */
		end = l->deadline > now + SETTLE_NS ? l->deadline : now + SETTLE_NS;
	for (;;) {
		if (run_tree_reap(&l->tree))
			return true;
		if (sw_monotonic_ns() >= end || l->hurry)
			return false;
		turn(l, end);
	}
}

static void end_leftovers(run_loop *l)
{
	bool engine = !strcmp(l->r->shape.backend, "podman");
	if (empty_within(l, engine && !l->r->timed_out ? LINGER_NS : SETTLE_NS))
		return;
	if (run_tree_walk(&l->tree) == SW_OK && l->tree.n == 0 && l->tree.n_before)
		return; /* only the process's own children are left */
	if (l->phase != RUN_KILLED) {
		if (l->phase == RUN_GOING)
			begin_term(l);
		while (l->phase == RUN_TERM_SENT && !run_tree_reap(&l->tree))
			turn(l, l->term_at + l->grace);
	}
	if (!run_tree_reap(&l->tree) && l->phase != RUN_KILLED)
		kill_all(l);
}

/* When a reader who does not read is given up; 0: never, as at any pipe. */
static int64_t patience(const run_loop *l)
{
	int64_t now = sw_monotonic_ns();
	if (l->r->timed_out)
		return now + SLOW_READER_NS;
	return l->deadline ? (l->deadline > now ? l->deadline : now) + SLOW_READER_NS : 0;
}

/* The rest of the output, and all of it to the reader. */
static void flush(run_loop *l)
{
	int64_t give_up = patience(l);
	while (l->in >= 0 || (l->pump && !run_pump_idle(l->pump))) {
		if (l->pump && (l->hurry || (give_up && sw_monotonic_ns() >= give_up)))
			drop_reader(l);
		if (l->cut && !l->blocked)
			read_output(l);
		if (l->in >= 0 || l->pump)
			turn(l, l->pump ? give_up : 0);
	}
	if (!l->pump)
		return;
	int e = run_pump_error(l->pump);
	if (e)
		pump_event(l);
	l->r->passed_bytes = run_pump_written(l->pump);
	l->dropped += run_pump_free(l->pump);
	l->pump = NULL;
}

void run_loop_run(run_loop *l)
{
	while (!l->tree.main_done) {
		/* a process that not even KILL ends (uninterruptible sleep): do not wait for it */
		if (l->phase == RUN_KILLED && l->r->survivors)
			break;
		turn(l, 0);
	}
	if (!l->main_done_at)
		l->main_done_at = sw_monotonic_ns();
	if (l->attest->fd >= 0)
		l->attest->method->readable(l->attest);
	hear_out(l);
	end_leftovers(l);
	if (l->r->leftovers)
		run_note(l, SW_RUN_NOTE_LEFTOVER, l->r->leftovers, NULL);
	flush(l);
	if (l->dropped)
		run_note(l, SW_RUN_NOTE_OUTPUT_DROPPED, (int64_t)l->dropped, NULL);
}
