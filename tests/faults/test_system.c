/*
 * What the system may answer besides success: interrupted and short calls, no descriptor,
 * no process, an unreadable disk, a clock that steps backwards. The linker puts our
 * functions before the C library's.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base.h"
#include "run.h"
#include "signatures.h"
#include "store/store_test.h"

static struct {
	bool interrupt, one_byte; /* every second call; pieces of one byte */
	int read_errno, open_errno, fork_errno;
	unsigned late_us;     /* before the first wait for a descriptor */
	int64_t clock_back_s; /* the wall clock, at every look further back */
	unsigned calls;
} fault;

ssize_t __real_read(int fd, void *p, size_t n);
ssize_t __wrap_read(int fd, void *p, size_t n);
ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
pid_t __real_fork(void);
pid_t __wrap_fork(void);
int __real_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __real_ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask);
int __wrap_ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask);
int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);

static bool interrupted(void)
{
	if (!fault.interrupt || ++fault.calls % 2)
		return false;
	errno = EINTR;
	return true;
}

ssize_t __wrap_read(int fd, void *p, size_t n)
{
	if (fault.read_errno) {
		errno = fault.read_errno;
		return -1;
	}
	return interrupted() ? -1 : __real_read(fd, p, fault.one_byte && n ? 1 : n);
}

ssize_t __wrap_write(int fd, const void *p, size_t n)
{
	return interrupted() ? -1 : __real_write(fd, p, fault.one_byte && n ? 1 : n);
}

int __wrap_open(const char *path, int flags, ...)
{
	if (fault.open_errno) {
		errno = fault.open_errno;
		return -1;
	}
	va_list ap;
	va_start(ap, flags);
	int mode = flags & O_CREAT ? va_arg(ap, int) : 0;
	va_end(ap);
	return __real_open(path, flags, mode);
}

pid_t __wrap_fork(void)
{
	if (fault.fork_errno) {
		errno = fault.fork_errno;
		return -1;
	}
	return __real_fork();
}

static void be_late(void)
{
	if (fault.late_us)
		usleep(fault.late_us);
	fault.late_us = 0;
}

int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	be_late();
	return __real_poll(p, n, ms);
}

int __wrap_ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	be_late();
	return __real_ppoll(p, n, t, mask);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	int rc = __real_clock_gettime(id, t);
	if (id == CLOCK_REALTIME && fault.clock_back_s)
		t->tv_sec -= fault.clock_back_s * ++fault.calls;
	return rc;
}

static char folder[] = "/tmp/sandwitness-faults.XXXXXX";
static char file[64], trail[64];

static int calm(void **state)
{
	(void)state;
	memset(&fault, 0, sizeof fault);
	return 0;
}

static void reading_is_whole_in_pieces_and_interruptions(void **state)
{
	(void)state;
	char text[3001], *got = NULL;
	size_t n = 0;
	sw_error err = {0};
	memset(text, 'x', 3000);
	text[3000] = '\n';
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	fault.interrupt = fault.one_byte = true;
	assert_int_equal(sw_write_all(fd, text, sizeof text), 0);
	assert_int_equal(sw_read_file(file, 1 << 20, &got, &n, &err), 0);
	calm(NULL);
	close(fd);
	assert_int_equal(n, sizeof text);
	assert_memory_equal(got, text, n);
	free(got);
}

static void errors_of_files_are_told(void **state)
{
	(void)state;
	static const int numbers[] = {EMFILE, ENFILE, EIO, EACCES, ELOOP};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		for (int at_read = 0; at_read < 2; at_read++) {
			char *got = NULL;
			size_t n = 0;
			sw_error err = {0};
			*(at_read ? &fault.read_errno : &fault.open_errno) = numbers[i];
			int rc = sw_read_file(file, 1 << 20, &got, &n, &err);
			calm(NULL);
			assert_true(rc < 0);
			assert_null(got);
			char all[1600];
			snprintf(all, sizeof all, "%s %s", err.what, err.why);
			assert_non_null(strstr(all, strerror(numbers[i])));
			assert_non_null(strstr(err.where, file));
		}
}

/* Nothing was executed, nothing hangs, and the error says what was missing. */
static void no_process_left(void **state)
{
	(void)state;
	char program[] = "/bin/true", *argv[] = {program, NULL};
	const sw_facts facts = {0};
	static const int numbers[] = {EAGAIN, ENOMEM};
	for (size_t i = 0; i < 2; i++) {
		sw_pack *pack = NULL;
		sw_run_report report;
		sw_result *result = NULL;
		sw_error err = {0};
		assert_int_equal(sw_pack_new(&pack, sw_builtin_packs(), "none", &err), 0);
		const sw_run_options o = {.argv = argv, .out_fd = -1, .err_fd = -1};
		memset(&report, 0, sizeof report);
		fault.fork_errno = numbers[i];
		int rc = sw_run_command(&o, pack, &facts, &report, &result, &err);
		calm(NULL);
		assert_true(rc < 0);
		assert_null(result);
		char all[1600];
		snprintf(all, sizeof all, "%s %s", err.what, err.why);
		assert_non_null(strstr(all, strerror(numbers[i])));
		sw_pack_free(pack);
	}
}

/* The command is faster than the supervisor's first look, and takes its descriptors from it. */
static void no_descriptor_left_before_the_first_wait(void **state)
{
	(void)state;
	if (access("/usr/bin/prlimit", X_OK))
		skip();
	char shell[] = "/bin/sh", c[] = "-c";
	char script[] = "prlimit --pid $PPID --nofile=0:; echo said; exit 3";
	char *argv[] = {shell, c, script, NULL};
	const sw_run_options o = {.argv = argv, .out_fd = -1, .err_fd = -1};
	static sw_run_report report;
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	fault.late_us = 300000;
	alarm(30); /* it went on for ever */
	int rc = sw_run_supervise(&o, &report, NULL);
	alarm(0);
	setrlimit(RLIMIT_NOFILE, &files);
	assert_int_equal(rc, 0);
	assert_int_equal(fault.late_us, 0);
	assert_int_equal(report.exit.code, 3);
	assert_int_equal(report.output_bytes, 5);
}

/* Order comes from the chain, not from the clock; ids stay apart. */
static void a_clock_that_steps_backwards(void **state)
{
	(void)state;
	sw_store *s = NULL;
	sw_error err = {0};
	char ids[50][37];
	assert_int_equal(sw_store_open(&s, trail, SW_STORE_WRITE, NULL, &err), 0);
	fault.clock_back_s = 3600;
	for (int i = 0; i < 50; i++) {
		sw_uuid7(ids[i]);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(ids[i], ids[k]);
		char text[128];
		snprintf(text, sizeof text, "{\"id\":\"%s\",\"backend\":\"none\",\"exit\":%d}",
		         ids[i], i);
		assert_int_equal(post(s, text, NULL, &err), 0);
	}
	assert_int_equal(sw_store_seal(s, NULL, &err), 0);
	sw_store_close(s);
	assert_int_equal(sw_store_open(&s, trail, SW_STORE_READ, NULL, &err), 0);
	sw_store_counts counts;
	assert_int_equal(sw_store_counts_get(s, &counts, &err), 0);
	assert_int_equal(counts.total, 50);
	sw_store_close(s);
	const sw_verify_options v = {0};
	assert_int_equal(verify_path(trail, &v, NULL), 0);
	calm(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(reading_is_whole_in_pieces_and_interruptions, calm),
	    cmocka_unit_test_teardown(errors_of_files_are_told, calm),
	    cmocka_unit_test_teardown(no_process_left, calm),
	    cmocka_unit_test_teardown(no_descriptor_left_before_the_first_wait, calm),
	    cmocka_unit_test_teardown(a_clock_that_steps_backwards, calm),
	};
	if (!mkdtemp(folder))
		return 1;
	snprintf(file, sizeof file, "%s/file", folder);
	snprintf(trail, sizeof trail, "%s/trail.db", folder);
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	remove_dir(strdup(folder));
	return rc;
}
