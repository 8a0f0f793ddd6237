/*
<<<<<<< HEAD
 * As whom the host is asked. As whom the sandbox has the command run is the sandbox's doing;
 * outside it is this user. A process that has become another user since is asked for as that one.
 */
=======
 * The host is asked by a thread of its own, for a path can lead to a file system that never
 * answers (a dead network or FUSE mount), and the deadline of the run must hold. A thread that
 * hangs is left behind; after a few nobody is asked any more.
 */
#include <errno.h>
>>>>>>> 9c9b7bc8550450b8f64fe7aaa8a22147e7f95326
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
<<<<<<< HEAD
#include <unistd.h>

#include "ask.h"
#include "run_internal.h"
#include "trace.h"

#define GROUPS_MAX 256

typedef struct question {
	run_failed_call call;
	run_outside out;
	bool other_user;
	gid_t groups[GROUPS_MAX];
	size_t n_groups;
} question;
=======
#include <time.h>
#include <unistd.h>

#include "run_internal.h"
#include "trace.h"

#define ANSWER_MS 1000
#define HANGS_MAX 3
#define GROUPS_MAX 256

struct run_asker {
	pthread_mutex_t lock;
	pthread_cond_t asked, answered;
	run_failed_call call;
	run_outside out;
	bool other_user, pending, left; /* left: nobody waits, the thread frees */
	gid_t groups[GROUPS_MAX];
	size_t n_groups;
};

/* How many were left hanging in this process: each keeps a thread. */
static _Atomic int hanging;
>>>>>>> 9c9b7bc8550450b8f64fe7aaa8a22147e7f95326

/* ---- who asks ---- */

/* The process's user as its file system rights have it, and its groups. */
static bool read_user(pid_t pid, uid_t *uid, gid_t *gid, gid_t *groups, size_t *n)
{
	char path[64], *text;
	size_t len;
	unsigned u, g;
	*n = 0;
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (sw_read_file(path, 1 << 16, &text, &len, NULL))
		return false;
	const char *users = strstr(text, "\nUid:"), *group = strstr(text, "\nGid:"),
	           *list = strstr(text, "\nGroups:");
	bool ok = users && group && sscanf(users + 5, "%*u %*u %*u %u", &u) == 1 &&
	          sscanf(group + 5, "%*u %*u %*u %u", &g) == 1;
	for (const char *p = list ? list + 8 : ""; ok && *p && *p != '\n' && *n < GROUPS_MAX;) {
		char *end;
		unsigned long one = strtoul(p, &end, 10);
		if (end == p)
			break;
		groups[(*n)++] = (gid_t)one;
		p = end + strspn(end, " \t");
	}
	free(text);
	*uid = ok ? (uid_t)u : 0;
	*gid = ok ? (gid_t)g : 0;
	return ok;
}

uid_t run_trace_user(pid_t pid)
{
	uid_t uid;
	gid_t gid, groups[GROUPS_MAX];
	size_t n;
	return read_user(pid, &uid, &gid, groups, &n) ? uid : geteuid();
}

/* The system calls change this thread alone, unlike the C library's functions. */
<<<<<<< HEAD
static run_outside ask_as(question *a)
=======
static run_outside ask_as(run_asker *a)
>>>>>>> 9c9b7bc8550450b8f64fe7aaa8a22147e7f95326
{
	gid_t own[GROUPS_MAX];
	int n_own = (int)syscall(SYS_getgroups, GROUPS_MAX, own);
	if (n_own < 0 || syscall(SYS_setgroups, a->n_groups, a->groups))
		return OUTSIDE_UNKNOWN;
	syscall(SYS_setfsgid, a->call.gid);
	syscall(SYS_setfsuid, a->call.uid);
	/* -1 changes nothing and tells what it is */
	run_outside out = (uid_t)syscall(SYS_setfsuid, -1) == a->call.uid
	                      ? run_trace_outside(&a->call)
	                      : OUTSIDE_UNKNOWN;
	syscall(SYS_setfsuid, geteuid());
	syscall(SYS_setfsgid, getegid());
	syscall(SYS_setgroups, (size_t)n_own, own);
	return out;
}

<<<<<<< HEAD
static void answer(void *arg)
{
	question *q = arg;
	q->out = q->other_user ? ask_as(q) : run_trace_outside(&q->call);
}

run_outside run_trace_ask(run_failed_call *f, uid_t usual)
{
	question q = {.out = OUTSIDE_UNKNOWN};
	uid_t uid = 0;
	gid_t gid = 0;
	q.other_user = !read_user(f->pid, &uid, &gid, q.groups, &q.n_groups) || uid != usual;
	f->uid = q.other_user ? uid : geteuid();
	f->gid = q.other_user ? gid : getegid();
	if (q.other_user && geteuid() != 0)
		return OUTSIDE_UNKNOWN;
	q.call = *f;
	return run_ask(answer, &q, sizeof q) ? q.out : OUTSIDE_UNKNOWN;
=======
/* ---- the thread ---- */

static void destroy(run_asker *a)
{
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->asked);
	pthread_cond_destroy(&a->answered);
	free(a);
}

static void *answer_all(void *arg)
{
	run_asker *a = arg;
	pthread_mutex_lock(&a->lock);
	for (;;) {
		while (!a->pending && !a->left)
			pthread_cond_wait(&a->asked, &a->lock);
		if (a->left)
			break;
		pthread_mutex_unlock(&a->lock);
		run_outside out = a->other_user ? ask_as(a) : run_trace_outside(&a->call);
		pthread_mutex_lock(&a->lock);
		a->out = out;
		a->pending = false;
		pthread_cond_signal(&a->answered);
	}
	pthread_mutex_unlock(&a->lock);
	destroy(a);
	return NULL;
}

static run_asker *start(void)
{
	run_asker *a = calloc(1, sizeof *a);
	pthread_condattr_t monotonic;
	pthread_attr_t detached;
	pthread_t thread;
	if (!a)
		return NULL;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->asked, NULL);
	pthread_cond_init(&a->answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	bool ok = pthread_create(&thread, &detached, answer_all, a) == 0;
	pthread_attr_destroy(&detached);
	if (!ok) {
		destroy(a);
		return NULL;
	}
	return a;
}

void run_trace_ask_end(run_asker *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->left = true;
	pthread_cond_signal(&a->asked);
	pthread_mutex_unlock(&a->lock);
}

run_outside run_trace_ask(run_asker **asker, run_failed_call *f, uid_t usual)
{
	run_asker *a = *asker;
	if (hanging >= HANGS_MAX || (!a && !(a = *asker = start())))
		return OUTSIDE_UNKNOWN;
	pthread_mutex_lock(&a->lock);
	uid_t uid = 0;
	gid_t gid = 0;
	/* As whom the sandbox has the command run is the sandbox's doing; outside it is this user.
	 */
	a->other_user = !read_user(f->pid, &uid, &gid, a->groups, &a->n_groups) || uid != usual;
	f->uid = a->other_user ? uid : geteuid();
	f->gid = a->other_user ? gid : getegid();
	if (a->other_user && geteuid() != 0) {
		pthread_mutex_unlock(&a->lock);
		return OUTSIDE_UNKNOWN;
	}
	a->call = *f;
	a->pending = true;
	pthread_cond_signal(&a->asked);
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ANSWER_MS / 1000;
	int rc = 0;
	while (a->pending && rc == 0)
		rc = pthread_cond_timedwait(&a->answered, &a->lock, &until);
	run_outside out = a->pending ? OUTSIDE_UNKNOWN : a->out;
	if (a->pending) {
		a->left = true;
		*asker = NULL;
		hanging++;
	}
	pthread_mutex_unlock(&a->lock);
	return out;
>>>>>>> 9c9b7bc8550450b8f64fe7aaa8a22147e7f95326
}
