/*
 * lock.c - the writers' lock: flock() for exclusion, a ticket queue for order.
 *
 * flock() alone lets the process that has just released the lock take it again
 * before a sleeping one wakes, so under load some writer can starve. Here writers
 * draw tickets from a counter in the lock file and are served in that order; the
 * queue only gives order, the flock gives safety. A ticket is held by an open file
 * description lock on the byte of its number, so one whose owner was killed is
 * noticed and skipped. The waiters sleep on a futex in the mapped file.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "store_int.h"

#define LOCK_MAGIC 0x4b434c5357000001ull
#define TICKET_BYTES (1ll << 32) /* bytes of tickets begin here, beyond the contents */
#define PROBE_NS 4000000         /* how often a waiter looks whether the one in front lives */
#define STUCK_NS 100000000       /* after so long without progress order gives way */

struct shared {
	_Atomic uint64_t magic;
	_Atomic uint32_t next;    /* ticket to draw */
	_Atomic uint32_t serving; /* ticket whose turn it is: the futex */
	_Atomic uint32_t pid;     /* of the holder, for messages only */
};

struct st_lock {
	char *path;
	int fd;
	struct shared *m;
	pid_t pid;
	uint32_t ticket;
	bool held, queued;
};

static int map_lock(st_lock *l, sw_error *err)
{
	l->fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	/* Where a program was started without stdout, what it prints must not land here. */
	if (l->fd >= 0 && l->fd <= STDERR_FILENO) {
		int low = l->fd;
		l->fd = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		close(low);
	}
	struct stat st;
	if (l->fd >= 0 && fstat(l->fd, &st) == 0 && !S_ISREG(st.st_mode)) {
		close(l->fd);
		l->fd = -1;
		return st_not_regular(l->path, st.st_mode, "cannot open the lock file", err);
	}
	if (l->fd >= 0 && fstat(l->fd, &st) == 0 &&
	    (st.st_size >= 4096 || ftruncate(l->fd, 4096) == 0)) {
		/* A page that has no block on disk would raise SIGBUS on a full disk. */
		int rc = posix_fallocate(l->fd, 0, 4096);
		if (rc == 0 || rc == EOPNOTSUPP || rc == EINVAL) {
			void *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
			if (m != MAP_FAILED) {
				l->m = m;
				uint64_t none = 0;
				atomic_compare_exchange_strong(&l->m->magic, &none, LOCK_MAGIC);
				return 0;
			}
		} else {
			errno = rc;
		}
	}
	int e = errno;
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	st_err(err, SW_EIO, l->path, strerror(e),
	       e == ENOSPC  ? "make room on the disk"
	       : e == ELOOP ? "it is a link: remove it"
	                    : "this user must be able to write it and its folder",
	       "cannot open the lock file");
	return SW_EIO;
}

static void unmap_lock(st_lock *l)
{
	if (l->m)
		munmap(l->m, 4096);
	l->m = NULL;
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

int st_lock_open(st_lock **out, const char *path, sw_error *err)
{
	st_lock *l = calloc(1, sizeof *l);
	if (l && asprintf(&l->path, "%s.lock", path) < 0)
		l->path = NULL;
	if (!l || !l->path) {
		free(l);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	l->pid = getpid();
	l->fd = -1;
	if (map_lock(l, err) != 0) {
		free(l->path);
		free(l);
		return SW_EIO;
	}
	*out = l;
	return 0;
}

void st_lock_close(st_lock *l)
{
	if (!l)
		return;
	if (l->pid == getpid() && (l->held || l->queued))
		st_lock_give(l);
	unmap_lock(l);
	free(l->path);
	free(l);
}

/* Locks, frees or tests the byte of a ticket; true where that was possible. */
static bool ticket_byte(const st_lock *l, uint32_t ticket, int how)
{
	struct flock f = {.l_type = (short)how,
	                  .l_whence = SEEK_SET,
	                  .l_start = TICKET_BYTES + ticket,
	                  .l_len = 1};
	return fcntl(l->fd, F_OFD_SETLK, &f) == 0;
}

static bool ticket_alive(const st_lock *l, uint32_t ticket)
{
	struct flock f = {
	    .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = TICKET_BYTES + ticket, .l_len = 1};
	return fcntl(l->fd, F_OFD_GETLK, &f) == 0 && f.l_type != F_UNLCK;
}

/* Each waiter sleeps on one bit, so that a release wakes the next one and few others. */
static void wake(struct shared *m, uint32_t ticket)
{
	syscall(SYS_futex, &m->serving, FUTEX_WAKE_BITSET, INT32_MAX, NULL, NULL,
	        1u << (ticket & 31));
}

static void sleep_on(struct shared *m, uint32_t seen, uint32_t ticket, int64_t until_ns)
{
	struct timespec t = {until_ns / 1000000000, until_ns % 1000000000};
	syscall(SYS_futex, &m->serving, FUTEX_WAIT_BITSET, seen, &t, NULL, 1u << (ticket & 31));
}

/* Moves the turn past `ticket` if it is there, and wakes. */
static void pass_turn(struct shared *m, uint32_t ticket)
{
	uint32_t expected = ticket;
	if (atomic_compare_exchange_strong(&m->serving, &expected, ticket + 1))
		wake(m, ticket + 1);
}

static int busy(const st_lock *l, sw_error *err)
{
	char who[64];
	snprintf(who, sizeof who, "process %u holds it", atomic_load(&l->m->pid));
	return st_err(err, SW_EBUSY, l->path, who, "try again; or look what that process is doing",
	              "the audit trail is busy: another writer holds the lock");
}

static void wait_turn(st_lock *l, int64_t deadline)
{
	struct shared *m = l->m;
	uint32_t stuck_at = 0;
	int64_t stuck_since = 0;
	for (;;) {
		uint32_t serving = atomic_load(&m->serving);
		/* At or past our turn: late, because somebody held us for dead. */
		if ((int32_t)(serving - l->ticket) >= 0)
			return;
		int64_t now = sw_monotonic_ns();
		if (now >= deadline)
			return;
		if (stuck_since == 0 || stuck_at != serving) {
			stuck_at = serving;
			stuck_since = now;
		} else if (now - stuck_since >= STUCK_NS && flock(l->fd, LOCK_EX | LOCK_NB) == 0) {
			/* Nobody holds the lock, and whose turn it is does not take it: stopped. */
			l->held = true;
			return;
		} else if (now - stuck_since >= PROBE_NS && !ticket_alive(l, serving)) {
			pass_turn(m, serving);
			continue;
		}
		int64_t until = now + PROBE_NS;
		sleep_on(m, serving, l->ticket, until < deadline ? until : deadline);
	}
}

int st_lock_take(st_lock *l, int wait_ms, sw_error *err)
{
	int64_t deadline = sw_monotonic_ns() + (int64_t)wait_ms * 1000000;
	for (;;) {
		struct shared *m = l->m;
		if (atomic_load(&m->magic) != LOCK_MAGIC) {
			return st_err(err, SW_ECORRUPT, l->path, NULL, "remove it",
			              "not a lock file of an audit trail");
		}
		l->ticket = atomic_fetch_add(&m->next, 1);
		ticket_byte(l, l->ticket, F_WRLCK);
		l->queued = true;
		wait_turn(l, deadline);
		/* The turn is only a hint; this is the lock. */
		int64_t pause = 20000;
		while (!l->held && flock(l->fd, LOCK_EX | LOCK_NB) != 0) {
			if (errno != EWOULDBLOCK && errno != EINTR) {
				int e = errno;
				st_lock_give(l);
				return st_err(err, SW_EIO, l->path, strerror(e), NULL,
				              "cannot lock");
			}
			if (sw_monotonic_ns() >= deadline) {
				busy(l, err);
				st_lock_give(l);
				return SW_EBUSY;
			}
			struct timespec t = {0, pause};
			nanosleep(&t, NULL);
			pause = pause < 500000 ? pause * 2 : pause;
		}
		l->held = true;
		struct stat a, b;
		if (fstat(l->fd, &a) == 0 && stat(l->path, &b) == 0 && a.st_ino == b.st_ino &&
		    a.st_dev == b.st_dev) {
			atomic_store(&m->pid, (uint32_t)l->pid);
			return 0;
		}
		/* The lock file was removed: others use a new one by now. */
		st_lock_give(l);
		unmap_lock(l);
		if (map_lock(l, err) != 0)
			return SW_EIO;
	}
}

void st_lock_give(st_lock *l)
{
	if (!l->m)
		return;
	if (l->held)
		flock(l->fd, LOCK_UN);
	l->held = false;
	if (l->queued) {
		/* Not yet our turn (gave up): the one in front of us must still be served, and
		 * our byte becomes free, so that the next one skips us. */
		ticket_byte(l, l->ticket, F_UNLCK);
		pass_turn(l->m, l->ticket);
	}
	l->queued = false;
}
