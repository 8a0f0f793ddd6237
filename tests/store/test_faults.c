/*
 * What can go wrong with the file: a full disk, a read-only one, a file removed or
 * replaced under the writer, a damaged page, a foreign file. Each gives a clear error,
 * nothing acknowledged is lost, and nothing is said to be recorded that is not.
 */
#include "store_test.h"

#include <sched.h>
#include <sys/mount.h>

static char *dir;
static char path[300];

static int setup(void **state)
{
	(void)state;
	dir = temp_dir();
	in_dir(path, sizeof path, dir, "trail.db");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	remove_dir(dir);
	return 0;
}

static const char *const one = "{\"backend\":\"none\",\"exit\":0}";

static int64_t recorded(const char *p)
{
	sw_store *s = open_ro(p);
	sw_store_counts c;
	assert_int_equal(sw_store_counts_get(s, &c, NULL), 0);
	sw_store_close(s);
	return (int64_t)c.total;
}

static void test_removed(void **state)
{
	(void)state;
	static const char *const suffixes[] = {"", "-wal"};
	for (int i = 0; i < 2; i++) {
		char p[320];
		sw_error e = {0};
		sw_store *s = open_rw(path, NULL);
		assert_int_equal(post(s, one, NULL, NULL), 0);
		snprintf(p, sizeof p, "%s%s", path, suffixes[i]);
		assert_int_equal(unlink(p), 0);
		assert_int_equal(post(s, one, NULL, &e), SW_EIO);
		assert_non_null(strstr(e.what, "removed"));
		assert_int_equal(post(s, one, NULL, &e), SW_EIO); /* and stays so */
		sw_store_close(s);
		char *d = dir;
		setup(NULL);
		remove_dir(d);
	}
}

static void test_replaced(void **state)
{
	(void)state;
	char other[320];
	sw_error e = {0};
	snprintf(other, sizeof other, "%s.other", path);
	sw_store *s = open_rw(path, NULL);
	assert_int_equal(post(s, one, NULL, NULL), 0);
	copy_file(path, other);
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(post(s, one, NULL, &e), SW_EIO);
	assert_non_null(strstr(e.what, "replaced"));
	sw_store_close(s);
}

static void test_foreign(void **state)
{
	(void)state;
	sw_error e = {0};
	sw_store *s = NULL;
	FILE *f = fopen(path, "w");
	fputs("this is a text file, and long enough to be one: sandwitness must not touch it\n", f);
	for (int i = 0; i < 100; i++)
		fputs("more of it, so that there are whole pages to read and nothing to be found "
		      "there\n",
		      f);
	fclose(f);
	for (unsigned w = 0; w < 2; w++) {
		assert_int_equal(
		    sw_store_open(&s, path, w ? SW_STORE_WRITE : SW_STORE_READ, NULL, &e),
		    SW_ECORRUPT);
		assert_non_null(strstr(e.what, "not an audit trail"));
	}
	assert_true(file_holds(path, "more of it"));
	unlink(path);
	sqlite3 *db;
	sqlite3_open(path, &db);
	sqlite3_exec(db, "CREATE TABLE mine(x)", NULL, NULL, NULL);
	sqlite3_close(db);
	for (unsigned w = 0; w < 2; w++) {
		assert_int_equal(
		    sw_store_open(&s, path, w ? SW_STORE_WRITE : SW_STORE_READ, NULL, &e),
		    SW_ECORRUPT);
		assert_non_null(strstr(e.what, "another program"));
	}
	unlink(path);
	assert_int_equal(sw_store_open(&s, path, SW_STORE_READ, NULL, &e), SW_ENOTFOUND);
	assert_int_equal(sw_store_open(&s, path, SW_STORE_WRITE | SW_STORE_NO_CREATE, NULL, &e),
	                 SW_ENOTFOUND);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void test_damaged_page(void **state)
{
	(void)state;
	sw_store *s = open_rw(path, NULL);
	for (int i = 0; i < 200; i++)
		assert_int_equal(post(s, one, NULL, NULL), 0);
	sw_store_close(s);
	sqlite3 *db;
	sqlite3_stmt *q;
	sqlite3_open(path, &db);
	sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
	sqlite3_prepare_v2(db, "SELECT rootpage FROM sqlite_schema WHERE name='record'", -1, &q,
	                   NULL);
	sqlite3_step(q);
	long page = sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char junk[4096];
	memset(junk, 0xff, sizeof junk);
	assert_int_equal(pwrite(fd, junk, sizeof junk, (page - 1) * 4096), sizeof junk);
	close(fd);
	sw_error e = {0};
	s = open_rw(path, NULL);
	int code = post(s, one, NULL, &e);
	assert_int_equal(code, SW_ECORRUPT);
	assert_non_null(strstr(e.fix, "verify"));
	sw_store_close(s);
	assert_int_equal(verify_path(path, NULL, NULL), SW_VERIFY_CHANGED);
}

static void test_key_faults(void **state)
{
	(void)state;
	char key[320];
	sw_error e = {0};
	snprintf(key, sizeof key, "%s.key", path);
	sw_store *s = open_rw(path, NULL);
	assert_int_equal(post(s, one, NULL, NULL), 0);
	sw_store_close(s);
	assert_int_equal(chmod(key, 0644), 0);
	s = open_rw(path, NULL);
	assert_int_equal(sw_store_seal(s, NULL, &e), SW_EIO);
	assert_non_null(strstr(e.what, "not private"));
	assert_int_equal(post(s, one, NULL, NULL), 0); /* recording goes on, unsealed */
	sw_store_close(s);
	unlink(key);
	s = open_rw(path, NULL);
	assert_int_equal(sw_store_seal(s, NULL, &e), SW_ENOTFOUND);
	assert_int_equal(access(key, F_OK), -1); /* no new key behind the owner's back */
	/* a new key that the old one did not sign is not trusted by whoever pinned the old */
	char pub[320], old[320];
	snprintf(pub, sizeof pub, "%s.pub", path);
	snprintf(old, sizeof old, "%s.old", path);
	copy_file(pub, old);
	assert_int_equal(sw_store_rotate_key(s, NULL), 0);
	assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
	sw_store_close(s);
	sw_verify_options pinned_old = {.public_key = old}, pinned_new = {.public_key = pub};
	assert_int_equal(verify_path(path, &pinned_old, NULL), SW_VERIFY_BAD_SEAL);
	assert_int_equal(verify_path(path, &pinned_new, NULL), SW_VERIFY_INTACT);
}

/* ---- in a mount namespace of its own ---- */

static bool write_map(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	ssize_t n = (ssize_t)strlen(text);
	bool good = fd >= 0 && write(fd, text, (size_t)n) == n;
	if (fd >= 0)
		close(fd);
	return good;
}

static bool own_mounts(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	if (unshare(CLONE_NEWNS) != 0) {
		char users[64], groups[64];
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
			return false;
		snprintf(users, sizeof users, "0 %u 1", (unsigned)uid);
		snprintf(groups, sizeof groups, "0 %u 1", (unsigned)gid);
		/* without a group of its own a file on the new tmpfs could not be made */
		if (!write_map("/proc/self/uid_map", users) ||
		    !write_map("/proc/self/setgroups", "deny") ||
		    !write_map("/proc/self/gid_map", groups))
			return false;
	}
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", dir, "tmpfs", 0, "size=1536k,mode=700") == 0;
}

/* In a child: an assertion that fails there must fail here. */
#define CHECK(x)                                                                \
	do {                                                                    \
		if (!(x)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			_exit(1);                                               \
		}                                                               \
	} while (0)

static void in_child(void (*test)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		if (!own_mounts())
			_exit(77);
		test();
		_exit(0);
	}
	int status;
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("no mount namespaces here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static void full_disk(void)
{
	char filler[320], text[200];
	sw_error e = {0};
	in_dir(filler, sizeof filler, dir, "filler");
	int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(posix_fallocate(fd, 0, 600 << 10) == 0);
	close(fd);
	sw_store *s = open_rw(path, NULL);
	int acked = 0, code = 0;
	for (; acked < 100000; acked++) {
		snprintf(text, sizeof text, "{\"id\":\"r%d\",\"backend\":\"none\",\"exit\":0}",
		         acked);
		if ((code = post(s, text, NULL, &e)) != 0)
			break;
	}
	CHECK(code == SW_EIO);
	CHECK(strstr(e.what, "disk is full") && strstr(e.fix, "room"));
	CHECK(acked > 50);
	/* still full: still a clear error, by the same and by another writer */
	CHECK(post(s, text, NULL, &e) == SW_EIO);
	sw_store *other = NULL;
	CHECK(sw_store_open(&other, path, SW_STORE_WRITE, NULL, &e) == 0);
	CHECK(post(other, text, NULL, &e) == SW_EIO);
	sw_store_close(other);
	CHECK(recorded(path) == acked); /* readers go on */
	CHECK(unlink(filler) == 0);
	CHECK(post(s, text, NULL, &e) == 0); /* room again: goes on */
	sw_store_close(s);
	CHECK(recorded(path) == acked + 1);
	CHECK(verify_path(path, NULL, NULL) == SW_VERIFY_UNSEALED ||
	      verify_path(path, NULL, NULL) == SW_VERIFY_INTACT);
}

static void read_only(void)
{
	sw_error e = {0};
	sw_store *s = open_rw(path, NULL);
	CHECK(post(s, one, NULL, NULL) == 0);
	CHECK(sw_store_seal(s, NULL, NULL) == 0);
	sw_store_close(s);
	sqlite3 *db;
	sqlite3_open(path, &db);
	sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
	sqlite3_close(db);
	CHECK(mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
	int code = sw_store_open(&s, path, SW_STORE_WRITE, NULL, &e);
	CHECK(code == SW_EIO && *e.what && *e.fix);
	/* reading and verifying go on */
	CHECK(verify_path(path, NULL, NULL) == SW_VERIFY_INTACT);
	CHECK(recorded(path) == 1);
	CHECK(mount(NULL, dir, NULL, MS_REMOUNT, NULL) == 0);
	s = open_rw(path, NULL);
	CHECK(post(s, one, NULL, NULL) == 0);
	sw_store_close(s);
}

static void test_full_disk(void **state)
{
	(void)state;
	in_child(full_disk);
}

static void test_read_only(void **state)
{
	(void)state;
	in_child(read_only);
}

/* A limit on the file's size is a full disk that hits at any byte. */
#include <signal.h>
#include <sys/resource.h>
static void size_limits(void)
{
	signal(SIGXFSZ, SIG_IGN);
	for (long limit = 20000; limit < 400000; limit += 37777) {
		char p[320], text[200];
		snprintf(p, sizeof p, "%s.%ld", path, limit);
		sw_store *s = open_rw(p, NULL);
		struct rlimit r = {(rlim_t)limit, RLIM_INFINITY};
		setrlimit(RLIMIT_FSIZE, &r);
		int acked = 0;
		sw_error e = {0};
		for (; acked < 2000; acked++) {
			snprintf(text, sizeof text,
			         "{\"id\":\"r%d\",\"backend\":\"none\",\"exit\":0}", acked);
			if (post(s, text, NULL, &e) != 0)
				break;
		}
		CHECK(acked < 2000 && *e.what);
		r.rlim_cur = RLIM_INFINITY;
		setrlimit(RLIMIT_FSIZE, &r);
		CHECK(recorded(p) == acked);
		CHECK(post(s, text, NULL, NULL) == 0);
		sw_store_close(s);
		CHECK(recorded(p) == acked + 1);
		int v = verify_path(p, NULL, NULL);
		CHECK(v == SW_VERIFY_UNSEALED || v == SW_VERIFY_INTACT);
	}
}

static void test_size_limits(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		size_limits();
		_exit(0);
	}
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(test_removed),    T(test_replaced),  T(test_foreign),   T(test_damaged_page),
	    T(test_key_faults), T(test_full_disk), T(test_read_only), T(test_size_limits)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
