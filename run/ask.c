/*
 * A path can lead to a file system that never answers (a dead network or FUSE mount), and the
 * deadline of a run must hold.
 */
#include "ask.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ANSWER_S 1
#define HANGS_MAX 3

typedef struct ask {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	bool done, left; /* left: nobody waits, the thread frees */
	void (*answer)(void *);
	max_align_t question[];
} ask;

/* Threads of this process that were left behind. */
static _Atomic int hanging;

static void destroy(ask *a)
{
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->answered);
	free(a);
}

static void *thread(void *arg)
{
	ask *a = arg;
	a->answer(a->question);
	pthread_mutex_lock(&a->lock);
	bool left = a->left;
	a->done = true;
	pthread_cond_signal(&a->answered);
	pthread_mutex_unlock(&a->lock);
	if (left)
		destroy(a);
	return NULL;
}

static bool start(ask *a)
{
	pthread_attr_t detached;
	pthread_t id;
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	bool ok = pthread_create(&id, &detached, thread, a) == 0;
	pthread_attr_destroy(&detached);
	return ok;
}

bool run_ask(void (*answer)(void *question), void *question, size_t size)
{
	ask *a = hanging >= HANGS_MAX ? NULL : calloc(1, sizeof *a + size);
	pthread_condattr_t monotonic;
	if (!a)
		return false;
	a->answer = answer;
	memcpy(a->question, question, size);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ANSWER_S;
	if (!start(a)) {
		destroy(a);
		return false;
	}
	pthread_mutex_lock(&a->lock);
	int rc = 0;
	while (!a->done && rc == 0)
		rc = pthread_cond_timedwait(&a->answered, &a->lock, &until);
	bool done = a->done;
	if (done) {
		memcpy(question, a->question, size);
	} else {
		a->left = true;
		hanging++;
	}
	pthread_mutex_unlock(&a->lock);
	if (done)
		destroy(a);
	return done;
}
