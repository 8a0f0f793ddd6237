/*
 * query.c - filters, and the pass over the packed facts that every report makes.
 */
#include <stdlib.h>
#include <string.h>

#include "store_int.h"

static int set_text(char **field, const char *value, sw_error *err)
{
	char *z = strdup(value);
	if (!z)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	free(*field);
	*field = z;
	return 0;
}

static int set_label(sw_query *q, const char *value, sw_error *err)
{
	const char *eq = strchr(value, '=');
	if (!eq || eq == value)
		return st_err(err, SW_EINVAL, "label", value, "write key=value", "not a label");
	if (q->n_labels == SW_RECORD_LABELS_MAX)
		return st_err(err, SW_ETOOBIG, "label", NULL, NULL, "too many labels");
	char *k = strndup(value, (size_t)(eq - value)), *v = strdup(eq + 1);
	if (!k || !v) {
		free(k);
		free(v);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	q->label_key[q->n_labels] = k;
	q->label_value[q->n_labels++] = v;
	return 0;
}

static int set_verdict(sw_query *q, const char *value, sw_error *err)
{
	sw_record_verdict v;
	if (strcmp(value, "unfinished") != 0 &&
	    sw_record_verdict_parse(value, strlen(value), &v) != 0)
		return st_err(
		    err, SW_EINVAL, "verdict", value,
		    "one of ok, runner_failed, sandbox_denied, sandbox_unavailable, unfinished",
		    "not a verdict");
	return set_text(&q->verdict, value, err);
}

int sw_query_set(sw_query *q, const char *key, const char *value, int64_t now, sw_error *err)
{
	static const struct {
		const char *key;
		size_t at;
	} texts[] = {
	    {"backend", offsetof(sw_query, backend)}, {"level", offsetof(sw_query, level)},
	    {"cause", offsetof(sw_query, cause)},     {"session", offsetof(sw_query, session)},
	    {"actor", offsetof(sw_query, actor)},     {"device", offsetof(sw_query, device)},
	    {"cursor", offsetof(sw_query, cursor)}};
	if (!q || !key || !value)
		return sw_error_set(err, SW_EINVAL, "no filter");
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (strcmp(texts[i].key, key) == 0)
			return set_text((char **)((char *)q + texts[i].at), value, err);
	if (!strcmp(key, "since"))
		return sw_time_parse(value, now, &q->since_ns, err);
	if (!strcmp(key, "until"))
		return sw_time_parse(value, now, &q->until_ns, err);
	if (!strcmp(key, "verdict"))
		return set_verdict(q, value, err);
	if (!strcmp(key, "label"))
		return set_label(q, value, err);
	if (!strcmp(key, "limit")) {
		char *end;
		unsigned long n = strtoul(value, &end, 10);
		if (*end || end == value || *value == '-' || n < 1 || n > SW_QUERY_LIMIT_MAX)
			return st_err(err, SW_EINVAL, "limit", value, "a number from 1 to 10000",
			              "not a limit");
		q->limit = (uint32_t)n;
		return 0;
	}
	return st_err(
	    err, SW_ENOTFOUND, key, NULL,
	    "since, until, backend, verdict, level, cause, session, actor, device, label, "
	    "limit or cursor",
	    "no such filter");
}

void sw_query_free(sw_query *q)
{
	if (!q)
		return;
	char *all[] = {q->backend, q->verdict, q->level,  q->cause,
	               q->session, q->actor,   q->device, q->cursor};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
	for (size_t i = 0; i < q->n_labels; i++) {
		free(q->label_key[i]);
		free(q->label_value[i]);
	}
	memset(q, 0, sizeof *q);
}

bool st_labels_match(const char *labels, size_t n, const sw_query *q)
{
	json_t *o = json_loadb(labels, n, JSON_ALLOW_NUL, NULL);
	bool all = json_is_object(o);
	for (size_t i = 0; all && i < q->n_labels; i++) {
		json_t *v = json_object_get(o, q->label_key[i]);
		all = json_is_string(v) && strcmp(json_string_value(v), q->label_value[i]) == 0;
	}
	json_decref(o);
	return all;
}

static bool same(sqlite3_stmt *q, int col, const char *want)
{
	st_cell c = st_column(q, col);
	return !want || (c.type == CELL_TEXT && c.n == strlen(want) && memcmp(c.p, want, c.n) == 0);
}

static bool level_matches(sqlite3_stmt *q, int col, const char *want)
{
	if (!want || same(q, col, want))
		return true;
	const sw_level_def *a = sw_level_find(sw_builtin_levels(), sw_str_of(want));
	st_cell c = st_column(q, col);
	const sw_level_def *b =
	    c.type == CELL_TEXT ? sw_level_find(sw_builtin_levels(), (sw_str){c.p, c.n}) : NULL;
	return a && a == b;
}

static int grow(uint8_t **map, size_t *n, int64_t id)
{
	if ((size_t)id < *n)
		return 0;
	size_t want = *n ? *n : 256;
	while (want <= (size_t)id)
		want *= 2;
	uint8_t *p = realloc(*map, want);
	if (!p)
		return SW_ENOMEM;
	memset(p + *n, 0, want - *n);
	*map = p;
	*n = want;
	return 0;
}

static int match_shapes(st_filter *f, sw_store *s, sw_error *err)
{
	const sw_query *q = f->q;
	sqlite3_stmt *st = NULL;
	int code = grow(&f->shape, &f->n_shape, 0);
	int rc = sqlite3_prepare_v2(
	    s->db, "SELECT id, backend, verdict, effective, cause FROM shape", -1, &st, NULL);
	while (rc == SQLITE_OK && code == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		int64_t id = sqlite3_column_int64(st, 0);
		if (id < 0 || id > 100000000)
			code = SW_ECORRUPT;
		else
			code = grow(&f->shape, &f->n_shape, id);
		if (code == 0)
			f->shape[id] = same(st, 1, q->backend) && same(st, 2, q->verdict) &&
			               level_matches(st, 3, q->level) && same(st, 4, q->cause);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	if (code == SW_ENOMEM)
		return sw_error_set(err, code, "out of memory");
	return rc == SQLITE_DONE || code != 0 ? code : st_sql_error(s, rc, "reading shapes", err);
}

static int match_origins(st_filter *f, sw_store *s, sw_error *err)
{
	const sw_query *q = f->q;
	sqlite3_stmt *st = NULL;
	int code = grow(&f->origin, &f->n_origin, 0);
	int rc = sqlite3_prepare_v2(s->db, "SELECT id, device, actor, labels FROM origin", -1, &st,
	                            NULL);
	while (rc == SQLITE_OK && code == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		int64_t id = sqlite3_column_int64(st, 0);
		st_cell labels = st_column(st, 3);
		if (id < 0 || id > 100000000)
			code = SW_ECORRUPT;
		else
			code = grow(&f->origin, &f->n_origin, id);
		if (code == 0 && same(st, 1, q->device) && same(st, 2, q->actor)) {
			if (!q->n_labels)
				f->origin[id] = 1;
			else if (labels.n == 7 && memcmp(labels.p, "(other)", 7) == 0)
				f->origin[id] = 2;
			else
				f->origin[id] = st_labels_match(labels.p, labels.n, q);
		}
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	if (code == SW_ENOMEM)
		return sw_error_set(err, code, "out of memory");
	return rc == SQLITE_DONE || code != 0 ? code : st_sql_error(s, rc, "reading origins", err);
}

static int match_session(st_filter *f, sw_store *s, sw_error *err)
{
	uint8_t key[16];
	st_cell value = st_textz(f->q->session);
	st_cells_digest(key, &value, 1);
	sqlite3_stmt *q = st_stmt(s, Q_FIND_DICT + T_SESSION, err);
	if (!q)
		return SW_EIO;
	sqlite3_bind_blob64(q, 1, key, 16, SQLITE_STATIC);
	int rc = sqlite3_step(q);
	f->by_session = true;
	f->nothing |= rc == SQLITE_DONE;
	if (rc == SQLITE_ROW)
		f->session = (uint64_t)sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	return rc == SQLITE_ROW || rc == SQLITE_DONE
	           ? 0
	           : st_sql_error(s, rc, "finding a session", err);
}

int st_filter_init(st_filter *f, sw_store *s, const sw_query *q, sw_error *err)
{
	static const sw_query none = {0};
	memset(f, 0, sizeof *f);
	f->q = q ? q : &none;
	q = f->q;
	f->since = q->since_ns ? q->since_ns : INT64_MIN;
	f->until = q->until_ns ? q->until_ns : INT64_MAX;
	int code = 0;
	if (q->backend || q->verdict || q->level || q->cause)
		code = match_shapes(f, s, err);
	if (code == 0 && (q->device || q->actor || q->n_labels))
		code = match_origins(f, s, err);
	if (code == 0 && q->session)
		code = match_session(f, s, err);
	if (code != 0)
		st_filter_free(f);
	return code;
}

void st_filter_free(st_filter *f)
{
	free(f->shape);
	free(f->origin);
	f->shape = f->origin = NULL;
}

static bool row_labels_match(sw_store *s, uint64_t seq, const sw_query *q)
{
	sqlite3_stmt *st = NULL;
	bool yes = false;
	if (sqlite3_prepare_v2(
	        s->db,
	        "SELECT coalesce(e.labels, b.labels) FROM record e LEFT JOIN record b"
	        " ON b.seq=e.begin_seq WHERE e.seq=?1",
	        -1, &st, NULL) == SQLITE_OK)
		sqlite3_bind_int64(st, 1, (int64_t)seq);
	if (st_row(s, st)) {
		st_cell c = st_column(st, 0);
		yes = c.type == CELL_TEXT && st_labels_match(c.p, c.n, q);
	}
	sqlite3_finalize(st);
	return yes;
}

bool st_passes(sw_store *s, const st_filter *f, const st_fact *x)
{
	if (f->nothing || x->time < f->since || x->time >= f->until)
		return false;
	if (f->shape && (x->shape >= f->n_shape || !f->shape[x->shape]))
		return false;
	if (f->by_session && x->session != f->session)
		return false;
	if (f->origin) {
		if (x->origin >= f->n_origin || !f->origin[x->origin])
			return false;
		if (f->origin[x->origin] == 2)
			return row_labels_match(s, x->seq, f->q);
	}
	return true;
}

/* Which columns a pass must unpack. */
static unsigned columns(const st_filter *f, unsigned need)
{
	if (f->shape)
		need |= 1u << F_SHAPE;
	if (f->origin)
		need |= 1u << F_ORIGIN | (f->q->n_labels ? 1u << F_SEQ : 0);
	if (f->by_session)
		need |= 1u << F_SESSION;
	return need;
}

struct block {
	uint64_t v[F_COUNT][ST_BLOCK];
	size_t n;
	bool skip;
};

static int load_block(sw_store *s, const st_filter *f, unsigned need, int64_t id, struct block *b,
                      sw_error *err)
{
	b->n = 0;
	b->skip = false;
	bool timed = f->since != INT64_MIN || f->until != INT64_MAX;
	for (int i = 0; i < F_COUNT; i++) {
		/* Time decides first whether the rest is read at all. */
		int fact = i == 0 ? F_TIME : i <= F_TIME ? i - 1 : i;
		st_packed p;
		bool wanted = need >> fact & 1;
		if (!wanted && !(fact == F_TIME && timed))
			continue;
		int there = st_rollup_read(s, id, fact, &p, err);
		if (there < 0)
			return there;
		if (there == 0) {
			b->n = 0;
			b->skip = true;
			return 0;
		}
		if (b->n && p.n != b->n) {
			free(p.data);
			return st_err(err, SW_ECORRUPT, s->path,
			              "columns of a rollup differ in length",
			              "run `sandwitness verify`", "the audit trail is damaged");
		}
		b->n = p.n;
		if (fact == F_TIME && timed &&
		    ((int64_t)p.hi < f->since || (int64_t)p.lo >= f->until)) {
			free(p.data);
			b->skip = true;
			return 0;
		}
		st_unpack(b->v[fact], &p);
		free(p.data);
	}
	return 0;
}

static void fact_of(const struct block *b, size_t i, unsigned have, const st_filter *f, st_fact *x)
{
	x->seq = have & 1u << F_SEQ ? b->v[F_SEQ][i] : 0;
	/* Not read: then there is no bound on it either. */
	x->time = have & 1u << F_TIME ? (int64_t)b->v[F_TIME][i] : f->since > 0 ? f->since : 0;
	x->shape = have & 1u << F_SHAPE ? (uint32_t)b->v[F_SHAPE][i] : 0;
	x->origin = have & 1u << F_ORIGIN ? (uint32_t)b->v[F_ORIGIN][i] : 0;
	x->session = have & 1u << F_SESSION ? b->v[F_SESSION][i] : 0;
	x->resource = have & 1u << F_RESOURCE ? b->v[F_RESOURCE][i] : 0;
}

static int block_range(sw_store *s, int64_t *lo, int64_t *hi, sw_error *err)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(
	    s->db, "SELECT (SELECT min(id) FROM rollup), (SELECT max(id) FROM rollup)", -1, &q,
	    NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	*lo = 0;
	*hi = -1;
	if (rc == SQLITE_ROW && sqlite3_column_type(q, 0) == SQLITE_INTEGER) {
		*lo = sqlite3_column_int64(q, 0) / 8;
		*hi = sqlite3_column_int64(q, 1) / 8;
	}
	sqlite3_finalize(q);
	return rc == SQLITE_ROW ? 0 : st_sql_error(s, rc, "reading rollups", err);
}

static void row_fact(sqlite3_stmt *q, st_fact *x)
{
	x->seq = (uint64_t)sqlite3_column_int64(q, 0);
	x->time = sqlite3_column_int64(q, 1);
	x->shape = (uint32_t)sqlite3_column_int64(q, 2);
	x->origin = (uint32_t)sqlite3_column_int64(q, 3);
	x->session = (uint64_t)sqlite3_column_int64(q, 4);
	x->resource = (uint64_t)sqlite3_column_int64(q, 5);
}

int st_scan(sw_store *s, const st_filter *f, unsigned need,
            int (*each)(void *arg, const st_fact *x), void *arg, sw_error *err)
{
	st_head h;
	int64_t lo, hi;
	int code = st_head_load(s, &h, err);
	if (code == 0)
		code = block_range(s, &lo, &hi, err);
	if (code != 0 || f->nothing)
		return code;
	bool timed = f->since != INT64_MIN || f->until != INT64_MAX;
	unsigned have = columns(f, need) | (timed ? 1u << F_TIME : 0);
	struct block *b = malloc(sizeof *b);
	if (!b)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	bool stop = false;
	st_fact x;
	for (int64_t id = lo; id <= hi && code == 0 && !stop; id++) {
		code = load_block(s, f, have, id, b, err);
		if (code != 0 || b->skip)
			continue;
		for (size_t i = 0; i < b->n && !stop; i++) {
			fact_of(b, i, have, f, &x);
			if (st_passes(s, f, &x))
				stop = each(arg, &x) != 0;
		}
	}
	free(b);
	if (code != 0 || stop)
		return code;
	sqlite3_stmt *q = st_stmt(s, Q_FACTS, err);
	if (!q)
		return SW_EIO;
	sqlite3_bind_int64(q, 1, (int64_t)h.sealed_seq + 1);
	sqlite3_bind_int64(q, 2, (int64_t)h.seq);
	int rc = SQLITE_DONE;
	while (!stop && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		row_fact(q, &x);
		if (st_passes(s, f, &x))
			stop = each(arg, &x) != 0;
	}
	sqlite3_reset(q);
	return stop || rc == SQLITE_DONE ? 0 : st_sql_error(s, rc, "reading rows", err);
}

/* ---- newest first ---- */

/* Invocations that have not ended, newest first, merged in by chain row. */
struct open_rows {
	sqlite3_stmt *q;
	st_fact x;
	bool there;
};

static int open_next(sw_store *s, struct open_rows *o, sw_error *err)
{
	if (!o->q)
		return 0;
	int rc = sqlite3_step(o->q);
	o->there = rc == SQLITE_ROW;
	if (o->there)
		row_fact(o->q, &o->x);
	return rc == SQLITE_ROW || rc == SQLITE_DONE
	           ? 0
	           : st_sql_error(s, rc, "reading unfinished", err);
}

static int open_start(sw_store *s, struct open_rows *o, uint64_t end, sw_error *err)
{
	int rc = sqlite3_prepare_v2(s->db,
	                            "SELECT r.seq, r.started_ns, r.shape, r.origin, r.session,"
	                            " r.resource FROM unfinished u JOIN record r ON r.seq=u.seq"
	                            " WHERE u.seq<=?1 ORDER BY u.seq DESC",
	                            -1, &o->q, NULL);
	if (rc != SQLITE_OK)
		return st_sql_error(s, rc, "reading unfinished", err);
	sqlite3_bind_int64(o->q, 1, (int64_t)end);
	return open_next(s, o, err);
}

struct back {
	sw_store *s;
	const st_filter *f;
	struct open_rows open;
	int (*each)(void *arg, const st_fact *x);
	void *arg;
	bool stop;
	sw_error *err;
};

/* Gives x, after every unfinished one that was recorded later. */
static int give(struct back *b, const st_fact *x)
{
	int code = 0;
	while (code == 0 && !b->stop && b->open.there && (!x || b->open.x.seq > x->seq)) {
		if (st_passes(b->s, b->f, &b->open.x))
			b->stop = b->each(b->arg, &b->open.x) != 0;
		code = open_next(b->s, &b->open, b->err);
	}
	if (code == 0 && !b->stop && x && st_passes(b->s, b->f, x))
		b->stop = b->each(b->arg, x) != 0;
	return code;
}

static int tail_back(struct back *b, uint64_t first, uint64_t last)
{
	sqlite3_stmt *q = NULL;
	st_fact x;
	int code = 0;
	int rc = sqlite3_prepare_v2(
	    b->s->db,
	    "SELECT seq, started_ns, shape, origin, session, resource FROM record"
	    " WHERE seq BETWEEN ?1 AND ?2 AND kind<>1 ORDER BY seq DESC",
	    -1, &q, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(q, 1, (int64_t)first);
		sqlite3_bind_int64(q, 2, (int64_t)last);
		while (code == 0 && !b->stop && (rc = sqlite3_step(q)) == SQLITE_ROW) {
			row_fact(q, &x);
			code = give(b, &x);
		}
	}
	if (code == 0 && !b->stop && rc != SQLITE_DONE)
		code = st_sql_error(b->s, rc, "reading rows", b->err);
	sqlite3_finalize(q);
	return code;
}

int st_scan_back(sw_store *s, const st_filter *f, uint64_t before, bool with_open,
                 int (*each)(void *arg, const st_fact *x), void *arg, sw_error *err)
{
	struct back b = {s, f, {NULL, {0}, false}, each, arg, false, err};
	st_head h;
	int64_t lo, hi;
	int code = st_head_load(s, &h, err);
	if (code == 0)
		code = block_range(s, &lo, &hi, err);
	if (code != 0 || f->nothing)
		return code;
	uint64_t end = before ? before - 1 : h.seq;
	if (with_open)
		code = open_start(s, &b.open, end, err);
	if (code == 0 && end > h.sealed_seq)
		code = tail_back(&b, h.sealed_seq + 1, end);
	unsigned have = columns(f, 1u << F_SEQ | 1u << F_TIME);
	struct block *k = code == 0 ? malloc(sizeof *k) : NULL;
	if (code == 0 && !k)
		code = sw_error_set(err, SW_ENOMEM, "out of memory");
	for (int64_t id = hi; id >= lo && code == 0 && !b.stop; id--) {
		code = load_block(s, f, have, id, k, err);
		if (code != 0 || k->skip || k->v[F_SEQ][0] > end)
			continue;
		for (size_t i = k->n; i-- > 0 && code == 0 && !b.stop;) {
			st_fact x;
			if (k->v[F_SEQ][i] > end)
				continue;
			fact_of(k, i, have, f, &x);
			code = give(&b, &x);
		}
	}
	free(k);
	if (code == 0 && !b.stop)
		code = give(&b, NULL);
	sqlite3_finalize(b.open.q);
	return code;
}

int st_scan_open(sw_store *s, const st_filter *f, int (*each)(void *arg, const st_fact *x),
                 void *arg, sw_error *err)
{
	struct back b = {s, f, {NULL, {0}, false}, each, arg, false, err};
	int code = f->nothing ? 0 : open_start(s, &b.open, INT64_MAX, err);
	if (code == 0)
		code = give(&b, NULL);
	sqlite3_finalize(b.open.q);
	return code;
}
