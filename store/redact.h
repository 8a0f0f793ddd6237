/*
 * redact.h - shared by the two halves of the redactor. Not public.
 */
#ifndef SW_REDACT_H
#define SW_REDACT_H

#include "store.h"
#include "base.h"

/* What a name says about the value that belongs to it. */
typedef enum {
	NAME_PLAIN,
	NAME_PASSWORD, /* always a secret */
	NAME_SECRET,   /* a secret unless it is a small number or a path */
	NAME_COOKIE
} rd_name;

/* "DB_PASSWORD", "--auth-token", "apiKey": judged by its words. */
rd_name rd_judge(const char *name, size_t n);
/* Whether a value of such a name is worth hiding ("$VAR", "", "/a/file" are not). */
bool rd_is_secret(rd_name kind, const char *value, size_t n);
int rd_mark(sw_buf *b, const char *kind); /* adds "[redacted:KIND]" */
int rd_text(sw_buf *out, const char *p, size_t n, bool whole_argument);

#endif
