/* derive_engine_options.c - what each option of `docker run` and `podman run` earns or loses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "derive_engine.h"

static void network(eng *e, const char *v)
{
	*(strcmp(v, "none") ? &e->network_other : &e->network_none) = true;
}
static void privileged(eng *e, const char *v)
{
	e->privileged = dv_engine_on(v);
}
static void detach(eng *e, const char *v)
{
	e->detach = dv_engine_on(v);
}
static void read_only(eng *e, const char *v)
{
	e->read_only = dv_engine_on(v);
}
static void rootfs(eng *e, const char *v)
{
	e->rootfs = dv_engine_on(v);
}
static bool own_namespace(const char *v)
{
	static const char *const own[] = {"", "private", "none", "shareable"};
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(v, own[i]))
			return true;
	return false;
}
/* /proc/PID/root of a process without more privileges leads to where that process lives. */
static void pid(eng *e, const char *v)
{
	if (!own_namespace(v))
		dv_lose(e->d, SW_G(PID) | SW_G(TREE_KILL) | SW_G(FS_WRITE) | SW_G(FS_READ),
		        "--pid %.80s: processes outside, and their files, can be reached", v);
}
static void ipc(eng *e, const char *v)
{
	if (!own_namespace(v))
		dv_lose(e->d, SW_G(IPC), "--ipc %.80s: shared memory with others", v);
}
static void pod(eng *e, const char *v)
{
	dv_unknown(e->d, "--pod %.80s: its mounts, devices and namespaces were made elsewhere", v);
}
static void opaque(eng *e, const char *v)
{
	dv_unknown(e->d, "an option with the value %.80s can do anything", v);
}
static void elsewhere(eng *e, const char *v)
{
	(void)v;
	e->d->elsewhere = true;
}
static void remote(eng *e, const char *v)
{
	e->d->elsewhere |= dv_engine_on(v);
}
/* A number, with a group that is none of the system's: names are the image's to define. */
static void user(eng *e, const char *v)
{
	char *end = NULL;
	unsigned long uid = strtoul(v, &end, 10);
	bool number = *v >= '1' && *v <= '9' && *end == ':' && uid < 0xffffffffUL;
	const char *group = number ? end + 1 : "";
	unsigned long gid = strtoul(group, &end, 10);
	e->plain_user =
	    number && *group >= '1' && *group <= '9' && !*end && gid >= 100 && gid < 0xffffffffUL;
}
static void group_add(eng *e, const char *v)
{
	(void)v;
	e->groups = true;
}
static void memory(eng *e, const char *v)
{
	e->memory = *v >= '0' && *v <= '9' && strtod(v, NULL) > 0;
}
static void memory_swap(eng *e, const char *v)
{
	e->swap_open = *v < '0' || *v > '9';
}
static void cgroup_conf(eng *e, const char *v)
{
	dv_lose(e->d, SW_G(RESOURCES), "--cgroup-conf %.80s: limits may be other ones", v);
}
static void user_map(eng *e, const char *v)
{
	(void)v;
	e->remapped = true;
}
static void systemd(eng *e, const char *v)
{
	e->no_systemd = !strcasecmp(v, "false");
	if (!strcasecmp(v, "always"))
		dv_lose(e->d, SW_G(FS_WRITE) | SW_G(RESOURCES),
		        "--systemd always: control groups are writable");
}
static void restart(eng *e, const char *v)
{
	if (*v && strcmp(v, "no") != 0)
		dv_lose(e->d, SW_G(TREE_KILL), "--restart %.60s: it comes back", v);
}
static void pids(eng *e, const char *v)
{
	e->pids = *v >= '0' && *v <= '9' && strtol(v, NULL, 10) > 0;
}
static void cgroups(eng *e, const char *v)
{
	if (strcmp(v, "enabled") != 0)
		dv_lose(e->d, SW_G(RESOURCES), "--cgroups %.60s: limits do not hold", v);
}
static void env_host(eng *e, const char *v)
{
	if (dv_engine_on(v))
		dv_lose(e->d, SW_G(ENV), "--env-host: the caller's environment is passed on");
}
static void env(eng *e, const char *v)
{
	if (!strchr(v, '=') && strchr(v, '*'))
		dv_lose(e->d, SW_G(ENV), "--env '%.60s': the caller's environment is passed on", v);
}
/* Docker takes single names from the caller's environment, podman patterns too. */
static void env_file(eng *e, const char *v)
{
	if (e->podman)
		dv_lose(e->d, SW_G(ENV), "--env-file %.80s can pass the caller's environment on",
		        v);
}
static void api_socket(eng *e, const char *v)
{
	if (dv_engine_on(v))
		dv_lose(e->d, DV_ESCAPE, "--use-api-socket: the daemon does what the command says");
}
static void workdir(eng *e, const char *v)
{
	e->workdir = v;
}
static void entrypoint(eng *e, const char *v)
{
	e->entrypoint = v;
}
static void volumes_from(eng *e, const char *v)
{
	dv_unknown(e->d, "--volumes-from %.100s: what it shows is not known", v);
}
/* Any program may stand in for the runtime; these confine, by their names as configured, or
 * where only root installs programs. */
static void runtime(eng *e, const char *v)
{
	static const char *const known[] = {"runc",
	                                    "crun",
	                                    "runsc",
	                                    "runsc-kvm",
	                                    "kata",
	                                    "kata-runtime",
	                                    "youki",
	                                    "nvidia",
	                                    "io.containerd.runc.v2",
	                                    "io.containerd.runsc.v1",
	                                    "io.containerd.kata.v2"};
	static const char *const folders[] = {"/usr/bin/", "/usr/sbin/",      "/bin/",
	                                      "/sbin/",    "/usr/local/bin/", "/usr/local/sbin/"};
	const char *name = v;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		if (!strncmp(v, folders[i], strlen(folders[i])))
			name = v + strlen(folders[i]);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(known[i], name))
			return;
	dv_unknown(e->d, "--runtime %.100s is not known", v);
}
static void device_rule(eng *e, const char *v)
{
	dv_lose(e->d, SW_G(FS_WRITE) | SW_G(FS_READ),
	        "--device-cgroup-rule %.80s: devices of the host", v);
}

/* A list as podman reads it (CSV); Docker takes the whole as one, and none with a comma. */
static void each(eng *e, const char *v, void (*one)(eng *e, const char *v))
{
	bool bad = false;
	for (const char *p = v; p && !bad;) {
		char field[SW_PATH_MAX];
		p = dv_csv_field(p, field, sizeof(field), &bad);
		if (!bad)
			one(e, field);
	}
	if (bad)
		dv_unknown(e->d, "list \"%.100s\" cannot be read", v);
}

/* The engines' own default set, and what does no more than these. */
static void cap_one(eng *e, const char *v)
{
	static const char *const harmless[] = {
	    "chown",       "dac_override", "fowner",           "fsetid",    "kill",       "setgid",
	    "setuid",      "setpcap",      "net_bind_service", "net_raw",   "sys_chroot", "mknod",
	    "audit_write", "setfcap",      "net_broadcast",    "net_admin", "ipc_lock",   "lease",
	    "sys_nice",    "wake_alarm",   "block_suspend"};
	static const char blanks[] = " \t\r\n\v\f";
	char name[64];
	v += strspn(v, blanks);
	size_t n = strlen(v);
	while (n && strchr(blanks, v[n - 1]))
		n--;
	snprintf(name, sizeof(name), "%.*s", (int)n, v);
	e->groups = true; /* a plain user may have it as well */
	if (n >= sizeof(name) ||
	    !dv_cap_harmless(name, harmless, sizeof(harmless) / sizeof(*harmless)))
		dv_lose(e->d, DV_ESCAPE, "--cap-add %.60s: strong enough to leave the container",
		        v);
}
static void cap_add(eng *e, const char *v)
{
	each(e, v, cap_one);
}

static void seccomp_policy(eng *e, const char *v)
{
	if (strcmp(v, "default") != 0)
		dv_lose(e->d, SW_G(SYSCALLS), "--seccomp-policy %.60s: a filter that is not known",
		        v);
}

static void security(eng *e, const char *v)
{
	/* docker accepts both : and = */
	size_t n = strcspn(v, "=:");
	const char *value = v[n] ? v + n + 1 : "";
	static const char *const harmless[] = {"no-new-privileges", "apparmor", "label", "mask",
	                                       "proc-opts"};
	if (n == 7 && !strncmp(v, "seccomp", n)) {
		if (!strcmp(value, "unconfined"))
			dv_lose(e->d, SW_G(SYSCALLS), "--security-opt seccomp=unconfined");
		else if (e->podman || strcmp(value, "builtin") != 0) /* podman: a file's name */
			dv_lose(e->d, SW_G(SYSCALLS),
			        "--security-opt seccomp=%.80s: a filter that is not known", value);
		return;
	}
	if ((n == 6 && !strncmp(v, "unmask", n)) || (n == 11 && !strncmp(v, "systempaths", n)) ||
	    (n == 16 && !strncmp(v, "writable-cgroups", n))) {
		dv_lose(e->d, SW_G(FS_WRITE), "--security-opt %.80s: /proc and /sys of the host",
		        v);
		return;
	}
	if (n == 17 && !strncmp(v, "no-new-privileges", n))
		e->no_new_privs = !*value || !strcmp(value, "true");
	for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		if (strlen(harmless[i]) == n && !strncmp(v, harmless[i], n))
			return;
	dv_unknown(e->d, "--security-opt %.100s is not known", v);
}

static void device_one(eng *e, const char *v)
{
	char path[256], normal[256];
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(v, ":"), v);
	if (sw_path_normal(path, "/", normal, sizeof(normal)) && sw_place_device_harmless(normal))
		return;
	dv_lose(e->d, SW_G(FS_WRITE) | SW_G(FS_READ), "--device %.80s: a device of the host", v);
}
static void device(eng *e, const char *v)
{
	each(e, v, device_one);
}

static void volume(eng *e, const char *v)
{
	dv_engine_volume(e->d, v);
}
static void mount(eng *e, const char *v)
{
	dv_engine_mount(e->d, v);
}

static void log_driver(eng *e, const char *v)
{
	static const char *const local[] = {"",      "none",     "json-file",
	                                    "local", "journald", "k8s-file"};
	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
		if (!strcmp(v, local[i]))
			return;
	if (!strncmp(v, "passthrough", 11))
		dv_unknown(e->d, "--log-driver %.60s: the caller's descriptors are passed on", v);
	else
		dv_lose(e->d, SW_G(NETWORK), "--log-driver %.60s: what is printed goes elsewhere",
		        v);
}
static void log_opt_one(eng *e, const char *v)
{
	static const char *const harmless[] = {"max-size",        "max-file", "compress", "mode",
	                                       "max-buffer-size", "tag",      "labels",   "env"};
	size_t n = strcspn(v, "=");
	if (n == 4 && !strncmp(v, "path", n)) {
		dv_written_judge(e->d, "--log-opt path", v[n] ? v + n + 1 : "");
		return;
	}
	for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		if (strlen(harmless[i]) == n && !strncmp(v, harmless[i], n))
			return;
	dv_unknown(e->d, "--log-opt %.100s is not known", v);
}
static void log_opt(eng *e, const char *v)
{
	each(e, v, log_opt_one);
}
static void out_file(eng *e, const char *v)
{
	dv_written_judge(e->d, "--out", v);
}
static void init_path(eng *e, const char *v)
{
	dv_mount_add(e->d, DV_RO, v, "/run/podman-init", DV_SAME);
}
static void storage_size(eng *e, const char *v)
{
	if (strncmp(v, "size=", 5) != 0)
		dv_unknown(e->d, "--storage-opt %.100s is not known", v);
}
static void volume_driver(eng *e, const char *v)
{
	if (*v && strcmp(v, "local") != 0)
		dv_unknown(e->d, "--volume-driver %.80s: what its volumes show is not known", v);
}
static void preserve_fds(eng *e, const char *v)
{
	if (strcmp(v, "0") != 0)
		dv_unknown(e->d, "--preserve-fds %.60s: what the descriptors show is not known", v);
}

/* ---- the options of both clients ---- */

#define S(name)                         \
	{                               \
		name, 0, V_SWITCH, NULL \
	}
#define V(name)                        \
	{                              \
		name, 0, V_VALUE, NULL \
	}
static const eng_option run_options[] = {
    {"volume", 'v', V_VALUE, volume},
    {"mount", 0, V_VALUE, mount},
    {"network", 0, V_VALUE, network},
    {"net", 0, V_VALUE, network},
    {"pid", 0, V_VALUE, pid},
    {"ipc", 0, V_VALUE, ipc},
    {"pod", 0, V_VALUE, pod},
    {"pod-id-file", 0, V_VALUE, pod},
    {"privileged", 0, V_SWITCH, privileged},
    {"detach", 'd', V_SWITCH, detach},
    {"read-only", 0, V_SWITCH, read_only},
    {"rootfs", 0, V_SWITCH, rootfs},
    {"memory", 'm', V_VALUE, memory},
    {"pids-limit", 0, V_VALUE, pids},
    {"cgroups", 0, V_VALUE, cgroups},
    {"env", 'e', V_VALUE, env},
    {"env-host", 0, V_SWITCH, env_host},
    {"use-api-socket", 0, V_SWITCH, api_socket},
    {"workdir", 'w', V_VALUE, workdir},
    {"volumes-from", 0, V_VALUE, volumes_from},
    {"device", 0, V_VALUE, device},
    {"device-cgroup-rule", 0, V_VALUE, device_rule},
    {"cap-add", 0, V_VALUE, cap_add},
    {"security-opt", 0, V_VALUE, security},
    {"attach", 'a', V_VALUE, NULL},
    {"cpu-shares", 'c', V_VALUE, NULL},
    {"hostname", 'h', V_VALUE, NULL},
    {"interactive", 'i', V_SWITCH, NULL},
    {"label", 'l', V_VALUE, NULL},
    {"publish", 'p', V_VALUE, NULL},
    {"publish-all", 'P', V_SWITCH, NULL},
    {"quiet", 'q', V_SWITCH, NULL},
    {"tty", 't', V_SWITCH, NULL},
    {"user", 'u', V_VALUE, user},
    S("rm"),
    S("rmi"),
    S("init"),
    S("no-healthcheck"),
    S("oom-kill-disable"),
    S("disable-content-trust"),
    S("sig-proxy"),
    S("http-proxy"),
    S("no-hosts"),
    S("no-hostname"),
    S("replace"),
    S("tls-verify"),
    S("passwd"),
    S("unsetenv-all"),
    S("read-only-tmpfs"),
    V("add-host"),
    {"annotation", 0, V_VALUE, opaque},
    V("arch"),
    V("authfile"),
    V("blkio-weight"),
    V("blkio-weight-device"),
    V("cap-drop"),
    {"cgroup-conf", 0, V_VALUE, cgroup_conf},
    V("cgroup-parent"),
    V("cgroupns"),
    V("chrootdirs"),
    V("cidfile"),
    V("conmon-pidfile"),
    V("cpu-count"),
    V("cpu-percent"),
    V("cpu-period"),
    V("cpu-quota"),
    V("cpu-rt-period"),
    V("cpu-rt-runtime"),
    V("cpus"),
    V("cpuset-cpus"),
    V("cpuset-mems"),
    V("detach-keys"),
    V("device-read-bps"),
    V("device-read-iops"),
    V("device-write-bps"),
    V("device-write-iops"),
    V("dns"),
    V("dns-opt"),
    V("dns-option"),
    V("dns-search"),
    V("domainname"),
    {"entrypoint", 0, V_VALUE, entrypoint},
    {"env-file", 0, V_VALUE, env_file},
    V("env-merge"),
    V("expose"),
    {"gidmap", 0, V_VALUE, user_map},
    V("gpus"),
    {"group-add", 0, V_VALUE, group_add},
    V("group-entry"),
    V("health-cmd"),
    V("health-interval"),
    V("health-on-failure"),
    V("health-retries"),
    V("health-start-interval"),
    V("health-start-period"),
    V("health-startup-cmd"),
    V("health-timeout"),
    V("hostuser"),
    V("image-volume"),
    {"init-path", 0, V_VALUE, init_path},
    V("io-maxbandwidth"),
    V("io-maxiops"),
    V("ip"),
    V("ip6"),
    {"isolation", 0, V_VALUE, opaque},
    V("kernel-memory"),
    V("label-file"),
    V("link"),
    V("link-local-ip"),
    {"log-driver", 0, V_VALUE, log_driver},
    {"log-opt", 0, V_VALUE, log_opt},
    V("mac-address"),
    V("memory-reservation"),
    {"memory-swap", 0, V_VALUE, memory_swap},
    V("memory-swappiness"),
    V("name"),
    V("network-alias"),
    V("oom-score-adj"),
    V("os"),
    V("passwd-entry"),
    V("personality"),
    V("pidfile"),
    V("platform"),
    {"preserve-fds", 0, V_VALUE, preserve_fds},
    V("pull"),
    {"requires", 0, V_VALUE, opaque},
    {"restart", 0, V_VALUE, restart},
    {"runtime", 0, V_VALUE, runtime},
    V("sdnotify"),
    {"seccomp-policy", 0, V_VALUE, seccomp_policy},
    V("secret"),
    V("shm-size"),
    V("stop-signal"),
    V("stop-timeout"),
    {"storage-opt", 0, V_VALUE, storage_size},
    {"subgidname", 0, V_VALUE, user_map},
    {"subuidname", 0, V_VALUE, user_map},
    V("sysctl"),
    {"systemd", 0, V_VALUE, systemd},
    V("timeout"),
    V("tmpfs"),
    V("tz"),
    {"uidmap", 0, V_VALUE, user_map},
    V("ulimit"),
    V("umask"),
    V("unsetenv"),
    {"userns", 0, V_VALUE, user_map},
    V("uts"),
    V("variant"),
    {"volume-driver", 0, V_VALUE, volume_driver},
};

/* Before the sub-command. */
static const eng_option global_options[] = {
    {"context", 'c', V_VALUE, elsewhere},
    {"debug", 'D', V_SWITCH, NULL},
    {"host", 'H', V_VALUE, elsewhere},
    {"log-level", 'l', V_VALUE, NULL},
    {"remote", 'r', V_SWITCH, remote},
    {"config", 0, V_VALUE, elsewhere},
    S("tls"),
    V("tlscacert"),
    V("tlscert"),
    V("tlskey"),
    S("tlsverify"),
    V("cgroup-manager"),
    {"conmon", 0, V_VALUE, opaque},
    {"connection", 0, V_VALUE, elsewhere},
    V("events-backend"),
    {"hooks-dir", 0, V_VALUE, opaque},
    {"identity", 0, V_VALUE, elsewhere},
    {"imagestore", 0, V_VALUE, opaque},
    {"module", 0, V_VALUE, opaque},
    V("namespace"),
    {"network-cmd-path", 0, V_VALUE, opaque},
    {"network-config-dir", 0, V_VALUE, opaque},
    S("noout"),
    {"out", 0, V_VALUE, out_file},
    {"root", 0, V_VALUE, opaque},
    {"runroot", 0, V_VALUE, opaque},
    {"runtime", 0, V_VALUE, runtime},
    {"runtime-flag", 0, V_VALUE, opaque},
    {"ssh", 0, V_VALUE, elsewhere},
    {"storage-driver", 0, V_VALUE, opaque},
    {"storage-opt", 0, V_VALUE, opaque},
    S("syslog"),
    {"tmpdir", 0, V_VALUE, opaque},
    {"url", 0, V_VALUE, elsewhere},
    {"volumepath", 0, V_VALUE, opaque},
};
#undef S
#undef V

const eng_table dv_engine_global = {global_options,
                                    sizeof(global_options) / sizeof(*global_options)};
const eng_table dv_engine_run = {run_options, sizeof(run_options) / sizeof(*run_options)};
