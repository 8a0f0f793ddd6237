/* One finished segment: which signatures it carries, and what of it is kept. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define SLOT(scan, kind, sig) ((scan)->slots[(size_t)(kind) * (scan)->pack->n_sigs + (sig)])

/* Signatures of one kind that may match one line. */
#define FATALS_MAX 64
#define DENIALS_MAX 128

typedef struct evaluation {
	sw_scan *scan;
	const sw_segment *seg;
	sw_kept_line *line; /* made on first need */
	uint16_t fatals[FATALS_MAX], denials[DENIALS_MAX];
	size_t n_fatals, n_denials;
	sw_capture captures[DENIALS_MAX]; /* of denials */
	bool blocked;                     /* a scope-any denial matches */
	bool both;                        /* blocked where a fatal would have counted */
	bool downgrade;
	int prefix, informational, vetoed; /* -1: not looked at yet */
} evaluation;

static void fault(sw_scan *scan, const char *id)
{
	for (size_t i = 0; i < scan->n_faults; i++)
		if (strcmp(scan->faults[i], id) == 0)
			return;
	if (scan->n_faults < SW_FAULTS_MAX)
		scan->faults[scan->n_faults++] = id;
}

static sw_kept_line *kept_line(evaluation *e)
{
	if (e->line)
		return e->line;
	const sw_segment *s = e->seg;
	size_t n = s->raw_len < SW_LINE_REPORT_MAX ? s->raw_len : SW_LINE_REPORT_MAX;
	sw_kept_line *l = malloc(sizeof(*l) + n + 1);
	if (!l) {
		e->scan->error = SW_ENOMEM;
		return NULL;
	}
	*l = (sw_kept_line){.len = (uint32_t)n,
	                    .line_number = s->line_number,
	                    .offset = s->offset,
	                    .truncated = s->full_len > n,
	                    .windowed = s->full_len > SW_WINDOW_SIZE};
	memcpy(l->text, s->raw, n);
	l->text[n] = '\0';
	e->line = l;
	return l;
}

static void mark_clear(sw_mark *m)
{
	if (m->line && --m->line->refs == 0)
		free(m->line);
	free(m->resource);
	memset(m, 0, sizeof(*m));
}

static void mark(evaluation *e, sw_mark_kind kind, uint32_t sig, const sw_capture *c)
{
	sw_scan *scan = e->scan;
	if (SLOT(scan, kind, sig))
		return; /* the first one counts */
	sw_kept_line *line = kept_line(e);
	if (!line)
		return;
	if (scan->n_marks == scan->cap_marks) {
		uint32_t cap = scan->cap_marks ? scan->cap_marks * 2 : 16;
		sw_mark *p = cap <= UINT16_MAX ? realloc(scan->marks, cap * sizeof(*p)) : NULL;
		if (!p) {
			scan->error = SW_ENOMEM;
			return;
		}
		scan->marks = p;
		scan->cap_marks = cap;
	}
	sw_mark *m = &scan->marks[scan->n_marks];
	memset(m, 0, sizeof(*m));
	if (c && c->kind) {
		size_t n = c->len < SW_LINE_REPORT_MAX ? c->len : SW_LINE_REPORT_MAX;
		m->resource = malloc(n + 1);
		if (!m->resource) {
			scan->error = SW_ENOMEM;
			return;
		}
		memcpy(m->resource, c->ptr, n);
		m->resource[n] = '\0';
		m->resource_len = (uint32_t)n;
		m->resource_kind = c->kind;
	}
	m->line = line;
	m->slot = (uint32_t)kind * scan->pack->n_sigs + sig;
	line->refs++;
	SLOT(scan, kind, sig) = (uint16_t)(++scan->n_marks);
}

const sw_mark *sw_mark_get(const sw_scan *scan, sw_mark_kind kind, uint32_t sig)
{
	uint16_t slot = SLOT(scan, kind, sig);
	return slot ? &scan->marks[slot - 1] : NULL;
}

void sw_marks_free(sw_scan *scan)
{
	for (uint32_t i = 0; i < scan->n_marks; i++)
		mark_clear(&scan->marks[i]);
	free(scan->marks);
	scan->marks = NULL;
	scan->n_marks = scan->cap_marks = 0;
}

/* Forgets one mark; the last one takes its place. */
static void unmark(sw_scan *scan, sw_mark_kind kind, uint32_t sig)
{
	uint16_t slot = SLOT(scan, kind, sig);
	if (!slot)
		return;
	mark_clear(&scan->marks[slot - 1]);
	uint16_t last = (uint16_t)scan->n_marks--;
	if (last != slot) {
		scan->marks[slot - 1] = scan->marks[last - 1];
		scan->slots[scan->marks[slot - 1].slot] = slot;
	}
	SLOT(scan, kind, sig) = 0;
}

/* ---- what the whole segment is ---- */

static bool has_prefix(evaluation *e)
{
	if (e->prefix < 0 && e->seg->continued)
		e->prefix = e->scan->long_prefix;
	if (e->prefix < 0)
		e->prefix = sw_has_prefix(e->scan->pack, &e->scan->matcher, &e->seg->visible);
	return e->prefix > 0;
}

static bool informational(evaluation *e)
{
	if (e->informational < 0)
		e->informational =
		    sw_informational(e->scan->pack, &e->scan->matcher, &e->seg->visible) != NULL;
	return e->informational > 0;
}

static bool vetoed(evaluation *e)
{
	if (e->vetoed < 0)
		e->vetoed = sw_vetoed(e->scan->pack, &e->scan->matcher, &e->seg->visible);
	return e->vetoed > 0;
}

static bool matches(evaluation *e, const sw_sig *sig, sw_capture *c)
{
	sw_match r = sw_sig_match(e->scan->pack, sig, &e->scan->matcher, &e->seg->visible, c);
	if (r == SW_MATCH_FAULT)
		fault(e->scan, sig->def->id);
	return r == SW_MATCH_YES;
}

static void take(evaluation *e, uint32_t i, const sw_capture *c)
{
	const sw_sig_def *def = e->scan->pack->sigs[i].def;
	if (def->kind == SW_KIND_FATAL && e->n_fatals < FATALS_MAX) {
		e->fatals[e->n_fatals++] = (uint16_t)i;
	} else if (def->kind == SW_KIND_DOWNGRADE) {
		e->downgrade = true;
		mark(e, SW_MARK_OTHER, i, NULL);
	} else if (def->kind == SW_KIND_LIMIT) {
		mark(e, SW_MARK_OTHER, i, c);
	} else if (def->kind == SW_KIND_DENIAL && e->n_denials < DENIALS_MAX) {
		e->blocked |= def->scope == SW_SCOPE_ANY;
		e->captures[e->n_denials] = *c;
		e->denials[e->n_denials++] = (uint16_t)i;
	}
}

/* Tries the signatures whose literal is in the segment: denials last, for the others shape them. */
static void find_matches(evaluation *e)
{
	sw_scan *scan = e->scan;
	const sw_pack *pack = scan->pack;
	bool owned = false;
	for (int denials = 0; denials < 2; denials++) {
		for (uint32_t w = 0; w < scan->n_hit_words; w++) {
			uint32_t bits = scan->hit_words[w] &
			                (denials ? pack->denial_words[w] : ~pack->denial_words[w]);
			for (; bits; bits &= bits - 1) {
				uint32_t i = w * 32 + (uint32_t)__builtin_ctz(bits);
				const sw_sig *sig = &pack->sigs[i];
				sw_capture c = {0};
				if (owned && sig->def->scope == SW_SCOPE_COMMAND)
					continue;
				if (!matches(e, sig, &c))
					continue;
				take(e, i, &c);
				owned |= denials && !sig->gate;
			}
		}
	}
	memset(scan->hit_words, 0, scan->n_hit_words * sizeof(*scan->hit_words));
	scan->hit_any = false;
}

static void keep_fatals(evaluation *e)
{
	sw_scan *scan = e->scan;
	bool summary = false; /* the runner's catch-all does not own the line of a summary */
	for (size_t k = 0; k < e->n_fatals; k++) {
		uint32_t i = e->fatals[k];
		sw_position pos = (sw_position)scan->pack->sigs[i].position;
		bool first = pos == SW_POSITION_FIRST || pos == SW_POSITION_ALONE;
		mark(e, SW_MARK_SEEN_FATAL, i, NULL);
		if (informational(e) || (first && scan->position.seen_command))
			continue;
		e->both |= e->blocked;
		mark(e, e->blocked ? SW_MARK_BLOCKED : SW_MARK_FATAL, i, NULL);
		summary |= scan->pack->sigs[i].def->generic;
		if (!summary && !e->blocked)
			mark(e, SW_MARK_OWN, i, NULL);
		if (pos == SW_POSITION_LAST || pos == SW_POSITION_ALONE)
			scan->position.pending_last = true;
	}
}

static void keep_denials(evaluation *e)
{
	sw_scan *scan = e->scan;
	uint32_t gates_a = 0, gates_b = 0;
	for (size_t k = 0; k < e->n_denials; k++) {
		uint32_t i = e->denials[k];
		const sw_sig *sig = &scan->pack->sigs[i];
		sw_confidence confidence;
		bool hidden = sig->def->scope == SW_SCOPE_COMMAND &&
		              (has_prefix(e) || informational(e) || e->downgrade ||
		               (e->n_fatals && e->blocked));
		if (vetoed(e)) {
			mark(e, SW_MARK_VETOED, i, &e->captures[k]);
			continue;
		}
		if (!sw_facts_decide(sig, &scan->facts, &e->captures[k], &confidence)) {
			mark(e, SW_MARK_SEEN_DENIAL, i, &e->captures[k]);
			continue;
		}
		if (e->both && sig->def->scope == SW_SCOPE_ANY)
			mark(e, SW_MARK_BOTH, i, &e->captures[k]);
		mark(e, SW_MARK_DENIAL_B, i, &e->captures[k]);
		gates_b |= 1u << sig->gate;
		if (hidden)
			continue;
		mark(e, SW_MARK_DENIAL_A, i, &e->captures[k]);
		gates_a |= 1u << sig->gate;
	}
	/* Gate 0 admits every exit; the other bits choose a counter that finish() adds up. */
	if (gates_a && !(e->seg->continued && scan->long_counted_a))
		scan->counts_a[gates_a & 1 ? 0 : gates_a >> 1]++;
	if (gates_b && !(e->seg->continued && scan->long_counted_b))
		scan->counts_b[gates_b & 1 ? 0 : gates_b >> 1]++;
	scan->long_counted_a |= gates_a != 0;
	scan->long_counted_b |= gates_b != 0;
}

/* Some fatal of another position still counts on the line. */
static bool still_blocked(const sw_scan *scan, const sw_kept_line *line)
{
	for (uint32_t k = 0; k < scan->pack->n_order[SW_KIND_FATAL]; k++) {
		const sw_mark *m =
		    sw_mark_get(scan, SW_MARK_BLOCKED, scan->pack->order[SW_KIND_FATAL][k]);
		if (m && m->line == line)
			return true;
	}
	return false;
}

/* A line of the command: nothing printed before it can be the runner's last word. */
static void command_line(sw_scan *scan)
{
	scan->position.seen_command = true;
	if (!scan->position.pending_last)
		return;
	scan->position.pending_last = false;
	for (uint32_t k = 0; k < scan->pack->n_order[SW_KIND_FATAL]; k++) {
		uint32_t i = scan->pack->order[SW_KIND_FATAL][k];
		sw_position pos = (sw_position)scan->pack->sigs[i].position;
		if (pos != SW_POSITION_LAST && pos != SW_POSITION_ALONE)
			continue;
		unmark(scan, SW_MARK_FATAL, i);
		unmark(scan, SW_MARK_OWN, i);
		unmark(scan, SW_MARK_BLOCKED, i);
	}
	for (uint32_t k = 0; k < scan->pack->n_order[SW_KIND_DENIAL]; k++) {
		uint32_t i = scan->pack->order[SW_KIND_DENIAL][k];
		const sw_mark *both = sw_mark_get(scan, SW_MARK_BOTH, i);
		if (both && !still_blocked(scan, both->line))
			unmark(scan, SW_MARK_BOTH, i);
	}
}

void sw_segment_done(sw_scan *scan, const sw_segment *seg)
{
	/* The arrays stay as they are: clearing them would cost more than the segment. */
	evaluation e;
	e.scan = scan;
	e.seg = seg;
	e.line = NULL;
	e.n_fatals = e.n_denials = 0;
	e.blocked = e.both = e.downgrade = false;
	e.prefix = e.informational = e.vetoed = -1;
	sw_matcher_line(&scan->matcher, &seg->visible);
	if (!seg->continued)
		scan->long_counted_a = scan->long_counted_b = scan->long_claimed = false;
	if (scan->hit_any) {
		find_matches(&e);
		keep_fatals(&e);
		keep_denials(&e);
	}
	if (!seg->continued && !seg->visible.full_line) {
		scan->long_prefix = has_prefix(&e);
		scan->long_claimed = scan->long_prefix || e.n_fatals || e.downgrade;
	}
	bool matters = (scan->pack->needs_first && !scan->position.seen_command) ||
	               scan->position.pending_last;
	if (matters && !scan->long_claimed && e.n_fatals == 0 && !e.downgrade &&
	    !sw_blank(seg->visible.ptr, seg->visible.len) && !has_prefix(&e) && !informational(&e))
		command_line(scan);
	if (scan->matcher.no_memory)
		scan->error = SW_ENOMEM;
	if (e.line && e.line->refs == 0)
		free(e.line);
}
