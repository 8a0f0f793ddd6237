/* find.c - where a runner is, and whether its place can be trusted. */
#include "probe_int.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paths.h"

bool sw_sandbox_disabled(char *which, size_t n)
{
	static const char *const names[] = {"SANDWITNESS_SANDBOX", "METNOS_SANDBOX"};
	static const char *const off[] = {"0", "off", "no", "false"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);
		for (size_t k = 0; value && k < sizeof(off) / sizeof(*off); k++)
			if (!strcasecmp(value, off[k])) {
				if (which)
					snprintf(which, n, "%s=%s", names[i], value);
				return true;
			}
	}
	return false;
}

/* A passwd or group database line by line; /etc only: no name service is asked. */
static bool only_me_or_root(uid_t id)
{
	return id == 0 || id == geteuid();
}

/* Without memory nobody is known to be private. */
static FILE *open_database(const char *path, bool *no_memory)
{
	FILE *f = fopen(path, "re");
	*no_memory |= !f && errno == ENOMEM;
	return f;
}

static bool name_is_me_or_root(const char *name, bool *no_memory)
{
	struct passwd pw, *found = NULL;
	char buf[4096];
	FILE *f = open_database("/etc/passwd", no_memory);
	bool mine = false;
	while (f && !mine && !fgetpwent_r(f, &pw, buf, sizeof(buf), &found))
		mine = !strcmp(pw.pw_name, name) && only_me_or_root(pw.pw_uid);
	if (f)
		fclose(f);
	return mine;
}

/*
 * Nobody but this user and root is in the group: the private group of a user, or an empty
 * one such as Debian's staff on /usr/local. A group that is not in /etc/group counts as
 * others.
 */
static bool group_is_private(gid_t gid, bool *no_memory)
{
	char buf[16384];
	struct group gr, *found = NULL;
	FILE *f = open_database("/etc/group", no_memory);
	bool seen = false, private = true;
	while (f && !seen && !fgetgrent_r(f, &gr, buf, sizeof(buf), &found))
		seen = gr.gr_gid == gid;
	if (f)
		fclose(f);
	for (char **m = seen ? gr.gr_mem : NULL; m && *m && private; m++)
	private = name_is_me_or_root(*m, no_memory);
	struct passwd pw, *pfound = NULL;
	char pbuf[4096];
	f = seen && private ? open_database("/etc/passwd", no_memory) : NULL;
	while (f && private && !fgetpwent_r(f, &pw, pbuf, sizeof(pbuf), &pfound))
	private = pw.pw_gid != gid || only_me_or_root(pw.pw_uid);
	if (f)
		fclose(f);
	return seen && private;
}

/*
 * In a user namespace that does not map the host's root, its files show the overflow id,
 * and so do those of every other user. Only below the system's own folders that is taken
 * for root.
 */
static bool unmapped_root(uid_t owner, const char *path)
{
	static const char *const places[] = {"/usr", "/bin", "/sbin", "/lib",
	                                     "/opt", "/nix", "/snap"};
	char map[64] = "", overflow[16] = "";
	unsigned long inside = 1, outside = 1;
	pr_read_word("/proc/sys/kernel/overflowuid", overflow, sizeof(overflow));
	if (!overflow[0] || owner != (uid_t)strtoul(overflow, NULL, 10))
		return false;
	pr_read_word("/proc/self/uid_map", map, sizeof(map));
	if (sscanf(map, "%lu %lu", &inside, &outside) != 2 || (inside == 0 && outside == 0))
		return false; /* root is mapped: this really is user 65534 */
	if (!strcmp(path, "/"))
		return true;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (sw_path_covers(places[i], path))
			return true;
	return false;
}

/* Another user can change what lies at `path`. A sticky folder keeps others from replacing
 * entries that are not theirs; the entries themselves are checked one by one. */
static bool others_can_write(const char *path, bool is_folder, char *why, size_t why_n,
                             bool *no_memory)
{
	struct stat st;
	if (stat(path, &st)) {
		snprintf(why, why_n, "%.150s: %s", path, strerror(errno));
		return true;
	}
	if (!only_me_or_root(st.st_uid) && !unmapped_root(st.st_uid, path)) {
		snprintf(why, why_n, "%.120s belongs to another user (uid %lu)", path,
		         (unsigned long)st.st_uid);
		return true;
	}
	bool sticky = is_folder && (st.st_mode & S_ISVTX);
	if ((st.st_mode & S_IWOTH) && !sticky) {
		snprintf(why, why_n, "%.120s can be written by everybody", path);
		return true;
	}
	if ((st.st_mode & S_IWGRP) && !sticky && !group_is_private(st.st_gid, no_memory)) {
		snprintf(why, why_n, "%.120s can be written by its group (gid %lu)", path,
		         (unsigned long)st.st_gid);
		return true;
	}
	return false;
}

static bool trusted(const char *file, char *why, size_t why_n, bool *no_memory)
{
	char path[4096];
	if (others_can_write(file, false, why, why_n, no_memory))
		return false;
	snprintf(path, sizeof(path), "%s", file);
	for (char *slash; (slash = strrchr(path, '/'));) {
		slash[slash == path] = '\0';
		if (others_can_write(path, true, why, why_n, no_memory))
			return false;
		if (slash == path)
			break;
	}
	return true;
}

/* Both the name as it stands on PATH and what it finally points to must be out of reach. */
static bool trusted_both(const char *as_found, char *why, size_t why_n, bool *no_memory)
{
	char real[4096];
	if (!realpath(as_found, real)) {
		*no_memory |= errno == ENOMEM;
		snprintf(why, why_n, "%.120s: %s", as_found, strerror(errno));
		return false;
	}
	return trusted(as_found, why, why_n, no_memory) && trusted(real, why, why_n, no_memory);
}

static char *copied(const char *file, bool *no_memory)
{
	char *z = strdup(file);
	*no_memory |= !z;
	return z;
}

char *pr_find_program(const char *name, const char *search_path, char **untrusted, char *why,
                      size_t why_n, bool *no_memory)
{
	const char *path = search_path ? search_path : getenv("PATH");
	if (untrusted)
		*untrusted = NULL;
	if (why_n)
		why[0] = '\0';
	for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
		size_t n = strcspn(p, ":");
		char file[4096], reason[256] = "";
		int len = n ? snprintf(file, sizeof(file), "%.*s/%s", (int)n, p, name)
		            : snprintf(file, sizeof(file), "./%s", name);
		struct stat st;
		bool relative = file[0] != '/';
		p += n + (p[n] == ':');
		if (len >= (int)sizeof(file) || stat(file, &st) || !S_ISREG(st.st_mode) ||
		    access(file, X_OK))
			continue;
		if (relative)
			snprintf(reason, sizeof(reason),
			         "PATH names a relative folder: whoever chooses the "
			         "working folder chooses the program");
		if (!relative && trusted_both(file, reason, sizeof(reason), no_memory))
			return copied(file, no_memory);
		if (untrusted && !*untrusted) {
			*untrusted = copied(file, no_memory);
			snprintf(why, why_n, "%s", reason);
		}
	}
	return NULL;
}

/* Without memory it would be "not found": whoever tells of it asks sw_text_lacked(). */
char *sw_find_program(const char *name, const char *search_path, char **untrusted, char *why,
                      size_t why_n)
{
	bool no_memory = false;
	char *found = pr_find_program(name, search_path, untrusted, why, why_n, &no_memory);
	if (no_memory)
		sw_text_lacks();
	return found;
}
