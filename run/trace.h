/* The parts of `run --trace`; shared by trace*.c, watch.c and the supervisor. */
#ifndef SW_RUN_TRACE_H
#define SW_RUN_TRACE_H

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "run.h"

/* What a call wants, which decides how it is looked at outside. */
typedef enum {
	CALL_OPEN,    /* path, flags */
	CALL_OPENAT2, /* path, struct open_how */
	CALL_MAKE,    /* a new name */
	CALL_MKNOD,   /* the same, perhaps a device */
	CALL_REMOVE,  /* an old name */
	CALL_RMDIR,
	CALL_RENAME, /* path, and the second one */
	CALL_LINK,
	CALL_CHMOD,
	CALL_CHOWN,
	CALL_TIMES,
	CALL_WRITE_PATH, /* truncate */
	CALL_XATTR,
	CALL_FLAGS, /* chattr */
	CALL_ASK,   /* may it be written? */
	CALL_EXEC,
	CALL_CONNECT, /* and sendto: an address */
	CALL_BIND,
	CALL_SOCKET,
	CALL_UNSHARE,
	CALL_TRACER,   /* ptrace() */
	CALL_PRIVILEGE /* needs a capability */
} run_call_kind;

/* Which calls of that number are meant: an argument's low half has one of the bits, or is equal. */
typedef enum { CALL_ALWAYS, CALL_BITS, CALL_EQUAL } run_call_when;

typedef struct run_call {
	int nr;
	const char *name;
	run_call_kind kind;
	sw_operation operation;
	int8_t dirfd, path;   /* which arguments; -1: none */
	int8_t dirfd2, path2; /* of the second path */
	int8_t extra;         /* flags, mode, address length, owner; -1: none */
	int8_t capability;    /* for CALL_PRIVILEGE */
	run_call_when when;
	int8_t arg;
	uint32_t value;
} run_call;

size_t run_calls(const run_call **out);
/* By number alone: for its name. */
const run_call *run_call_find(int nr);
/* With arguments that are of interest; NULL: none. */
const run_call *run_call_of(int nr, const uint64_t args[6]);
/* Which errors of the call are a refusal. */
bool run_call_refusal(const run_call *c, int error);

/* A call of another ABI, or one by which calls are made elsewhere (io_uring). */
bool run_trace_unseen(uint32_t arch, uint64_t nr);
/* The call gives its process a seccomp filter. */
bool run_trace_sets_filter(int nr, const uint64_t args[6]);

/* What our filter's stops carry. Stops of another filter's stop nobody here: see
 * run_trace_filter_answers(). */
#define RUN_TRACE_DATA 0x5357u

struct sock_fprog;
/* The filter: SECCOMP_RET_TRACE for these calls. Freed by run_trace_filter_free(). */
int run_trace_filter(struct sock_fprog *out);
void run_trace_filter_free(struct sock_fprog *p);

/* One failed call of a stopped process, with what it asked for. */
typedef struct run_failed_call {
	const run_call *call;
	pid_t pid;
	uint64_t args[6];
	int error;
	char path[PATH_MAX]; /* as the command sees it, absolute; or host:port; empty: none */
	char path2[PATH_MAX];
	bool follow;           /* through a link at the end of `path` */
	bool one_mount;        /* both names lie on one mount of the sandbox's */
	bool dotted;           /* the last part of a name is . or .. */
	bool control;          /* a message with control data */
	bool filtered;         /* under a filter of the sandbox's */
	bool changed;          /* a file was changed while it was asked about */
	struct timespec began; /* by the clock of the files' times */
	uid_t uid;             /* who asks: of the files' owners and rights */
	gid_t gid;
	const char *resource_kind; /* "path", "host", "syscall" */
	bool raw_socket;           /* one that needs a privilege anywhere */
} run_failed_call;
/* Reads the paths or the address from the process. */
void run_trace_read(run_failed_call *f);

/* A text of the process's with its NUL, at most n bytes; false: none there, or longer. */
bool run_trace_string(pid_t pid, uint64_t from, char *to, size_t n);

/* An open() that only reads. */
bool run_trace_reads(const run_failed_call *f);

typedef enum { OUTSIDE_UNKNOWN, OUTSIDE_REFUSED, OUTSIDE_ALLOWED } run_outside;
/* Would the same call, by this user, outside, be let through? Changes nothing. */
run_outside run_trace_outside(run_failed_call *f);

static inline run_outside run_trace_answer(bool allowed)
{
	return allowed ? OUTSIDE_ALLOWED : OUTSIDE_REFUSED;
}
/* The number in a file of /proc/sys; where it cannot be read, `otherwise`. trace_net.c. */
long run_trace_sysctl(const char *path, long otherwise);
static inline bool run_trace_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}
/* All kinds of namespaces that a call can ask for. */
#define RUN_TRACE_NAMESPACES                                                           \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)
/* Its parts: trace_net.c for what has no path, */
run_outside run_trace_other_outside(const run_failed_call *f);
/* the capability, of the user that is asked for; */
bool run_trace_capability(const run_failed_call *f, int cap);
/* that user has it and the process has not: what it was refused for; */
bool run_trace_lacks(const run_failed_call *f, int cap);
/* trace_place.c: the host's name (in place, PATH_MAX) of what the process means; false: none; */
bool run_trace_place(pid_t pid, char *path, bool follow);
/* both names' folders are on one mount, as the process sees it; */
bool run_trace_one_mount(pid_t pid, const char *path, const char *path2);
/* a file of the sandbox's own is kept from this user by its modes; */
bool run_trace_modes_refuse(pid_t pid, const char *path, bool follow, int what);
/* something is mounted there, here; */
bool run_trace_mount_point(const char *path);
/* the file, as the process names it, or a folder on the way to it was changed since the call began.
 */
bool run_trace_changed(const run_failed_call *f, const char *path);

struct run_trace;
/* run_trace_outside() within a second, else unknown. A process of another user than the command's
 * is asked for as that user, where this one may. */
run_outside run_trace_ask(run_failed_call *f, const struct run_trace *t);
/* The process's user, as files see it; this one's where it cannot be read. */
uid_t run_trace_user(pid_t pid);
/* The number of its user namespace; 0: it cannot be read. */
ino_t run_trace_userns(pid_t pid);
/* It has the capability, where the host counts it. */
bool run_trace_has(pid_t pid, int cap);
/* Its user namespace knows the user (or group). What cannot be read is known. */
bool run_trace_mapped(pid_t pid, bool group, uint32_t id);
/* For what is opened while the host is asked: the descriptor, or -1. Where there was none to be
 * had, or no memory, nothing is known of the answer. */
int run_trace_fd(int fd);
/* The same for a file that is read whole; NULL: it cannot be read. Freed by the caller. */
char *run_trace_text(const char *path, size_t max);

#define RUN_TRACE_DENIALS_MAX 64

typedef struct run_trace_denial {
	const run_call *call;
	int error;
	const char *resource_kind;
	bool raw_socket, reads, harmless;
	char *path;
	uint64_t count, order;
} run_trace_denial;

typedef struct run_trace_slot {
	pid_t pid; /* 0: free */
	int nr;    /* -1: none that is of interest */
	bool under_filter;
	bool runner;        /* was there before the command, and runs the runner's program */
	char *path, *path2; /* as they stood when the call began; NULL: none */
	uint64_t args[6];
	struct timespec began;
} run_trace_slot;

/* What was asked lately: the same question is not asked again. */
typedef struct run_trace_asked {
	const run_call *call;
	int error;
	uint64_t hash;
} run_trace_asked;
#define RUN_TRACE_ASKED 256

/* What would fail outside as well: the words by which a message of it can be known. */
typedef struct run_trace_refused {
	int error;
	char name[256]; /* the last part of the path, or the call */
	char program[16];
} run_trace_refused;
#define RUN_TRACE_REFUSED 64

typedef struct run_trace {
	bool on;
	bool command;         /* the command runs; what the runner does is its own affair */
	uid_t uid;            /* as which the command began */
	ino_t userns;         /* in which it began */
	bool filtered;        /* the sandbox has a seccomp filter that answers with errors */
	bool filtered_itself; /* the command has set one */
	int own_filters;      /* of a process that has none but ours; 0: not known so far */
	int sandbox_filters;  /* with the sandbox's */
	bool sandbox_traces;  /* one of them asks a tracer (SECCOMP_RET_TRACE) */
	bool raced;           /* a path was another one at the end of its call */
	bool unseen;          /* something made calls that the filter does not tell apart */
	const sw_run_program *program; /* the runner's; NULL: none is there */
	run_trace_slot *slots;         /* by thread */
	size_t n_slots, cap_slots;
	run_trace_denial denials[RUN_TRACE_DENIALS_MAX]; /* what would be let through outside */
	size_t n_denials;
	run_trace_asked asked[RUN_TRACE_ASKED];
	size_t n_asked;
	run_trace_refused refused[RUN_TRACE_REFUSED];
	size_t n_refused;
	/* by error: something failed so; it would not outside, or nobody knows */
	bool failed[256], other[256];
	uint64_t calls, failures, lost; /* looked at, refused, not kept */
} run_trace;

/* Why it cannot be done for this program; NULL: it can. */
const char *run_trace_refusal(const sw_run_program *program);
/* In the child, just before execve(): 0 or errno. */
int run_trace_install(const struct sock_fprog *filter);
/* A call of interest begins: true where its end must be seen. */
bool run_trace_begin(run_trace *t, pid_t pid);
/* A call that is followed begins or ends. */
void run_trace_call(run_trace *t, pid_t pid);
/* A thread is new. */
void run_trace_born(run_trace *t, pid_t pid);
/* It executed a program; first: the command's. */
void run_trace_executed(run_trace *t, pid_t pid, bool first);
/* Each of its calls must be followed, for a filter of the sandbox's may answer them. */
bool run_trace_follows(run_trace *t, pid_t pid);
void run_trace_gone(run_trace *t, pid_t pid);
/* Of trace_filter.c. The call in s has set a filter. */
void run_trace_filter_set(run_trace *t, pid_t pid, run_trace_slot *s);
/* The thread is under a filter of the sandbox's. */
/* At a stop of a filter: whether it is another's. Without a tracer the call would fail with ENOSYS,
 * and a sandbox that is watched must not let through what it refuses else. */
bool run_trace_filter_answers(const run_trace *t, pid_t pid);
/* So does the call that the process is stopped at. */
void run_trace_filter_refuse(pid_t pid);
bool run_trace_filter_inherited(run_trace *t, pid_t pid);
/* The thread is under one that the command has set. */
bool run_trace_filter_itself(const run_trace *t, pid_t pid);
/* To be called while nobody is under another filter than ours. */
void run_trace_filter_first(run_trace *t, pid_t pid);
void run_trace_free(run_trace *t);
/* Hands the findings to the result, the last denial first. */
int run_trace_tell(const run_trace *t, sw_result *result);

#endif
