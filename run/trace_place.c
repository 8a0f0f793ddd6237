/*
 * What a process means by a name, found on the host.
 *
 * Inside a sandbox a name can lead to another file than outside: to a tmpfs, or to a folder
 * that lies elsewhere here. So the file (or, where it is to be made, its folder) is opened
 * below the process's own root and compared by device and inode. Where the host shows the same
 * file under another name, the question is asked about that one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run_internal.h"
#include "trace.h"

#define LINKS_MAX 10
#define MOUNTINFO_MAX (4u << 20)

static int open_inside(int root, const char *path, bool follow)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | (follow ? 0u : O_NOFOLLOW),
	                       .resolve = RESOLVE_IN_ROOT};
	return run_trace_fd((int)syscall(SYS_openat2, root, path, &how, sizeof how));
}

static int root_of(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
	return run_trace_fd(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* ---- mounts ---- */

typedef struct mount_line {
	int id;
	char device[32];
	char root[PATH_MAX], point[PATH_MAX];
} mount_line;

/* "\040" and the like. */
static void unescape(char *s)
{
	char *to = s;
	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + s[3] - '0');
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static bool next_mount(char **at, mount_line *m)
{
	while (**at) {
		char *line = *at, *end = strchr(line, '\n');
		*at = end ? end + 1 : line + strlen(line);
		if (end)
			*end = '\0';
		if (sscanf(line, "%d %*d %31s %4095s %4095s", &m->id, m->device, m->root,
		           m->point) != 4)
			continue;
		unescape(m->root);
		unescape(m->point);
		return true;
	}
	return false;
}

/* The rest of `path` below `folder`, with its slash; NULL: it is not there. */
static const char *below(const char *path, const char *folder)
{
	size_t n = strcmp(folder, "/") ? strlen(folder) : 0;
	if (strncmp(path, folder, n) != 0 || (path[n] && path[n] != '/'))
		return NULL;
	return path + n;
}

static char *mounts_of(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mountinfo", (int)pid);
	return run_trace_text(path, MOUNTINFO_MAX);
}

static int mount_id(int fd)
{
	struct statx sx;
	return statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &sx) == 0 && (sx.stx_mask & STATX_MNT_ID)
	           ? (int)sx.stx_mnt_id
	           : -1;
}

/* Where the opened file lies on its device: "/home/user/x", as mountinfo counts. */
static bool place_on_device(pid_t pid, int fd, char device[32], char *out)
{
	char link[64], name[PATH_MAX];
	int id = mount_id(fd);
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, name, sizeof name - 1);
	char *text = id < 0 || n <= 0 ? NULL : mounts_of(pid);
	if (!text)
		return false;
	name[n] = '\0';
	char *at = text;
	bool found = false;
	mount_line m;
	while (!found && next_mount(&at, &m)) {
		const char *rest = m.id == id ? below(name, m.point) : NULL;
		if (!rest)
			continue;
		int k = snprintf(out, PATH_MAX, "%s%s", strcmp(m.root, "/") ? m.root : "", rest);
		memcpy(device, m.device, sizeof m.device);
		found = k > 0 && k < PATH_MAX;
	}
	free(text);
	return found;
}

/* The host's name of the opened file. */
static bool name_outside(pid_t pid, int fd, const struct stat *inside, char *host)
{
	char device[32], place[PATH_MAX];
	char *text = place_on_device(pid, fd, device, place) ? mounts_of(getpid()) : NULL;
	if (!text)
		return false;
	char *at = text;
	bool found = false;
	mount_line m;
	while (!found && next_mount(&at, &m)) {
		const char *rest = strcmp(m.device, device) ? NULL : below(place, m.root);
		struct stat st;
		if (!rest)
			continue;
		int k = snprintf(host, PATH_MAX, "%s%s", strcmp(m.point, "/") ? m.point : "", rest);
		if (k == 0)
			memcpy(host, "/", 2);
		found = k >= 0 && k < PATH_MAX && stat(host, &st) == 0 &&
		        run_trace_same_file(&st, inside);
	}
	free(text);
	return found;
}

/* ---- files ---- */

static bool split(const char *path, char *folder, const char **last)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	if (!slash || !slash[1])
		return false;
	memcpy(folder, path, n);
	memcpy(folder + n, n ? "" : "/", n ? 1 : 2);
	*last = slash + 1;
	return true;
}

/* A link that leads to nothing: the name that it would make. False: it is no link. */
static bool behind_link(int root, char *path)
{
	char target[PATH_MAX], folder[PATH_MAX];
	const char *last;
	int fd = open_inside(root, path, false);
	if (fd < 0)
		return false;
	ssize_t n = readlinkat(fd, "", target, sizeof target - 1);
	close(fd);
	if (n <= 0 || !split(path, folder, &last))
		return false;
	target[n] = '\0';
	if (target[0] == '/')
		return memcpy(path, target, (size_t)n + 1);
	int k = snprintf(path, PATH_MAX, "%s/%s", strcmp(folder, "/") ? folder : "", target);
	return k > 0 && k < PATH_MAX;
}

/* The opened thing under its host's name; `path` stays where that is the same. */
static bool settle(pid_t pid, int fd, bool follow, char *path)
{
	struct stat inside, outside;
	char host[PATH_MAX];
	if (fstat(fd, &inside))
		return false;
	if ((follow ? stat(path, &outside) : lstat(path, &outside)) == 0 &&
	    run_trace_same_file(&inside, &outside))
		return true;
	if (!name_outside(pid, fd, &inside, host))
		return false;
	memcpy(path, host, strlen(host) + 1);
	return true;
}

static bool settle_new(pid_t pid, int root, char *path)
{
	char folder[PATH_MAX], whole[PATH_MAX];
	const char *last;
	if (!split(path, folder, &last))
		return true;
	int fd = open_inside(root, folder, true);
	if (fd < 0)
		return true; /* not there inside: the name says all there is */
	bool ok = settle(pid, fd, true, folder);
	close(fd);
	int k = snprintf(whole, sizeof whole, "%s/%s", strcmp(folder, "/") ? folder : "", last);
	if (!ok || k <= 0 || k >= PATH_MAX)
		return false;
	memcpy(path, whole, (size_t)k + 1);
	return true;
}

bool run_trace_place(pid_t pid, char *path, bool follow)
{
	int root = root_of(pid);
	if (root < 0)
		return false;
	bool ok = false;
	for (int links = 0; links < LINKS_MAX; links++) {
		int fd = open_inside(root, path, follow);
		if (fd >= 0) {
			ok = settle(pid, fd, follow, path);
			close(fd);
			break;
		}
		if (errno != ENOENT) {
			ok = errno != EXDEV && errno != ELOOP; /* or it cannot be followed */
			break;
		}
		if (!follow || !behind_link(root, path)) {
			ok = settle_new(pid, root, path);
			break;
		}
	}
	close(root);
	return ok;
}

bool run_trace_one_mount(pid_t pid, const char *path, const char *path2)
{
	char one[PATH_MAX], two[PATH_MAX];
	const char *last;
	int root = split(path, one, &last) && split(path2, two, &last) ? root_of(pid) : -1;
	if (root < 0)
		return false;
	int a = open_inside(root, one, true), b = open_inside(root, two, true);
	int x = a < 0 ? -1 : mount_id(a), y = b < 0 ? -2 : mount_id(b);
	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
	close(root);
	return x == y;
}

bool run_trace_mount_point(const char *path)
{
	char folder[PATH_MAX];
	const char *last;
	if (!split(path, folder, &last))
		return true;
	int a = run_trace_fd(open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
	int b = run_trace_fd(open(folder, O_PATH | O_CLOEXEC));
	bool is = a >= 0 && b >= 0 && mount_id(a) != mount_id(b);
	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
	return is;
}

bool run_trace_modes_refuse(pid_t pid, const char *path, bool follow, int what)
{
	int root = root_of(pid), fd = root < 0 ? -1 : open_inside(root, path, follow);
	bool refused = fd >= 0 &&
	               syscall(SYS_faccessat2, fd, "", what, AT_EMPTY_PATH | AT_EACCESS) < 0 &&
	               errno == EACCES;
	if (fd >= 0)
		close(fd);
	if (root >= 0)
		close(root);
	return refused;
}

/* ---- whether it stands as it stood ---- */

static bool changed_since(const struct stat *st, const struct timespec *began)
{
	/* the time of a change is the clock's last tick, or on some file systems a whole second */
	const struct timespec *at = &st->st_ctim;
	return at->tv_sec > began->tv_sec ||
	       (at->tv_sec == began->tv_sec && (at->tv_nsec == 0 || at->tv_nsec >= began->tv_nsec));
}

/* What the link names, which stands in `folder`. */
static bool target_of(int fd, const char *folder, char *out)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(fd, "", target, sizeof target - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	int k = target[0] == '/' ? snprintf(out, PATH_MAX, "%s", target)
	                         : snprintf(out, PATH_MAX, "%s/%s", folder, target);
	return k > 0 && k < PATH_MAX;
}

/* Each folder on the way, and what links on it lead through; true also where these are many. */
static bool way_changed(const run_failed_call *f, int root, const char *path, int *links)
{
	char now[PATH_MAX], folder[PATH_MAX], target[PATH_MAX];
	const char *last;
	snprintf(now, sizeof now, "%s", path);
	for (int depth = 0;; depth++) {
		for (size_t n = strlen(now); n > 1 && now[n - 1] == '/'; n--)
			now[n - 1] = '\0';
		bool top = !split(now, folder, &last);
		struct stat st;
		int fd = open_inside(root, now, false);
		bool there = fd >= 0 && fstat(fd, &st) == 0;
		/* of root's folders above a plain user changes none */
		bool changed = there && (depth < 2 || f->uid == 0 || st.st_uid != 0) &&
		               changed_since(&st, &f->began);
		if (!changed && there && S_ISLNK(st.st_mode))
			changed = ++*links > LINKS_MAX || !target_of(fd, folder, target) ||
			          way_changed(f, root, target, links);
		if (fd >= 0)
			close(fd);
		if (changed || top)
			return changed;
		memcpy(now, folder, strlen(folder) + 1);
	}
}

bool run_trace_changed(const run_failed_call *f, const char *path)
{
	int links = 0, root = root_of(f->pid);
	bool changed = root < 0 || way_changed(f, root, path, &links);
	if (root >= 0)
		close(root);
	return changed;
}
