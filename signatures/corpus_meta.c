/* Relations that must hold of every case, whatever its text says. */
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "corpus.h"

#define EVERY_CUT_MAX 8192 /* above that: cuts around what matters, and random ones */
#define RANDOM_CUTS 1000
#define CHOSEN_CUTS_MAX 4000
#define ESC 0x1b

typedef struct meta {
	const sw_case *c;
	const sw_pack *pack;
	const sw_result *plain; /* of the case as it is */
	const sw_corpus_options *options;
	const sw_pack_file *files;
	size_t n_files, tried;
	void (*failed)(void *payload, const char *relation, const char *detail);
	void *payload;
} meta;

static void fail(meta *m, const char *relation, const sw_result *got, size_t at)
{
	char detail[300];
	snprintf(detail, sizeof(detail), "got %s by %s at %zu, plain %s by %s",
	         sw_verdict_name(got->verdict),
	         got->has_hit && got->hit.sig ? got->hit.sig->id : "none", at,
	         sw_verdict_name(m->plain->verdict),
	         m->plain->has_hit && m->plain->hit.sig ? m->plain->hit.sig->id : "none");
	m->failed(m->payload, relation, detail);
}

static sw_result *classify(const meta *m, const sw_pack *pack, sw_exit exit, sw_started started,
                           const char *p, size_t n)
{
	sw_result *r = NULL;
	sw_source source = started == m->c->started        ? m->c->source
	                   : started == SW_STARTED_UNKNOWN ? SW_SOURCE_NONE
	                                                   : SW_SOURCE_CALLER;
	return sw_classify(pack, &m->c->facts, exit, started, source, p, n, &r, NULL) == 0 ? r
	                                                                                   : NULL;
}

static const sw_sig_def *sig_of(const sw_result *r)
{
	return r->has_hit ? r->hit.sig : NULL;
}

static bool same_decision(const sw_result *a, const sw_result *b)
{
	return a->verdict == b->verdict && a->rule == b->rule && a->stage == b->stage &&
	       sig_of(a) == sig_of(b) && a->hit.line_number == b->hit.line_number &&
	       a->limit == b->limit;
}

static bool same_result(const sw_result *a, const sw_result *b)
{
	if (!same_decision(a, b) || a->confidence != b->confidence || a->evidence != b->evidence ||
	    a->operation != b->operation || a->denied_lines != b->denied_lines ||
	    a->lines != b->lines || a->lowers != b->lowers || a->n_downgrades != b->n_downgrades ||
	    a->n_observations != b->n_observations || a->n_faults != b->n_faults)
		return false;
	if (a->hit.offset != b->hit.offset || !sw_str_eq(a->hit.line, b->hit.line) ||
	    !sw_str_eq(a->hit.resource, b->hit.resource))
		return false;
	for (size_t i = 0; i < a->n_observations; i++)
		if (a->observations[i].kind != b->observations[i].kind ||
		    a->observations[i].hit.sig != b->observations[i].hit.sig ||
		    a->observations[i].hit.offset != b->observations[i].hit.offset)
			return false;
	return true;
}

/* ---- relations on the exit and the start ---- */

static void exit_zero(meta *m)
{
	sw_result *r =
	    classify(m, m->pack, sw_exit_code(0), m->c->started, m->c->output, m->c->output_len);
	m->tried++;
	if (r && r->verdict != SW_VERDICT_OK)
		fail(m, "exit 0 gives ok", r, 0);
	sw_result_free(r);
}

static bool unconfined(const sw_result *r)
{
	return r->rule <= 2;
}

static void attested(meta *m)
{
	sw_result *no =
	    classify(m, m->pack, m->c->exit, SW_STARTED_NO, m->c->output, m->c->output_len);
	sw_result *yes =
	    classify(m, m->pack, m->c->exit, SW_STARTED_YES, m->c->output, m->c->output_len);
	m->tried += 2;
	if (no && !unconfined(no) &&
	    (no->verdict == SW_VERDICT_OK || no->evidence != SW_EVIDENCE_ATTESTED))
		fail(m, "not started is never ok", no, 0);
	if (no && no->verdict == SW_VERDICT_SANDBOX_DENIED && sig_of(no) &&
	    sig_of(no)->scope != SW_SCOPE_ANY)
		fail(m, "not started is denied only by a line that is both", no, 0);
	if (yes && yes->verdict == SW_VERDICT_RUNNER_FAILED && yes->stage != SW_STAGE_LOST)
		fail(m, "started fails only in stage lost", yes, 0);
	sw_result_free(no);
	sw_result_free(yes);
}

/* ---- relations on the text ---- */

/* The output with `insert` before each line and `end` for each LF. */
static char *rewritten(const sw_case *c, const char *insert, const char *end, size_t *out_n)
{
	size_t lines = 1, add = strlen(insert), tail = strlen(end);
	for (size_t i = 0; i < c->output_len; i++)
		lines += c->output[i] == '\n' || c->output[i] == '\r';
	char *p = malloc(c->output_len + lines * (add + tail) + 1), *o = p;
	bool begins = true;
	for (size_t i = 0; p && i < c->output_len; i++) {
		char b = c->output[i];
		if (begins && b != '\n' && b != '\r')
			o = stpcpy(o, insert);
		begins = b == '\n' || b == '\r';
		if (b == '\n')
			o = stpcpy(o, end);
		else
			*o++ = b;
	}
	*out_n = p ? (size_t)(o - p) : 0;
	return p;
}

static void leading_blank(meta *m)
{
	size_t n;
	char *p = rewritten(m->c, " ", "\n", &n);
	sw_result *r = p ? classify(m, m->pack, m->c->exit, SW_STARTED_UNKNOWN, p, n) : NULL;
	m->tried++;
	if (r && r->verdict == SW_VERDICT_RUNNER_FAILED && r->evidence == SW_EVIDENCE_TEXT)
		fail(m, "a leading blank kills a fatal", r, (size_t)r->hit.offset);
	sw_result_free(r);
	free(p);
}

static void crlf(meta *m)
{
	size_t n;
	if (m->pack->utf16le && memchr(m->c->output, 0, m->c->output_len))
		return; /* a lone CR byte would shift the pairs */
	char *p = rewritten(m->c, "", "\r\n", &n);
	sw_result *r = p ? classify(m, m->pack, m->c->exit, m->c->started, p, n) : NULL;
	m->tried++;
	if (r && !(same_decision(r, m->plain) && sw_str_eq(r->hit.line, m->plain->hit.line) &&
	           sw_str_eq(r->hit.resource, m->plain->hit.resource)))
		fail(m, "CRLF changes nothing", r, 0);
	sw_result_free(r);
	free(p);
}

/* Not the byte behind an ESC: it says what kind of escape follows. */
static void case_flip(meta *m)
{
	const sw_case *c = m->c;
	char *p = malloc(c->output_len + 1);
	if (!p)
		return;
	for (size_t i = 0; i < c->output_len; i++) {
		unsigned char b = (unsigned char)c->output[i];
		bool letter = (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z');
		bool keep = i > 0 && c->output[i - 1] == ESC;
		p[i] = (char)(letter && !keep ? b ^ 0x20 : b);
	}
	sw_result *r = classify(m, m->pack, c->exit, c->started, p, c->output_len);
	m->tried++;
	/* Facts about paths compare bytes, so they may rightly change. */
	if (r && !c->facts.n_writable_roots && !c->facts.n_accessible &&
	    !(same_decision(r, m->plain) && r->hit.offset == m->plain->hit.offset))
		fail(m, "case changes nothing", r, 0);
	sw_result_free(r);
	free(p);
}

/* ---- packs that have nothing to do with each other ---- */

/* Backends reachable by `extends` from this one, as bits of the file list. */
static void reach(const meta *m, const char *backend, bool *seen)
{
	for (size_t i = 0; i < m->n_files; i++) {
		if (seen[i] || strcmp(m->files[i].def->backend, backend) != 0)
			continue;
		seen[i] = true;
		for (uint16_t k = 0; k < m->files[i].def->n_extends; k++)
			reach(m, m->files[i].def->extends[k], seen);
	}
}

static bool is_windows(const meta *m, const char *backend)
{
	for (size_t i = 0; i < m->n_files; i++)
		if (!strcmp(m->files[i].def->backend, backend) && m->files[i].def->windows)
			return true;
	return false;
}

/* Programs of one project (systemd-run, systemd-nspawn) and launchers over one API share wordings.
 */
static bool one_family(const meta *m, const char *a, const char *b)
{
	size_t n = strcspn(a, "-");
	return (n == strcspn(b, "-") && !strncmp(a, b, n)) ||
	       (is_windows(m, a) && is_windows(m, b));
}

static bool related(const meta *m, const char *a, const char *b)
{
	if (one_family(m, a, b))
		return true;
	bool *of_a = calloc(m->n_files + 1, sizeof(bool)),
	     *of_b = calloc(m->n_files + 1, sizeof(bool));
	bool any = !of_a || !of_b;
	if (!any) {
		reach(m, a, of_a);
		reach(m, b, of_b);
		for (size_t i = 0; i < m->n_files; i++)
			any |= of_a[i] && of_b[i];
	}
	free(of_a);
	free(of_b);
	return any;
}

/* The line's signature is the backend's own and not one of `common`, which all share. */
static bool is_own(const meta *m, const sw_sig_def *sig)
{
	for (size_t i = 0; i < m->n_files; i++)
		if (!strcmp(m->files[i].def->backend, "common"))
			for (uint16_t k = 0; k < m->files[i].def->n_sigs; k++)
				if (&m->files[i].def->sigs[k] == sig)
					return false;
	return true;
}

static bool listed(const json_t *list, const char *name)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!strcmp(json_string_value(json_array_get(list, i)), name))
			return true;
	return false;
}

/*
 * The command itself may have been another runner (bwrap inside a container): the case says so in
 * `also`, or its provenance names the program. That pack then rightly knows the words.
 */
static bool ran_inside(const meta *m, const char *backend, const char *provenance)
{
	bool *seen = calloc(m->n_files + 1, sizeof(bool)), inside = !seen;
	if (seen)
		reach(m, backend, seen);
	for (size_t i = 0; i < m->n_files && !inside; i++) {
		const sw_pack_def *d = m->files[i].def;
		if (!seen[i])
			continue;
		inside = listed(m->c->also, d->backend);
		for (uint16_t k = 0; k < d->n_names && provenance && !inside; k++)
			inside = strstr(provenance, d->names[k]) != NULL;
	}
	free(seen);
	return inside;
}

static void unrelated(meta *m)
{
	char *provenance = sw_json_dump(json_object_get(m->c->doc, "provenance"));
	for (size_t i = 0; i < m->n_files; i++) {
		const char *other = m->files[i].def->backend;
		bool repeated = !strcmp(other, "common");
		for (size_t k = 0; k < i; k++)
			repeated |= !strcmp(m->files[k].def->backend, other);
		if (repeated || related(m, other, m->c->backend) ||
		    ran_inside(m, other, provenance))
			continue;
		sw_error err;
		const sw_pack *pack = m->options->pack(m->options->payload, other, &err);
		sw_result *r = pack ? classify(m, pack, m->c->exit, SW_STARTED_UNKNOWN,
		                               m->c->output, m->c->output_len)
		                    : NULL;
		m->tried++;
		/* Runners share option parsers and kernels: the same cause in the same words is no
		 * slip. */
		bool alike = r && r->verdict == m->plain->verdict && r->cause && m->plain->cause &&
		             !strcmp(r->cause, m->plain->cause);
		if (!alike && r && r->verdict == SW_VERDICT_RUNNER_FAILED &&
		    r->evidence == SW_EVIDENCE_TEXT && is_own(m, sig_of(r)))
			fail(m, "an unrelated pack never says runner_failed", r,
			     (size_t)r->hit.offset);
		sw_result_free(r);
	}
	free(provenance);
}

/* ---- cuts ---- */

static sw_result *cut_at(const meta *m, const size_t *cuts, size_t n_cuts)
{
	const sw_case *c = m->c;
	sw_scan *scan = NULL;
	sw_result *r = NULL;
	size_t at = 0;
	int rc = sw_scan_begin(&scan, m->pack, &c->facts, NULL);
	for (size_t i = 0; !rc && i <= n_cuts; i++) {
		size_t end = i < n_cuts ? cuts[i] : c->output_len;
		rc = sw_scan_feed(scan, c->output + at, end - at);
		at = end;
	}
	if (!rc)
		sw_scan_finish(scan, c->exit, c->started, c->source, &r, NULL);
	sw_scan_free(scan);
	return r;
}

static bool cut_once(meta *m, size_t at)
{
	sw_result *r = cut_at(m, &at, 1);
	m->tried++;
	bool same = r && same_result(r, m->plain);
	if (r && !same)
		fail(m, "a cut changes nothing", r, at);
	sw_result_free(r);
	return same;
}

static bool around(const sw_case *c, size_t i)
{
	char b = c->output[i];
	size_t edge = i % (SW_WINDOW_SIZE - SW_WINDOW_OVERLAP);
	return b == '\r' || b == '\n' || b == ESC || edge < 2 ||
	       edge > SW_WINDOW_SIZE - SW_WINDOW_OVERLAP - 2;
}

static void cuts(meta *m)
{
	const sw_case *c = m->c;
	uint64_t seed = 0x9e3779b97f4a7c15u ^ c->output_len;
	if (c->output_len <= EVERY_CUT_MAX) {
		for (size_t at = 1; at < c->output_len; at++)
			if (!cut_once(m, at))
				return;
	} else {
		/* Two random cuts at a time; each run costs a whole pass, so big cases get fewer.
		 */
		size_t rounds = c->output_len > (256u << 10) ? 50 : RANDOM_CUTS, chosen = 0;
		size_t most = c->output_len > (256u << 10) ? 100 : CHOSEN_CUTS_MAX;
		size_t line = (size_t)m->plain->hit.offset;
		for (size_t at = line > 4 ? line - 4 : 1;
		     m->plain->has_hit && at < line + 200 && at < c->output_len; at++)
			if (!cut_once(m, at))
				return;
		for (size_t at = 1; at < c->output_len && chosen < most; at++) {
			chosen += around(c, at);
			if (around(c, at) && !cut_once(m, at))
				return;
		}
		for (size_t i = 0; i < rounds; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			if (!cut_once(m, 1 + (size_t)(seed >> 24) % (c->output_len - 1)))
				return;
		}
	}
	/* Byte by byte. */
	size_t n = c->output_len < EVERY_CUT_MAX ? c->output_len : EVERY_CUT_MAX,
	       *all = calloc(n + 1, sizeof(*all));
	for (size_t i = 0; all && i < n; i++)
		all[i] = i;
	sw_result *r = all && n ? cut_at(m, all, n) : NULL;
	m->tried++;
	if (r && !same_result(r, m->plain))
		fail(m, "byte by byte changes nothing", r, 0);
	sw_result_free(r);
	free(all);
}

size_t sw_case_metamorphic(const sw_case *c, const sw_pack *pack, const sw_corpus_options *options,
                           const sw_pack_file *files, size_t n_files,
                           void (*failed)(void *payload, const char *relation, const char *detail),
                           void *payload)
{
	static void (*const relations[])(meta *) = {exit_zero, attested,  leading_blank, crlf,
	                                            case_flip, unrelated, cuts};
	meta m = {.c = c,
	          .pack = pack,
	          .options = options,
	          .files = files,
	          .n_files = n_files,
	          .failed = failed,
	          .payload = payload};
	sw_result *plain = classify(&m, pack, c->exit, c->started, c->output, c->output_len);
	m.plain = plain;
	for (size_t i = 0; plain && i < sizeof(relations) / sizeof(relations[0]); i++)
		relations[i](&m);
	sw_result_free(plain);
	return m.tried;
}
