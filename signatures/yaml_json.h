/*
 * yaml_json.h - YAML documents of plain data as JSON values, both ways; for case files.
 *
 * Reading goes through libyaml's document API. Refused: aliases, anchors that are used, second
 * documents, duplicate keys, keys that are no strings, tags, nesting deeper than 16. Plain null, ~,
 * true, false and integers get their types, hex too; every other scalar is a string.
 * Ownership: results belong to the caller. No globals. Errors: SW_EPACK with file:line:column.
 */
#ifndef SW_YAML_JSON_H
#define SW_YAML_JSON_H

#include "base.h"

#define SW_YAML_JSON_MAX (1u << 20) /* bytes of one document */

json_t *sw_yaml_read(const char *text, size_t n, const char *file, sw_error *err);
/* Block style, keys in their order; strings are quoted where a reader could mistake them. */
int sw_yaml_write(sw_buf *out, const json_t *value);

#endif
