/*
 * Mutations, generated: every column of every table, every row deleted, rows swapped,
 * inserted, the tail cut, seals forged, the chain recomputed without the key. Each must
 * be noticed, and the intact trail must stay intact.
 */
#include "store_test.h"

#include <nettle/eddsa.h>

static char *dir;
static char base[300], work[300], pub[320];

static void fill_trail(const char *path)
{
	sw_store_options o = {.segment_rows = 24};
	sw_store *s = open_rw(path, &o);
	char text[600];
	for (int i = 0; i < 24; i++) {
		snprintf(
		    text, sizeof text,
		    "{\"id\":\"c%d\",\"backend\":\"bwrap\",\"exit\":1,\"output\":\"touch: cannot "
		    "touch "
		    "'/etc/f%d': Read-only file system\\n\",\"keep_output\":%s,\"session\":\"s%d\","
		    "\"actor\":\"a%d\",\"labels\":{\"k\":\"v%d\"},\"requested\":\"bwrap\","
		    "\"effective\":\"bwrap_partial\",\"minimum\":\"bwrap\",\"command\":[\"touch\","
		    "\"/etc/f\"],"
		    "\"cwd\":\"/w\",\"reason\":\"because "
		    "%d\",\"ended_at\":\"2030-01-01T00:00:00Z\"}",
		    i, i % 5, i % 4 == 0 ? "true" : "false", i % 3, i % 2, i % 2, i % 2);
		assert_int_equal(post(s, text, NULL, NULL), 0);
	}
	for (int i = 0; i < 6; i++) {
		snprintf(text, sizeof text,
		         "{\"id\":\"b%d\",\"event\":\"begin\",\"backend\":\"docker\"}", i);
		assert_int_equal(post(s, text, NULL, NULL), 0);
		snprintf(text, sizeof text,
		         "{\"id\":\"b%d\",\"event\":\"end\",\"backend\":\"docker\",\"exit\":0}", i);
		if (i % 2)
			assert_int_equal(post(s, text, NULL, NULL), 0);
	}
	assert_int_equal(sw_store_rotate_key(s, NULL), 0);
	/* an older range goes; its names, keys and seals stay */
	sw_store_close(s);
	s = open_rw(path, &o);
	sw_prune_options p = {.keep_rows = 12, .why = "test"};
	json_t *j = NULL;
	assert_int_equal(sw_store_prune(s, &p, &j, NULL), 0);
	assert_true(json_integer_value(json_object_get(j, "rows")) > 0);
	json_decref(j);
	for (int i = 0; i < 30; i++) {
		snprintf(text, sizeof text,
		         "{\"id\":\"d%d\",\"backend\":\"bwrap\",\"exit\":1,\"output\":\"bwrap: "
		         "setting up uid "
		         "map: Permission "
		         "denied\\n\",\"session\":\"t%d\",\"signal\":null,\"keep_output\":%d}",
		         i, i, i % 3 ? 0 : 100);
		assert_int_equal(post(s, text, NULL, NULL), 0);
	}
	assert_int_equal(sw_store_seal(s, NULL, NULL), 0);
	assert_int_equal(
	    post(s, "{\"id\":\"tail1\",\"backend\":\"none\",\"signal\":9}", NULL, NULL), 0);
	assert_int_equal(
	    post(s, "{\"id\":\"tail2\",\"backend\":\"none\",\"exit\":0,\"session\":\"late\"}", NULL,
	         NULL),
	    0);
	sw_store_close(s);
}

/* One file, without log: what an attacker with an editor has. */
static void settle(const char *path)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL),
	                 SQLITE_OK);
	sqlite3_close(db);
}

static int setup(void **state)
{
	(void)state;
	dir = temp_dir();
	in_dir(base, sizeof base, dir, "base.db");
	in_dir(work, sizeof work, dir, "work.db");
	snprintf(pub, sizeof pub, "%s.pub", base);
	fill_trail(base);
	settle(base);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	remove_dir(dir);
	return 0;
}

static sqlite3 *fresh(void)
{
	char p[400];
	sqlite3 *db;
	snprintf(p, sizeof p, "%s-wal", work);
	unlink(p);
	snprintf(p, sizeof p, "%s-shm", work);
	unlink(p);
	copy_file(base, work);
	assert_int_equal(sqlite3_open(work, &db), SQLITE_OK);
	sqlite3_exec(db,
	             "PRAGMA ignore_check_constraints=ON; PRAGMA synchronous=OFF;"
	             "PRAGMA journal_mode=DELETE; PRAGMA journal_mode=MEMORY",
	             NULL, NULL, NULL);
	return db;
}

static int judge(sqlite3 *db, json_t **report)
{
	const char *key = pub;
	sw_verify_options o = {.public_key = key};
	sqlite3_exec(db, "PRAGMA journal_mode=WAL; PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL,
	             NULL);
	sqlite3_close(db);
	return verify_path(work, &o, report);
}

static bool noticed(int status)
{
	/* A damaged header is refused before anything is judged: noticed as well. */
	return (status >= 20 && status <= 24) || status == SW_ECORRUPT || status == SW_EUNSUPPORTED;
}

static void test_intact(void **state)
{
	(void)state;
	json_t *r = NULL;
	int status = judge(fresh(), &r);
	assert_int_equal(json_array_size(json_object_get(r, "findings")), 0);
	assert_int_equal(status, SW_VERIFY_UNSEALED); /* two rows after the last seal */
	assert_int_equal(json_array_size(json_object_get(r, "pruned")), 1);
	json_decref(r);
}

static size_t tables(char out[32][64])
{
	sqlite3 *db = fresh();
	sqlite3_stmt *q;
	size_t n = 0;
	sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type='table' ORDER BY name",
	                   -1, &q, NULL);
	while (sqlite3_step(q) == SQLITE_ROW)
		snprintf(out[n++], 64, "%s", sqlite3_column_text(q, 0));
	sqlite3_finalize(q);
	sqlite3_close(db);
	return n;
}

static size_t columns(const char *table, char out[64][64])
{
	sqlite3 *db = fresh();
	sqlite3_stmt *q;
	size_t n = 0;
	char sql[200];
	snprintf(sql, sizeof sql, "SELECT name FROM pragma_table_info('%s')", table);
	sqlite3_prepare_v2(db, sql, -1, &q, NULL);
	while (sqlite3_step(q) == SQLITE_ROW)
		snprintf(out[n++], 64, "%s", sqlite3_column_text(q, 0));
	sqlite3_finalize(q);
	sqlite3_close(db);
	return n;
}

static int64_t scalar(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *q;
	int64_t v = -1;
	if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
		v = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return v;
}

/* Changes one byte (or the number by one) of one cell. False: this cell cannot be changed. */
static bool change_cell(sqlite3 *db, const char *table, const char *column, int64_t rowid,
                        unsigned at)
{
	char sql[300];
	sqlite3_stmt *q;
	unsigned char bytes[1 << 16] = {0};
	snprintf(sql, sizeof sql, "SELECT %s FROM %s WHERE rowid=%lld", column, table,
	         (long long)rowid);
	sqlite3_prepare_v2(db, sql, -1, &q, NULL);
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	int type = sqlite3_column_type(q, 0), n = sqlite3_column_bytes(q, 0);
	int64_t number = sqlite3_column_int64(q, 0);
	if (type == SQLITE_TEXT || type == SQLITE_BLOB)
		memcpy(bytes, sqlite3_column_blob(q, 0) ? sqlite3_column_blob(q, 0) : "",
		       (size_t)n);
	sqlite3_finalize(q);
	snprintf(sql, sizeof sql, "UPDATE %s SET %s=?1 WHERE rowid=%lld", table, column,
	         (long long)rowid);
	sqlite3_prepare_v2(db, sql, -1, &q, NULL);
	if (type == SQLITE_INTEGER) {
		sqlite3_bind_int64(q, 1, number + 1);
	} else if (type == SQLITE_NULL) {
		/* what a column may hold is in the schema; a number converts where it must */
		sqlite3_bind_text(q, 1, "1", 1, SQLITE_STATIC);
	} else if (n == 0) {
		type == SQLITE_TEXT ? sqlite3_bind_text(q, 1, "x", 1, SQLITE_STATIC)
		                    : sqlite3_bind_blob(q, 1, "x", 1, SQLITE_STATIC);
	} else {
		bytes[at % (unsigned)n] ^= 1;
		type == SQLITE_TEXT ? sqlite3_bind_text(q, 1, (char *)bytes, n, SQLITE_STATIC)
		                    : sqlite3_bind_blob(q, 1, bytes, n, SQLITE_STATIC);
	}
	int rc = sqlite3_step(q);
	sqlite3_finalize(q);
	if (rc != SQLITE_DONE && type == SQLITE_NULL) {
		snprintf(sql, sizeof sql, "UPDATE %s SET %s=x'31' WHERE rowid=%lld", table, column,
		         (long long)rowid);
		rc = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? SQLITE_DONE : rc;
	}
	return rc == SQLITE_DONE && sqlite3_changes(db) == 1;
}

static void test_every_column(void **state)
{
	(void)state;
	char t[32][64], c[64][64];
	size_t nt = tables(t), checked = 0, skipped = 0;
	bool smoke = getenv("SW_TEST_SMOKE") != NULL;
	assert_true(nt >= 13);
	for (size_t i = 0; i < nt; i++) {
		size_t nc = columns(t[i], c), of_table = 0;
		sqlite3 *db = fresh();
		char sql[200];
		int64_t rows[64] = {0};
		size_t nr = 0;
		sqlite3_stmt *q;
		snprintf(sql, sizeof sql, "SELECT rowid FROM %s ORDER BY rowid", t[i]);
		sqlite3_prepare_v2(db, sql, -1, &q, NULL);
		while (nr < 64 && sqlite3_step(q) == SQLITE_ROW)
			rows[nr++] = sqlite3_column_int64(q, 0);
		sqlite3_finalize(q);
		sqlite3_close(db);
		assert_true(nr > 0); /* the sample must exercise every table */
		/* the first, the last and two between: pruned range, sealed range, tail */
		size_t pick[] = {0, nr / 3, nr / 2, nr - 1};
		for (size_t k = 0; k < nc; k++) {
			for (size_t p = 0; p < (smoke ? 1u : 4u); p++) {
				if (p && pick[p] == pick[p - 1])
					continue;
				db = fresh();
				if (!change_cell(db, t[i], c[k], rows[pick[p]],
				                 (unsigned)(k * 7 + p * 13))) {
					sqlite3_close(db);
					skipped++;
					continue;
				}
				json_t *r = NULL;
				int status = judge(db, &r);
				if (!noticed(status)) {
					char *z = r ? json_dumps(r, JSON_COMPACT) : NULL;
					fail_msg("%s.%s of row %lld changed, verify says %d: %s",
					         t[i], c[k], (long long)rows[pick[p]], status,
					         z ? z : "");
				}
				json_decref(r);
				checked++;
				of_table++;
			}
		}
		assert_true(of_table > 0);
	}
	print_message("%zu cells changed, %zu refused by the schema itself\n", checked, skipped);
	assert_true(checked > (smoke ? 100u : 400u));
	assert_true(skipped * 10 < checked); /* else the test tests little */
}

static void test_every_deleted_row(void **state)
{
	(void)state;
	char t[32][64];
	size_t nt = tables(t), checked = 0;
	bool smoke = getenv("SW_TEST_SMOKE") != NULL;
	for (size_t i = 0; i < nt; i++) {
		sqlite3 *db = fresh();
		char sql[200];
		snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", t[i]);
		int64_t n = scalar(db, sql);
		sqlite3_close(db);
		for (int64_t k = 0; k < n; k += smoke ? 17 : 1) {
			db = fresh();
			snprintf(sql, sizeof sql,
			         "DELETE FROM %s WHERE rowid=(SELECT rowid FROM %s ORDER BY rowid "
			         "LIMIT 1 OFFSET %lld)",
			         t[i], t[i], (long long)k);
			assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
			int status = judge(db, NULL);
			if (!noticed(status))
				fail_msg("row %lld of %s deleted, verify says %d", (long long)k,
				         t[i], status);
			/* a record that is gone is missing, whatever else it upsets */
			if (strcmp(t[i], "record") == 0)
				assert_int_equal(status, SW_VERIFY_MISSING);
			checked++;
		}
	}
	print_message("%zu rows deleted\n", checked);
	assert_true(checked > (smoke ? 15u : 150u));
}

/* Swaps everything but the number of two records, their hashes included or not. */
static int swap_rows(int64_t a, int64_t b, bool hashes)
{
	char cols[64][64], list[2000] = "", sql[8000];
	size_t n = columns("record", cols);
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(cols[i], "seq") || (!hashes && !strcmp(cols[i], "hash")))
			continue;
		strcat(list, *list ? "," : "");
		strcat(list, cols[i]);
	}
	sqlite3 *db = fresh();
	assert_int_equal(
	    sqlite3_exec(db, "DROP INDEX record_id; DROP INDEX record_end", NULL, NULL, NULL),
	    SQLITE_OK);
	snprintf(sql, sizeof sql,
	         "CREATE TEMP TABLE x AS SELECT * FROM record WHERE seq=%lld;"
	         "UPDATE record SET (%s)=(SELECT %s FROM record WHERE seq=%lld) WHERE seq=%lld;"
	         "UPDATE record SET (%s)=(SELECT %s FROM temp.x) WHERE seq=%lld;",
	         (long long)a, list, list, (long long)b, (long long)a, list, list, (long long)b);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(
	    sqlite3_exec(
	        db,
	        "CREATE UNIQUE INDEX record_id ON record(id) WHERE id IS NOT NULL;"
	        "CREATE UNIQUE INDEX record_end ON record(begin_seq) WHERE begin_seq IS NOT NULL",
	        NULL, NULL, NULL),
	    SQLITE_OK);
	return judge(db, NULL);
}

static void test_swapped_rows(void **state)
{
	(void)state;
	sqlite3 *db = fresh();
	int64_t first = scalar(db, "SELECT min(seq) FROM record"), rows[64] = {0};
	size_t n = 0;
	sqlite3_stmt *q;
	sqlite3_prepare_v2(db, "SELECT seq FROM record ORDER BY seq", -1, &q, NULL);
	while (n < 64 && sqlite3_step(q) == SQLITE_ROW)
		rows[n++] = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	assert_true(first > 1 && n > 20);
	size_t pairs[][2] = {{0, 1}, {1, 2}, {5, 9}, {2, n - 1}, {n - 2, n - 1}, {10, 11}};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		for (int h = 0; h < 2; h++) {
			int status = swap_rows(rows[pairs[i][0]], rows[pairs[i][1]], h);
			if (status != SW_VERIFY_REORDERED)
				fail_msg("rows %lld and %lld swapped (hashes %d): verify says %d",
				         (long long)rows[pairs[i][0]], (long long)rows[pairs[i][1]],
				         h, status);
		}
}

static void test_inserted(void **state)
{
	(void)state;
	static const char *const sql[] = {
	    /* a copy behind the end */
	    "INSERT INTO record SELECT seq+1000, kind, x'7478', NULL, recorded_ns, started_ns, "
	    "ended_ns, origin,"
	    " shape, session, resource, body, command, cwd, reason, labels, exit_code, signal, "
	    "timed_out,"
	    " line, line_number, line_offset, line_cut, denied_lines, output_size, output_lines,"
	    " output_digest, NULL, detail, hash FROM record WHERE kind=3 ORDER BY seq DESC LIMIT 1",
	    /* one that claims the number of a name */
	    "INSERT INTO session SELECT seq, 1+(SELECT max(id) FROM session), x'00', 'x', hash "
	    "FROM record"
	    " ORDER BY seq DESC LIMIT 1",
	    "INSERT INTO unfinished SELECT max(seq) FROM record",
	    "INSERT INTO kept SELECT max(seq), 0, x'00' FROM record WHERE kept_digest IS NULL",
	    "INSERT INTO rollup SELECT max(id)+8, 1, 1, 1, 0, x'' FROM rollup",
	    /* into the pruned range */
	    ("INSERT INTO record SELECT 9, 3, x'7479', NULL, 1, 1, 1, 1, 1, 0, 0, x'00', NULL, "
	     "NULL, NULL, NULL,"
	     " 0, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, x'00'"),
	    "CREATE TABLE extra(x)",
	    ("CREATE TRIGGER t AFTER INSERT ON record BEGIN DELETE FROM record WHERE seq=new.seq; "
	     "END"),
	    "DROP INDEX record_id"};
	for (size_t i = 0; i < sizeof sql / sizeof *sql; i++) {
		sqlite3 *db = fresh();
		char *why = NULL;
		if (sqlite3_exec(db, sql[i], NULL, NULL, &why) != SQLITE_OK)
			fail_msg("%s: %s", sql[i], why);
		int status = judge(db, NULL);
		if (!noticed(status))
			fail_msg("%s: verify says %d", sql[i], status);
	}
}

/* Cuts the tail and mends the head row, as somebody who knows the file would. */
static void cut_tail(sqlite3 *db, int64_t last)
{
	static const char *const t[] = {"record", "session", "resource", "origin",
	                                "shape",  "seal",    "key",      "prune"};
	char sql[300];
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		snprintf(sql, sizeof sql, "DELETE FROM %s WHERE seq>%lld", t[i], (long long)last);
		assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	}
	snprintf(sql, sizeof sql,
	         "DELETE FROM kept WHERE seq>%lld; DELETE FROM unfinished WHERE seq>%lld",
	         (long long)last, (long long)last);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	snprintf(sql, sizeof sql,
	         "UPDATE state SET seq=%lld, hash=(SELECT hash FROM seal WHERE seq=%lld), "
	         "sealed_seq=%lld,"
	         " sealed_ns=(SELECT max(at_ns) FROM seal), segments=(SELECT max(segment) FROM "
	         "seal), unsealed_ns=0",
	         (long long)last, (long long)last, (long long)last);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void test_cut_tail(void **state)
{
	(void)state;
	sw_store *s = open_ro(base);
	sw_store_head head;
	char anchor[100], hash[65];
	assert_int_equal(sw_store_head_get(s, &head, NULL), 0);
	sw_store_close(s);
	st_hex(hash, head.hash, 32);
	snprintf(anchor, sizeof anchor, "%llu:%s", (unsigned long long)head.seq, hash);
	const char *anchors[] = {anchor};
	sw_verify_options with = {.anchors = anchors, .n_anchors = 1, .public_key = pub};
	/* the anchor itself is fine */
	assert_int_equal(verify_path(base, &with, NULL), SW_VERIFY_UNSEALED);
	sqlite3 *db = fresh();
	int64_t last = scalar(db, "SELECT max(seq) FROM seal");
	cut_tail(db, last);
	/* without an anchor a clean cut at a seal cannot be seen: that is what anchors are for */
	assert_int_equal(judge(db, NULL), SW_VERIFY_INTACT);
	assert_int_equal(verify_path(work, &with, NULL), SW_VERIFY_TRUNCATED);
	/* half of a hash is enough, another one is not */
	anchor[strlen(anchor) - 32] = 0;
	assert_int_equal(verify_path(base, &with, NULL), SW_VERIFY_UNSEALED);
	char *end = anchor + strlen(anchor) - 1;
	*end = *end == '0' ? '1' : '0';
	assert_int_equal(verify_path(base, &with, NULL), SW_VERIFY_CHANGED);
}

/*
 * The strongest forger without the key: changes a row and computes every hash behind it
 * anew, the head row too.
 */
static void rehash(sqlite3 *db, int64_t from, bool sign, const uint8_t secret[32],
                   const uint8_t public[32])
{
	uint8_t prev[32];
	sqlite3_stmt *q;
	char sql[400];
	int64_t last = scalar(db, "SELECT seq FROM state");
	uint8_t uuid[16];
	sqlite3_prepare_v2(db, "SELECT uuid FROM store", -1, &q, NULL);
	sqlite3_step(q);
	memcpy(uuid, sqlite3_column_blob(q, 0), 16);
	sqlite3_finalize(q);
	bool have_prev = false;
	for (int64_t seq = from - 1; seq <= last; seq++) {
		for (int t = 0; t < T_COUNT; t++) {
			char rest[60];
			snprintf(rest, sizeof rest, "WHERE seq=%lld", (long long)seq);
			char *z = st_select(&st_tables[t], rest);
			sqlite3_prepare_v2(db, z, -1, &q, NULL);
			sqlite3_free(z);
			if (sqlite3_step(q) != SQLITE_ROW) {
				sqlite3_finalize(q);
				continue;
			}
			st_cell cells[ST_COLS_MAX];
			int n = st_tables[t].n;
			for (int i = 0; i < n; i++)
				cells[i] = st_column(q, i + 1);
			uint8_t hash[32], sig[64], print[32], message[ST_MESSAGE_MAX];
			if (!have_prev) {
				memcpy(prev, sqlite3_column_blob(q, n + 1), 32);
				have_prev = true;
				sqlite3_finalize(q);
				break;
			}
			if (t == T_SEAL) {
				cells[C_SEAL_HEAD] = st_blob(prev, 32);
				if (sign) {
					st_sha256(print, public, 32);
					cells[C_SEAL_KEY] = st_blob(print, 8);
					size_t m = st_seal_message(message, uuid, cells);
					ed25519_sha512_sign(public, secret, m, message, sig);
					cells[C_SEAL_SIG] = st_blob(sig, 64);
				}
			}
			st_row_hash(hash, prev, (uint64_t)seq, &st_tables[t], cells);
			sqlite3_stmt *u;
			if (t == T_SEAL) {
				snprintf(sql, sizeof sql,
				         "UPDATE seal SET hash=?1, head=?2, key=?3, sig=?4 WHERE "
				         "seq=%lld",
				         (long long)seq);
				sqlite3_prepare_v2(db, sql, -1, &u, NULL);
				st_bind(u, 2, cells[C_SEAL_HEAD]);
				st_bind(u, 3, cells[C_SEAL_KEY]);
				st_bind(u, 4, cells[C_SEAL_SIG]);
			} else {
				snprintf(sql, sizeof sql, "UPDATE %s SET hash=?1 WHERE seq=%lld",
				         st_tables[t].name, (long long)seq);
				sqlite3_prepare_v2(db, sql, -1, &u, NULL);
			}
			sqlite3_bind_blob(u, 1, hash, 32, SQLITE_STATIC);
			assert_int_equal(sqlite3_step(u), SQLITE_DONE);
			sqlite3_finalize(u);
			memcpy(prev, hash, 32);
			sqlite3_finalize(q);
			break;
		}
	}
	sqlite3_prepare_v2(db, "UPDATE state SET hash=?1", -1, &q, NULL);
	sqlite3_bind_blob(q, 1, prev, 32, SQLITE_STATIC);
	sqlite3_step(q);
	sqlite3_finalize(q);
}

static int64_t sealed_record(sqlite3 *db)
{
	return scalar(
	    db, "SELECT max(seq) FROM record WHERE seq < (SELECT max(first_seq) FROM seal) + 5");
}

static void change_reason(sqlite3 *db, int64_t seq)
{
	char sql[200];
	snprintf(sql, sizeof sql, "UPDATE record SET command='[\"innocent\"]' WHERE seq=%lld",
	         (long long)seq);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void test_rewritten_chain(void **state)
{
	(void)state;
	sqlite3 *db = fresh();
	int64_t seq = sealed_record(db);
	assert_true(seq > 1);
	change_reason(db, seq);
	rehash(db, seq, false, NULL, NULL);
	assert_int_equal(judge(db, NULL), SW_VERIFY_BAD_SEAL);
	/* behind the last seal only an anchor can tell */
	db = fresh();
	seq = scalar(db, "SELECT max(seq) FROM record");
	change_reason(db, seq);
	rehash(db, seq, false, NULL, NULL);
	assert_int_equal(judge(db, NULL), SW_VERIFY_UNSEALED);
	sw_store *s = open_ro(base);
	sw_store_head head;
	char anchor[100], hash[65];
	assert_int_equal(sw_store_head_get(s, &head, NULL), 0);
	sw_store_close(s);
	st_hex(hash, head.hash, 32);
	snprintf(anchor, sizeof anchor, "%llu:%s", (unsigned long long)head.seq, hash);
	const char *anchors[] = {anchor};
	sw_verify_options with = {.anchors = anchors, .n_anchors = 1};
	assert_int_equal(verify_path(work, &with, NULL), SW_VERIFY_CHANGED);
}

static void test_forged_seals(void **state)
{
	(void)state;
	uint8_t secret[32], public[32];
	assert_int_equal(st_key_new(secret, public, NULL), 0);
	/* signed with a key that nobody announced */
	sqlite3 *db = fresh();
	int64_t seq = sealed_record(db);
	change_reason(db, seq);
	rehash(db, seq, true, secret, public);
	assert_int_equal(judge(db, NULL), SW_VERIFY_BAD_SEAL);
	/* the forger's key put in place of the announced one: the pinned key tells */
	db = fresh();
	sqlite3_stmt *q;
	sqlite3_prepare_v2(
	    db, "UPDATE key SET public=?1, sig=NULL WHERE seq=(SELECT max(seq) FROM key)", -1, &q,
	    NULL);
	sqlite3_bind_blob(q, 1, public, 32, SQLITE_STATIC);
	assert_int_equal(sqlite3_step(q), SQLITE_DONE);
	sqlite3_finalize(q);
	int64_t key = scalar(db, "SELECT max(seq) FROM key");
	rehash(db, key, true, secret, public);
	assert_int_equal(judge(db, NULL), SW_VERIFY_BAD_SEAL);
	/* one bit of a signature, the chain made to fit again */
	db = fresh();
	seq = scalar(db, "SELECT max(seq) FROM seal");
	char sql[200];
	snprintf(sql, sizeof sql, "UPDATE seal SET sig=zeroblob(64) WHERE seq=%lld",
	         (long long)seq);
	sqlite3_exec(db, sql, NULL, NULL, NULL);
	rehash(db, seq, false, NULL, NULL);
	assert_int_equal(judge(db, NULL), SW_VERIFY_BAD_SEAL);
	/* another trail's public key */
	char *z = NULL;
	char hex[65];
	st_hex(hex, public, 32);
	sw_verify_options o = {.public_key = hex};
	db = fresh();
	sqlite3_close(db);
	assert_int_equal(verify_path(work, &o, NULL), SW_VERIFY_BAD_SEAL);
	free(z);
}

static void test_damaged_pages(void **state)
{
	(void)state;
	bool smoke = getenv("SW_TEST_SMOKE") != NULL;
	sqlite3 *db = fresh();
	int64_t unused = scalar(db, "SELECT freelist_count FROM pragma_freelist_count");
	sqlite3_close(db);
	struct stat st;
	assert_int_equal(stat(base, &st), 0);
	int64_t missed = 0, tried = 0;
	for (long page = 0; page < st.st_size / 4096; page += smoke ? 9 : 1) {
		unsigned char junk[4096];
		sqlite3_close(fresh());
		int fd = open(work, O_RDWR | O_CLOEXEC);
		memset(junk, 0xa5, sizeof junk);
		assert_int_equal(pwrite(fd, junk, sizeof junk, page * 4096), sizeof junk);
		close(fd);
		int status = verify_path(work, NULL, NULL);
		missed += !noticed(status);
		tried++;
	}
	print_message("%lld pages overwritten, %lld not noticed, %lld are unused\n",
	              (long long)tried, (long long)missed, (long long)unused);
	assert_true(tried > 2 && missed <= unused);
}

static int put(void *arg, const char *p, size_t n)
{
	return fwrite(p, 1, n, arg) == n ? 0 : -1;
}

/* Copies an export line by line, doing something at line `at`. */
static void edit_lines(const char *from, const char *to, int at, int what)
{
	FILE *a = fopen(from, "r"), *b = fopen(to, "w");
	char *line = NULL, *held = NULL;
	size_t cap = 0;
	for (int i = 0; getline(&line, &cap, a) > 0; i++) {
		if (i == at && what == 0)
			continue;           /* deleted */
		if (i == at && what == 1) { /* swapped with the next */
			held = strdup(line);
			continue;
		}
		if (i == at && what == 2) { /* one character of a value */
			char *p = strstr(line, "\"seq\":");
			p = p ? strpbrk(p + 7, "123456789") : NULL;
			if (p)
				*p = *p == '9' ? '1' : (char)(*p + 1);
		}
		fputs(line, b);
		if (held)
			fputs(held, b);
		free(held);
		held = NULL;
		if (i == at && what == 3)
			break; /* cut off */
	}
	free(held);
	free(line);
	fclose(a);
	fclose(b);
}

static void test_export(void **state)
{
	(void)state;
	char file[300], edited[300];
	in_dir(file, sizeof file, dir, "e.ndjson");
	in_dir(edited, sizeof edited, dir, "f.ndjson");
	sw_store *s = open_ro(base);
	FILE *f = fopen(file, "w");
	assert_int_equal(sw_store_export(s, put, f, NULL), 0);
	fclose(f);
	sw_store_close(s);
	int status = -1;
	json_t *r = NULL;
	sw_verify_options o = {.public_key = pub};
	assert_int_equal(sw_export_verify(file, &o, &status, &r, NULL), 0);
	assert_int_equal(status, SW_VERIFY_UNSEALED);
	assert_int_equal(json_array_size(json_object_get(r, "findings")), 0);
	json_decref(r);
	char *text = NULL;
	size_t n = 0;
	int lines = 0;
	assert_int_equal(sw_read_file(file, 1u << 26, &text, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	free(text);
	bool smoke = getenv("SW_TEST_SMOKE") != NULL; /* under valgrind; else every line */
	for (int at = 1; at < lines; at += smoke && at > 2 && at < lines - 20 ? 11 : 1) {
		for (int what = 0; what < 4; what++) {
			if ((what == 1 && at >= lines - 2) || (what == 3 && at == lines - 1))
				continue;
			edit_lines(file, edited, at, what);
			r = NULL;
			assert_int_equal(sw_export_verify(edited, &o, &status, &r, NULL), 0);
			json_decref(r);
			if (status < 20)
				fail_msg("export edited at line %d in way %d: verify says %d", at,
				         what, status);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_intact),
	    cmocka_unit_test(test_every_column),
	    cmocka_unit_test(test_every_deleted_row),
	    cmocka_unit_test(test_swapped_rows),
	    cmocka_unit_test(test_inserted),
	    cmocka_unit_test(test_cut_tail),
	    cmocka_unit_test(test_rewritten_chain),
	    cmocka_unit_test(test_forged_seals),
	    cmocka_unit_test(test_damaged_pages),
	    cmocka_unit_test(test_export),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
