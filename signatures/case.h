/*
 * case.h - one case of the corpus: captured bytes with what the verdict should be.
 *
 * corpus/BACKEND/NAME.out holds the raw bytes, corpus/BACKEND/NAME.yaml the rest (docs/corpus.md).
 * Ownership: a sw_case owns all it points to; free with sw_case_free(). Not thread-safe per object,
 * no globals. Errors: SW_EPACK with file and key for a broken case file, SW_EIO, SW_ENOTFOUND.
 */
#ifndef SW_CASE_H
#define SW_CASE_H

#include "base.h"

#define SW_CASE_OUTPUT_MAX (64u << 20) /* bytes of one .out file */
#define SW_CASE_LIST_MAX 16            /* causes or stages that count as right */

typedef struct sw_case {
	char *name;    /* file name without ending */
	char *backend; /* the folder's name */
	char *path;    /* of the .yaml file */
	char *output;
	size_t output_len;
	sw_exit exit;
	sw_started started;
	sw_source source;
	sw_facts facts; /* strings borrowed from doc */
	sw_str *roots;
	sw_str *accessible;
	/* expected; what is not given is not compared */
	sw_verdict verdict;
	uint32_t stages; /* bits 1u << sw_stage, 0: not given */
	const char *causes[SW_CASE_LIST_MAX];
	size_t n_causes;
	bool has_line; /* line.ptr NULL: no line may be reported */
	sw_str line;
	char *line_bytes;       /* decoded from line_b64 */
	sw_str resource;        /* exact; ptr NULL: not given */
	sw_str resource_within; /* this, a file below it, or this host with or without its port */
	sw_operation operation;
	bool has_operation;
	const char *signature;
	sw_limit_kind limit;
	bool has_limit;
	const json_t *also; /* other backends whose runner's words the output holds; NULL: none */
	const char *truth;  /* what really happened; NULL: as the verdict says */
	bool todo;
	const char *reason; /* why todo */
	json_t *doc;        /* the whole .yaml */
} sw_case;

/* yaml is corpus/BACKEND/NAME.yaml; the .out file beside it must be there. */
int sw_case_load(sw_case *out, const char *yaml, sw_error *err);
void sw_case_free(sw_case *c);

/*
 * Writes dir/BACKEND/NAME.out and .yaml; doc is the .yaml as JSON. Existing
 * files are replaced only with `replace`, otherwise SW_ECONFLICT. Both are written to a temporary
 * name first, so that an interrupted run leaves no half case.
 */
int sw_case_write(const char *dir, const char *backend, const char *name, const json_t *doc,
                  const void *output, size_t n, bool replace, sw_error *err);
/* A name for files out of any text: lower case, digits, '-', '.', '_'; at most 100 bytes. Caller
 * frees. */
char *sw_case_name(const char *text);

/* What a result misses of the expectation, as bits. */
enum {
	SW_MISS_VERDICT = 1u << 0,
	SW_MISS_STAGE = 1u << 1,
	SW_MISS_CAUSE = 1u << 2,
	SW_MISS_LINE = 1u << 3,
	SW_MISS_RESOURCE = 1u << 4,
	SW_MISS_OPERATION = 1u << 5,
	SW_MISS_SIGNATURE = 1u << 6,
	SW_MISS_LIMIT = 1u << 7
};
#define SW_MISS_KINDS 8
extern const char *const sw_miss_names[SW_MISS_KINDS];
/* Bits that the case has an expectation for. */
unsigned sw_case_expects(const sw_case *c);
unsigned sw_case_compare(const sw_case *c, const sw_result *r);
/* Whether `got` is the labelled resource or lies within it. */
bool sw_resource_within(sw_str label, sw_str got);

#endif
