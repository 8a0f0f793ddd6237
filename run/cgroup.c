/*
 * A control group of the run's own, where one is delegated to us: its cgroup.kill ends all
 * of it in one step, processes that are forking included. Elsewhere (the common case)
 * tree.c walks and kills; groups that belong to somebody else are never touched.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "run_internal.h"

#define CGROUP2_MAGIC 0x63677270

/* Where the unified hierarchy is mounted; also beside version 1. */
static const char *mount_point(void)
{
	static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		struct statfs s;
		if (statfs(places[i], &s) == 0 && s.f_type == CGROUP2_MAGIC)
			return places[i];
	}
	return NULL;
}

/* "0::/path" of /proc/self/cgroup */
static bool own_group(char *out, size_t n)
{
	const char *mount = mount_point();
	char *text;
	size_t len;
	if (!mount || sw_read_file("/proc/self/cgroup", 65536, &text, &len, NULL))
		return false;
	bool found = false;
	size_t at = 0;
	while (at < len && !found) {
		const char *line = text + at;
		const char *end = memchr(line, '\n', len - at);
		size_t k = end ? (size_t)(end - line) : len - at;
		if (k > 3 && !memcmp(line, "0::", 3))
			found = (size_t)snprintf(out, n, "%s%.*s", mount, (int)k - 3, line + 3) < n;
		at += k + 1;
	}
	free(text);
	return found;
}

/* systemd marks what it delegates; a group of an ordinary user's own is his as well. */
static bool delegated(const char *group)
{
	static const char *const marks[] = {"user.delegate", "trusted.delegate"};
	char value[8];
	struct stat st;
	for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
		if (getxattr(group, marks[i], value, sizeof value) == 1 && value[0] == '1')
			return true;
	return geteuid() != 0 && stat(group, &st) == 0 && st.st_uid == geteuid();
}

bool run_cgroup_make(run_cgroup *g)
{
	char own[3000];
	g->path[0] = '\0';
	if (!own_group(own, sizeof own) || !delegated(own))
		return false;
	snprintf(g->path, sizeof g->path, "%s/sandwitness-%d-%lld", own, (int)getpid(),
	         (long long)sw_monotonic_ns());
	if (mkdir(g->path, 0755)) {
		g->path[0] = '\0';
		return false;
	}
	char file[4096];
	snprintf(file, sizeof file, "%s/cgroup.kill", g->path);
	if (access(file, W_OK) == 0) /* Linux 5.14 */
		return true;
	run_cgroup_remove(g);
	return false;
}

/* In the child: 0 is whoever writes it. Failure leaves the child where it was. */
void run_cgroup_join(const run_cgroup *g)
{
	char file[4096];
	snprintf(file, sizeof file, "%s/cgroup.procs", g->path);
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, "0", 1);
	close(fd);
}

void run_cgroup_kill(const run_cgroup *g)
{
	char file[4096];
	if (!g->path[0])
		return;
	snprintf(file, sizeof file, "%s/cgroup.kill", g->path);
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, "1", 1);
	close(fd);
}

void run_cgroup_remove(run_cgroup *g)
{
	/* busy until the last process is reaped, which is what has just been done */
	for (int i = 0; g->path[0] && i < 50 && rmdir(g->path) && errno == EBUSY; i++)
		usleep(2000);
	g->path[0] = '\0';
}
