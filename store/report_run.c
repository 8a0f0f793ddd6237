/*
 * report_run.c - running a named report; summary, unfinished, counts, head.
 */
#include <stdlib.h>
#include <string.h>

#include "report_int.h"

struct sums {
	const rp_shapes *shapes;
	uint64_t total, bits[RC_BITS];
	int64_t first, last;
};

static int sum_one(void *arg, const st_fact *x)
{
	struct sums *t = arg;
	unsigned cls = x->shape < t->shapes->n ? t->shapes->class[x->shape] : 0;
	if (!t->total || x->time < t->first)
		t->first = x->time;
	if (!t->total || x->time > t->last)
		t->last = x->time;
	t->total++;
	for (int i = 0; i < RC_BITS; i++)
		t->bits[i] += cls >> i & 1;
	return 0;
}

static int count_open(void *arg, const st_fact *x)
{
	(void)x;
	++*(uint64_t *)arg;
	return 0;
}

/* Unfinished ones that pass the filter: a pass over a small table. */
static int open_count(sw_store *s, const st_filter *f, uint64_t *n, sw_error *err)
{
	sqlite3_stmt *q = NULL;
	*n = 0;
	if (f->since == INT64_MIN && f->until == INT64_MAX && !f->shape && !f->origin &&
	    !f->by_session && !f->nothing) {
		int rc = sqlite3_prepare_v2(s->db, "SELECT count(*) FROM unfinished", -1, &q, NULL);
		if (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW)
			*n = (uint64_t)sqlite3_column_int64(q, 0);
		sqlite3_finalize(q);
		return rc == SQLITE_ROW ? 0 : st_sql_error(s, rc, "counting", err);
	}
	return st_scan_open(s, f, count_open, n, err);
}

static void name_value(json_t *rows, const char *name, json_t *v)
{
	json_t *r = json_object();
	json_object_set_new(r, "name", json_string(name));
	json_object_set_new(r, "value", v);
	json_array_append_new(rows, r);
}

int rp_summary(sw_store *s, const st_filter *f, json_t *rows, sw_error *err)
{
	static const struct {
		const char *name;
		int bit;
	} lines[] = {{"ok", 0},
	             {"runner_failed", 1},
	             {"sandbox_denied", 2},
	             {"sandbox_unavailable", 3},
	             {"contained", 7},
	             {"downgrades", 4},
	             {"exempt", 8},
	             {"unexplained", 5},
	             {"violations", 6},
	             {"basis_unknown", 9}};
	rp_shapes shapes;
	uint64_t open = 0;
	int code = rp_shapes_load(&shapes, s, err);
	if (code != 0)
		return code;
	struct sums t = {.shapes = &shapes};
	code = st_scan(s, f, 1u << F_SHAPE | 1u << F_TIME, sum_one, &t, err);
	if (code == 0)
		code = open_count(s, f, &open, err);
	rp_shapes_free(&shapes);
	if (code != 0)
		return code;
	name_value(rows, "invocations", json_integer((json_int_t)t.total));
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		name_value(rows, lines[i].name, json_integer((json_int_t)t.bits[lines[i].bit]));
	name_value(rows, "unfinished", json_integer((json_int_t)open));
	name_value(rows, "first", t.total ? rp_time(t.first) : json_null());
	name_value(rows, "last", t.total ? rp_time(t.last) : json_null());
	return 0;
}

static int add_open(void *arg, json_t *o)
{
	static const char *const keys[] = {"id",      "started_at", "backend", "device",
	                                   "session", "actor",      "command"};
	json_t *row = json_object();
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		json_object_set(row, keys[i], json_object_get(o, keys[i]));
	json_array_append_new(arg, row);
	return 0;
}

int rp_unfinished(sw_store *s, const sw_query *q, json_t *rows, char **next, sw_error *err)
{
	sw_query x = q ? *q : (sw_query){0};
	char open[] = "unfinished";
	/* A verdict filter of its own: only unfinished ones have this "verdict". */
	if (x.verdict && strcmp(x.verdict, open) != 0)
		return 0;
	x.verdict = open;
	return sw_store_invocations(s, &x, add_open, rows, next, err);
}

static json_t *filters_json(const sw_query *q)
{
	json_t *o = json_object();
	if (!q)
		return o;
	const struct {
		const char *name, *value;
	} f[] = {{"backend", q->backend}, {"verdict", q->verdict}, {"level", q->level},
	         {"cause", q->cause},     {"session", q->session}, {"actor", q->actor},
	         {"device", q->device}};
	for (size_t i = 0; i < sizeof f / sizeof *f; i++)
		if (f[i].value)
			json_object_set_new(o, f[i].name, sw_json_text(sw_str_of(f[i].value)));
	if (q->n_labels) {
		json_t *l = json_object();
		for (size_t i = 0; i < q->n_labels; i++)
			json_object_set_new(l, q->label_key[i],
			                    sw_json_text(sw_str_of(q->label_value[i])));
		json_object_set_new(o, "labels", l);
	}
	return o;
}

static json_t *envelope(const rp_report *r, const sw_query *q, json_t *rows, const char *next,
                        const sw_store_head *h)
{
	json_t *o = json_object(), *columns = json_array();
	for (int i = 0; i < r->n_columns; i++) {
		json_t *c = json_object();
		json_object_set_new(c, "name", json_string(r->columns[i].name));
		json_object_set_new(c, "kind", json_string(r->columns[i].kind));
		json_array_append_new(columns, c);
	}
	json_object_set_new(o, "schema", json_integer(1));
	json_object_set_new(o, "report", json_string(r->name));
	json_object_set_new(o, "since", q && q->since_ns ? rp_time(q->since_ns) : json_null());
	json_object_set_new(o, "until", q && q->until_ns ? rp_time(q->until_ns) : json_null());
	json_object_set_new(o, "filters", filters_json(q));
	json_object_set_new(o, "columns", columns);
	json_object_set_new(o, "rows", rows);
	json_object_set_new(o, "next", sw_json_z(next));
	json_object_set_new(o, "head", sw_store_head_json(h));
	return o;
}

int sw_store_report(sw_store *s, const char *name, const sw_query *q, json_t **out, sw_error *err)
{
	const rp_report *r = rp_find(name);
	if (!r)
		return st_err(err, SW_ENOTFOUND, name, NULL, "list them: sandwitness help report",
		              "no such report");
	rp_page page;
	char *next = NULL;
	sw_store_head head = {0};
	st_filter f;
	json_t *rows = json_array();
	/* The list's cursor is a chain row, not a count. */
	int code = r->by == RP_OPEN ? 0 : rp_page_of(&page, q, err);
	if (code != 0) {
		json_decref(rows);
		return code;
	}
	code = sw_store_head_get(s, &head, err);
	if (code == 0 && r->by == RP_OPEN) {
		code = rp_unfinished(s, q, rows, &next, err);
	} else if (code == 0 && (code = st_read_begin(s, err)) == 0) {
		code = st_filter_init(&f, s, q, err);
		if (code == 0) {
			if (r->by == RP_SUMMARY)
				code = rp_summary(s, &f, rows, err);
			else if (r->by == RP_TIMELINE)
				code = rp_timeline(s, &f, rows, err);
			else if (r->by == RP_SHAPES || r->by == RP_ORIGINS)
				code = rp_by_text(s, r, &f, &page, rows, &next, err);
			else
				code = rp_by_id(s, r, &f, &page, rows, &next, err);
			st_filter_free(&f);
		}
		code = st_read_end(s, code, err);
	}
	if (code == 0)
		*out = envelope(r, q, rows, next, &head);
	else
		json_decref(rows);
	if (r->by != RP_OPEN)
		free(page.after_key);
	free(next);
	return code;
}

int sw_store_head_get(sw_store *s, sw_store_head *out, sw_error *err)
{
	st_head h;
	int code = st_check_process(s, err);
	if (code == 0)
		code = st_head_load(s, &h, err);
	if (code != 0)
		return code;
	memset(out, 0, sizeof *out);
	out->seq = h.seq;
	memcpy(out->hash, h.hash, 32);
	out->sealed_seq = h.sealed_seq;
	out->sealed_ns = h.sealed_ns;
	sqlite3_stmt *q = st_stmt(s, Q_NEWEST_KEY, err);
	if (!q)
		return SW_EIO;
	int rc = sqlite3_step(q);
	if (rc == SQLITE_ROW && sqlite3_column_bytes(q, 0) == 32)
		st_key_print(out->key, sqlite3_column_blob(q, 0));
	code = rc == SQLITE_ROW || rc == SQLITE_DONE
	           ? 0
	           : st_sql_error(s, rc, "reading the newest key", err);
	sqlite3_reset(q);
	return code;
}

json_t *sw_store_head_json(const sw_store_head *h)
{
	char hash[65];
	st_hex(hash, h->hash, 32);
	json_t *o = json_object();
	json_object_set_new(o, "seq", json_integer((json_int_t)h->seq));
	json_object_set_new(o, "hash", json_string(hash));
	json_object_set_new(o, "sealed_seq", json_integer((json_int_t)h->sealed_seq));
	json_object_set_new(o, "sealed_at", h->sealed_seq ? rp_time(h->sealed_ns) : json_null());
	json_object_set_new(o, "key", *h->key ? json_string(h->key) : json_null());
	return o;
}

int sw_store_counts_get(sw_store *s, sw_store_counts *out, sw_error *err)
{
	rp_shapes shapes;
	st_filter f;
	memset(out, 0, sizeof *out);
	int code = st_read_begin(s, err);
	if (code != 0)
		return code;
	code = rp_shapes_load(&shapes, s, err);
	if (code == 0) {
		struct sums t = {.shapes = &shapes};
		code = st_filter_init(&f, s, NULL, err);
		if (code == 0)
			code = st_scan(s, &f, 1u << F_SHAPE, sum_one, &t, err);
		if (code == 0)
			code = open_count(s, &f, &out->unfinished, err);
		out->total = t.total;
		for (int i = 0; i < SW_RECORD_VERDICT_COUNT; i++)
			out->verdict[i] = t.bits[i];
		out->downgrades = t.bits[4];
		out->unexplained = t.bits[5];
		out->violations = t.bits[6];
		st_filter_free(&f);
		rp_shapes_free(&shapes);
	}
	code = st_read_end(s, code, err);
	const char *const suffix[] = {"", "-wal"};
	for (int i = 0; i < 2; i++) {
		char p[4200];
		struct stat st;
		snprintf(p, sizeof p, "%s%s", s->path, suffix[i]);
		if (stat(p, &st) == 0)
			out->bytes += (uint64_t)st.st_size;
	}
	return code;
}
