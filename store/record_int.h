/*
 * record_int.h - a JSON record being read. Not public.
 */
#ifndef SW_RECORD_INT_H
#define SW_RECORD_INT_H

#include "derive.h"
#include "store_int.h"

#define RJ_ROOTS_MAX 64

struct sw_record_parsed {
	sw_record r;
	sw_store_op_kind kind;
	json_t *object, *detail;
	sw_result *result;
	sw_str *argv;
	sw_label labels[SW_RECORD_LABELS_MAX];
	sw_str roots[RJ_ROOTS_MAX], accessible[RJ_ROOTS_MAX];
	char *decoded[2]; /* output_b64, line_b64 */
	sw_facts facts;
	bool has_verdict, has_output;
	/* levels as given */
	sw_str said_effective, said_reason;
	sw_level_input level;
	char effective[64];
	char why[SW_RECORD_REASON_MAX];
	sw_derived derived;
	bool has_derived;
};

int rj_fail(sw_error *err, const char *field, const char *why, const char *fix);
sw_str rj_text(const json_t *v); /* empty where v is not a string */
int rj_times(sw_record_parsed *p, sw_error *err);
/* Levels: before and after the verdict is known. */
int rj_levels(sw_record_parsed *p, sw_error *err);
void rj_levels_after(sw_record_parsed *p);

#endif
