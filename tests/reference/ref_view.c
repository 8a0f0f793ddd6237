/* ref_view.c - segments and windows, and which signatures match them. */
#include "ref_view.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- one signature on one part ---- */

/* Length of the "<N>" that the pack's runner may write before column 0. */
static size_t priority(const ref_pack *p, const part *w)
{
	if (p->priority_prefix && w->len > 3 && w->text[0] == '<' && w->text[1] >= '0' &&
	    w->text[1] <= '7' && w->text[2] == '>')
		return 3;
	return 0;
}

static bool regex_matches(const view *v, const pcre2_code *code, const char *p, size_t n)
{
	int rc = pcre2_match(code, (PCRE2_SPTR)p, n, 0, 0, v->data, v->limits);
	*v->gave_up |= rc < 0 && rc != PCRE2_ERROR_NOMATCH;
	return rc >= 0;
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

bool part_matches(const view *v, const ref_sig *s, const part *w, size_t *from)
{
	size_t skip = priority(v->pack, w);
	*from = 0;
	if (s->exit_only)
		return false;
	switch (s->def->kind) {
	case SW_KIND_INFORMATIONAL:
		if (!w->whole)
			return false;
		break;
	case SW_KIND_FATAL:
	case SW_KIND_DOWNGRADE:
		if (!w->first || !any_literal(s, w->text, w->len, contains))
			return false;
		break;
	default:
		if (!any_literal(s, w->text, w->len, contains))
			return false;
		return !s->regex || regex_matches(v, s->regex, w->text, w->len);
	}
	if (matches_from(v, s, w->text, w->len))
		return true;
	*from = skip;
	return skip && matches_from(v, s, w->text + skip, w->len - skip);
}

bool part_capture(const view *v, const ref_sig *s, const part *w, const char **p, size_t *n,
                  const char **kind)
{
	static const char *const groups[] = {"path", "host", "syscall"};
	size_t from = 0;
	if (!s->regex || !part_matches(v, s, w, &from) ||
	    !regex_matches(v, s->regex, w->text + from, w->len - from))
		return false;
	PCRE2_SIZE *ends = pcre2_get_ovector_pointer(v->data);
	for (size_t g = 0; g < 3; g++) {
		PCRE2_SPTR first, last;
		int size =
		    pcre2_substring_nametable_scan(s->regex, (PCRE2_SPTR)groups[g], &first, &last);
		if (size <= 0)
			continue;
		for (PCRE2_SPTR entry = first; entry <= last; entry += size) {
			size_t k = (size_t)entry[0] * 256 + entry[1];
			if (ends[2 * k] == PCRE2_UNSET || ends[2 * k] >= ends[2 * k + 1])
				continue;
			*p = w->text + from + ends[2 * k];
			*n = ends[2 * k + 1] - ends[2 * k];
			*kind = groups[g];
			return true;
		}
	}
	return false;
}

/* ---- segments ---- */

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

static bool blank(const part *w)
{
	for (size_t i = 0; i < w->len; i++)
		if (!memchr(" \t\v\f", w->text[i], 4))
			return false;
	return true;
}

static void add_part(const view *v, segment *seg, const char *raw, size_t n, bool first, bool whole)
{
	seg->parts = ref_grow(seg->parts, (seg->n_parts + 1) * sizeof(part));
	part *w = &seg->parts[seg->n_parts++];
	*w = (part){.text = ref_alloc(n + 1), .first = first, .whole = whole};
	w->len = ref_strip(w->text, raw, n);
	w->match = ref_alloc(v->pack->n_sigs);
	for (size_t i = 0; i < v->pack->n_sigs; i++) {
		const ref_sig *s = &v->pack->sigs[i];
		size_t from;
		if (!part_matches(v, s, w, &from))
			continue;
		w->match[i] = 1;
		w->informational |= s->def->kind == SW_KIND_INFORMATIONAL;
		w->downgrade |= s->def->kind == SW_KIND_DOWNGRADE;
		w->any_fatal |= s->def->kind == SW_KIND_FATAL;
		w->vetoed |= s->def->kind == SW_KIND_VETO;
		w->any_scope_any |= s->def->kind == SW_KIND_DENIAL && s->def->scope == SW_SCOPE_ANY;
	}
}

/* A segment longer than a window is matched in windows that overlap. */
static void look_at(const view *v, segment *seg)
{
	const char *raw = v->bytes + seg->offset;
	const size_t step = SW_WINDOW_SIZE - SW_WINDOW_OVERLAP;
	if (seg->len <= SW_WINDOW_SIZE) {
		add_part(v, seg, raw, seg->len, true, true);
	} else {
		for (size_t at = 0; at == 0 || at + SW_WINDOW_OVERLAP < seg->len; at += step) {
			size_t left = seg->len - at;
			add_part(v, seg, raw + at, left < SW_WINDOW_SIZE ? left : SW_WINDOW_SIZE,
			         at == 0, false);
		}
	}
	const part *head = &seg->parts[0];
	size_t skip = priority(v->pack, head);
	seg->runner = prefix_at(v, head->text, head->len) ||
	              (skip && prefix_at(v, head->text + skip, head->len - skip));
	bool all_blank = true;
	for (size_t i = 0; i < seg->n_parts; i++)
		all_blank &= blank(&seg->parts[i]);
	seg->command_line = !all_blank && !head->informational && !seg->runner &&
	                    !head->any_fatal && !head->downgrade;
}

void view_cut(view *v, size_t n)
{
	size_t begin = 0, cap = 0;
	uint64_t line = 1;
	for (size_t i = 0; i <= n; i++) {
		if (i < n && v->bytes[i] != '\n' && v->bytes[i] != '\r')
			continue;
		if (v->n_segs == cap)
			v->segs = ref_grow(v->segs, (cap = cap * 2 + 16) * sizeof(segment));
		segment *seg = &v->segs[v->n_segs++];
		*seg = (segment){.offset = begin, .len = i - begin, .line_number = line};
		look_at(v, seg);
		if (i < n && v->bytes[i] == '\n')
			line++;
		begin = i + 1;
	}
}

void view_free(view *v)
{
	for (size_t i = 0; i < v->n_segs; i++) {
		for (size_t k = 0; k < v->segs[i].n_parts; k++) {
			free(v->segs[i].parts[k].text);
			free(v->segs[i].parts[k].match);
		}
		free(v->segs[i].parts);
	}
	free(v->segs);
}

/* ---- UTF-16LE ---- */

static bool looks_utf16(const unsigned char *p, size_t n)
{
	size_t pairs = (n < 64 ? n : 64) / 2, high_zero = 0;
	if (n >= 2 && p[0] == 0xff && p[1] == 0xfe)
		return true;
	for (size_t i = 0; i < pairs; i++)
		high_zero += p[2 * i] != 0 && p[2 * i + 1] == 0;
	return pairs >= 2 && 4 * high_zero >= 3 * pairs;
}

static size_t utf8(char *out, unsigned c)
{
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = len; i-- > 1; c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(len == 1 ? c : (lead[len] | c));
	return len;
}

char *view_decode(const unsigned char *p, size_t n, size_t *out_n)
{
	if (!looks_utf16(p, n))
		return NULL;
	char *out = ref_alloc(n * 2 + 4);
	size_t len = 0;
	for (size_t i = 0; i + 1 < n; i += 2) {
		unsigned u = p[i] | (unsigned)p[i + 1] << 8;
		unsigned next = i + 3 < n ? p[i + 2] | (unsigned)p[i + 3] << 8 : 0;
		if (u == 0xfeff)
			continue;
		if (u >= 0xd800 && u < 0xdc00) {
			if (i + 3 >= n)
				break; /* half of a pair at the very end */
			if (next >= 0xdc00 && next < 0xe000) {
				len += utf8(out + len,
				            0x10000 + ((u - 0xd800) << 10) + (next - 0xdc00));
				i += 2;
				continue;
			}
		}
		len += utf8(out + len, u >= 0xd800 && u < 0xe000 ? 0xfffd : u);
	}
	*out_n = len;
	return out;
}
