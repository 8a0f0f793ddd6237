/* What one line is: signatures, notices, prefixes, vetoes, and the facts that let a denial decide.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

int sw_matcher_init(sw_matcher *m)
{
	*m = (sw_matcher){.work = sw_regex_work_new()};
	return m->work ? 0 : SW_ENOMEM;
}

void sw_matcher_free(sw_matcher *m)
{
	sw_regex_work_free(m->work);
	free(m->folded);
	free(m->asked);
	*m = (sw_matcher){0};
}

void sw_matcher_line(sw_matcher *m, const sw_visible *v)
{
	m->line = v->ptr;
	m->len = v->len;
	m->is_folded = false;
	sw_regex_work_line(m->work);
}

/* The same bytes in small letters; NULL: out of memory. */
static const char *folded(sw_matcher *m, const char *p)
{
	if (!m->is_folded) {
		if (m->len >= m->cap) {
			free(m->folded);
			m->cap = m->len + 256;
			m->folded = malloc(m->cap);
			if (!m->folded)
				m->cap = 0;
		}
		for (size_t i = 0; m->folded && i < m->len; i++)
			m->folded[i] = (char)sw_fold((unsigned char)m->line[i]);
		m->is_folded = m->folded != NULL;
	}
	return m->is_folded ? m->folded + (p - m->line) : NULL;
}

/* NULL: no memory, or a pattern that does not compile (of a pack that nobody has checked). */
static const sw_regex *compiled(_Atomic(sw_regex *) *slot, const char *regex, unsigned flags,
                                bool *no_memory)
{
	sw_regex *code = atomic_load_explicit(slot, memory_order_acquire);
	if (code)
		return code;
	sw_regex_error why;
	code = sw_regex_new(regex, flags, &why);
	*no_memory |= !code && !why.why;
	sw_regex *expected = NULL;
	if (code && !atomic_compare_exchange_strong_explicit(
	                slot, &expected, code, memory_order_acq_rel, memory_order_acquire)) {
		sw_regex_free(code); /* another thread was first */
		code = expected;
	}
	return code;
}

/* An alternation at top level: what stands first need not be there. */
static bool has_top_level_bar(const char *p)
{
	int depth = 0;
	bool in_class = false;
	for (; *p; p++) {
		if (*p == '\\' && p[1])
			p++;
		else if (in_class)
			in_class = *p != ']';
		else if (*p == '[') {
			in_class = true;
			if (p[1] == '^')
				p++;
			if (p[1] == ']')
				p++;
		} else if (*p == '(')
			depth++;
		else if (*p == ')')
			depth--;
		else if (*p == '|' && depth == 0)
			return true;
	}
	return false;
}

uint8_t sw_regex_prefix(const char *regex, char *out)
{
	uint8_t n = 0;
	const char *p = regex[0] == '^' ? regex + 1 : regex;
	if (has_top_level_bar(regex))
		return 0;
	while (*p && n < SW_PREFIX_MAX) {
		bool escaped = *p == '\\';
		char c = escaped ? p[1] : *p;
		bool letter =
		    (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		if (!c || (escaped && letter) || (!escaped && strchr(".[]()*+?{}|^$#", c)))
			break;
		const char *next = p + 1 + escaped;
		if (*next == '?' || *next == '*' || *next == '{') /* may be missing */
			break;
		out[n++] = (char)sw_fold((unsigned char)c);
		if (*next == '+')
			break;
		p = next;
	}
	return n;
}

static bool begins_with(const char *prefix, size_t len, const char *p, size_t n)
{
	return len <= n && sw_equal_folded(prefix, p, len);
}

static bool kind_is_anchored(sw_kind k)
{
	return k == SW_KIND_FATAL || k == SW_KIND_DOWNGRADE;
}

unsigned sw_kind_regex_flags(sw_kind kind)
{
	return kind == SW_KIND_INFORMATIONAL ? SW_REGEX_WHOLE
	       : kind_is_anchored(kind)      ? SW_REGEX_ANCHORED
	                                     : 0;
}

/* Lazy compilation is invisible from outside, so it may write through a const pack. */
const sw_regex *sw_sig_code(const sw_sig *sig, bool *no_memory)
{
	return compiled(&((sw_sig *)(uintptr_t)sig)->code, sig->regex,
	                sw_kind_regex_flags(sig->def->kind), no_memory);
}

static sw_match run_regex(const sw_regex *code, sw_matcher *m, const char *p, size_t n,
                          sw_regex_spans *spans)
{
	const char *subject = code ? folded(m, p) : NULL;
	m->no_memory |= code && !subject;
	if (!subject)
		return SW_MATCH_FAULT;
	int rc = sw_regex_match(code, m->work, subject, n, spans);
	m->no_memory |= rc < 0;
	return rc < 0 ? SW_MATCH_FAULT : rc ? SW_MATCH_YES : SW_MATCH_NO;
}

static void extract(const sw_regex_spans *spans, const char *p, sw_capture *capture)
{
	for (size_t i = 0; i < SW_REGEX_GROUPS; i++) {
		size_t begin = spans->at[2 * i], end = spans->at[2 * i + 1];
		if (begin == SIZE_MAX || end == SIZE_MAX || end <= begin)
			continue;
		*capture = (sw_capture){p + begin, end - begin, sw_regex_group_names[i]};
		return;
	}
}

size_t sw_priority_length(const sw_pack *pack, const sw_visible *v)
{
	return pack->priority_prefix && v->len > 3 && v->ptr[0] == '<' && v->ptr[1] >= '0' &&
	               v->ptr[1] <= '7' && v->ptr[2] == '>'
	           ? 3
	           : 0;
}

static bool literal_at(const sw_sig *sig, const char *p, size_t n)
{
	for (uint16_t i = 0; i < sig->n_literals; i++)
		if (sig->literal_lens[i] <= n &&
		    sw_equal_folded(sig->literals[i], p, sig->literal_lens[i]))
			return true;
	return false;
}

bool sw_literal_in(const sw_sig *sig, const char *p, size_t n, size_t *at)
{
	for (size_t i = 0; i < n; i++) {
		if (!literal_at(sig, p + i, n - i))
			continue;
		if (at)
			*at = i;
		return true;
	}
	return false;
}

sw_match sw_sig_match(const sw_pack *pack, const sw_sig *sig, sw_matcher *m, const sw_visible *v,
                      sw_capture *capture)
{
	bool anchored = kind_is_anchored(sig->def->kind);
	if (anchored && !v->column0)
		return SW_MATCH_NO;
	size_t skip = anchored ? sw_priority_length(pack, v) : 0;
	if (!sig->regex) {
		if (!anchored || literal_at(sig, v->ptr, v->len))
			return SW_MATCH_YES;
		return skip && literal_at(sig, v->ptr + skip, v->len - skip) ? SW_MATCH_YES
		                                                             : SW_MATCH_NO;
	}
	if (sig->prefix_len && !begins_with(sig->prefix, sig->prefix_len, v->ptr, v->len) &&
	    !(skip && begins_with(sig->prefix, sig->prefix_len, v->ptr + skip, v->len - skip)))
		return SW_MATCH_NO;
	const sw_regex *code = sw_sig_code(sig, &m->no_memory);
	sw_regex_spans spans;
	sw_match r = run_regex(code, m, v->ptr, v->len, &spans);
	/* A subject of its own, so that ^ means column 0 there too. */
	const char *base = v->ptr;
	if (r == SW_MATCH_NO && skip) {
		base = v->ptr + skip;
		r = run_regex(code, m, base, v->len - skip, &spans);
	}
	if (r == SW_MATCH_YES && capture)
		extract(&spans, base, capture);
	return r;
}

const sw_sig *sw_informational(const sw_pack *pack, sw_matcher *m, const sw_visible *v)
{
	if (!v->full_line)
		return NULL;
	size_t skip = sw_priority_length(pack, v);
	for (uint32_t i = 0; i < pack->n_order[SW_KIND_INFORMATIONAL]; i++) {
		const sw_sig *sig = &pack->sigs[pack->order[SW_KIND_INFORMATIONAL][i]];
		for (size_t from = 0;; from = skip) {
			const char *p = v->ptr + from;
			size_t n = v->len - from;
			for (uint16_t k = 0; k < sig->n_literals; k++)
				if (sig->literal_lens[k] == n &&
				    sw_equal_folded(sig->literals[k], p, n))
					return sig;
			if (sig->regex && run_regex(sw_sig_code(sig, &m->no_memory), m, p, n,
			                            NULL) == SW_MATCH_YES)
				return sig;
			if (from == skip)
				break;
		}
	}
	return NULL;
}

bool sw_has_prefix(const sw_pack *pack, sw_matcher *m, const sw_visible *v)
{
	if (!v->column0)
		return false;
	size_t skip = sw_priority_length(pack, v);
	for (size_t from = 0;; from = skip) {
		const char *p = v->ptr + from;
		size_t n = v->len - from;
		for (uint32_t i = 0; i < pack->n_prefixes; i++)
			if (pack->prefixes[i].len <= n &&
			    sw_equal_folded(pack->prefixes[i].text, p, pack->prefixes[i].len))
				return true;
		for (uint32_t i = 0; i < pack->n_prefix_patterns; i++) {
			sw_pattern *pp = &pack->prefix_patterns[i];
			if (!begins_with(pp->prefix, pp->prefix_len, p, n))
				continue;
			const sw_regex *code =
			    compiled(&pp->code, pp->source, SW_REGEX_ANCHORED, &m->no_memory);
			if (run_regex(code, m, p, n, NULL) == SW_MATCH_YES)
				return true;
		}
		if (from == skip)
			return false;
	}
}

static bool veto_agrees(const sw_sig *sig, sw_matcher *m, const sw_visible *v)
{
	return !sig->regex ||
	       run_regex(sw_sig_code(sig, &m->no_memory), m, v->ptr, v->len, NULL) == SW_MATCH_YES;
}

typedef struct veto_search {
	const sw_pack *pack;
	sw_matcher *m;
	const sw_visible *v;
	bool found;
} veto_search;

/* A literal may stand in the line a thousand times: each pattern is asked once. */
static bool veto_literal(void *payload, uint32_t literal, size_t at)
{
	veto_search *s = payload;
	const sw_filter *f = &s->pack->vetoes;
	(void)at;
	for (uint32_t u = f->literals[literal].users; u && !s->found; u = f->users[u].next) {
		uint32_t i = f->users[u].sig, bit = 1u << (i % 32);
		if (s->m->asked[i / 32] & bit)
			continue;
		s->m->asked[i / 32] |= bit;
		s->found = veto_agrees(&s->pack->sigs[i], s->m, s->v);
	}
	return !s->found;
}

bool sw_vetoed(const sw_pack *pack, sw_matcher *m, const sw_visible *v)
{
	veto_search s = {.pack = pack, .m = m, .v = v};
	size_t words = pack->n_sigs / 32 + 1u;
	if (words > m->n_asked) {
		free(m->asked);
		m->asked = malloc(words * sizeof(*m->asked));
		m->n_asked = m->asked ? words : 0;
	}
	if (m->asked) {
		memset(m->asked, 0, words * sizeof(*m->asked));
		sw_filter_all(&pack->vetoes, v->ptr, v->len, veto_literal, &s);
	} else {
		m->no_memory = true;
	}
	for (uint32_t i = 0; i < pack->n_short_vetoes && !s.found; i++) {
		const sw_sig *sig = &pack->sigs[pack->short_vetoes[i]];
		s.found = sw_literal_in(sig, v->ptr, v->len, NULL) && veto_agrees(sig, m, v);
	}
	return s.found;
}

/* ---- facts ---- */

/* path is root or lies below it, by bytes. */
static bool below(sw_str root, const char *path, size_t n)
{
	while (root.len > 1 && root.ptr[root.len - 1] == '/')
		root.len--;
	if (root.len == 0 || root.len > n || memcmp(root.ptr, path, root.len) != 0)
		return false;
	return root.len == n || path[root.len] == '/' || root.len == 1;
}

/* Absolute, "." and ".." and doubled slashes resolved by text; 0 where that cannot be. */
static size_t absolute_path(const sw_facts *f, const char *p, size_t n, char *out, size_t cap)
{
	size_t len = 0;
	const char *parts[2] = {f->cwd.ptr, p};
	size_t lens[2] = {f->cwd.len, n};
	bool relative = n && p[0] != '/';
	if (n == 0 || (relative && (f->cwd.len == 0 || f->cwd.ptr[0] != '/')) || p[0] == '~')
		return 0;
	for (int k = relative ? 0 : 1; k < 2; k++) {
		for (size_t i = 0; i < lens[k];) {
			while (i < lens[k] && parts[k][i] == '/')
				i++;
			size_t j = i;
			while (j < lens[k] && parts[k][j] != '/')
				j++;
			size_t part = j - i;
			if (part == 2 && memcmp(parts[k] + i, "..", 2) == 0) {
				while (len > 0 && out[--len] != '/')
					;
			} else if (part && !(part == 1 && parts[k][i] == '.')) {
				if (len + 1 + part > cap)
					return 0;
				out[len++] = '/';
				memcpy(out + len, parts[k] + i, part);
				len += part;
			}
			i = j;
		}
	}
	if (!len)
		out[len++] = '/';
	return len;
}

static uint32_t facts_of_path(const sw_facts *f, const sw_capture *c)
{
	char path[4096];
	if (!c || !c->kind || strcmp(c->kind, "path") != 0)
		return 0;
	size_t n = absolute_path(f, c->ptr, c->len, path, sizeof(path));
	if (!n)
		return 0;
	uint32_t bits = 0;
	bool inside = false;
	for (size_t i = 0; i < f->n_writable_roots; i++)
		inside |= below(f->writable_roots[i], path, n);
	if (f->n_writable_roots && !inside)
		bits |= 1u << SW_FACT_OUTSIDE_WRITABLE_ROOTS;
	for (size_t i = 0; i < f->n_accessible; i++)
		if (below(f->accessible[i], path, n))
			bits |= 1u << SW_FACT_ACCESSIBLE_OUTSIDE;
	return bits;
}

static uint32_t facts_of_call(const sw_facts *f)
{
	uint32_t bits = 0;
	if (f->network == SW_NETWORK_DENIED)
		bits |= 1u << SW_FACT_NETWORK_DENIED;
	if (f->mode == SW_MODE_READ_ONLY)
		bits |= 1u << SW_FACT_READ_ONLY;
	if (f->mode == SW_MODE_WORKSPACE_WRITE)
		bits |= 1u << SW_FACT_WORKSPACE_WRITE;
	return bits;
}

bool sw_facts_decide(const sw_sig *sig, const sw_facts *facts, const sw_capture *capture,
                     sw_confidence *confidence)
{
	*confidence = (sw_confidence)sig->confidence;
	if (sig->decides == SW_DECIDES_YES)
		return true;
	if (sig->decides == SW_DECIDES_NETWORK) {
		if (facts->network == SW_NETWORK_UNKNOWN)
			*confidence = SW_CONFIDENCE_WEAK;
		return facts->network != SW_NETWORK_ALLOWED;
	}
	if (sig->decides == SW_DECIDES_WITH)
		return (sig->with & ~(facts_of_call(facts) | facts_of_path(facts, capture))) == 0;
	return false;
}
