/* One pack file: the schema tables and the definitions made from them. */
#include "loader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIGS_MAX 2000
#define LITERAL_MIN 4
#define LITERAL_MAX 512
#define KIND(k) (1u << SW_KIND_##k)
#define ALL_KINDS ((1u << SW_KIND_COUNT) - 1)

/* A signature being read. */
typedef struct sig_in {
	sw_loaded *l;
	sw_sig_def def;
	sw_sig_info info;
	yaml_node_t *node;
	unsigned seen; /* bits of sig_keys */
	bool has_line;
} sig_in;

typedef struct pack_in {
	sw_loaded *l;
	sw_pack_def def;
	sw_sig_def *sigs;
	sw_sig_info *infos;
	size_t n_sigs, cap_sigs;
	unsigned seen;
	unsigned n_informational;
	yaml_node_t *sections[SW_KIND_COUNT];
} pack_in;

static const char *copy_text(sw_loaded *l, sw_yaml *y, yaml_node_t *node, const char *what)
{
	const char *z = sw_yaml_text(y, node, what);
	return z ? sw_loaded_copy(l, z, strlen(z), y->err) : NULL;
}

/* ---- enums: the message lists what is understood ---- */

typedef int (*parse_fn)(const char *s, size_t n, int *out);
#define ENUM_PARSER(stem, type)                                    \
	static int parse_##stem(const char *s, size_t n, int *out) \
	{                                                          \
		type v;                                            \
		int rc = sw_##stem##_parse(s, n, &v);              \
		if (!rc)                                           \
			*out = (int)v;                             \
		return rc;                                         \
	}                                                          \
	static const char *name_##stem(int v)                      \
	{                                                          \
		return sw_##stem##_name((type)v);                  \
	}
ENUM_PARSER(stage, sw_stage)
ENUM_PARSER(operation, sw_operation)
ENUM_PARSER(confidence, sw_confidence)
ENUM_PARSER(scope, sw_scope)
ENUM_PARSER(position, sw_position)
ENUM_PARSER(limit, sw_limit_kind)
ENUM_PARSER(certainty, sw_certainty)
ENUM_PARSER(decides, sw_decides)
ENUM_PARSER(fact, sw_fact)
ENUM_PARSER(guarantee, sw_guarantee)

typedef struct enum_type {
	parse_fn parse;
	const char *(*name)(int v);
} enum_type;

static int read_enum(sw_yaml *y, yaml_node_t *node, const char *what, const enum_type *t, int *out)
{
	const char *z = sw_yaml_text(y, node, what);
	if (!z)
		return SW_EPACK;
	if (t->parse(z, strlen(z), out) == 0)
		return 0;
	char fix[256] = "one of";
	for (int v = 0; t->name(v); v++) {
		size_t n = strlen(fix);
		snprintf(fix + n, sizeof(fix) - n, "%s %s", v ? "," : "", t->name(v));
	}
	return sw_yaml_error(y, node, NULL, fix, "unknown %s \"%.40s\"", what, z);
}

/* ---- exits ---- */

static const struct {
	const char *name;
	int number;
} signals[] = {{"SIGHUP", 1},   {"SIGINT", 2},   {"SIGQUIT", 3},  {"SIGILL", 4},
               {"SIGTRAP", 5},  {"SIGABRT", 6},  {"SIGBUS", 7},   {"SIGFPE", 8},
               {"SIGKILL", 9},  {"SIGSEGV", 11}, {"SIGPIPE", 13}, {"SIGALRM", 14},
               {"SIGTERM", 15}, {"SIGXCPU", 24}, {"SIGXFSZ", 25}, {"SIGSYS", 31}};

static int read_exit(sw_yaml *y, yaml_node_t *node, int64_t *out)
{
	const char *z = sw_yaml_text(y, node, "an exit");
	if (!z)
		return SW_EPACK;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (strcmp(signals[i].name, z) == 0) {
			*out = 128 + signals[i].number;
			return 0;
		}
	}
	char *end;
	errno = 0;
	long long v = strtoll(z, &end, 0);
	if (errno || *end || end == z || v < -2147483648LL || v > 4294967295LL)
		return sw_yaml_error(
		    y, node, NULL,
		    "an integer from -2147483648 to 4294967295, or a signal such as SIGSYS",
		    "\"%.40s\" is no exit", z);
	*out = v;
	return 0;
}

static int read_exits(sw_loaded *l, sw_yaml *y, yaml_node_t *node, const char *what,
                      const int64_t **out, uint16_t *n)
{
	long count = sw_yaml_items(y, node, what);
	if (count <= 0 || count > 64)
		return count < 0
		           ? SW_EPACK
		           : sw_yaml_error(y, node, NULL, NULL, "%s has %ld items", what, count);
	int64_t *list = sw_loaded_alloc(l, (size_t)count * sizeof(*list), y->err);
	if (!list)
		return SW_ENOMEM;
	for (long i = 0; i < count; i++) {
		int rc = read_exit(y, sw_yaml_item(y, node, i), &list[i]);
		if (rc)
			return rc;
	}
	*out = list;
	*n = (uint16_t)count;
	return 0;
}

/* ---- samples ---- */

typedef struct sample_in {
	sw_loaded *l;
	sw_sample sample;
} sample_in;

static int sample_pair(sw_yaml *y, void *payload, const char *key, yaml_node_t *key_node,
                       yaml_node_t *value)
{
	static const char *const kinds[] = {"path", "host", "syscall"};
	sample_in *in = payload;
	if (strcmp(key, "line") == 0) {
		/* Empty for an exit-only signature. */
		if (value->type != YAML_SCALAR_NODE)
			return sw_yaml_error(y, value, NULL, "write one quoted text",
			                     "line is no text");
		in->sample.line_len = value->data.scalar.length;
		in->sample.line = sw_loaded_copy(in->l, (const char *)value->data.scalar.value,
		                                 in->sample.line_len, y->err);
		return in->sample.line ? 0 : SW_ENOMEM;
	}
	if (strcmp(key, "exit") == 0) {
		in->sample.has_exit = true;
		return read_exit(y, value, &in->sample.exit);
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(key, kinds[i]) == 0) {
			in->sample.resource_kind = kinds[i];
			in->sample.resource = copy_text(in->l, y, value, key);
			return in->sample.resource ? 0 : SW_EPACK;
		}
	}
	return sw_yaml_error(y, key_node, NULL, "line, path, host, syscall or exit",
	                     "unknown key \"%.40s\" of a sample", key);
}

static int read_samples(sw_loaded *l, sw_yaml *y, yaml_node_t *node, const char *what,
                        const sw_sample **out, uint16_t *n)
{
	long count = sw_yaml_items(y, node, what);
	if (count <= 0 || count > 1000)
		return count < 0 ? SW_EPACK
		                 : sw_yaml_error(y, node, NULL, "at least one", "%s has %ld items",
		                                 what, count);
	sw_sample *list = sw_loaded_alloc(l, (size_t)count * sizeof(*list), y->err);
	if (!list)
		return SW_ENOMEM;
	for (long i = 0; i < count; i++) {
		yaml_node_t *item = sw_yaml_item(y, node, i);
		sample_in in = {.l = l};
		if (item->type == YAML_SCALAR_NODE) {
			/* An exit-only signature's sample is the exit with an empty line. */
			in.sample.line_len = item->data.scalar.length;
			in.sample.line = sw_loaded_copy(l, (const char *)item->data.scalar.value,
			                                in.sample.line_len, y->err);
			if (!in.sample.line)
				return SW_ENOMEM;
		} else {
			int rc = sw_yaml_pairs(y, item, "a sample", sample_pair, &in);
			if (rc)
				return rc;
			if (!in.sample.line)
				in.sample.line = "";
		}
		list[i] = in.sample;
	}
	*out = list;
	*n = (uint16_t)count;
	return 0;
}

/* ---- keys of a signature ---- */

typedef int (*sig_fn)(sw_yaml *y, sig_in *in, yaml_node_t *value);

static bool id_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

static int key_id(sw_yaml *y, sig_in *in, yaml_node_t *v)
{
	const char *z = copy_text(in->l, y, v, "id");
	if (!z)
		return SW_EPACK;
	for (const char *p = z; *p; p++)
		if (!id_char(*p))
			return sw_yaml_error(y, v, "lower case, digits, '-', '_' and '.'",
			                     "write backend.topic.slug", "the id \"%.60s\"", z);
	in->def.id = z;
	return 0;
}

static int key_literal(sw_yaml *y, sig_in *in, yaml_node_t *v)
{
	int rc = sw_load_texts(in->l, y, v, "literal", &in->def.literals, &in->def.n_literals);
	for (uint16_t i = 0; !rc && i < in->def.n_literals; i++) {
		size_t n = strlen(in->def.literals[i]);
		/* Vetoes are looked for on candidate lines only. */
		if ((n < LITERAL_MIN && in->def.kind != SW_KIND_VETO) || n > LITERAL_MAX)
			rc = sw_yaml_error(
			    y, v, "the fast scan looks for literals of 4 to 512 bytes",
			    "choose a longer, rarer part of the line",
			    "the literal \"%.40s\" has %zu bytes", in->def.literals[i], n);
		else if (strpbrk(in->def.literals[i], "\r\n\033"))
			rc = sw_yaml_error(y, v, "lines are matched one by one, without escapes",
			                   "leave it out", "a line end or an escape in a literal");
	}
	return rc;
}

static int key_line(sw_yaml *y, sig_in *in, yaml_node_t *v)
{
	in->has_line = true;
	in->def.full_line = true;
	return sw_load_texts(in->l, y, v, "line", &in->def.literals, &in->def.n_literals);
}

#define TEXT_KEY(name, field)                                                      \
	static int key_##name(sw_yaml *y, sig_in *in, yaml_node_t *v)              \
	{                                                                          \
		return (in->field = copy_text(in->l, y, v, #name)) ? 0 : SW_EPACK; \
	}
TEXT_KEY(regex, def.regex)
TEXT_KEY(cause, def.cause)
TEXT_KEY(versions, info.versions)
TEXT_KEY(source, info.source)

#define ENUM_KEY(name, field, type)                                                           \
	static int key_##name(sw_yaml *y, sig_in *in, yaml_node_t *v)                         \
	{                                                                                     \
		int e = 0,                                                                    \
		    rc = read_enum(y, v, #name, &(enum_type){parse_##name, name_##name}, &e); \
		in->field = (type)e;                                                          \
		return rc;                                                                    \
	}
ENUM_KEY(stage, def.stage, sw_stage)
ENUM_KEY(operation, def.operation, sw_operation)
ENUM_KEY(confidence, def.confidence, sw_confidence)
ENUM_KEY(scope, def.scope, sw_scope)
ENUM_KEY(position, def.position, int8_t)
ENUM_KEY(limit, def.limit, sw_limit_kind)
ENUM_KEY(certainty, def.certainty, sw_certainty)

static int key_generic(sw_yaml *y, sig_in *in, yaml_node_t *v)
{
	in->def.generic = sw_yaml_bool(y, v, "generic");
	return 0;
}

static int key_only_exit(sw_yaml *y, sig_in *in, yaml_node_t *v)
{
	return read_exits(in->l, y, v, "only_exit", &in->def.only_exit, &in->def.n_only_exit);
}

static int key_except_exit(sw_yaml *y, sig_in *in, yaml_node_t *v)
{
	return read_exits(in->l, y, v, "except_exit", &in->def.except_exit, &in->def.n_except_exit);
}

static int key_samples(sw_yaml *y, sig_in *in, yaml_node_t *v)
{
	return read_samples(in->l, y, v, "samples", &in->info.samples, &in->info.n_samples);
}

static int key_near_misses(sw_yaml *y, sig_in *in, yaml_node_t *v)
{
	return read_samples(in->l, y, v, "near_misses", &in->info.near_misses,
	                    &in->info.n_near_misses);
}

static int key_lowers(sw_yaml *y, sig_in *in, yaml_node_t *v)
{
	const enum_type guarantee = {parse_guarantee, name_guarantee};
	long n = v->type == YAML_SCALAR_NODE ? 1 : sw_yaml_items(y, v, "lowers");
	for (long i = 0; i < n; i++) {
		yaml_node_t *item = v->type == YAML_SCALAR_NODE ? v : sw_yaml_item(y, v, i);
		const char *z = sw_yaml_text(y, item, "lowers");
		int g = 0;
		if (!z)
			return SW_EPACK;
		if (strcmp(z, "all") == 0) {
			in->def.lowers = (1u << SW_GUARANTEE_COUNT) - 1;
			continue;
		}
		int rc = read_enum(y, item, "guarantee", &guarantee, &g);
		if (rc)
			return rc;
		in->def.lowers |= 1u << g;
	}
	return n < 0 ? SW_EPACK : 0;
}

typedef struct with_in {
	uint32_t bits;
} with_in;

static int with_pair(sw_yaml *y, void *payload, const char *key, yaml_node_t *key_node,
                     yaml_node_t *value)
{
	with_in *in = payload;
	if (strcmp(key, "with") != 0)
		return sw_yaml_error(y, key_node, NULL, "yes, no, network, or {with: [FACT, ...]}",
		                     "unknown key \"%.40s\"", key);
	long n = sw_yaml_items(y, value, "with");
	for (long i = 0; i < n; i++) {
		int f = 0, rc = read_enum(y, sw_yaml_item(y, value, i), "fact",
		                          &(enum_type){parse_fact, name_fact}, &f);
		if (rc)
			return rc;
		in->bits |= 1u << f;
	}
	if (n == 0)
		return sw_yaml_error(y, value, NULL, "name a fact, or write no",
		                     "with names no fact");
	return n < 0 ? SW_EPACK : 0;
}

static int read_decides(sw_yaml *y, yaml_node_t *v, int *decides, uint32_t *with)
{
	if (v->type != YAML_MAPPING_NODE)
		return read_enum(y, v, "decides", &(enum_type){parse_decides, name_decides},
		                 decides);
	with_in in = {0};
	int rc = sw_yaml_pairs(y, v, "decides", with_pair, &in);
	*decides = SW_DECIDES_WITH;
	*with = in.bits;
	return rc;
}

static int key_decides(sw_yaml *y, sig_in *in, yaml_node_t *v)
{
	int e = 0, rc = read_decides(y, v, &e, &in->def.with);
	in->def.decides = (sw_decides)e;
	return rc;
}

static const struct {
	const char *name;
	unsigned kinds;
	sig_fn fn;
} sig_keys[] = {
    {"id", ALL_KINDS, key_id},
    {"literal", ALL_KINDS & ~KIND(INFORMATIONAL), key_literal},
    {"line", KIND(INFORMATIONAL), key_line},
    {"regex", ALL_KINDS, key_regex},
    {"cause", KIND(FATAL) | KIND(DENIAL) | KIND(LIMIT), key_cause},
    {"stage", KIND(FATAL), key_stage},
    {"generic", KIND(FATAL), key_generic},
    {"position", KIND(FATAL), key_position},
    {"only_exit", KIND(FATAL) | KIND(DENIAL) | KIND(LIMIT), key_only_exit},
    {"except_exit", KIND(FATAL) | KIND(DENIAL) | KIND(LIMIT), key_except_exit},
    {"operation", KIND(DENIAL), key_operation},
    {"confidence", KIND(FATAL) | KIND(DENIAL), key_confidence},
    {"decides", KIND(DENIAL), key_decides},
    {"scope", KIND(DENIAL), key_scope},
    {"limit", KIND(LIMIT), key_limit},
    {"certainty", KIND(LIMIT), key_certainty},
    {"lowers", KIND(DOWNGRADE), key_lowers},
    {"versions", ALL_KINDS, key_versions},
    {"source", ALL_KINDS, key_source},
    {"samples", ALL_KINDS, key_samples},
    {"near_misses", ALL_KINDS, key_near_misses},
};

static int sig_pair(sw_yaml *y, void *payload, const char *key, yaml_node_t *key_node,
                    yaml_node_t *value)
{
	sig_in *in = payload;
	for (size_t i = 0; i < sizeof(sig_keys) / sizeof(sig_keys[0]); i++) {
		if (strcmp(sig_keys[i].name, key) != 0)
			continue;
		if (!(sig_keys[i].kinds & 1u << in->def.kind))
			return sw_yaml_error(
			    y, key_node, NULL, "docs/signatures.md lists the keys of each kind",
			    "the key \"%s\" does not belong to a signature of kind %s", key,
			    sw_kind_name(in->def.kind));
		return sig_keys[i].fn(y, in, value);
	}
	return sw_yaml_error(y, key_node, NULL, "docs/signatures.md lists the keys",
	                     "unknown key \"%.60s\"", key);
}

static int check_sig(sw_yaml *y, sig_in *in)
{
	const sw_sig_def *d = &in->def;
	bool needs_cause = d->kind == SW_KIND_FATAL;
	bool may_exit_only =
	    d->kind == SW_KIND_FATAL || d->kind == SW_KIND_DENIAL || d->kind == SW_KIND_LIMIT;
	if (!d->id)
		return sw_yaml_error(y, in->node, NULL, "give it an id: backend.topic.slug",
		                     "a signature without id");
	if (needs_cause && !d->cause)
		return sw_yaml_error(y, in->node, NULL, "name a slug of signatures/causes/",
		                     "%s has no cause", d->id);
	if (!d->literals && d->regex && d->kind != SW_KIND_INFORMATIONAL)
		return sw_yaml_error(y, in->node, "the fast scan looks for the literal",
		                     "name a text that every such line holds",
		                     "%s has a regex without literal", d->id);
	if (!d->literals && !d->regex && !(may_exit_only && d->only_exit))
		return sw_yaml_error(y, in->node, NULL,
		                     "give a literal, or only_exit for an exit-only one",
		                     "%s has nothing to match", d->id);
	if (d->scope == SW_SCOPE_ANY && (d->only_exit || d->except_exit))
		return sw_yaml_error(y, in->node,
		                     "it must be known while scanning whether the line is a denial",
		                     "remove the gate, or write scope: command",
		                     "%s has scope any and an exit gate", d->id);
	if (d->kind == SW_KIND_LIMIT &&
	    (d->limit == SW_LIMIT_NONE || d->certainty == SW_CERTAINTY_NONE))
		return sw_yaml_error(y, in->node, NULL, "say limit and certainty",
		                     "%s says not which limit, or how sure", d->id);
	if (d->kind == SW_KIND_DOWNGRADE && !d->lowers)
		return sw_yaml_error(y, in->node, NULL, "list the guarantees that are lost",
		                     "%s lowers nothing", d->id);
	return 0;
}

static int add_sig(pack_in *p, sw_yaml *y, sig_in *in)
{
	for (size_t i = 0; i < p->n_sigs; i++)
		if (strcmp(p->sigs[i].id, in->def.id) == 0)
			return sw_yaml_error(y, in->node, "an id names one signature for ever",
			                     "choose another id", "the id %s stands twice",
			                     in->def.id);
	p->sigs[p->n_sigs] = in->def;
	p->infos[p->n_sigs++] = in->info;
	return 0;
}

static int read_section(pack_in *p, sw_yaml *y, yaml_node_t *node, sw_kind kind)
{
	long n = sw_yaml_items(y, node, sw_kind_name(kind));
	if (n < 0)
		return SW_EPACK;
	for (long i = 0; i < n; i++) {
		sig_in in = {.l = p->l, .node = sw_yaml_item(y, node, i)};
		in.def.kind = kind;
		in.def.position = -1;
		in.def.stage = kind == SW_KIND_FATAL ? SW_STAGE_SETUP : SW_STAGE_NONE;
		in.def.confidence = kind == SW_KIND_FATAL || kind == SW_KIND_DENIAL
		                        ? SW_CONFIDENCE_CERTAIN
		                        : SW_CONFIDENCE_NONE;
		int rc = sw_yaml_pairs(y, in.node, "a signature", sig_pair, &in);
		if (!rc && kind == SW_KIND_INFORMATIONAL && !in.def.id) {
			char id[160];
			int len = snprintf(id, sizeof(id), "%s.info.%u", p->def.backend,
			                   ++p->n_informational);
			in.def.id = sw_loaded_copy(p->l, id, (size_t)len, y->err);
		}
		in.def.origin = sw_load_origin(p->l, y, in.node);
		if (!rc)
			rc = check_sig(y, &in);
		if (!rc && (!in.def.origin || !in.def.id))
			rc = SW_ENOMEM;
		if (!rc)
			rc = add_sig(p, y, &in);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- keys of a pack ---- */

static int runner_pair(sw_yaml *y, void *payload, const char *key, yaml_node_t *key_node,
                       yaml_node_t *value)
{
	pack_in *p = payload;
	if (strcmp(key, "names") == 0)
		return sw_load_texts(p->l, y, value, "names", &p->def.names, &p->def.n_names);
	if (strcmp(key, "prefixes") == 0)
		return sw_load_texts(p->l, y, value, "prefixes", &p->def.prefixes,
		                     &p->def.n_prefixes);
	if (strcmp(key, "prefix_regexes") == 0)
		return sw_load_texts(p->l, y, value, "prefix_regexes", &p->def.prefix_regexes,
		                     &p->def.n_prefix_regexes);
	if (strcmp(key, "priority_prefix") == 0) {
		p->def.priority_prefix = sw_yaml_bool(y, value, key);
		return 0;
	}
	return sw_yaml_error(y, key_node, NULL, "names, prefixes, prefix_regexes, priority_prefix",
	                     "unknown key \"%.40s\" of runner", key);
}

typedef struct adjust_in {
	sw_loaded *l;
	sw_adjust_def def;
} adjust_in;

static int adjust_pair(sw_yaml *y, void *payload, const char *key, yaml_node_t *key_node,
                       yaml_node_t *value)
{
	adjust_in *a = payload;
	int e = 0, rc = 0;
	if (strcmp(key, "id") == 0) {
		a->def.id = copy_text(a->l, y, value, "id");
		return a->def.id ? 0 : SW_EPACK;
	}
	if (strcmp(key, "decides") == 0) {
		rc = read_decides(y, value, &e, &a->def.with);
		a->def.decides = (int8_t)e;
		return rc;
	}
	if (strcmp(key, "confidence") == 0) {
		rc = read_enum(y, value, "confidence",
		               &(enum_type){parse_confidence, name_confidence}, &e);
		a->def.confidence = (int8_t)e;
		return rc;
	}
	if (strcmp(key, "disable") == 0) {
		a->def.disable = sw_yaml_bool(y, value, key);
		return 0;
	}
	return sw_yaml_error(y, key_node, NULL, "id, decides, confidence, disable",
	                     "unknown key \"%.40s\" of adjust", key);
}

static int read_adjusts(pack_in *p, sw_yaml *y, yaml_node_t *node)
{
	long n = sw_yaml_items(y, node, "adjust");
	if (n < 0 || n > 1000)
		return n < 0 ? SW_EPACK
		             : sw_yaml_error(y, node, NULL, NULL, "adjust has %ld items", n);
	sw_adjust_def *list = sw_loaded_alloc(p->l, (size_t)n * sizeof(*list), y->err);
	if (!list)
		return SW_ENOMEM;
	for (long i = 0; i < n; i++) {
		adjust_in a = {.l = p->l, .def = {.decides = -1, .confidence = -1}};
		int rc =
		    sw_yaml_pairs(y, sw_yaml_item(y, node, i), "an adjustment", adjust_pair, &a);
		if (!rc && !a.def.id)
			rc = sw_yaml_error(y, sw_yaml_item(y, node, i), NULL, "name a signature",
			                   "an adjustment without id");
		if (rc)
			return rc;
		list[i] = a.def;
	}
	p->def.adjusts = list;
	p->def.n_adjusts = (uint16_t)n;
	return 0;
}

static int word_key(sw_yaml *y, yaml_node_t *value, const char *key, const char *off,
                    const char *on, bool *out)
{
	const char *z = sw_yaml_text(y, value, key);
	if (!z)
		return SW_EPACK;
	*out = strcmp(z, on) == 0;
	if (*out || strcmp(z, off) == 0)
		return 0;
	return sw_yaml_error(y, value, NULL, NULL, "%s is \"%.40s\"; it can be %s or %s", key, z,
	                     off, on);
}

static int pack_pair(sw_yaml *y, void *payload, const char *key, yaml_node_t *key_node,
                     yaml_node_t *value)
{
	pack_in *p = payload;
	sw_kind kind;
	if (sw_kind_parse(key, strlen(key), &kind) == 0) {
		p->sections[kind] = value;
		return 0;
	}
	if (strcmp(key, "schema") == 0) {
		const char *z = sw_yaml_text(y, value, key);
		if (z && strcmp(z, "1") != 0)
			return sw_yaml_error(y, value, "this program reads schema 1",
			                     "use a newer program, or write schema: 1",
			                     "schema %.20s", z);
		p->seen |= 1;
		return z ? 0 : SW_EPACK;
	}
	if (strcmp(key, "backend") == 0)
		return (p->def.backend = copy_text(p->l, y, value, key)) ? 0 : SW_EPACK;
	if (strcmp(key, "title") == 0)
		return (p->def.title = copy_text(p->l, y, value, key)) ? 0 : SW_EPACK;
	if (strcmp(key, "runner") == 0)
		return sw_yaml_pairs(y, value, "runner", runner_pair, p);
	if (strcmp(key, "extends") == 0)
		return sw_load_texts(p->l, y, value, key, &p->def.extends, &p->def.n_extends);
	if (strcmp(key, "fatal_position") == 0) {
		int e = 0,
		    rc = read_enum(y, value, key, &(enum_type){parse_position, name_position}, &e);
		p->def.fatal_position = (sw_position)e;
		return rc;
	}
	if (strcmp(key, "exit_codes") == 0)
		return word_key(y, value, key, "posix", "windows", &p->def.windows);
	if (strcmp(key, "encoding") == 0)
		return word_key(y, value, key, "bytes", "utf-16le", &p->def.utf16le);
	if (strcmp(key, "unconfined") == 0) {
		p->def.unconfined = sw_yaml_bool(y, value, key);
		return 0;
	}
	if (strcmp(key, "adjust") == 0)
		return read_adjusts(p, y, value);
	return sw_yaml_error(y, key_node, NULL, "docs/signatures.md lists the keys",
	                     "unknown key \"%.60s\"", key);
}

static int keep(sw_loaded *l, const pack_in *p, sw_error *err)
{
	if (l->n_files == l->cap_files) {
		size_t cap = l->cap_files ? l->cap_files * 2 : 16;
		sw_pack_file *files = realloc(l->files, cap * sizeof(*files));
		if (!files)
			return sw_error_set(err, SW_ENOMEM, "out of memory");
		l->files = files;
		l->cap_files = cap;
	}
	sw_pack_def *def = sw_loaded_alloc(l, sizeof(*def), err);
	if (!def)
		return SW_ENOMEM;
	*def = p->def;
	def->sigs = p->sigs;
	def->n_sigs = (uint16_t)p->n_sigs;
	l->files[l->n_files++] = (sw_pack_file){def, p->infos};
	return 0;
}

int sw_load_pack(sw_loaded *l, sw_yaml *y)
{
	pack_in p = {.l = l};
	yaml_node_t *root = sw_yaml_root(y);
	int rc = sw_yaml_pairs(y, root, "a pack", pack_pair, &p);
	if (rc)
		return rc;
	if (!(p.seen & 1))
		return sw_yaml_error(y, root, NULL, "begin with `schema: 1`", "no schema");
	if (!p.def.backend)
		return sw_yaml_error(y, root, NULL, "write `backend: NAME`", "no backend");
	for (int k = 0; k < SW_KIND_COUNT; k++) {
		long n =
		    p.sections[k] ? sw_yaml_items(y, p.sections[k], sw_kind_name((sw_kind)k)) : 0;
		if (n < 0)
			return SW_EPACK;
		p.cap_sigs += (size_t)n;
	}
	if (p.cap_sigs > SIGS_MAX)
		return sw_yaml_error(y, root, NULL, "split the file", "more than %d signatures",
		                     SIGS_MAX);
	p.sigs = sw_loaded_alloc(l, p.cap_sigs * sizeof(*p.sigs), y->err);
	p.infos = sw_loaded_alloc(l, p.cap_sigs * sizeof(*p.infos), y->err);
	p.def.origin = sw_loaded_copy(l, y->file, strlen(y->file), y->err);
	if (!p.sigs || !p.infos || !p.def.origin)
		return SW_ENOMEM;
	for (int k = 0; k < SW_KIND_COUNT && !rc; k++)
		if (p.sections[k])
			rc = read_section(&p, y, p.sections[k], (sw_kind)k);
	return rc ? rc : keep(l, &p, y->err);
}
