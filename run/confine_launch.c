/* confine_launch.c - the built-in Landlock launcher and macOS sandbox-exec. */
#include "confine_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Landlock ---- */

/* Devices that programs expect; everything else in /dev stays closed. */
static const char *const devices[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                      "/dev/urandom", "/dev/ptmx", "/dev/pts"};

/* A home below /tmp would be granted with it. */
static bool shares_tmp(const sw_confine_policy *p)
{
	const char *home = p->host ? p->host->home : NULL;
	return p->mode == SW_MODE_WORKSPACE_WRITE && !(home && sw_path_covers("/tmp", home));
}

static void landlock_grants(cf_build *b)
{
	cf_list *a = &b->args;
	for (size_t i = 0; i < b->n_mounts; i++) {
		const char *path = b->mounts[i].path;
		switch (b->mounts[i].kind) {
		case CF_RO:
			cf_adds(a, "--ro", path, NULL);
			break;
		case CF_RW:
			cf_adds(a, "--rw", path, NULL);
			break;
		case CF_RO_TRY:
		case CF_PROC:
			cf_adds(a, "--ro-try", path, NULL);
			break;
		case CF_TMPFS:
			/* Landlock mounts nothing: /tmp is the shared one, and in read_only closed.
			 */
			if (b->policy->mode == SW_MODE_WORKSPACE_WRITE)
				cf_adds(a, "--rw", path, NULL);
			break;
		case CF_DEV:
			for (size_t k = 0; k < sizeof(devices) / sizeof(*devices); k++)
				cf_adds(a, "--dev-try", devices[k], NULL);
			break;
		case CF_MASK:
			cf_adds(a, "--hide", path, NULL);
			break;
		}
	}
}

static void build_landlock(cf_build *b)
{
	const sw_confine_policy *p = b->policy;
	b->shares_tmp = shares_tmp(p);
	cf_list *a = &b->args;
	cf_add(a, p->runner ? p->runner : p->self ? p->self : "sandwitness");
	cf_adds(a, "__landlock", "--die-with-parent", "--new-session", NULL);
	if (!p->network)
		cf_add(a, "--deny-tcp");
	cf_add(a, "--clearenv");
	for (size_t i = 0; i < cf_env_count(b); i++) {
		sw_env_var v = cf_env_at(b, i);
		if (v.value)
			cf_adds(a, "--setenv", v.name, v.value, NULL);
	}
	landlock_grants(b);
	cf_adds(a, "--chdir", p->workspace, "--", NULL);
	cf_command(b);
}

const cf_builder cf_landlock = {
    .backend = "landlock",
    .program = "sandwitness",
    .base_mounts = true,
    .guarantees = SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(ENV),
    .build = build_landlock,
};

/* ---- sandbox-exec ---- */

/* A string of the profile language: quotes and backslashes are escaped. */
static size_t quote(char *out, size_t n, size_t at, const char *z)
{
	if (at < n)
		out[at++] = '"';
	for (; *z && at + 3 < n; z++) {
		if (*z == '"' || *z == '\\')
			out[at++] = '\\';
		out[at++] = *z;
	}
	if (at < n)
		out[at++] = '"';
	return at;
}

typedef struct {
	char *text;
	size_t n, cap;
} profile;

static void rule(profile *f, const char *head, const char *path)
{
	f->n += (size_t)snprintf(f->text + f->n, f->cap - f->n, "(%s (subpath ", head);
	f->n = quote(f->text, f->cap, f->n, path);
	f->n += (size_t)snprintf(f->text + f->n, f->cap - f->n, "))\n");
}

static void build_seatbelt(cf_build *b)
{
	const sw_confine_policy *p = b->policy;
	cf_list *a = &b->args;
	static const char head[] = "(version 1)\n(allow default)\n(deny file-write*)\n";
	static const char devs[] = "(allow file-write* (literal \"/dev/null\") (literal "
	                           "\"/dev/zero\") (literal \"/dev/tty\"))\n";
	size_t cap = 1024 + (p->n_readable + p->n_writable + 8) * (2 * SW_PATH_MAX + 64);
	profile f = {malloc(cap), 0, cap};
	if (!f.text) {
		a->error = SW_ENOMEM;
		return;
	}
	f.n = (size_t)snprintf(f.text, cap, "%s%s", head, devs);
	if (!p->network)
		f.n += (size_t)snprintf(f.text + f.n, cap - f.n, "(deny network*)\n");
	/* homes first, grants after: the last rule that matches decides */
	rule(&f, "deny file-read*", "/Users");
	rule(&f, "deny file-read*", "/var/root");
	if (p->host && p->host->home)
		rule(&f, "deny file-read*", p->host->home);
	if (p->mode == SW_MODE_WORKSPACE_WRITE) {
		rule(&f, "allow file-write*", "/private/tmp");
		rule(&f, "allow file-write*", "/tmp");
	}
	for (size_t i = 0; i < b->n_mounts; i++)
		rule(&f,
		     b->mounts[i].kind == CF_RW ? "allow file-read* file-write*"
		                                : "allow file-read*",
		     b->mounts[i].path);
	cf_adds(a, "/usr/bin/env", "-i", NULL);
	for (size_t i = 0; i < cf_env_count(b); i++) {
		sw_env_var v = cf_env_at(b, i);
		if (v.value)
			cf_addf(a, "%s=%s", v.name, v.value);
	}
	cf_adds(a, p->runner ? p->runner : "/usr/bin/sandbox-exec", "-p", f.text, NULL);
	cf_command(b);
	free(f.text);
}

const cf_builder cf_seatbelt = {
    .backend = "seatbelt",
    .program = "sandbox-exec",
    .guarantees = SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(NETWORK) | SW_G(ENV),
    .build = build_seatbelt,
};
