/* loader.h - shared by the loaders of packs and causes. Not public. */
#ifndef SW_LOADER_H
#define SW_LOADER_H

#include "signatures.h"
#include "yaml_node.h"

struct sw_loaded {
	void **blocks; /* everything the definitions point to */
	size_t n_blocks, cap_blocks;
	sw_pack_file *files;
	size_t n_files, cap_files;
	sw_cause *causes;
	size_t n_causes, cap_causes;
};

/* Zeroed memory owned by l; NULL with err set. */
void *sw_loaded_alloc(sw_loaded *l, size_t n, sw_error *err);
char *sw_loaded_copy(sw_loaded *l, const char *p, size_t n, sw_error *err);
/* A text or a list of texts. */
int sw_load_texts(sw_loaded *l, sw_yaml *y, yaml_node_t *node, const char *what,
                  const char *const **out, uint16_t *n);
const char *sw_load_origin(sw_loaded *l, sw_yaml *y, const yaml_node_t *node);

int sw_load_pack(sw_loaded *l, sw_yaml *y);
int sw_load_causes(sw_loaded *l, sw_yaml *y);

#endif
