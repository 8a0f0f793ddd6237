/* Segments: terminal escapes, case folding, blankness, line counting. */
#include "core.h"

#include <string.h>

#define ESC 0x1b
#define BEL 0x07

/* ECMA-48 5.4: parameter bytes, intermediate bytes, one final byte. */
static size_t csi_length(const unsigned char *p, size_t n)
{
	size_t i = 2;
	while (i < n && p[i] >= 0x30 && p[i] <= 0x3f)
		i++;
	while (i < n && p[i] >= 0x20 && p[i] <= 0x2f)
		i++;
	return i < n && p[i] >= 0x40 && p[i] <= 0x7e ? i + 1 : 1;
}

/* Control strings end at BEL or ST (ESC \) within the line. */
static size_t string_length(const unsigned char *p, size_t n)
{
	for (size_t i = 2; i < n; i++) {
		if (p[i] == BEL)
			return i + 1;
		if (p[i] == ESC && i + 1 < n && p[i + 1] == '\\')
			return i + 2;
	}
	return 1;
}

/* ECMA-35: ESC, intermediates, a final byte (`ESC ( B` of "reset" is one). */
static size_t nf_length(const unsigned char *p, size_t n)
{
	size_t i = 1;
	while (i < n && p[i] >= 0x20 && p[i] <= 0x2f)
		i++;
	return i < n && p[i] >= 0x30 && p[i] <= 0x7e ? i + 1 : 1;
}

size_t sw_escape_length(const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	if (n < 2)
		return 1;
	switch (p[1]) {
	case '[':
		return csi_length(p, n);
	case ']':
	case 'P':
	case 'X':
	case '^':
	case '_':
		return string_length(p, n);
	default:
		if (p[1] >= 0x20 && p[1] <= 0x2f)
			return nf_length(p, n);
		return p[1] >= 0x30 && p[1] <= 0x7e ? 2 : 1;
	}
}

static size_t segment_end(const char *p, size_t n)
{
	const char *lf = memchr(p, '\n', n);
	size_t len = lf ? (size_t)(lf - p) : n;
	const char *cr = memchr(p, '\r', len);
	return cr ? (size_t)(cr - p) : len;
}

/* The sequences that would cross the end of a segment are the control strings. */
static bool is_string(char c)
{
	return c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_';
}

size_t sw_strip_escapes(char *dst, const char *src, size_t n)
{
	size_t out = 0, i = 0, stringless = 0; /* no control string ends before `stringless` */
	while (i < n) {
		const char *esc = memchr(src + i, ESC, n - i);
		size_t run = esc ? (size_t)(esc - (src + i)) : n - i;
		memmove(dst + out, src + i, run);
		out += run;
		i += run;
		if (!esc)
			break;
		if (i + 1 == n || !is_string(src[i + 1])) {
			i += sw_escape_length(src + i, n - i);
			continue;
		}
		size_t end = i < stringless ? 0 : segment_end(src + i, n - i);
		size_t len = end ? sw_escape_length(src + i, end) : 1;
		/* An unterminated one is looked for once in a segment, not once for each ESC. */
		if (len == 1 && end)
			stringless = i + end;
		i += len;
	}
	return out;
}

bool sw_equal_folded(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)a[i] != sw_fold((unsigned char)b[i]))
			return false;
	return true;
}

bool sw_blank(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != ' ' && p[i] != '\t' && p[i] != '\v' && p[i] != '\f')
			return false;
	return true;
}

static inline __attribute__((always_inline)) uint64_t count_lf(const char *p, size_t n)
{
	uint64_t total = 0;
	while (n) {
		/* Byte counters overflow at 255: blocks keep the inner loop in bytes, which
		 * vectorises. */
		size_t block = n < 4096 ? n : 4096; /* 128 rounds of 32 */
		unsigned char lanes[32] = {0};
		size_t i = 0;
		for (; i + 32 <= block; i += 32)
			for (size_t k = 0; k < 32; k++)
				lanes[k] = (unsigned char)(lanes[k] + (p[i + k] == '\n'));
		for (size_t k = 0; k < 32; k++)
			total += lanes[k];
		for (; i < block; i++)
			total += p[i] == '\n';
		p += block;
		n -= block;
	}
	return total;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) static uint64_t count_lf_avx2(const char *p, size_t n)
{
	return count_lf(p, n);
}

uint64_t sw_count_lf(const char *p, size_t n)
{
	return __builtin_cpu_supports("avx2") ? count_lf_avx2(p, n) : count_lf(p, n);
}
#else
uint64_t sw_count_lf(const char *p, size_t n)
{
	return count_lf(p, n);
}
#endif
