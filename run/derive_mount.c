/*
 * derive_mount.c - what -v and --mount of docker and podman show of the host. The engine
 * sorts mounts by depth, so none is taken to cover another.
 */
#include "derive_int.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* "true", "1", ... as the clients parse switches; what they refuse counts as on. */
bool dv_engine_on(const char *value)
{
	static const char *const off[] = {"false", "0", "f", "F", "FALSE", "False"};
	for (size_t i = 0; value && i < sizeof(off) / sizeof(*off); i++)
		if (!strcmp(value, off[i]))
			return false;
	return true;
}

/* [a-zA-Z0-9][a-zA-Z0-9_.-]*, as the engines demand it. */
static bool volume_name(const char *z)
{
	static const char *const first =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	return *z && !strchr("_.-", *z) && strspn(z, first) == strlen(z);
}

/*
 * A read-only bind of an engine leaves the file systems mounted below it writable (Docker
 * before 25, podman always).
 */
static void bind_mount(dv *d, bool ro, const char *source, const char *target)
{
	if (!*source || strchr(" \t\r\n", *source) ||
	    strchr(" \t\r\n", source[strlen(source) - 1])) {
		dv_unknown(d, "\"%.100s\" is not a path to mount", source);
		return;
	}
	if (d->elsewhere)
		dv_lose(d, DV_ESCAPE,
		        "%.80s on %.60s: the engine may run on another host, or for another user",
		        source, target);
	dv_mount_add(d, ro ? DV_RO : DV_RW, source, target, DV_SAME);
	if (ro && dv_holds_mounts(d, source))
		dv_lose(d, SW_G(FS_WRITE),
		        "%.80s read-only on %.80s: file systems mounted below stay writable",
		        source, target);
}

typedef struct {
	bool ro, rw, overlay, owner, bad;
	char upper[SW_PATH_MAX], work[SW_PATH_MAX];
} bind_options;

static void bind_option(bind_options *o, const char *z, size_t n)
{
	static const char *const harmless[] = {
	    "z",          "Z",       "private", "rprivate",   "slave",      "rslave",
	    "shared",     "rshared", "bind",    "rbind",      "cached",     "delegated",
	    "consistent", "copy",    "nocopy",  "noexec",     "exec",       "nosuid",
	    "suid",       "nodev",   "idmap",   "unbindable", "runbindable"};
	const struct {
		const char *name;
		bool *flag;
	} flags[] = {{"ro", &o->ro}, {"rw", &o->rw}, {"O", &o->overlay}, {"U", &o->owner}};
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (strlen(flags[i].name) == n && !strncmp(flags[i].name, z, n)) {
			*flags[i].flag = true;
			return;
		}
	for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		if (strlen(harmless[i]) == n && !strncmp(harmless[i], z, n))
			return;
	if (n > 9 && n < SW_PATH_MAX && !strncmp(z, "upperdir=", 9))
		snprintf(o->upper, sizeof(o->upper), "%.*s", (int)(n - 9), z + 9);
	else if (n > 8 && n < SW_PATH_MAX && !strncmp(z, "workdir=", 8))
		snprintf(o->work, sizeof(o->work), "%.*s", (int)(n - 8), z + 8);
	else
		o->bad |= n > 0;
}

/* A folder of the host with the options behind its colon. */
static void bind_with(dv *d, const char *source, const char *target, const char *list,
                      bool read_only)
{
	bind_options o = {.ro = read_only};
	for (const char *p = list ? list : ""; *p; p += *p == ',') {
		size_t n = strcspn(p, ",");
		bind_option(&o, p, n);
		p += n;
	}
	if (o.bad) {
		dv_unknown(d, "mount options \"%.100s\" are not known", list);
		return;
	}
	if (o.overlay) {
		/* a throw-away layer, unless its folders are named */
		dv_mount_add(d, DV_RO, source, target, DV_SAME);
		if (d->elsewhere)
			bind_mount(d, false, source, target);
		if (o.upper[0])
			bind_mount(d, false, o.upper, target);
		if (o.work[0])
			bind_mount(d, false, o.work, target);
		return;
	}
	/* U gives the folder on the host to another owner */
	bind_mount(d, o.ro && !o.rw && !o.owner, source, target);
}

/* [SOURCE:]TARGET[:OPTIONS]; a source that is no path is a volume by name. */
void dv_engine_volume(dv *d, const char *v)
{
	char copy[2 * SW_PATH_MAX];
	if (snprintf(copy, sizeof(copy), "%s", v) >= (int)sizeof(copy)) {
		dv_unknown(d, "a volume is too long to be read");
		return;
	}
	char *target = strchr(copy, ':');
	if (!target) {
		if (copy[0] != '/')
			dv_unknown(d, "volume \"%.100s\" cannot be read", v);
		return; /* an anonymous volume */
	}
	*target++ = '\0';
	char *options = strchr(target, ':');
	if (options)
		*options++ = '\0';
	if (options && strchr(options, ':'))
		dv_unknown(d, "volume \"%.100s\" cannot be read", v);
	else if (copy[0] == '~')
		dv_unknown(d, "volume \"%.100s\": ~ is for a shell to resolve", v);
	else if (copy[0] == '/' || copy[0] == '.')
		bind_with(d, copy, target, options, false);
	else if (volume_name(copy))
		dv_note(d, "volume %.80s by name: what it holds is not known", copy);
	else
		dv_unknown(d, "volume \"%.100s\" cannot be read", v);
}

/* FOLDER[:OPTIONS] */
void dv_engine_rootfs(dv *d, const char *v, bool read_only)
{
	char copy[2 * SW_PATH_MAX];
	if (snprintf(copy, sizeof(copy), "%s", v) >= (int)sizeof(copy)) {
		dv_unknown(d, "the root folder is too long to be read");
		return;
	}
	char *options = strchr(copy, ':');
	if (options)
		*options++ = '\0';
	if (options && strchr(options, ':'))
		dv_unknown(d, "--rootfs \"%.100s\" cannot be read", v);
	else
		bind_with(d, copy, "/", options, read_only);
}

/* One field of a CSV line into out; returns the rest, NULL at the end, "" on a fault. */
const char *dv_csv_field(const char *p, char *out, size_t n, bool *bad)
{
	size_t len = 0;
	bool quoted = *p == '"';
	p += quoted;
	for (; *p && (quoted || *p != ','); p++) {
		if (quoted && *p == '"') {
			if (p[1] != '"')
				break;
			p++;
		}
		if (len + 1 >= n) {
			*bad = true;
			return NULL;
		}
		out[len++] = *p;
	}
	out[len] = '\0';
	if (quoted) {
		*bad |= *p != '"';
		p += *p == '"';
	}
	*bad |= *p && *p != ',';
	return *p == ',' ? p + 1 : NULL;
}

typedef struct {
	char type[16], source[SW_PATH_MAX], target[SW_PATH_MAX];
	bool ro, rw, owner, opaque;
} mount_spec;

static void mount_text(mount_spec *m, char *to, size_t n, const char *value)
{
	/* which of two counts differs between engines */
	if (!value || to[0] || snprintf(to, n, "%s", value) >= (int)n)
		m->opaque = true;
}

static void mount_key(mount_spec *m, char *field)
{
	static const char *const harmless[] = {"bind-propagation",
	                                       "bind-nonrecursive",
	                                       "consistency",
	                                       "relabel",
	                                       "tmpfs-size",
	                                       "tmpfs-mode",
	                                       "tmpcopyup",
	                                       "notmpcopyup",
	                                       "size",
	                                       "mode",
	                                       "nocopy",
	                                       "volume-nocopy",
	                                       "volume-label",
	                                       "noexec",
	                                       "exec",
	                                       "nosuid",
	                                       "suid",
	                                       "nodev",
	                                       "z",
	                                       "Z",
	                                       "uid",
	                                       "gid",
	                                       "max"};
	char *value = strchr(field, '=');
	if (value)
		*value++ = '\0';
	const struct {
		const char *key;
		char *to;
		size_t n;
	} texts[] = {{"type", m->type, sizeof(m->type)},
	             {"source", m->source, sizeof(m->source)},
	             {"src", m->source, sizeof(m->source)},
	             {"target", m->target, sizeof(m->target)},
	             {"destination", m->target, sizeof(m->target)},
	             {"dst", m->target, sizeof(m->target)}};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!strcasecmp(texts[i].key, field)) {
			mount_text(m, texts[i].to, texts[i].n, value);
			return;
		}
	for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		if (!strcasecmp(harmless[i], field))
			return;
	if (!strcasecmp(field, "readonly") || !strcasecmp(field, "ro"))
		*(dv_engine_on(value) ? &m->ro : &m->rw) = true;
	else if (!strcasecmp(field, "rw") || !strcasecmp(field, "readwrite"))
		*(dv_engine_on(value) ? &m->rw : &m->ro) = true;
	else if (!strcasecmp(field, "U") || !strcasecmp(field, "chown"))
		m->owner |= dv_engine_on(value);
	else
		/* volume-opt, volume-driver: the local driver binds any folder named there */
		m->opaque = true;
}

void dv_engine_mount(dv *d, const char *v)
{
	mount_spec m = {0};
	bool bad = false;
	for (const char *p = v; p && !bad;) {
		char field[SW_PATH_MAX + 32];
		p = dv_csv_field(p, field, sizeof(field), &bad);
		if (!bad)
			mount_key(&m, field);
	}
	bool volume = !m.type[0] || !strcasecmp(m.type, "volume");
	bool harmless = !strcasecmp(m.type, "tmpfs") || !strcasecmp(m.type, "ramfs") ||
	                !strcasecmp(m.type, "devpts") || !strcasecmp(m.type, "image");
	if (bad || m.opaque)
		dv_unknown(d, "--mount %.120s cannot be read", v);
	else if (!strcasecmp(m.type, "bind") ||
	         (volume && strchr("/.", m.source[0]) && m.source[0]))
		bind_mount(d, m.ro && !m.rw && !m.owner, m.source, m.target);
	else if (volume && (!m.source[0] || volume_name(m.source)))
		dv_note(d, "volume %.80s by name: what it holds is not known",
		        m.source[0] ? m.source : "(new)");
	else if (!harmless)
		dv_unknown(d, "--mount %.120s: its type or source is not known", v);
}
