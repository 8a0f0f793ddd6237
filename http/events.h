/*
 * events.h - news of the audit trail as server-sent events. One thread looks for new
 * rows (woken by this service's own commits, and every config->poll_ns for those of
 * other processes) and keeps the last ones in a ring; each stream copies from there.
 * A stream that resumes further back reads the trail itself until it meets the ring. A
 * live stream that the ring overtakes is told so and ended: it resumes by its last id.
 */
#ifndef SW_HTTP_EVENTS_H
#define SW_HTTP_EVENTS_H

#include <sys/types.h>

#include "conn.h"
#include "writer.h"

enum { HTTP_RING_EVENTS = 1024, HTTP_RING_BYTES = 8 << 20 };

typedef struct http_events http_events;
typedef struct http_stream http_stream;

int http_events_start(http_events **out, http_readers *readers, const http_config *config,
                      sw_error *err);
/* Ends every stream (each is told) and the thread; streams may be freed later. */
void http_events_shut(http_events *e);
void http_events_free(http_events *e); /* after all streams; NULL is fine */
/* Something was committed. Any thread. */
void http_events_poke(http_events *e);

/* SW_EBUSY: too many. after: the last id the client has; UINT64_MAX: from now on. */
int http_stream_open(http_stream **out, http_events *e, uint64_t after, sw_error *err);
void http_stream_attach(http_stream *s, http_conn *conn);
/* libmicrohttpd's reader and free callbacks. */
ssize_t http_stream_read(void *stream, uint64_t pos, char *buf, size_t max);
void http_stream_free(void *stream);

typedef struct http_events_stats {
	size_t streams;
	uint64_t sent, dropped_behind, dropped_stalled;
	uint64_t head; /* newest row seen */
} http_events_stats;
void http_events_stats_get(http_events *e, http_events_stats *out);

#endif
