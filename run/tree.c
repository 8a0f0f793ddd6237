/*
 * Every descendant of this process, and how to end them all.
 *
 * A child subreaper inherits the orphans below it, so nothing that was started here
 * can leave the tree: double forks and new sessions change nothing. What can go wrong
 * is time: processes that fork while they are being counted. So they are frozen first,
 * to a fixed point, then killed, and the whole is repeated until the kernel itself says
 * that there is no child left (ECHILD), which is the only count without a race.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_internal.h"

#define TRACE_SPIN_NS 50000
#define TRACE_TURN_NS 5000000
#define LAST_LOOKS 15 /* of 5 ms: stays within the bound of two seconds */

/* Signals one process if it is still the one that was seen. */
static bool signal_same(const run_tree *t, const run_proc *p, int sig)
{
#ifdef SYS_pidfd_open
	int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (fd >= 0) {
		run_proc now;
		bool same = run_tree_stat(t, p->pid, &now) == 1 && now.start == p->start;
		bool done = same && syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) == 0;
		close(fd);
		return done;
	}
	if (errno == ESRCH)
		return false;
#endif
	run_proc now;
	return run_tree_stat(t, p->pid, &now) == 1 && now.start == p->start &&
	       kill(p->pid, sig) == 0;
}

unsigned run_tree_signal(run_tree *t, int sig)
{
	unsigned sent = 0;
	for (size_t i = 0; i < t->n; i++)
		if (signal_same(t, &t->procs[i], sig))
			sent++;
	return sent;
}

bool run_tree_signal_one(const run_tree *t, const run_proc *p, int sig)
{
	return signal_same(t, p, sig);
}

static void took(run_tree *t, pid_t pid, const siginfo_t *si)
{
	if (pid != t->main_pid || t->main_done) /* reaped, its number may be used again */
		return;
	t->main_done = true;
	t->main_signal = si->si_code == CLD_EXITED ? 0 : si->si_status;
	t->main_code = si->si_code == CLD_EXITED ? si->si_status : 0;
}

/* One report of waitid(): an end, or a stop of something that is followed. */
static void take_report(run_tree *t, const siginfo_t *si)
{
	if (si->si_code == CLD_TRAPPED) {
		if (t->watch)
			run_watch_stopped(t->watch, si->si_pid, si->si_status);
		return;
	}
	if (si->si_code == CLD_STOPPED || si->si_code == CLD_CONTINUED)
		return;
	if (t->watch)
		run_watch_gone(t->watch, si->si_pid);
	took(t, si->si_pid, si);
}

static bool is_end(const siginfo_t *si)
{
	return si->si_code == CLD_EXITED || si->si_code == CLD_KILLED || si->si_code == CLD_DUMPED;
}

/*
 * waitid() for any child or one, but what counts by the number of the command's first process
 * is taken before that number is free to be somebody else's.
 */
static int wait_one(run_tree *t, idtype_t type, pid_t pid, siginfo_t *si, int what)
{
	si->si_pid = 0;
	if (t->main_done || !t->main_ends || (type == P_PID && pid != t->main_pid))
		return waitid(type, (id_t)pid, si, what);
	if (waitid(type, (id_t)pid, si, what | WNOWAIT))
		return -1;
	if (si->si_pid == 0)
		return 0;
	if (si->si_pid == t->main_pid && is_end(si))
		t->main_ends(t->main_ends_ctx);
	pid_t seen = si->si_pid;
	bool ended = is_end(si);
	si->si_pid = 0;
	int rc = waitid(P_PID, (id_t)seen, si, what);
	/* a stop that became an end in between: late, but before anybody else runs for long */
	if (rc == 0 && !ended && seen == t->main_pid && si->si_pid && is_end(si))
		t->main_ends(t->main_ends_ctx);
	return rc;
}

bool run_tree_reap(run_tree *t)
{
	siginfo_t si;
	int what = WEXITED | WNOHANG | __WALL;
	if (t->watch && t->watch->on)
		what |= WSTOPPED;
	if (t->watch)
		t->watch->by_number = t->n_before > 0;
	if (t->n_before == 0) {
		int64_t last = 0; /* when a traced process was sent on */
		int64_t first = t->watch && t->watch->trace ? sw_monotonic_ns() : 0;
		for (;;) {
			if (wait_one(t, P_ALL, 0, &si, what)) {
				if (errno == EINTR)
					continue;
				return errno == ECHILD;
			}
			if (si.si_pid == 0) {
				/* its next stop is near: cheaper to stay than to sleep and be woken
				 */
				if (!last || sw_monotonic_ns() - last > TRACE_SPIN_NS)
					return false;
				sched_yield();
				continue;
			}
			take_report(t, &si);
			if (!first || si.si_code != CLD_TRAPPED)
				continue;
			last = sw_monotonic_ns();
			if (last - first > TRACE_TURN_NS) /* output and deadlines have their turn */
				return false;
		}
	}
	/* The process has children of its own: take ours by number. */
	pid_t kids[1024 + RUN_WATCH_PIDS];
	int n = run_tree_kids(t, kids, 1024);
	bool none = true;
	if (n < 0) {
		kids[0] = t->main_pid;
		n = 1;
	}
	for (size_t i = 0; t->watch && t->watch->on && i < t->watch->n; i++)
		kids[n++] = t->watch->pids[i];
	for (int i = 0; i < n; i++) {
		if (run_tree_was_before(t, kids[i]))
			continue;
		if (wait_one(t, P_PID, kids[i], &si, what)) {
			none = none && errno == ECHILD;
		} else if (si.si_pid) {
			take_report(t, &si);
			none = none && is_end(&si);
		} else {
			run_proc p; /* an orphan of a child that was there before is none of ours */
			none =
			    none && run_tree_stat(t, kids[i], &p) == 1 && run_tree_foreign(t, &p);
		}
	}
	return none;
}

/* May it be killed? Without its start nobody knows, where others' orphans may be among ours. */
static bool is_ours(const run_tree *t, pid_t pid)
{
	run_proc p;
	if (t->n_before == 0)
		return true;
	int got = run_tree_was_before(t, pid) ? 0 : run_tree_stat(t, pid, &p);
	return got == 1 && !run_tree_foreign(t, &p);
}

/* Children of ours are killed as fast as they appear: catches what forks and exits in a chain. */
static void sweep(run_tree *t)
{
	pid_t kids[1024];
	for (int round = 0; round < 64; round++) {
		int n = run_tree_kids(t, kids, 1024);
		int alive = 0;
		for (int i = 0; i < n; i++) {
			/* unreaped children keep their numbers: no race with reuse */
			if (is_ours(t, kids[i]) && kill(kids[i], SIGKILL) == 0)
				alive++;
		}
		if (run_tree_reap(t) || alive == 0)
			return;
	}
}

/*
 * One pass over /proc that stops what is ours as it goes, so that a tree of thousands
 * loses its share of the processor while it is still being counted. Parents mostly have
 * lower numbers; one that has not is known from the pass before. How many were stopped.
 */
static size_t stop_pass(run_tree *t)
{
	run_proc *known = t->procs;
	size_t n_known = t->n, stopped = 0;
	t->procs = NULL;
	t->n = t->cap = 0;
	struct dirent *e;
	rewinddir(t->proc);
	while ((e = readdir(t->proc))) {
		run_proc p;
		if (!isdigit((unsigned char)e->d_name[0]) ||
		    run_tree_stat(t, (pid_t)atol(e->d_name), &p) != 1 || p.pid == t->self)
			continue;
		run_proc key = {.pid = p.ppid};
		bool ours =
		    p.ppid == t->self
		        ? !run_tree_foreign(t, &p)
		        : run_tree_find(t, p.ppid) ||
		              (known && bsearch(&key, known, n_known, sizeof key, run_tree_by_pid));
		if (!ours || !run_tree_grow(t))
			continue;
		if (p.state != 'T' && p.state != 't' && signal_same(t, &p, SIGSTOP))
			stopped++;
		p.ours = true;
		t->procs[t->n++] = p;
	}
	free(known);
	return stopped;
}

static void freeze(run_tree *t, int64_t until)
{
	for (int round = 0; round < 64; round++) {
		if (stop_pass(t) == 0 || sw_monotonic_ns() > until)
			return;
	}
}

/* A busy tree must not starve the one who ends it. Where that is not permitted, it may. */
typedef struct boost {
	int policy, nice;
	struct sched_param param;
	bool scheduler, niced;
} boost;

static void boost_on(boost *b)
{
	memset(b, 0, sizeof *b);
	b->policy = sched_getscheduler(0);
	sched_getparam(0, &b->param);
	struct sched_param rr = {.sched_priority = 1};
	b->scheduler = b->policy >= 0 && sched_setscheduler(0, SCHED_RR, &rr) == 0;
	if (b->scheduler)
		return;
	errno = 0;
	b->nice = getpriority(PRIO_PROCESS, 0);
	b->niced = errno == 0 && setpriority(PRIO_PROCESS, 0, -20) == 0;
}

static void boost_off(const boost *b)
{
	if (b->scheduler)
		sched_setscheduler(0, b->policy, &b->param);
	if (b->niced)
		setpriority(PRIO_PROCESS, 0, b->nice);
}

/* What the last SIGKILL reached is gone in moments, on a busy machine too: none has survived then.
 */
static bool gone_soon(run_tree *t)
{
	for (int i = 0; i < LAST_LOOKS; i++) {
		usleep(5000);
		sweep(t);
		if (run_tree_reap(t))
			return true;
	}
	return false;
}

/*
 * How many are left, at least one where nobody can look. Blind, only children are known; but
 * each that is killed makes its own children ours, so that sweeping them ends all the same.
 */
static unsigned count_left(const run_tree *t, size_t seen)
{
	pid_t kids[1024];
	unsigned n = 0;
	if (!t->blind)
		return (unsigned)seen;
	for (int i = run_tree_kids(t, kids, 1024) - 1; i >= 0; i--)
		n += !run_tree_was_before(t, kids[i]);
	return n ? n : 1;
}

unsigned run_tree_count(const run_tree *t)
{
	return count_left(t, t->n);
}

static unsigned kill_until(run_tree *t, int64_t until)
{
	int empty = 0;
	for (unsigned round = 0;; round++) {
		if (run_tree_reap(t))
			return 0;
		freeze(t, until);
		run_tree_signal(t, SIGKILL);
		size_t left = t->n;
		sweep(t);
		if (run_tree_reap(t))
			return 0;
		/* children of the process itself hide ECHILD: two empty passes must do */
		empty = left == 0 ? empty + 1 : 0;
		if (empty >= 2 && t->n_before && !t->blind)
			return 0;
		if (sw_monotonic_ns() > until)
			return gone_soon(t) ? 0 : count_left(t, left);
		usleep(round < 20 ? 200 : 5000);
	}
}

unsigned run_tree_kill(run_tree *t, int64_t until)
{
	boost b;
	boost_on(&b);
	unsigned left = kill_until(t, until);
	boost_off(&b);
	return left;
}
