/*
 * As whom the host is asked. As whom the sandbox has the command run is the sandbox's doing;
 * outside it is this user. A process that has become another user since is asked for as that one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
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
static run_outside ask_as(question *a)
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
}
