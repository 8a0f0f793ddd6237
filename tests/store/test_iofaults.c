/*
 * Every write, flush and cut of the file fails once, at every place in turn: what was
 * acknowledged stays, what failed says so, and the chain verifies afterwards.
 */
#include "store_test.h"

static sqlite3_vfs *root;
static struct {
	long count, fail_at; /* operations since the last reset; 0: none fails */
	bool forever;        /* everything from there on */
	int kind;            /* SQLITE_FULL or an input-output error */
	bool hit;
} fault;

typedef struct ffile {
	sqlite3_file base;
	sqlite3_file *real;
} ffile;

static bool fails(void)
{
	fault.count++;
	bool now = fault.fail_at &&
	           (fault.forever ? fault.count >= fault.fail_at : fault.count == fault.fail_at);
	fault.hit |= now;
	return now;
}

#define REAL(f) (((ffile *)(f))->real)

static int f_close(sqlite3_file *f)
{
	return REAL(f)->pMethods->xClose(REAL(f));
}
static int f_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
	return REAL(f)->pMethods->xRead(REAL(f), p, n, at);
}
static int f_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	if (!fails())
		return REAL(f)->pMethods->xWrite(REAL(f), p, n, at);
	/* half of it may have got there */
	REAL(f)->pMethods->xWrite(REAL(f), p, n / 2, at);
	return fault.kind == SQLITE_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}
static int f_truncate(sqlite3_file *f, sqlite3_int64 n)
{
	return fails() ? SQLITE_IOERR_TRUNCATE : REAL(f)->pMethods->xTruncate(REAL(f), n);
}
static int f_sync(sqlite3_file *f, int flags)
{
	(void)f;
	(void)flags;
	/* The disk itself is not what is tested: that keeps thousands of rounds quick. */
	return fails() ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}
static int f_size(sqlite3_file *f, sqlite3_int64 *n)
{
	return REAL(f)->pMethods->xFileSize(REAL(f), n);
}
static int f_lock(sqlite3_file *f, int how)
{
	return REAL(f)->pMethods->xLock(REAL(f), how);
}
static int f_unlock(sqlite3_file *f, int how)
{
	return REAL(f)->pMethods->xUnlock(REAL(f), how);
}
static int f_reserved(sqlite3_file *f, int *out)
{
	return REAL(f)->pMethods->xCheckReservedLock(REAL(f), out);
}
static int f_control(sqlite3_file *f, int op, void *arg)
{
	return REAL(f)->pMethods->xFileControl(REAL(f), op, arg);
}
static int f_sector(sqlite3_file *f)
{
	return REAL(f)->pMethods->xSectorSize(REAL(f));
}
static int f_traits(sqlite3_file *f)
{
	return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f));
}
static int f_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **p)
{
	return REAL(f)->pMethods->xShmMap(REAL(f), page, size, extend, p);
}
static int f_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
	return REAL(f)->pMethods->xShmLock(REAL(f), at, n, flags);
}
static void f_shm_barrier(sqlite3_file *f)
{
	REAL(f)->pMethods->xShmBarrier(REAL(f));
}
static int f_shm_unmap(sqlite3_file *f, int del)
{
	return REAL(f)->pMethods->xShmUnmap(REAL(f), del);
}

static const sqlite3_io_methods methods = {.iVersion = 2,
                                           .xClose = f_close,
                                           .xRead = f_read,
                                           .xWrite = f_write,
                                           .xTruncate = f_truncate,
                                           .xSync = f_sync,
                                           .xFileSize = f_size,
                                           .xLock = f_lock,
                                           .xUnlock = f_unlock,
                                           .xCheckReservedLock = f_reserved,
                                           .xFileControl = f_control,
                                           .xSectorSize = f_sector,
                                           .xDeviceCharacteristics = f_traits,
                                           .xShmMap = f_shm_map,
                                           .xShmLock = f_shm_lock,
                                           .xShmBarrier = f_shm_barrier,
                                           .xShmUnmap = f_shm_unmap};

static int v_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
	(void)v;
	ffile *x = (ffile *)f;
	x->real = (sqlite3_file *)(x + 1);
	int rc = root->xOpen(root, name, x->real, flags, out);
	x->base.pMethods = x->real->pMethods ? &methods : NULL;
	return rc;
}

static void install(void)
{
	static sqlite3_vfs v;
	root = sqlite3_vfs_find(NULL);
	v = *root;
	v.zName = "faulty";
	v.szOsFile = (int)sizeof(ffile) + root->szOsFile;
	v.xOpen = v_open;
	assert_int_equal(sqlite3_vfs_register(&v, 1), SQLITE_OK);
}

#define OPS 24

/* One story: completes, begins, ends, seals in between, a checkpoint at its end. */
static int story(const char *path, bool done[OPS], bool unknown[OPS])
{
	sw_store_options o = {.segment_rows = 12};
	sw_store *s = NULL;
	sw_error e = {0};
	memset(done, 0, OPS * sizeof *done);
	memset(unknown, 0, OPS * sizeof *unknown);
	if (sw_store_open(&s, path, SW_STORE_WRITE, &o, &e) != 0) {
		assert_true(*e.what); /* a failure says what */
		return 0;
	}
	int failed = 0;
	for (int i = 0; i < OPS; i++) {
		char text[200];
		bool end = i % 4 == 3;
		snprintf(
		    text, sizeof text,
		    "{\"id\":\"r%d\",\"event\":\"%s\",\"backend\":\"none\"%s,\"session\":\"s%d\"}",
		    end ? i - 1 : i,
		    end          ? "end"
		    : i % 4 == 2 ? "begin"
		                 : "complete",
		    i % 4 == 2 ? "" : ",\"exit\":0", i % 3);
		memset(&e, 0, sizeof e);
		int code = post(s, text, NULL, &e);
		done[i] = code == 0;
		failed += code != 0;
		/* said so: to be repeated with the same id */
		unknown[i] = code == SW_EIO && strstr(e.why, "outcome unknown");
		if (code != 0)
			assert_true(*e.what);
	}
	s->wal_pages = ST_CHECKPOINT_PAGES; /* the next commit copies back */
	int code = post(s, "{\"id\":\"last\",\"backend\":\"none\",\"exit\":0}", NULL, &e);
	failed += code != 0;
	sw_store_close(s);
	return failed;
}

static void check(const char *path, const bool done[OPS], const bool unknown[OPS], long at)
{
	fault.fail_at = 0;
	sw_store *s = NULL;
	sw_error e = {0};
	/* a writer that opens it finishes what a failed creation left */
	assert_int_equal(sw_store_open(&s, path, SW_STORE_WRITE, NULL, &e), 0);
	for (int i = 0; i < OPS; i++) {
		char id[20];
		json_t *j = NULL;
		bool end = i % 4 == 3;
		snprintf(id, sizeof id, "r%d", end ? i - 1 : i);
		int code = sw_store_invocation(s, id, &j, &e);
		if (done[i] && code != 0)
			fail_msg("fault %ld: %s was acknowledged and is not there", at, id);
		const char *v = j ? json_string_value(json_object_get(j, "verdict")) : "";
		if (done[i] && end && strcmp(v, "unfinished") == 0)
			fail_msg("fault %ld: the end of %s was acknowledged and is not there", at,
			         id);
		/* what failed must not be there, or the caller would be told twice */
		if (!done[i] && !unknown[i] && !end && code == 0)
			fail_msg("fault %ld: %s failed and is there", at, id);
		json_decref(j);
	}
	assert_int_equal(post(s, "{\"backend\":\"none\",\"exit\":0}", NULL, NULL), 0);
	sw_store_close(s);
	json_t *r = NULL;
	int status = verify_path(path, NULL, &r);
	if (status != SW_VERIFY_INTACT && status != SW_VERIFY_UNSEALED) {
		char *z = r ? json_dumps(r, 0) : NULL;
		fail_msg("fault %ld: verify says %d: %s", at, status, z ? z : "");
	}
	json_decref(r);
}

static void rounds(int kind, bool forever)
{
	bool smoke = getenv("SW_TEST_SMOKE") != NULL;
	long at = 1, hits = 0;
	for (;; at += smoke ? 23 : 1) {
		char *dir = temp_dir(), path[300];
		bool done[OPS], unknown[OPS];
		in_dir(path, sizeof path, dir, "t.db");
		memset(&fault, 0, sizeof fault);
		fault.kind = kind;
		fault.forever = forever;
		fault.fail_at = at;
		story(path, done, unknown);
		bool hit = fault.hit;
		hits += hit;
		check(path, done, unknown, at);
		remove_dir(dir);
		if (!hit)
			break; /* there are no more places */
	}
	print_message("%ld places failed\n", hits);
	assert_true(hits > (smoke ? 3 : 100));
}

static void test_error_once(void **state)
{
	(void)state;
	rounds(SQLITE_IOERR, false);
}

static void test_full_from_there(void **state)
{
	(void)state;
	rounds(SQLITE_FULL, true);
}

int main(void)
{
	install();
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_error_once),
	                                   cmocka_unit_test(test_full_from_there)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
