/*
 * store_confine.h - the verbs that only read the audit trail do it in a process that has
 * given up everything else. A trail or an export may come from somebody else: what a flaw
 * in reading it could reach is its folder, to read, and an empty folder of its own for
 * what SQLite sorts.
 *
 * The process that was started only waits: it cleans up what a confined one cannot, and
 * hands on the status or the signal.
 */
#ifndef SW_STORE_CONFINE_H
#define SW_STORE_CONFINE_H

#include "cli.h"

typedef struct store_confine {
	bool off;         /* --no-self-sandbox */
	bool apart;       /* set: this is the process that reads */
	char tmp[256];    /* "": none */
	const char *also; /* another file to be read, or NULL */
} store_confine;

/*
 * true: go on, here is where the work is done. false: it was done, *status is its status.
 * Where no process can be made the work is done in this one. Call it before the trail is
 * opened: a store is never used across fork().
 */
bool store_confine_begin(store_confine *c, int *status);
/*
 * Gives up all but reading what lies beside db (NULL: none) and `file` (NULL: none), once
 * both are open or about to be; standard streams stay.
 */
void store_confine_now(const store_confine *c, const char *db, const char *file);
/* In the process that store_confine_begin() went on in without another: removes the folder. */
void store_confine_end(store_confine *c);

#endif
