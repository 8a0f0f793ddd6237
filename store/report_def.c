/*
 * report_def.c - the named reports as a table, and what they share.
 */
#include <stdlib.h>
#include <string.h>

#include "report_int.h"

#define S(name, col)                        \
	{                                   \
		name, "text", C_SHAPE_##col \
	}
#define COUNT                                \
	{                                    \
		"invocations", "count", RP_N \
	}
#define LAST                            \
	{                               \
		"last", "time", RP_LAST \
	}
#define FIRST                             \
	{                                 \
		"first", "time", RP_FIRST \
	}
#define LAST_ID                             \
	{                                   \
		"last_id", "id", RP_LAST_ID \
	}
#define BIT(name, i)                        \
	{                                   \
		name, "count", RP_BIT + (i) \
	}
#define VERDICTS                                                         \
	BIT("ok", 0), BIT("runner_failed", 1), BIT("sandbox_denied", 2), \
	    BIT("sandbox_unavailable", 3)
#define LEVELS BIT("downgrades", 4), BIT("unexplained", 5), BIT("violations", 6)

/* The reports and what `help` says of them. X(name, line) */
#define RP_LIST(X)                                                                \
	X(summary, "the period in a few numbers")                                 \
	X(timeline, "verdicts in equal stretches of time, oldest first")          \
	X(verdicts, "how invocations ended")                                      \
	X(downgrades, "what ran with less containment than requested, and why")   \
	X(unexplained, "downgrades that nobody gave a reason for")                \
	X(violations, "what ran below its required minimum")                      \
	X(failures, "where the sandbox itself broke or was refused, with advice") \
	X(denials, "what the sandbox denied: resources and operations")           \
	X(levels, "requested and effective levels, and how they are known")       \
	X(backends, "one line per sandbox runner")                                \
	X(causes, "why runners failed and commands were denied")                  \
	X(signatures, "which signatures decided")                                 \
	X(sessions, "one line per session")                                       \
	X(devices, "one line per device")                                         \
	X(unfinished, "begun and never ended: running, or lost in a crash")

const rp_report rp_reports[] = {
    {"summary", RP_SUMMARY, 0, 0, 2, {{"name", "text", 0}, {"value", "count", 0}}},
    {"timeline",
     RP_TIMELINE,
     0,
     0,
     10,
     {{"start", "time", 0},
      {"end", "time", 0},
      {"invocations", "count", 0},
      {"ok", "count", 0},
      {"runner_failed", "count", 0},
      {"sandbox_denied", "count", 0},
      {"sandbox_unavailable", "count", 0},
      {"downgrades", "count", 0},
      {"unexplained", "count", 0},
      {"violations", "count", 0}}},
    {"verdicts",
     RP_SHAPES,
     0,
     1,
     4,
     {S("verdict", VERDICT), COUNT, {"share", "share", RP_SHARE}, LAST}},
    {"downgrades",
     RP_SHAPES,
     RC_DOWNGRADE,
     7,
     11,
     {S("backend", BACKEND),
      S("requested", REQUESTED),
      S("effective", EFFECTIVE),
      S("basis", BASIS),
      {"lost", "set", C_SHAPE_LOST},
      S("reason_class", REASON_CLASS),
      S("reason", REASON),
      COUNT,
      FIRST,
      LAST,
      LAST_ID}},
    {"unexplained",
     RP_SHAPES,
     RC_UNEXPLAINED,
     5,
     9,
     {S("backend", BACKEND),
      S("requested", REQUESTED),
      S("effective", EFFECTIVE),
      S("basis", BASIS),
      {"lost", "set", C_SHAPE_LOST},
      COUNT,
      FIRST,
      LAST,
      LAST_ID}},
    {"violations",
     RP_SHAPES,
     RC_VIOLATION,
     6,
     10,
     {S("backend", BACKEND),
      S("minimum", MINIMUM),
      S("effective", EFFECTIVE),
      S("basis", BASIS),
      {"violated", "set", C_SHAPE_VIOLATED},
      S("reason", REASON),
      COUNT,
      FIRST,
      LAST,
      LAST_ID}},
    {"failures",
     RP_SHAPES,
     RC_FAILED | RC_UNAVAILABLE,
     4,
     8,
     {S("stage", STAGE),
      S("backend", BACKEND),
      S("cause", CAUSE),
      S("verdict", VERDICT),
      COUNT,
      LAST,
      LAST_ID,
      {"advice", "text", RP_ADVICE}}},
    {"denials",
     RP_RESOURCES,
     RC_DENIED,
     3,
     7,
     {{"resource", "text", 0},
      {"kind", "text", 0},
      {"operation", "text", 0},
      COUNT,
      FIRST,
      LAST,
      LAST_ID}},
    {"levels",
     RP_SHAPES,
     0,
     3,
     8,
     {S("requested", REQUESTED), S("effective", EFFECTIVE), S("basis", BASIS), COUNT,
      BIT("contained", 7), LEVELS}},
    {"backends",
     RP_SHAPES,
     0,
     1,
     11,
     {S("backend", BACKEND), COUNT, VERDICTS, BIT("contained", 7), LEVELS, LAST}},
    {"causes",
     RP_SHAPES,
     RC_CAUSE,
     3,
     6,
     {S("cause", CAUSE), S("verdict", VERDICT), S("stage", STAGE), COUNT, LAST, LAST_ID}},
    {"signatures",
     RP_SHAPES,
     RC_SIGNATURE,
     3,
     6,
     {S("signature", SIGNATURE), S("backend", BACKEND), S("verdict", VERDICT), COUNT, LAST,
      LAST_ID}},
    {"sessions",
     RP_SESSIONS,
     0,
     1,
     11,
     {{"session", "text", 0}, COUNT, VERDICTS, LEVELS, FIRST, LAST}},
    {"devices",
     RP_ORIGINS,
     0,
     2,
     12,
     {{"device", "text", C_ORIGIN_DEVICE},
      {"platform", "text", C_ORIGIN_PLATFORM},
      COUNT,
      VERDICTS,
      LEVELS,
      FIRST,
      LAST}},
    {"unfinished",
     RP_OPEN,
     0,
     0,
     7,
     {{"id", "id", 0},
      {"started_at", "time", 0},
      {"backend", "text", 0},
      {"device", "text", 0},
      {"session", "text", 0},
      {"actor", "text", 0},
      {"command", "command", 0}}},
    {.name = NULL}};

const rp_report *rp_find(const char *name)
{
	for (const rp_report *r = rp_reports; r->name; r++)
		if (strcmp(r->name, name) == 0)
			return r;
	return NULL;
}

const char *const *sw_report_names(const char *const **summaries)
{
#define X_NAME(name, line) #name,
#define X_LINE(name, line) line,
	static const char *const names[] = {RP_LIST(X_NAME) NULL};
	static const char *const lines[] = {RP_LIST(X_LINE) NULL};
	if (summaries)
		*summaries = lines;
	return names;
}

static bool is(st_cell c, const char *z)
{
	return c.type == CELL_TEXT && c.n == strlen(z) && memcmp(c.p, z, c.n) == 0;
}

static uint8_t op_of(rp_shapes *x, st_cell op, st_cell kind)
{
	char o[24] = "", k[24] = "";
	snprintf(o, sizeof o, "%.*s", (int)(op.n < 23 ? op.n : 23), op.p ? (const char *)op.p : "");
	snprintf(k, sizeof k, "%.*s", (int)(kind.n < 23 ? kind.n : 23),
	         kind.p ? (const char *)kind.p : "");
	size_t i;
	for (i = 0; i < x->n_ops; i++)
		if (!strcmp(x->ops[i].operation, o) && !strcmp(x->ops[i].kind, k))
			return (uint8_t)i;
	if (i ==
	    sizeof x->ops / sizeof *x->ops) /* callers' own kinds: the last one stands for all */
		return (uint8_t)(i - 1);
	memcpy(x->ops[i].operation, o, sizeof o);
	memcpy(x->ops[i].kind, k, sizeof k);
	x->n_ops++;
	return (uint8_t)i;
}

static unsigned class_of(sqlite3_stmt *q)
{
	static const struct {
		const char *verdict;
		unsigned bit;
	} verdicts[] = {{"ok", RC_OK},
	                {"runner_failed", RC_FAILED},
	                {"sandbox_denied", RC_DENIED},
	                {"sandbox_unavailable", RC_UNAVAILABLE}};
	unsigned c = 0;
	for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
		if (is(st_column(q, 1), verdicts[i].verdict))
			c |= verdicts[i].bit;
	for (int i = 0; i < 5; i++) {
		static const unsigned bits[] = {RC_DOWNGRADE, RC_UNEXPLAINED, RC_VIOLATION,
		                                RC_CONTAINED, RC_EXEMPT};
		if (sqlite3_column_int(q, 2 + i))
			c |= bits[i];
	}
	if (is(st_column(q, 7), "unknown"))
		c |= RC_UNKNOWN;
	if (sqlite3_column_type(q, 8) != SQLITE_NULL)
		c |= RC_CAUSE;
	if (sqlite3_column_type(q, 9) != SQLITE_NULL)
		c |= RC_SIGNATURE;
	return c;
}

int rp_shapes_load(rp_shapes *x, sw_store *s, sw_error *err)
{
	memset(x, 0, sizeof *x);
	sqlite3_stmt *q = NULL;
	int rc =
	    sqlite3_prepare_v2(s->db,
	                       "SELECT id, verdict, downgrade, unexplained, violation, contained,"
	                       " exempt, basis, cause, signature, operation, resource_kind,"
	                       " (SELECT max(id) FROM shape) FROM shape",
	                       -1, &q, NULL);
	int code = 0;
	while (rc == SQLITE_OK && code == 0 && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		int64_t id = sqlite3_column_int64(q, 0), max = sqlite3_column_int64(q, 12);
		if (!x->class && max > 0 && max < 100000000) {
			x->n = (size_t)max + 1;
			x->class = calloc(x->n, sizeof *x->class);
			x->op = calloc(x->n, 1);
		}
		if (!x->class || !x->op || id < 0 || (size_t)id >= x->n) {
			code = sw_error_set(err, SW_ENOMEM, "out of memory");
			break;
		}
		x->class[id] = (uint16_t)class_of(q);
		if (x->class[id] & RC_DENIED)
			x->op[id] = op_of(x, st_column(q, 10), st_column(q, 11));
		rc = SQLITE_OK;
	}
	sqlite3_finalize(q);
	if (code == 0 && rc != SQLITE_DONE)
		code = st_sql_error(s, rc, "reading shapes", err);
	if (code != 0)
		rp_shapes_free(x);
	return code;
}

void rp_shapes_free(rp_shapes *x)
{
	free(x->class);
	free(x->op);
	x->class = NULL;
	x->op = NULL;
}

static uint64_t mix(uint64_t k)
{
	k ^= k >> 33;
	k *= 0xff51afd7ed558ccdull;
	k ^= k >> 33;
	return k;
}

static int rehash(rp_table *t)
{
	size_t cap = t->cap ? t->cap * 2 : 1024;
	rp_acc *v = calloc(cap, sizeof *v);
	if (!v)
		return SW_ENOMEM;
	for (size_t i = 0; i < t->cap; i++) {
		if (!t->v[i].n)
			continue;
		size_t at = mix(t->v[i].key) & (cap - 1);
		while (v[at].n)
			at = (at + 1) & (cap - 1);
		v[at] = t->v[i];
	}
	free(t->v);
	t->v = v;
	t->cap = cap;
	return 0;
}

rp_acc *rp_slot(rp_table *t, uint64_t key)
{
	if (t->n * 3 >= t->cap * 2) {
		if (t->cap >= RP_TABLE_MAX ? t->n >= t->cap - t->cap / 8 : rehash(t) != 0)
			return NULL;
	}
	size_t at = mix(key) & (t->cap - 1);
	while (t->v[at].n && t->v[at].key != key)
		at = (at + 1) & (t->cap - 1);
	if (!t->v[at].n) {
		t->n++;
		t->v[at].key = key;
	}
	return &t->v[at];
}

void rp_count(rp_acc *a, const st_fact *x, unsigned cls)
{
	if (!a->n || x->time < a->first)
		a->first = x->time;
	if (!a->n || x->time >= a->last)
		a->last = x->time;
	if (x->seq > a->last_seq)
		a->last_seq = x->seq;
	a->n++;
	for (int i = 0; i < 8; i++)
		a->bits[i] += cls >> i & 1;
}

json_t *rp_time(int64_t ns)
{
	char z[40];
	sw_time_format(ns, z);
	return json_string(z);
}

json_t *rp_id_of(sw_store *s, uint64_t seq)
{
	json_t *out = NULL;
	for (int hop = 0; hop < 2 && seq; hop++) {
		sqlite3_stmt *q = st_stmt(s, Q_ROW, NULL);
		if (q)
			sqlite3_bind_int64(q, 1, (int64_t)seq);
		seq = 0;
		if (st_row(s, q)) {
			char *id = st_id_text(st_column(q, C_REC_ID + 1));
			if (id)
				out = json_string(id);
			else
				seq = (uint64_t)sqlite3_column_int64(q, C_REC_BEGIN_SEQ + 1);
			free(id);
		}
		sqlite3_reset(q);
	}
	return out ? out : json_null();
}

/* "COUNT.KEY" of the last row; KEY as hex, so that any text fits. */
int rp_page_of(rp_page *p, const sw_query *q, sw_error *err)
{
	memset(p, 0, sizeof *p);
	p->limit = q && q->limit ? q->limit : SW_QUERY_LIMIT_DEFAULT;
	if (!q || !q->cursor)
		return 0;
	const char *end = strchr(q->cursor, '.');
	p->has_cursor = true;
	size_t n = end ? strlen(end + 1) : 1;
	p->after_key = calloc(1, n / 2 + 1);
	if (!p->after_key)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	if (!end || !st_number(q->cursor, (size_t)(end - q->cursor), &p->after_n) ||
	    p->after_n > UINT32_MAX || st_unhex(end + 1, n, (uint8_t *)p->after_key) != 0) {
		free(p->after_key);
		p->after_key = NULL;
		return st_err(err, SW_EINVAL, "cursor", "it comes from \"next\" of a page", NULL,
		              "not a cursor");
	}
	return 0;
}
