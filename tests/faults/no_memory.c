/*
 * Put before the C library by LD_PRELOAD: from the moment that the file SW_NO_MEMORY exists, this
 * process (its forks too with SW_NO_MEMORY_FORKS, each for itself; no program that it starts) gets
 * SW_NO_MEMORY_AFTER allocations more; then SW_NO_MEMORY_TIMES of them fail, all if that is not
 * set. Unlike a limit of the address space it does not matter what the heap has still in hand.
 */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);

static const char *when;
static long after, times;
static pid_t whose;
static atomic_bool begun;

static long number(const char *name, long without)
{
	const char *z = getenv(name);
	return z ? strtol(z, NULL, 10) : without;
}

__attribute__((constructor)) static void watch(void)
{
	after = number("SW_NO_MEMORY_AFTER", 0);
	times = number("SW_NO_MEMORY_TIMES", LONG_MAX);
	whose = getenv("SW_NO_MEMORY_FORKS") ? 0 : getpid();
	when = getenv("SW_NO_MEMORY");
	begun = when && !access(when, F_OK);
	unsetenv("LD_PRELOAD");
}

static bool fails(void)
{
	int before = errno;
	bool none = false;
	if (when && (!whose || getpid() == whose)) {
		if (!begun && !access(when, F_OK))
			begun = true;
		none = begun && after-- <= 0 && times-- > 0;
	}
	errno = none ? ENOMEM : before;
	return none;
}

void *malloc(size_t n)
{
	if (fails())
		return NULL;
	void *p = __libc_malloc(n);
	if (p) /* what is read before it was written must not be a lucky zero */
		memset(p, 0xa5, n);
	return p;
}

void *calloc(size_t n, size_t m)
{
	return fails() ? NULL : __libc_calloc(n, m);
}

void *realloc(void *p, size_t n)
{
	return fails() ? NULL : __libc_realloc(p, n);
}
