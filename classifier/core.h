/*
 * core.h - what the files of the classifier share. Not public.
 *
 * The way of a byte: scan.c cuts the stream into segments, filter.c finds
 * literals in them (candidates), match.c says what one segment is (line),
 * record.c keeps the few that may be reported, decide.c applies the rules.
 */
#ifndef SW_CORE_H
#define SW_CORE_H

#include <stdatomic.h>

#include "regex.h"
#include "sandwitness.h"

#define SW_SIGS_MAX 4096
#define SW_LITERALS_MAX 16384
#define SW_LITERAL_MIN 4
#define SW_LITERAL_MAX 512
#define SW_GATES_MAX 6 /* distinct exit gates among denials of one pack */
#define SW_PREFIX_MAX 24

/* ---- segments (segment.c) ---- */

/* Skips the escape at p[0] == ESC: bytes it takes, at least 1. */
size_t sw_escape_length(const char *p, size_t n);
/* Copies the visible bytes of src, one segment or several, to dst (room for n); their count. */
size_t sw_strip_escapes(char *dst, const char *src, size_t n);
/* ASCII case folding of one byte. */
static inline unsigned char sw_fold(unsigned char c)
{
	return (unsigned char)(c - 'A') < 26 ? (unsigned char)(c | 0x20) : c;
}
/* a is folded already. */
bool sw_equal_folded(const char *a, const char *b, size_t n);
bool sw_blank(const char *p, size_t n);
/* Counts LFs; the fastest this processor has. */
uint64_t sw_count_lf(const char *p, size_t n);

/* ---- literal filter (filter.c) ---- */

typedef struct sw_literal {
	const char *text; /* folded */
	uint32_t len;
	uint32_t place; /* offset of the grams that are looked for */
	uint32_t users; /* chain in sw_filter.users: signatures that need it */
} sw_literal;

typedef struct sw_literal_user {
	uint32_t sig, next; /* next 0: end */
} sw_literal_user;

/* A literal that a signature needs: what a filter is built from. */
typedef struct sw_literal_use {
	const char *text; /* folded; must outlive the filter */
	uint32_t len, sig, place;
} sw_literal_use;

typedef struct sw_gram {
	uint32_t gram;    /* folded bytes, little-endian load */
	uint32_t next;    /* chain of the bucket, 0: end */
	const char *text; /* the literal, here so that a hit is verified where it is met */
	uint32_t literal;
	uint16_t len, offset;
} sw_gram;

/* Literals of seven bytes and more: a bit map of 4-byte grams, probed at every fourth byte. */
typedef struct sw_gram_table {
	uint32_t *bitmap;
	uint32_t *buckets; /* heads, 1-based into grams */
	uint32_t n_grams;
	sw_gram *grams;
} sw_gram_table;

/*
 * Literals of four to six bytes: four bytes each, looked for at every byte. Bit b of
 * lo[k][x & 15] & hi[k][x >> 4] says that x can be the k-th byte of a literal of bucket b.
 */
typedef struct sw_short_table {
	unsigned char lo[4][16], hi[4][16];
	unsigned char byte[4][256]; /* the same for whole bytes */
	sw_gram *literals;          /* offset: of the four bytes */
	uint32_t n_literals;
} sw_short_table;

typedef struct sw_filter {
	sw_literal *literals;
	uint32_t n_literals;
	sw_literal_user *users;
	sw_gram_table grams;
	sw_short_table shorts;
} sw_filter;

/* A filter has two tables; both are to be asked. */
enum { SW_TABLE_GRAMS, SW_TABLE_SHORTS, SW_TABLES };

/* How often in a MiB of ordinary logs the fast scan would stop for this folded literal (>= 4
 * bytes). */
uint32_t sw_literal_cost(const char *text, uint32_t len);
/* How often in a MiB of ordinary logs the four folded bytes at p are met. */
uint32_t sw_gram_hits(const char *p);
/* Where in the literal the scan looks: its rarest place. Packs compiled in know it already. */
uint32_t sw_literal_place(const char *text, uint32_t len);

/* A literal at `at`; return false to stop. */
typedef bool (*sw_filter_fn)(void *payload, uint32_t literal, size_t at);

int sw_filter_build(sw_filter *f, const sw_literal_use *uses, uint32_t n);
void sw_filter_free(sw_filter *f);
/*
 * First position at or after `from` in p[0..n) at which the looked-for part of one of
 * the table's literals stands with the whole literal around it, or n.
 */
size_t sw_filter_next(const sw_filter *f, int table, const char *p, size_t n, size_t from);
/* Reports the literals that sw_filter_next() found at p + at. False: the callback stopped. */
bool sw_filter_report(const sw_filter *f, int table, const char *p, size_t n, size_t at,
                      sw_filter_fn fn, void *payload);
/* Every literal in the text, until the callback stops. */
void sw_filter_all(const sw_filter *f, const char *p, size_t n, sw_filter_fn fn, void *payload);
/* Whether the entry's literal stands around p + at. */
static inline bool sw_gram_stands(const sw_gram *g, const char *p, size_t n, size_t at)
{
	if (at < g->offset || g->len > n - (at - g->offset))
		return false;
	const char *q = p + at - g->offset;
	/* The ends first: most that share four bytes differ there. */
	return (unsigned char)g->text[0] == sw_fold((unsigned char)q[0]) &&
	       (unsigned char)g->text[g->len - 1] == sw_fold((unsigned char)q[g->len - 1]) &&
	       sw_equal_folded(g->text, q, g->len);
}
/* The plain C ways, for machines without vectors and for tests. */
size_t sw_grams_next_plain(const sw_gram_table *t, const char *p, size_t n, size_t from);
size_t sw_shorts_next_plain(const sw_short_table *t, const char *p, size_t n, size_t from);
/* filter_gram.c, filter_short.c */
int sw_grams_build(sw_gram_table *t, const sw_literal *literals, uint32_t n);
void sw_grams_free(sw_gram_table *t);
size_t sw_grams_next(const sw_gram_table *t, const char *p, size_t n, size_t from);
int sw_shorts_build(sw_short_table *t, const sw_literal *literals, uint32_t n);
void sw_shorts_free(sw_short_table *t);
size_t sw_shorts_next(const sw_short_table *t, const char *p, size_t n, size_t from);
#define SW_LONG_MIN 7 /* bytes of a literal that goes to the grams */
#define SW_GRAM_FOLD 0x20202020u
#define SW_GRAM_FACTOR 0x9E3779B1u
#define SW_GRAM_MAP_BITS 17 /* 16 KiB: half of the usual L1 data cache */
#define SW_GRAM_BUCKET_BITS 12
static inline uint32_t sw_gram_bucket(uint32_t folded)
{
	return (folded * SW_GRAM_FACTOR) >> (32 - SW_GRAM_BUCKET_BITS);
}

/* ---- packs in memory (pack.c) ---- */

typedef struct sw_sig {
	const sw_sig_def *def;
	_Atomic(sw_regex *) code;
	const char *regex;  /* expanded, or NULL */
	const char *prefix; /* folded text that a line must begin with for the regex to match */
	uint8_t prefix_len;
	const char **literals; /* expanded, folded */
	uint32_t *literal_lens;
	const uint16_t *places; /* parallel to literals, or NULL */
	uint16_t n_literals;
	uint8_t decides, confidence, position, gate;
	uint32_t with;
	bool exit_only;
} sw_sig;

typedef struct sw_text {
	char *text; /* folded */
	uint32_t len;
} sw_text;

typedef struct sw_pattern {
	char *source;
	char prefix[SW_PREFIX_MAX];
	uint8_t prefix_len;
	_Atomic(sw_regex *) code;
} sw_pattern;

struct sw_pack {
	char *backend;
	bool windows, utf16le, unconfined, priority_prefix;
	bool needs_first; /* some fatal has position first or alone */
	bool needs_last;  /* some fatal has position last or alone */
	sw_sig *sigs;
	uint32_t n_sigs;
	uint16_t *order[SW_KIND_COUNT]; /* indexes of one kind, in matching order */
	uint32_t n_order[SW_KIND_COUNT];
	sw_text *prefixes;
	uint32_t n_prefixes;
	sw_pattern *prefix_patterns;
	uint32_t n_prefix_patterns;
	uint32_t n_gates;                    /* denial gates; gate 0 admits all */
	uint16_t gate_sig[SW_GATES_MAX + 1]; /* a signature that has the gate */
	uint32_t *denial_words;              /* bit set of the denials */
	sw_filter filter;
	sw_filter vetoes;       /* looked for on lines with a denial only */
	uint16_t *short_vetoes; /* those with a literal too short for a filter */
	uint32_t n_short_vetoes;
	struct sw_chunk *chunks; /* memory of literals and expanded regexes */
};

/* The exit as gates compare it; false: not known as a number. */
bool sw_exit_normal(const sw_pack *pack, sw_exit e, int64_t *out);
bool sw_exit_admits(const sw_pack *pack, const sw_sig_def *def, sw_exit e);
bool sw_exit_is_zero(sw_exit e);

/* ---- one segment (match.c) ---- */

typedef struct sw_capture {
	const char *ptr; /* into the visible text */
	size_t len;
	const char *kind; /* "path", "host", "syscall", or NULL */
} sw_capture;

/* Fault: the pattern does not compile, or there is no memory. */
typedef enum { SW_MATCH_NO, SW_MATCH_YES, SW_MATCH_FAULT } sw_match;

typedef struct sw_matcher {
	sw_regex_work *work;
	/* the line at hand, and its copy in small letters: made where a pattern is run */
	const char *line;
	size_t len;
	char *folded;
	size_t cap;
	bool is_folded;
	bool no_memory;  /* sticky: what was said since may be wrong */
	uint32_t *asked; /* bit set of the vetoes asked on this line */
	size_t n_asked;  /* words */
} sw_matcher;

int sw_matcher_init(sw_matcher *m);
void sw_matcher_free(sw_matcher *m);

/* A visible segment or window. */
typedef struct sw_visible {
	const char *ptr;
	size_t len;
	bool column0;   /* begins the segment */
	bool full_line; /* is the whole segment */
} sw_visible;

/* What is matched from now on lies in this line. */
void sw_matcher_line(sw_matcher *m, const sw_visible *v);
/*
 * The plain text that an anchored regex begins with, folded, to `out` (SW_PREFIX_MAX bytes): a line
 * that begins otherwise is rejected without compiling or running the pattern. Returns its length.
 */
uint8_t sw_regex_prefix(const char *regex, char *out);
/* Whether the signature's regex (or column 0, or the mere literal) agrees. */
sw_match sw_sig_match(const sw_pack *pack, const sw_sig *sig, sw_matcher *m, const sw_visible *v,
                      sw_capture *capture);
/* The whole line is one of the pack's notices: its signature, else NULL. */
const sw_sig *sw_informational(const sw_pack *pack, sw_matcher *m, const sw_visible *v);
bool sw_has_prefix(const sw_pack *pack, sw_matcher *m, const sw_visible *v);
bool sw_vetoed(const sw_pack *pack, sw_matcher *m, const sw_visible *v);
/* Any of the signature's literals in the text (for the slow ways: veto, explain). */
bool sw_literal_in(const sw_sig *sig, const char *p, size_t n, size_t *at);
/* Length of "<N>" that may be skipped before column 0, else 0. */
size_t sw_priority_length(const sw_pack *pack, const sw_visible *v);
/* Compiles on first use. NULL: it does not compile, or there is no memory, which *no_memory tells.
 */
const sw_regex *sw_sig_code(const sw_sig *sig, bool *no_memory);
/* SW_REGEX_...: how a signature of this kind matches. */
unsigned sw_kind_regex_flags(sw_kind kind);

/* Whether the facts let the denial decide, and with what confidence. */
bool sw_facts_decide(const sw_sig *sig, const sw_facts *facts, const sw_capture *capture,
                     sw_confidence *confidence);

/* ---- what is kept of a segment (scan.c, record.c) ---- */

typedef struct sw_kept_line {
	uint32_t refs;
	uint32_t len;
	uint64_t line_number, offset;
	bool truncated, windowed;
	char text[];
} sw_kept_line;

typedef struct sw_mark {
	sw_kept_line *line;
	char *resource;
	uint32_t resource_len;
	const char *resource_kind;
	uint32_t slot; /* index in slots that leads here */
} sw_mark;

typedef enum {
	SW_MARK_FATAL,       /* first unblocked match that position admits so far */
	SW_MARK_SEEN_FATAL,  /* first match, whatever position says */
	SW_MARK_OWN,         /* the same, on a line that no generic signature before it owns */
	SW_MARK_BLOCKED,     /* first match that a scope-any denial blocks, position admitting */
	SW_MARK_BOTH,        /* first line where a scope-any denial decides and blocks a fatal */
	SW_MARK_DENIAL_A,    /* first deciding match, started != yes */
	SW_MARK_DENIAL_B,    /* the same, started = yes */
	SW_MARK_SEEN_DENIAL, /* first match that does not decide */
	SW_MARK_VETOED,      /* first match taken away by a veto */
	SW_MARK_OTHER,       /* limit, downgrade */
	SW_MARK_KINDS
} sw_mark_kind;

typedef struct sw_position_state {
	bool seen_command; /* a command line came */
	bool pending_last; /* a candidate dies when a command line comes */
} sw_position_state;

struct sw_scan {
	const sw_pack *pack;
	sw_facts facts;
	sw_matcher matcher;
	/* slots[kind * n_sigs + sig]: 1-based index into marks, 0: none */
	uint16_t *slots;
	sw_mark *marks;
	uint32_t n_marks, cap_marks;
	uint64_t counts_a[1u << SW_GATES_MAX], counts_b[1u << SW_GATES_MAX];
	sw_position_state position;
	const char *faults[SW_FAULTS_MAX];
	size_t n_faults;
	/* stream */
	uint64_t fed;       /* bytes of completed regions, after decoding */
	uint64_t lf_before; /* LFs before the current region */
	uint64_t output_size;
	bool last_was_lf, any;
	char *carry; /* SW_WINDOW_SIZE bytes of an unfinished segment */
	size_t carry_len;
	uint64_t carry_offset; /* where the unfinished segment begins */
	bool carry_long;       /* windows of it were matched already */
	char *strip;           /* scratch for stripped regions */
	char *long_head;       /* first bytes of a long segment */
	size_t long_head_len;
	/* of the long segment whose windows are being matched */
	bool long_prefix, long_claimed, long_counted_a, long_counted_b;
	uint32_t *hit_words; /* bit set of signatures whose literal is in the segment */
	uint32_t n_hit_words;
	bool hit_any;
	int error; /* sticky */
	/* UTF-16LE detection */
	unsigned char sniff[64];
	size_t sniff_len;
	int decode; /* -1 undecided, 0 bytes, 1 UTF-16LE */
	unsigned char odd;
	bool has_odd;
	uint16_t high_surrogate;
	bool finished;
};

/* A finished segment, or one window of a long one. */
typedef struct sw_segment {
	const char *raw; /* for the report: the first bytes at least */
	size_t raw_len;  /* bytes at raw */
	uint64_t full_len;
	uint64_t line_number, offset;
	sw_visible visible;
	bool continued; /* a further window of a long segment */
} sw_segment;

/* Evaluates a segment whose literal hits are in scan->hit_words; clears them. */
void sw_segment_done(sw_scan *scan, const sw_segment *seg);
const sw_mark *sw_mark_get(const sw_scan *scan, sw_mark_kind kind, uint32_t sig);
void sw_marks_free(sw_scan *scan);

/* decide.c */
int sw_decide(sw_scan *scan, sw_exit exit, sw_started started, sw_source source, sw_result **out,
              sw_error *err);

#endif
