#include "run_server.h"

#include <stdlib.h>
#include <string.h>

static void put_text(json_t *o, const char *key, sw_str s)
{
	if (s.len)
		json_object_set_new(o, key, sw_json_text(s));
}

/* "none" is how the names of nothing read. */
static void put_name(json_t *o, const char *key, const char *name)
{
	if (name && strcmp(name, "none") != 0)
		json_object_set_new(o, key, json_string(name));
}

static void put_time(json_t *o, const char *key, int64_t ns)
{
	char text[40];

	if (!ns)
		return;
	sw_time_format(ns, text);
	json_object_set_new(o, key, json_string(text));
}

static void put_bytes(json_t *o, const char *key, const char *key_b64, sw_str s)
{
	if (sw_utf8_valid(s.ptr, s.len)) {
		json_object_set_new(o, key, sw_json_text(s));
		return;
	}
	char *b64 = sw_base64(s.ptr, s.len);
	json_object_set_new(o, key_b64, b64 ? json_string(b64) : json_null());
	free(b64);
}

static json_t *guarantees(uint32_t bits)
{
	json_t *a = json_array();

	for (int g = 0; g < SW_GUARANTEE_COUNT; g++)
		if (bits & 1u << g)
			json_array_append_new(a, json_string(sw_guarantee_name((sw_guarantee)g)));
	return a;
}

/* "fs_write,network": a level as the service reads it. */
static void put_level(json_t *o, const char *key, uint32_t bits)
{
	char text[SW_GUARANTEES_TEXT_MAX], *to = text;

	sw_guarantees_text(bits, text);
	for (const char *p = text; *p; p++)
		if (*p != ' ')
			*to++ = *p;
	*to = '\0';
	json_object_set_new(o, key, json_string(*text ? text : "none"));
}

static void put_identity(json_t *o, const sw_record *r)
{
	json_t *command = json_array(), *labels = json_object();

	for (size_t i = 0; i < r->argc; i++)
		json_array_append_new(command, sw_json_text(r->argv[i]));
	json_object_set_new(o, "command", command);
	put_text(o, "cwd", r->cwd);
	put_text(o, "device", r->device);
	put_text(o, "platform", r->platform);
	put_text(o, "runtime", r->runtime);
	put_text(o, "session", r->session);
	put_text(o, "actor", r->actor);
	for (size_t i = 0; i < r->n_labels; i++) {
		char key[SW_RECORD_NAME_MAX + 1];
		snprintf(key, sizeof(key), "%.*s", (int)r->labels[i].key.len, r->labels[i].key.ptr);
		json_object_set_new(labels, key, sw_json_text(r->labels[i].value));
	}
	json_object_set_new(o, "labels", labels);
}

static void put_levels(json_t *o, const sw_record *r)
{
	json_object_set_new(o, "mode", json_string(sw_mode_name(r->mode)));
	json_object_set_new(o, "network", json_string(sw_network_name(r->network)));
	put_text(o, "requested", r->requested);
	put_text(o, "minimum", r->minimum);
	put_text(o, "reason", r->reason);
	put_name(o, "reason_class", sw_reason_class_name(r->reason_class));
	if (r->granted)
		json_object_set_new(o, "granted", guarantees(r->granted));
	if (r->level.known)
		put_level(o, "effective", r->level.effective);
}

static void put_limit(json_t *o, const sw_outcome *x)
{
	if (x->limit == SW_LIMIT_NONE)
		return;
	json_object_set_new(o, "limit",
	                    json_pack("{s:s, s:s}", "limit", sw_limit_name(x->limit), "certainty",
	                              sw_certainty_name(x->limit_certainty)));
}

static void put_outcome(json_t *o, const sw_record *r)
{
	const sw_outcome *x = &r->outcome;
	const char *key;
	json_t *v;

	json_object_set_new(o, "verdict", json_string(sw_record_verdict_name(x->verdict)));
	if (x->rule)
		json_object_set_new(o, "rule", json_integer(x->rule));
	put_name(o, "stage", sw_stage_name(x->stage));
	put_text(o, "cause", x->cause);
	put_text(o, "signature", x->signature);
	put_name(o, "confidence", sw_confidence_name(x->confidence));
	put_name(o, "evidence", sw_evidence_name(x->evidence));
	put_name(o, "evidence_source", sw_source_name(x->evidence_source));
	json_object_set_new(o, "started", json_string(sw_started_name(x->started)));
	if (x->has_exit && x->exit.has_code)
		json_object_set_new(o, "exit", json_integer(x->exit.code));
	else if (x->has_exit && x->exit.signal)
		json_object_set_new(o, "signal", json_integer(x->exit.signal));
	if (x->exit.timed_out)
		json_object_set_new(o, "timed_out", json_true());
	if (x->has_line) {
		put_bytes(o, "line", "line_b64", x->line);
		json_object_set_new(o, "line_truncated", json_boolean(x->line_truncated));
		json_object_set_new(o, "line_number", json_integer((json_int_t)x->line_number));
		json_object_set_new(o, "offset", json_integer((json_int_t)x->offset));
	}
	put_name(o, "operation", sw_operation_name(x->operation));
	put_text(o, "resource", x->resource);
	put_text(o, "resource_kind", x->resource_kind);
	json_object_set_new(o, "denied_lines", json_integer((json_int_t)x->denied_lines));
	put_limit(o, x);
	if (x->enforcement != SW_ENFORCEMENT_UNKNOWN)
		json_object_set_new(o, "enforcement",
		                    json_string(sw_enforcement_name(x->enforcement)));
	json_object_set_new(o, "output_size", json_integer((json_int_t)x->output_size));
	json_object_set_new(o, "output_lines", json_integer((json_int_t)x->output_lines));
	if (x->has_output_digest && !r->output.ptr) {
		char hex[65];
		for (size_t i = 0; i < 32; i++)
			snprintf(hex + 2 * i, 3, "%02x", x->output_digest[i]);
		json_object_set_new(o, "output_sha256", json_string(hex));
	}
	if (r->output.ptr) {
		put_bytes(o, "output", "output_b64", r->output);
		json_object_set_new(o, "keep_output", json_integer((json_int_t)r->keep_output));
	}
	json_object_foreach((json_t *)x->detail, key, v) json_object_set(o, key, v);
}

int run_server_post(const char *server, sw_store_op_kind kind, const sw_record *r, sw_error *err)
{
	static const char *const events[] = {"begin", "end", "complete"};
	json_t *o = json_object(), *answer = NULL;

	put_text(o, "id", r->id);
	json_object_set_new(o, "event", json_string(events[kind]));
	put_text(o, "backend", r->backend);
	if (kind != SW_STORE_END)
		put_identity(o, r);
	if (kind != SW_STORE_END || r->has_level)
		put_levels(o, r);
	if (kind != SW_STORE_BEGIN)
		put_outcome(o, r);
	if (kind != SW_STORE_END)
		put_time(o, "started_at", r->started_ns);
	if (kind != SW_STORE_BEGIN)
		put_time(o, "ended_at", r->ended_ns);
	int code = cli_server_call(server, "/v1/invocations", o, &answer, err);
	json_decref(o);
	json_decref(answer);
	return code;
}
