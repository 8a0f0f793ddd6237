/* Case files: YAML of plain data read and written as JSON values. */
#include "yaml_json.h"
#include "yaml_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define DEPTH_MAX 16

typedef struct reader {
	yaml_document_t doc;
	const char *file;
	sw_error *err;
	unsigned char *seen; /* one per node: an alias shows as a second visit */
	size_t n_seen;
} reader;

static void *refuse(reader *r, const yaml_mark_t *at, const char *what, const char *fix)
{
	char where[300];
	snprintf(where, sizeof(where), "%s:%zu:%zu", r->file, at->line + 1, at->column + 1);
	sw_error_set(r->err, SW_EPACK, "%s", what);
	sw_error_more(r->err, where, NULL, fix);
	return NULL;
}

static json_t *plain_scalar(const char *z, size_t n)
{
	static const struct {
		const char *text;
		int type; /* 0 null, 1 true, 2 false */
	} words[] = {{"null", 0}, {"~", 0}, {"", 0}, {"true", 1}, {"false", 2}};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i].text, z))
			return words[i].type == 0 ? json_null() : json_boolean(words[i].type == 1);
	bool digits = z[strspn(z, "-+0123456789")] == '\0';
	bool hex =
	    !strncmp(z, "0x", 2) && z[2] && z[2 + strspn(z + 2, "0123456789abcdefABCDEF")] == '\0';
	if ((digits || hex) && n < 20) {
		char *end;
		errno = 0;
		long long v = strtoll(z, &end, hex ? 16 : 10);
		if (errno == 0 && end != z && *end == '\0')
			return json_integer(v);
	}
	return json_stringn(z, n);
}

static json_t *convert(reader *r, int id, int depth);

static json_t *convert_map(reader *r, const yaml_node_t *node, int depth)
{
	json_t *out = json_object();
	for (const yaml_node_pair_t *p = node->data.mapping.pairs.start;
	     out && p < node->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = yaml_document_get_node(&r->doc, p->key);
		const char *name = (const char *)key->data.scalar.value;
		if (key->type != YAML_SCALAR_NODE || strlen(name) != key->data.scalar.length) {
			json_decref(out);
			return refuse(r, &key->start_mark, "a key that is no plain string",
			              "write KEY: VALUE");
		}
		if (json_object_get(out, name)) {
			json_decref(out);
			return refuse(r, &key->start_mark, "a key stands here twice",
			              "keep one of them");
		}
		json_t *value = convert(r, p->value, depth);
		if (!value || json_object_set_new(out, name, value) != 0) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

static json_t *convert_list(reader *r, const yaml_node_t *node, int depth)
{
	json_t *out = json_array();
	for (const yaml_node_item_t *p = node->data.sequence.items.start;
	     out && p < node->data.sequence.items.top; p++) {
		json_t *value = convert(r, *p, depth);
		if (!value || json_array_append_new(out, value) != 0) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

static json_t *convert(reader *r, int id, int depth)
{
	const yaml_node_t *node = yaml_document_get_node(&r->doc, id);
	if (depth > DEPTH_MAX)
		return refuse(r, &node->start_mark, "nested too deeply",
		              "case files have two levels");
	if (r->seen[id - 1]++)
		return refuse(r, &node->start_mark, "an alias", "write the value out");
	if (node->type == YAML_MAPPING_NODE)
		return convert_map(r, node, depth + 1);
	if (node->type == YAML_SEQUENCE_NODE)
		return convert_list(r, node, depth + 1);
	const char *z = (const char *)node->data.scalar.value;
	json_t *value = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE
	                    ? plain_scalar(z, node->data.scalar.length)
	                    : json_stringn(z, node->data.scalar.length);
	return value ? value
	             : refuse(r, &node->start_mark, "text that is no UTF-8",
	                      "bytes go into .out or line_b64");
}

json_t *sw_yaml_read(const char *text, size_t n, const char *file, sw_error *err)
{
	yaml_parser_t parser;
	reader r = {.file = file, .err = err};
	json_t *out = NULL;
	if (n > SW_YAML_JSON_MAX) {
		sw_error_set(err, SW_ETOOBIG, "%s: larger than %u bytes", file, SW_YAML_JSON_MAX);
		return NULL;
	}
	if (sw_yaml_shallow(file, text, n, err))
		return NULL;
	if (!yaml_parser_initialize(&parser)) {
		sw_error_set(err, SW_ENOMEM, "out of memory");
		return NULL;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
	if (!yaml_parser_load(&parser, &r.doc)) {
		refuse(&r, &parser.problem_mark, parser.problem ? parser.problem : "not YAML",
		       "see docs/corpus.md");
		yaml_parser_delete(&parser);
		return NULL;
	}
	if (!yaml_document_get_root_node(&r.doc)) {
		refuse(&r, &(yaml_mark_t){0, 0, 0}, "an empty file", "see docs/corpus.md");
	} else {
		r.n_seen = (size_t)(r.doc.nodes.top - r.doc.nodes.start);
		r.seen = calloc(r.n_seen + 1, 1);
		out = r.seen ? convert(&r, 1, 0) : NULL;
	}
	yaml_document_delete(&r.doc);
	if (out) {
		yaml_document_t second;
		bool more = yaml_parser_load(&parser, &second) == 0 ||
		            yaml_document_get_root_node(&second) != NULL;
		yaml_document_delete(&second);
		if (more) {
			json_decref(out);
			out = refuse(&r, &parser.mark, "more behind the first document",
			             "one case per file");
		}
	}
	free(r.seen);
	yaml_parser_delete(&parser);
	return out;
}

/* ---- writing ---- */

enum { SIMPLE_KEY_MAX = 1024 };

static bool is_plain(const char *z, size_t n)
{
	if (n == 0 || n > 200 || strlen(z) != n)
		return false;
	static const char inside[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+-";
	bool letter = (z[0] >= 'a' && z[0] <= 'z') || (z[0] >= 'A' && z[0] <= 'Z') || z[0] == '/';
	if (!letter || strspn(z, inside) != n)
		return false;
	/* Words that YAML 1.1 readers take for something else. */
	static const char *const words[] = {"null", "true", "false", "yes", "no",
	                                    "on",   "off",  "y",     "n"};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(words[i], z))
			return false;
	return true;
}

/* One UTF-8 character of valid text. */
static uint32_t next_char(const unsigned char *p, size_t *len)
{
	if (p[0] < 0x80) {
		*len = 1;
		return p[0];
	}
	*len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	uint32_t c = p[0] & (0x7f >> *len);
	for (size_t i = 1; i < *len; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

static void write_quoted(sw_buf *out, const char *z, size_t n)
{
	sw_buf_adds(out, "\"");
	for (size_t i = 0, len; i < n; i += len) {
		uint32_t c = next_char((const unsigned char *)z + i, &len);
		if (c == '"' || c == '\\')
			sw_buf_addf(out, "\\%c", (int)c);
		else if (c == '\n')
			sw_buf_adds(out, "\\n");
		else if (c == '\t')
			sw_buf_adds(out, "\\t");
		else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 ||
		         c == 0xfeff || (c >= 0xe000 && c <= 0xf8ff) || c == 0xfffe || c == 0xffff)
			sw_buf_addf(out, "\\u%04X", (unsigned)c);
		else
			sw_buf_add(out, z + i, len);
	}
	sw_buf_adds(out, "\"");
}

static void write_scalar(sw_buf *out, const json_t *v)
{
	if (json_is_string(v)) {
		const char *z = json_string_value(v);
		size_t n = json_string_length(v);
		if (is_plain(z, n))
			sw_buf_add(out, z, n);
		else
			write_quoted(out, z, n);
	} else if (json_is_integer(v)) {
		sw_buf_addf(out, "%lld", (long long)json_integer_value(v));
	} else {
		sw_buf_adds(out, json_is_null(v) ? "null" : json_is_true(v) ? "true" : "false");
	}
}

static void write_value(sw_buf *out, const json_t *v, int depth);

static bool scalars_only(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_is_object(json_array_get(list, i)) ||
		    json_is_array(json_array_get(list, i)))
			return false;
	return true;
}

static void write_map(sw_buf *out, const json_t *v, int depth)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)v, key, value)
	{
		size_t n = strlen(key);
		/* A key as usual ends within 1,024 characters; each byte takes up to six. */
		bool is_long = n > SIMPLE_KEY_MAX / 6;
		sw_buf_addf(out, "%*s%s", depth * 2, "", is_long ? "? " : "");
		if (is_plain(key, n))
			sw_buf_adds(out, key);
		else
			write_quoted(out, key, n);
		if (is_long)
			sw_buf_addf(out, "\n%*s", depth * 2, "");
		sw_buf_adds(out, ":");
		write_value(out, value, depth + 1);
	}
}

/* What stands behind "KEY:". */
static void write_value(sw_buf *out, const json_t *v, int depth)
{
	if (json_is_object(v) && json_object_size(v)) {
		sw_buf_adds(out, "\n");
		write_map(out, v, depth);
	} else if (json_is_object(v)) {
		sw_buf_adds(out, " {}\n");
	} else if (json_is_array(v) && scalars_only(v)) {
		sw_buf_adds(out, " [");
		for (size_t i = 0; i < json_array_size(v); i++) {
			sw_buf_adds(out, i ? ", " : "");
			write_scalar(out, json_array_get(v, i));
		}
		sw_buf_adds(out, "]\n");
	} else if (json_is_array(v)) {
		sw_buf_adds(out, "\n");
		for (size_t i = 0; i < json_array_size(v); i++) {
			sw_buf_addf(out, "%*s-", depth * 2, "");
			write_value(out, json_array_get(v, i), depth + 1);
		}
	} else {
		sw_buf_adds(out, " ");
		write_scalar(out, v);
		sw_buf_adds(out, "\n");
	}
}

int sw_yaml_write(sw_buf *out, const json_t *value)
{
	write_map(out, value, 0);
	return out->error;
}
