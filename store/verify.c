/*
 * verify.c - verifying a trail: all tables merged by chain row, in one snapshot.
 */
#include <stdlib.h>
#include <string.h>

#include "verify_int.h"

struct cursor {
	sqlite3_stmt *q;
	uint64_t seq;
	bool there;
};

static int advance(sw_store *s, struct cursor *c, sw_error *err)
{
	int rc = sqlite3_step(c->q);
	c->there = rc == SQLITE_ROW;
	if (c->there)
		c->seq = (uint64_t)sqlite3_column_int64(c->q, 0);
	return rc == SQLITE_ROW || rc == SQLITE_DONE
	           ? 0
	           : st_sql_error(s, rc, "reading the chain", err);
}

int vf_merge(sw_store *s, unsigned tables,
             int (*each)(void *arg, st_table t, uint64_t seq, const st_cell *cells, st_cell hash),
             void *arg, sw_error *err)
{
	struct cursor c[T_COUNT] = {{0}};
	int code = 0;
	for (int t = 0; t < T_COUNT && code == 0; t++) {
		char order[40];
		if (!(tables & 1u << t))
			continue;
		snprintf(order, sizeof order, "ORDER BY %s", st_tables[t].order);
		char *sql = st_select(&st_tables[t], order);
		int rc = sql ? sqlite3_prepare_v2(s->db, sql, -1, &c[t].q, NULL) : SQLITE_NOMEM;
		sqlite3_free(sql);
		code =
		    rc == SQLITE_OK ? advance(s, &c[t], err) : st_sql_error(s, rc, "reading", err);
	}
	while (code == 0) {
		int best = -1;
		for (int t = 0; t < T_COUNT; t++)
			if (c[t].there && (best < 0 || c[t].seq < c[best].seq))
				best = t;
		if (best < 0)
			break;
		st_cell cells[ST_COLS_MAX];
		int n = st_tables[best].n;
		for (int i = 0; i < n; i++)
			cells[i] = st_column(c[best].q, i + 1);
		if (each(arg, (st_table)best, c[best].seq, cells, st_column(c[best].q, n + 1)) != 0)
			break;
		code = advance(s, &c[best], err);
	}
	for (int t = 0; t < T_COUNT; t++)
		sqlite3_finalize(c[t].q);
	return code;
}

struct walk {
	vf *v;
	vd *d;
	int code;
	sw_error *err;
	uint64_t total;
};

static int walk_row(void *arg, st_table t, uint64_t seq, const st_cell *cells, st_cell hash)
{
	struct walk *w = arg;
	vf_row(w->v, t, seq, cells, hash);
	w->code = vd_row(w->d, t, seq, cells, w->err);
	if (w->v->o->progress && w->v->rows % 16384 == 0)
		w->v->o->progress(w->v->o->arg, w->v->rows, w->total);
	return w->code;
}

/* The newest pruning, needed before the first row. */
int vf_read_prune(sw_store *s, vf *v, sw_error *err)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(
	    s->db, "SELECT to_seq, resume, dict FROM prune ORDER BY to_seq DESC, seq DESC LIMIT 1",
	    -1, &q, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW && sqlite3_column_bytes(q, 1) == 32 &&
	    sqlite3_column_bytes(q, 2) >= 32)
		vf_pruned(v, (uint64_t)sqlite3_column_int64(q, 0), sqlite3_column_blob(q, 1),
		          sqlite3_column_blob(q, 2));
	sqlite3_finalize(q);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : st_sql_error(s, rc, "reading", err);
}

static int walk(sw_store *s, vf *v, sw_error *err)
{
	vd *d = NULL;
	st_head h = {0};
	sw_error e = {0};
	int code = vf_read_prune(s, v, err);
	if (code == 0)
		code = vd_new(&d, s, v, err);
	bool has_head = false;
	if (code == 0) {
		int got = st_head_load(s, &h, &e);
		has_head = got == 0;
		if (!has_head && got != SW_ECORRUPT)
			code = got;
	}
	if (code == 0) {
		struct walk w = {v, d, 0, err, h.seq};
		code = vf_merge(s, VF_ALL_TABLES, walk_row, &w, err);
		if (code == 0)
			code = w.code;
	}
	if (code == 0) {
		vf_end(v, has_head ? h.seq : 0, has_head ? h.hash : NULL);
		if (!has_head)
			vf_find(v, VF_MISSING, "state", 0, st_null(), "the head row is missing");
		code = vd_end(d, err);
	}
	vd_free(d);
	if (code != 0 && e.code && err && !err->code)
		*err = e;
	return code;
}

int sw_verify_unopened(const char *path, const sw_error *why, const sw_verify_options *o,
                       int *status, json_t **out, sw_error *err)
{
	vf *v = malloc(sizeof *v);
	int code = v ? vf_init(v, o, err) : sw_error_set(err, SW_ENOMEM, "out of memory");
	if (code == 0)
		code = vf_pin(v, path, err);
	if (code == 0) {
		vf_find(v, why->code == SW_ENOTFOUND ? VF_MISSING : VF_CHANGED, NULL, 0, st_null(),
		        "%s%s%s", why->what, *why->why ? ": " : "", why->why);
		*status = vf_judgement(v);
		*out = vf_report(v, *status);
	}
	if (v)
		vf_free(v);
	free(v);
	return code;
}

int sw_store_verify(sw_store *s, const sw_verify_options *o, int *status, json_t **out,
                    sw_error *err)
{
	vf *v = malloc(sizeof *v);
	sw_error e = {0};
	if (!v)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	int code = vf_init(v, o, err);
	if (code != 0) {
		free(v);
		return code;
	}
	code = vf_pin(v, s->path, err);
	if (code == 0)
		code = st_read_begin(s, err);
	if (code == 0) {
		code = st_read_end(s, walk(s, v, &e), &e);
		/* A page that cannot be read is a finding, not a failure to judge. */
		if (code == SW_ECORRUPT) {
			vf_find(v, VF_CHANGED, NULL, v->last_seq + 1, st_null(),
			        "the file itself is damaged after row %llu: %s: %s",
			        (unsigned long long)v->last_seq, e.what, e.why);
			code = 0;
		} else if (code != 0 && err) {
			*err = e;
		}
	}
	if (code == 0) {
		*status = vf_judgement(v);
		*out = vf_report(v, *status);
	}
	vf_free(v);
	free(v);
	return code;
}
