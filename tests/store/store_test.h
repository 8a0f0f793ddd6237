/* store_test.h - what the tests of the audit trail share. */
#ifndef STORE_TEST_H
#define STORE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static inline char *temp_dir(void)
{
	char name[] = "/tmp/sw-store-XXXXXX";
	if (!mkdtemp(name))
		abort();
	return strdup(name);
}

static inline int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st;
	(void)flag;
	(void)f;
	return remove(path);
}

static inline void remove_dir(char *dir)
{
	nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(dir);
}

static inline void in_dir(char *out, size_t n, const char *dir, const char *name)
{
	snprintf(out, n, "%s/%s", dir, name);
}

static inline sw_store *open_rw(const char *path, const sw_store_options *o)
{
	sw_store *s = NULL;
	sw_error e = {0};
	if (sw_store_open(&s, path, SW_STORE_WRITE, o, &e) != 0) {
		sw_error_print(stderr, &e);
		abort();
	}
	return s;
}

static inline sw_store *open_ro(const char *path)
{
	sw_store *s = NULL;
	sw_error e = {0};
	if (sw_store_open(&s, path, SW_STORE_READ, NULL, &e) != 0) {
		sw_error_print(stderr, &e);
		abort();
	}
	return s;
}

/* Judgement of the trail at path; *report may be NULL. */
static inline int verify_path(const char *path, const sw_verify_options *o, json_t **report)
{
	sw_store *s = NULL;
	json_t *j = NULL;
	sw_error e = {0};
	int status = -1;
	int code = sw_store_open(&s, path, SW_STORE_READ, NULL, &e);
	if (code == 0)
		code = sw_store_verify(s, o, &status, &j, &e);
	sw_store_close(s);
	if (report)
		*report = j;
	else
		json_decref(j);
	return code == 0 ? status : code;
}

static inline void copy_file(const char *from, const char *to)
{
	char buf[65536];
	FILE *a = fopen(from, "rb"), *b = fopen(to, "wb");
	size_t n;
	if (!a || !b)
		abort();
	while ((n = fread(buf, 1, sizeof buf, a)) > 0)
		if (fwrite(buf, 1, n, b) != n)
			abort();
	fclose(a);
	fclose(b);
}

static inline json_t *load(const char *text)
{
	json_error_t e;
	json_t *j = json_loads(text, JSON_ALLOW_NUL, &e);
	if (!j)
		fprintf(stderr, "%s: %s\n", text, e.text);
	return j;
}

static inline const sw_pack *builtin_pack(void *arg, const char *backend)
{
	/* Built once per backend: the tests are one thread. */
	static struct {
		char name[64];
		sw_pack *pack;
	} cache[64];
	(void)arg;
	for (int i = 0; i < 64; i++) {
		if (!cache[i].pack) {
			if (sw_pack_new(&cache[i].pack, sw_builtin_packs(), backend, NULL) != 0)
				return NULL;
			snprintf(cache[i].name, sizeof cache[i].name, "%s", backend);
			return cache[i].pack;
		}
		if (strcmp(cache[i].name, backend) == 0)
			return cache[i].pack;
	}
	return NULL;
}

/* Records one JSON text; the code of the operation. */
static inline int post(sw_store *s, const char *text, sw_receipt *receipt, sw_error *err)
{
	json_t *j = load(text);
	sw_record_parsed *p = NULL;
	sw_receipt r;
	sw_error own = {0};
	if (!err)
		err = &own;
	int code = j ? sw_record_parse(&p, j, builtin_pack, NULL, err) : SW_EINVAL;
	if (code == 0) {
		sw_store_op op = {.kind = sw_record_parsed_kind(p),
		                  .record = sw_record_parsed_record(p)};
		code = sw_store_write(s, &op, 1, err);
		if (code == 0 && op.code != 0) {
			code = op.code;
			*err = op.error;
		}
		r = op.receipt;
		if (code == 0 && receipt)
			*receipt = r;
	}
	sw_record_parsed_free(p);
	json_decref(j);
	return code;
}

/* Whether the bytes stand anywhere in the file (0: no such file). */
static inline bool file_holds(const char *path, const char *what)
{
	char *text = NULL;
	size_t n = 0;
	if (sw_read_file(path, 1u << 28, &text, &n, NULL) != 0)
		return false;
	bool yes = memmem(text, n, what, strlen(what)) != NULL;
	free(text);
	return yes;
}

#endif
