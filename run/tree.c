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

#define PROCS_MAX (1u << 20)
#define ANCESTORS_MAX 64
#define TRACE_SPIN_NS 50000
#define TRACE_TURN_NS 5000000
#define LAST_LOOKS 15 /* of 5 ms: stays within the bound of two seconds */

/* Reads /proc/PID/stat. False: gone, or a zombie without living threads. */
static bool read_stat(pid_t pid, run_proc *out)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	char *p = strrchr(text, ')'); /* the name before it may hold anything */
	if (!p)
		return false;
	char state;
	int ppid, threads;
	unsigned long long start;
	if (sscanf(p + 1,
	           " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu",
	           &state, &ppid, &threads, &start) != 4)
		return false;
	/* A leader that has ended while its threads run on shows as Z too. */
	if ((state == 'Z' || state == 'X') && threads <= 1)
		return false;
	*out = (run_proc){.pid = pid, .ppid = ppid, .start = start, .state = state};
	return true;
}

int run_is_below(pid_t pid, pid_t ancestor)
{
	for (int i = 0; i < ANCESTORS_MAX; i++) {
		if (pid <= 1)
			return 0;
		char path[64], text[512];
		snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
		if (fd >= 0)
			close(fd);
		if (n <= 0)
			return -1;
		text[n] = '\0';
		char *end = strrchr(text, ')');
		int parent = 0;
		if (!end || sscanf(end + 1, " %*c %d", &parent) != 1)
			return -1;
		if (parent == ancestor)
			return 1;
		pid = parent;
	}
	return -1;
}

static bool was_before(const run_tree *t, pid_t pid)
{
	for (size_t i = 0; i < t->n_before; i++)
		if (t->before[i] == pid)
			return true;
	return false;
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = ((const run_proc *)a)->pid, y = ((const run_proc *)b)->pid;
	return x < y ? -1 : x > y;
}

static run_proc *find(run_tree *t, pid_t pid)
{
	run_proc key = {.pid = pid};
	return t->n ? bsearch(&key, t->procs, t->n, sizeof key, by_pid) : NULL;
}

static bool grow(run_tree *t)
{
	if (t->n < t->cap)
		return true;
	size_t cap = t->cap ? t->cap * 2 : 512;
	run_proc *more = cap > PROCS_MAX ? NULL : realloc(t->procs, cap * sizeof *t->procs);
	if (!more)
		return false;
	t->procs = more;
	t->cap = cap;
	return true;
}

static int read_all(run_tree *t)
{
	DIR *d = opendir("/proc");
	if (!d)
		return SW_EIO;
	struct dirent *e;
	t->n = 0;
	while ((e = readdir(d))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (!grow(t))
			break; /* those that were read are worth ending */
		if (read_stat((pid_t)atol(e->d_name), &t->procs[t->n]))
			t->n++;
	}
	closedir(d);
	qsort(t->procs, t->n, sizeof *t->procs, by_pid);
	return SW_OK;
}

int run_tree_walk(run_tree *t)
{
	int rc = read_all(t);
	if (rc)
		return rc;
	bool changed = true;
	while (changed) { /* parents mostly have lower numbers: few rounds */
		changed = false;
		for (size_t i = 0; i < t->n; i++) {
			run_proc *p = &t->procs[i];
			if (p->ours || p->pid == t->self)
				continue;
			bool ours;
			if (p->ppid == t->self) {
				ours = !was_before(t, p->pid);
			} else {
				const run_proc *parent = find(t, p->ppid);
				ours = parent && parent->ours;
			}
			if (ours)
				p->ours = changed = true;
		}
	}
	size_t k = 0;
	for (size_t i = 0; i < t->n; i++)
		if (t->procs[i].ours)
			t->procs[k++] = t->procs[i];
	t->n = k;
	return SW_OK;
}

/* The children of this thread as the kernel lists them; quick. Count, or -1: not offered. */
static int own_children(const run_tree *t, pid_t *out, int max)
{
	char path[64], text[8192];
	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)t->self);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n < 0)
		return -1;
	text[n] = '\0';
	int k = 0;
	for (char *p = text; k < max;) {
		char *end;
		long pid = strtol(p, &end, 10);
		if (end == p)
			break;
		/* the last number may be cut by the buffer: then it lacks its blank */
		if (*end == '\0' && n == (ssize_t)sizeof text - 1)
			break;
		out[k++] = (pid_t)pid;
		p = end;
	}
	return k;
}

int run_tree_init(run_tree *t, sw_error *err)
{
	memset(t, 0, sizeof *t);
	t->self = getpid();
	if (waitid(P_ALL, 0, &(siginfo_t){0}, WNOHANG | WEXITED | WNOWAIT) && errno == ECHILD)
		return SW_OK; /* no children so far */
	/* the kernel's list has those that ended but were not reaped too */
	pid_t kids[1024];
	int n = own_children(t, kids, 1024);
	if (n < 0) {
		int rc = run_tree_walk(t);
		if (rc)
			return sw_error_set(err, rc, "/proc cannot be read: %s", strerror(errno));
		n = 0;
		for (size_t i = 0; i < t->n && n < 1024; i++)
			if (t->procs[i].ppid == t->self)
				kids[n++] = t->procs[i].pid;
	}
	pid_t *before = calloc((size_t)n + 1, sizeof *before);
	if (!before)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	memcpy(before, kids, (size_t)n * sizeof *before);
	t->before = before;
	t->n_before = (size_t)n;
	return SW_OK;
}

void run_tree_free(run_tree *t)
{
	free(t->procs);
	free(t->before);
	memset(t, 0, sizeof *t);
}

/* Signals one process if it is still the one that was seen. */
static bool signal_same(const run_proc *p, int sig)
{
#ifdef SYS_pidfd_open
	int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (fd >= 0) {
		run_proc now;
		bool same = read_stat(p->pid, &now) && now.start == p->start;
		bool done = same && syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) == 0;
		close(fd);
		return done;
	}
	if (errno == ESRCH)
		return false;
#endif
	run_proc now;
	return read_stat(p->pid, &now) && now.start == p->start && kill(p->pid, sig) == 0;
}

unsigned run_tree_signal(run_tree *t, int sig)
{
	unsigned sent = 0;
	for (size_t i = 0; i < t->n; i++)
		if (signal_same(&t->procs[i], sig))
			sent++;
	return sent;
}

bool run_tree_signal_one(const run_proc *p, int sig)
{
	return signal_same(p, sig);
}

static void took(run_tree *t, pid_t pid, const siginfo_t *si)
{
	if (pid != t->main_pid)
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
			si.si_pid = 0;
			if (waitid(P_ALL, 0, &si, what)) {
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
	int n = own_children(t, kids, 1024);
	bool none = true;
	if (n < 0) {
		kids[0] = t->main_pid;
		n = 1;
	}
	for (size_t i = 0; t->watch && t->watch->on && i < t->watch->n; i++)
		kids[n++] = t->watch->pids[i];
	for (int i = 0; i < n; i++) {
		if (was_before(t, kids[i]))
			continue;
		si.si_pid = 0;
		if (waitid(P_PID, (id_t)kids[i], &si, what) == 0 && si.si_pid) {
			take_report(t, &si);
			none = none && (si.si_code == CLD_EXITED || si.si_code == CLD_KILLED ||
			                si.si_code == CLD_DUMPED);
		} else {
			none = none && errno == ECHILD;
		}
	}
	return none;
}

/* Children of ours are killed as fast as they appear: catches what forks and exits in a chain. */
static void sweep(run_tree *t)
{
	pid_t kids[1024];
	for (int round = 0; round < 64; round++) {
		int n = own_children(t, kids, 1024);
		int alive = 0;
		for (int i = 0; i < n; i++) {
			/* unreaped children keep their numbers: no race with reuse */
			if (!was_before(t, kids[i]) && kill(kids[i], SIGKILL) == 0)
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
	DIR *d = opendir("/proc");
	if (!d)
		return 0;
	run_proc *known = t->procs;
	size_t n_known = t->n, stopped = 0;
	t->procs = NULL;
	t->n = t->cap = 0;
	struct dirent *e;
	while ((e = readdir(d))) {
		run_proc p;
		if (!isdigit((unsigned char)e->d_name[0]) ||
		    !read_stat((pid_t)atol(e->d_name), &p) || p.pid == t->self)
			continue;
		run_proc key = {.pid = p.ppid};
		bool ours = p.ppid == t->self
		                ? !was_before(t, p.pid)
		                : find(t, p.ppid) ||
		                      (known && bsearch(&key, known, n_known, sizeof key, by_pid));
		if (!ours || !grow(t))
			continue;
		if (p.state != 'T' && p.state != 't' && signal_same(&p, SIGSTOP))
			stopped++;
		p.ours = true;
		t->procs[t->n++] = p;
	}
	closedir(d);
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
		if (empty >= 2 && t->n_before)
			return 0;
		if (sw_monotonic_ns() > until)
			return gone_soon(t) ? 0 : (unsigned)left;
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
