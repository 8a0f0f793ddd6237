/*
 * writer.h - one thread that commits what all requests want recorded, in groups: a
 * group is what arrived while the last one went to disk. A request is answered after
 * its group is on disk, never before.
 */
#ifndef SW_HTTP_WRITER_H
#define SW_HTTP_WRITER_H

#include "http.h"
#include "store.h"

typedef struct http_writer http_writer;

/* Opens (and creates) the audit trail. */
int http_writer_start(http_writer **out, const char *path, const http_config *config,
                      void (*committed)(void *arg), void *arg, sw_error *err);
/* Commits what is queued, then ends the thread. NULL is fine. */
void http_writer_stop(http_writer *w);
/*
 * Waits until the operations' group is on disk; each op's code says how it went. SW_EBUSY
 * without waiting where the queue is full, or the writer is stopping (nothing recorded). The
 * same negative code in every op where the group failed as a whole.
 */
int http_writer_submit(http_writer *w, sw_store_op *ops, size_t n, sw_error *err);

typedef struct http_writer_stats {
	uint64_t groups, operations, failures;
	uint64_t largest_group;
	size_t queued;
	bool healthy; /* the last group went to disk, or none was needed yet */
	char problem[384];
} http_writer_stats;
void http_writer_stats_get(http_writer *w, http_writer_stats *out);

/* ---- readers: connections for requests that only look (readers.c) ---- */
typedef struct http_readers http_readers;
int http_readers_new(http_readers **out, const char *path);
void http_readers_free(http_readers *r); /* NULL is fine; all must have been given back */
/* A store of the caller's own until http_readers_give(). */
int http_readers_take(http_readers *r, sw_store **out, sw_error *err);
/* broken: its last call failed; it is closed instead of kept. */
void http_readers_give(http_readers *r, sw_store *store, bool broken);

#endif
