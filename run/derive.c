/* derive.c - finds the runner in an argv and judges what it shows of the host; the
 * runners' options are read in derive_bwrap.c and derive_engine.c. */
#include "derive_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_internal.h"

/* ---- reasons ---- */

static void note_add(dv *d, uint32_t guarantees, const char *fmt, va_list ap) SW_PRINTF(3, 0);
static void note_add(dv *d, uint32_t guarantees, const char *fmt, va_list ap)
{
	sw_derived *o = d->out;
	if (o->n_notes == SW_DERIVE_NOTES_MAX)
		return;
	sw_derive_note *n = &o->notes[o->n_notes++];
	n->guarantees = guarantees;
	vsnprintf(n->text, sizeof(n->text), fmt, ap);
}

void dv_lose(dv *d, uint32_t guarantees, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	note_add(d, guarantees, fmt, ap);
	va_end(ap);
	d->lost |= guarantees;
}

void dv_note(dv *d, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	note_add(d, 0, fmt, ap);
	va_end(ap);
}

void dv_unknown(dv *d, const char *fmt, ...)
{
	if (dv_is_unknown(d))
		return;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(d->out->unknown_why, sizeof(d->out->unknown_why), fmt, ap);
	va_end(ap);
}

/* ---- mounts ---- */

/* Canonical where the caller can tell; links of /proc are judged by name, they differ for
 * every process. */
static char *host_path(dv *d, const char *path)
{
	char normal[SW_PATH_MAX], real[SW_PATH_MAX];
	if (!sw_path_normal(path, d->opts->cwd, normal, sizeof(normal))) {
		dv_unknown(d, "relative path \"%.100s\" without a known folder to start from",
		           path);
		return NULL;
	}
	bool magic = sw_path_covers("/proc", normal) || sw_path_covers("/dev/fd", normal);
	if (!magic && d->opts->resolve &&
	    d->opts->resolve(d->opts->ctx, normal, real, sizeof(real)))
		return strdup(real);
	return strdup(normal);
}

void dv_mount_add(dv *d, dv_kind kind, const char *source, const char *target, bool same)
{
	char normal[SW_PATH_MAX];
	if (dv_is_unknown(d))
		return;
	if (d->n_mounts == SW_DERIVE_MOUNTS_MAX) {
		dv_unknown(d, "more than %d mounts", SW_DERIVE_MOUNTS_MAX);
		return;
	}
	if (!sw_path_normal(target, "/", normal, sizeof(normal))) {
		dv_unknown(d, "\"%.100s\" is not a path to mount on", target);
		return;
	}
	dv_mount *m = &d->mounts[d->n_mounts];
	*m = (dv_mount){.kind = kind, .order = same ? d->order : ++d->order};
	m->source = kind == DV_EMPTY ? NULL : host_path(d, source);
	m->target = strdup(normal);
	d->n_mounts++;
	if (!m->target || (kind != DV_EMPTY && !m->source))
		dv_unknown(d, "out of memory");
}

/* Something mounted later hides `path` (inside the sandbox) completely. */
static bool covered(const dv *d, const dv_mount *m, const char *path)
{
	for (size_t i = 0; i < d->n_mounts; i++)
		if (d->mounts[i].order > m->order && sw_path_covers(d->mounts[i].target, path))
			return true;
	return false;
}

/* Where `path` of the host, below the mount's source, is seen inside. */
static bool inside(const dv_mount *m, const char *path, char *out, size_t n)
{
	const char *rest = strcmp(m->source, "/") ? path + strlen(m->source) : path;
	return snprintf(out, n, "%s%s", strcmp(m->target, "/") ? m->target : "", rest) < (int)n;
}

/* Whose files are private: this user's home where it is known; root reads everybody's. */
static size_t private_roots(const dv *d, const char *roots[3])
{
	const char *home = d->opts->home;
	size_t n = 0;
	if (home && *home == '/' && strcmp(home, "/") != 0)
		roots[n++] = home;
	if (!n || d->opts->uid == 0) {
		roots[n++] = "/home";
		roots[n++] = "/root";
	}
	return n;
}

static bool shows_private(const dv *d, const dv_mount *m, const char **what)
{
	const char *roots[3];
	size_t n = private_roots(d, roots);
	bool holds = false;
	for (size_t i = 0; i < n; i++) {
		char at[SW_PATH_MAX];
		if (!sw_path_covers(m->source, roots[i]))
			continue;
		holds = true;
		*what = roots[i];
		if (inside(m, roots[i], at, sizeof(at)) && !covered(d, m, at[0] ? at : "/"))
			return true;
	}
	/* a folder that holds homes is judged by what covers them */
	*what = m->source;
	return !holds && sw_path_private(m->source, d->opts->home);
}

static bool write_granted(const dv *d, const char *source)
{
	for (size_t i = 0; i < d->opts->n_writable; i++) {
		char normal[SW_PATH_MAX];
		if (sw_path_normal(d->opts->writable[i], d->opts->cwd, normal, sizeof(normal)) &&
		    sw_path_covers(normal, source))
			return true;
	}
	return false;
}

static void judge_write(dv *d, const dv_mount *m)
{
	sw_derived *o = d->out;
	if (o->n_writable < SW_DERIVE_PATHS_MAX) {
		char *copy = strdup(m->target);
		if (copy)
			o->writable[o->n_writable++] = copy;
	} else {
		o->writable_known = false;
	}
	if (d->opts->writable) {
		if (!write_granted(d, m->source))
			dv_lose(d, SW_G(FS_WRITE), "%.80s is writable on %.60s and was not granted",
			        m->source, m->target);
	} else if (sw_path_system(m->source, d->opts->home) ||
	           sw_path_private(m->source, d->opts->home)) {
		dv_lose(d, SW_G(FS_WRITE), "%.80s of the host is writable on %.60s", m->source,
		        m->target);
	}
}

void dv_mounts_judge(dv *d)
{
	for (size_t i = 0; i < d->n_mounts; i++) {
		const dv_mount *m = &d->mounts[i];
		const char *what = NULL;
		if (!m->source || covered(d, m, m->target))
			continue;
		if (m->kind == DV_RW)
			judge_write(d, m);
		if (shows_private(d, m, &what))
			dv_lose(d, SW_G(FS_READ), "%.80s of the host can be read on %.60s", what,
			        m->target);
		bool holds_sockets =
		    sw_path_covers(m->source, "/run") || sw_path_covers(m->source, "/var/run");
		if (sw_path_daemon_socket(m->source) || (holds_sockets && d->sockets_matter))
			dv_lose(d, DV_ESCAPE,
			        "%.80s: a daemon of the host does there what it is told",
			        m->source);
		else if (holds_sockets && !covered(d, m, "/run"))
			dv_note(d, "sockets of daemons in /run stay reachable");
	}
}

/* ---- finding the runner ---- */

static const dv_reader readers[] = {
    {"bwrap", dv_read_bwrap},
    {"docker", dv_read_engine},
    {"podman", dv_read_engine},
    {"landlock", dv_read_landlock},
};

static const char *leaf(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Programs that set something and execute the rest; only forms that leave no doubt. */
static size_t step_over(dv *d, size_t at)
{
	char *const *a = d->argv;
	const char *name = leaf(a[at]);
	size_t i = at + 1;
	if (!strcmp(name, "sh") && i + 3 < d->argc && !strcmp(a[i], "-c") &&
	    !strcmp(a[i + 1], "exec \"$@\" 2>&1"))
		return i + 3;
	if (!strcmp(name, "env")) {
		for (; i < d->argc; i++) {
			bool empty = !strcmp(a[i], "-i") || !strcmp(a[i], "-") ||
			             !strcmp(a[i], "--ignore-environment");
			if (empty)
				d->have |= SW_G(ENV);
			else if (a[i][0] == '-' || !strchr(a[i], '='))
				break;
		}
		return i < d->argc && a[i][0] != '-' ? i : at;
	}
	if (!strcmp(name, "nohup") || !strcmp(name, "setsid"))
		return i < d->argc && a[i][0] != '-' ? i : at;
	if (!strcmp(name, "timeout") || !strcmp(name, "nice")) {
		bool nice = name[0] == 'n';
		if (nice && i + 1 < d->argc && !strcmp(a[i], "-n"))
			i += 2;
		else if (!nice && i < d->argc && a[i][0] >= '0' && a[i][0] <= '9')
			i++;
		return i < d->argc && i > at + 1 && a[i][0] != '-' ? i : at;
	}
	return at;
}

static size_t find_runner(dv *d)
{
	size_t at = 0;
	for (int depth = 0; depth < 8 && at < d->argc; depth++) {
		size_t next = step_over(d, at);
		if (next == at)
			break;
		at = next;
	}
	return at;
}

static const char *backend_at(const dv *d, size_t at, size_t *options)
{
	*options = at + 1;
	if (at >= d->argc)
		return NULL;
	if (at + 1 < d->argc && !strcmp(d->argv[at + 1], "__landlock")) {
		*options = at + 2;
		return "landlock";
	}
	return run_backend_of_program(d->argv[at]);
}

static const char *canonical_backend(const char *name)
{
#define X_NAME(s, n) n,
	static const char *const backends[] = {SW_BACKEND_LIST(X_NAME)};
#undef X_NAME
	for (size_t i = 0; name && i < sizeof(backends) / sizeof(*backends); i++)
		if (!strcmp(backends[i], name))
			return backends[i];
	return "none";
}

static void read_argv(dv *d)
{
	size_t options = 0, at = find_runner(d);
	const char *told = d->opts->backend, *seen = backend_at(d, at, &options);
	d->out->backend = canonical_backend(seen ? seen : told);
	if (!seen) {
		if (told && !strcmp(told, "none")) {
			d->out->command = 0;
			d->out->network = SW_NETWORK_ALLOWED;
			d->have = 0;
			dv_note(d, "no sandbox: the command runs as the caller");
		} else {
			dv_unknown(d, "no sandbox runner is recognised in the command");
		}
		return;
	}
	if (told && strcmp(told, seen) != 0) {
		dv_unknown(d, "the command begins with %s, not with %s", seen, told);
		return;
	}
	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++)
		if (!strcmp(readers[i].backend, seen)) {
			readers[i].read(d, options);
			return;
		}
	dv_unknown(d, "the options of %s are not read", seen);
}

void sw_derive(sw_derived *out, char *const *argv, size_t argc, const sw_derive_options *opts)
{
	static const sw_derive_options none = {.uid = SW_DERIVE_UID_UNKNOWN};
	*out = (sw_derived){.backend = "none", .command = argc, .writable_known = true};
	dv d = {.out = out, .opts = opts ? opts : &none, .argv = argv, .argc = argc};
	d.mounts = calloc(SW_DERIVE_MOUNTS_MAX, sizeof(*d.mounts));
	if (!d.mounts)
		dv_unknown(&d, "out of memory");
	else if (!argc || argc > SW_RUN_ARGS_MAX)
		dv_unknown(&d, argc ? "too many arguments" : "no command");
	else
		read_argv(&d);
	for (size_t i = 0; i < d.n_mounts; i++) {
		free(d.mounts[i].source);
		free(d.mounts[i].target);
	}
	free(d.mounts);
	if (dv_is_unknown(&d)) {
		out->basis = SW_BASIS_UNKNOWN;
		out->writable_known = false;
		return;
	}
	out->basis = SW_BASIS_DERIVED;
	if (d.opts->supervised)
		d.have |= SW_G(TREE_KILL);
	out->guarantees = d.have & ~d.lost;
}

void sw_derived_clear(sw_derived *d)
{
	for (size_t i = 0; i < d->n_writable; i++)
		free(d->writable[i]);
	free(d->cwd);
	*d = (sw_derived){.backend = "none"};
}

int sw_derived_reason(const sw_derived *d, uint32_t lost, char *out, size_t n)
{
	size_t at = 0;
	if (n)
		out[0] = '\0';
	if (d->basis == SW_BASIS_UNKNOWN)
		return snprintf(out, n, "%s", d->unknown_why);
	for (size_t i = 0; i < d->n_notes; i++) {
		uint32_t of = d->notes[i].guarantees & lost;
		char names[SW_GUARANTEES_TEXT_MAX];
		if (!of)
			continue;
		sw_guarantees_text(of, names);
		int w = snprintf(at < n ? out + at : NULL, at < n ? n - at : 0, "%slost %s: %s",
		                 at ? "; " : "", names, d->notes[i].text);
		at += w > 0 ? (size_t)w : 0;
	}
	return (int)at;
}
