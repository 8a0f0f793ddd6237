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

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (!strncmp(p, word, n) && (p[n] == ',' || p[n] == '\0'))
			return true;
	return false;
}

/*
 * A read-only bind of an engine before Docker 25 leaves the file systems mounted below it
 * writable; that of the root has some.
 */
static void bind_mount(dv *d, bool ro, const char *source, const char *target)
{
	char normal[SW_PATH_MAX];
	dv_mount_add(d, ro ? DV_RO : DV_RW, source, target, true);
	if (ro && sw_path_normal(source, d->opts->cwd, normal, sizeof(normal)) &&
	    !strcmp(normal, "/"))
		dv_lose(d, SW_G(FS_WRITE),
		        "/ read-only on %.80s: file systems mounted below stay writable", target);
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
	if (!target)
		return; /* an anonymous volume */
	*target++ = '\0';
	char *options = strchr(target, ':');
	if (options)
		*options++ = '\0';
	if (options && strchr(options, ':')) {
		dv_unknown(d, "volume \"%.100s\" cannot be read", v);
		return;
	}
	if (copy[0] != '/' && copy[0] != '.' && copy[0] != '~') {
		dv_note(d, "volume %.80s by name: what it holds is not known", copy);
		return;
	}
	if (copy[0] == '~') {
		dv_unknown(d, "volume \"%.100s\": ~ is for a shell to resolve", v);
		return;
	}
	bool ro = options && (has_word(options, "ro") || has_word(options, "readonly") ||
	                      has_word(options, "O"));
	bind_mount(d, ro, copy, target);
}

/* One field of a CSV line into out; returns the rest, NULL at the end, "" on a fault. */
static const char *csv_field(const char *p, char *out, size_t n, bool *bad)
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
	bool ro, opaque;
} mount_spec;

static void mount_key(mount_spec *m, char *field)
{
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
			if (!value ||
			    snprintf(texts[i].to, texts[i].n, "%s", value) >= (int)texts[i].n)
				m->opaque = true;
			return;
		}
	if (!strcasecmp(field, "readonly") || !strcasecmp(field, "ro"))
		m->ro = dv_engine_on(value);
	else if (!strcasecmp(field, "rw") || !strcasecmp(field, "readwrite"))
		m->ro = !dv_engine_on(value);
	else if (!strcasecmp(field, "volume-opt") || !strcasecmp(field, "volume-driver"))
		m->opaque = true; /* the local driver binds any folder that is named there */
}

void dv_engine_mount(dv *d, const char *v)
{
	mount_spec m = {.type = "volume"};
	bool bad = false;
	for (const char *p = v; p && !bad;) {
		char field[SW_PATH_MAX + 32];
		p = csv_field(p, field, sizeof(field), &bad);
		if (!bad)
			mount_key(&m, field);
	}
	bool harmless = !strcasecmp(m.type, "tmpfs") || !strcasecmp(m.type, "ramfs") ||
	                !strcasecmp(m.type, "devpts") || !strcasecmp(m.type, "image");
	if (bad || m.opaque)
		dv_unknown(d, "--mount %.120s cannot be read", v);
	else if (!strcasecmp(m.type, "bind") || (!harmless && m.source[0] == '/'))
		bind_mount(d, m.ro, m.source, m.target);
	else if (!strcasecmp(m.type, "volume"))
		dv_note(d, "volume %.80s by name: what it holds is not known",
		        m.source[0] ? m.source : "(new)");
	else if (!harmless)
		dv_unknown(d, "--mount type %.60s is not known", m.type);
}
