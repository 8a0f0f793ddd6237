/*
 * regex.h - patterns that match in time proportional to the line. Not public.
 *
 * What a pack's patterns need of Perl's syntax, with Perl's meaning (the tests hold PCRE2
 * beside it), by backtracking that never tries the same part of the pattern twice at the
 * same byte: a line costs at most a small multiple of (size of the pattern) x (length of
 * the line) steps, whatever the command printed. Constructs that have no such bound
 * (back-references, recursion, verbs, conditions, atomic groups) are refused when the pattern
 * is compiled.
 *
 * Subjects are folded (A-Z to a-z) by the caller: every pattern is ASCII caseless.
 */
#ifndef SW_REGEX_H
#define SW_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SW_REGEX_GROUPS 3 /* path, host, syscall */
extern const char *const sw_regex_group_names[SW_REGEX_GROUPS];

enum { SW_REGEX_ANCHORED = 1, SW_REGEX_WHOLE = 2 };

typedef struct sw_regex sw_regex;

typedef struct sw_regex_error {
	size_t at;       /* byte of the pattern */
	const char *why; /* static; NULL: out of memory */
} sw_regex_error;

/* NULL: refused, and err says why. The pattern is copied. */
sw_regex *sw_regex_new(const char *pattern, unsigned flags, sw_regex_error *err);
void sw_regex_free(sw_regex *re);
bool sw_regex_matches_empty(const sw_regex *re);

/* Begin and end of the named groups; SIZE_MAX: took no part. */
typedef struct sw_regex_spans {
	size_t at[2 * SW_REGEX_GROUPS];
} sw_regex_spans;

/* Scratch memory, for one subject at a time. Zeroed is empty. */
typedef struct sw_regex_work sw_regex_work;
sw_regex_work *sw_regex_work_new(void);
void sw_regex_work_free(sw_regex_work *w);
/* A new line: nothing that was learnt of the one before holds. */
void sw_regex_work_line(sw_regex_work *w);

/* 1: matches, 0: does not, -1: out of memory. */
int sw_regex_match(const sw_regex *re, sw_regex_work *w, const char *folded, size_t n,
                   sw_regex_spans *spans);
/* Steps taken so far, of all matches: what tests hold against the bound. */
uint64_t sw_regex_steps(const sw_regex_work *w);
/* A match takes at most so many steps for each instruction and byte: four, and as many again for
 * each place of the common string that is looked at by itself (regex_match.c), eight of them and
 * one more. */
enum { SW_REGEX_STEPS = 4 * (1 + 9) };
/* Instructions. */
size_t sw_regex_size(const sw_regex *re);

#endif
