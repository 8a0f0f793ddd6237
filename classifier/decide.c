/* The six rules, applied to what the scan kept. docs/verdict.md explains them. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* The result and what it owns. */
typedef struct owned_result {
	sw_result r;
	sw_hit downgrades[SW_GUARANTEE_COUNT + 7];
	sw_observation observations[SW_OBSERVATIONS_MAX];
	const char *faults[SW_FAULTS_MAX];
	char *backend;
	void **blocks;
	size_t n_blocks, cap_blocks;
} owned_result;

typedef struct decider {
	sw_scan *scan;
	const sw_pack *pack;
	sw_exit exit;
	sw_started started;
	sw_source source;
	owned_result *out;
	bool failed; /* out of memory */
} decider;

void sw_result_free(sw_result *result)
{
	if (!result)
		return;
	owned_result *o = (owned_result *)(void *)result;
	for (size_t i = 0; i < o->n_blocks; i++)
		free(o->blocks[i]);
	free(o->blocks);
	free(o->backend);
	free(o);
}

static const char *own_copy(decider *d, const char *p, size_t n)
{
	owned_result *o = d->out;
	if (o->n_blocks == o->cap_blocks) {
		size_t cap = o->cap_blocks ? o->cap_blocks * 2 : 8;
		void **blocks = realloc(o->blocks, cap * sizeof(*blocks));
		if (!blocks) {
			d->failed = true;
			return NULL;
		}
		o->blocks = blocks;
		o->cap_blocks = cap;
	}
	char *copy = malloc(n + 1);
	if (!copy) {
		d->failed = true;
		return NULL;
	}
	memcpy(copy, p, n);
	copy[n] = '\0';
	o->blocks[o->n_blocks++] = copy;
	return copy;
}

static sw_hit hit_of(decider *d, uint32_t sig, const sw_mark *m)
{
	sw_hit h = {.sig = d->pack->sigs[sig].def};
	if (!m)
		return h;
	h.line.ptr = own_copy(d, m->line->text, m->line->len);
	h.line.len = h.line.ptr ? m->line->len : 0;
	h.line_truncated = m->line->truncated;
	h.line_windowed = m->line->windowed;
	h.line_number = m->line->line_number;
	h.offset = m->line->offset;
	if (m->resource) {
		h.resource.ptr = own_copy(d, m->resource, m->resource_len);
		h.resource.len = h.resource.ptr ? m->resource_len : 0;
		h.resource_kind = m->resource_kind;
	}
	return h;
}

/* ---- choosing ---- */

typedef struct choice {
	bool found;
	uint32_t sig;
	const sw_mark *mark;
} choice;

static bool admits(const decider *d, uint32_t sig)
{
	return sw_exit_admits(d->pack, d->pack->sigs[sig].def, d->exit);
}

static bool earlier(const sw_mark *a, const sw_mark *b)
{
	return a->line->offset < b->line->offset;
}

static bool fatal_counts(const decider *d, uint32_t i)
{
	return admits(d, i) &&
	       (d->started != SW_STARTED_YES || d->pack->sigs[i].def->stage == SW_STAGE_LOST);
}

/* A line belongs to its first signature, so where summaries count they hide later ones. */
static bool summary_counts(const decider *d)
{
	for (uint32_t k = 0; k < d->pack->n_order[SW_KIND_FATAL]; k++) {
		uint32_t i = d->pack->order[SW_KIND_FATAL][k];
		if (d->pack->sigs[i].def->generic && sw_mark_get(d->scan, SW_MARK_FATAL, i) &&
		    fatal_counts(d, i))
			return true;
	}
	return false;
}

/* Rule 4: the first admitted line whose signature is not generic, else the first. */
static choice choose_fatal(const decider *d, sw_mark_kind kind)
{
	choice best[2] = {{0}, {0}};
	bool hidden = kind == SW_MARK_FATAL && summary_counts(d);
	for (uint32_t k = 0; k < d->pack->n_order[SW_KIND_FATAL]; k++) {
		uint32_t i = d->pack->order[SW_KIND_FATAL][k];
		bool generic = d->pack->sigs[i].def->generic;
		const sw_mark *m = sw_mark_get(d->scan, hidden && !generic ? SW_MARK_OWN : kind, i);
		if (!m || !fatal_counts(d, i))
			continue;
		choice *c = &best[generic];
		/* Matching order breaks ties, so the first one of a line stays its owner. */
		if (!c->found || earlier(m, c->mark))
			*c = (choice){true, i, m};
	}
	return best[0].found ? best[0] : best[1];
}

static choice choose_exit_only(const decider *d, sw_kind kind)
{
	for (uint32_t k = 0; k < d->pack->n_order[kind]; k++) {
		uint32_t i = d->pack->order[kind][k];
		const sw_sig *sig = &d->pack->sigs[i];
		int64_t code;
		if (!sig->exit_only || !sw_exit_normal(d->pack, d->exit, &code) || !admits(d, i))
			continue;
		if (kind == SW_KIND_FATAL && d->started == SW_STARTED_YES &&
		    sig->def->stage != SW_STAGE_LOST)
			continue;
		return (choice){true, i, NULL};
	}
	return (choice){0};
}

static sw_confidence confidence_of(const decider *d, uint32_t i)
{
	const sw_sig *sig = &d->pack->sigs[i];
	if (sig->decides == SW_DECIDES_NETWORK && d->scan->facts.network == SW_NETWORK_UNKNOWN)
		return SW_CONFIDENCE_WEAK;
	return (sw_confidence)sig->confidence;
}

/* Rule 5: the first line of the highest confidence. */
static choice choose_denial(const decider *d)
{
	sw_mark_kind kind = d->started == SW_STARTED_YES ? SW_MARK_DENIAL_B : SW_MARK_DENIAL_A;
	choice best = {0};
	for (uint32_t k = 0; k < d->pack->n_order[SW_KIND_DENIAL]; k++) {
		uint32_t i = d->pack->order[SW_KIND_DENIAL][k];
		const sw_mark *m = sw_mark_get(d->scan, kind, i);
		if (!m || !admits(d, i))
			continue;
		if (best.found) {
			sw_confidence a = confidence_of(d, i), b = confidence_of(d, best.sig);
			if (a < b || (a == b && !earlier(m, best.mark)))
				continue;
		}
		best = (choice){true, i, m};
	}
	return best;
}

static uint64_t count_denied(const decider *d)
{
	const uint64_t *counts =
	    d->started == SW_STARTED_YES ? d->scan->counts_b : d->scan->counts_a;
	uint32_t open = 0;
	for (uint32_t g = 1; g <= d->pack->n_gates; g++)
		if (admits(d, d->pack->gate_sig[g]))
			open |= 1u << (g - 1);
	uint64_t n = counts[0];
	for (uint32_t m = 1; m < 1u << SW_GATES_MAX; m++)
		if (m & open)
			n += counts[m];
	return n < SW_DENIED_LINES_MAX ? n : SW_DENIED_LINES_MAX;
}

/* ---- the parts beside the verdict ---- */

static void observe(decider *d, sw_observation_kind kind, const choice *c)
{
	sw_result *r = &d->out->r;
	if (r->n_observations == SW_OBSERVATIONS_MAX)
		return;
	sw_observation *o = &d->out->observations[r->n_observations++];
	o->kind = kind;
	if (c)
		o->hit = hit_of(d, c->sig, c->mark);
}

/* All marks of one kind become observations, but for the deciding signature. */
static void observe_marks(decider *d, sw_kind sig_kind, sw_mark_kind mark, sw_observation_kind kind)
{
	const sw_result *r = &d->out->r;
	for (uint32_t k = 0; k < d->pack->n_order[sig_kind]; k++) {
		uint32_t i = d->pack->order[sig_kind][k];
		const sw_mark *m = sw_mark_get(d->scan, mark, i);
		if (!m || (r->has_hit && r->hit.sig == d->pack->sigs[i].def))
			continue;
		/* A line the verdict rests on needs no observation for its general wording. */
		if (r->has_hit && r->hit.line.ptr && m->line->offset == r->hit.offset)
			continue;
		choice c = {true, i, m};
		observe(d, kind, &c);
	}
}

static void observations(decider *d)
{
	const sw_result *r = &d->out->r;
	bool zero = sw_exit_is_zero(d->exit);
	if (zero && d->started == SW_STARTED_NO)
		observe(d, SW_OBSERVATION_NOT_STARTED_AT_EXIT_0, NULL);
	if ((zero && !d->scan->facts.observe_ok) || r->rule == 1)
		return;
	bool denied = r->verdict == SW_VERDICT_SANDBOX_DENIED;
	observe_marks(d, SW_KIND_FATAL, SW_MARK_SEEN_FATAL,
	              zero ? SW_OBSERVATION_FATAL_AT_EXIT_0 : SW_OBSERVATION_FATAL_NOT_ADMITTED);
	if (!denied)
		observe_marks(d, SW_KIND_DENIAL, SW_MARK_DENIAL_A,
		              zero ? SW_OBSERVATION_DENIAL_AT_EXIT_0
		              : r->verdict == SW_VERDICT_RUNNER_FAILED
		                  ? SW_OBSERVATION_DENIAL_BESIDE_FAILURE
		                  : SW_OBSERVATION_DENIAL_NOT_DECIDING);
	observe_marks(d, SW_KIND_DENIAL, SW_MARK_SEEN_DENIAL, SW_OBSERVATION_DENIAL_NOT_DECIDING);
	observe_marks(d, SW_KIND_DENIAL, SW_MARK_VETOED, SW_OBSERVATION_DENIAL_VETOED);
}

static void downgrades(decider *d)
{
	sw_result *r = &d->out->r;
	for (uint32_t k = 0; k < d->pack->n_order[SW_KIND_DOWNGRADE]; k++) {
		uint32_t i = d->pack->order[SW_KIND_DOWNGRADE][k];
		const sw_mark *m = sw_mark_get(d->scan, SW_MARK_OTHER, i);
		if (!m || !admits(d, i))
			continue;
		r->lowers |= d->pack->sigs[i].def->lowers;
		if (r->n_downgrades < sizeof(d->out->downgrades) / sizeof(d->out->downgrades[0]))
			d->out->downgrades[r->n_downgrades++] = hit_of(d, i, m);
	}
	if (r->n_downgrades && r->enforcement == SW_ENFORCEMENT_FULL)
		r->enforcement = SW_ENFORCEMENT_PARTIAL;
}

static void limits(decider *d)
{
	sw_result *r = &d->out->r;
	if (d->exit.timed_out) {
		r->limit = SW_LIMIT_DEADLINE;
		r->limit_certainty = SW_CERTAINTY_PROVEN;
		return;
	}
	if (r->rule != 6)
		return;
	choice best = {0};
	for (uint32_t k = 0; k < d->pack->n_order[SW_KIND_LIMIT]; k++) {
		uint32_t i = d->pack->order[SW_KIND_LIMIT][k];
		const sw_sig *sig = &d->pack->sigs[i];
		const sw_mark *m = sw_mark_get(d->scan, SW_MARK_OTHER, i);
		int64_t code;
		bool by_exit = sig->exit_only && sw_exit_normal(d->pack, d->exit, &code);
		if ((!m && !by_exit) || !admits(d, i))
			continue;
		if (best.found) {
			sw_certainty a = sig->def->certainty,
			             b = d->pack->sigs[best.sig].def->certainty;
			bool sooner = m && best.mark && earlier(m, best.mark);
			if (a < b || (a == b && !sooner))
				continue;
		}
		best = (choice){true, i, m};
	}
	if (!best.found)
		return;
	r->limit = d->pack->sigs[best.sig].def->limit;
	r->limit_certainty = d->pack->sigs[best.sig].def->certainty;
	r->limit_hit = hit_of(d, best.sig, best.mark);
	if (!r->cause)
		r->cause = d->pack->sigs[best.sig].def->cause;
}

/* ---- the rules ---- */

static void set_fatal(decider *d, const choice *c)
{
	sw_result *r = &d->out->r;
	const sw_sig_def *def = d->pack->sigs[c->sig].def;
	r->verdict = SW_VERDICT_RUNNER_FAILED;
	r->stage = def->stage == SW_STAGE_NONE ? SW_STAGE_SETUP : def->stage;
	r->cause = def->cause;
	r->confidence = (sw_confidence)d->pack->sigs[c->sig].confidence;
	r->evidence = c->mark ? SW_EVIDENCE_TEXT : SW_EVIDENCE_EXIT_CODE;
	r->hit = hit_of(d, c->sig, c->mark);
	r->has_hit = true;
}

static void set_denial(decider *d, const choice *c)
{
	sw_result *r = &d->out->r;
	const sw_sig_def *def = d->pack->sigs[c->sig].def;
	r->verdict = SW_VERDICT_SANDBOX_DENIED;
	r->cause = def->cause;
	r->confidence = confidence_of(d, c->sig);
	r->evidence = c->mark ? SW_EVIDENCE_TEXT : SW_EVIDENCE_EXIT_CODE;
	r->operation = def->operation;
	r->hit = hit_of(d, c->sig, c->mark);
	r->has_hit = true;
	r->denied_lines = c->mark ? count_denied(d) : 0;
}

static bool rule_unconfined(decider *d)
{
	if (!d->pack->unconfined && d->scan->facts.mode != SW_MODE_DANGER_FULL_ACCESS)
		return false;
	d->out->r.enforcement = SW_ENFORCEMENT_NONE;
	d->out->r.evidence = SW_EVIDENCE_ATTESTED;
	d->out->r.evidence_source = SW_SOURCE_CALLER;
	return true;
}

static bool rule_exit_zero(decider *d)
{
	if (!sw_exit_is_zero(d->exit))
		return false;
	d->out->r.evidence = SW_EVIDENCE_EXIT_CODE;
	return true;
}

/* A line that is both fatal and denial, admitted as the fatal that it is. */
static choice choose_both(const decider *d)
{
	choice blocked = choose_fatal(d, SW_MARK_BLOCKED), any = {0};
	for (uint32_t k = 0; blocked.found && k < d->pack->n_order[SW_KIND_DENIAL]; k++) {
		uint32_t i = d->pack->order[SW_KIND_DENIAL][k];
		const sw_mark *m = sw_mark_get(d->scan, SW_MARK_BOTH, i);
		if (m && (!any.found || earlier(m, any.mark)))
			any = (choice){true, i, m};
	}
	return any;
}

static bool rule_not_started(decider *d)
{
	sw_result *r = &d->out->r;
	if (d->started != SW_STARTED_NO)
		return false;
	choice c = choose_fatal(d, SW_MARK_FATAL);
	if (!c.found)
		c = choose_exit_only(d, SW_KIND_FATAL);
	choice both = c.found ? (choice){0} : choose_both(d);
	if (both.found) {
		set_denial(d, &both);
	} else if (c.found) {
		set_fatal(d, &c);
	} else {
		r->verdict = SW_VERDICT_RUNNER_FAILED;
		r->stage = SW_STAGE_NONE;
		r->cause = "unknown";
	}
	r->confidence = SW_CONFIDENCE_CERTAIN;
	r->evidence = SW_EVIDENCE_ATTESTED;
	r->evidence_source = d->source;
	return true;
}

static bool rule_runner_failure(decider *d)
{
	if (d->scan->facts.runner_lost && d->started == SW_STARTED_YES) {
		sw_result *r = &d->out->r;
		r->verdict = SW_VERDICT_RUNNER_FAILED;
		r->stage = SW_STAGE_LOST;
		r->cause = "runner-lost";
		r->confidence = SW_CONFIDENCE_CERTAIN;
		r->evidence = SW_EVIDENCE_ATTESTED;
		r->evidence_source = d->source;
		return true;
	}
	choice c = choose_fatal(d, SW_MARK_FATAL);
	if (!c.found)
		c = choose_exit_only(d, SW_KIND_FATAL);
	if (c.found)
		set_fatal(d, &c);
	return c.found;
}

static bool rule_denial(decider *d)
{
	choice c = choose_denial(d);
	if (!c.found)
		c = choose_exit_only(d, SW_KIND_DENIAL);
	if (c.found)
		set_denial(d, &c);
	return c.found;
}

static bool rule_otherwise(decider *d)
{
	d->out->r.evidence = SW_EVIDENCE_TEXT;
	return true;
}

int sw_decide(sw_scan *scan, sw_exit exit, sw_started started, sw_source source, sw_result **out,
              sw_error *err)
{
	static bool (*const rules[])(decider *) = {rule_unconfined,  rule_exit_zero,
	                                           rule_not_started, rule_runner_failure,
	                                           rule_denial,      rule_otherwise};
	owned_result *o = calloc(1, sizeof(*o));
	if (!o || !(o->backend = strdup(scan->pack->backend))) {
		free(o);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	decider d = {.scan = scan,
	             .pack = scan->pack,
	             .exit = exit,
	             .started = started,
	             .source = source,
	             .out = o};
	sw_result *r = &o->r;
	r->backend = o->backend;
	r->exit = exit;
	r->verdict = SW_VERDICT_OK;
	r->started = started;
	r->mode = scan->facts.mode;
	r->enforcement = scan->facts.enforcement;
	r->output_size = scan->output_size;
	r->lines = scan->lf_before + (scan->any && !scan->last_was_lf);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		r->rule = (int)i + 1;
		if (rules[i](&d))
			break;
	}
	if (r->rule > 1)
		downgrades(&d);
	if (r->rule > 2)
		limits(&d);
	observations(&d);
	memcpy(o->faults, scan->faults, sizeof(o->faults));
	r->downgrades = o->downgrades;
	r->observations = o->observations;
	r->faults = o->faults;
	r->n_faults = scan->n_faults;
	if (d.failed) {
		sw_result_free(r);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	*out = r;
	return 0;
}

int sw_result_outside(sw_result *result, const sw_outside *x)
{
	decider d = {.out = (owned_result *)(void *)result};
	sw_result *r = result;
	const char *line = own_copy(&d, x->line.ptr ? x->line.ptr : "", x->line.len);
	const char *resource =
	    own_copy(&d, x->resource.ptr ? x->resource.ptr : "", x->resource.len);
	if (d.failed)
		return SW_ENOMEM;
	sw_hit hit = {.line = {line, x->line.len},
	              .resource = {resource, x->resource.len},
	              .resource_kind = x->resource.len ? x->resource_kind : NULL};
	if (!x->denied || r->verdict != SW_VERDICT_OK || r->rule != 6) {
		if (r->n_observations < SW_OBSERVATIONS_MAX)
			d.out->observations[r->n_observations++] =
			    (sw_observation){.kind = x->kind, .hit = hit};
		r->observations = d.out->observations;
		return 0;
	}
	r->verdict = SW_VERDICT_SANDBOX_DENIED;
	r->rule = 5;
	r->cause = x->cause;
	r->confidence = SW_CONFIDENCE_CERTAIN;
	r->evidence = x->evidence;
	r->evidence_source = x->source;
	r->operation = x->operation;
	r->has_hit = true;
	r->hit = hit;
	return 0;
}

void sw_result_withdraw_denial(sw_result *r)
{
	owned_result *o = (owned_result *)(void *)r;
	if (r->verdict != SW_VERDICT_SANDBOX_DENIED || r->evidence != SW_EVIDENCE_TEXT)
		return;
	if (r->has_hit && r->n_observations < SW_OBSERVATIONS_MAX)
		o->observations[r->n_observations++] =
		    (sw_observation){.kind = SW_OBSERVATION_DENIAL_NOT_DECIDING, .hit = r->hit};
	r->observations = o->observations;
	r->verdict = SW_VERDICT_OK;
	r->rule = 6;
	r->cause = NULL;
	r->confidence = SW_CONFIDENCE_NONE;
	r->operation = SW_OPERATION_NONE;
	r->has_hit = false;
	r->hit = (sw_hit){0};
	r->denied_lines = 0;
}
