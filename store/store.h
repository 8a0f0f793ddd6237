/*
 * store.h - the audit trail: every invocation, the level it had, what was lost and
 * why, in one SQLite file that is append-only, hash-chained, sealed and signed.
 * docs/store.md describes the file, the chain, the key and what they cannot do;
 * docs/record.md describes the JSON that runtimes post.
 *
 * Ownership. Input structures are borrowed for the call. json_t results are new
 * references, char * results are malloc()ed: both the caller's.
 *
 * Threads. A sw_store belongs to one thread at a time. Open one per thread; a
 * process may hold any number of them on one file. A store must not be used in the
 * child after a fork(): every call there fails with SW_EINVAL, and sw_store_close()
 * only frees memory.
 *
 * Durability. A call that records returns 0 only after its transaction is on disk.
 * Anything else means that nothing of that operation was recorded, except
 * SW_EIO with `why` "outcome unknown": repeat with the same id, which is idempotent.
 *
 * Errors. 0 or a negative sw_code; sw_error may be NULL. SW_EBUSY: another writer
 * held the lock for longer than busy_ms. SW_ECORRUPT: damaged or not our file.
 * SW_EUNSUPPORTED: written by a newer program.
 */
#ifndef SW_STORE_H
#define SW_STORE_H

#include <jansson.h>

#include "base.h"
#include "levels.h"
#include "sandwitness.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SW_STORE_SCHEMA 1                  /* PRAGMA user_version */
#define SW_STORE_APPLICATION_ID 0x53574155 /* "SWAU", PRAGMA application_id */

/* Maxima, in bytes unless said otherwise; over them: cut and marked, or SW_ETOOBIG where said. */
#define SW_RECORD_ID_MAX 128        /* SW_ETOOBIG */
#define SW_RECORD_NAME_MAX 256      /* device, runtime, session, actor, level: SW_ETOOBIG */
#define SW_RECORD_LABELS_MAX 32     /* labels of one record: SW_ETOOBIG */
#define SW_RECORD_COMMAND_MAX 16384 /* command as stored */
#define SW_RECORD_REASON_MAX 1024
#define SW_RECORD_RESOURCE_MAX 1024
#define SW_RECORD_DETAIL_MAX 16384      /* downgrade lines, observations and faults as JSON */
#define SW_RECORD_OUTPUT_MAX (1u << 20) /* kept output, whatever the caller allows */
#define SW_STORE_GROUP_MAX 1024         /* operations of one sw_store_write() */

/* ---- records --------------------------------------------------------- */

/* A verdict as recorded: the classifier's three, or refused before anything was spawned. */
#define SW_X_RECORD_VERDICT(s, n) SW_RECORD_##s,
typedef enum {
	SW_VERDICT_LIST(SW_X_RECORD_VERDICT) SW_RECORD_VERDICT_EXTRA_LIST(SW_X_RECORD_VERDICT)
	    SW_RECORD_VERDICT_COUNT
} sw_record_verdict;
const char *sw_record_verdict_name(sw_record_verdict v);
int sw_record_verdict_parse(const char *s, size_t n, sw_record_verdict *out);

typedef struct sw_label {
	sw_str key, value;
} sw_label;

/* What came out; zero-initialise, or fill with sw_outcome_of_result(). */
typedef struct sw_outcome {
	sw_record_verdict verdict;
	int rule; /* 0: not given */
	sw_str cause, signature;
	sw_str line; /* raw bytes; only with has_line */
	uint64_t line_number, offset;
	sw_str resource, resource_kind;
	uint64_t denied_lines;
	uint64_t output_size, output_lines;
	/* {"downgrades":[..],"observations":[..],"faults":[..]} of the output object, or NULL */
	const json_t *detail;
	sw_exit exit; /* only with has_exit */
	sw_stage stage;
	sw_confidence confidence;
	sw_evidence evidence;
	sw_source evidence_source;
	sw_started started;
	sw_operation operation;
	sw_limit_kind limit;
	sw_certainty limit_certainty;
	sw_enforcement enforcement;
	uint8_t output_digest[32]; /* SHA-256 of the raw output; made by the store where `output` is
	                              given */
	bool has_output_digest;
	bool has_line, line_truncated;
	bool has_exit; /* false: nothing is known (refused before spawn) */
} sw_outcome;

/* Copies the scalar fields; strings stay borrowed from r. detail is left NULL. */
void sw_outcome_of_result(sw_outcome *out, const sw_result *r);
/* The detail object of a result, NULL where it has none of the three. */
json_t *sw_outcome_detail(const sw_result *r);

/*
 * One invocation. Zero-initialise; empty strings mean "not known". The same
 * structure serves begin (no outcome), end (identity and command are the begin's and
 * ignored here) and complete (all).
 */
typedef struct sw_record {
	sw_str id;                    /* empty: a UUIDv7 is made */
	int64_t started_ns, ended_ns; /* ns since 1970; 0: now */
	int64_t duration_ns; /* fills in one of them; ignored where both are given; 0: not known */
	sw_str device, platform, runtime, session,
	    actor; /* device and platform empty: this host's */
	const sw_label *labels;
	size_t n_labels;
	const sw_str *argv;
	size_t argc;
	sw_str cwd;

	sw_str backend; /* required, except in an end that repeats the begin's */
	sw_mode mode;
	sw_network network;
	bool has_level; /* end only: false keeps the begin's level fields, mode and network */
	sw_str requested, minimum, effective; /* level names for people; may be empty */
	uint32_t granted;
	sw_level_outcome level; /* of sw_level_compare() */
	sw_reason_class reason_class;
	sw_str reason;

	sw_outcome outcome;
	sw_str output;      /* raw output, for the digest and for keeping; NULL: none */
	size_t keep_output; /* bytes of it to keep, redacted; 0: none. Head and tail are kept. */
} sw_record;

typedef enum { SW_STORE_BEGIN, SW_STORE_END, SW_STORE_COMPLETE } sw_store_op_kind;

typedef struct sw_receipt {
	char id[SW_RECORD_ID_MAX + 1];
	uint64_t seq;     /* of its row in the chain */
	uint8_t hash[32]; /* of its row */
	bool replay;      /* the same was recorded before; seq and hash are that row's */
} sw_receipt;

typedef struct sw_store_op {
	sw_store_op_kind kind;
	const sw_record *record;
	sw_receipt receipt; /* written where code is 0 */
	int code;           /* 0 or a sw_code; a conflict does not stop the others of the group */
	sw_error error;
} sw_store_op;

/* ---- open ------------------------------------------------------------ */

typedef struct sw_store sw_store;

enum {
	SW_STORE_READ = 0, /* never writes, never checkpoints, needs the file */
	SW_STORE_WRITE =
	    1u << 0, /* creates folder (0700), file (0600) and key (0600) where missing */
	SW_STORE_NO_CREATE = 1u << 1 /* with WRITE: the file must exist */
};

typedef struct sw_store_options {
	const char *key_path;   /* signing key; NULL: $SANDWITNESS_SEAL_KEY, else PATH + ".key" */
	int busy_ms;            /* wait for the writer's lock; 0: 10,000 */
	uint32_t segment_rows;  /* seal after so many rows; 0: 1,024 */
	int64_t segment_age_ns; /* seal at the first write after so long; 0: one hour */
	bool no_seal;           /* never seal by itself */
} sw_store_options;

/* options may be NULL. A missing file with READ: SW_ENOTFOUND. */
int sw_store_open(sw_store **out, const char *path, unsigned flags, const sw_store_options *options,
                  sw_error *err);
void sw_store_close(sw_store *s); /* NULL is fine */
const char *sw_store_path(const sw_store *s);

/* ---- write ----------------------------------------------------------- */

int sw_store_begin(sw_store *s, const sw_record *r, sw_receipt *out, sw_error *err);
/* r->id names the begin. SW_ENOTFOUND: no such; SW_ECONFLICT: ended differently. */
int sw_store_end(sw_store *s, const sw_record *r, sw_receipt *out, sw_error *err);
int sw_store_complete(sw_store *s, const sw_record *r, sw_receipt *out, sw_error *err);
/*
 * Group commit: all operations in one transaction with one flush. 0: the group is on
 * disk and each op's code says how it went; negative: nothing of it was recorded (every
 * op's code is set too). At most SW_STORE_GROUP_MAX.
 */
int sw_store_write(sw_store *s, sw_store_op *ops, size_t n, sw_error *err);
/* Seals everything recorded so far. SW_ENOTFOUND: no key. *sealed may be NULL. */
int sw_store_seal(sw_store *s, bool *sealed, sw_error *err);
/* A new key, announced in the chain and signed by the old one. */
int sw_store_rotate_key(sw_store *s, sw_error *err);

/* ---- JSON records (record verb, POST /v1/invocations) ---------------- */

typedef struct sw_record_parsed sw_record_parsed;
/* Finds the pack of a backend, or NULL. Used only where a record holds output. */
typedef const sw_pack *(*sw_pack_finder)(void *arg, const char *backend);
/*
 * One JSON record of docs/record.md: checks every field, resolves levels and aliases,
 * derives the effective level from `command` where none is declared, classifies where
 * `output` is given. SW_EINVAL names the field.
 */
int sw_record_parse(sw_record_parsed **out, const json_t *object, sw_pack_finder find, void *arg,
                    sw_error *err);
void sw_record_parsed_free(sw_record_parsed *p); /* NULL is fine */
sw_store_op_kind sw_record_parsed_kind(const sw_record_parsed *p);
const sw_record *sw_record_parsed_record(const sw_record_parsed *p); /* borrowed */
/* {"id","seq","hash","replay"}; for answers to those who posted. */
json_t *sw_receipt_json(const sw_receipt *r);

/* ---- query ----------------------------------------------------------- */

#define SW_QUERY_LIMIT_DEFAULT 50
#define SW_QUERY_LIMIT_MAX 10000

typedef struct sw_query {
	int64_t since_ns, until_ns; /* of the start: since <= t < until; 0: open */
	char *backend, *verdict, *level, *cause, *session, *actor, *device; /* NULL: any */
	char *label_key[SW_RECORD_LABELS_MAX],
	    *label_value[SW_RECORD_LABELS_MAX]; /* all must match */
	size_t n_labels;
	uint32_t limit; /* 0: the default */
	char *cursor;   /* "next" of the page before */
} sw_query;
/*
 * Sets one filter from text: since, until, backend, verdict, level, cause, session,
 * actor, device, label (k=v, repeatable), limit, cursor. Serves options and HTTP
 * parameters alike. SW_ENOTFOUND: not a filter; SW_EINVAL: bad value.
 */
int sw_query_set(sw_query *q, const char *key, const char *value, int64_t now_ns, sw_error *err);
void sw_query_free(sw_query *q); /* frees what it holds, not q */

/* Names of the reports, ending with NULL; *summaries (may be NULL) gets one line each. */
const char *const *sw_report_names(const char *const **summaries);
/*
 * {"schema","report","since","until","filters","columns":[{"name","kind"}],"rows":[{..}],
 *  "next","head":{"seq","hash"}}; next is null on the last page. SW_ENOTFOUND: no such report.
 */
int sw_store_report(sw_store *s, const char *report, const sw_query *q, json_t **out,
                    sw_error *err);
/* Newest first; each(arg, object) gets a borrowed object, non-zero stops. *next (may be
 * NULL) becomes a cursor or NULL at the end. */
int sw_store_invocations(sw_store *s, const sw_query *q, int (*each)(void *arg, json_t *object),
                         void *arg, char **next, sw_error *err);
/* All about one, kept output included ("output" or "output_b64"). SW_ENOTFOUND. */
int sw_store_invocation(sw_store *s, const char *id, json_t **out, sw_error *err);
/* Oldest first, those recorded after chain row `after` (begin, end and complete rows apart:
 * "event"); for resumable streams. */
int sw_store_events(sw_store *s, uint64_t after, uint32_t limit,
                    int (*each)(void *arg, uint64_t seq, json_t *object), void *arg, sw_error *err);

typedef struct sw_store_head {
	uint64_t seq;
	uint8_t hash[32];
	uint64_t sealed_seq; /* rows up to here are sealed; 0: none */
	int64_t sealed_ns;
	char key[17]; /* fingerprint of the newest key, hex; "" none */
} sw_store_head;
/* Cheap (one row): also the way to notice commits of other processes. */
int sw_store_head_get(sw_store *s, sw_store_head *out, sw_error *err);
json_t *sw_store_head_json(const sw_store_head *h);

typedef struct sw_store_counts {
	uint64_t total; /* ended or complete invocations */
	uint64_t verdict[SW_RECORD_VERDICT_COUNT];
	uint64_t downgrades, unexplained, violations, unfinished;
	uint64_t bytes; /* of the database file and its log */
} sw_store_counts;
int sw_store_counts_get(sw_store *s, sw_store_counts *out, sw_error *err);

/* ---- verify, keep, move ---------------------------------------------- */

enum {
	SW_VERIFY_INTACT = 0,
	SW_VERIFY_UNSEALED = 3,
	SW_VERIFY_CHANGED = 20,
	SW_VERIFY_MISSING = 21,
	SW_VERIFY_REORDERED = 22,
	SW_VERIFY_TRUNCATED = 23,
	SW_VERIFY_BAD_SEAL = 24
};

typedef struct sw_verify_options {
	const char *const *anchors; /* "SEQ:HASH", HASH of at least 16 hex digits */
	size_t n_anchors;
	const char
	    *public_key; /* hex or a file; NULL: PATH + ".pub", else what the file itself names */
	void (*progress)(void *arg, uint64_t done, uint64_t total); /* may be NULL */
	void *arg;
} sw_verify_options;

/*
 * *out: {"status","exit","rows","head":{..},"sealed_seq","key","key_pinned","segments",
 * "pruned":[..],"findings":[{"kind","table","seq","id","what"}]}, at most 100 findings.
 * Returns 0 whenever a judgement was reached; *status is the exit status.
 */
int sw_store_verify(sw_store *s, const sw_verify_options *o, int *status, json_t **out,
                    sw_error *err);
/* The judgement of a file that sw_store_open() refused: SW_ECORRUPT, or SW_ENOTFOUND where it
 * exists and is empty. */
int sw_verify_unopened(const char *path, const sw_error *why, const sw_verify_options *o,
                       int *status, json_t **out, sw_error *err);
/* The same for an exported NDJSON file. */
int sw_export_verify(const char *path, const sw_verify_options *o, int *status, json_t **out,
                     sw_error *err);

typedef struct sw_prune_options {
	int64_t
	    older_than_ns;   /* segments all of whose rows were recorded before; 0: no such rule */
	uint64_t keep_rows;  /* remove while more rows than this remain; 0: no such rule */
	uint64_t keep_bytes; /* remove while the rows' share of the file is over this; 0 */
	bool dry_run;
	bool compact;    /* give freed pages back to the file system: rewrites the file */
	const char *why; /* recorded; may be NULL */
} sw_prune_options;
/* *out: {"segments","rows","from","to","bytes_before","bytes_after","dry_run"} */
int sw_store_prune(sw_store *s, const sw_prune_options *o, json_t **out, sw_error *err);

/* write(arg, bytes, n): non-zero stops with SW_EIO. NDJSON of the whole chain. */
int sw_store_export(sw_store *s, int (*write)(void *arg, const char *p, size_t n), void *arg,
                    sw_error *err);
/* CSV of the invocations that match, oldest first (RFC 4180; no formula injection). */
int sw_store_export_csv(sw_store *s, const sw_query *q,
                        int (*write)(void *arg, const char *p, size_t n), void *arg, sw_error *err);
/* One text as a cell of it: quoted where it must be, never a formula, whole in spite of NULs. */
void sw_csv_text(sw_buf *b, const char *p, size_t n);
/* A consistent copy by SQLite's backup API; `to` must not exist. Created 0600. */
int sw_store_backup(sw_store *s, const char *to, sw_error *err);

/*
 * A new file of mode 0600 that appears under its name whole or not at all; until then it is
 * PATH.RANDOM.tmp beside it. keep and drop (or leave) end it; what exists is never replaced
 * (SW_ECONFLICT).
 */
typedef struct sw_new_file {
	char *path, *tmp;
	int fd;
} sw_new_file;
int sw_new_file_create(sw_new_file *f, const char *path, sw_error *err);
int sw_new_file_keep(sw_new_file *f, sw_error *err);
void sw_new_file_drop(sw_new_file *f);
void sw_new_file_leave(sw_new_file *f); /* in a forked child: the parent keeps or drops it */

/* Kept outputs, newest first, for reclassification. */
typedef struct sw_kept {
	const char *id;
	uint64_t seq;
	json_t *invocation; /* as by sw_store_invocation(), without the output */
	sw_str output;      /* redacted, possibly shortened */
	bool whole;         /* nothing was cut out */
} sw_kept;
int sw_store_kept(sw_store *s, const sw_query *q, int (*each)(void *arg, const sw_kept *k),
                  void *arg, sw_error *err);

/* ---- redaction ------------------------------------------------------- */

/*
 * The text with every secret of the documented kinds (docs/store.md) replaced by
 * [redacted:KIND]. A new string of *n bytes; NULL only where memory is out.
 */
char *sw_redact(const void *p, size_t len, size_t *n);
/* An argv, where an option's value may be the next argument: out[i] are new strings.
 * 0 or SW_ENOMEM (then nothing is left to free). */
int sw_redact_argv(const sw_str *argv, size_t argc, sw_str *out);

#ifdef __cplusplus
}
#endif
#endif
