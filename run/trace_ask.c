/*
 * As whom the host is asked. As whom the sandbox has the command run is the sandbox's doing;
 * outside it is this user. A process that has become another user since is asked for as that one;
 * one that has made a user namespace of its own would meet outside what it met there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ask.h"
#include "run_internal.h"
#include "trace.h"

#define GROUPS_MAX 256
#define FILE_MAX (4u << 20)

typedef struct question {
	run_failed_call call;
	run_outside out;
	bool other_user;
	gid_t groups[GROUPS_MAX];
	size_t n_groups;
} question;

/* ---- with what it is asked ---- */

/* Something that the answer needed was not to be had; of the thread that asks. */
static _Thread_local bool starved;

int run_trace_fd(int fd)
{
	starved |= fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
	return fd;
}

char *run_trace_text(const char *path, size_t max)
{
	char *text;
	size_t n;
	errno = 0;
	int rc = sw_read_file(path, max, &text, &n, NULL);
	starved |= rc == SW_ENOMEM;
	run_trace_fd(rc ? -1 : 0);
	return rc ? NULL : text;
}

/* ---- who asks ---- */

static char *status_of(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	return run_trace_text(path, 1 << 16);
}

/* The process's user as its file system rights have it, and its groups. */
static bool read_user(pid_t pid, uid_t *uid, gid_t *gid, gid_t *groups, size_t *n)
{
	unsigned u, g;
	*n = 0;
	char *text = status_of(pid);
	if (!text)
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

ino_t run_trace_userns(pid_t pid)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

bool run_trace_has(pid_t pid, int cap)
{
	if (run_trace_userns(pid) != run_trace_userns(getpid()))
		return false;
	char *text = status_of(pid);
	const char *at = text ? strstr(text, "\nCapEff:") : NULL;
	bool has = !at || (strtoull(at + sizeof "\nCapEff:" - 1, NULL, 16) >> cap & 1);
	free(text);
	return has;
}

bool run_trace_mapped(pid_t pid, bool group, uint32_t id)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, group ? "gid_map" : "uid_map");
	char *text = run_trace_text(path, FILE_MAX);
	bool known = !text;
	unsigned first, n;
	for (const char *p = text; p && *p && !known; p += strcspn(p, "\n"), p += *p == '\n')
		known = sscanf(p, "%u %*u %u", &first, &n) == 2 && id >= first && id - first < n;
	free(text);
	return known;
}

/* ---- asking ---- */

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
	run_failed_call *f = &q->call;
	starved = false;
	f->one_mount = f->error == EXDEV && run_trace_one_mount(f->pid, f->path, f->path2);
	q->out = q->other_user ? ask_as(q) : run_trace_outside(f);
	if (starved)
		q->out = OUTSIDE_UNKNOWN;
}

run_outside run_trace_ask(run_failed_call *f, const run_trace *t)
{
	question q = {.out = OUTSIDE_UNKNOWN};
	uid_t uid = 0;
	gid_t gid = 0;
	/* a mount that cannot be written is no matter of users */
	if (!read_user(f->pid, &uid, &gid, q.groups, &q.n_groups) ||
	    (f->error != EROFS && run_trace_userns(f->pid) != t->userns))
		return OUTSIDE_UNKNOWN;
	q.other_user = uid != t->uid;
	f->uid = q.other_user ? uid : geteuid();
	f->gid = q.other_user ? gid : getegid();
	if (q.other_user && geteuid() != 0)
		return OUTSIDE_UNKNOWN;
	q.call = *f;
	if (!run_ask(answer, &q, sizeof q))
		return OUTSIDE_UNKNOWN;
	f->one_mount = q.call.one_mount;
	f->changed = q.call.changed;
	return q.out;
}
