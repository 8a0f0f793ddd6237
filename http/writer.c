#include "writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
	struct job *next;
	sw_store_op *ops;
	size_t n;
	bool done;
	pthread_cond_t ready;
} job;

struct http_writer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	job *first, **last;
	size_t queued; /* operations */
	bool stopping;
	http_writer_stats stats;

	/* the thread's own */
	sw_store *store;
	char *path;
	const http_config *config;
	void (*committed)(void *arg);
	void *arg;
	sw_store_op *group;
	size_t group_max;
};

/* Jobs of the next group, taken off the queue. Called with the lock held. */
static job *take(http_writer *w, size_t *n)
{
	job *first = w->first, *last = NULL;
	size_t total = 0;

	for (job *j = first; j && (!last || total + j->n <= w->group_max); j = j->next) {
		total += j->n;
		last = j;
	}
	w->first = last ? last->next : NULL;
	if (!w->first)
		w->last = &w->first;
	if (last)
		last->next = NULL;
	w->queued -= total;
	*n = total;
	return first;
}

static int commit(http_writer *w, job *jobs, size_t n, sw_error *err)
{
	size_t at = 0;
	int code = 0;

	for (job *j = jobs; j; j = j->next) {
		memcpy(w->group + at, j->ops, j->n * sizeof(*j->ops));
		at += j->n;
	}
	/* a failure may have been the file's (replaced, full): look again */
	if (!w->store)
		code = sw_store_open(&w->store, w->path, SW_STORE_WRITE, NULL, err);
	if (!code)
		code = sw_store_write(w->store, w->group, n, err);
	if (code) {
		for (size_t i = 0; i < n; i++) {
			w->group[i].code = code;
			w->group[i].error = *err;
		}
		if (code != SW_EBUSY) {
			sw_store_close(w->store);
			w->store = NULL;
		}
	}
	at = 0;
	for (job *j = jobs; j; j = j->next) {
		memcpy(j->ops, w->group + at, j->n * sizeof(*j->ops));
		at += j->n;
	}
	return code;
}

static void finish(http_writer *w, job *jobs, size_t n, int code, const sw_error *err)
{
	if (code) {
		w->stats.failures += n;
		w->stats.healthy = false;
		snprintf(w->stats.problem, sizeof(w->stats.problem), "%.190s: %.180s", err->what,
		         err->why);
	} else {
		w->stats.groups++;
		w->stats.operations += n;
		w->stats.healthy = true;
		if (n > w->stats.largest_group)
			w->stats.largest_group = n;
	}
	for (job *j = jobs, *next; j; j = next) {
		next = j->next; /* the waiter's stack frame ends once it has seen `done` */
		j->done = true;
		pthread_cond_signal(&j->ready);
	}
}

static void *writer_main(void *arg)
{
	http_writer *w = arg;

	pthread_mutex_lock(&w->lock);
	while (!w->stopping || w->first) {
		sw_error err = {0};
		size_t n = 0;

		if (!w->first) {
			pthread_cond_wait(&w->wake, &w->lock);
			continue;
		}
		job *jobs = take(w, &n);
		pthread_mutex_unlock(&w->lock);
		int code = commit(w, jobs, n, &err);
		pthread_mutex_lock(&w->lock);
		finish(w, jobs, n, code, &err);
		if (!code && w->committed) {
			pthread_mutex_unlock(&w->lock);
			w->committed(w->arg);
			pthread_mutex_lock(&w->lock);
		}
	}
	pthread_mutex_unlock(&w->lock);
	sw_store_close(w->store);
	w->store = NULL;
	return NULL;
}

int http_writer_submit(http_writer *w, sw_store_op *ops, size_t n, sw_error *err)
{
	job j = {.ops = ops, .n = n};

	if (!n)
		return 0;
	pthread_cond_init(&j.ready, NULL);
	pthread_mutex_lock(&w->lock);
	/* one job may always wait, however large */
	if (w->stopping || n > w->group_max ||
	    (w->queued && w->queued + n > (size_t)w->config->max_queue)) {
		bool stopping = w->stopping;
		pthread_mutex_unlock(&w->lock);
		pthread_cond_destroy(&j.ready);
		sw_error_set(err, SW_EBUSY,
		             stopping ? "the service is stopping"
		                      : "too many records wait for the disk");
		return sw_error_more(
		    err, "", NULL, "send it again, with the same id, after a second; --max-queue");
	}
	*w->last = &j;
	w->last = &j.next;
	w->queued += n;
	pthread_cond_signal(&w->wake);
	while (!j.done)
		pthread_cond_wait(&j.ready, &w->lock);
	pthread_mutex_unlock(&w->lock);
	pthread_cond_destroy(&j.ready);
	return 0;
}

void http_writer_stats_get(http_writer *w, http_writer_stats *out)
{
	pthread_mutex_lock(&w->lock);
	*out = w->stats;
	out->queued = w->queued;
	pthread_mutex_unlock(&w->lock);
}

static void free_writer(http_writer *w)
{
	sw_store_close(w->store);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->wake);
	free(w->group);
	free(w->path);
	free(w);
}

int http_writer_start(http_writer **out, const char *path, const http_config *config,
                      void (*committed)(void *arg), void *arg, sw_error *err)
{
	http_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	w->last = &w->first;
	w->config = config;
	w->committed = committed;
	w->arg = arg;
	w->stats.healthy = true;
	w->group_max = (size_t)config->max_group;
	if (w->group_max > SW_STORE_GROUP_MAX)
		w->group_max = SW_STORE_GROUP_MAX;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->group = calloc(w->group_max, sizeof(*w->group));
	w->path = strdup(path);
	int code = w->group && w->path ? sw_store_open(&w->store, path, SW_STORE_WRITE, NULL, err)
	                               : sw_error_set(err, SW_ENOMEM, "out of memory");
	/* the thread takes the store over; it is not used here any more */
	if (!code && pthread_create(&w->thread, NULL, writer_main, w))
		code = sw_error_set(err, SW_EIO, "the writer's thread cannot be started");
	if (code) {
		free_writer(w);
		return code;
	}
	*out = w;
	return 0;
}

void http_writer_stop(http_writer *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	free_writer(w);
}
