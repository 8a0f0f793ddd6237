/*
 * derive.h - the guarantees that an argv gives, read from the runner's own options.
 *
 * The table is docs/levels.md. Rules of thumb: what is not recognised earns nothing; an
 * option that is not known, options in a file or descriptor, a shell line: the basis is
 * UNKNOWN, and unknown is never counted as contained. Names are taken at their word: a
 * program called bwrap is bwrap (run checks that it is the trusted one).
 *
 * Pure but for `resolve`, which the caller may give to follow symbolic links.
 * Ownership: strings in the result are copies; free with sw_derived_clear().
 */
#ifndef SW_RUN_DERIVE_H
#define SW_RUN_DERIVE_H

#include "levels.h"

#define SW_DERIVE_NOTES_MAX 24
#define SW_DERIVE_PATHS_MAX 64
#define SW_DERIVE_MOUNTS_MAX 512

/* Zero-initialise. */
typedef struct sw_derive_options {
	const char *backend; /* the caller's; NULL: by argv. Another runner in the argv: UNKNOWN */
	const char *cwd;     /* for relative paths; NULL: they make the basis UNKNOWN */
	const char *home;    /* the real home; NULL: /home and /root stand for it */
	/* What may be written on purpose. NULL: not stated; then a bind of a folder that is
	 * nobody's workspace (/, /etc, /usr, a whole home, ...) loses fs_write. */
	const char *const *writable;
	size_t n_writable;
	long uid;        /* of the caller; SW_DERIVE_UID_UNKNOWN: not known */
	bool supervised; /* sandwitness runs it: the tree ends at the deadline whatever the options
	                  */
	/* Follows links: writes the canonical path, false: does not exist. NULL: by text. */
	bool (*resolve)(void *ctx, const char *path, char *out, size_t n);
	void *ctx;
} sw_derive_options;
#define SW_DERIVE_UID_UNKNOWN (-1L)

typedef struct sw_derive_note {
	uint32_t guarantees; /* that were lost (or could not be earned) by it */
	char text[200];      /* "--bind / /: writes to the host" */
} sw_derive_note;

typedef struct sw_derived {
	const char *backend; /* constant; "none" where no runner is recognised */
	sw_basis basis;      /* DERIVED or UNKNOWN */
	uint32_t guarantees; /* 0 with UNKNOWN */
	sw_derive_note notes[SW_DERIVE_NOTES_MAX];
	size_t n_notes;
	char unknown_why[200]; /* why the basis is UNKNOWN; "" else */
	/* Facts for the classifier. */
	sw_network network;
	char *writable[SW_DERIVE_PATHS_MAX]; /* folders inside the sandbox that can be written */
	size_t n_writable;
	bool writable_known; /* all of them are in the list */
	char *cwd;           /* the command's, NULL: not known */
	size_t command;      /* index of the wrapped command in argv; argc: not known */
} sw_derived;

void sw_derive(sw_derived *out, char *const *argv, size_t argc, const sw_derive_options *opts);
void sw_derived_clear(sw_derived *d);
/* The notes as one reason for a record: "lost fs_write: --bind / /: ...; lost network: ...".
 * Returns the length as snprintf does. */
int sw_derived_reason(const sw_derived *d, uint32_t lost, char *out, size_t n);

#endif
