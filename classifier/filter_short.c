/*
 * Short literals (EROFS, EPERM, Killed): four bytes of each, looked for at every
 * byte. Up to eight buckets share a byte of bits; 32 positions are tested at once by
 * looking up the two halves of each byte in tables of sixteen.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW 4
#define BUCKETS 8

int sw_shorts_build(sw_short_table *t, const sw_literal *literals, uint32_t n)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < n; i++)
		count += literals[i].len < SW_LONG_MIN;
	if (!count)
		return 0;
	t->literals = calloc(count, sizeof(*t->literals));
	if (!t->literals)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		if (literals[i].len >= SW_LONG_MIN)
			continue;
		unsigned char bit = (unsigned char)(1u << (t->n_literals % BUCKETS));
		for (int k = 0; k < WINDOW; k++) {
			unsigned char c =
			    (unsigned char)literals[i].text[literals[i].place + (uint32_t)k];
			/* Both cases of a letter; what OR 0x20 adds besides is found out by the
			 * comparison. */
			for (int v = 0; v < 256; v++) {
				if (sw_fold((unsigned char)v) != c)
					continue;
				t->byte[k][v] |= bit;
				t->lo[k][v & 15] |= bit;
				t->hi[k][v >> 4] |= bit;
			}
		}
		t->literals[t->n_literals++] = (sw_gram){.text = literals[i].text,
		                                         .literal = i,
		                                         .len = (uint16_t)literals[i].len,
		                                         .offset = (uint16_t)literals[i].place};
	}
	return 0;
}

void sw_shorts_free(sw_short_table *t)
{
	free(t->literals);
	memset(t, 0, sizeof(*t));
}

static bool stands(const sw_short_table *t, const char *p, size_t n, size_t at)
{
	const unsigned char *u = (const unsigned char *)p + at;
	if (!(t->byte[0][u[0]] & t->byte[1][u[1]] & t->byte[2][u[2]] & t->byte[3][u[3]]))
		return false;
	for (uint32_t i = 0; i < t->n_literals; i++)
		if (sw_gram_stands(&t->literals[i], p, n, at))
			return true;
	return false;
}

size_t sw_shorts_next_plain(const sw_short_table *t, const char *p, size_t n, size_t from)
{
	for (size_t i = from; i + WINDOW <= n; i++)
		if (stands(t, p, n, i))
			return i;
	return n;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define SW_AVX2 __attribute__((target("avx2")))

SW_AVX2 static inline __m256i table16(const unsigned char *p)
{
	return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p));
}

/* Buckets for which the byte can be the k-th, 32 bytes at once. */
SW_AVX2 static inline __m256i look_up(__m256i lo, __m256i hi, const char *p)
{
	const __m256i nibble = _mm256_set1_epi8(15);
	__m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
	__m256i l = _mm256_shuffle_epi8(lo, _mm256_and_si256(x, nibble));
	__m256i h = _mm256_shuffle_epi8(hi, _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble));
	return _mm256_and_si256(l, h);
}

SW_AVX2 static size_t next_avx2(const sw_short_table *t, const char *p, size_t n, size_t from)
{
	__m256i lo0 = table16(t->lo[0]), lo1 = table16(t->lo[1]), lo2 = table16(t->lo[2]),
	        lo3 = table16(t->lo[3]);
	__m256i hi0 = table16(t->hi[0]), hi1 = table16(t->hi[1]), hi2 = table16(t->hi[2]),
	        hi3 = table16(t->hi[3]);
	size_t i = from;
	for (; i + 32 + WINDOW <= n; i += 32) {
		__m256i a =
		    _mm256_and_si256(look_up(lo0, hi0, p + i), look_up(lo1, hi1, p + i + 1));
		__m256i b =
		    _mm256_and_si256(look_up(lo2, hi2, p + i + 2), look_up(lo3, hi3, p + i + 3));
		__m256i m = _mm256_and_si256(a, b);
		unsigned none =
		    (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(m, _mm256_setzero_si256()));
		for (unsigned some = ~none; some; some &= some - 1) {
			size_t at = i + (size_t)__builtin_ctz(some);
			if (stands(t, p, n, at))
				return at;
		}
	}
	return sw_shorts_next_plain(t, p, n, i);
}

size_t sw_shorts_next(const sw_short_table *t, const char *p, size_t n, size_t from)
{
	return __builtin_cpu_supports("avx2") ? next_avx2(t, p, n, from)
	                                      : sw_shorts_next_plain(t, p, n, from);
}
#else
size_t sw_shorts_next(const sw_short_table *t, const char *p, size_t n, size_t from)
{
	return sw_shorts_next_plain(t, p, n, from);
}
#endif
