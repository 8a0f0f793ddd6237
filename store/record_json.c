/*
 * record_json.c - one JSON record as docs/record.md describes it.
 */
#include <stdlib.h>
#include <string.h>

#include "record_int.h"

int rj_fail(sw_error *err, const char *field, const char *why, const char *fix)
{
	return st_err(err, SW_EINVAL, field, why, fix, "not a valid record");
}

sw_str rj_text(const json_t *v)
{
	return json_is_string(v) ? (sw_str){json_string_value(v), json_string_length(v)}
	                         : (sw_str){"", 0};
}

/* Every field that may stand in a record. Those of the output object are among them,
 * so that what `classify --json` printed can be posted as it is. */
static const char *const known[] = {"schema",
                                    "id",
                                    "event",
                                    "started_at",
                                    "ended_at",
                                    "duration_ms",
                                    "device",
                                    "host",
                                    "platform",
                                    "runtime",
                                    "session",
                                    "actor",
                                    "labels",
                                    "command",
                                    "argv",
                                    "cwd",
                                    "backend",
                                    "kind",
                                    "mode",
                                    "network",
                                    "writable_roots",
                                    "writable",
                                    "accessible",
                                    "requested",
                                    "minimum",
                                    "effective",
                                    "sandbox",
                                    "sandbox_downgrade_reason",
                                    "enforcement",
                                    "granted",
                                    "reason",
                                    "reason_class",
                                    "exempt",
                                    "exit",
                                    "exit_status",
                                    "signal",
                                    "timed_out",
                                    "started",
                                    "started_source",
                                    "output",
                                    "output_b64",
                                    "keep_output",
                                    "output_size",
                                    "output_lines",
                                    "output_sha256",
                                    "verdict",
                                    "stage",
                                    "cause",
                                    "confidence",
                                    "evidence",
                                    "evidence_source",
                                    "rule",
                                    "signature",
                                    "line",
                                    "line_b64",
                                    "line_truncated",
                                    "line_number",
                                    "offset",
                                    "operation",
                                    "resource",
                                    "resource_kind",
                                    "denied_lines",
                                    "limit",
                                    "downgrades",
                                    "observations",
                                    "faults",
                                    "advice",
                                    "detail"};

/* What was captured may hold any byte; a name or a text that is given may not hold NUL: where
 * text ends at one it would be another name. */
static const char *const any_bytes[] = {"output",     "line",         "resource", "detail",
                                        "downgrades", "observations", "faults"};

static bool holds_nul(const json_t *v, int depth)
{
	size_t i;
	json_t *x;
	const char *key;
	if (json_is_string(v))
		return memchr(json_string_value(v), 0, json_string_length(v)) != NULL;
	if (depth > 8)
		return false;
	json_array_foreach((json_t *)v, i, x) if (holds_nul(x, depth + 1)) return true;
	json_object_foreach((json_t *)v, key, x) if (holds_nul(x, depth + 1)) return true;
	return false;
}

static int check_fields(const json_t *o, sw_error *err)
{
	const char *key;
	json_t *v;
	if (!json_is_object(o))
		return rj_fail(err, NULL, "a JSON object is expected", NULL);
	json_object_foreach((json_t *)o, key, v)
	{
		bool is = false;
		for (size_t i = 0; !is && i < sizeof known / sizeof *known; i++)
			is = strcmp(known[i], key) == 0;
		if (!is)
			return rj_fail(err, key, "there is no such field",
			               "docs/record.md lists them");
		bool any = false;
		for (size_t i = 0; !any && i < sizeof any_bytes / sizeof *any_bytes; i++)
			any = strcmp(any_bytes[i], key) == 0;
		if (!any && holds_nul(v, 0))
			return rj_fail(err, key, "it holds a NUL character", NULL);
	}
	return 0;
}

static const json_t *either(const json_t *o, const char *a, const char *b)
{
	const json_t *v = json_object_get(o, a);
	return v && !json_is_null(v) ? v : json_object_get(o, b);
}

static int texts(sw_record_parsed *p, sw_error *err)
{
	const json_t *o = p->object;
	const struct {
		const char *a, *b;
		sw_str *to;
	} f[] = {{"id", "id", &p->r.id},
	         {"device", "host", &p->r.device},
	         {"platform", "platform", &p->r.platform},
	         {"runtime", "runtime", &p->r.runtime},
	         {"session", "session", &p->r.session},
	         {"actor", "actor", &p->r.actor},
	         {"cwd", "cwd", &p->r.cwd},
	         {"backend", "kind", &p->r.backend}};
	for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
		const json_t *v = either(o, f[i].a, f[i].b);
		if (v && !json_is_null(v) && !json_is_string(v))
			return rj_fail(err, f[i].a, "a string is expected", NULL);
		*f[i].to = rj_text(v);
	}
	const json_t *event = json_object_get(o, "event");
	sw_str e = rj_text(event);
	p->kind = SW_STORE_COMPLETE;
	if (sw_str_eq(e, SW_STR("begin")))
		p->kind = SW_STORE_BEGIN;
	else if (sw_str_eq(e, SW_STR("end")))
		p->kind = SW_STORE_END;
	else if (event && !json_is_null(event) && !sw_str_eq(e, SW_STR("complete")))
		return rj_fail(err, "event", "complete, begin or end", NULL);
	return 0;
}

static int strings(const json_t *v, const char *field, sw_str *out, size_t max, size_t *n,
                   sw_error *err)
{
	size_t i;
	json_t *x;
	*n = 0;
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_array(v) || json_array_size(v) > max)
		return rj_fail(err, field, "a list of strings is expected", "at most 64 of them");
	json_array_foreach((json_t *)v, i, x)
	{
		if (!json_is_string(x))
			return rj_fail(err, field, "a list of strings is expected", NULL);
		out[(*n)++] = rj_text(x);
	}
	return 0;
}

static int command(sw_record_parsed *p, sw_error *err)
{
	const json_t *v = either(p->object, "command", "argv");
	size_t n = json_array_size(v);
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_string(v) && !json_is_array(v))
		return rj_fail(err, "command", "a list of arguments, or one string", NULL);
	if (n > 65536)
		return rj_fail(err, "command", "more than 65,536 arguments", NULL);
	p->argv = calloc(n + 1, sizeof *p->argv);
	if (!p->argv)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	p->r.argv = p->argv;
	if (json_is_string(v)) {
		p->argv[p->r.argc++] = rj_text(v);
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		const json_t *x = json_array_get(v, i);
		if (!json_is_string(x))
			return rj_fail(err, "command", "every argument is a string", NULL);
		p->argv[p->r.argc++] = rj_text(x);
	}
	return 0;
}

static int labels(sw_record_parsed *p, sw_error *err)
{
	const json_t *l = json_object_get(p->object, "labels");
	const char *key;
	json_t *v;
	if (!l || json_is_null(l))
		return 0;
	if (!json_is_object(l) || json_object_size(l) > SW_RECORD_LABELS_MAX)
		return rj_fail(err, "labels", "an object of at most 32 strings", NULL);
	json_object_foreach((json_t *)l, key, v)
	{
		if (!json_is_string(v))
			return rj_fail(err, "labels", "every value is a string", NULL);
		p->labels[p->r.n_labels++] = (sw_label){sw_str_of(key), rj_text(v)};
	}
	p->r.labels = p->labels;
	return 0;
}

static int enums(sw_record_parsed *p, sw_error *err)
{
	const json_t *o = p->object, *net = json_object_get(o, "network");
	sw_str mode = rj_text(json_object_get(o, "mode"));
	sw_str enforcement = rj_text(json_object_get(o, "enforcement"));
	if (mode.len && sw_mode_parse(mode.ptr, mode.len, &p->r.mode) != 0)
		return rj_fail(err, "mode", "read_only, workspace_write or danger_full_access",
		               NULL);
	if (json_is_boolean(net))
		p->r.network = json_is_true(net) ? SW_NETWORK_ALLOWED : SW_NETWORK_DENIED;
	else if (json_is_string(net) &&
	         sw_network_parse(json_string_value(net), json_string_length(net), &p->r.network) !=
	             0)
		return rj_fail(err, "network", "allowed, denied, true or false", NULL);
	if (enforcement.len &&
	    sw_enforcement_parse(enforcement.ptr, enforcement.len, &p->facts.enforcement) != 0)
		return rj_fail(err, "enforcement", "full, partial or none", NULL);
	p->facts.mode = p->r.mode;
	p->facts.network = p->r.network;
	p->facts.cwd = p->r.cwd;
	int code = strings(either(o, "writable_roots", "writable"), "writable_roots", p->roots,
	                   RJ_ROOTS_MAX, &p->facts.n_writable_roots, err);
	p->facts.writable_roots = p->roots;
	if (code == 0)
		code = strings(json_object_get(o, "accessible"), "accessible", p->accessible,
		               RJ_ROOTS_MAX, &p->facts.n_accessible, err);
	p->facts.accessible = p->accessible;
	return code;
}

/* A record that names only a level, as paired devices do, names its backend by it. */
static void backend_of_level(sw_record_parsed *p)
{
	const sw_level_def *d =
	    sw_level_find(sw_builtin_levels(), rj_text(either(p->object, "sandbox", "effective")));
	static const char *const names[] = {
#define X_NAME(s, n) n,
	    SW_BACKEND_LIST(X_NAME)};
	if (p->r.backend.len || !d)
		return;
	p->r.backend = sw_str_of("none");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], d->family) == 0)
			p->r.backend = sw_str_of(d->family);
}

static int exit_of(sw_record_parsed *p, sw_error *err)
{
	const json_t *v = either(p->object, "exit", "exit_status");
	const json_t *sig = json_object_get(p->object, "signal");
	sw_outcome *o = &p->r.outcome;
	if (json_is_integer(v)) {
		o->exit.code = json_integer_value(v);
		o->exit.has_code = o->has_exit = true;
		if (o->exit.code < INT32_MIN || o->exit.code > UINT32_MAX)
			return rj_fail(err, "exit", "a 32-bit number", NULL);
	} else if (v && !json_is_null(v)) {
		return rj_fail(err, "exit", "a number is expected", NULL);
	}
	if (json_is_integer(sig)) {
		if (o->exit.has_code && o->exit.code != 128 + json_integer_value(sig))
			return rj_fail(err, "signal", "signal and exit together",
			               "give one of them");
		if (json_integer_value(sig) < 1 || json_integer_value(sig) > 64)
			return rj_fail(err, "signal", "a number from 1 to 64", NULL);
		o->exit.signal = (int)json_integer_value(sig);
		o->exit.has_code = false;
		o->has_exit = true;
	}
	if (json_is_true(json_object_get(p->object, "timed_out")))
		o->exit.timed_out = o->has_exit = true;
	return 0;
}

static int output(sw_record_parsed *p, sw_error *err)
{
	const json_t *o = p->object, *text = json_object_get(o, "output");
	const json_t *b64 = json_object_get(o, "output_b64"),
	             *keep = json_object_get(o, "keep_output");
	if (json_is_string(text) && json_is_string(b64))
		return rj_fail(err, "output_b64", "output and output_b64 together",
		               "give one of them");
	if (json_is_string(text)) {
		p->r.output = rj_text(text);
	} else if (json_is_string(b64)) {
		size_t n = 0;
		if (sw_base64_decode(json_string_value(b64), json_string_length(b64),
		                     &p->decoded[0], &n))
			return rj_fail(err, "output_b64", "not base64", NULL);
		p->r.output = (sw_str){p->decoded[0], n};
	}
	p->has_output = p->r.output.ptr != NULL;
	if (json_is_true(keep))
		p->r.keep_output = 65536;
	else if (json_is_integer(keep) && json_integer_value(keep) >= 0)
		p->r.keep_output = (size_t)json_integer_value(keep);
	else if (keep && !json_is_null(keep) && !json_is_false(keep))
		return rj_fail(err, "keep_output", "true, or a number of bytes", NULL);
	return 0;
}

static int started(sw_record_parsed *p, sw_error *err)
{
	const json_t *v = json_object_get(p->object, "started");
	sw_outcome *o = &p->r.outcome;
	if (json_is_boolean(v))
		o->started = json_is_true(v) ? SW_STARTED_YES : SW_STARTED_NO;
	else if (json_is_string(v) &&
	         sw_started_parse(json_string_value(v), json_string_length(v), &o->started) != 0)
		return rj_fail(err, "started", "yes, no or unknown", NULL);
	if (o->started != SW_STARTED_UNKNOWN)
		o->evidence_source = SW_SOURCE_CALLER;
	sw_str s = rj_text(either(p->object, "started_source", "evidence_source"));
	if (s.len && sw_source_parse(s.ptr, s.len, &o->evidence_source) != 0)
		return rj_fail(err, "evidence_source", "not one of the list", "docs/record.md");
	return 0;
}

/* The verdict as somebody else gave it. */
static int given_verdict(sw_record_parsed *p, sw_error *err)
{
	const json_t *o = p->object;
	sw_outcome *x = &p->r.outcome;
#define ENUM(field, stem, to)                                                                \
	do {                                                                                 \
		sw_str s_ = rj_text(json_object_get(o, field));                              \
		if (s_.len && sw_##stem##_parse(s_.ptr, s_.len, to) != 0)                    \
			return rj_fail(err, field, "not one of the list", "docs/record.md"); \
	} while (0)
	ENUM("stage", stage, &x->stage);
	ENUM("confidence", confidence, &x->confidence);
	ENUM("evidence", evidence, &x->evidence);
	ENUM("operation", operation, &x->operation);
#undef ENUM
	x->rule = (int)json_integer_value(json_object_get(o, "rule"));
	x->cause = rj_text(json_object_get(o, "cause"));
	x->signature = rj_text(json_object_get(o, "signature"));
	x->resource = rj_text(json_object_get(o, "resource"));
	x->resource_kind = rj_text(json_object_get(o, "resource_kind"));
	const json_t *line = json_object_get(o, "line"), *b64 = json_object_get(o, "line_b64");
	if (json_is_string(b64)) {
		size_t n = 0;
		if (sw_base64_decode(json_string_value(b64), json_string_length(b64),
		                     &p->decoded[1], &n))
			return rj_fail(err, "line_b64", "not base64", NULL);
		x->line = (sw_str){p->decoded[1], n};
	} else {
		x->line = rj_text(json_is_string(line) ? line : json_object_get(o, "detail"));
	}
	x->has_line = x->line.len > 0 || json_is_string(line);
	x->line_truncated = json_is_true(json_object_get(o, "line_truncated"));
	x->line_number = (uint64_t)json_integer_value(json_object_get(o, "line_number"));
	x->offset = (uint64_t)json_integer_value(json_object_get(o, "offset"));
	x->denied_lines = (uint64_t)json_integer_value(json_object_get(o, "denied_lines"));
	const json_t *limit = json_object_get(o, "limit");
	sw_str kind = rj_text(json_is_object(limit) ? json_object_get(limit, "limit") : limit);
	sw_str certainty = rj_text(json_object_get(limit, "certainty"));
	if ((kind.len && sw_limit_parse(kind.ptr, kind.len, &x->limit) != 0) ||
	    (certainty.len &&
	     sw_certainty_parse(certainty.ptr, certainty.len, &x->limit_certainty) != 0))
		return rj_fail(err, "limit", "not one of the list", "docs/record.md");
	static const char *const lists[] = {"downgrades", "observations", "faults"};
	for (int i = 0; i < 3; i++) {
		json_t *v = json_object_get(o, lists[i]);
		if (json_array_size(v) == 0)
			continue;
		if (!p->detail)
			p->detail = json_object();
		json_object_set(p->detail, lists[i], v);
	}
	return 0;
}

static int digest(sw_record_parsed *p, sw_error *err)
{
	const json_t *o = p->object;
	sw_outcome *x = &p->r.outcome;
	sw_str hex = rj_text(json_object_get(o, "output_sha256"));
	if (!p->has_output) {
		if (hex.len && (hex.len != 64 || st_unhex(hex.ptr, 64, x->output_digest) != 0))
			return rj_fail(err, "output_sha256", "64 hex digits", NULL);
		x->has_output_digest = hex.len > 0;
		x->output_size = (uint64_t)json_integer_value(json_object_get(o, "output_size"));
		x->output_lines = (uint64_t)json_integer_value(json_object_get(o, "output_lines"));
	}
	return 0;
}

static int classify(sw_record_parsed *p, sw_pack_finder find, void *arg, sw_error *err)
{
	sw_outcome kept = p->r.outcome;
	char backend[64];
	snprintf(backend, sizeof backend, "%.*s", (int)p->r.backend.len, p->r.backend.ptr);
	const sw_pack *pack = find ? find(arg, backend) : NULL;
	if (!pack)
		return rj_fail(
		    err, "backend", "no signatures for it",
		    "give the verdict, or one of the backends that `signatures list` shows");
	int code =
	    sw_classify(pack, &p->facts, kept.exit, kept.started,
	                kept.started == SW_STARTED_UNKNOWN ? SW_SOURCE_NONE : kept.evidence_source,
	                p->r.output.ptr ? p->r.output.ptr : "", p->r.output.len, &p->result, err);
	if (code != 0)
		return code;
	sw_outcome_of_result(&p->r.outcome, p->result);
	p->detail = sw_outcome_detail(p->result);
	p->r.outcome.has_exit = kept.has_exit;
	p->r.outcome.has_output_digest = kept.has_output_digest;
	memcpy(p->r.outcome.output_digest, kept.output_digest, 32);
	if (!p->has_output) {
		p->r.outcome.output_size = kept.output_size;
		p->r.outcome.output_lines = kept.output_lines;
	}
	return 0;
}

static int outcome(sw_record_parsed *p, sw_pack_finder find, void *arg, sw_error *err)
{
	int code = exit_of(p, err);
	if (code == 0)
		code = output(p, err);
	if (code == 0)
		code = started(p, err);
	if (code == 0)
		code = digest(p, err);
	sw_outcome *x = &p->r.outcome;
	sw_str v = rj_text(json_object_get(p->object, "verdict"));
	if (code != 0)
		return code;
	if (p->kind == SW_STORE_BEGIN) {
		if (v.len || x->has_exit || p->has_output)
			return rj_fail(err, "event", "a begin has no outcome yet",
			               "post it with event \"end\"");
		return 0;
	}
	x->enforcement = p->facts.enforcement;
	if (v.len) {
		if (sw_record_verdict_parse(v.ptr, v.len, &x->verdict) != 0)
			return rj_fail(err, "verdict",
			               "ok, runner_failed, sandbox_denied or sandbox_unavailable",
			               NULL);
		return given_verdict(p, err);
	}
	if (!x->has_exit)
		return rj_fail(err, "exit", "neither exit, signal, timed_out nor verdict",
		               "give how the command ended, or the verdict");
	if (!p->r.backend.len && p->kind == SW_STORE_END)
		return rj_fail(err, "backend", "an end that is to be classified names it again",
		               NULL);
	return classify(p, find, arg, err);
}

int sw_record_parse(sw_record_parsed **out, const json_t *object, sw_pack_finder find, void *arg,
                    sw_error *err)
{
	int code = check_fields(object, err);
	if (code != 0)
		return code;
	sw_record_parsed *p = calloc(1, sizeof *p);
	if (!p)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	p->object = json_incref((json_t *)object);
	code = texts(p, err);
	if (code == 0)
		code = rj_times(p, err);
	if (code == 0)
		code = command(p, err);
	if (code == 0)
		code = labels(p, err);
	if (code == 0)
		code = enums(p, err);
	if (code == 0)
		backend_of_level(p);
	if (code == 0)
		code = rj_levels(p, err);
	if (code == 0)
		code = outcome(p, find, arg, err);
	if (code != 0) {
		sw_record_parsed_free(p);
		return code;
	}
	rj_levels_after(p);
	p->r.outcome.detail = p->detail;
	*out = p;
	return 0;
}

void sw_record_parsed_free(sw_record_parsed *p)
{
	if (!p)
		return;
	json_decref(p->object);
	json_decref(p->detail);
	sw_result_free(p->result);
	if (p->has_derived)
		sw_derived_clear(&p->derived);
	free(p->argv);
	free(p->decoded[0]);
	free(p->decoded[1]);
	free(p);
}

sw_store_op_kind sw_record_parsed_kind(const sw_record_parsed *p)
{
	return p->kind;
}

const sw_record *sw_record_parsed_record(const sw_record_parsed *p)
{
	return &p->r;
}

json_t *sw_receipt_json(const sw_receipt *r)
{
	char hash[65];
	st_hex(hash, r->hash, 32);
	json_t *o = json_object();
	json_object_set_new(o, "id", sw_json_text(sw_str_of(r->id)));
	json_object_set_new(o, "seq", json_integer((json_int_t)r->seq));
	json_object_set_new(o, "hash", json_string(hash));
	json_object_set_new(o, "replay", json_boolean(r->replay));
	return o;
}
