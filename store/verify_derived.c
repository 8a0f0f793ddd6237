/*
 * verify_derived.c - what was computed from the rows: rollups, the list of unfinished
 * invocations, kept outputs, the head row, and the schema itself.
 */
#include <stdlib.h>
#include <string.h>

#include "prepare.h"
#include "verify_int.h"

struct vd {
	sw_store *s;
	vf *v;
	st_facts facts;        /* of the segment being read, up to ST_BLOCK */
	struct sha256_ctx sum; /* of the blocks of this segment so far */
	int64_t block;
	uint64_t last_seal; /* rows behind it are not rolled up yet */
	uint64_t before;    /* findings when the segment began */
	uint64_t begun;     /* findings before the first row: of the file, not of rows */
	uint64_t *open;     /* begins without an end: open addressing, 0 free, 1 deleted */
	size_t cap, used, live;
};

/* ---- a set of numbers ---- */

static size_t place(const vd *d, uint64_t k)
{
	uint64_t h = k * 0x9e3779b97f4a7c15ull;
	size_t at = (size_t)(h >> 32) & (d->cap - 1);
	while (d->open[at] && d->open[at] != k + 2)
		at = (at + 1) & (d->cap - 1);
	return at;
}

static int set_add(vd *d, uint64_t k)
{
	if ((d->used + 1) * 2 > d->cap) {
		size_t cap = d->cap;
		uint64_t *old = d->open;
		d->cap = d->live * 4 > 1024 ? d->cap * 2 : cap ? cap : 4096;
		if (d->live * 4 > d->cap)
			d->cap *= 2;
		d->open = calloc(d->cap, sizeof *d->open);
		if (!d->open) {
			d->open = old;
			d->cap = cap;
			return SW_ENOMEM;
		}
		d->used = d->live = 0;
		for (size_t i = 0; i < cap; i++)
			if (old[i] > 1) {
				d->open[place(d, old[i] - 2)] = old[i];
				d->used++;
				d->live++;
			}
		free(old);
	}
	d->open[place(d, k)] = k + 2;
	d->used++;
	d->live++;
	return 0;
}

static bool set_remove(vd *d, uint64_t k)
{
	if (!d->cap)
		return false;
	size_t at = place(d, k);
	if (d->open[at] != k + 2)
		return false;
	d->open[at] = 1;
	d->live--;
	return true;
}

/* ---- rollups ---- */

static int first_block(vd *d, sw_error *err)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(
	    d->s->db, "SELECT (SELECT min(id) FROM rollup), (SELECT max(seq) FROM seal)", -1, &q,
	    NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		/* After pruning the first block is not 0; what it should be nobody else says. */
		d->block = sqlite3_column_int64(q, 0) / 8;
		d->last_seal = (uint64_t)sqlite3_column_int64(q, 1);
	}
	sqlite3_finalize(q);
	return rc == SQLITE_ROW ? 0 : st_sql_error(d->s, rc, "reading rollups", err);
}

static void put64(uint8_t *b, uint64_t x)
{
	for (int i = 7; i >= 0; i--, x >>= 8)
		b[i] = (uint8_t)x;
}

static int close_block(vd *d, uint64_t seq, sw_error *err)
{
	int code = 0;
	for (int i = 0; code == 0 && i < F_COUNT && d->facts.n; i++) {
		st_packed want, have;
		if (st_pack(&want, d->facts.v[i], d->facts.n) != 0)
			return sw_error_set(err, SW_ENOMEM, "out of memory");
		uint8_t head[32];
		put64(head, want.n);
		put64(head + 8, want.lo);
		put64(head + 16, want.hi);
		put64(head + 24, (uint64_t)want.width);
		sha256_update(&d->sum, sizeof head, head);
		if (want.bytes)
			sha256_update(&d->sum, want.bytes, want.data);
		int there = st_rollup_read(d->s, d->block, i, &have, err);
		bool clean = vf_total(d->v) == d->before;
		if (there == 0 && clean)
			vf_find(d->v, VF_MISSING, "rollup", seq, st_null(),
			        "block %lld, %s, is missing", (long long)d->block,
			        st_fact_names[i]);
		else if (there == SW_ECORRUPT ||
		         (there == 1 && clean &&
		          (have.n != want.n || have.lo != want.lo || have.hi != want.hi ||
		           have.width != want.width ||
		           (want.bytes && memcmp(have.data, want.data, want.bytes) != 0))))
			vf_find(d->v, VF_CHANGED, "rollup", seq, st_null(),
			        "block %lld, %s, is not what the rows say", (long long)d->block,
			        st_fact_names[i]);
		else if (there < 0 && there != SW_ECORRUPT)
			code = there;
		if (there == 1 && !clean)
			d->before = UINT64_MAX; /* rows are damaged: their rollup cannot fit */
		free(have.data);
		free(want.data);
	}
	if (d->facts.n)
		d->block++;
	d->facts.n = 0;
	return code;
}

static int close_segment(vd *d, uint64_t seq, const st_cell *c, sw_error *err)
{
	uint8_t sum[32];
	int code = close_block(d, seq, err);
	sha256_digest(&d->sum, 32, sum);
	if (code == 0 && vf_total(d->v) == d->before && c[C_SEAL_ROLLUP].n == 32 &&
	    memcmp(sum, c[C_SEAL_ROLLUP].p, 32) != 0)
		vf_find(d->v, VF_BAD_SEAL, "seal", seq, st_null(),
		        "its digest of the rollups does not fit");
	sha256_init(&d->sum);
	d->before = vf_total(d->v);
	return code;
}

/* ---- the file ---- */

#define TEXT1(x) #x
#define TEXT(x) TEXT1(x)

static int check_header(vd *d, sw_error *err)
{
	static const struct {
		const char *sql, *want, *what;
	} fields[] = {
	    {"PRAGMA user_version", TEXT(SW_STORE_SCHEMA), "the number of its schema"},
	    {"SELECT printf('0x%x', application_id) FROM pragma_application_id",
	     TEXT(SW_STORE_APPLICATION_ID), "the application it belongs to"},
	    {"PRAGMA encoding", "UTF-8", "the encoding of its text"},
	};
	int code = 0;
	for (size_t i = 0; code == 0 && i < sizeof fields / sizeof *fields; i++) {
		sqlite3_stmt *q = NULL;
		int rc = sqlite3_prepare_v2(d->s->db, fields[i].sql, -1, &q, NULL);
		if (rc == SQLITE_OK)
			rc = sqlite3_step(q);
		const char *have =
		    rc == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : NULL;
		if (rc != SQLITE_ROW)
			code = st_sql_error(d->s, rc, "reading the header", err);
		else if (!have && sqlite3_errcode(d->s->db) == SQLITE_NOMEM)
			code = sw_error_set(err, SW_ENOMEM, "out of memory");
		else if (!have || strcmp(have, fields[i].want) != 0)
			vf_find(d->v, VF_CHANGED, NULL, 0, st_null(),
			        "the file's header: %s is %.20s, not %s", fields[i].what,
			        have ? have : "", fields[i].want);
		sqlite3_finalize(q);
	}
	return code;
}

/* The schema must be the one this program creates, to the letter. */
static int check_schema(vd *d, sw_error *err)
{
	static const char sql[] = "SELECT type||' '||name||' '||tbl_name||' '||coalesce(sql,'')"
	                          " FROM sqlite_schema ORDER BY type, name";
	sqlite3 *m = NULL;
	sqlite3_stmt *a = NULL, *b = NULL;
	int rc = sqlite3_open(":memory:", &m);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(m, st_schema_sql, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(m, sql, -1, &a, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(d->s->db, sql, -1, &b, NULL);
	bool same = rc == SQLITE_OK;
	while (same) {
		int ra = sqlite3_step(a), rb = sqlite3_step(b);
		if (ra != SQLITE_ROW && ra != SQLITE_DONE)
			rc = ra;
		else if (rb != SQLITE_ROW && rb != SQLITE_DONE)
			rc = rb;
		if (ra != SQLITE_ROW || rb != SQLITE_ROW) {
			same = ra == rb;
			break;
		}
		st_cell x = st_column(a, 0), y = st_column(b, 0);
		same = x.n == y.n && memcmp(x.p, y.p, x.n) == 0;
	}
	sqlite3_finalize(a);
	sqlite3_finalize(b);
	sqlite3_close(m);
	if (rc != SQLITE_OK)
		return st_sql_error(d->s, rc, "reading the schema", err);
	if (!same)
		vf_find(d->v, VF_CHANGED, "sqlite_schema", 0, st_null(),
		        "tables or indexes are not as this program makes them");
	return 0;
}

int vd_new(vd **out, sw_store *s, vf *v, sw_error *err)
{
	vd *d = calloc(1, sizeof *d);
	if (!d)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	d->s = s;
	d->v = v;
	sha256_init(&d->sum);
	int code = check_header(d, err);
	if (code == 0)
		code = check_schema(d, err);
	d->begun = d->before = vf_total(v);
	if (code == 0)
		code = first_block(d, err);
	if (code != 0) {
		vd_free(d);
		return code;
	}
	*out = d;
	return 0;
}

void vd_free(vd *d)
{
	if (!d)
		return;
	st_facts_free(&d->facts);
	free(d->open);
	free(d);
}

int vd_row(vd *d, st_table t, uint64_t seq, const st_cell *c, sw_error *err)
{
	if (seq <= d->v->pruned_to)
		return 0;
	if (t == T_SEAL)
		return close_segment(d, seq, c, err);
	if (t != T_RECORD)
		return 0;
	int64_t kind = c[C_REC_KIND].i;
	int code = 0;
	if (kind == REC_BEGIN) {
		code = set_add(d, seq);
	} else {
		uint64_t begin = (uint64_t)c[C_REC_BEGIN_SEQ].i;
		if (kind == REC_END && !set_remove(d, begin) && begin > d->v->pruned_to &&
		    vf_total(d->v) == d->before)
			vf_find(d->v, VF_MISSING, "record", seq, st_null(),
			        "the begin of this end, row %llu", (unsigned long long)begin);
		uint64_t f[F_COUNT] = {seq,
		                       (uint64_t)c[C_REC_STARTED].i,
		                       (uint64_t)c[C_REC_SHAPE].i,
		                       (uint64_t)c[C_REC_ORIGIN].i,
		                       (uint64_t)c[C_REC_SESSION].i,
		                       (uint64_t)c[C_REC_RESOURCE].i};
		if (seq < d->last_seal) {
			code = st_facts_add(&d->facts, f);
			if (code == 0 && d->facts.n == ST_BLOCK)
				code = close_block(d, seq, err);
		}
	}
	return code == SW_ENOMEM ? sw_error_set(err, code, "out of memory") : code;
}

/* ---- after the last row ---- */

static int each_row(vd *d, const char *sql, int (*each)(vd *d, sqlite3_stmt *q), sw_error *err)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(d->s->db, sql, -1, &q, NULL);
	while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW)
		rc = each(d, q) == 0 ? SQLITE_OK : SQLITE_NOMEM;
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? 0 : st_sql_error(d->s, rc, "verifying", err);
}

static int extra_rollup(vd *d, sqlite3_stmt *q)
{
	vf_find(d->v, VF_CHANGED, "rollup", 0, st_null(), "row %lld belongs to no segment",
	        (long long)sqlite3_column_int64(q, 0));
	return 0;
}

static int one_unfinished(vd *d, sqlite3_stmt *q)
{
	uint64_t seq = (uint64_t)sqlite3_column_int64(q, 0);
	if (!set_remove(d, seq))
		vf_find(d->v, VF_CHANGED, "unfinished", seq, st_null(),
		        "it lists a row that was not begun or has ended");
	return 0;
}

static int one_kept(vd *d, sqlite3_stmt *q)
{
	uint8_t sum[32];
	st_cell data = st_column(q, 2), want = st_column(q, 3);
	uint64_t seq = (uint64_t)sqlite3_column_int64(q, 0);
	st_kept_digest(sum, (uint64_t)sqlite3_column_int64(q, 1), data.p, data.n);
	if (want.n != 32 || memcmp(want.p, sum, 32) != 0)
		vf_find(d->v, VF_CHANGED, "kept", seq, st_null(),
		        "the kept output is not the recorded one");
	return 0;
}

static int lost_kept(vd *d, sqlite3_stmt *q)
{
	vf_find(d->v, VF_MISSING, "kept", (uint64_t)sqlite3_column_int64(q, 0), st_null(),
	        "the kept output of this record");
	return 0;
}

static int one_state(vd *d, sqlite3_stmt *q)
{
	const vf *v = d->v;
	if (sqlite3_column_int64(q, 0) != (int64_t)v->sealed_seq ||
	    sqlite3_column_int64(q, 1) != v->sealed_ns ||
	    sqlite3_column_int64(q, 2) != v->segment_no ||
	    sqlite3_column_int64(q, 3) != v->unsealed_ns)
		vf_find(d->v, VF_CHANGED, "state", 0, st_null(),
		        "its seal counters are not the chain's");
	return 0;
}

static int extra_state(vd *d, sqlite3_stmt *q)
{
	vf_find(d->v, VF_CHANGED, "state", 0, st_null(), "a second head row, number %lld",
	        (long long)sqlite3_column_int64(q, 0));
	return 0;
}

static int one_integrity(vd *d, sqlite3_stmt *q)
{
	st_cell c = st_column(q, 0);
	if (c.n != 2 || memcmp(c.p, "ok", 2) != 0)
		vf_find(d->v, VF_CHANGED, NULL, 0, st_null(), "the file itself is damaged: %.*s",
		        (int)(c.n < 200 ? c.n : 200), (const char *)c.p);
	return 0;
}

int vd_end(vd *d, sw_error *err)
{
	char sql[100];
	bool clean = vf_total(d->v) == d->begun;
	snprintf(sql, sizeof sql, "SELECT id FROM rollup WHERE id<0 OR id>=%lld OR id%%8>=%d",
	         (long long)d->block * 8, F_COUNT);
	int code = clean ? each_row(d, sql, extra_rollup, err) : 0;
	if (code == 0 && clean)
		code = each_row(d, "SELECT seq FROM unfinished ORDER BY seq", one_unfinished, err);
	for (size_t i = 0; code == 0 && clean && i < d->cap; i++)
		if (d->open[i] > 1)
			vf_find(d->v, VF_MISSING, "unfinished", d->open[i] - 2, st_null(),
			        "an invocation that has not ended is not listed");
	if (code == 0)
		code = each_row(d,
		                "SELECT k.seq, k.cut, k.data, r.kept_digest FROM kept k"
		                " LEFT JOIN record r ON r.seq=k.seq",
		                one_kept, err);
	if (code == 0 && clean)
		code = each_row(d,
		                "SELECT r.seq FROM record r WHERE r.kept_digest IS NOT NULL AND"
		                " NOT EXISTS(SELECT 1 FROM kept k WHERE k.seq=r.seq)",
		                lost_kept, err);
	if (code == 0)
		code = each_row(d, "SELECT id FROM state WHERE id<>1", extra_state, err);
	if (code == 0 && clean)
		code = each_row(
		    d, "SELECT sealed_seq, sealed_ns, segments, unsealed_ns FROM state WHERE id=1",
		    one_state, err);
	if (code == 0)
		code = each_row(d, "PRAGMA integrity_check(10)", one_integrity, err);
	return code;
}
