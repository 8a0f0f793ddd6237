/* Files of causes: why a thing failed, and what to do. */
#include "loader.h"

#include <stdlib.h>
#include <string.h>

typedef struct remedy_in {
	sw_loaded *l;
	sw_remedy r;
} remedy_in;

static int text_into(sw_loaded *l, sw_yaml *y, yaml_node_t *value, const char *key,
                     const char **out)
{
	if (value->type == YAML_SCALAR_NODE && value->data.scalar.length == 0)
		return 0; /* '' says that there is nothing to say */
	const char *z = sw_yaml_text(y, value, key);
	*out = z ? sw_loaded_copy(l, z, strlen(z), y->err) : NULL;
	return *out ? 0 : SW_EPACK;
}

static int remedy_pair(sw_yaml *y, void *payload, const char *key, yaml_node_t *key_node,
                       yaml_node_t *value)
{
	remedy_in *in = payload;
	if (strcmp(key, "for") == 0)
		return text_into(in->l, y, value, key, &in->r.for_whom);
	if (strcmp(key, "do") == 0)
		return text_into(in->l, y, value, key, &in->r.what);
	if (strcmp(key, "risk") == 0)
		return text_into(in->l, y, value, key, &in->r.risk);
	if (strcmp(key, "tested") == 0) {
		in->r.tested = sw_yaml_bool(y, value, key);
		return 0;
	}
	return sw_yaml_error(y, key_node, NULL, "for, do, risk, tested",
	                     "unknown key \"%.40s\" of a remedy", key);
}

typedef struct cause_in {
	sw_loaded *l;
	sw_cause c;
} cause_in;

static int read_remedies(cause_in *in, sw_yaml *y, yaml_node_t *node)
{
	long n = sw_yaml_items(y, node, "remedies");
	if (n < 0 || n > 100)
		return n < 0 ? SW_EPACK : sw_yaml_error(y, node, NULL, NULL, "%ld remedies", n);
	sw_remedy *list = sw_loaded_alloc(in->l, (size_t)n * sizeof(*list), y->err);
	if (!list)
		return SW_ENOMEM;
	for (long i = 0; i < n; i++) {
		yaml_node_t *item = sw_yaml_item(y, node, i);
		remedy_in r = {.l = in->l};
		int rc = sw_yaml_pairs(y, item, "a remedy", remedy_pair, &r);
		if (!rc && (!r.r.what || !r.r.risk))
			rc = sw_yaml_error(
			    y, item, "nobody should run a remedy without knowing what it weakens",
			    "write do and risk", "a remedy without `do` or `risk`");
		if (rc)
			return rc;
		list[i] = r.r;
	}
	in->c.remedies = list;
	in->c.n_remedies = (uint16_t)n;
	return 0;
}

static int cause_pair(sw_yaml *y, void *payload, const char *key, yaml_node_t *key_node,
                      yaml_node_t *value)
{
	cause_in *in = payload;
	const struct {
		const char *key;
		const char **to;
	} texts[] = {{"slug", &in->c.slug},
	             {"title", &in->c.title},
	             {"why", &in->c.why},
	             {"verify", &in->c.verify},
	             {"cannot_help", &in->c.cannot_help}};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(texts[i].key, key) == 0)
			return text_into(in->l, y, value, key, texts[i].to);
	if (strcmp(key, "check") == 0)
		return sw_load_texts(in->l, y, value, key, &in->c.checks, &in->c.n_checks);
	if (strcmp(key, "remedies") == 0)
		return read_remedies(in, y, value);
	return sw_yaml_error(y, key_node, NULL,
	                     "slug, title, why, check, remedies, verify, cannot_help",
	                     "unknown key \"%.40s\" of a cause", key);
}

static int keep(sw_loaded *l, sw_yaml *y, yaml_node_t *node, const sw_cause *c)
{
	for (size_t i = 0; i < l->n_causes; i++)
		if (strcmp(l->causes[i].slug, c->slug) == 0)
			return sw_yaml_error(y, node, l->causes[i].origin, "keep one of them",
			                     "the cause %s stands twice", c->slug);
	if (l->n_causes == l->cap_causes) {
		size_t cap = l->cap_causes ? l->cap_causes * 2 : 64;
		sw_cause *p = realloc(l->causes, cap * sizeof(*p));
		if (!p)
			return sw_error_set(y->err, SW_ENOMEM, "out of memory");
		l->causes = p;
		l->cap_causes = cap;
	}
	l->causes[l->n_causes++] = *c;
	return 0;
}

int sw_load_causes(sw_loaded *l, sw_yaml *y)
{
	yaml_node_t *root = sw_yaml_root(y);
	long n = sw_yaml_items(y, root, "a file of causes");
	for (long i = 0; i < n; i++) {
		yaml_node_t *item = sw_yaml_item(y, root, i);
		cause_in in = {.l = l};
		int rc = sw_yaml_pairs(y, item, "a cause", cause_pair, &in);
		if (!rc && (!in.c.slug || !in.c.title || !in.c.why))
			rc = sw_yaml_error(y, item, NULL, "write slug, title and why",
			                   "a cause lacks slug, title or why");
		in.c.origin = sw_load_origin(l, y, item);
		if (!rc)
			rc = keep(l, y, item, &in.c);
		if (rc)
			return rc;
	}
	return n < 0 ? SW_EPACK : 0;
}
