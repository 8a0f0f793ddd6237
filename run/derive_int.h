/* derive_int.h - shared by derive*.c; see derive.h. */
#ifndef SW_RUN_DERIVE_INT_H
#define SW_RUN_DERIVE_INT_H

#include "derive.h"
#include "paths.h"
#include "places.h"

/* Every guarantee that a way out of the sandbox takes with it. */
#define DV_ESCAPE SW_GUARANTEES_ISOLATING

typedef enum {
	DV_EMPTY, /* tmpfs, proc, dev: hides what was there, shows nothing of the host's files */
	DV_HIDE,  /* Landlock: closed in what a grant opens above it, not where it is granted itself
	           */
	DV_LINK,  /* a link that the runner makes: where it leads is not known */
	DV_RO,
	DV_RW,
	DV_DEVICES /* writable, and device nodes in it work */
} dv_kind;

enum {
	DV_SAME = 1, /* of the same layer as the last */
	DV_MAYBE = 2 /* left out where the source is missing: covers nothing for certain */
};

typedef struct dv_mount {
	dv_kind kind;
	unsigned order; /* a later one covers what lies below its target */
	bool maybe;     /* left out where the source is missing */
	bool placed;    /* the target is where the text says: no link, no `..` on the way */
	char *source;   /* of the host, resolved; NULL with what shows nothing of it */
	char *target;
} dv_mount;

typedef struct dv {
	sw_derived *out;
	const sw_derive_options *opts;
	char *const *argv;
	size_t argc;
	uint32_t have, lost; /* earned; taken away whatever is earned */
	dv_mount *mounts;
	size_t n_mounts;
	unsigned order;
	bool engine;        /* docker, podman: a daemon that may be root's looks at the host */
	bool elsewhere;     /* by its options that daemon may be another host's */
	bool reads_all;     /* the command reads as root of the host */
	bool sockets_apart; /* the runner does not govern sockets at all (Landlock) */
	bool new_session;   /* without the caller's terminal */
} dv;

/* A reason that takes guarantees away for good. */
void dv_lose(dv *d, uint32_t guarantees, const char *fmt, ...) SW_PRINTF(3, 4);
/* Something that does not change the guarantees but should be read. */
void dv_note(dv *d, const char *fmt, ...) SW_PRINTF(2, 3);
/* The argv cannot be judged. The first reason is kept. */
void dv_unknown(dv *d, const char *fmt, ...) SW_PRINTF(2, 3);
static inline bool dv_is_unknown(const dv *d)
{
	return d->out->unknown_why[0] != '\0';
}
/* A capability by name, with or without cap_, in any case, that undoes nothing of the sandbox.
 * Names and numbers that are not known are none. */
bool dv_cap_harmless(const char *name, const char *const *harmless, size_t n);

/* ---- derive_host.c ---- */
/* Adds a mount; source is made absolute and resolved. flags: DV_SAME, DV_MAYBE. */
void dv_mount_add(dv *d, dv_kind kind, const char *source, const char *target, unsigned flags);
/* fs_write, fs_read, ipc and sockets by the mounts; readers call it when all are known. */
void dv_mounts_judge(dv *d);
/* The host's /proc, or one that shows the host's processes, is seen. */
bool dv_shows_proc(const dv *d);
/* File systems are mounted below it, or may be. */
bool dv_holds_mounts(dv *d, const char *source);
/* A file of the host that the command's output goes to. */
void dv_written_judge(dv *d, const char *option, const char *path);
/* Descriptors from `first` on are passed to the command. */
void dv_descriptors_judge(dv *d, int first);
void dv_terminal_judge(dv *d);

/* ---- derive_mount.c ---- */
bool dv_engine_on(const char *value);
/* One field of a CSV line into out; returns the rest, NULL at the end. */
const char *dv_csv_field(const char *p, char *out, size_t n, bool *bad);
void dv_engine_volume(dv *d, const char *v);
void dv_engine_mount(dv *d, const char *v);
void dv_engine_rootfs(dv *d, const char *v, bool read_only);

typedef struct dv_reader {
	const char *backend;
	void (*read)(dv *d, size_t options); /* argv[options] is the first after the program */
} dv_reader;
void dv_read_bwrap(dv *d, size_t at);
void dv_read_engine(dv *d, size_t at);
void dv_read_landlock(dv *d, size_t at);

#endif
