/* run_cli.h - the parts of `sandwitness run`: options, levels, the audit record, answers. */
#ifndef SW_CLI_RUN_H
#define SW_CLI_RUN_H

#include "run_place.h"
#include "cli.h"
#include "derive.h"
#include "levels.h"
#include "probe_cli.h"
#include "run.h"

#define RUN_LABELS_MAX 32
#define RUN_PATHS_MAX 64
#define RUN_KEEP_FDS_MAX 64

typedef enum { RUN_AUDIT_REQUIRED, RUN_AUDIT_BEST_EFFORT, RUN_AUDIT_OFF } run_audit;

typedef struct run_cli_options {
	const char *backend, *signatures, *pack_set;
	const char *requested, *minimum, *reason;
	const char *session, *actor, *runtime, *device, *id, *db;
	const char *server; /* records go to this service instead of the file */
	const char *labels[RUN_LABELS_MAX];
	size_t n_labels;
	probe_cli_policy policy; /* --sandbox and what belongs to it; mode UNKNOWN: not given */
	bool network_allowed;    /* bare --network */
	const char *cwd;
	int64_t deadline_ns, grace_ns;
	bool no_merge, no_attest, quiet_stdin, json, quiet, verbose, exempt, allow_unconfined,
	    trace;
	int verdict_fd; /* -1: none */
	const char *verdict_file;
	run_place place; /* of the file, settled before the command starts */
	int keep_fds[RUN_KEEP_FDS_MAX];
	size_t n_keep_fds;
	size_t keep_output;
	run_audit audit;
	cli_facts f;
	char **argv; /* the command, ends with NULL */
	int argc;
} run_cli_options;

/* -1: go on, in a process without children; else the exit status of the one that did. */
int run_cli_apart(void);
/* 0, or the exit status of a usage error (already printed). */
int run_cli_parse(run_cli_options *o, const cli_verb *self, int argc, char **argv);

/* What is known before the start about the containment that this argv gives. */
typedef struct run_cli_level {
	sw_derived derived;
	sw_level_input in;
	sw_level_outcome outcome;
	sw_str roots[2 * SW_DERIVE_PATHS_MAX];
	char effective[64]; /* its name for people */
	char reason[1024];
	bool built; /* from our own argv, not derived */
	const char *backend;
} run_cli_level;

int run_cli_level_init(run_cli_level *v, const run_cli_options *o, char *const *argv, size_t argc,
                       const char *backend, sw_error *err);
/* Fills facts that the caller left open. */
void run_cli_level_facts(run_cli_level *v, sw_facts *facts);
/* After the run: what the output's downgrade notices took away. */
void run_cli_level_after(run_cli_level *v, const sw_result *r);
void run_cli_level_free(run_cli_level *v);
json_t *run_cli_level_json(const run_cli_level *v);

/* `--sandbox`: the command wrapped by ourselves. */
typedef struct run_cli_sandbox {
	sw_backend_status *chosen; /* NULL: pinned, or none */
	sw_confined *confined;     /* NULL: runs unconfined */
	char *runner;
	char self[4096];
	char disabled[128];                  /* "SANDWITNESS_SANDBOX=off" */
	char cause[64], why[1024], fix[512]; /* of a refusal */
} run_cli_sandbox;
/* 0; 1: refused, with cause, why and fix filled; negative: an error. */
int run_cli_sandbox_plan(run_cli_sandbox *b, run_cli_options *o, uint32_t minimum, sw_error *err);
void run_cli_sandbox_free(run_cli_sandbox *b);
/* Level and facts of a sandbox that we built (or left away). */
int run_cli_level_built(run_cli_level *v, run_cli_options *o, const run_cli_sandbox *b,
                        sw_error *err);

/* The audit record of one run. */
typedef struct run_cli_record run_cli_record;
int run_cli_record_new(run_cli_record **out, const run_cli_options *o, const run_cli_level *level,
                       char *const *argv, size_t argc, sw_error *err);
const char *run_cli_record_id(const run_cli_record *r);
int run_cli_record_begin(run_cli_record *r, const run_cli_level *level, sw_error *err);
/* Output for the digest and, where wanted, for keeping. */
void run_cli_record_output(run_cli_record *r, const void *bytes, size_t n);
int run_cli_record_end(run_cli_record *r, const run_cli_level *level, const sw_run_report *report,
                       const sw_result *result, sw_error *err);
/* Refused before anything was spawned. */
int run_cli_record_refused(run_cli_record *r, const run_cli_level *level, const char *cause,
                           const char *why, sw_error *err);
void run_cli_record_free(run_cli_record *r);

/* The verdict object with what only `run` knows. */
json_t *run_cli_json(const sw_result *r, const sw_run_report *report, const run_cli_level *level,
                     const char *id);
/* An object for a run that was refused. */
json_t *run_cli_refusal_json(const char *backend, const char *cause, const char *why,
                             const run_cli_level *level, const char *id);
/* An object for a run that happened and could not be judged: verdict null. */
json_t *run_cli_unjudged_json(const char *backend, const char *why, const run_cli_level *level,
                              const char *id);
#define RUN_SAY_NS INT64_C(500000000) /* with a deadline: for what is said to people */
#define RUN_VERDICT_NS INT64_C(2000000000)
/* All of the text, or SW_EIO with errno; limit 0: as long as it takes. */
int run_cli_write(int fd, const char *text, size_t n, int64_t limit_ns);
/* To --verdict-fd, --verdict-file and (--json) stdout; consumes j. 0 or SW_EIO. */
int run_cli_publish(const run_cli_options *o, json_t *j, sw_error *err);

#endif
