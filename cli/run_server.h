/* run_server.h - the records of a run, sent to a running service instead of the file. */
#ifndef SW_CLI_RUN_SERVER_H
#define SW_CLI_RUN_SERVER_H

#include "client.h"
#include "levels.h"
#include "store.h"

/*
 * POSTs r as a record of docs/record.md: all of it (begin, complete), or the outcome and, with
 * r->has_level, the level (end). The service cannot check how a level is known, so there its
 * basis is `declared`. 0 only after the service has the record on disk.
 */
int run_server_post(const char *server, sw_store_op_kind kind, const sw_record *r, sw_error *err);

#endif
