/*
 * The literal filter: finds in one pass over the raw bytes where any of a pack's
 * literals may stand. Long and short literals have a table each; this file owns the
 * literals, the tables are in filter_gram.c and filter_short.c.
 */
#include "core.h"
#include "gram_rank.h"

#include <stdlib.h>
#include <string.h>

#define GRAM 4
#define STRIDE 4

/* How often the bucket of this gram occurs in ordinary logs; see scripts/gram-rank. */
static unsigned rank_of(const char *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	uint32_t h = ((v | 0x20202020u) * 0x9E3779B1u) >> 16;
	unsigned char c = sw_gram_rank[h / 2];
	return h % 2 ? c >> 4 : c & 15;
}

/* Offset at which `count` consecutive grams are rarest; hits: how often they occur. */
static uint32_t rarest(const char *text, uint32_t len, uint32_t count, uint32_t *hits)
{
	uint32_t best = 0, best_hits = ~0u;
	for (uint32_t at = 0; at + count - 1 + GRAM <= len; at++) {
		/* Ranks are logarithms: what counts is the sum of the frequencies. */
		uint32_t n = 0;
		for (uint32_t k = 0; k < count; k++)
			n += (1u << rank_of(text + at + k)) - 1;
		if (n < best_hits) {
			best_hits = n;
			best = at;
		}
	}
	*hits = best_hits;
	return best;
}

static uint32_t grams_wanted(uint32_t len)
{
	return len >= SW_LONG_MIN ? STRIDE : 1;
}

uint32_t sw_literal_place(const char *text, uint32_t len)
{
	uint32_t hits;
	return rarest(text, len, grams_wanted(len), &hits);
}

uint32_t sw_gram_hits(const char *p)
{
	return (uint32_t)((uint64_t)((1u << rank_of(p)) - 1) * (1u << 20) / SW_GRAM_RANK_BYTES);
}

uint32_t sw_literal_cost(const char *text, uint32_t len)
{
	uint32_t hits;
	rarest(text, len, grams_wanted(len), &hits);
	return (uint32_t)((uint64_t)hits * (1u << 20) / SW_GRAM_RANK_BYTES / grams_wanted(len));
}

static uint32_t hash_text(const char *p, uint32_t n)
{
	uint32_t h = 2166136261u;
	for (uint32_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)p[i]) * 16777619u;
	return h;
}

int sw_filter_build(sw_filter *f, const sw_literal_use *uses, uint32_t n)
{
	memset(f, 0, sizeof(*f));
	if (!n)
		return 0;
	uint32_t slots = 64;
	while (slots < 2 * n)
		slots *= 2;
	uint32_t *seen = calloc(slots, sizeof(*seen)); /* 1-based into literals */
	f->literals = calloc(n, sizeof(*f->literals));
	f->users = calloc((size_t)n + 1, sizeof(*f->users));
	if (!seen || !f->literals || !f->users) {
		free(seen);
		return SW_ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t h = hash_text(uses[i].text, uses[i].len) & (slots - 1);
		for (; seen[h]; h = (h + 1) & (slots - 1)) {
			const sw_literal *l = &f->literals[seen[h] - 1];
			if (l->len == uses[i].len && memcmp(l->text, uses[i].text, l->len) == 0)
				break;
		}
		if (!seen[h]) {
			uint32_t place = uses[i].place != SW_PLACE_UNKNOWN
			                     ? uses[i].place
			                     : sw_literal_place(uses[i].text, uses[i].len);
			f->literals[f->n_literals] =
			    (sw_literal){.text = uses[i].text, .len = uses[i].len, .place = place};
			seen[h] = ++f->n_literals;
		}
		sw_literal *l = &f->literals[seen[h] - 1];
		f->users[i + 1] = (sw_literal_user){.sig = uses[i].sig, .next = l->users};
		l->users = i + 1;
	}
	free(seen);
	int rc = sw_grams_build(&f->grams, f->literals, f->n_literals);
	return rc ? rc : sw_shorts_build(&f->shorts, f->literals, f->n_literals);
}

void sw_filter_free(sw_filter *f)
{
	sw_grams_free(&f->grams);
	sw_shorts_free(&f->shorts);
	free(f->literals);
	free(f->users);
	memset(f, 0, sizeof(*f));
}

size_t sw_filter_next(const sw_filter *f, int table, const char *p, size_t n, size_t from)
{
	if (table == SW_TABLE_GRAMS)
		return f->grams.n_grams ? sw_grams_next(&f->grams, p, n, from) : n;
	return f->shorts.n_literals ? sw_shorts_next(&f->shorts, p, n, from) : n;
}

bool sw_filter_report(const sw_filter *f, int table, const char *p, size_t n, size_t at,
                      sw_filter_fn fn, void *payload)
{
	if (table == SW_TABLE_SHORTS) {
		const sw_short_table *t = &f->shorts;
		for (uint32_t i = 0; i < t->n_literals; i++)
			if (sw_gram_stands(&t->literals[i], p, n, at) &&
			    !fn(payload, t->literals[i].literal, at - t->literals[i].offset))
				return false;
		return true;
	}
	const sw_gram_table *t = &f->grams;
	uint32_t g;
	memcpy(&g, p + at, sizeof(g));
	g |= SW_GRAM_FOLD;
	for (uint32_t e = t->buckets[sw_gram_bucket(g)]; e; e = t->grams[e].next)
		if (t->grams[e].gram == g && sw_gram_stands(&t->grams[e], p, n, at) &&
		    !fn(payload, t->grams[e].literal, at - t->grams[e].offset))
			return false;
	return true;
}

void sw_filter_all(const sw_filter *f, const char *p, size_t n, sw_filter_fn fn, void *payload)
{
	for (int t = 0; t < SW_TABLES; t++)
		for (size_t at = 0; (at = sw_filter_next(f, t, p, n, at)) < n; at++)
			if (!sw_filter_report(f, t, p, n, at, fn, payload))
				return;
}
