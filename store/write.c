/*
 * write.c - begin, end, complete: one transaction for a whole group.
 */
#include <stdlib.h>
#include <string.h>

#include "prepare.h"

const char *sw_record_verdict_name(sw_record_verdict v)
{
#define X_NAME(s, n) [SW_RECORD_##s] = n,
	static const char *const names[SW_RECORD_VERDICT_COUNT] = {
	    SW_VERDICT_LIST(X_NAME) SW_RECORD_VERDICT_EXTRA_LIST(X_NAME)};
	return (unsigned)v < SW_RECORD_VERDICT_COUNT ? names[v] : NULL;
}

int sw_record_verdict_parse(const char *s, size_t n, sw_record_verdict *out)
{
	for (int i = 0; i < SW_RECORD_VERDICT_COUNT; i++) {
		const char *name = sw_record_verdict_name((sw_record_verdict)i);
		if (strlen(name) == n && memcmp(name, s, n) == 0) {
			*out = (sw_record_verdict)i;
			return 0;
		}
	}
	return SW_ENOTFOUND;
}

void sw_outcome_of_result(sw_outcome *o, const sw_result *r)
{
	memset(o, 0, sizeof *o);
	o->verdict = (sw_record_verdict)r->verdict;
	o->rule = r->rule;
	o->stage = r->stage;
	o->cause = sw_str_of(r->cause);
	o->signature = sw_str_of(r->has_hit && r->hit.sig ? r->hit.sig->id : NULL);
	o->confidence = r->confidence;
	o->evidence = r->evidence;
	o->evidence_source = r->evidence_source;
	o->started = r->started;
	/* An exit-only signature decides without a line. */
	o->has_line = r->has_hit && r->hit.line_number > 0;
	if (o->has_line) {
		o->line = r->hit.line;
		o->line_truncated = r->hit.line_truncated;
		o->line_number = r->hit.line_number;
		o->offset = r->hit.offset;
	}
	if (r->has_hit && r->hit.resource_kind) {
		o->resource = r->hit.resource;
		o->resource_kind = sw_str_of(r->hit.resource_kind);
	}
	o->operation = r->operation;
	o->denied_lines = r->denied_lines;
	o->limit = r->limit;
	o->limit_certainty = r->limit_certainty;
	o->enforcement = r->enforcement;
	o->exit = r->exit;
	o->has_exit = true;
	o->output_size = r->output_size;
	o->output_lines = r->lines;
}

json_t *sw_outcome_detail(const sw_result *r)
{
	if (!r->n_downgrades && !r->n_observations && !r->n_faults)
		return NULL;
	json_t *all = sw_result_json(r, NULL), *out = json_object();
	static const char *const keys[] = {"downgrades", "observations", "faults"};
	for (int i = 0; all && out && i < 3; i++) {
		json_t *v = json_object_get(all, keys[i]);
		if (json_array_size(v) > 0)
			json_object_set(out, keys[i], v);
	}
	json_decref(all);
	return out;
}

typedef struct found {
	bool there;
	uint64_t seq;
	int kind;
	uint8_t body[16], hash[32];
	int64_t started, origin, shape, session;
	char *reason;
	size_t reason_len;
} found;

static int find_id(sw_store *s, const st_prep *p, found *f, sw_error *err)
{
	memset(f, 0, sizeof *f);
	sqlite3_stmt *q = st_stmt(s, Q_FIND_ID, err);
	if (!q)
		return SW_EIO;
	sqlite3_bind_blob64(q, 1, p->id_blob, p->id_len, SQLITE_STATIC);
	bool no_memory = false;
	int rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		f->there = true;
		f->seq = (uint64_t)sqlite3_column_int64(q, 0);
		f->kind = sqlite3_column_int(q, 1);
		if (sqlite3_column_bytes(q, 2) == 16)
			memcpy(f->body, sqlite3_column_blob(q, 2), 16);
		if (sqlite3_column_bytes(q, 3) == 32)
			memcpy(f->hash, sqlite3_column_blob(q, 3), 32);
		f->started = sqlite3_column_int64(q, 4);
		f->origin = sqlite3_column_int64(q, 5);
		f->shape = sqlite3_column_int64(q, 6);
		f->session = sqlite3_column_int64(q, 7);
		if (sqlite3_column_type(q, 8) == SQLITE_TEXT) {
			f->reason_len = (size_t)sqlite3_column_bytes(q, 8);
			f->reason = malloc(f->reason_len + 1);
			const void *reason = sqlite3_column_blob(q, 8);
			if (f->reason && reason)
				memcpy(f->reason, reason, f->reason_len);
			no_memory = !f->reason;
		}
	}
	sqlite3_reset(q);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return st_sql_error(s, rc, "looking the id up", err);
	if (no_memory)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	return 0;
}

static void answer(sw_receipt *r, const st_prep *p, uint64_t seq, const uint8_t hash[32],
                   bool replay)
{
	memset(r, 0, sizeof *r);
	snprintf(r->id, sizeof r->id, "%s", p->id);
	r->seq = seq;
	memcpy(r->hash, hash, 32);
	r->replay = replay;
}

static int conflict(const st_prep *p, const char *why, sw_error *err)
{
	return st_err(err, SW_ECONFLICT, p->id, why, "use a new id for a new invocation",
	              "this id is recorded already");
}

/* Level, mode and network of the begin, for an end that does not give its own. */
static int take_begin_level(sw_store *s, st_prep *p, const found *f, sqlite3_stmt **row,
                            sw_error *err)
{
	int code = st_shape_cells(s, f->shape, row, err);
	if (code != 0)
		return code;
	bool ran =
	    memcmp(p->shape[C_SHAPE_VERDICT].p, "runner_failed",
	           p->shape[C_SHAPE_VERDICT].n < 13 ? p->shape[C_SHAPE_VERDICT].n : 13) != 0 &&
	    memcmp(p->shape[C_SHAPE_VERDICT].p, "sandbox_u",
	           p->shape[C_SHAPE_VERDICT].n < 9 ? p->shape[C_SHAPE_VERDICT].n : 9) != 0;
	for (int i = C_SHAPE_BACKEND; i < C_SHAPE_N; i++) {
		bool level = i == C_SHAPE_MODE || i == C_SHAPE_NETWORK || i >= C_SHAPE_ENFORCEMENT;
		if (!(level && !p->has_level) && !(i == C_SHAPE_BACKEND && !p->has_backend))
			continue;
		st_cell c = st_column(*row, i + 1);
		if (i == C_SHAPE_ENFORCEMENT &&
		    p->shape[i].n != 7) /* the end's own, unless "unknown" */
			continue;
		p->shape[i] = c;
	}
	if (!p->has_level && !ran)
		p->shape[C_SHAPE_CONTAINED] = st_int(0);
	if (!p->has_level && f->reason)
		p->rec[C_REC_REASON] = st_text(f->reason, f->reason_len);
	return 0;
}

static int dict_name(sw_store *s, st_table t, bool has, st_cell *cells, int64_t *id, sw_error *err)
{
	*id = 0;
	return has ? st_dict(s, t, cells, id, err) : 0;
}

/* Reasons are free text. Past this many kinds they no longer make new ones: the row
 * keeps its own reason, the reports count it as "(other)". */
#define SHAPES_BEFORE_OTHER 32768
/* The same for sets of labels. */
#define ORIGINS_BEFORE_OTHER 65536

static int64_t newest(sw_store *s, st_table t)
{
	sqlite3_stmt *q = st_stmt(s, Q_MAX_DICT + (int)t, NULL);
	int64_t n = q && sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
	if (q)
		sqlite3_reset(q);
	return n;
}

static int intern(sw_store *s, st_prep *p, const found *f, int64_t ids[4], sw_error *err)
{
	int code = 0;
	p->rec[C_REC_LABELS] = st_null();
	if (p->shape[C_SHAPE_REASON].type != CELL_NULL && newest(s, T_SHAPE) >= SHAPES_BEFORE_OTHER)
		p->shape[C_SHAPE_REASON] = st_textz("(other)");
	if (p->kind == SW_STORE_END) {
		ids[0] = f->origin;
		ids[2] = f->session;
	} else {
		if (p->origin[C_ORIGIN_LABELS].n > 2 &&
		    newest(s, T_ORIGIN) >= ORIGINS_BEFORE_OTHER) {
			p->rec[C_REC_LABELS] = p->origin[C_ORIGIN_LABELS];
			p->origin[C_ORIGIN_LABELS] = st_textz("(other)");
		}
		code = st_dict(s, T_ORIGIN, p->origin, &ids[0], err);
		if (code == 0)
			code = dict_name(s, T_SESSION, p->has_session, p->session, &ids[2], err);
	}
	if (code == 0)
		code = st_dict(s, T_SHAPE, p->shape, &ids[1], err);
	if (code == 0)
		code = dict_name(s, T_RESOURCE, p->has_resource, p->resource, &ids[3], err);
	return code;
}

static int simple(sw_store *s, int which, uint64_t seq, sw_error *err)
{
	sqlite3_stmt *q = st_stmt(s, which, err);
	if (!q)
		return SW_EIO;
	sqlite3_bind_int64(q, 1, (int64_t)seq);
	int rc = sqlite3_step(q);
	sqlite3_reset(q);
	return rc == SQLITE_DONE ? 0 : st_sql_error(s, rc, "recording", err);
}

static int keep(sw_store *s, const st_prep *p, uint64_t seq, sw_error *err)
{
	sqlite3_stmt *q = st_stmt(s, Q_KEEP, err);
	if (!q)
		return SW_EIO;
	sqlite3_bind_int64(q, 1, (int64_t)seq);
	sqlite3_bind_int64(q, 2, (int64_t)p->kept_cut);
	sqlite3_bind_blob64(q, 3, p->kept, p->kept_len, SQLITE_STATIC);
	int rc = sqlite3_step(q);
	sqlite3_reset(q);
	sqlite3_clear_bindings(q);
	return rc == SQLITE_DONE ? 0 : st_sql_error(s, rc, "keeping the output", err);
}

/* What of start, end and duration was not given follows from the others, or is now. Nothing
 * ends before it started, whatever two clocks say. begun: an end's begin; *ended 0: not known. */
static void settle_times(const st_prep *p, int64_t begun, int64_t now, int64_t *started,
                         int64_t *ended)
{
	int64_t d = p->duration;
	*started = begun ? begun : p->started;
	*ended = p->ended;
	if (d && *started && !*ended && __builtin_add_overflow(*started, d, ended))
		*ended = now;
	if (!*ended && (begun || (d && !*started)))
		*ended = now;
	if (!*started)
		*started = d                        ? (*ended > d ? *ended - d : 0)
		           : *ended && *ended < now ? *ended
		                                    : now;
	if (*ended && *ended < *started)
		*ended = *started;
}

static int insert(sw_store *s, st_prep *p, const found *f, int64_t now, sw_receipt *out,
                  sw_error *err)
{
	static const int kinds[] = {[SW_STORE_BEGIN] = REC_BEGIN,
	                            [SW_STORE_END] = REC_END,
	                            [SW_STORE_COMPLETE] = REC_COMPLETE};
	int64_t ids[4];
	sqlite3_stmt *row = NULL;
	bool end = p->kind == SW_STORE_END;
	int code = 0;
	if (end && (!p->has_level || !p->has_backend))
		code = take_begin_level(s, p, f, &row, err);
	if (code == 0)
		code = intern(s, p, f, ids, err);
	if (row)
		sqlite3_reset(row);
	if (code != 0)
		return code;
	/* The reason of the begin must outlive its row. */
	st_cell *c = p->rec;
	int64_t started, ended;
	settle_times(p, end ? f->started : 0, now, &started, &ended);
	c[C_REC_KIND] = st_int(kinds[p->kind]);
	c[C_REC_ID] = end ? st_null() : st_blob(p->id_blob, p->id_len);
	c[C_REC_BEGIN_SEQ] = end ? st_int((int64_t)f->seq) : st_null();
	c[C_REC_RECORDED] = st_int(now);
	c[C_REC_STARTED] = st_int(started);
	c[C_REC_ENDED] = ended ? st_int(ended) : st_null();
	c[C_REC_ORIGIN] = st_int(ids[0]);
	c[C_REC_SHAPE] = st_int(ids[1]);
	c[C_REC_SESSION] = st_int(ids[2]);
	c[C_REC_RESOURCE] = st_int(ids[3]);
	uint64_t seq = 0;
	code = st_append(s, T_RECORD, c, &seq, err);
	uint8_t hash[32];
	memcpy(hash, s->head.hash, 32);
	if (code == 0 && p->kept)
		code = keep(s, p, seq, err);
	if (code == 0 && p->kind == SW_STORE_BEGIN)
		code = simple(s, Q_OPEN_ADD, seq, err);
	if (code == 0 && end)
		code = simple(s, Q_OPEN_DEL, f->seq, err);
	if (code == 0)
		answer(out, p, seq, hash, false);
	return code;
}

/* SW_ECONFLICT, SW_ENOTFOUND and SW_ETOOBIG concern this operation alone. */
static int apply(sw_store *s, st_prep *p, int64_t now, sw_receipt *out, sw_error *err)
{
	found f;
	int code = find_id(s, p, &f, err);
	if (code != 0)
		return code;
	if (p->kind != SW_STORE_END) {
		int want = p->kind == SW_STORE_BEGIN ? REC_BEGIN : REC_COMPLETE;
		if (!f.there)
			code = insert(s, p, &f, now, out, err);
		else if (f.kind == want && memcmp(f.body, p->body, 16) == 0)
			answer(out, p, f.seq, f.hash, true);
		else
			code = conflict(p, "with another content", err);
	} else if (!f.there) {
		code = st_err(err, SW_ENOTFOUND, p->id,
		              "nothing with this id was begun (or it was pruned)", NULL,
		              "no such invocation");
	} else if (f.kind != REC_BEGIN) {
		code = conflict(p, "it was recorded complete, not begun", err);
	} else {
		sqlite3_stmt *q = st_stmt(s, Q_FIND_END, err);
		if (!q) {
			free(f.reason);
			return SW_EIO;
		}
		sqlite3_bind_int64(q, 1, (int64_t)f.seq);
		int rc = sqlite3_step(q);
		if (rc == SQLITE_ROW) {
			if (sqlite3_column_bytes(q, 1) == 16 && sqlite3_column_bytes(q, 2) == 32 &&
			    memcmp(sqlite3_column_blob(q, 1), p->body, 16) == 0)
				answer(out, p, (uint64_t)sqlite3_column_int64(q, 0),
				       sqlite3_column_blob(q, 2), true);
			else
				code = conflict(p, "it has ended already, differently", err);
		}
		sqlite3_reset(q);
		if (rc == SQLITE_DONE)
			code = insert(s, p, &f, now, out, err);
		else if (rc != SQLITE_ROW)
			code = st_sql_error(s, rc, "looking the end up", err);
	}
	free(f.reason);
	return code;
}

static bool own_fault(int code)
{
	return code == SW_ECONFLICT || code == SW_ENOTFOUND || code == SW_EINVAL ||
	       code == SW_ETOOBIG;
}

static void fail_all(sw_store_op *ops, size_t n, int code, const sw_error *e)
{
	for (size_t i = 0; i < n; i++) {
		if (own_fault(ops[i].code))
			continue;
		ops[i].code = code;
		ops[i].error = *e;
	}
}

int sw_store_write(sw_store *s, sw_store_op *ops, size_t n, sw_error *err)
{
	sw_error e = {0};
	if (n == 0 || n > SW_STORE_GROUP_MAX)
		return sw_error_set(err, SW_EINVAL, "a group has 1 to %d operations",
		                    SW_STORE_GROUP_MAX);
	int code = st_check_process(s, err);
	if (code != 0)
		return code;
	st_prep one, *preps = n == 1 ? &one : malloc(n * sizeof *preps);
	if (!preps)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	size_t good = 0;
	for (size_t i = 0; i < n; i++) {
		memset(&ops[i].error, 0, sizeof ops[i].error);
		ops[i].code = st_prepare(&preps[i], s, ops[i].kind, ops[i].record, &ops[i].error);
		good += ops[i].code == 0;
	}
	code = good ? st_begin(s, &e) : 0;
	bool open = good && code == 0, wrote = false;
	int64_t now = sw_now_ns();
	for (size_t i = 0; open && code == 0 && i < n; i++) {
		if (ops[i].code != 0)
			continue;
		ops[i].code = apply(s, &preps[i], now, &ops[i].receipt, &ops[i].error);
		if (ops[i].code != 0 && !own_fault(ops[i].code)) {
			code = ops[i].code;
			e = ops[i].error;
		}
		wrote |= ops[i].code == 0 && !ops[i].receipt.replay;
	}
	if (open && code == 0 && wrote && st_seal_due(s, now))
		code = st_seal_now(s, now, &e);
	if (open && code == 0 && wrote)
		code = st_commit(s, &e);
	else if (open)
		st_abort(s); /* nothing to write, or a failure */
	if (code != 0) {
		fail_all(ops, n, code, &e);
		if (err)
			*err = e;
	}
	for (size_t i = 0; i < n; i++)
		st_prep_free(&preps[i]);
	if (preps != &one)
		free(preps);
	return code;
}

static int write_one(sw_store *s, sw_store_op_kind kind, const sw_record *r, sw_receipt *out,
                     sw_error *err)
{
	sw_store_op op = {.kind = kind, .record = r};
	int code = sw_store_write(s, &op, 1, err);
	if (code == 0 && op.code != 0) {
		code = op.code;
		if (err)
			*err = op.error;
	}
	if (code == 0 && out)
		*out = op.receipt;
	return code;
}

int sw_store_begin(sw_store *s, const sw_record *r, sw_receipt *out, sw_error *err)
{
	return write_one(s, SW_STORE_BEGIN, r, out, err);
}

int sw_store_end(sw_store *s, const sw_record *r, sw_receipt *out, sw_error *err)
{
	return write_one(s, SW_STORE_END, r, out, err);
}

int sw_store_complete(sw_store *s, const sw_record *r, sw_receipt *out, sw_error *err)
{
	return write_one(s, SW_STORE_COMPLETE, r, out, err);
}
