/* reference.c - the rules, read one after the other, over every segment and every signature. */
#include "reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref_pack.h"

typedef struct window {
	char *text; /* visible */
	size_t len;
	bool first;
} window;

typedef struct segment {
	size_t offset, len;
	uint64_t line_number;
	bool is_long;
	window *windows;
	size_t n_windows;
	bool blank, informational, runner, downgrade, any_fatal, any_scope_any, vetoed,
	    command_line;
	unsigned char *match; /* one per signature */
} segment;

typedef struct view {
	const ref_pack *pack;
	const sw_facts *facts;
	sw_exit exit;
	sw_started started;
	const char *bytes;
	segment *segs;
	size_t n_segs;
	pcre2_match_data *data;
	pcre2_match_context *limits;
} view;

/* ---- bytes ---- */

static unsigned char lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static bool same(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (lower(a[i]) != lower(b[i]))
			return false;
	return true;
}

static bool begins(const char *p, size_t n, const char *z)
{
	size_t len = strlen(z);
	return len <= n && same(p, z, len);
}

static bool contains(const char *p, size_t n, const char *z)
{
	size_t len = strlen(z);
	for (size_t i = 0; i + len <= n; i++)
		if (same(p + i, z, len))
			return true;
	return false;
}

static bool in_range(const char *p, size_t n, size_t i, int from, int to)
{
	return i < n && (unsigned char)p[i] >= from && (unsigned char)p[i] <= to;
}

/* Length of a whole escape at p[0] == ESC, or 1: then only the ESC itself is skipped. */
static size_t escape(const char *p, size_t n)
{
	size_t i = 2;
	if (n < 2)
		return 1;
	if (p[1] == '[') {
		while (in_range(p, n, i, 0x30, 0x3f))
			i++;
		while (in_range(p, n, i, 0x20, 0x2f))
			i++;
		return in_range(p, n, i, 0x40, 0x7e) ? i + 1 : 1;
	}
	if (p[1] == ']' || p[1] == 'P' || p[1] == 'X' || p[1] == '^' || p[1] == '_') {
		for (; i < n; i++) {
			if (p[i] == 0x07)
				return i + 1;
			if (p[i] == 0x1b && i + 1 < n && p[i + 1] == '\\')
				return i + 2;
		}
		return 1;
	}
	if (in_range(p, n, 1, 0x20, 0x2f)) {
		while (in_range(p, n, i, 0x20, 0x2f))
			i++;
		return in_range(p, n, i, 0x30, 0x7e) ? i + 1 : 1;
	}
	return in_range(p, n, 1, 0x30, 0x7e) ? 2 : 1;
}

size_t ref_strip(char *dst, const char *src, size_t n)
{
	size_t out = 0;
	for (size_t i = 0; i < n;) {
		if (src[i] == 0x1b)
			i += escape(src + i, n - i);
		else
			dst[out++] = src[i++];
	}
	return out;
}

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

/* ---- one signature on one window ---- */

/* Length of the "<N>" that the pack's runner may write before column 0. */
static size_t priority(const ref_pack *p, const window *w)
{
	if (p->priority_prefix && w->len > 3 && w->text[0] == '<' && w->text[1] >= '0' &&
	    w->text[1] <= '7' && w->text[2] == '>')
		return 3;
	return 0;
}

static bool regex_matches(const view *v, const pcre2_code *code, const char *p, size_t n)
{
	return pcre2_match(code, (PCRE2_SPTR)p, n, 0, 0, v->data, v->limits) >= 0;
}

static bool any_literal(const ref_sig *s, const char *p, size_t n,
                        bool (*test)(const char *, size_t, const char *))
{
	for (size_t i = 0; i < s->n_literals; i++)
		if (test(p, n, s->literals[i]))
			return true;
	return false;
}

static bool equals(const char *p, size_t n, const char *z)
{
	return strlen(z) == n && begins(p, n, z);
}

static bool matches_from(const view *v, const ref_sig *s, const char *p, size_t n)
{
	if (s->def->kind == SW_KIND_INFORMATIONAL)
		return any_literal(s, p, n, equals) ||
		       (s->regex && regex_matches(v, s->regex, p, n));
	return s->regex ? regex_matches(v, s->regex, p, n) : any_literal(s, p, n, begins);
}

/* Where in the window the match begins to count (0, or behind "<N>"); false: no match. */
static bool window_matches(const view *v, const ref_sig *s, const segment *seg, const window *w,
                           size_t *from)
{
	size_t skip = priority(v->pack, w);
	*from = 0;
	switch (s->def->kind) {
	case SW_KIND_INFORMATIONAL:
		if (seg->is_long)
			return false;
		break;
	case SW_KIND_FATAL:
	case SW_KIND_DOWNGRADE:
		if (!w->first || (s->n_literals && !any_literal(s, w->text, w->len, contains)))
			return false;
		break;
	default:
		if (s->n_literals && !any_literal(s, w->text, w->len, contains))
			return false;
		return !s->regex || regex_matches(v, s->regex, w->text, w->len);
	}
	if (matches_from(v, s, w->text, w->len))
		return true;
	*from = skip;
	return skip && matches_from(v, s, w->text + skip, w->len - skip);
}

static const window *matching_window(const view *v, const ref_sig *s, const segment *seg,
                                     size_t *from)
{
	for (size_t i = 0; !s->exit_only && i < seg->n_windows; i++)
		if (window_matches(v, s, seg, &seg->windows[i], from))
			return &seg->windows[i];
	return NULL;
}

static bool prefix_at(const view *v, const char *p, size_t n)
{
	for (size_t i = 0; i < v->pack->n_prefixes; i++)
		if (begins(p, n, v->pack->prefixes[i]))
			return true;
	for (size_t i = 0; i < v->pack->n_prefix_regexes; i++)
		if (regex_matches(v, v->pack->prefix_regexes[i], p, n))
			return true;
	return false;
}

static bool carries_prefix(const view *v, const window *w)
{
	size_t skip = priority(v->pack, w);
	return prefix_at(v, w->text, w->len) ||
	       (skip && prefix_at(v, w->text + skip, w->len - skip));
}

/* ---- segments ---- */

static void add_window(segment *seg, const char *raw, size_t n, bool first)
{
	seg->windows = ref_grow(seg->windows, (seg->n_windows + 1) * sizeof(window));
	window *w = &seg->windows[seg->n_windows++];
	w->text = ref_alloc(n + 1);
	w->len = ref_strip(w->text, raw, n);
	w->first = first;
}

static void look_at(view *v, segment *seg)
{
	const ref_pack *p = v->pack;
	const char *raw = v->bytes + seg->offset;
	const size_t step = SW_WINDOW_SIZE - SW_WINDOW_OVERLAP;
	seg->is_long = seg->len > SW_WINDOW_SIZE;
	if (!seg->is_long) {
		add_window(seg, raw, seg->len, true);
	} else {
		for (size_t at = 0; at == 0 || at + SW_WINDOW_OVERLAP < seg->len; at += step) {
			size_t n = seg->len - at < SW_WINDOW_SIZE ? seg->len - at : SW_WINDOW_SIZE;
			add_window(seg, raw + at, n, at == 0);
		}
	}
	seg->blank = true;
	for (size_t i = 0; i < seg->n_windows; i++)
		for (size_t k = 0; k < seg->windows[i].len; k++)
			seg->blank &= memchr(" \t\v\f", seg->windows[i].text[k], 4) != NULL;
	seg->runner = carries_prefix(v, &seg->windows[0]);
	seg->match = ref_alloc(p->n_sigs);
	for (size_t i = 0; i < p->n_sigs; i++) {
		const ref_sig *s = &p->sigs[i];
		size_t from;
		if (!matching_window(v, s, seg, &from))
			continue;
		seg->match[i] = 1;
		seg->informational |= s->def->kind == SW_KIND_INFORMATIONAL;
		seg->downgrade |= s->def->kind == SW_KIND_DOWNGRADE;
		seg->any_fatal |= s->def->kind == SW_KIND_FATAL;
		seg->vetoed |= s->def->kind == SW_KIND_VETO;
		seg->any_scope_any |=
		    s->def->kind == SW_KIND_DENIAL && s->def->scope == SW_SCOPE_ANY;
	}
	seg->command_line = !seg->blank && !seg->informational && !seg->runner && !seg->any_fatal &&
	                    !seg->downgrade;
}

static void cut(view *v, size_t n)
{
	size_t begin = 0;
	uint64_t line = 1;
	for (size_t i = 0; i <= n; i++) {
		if (i < n && v->bytes[i] != '\n' && v->bytes[i] != '\r')
			continue;
		v->segs = ref_grow(v->segs, (v->n_segs + 1) * sizeof(segment));
		segment *seg = &v->segs[v->n_segs++];
		*seg = (segment){.offset = begin, .len = i - begin, .line_number = line};
		look_at(v, seg);
		if (i < n && v->bytes[i] == '\n')
			line++;
		begin = i + 1;
	}
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

static bool admitted(const view *v, size_t i, const ref_sig *s)
{
	if (!v->segs[i].match[s - v->pack->sigs] || v->segs[i].informational || !counts_now(v, s))
		return false;
	if ((s->position == SW_POSITION_FIRST || s->position == SW_POSITION_ALONE) &&
	    command_line_before(v, i))
		return false;
	return !((s->position == SW_POSITION_LAST || s->position == SW_POSITION_ALONE) &&
	         command_line_after(v, i));
}

/* The line rule 4 reports: the first whose signature is no summary, else the first. */
static const ref_sig *find_fatal(const view *v, size_t *at)
{
	for (int generic = 0; generic < 2; generic++)
		for (size_t i = 0; i < v->n_segs; i++)
			for (size_t k = 0; k < v->pack->n_sigs; k++) {
				const ref_sig *s = &v->pack->sigs[k];
				if (s->def->generic == (generic == 1) &&
				    !v->segs[i].any_scope_any && admitted(v, i, s)) {
					*at = i;
					return s;
				}
			}
	return NULL;
}

static const ref_sig *find_exit_only(const view *v, sw_kind kind)
{
	for (size_t k = 0; k < v->pack->n_sigs; k++) {
		const ref_sig *s = &v->pack->sigs[k];
		if (s->exit_only && s->def->kind == kind && exit_admits(v->pack, s->def, v->exit) &&
		    (kind != SW_KIND_FATAL || counts_now(v, s)))
			return s;
	}
	return NULL;
}

static bool has_admitted_fatal(const view *v, size_t i)
{
	for (size_t k = 0; k < v->pack->n_sigs; k++)
		if (admitted(v, i, &v->pack->sigs[k]))
			return true;
	return false;
}

/* ---- denials ---- */

/* The group that holds the refused thing: path, host or syscall. */
static bool capture(const view *v, const ref_sig *s, const segment *seg, const char **p, size_t *n,
                    const char **kind)
{
	static const char *const groups[] = {"path", "host", "syscall"};
	size_t from = 0;
	const window *w = matching_window(v, s, seg, &from);
	if (!w || !s->regex || !regex_matches(v, s->regex, w->text + from, w->len - from))
		return false;
	PCRE2_SIZE *ends = pcre2_get_ovector_pointer(v->data);
	for (size_t g = 0; g < 3; g++) {
		PCRE2_SPTR first, last;
		int size =
		    pcre2_substring_nametable_scan(s->regex, (PCRE2_SPTR)groups[g], &first, &last);
		if (size <= 0)
			continue;
		for (PCRE2_SPTR entry = first; entry <= last; entry += size) {
			size_t number = (size_t)entry[0] * 256 + entry[1];
			if (number >= pcre2_get_ovector_count(v->data) ||
			    ends[2 * number] == PCRE2_UNSET ||
			    ends[2 * number] == ends[2 * number + 1])
				continue;
			*p = w->text + from + ends[2 * number];
			*n = ends[2 * number + 1] - ends[2 * number];
			*kind = groups[g];
			return true;
		}
	}
	return false;
}

static bool under(const char *path, size_t n, const char *root, size_t root_n)
{
	while (root_n > 1 && root[root_n - 1] == '/')
		root_n--;
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
	whole[total] = '/'; /* so that every part ends at a slash */
	for (size_t i = 1, begin = 1; i <= total; i++) {
		if (whole[i] != '/')
			continue;
		size_t part = i - begin;
		if (part == 2 && !memcmp(whole + begin, "..", 2)) {
			while (len > 0 && out[--len] != '/')
				;
		} else if (part > 0 && !(part == 1 && whole[begin] == '.')) {
			out[len++] = '/';
			memcpy(out + len, whole + begin, part);
			len += part;
		}
		begin = i + 1;
	}
	if (!len)
		out[len++] = '/';
	*out_n = len;
	free(whole);
	return out;
}

static bool facts_hold(const view *v, const ref_sig *s, const segment *seg)
{
	const sw_facts *f = v->facts;
	const char *raw = NULL, *kind = NULL;
	size_t raw_n = 0;
	bool is_path = capture(v, s, seg, &raw, &raw_n, &kind) && !strcmp(kind, "path");
	size_t n = 0;
	char *path = is_path ? plain_path(f, raw, raw_n, &n) : NULL;
	bool all = true;
	for (int fact = 0; fact < SW_FACT_COUNT; fact++) {
		if (!(s->with & (1u << fact)))
			continue;
		bool holds = false;
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
static bool decides(const view *v, const ref_sig *s, const segment *seg, sw_confidence *confidence)
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
		return facts_hold(v, s, seg);
	default:
		return false;
	}
}

static bool sees(const view *v, const ref_sig *s, const segment *seg)
{
	if (s->def->scope == SW_SCOPE_ANY || v->started == SW_STARTED_YES)
		return true;
	return !seg->runner && !seg->informational && !seg->downgrade &&
	       !(seg->any_fatal && seg->any_scope_any);
}

static bool deciding(const view *v, size_t i, const ref_sig *s, sw_confidence *confidence)
{
	const segment *seg = &v->segs[i];
	return s->def->kind == SW_KIND_DENIAL && seg->match[s - v->pack->sigs] &&
	       exit_admits(v->pack, s->def, v->exit) && sees(v, s, seg) && !seg->vetoed &&
	       decides(v, s, seg, confidence);
}

/* The first line of the highest confidence. both_only: of lines that are fatal as well. */
static const ref_sig *find_denial(const view *v, bool both_only, size_t *at,
                                  sw_confidence *confidence)
{
	for (int wanted = SW_CONFIDENCE_CERTAIN; wanted >= 0; wanted--)
		for (size_t i = 0; i < v->n_segs; i++) {
			if (both_only && !(v->segs[i].any_scope_any && has_admitted_fatal(v, i)))
				continue;
			for (size_t k = 0; k < v->pack->n_sigs; k++) {
				const ref_sig *s = &v->pack->sigs[k];
				if (deciding(v, i, s, confidence) && (int)*confidence == wanted) {
					*at = i;
					return s;
				}
			}
		}
	return NULL;
}

static uint64_t count_denied(const view *v)
{
	uint64_t count = 0;
	for (size_t i = 0; i < v->n_segs; i++)
		for (size_t k = 0; k < v->pack->n_sigs; k++) {
			sw_confidence confidence;
			if (deciding(v, i, &v->pack->sigs[k], &confidence)) {
				count++;
				break;
			}
		}
	return count;
}

/* ---- the result ---- */

static void report(const view *v, ref_result *out, const ref_sig *s, size_t at)
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
	if (capture(v, s, seg, &p, &n, &kind)) {
		out->resource = ref_copy(p, n);
		out->resource_len = n;
		out->resource_kind = kind;
	}
}

static void report_fatal(const view *v, ref_result *out, int rule)
{
	size_t at = 0;
	const ref_sig *s = find_fatal(v, &at);
	out->rule = rule;
	out->verdict = SW_VERDICT_RUNNER_FAILED;
	if (s) {
		report(v, out, s, at);
		out->evidence = SW_EVIDENCE_TEXT;
	} else if ((s = find_exit_only(v, SW_KIND_FATAL)) != NULL) {
		out->sig = s->def;
		out->cause = s->def->cause;
		out->evidence = SW_EVIDENCE_EXIT_CODE;
	}
	if (s) {
		out->stage = s->def->stage;
		out->confidence = s->confidence;
	}
}

static void report_denial(const view *v, ref_result *out, int rule, const ref_sig *s, size_t at,
                          sw_confidence confidence)
{
	out->rule = rule;
	out->verdict = SW_VERDICT_SANDBOX_DENIED;
	out->evidence = SW_EVIDENCE_TEXT;
	out->confidence = confidence;
	report(v, out, s, at);
	out->operation = s->def->operation;
	out->denied_lines = count_denied(v);
}

static void apply_rules(const view *v, sw_source source, ref_result *out)
{
	size_t at = 0, fatal_at = 0;
	sw_confidence confidence = SW_CONFIDENCE_NONE;
	const ref_sig *s;
	if (v->pack->unconfined || v->facts->mode == SW_MODE_DANGER_FULL_ACCESS) {
		out->rule = 1;
		return;
	}
	if (v->exit.has_code && v->exit.code == 0 && v->exit.signal == 0) {
		out->rule = 2;
		return;
	}
	if (v->started == SW_STARTED_NO) {
		s = find_denial(v, true, &at, &confidence);
		if (s && !find_fatal(v, &fatal_at)) {
			report_denial(v, out, 3, s, at, confidence);
			return;
		}
		report_fatal(v, out, 3);
		if (!out->cause)
			out->cause = "unknown";
		out->evidence = SW_EVIDENCE_ATTESTED;
		out->source = source;
		return;
	}
	if (find_fatal(v, &fatal_at) || find_exit_only(v, SW_KIND_FATAL)) {
		report_fatal(v, out, 4);
		return;
	}
	s = find_denial(v, false, &at, &confidence);
	if (s) {
		report_denial(v, out, 5, s, at, confidence);
		return;
	}
	s = find_exit_only(v, SW_KIND_DENIAL);
	if (s) {
		out->rule = 5;
		out->verdict = SW_VERDICT_SANDBOX_DENIED;
		out->evidence = SW_EVIDENCE_EXIT_CODE;
		out->sig = s->def;
		out->cause = s->def->cause;
		out->operation = s->def->operation;
		out->confidence = s->confidence;
		return;
	}
	out->rule = 6;
}

void ref_classify(const ref_pack *p, const sw_facts *facts, sw_exit exit, sw_started started,
                  sw_source source, const void *output, size_t n, ref_result *out)
{
	static const sw_facts none;
	view v = {.pack = p, .facts = facts ? facts : &none, .exit = exit, .started = started};
	memset(out, 0, sizeof *out);
	v.bytes = n ? output : "";
	v.data = pcre2_match_data_create(64, NULL);
	v.limits = pcre2_match_context_create(NULL);
	if (!v.data || !v.limits)
		abort();
	pcre2_set_match_limit(v.limits, 10000);
	pcre2_set_depth_limit(v.limits, 1000);
	pcre2_set_heap_limit(v.limits, 1024);
	cut(&v, n);
	apply_rules(&v, source, out);
	for (size_t i = 0; i < v.n_segs; i++) {
		for (size_t k = 0; k < v.segs[i].n_windows; k++)
			free(v.segs[i].windows[k].text);
		free(v.segs[i].windows);
		free(v.segs[i].match);
	}
	free(v.segs);
	pcre2_match_data_free(v.data);
	pcre2_match_context_free(v.limits);
}

void ref_result_free(ref_result *r)
{
	free(r->resource);
	free(r->downgrades);
	memset(r, 0, sizeof *r);
}
