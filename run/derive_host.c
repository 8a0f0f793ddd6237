/*
 * derive_host.c - what mounts and inherited descriptors show of the host.
 *
 * What covers something must be certain: the mount is there, and it lies where its text
 * says. Everything else is judged by the worst that it can be.
 */
#include "derive_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- paths of the host ---- */

static bool has_dots(const char *path)
{
	for (const char *p = path; (p = strstr(p, "..")) != NULL; p += 2)
		if ((p == path || p[-1] == '/') && (p[2] == '\0' || p[2] == '/'))
			return true;
	return false;
}

static bool of_descriptor(const char *normal)
{
	static const char *const places[] = {"/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"};
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (sw_path_covers(places[i], normal))
			return true;
	return sw_path_covers("/proc", normal) &&
	       (strstr(normal, "/fd/") || strstr(normal, "/map_files/") ||
	        (strlen(normal) > 3 && !strcmp(normal + strlen(normal) - 3, "/fd")));
}

/* The longest part that exists is followed, the rest appended as it stands. */
static bool follow_existing(const dv *d, const char *full, char *out, size_t n)
{
	char head[2 * SW_PATH_MAX], real[SW_PATH_MAX];
	snprintf(head, sizeof(head), "%s", full);
	for (size_t len = strlen(head); len > 1;) {
		while (len > 1 && head[len - 1] == '/')
			len--;
		while (len > 0 && head[len - 1] != '/')
			len--;
		const char *rest = full + len;
		head[len > 1 ? len - 1 : 1] = '\0';
		errno = 0;
		if (d->opts->resolve(d->opts->ctx, head, real, sizeof(real)))
			return !has_dots(rest) && sw_path_normal(rest, real, out, n);
		if (errno && errno != ENOENT && errno != ENOTDIR)
			return false;
	}
	return !has_dots(full) && sw_path_normal(full, NULL, out, n);
}

/* As the kernel will follow it. False: it cannot be told; out is then the text's plain form. */
static bool follow(const dv *d, const char *path, char *out, size_t n)
{
	char full[2 * SW_PATH_MAX];
	int len = *path == '/' ? snprintf(full, sizeof(full), "%s", path)
	                       : snprintf(full, sizeof(full), "%s/%s", d->opts->cwd, path);
	if (len >= SW_PATH_MAX || !sw_path_normal(full, NULL, out, n))
		return false;
	bool dots = has_dots(full);
	/* Links of /proc differ for every process: judged by name. */
	if (sw_path_covers("/proc", out) || of_descriptor(out))
		return !dots;
	if (!d->opts->resolve)
		return !dots;
	char real[SW_PATH_MAX];
	errno = 0;
	if (d->opts->resolve(d->opts->ctx, full, real, sizeof(real)))
		return snprintf(out, n, "%s", real) < (int)n;
	if (errno && errno != ENOENT && errno != ENOTDIR)
		return false;
	if (follow_existing(d, full, real, sizeof(real)))
		return snprintf(out, n, "%s", real) < (int)n;
	return false;
}

static char *host_path(dv *d, const char *path)
{
	char at[SW_PATH_MAX];
	if (*path != '/' && !d->opts->cwd) {
		dv_unknown(d, "relative path \"%.100s\" without a known folder to start from",
		           path);
		return NULL;
	}
	if (!sw_path_normal(path, d->opts->cwd, at, sizeof(at))) {
		dv_unknown(d, "\"%.100s\" is not a path", path);
		return NULL;
	}
	if (of_descriptor(at)) {
		dv_unknown(d, "%.100s: what the descriptor shows is not known", path);
		return NULL;
	}
	if (!follow(d, path, at, sizeof(at)))
		dv_lose(d, DV_ESCAPE, "%.100s: where it leads cannot be told", path);
	return strdup(at);
}

/*
 * A source that is not there when it is looked at: a link that leads nowhere here can lead
 * somewhere inside the half-built sandbox (/oldroot), and an option before it can make one.
 */
static bool may_appear(const dv *d, const char *source)
{
	char full[2 * SW_PATH_MAX], real[SW_PATH_MAX];
	int len = *source == '/' ? snprintf(full, sizeof(full), "%s", source)
	                         : snprintf(full, sizeof(full), "%s/%s", d->opts->cwd, source);
	if (!d->opts->resolve || !d->opts->is_there || len >= SW_PATH_MAX ||
	    d->opts->resolve(d->opts->ctx, full, real, sizeof(real)))
		return false;
	for (char *slash = full; slash; slash = strchr(slash + 1, '/')) {
		char *end = strchr(slash + 1, '/');
		if (end)
			*end = '\0';
		bool dangles = d->opts->is_there(d->opts->ctx, full) &&
		               !d->opts->resolve(d->opts->ctx, full, real, sizeof(real));
		if (end)
			*end = '/';
		if (dangles)
			return true;
		if (!end)
			break;
	}
	if (!follow(d, source, real, sizeof(real)))
		return true;
	for (size_t i = 0; i < d->n_mounts; i++)
		if ((d->mounts[i].kind == DV_RW || d->mounts[i].kind == DV_DEVICES) &&
		    d->mounts[i].source && sw_path_covers(d->mounts[i].source, real))
			return true;
	return false;
}

/* ---- mounts ---- */

/* Where a path inside lies on the host, by the mounts so far: false: in a place of its own. */
static bool outside(const dv *d, const char *at, char *out, size_t n)
{
	const dv_mount *m = NULL;
	for (size_t i = 0; i < d->n_mounts; i++)
		if (sw_path_covers(d->mounts[i].target, at))
			m = &d->mounts[i];
	if (!m || !m->source)
		return false;
	const char *rest = strcmp(m->target, "/") ? at + strlen(m->target) : at;
	return snprintf(out, n, "%s%s", strcmp(m->source, "/") ? m->source : "", rest) < (int)n;
}

/* No link on the way changes where the target lies. */
static bool target_is_sure(const dv *d, const char *target)
{
	char host[SW_PATH_MAX], real[SW_PATH_MAX];
	for (size_t i = 0; i < d->n_mounts; i++)
		if (d->mounts[i].kind == DV_LINK && sw_path_covers(d->mounts[i].target, target))
			return false;
	if (!d->opts->resolve || !outside(d, target, host, sizeof(host)))
		return true;
	return follow(d, host, real, sizeof(real)) && !strcmp(host[0] ? host : "/", real);
}

void dv_mount_add(dv *d, dv_kind kind, const char *source, const char *target, unsigned flags)
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
	dv_mount m = {.kind = kind,
	              .maybe = flags & DV_MAYBE,
	              .placed = !has_dots(target) && target_is_sure(d, normal)};
	m.order = flags & DV_SAME ? d->order : ++d->order;
	bool sourced = kind >= DV_RO;
	if (sourced && (*source == '/' || d->opts->cwd) && may_appear(d, source)) {
		dv_unknown(d, "%.100s: it is not there yet, and what it will be is not known",
		           source);
		return;
	}
	m.source = sourced ? host_path(d, source) : NULL;
	m.target = strdup(normal);
	d->mounts[d->n_mounts++] = m;
	if (!m.target || (sourced && !m.source))
		dv_unknown(d, "out of memory");
}

/* The launcher opens a folder entry by entry to leave out what is hidden, this deep. */
#define HIDE_DEPTH 8
static bool hidden_below(const char *granted, const char *hidden)
{
	return sw_path_covers(granted, hidden) &&
	       sw_path_depth(hidden) - sw_path_depth(granted) <= HIDE_DEPTH;
}

/* Something mounted later hides `path` (inside the sandbox) completely and for certain. */
static bool covered(const dv *d, const dv_mount *m, const char *path)
{
	for (size_t i = 0; m->placed && i < d->n_mounts; i++) {
		const dv_mount *by = &d->mounts[i];
		if (by->kind == DV_LINK ||
		    (by->kind == DV_HIDE && !hidden_below(m->target, by->target)))
			continue;
		if (by->order > m->order && by->placed && !by->maybe &&
		    sw_path_covers(by->target, path))
			return true;
	}
	return false;
}

/* Where `path` of the host, below the mount's source, is seen inside. */
static bool inside(const dv_mount *m, const char *path, char *out, size_t n)
{
	const char *rest = strcmp(m->source, "/") ? path + strlen(m->source) : path;
	int len = snprintf(out, n, "%s%s", strcmp(m->target, "/") ? m->target : "", rest);
	if (!len)
		snprintf(out, n, "/");
	return len < (int)n;
}

/* `path` lies below the mount's source (or is it) and nothing hides it. */
static bool shows(const dv *d, const dv_mount *m, const char *path)
{
	char at[SW_PATH_MAX];
	return sw_path_covers(m->source, path) &&
	       !(inside(m, path, at, sizeof(at)) && covered(d, m, at));
}

/* ---- reading ---- */

#define ROOTS_MAX 8
typedef struct {
	char at[ROOTS_MAX][SW_PATH_MAX];
	size_t n;
} roots;

static void root_add(const dv *d, roots *r, const char *path)
{
	char normal[SW_PATH_MAX];
	if (r->n + 2 > ROOTS_MAX || !path || *path != '/' ||
	    !sw_path_normal(path, NULL, normal, sizeof(normal)) || !strcmp(normal, "/"))
		return;
	snprintf(r->at[r->n++], SW_PATH_MAX, "%s", normal);
	if (follow(d, path, normal, sizeof(normal)) && strcmp(normal, r->at[r->n - 1]) != 0 &&
	    strcmp(normal, "/") != 0)
		snprintf(r->at[r->n++], SW_PATH_MAX, "%s", normal);
}

static bool absent(const dv *d, const char *path)
{
	char real[SW_PATH_MAX];
	errno = 0;
	return d->opts->resolve && !d->opts->resolve(d->opts->ctx, path, real, sizeof(real)) &&
	       (errno == ENOENT || errno == ENOTDIR);
}

/* Whose files are private: this user's homes where they are known; root reads everybody's. */
static roots *private_roots(const dv *d)
{
	const char *home = d->opts->home;
	roots *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	root_add(d, r, d->opts->env_home);
	bool known = home && *home == '/' && strspn(home, "/") != strlen(home) && !absent(d, home);
	if (known)
		root_add(d, r, home);
	if (!known || d->opts->uid == 0) {
		root_add(d, r, "/home");
		root_add(d, r, "/root");
	}
	return r;
}

static bool private_by_name(const roots *r, const char *source)
{
	bool yes = sw_path_private(source, NULL);
	for (size_t i = 0; i < r->n; i++)
		yes |= sw_path_private(source, r->at[i]);
	return yes;
}

static bool shows_private(const dv *d, const roots *r, const dv_mount *m, const char **what)
{
	bool holds = false;
	for (size_t i = 0; i < r->n; i++) {
		if (!sw_path_covers(m->source, r->at[i]))
			continue;
		holds = true;
		*what = r->at[i];
		if (shows(d, m, r->at[i]))
			return true;
	}
	/* a folder that holds homes is judged by what covers them */
	*what = m->source;
	return !holds && private_by_name(r, m->source);
}

/* Whose: root's is everybody's, and a container's user may be any. */
static const char *user_of(const dv *d)
{
	return d->reads_all || d->engine ? NULL : d->opts->user;
}

/* Mail and disks of this user. */
static bool shows_users(const dv *d, const dv_mount *m, char *what, size_t n)
{
	const char *user = user_of(d);
	snprintf(what, n, "%s", m->source);
	if (sw_place_of_user(m->source, user))
		return true;
	for (size_t i = 0; i < sw_places_users_n; i++) {
		const sw_place_users *p = &sw_places_users[i];
		char real[SW_PATH_MAX];
		snprintf(what, n, "%s%s%s", p->path, user ? "/" : "", user ? user : "");
		/* few have disks: from above they count where they are seen */
		bool counts =
		    !p->disks || (user && d->opts->resolve) || !strcmp(m->source, p->path);
		if (counts && sw_path_covers(m->source, what) && !absent(d, what) &&
		    (!follow(d, what, real, sizeof(real)) || shows(d, m, real)))
			return true;
	}
	return false;
}

/* What only root can read: of / nobody can say what all of it is. */
static const char *shows_secret(const dv *d, const dv_mount *m)
{
	if (!strcmp(m->source, "/"))
		return "/";
	if (sw_place_of(m->source, SW_PLACE_SECRET))
		return m->source;
	for (size_t i = 0; i < sw_places_n; i++) {
		const sw_place *p = &sw_places[i];
		char real[SW_PATH_MAX];
		if (p->kind != SW_PLACE_SECRET || !sw_path_covers(m->source, p->path) ||
		    absent(d, p->path))
			continue;
		/* a link is as private as what it leads to, which may not be shown at all */
		if (!follow(d, p->path, real, sizeof(real)))
			return p->path;
		if (shows(d, m, real))
			return p->path;
	}
	return NULL;
}

/* ---- writing ---- */

static bool write_granted(const dv *d, const char *source)
{
	for (size_t i = 0; i < d->opts->n_writable; i++) {
		const char *granted = d->opts->writable[i];
		char real[SW_PATH_MAX];
		if ((*granted == '/' || d->opts->cwd) && follow(d, granted, real, sizeof(real)) &&
		    sw_path_covers(real, source))
			return true;
	}
	return false;
}

static bool executed_later(const roots *r, const char *source)
{
	if (sw_place_of(source, SW_PLACE_LATER))
		return true;
	for (size_t i = 0; i < r->n; i++) {
		size_t n = strlen(r->at[i]);
		if (sw_path_covers(r->at[i], source) && source[n] == '/' &&
		    sw_place_home_later(source + n + 1))
			return true;
	}
	return false;
}

/* Not anybody's workspace, so that writing there is no matter of the command. */
static bool belongs_to_host(const roots *r, const char *source)
{
	bool yes =
	    sw_path_system(source, NULL) || private_by_name(r, source) || executed_later(r, source);
	for (size_t i = 0; i < r->n; i++)
		yes |= sw_path_system(source, r->at[i]);
	return yes;
}

static void judge_write(dv *d, const roots *r, const dv_mount *m)
{
	sw_derived *o = d->out;
	if (m->kind == DV_DEVICES && sw_path_covers("/dev", m->source) &&
	    sw_place_device_harmless(m->source))
		return;
	if (o->n_writable < SW_DERIVE_PATHS_MAX) {
		char *copy = strdup(m->target);
		if (copy)
			o->writable[o->n_writable++] = copy;
		else
			o->writable_known = false;
	} else {
		o->writable_known = false;
	}
	if (m->kind == DV_DEVICES)
		dv_lose(d, SW_G(FS_WRITE) | SW_G(FS_READ),
		        "%.80s with its devices on %.60s: disks can be among them", m->source,
		        m->target);
	if (d->opts->writable) {
		if (!write_granted(d, m->source))
			dv_lose(d, SW_G(FS_WRITE), "%.80s is writable on %.60s and was not granted",
			        m->source, m->target);
	} else if (belongs_to_host(r, m->source)) {
		dv_lose(d, SW_G(FS_WRITE), "%.80s of the host is writable on %.60s", m->source,
		        m->target);
	}
}

/* ---- sockets and shared memory ---- */

/* Reached through a folder above: where the host can be asked, by what is really there. */
static bool place_is_there(const dv *d, const sw_place *p)
{
	if (p->kind == SW_PLACE_SHARED)
		return true;
	/* root's daemon reaches more than this user does */
	if (!d->opts->has_socket || (d->engine && !p->rare))
		return !p->rare;
	return !(p->rare && d->sockets_apart) &&
	       d->opts->has_socket(d->opts->ctx, p->path, p->only_whole);
}

/* A socket under any name, but in the workspace, where it is shared on purpose. */
static bool shares_sockets(const dv *d, const char *source)
{
	for (size_t i = 0; i < d->opts->n_writable; i++)
		if (sw_path_covers(d->opts->writable[i], source))
			return false;
	return d->opts->is_socket && d->opts->is_socket(d->opts->ctx, source);
}

static void judge_places(dv *d, const dv_mount *m)
{
	char alias[SW_PATH_MAX];
	const sw_place *in = sw_place_of(m->source, SW_PLACE_SOCKET),
	               *shared = sw_place_of(m->source, SW_PLACE_SHARED);
	uint32_t loses = (in ? in->loses : 0) | (shared ? shared->loses : 0);
	/* a link of /proc may be any folder, / too */
	if (sw_place_socket_name(m->source) || sw_path_proc_link(m->source))
		loses |= DV_ESCAPE;
	if (!loses && shares_sockets(d, m->source))
		loses = DV_ESCAPE;
	if (loses)
		dv_lose(d, loses, "%.80s: a daemon of the host, or its memory, is behind it",
		        m->source);
	dv_mount at = *m;
	at.source = (char *)sw_place_alias(m->source, alias, sizeof(alias));
	for (size_t i = 0; i < sw_places_n && (d->lost & DV_ESCAPE) != DV_ESCAPE; i++) {
		const sw_place *p = &sw_places[i];
		bool opens = p->kind == SW_PLACE_SOCKET || p->kind == SW_PLACE_SHARED;
		if (!opens || p->only_inside || !p->loses || !shows(d, &at, p->path) ||
		    (!p->only_whole && sw_path_covers(p->path, at.source)) || !place_is_there(d, p))
			continue;
		dv_lose(d, p->loses, "%.60s of the host is reached through %.80s", p->path,
		        m->source);
	}
}

void dv_mounts_judge(dv *d)
{
	roots *r = private_roots(d);
	if (!r) {
		dv_unknown(d, "out of memory");
		return;
	}
	for (size_t i = 0; i < d->n_mounts; i++) {
		const dv_mount *m = &d->mounts[i];
		const char *what = NULL;
		char of_user[SW_PATH_MAX];
		if (!m->source || covered(d, m, m->target))
			continue;
		if (m->kind == DV_RW || m->kind == DV_DEVICES)
			judge_write(d, r, m);
		if (shows_private(d, r, m, &what) ||
		    (d->reads_all && (what = shows_secret(d, m)) != NULL) ||
		    (shows_users(d, m, of_user, sizeof(of_user)) && (what = of_user)))
			dv_lose(d, SW_G(FS_READ), "%.80s of the host can be read on %.60s", what,
			        m->target);
		judge_places(d, m);
	}
	free(r);
}

bool dv_shows_proc(const dv *d)
{
	for (size_t i = 0; i < d->n_mounts; i++) {
		const dv_mount *m = &d->mounts[i];
		if (!m->source || covered(d, m, m->target))
			continue;
		if (sw_path_covers("/proc", m->source) || shows(d, m, "/proc"))
			return true;
	}
	return false;
}

bool dv_holds_mounts(dv *d, const char *source)
{
	/* where nobody looked */
	static const char *const usual[] = {"/boot/efi",
	                                    "/dev/shm",
	                                    "/media/disk",
	                                    "/mnt/disk",
	                                    "/proc/fs/nfsd",
	                                    "/run/user",
	                                    "/sys/fs/cgroup/unified",
	                                    "/var/lib/docker/overlay2"};
	bool known = d->opts->mounted != NULL;
	size_t n = known ? d->opts->n_mounted : sizeof(usual) / sizeof(*usual);
	const char *const *list = known ? d->opts->mounted : usual;
	char at[SW_PATH_MAX];
	if ((*source != '/' && !d->opts->cwd) || !follow(d, source, at, sizeof(at)))
		return true;
	for (size_t i = 0; i < n; i++)
		if (sw_path_covers(at, list[i]) && strcmp(at, list[i]) != 0)
			return true;
	return false;
}

void dv_written_judge(dv *d, const char *option, const char *path)
{
	char at[SW_PATH_MAX];
	roots *r = private_roots(d);
	bool told = r && (*path == '/' || d->opts->cwd) && follow(d, path, at, sizeof(at));
	if (!told || (d->opts->writable ? !write_granted(d, at) : belongs_to_host(r, at)))
		dv_lose(d, SW_G(FS_WRITE), "%s: what the command prints is written to %.100s",
		        option, path);
	free(r);
}

/* ---- what is inherited ---- */

static void judge_file(dv *d, const roots *r, const sw_derive_fd *f)
{
	if (!f->path)
		return;
	/* /proc/self/fd/N opens it again, by its own rights */
	bool away = d->opts->writable ? !write_granted(d, f->path) : belongs_to_host(r, f->path);
	if (f->writable && away)
		dv_lose(d, SW_G(FS_WRITE), "descriptor %d: %.100s can be opened for writing", f->fd,
		        f->path);
	if (private_by_name(r, f->path) || sw_place_of_user(f->path, user_of(d)) ||
	    (d->reads_all && sw_place_of(f->path, SW_PLACE_SECRET)))
		dv_lose(d, SW_G(FS_READ), "descriptor %d is %.100s", f->fd, f->path);
}

static bool terminal_name(const char *path)
{
	return path && (sw_path_covers("/dev/pts", path) || !strcmp(path, "/dev/ptmx") ||
	                !strncmp(path, "/dev/tty", 8) || !strcmp(path, "/dev/console"));
}

void dv_descriptors_judge(dv *d, int first)
{
	roots *r = private_roots(d);
	for (size_t i = 0; r && i < d->opts->n_fds; i++) {
		const sw_derive_fd *f = &d->opts->fds[i];
		if (f->fd < first)
			continue;
		if (f->type == S_IFDIR) {
			dv_lose(d, SW_G(FS_READ) | (f->writable ? SW_G(FS_WRITE) : 0),
			        "descriptor %d is the folder %.100s, and what lies above it", f->fd,
			        f->path ? f->path : "of an unknown name");
			/* sockets are reached by /proc/self/fd/N/NAME, upwards too */
			dv_lose(d, SW_G(NETWORK) | SW_G(PID) | SW_G(IPC),
			        "descriptor %d: sockets of the host can be reached", f->fd);
		} else if (f->type == S_IFREG) {
			judge_file(d, r, f);
		} else if (f->type == S_IFBLK ||
		           (f->type == S_IFCHR && !(f->path && sw_place_device_harmless(f->path)) &&
		            !terminal_name(f->path))) {
			dv_lose(d, SW_G(FS_READ) | SW_G(FS_WRITE),
			        "descriptor %d is the device %.100s", f->fd,
			        f->path ? f->path : "of an unknown name");
		} else if (f->type == S_IFSOCK && f->internet) {
			dv_lose(d, SW_G(NETWORK), "descriptor %d is a connection", f->fd);
		}
	}
	free(r);
}

void dv_terminal_judge(dv *d)
{
	if (d->new_session || d->opts->terminal == SW_DERIVE_TERMINAL_NONE)
		return;
	if (d->opts->terminal == SW_DERIVE_TERMINAL_OPEN)
		dv_lose(d, DV_ESCAPE,
		        "no --new-session: the command can type into the caller's terminal "
		        "(TIOCSTI)");
	else
		dv_lose(d, SW_G(PID),
		        "no --new-session: kill(0) reaches the caller's job on the terminal");
}
