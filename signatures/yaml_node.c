/* YAML documents with marks: libyaml's document API and what we refuse of it. */
#include "yaml_node.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Comparing keys for duplicates is quadratic: hostile files must stay cheap. */
#define KEYS_MAX 200

static const char *const DEFAULT_TAGS[] = {YAML_STR_TAG, YAML_SEQ_TAG, YAML_MAP_TAG};

int sw_yaml_error(sw_yaml *y, const yaml_node_t *node, const char *why, const char *fix,
                  const char *what_fmt, ...)
{
	char what[384], where[256];
	if (y->failed)
		return SW_EPACK;
	y->failed = true;
	va_list ap;
	va_start(ap, what_fmt);
	vsnprintf(what, sizeof(what), what_fmt, ap);
	va_end(ap);
	if (node)
		snprintf(where, sizeof(where), "%s:%zu:%zu", y->file, node->start_mark.line + 1,
		         node->start_mark.column + 1);
	else
		snprintf(where, sizeof(where), "%s", y->file);
	sw_error_set(y->err, SW_EPACK, "%s", what);
	sw_error_more(y->err, where, why, fix);
	return SW_EPACK;
}

yaml_node_t *sw_yaml_node(sw_yaml *y, int index)
{
	return yaml_document_get_node(&y->doc, index);
}

yaml_node_t *sw_yaml_root(sw_yaml *y)
{
	return yaml_document_get_root_node(&y->doc);
}

/* Each node may be reached once: twice is an alias. */
static int reach(sw_yaml *y, unsigned char *seen, int index)
{
	yaml_node_t *node = sw_yaml_node(y, index);
	if (seen[index])
		return sw_yaml_error(y, node, "aliases are not used in packs",
		                     "write the value out", "an alias");
	seen[index] = 1;
	return 0;
}

static int check_tag(sw_yaml *y, yaml_node_t *node)
{
	const char *tag = (const char *)node->tag;
	for (size_t i = 0; i < sizeof(DEFAULT_TAGS) / sizeof(DEFAULT_TAGS[0]); i++)
		if (!tag || strcmp(tag, DEFAULT_TAGS[i]) == 0)
			return 0;
	return sw_yaml_error(y, node, "tags are not used in packs", "leave it out", "the tag %.60s",
	                     tag);
}

static int check_duplicate(sw_yaml *y, yaml_node_t *map, yaml_node_pair_t *pair)
{
	yaml_node_t *key = sw_yaml_node(y, pair->key);
	if (key->type != YAML_SCALAR_NODE)
		return sw_yaml_error(y, key, NULL, "keys are plain words", "a key that is no word");
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < pair; p++) {
		yaml_node_t *other = sw_yaml_node(y, p->key);
		if (other->data.scalar.length == key->data.scalar.length &&
		    memcmp(other->data.scalar.value, key->data.scalar.value,
		           key->data.scalar.length) == 0)
			return sw_yaml_error(y, key, NULL, "keep one of them",
			                     "the key \"%.60s\" stands twice",
			                     key->data.scalar.value);
	}
	return 0;
}

static int check_node(sw_yaml *y, unsigned char *seen, yaml_node_t *node)
{
	int rc = check_tag(y, node);
	if (rc)
		return rc;
	if (node->type == YAML_SCALAR_NODE &&
	    memchr(node->data.scalar.value, 0, node->data.scalar.length))
		return sw_yaml_error(y, node, "packs are text", "remove it", "a NUL character");
	if (node->type == YAML_SEQUENCE_NODE)
		for (yaml_node_item_t *i = node->data.sequence.items.start;
		     !rc && i < node->data.sequence.items.top; i++)
			rc = reach(y, seen, *i);
	if (node->type == YAML_MAPPING_NODE) {
		if (node->data.mapping.pairs.top - node->data.mapping.pairs.start > KEYS_MAX)
			return sw_yaml_error(y, node, NULL, NULL, "a mapping of more than %d keys",
			                     KEYS_MAX);
		for (yaml_node_pair_t *p = node->data.mapping.pairs.start;
		     !rc && p < node->data.mapping.pairs.top; p++) {
			rc = reach(y, seen, p->key);
			if (!rc)
				rc = reach(y, seen, p->value);
			if (!rc)
				rc = check_duplicate(y, node, p);
		}
	}
	return rc;
}

static int check_document(sw_yaml *y)
{
	size_t n = (size_t)(y->doc.nodes.top - y->doc.nodes.start);
	unsigned char *seen = calloc(n + 2, 1);
	if (!seen)
		return sw_error_set(y->err, SW_ENOMEM, "out of memory");
	int rc = 0;
	for (size_t i = 1; i <= n && !rc; i++)
		rc = check_node(y, seen, sw_yaml_node(y, (int)i));
	free(seen);
	return rc;
}

static int error_at(sw_error *err, const char *file, const yaml_mark_t *at, const char *fix)
{
	char where[256];
	snprintf(where, sizeof(where), "%.200s:%zu:%zu", file, at->line + 1, at->column + 1);
	sw_error_more(err, where, NULL, fix);
	return SW_EPACK;
}

static int parser_error(const char *file, sw_error *err, const yaml_parser_t *p)
{
	/* libyaml tells its reader's want of memory as a reader's error without a word */
	if (p->error == YAML_MEMORY_ERROR || !p->problem)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	sw_error_set(err, SW_EPACK, "not YAML: %s%s%s", p->problem ? p->problem : "unreadable",
	             p->context ? " " : "", p->context ? p->context : "");
	return error_at(err, file, &p->problem_mark,
	                "quote texts with '...' (a quote inside is doubled); indent with spaces");
}

static int walk_events(yaml_parser_t *parser, const char *file, sw_error *err)
{
	int depth = 0;
	for (;;) {
		yaml_event_t e;
		if (!yaml_parser_parse(parser, &e))
			return parser_error(file, err, parser);
		yaml_event_type_t type = e.type;
		yaml_mark_t at = e.start_mark;
		yaml_event_delete(&e);
		if (type == YAML_STREAM_END_EVENT)
			return 0;
		depth += type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT;
		depth -= type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT;
		if (depth <= SW_YAML_DEPTH_MAX)
			continue;
		sw_error_set(err, SW_EPACK, "nested deeper than %d", SW_YAML_DEPTH_MAX);
		return error_at(err, file, &at, "lists and mappings are a few levels deep");
	}
}

int sw_yaml_shallow(const char *file, const char *text, size_t n, sw_error *err)
{
	yaml_parser_t parser;
	if (!yaml_parser_initialize(&parser))
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
	int rc = walk_events(&parser, file, err);
	yaml_parser_delete(&parser);
	return rc;
}

int sw_yaml_open(sw_yaml *y, const char *file, const char *text, size_t n, sw_error *err)
{
	yaml_parser_t parser;
	memset(y, 0, sizeof(*y));
	y->file = file;
	y->err = err;
	if (memchr(text, 0, n))
		return sw_yaml_error(y, NULL, "packs are text", "remove it", "a NUL byte");
	int rc = sw_yaml_shallow(file, text, n, err);
	if (rc)
		return rc;
	if (!yaml_parser_initialize(&parser))
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
	if (!yaml_parser_load(&parser, &y->doc)) {
		rc = parser_error(y->file, y->err, &parser);
		yaml_parser_delete(&parser);
		return rc;
	}
	if (!sw_yaml_root(y)) {
		rc = sw_yaml_error(y, NULL, NULL, "begin with `schema: 1`", "an empty file");
	} else {
		yaml_document_t second;
		if (!yaml_parser_load(&parser, &second)) {
			rc = parser_error(y->file, y->err, &parser);
		} else {
			yaml_node_t *root = yaml_document_get_root_node(&second);
			if (root)
				rc = sw_yaml_error(y, root, "one pack is one file",
				                   "split the file", "a second document");
			yaml_document_delete(&second);
		}
	}
	if (!rc)
		rc = check_document(y);
	yaml_parser_delete(&parser);
	if (rc)
		yaml_document_delete(&y->doc);
	return rc;
}

void sw_yaml_close(sw_yaml *y)
{
	yaml_document_delete(&y->doc);
}

const char *sw_yaml_text(sw_yaml *y, const yaml_node_t *node, const char *what)
{
	if (node->type != YAML_SCALAR_NODE) {
		sw_yaml_error(y, node, NULL, "write one quoted text", "%s is no text", what);
		return NULL;
	}
	if (node->data.scalar.length == 0) {
		sw_yaml_error(y, node, NULL, "leave the key out, or fill it", "%s is empty", what);
		return NULL;
	}
	return (const char *)node->data.scalar.value;
}

bool sw_yaml_bool(sw_yaml *y, const yaml_node_t *node, const char *what)
{
	const char *z = sw_yaml_text(y, node, what);
	if (z && strcmp(z, "true") == 0)
		return true;
	if (z && strcmp(z, "false") != 0)
		sw_yaml_error(y, node, NULL, "write true or false", "%s is \"%.40s\"", what, z);
	return false;
}

long sw_yaml_items(sw_yaml *y, const yaml_node_t *node, const char *what)
{
	if (node->type != YAML_SEQUENCE_NODE) {
		sw_yaml_error(y, node, NULL, "write a list: [a, b] or lines that begin with -",
		              "%s is no list", what);
		return -1;
	}
	return (long)(node->data.sequence.items.top - node->data.sequence.items.start);
}

yaml_node_t *sw_yaml_item(sw_yaml *y, const yaml_node_t *node, long i)
{
	return sw_yaml_node(y, node->data.sequence.items.start[i]);
}

int sw_yaml_pairs(sw_yaml *y, const yaml_node_t *node, const char *what, sw_yaml_pair_fn fn,
                  void *payload)
{
	if (node->type != YAML_MAPPING_NODE)
		return sw_yaml_error(y, node, NULL, "write `key: value` lines", "%s is no mapping",
		                     what);
	int rc = 0;
	for (yaml_node_pair_t *p = node->data.mapping.pairs.start;
	     !rc && p < node->data.mapping.pairs.top; p++) {
		yaml_node_t *key = sw_yaml_node(y, p->key);
		rc = fn(y, payload, (const char *)key->data.scalar.value, key,
		        sw_yaml_node(y, p->value));
		if (!rc && y->failed)
			rc = SW_EPACK;
	}
	return rc;
}
