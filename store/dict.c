/*
 * dict.c - interning: what repeats is stored once and chained like any row.
 */
#include <string.h>

#include "store_int.h"

/* Beyond, a hostile caller is making every record its own kind. */
#define DICT_MAX_WIDE 1000000
#define DICT_MAX_NAMES 4000000000ll

void st_cache_clear(sw_store *s)
{
	memset(s->cache, 0, ST_CACHE * sizeof *s->cache);
}

static st_cached *slot(sw_store *s, st_table t, const uint8_t key[16])
{
	uint32_t h;
	memcpy(&h, key, sizeof h);
	return &s->cache[(h + (uint32_t)t) % ST_CACHE];
}

int st_dict(sw_store *s, st_table t, st_cell *cells, int64_t *id, sw_error *err)
{
	uint8_t key[16];
	st_cells_digest(key, cells + 2, (size_t)st_tables[t].n - 2);
	st_cached *c = slot(s, t, key);
	if (c->used && c->table == t && memcmp(c->key, key, 16) == 0) {
		*id = c->id;
		return 0;
	}
	sqlite3_stmt *q = st_stmt(s, Q_FIND_DICT + (int)t, err);
	if (!q)
		return SW_EIO;
	sqlite3_bind_blob64(q, 1, key, 16, SQLITE_STATIC);
	int rc = sqlite3_step(q);
	int64_t found = rc == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
	sqlite3_reset(q);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return st_sql_error(s, rc, "looking a name up", err);
	if (!found) {
		q = st_stmt(s, Q_MAX_DICT + (int)t, err);
		if (!q)
			return SW_EIO;
		rc = sqlite3_step(q);
		found = rc == SQLITE_ROW ? sqlite3_column_int64(q, 0) + 1 : 0;
		sqlite3_reset(q);
		if (rc != SQLITE_ROW)
			return st_sql_error(s, rc, "looking a name up", err);
		bool wide = t == T_ORIGIN || t == T_SHAPE;
		if (found > (wide ? DICT_MAX_WIDE : DICT_MAX_NAMES))
			return st_err(err, SW_ETOOBIG, st_tables[t].name,
			              "more different values than a trail can hold",
			              "look who records unique actors, devices, causes or levels",
			              "too many different records");
		cells[0] = st_int(found);
		cells[1] = st_blob(key, 16);
		int code = st_append(s, t, cells, NULL, err);
		if (code != 0)
			return code;
	}
	memcpy(c->key, key, 16);
	c->table = (uint8_t)t;
	c->used = true;
	c->id = found;
	*id = found;
	return 0;
}
