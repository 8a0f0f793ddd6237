/* derive.c - finds the runner in an argv. Its options are read in derive_bwrap.c and
 * derive_engine.c, what they show of the host is judged in derive_host.c. */
#include "derive_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

bool dv_cap_harmless(const char *name, const char *const *harmless, size_t n)
{
	const char *cap = strncasecmp(name, "cap_", 4) ? name : name + 4;
	for (size_t i = 0; i < n; i++)
		if (!strcasecmp(cap, harmless[i]))
			return true;
	return false;
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

/* An assignment before the runner that changes which program it is, or what it does. */
static bool steers(const char *assignment)
{
	static const char *const names[] = {"PATH",    "HOME",      "LD_",        "GCONV_PATH",
	                                    "DOCKER_", "CONTAINER", "CONTAINERS", "PODMAN_",
	                                    "XDG_",    "STORAGE_",  "BASH_ENV",   "ENV="};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(assignment, names[i], strlen(names[i])))
			return true;
	return false;
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
			else if (steers(a[i]))
				dv_unknown(d, "env %.100s changes what the runner does", a[i]);
		}
		return i < d->argc && a[i][0] != '-' ? i : at;
	}
	if (!strcmp(name, "nohup") || !strcmp(name, "setsid")) {
		d->new_session |= name[0] == 's';
		return i < d->argc && a[i][0] != '-' ? i : at;
	}
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
	for (int depth = 0; depth + 1 < SW_DERIVE_PROGRAMS_MAX && at < d->argc; depth++) {
		size_t next = step_over(d, at);
		if (next == at)
			break;
		d->out->programs[d->out->n_programs++] = at;
		at = next;
	}
	return at;
}

static const char *backend_at(const dv *d, size_t at, size_t *options)
{
	*options = at + 1;
	if (at >= d->argc)
		return NULL;
	bool launcher = !strcmp(leaf(d->argv[at]), "sandwitness");
	if (launcher && at + 1 < d->argc && !strcmp(d->argv[at + 1], "__landlock")) {
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
	if (seen)
		d->out->programs[d->out->n_programs++] = at;
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

void sw_derived_doubt(sw_derived *d, const char *fmt, ...)
{
	if (d->basis == SW_BASIS_UNKNOWN)
		return;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(d->unknown_why, sizeof(d->unknown_why), fmt, ap);
	va_end(ap);
	d->basis = SW_BASIS_UNKNOWN;
	d->guarantees = 0;
	d->writable_known = false;
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
