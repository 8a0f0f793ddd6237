/*
 * prune.c - retention: whole sealed segments go, and a row of the chain says so. What
 * the rows that stay still name (names, shapes, keys, seals) is kept and bound by it.
 */
#include <string.h>

#include "verify_int.h"

/* Removed in one transaction at most, so that writers never wait long. */
#define PRUNE_ROWS_AT_ONCE 100000

struct plan {
	uint64_t from, to; /* chain rows; to is a seal row; 0: nothing to do */
	uint64_t rows;     /* of record */
	uint64_t segments;
	bool more;
};

static int64_t scalar(sw_store *s, const char *sql, int64_t a, int64_t b, int *code, sw_error *err)
{
	sqlite3_stmt *q = NULL;
	int64_t out = 0;
	if (*code != 0)
		return 0;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);
	if (rc == SQLITE_OK) {
		int n = sqlite3_bind_parameter_count(q);
		if (n > 0)
			sqlite3_bind_int64(q, 1, a);
		if (n > 1)
			sqlite3_bind_int64(q, 2, b);
		rc = sqlite3_step(q);
	}
	if (rc == SQLITE_ROW)
		out = sqlite3_column_int64(q, 0);
	else
		*code = st_sql_error(s, rc, "pruning", err);
	sqlite3_finalize(q);
	return out;
}

static int64_t used_bytes(sw_store *s, int *code, sw_error *err)
{
	int64_t pages = scalar(s, "SELECT page_count FROM pragma_page_count", 0, 0, code, err);
	int64_t free_pages =
	    scalar(s, "SELECT freelist_count FROM pragma_freelist_count", 0, 0, code, err);
	return (pages - free_pages) * 4096;
}

static int make_plan(sw_store *s, const sw_prune_options *o, struct plan *p, sw_error *err)
{
	int code = 0;
	memset(p, 0, sizeof *p);
	uint64_t done =
	    (uint64_t)scalar(s, "SELECT coalesce(max(to_seq),0) FROM prune", 0, 0, &code, err);
	uint64_t left = 0;
	uint64_t keep = o->keep_rows;
	if (code == 0 && (o->keep_rows || o->keep_bytes))
		left = (uint64_t)scalar(s, "SELECT count(*) FROM record", 0, 0, &code, err);
	if (code == 0 && o->keep_bytes && left) {
		uint64_t bytes = (uint64_t)used_bytes(s, &code, err);
		uint64_t fit =
		    bytes ? (uint64_t)((double)left * (double)o->keep_bytes / (double)bytes) : left;
		/* Both rules: whichever removes more. */
		if (fit < left && (!o->keep_rows || fit < keep))
			keep = fit;
		else if (!o->keep_rows)
			keep = left;
	}
	p->from = done + 1;
	sqlite3_stmt *q = NULL;
	int rc = code == 0
	             ? sqlite3_prepare_v2(s->db,
	                                  "SELECT seq, at_ns, first_seq FROM seal WHERE seq>?1"
	                                  " ORDER BY seq",
	                                  -1, &q, NULL)
	             : SQLITE_OK;
	if (code == 0 && rc == SQLITE_OK) {
		sqlite3_bind_int64(q, 1, (int64_t)done);
		while (code == 0 && (rc = sqlite3_step(q)) == SQLITE_ROW) {
			int64_t seq = sqlite3_column_int64(q, 0), at = sqlite3_column_int64(q, 1);
			uint64_t n = (uint64_t)scalar(
			    s, "SELECT count(*) FROM record WHERE seq BETWEEN ?1 AND ?2",
			    sqlite3_column_int64(q, 2), seq, &code, err);
			bool old = o->older_than_ns && at < o->older_than_ns;
			bool many =
			    (o->keep_rows || o->keep_bytes) && left >= keep + n && n <= left;
			if (code != 0 || !(old || many)) {
				rc = SQLITE_DONE;
				break;
			}
			if (p->segments && p->rows + n > PRUNE_ROWS_AT_ONCE) {
				p->more = true;
				rc = SQLITE_DONE;
				break;
			}
			left -= n < left ? n : left;
			p->rows += n;
			p->to = (uint64_t)seq;
			p->segments++;
		}
	}
	sqlite3_finalize(q);
	return code == 0 && rc != SQLITE_DONE && rc != SQLITE_OK
	           ? st_sql_error(s, rc, "pruning", err)
	           : code;
}

struct digest {
	struct sha256_ctx h;
	uint64_t to;
	uint8_t resume[32];
	bool found;
};

static int digest_row(void *arg, st_table t, uint64_t seq, const st_cell *cells, st_cell hash)
{
	struct digest *d = arg;
	if (seq > d->to)
		return 1;
	if (st_tables[t].kept)
		vf_dict_digest(&d->h, t, seq, cells, hash);
	if (seq == d->to && hash.n == 32) {
		memcpy(d->resume, hash.p, 32);
		d->found = true;
	}
	return 0;
}

static int delete_rows(sw_store *s, uint64_t to, sw_error *err)
{
	static const char *const sql[] = {
	    "DELETE FROM kept WHERE seq<=%llu", "DELETE FROM unfinished WHERE seq<=%llu",
	    ("DELETE FROM rollup WHERE id < 8 + coalesce((SELECT max(id) FROM rollup WHERE id%%8=0"
	     " AND hi<=%llu), -8)"),
	    "DELETE FROM record WHERE seq<=%llu"};
	int code = 0;
	for (size_t i = 0; code == 0 && i < sizeof sql / sizeof *sql; i++) {
		char *z = sqlite3_mprintf(sql[i], (unsigned long long)to);
		code = z ? st_exec(s, z, err) : sw_error_set(err, SW_ENOMEM, "out of memory");
		sqlite3_free(z);
	}
	return code;
}

static int apply(sw_store *s, const struct plan *p, const char *why, sw_error *err)
{
	struct digest d = {.to = p->to};
	uint8_t dict[32];
	sha256_init(&d.h);
	int code = delete_rows(s, p->to, err);
	if (code == 0)
		code = vf_merge(s, digest_row, &d, err);
	if (code == 0 && !d.found)
		code = st_err(err, SW_ECORRUPT, s->path, "a seal is missing",
		              "run `sandwitness verify`", "the audit trail is damaged");
	if (code != 0)
		return code;
	sha256_digest(&d.h, 32, dict);
	st_cell c[C_PRUNE_N] = {[C_PRUNE_AT] = st_int(sw_now_ns()),
	                        [C_PRUNE_FROM] = st_int((int64_t)p->from),
	                        [C_PRUNE_TO] = st_int((int64_t)p->to),
	                        [C_PRUNE_ROWS] = st_int((int64_t)p->rows),
	                        [C_PRUNE_RESUME] = st_blob(d.resume, 32),
	                        [C_PRUNE_DICT] = st_blob(dict, 32),
	                        [C_PRUNE_WHY] = st_textz(why)};
	return st_append(s, T_PRUNE, c, NULL, err);
}

static int compact(sw_store *s, sw_error *err)
{
	int code = st_lock_take(s->lock, s->busy_ms, err);
	if (code != 0)
		return code;
	/* VACUUM works through an attached file; nothing else may attach. */
	sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 1);
	code = st_exec(s, "VACUUM", err);
	sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
	if (code == 0)
		code = st_exec(s, "PRAGMA wal_checkpoint(TRUNCATE)", err);
	s->wal_pages = 0;
	st_lock_give(s->lock);
	return code;
}

int sw_store_prune(sw_store *s, const sw_prune_options *o, json_t **out, sw_error *err)
{
	struct plan all = {0};
	if (!o || (!o->older_than_ns && !o->keep_rows && !o->keep_bytes))
		return st_err(err, SW_EINVAL, "prune", "no rule",
		              "say what may go: age, rows or bytes", "nothing to decide by");
	int code = 0;
	int64_t before = used_bytes(s, &code, err);
	for (bool more = true; code == 0 && more;) {
		struct plan p;
		code = st_begin(s, err);
		if (code != 0)
			break;
		code = make_plan(s, o, &p, err);
		if (code == 0 && p.to && !o->dry_run)
			code = apply(s, &p, o->why, err);
		if (code == 0 && p.to && !o->dry_run)
			code = st_commit(s, err);
		else
			st_abort(s);
		if (code == 0 && p.to) {
			all.from = all.from ? all.from : p.from;
			all.to = p.to;
			all.rows += p.rows;
			all.segments += p.segments;
		}
		more = p.more && !o->dry_run;
	}
	if (code == 0 && o->compact && !o->dry_run)
		code = compact(s, err);
	int64_t after = used_bytes(s, &code, err);
	if (code != 0)
		return code;
	json_t *j = json_object();
	json_object_set_new(j, "segments", json_integer((json_int_t)all.segments));
	json_object_set_new(j, "rows", json_integer((json_int_t)all.rows));
	json_object_set_new(j, "from", all.to ? json_integer((json_int_t)all.from) : json_null());
	json_object_set_new(j, "to", all.to ? json_integer((json_int_t)all.to) : json_null());
	json_object_set_new(j, "bytes_before", json_integer(before));
	json_object_set_new(j, "bytes_after", json_integer(after));
	json_object_set_new(j, "dry_run", json_boolean(o->dry_run));
	*out = j;
	return 0;
}
