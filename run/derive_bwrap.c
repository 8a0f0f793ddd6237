/* derive_bwrap.c - options of bubblewrap and of the built-in Landlock launcher. */
#include "derive_int.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "run_internal.h"

typedef struct bw {
	dv *d;
	bool user, net, pid, ipc, clearenv, seccomp, die, drop_all, own_uid;
	bool add_caps; /* capabilities that undo mounts */
} bw;

typedef void (*bw_handler)(bw *b, char *const *v);

/* v[0] is the option, v[1].. its values. */
static void all(bw *b, char *const *v)
{
	(void)v;
	b->user = b->net = b->pid = b->ipc = true;
}
static void share_net(bw *b, char *const *v)
{
	(void)v;
	b->net = false;
}
#define SWITCH(name, field)                     \
	static void name(bw *b, char *const *v) \
	{                                       \
		(void)v;                        \
		b->field = true;                \
	}
SWITCH(user, user)
SWITCH(net, net)
SWITCH(pid, pid)
SWITCH(ipc, ipc)
SWITCH(clear, clearenv)
SWITCH(filter, seccomp)
SWITCH(die, die)

static void uid(bw *b, char *const *v)
{
	b->own_uid = strcmp(v[1], "0") != 0;
}
static void cap_add(bw *b, char *const *v)
{
	const char *cap = strncasecmp(v[1], "cap_", 4) ? v[1] : v[1] + 4;
	static const char *const strong[] = {
	    "all",   "sys_admin", "sys_ptrace", "sys_module", "sys_rawio", "dac_read_search",
	    "mknod", "bpf",       "setuid",     "sys_chroot"};
	for (size_t i = 0; i < sizeof(strong) / sizeof(*strong); i++)
		if (!strcasecmp(cap, strong[i]))
			b->add_caps = true;
}
static void cap_drop(bw *b, char *const *v)
{
	if (!strcasecmp(v[1], "all")) {
		b->drop_all = true;
		b->add_caps = false;
	}
}
static void bind_rw(bw *b, char *const *v)
{
	dv_mount_add(b->d, DV_RW, v[1], v[2], false);
}
static void bind_ro(bw *b, char *const *v)
{
	dv_mount_add(b->d, DV_RO, v[1], v[2], false);
}
static void empty(bw *b, char *const *v)
{
	dv_mount_add(b->d, DV_EMPTY, NULL, v[1], false);
}
static void bind_fd(bw *b, char *const *v)
{
	dv_unknown(b->d, "%s %s: what the descriptor shows is not known", v[0], v[1]);
}
static void ro_bind_fd(bw *b, char *const *v)
{
	dv_lose(b->d, SW_G(FS_READ), "%s %s: what the descriptor shows is not known", v[0], v[1]);
	dv_mount_add(b->d, DV_EMPTY, NULL, v[2], false);
}
static void from_file(bw *b, char *const *v)
{
	dv_unknown(b->d, "%s: options that stand elsewhere cannot be read", v[0]);
}
static void chdir_to(bw *b, char *const *v)
{
	free(b->d->out->cwd);
	b->d->out->cwd = strdup(v[1]);
}
/* Lower layers can be read; with --overlay the last named takes the writes. */
static void overlay_src(bw *b, char *const *v)
{
	(void)b;
	(void)v; /* judged at the mount that uses it */
}

/* --remount-ro is left out: what is mounted below the target stays writable. */
static const struct {
	const char *name;
	bw_handler handle;
} handlers[] = {
    {"--unshare-all", all},
    {"--share-net", share_net},
    {"--unshare-user", user},
    {"--unshare-net", net},
    {"--unshare-pid", pid},
    {"--unshare-ipc", ipc},
    {"--clearenv", clear},
    {"--seccomp", filter},
    {"--add-seccomp-fd", filter},
    {"--die-with-parent", die},
    {"--uid", uid},
    {"--cap-add", cap_add},
    {"--cap-drop", cap_drop},
    {"--bind", bind_rw},
    {"--bind-try", bind_rw},
    {"--dev-bind", bind_rw},
    {"--dev-bind-try", bind_rw},
    {"--ro-bind", bind_ro},
    {"--ro-bind-try", bind_ro},
    {"--bind-fd", bind_fd},
    {"--ro-bind-fd", ro_bind_fd},
    {"--tmpfs", empty},
    {"--proc", empty},
    {"--dev", empty},
    {"--mqueue", empty},
    {"--args", from_file},
    {"--chdir", chdir_to},
    {"--overlay-src", overlay_src},
};

/* --overlay-src A --overlay-src B --tmp-overlay DEST: A and B are seen on DEST. */
static bool overlay(bw *b, char *const *v, size_t before)
{
	bool rw = !strcmp(v[0], "--overlay");
	if (!rw && strcmp(v[0], "--tmp-overlay") != 0 && strcmp(v[0], "--ro-overlay") != 0)
		return false;
	const char *target = rw ? v[3] : v[1];
	bool same = false;
	if (rw) {
		dv_mount_add(b->d, DV_RW, v[1], target, false);
		same = true;
	}
	/* the sources stand directly before, each with its one value */
	for (size_t k = 2; k <= before && !strcmp(v[-(ptrdiff_t)k], "--overlay-src"); k += 2) {
		dv_mount_add(b->d, DV_RO, v[1 - (ptrdiff_t)k], target, same);
		same = true;
	}
	return true;
}

/* before: how many options and values stand before v. */
static void handle(bw *b, char *const *v, size_t before)
{
	if (overlay(b, v, before))
		return;
	for (size_t i = 0; i < sizeof(handlers) / sizeof(*handlers); i++)
		if (!strcmp(handlers[i].name, v[0])) {
			handlers[i].handle(b, v);
			return;
		}
}

static void judge(bw *b)
{
	dv *d = b->d;
	bool started_clean = d->have & SW_G(ENV); /* env -i before it */
	d->have |= SW_G(FS_WRITE) | SW_G(FS_READ);
	d->have |= b->net ? SW_G(NETWORK) : 0;
	d->have |= b->pid ? SW_G(PID) : 0;
	d->have |= b->ipc ? SW_G(IPC) : 0;
	d->have |= b->clearenv ? SW_G(ENV) : 0;
	d->have |= b->seccomp ? SW_G(SYSCALLS) : 0;
	d->have |= b->pid && b->die ? SW_G(TREE_KILL) : 0;
	d->out->network = b->net ? SW_NETWORK_DENIED : SW_NETWORK_ALLOWED;

	static const struct {
		uint32_t guarantee;
		const char *text;
	} missing[] = {
	    {SW_G(NETWORK),
	     "no --unshare-net or --unshare-all, or --share-net: the host's network"},
	    {SW_G(PID), "no --unshare-pid: processes of the host can be signalled"},
	    {SW_G(IPC), "no --unshare-ipc: shared memory and queues of the host"},
	    {SW_G(ENV), "no --clearenv: the caller's environment is passed on"},
	    {SW_G(SYSCALLS), "no --seccomp: system calls are not filtered"},
	    {SW_G(RESOURCES), "bwrap sets no limits on memory or processes"},
	    {SW_G(TREE_KILL), "needs --die-with-parent and --unshare-pid"},
	};
	uint32_t have = d->have | (d->opts->supervised ? SW_G(TREE_KILL) : 0);
	for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++)
		if (!(have & missing[i].guarantee))
			dv_lose(d, missing[i].guarantee, "%s", missing[i].text);
	if (b->clearenv && b->pid && !started_clean)
		dv_note(d, "bwrap's first process keeps its own environment in /proc/1/environ: "
		           "start it with "
		           "an empty one");
	/* The command can mount, and so makes a read-only bind writable and lifts what hides. */
	if (b->add_caps)
		dv_lose(d, SW_G(FS_WRITE) | SW_G(FS_READ),
		        "--cap-add: the command can change the sandbox's mounts");
	else if (d->opts->uid == 0 && !b->drop_all && !b->own_uid)
		dv_lose(d, SW_G(FS_WRITE) | SW_G(FS_READ),
		        "root without --cap-drop ALL keeps every capability: it can remount the "
		        "sandbox "
		        "writable");
}

void dv_read_bwrap(dv *d, size_t at)
{
	bw b = {.d = d};
	size_t i = at;
	for (; i < d->argc && d->argv[i][0] == '-'; i++) {
		if (!strcmp(d->argv[i], "--")) {
			i++;
			break;
		}
		const run_option *o = run_bwrap_option(d->argv[i]);
		if (!o) {
			dv_unknown(d, "bwrap option \"%.60s\" is not known", d->argv[i]);
			return;
		}
		if (i + (size_t)o->values >= d->argc) {
			dv_unknown(d, "bwrap option %.60s lacks its value", d->argv[i]);
			return;
		}
		handle(&b, d->argv + i, i - at);
		i += (size_t)o->values;
	}
	if (dv_is_unknown(d))
		return;
	if (i >= d->argc) {
		dv_unknown(d, "bwrap has no command");
		return;
	}
	d->out->command = i;
	dv_mounts_judge(d);
	judge(&b);
}

/* ---- sandwitness __landlock ---- */

void dv_read_landlock(dv *d, size_t at)
{
	static const struct {
		const char *name;
		int values;
	} options[] = {{"--ro", 1},       {"--ro-try", 1},      {"--rw", 1},
	               {"--rw-try", 1},   {"--dev-try", 1},     {"--hide", 1},
	               {"--deny-tcp", 0}, {"--clearenv", 0},    {"--setenv", 2},
	               {"--chdir", 1},    {"--new-session", 0}, {"--die-with-parent", 0},
	               {"--exec-fd", 1}};
	size_t i = at;
	bool end = false;
	d->have |= SW_G(FS_WRITE) | SW_G(FS_READ);
	for (; i < d->argc && !end; i++) {
		char *const *v = d->argv + i;
		size_t k = 0, n = sizeof(options) / sizeof(*options);
		if (!strcmp(v[0], "--")) {
			end = true;
			continue;
		}
		while (k < n && strcmp(options[k].name, v[0]) != 0)
			k++;
		if (k == n || i + (size_t)options[k].values >= d->argc) {
			dv_unknown(d, "launcher option \"%.60s\" is not known or lacks its value",
			           v[0]);
			return;
		}
		/* Landlock has no order: every grant counts, nothing covers another. */
		if (!strcmp(v[0], "--rw") || !strcmp(v[0], "--rw-try"))
			dv_mount_add(d, DV_RW, v[1], v[1], d->n_mounts > 0);
		else if (!strcmp(v[0], "--ro") || !strcmp(v[0], "--ro-try"))
			dv_mount_add(d, DV_RO, v[1], v[1], d->n_mounts > 0);
		else if (!strcmp(v[0], "--clearenv"))
			d->have |= SW_G(ENV);
		else if (!strcmp(v[0], "--chdir")) {
			free(d->out->cwd);
			d->out->cwd = strdup(v[1]);
		}
		i += (size_t)options[k].values;
	}
	if (!end || i >= d->argc) {
		dv_unknown(d, "the launcher has no command");
		return;
	}
	d->out->command = i;
	d->out->network = SW_NETWORK_ALLOWED; /* UDP is */
	dv_mounts_judge(d);
	dv_lose(d, SW_G(NETWORK), "Landlock cannot restrict UDP");
	dv_lose(d, SW_G(PID) | SW_G(IPC), "Landlock has no namespaces");
	dv_lose(d, SW_G(SYSCALLS) | SW_G(RESOURCES),
	        "Landlock filters no system calls and sets no limits");
	if (!(d->have & SW_G(ENV)))
		dv_lose(d, SW_G(ENV), "no --clearenv: the caller's environment is passed on");
	if (!d->opts->supervised)
		dv_lose(d, SW_G(TREE_KILL), "only a supervisor ends the tree");
}
