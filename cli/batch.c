/* classify --batch: one JSON object per line in, one per line out. */
#include "batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct item {
	const char *id, *backend;
	const char *output;
	size_t output_len;
	char *decoded;
	cli_facts f;
	bool has_output, has_signal;
} item;

static int bad(sw_error *err, const char *field, const char *fix, const char *what)
{
	sw_error_set(err, SW_EINVAL, "%s", what);
	return sw_error_more(err, field, NULL, fix);
}

static int text_field(const json_t *v, const char *key, sw_error *err)
{
	if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
		return bad(err, key, "write a string", "not a string without NUL");
	return 0;
}

/* Sets a fact as the option of the command line would; errors name the field. */
static int fact(item *it, const char *key, const char *option, const char *value, sw_error *err)
{
	if (cli_facts_option(&it->f, option, value, err) >= 0)
		return 0;
	sw_error_more(err, key, NULL, NULL);
	return SW_EINVAL;
}

static int paths_field(item *it, const char *key, const char *option, const json_t *v,
                       sw_error *err)
{
	size_t i;
	json_t *p;
	if (!json_is_array(v))
		return bad(err, key, "write a list of absolute paths", "not a list");
	json_array_foreach(v, i, p)
	{
		int rc = text_field(p, key, err);
		if (!rc)
			rc = fact(it, key, option, json_string_value(p), err);
		if (rc)
			return rc;
	}
	return 0;
}

static int read_exit(item *it, const json_t *v, sw_error *err)
{
	char z[32];
	if (!json_is_integer(v))
		return bad(err, "exit", "write an integer from -2147483648 to 4294967295",
		           "not an integer");
	snprintf(z, sizeof(z), "%lld", (long long)json_integer_value(v));
	return fact(it, "exit", "exit", z, err);
}

static int read_signal(item *it, const json_t *v, sw_error *err)
{
	char z[32];
	if (!json_is_integer(v) && !json_is_string(v))
		return bad(err, "signal", "write a number from 1 to 64 or a name", "not a signal");
	snprintf(z, sizeof(z), "%lld", (long long)json_integer_value(v));
	return fact(it, "signal", "signal", json_is_string(v) ? json_string_value(v) : z, err);
}

static int read_field(item *it, const char *key, const json_t *v, sw_error *err)
{
	static const struct {
		const char *key, *option;
	} words[] = {{"started", "started"},
	             {"mode", "mode"},
	             {"network", "network"},
	             {"enforcement", "enforcement"},
	             {"cwd", "cwd"}};
	if (json_is_null(v))
		return 0;
	if (strcmp(key, "exit") == 0)
		return read_exit(it, v, err);
	if (strcmp(key, "signal") == 0)
		return read_signal(it, v, err);
	if (strcmp(key, "timed_out") == 0) {
		it->f.exit.timed_out = json_is_true(v);
		return json_is_boolean(v) ? 0
		                          : bad(err, key, "write true or false", "not a boolean");
	}
	if (strcmp(key, "writable_roots") == 0)
		return paths_field(it, key, "writable-root", v, err);
	if (strcmp(key, "accessible") == 0)
		return paths_field(it, key, "accessible", v, err);
	if (strcmp(key, "output") == 0) {
		if (!json_is_string(v) || it->has_output)
			return bad(err, key, "give output as a string, or output_b64",
			           "no string, or output twice");
		it->output = json_string_value(v);
		it->output_len = json_string_length(v);
		it->has_output = true;
		return 0;
	}
	if (strcmp(key, "output_b64") == 0) {
		if (!json_is_string(v) || it->has_output ||
		    sw_base64_decode(json_string_value(v), json_string_length(v), &it->decoded,
		                     &it->output_len))
			return bad(err, key, "give standard base64 with padding",
			           "not base64, or output twice");
		it->output = it->decoded;
		it->has_output = true;
		return 0;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].key, key) != 0)
			continue;
		int rc = text_field(v, key, err);
		if (!rc)
			rc = fact(it, key, words[i].option, json_string_value(v), err);
		return rc;
	}
	return 0; /* labels and expectations of a case may ride along */
}

static int read_item(item *it, const json_t *in, const char *default_backend, sw_error *err)
{
	cli_facts_init(&it->f);
	it->backend = default_backend;
	if (!json_is_object(in))
		return bad(err, NULL, "write {\"backend\":\"bwrap\",\"exit\":1,\"output\":\"...\"}",
		           "not an object");
	json_t *v = json_object_get(in, "backend");
	if (v) {
		int rc = text_field(v, "backend", err);
		if (rc)
			return rc;
		it->backend = json_string_value(v);
	}
	const char *key;
	json_object_foreach((json_t *)(uintptr_t)in, key, v)
	{
		int rc = read_field(it, key, v, err);
		if (rc)
			return rc;
	}
	if (!it->backend)
		return bad(err, "backend",
		           "say which runner was used; `sandwitness signatures list` shows them",
		           "missing");
	if (!it->f.has_exit && !it->f.exit.timed_out)
		return bad(err, "exit", "give exit, signal or timed_out", "missing");
	return 0;
}

static json_t *error_object(const json_t *id, const sw_error *err)
{
	json_t *o = json_object();
	sw_buf b;
	sw_buf_init(&b, 4096);
	if (err->where[0])
		sw_buf_addf(&b, "%s: ", err->where);
	sw_buf_addf(&b, "%s", err->what);
	if (err->why[0])
		sw_buf_addf(&b, ": %s", err->why);
	if (err->fix[0])
		sw_buf_addf(&b, " (%s)", err->fix);
	char *z = sw_buf_take(&b);
	json_object_set_new(o, "id", id ? json_deep_copy(id) : json_null());
	json_object_set_new(o, "error", sw_json_z(z));
	free(z);
	return o;
}

json_t *cli_batch_object(const sw_pack_set *set, const json_t *in, const char *default_backend,
                         unsigned flags)
{
	item it = {0};
	sw_error err = {0};
	const json_t *id = json_is_object(in) ? json_object_get(in, "id") : NULL;
	sw_result *r = NULL;
	json_t *out = NULL;
	int rc = read_item(&it, in, default_backend, &err);
	const sw_pack *pack = rc ? NULL : cli_pack_quiet(set, it.backend, &err);
	if (pack) {
		it.f.facts.observe_ok = flags & CLI_BATCH_OBSERVE_OK;
		rc = sw_classify(pack, &it.f.facts, it.f.exit, it.f.started, it.f.source,
		                 it.output ? it.output : "", it.output_len, &r, &err);
		if (!rc)
			out = cli_result_json(r, NULL);
	}
	if (out && id)
		json_object_set(out, "id", (json_t *)(uintptr_t)id);
	if (!out)
		out = error_object(id, &err);
	sw_result_free(r);
	free(it.decoded);
	return out;
}

/* One line of at most CLI_BATCH_LINE_MAX bytes, for as much memory as it has. */
typedef struct line {
	char *p;
	size_t n, cap;
	int error; /* the line is too long, or there is no memory: its rest was skipped */
} line;

static bool read_line(FILE *in, line *l)
{
	int c = EOF;
	l->n = 0;
	l->error = 0;
	flockfile(in);
	while ((c = getc_unlocked(in)) != EOF && c != '\n') {
		if (l->error)
			continue;
		if (l->n == l->cap) {
			size_t cap = l->cap ? l->cap * 2 : 4096;
			char *more = l->n < CLI_BATCH_LINE_MAX ? realloc(l->p, cap) : NULL;
			if (!more) {
				l->error = l->n < CLI_BATCH_LINE_MAX ? SW_ENOMEM : SW_ETOOBIG;
				continue;
			}
			l->p = more;
			l->cap = cap;
		}
		l->p[l->n++] = (char)c;
	}
	funlockfile(in);
	return c != EOF || l->n || l->error;
}

static bool is_blank(const line *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (!memchr(" \t\r", l->p[i], 3))
			return false;
	return !l->error;
}

static json_t *answer(const line *l, size_t number, const sw_pack_set *set,
                      const char *default_backend, unsigned flags)
{
	sw_error err = {0};
	json_t *o, *parsed = NULL;
	if (l->error == SW_ETOOBIG)
		sw_error_set(&err, SW_ETOOBIG, "more than %u bytes", CLI_BATCH_LINE_MAX);
	else if (l->error)
		sw_error_set(&err, SW_ENOMEM, "out of memory");
	else
		parsed = sw_json_parse(l->p, l->n, &err);
	if (parsed) {
		o = cli_batch_object(set, parsed, default_backend, flags);
	} else {
		char where[320];
		snprintf(where, sizeof(where), "input line %zu%s%s", number,
		         err.where[0] ? ", " : "", err.where);
		sw_error_more(&err, where, NULL, NULL);
		o = error_object(NULL, &err);
	}
	json_decref(parsed);
	return o;
}

static int failed(const char *what)
{
	sw_error err;
	sw_error_set(&err, SW_EIO, "%s: %s", what, strerror(errno));
	return cli_fail(&err);
}

int cli_batch(FILE *in, FILE *out, const sw_pack_set *set, const char *default_backend,
              bool observe_ok)
{
	line l = {0};
	size_t number = 0;
	int status = CLI_OK;
	while (read_line(in, &l)) {
		number++;
		if (is_blank(&l))
			continue;
		json_t *o =
		    answer(&l, number, set, default_backend, observe_ok ? CLI_BATCH_OBSERVE_OK : 0);
		if (json_object_get(o, "error"))
			status = CLI_USAGE;
		if (!cli_print_json(out, o)) { /* as many answers as there were lines */
			fputs("{\"id\":null,\"error\":\"out of memory\"}\n", out);
			status = CLI_IO;
		}
		if (ferror(out)) {
			status = failed("cannot write the answers");
			break;
		}
	}
	if (ferror(in))
		status = failed("cannot read the input");
	free(l.p);
	return status;
}
