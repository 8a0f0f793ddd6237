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

/* A text, copied. */
const char *sw_load_copy(sw_loaded *l, sw_yaml *y, yaml_node_t *node, const char *what);

/* One of a list of names; the error lists them. */
typedef struct sw_word_type {
	int (*parse)(const char *s, size_t n, int *out);
	const char *(*name)(int v);
} sw_word_type;
extern const sw_word_type sw_word_position, sw_word_confidence;
/* Refuses a pattern that cannot be matched; flags: SW_REGEX_... */
int sw_load_pattern(sw_yaml *y, yaml_node_t *node, const char *pattern, unsigned flags);
int sw_load_word(sw_yaml *y, yaml_node_t *node, const char *what, const sw_word_type *t, int *out);
int sw_load_decides(sw_yaml *y, yaml_node_t *v, int *decides, uint32_t *with);

/* def->id is the id of a signature that names none. */
int sw_load_sig(sw_loaded *l, sw_yaml *y, yaml_node_t *node, sw_kind kind, sw_sig_def *def,
                sw_sig_info *info);
int sw_load_pack(sw_loaded *l, sw_yaml *y);
int sw_load_causes(sw_loaded *l, sw_yaml *y);

#endif
