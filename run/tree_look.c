/*
 * Looking at the descendants: /proc, the kernel's list of children, and whose a process is.
 *
 * A command of the same user can take the right to open files from this process (prlimit).
 * What is needed to see and end processes is therefore opened before the command starts;
 * where that is not enough a walk fails, and says so.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_internal.h"

#define PROCS_MAX (1u << 20)
#define ANCESTORS_MAX 64

/* The soft limit may have been lowered; the hard one only root can raise again. */
static void restore_limit(const run_tree *t)
{
	struct rlimit now;
	if (getrlimit(RLIMIT_NOFILE, &now) || now.rlim_cur >= t->files.rlim_cur)
		return;
	if (setrlimit(RLIMIT_NOFILE, &t->files) == 0)
		return;
	now.rlim_cur = now.rlim_max < t->files.rlim_cur ? now.rlim_max : t->files.rlim_cur;
	setrlimit(RLIMIT_NOFILE, &now);
}

static bool out_of_files(int e)
{
	return e == EMFILE || e == ENFILE || e == ENOMEM;
}

/* 1 read, whatever its state; 0 gone; -1 it cannot be looked at. */
static int raw_stat(const run_tree *t, pid_t pid, run_proc *out, int *threads)
{
	char path[32], text[1024];
	snprintf(path, sizeof path, "%d/stat", (int)pid);
	int fd = openat(dirfd(t->proc), path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return out_of_files(errno) ? -1 : 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	char *p = strrchr(text, ')'); /* the name before it may hold anything */
	*out = (run_proc){.pid = pid};
	return p && sscanf(p + 1,
	                   " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
	                   "%d %*d %llu",
	                   &out->state, &out->ppid, threads, &out->start) == 4;
}

int run_tree_stat(const run_tree *t, pid_t pid, run_proc *out)
{
	int threads;
	int got = raw_stat(t, pid, out, &threads);
	/* A leader that has ended while its threads run on shows as Z too. */
	if (got == 1 && (out->state == 'Z' || out->state == 'X') && threads <= 1)
		return 0;
	return got;
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

bool run_tree_was_before(const run_tree *t, pid_t pid)
{
	for (size_t i = 0; i < t->n_before; i++)
		if (t->before[i].pid == pid && !t->before[i].start)
			return true;
	return false;
}

/*
 * A child that is not ours: one that the process had before, or a descendant of one, whose
 * orphans come to us as well. What began before the command is not the command's.
 */
bool run_tree_foreign(const run_tree *t, const run_proc *p)
{
	if (run_tree_was_before(t, p->pid))
		return true;
	for (size_t i = 0; i < t->n_before; i++)
		if (t->before[i].pid == p->pid && t->before[i].start == p->start)
			return true;
	return t->main_start && p->start < t->main_start;
}

int run_tree_by_pid(const void *a, const void *b)
{
	pid_t x = ((const run_proc *)a)->pid, y = ((const run_proc *)b)->pid;
	return x < y ? -1 : x > y;
}

run_proc *run_tree_find(run_tree *t, pid_t pid)
{
	run_proc key = {.pid = pid};
	return t->n ? bsearch(&key, t->procs, t->n, sizeof key, run_tree_by_pid) : NULL;
}

bool run_tree_grow(run_tree *t)
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
	struct dirent *e;
	int rc = SW_OK;
	restore_limit(t);
	rewinddir(t->proc);
	t->n = 0;
	while ((e = readdir(t->proc))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (!run_tree_grow(t))
			break; /* those that were read are worth ending */
		int got = run_tree_stat(t, (pid_t)atol(e->d_name), &t->procs[t->n]);
		if (got < 0) {
			rc = SW_EIO;
			break;
		}
		t->n += (size_t)got;
	}
	qsort(t->procs, t->n, sizeof *t->procs, run_tree_by_pid);
	t->blind = rc != SW_OK;
	return rc;
}

int run_tree_walk(run_tree *t)
{
	int rc = read_all(t);
	if (rc) {
		t->n = 0; /* parts of it would pass for the whole */
		return rc;
	}
	bool changed = true;
	while (changed) { /* parents mostly have lower numbers: few rounds */
		changed = false;
		for (size_t i = 0; i < t->n; i++) {
			run_proc *p = &t->procs[i];
			if (p->ours || p->pid == t->self)
				continue;
			bool ours;
			if (p->ppid == t->self) {
				ours = !run_tree_foreign(t, p);
			} else {
				const run_proc *parent = run_tree_find(t, p->ppid);
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

int run_tree_kids(const run_tree *t, pid_t *out, int max)
{
	char text[8192];
	ssize_t n = t->kids_fd < 0 ? -1 : pread(t->kids_fd, text, sizeof text - 1, 0);
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

/* Those that are children now, dead ones too, and all below them. */
static int note_before(run_tree *t, sw_error *err)
{
	pid_t kids[1024];
	int n = run_tree_kids(t, kids, 1024);
	int rc = run_tree_walk(t);
	if (rc)
		return sw_error_set(err, rc, "/proc cannot be read: %s", strerror(errno));
	t->before = calloc((n > 0 ? (size_t)n : 0) + t->n + 1, sizeof *t->before);
	if (!t->before)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	size_t k = 0;
	/* children keep their numbers until they are reaped; others' may be used again */
	for (int i = 0; i < n; i++)
		t->before[k++] = (run_before){.pid = kids[i]};
	for (size_t i = 0; i < t->n; i++)
		t->before[k++] =
		    (run_before){.pid = t->procs[i].pid,
		                 .start = t->procs[i].ppid == t->self ? 0 : t->procs[i].start};
	t->n_before = k;
	return SW_OK;
}

int run_tree_init(run_tree *t, sw_error *err)
{
	char path[64];
	memset(t, 0, sizeof *t);
	t->self = getpid();
	t->kids_fd = -1;
	getrlimit(RLIMIT_NOFILE, &t->files);
	if (!(t->proc = opendir("/proc")))
		return sw_error_set(err, SW_EIO, "/proc cannot be read: %s", strerror(errno));
	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)t->self);
	t->kids_fd = open(path, O_RDONLY | O_CLOEXEC); /* not every kernel has it */
	if (waitid(P_ALL, 0, &(siginfo_t){0}, WNOHANG | WEXITED | WNOWAIT) && errno == ECHILD)
		return SW_OK; /* no children so far */
	return note_before(t, err);
}

void run_tree_main(run_tree *t, pid_t pid)
{
	run_proc p;
	int threads;
	t->main_pid = pid;
	t->main_start = raw_stat(t, pid, &p, &threads) == 1 ? p.start : 0;
}

void run_tree_free(run_tree *t)
{
	if (t->proc) {
		restore_limit(t); /* the answer and the trail open files too */
		closedir(t->proc);
		if (t->kids_fd >= 0)
			close(t->kids_fd);
	}
	free(t->procs);
	free(t->before);
	memset(t, 0, sizeof *t);
}
