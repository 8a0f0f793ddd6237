/* status_json.c - the object of docs/status.md. */
#include "probe_int.h"

#include <stdlib.h>
#include <string.h>

static json_t *text(const char *z)
{
	return z && z[0] ? sw_json_text(sw_str_of(z)) : json_null();
}

static json_t *guarantees_json(uint32_t bits)
{
	json_t *a = json_array();
	for (int g = 0; g < SW_GUARANTEE_COUNT; g++)
		if (bits & (1u << g))
			json_array_append_new(a, sw_json_z(sw_guarantee_name((sw_guarantee)g)));
	return a;
}

static json_t *context_json(const sw_probe_context *c)
{
	json_t *o = json_object();
	json_object_set_new(o, "uid", json_integer(c->uid));
	json_object_set_new(o, "gid", json_integer(c->gid));
	json_object_set_new(o, "path", sw_json_text(sw_str_of(c->search_path)));
	json_object_set_new(o, "userns", text(c->userns));
	json_object_set_new(o, "seccomp", text(c->seccomp));
	json_object_set_new(o, "no_new_privs",
	                    c->no_new_privs < 0 ? json_null() : json_boolean(c->no_new_privs));
	json_object_set_new(o, "container", text(c->container));
	return o;
}

static json_t *steps_json(const sw_backend_status *b)
{
	json_t *a = json_array();
	for (size_t i = 0; i < b->n_steps; i++) {
		json_t *o = json_object();
		json_object_set_new(o, "name", sw_json_z(b->steps[i].name));
		json_object_set_new(o, "result",
		                    sw_json_z(sw_step_result_name(b->steps[i].result)));
		json_object_set_new(o, "detail", text(b->steps[i].detail));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *probe_json(const sw_backend_status *b, const sw_probe_context *c)
{
	json_t *o = json_object();
	char at[40];
	bool done = b->at_ns != 0;
	json_object_set_new(o, "result", sw_json_z(sw_probe_result_name(b->result)));
	if (done)
		sw_time_format(b->at_ns, at);
	json_object_set_new(o, "at", done ? sw_json_z(at) : json_null());
	json_object_set_new(o, "duration_ms",
	                    done ? json_integer((json_int_t)(b->duration_ms + 0.5)) : json_null());
	json_object_set_new(o, "context", done ? context_json(c) : json_null());
	json_object_set_new(o, "steps", steps_json(b));
	json_object_set_new(o, "cause", text(b->cause));
	json_object_set_new(o, "advice", text(b->advice));
	json_object_set_new(o, "line", text(b->line));
	json_object_set_new(o, "recheck", text(b->recheck));
	return o;
}

static json_t *backend_json(const sw_backend_status *b, const sw_probe_context *c)
{
	json_t *o = json_object();
	json_object_set_new(o, "id", sw_json_z(b->id));
	json_object_set_new(o, "found", json_boolean(b->found));
	json_object_set_new(o, "path", text(b->path));
	json_object_set_new(o, "untrusted_path", text(b->untrusted_path));
	json_object_set_new(o, "untrusted_why", text(b->untrusted_why));
	json_object_set_new(o, "version", text(b->version));
	json_object_set_new(o, "probe", probe_json(b, c));
	json_object_set_new(o, "guarantees", guarantees_json(b->guarantees));
	json_object_set_new(o, "note", b->here ? json_null() : json_string("not on this platform"));
	return o;
}

static json_t *host_json(const sw_status *s)
{
	json_t *host = json_object();
	for (size_t i = 0; i < s->n_facts; i++) {
		const sw_host_fact *f = &s->facts[i];
		json_t *o = json_object();
		json_object_set_new(o, "value", f->known ? text(f->value) : json_null());
		json_object_set_new(o, "source", text(f->source));
		if (!f->known)
			json_object_set_new(o, "unknown", text(f->value));
		json_object_set_new(host, f->id, o);
	}
	return host;
}

json_t *sw_status_json(const sw_status *s)
{
	json_t *o = json_object(), *backends = json_array();
	json_object_set_new(o, "bwrap_available", json_boolean(s->bwrap_available));
	json_object_set_new(o, "bwrap_path", text(s->bwrap_path));
	json_object_set_new(o, "disabled_via_env", json_boolean(s->disabled_via_env));
	json_object_set_new(o, "active", json_boolean(s->active));
	for (size_t i = 0; i < s->n_backends; i++)
		json_array_append_new(backends, backend_json(&s->backends[i], &s->context));
	json_object_set_new(o, "backends", backends);
	json_object_set_new(o, "host", host_json(s));
	return o;
}

json_t *sw_status_read_json(const sw_probe_options *opts, sw_error *err)
{
	sw_status *s = NULL;
	if (sw_status_read(&s, opts, err))
		return NULL;
	bool lacked = sw_json_lacks(false);
	json_t *o = sw_status_json(s);
	sw_status_free(s);
	if (sw_json_lacks(lacked) || !o) {
		json_decref(o);
		sw_error_set(err, SW_ENOMEM, "out of memory");
		return NULL;
	}
	return o;
}
