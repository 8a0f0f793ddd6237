/*
 * store_int.h - what the files of store/ share. Not public.
 */
#ifndef SW_STORE_INT_H
#define SW_STORE_INT_H

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"
#include "store.h"

/* ---- tables ---------------------------------------------------------- */

/* Every chained table has `seq` first and `hash` last; between them `cols`. */
typedef enum {
	T_STORE,
	T_KEY,
	T_SESSION,
	T_RESOURCE,
	T_ORIGIN,
	T_SHAPE,
	T_RECORD,
	T_SEAL,
	T_PRUNE,
	T_COUNT
} st_table;

#define ST_COLS_MAX 40

typedef struct st_table_def {
	const char *name;
	const char *order; /* the primary key; grows with seq */
	const char *cols[ST_COLS_MAX];
	uint8_t n;
	uint8_t tag; /* in the hash; never reused */
	bool kept;   /* rows outlive pruning */
} st_table_def;
extern const st_table_def st_tables[T_COUNT];

/* Column numbers within `cols`. */
enum { C_STORE_UUID, C_STORE_AT, C_STORE_PROGRAM };
enum { C_KEY_AT, C_KEY_PUBLIC, C_KEY_SIG };
enum { C_NAME_ID, C_NAME_KEY, C_NAME_VALUE }; /* session, resource */
enum {
	C_ORIGIN_ID,
	C_ORIGIN_KEY,
	C_ORIGIN_DEVICE,
	C_ORIGIN_PLATFORM,
	C_ORIGIN_RUNTIME,
	C_ORIGIN_ACTOR,
	C_ORIGIN_LABELS,
	C_ORIGIN_N
};
enum {
	C_SHAPE_ID,
	C_SHAPE_KEY,
	C_SHAPE_BACKEND,
	C_SHAPE_MODE,
	C_SHAPE_NETWORK,
	C_SHAPE_VERDICT,
	C_SHAPE_RULE,
	C_SHAPE_STAGE,
	C_SHAPE_CAUSE,
	C_SHAPE_SIGNATURE,
	C_SHAPE_CONFIDENCE,
	C_SHAPE_EVIDENCE,
	C_SHAPE_SOURCE,
	C_SHAPE_STARTED,
	C_SHAPE_OPERATION,
	C_SHAPE_RESOURCE_KIND,
	C_SHAPE_LIMIT,
	C_SHAPE_LIMIT_CERTAINTY,
	C_SHAPE_ENFORCEMENT,
	C_SHAPE_REQUESTED,
	C_SHAPE_MINIMUM,
	C_SHAPE_EFFECTIVE,
	C_SHAPE_REQUESTED_SET,
	C_SHAPE_MINIMUM_SET,
	C_SHAPE_EFFECTIVE_SET,
	C_SHAPE_GRANTED,
	C_SHAPE_LOST,
	C_SHAPE_VIOLATED,
	C_SHAPE_BASIS,
	C_SHAPE_ISOLATED,
	C_SHAPE_DOWNGRADE,
	C_SHAPE_UNEXPLAINED,
	C_SHAPE_EXEMPT,
	C_SHAPE_VIOLATION,
	C_SHAPE_CONTAINED,
	C_SHAPE_REASON_CLASS,
	C_SHAPE_REASON,
	C_SHAPE_N
};
enum {
	C_REC_KIND,
	C_REC_ID,
	C_REC_BEGIN_SEQ,
	C_REC_RECORDED,
	C_REC_STARTED,
	C_REC_ENDED,
	C_REC_ORIGIN,
	C_REC_SHAPE,
	C_REC_SESSION,
	C_REC_RESOURCE,
	C_REC_BODY,
	C_REC_COMMAND,
	C_REC_CWD,
	C_REC_REASON,
	C_REC_LABELS,
	C_REC_EXIT,
	C_REC_SIGNAL,
	C_REC_TIMED_OUT,
	C_REC_LINE,
	C_REC_LINE_NUMBER,
	C_REC_LINE_OFFSET,
	C_REC_LINE_CUT,
	C_REC_DENIED_LINES,
	C_REC_OUTPUT_SIZE,
	C_REC_OUTPUT_LINES,
	C_REC_OUTPUT_DIGEST,
	C_REC_KEPT_DIGEST,
	C_REC_DETAIL,
	C_REC_N
};
enum {
	C_SEAL_SEGMENT,
	C_SEAL_AT,
	C_SEAL_FIRST,
	C_SEAL_LAST,
	C_SEAL_HEAD,
	C_SEAL_ROLLUP,
	C_SEAL_KEY,
	C_SEAL_SIG,
	C_SEAL_N
};
enum {
	C_PRUNE_AT,
	C_PRUNE_FROM,
	C_PRUNE_TO,
	C_PRUNE_ROWS,
	C_PRUNE_RESUME,
	C_PRUNE_DICT,
	C_PRUNE_WHY,
	C_PRUNE_N
};
/* `dict` of a prune row: the digest, then whose signature follows, then the signature. */
enum { ST_PRUNE_DIGEST = 32, ST_PRUNE_KEYED = 40, ST_PRUNE_SIGNED = 104 };
enum { REC_BEGIN = 1, REC_END = 2, REC_COMPLETE = 3 };

/* ---- cells and the chain --------------------------------------------- */

enum { CELL_NULL, CELL_INT, CELL_TEXT, CELL_BLOB };
typedef struct st_cell {
	uint8_t type;
	int64_t i;
	const void *p;
	size_t n;
} st_cell;

static inline st_cell st_null(void)
{
	return (st_cell){CELL_NULL, 0, NULL, 0};
}
static inline st_cell st_int(int64_t i)
{
	return (st_cell){CELL_INT, i, NULL, 0};
}
static inline st_cell st_text(const void *p, size_t n)
{
	return (st_cell){CELL_TEXT, 0, p ? p : "", n};
}
static inline st_cell st_blob(const void *p, size_t n)
{
	return (st_cell){CELL_BLOB, 0, p ? p : "", n};
}
st_cell st_textz(const char *z); /* NULL gives a NULL cell */

/* docs/store.md, "The chain". */
void st_row_hash(uint8_t out[32], const uint8_t prev[32], uint64_t seq, const st_table_def *t,
                 const st_cell *cells);
/* Digest of cells alone, cut to 16 bytes: keys of dictionaries, bodies. */
void st_cells_digest(uint8_t out[16], const st_cell *cells, size_t n);
void st_sha256(uint8_t out[32], const void *p, size_t n);
st_cell st_column(sqlite3_stmt *q, int col);
int st_bind(sqlite3_stmt *q, int index, st_cell c);  /* static lifetime: valid until the step */
void st_hex(char *out, const void *p, size_t n);     /* 2n + 1 bytes */
int st_unhex(const char *z, size_t n, uint8_t *out); /* n hex digits; 0 or -1 */
/* Digits alone, as they are printed: no sign, no blank, no leading zero; up to INT64_MAX. */
bool st_number(const char *z, size_t n, uint64_t *out);

/* ---- the store ------------------------------------------------------- */

typedef struct st_lock st_lock;
int st_lock_open(st_lock **out, const char *path, sw_error *err);
/* In the order of asking, up to wait_ms. SW_EBUSY. */
int st_lock_take(st_lock *l, int wait_ms, sw_error *err);
void st_lock_give(st_lock *l);
void st_lock_close(st_lock *l); /* in a forked child too: frees without unlocking */

typedef struct st_head {
	uint64_t seq;
	uint8_t hash[32];
	uint64_t sealed_seq; /* the last seal row */
	int64_t sealed_ns;
	int64_t segments;    /* seals made so far */
	int64_t unsealed_ns; /* when the first row after the last seal was recorded; 0: none */
} st_head;

#define ST_CACHE 2048
typedef struct st_cached {
	uint8_t key[16];
	uint8_t table;
	bool used;
	int64_t id;
} st_cached;

/* Statements kept prepared. */
typedef enum {
	Q_INSERT,                         /* + table */
	Q_FIND_DICT = Q_INSERT + T_COUNT, /* + table: by key */
	Q_MAX_DICT = Q_FIND_DICT + T_COUNT,
	Q_HEAD = Q_MAX_DICT + T_COUNT,
	Q_NEWEST_KEY,
	Q_SET_HEAD,
	Q_BEGIN,
	Q_COMMIT,
	Q_ROLLBACK,
	Q_FIND_ID,
	Q_FIND_END,
	Q_OPEN_ADD,
	Q_OPEN_DEL,
	Q_KEEP,
	Q_FACTS,
	Q_ROLLUP_ADD,
	Q_ROLLUP_GET,
	Q_ROLLUP_MAX,
	Q_UUID,
	Q_ROW,
	Q_SHAPE,
	Q_ORIGIN,
	Q_KEPT,
	Q_NAME_GET,
	Q_COUNT = Q_NAME_GET + T_COUNT
} st_query;

struct sw_store {
	sqlite3 *db;
	char *path, *key_path;
	bool write, broken;
	pid_t pid;
	int busy_ms;
	uint32_t segment_rows;
	int64_t segment_age_ns;
	bool no_seal;
	st_lock *lock;
	dev_t dev[3];
	ino_t ino[3]; /* database, -wal, -shm */
	bool have_ino[3];
	st_head head; /* within a transaction: as it will be */
	int read_rc;  /* the first failure of st_row() since st_read_begin() */
	/* Only st_commit() commits. Out of memory or after a failed read SQLite may roll a
	 * transaction back by itself, and what came after would be committed row by row. */
	bool committing;
	bool writing; /* from st_begin() to its end */
	int wal_pages;
	int checkpoint_rc;
	st_cached *cache;
	sqlite3_stmt *q[Q_COUNT];
	/* the signing key, once loaded */
	bool key_known;
	uint8_t key_secret[32], key_public[32];
	/* a seal signed in this transaction */
	uint64_t signed_seq;
	uint8_t signed_hash[32];
	char host[256], platform[128];
};

/* Pages in the log after which a writer copies them back. */
#define ST_CHECKPOINT_PAGES 400
#define ST_WAL_PAGES_MAX 16384 /* then readers are waited for, briefly */

/* Fills every part of err (may be NULL) and returns code. */
int st_err(sw_error *err, int code, const char *where, const char *why, const char *fix,
           const char *what, ...) SW_PRINTF(6, 7);
int st_sql_error(sw_store *s, int rc, const char *doing, sw_error *err);
int st_exec(sw_store *s, const char *sql, sw_error *err);
sqlite3_stmt *st_stmt(sw_store *s, int which,
                      sw_error *err);                     /* reset and ready; NULL: err is set */
char *st_select(const st_table_def *t, const char *rest); /* sqlite3_free() */
int st_check_process(const sw_store *s, sw_error *err);
int st_check_file(sw_store *s, bool after, sw_error *err);
/* Pipes, folders and devices are refused before anything waits for them. */
int st_not_regular(const char *path, mode_t mode, const char *what, sw_error *err);
int st_regular(const char *path, const char *what, sw_error *err); /* 0 where it is missing too */
int st_check_kinds(const char *path, sw_error *err); /* the same for all files of a trail */
void st_note_files(sw_store *s);                     /* for st_check_file() */
int st_make_file(sw_store *s, sw_error *err);
bool st_frozen(const char *path);          /* on a read-only medium */
int st_begin(sw_store *s, sw_error *err);  /* lock + BEGIN IMMEDIATE + head */
int st_commit(sw_store *s, sw_error *err); /* head + COMMIT + checkpoint + unlock */
void st_abort(sw_store *s);
int st_head_load(sw_store *s, st_head *out, sw_error *err);
int st_append(sw_store *s, st_table t, const st_cell *cells, uint64_t *seq, sw_error *err);

/* schema.c */
extern const char *const st_schema_sql;
typedef struct st_migration {
	int from; /* user_version it starts at; it ends at from + 1 */
	const char *sql;
} st_migration;
/* All steps in one IMMEDIATE transaction; a copy of the file is made before. */
int st_migrate(sqlite3 *db, const char *path, const st_migration *m, size_t n, int target,
               sw_error *err);

/* key.c */
int st_key_load(sw_store *s, bool create, sw_error *err); /* SW_ENOTFOUND: none */
/* The key that the chain announced last, in a transaction. SW_EINVAL: the file holds another. */
int st_key_current(sw_store *s, sw_error *err);
int st_key_announce(sw_store *s, const uint8_t *old_secret, const uint8_t *old_public,
                    sw_error *err);
int st_key_new(uint8_t secret[32], uint8_t pub[32], sw_error *err);
int st_key_write(const char *path, const uint8_t secret[32], const uint8_t pub[32], bool replace,
                 sw_error *err);
void st_key_print(char out[17], const uint8_t pub[32]); /* fingerprint */
int st_public_read(const char *hex_or_file, uint8_t pub[32], sw_error *err);
size_t st_seal_message(uint8_t *out, const uint8_t uuid[16], const st_cell *seal);
size_t st_prune_message(uint8_t *out, const uint8_t uuid[16], uint64_t seq, const st_cell *prune);
size_t st_key_message(uint8_t *out, const uint8_t uuid[16], const uint8_t pub[32]);
#define ST_MESSAGE_MAX 256
int st_uuid(sw_store *s, uint8_t uuid[16], sw_error *err);

/* mark.c: does the trail still hold the seal that was made last? SW_ECORRUPT: no. */
int st_mark_check(sw_store *s, sw_error *err);
void st_mark_write(sw_store *s, uint64_t seq, const uint8_t hash[32]); /* under the lock */
void st_mark_forget(sw_store *s);

/* prune.c: the newest pruning, signed again by the key in use, where `old_public` vouches
 * for it; nothing where none was made. */
int st_prune_again(sw_store *s, const uint8_t old_public[32], sw_error *err);

/* dict.c */
int st_dict(sw_store *s, st_table t, st_cell *cells, int64_t *id, sw_error *err);
void st_cache_clear(sw_store *s);

/* seal.c */
int st_seal_now(sw_store *s, int64_t now, sw_error *err); /* in a transaction; needs the key */
bool st_seal_due(const sw_store *s, int64_t now);

/* facts.c: one segment's invocations as arrays, for reports. */
enum { F_SEQ, F_TIME, F_SHAPE, F_ORIGIN, F_SESSION, F_RESOURCE, F_COUNT };
extern const char *const st_fact_names[F_COUNT];
typedef struct st_facts {
	size_t n, cap;
	uint64_t *v[F_COUNT];
} st_facts;
void st_facts_free(st_facts *f);
int st_facts_add(st_facts *f, const uint64_t v[F_COUNT]);
typedef struct st_packed {
	uint64_t lo, hi;
	int width;
	size_t n, bytes;
	uint8_t *data;
} st_packed;
int st_pack(st_packed *out, const uint64_t *v, size_t n);
void st_unpack(uint64_t *out, const st_packed *p);
/* In order F_SEQ..; digest of all columns of a segment. */
int st_rollup_digest(uint8_t out[32], const st_facts *f);
#define ST_BLOCK 4096 /* facts of one row set of `rollup` */
int st_rollup_store(sw_store *s, const st_facts *f, sw_error *err);
/* 1: there (data is a copy), 0: no such block. */
int st_rollup_read(sw_store *s, int64_t block, int fact, st_packed *out, sw_error *err);
int st_facts_of_rows(sw_store *s, uint64_t first, uint64_t last, st_facts *f, sw_error *err);

/* query.c */
typedef struct st_filter {
	int64_t since, until; /* INT64_MIN / INT64_MAX: open */
	uint8_t *shape,
	    *origin; /* 1: matches, 2: origin whose labels are in the row; NULL: all match */
	size_t n_shape, n_origin;
	bool by_session;
	uint64_t session;
	bool nothing; /* a name that does not exist: no row matches */
	const sw_query *q;
} st_filter;
int st_filter_init(st_filter *f, sw_store *s, const sw_query *q, sw_error *err);
void st_filter_free(st_filter *f);
typedef struct st_fact {
	uint64_t seq;
	int64_t time;
	uint32_t shape, origin;
	uint64_t session, resource;
} st_fact;
/* `need` are bits 1u << F_*; the others are 0 in the facts given. each: non-zero stops. */
int st_scan(sw_store *s, const st_filter *f, unsigned need,
            int (*each)(void *arg, const st_fact *x), void *arg, sw_error *err);
/* The same, newest recorded first, before chain row `before` (0: all), with unfinished begins. */
int st_scan_back(sw_store *s, const st_filter *f, uint64_t before, bool with_open,
                 int (*each)(void *arg, const st_fact *x), void *arg, sw_error *err);
/* Unfinished begins alone, newest first. */
int st_scan_open(sw_store *s, const st_filter *f, int (*each)(void *arg, const st_fact *x),
                 void *arg, sw_error *err);
bool st_passes(sw_store *s, const st_filter *f, const st_fact *x);
bool st_labels_match(const char *labels, size_t n, const sw_query *q);
/* Before BEGIN: that the transaction can be left without memory, and that none is left over. */
int st_enter(sw_store *s, sw_error *err);
void st_leave(sw_store *s);
int st_read_begin(sw_store *s, sw_error *err); /* one snapshot for several reads */
/* The code again, or, where that is 0, what st_row() met. */
int st_read_end(sw_store *s, int code, sw_error *err);
/* True: there is a row. For a look at something small, whose failure st_read_end() tells: a value
 * that could not be read must not pass for none. A NULL statement was not prepared. */
bool st_row(sw_store *s, sqlite3_stmt *q);

/* rows.c */
int st_row_json(sw_store *s, uint64_t seq, bool full, json_t **out, sw_error *err);
int st_shape_cells(sw_store *s, int64_t id, sqlite3_stmt **row, sw_error *err);
char *st_id_text(st_cell id); /* of the id column; NULL for NULL */
size_t st_id_blob(uint8_t out[SW_RECORD_ID_MAX + 1], const char *id, size_t n);

#endif
