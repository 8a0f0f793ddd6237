/*
 * report.c - counting: groups of shapes, origins, sessions, resources.
 */
#include <stdlib.h>
#include <string.h>

#include "report_int.h"
#include "signatures.h"

struct pass {
	const rp_report *r;
	const rp_shapes *shapes;
	rp_table table;
	rp_acc *direct; /* sessions: by id - base */
	uint64_t base, span;
	int code;
};

static int count_one(void *arg, const st_fact *x)
{
	struct pass *p = arg;
	unsigned cls = x->shape < p->shapes->n ? p->shapes->class[x->shape] : 0;
	if (p->r->need && !(cls & p->r->need))
		return 0;
	rp_acc *a = NULL;
	switch (p->r->by) {
	case RP_SESSIONS:
		if (x->session - p->base >= p->span || x->session == 0 || !p->direct)
			return 0;
		a = &p->direct[x->session - p->base];
		a->key = x->session;
		break;
	case RP_RESOURCES:
		if (x->resource - p->base >= p->span)
			return 0;
		a = rp_slot(&p->table, x->resource << 8 | p->shapes->op[x->shape]);
		break;
	case RP_ORIGINS:
		a = rp_slot(&p->table, x->origin);
		break;
	default:
		a = rp_slot(&p->table, x->shape);
		break;
	}
	if (!a) {
		p->code = SW_ETOOBIG;
		return 1;
	}
	rp_count(a, x, cls);
	return 0;
}

static int narrow(const struct pass *p, sw_error *err)
{
	return p->code ? st_err(err, SW_ETOOBIG, p->r->name, "more groups than fit into memory",
	                        "narrow it with --since, --until or another filter",
	                        "the report is too large")
	               : 0;
}

/* ---- groups by text: shapes and origins with equal key columns ---- */

typedef struct group {
	char *key; /* the key columns, joined by an unlikely byte */
	size_t key_len;
	uint64_t sample; /* an id to read the columns from */
	rp_acc a;
} group;

#define GROUP_JOIN 0x1f

static void merge(rp_acc *into, const rp_acc *a)
{
	if (!into->n || a->first < into->first)
		into->first = a->first;
	if (!into->n || a->last > into->last)
		into->last = a->last;
	if (a->last_seq > into->last_seq)
		into->last_seq = a->last_seq;
	into->n += a->n;
	for (int i = 0; i < 8; i++)
		into->bits[i] += a->bits[i];
}

static int stage_rank(const group *g)
{
	static const char *const order[] = {"setup\x1f", "exec\x1f", "lost\x1f"};
	for (int i = 0; i < 3; i++)
		if (strncmp(g->key, order[i], strlen(order[i])) == 0)
			return i;
	return 3;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const group *)a)->key, ((const group *)b)->key);
}

static int by_count(const void *a, const void *b)
{
	const group *x = a, *y = b;
	if (x->a.n != y->a.n)
		return x->a.n > y->a.n ? -1 : 1;
	return strcmp(x->key, y->key);
}

static int by_stage(const void *a, const void *b)
{
	int x = stage_rank(a), y = stage_rank(b);
	return x != y ? x - y : by_count(a, b);
}

static int row_of(sw_store *s, bool origin, uint64_t id, sqlite3_stmt **q, sw_error *err)
{
	if (!origin)
		return st_shape_cells(s, (int64_t)id, q, err);
	*q = st_stmt(s, Q_ORIGIN, err);
	if (!*q)
		return SW_EIO;
	sqlite3_bind_int64(*q, 1, (int64_t)id);
	int rc = sqlite3_step(*q);
	if (rc == SQLITE_ROW)
		return 0;
	sqlite3_reset(*q);
	return rc == SQLITE_DONE ? st_err(err, SW_ECORRUPT, s->path, NULL,
	                                  "run `sandwitness verify`", "an origin is missing")
	                         : st_sql_error(s, rc, "reading origins", err);
}

static int make_groups(sw_store *s, const struct pass *p, group **out, size_t *n, sw_error *err)
{
	group *g = calloc(p->table.n + 1, sizeof *g);
	size_t k = 0;
	int code = 0;
	if (!g)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	for (size_t i = 0; code == 0 && i < p->table.cap; i++) {
		const rp_acc *a = &p->table.v[i];
		sqlite3_stmt *q = NULL;
		if (!a->n)
			continue;
		code = row_of(s, p->r->by == RP_ORIGINS, a->key, &q, err);
		if (code != 0)
			break;
		sw_buf b;
		sw_buf_init(&b, 1 << 16);
		for (int c = 0; c < p->r->n_keys; c++) {
			st_cell v = st_column(q, p->r->columns[c].from + 1);
			/* strcmp() orders groups: a NUL within would hide the rest */
			for (size_t j = 0; v.type != CELL_NULL && j < v.n; j++) {
				char ch = ((const char *)v.p)[j];
				sw_buf_add(&b, ch ? &ch : " ", 1);
			}
			sw_buf_add(&b, "\x1f", 1);
		}
		sqlite3_reset(q);
		g[k].sample = a->key;
		g[k].a = *a;
		g[k].key_len = b.len;
		g[k].key = sw_buf_take(&b);
		if (!g[k].key)
			code = sw_error_set(err, SW_ENOMEM, "out of memory");
		else
			k++;
	}
	if (code == 0 && k > 1) {
		qsort(g, k, sizeof *g, by_key);
		size_t w = 0;
		for (size_t i = 1; i < k; i++) {
			if (strcmp(g[w].key, g[i].key) == 0) {
				merge(&g[w].a, &g[i].a);
				free(g[i].key);
			} else {
				g[++w] = g[i];
			}
		}
		k = w + 1;
	}
	*out = g;
	*n = k;
	return code;
}

static json_t *guarantees(st_cell c)
{
	json_t *a = json_array();
	const char *p = c.p;
	for (size_t i = 0, b = 0; c.type == CELL_TEXT && i <= c.n; i++) {
		if (i < c.n && p[i] != ',' && p[i] != ' ')
			continue;
		if (i > b)
			json_array_append_new(a, sw_json_text((sw_str){p + b, i - b}));
		b = i + 1;
	}
	return a;
}

static json_t *cell_json(st_cell c, const char *kind)
{
	if (strcmp(kind, "set") == 0)
		return guarantees(c);
	if (c.type == CELL_NULL || (c.n == 4 && memcmp(c.p, "none", 4) == 0 && kind[1] == 't'))
		return json_null();
	return sw_json_text((sw_str){c.p, c.n});
}

/* The advice of a cause, once. */
static json_t *advice(json_t *rows, const char *cause)
{
	const sw_cause *c = cause ? sw_cause_find(cause) : NULL;
	size_t i;
	json_t *r;
	if (!c)
		return json_null();
	json_array_foreach(rows, i, r)
	{
		json_t *before = json_object_get(r, "cause");
		if (json_is_string(before) && strcmp(json_string_value(before), cause) == 0)
			return json_null();
	}
	sw_buf b;
	sw_buf_init(&b, 4096);
	sw_buf_adds(&b, c->title);
	if (c->n_remedies)
		sw_buf_addf(&b, ": %s", c->remedies[0].what);
	json_t *j = b.error ? json_string(c->title) : json_stringn(b.ptr, b.len);
	sw_buf_free(&b);
	return j;
}

static json_t *value_of(sw_store *s, const rp_column *c, const rp_acc *a, sqlite3_stmt *q,
                        uint64_t total, json_t *rows, json_t *row)
{
	switch (c->from) {
	case RP_N:
		return json_integer(a->n);
	case RP_FIRST:
		return rp_time(a->first);
	case RP_LAST:
		return rp_time(a->last);
	case RP_LAST_ID:
		return rp_id_of(s, a->last_seq);
	case RP_SHARE:
		return json_real(total ? (double)a->n / (double)total : 0);
	case RP_ADVICE:
		return advice(rows, json_string_value(json_object_get(row, "cause")));
	default:
		if (c->from >= RP_BIT)
			return json_integer(a->bits[c->from - RP_BIT]);
		return cell_json(st_column(q, c->from + 1), c->kind);
	}
}

static char *cursor_of(uint64_t n, const void *key, size_t len)
{
	char *z = malloc(2 * len + 32);
	if (z)
		st_hex(z + sprintf(z, "%llu.", (unsigned long long)n), key, len);
	else
		sw_text_lacks(); /* NULL is the last page */
	return z;
}

static bool after(const rp_report *r, const group *g, const rp_page *p)
{
	if (!p->has_cursor)
		return true;
	group last = {.key = p->after_key, .a = {.n = (uint32_t)p->after_n}};
	return (r->need & RC_FAILED ? by_stage(&last, g) : by_count(&last, g)) < 0;
}

static unsigned facts_needed(const rp_report *r)
{
	unsigned need = 1u << F_SHAPE;
	for (int i = 0; i < r->n_columns; i++) {
		if (r->columns[i].from == RP_FIRST || r->columns[i].from == RP_LAST)
			need |= 1u << F_TIME;
		if (r->columns[i].from == RP_LAST_ID)
			need |= 1u << F_SEQ;
	}
	if (r->by == RP_ORIGINS)
		need |= 1u << F_ORIGIN;
	if (r->by == RP_SESSIONS)
		need |= 1u << F_SESSION;
	if (r->by == RP_RESOURCES)
		need |= 1u << F_RESOURCE;
	return need;
}

int rp_by_text(sw_store *s, const rp_report *r, const st_filter *f, const rp_page *page,
               json_t *rows, char **next, sw_error *err)
{
	rp_shapes shapes;
	int code = rp_shapes_load(&shapes, s, err);
	if (code != 0)
		return code;
	struct pass p = {.r = r, .shapes = &shapes};
	group *g = NULL;
	size_t n = 0, shown = 0;
	uint64_t total = 0;
	code = st_scan(s, f, facts_needed(r), count_one, &p, err);
	if (code == 0)
		code = narrow(&p, err);
	if (code == 0)
		code = make_groups(s, &p, &g, &n, err);
	for (size_t i = 0; i < n; i++)
		total += g[i].a.n;
	if (code == 0 && n)
		qsort(g, n, sizeof *g, r->need & RC_FAILED ? by_stage : by_count);
	const group *last = NULL;
	for (size_t i = 0; code == 0 && i < n; i++) {
		sqlite3_stmt *q = NULL;
		if (!after(r, &g[i], page))
			continue;
		if (shown == page->limit) {
			if (last)
				*next = cursor_of(last->a.n, last->key, last->key_len);
			break;
		}
		json_t *row = json_object();
		code = row_of(s, r->by == RP_ORIGINS, g[i].sample, &q, err);
		for (int c = 0; code == 0 && c < r->n_columns; c++)
			json_object_set_new(
			    row, r->columns[c].name,
			    value_of(s, &r->columns[c], &g[i].a, q, total, rows, row));
		if (code == 0)
			sqlite3_reset(q);
		json_array_append_new(rows, row);
		last = &g[i];
		shown++;
	}
	for (size_t i = 0; i < n; i++)
		free(g[i].key);
	free(g);
	free(p.table.v);
	rp_shapes_free(&shapes);
	return code;
}

/* ---- groups by number: sessions, resources; in passes where there are very many ---- */

#define SESSION_SPAN (1u << 18)
#define RESOURCE_SPAN (1u << 17)

struct top {
	rp_acc *v; /* sorted, best first */
	size_t n, max;
	const rp_page *page;
	uint64_t after_key;
};

static bool better(const rp_acc *a, const rp_acc *b)
{
	return a->n != b->n ? a->n > b->n : a->key < b->key;
}

static void offer(struct top *t, const rp_acc *a)
{
	if (!a->n)
		return;
	if (t->page->has_cursor) {
		rp_acc last = {.key = t->after_key, .n = (uint32_t)t->page->after_n};
		if (!better(&last, a))
			return;
	}
	if (t->n == t->max && !better(a, &t->v[t->n - 1]))
		return;
	size_t lo = 0, hi = t->n;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (better(a, &t->v[mid]))
			hi = mid;
		else
			lo = mid + 1;
	}
	size_t move = t->n - lo;
	if (t->n == t->max)
		move--;
	else
		t->n++;
	memmove(&t->v[lo + 1], &t->v[lo], move * sizeof *t->v);
	t->v[lo] = *a;
}

static int max_id(sw_store *s, st_table t, uint64_t *out, sw_error *err)
{
	sqlite3_stmt *q = st_stmt(s, Q_MAX_DICT + (int)t, err);
	if (!q)
		return SW_EIO;
	int rc = sqlite3_step(q);
	*out = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(q, 0) : 0;
	sqlite3_reset(q);
	return rc == SQLITE_ROW ? 0 : st_sql_error(s, rc, "reading names", err);
}

static json_t *name_of(sw_store *s, st_table t, uint64_t id)
{
	json_t *v = NULL;
	sqlite3_stmt *q = id ? st_stmt(s, Q_NAME_GET + (int)t, NULL) : NULL;
	if (q)
		sqlite3_bind_int64(q, 1, (int64_t)id);
	if (id && st_row(s, q)) {
		st_cell c = st_column(q, 0);
		v = sw_json_text((sw_str){c.p, c.n});
	}
	if (q)
		sqlite3_reset(q);
	return v ? v : json_null();
}

static json_t *word(const char *z)
{
	return *z && strcmp(z, "none") != 0 ? json_string(z) : json_null();
}

static json_t *id_row(sw_store *s, const rp_report *r, const rp_shapes *shapes, const rp_acc *a)
{
	json_t *row = json_object();
	bool sessions = r->by == RP_SESSIONS;
	if (sessions) {
		json_object_set_new(row, "session", name_of(s, T_SESSION, a->key));
	} else {
		json_object_set_new(row, "resource", name_of(s, T_RESOURCE, a->key >> 8));
		json_object_set_new(row, "kind", word(shapes->ops[a->key & 63].kind));
		json_object_set_new(row, "operation", word(shapes->ops[a->key & 63].operation));
	}
	for (int c = r->n_keys; c < r->n_columns; c++)
		json_object_set_new(row, r->columns[c].name,
		                    value_of(s, &r->columns[c], a, NULL, 0, NULL, row));
	return row;
}

int rp_by_id(sw_store *s, const rp_report *r, const st_filter *f, const rp_page *page, json_t *rows,
             char **next, sw_error *err)
{
	bool sessions = r->by == RP_SESSIONS;
	uint64_t most = 0, span = sessions ? SESSION_SPAN : RESOURCE_SPAN;
	rp_shapes shapes;
	int code = max_id(s, sessions ? T_SESSION : T_RESOURCE, &most, err);
	if (code == 0)
		code = rp_shapes_load(&shapes, s, err);
	if (code != 0)
		return code;
	struct top t = {.max = (size_t)page->limit + 1, .page = page};
	if (page->has_cursor &&
	    !st_number(page->after_key, strlen(page->after_key), &t.after_key)) {
		rp_shapes_free(&shapes);
		return st_err(err, SW_EINVAL, "cursor", "it comes from \"next\" of a page", NULL,
		              "not a cursor");
	}
	t.v = calloc(t.max + 1, sizeof *t.v);
	struct pass p = {.r = r, .shapes = &shapes, .span = span};
	if (sessions)
		p.direct = calloc(most < span ? most + 1 : span, sizeof *p.direct);
	if (!t.v || (sessions && !p.direct)) {
		free(t.v);
		free(p.direct);
		rp_shapes_free(&shapes);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	for (p.base = 0; code == 0 && p.base <= most; p.base += span) {
		if (p.base && sessions)
			memset(p.direct, 0, span * sizeof *p.direct);
		else if (p.base && p.table.v)
			memset(p.table.v, 0, p.table.cap * sizeof *p.table.v);
		p.table.n = 0;
		code = st_scan(s, f, facts_needed(r), count_one, &p, err);
		if (code == 0)
			code = narrow(&p, err);
		size_t n = sessions ? (most < span ? most + 1 : span) : p.table.cap;
		const rp_acc *all = sessions ? p.direct : p.table.v;
		for (size_t i = 0; all && code == 0 && i < n; i++)
			offer(&t, &all[i]);
	}
	for (size_t i = 0; code == 0 && i < t.n && i < page->limit; i++)
		json_array_append_new(rows, id_row(s, r, &shapes, &t.v[i]));
	if (code == 0 && t.n > page->limit) {
		char key[32];
		const rp_acc *last = &t.v[page->limit - 1];
		int len = snprintf(key, sizeof key, "%llu", (unsigned long long)last->key);
		*next = cursor_of(last->n, key, (size_t)len);
	}
	free(t.v);
	free(p.direct);
	free(p.table.v);
	rp_shapes_free(&shapes);
	return code;
}
