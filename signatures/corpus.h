/*
 * corpus.h - the regression corpus: every case classified and compared.
 *
 * A report owns its strings; signatures and causes in it are borrowed from the pack set. One
 * thread. Errors: a broken case file is counted and reported, never the end of the run; < 0 only
 * where the folder cannot be read or memory is out.
 */
#ifndef SW_CORPUS_H
#define SW_CORPUS_H

#include "case.h"
#include "signatures.h"

#define SW_CORPUS_CASES_MAX 100000
#define SW_CORPUS_BACKENDS_MAX 64
#define SW_CORPUS_NEUTRAL "neutral" /* folder of logs that must be ok under every backend */
#define SW_CORPUS_DETAIL_MAX 600    /* bytes of one explanation */

typedef enum {
	SW_OUTCOME_RIGHT,
	SW_OUTCOME_WRONG,
	SW_OUTCOME_TODO,        /* a known miss that still misses */
	SW_OUTCOME_TODO_PASSES, /* a known miss that is right now: an error, the mark must go */
	SW_OUTCOME_BROKEN,      /* the case file itself */
	SW_OUTCOME_COUNT
} sw_case_outcome_kind;

typedef struct sw_case_outcome {
	char *name, *backend, *path;
	sw_case_outcome_kind kind;
	unsigned misses, expects;
	bool has_verdict;
	sw_verdict wanted, got;
	char *detail; /* what was wanted and got; NULL where right */
} sw_case_outcome;

typedef struct sw_backend_tally {
	char *name;
	size_t cases, kinds[SW_OUTCOME_COUNT];
	size_t matrix[SW_VERDICT_COUNT][SW_VERDICT_COUNT]; /* wanted, got; todo cases apart */
	size_t expects[SW_MISS_KINDS], misses[SW_MISS_KINDS];
	size_t negative; /* cases that expect ok */
} sw_backend_tally;

typedef struct sw_sig_hits {
	const sw_sig_def *sig;
	const char *backend; /* of the pack that holds it */
	size_t cases;        /* cases in which it matches a line (or the exit) */
	size_t decided;      /* cases whose verdict rests on it */
} sw_sig_hits;

typedef struct sw_cause_hits {
	const char *slug;
	size_t cases;
} sw_cause_hits;

typedef struct sw_corpus_report {
	sw_case_outcome *outcomes;
	size_t n_outcomes, cap_outcomes;
	sw_backend_tally *backends;
	size_t n_backends;
	sw_sig_hits *sigs;
	size_t n_sigs;
	sw_cause_hits *causes;
	size_t n_causes;
	size_t metamorphic, metamorphic_failed;
	size_t kinds[SW_OUTCOME_COUNT];
} sw_corpus_report;

typedef struct sw_corpus_options {
	const char *backend; /* only this one; NULL: all */
	const char *name;    /* only cases whose name holds this; NULL: all */
	bool metamorphic;
	/* Gives the pack of a backend, or NULL with err set. */
	const sw_pack *(*pack)(void *payload, const char *backend, sw_error *err);
	void *payload;
	void (*progress)(void *payload, size_t done); /* may be NULL */
} sw_corpus_options;

/* files: the packs in force, for the lists of signatures and causes. */
int sw_corpus_check(const char *dir, const sw_pack_file *files, size_t n_files,
                    const sw_corpus_options *options, sw_corpus_report *out, sw_error *err);
void sw_corpus_report_free(sw_corpus_report *r);
/* True where nothing is wrong: no wrong, broken or passing-todo case, no metamorphic failure. */
bool sw_corpus_all_right(const sw_corpus_report *r);

/* Every BACKEND/NAME.yaml below dir, in order of names. fn returns < 0 to stop. */
int sw_corpus_each(const char *dir, int (*fn)(void *payload, const char *yaml), void *payload,
                   sw_error *err);

/*
 * What must hold of every case whatever its text (docs/corpus.md): exit 0, a leading blank, CRLF,
 * case, cuts, attested start, unrelated packs. Returns the number of relations tried; each broken
 * one is told to `failed`.
 */
size_t sw_case_metamorphic(const sw_case *c, const sw_pack *pack, const sw_corpus_options *options,
                           const sw_pack_file *files, size_t n_files,
                           void (*failed)(void *payload, const char *relation, const char *detail),
                           void *payload);

/* "verdict: wanted X, got Y; line: ..." for people; at most n bytes. */
void sw_case_describe(const sw_case *c, const sw_result *r, unsigned misses, char *out, size_t n);

#endif
