/*
 * export.c - the whole chain as NDJSON, invocations as CSV, a copy by the backup API.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "verify_int.h"

struct sink {
	sw_store *s;
	int (*write)(void *arg, const char *p, size_t n);
	void *arg;
	int code;
	sw_error *err;
};

static int put_line(struct sink *k, json_t *o)
{
	char *z = o ? sw_json_dump(o) : NULL;
	json_decref(o);
	if (!z) {
		k->code = sw_error_set(k->err, SW_ENOMEM, "out of memory");
		return 1;
	}
	int rc = k->write(k->arg, z, strlen(z));
	if (rc == 0)
		rc = k->write(k->arg, "\n", 1);
	free(z);
	if (rc != 0)
		k->code = sw_error_set(k->err, SW_EIO, "the export could not be written");
	return rc;
}

/* Text that is UTF-8 as a string; anything else so that its bytes come back. */
static json_t *cell_json(st_cell c)
{
	if (c.type == CELL_NULL)
		return json_null();
	if (c.type == CELL_INT)
		return json_integer(c.i);
	if (c.type == CELL_TEXT && sw_utf8_valid(c.p, c.n) && !memchr(c.p, 0, c.n))
		return json_stringn(c.p, c.n);
	char *b64 = sw_base64(c.p, c.n);
	json_t *o = json_object();
	json_object_set_new(o, c.type == CELL_TEXT ? "text_b64" : "b64", sw_json_z(b64));
	free(b64);
	return o;
}

static json_t *hex_json(const void *p, size_t n)
{
	char z[129];
	st_hex(z, p, n < 64 ? n : 64);
	return json_string(z);
}

json_t *st_export_kept(uint64_t seq, int64_t cut, st_cell data)
{
	json_t *o = json_object();
	json_object_set_new(o, "table", json_string("kept"));
	json_object_set_new(o, "seq", json_integer((json_int_t)seq));
	json_object_set_new(o, "cut", json_integer(cut));
	json_object_set_new(o, "data", cell_json(data));
	return o;
}

json_t *st_export_row(st_table t, uint64_t seq, const st_cell *cells, st_cell hash)
{
	json_t *o = json_object();
	json_object_set_new(o, "table", json_string(st_tables[t].name));
	json_object_set_new(o, "seq", json_integer((json_int_t)seq));
	for (int i = 0; i < st_tables[t].n; i++)
		json_object_set_new(o, st_tables[t].cols[i], cell_json(cells[i]));
	json_object_set_new(o, "hash", hex_json(hash.p, hash.n));
	return o;
}

json_t *st_export_head(uint64_t seq, const uint8_t hash[32])
{
	json_t *o = json_object();
	json_object_set_new(o, "table", json_string("head"));
	json_object_set_new(o, "seq", json_integer((json_int_t)seq));
	json_object_set_new(o, "hash", hex_json(hash, 32));
	return o;
}

json_t *st_export_pruned(int64_t to, st_cell resume, st_cell dict)
{
	json_t *p = json_object();
	json_object_set_new(p, "to", json_integer(to));
	json_object_set_new(p, "resume", hex_json(resume.p, resume.n));
	json_object_set_new(p, "dict", hex_json(dict.p, dict.n < 32 ? dict.n : 32));
	return p;
}

json_t *st_export_header(const char *program, json_t *pruned)
{
	json_t *o = json_object();
	json_object_set_new(o, "sandwitness_export", json_integer(1));
	json_object_set_new(o, "schema", json_integer(SW_STORE_SCHEMA));
	json_object_set_new(o, "program", json_string(program));
	json_object_set_new(o, "pruned", pruned);
	return o;
}

static int put_kept(struct sink *k, uint64_t seq)
{
	sqlite3_stmt *q = st_stmt(k->s, Q_KEPT, k->err);
	if (!q)
		return k->code = SW_EIO;
	sqlite3_bind_int64(q, 1, (int64_t)seq);
	int rc = sqlite3_step(q);
	json_t *o = rc == SQLITE_ROW
	                ? st_export_kept(seq, sqlite3_column_int64(q, 0), st_column(q, 1))
	                : NULL;
	sqlite3_reset(q);
	return o ? put_line(k, o) : 0;
}

static int export_row(void *arg, st_table t, uint64_t seq, const st_cell *cells, st_cell hash)
{
	struct sink *k = arg;
	if (put_line(k, st_export_row(t, seq, cells, hash)) != 0)
		return 1;
	return t == T_RECORD && cells[C_REC_KEPT_DIGEST].type == CELL_BLOB ? put_kept(k, seq) : 0;
}

static json_t *header(sw_store *s)
{
	sqlite3_stmt *q = NULL;
	json_t *p = NULL;
	sqlite3_prepare_v2(s->db,
	                   "SELECT to_seq, resume, dict FROM prune ORDER BY to_seq DESC, seq DESC"
	                   " LIMIT 1",
	                   -1, &q, NULL);
	if (st_row(s, q))
		p = st_export_pruned(sqlite3_column_int64(q, 0), st_column(q, 1), st_column(q, 2));
	sqlite3_finalize(q);
	return st_export_header("sandwitness " SW_VERSION, p ? p : json_null());
}

int sw_store_export(sw_store *s, int (*write)(void *arg, const char *p, size_t n), void *arg,
                    sw_error *err)
{
	struct sink k = {s, write, arg, 0, err};
	st_head h;
	int code = st_read_begin(s, err);
	if (code != 0)
		return code;
	code = st_head_load(s, &h, err);
	if (code == 0 && put_line(&k, header(s)) != 0)
		code = k.code;
	if (code == 0)
		code = vf_merge(s, VF_ALL_TABLES, export_row, &k, err);
	if (code == 0)
		code = k.code;
	if (code == 0) {
		put_line(&k, st_export_head(h.seq, h.hash));
		code = k.code;
	}
	return st_read_end(s, code, err);
}

/* ---- CSV ---- */

static const char *const csv_columns[] = {"id",          "started_at",
                                          "ended_at",    "backend",
                                          "exit",        "signal",
                                          "timed_out",   "verdict",
                                          "stage",       "cause",
                                          "signature",   "confidence",
                                          "evidence",    "evidence_source",
                                          "started",     "operation",
                                          "resource",    "resource_kind",
                                          "line",        "mode",
                                          "network",     "requested",
                                          "minimum",     "effective",
                                          "basis",       "lost",
                                          "violated",    "downgrade",
                                          "unexplained", "exempt",
                                          "violation",   "contained",
                                          "reason",      "reason_class",
                                          "device",      "platform",
                                          "runtime",     "session",
                                          "actor",       "labels",
                                          "command",     "cwd",
                                          "output_size", "output_sha256",
                                          "seq",         "hash"};

static void csv_cell(sw_buf *b, const json_t *v)
{
	if (json_is_string(v)) {
		sw_csv_text(b, json_string_value(v), json_string_length(v));
	} else if (json_is_array(v) && json_array_size(v) == 0) {
		return;
	} else if (v && !json_is_null(v)) {
		char *z = sw_json_dump_as(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_PRESERVE_ORDER);
		if (!z)
			b->error = SW_ENOMEM;
		else if (json_is_number(v) || json_is_boolean(v))
			sw_buf_adds(b, z);
		else
			sw_csv_text(b, z, strlen(z));
		free(z);
	}
}

static int csv_row(void *arg, const st_fact *x)
{
	struct sink *k = arg;
	json_t *o = NULL;
	sw_buf b;
	k->code = st_row_json(k->s, x->seq, false, &o, k->err);
	if (k->code != 0)
		return 1;
	sw_buf_init(&b, 1 << 20);
	for (size_t i = 0; i < sizeof csv_columns / sizeof *csv_columns; i++) {
		if (i)
			sw_buf_adds(&b, ",");
		csv_cell(&b, json_object_get(o, csv_columns[i]));
	}
	sw_buf_adds(&b, "\r\n");
	json_decref(o);
	if (b.error)
		k->code = sw_error_set(k->err, b.error,
		                       b.error == SW_ENOMEM ? "out of memory"
		                                            : "a line of CSV does not fit");
	else if (k->write(k->arg, b.ptr, b.len) != 0)
		k->code = sw_error_set(k->err, SW_EIO, "the export could not be written");
	sw_buf_free(&b);
	return k->code != 0;
}

int sw_store_export_csv(sw_store *s, const sw_query *q,
                        int (*write)(void *arg, const char *p, size_t n), void *arg, sw_error *err)
{
	struct sink k = {s, write, arg, 0, err};
	st_filter f;
	sw_buf head;
	sw_buf_init(&head, 4096);
	for (size_t i = 0; i < sizeof csv_columns / sizeof *csv_columns; i++)
		sw_buf_addf(&head, "%s%s", i ? "," : "", csv_columns[i]);
	sw_buf_adds(&head, "\r\n");
	int code = head.error ? head.error : st_read_begin(s, err);
	if (code == 0 && write(arg, head.ptr, head.len) != 0)
		code = sw_error_set(err, SW_EIO, "the export could not be written");
	sw_buf_free(&head);
	if (code == 0 && (code = st_filter_init(&f, s, q, err)) == 0) {
		code = st_scan(s, &f, 1u << F_SEQ, csv_row, &k, err);
		if (code == 0 && k.code == 0)
			code = st_scan_open(s, &f, csv_row, &k, err);
		st_filter_free(&f);
	}
	return st_read_end(s, code ? code : k.code, err);
}

/* ---- backup ---- */

static int copy_to(sw_store *s, const char *to)
{
	sqlite3 *copy = NULL;
	int rc = sqlite3_open_v2(to, &copy, SQLITE_OPEN_READWRITE, NULL);
	/* Half a copy is thrown away: nothing to roll back. It is flushed when it is whole. */
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(copy, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF", NULL,
		                  NULL, NULL);
	if (rc == SQLITE_OK) {
		/* All pages in one step: one snapshot, no restart when others write. */
		sqlite3_backup *b = sqlite3_backup_init(copy, "main", s->db, "main");
		if (b) {
			rc = sqlite3_backup_step(b, -1);
			int end = sqlite3_backup_finish(b);
			rc = rc == SQLITE_DONE ? end : rc;
		} else {
			rc = sqlite3_errcode(copy);
		}
	}
	sqlite3_close(copy);
	return rc;
}

int sw_store_backup(sw_store *s, const char *to, sw_error *err)
{
	sw_new_file f;
	int code = st_check_process(s, err);
	if (code == 0)
		code = sw_new_file_create(&f, to, err);
	if (code != 0)
		return code;
	int rc = copy_to(s, f.tmp);
	if (rc == SQLITE_OK)
		return sw_new_file_keep(&f, err);
	sw_new_file_drop(&f);
	return st_err(err, SW_EIO, to, sqlite3_errstr(rc), "make room, or choose another place",
	              "the backup could not be written");
}

/* ---- kept outputs ---- */

int sw_store_kept(sw_store *s, const sw_query *q, int (*each)(void *arg, const sw_kept *k),
                  void *arg, sw_error *err)
{
	st_filter f;
	sqlite3_stmt *st = NULL;
	int code = st_read_begin(s, err);
	if (code != 0)
		return code;
	code = st_filter_init(&f, s, q, err);
	if (code != 0)
		return st_read_end(s, code, err);
	int rc =
	    sqlite3_prepare_v2(s->db,
	                       "SELECT k.seq, r.started_ns, r.shape, r.origin, r.session,"
	                       " r.resource, k.cut, k.data FROM kept k JOIN record r ON r.seq=k.seq"
	                       " ORDER BY k.seq DESC",
	                       -1, &st, NULL);
	while (rc == SQLITE_OK && code == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		st_fact x = {
		    (uint64_t)sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
		    (uint32_t)sqlite3_column_int64(st, 2), (uint32_t)sqlite3_column_int64(st, 3),
		    (uint64_t)sqlite3_column_int64(st, 4), (uint64_t)sqlite3_column_int64(st, 5)};
		rc = SQLITE_OK;
		if (!st_passes(s, &f, &x))
			continue;
		sw_kept k = {.seq = x.seq, .whole = sqlite3_column_int64(st, 6) == 0};
		st_cell data = st_column(st, 7);
		k.output = (sw_str){data.p, data.n};
		code = st_row_json(s, x.seq, false, &k.invocation, err);
		if (code != 0)
			break;
		k.id = json_string_value(json_object_get(k.invocation, "id"));
		int stop = each(arg, &k);
		json_decref(k.invocation);
		if (stop) {
			rc = SQLITE_DONE;
			break;
		}
	}
	if (code == 0 && rc != SQLITE_DONE)
		code = st_sql_error(s, rc, "reading kept outputs", err);
	sqlite3_finalize(st);
	st_filter_free(&f);
	return st_read_end(s, code, err);
}
