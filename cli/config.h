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

/*
 * $SANDWITNESS_CONFIG (empty: none), else $XDG_CONFIG_HOME/sandwitness/config.yaml. Without
 * a file nothing is read and argv stays. Else *argv becomes a new list that lives until
 * exit. Errors say file:line:column. A file that others can write is refused: it could
 * switch a sandbox off. *used, if not NULL: the file's name where options were added.
 */
int cli_config_apply(const cli_verb *v, int *argc, char ***argv, const char **used, sw_error *err);

#endif
