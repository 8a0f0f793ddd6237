/* DESIGN's output object: the same field names in every place where a result is shown. */
#include "base.h"

#include <stdlib.h>
#include <string.h>

static json_t *name_or_null(const char *name)
{
	return name && strcmp(name, "none") != 0 ? json_string(name) : json_null();
}

static json_t *exit_json(const sw_exit *e)
{
	if (e->has_code)
		return json_integer(e->code);
	return e->signal ? json_integer(128 + e->signal) : json_null();
}

static json_t *guarantees_json(uint32_t bits)
{
	json_t *a = json_array();
	for (int g = 0; g < SW_GUARANTEE_COUNT; g++)
		if (bits & 1u << g)
			json_array_append_new(a, json_string(sw_guarantee_name((sw_guarantee)g)));
	return a;
}

static void put_line(json_t *o, const sw_hit *h)
{
	/* what was not in the output (a traced call) has no number */
	json_object_set_new(o, "line",
	                    h->line_number || h->line.len ? sw_json_text(h->line) : json_null());
	if (h->line_number && !sw_utf8_valid(h->line.ptr, h->line.len)) {
		char *b64 = sw_base64(h->line.ptr, h->line.len);
		json_object_set_new(o, "line_b64", b64 ? json_string(b64) : json_null());
		free(b64);
	}
	json_object_set_new(o, "line_truncated", json_boolean(h->line_truncated));
	json_object_set_new(o, "line_number",
	                    h->line_number ? json_integer((json_int_t)h->line_number)
	                                   : json_null());
	json_object_set_new(o, "offset",
	                    h->line_number ? json_integer((json_int_t)h->offset) : json_null());
}

static json_t *resource_json(const sw_hit *h)
{
	return h->resource_kind ? sw_json_text(h->resource) : json_null();
}

static json_t *hit_json(const sw_hit *h)
{
	json_t *o = json_object();
	json_object_set_new(o, "signature", sw_json_z(h->sig ? h->sig->id : NULL));
	put_line(o, h);
	if (h->resource_kind)
		json_object_set_new(o, "resource", resource_json(h));
	return o;
}

static json_t *limit_json(const sw_result *r)
{
	if (r->limit == SW_LIMIT_NONE)
		return json_null();
	json_t *o = json_object();
	json_object_set_new(o, "limit", json_string(sw_limit_name(r->limit)));
	json_object_set_new(o, "certainty", json_string(sw_certainty_name(r->limit_certainty)));
	json_object_set_new(o, "signature",
	                    sw_json_z(r->limit_hit.sig ? r->limit_hit.sig->id : NULL));
	json_object_set_new(
	    o, "line", r->limit_hit.line_number ? sw_json_text(r->limit_hit.line) : json_null());
	json_object_set_new(o, "line_number",
	                    r->limit_hit.line_number
	                        ? json_integer((json_int_t)r->limit_hit.line_number)
	                        : json_null());
	return o;
}

json_t *sw_result_json(const sw_result *r, const char *id)
{
	json_t *o = json_object();
	if (!o)
		return NULL;
	json_object_set_new(o, "schema", json_integer(SW_RESULT_SCHEMA));
	json_object_set_new(o, "id", sw_json_z(id));
	json_object_set_new(o, "backend", json_string(r->backend));
	json_object_set_new(o, "exit", exit_json(&r->exit));
	json_object_set_new(o, "timed_out", json_boolean(r->exit.timed_out));
	json_object_set_new(o, "verdict", json_string(sw_verdict_name(r->verdict)));
	json_object_set_new(o, "stage", name_or_null(sw_stage_name(r->stage)));
	json_object_set_new(o, "cause", sw_json_z(r->cause));
	json_object_set_new(o, "confidence", name_or_null(sw_confidence_name(r->confidence)));
	json_object_set_new(o, "evidence", name_or_null(sw_evidence_name(r->evidence)));
	json_object_set_new(o, "evidence_source", name_or_null(sw_source_name(r->evidence_source)));
	json_object_set_new(o, "started", json_string(sw_started_name(r->started)));
	json_object_set_new(o, "rule", json_integer(r->rule));
	json_object_set_new(o, "signature",
	                    sw_json_z(r->has_hit && r->hit.sig ? r->hit.sig->id : NULL));
	put_line(o, &r->hit);
	json_object_set_new(o, "operation", name_or_null(sw_operation_name(r->operation)));
	json_object_set_new(o, "resource", resource_json(&r->hit));
	json_object_set_new(o, "denied_lines", json_integer((json_int_t)r->denied_lines));
	json_object_set_new(o, "limit", limit_json(r));
	json_t *list = json_array();
	for (size_t i = 0; i < r->n_downgrades; i++) {
		json_t *d = hit_json(&r->downgrades[i]);
		json_object_set_new(d, "lost", guarantees_json(r->downgrades[i].sig->lowers));
		json_array_append_new(list, d);
	}
	json_object_set_new(o, "downgrades", list);
	json_object_set_new(
	    o, "mode", name_or_null(r->mode == SW_MODE_UNKNOWN ? NULL : sw_mode_name(r->mode)));
	/* Here "none" is a value: no confinement at all. */
	json_object_set_new(o, "enforcement",
	                    r->enforcement == SW_ENFORCEMENT_UNKNOWN
	                        ? json_null()
	                        : json_string(sw_enforcement_name(r->enforcement)));
	/* What to do about it is data of signatures/causes; whoever has it fills this in. */
	json_object_set_new(o, "advice", json_null());
	list = json_array();
	for (size_t i = 0; i < r->n_observations; i++) {
		json_t *h = hit_json(&r->observations[i].hit);
		json_object_set_new(h, "kind",
		                    json_string(sw_observation_name(r->observations[i].kind)));
		json_array_append_new(list, h);
	}
	json_object_set_new(o, "observations", list);
	list = json_array();
	for (size_t i = 0; i < r->n_faults; i++)
		json_array_append_new(list, json_string(r->faults[i]));
	json_object_set_new(o, "faults", list);
	return o;
}
