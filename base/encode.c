/* Identifiers, base64, UTF-8. */
#include "base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void sw_uuid7(char out[37])
{
	unsigned char b[16];
	size_t got = 0;
	while (got < sizeof(b)) {
		ssize_t n = getrandom(b + got, sizeof(b) - got, 0);
		if (n > 0)
			got += (size_t)n;
	}
	uint64_t ms = (uint64_t)(sw_now_ns() / 1000000);
	for (int i = 0; i < 6; i++)
		b[i] = (unsigned char)(ms >> (8 * (5 - i)));
	b[6] = (unsigned char)(0x70 | (b[6] & 0x0f));
	b[8] = (unsigned char)(0x80 | (b[8] & 0x3f));
	char *p = out;
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		static const char hex[] = "0123456789abcdef";
		*p++ = hex[b[i] >> 4];
		*p++ = hex[b[i] & 15];
	}
	*p = '\0';
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *sw_base64(const void *p, size_t n)
{
	const unsigned char *s = p;
	char *out = malloc((n + 2) / 3 * 4 + 1), *o = out;
	if (!out) {
		sw_text_lacks();
		return NULL;
	}
	for (size_t i = 0; i < n; i += 3) {
		unsigned v = (unsigned)s[i] << 16;
		if (i + 1 < n)
			v |= (unsigned)s[i + 1] << 8;
		if (i + 2 < n)
			v |= s[i + 2];
		*o++ = alphabet[v >> 18];
		*o++ = alphabet[v >> 12 & 63];
		*o++ = i + 1 < n ? alphabet[v >> 6 & 63] : '=';
		*o++ = i + 2 < n ? alphabet[v & 63] : '=';
	}
	*o = '\0';
	return out;
}

int sw_base64_decode(const char *z, size_t n, char **out, size_t *out_n)
{
	if (n % 4)
		return SW_EINVAL;
	char *p = malloc(n / 4 * 3 + 1), *o = p;
	if (!p)
		return SW_ENOMEM;
	for (size_t i = 0; i < n; i += 4) {
		unsigned v = 0;
		int pad = 0;
		for (int k = 0; k < 4; k++) {
			char c = z[i + (size_t)k];
			const char *at = c ? memchr(alphabet, c, 64) : NULL;
			if (c == '=' && i + 4 == n && k >= 2)
				pad++;
			else if (!at || pad)
				goto bad;
			v = v << 6 | (at ? (unsigned)(at - alphabet) : 0);
		}
		*o++ = (char)(v >> 16);
		if (pad < 2)
			*o++ = (char)(v >> 8);
		if (pad < 1)
			*o++ = (char)v;
	}
	*out = p;
	*out_n = (size_t)(o - p);
	return 0;
bad:
	free(p);
	return SW_EINVAL;
}

/* Length of the valid sequence at p, or 0. Overlong forms and surrogates are invalid. */
static size_t utf8_step(const unsigned char *p, size_t n)
{
	if (p[0] < 0x80)
		return 1;
	size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return len;
}

bool sw_utf8_valid(const void *p, size_t n)
{
	const unsigned char *s = p;
	for (size_t i = 0; i < n;) {
		size_t step = utf8_step(s + i, n - i);
		if (!step)
			return false;
		i += step;
	}
	return true;
}

json_t *sw_json_text(sw_str s)
{
	if (!s.len)
		return json_string("");
	if (sw_utf8_valid(s.ptr, s.len))
		return json_stringn(s.ptr, s.len);
	sw_buf b;
	sw_buf_init(&b, s.len * 3 + 1);
	const unsigned char *u = (const unsigned char *)s.ptr;
	for (size_t i = 0; i < s.len;) {
		size_t step = utf8_step(u + i, s.len - i);
		if (step)
			sw_buf_add(&b, u + i, step);
		else
			sw_buf_adds(&b, "\xef\xbf\xbd");
		i += step ? step : 1;
	}
	json_t *j = b.error ? NULL : json_stringn(b.ptr, b.len);
	sw_buf_free(&b);
	return j;
}

/* Characters that reorder or hide text on a terminal. */
static bool deceptive(uint32_t c)
{
	static const struct {
		uint32_t from, to;
	} ranges[] = {{0x80, 0x9f},     {0x00ad, 0x00ad}, {0x061c, 0x061c},
	              {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
	              {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i].from && c <= ranges[i].to)
			return true;
	return false;
}

char *sw_escape_tty(const void *p, size_t n)
{
	const unsigned char *s = p;
	sw_buf b;
	sw_buf_init(&b, n * 10 + 1);
	for (size_t i = 0; i < n;) {
		size_t step = utf8_step(s + i, n - i);
		uint32_t c = s[i];
		if (step == 2)
			c = (uint32_t)(s[i] & 0x1f) << 6 | (s[i + 1] & 0x3f);
		else if (step == 3)
			c = (uint32_t)(s[i] & 0x0f) << 12 | (uint32_t)(s[i + 1] & 0x3f) << 6 |
			    (s[i + 2] & 0x3f);
		else if (step == 4)
			c = (uint32_t)(s[i] & 0x07) << 18 | (uint32_t)(s[i + 1] & 0x3f) << 12 |
			    (uint32_t)(s[i + 2] & 0x3f) << 6 | (s[i + 3] & 0x3f);
		if (step == 0 || c < 0x20 || c == 0x7f)
			sw_buf_addf(&b, "\\x%02x", s[i]);
		else if (step > 1 && deceptive(c))
			sw_buf_addf(&b, "\\u{%x}", c);
		else
			sw_buf_add(&b, s + i, step);
		i += step ? step : 1;
	}
	return sw_buf_take(&b);
}
