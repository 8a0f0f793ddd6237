/*
 * prepare.c - checks a record, takes the secrets out, and encodes its rows, all before
 * the lock is taken.
 */
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "prepare.h"

static int own(st_prep *p, void *m)
{
	if (!m)
		return SW_ENOMEM;
	if (p->n_owned == PREP_OWNED) {
		free(m);
		return SW_ETOOBIG;
	}
	p->owned[p->n_owned++] = m;
	return 0;
}

void st_prep_free(st_prep *p)
{
	for (size_t i = 0; i < p->n_owned; i++)
		free(p->owned[i]);
	free(p->kept);
	p->n_owned = 0;
	p->kept = NULL;
}

static int too_big(sw_error *err, const char *field, size_t max)
{
	char why[64];
	snprintf(why, sizeof why, "at most %zu bytes are recorded", max);
	return st_err(err, SW_ETOOBIG, field, why, NULL, "too long");
}

static int no_nul(sw_str s, const char *field, sw_error *err)
{
	if (!s.len || !memchr(s.ptr, 0, s.len))
		return 0;
	return st_err(err, SW_EINVAL, field, "it holds a NUL character", NULL,
	              "not a valid record");
}

/* A redacted text cell, cut at max where cut, else an error; empty gives NULL. Captured bytes
 * may hold anything, whoever gives a name or a text means text. */
static int captured(st_prep *p, st_cell *out, sw_str s, size_t max, bool cut, const char *field,
                    sw_error *err)
{
	*out = st_null();
	if (s.len == 0)
		return 0;
	if (!cut && s.len > max)
		return too_big(err, field, max);
	/* Redacting a bounded window keeps the work bounded; a secret cut there is cut away. */
	size_t n = 0, in = cut && s.len > 4 * max ? 4 * max : s.len;
	char *z = sw_redact(s.ptr, in, &n);
	int code = own(p, z);
	if (code != 0)
		return sw_error_set(err, code, "out of memory");
	*out = st_text(z, cut && n > max ? max : n);
	return 0;
}

static int text(st_prep *p, st_cell *out, sw_str s, size_t max, bool cut, const char *field,
                sw_error *err)
{
	int code = no_nul(s, field, err);
	return code == 0 ? captured(p, out, s, max, cut, field, err) : code;
}

static int check_id(st_prep *p, sw_str id, sw_error *err)
{
	if (id.len == 0) {
		if (p->kind == SW_STORE_END)
			return st_err(err, SW_EINVAL, "id", "an end names its begin",
			              "give the id of the begin", "no id");
		sw_uuid7(p->id);
	} else {
		if (id.len > SW_RECORD_ID_MAX)
			return too_big(err, "id", SW_RECORD_ID_MAX);
		for (size_t i = 0; i < id.len; i++)
			if ((unsigned char)id.ptr[i] <= ' ' || id.ptr[i] == 127)
				return st_err(err, SW_EINVAL, "id",
				              "it holds a space or a control character", NULL,
				              "not an id");
		if (!sw_utf8_valid(id.ptr, id.len))
			return st_err(err, SW_EINVAL, "id", "it is not UTF-8", NULL, "not an id");
		memcpy(p->id, id.ptr, id.len);
		p->id[id.len] = 0;
	}
	p->id_len = st_id_blob(p->id_blob, p->id, strlen(p->id));
	return 0;
}

static int compare_labels(const void *a, const void *b)
{
	const sw_label *x = a, *y = b;
	size_t n = x->key.len < y->key.len ? x->key.len : y->key.len;
	int c = n ? memcmp(x->key.ptr, y->key.ptr, n) : 0;
	return c ? c : (x->key.len > y->key.len) - (x->key.len < y->key.len);
}

/* {"k":"v",...} sorted by key, so that the same set is the same text. */
static int labels(st_prep *p, const sw_record *r, sw_error *err)
{
	if (r->n_labels > SW_RECORD_LABELS_MAX)
		return st_err(err, SW_ETOOBIG, "labels", "at most 32 are recorded", NULL,
		              "too many labels");
	sw_label sorted[SW_RECORD_LABELS_MAX];
	for (size_t i = 0; i < r->n_labels; i++)
		sorted[i] = r->labels[i];
	qsort(sorted, r->n_labels, sizeof *sorted, compare_labels);
	json_t *o = json_object();
	int code = o ? 0 : SW_ENOMEM;
	for (size_t i = 0; code == 0 && i < r->n_labels; i++) {
		const sw_label *l = &sorted[i];
		if (no_nul(l->key, "labels", err) != 0 || no_nul(l->value, "labels", err) != 0) {
			json_decref(o);
			return SW_EINVAL;
		}
		if (l->key.len == 0 || l->key.len > 64 || l->value.len > SW_RECORD_NAME_MAX) {
			json_decref(o);
			return st_err(err, SW_EINVAL, "labels",
			              "a key has 1 to 64 bytes, a value at most 256", NULL,
			              "a label that cannot be recorded");
		}
		if (i && compare_labels(&sorted[i - 1], l) == 0) {
			json_decref(o);
			return st_err(err, SW_EINVAL, "labels", "the same key twice", NULL,
			              "a label that cannot be recorded");
		}
		/* "api_key" = "...": the name counts too. */
		char *pair = NULL;
		size_t n = 0;
		int len = asprintf(&pair, "%.*s=", (int)l->key.len, l->key.ptr);
		char *both = len < 0 ? NULL : realloc(pair, (size_t)len + l->value.len + 1);
		if (!both) {
			free(len < 0 ? NULL : pair);
			code = SW_ENOMEM;
			break;
		}
		if (l->value.len)
			memcpy(both + len, l->value.ptr, l->value.len);
		char *clean = sw_redact(both, (size_t)len + l->value.len, &n);
		json_t *v = clean && n >= (size_t)len
		                ? sw_json_text((sw_str){clean + len, n - (size_t)len})
		                : NULL;
		char key[65];
		memcpy(key, l->key.ptr, l->key.len);
		key[l->key.len] = 0;
		if (!clean || (!v && n >= (size_t)len))
			code = SW_ENOMEM;
		else if (!v || json_object_set_new(o, key, v) != 0)
			code = SW_EINVAL;
		free(clean);
		free(both);
	}
	char *z = code == 0 ? sw_json_dump(o) : NULL;
	json_decref(o);
	if (code == SW_EINVAL)
		return st_err(err, SW_EINVAL, "labels", "a key is not UTF-8", NULL,
		              "a label that cannot be recorded");
	if (own(p, z) != 0)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	p->origin[C_ORIGIN_LABELS] = st_textz(z);
	return 0;
}

static int origin(st_prep *p, const sw_store *s, const sw_record *r, sw_error *err)
{
	const struct {
		int col;
		sw_str v;
		const char *name;
	} f[] = {
	    {C_ORIGIN_DEVICE, r->device.len ? r->device : sw_str_of(s->host), "device"},
	    {C_ORIGIN_PLATFORM,
	     r->platform.len || r->device.len ? r->platform : sw_str_of(s->platform), "platform"},
	    {C_ORIGIN_RUNTIME, r->runtime, "runtime"},
	    {C_ORIGIN_ACTOR, r->actor, "actor"},
	};
	for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
		int code = text(p, &p->origin[f[i].col], f[i].v, SW_RECORD_NAME_MAX, false,
		                f[i].name, err);
		if (code != 0)
			return code;
	}
	int code = labels(p, r, err);
	if (code == 0)
		code = text(p, &p->session[C_NAME_VALUE], r->session, SW_RECORD_NAME_MAX, false,
		            "session", err);
	p->has_session = code == 0 && p->session[C_NAME_VALUE].type != CELL_NULL;
	return code;
}

/* ["a","b"]; arguments that do not fit are counted in a last element. */
static int command(st_prep *p, const sw_record *r, sw_error *err)
{
	p->rec[C_REC_COMMAND] = st_null();
	if (r->argc == 0)
		return 0;
	for (size_t i = 0; i < r->argc; i++)
		if (no_nul(r->argv[i], "command", err) != 0)
			return SW_EINVAL;
	sw_str *clean = calloc(r->argc, sizeof *clean);
	json_t *a = json_array();
	if (!clean || !a || sw_redact_argv(r->argv, r->argc, clean) != 0) {
		free(clean);
		json_decref(a);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	size_t used = 2, i;
	bool bad = false;
	for (i = 0; i < r->argc; i++) {
		json_t *v = sw_json_text(clean[i]);
		char *z = v ? sw_json_dump_as(v, JSON_ENCODE_ANY) : NULL;
		size_t n = z ? strlen(z) + 1 : 0;
		bad |= v && !z;
		free(z);
		if (!v || used + n > SW_RECORD_COMMAND_MAX - 64) {
			bad |= !v;
			if (v &&
			    i == 0) { /* one huge argument: its beginning says more than nothing */
				json_decref(v);
				size_t cut = SW_RECORD_COMMAND_MAX / 8;
				v = sw_json_text((sw_str){clean[0].ptr,
				                          clean[0].len < cut ? clean[0].len : cut});
				json_array_append_new(a, v);
				i++;
			} else {
				json_decref(v);
			}
			break;
		}
		used += n;
		json_array_append_new(a, v);
	}
	if (i < r->argc || (i == 1 && used == 2)) {
		char more[64];
		snprintf(more, sizeof more, "[cut: %zu more arguments]", r->argc - i);
		json_array_append_new(a, json_string(more));
	}
	for (size_t k = 0; k < r->argc; k++)
		free((char *)clean[k].ptr);
	free(clean);
	char *z = bad ? NULL : sw_json_dump(a);
	json_decref(a);
	if (own(p, z) != 0)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	p->rec[C_REC_COMMAND] = st_textz(z);
	return 0;
}

static st_cell set_cell(st_prep *p, int i, uint32_t bits)
{
	sw_guarantees_text(bits, p->sets[i]);
	return st_textz(p->sets[i]);
}

static int shape(st_prep *p, const sw_record *r, sw_error *err)
{
	const sw_outcome *o = &r->outcome;
	st_cell *c = p->shape;
	bool begin = p->kind == SW_STORE_BEGIN;
	const struct {
		int col;
		sw_str v;
		const char *name;
	} f[] = {
	    {C_SHAPE_BACKEND, r->backend, "backend"},
	    {C_SHAPE_REQUESTED, r->requested, "requested"},
	    {C_SHAPE_MINIMUM, r->minimum, "minimum"},
	    {C_SHAPE_EFFECTIVE, r->effective, "effective"},
	    {C_SHAPE_CAUSE, begin ? (sw_str){"", 0} : o->cause, "cause"},
	    {C_SHAPE_SIGNATURE, begin ? (sw_str){"", 0} : o->signature, "signature"},
	    {C_SHAPE_RESOURCE_KIND, begin ? (sw_str){"", 0} : o->resource_kind, "resource_kind"},
	};
	for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
		int code = text(p, &c[f[i].col], f[i].v, SW_RECORD_NAME_MAX, false, f[i].name, err);
		if (code != 0)
			return code;
	}
	p->has_backend = r->backend.len > 0;
	if (!p->has_backend && p->kind != SW_STORE_END)
		return st_err(err, SW_EINVAL, "backend", "every record names its sandbox runner",
		              "use \"none\" where there was none", "no backend");
	int code =
	    text(p, &c[C_SHAPE_REASON], r->reason, SW_RECORD_REASON_MAX, true, "reason", err);
	if (code != 0)
		return code;
	p->rec[C_REC_REASON] = c[C_SHAPE_REASON];
	static const sw_outcome nothing = {0};
	const sw_outcome *x = begin ? &nothing : o;
	const sw_level_outcome *l = &r->level;
	sw_enforcement enforcement =
	    x->enforcement != SW_ENFORCEMENT_UNKNOWN ? x->enforcement : l->enforcement;
	c[C_SHAPE_MODE] = st_textz(sw_mode_name(r->mode));
	c[C_SHAPE_NETWORK] = st_textz(sw_network_name(r->network));
	c[C_SHAPE_VERDICT] = st_textz(begin ? "unfinished" : sw_record_verdict_name(x->verdict));
	c[C_SHAPE_RULE] = st_int(x->rule);
	c[C_SHAPE_STAGE] = st_textz(sw_stage_name(x->stage));
	c[C_SHAPE_CONFIDENCE] = st_textz(sw_confidence_name(x->confidence));
	c[C_SHAPE_EVIDENCE] = st_textz(sw_evidence_name(x->evidence));
	c[C_SHAPE_SOURCE] = st_textz(sw_source_name(x->evidence_source));
	c[C_SHAPE_STARTED] = st_textz(sw_started_name(x->started));
	c[C_SHAPE_OPERATION] = st_textz(sw_operation_name(x->operation));
	c[C_SHAPE_LIMIT] = st_textz(sw_limit_name(x->limit));
	c[C_SHAPE_LIMIT_CERTAINTY] = st_textz(sw_certainty_name(x->limit_certainty));
	c[C_SHAPE_ENFORCEMENT] = st_textz(sw_enforcement_name(enforcement));
	c[C_SHAPE_REQUESTED_SET] = set_cell(p, 0, l->requested);
	c[C_SHAPE_MINIMUM_SET] = set_cell(p, 1, l->minimum);
	c[C_SHAPE_EFFECTIVE_SET] = set_cell(p, 2, l->effective);
	c[C_SHAPE_GRANTED] = set_cell(p, 3, r->granted);
	c[C_SHAPE_LOST] = set_cell(p, 4, l->lost);
	c[C_SHAPE_VIOLATED] = set_cell(p, 5, l->violated);
	c[C_SHAPE_BASIS] = st_textz(sw_basis_name(l->basis));
	c[C_SHAPE_ISOLATED] = st_int(l->isolated);
	c[C_SHAPE_DOWNGRADE] = st_int(l->downgrade);
	c[C_SHAPE_UNEXPLAINED] = st_int(l->unexplained);
	c[C_SHAPE_EXEMPT] = st_int(l->exempt);
	c[C_SHAPE_VIOLATION] = st_int(l->violation);
	c[C_SHAPE_CONTAINED] = st_int(l->contained);
	c[C_SHAPE_REASON_CLASS] = st_textz(sw_reason_class_name(r->reason_class));
	for (int i = C_SHAPE_BACKEND; i < C_SHAPE_N; i++) {
		bool may = i == C_SHAPE_CAUSE || i == C_SHAPE_SIGNATURE ||
		           i == C_SHAPE_RESOURCE_KIND || i == C_SHAPE_REQUESTED ||
		           i == C_SHAPE_MINIMUM || i == C_SHAPE_EFFECTIVE || i == C_SHAPE_REASON ||
		           (i == C_SHAPE_BACKEND && !p->has_backend);
		if (c[i].type == CELL_NULL && !may)
			return st_err(err, SW_EINVAL, st_tables[T_SHAPE].cols[i],
			              "a value outside the list in names.h", NULL,
			              "not a valid record");
	}
	return 0;
}

void st_kept_digest(uint8_t out[32], uint64_t cut, const void *data, size_t n)
{
	struct sha256_ctx h;
	uint8_t b[8];
	for (int i = 0; i < 8; i++)
		b[i] = (uint8_t)(cut >> (56 - 8 * i));
	sha256_init(&h);
	sha256_update(&h, 8, b);
	sha256_update(&h, n, data);
	sha256_digest(&h, 32, out);
}

/* Head and tail, cut between lines where there are any: a verdict sits at either end. */
static int keep_output(st_prep *p, const sw_record *r, sw_error *err)
{
	size_t max = r->keep_output < SW_RECORD_OUTPUT_MAX ? r->keep_output : SW_RECORD_OUTPUT_MAX;
	size_t n = 0;
	char *z = sw_redact(r->output.ptr, r->output.len, &n);
	if (!z)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	if (n > max) {
		size_t head = max / 2, tail = max - head;
		const char *nl = head ? memrchr(z, '\n', head) : NULL;
		if (nl && (size_t)(nl + 1 - z) > head / 2)
			head = (size_t)(nl + 1 - z);
		const char *from = z + n - tail;
		nl = tail ? memchr(from, '\n', tail / 2) : NULL;
		if (nl) {
			tail -= (size_t)(nl + 1 - from);
			from = nl + 1;
		}
		p->kept_cut = n - head - tail;
		memmove(z + head, from, tail);
		n = head + tail;
	}
	p->kept = z;
	p->kept_len = n;
	st_kept_digest(p->kept_digest, p->kept_cut, z, n);
	p->rec[C_REC_KEPT_DIGEST] = st_blob(p->kept_digest, 32);
	return 0;
}

/* Every string of the detail, redacted. */
static json_t *clean_json(const json_t *j, int depth)
{
	if (json_is_string(j)) {
		size_t n = 0;
		char *z = sw_redact(json_string_value(j), json_string_length(j), &n);
		json_t *out = z ? json_stringn_nocheck(z, n) : NULL;
		free(z);
		return out;
	}
	if (depth > 8)
		return json_null();
	if (json_is_array(j)) {
		json_t *out = json_array();
		for (size_t i = 0; i < json_array_size(j); i++)
			json_array_append_new(out, clean_json(json_array_get(j, i), depth + 1));
		return out;
	}
	if (json_is_object(j)) {
		json_t *out = json_object();
		const char *key;
		json_t *v;
		json_object_foreach((json_t *)j, key, v)
		    json_object_set_new_nocheck(out, key, clean_json(v, depth + 1));
		return out;
	}
	return json_deep_copy(j);
}

static int detail(st_prep *p, const sw_outcome *o, sw_error *err)
{
	p->rec[C_REC_DETAIL] = st_null();
	if (!o->detail || !json_is_object(o->detail) || json_object_size(o->detail) == 0)
		return 0;
	json_t *j = clean_json(o->detail, 0);
	char *z = j ? sw_json_dump(j) : NULL;
	/* Over the maximum: the observations go first, then all. */
	if (z && strlen(z) > SW_RECORD_DETAIL_MAX) {
		free(z);
		json_object_del(j, "observations");
		json_object_set_new(j, "cut", json_true());
		z = sw_json_dump(j);
		if (z && strlen(z) > SW_RECORD_DETAIL_MAX) {
			free(z);
			z = strdup("{\"cut\":true}");
		}
	}
	json_decref(j);
	if (own(p, z) != 0)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	p->rec[C_REC_DETAIL] = st_textz(z);
	return 0;
}

static int outcome(st_prep *p, const sw_record *r, sw_error *err)
{
	st_cell *c = p->rec;
	const sw_outcome *o = &r->outcome;
	static const sw_outcome nothing = {0};
	if (p->kind == SW_STORE_BEGIN)
		o = &nothing;
	c[C_REC_EXIT] = o->has_exit && o->exit.has_code ? st_int(o->exit.code) : st_null();
	c[C_REC_SIGNAL] = o->has_exit && o->exit.signal ? st_int(o->exit.signal) : st_null();
	c[C_REC_TIMED_OUT] = st_int(o->has_exit && o->exit.timed_out);
	c[C_REC_LINE] = st_null();
	bool cut = o->line_truncated;
	if (o->has_line) {
		int code =
		    captured(p, &c[C_REC_LINE], o->line, SW_LINE_REPORT_MAX, true, "line", err);
		if (code != 0)
			return code;
		cut |= c[C_REC_LINE].n == SW_LINE_REPORT_MAX;
		c[C_REC_LINE] = st_blob(c[C_REC_LINE].type ? c[C_REC_LINE].p : "", c[C_REC_LINE].n);
	}
	c[C_REC_LINE_NUMBER] = st_int((int64_t)o->line_number);
	c[C_REC_LINE_OFFSET] = st_int((int64_t)o->offset);
	c[C_REC_LINE_CUT] = st_int(cut);
	c[C_REC_DENIED_LINES] = st_int((int64_t)o->denied_lines);
	bool given = p->kind != SW_STORE_BEGIN && r->output.ptr;
	c[C_REC_OUTPUT_SIZE] = st_int((int64_t)(given ? r->output.len : o->output_size));
	c[C_REC_OUTPUT_LINES] = st_int((int64_t)o->output_lines);
	c[C_REC_OUTPUT_DIGEST] = st_null();
	if (given && !o->has_output_digest)
		st_sha256(p->output_digest, r->output.ptr, r->output.len);
	else if (o->has_output_digest)
		memcpy(p->output_digest, o->output_digest, 32);
	if (given || o->has_output_digest)
		c[C_REC_OUTPUT_DIGEST] = st_blob(p->output_digest, 32);
	c[C_REC_KEPT_DIGEST] = st_null();
	int code = captured(p, &p->resource[C_NAME_VALUE], o->resource, SW_RECORD_RESOURCE_MAX,
	                    true, "resource", err);
	p->has_resource = code == 0 && p->resource[C_NAME_VALUE].type != CELL_NULL;
	if (code == 0)
		code = detail(p, o, err);
	if (code == 0 && given && r->keep_output)
		code = keep_output(p, r, err);
	return code;
}

int st_prepare(st_prep *p, const sw_store *s, sw_store_op_kind kind, const sw_record *r,
               sw_error *err)
{
	memset(p, 0, sizeof *p);
	p->kind = kind;
	p->has_level = kind != SW_STORE_END || r->has_level;
	p->started = r->started_ns;
	p->ended = r->ended_ns;
	p->duration = r->duration_ns;
	if (r->started_ns < 0 || r->ended_ns < 0 || r->duration_ns < 0)
		return st_err(err, SW_EINVAL, "started_at", "before 1970", NULL,
		              "not a valid time");
	if (r->ended_ns && r->started_ns && r->ended_ns < r->started_ns)
		return st_err(err, SW_EINVAL, "ended_at", "before started_at", NULL,
		              "not a valid time");
	int code = check_id(p, r->id, err);
	if (code == 0 && kind != SW_STORE_END)
		code = origin(p, s, r, err);
	if (code == 0)
		code = shape(p, r, err);
	if (code == 0 && kind != SW_STORE_END)
		code = command(p, r, err);
	p->rec[C_REC_CWD] = st_null();
	if (code == 0 && kind != SW_STORE_END)
		code = text(p, &p->rec[C_REC_CWD], r->cwd, 4096, true, "cwd", err);
	if (code == 0)
		code = outcome(p, r, err);
	if (code != 0)
		return code;
	/* What makes two requests with one id the same request. Times that the store itself
	 * filled in do not count. */
	st_cell all[C_ORIGIN_N + C_SHAPE_N + C_REC_N + 9];
	size_t n = 0;
	all[n++] = st_int(kind);
	all[n++] = st_int(p->started);
	all[n++] = st_int(p->ended);
	if (p->duration) /* as if it were not known in what was recorded without it */
		all[n++] = st_int(p->duration);
	all[n++] = st_int(p->has_level);
	all[n++] = p->session[C_NAME_VALUE];
	all[n++] = p->resource[C_NAME_VALUE];
	for (int i = C_ORIGIN_DEVICE; i < C_ORIGIN_N; i++)
		all[n++] = p->origin[i];
	for (int i = C_SHAPE_BACKEND; i < C_SHAPE_N; i++)
		all[n++] = p->shape[i];
	for (int i = C_REC_COMMAND; i < C_REC_N; i++)
		all[n++] = p->rec[i];
	st_cells_digest(p->body, all, n);
	p->rec[C_REC_BODY] = st_blob(p->body, 16);
	return 0;
}
