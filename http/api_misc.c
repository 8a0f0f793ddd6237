/* Small routes: status, signatures, causes, events, metrics, health, files. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "assets.h"
#include "events.h"
#include "metrics.h"
#include "packs.h"
#include "probes.h"
#include "writer.h"

#define DASHBOARD_CSP                                                                           \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src " \
	"'self'; "                                                                              \
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "                         \
	"require-trusted-types-for 'script'; trusted-types 'none'"

void http_api_status(http_request *req, http_reply *reply)
{
	const char *probe = http_query(req, "probe");
	bool all =
	    probe && (!strcmp(probe, "1") || !strcmp(probe, "true") || !strcmp(probe, "all"));
	bool none = !probe || !strcmp(probe, "0") || !strcmp(probe, "false");
	http_server *s = req->server;
	sw_error err = {0};
	json_t *j = NULL;

	if (http_probes_status(s->probes, !none, none || all ? NULL : probe, &j, &err)) {
		if (err.code == SW_ENOTFOUND)
			http_reply_problem(reply, HTTP_PROBLEM_BAD_PARAMETER, "probe: %s",
			                   err.what);
		else
			http_reply_error(reply, &err);
		return;
	}
	char since[40];
	sw_time_format(s->started_ns, since);
	json_object_set_new(j, "service",
	                    json_pack("{s:s, s:s, s:i, s:i, s:b, s:o}", "version", SW_VERSION,
	                              "since", since, "pid", (int)getpid(), "uid", (int)getuid(),
	                              "confined", s->config->confined, "packs",
	                              http_packs_json(s->packs)));
	http_reply_json(reply, 200, j);
}

/* ---- signatures and causes ---- */

static json_t *strings(const char *const *list, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, sw_json_text(sw_str_of(list[i])));
	return a;
}

static json_t *signature_json(const sw_pack_def *def, const sw_sig_def *s)
{
	return json_pack("{s:s?, s:s, s:s, s:o, s:o, s:s?, s:s, s:s, s:s, s:s?}", "id", s->id,
	                 "backend", def->backend, "kind", sw_kind_name(s->kind), "literals",
	                 strings(s->literals, s->n_literals), "regex",
	                 s->regex ? sw_json_text(sw_str_of(s->regex)) : json_null(), "cause",
	                 s->cause, "stage", sw_stage_name(s->stage), "operation",
	                 sw_operation_name(s->operation), "confidence",
	                 sw_confidence_name(s->confidence), "origin", s->origin);
}

void http_api_signatures(http_request *req, http_reply *reply)
{
	const char *backend = http_query(req, "backend");
	const sw_pack_set *set = http_packs_set(req->server->packs);
	json_t *list = json_array(), *names = json_array();
	bool found = false;

	if (http_reply_etag(req, reply, http_packs_tag(req->server->packs))) {
		json_decref(list);
		json_decref(names);
		return;
	}
	for (size_t i = 0; i < set->n_defs; i++) {
		const sw_pack_def *def = set->defs[i];
		json_array_append_new(names, json_pack("{s:s, s:s?, s:i}", "backend", def->backend,
		                                       "title", def->title, "signatures",
		                                       (int)def->n_sigs));
		if (backend && strcmp(backend, def->backend) != 0)
			continue;
		found = true;
		for (size_t k = 0; k < def->n_sigs; k++)
			json_array_append_new(list, signature_json(def, &def->sigs[k]));
	}
	if (backend && !found) {
		json_decref(list);
		json_decref(names);
		http_reply_problem(reply, HTTP_PROBLEM_BAD_PARAMETER,
		                   "backend: no pack is called '%.60s'", backend);
		return;
	}
	http_reply_json(reply, 200,
	                json_pack("{s:i, s:s, s:o, s:o}", "schema", 1, "checksum",
	                          http_packs_tag(req->server->packs), "packs", names, "signatures",
	                          list));
}

void http_api_cause(http_request *req, http_reply *reply)
{
	const sw_cause *c = http_packs_cause(req->server->packs, req->path_arg);

	if (!c) {
		http_reply_problem(reply, HTTP_PROBLEM_NOT_FOUND, "no cause is called '%.100s'",
		                   req->path_arg);
		return;
	}
	if (http_reply_etag(req, reply, http_packs_tag(req->server->packs)))
		return;
	json_t *j = http_packs_advice(req->server->packs, c->slug);
	json_object_set_new(j, "slug", json_string(c->slug));
	json_object_set_new(j, "check", strings(c->checks, c->n_checks));
	json_object_set_new(j, "verify", sw_json_z(c->verify));
	json_object_set_new(j, "cannot_help", sw_json_z(c->cannot_help));
	http_reply_json(reply, 200, j);
}

/* ---- events ---- */

void http_api_events(http_request *req, http_reply *reply)
{
	const char *after = req->last_event_id ? req->last_event_id : http_query(req, "after");
	uint64_t id = UINT64_MAX;
	sw_error err = {0};
	char *end;

	if (!strcmp(req->method, "HEAD")) {
		http_reply_problem(reply, HTTP_PROBLEM_METHOD, "HEAD would never end");
		http_reply_header(reply, "Allow", "GET");
		return;
	}
	if (after) {
		errno = 0;
		id = strtoull(after, &end, 10);
		if (errno || *after < '0' || *after > '9' || *end) {
			http_reply_problem(reply, HTTP_PROBLEM_BAD_PARAMETER,
			                   "'%.40s' is not an event's id", after);
			return;
		}
	}
	if (http_stream_open(&reply->stream, req->server->events, id, &err)) {
		http_reply_problem(reply, HTTP_PROBLEM_STREAMS, "%s", err.what);
		return;
	}
	reply->status = 200;
	reply->content_type = "text/event-stream";
	http_reply_header(reply, "X-Accel-Buffering", "no");
}

/* ---- metrics ---- */

static void trail_text(http_server *s, sw_buf *b)
{
	sw_store *store;
	sw_store_counts c;
	sw_store_head h;
	sw_error err = {0};
	int code = http_readers_take(s->readers, &store, &err);

	if (!code) {
		code = sw_store_counts_get(store, &c, &err);
		if (!code)
			code = sw_store_head_get(store, &h, &err);
		http_readers_give(s->readers, store, code != 0);
	}
	/* says nothing of the trail */
	if (code && (code == SW_ENOMEM || err.code == SW_ENOMEM) && !b->error)
		b->error = SW_ENOMEM;
	http_metrics_head(b, "sandwitness_trail_up", "gauge",
	                  "Whether the audit trail could be read.");
	sw_buf_addf(b, "sandwitness_trail_up %d\n", !code);
	if (code)
		return;
	http_metrics_head(b, "sandwitness_trail_invocations", "gauge",
	                  "Finished invocations in the audit trail, by verdict.");
	for (int v = 0; v < SW_RECORD_VERDICT_COUNT; v++)
		sw_buf_addf(b, "sandwitness_trail_invocations{verdict=\"%s\"} %" PRIu64 "\n",
		            sw_record_verdict_name((sw_record_verdict)v), c.verdict[v]);
	uint64_t head = 0;
	for (int i = 0; i < 6; i++)
		head = head << 8 | h.hash[i];
	const struct {
		const char *name, *help;
		uint64_t value;
	} gauges[] = {
	    {"sandwitness_trail_downgrades", "Invocations that lost a guarantee.", c.downgrades},
	    {"sandwitness_trail_unexplained_downgrades", "Downgrades without a reason.",
	     c.unexplained},
	    {"sandwitness_trail_violations", "Invocations below their required minimum.",
	     c.violations},
	    {"sandwitness_trail_unfinished_invocations", "Begun and not ended.", c.unfinished},
	    {"sandwitness_trail_size_bytes", "The database file and its log.", c.bytes},
	    {"sandwitness_trail_sequence", "Number of the chain's newest row.", h.seq},
	    {"sandwitness_trail_sealed_sequence", "Rows up to this one are sealed.", h.sealed_seq},
	    {"sandwitness_trail_head", "The newest row's hash: its first 48 bits as a number.",
	     head},
	};
	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++) {
		http_metrics_head(b, gauges[i].name, "gauge", gauges[i].help);
		sw_buf_addf(b, "%s %" PRIu64 "\n", gauges[i].name, gauges[i].value);
	}
}

static void service_text(http_server *s, sw_buf *b)
{
	http_writer_stats w;
	http_events_stats e;

	http_writer_stats_get(s->writer, &w);
	http_events_stats_get(s->events, &e);
	http_metrics_head(b, "sandwitness_start_time_seconds", "gauge",
	                  "When the service started.");
	sw_buf_addf(b, "sandwitness_start_time_seconds %.3f\n", (double)s->started_ns / 1e9);
	http_metrics_head(b, "sandwitness_writer_up", "gauge",
	                  "Whether the last group went to disk.");
	sw_buf_addf(b, "sandwitness_writer_up %d\n", w.healthy);
	const struct {
		const char *name, *type, *help;
		uint64_t value;
	} rows[] = {
	    {"sandwitness_record_groups_total", "counter", "Commits.", w.groups},
	    {"sandwitness_record_operations_total", "counter", "Records in those commits.",
	     w.operations},
	    {"sandwitness_record_failures_total", "counter", "Records whose commit failed.",
	     w.failures},
	    {"sandwitness_record_queue_length", "gauge", "Records waiting for a commit.", w.queued},
	    {"sandwitness_event_streams", "gauge", "Open event streams.", e.streams},
	    {"sandwitness_events_sent_total", "counter", "Events sent live, over all streams.",
	     e.sent},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		http_metrics_head(b, rows[i].name, rows[i].type, rows[i].help);
		sw_buf_addf(b, "%s %" PRIu64 "\n", rows[i].name, rows[i].value);
	}
	http_metrics_head(b, "sandwitness_event_streams_dropped_total", "counter",
	                  "Event streams ended because their client was too slow.");
	sw_buf_addf(b,
	            "sandwitness_event_streams_dropped_total{reason=\"behind\"} %" PRIu64
	            "\nsandwitness_event_streams_dropped_total{reason=\"stalled\"} %" PRIu64 "\n",
	            e.dropped_behind, e.dropped_stalled);
}

void http_api_metrics(http_request *req, http_reply *reply)
{
	http_server *s = req->server;
	sw_buf b;

	sw_buf_init(&b, 1 << 20);
	http_metrics_text(s->metrics, &b);
	service_text(s, &b);
	trail_text(s, &b);
	http_probes_text(s->probes, &b);
	size_t n = b.len;
	char *text = sw_buf_take(&b);
	if (!text) {
		http_reply_problem(reply, HTTP_PROBLEM_INTERNAL, "out of memory");
		return;
	}
	reply->status = 200;
	reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
	reply->body = text;
	reply->len = n;
}

/* ---- health ---- */

void http_api_livez(http_request *req, http_reply *reply)
{
	static const char body[] = "{\"live\":true}";

	(void)req;
	reply->status = 200;
	reply->content_type = "application/json";
	reply->fixed = body;
	reply->len = sizeof(body) - 1;
}

/* Public, so it says which part fails but nothing of what is in it. */
void http_api_readyz(http_request *req, http_reply *reply)
{
	http_server *s = req->server;
	http_writer_stats w;
	sw_store *store;
	sw_store_head head;
	int code = http_readers_take(s->readers, &store, NULL);

	if (!code) {
		code = sw_store_head_get(store, &head, NULL);
		http_readers_give(s->readers, store, code != 0);
	}
	http_writer_stats_get(s->writer, &w);
	bool stopping = atomic_load(&s->stopping);
	bool ready = !code && w.healthy && !stopping;
	http_reply_json(reply, ready ? 200 : 503,
	                json_pack("{s:b, s:{s:s, s:s, s:s}}", "ready", ready, "checks", "trail",
	                          code ? "unreadable" : "ok", "writer", w.healthy ? "ok" : "failed",
	                          "service", stopping ? "stopping" : "ok"));
}

/* ---- files ---- */

static void send_asset(http_request *req, http_reply *reply, const char *name, bool in_ui)
{
	const http_asset *a = NULL;

	for (size_t i = 0; i < http_n_assets && !a; i++)
		if (!strcmp(http_assets[i].name, name))
			a = &http_assets[i];
	if (!a || (in_ui && !strcmp(a->content_type, "application/json"))) {
		http_reply_problem(reply, HTTP_PROBLEM_NOT_FOUND, "%s", req->path);
		return;
	}
	http_reply_header(reply, "Content-Security-Policy", "%s", DASHBOARD_CSP);
	if (http_reply_etag(req, reply, a->etag))
		return;
	reply->status = 200;
	reply->content_type = a->content_type;
	reply->fixed = a->bytes;
	reply->len = a->len;
}

void http_api_ui(http_request *req, http_reply *reply)
{
	send_asset(req, reply, *req->path_arg ? req->path_arg : "dashboard.html", true);
}

void http_api_openapi(http_request *req, http_reply *reply)
{
	send_asset(req, reply, "openapi.json", false);
}
