/*
 * levels_gen.c - build-time tool: signatures/levels.yaml -> C tables, so that nothing
 * is parsed at start. Usage: levels_gen levels.yaml levels_builtin.c
 *
 * Strict like the pack loader: unknown keys, guarantees that do not exist, ids and
 * aliases used twice, an alias without a level are refused with file:line:column.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "levels.h"

#define LEVELS_MAX 128
#define ALIASES_MAX 8
#define NAMES_MAX 512

typedef struct {
	const char *id, *title, *family, *note, *downgrades;
	const char *aliases[ALIASES_MAX];
	size_t n_aliases;
	uint32_t guarantees;
	bool has_guarantees;
} level;

typedef struct {
	const char *file;
	yaml_document_t doc;
	level levels[LEVELS_MAX];
	size_t n;
	const char *names[NAMES_MAX];
	size_t n_names;
} gen;

static void refuse(const gen *g, const yaml_node_t *at, const char *what, const char *which)
{
	fprintf(stderr, "%s:%zu:%zu: %s%s%s\n", g->file, at ? at->start_mark.line + 1 : 0,
	        at ? at->start_mark.column + 1 : 0, what, which ? ": " : "", which ? which : "");
	exit(1);
}

static yaml_node_t *node(gen *g, int index)
{
	return yaml_document_get_node(&g->doc, index);
}

static const char *text(gen *g, yaml_node_t *n)
{
	if (n->type != YAML_SCALAR_NODE)
		refuse(g, n, "a text is wanted here", NULL);
	const char *z = (const char *)n->data.scalar.value;
	if (strlen(z) != n->data.scalar.length)
		refuse(g, n, "NUL is not allowed", NULL);
	return z;
}

/* Names compare as sw_level_find() does: without case, '-' as '_'. */
static bool same(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		int x = *a == '-' ? '_' : *a >= 'A' && *a <= 'Z' ? *a + 32 : *a;
		int y = *b == '-' ? '_' : *b >= 'A' && *b <= 'Z' ? *b + 32 : *b;
		if (x != y)
			return false;
	}
	return *a == *b;
}

/* `own`: the id this alias belongs to; "job-object" may stand beside "job_object". */
static void name_add(gen *g, yaml_node_t *at, const char *name, const char *own)
{
	if (own && same(name, own))
		return;
	for (size_t i = 0; i < g->n_names; i++)
		if (same(g->names[i], name))
			refuse(g, at, "used twice", name);
	for (int b = 0; b < SW_GUARANTEE_COUNT; b++)
		if (same(name, sw_guarantee_name((sw_guarantee)b)))
			refuse(g, at, "is a guarantee's name", name);
	if (g->n_names == NAMES_MAX)
		refuse(g, at, "too many names", NULL);
	g->names[g->n_names++] = name;
}

static void read_aliases(gen *g, level *l, yaml_node_t *list)
{
	if (list->type != YAML_SEQUENCE_NODE)
		refuse(g, list, "aliases is a list", NULL);
	for (yaml_node_item_t *i = list->data.sequence.items.start;
	     i < list->data.sequence.items.top; i++) {
		if (l->n_aliases == ALIASES_MAX)
			refuse(g, list, "too many aliases", NULL);
		l->aliases[l->n_aliases++] = text(g, node(g, *i));
	}
}

static void read_guarantees(gen *g, level *l, yaml_node_t *list)
{
	if (list->type != YAML_SEQUENCE_NODE)
		refuse(g, list, "guarantees is a list", NULL);
	l->has_guarantees = true;
	for (yaml_node_item_t *i = list->data.sequence.items.start;
	     i < list->data.sequence.items.top; i++) {
		const char *z = text(g, node(g, *i));
		sw_guarantee bit;
		if (sw_guarantee_parse(z, strlen(z), &bit) != SW_OK)
			refuse(g, node(g, *i), "no such guarantee", z);
		if (l->guarantees & (1u << bit))
			refuse(g, node(g, *i), "given twice", z);
		l->guarantees |= 1u << bit;
	}
}

static void read_level(gen *g, yaml_node_t *map)
{
	if (map->type != YAML_MAPPING_NODE)
		refuse(g, map, "a level is a mapping", NULL);
	if (g->n == LEVELS_MAX)
		refuse(g, map, "too many levels", NULL);
	level *l = &g->levels[g->n++];
	yaml_node_t *aliases = NULL;
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
	     p++) {
		yaml_node_t *k = node(g, p->key), *v = node(g, p->value);
		const char *key = text(g, k);
		const struct {
			const char *key;
			const char **to;
		} texts[] = {{"id", &l->id},
		             {"title", &l->title},
		             {"family", &l->family},
		             {"note", &l->note},
		             {"downgrades", &l->downgrades}};
		const char **to = NULL;
		for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
			if (!strcmp(texts[i].key, key))
				to = texts[i].to;
		if (to && *to)
			refuse(g, k, "given twice", key);
		if (to)
			*to = text(g, v);
		else if (!strcmp(key, "aliases"))
			aliases = v;
		else if (!strcmp(key, "guarantees"))
			read_guarantees(g, l, v);
		else
			refuse(g, k, "unknown key", key);
	}
	if (!l->id || !l->title || !l->family || !l->note || !l->has_guarantees)
		refuse(g, map, "id, title, family, guarantees and note are required", l->id);
	name_add(g, map, l->id, NULL);
	if (aliases)
		read_aliases(g, l, aliases);
	for (size_t i = 0; i < l->n_aliases; i++)
		name_add(g, aliases, l->aliases[i], l->id);
}

static void put_string(FILE *to, const char *z)
{
	if (!z) {
		fputs("NULL", to);
		return;
	}
	fputc('"', to);
	for (; *z; z++) {
		unsigned char c = (unsigned char)*z;
		if (c == '"' || c == '\\')
			fprintf(to, "\\%c", c);
		else if (c < 0x20 || c > 0x7e)
			fprintf(to, "\\%03o", c);
		else
			fputc(c, to);
	}
	fputc('"', to);
}

static void write_tables(const gen *g, FILE *to)
{
	fputs("/* Made from signatures/levels.yaml by levels_gen. */\n#include \"levels.h\"\n\n",
	      to);
	for (size_t i = 0; i < g->n; i++) {
		const level *l = &g->levels[i];
		if (!l->n_aliases)
			continue;
		fprintf(to, "static const char *const aliases_%zu[] = {", i);
		for (size_t k = 0; k < l->n_aliases; k++) {
			fputs(k ? ", " : "", to);
			put_string(to, l->aliases[k]);
		}
		fputs("};\n", to);
	}
	fputs("\nstatic const sw_level_def levels[] = {\n", to);
	for (size_t i = 0; i < g->n; i++) {
		const level *l = &g->levels[i];
		const char *texts[] = {l->id, l->title, l->family};
		fputs("\t{", to);
		for (size_t k = 0; k < 3; k++) {
			put_string(to, texts[k]);
			fputs(", ", to);
		}
		if (l->n_aliases)
			fprintf(to, "aliases_%zu, %zu", i, l->n_aliases);
		else
			fputs("NULL, 0", to);
		fprintf(to, ", 0x%xu, ", l->guarantees);
		put_string(to, l->note);
		fputs(", ", to);
		put_string(to, l->downgrades);
		fputs("},\n", to);
	}
	fputs(
	    "};\n\nstatic const sw_level_set set = {levels, sizeof(levels) / sizeof(*levels)};\n\n"
	    "const sw_level_set *sw_builtin_levels(void)\n{\n\treturn &set;\n}\n",
	    to);
}

/* Every backend of names.h has a level of its name, or the audit trail cannot name it. */
static void check_backends(const gen *g)
{
#define X_NAME(s, n) n,
	static const char *const backends[] = {SW_BACKEND_LIST(X_NAME)};
#undef X_NAME
	for (size_t b = 0; b < sizeof(backends) / sizeof(*backends); b++) {
		bool there = false;
		for (size_t i = 0; i < g->n; i++)
			there |= same(g->levels[i].id, backends[b]);
		if (!there)
			refuse(g, NULL, "no level for the backend", backends[b]);
	}
}

int main(int argc, char **argv)
{
	static gen g;
	if (argc != 3) {
		fputs("usage: levels_gen levels.yaml levels_builtin.c\n", stderr);
		return 1;
	}
	g.file = argv[1];
	FILE *in = fopen(argv[1], "rb");
	if (!in) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
		return 2;
	}
	yaml_parser_t parser;
	if (!yaml_parser_initialize(&parser))
		return 2;
	yaml_parser_set_input_file(&parser, in);
	if (!yaml_parser_load(&parser, &g.doc)) {
		fprintf(stderr, "%s:%zu:%zu: %s\n", argv[1], parser.problem_mark.line + 1,
		        parser.problem_mark.column + 1, parser.problem);
		return 1;
	}
	yaml_node_t *root = yaml_document_get_root_node(&g.doc);
	if (!root || root->type != YAML_MAPPING_NODE)
		refuse(&g, root, "a mapping with schema and levels is wanted", NULL);
	bool schema = false;
	for (yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top;
	     p++) {
		const char *key = text(&g, node(&g, p->key));
		yaml_node_t *v = node(&g, p->value);
		if (!strcmp(key, "schema")) {
			if (strcmp(text(&g, v), "1") != 0)
				refuse(&g, v, "schema is 1", NULL);
			schema = true;
		} else if (!strcmp(key, "levels") && v->type == YAML_SEQUENCE_NODE) {
			for (yaml_node_item_t *i = v->data.sequence.items.start;
			     i < v->data.sequence.items.top; i++)
				read_level(&g, node(&g, *i));
		} else {
			refuse(&g, node(&g, p->key), "unknown key, or not a list", key);
		}
	}
	if (!schema || !g.n)
		refuse(&g, root, "schema and levels are required", NULL);
	check_backends(&g);

	FILE *out = fopen(argv[2], "wb");
	if (!out) {
		fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
		return 2;
	}
	write_tables(&g, out);
	yaml_document_delete(&g.doc);
	yaml_parser_delete(&parser);
	fclose(in);
	return fclose(out) ? 2 : 0;
}
