/* wrappers.c - firejail, nsjail, systemd-run: runners that `run --sandbox` does not build
 * for, proved with a plain argv of their own. What holds is what the steps showed. */
#include "probe_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 48

typedef struct wrapper {
	const char *id, *version;
	const char *args[ARGS_MAX]; /* "@" stands for the workspace, "@:@" for a bind of it */
	uint32_t expected;
} wrapper;

static const wrapper wrappers[] = {
    {"firejail",
     "--version",
     {"--quiet", "--noprofile", "--private", "--read-only=/", "--read-write=@", "--private-dev",
      "--net=none", "--caps.drop=all", "--seccomp", "--nonewprivs", "--ipc-namespace", "--"},
     SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(NETWORK) | SW_G(PID) | SW_G(IPC) | SW_G(SYSCALLS)},
    {"nsjail",
     "--version",
     {"--mode",  "o",
      "--quiet", "--bindmount_ro",
      "/usr",    "--bindmount_ro",
      "/bin",    "--bindmount_ro",
      "/lib",    "--bindmount_ro",
      "/lib64",  "--bindmount_ro",
      "/etc",    "--tmpfsmount",
      "/tmp",    "--bindmount",
      "@",       "--cwd",
      "@",       "--"},
     SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(ENV) | SW_G(NETWORK) | SW_G(PID) | SW_G(IPC)},
    {"systemd-run",
     "--version",
     {"--quiet", "--wait", "--pipe", "--collect", "--property=ProtectSystem=strict",
      "--property=ProtectHome=yes", "--property=PrivateNetwork=yes",
      "--property=NoNewPrivileges=yes", "--property=ReadWritePaths=@", "--"},
     SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(ENV) | SW_G(NETWORK)},
};

static char *with_workspace(const char *arg, const char *workspace)
{
	char out[512];
	const char *at = strchr(arg, '@');
	if (!at)
		return strdup(arg);
	snprintf(out, sizeof(out), "%.*s%s%s", (int)(at - arg), arg, workspace, at + 1);
	return strdup(out);
}

static void prove(const pr_call *c, sw_backend_status *b, const wrapper *w, pf_proof *p)
{
	char *argv[ARGS_MAX + PF_ARGS_MAX + 4] = {strdup(b->path)};
	size_t n = 1;
	sw_str command[PF_ARGS_MAX];
	if (!strcmp(w->id, "systemd-run") && c->host.uid != 0)
		argv[n++] = strdup("--user");
	for (size_t i = 0; i < ARGS_MAX && w->args[i]; i++)
		argv[n++] = with_workspace(w->args[i], p->workspace);
	size_t count = pf_command(p, command);
	for (size_t i = 0; i < count; i++)
		argv[n++] = strndup(command[i].ptr, command[i].len);
	bool whole = true;
	for (size_t i = 0; i < n; i++)
		whole &= argv[i] != NULL;
	if (whole) {
		pb_outcome o;
		pr_spawn(c, p, argv, NULL, &o);
		pr_conclude(c, b, p, &o, w->expected, w->expected, SW_PROBE_FULL);
		/* options of this proof, not of the runner as such: env and limits are not claimed
		 */
		pb_outcome_free(&o);
	} else {
		*c->no_memory = true;
	}
	for (size_t i = 0; i < n; i++)
		free(argv[i]);
}

void pr_probe_wrapper(const pr_call *c, sw_backend_status *b)
{
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(*wrappers); i++) {
		if (strcmp(wrappers[i].id, b->id) != 0)
			continue;
		pf_proof p;
		pr_version(c, b, wrappers[i].version);
		if (!pr_planted(c, b, &p))
			return;
		prove(c, b, &wrappers[i], &p);
		pf_clear(&p);
	}
}
