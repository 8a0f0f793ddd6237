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
	int code = parse_hex_file(hex_or_file, PUB_HEADER, pub);
	if (code == 0)
		return 0;
	return st_err(err, code, hex_or_file,
	              code == SW_EINVAL ? "64 hex digits are expected" : "no such file",
	              "give the .pub file that was made together with the key",
	              "cannot read the public key");
}

int st_key_load(sw_store *s, bool create, sw_error *err)
{
	if (s->key_known)
		return 0;
	struct stat st;
	if (stat(s->key_path, &st) != 0) {
		if (errno != ENOENT || !create)
			return st_err(
			    err, errno == ENOENT ? SW_ENOTFOUND : SW_EIO, s->key_path,
			    strerror(errno),
			    "put the key back, or make a new one: sandwitness seal --rotate-key",
			    "the signing key cannot be read");
		uint8_t secret[32], pub[32];
		int code = st_key_new(secret, pub, err);
		if (code == 0)
			code = st_key_write(s->key_path, secret, pub, false, err);
		memset(secret, 0, sizeof secret);
		if (code != 0 && code != SW_ECONFLICT)
			return code;
		if (stat(s->key_path, &st) != 0)
			return st_err(err, SW_EIO, s->key_path, strerror(errno), NULL,
			              "the signing key cannot be read");
	}
	if (st.st_mode & 077)
		return st_err(
		    err, SW_EIO, s->key_path, "others may read it",
		    "chmod 600 and, if others use this machine, sandwitness seal --rotate-key",
		    "the signing key is not private");
	int code = parse_hex_file(s->key_path, KEY_HEADER, s->key_secret);
	if (code != 0)
		return st_err(err, code == SW_EINVAL ? SW_ECORRUPT : code, s->key_path, NULL, NULL,
		              "the signing key cannot be read");
	ed25519_sha512_public_key(s->key_public, s->key_secret);
	s->key_known = true;
	return 0;
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

int sw_store_rotate_key(sw_store *s, sw_error *err)
{
	uint8_t old_secret[32], old_public[32], secret[32], pub[32];
	int code = st_begin(s, err);
	if (code != 0)
		return code;
	bool had = st_key_load(s, false, NULL) == 0;
	memcpy(old_secret, s->key_secret, 32);
	memcpy(old_public, s->key_public, 32);
	if (had)
		code = st_seal_now(s, sw_now_ns(), err);
	if (code == 0)
		code = st_key_new(secret, pub, err);
	if (code == 0) {
		memcpy(s->key_secret, secret, 32);
		memcpy(s->key_public, pub, 32);
		code = st_key_announce(s, had ? old_secret : NULL, old_public, err);
	}
	if (code == 0)
		code = st_commit(s, err);
	else
		st_abort(s);
	/* The file follows the commit: until then the old key stays in use and stays good. */
	if (code == 0)
		code = st_key_write(s->key_path, secret, pub, true, err);
	s->key_known = code == 0;
	memset(secret, 0, sizeof secret);
	memset(old_secret, 0, sizeof old_secret);
	return code;
}
