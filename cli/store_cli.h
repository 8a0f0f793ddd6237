/*
 * store_cli.h - what the verbs of the audit trail share: opening it, filters, tables.
 */
#ifndef SW_STORE_CLI_H
#define SW_STORE_CLI_H

#include "args.h"
#include "store_confine.h"
#include "store.h"

#define STORE_FILTER_USAGE                                                             \
	"[--since T] [--until T] [--backend B] [--verdict V] [--level L] [--cause C] " \
	"[--session S] [--actor A] [--device D] [--label K=V] [--limit N] [--cursor C]"
#define STORE_FILTER_HELP                                                                          \
	"  --since T, --until T   now, recent, today, yesterday, this-week, week-ago, 24h, RFC "   \
	"3339\n"                                                                                   \
	"  --backend, --verdict, --level, --cause, --session, --actor, --device VALUE\n"           \
	"  --label K=V            may be repeated: all must match\n"                               \
	"  --server unix:PATH     ask a running service (sandwitness serve) instead of the file\n" \
	"  --limit N              rows at most (50); --cursor C: the page after, from \"next\"\n"

#define STORE_CONFINE_HELP \
	"  --no-self-sandbox      keep other files, the network and programs within reach\n"

typedef struct store_options {
	const char *db;
	const char *server;       /* NULL: the file */
	bool json, csv, filtered; /* filtered: any filter was given */
	store_confine confine;
	sw_query q;
	sw_buf params; /* the filters as a query, for the server */
} store_options;

/*
 * Takes --db, --server, --json, --csv and every filter. 1: taken, 0: not one of these,
 * negative: a usage error was printed.
 */
int store_option(store_options *o, cli_args *a);
void store_options_free(store_options *o);
/* GET path with the filters from o->server. */
int store_server_get(const store_options *o, const char *path, json_t **answer, sw_error *err);
/* NULL: the error was printed and *status set. */
sw_store *store_open_cli(const char *db, unsigned flags, int *status);

/* The same for reading, and gives up everything else; store_confine_begin() came before. */
sw_store *store_open_confined(const store_options *o, int *status);

/* The code again, or SW_ENOMEM where memory was short for a part of what was made of JSON since. */
int store_whole(int code, sw_error *err);
/* Prints a JSON object on one line. */
void store_print_json(const json_t *j);
/* Rows of a report as an aligned table; hostile text escaped, cut to a terminal's width. */
void store_print_table(FILE *to, const json_t *columns, const json_t *rows);
void store_print_csv(FILE *to, const json_t *columns, const json_t *rows);
/* One value as a person reads it; the caller frees. */
char *store_cell_text(const json_t *v, const char *kind);
/* "head 123:abcd..., sealed up to 100" */
void store_print_head(FILE *to, const json_t *head);
/* Flushes and checks stdout: CLI_OK or CLI_IO. */
int store_finish(int status);

#endif
