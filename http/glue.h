/*
 * glue.h - between libmicrohttpd and the handlers: collects a request, applies guard
 * and limits, sends the reply. Nothing else includes microhttpd.h but reply.c.
 */
#ifndef SW_HTTP_GLUE_H
#define SW_HTTP_GLUE_H

#include "conn.h"
#include "http.h"
#include "listen.h"

typedef struct http_daemon {
	http_server *server;
	http_conns *conns;
	http_listener listener;
	struct MHD_Daemon *mhd;
} http_daemon;

/* d->server, conns and listener are set; *d must not move afterwards. */
int http_daemon_start(http_daemon *d, sw_error *err);
/* No new connections; those that are open go on. */
void http_daemon_quiesce(http_daemon *d);
/* Ends every connection and joins the threads. */
void http_daemon_stop(http_daemon *d);

#endif
