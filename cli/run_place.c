/* The verdict's file, out of the command's reach. */
#include "run_place.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BESIDE_MAX = 300 };

#define READER_NS INT64_C(5000000000) /* a FIFO's reader has so long to come and to read */
#define LOOK_MS 10

void run_place_open(run_place *p, const char *path)
{
	*p = (run_place){.path = path, .folder = -1, .fd = -1};
	if (!path)
		return;
	const char *slash = strrchr(path, '/');
	p->name = slash ? slash + 1 : path;
	char *folder = !slash          ? strdup(".")
	               : slash == path ? strdup("/")
	                               : strndup(path, (size_t)(slash - path));
	p->folder = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (p->folder < 0)
		p->number = errno;
	free(folder);
	struct stat st;
	if (p->number || fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) ||
	    S_ISREG(st.st_mode))
		return;
	/*
	 * A FIFO is held, and opened for writing at the end: until then nobody need read it. What
	 * stands under its name by then is of no concern.
	 */
	p->is_fifo = S_ISFIFO(st.st_mode);
	int how = p->is_fifo ? O_PATH | O_NOFOLLOW : O_WRONLY | O_NONBLOCK | O_NOCTTY;
	p->fd = openat(p->folder, p->name, how | O_CLOEXEC);
	if (p->fd < 0)
		p->number = errno;
	else if (p->is_fifo && (fstat(p->fd, &st) || !S_ISFIFO(st.st_mode)))
		p->number = ESTALE;
	else if (!p->is_fifo) /* this opening is ours alone */
		fcntl(p->fd, F_SETFL, fcntl(p->fd, F_GETFL) & ~O_NONBLOCK);
}

void run_place_close(run_place *p)
{
	if (p->path && p->folder >= 0)
		close(p->folder);
	if (p->path && p->fd >= 0)
		close(p->fd);
	p->folder = p->fd = -1;
}

static int failed(const run_place *p, int number, sw_error *err)
{
	bool alone = p->is_fifo && (number == ENXIO || number == ETIMEDOUT);
	sw_error_set(err, SW_EIO, "the verdict cannot be written: %s",
	             alone ? "nobody read the FIFO within 5 s" : strerror(number));
	sw_error_more(err, p->path, NULL, NULL);
	return SW_EIO;
}

/* Through its own descriptor, and never for longer than READER_NS. 0 or an errno. */
static int to_fifo(const run_place *p, const char *text, size_t n)
{
	char path[40];
	int64_t until = sw_monotonic_ns() + READER_NS;
	snprintf(path, sizeof path, "/proc/self/fd/%d", p->fd);
	int fd, number = 0;
	while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) {
		if (errno != ENXIO && errno != EINTR)
			return errno;
		if (sw_monotonic_ns() > until)
			return ENXIO;
		poll(NULL, 0, LOOK_MS);
	}
	while (n && !number) {
		ssize_t w = write(fd, text, n);
		if (w >= 0) {
			text += w;
			n -= (size_t)w;
		} else if (errno == EAGAIN && sw_monotonic_ns() <= until) {
			struct pollfd pf = {.fd = fd, .events = POLLOUT};
			sw_poll(&pf, 1, LOOK_MS * INT64_C(10000000));
		} else if (errno != EINTR) {
			number = errno == EAGAIN ? ETIMEDOUT : errno;
		}
	}
	close(fd);
	return number;
}

/* Written beside the file, then renamed over whatever stands there. */
static int to_file(const run_place *p, const char *text, size_t n)
{
	char tmp[BESIDE_MAX], id[37];
	sw_uuid7(id);
	int len = snprintf(tmp, sizeof tmp, "%s.%s", p->name, id);
	if (len < 0 || (size_t)len >= sizeof tmp)
		return ENAMETOOLONG;
	int fd = openat(p->folder, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return errno;
	int number = sw_write_all(fd, text, n) ? errno : 0;
	if (close(fd) && !number)
		number = errno;
	if (!number && renameat(p->folder, tmp, p->folder, p->name))
		number = errno;
	if (number)
		unlinkat(p->folder, tmp, 0);
	return number;
}

int run_place_write(const run_place *p, const char *text, size_t n, sw_error *err)
{
	int number = p->number;
	if (!number && p->is_fifo) {
		number = to_fifo(p, text, n);
	} else if (!number && p->fd >= 0) {
		struct stat st;
		if (fstat(p->fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(p->fd, 0))
			number = errno;
		if (!number && sw_write_all(p->fd, text, n))
			number = errno;
	} else if (!number) {
		number = to_file(p, text, n);
	}
	return number ? failed(p, number, err) : 0;
}
