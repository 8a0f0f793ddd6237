/*
 * derive.h - the guarantees that an argv gives, read from the runner's own options.
 *
 * The table is docs/levels.md. Rules of thumb: what is not recognised earns nothing; an
 * option that is not known, options in a file or descriptor, a shell line: the basis is
 * UNKNOWN, and unknown is never counted as contained. Names are taken at their word: a
 * program called bwrap is bwrap; who runs it looks at `programs` and doubts those that
 * others could have put there (sw_derived_doubt).
 *
 * Pure but for the two functions by which a caller lets it look at the host. Without them
 * what could be there is taken to be there.
 * Ownership: strings in the result are copies; free with sw_derived_clear().
 */
#ifndef SW_RUN_DERIVE_H
#define SW_RUN_DERIVE_H

#include "levels.h"

#define SW_DERIVE_NOTES_MAX 24
#define SW_DERIVE_PATHS_MAX 64
#define SW_DERIVE_MOUNTS_MAX 1024
#define SW_DERIVE_PROGRAMS_MAX 8

/* A descriptor that the command inherits besides pipes. */
typedef struct sw_derive_fd {
	int fd;
	unsigned type;    /* S_IFDIR, S_IFREG, ...: st_mode & S_IFMT */
	bool writable;    /* what it is can be changed by this user: opened again, or below it */
	bool internet;    /* a socket of an internet family */
	const char *path; /* NULL: not known */
} sw_derive_fd;

typedef enum {
	SW_DERIVE_TERMINAL_NONE, /* or not known */
	SW_DERIVE_TERMINAL_SAFE, /* there is one; the kernel takes no input back (TIOCSTI) */
	SW_DERIVE_TERMINAL_OPEN  /* what a command types into it, the caller's shell reads */
} sw_derive_terminal;

/* Zero-initialise. */
typedef struct sw_derive_options {
	const char *backend;  /* the caller's; NULL: by argv. Another runner in the argv: UNKNOWN */
	const char *cwd;      /* for relative paths; NULL: they make the basis UNKNOWN */
	const char *home;     /* the account's home; NULL: /home and /root stand for it */
	const char *env_home; /* $HOME, where it may be another; private too */
	const char *user;     /* the account's name; NULL: any, in /var/mail and the like */
	/* What may be written on purpose. NULL: not stated; then a bind of a folder that is
	 * nobody's workspace (/, /etc, /usr, a whole home, ...) loses fs_write. */
	const char *const *writable;
	size_t n_writable;
	long uid;        /* of the caller; SW_DERIVE_UID_UNKNOWN: not known */
	bool supervised; /* sandwitness runs it: the tree ends at the deadline whatever the options
	                  */
	bool no_userns;  /* this kernel makes no user namespaces: bwrap may do without */
	bool setid_runner;           /* bwrap is set-uid: it implies no user namespace */
	bool engine_elsewhere;       /* docker's or podman's host may be another one */
	sw_derive_terminal terminal; /* of the session, or inherited */
	const sw_derive_fd *fds;
	size_t n_fds;
	/* Where file systems are mounted on the host. NULL: not known. */
	const char *const *mounted;
	size_t n_mounted;
	/* As realpath(): follows links, `..` after them, and writes the canonical path. False
	 * with errno 0, ENOENT or ENOTDIR: does not exist; else: cannot be told. NULL: by text. */
	bool (*resolve)(void *ctx, const char *path, char *out, size_t n);
	/* As lstat(): something has that name, also a link that leads nowhere. NULL: not known. */
	bool (*is_there)(void *ctx, const char *path);
	/* Whether this user reaches a socket or FIFO that is `path` or lies below it (near: in it
	 * or in a folder of it). NULL: the table of places decides. */
	bool (*has_socket)(void *ctx, const char *path, bool near);
	/* Whether path is a socket that this user may use, or a folder with one in it. NULL: not
	 * known.
	 */
	bool (*is_socket)(void *ctx, const char *path);
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
	/* Indexes in argv of the runner and of the programs before it that execute the rest. */
	size_t programs[SW_DERIVE_PROGRAMS_MAX];
	size_t n_programs;
} sw_derived;

void sw_derive(sw_derived *out, char *const *argv, size_t argc, const sw_derive_options *opts);
void sw_derived_clear(sw_derived *d);
/* Makes the basis UNKNOWN, for a reason that lies outside the argv. */
void sw_derived_doubt(sw_derived *d, const char *fmt, ...) SW_PRINTF(2, 3);
/* The notes as one reason for a record: "lost fs_write: --bind / /: ...; lost network: ...".
 * Returns the length as snprintf does. */
int sw_derived_reason(const sw_derived *d, uint32_t lost, char *out, size_t n);

#endif
