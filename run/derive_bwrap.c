/* derive_bwrap.c - options of bubblewrap and of the built-in Landlock launcher. */
#include "derive_int.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "run_internal.h"

typedef struct bw {
	dv *d;
	bool user, net, pid, ipc, clearenv, seccomp, die, drop_all, own_uid, proc;
	bool add_caps; /* capabilities that undo mounts, or that are not known */
	bool joined;   /* a user namespace that others may be in */
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
SWITCH(join_user, joined)

static void new_session(bw *b, char *const *v)
{
	(void)v;
	b->d->new_session = true;
}
/* bwrap reads the number its own way ("00" is 0, and so is 4294967296): only the plain form. */
static void uid(bw *b, char *const *v)
{
	size_t n = strlen(v[1]);
	b->own_uid = n > 0 && n < 10 && v[1][0] != '0' && strspn(v[1], "0123456789") == n;
}
/* bwrap takes names in any case, and numbers of any base with anything behind them. */
static void cap_add(bw *b, char *const *v)
{
	static const char *const harmless[] = {
	    "chown",    "fowner",        "fsetid",      "kill",     "net_bind_service",
	    "net_raw",  "net_broadcast", "audit_write", "ipc_lock", "lease",
	    "sys_nice", "block_suspend", "wake_alarm"};
	if (!dv_cap_harmless(v[1], harmless, sizeof(harmless) / sizeof(*harmless)))
		b->add_caps = true;
}
static void cap_drop(bw *b, char *const *v)
{
	if (!strcasecmp(v[1], "all")) {
		b->drop_all = true;
		b->add_caps = false;
	}
}
static unsigned maybe(char *const *v)
{
	size_t n = strlen(v[0]);
	return n > 4 && !strcmp(v[0] + n - 4, "-try") ? DV_MAYBE : 0;
}
static void bind_rw(bw *b, char *const *v)
{
	dv_mount_add(b->d, DV_RW, v[1], v[2], maybe(v));
}
static void bind_devices(bw *b, char *const *v)
{
	dv_mount_add(b->d, DV_DEVICES, v[1], v[2], maybe(v));
}
static void bind_ro(bw *b, char *const *v)
{
	dv_mount_add(b->d, DV_RO, v[1], v[2], maybe(v));
}
static void empty(bw *b, char *const *v)
{
	dv_mount_add(b->d, DV_EMPTY, NULL, v[1], 0);
}
static void proc(bw *b, char *const *v)
{
	b->proc = true;
	empty(b, v);
}
static void link_made(bw *b, char *const *v)
{
	dv_mount_add(b->d, DV_LINK, NULL, v[2], 0);
}
static void bind_fd(bw *b, char *const *v)
{
	dv_unknown(b->d, "%s %s: what the descriptor shows is not known", v[0], v[1]);
}
static void from_file(bw *b, char *const *v)
{
	dv_unknown(b->d, "%s: options that stand elsewhere cannot be read", v[0]);
}
static void chdir_to(bw *b, char *const *v)
{
	free(b->d->out->cwd);
	if (!(b->d->out->cwd = strdup(v[1])))
		dv_unknown(b->d, "out of memory");
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
    {"--unshare-user-try", user},
    {"--userns", join_user},
    {"--userns2", join_user},
    {"--new-session", new_session},
    {"--symlink", link_made},
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
    {"--dev-bind", bind_devices},
    {"--dev-bind-try", bind_devices},
    {"--ro-bind", bind_ro},
    {"--ro-bind-try", bind_ro},
    {"--bind-fd", bind_fd},
    {"--ro-bind-fd", bind_fd},
    {"--tmpfs", empty},
    {"--proc", proc},
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
	unsigned same = 0;
	if (rw) {
		/* the kernel writes to both */
		dv_mount_add(b->d, DV_RW, v[1], target, 0);
		dv_mount_add(b->d, DV_RW, v[2], target, DV_SAME);
		same = DV_SAME;
	}
	/* the sources stand directly before, each with its one value */
	for (size_t k = 2; k <= before && !strcmp(v[-(ptrdiff_t)k], "--overlay-src"); k += 2) {
		dv_mount_add(b->d, DV_RO, v[1 - (ptrdiff_t)k], target, same);
		same = DV_SAME;
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

/* Who can mount makes a read-only bind writable and lifts what hides. */
static void capabilities(bw *b)
{
	dv *d = b->d;
	bool kept = d->opts->uid == 0 && !b->drop_all && !b->own_uid;
	bool userns = b->user && !d->opts->no_userns;
	/* without a user namespace they are those of the host: modules, devices, namespaces */
	uint32_t loses = userns ? SW_G(FS_WRITE) | SW_G(FS_READ) : DV_ESCAPE;
	if (b->add_caps)
		dv_lose(d, d->opts->uid == 0 ? loses : SW_G(FS_WRITE) | SW_G(FS_READ),
		        "--cap-add: the command can change the sandbox's mounts");
	else if (kept)
		dv_lose(d, loses,
		        "root without --cap-drop ALL keeps every capability: it can remount the "
		        "sandbox writable");
	/* /proc/PID/root of a process of the same user leads out, unless it is of another user
	 * namespace. One is implied for a plain user where bwrap is not set-uid. */
	bool same_ns = b->joined || (!userns && (d->opts->uid == 0 || d->opts->setid_runner));
	if (same_ns && ((b->proc && !b->pid) || dv_shows_proc(d)))
		dv_lose(d, SW_G(FS_WRITE) | SW_G(FS_READ),
		        "%s: the host's processes in /proc lead out of the sandbox",
		        b->joined ? "--userns: others may be in that namespace"
		                  : "no --unshare-user");
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
	capabilities(b);
	dv_descriptors_judge(d, 0);
	dv_terminal_judge(d);
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
	d->reads_all = d->opts->uid == 0;
	dv_mounts_judge(d);
	judge(&b);
}

/* ---- sandwitness __landlock ---- */

#define HIDE_MAX 256 /* more than the launcher takes */

/* Terminals are the session's own affair. */
static void device(dv *d, const char *path, unsigned same)
{
	char normal[SW_PATH_MAX];
	static const char *const terminals[] = {"/dev/ptmx", "/dev/pts"};
	bool known = sw_path_normal(path, "/", normal, sizeof(normal)) &&
	             (sw_place_device_harmless(normal) || !strcmp(normal, terminals[0]) ||
	              !strcmp(normal, terminals[1]));
	if (!known)
		dv_mount_add(d, DV_DEVICES, path, path, same);
}

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
	const char *hidden[HIDE_MAX];
	size_t i = at, n_hidden = 0;
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
		unsigned same = d->n_mounts > 0 ? DV_SAME : 0;
		if (!strcmp(v[0], "--rw") || !strcmp(v[0], "--rw-try"))
			dv_mount_add(d, DV_RW, v[1], v[1], same);
		else if (!strcmp(v[0], "--ro") || !strcmp(v[0], "--ro-try"))
			dv_mount_add(d, DV_RO, v[1], v[1], same);
		else if (!strcmp(v[0], "--dev-try"))
			device(d, v[1], same);
		else if (!strcmp(v[0], "--hide") && n_hidden < HIDE_MAX)
			hidden[n_hidden++] = v[1];
		else if (!strcmp(v[0], "--new-session"))
			d->new_session = true;
		else if (!strcmp(v[0], "--clearenv"))
			d->have |= SW_G(ENV);
		else if (!strcmp(v[0], "--chdir")) {
			free(d->out->cwd);
			if (!(d->out->cwd = strdup(v[1])))
				dv_unknown(d, "out of memory");
		}
		i += (size_t)options[k].values;
	}
	if (!end || i >= d->argc) {
		dv_unknown(d, "the launcher has no command");
		return;
	}
	d->out->command = i;
	d->out->network = SW_NETWORK_ALLOWED; /* UDP is */
	for (size_t k = 0; k < n_hidden; k++)
		dv_mount_add(d, DV_HIDE, NULL, hidden[k], 0);
	d->reads_all = d->opts->uid == 0;
	d->sockets_apart = true;
	dv_mounts_judge(d);
	dv_descriptors_judge(d, 0);
	dv_terminal_judge(d);
	dv_lose(d, SW_G(NETWORK), "Landlock cannot restrict UDP");
	dv_lose(d, SW_G(PID) | SW_G(IPC), "Landlock has no namespaces");
	dv_lose(d, SW_G(SYSCALLS) | SW_G(RESOURCES),
	        "Landlock filters no system calls and sets no limits");
	if (!(d->have & SW_G(ENV)))
		dv_lose(d, SW_G(ENV), "no --clearenv: the caller's environment is passed on");
	if (!d->opts->supervised)
		dv_lose(d, SW_G(TREE_KILL), "only a supervisor ends the tree");
}
