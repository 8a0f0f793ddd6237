/* args.h - walking an argument list: --name value, --name=value, --, positionals. */
#ifndef SW_CLI_ARGS_H
#define SW_CLI_ARGS_H

#include "cli.h"

typedef struct cli_args {
	const cli_verb *verb;
	int argc, at;
	char **argv;
	const char *name;         /* of an option, without dashes; NULL: a positional */
	const char *inline_value; /* after '=' */
	bool only_positional;     /* after -- */
} cli_args;

void cli_args_init(cli_args *a, const cli_verb *verb, int argc, char **argv);
/* 1: an option in name; 2: a positional in inline_value; 0: the end. */
int cli_args_next(cli_args *a);
/* The option's value; NULL (with the usage error printed) where there is none. */
const char *cli_args_value(cli_args *a);

typedef struct cli_flag {
	const char *name;
	bool *to;
} cli_flag;
typedef struct cli_text {
	const char *name;
	const char **to;
} cli_text;
/*
 * The current option, if it is one of these (tables end with a NULL name).
 * 1: taken, 0: another one, -1: bad, and said so.
 */
int cli_args_take(cli_args *a, const cli_flag *flags, const cli_text *texts);
/* The same for CLI_FACT_OPTIONS. */
int cli_args_fact(cli_args *a, cli_facts *f);
/*
 * The whole list of a verb that takes one file, such options and facts (which may be NULL).
 * 0, or CLI_USAGE with the problem printed.
 */
int cli_args_all(cli_args *a, const cli_flag *flags, const cli_text *texts, cli_facts *facts,
                 const char **file);
/* Prints "unknown option"; returns CLI_USAGE. */
int cli_args_unknown(const cli_args *a);

#endif
