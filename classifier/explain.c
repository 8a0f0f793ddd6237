/* The decision with its path: rules in order, near misses, lines nobody claims. */
#include "core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEARS_MAX 64
#define UNCLAIMED_MAX 32
#define REGEX_MISSES_MAX 3 /* a line */

typedef struct owned_explanation {
	sw_explanation e;
	sw_near nears[NEARS_MAX];
	sw_str unclaimed[UNCLAIMED_MAX];
	uint64_t unclaimed_numbers[UNCLAIMED_MAX];
	char *text; /* copy of the output: lines point into it */
} owned_explanation;

typedef struct explainer {
	const sw_pack *pack;
	const sw_facts *facts;
	sw_exit exit;
	sw_started started;
	sw_matcher matcher;
	owned_explanation *out;
	char *visible; /* of the segment */
	uint32_t *words;
	uint32_t n_words;
	uint64_t first_command, last_command; /* ordinals of segments; UINT64_MAX and 0: none */
	bool any_command;
} explainer;

void sw_explanation_free(sw_explanation *e)
{
	if (!e)
		return;
	owned_explanation *o = (owned_explanation *)(void *)e;
	sw_result_free(e->result);
	free(o->text);
	free(o);
}

/* ---- one segment ---- */

typedef struct line {
	sw_str raw;
	uint64_t number, ordinal;
	sw_visible visible;
	bool fatal, downgrade, blocked, claimed, denial;
	unsigned regex_misses;
} line;

static void near_miss(explainer *x, sw_near_kind kind, const sw_sig *sig, const line *l,
                      size_t column)
{
	sw_explanation *e = &x->out->e;
	if (e->n_nears == NEARS_MAX)
		return;
	x->out->nears[e->n_nears++] = (sw_near){.kind = kind,
	                                        .sig = sig->def,
	                                        .line_number = l->number,
	                                        .column = column + 1,
	                                        .line = l->raw};
}

static bool note(void *payload, uint32_t literal, size_t at)
{
	explainer *x = payload;
	const sw_literal *l = &x->pack->filter.literals[literal];
	(void)at;
	for (uint32_t u = l->users; u; u = x->pack->filter.users[u].next) {
		uint32_t sig = x->pack->filter.users[u].sig;
		x->words[sig / 32] |= 1u << (sig % 32);
	}
	return true;
}

static void find_literals(explainer *x, const sw_visible *v)
{
	memset(x->words, 0, x->n_words * sizeof(*x->words));
	sw_filter_all(&x->pack->filter, v->ptr, v->len, note, x);
}

typedef void (*sig_fn)(explainer *x, line *l, const sw_sig *sig);

static void each_sig(explainer *x, line *l, sig_fn fn)
{
	for (uint32_t w = 0; w < x->n_words; w++)
		for (uint32_t bits = x->words[w]; bits; bits &= bits - 1)
			fn(x, l, &x->pack->sigs[w * 32 + (uint32_t)__builtin_ctz(bits)]);
}

static void look(explainer *x, line *l, const sw_sig *sig)
{
	if (sw_sig_match(x->pack, sig, &x->matcher, &l->visible, NULL) != SW_MATCH_YES)
		return;
	l->claimed = true;
	l->denial |= sig->def->kind == SW_KIND_DENIAL;
	l->fatal |= sig->def->kind == SW_KIND_FATAL;
	l->downgrade |= sig->def->kind == SW_KIND_DOWNGRADE;
	l->blocked |= sig->def->kind == SW_KIND_DENIAL && sig->def->scope == SW_SCOPE_ANY;
}

static bool position_admits(const explainer *x, const sw_sig *sig, const line *l)
{
	bool before = x->any_command && x->first_command < l->ordinal;
	bool after = x->any_command && x->last_command > l->ordinal;
	bool first = sig->position == SW_POSITION_FIRST || sig->position == SW_POSITION_ALONE;
	bool last = sig->position == SW_POSITION_LAST || sig->position == SW_POSITION_ALONE;
	return !(first && before) && !(last && after);
}

static void near_fatal(explainer *x, line *l, const sw_sig *sig)
{
	if (sw_sig_match(x->pack, sig, &x->matcher, &l->visible, NULL) == SW_MATCH_YES) {
		if (sw_informational(x->pack, &x->matcher, &l->visible))
			near_miss(x, SW_NEAR_INFORMATIONAL, sig, l, 0);
		else if (x->started == SW_STARTED_YES && sig->def->stage != SW_STAGE_LOST)
			near_miss(x, SW_NEAR_STARTED, sig, l, 0);
		else if (l->blocked)
			near_miss(x, SW_NEAR_BOTH, sig, l, 0);
		else if (!sw_exit_admits(x->pack, sig->def, x->exit))
			near_miss(x, SW_NEAR_EXIT, sig, l, 0);
		else if (!position_admits(x, sig, l))
			near_miss(x, SW_NEAR_POSITION, sig, l, 0);
		return;
	}
	size_t at = 0;
	if (!sw_literal_in(sig, l->visible.ptr, l->visible.len, &at) || at == 0)
		return;
	sw_visible rest = {.ptr = l->visible.ptr + at,
	                   .len = l->visible.len - at,
	                   .column0 = true,
	                   .full_line = true};
	if (sw_sig_match(x->pack, sig, &x->matcher, &rest, NULL) == SW_MATCH_YES)
		near_miss(x, SW_NEAR_COLUMN, sig, l, at);
}

static void near_denial(explainer *x, line *l, const sw_sig *sig)
{
	sw_capture c = {0};
	sw_confidence confidence;
	size_t at = 0;
	(void)sw_literal_in(sig, l->visible.ptr, l->visible.len, &at);
	if (sw_sig_match(x->pack, sig, &x->matcher, &l->visible, &c) != SW_MATCH_YES) {
		/* Many share a literal: of interest only where none of them took the line. */
		if (!l->denial && !l->fatal && l->regex_misses++ < REGEX_MISSES_MAX)
			near_miss(x, SW_NEAR_REGEX, sig, l, at);
		return;
	}
	bool hidden =
	    sig->def->scope == SW_SCOPE_COMMAND && x->started != SW_STARTED_YES &&
	    (sw_has_prefix(x->pack, &x->matcher, &l->visible) || l->downgrade ||
	     sw_informational(x->pack, &x->matcher, &l->visible) || (l->fatal && l->blocked));
	if (sw_vetoed(x->pack, &x->matcher, &l->visible))
		near_miss(x, SW_NEAR_VETO, sig, l, at);
	else if (hidden)
		near_miss(x, SW_NEAR_SCOPE, sig, l, at);
	else if (!sw_facts_decide(sig, x->facts, &c, &confidence))
		near_miss(x, SW_NEAR_FACTS, sig, l, at);
	else if (!sw_exit_admits(x->pack, sig->def, x->exit))
		near_miss(x, SW_NEAR_EXIT, sig, l, at);
}

static void near_any(explainer *x, line *l, const sw_sig *sig)
{
	if (sig->def->kind == SW_KIND_FATAL)
		near_fatal(x, l, sig);
	else if (sig->def->kind == SW_KIND_DENIAL)
		near_denial(x, l, sig);
}

/* ---- all segments ---- */

static size_t segment_end(const char *p, size_t n)
{
	size_t i = 0;
	while (i < n && p[i] != '\n' && p[i] != '\r')
		i++;
	return i;
}

static bool is_command(explainer *x, line *l)
{
	return !l->fatal && !l->downgrade && !sw_has_prefix(x->pack, &x->matcher, &l->visible) &&
	       !sw_informational(x->pack, &x->matcher, &l->visible);
}

static void unclaimed(explainer *x, const line *l)
{
	sw_explanation *e = &x->out->e;
	e->n_unclaimed_total++;
	if (e->n_unclaimed == UNCLAIMED_MAX)
		return;
	x->out->unclaimed[e->n_unclaimed] = l->raw;
	x->out->unclaimed_numbers[e->n_unclaimed++] = l->number;
}

/* Two passes: positions need to know where the command's lines are. */
static void walk(explainer *x, size_t n, bool second)
{
	uint64_t number = 1, ordinal = 0;
	const char *p = x->out->text;
	for (size_t at = 0; at < n; ordinal++) {
		size_t len = segment_end(p + at, n - at),
		       shown = len < SW_WINDOW_SIZE ? len : SW_WINDOW_SIZE;
		line l = {.raw = {p + at, len}, .number = number, .ordinal = ordinal};
		size_t visible = sw_strip_escapes(x->visible, p + at, shown);
		l.visible = (sw_visible){x->visible, visible, true, len <= SW_WINDOW_SIZE};
		sw_matcher_line(&x->matcher, &l.visible);
		if (!sw_blank(x->visible, visible)) {
			find_literals(x, &l.visible);
			each_sig(x, &l, look);
			if (!second && is_command(x, &l)) {
				x->first_command = x->any_command ? x->first_command : ordinal;
				x->last_command = ordinal;
				x->any_command = true;
			}
			if (second) {
				each_sig(x, &l, near_any);
				if (!l.claimed &&
				    !sw_informational(x->pack, &x->matcher, &l.visible))
					unclaimed(x, &l);
			}
		}
		at += len;
		if (at < n)
			number += p[at++] == '\n';
	}
}

/* ---- the rules in words ---- */

static const char *const not_applied[] = {
    "confinement was on",
    "the exit is not 0",
    "it is not known that the command never started",
    "no admitted line of the runner, no exit of its own",
    "no deciding denial",
    "",
};

static const char *const applied[] = {
    "backend none or mode danger_full_access: confinement was off",
    "exit 0 is always ok",
    "the command is known not to have started",
    "the runner failed",
    "the sandbox denied the command something",
    "nothing speaks for the runner or the sandbox",
};

static void tell_rules(explainer *x)
{
	sw_explanation *e = &x->out->e;
	const sw_result *r = e->result;
	for (int i = 0; i < r->rule; i++) {
		sw_explain_rule *rule = &e->rules[e->n_rules++];
		rule->rule = i + 1;
		rule->applied = i + 1 == r->rule;
		if (!rule->applied || !r->has_hit)
			snprintf(rule->text, sizeof(rule->text), "%s",
			         rule->applied ? applied[i] : not_applied[i]);
		else if (r->hit.line_number)
			snprintf(rule->text, sizeof(rule->text), "%s: %s on line %llu", applied[i],
			         r->hit.sig->id, (unsigned long long)r->hit.line_number);
		else
			snprintf(rule->text, sizeof(rule->text), "%s: %s by its exit", applied[i],
			         r->hit.sig->id);
	}
}

int sw_explain(const sw_pack *pack, const sw_facts *facts, sw_exit exit, sw_started started,
               sw_source source, const void *output, size_t n, sw_explanation **out, sw_error *err)
{
	static const sw_facts nothing;
	sw_facts observing = facts ? *facts : nothing;
	observing.observe_ok = true;
	explainer x = {
	    .pack = pack, .facts = facts ? facts : &nothing, .exit = exit, .started = started};
	x.n_words = (pack->n_sigs + 31) / 32;
	x.out = calloc(1, sizeof(*x.out));
	x.words = calloc(x.n_words + 1u, sizeof(*x.words));
	x.visible = malloc(SW_WINDOW_SIZE);
	int rc = x.out && x.words && x.visible && (x.out->text = malloc(n + 1)) &&
	                 !sw_matcher_init(&x.matcher)
	             ? 0
	             : sw_error_set(err, SW_ENOMEM, "out of memory");
	if (!rc)
		rc = sw_classify(pack, &observing, exit, started, source, output, n,
		                 &x.out->e.result, err);
	if (!rc && x.out && x.out->text && x.words) {
		if (n)
			memcpy(x.out->text, output, n);
		walk(&x, n, false);
		walk(&x, n, true);
		if (x.matcher.no_memory) /* a line may have been taken for another kind */
			rc = sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	if (!rc && x.out) {
		tell_rules(&x);
		x.out->e.nears = x.out->nears;
		x.out->e.unclaimed = x.out->unclaimed;
		x.out->e.unclaimed_numbers = x.out->unclaimed_numbers;
		*out = &x.out->e;
	}
	sw_matcher_free(&x.matcher);
	free(x.words);
	free(x.visible);
	if (rc && x.out)
		sw_explanation_free(&x.out->e);
	return rc;
}
