/*
 * cli.h - the sandwitness program. One verb per file: a static table entry and
 * its function. Exit status: 0 answered, 1 usage or configuration, 2 input-output
 * or internal; verbs with more say so in their help.
 */
#ifndef SW_CLI_H
#define SW_CLI_H

#include "base.h"

enum { CLI_OK = 0, CLI_USAGE = 1, CLI_IO = 2, CLI_RUNNER_FAILED = 10, CLI_SANDBOX_DENIED = 11 };

typedef struct cli_verb {
	const char *name;
	const char *summary; /* one line for `help` */
	const char *usage;   /* arguments after the name */
	const char *help;    /* options, then examples; examples begin with "  $ " and are run by tests */
	/* argv[0] is the verb. Returns the exit status. */
	int (*run)(int argc, char **argv);
} cli_verb;

#define CLI_VERB_LIST(X) \
	X(classify) X(explain) X(run) X(confine) X(record) X(status) X(doctor) X(preflight) \
	X(report) X(invocations) X(verify) X(prune) X(export) X(backup) X(reclassify) X(serve) \
	X(signatures) X(corpus) X(explain_cause) X(version) X(help)

extern const cli_verb *const cli_verbs[]; /* ends with NULL */

/* "usage: sandwitness VERB ..." on stderr with the problem; returns CLI_USAGE. */
int cli_usage_error(const cli_verb *v, const char *fmt, ...) SW_PRINTF(2, 3);
/* Prints e and maps its code to CLI_USAGE or CLI_IO. */
int cli_fail(const sw_error *e);
void cli_help(const cli_verb *v, FILE *to);

/* The pack set in force: built-in plus user packs (--signatures DIR, /etc, XDG). A broken user
 * pack is refused whole with a warning on stderr; the built-in ones stay. Borrowed until exit. */
const sw_pack_set *cli_pack_set(const char *signatures_dir, const char *pack_set);
/* A pack of the set; on failure prints what is known and returns NULL. Cached until exit. */
const sw_pack *cli_pack(const sw_pack_set *set, const char *backend, unsigned flags);
/* Path of the audit database: opt, or $SANDWITNESS_DB, or XDG default. Caller frees. */
char *cli_db_path(const char *opt);
/* The human one-line answer (and, verbose, cause and advice lines) for a result. */
void cli_print_verdict(FILE *to, const sw_result *r, bool verbose, bool colour);

#endif
