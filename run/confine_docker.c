/* confine_docker.c - a throw-away container by docker or podman. */
#include "confine_int.h"

#include <stdio.h>
#include <string.h>

/* --mount takes a line of CSV: a comma or a quote in a path needs quotes. */
static void bind_mount(cf_list *a, const char *path, bool write)
{
	const char *tail = write ? "" : ",readonly";
	cf_add(a, "--mount");
	if (!strpbrk(path, ",\"\n\r")) {
		cf_addf(a, "type=bind,source=%s,target=%s%s", path, path, tail);
		return;
	}
	char quoted[2 * SW_PATH_MAX];
	size_t n = 0;
	for (const char *p = path; *p && n < sizeof(quoted) - 2; p++) {
		if (*p == '"')
			quoted[n++] = '"';
		quoted[n++] = *p;
	}
	quoted[n] = '\0';
	cf_addf(a, "type=bind,\"source=%s\",\"target=%s\"%s", quoted, quoted, tail);
}

static void environment(cf_build *b)
{
	for (size_t i = 0; i < cf_env_count(b); i++) {
		sw_env_var v = cf_env_at(b, i);
		if (!v.value)
			continue;
		/* The name alone takes the value from the client's environment, so that secrets do
		 * not stand in the argv; what is fixed is written out. */
		bool fixed = !strcmp(v.name, "PATH") || !strcmp(v.name, "HOME") ||
		             !strcmp(v.name, "TMPDIR") || !strcmp(v.name, "LANG");
		cf_add(&b->args, "--env");
		if (fixed)
			cf_addf(&b->args, "%s=%s", v.name, v.value);
		else
			cf_add(&b->args, v.name);
	}
}

static void container(cf_build *b, const char *program, bool podman)
{
	const sw_confine_policy *p = b->policy;
	cf_list *a = &b->args;
	long uid = p->host ? p->host->uid : 65534, gid = p->host ? p->host->gid : 65534;

	cf_add(a, p->runner ? p->runner : program);
	/* --pull never: no network and no progress bars in the command's output */
	cf_adds(a, "run", "--rm", "--interactive", "--pull", "never", "--cap-drop", "ALL",
	        "--security-opt", "no-new-privileges", NULL);
	if (podman) /* the image may start one, which gets its control groups to write */
		cf_add(a, "--systemd=false");
	if (podman && uid != 0)
		cf_adds(a, "--userns", "keep-id", NULL);
	cf_add(a, "--user");
	cf_addf(a, "%ld:%ld", uid, gid);
	if (!p->network)
		cf_adds(a, "--network", "none", NULL);
	cf_add(a, "--memory");
	cf_addf(a, "%um", p->memory_mb ? p->memory_mb : SW_CONFINE_MEMORY_MB);
	if (p->cpus > 0) {
		cf_add(a, "--cpus");
		cf_addf(a, "%.2f", p->cpus);
	}
	cf_add(a, "--pids-limit");
	cf_addf(a, "%d", SW_CONFINE_PIDS);
	cf_adds(a, "--read-only", "--tmpfs", "/tmp:rw,nosuid,nodev,mode=1777", NULL);
	for (size_t i = 0; i < b->n_mounts; i++)
		bind_mount(a, b->mounts[i].path, b->mounts[i].kind == CF_RW);
	environment(b);
	/* The image's own entry point would take the command as its arguments. */
	cf_adds(a, "--workdir", p->workspace, "--entrypoint", "", NULL);
	cf_add(a, p->image ? p->image : SW_CONFINE_IMAGE);
	cf_command(b);
}

static void build_docker(cf_build *b)
{
	container(b, "docker", false);
}

static void build_podman(cf_build *b)
{
	container(b, "podman", true);
}

#define CONTAINER_GUARANTEES                                                                  \
	(SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(NETWORK) | SW_G(PID) | SW_G(IPC) | SW_G(ENV) | \
	 SW_G(SYSCALLS) | SW_G(RESOURCES) | SW_G(TREE_KILL))

const cf_builder cf_docker = {
    .backend = "docker",
    .program = "docker",
    .private_tmp = true,
    .client = true,
    .guarantees = CONTAINER_GUARANTEES,
    .build = build_docker,
};

const cf_builder cf_podman = {
    .backend = "podman",
    .program = "podman",
    .private_tmp = true,
    .client = true,
    .guarantees = CONTAINER_GUARANTEES,
    .build = build_podman,
};
