/* What the supervisor's tests share. */
#ifndef SW_TEST_RUN_HELPERS_H
#define SW_TEST_RUN_HELPERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"
#include "run.h"

#define MS INT64_C(1000000)
#define SANDBOX "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"

static inline char *victim(void)
{
	char *path = getenv("SW_VICTIM");
	return path ? path : (char *)(uintptr_t) "./run_victim";
}

/* The output that on_output saw, its beginning. */
typedef struct seen {
	char text[65536];
	size_t len;
	uint64_t total;
	int spawns;
	int refuse;
} seen;

static inline void see(void *ctx, const void *bytes, size_t n)
{
	seen *s = ctx;
	s->total += n;
	size_t room = sizeof s->text - 1 - s->len, take = n < room ? n : room;
	memcpy(s->text + s->len, bytes, take);
	s->len += take;
	s->text[s->len] = '\0';
}

static inline int count_spawn(void *ctx, sw_error *err)
{
	seen *s = ctx;
	s->spawns++;
	return s->refuse ? sw_error_set(err, SW_EBUSY, "refused by the test") : 0;
}

static inline sw_run_options options_for(char *const *argv, seen *s)
{
	memset(s, 0, sizeof *s);
	return (sw_run_options){.argv = argv,
	                        .out_fd = -1,
	                        .err_fd = -1,
	                        .on_output = see,
	                        .before_spawn = count_spawn,
	                        .ctx = s};
}

static inline bool has_note(const sw_run_report *r, sw_run_note_kind kind)
{
	for (size_t i = 0; i < r->n_notes; i++)
		if (r->notes[i].kind == kind)
			return true;
	return false;
}

/* Processes anywhere whose command line or environment holds `mark`, zombies not counted. */
static inline int count_marked(const char *mark)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int n = 0;
	while (d && (e = readdir(d))) {
		char path[300], text[16384];
		if (e->d_name[0] < '1' || e->d_name[0] > '9' || atoi(e->d_name) == getpid())
			continue;
		snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		ssize_t got = read(fd, text, sizeof text);
		close(fd);
		if (got > 0 && memmem(text, (size_t)got, mark, strlen(mark)))
			n++;
	}
	if (d)
		closedir(d);
	return n;
}

static inline int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline bool no_children(void)
{
	return waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) && errno == ECHILD;
}

/* User namespaces work here? Root needs none. */
static inline bool bwrap_works(void)
{
	seen s;
	sw_run_report *r = calloc(1, sizeof *r);
	char *const argv[] = {SANDBOX, "--unshare-all", "true", NULL};
	sw_run_options o = options_for(argv, &s);
	bool works = sw_run_supervise(&o, r, NULL) == 0 && r->exit.has_code && r->exit.code == 0;
	free(r);
	return works;
}

#define RUN(o, r)                                                \
	do {                                                     \
		sw_error err_;                                   \
		if (sw_run_supervise(&(o), (r), &err_))          \
			fail_msg("%s: %s", err_.what, err_.why); \
	} while (0)

#endif
