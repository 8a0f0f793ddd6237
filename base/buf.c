/* Growing buffers with a stated maximum and a sticky error. */
#include "base.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void sw_buf_init(sw_buf *b, size_t max)
{
	memset(b, 0, sizeof(*b));
	b->max = max;
}

void sw_buf_free(sw_buf *b)
{
	free(b->ptr);
	b->ptr = NULL;
	b->len = b->cap = 0;
}

static _Thread_local bool lacked, json_lacks;

void sw_text_lacks(void)
{
	lacked = json_lacks = true;
}

bool sw_json_lacks(bool again)
{
	bool before = json_lacks;
	json_lacks = again;
	return before;
}

bool sw_text_lacked(void)
{
	return lacked;
}

static int reserve(sw_buf *b, size_t more)
{
	if (b->error)
		return b->error;
	if (more > b->max || b->len > b->max - more)
		return b->error = SW_ETOOBIG;
	size_t need = b->len + more + 1;
	if (need <= b->cap)
		return 0;
	size_t cap = b->cap ? b->cap : 64;
	while (cap < need)
		cap *= 2;
	char *p = realloc(b->ptr, cap);
	if (!p) {
		sw_text_lacks();
		return b->error = SW_ENOMEM;
	}
	b->ptr = p;
	b->cap = cap;
	return 0;
}

int sw_buf_add(sw_buf *b, const void *p, size_t n)
{
	int rc = reserve(b, n);
	if (rc || !b->ptr)
		return rc;
	if (n)
		memcpy(b->ptr + b->len, p, n);
	b->len += n;
	b->ptr[b->len] = '\0';
	return 0;
}

int sw_buf_adds(sw_buf *b, const char *z)
{
	return sw_buf_add(b, z, strlen(z));
}

int sw_buf_addf(sw_buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return b->error = SW_EINVAL;
	int rc = reserve(b, (size_t)n);
	if (rc)
		return rc;
	va_start(ap, fmt);
	vsnprintf(b->ptr + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
	return 0;
}

char *sw_buf_take(sw_buf *b)
{
	if (!b->error && !b->ptr)
		sw_buf_add(b, "", 0);
	if (b->error) {
		sw_buf_free(b);
		return NULL;
	}
	char *p = b->ptr;
	b->ptr = NULL;
	b->len = b->cap = 0;
	return p;
}
