/*
 * helper.h - the process that looks and probes for the service. It is forked before the
 * service confines itself: what the service started would inherit the confinement, and a
 * probe would judge that instead of the machine. It does nothing else: it reads no socket
 * but the service's, and holds no record and no token.
 */
#ifndef SW_HTTP_HELPER_H
#define SW_HTTP_HELPER_H

#include "packs.h"

typedef struct http_helper http_helper;

/* Before any thread and any listener. */
int http_helper_start(http_helper **out, const http_config *config, http_packs *packs,
                      sw_error *err);
void http_helper_stop(http_helper *h); /* NULL is fine */
/* The status object as sw_status_read_json() gives it. Any thread; calls may run side by side. */
int http_helper_status(http_helper *h, bool probe, const char *only, json_t **out, sw_error *err);

#endif
