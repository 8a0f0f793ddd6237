/*
 * A path can lead to a file system that never answers (a dead network or FUSE mount), and the
 * deadline of a run must hold.
 */
#include "ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base.h"

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

/* Holds nothing of ours that somebody waits for: it may stay for ever. */
static void answer_apart(void (*answer)(void *), void *question, size_t size, int to)
{
	if (to > 0)
		close_range(0, (unsigned)to - 1, 0);
	close_range((unsigned)to + 1, ~0u, 0);
	answer(question);
	for (size_t n = 0; n < size;) {
		ssize_t w = write(to, (char *)question + n, size - n);
		if (w < 0 && errno != EINTR)
			_exit(1);
		n += w > 0 ? (size_t)w : 0;
	}
	_exit(0);
}

static bool hear(int from, void *question, size_t size)
{
	int64_t until = sw_monotonic_ns() + ANSWER_S * INT64_C(1000000000);
	for (size_t n = 0; n < size;) {
		int64_t left = until - sw_monotonic_ns();
		struct pollfd pf = {.fd = from, .events = POLLIN};
		int got = left > 0 ? sw_poll(&pf, 1, left) : 0;
		if (got < 0 && errno == EINTR)
			continue;
		ssize_t k = got > 0 ? read(from, (char *)question + n, size - n) : 0;
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		n += (size_t)k;
	}
	return true;
}

bool run_ask_apart(void (*answer)(void *question), void *question, size_t size)
{
	int p[2];
	char *copy = hanging >= HANGS_MAX ? NULL : malloc(size);
	if (!copy || pipe2(p, O_CLOEXEC)) {
		free(copy);
		return false;
	}
	memcpy(copy, question, size);
	pid_t pid = fork();
	if (pid == 0)
		answer_apart(answer, copy, size, p[1]);
	close(p[1]);
	bool done = pid > 0 && hear(p[0], copy, size);
	close(p[0]);
	if (pid > 0 && !done) {
		kill(pid, SIGKILL); /* not where it hangs in the kernel: then it is left there */
		hanging++;
	}
	if (pid > 0)
		waitpid(pid, NULL, done ? 0 : WNOHANG);
	if (done)
		memcpy(question, copy, size);
	free(copy);
	return done;
}
