/* Which file an argv[0] means, and whether anybody else could have put it there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "run_internal.h"

#define LINKS_MAX 40 /* as the kernel */

/* One component: root's or ours, and not writable by group or others (sticky directories are). */
static bool part_is_safe(const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return false;
	if (S_ISLNK(st->st_mode))
		return true;
	bool writable = (st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && st->st_gid != 0);
	return !writable || (S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX));
}

static bool fail_part(const char *part, char *bad, size_t bad_size)
{
	if (bad && bad_size)
		snprintf(bad, bad_size, "%s", part);
	return false;
}

/*
 * Walks component by component and through every symbolic link, since the owner of
 * a directory on the way to a link's target decides as much as the owner of the link.
 */
bool sw_run_path_trusted(const char *path, char *bad, size_t bad_size)
{
	char rest[PATH_MAX];
	char done[PATH_MAX] = "";
	int links = 0;

	if (!path || path[0] != '/' || strlen(path) >= sizeof rest)
		return fail_part(path ? path : "", bad, bad_size);
	strcpy(rest, path);
	struct stat st;
	if (lstat("/", &st) || !part_is_safe(&st))
		return fail_part("/", bad, bad_size);
	char *p = rest;
	while (*p) {
		while (*p == '/')
			p++;
		size_t n = strcspn(p, "/");
		if (n == 0)
			break;
		if (n == 1 && p[0] == '.') {
			p += n;
			continue;
		}
		if (n == 2 && p[0] == '.' && p[1] == '.') {
			char *slash = strrchr(done, '/');
			if (slash)
				*slash = '\0';
			p += n;
			continue;
		}
		size_t len = strlen(done);
		if (len + 1 + n >= sizeof done)
			return fail_part(path, bad, bad_size);
		done[len] = '/';
		memcpy(done + len + 1, p, n);
		done[len + 1 + n] = '\0';
		p += n;
		if (lstat(done, &st) || !part_is_safe(&st))
			return fail_part(done, bad, bad_size);
		if (!S_ISLNK(st.st_mode))
			continue;
		char target[PATH_MAX];
		ssize_t got = readlink(done, target, sizeof target - 1);
		if (got <= 0 || ++links > LINKS_MAX)
			return fail_part(done, bad, bad_size);
		target[got] = '\0';
		char joined[PATH_MAX];
		int k = snprintf(joined, sizeof joined, "%s%s", target, p);
		if (k < 0 || (size_t)k >= sizeof joined)
			return fail_part(done, bad, bad_size);
		if (target[0] == '/')
			done[0] = '\0';
		else
			done[len] = '\0';
		strcpy(rest, joined);
		p = rest;
	}
	return true;
}

/* errno as execve() would give it for `path`, 0 where it can be executed. */
static int executable_errno(const char *path, struct stat *st)
{
	if (stat(path, st))
		return errno;
	if (S_ISDIR(st->st_mode))
		return EACCES;
	if (access(path, X_OK))
		return errno;
	return 0;
}

/* An ELF file that the kernel loads itself: same byte order and machine as this process. */
static bool is_native(const char *path)
{
	unsigned char own[20] = "", its[20] = "";
	const char *paths[] = {"/proc/self/exe", path};
	unsigned char *heads[] = {own, its};
	for (size_t i = 0; i < 2; i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		ssize_t n = fd < 0 ? -1 : read(fd, heads[i], sizeof own);
		if (fd >= 0)
			close(fd);
		if (n != (ssize_t)sizeof own)
			return false;
	}
	return !memcmp(its, "\177ELF", 4) && its[5] == own[5] && !memcmp(its + 18, own + 18, 2);
}

static int found(sw_run_program *out, const char *path, const struct stat *st)
{
	char abs[PATH_MAX];
	if (path[0] != '/') {
		char cwd[PATH_MAX];
		if (!getcwd(cwd, sizeof cwd) ||
		    (size_t)snprintf(abs, sizeof abs, "%s/%s", cwd, path) >= sizeof abs) {
			out->error = ENAMETOOLONG;
			return SW_ENOTFOUND;
		}
		path = abs;
	}
	snprintf(out->path, sizeof out->path, "%s", path);
	out->dev = st->st_dev;
	out->ino = st->st_ino;
	char caps[64];
	out->setid = (st->st_mode & (S_ISUID | S_ISGID)) ||
	             getxattr(out->path, "security.capability", caps, sizeof caps) > 0;
	out->native = is_native(out->path);
	/* A user's own file is his to change, but no proof against what runs as him. */
	out->trusted = st->st_uid == 0 && sw_run_path_trusted(out->path, out->untrusted_path,
	                                                      sizeof out->untrusted_path);
	if (!out->trusted && !out->untrusted_path[0])
		snprintf(out->untrusted_path, sizeof out->untrusted_path, "%s", out->path);
	out->error = 0;
	return SW_OK;
}

int sw_run_find_program(const char *argv0, const char *path_env, sw_run_program *out)
{
	struct stat st;
	memset(out, 0, sizeof *out);
	out->error = ENOENT;
	if (!argv0 || !argv0[0])
		return SW_ENOTFOUND;
	if (strchr(argv0, '/')) {
		int e = executable_errno(argv0, &st);
		if (!e)
			return found(out, argv0, &st);
		out->error = e;
		return SW_ENOTFOUND;
	}
	const char *dirs = path_env ? path_env : getenv("PATH");
	if (!dirs)
		dirs = "/bin:/usr/bin";
	bool denied = false;
	for (;;) {
		size_t n = strcspn(dirs, ":");
		char candidate[PATH_MAX];
		/* an empty entry is the current directory, as POSIX has it */
		int k = n ? snprintf(candidate, sizeof candidate, "%.*s/%s", (int)n, dirs, argv0)
		          : snprintf(candidate, sizeof candidate, "./%s", argv0);
		if (k > 0 && (size_t)k < sizeof candidate) {
			int e = executable_errno(candidate, &st);
			if (!e)
				return found(out, candidate, &st);
			/* as shells do: a folder that may not be searched does not count */
			struct stat there;
			if (e == EACCES && stat(candidate, &there) == 0)
				denied = true;
		}
		if (!dirs[n])
			break;
		dirs += n + 1;
	}
	out->error = denied ? EACCES : ENOENT;
	return SW_ENOTFOUND;
}
