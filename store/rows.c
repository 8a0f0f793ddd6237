/*
 * rows.c - one invocation as a JSON object; lists and streams of them.
 */
#include <stdlib.h>
#include <string.h>

#include "store_int.h"

#define STR(c) ((sw_str){(c).p, (c).n})

size_t st_id_blob(uint8_t out[SW_RECORD_ID_MAX + 1], const char *id, size_t n)
{
	/* A UUID as it is usually written takes 17 bytes, any other id its text. */
	static const uint8_t dash[37] = {[8] = 1, [13] = 1, [18] = 1, [23] = 1};
	bool uuid = n == 36;
	size_t k = 1;
	for (size_t i = 0; uuid && i < 36;) {
		if (dash[i]) {
			uuid = id[i++] == '-';
			continue;
		}
		uuid = st_unhex(id + i, 2, out + k) == 0 && !(id[i] >= 'A' && id[i] <= 'F') &&
		       !(id[i + 1] >= 'A' && id[i + 1] <= 'F');
		k++;
		i += 2;
	}
	if (uuid) {
		out[0] = 'u';
		return 17;
	}
	out[0] = 't';
	memcpy(out + 1, id, n);
	return n + 1;
}

char *st_id_text(st_cell c)
{
	const uint8_t *b = c.p;
	if (c.type != CELL_BLOB || c.n < 1)
		return NULL;
	char *z = malloc(2 * c.n + 40);
	if (!z) {
		sw_text_lacks(); /* NULL is no id */
		return NULL;
	}
	if (b[0] != 'u' || c.n != 17) {
		memcpy(z, b + 1, c.n - 1);
		z[c.n - 1] = 0;
		return z;
	}
	char hex[33];
	st_hex(hex, b + 1, 16);
	snprintf(z, 40, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
	return z;
}

int st_read_begin(sw_store *s, sw_error *err)
{
	int code = st_check_process(s, err);
	if (code != 0)
		return code;
	s->read_rc = SQLITE_OK;
	code = st_enter(s, err);
	if (code != 0)
		return code;
	int rc = sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL);
	return rc == SQLITE_OK ? 0 : st_sql_error(s, rc, "reading", err);
}

bool st_row(sw_store *s, sqlite3_stmt *q)
{
	int rc = q ? sqlite3_step(q) : sqlite3_errcode(s->db);
	bool told = rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE;
	if ((told || !q) && !s->read_rc)
		s->read_rc = told ? rc : SQLITE_NOMEM;
	return q && rc == SQLITE_ROW;
}

int st_read_end(sw_store *s, int code, sw_error *err)
{
	if (code == 0 && s->read_rc)
		code = st_sql_error(s, s->read_rc, "reading", err);
	s->read_rc = SQLITE_OK;
	st_leave(s);
	return code;
}

static int fetch(sw_store *s, int which, int64_t id, const char *what, sqlite3_stmt **row,
                 sw_error *err)
{
	sqlite3_stmt *q = st_stmt(s, which, err);
	if (!q)
		return SW_EIO;
	sqlite3_bind_int64(q, 1, id);
	int rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		*row = q;
		return 0;
	}
	sqlite3_reset(q);
	if (rc != SQLITE_DONE)
		return st_sql_error(s, rc, "reading", err);
	return st_err(err, SW_ECORRUPT, s->path, what, "run `sandwitness verify`",
	              "a row of the audit trail is missing");
}

int st_shape_cells(sw_store *s, int64_t id, sqlite3_stmt **row, sw_error *err)
{
	return fetch(s, Q_SHAPE, id, "a shape that a record names", row, err);
}

static void put(json_t *o, const char *key, json_t *v)
{
	json_object_set_new(o, key, v ? v : json_null());
}

static json_t *text(st_cell c)
{
	return c.type == CELL_NULL ? json_null() : sw_json_text(STR(c));
}

static json_t *word(st_cell c) /* "none" and "unknown" are null, as in the output object */
{
	if (c.type == CELL_NULL || (c.n == 4 && memcmp(c.p, "none", 4) == 0))
		return json_null();
	return sw_json_text(STR(c));
}

static json_t *number(st_cell c)
{
	return c.type == CELL_INT ? json_integer(c.i) : json_null();
}

static json_t *when(st_cell c)
{
	char z[40];
	if (c.type != CELL_INT)
		return json_null();
	sw_time_format(c.i, z);
	return json_string(z);
}

static json_t *set(st_cell c)
{
	json_t *a = json_array();
	const char *p = c.p;
	size_t i = 0;
	while (c.type == CELL_TEXT && i < c.n) {
		size_t b = i;
		while (i < c.n && p[i] != ',')
			i++;
		if (i > b)
			json_array_append_new(a, sw_json_text((sw_str){p + b, i - b}));
		while (i < c.n && (p[i] == ',' || p[i] == ' '))
			i++;
	}
	return a;
}

static json_t *parsed(st_cell c)
{
	return c.type == CELL_TEXT ? json_loadb(c.p, c.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
	                           : NULL;
}

static json_t *hex(st_cell c)
{
	char z[129];
	if (c.type != CELL_BLOB || c.n > 64)
		return json_null();
	st_hex(z, c.p, c.n);
	return json_string(z);
}

static void put_line(json_t *o, sqlite3_stmt *r)
{
	st_cell line = st_column(r, C_REC_LINE + 1);
	bool has = line.type == CELL_BLOB;
	put(o, "line", has ? sw_json_text(STR(line)) : NULL);
	if (has && !sw_utf8_valid(line.p, line.n)) {
		char *b64 = sw_base64(line.p, line.n);
		put(o, "line_b64", sw_json_z(b64));
		free(b64);
	}
	put(o, "line_truncated", json_boolean(sqlite3_column_int(r, C_REC_LINE_CUT + 1)));
	put(o, "line_number", has ? number(st_column(r, C_REC_LINE_NUMBER + 1)) : NULL);
	put(o, "offset", has ? number(st_column(r, C_REC_LINE_OFFSET + 1)) : NULL);
}

static json_t *limit(sqlite3_stmt *sh)
{
	json_t *kind = word(st_column(sh, C_SHAPE_LIMIT + 1));
	if (json_is_null(kind))
		return kind;
	json_t *o = json_object();
	put(o, "limit", kind);
	put(o, "certainty", word(st_column(sh, C_SHAPE_LIMIT_CERTAINTY + 1)));
	return o;
}

static json_t *exit_of(sqlite3_stmt *r)
{
	st_cell code = st_column(r, C_REC_EXIT + 1), sig = st_column(r, C_REC_SIGNAL + 1);
	if (code.type == CELL_INT)
		return json_integer(code.i);
	return sig.type == CELL_INT ? json_integer(128 + sig.i) : json_null();
}

static void put_verdict(json_t *o, sqlite3_stmt *r, sqlite3_stmt *sh, json_t *resource)
{
#define SH(col) st_column(sh, (col) + 1)
	put(o, "backend", text(SH(C_SHAPE_BACKEND)));
	put(o, "exit", exit_of(r));
	put(o, "signal", number(st_column(r, C_REC_SIGNAL + 1)));
	put(o, "timed_out", json_boolean(sqlite3_column_int(r, C_REC_TIMED_OUT + 1)));
	put(o, "verdict", text(SH(C_SHAPE_VERDICT)));
	put(o, "stage", word(SH(C_SHAPE_STAGE)));
	put(o, "cause", text(SH(C_SHAPE_CAUSE)));
	put(o, "confidence", word(SH(C_SHAPE_CONFIDENCE)));
	put(o, "evidence", word(SH(C_SHAPE_EVIDENCE)));
	put(o, "evidence_source", word(SH(C_SHAPE_SOURCE)));
	put(o, "started", text(SH(C_SHAPE_STARTED)));
	st_cell rule = SH(C_SHAPE_RULE);
	put(o, "rule", rule.i ? json_integer(rule.i) : NULL);
	put(o, "signature", text(SH(C_SHAPE_SIGNATURE)));
	put_line(o, r);
	put(o, "operation", word(SH(C_SHAPE_OPERATION)));
	put(o, "resource", resource);
	put(o, "resource_kind", text(SH(C_SHAPE_RESOURCE_KIND)));
	put(o, "denied_lines", number(st_column(r, C_REC_DENIED_LINES + 1)));
	put(o, "limit", limit(sh));
	json_t *detail = parsed(st_column(r, C_REC_DETAIL + 1));
	static const char *const lists[] = {"downgrades", "observations", "faults"};
	for (int i = 0; i < 3; i++) {
		json_t *v = json_object_get(detail, lists[i]);
		put(o, lists[i], v ? json_incref(v) : json_array());
	}
	json_decref(detail);
}

static void put_level(json_t *o, sqlite3_stmt *r, sqlite3_stmt *sh)
{
	static const struct {
		int col;
		const char *key;
	} flags[] = {{C_SHAPE_DOWNGRADE, "downgrade"}, {C_SHAPE_UNEXPLAINED, "unexplained"},
	             {C_SHAPE_EXEMPT, "exempt"},       {C_SHAPE_VIOLATION, "violation"},
	             {C_SHAPE_ISOLATED, "isolated"},   {C_SHAPE_CONTAINED, "contained"}},
	  sets[] = {{C_SHAPE_REQUESTED_SET, "requested_guarantees"},
	            {C_SHAPE_MINIMUM_SET, "minimum_guarantees"},
	            {C_SHAPE_EFFECTIVE_SET, "effective_guarantees"},
	            {C_SHAPE_GRANTED, "granted"},
	            {C_SHAPE_LOST, "lost"},
	            {C_SHAPE_VIOLATED, "violated"}};
	put(o, "mode", text(SH(C_SHAPE_MODE)));
	put(o, "network", text(SH(C_SHAPE_NETWORK)));
	put(o, "enforcement", text(SH(C_SHAPE_ENFORCEMENT)));
	put(o, "requested", text(SH(C_SHAPE_REQUESTED)));
	put(o, "minimum", text(SH(C_SHAPE_MINIMUM)));
	put(o, "effective", text(SH(C_SHAPE_EFFECTIVE)));
	put(o, "basis", text(SH(C_SHAPE_BASIS)));
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
		put(o, sets[i].key, set(SH(sets[i].col)));
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		put(o, flags[i].key, json_boolean(SH(flags[i].col).i));
	st_cell reason = st_column(r, C_REC_REASON + 1);
	put(o, "reason", text(reason.type == CELL_NULL ? SH(C_SHAPE_REASON) : reason));
	put(o, "reason_class", text(SH(C_SHAPE_REASON_CLASS)));
}

static json_t *name(sw_store *s, st_table t, int64_t id, int *code, sw_error *err)
{
	sqlite3_stmt *q = NULL;
	if (id == 0 || *code != 0)
		return json_null();
	*code = fetch(s, Q_NAME_GET + (int)t, id, "a name that a record uses", &q, err);
	if (*code != 0)
		return json_null();
	json_t *v = text(st_column(q, 0));
	sqlite3_reset(q);
	return v;
}

static int put_origin(json_t *o, sw_store *s, sqlite3_stmt *r, sw_error *err)
{
	sqlite3_stmt *q = NULL;
	int code = fetch(s, Q_ORIGIN, sqlite3_column_int64(r, C_REC_ORIGIN + 1),
	                 "an origin that a record names", &q, err);
	if (code != 0)
		return code;
	for (int i = C_ORIGIN_DEVICE; i <= C_ORIGIN_ACTOR; i++)
		put(o, st_tables[T_ORIGIN].cols[i], text(st_column(q, i + 1)));
	st_cell own = st_column(r, C_REC_LABELS + 1);
	json_t *l = parsed(own.type == CELL_NULL ? st_column(q, C_ORIGIN_LABELS + 1) : own);
	put(o, "labels", l ? l : json_object());
	sqlite3_reset(q);
	json_t *session =
	    name(s, T_SESSION, sqlite3_column_int64(r, C_REC_SESSION + 1), &code, err);
	put(o, "session", session);
	return code;
}

static void put_times(json_t *o, sqlite3_stmt *r)
{
	st_cell a = st_column(r, C_REC_STARTED + 1), b = st_column(r, C_REC_ENDED + 1);
	put(o, "started_at", when(a));
	put(o, "ended_at", when(b));
	put(o, "duration_ms", b.type == CELL_INT ? json_integer((b.i - a.i) / 1000000) : NULL);
	put(o, "recorded_at", when(st_column(r, C_REC_RECORDED + 1)));
}

/* What the begin row alone holds. */
static int put_identity(json_t *o, sw_store *s, sqlite3_stmt *r, bool own, sw_error *err)
{
	(void)s;
	(void)err;
	char *id = st_id_text(st_column(r, C_REC_ID + 1));
	if (own)
		json_object_set_new(o, "id", sw_json_z(id));
	free(id);
	put(o, "command", parsed(st_column(r, C_REC_COMMAND + 1)));
	put(o, "cwd", text(st_column(r, C_REC_CWD + 1)));
	return 0;
}

static int put_kept(json_t *o, sw_store *s, int64_t seq, sw_error *err)
{
	sqlite3_stmt *q = st_stmt(s, Q_KEPT, err);
	if (!q)
		return SW_EIO;
	sqlite3_bind_int64(q, 1, seq);
	int rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		st_cell data = st_column(q, 1);
		put(o, "output_cut", json_integer(sqlite3_column_int64(q, 0)));
		if (sw_utf8_valid(data.p, data.n)) {
			put(o, "output", sw_json_text(STR(data)));
		} else {
			char *b64 = sw_base64(data.p, data.n);
			put(o, "output_b64", sw_json_z(b64));
			free(b64);
		}
	}
	sqlite3_reset(q);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : st_sql_error(s, rc, "reading", err);
}

int st_row_json(sw_store *s, uint64_t seq, bool full, json_t **out, sw_error *err)
{
	sqlite3_stmt *r = NULL, *sh = NULL;
	int code = fetch(s, Q_ROW, (int64_t)seq, "a record", &r, err);
	if (code != 0)
		return code;
	json_t *o = json_object();
	if (!o) {
		sqlite3_reset(r);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	int64_t begin = sqlite3_column_int64(r, C_REC_BEGIN_SEQ + 1);
	int kind = sqlite3_column_int(r, C_REC_KIND + 1);
	put(o, "schema", json_integer(1));
	put(o, "id", NULL); /* keeps its place; set below */
	put(o, "seq", json_integer((json_int_t)seq));
	put(o, "event",
	    json_string(kind == REC_BEGIN ? "begin"
	                : kind == REC_END ? "end"
	                                  : "complete"));
	put_times(o, r);
	json_t *resource =
	    name(s, T_RESOURCE, sqlite3_column_int64(r, C_REC_RESOURCE + 1), &code, err);
	if (code == 0)
		code = st_shape_cells(s, sqlite3_column_int64(r, C_REC_SHAPE + 1), &sh, err);
	if (code == 0) {
		put_verdict(o, r, sh, resource);
		put_level(o, r, sh);
		sqlite3_reset(sh);
		code = put_origin(o, s, r, err);
	} else {
		json_decref(resource);
	}
	st_cell kept = st_column(r, C_REC_KEPT_DIGEST + 1);
	if (code == 0) {
		put(o, "output_size", number(st_column(r, C_REC_OUTPUT_SIZE + 1)));
		put(o, "output_lines", number(st_column(r, C_REC_OUTPUT_LINES + 1)));
		put(o, "output_sha256", hex(st_column(r, C_REC_OUTPUT_DIGEST + 1)));
		put(o, "output_kept", json_boolean(kept.type == CELL_BLOB));
		put(o, "hash", hex(st_column(r, C_REC_N + 1)));
		put_identity(o, s, r, kind != REC_END, err);
	}
	sqlite3_reset(r);
	if (code == 0 && kind == REC_END) {
		code = fetch(s, Q_ROW, begin, "the begin of an end", &r, err);
		if (code == 0) {
			put_identity(o, s, r, true, err);
			put(o, "begin_seq", json_integer(begin));
			sqlite3_reset(r);
		} else if (code == SW_ECORRUPT) {
			code = 0; /* the begin was pruned: the end alone is what is left */
		}
	}
	if (code == 0 && full)
		code = put_kept(o, s, (int64_t)seq, err);
	if (code != 0)
		json_decref(o);
	else
		*out = o;
	return code;
}

int sw_store_invocation(sw_store *s, const char *id, json_t **out, sw_error *err)
{
	uint8_t blob[SW_RECORD_ID_MAX + 1];
	size_t len = strlen(id);
	if (len == 0 || len > SW_RECORD_ID_MAX)
		return st_err(err, SW_ENOTFOUND, id, NULL, NULL, "no such invocation");
	int code = st_read_begin(s, err);
	if (code != 0)
		return code;
	size_t n = st_id_blob(blob, id, len);
	sqlite3_stmt *q = st_stmt(s, Q_FIND_ID, err);
	uint64_t seq = 0;
	int kind = 0, rc = SQLITE_ERROR;
	if (q) {
		sqlite3_bind_blob64(q, 1, blob, n, SQLITE_STATIC);
		rc = sqlite3_step(q);
		if (rc == SQLITE_ROW) {
			seq = (uint64_t)sqlite3_column_int64(q, 0);
			kind = sqlite3_column_int(q, 1);
		}
		sqlite3_reset(q);
	}
	if (rc == SQLITE_DONE)
		code = st_err(err, SW_ENOTFOUND, id, NULL, "list them: sandwitness invocations",
		              "no such invocation");
	else if (rc != SQLITE_ROW)
		code = q ? st_sql_error(s, rc, "looking the id up", err) : SW_EIO;
	if (code == 0 && kind == REC_BEGIN && (q = st_stmt(s, Q_FIND_END, err)) != NULL) {
		sqlite3_bind_int64(q, 1, (int64_t)seq);
		if (st_row(s, q))
			seq = (uint64_t)sqlite3_column_int64(q, 0);
		sqlite3_reset(q);
	}
	if (code == 0)
		code = st_row_json(s, seq, true, out, err);
	return st_read_end(s, code, err);
}

struct listing {
	sw_store *s;
	int (*each)(void *arg, json_t *object);
	void *arg;
	uint32_t left;
	uint64_t last;
	bool more, stopped;
	int code;
	sw_error *err;
};

static int list_one(void *arg, const st_fact *x)
{
	struct listing *l = arg;
	if (l->left == 0) {
		l->more = true;
		return 1;
	}
	json_t *o = NULL;
	l->code = st_row_json(l->s, x->seq, false, &o, l->err);
	if (l->code != 0)
		return 1;
	l->left--;
	l->last = x->seq;
	l->stopped = l->each(l->arg, o) != 0;
	json_decref(o);
	return l->stopped;
}

int sw_store_invocations(sw_store *s, const sw_query *q, int (*each)(void *arg, json_t *object),
                         void *arg, char **next, sw_error *err)
{
	st_filter f;
	uint32_t limit = q && q->limit ? q->limit : SW_QUERY_LIMIT_DEFAULT;
	struct listing l = {s, each, arg, limit, 0, false, false, 0, err};
	uint64_t before = 0;
	if (next)
		*next = NULL;
	if (q && q->cursor) {
		if (!st_number(q->cursor, strlen(q->cursor), &before) || before == 0)
			return st_err(err, SW_EINVAL, "cursor", "it comes from \"next\" of a page",
			              NULL, "not a cursor");
	}
	int code = st_read_begin(s, err);
	if (code == 0) {
		code = st_filter_init(&f, s, q, err);
		if (code == 0) {
			code = st_scan_back(s, &f, before, true, list_one, &l, err);
			st_filter_free(&f);
		}
		code = st_read_end(s, code, err);
	}
	if (code == 0)
		code = l.code;
	if (code == 0 && l.more && next && asprintf(next, "%llu", (unsigned long long)l.last) < 0)
		code = sw_error_set(err, SW_ENOMEM, "out of memory");
	return code;
}

int sw_store_events(sw_store *s, uint64_t after, uint32_t max,
                    int (*each)(void *arg, uint64_t seq, json_t *object), void *arg, sw_error *err)
{
	sqlite3_stmt *q = NULL;
	int code = st_read_begin(s, err);
	if (code != 0)
		return code;
	int rc = sqlite3_prepare_v2(
	    s->db, "SELECT seq FROM record WHERE seq>?1 ORDER BY seq LIMIT ?2", -1, &q, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(q, 1, (int64_t)after);
		sqlite3_bind_int64(q, 2, max ? max : SW_QUERY_LIMIT_DEFAULT);
		while (code == 0 && (rc = sqlite3_step(q)) == SQLITE_ROW) {
			json_t *o = NULL;
			uint64_t seq = (uint64_t)sqlite3_column_int64(q, 0);
			code = st_row_json(s, seq, false, &o, err);
			if (code != 0)
				break;
			int stop = each(arg, seq, o);
			json_decref(o);
			if (stop) {
				rc = SQLITE_DONE;
				break;
			}
		}
	}
	if (code == 0 && rc != SQLITE_DONE)
		code = st_sql_error(s, rc, "reading events", err);
	sqlite3_finalize(q);
	return st_read_end(s, code, err);
}
