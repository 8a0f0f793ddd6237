/* One pack file: its keys, its sections, its adjustments. */
#include "core.h"
#include "loader.h"

#include <stdlib.h>
#include <string.h>

#define SIGS_MAX 2000
#define NAME_MIN 3 /* bytes; `common` puts one before it, and literals have four */

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

static int add_sig(pack_in *p, sw_yaml *y, yaml_node_t *node, const sw_sig_def *def,
                   const sw_sig_info *info)
{
	for (size_t i = 0; i < p->n_sigs; i++)
		if (strcmp(p->sigs[i].id, def->id) == 0)
			return sw_yaml_error(y, node, "an id names one signature for ever",
			                     "choose another id", "the id %s stands twice",
			                     def->id);
	p->sigs[p->n_sigs] = *def;
	p->infos[p->n_sigs++] = *info;
	return 0;
}

static int read_section(pack_in *p, sw_yaml *y, yaml_node_t *node, sw_kind kind)
{
	long n = sw_yaml_items(y, node, sw_kind_name(kind));
	for (long i = 0; i < n; i++) {
		yaml_node_t *item = sw_yaml_item(y, node, i);
		sw_sig_def def = {0};
		sw_sig_info info = {0};
		if (kind == SW_KIND_INFORMATIONAL) {
			char id[160];
			int len = snprintf(id, sizeof(id), "%.100s.info.%u", p->def.backend,
			                   ++p->n_informational);
			def.id = sw_loaded_copy(p->l, id, (size_t)len, y->err);
		}
		int rc = sw_load_sig(p->l, y, item, kind, &def, &info);
		if (!rc)
			rc = add_sig(p, y, item, &def, &info);
		if (rc)
			return rc;
	}
	return n < 0 ? SW_EPACK : 0;
}

/* ---- keys of a pack ---- */

static int runner_pair(sw_yaml *y, void *payload, const char *key, yaml_node_t *key_node,
                       yaml_node_t *value)
{
	pack_in *p = payload;
	int rc = 0;
	if (strcmp(key, "names") == 0) {
		rc = sw_load_texts(p->l, y, value, "names", &p->def.names, &p->def.n_names);
		for (uint16_t i = 0; !rc && i < p->def.n_names; i++)
			if (strlen(p->def.names[i]) < NAME_MIN)
				rc = sw_yaml_error(
				    y, value,
				    "with one byte before it, it is looked for in every line",
				    "leave it out",
				    "the runner's name \"%.20s\" has less than %d bytes",
				    p->def.names[i], NAME_MIN);
		return rc;
	}
	if (strcmp(key, "prefixes") == 0)
		return sw_load_texts(p->l, y, value, "prefixes", &p->def.prefixes,
		                     &p->def.n_prefixes);
	if (strcmp(key, "prefix_regexes") == 0) {
		rc = sw_load_texts(p->l, y, value, "prefix_regexes", &p->def.prefix_regexes,
		                   &p->def.n_prefix_regexes);
		for (uint16_t i = 0; !rc && i < p->def.n_prefix_regexes; i++)
			rc = sw_load_pattern(
			    y, value->type == YAML_SCALAR_NODE ? value : sw_yaml_item(y, value, i),
			    p->def.prefix_regexes[i], SW_REGEX_ANCHORED);
		return rc;
	}
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
		a->def.id = sw_load_copy(a->l, y, value, "id");
		return a->def.id ? 0 : SW_EPACK;
	}
	if (strcmp(key, "decides") == 0) {
		rc = sw_load_decides(y, value, &e, &a->def.with);
		a->def.decides = (int8_t)e;
		return rc;
	}
	if (strcmp(key, "confidence") == 0) {
		rc = sw_load_word(y, value, "confidence", &sw_word_confidence, &e);
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
		return (p->def.backend = sw_load_copy(p->l, y, value, key)) ? 0 : SW_EPACK;
	if (strcmp(key, "title") == 0)
		return (p->def.title = sw_load_copy(p->l, y, value, key)) ? 0 : SW_EPACK;
	if (strcmp(key, "runner") == 0)
		return sw_yaml_pairs(y, value, "runner", runner_pair, p);
	if (strcmp(key, "extends") == 0)
		return sw_load_texts(p->l, y, value, key, &p->def.extends, &p->def.n_extends);
	if (strcmp(key, "fatal_position") == 0) {
		int e = 0, rc = sw_load_word(y, value, key, &sw_word_position, &e);
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
