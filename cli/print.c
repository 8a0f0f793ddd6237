/* What people and programs see of a result. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static const char *const colours[SW_VERDICT_COUNT] = {
    [SW_VERDICT_OK] = "\033[32m",
    [SW_VERDICT_RUNNER_FAILED] = "\033[31m",
    [SW_VERDICT_SANDBOX_DENIED] = "\033[33m",
};

static void put(FILE *to, sw_str s, size_t most)
{
	char *safe = sw_escape_tty(s.ptr, s.len < most ? s.len : most);
	fputs(safe ? safe : "", to);
	if (s.len > most)
		fputs("...", to);
	free(safe);
}

static void put_meaning(FILE *to, const sw_result *r)
{
	switch (r->verdict) {
	case SW_VERDICT_RUNNER_FAILED:
		if (r->stage == SW_STAGE_LOST)
			fputs("the sandbox runner died while the command ran; it may still be "
			      "running",
			      to);
		else if (r->stage == SW_STAGE_EXEC)
			fputs("the sandbox stood, but the command could not be started", to);
		else
			fputs("the sandbox could not be built; the command never ran", to);
		break;
	case SW_VERDICT_SANDBOX_DENIED:
		fputs("the command ran and the sandbox denied it something", to);
		break;
	default:
		if (r->rule == 1)
			fputs("confinement was off", to);
		else if (r->rule == 2)
			fputs("the command ended well", to);
		else
			fputs("the command failed by itself; no denial was observed", to);
		break;
	}
}

static void put_observed(FILE *to, const sw_result *r)
{
	size_t denials = 0;
	for (size_t i = 0; i < r->n_observations; i++) {
		const sw_sig_def *sig = r->observations[i].hit.sig;
		denials += sig && sig->kind == SW_KIND_DENIAL;
	}
	if (denials)
		fprintf(to, "; %zu denial wording%s seen that did not decide", denials,
		        denials > 1 ? "s" : "");
}

/* Remedies may have several lines; all stand below the word. */
static void put_advice(FILE *to, const sw_remedy *remedy, const char *cause)
{
	fprintf(to, "  advice: %s%s", remedy->for_whom ? remedy->for_whom : "",
	        remedy->for_whom ? ": " : "");
	for (const char *p = remedy->what; *p; p++) {
		fputc(*p, to);
		if (*p == '\n' && p[1])
			fputs("          ", to);
	}
	fprintf(to, "%s          (`sandwitness explain-cause %s`)\n",
	        remedy->what[0] && remedy->what[strlen(remedy->what) - 1] == '\n' ? "" : "\n",
	        cause);
}

void cli_print_verdict(FILE *to, const sw_result *r, bool verbose, bool colour)
{
	fprintf(to, "%s%s%s: ", colour ? colours[r->verdict] : "", sw_verdict_name(r->verdict),
	        colour ? "\033[0m" : "");
	put_meaning(to, r);
	if (r->limit != SW_LIMIT_NONE)
		fprintf(to, "; limit: %s (%s)", sw_limit_name(r->limit),
		        sw_certainty_name(r->limit_certainty));
	put_observed(to, r);
	if (!verbose) {
		if (r->cause)
			fprintf(to, " [%s]", r->cause);
		if (r->has_hit && r->hit.line_number) {
			fprintf(to, ": line %llu: ", (unsigned long long)r->hit.line_number);
			put(to, r->hit.line, 200);
		} else if (r->has_hit && r->hit.line.len) { /* seen beside the output */
			fputs(": ", to);
			put(to, r->hit.line, 200);
		}
		fputc('\n', to);
		return;
	}
	fputc('\n', to);
	if (r->has_hit && r->hit.line_number) {
		fprintf(to, "  line %llu: ", (unsigned long long)r->hit.line_number);
		put(to, r->hit.line, 400);
		fputc('\n', to);
	} else if (r->has_hit && r->hit.line.len) {
		fputs("  ", to);
		put(to, r->hit.line, 400);
		fputc('\n', to);
	}
	if (r->operation != SW_OPERATION_NONE) {
		fprintf(to, "  denied: %s", sw_operation_name(r->operation));
		if (r->hit.resource_kind) {
			fputc(' ', to);
			put(to, r->hit.resource, 400);
		}
		fputc('\n', to);
	}
	for (size_t i = 0; i < r->n_downgrades; i++) {
		fputs("  less containment than asked: ", to);
		put(to, r->downgrades[i].line, 200);
		fputc('\n', to);
	}
	const sw_cause *c = sw_cause_find(r->cause);
	if (r->cause)
		fprintf(to, "  cause: %s%s%s\n", r->cause, c ? ": " : "", c ? c->title : "");
	if (c && c->n_remedies)
		put_advice(to, &c->remedies[0], r->cause);
	if (r->evidence == SW_EVIDENCE_TEXT && r->verdict != SW_VERDICT_OK)
		fputs("  evidence: text only, which the command itself could have printed\n", to);
	else if (r->evidence == SW_EVIDENCE_ATTESTED && r->evidence_source != SW_SOURCE_NONE)
		fprintf(to, "  evidence: attested (%s)\n", sw_source_name(r->evidence_source));
}

json_t *cli_result_json(const sw_result *r, const char *id)
{
	json_t *o = sw_result_json(r, id);
	const sw_cause *c = sw_cause_find(r->cause);
	if (!o || !c)
		return o;
	json_t *advice = json_object(), *remedies = json_array();
	json_object_set_new(advice, "title", sw_json_z(c->title));
	json_object_set_new(advice, "why", sw_json_z(c->why));
	for (uint16_t i = 0; i < c->n_remedies; i++) {
		json_t *x = json_object();
		json_object_set_new(x, "for", sw_json_z(c->remedies[i].for_whom));
		json_object_set_new(x, "do", sw_json_z(c->remedies[i].what));
		json_object_set_new(x, "risk", sw_json_z(c->remedies[i].risk));
		json_object_set_new(x, "tested", json_boolean(c->remedies[i].tested));
		json_array_append_new(remedies, x);
	}
	json_object_set_new(advice, "remedies", remedies);
	json_object_set_new(o, "advice", advice);
	return o;
}

bool cli_print_json(FILE *to, json_t *j)
{
	char *z = j ? sw_json_dump(j) : NULL;
	bool whole = z != NULL;
	if (whole)
		fprintf(to, "%s\n", z);
	else
		sw_text_lacks();
	free(z);
	json_decref(j);
	return whole;
}
