/* derive_engine.c - options of `docker run` and `podman run`. */
#include "derive_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct eng {
	dv *d;
	bool network_none, network_other, privileged, detach, read_only, rootfs;
	bool memory, pids;
	const char *workdir;
} eng;

typedef enum { V_SWITCH, V_VALUE } arity;
typedef struct eng_option eng_option;
struct eng_option {
	const char *name;
	char letter; /* 0: none */
	arity takes;
	void (*handle)(eng *e, const char *value); /* NULL: changes no guarantee */
};

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
static void pid(eng *e, const char *v)
{
	if (!strcmp(v, "host") || !strncmp(v, "container:", 10) || !strncmp(v, "ns:", 3))
		dv_lose(e->d, SW_G(PID) | SW_G(TREE_KILL),
		        "--pid %.80s: processes outside can be reached", v);
}
static void ipc(eng *e, const char *v)
{
	if (!strcmp(v, "host") || !strncmp(v, "container:", 10) || !strncmp(v, "ns:", 3))
		dv_lose(e->d, SW_G(IPC), "--ipc %.80s: shared memory with others", v);
}
static void pod(eng *e, const char *v)
{
	dv_lose(e->d, SW_G(NETWORK) | SW_G(IPC), "--pod %.80s: network and memory of the pod", v);
}
static void memory(eng *e, const char *v)
{
	e->memory = strtod(v, NULL) > 0;
}
static void pids(eng *e, const char *v)
{
	e->pids = strtol(v, NULL, 10) > 0;
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
	if (!strcmp(v, "*"))
		dv_lose(e->d, SW_G(ENV), "--env '*': the caller's environment is passed on");
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
static void volumes_from(eng *e, const char *v)
{
	dv_unknown(e->d, "--volumes-from %.100s: what it shows is not known", v);
}
/* Any program may stand in for the runtime; these confine. */
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
	const char *slash = strrchr(v, '/');
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(known[i], slash ? slash + 1 : v))
			return;
	dv_unknown(e->d, "--runtime %.100s is not known", v);
}
static void device_rule(eng *e, const char *v)
{
	dv_lose(e->d, SW_G(FS_WRITE) | SW_G(FS_READ),
	        "--device-cgroup-rule %.80s: devices of the host", v);
}

static void cap_add(eng *e, const char *v)
{
	static const char *const strong[] = {"all",       "sys_admin",  "sys_module",
	                                     "sys_rawio", "sys_ptrace", "dac_read_search",
	                                     "bpf",       "perfmon"};
	for (const char *p = v; *p;) {
		size_t n = strcspn(p, ",");
		const char *cap = p;
		size_t len = n;
		if (len > 4 && !strncasecmp(cap, "cap_", 4)) {
			cap += 4;
			len -= 4;
		}
		for (size_t i = 0; i < sizeof(strong) / sizeof(*strong); i++)
			if (strlen(strong[i]) == len && !strncasecmp(cap, strong[i], len))
				dv_lose(e->d, SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(SYSCALLS),
				        "--cap-add %.60s: strong enough to leave the container",
				        strong[i]);
		p += n + (p[n] == ',');
	}
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
		else if (strcmp(value, "builtin") != 0)
			dv_lose(e->d, SW_G(SYSCALLS),
			        "--security-opt seccomp=%.80s: a filter that is not known", value);
		return;
	}
	if ((n == 6 && !strncmp(v, "unmask", n)) || (n == 11 && !strncmp(v, "systempaths", n)) ||
	    (n == 17 && !strncmp(v, "writable-cgroups", n))) {
		dv_lose(e->d, SW_G(FS_WRITE), "--security-opt %.80s: /proc and /sys of the host",
		        v);
		return;
	}
	for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		if (strlen(harmless[i]) == n && !strncmp(v, harmless[i], n))
			return;
	dv_unknown(e->d, "--security-opt %.100s is not known", v);
}

static void device(eng *e, const char *v)
{
	static const char *const safe[] = {
	    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
	    "/dev/fuse", "/dev/dri",  "/dev/kvm",  "/dev/snd",    "/dev/net/tun"};
	char path[256], normal[256];
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(v, ":"), v);
	if (sw_path_normal(path, "/", normal, sizeof(normal)))
		for (size_t i = 0; i < sizeof(safe) / sizeof(*safe); i++)
			if (sw_path_covers(safe[i], normal))
				return;
	dv_lose(e->d, SW_G(FS_WRITE) | SW_G(FS_READ), "--device %.80s: a device of the host", v);
}

static void volume(eng *e, const char *v)
{
	dv_engine_volume(e->d, v);
}
static void mount(eng *e, const char *v)
{
	dv_engine_mount(e->d, v);
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
    {"user", 'u', V_VALUE, NULL},
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
    V("annotation"),
    V("arch"),
    V("authfile"),
    V("blkio-weight"),
    V("blkio-weight-device"),
    V("cap-drop"),
    V("cgroup-conf"),
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
    V("entrypoint"),
    V("env-file"),
    V("env-merge"),
    V("expose"),
    V("gidmap"),
    V("gpus"),
    V("group-add"),
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
    V("init-path"),
    V("io-maxbandwidth"),
    V("io-maxiops"),
    V("ip"),
    V("ip6"),
    V("isolation"),
    V("kernel-memory"),
    V("label-file"),
    V("link"),
    V("link-local-ip"),
    V("log-driver"),
    V("log-opt"),
    V("mac-address"),
    V("memory-reservation"),
    V("memory-swap"),
    V("memory-swappiness"),
    V("name"),
    V("network-alias"),
    V("oom-score-adj"),
    V("os"),
    V("passwd-entry"),
    V("personality"),
    V("pidfile"),
    V("platform"),
    V("preserve-fds"),
    V("pull"),
    V("requires"),
    V("restart"),
    {"runtime", 0, V_VALUE, runtime},
    V("sdnotify"),
    V("seccomp-policy"),
    V("secret"),
    V("shm-size"),
    V("stop-signal"),
    V("stop-timeout"),
    V("storage-opt"),
    V("subgidname"),
    V("subuidname"),
    V("sysctl"),
    V("systemd"),
    V("timeout"),
    V("tmpfs"),
    V("tz"),
    V("uidmap"),
    V("ulimit"),
    V("umask"),
    V("unsetenv"),
    V("userns"),
    V("uts"),
    V("variant"),
    V("volume-driver"),
};

/* Before the sub-command. */
static const eng_option global_options[] = {
    {"context", 'c', V_VALUE, NULL},
    {"debug", 'D', V_SWITCH, NULL},
    {"host", 'H', V_VALUE, NULL},
    {"log-level", 'l', V_VALUE, NULL},
    {"remote", 'r', V_SWITCH, NULL},
    V("config"),
    S("tls"),
    V("tlscacert"),
    V("tlscert"),
    V("tlskey"),
    S("tlsverify"),
    V("cgroup-manager"),
    V("conmon"),
    V("connection"),
    V("events-backend"),
    V("hooks-dir"),
    V("identity"),
    V("imagestore"),
    V("module"),
    V("namespace"),
    V("network-cmd-path"),
    V("network-config-dir"),
    S("noout"),
    V("out"),
    V("root"),
    V("runroot"),
    {"runtime", 0, V_VALUE, runtime},
    V("runtime-flag"),
    V("ssh"),
    V("storage-driver"),
    V("storage-opt"),
    S("syslog"),
    V("tmpdir"),
    V("url"),
    V("volumepath"),
};
#undef S
#undef V

typedef struct {
	const eng_option *list;
	size_t n;
} eng_table;

static const eng_option *by_name(eng_table t, const char *name, size_t n)
{
	for (size_t i = 0; i < t.n; i++)
		if (!strncmp(t.list[i].name, name, n) && !t.list[i].name[n])
			return &t.list[i];
	return NULL;
}

static const eng_option *by_letter(eng_table t, char c)
{
	for (size_t i = 0; i < t.n; i++)
		if (t.list[i].letter == c)
			return &t.list[i];
	return NULL;
}

static void use(eng *e, const eng_option *o, const char *value)
{
	if (o->handle)
		o->handle(e, value);
}

/* One argument that begins with '-', with its value. Returns how many were used, 0: not read. */
static size_t read_long(eng *e, eng_table t, size_t i)
{
	const char *a = e->d->argv[i] + 2, *eq = strchr(a, '=');
	const eng_option *o = by_name(t, a, eq ? (size_t)(eq - a) : strlen(a));
	if (!o)
		return 0;
	if (eq || o->takes == V_SWITCH) {
		use(e, o, eq ? eq + 1 : "true");
		return 1;
	}
	if (i + 1 >= e->d->argc)
		return 0;
	use(e, o, e->d->argv[i + 1]);
	return 2;
}

static size_t read_letters(eng *e, eng_table t, size_t i)
{
	for (const char *c = e->d->argv[i] + 1; *c; c++) {
		const eng_option *o = by_letter(t, *c);
		if (!o)
			return 0;
		if (o->takes == V_SWITCH) {
			if (c[1] == '=') {
				use(e, o, c + 2);
				return 1;
			}
			use(e, o, "true");
			continue;
		}
		if (c[1]) {
			use(e, o, c + 1 + (c[1] == '='));
			return 1;
		}
		if (i + 1 >= e->d->argc)
			return 0;
		use(e, o, e->d->argv[i + 1]);
		return 2;
	}
	return 1;
}

/* Reads options from i; returns the first argument after them, argc where it cannot. */
static size_t read_options(eng *e, eng_table t, size_t i)
{
	dv *d = e->d;
	while (i < d->argc && d->argv[i][0] == '-' && d->argv[i][1]) {
		if (!strcmp(d->argv[i], "--"))
			return i + 1;
		size_t used = d->argv[i][1] == '-' ? read_long(e, t, i) : read_letters(e, t, i);
		if (!used) {
			dv_unknown(d, "option \"%.80s\" is not known or lacks its value",
			           d->argv[i]);
			return d->argc;
		}
		i += used;
	}
	return i;
}

static void judge(eng *e)
{
	dv *d = e->d;
	d->have |= SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(PID) | SW_G(IPC) | SW_G(ENV) |
	           SW_G(SYSCALLS) | SW_G(TREE_KILL);
	d->out->network = SW_NETWORK_ALLOWED;
	if (e->network_none && !e->network_other) {
		d->have |= SW_G(NETWORK);
		d->out->network = SW_NETWORK_DENIED;
	} else {
		dv_lose(d, SW_G(NETWORK), "no --network none: the container has a network");
	}
	if (e->memory && e->pids)
		d->have |= SW_G(RESOURCES);
	else
		dv_lose(d, SW_G(RESOURCES), "needs --memory and --pids-limit");
	if (e->privileged)
		dv_lose(d, DV_ESCAPE | SW_G(RESOURCES),
		        "--privileged: the host's devices and every capability");
	if (e->detach)
		dv_lose(d, SW_G(TREE_KILL), "--detach: nobody waits for the container");
}

void dv_read_engine(dv *d, size_t at)
{
	eng e = {.d = d};
	eng_table global = {global_options, sizeof(global_options) / sizeof(*global_options)};
	eng_table run = {run_options, sizeof(run_options) / sizeof(*run_options)};
	d->sockets_matter = true;
	size_t i = read_options(&e, global, at);
	if (i < d->argc && !strcmp(d->argv[i], "container"))
		i++;
	if (i >= d->argc || strcmp(d->argv[i], "run") != 0) {
		dv_unknown(
		    d, "only \"run\" is read: another sub-command's container was made elsewhere");
		return;
	}
	i = read_options(&e, run, i + 1);
	if (dv_is_unknown(d))
		return;
	if (i >= d->argc) {
		dv_unknown(d, "no image");
		return;
	}
	if (e.rootfs) {
		/* the image is a folder of the host; ":O" puts a throw-away layer over it */
		size_t n = strlen(d->argv[i]);
		bool overlay = n > 2 && !strcmp(d->argv[i] + n - 2, ":O");
		char *folder = strndup(d->argv[i], overlay ? n - 2 : n);
		if (folder)
			dv_mount_add(d, e.read_only || overlay ? DV_RO : DV_RW, folder, "/", true);
		free(folder);
	}
	d->out->command = i + 1 < d->argc ? i + 1 : d->argc;
	if (e.workdir)
		d->out->cwd = strdup(e.workdir);
	dv_mounts_judge(d);
	judge(&e);
}
