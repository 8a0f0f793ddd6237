/*
 * Running a pattern over a folded line.
 *
 * Backtracking in Perl's order, but what failed at a byte is not tried there again: each
 * place of the program where several ways meet has a column of bits, one for each byte.
 * That is sound because what follows depends on the place and the byte alone, and it is
 * what bounds the work, over all bytes at which a match may begin.
 */
#include "regex_tree.h"

#include <stdlib.h>
#include <string.h>

#define ANCHORS 64    /* shared results of a line; a power of two */
#define ANCHOR_HITS 8 /* places kept; with more, what stands before is not looked at */
#define RUN_SHORT 16  /* a run is at most this long: not worth keeping */

typedef struct frame {
	enum { FRAME_BRANCH, FRAME_RUN, FRAME_RUN_LAZY, FRAME_SPAN } kind;
	uint32_t pc; /* of a span: its index */
	size_t pos;  /* of a run: the next end to try; of a span: its value before */
	size_t low;  /* of a run: the last end */
} frame;

typedef struct column {
	uint64_t match;
	size_t at; /* in bits */
} column;

typedef struct run {
	uint64_t match;
	size_t begin, end;
} run;

/* Where a string stands with everything after it as the pattern wants it. */
typedef struct anchor {
	uint64_t line, hash;
	const char *s; /* the subject */
	size_t len;
	const sw_regex *re;
	uint32_t n;
	bool many;
	size_t at[ANCHOR_HITS];
} anchor;

struct sw_regex_work {
	const char *s;
	size_t n;
	uint64_t line, match; /* of which something is kept; from 1 on */
	uint64_t steps;
	bool no_memory;
	column *columns;
	size_t n_columns;
	run *runs;
	size_t n_runs;
	uint64_t *bits;
	size_t used_bits, cap_bits; /* words */
	frame *frames;
	size_t n_frames, cap_frames;
	size_t spans[2 * SW_REGEX_GROUPS];
	anchor anchors[ANCHORS];
};

sw_regex_work *sw_regex_work_new(void)
{
	sw_regex_work *w = calloc(1, sizeof(*w));
	if (w)
		w->line = w->match = 1;
	return w;
}

void sw_regex_work_free(sw_regex_work *w)
{
	if (!w)
		return;
	free(w->columns);
	free(w->runs);
	free(w->bits);
	free(w->frames);
	free(w);
}

void sw_regex_work_line(sw_regex_work *w)
{
	w->line++;
}

uint64_t sw_regex_steps(const sw_regex_work *w)
{
	return w->steps;
}

/* ---- memory ---- */

static bool grow(void **p, size_t *cap, size_t want, size_t size, bool *failed)
{
	if (want <= *cap)
		return true;
	size_t n = want + want / 2 + 16;
	void *q = realloc(*p, n * size);
	if (!q) {
		*failed = true;
		return false;
	}
	memset((char *)q + *cap * size, 0, (n - *cap) * size);
	*p = q;
	*cap = n;
	return true;
}

/* Forgets what failed: another subject, or a success that the bits would deny. */
static void forget(sw_regex_work *w)
{
	w->match++;
	w->used_bits = 0;
}

static size_t words_of(const sw_regex_work *w)
{
	return w->n / 64 + 1;
}

/* The column's words, zeroed on first use in this match; NULL: out of memory. */
static uint64_t *column_of(sw_regex_work *w, int32_t memo)
{
	column *c = &w->columns[memo];
	if (c->match != w->match) {
		size_t words = words_of(w);
		if (!grow((void **)&w->bits, &w->cap_bits, w->used_bits + words, sizeof(uint64_t),
		          &w->no_memory))
			return NULL;
		c->match = w->match;
		c->at = w->used_bits;
		w->used_bits += words;
		memset(w->bits + c->at, 0, words * sizeof(uint64_t));
	}
	return w->bits + c->at;
}

static bool has_bit(sw_regex_work *w, int32_t memo, size_t pos)
{
	if (w->columns[memo].match != w->match)
		return false;
	return w->bits[w->columns[memo].at + pos / 64] >> (pos % 64) & 1;
}

/* True where the bit was set already. */
static bool set_bit(sw_regex_work *w, int32_t memo, size_t pos)
{
	uint64_t *words = column_of(w, memo);
	if (!words)
		return true;
	uint64_t bit = 1ull << (pos % 64), old = words[pos / 64];
	words[pos / 64] = old | bit;
	return old & bit;
}

/* The last byte in low..high that is not marked, or SIZE_MAX. */
static size_t last_clear(const uint64_t *words, size_t low, size_t high)
{
	for (size_t w = high / 64;; w--) {
		uint64_t clear = ~words[w];
		if (w == high / 64 && high % 64 != 63)
			clear &= (1ull << (high % 64 + 1)) - 1;
		if (w == low / 64)
			clear &= ~0ull << (low % 64);
		if (clear)
			return w * 64 + 63 - (size_t)__builtin_clzll(clear);
		if (w == low / 64)
			return SIZE_MAX;
	}
}

/* The first byte in low..high that is not marked, or SIZE_MAX. */
static size_t first_clear(const uint64_t *words, size_t low, size_t high)
{
	for (size_t w = low / 64; w <= high / 64; w++) {
		uint64_t clear = ~words[w];
		if (w == low / 64)
			clear &= ~0ull << (low % 64);
		if (!clear)
			continue;
		size_t at = w * 64 + (size_t)__builtin_ctzll(clear);
		return at <= high ? at : SIZE_MAX;
	}
	return SIZE_MAX;
}

/* Marks low..high. */
static void set_range(uint64_t *words, size_t low, size_t high)
{
	for (size_t w = low / 64; w <= high / 64; w++) {
		uint64_t bits = ~0ull;
		if (w == low / 64)
			bits &= ~0ull << (low % 64);
		if (w == high / 64 && high % 64 != 63)
			bits &= (1ull << (high % 64 + 1)) - 1;
		words[w] |= bits;
	}
}

static void push(sw_regex_work *w, frame f)
{
	if (w->n_frames == w->cap_frames && !grow((void **)&w->frames, &w->cap_frames,
	                                          w->n_frames + 1, sizeof(frame), &w->no_memory))
		return;
	w->frames[w->n_frames++] = f;
}

/* ---- single steps ---- */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static bool at_word_edge(const sw_regex_work *w, size_t pos)
{
	return (pos > 0 && is_word(w->s[pos - 1])) != (pos < w->n && is_word(w->s[pos]));
}

/* End of the bytes of the set from pos on, at most `max` of them. */
static size_t run_end(sw_regex_work *w, const sw_regex *re, const rx_insn *in, size_t pos)
{
	const rx_set *set = &re->sets[in->set];
	size_t most = in->max < w->n - pos ? pos + in->max : w->n, end = pos;
	if (in->max <= RUN_SHORT) {
		while (end < most && rx_in(set, (unsigned char)w->s[end]))
			end++;
		w->steps += end - pos;
		return end;
	}
	/* All that begin within one run end with it, and one that reaches it too. */
	run *r = &w->runs[in->x];
	bool known = r->match == w->match;
	if (!known || pos < r->begin || pos > r->end) {
		size_t stop = known && pos < r->begin ? r->begin : w->n;
		while (end < stop && rx_in(set, (unsigned char)w->s[end]))
			end++;
		w->steps += end - pos;
		*r = (run){w->match, pos, end == stop && known && stop == r->begin ? r->end : end};
	}
	return r->end < most ? r->end : most;
}

static inline bool simple_step(const sw_regex_work *w, const sw_regex *re, const rx_insn *in,
                               size_t *pos)
{
	size_t p = *pos;
	switch (in->op) {
	case RX_OP_CHAR:
		if (p == w->n || (unsigned char)w->s[p] != in->x)
			return false;
		*pos = p + 1;
		return true;
	case RX_OP_IN:
		if (p == w->n || !rx_in(&re->sets[in->set], (unsigned char)w->s[p]))
			return false;
		*pos = p + 1;
		return true;
	case RX_OP_STRING:
		if (in->y > w->n - p || w->s[p] != re->text[in->x] ||
		    memcmp(w->s + p, re->text + in->x, in->y) != 0)
			return false;
		*pos = p + in->y;
		return true;
	case RX_OP_BOL:
		return p == 0;
	case RX_OP_EOL:
		return p == w->n;
	case RX_OP_WORD:
		return at_word_edge(w, p);
	case RX_OP_NOT_WORD:
		return !at_word_edge(w, p);
	default:
		return true;
	}
}

/* What the way at x must begin with is not there. */
static bool cannot_begin(const sw_regex_work *w, const sw_regex *re, const rx_insn *in, size_t pos)
{
	return in->set != RX_NO_SET &&
	       (pos == w->n || !rx_in(&re->sets[in->set], (unsigned char)w->s[pos]));
}

/* ---- look-arounds: yes or no, kept for both answers ---- */

static bool holds(sw_regex_work *w, const sw_regex *re, uint32_t pc, size_t pos);

static bool look(sw_regex_work *w, const sw_regex *re, uint32_t pc, size_t pos)
{
	const rx_insn *in = &re->code[pc];
	if (in->min > pos)
		return in->negative;
	return holds(w, re, pc + 1, pos - in->min) != in->negative;
}

/* Any end of the run from which the rest holds. */
static bool run_holds(sw_regex_work *w, const sw_regex *re, uint32_t pc, size_t pos)
{
	const rx_insn *in = &re->code[pc];
	size_t high = run_end(w, re, in, pos);
	if (high - pos < in->min)
		return false;
	size_t low = in->mode == RX_POSSESSIVE ? high : pos + in->min;
	int32_t memo = re->code[pc + 1].join ? re->code[pc + 1].memo : RX_NONE;
	for (;;) {
		if (memo >= 0 && w->columns[memo].match == w->match)
			high = last_clear(w->bits + w->columns[memo].at, low, high);
		w->steps += 1;
		if (high == SIZE_MAX)
			return false;
		if (holds(w, re, pc + 1, high))
			return true;
		if (high == low || w->no_memory)
			return false;
		high--;
	}
}

/* The recursion is as deep as the body has instructions: no group in it repeats without end. */
static bool holds_from(sw_regex_work *w, const sw_regex *re, uint32_t pc, size_t pos)
{
	for (;; w->steps++) {
		const rx_insn *in = &re->code[pc];
		switch (in->op) {
		case RX_OP_ACCEPT:
			return true;
		case RX_OP_JUMP:
			if (in->join)
				return holds(w, re, in->x, pos);
			if (re->code[in->x].join)
				return holds(w, re, in->x, pos);
			pc = in->x;
			break;
		case RX_OP_SPLIT:
			if (!cannot_begin(w, re, in, pos) && holds(w, re, in->x, pos))
				return true;
			if (re->code[in->y].join)
				return holds(w, re, in->y, pos);
			pc = in->y;
			break;
		case RX_OP_RUN:
			return run_holds(w, re, pc, pos);
		case RX_OP_LOOK:
			if (!look(w, re, pc, pos))
				return false;
			pc = in->x;
			break;
		default:
			if (!simple_step(w, re, in, &pos))
				return false;
			pc++;
			break;
		}
		if (re->code[pc].join)
			return holds(w, re, pc, pos);
	}
}

static bool holds(sw_regex_work *w, const sw_regex *re, uint32_t pc, size_t pos)
{
	const rx_insn *in = &re->code[pc];
	if (!in->join)
		return holds_from(w, re, pc, pos);
	if (has_bit(w, in->memo, pos))
		return false;
	if (has_bit(w, in->memo + 1, pos))
		return true;
	bool yes = holds_from(w, re, in->x, pos);
	(void)set_bit(w, in->memo + yes, pos);
	return yes;
}

/* ---- the pattern itself ---- */

/* The next end of a run that is worth a try, of those between low and pos. */
static size_t longest(sw_regex_work *w, const sw_regex *re, const frame *f)
{
	uint64_t *words = column_of(w, re->code[f->pc].memo);
	size_t end = words ? last_clear(words, f->low, f->pos) : SIZE_MAX;
	const rx_insn *next = &re->code[f->pc + 1];
	int want = next->op == RX_OP_CHAR     ? (int)next->x
	           : next->op == RX_OP_STRING ? (unsigned char)re->text[next->x]
	                                      : -1;
	if (want < 0 || end == SIZE_MAX)
		return end;
	/* Where the next byte is another than it must be, the rest fails: said once. */
	size_t stop = end < w->n ? end + 1 : w->n;
	const char *hit = f->low < stop ? memrchr(w->s + f->low, want, stop - f->low) : NULL;
	size_t found = hit ? (size_t)(hit - w->s) : SIZE_MAX;
	if (found != end)
		set_range(words, hit ? found + 1 : f->low, end);
	return found;
}

static size_t shortest(sw_regex_work *w, const sw_regex *re, const frame *f)
{
	const uint64_t *words = column_of(w, re->code[f->pc].memo);
	return words ? first_clear(words, f->pos, f->low) : SIZE_MAX;
}

/* Takes the latest way not tried yet; false: none is left above `base`. */
static bool back(sw_regex_work *w, const sw_regex *re, size_t base, uint32_t *pc, size_t *pos)
{
	while (w->n_frames > base && !w->no_memory) {
		frame *f = &w->frames[w->n_frames - 1];
		w->steps++;
		if (f->kind == FRAME_SPAN) {
			w->spans[f->pc] = f->pos;
			w->n_frames--;
			continue;
		}
		*pc = f->pc;
		*pos = f->pos;
		if (f->kind == FRAME_BRANCH) {
			w->n_frames--;
			return true;
		}
		size_t end = f->kind == FRAME_RUN ? longest(w, re, f) : shortest(w, re, f);
		if (end == SIZE_MAX || end == f->low)
			w->n_frames--;
		else
			f->pos = f->kind == FRAME_RUN ? end - 1 : end + 1;
		if (end == SIZE_MAX)
			continue;
		*pos = end;
		return true;
	}
	return false;
}

static bool start_run(sw_regex_work *w, const sw_regex *re, uint32_t pc, size_t *pos)
{
	const rx_insn *in = &re->code[pc];
	size_t end = run_end(w, re, in, *pos), low = *pos + in->min;
	if (end < low)
		return false;
	if (in->mode == RX_LAZY && end > low)
		push(w, (frame){FRAME_RUN_LAZY, pc + 1, low + 1, end});
	if (in->mode == RX_GREEDY && end > low)
		push(w, (frame){FRAME_RUN, pc + 1, end - 1, low});
	*pos = in->mode == RX_LAZY ? low : end;
	return true;
}

/* Whether the program matches from pc on at pos; spans are set where it does. */
static bool run_from(sw_regex_work *w, const sw_regex *re, uint32_t pc, size_t pos)
{
	size_t base = w->n_frames;
	bool yes = false;
	for (;; w->steps++) {
		const rx_insn *in = &re->code[pc];
		bool ok = true;
		switch (in->op) {
		case RX_OP_CHAR: /* as in simple_step(), which would be a second switch */
			ok = pos < w->n && (unsigned char)w->s[pos] == in->x;
			pos++;
			pc++;
			break;
		case RX_OP_IN:
			ok = pos < w->n && rx_in(&re->sets[in->set], (unsigned char)w->s[pos]);
			pos++;
			pc++;
			break;
		case RX_OP_MATCH:
			yes = !(re->flags & SW_REGEX_WHOLE) || pos == w->n;
			if (yes)
				goto done;
			ok = false;
			break;
		case RX_OP_JUMP:
			ok = !in->join || !set_bit(w, in->memo, pos);
			pc = in->x;
			break;
		case RX_OP_SPLIT: {
			bool skip = cannot_begin(w, re, in, pos);
			if (!skip)
				push(w, (frame){FRAME_BRANCH, in->mode == RX_LAZY ? in->x : in->y,
				                pos, 0});
			pc = skip || in->mode == RX_LAZY ? in->y : in->x;
			break;
		}
		case RX_OP_RUN:
			ok = start_run(w, re, pc++, &pos);
			break;
		case RX_OP_SAVE:
			push(w, (frame){FRAME_SPAN, in->x, w->spans[in->x], 0});
			w->spans[in->x] = pos;
			pc++;
			break;
		case RX_OP_LOOK:
			ok = look(w, re, pc, pos);
			pc = in->x;
			break;
		default:
			ok = simple_step(w, re, in, &pos);
			pc++;
			break;
		}
		if (w->no_memory || (!ok && !back(w, re, base, &pc, &pos)))
			break;
	}
done:
	w->n_frames = base;
	return yes;
}

/* ---- where it may begin ---- */

/* The string at or after `from`, or SIZE_MAX. memmem() costs more to set up than most lines have.
 */
static size_t next_needle(sw_regex_work *w, const sw_regex *re, const rx_needle *needle,
                          size_t from)
{
	const char *text = re->text + needle->at;
	for (size_t at = from + needle->rare; at < w->n; at++) {
		const char *hit = memchr(w->s + at, text[needle->rare], w->n - at);
		w->steps++;
		if (!hit)
			return SIZE_MAX;
		at = (size_t)(hit - w->s);
		if (at - needle->rare + needle->len > w->n)
			return SIZE_MAX;
		if (memcmp(hit - needle->rare, text, needle->len) == 0)
			return at - needle->rare;
	}
	return SIZE_MAX;
}

/* Whether one of the strings is there of which every match holds one. */
static bool has_needle(sw_regex_work *w, const sw_regex *re)
{
	for (uint32_t i = 0; i < re->n_needles; i++)
		if (next_needle(w, re, &re->needles[i], 0) != SIZE_MAX)
			return true;
	return re->n_needles == 0;
}

/* Finds where the anchor stands and everything after it fits; shared by all patterns that go on
 * alike. */
static const anchor *anchor_of(sw_regex_work *w, const sw_regex *re)
{
	anchor *a = &w->anchors[(re->anchor_hash ^ re->anchor_hash >> 32) % ANCHORS];
	if (a->line == w->line && a->hash == re->anchor_hash && a->s == w->s && a->len == w->n &&
	    a->re->anchor_hash_2 == re->anchor_hash_2)
		return a;
	*a = (anchor){.line = w->line, .hash = re->anchor_hash, .s = w->s, .len = w->n, .re = re};
	for (size_t at = 0; (at = next_needle(w, re, &re->anchor, at)) != SIZE_MAX; at++) {
		if (run_from(w, re, re->anchor_next, at + re->anchor.len)) {
			forget(w);
			if (a->n == ANCHOR_HITS) {
				a->many = true;
				break;
			}
			a->at[a->n++] = at;
		}
	}
	return a;
}

static bool head_fits(const sw_regex_work *w, const sw_regex *re, size_t at)
{
	return at >= re->head_min &&
	       (re->head_any || (at > 0 && rx_in(&re->head_last, (unsigned char)w->s[at - 1])));
}

/* The bytes between which a match must begin; false: nowhere. */
static bool narrow(sw_regex_work *w, const sw_regex *re, size_t *low, size_t *high)
{
	const anchor *a = anchor_of(w, re);
	size_t first = SIZE_MAX, last = 0;
	for (uint32_t i = 0; i < a->n; i++) {
		if (!a->many && !head_fits(w, re, a->at[i]))
			continue;
		if (first == SIZE_MAX)
			first = a->at[i];
		last = a->at[i];
	}
	if (first == SIZE_MAX)
		return false;
	if (re->head_max != RX_INF && first > re->head_max)
		*low = first - re->head_max;
	if (!a->many)
		*high = last - re->head_min;
	return true;
}

/* Whether a match may begin at byte 0. */
static bool begins(const sw_regex *re, const char *folded, size_t n)
{
	return re->start_any || (n && rx_in(&re->start, (unsigned char)folded[0]));
}

int sw_regex_match(const sw_regex *re, sw_regex_work *w, const char *folded, size_t n,
                   sw_regex_spans *spans)
{
	w->s = folded;
	w->n = n;
	w->no_memory = false;
	w->n_frames = 0;
	if (n < re->min_length ||
	    (re->flags & (SW_REGEX_ANCHORED | SW_REGEX_WHOLE) && !begins(re, folded, n)))
		return 0;
	if (!grow((void **)&w->columns, &w->n_columns, re->n_memos + 1, sizeof(column),
	          &w->no_memory) ||
	    !grow((void **)&w->runs, &w->n_runs, re->n_runs + 1, sizeof(run), &w->no_memory))
		return -1;
	forget(w);
	size_t low = 0, high = n - re->min_length;
	if (re->flags & (SW_REGEX_ANCHORED | SW_REGEX_WHOLE))
		high = 0;
	else if (!has_needle(w, re) || (re->has_anchor && !narrow(w, re, &low, &high)))
		return w->no_memory ? -1 : 0;
	if (w->no_memory)
		return -1;
	if (high > n - re->min_length)
		high = n - re->min_length;
	/* Going back undoes what was set, so that once is enough. */
	for (int i = 0; i < 2 * SW_REGEX_GROUPS; i++)
		w->spans[i] = SIZE_MAX;
	for (size_t at = low; at <= high; at++) {
		if (at == 0 && !begins(re, folded, n))
			continue;
		if (at > 0 && !re->first_any) {
			size_t from = at;
			while (at <= high && at < n &&
			       !rx_in(&re->first, (unsigned char)folded[at]))
				at++;
			w->steps += at - from;
			if (at > high || at == n)
				break;
		}
		bool yes = run_from(w, re, 0, at);
		if (w->no_memory)
			return -1;
		if (!yes)
			continue;
		if (spans)
			memcpy(spans->at, w->spans, sizeof(spans->at));
		return 1;
	}
	return 0;
}
