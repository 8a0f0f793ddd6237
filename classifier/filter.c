/*
 * The literal filter: finds in one pass over the raw bytes where any of a pack's
 * literals may stand.
 *
 * Each literal contributes `stride` consecutive 4-byte grams taken where its text
 * is rarest, so that probing every stride-th position cannot miss it. Grams are
 * compared folded (OR 0x20) through a 2^16-bit map that stays in the L1 cache;
 * a set bit leads to the grams of that bucket and a comparison of the literal.
 * Literals shorter than 7 bytes have a table of their own with a smaller stride.
 */
#include "core.h"
#include "gram_rank.h"

#include <stdlib.h>
#include <string.h>

#define GRAM 4
#define MAP_BITS 17  /* 16 KiB: half of the usual L1 data cache */
#define RANK_BITS 16 /* of the rank table */
#define BUCKET_BITS 12
#define FOLD_MASK 0x20202020u
#define HASH_FACTOR 0x9E3779B1u
#define LONG_STRIDE 4

static inline uint32_t load32(const char *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t hash_gram(uint32_t folded)
{
	return (folded * HASH_FACTOR) >> (32 - MAP_BITS);
}

/* How often the bucket of this gram occurs in ordinary logs; see scripts/gram-rank. */
static unsigned rank_of(const char *p)
{
	uint32_t h = hash_gram(load32(p) | FOLD_MASK) >> (MAP_BITS - RANK_BITS);
	unsigned char c = (unsigned char)sw_gram_rank[h / 2];
	return h % 2 ? c >> 4 : c & 15;
}

/* Offset at which `stride` consecutive grams are rarest. */
static uint32_t rarest(const char *text, uint32_t len, uint32_t stride)
{
	uint32_t best = 0;
	unsigned best_rank = ~0u;
	for (uint32_t at = 0; at + stride - 1 + GRAM <= len; at++) {
		/* Ranks are logarithms: what counts is the sum of the frequencies. */
		unsigned rank = 0;
		for (uint32_t k = 0; k < stride; k++)
			rank += 1u << rank_of(text + at + k);
		if (rank < best_rank) {
			best_rank = rank;
			best = at;
		}
	}
	return best;
}

static uint32_t stride_for(uint32_t len)
{
	uint32_t s = len - (GRAM - 1);
	return s > LONG_STRIDE ? LONG_STRIDE : s;
}

uint32_t sw_literal_place(const char *text, uint32_t len)
{
	return rarest(text, len, stride_for(len));
}

uint32_t sw_literal_cost(const char *text, uint32_t len)
{
	/* Short literals are looked for at stride 1 or 2, so one gram is what counts. */
	uint32_t stride = len >= GRAM + LONG_STRIDE - 1 ? LONG_STRIDE : 1;
	uint32_t at = rarest(text, len, stride), hits = 0;
	for (uint32_t k = 0; k < stride; k++)
		hits += (1u << rank_of(text + at + k)) - 1;
	return (uint32_t)((uint64_t)hits * (1u << 20) / SW_GRAM_RANK_BYTES);
}

static void table_add(sw_gram_table *t, const sw_literal *l, uint32_t index)
{
	uint32_t at = l->place;
	for (uint32_t k = 0; k < t->stride; k++) {
		uint32_t g = load32(l->text + at + k) | FOLD_MASK, h = hash_gram(g);
		uint32_t bucket = h >> (MAP_BITS - BUCKET_BITS);
		t->bitmap[h / 32] |= 1u << (h % 32);
		sw_gram *e = &t->grams[++t->n_grams];
		*e = (sw_gram){.gram = g,
		               .literal = index,
		               .offset = (uint16_t)(at + k),
		               .next = t->buckets[bucket]};
		t->buckets[bucket] = t->n_grams;
	}
}

static int table_build(sw_gram_table *t, const sw_literal *literals, uint32_t n, bool is_short)
{
	uint32_t stride = LONG_STRIDE, count = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t s = stride_for(literals[i].len);
		if ((s < LONG_STRIDE) != is_short)
			continue;
		count++;
		stride = s < stride ? s : stride;
	}
	t->used = count > 0;
	if (!count)
		return 0;
	t->stride = stride == 3 ? 2 : stride; /* the vector loop knows 1, 2 and 4 */
	t->bitmap = calloc((1u << MAP_BITS) / 32, sizeof(uint32_t));
	t->buckets = calloc(1u << BUCKET_BITS, sizeof(uint32_t));
	t->grams = calloc((size_t)count * t->stride + 1, sizeof(sw_gram));
	if (!t->bitmap || !t->buckets || !t->grams)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if ((stride_for(literals[i].len) < LONG_STRIDE) == is_short)
			table_add(t, &literals[i], i);
	return 0;
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
	int rc = table_build(&f->tables[0], f->literals, f->n_literals, false);
	return rc ? rc : table_build(&f->tables[1], f->literals, f->n_literals, true);
}

void sw_filter_free(sw_filter *f)
{
	for (int i = 0; i < 2; i++) {
		free(f->tables[i].bitmap);
		free(f->tables[i].buckets);
		free(f->tables[i].grams);
	}
	free(f->literals);
	free(f->users);
	memset(f, 0, sizeof(*f));
}

static inline bool probe(const uint32_t *bitmap, const char *p)
{
	uint32_t h = hash_gram(load32(p) | FOLD_MASK);
	return bitmap[h / 32] >> (h % 32) & 1;
}

/* After a bit of the map: is it really one of the grams? */
static inline bool exact(const sw_gram_table *t, const char *p)
{
	uint32_t g = load32(p) | FOLD_MASK;
	for (uint32_t e = t->buckets[hash_gram(g) >> (MAP_BITS - BUCKET_BITS)]; e;
	     e = t->grams[e].next)
		if (t->grams[e].gram == g)
			return true;
	return false;
}

static size_t next_plain(const sw_gram_table *t, const char *p, size_t n, size_t from)
{
	const uint32_t *bitmap = t->bitmap;
	size_t stride = t->stride;
	size_t i = (from + stride - 1) / stride * stride;
	for (; i + 3 * stride + GRAM <= n; i += 4 * stride) {
		bool a = probe(bitmap, p + i), b = probe(bitmap, p + i + stride);
		bool c = probe(bitmap, p + i + 2 * stride), d = probe(bitmap, p + i + 3 * stride);
		if (!(a | b | c | d))
			continue;
		for (size_t k = 0; k < 4; k++)
			if (probe(bitmap, p + i + k * stride) && exact(t, p + i + k * stride))
				return i + k * stride;
	}
	for (; i + GRAM <= n; i += stride)
		if (probe(bitmap, p + i) && exact(t, p + i))
			return i;
	return n;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define SW_AVX2 __attribute__((target("avx2")))

/* Bit set where the gram in that 32-bit lane is in the map. */
SW_AVX2 static inline unsigned probe8(const int *bitmap, __m256i x)
{
	x = _mm256_or_si256(x, _mm256_set1_epi32((int)FOLD_MASK));
	__m256i h = _mm256_srli_epi32(_mm256_mullo_epi32(x, _mm256_set1_epi32((int)HASH_FACTOR)),
	                              32 - MAP_BITS);
	__m256i words = _mm256_i32gather_epi32(bitmap, _mm256_srli_epi32(h, 5), 4);
	/* The bit to the sign: shift left by 31 - h % 32, which is ~h & 31. */
	__m256i shift = _mm256_andnot_si256(h, _mm256_set1_epi32(31));
	return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_sllv_epi32(words, shift)));
}

SW_AVX2 static inline __m256i load256(const char *p)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* The first lane set in any of `n` masks, whose lanes lie 4 bytes apart, that is exact. */
static inline size_t first_exact(const sw_gram_table *t, const char *p, unsigned *masks, size_t n,
                                 size_t step)
{
	for (;;) {
		size_t best = SIZE_MAX, from = 0;
		for (size_t k = 0; k < n; k++) {
			size_t at =
			    masks[k] ? (size_t)__builtin_ctz(masks[k]) * 4 + k * step : SIZE_MAX;
			if (at < best) {
				best = at;
				from = k;
			}
		}
		if (best == SIZE_MAX || exact(t, p + best))
			return best;
		masks[from] &= masks[from] - 1;
	}
}

SW_AVX2 static size_t next_avx2_4(const sw_gram_table *t, const char *p, size_t n, size_t from)
{
	const int *bitmap = (const int *)(const void *)t->bitmap;
	size_t i = (from + 3) / 4 * 4;
	for (; i + 64 <= n; i += 64) {
		unsigned m = probe8(bitmap, load256(p + i)) | probe8(bitmap, load256(p + i + 32))
		                                                  << 8;
		for (; m; m &= m - 1) {
			size_t at = i + (size_t)__builtin_ctz(m) * 4;
			if (exact(t, p + at))
				return at;
		}
	}
	return next_plain(t, p, n, i);
}

SW_AVX2 static size_t next_avx2_2(const sw_gram_table *t, const char *p, size_t n, size_t from)
{
	const int *bitmap = (const int *)(const void *)t->bitmap;
	size_t i = (from + 1) / 2 * 2;
	for (; i + 40 <= n; i += 32) {
		unsigned m[2] = {probe8(bitmap, load256(p + i)),
		                 probe8(bitmap, load256(p + i + 2))};
		if (!(m[0] | m[1]))
			continue;
		size_t at = first_exact(t, p + i, m, 2, 2);
		if (at != SIZE_MAX)
			return i + at;
	}
	return next_plain(t, p, n, i);
}

SW_AVX2 static size_t next_avx2_1(const sw_gram_table *t, const char *p, size_t n, size_t from)
{
	const int *bitmap = (const int *)(const void *)t->bitmap;
	size_t i = from;
	for (; i + 40 <= n; i += 32) {
		unsigned m[4] = {probe8(bitmap, load256(p + i)), probe8(bitmap, load256(p + i + 1)),
		                 probe8(bitmap, load256(p + i + 2)),
		                 probe8(bitmap, load256(p + i + 3))};
		if (!(m[0] | m[1] | m[2] | m[3]))
			continue;
		size_t at = first_exact(t, p + i, m, 4, 1);
		if (at != SIZE_MAX)
			return i + at;
	}
	return next_plain(t, p, n, i);
}

size_t sw_filter_next(const sw_gram_table *t, const char *p, size_t n, size_t from)
{
	/* A processor's features are no state of ours: the compiler's run-time keeps them. */
	if (__builtin_cpu_supports("avx2")) {
		if (t->stride == 4)
			return next_avx2_4(t, p, n, from);
		return t->stride == 2 ? next_avx2_2(t, p, n, from) : next_avx2_1(t, p, n, from);
	}
	return next_plain(t, p, n, from);
}
#else
size_t sw_filter_next(const sw_gram_table *t, const char *p, size_t n, size_t from)
{
	return next_plain(t, p, n, from);
}
#endif

bool sw_filter_verify(const sw_filter *f, const sw_gram_table *t, const char *p, size_t n,
                      size_t at, sw_filter_fn fn, void *payload)
{
	uint32_t g = load32(p + at) | FOLD_MASK;
	for (uint32_t e = t->buckets[hash_gram(g) >> (MAP_BITS - BUCKET_BITS)]; e;
	     e = t->grams[e].next) {
		const sw_gram *gram = &t->grams[e];
		if (gram->gram != g || gram->offset > at)
			continue;
		const sw_literal *lit = &f->literals[gram->literal];
		size_t begin = at - gram->offset;
		if (lit->len > n - begin || !sw_equal_folded(lit->text, p + begin, lit->len))
			continue;
		if (!fn(payload, gram->literal, begin))
			return false;
	}
	return true;
}
