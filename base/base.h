/*
 * base.h - what every part above the classifier shares: growing buffers with a
 * stated maximum, files, time words, identifiers, escaping for terminals, JSON.
 *
 * Ownership: char * results are malloc()ed and freed by the caller unless a
 * comment says borrowed. Thread rules: no globals; every function is reentrant.
 * Errors: 0 or a negative sw_code, details in sw_error (may be NULL).
 */
#ifndef SW_BASE_H
#define SW_BASE_H

#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "sandwitness.h"

/* ---- growing buffer: `max` bytes at most (SW_ETOOBIG beyond), sticky error ---- */
typedef struct sw_buf {
	char *ptr; /* always NUL-terminated once anything was added */
	size_t len, cap, max;
	int error; /* first error; later adds do nothing */
} sw_buf;
void sw_buf_init(sw_buf *b, size_t max);
void sw_buf_free(sw_buf *b);
int sw_buf_add(sw_buf *b, const void *p, size_t n);
int sw_buf_adds(sw_buf *b, const char *z);
int sw_buf_addf(sw_buf *b, const char *fmt, ...) SW_PRINTF(2, 3);
char *sw_buf_take(sw_buf *b); /* gives the string away; NULL on a sticky error */

/* ---- files ---- */
/* Whole file ("-": stdin) of at most max bytes, and a NUL behind them that *n does not count.
 * SW_ENOTFOUND, SW_EIO, SW_ETOOBIG. */
int sw_read_file(const char *path, size_t max, char **out, size_t *n, sw_error *err);
/* The same for a file that somebody hostile may have put there: never a link, a FIFO or a device
 * (SW_EIO), and never a wait. Files of /proc are plain files. */
int sw_read_plain_file(const char *path, size_t max, char **out, size_t *n, sw_error *err);
int sw_write_all(int fd, const void *p, size_t n); /* retries EINTR and short writes; SW_EIO */
/* For main(): past RLIMIT_FSIZE a write fails with EFBIG; by default SIGXFSZ ends the process
 * without a word. Programs that are started later meet the default. */
void sw_survive_file_limit(void);
int sw_mkdirs(const char *path, mode_t mode, sw_error *err); /* like mkdir -p */
/* $XDG_STATE_HOME, $XDG_CONFIG_HOME or $XDG_RUNTIME_DIR with their fallbacks + "/sandwitness/" +
 * leaf */
char *sw_xdg_path(const char *variable, const char *leaf);

/* ---- waiting ---- */
struct pollfd;
/*
 * poll(2) with a wait in ns (negative: for ever) that still works where the limit of open files
 * has been lowered below n. Then POLLHUP and POLLERR show as POLLIN or POLLOUT, and a descriptor
 * of 65536 or more counts as ready every 2 ms: what is read should not block. How many are ready,
 * 0 when the time is over, -1 with errno (EINTR).
 */
int sw_poll(struct pollfd *p, size_t n, int64_t wait_ns);

/* ---- time ---- */
int64_t sw_now_ns(void); /* wall clock, ns since 1970 UTC */
int64_t sw_monotonic_ns(void);
void sw_time_format(int64_t ns, char out[40]); /* RFC 3339 UTC with ms: 2026-01-02T03:04:05.678Z */
/* now, recent, today, yesterday, this-week, week-ago, 30s 15m 24h 7d 2w, RFC 3339, YYYY-MM-DD.
 * `now` is given so that tests can fix it. SW_EINVAL lists what is understood. */
int sw_time_parse(const char *word, int64_t now_ns, int64_t *out_ns, sw_error *err);
/* "30s", "5m", "1h", "250ms" -> ns */
int sw_duration_parse(const char *word, int64_t *out_ns, sw_error *err);

/* ---- identifiers and encodings ---- */
void sw_uuid7(char out[37]);
char *sw_base64(const void *p, size_t n);
int sw_base64_decode(const char *z, size_t n, char **out, size_t *out_n); /* SW_EINVAL */
bool sw_utf8_valid(const void *p, size_t n);

/* ---- text for people ---- */
/* Captured bytes made safe for a terminal: control, escape, bidi and invalid bytes as \xNN or
 * \u{N}. */
char *sw_escape_tty(const void *p, size_t n);
bool sw_colour_wanted(int fd); /* a terminal, NO_COLOR unset, TERM not dumb */
/* "sandwitness: WHERE: WHAT: WHY" + "  fix: ..." on `to` */
void sw_error_print(FILE *to, const sw_error *e);

/* ---- JSON (jansson; key order is insertion order) ---- */
/* A JSON string of captured bytes; invalid UTF-8 becomes U+FFFD. */
json_t *sw_json_text(sw_str s);
/* Null for NULL. */
json_t *sw_json_z(const char *z);
/* Compact, one line, insertion order. NULL: out of memory, or j is NULL. */
char *sw_json_dump(const json_t *j);
/* With jansson's flags. json_dumps() itself is not for us: see sw_json_whole_or_none(). */
char *sw_json_dump_as(const json_t *j, size_t flags);
/*
 * For a program's main(), before any JSON: an allocation that fails while an object is built would
 * leave a member out without a word; from here on sw_json_dump() gives NULL then (the next dump of
 * the thread). Sets jansson's allocation functions, which are the whole process's.
 */
void sw_json_whole_or_none(void);
/* Whether something was left out in this thread since this was last called; what counts from now.
 */
bool sw_json_lacks(bool again);
/*
 * Whether memory failed this thread in a sw_buf, an escape or (after the above) JSON: a program
 * that prints such asks before it says that all went well. Sticky; sw_text_lacks() is how it is
 * set.
 */
bool sw_text_lacked(void);
void sw_text_lacks(void);
/* json_loadb(), but whole or, with *no_memory, NULL. e may be NULL. Depth is not limited: for what
 * a program of ours has written. */
json_t *sw_json_load(const char *p, size_t n, size_t flags, json_error_t *e, bool *no_memory);
/* Parses with depth and size limits; SW_EINVAL with line:column. Duplicate keys refused. */
json_t *sw_json_parse(const char *p, size_t n, sw_error *err);
/* DESIGN's output object of a result; id may be NULL. Ownership passes to the caller. */
json_t *sw_result_json(const sw_result *r, const char *id);

#endif
