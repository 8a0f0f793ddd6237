/* Shared by the files of run/; not for others. */
#ifndef SW_RUN_INTERNAL_H
#define SW_RUN_INTERNAL_H

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base.h"
#include "run.h"

struct sock_fprog;

/* ---- tables.c ---- */
typedef struct run_option {
	const char *name;
	int values;
	int fd_value; /* which value is a descriptor the runner inherits; -1: none */
} run_option;

typedef struct run_engine {
	const char *backend;
	const char *const *global_values; /* options before the sub-command that take a value */
	const char *const *run_switches;  /* options of `run` that take none */
	const char *record_option;        /* --cidfile, --pid-file */
	const char *short_switches;       /* the letters of the one-letter switches */
} run_engine;

const char *run_backend_of_program(const char *argv0);
bool run_is_passing_program(const char *argv0);
const run_option *run_bwrap_option(const char *arg);
const run_engine *run_engine_of(const char *backend);
bool run_in_list(const char *const *list, const char *arg, size_t n);

/* ---- detect.c ---- */
/* Which descriptors the runner's own options name; all: they cannot be known, keep every one. */
typedef struct run_named_fds {
	int fds[64];
	size_t n;
	bool all;
} run_named_fds;
void run_fds_named(char *const *argv, const sw_run_shape *shape, run_named_fds *out);
/* The runner's own options name a seccomp filter. */
bool run_sets_filter(char *const *argv, const sw_run_shape *shape);

/* An option of an engine's `run`. at: index of it in argv, 0: absent; value may be NULL. */
typedef struct run_engine_call {
	size_t subcommand; /* index of `run`; 0: another sub-command or not understood */
	size_t command;    /* index of the image, 0: not found */
	size_t record_at;
	const char *record_value;
	const char *network;
	bool removes;  /* --rm */
	bool detached; /* -d: the client does not wait */
} run_engine_call;
void run_engine_parse(char *const *argv, size_t runner, const run_engine *e, run_engine_call *out);

/* ---- watch.c: the first exec of the command ---- */
#define RUN_WATCH_MAX 64    /* processes of a runner before its command */
#define RUN_WATCH_PIDS 1024 /* and those born until all of them are let go */
struct run_trace;
typedef struct run_watch {
	struct run_trace *trace; /* not NULL: nobody is let go, calls are looked at */
	const sw_run_program *program;
	pid_t pids[RUN_WATCH_PIDS]; /* followed now */
	size_t n;
	pid_t main; /* the process that becomes the runner */
	bool runner_executed;
	bool proves;     /* every exec after the runner's own is the command's */
	bool by_number;  /* each is waited for by number: the newborn must be known at once */
	bool on;         /* something is followed */
	bool whole;      /* followed from the first instruction, nothing missed so far */
	bool seen;       /* something was executed after the runner */
	bool letting_go; /* each is let go at its next stop */
} run_watch;
/* pid has not yet executed the runner. False: it cannot be followed here. */
bool run_watch_attach(run_watch *w, pid_t pid, const sw_run_program *program);
void run_watch_stopped(run_watch *w, pid_t pid, int status); /* si_status of CLD_TRAPPED */
void run_watch_gone(run_watch *w, pid_t pid);
void run_watch_let_go(run_watch *w);

/* ---- cgroup.c ---- */
typedef struct run_cgroup {
	char path[3400]; /* empty: none */
} run_cgroup;
bool run_cgroup_make(run_cgroup *g); /* false: none is delegated to us */
void run_cgroup_join(const run_cgroup *g);
void run_cgroup_kill(const run_cgroup *g);
void run_cgroup_remove(run_cgroup *g);

/* ---- tree.c: every descendant ---- */
typedef struct run_proc {
	pid_t pid, ppid;
	unsigned long long start; /* field 22 of stat: tells a reused pid */
	char state;
	bool ours;
} run_proc;

typedef struct run_before {
	pid_t pid;
	unsigned long long start; /* 0: a child, which keeps its number */
} run_before;

typedef struct run_tree {
	pid_t self;
	DIR *proc;           /* /proc, from the beginning */
	int kids_fd;         /* the kernel's list of our children; -1: it has none */
	struct rlimit files; /* as it was */
	bool blind;          /* the last walk could not look at processes */
	run_before *before;  /* what the process had already; left alone */
	size_t n_before;
	pid_t main_pid;                /* argv[0]'s process */
	unsigned long long main_start; /* 0: not known */
	void (*main_ends)(void *ctx);  /* it has ended and is about to be reaped; may be NULL */
	void *main_ends_ctx;
	bool main_done; /* it was reaped; then: */
	int main_code, main_signal;
	run_watch *watch; /* hears of stops; may be NULL */
	run_proc *procs;  /* the last walk: living descendants only, by pid */
	size_t n, cap;
} run_tree;

/* tree_look.c */
/* By its parents, as they are now: 1 yes, 0 no, -1 it is gone or too deep to tell. */
int run_is_below(pid_t pid, pid_t ancestor);
int run_tree_init(run_tree *t, sw_error *err);
void run_tree_main(run_tree *t, pid_t pid); /* the command is made */
/* 1 it lives; 0 it does not; -1 it cannot be looked at. */
int run_tree_stat(const run_tree *t, pid_t pid, run_proc *out);
bool run_tree_was_before(const run_tree *t, pid_t pid);
bool run_tree_foreign(const run_tree *t, const run_proc *p);
int run_tree_by_pid(const void *a, const void *b);
run_proc *run_tree_find(run_tree *t, pid_t pid);
bool run_tree_grow(run_tree *t);
/* The children of this thread as the kernel lists them; quick. Count, or -1: not offered. */
int run_tree_kids(const run_tree *t, pid_t *out, int max);
void run_tree_free(run_tree *t);
/* Walks /proc for procs[0..n). Negative: it cannot be read. */
int run_tree_walk(run_tree *t);
/* tree.c. How many descendants there are by the last walk; at least 1 where it failed. */
unsigned run_tree_count(const run_tree *t);
/* Sends sig to each process of the last walk that is still the same. How many. */
unsigned run_tree_signal(run_tree *t, int sig);
bool run_tree_signal_one(const run_tree *t, const run_proc *p, int sig);
/* Reaps every dead child except those before. True: no child is left at all. */
bool run_tree_reap(run_tree *t);
/* Freeze, kill, repeat, until none is left or `until` (monotonic ns). Number of survivors. */
unsigned run_tree_kill(run_tree *t, int64_t until);

/* ---- pump.c: the reader must never wait for the writer ---- */
typedef struct run_pump run_pump;
int run_pump_new(run_pump **out, int fd, sw_error *err);
/* Room to read into: at least 1 byte, or 0 where the reader is behind. */
size_t run_pump_room(run_pump *p, void **at);
void run_pump_commit(run_pump *p, size_t n);
/* Readable when room has come back or the writer has stopped. */
int run_pump_event_fd(const run_pump *p);
void run_pump_clear_event(run_pump *p);
int run_pump_error(run_pump *p); /* errno of the failed write (EPIPE, ...), 0: none */
uint64_t run_pump_written(run_pump *p);
/* All that was committed is written or cannot be any more. */
bool run_pump_idle(run_pump *p);
/* Stops at once; returns the bytes that were not written. NULL is fine. */
uint64_t run_pump_free(run_pump *p);

/* ---- supervise.c ---- */
int run_supervise(const sw_run_options *options, struct run_trace *trace, sw_run_report *report,
                  sw_error *err);

/* ---- spawn.c ---- */
typedef struct run_signals {
	int fd; /* signalfd; -1: none */
	sigset_t old_mask;
	struct sigaction old_chld;
} run_signals;
/* Holds SIGCHLD and the signals that are passed on, until released. */
int run_signals_hold(run_signals *s, sw_error *err);
void run_signals_release(run_signals *s);

typedef struct run_spawn {
	const char *path; /* what is executed */
	char *const *argv;
	char *const *env;
	const char *cwd;
	int in, out, err; /* become 0, 1, 2; -1: leave */
	const int *keep;  /* stay open across exec */
	size_t n_keep;
	bool keep_all;
	run_watch *watch;                /* to be attached before exec; NULL: none */
	const run_cgroup *cgroup;        /* to be joined before exec; NULL: none */
	const struct sock_fprog *filter; /* with it: for run --trace; NULL: none */
	const sw_run_program *program;
	const run_signals *signals;
	bool own_group; /* a process group of its own, but in a terminal's foreground */
} run_spawn;
/* The child's pid, or a negative sw_code. *exec_errno: 0 where execve succeeded. */
pid_t run_spawn_child(const run_spawn *s, int *exec_errno, sw_error *err);

/* ---- attest.c ---- */
typedef struct run_attest run_attest;

/* One way of proof. Every function may be NULL. */
typedef struct run_attest_method {
	const char *name;
	/* Changes a->argv where needed; a reason, where there can be no proof. */
	const char *(*plan)(run_attest *a);
	void (*readable)(run_attest *a);
	bool (*look)(run_attest *a); /* true: seen, no need to look again */
	void (*conclude)(run_attest *a, int code, int sig, bool we_killed);
	void (*end_outside)(run_attest *a, char *text, size_t n);
	void (*cleanup)(run_attest *a);
} run_attest_method;

#define RUN_HEAD_MAX 2048

struct run_attest {
	const run_attest_method *method; /* NULL: none */
	const char *refusal;
	const sw_run_program *program;
	const sw_run_shape *shape;
	char **argv; /* a copy, with room for two more */
	size_t argc;
	pid_t pid;
	int child_fd, fd;
	run_watch watch;
	bool wants_watch;
	bool pid_gone;    /* pid has ended: who sends as it now is somebody else */
	bool kernel_seen; /* the command was executed in the runner's tree */
	bool many_names;  /* the runner's file may hold the command's program as well */
	int64_t next_look, look_step;
	char head[RUN_HEAD_MAX]; /* the output's beginning */
	size_t head_len;
	uint64_t output;
	/* status descriptor */
	bool exit_code_seen, child_pid_seen;
	bool foreign;    /* something else wrote to it or shut it down */
	bool silenced;   /* the latter */
	bool ended;      /* the launcher's pipe has ended */
	char text[4096]; /* an object that is not complete yet */
	size_t text_len;
	/* records */
	run_engine_call call;
	char dir[128];       /* our own temporary directory, empty: none */
	char record[4096];   /* cid or pid file */
	bool callers_record; /* the caller named it: it proves nothing */
	bool record_written; /* somebody wrote in its folder */
	bool record_touched; /* by more than one writer, or more than once */
	unsigned record_closes, record_creates;
	uint32_t record_cookie;
	const char *record_leaf; /* its name in dir */
	int dir_fd;              /* O_PATH; -1: none */
	const char *cwd;         /* the runner's, NULL: ours */
	char unit[64];
	char id[160];
	bool unproved; /* the method serves only to end what runs outside */
	bool own_unit, running, oom_killed;
	int64_t began_s; /* wall clock */
	/* the conclusion */
	sw_started started;
	sw_source source;
	bool lost;
};

/*
 * Plans the proof of start for argv (its runner at argv[0]). Never fails for want of a
 * proof: then there is a refusal. program and shape are borrowed.
 */
int run_attest_new(run_attest **out, char *const *argv, const sw_run_shape *shape,
                   const sw_run_program *program, const char *cwd, bool wanted, sw_error *err);
void run_attest_spawned(run_attest *a, pid_t pid);
void run_attest_look(run_attest *a); /* the kernel's view; cheap, stops by itself */
void run_attest_output(run_attest *a, const void *bytes, size_t n);
/* After the runner has ended: fills started, source, lost. */
void run_attest_conclude(run_attest *a, int code, int sig, bool we_killed);
void run_attest_free(run_attest *a);
bool run_attest_insert(run_attest *a, size_t at, const char *one, const char *two);
/* Is a process of pid's tree (itself included) executing another file than the runner? */
bool run_same_program_runs(pid_t pid, const sw_run_program *runner);
bool run_other_program_runs(pid_t pid, const sw_run_program *runner, int depth);

extern const run_attest_method run_attest_status_fd, run_attest_launcher, run_attest_engine,
    run_attest_oci, run_attest_systemd;

/* ---- attest_folder.c: the file a runner leaves its record in ---- */
const char *run_record_own(run_attest *a, const char *leaf); /* a reason, where there is none */
void run_record_callers(run_attest *a, const char *path);
void run_record_readable(run_attest *a); /* a->fd: what happened in the folder; fills a->id */
void run_record_remove(run_attest *a);
void run_record_look(run_attest *a); /* the same, and at the file in any case */
bool run_record_never_written(const run_attest *a);
bool run_record_untouched(const run_attest *a); /* written by one, once, at most */

/* ---- kernel_log.c ---- */
int run_kernel_log_open(void); /* from now on; -1: cannot be read, or would mislead */
void run_kernel_log_read(int fd, pid_t self, sw_run_report *report);
/* One record of /dev/kmsg. False: not the kernel's word on a kill, or not as it writes it. */
bool run_kernel_log_parse(const char *record, sw_run_kernel_record *out);
/* filtered: the sandbox has a filter; else it was the command's own, and denied it nothing. */
int run_kernel_log_tell(const sw_run_report *report, bool filtered, sw_result *result);

/* ---- helper.c: a small program's output, bounded in time and size ---- */
int run_helper(char *const *argv, int64_t timeout_ns, char *out, size_t out_size, int *exit_code);

#endif
