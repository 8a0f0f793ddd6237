/* paths.c - see paths.h. */
#include "paths.h"

#include <string.h>

bool sw_path_normal(const char *path, const char *base, char *out, size_t n)
{
	if (!path || !*path || n < 2)
		return false;
	size_t len = 0;
	if (*path != '/') {
		if (!base || !sw_path_normal(base, NULL, out, n))
			return false;
		len = strlen(out);
		if (len == 1)
			len = 0;
	}
	for (const char *p = path; *p;) {
		while (*p == '/')
			p++;
		size_t part = strcspn(p, "/");
		if (part == 0 || (part == 1 && p[0] == '.')) {
			p += part;
			continue;
		}
		if (part == 2 && p[0] == '.' && p[1] == '.') {
			while (len && out[--len] != '/')
				;
		} else {
			if (len + 1 + part + 1 > n)
				return false;
			out[len++] = '/';
			memcpy(out + len, p, part);
			len += part;
		}
		p += part;
	}
	if (!len)
		out[len++] = '/';
	out[len] = '\0';
	return true;
}

bool sw_path_covers(const char *outer, const char *inner)
{
	size_t n = strlen(outer);
	if (n == 1 && outer[0] == '/')
		return inner[0] == '/';
	return !strncmp(outer, inner, n) && (inner[n] == '\0' || inner[n] == '/');
}

size_t sw_path_depth(const char *path)
{
	size_t n = 0;
	for (const char *p = path; *p; p++)
		if (*p == '/' && p[1])
			n++;
	return n;
}

static bool any_covers(const char *const *list, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (sw_path_covers(list[i], path))
			return true;
	return false;
}

static bool covers_any(const char *path, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (sw_path_covers(path, list[i]))
			return true;
	return false;
}

#define LIST_N(a) (a), sizeof(a) / sizeof(*(a))

bool sw_path_proc_link(const char *path)
{
	if (strncmp(path, "/proc/", 6) != 0)
		return false;
	const char *rest = strchr(path + 6, '/');
	static const char *const links[] = {"root", "cwd", "fd", "task", "map_files", "exe"};
	for (size_t i = 0; rest && i < sizeof(links) / sizeof(*links); i++) {
		size_t n = strlen(links[i]);
		if (!strncmp(rest + 1, links[i], n) && (rest[1 + n] == '\0' || rest[1 + n] == '/'))
			return true;
	}
	return false;
}

/* What follows the home in `path`: "/.ssh/id"; NULL: not in a home; "" the home itself. */
static const char *in_home(const char *path, const char *home)
{
	if (home && strcmp(home, "/") != 0 && sw_path_covers(home, path))
		return path + strlen(home);
	if (sw_path_covers("/root", path))
		return path + 5;
	static const char *const parents[] = {"/home/", "/Users/", "/var/home/"};
	for (size_t i = 0; i < sizeof(parents) / sizeof(*parents); i++) {
		size_t n = strlen(parents[i]);
		if (!strncmp(path, parents[i], n))
			return path + n + strcspn(path + n, "/");
	}
	return NULL;
}

bool sw_path_private(const char *path, const char *home)
{
	static const char *const roots[] = {"/home", "/root", "/Users", "/var/home"};
	static const char *const entries[] = {".ssh",
	                                      ".aws",
	                                      ".azure",
	                                      ".gnupg",
	                                      ".config",
	                                      ".kube",
	                                      ".docker",
	                                      ".netrc",
	                                      ".npmrc",
	                                      ".pypirc",
	                                      ".git-credentials",
	                                      ".local/share/keyrings",
	                                      ".mozilla",
	                                      ".password-store",
	                                      ".bash_history",
	                                      ".cargo/credentials.toml",
	                                      ".cargo/credentials",
	                                      ".claude",
	                                      ".codex",
	                                      ".gem/credentials",
	                                      ".terraform.d",
	                                      ".authinfo",
	                                      ".boto",
	                                      ".cache/huggingface",
	                                      ".fetchmailrc",
	                                      ".gradle/gradle.properties",
	                                      ".local/share/kwalletd",
	                                      ".m2/settings.xml",
	                                      ".msmtprc",
	                                      ".my.cnf",
	                                      ".mysql_history",
	                                      ".pgpass",
	                                      ".pki",
	                                      ".psql_history",
	                                      ".python_history",
	                                      ".s3cfg",
	                                      ".smbcredentials",
	                                      ".thunderbird",
	                                      ".vault-token",
	                                      ".zsh_history",
	                                      "Library"};
	static const char *const files[] = {"/etc/shadow", "/etc/gshadow", "/etc/ssl/private",
	                                    "/etc/shadow-", "/etc/gshadow-"};
	if (covers_any(path, LIST_N(roots)) ||
	    (home && *home == '/' && sw_path_covers(path, home)) || sw_path_proc_link(path))
		return true;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (!strcmp(path, files[i]))
			return true;
	const char *rest = in_home(path, home);
	if (!rest)
		return false;
	if (!*rest)
		return true;
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++)
		if (sw_path_covers(entries[i], rest + 1) || sw_path_covers(rest + 1, entries[i]))
			return true;
	return false;
}

bool sw_path_system(const char *path, const char *home)
{
	/* Nothing in these is anybody's workspace. */
	static const char *const whole[] = {
	    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32",  "/lib64",   "/libx32", "/proc",
	    "/run", "/sbin", "/sys", "/usr", "/nix", "/System", "/Library", "/snap"};
	/* Below these a workspace may lie, they themselves are everybody's. */
	static const char *const parents[] = {"/home",  "/root", "/opt",   "/srv",    "/mnt",
	                                      "/media", "/var",  "/Users", "/private"};
	static const char *const var[] = {"/var/lib",   "/var/log",    "/var/spool", "/var/run",
	                                  "/var/cache", "/var/db",     "/var/www",   "/var/mail",
	                                  "/var/home",  "/var/backups"};
	if (any_covers(LIST_N(whole), path) || covers_any(path, LIST_N(whole)) ||
	    covers_any(path, LIST_N(parents)) || covers_any(path, LIST_N(var)))
		return true;
	/* A whole home: /home/x, or the caller's own. */
	const char *rest = in_home(path, home);
	return (rest && !*rest) || (home && *home == '/' && sw_path_covers(path, home));
}
