/* config.c - see config.h. */
#include "config.h"
#include "yaml_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

typedef struct reader {
	char *file;
	yaml_document_t doc;
	const cli_verb *verb;
	int argc;
	char **argv;
	char **out;
	int n;
	sw_error *err;
} reader;

/* ---- which key goes to which verb ---- */

/* Keys at the top that more than one verb takes. */
static const struct {
	const char *key;
	const char *verbs; /* separated by blanks, one around each */
} shared[] = {
    {"db", " run record report invocations verify seal prune export backup reclassify serve "},
    {"signatures", " classify explain run record "},
    {"pack-set", " classify explain run record "},
};

/* Keys of `sandbox`: the option, and the verbs that know it. */
static const struct {
	const char *key, *option, *verbs;
} sandbox_keys[] = {
    {"kind", "backend", " run confine preflight "},
    {"mode", "sandbox", " confine "},
    {"network", "network", " run confine preflight "},
    {"readable", "readable", " run confine preflight "},
    {"writable", "writable", " run confine preflight "},
    {"env", "env", " run confine preflight "},
    {"image", "image", " run confine preflight status doctor "},
    {"memory-mb", "memory-mb", " run confine preflight "},
    {"cpus", "cpus", " run confine preflight "},
    {"workspace", "workspace", " run confine preflight "},
};

static bool named_in(const char *list, const char *name)
{
	size_t n = strlen(name);
	for (const char *p = strstr(list, name); p; p = strstr(p + 1, name))
		if (p > list && p[-1] == ' ' && p[n] == ' ')
			return true;
	return false;
}

/* ---- reading ---- */

static int refuse(const reader *c, const yaml_node_t *at, const char *what, const char *fix)
{
	char where[256];
	snprintf(where, sizeof(where), "%.200s:%zu:%zu", c->file, at ? at->start_mark.line + 1 : 1,
	         at ? at->start_mark.column + 1 : 1);
	sw_error_set(c->err, SW_EINVAL, "%s", what);
	return c->err ? sw_error_more(c->err, where, NULL, fix) : SW_EINVAL;
}

static yaml_node_t *node(reader *c, int index)
{
	return yaml_document_get_node(&c->doc, index);
}

/* A plain text, NULL for anything else. */
static const char *text(const yaml_node_t *n)
{
	if (n->type != YAML_SCALAR_NODE)
		return NULL;
	const char *z = (const char *)n->data.scalar.value;
	return strlen(z) == n->data.scalar.length ? z : NULL;
}

/* The key as an option is written: small letters, digits, '-'; '_' is '-'. */
static bool key_of(const yaml_node_t *n, char out[64])
{
	const char *z = text(n);
	size_t len = z ? strlen(z) : 0;
	if (!len || len > 63)
		return false;
	for (size_t i = 0; i <= len; i++) {
		out[i] = z[i] == '_' ? '-' : z[i];
		bool fine = !z[i] || (z[i] >= 'a' && z[i] <= 'z') || (z[i] >= '0' && z[i] <= '9') ||
		            out[i] == '-';
		if (!fine)
			return false;
	}
	return out[0] != '-';
}

static int add(reader *c, const char *option, const char *value)
{
	char *joined = NULL;
	if (c->n + c->argc + 2 > CLI_CONFIG_OPTIONS_MAX)
		return sw_error_set(c->err, SW_ETOOBIG,
		                    "the configuration file has too many options");
	/* --name=value, so that a value can never be taken for an option */
	if (asprintf(&joined, value ? "--%s=%s" : "--%s", option, value) < 0)
		return sw_error_set(c->err, SW_ENOMEM, "out of memory");
	c->out[c->n++] = joined;
	return SW_OK;
}

static bool plain(const yaml_node_t *n)
{
	return n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static int add_scalar(reader *c, const yaml_node_t *n, const char *option)
{
	const char *z = text(n);
	if (!z)
		return refuse(c, n, "a text, a number, true or false is wanted here", NULL);
	if (plain(n) && (!strcmp(z, "true") || !strcmp(z, "yes") || !strcmp(z, "on")))
		return add(c, option, NULL);
	if (plain(n) && (!strcmp(z, "false") || !strcmp(z, "no") || !strcmp(z, "off") ||
	                 !strcmp(z, "null") || !strcmp(z, "~") || !*z))
		return SW_OK; /* as if the option were not given */
	return add(c, option, z);
}

static int add_value(reader *c, yaml_node_t *n, const char *option)
{
	if (n->type != YAML_SEQUENCE_NODE)
		return add_scalar(c, n, option);
	int rc = SW_OK;
	for (yaml_node_item_t *i = n->data.sequence.items.start;
	     !rc && i < n->data.sequence.items.top; i++)
		rc = add_scalar(c, node(c, *i), option);
	return rc;
}

/* `run` wraps only what was asked for with --sandbox; the section says how. */
static bool asks_for_sandbox(const reader *c)
{
	for (int i = 1; i < c->argc && strcmp(c->argv[i], "--") != 0; i++)
		if (!strcmp(c->argv[i], "--sandbox") || !strncmp(c->argv[i], "--sandbox=", 10))
			return true;
	return false;
}

static int read_sandbox(reader *c, yaml_node_t *map)
{
	bool applies = strcmp(c->verb->name, "run") != 0 || asks_for_sandbox(c);
	if (map->type != YAML_MAPPING_NODE)
		return refuse(c, map, "sandbox is a mapping: kind, network, readable, ...", NULL);
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
	     p++) {
		char key[64];
		yaml_node_t *k = node(c, p->key), *v = node(c, p->value);
		size_t i = 0, n = sizeof(sandbox_keys) / sizeof(*sandbox_keys);
		while (i < n && (!key_of(k, key) || strcmp(sandbox_keys[i].key, key) != 0))
			i++;
		if (i == n)
			return refuse(c, k, "unknown key in sandbox",
			              "kind, mode, workspace, network, readable, writable, env, "
			              "image, memory_mb, cpus");
		if (!applies || !named_in(sandbox_keys[i].verbs, c->verb->name))
			continue;
		/* kind none: nobody is told which backend, and danger_full_access stays to be said
		 */
		if (!strcmp(key, "kind") && text(v) && !strcmp(text(v), "none"))
			continue;
		int rc = add_value(c, v, sandbox_keys[i].option);
		if (rc)
			return rc;
	}
	return SW_OK;
}

static int read_verb(reader *c, yaml_node_t *map)
{
	if (map->type != YAML_MAPPING_NODE)
		return refuse(c, map, "a verb's section is a mapping of its options", NULL);
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
	     p++) {
		char key[64];
		if (!key_of(node(c, p->key), key))
			return refuse(c, node(c, p->key), "this is not the name of an option",
			              "the option without its dashes: deadline, memory_mb");
		int rc = add_value(c, node(c, p->value), key);
		if (rc)
			return rc;
	}
	return SW_OK;
}

static int read_top(reader *c)
{
	yaml_node_t *root = yaml_document_get_root_node(&c->doc);
	if (!root)
		return SW_OK; /* an empty file */
	if (root->type != YAML_MAPPING_NODE)
		return refuse(c, root, "the file is a mapping of sections and options", NULL);
	/* what is shared first: a verb's own section wins */
	for (int pass = 0; pass < 2; pass++)
		for (yaml_node_pair_t *p = root->data.mapping.pairs.start;
		     p < root->data.mapping.pairs.top; p++) {
			char key[64];
			yaml_node_t *k = node(c, p->key), *v = node(c, p->value);
			int rc = SW_OK;
			if (!key_of(k, key))
				return refuse(c, k, "this is not a key", NULL);
			size_t i = 0, n = sizeof(shared) / sizeof(*shared);
			/* `signatures` is a verb too: a mapping is its section */
			while (i < n &&
			       (strcmp(shared[i].key, key) != 0 || v->type == YAML_MAPPING_NODE))
				i++;
			bool section = i == n && !strcmp(key, "sandbox");
			bool verb = i == n && !section && cli_verb_find(key);
			if (i == n && !section && !verb)
				return refuse(c, k, "unknown key",
				              "sandbox, db, signatures, pack_set, or a verb with "
				              "its options below it");
			if (pass == 0 && section)
				rc = read_sandbox(c, v);
			else if (pass == 0 && i < n && named_in(shared[i].verbs, c->verb->name))
				rc = add_value(c, v, shared[i].key);
			else if (pass == 1 && verb && !strcmp(key, c->verb->name))
				rc = read_verb(c, v);
			if (rc)
				return rc;
		}
	return SW_OK;
}

static int parse(reader *c, const char *bytes, size_t n)
{
	yaml_parser_t parser;
	int rc = sw_yaml_shallow(c->file, bytes, n, c->err);
	if (rc)
		return rc;
	if (!yaml_parser_initialize(&parser))
		return sw_error_set(c->err, SW_ENOMEM, "out of memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, n);
	if (!yaml_parser_load(&parser, &c->doc)) {
		char where[256];
		snprintf(where, sizeof(where), "%.200s:%zu:%zu", c->file,
		         parser.problem_mark.line + 1, parser.problem_mark.column + 1);
		sw_error_set(c->err, SW_EINVAL, "the file is not YAML: %.200s",
		             parser.problem ? parser.problem : "?");
		rc = c->err ? sw_error_more(c->err, where, NULL, NULL) : SW_EINVAL;
	} else {
		rc = read_top(c);
		yaml_document_delete(&c->doc);
	}
	yaml_parser_delete(&parser);
	return rc;
}

/* ---- the file ---- */

static int trusted(reader *c, const struct stat *st)
{
	bool others =
	    (st->st_mode & (S_IWGRP | S_IWOTH)) || (st->st_uid != 0 && st->st_uid != geteuid());
	if (!others)
		return SW_OK;
	sw_error_set(c->err, SW_EINVAL, "the configuration file can be written by others");
	return c->err ? sw_error_more(c->err, c->file,
	                              "whoever writes it can widen or switch off a sandbox",
	                              "chmod go-w, and let it belong to this user or root")
	              : SW_EINVAL;
}

static char *file_name(bool *named)
{
	const char *z = getenv("SANDWITNESS_CONFIG");
	*named = z != NULL;
	if (z && !*z)
		return NULL;
	if (z) {
		char *file = strdup(z);
		if (!file)
			sw_text_lacks();
		return file;
	}
	return sw_xdg_path("XDG_CONFIG_HOME", "config.yaml");
}

static int read_it(reader *c, const struct stat *st)
{
	char *bytes = NULL;
	size_t n = 0;
	int rc = trusted(c, st);
	if (rc)
		return rc;
	c->out = calloc((size_t)c->argc + CLI_CONFIG_OPTIONS_MAX + 1, sizeof(*c->out));
	if (!c->out)
		return sw_error_set(c->err, SW_ENOMEM, "out of memory");
	rc = sw_read_file(c->file, CLI_CONFIG_MAX, &bytes, &n, c->err);
	if (!rc) {
		c->out[c->n++] = c->argv[0];
		rc = parse(c, bytes, n);
	}
	free(bytes);
	return rc;
}

int cli_config_read(cli_config *out, const cli_verb *v, int argc, char **argv, sw_error *err)
{
	bool named;
	struct stat st;
	reader c = {.verb = v, .argc = argc, .argv = argv, .err = err};
	if (!strcmp(v->name, "help") || !strcmp(v->name, "version"))
		return SW_OK;
	c.file = file_name(&named);
	if (!c.file && sw_text_lacked()) /* what it asks for must not be passed over */
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	if (!c.file)
		return SW_OK;
	int rc = SW_OK;
	if (!stat(c.file, &st)) {
		rc = read_it(&c, &st);
	} else if (named || (errno != ENOENT && errno != ENOTDIR && errno != EACCES)) {
		rc = sw_error_set(err, SW_EIO, "the configuration file cannot be read: %s",
		                  strerror(errno));
		if (err)
			sw_error_more(err, c.file, NULL,
			              "name another one in SANDWITNESS_CONFIG, or empty it");
	}
	cli_config made = {.argv = c.out, .added = c.n - 1, .file = c.file};
	if (rc || c.n < 2) {
		cli_config_free(&made);
		return rc;
	}
	for (int i = 1; i < argc; i++)
		c.out[c.n++] = argv[i];
	made.argc = c.n;
	*out = made;
	return SW_OK;
}

void cli_config_free(cli_config *c)
{
	for (int i = 1; c->argv && i <= c->added; i++)
		free(c->argv[i]);
	free(c->argv);
	free(c->file);
	*c = (cli_config){0};
}
