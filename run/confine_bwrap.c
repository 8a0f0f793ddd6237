/* confine_bwrap.c - bubblewrap, full and partial. */
#include "confine_int.h"

#include <string.h>

static void environment(cf_build *b)
{
	cf_add(&b->args, "--clearenv");
	for (size_t i = 0; i < cf_env_count(b); i++) {
		sw_env_var v = cf_env_at(b, i);
		if (v.value)
			cf_adds(&b->args, "--setenv", v.name, v.value, NULL);
	}
}

static void mask(cf_list *a, const char *path)
{
	size_t n = strlen(path);
	if (path[n - 1] != '/') {
		cf_adds(a, "--ro-bind", "/dev/null", path, NULL);
		return;
	}
	cf_add(a, "--tmpfs");
	cf_addn(a, path, n - 1);
}

static void mounts(cf_build *b)
{
	cf_list *a = &b->args;
	for (size_t i = 0; i < b->n_mounts; i++) {
		const char *path = b->mounts[i].path;
		switch (b->mounts[i].kind) {
		case CF_RO:
			cf_adds(a, "--ro-bind", path, path, NULL);
			break;
		case CF_RO_TRY:
			cf_adds(a, "--ro-bind-try", path, path, NULL);
			break;
		case CF_RW:
			cf_adds(a, "--bind", path, path, NULL);
			break;
		case CF_PROC:
			/* Where /proc cannot be mounted, the host's is shown; the user namespace
			 * keeps the command from following its links into other processes. */
			if (b->policy->partial)
				cf_adds(a, "--ro-bind", "/proc", "/proc", NULL);
			else
				cf_adds(a, "--proc", "/proc", NULL);
			break;
		case CF_DEV:
			cf_adds(a, "--dev", "/dev", NULL);
			break;
		case CF_TMPFS:
			cf_adds(a, "--tmpfs", path, NULL);
			break;
		case CF_MASK:
			mask(a, path);
			break;
		}
	}
	/* A write beside the workspace fails and says so, instead of vanishing with the
	 * sandbox's own root folder. */
	cf_adds(a, "--remount-ro", "/", NULL);
}

static void build(cf_build *b)
{
	const sw_confine_policy *p = b->policy;
	cf_list *a = &b->args;
	cf_add(a, p->runner ? p->runner : "bwrap");
	cf_adds(a, "--die-with-parent", "--new-session", "--unshare-user", "--unshare-ipc",
	        "--unshare-uts", "--unshare-cgroup-try", NULL);
	if (!p->partial)
		cf_add(a, "--unshare-pid");
	if (!p->network)
		cf_add(a, "--unshare-net");
	/* Root keeps every capability otherwise and could mount what it likes. */
	cf_adds(a, "--cap-drop", "ALL", NULL);
	environment(b);
	mounts(b);
	cf_adds(a, "--chdir", p->workspace, "--", NULL);
	cf_command(b);
	if (p->partial)
		b->out->guarantees &= ~(SW_G(PID) | SW_G(TREE_KILL));
}

const cf_builder cf_bwrap = {
    .backend = "bwrap",
    .program = "bwrap",
    .private_tmp = true,
    .base_mounts = true,
    .guarantees = SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(NETWORK) | SW_G(PID) | SW_G(IPC) |
                  SW_G(ENV) | SW_G(TREE_KILL),
    .build = build,
};
