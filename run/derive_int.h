/* derive_int.h - shared by derive*.c; see derive.h. */
#ifndef SW_RUN_DERIVE_INT_H
#define SW_RUN_DERIVE_INT_H

#include "derive.h"
#include "paths.h"

/* Every guarantee that a way out of the sandbox takes with it. */
#define DV_ESCAPE \
	(SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(NETWORK) | SW_G(PID) | SW_G(IPC) | SW_G(SYSCALLS))

typedef enum {
	DV_EMPTY, /* tmpfs, proc, dev: hides what was there, shows nothing of the host's files */
	DV_RO,
	DV_RW
} dv_kind;

typedef struct dv_mount {
	dv_kind kind;
	unsigned order; /* a later one covers what lies below its target */
	char *source;   /* of the host, resolved; NULL with DV_EMPTY */
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
	bool sockets_matter; /* the daemon's socket is certain to be there (docker) */
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

/* Adds a mount; source is made absolute and resolved. same: of the same layer as the last. */
void dv_mount_add(dv *d, dv_kind kind, const char *source, const char *target, bool same);
/* fs_write, fs_read and sockets by the mounts; readers call it when all are known. */
void dv_mounts_judge(dv *d);

/* ---- derive_mount.c ---- */
bool dv_engine_on(const char *value);
void dv_engine_volume(dv *d, const char *v);
void dv_engine_mount(dv *d, const char *v);

typedef struct dv_reader {
	const char *backend;
	void (*read)(dv *d, size_t options); /* argv[options] is the first after the program */
} dv_reader;
void dv_read_bwrap(dv *d, size_t at);
void dv_read_engine(dv *d, size_t at);
void dv_read_landlock(dv *d, size_t at);

#endif
