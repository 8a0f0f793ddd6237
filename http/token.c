#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"
#include "guard.h"

enum { TOKEN_BYTES = 32, TOKEN_MIN = 32, TOKEN_MAX = 512 };

static int fail(sw_error *err, const char *path, const char *what, const char *why, const char *fix)
{
	sw_error_set(err, SW_EIO, "%s", what);
	return sw_error_more(err, path, why, fix);
}

/* O_EXCL: whoever else makes it at the same moment wins, and theirs is read. */
static int make(const char *path, sw_error *err)
{
	unsigned char raw[TOKEN_BYTES];
	char text[2 * TOKEN_BYTES + 1];
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0)
		return fail(err, path, "the token file cannot be made", strerror(errno),
		            "name a place this user may write with --token-file");
	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw)) {
		close(fd);
		unlink(path);
		return fail(err, path, "no random bytes for a token", strerror(errno), NULL);
	}
	for (size_t i = 0; i < sizeof(raw); i++) {
		text[2 * i] = "0123456789abcdef"[raw[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[raw[i] & 15];
	}
	text[2 * TOKEN_BYTES] = '\n';
	int code = sw_write_all(fd, text, sizeof(text));
	if (!code && fsync(fd))
		code = SW_EIO;
	close(fd);
	if (code) {
		unlink(path);
		return fail(err, path, "the token file cannot be written", strerror(errno), NULL);
	}
	return 0;
}

int http_token_load(char **out, const char *path, sw_error *err)
{
	char text[TOKEN_MAX + 2];
	struct stat st;
	int fd = -1;

	for (int i = 0; i < 2 && fd < 0; i++) {
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 && errno != ENOENT)
			return fail(err, path, "the token file cannot be read", strerror(errno),
			            NULL);
		if (fd < 0 && make(path, err))
			return SW_EIO;
	}
	if (fd < 0)
		return fail(err, path, "the token file keeps vanishing", NULL, NULL);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (st.st_mode & 077) ||
	    (st.st_uid != geteuid() && st.st_uid != 0)) {
		close(fd);
		return fail(
		    err, path, "the token file is not private",
		    "whoever can read it can use the service; whoever owns it can change it",
		    "chmod 600 it and own it, or remove it to get a new one");
	}
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n < 0)
		return fail(err, path, "the token file cannot be read", strerror(errno), NULL);
	while (n > 0 && strchr("\r\n \t", text[n - 1]))
		n--;
	text[n] = '\0';
	/* it goes into a header and into an address's fragment as it is */
	if (n < TOKEN_MIN || n > TOKEN_MAX ||
	    strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") !=
	        (size_t)n)
		return fail(err, path, "the token file holds no good token",
		            "a token is 32 to 512 letters, digits, '-', '.', '_' or '~'",
		            "remove the file to get a new one");
	*out = strdup(text);
	return *out ? 0 : sw_error_set(err, SW_ENOMEM, "out of memory");
}
