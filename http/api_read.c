/* GET: invocations, one invocation, reports, chain. */
#include <ctype.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "packs.h"
#include "writer.h"

enum { LIMIT_MAX = 1000, LINK_MAX = 700 };

typedef struct filter_walk {
	sw_query *query;
	int64_t now_ns;
	int code;
	sw_error err;
	bool moving; /* a time word whose meaning changes with the clock */
} filter_walk;

static enum MHD_Result on_filter(void *cls, enum MHD_ValueKind kind, const char *key,
                                 const char *value)
{
	filter_walk *w = cls;

	(void)kind;
	w->code = sw_query_set(w->query, key, value ? value : "", w->now_ns, &w->err);
	if (!strcmp(key, "since") || !strcmp(key, "until"))
		w->moving |= !value || !isdigit((unsigned char)*value) || !strchr(value, '-');
	return w->code ? MHD_NO : MHD_YES;
}

/* Fills q from the parameters; false after it has filled a 400. */
static bool read_query(http_request *req, http_reply *reply, sw_query *q, bool *moving)
{
	filter_walk w = {.query = q, .now_ns = sw_now_ns()};
	int64_t limit;

	memset(q, 0, sizeof(*q));
	if (!http_query_int(req, reply, "limit", 1, LIMIT_MAX, SW_QUERY_LIMIT_DEFAULT, &limit))
		return false;
	MHD_get_connection_values(req->connection, MHD_GET_ARGUMENT_KIND, on_filter, &w);
	if (w.code) {
		http_reply_error_as(reply, HTTP_PROBLEM_BAD_PARAMETER, &w.err);
		sw_query_free(q);
		return false;
	}
	*moving = w.moving;
	return true;
}

static enum MHD_Result on_link(void *cls, enum MHD_ValueKind kind, const char *key,
                               const char *value)
{
	sw_buf *b = cls;

	(void)kind;
	if (!strcmp(key, "cursor"))
		return MHD_YES;
	sw_buf_adds(b, strchr(b->ptr, '?') ? "&" : "?");
	http_escape(b, key);
	sw_buf_adds(b, "=");
	http_escape(b, value ? value : "");
	return MHD_YES;
}

static void add_link(http_request *req, http_reply *reply, const char *cursor)
{
	sw_buf b;

	if (!cursor)
		return;
	sw_buf_init(&b, LINK_MAX);
	sw_buf_adds(&b, req->path);
	MHD_get_connection_values(req->connection, MHD_GET_ARGUMENT_KIND, on_link, &b);
	sw_buf_adds(&b, b.ptr && strchr(b.ptr, '?') ? "&cursor=" : "?cursor=");
	http_escape(&b, cursor);
	/* over the limit the body's "next" still serves */
	if (!b.error)
		http_reply_header(reply, "Link", "<%s>; rel=\"next\"", b.ptr);
	sw_buf_free(&b);
}

static int collect(void *arg, json_t *object)
{
	return json_array_append(arg, object);
}

/* Takes a reader and the chain's head; a 304 or an error is in the reply where it gives false. */
static bool open_reader(http_request *req, http_reply *reply, bool moving, sw_store **store,
                        sw_store_head *head)
{
	sw_error err = {0};
	char tag[64];

	if (http_readers_take(req->server->readers, store, &err)) {
		http_reply_error(reply, &err);
		return false;
	}
	if (sw_store_head_get(*store, head, &err)) {
		http_readers_give(req->server->readers, *store, true);
		http_reply_error(reply, &err);
		return false;
	}
	/* everything shown follows from the trail and the program; both are in the tag */
	snprintf(tag, sizeof(tag), "%" PRIu64 "-%02x%02x%02x%02x%02x%02x-%.8s", head->seq,
	         head->hash[0], head->hash[1], head->hash[2], head->hash[3], head->hash[4],
	         head->hash[5], http_packs_tag(req->server->packs));
	if (!moving && http_reply_etag(req, reply, tag)) {
		http_readers_give(req->server->readers, *store, false);
		return false;
	}
	return true;
}

static bool broken(int code)
{
	return code == SW_EIO || code == SW_ECORRUPT;
}

void http_api_invocations_list(http_request *req, http_reply *reply)
{
	sw_query q;
	sw_store *store;
	sw_store_head head;
	sw_error err = {0};
	char *next = NULL;
	bool moving;

	if (!read_query(req, reply, &q, &moving))
		return;
	if (!open_reader(req, reply, moving, &store, &head)) {
		sw_query_free(&q);
		return;
	}
	json_t *rows = json_array();
	int code = sw_store_invocations(store, &q, collect, rows, &next, &err);
	http_readers_give(req->server->readers, store, broken(code));
	sw_query_free(&q);
	if (code) {
		json_decref(rows);
		if (code == SW_EINVAL)
			http_reply_error_as(reply, HTTP_PROBLEM_BAD_PARAMETER, &err);
		else
			http_reply_error(reply, &err);
		return;
	}
	http_reply_json(reply, 200,
	                json_pack("{s:i, s:o, s:o, s:o}", "schema", 1, "invocations", rows, "next",
	                          sw_json_z(next), "head", sw_store_head_json(&head)));
	add_link(req, reply, next);
	free(next);
}

void http_api_invocation(http_request *req, http_reply *reply)
{
	sw_store *store;
	sw_store_head head;
	sw_error err = {0};
	json_t *j = NULL;
	int64_t explain;

	if (!http_query_int(req, reply, "explain", 0, 1, 0, &explain) ||
	    !open_reader(req, reply, false, &store, &head))
		return;
	int code = sw_store_invocation(store, req->path_arg, &j, &err);
	http_readers_give(req->server->readers, store, broken(code));
	if (code == SW_ENOTFOUND) {
		http_reply_problem(reply, HTTP_PROBLEM_NO_SUCH_RECORD, "%s", req->path_arg);
	} else if (code) {
		http_reply_error(reply, &err);
	} else {
		if (explain && http_explain_add(req->server->packs, j, &err)) {
			json_decref(j);
			http_reply_error(reply, &err);
			return;
		}
		http_reply_json(reply, 200, j);
	}
}

void http_api_reports(http_request *req, http_reply *reply)
{
	const char *const *summaries;
	const char *const *names = sw_report_names(&summaries);
	json_t *list = json_array();

	(void)req;
	for (size_t i = 0; names[i]; i++)
		json_array_append_new(
		    list, json_pack("{s:s, s:s}", "name", names[i], "summary", summaries[i]));
	http_reply_json(reply, 200, json_pack("{s:i, s:o}", "schema", 1, "reports", list));
}

static void no_such_report(http_reply *reply)
{
	const char *const *names = sw_report_names(NULL);
	sw_buf b;

	sw_buf_init(&b, 800);
	for (size_t i = 0; names[i]; i++)
		sw_buf_addf(&b, "%s%s", i ? ", " : "", names[i]);
	http_reply_problem(reply, HTTP_PROBLEM_NO_SUCH_REPORT, "the reports are: %s",
	                   b.ptr ? b.ptr : "");
	sw_buf_free(&b);
}

void http_api_report(http_request *req, http_reply *reply)
{
	sw_query q;
	sw_store *store;
	sw_store_head head;
	sw_error err = {0};
	json_t *j = NULL;
	bool moving;

	if (!read_query(req, reply, &q, &moving))
		return;
	if (!open_reader(req, reply, moving, &store, &head)) {
		sw_query_free(&q);
		return;
	}
	int code = sw_store_report(store, req->path_arg, &q, &j, &err);
	http_readers_give(req->server->readers, store, broken(code));
	sw_query_free(&q);
	if (code == SW_ENOTFOUND) {
		no_such_report(reply);
	} else if (code == SW_EINVAL) {
		http_reply_error_as(reply, HTTP_PROBLEM_BAD_PARAMETER, &err);
	} else if (code) {
		http_reply_error(reply, &err);
	} else {
		char *next = NULL;
		const char *cursor = json_string_value(json_object_get(j, "next"));
		if (cursor)
			next = strdup(cursor);
		http_reply_json(reply, 200, j);
		add_link(req, reply, next);
		free(next);
	}
}

void http_api_chain(http_request *req, http_reply *reply)
{
	sw_store *store;
	sw_store_head head;

	if (!open_reader(req, reply, false, &store, &head))
		return;
	http_readers_give(req->server->readers, store, false);
	http_reply_json(reply, 200, sw_store_head_json(&head));
}
