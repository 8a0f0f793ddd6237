/* yaml_node.h - one YAML document with marks, for the loaders of packs and causes. Not public. */
#ifndef SW_YAML_NODE_H
#define SW_YAML_NODE_H

#include <yaml.h>

#include "base.h"

typedef struct sw_yaml {
	const char *file;
	yaml_document_t doc;
	sw_error *err;
	bool failed; /* the first error stays */
} sw_yaml;

#define SW_YAML_DEPTH_MAX 64
/*
 * Refuses what is nested deeper than SW_YAML_DEPTH_MAX, and what is not YAML: to be asked before
 * libyaml makes a document, which takes it the square of the depth.
 */
int sw_yaml_shallow(const char *file, const char *text, size_t n, sw_error *err);
/* Refuses aliases, second documents, NUL, tags, duplicate keys. The caller closes on success. */
int sw_yaml_open(sw_yaml *y, const char *file, const char *text, size_t n, sw_error *err);
void sw_yaml_close(sw_yaml *y);
yaml_node_t *sw_yaml_root(sw_yaml *y);
yaml_node_t *sw_yaml_node(sw_yaml *y, int index);
/* Sets file:line:column of the node. Returns SW_EPACK. why and fix may be NULL. */
int sw_yaml_error(sw_yaml *y, const yaml_node_t *node, const char *why, const char *fix,
                  const char *what_fmt, ...) SW_PRINTF(5, 6);
/* The scalar's text (borrowed from the document), or NULL with the error set. */
const char *sw_yaml_text(sw_yaml *y, const yaml_node_t *node, const char *what);
bool sw_yaml_bool(sw_yaml *y, const yaml_node_t *node, const char *what);
/* Number of items of a sequence; -1 with the error set where it is none. */
long sw_yaml_items(sw_yaml *y, const yaml_node_t *node, const char *what);
yaml_node_t *sw_yaml_item(sw_yaml *y, const yaml_node_t *node, long i);

/* Calls fn for each pair of a mapping; stops at the first error. */
typedef int (*sw_yaml_pair_fn)(sw_yaml *y, void *payload, const char *key, yaml_node_t *key_node,
                               yaml_node_t *value);
int sw_yaml_pairs(sw_yaml *y, const yaml_node_t *node, const char *what, sw_yaml_pair_fn fn,
                  void *payload);

#endif
