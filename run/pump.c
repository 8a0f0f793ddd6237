/*
 * Output to somebody who may be slow, stuck or gone. A thread writes from a ring of
 * fixed size, so that the supervisor never blocks in write(): it must stay able to
 * meet deadlines and pass signals on. Non-blocking writes instead would change the
 * open file description that the descriptor's other owners share.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "run_internal.h"

#define RING (1u << 20)
#define PIECE (1u << 16)

struct run_pump {
	int fd;
	int event; /* tells the supervisor that something has changed */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	uint64_t in, out; /* bytes ever committed and written */
	bool ending, waiting;
	int error;
	char ring[RING];
};

static void tell(run_pump *p)
{
	uint64_t one = 1;
	(void)!write(p->event, &one, sizeof one);
}

/* Cancellable only while it may block outside the lock. */
static ssize_t write_piece(int fd, const char *at, size_t n)
{
	int old;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
	ssize_t got = write(fd, at, n);
	int e = errno;
	if (got < 0 && e == EAGAIN) { /* somebody else made it non-blocking */
		struct pollfd pf = {.fd = fd, .events = POLLOUT};
		sw_poll(&pf, 1, -1);
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	errno = e;
	return got;
}

static void *writer(void *arg)
{
	run_pump *p = arg;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (p->in == p->out && !p->ending)
			pthread_cond_wait(&p->more, &p->lock);
		if (p->in == p->out)
			break;
		size_t at = p->out % RING, n = (size_t)(p->in - p->out);
		if (n > RING - at)
			n = RING - at;
		if (n > PIECE)
			n = PIECE;
		pthread_mutex_unlock(&p->lock);
		ssize_t got = write_piece(p->fd, p->ring + at, n);
		int e = errno;
		pthread_mutex_lock(&p->lock);
		if (got > 0)
			p->out += (uint64_t)got;
		else if (got < 0 && e != EAGAIN && e != EINTR)
			p->error = e;
		if (p->error || p->waiting || p->in == p->out) {
			p->waiting = false;
			tell(p);
		}
		if (p->error)
			break;
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int run_pump_new(run_pump **out, int fd, sw_error *err)
{
	run_pump *p = calloc(1, sizeof *p);
	if (!p)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	p->fd = fd;
	p->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->event < 0) {
		free(p);
		return sw_error_set(err, SW_EIO, "eventfd: %s", strerror(errno));
	}
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->more, NULL);
	/* The thread takes no signals: SIGPIPE becomes EPIPE, the rest is the supervisor's. */
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int e = pthread_create(&p->thread, NULL, writer, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (e) {
		close(p->event);
		free(p);
		return sw_error_set(err, SW_EIO, "no thread: %s", strerror(e));
	}
	*out = p;
	return SW_OK;
}

size_t run_pump_room(run_pump *p, void **at)
{
	pthread_mutex_lock(&p->lock);
	if (p->error) { /* nobody reads any more: the ring is only scratch */
		pthread_mutex_unlock(&p->lock);
		*at = p->ring;
		return PIECE;
	}
	size_t pos = p->in % RING, room = RING - (size_t)(p->in - p->out);
	if (room > RING - pos)
		room = RING - pos;
	if (room > PIECE)
		room = PIECE;
	if (room == 0)
		p->waiting = true;
	pthread_mutex_unlock(&p->lock);
	*at = p->ring + pos;
	return room;
}

void run_pump_commit(run_pump *p, size_t n)
{
	pthread_mutex_lock(&p->lock);
	if (!p->error) {
		p->in += n;
		pthread_cond_signal(&p->more);
	}
	pthread_mutex_unlock(&p->lock);
}

int run_pump_event_fd(const run_pump *p)
{
	return p->event;
}

void run_pump_clear_event(run_pump *p)
{
	uint64_t n;
	(void)!read(p->event, &n, sizeof n);
}

int run_pump_error(run_pump *p)
{
	pthread_mutex_lock(&p->lock);
	int e = p->error;
	pthread_mutex_unlock(&p->lock);
	return e;
}

bool run_pump_idle(run_pump *p)
{
	pthread_mutex_lock(&p->lock);
	bool idle = p->error || p->in == p->out;
	pthread_mutex_unlock(&p->lock);
	return idle;
}

uint64_t run_pump_written(run_pump *p)
{
	pthread_mutex_lock(&p->lock);
	uint64_t n = p->out;
	pthread_mutex_unlock(&p->lock);
	return n;
}

uint64_t run_pump_free(run_pump *p)
{
	if (!p)
		return 0;
	pthread_mutex_lock(&p->lock);
	uint64_t left = p->error ? 0 : p->in - p->out;
	p->ending = true;
	pthread_cond_signal(&p->more);
	pthread_mutex_unlock(&p->lock);
	if (left)
		pthread_cancel(p->thread); /* stuck in write() */
	pthread_join(p->thread, NULL);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->more);
	close(p->event);
	free(p);
	return left;
}
