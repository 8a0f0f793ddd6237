/*
 * probe.h - does the sandbox work here, now? Finding runners, proving them in both
 * directions, and reading what the host allows.
 *
 * A probe runs one command through the runner: a write that is permitted must arrive,
 * a write that is forbidden must not, a file planted outside must be unreadable, a
 * planted environment variable gone, no route out. What the files on this side say
 * afterwards decides, not what the probe printed. "Found a binary" is never a result.
 *
 * Nothing is cached: every call looks again. Side effects: a private folder under
 * /tmp and one in the home, both removed; no network; docker and podman are asked for
 * images that are there already, never to pull.
 *
 * Threads: no globals; calls may run side by side. Do not call from a process that
 * has confined itself: the children would inherit it (set `confined_service`).
 * Ownership: what sw_status_read() fills is freed by sw_status_free(). Times are
 * nanoseconds since 1970, durations milliseconds.
 */
#ifndef SW_PROBE_H
#define SW_PROBE_H

#include <jansson.h>

#include "base.h"
#include "levels.h"

#define SW_PROBE_DEADLINE_MS 5000
#define SW_PROBE_STEPS_MAX 16
#define SW_PROBE_OUTPUT_MAX 65536 /* of a runner's output kept for its classification */

typedef struct sw_probe_options {
	const char *search_path;       /* PATH to look in; NULL: the process's own */
	const char *only;              /* one backend id; NULL: all */
	bool probe;                    /* run the proofs and the versions */
	int deadline_ms;               /* for each spawn; 0: SW_PROBE_DEADLINE_MS */
	const sw_pack_set *packs;      /* NULL: the built-in ones */
	const char *image;             /* for docker and podman; NULL: debian:stable-slim */
	const char *state_dir;         /* where runner failures are noted; NULL: XDG state */
	const char *landlock_launcher; /* a launcher program; NULL: the built-in one */
	bool no_recheck;               /* leave noted failures alone: look, do not probe */
	bool confined_service;         /* answer probes with not_probed, cause service-confined */
} sw_probe_options;

typedef enum {
	SW_STEP_OK,
	SW_STEP_FAILED,
	SW_STEP_SKIPPED,
	SW_STEP_UNKNOWN,
	SW_STEP_COUNT
} sw_step_result;
const char *sw_step_result_name(sw_step_result r); /* "ok", "failed", "skipped", "unknown" */

typedef struct sw_probe_step {
	char name[32]; /* stable: "client", "daemon", "image", "run", "permitted-write", ... */
	sw_step_result result;
	char detail[256]; /* for people; may hold captured text, escape it on a terminal */
} sw_probe_step;

/* Under which circumstances a result holds. */
typedef struct sw_probe_context {
	long uid, gid;
	char search_path[512];
	char userns[160];   /* "max_user_namespaces=96364 unprivileged_userns_clone=absent ..." */
	char seccomp[16];   /* "none", "strict", "filter", "unknown" */
	int no_new_privs;   /* 0, 1, -1 unknown */
	char container[32]; /* "none", "docker", "podman", ..., "unknown" */
} sw_probe_context;

typedef struct sw_backend_status {
	const char *id; /* of SW_BACKEND_LIST; borrowed constant */
	bool here;      /* false: not on this platform */
	bool found;
	char *path;           /* NULL: not found; the Landlock launcher: NULL, it is built in */
	char *untrusted_path; /* skipped on PATH: others can write it or a folder above it */
	char untrusted_why[160];
	char version[64]; /* "" unless probed */
	sw_probe_result result;
	int64_t at_ns; /* 0: not probed */
	double duration_ms;
	sw_probe_step steps[SW_PROBE_STEPS_MAX];
	size_t n_steps;
	char cause[64];      /* "" none */
	char advice[512];    /* "" none */
	char line[512];      /* the runner's own line behind the cause */
	uint32_t guarantees; /* what the probe proved, nothing before it ran */
	char recheck[256];   /* why it was probed although nobody asked: a noted runner failure */
} sw_backend_status;

typedef struct sw_host_fact {
	const char *id; /* stable: "kernel", "max_user_namespaces", "landlock_abi", ... */
	bool known;     /* false: could not be read; `value` says why */
	char value[256];
	char source[128]; /* file or call it came from */
} sw_host_fact;

typedef struct sw_status {
	bool bwrap_available;
	char *bwrap_path;
	bool disabled_via_env;
	char disabled_by[96]; /* "SANDWITNESS_SANDBOX=off" */
	bool active; /* bwrap would confine: found, not disabled, and proved where it was probed */
	sw_backend_status *backends;
	size_t n_backends;
	sw_host_fact *facts;
	size_t n_facts;
	sw_probe_context context;
} sw_status;

/* Looks, and probes where asked. SW_ENOTFOUND: `only` names no backend that can be probed. */
int sw_status_read(sw_status **out, const sw_probe_options *opts, sw_error *err);
void sw_status_free(sw_status *s); /* NULL is fine */
/* The object of docs/status.md. New reference. */
json_t *sw_status_json(const sw_status *s);
/* Both in one, for the service. NULL on failure. */
json_t *sw_status_read_json(const sw_probe_options *opts, sw_error *err);
const sw_backend_status *sw_status_backend(const sw_status *s, const char *id); /* NULL: none */

/*
 * The best backend that is usable now for `run --sandbox`: probes bwrap, landlock,
 * podman, docker in this order (seatbelt on macOS) and stops at the first that is proved
 * to hold every guarantee of `minimum`. *chosen is a copy the caller frees with
 * sw_backend_status_free(). SW_ENOTFOUND: none; the error says what was tried and why.
 * SW_ENOMEM: memory failed while one was probed; no weaker one is chosen for that.
 */
int sw_probe_choose(sw_backend_status **chosen, const sw_probe_options *opts, uint32_t minimum,
                    sw_error *err);
void sw_backend_status_free(sw_backend_status *b); /* NULL is fine */

/* SANDWITNESS_SANDBOX or METNOS_SANDBOX is 0, off, no or false in any case. `which`
 * (may be NULL) receives "NAME=value". */
bool sw_sandbox_disabled(char *which, size_t n);

/*
 * The trusted path of a program, as status finds it: the first executable on
 * `search_path` (NULL: PATH) of which neither the file nor a folder above it can be
 * written by another user. Skipped ones: the first is given in *untrusted (may be NULL)
 * with the reason. Caller frees. NULL: none.
 */
char *sw_find_program(const char *name, const char *search_path, char **untrusted, char *why,
                      size_t why_n);

/*
 * Where failures of real runs are noted; made where it is not there. To be opened before the
 * command runs, which may be able to write there and to put a link in its place. A descriptor,
 * the caller's to close, or a negative sw_code. state_dir NULL: XDG state.
 */
int sw_probe_notes_open(const char *state_dir, sw_error *err);
/*
 * A real run ended in runner_failed: the next status probes this backend afresh and says why.
 * notes negative: nothing is noted. Never fails a run: errors are for logging.
 */
int sw_probe_note_failure(int notes, const char *backend, const char *cause, const char *invocation,
                          sw_error *err);

/* ---- doctor ---- */
typedef enum {
	SW_CHECK_OK,
	SW_CHECK_WARNING,
	SW_CHECK_BROKEN,
	SW_CHECK_INFO,
	SW_CHECK_COUNT
} sw_check_status;
const char *sw_check_status_name(sw_check_status s); /* "ok", "warning", "broken", "info" */
typedef struct sw_check {
	char id[48]; /* stable */
	sw_check_status status;
	char message[384];
	char fix[384]; /* "" none; one line */
} sw_check;
#define SW_CHECKS_MAX 64
/* The checklist for a status; at most SW_CHECKS_MAX. Returns how many. os_release: the
 * file to read, NULL: /etc/os-release. */
size_t sw_doctor(const sw_status *s, const char *os_release, sw_check out[SW_CHECKS_MAX]);
/* "sudo apt install bubblewrap" for this distribution, by its os-release. */
void sw_install_command(const char *os_release, const char *program, char *out, size_t n);

#endif
