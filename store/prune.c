/*
 * prune.c - retention: whole sealed segments go, and a signed row of the chain says so.
 * What the rows that stay still name (names, shapes, keys, seals) is kept and bound by
 * it. Before anything is signed it is verified, so that nobody else's change to what
 * goes, or to a name that stays, is ever given the owner's signature.
 */
#include <nettle/eddsa.h>
#include <stdlib.h>
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

/* ---- what is about to be signed ---- */

struct check {
	vf v;
	struct sha256_ctx sum; /* of what is kept up to `to` */
	uint64_t to;
	uint8_t resume[32];
	bool found;
};

static int check_signers(void *arg, st_table t, uint64_t seq, const st_cell *cells, st_cell hash)
{
	(void)hash;
	vf_contents(arg, t, seq, cells, NULL, false);
	return 0;
}

static int check_row(void *arg, st_table t, uint64_t seq, const st_cell *cells, st_cell hash)
{
	struct check *c = arg;
	if (seq > c->to)
		return 1;
	vf_row(&c->v, t, seq, cells, hash);
	if (st_tables[t].kept)
		vf_dict_digest(&c->sum, t, seq, cells, hash);
	if (seq == c->to && hash.n == 32) {
		memcpy(c->resume, hash.p, 32);
		c->found = t == T_SEAL;
	}
	return 0;
}

/* Every pruning so far: was it signed, and the newest by a key that is trusted? */
static int check_prunings(sw_store *s, vf *v, const sw_verify_options *o, sw_error *err)
{
	int code = vf_init(v, o, err);
	if (code == 0)
		code = vf_read_prune(s, v, err);
	if (code == 0)
		code =
		    vf_merge(s, 1u << T_STORE | 1u << T_KEY | 1u << T_PRUNE, check_signers, v, err);
	if (code == 0)
		vf_judge_keys(v);
	return code;
}

static int check_rows(sw_store *s, struct check *c, const sw_verify_options *o, sw_error *err)
{
	unsigned tables = VF_ALL_TABLES;
	int code = vf_init(&c->v, o, err);
	if (code == 0)
		code = vf_read_prune(s, &c->v, err);
	c->v.prune_seen = c->v.prune_trusted = true;
	if (c->to == c->v.pruned_to)
		tables &= ~(1u << T_RECORD); /* names alone: none of its records is left */
	sha256_init(&c->sum);
	if (code == 0)
		code = vf_merge(s, tables, check_row, c, err);
	if (code == 0)
		vf_settle(&c->v);
	return code;
}

/* Up to `to`, by somebody who trusts `pub`. *findings: 0 only where all is as it was sealed. */
static int check_up_to(sw_store *s, struct check *c, uint64_t to, const uint8_t pub[32],
                       uint64_t *findings, sw_error *err)
{
	char hex[65];
	st_hex(hex, pub, 32);
	const sw_verify_options o = {.public_key = hex};
	memset(c, 0, sizeof *c);
	c->to = to;
	int code = check_prunings(s, &c->v, &o, err);
	*findings = vf_total(&c->v);
	vf_free(&c->v);
	if (code == 0)
		code = check_rows(s, c, &o, err);
	*findings += vf_total(&c->v) + !c->found;
	vf_free(&c->v);
	return code;
}

static int append_prune(sw_store *s, struct check *c, st_cell cells[C_PRUNE_N], sw_error *err)
{
	uint8_t dict[ST_PRUNE_SIGNED], uuid[16], print[32], message[ST_MESSAGE_MAX];
	int code = st_uuid(s, uuid, err);
	if (code != 0)
		return code;
	sha256_digest(&c->sum, 32, dict);
	st_sha256(print, s->key_public, 32);
	memcpy(dict + ST_PRUNE_DIGEST, print, 8);
	cells[C_PRUNE_TO] = st_int((int64_t)c->to);
	cells[C_PRUNE_RESUME] = st_blob(c->resume, 32);
	cells[C_PRUNE_DICT] = st_blob(dict, sizeof dict);
	size_t n = st_prune_message(message, uuid, s->head.seq + 1, cells);
	ed25519_sha512_sign(s->key_public, s->key_secret, n, message, dict + ST_PRUNE_KEYED);
	return st_append(s, T_PRUNE, cells, NULL, err);
}

int st_prune_again(sw_store *s, const uint8_t old_public[32], sw_error *err)
{
	int code = 0;
	uint64_t findings = 0;
	uint64_t to =
	    (uint64_t)scalar(s, "SELECT coalesce(max(to_seq),0) FROM prune", 0, 0, &code, err);
	struct check *c = code == 0 && to ? malloc(sizeof *c) : NULL;
	if (!c)
		return to && code == 0 ? sw_error_set(err, SW_ENOMEM, "out of memory") : code;
	code = check_up_to(s, c, to, old_public, &findings, err);
	st_cell cells[C_PRUNE_N] = {[C_PRUNE_AT] = st_int(sw_now_ns()),
	                            [C_PRUNE_FROM] = st_int(0),
	                            [C_PRUNE_ROWS] = st_int(0)};
	/* What does not verify is not signed; the key changes all the same, and verify says it. */
	if (code == 0 && findings == 0)
		code = append_prune(s, c, cells, err);
	free(c);
	return code;
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
	uint64_t findings = 0;
	sw_error e = {0};
	int code = st_key_current(s, &e);
	if (code != 0)
		return st_err(err, code, e.where, e.why, e.fix,
		              "nothing was removed, for a pruning is signed: %s", e.what);
	struct check *c = malloc(sizeof *c);
	if (!c)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	code = check_up_to(s, c, p->to, s->key_public, &findings, err);
	if (code == 0 && findings)
		code = st_err(err, SW_ECORRUPT, s->path,
		              "what would be removed, or the names that would stay, are not what "
		              "was sealed; nothing was removed",
		              "run `sandwitness verify`",
		              "a trail that does not verify is not pruned");
	if (code == 0)
		code = delete_rows(s, p->to, err);
	st_cell cells[C_PRUNE_N] = {[C_PRUNE_AT] = st_int(sw_now_ns()),
	                            [C_PRUNE_FROM] = st_int((int64_t)p->from),
	                            [C_PRUNE_ROWS] = st_int((int64_t)p->rows),
	                            [C_PRUNE_WHY] = st_textz(why)};
	if (code == 0)
		code = append_prune(s, c, cells, err);
	free(c);
	return code;
}

static int compact(sw_store *s, sw_error *err)
{
	int code = st_lock_take(s->lock, s->busy_ms, err);
	if (code != 0)
		return code;
	/* VACUUM works through an attached file; nothing else may attach. */
	sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 1);
	s->committing = true;
	code = st_exec(s, "VACUUM", err);
	s->committing = false;
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
