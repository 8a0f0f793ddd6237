/*
 * report_int.h - the reports' tables and their accumulators. Not public.
 */
#ifndef SW_REPORT_INT_H
#define SW_REPORT_INT_H

#include "store_int.h"

/* What a shape counts as; computed once per report. */
enum {
	RC_OK = 1u << 0,
	RC_FAILED = 1u << 1,
	RC_DENIED = 1u << 2,
	RC_UNAVAILABLE = 1u << 3,
	RC_DOWNGRADE = 1u << 4,
	RC_UNEXPLAINED = 1u << 5,
	RC_VIOLATION = 1u << 6,
	RC_CONTAINED = 1u << 7,
	RC_EXEMPT = 1u << 8,
	RC_UNKNOWN = 1u << 9, /* basis unknown */
	RC_CAUSE = 1u << 10,
	RC_SIGNATURE = 1u << 11,
	RC_BITS = 12
};

typedef struct rp_acc {
	uint64_t key;
	int64_t first, last;
	uint64_t last_seq;
	uint32_t n;
	uint32_t bits[8]; /* of the first eight classes */
} rp_acc;

typedef struct rp_shapes {
	uint16_t *class; /* by id; 0: no such */
	uint8_t *op;     /* small number of (operation, resource kind) */
	size_t n;
	struct {
		char operation[24], kind[24];
	} ops[64];
	size_t n_ops;
} rp_shapes;

typedef enum {
	RP_SHAPES,
	RP_ORIGINS,
	RP_SESSIONS,
	RP_RESOURCES,
	RP_SUMMARY,
	RP_TIMELINE,
	RP_OPEN
} rp_by;

/* A column: where its value comes from. */
typedef struct rp_column {
	const char *name, *kind; /* text, set, count, time, share, id */
	int from;                /* a shape or origin column, or one of the below */
} rp_column;
enum {
	RP_N = 1000,
	RP_FIRST,
	RP_LAST,
	RP_LAST_ID,
	RP_SHARE,
	RP_ADVICE,
	RP_BIT /* + bit number */
};

typedef struct rp_report {
	const char *name;
	rp_by by;
	unsigned need;  /* a shape must have one of these classes; 0: any */
	uint8_t n_keys; /* the first so many columns make the group */
	uint8_t n_columns;
	rp_column columns[16];
} rp_report;

extern const rp_report rp_reports[];
const rp_report *rp_find(const char *name);

int rp_shapes_load(rp_shapes *x, sw_store *s, sw_error *err);
void rp_shapes_free(rp_shapes *x);

/* Open addressing by key; grows up to RP_TABLE_MAX entries. */
#define RP_TABLE_MAX (1u << 19)
typedef struct rp_table {
	rp_acc *v;
	size_t cap, n;
} rp_table;
rp_acc *rp_slot(rp_table *t, uint64_t key); /* NULL: full or out of memory */
void rp_count(rp_acc *a, const st_fact *x, unsigned cls);

typedef struct rp_page {
	uint32_t limit;
	bool has_cursor;
	uint64_t after_n;
	char *after_key;
} rp_page;
int rp_page_of(rp_page *p, const sw_query *q, sw_error *err);

int rp_by_text(sw_store *s, const rp_report *r, const st_filter *f, const rp_page *p, json_t *rows,
               char **next, sw_error *err);
int rp_by_id(sw_store *s, const rp_report *r, const st_filter *f, const rp_page *p, json_t *rows,
             char **next, sw_error *err);
int rp_summary(sw_store *s, const st_filter *f, json_t *rows, sw_error *err);
int rp_timeline(sw_store *s, const st_filter *f, json_t *rows, sw_error *err);
int rp_unfinished(sw_store *s, const sw_query *q, json_t *rows, char **next, sw_error *err);
json_t *rp_time(int64_t ns);
json_t *rp_id_of(sw_store *s, uint64_t seq);

#endif
