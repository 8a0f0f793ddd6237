#include "input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Both forms become one JSON object, so that one table checks them. */
typedef int (*setter)(http_input *in, const json_t *value);

static sw_str text_of(const json_t *v)
{
	return (sw_str){json_string_value(v), json_string_length(v)};
}

/* A string without NUL, as names and paths are. */
static const char *plain(const json_t *v)
{
	const char *z = json_string_value(v);

	return z && strlen(z) == json_string_length(v) ? z : NULL;
}

static int set_id(http_input *in, const json_t *v)
{
	in->id = plain(v);
	return in->id && strlen(in->id) <= 128 ? 0 : SW_EINVAL;
}

static int set_backend(http_input *in, const json_t *v)
{
	in->backend = plain(v);
	return in->backend ? 0 : SW_EINVAL;
}

static int set_exit(http_input *in, const json_t *v)
{
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v) || n < -(INT64_C(1) << 31) || n >= INT64_C(1) << 32)
		return SW_EINVAL;
	in->exit.code = n;
	in->exit.has_code = true;
	return 0;
}

static int set_signal(http_input *in, const json_t *v)
{
	json_int_t n = json_integer_value(v);
	const char *name = plain(v);

	for (int i = 1; name && i <= 31; i++) {
		const char *known = sigabbrev_np(i);
		if (known && (!strcmp(name, known) ||
		              (!strncmp(name, "SIG", 3) && !strcmp(name + 3, known))))
			n = i;
	}
	if (n < 1 || n > 64)
		return SW_EINVAL;
	in->exit.signal = (int)n;
	return 0;
}

static int set_timed_out(http_input *in, const json_t *v)
{
	in->exit.timed_out = json_is_true(v);
	return json_is_boolean(v) ? 0 : SW_EINVAL;
}

static int set_started(http_input *in, const json_t *v)
{
	if (json_is_boolean(v)) {
		in->started = json_is_true(v) ? SW_STARTED_YES : SW_STARTED_NO;
		return 0;
	}
	sw_str s = text_of(v);
	return s.ptr ? sw_started_parse(s.ptr, s.len, &in->started) : SW_EINVAL;
}

static int set_mode(http_input *in, const json_t *v)
{
	sw_str s = text_of(v);
	return s.ptr ? sw_mode_parse(s.ptr, s.len, &in->facts.mode) : SW_EINVAL;
}

static int set_network(http_input *in, const json_t *v)
{
	sw_str s = text_of(v);
	return s.ptr ? sw_network_parse(s.ptr, s.len, &in->facts.network) : SW_EINVAL;
}

static int set_enforcement(http_input *in, const json_t *v)
{
	sw_str s = text_of(v);
	return s.ptr ? sw_enforcement_parse(s.ptr, s.len, &in->facts.enforcement) : SW_EINVAL;
}

static int set_paths(const json_t *v, sw_str *to, const sw_str **list, size_t *n)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(v) || json_array_size(v) > HTTP_ROOTS_MAX)
		return SW_EINVAL;
	json_array_foreach(v, i, item)
	{
		to[i] = text_of(item);
		if (!to[i].len || to[i].ptr[0] != '/')
			return SW_EINVAL;
	}
	*list = to;
	*n = json_array_size(v);
	return 0;
}

static int set_roots(http_input *in, const json_t *v)
{
	return set_paths(v, in->roots, &in->facts.writable_roots, &in->facts.n_writable_roots);
}

static int set_accessible(http_input *in, const json_t *v)
{
	return set_paths(v, in->accessible, &in->facts.accessible, &in->facts.n_accessible);
}

static int set_cwd(http_input *in, const json_t *v)
{
	in->facts.cwd = text_of(v);
	return in->facts.cwd.len && in->facts.cwd.ptr[0] == '/' ? 0 : SW_EINVAL;
}

static int set_observe(http_input *in, const json_t *v)
{
	in->facts.observe_ok = json_is_true(v);
	return json_is_boolean(v) ? 0 : SW_EINVAL;
}

static int set_output(http_input *in, const json_t *v)
{
	if (in->output.ptr) /* beside output_b64, in either order */
		return SW_EINVAL;
	in->output = text_of(v);
	return in->output.ptr ? 0 : SW_EINVAL;
}

static int set_output_b64(http_input *in, const json_t *v)
{
	sw_str s = text_of(v);
	size_t n = 0;

	if (!s.ptr || in->output.ptr || sw_base64_decode(s.ptr, s.len, &in->decoded, &n))
		return SW_EINVAL;
	in->output = (sw_str){in->decoded, n};
	return 0;
}

typedef enum { AS_TEXT, AS_INT, AS_NUMBER_OR_TEXT, AS_BOOL, NOT_IN_QUERY } query_form;

static const struct member {
	const char *name;
	setter set;
	query_form form;
	const char *what;
} members[] = {
    {"id", set_id, AS_TEXT, "a string of at most 128 bytes"},
    {"backend", set_backend, AS_TEXT, "a string; see /v1/signatures for the backends"},
    {"exit", set_exit, AS_INT, "a whole number from -2147483648 to 4294967295"},
    {"signal", set_signal, AS_NUMBER_OR_TEXT,
     "a whole number from 1 to 64, or a name such as SIGKILL"},
    {"timed_out", set_timed_out, AS_BOOL, "true or false"},
    {"started", set_started, AS_TEXT, "yes, no or unknown"},
    {"mode", set_mode, AS_TEXT, "read_only, workspace_write, danger_full_access or unknown"},
    {"network", set_network, AS_TEXT, "allowed, denied or unknown"},
    {"enforcement", set_enforcement, AS_TEXT, "full, partial, none or unknown"},
    {"writable_roots", set_roots, NOT_IN_QUERY, "an array of at most 64 absolute paths"},
    {"accessible", set_accessible, NOT_IN_QUERY, "an array of at most 64 absolute paths"},
    {"cwd", set_cwd, AS_TEXT, "an absolute path"},
    {"observe", set_observe, AS_BOOL, "true or false"},
    {"output", set_output, NOT_IN_QUERY, "a string, and not together with output_b64"},
    {"output_b64", set_output_b64, NOT_IN_QUERY, "base64, and not together with output"},
};
enum { N_MEMBERS = sizeof(members) / sizeof(members[0]) };

static int wrong(sw_error *err, const char *name, const char *what, const char *fix)
{
	sw_error_set(err, SW_EINVAL, "%s", what);
	return sw_error_more(err, name, NULL, fix);
}

int http_input_from_json(http_input *out, json_t *object, sw_error *err)
{
	const char *key;
	json_t *value;

	memset(out, 0, sizeof(*out));
	out->object = object;
	if (!json_is_object(object))
		return wrong(err, "body", "not a JSON object",
		             "send {\"backend\":\"bwrap\",\"exit\":1,\"output\":\"...\"}");
	json_object_foreach(object, key, value)
	{
		size_t i = 0;
		while (i < N_MEMBERS && strcmp(members[i].name, key) != 0)
			i++;
		/* labels and expectations of a case may ride along, as in the batch input; null
		 * says the same as leaving it out */
		if (i < N_MEMBERS && !json_is_null(value) && members[i].set(out, value))
			return wrong(err, key, "has a wrong value", members[i].what);
	}
	if (!out->backend)
		return wrong(err, "backend", "is missing", "name the runner, for example bwrap");
	if (out->exit.has_code && out->exit.signal)
		return wrong(err, "signal", "given together with exit", "leave one of them out");
	if (!out->exit.has_code && !out->exit.signal && !out->exit.timed_out)
		return wrong(err, "exit", "is missing", "give exit, signal or timed_out");
	return 0;
}

int http_input_from_query(http_input *out, const http_request *req, sw_error *err)
{
	json_t *object = json_object();

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; object && i < N_MEMBERS; i++) {
		const char *value =
		    members[i].form == NOT_IN_QUERY ? NULL : http_query(req, members[i].name);
		json_t *v = NULL;
		char *end;

		if (!value)
			continue;
		if (members[i].form == AS_TEXT)
			v = json_string(value);
		else if (members[i].form == AS_BOOL)
			v = !strcmp(value, "1") || !strcmp(value, "true")    ? json_true()
			    : !strcmp(value, "0") || !strcmp(value, "false") ? json_false()
			                                                     : NULL;
		else {
			errno = 0;
			long long n = strtoll(value, &end, 0);
			if (!errno && end != value && !*end)
				v = json_integer(n);
			else if (members[i].form == AS_NUMBER_OR_TEXT)
				v = json_string(value);
		}
		if (!v || json_object_set_new(object, members[i].name, v)) {
			json_decref(object);
			return wrong(err, members[i].name, "has a wrong value", members[i].what);
		}
	}
	int code = http_input_from_json(out, object, err);
	if (!code)
		out->output = (sw_str){req->body, req->body_len};
	return code;
}

void http_input_free(http_input *in)
{
	json_decref(in->object);
	free(in->decoded);
	memset(in, 0, sizeof(*in));
}
