/*
 * Would the same call be let through outside the sandbox? Asked of the host, as the user
 * that runs the supervisor, without changing anything. Where the answer is not clear, the
 * failure is not held against the sandbox.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
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
	run_trace_fd(d ? 0 : -1);
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

#ifndef STATX_ATTR_VERITY
#define STATX_ATTR_VERITY 0x00100000
#endif

/* Append-only, immutable and sealed files, and folders like that, refuse everybody. */
static bool attribute_refuses(const char *path)
{
	struct statx sx;
	char parent[PATH_MAX];
	const uint64_t bits = STATX_ATTR_APPEND | STATX_ATTR_IMMUTABLE | STATX_ATTR_VERITY;
	if (statx(AT_FDCWD, path, 0, STATX_TYPE, &sx) == 0 && (sx.stx_attributes & bits))
		return true;
	return parent_of(path, parent, sizeof parent) &&
	       statx(AT_FDCWD, parent, 0, STATX_TYPE, &sx) == 0 && (sx.stx_attributes & bits);
}

/* these have no name in the kernel's header, or had none for long */
#define MQUEUE_MAGIC 0x19800202
#define CONFIGFS_MAGIC 0x62656570
#define FUSECTL_MAGIC 0x65735543
#define FUSE_MAGIC 0x65735546
#define CEPH_MAGIC 0x00c36400
#define CIFS_MAGIC 0xFF534D42
#define SMB2_MAGIC 0xFE534D42

static const long kernel_trees[] = {
    PROC_SUPER_MAGIC, SYSFS_MAGIC,   CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,
    TRACEFS_MAGIC,    BPF_FS_MAGIC,  SECURITYFS_MAGIC,   BINFMTFS_MAGIC,      PSTOREFS_MAGIC,
    SELINUX_MAGIC,    FUSECTL_MAGIC, EFIVARFS_MAGIC};
/* Programs and servers answer for their files, and these for names that are made there. */
static const long own_rules[] = {FUSE_MAGIC,       V9FS_MAGIC,          SMB_SUPER_MAGIC,
                                 CIFS_MAGIC,       SMB2_MAGIC,          AFS_SUPER_MAGIC,
                                 CODA_SUPER_MAGIC, AUTOFS_SUPER_MAGIC,  MQUEUE_MAGIC,
                                 CONFIGFS_MAGIC,   RDTGROUP_SUPER_MAGIC};
#define LIES_ON(path, kinds) lies_on(path, kinds, sizeof(kinds) / sizeof(kinds)[0])

/* The file, or the folder that it would be made in, is on a file system of such a kind. */
static bool lies_on(const char *path, const long *kinds, size_t n)
{
	char parent[PATH_MAX];
	struct statfs v;
	if (statfs(path, &v) && (!parent_of(path, parent, sizeof parent) || statfs(parent, &v)))
		return false;
	for (size_t i = 0; i < n; i++)
		if ((long)v.f_type == kinds[i])
			return true;
	return false;
}

/* ---- each kind of call ---- */

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
	uid_t owner = (uid_t)f->args[f->call->extra];
	gid_t group = (gid_t)f->args[f->call->extra + 1];
	if (f->error ==
	    EINVAL) { /* flags that nobody knows, or a user that the namespace does not */
		if (f->call->nr == SYS_fchownat &&
		    (f->args[4] & ~(uint64_t)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)))
			return OUTSIDE_REFUSED;
		if ((owner == (uid_t)-1 || run_trace_mapped(f->pid, false, owner)) &&
		    (group == (gid_t)-1 || run_trace_mapped(f->pid, true, group)))
			return OUTSIDE_UNKNOWN;
	}
	if (run_trace_capability(f, CAP_CHOWN))
		return OUTSIDE_ALLOWED;
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

/* EXDEV on one device: not of Landlock, which lets move within a folder, but of the files. */
static bool moves_by_own_rules(const run_failed_call *f, const char *from, const char *to)
{
	static const long overlay[] = {OVERLAYFS_SUPER_MAGIC}; /* folders of lower layers stay */
	static const long others[] = {NFS_SUPER_MAGIC, CEPH_MAGIC, ECRYPTFS_SUPER_MAGIC};
	struct stat a, b, st;
	struct statx sx;
	struct fsxattr project = {0};
	if (lstat(f->path, &st) || stat(from, &a) || stat(to, &b) || run_trace_same_file(&a, &b) ||
	    (S_ISDIR(st.st_mode) && LIES_ON(to, overlay)) || LIES_ON(to, own_rules) ||
	    LIES_ON(to, others))
		return true;
	const char *ends[] = {f->path, from, to};
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (statx(AT_FDCWD, ends[i], AT_SYMLINK_NOFOLLOW, STATX_TYPE, &sx) == 0 &&
		    (sx.stx_attributes & STATX_ATTR_ENCRYPTED))
			return true;
	/* a folder of a project, for quotas, takes no file of another one */
	int fd = run_trace_fd(open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
	bool inherits = fd >= 0 && ioctl(fd, FS_IOC_FSGETXATTR, &project) == 0 &&
	                (project.fsx_xflags & FS_XFLAG_PROJINHERIT);
	if (fd >= 0)
		close(fd);
	return inherits;
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
	if (f->error == EXDEV && moves_by_own_rules(f, from, to))
		return OUTSIDE_UNKNOWN;
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

/* A file that execve() opens. */
static bool runs(const char *path)
{
	struct stat st;
	struct statvfs v;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && may(path, X_OK) &&
	       statvfs(path, &v) == 0 && !(v.f_flag & ST_NOEXEC);
}

/* NULL and "": there is none. */
static bool interpreter_changed(run_failed_call *f, const char *path)
{
	f->changed |= path && path[0] && f->error == EACCES && run_trace_changed(f, path);
	return f->changed;
}

/* The program that loads it. Empty: it needs none; false: this cannot be told. */
static bool elf_loader(int fd, char name[PATH_MAX])
{
	Elf64_Ehdr h;
	Elf64_Phdr p;
	name[0] = '\0';
	if (pread(fd, &h, sizeof h, 0) != (ssize_t)sizeof h || h.e_ident[EI_CLASS] != ELFCLASS64 ||
	    h.e_phentsize != sizeof p)
		return false;
	for (unsigned i = 0; i < h.e_phnum; i++) {
		off_t at = (off_t)(h.e_phoff + i * sizeof p);
		if (pread(fd, &p, sizeof p, at) != (ssize_t)sizeof p)
			return false;
		if (p.p_type == PT_INTERP)
			return p.p_filesz > 0 && p.p_filesz < PATH_MAX &&
			       pread(fd, name, p.p_filesz, (off_t)p.p_offset) ==
			           (ssize_t)p.p_filesz &&
			       name[p.p_filesz - 1] == '\0' && name[0] == '/';
	}
	return true;
}

/* A script is as good as its interpreter, a program as its loader. */
static run_outside exec_outside(run_failed_call *f, const char *path, int depth)
{
	char head[256] = "", loader[PATH_MAX];
	if (depth > 4 || !runs(path))
		return OUTSIDE_REFUSED;
	if (interpreter_changed(f, depth ? path : NULL))
		return OUTSIDE_UNKNOWN;
	int fd = run_trace_fd(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
	if (fd < 0)
		return OUTSIDE_UNKNOWN;
	ssize_t n = read(fd, head, sizeof head - 1);
	bool elf = n >= SELFMAG && !memcmp(head, ELFMAG, SELFMAG);
	bool known = !elf || elf_loader(fd, loader);
	close(fd);
	if (elf && loader[0] && known && !runs(loader))
		return OUTSIDE_REFUSED;
	if (elf)
		return known && !interpreter_changed(f, loader) ? OUTSIDE_ALLOWED : OUTSIDE_UNKNOWN;
	if (n < 2 || head[0] != '#' || head[1] != '!')
		return OUTSIDE_ALLOWED;
	char *word = head + 2 + strspn(head + 2, " \t");
	word[strcspn(word, " \t\n")] = '\0';
	return word[0] == '/' ? exec_outside(f, word, depth + 1) : OUTSIDE_UNKNOWN;
}

/* The kernel's own files; false: it is none. */
static bool kernel_file_outside(const run_failed_call *f, run_outside *out)
{
	struct stat st;
	if (!LIES_ON(f->path, kernel_trees))
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

static run_outside call_outside(run_failed_call *f)
{
	struct stat st;
	const run_call *c = f->call;
	run_outside out;
	if (kernel_file_outside(f, &out))
		return out;
	if (f->error == EPERM && (attribute_refuses(f->path) || attribute_refuses(f->path2)))
		return OUTSIDE_UNKNOWN;
	if ((f->error == EPERM || f->error == EACCES) && LIES_ON(f->path, own_rules))
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
		return exec_outside(f, f->path, 0);
	default:
		return OUTSIDE_UNKNOWN;
	}
}

/* The capability by which the call would go beyond what owners and modes allow; -1: none. */
static int capability_for(const run_failed_call *f)
{
	const run_call *c = f->call;
	bool device =
	    c->kind == CALL_MKNOD && (S_ISCHR(f->args[c->extra]) || S_ISBLK(f->args[c->extra]));
	return c->kind == CALL_CHOWN                           ? CAP_CHOWN
	       : device                                        ? CAP_MKNOD
	       : c->kind == CALL_MKNOD || c->kind == CALL_MAKE ? -1
	                                                       : CAP_FOWNER;
}

/* This capability is what the process was refused for. */
static bool lacks_capability(const run_failed_call *f, int cap)
{
	return f->error == EPERM && cap >= 0 && run_trace_lacks(f, cap);
}

static run_outside path_outside(run_failed_call *f)
{
	run_outside out = call_outside(f);
	/* this answer is of a filter, of a missing capability, or of the files themselves */
	if (out == OUTSIDE_ALLOWED && f->error == EPERM && !f->filtered &&
	    !lacks_capability(f, capability_for(f)))
		return OUTSIDE_UNKNOWN;
	return out;
}

/*
 * Another process may have changed what the call met, a mode for example, and set it right again
 * while its caller stood still. A plain user changes nothing that would say EPERM; a new file's
 * owner, or a device in a new folder, is refused for want of the capability.
 */
static bool changed(const run_failed_call *f)
{
	int cap = capability_for(f);
	if (f->error != EACCES &&
	    (f->error != EPERM || f->uid != 0 || (cap != CAP_FOWNER && lacks_capability(f, cap))))
		return false;
	return run_trace_changed(f, f->path) || (f->path2[0] && run_trace_changed(f, f->path2));
}

/* There is no such file outside; but a mode is no sandbox. */
static run_outside inside_only(run_failed_call *f)
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

run_outside run_trace_outside(run_failed_call *asked)
{
	run_failed_call f = *asked;
	if (f.error == ENOSYS)
		return OUTSIDE_UNKNOWN; /* an old kernel says the same */
	if (f.path[0] != '/')
		return run_trace_other_outside(&f);
	if (f.error == EBUSY && f.dotted)
		return OUTSIDE_REFUSED; /* nobody moves a folder by these names */
	/* EPERM of a socket: its other end does not want this one */
	if (means_something_else(f.path) || (f.path2[0] && means_something_else(f.path2)) ||
	    (f.call->kind == CALL_CONNECT && f.error == EPERM) || f.call->kind == CALL_ASK)
		return OUTSIDE_UNKNOWN;
	if (!run_trace_place(f.pid, f.path, f.follow) ||
	    (f.path2[0] == '/' && !run_trace_place(f.pid, f.path2, false)))
		return inside_only(asked);
	run_outside out = path_outside(&f);
	/* by its own names: these it went through */
	asked->changed = f.changed || (out == OUTSIDE_ALLOWED && changed(asked));
	return asked->changed ? OUTSIDE_UNKNOWN : out;
}
