/*
 * metrics.h - counters of the service and their Prometheus text. Label values come
 * from closed lists only (routes, status codes, backends, verdicts): what a client
 * sends can never become a label. An unknown backend counts as "other".
 */
#ifndef SW_HTTP_METRICS_H
#define SW_HTTP_METRICS_H

#include "http.h"

typedef struct http_metrics http_metrics;

int http_metrics_new(http_metrics **out);
void http_metrics_free(http_metrics *m); /* NULL is fine */

/* route NULL: none. ns 0: not counted as a duration (streams). */
void http_metrics_request(http_metrics *m, const http_route *route, int status, int64_t ns);
void http_metrics_classified(http_metrics *m, const char *backend, const char *verdict);
void http_metrics_recorded(http_metrics *m, sw_str backend, const char *verdict);
void http_metrics_cut(http_metrics *m, size_t connections);
void http_metrics_connections(http_metrics *m, size_t on_unix, size_t on_tcp);

/* Adds the counters' text to b. */
void http_metrics_text(http_metrics *m, sw_buf *b);
/* One family's head: HELP and TYPE lines. For gauges that the caller reads elsewhere. */
void http_metrics_head(sw_buf *b, const char *name, const char *type, const char *help);

#endif
