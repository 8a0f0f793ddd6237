/*
 * prepare.h - a record made ready for the transaction: checked, redacted, encoded.
 * Not public.
 */
#ifndef SW_PREPARE_H
#define SW_PREPARE_H

#include "store_int.h"

#define PREP_OWNED 64

typedef struct st_prep {
	sw_store_op_kind kind;
	char id[SW_RECORD_ID_MAX + 1];
	uint8_t id_blob[SW_RECORD_ID_MAX + 1];
	size_t id_len;
	uint8_t body[16];
	bool has_level, has_backend;
	int64_t started, ended; /* given; 0: now */
	int64_t duration;       /* given where one of them is not known; 0: not */
	st_cell origin[C_ORIGIN_N], shape[C_SHAPE_N], rec[C_REC_N], session[3], resource[3];
	bool has_session, has_resource;
	uint8_t output_digest[32], kept_digest[32];
	char *kept;
	size_t kept_len;
	uint64_t kept_cut;
	char sets[6][SW_GUARANTEES_TEXT_MAX];
	void *owned[PREP_OWNED];
	size_t n_owned;
} st_prep;

int st_prepare(st_prep *p, const sw_store *s, sw_store_op_kind kind, const sw_record *r,
               sw_error *err);
void st_prep_free(st_prep *p);
void st_kept_digest(uint8_t out[32], uint64_t cut, const void *data, size_t n);

#endif
