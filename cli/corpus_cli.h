/* corpus_cli.h - what the files of `sandwitness corpus` share. */
#ifndef SW_CORPUS_CLI_H
#define SW_CORPUS_CLI_H

#include "args.h"
#include "corpus.h"

typedef struct corpus_options {
	const char *dir; /* default: corpus */
	const char *backend, *name, *signatures, *pack_set, *junit, *map, *notes, *output;
	const char *expect, *stage, *cause, *line, *resource, *truth, *reason, *note;
	bool json, tap, metamorphic, replace, todo, quiet;
	cli_facts facts;
	char **argv; /* of capture, or files */
	int argc;
} corpus_options;

int corpus_check(const corpus_options *o);
int corpus_add(const corpus_options *o, const cli_verb *self);
int corpus_capture(const corpus_options *o, const cli_verb *self);
int corpus_import(const corpus_options *o, const cli_verb *self);

void corpus_print_text(FILE *to, const sw_corpus_report *r);
json_t *corpus_report_json(const sw_corpus_report *r);
void corpus_print_tap(FILE *to, const sw_corpus_report *r);
int corpus_write_junit(const char *path, const sw_corpus_report *r);

/* Writes a case whose expectation is `expected` (NULL: what the classifier says) and prints where.
 */
int corpus_write_capture(const corpus_options *o, const char *name, json_t *provenance,
                         const char *output, size_t n);

#endif
