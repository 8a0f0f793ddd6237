/*
 * verify_int.h - the chain's judge, fed row by row from a database or an export.
 * Not public.
 */
#ifndef SW_VERIFY_INT_H
#define SW_VERIFY_INT_H

#include <nettle/sha2.h>

#include "store_int.h"

#define VF_FINDINGS_MAX 100
#define VF_ODD_MAX 128 /* rows that do not fit, kept to find out whether they were swapped */
#define VF_ANCHORS_MAX 64
#define VF_KEYS_MAX 256

typedef enum { VF_CHANGED, VF_MISSING, VF_REORDERED, VF_TRUNCATED, VF_BAD_SEAL, VF_KINDS } vf_kind;

typedef struct vf_odd {
	st_table t;
	uint64_t seq;
	uint8_t prev[32], stored[32], computed[32];
	st_cell cells[ST_COLS_MAX]; /* own copies */
	bool hash_only;             /* the row after it fits the computed hash */
	bool done;
} vf_odd;

typedef struct vf_anchor {
	uint64_t seq;
	uint8_t hash[32];
	size_t n; /* bytes given */
	bool met;
} vf_anchor;

typedef struct vf_key {
	uint8_t public[32], print[8];
	bool trusted;
} vf_key;

typedef struct vf {
	const sw_verify_options *o;
	json_t *findings, *pruned;
	uint64_t count[VF_KINDS];
	uint64_t rows, segments;
	/* the chain */
	uint64_t expected, last_seq;
	uint8_t prev[32], alt[32];
	bool has_alt;
	uint64_t gaps[64][2];
	size_t n_gaps;
	vf_odd *odd;
	size_t n_odd;
	/* pruning */
	uint64_t pruned_to, last_kept;
	uint8_t resume[32], want_dict[32];
	bool boundary_seen, prune_seen, prune_trusted;
	uint64_t untrusted_prune;
	struct sha256_ctx dict;
	/* seals */
	uint8_t uuid[16], pinned[32];
	bool has_uuid, has_pin, pin_used, any_trusted;
	vf_key keys[VF_KEYS_MAX];
	size_t n_keys;
	uint64_t sealed_seq, trusted_seq, untrusted_seq;
	uint64_t intruder_seq; /* sealed by an untrusted key after a trusted one was announced */
	int64_t sealed_ns, unsealed_ns, segment_no;
	vf_anchor anchors[VF_ANCHORS_MAX];
	size_t n_anchors;
	/* dictionaries: ids are 1, 2, 3... */
	int64_t last_id[T_COUNT];
} vf;

int vf_init(vf *v, const sw_verify_options *o, sw_error *err);
void vf_free(vf *v);
void vf_find(vf *v, vf_kind kind, const char *table, uint64_t seq, st_cell id, const char *fmt, ...)
    SW_PRINTF(6, 7);
/* The newest prune row, read ahead. */
void vf_pruned(vf *v, uint64_t to, const uint8_t resume[32], const uint8_t dict[32]);
void vf_row(vf *v, st_table t, uint64_t seq, const st_cell *cells, st_cell hash);
/* What a row says, without its place in the chain. */
void vf_contents(vf *v, st_table t, uint64_t seq, const st_cell *cells, const uint8_t prev[32],
                 bool in_chain);
/* What is known of the rows so far, for one who reads a part only. */
void vf_settle(vf *v);
/* After the last row. head_seq 0: not known. */
void vf_end(vf *v, uint64_t head_seq, const uint8_t head_hash[32]);
int vf_judgement(const vf *v);
json_t *vf_report(vf *v, int status);
/* Whether a segment that has just been closed is free of findings so far. */
uint64_t vf_total(const vf *v);
void vf_dict_digest(struct sha256_ctx *h, st_table t, uint64_t seq, const st_cell *cells,
                    st_cell hash);
int vf_pin(vf *v, const char *path, sw_error *err); /* PATH + ".pub", where nothing was given */

/* verify_keys.c */
void vf_take_key(vf *v, uint64_t seq, const st_cell *c);
void vf_take_seal(vf *v, uint64_t seq, const st_cell *c, const uint8_t prev[32], bool in_chain);
void vf_take_prune(vf *v, uint64_t seq, const st_cell *c);
void vf_judge_keys(vf *v);

#define VF_ALL_TABLES ((1u << T_COUNT) - 1)
/* Every chained row of these tables (bits 1u << T_*) in order of seq; each: non-zero stops. */
int vf_merge(sw_store *s, unsigned tables,
             int (*each)(void *arg, st_table t, uint64_t seq, const st_cell *cells, st_cell hash),
             void *arg, sw_error *err);
int vf_read_prune(sw_store *s, vf *v, sw_error *err);
/* export.c: the lines as they are written; pruned: given away. */
json_t *st_export_header(const char *program, json_t *pruned);
json_t *st_export_pruned(int64_t to, st_cell resume, st_cell dict);
json_t *st_export_row(st_table t, uint64_t seq, const st_cell *cells, st_cell hash);
json_t *st_export_kept(uint64_t seq, int64_t cut, st_cell data);
json_t *st_export_head(uint64_t seq, const uint8_t hash[32]);
/* verify_derived.c */
typedef struct vd vd;
int vd_new(vd **out, sw_store *s, vf *v, sw_error *err);
int vd_row(vd *d, st_table t, uint64_t seq, const st_cell *cells, sw_error *err);
int vd_end(vd *d, sw_error *err);
void vd_free(vd *d);

#endif
