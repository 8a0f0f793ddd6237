/*
 * open.c - opening, transactions, and everything that can be wrong with the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "store_int.h"

#define BUSY_MS 10000

static const struct {
	int rc;
	int code;
	const char *what, *fix;
} sql_errors[] = {
    {SQLITE_FULL, SW_EIO, "the disk is full", "make room (`sandwitness prune`), then repeat"},
    {SQLITE_READONLY, SW_EIO, "the audit trail is read-only",
     "check the file's and its folder's owner and mode, and the mount"},
    {SQLITE_CORRUPT, SW_ECORRUPT, "the audit trail is damaged",
     "run `sandwitness verify`; restore the newest backup that verifies"},
    /* Statements and sizes are ours: where they do not fit, somebody changed the tables. */
    {SQLITE_ERROR, SW_ECORRUPT, "the audit trail's tables are not as this program makes them",
     "run `sandwitness verify`; restore the newest backup that verifies"},
    {SQLITE_TOOBIG, SW_ECORRUPT, "the audit trail holds a value that is too long to be its own",
     "run `sandwitness verify`; restore the newest backup that verifies"},
    {SQLITE_NOTADB, SW_ECORRUPT, "not an audit trail", "give another path with --db"},
    {SQLITE_BUSY, SW_EBUSY, "the audit trail is busy", "try again"},
    {SQLITE_LOCKED, SW_EBUSY, "the audit trail is busy", "try again"},
    {SQLITE_CANTOPEN, SW_EIO, "cannot open the audit trail",
     "check the path, and that the folder may be read"},
    {SQLITE_NOMEM, SW_ENOMEM, "out of memory", NULL},
    {SQLITE_PERM, SW_EIO, "no permission for the audit trail", "check owner and mode"},
};

int st_err(sw_error *err, int code, const char *where, const char *why, const char *fix,
           const char *what, ...)
{
	char text[384];
	va_list ap;
	va_start(ap, what);
	vsnprintf(text, sizeof text, what, ap);
	va_end(ap);
	sw_error_set(err, code, "%s", text);
	sw_error_more(err, where, why, fix);
	return code;
}

int st_sql_error(sw_store *s, int rc, const char *doing, sw_error *err)
{
	char why[384];
	int ext = s->db ? sqlite3_extended_errcode(s->db) : rc;
	if ((ext & 255) != (rc & 255))
		ext = rc;
	snprintf(why, sizeof why, "%s: %s (%d)", doing,
	         s->db && ext != rc ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc), ext);
	if (ext == SQLITE_CONSTRAINT_COMMITHOOK ||
	    (s->db && rc == SQLITE_ERROR && s->writing && sqlite3_get_autocommit(s->db)))
		return st_err(err, SW_EIO, s->path, why, "try again",
		              "the transaction was given up, for want of memory or by the disk");
	for (size_t i = 0; i < sizeof sql_errors / sizeof *sql_errors; i++) {
		if (sql_errors[i].rc == (rc & 255)) {
			return st_err(err, sql_errors[i].code, s->path, why, sql_errors[i].fix,
			              "%s", sql_errors[i].what);
		}
	}
	st_err(err, SW_EIO, s->path, why, NULL, "the audit trail could not be used");
	return SW_EIO;
}

int st_exec(sw_store *s, const char *sql, sw_error *err)
{
	int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
	return rc == SQLITE_OK ? 0 : st_sql_error(s, rc, "preparing the trail", err);
}

int st_check_process(const sw_store *s, sw_error *err)
{
	if (s->pid == getpid())
		return 0;
	return st_err(err, SW_EINVAL, s->path, "a store must not be used across fork()",
	              "open it again in the child",
	              "the audit trail was opened by another process");
}

static const char *const statements[Q_COUNT] = {
    [Q_HEAD] =
        "SELECT seq, hash, sealed_seq, sealed_ns, segments, unsealed_ns FROM state WHERE id=1",
    [Q_NEWEST_KEY] = "SELECT public FROM key ORDER BY seq DESC LIMIT 1",
    [Q_SET_HEAD] = ("UPDATE state SET seq=?1, hash=?2, sealed_seq=?3, sealed_ns=?4, segments=?5,"
                    " unsealed_ns=?6 WHERE id=1"),
    [Q_BEGIN] = "BEGIN IMMEDIATE",
    [Q_COMMIT] = "COMMIT",
    [Q_ROLLBACK] = "ROLLBACK",
    [Q_FIND_ID] =
        ("SELECT seq, kind, body, hash, started_ns, origin, shape, session, reason, labels"
         " FROM record WHERE id=?1"),
    [Q_FIND_END] = "SELECT seq, body, hash FROM record WHERE begin_seq=?1",
    [Q_OPEN_ADD] = "INSERT INTO unfinished(seq) VALUES(?1)",
    [Q_OPEN_DEL] = "DELETE FROM unfinished WHERE seq=?1",
    [Q_KEEP] = "INSERT INTO kept(seq, cut, data) VALUES(?1,?2,?3)",
    [Q_FACTS] = ("SELECT seq, started_ns, shape, origin, session, resource FROM record"
                 " WHERE seq BETWEEN ?1 AND ?2 AND kind<>1 ORDER BY seq"),
    [Q_ROLLUP_ADD] = "INSERT INTO rollup(id, n, lo, hi, width, data) VALUES(?1,?2,?3,?4,?5,?6)",
    [Q_KEPT] = "SELECT cut, data FROM kept WHERE seq=?1",
    [Q_ROLLUP_MAX] = "SELECT max(id) FROM rollup",
    [Q_UUID] = "SELECT uuid FROM store WHERE seq=1",
    [Q_ROLLUP_GET] = "SELECT n, lo, hi, width, data FROM rollup WHERE id=?1",
};

/* seq, the table's columns, hash */
char *st_select(const st_table_def *t, const char *rest)
{
	sqlite3_str *b = sqlite3_str_new(NULL);
	sqlite3_str_appendall(b, "SELECT seq");
	for (int i = 0; i < t->n; i++)
		sqlite3_str_appendf(b, ",%s", t->cols[i]);
	sqlite3_str_appendf(b, ",hash FROM %s %s", t->name, rest);
	return sqlite3_str_finish(b);
}

static char *make_sql(int which)
{
	if (statements[which])
		return sqlite3_mprintf("%s", statements[which]);
	if (which >= Q_NAME_GET)
		return sqlite3_mprintf("SELECT value FROM %s WHERE id=?1",
		                       st_tables[which - Q_NAME_GET].name);
	if (which >= Q_MAX_DICT && which < Q_HEAD)
		return sqlite3_mprintf("SELECT max(id) FROM %s",
		                       st_tables[which - Q_MAX_DICT].name);
	if (which >= Q_FIND_DICT && which < Q_MAX_DICT)
		return sqlite3_mprintf("SELECT id FROM %s WHERE key=?1",
		                       st_tables[which - Q_FIND_DICT].name);
	static const st_table rows[] = {T_RECORD, T_SHAPE,
	                                T_ORIGIN}; /* of Q_ROW, Q_SHAPE, Q_ORIGIN */
	if (which >= Q_ROW && which <= Q_ORIGIN)
		return st_select(&st_tables[rows[which - Q_ROW]],
		                 which == Q_ROW ? "WHERE seq=?1" : "WHERE id=?1");
	const st_table_def *t = &st_tables[which];
	sqlite3_str *b = sqlite3_str_new(NULL);
	sqlite3_str_appendf(b, "INSERT INTO %s(seq", t->name);
	for (int i = 0; i < t->n; i++)
		sqlite3_str_appendf(b, ",%s", t->cols[i]);
	sqlite3_str_appendf(b, ",hash) VALUES(?1");
	for (int i = 0; i <= t->n; i++)
		sqlite3_str_appendf(b, ",?%d", i + 2);
	sqlite3_str_appendf(b, ")");
	return sqlite3_str_finish(b);
}

sqlite3_stmt *st_stmt(sw_store *s, int which, sw_error *err)
{
	if (!s->q[which]) {
		char *sql = make_sql(which);
		int rc = sql ? sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
		                                  &s->q[which], NULL)
		             : SQLITE_NOMEM;
		sqlite3_free(sql);
		if (rc != SQLITE_OK) {
			st_sql_error(s, rc, "preparing a statement", err);
			return NULL;
		}
	} else {
		sqlite3_reset(s->q[which]);
	}
	return s->q[which];
}

int st_head_load(sw_store *s, st_head *out, sw_error *err)
{
	sqlite3_stmt *q = st_stmt(s, Q_HEAD, err);
	if (!q)
		return SW_EIO;
	int rc = sqlite3_step(q);
	int code = 0;
	if (rc == SQLITE_ROW && sqlite3_column_bytes(q, 1) == 32) {
		out->seq = (uint64_t)sqlite3_column_int64(q, 0);
		memcpy(out->hash, sqlite3_column_blob(q, 1), 32);
		out->sealed_seq = (uint64_t)sqlite3_column_int64(q, 2);
		out->sealed_ns = sqlite3_column_int64(q, 3);
		out->segments = sqlite3_column_int64(q, 4);
		out->unsealed_ns = sqlite3_column_int64(q, 5);
	} else if (rc == SQLITE_ROW || rc == SQLITE_DONE) {
		code = st_err(err, SW_ECORRUPT, s->path, NULL, "run `sandwitness verify`",
		              "the audit trail has lost its head row");
	} else {
		code = st_sql_error(s, rc, "reading the head", err);
	}
	sqlite3_reset(q);
	return code;
}

/* Prepared ahead, or by text where the store was never entered. */
void st_leave(sw_store *s)
{
	if (sqlite3_get_autocommit(s->db))
		return;
	sqlite3_stmt *q = s->q[Q_ROLLBACK];
	if (q) {
		sqlite3_step(q);
		sqlite3_reset(q);
	} else {
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	}
}

int st_enter(sw_store *s, sw_error *err)
{
	if (!st_stmt(s, Q_ROLLBACK, err))
		return SW_EIO;
	st_leave(s);
	return 0;
}

int st_begin(sw_store *s, sw_error *err)
{
	if (!s->write) {
		return st_err(err, SW_EINVAL, s->path, NULL, NULL,
		              "the audit trail was opened for reading");
	}
	int code = st_check_process(s, err);
	if (code == 0 && s->broken) {
		sw_error_set(err, SW_EIO,
		             "the audit trail was removed or replaced under the writer");
		return st_err(err, SW_EIO, s->path, NULL, "open it again",
		              "the audit trail was removed or replaced under the writer");
	}
	if (code == 0)
		code = st_lock_take(s->lock, s->busy_ms, err);
	if (code != 0)
		return code;
	code = st_check_file(s, false, err);
	if (code == 0)
		code = st_enter(s, err);
	if (code == 0) {
		sqlite3_stmt *q = st_stmt(s, Q_BEGIN, err);
		int rc = q ? sqlite3_step(q) : SQLITE_ERROR;
		if (q)
			sqlite3_reset(q);
		if (q && rc != SQLITE_DONE)
			code = st_sql_error(s, rc, "starting", err);
		else if (!q)
			code = SW_EIO;
	}
	s->writing = code == 0;
	if (code == 0)
		code = st_head_load(s, &s->head, err);
	if (code != 0)
		st_abort(s);
	return code;
}

static int checkpoint(sw_store *s)
{
	int log = 0, done = 0;
	int mode = s->wal_pages >= ST_WAL_PAGES_MAX ? SQLITE_CHECKPOINT_RESTART
	                                            : SQLITE_CHECKPOINT_PASSIVE;
	if (mode == SQLITE_CHECKPOINT_RESTART)
		sqlite3_busy_timeout(s->db, 50);
	int rc = sqlite3_wal_checkpoint_v2(s->db, "main", mode, &log, &done);
	sqlite3_busy_timeout(s->db, s->busy_ms);
	if (rc == SQLITE_OK && log == done)
		s->wal_pages = 0;
	return rc;
}

int st_commit(sw_store *s, sw_error *err)
{
	sqlite3_stmt *q = st_stmt(s, Q_SET_HEAD, err);
	if (!q) {
		st_abort(s);
		return SW_EIO;
	}
	const st_head *h = &s->head;
	sqlite3_bind_int64(q, 1, (int64_t)h->seq);
	sqlite3_bind_blob64(q, 2, h->hash, 32, SQLITE_STATIC);
	sqlite3_bind_int64(q, 3, (int64_t)h->sealed_seq);
	sqlite3_bind_int64(q, 4, h->sealed_ns);
	sqlite3_bind_int64(q, 5, h->segments);
	sqlite3_bind_int64(q, 6, h->unsealed_ns);
	int rc = sqlite3_step(q);
	sqlite3_reset(q);
	if (rc == SQLITE_DONE && sqlite3_changes(s->db) != 1)
		rc = SQLITE_CORRUPT;
	if (rc == SQLITE_DONE) {
		q = st_stmt(s, Q_COMMIT, err);
		s->committing = true;
		rc = q ? sqlite3_step(q) : sqlite3_errcode(s->db);
		s->committing = false;
		if (q)
			sqlite3_reset(q);
	}
	int code = rc == SQLITE_DONE ? 0 : st_sql_error(s, rc, "committing", err);
	if ((rc & 255) == SQLITE_IOERR) /* written whole, perhaps, and only the flush failed */
		sw_error_more(err, NULL, "outcome unknown: the disk failed while committing",
		              "repeat with the same id: what was recorded is not recorded again");
	if (code != 0) {
		st_abort(s);
		return code;
	}
	s->writing = false;
	st_note_files(s);
	code = st_check_file(s, true, err);
	if (code == 0 && s->signed_seq)
		st_mark_write(s, s->signed_seq, s->signed_hash);
	s->signed_seq = 0;
	/* What is committed stays committed, whatever becomes of the copying back. */
	if (code == 0 && s->wal_pages >= ST_CHECKPOINT_PAGES)
		s->checkpoint_rc = checkpoint(s);
	st_lock_give(s->lock);
	return code;
}

void st_abort(sw_store *s)
{
	st_leave(s);
	s->writing = false;
	s->signed_seq = 0;
	st_cache_clear(s);
	st_lock_give(s->lock);
}

static int wal_hook(void *arg, sqlite3 *db, const char *name, int pages)
{
	(void)db;
	(void)name;
	((sw_store *)arg)->wal_pages = pages;
	return SQLITE_OK;
}

static int may_commit(void *arg)
{
	return !((sw_store *)arg)->committing;
}

static int int_pragma(sw_store *s, const char *sql, int *out, sw_error *err)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int(q, 0);
	sqlite3_finalize(q);
	return rc == SQLITE_ROW ? 0 : st_sql_error(s, rc, "reading the header", err);
}

/* 1: new and empty, 0: ours, negative: neither. */
static int check_header(sw_store *s, sw_error *err)
{
	int version = 0, app = 0, objects = 0;
	/* all of one moment: another process may be making the trail just now */
	bool begun = sqlite3_get_autocommit(s->db) != 0;
	int code = begun ? st_enter(s, err) : 0;
	if (code == 0 && begun)
		code = st_exec(s, "BEGIN", err);
	if (code == 0)
		code = int_pragma(s, "SELECT count(*) FROM sqlite_schema", &objects, err);
	if (code == 0)
		code = int_pragma(s, "PRAGMA user_version", &version, err);
	if (code == 0)
		code = int_pragma(s, "PRAGMA application_id", &app, err);
	if (begun)
		st_leave(s);
	if (code != 0)
		return code;
	if (objects == 0 && app == 0 && version == 0)
		return 1;
	if (app != SW_STORE_APPLICATION_ID) {
		return st_err(err, SW_ECORRUPT, s->path,
		              "its application id is not an audit trail's",
		              "give another path with --db", "a database of another program");
	}
	if (version > SW_STORE_SCHEMA) {
		char why[100];
		snprintf(why, sizeof why, "this program knows schemas up to %d", SW_STORE_SCHEMA);
		return st_err(err, SW_EUNSUPPORTED, s->path, why,
		              "use the newer program that wrote it",
		              "the audit trail has schema %d", version);
	}
	return 0;
}

static const st_migration migrations[] = {{-1, NULL}};

static int create_schema(sw_store *s, sw_error *err)
{
	char sql[200];
	uint8_t uuid[16];
	char text[37];
	sw_uuid7(text);
	for (int i = 0, j = 0; i < 36 && j < 16; i++)
		if (text[i] != '-') {
			st_unhex(text + i, 2, uuid + j++);
			i++;
		}
	int code = st_enter(s, err);
	if (code == 0)
		code = st_exec(s, "BEGIN IMMEDIATE", err);
	if (code == 0)
		code = st_exec(s, st_schema_sql, err);
	if (code == 0) {
		snprintf(sql, sizeof sql,
		         "PRAGMA application_id=%d; PRAGMA user_version=%d;"
		         "INSERT INTO state VALUES(1,0,zeroblob(32),0,0,0,0)",
		         SW_STORE_APPLICATION_ID, SW_STORE_SCHEMA);
		code = st_exec(s, sql, err);
	}
	memset(&s->head, 0, sizeof s->head);
	int64_t now = sw_now_ns();
	if (code == 0) {
		st_cell cells[] = {st_blob(uuid, 16), st_int(now),
		                   st_textz("sandwitness " SW_VERSION)};
		code = st_append(s, T_STORE, cells, NULL, err);
	}
	if (code == 0) {
		/* Without a key the trail still works; verify then says "not sealed". */
		if (!s->no_seal && st_key_load(s, true, NULL) == 0)
			code = st_key_announce(s, NULL, NULL, err);
	}
	if (code == 0) {
		st_mark_forget(s);
		return 0;
	}
	st_leave(s);
	return code;
}

/*
 * The change to WAL needs the file for itself, and SQLite does not wait for it: somebody
 * who just looks whether the file is there yet holds it for a moment.
 */
static int to_wal(sw_store *s, sw_error *err)
{
	int64_t deadline = sw_monotonic_ns() + (int64_t)s->busy_ms * 1000000;
	for (;;) {
		int rc = sqlite3_exec(s->db, "PRAGMA page_size=4096; PRAGMA journal_mode=WAL", NULL,
		                      NULL, NULL);
		if (rc == SQLITE_OK)
			return 0;
		if ((rc & 255) != SQLITE_BUSY || sw_monotonic_ns() >= deadline)
			return st_sql_error(s, rc, "preparing the trail", err);
		struct timespec t = {0, 500000};
		nanosleep(&t, NULL);
	}
}

static int init_write(sw_store *s, sw_error *err)
{
	int code = st_lock_open(&s->lock, s->path, err);
	if (code != 0)
		return code;
	sqlite3_wal_autocheckpoint(s->db, 0);
	sqlite3_wal_hook(s->db, wal_hook, s);
	int fresh = check_header(s, err);
	if (fresh < 0)
		return fresh;
	int version = SW_STORE_SCHEMA;
	if (!fresh && (code = int_pragma(s, "PRAGMA user_version", &version, err)) != 0)
		return code;
	if (fresh || version < SW_STORE_SCHEMA) {
		if ((code = st_lock_take(s->lock, s->busy_ms, err)) != 0)
			return code;
		fresh = check_header(s, err);
		if (fresh < 0) {
			code = fresh;
		} else if (fresh) {
			code = to_wal(s, err);
			if (code == 0 && (code = create_schema(s, err)) == 0) {
				/* st_commit() also gives the lock back, on failure too */
				return st_commit(s, err);
			}
		} else {
			code = st_migrate(s->db, s->path, migrations,
			                  sizeof migrations / sizeof *migrations, SW_STORE_SCHEMA,
			                  err);
		}
		st_lock_give(s->lock);
	}
	return code;
}

static int open_db(sw_store *s, unsigned flags, sw_error *err)
{
	bool immutable = !s->write && st_frozen(s->path);
	int mode = s->write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
	char *name = NULL;
	(void)flags;
	if (immutable) {
		sqlite3_str *b = sqlite3_str_new(NULL);
		sqlite3_str_appendall(b, "file:");
		if (s->path[0] == '/')
			sqlite3_str_appendall(b, "//");
		for (const char *p = s->path; *p; p++)
			if (strchr("%?#", *p))
				sqlite3_str_appendf(b, "%%%02X", (unsigned char)*p);
			else
				sqlite3_str_appendchar(b, 1, *p);
		sqlite3_str_appendall(b, "?immutable=1");
		name = sqlite3_str_finish(b);
		mode |= SQLITE_OPEN_URI;
	} else if (s->path[0] == ':' || strncmp(s->path, "file:", 5) == 0) {
		name = sqlite3_mprintf("./%s", s->path); /* a path, never a URI */
	} else {
		name = sqlite3_mprintf("%s", s->path);
	}
	int rc =
	    name ? sqlite3_open_v2(name, &s->db, mode | SQLITE_OPEN_NOMUTEX, NULL) : SQLITE_NOMEM;
	sqlite3_free(name);
	if (rc != SQLITE_OK)
		return st_sql_error(s, rc, "opening", err);
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_busy_timeout(s->db, s->busy_ms);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	static const int limits[][2] = {
	    {SQLITE_LIMIT_LENGTH, 16 << 20},    {SQLITE_LIMIT_SQL_LENGTH, 100000},
	    {SQLITE_LIMIT_ATTACHED, 0},         {SQLITE_LIMIT_COLUMN, 100},
	    {SQLITE_LIMIT_EXPR_DEPTH, 100},     {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
	    {SQLITE_LIMIT_COMPOUND_SELECT, 20}, {SQLITE_LIMIT_VARIABLE_NUMBER, 100},
	    {SQLITE_LIMIT_WORKER_THREADS, 0},   {SQLITE_LIMIT_FUNCTION_ARG, 10},
	};
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		sqlite3_limit(s->db, limits[i][0], limits[i][1]);
	int persist = 1;
	sqlite3_file_control(s->db, "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
	return st_exec(s,
	               "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-4096;"
	               "PRAGMA synchronous=FULL; PRAGMA secure_delete=ON; PRAGMA temp_store=FILE;"
	               "PRAGMA foreign_keys=OFF",
	               err);
}

static void host_names(sw_store *s)
{
	struct utsname u;
	if (uname(&u) != 0)
		return;
	snprintf(s->host, sizeof s->host, "%s", u.nodename);
	snprintf(s->platform, sizeof s->platform, "%s-%.60s", "linux", u.machine);
}

int sw_store_open(sw_store **out, const char *path, unsigned flags, const sw_store_options *o,
                  sw_error *err)
{
	if (!path || !*path || strlen(path) > 4000)
		return sw_error_set(err, SW_EINVAL, "a path of 1 to 4,000 bytes is needed");
	sw_store *s = calloc(1, sizeof *s);
	if (!s)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	const char *key = o && o->key_path ? o->key_path : getenv("SANDWITNESS_SEAL_KEY");
	s->path = strdup(path);
	if (key && *key)
		s->key_path = strdup(key);
	else if (asprintf(&s->key_path, "%s.key", path) < 0)
		s->key_path = NULL;
	s->cache = calloc(ST_CACHE, sizeof *s->cache);
	s->write = (flags & SW_STORE_WRITE) != 0;
	s->pid = getpid();
	s->busy_ms = o && o->busy_ms > 0 ? o->busy_ms : BUSY_MS;
	s->segment_rows = o && o->segment_rows ? o->segment_rows : 1024;
	s->segment_age_ns = o && o->segment_age_ns ? o->segment_age_ns : 3600LL * 1000000000;
	s->no_seal = o && o->no_seal;
	host_names(s);
	int code = s->path && s->key_path && s->cache ? 0 : SW_ENOMEM;
	if (code != 0)
		sw_error_set(err, code, "out of memory");
	struct stat st;
	if (code == 0)
		code = st_check_kinds(path, err);
	if (code == 0 && stat(path, &st) != 0 && errno == ENOENT &&
	    (!s->write || (flags & SW_STORE_NO_CREATE))) {
		code = sw_error_set(err, SW_ENOTFOUND, "no audit trail there yet");
		sw_error_more(
		    err, path, "nothing has been recorded",
		    "record something (`sandwitness run`, `sandwitness record`), or give --db");
	}
	if (code == 0 && s->write)
		code = st_make_file(s, err);
	if (code == 0)
		code = open_db(s, flags, err);
	if (code == 0 && s->write)
		code = init_write(s, err);
	else if (code == 0 && (code = check_header(s, err)) == 1) {
		code = st_err(err, SW_ENOTFOUND, path, "nothing has been recorded", NULL,
		              "the audit trail is empty");
	}
	if (code != 0) {
		sw_store_close(s);
		return code;
	}
	if (s->write)
		sqlite3_commit_hook(s->db, may_commit, s);
	st_note_files(s);
	*out = s;
	return 0;
}

void sw_store_close(sw_store *s)
{
	if (!s)
		return;
	bool ours = s->pid == getpid();
	if (ours && s->db) {
		for (int i = 0; i < Q_COUNT; i++)
			sqlite3_finalize(s->q[i]);
		/* Closing may touch the log: only within the writers' lock. */
		bool locked = s->write && s->lock && st_lock_take(s->lock, s->busy_ms, NULL) == 0;
		sqlite3_close(s->db);
		if (locked)
			st_lock_give(s->lock);
	}
	/* In a forked child the connection is leaked: closing it would drop the parent's locks. */
	st_lock_close(s->lock);
	volatile uint8_t *secret = s->key_secret;
	for (size_t i = 0; i < sizeof s->key_secret; i++)
		secret[i] = 0;
	free(s->cache);
	free(s->path);
	free(s->key_path);
	free(s);
}

const char *sw_store_path(const sw_store *s)
{
	return s->path;
}
