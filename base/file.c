/* Files and standard places. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int system_error(sw_error *err, const char *path, const char *doing)
{
	int e = errno;
	sw_error_set(err, e == ENOENT ? SW_ENOTFOUND : SW_EIO, "cannot %s: %s", doing, strerror(e));
	sw_error_more(err, path, NULL, NULL);
	return e == ENOENT ? SW_ENOTFOUND : SW_EIO;
}

static int read_whole(int fd, bool keep, const char *path, size_t max, char **out, size_t *n,
                      sw_error *err)
{
	struct stat st;
	size_t cap = 65536;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    (uint64_t)st.st_size <= max)
		cap = (size_t)st.st_size + 1;
	if (cap > max + 1)
		cap = max + 1;
	char *p = malloc(cap);
	size_t len = 0;
	int rc = p ? 0 : sw_error_set(err, SW_ENOMEM, "out of memory");
	while (rc == 0) {
		if (len == cap) {
			if (len > max) {
				rc = sw_error_set(err, SW_ETOOBIG, "more than %zu bytes", max);
				sw_error_more(err, path, NULL, "give a smaller file");
				break;
			}
			size_t grown = cap * 2 > max + 1 ? max + 1 : cap * 2;
			char *q = realloc(p, grown);
			if (!q) {
				rc = sw_error_set(err, SW_ENOMEM, "out of memory");
				break;
			}
			p = q;
			cap = grown;
		}
		ssize_t got = read(fd, p + len, cap - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			rc = system_error(err, path, "read");
		if (got <= 0)
			break;
		len += (size_t)got;
		if (len > max) {
			rc = sw_error_set(err, SW_ETOOBIG, "more than %zu bytes", max);
			sw_error_more(err, path, NULL, "give a smaller file");
		}
	}
	if (!keep)
		close(fd);
	if (rc || !p) {
		free(p);
		return rc;
	}
	p[len] = '\0'; /* the last read() found an end, so there was room */
	*out = p;
	*n = len;
	return 0;
}

int sw_read_file(const char *path, size_t max, char **out, size_t *n, sw_error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return system_error(err, path, "open the file");
	return read_whole(fd, is_stdin, path, max, out, n, err);
}

int sw_read_plain_file(const char *path, size_t max, char **out, size_t *n, sw_error *err)
{
	/* O_NONBLOCK: a FIFO without a writer would never open */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
	if (fd < 0)
		return system_error(err, path, "open the file");
	struct stat st;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		sw_error_set(err, SW_EIO, "not a plain file");
		sw_error_more(err, path, NULL, NULL);
		return SW_EIO;
	}
	return read_whole(fd, false, path, max, out, n, err);
}

int sw_write_all(int fd, const void *p, size_t n)
{
	const char *at = p;
	while (n) {
		ssize_t w = write(fd, at, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return SW_EIO;
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

static void file_limit_met(int sig)
{
	(void)sig;
}

void sw_survive_file_limit(void)
{
	struct sigaction now, sa = {.sa_handler = file_limit_met, .sa_flags = SA_RESTART};
	/* a handler, not SIG_IGN: at exec() it is the default again */
	if (sigaction(SIGXFSZ, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
		sigaction(SIGXFSZ, &sa, NULL);
}

int sw_mkdirs(const char *path, mode_t mode, sw_error *err)
{
	char part[PATH_MAX];
	size_t n = strlen(path);
	if (n == 0 || n >= sizeof(part)) {
		sw_error_set(err, SW_EINVAL, "a path of %zu bytes cannot be made", n);
		return SW_EINVAL;
	}
	memcpy(part, path, n + 1);
	for (size_t i = 1; i <= n; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		char keep = part[i];
		part[i] = '\0';
		if (mkdir(part, mode) != 0 && errno != EEXIST)
			return system_error(err, part, "make the folder");
		part[i] = keep;
	}
	struct stat st;
	if (stat(path, &st) != 0)
		return system_error(err, path, "look at the folder");
	if (!S_ISDIR(st.st_mode)) {
		sw_error_set(err, SW_EIO, "not a folder");
		sw_error_more(err, path, NULL, "choose another path");
		return SW_EIO;
	}
	return 0;
}

char *sw_xdg_path(const char *variable, const char *leaf)
{
	static const struct {
		const char *variable, *fallback;
	} homes[] = {
	    {"XDG_STATE_HOME", ".local/state"},
	    {"XDG_CONFIG_HOME", ".config"},
	    {"XDG_RUNTIME_DIR", NULL},
	};
	sw_buf b;
	sw_buf_init(&b, PATH_MAX);
	const char *base = getenv(variable);
	if (base && base[0] == '/') {
		sw_buf_addf(&b, "%s/sandwitness/%s", base, leaf);
		return sw_buf_take(&b);
	}
	for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++) {
		if (strcmp(homes[i].variable, variable) != 0)
			continue;
		const char *home = getenv("HOME");
		if (homes[i].fallback && home && home[0] == '/')
			sw_buf_addf(&b, "%s/%s/sandwitness/%s", home, homes[i].fallback, leaf);
		else
			sw_buf_addf(&b, "/tmp/sandwitness-%u/%s", (unsigned)getuid(), leaf);
		return sw_buf_take(&b);
	}
	return NULL;
}
