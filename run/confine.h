/*
 * confine.h - building the argv that runs a command in a sandbox.
 *
 * Pure: nothing is spawned, opened or looked up. What depends on the host comes in
 * through sw_confine_host, read beforehand. Paths must be absolute and canonical.
 *
 * What a confined command gets: the workspace (and HOME in it), a read-only system,
 * a private /tmp (Landlock: the shared one), an environment of a fixed PATH and the
 * variables that are named, no controlling terminal, no network unless allowed.
 * docs/levels.md says what each backend's argv guarantees.
 *
 * Ownership: what sw_confine() returns is freed by sw_confined_free(). Inputs are
 * borrowed for the call. Threads: no globals.
 */
#ifndef SW_RUN_CONFINE_H
#define SW_RUN_CONFINE_H

#include "levels.h"

#define SW_CONFINE_ARGS_MAX 65536    /* arguments of the result */
#define SW_CONFINE_BYTES_MAX 2097152 /* of all arguments together */
#define SW_CONFINE_PATHS_MAX 256     /* readable and writable each */
#define SW_CONFINE_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define SW_CONFINE_IMAGE "debian:stable-slim"
#define SW_CONFINE_MEMORY_MB 2048
#define SW_CONFINE_PIDS 1024

typedef struct sw_env_var {
	const char *name;
	const char *value; /* NULL: not set; the name is then passed over */
} sw_env_var;

/* What the host looks like; read by sw_confine_host_read(). NULL: nothing is masked. */
typedef struct sw_confine_host {
	/* Private files and folders ('/' at the end) under the read-only system that this user
	 * can read: /etc/shadow, ... for root. */
	char **masks;
	size_t n_masks;
	char *home;     /* the real home of this user; NULL: none */
	char *env_home; /* $HOME, where it is another one; NULL: the same */
	char *user;     /* the account's name; NULL: none */
	long uid, gid;
} sw_confine_host;
int sw_confine_host_read(sw_confine_host *out, sw_error *err);
void sw_confine_host_free(sw_confine_host *h);

/* Zero-initialise. */
typedef struct sw_confine_policy {
	sw_mode mode; /* READ_ONLY, WORKSPACE_WRITE, DANGER_FULL_ACCESS; UNKNOWN is refused */
	bool network;
	const char *workspace;       /* required but for DANGER_FULL_ACCESS */
	const char *const *readable; /* extra paths, read-only */
	size_t n_readable;
	const char *const *writable; /* extra paths; refused with READ_ONLY */
	size_t n_writable;
	const sw_env_var *env; /* variables passed on; their values stand in the argv */
	size_t n_env;
	/* What the docker or podman client itself needs, from the caller's environment:
	 * the variables of sw_confine_client_names. The command does not see them. */
	const sw_env_var *client_env;
	size_t n_client_env;
	const char *image;  /* docker, podman; NULL: SW_CONFINE_IMAGE */
	unsigned memory_mb; /* docker, podman; 0: SW_CONFINE_MEMORY_MB */
	double cpus;        /* docker, podman; 0: no limit */
	const char *runner; /* path of the runner's program; NULL: its bare name */
	const char *self;   /* path of `sandwitness`, the Landlock launcher; NULL: bare name */
	bool partial;       /* bwrap without a process namespace and /proc of its own */
	bool no_mask;       /* tests of the probe only: leave the masks out */
	const sw_confine_host *host;
} sw_confine_policy;

extern const char *const sw_confine_client_names[]; /* ends with NULL */

typedef struct sw_confined {
	const char *backend; /* borrowed constant */
	const char *level;   /* "bwrap", "bwrap_partial", ...; borrowed constant */
	char **argv;         /* ends with NULL */
	size_t argc;
	/* The whole environment to spawn with, "NAME=value", ends with NULL; for
	 * DANGER_FULL_ACCESS NULL: the caller's own. The runner needs little of it, the
	 * command sees what the argv sets. */
	char **envp;
	char **writable_roots; /* folders of the host the command may write to */
	size_t n_writable_roots;
	char **private_roots; /* writable inside, gone afterwards: /tmp */
	size_t n_private_roots;
	const char *cwd;     /* the command's; owned */
	uint32_t guarantees; /* basis BUILT */
	uint32_t granted;    /* given away by the policy: network where it is allowed */
	sw_mode mode;
	sw_network network;
	sw_enforcement enforcement;
} sw_confined;

/*
 * Wraps argv for `backend`: "bwrap", "docker", "podman", "landlock", "seatbelt"; "none"
 * only with DANGER_FULL_ACCESS, which also takes any backend and leaves argv as it is.
 * SW_EINVAL says what is wrong with the policy or the argv (empty, NUL inside, a path
 * that is relative or would give the system away); SW_EUNSUPPORTED: no such builder.
 */
int sw_confine(sw_confined **out, const char *backend, const sw_confine_policy *policy,
               const sw_str *argv, size_t argc, sw_error *err);
void sw_confined_free(sw_confined *c); /* NULL is fine */

/*
 * The fixed wrapper  /bin/sh -c 'exec "$@" 2>&1' sh ARGV  for runtimes that spawn by
 * themselves and capture one stream: the runner inherits the merged stderr, so its own
 * messages are seen. ARGV is passed as positional arguments, never parsed. NUL is
 * refused. *out ends with NULL; free with sw_argv_free().
 */
int sw_confine_merge_stderr(char ***out, size_t *n, const sw_str *argv, size_t argc, sw_error *err);
void sw_argv_free(char **argv);

/* What a runtime may tell its policy about a tool confined like this. */
typedef struct sw_confine_capability {
	bool can_reach_network;        /* true unless a proven backend removes the route */
	bool reaches_beyond_workspace; /* an extra bind puts data back in reach */
	bool private_data;             /* always true: the workspace is private data */
} sw_confine_capability;
/* proved: a preflight of this backend in this context said full (or partial, with partial set). */
sw_confine_capability sw_confine_capabilities(const sw_confine_policy *policy, const char *backend,
                                              bool proved);

#endif
