/*
 * probes.h - the last proof of each backend, kept with its time and context so that
 * the dashboard can show how old it is. GET /v1/status itself always looks afresh.
 */
#ifndef SW_HTTP_PROBES_H
#define SW_HTTP_PROBES_H

#include "helper.h"
#include "http.h"
#include "packs.h"

typedef struct http_probes http_probes;

/* helper: who looks for a service that is confined; NULL: this process does. Borrowed. */
int http_probes_start(http_probes **out, const http_config *config, http_packs *packs,
                      http_helper *helper, sw_error *err);
/* Waits for a running probe (at most its deadlines). NULL is fine. */
void http_probes_stop(http_probes *p);
/* The status object, looked at now. only: NULL all, else one backend id. probe: run the proofs;
 * SW_EBUSY where others do already. Each backend has "last_probe", null or as of its time. */
int http_probes_status(http_probes *p, bool probe, const char *only, json_t **out, sw_error *err);
/* Gauges per backend. */
void http_probes_text(http_probes *p, sw_buf *b);

#endif
