#include "events.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 256, EVENT_MAX = 1 << 20 };

typedef struct entry {
	uint64_t seq;
	char *text;
	size_t len;
} entry;

struct http_events {
	http_readers *readers;
	const http_config *config;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t poke; /* for the thread */
	pthread_cond_t news; /* for the streams */
	bool poked, stopping;
	entry ring[HTTP_RING_EVENTS];
	size_t first, n, bytes;
	uint64_t floor; /* every row after this and up to `head` is in the ring */
	uint64_t head;
	http_events_stats stats;
};

struct http_stream {
	http_events *events;
	http_conn *conn;
	uint64_t last; /* the client has up to here */
	bool live;     /* has met the ring */
	bool ended;
	sw_buf pending;
	size_t sent;       /* of pending */
	int64_t handed_ns; /* when bytes were last given to libmicrohttpd */
};

/* ---- the ring; called with the lock held ---- */

static void ring_drop_first(http_events *e)
{
	entry *x = &e->ring[e->first];

	e->floor = x->seq;
	e->bytes -= x->len;
	free(x->text);
	e->first = (e->first + 1) % HTTP_RING_EVENTS;
	e->n--;
}

static void ring_clear(http_events *e, uint64_t head)
{
	while (e->n)
		ring_drop_first(e);
	e->floor = e->head = head;
}

static void ring_add(http_events *e, uint64_t seq, char *text, size_t len)
{
	while (e->n == HTTP_RING_EVENTS || (e->n && e->bytes + len > HTTP_RING_BYTES))
		ring_drop_first(e);
	e->ring[(e->first + e->n) % HTTP_RING_EVENTS] = (entry){seq, text, len};
	e->n++;
	e->bytes += len;
	e->head = seq;
}

static int format_event(sw_buf *b, uint64_t seq, json_t *object)
{
	const char *kind = json_string_value(json_object_get(object, "event"));
	char *text = sw_json_dump(object);

	if (!text)
		return SW_ENOMEM;
	/* JSON on one line holds no line end, so it cannot forge a field of the stream */
	int code =
	    sw_buf_addf(b, "id: %" PRIu64 "\nevent: %s\ndata: ", seq, kind ? kind : "complete");
	if (!code)
		code = sw_buf_adds(b, text);
	if (!code)
		code = sw_buf_adds(b, "\n\n");
	free(text);
	return code;
}

/* ---- the thread ---- */

static int pump_one(void *arg, uint64_t seq, json_t *object)
{
	http_events *e = arg;
	sw_buf b;

	sw_buf_init(&b, EVENT_MAX);
	if (format_event(&b, seq, object)) {
		sw_buf_free(&b);
		return 0; /* a single monster is skipped rather than stopping all the others */
	}
	size_t len = b.len;
	char *text = sw_buf_take(&b);
	pthread_mutex_lock(&e->lock);
	if (text && seq > e->head)
		ring_add(e, seq, text, len);
	else
		free(text);
	bool stop = e->stopping;
	pthread_mutex_unlock(&e->lock);
	return stop;
}

static void pump(http_events *e)
{
	sw_store *store;
	sw_store_head head;
	bool watched;
	int code = http_readers_take(e->readers, &store, NULL);

	if (code)
		return;
	code = sw_store_head_get(store, &head, NULL);
	if (!code) {
		pthread_mutex_lock(&e->lock);
		watched = e->stats.streams > 0;
		/* nobody listens, or another file took this one's place: begin at its head */
		if (!watched || head.seq < e->head)
			ring_clear(e, head.seq);
		uint64_t from = e->head;
		pthread_mutex_unlock(&e->lock);
		if (head.seq > from)
			code = sw_store_events(store, from, BATCH, pump_one, e, NULL);
		pthread_mutex_lock(&e->lock);
		/* rows that are no events (seals) move the head too; more to read: come back at
		 * once */
		if (!code && head.seq > from && e->head == from)
			e->head = head.seq;
		if (e->head != from)
			pthread_cond_broadcast(&e->news);
		if (e->head < head.seq && e->head != from)
			e->poked = true;
		pthread_mutex_unlock(&e->lock);
	}
	http_readers_give(e->readers, store, code != 0);
}

static void deadline_after(struct timespec *ts, int64_t ns)
{
	clock_gettime(CLOCK_MONOTONIC, ts);
	ts->tv_sec += ns / 1000000000;
	ts->tv_nsec += ns % 1000000000;
	if (ts->tv_nsec >= 1000000000) {
		ts->tv_nsec -= 1000000000;
		ts->tv_sec++;
	}
}

static void *events_main(void *arg)
{
	http_events *e = arg;
	struct timespec until;

	pthread_mutex_lock(&e->lock);
	while (!e->stopping) {
		deadline_after(&until, e->config->poll_ns);
		while (!e->poked && !e->stopping)
			if (pthread_cond_timedwait(&e->poke, &e->lock, &until) == ETIMEDOUT)
				break;
		e->poked = false;
		if (e->stopping)
			break;
		pthread_mutex_unlock(&e->lock);
		pump(e);
		pthread_mutex_lock(&e->lock);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

int http_events_start(http_events **out, http_readers *readers, const http_config *config,
                      sw_error *err)
{
	http_events *e = calloc(1, sizeof(*e));
	pthread_condattr_t attr;

	if (!e)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	e->readers = readers;
	e->config = config;
	pthread_mutex_init(&e->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&e->poke, &attr);
	pthread_cond_init(&e->news, &attr);
	pthread_condattr_destroy(&attr);
	pump(e);
	if (pthread_create(&e->thread, NULL, events_main, e)) {
		http_events_free(e);
		return sw_error_set(err, SW_EIO, "the events' thread cannot be started");
	}
	e->started = true;
	*out = e;
	return 0;
}

void http_events_shut(http_events *e)
{
	if (!e || !e->started)
		return;
	pthread_mutex_lock(&e->lock);
	e->stopping = true;
	pthread_cond_broadcast(&e->poke);
	pthread_cond_broadcast(&e->news);
	pthread_mutex_unlock(&e->lock);
	pthread_join(e->thread, NULL);
	e->started = false;
}

void http_events_free(http_events *e)
{
	if (!e)
		return;
	http_events_shut(e);
	ring_clear(e, 0);
	pthread_mutex_destroy(&e->lock);
	pthread_cond_destroy(&e->poke);
	pthread_cond_destroy(&e->news);
	free(e);
}

void http_events_poke(http_events *e)
{
	pthread_mutex_lock(&e->lock);
	/* without listeners the slow look is soon enough, and costs a busy writer nothing */
	if (e->stats.streams && !e->poked) {
		e->poked = true;
		pthread_cond_signal(&e->poke);
	}
	pthread_mutex_unlock(&e->lock);
}

void http_events_stats_get(http_events *e, http_events_stats *out)
{
	pthread_mutex_lock(&e->lock);
	*out = e->stats;
	out->head = e->head;
	pthread_mutex_unlock(&e->lock);
}

/* ---- streams ---- */

/* The thread's knowledge may be a moment old; whether an id exists is asked of the trail. */
static uint64_t newest_row(http_events *e)
{
	sw_store *store;
	sw_store_head head = {0};

	if (http_readers_take(e->readers, &store, NULL))
		return 0;
	int code = sw_store_head_get(store, &head, NULL);
	http_readers_give(e->readers, store, code != 0);
	return code ? 0 : head.seq;
}

int http_stream_open(http_stream **out, http_events *e, uint64_t after, sw_error *err)
{
	http_stream *s = calloc(1, sizeof(*s));
	uint64_t newest = newest_row(e);

	if (!s)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	s->events = e;
	sw_buf_init(&s->pending, 2 * EVENT_MAX);
	pthread_mutex_lock(&e->lock);
	bool full = e->stopping || e->stats.streams >= (size_t)e->config->max_streams;
	if (!full) {
		e->stats.streams++;
		if (newest < e->head)
			newest = e->head;
		/* an id from the future belongs to another trail */
		s->last = after > newest ? newest : after;
		s->live = s->last >= e->floor;
	}
	pthread_mutex_unlock(&e->lock);
	if (full) {
		free(s);
		return sw_error_set(err, SW_EBUSY, "all %" PRId64 " event streams are taken",
		                    e->config->max_streams);
	}
	sw_buf_addf(&s->pending,
	            "retry: 2000\nid: %" PRIu64 "\nevent: hello\ndata: {\"after\":%" PRIu64
	            ",\"head\":%" PRIu64 "}\n\n",
	            s->last, s->last, newest);
	*out = s;
	return 0;
}

void http_stream_attach(http_stream *s, http_conn *conn)
{
	s->conn = conn;
	s->handed_ns = sw_monotonic_ns();
	http_conn_phase(conn, HTTP_PHASE_STREAM);
}

void http_stream_free(void *stream)
{
	http_stream *s = stream;

	if (!s)
		return;
	pthread_mutex_lock(&s->events->lock);
	s->events->stats.streams--;
	pthread_mutex_unlock(&s->events->lock);
	sw_buf_free(&s->pending);
	free(s);
}

static void end_stream(http_stream *s, const char *event, const char *why)
{
	s->ended = true;
	sw_buf_addf(&s->pending,
	            "event: %s\ndata: {\"reason\":\"%s\",\"last\":%" PRIu64
	            ",\"fix\":\"connect again with Last-Event-ID: %" PRIu64 "\"}\n\n",
	            event, why, s->last, s->last);
}

static int catch_one(void *arg, uint64_t seq, json_t *object)
{
	http_stream *s = arg;

	if (format_event(&s->pending, seq, object))
		return 1;
	s->last = seq;
	/* enough for one turn; the buffer's maximum leaves room for one more event */
	return s->pending.len > EVENT_MAX / 2;
}

/* Reads the trail itself. Called without the lock. */
static void catch_up(http_stream *s, uint64_t floor)
{
	sw_store *store;
	sw_error err = {0};
	uint64_t before = s->last;
	int code = http_readers_take(s->events->readers, &store, &err);

	if (!code) {
		code = sw_store_events(store, s->last, BATCH, catch_one, s, &err);
		http_readers_give(s->events->readers, store, code < 0);
	}
	if (code < 0 || s->pending.error)
		end_stream(s, "dropped", "the audit trail could not be read");
	else if (s->last == before)
		s->last = floor; /* nothing in between: those rows are no events, or were pruned */
}

/* Copies from the ring. Called with the lock held. */
static void copy_live(http_stream *s)
{
	http_events *e = s->events;

	for (size_t i = 0; i < e->n && s->pending.len < EVENT_MAX / 2; i++) {
		const entry *x = &e->ring[(e->first + i) % HTTP_RING_EVENTS];
		if (x->seq <= s->last)
			continue;
		if (sw_buf_add(&s->pending, x->text, x->len))
			break;
		s->last = x->seq;
		e->stats.sent++;
	}
}

/* Waits for something to send. Called without the lock, with nothing pending. */
static void refill(http_stream *s)
{
	http_events *e = s->events;
	struct timespec until;

	s->pending.len = s->sent = 0;
	deadline_after(&until, e->config->heartbeat_ns);
	pthread_mutex_lock(&e->lock);
	while (!s->pending.len && !s->ended) {
		if (e->stopping) {
			end_stream(s, "stopping", "the service is shutting down");
		} else if (s->last < e->floor && s->live) {
			e->stats.dropped_behind++;
			end_stream(s, "dropped", "too slow: newer events have taken the place");
		} else if (s->last < e->floor) {
			uint64_t floor = e->floor;
			pthread_mutex_unlock(&e->lock);
			catch_up(s, floor);
			pthread_mutex_lock(&e->lock);
		} else {
			s->live = true;
			copy_live(s);
			if (!s->pending.len &&
			    pthread_cond_timedwait(&e->news, &e->lock, &until) == ETIMEDOUT)
				sw_buf_adds(&s->pending, ": still here\n\n");
		}
	}
	pthread_mutex_unlock(&e->lock);
}

ssize_t http_stream_read(void *stream, uint64_t pos, char *buf, size_t max)
{
	http_stream *s = stream;
	int64_t now = sw_monotonic_ns();

	(void)pos;
	if (s->sent == s->pending.len) {
		if (s->ended)
			return MHD_CONTENT_READER_END_OF_STREAM;
		http_conn_phase(s->conn, HTTP_PHASE_STREAM);
		if (s->handed_ns && now - s->handed_ns > s->events->config->stall_ns) {
			pthread_mutex_lock(&s->events->lock);
			s->events->stats.dropped_stalled++;
			pthread_mutex_unlock(&s->events->lock);
			s->pending.len = s->sent = 0;
			end_stream(s, "dropped", "too slow: nothing was taken for too long");
		} else {
			refill(s);
		}
	}
	size_t n = s->pending.len - s->sent;
	if (n > max)
		n = max;
	memcpy(buf, s->pending.ptr + s->sent, n);
	s->sent += n;
	s->handed_ns = sw_monotonic_ns();
	http_conn_phase(s->conn, HTTP_PHASE_STREAM_OUT);
	return (ssize_t)n;
}
