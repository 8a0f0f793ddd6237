/* base: buffers, time words, encodings, escaping, JSON limits. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NS INT64_C(1000000000)

static void buffer_has_a_maximum(void **state)
{
	sw_buf b;
	sw_buf_init(&b, 8);
	assert_int_equal(sw_buf_adds(&b, "12345678"), 0);
	assert_int_equal(sw_buf_adds(&b, "9"), SW_ETOOBIG);
	assert_int_equal(sw_buf_adds(&b, ""), SW_ETOOBIG); /* sticky */
	assert_null(sw_buf_take(&b));
	sw_buf_init(&b, 100);
	sw_buf_addf(&b, "%d-%s", 42, "x");
	char *z = sw_buf_take(&b);
	assert_string_equal(z, "42-x");
	free(z);
}

static void time_words(void **state)
{
	/* 2026-07-15T12:00:00Z, a Wednesday */
	int64_t now = INT64_C(1784116800) * NS, t;
	char text[40];
	setenv("TZ", "UTC", 1);
	tzset();
	static const struct {
		const char *word, *time;
	} rows[] = {
	    {"now", "2026-07-15T12:00:00.000Z"},
	    {"recent", "2026-07-15T11:50:00.000Z"},
	    {"today", "2026-07-15T00:00:00.000Z"},
	    {"yesterday", "2026-07-14T00:00:00.000Z"},
	    {"this-week", "2026-07-13T00:00:00.000Z"},
	    {"week-ago", "2026-07-08T00:00:00.000Z"},
	    {"24h", "2026-07-14T12:00:00.000Z"},
	    {"2w", "2026-07-01T12:00:00.000Z"},
	    {"2026-01-02", "2026-01-02T00:00:00.000Z"},
	    {"2028-02-29", "2028-02-29T00:00:00.000Z"},
	    {"2026-12-31t23:59:60z", "2027-01-01T00:00:00.000Z"},
	    {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z"},
	    {"2026-01-02T03:04:05.678+02:00", "2026-01-02T01:04:05.678Z"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(sw_time_parse(rows[i].word, now, &t, NULL), 0);
		sw_time_format(t, text);
		assert_string_equal(text, rows[i].time);
	}
	static const char *const bad[] = {
	    "", "soon", "24", "h", "2026-13-01", "2026-01-02T03:04", "-5m", "2026-01-02T03:04:05",
	    /* more than 64 bits of nanoseconds hold */
	    "2922-12-30T00:00:00Z", "9999-12-31", "0001-01-01T00:00:00Z",
	    /* days and times that there are not, and forms that are not quite the one */
	    "2026-02-30", "2026-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-00-01",
	    "2026-01-00", "2026-1-2", " 2026-01-02", "2026-01- 2", "+2026-01-02",
	    "2026-01-02T3:04:05Z", "2026-01-02T 3:04:05Z", "2026-01-02T24:00:00Z",
	    "2026-01-02T03:04:61Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05ZZ", "20260102",
	    "2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05+-1:00", "2026-01-02T03:04:05+02:60"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		sw_error err = {0};
		assert_int_equal(sw_time_parse(bad[i], now, &t, &err), SW_EINVAL);
		assert_non_null(strstr(err.fix, "today"));
	}
}

static void durations(void **state)
{
	int64_t d;
	assert_int_equal(sw_duration_parse("250ms", &d, NULL), 0);
	assert_true(d == NS / 4);
	assert_int_equal(sw_duration_parse("1.5s", &d, NULL), 0);
	assert_true(d == NS * 3 / 2);
	assert_int_equal(sw_duration_parse("s", &d, NULL), SW_EINVAL);
	assert_int_equal(sw_duration_parse("99999999999w", &d, NULL), SW_EINVAL);
}

static void uuid7_sorts_by_time(void **state)
{
	char a[37], b[37];
	sw_uuid7(a);
	struct timespec pause = {0, 2000000};
	nanosleep(&pause, NULL);
	sw_uuid7(b);
	assert_int_equal(strlen(a), 36);
	assert_int_equal(a[14], '7');
	assert_true(strchr("89ab", a[19]) != NULL);
	assert_true(strcmp(a, b) < 0);
}

static void base64_round_trip(void **state)
{
	for (size_t n = 0; n < 70; n++) {
		unsigned char in[70];
		for (size_t i = 0; i < n; i++)
			in[i] = (unsigned char)(i * 37 + n);
		char *z = sw_base64(in, n), *out;
		size_t m;
		assert_int_equal(sw_base64_decode(z, strlen(z), &out, &m), 0);
		assert_int_equal(m, n);
		assert_memory_equal(in, out, n);
		free(z);
		free(out);
	}
	char *out;
	size_t m;
	static const char *const bad[] = {
	    "a", "ab", "abc", "ab=c", "a===", "====", "ab c", "abc\n", "YQ==YQ=="};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(sw_base64_decode(bad[i], strlen(bad[i]), &out, &m), SW_EINVAL);
}

static void terminal_text_is_harmless(void **state)
{
	/* right-to-left override; byte by byte, so that no reader of this file meets it */
	static const char turn[] = {'\xe2', '\x80', '\xae', 'a', 'b', 'c', 0};
	static const struct {
		const char *in, *out;
	} rows[] = {
	    {"plain \xc3\xa4", "plain \xc3\xa4"},
	    {"\033[31mred", "\\x1b[31mred"},
	    {"a\nb\rc\td", "a\\x0ab\\x0dc\\x09d"},
	    {"\xff\xc0\x80", "\\xff\\xc0\\x80"},
	    {turn, "\\u{202e}abc"},
	    {"\xc2\x9b"
	     "1m",
	     "\\u{9b}1m"},
	    {"\x7f", "\\x7f"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *z = sw_escape_tty(rows[i].in, strlen(rows[i].in));
		assert_string_equal(z, rows[i].out);
		free(z);
	}
	char *z = sw_escape_tty("a\0b", 3);
	assert_string_equal(z, "a\\x00b");
	free(z);
}

static void json_limits(void **state)
{
	sw_error err;
	char deep[300];
	memset(deep, '[', 150);
	memset(deep + 150, ']', 150);
	assert_null(sw_json_parse(deep, sizeof(deep), &err));
	assert_non_null(strstr(err.what, "nested"));
	assert_null(sw_json_parse("{\"a\":1,\"a\":2}", 13, &err));
	assert_null(sw_json_parse("{\"a\":", 5, &err));
	assert_non_null(strstr(err.where, "line 1"));
	json_t *j = sw_json_parse("{\"a\":\"[[[[\"}", 12, &err);
	assert_non_null(j);
	json_decref(j);
}

static void invalid_utf8_becomes_replacement(void **state)
{
	json_t *j = sw_json_text((sw_str){"a\xff\xfe"
	                                  "b",
	                                  4});
	assert_string_equal(json_string_value(j), "a\xef\xbf\xbd\xef\xbf\xbd"
	                                          "b");
	json_decref(j);
	j = sw_json_text((sw_str){"a\0b", 3});
	assert_int_equal(json_string_length(j), 3);
	json_decref(j);
	assert_false(sw_utf8_valid("\xed\xa0\x80", 3)); /* a surrogate */
	assert_false(sw_utf8_valid("\xf4\x90\x80\x80", 4));
	assert_true(sw_utf8_valid("\xf0\x9f\x98\x80", 4));
}

static void reading_files(void **state)
{
	char path[] = "/tmp/sw-base-XXXXXX", *text;
	size_t n;
	sw_error err;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(sw_write_all(fd, "0123456789", 10), 0);
	close(fd);
	assert_int_equal(sw_read_file(path, 10, &text, &n, &err), 0);
	assert_int_equal(n, 10);
	assert_string_equal(text, "0123456789");
	free(text);
	assert_int_equal(sw_read_file("/dev/null", 10, &text, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_string_equal(text, "");
	free(text);
	assert_int_equal(sw_read_file(path, 9, &text, &n, &err), SW_ETOOBIG);
	unlink(path);
	assert_int_equal(sw_read_file(path, 9, &text, &n, &err), SW_ENOTFOUND);
	assert_string_equal(err.where, path);
}

/* valgrind keeps limits of descriptors to itself: the kernel never hears of them. */
static bool limits_are_real(void)
{
	const char *preloaded = getenv("LD_PRELOAD");
	return !preloaded || !strstr(preloaded, "vgpreload");
}

/* With a limit below the number of descriptors, where poll(2) itself fails. */
static void waiting_without_a_limit(void **state)
{
	int p[2], high;
	struct rlimit old, none;
	assert_int_equal(pipe(p), 0);
	high = fcntl(p[0], F_DUPFD, 1100); /* beyond FD_SETSIZE */
	getrlimit(RLIMIT_NOFILE, &old);
	if (high < 0)
		high = dup(p[0]);
	none = (struct rlimit){0, old.rlim_max};
	for (int limited = 0; limited < 2; limited++) {
		if (limited)
			assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		struct pollfd f[] = {{.fd = p[0], .events = POLLIN, .revents = 99},
		                     {.fd = -1, .events = POLLIN, .revents = 99},
		                     {.fd = high, .events = POLLIN},
		                     {.fd = p[1], .events = POLLOUT}};
		int64_t before = sw_monotonic_ns();
		assert_int_equal(poll(f, 4, 0), limited && limits_are_real() ? -1 : 1);
		assert_int_equal(sw_poll(f, 3, NS / 50), 0);
		assert_true(sw_monotonic_ns() - before >= NS / 50);
		assert_int_equal(f[0].revents, 0);
		assert_int_equal(f[1].revents, 0);
		assert_int_equal(sw_poll(f, 4, -1), 1);
		assert_int_equal(f[3].revents, POLLOUT);
		assert_int_equal(write(p[1], "x", 1), 1);
		assert_int_equal(sw_poll(f, 4, 0), 3);
		assert_int_equal(f[0].revents, POLLIN);
		assert_int_equal(f[1].revents, 0);
		assert_int_equal(f[2].revents, POLLIN);
		char c;
		assert_int_equal(read(high, &c, 1), 1);
	}
	struct pollfd beyond = {.fd = 70000, .events = POLLOUT}; /* cannot be asked about */
	assert_int_equal(sw_poll(&beyond, 1, -1), 1);
	assert_int_equal(beyond.revents, limits_are_real() ? POLLOUT : POLLNVAL);
	close(p[1]);
	struct pollfd end = {.fd = p[0], .events = POLLIN};
	assert_int_equal(sw_poll(&end, 1, -1), 1); /* the end is something to read */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	close(p[0]);
	close(high);
}

/* An error of write(2), where SIGXFSZ would end the process; and nothing for those that are run. */
static void the_file_limit_is_an_error(void **state)
{
	char path[] = "/tmp/sw_base_limit.XXXXXX";
	int fd = mkstemp(path), status;
	assert_true(fd >= 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct rlimit little = {4, 4};
		sw_survive_file_limit();
		setrlimit(RLIMIT_FSIZE, &little);
		int rc = sw_write_all(fd, "0123456789", 10);
		if (rc == SW_EIO && errno == EFBIG)
			execl("/bin/sh", "sh", "-c", "exec printf 0123456789 >>\"$0\"", path, NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXFSZ);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(buffer_has_a_maximum),
	    cmocka_unit_test(time_words),
	    cmocka_unit_test(durations),
	    cmocka_unit_test(uuid7_sorts_by_time),
	    cmocka_unit_test(base64_round_trip),
	    cmocka_unit_test(terminal_text_is_harmless),
	    cmocka_unit_test(json_limits),
	    cmocka_unit_test(invalid_utf8_becomes_replacement),
	    cmocka_unit_test(reading_files),
	    cmocka_unit_test(waiting_without_a_limit),
	    cmocka_unit_test(the_file_limit_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
