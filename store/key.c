/*
 * key.c - the signing key: a 0600 file outside the trail, its public half beside it
 * and in the chain. docs/store.md tells the whole story.
 */
#include <errno.h>
#include <fcntl.h>
#include <nettle/eddsa.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "store_int.h"

#define KEY_HEADER "sandwitness-seal-key-1 "
#define PUB_HEADER "sandwitness-seal-pub-1 "

void st_key_print(char out[17], const uint8_t pub[32])
{
	uint8_t h[32];
	st_sha256(h, pub, 32);
	st_hex(out, h, 8);
}

int st_key_new(uint8_t secret[32], uint8_t pub[32], sw_error *err)
{
	size_t got = 0;
	while (got < 32) {
		ssize_t n = getrandom(secret + got, 32 - got, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return st_err(err, SW_EIO, "getrandom", strerror(errno), NULL,
			              "no random bytes for a key");
		got += (size_t)n;
	}
	ed25519_sha512_public_key(pub, secret);
	return 0;
}

static char *public_path(const char *key_path)
{
	/* "trail.db.key" -> "trail.db.pub" */
	char *p = NULL;
	size_t n = strlen(key_path);
	if (n > 4 && strcmp(key_path + n - 4, ".key") == 0)
		n -= 4;
	return asprintf(&p, "%.*s.pub", (int)n, key_path) < 0 ? NULL : p;
}

static int write_one(const char *path, const char *header, const uint8_t bytes[32], mode_t mode,
                     bool replace)
{
	char text[128], tmp[4200];
	char hex[65];
	st_hex(hex, bytes, 32);
	snprintf(text, sizeof text, "%s%s\n", header, hex);
	memset(hex, 0, sizeof hex);
	snprintf(tmp, sizeof tmp, "%s%s", path, replace ? ".new" : "");
	if (replace)
		unlink(tmp);
	int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -1;
	int rc = sw_write_all(fd, text, strlen(text));
	if (rc == 0 && (fchmod(fd, mode) != 0 || fsync(fd) != 0))
		rc = -1;
	if (close(fd) != 0)
		rc = -1;
	if (rc == 0 && replace && rename(tmp, path) != 0)
		rc = -1;
	int e = errno;
	if (rc != 0)
		unlink(tmp);
	memset(text, 0, sizeof text);
	errno = e;
	return rc == 0 ? 0 : -1;
}

int st_key_write(const char *path, const uint8_t secret[32], const uint8_t pub[32], bool replace,
                 sw_error *err)
{
	char *pub_path = public_path(path);
	int rc = pub_path ? write_one(path, KEY_HEADER, secret, 0600, replace) : -1;
	if (rc == 0)
		rc = write_one(pub_path, PUB_HEADER, pub, 0644, true);
	int e = errno;
	free(pub_path);
	if (rc == 0)
		return 0;
	errno = e;
	return st_err(
	    err, e == EEXIST ? SW_ECONFLICT : SW_EIO, path, strerror(e),
	    "check owner and mode of the folder, or name another with SANDWITNESS_SEAL_KEY",
	    "cannot write the signing key");
}

static int parse_hex_file(const char *path, const char *header, uint8_t out[32])
{
	char *text = NULL;
	size_t n = 0;
	int code = sw_read_file(path, 4096, &text, &n, NULL);
	if (code != 0)
		return code;
	size_t skip = strlen(header);
	const char *p = text;
	if (n >= skip && memcmp(p, header, skip) == 0) {
		p += skip;
		n -= skip;
	}
	while (n && (p[n - 1] == '\n' || p[n - 1] == '\r' || p[n - 1] == ' '))
		n--;
	code = n == 64 && st_unhex(p, 64, out) == 0 ? 0 : SW_EINVAL;
	free(text);
	return code;
}

int st_public_read(const char *hex_or_file, uint8_t pub[32], sw_error *err)
{
	if (strlen(hex_or_file) == 64 && st_unhex(hex_or_file, 64, pub) == 0)
		return 0;
	int code = st_regular(hex_or_file, "cannot read the public key", err);
	if (code != 0) {
		sw_error_more(err, NULL, NULL,
		              "give the .pub file that was made together with the key");
		return code;
	}
	errno = 0;
	code = parse_hex_file(hex_or_file, PUB_HEADER, pub);
	if (code == 0)
		return 0;
	return st_err(err, code, hex_or_file,
	              code == SW_EINVAL || code == SW_ETOOBIG ? "64 hex digits are expected"
	              : code == SW_ENOTFOUND                  ? "no such file"
	                                                      : strerror(errno ? errno : EIO),
	              "give the .pub file that was made together with the key",
	              "cannot read the public key");
}

/* 0: read; SW_ENOTFOUND; else err says why it cannot be used. */
static int read_key(const char *path, uint8_t secret[32], uint8_t pub[32], sw_error *err)
{
	struct stat st;
	if (stat(path, &st) != 0)
		return st_err(err, errno == ENOENT ? SW_ENOTFOUND : SW_EIO, path, strerror(errno),
		              "put the key back, or make a new one: sandwitness seal --rotate-key",
		              "the signing key cannot be read");
	if (!S_ISREG(st.st_mode))
		return st_not_regular(path, st.st_mode, "the signing key cannot be read", err);
	if (st.st_mode & 077)
		return st_err(
		    err, SW_EIO, path, "others may read it",
		    "chmod 600 and, if others use this machine, sandwitness seal --rotate-key",
		    "the signing key is not private");
	int code = parse_hex_file(path, KEY_HEADER, secret);
	if (code != 0)
		return st_err(err, code == SW_EINVAL ? SW_ECORRUPT : code, path,
		              code == SW_EINVAL ? "it is not one" : NULL,
		              "put the key back, or make a new one: sandwitness seal --rotate-key",
		              "the signing key cannot be read");
	ed25519_sha512_public_key(pub, secret);
	return 0;
}

int st_key_load(sw_store *s, bool create, sw_error *err)
{
	int code = read_key(s->key_path, s->key_secret, s->key_public, create ? NULL : err);
	if (code == SW_ENOTFOUND && create) {
		uint8_t secret[32], pub[32];
		code = st_key_new(secret, pub, err);
		if (code == 0)
			code = st_key_write(s->key_path, secret, pub, false, err);
		memset(secret, 0, sizeof secret);
		if (code == 0 || code == SW_ECONFLICT)
			code = read_key(s->key_path, s->key_secret, s->key_public, err);
	}
	s->key_known = code == 0;
	return code;
}

typedef enum { KEY_NEWEST, KEY_REPLACED, KEY_STRANGE, KEY_FIRST } standing;

/* What the chain knows of a key. KEY_FIRST: it knows none at all. */
static int standing_of(sw_store *s, const uint8_t pub[32], standing *out, sw_error *err)
{
	sqlite3_stmt *q = NULL;
	int rc =
	    sqlite3_prepare_v2(s->db, "SELECT public FROM key ORDER BY seq DESC", -1, &q, NULL);
	*out = KEY_FIRST;
	while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		bool same = sqlite3_column_bytes(q, 0) == 32 &&
		            memcmp(sqlite3_column_blob(q, 0), pub, 32) == 0;
		if (same)
			*out = *out == KEY_FIRST ? KEY_NEWEST : KEY_REPLACED;
		else if (*out == KEY_FIRST)
			*out = KEY_STRANGE;
		rc = same ? SQLITE_DONE : SQLITE_OK;
	}
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? 0 : st_sql_error(s, rc, "reading the keys", err);
}

static bool is_newest(sw_store *s, const uint8_t pub[32])
{
	standing is;
	return standing_of(s, pub, &is, NULL) == 0 && is == KEY_NEWEST;
}

static char *next_path(const char *key_path)
{
	char *p = NULL;
	return asprintf(&p, "%s.new", key_path) < 0 ? NULL : p;
}

/* The key beside the old one takes its place. */
static int take_next(sw_store *s, const char *next, sw_error *err)
{
	char *pub_path = public_path(s->key_path);
	int rc = pub_path ? rename(next, s->key_path) : -1;
	if (rc == 0)
		rc = write_one(pub_path, PUB_HEADER, s->key_public, 0644, true);
	int e = errno;
	free(pub_path);
	return rc == 0 ? 0
	               : st_err(err, SW_EIO, s->key_path, strerror(e),
	                        "the new key is in the file *.new beside it: seal again",
	                        "cannot put the new signing key into its place");
}

/* A change of keys that was announced but not finished. */
static bool finish_change(sw_store *s)
{
	char *next = next_path(s->key_path);
	bool done = next && read_key(next, s->key_secret, s->key_public, NULL) == 0 &&
	            is_newest(s, s->key_public) && take_next(s, next, NULL) == 0;
	free(next);
	return done;
}

int st_key_current(sw_store *s, sw_error *err)
{
	standing is = KEY_FIRST;
	int code = st_mark_check(s, err);
	if (code != 0)
		return code;
	/* Another process may have changed the key since it was read. */
	if (s->key_known && is_newest(s, s->key_public))
		return 0;
	code = st_key_load(s, false, err);
	if (code != 0 && code != SW_ENOTFOUND)
		return code;
	if (code == 0)
		code = standing_of(s, s->key_public, &is, err);
	if (code == 0 && is == KEY_NEWEST)
		return 0;
	char print[17], why[100];
	st_key_print(print, s->key_public);
	s->key_known = finish_change(s);
	if (s->key_known || code != 0)
		return s->key_known ? 0 : code;
	snprintf(why, sizeof why,
	         is == KEY_REPLACED ? "key %s was replaced by another"
	                            : "key %s was never announced here",
	         print);
	return st_err(err, SW_EINVAL, s->key_path, why,
	              is == KEY_FIRST ? "sandwitness seal --rotate-key announces it"
	                              : "give the trail's own key with SANDWITNESS_SEAL_KEY; if it "
	                                "is lost: sandwitness seal --rotate-key",
	              "this is not the key that the trail is sealed with");
}

static uint8_t *put(uint8_t *p, const void *from, size_t n)
{
	memcpy(p, from, n);
	return p + n;
}

size_t st_seal_message(uint8_t *out, const uint8_t uuid[16], const st_cell *seal)
{
	static const char title[] = "sandwitness seal 1";
	uint8_t *p = put(out, title, sizeof title);
	p = put(p, uuid, 16);
	for (int i = C_SEAL_SEGMENT; i <= C_SEAL_LAST; i++)
		for (int b = 56; b >= 0; b -= 8)
			*p++ = (uint8_t)((uint64_t)seal[i].i >> b);
	for (int i = C_SEAL_HEAD; i <= C_SEAL_KEY; i++)
		if (seal[i].type == CELL_BLOB && seal[i].n <= 32)
			p = put(p, seal[i].p, seal[i].n);
	return (size_t)(p - out);
}

size_t st_prune_message(uint8_t *out, const uint8_t uuid[16], uint64_t seq, const st_cell *prune)
{
	static const char title[] = "sandwitness prune 1";
	static const uint8_t zero[32];
	st_cell cells[C_PRUNE_N];
	memcpy(cells, prune, sizeof cells);
	cells[C_PRUNE_DICT].n = ST_PRUNE_KEYED; /* all but the signature */
	uint8_t *p = put(out, title, sizeof title);
	p = put(p, uuid, 16);
	st_row_hash(p, zero, seq, &st_tables[T_PRUNE], cells);
	return (size_t)(p + 32 - out);
}

size_t st_key_message(uint8_t *out, const uint8_t uuid[16], const uint8_t pub[32])
{
	static const char title[] = "sandwitness key 1";
	uint8_t *p = put(out, title, sizeof title);
	p = put(p, uuid, 16);
	p = put(p, pub, 32);
	return (size_t)(p - out);
}

int st_uuid(sw_store *s, uint8_t uuid[16], sw_error *err)
{
	sqlite3_stmt *q = st_stmt(s, Q_UUID, err);
	if (!q)
		return SW_EIO;
	int rc = sqlite3_step(q);
	bool good = rc == SQLITE_ROW && sqlite3_column_bytes(q, 0) == 16;
	if (good)
		memcpy(uuid, sqlite3_column_blob(q, 0), 16);
	sqlite3_reset(q);
	if (good)
		return 0;
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return st_sql_error(s, rc, "reading the first row", err);
	return st_err(err, SW_ECORRUPT, s->path, NULL, "run `sandwitness verify`",
	              "the audit trail has lost its first row");
}

int st_key_announce(sw_store *s, const uint8_t *old_secret, const uint8_t *old_public,
                    sw_error *err)
{
	uint8_t uuid[16], message[ST_MESSAGE_MAX], sig[64];
	st_cell cells[] = {st_int(sw_now_ns()), st_blob(s->key_public, 32), st_null()};
	if (old_secret) {
		int code = st_uuid(s, uuid, err);
		if (code != 0)
			return code;
		size_t n = st_key_message(message, uuid, s->key_public);
		ed25519_sha512_sign(old_public, old_secret, n, message, sig);
		cells[C_KEY_SIG] = st_blob(sig, 64);
	}
	return st_append(s, T_KEY, cells, NULL, err);
}

/* Whether the key at hand signs for the new one, seals first, or is itself the first. */
static int old_key(sw_store *s, bool *signs, bool *seals, bool *first, sw_error *err)
{
	standing is;
	sw_error e = {0};
	*signs = *seals = *first = false;
	int code = st_mark_check(s, err);
	if (code != 0)
		return code;
	code = st_key_current(s, &e);
	*signs = *seals = code == 0;
	if (code == 0)
		return 0;
	if (code == SW_ENOMEM)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	e = (sw_error){0};
	code = st_key_load(s, false, &e);
	if (code == SW_ENOTFOUND || code == SW_ECORRUPT)
		return 0; /* lost: the new one comes unsigned */
	if (code == 0)
		code = standing_of(s, s->key_public, &is, &e);
	if (code == 0 && is == KEY_STRANGE)
		/* It must not be overwritten, nor sign here. */
		code = st_err(&e, SW_EINVAL, s->key_path, "it was never announced here",
		              "name the trail's own key, or a file that does not exist yet, with "
		              "SANDWITNESS_SEAL_KEY",
		              "this key belongs to another trail");
	*signs = code == 0 && (is == KEY_REPLACED || is == KEY_NEWEST);
	*first = code == 0 && is == KEY_FIRST;
	if (code != 0 && err)
		*err = e;
	return code;
}

/* With the old key lost its public half still says whose prunings are to be believed. */
static int vouched(const sw_store *s, bool signs, uint8_t old_public[32], bool *yes, sw_error *err)
{
	*yes = signs;
	if (signs)
		return 0;
	char *pub_path = public_path(s->key_path);
	int code = pub_path ? parse_hex_file(pub_path, PUB_HEADER, old_public) : SW_ENOMEM;
	free(pub_path);
	*yes = code == 0;
	return code == SW_ENOMEM ? sw_error_set(err, SW_ENOMEM, "out of memory") : 0;
}

static int change_key(sw_store *s, const char *next, bool *first, sw_error *err)
{
	uint8_t old_secret[32], old_public[32];
	bool signs = false, seals = false;
	int code = old_key(s, &signs, &seals, first, err);
	memcpy(old_secret, s->key_secret, 32);
	memcpy(old_public, s->key_public, 32);
	if (code == 0 && seals)
		code = st_seal_now(s, sw_now_ns(), err);
	if (code == 0 && !*first) {
		unlink(next);
		code = st_key_new(s->key_secret, s->key_public, err);
		if (code == 0 && write_one(next, KEY_HEADER, s->key_secret, 0600, false) != 0)
			code = st_err(err, SW_EIO, next, strerror(errno),
			              "check owner and mode of the folder, or name another with "
			              "SANDWITNESS_SEAL_KEY",
			              "cannot write the signing key");
	}
	if (code == 0)
		code = st_key_announce(s, signs ? old_secret : NULL, old_public, err);
	/* Whoever pins the new key must hear from it what was pruned under the old one. */
	bool known = false;
	if (code == 0)
		code = vouched(s, signs, old_public, &known, err);
	if (code == 0 && known)
		code = st_prune_again(s, old_public, err);
	/* The new key answers for what is there at once: whoever pins it already finds it used. */
	s->key_known = code == 0;
	if (code == 0)
		code = st_seal_now(s, sw_now_ns(), err);
	if (code != 0 && !*first)
		unlink(next);
	memset(old_secret, 0, sizeof old_secret);
	return code;
}

int sw_store_rotate_key(sw_store *s, sw_error *err)
{
	bool first = false;
	char *next = next_path(s->key_path);
	if (!next)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	int code = st_begin(s, err);
	if (code != 0) {
		free(next);
		return code;
	}
	/* The key lies beside the old one before the commit and takes its place after it: at
	 * no moment is a key announced that is not on disk. */
	code = change_key(s, next, &first, err);
	if (code == 0)
		code = st_commit(s, err);
	else
		st_abort(s);
	s->key_known = false;
	/* Another writer may have put it into its place already. */
	if (code == 0 && !first && access(next, F_OK) == 0)
		code = take_next(s, next, err);
	free(next);
	return code;
}
