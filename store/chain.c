/*
 * chain.c - the hash chain: cells, their fixed encoding, appending a row.
 *
 * hash = SHA-256(previous hash, seq, table tag, number of cells, every cell).
 * A cell is its type and, for integers, 8 bytes big-endian, for text and blobs a
 * 4-byte length and the bytes: no two different rows have the same encoding.
 */
#include <nettle/sha2.h>
#include <string.h>

#include "store_int.h"

st_cell st_textz(const char *z)
{
	return z ? st_text(z, strlen(z)) : st_null();
}

static void put64(uint8_t *p, uint64_t v)
{
	for (int i = 7; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
}

static void hash_cells(struct sha256_ctx *h, const st_cell *cells, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t b[9] = {cells[i].type};
		if (cells[i].type == CELL_INT) {
			put64(b + 1, (uint64_t)cells[i].i);
			sha256_update(h, 9, b);
		} else if (cells[i].type == CELL_NULL) {
			sha256_update(h, 1, b);
		} else {
			uint32_t len = (uint32_t)cells[i].n;
			b[1] = (uint8_t)(len >> 24);
			b[2] = (uint8_t)(len >> 16);
			b[3] = (uint8_t)(len >> 8);
			b[4] = (uint8_t)len;
			sha256_update(h, 5, b);
			sha256_update(h, len, cells[i].p);
		}
	}
}

void st_row_hash(uint8_t out[32], const uint8_t prev[32], uint64_t seq, const st_table_def *t,
                 const st_cell *cells)
{
	struct sha256_ctx h;
	uint8_t head[42];
	memcpy(head, prev, 32);
	put64(head + 32, seq);
	head[40] = t->tag;
	head[41] = t->n;
	sha256_init(&h);
	sha256_update(&h, sizeof head, head);
	hash_cells(&h, cells, t->n);
	sha256_digest(&h, 32, out);
}

void st_cells_digest(uint8_t out[16], const st_cell *cells, size_t n)
{
	struct sha256_ctx h;
	sha256_init(&h);
	hash_cells(&h, cells, n);
	sha256_digest(&h, 16, out);
}

void st_sha256(uint8_t out[32], const void *p, size_t n)
{
	struct sha256_ctx h;
	sha256_init(&h);
	sha256_update(&h, n, p);
	sha256_digest(&h, 32, out);
}

st_cell st_column(sqlite3_stmt *q, int col)
{
	switch (sqlite3_column_type(q, col)) {
	case SQLITE_INTEGER:
		return st_int(sqlite3_column_int64(q, col));
	case SQLITE_TEXT: { /* as text it may be copied for its NUL, and memory be short */
		const void *p = sqlite3_column_blob(q, col);
		return st_text(p ? p : "", (size_t)sqlite3_column_bytes(q, col));
	}
	case SQLITE_BLOB: {
		const void *p = sqlite3_column_blob(q, col);
		return st_blob(p, (size_t)sqlite3_column_bytes(q, col));
	}
	case SQLITE_FLOAT: { /* never written by us; made visible as a text that cannot match */
		const void *p = sqlite3_column_text(q, col);
		return st_text(p, (size_t)sqlite3_column_bytes(q, col));
	}
	default:
		return st_null();
	}
}

int st_bind(sqlite3_stmt *q, int index, st_cell c)
{
	switch (c.type) {
	case CELL_INT:
		return sqlite3_bind_int64(q, index, c.i);
	case CELL_TEXT:
		return sqlite3_bind_text64(q, index, c.p, c.n, SQLITE_STATIC, SQLITE_UTF8);
	case CELL_BLOB:
		return sqlite3_bind_blob64(q, index, c.p, c.n, SQLITE_STATIC);
	default:
		return sqlite3_bind_null(q, index);
	}
}

void st_hex(char *out, const void *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *b = p;
	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digits[b[i] >> 4];
		out[2 * i + 1] = digits[b[i] & 15];
	}
	out[2 * n] = 0;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int st_unhex(const char *z, size_t n, uint8_t *out)
{
	if (n % 2)
		return -1;
	for (size_t i = 0; i < n; i += 2) {
		int hi = digit(z[i]), lo = digit(z[i + 1]);
		if (hi < 0 || lo < 0)
			return -1;
		out[i / 2] = (uint8_t)(hi << 4 | lo);
	}
	return 0;
}

bool st_number(const char *z, size_t n, uint64_t *out)
{
	uint64_t v = 0;
	if (n == 0 || n > 19 || (n > 1 && *z == '0'))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (z[i] < '0' || z[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(z[i] - '0');
	}
	*out = v;
	return v <= INT64_MAX;
}

int st_append(sw_store *s, st_table t, const st_cell *cells, uint64_t *seq, sw_error *err)
{
	const st_table_def *d = &st_tables[t];
	sqlite3_stmt *q = st_stmt(s, Q_INSERT + (int)t, err);
	if (!q)
		return SW_EIO;
	uint64_t next = s->head.seq + 1;
	uint8_t hash[32];
	st_row_hash(hash, s->head.hash, next, d, cells);
	int rc = sqlite3_bind_int64(q, 1, (int64_t)next);
	for (int i = 0; i < d->n && rc == SQLITE_OK; i++)
		rc = st_bind(q, i + 2, cells[i]);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_blob64(q, d->n + 2, hash, 32, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	sqlite3_reset(q);
	sqlite3_clear_bindings(q);
	if (rc != SQLITE_DONE)
		return st_sql_error(s, rc, "recording", err);
	/* When the rows that no seal covers yet began: the first one that says its time. */
	static const int8_t time_cell[T_COUNT] = {
	    [T_STORE] = C_STORE_AT,      [T_KEY] = C_KEY_AT, [T_SESSION] = -1,
	    [T_RESOURCE] = -1,           [T_ORIGIN] = -1,    [T_SHAPE] = -1,
	    [T_RECORD] = C_REC_RECORDED, [T_SEAL] = -1,      [T_PRUNE] = C_PRUNE_AT};
	if (!s->head.unsealed_ns && time_cell[t] >= 0)
		s->head.unsealed_ns = cells[time_cell[t]].i;
	s->head.seq = next;
	memcpy(s->head.hash, hash, 32);
	if (seq)
		*seq = next;
	return 0;
}
