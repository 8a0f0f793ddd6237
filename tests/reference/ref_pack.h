/* ref_pack.h - what the files of the oracle share. */
#ifndef SW_REF_PACK_H
#define SW_REF_PACK_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "reference.h"

typedef struct ref_sig {
	const sw_sig_def *def;
	char **literals;
	size_t n_literals;
	pcre2_code *regex;
	sw_decides decides;
	uint32_t with;
	sw_confidence confidence;
	sw_position position;
	bool exit_only;
} ref_sig;

struct ref_pack {
	bool windows, utf16le, unconfined, priority_prefix;
	ref_sig *sigs; /* in the order of ownership */
	size_t n_sigs;
	char **prefixes;
	size_t n_prefixes;
	pcre2_code **prefix_regexes;
	size_t n_prefix_regexes;
};

void *ref_alloc(size_t n);
void *ref_grow(void *p, size_t n);
char *ref_copy(const char *p, size_t n);

#endif
