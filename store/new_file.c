/*
 * new_file.c - a file that is there whole or not at all: written under another name in
 * the same folder, flushed, then given its own, never in place of something else.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "store_int.h"

static int failed(sw_error *err, const char *path, const char *what)
{
	int e = errno;
	return st_err(err, e == EEXIST ? SW_ECONFLICT : SW_EIO, path, strerror(e),
	              e == EEXIST   ? "name a file that does not exist yet"
	              : e == ENOSPC ? "make room, or choose another place"
	                            : "check the folder, its owner and mode",
	              "%s", what);
}

int sw_new_file_create(sw_new_file *f, const char *path, sw_error *err)
{
	struct stat st;
	uint64_t random = 0;
	f->fd = -1;
	f->path = f->tmp = NULL;
	if (lstat(path, &st) == 0) {
		errno = EEXIST;
		return failed(err, path, "the file exists already");
	}
	if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
		random = (uint64_t)sw_now_ns();
	f->path = strdup(path);
	if (!f->path || asprintf(&f->tmp, "%s.%016llx.tmp", path, (unsigned long long)random) < 0) {
		f->tmp = NULL;
		sw_new_file_drop(f);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	f->fd = open(f->tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (f->fd >= 0)
		return 0;
	int code = failed(err, path, "cannot create the file");
	free(f->tmp);
	f->tmp = NULL;
	sw_new_file_drop(f);
	return code;
}

static int sync_folder(const char *path)
{
	char dir[4200];
	snprintf(dir, sizeof dir, "%s", path);
	char *slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = 0;
	int fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* A folder that may be written but not read, or cannot be flushed: nothing to be done. */
	if (fd < 0)
		return 0;
	int rc = fsync(fd) == 0 || errno == EINVAL || errno == EROFS ? 0 : -1;
	int e = errno;
	close(fd);
	errno = e;
	return rc;
}

/* Without renameat2() a link does the same: it never replaces. */
static int give_name(const char *from, const char *to)
{
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	return link(from, to) == 0 && unlink(from) == 0 ? 0 : -1;
}

int sw_new_file_keep(sw_new_file *f, sw_error *err)
{
	int code = 0;
	if (fsync(f->fd) != 0 || give_name(f->tmp, f->path) != 0 || sync_folder(f->path) != 0)
		code = failed(err, f->path, "the file could not be written");
	if (code == 0) {
		free(f->tmp);
		f->tmp = NULL;
	}
	sw_new_file_drop(f);
	return code;
}

void sw_new_file_drop(sw_new_file *f)
{
	if (f->tmp)
		unlink(f->tmp);
	sw_new_file_leave(f);
}

void sw_new_file_leave(sw_new_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->tmp);
	free(f->path);
	f->fd = -1;
	f->path = f->tmp = NULL;
}
