/*
 * facts.c - the reports' own copy of what they count: for every closed segment, six
 * numbers of each invocation as packed arrays. Ten million invocations take about
 * 200 MB and a report reads only the arrays it needs, so any report with any filter
 * over any time costs one linear pass. verify rebuilds them from the rows.
 */
#include <stdlib.h>
#include <string.h>
#include <nettle/sha2.h>

#include "store_int.h"

const char *const st_fact_names[F_COUNT] = {"seq",    "time",    "shape",
                                            "origin", "session", "resource"};

void st_facts_free(st_facts *f)
{
	for (int i = 0; i < F_COUNT; i++)
		free(f->v[i]);
	memset(f, 0, sizeof *f);
}

int st_facts_add(st_facts *f, const uint64_t v[F_COUNT])
{
	if (f->n == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : 256;
		for (int i = 0; i < F_COUNT; i++) {
			uint64_t *p = realloc(f->v[i], cap * sizeof *p);
			if (!p)
				return SW_ENOMEM;
			f->v[i] = p;
		}
		f->cap = cap;
	}
	for (int i = 0; i < F_COUNT; i++)
		f->v[i][f->n] = v[i];
	f->n++;
	return 0;
}

/* Frame of reference: the smallest value, and each difference in as few bytes as all need. */
int st_pack(st_packed *out, const uint64_t *v, size_t n)
{
	memset(out, 0, sizeof *out);
	out->n = n;
	if (n == 0)
		return 0;
	out->lo = out->hi = v[0];
	for (size_t i = 1; i < n; i++) {
		if (v[i] < out->lo)
			out->lo = v[i];
		if (v[i] > out->hi)
			out->hi = v[i];
	}
	for (uint64_t d = out->hi - out->lo; d; d >>= 8)
		out->width++;
	out->bytes = n * (size_t)out->width;
	if (!out->bytes)
		return 0;
	out->data = malloc(out->bytes);
	if (!out->data)
		return SW_ENOMEM;
	uint8_t *p = out->data;
	for (size_t i = 0; i < n; i++) {
		uint64_t d = v[i] - out->lo;
		for (int b = 0; b < out->width; b++, d >>= 8)
			*p++ = (uint8_t)d;
	}
	return 0;
}

/* Whole 8-byte loads while they stay inside; the last few byte by byte. */
void st_unpack(uint64_t *out, const st_packed *p)
{
	size_t w = (size_t)p->width, i = 0;
	if (w == 0) {
		for (; i < p->n; i++)
			out[i] = p->lo;
		return;
	}
	uint64_t mask = w == 8 ? UINT64_MAX : (1ull << (8 * w)) - 1;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	if (p->n * w >= 8) {
		size_t safe = (p->n * w - 8) / w + 1;
		for (; i < safe; i++) {
			uint64_t v;
			memcpy(&v, p->data + i * w, 8);
			out[i] = p->lo + (v & mask);
		}
	}
#endif
	for (; i < p->n; i++) {
		uint64_t v = 0;
		for (size_t b = w; b-- > 0;)
			v = v << 8 | p->data[i * w + b];
		out[i] = p->lo + (v & mask);
	}
}

static void slice_pack_done(st_packed *p)
{
	free(p->data);
	p->data = NULL;
}

int st_rollup_digest(uint8_t out[32], const st_facts *f)
{
	struct sha256_ctx h;
	sha256_init(&h);
	for (size_t at = 0; at < f->n; at += ST_BLOCK) {
		size_t n = f->n - at < ST_BLOCK ? f->n - at : ST_BLOCK;
		for (int i = 0; i < F_COUNT; i++) {
			st_packed p;
			if (st_pack(&p, f->v[i] + at, n) != 0)
				return SW_ENOMEM;
			uint64_t head[4] = {p.n, p.lo, p.hi, (uint64_t)p.width};
			for (int k = 0; k < 4; k++) {
				uint8_t b[8];
				for (int j = 0; j < 8; j++)
					b[j] = (uint8_t)(head[k] >> (56 - 8 * j));
				sha256_update(&h, 8, b);
			}
			if (p.bytes)
				sha256_update(&h, p.bytes, p.data);
			slice_pack_done(&p);
		}
	}
	sha256_digest(&h, 32, out);
	return 0;
}

int st_rollup_store(sw_store *s, const st_facts *f, sw_error *err)
{
	sqlite3_stmt *q = st_stmt(s, Q_ROLLUP_MAX, err);
	if (!q)
		return SW_EIO;
	int rc = sqlite3_step(q);
	int64_t block = rc == SQLITE_ROW && sqlite3_column_type(q, 0) != SQLITE_NULL
	                    ? sqlite3_column_int64(q, 0) / 8 + 1
	                    : 0;
	sqlite3_reset(q);
	if (rc != SQLITE_ROW)
		return st_sql_error(s, rc, "reading rollups", err);
	for (size_t at = 0; at < f->n; at += ST_BLOCK, block++) {
		size_t n = f->n - at < ST_BLOCK ? f->n - at : ST_BLOCK;
		for (int i = 0; i < F_COUNT; i++) {
			st_packed p;
			if (st_pack(&p, f->v[i] + at, n) != 0)
				return sw_error_set(err, SW_ENOMEM, "out of memory");
			q = st_stmt(s, Q_ROLLUP_ADD, err);
			if (!q) {
				slice_pack_done(&p);
				return SW_EIO;
			}
			sqlite3_bind_int64(q, 1, block * 8 + i);
			sqlite3_bind_int64(q, 2, (int64_t)p.n);
			sqlite3_bind_int64(q, 3, (int64_t)p.lo);
			sqlite3_bind_int64(q, 4, (int64_t)p.hi);
			sqlite3_bind_int64(q, 5, p.width);
			sqlite3_bind_blob64(q, 6, p.data ? p.data : (const void *)"", p.bytes,
			                    SQLITE_STATIC);
			rc = sqlite3_step(q);
			sqlite3_reset(q);
			sqlite3_clear_bindings(q);
			slice_pack_done(&p);
			if (rc != SQLITE_DONE)
				return st_sql_error(s, rc, "writing rollups", err);
		}
	}
	return 0;
}

/* 1: there, 0: no such block. A block whose numbers do not fit each other is damage. */
int st_rollup_read(sw_store *s, int64_t block, int fact, st_packed *out, sw_error *err)
{
	memset(out, 0, sizeof *out);
	sqlite3_stmt *q = st_stmt(s, Q_ROLLUP_GET, err);
	if (!q)
		return SW_EIO;
	sqlite3_bind_int64(q, 1, block * 8 + fact);
	int rc = sqlite3_step(q), code = 1;
	if (rc == SQLITE_ROW) {
		int64_t n = sqlite3_column_int64(q, 0), width = sqlite3_column_int64(q, 3);
		size_t bytes = (size_t)sqlite3_column_bytes(q, 4);
		if (n < 1 || n > ST_BLOCK || width < 0 || width > 8 ||
		    bytes != (size_t)(n * width)) {
			code = st_err(err, SW_ECORRUPT, s->path, "a rollup's sizes do not fit",
			              "run `sandwitness verify`", "the audit trail is damaged");
		} else {
			out->n = (size_t)n;
			out->lo = (uint64_t)sqlite3_column_int64(q, 1);
			out->hi = (uint64_t)sqlite3_column_int64(q, 2);
			out->width = (int)width;
			out->bytes = bytes;
			out->data = malloc(bytes + 8);
			if (!out->data)
				code = sw_error_set(err, SW_ENOMEM, "out of memory");
			else if (bytes)
				memcpy(out->data, sqlite3_column_blob(q, 4), bytes);
		}
	} else {
		code = rc == SQLITE_DONE ? 0 : st_sql_error(s, rc, "reading rollups", err);
	}
	sqlite3_reset(q);
	return code;
}

int st_facts_of_rows(sw_store *s, uint64_t first, uint64_t last, st_facts *f, sw_error *err)
{
	sqlite3_stmt *q = st_stmt(s, Q_FACTS, err);
	if (!q)
		return SW_EIO;
	sqlite3_bind_int64(q, 1, (int64_t)first);
	sqlite3_bind_int64(q, 2, (int64_t)last);
	int rc, code = 0;
	while (code == 0 && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		uint64_t v[F_COUNT];
		for (int i = 0; i < F_COUNT; i++)
			v[i] = (uint64_t)sqlite3_column_int64(q, i);
		if (st_facts_add(f, v) != 0)
			code = sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	sqlite3_reset(q);
	if (code == 0 && rc != SQLITE_DONE)
		code = st_sql_error(s, rc, "reading rows", err);
	return code;
}
