/* reference.c - the rules, read one after the other, over every segment and every signature. */
#include "reference.h"

#include <stdlib.h>
#include <string.h>

#include "ref_view.h"

/* ---- exits ---- */

/* Signal n, -n and 128+n are one exit; on Windows codes are unsigned 32 bit. */
static int64_t one_exit(const ref_pack *p, int64_t code)
{
	if (p->windows)
		return (int64_t)(uint32_t)code;
	return code < 0 && code >= -64 ? 128 - code : code;
}

static bool exit_number(const ref_pack *p, sw_exit e, int64_t *out)
{
	if (e.has_code)
		*out = one_exit(p, e.code);
	else if (e.signal > 0)
		*out = 128 + e.signal;
	else
		return false;
	return true;
}

static bool exit_admits(const ref_pack *p, const sw_sig_def *d, sw_exit e)
{
	int64_t code;
	bool known = exit_number(p, e, &code);
	bool listed = d->n_only_exit == 0;
	for (size_t i = 0; i < d->n_only_exit; i++)
		listed |= known && one_exit(p, d->only_exit[i]) == code;
	for (size_t i = 0; i < d->n_except_exit; i++)
		if (known && one_exit(p, d->except_exit[i]) == code)
			return false;
	return listed;
}

/* ---- fatal lines ---- */

static bool command_line_before(const view *v, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (v->segs[k].command_line)
			return true;
	return false;
}

static bool command_line_after(const view *v, size_t i)
{
	for (size_t k = i + 1; k < v->n_segs; k++)
		if (v->segs[k].command_line)
			return true;
	return false;
}

static bool counts_now(const view *v, const ref_sig *s)
{
	return s->def->kind == SW_KIND_FATAL && exit_admits(v->pack, s->def, v->exit) &&
	       (v->started != SW_STARTED_YES || s->def->stage == SW_STAGE_LOST);
}

/* Only the first part of a segment has a column 0. */
static bool admitted(const view *v, size_t i, const ref_sig *s)
{
	const part *w = &v->segs[i].parts[0];
	if (!w->match[s - v->pack->sigs] || w->informational || !counts_now(v, s))
		return false;
	if ((s->position == SW_POSITION_FIRST || s->position == SW_POSITION_ALONE) &&
	    command_line_before(v, i))
		return false;
	return !((s->position == SW_POSITION_LAST || s->position == SW_POSITION_ALONE) &&
	         command_line_after(v, i));
}

/* One signature owns a line: the first in order that counts there. */
static const ref_sig *fatal_owner(const view *v, size_t i)
{
	for (size_t k = 0; k < v->pack->n_sigs; k++)
		if (admitted(v, i, &v->pack->sigs[k]))
			return &v->pack->sigs[k];
	return NULL;
}

/* The line rule 4 reports: the first whose signature is no summary, else the first. */
static const ref_sig *find_fatal(const view *v, size_t *at)
{
	for (int generic = 0; generic < 2; generic++)
		for (size_t i = 0; i < v->n_segs; i++) {
			const ref_sig *s =
			    v->segs[i].parts[0].any_scope_any ? NULL : fatal_owner(v, i);
			if (s && s->def->generic == (generic == 1)) {
				*at = i;
				return s;
			}
		}
	return NULL;
}

static const ref_sig *find_exit_only(const view *v, sw_kind kind)
{
	int64_t code;
	for (size_t k = 0; exit_number(v->pack, v->exit, &code) && k < v->pack->n_sigs; k++) {
		const ref_sig *s = &v->pack->sigs[k];
		if (s->exit_only && s->def->kind == kind && exit_admits(v->pack, s->def, v->exit) &&
		    (kind != SW_KIND_FATAL || counts_now(v, s)))
			return s;
	}
	return NULL;
}

/* ---- denials ---- */

static bool under(const char *path, size_t n, const char *root, size_t root_n)
{
	while (root_n > 1 && root[root_n - 1] == '/')
		root_n--;
	if (root_n == 0)
		return false;
	if (root_n == 1 && root[0] == '/')
		return true;
	return n >= root_n && !memcmp(path, root, root_n) && (n == root_n || path[root_n] == '/');
}

static bool under_any(const char *path, size_t n, const sw_str *roots, size_t n_roots)
{
	for (size_t i = 0; i < n_roots; i++)
		if (under(path, n, roots[i].ptr, roots[i].len))
			return true;
	return false;
}

/* Absolute and without ".", ".." and doubled slashes, by text alone; NULL where it cannot be. */
static char *plain_path(const sw_facts *f, const char *path, size_t n, size_t *out_n)
{
	if (n == 0 || path[0] == '~')
		return NULL;
	size_t base = path[0] == '/' ? 0 : f->cwd.len;
	if (path[0] != '/' && (f->cwd.len == 0 || f->cwd.ptr[0] != '/'))
		return NULL;
	char *whole = ref_alloc(base + n + 3), *out = ref_alloc(base + n + 3);
	size_t len = 0, total = base + 1 + n;
	if (base)
		memcpy(whole, f->cwd.ptr, base);
	whole[base] = '/';
	memcpy(whole + base + 1, path, n);
	whole[total] = '/'; /* so that every step ends at a slash */
	for (size_t i = 1, begin = 1; i <= total; i++) {
		if (whole[i] != '/')
			continue;
		size_t step = i - begin;
		if (step == 2 && !memcmp(whole + begin, "..", 2)) {
			while (len > 0 && out[--len] != '/')
				;
		} else if (step > 0 && !(step == 1 && whole[begin] == '.')) {
			out[len++] = '/';
			memcpy(out + len, whole + begin, step);
			len += step;
		}
		begin = i + 1;
	}
	if (!len)
		out[len++] = '/';
	*out_n = len;
	free(whole);
	return out;
}

static bool facts_hold(const view *v, const ref_sig *s, const part *w)
{
	const sw_facts *f = v->facts;
	const char *raw = NULL, *kind = NULL;
	size_t raw_n = 0, n = 0;
	bool is_path = part_capture(v, s, w, &raw, &raw_n, &kind) && !strcmp(kind, "path");
	char *path = is_path ? plain_path(f, raw, raw_n, &n) : NULL;
	bool all = true;
	for (int fact = 0; fact < SW_FACT_COUNT; fact++) {
		bool holds = false;
		if (!(s->with & (1u << fact)))
			continue;
		if (fact == SW_FACT_NETWORK_DENIED)
			holds = f->network == SW_NETWORK_DENIED;
		if (fact == SW_FACT_READ_ONLY)
			holds = f->mode == SW_MODE_READ_ONLY;
		if (fact == SW_FACT_WORKSPACE_WRITE)
			holds = f->mode == SW_MODE_WORKSPACE_WRITE;
		if (fact == SW_FACT_OUTSIDE_WRITABLE_ROOTS)
			holds = path && f->n_writable_roots > 0 &&
			        !under_any(path, n, f->writable_roots, f->n_writable_roots);
		if (fact == SW_FACT_ACCESSIBLE_OUTSIDE)
			holds = path && under_any(path, n, f->accessible, f->n_accessible);
		all &= holds;
	}
	free(path);
	return all;
}

/* Whether the facts let it decide, and how sure it is then. */
static bool decides(const view *v, const ref_sig *s, const part *w, sw_confidence *confidence)
{
	*confidence = s->confidence;
	switch (s->decides) {
	case SW_DECIDES_YES:
		return true;
	case SW_DECIDES_NETWORK:
		if (v->facts->network == SW_NETWORK_UNKNOWN)
			*confidence = SW_CONFIDENCE_WEAK;
		return v->facts->network != SW_NETWORK_ALLOWED;
	case SW_DECIDES_WITH:
		return facts_hold(v, s, w);
	default:
		return false;
	}
}

static bool sees(const view *v, const ref_sig *s, const segment *seg, const part *w)
{
	if (s->def->scope == SW_SCOPE_ANY || v->started == SW_STARTED_YES)
		return true;
	return !seg->runner && !w->informational && !w->downgrade &&
	       !(w->any_fatal && w->any_scope_any);
}

/* One signature owns a line: after the first without an exit gate only scope-any ones look at it.
 */
static bool owned_before(const view *v, const part *w, const ref_sig *s)
{
	for (const ref_sig *o = v->pack->sigs; o < s; o++)
		if (o->def->kind == SW_KIND_DENIAL && w->match[o - v->pack->sigs] &&
		    o->def->n_only_exit == 0 && o->def->n_except_exit == 0)
			return s->def->scope != SW_SCOPE_ANY;
	return false;
}

static bool deciding(const view *v, const segment *seg, const part *w, const ref_sig *s,
                     sw_confidence *confidence)
{
	return s->def->kind == SW_KIND_DENIAL && w->match[s - v->pack->sigs] &&
	       !owned_before(v, w, s) && exit_admits(v->pack, s->def, v->exit) &&
	       sees(v, s, seg, w) && !w->vetoed && decides(v, s, w, confidence);
}

/* The first signature of the segment that decides with the wanted confidence (-1: with any). */
static const ref_sig *denial_of(const view *v, size_t i, int wanted, const part **at,
                                sw_confidence *confidence)
{
	const segment *seg = &v->segs[i];
	for (size_t k = 0; k < v->pack->n_sigs; k++)
		for (size_t w = 0; w < seg->n_parts; w++)
			if (deciding(v, seg, &seg->parts[w], &v->pack->sigs[k], confidence) &&
			    (wanted < 0 || (int)*confidence == wanted)) {
				*at = &seg->parts[w];
				return &v->pack->sigs[k];
			}
	return NULL;
}

typedef struct found {
	const ref_sig *sig;
	size_t seg;
	const part *part;
	sw_confidence confidence;
} found;

/* The first line of the highest confidence. */
static found find_denial(const view *v)
{
	found f = {NULL, 0, NULL, SW_CONFIDENCE_NONE};
	for (int wanted = SW_CONFIDENCE_CERTAIN; wanted >= 0 && !f.sig; wanted--)
		for (f.seg = 0; f.seg < v->n_segs; f.seg++)
			if ((f.sig = denial_of(v, f.seg, wanted, &f.part, &f.confidence)) != NULL)
				break;
	return f;
}

/* The first line that is both: an admitted fatal and, by a scope-any denial, a denial. */
static found find_both(const view *v)
{
	found f = {NULL, 0, NULL, SW_CONFIDENCE_NONE};
	for (f.seg = 0; f.seg < v->n_segs; f.seg++) {
		const segment *seg = &v->segs[f.seg];
		f.part = &seg->parts[0];
		if (!f.part->any_scope_any || !fatal_owner(v, f.seg))
			continue;
		for (size_t k = 0; k < v->pack->n_sigs; k++) {
			f.sig = &v->pack->sigs[k];
			if (f.sig->def->scope == SW_SCOPE_ANY &&
			    deciding(v, seg, f.part, f.sig, &f.confidence))
				return f;
		}
	}
	f.sig = NULL;
	return f;
}

static uint64_t count_denied(const view *v)
{
	uint64_t count = 0;
	for (size_t i = 0; i < v->n_segs; i++) {
		const part *w;
		sw_confidence confidence;
		count += denial_of(v, i, -1, &w, &confidence) != NULL;
	}
	return count;
}

/* ---- beside the verdict ---- */

/* The part of the segment that the signature matches, or NULL. */
static const part *matched_part(const view *v, size_t i, size_t sig)
{
	for (size_t w = 0; w < v->segs[i].n_parts; w++)
		if (v->segs[i].parts[w].match[sig])
			return &v->segs[i].parts[w];
	return NULL;
}

static bool first_match(const view *v, size_t sig, size_t *at)
{
	for (*at = 0; *at < v->n_segs; ++*at)
		if (matched_part(v, *at, sig))
			return true;
	return false;
}

static void find_downgrades(const view *v, ref_result *out)
{
	for (size_t k = 0; k < v->pack->n_sigs; k++) {
		const sw_sig_def *def = v->pack->sigs[k].def;
		size_t at;
		if (def->kind != SW_KIND_DOWNGRADE || !exit_admits(v->pack, def, v->exit) ||
		    !first_match(v, k, &at))
			continue;
		out->downgrades =
		    ref_grow(out->downgrades, (out->n_downgrades + 1) * sizeof(const sw_sig_def *));
		out->downgrades[out->n_downgrades++] = def;
		out->lowers |= def->lowers;
	}
}

/* The surest limit; of equals the one whose line comes first. */
static void find_limit(const view *v, ref_result *out)
{
	int64_t code;
	bool best_has_line = false;
	size_t best_at = 0;
	if (v->exit.timed_out) {
		out->limit = SW_LIMIT_DEADLINE;
		out->limit_certainty = SW_CERTAINTY_PROVEN;
		return;
	}
	for (size_t k = 0; out->rule == 6 && k < v->pack->n_sigs; k++) {
		const ref_sig *s = &v->pack->sigs[k];
		size_t at = 0;
		bool has_line = first_match(v, k, &at);
		if (s->def->kind != SW_KIND_LIMIT || !exit_admits(v->pack, s->def, v->exit) ||
		    !(has_line || (s->exit_only && exit_number(v->pack, v->exit, &code))))
			continue;
		bool sooner = has_line && best_has_line && at < best_at;
		if (out->limit_sig && (s->def->certainty < out->limit_certainty ||
		                       (s->def->certainty == out->limit_certainty && !sooner)))
			continue;
		out->limit_sig = s->def;
		out->limit = s->def->limit;
		out->limit_certainty = s->def->certainty;
		out->cause = s->def->cause;
		best_has_line = has_line;
		best_at = at;
	}
}

/* ---- the result ---- */

static void report(const view *v, ref_result *out, const ref_sig *s, size_t at, const part *w)
{
	const segment *seg = &v->segs[at];
	const char *p, *kind;
	size_t n;
	out->sig = s->def;
	out->cause = s->def->cause;
	out->has_line = true;
	out->line_offset = seg->offset;
	out->line_len = seg->len;
	out->line_number = seg->line_number;
	if (s->def->kind == SW_KIND_DENIAL && part_capture(v, s, w, &p, &n, &kind)) {
		n = n < SW_LINE_REPORT_MAX ? n : SW_LINE_REPORT_MAX;
		out->resource = ref_copy(p, n);
		out->resource_len = n;
		out->resource_kind = kind;
	}
}

static bool report_fatal(const view *v, ref_result *out)
{
	size_t at = 0;
	const ref_sig *s = find_fatal(v, &at);
	out->evidence = SW_EVIDENCE_TEXT;
	if (s) {
		report(v, out, s, at, &v->segs[at].parts[0]);
	} else {
		s = find_exit_only(v, SW_KIND_FATAL);
		if (!s)
			return false;
		out->sig = s->def;
		out->cause = s->def->cause;
		out->evidence = SW_EVIDENCE_EXIT_CODE;
	}
	out->verdict = SW_VERDICT_RUNNER_FAILED;
	out->stage = s->def->stage == SW_STAGE_NONE ? SW_STAGE_SETUP : s->def->stage;
	out->confidence = s->confidence;
	return true;
}

static void report_denial(const view *v, ref_result *out, const found *f)
{
	out->verdict = SW_VERDICT_SANDBOX_DENIED;
	out->evidence = SW_EVIDENCE_TEXT;
	out->confidence = f->confidence;
	report(v, out, f->sig, f->seg, f->part);
	out->operation = f->sig->def->operation;
	out->denied_lines = count_denied(v);
	if (out->denied_lines > SW_DENIED_LINES_MAX)
		out->denied_lines = SW_DENIED_LINES_MAX;
}

static void rule_3(const view *v, sw_source source, ref_result *out)
{
	if (!report_fatal(v, out)) {
		found both = find_both(v);
		if (both.sig) {
			report_denial(v, out, &both);
		} else {
			out->verdict = SW_VERDICT_RUNNER_FAILED;
			out->cause = "unknown";
		}
	}
	out->confidence = SW_CONFIDENCE_CERTAIN;
	out->evidence = SW_EVIDENCE_ATTESTED;
	out->source = source;
}

static bool rule_5(const view *v, ref_result *out)
{
	found f = find_denial(v);
	if (f.sig) {
		report_denial(v, out, &f);
		return true;
	}
	f.sig = find_exit_only(v, SW_KIND_DENIAL);
	if (!f.sig)
		return false;
	out->verdict = SW_VERDICT_SANDBOX_DENIED;
	out->evidence = SW_EVIDENCE_EXIT_CODE;
	out->sig = f.sig->def;
	out->cause = f.sig->def->cause;
	out->operation = f.sig->def->operation;
	out->confidence = f.sig->confidence;
	return true;
}

static void apply_rules(const view *v, sw_source source, ref_result *out)
{
	out->evidence = SW_EVIDENCE_NONE;
	if (v->pack->unconfined || v->facts->mode == SW_MODE_DANGER_FULL_ACCESS) {
		out->rule = 1;
		out->evidence = SW_EVIDENCE_ATTESTED;
		out->source = SW_SOURCE_CALLER;
		return;
	}
	if (v->exit.has_code && v->exit.code == 0 && v->exit.signal == 0) {
		out->rule = 2;
		out->evidence = SW_EVIDENCE_EXIT_CODE;
		find_downgrades(v, out);
		return;
	}
	if (v->started == SW_STARTED_NO) {
		out->rule = 3;
		rule_3(v, source, out);
	} else if (v->started == SW_STARTED_YES && v->facts->runner_lost) {
		out->rule = 4;
		out->verdict = SW_VERDICT_RUNNER_FAILED;
		out->stage = SW_STAGE_LOST;
		out->cause = "runner-lost";
		out->confidence = SW_CONFIDENCE_CERTAIN;
		out->evidence = SW_EVIDENCE_ATTESTED;
		out->source = source;
	} else if (report_fatal(v, out)) {
		out->rule = 4;
	} else if (rule_5(v, out)) {
		out->rule = 5;
	} else {
		out->rule = 6;
		out->evidence = SW_EVIDENCE_TEXT;
	}
	find_downgrades(v, out);
	find_limit(v, out);
}

void ref_classify(const ref_pack *p, const sw_facts *facts, sw_exit exit, sw_started started,
                  sw_source source, const void *output, size_t n, ref_result *out)
{
	static const sw_facts none;
	view v = {.pack = p, .facts = facts ? facts : &none, .exit = exit, .started = started};
	memset(out, 0, sizeof *out);
	out->bytes = n ? output : "";
	if (p->utf16le && (out->decoded = view_decode(output, n, &n)) != NULL)
		out->bytes = out->decoded;
	v.bytes = out->bytes;
	v.data = pcre2_match_data_create(64, NULL);
	v.limits = pcre2_match_context_create(NULL);
	if (!v.data || !v.limits)
		abort();
	/* The plain definition: a pattern matches or not. Tests stay far below; a fuzzer may not.
	 */
	pcre2_set_match_limit(v.limits, 1000000);
	pcre2_set_depth_limit(v.limits, 1000000);
	pcre2_set_heap_limit(v.limits, 1 << 20);
	v.gave_up = &out->gave_up;
	view_cut(&v, n);
	apply_rules(&v, source, out);
	view_free(&v);
	pcre2_match_data_free(v.data);
	pcre2_match_context_free(v.limits);
}

void ref_result_free(ref_result *r)
{
	free(r->resource);
	free(r->downgrades);
	free(r->decoded);
	memset(r, 0, sizeof *r);
}
