/*
 * reference.h - the oracle: the rules of docs/verdict.md written the plain way.
 *
 * The whole output is in memory, every signature is tried on every segment, and
 * each question of the rules is a loop of its own. It shares no code with
 * classifier/ (only the data types of its public header), so that a mistake has to
 * be made twice to stay unseen. Slow by design; for tests only.
 *
 * Ownership: ref_pack_new() borrows `set`. Everything in a ref_result borrows from
 * the pack and from the output, but `resource`, `downgrades` and `decoded`, which it owns.
 * Errors: memory running out ends the program.
 */
#ifndef SW_REFERENCE_H
#define SW_REFERENCE_H

#include "sandwitness.h"

typedef struct ref_pack ref_pack;

typedef struct ref_result {
	sw_verdict verdict;
	int rule;
	sw_stage stage;
	const char *cause;
	sw_confidence confidence;
	sw_evidence evidence;
	sw_source source;
	const sw_sig_def *sig; /* NULL: none */
	bool has_line;
	size_t line_offset;
	size_t line_len; /* of the whole segment; the report is cut at SW_LINE_REPORT_MAX */
	uint64_t line_number;
	char *resource; /* NULL: none */
	size_t resource_len;
	const char *resource_kind;
	sw_operation operation;
	uint64_t denied_lines;
	sw_limit_kind limit;
	sw_certainty limit_certainty;
	const sw_sig_def *limit_sig;
	const sw_sig_def **downgrades; /* in matching order */
	size_t n_downgrades;
	uint32_t lowers;
	const char *bytes; /* what lines were cut from: the output, or */
	char *decoded;     /* its UTF-8 where it was UTF-16LE */
	bool gave_up;      /* a pattern cost PCRE2 too much: agrees with anything */
} ref_result;

/* NULL where the set has no such backend or a regex does not compile. */
ref_pack *ref_pack_new(const sw_pack_set *set, const char *backend);
void ref_pack_free(ref_pack *p);
void ref_classify(const ref_pack *p, const sw_facts *facts, sw_exit exit, sw_started started,
                  sw_source source, const void *output, size_t n, ref_result *out);
void ref_result_free(ref_result *r);

/* Compares with the fast classifier's; false and one line of `why` where they differ. */
bool ref_agrees(const ref_result *want, const sw_result *got, char *why, size_t why_size);

/* The visible bytes of a segment or window: terminal escapes skipped. dst has room for n. */
size_t ref_strip(char *dst, const char *src, size_t n);

#endif
