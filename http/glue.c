#include "glue.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "events.h"
#include "guard.h"
#include "metrics.h"

/*
 * A refused body is read and thrown away up to so many times the limit, because a
 * client that is still sending would otherwise meet a reset instead of the answer.
 */
enum {
	DRAIN_FACTOR = 16,
	STACK_SIZE = 512 * 1024,
	POOL_EXTRA = 16 * 1024,
	STREAM_BLOCK = 16 * 1024
};

typedef struct exchange {
	http_request req;
	http_head head;
	http_conn *conn;
	http_problem refused; /* HTTP_PROBLEM_NONE: not so far */
	char detail[320];
	char *body;
	size_t len, cap;
	uint64_t seen; /* bytes of the body, kept or not */
	uint64_t declared;
	size_t head_bytes;
	bool begun, bad_uri, odd_argument;
	const char *bad_argument;
	int64_t start_ns;
	int status;
} exchange;

/* ---- collecting the head ---- */

static void *on_uri(void *cls, const char *uri, struct MHD_Connection *c)
{
	exchange *x = calloc(1, sizeof(*x));

	(void)cls;
	(void)c;
	if (!x)
		return NULL;
	x->head_bytes = strlen(uri);
	/* a NUL would hide the rest of the path from everything that reads strings */
	const char *end = strchr(uri, '?');
	const char *nul = strstr(uri, "%00");
	x->bad_uri = *uri != '/' || (nul && (!end || nul < end));
	return x;
}

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                 size_t key_len, const char *value, size_t value_len)
{
	exchange *x = cls;
	http_head *h = &x->head;
	const struct {
		const char *name;
		http_once *to;
	} kept[] = {
	    {"host", &h->host},
	    {"origin", &h->origin},
	    {"sec-fetch-site", &h->sec_fetch_site},
	    {"content-type", &h->content_type},
	    {"authorization", &h->authorization},
	    {"content-length", &h->content_length},
	    {"transfer-encoding", &h->transfer_encoding},
	    {"if-none-match", &h->if_none_match},
	    {"last-event-id", &h->last_event_id},
	    {"accept", &h->accept},
	    {"expect", &h->expect},
	};

	(void)kind;
	x->head_bytes += key_len + value_len + 4;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		if (strcasecmp(key, kept[i].name) != 0)
			continue;
		kept[i].to->odd |= strlen(key) != key_len || !value || strlen(value) != value_len;
		if (!kept[i].to->count++)
			kept[i].to->value = value ? value : "";
		break;
	}
	return MHD_YES;
}

static enum MHD_Result on_argument(void *cls, enum MHD_ValueKind kind, const char *key,
                                   size_t key_len, const char *value, size_t value_len)
{
	exchange *x = cls;
	const char *const *known = x->req.route ? x->req.route->params : NULL;
	const char *first = NULL;
	size_t first_len = 0;

	(void)kind;
	while (known && *known && strcmp(*known, key) != 0)
		known++;
	if (!known || !*known || strlen(key) != key_len) {
		x->bad_argument = key;
		return MHD_NO;
	}
	MHD_lookup_connection_value_n(x->req.connection, MHD_GET_ARGUMENT_KIND, key, key_len,
	                              &first, &first_len);
	if (!value || strlen(value) != value_len || (first != value && strcmp(key, "label") != 0)) {
		x->bad_argument = key;
		x->odd_argument = true;
		return MHD_NO;
	}
	return MHD_YES;
}

static const char *first_value(const http_once *o)
{
	return o->count == 1 && !o->odd ? o->value : NULL;
}

static void refuse(exchange *x, http_problem p, const char *detail)
{
	if (x->refused != HTTP_PROBLEM_NONE)
		return;
	x->refused = p;
	if (detail != x->detail)
		snprintf(x->detail, sizeof(x->detail), "%s", detail);
}

static void check_arguments(exchange *x)
{
	char text[200];

	MHD_get_connection_values_n(x->req.connection, MHD_GET_ARGUMENT_KIND, on_argument, x);
	if (!x->bad_argument)
		return;
	snprintf(text, sizeof(text),
	         x->odd_argument ? "parameter '%.60s' is repeated, or has no plain value"
	                         : "parameter '%.60s' is not known here",
	         x->bad_argument);
	refuse(x, HTTP_PROBLEM_BAD_PARAMETER, text);
}

static unsigned method_bit(const char *method)
{
	if (!strcmp(method, "GET") || !strcmp(method, "HEAD"))
		return HTTP_GET;
	return !strcmp(method, "POST") ? HTTP_POST : 0;
}

static void begin(exchange *x, http_daemon *d, struct MHD_Connection *c, const char *url,
                  const char *method)
{
	http_server *s = d->server;
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	x->begun = true;
	x->refused = HTTP_PROBLEM_NONE;
	x->start_ns = sw_monotonic_ns();
	x->conn = info ? info->socket_context : NULL;
	atomic_fetch_add(&s->in_flight, 1);
	x->req.server = s;
	x->req.connection = c;
	x->req.method = method;
	x->req.path = url;
	if (x->conn)
		x->req.peer = x->conn->peer;
	MHD_get_connection_values_n(c, MHD_HEADER_KIND, on_header, x);
	x->req.route = x->bad_uri ? NULL : http_route_find(url, x->req.path_arg);
	x->head.method = method;
	x->head.is_unix = d->listener.kind == HTTP_LISTEN_UNIX;
	x->head.port = d->listener.port;
	x->head.is_public = x->req.route && x->req.route->is_public;
	x->req.host = first_value(&x->head.host);
	x->req.content_type = first_value(&x->head.content_type);
	x->req.if_none_match = first_value(&x->head.if_none_match);
	x->req.last_event_id = first_value(&x->head.last_event_id);
	x->req.accept = first_value(&x->head.accept);
	if (x->head.content_length.value)
		x->declared = strtoull(x->head.content_length.value, NULL, 10);

	http_problem p = http_guard(s->config, s->token, &x->head, x->detail);
	if (p != HTTP_PROBLEM_NONE)
		refuse(x, p, x->detail);
	else if (x->head_bytes > (size_t)s->config->max_header)
		refuse(x, HTTP_PROBLEM_HEADER_TOO_LARGE, "");
	else if (atomic_load(&s->stopping))
		refuse(x, HTTP_PROBLEM_STOPPING, "");
	else if (x->bad_uri)
		refuse(x, HTTP_PROBLEM_BAD_REQUEST, "the address is not a path, or holds a NUL");
	else if (!x->req.route)
		refuse(x, HTTP_PROBLEM_NOT_FOUND, "");
	else if (!(x->req.route->methods & method_bit(method)))
		refuse(x, HTTP_PROBLEM_METHOD, method);
	else if (x->declared > (uint64_t)s->config->max_body)
		refuse(x, HTTP_PROBLEM_TOO_LARGE, "");
	else
		check_arguments(x);
	http_conn_phase(x->conn, HTTP_PHASE_BODY);
}

/* ---- collecting the body ---- */

static void drop_body(exchange *x)
{
	atomic_fetch_sub(&x->req.server->body_bytes, (long)x->cap);
	free(x->body);
	x->body = NULL;
	x->len = x->cap = 0;
}

static bool grow(exchange *x, size_t need)
{
	http_server *s = x->req.server;
	size_t max = (size_t)s->config->max_body;
	size_t cap = x->cap ? 2 * x->cap : 4096;

	if (x->declared && x->declared <= max && cap < x->declared && x->declared < 65536)
		cap = (size_t)x->declared;
	while (cap < need)
		cap *= 2;
	if (cap > max)
		cap = max;
	/* one byte more: a handler may rely on a NUL after the body */
	if (atomic_fetch_add(&s->body_bytes, (long)(cap - x->cap)) + (long)(cap - x->cap) >
	    s->config->max_body_total) {
		atomic_fetch_sub(&s->body_bytes, (long)(cap - x->cap));
		refuse(x, HTTP_PROBLEM_BUSY,
		       "the bodies of all requests are over --max-body-total");
		return false;
	}
	char *p = realloc(x->body, cap + 1);
	if (!p) {
		atomic_fetch_sub(&s->body_bytes, (long)(cap - x->cap));
		refuse(x, HTTP_PROBLEM_BUSY, "out of memory");
		return false;
	}
	x->body = p;
	x->cap = cap;
	return true;
}

/* MHD_NO: the client has sent more than is worth reading. */
static enum MHD_Result take(exchange *x, const char *data, size_t n)
{
	size_t max = (size_t)x->req.server->config->max_body;

	x->seen += n;
	if (x->refused == HTTP_PROBLEM_NONE && x->seen > max)
		refuse(x, HTTP_PROBLEM_TOO_LARGE, "");
	if (x->refused == HTTP_PROBLEM_NONE && (x->len + n <= x->cap || grow(x, x->len + n))) {
		memcpy(x->body + x->len, data, n);
		x->len += n;
		x->body[x->len] = '\0';
		return MHD_YES;
	}
	if (x->body)
		drop_body(x);
	return x->seen > (uint64_t)max * DRAIN_FACTOR ? MHD_NO : MHD_YES;
}

/* ---- answering ---- */

static void fill_problem(exchange *x, http_reply *reply)
{
	if (*x->detail)
		http_reply_problem(reply, x->refused, "%s", x->detail);
	else if (x->refused == HTTP_PROBLEM_TOO_LARGE)
		http_reply_problem(reply, x->refused, "the limit is %lld bytes",
		                   (long long)x->req.server->config->max_body);
	else
		http_reply_problem(reply, x->refused, "%s", x->req.path);
	if (x->refused == HTTP_PROBLEM_METHOD)
		http_reply_header(reply, "Allow", "%s%s",
		                  x->req.route->methods & HTTP_GET ? "GET, HEAD" : "",
		                  x->req.route->methods == (HTTP_GET | HTTP_POST) ? ", POST"
		                  : x->req.route->methods == HTTP_POST            ? "POST"
		                                                                  : "");
}

static bool has_header(const http_reply *reply, const char *name)
{
	for (size_t i = 0; i < reply->n_headers; i++)
		if (!strcasecmp(reply->headers[i].name, name))
			return true;
	return false;
}

static struct MHD_Response *make_response(http_reply *reply)
{
	if (reply->stream)
		return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
		                                         http_stream_read, reply->stream,
		                                         http_stream_free);
	if (reply->body)
		return MHD_create_response_from_buffer(reply->len, reply->body,
		                                       MHD_RESPMEM_MUST_FREE);
	return MHD_create_response_from_buffer(reply->len, (void *)reply->fixed,
	                                       MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result answer(exchange *x, http_reply *reply)
{
	static const char *const always[][2] = {
	    {"X-Content-Type-Options", "nosniff"},
	    {"Referrer-Policy", "no-referrer"},
	    {"Cross-Origin-Resource-Policy", "same-origin"},
	    {"Cache-Control", "no-store"},
	    {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
	};
	struct MHD_Response *r = make_response(reply);

	if (!r) {
		if (reply->stream)
			http_stream_free(reply->stream);
		free(reply->body);
		return MHD_NO;
	}
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (!has_header(reply, always[i][0]))
			MHD_add_response_header(r, always[i][0], always[i][1]);
	for (size_t i = 0; i < reply->n_headers; i++)
		MHD_add_response_header(r, reply->headers[i].name, reply->headers[i].value);
	if (reply->content_type)
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
	if (atomic_load(&x->req.server->stopping))
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
	if (reply->stream) {
		http_stream_attach(reply->stream, x->conn);
		/* its own deadlines hold: conn.h */
		MHD_set_connection_option(x->req.connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
		/* a stream is not work that a stop waits for */
		atomic_fetch_sub(&x->req.server->in_flight, 1);
	} else {
		http_conn_phase(x->conn, HTTP_PHASE_ANSWER);
	}
	x->status = reply->status;
	enum MHD_Result rc = MHD_queue_response(x->req.connection, (unsigned)reply->status, r);
	MHD_destroy_response(r);
	return rc;
}

static enum MHD_Result respond(exchange *x)
{
	http_reply reply = {.status = 500};
	const http_route *route = x->req.route;

	size_t cost = x->len;
	if (x->refused == HTTP_PROBLEM_NONE && x->body && x->req.content_type &&
	    !strncasecmp(x->req.content_type, "application/json", 16))
		cost = http_json_cost(x->body, x->len);
	if (!http_gate_admits(cost))
		refuse(x, HTTP_PROBLEM_TOO_LARGE,
		       "so many JSON values take more memory than one request may; large texts are "
		       "cheap, many small values are not");
	if (x->refused != HTTP_PROBLEM_NONE) {
		fill_problem(x, &reply);
		return answer(x, &reply);
	}
	/* what a handler waits for has its own limits; libmicrohttpd's clock must not end the
	 * connection under it */
	http_conn_phase(x->conn, HTTP_PHASE_HANDLER);
	MHD_set_connection_option(x->req.connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	x->req.body = x->body ? x->body : "";
	x->req.body_len = x->len;
	http_gate_enter(x->req.server, cost);
	(method_bit(x->req.method) == HTTP_POST ? route->post : route->get)(&x->req, &reply);
	http_gate_leave(x->req.server, cost);
	return answer(x, &reply);
}

/* Without reading the body: where the client waits for a word, or it is hopeless to read it. */
static bool answer_at_once(const exchange *x)
{
	uint64_t worth = (uint64_t)x->req.server->config->max_body * DRAIN_FACTOR;

	return x->refused != HTTP_PROBLEM_NONE && (x->head.expect.count || x->declared > worth ||
	                                           x->refused == HTTP_PROBLEM_BAD_REQUEST);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_size, void **con_cls)
{
	exchange *x = *con_cls;

	(void)version;
	if (!x)
		return MHD_NO; /* out of memory in on_uri() */
	if (!x->begun) {
		begin(x, cls, c, url, method);
		if (!x->conn)
			return MHD_NO; /* out of memory in on_connection() */
		return answer_at_once(x) ? respond(x) : MHD_YES;
	}
	if (*data_size) {
		size_t n = *data_size;
		*data_size = 0;
		return take(x, data, n);
	}
	return respond(x);
}

static void on_completed(void *cls, struct MHD_Connection *c, void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
	http_daemon *d = cls;
	exchange *x = *con_cls;

	(void)why;
	*con_cls = NULL;
	if (!x)
		return;
	if (x->begun) {
		bool streamed = x->conn && atomic_load(&x->conn->phase) >= HTTP_PHASE_STREAM;
		if (!streamed)
			atomic_fetch_sub(&d->server->in_flight, 1);
		http_metrics_request(d->server->metrics, x->req.route, x->status,
		                     streamed ? 0 : sw_monotonic_ns() - x->start_ns);
		if (x->body)
			drop_body(x);
		http_conn_phase(x->conn, HTTP_PHASE_HEAD);
		MHD_set_connection_option(
		    c, MHD_CONNECTION_OPTION_TIMEOUT,
		    (unsigned)(d->server->config->timeout_ns / 1000000000 + 1));
	}
	free(x);
}

static void on_connection(void *cls, struct MHD_Connection *c, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
	http_daemon *d = cls;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
		    MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
		*socket_context =
		    http_conns_add(d->conns, info ? info->connect_fd : -1,
		                   d->listener.kind == HTTP_LISTEN_UNIX, d->listener.port);
		/* without deadlines and without its peer it is not served */
		if (!*socket_context && info)
			shutdown(info->connect_fd, SHUT_RDWR);
	} else {
		http_conns_remove(d->conns, *socket_context);
		*socket_context = NULL;
	}
}

/* Malformed requests are the clients' problem: no line in the log for each. */
static void on_log(void *cls, const char *fmt, va_list ap)
{
	(void)cls;
	(void)fmt;
	(void)ap;
}

int http_daemon_start(http_daemon *d, sw_error *err)
{
	const http_config *c = d->server->config;

	d->mhd = MHD_start_daemon(
	    MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
	        MHD_USE_ITC | MHD_USE_ERROR_LOG,
	    0, NULL, NULL, on_request, d, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
	    MHD_OPTION_LISTEN_SOCKET, d->listener.fd, MHD_OPTION_URI_LOG_CALLBACK, on_uri, d,
	    MHD_OPTION_NOTIFY_COMPLETED, on_completed, d, MHD_OPTION_NOTIFY_CONNECTION,
	    on_connection, d, MHD_OPTION_CONNECTION_LIMIT, (unsigned)c->max_connections,
	    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(c->timeout_ns / 1000000000 + 1),
	    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)c->max_header + POOL_EXTRA,
	    MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_SIZE, MHD_OPTION_END);
	if (d->mhd)
		return 0;
	sw_error_set(err, SW_EIO, "the HTTP service cannot be started");
	return sw_error_more(err, "libmicrohttpd", errno ? strerror(errno) : NULL,
	                     "check the limits on threads and descriptors (ulimit -a)");
}

void http_daemon_quiesce(http_daemon *d)
{
	if (d->mhd)
		MHD_quiesce_daemon(d->mhd);
}

void http_daemon_stop(http_daemon *d)
{
	if (d->mhd)
		MHD_stop_daemon(d->mhd);
	d->mhd = NULL;
}
