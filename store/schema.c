/*
 * schema.c - tables, their order of columns in the chain, and migrations.
 *
 * `record` holds what differs from invocation to invocation. What repeats (who:
 * origin, what: shape, session, resource) is interned in tables that are chained as
 * well, so a row of `record` is bound to the texts behind its numbers. Names of
 * enums are stored as text: a later version may add one without moving the others.
 */
#include <string.h>

#include "store_int.h"

#define X_QUOTED(s, n) "'" n "',"
#define CHECK_IN(col, list, last) "CHECK(" col " IN (" list(X_QUOTED) last "))"

#define STR1(x) #x
#define STR(x) STR1(x)

/* clang-format nests what follows a macro in a string, and splits every word of it. */
/* clang-format off */
const char *const st_schema_sql =
    /* row 1 of every chain: which trail this is */
    "CREATE TABLE store(seq INTEGER PRIMARY KEY, uuid BLOB NOT NULL, at_ns INTEGER NOT NULL,"
    " program TEXT NOT NULL, hash BLOB NOT NULL) STRICT;"
    "CREATE TABLE key(seq INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, public BLOB NOT NULL,"
    " sig BLOB, hash BLOB NOT NULL) STRICT;"
    "CREATE TABLE session(seq INTEGER NOT NULL, id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
    " value TEXT NOT NULL, hash BLOB NOT NULL) STRICT;"
    "CREATE TABLE resource(seq INTEGER NOT NULL, id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
    " value TEXT NOT NULL, hash BLOB NOT NULL) STRICT;"
    "CREATE TABLE origin(seq INTEGER NOT NULL, id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
    " device TEXT, platform TEXT, runtime TEXT, actor TEXT, labels TEXT NOT NULL,"
    " hash BLOB NOT NULL) STRICT;"
    "CREATE TABLE shape(seq INTEGER NOT NULL, id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
    " backend TEXT NOT NULL,"
    " mode TEXT NOT NULL " CHECK_IN("mode", SW_MODE_LIST, "''") ","
    " network TEXT NOT NULL " CHECK_IN("network", SW_NETWORK_LIST, "''") ","
    " verdict TEXT NOT NULL " CHECK_IN(
        "verdict", SW_VERDICT_LIST, "'sandbox_unavailable','unfinished'") ","
    " rule INTEGER NOT NULL,"
    " stage TEXT NOT NULL " CHECK_IN("stage", SW_STAGE_LIST, "''") ","
    " cause TEXT, signature TEXT,"
    " confidence TEXT NOT NULL " CHECK_IN("confidence", SW_CONFIDENCE_LIST, "''") ","
    " evidence TEXT NOT NULL " CHECK_IN("evidence", SW_EVIDENCE_LIST, "''") ","
    " evidence_source TEXT NOT NULL, started TEXT NOT NULL, operation TEXT NOT NULL,"
    " resource_kind TEXT, limit_kind TEXT NOT NULL, limit_certainty TEXT NOT NULL,"
    " enforcement TEXT NOT NULL, requested TEXT, minimum TEXT, effective TEXT,"
    " requested_set TEXT NOT NULL, minimum_set TEXT NOT NULL, effective_set TEXT NOT NULL,"
    " granted TEXT NOT NULL, lost TEXT NOT NULL, violated TEXT NOT NULL,"
    " basis TEXT NOT NULL " CHECK_IN("basis", SW_BASIS_LIST, "''") ","
    " isolated INTEGER NOT NULL, downgrade INTEGER NOT NULL, unexplained INTEGER NOT NULL,"
    " exempt INTEGER NOT NULL, violation INTEGER NOT NULL, contained INTEGER NOT NULL,"
    " reason_class TEXT NOT NULL, reason TEXT, hash BLOB NOT NULL) STRICT;"
    /* begin rows (kind 1) are completed by end rows (kind 2), which never replace them */
    "CREATE TABLE record(seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL CHECK(kind IN (1,2,3)),"
    " id BLOB, begin_seq INTEGER, recorded_ns INTEGER NOT NULL, started_ns INTEGER NOT NULL,"
    " ended_ns INTEGER, origin INTEGER NOT NULL, shape INTEGER NOT NULL,"
    " session INTEGER NOT NULL, resource INTEGER NOT NULL, body BLOB NOT NULL, command TEXT,"
    " cwd TEXT, reason TEXT, labels TEXT, exit_code INTEGER, signal INTEGER,"
    " timed_out INTEGER NOT NULL, line BLOB, line_number INTEGER NOT NULL,"
    " line_offset INTEGER NOT NULL, line_cut INTEGER NOT NULL, denied_lines INTEGER NOT NULL,"
    " output_size INTEGER NOT NULL, output_lines INTEGER NOT NULL, output_digest BLOB,"
    " kept_digest BLOB, detail TEXT, hash BLOB NOT NULL, CHECK((kind = 2) = (id IS NULL)),"
    " CHECK((kind = 2) = (begin_seq IS NOT NULL))) STRICT;"
    "CREATE UNIQUE INDEX record_id ON record(id) WHERE id IS NOT NULL;"
    "CREATE UNIQUE INDEX record_end ON record(begin_seq) WHERE begin_seq IS NOT NULL;"
    "CREATE TABLE seal(seq INTEGER PRIMARY KEY, segment INTEGER NOT NULL, at_ns INTEGER NOT NULL,"
    " first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, head BLOB NOT NULL,"
    " rollup BLOB NOT NULL, key BLOB NOT NULL, sig BLOB NOT NULL, hash BLOB NOT NULL) STRICT;"
    "CREATE TABLE prune(seq INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL,"
    " from_seq INTEGER NOT NULL, to_seq INTEGER NOT NULL, rows INTEGER NOT NULL,"
    " resume BLOB NOT NULL, dict BLOB NOT NULL, why TEXT, hash BLOB NOT NULL) STRICT;"
    /* derived from the rows above and checked against them by verify */
    "CREATE TABLE rollup(id INTEGER PRIMARY KEY, n INTEGER NOT NULL, lo INTEGER NOT NULL,"
    " hi INTEGER NOT NULL, width INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
    "CREATE TABLE unfinished(seq INTEGER PRIMARY KEY) STRICT;"
    "CREATE TABLE kept(seq INTEGER PRIMARY KEY, cut INTEGER NOT NULL, data BLOB NOT NULL) STRICT;"
    "CREATE TABLE state(id INTEGER PRIMARY KEY CHECK(id = 1), seq INTEGER NOT NULL,"
    " hash BLOB NOT NULL, sealed_seq INTEGER NOT NULL, sealed_ns INTEGER NOT NULL,"
    " segments INTEGER NOT NULL, unsealed_ns INTEGER NOT NULL) STRICT;";
/* clang-format on */

#define T(nm, tg, ord, kp, num, ...)                                                             \
	{                                                                                        \
		.name = nm, .order = ord, .cols = {__VA_ARGS__}, .n = num, .tag = tg, .kept = kp \
	}
const st_table_def st_tables[T_COUNT] = {
    [T_STORE] = T("store", 1, "seq", true, 3, "uuid", "at_ns", "program"),
    [T_KEY] = T("key", 2, "seq", true, 3, "at_ns", "public", "sig"),
    [T_SESSION] = T("session", 3, "id", true, 3, "id", "key", "value"),
    [T_RESOURCE] = T("resource", 4, "id", true, 3, "id", "key", "value"),
    [T_ORIGIN] = T("origin", 5, "id", true, C_ORIGIN_N, "id", "key", "device", "platform",
                   "runtime", "actor", "labels"),
    [T_SHAPE] =
        T("shape", 6, "id", true, C_SHAPE_N, "id", "key", "backend", "mode", "network", "verdict",
          "rule", "stage", "cause", "signature", "confidence", "evidence", "evidence_source",
          "started", "operation", "resource_kind", "limit_kind", "limit_certainty", "enforcement",
          "requested", "minimum", "effective", "requested_set", "minimum_set", "effective_set",
          "granted", "lost", "violated", "basis", "isolated", "downgrade", "unexplained", "exempt",
          "violation", "contained", "reason_class", "reason"),
    [T_RECORD] = T("record", 7, "seq", false, C_REC_N, "kind", "id", "begin_seq", "recorded_ns",
                   "started_ns", "ended_ns", "origin", "shape", "session", "resource", "body",
                   "command", "cwd", "reason", "labels", "exit_code", "signal", "timed_out", "line",
                   "line_number", "line_offset", "line_cut", "denied_lines", "output_size",
                   "output_lines", "output_digest", "kept_digest", "detail"),
    [T_SEAL] = T("seal", 8, "seq", true, C_SEAL_N, "segment", "at_ns", "first_seq", "last_seq",
                 "head", "rollup", "key", "sig"),
    [T_PRUNE] = T("prune", 9, "seq", true, C_PRUNE_N, "at_ns", "from_seq", "to_seq", "rows",
                  "resume", "dict", "why"),
};

static int copy_before(sqlite3 *db, const char *path, int version, sw_error *err)
{
	char *to = sqlite3_mprintf("%s.v%d.bak", path, version);
	sqlite3 *copy = NULL;
	int rc = to ? SQLITE_OK : SQLITE_NOMEM;
	/* An older copy of the same version is from a migration that did not end. */
	if (rc == SQLITE_OK) {
		unlink(to);
		mode_t old = umask(077);
		rc = sqlite3_open_v2(to, &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
		umask(old);
	}
	if (rc == SQLITE_OK) {
		sqlite3_backup *b = sqlite3_backup_init(copy, "main", db, "main");
		if (b) {
			sqlite3_backup_step(b, -1);
			rc = sqlite3_backup_finish(b);
		} else {
			rc = sqlite3_errcode(copy);
		}
	}
	if (rc != SQLITE_OK) {
		st_err(err, SW_EIO, to, sqlite3_errstr(rc),
		       "make room beside the file; it was not changed",
		       "cannot copy the trail before migrating it");
	}
	sqlite3_close(copy);
	sqlite3_free(to);
	return rc == SQLITE_OK ? 0 : SW_EIO;
}

static int version_of(sqlite3 *db)
{
	sqlite3_stmt *q = NULL;
	int version = -1;
	if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &q, NULL) == SQLITE_OK &&
	    sqlite3_step(q) == SQLITE_ROW)
		version = sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	return version;
}

static int run_steps(sqlite3 *db, const char *path, const st_migration *m, size_t n, int version,
                     int target, sw_error *err)
{
	for (; version < target; version++) {
		const st_migration *step = NULL;
		for (size_t i = 0; i < n; i++)
			if (m[i].from == version)
				step = &m[i];
		char set[64];
		snprintf(set, sizeof set, "PRAGMA user_version=%d", version + 1);
		if (!step || sqlite3_exec(db, step->sql, NULL, NULL, NULL) != SQLITE_OK ||
		    sqlite3_exec(db, set, NULL, NULL, NULL) != SQLITE_OK)
			return st_err(err, SW_EIO, path, step ? sqlite3_errmsg(db) : "no such step",
			              "nothing was changed; the copy *.bak beside it is the same",
			              "migration from schema %d failed", version);
	}
	return 0;
}

int st_migrate(sqlite3 *db, const char *path, const st_migration *m, size_t n, int target,
               sw_error *err)
{
	int version = version_of(db);
	if (version < 0)
		return st_err(err, SW_ECORRUPT, path, sqlite3_errmsg(db),
		              "run `sandwitness verify`", "the schema's version cannot be read");
	if (version >= target)
		return 0; /* somebody else did it while we waited for the lock */
	/* The caller holds the writers' lock: between copy and transaction nobody writes. */
	int code = version > 0 ? copy_before(db, path, version, err) : 0;
	if (code != 0)
		return code;
	if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return st_err(err, SW_EBUSY, path, sqlite3_errmsg(db), NULL,
		              "cannot start the migration");
	code = run_steps(db, path, m, n, version, target, err);
	if (code == 0 && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		code = st_err(err, SW_EIO, path, sqlite3_errmsg(db), NULL,
		              "migration could not be committed");
	if (code != 0)
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return code;
}
