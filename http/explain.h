/*
 * explain.h - the decision path of a stored invocation. The recorded rule says what
 * decided; where output was kept, today's packs run over it once more for the near
 * misses and the lines that no signature claims.
 */
#ifndef SW_HTTP_EXPLAIN_H
#define SW_HTTP_EXPLAIN_H

#include "packs.h"

/* Adds "explanation" to the invocation (null where no output was kept). SW_ENOMEM. */
int http_explain_add(http_packs *packs, json_t *invocation, sw_error *err);

#endif
