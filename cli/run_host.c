/* run_host.c - see run_host.h. Looks, and changes nothing. */
#include "run_host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

static void lacks(run_host *h, bool memory_failed)
{
	h->no_memory |= memory_failed;
}

/* ---- paths ---- */

/* openat2() without links of /proc; ENOSYS where there is none. */
static long open_path(const char *path)
{
#ifdef SYS_openat2
	struct {
		uint64_t flags, mode, resolve;
	} how = {O_PATH | O_CLOEXEC, 0, 0x02 /* RESOLVE_NO_MAGICLINKS */};
	return syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
#else
	(void)path;
	errno = ENOSYS;
	return -1;
#endif
}

/* realpath(), but links of /proc are not followed: they lead elsewhere for another process. */
static bool resolve(void *ctx, const char *path, char *out, size_t n)
{
	run_host *h = ctx;
	char full[PATH_MAX], link[64];
	long fd = open_path(path);
	if (fd < 0 && errno != ENOSYS && errno != EPERM)
		return false;
	if (fd >= 0) {
		snprintf(link, sizeof link, "/proc/self/fd/%ld", fd);
		ssize_t len = readlink(link, full, sizeof full - 1);
		close((int)fd);
		if (len > 0 && full[0] == '/') {
			full[len] = '\0';
			return snprintf(out, n, "%s", full) < (int)n;
		}
	}
	if (!realpath(path, full)) {
		lacks(h, errno == ENOMEM);
		return false;
	}
	if (snprintf(out, n, "%s", full) < (int)n)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

static bool is_there(void *ctx, const char *path)
{
	struct stat st;
	(void)ctx;
	return lstat(path, &st) == 0;
}

/* Deep enough for /run/user/1000/systemd/private. More entries than this are taken for one. */
#define LOOK_DEPTH 6
#define LOOK_ENTRIES 4096

static bool find_socket(run_host *h, int at, const char *name, int depth, int *left)
{
	struct stat st;
	if (--*left < 0)
		return true;
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno != ENOENT && errno != EACCES && errno != ENOTDIR;
	/* a link counts for the socket that it leads to; only the place itself is entered by one */
	bool link = S_ISLNK(st.st_mode);
	if (link && fstatat(at, name, &st, 0))
		return false;
	if (S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode))
		return faccessat(at, name, W_OK, AT_EACCESS) == 0;
	if (!S_ISDIR(st.st_mode) || (link && at != AT_FDCWD))
		return false;
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) /* a folder that can be searched but not listed hides names, not sockets */
		return faccessat(at, name, X_OK, AT_EACCESS) == 0;
	DIR *d = depth < LOOK_DEPTH ? fdopendir(fd) : NULL;
	lacks(h, depth < LOOK_DEPTH && !d && errno == ENOMEM);
	bool found = false;
	if (!d)
		close(fd);
	for (struct dirent *e; d && !found && (e = readdir(d));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			found = find_socket(h, dirfd(d), e->d_name, depth + 1, left);
	if (d)
		closedir(d);
	return found;
}

static bool has_socket(void *ctx, const char *path, bool near)
{
	int left = LOOK_ENTRIES;
	return find_socket(ctx, AT_FDCWD, path, near ? LOOK_DEPTH - 2 : 0, &left);
}

static bool one_socket(int at, const char *name)
{
	struct stat st;
	return fstatat(at, name, &st, 0) == 0 && S_ISSOCK(st.st_mode) &&
	       faccessat(at, name, W_OK, AT_EACCESS) == 0;
}

/* One level: agents and servers put theirs right into a folder of its own. */
static bool is_socket(void *ctx, const char *path)
{
	if (one_socket(AT_FDCWD, path))
		return true;
	DIR *d = opendir(path);
	lacks(ctx, !d && errno == ENOMEM);
	bool found = false;
	int left = LOOK_ENTRIES;
	for (struct dirent *e; d && !found && left-- && (e = readdir(d));)
		found = (e->d_type == DT_SOCK || e->d_type == DT_UNKNOWN) &&
		        one_socket(dirfd(d), e->d_name);
	if (d)
		closedir(d);
	return found;
}

/* ---- descriptors ---- */

static void descriptor(run_host *h, int fd)
{
	struct stat st;
	char link[64], path[PATH_MAX];
	for (size_t i = 0; i < h->n_fds; i++)
		if (h->fds[i].fd == fd)
			return;
	if (fstat(fd, &st))
		return;
	if (h->n_fds == RUN_HOST_FDS_MAX) { /* there is one more, and it may be the worst */
		h->fds[RUN_HOST_FDS_MAX - 1].type = S_IFDIR;
		h->fds[RUN_HOST_FDS_MAX - 1].writable = true;
		return;
	}
	sw_derive_fd *f = &h->fds[h->n_fds];
	*f = (sw_derive_fd){.fd = fd, .type = st.st_mode & S_IFMT};
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, path, sizeof path - 1);
	if (len > 0 && path[0] == '/') {
		path[len] = '\0';
		f->path = h->paths[h->n_fds] = strdup(path);
		lacks(h, !f->path);
	}
	if (f->type == S_IFDIR) {
		struct statvfs v;
		f->writable = fstatvfs(fd, &v) != 0 || !(v.f_flag & ST_RDONLY);
	} else if (f->type == S_IFREG) {
		f->writable = faccessat(AT_FDCWD, link, W_OK, AT_EACCESS) == 0;
	} else if (f->type == S_IFSOCK) {
		int domain = 0;
		socklen_t n = sizeof domain;
		f->internet = getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) ||
		              domain == AF_INET || domain == AF_INET6;
	}
	h->n_fds++;
}

/* This program's own end with the exec. */
static void inherited(run_host *h, int fd)
{
	int flags = fcntl(fd, F_GETFD);
	if (flags >= 0 && !(flags & FD_CLOEXEC))
		descriptor(h, fd);
}

static void every_descriptor(run_host *h)
{
	DIR *d = opendir("/proc/self/fd");
	lacks(h, !d && errno == ENOMEM);
	for (struct dirent *e; d && (e = readdir(d));)
		if (atoi(e->d_name) > 2)
			inherited(h, atoi(e->d_name));
	if (d)
		closedir(d);
}

static void descriptors(run_host *h, const run_cli_options *o, char *const *argv)
{
	if (!o->quiet_stdin)
		descriptor(h, STDIN_FILENO);
	if (o->no_merge) /* else the output goes through a pipe */
		descriptor(h, STDOUT_FILENO);
	for (size_t i = 0; i < o->n_keep_fds; i++)
		descriptor(h, o->keep_fds[i]);
	int named[RUN_HOST_FDS_MAX], n = sw_run_named_descriptors(argv, named, RUN_HOST_FDS_MAX);
	for (int i = 0; i < n && i < RUN_HOST_FDS_MAX; i++)
		inherited(h, named[i]);
	if (n < 0)
		every_descriptor(h);
	h->d.fds = h->fds;
	h->d.n_fds = h->n_fds;
}

/* ---- the terminal ---- */

/* TIOCSTI came with an off switch in Linux 6.2; without one it works. */
static bool input_can_be_pushed(void)
{
	char c = '1';
	int fd = open("/proc/sys/dev/tty/legacy_tiocsti", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	ssize_t n = read(fd, &c, 1);
	close(fd);
	return n != 1 || c != '0';
}

static sw_derive_terminal terminal(const run_cli_options *o)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
	bool has = fd >= 0 || (!o->quiet_stdin && isatty(STDIN_FILENO)) ||
	           (o->no_merge && isatty(STDOUT_FILENO));
	if (fd >= 0)
		close(fd);
	for (size_t i = 0; i < o->n_keep_fds; i++)
		has |= isatty(o->keep_fds[i]);
	if (!has)
		return SW_DERIVE_TERMINAL_NONE;
	return input_can_be_pushed() ? SW_DERIVE_TERMINAL_OPEN : SW_DERIVE_TERMINAL_SAFE;
}

/* ---- mounts ---- */

/* Field 5 of mountinfo, with its escapes ("\040") undone. */
static char *mount_point(char *line)
{
	char *at = line;
	for (int field = 1; field < 5; field++) {
		at = strchr(at, ' ');
		if (!at)
			return NULL;
		at++;
	}
	at[strcspn(at, " ")] = '\0';
	char *to = at;
	for (const char *p = at; *p; to++) {
		unsigned c;
		if (p[0] == '\\' && sscanf(p + 1, "%3o", &c) == 1) {
			*to = (char)c;
			p += 4;
		} else {
			*to = *p++;
		}
	}
	*to = '\0';
	return at;
}

static void mounts(run_host *h)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	lacks(h, !f && errno == ENOMEM);
	char *line = NULL;
	size_t cap = 0;
	h->mounted = calloc(RUN_HOST_MOUNTED_MAX, sizeof *h->mounted);
	bool all = f && h->mounted;
	lacks(h, !h->mounted);
	while (all && getline(&line, &cap, f) > 0) {
		const char *at = mount_point(line);
		char *copy = at ? strdup(at) : NULL;
		lacks(h, at && !copy);
		all = copy && h->n_mounted < RUN_HOST_MOUNTED_MAX;
		if (all)
			h->mounted[h->n_mounted++] = copy;
		else
			free(copy);
	}
	lacks(h, all && !feof(f) && errno == ENOMEM);
	free(line);
	if (f)
		fclose(f);
	if (all && h->n_mounted) {
		h->d.mounted = (const char *const *)h->mounted;
		h->d.n_mounted = h->n_mounted;
	}
}

/* ---- all of it ---- */

static bool is_set(const char *name)
{
	const char *v = getenv(name);
	return v && *v;
}

static bool engine_elsewhere(void)
{
	static const char *const hosts[] = {"DOCKER_HOST", "CONTAINER_HOST"};
	static const char *const names[] = {"DOCKER_CONTEXT", "CONTAINER_CONNECTION"};
	for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
		const char *v = getenv(hosts[i]);
		if (v && *v && strcmp(v, "unix:///var/run/docker.sock") != 0 &&
		    strcmp(v, "unix:///run/docker.sock") != 0)
			return true;
	}
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (is_set(names[i]))
			return true;
	return false;
}

static bool no_userns(run_host *h)
{
	int max = 1;
	FILE *f = fopen("/proc/sys/user/max_user_namespaces", "re");
	lacks(h, !f && errno == ENOMEM);
	if (!f || fscanf(f, "%d", &max) != 1)
		max = access("/proc/self/ns/user", F_OK) == 0;
	if (f)
		fclose(f);
	return max == 0;
}

void run_host_look(run_host *h, const run_cli_options *o, char *const *argv)
{
	memset(h, 0, sizeof *h);
	char real[PATH_MAX];
	/* where the runner will be: --cwd is entered before it is executed */
	const char *at = o->cwd ? realpath(o->cwd, real) : getcwd(real, sizeof real);
	if (at)
		snprintf(h->cwd, sizeof h->cwd, "%s", at);
	struct passwd pw, *found = NULL;
	char buf[65536];
	int lookup = getpwuid_r(getuid(), &pw, buf, sizeof buf, &found);
	lacks(h, lookup == ENOMEM);
	if (!lookup && found) {
		snprintf(h->home, sizeof h->home, "%s", pw.pw_dir ? pw.pw_dir : "");
		if (strlen(pw.pw_name) < sizeof h->user)
			strcpy(h->user, pw.pw_name);
	}
	h->d = (sw_derive_options){.backend = o->backend,
	                           .cwd = h->cwd[0] ? h->cwd : NULL,
	                           .home = h->home[0] ? h->home : NULL,
	                           .env_home = getenv("HOME"),
	                           .user = h->user[0] ? h->user : NULL,
	                           .uid = (long)geteuid(),
	                           .engine_elsewhere = engine_elsewhere(),
	                           .supervised = true,
	                           .no_userns = no_userns(h),
	                           .terminal = terminal(o),
	                           .resolve = resolve,
	                           .is_there = is_there,
	                           .is_socket = is_socket,
	                           .has_socket = has_socket,
	                           .ctx = h};
	descriptors(h, o, argv);
	mounts(h);
	/* any program on the way: a runner's own bits count, others' only make it stricter */
	for (size_t i = 0; argv[i] && i < 16; i++) {
		sw_run_program p;
		const char *leaf = strrchr(argv[i], '/');
		if (!strcmp(leaf ? leaf + 1 : argv[i], "bwrap") &&
		    !sw_run_find_program(argv[i], NULL, &p))
			h->d.setid_runner |= p.setid;
	}
}

void run_host_free(run_host *h)
{
	for (size_t i = 0; i < h->n_fds; i++)
		free(h->paths[i]);
	for (size_t i = 0; i < h->n_mounted; i++)
		free(h->mounted[i]);
	free(h->mounted);
}

/* An entry of PATH that means another folder after --cwd. */
static bool path_is_relative(void)
{
	for (const char *p = getenv("PATH"); p; p = strchr(p, ':') ? strchr(p, ':') + 1 : NULL)
		if (*p != '/')
			return true;
	return false;
}

static bool is_self(const sw_run_program *p)
{
	struct stat st;
	return !stat("/proc/self/exe", &st) && st.st_dev == p->dev && st.st_ino == p->ino;
}

void run_host_doubt(const run_host *h, const run_cli_options *o, char *const *argv, sw_derived *d)
{
	static const char *const steering[] = {"CONTAINERS_CONF", "CONTAINERS_CONF_OVERRIDE",
	                                       "CONTAINERS_STORAGE_CONF"};
	(void)h;
	for (size_t i = 0; i < d->n_programs; i++) {
		const char *name = argv[d->programs[i]];
		sw_run_program p;
		if (sw_run_find_program(name, NULL, &p))
			continue; /* nothing will be executed */
		if (!p.trusted && !is_self(&p))
			sw_derived_doubt(d, "%.150s is not root's alone: its name proves nothing",
			                 p.untrusted_path[0] ? p.untrusted_path : p.path);
		/* the program before it looks from the folder that it is started in */
		else if (i && o->cwd && name[0] != '/' && (strchr(name, '/') || path_is_relative()))
			sw_derived_doubt(d, "%.150s is looked for in another folder", name);
	}
	for (size_t i = 0; i < sizeof steering / sizeof steering[0]; i++)
		if (!strcmp(d->backend, "podman") && is_set(steering[i]))
			sw_derived_doubt(d, "%s names settings that are not read", steering[i]);
}
