/* One signature of a pack file: the table of its keys, and what is refused. */
#include "core.h"
#include "loader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	bool has_line;
} sig_in;

const char *sw_load_copy(sw_loaded *l, sw_yaml *y, yaml_node_t *node, const char *what)
{
	const char *z = sw_yaml_text(y, node, what);
	return z ? sw_loaded_copy(l, z, strlen(z), y->err) : NULL;
}

/* ---- enums: the message lists what is understood ---- */

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

const sw_word_type sw_word_position = {parse_position, name_position};
const sw_word_type sw_word_confidence = {parse_confidence, name_confidence};

int sw_load_word(sw_yaml *y, yaml_node_t *node, const char *what, const sw_word_type *t, int *out)
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
			in->sample.resource = sw_load_copy(in->l, y, value, key);
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
	const char *z = sw_load_copy(in->l, y, v, "id");
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

#define TEXT_KEY(name, field)                                                         \
	static int key_##name(sw_yaml *y, sig_in *in, yaml_node_t *v)                 \
	{                                                                             \
		return (in->field = sw_load_copy(in->l, y, v, #name)) ? 0 : SW_EPACK; \
	}
TEXT_KEY(cause, def.cause)
TEXT_KEY(versions, info.versions)
TEXT_KEY(source, info.source)

int sw_load_pattern(sw_yaml *y, yaml_node_t *node, const char *pattern, unsigned flags)
{
	/* {runner} stands for names that only the pack knows; in the same bytes, a name. */
	char *z = strdup(pattern);
	for (char *p = z; p && (p = strstr(p, "{runner}"));)
		memcpy(p, "xrunnerx", 8);
	sw_regex_error e = {0};
	sw_regex *re = z ? sw_regex_new(z, flags, &e) : NULL;
	free(z);
	sw_regex_free(re);
	if (re)
		return 0;
	if (!e.why)
		return sw_error_set(y->err, SW_ENOMEM, "out of memory");
	return sw_yaml_error(y, node, NULL,
	                     "mend the pattern; docs/signatures.md says what it may hold",
	                     "the regex does not compile at byte %zu: %s", e.at, e.why);
}

static int key_regex(sw_yaml *y, sig_in *in, yaml_node_t *v)
{
	in->def.regex = sw_load_copy(in->l, y, v, "regex");
	return in->def.regex
	           ? sw_load_pattern(y, v, in->def.regex, sw_kind_regex_flags(in->def.kind))
	           : SW_EPACK;
}

#define ENUM_KEY(name, field, type)                                                           \
	static int key_##name(sw_yaml *y, sig_in *in, yaml_node_t *v)                         \
	{                                                                                     \
		int e = 0, rc = sw_load_word(y, v, #name,                                     \
		                             &(sw_word_type){parse_##name, name_##name}, &e); \
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
	const sw_word_type guarantee = {parse_guarantee, name_guarantee};
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
		int rc = sw_load_word(y, item, "guarantee", &guarantee, &g);
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
		int f = 0, rc = sw_load_word(y, sw_yaml_item(y, value, i), "fact",
		                             &(sw_word_type){parse_fact, name_fact}, &f);
		if (rc)
			return rc;
		in->bits |= 1u << f;
	}
	if (n == 0)
		return sw_yaml_error(y, value, NULL, "name a fact, or write no",
		                     "with names no fact");
	return n < 0 ? SW_EPACK : 0;
}

int sw_load_decides(sw_yaml *y, yaml_node_t *v, int *decides, uint32_t *with)
{
	if (v->type != YAML_MAPPING_NODE)
		return sw_load_word(y, v, "decides", &(sw_word_type){parse_decides, name_decides},
		                    decides);
	with_in in = {0};
	int rc = sw_yaml_pairs(y, v, "decides", with_pair, &in);
	*decides = SW_DECIDES_WITH;
	*with = in.bits;
	return rc;
}

static int key_decides(sw_yaml *y, sig_in *in, yaml_node_t *v)
{
	int e = 0, rc = sw_load_decides(y, v, &e, &in->def.with);
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

int sw_load_sig(sw_loaded *l, sw_yaml *y, yaml_node_t *node, sw_kind kind, sw_sig_def *def,
                sw_sig_info *info)
{
	bool decides = kind == SW_KIND_FATAL || kind == SW_KIND_DENIAL;
	sig_in in = {.l = l, .node = node};
	in.def.kind = kind;
	in.def.id = def->id; /* what a notice is called where it has no id */
	in.def.position = -1;
	in.def.stage = kind == SW_KIND_FATAL ? SW_STAGE_SETUP : SW_STAGE_NONE;
	in.def.confidence = decides ? SW_CONFIDENCE_CERTAIN : SW_CONFIDENCE_NONE;
	int rc = sw_yaml_pairs(y, node, "a signature", sig_pair, &in);
	in.def.origin = rc ? NULL : sw_load_origin(l, y, node);
	if (!rc && !in.def.origin)
		rc = SW_ENOMEM;
	if (!rc)
		rc = check_sig(y, &in);
	*def = in.def;
	*info = in.info;
	return rc;
}
