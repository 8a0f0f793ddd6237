/*
 * run.h - running a command under watch.
 *
 * Purpose. Start an argv that is already wrapped by a sandbox runner (or wrap it
 * first, confine.h), pass its output through live, feed it to the classifier, end
 * every process it left behind, and know by proof outside the output whether the
 * command was started at all (docs/run.md).
 *
 * Layers, each usable alone:
 *   sw_run_detect(), sw_run_find_program()      pure look at an argv and the PATH
 *   sw_run_supervise()                          the process side, bytes go to a callback
 *   sw_run_command()                            supervise + classify = verdict
 *
 * Process rules. sw_run_supervise() makes the calling process a child subreaper
 * while it runs, blocks SIGCHLD, SIGINT, SIGTERM, SIGHUP and SIGQUIT in the calling
 * thread (restored on return) and starts one thread that writes. Call it from the
 * main thread of a process in which no other thread waits for children or forks.
 * Children that the process had before are neither reaped nor killed. It never
 * confines itself: the command would inherit that.
 *
 * Memory is constant in the size of the output (about 1.2 MiB per stream).
 * Errors: 0 or a negative sw_code; sw_error may be NULL and is written on failure.
 */
#ifndef SW_RUN_H
#define SW_RUN_H

#include <sys/types.h>

#include "sandwitness.h"

#define SW_RUN_DRAIN_NS INT64_C(200000000)  /* for writers that outlive the command */
#define SW_RUN_GRACE_NS INT64_C(1000000000) /* between TERM and KILL */
#define SW_RUN_EXIT_REFUSED 125             /* refused, or not recordable */
#define SW_RUN_ARGS_MAX 65536               /* elements of one argv */

/* ---- looking at an argv ------------------------------------------------ */

/* How a program named by argv[0] was found. */
typedef struct sw_run_program {
	char path[4096]; /* absolute; empty: not found */
	bool trusted;    /* root's, and neither it nor a parent can be written by others */
	char untrusted_path[4096]; /* a PATH entry or link that fails that; empty: none */
	int error;                 /* errno of the failed look-up, 0: found */
	dev_t dev;                 /* of the file found */
	ino_t ino;
	bool setid;  /* set-uid, set-gid or with file capabilities */
	bool native; /* machine code: the process executes this very file, not its interpreter */
} sw_run_program;

/*
 * Looks argv0 up as execvp() does (path as it stands with a slash in it, else the
 * directories of `path_env`; NULL: getenv("PATH") or the system's default). Returns
 * 0, or SW_ENOTFOUND with out->error set.
 */
int sw_run_find_program(const char *argv0, const char *path_env, sw_run_program *out);
/*
 * True where `path` and each of its parents belong to root (or to this user) and
 * nobody else can write them; sticky directories count as safe. `bad`, if not NULL,
 * receives the first part that fails.
 */
bool sw_run_path_trusted(const char *path, char *bad, size_t bad_size);

/* What an argv says about its runner. All strings are borrowed from argv or constant. */
typedef struct sw_run_shape {
	const char *backend; /* never NULL; "none" where no runner is recognised */
	size_t runner;       /* argv[runner] is the runner's program */
	size_t options;      /* argv[options] is its first option */
	size_t command;      /* argv[command] is the wrapped command; argc: not known */
	bool merge_wrapper;  /* the fixed  sh -c 'exec "$@" 2>&1' sh ARGV  form */
	sw_network network;  /* as far as the options say; bwrap, docker, podman, unshare */
} sw_run_shape;
void sw_run_detect(char *const *argv, sw_run_shape *out);
/* Is argv[at] this very program as its own Landlock launcher (`sandwitness __landlock ...`)? Any
 * other program with such an argument is no launcher. */
bool sw_run_is_launcher(char *const *argv, size_t at);

/* The descriptors from 3 on that options of the runner name, as it reads numbers: how many, of
 * which at most `max` are written; -1: options that cannot be read here may name any. */
int sw_run_named_descriptors(char *const *argv, int *fds, size_t max);

/* ---- supervising ------------------------------------------------------- */

typedef enum {
	SW_RUN_NOTE_LEFTOVER,       /* descendants were left and ended; value: how many */
	SW_RUN_NOTE_CUT,            /* a writer held the pipe open past the drain time */
	SW_RUN_NOTE_SURVIVOR,       /* descendants that could not be ended; value: how many */
	SW_RUN_NOTE_STDOUT_CLOSED,  /* nobody reads; value: errno. Output is still classified */
	SW_RUN_NOTE_OUTPUT_DROPPED, /* the reader was too slow after the deadline; value: bytes */
	SW_RUN_NOTE_FORWARDED,      /* value: the signal passed on */
	SW_RUN_NOTE_DEADLINE,       /* value: ns after the start */
	SW_RUN_NOTE_RUNNER_LOST,  /* the runner died after the command had started; value: signal */
	SW_RUN_NOTE_NOT_ATTESTED, /* why no proof of start was asked for: `text` */
	SW_RUN_NOTE_FORGED,       /* something other than the runner wrote to its status channel */
	SW_RUN_NOTE_CONTAINER,    /* the container was stopped: `text` is its id */
	SW_RUN_NOTE_TRACE,        /* about --trace: `text` */
	SW_RUN_NOTE_BLIND         /* the descendants could not be looked at */
} sw_run_note_kind;

typedef struct sw_run_note {
	sw_run_note_kind kind;
	int64_t value;
	char text[200];
} sw_run_note;
/* The note as a sentence for people; returns the length as snprintf does. */
int sw_run_note_text(const sw_run_note *note, char *out, size_t n);
const char *sw_run_note_name(sw_run_note_kind kind);

/* Zero-initialise; -1 in a descriptor means none. */
typedef struct sw_run_options {
	char *const *argv;   /* ends with NULL */
	const char *backend; /* NULL: as detected */
	const char *cwd;     /* NULL: this process's */
	char *const *env;    /* NULL: this process's */
	int64_t deadline_ns; /* 0: none */
	int64_t grace_ns;    /* 0: SW_RUN_GRACE_NS */
	int64_t drain_ns;    /* 0: SW_RUN_DRAIN_NS */
	bool no_merge;       /* stdout is handed on untouched, only stderr is read */
	bool no_attest;      /* do not add options to the runner's argv */
	bool quiet_stdin;    /* /dev/null instead of this process's stdin */
	bool trace;          /* watch failing system calls (trace.h) */
	int out_fd;          /* where the (merged) output goes; -1: nowhere */
	int err_fd;          /* with no_merge: where stderr goes; -1: nowhere */
	const int *keep_fds; /* inherited descriptors the command may keep, besides 0-2 and */
	size_t n_keep_fds;   /* those that the runner's own options name */
	/*
	 * The command's merged output (with no_merge: its stderr), in order, in pieces. Called
	 * from the calling thread.
	 */
	void (*on_output)(void *ctx, const void *bytes, size_t n);
	/* At once, and before what it tells of is acted on: it must not wait for anybody. */
	void (*on_note)(void *ctx, const sw_run_note *note);
	/* Called once, just before the command is spawned; nonzero: refuse. NULL: none. */
	int (*before_spawn)(void *ctx, sw_error *err);
	void *ctx;
} sw_run_options;

#define SW_RUN_NOTES_MAX 24
#define SW_RUN_KERNEL_MAX 8

/* A process of the tree that the kernel killed, by its log. */
typedef struct sw_run_kernel_record {
	bool seccomp; /* else: out of memory */
	pid_t pid;
	int syscall;
	char comm[24];
} sw_run_kernel_record;

typedef struct sw_run_report {
	bool spawned;    /* a process was made and argv[0] executed */
	int spawn_errno; /* why argv[0] could not be executed; 0: it was */
	pid_t pid;
	sw_exit exit;       /* of argv[0]; 127 or 126 where it could not be executed */
	sw_started started; /* of the wrapped command */
	sw_source source;
	bool runner_lost; /* the runner died of a signal that run did not send, after the start */
	bool timed_out;
	bool oom_killed;              /* the engine's record says so */
	int forwarded;                /* last signal passed on, 0: none */
	int64_t started_ns, ended_ns; /* wall clock, ns since 1970 */
	int64_t duration_ns;          /* monotonic */
	uint64_t output_bytes;        /* read from the command */
	uint64_t passed_bytes;        /* written to out_fd */
	unsigned leftovers;           /* descendants ended at the end of run or at the deadline */
	unsigned survivors;           /* that could not be ended */
	sw_run_note notes[SW_RUN_NOTES_MAX];
	size_t n_notes;
	sw_run_kernel_record kernel[SW_RUN_KERNEL_MAX];
	size_t n_kernel;
	sw_run_shape shape;
	const char
	    *command; /* the wrapped program as the argv names it, borrowed; NULL: not known */
	sw_run_program program;
} sw_run_report;

/*
 * Runs to the end. 0 also where the command failed or could not be started (see the
 * report). SW_EINVAL: no argv; SW_EIO: no pipe, no process; what before_spawn returned.
 * Nothing was executed where it fails.
 */
int sw_run_supervise(const sw_run_options *options, sw_run_report *report, sw_error *err);

/* ---- with a verdict ---------------------------------------------------- */

/*
 * Supervises and classifies. `pack` is that of the backend; `facts` may be NULL. The
 * result is the caller's (sw_result_free). on_output of the options still sees all bytes.
 */
int sw_run_command(const sw_run_options *options, const sw_pack *pack, const sw_facts *facts,
                   sw_run_report *report, sw_result **result, sw_error *err);

/* What `run` exits with: the command's code, 128 + signal. */
int sw_run_exit_status(const sw_run_report *report);

#endif
