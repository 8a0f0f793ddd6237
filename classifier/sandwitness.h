/*
 * sandwitness.h - the classifier: what came out of a sandboxed command.
 *
 * Purpose. Given the backend, the exit, the captured merged output and the facts
 * a caller knows, say whether the command ran and ended by itself (ok), whether
 * the sandbox denied it something (sandbox_denied), or whether the sandbox runner
 * itself broke, so that the command never ran or was lost (runner_failed).
 * The rules are those of docs/verdict.md; numbers in comments ("rule 4") are theirs.
 *
 * What a verdict is not. `ok` means that no denial was observed, never that none
 * occurred. A verdict whose evidence is SW_EVIDENCE_TEXT rests on bytes that the
 * command itself may have printed: never loosen a sandbox because of one.
 *
 * Purity. A verdict is a function of its arguments and the pack: no clock, no
 * I/O, no locale, no global state.
 *
 * Threads. A sw_pack is immutable after sw_pack_new() and may be shared by any
 * number of threads (regular expressions are compiled on first use behind atomic
 * pointers). A sw_scan and a sw_result belong to one thread at a time.
 *
 * Memory. Captured bytes are (pointer, length); nothing is assumed to be
 * NUL-terminated, valid UTF-8 or free of NUL. A scan needs constant memory
 * whatever the size of the output. Functions that return an object return one
 * the caller frees; `const` results are borrowed from the object they came from.
 *
 * Errors. Functions returning int give 0 or a negative sw_code; where a sw_error
 * is taken it may be NULL, and is written only on failure.
 */
#ifndef SANDWITNESS_H
#define SANDWITNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SW_API __attribute__((visibility("default")))
#define SW_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define SW_API
#define SW_PRINTF(fmt, args)
#endif

#define SW_VERSION "0.1.0"
#define SW_RESULT_SCHEMA 1

/* Sizes that a caller may rely on, in bytes unless said otherwise. */
#define SW_WINDOW_SIZE 65536        /* a longer line is matched in windows of this size */
#define SW_WINDOW_OVERLAP 4096      /* by which two windows of one line overlap */
#define SW_LINE_REPORT_MAX 4096     /* a reported line is cut here and flagged */
#define SW_OBSERVATIONS_MAX 16      /* observations kept in one result */
#define SW_FAULTS_MAX 8             /* faults kept in one result */
#define SW_DENIED_LINES_MAX 1000000 /* counting stops here */

#define SW_X_VERDICT(s, n) SW_VERDICT_##s,
typedef enum { SW_VERDICT_LIST(SW_X_VERDICT) SW_VERDICT_COUNT } sw_verdict;
#define SW_X_STAGE(s, n) SW_STAGE_##s,
typedef enum { SW_STAGE_LIST(SW_X_STAGE) SW_STAGE_COUNT } sw_stage;
#define SW_X_EVIDENCE(s, n) SW_EVIDENCE_##s,
typedef enum { SW_EVIDENCE_LIST(SW_X_EVIDENCE) SW_EVIDENCE_COUNT } sw_evidence;
#define SW_X_SOURCE(s, n) SW_SOURCE_##s,
typedef enum { SW_EVIDENCE_SOURCE_LIST(SW_X_SOURCE) SW_SOURCE_COUNT } sw_source;
#define SW_X_KIND(s, n) SW_KIND_##s,
typedef enum { SW_KIND_LIST(SW_X_KIND) SW_KIND_COUNT } sw_kind;
#define SW_X_CONFIDENCE(s, n) SW_CONFIDENCE_##s,
typedef enum { SW_CONFIDENCE_LIST(SW_X_CONFIDENCE) SW_CONFIDENCE_COUNT } sw_confidence;
#define SW_X_OPERATION(s, n) SW_OPERATION_##s,
typedef enum { SW_OPERATION_LIST(SW_X_OPERATION) SW_OPERATION_COUNT } sw_operation;
#define SW_X_LIMIT(s, n) SW_LIMIT_##s,
typedef enum { SW_LIMIT_LIST(SW_X_LIMIT) SW_LIMIT_COUNT } sw_limit_kind;
#define SW_X_CERTAINTY(s, n) SW_CERTAINTY_##s,
typedef enum { SW_CERTAINTY_LIST(SW_X_CERTAINTY) SW_CERTAINTY_COUNT } sw_certainty;
#define SW_X_MODE(s, n) SW_MODE_##s,
typedef enum { SW_MODE_LIST(SW_X_MODE) SW_MODE_COUNT } sw_mode;
#define SW_X_NETWORK(s, n) SW_NETWORK_##s,
typedef enum { SW_NETWORK_LIST(SW_X_NETWORK) SW_NETWORK_COUNT } sw_network;
#define SW_X_STARTED(s, n) SW_STARTED_##s,
typedef enum { SW_STARTED_LIST(SW_X_STARTED) SW_STARTED_COUNT } sw_started;
#define SW_X_ENFORCEMENT(s, n) SW_ENFORCEMENT_##s,
typedef enum { SW_ENFORCEMENT_LIST(SW_X_ENFORCEMENT) SW_ENFORCEMENT_COUNT } sw_enforcement;
#define SW_X_POSITION(s, n) SW_POSITION_##s,
typedef enum { SW_POSITION_LIST(SW_X_POSITION) SW_POSITION_COUNT } sw_position;
#define SW_X_SCOPE(s, n) SW_SCOPE_##s,
typedef enum { SW_SCOPE_LIST(SW_X_SCOPE) SW_SCOPE_COUNT } sw_scope;
#define SW_X_DECIDES(s, n) SW_DECIDES_##s,
typedef enum { SW_DECIDES_LIST(SW_X_DECIDES) SW_DECIDES_COUNT } sw_decides;
#define SW_X_FACT(s, n) SW_FACT_##s,
typedef enum { SW_FACT_LIST(SW_X_FACT) SW_FACT_COUNT } sw_fact;
#define SW_X_GUARANTEE(s, n) SW_GUARANTEE_##s,
typedef enum { SW_GUARANTEE_LIST(SW_X_GUARANTEE) SW_GUARANTEE_COUNT } sw_guarantee;
#define SW_X_BASIS(s, n) SW_BASIS_##s,
typedef enum { SW_BASIS_LIST(SW_X_BASIS) SW_BASIS_COUNT } sw_basis;
#define SW_X_PROBE(s, n) SW_PROBE_##s,
typedef enum { SW_PROBE_RESULT_LIST(SW_X_PROBE) SW_PROBE_COUNT } sw_probe_result;
#define SW_X_OBSERVATION(s, n) SW_OBSERVATION_##s,
typedef enum { SW_OBSERVATION_LIST(SW_X_OBSERVATION) SW_OBSERVATION_COUNT } sw_observation_kind;

/*
 * sw_NAME_name(v): the published name; NULL where v is out of range.
 * sw_NAME_parse(s, n, &v): 0, or SW_ENOTFOUND; case-sensitive; s need not end in NUL.
 */
#define SW_DECLARE_NAMES(type, stem)                 \
	SW_API const char *sw_##stem##_name(type v); \
	SW_API int sw_##stem##_parse(const char *s, size_t n, type *out);
SW_DECLARE_NAMES(sw_verdict, verdict)
SW_DECLARE_NAMES(sw_stage, stage)
SW_DECLARE_NAMES(sw_evidence, evidence)
SW_DECLARE_NAMES(sw_source, source)
SW_DECLARE_NAMES(sw_kind, kind)
SW_DECLARE_NAMES(sw_confidence, confidence)
SW_DECLARE_NAMES(sw_operation, operation)
SW_DECLARE_NAMES(sw_limit_kind, limit)
SW_DECLARE_NAMES(sw_certainty, certainty)
SW_DECLARE_NAMES(sw_mode, mode)
SW_DECLARE_NAMES(sw_network, network)
SW_DECLARE_NAMES(sw_started, started)
SW_DECLARE_NAMES(sw_enforcement, enforcement)
SW_DECLARE_NAMES(sw_position, position)
SW_DECLARE_NAMES(sw_scope, scope)
SW_DECLARE_NAMES(sw_decides, decides)
SW_DECLARE_NAMES(sw_fact, fact)
SW_DECLARE_NAMES(sw_guarantee, guarantee)
SW_DECLARE_NAMES(sw_basis, basis)
SW_DECLARE_NAMES(sw_probe_result, probe_result)
SW_DECLARE_NAMES(sw_observation_kind, observation)

/* ---- errors ---------------------------------------------------------- */

typedef enum {
	SW_OK = 0,
	SW_ENOMEM = -1,       /* out of memory */
	SW_EINVAL = -2,       /* an argument is outside its range; nothing was changed */
	SW_ENOTFOUND = -3,    /* no such name, id, file or row */
	SW_EPACK = -4,        /* a pack is broken; the error says where */
	SW_EIO = -5,          /* a system call failed */
	SW_ECONFLICT = -6,    /* exists already, with another content */
	SW_EBUSY = -7,        /* a lock or a limit; trying again may help */
	SW_ECORRUPT = -8,     /* stored data is damaged */
	SW_ETOOBIG = -9,      /* over a stated maximum */
	SW_EUNSUPPORTED = -10 /* not on this platform or in this build */
} sw_code;

/*
 * An error for people: what is wrong, where (file:line:column, option, field),
 * why, and how to mend it. Strings are NUL-terminated, possibly empty, cut to fit.
 */
typedef struct sw_error {
	int code; /* a negative sw_code */
	char where[256];
	char what[384];
	char why[384];
	char fix[384];
} sw_error;

/* Sets code and `what`, clears the rest. e may be NULL. Returns code. */
SW_API int sw_error_set(sw_error *e, int code, const char *what_fmt, ...) SW_PRINTF(3, 4);
/* Adds the other parts; each may be NULL to leave it. Returns e->code, or -1 for NULL. */
SW_API int sw_error_more(sw_error *e, const char *where, const char *why, const char *fix);

/* ---- input ----------------------------------------------------------- */

/* Bytes, borrowed. ptr may be NULL only where len is 0. */
typedef struct sw_str {
	const char *ptr;
	size_t len;
} sw_str;
#define SW_STR(literal) ((sw_str){(literal), sizeof(literal) - 1})
SW_API sw_str sw_str_of(const char *z); /* NULL gives an empty one */
SW_API bool sw_str_eq(sw_str a, sw_str b);

/*
 * The end of the process. code: as a shell or an API reports it, -2^31 .. 2^32-1.
 * has_code false: ended by `signal` (1..64) or, with timed_out, nobody knows.
 * Off Windows, signal n, code -n (n <= 64) and code 128+n are one exit.
 */
typedef struct sw_exit {
	int64_t code;
	bool has_code;
	int signal; /* 0: none */
	bool timed_out;
} sw_exit;
SW_API sw_exit sw_exit_code(int64_t code);

/*
 * What the caller knows; zero-initialise for "nothing". All pointers are
 * borrowed until sw_scan_free() or until sw_classify() returns.
 */
typedef struct sw_facts {
	sw_mode mode;
	sw_network network;
	sw_enforcement enforcement;
	const sw_str *writable_roots; /* absolute paths; NULL with n 0: unknown */
	size_t n_writable_roots;
	const sw_str *accessible; /* absolute paths this user may access outside the sandbox */
	size_t n_accessible;
	sw_str cwd;       /* the command's; makes relative paths in messages absolute */
	bool observe_ok;  /* give observations for exit 0 too */
	bool runner_lost; /* attested with started = yes: the runner died while the command ran */
} sw_facts;

/* ---- packs ----------------------------------------------------------- */

#define SW_PLACE_UNKNOWN 0xffffu

/* One signature as plain data: what a pack file or the built-in tables hold. */
typedef struct sw_sig_def {
	const char *id; /* stable, "backend.topic.slug" */
	sw_kind kind;
	const char *const
	    *literals; /* any one of these is required; NULL: exit-only or regex of informational */
	uint16_t n_literals;
	const uint16_t *places; /* NULL, or where in each literal the scan looks (SW_PLACE_UNKNOWN:
	                           to be found) */
	const char *regex;      /* as docs/signatures.md says, or NULL */
	const char *cause;
	sw_stage stage;
	sw_operation operation;
	sw_confidence confidence;
	sw_decides decides;
	uint32_t with; /* bits 1u << sw_fact */
	sw_scope scope;
	int8_t position; /* a sw_position, or -1: the pack's */
	bool generic;
	bool full_line; /* informational: a literal is the whole line */
	sw_limit_kind limit;
	sw_certainty certainty;
	uint32_t lowers; /* downgrade: bits 1u << sw_guarantee that are lost */
	const int64_t *only_exit;
	uint16_t n_only_exit;
	const int64_t *except_exit;
	uint16_t n_except_exit;
	const char *origin; /* "signatures/bwrap.yaml:31", for explain and list */
} sw_sig_def;

/* A backend's change to a signature it takes over from `common` or `extends`. */
typedef struct sw_adjust_def {
	const char *id; /* of the signature; a trailing '*' takes all that begin so */
	int8_t decides; /* a sw_decides, or -1: unchanged */
	uint32_t with;
	int8_t confidence; /* a sw_confidence, or -1 */
	bool disable;
} sw_adjust_def;

typedef struct sw_pack_def {
	const char *backend;
	const char *title;
	const char *const *extends; /* other packs whose fatal, informational and downgrade lines
	                               are this one's too */
	uint16_t n_extends;
	const char *const *prefixes; /* column-0 prefixes of the runner and its helpers */
	uint16_t n_prefixes;
	const char *const
	    *prefix_regexes; /* the same where a prefix has variable parts; anchored */
	uint16_t n_prefix_regexes;
	bool priority_prefix;     /* "<N>" may stand before a prefix */
	const char *const *names; /* the runner's program names, for {runner} */
	uint16_t n_names;
	sw_position fatal_position;
	bool windows;           /* exit codes compare as unsigned 32 bit; no signals */
	bool utf16le;           /* output that looks like UTF-16LE is decoded first */
	bool unconfined;        /* backend none: rule 1 */
	const sw_sig_def *sigs; /* file order */
	uint16_t n_sigs;
	const sw_adjust_def *adjusts;
	uint16_t n_adjusts;
	const char *origin; /* file */
} sw_pack_def;

/*
 * A set of pack definitions to build from: the built-in ones, with user packs in
 * front. Borrowed by every sw_pack made from it.
 */
typedef struct sw_pack_set {
	const sw_pack_def *const *defs; /* user packs first */
	size_t n_defs;
} sw_pack_set;

typedef struct sw_pack sw_pack;

/*
 * Builds what one backend's outputs are matched with: its own definitions (all of
 * that backend in the set, in order), what they extend, and "common". Regular
 * expressions are compiled on first use only. SW_ENOTFOUND: no such backend in
 * the set; SW_EPACK: a definition breaks a limit. `set` must outlive the pack.
 */
SW_API int sw_pack_new(sw_pack **out, const sw_pack_set *set, const char *backend, sw_error *err);
SW_API void sw_pack_free(sw_pack *pack); /* NULL is fine */
SW_API const char *sw_pack_backend(const sw_pack *pack);
/* Signatures in matching order; borrowed. */
SW_API size_t sw_pack_sig_count(const sw_pack *pack);
SW_API const sw_sig_def *sw_pack_sig(const sw_pack *pack, size_t i);
/* Compiles every regular expression now. SW_EPACK names the first that fails. */
SW_API int sw_pack_compile_all(sw_pack *pack, sw_error *err);

/* The packs compiled into the library (signatures/ at build time). Never NULL. */
SW_API const sw_pack_set *sw_builtin_packs(void);

/* ---- result ---------------------------------------------------------- */

typedef struct sw_hit {
	const sw_sig_def *sig;     /* borrowed from the pack */
	sw_str line;               /* raw bytes of the segment, escapes included */
	bool line_truncated;       /* cut at SW_LINE_REPORT_MAX */
	bool line_windowed;        /* the line was longer than SW_WINDOW_SIZE */
	uint64_t line_number;      /* 1 + LFs before it */
	uint64_t offset;           /* byte of the segment in the output */
	sw_str resource;           /* path, host or call; empty: none */
	const char *resource_kind; /* "path", "host", "syscall" or NULL */
} sw_hit;

typedef struct sw_observation {
	sw_observation_kind kind;
	sw_hit hit; /* sig NULL and line empty where there is none */
} sw_observation;

/* All pointers are owned by the result, those in `sig` by the pack. */
typedef struct sw_result {
	const char *backend;
	sw_exit exit;
	sw_verdict verdict;
	int rule; /* 1..6 */
	sw_stage stage;
	const char *cause; /* NULL: none */
	sw_confidence confidence;
	sw_evidence evidence;
	sw_source evidence_source;
	sw_started started;
	bool has_hit; /* hit is the deciding line; hit.sig alone for an exit-only one */
	sw_hit hit;
	sw_operation operation;
	uint64_t denied_lines; /* lines with a deciding denial */
	sw_limit_kind limit;
	sw_certainty limit_certainty;
	sw_hit limit_hit; /* sig NULL: none, or known from the exit */
	const sw_hit *downgrades;
	size_t n_downgrades;
	uint32_t lowers; /* guarantees lost by downgrade notices, bits 1u << sw_guarantee */
	sw_mode mode;
	sw_enforcement enforcement;
	const sw_observation *observations;
	size_t n_observations;
	const char *const *faults; /* ids of signatures whose regex met its limit */
	size_t n_faults;
	uint64_t output_size; /* bytes fed */
	uint64_t lines;       /* LFs seen, plus one for an unfinished last line */
} sw_result;

SW_API void sw_result_free(sw_result *result); /* NULL is fine */

/* What was learnt beside the output: a traced call, a kernel record, a look at the host. */
typedef struct sw_outside {
	sw_observation_kind kind;
	bool denied; /* the sandbox refused it, and nothing else would have */
	sw_operation operation;
	const char *cause;    /* a constant, or NULL */
	sw_evidence evidence; /* ATTESTED: the command could not have made it up; else TEXT */
	sw_source source;
	sw_str line;               /* for people; copied */
	sw_str resource;           /* copied; empty: none */
	const char *resource_kind; /* a constant: "path", "host", "syscall" */
} sw_outside;

/*
 * If it is a denial and the result is an `ok` by rule 6, the verdict becomes
 * sandbox_denied by rule 5 with it as the line; hit.sig is then NULL. Else it is added
 * to the observations (dropped where there are SW_OBSERVATIONS_MAX): exit 0 and runner
 * failures stay what they are. 0 or SW_ENOMEM.
 */
SW_API int sw_result_outside(sw_result *result, const sw_outside *outside);
/*
 * The denial that the text gave is known not to be the sandbox's (the same call fails
 * outside too): `ok` by rule 6, its line becomes an observation. Without effect on any
 * other result.
 */
SW_API void sw_result_withdraw_denial(sw_result *result);

/* ---- classification -------------------------------------------------- */

typedef struct sw_scan sw_scan;

/* One output in pieces: begin, feed any number of times, finish once. */
SW_API int sw_scan_begin(sw_scan **out, const sw_pack *pack, const sw_facts *facts, sw_error *err);
SW_API int sw_scan_feed(sw_scan *scan, const void *bytes, size_t n);
/* Sets facts.runner_lost, which is known only at the end; before sw_scan_finish(). */
SW_API void sw_scan_runner_lost(sw_scan *scan);
/*
 * started: what is known, `source` where from (SW_SOURCE_NONE with UNKNOWN).
 * Gives the same result as sw_classify() over all bytes, for every way of cutting
 * them. The scan can only be freed afterwards.
 */
SW_API int sw_scan_finish(sw_scan *scan, sw_exit exit, sw_started started, sw_source source,
                          sw_result **out, sw_error *err);
SW_API void sw_scan_free(sw_scan *scan); /* NULL is fine */

/* One output in one call. facts may be NULL. */
SW_API int sw_classify(const sw_pack *pack, const sw_facts *facts, sw_exit exit, sw_started started,
                       sw_source source, const void *output, size_t n, sw_result **out,
                       sw_error *err);

/* ---- explanation ----------------------------------------------------- */

typedef enum {
	SW_NEAR_COLUMN,        /* a fatal's wording, not at column 0 */
	SW_NEAR_EXIT,          /* the exit gate does not admit it */
	SW_NEAR_POSITION,      /* the position does not admit it */
	SW_NEAR_INFORMATIONAL, /* a notice by exact line or pattern */
	SW_NEAR_VETO,          /* a veto took the denial away */
	SW_NEAR_SCOPE,         /* a denial's words in the runner's own line */
	SW_NEAR_FACTS,         /* a denial that does not decide with the facts given */
	SW_NEAR_STARTED,       /* started = yes: not the runner's line */
	SW_NEAR_BOTH,          /* fatal and denial: counted as denial */
	SW_NEAR_REGEX,         /* the literal is there, the regex does not agree */
	SW_NEAR_COUNT
} sw_near_kind;
SW_API const char *sw_near_name(sw_near_kind k);

typedef struct sw_near {
	sw_near_kind kind;
	const sw_sig_def *sig;
	uint64_t line_number;
	uint64_t column; /* 1-based, in visible characters' bytes */
	sw_str line;
} sw_near;

typedef struct sw_explain_rule {
	int rule;       /* 1..6 */
	bool applied;   /* the one that decided */
	char text[200]; /* why it did or did not */
} sw_explain_rule;

typedef struct sw_explanation {
	sw_result *result;
	sw_explain_rule rules[6];
	size_t n_rules;
	const sw_near *nears; /* at most 64 */
	size_t n_nears;
	const sw_str *unclaimed; /* non-blank lines no signature claims, at most 32 */
	const uint64_t *unclaimed_numbers;
	size_t n_unclaimed;
	uint64_t n_unclaimed_total;
} sw_explanation;

/* The decision of sw_classify() with its path. Slower; output must be in memory. */
SW_API int sw_explain(const sw_pack *pack, const sw_facts *facts, sw_exit exit, sw_started started,
                      sw_source source, const void *output, size_t n, sw_explanation **out,
                      sw_error *err);
SW_API void sw_explanation_free(sw_explanation *e);

#ifdef __cplusplus
}
#endif
#endif
