/* confine.c - checks a policy, gathers what every builder needs; see confine.h. */
#include "confine_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cf_builder *const builders[] = {&cf_bwrap,  &cf_landlock, &cf_podman,
                                             &cf_docker, &cf_seatbelt, NULL};

/* /etc is readable though it names accounts and hosts: nothing resolves without it. */
const char *const cf_system_folders[] = {"/usr",   "/bin",    "/sbin", "/lib", "/lib32",
                                         "/lib64", "/libx32", "/etc",  "/opt"};
const size_t cf_system_folders_n = sizeof(cf_system_folders) / sizeof(*cf_system_folders);

/* ---- lists ---- */

void cf_addn(cf_list *l, const char *p, size_t n)
{
	if (l->error)
		return;
	if (l->n + 1 >= SW_CONFINE_ARGS_MAX || l->bytes + n + 1 > SW_CONFINE_BYTES_MAX) {
		l->error = SW_ETOOBIG;
		return;
	}
	if (l->n + 2 > l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		char **v = realloc(l->v, cap * sizeof(*v));
		if (!v) {
			l->error = SW_ENOMEM;
			return;
		}
		l->v = v;
		l->cap = cap;
		l->v[l->n] = NULL; /* ended at every moment, even if the copy fails */
	}
	char *copy = malloc(n + 1);
	if (!copy) {
		l->error = SW_ENOMEM;
		return;
	}
	if (n)
		memcpy(copy, p, n);
	copy[n] = '\0';
	l->v[l->n++] = copy;
	l->v[l->n] = NULL;
	l->bytes += n + 1;
}

void cf_add(cf_list *l, const char *z)
{
	cf_addn(l, z, strlen(z));
}

void cf_adds(cf_list *l, ...)
{
	va_list ap;
	va_start(ap, l);
	for (const char *z; (z = va_arg(ap, const char *));)
		cf_add(l, z);
	va_end(ap);
}

void cf_addf(cf_list *l, const char *fmt, ...)
{
	char *z = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&z, fmt, ap);
	va_end(ap);
	if (n < 0) {
		l->error = l->error ? l->error : SW_ENOMEM;
		return;
	}
	cf_addn(l, z, (size_t)n);
	free(z);
}

void cf_clear(cf_list *l)
{
	sw_argv_free(l->v);
	*l = (cf_list){0};
}

void sw_argv_free(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

/* ---- environment ---- */

static const char *const fixed_names[] = {"PATH", "HOME", "TMPDIR", "LANG"};
#define N_FIXED (sizeof(fixed_names) / sizeof(*fixed_names))

/* A variable that is named wins over a fixed one, but for PATH and HOME. */
static const sw_env_var *env_named(const sw_confine_policy *p, const char *name)
{
	for (size_t i = 0; i < p->n_env; i++)
		if (p->env[i].value && !strcmp(p->env[i].name, name))
			return &p->env[i];
	return NULL;
}

static bool env_is_fixed(const char *name)
{
	for (size_t i = 0; i < N_FIXED; i++)
		if (!strcmp(fixed_names[i], name))
			return true;
	return false;
}

size_t cf_env_count(const cf_build *b)
{
	return N_FIXED + b->policy->n_env;
}

/* value NULL: pass over. */
sw_env_var cf_env_at(const cf_build *b, size_t i)
{
	const sw_confine_policy *p = b->policy;
	if (i >= N_FIXED) {
		const sw_env_var *v = &p->env[i - N_FIXED];
		bool again = env_named(p, v->name) != v;
		return (sw_env_var){v->name, again || env_is_fixed(v->name) ? NULL : v->value};
	}
	const sw_env_var *named = env_named(p, fixed_names[i]);
	const char *values[N_FIXED] = {SW_CONFINE_PATH, p->workspace, named ? named->value : "/tmp",
	                               named ? named->value : "C.UTF-8"};
	return (sw_env_var){fixed_names[i], values[i]};
}

/* ---- checks ---- */

static int bad_path(sw_error *err, const char *what, const char *path, const char *why,
                    const char *fix)
{
	sw_error_set(err, SW_EINVAL, "%s \"%.200s\" %s", what, path ? path : "", why);
	if (err)
		sw_error_more(err, NULL, NULL, fix);
	return SW_EINVAL;
}

static int check_path(const char *what, const char *path, bool write, const char *home,
                      sw_error *err)
{
	char normal[SW_PATH_MAX];
	if (!path || *path != '/')
		return bad_path(err, what, path, "is not absolute", "give an absolute path");
	if (!sw_path_normal(path, NULL, normal, sizeof(normal)) || strcmp(normal, path) != 0)
		return bad_path(err, what, path,
		                "is not in its plain form (no //, ., .. or slash at the end)",
		                "resolve it first");
	if (!write)
		return SW_OK;
	/* A whole home may be a workspace (fs_read is then lost); the system may not. */
	bool own_home = home && !strcmp(path, home) && strcmp(path, "/") != 0;
	if (sw_path_system(path, NULL) && !own_home)
		return bad_path(err, what, path, "belongs to the system or to other users",
		                "name a folder of your own; nobody's workspace is there");
	return SW_OK;
}

static int check_env(const sw_confine_policy *p, sw_error *err)
{
	for (size_t i = 0; i < p->n_env; i++) {
		const char *z = p->env[i].name;
		if (!z || !*z || strchr(z, '='))
			return sw_error_set(err, SW_EINVAL,
			                    "environment variable \"%.100s\" has no valid name",
			                    z ? z : "");
	}
	return SW_OK;
}

static int check_argv(const sw_str *argv, size_t argc, sw_error *err)
{
	if (!argc || !argv[0].len) {
		sw_error_set(err, SW_EINVAL, "no command");
		return err ? sw_error_more(err, NULL, NULL, "give the command after --")
		           : SW_EINVAL;
	}
	for (size_t i = 0; i < argc; i++)
		if (argv[i].len && memchr(argv[i].ptr, '\0', argv[i].len)) {
			sw_error_set(err, SW_EINVAL, "argument %zu holds a NUL byte", i);
			return err ? sw_error_more(
			                 err, NULL,
			                 "the system would cut it there: another command would run",
			                 "pass such data through a file or stdin")
			           : SW_EINVAL;
		}
	return SW_OK;
}

static int check_policy(const sw_confine_policy *p, sw_error *err)
{
	const char *home = p->host ? p->host->home : NULL;
	if (p->mode != SW_MODE_READ_ONLY && p->mode != SW_MODE_WORKSPACE_WRITE) {
		sw_error_set(err, SW_EINVAL, "the sandbox mode is not given");
		return err ? sw_error_more(err, NULL, NULL,
		                           "use read_only, workspace_write or danger_full_access")
		           : SW_EINVAL;
	}
	if (p->n_readable > SW_CONFINE_PATHS_MAX || p->n_writable > SW_CONFINE_PATHS_MAX)
		return sw_error_set(err, SW_ETOOBIG, "more than %d readable or writable paths",
		                    SW_CONFINE_PATHS_MAX);
	if (p->n_writable && p->mode == SW_MODE_READ_ONLY) {
		sw_error_set(err, SW_EINVAL, "writable paths do not go with read_only");
		return err ? sw_error_more(err, NULL, NULL, "use workspace_write") : SW_EINVAL;
	}
	if (p->cpus < 0 || p->cpus > 4096)
		return sw_error_set(err, SW_EINVAL, "cpus is outside 0 .. 4096");
	if (p->memory_mb && p->memory_mb < 6)
		return sw_error_set(err, SW_EINVAL,
		                    "memory_mb is below 6, the least a container starts with");
	if (p->image && (!*p->image || *p->image == '-'))
		return sw_error_set(err, SW_EINVAL, "image \"%.100s\" is not an image name",
		                    p->image);
	int rc = check_path("workspace", p->workspace, true, home, err);
	for (size_t i = 0; !rc && i < p->n_readable; i++)
		rc = check_path("readable path", p->readable[i], false, home, err);
	for (size_t i = 0; !rc && i < p->n_writable; i++)
		rc = check_path("writable path", p->writable[i], true, home, err);
	return rc ? rc : check_env(p, err);
}

/* ---- mounts ---- */

static void mount_add(cf_build *b, cf_mount_kind kind, const char *path)
{
	b->mounts[b->n_mounts] =
	    (cf_mount){kind, path, kind == CF_MASK ? 4096 : sw_path_depth(path), b->n_mounts};
	b->n_mounts++;
}

/* Parents before what lies in them; masks last; else as given. */
static int mount_order(const void *x, const void *y)
{
	const cf_mount *a = x, *b = y;
	if (a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* A mask must not hide what the caller granted by name. */
static bool granted_by_name(const sw_confine_policy *p, const char *path)
{
	for (size_t i = 0; i < p->n_readable; i++)
		if (!strcmp(p->readable[i], path))
			return true;
	return false;
}

/* What only root can read. That of /etc is masked, unless it is granted by name. */
static bool shows_secret(const char *path, bool masked)
{
	if (!strcmp(path, "/") || sw_place_of(path, SW_PLACE_SECRET))
		return true;
	for (size_t i = 0; i < sw_places_n; i++)
		if (sw_places[i].kind == SW_PLACE_SECRET &&
		    sw_path_covers(path, sw_places[i].path) &&
		    !(masked && sw_path_covers("/etc", sw_places[i].path)))
			return true;
	return false;
}

/* What a grant costs. */
static void give_away(cf_build *b, const cf_builder *with, const char *path)
{
	const sw_confine_host *host = b->policy->host;
	if (sw_path_private(path, host ? host->home : NULL) ||
	    (host && host->env_home && sw_path_private(path, host->env_home)) ||
	    sw_place_shows_user(path, host && host->uid && !with->client ? host->user : NULL) ||
	    (host && host->uid == 0 && shows_secret(path, with->base_mounts)))
		b->gives_away |= SW_G(FS_READ);
	b->gives_away |= sw_place_loses(path);
	/* /proc/PID/root leads out where the command has no user namespace of its own */
	if (with->client && (sw_path_covers("/proc", path) || sw_path_covers(path, "/proc")))
		b->gives_away |= SW_G(FS_WRITE) | SW_G(FS_READ);
}

static int gather_mounts(cf_build *b, const cf_builder *with)
{
	const sw_confine_policy *p = b->policy;
	size_t masks = p->host && with->base_mounts && !p->no_mask ? p->host->n_masks : 0;
	size_t max = cf_system_folders_n + 8 + p->n_readable + p->n_writable + masks;
	b->mounts = calloc(max, sizeof(*b->mounts));
	if (!b->mounts)
		return SW_ENOMEM;
	if (with->base_mounts) {
		for (size_t i = 0; i < cf_system_folders_n; i++)
			mount_add(b, CF_RO_TRY, cf_system_folders[i]);
		if (p->network)
			/* /etc/resolv.conf often points here */
			mount_add(b, CF_RO_TRY, "/run/systemd/resolve");
		mount_add(b, CF_PROC, "/proc");
		mount_add(b, CF_DEV, "/dev");
		mount_add(b, CF_TMPFS, "/tmp");
	}
	mount_add(b, p->mode == SW_MODE_WORKSPACE_WRITE ? CF_RW : CF_RO, p->workspace);
	give_away(b, with, p->workspace);
	for (size_t i = 0; i < p->n_readable; i++) {
		mount_add(b, CF_RO, p->readable[i]);
		give_away(b, with, p->readable[i]);
	}
	for (size_t i = 0; i < p->n_writable; i++) {
		mount_add(b, CF_RW, p->writable[i]);
		give_away(b, with, p->writable[i]);
	}
	for (size_t i = 0; i < masks; i++)
		if (!granted_by_name(p, p->host->masks[i]))
			mount_add(b, CF_MASK, p->host->masks[i]);
	qsort(b->mounts, b->n_mounts, sizeof(*b->mounts), mount_order);
	return SW_OK;
}

void cf_command(cf_build *b)
{
	for (size_t i = 0; i < b->argc; i++)
		cf_addn(&b->args, b->argv[i].ptr, b->argv[i].len);
}

/* ---- the result ---- */

/*
 * bwrap, sandbox-exec and the launcher need nothing of the caller's environment; the
 * clients of docker and podman find their daemon, storage and settings through it.
 */
static void build_envp(cf_build *b, const cf_builder *with, cf_list *envp)
{
	const sw_confine_policy *p = b->policy;
	if (!with->client) {
		for (size_t i = 0; i < cf_env_count(b); i++) {
			sw_env_var v = cf_env_at(b, i);
			if (v.value)
				cf_addf(envp, "%s=%s", v.name, v.value);
		}
	} else {
		for (size_t i = 0; i < p->n_client_env; i++)
			if (p->client_env[i].value)
				cf_addf(envp, "%s=%s", p->client_env[i].name,
				        p->client_env[i].value);
		for (size_t i = N_FIXED; i < cf_env_count(b); i++) {
			sw_env_var v = cf_env_at(b, i);
			if (v.value)
				cf_addf(envp, "%s=%s", v.name, v.value);
		}
	}
	/* an empty list is still a list: nothing is inherited */
	if (!envp->v && !envp->error)
		envp->v = calloc(1, sizeof(*envp->v));
	if (!envp->v && !envp->error)
		envp->error = SW_ENOMEM;
}

const char *const sw_confine_client_names[] = {"PATH",
                                               "HOME",
                                               "USER",
                                               "XDG_RUNTIME_DIR",
                                               "XDG_CONFIG_HOME",
                                               "XDG_DATA_HOME",
                                               "DOCKER_HOST",
                                               "DOCKER_CONTEXT",
                                               "DOCKER_CONFIG",
                                               "DOCKER_CERT_PATH",
                                               "DOCKER_TLS_VERIFY",
                                               "CONTAINER_HOST",
                                               "CONTAINERS_CONF",
                                               "CONTAINERS_STORAGE_CONF",
                                               "DBUS_SESSION_BUS_ADDRESS",
                                               NULL};

static void add_roots(cf_build *b, const cf_builder *with, cf_list *writable, cf_list *private)
{
	const sw_confine_policy *p = b->policy;
	if (p->mode == SW_MODE_WORKSPACE_WRITE) {
		cf_add(writable, p->workspace);
		for (size_t i = 0; i < p->n_writable; i++)
			cf_add(writable, p->writable[i]);
		if (b->shares_tmp || with == &cf_seatbelt)
			cf_add(writable, "/tmp");
	}
	if (with->private_tmp)
		cf_add(private, "/tmp");
}

static int unconfined(sw_confined *c, const sw_str *argv, size_t argc)
{
	cf_list l = {0};
	for (size_t i = 0; i < argc; i++)
		cf_addn(&l, argv[i].ptr, argv[i].len);
	c->backend = c->level = "none";
	c->argv = l.v;
	c->argc = l.n;
	c->mode = SW_MODE_DANGER_FULL_ACCESS;
	c->network = SW_NETWORK_ALLOWED;
	c->enforcement = SW_ENFORCEMENT_NONE;
	return l.error;
}

static int confined(sw_confined *c, const cf_builder *with, const sw_confine_policy *p,
                    const sw_str *argv, size_t argc)
{
	cf_build b = {.policy = p, .argv = argv, .argc = argc, .out = c};
	cf_list envp = {0}, writable = {0}, private = {0};
	int rc = gather_mounts(&b, with);
	c->backend = with->backend;
	c->level = with == &cf_bwrap && p->partial ? "bwrap_partial" : with->backend;
	c->mode = p->mode;
	c->network = p->network ? SW_NETWORK_ALLOWED : SW_NETWORK_DENIED;
	c->guarantees = with->guarantees;
	c->granted = p->network ? SW_G(NETWORK) : 0;
	if (!rc) {
		with->build(&b);
		build_envp(&b, with, &envp);
		add_roots(&b, with, &writable, &private);
		rc = b.args.error ? b.args.error : envp.error ? envp.error : writable.error;
		rc = rc ? rc : private.error;
	}
	if (p->network)
		c->guarantees &= ~SW_G(NETWORK);
	c->guarantees &= ~b.gives_away;
	c->enforcement = p->partial ? SW_ENFORCEMENT_PARTIAL : SW_ENFORCEMENT_FULL;
	c->argv = b.args.v;
	c->argc = b.args.n;
	c->envp = envp.v;
	c->writable_roots = writable.v;
	c->n_writable_roots = writable.n;
	c->private_roots = private.v;
	c->n_private_roots = private.n;
	char *cwd = strdup(p->workspace);
	c->cwd = cwd;
	free(b.mounts);
	return rc ? rc : cwd ? SW_OK : SW_ENOMEM;
}

int sw_confine(sw_confined **out, const char *backend, const sw_confine_policy *policy,
               const sw_str *argv, size_t argc, sw_error *err)
{
	const cf_builder *with = NULL;
	for (size_t i = 0; builders[i]; i++)
		if (backend && !strcmp(builders[i]->backend, backend))
			with = builders[i];
	int rc = check_argv(argv, argc, err);
	if (rc)
		return rc;
	bool danger = policy->mode == SW_MODE_DANGER_FULL_ACCESS;
	if (!danger && !with) {
		sw_error_set(err, SW_EUNSUPPORTED, "no sandbox can be built for backend \"%.64s\"",
		             backend ? backend : "");
		return err ? sw_error_more(
		                 err, NULL, NULL,
		                 "use bwrap, landlock, podman, docker or seatbelt; none goes with "
		                 "danger_full_access only")
		           : SW_EUNSUPPORTED;
	}
	if (!danger && (rc = check_policy(policy, err)))
		return rc;
	for (size_t i = 0; !danger && with->client && i < policy->n_readable; i++)
		if (!strcmp(policy->readable[i], "/"))
			return bad_path(err, "readable path", "/",
			                "cannot be mounted in a container",
			                "name the folders that are needed");
	sw_confined *c = calloc(1, sizeof(*c));
	if (!c)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	rc = danger ? unconfined(c, argv, argc) : confined(c, with, policy, argv, argc);
	if (rc) {
		sw_confined_free(c);
		return sw_error_set(
		    err, rc, rc == SW_ETOOBIG ? "the command line is too long" : "out of memory");
	}
	*out = c;
	return SW_OK;
}

void sw_confined_free(sw_confined *c)
{
	if (!c)
		return;
	sw_argv_free(c->argv);
	sw_argv_free(c->envp);
	sw_argv_free(c->writable_roots);
	sw_argv_free(c->private_roots);
	free((char *)c->cwd);
	free(c);
}

int sw_confine_merge_stderr(char ***out, size_t *n, const sw_str *argv, size_t argc, sw_error *err)
{
	int rc = check_argv(argv, argc, err);
	if (rc)
		return rc;
	cf_list l = {0};
	cf_adds(&l, "/bin/sh", "-c", "exec \"$@\" 2>&1", "sh", NULL);
	for (size_t i = 0; i < argc; i++)
		cf_addn(&l, argv[i].ptr, argv[i].len);
	if (l.error) {
		rc = l.error;
		cf_clear(&l);
		return sw_error_set(
		    err, rc, rc == SW_ETOOBIG ? "the command line is too long" : "out of memory");
	}
	*out = l.v;
	if (n)
		*n = l.n;
	return SW_OK;
}

sw_confine_capability sw_confine_capabilities(const sw_confine_policy *policy, const char *backend,
                                              bool proved)
{
	sw_confine_capability c = {true, true, true};
	if (policy->mode == SW_MODE_DANGER_FULL_ACCESS)
		return c;
	for (size_t i = 0; builders[i]; i++)
		if (!strcmp(builders[i]->backend, backend) &&
		    (builders[i]->guarantees & SW_G(NETWORK)))
			c.can_reach_network = policy->network || !proved;
	c.reaches_beyond_workspace = policy->n_readable || policy->n_writable;
	return c;
}
