/* What people read, and JSON. */
#include "base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool sw_colour_wanted(int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(fd) && !(no && no[0]) && term && strcmp(term, "dumb") != 0;
}

static void print_part(FILE *to, const char *lead, const char *z)
{
	if (!z[0])
		return;
	char *safe = sw_escape_tty(z, strlen(z));
	fputs(lead, to);
	if (safe)
		fputs(safe, to);
	else /* an error is told without memory too: that may be what it tells */
		for (const char *p = z; *p; p++)
			fputc(*p >= ' ' && *p <= '~' ? *p : '?', to);
	free(safe);
}

void sw_error_print(FILE *to, const sw_error *e)
{
	fputs("sandwitness", to);
	print_part(to, ": ", e->where);
	print_part(to, ": ", e->what[0] ? e->what : "failed");
	print_part(to, ": ", e->why);
	fputc('\n', to);
	if (e->fix[0]) {
		print_part(to, "  fix: ", e->fix);
		fputc('\n', to);
	}
}

json_t *sw_json_z(const char *z)
{
	return z ? sw_json_text(sw_str_of(z)) : json_null();
}

static void *json_alloc(size_t n)
{
	void *p = malloc(n);
	if (!p)
		sw_text_lacks();
	return p;
}

void sw_json_whole_or_none(void)
{
	json_set_alloc_funcs(json_alloc, free);
}

char *sw_json_dump(const json_t *j)
{
	char *text = json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);
	if (sw_json_lacks(false)) {
		free(text);
		text = NULL;
	}
	return text;
}

enum { JSON_DEPTH_MAX = 64 };

/* jansson recurses without a limit of ours, so nesting is counted before it parses. */
static int json_depth(const char *p, size_t n)
{
	int depth = 0, deepest = 0;
	bool in_string = false;
	for (size_t i = 0; i < n; i++) {
		if (in_string) {
			if (p[i] == '\\')
				i++;
			else if (p[i] == '"')
				in_string = false;
		} else if (p[i] == '"') {
			in_string = true;
		} else if (p[i] == '[' || p[i] == '{') {
			if (++depth > deepest)
				deepest = depth;
		} else if (p[i] == ']' || p[i] == '}') {
			depth--;
		}
	}
	return deepest;
}

json_t *sw_json_parse(const char *p, size_t n, sw_error *err)
{
	if (json_depth(p, n) > JSON_DEPTH_MAX) {
		sw_error_set(err, SW_EINVAL, "JSON nested deeper than %d", JSON_DEPTH_MAX);
		sw_error_more(err, NULL, NULL, "send flat objects");
		return NULL;
	}
	json_error_t je;
	bool lacked = sw_json_lacks(false);
	json_t *j = json_loadb(p, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &je);
	/* jansson's reader goes on without the letters that it had no memory for */
	bool lacks = sw_json_lacks(lacked);
	if (lacks) {
		json_decref(j);
		sw_error_set(err, SW_ENOMEM, "out of memory");
		return NULL;
	}
	if (!j) {
		if (json_error_code(&je) == json_error_out_of_memory || !je.text[0]) {
			sw_error_set(err, SW_ENOMEM, "out of memory");
			return NULL;
		}
		char where[64];
		snprintf(where, sizeof(where), "line %d, column %d", je.line, je.column);
		sw_error_set(err, SW_EINVAL, "not JSON: %s", je.text);
		sw_error_more(
		    err, where, NULL,
		    "one JSON value in UTF-8; bytes that are no UTF-8 go into output_b64");
	}
	return j;
}
