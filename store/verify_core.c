/*
 * verify_core.c - is this chain what was written? Says what was changed, is missing,
 * was moved, cut off, or sealed by somebody else.
 *
 * A row that does not fit is not the end: the chain goes on from its stored hash, so
 * that every damaged row is named and an intact one is not.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "verify_int.h"

static int parse_anchor(vf_anchor *a, const char *z, sw_error *err)
{
	memset(a, 0, sizeof *a);
	const char *end = strchr(z, ':');
	size_t n = end ? strlen(end + 1) : 0;
	if (!end || !st_number(z, (size_t)(end - z), &a->seq) || a->seq == 0 || n < 16 || n > 64 ||
	    st_unhex(end + 1, n, a->hash) != 0)
		return st_err(err, SW_EINVAL, z, "SEQ:HASH, HASH of 16 to 64 hex digits",
		              "take it from a report's footer or GET /v1/chain", "not an anchor");
	a->n = n / 2;
	return 0;
}

int vf_init(vf *v, const sw_verify_options *o, sw_error *err)
{
	static const sw_verify_options none = {0};
	memset(v, 0, sizeof *v);
	v->o = o ? o : &none;
	v->expected = 1;
	sha256_init(&v->dict);
	if (v->o->n_anchors > VF_ANCHORS_MAX)
		return st_err(err, SW_ETOOBIG, "anchor", NULL, NULL, "too many anchors");
	for (size_t i = 0; i < v->o->n_anchors; i++) {
		int code = parse_anchor(&v->anchors[v->n_anchors++], v->o->anchors[i], err);
		if (code != 0)
			return code;
	}
	if (v->o->public_key) {
		int code = st_public_read(v->o->public_key, v->pinned, err);
		if (code != 0)
			return code;
		v->has_pin = true;
	}
	v->findings = json_array();
	v->pruned = json_array();
	v->odd = calloc(VF_ODD_MAX, sizeof *v->odd);
	if (v->findings && v->pruned && v->odd)
		return 0;
	vf_free(v);
	return sw_error_set(err, SW_ENOMEM, "out of memory");
}

int vf_pin(vf *v, const char *path, sw_error *err)
{
	char pub[4200];
	snprintf(pub, sizeof pub, "%s.pub", path);
	if (v->has_pin || access(pub, F_OK) != 0)
		return 0;
	v->has_pin = true;
	return st_public_read(pub, v->pinned, err);
}

void vf_free(vf *v)
{
	for (size_t i = 0; v->odd && i < v->n_odd; i++)
		for (int c = 0; c < st_tables[v->odd[i].t].n; c++)
			free((void *)v->odd[i].cells[c].p);
	free(v->odd);
	json_decref(v->findings);
	json_decref(v->pruned);
	v->odd = NULL;
	v->findings = v->pruned = NULL;
}

static const char *const kind_names[VF_KINDS] = {"changed", "missing", "reordered", "truncated",
                                                 "bad_seal"};

void vf_find(vf *v, vf_kind kind, const char *table, uint64_t seq, st_cell id, const char *fmt, ...)
{
	v->count[kind]++;
	if (json_array_size(v->findings) >= VF_FINDINGS_MAX)
		return;
	char text[300];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	char *name = st_id_text(id);
	json_t *o = json_object();
	json_object_set_new(o, "kind", json_string(kind_names[kind]));
	json_object_set_new(o, "table", sw_json_z(table));
	json_object_set_new(o, "seq", seq ? json_integer((json_int_t)seq) : json_null());
	json_object_set_new(o, "id", name ? sw_json_text(sw_str_of(name)) : json_null());
	json_object_set_new(o, "what", sw_json_text(sw_str_of(text)));
	json_array_append_new(v->findings, o);
	free(name);
}

uint64_t vf_total(const vf *v)
{
	uint64_t n = v->n_odd;
	for (int i = 0; i < VF_KINDS; i++)
		n += v->count[i];
	return n;
}

void vf_pruned(vf *v, uint64_t to, const uint8_t resume[32], const uint8_t dict[32])
{
	v->pruned_to = to;
	memcpy(v->resume, resume, 32);
	memcpy(v->want_dict, dict, 32);
	memcpy(v->prev, resume, 32);
	v->expected = to + 1;
}

void vf_dict_digest(struct sha256_ctx *h, st_table t, uint64_t seq, const st_cell *cells,
                    st_cell hash)
{
	static const uint8_t zero[32];
	uint8_t one[32];
	st_row_hash(one, zero, seq, &st_tables[t], cells);
	sha256_update(h, 32, one);
	if (hash.n)
		sha256_update(h, hash.n, hash.p);
}

static st_cell id_cell(st_table t, const st_cell *cells)
{
	return t == T_RECORD ? cells[C_REC_ID] : st_null();
}

/* ---- rows ---- */

static void remember(vf *v, st_table t, uint64_t seq, const st_cell *cells,
                     const uint8_t stored[32], const uint8_t computed[32])
{
	if (v->n_odd == VF_ODD_MAX) {
		vf_find(v, VF_CHANGED, st_tables[t].name, seq, id_cell(t, cells), "it was changed");
		return;
	}
	vf_odd *o = &v->odd[v->n_odd++];
	memset(o, 0, sizeof *o);
	o->t = t;
	o->seq = seq;
	memcpy(o->prev, v->prev, 32);
	memcpy(o->stored, stored, 32);
	memcpy(o->computed, computed, 32);
	for (int i = 0; i < st_tables[t].n; i++) {
		o->cells[i] = cells[i];
		o->cells[i].p = NULL;
		if (cells[i].type == CELL_TEXT || cells[i].type == CELL_BLOB) {
			void *copy = malloc(cells[i].n + 1);
			if (copy)
				memcpy(copy, cells[i].p, cells[i].n);
			else
				o->cells[i].n = 0;
			o->cells[i].p = copy;
		}
	}
}

static bool was_missing(vf *v, uint64_t seq)
{
	for (size_t i = 0; i < v->n_gaps; i++)
		if (seq >= v->gaps[i][0] && seq <= v->gaps[i][1])
			return true;
	return false;
}

static void check_anchors(vf *v, uint64_t seq, const uint8_t hash[32])
{
	for (size_t i = 0; i < v->n_anchors; i++) {
		vf_anchor *a = &v->anchors[i];
		if (a->seq != seq)
			continue;
		a->met = true;
		if (memcmp(a->hash, hash, a->n) != 0)
			vf_find(v, VF_CHANGED, NULL, seq, st_null(),
			        "this row's hash is not the anchor's: history was rewritten");
	}
}

static void check_dictionary(vf *v, st_table t, uint64_t seq, const st_cell *cells)
{
	if (t != T_SESSION && t != T_RESOURCE && t != T_ORIGIN && t != T_SHAPE)
		return;
	if (cells[C_NAME_ID].i != v->last_id[t] + 1)
		vf_find(v, VF_CHANGED, st_tables[t].name, seq, st_null(),
		        "its number %lld does not follow %lld", (long long)cells[C_NAME_ID].i,
		        (long long)v->last_id[t]);
	v->last_id[t] = cells[C_NAME_ID].i;
}

static void check_names_used(vf *v, uint64_t seq, const st_cell *c)
{
	static const struct {
		int col;
		st_table t;
		bool none;
	} uses[] = {{C_REC_ORIGIN, T_ORIGIN, false},
	            {C_REC_SHAPE, T_SHAPE, false},
	            {C_REC_SESSION, T_SESSION, true},
	            {C_REC_RESOURCE, T_RESOURCE, true}};
	for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
		int64_t id = c[uses[i].col].i;
		if (id < (uses[i].none ? 0 : 1) || id > v->last_id[uses[i].t])
			vf_find(v, VF_MISSING, st_tables[uses[i].t].name, seq, id_cell(T_RECORD, c),
			        "row %llu names number %lld of it, which does not exist",
			        (unsigned long long)seq, (long long)id);
	}
}

static void note_time(vf *v, st_table t, const st_cell *c)
{
	if (v->unsealed_ns)
		return;
	v->unsealed_ns = t == T_RECORD  ? c[C_REC_RECORDED].i
	                 : t == T_STORE ? c[C_STORE_AT].i
	                 : t == T_KEY   ? c[C_KEY_AT].i
	                 : t == T_PRUNE ? c[C_PRUNE_AT].i
	                                : 0;
}

void vf_contents(vf *v, st_table t, uint64_t seq, const st_cell *cells, const uint8_t prev[32],
                 bool in_chain)
{
	check_dictionary(v, t, seq, cells);
	switch (t) {
	case T_STORE:
		if (seq != 1) {
			vf_find(v, VF_CHANGED, "store", seq, st_null(),
			        "the row that begins a trail, in the midst of one");
		} else if (cells[C_STORE_UUID].type == CELL_BLOB && cells[C_STORE_UUID].n == 16) {
			memcpy(v->uuid, cells[C_STORE_UUID].p, 16);
			v->has_uuid = true;
		}
		break;
	case T_KEY:
		vf_take_key(v, seq, cells);
		break;
	case T_SEAL:
		vf_take_seal(v, seq, cells, prev, in_chain);
		return;
	case T_RECORD:
		check_names_used(v, seq, cells);
		break;
	case T_PRUNE:
		vf_take_prune(v, seq, cells);
		break;
	default:
		break;
	}
	note_time(v, t, cells);
}

/* Rows at or before the newest pruning: what was kept is bound by the prune row. */
static void kept_row(vf *v, st_table t, uint64_t seq, const st_cell *cells, st_cell hash)
{
	if (!st_tables[t].kept) {
		vf_find(v, VF_CHANGED, st_tables[t].name, seq, id_cell(t, cells),
		        "a row in a range that was pruned: it was inserted");
		return;
	}
	if (v->last_seq || seq <= v->last_kept)
		vf_find(v, VF_REORDERED, st_tables[t].name, seq, st_null(),
		        "it stands after row %llu",
		        (unsigned long long)(v->last_seq ? v->last_seq : v->last_kept));
	v->last_kept = seq;
	vf_dict_digest(&v->dict, t, seq, cells, hash);
	vf_contents(v, t, seq, cells, NULL, false);
	/* A seal that was kept still tells two heads of its time. */
	if (hash.type == CELL_BLOB && hash.n == 32)
		check_anchors(v, seq, hash.p);
	if (t == T_SEAL && cells[C_SEAL_HEAD].n == 32)
		check_anchors(v, (uint64_t)cells[C_SEAL_LAST].i, cells[C_SEAL_HEAD].p);
	if (seq == v->pruned_to) {
		v->boundary_seen = t == T_SEAL;
		if (t != T_SEAL || hash.n != 32 || memcmp(hash.p, v->resume, 32) != 0)
			vf_find(v, VF_CHANGED, st_tables[t].name, seq, st_null(),
			        "the seal that the pruned range ended with is another one");
	}
}

void vf_row(vf *v, st_table t, uint64_t seq, const st_cell *cells, st_cell hash)
{
	uint8_t computed[32], second[32];
	const char *name = st_tables[t].name;
	v->rows++;
	if (seq <= v->pruned_to) {
		kept_row(v, t, seq, cells, hash);
		return;
	}
	if (seq < v->expected) {
		if (was_missing(v, seq))
			vf_find(v, VF_REORDERED, name, seq, id_cell(t, cells),
			        "it stands after row %llu", (unsigned long long)v->last_seq);
		else
			vf_find(v, VF_CHANGED, name, seq, id_cell(t, cells),
			        "a second row with this number: it was inserted");
		return;
	}
	if (hash.type != CELL_BLOB || hash.n != 32) {
		vf_find(v, VF_CHANGED, name, seq, id_cell(t, cells), "its hash was changed");
		hash = st_blob(v->prev, 32);
	}
	bool gap = seq > v->expected;
	if (gap) {
		vf_find(v, VF_MISSING, NULL, v->expected, st_null(),
		        "rows %llu to %llu are missing", (unsigned long long)v->expected,
		        (unsigned long long)seq - 1);
		if (v->n_gaps < sizeof v->gaps / sizeof *v->gaps) {
			v->gaps[v->n_gaps][0] = v->expected;
			v->gaps[v->n_gaps++][1] = seq - 1;
		}
		v->has_alt = false;
	} else {
		st_row_hash(computed, v->prev, seq, &st_tables[t], cells);
		bool fits = memcmp(computed, hash.p, 32) == 0;
		if (!fits && v->has_alt) {
			st_row_hash(second, v->alt, seq, &st_tables[t], cells);
			if (memcmp(second, hash.p, 32) == 0) {
				fits = true;
				if (v->n_odd && v->odd[v->n_odd - 1].seq == seq - 1)
					v->odd[v->n_odd - 1].hash_only = true;
				memcpy(v->prev, v->alt, 32);
			}
		}
		v->has_alt = !fits;
		if (!fits) {
			memcpy(v->alt, computed, 32);
			remember(v, t, seq, cells, hash.p, computed);
		}
	}
	vf_contents(v, t, seq, cells, v->prev, !gap);
	check_anchors(v, seq, hash.p);
	memcpy(v->prev, hash.p, 32);
	v->last_seq = seq;
	v->expected = seq + 1;
}

/* ---- the end ---- */

/* Which of the odd rows fits at the place of row i? */
static vf_odd *fitting(vf *v, const vf_odd *at)
{
	uint8_t h[32];
	for (size_t j = 0; j < v->n_odd; j++) {
		vf_odd *o = &v->odd[j];
		if (o->seq == at->seq || o->t != at->t)
			continue;
		st_row_hash(h, at->prev, at->seq, &st_tables[o->t], o->cells);
		if (memcmp(h, at->stored, 32) == 0 || memcmp(h, o->stored, 32) == 0)
			return o;
	}
	return NULL;
}

static void judge_odd(vf *v)
{
	uint8_t h[32];
	for (size_t i = 0; i < v->n_odd; i++) {
		vf_odd *a = &v->odd[i];
		vf_odd *b = a->done ? NULL : fitting(v, a);
		if (!b)
			continue;
		vf_find(v, VF_REORDERED, st_tables[a->t].name, a->seq, id_cell(a->t, a->cells),
		        "rows %llu and %llu were swapped", (unsigned long long)a->seq,
		        (unsigned long long)b->seq);
		a->done = b->done = true;
		/* Hashes that moved along make the rows after them look odd: they are not. */
		for (size_t k = 0; k < v->n_odd; k++) {
			vf_odd *c = &v->odd[k];
			const vf_odd *before = c->seq == a->seq + 1   ? b
			                       : c->seq == b->seq + 1 ? a
			                                              : NULL;
			if (!before || c->done)
				continue;
			st_row_hash(h, before->stored, c->seq, &st_tables[c->t], c->cells);
			c->done = memcmp(h, c->stored, 32) == 0;
		}
	}
	for (size_t i = 0; i < v->n_odd; i++) {
		const vf_odd *a = &v->odd[i];
		if (a->done)
			continue;
		bool seal = a->t == T_SEAL || a->t == T_KEY;
		vf_find(v, seal ? VF_BAD_SEAL : VF_CHANGED, st_tables[a->t].name, a->seq,
		        id_cell(a->t, a->cells),
		        a->hash_only ? "its hash was changed" : "it was changed");
	}
	for (size_t i = 0; i < v->n_odd; i++)
		for (int c = 0; c < st_tables[v->odd[i].t].n; c++)
			free((void *)v->odd[i].cells[c].p);
	v->n_odd = 0;
}

static void judge_pruning(vf *v)
{
	uint8_t h[32];
	if (!v->pruned_to)
		return;
	sha256_digest(&v->dict, 32, h);
	if (!v->prune_seen)
		vf_find(v, VF_MISSING, "prune", v->pruned_to, st_null(),
		        "rows up to %llu are missing and no row of the chain says that they were "
		        "pruned",
		        (unsigned long long)v->pruned_to);
	if (!v->boundary_seen)
		vf_find(v, VF_MISSING, "seal", v->pruned_to, st_null(),
		        "the seal that the pruned range ended with is missing");
	if (memcmp(h, v->want_dict, 32) != 0)
		vf_find(v, VF_CHANGED, NULL, v->pruned_to, st_null(),
		        "names, keys or seals kept from the pruned range were changed");
}

void vf_settle(vf *v)
{
	judge_odd(v);
	judge_pruning(v);
	if (!v->has_uuid)
		vf_find(v, VF_MISSING, "store", 1, st_null(),
		        "the row that every trail begins with");
}

void vf_end(vf *v, uint64_t head_seq, const uint8_t head_hash[32])
{
	vf_settle(v);
	uint64_t last = v->last_seq ? v->last_seq : v->pruned_to;
	if (head_seq > last)
		vf_find(v, VF_MISSING, NULL, last + 1, st_null(),
		        "rows %llu to %llu are missing at the end", (unsigned long long)last + 1,
		        (unsigned long long)head_seq);
	else if (head_hash && (head_seq < last || memcmp(head_hash, v->prev, 32) != 0))
		vf_find(v, VF_CHANGED, "state", last, st_null(), "the head is not the last row's");
	for (size_t i = 0; i < v->n_anchors; i++) {
		const vf_anchor *a = &v->anchors[i];
		if (a->met || a->seq <= v->pruned_to)
			continue;
		if (a->seq > last)
			vf_find(v, VF_TRUNCATED, NULL, a->seq, st_null(),
			        "the anchor's row %llu is not there: the chain ends at %llu",
			        (unsigned long long)a->seq, (unsigned long long)last);
		else
			vf_find(v, VF_MISSING, NULL, a->seq, st_null(),
			        "the anchor's row is missing");
	}
	vf_judge_keys(v);
}

int vf_judgement(const vf *v)
{
	static const struct {
		vf_kind kind;
		int status;
	} order[] = {{VF_BAD_SEAL, SW_VERIFY_BAD_SEAL},
	             {VF_TRUNCATED, SW_VERIFY_TRUNCATED},
	             {VF_REORDERED, SW_VERIFY_REORDERED},
	             {VF_MISSING, SW_VERIFY_MISSING},
	             {VF_CHANGED, SW_VERIFY_CHANGED}};
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (v->count[order[i].kind])
			return order[i].status;
	return v->trusted_seq && v->trusted_seq >= v->last_seq ? SW_VERIFY_INTACT
	                                                       : SW_VERIFY_UNSEALED;
}

json_t *vf_report(vf *v, int status)
{
	char print[17] = "", hash[65];
	const char *word = status == SW_VERIFY_INTACT      ? "intact"
	                   : status == SW_VERIFY_UNSEALED  ? "intact_not_sealed"
	                   : status == SW_VERIFY_CHANGED   ? "changed"
	                   : status == SW_VERIFY_MISSING   ? "missing"
	                   : status == SW_VERIFY_REORDERED ? "reordered"
	                   : status == SW_VERIFY_TRUNCATED ? "truncated"
	                                                   : "bad_seal";
	json_t *o = json_object(), *head = json_object();
	if (v->n_keys)
		st_key_print(print, v->keys[v->n_keys - 1].public);
	st_hex(hash, v->prev, 32);
	json_object_set_new(head, "seq",
	                    json_integer((json_int_t)(v->last_seq ? v->last_seq : v->pruned_to)));
	json_object_set_new(head, "hash", json_string(hash));
	json_object_set_new(o, "schema", json_integer(1));
	json_object_set_new(o, "status", json_string(word));
	json_object_set_new(o, "exit", json_integer(status));
	json_object_set_new(o, "rows", json_integer((json_int_t)v->rows));
	json_object_set_new(o, "head", head);
	json_object_set_new(o, "sealed_seq", json_integer((json_int_t)v->trusted_seq));
	json_object_set_new(
	    o, "unsealed_rows",
	    json_integer(
	        (json_int_t)(v->last_seq > v->trusted_seq ? v->last_seq - v->trusted_seq : 0)));
	json_object_set_new(o, "segments", json_integer((json_int_t)v->segments));
	json_object_set_new(o, "key", *print ? json_string(print) : json_null());
	json_object_set_new(o, "key_pinned", json_boolean(v->has_pin));
	json_t *anchors = json_array();
	for (size_t i = 0; i < v->n_anchors; i++) {
		const vf_anchor *a = &v->anchors[i];
		json_t *x = json_object();
		json_object_set_new(x, "seq", json_integer((json_int_t)a->seq));
		/* what was pruned cannot be compared any more; the prune row says that it was */
		bool pruned = a->seq <= v->pruned_to && v->prune_trusted;
		json_object_set_new(x, "state",
		                    json_string(a->met   ? "checked"
		                                : pruned ? "pruned"
		                                         : "not_there"));
		json_array_append_new(anchors, x);
	}
	json_object_set_new(o, "anchors", anchors);
	json_object_set(o, "pruned", v->pruned);
	json_object_set(o, "findings", v->findings);
	uint64_t n = 0;
	for (int i = 0; i < VF_KINDS; i++)
		n += v->count[i];
	json_object_set_new(o, "findings_total", json_integer((json_int_t)n));
	return o;
}
