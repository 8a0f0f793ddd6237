/* Files, folders and memory of what is loaded. */
#include "loader.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sw_loaded_new(sw_loaded **out, sw_error *err)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : sw_error_set(err, SW_ENOMEM, "out of memory");
}

static void free_blocks(sw_loaded *l, size_t from)
{
	while (l->n_blocks > from)
		free(l->blocks[--l->n_blocks]);
}

void sw_loaded_free(sw_loaded *l)
{
	if (!l)
		return;
	free_blocks(l, 0);
	free(l->blocks);
	free(l->files);
	free(l->causes);
	free(l);
}

void *sw_loaded_alloc(sw_loaded *l, size_t n, sw_error *err)
{
	if (l->n_blocks == l->cap_blocks) {
		size_t cap = l->cap_blocks ? l->cap_blocks * 2 : 64;
		void **p = realloc(l->blocks, cap * sizeof(*p));
		if (!p) {
			sw_error_set(err, SW_ENOMEM, "out of memory");
			return NULL;
		}
		l->blocks = p;
		l->cap_blocks = cap;
	}
	void *p = calloc(1, n ? n : 1);
	if (!p) {
		sw_error_set(err, SW_ENOMEM, "out of memory");
		return NULL;
	}
	l->blocks[l->n_blocks++] = p;
	return p;
}

char *sw_loaded_copy(sw_loaded *l, const char *p, size_t n, sw_error *err)
{
	char *z = sw_loaded_alloc(l, n + 1, err);
	if (z)
		memcpy(z, p, n);
	return z;
}

const char *sw_load_origin(sw_loaded *l, sw_yaml *y, const yaml_node_t *node)
{
	char z[320];
	int n = snprintf(z, sizeof(z), "%s:%zu", y->file, node->start_mark.line + 1);
	return sw_loaded_copy(l, z, (size_t)n < sizeof(z) ? (size_t)n : sizeof(z) - 1, y->err);
}

int sw_load_texts(sw_loaded *l, sw_yaml *y, yaml_node_t *node, const char *what,
                  const char *const **out, uint16_t *n)
{
	long count = node->type == YAML_SCALAR_NODE ? 1 : sw_yaml_items(y, node, what);
	if (count <= 0 || count > 1000)
		return count < 0
		           ? SW_EPACK
		           : sw_yaml_error(y, node, NULL, NULL, "%s has %ld items", what, count);
	const char **list = sw_loaded_alloc(l, (size_t)count * sizeof(*list), y->err);
	if (!list)
		return SW_ENOMEM;
	for (long i = 0; i < count; i++) {
		yaml_node_t *item =
		    node->type == YAML_SCALAR_NODE ? node : sw_yaml_item(y, node, i);
		const char *z = sw_yaml_text(y, item, what);
		if (!z)
			return SW_EPACK;
		list[i] = sw_loaded_copy(l, z, strlen(z), y->err);
		if (!list[i])
			return SW_ENOMEM;
	}
	*out = list;
	*n = (uint16_t)count;
	return 0;
}

int sw_load_text(sw_loaded *l, const char *file, const char *text, size_t n, sw_error *err)
{
	sw_yaml y;
	size_t blocks = l->n_blocks, files = l->n_files, causes = l->n_causes;
	if (n > SW_PACK_FILE_MAX) {
		sw_error_set(err, SW_ETOOBIG, "more than %u bytes", SW_PACK_FILE_MAX);
		sw_error_more(err, file, NULL, "split the file");
		return SW_ETOOBIG;
	}
	sw_error e = {0};
	int rc = sw_yaml_open(&y, file, text, n, &e);
	if (rc) {
		if (err)
			*err = e;
		return rc;
	}
	rc = sw_yaml_root(&y)->type == YAML_SEQUENCE_NODE ? sw_load_causes(l, &y)
	                                                  : sw_load_pack(l, &y);
	sw_yaml_close(&y);
	if (rc) { /* nothing of a broken file stays */
		free_blocks(l, blocks);
		l->n_files = files;
		l->n_causes = causes;
		/* Lack of memory looks like a missing value further up; the error knows. */
		rc = e.code == SW_ENOMEM ? SW_ENOMEM : rc;
		if (err)
			*err = e;
	}
	return rc;
}

int sw_load_file(sw_loaded *l, const char *path, sw_error *err)
{
	char *text;
	size_t n;
	int rc = sw_read_file(path, SW_PACK_FILE_MAX, &text, &n, err);
	if (rc)
		return rc;
	rc = sw_load_text(l, path, text, n, err);
	free(text);
	return rc;
}

static int is_yaml(const struct dirent *d)
{
	size_t n = strlen(d->d_name);
	return d->d_name[0] != '.' && n > 5 && strcmp(d->d_name + n - 5, ".yaml") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name); /* not by locale: the order decides ownership */
}

int sw_load_dir(sw_loaded *l, const char *dir, void (*broken)(void *payload, const sw_error *e),
                void *payload, sw_error *err)
{
	struct dirent **names;
	int n = scandir(dir, &names, is_yaml, by_bytes);
	if (n < 0) {
		int e = errno;
		if (e == ENOMEM)
			return sw_error_set(err, SW_ENOMEM, "out of memory");
		sw_error_set(err, e == ENOENT ? SW_ENOTFOUND : SW_EIO, "cannot read the folder: %s",
		             strerror(e));
		sw_error_more(err, dir, NULL, NULL);
		return e == ENOENT ? SW_ENOTFOUND : SW_EIO;
	}
	int rc = 0;
	for (int i = 0; i < n; i++) {
		sw_error e;
		sw_buf path;
		sw_buf_init(&path, 4096);
		sw_buf_addf(&path, "%s/%s", dir, names[i]->d_name);
		if (path.error)
			sw_error_set(&e, path.error,
			             path.error == SW_ENOMEM ? "out of memory"
			                                     : "the path is too long");
		bool bad = !rc && (path.error || sw_load_file(l, path.ptr, &e));
		if (bad && e.code == SW_ENOMEM) /* the file is not to blame, nor left out */
			rc = sw_error_set(err, SW_ENOMEM, "out of memory");
		else if (bad && broken)
			broken(payload, &e);
		sw_buf_free(&path);
		free(names[i]);
	}
	free(names);
	return rc;
}

size_t sw_loaded_files(const sw_loaded *l, const sw_pack_file **out)
{
	*out = l->files;
	return l->n_files;
}

size_t sw_loaded_causes(const sw_loaded *l, const sw_cause **out)
{
	*out = l->causes;
	return l->n_causes;
}
