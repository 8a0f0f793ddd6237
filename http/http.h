/*
 * http.h - the service: what its parts share.
 *
 * A server owns one libmicrohttpd daemon per listener (so that clients of one
 * cannot use up another's connections), a thread per connection (handlers may
 * block: a write waits for its group to be on disk, an event stream for news), a
 * writer thread and one housekeeping thread (deadlines, news from other processes,
 * the service manager's watchdog).
 *
 * Order of a request: guard (host, origin, content type, token), route, handler,
 * reply. Handlers see a complete body and fill an http_reply; they never touch
 * libmicrohttpd.
 *
 * Threads. http_server is shared by all of them: `config` and `packs` do not change
 * after the start, everything else has its own lock in its own file.
 */
#ifndef SW_HTTP_H
#define SW_HTTP_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base.h"
#include "config.h"
#include "problem.h"

struct MHD_Connection;
struct MHD_Daemon;

typedef struct http_server http_server;

/* Who is at the other end. Credentials only on a unix socket. */
typedef struct http_peer {
	bool is_unix;
	bool has_credentials;
	uid_t uid;
	gid_t gid;
	pid_t pid;
} http_peer;

enum { HTTP_PATH_ARG_MAX = 256, HTTP_REPLY_HEADERS_MAX = 6 };

typedef struct http_route http_route;

typedef struct http_request {
	http_server *server;
	struct MHD_Connection *connection;
	const char *method; /* borrowed */
	const char *path;
	const http_route *route;          /* NULL: none */
	char path_arg[HTTP_PATH_ARG_MAX]; /* what stands at "{...}" in the route, decoded */
	http_peer peer;
	const char *host;          /* the one Host header */
	const char *content_type;  /* NULL: none */
	const char *if_none_match; /* NULL: none */
	const char *last_event_id; /* NULL: none */
	const char *accept;        /* NULL: none */
	const char *body;          /* never NULL where there was one */
	size_t body_len;
} http_request;

struct http_stream; /* an event stream: events.h */

typedef struct http_reply {
	int status;
	const char *content_type; /* a literal */
	char *body;               /* malloc()ed, given to the reply; NULL with `fixed` */
	const char *fixed;        /* or bytes that outlive the process's requests */
	size_t len;
	struct {
		const char *name; /* a literal */
		char value[768];
	} headers[HTTP_REPLY_HEADERS_MAX];
	size_t n_headers;
	struct http_stream *stream; /* instead of a body */
} http_reply;

/* ---- handlers ---- */
typedef void (*http_handler)(http_request *req, http_reply *reply);

enum { HTTP_GET = 1u << 0, HTTP_POST = 1u << 1 };

struct http_route {
	const char *name;    /* label in metrics, operationId of the description */
	const char *pattern; /* "/v1/invocations/{id}"; at most one "{...}", the last segment */
	unsigned methods;
	bool is_public;            /* needs no token: holds no data */
	const char *const *params; /* query parameters, ends with NULL; others are refused */
	http_handler get, post;
};

extern const http_route http_routes[];
extern const size_t http_n_routes;
/* NULL: none. *arg is written where the route has one. Path decoded, may hold anything. */
const http_route *http_route_find(const char *path, char arg[HTTP_PATH_ARG_MAX]);

void http_api_status(http_request *, http_reply *);
void http_api_classify(http_request *, http_reply *);
void http_api_invocations_list(http_request *, http_reply *);
void http_api_invocations_post(http_request *, http_reply *);
void http_api_invocation(http_request *, http_reply *);
void http_api_reports(http_request *, http_reply *);
void http_api_report(http_request *, http_reply *);
void http_api_cause(http_request *, http_reply *);
void http_api_signatures(http_request *, http_reply *);
void http_api_chain(http_request *, http_reply *);
void http_api_events(http_request *, http_reply *);
void http_api_metrics(http_request *, http_reply *);
void http_api_livez(http_request *, http_reply *);
void http_api_readyz(http_request *, http_reply *);
void http_api_openapi(http_request *, http_reply *);
void http_api_ui(http_request *, http_reply *);

/* ---- request and reply helpers (reply.c) ---- */
/* A query parameter; NULL: absent. Borrowed until the reply is sent. The server has refused
 * repeated ones and ones with a NUL before the handler runs. */
const char *http_query(const http_request *req, const char *name);
/* Whole number in [min, max] or *fallback*; false after it has filled a 400. */
bool http_query_int(const http_request *req, http_reply *reply, const char *name, int64_t min,
                    int64_t max, int64_t fallback, int64_t *out);
/* The value as it stands, "" escaped etc.; too many headers are a programming error. */
void http_reply_header(http_reply *reply, const char *name, const char *fmt, ...) SW_PRINTF(3, 4);
/* Escapes for a path or a query. */
void http_escape(sw_buf *b, const char *z);
/* Takes the reference. */
void http_reply_json(http_reply *reply, int status, json_t *j);
void http_reply_problem(http_reply *reply, http_problem p, const char *detail_fmt, ...)
    SW_PRINTF(3, 4);
/* A problem whose status and type follow from the error's code. */
void http_reply_error(http_reply *reply, const sw_error *e);
/* The same error as problem p. */
void http_reply_error_as(http_reply *reply, http_problem p, const sw_error *e);
/* Sets ETag; true (and a 304 is in the reply) where the client has it already. */
bool http_reply_etag(const http_request *req, http_reply *reply, const char *tag);
void http_reply_clear(http_reply *reply);

/* ---- server (server.c) ---- */
struct http_writer;
struct http_readers;
struct http_events;
struct http_packs;
struct http_metrics;
struct http_probes;

struct http_server {
	const http_config *config; /* borrowed until the stop */
	char *token;               /* NULL: no TCP listener */
	char *db_path;
	struct http_writer *writer;
	struct http_readers *readers;
	struct http_events *events;
	struct http_packs *packs;
	struct http_metrics *metrics;
	struct http_probes *probes;
	int64_t started_ns;
	atomic_bool stopping;
	atomic_long in_flight;  /* requests whose head has arrived and whose answer is not out */
	atomic_long body_bytes; /* of all requests */
	/* what JSON takes in memory: so much at once (gate.c) */
	pthread_mutex_t gate_lock;
	pthread_cond_t gate_wake;
	size_t gate_bytes;
};

/* Starts everything; on failure nothing is left running. config must outlive the server. */
int http_server_start(http_server **out, const http_config *config, sw_error *err);
/* Stops accepting, lets accepted requests finish (at most config->shutdown_ns), writes what
 * is queued, ends streams, frees. NULL is fine. */
void http_server_stop(http_server *server);
/* The n-th listener for people: "unix:/run/..." or "http://127.0.0.1:8765/". Caller frees;
 * NULL beyond the last. */
char *http_server_address(const http_server *server, size_t n, bool *is_tcp);
/* At most so many bytes of memory does a JSON text take when it is taken apart. */
size_t http_json_cost(const char *text, size_t n);
/* Whether the gate ever opens for it. */
bool http_gate_admits(size_t cost);
/* Waits until what costs n bytes may be taken apart; each has its http_gate_leave(). */
void http_gate_enter(http_server *server, size_t n);
void http_gate_leave(http_server *server, size_t n);
/* Housekeeping until *stop is set; wakes at least every 100 ms. */
void http_server_run(http_server *server, const atomic_int *stop);

#endif
