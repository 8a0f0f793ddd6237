/* batch.h - classification of JSON objects, shared by `classify --batch` and the service. */
#ifndef SW_CLI_BATCH_H
#define SW_CLI_BATCH_H

#include "cli.h"

#define CLI_BATCH_LINE_MAX (64u << 20) /* bytes of one input line */

enum { CLI_BATCH_OBSERVE_OK = 1 };

/* One object in, one object out; never NULL but for lack of memory. */
json_t *cli_batch_object(const sw_pack_set *set, const json_t *in, const char *default_backend,
                         unsigned flags);
/* NDJSON to NDJSON, same order; bad lines give {"id", "error"}. Returns the exit status. */
int cli_batch(FILE *in, FILE *out, const sw_pack_set *set, const char *default_backend,
              bool observe_ok);

#endif
