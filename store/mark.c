/*
 * mark.c - beside the key: which seal it made last, a file for each place of a trail (a
 * copy elsewhere is sealed for itself; what the trail says of itself does not count).
 *
 * Who can write the trail but has no key may take the seals out, rewrite what they
 * covered, and leave it to the owner's next seal to cover that. The key's side remembers:
 * where the trail no longer holds that seal, nothing is signed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "store_int.h"

static char *mark_path(const sw_store *s)
{
	uint8_t sum[32];
	char hex[17], *p = NULL, *place = realpath(s->path, NULL);
	if (!place)
		return NULL;
	st_sha256(sum, place, strlen(place));
	st_hex(hex, sum, 8);
	free(place);
	return asprintf(&p, "%s.%s.sealed", s->key_path, hex) < 0 ? NULL : p;
}

/* "SEQ:HASH". 0: there is none, or half of one (it is not flushed, and an older seal does as well);
 * negative: out of memory. */
static int read_mark(const char *path, uint64_t *seq, uint8_t hash[32])
{
	char *text = NULL;
	size_t n = 0;
	int code = st_regular(path, "", NULL);
	if (code == 0)
		code = sw_read_file(path, 200, &text, &n, NULL);
	if (code != 0)
		return code == SW_ENOMEM ? SW_ENOMEM : 0;
	const char *colon = memchr(text, ':', n);
	size_t digits = colon ? (size_t)(colon - text) : 0;
	bool good = colon && n == digits + 66 && text[n - 1] == '\n' &&
	            st_number(text, digits, seq) && st_unhex(colon + 1, 64, hash) == 0;
	free(text);
	return good;
}

int st_mark_check(sw_store *s, sw_error *err)
{
	uint64_t seq = 0;
	uint8_t hash[32];
	errno = 0;
	char *path = mark_path(s);
	int there = path ? read_mark(path, &seq, hash) : errno == ENOMEM ? SW_ENOMEM : 0;
	if (there != 1) {
		free(path);
		return there ? sw_error_set(err, SW_ENOMEM, "out of memory") : 0;
	}
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(s->db, "SELECT hash FROM seal WHERE seq=?1", -1, &q, NULL);
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(q, 1, (int64_t)seq);
		rc = sqlite3_step(q);
	}
	bool same = rc == SQLITE_ROW && sqlite3_column_bytes(q, 0) == 32 &&
	            memcmp(sqlite3_column_blob(q, 0), hash, 32) == 0;
	sqlite3_finalize(q);
	int code = rc == SQLITE_ROW || rc == SQLITE_DONE
	               ? 0
	               : st_sql_error(s, rc, "looking for the last seal", err);
	if (code == 0 && !same) {
		char fix[400];
		snprintf(fix, sizeof fix,
		         "compare it with a copy and with heads noted elsewhere; only if it is an "
		         "older copy that you put back yourself: remove %s",
		         path);
		code = st_err(err, SW_ECORRUPT, s->path, "nothing was signed", fix,
		              "the trail does not hold row %llu, the seal that was made last",
		              (unsigned long long)seq);
	}
	free(path);
	return code;
}

/* Best effort: without it, or with an older one, less is noticed, and nothing breaks. */
void st_mark_write(sw_store *s, uint64_t seq, const uint8_t hash[32])
{
	char text[100], hex[65], *tmp = NULL;
	char *path = mark_path(s);
	st_hex(hex, hash, 32);
	int n = snprintf(text, sizeof text, "%llu:%s\n", (unsigned long long)seq, hex);
	if (path && asprintf(&tmp, "%s.new", path) >= 0) {
		unlink(tmp);
		int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		bool good = fd >= 0 && sw_write_all(fd, text, (size_t)n) == 0;
		if (fd >= 0 && close(fd) != 0)
			good = false;
		if (!good || rename(tmp, path) != 0)
			unlink(tmp);
		free(tmp);
	}
	free(path);
}

/* A new trail in the place of one that was moved away. */
void st_mark_forget(sw_store *s)
{
	char *path = mark_path(s);
	if (path)
		unlink(path);
	free(path);
}
