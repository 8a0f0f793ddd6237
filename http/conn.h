/*
 * conn.h - every open connection and how long it may stay in its phase.
 *
 * libmicrohttpd's own time-out counts from the last byte, so a client that sends one
 * byte every few seconds would keep its place for ever. Here a phase as a whole has a
 * deadline; who misses it has its socket shut down, and libmicrohttpd cleans up.
 */
#ifndef SW_HTTP_CONN_H
#define SW_HTTP_CONN_H

#include "http.h"

typedef enum {
	HTTP_PHASE_HEAD,       /* idle, or the head is arriving */
	HTTP_PHASE_BODY,       /* the body is arriving */
	HTTP_PHASE_HANDLER,    /* the service is at work: its own limits hold */
	HTTP_PHASE_ANSWER,     /* the answer is going out */
	HTTP_PHASE_STREAM,     /* an event stream waits for news: ours */
	HTTP_PHASE_STREAM_OUT, /* an event stream's bytes are going out: the client's */
	HTTP_PHASE_COUNT
} http_phase;

typedef struct http_conn {
	struct http_conn *next, *prev;
	int fd;
	int port; /* the TCP listener's */
	http_peer peer;
	atomic_int phase;
	_Atomic int64_t since_ns;
	bool cut;
} http_conn;

typedef struct http_conns http_conns;

int http_conns_new(http_conns **out, const http_config *config);
void http_conns_free(http_conns *conns); /* NULL is fine; all connections must be closed */
/* fd is looked at (peer credentials), not owned. NULL: out of memory, it
 * must not be served. */
http_conn *http_conns_add(http_conns *conns, int fd, bool is_unix, int port);
/* Before the descriptor is closed. */
void http_conns_remove(http_conns *conns, http_conn *conn);
void http_conn_phase(http_conn *conn, http_phase phase);
/* Shuts down what is over its deadline. Returns how many. */
size_t http_conns_reap(http_conns *conns, int64_t now_ns);
size_t http_conns_count(http_conns *conns, bool is_unix);

#endif
