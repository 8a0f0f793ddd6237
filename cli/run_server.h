/* run_server.h - the records of a run, sent to a running service instead of the file. */
#ifndef SW_CLI_RUN_SERVER_H
#define SW_CLI_RUN_SERVER_H

#include "client.h"
#include "levels.h"
#include "store.h"

typedef struct run_server_level {
	bool derivable; /* the service finds the same level from the argv */
	bool known;     /* else: the level is declared; not known: neither */
} run_server_level;

/*
 * POSTs r as a record of docs/record.md: all of it (begin, complete), or the outcome and, with
 * `lowered`, the level (end). 0 only after the service has it on disk.
 */
int run_server_post(const char *server, sw_store_op_kind kind, const sw_record *r,
                    run_server_level level, sw_error *err);

#endif
