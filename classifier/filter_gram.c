/*
 * Grams: where literals of seven bytes and more may stand.
 *
 * Each literal contributes four consecutive 4-byte grams, taken where its text is
 * rarest, so that probing every fourth position cannot miss it. Grams are compared
 * folded (OR 0x20) through a bit map that stays in the L1 cache; a set bit leads to
 * the grams of its bucket.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define GRAM 4
#define STRIDE 4
#define MAP_BITS SW_GRAM_MAP_BITS

static inline uint32_t load32(const char *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t hash_gram(uint32_t folded)
{
	return (folded * SW_GRAM_FACTOR) >> (32 - MAP_BITS);
}

static void add(sw_gram_table *t, const sw_literal *l, uint32_t index)
{
	for (uint32_t k = 0; k < STRIDE; k++) {
		uint32_t g = load32(l->text + l->place + k) | SW_GRAM_FOLD, h = hash_gram(g);
		uint32_t bucket = sw_gram_bucket(g);
		t->bitmap[h / 32] |= 1u << (h % 32);
		t->grams[++t->n_grams] = (sw_gram){.gram = g,
		                                   .next = t->buckets[bucket],
		                                   .text = l->text,
		                                   .literal = index,
		                                   .len = (uint16_t)l->len,
		                                   .offset = (uint16_t)(l->place + k)};
		t->buckets[bucket] = t->n_grams;
	}
}

int sw_grams_build(sw_gram_table *t, const sw_literal *literals, uint32_t n)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < n; i++)
		count += literals[i].len >= SW_LONG_MIN;
	if (!count)
		return 0;
	t->bitmap = calloc((1u << MAP_BITS) / 32, sizeof(uint32_t));
	t->buckets = calloc(1u << SW_GRAM_BUCKET_BITS, sizeof(uint32_t));
	t->grams = calloc((size_t)count * STRIDE + 1, sizeof(sw_gram));
	if (!t->bitmap || !t->buckets || !t->grams)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (literals[i].len >= SW_LONG_MIN)
			add(t, &literals[i], i);
	return 0;
}

void sw_grams_free(sw_gram_table *t)
{
	free(t->bitmap);
	free(t->buckets);
	free(t->grams);
	memset(t, 0, sizeof(*t));
}

static inline bool probe(const uint32_t *bitmap, const char *p)
{
	uint32_t h = hash_gram(load32(p) | SW_GRAM_FOLD);
	return bitmap[h / 32] >> (h % 32) & 1;
}

/* After a bit of the map: does a literal stand here? */
static bool stands(const sw_gram_table *t, const char *p, size_t n, size_t at)
{
	uint32_t g = load32(p + at) | SW_GRAM_FOLD;
	for (uint32_t e = t->buckets[sw_gram_bucket(g)]; e; e = t->grams[e].next)
		if (t->grams[e].gram == g && sw_gram_stands(&t->grams[e], p, n, at))
			return true;
	return false;
}

size_t sw_grams_next_plain(const sw_gram_table *t, const char *p, size_t n, size_t from)
{
	const uint32_t *bitmap = t->bitmap;
	size_t i = (from + STRIDE - 1) / STRIDE * STRIDE;
	for (; i + 3 * STRIDE + GRAM <= n; i += 4 * STRIDE) {
		bool a = probe(bitmap, p + i), b = probe(bitmap, p + i + STRIDE);
		bool c = probe(bitmap, p + i + 2 * STRIDE), d = probe(bitmap, p + i + 3 * STRIDE);
		if (!(a | b | c | d))
			continue;
		for (size_t k = 0; k < 4; k++)
			if (probe(bitmap, p + i + k * STRIDE) && stands(t, p, n, i + k * STRIDE))
				return i + k * STRIDE;
	}
	for (; i + GRAM <= n; i += STRIDE)
		if (probe(bitmap, p + i) && stands(t, p, n, i))
			return i;
	return n;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define SW_AVX2 __attribute__((target("avx2")))

/* Bit set where the gram in that 32-bit lane is in the map. */
SW_AVX2 static inline unsigned probe8(const int *bitmap, const char *p)
{
	__m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
	x = _mm256_or_si256(x, _mm256_set1_epi32((int)SW_GRAM_FOLD));
	__m256i h = _mm256_srli_epi32(_mm256_mullo_epi32(x, _mm256_set1_epi32((int)SW_GRAM_FACTOR)),
	                              32 - MAP_BITS);
	__m256i words = _mm256_i32gather_epi32(bitmap, _mm256_srli_epi32(h, 5), 4);
	/* The bit to the sign: shift left by 31 - h % 32, which is ~h & 31. */
	__m256i shift = _mm256_andnot_si256(h, _mm256_set1_epi32(31));
	return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_sllv_epi32(words, shift)));
}

SW_AVX2 static size_t next_avx2(const sw_gram_table *t, const char *p, size_t n, size_t from)
{
	const int *bitmap = (const int *)(const void *)t->bitmap;
	size_t i = (from + 3) / STRIDE * STRIDE;
	for (; i + 64 <= n; i += 64) {
		unsigned m = probe8(bitmap, p + i) | probe8(bitmap, p + i + 32) << 8;
		for (; m; m &= m - 1) {
			size_t at = i + (size_t)__builtin_ctz(m) * STRIDE;
			if (stands(t, p, n, at))
				return at;
		}
	}
	return sw_grams_next_plain(t, p, n, i);
}

size_t sw_grams_next(const sw_gram_table *t, const char *p, size_t n, size_t from)
{
	/* A processor's features are no state of ours: the compiler's run-time keeps them. */
	return __builtin_cpu_supports("avx2") ? next_avx2(t, p, n, from)
	                                      : sw_grams_next_plain(t, p, n, from);
}
#else
size_t sw_grams_next(const sw_gram_table *t, const char *p, size_t n, size_t from)
{
	return sw_grams_next_plain(t, p, n, from);
}
#endif
