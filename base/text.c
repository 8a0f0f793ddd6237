/* What people read, and JSON. */
#include "base.h"

#include <pthread.h>
#include <stdint.h>
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

/*
 * jansson's reader goes on, and may crash, where an allocation fails. So it gets a last piece of
 * ours instead: enough to come to its end, and what it has made is not used. Pieces of the reserve
 * are handed out one behind the other, and all are free again when the last one is.
 */
enum { RESERVE = 128 * 1024 };
static _Alignas(16) unsigned char reserve[RESERVE];
static size_t reserve_used, reserve_pieces;
static pthread_mutex_t reserve_lock = PTHREAD_MUTEX_INITIALIZER;

static void *json_alloc(size_t n)
{
	void *p = malloc(n);
	if (p)
		return p;
	sw_text_lacks();
	pthread_mutex_lock(&reserve_lock);
	size_t want = (n + 15) / 16 * 16;
	if (want >= n && want <= RESERVE - reserve_used) {
		p = reserve + reserve_used;
		reserve_used += want;
		reserve_pieces++;
	}
	pthread_mutex_unlock(&reserve_lock);
	return p;
}

static void json_free(void *p)
{
	if ((uintptr_t)p - (uintptr_t)reserve >= RESERVE) {
		free(p);
		return;
	}
	pthread_mutex_lock(&reserve_lock);
	if (--reserve_pieces == 0)
		reserve_used = 0;
	pthread_mutex_unlock(&reserve_lock);
}

void sw_json_whole_or_none(void)
{
	json_set_alloc_funcs(json_alloc, json_free);
}

char *sw_json_dump_as(const json_t *j, size_t flags)
{
	char *text = json_dumps(j, flags);
	json_malloc_t made;
	json_free_t freed;
	if (sw_json_lacks(false)) {
		/* it may be a piece of the reserve, which free() does not know */
		json_get_alloc_funcs(&made, &freed);
		freed(text);
		text = NULL;
	}
	return text;
}

char *sw_json_dump(const json_t *j)
{
	return sw_json_dump_as(j, JSON_COMPACT | JSON_ENCODE_ANY);
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

json_t *sw_json_load(const char *p, size_t n, size_t flags, json_error_t *e, bool *no_memory)
{
	bool lacked = sw_json_lacks(false);
	json_t *j = json_loadb(p, n, flags, e);
	/* jansson's reader goes on without the letters that it had no memory for */
	*no_memory = sw_json_lacks(lacked);
	if (*no_memory) {
		json_decref(j);
		j = NULL;
	}
	return j;
}

json_t *sw_json_parse(const char *p, size_t n, sw_error *err)
{
	if (json_depth(p, n) > JSON_DEPTH_MAX) {
		sw_error_set(err, SW_EINVAL, "JSON nested deeper than %d", JSON_DEPTH_MAX);
		sw_error_more(err, NULL, NULL, "send flat objects");
		return NULL;
	}
	json_error_t je;
	bool no_memory;
	json_t *j = sw_json_load(p, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &je, &no_memory);
	if (!j) {
		if (no_memory || json_error_code(&je) == json_error_out_of_memory || !je.text[0]) {
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
