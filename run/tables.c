/*
 * What is known about the command lines of the runners: which program is which
 * backend, and which of their options take values or descriptors. Only as much as is
 * needed to find the wrapped command and to add an option without disturbing others.
 * Sources: the runners' manual pages and usage texts.
 */
#include <string.h>

#include "run_internal.h"

/* program name, backend */
static const struct {
	const char *name, *backend;
} programs[] = {
    {"bwrap", "bwrap"},
    {"sandbox-exec", "seatbelt"},
    {"docker", "docker"},
    {"podman", "podman"},
    {"podman-remote", "podman"},
    {"nerdctl", "nerdctl"},
    {"ctr", "ctr"},
    {"runc", "runc"},
    {"crun", "crun"},
    {"runsc", "gvisor"},
    {"landlock-run", "landlock-run"},
    {"landrun", "landrun"},
    {"sandwitness-landlock", "landlock"},
    {"setpriv", "setpriv"},
    {"unshare", "unshare"},
    {"chroot", "chroot"},
    {"firejail", "firejail"},
    {"nsjail", "nsjail"},
    {"minijail0", "minijail"},
    {"systemd-run", "systemd-run"},
    {"systemd-nspawn", "systemd-nspawn"},
    {"apptainer", "apptainer"},
    {"singularity", "apptainer"},
    {"lxc-execute", "lxc"},
    {"lxc-start", "lxc"},
    {"lxc-attach", "lxc"},
    {"lxc", "lxc"},
    {"incus", "lxc"},
    {"container", "apple-container"},
    {"srt", "srt"},
    {"codex-linux-sandbox", "codex-linux-sandbox"},
    {"codex-windows-sandbox", "codex-windows-sandbox"},
    {"wsl", "wsl"},
    {"wsl.exe", "wsl"},
};

const char *run_backend_of_program(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');
	const char *base = slash ? slash + 1 : argv0;
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
		if (!strcmp(base, programs[i].name))
			return programs[i].backend;
	return NULL;
}

/* Programs that only set something and then execute the rest of their arguments. */
static const char *const passing[] = {"env",    "nice",   "nohup", "timeout", "setsid",
                                      "ionice", "stdbuf", "chrt",  "taskset", "sudo"};

bool run_is_passing_program(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');
	const char *base = slash ? slash + 1 : argv0;
	for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
		if (!strcmp(base, passing[i]))
			return true;
	return false;
}

/* bwrap: number of arguments; which of them is a descriptor that bwrap inherits (-1: none) */
static const run_option bwrap_options[] = {
    {"--help", 0, -1},
    {"--version", 0, -1},
    {"--args", 1, 0},
    {"--argv0", 1, -1},
    {"--level-prefix", 0, -1},
    {"--unshare-all", 0, -1},
    {"--share-net", 0, -1},
    {"--unshare-user", 0, -1},
    {"--unshare-user-try", 0, -1},
    {"--unshare-ipc", 0, -1},
    {"--unshare-pid", 0, -1},
    {"--unshare-net", 0, -1},
    {"--unshare-uts", 0, -1},
    {"--unshare-cgroup", 0, -1},
    {"--unshare-cgroup-try", 0, -1},
    {"--userns", 1, 0},
    {"--userns2", 1, 0},
    {"--disable-userns", 0, -1},
    {"--assert-userns-disabled", 0, -1},
    {"--pidns", 1, 0},
    {"--uid", 1, -1},
    {"--gid", 1, -1},
    {"--hostname", 1, -1},
    {"--chdir", 1, -1},
    {"--clearenv", 0, -1},
    {"--setenv", 2, -1},
    {"--unsetenv", 1, -1},
    {"--lock-file", 1, -1},
    {"--sync-fd", 1, 0},
    {"--bind", 2, -1},
    {"--bind-try", 2, -1},
    {"--dev-bind", 2, -1},
    {"--dev-bind-try", 2, -1},
    {"--ro-bind", 2, -1},
    {"--ro-bind-try", 2, -1},
    {"--bind-fd", 2, 0},
    {"--ro-bind-fd", 2, 0},
    {"--remount-ro", 1, -1},
    {"--overlay-src", 1, -1},
    {"--overlay", 3, -1},
    {"--tmp-overlay", 1, -1},
    {"--ro-overlay", 1, -1},
    {"--exec-label", 1, -1},
    {"--file-label", 1, -1},
    {"--proc", 1, -1},
    {"--dev", 1, -1},
    {"--tmpfs", 1, -1},
    {"--mqueue", 1, -1},
    {"--dir", 1, -1},
    {"--file", 2, 0},
    {"--bind-data", 2, 0},
    {"--ro-bind-data", 2, 0},
    {"--symlink", 2, -1},
    {"--seccomp", 1, 0},
    {"--add-seccomp-fd", 1, 0},
    {"--block-fd", 1, 0},
    {"--userns-block-fd", 1, 0},
    {"--info-fd", 1, 0},
    {"--json-status-fd", 1, 0},
    {"--new-session", 0, -1},
    {"--die-with-parent", 0, -1},
    {"--as-pid-1", 0, -1},
    {"--cap-add", 1, -1},
    {"--cap-drop", 1, -1},
    {"--perms", 1, -1},
    {"--size", 1, -1},
    {"--chmod", 2, -1},
};

const run_option *run_bwrap_option(const char *arg)
{
	for (size_t i = 0; i < sizeof bwrap_options / sizeof bwrap_options[0]; i++)
		if (!strcmp(arg, bwrap_options[i].name))
			return &bwrap_options[i];
	return NULL;
}

/* Engines: options before the sub-command that take a value, and switches after it. */
static const char *const engine_global_values[] = {"-H",
                                                   "--host",
                                                   "-c",
                                                   "--context",
                                                   "-l",
                                                   "--log-level",
                                                   "--config",
                                                   "--tlscacert",
                                                   "--tlscert",
                                                   "--tlskey",
                                                   "--root",
                                                   "--runroot",
                                                   "--runtime",
                                                   "--storage-driver",
                                                   "--storage-opt",
                                                   "--url",
                                                   "--connection",
                                                   "--identity",
                                                   "--cgroup-manager",
                                                   "--conmon",
                                                   "--events-backend",
                                                   "--hooks-dir",
                                                   "--imagestore",
                                                   "--module",
                                                   "--network-cmd-path",
                                                   "--network-config-dir",
                                                   "--tmpdir",
                                                   "--volumepath",
                                                   "--runtime-flag",
                                                   "--namespace",
                                                   "--registries-conf",
                                                   "--default-mounts-file",
                                                   "--out",
                                                   "--ssh",
                                                   "-a",
                                                   "--address",
                                                   "-n",
                                                   "--snapshotter",
                                                   "--cni-path",
                                                   "--cni-netconfpath",
                                                   "--data-root",
                                                   "--cgroup-parent",
                                                   NULL};

/* docker run, podman run: every other option takes a value */
static const char *const engine_run_switches[] = {"-d",
                                                  "--detach",
                                                  "-i",
                                                  "--interactive",
                                                  "-t",
                                                  "--tty",
                                                  "--rm",
                                                  "--init",
                                                  "--privileged",
                                                  "-P",
                                                  "--publish-all",
                                                  "--read-only",
                                                  "--no-healthcheck",
                                                  "--oom-kill-disable",
                                                  "--disable-content-trust",
                                                  "-q",
                                                  "--quiet",
                                                  "--sig-proxy",
                                                  "--help",
                                                  "--use-api-socket",
                                                  "--env-host",
                                                  "--http-proxy",
                                                  "--no-hosts",
                                                  "--no-hostname",
                                                  "--replace",
                                                  "--rmi",
                                                  "--tls-verify",
                                                  "--passwd",
                                                  "--unsetenv-all",
                                                  "--read-only-tmpfs",
                                                  "--rootfs",
                                                  "--env-merge-off",
                                                  NULL};

static const char *const oci_global_values[] = {
    "--log",  "--log-format", "--log-level",      "--root",
    "--criu", "--rootless",   "--cgroup-manager", NULL};
static const char *const oci_run_switches[] = {
    "-d", "--detach", "--no-pivot",     "--no-new-keyring", "--keep", "--no-subreaper",
    "-t", "--tty",    "--no-new-privs", "--help",           NULL};

const run_engine *run_engine_of(const char *backend)
{
	static const run_engine engines[] = {
	    {"docker", engine_global_values, engine_run_switches, "--cidfile", "ditPq"},
	    {"podman", engine_global_values, engine_run_switches, "--cidfile", "ditPq"},
	    {"nerdctl", engine_global_values, engine_run_switches, "--cidfile", "ditPq"},
	    {"runc", oci_global_values, oci_run_switches, "--pid-file", "dt"},
	    {"crun", oci_global_values, oci_run_switches, "--pid-file", "dt"},
	};
	for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
		if (!strcmp(backend, engines[i].backend))
			return &engines[i];
	return NULL;
}

bool run_in_list(const char *const *list, const char *arg, size_t n)
{
	for (; *list; list++)
		if (strlen(*list) == n && !memcmp(*list, arg, n))
			return true;
	return false;
}
