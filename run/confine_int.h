/* confine_int.h - shared by the builders of confine*.c; see confine.h. */
#ifndef SW_RUN_CONFINE_INT_H
#define SW_RUN_CONFINE_INT_H

#include "confine.h"
#include "paths.h"
#include "places.h"

/* A growing list of owned strings. The first error sticks; later adds do nothing. */
typedef struct cf_list {
	char **v;
	size_t n, cap, bytes;
	int error;
} cf_list;
void cf_add(cf_list *l, const char *z);
void cf_addn(cf_list *l, const char *p, size_t n);
void cf_addf(cf_list *l, const char *fmt, ...) SW_PRINTF(2, 3);
/* Several at once; ends with NULL. */
void cf_adds(cf_list *l, ...) __attribute__((sentinel));
void cf_clear(cf_list *l);

typedef enum { CF_RO, CF_RO_TRY, CF_RW, CF_PROC, CF_DEV, CF_TMPFS, CF_MASK } cf_mount_kind;
typedef struct cf_mount {
	cf_mount_kind kind;
	const char *path;
	size_t depth, order;
} cf_mount;

/* What a builder works on; the policy has been checked. */
typedef struct cf_build {
	const sw_confine_policy *policy;
	const sw_str *argv;
	size_t argc;
	sw_confined *out; /* builder sets guarantees; the rest is common */
	cf_list args;
	cf_mount *mounts; /* base, workspace, readable, writable, masks; parents first */
	size_t n_mounts;
	bool shares_tmp;     /* the host's /tmp is writable: set by the builder */
	uint32_t gives_away; /* guarantees that a grant undoes: private files, daemon sockets */
} cf_build;

typedef struct cf_builder {
	const char *backend;
	const char *program;
	bool private_tmp;
	bool client;         /* a client of a service: keeps an environment of its own */
	bool base_mounts;    /* wants the system, /proc, /dev and /tmp in `mounts` */
	uint32_t guarantees; /* at best */
	void (*build)(cf_build *b);
	const char *what_for; /* for the error where it is unknown */
} cf_builder;
extern const cf_builder cf_bwrap, cf_docker, cf_podman, cf_landlock, cf_seatbelt;

/* The command's own argv at the end. */
void cf_command(cf_build *b);
/* Environment of the command as NAME and value pairs, fixed ones first. */
size_t cf_env_count(const cf_build *b);
sw_env_var cf_env_at(const cf_build *b, size_t i);

/* Folders of the system every confined command may read. */
extern const char *const cf_system_folders[];
extern const size_t cf_system_folders_n;

#endif
