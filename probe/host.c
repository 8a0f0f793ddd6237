/* host.c - what this host allows, each fact with where it was read. What cannot be read
 * says so: absent is not the same as off. */
#include "probe_int.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "landlock.h"

#define FACTS_MAX 32

typedef struct facts {
	sw_host_fact *v;
	size_t n;
	bool no_memory;
} facts;

static sw_host_fact *add(facts *f, const char *id, const char *source)
{
	sw_host_fact *h = &f->v[f->n++];
	h->id = id;
	snprintf(h->source, sizeof(h->source), "%s", source);
	return h;
}

/* A file in full, at most n - 1 bytes, the last newline cut. Returns 0 or an errno. */
static int slurp(const char *file, char *out, size_t n)
{
	out[0] = '\0';
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	size_t len = 0;
	ssize_t got = 0;
	while (len + 1 < n && (got = read(fd, out + len, n - 1 - len)) > 0)
		len += (size_t)got;
	int error = got < 0 ? errno : 0;
	close(fd);
	while (len && (out[len - 1] == '\n' || out[len - 1] == '\0'))
		len--;
	out[len] = '\0';
	return error;
}

void pr_read_word(const char *file, char *out, size_t n)
{
	if (slurp(file, out, n))
		out[0] = '\0';
}

static void from_file(facts *f, const char *id, const char *file)
{
	sw_host_fact *h = add(f, id, file);
	int error = slurp(file, h->value, sizeof(h->value));
	h->known = !error;
	if (error)
		snprintf(h->value, sizeof(h->value), "%s",
		         error == ENOENT ? "not present on this kernel" : strerror(error));
}

/* "Name:\tvalue" of /proc/self/status. */
static void from_status(facts *f, const char *id, const char *key)
{
	char text[8192];
	sw_host_fact *h = add(f, id, "/proc/self/status");
	int error = slurp("/proc/self/status", text, sizeof(text));
	size_t n = strlen(key);
	for (char *p = error ? NULL : text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (!strncmp(p, key, n) && p[n] == ':') {
			p += n + 1;
			while (*p == ' ' || *p == '\t')
				p++;
			snprintf(h->value, sizeof(h->value), "%.*s", (int)strcspn(p, "\n"), p);
			h->known = true;
			return;
		}
	snprintf(h->value, sizeof(h->value), "%s", error ? strerror(error) : "not in the file");
}

static void kernel(facts *f)
{
	struct utsname u;
	sw_host_fact *h = add(f, "kernel", "uname(2)");
	h->known = !uname(&u);
	if (h->known)
		snprintf(h->value, sizeof(h->value), "%s %s %s", u.sysname, u.release, u.machine);
}

static void landlock(facts *f)
{
	sw_host_fact *h = add(f, "landlock_abi", "landlock_create_ruleset(2)");
	int abi = sw_landlock_abi();
	h->known = true;
	if (abi > 0)
		snprintf(h->value, sizeof(h->value), "%d", abi);
	else
		snprintf(h->value, sizeof(h->value), "0 (%s)",
		         abi == -ENOSYS ? "not in this kernel" : strerror(-abi));
}

/* How the control groups are mounted, and whether this user may make one. */
static void cgroups(facts *f)
{
	struct statfs s;
	sw_host_fact *h = add(f, "cgroup", "/sys/fs/cgroup");
	h->known = !statfs("/sys/fs/cgroup", &s);
	bool pure = h->known && s.f_type == 0x63677270; /* CGROUP2_SUPER_MAGIC */
	bool hybrid = !statfs("/sys/fs/cgroup/unified", &s) && s.f_type == 0x63677270;
	if (h->known)
		snprintf(h->value, sizeof(h->value), "%s",
		         pure     ? "v2"
		         : hybrid ? "v1 and v2"
		                  : "v1");
	else
		snprintf(h->value, sizeof(h->value), "%s", strerror(errno));

	char own[4096];
	sw_host_fact *d = add(f, "cgroup_delegated", "/proc/self/cgroup");
	int error = slurp("/proc/self/cgroup", own, sizeof(own));
	const char *at = error ? NULL : !strncmp(own, "0::", 3) ? own : strstr(own, "\n0::");
	if (error || !at || !(pure || hybrid)) {
		d->known = !error;
		snprintf(d->value, sizeof(d->value), "%s",
		         error ? strerror(error) : "no (no v2 group)");
		return;
	}
	char path[4400];
	at = strstr(at, "0::") + 3;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s%.*s/cgroup.procs", pure ? "" : "/unified",
	         (int)strcspn(at, "\n"), at);
	d->known = true;
	snprintf(d->value, sizeof(d->value), "%s", access(path, W_OK) ? "no" : "yes");
	snprintf(d->source, sizeof(d->source), "%.127s", path);
}

static void lsm(facts *f)
{
	from_file(f, "lsm", "/sys/kernel/security/lsm");
	sw_host_fact *h = &f->v[f->n - 1];
	if (!h->known && strstr(h->value, "not present"))
		snprintf(h->value, sizeof(h->value), "securityfs is not mounted here");
}

/* Subordinate ids of this user, for rootless containers. */
static void subids(facts *f, const char *id, const char *file)
{
	char text[65536], name[64] = "", uid[24];
	sw_host_fact *h = add(f, id, file);
	struct passwd pw, *found = NULL;
	char buf[4096];
	int lookup = getpwuid_r(geteuid(), &pw, buf, sizeof(buf), &found);
	f->no_memory |= lookup == ENOMEM;
	if (!lookup && found)
		snprintf(name, sizeof(name), "%s", pw.pw_name);
	snprintf(uid, sizeof(uid), "%lu", (unsigned long)geteuid());
	int error = slurp(file, text, sizeof(text));
	h->known = !error;
	snprintf(h->value, sizeof(h->value), "%s", error ? strerror(error) : "none for this user");
	for (char *p = error ? NULL : text; p && *p;
	     p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
		size_t n = strcspn(p, ":");
		bool mine = (n == strlen(name) && !strncmp(p, name, n)) ||
		            (n == strlen(uid) && !strncmp(p, uid, n));
		if (mine && p[n] == ':') {
			snprintf(h->value, sizeof(h->value), "%.*s", (int)strcspn(p + n + 1, "\n"),
			         p + n + 1);
			return;
		}
	}
}

static void container_kind(char *out, size_t n, char *source, size_t source_n)
{
	char text[8192];
	snprintf(source, source_n,
	         "/.dockerenv, /run/.containerenv, /run/systemd/container, "
	         "/proc/1/environ, /proc/self/mountinfo");
	if (!access("/.dockerenv", F_OK)) {
		snprintf(out, n, "docker");
		return;
	}
	if (!access("/run/.containerenv", F_OK)) {
		snprintf(out, n, "podman");
		return;
	}
	if (!slurp("/run/systemd/container", text, sizeof(text)) && text[0]) {
		snprintf(out, n, "%.30s", text);
		return;
	}
	/* container=... of the first process; strings there are separated by NUL */
	int fd = open("/proc/1/environ", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i < len; i += (ssize_t)strnlen(text + i, (size_t)(len - i)) + 1) {
		text[len] = '\0';
		if (!strncmp(text + i, "container=", 10) && text[i + 10]) {
			snprintf(out, n, "%.30s", text + i + 10);
			return;
		}
	}
	/* the root is an overlay: some container */
	if (!slurp("/proc/self/mountinfo", text, sizeof(text)) && strstr(text, " / / ") &&
	    strstr(text, " - overlay ") && strstr(text, " - overlay ") < strchr(text, '\n')) {
		snprintf(out, n, "unknown kind");
		return;
	}
	snprintf(out, n, "none");
}

static void container(facts *f)
{
	sw_host_fact *h = add(f, "container", "");
	container_kind(h->value, sizeof(h->value), h->source, sizeof(h->source));
	h->known = true;
}

size_t pr_host_facts(sw_host_fact **out)
{
	facts f = {.v = calloc(FACTS_MAX, sizeof(sw_host_fact))};
	*out = f.v;
	if (!f.v)
		return 0;
	kernel(&f);
	from_file(&f, "max_user_namespaces", "/proc/sys/user/max_user_namespaces");
	from_file(&f, "unprivileged_userns_clone", "/proc/sys/kernel/unprivileged_userns_clone");
	from_file(&f, "apparmor_restrict_unprivileged_userns",
	          "/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
	landlock(&f);
	from_status(&f, "seccomp", "Seccomp");
	from_file(&f, "seccomp_actions", "/proc/sys/kernel/seccomp/actions_avail");
	from_status(&f, "no_new_privs", "NoNewPrivs");
	from_status(&f, "capabilities", "CapEff");
	cgroups(&f);
	lsm(&f);
	container(&f);
	subids(&f, "subuid", "/etc/subuid");
	subids(&f, "subgid", "/etc/subgid");
	if (f.no_memory) {
		free(f.v);
		*out = NULL;
		return 0;
	}
	return f.n;
}

void pr_context(sw_probe_context *out, const char *search_path)
{
	char max[32], clone[16], apparmor[16];
	const char *path = search_path ? search_path : getenv("PATH");
	*out =
	    (sw_probe_context){.uid = (long)geteuid(), .gid = (long)getegid(), .no_new_privs = -1};
	snprintf(out->search_path, sizeof(out->search_path), "%s", path ? path : "");
	pr_read_word("/proc/sys/user/max_user_namespaces", max, sizeof(max));
	pr_read_word("/proc/sys/kernel/unprivileged_userns_clone", clone, sizeof(clone));
	pr_read_word("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", apparmor,
	             sizeof(apparmor));
	snprintf(out->userns, sizeof(out->userns),
	         "max_user_namespaces=%s unprivileged_userns_clone=%s apparmor_restrict=%s",
	         max[0] ? max : "unknown", clone[0] ? clone : "absent",
	         apparmor[0] ? apparmor : "absent");
	sw_host_fact v[2] = {0};
	facts f = {.v = v};
	static const char *const modes[] = {"none", "strict", "filter"};
	snprintf(out->seccomp, sizeof(out->seccomp), "unknown");
	from_status(&f, "seccomp", "Seccomp");
	from_status(&f, "no_new_privs", "NoNewPrivs");
	if (v[0].known && v[0].value[0] >= '0' && v[0].value[0] <= '2')
		snprintf(out->seccomp, sizeof(out->seccomp), "%s", modes[v[0].value[0] - '0']);
	if (v[1].known)
		out->no_new_privs = v[1].value[0] == '1';
	char source[128];
	container_kind(out->container, sizeof(out->container), source, sizeof(source));
}

/* ---- /etc/os-release ---- */

static void os_value(const char *text, const char *key, char *out, size_t n)
{
	size_t len = strlen(key);
	for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
		if (strncmp(p, key, len) != 0 || p[len] != '=')
			continue;
		p += len + 1;
		char quote = *p == '"' || *p == '\'' ? *p++ : '\0';
		char ends[3] = {'\n', quote, '\0'};
		snprintf(out, n, "%.*s", (int)strcspn(p, ends), p);
		return;
	}
}

void pr_os_release(const char *file, char *id, size_t id_n, char *like, size_t like_n)
{
	char text[8192];
	id[0] = like[0] = '\0';
	if (slurp(file ? file : "/etc/os-release", text, sizeof(text)) &&
	    (file || slurp("/usr/lib/os-release", text, sizeof(text))))
		return;
	os_value(text, "ID", id, id_n);
	os_value(text, "ID_LIKE", like, like_n);
}
