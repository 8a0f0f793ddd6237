/* Errors and small value types of the public header. */
#include "sandwitness.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sw_error_set(sw_error *e, int code, const char *what_fmt, ...)
{
	if (!e)
		return code;
	memset(e, 0, sizeof(*e));
	e->code = code;
	va_list ap;
	va_start(ap, what_fmt);
	vsnprintf(e->what, sizeof(e->what), what_fmt, ap);
	va_end(ap);
	return code;
}

static void part(char *dst, size_t size, const char *src)
{
	if (src)
		snprintf(dst, size, "%s", src);
}

int sw_error_more(sw_error *e, const char *where, const char *why, const char *fix)
{
	if (!e)
		return -1;
	part(e->where, sizeof(e->where), where);
	part(e->why, sizeof(e->why), why);
	part(e->fix, sizeof(e->fix), fix);
	return e->code;
}

sw_str sw_str_of(const char *z)
{
	return (sw_str){z, z ? strlen(z) : 0};
}

bool sw_str_eq(sw_str a, sw_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

sw_exit sw_exit_code(int64_t code)
{
	return (sw_exit){.code = code, .has_code = true};
}
