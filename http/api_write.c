/* POST /v1/invocations: one record, or an array of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"
#include "packs.h"
#include "writer.h"

/* Labels that the service sets itself from the socket's credentials. */
#define PEER_PREFIX "peer."

static int refuse_forged(const json_t *labels, sw_error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)labels, key, value)
	{
		if (strncmp(key, PEER_PREFIX, sizeof(PEER_PREFIX) - 1) != 0)
			continue;
		sw_error_set(err, SW_EINVAL,
		             "labels that begin with " PEER_PREFIX " are the service's own");
		return sw_error_more(err, "labels", "they say which process wrote the record",
		                     "choose another key");
	}
	return 0;
}

static int set_label(json_t *labels, const char *key, intmax_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%jd", n);
	return json_object_set_new(labels, key, json_string(text));
}

static int add_peer(json_t *record, const http_peer *peer, sw_error *err)
{
	json_t *labels = json_object_get(record, "labels");

	if (json_is_object(labels) && refuse_forged(labels, err))
		return SW_EINVAL;
	if (!peer->has_credentials || (labels && !json_is_object(labels)))
		return 0; /* the record's own check names labels that are no object */
	if (!labels) {
		labels = json_object();
		if (json_object_set_new(record, "labels", labels))
			return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	if (set_label(labels, PEER_PREFIX "uid", peer->uid) ||
	    set_label(labels, PEER_PREFIX "pid", peer->pid))
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	return 0;
}

/*
 * A replay may come from another process of the same user, whose pid would make it
 * another content. Takes over the pid that stands in the trail; 0: nothing to gain, 1: done,
 * SW_ENOMEM: not known.
 */
static int adopt_pid(http_request *req, json_t *record)
{
	const char *id = json_string_value(json_object_get(record, "id"));
	json_t *stored = NULL, *labels = json_object_get(record, "labels");
	sw_store *store;
	int changed = 0;

	if (!id || !req->peer.has_credentials)
		return 0;
	sw_error err = {0};
	int code = http_readers_take(req->server->readers, &store, &err);
	if (code)
		return err.code == SW_ENOMEM ? SW_ENOMEM : 0;
	code = sw_store_invocation(store, id, &stored, &err);
	http_readers_give(req->server->readers, store, code != 0 && code != SW_ENOTFOUND);
	if (code)
		return err.code == SW_ENOMEM ? SW_ENOMEM : 0;
	const json_t *was = json_object_get(stored, "labels");
	const char *uid = json_string_value(json_object_get(was, PEER_PREFIX "uid"));
	const char *pid = json_string_value(json_object_get(was, PEER_PREFIX "pid"));
	const char *my_uid = json_string_value(json_object_get(labels, PEER_PREFIX "uid"));
	const char *my_pid = json_string_value(json_object_get(labels, PEER_PREFIX "pid"));
	if (uid && pid && my_uid && my_pid && !strcmp(uid, my_uid) && strcmp(pid, my_pid) != 0)
		changed = json_object_set_new(labels, PEER_PREFIX "pid", json_string(pid))
		              ? SW_ENOMEM
		              : 1;
	json_decref(stored);
	return changed;
}

static json_t *op_problem(const sw_store_op *op, int *status)
{
	http_reply reply = {0};

	http_reply_error(&reply, &op->error);
	*status = reply.status;
	json_t *j = reply.body ? json_loads(reply.body, 0, NULL) : NULL;
	http_reply_clear(&reply);
	return j;
}

typedef struct batch {
	sw_record_parsed **parsed;
	sw_store_op *ops;
	json_t **records;
	size_t n;
} batch;

static int parse_one(http_request *req, batch *b, size_t i, sw_error *err)
{
	http_packs_finder finder = {.packs = req->server->packs};
	int code = sw_record_parse(&b->parsed[i], b->records[i], http_packs_find, &finder, err);

	if (finder.error.code == SW_ENOMEM) { /* not: "no signatures for it" */
		*err = finder.error;
		return SW_ENOMEM;
	}
	if (code)
		return code;
	b->ops[i] = (sw_store_op){.kind = sw_record_parsed_kind(b->parsed[i]),
	                          .record = sw_record_parsed_record(b->parsed[i])};
	return 0;
}

/* Each element of an array stands for itself: a bad one does not keep the others out. */
static int commit(http_request *req, batch *b, const sw_error *errors, sw_error *err)
{
	sw_store_op *good = calloc(b->n, sizeof(*good));
	size_t n = 0;

	if (!good)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	for (size_t i = 0; i < b->n; i++)
		if (!errors[i].code)
			good[n++] = b->ops[i];
	int code = http_writer_submit(req->server->writer, good, n, err);
	for (size_t i = 0, k = 0; i < b->n; i++) {
		if (errors[i].code) {
			b->ops[i].code = errors[i].code;
			b->ops[i].error = errors[i];
		} else if (!code) {
			b->ops[i] = good[k++];
		}
	}
	free(good);
	return code;
}

static void retry_conflicts(http_request *req, batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		sw_error err = {0};
		if (b->ops[i].code != SW_ECONFLICT)
			continue;
		sw_store_op before = b->ops[i];
		int code = adopt_pid(req, b->records[i]);
		if (!code)
			continue;
		if (code > 0) {
			sw_record_parsed_free(b->parsed[i]);
			b->parsed[i] = NULL;
			code = parse_one(req, b, i, &err);
			if (!code)
				code = http_writer_submit(req->server->writer, &b->ops[i], 1, &err);
		}
		if (code)
			b->ops[i] = before;
		if (code == SW_ENOMEM) /* it may be a replay */
			b->ops[i].code = sw_error_set(&b->ops[i].error, code, "out of memory");
	}
}

static void count(http_request *req, const batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const sw_record *r = b->ops[i].record;
		if (b->ops[i].code || b->ops[i].receipt.replay || b->ops[i].kind == SW_STORE_BEGIN)
			continue;
		http_metrics_recorded(req->server->metrics, r->backend,
		                      sw_record_verdict_name(r->outcome.verdict));
	}
}

/* What was done cannot be undone when there is no memory to tell it. */
static void answer(http_reply *reply, int status, json_t *j)
{
	static const char untold[] =
	    "{\"type\":\"" HTTP_PROBLEM_TYPE_PREFIX
	    "internal\",\"title\":\"The service failed\",\"status\":500,"
	    "\"detail\":\"out of memory for the answer: what was sent may be recorded\","
	    "\"fix\":\"send again what has an id of its own: that gives the same receipts\"}";

	http_reply_json(reply, status, j);
	if (reply->body)
		return;
	reply->fixed = untold;
	reply->len = sizeof(untold) - 1;
}

static void answer_one(http_reply *reply, const sw_store_op *op)
{
	if (op->code) {
		http_reply_error(reply, &op->error);
		return;
	}
	answer(reply, op->receipt.replay ? 200 : 201, sw_receipt_json(&op->receipt));
	if (!reply->body)
		return;
	sw_buf b;
	sw_buf_init(&b, 3 * SW_RECORD_ID_MAX + 1);
	http_escape(&b, op->receipt.id);
	if (b.len && !b.error)
		http_reply_header(reply, "Location", "/v1/invocations/%s", b.ptr);
	sw_buf_free(&b);
}

static void answer_many(http_reply *reply, const batch *b)
{
	json_t *results = json_array();
	json_int_t failed = 0;

	for (size_t i = 0; i < b->n; i++) {
		int status = 0;
		json_t *one = b->ops[i].code ? op_problem(&b->ops[i], &status)
		                             : sw_receipt_json(&b->ops[i].receipt);
		failed += b->ops[i].code != 0;
		if (json_array_append_new(results, one)) { /* each has its place */
			json_decref(results);
			answer(reply, 500, NULL);
			return;
		}
	}
	answer(reply, 200,
	       json_pack("{s:I, s:I, s:o}", "recorded", (json_int_t)b->n - failed, "failed", failed,
	                 "results", results));
}

static void record_all(http_request *req, http_reply *reply, batch *b, bool many)
{
	sw_error err = {0};
	sw_error *errors = calloc(b->n, sizeof(*errors));
	size_t bad = 0;

	if (!errors) {
		http_reply_problem(reply, HTTP_PROBLEM_BUSY, "out of memory");
		return;
	}
	for (size_t i = 0; i < b->n; i++) {
		if (!json_is_object(b->records[i])) {
			sw_error_set(&errors[i], SW_EINVAL, "a record is a JSON object");
		} else {
			int code = add_peer(b->records[i], &req->peer, &errors[i]);
			if (!code)
				code = parse_one(req, b, i, &errors[i]);
			if (code && !errors[i].code)
				sw_error_set(&errors[i], code, "%s",
				             code == SW_ENOMEM ? "out of memory"
				                               : "the record is not understood");
		}
		bad += errors[i].code != 0;
	}
	int code = 0;
	if (!many && bad)
		http_reply_error(reply, &errors[0]);
	else if ((code = commit(req, b, errors, &err)))
		http_reply_error(reply, &err);
	if (!code && (many || !bad)) {
		retry_conflicts(req, b);
		count(req, b);
		if (many)
			answer_many(reply, b);
		else
			answer_one(reply, &b->ops[0]);
	}
	free(errors);
}

void http_api_invocations_post(http_request *req, http_reply *reply)
{
	size_t max = (size_t)req->server->config->max_group;
	sw_error err = {0};

	/* the list's filters belong to GET */
	for (const char *const *p = req->route->params; *p; p++)
		if (http_query(req, *p)) {
			http_reply_problem(reply, HTTP_PROBLEM_BAD_PARAMETER, "%s: not for POST",
			                   *p);
			return;
		}
	json_t *body = sw_json_parse(req->body, req->body_len, &err);
	if (!body) {
		http_reply_error(reply, &err);
		return;
	}
	bool many = json_is_array(body);
	batch b = {.n = many ? json_array_size(body) : 1};
	if (!b.n || b.n > max) {
		http_reply_problem(reply, HTTP_PROBLEM_BAD_BODY,
		                   "an array of records holds 1 to %zu of them (--max-group)", max);
		json_decref(body);
		return;
	}
	b.parsed = calloc(b.n, sizeof(void *));
	b.ops = calloc(b.n, sizeof(*b.ops));
	b.records = calloc(b.n, sizeof(void *));
	if (b.parsed && b.ops && b.records) {
		for (size_t i = 0; i < b.n; i++)
			b.records[i] = many ? json_array_get(body, i) : body;
		record_all(req, reply, &b, many);
	} else {
		http_reply_problem(reply, HTTP_PROBLEM_BUSY, "out of memory");
	}
	for (size_t i = 0; b.parsed && i < b.n; i++)
		sw_record_parsed_free(b.parsed[i]);
	free(b.parsed);
	free(b.ops);
	free(b.records);
	json_decref(body);
}
