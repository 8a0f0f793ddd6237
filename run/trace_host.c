/*
 * Would the same call be let through outside the sandbox? Asked of the host, as the user
 * that runs the supervisor, without changing anything. Where the answer is not clear, the
 * failure is not held against the sandbox.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "run_internal.h"
#include "trace.h"

static bool may(const char *path, int what)
{
	return faccessat(AT_FDCWD, path, what, AT_EACCESS) == 0;
}

static bool exists(const char *path, struct stat *st)
{
	return lstat(path, st) == 0;
}

/* The folder that holds the last part of `path`; false for "/" and what is cut. */
static bool parent_of(const char *path, char *out, size_t n)
{
	size_t len = strlen(path);
	if (len >= n)
		return false;
	memcpy(out, path, len + 1);
	while (len > 1 && out[len - 1] == '/')
		out[--len] = '\0';
	char *slash = strrchr(out, '/');
	if (!slash || len <= 1)
		return false;
	slash[slash == out] = '\0';
	return true;
}

static bool parent_writable(const char *path)
{
	char parent[PATH_MAX];
	return parent_of(path, parent, sizeof parent) && may(parent, W_OK | X_OK);
}

static bool empty(const char *folder)
{
	DIR *d = opendir(folder);
	bool none = d != NULL;
	for (struct dirent *e; none && (e = readdir(d));)
		none = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	if (d)
		closedir(d);
	return none;
}

/* What the kernel would refuse for what it is, wherever it lies. */
static bool wrong_kind(const run_failed_call *f, const struct stat *st)
{
	bool folder = S_ISDIR(st->st_mode);
	bool rmdir =
	    f->call->kind == CALL_RMDIR || (f->call->kind == CALL_REMOVE && f->call->extra >= 0 &&
	                                    (f->args[f->call->extra] & AT_REMOVEDIR));
	if (f->call->kind == CALL_RENAME)
		return false;
	return rmdir ? !folder || !empty(f->path) : folder;
}

/* Removing or renaming: in a sticky folder only one's own. */
static bool removable(const run_failed_call *f, const char *path)
{
	char parent[PATH_MAX];
	struct stat dir, file;
	if (!parent_of(path, parent, sizeof parent) || stat(parent, &dir) || !exists(path, &file))
		return false;
	if (!may(parent, W_OK | X_OK) || wrong_kind(f, &file))
		return false;
	return !(dir.st_mode & S_ISVTX) || f->uid == 0 || dir.st_uid == f->uid ||
	       file.st_uid == f->uid;
}

static bool read_only_fs(const char *path)
{
	struct statvfs v;
	return statvfs(path, &v) == 0 && (v.f_flag & ST_RDONLY);
}

/* Without "//", "/." and "/..", as far as names alone tell. */
static void plain_name(const char *path, char *out)
{
	size_t n = 0;
	while (*path) {
		path += strspn(path, "/");
		size_t k = strcspn(path, "/");
		if (k == 2 && path[0] == '.' && path[1] == '.') {
			while (n && out[--n] != '/')
				;
		} else if (k && !(k == 1 && path[0] == '.')) {
			out[n++] = '/';
			memcpy(out + n, path, k);
			n += k;
		}
		path += k;
	}
	out[n] = '\0';
}

/* These mean another process, or another thing, inside. */
static bool means_something_else(const char *path)
{
	static const char gone[] = " (deleted)";
	char p[PATH_MAX];
	size_t k = sizeof gone - 1;
	plain_name(path, p);
	size_t n = strlen(p);
	return (!strncmp(p, "/proc/", 6) && p[6] >= '0' && p[6] <= '9') ||
	       !strncmp(p, "/proc/self", 10) || !strncmp(p, "/proc/thread-self", 17) ||
	       (n > k && !strcmp(p + n - k, gone)) || !strncmp(p, "/dev/pts/", 9) ||
	       !strcmp(p, "/dev/pts") || !strcmp(p, "/dev/tty");
}

/* Append-only and immutable files, and folders like that, refuse everybody. */
static bool attribute_refuses(const char *path)
{
	struct statx sx;
	char parent[PATH_MAX];
	const uint64_t bits = STATX_ATTR_APPEND | STATX_ATTR_IMMUTABLE;
	if (statx(AT_FDCWD, path, 0, STATX_TYPE, &sx) == 0 && (sx.stx_attributes & bits))
		return true;
	return parent_of(path, parent, sizeof parent) &&
	       statx(AT_FDCWD, parent, 0, STATX_TYPE, &sx) == 0 && (sx.stx_attributes & bits);
}

/* The kernel's own trees answer each file in its own way, whatever its modes say. */
static bool made_by_kernel(const char *path)
{
	static const long kinds[] = {PROC_SUPER_MAGIC,    SYSFS_MAGIC,    CGROUP_SUPER_MAGIC,
	                             CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,  TRACEFS_MAGIC,
	                             SECURITYFS_MAGIC,    BPF_FS_MAGIC,   SELINUX_MAGIC,
	                             BINFMTFS_MAGIC,      PSTOREFS_MAGIC, EFIVARFS_MAGIC};
	char parent[PATH_MAX];
	struct statfs v;
	if (statfs(path, &v) && (!parent_of(path, parent, sizeof parent) || statfs(parent, &v)))
		return false;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if ((long)v.f_type == kinds[i])
			return true;
	return false;
}

/* fs.protected_regular: in a shared folder O_CREAT opens only one's own. */
static bool protected_file(const run_failed_call *f, const struct stat *st)
{
	char parent[PATH_MAX];
	struct stat dir;
	return parent_of(f->path, parent, sizeof parent) && stat(parent, &dir) == 0 &&
	       (dir.st_mode & S_ISVTX) && (dir.st_mode & (S_IWOTH | S_IWGRP)) &&
	       st->st_uid != f->uid && st->st_uid != dir.st_uid;
}

static int wanted_rights(uint64_t flags)
{
	int mode = (int)(flags & O_ACCMODE);
	int want = mode == O_RDONLY ? R_OK : mode == O_WRONLY ? W_OK : R_OK | W_OK;
	return flags & O_TRUNC ? want | W_OK : want;
}

static run_outside open_outside(const run_failed_call *f, uint64_t flags)
{
	struct stat st;
	bool there = stat(f->path, &st) == 0;
	int mode = (int)(flags & O_ACCMODE);
	if (!there && !(flags & O_CREAT))
		return OUTSIDE_REFUSED;
	if (!there)
		return run_trace_answer(parent_writable(f->path));
	if ((flags & O_CREAT) && (flags & O_EXCL))
		return OUTSIDE_REFUSED;
	if (S_ISDIR(st.st_mode) && (flags & O_TMPFILE) == O_TMPFILE)
		return run_trace_answer(may(f->path, W_OK | X_OK));
	if (S_ISDIR(st.st_mode) && mode != O_RDONLY)
		return OUTSIDE_REFUSED;
	if ((flags & O_NOATIME) && f->error == EPERM && f->uid != 0 && st.st_uid != f->uid)
		return OUTSIDE_REFUSED;
	if ((flags & O_CREAT) && f->error == EACCES && protected_file(f, &st))
		return OUTSIDE_REFUSED;
	/* devices answer at open, not at access: only the modes can be asked */
	return run_trace_answer(may(f->path, wanted_rights(flags)));
}

/* As the call sees it: through a last link or not. */
static bool looked_at(const run_failed_call *f, struct stat *st)
{
	return f->follow ? stat(f->path, st) == 0 : lstat(f->path, st) == 0;
}

static bool in_group(const run_failed_call *f, gid_t group)
{
	gid_t own[256];
	if (group == f->gid)
		return true;
	int n = getgroups(256, own); /* of this thread: the user's that is asked for */
	for (int i = 0; i < n; i++)
		if (own[i] == group)
			return true;
	return false;
}

static run_outside owner_outside(const run_failed_call *f)
{
	struct stat st;
	if (!looked_at(f, &st) || read_only_fs(f->path))
		return OUTSIDE_REFUSED;
	if (run_trace_capability(f, CAP_CHOWN))
		return OUTSIDE_ALLOWED;
	uid_t owner = (uid_t)f->args[f->call->extra];
	gid_t group = (gid_t)f->args[f->call->extra + 1];
	bool keeps = owner == (uid_t)-1 || owner == st.st_uid;
	return run_trace_answer(st.st_uid == f->uid && keeps &&
	                        (group == (gid_t)-1 || in_group(f, group)));
}

static run_outside attributes_outside(const run_failed_call *f)
{
	struct stat st;
	if (!looked_at(f, &st) || read_only_fs(f->path))
		return OUTSIDE_REFUSED;
	if (f->uid == 0 || st.st_uid == f->uid)
		return OUTSIDE_ALLOWED;
	/* "now" needs no more than the right to write */
	bool now =
	    f->call->kind == CALL_TIMES && f->call->extra >= 0 && f->args[f->call->extra] == 0;
	return run_trace_answer(now && may(f->path, W_OK));
}

static run_outside move_outside(const run_failed_call *f)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct stat a, b, st;
	if (!exists(f->path, &st) || !parent_of(f->path, from, sizeof from) ||
	    !parent_of(f->path2, to, sizeof to) || stat(from, &a) || stat(to, &b))
		return OUTSIDE_REFUSED;
	if (a.st_dev != b.st_dev) /* it would be EXDEV outside too */
		return OUTSIDE_REFUSED;
	/* a folder that moves has its ".." written */
	if (S_ISDIR(st.st_mode) && !run_trace_same_file(&a, &b) && !may(f->path, W_OK))
		return OUTSIDE_REFUSED;
	if (exists(f->path2, &b) && f->call->kind == CALL_RENAME && S_ISDIR(b.st_mode) &&
	    !empty(f->path2))
		return OUTSIDE_REFUSED;
	if (f->call->kind == CALL_LINK) {
		bool plain = S_ISREG(st.st_mode) && !(st.st_mode & S_ISUID) &&
		             (st.st_mode & (S_ISGID | S_IXGRP)) != (S_ISGID | S_IXGRP);
		bool own = st.st_uid == f->uid || run_trace_capability(f, CAP_FOWNER);
		/* fs.protected_hardlinks */
		if (S_ISDIR(st.st_mode) ||
		    (!own && run_trace_sysctl("/proc/sys/fs/protected_hardlinks", 0) > 0 &&
		     !(plain && may(f->path, R_OK | W_OK))))
			return OUTSIDE_REFUSED;
		return run_trace_answer(!exists(f->path2, &st) && may(to, W_OK | X_OK));
	}
	return run_trace_answer(removable(f, f->path) && may(to, W_OK | X_OK) &&
	                        (!exists(f->path2, &st) || removable(f, f->path2)));
}

/* A script is as good as its interpreter. */
static run_outside exec_outside(const char *path, int depth)
{
	struct stat st;
	struct statvfs v;
	char head[256] = "";
	if (depth > 4 || stat(path, &st) || !S_ISREG(st.st_mode) || !may(path, X_OK) ||
	    statvfs(path, &v) || (v.f_flag & ST_NOEXEC))
		return OUTSIDE_REFUSED;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head - 1);
	if (fd >= 0)
		close(fd);
	if (n < 2 || head[0] != '#' || head[1] != '!')
		return OUTSIDE_ALLOWED;
	char *word = head + 2 + strspn(head + 2, " \t");
	word[strcspn(word, " \t\n")] = '\0';
	return word[0] == '/' ? exec_outside(word, depth + 1) : OUTSIDE_UNKNOWN;
}

/* The kernel's own files; false: it is none. */
static bool kernel_file_outside(const run_failed_call *f, run_outside *out)
{
	struct stat st;
	if (!made_by_kernel(f->path))
		return false;
	/* nobody makes names there, or writes what no mode lets one write */
	if (!exists(f->path, &st) || (!run_trace_reads(f) && !(st.st_mode & 0222)))
		*out = OUTSIDE_REFUSED;
	else if (f->error == EPERM)
		*out = OUTSIDE_UNKNOWN;
	else
		return false;
	return true;
}

static run_outside path_outside(const run_failed_call *f)
{
	struct stat st;
	const run_call *c = f->call;
	run_outside out;
	if (kernel_file_outside(f, &out))
		return out;
	if (f->error == EPERM && attribute_refuses(f->path))
		return OUTSIDE_UNKNOWN;
	/* what is a mount point outside as well is as busy there */
	if (f->error == EBUSY &&
	    (run_trace_mount_point(f->path) || (f->path2[0] && run_trace_mount_point(f->path2))))
		return OUTSIDE_REFUSED;
	switch (c->kind) {
	case CALL_OPEN:
	case CALL_OPENAT2:
		return open_outside(f, c->extra >= 0 ? f->args[c->extra]
		                                     : O_WRONLY | O_CREAT | O_TRUNC);
	case CALL_MKNOD:
		if ((f->args[c->extra] & S_IFMT) == S_IFDIR)
			return OUTSIDE_REFUSED;
		if ((S_ISCHR(f->args[c->extra]) || S_ISBLK(f->args[c->extra])) &&
		    !run_trace_capability(f, CAP_MKNOD))
			return OUTSIDE_REFUSED;
		return run_trace_answer(!exists(f->path, &st) && parent_writable(f->path));
	case CALL_BIND:
	case CALL_MAKE:
		return run_trace_answer(!exists(f->path, &st) && parent_writable(f->path));
	case CALL_REMOVE:
	case CALL_RMDIR:
		return run_trace_answer(removable(f, f->path));
	case CALL_RENAME:
	case CALL_LINK:
		return f->path2[0] == '/' ? move_outside(f) : OUTSIDE_UNKNOWN;
	case CALL_CHMOD:
	case CALL_TIMES:
		return attributes_outside(f);
	case CALL_CHOWN:
		return owner_outside(f);
	case CALL_CONNECT:
	case CALL_WRITE_PATH:
		return run_trace_answer(may(f->path, W_OK));
	case CALL_XATTR: /* each kind of attribute has rules of its own, and they say EPERM */
		return f->error == EPERM ? OUTSIDE_UNKNOWN : run_trace_answer(may(f->path, W_OK));
	case CALL_FLAGS:
		return f->error == EPERM ? OUTSIDE_UNKNOWN : attributes_outside(f);
	case CALL_EXEC:
		return exec_outside(f->path, 0);
	default:
		return OUTSIDE_UNKNOWN;
	}
}

/* There is no such file outside; but a mode is no sandbox. */
static run_outside inside_only(const run_failed_call *f)
{
	if (f->error ==
	    EROFS) /* what hides the host's file is the sandbox's, and it may not be written */
		return path_outside(f);
	bool opens = f->call->kind == CALL_OPEN && f->error == EACCES;
	uint64_t flags = opens && f->call->extra >= 0 ? f->args[f->call->extra] : O_WRONLY;
	int what = wanted_rights(flags);
	return opens && run_trace_modes_refuse(f->pid, f->path, f->follow, what) ? OUTSIDE_REFUSED
	                                                                         : OUTSIDE_UNKNOWN;
}

run_outside run_trace_outside(const run_failed_call *asked)
{
	run_failed_call f = *asked;
	if (f.error == ENOSYS)
		return OUTSIDE_UNKNOWN; /* an old kernel says the same */
	if (f.path[0] != '/')
		return run_trace_other_outside(&f);
	/* EPERM of a socket: its other end does not want this one */
	if (means_something_else(f.path) || (f.path2[0] && means_something_else(f.path2)) ||
	    (f.call->kind == CALL_CONNECT && f.error == EPERM) || f.call->kind == CALL_ASK)
		return OUTSIDE_UNKNOWN;
	if (!run_trace_place(f.pid, f.path, f.follow) ||
	    (f.path2[0] == '/' && !run_trace_place(f.pid, f.path2, false)))
		return inside_only(asked);
	return path_outside(&f);
}
