#include "explain.h"

#include <stdlib.h>
#include <string.h>

static json_t *near_json(const sw_near *n)
{
	return json_pack("{s:s, s:s?, s:s?, s:I, s:I, s:o}", "kind", sw_near_name(n->kind),
	                 "signature", n->sig ? n->sig->id : NULL, "origin",
	                 n->sig ? n->sig->origin : NULL, "line_number", (json_int_t)n->line_number,
	                 "column", (json_int_t)n->column, "line", sw_json_text(n->line));
}

static json_t *explanation_json(const sw_explanation *e)
{
	json_t *rules = json_array(), *nears = json_array(), *unclaimed = json_array();

	for (size_t i = 0; i < e->n_rules; i++)
		json_array_append_new(rules, json_pack("{s:i, s:b, s:o}", "rule", e->rules[i].rule,
		                                       "applied", e->rules[i].applied, "text",
		                                       sw_json_text(sw_str_of(e->rules[i].text))));
	for (size_t i = 0; i < e->n_nears; i++)
		json_array_append_new(nears, near_json(&e->nears[i]));
	for (size_t i = 0; i < e->n_unclaimed; i++)
		json_array_append_new(unclaimed, json_pack("{s:I, s:o}", "line_number",
		                                           (json_int_t)e->unclaimed_numbers[i],
		                                           "line", sw_json_text(e->unclaimed[i])));
	return json_pack("{s:s, s:s?, s:o, s:o, s:o, s:I}", "verdict",
	                 sw_verdict_name(e->result->verdict), "signature",
	                 e->result->hit.sig ? e->result->hit.sig->id : NULL, "rules", rules,
	                 "near_misses", nears, "unclaimed", unclaimed, "unclaimed_total",
	                 (json_int_t)e->n_unclaimed_total);
}

/* The facts that the trail keeps. */
static void read_facts(const json_t *inv, sw_facts *facts, sw_exit *x, sw_started *started,
                       sw_source *source)
{
	const json_t *v;

	if ((v = json_object_get(inv, "mode")) && json_is_string(v))
		sw_mode_parse(json_string_value(v), json_string_length(v), &facts->mode);
	if ((v = json_object_get(inv, "network")) && json_is_string(v))
		sw_network_parse(json_string_value(v), json_string_length(v), &facts->network);
	if ((v = json_object_get(inv, "started")) && json_is_string(v))
		sw_started_parse(json_string_value(v), json_string_length(v), started);
	if ((v = json_object_get(inv, "evidence_source")) && json_is_string(v))
		sw_source_parse(json_string_value(v), json_string_length(v), source);
	if (*started != SW_STARTED_UNKNOWN && *source == SW_SOURCE_NONE)
		*source = SW_SOURCE_CALLER;
	if ((v = json_object_get(inv, "cwd")) && json_is_string(v))
		facts->cwd = (sw_str){json_string_value(v), json_string_length(v)};
	if ((v = json_object_get(inv, "exit")) && json_is_integer(v)) {
		x->code = json_integer_value(v);
		x->has_code = true;
	}
	if ((v = json_object_get(inv, "signal")) && json_is_integer(v))
		x->signal = (int)json_integer_value(v);
	x->timed_out = json_is_true(json_object_get(inv, "timed_out"));
}

int http_explain_add(http_packs *packs, json_t *inv, sw_error *err)
{
	const json_t *text = json_object_get(inv, "output");
	int code = 0;
	const json_t *b64 = json_object_get(inv, "output_b64");
	const char *backend = json_string_value(json_object_get(inv, "backend"));
	const sw_pack *pack = backend ? http_packs_get(packs, backend, err) : NULL;
	sw_facts facts = {.observe_ok = true};
	sw_exit x = {0};
	sw_started started = SW_STARTED_UNKNOWN;
	sw_source source = SW_SOURCE_NONE;
	sw_explanation *e = NULL;
	char *decoded = NULL;
	sw_str output = {NULL, 0};

	if (json_is_string(text))
		output = (sw_str){json_string_value(text), json_string_length(text)};
	else if (json_is_string(b64) &&
	         !(code = sw_base64_decode(json_string_value(b64), json_string_length(b64),
	                                   &decoded, &output.len)))
		output.ptr = decoded;
	if (backend && !pack && err->code == SW_ENOMEM)
		code = SW_ENOMEM;
	read_facts(inv, &facts, &x, &started, &source);
	if (pack && output.ptr)
		code =
		    sw_explain(pack, &facts, x, started, source, output.ptr, output.len, &e, NULL);
	if (e)
		json_object_set_new(inv, "explanation", explanation_json(e));
	else
		json_object_set_new(inv, "explanation", json_null());
	sw_explanation_free(e);
	free(decoded);
	/* any other reason is one why it cannot be explained */
	return code == SW_ENOMEM ? sw_error_set(err, code, "out of memory") : 0;
}
