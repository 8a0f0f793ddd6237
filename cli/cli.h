/*
 * cli.h - the sandwitness program. One verb per file: a static table entry and
 * its function. Exit status: 0 answered, 1 usage or configuration, 2 input-output
 * or internal; verbs with more say so in their help.
 */
#ifndef SW_CLI_H
#define SW_CLI_H

#include "signatures.h"

enum { CLI_OK = 0, CLI_USAGE = 1, CLI_IO = 2, CLI_RUNNER_FAILED = 10, CLI_SANDBOX_DENIED = 11 };

typedef struct cli_verb {
	const char *name;
	const char *summary; /* one line for `help` */
	const char *usage;   /* arguments after the name */
	const char
	    *help; /* options, then examples; examples begin with "  $ " and are run by tests */
	/* argv[0] is the verb. Returns the exit status. */
	int (*run)(int argc, char **argv);
} cli_verb;

/* The formatter does not settle on this list. */
/* clang-format off */
#define CLI_VERB_LIST(X) \
	X(classify) X(explain) X(run) X(confine) X(record) X(status) X(doctor) X(preflight) \
	X(report) X(invocations) X(verify) X(seal) X(prune) X(export) X(backup) X(reclassify) \
	X(serve) X(signatures) X(corpus) X(explain_cause) X(version) X(help)
/* clang-format on */

/* Start with *i = 0; NULL at the end. Verbs whose file is not in the build are left out. */
const cli_verb *cli_verb_next(size_t *i);
const cli_verb *cli_verb_find(const char *name);

/* "usage: sandwitness VERB ..." on stderr with the problem; returns CLI_USAGE. */
int cli_usage_error(const cli_verb *v, const char *fmt, ...) SW_PRINTF(2, 3);
/* Prints e and maps its code to CLI_USAGE or CLI_IO. */
int cli_fail(const sw_error *e);
void cli_help(const cli_verb *v, FILE *to);

/* The pack set in force: built-in plus user packs (--signatures DIR, /etc, XDG). A broken user
 * pack is refused whole with a warning on stderr; the built-in ones stay. Borrowed until exit. */
const sw_pack_set *cli_pack_set(const char *signatures_dir, const char *pack_set);
/* Files behind the set in force (samples, origins). */
size_t cli_pack_files(const sw_pack_file **out);
/* "built-in", or the folder that a pack came from. */
const char *cli_pack_origin(const sw_pack_def *def);
/* A pack of the set; on failure prints what is known and returns NULL. Cached until exit. */
const sw_pack *cli_pack(const sw_pack_set *set, const char *backend);
const sw_pack *cli_pack_quiet(const sw_pack_set *set, const char *backend, sw_error *err);
/* Path of the audit database: opt, or $SANDWITNESS_DB, or XDG default. Caller frees. */
char *cli_db_path(const char *opt);
/* Says so on stderr; CLI_IO. */
int cli_no_memory(void);
/* The error where that gave NULL. */
int cli_no_db_path(sw_error *err);
/* sw_result_json with the cause's advice filled in. */
json_t *cli_result_json(const sw_result *r, const char *id);
/* Prints one JSON value and a newline on `to`; consumes j. false: out of memory, nothing printed.
 */
bool cli_print_json(FILE *to, json_t *j);

/* The facts that classify, explain, run and record take as options. */
typedef struct cli_facts {
	sw_facts facts;
	sw_exit exit;
	bool has_exit;
	sw_started started;
	sw_source source;
	sw_str roots[64], accessible[64];
} cli_facts;
void cli_facts_init(cli_facts *f);
/* name without "--". 1: taken, 0: not one of these, < 0: bad value (err set). */
int cli_facts_option(cli_facts *f, const char *name, const char *value, sw_error *err);
/* An exit: -2147483648..4294967295, 0x..., or a signal name. */
int cli_parse_exit(const char *z, sw_exit *out, sw_error *err);
int cli_parse_signal(const char *z, int *out, sw_error *err);
/* The long options of cli_facts_option, for getopt_long tables. */
#define CLI_FACT_OPTIONS(X) \
	X("exit")           \
	X("signal")         \
	X("started")        \
	X("mode") X("network") X("enforcement") X("writable-root") X("accessible") X("cwd")

/* The human one-line answer (and, verbose, cause and advice lines) for a result. */
void cli_print_verdict(FILE *to, const sw_result *r, bool verbose, bool colour);

#endif
