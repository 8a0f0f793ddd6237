/*
 * signatures.h - packs and causes as files: loading, checking, and what was
 * compiled in. docs/signatures.md is the reference of the format.
 *
 * Ownership: a sw_loaded owns everything reached from it; definitions are borrowed
 * until sw_loaded_free(). Built-in tables live as long as the program.
 * Thread rules: a sw_loaded is filled by one thread; read-only afterwards.
 */
#ifndef SW_SIGNATURES_H
#define SW_SIGNATURES_H

#include "base.h"

#define SW_PACK_FILE_MAX (1u << 20) /* bytes of one pack file */

/* A line with what a signature must make of it. Strings may be NULL. */
typedef struct sw_sample {
	const char *line;
	size_t line_len;
	const char *resource, *resource_kind; /* expected extraction */
	int64_t exit;
	bool has_exit;
} sw_sample;

/* What a signature says beside its definition; index-parallel to sw_pack_def.sigs. */
typedef struct sw_sig_info {
	const char *versions, *source;
	const sw_sample *samples;
	uint16_t n_samples;
	const sw_sample *near_misses;
	uint16_t n_near_misses;
} sw_sig_info;

typedef struct sw_pack_file {
	const sw_pack_def *def;
	const sw_sig_info *infos;
} sw_pack_file;

typedef struct sw_remedy {
	const char *for_whom, *what, *risk;
	bool tested;
} sw_remedy;

typedef struct sw_cause {
	const char *slug, *title, *why, *verify, *cannot_help;
	const char *const *checks;
	uint16_t n_checks;
	const sw_remedy *remedies;
	uint16_t n_remedies;
	const char *origin;
} sw_cause;

/* ---- built in ---- */
size_t sw_builtin_files(const sw_pack_file **out);
size_t sw_builtin_causes(const sw_cause **out);
/* The compat pack sets by name ("compat-nous"); NULL: no such set. */
size_t sw_builtin_set(const char *name, const sw_pack_file **out);
/* NULL where the slug is unknown. */
const sw_cause *sw_cause_find(const char *slug);

/* ---- files ---- */
typedef struct sw_loaded sw_loaded;
int sw_loaded_new(sw_loaded **out, sw_error *err);
void sw_loaded_free(sw_loaded *l); /* NULL is fine */
/*
 * Reads one pack, or a file of causes (a YAML sequence at top level). On an error
 * nothing of that file is kept. SW_EPACK errors say file:line:column.
 */
int sw_load_text(sw_loaded *l, const char *file, const char *text, size_t n, sw_error *err);
int sw_load_file(sw_loaded *l, const char *path, sw_error *err);
/*
 * Every *.yaml of a folder, in the order of names. A broken file is reported to
 * `broken` (may be NULL) and left out; the others stay. SW_ENOTFOUND: no such folder; SW_ENOMEM.
 */
int sw_load_dir(sw_loaded *l, const char *dir, void (*broken)(void *payload, const sw_error *e),
                void *payload, sw_error *err);
size_t sw_loaded_files(const sw_loaded *l, const sw_pack_file **out);
size_t sw_loaded_causes(const sw_loaded *l, const sw_cause **out);

/* ---- checking ---- */
typedef struct sw_check_report {
	size_t files, signatures, samples, near_misses, problems;
	void (*problem)(void *payload, const sw_error *e); /* called for each; may be NULL */
	void *payload;
} sw_check_report;

/*
 * Everything docs/signatures.md refuses, over `files` used together with `others`
 * (for `common` and `extends`; may be NULL). neutral: a folder of logs in which no
 * fatal literal may stand at column 0; may be NULL. Counts problems; < 0 only where
 * checking itself failed.
 */
int sw_check_packs(const sw_pack_file *files, size_t n, const sw_pack_file *others, size_t n_others,
                   const sw_cause *causes, size_t n_causes, const char *neutral,
                   sw_check_report *report, sw_error *err);

#endif
