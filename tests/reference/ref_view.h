/* ref_view.h - one output cut into what the oracle's rules speak of. */
#ifndef SW_REF_VIEW_H
#define SW_REF_VIEW_H

#include "ref_pack.h"

/* What signatures are tried on: a whole segment, or one window of a long one. */
typedef struct part {
	char *text; /* visible */
	size_t len;
	bool first, whole;
	bool informational, downgrade, any_fatal, any_scope_any, vetoed;
	unsigned char *match; /* one per signature */
} part;

typedef struct segment {
	size_t offset, len;
	uint64_t line_number;
	part *parts;
	size_t n_parts;
	bool command_line, runner;
} segment;

typedef struct view {
	const ref_pack *pack;
	const sw_facts *facts;
	sw_exit exit;
	sw_started started;
	const char *bytes;
	segment *segs;
	size_t n_segs;
	pcre2_match_data *data;
	pcre2_match_context *limits;
	bool *gave_up; /* PCRE2 met a limit: the oracle does not know */
} view;

void view_cut(view *v, size_t n);
void view_free(view *v);
/* Whether the signature matches, and where column 0 is then (0, or behind "<N>"). */
bool part_matches(const view *v, const ref_sig *s, const part *w, size_t *from);
/* The group that holds the refused thing: path, host or syscall. */
bool part_capture(const view *v, const ref_sig *s, const part *w, const char **p, size_t *n,
                  const char **kind);
/* UTF-16LE where it looks so: the text as UTF-8, else NULL. Caller frees. */
char *view_decode(const unsigned char *p, size_t n, size_t *out_n);

#endif
