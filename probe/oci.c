/* oci.c - runc, crun, runsc: a bundle made for the occasion, its root folder assembled of
 * read-only binds of this system. */
#include "probe_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPECTED \
	(SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(ENV) | SW_G(NETWORK) | SW_G(PID) | SW_G(IPC))

static const char *const system_folders[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc"};
static const char *const other_folders[] = {"/proc", "/dev", "/tmp"};

typedef struct bundle {
	char dir[160], rootfs[192], config[192], state[192];
} bundle;

static void bind(json_t *mounts, const char *path, bool write)
{
	json_array_append_new(mounts, json_pack("{s:s, s:s, s:s, s:[s, s]}", "destination", path,
	                                        "type", "bind", "source", path, "options", "rbind",
	                                        write ? "rw" : "ro"));
}

static json_t *process_json(const pr_call *c, const pf_proof *p)
{
	json_t *args = json_array();
	sw_str command[PF_ARGS_MAX];
	size_t n = pf_command(p, command);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(args, json_stringn(command[i].ptr, command[i].len));
	/* inside, the caller is root of its own user namespace, or root itself */
	(void)c;
	return json_pack("{s:b, s:{s:i, s:i}, s:o, s:[s, s], s:s, s:b, s:{s:[], s:[], s:[]}}",
	                 "terminal", 0, "user", "uid", 0, "gid", 0, "args", args, "env",
	                 "PATH=" SW_CONFINE_PATH, "LANG=C.UTF-8", "cwd", p->workspace,
	                 "noNewPrivileges", 1, "capabilities", "bounding", "effective",
	                 "permitted");
}

static json_t *config_json(const pr_call *c, const pf_proof *p)
{
	json_t *mounts = json_array(), *namespaces = json_array();
	json_array_append_new(mounts, json_pack("{s:s, s:s, s:s}", "destination", "/proc", "type",
	                                        "proc", "source", "proc"));
	json_array_append_new(mounts, json_pack("{s:s, s:s, s:s, s:[s, s]}", "destination", "/dev",
	                                        "type", "tmpfs", "source", "tmpfs", "options",
	                                        "nosuid", "mode=755"));
	json_array_append_new(mounts,
	                      json_pack("{s:s, s:s, s:s, s:[s, s]}", "destination", "/tmp", "type",
	                                "tmpfs", "source", "tmpfs", "options", "nosuid", "nodev"));
	for (size_t i = 0; i < sizeof(system_folders) / sizeof(*system_folders); i++)
		if (!access(system_folders[i], F_OK))
			bind(mounts, system_folders[i], false);
	bind(mounts, p->workspace, true);
	static const char *const kinds[] = {"pid", "network", "ipc", "uts", "mount"};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		json_array_append_new(namespaces, json_pack("{s:s}", "type", kinds[i]));
	json_t *linux_part = json_pack("{s:o}", "namespaces", namespaces);
	if (c->host.uid != 0) {
		json_array_append_new(namespaces, json_pack("{s:s}", "type", "user"));
		json_object_set_new(linux_part, "uidMappings",
		                    json_pack("[{s:i, s:I, s:i}]", "containerID", 0, "hostID",
		                              (json_int_t)c->host.uid, "size", 1));
		json_object_set_new(linux_part, "gidMappings",
		                    json_pack("[{s:i, s:I, s:i}]", "containerID", 0, "hostID",
		                              (json_int_t)c->host.gid, "size", 1));
	}
	return json_pack("{s:s, s:o, s:{s:s, s:b}, s:o, s:o}", "ociVersion", "1.0.2", "process",
	                 process_json(c, p), "root", "path", "rootfs", "readonly", 1, "mounts",
	                 mounts, "linux", linux_part);
}

static bool make_bundle(const pr_call *c, const pf_proof *p, bundle *u)
{
	snprintf(u->dir, sizeof(u->dir), "%s/bundle", p->base);
	snprintf(u->rootfs, sizeof(u->rootfs), "%s/rootfs", u->dir);
	snprintf(u->config, sizeof(u->config), "%s/config.json", u->dir);
	snprintf(u->state, sizeof(u->state), "%s/state", p->base);
	if (mkdir(u->dir, 0700) || mkdir(u->rootfs, 0755) || mkdir(u->state, 0700))
		return false;
	/* the root is mounted read-only: the places to mount on must be there */
	char path[512];
	for (size_t i = 0; i < sizeof(system_folders) / sizeof(*system_folders); i++) {
		snprintf(path, sizeof(path), "%s%s", u->rootfs, system_folders[i]);
		mkdir(path, 0755);
	}
	for (size_t i = 0; i < sizeof(other_folders) / sizeof(*other_folders); i++) {
		snprintf(path, sizeof(path), "%s%s", u->rootfs, other_folders[i]);
		mkdir(path, 0755);
	}
	bool lacked = sw_json_lacks(false);
	json_t *j = config_json(c, p);
	char *text = j ? sw_json_dump(j) : NULL;
	FILE *f = text ? fopen(u->config, "we") : NULL;
	if (sw_json_lacks(lacked) || !text || (!f && errno == ENOMEM))
		*c->no_memory = true;
	bool ok = f && fputs(text, f) >= 0;
	if (f)
		ok = !fclose(f) && ok;
	free(text);
	json_decref(j);
	return ok;
}

static void prove(const pr_call *c, sw_backend_status *b, pf_proof *p, const bundle *u)
{
	char id[64];
	snprintf(id, sizeof(id), "sandwitness-probe-%.16s", p->nonce);
	bool runsc = !strcmp(b->id, "gvisor"), rootless = c->host.uid != 0;
	const char *args[16] = {b->path, "--root", u->state};
	size_t n = 3;
	if (runsc) {
		args[n++] = "--network=none";
		args[n++] = "--ignore-cgroups";
		if (rootless)
			args[n++] = "--rootless";
	}
	size_t head = n;
	args[n++] = "run";
	args[n++] = "--bundle";
	args[n++] = u->dir;
	args[n++] = id;
	args[n] = NULL;
	pb_outcome o, gone;
	pr_spawn(c, p, (char *const *)args, NULL, &o);
	pr_conclude(c, b, p, &o, EXPECTED, EXPECTED | SW_G(TREE_KILL), SW_PROBE_FULL);
	args[head] = "delete";
	args[head + 1] = "--force";
	args[head + 2] = id;
	args[head + 3] = NULL;
	pr_spawn(c, NULL, (char *const *)args, NULL, &gone);
	pb_outcome_free(&gone);
	pb_outcome_free(&o);
}

void pr_probe_oci(const pr_call *c, sw_backend_status *b)
{
	pf_proof p;
	bundle u = {0};
	pr_version(c, b, "--version");
	if (!pr_planted(c, b, &p))
		return;
	if (make_bundle(c, &p, &u)) {
		prove(c, b, &p, &u);
	} else {
		b->result = SW_PROBE_UNKNOWN;
		pf_step(b, "prepare", SW_STEP_FAILED, "the bundle could not be written: %s",
		        strerror(errno));
		pr_set_cause(c, b, "probe-no-place");
	}
	pf_clear(&p);
}
