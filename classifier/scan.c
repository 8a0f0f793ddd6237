/*
 * The stream: cuts what is fed into segments without copying them, lets the
 * filter find candidates, and hands each interesting segment to record.c.
 *
 * Segments end at LF or CR, so a "\r\n" gives an empty one, which is blank and
 * matters to nothing: that is how trailing CRs are stripped. Equality of all cuts
 * holds by construction: whatever the cut, the same segments come out.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define ESC 0x1b
#define BLOCK 32768 /* counted and scanned while it is in the L1 cache */
#define STRIP_CHUNK 16384

/* ---- life ---- */

static void copy_facts(sw_scan *s, const sw_facts *facts)
{
	if (facts)
		s->facts = *facts;
}

void sw_scan_runner_lost(sw_scan *scan)
{
	scan->facts.runner_lost = true;
}

int sw_scan_begin(sw_scan **out, const sw_pack *pack, const sw_facts *facts, sw_error *err)
{
	sw_scan *s = calloc(1, sizeof(*s));
	if (!s)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	s->pack = pack;
	copy_facts(s, facts);
	s->decode = pack->utf16le ? -1 : 0;
	s->n_hit_words = (pack->n_sigs + 31) / 32;
	s->slots = calloc((size_t)SW_MARK_KINDS * pack->n_sigs + 1, sizeof(*s->slots));
	s->hit_words = calloc(s->n_hit_words + 1u, sizeof(*s->hit_words));
	if (!s->slots || !s->hit_words || sw_matcher_init(&s->matcher)) {
		sw_scan_free(s);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	*out = s;
	return 0;
}

void sw_scan_free(sw_scan *s)
{
	if (!s)
		return;
	sw_marks_free(s);
	sw_matcher_free(&s->matcher);
	free(s->slots);
	free(s->hit_words);
	free(s->carry);
	free(s->strip);
	free(s->long_head);
	free(s);
}

/* ---- segments ---- */

static bool is_end(char c)
{
	return c == '\n' || c == '\r';
}

/* Length of the segment at p, up to LF, CR or n. */
static size_t segment_length(const char *p, size_t n)
{
	const char *lf = memchr(p, '\n', n);
	size_t len = lf ? (size_t)(lf - p) : n;
	const char *cr = memchr(p, '\r', len);
	return cr ? (size_t)(cr - p) : len;
}

static size_t segment_begin(const char *p, size_t from, size_t at)
{
	const char *lf = memrchr(p + from, '\n', at - from);
	size_t begin = lf ? (size_t)(lf - p) + 1 : from;
	const char *cr = memrchr(p + begin, '\r', at - begin);
	return cr ? (size_t)(cr - p) + 1 : begin;
}

static bool note_literal(void *payload, uint32_t literal, size_t at)
{
	sw_scan *s = payload;
	(void)at;
	const sw_literal *l = &s->pack->filter.literals[literal];
	for (uint32_t u = l->users; u; u = s->pack->filter.users[u].next) {
		uint32_t sig = s->pack->filter.users[u].sig;
		s->hit_words[sig / 32] |= 1u << (sig % 32);
	}
	s->hit_any = true;
	return true;
}

/* Notes every signature whose literal stands in the text. */
static void note_all(sw_scan *s, const char *p, size_t n)
{
	sw_filter_all(&s->pack->filter, p, n, note_literal, s);
}

static bool position_matters(const sw_scan *s)
{
	return (s->pack->needs_first && !s->position.seen_command) || s->position.pending_last;
}

static bool ensure(char **p, size_t n, sw_scan *s)
{
	if (!*p && !(*p = malloc(n)))
		s->error = SW_ENOMEM;
	return *p != NULL;
}

/* Number of windows of a segment: each but the first has bytes that the one before lacks. */
static bool more_windows(size_t begin, size_t len)
{
	return begin == 0 || begin + SW_WINDOW_OVERLAP < len;
}

/*
 * Each window of a long segment is evaluated by itself, in a stream as in one call:
 * what is fatal, denied or blocked is so within a window; line, offset and the count
 * of denied lines are the segment's.
 */
static void long_window(sw_scan *s, const char *raw, size_t n, uint64_t number, uint64_t offset,
                        bool first)
{
	if (!ensure(&s->strip, SW_WINDOW_SIZE + STRIP_CHUNK, s))
		return;
	size_t len = sw_strip_escapes(s->strip, raw, n);
	note_all(s, s->strip, len);
	sw_segment seg = {
	    .raw = s->long_head,
	    .raw_len = s->long_head_len,
	    .full_len = SW_WINDOW_SIZE + 1,
	    .line_number = number,
	    .offset = offset,
	    .visible = {.ptr = s->strip, .len = len, .column0 = first, .full_line = false},
	    .continued = !first};
	sw_segment_done(s, &seg);
}

static void long_begin(sw_scan *s, const char *raw, size_t n)
{
	if (!ensure(&s->long_head, SW_LINE_REPORT_MAX, s))
		return;
	s->long_head_len = n < SW_LINE_REPORT_MAX ? n : SW_LINE_REPORT_MAX;
	memcpy(s->long_head, raw, s->long_head_len);
}

static void long_whole(sw_scan *s, const char *raw, size_t n, uint64_t number, uint64_t offset)
{
	long_begin(s, raw, n);
	for (size_t at = 0; !s->error && more_windows(at, n);
	     at += SW_WINDOW_SIZE - SW_WINDOW_OVERLAP) {
		size_t w = n - at < SW_WINDOW_SIZE ? n - at : SW_WINDOW_SIZE;
		long_window(s, raw + at, w, number, offset, at == 0);
	}
}

/* ---- regions: whole segments in memory ---- */

typedef struct region {
	const char *raw; /* as fed */
	size_t raw_len;
	const char *vis; /* raw, or the stripped copy */
	size_t vis_len;
	uint64_t offset;    /* of raw in the stream */
	uint64_t lf_before; /* of raw */
	/* cursor: counted and mapped up to here */
	size_t raw_at, vis_at;
	uint64_t lf_at;
} region;

/*
 * Moves the cursor to the visible segment that begins at `begin`: counts LFs and,
 * in a stripped copy, finds the raw segment. Separators survive stripping, so the
 * k-th segment of one is the k-th of the other.
 */
static void advance(region *r, size_t begin)
{
	if (r->vis == r->raw) {
		r->lf_at += sw_count_lf(r->raw + r->raw_at, begin - r->raw_at);
		r->raw_at = r->vis_at = begin;
		return;
	}
	while (r->vis_at < begin) {
		r->vis_at += segment_length(r->vis + r->vis_at, r->vis_len - r->vis_at) + 1;
		r->raw_at += segment_length(r->raw + r->raw_at, r->raw_len - r->raw_at);
		r->lf_at += r->raw[r->raw_at] == '\n';
		r->raw_at++;
	}
}

/* Evaluates the visible segment [begin, begin + len), whose literals are noted. */
static void segment(sw_scan *s, region *r, size_t begin, size_t len)
{
	advance(r, begin);
	size_t raw_len =
	    r->vis == r->raw ? len : segment_length(r->raw + r->raw_at, r->raw_len - r->raw_at);
	sw_segment seg = {
	    .raw = r->raw + r->raw_at,
	    .raw_len = raw_len,
	    .full_len = raw_len,
	    .line_number = r->lf_before + r->lf_at + 1,
	    .offset = r->offset + r->raw_at,
	    .visible = {.ptr = r->vis + begin, .len = len, .column0 = true, .full_line = true}};
	sw_segment_done(s, &seg);
}

/* Segment by segment, as long as fatal positions depend on each line. Returns where it stopped. */
static size_t slow_part(sw_scan *s, region *r, size_t at)
{
	while (at < r->vis_len && position_matters(s) && !s->error) {
		size_t len = segment_length(r->vis + at, r->vis_len - at);
		if (!sw_blank(r->vis + at, len)) {
			note_all(s, r->vis + at, len);
			segment(s, r, at, len);
		}
		at += len + 1;
	}
	return at < r->vis_len ? at : r->vis_len;
}

/* No literal holds a line end, so one that is found lies within a segment. */
static size_t next_literal(const sw_scan *s, const region *r, int t, size_t from)
{
	return sw_filter_next(&s->pack->filter, t, r->vis, r->vis_len, from);
}

/* All segments of the region. */
static void scan_region(sw_scan *s, region *r)
{
	size_t at = slow_part(s, r, 0), next[SW_TABLES];
	for (int t = 0; t < SW_TABLES; t++)
		next[t] = next_literal(s, r, t, at);
	while (!s->error) {
		size_t hit = next[0] < next[1] ? next[0] : next[1];
		if (hit >= r->vis_len)
			break;
		/* Every literal of this segment first, then the segment as a whole. */
		size_t begin = segment_begin(r->vis, at, hit);
		size_t end = begin + segment_length(r->vis + begin, r->vis_len - begin);
		for (int t = 0; t < SW_TABLES; t++) {
			while (next[t] < end) {
				sw_filter_report(&s->pack->filter, t, r->vis, r->vis_len, next[t],
				                 note_literal, s);
				next[t] = next_literal(s, r, t, next[t] + 1);
			}
		}
		segment(s, r, begin, end - begin);
		at = end < r->vis_len ? end + 1 : end;
		if (position_matters(s)) {
			at = slow_part(s, r, at);
			for (int t = 0; t < SW_TABLES; t++)
				if (next[t] < at)
					next[t] = next_literal(s, r, t, at);
		}
	}
}

static void plain_region(sw_scan *s, const char *p, size_t n, uint64_t offset)
{
	region r = {.raw = p,
	            .raw_len = n,
	            .vis = p,
	            .vis_len = n,
	            .offset = offset,
	            .lf_before = s->lf_before};
	scan_region(s, &r);
}

static void stripped_region(sw_scan *s, const char *p, size_t n, uint64_t offset)
{
	if (!ensure(&s->strip, SW_WINDOW_SIZE + STRIP_CHUNK, s))
		return;
	size_t out = sw_strip_escapes(s->strip, p, n);
	region r = {.raw = p,
	            .raw_len = n,
	            .vis = s->strip,
	            .vis_len = out,
	            .offset = offset,
	            .lf_before = s->lf_before};
	scan_region(s, &r);
}

/*
 * Whole segments p[0..n) (the last may lack its end at the end of the output).
 * Cut into blocks at segment ends; blocks with escapes are stripped first, long
 * segments go their own way.
 */
static void process(sw_scan *s, const char *p, size_t n)
{
	size_t at = 0;
	while (at < n && !s->error) {
		size_t want = n - at < BLOCK ? n - at : BLOCK, take = want;
		if (take < n - at) {
			size_t begin = segment_begin(p, at, at + take);
			take = begin > at ? begin - at : segment_length(p + at, n - at) + 1;
			if (take > n - at)
				take = n - at;
		}
		const char *esc = memchr(p + at, ESC, take);
		size_t body = take && is_end(p[at + take - 1]) ? take - 1 : take;
		uint64_t offset = s->fed + at;
		if (body > SW_WINDOW_SIZE && segment_length(p + at, body) == body) {
			long_whole(s, p + at, body, s->lf_before + 1, offset);
		} else if (esc && take > STRIP_CHUNK) {
			/* Smaller pieces, so that the stripped copy stays in the cache. */
			size_t begin = segment_begin(p, at, at + STRIP_CHUNK);
			if (begin == at)
				begin += segment_length(p + at, take) + 1;
			take = begin - at < take ? begin - at : take;
			if (memchr(p + at, ESC, take)) {
				stripped_region(s, p + at, take, offset);
			} else {
				plain_region(s, p + at, take, offset);
			}
		} else if (esc) {
			stripped_region(s, p + at, take, offset);
		} else {
			plain_region(s, p + at, take, offset);
		}
		s->lf_before += sw_count_lf(p + at, take);
		at += take;
	}
	s->fed += n;
}

/* ---- feeding ---- */

/* Adds bytes without an end of segment to the unfinished one. */
static void carry_add(sw_scan *s, const char *p, size_t n)
{
	if (!n || !ensure(&s->carry, SW_WINDOW_SIZE, s))
		return;
	while (n && !s->error) {
		if (s->carry_len == SW_WINDOW_SIZE) {
			/* More is to come, so this window is not the segment's last. */
			if (!s->carry_long)
				long_begin(s, s->carry, s->carry_len);
			long_window(s, s->carry, SW_WINDOW_SIZE, s->lf_before + 1, s->fed,
			            !s->carry_long);
			memmove(s->carry, s->carry + SW_WINDOW_SIZE - SW_WINDOW_OVERLAP,
			        SW_WINDOW_OVERLAP);
			s->carry_len = SW_WINDOW_OVERLAP;
			s->carry_offset += SW_WINDOW_SIZE - SW_WINDOW_OVERLAP;
			s->carry_long = true;
		}
		size_t room = SW_WINDOW_SIZE - s->carry_len, take = n < room ? n : room;
		memcpy(s->carry + s->carry_len, p, take);
		s->carry_len += take;
		p += take;
		n -= take;
	}
}

/* The unfinished segment is complete; `end` is its separator, or 0 at the end of the output. */
static void carry_end(sw_scan *s, char end)
{
	if (!s->carry_long) {
		size_t n = s->carry_len;
		if (n)
			process(s, s->carry, n);
	} else {
		long_window(s, s->carry, s->carry_len, s->lf_before + 1, s->fed, false);
		s->fed += s->carry_offset + s->carry_len;
	}
	if (end) {
		s->fed++;
		s->lf_before += end == '\n';
	}
	s->carry_len = 0;
	s->carry_offset = 0;
	s->carry_long = false;
}

static void feed_bytes(sw_scan *s, const char *p, size_t n)
{
	if (s->carry_len) {
		size_t len = segment_length(p, n);
		carry_add(s, p, len);
		if (len == n || s->error)
			return;
		carry_end(s, p[len]);
		p += len + 1;
		n -= len + 1;
	}
	size_t whole = n;
	if (n && !is_end(p[n - 1]))
		whole = segment_begin(p, 0, n);
	process(s, p, whole);
	carry_add(s, p + whole, n - whole);
}

/* ---- UTF-16LE (wsl.exe) ---- */

static bool looks_utf16(const unsigned char *p, size_t n)
{
	if (n >= 2 && p[0] == 0xff && p[1] == 0xfe)
		return true;
	size_t zero = 0, pairs = n / 2;
	for (size_t i = 0; i < pairs; i++)
		zero += p[2 * i + 1] == 0 && p[2 * i] != 0;
	return pairs >= 2 && zero * 4 >= pairs * 3;
}

static size_t put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

static void feed_utf16(sw_scan *s, const unsigned char *p, size_t n)
{
	char out[4096];
	size_t len = 0;
	for (size_t i = 0; i < n; i++) {
		if (!s->has_odd) {
			s->odd = p[i];
			s->has_odd = true;
			continue;
		}
		uint16_t u = (uint16_t)(s->odd | p[i] << 8);
		s->has_odd = false;
		if (u == 0xfeff)
			continue;
		uint32_t c = u;
		if (s->high_surrogate) {
			bool pair = u >= 0xdc00 && u <= 0xdfff;
			uint32_t high = s->high_surrogate;
			s->high_surrogate = 0;
			if (pair)
				c = 0x10000 + ((high - 0xd800) << 10) + (uint32_t)(u - 0xdc00);
			else
				len += put_utf8(out + len, 0xfffd);
		}
		if (c >= 0xd800 && c <= 0xdbff)
			s->high_surrogate = (uint16_t)c;
		else
			len += put_utf8(out + len, c >= 0xdc00 && c <= 0xdfff ? 0xfffd : c);
		if (len > sizeof(out) - 8) {
			feed_bytes(s, out, len);
			len = 0;
		}
	}
	feed_bytes(s, out, len);
}

static void feed_decoded(sw_scan *s, const void *p, size_t n)
{
	if (s->decode == 1)
		feed_utf16(s, p, n);
	else
		feed_bytes(s, p, n);
}

/* Decides on the first 64 bytes, so that every cut decides alike. */
static void sniff_end(sw_scan *s)
{
	s->decode = looks_utf16(s->sniff, s->sniff_len);
	feed_decoded(s, s->sniff, s->sniff_len);
}

int sw_scan_feed(sw_scan *s, const void *bytes, size_t n)
{
	if (s->finished)
		return SW_EINVAL;
	if (s->error || !n)
		return s->error;
	const char *p = bytes;
	s->output_size += n;
	s->last_was_lf = p[n - 1] == '\n';
	s->any = true;
	if (s->pack->unconfined) { /* rule 1 needs no text */
		s->lf_before += sw_count_lf(p, n);
		return 0;
	}
	if (s->decode < 0) {
		size_t room = sizeof(s->sniff) - s->sniff_len, take = n < room ? n : room;
		memcpy(s->sniff + s->sniff_len, p, take);
		s->sniff_len += take;
		p += take;
		n -= take;
		if (s->sniff_len < sizeof(s->sniff))
			return 0;
		sniff_end(s);
	}
	feed_decoded(s, p, n);
	return s->error;
}

int sw_scan_finish(sw_scan *s, sw_exit exit, sw_started started, sw_source source, sw_result **out,
                   sw_error *err)
{
	if (s->finished)
		return sw_error_set(err, SW_EINVAL, "the scan is finished already");
	s->finished = true;
	if (!s->error && s->decode < 0)
		sniff_end(s);
	if (!s->error && s->carry_len)
		carry_end(s, 0);
	if (s->error)
		return sw_error_set(err, s->error, "out of memory");
	return sw_decide(s, exit, started, source, out, err);
}

int sw_classify(const sw_pack *pack, const sw_facts *facts, sw_exit exit, sw_started started,
                sw_source source, const void *output, size_t n, sw_result **out, sw_error *err)
{
	sw_scan *s = NULL;
	int rc = sw_scan_begin(&s, pack, facts, err);
	if (rc || !s)
		return rc;
	rc = sw_scan_feed(s, output, n);
	rc = rc ? sw_error_set(err, rc, "out of memory")
	        : sw_scan_finish(s, exit, started, source, out, err);
	sw_scan_free(s);
	return rc;
}
