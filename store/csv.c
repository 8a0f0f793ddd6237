/*
 * csv.c - one text as a cell of CSV (RFC 4180) that no spreadsheet runs.
 *
 * A spreadsheet takes a cell for a formula by its first character, some after blanks,
 * and where it separates cells by semicolons or tabs it finds cells that nobody wrote.
 */
#include <string.h>

#include "base.h"
#include "store.h"

static bool separates(char c)
{
	return c == ';' || c == '\t' || c == '|' || c == '\r' || c == '\n';
}

/* The signs, and the same in full width. */
static bool begins_formula(const char *p, size_t n)
{
	static const char *const wide[] = {"\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d",
	                                   "\xef\xbc\xa0"};
	if (n && strchr("=+-@", *p) && *p)
		return true;
	for (size_t i = 0; n >= 3 && i < sizeof wide / sizeof *wide; i++)
		if (memcmp(p, wide[i], 3) == 0)
			return true;
	return false;
}

void sw_csv_text(sw_buf *b, const char *p, size_t n)
{
	bool first = true, quote = false;
	for (size_t i = 0; i < n && !quote; i++)
		quote = separates(p[i]) || p[i] == ',' || p[i] == '"';
	/* blanks before it, as many as there are, do not make it harmless */
	size_t at = 0;
	while (at < n && (p[at] == ' ' || separates(p[at])))
		at++;
	quote |= begins_formula(p + at, n - at) || (n && (*p == ' ' || p[n - 1] == ' '));
	if (quote)
		sw_buf_adds(b, "\"");
	for (size_t i = 0; i < n; i++) {
		if (first && begins_formula(p + i, n - i))
			sw_buf_adds(b, "'");
		first = separates(p[i]) || (first && p[i] == ' ');
		if (p[i] == '"')
			sw_buf_adds(b, "\"\"");
		else if (p[i] == 0)
			sw_buf_adds(b, "\xef\xbf\xbd"); /* a text ends at it elsewhere */
		else
			sw_buf_add(b, p + i, 1);
	}
	if (quote)
		sw_buf_adds(b, "\"");
}
