/*
 * config.h - the optional configuration file. Every long option of a verb has its key:
 * options from the file are put in front of those of the command line, so that these win
 * (lists add up). docs/config.md is the manual.
 */
#ifndef SW_CLI_CONFIG_H
#define SW_CLI_CONFIG_H

#include "cli.h"

#define CLI_CONFIG_MAX (1u << 18)   /* bytes of the file */
#define CLI_CONFIG_OPTIONS_MAX 1024 /* arguments it may add */

/* What the file added; zero-initialise. */
typedef struct cli_config {
	char **argv; /* the verb's new arguments; NULL: the old ones stay */
	int argc, added;
	char *file; /* where they are from */
} cli_config;

/*
 * $SANDWITNESS_CONFIG (empty: none), else $XDG_CONFIG_HOME/sandwitness/config.yaml. Without
 * a file, or one that says nothing about this verb, out->argv stays NULL. Errors say
 * file:line:column. A file that others can write is refused: it could switch a sandbox off.
 */
int cli_config_read(cli_config *out, const cli_verb *v, int argc, char **argv, sw_error *err);
void cli_config_free(cli_config *c);

#endif
