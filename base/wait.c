/*
 * Waiting for descriptors, also after somebody has taken the limit of open files away.
 *
 * poll(2) fails with EINVAL as soon as it is asked about more descriptors than RLIMIT_NOFILE
 * allows, and any process of the same user may lower that from outside (prlimit(2)). A loop
 * that takes the error for "nothing yet" then spins for ever. select(2) knows no such limit.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>

#include "base.h"

#define SELECT_MAX 65536 /* descriptors up to here are asked about; FD_SETSIZE is only a type's */
#define WORD_BITS (CHAR_BIT * sizeof(unsigned long))
#define BLIND_NS INT64_C(2000000)

typedef struct fd_bits {
	unsigned long word[SELECT_MAX / WORD_BITS];
} fd_bits;

static void set_bit(fd_bits *b, int fd)
{
	b->word[(size_t)fd / WORD_BITS] |= 1ul << ((size_t)fd % WORD_BITS);
}

static bool has_bit(const fd_bits *b, int fd)
{
	return b->word[(size_t)fd / WORD_BITS] >> ((size_t)fd % WORD_BITS) & 1;
}

static struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static int by_select(struct pollfd *p, size_t n, int64_t wait_ns)
{
	fd_bits in, out;
	int top = 0, beyond = 0, ready = 0;
	memset(&in, 0, sizeof in);
	memset(&out, 0, sizeof out);
	for (size_t i = 0; i < n; i++) {
		p[i].revents = 0;
		if (p[i].fd >= SELECT_MAX) {
			beyond++;
			continue;
		}
		if (p[i].fd < 0)
			continue;
		if (p[i].events & POLLIN)
			set_bit(&in, p[i].fd);
		if (p[i].events & POLLOUT)
			set_bit(&out, p[i].fd);
		if (p[i].fd >= top)
			top = p[i].fd + 1;
	}
	if (beyond && (wait_ns < 0 || wait_ns > BLIND_NS))
		wait_ns = BLIND_NS;
	struct timespec ts = timespec_of(wait_ns < 0 ? 0 : wait_ns);
	/* the kernel reads as many bits as it is told to, not FD_SETSIZE */
	int got = pselect(top, (fd_set *)&in, (fd_set *)&out, NULL, wait_ns < 0 ? NULL : &ts, NULL);
	if (got < 0)
		return got;
	for (size_t i = 0; i < n; i++) {
		if (p[i].fd >= SELECT_MAX) /* nobody can be asked: let the caller try */
			p[i].revents = p[i].events & (POLLIN | POLLOUT);
		else if (p[i].fd >= 0)
			p[i].revents =
			    (short)((p[i].events & POLLIN && has_bit(&in, p[i].fd) ? POLLIN : 0) |
			            (p[i].events & POLLOUT && has_bit(&out, p[i].fd) ? POLLOUT
			                                                             : 0));
		ready += p[i].revents != 0;
	}
	return ready;
}

int sw_poll(struct pollfd *p, size_t n, int64_t wait_ns)
{
	struct timespec ts = timespec_of(wait_ns < 0 ? 0 : wait_ns);
	int got = ppoll(p, (nfds_t)n, wait_ns < 0 ? NULL : &ts, NULL);
	return got < 0 && errno == EINVAL ? by_select(p, n, wait_ns) : got;
}
