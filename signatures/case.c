/* One case of the corpus: reading, comparing. */
#include "case.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "yaml_json.h"

const char *const sw_miss_names[SW_MISS_KINDS] = {"verdict",  "stage",     "cause",     "line",
                                                  "resource", "operation", "signature", "limit"};

/* ---- reading one value at a time ---- */

typedef struct load {
	sw_case *c;
	sw_error *err;
} load;

static int bad(const load *l, const char *key, const char *what, const char *fix)
{
	char where[256];
	snprintf(where, sizeof(where), "%s: %s", l->c->path, key);
	sw_error_set(l->err, SW_EPACK, "%s", what);
	return sw_error_more(l->err, where, NULL, fix);
}

typedef int (*name_parser)(const char *s, size_t n, int *out);

/* sw_NAME_parse() with an int, so that one table serves every enum. */
#define PARSER(stem, type)                                         \
	static int parse_##stem(const char *s, size_t n, int *out) \
	{                                                          \
		type v;                                            \
		int rc = sw_##stem##_parse(s, n, &v);              \
		if (rc == 0)                                       \
			*out = (int)v;                             \
		return rc;                                         \
	}
PARSER(verdict, sw_verdict)
PARSER(stage, sw_stage)
PARSER(operation, sw_operation)
PARSER(limit, sw_limit_kind)
PARSER(mode, sw_mode)
PARSER(network, sw_network)
PARSER(started, sw_started)
PARSER(source, sw_source)
PARSER(enforcement, sw_enforcement)

static int read_name(const load *l, const char *key, const json_t *v, name_parser parse, int *out)
{
	if (!json_is_string(v) || parse(json_string_value(v), json_string_length(v), out) != 0)
		return bad(l, key, "not one of its names", "docs/corpus.md lists them");
	return 0;
}

static int read_enum_verdict(load *l, const char *key, const json_t *v)
{
	int n = 0, rc = read_name(l, key, v, parse_verdict, &n);
	l->c->verdict = (sw_verdict)n;
	return rc;
}

static int read_stages(load *l, const char *key, const json_t *v)
{
	size_t count = json_is_array(v) ? json_array_size(v) : 1;
	for (size_t i = 0; i < count; i++) {
		int n = 0, rc = read_name(l, key, json_is_array(v) ? json_array_get(v, i) : v,
		                          parse_stage, &n);
		if (rc)
			return rc;
		l->c->stages |= 1u << n;
	}
	return 0;
}

static int read_causes(load *l, const char *key, const json_t *v)
{
	size_t count = json_is_array(v) ? json_array_size(v) : 1;
	if (count > SW_CASE_LIST_MAX)
		return bad(l, key, "more than 16 causes", "name the ones that would be right");
	for (size_t i = 0; i < count; i++) {
		const json_t *one = json_is_array(v) ? json_array_get(v, i) : v;
		if (!json_is_string(one))
			return bad(l, key, "not a slug",
			           "a slug of signatures/causes, or a list of them");
		l->c->causes[l->c->n_causes++] = json_string_value(one);
	}
	return 0;
}

static sw_str text_of(const json_t *v)
{
	return (sw_str){json_string_value(v), json_string_length(v)};
}

static int read_line(load *l, const char *key, const json_t *v)
{
	if (!json_is_string(v) && !json_is_null(v))
		return bad(l, key, "not text", "quote it; null: no line may be reported");
	l->c->has_line = true;
	l->c->line = json_is_null(v) ? (sw_str){NULL, 0} : text_of(v);
	return 0;
}

static int read_line_b64(load *l, const char *key, const json_t *v)
{
	size_t n = 0;
	if (l->c->line_bytes || !json_is_string(v) ||
	    sw_base64_decode(json_string_value(v), json_string_length(v), &l->c->line_bytes, &n) !=
	        0)
		return bad(l, key, "not base64", "the line's bytes in base64");
	l->c->has_line = true;
	l->c->line = (sw_str){l->c->line_bytes, n};
	return 0;
}

static int read_text(const load *l, const char *key, const json_t *v, sw_str *out)
{
	if (!json_is_string(v))
		return bad(l, key, "not text", "quote it");
	*out = text_of(v);
	return 0;
}

static int read_resource(load *l, const char *key, const json_t *v)
{
	return read_text(l, key, v, &l->c->resource);
}

static int read_within(load *l, const char *key, const json_t *v)
{
	return read_text(l, key, v, &l->c->resource_within);
}

static int read_operation(load *l, const char *key, const json_t *v)
{
	int n = 0, rc = read_name(l, key, v, parse_operation, &n);
	l->c->operation = (sw_operation)n;
	l->c->has_operation = true;
	return rc;
}

static int read_limit(load *l, const char *key, const json_t *v)
{
	int n = 0, rc = read_name(l, key, v, parse_limit, &n);
	l->c->limit = (sw_limit_kind)n;
	l->c->has_limit = true;
	return rc;
}

static int read_signature(load *l, const char *key, const json_t *v)
{
	l->c->signature = json_string_value(v);
	return l->c->signature ? 0 : bad(l, key, "not an id", "the id of a signature");
}

static int read_exit(load *l, const char *key, const json_t *v)
{
	json_int_t n = json_integer_value(v);
	if (!json_is_integer(v) || n < -2147483648LL || n > 4294967295LL)
		return bad(l, key, "not an exit", "an integer of -2^31 .. 2^32-1");
	l->c->exit.code = n;
	l->c->exit.has_code = true;
	return 0;
}

static int read_signal(load *l, const char *key, const json_t *v)
{
	json_int_t n = json_integer_value(v);
	if (!json_is_integer(v) || n < 1 || n > 64)
		return bad(l, key, "not a signal", "1 .. 64");
	l->c->exit.signal = (int)n;
	return 0;
}

static int read_timed_out(load *l, const char *key, const json_t *v)
{
	l->c->exit.timed_out = json_is_true(v);
	return json_is_boolean(v) ? 0 : bad(l, key, "not true or false", NULL);
}

static int read_started(load *l, const char *key, const json_t *v)
{
	int n = 0, rc = read_name(l, key, v, parse_started, &n);
	l->c->started = (sw_started)n;
	return rc;
}

static int read_source(load *l, const char *key, const json_t *v)
{
	int n = 0, rc = read_name(l, key, v, parse_source, &n);
	l->c->source = (sw_source)n;
	return rc;
}

static int read_mode(load *l, const char *key, const json_t *v)
{
	int n = 0, rc = read_name(l, key, v, parse_mode, &n);
	l->c->facts.mode = (sw_mode)n;
	return rc;
}

static int read_network(load *l, const char *key, const json_t *v)
{
	int n = 0, rc = read_name(l, key, v, parse_network, &n);
	l->c->facts.network = (sw_network)n;
	return rc;
}

static int read_enforcement(load *l, const char *key, const json_t *v)
{
	int n = 0, rc = read_name(l, key, v, parse_enforcement, &n);
	l->c->facts.enforcement = (sw_enforcement)n;
	return rc;
}

static int read_paths(const load *l, const char *key, const json_t *v, sw_str **out, size_t *n)
{
	size_t count = json_array_size(v);
	if (!json_is_array(v))
		return bad(l, key, "not a list of paths", "[/a, /b]");
	sw_str *list = *out ? NULL : calloc(count + 1, sizeof(*list));
	if (!list)
		return bad(l, key, "not a list of paths", "[/a, /b]");
	for (size_t i = 0; i < count; i++)
		list[i] = text_of(json_array_get(v, i));
	*out = list;
	*n = count;
	return 0;
}

static int read_roots(load *l, const char *key, const json_t *v)
{
	return read_paths(l, key, v, &l->c->roots, &l->c->facts.n_writable_roots);
}

static int read_accessible(load *l, const char *key, const json_t *v)
{
	return read_paths(l, key, v, &l->c->accessible, &l->c->facts.n_accessible);
}

static int read_cwd(load *l, const char *key, const json_t *v)
{
	return read_text(l, key, v, &l->c->facts.cwd);
}

static int read_truth(load *l, const char *key, const json_t *v)
{
	l->c->truth = json_string_value(v);
	return l->c->truth ? 0 : bad(l, key, "not a word", NULL);
}

static int read_state(load *l, const char *key, const json_t *v)
{
	if (!json_is_string(v) || strcmp(json_string_value(v), "todo") != 0)
		return bad(l, key, "not todo", "`state: todo`, or no such key");
	l->c->todo = true;
	return 0;
}

static int read_reason(load *l, const char *key, const json_t *v)
{
	l->c->reason = json_string_value(v);
	return l->c->reason ? 0 : bad(l, key, "not text", NULL);
}

static int read_also(load *l, const char *key, const json_t *v)
{
	l->c->also = v;
	return json_is_array(v) ? 0 : bad(l, key, "not a list of backends", "[unshare]");
}

static int read_free(load *l, const char *key, const json_t *v)
{
	(void)l;
	(void)key;
	(void)v;
	return 0; /* for people: kept, not judged */
}

typedef struct field {
	const char *key;
	int (*read)(load *l, const char *key, const json_t *v);
} field;

static const field case_fields[] = {{"exit", read_exit},
                                    {"signal", read_signal},
                                    {"timed_out", read_timed_out},
                                    {"started", read_started},
                                    {"source", read_source},
                                    {"mode", read_mode},
                                    {"network", read_network},
                                    {"enforcement", read_enforcement},
                                    {"writable_roots", read_roots},
                                    {"accessible", read_accessible},
                                    {"cwd", read_cwd},
                                    {"truth", read_truth},
                                    {"state", read_state},
                                    {"also", read_also},
                                    {"reason", read_reason},
                                    {"provenance", read_free},
                                    {"corrected", read_free},
                                    {"note", read_free},
                                    {"schema", read_free},
                                    {NULL, NULL}};

static const field expect_fields[] = {{"verdict", read_enum_verdict},
                                      {"stage", read_stages},
                                      {"cause", read_causes},
                                      {"line", read_line},
                                      {"line_b64", read_line_b64},
                                      {"resource", read_resource},
                                      {"resource_within", read_within},
                                      {"operation", read_operation},
                                      {"signature", read_signature},
                                      {"limit", read_limit},
                                      {NULL, NULL}};

static int read_fields(load *l, const json_t *object, const field *fields, const char *skip)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		const field *f = fields;
		if (skip && !strcmp(key, skip))
			continue;
		while (f->key && strcmp(f->key, key) != 0)
			f++;
		if (!f->key)
			return bad(l, key, "an unknown key",
			           "docs/corpus.md lists the keys of a case");
		int rc = f->read(l, key, value);
		if (rc)
			return rc;
	}
	return 0;
}

static int check_whole(const load *l)
{
	const sw_case *c = l->c;
	const json_t *provenance = json_object_get(c->doc, "provenance");
	const char *kind = json_string_value(json_object_get(provenance, "kind"));
	if (!c->exit.has_code && !c->exit.signal && !c->exit.timed_out)
		return bad(l, "exit", "no exit", "give exit, signal or timed_out");
	if (c->exit.has_code && c->exit.signal)
		return bad(l, "signal", "signal and exit together", "give the one that is known");
	if (!json_object_get(json_object_get(c->doc, "expect"), "verdict"))
		return bad(l, "expect", "no verdict",
		           "expect: {verdict: ok | runner_failed | sandbox_denied}");
	if (c->todo && (!c->reason || !c->reason[0]))
		return bad(l, "state", "todo without a reason",
		           "reason: why the rules cannot be right here yet");
	if (!kind || (strcmp(kind, "captured") != 0 && strcmp(kind, "documented") != 0 &&
	              strcmp(kind, "synthetic") != 0))
		return bad(l, "provenance", "no kind",
		           "provenance: {kind: captured | documented | synthetic, ...}");
	return 0;
}

static char *with_ending(const char *yaml, const char *ending)
{
	size_t stem = strlen(yaml) - strlen(".yaml");
	char *out = malloc(stem + strlen(ending) + 1);
	if (out) {
		memcpy(out, yaml, stem);
		strcpy(out + stem, ending);
	}
	return out;
}

/* corpus/BACKEND/NAME.yaml -> BACKEND, NAME */
static bool split_path(sw_case *c, const char *yaml)
{
	size_t n = strlen(yaml);
	const char *slash = strrchr(yaml, '/');
	if (n < 6 || strcmp(yaml + n - 5, ".yaml") != 0 || !slash || slash == yaml)
		return false;
	const char *folder = slash;
	while (folder > yaml && folder[-1] != '/')
		folder--;
	c->name = strndup(slash + 1, n - 5 - (size_t)(slash + 1 - yaml));
	c->backend = strndup(folder, (size_t)(slash - folder));
	c->path = strdup(yaml);
	return c->name && c->backend && c->path;
}

int sw_case_load(sw_case *out, const char *yaml, sw_error *err)
{
	sw_case c = {.verdict = SW_VERDICT_OK};
	load l = {&c, err};
	char *text = NULL;
	size_t n = 0;
	if (!split_path(&c, yaml)) {
		sw_case_free(&c);
		sw_error_set(err, SW_EINVAL, "%s is no case file", yaml);
		return sw_error_more(err, NULL, NULL, "cases are CORPUS/BACKEND/NAME.yaml");
	}
	int rc = sw_read_file(yaml, SW_YAML_JSON_MAX, &text, &n, err);
	if (!rc) {
		c.doc = sw_yaml_read(text, n, yaml, err);
		rc = c.doc ? 0 : SW_EPACK;
	}
	free(text);
	if (!rc && !json_is_object(c.doc))
		rc = bad(&l, "", "not a mapping", "docs/corpus.md shows a case");
	if (!rc)
		rc = read_fields(&l, c.doc, case_fields, "expect");
	if (!rc)
		rc = read_fields(&l, json_object_get(c.doc, "expect"), expect_fields, NULL);
	if (!rc)
		rc = check_whole(&l);
	if (!rc) {
		char *out_path = with_ending(yaml, ".out");
		rc = out_path
		         ? sw_read_file(out_path, SW_CASE_OUTPUT_MAX, &c.output, &c.output_len, err)
		         : SW_ENOMEM;
		free(out_path);
	}
	if (rc) {
		sw_case_free(&c);
		return rc;
	}
	c.facts.writable_roots = c.roots;
	c.facts.accessible = c.accessible;
	*out = c;
	return 0;
}

void sw_case_free(sw_case *c)
{
	free(c->name);
	free(c->backend);
	free(c->path);
	free(c->output);
	free(c->roots);
	free(c->accessible);
	free(c->line_bytes);
	json_decref(c->doc);
	memset(c, 0, sizeof(*c));
}

/* ---- comparing ---- */

unsigned sw_case_expects(const sw_case *c)
{
	return SW_MISS_VERDICT | (c->stages ? SW_MISS_STAGE : 0u) |
	       (c->n_causes ? SW_MISS_CAUSE : 0u) | (c->has_line ? SW_MISS_LINE : 0u) |
	       (c->resource.ptr || c->resource_within.ptr ? SW_MISS_RESOURCE : 0u) |
	       (c->has_operation ? SW_MISS_OPERATION : 0u) |
	       (c->signature ? SW_MISS_SIGNATURE : 0u) | (c->has_limit ? SW_MISS_LIMIT : 0u);
}

bool sw_resource_within(sw_str label, sw_str got)
{
	if (sw_str_eq(label, got))
		return true;
	if (!got.len || !label.len)
		return false;
	if (label.ptr[0] == '/') {
		size_t n = label.len;
		while (n > 1 && label.ptr[n - 1] == '/')
			n--;
		return got.len > n && memcmp(got.ptr, label.ptr, n) == 0 && got.ptr[n] == '/';
	}
	/* host:port beside host: either may lack the port, never the host */
	sw_str longer = label.len > got.len ? label : got,
	       shorter = label.len > got.len ? got : label;
	return memcmp(longer.ptr, shorter.ptr, shorter.len) == 0 &&
	       longer.ptr[shorter.len] == ':' && !memchr(shorter.ptr, ':', shorter.len);
}

static bool cause_right(const sw_case *c, const char *got)
{
	for (size_t i = 0; got && i < c->n_causes; i++)
		if (!strcmp(c->causes[i], got))
			return true;
	return false;
}

unsigned sw_case_compare(const sw_case *c, const sw_result *r)
{
	unsigned miss = 0, wanted = sw_case_expects(c);
	sw_str line = r->has_hit ? r->hit.line : (sw_str){NULL, 0};
	sw_str resource = r->has_hit ? r->hit.resource : (sw_str){NULL, 0};
	const char *sig = r->has_hit && r->hit.sig ? r->hit.sig->id : NULL;
	if (r->verdict != c->verdict)
		miss |= SW_MISS_VERDICT;
	if (!(c->stages & (1u << r->stage)))
		miss |= SW_MISS_STAGE;
	if (!cause_right(c, r->cause))
		miss |= SW_MISS_CAUSE;
	sw_str wanted_line = c->line;
	if (r->has_hit && r->hit.line_truncated && wanted_line.len > line.len)
		wanted_line.len = line.len; /* a report is cut at SW_LINE_REPORT_MAX */
	if (c->line.ptr ? !sw_str_eq(wanted_line, line) : line.len != 0)
		miss |= SW_MISS_LINE;
	if (c->resource.ptr ? !sw_str_eq(c->resource, resource)
	                    : !sw_resource_within(c->resource_within, resource))
		miss |= SW_MISS_RESOURCE;
	if (c->operation != r->operation)
		miss |= SW_MISS_OPERATION;
	if (c->signature && (!sig || strcmp(sig, c->signature) != 0))
		miss |= SW_MISS_SIGNATURE;
	if (c->limit != r->limit)
		miss |= SW_MISS_LIMIT;
	return miss & wanted;
}

/* ---- writing ---- */

char *sw_case_name(const char *text)
{
	char *out = malloc(101);
	size_t n = 0;
	for (const char *p = text; out && *p && n < 100; p++) {
		char c = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
		bool keep =
		    (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
		if (keep && !(n == 0 && c == '.'))
			out[n++] = c;
		else if (n && out[n - 1] != '-')
			out[n++] = '-';
	}
	if (out) {
		while (n && out[n - 1] == '-')
			n--;
		out[n] = '\0';
	}
	return out;
}

static int write_file(const char *path, const void *p, size_t n, bool replace, sw_error *err)
{
	char *temporary = NULL;
	if (!replace && access(path, F_OK) == 0) {
		sw_error_set(err, SW_ECONFLICT, "%.200s is there already", path);
		return sw_error_more(err, NULL, NULL, "choose another name, or --replace");
	}
	if (asprintf(&temporary, "%s.new", path) < 0)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int rc = fd < 0 ? SW_EIO : sw_write_all(fd, p, n);
	if (fd >= 0 && close(fd) != 0)
		rc = SW_EIO;
	if (!rc && rename(temporary, path) != 0)
		rc = SW_EIO;
	if (rc) {
		unlink(temporary);
		sw_error_set(err, SW_EIO, "cannot write %.200s: %s", path, strerror(errno));
	}
	free(temporary);
	return rc;
}

int sw_case_write(const char *dir, const char *backend, const char *name, const json_t *doc,
                  const void *output, size_t n, bool replace, sw_error *err)
{
	char *folder = NULL, *yaml = NULL, *out = NULL;
	sw_buf text;
	sw_buf_init(&text, SW_YAML_JSON_MAX);
	int rc = SW_ENOMEM;
	if (asprintf(&folder, "%s/%s", dir, backend) > 0 &&
	    asprintf(&yaml, "%s/%s.yaml", folder, name) > 0 &&
	    asprintf(&out, "%s/%s.out", folder, name) > 0)
		rc = sw_yaml_write(&text, doc);
	if (rc)
		sw_error_set(err, rc, "a case of %.100s is too large", name);
	if (!rc)
		rc = sw_mkdirs(folder, 0755, err);
	if (!rc)
		rc = write_file(out, output, n, replace, err);
	if (!rc)
		rc = write_file(yaml, text.ptr, text.len, replace, err);
	sw_buf_free(&text);
	free(folder);
	free(yaml);
	free(out);
	return rc;
}
