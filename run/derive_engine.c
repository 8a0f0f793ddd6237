/* derive_engine.c - the command lines of `docker run` and `podman run`, read as their parser
 * does: no abbreviations, options end at the image. */
#include <stdlib.h>
#include <string.h>

#include "derive_engine.h"

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
	if (e->memory && e->pids && !e->swap_open)
		d->have |= SW_G(RESOURCES);
	else
		dv_lose(d, SW_G(RESOURCES),
		        "needs --memory and --pids-limit, and no --memory-swap -1");
	if (e->privileged)
		dv_lose(d, DV_ESCAPE | SW_G(RESOURCES),
		        "--privileged: the host's devices and every capability");
	if (e->detach)
		dv_lose(d, SW_G(TREE_KILL), "--detach: nobody waits for the container");
}

/* As podman tells a systemd by its name; a bare "init" counts as well. */
static bool names_systemd(const char *program)
{
	static const char *const inits[] = {"init", "/sbin/init", "/usr/sbin/init",
	                                    "/usr/local/sbin/init"};
	for (size_t i = 0; i < sizeof(inits) / sizeof(*inits); i++)
		if (!strcmp(program, inits[i]))
			return true;
	size_t end = strlen(program), begin;
	while (end && program[end - 1] == '/')
		end--;
	for (begin = end; begin && program[begin - 1] != '/';)
		begin--;
	return end - begin == 7 && !strncmp(program + begin, "systemd", 7);
}

/* What the container starts, and whether podman takes it for a systemd. */
static void systemd_judge(const eng *e, size_t command)
{
	static const uint32_t loses = SW_G(FS_WRITE) | SW_G(RESOURCES);
	dv *d = e->d;
	const char *entry = e->entrypoint ? e->entrypoint : "", *first[3];
	size_t n = 0;
	if (!e->podman || e->no_systemd)
		return;
	const char *json = entry + strspn(entry, " \t\r\n");
	if (*json == '[' || !strncmp(json, "null", 4)) {
		dv_lose(d, loses,
		        "--entrypoint %.60s: podman gives a systemd its control groups to write: "
		        "--systemd=false",
		        entry);
		return;
	}
	if (*entry)
		first[n++] = entry;
	for (size_t i = command; n < 3 && i < d->argc; i++)
		first[n++] = d->argv[i];
	bool shell = n > 2 && !strcmp(first[0], "/bin/sh") && !strcmp(first[1], "-c");
	if (!n && !e->rootfs)
		dv_lose(d, loses,
		        "no command: the image's may be a systemd, which podman gives its control "
		        "groups to write: --systemd=false");
	else if (n && names_systemd(first[shell ? 2 : 0]))
		dv_lose(d, loses,
		        "podman gives a systemd its control groups to write: --systemd=false");
}

void dv_read_engine(dv *d, size_t at)
{
	eng e = {.d = d, .podman = !strcmp(d->out->backend, "podman")};
	const char *program = strrchr(d->argv[at - 1], '/');
	program = program ? program + 1 : d->argv[at - 1];
	d->engine = true;
	d->elsewhere = d->opts->engine_elsewhere || !strcmp(program, "podman-remote");
	size_t i = read_options(&e, dv_engine_global, at);
	if (i < d->argc && !strcmp(d->argv[i], "container"))
		i++;
	if (i >= d->argc || strcmp(d->argv[i], "run") != 0) {
		dv_unknown(
		    d, "only \"run\" is read: another sub-command's container was made elsewhere");
		return;
	}
	i = read_options(&e, dv_engine_run, i + 1);
	if (dv_is_unknown(d))
		return;
	if (i >= d->argc) {
		dv_unknown(d, "no image");
		return;
	}
	if (e.rootfs)
		dv_engine_rootfs(d, d->argv[i], e.read_only);
	d->out->command = i + 1 < d->argc ? i + 1 : d->argc;
	systemd_judge(&e, i + 1);
	if (e.workdir && !(d->out->cwd = strdup(e.workdir)))
		dv_unknown(d, "out of memory");
	/*
	 * Root in the container is root for the files that are shown. It is not where a plain
	 * user's podman maps it to that user, nor with a number for a user that cannot become
	 * root again by a set-uid program of the image.
	 */
	bool mapped = e.podman && d->opts->uid > 0 && !d->elsewhere;
	d->reads_all = !mapped && !(e.plain_user && !e.remapped && !e.groups && e.no_new_privs);
	dv_mounts_judge(d);
	/* Podman's containers of one plain user share a user namespace: they reach each other. */
	if (dv_shows_proc(d))
		dv_lose(
		    d, SW_G(FS_WRITE) | SW_G(FS_READ),
		    "/proc of the host: /proc/PID/root of a process of the same user leads out");
	dv_descriptors_judge(d, 3);
	judge(&e);
}
