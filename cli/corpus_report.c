/* What `corpus check` prints: for people, as JSON, as TAP, as JUnit. */
#include <stdlib.h>
#include <string.h>

#include "corpus_cli.h"

static const char *const outcome_names[SW_OUTCOME_COUNT] = {"right", "wrong", "todo", "todo-passes",
                                                            "broken"};

static bool is_failure(const sw_case_outcome *o)
{
	return o->kind == SW_OUTCOME_WRONG || o->kind == SW_OUTCOME_BROKEN ||
	       o->kind == SW_OUTCOME_TODO_PASSES;
}

static void print_matrix(FILE *to, const sw_backend_tally *t)
{
	for (int w = 0; w < SW_VERDICT_COUNT; w++)
		for (int g = 0; g < SW_VERDICT_COUNT; g++)
			if (w != g && t->matrix[w][g])
				fprintf(to, "    wanted %s, got %s: %zu\n",
				        sw_verdict_name((sw_verdict)w),
				        sw_verdict_name((sw_verdict)g), t->matrix[w][g]);
}

static void print_agreement(FILE *to, size_t expects, size_t misses)
{
	if (expects)
		fprintf(to, " %5zu/%-5zu", expects - misses, expects);
	else
		fprintf(to, " %5s %-5s", "-", "");
}

static void print_backends(FILE *to, const sw_corpus_report *r)
{
	fprintf(to, "%-22s %6s %6s %6s %6s  %-11s %-11s %-11s %-11s\n", "backend", "cases", "right",
	        "wrong", "todo", "   line", "   stage", "   cause", "   resource");
	for (size_t i = 0; i < r->n_backends; i++) {
		const sw_backend_tally *t = &r->backends[i];
		fprintf(to, "%-22s %6zu %6zu %6zu %6zu ", t->name, t->cases,
		        t->kinds[SW_OUTCOME_RIGHT], t->kinds[SW_OUTCOME_WRONG],
		        t->kinds[SW_OUTCOME_TODO] + t->kinds[SW_OUTCOME_TODO_PASSES]);
		static const int columns[] = {3, 1, 2, 4}; /* line, stage, cause, resource */
		for (int c = 0; c < 4; c++)
			print_agreement(to, t->expects[columns[c]], t->misses[columns[c]]);
		fputc('\n', to);
	}
}

static void print_confusion(FILE *to, const sw_corpus_report *r)
{
	fprintf(to, "\nconfusion (rows wanted, columns got)\n%-22s %-16s", "backend", "");
	for (int g = 0; g < SW_VERDICT_COUNT; g++)
		fprintf(to, " %14s", sw_verdict_name((sw_verdict)g));
	fputc('\n', to);
	for (size_t i = 0; i < r->n_backends; i++)
		for (int w = 0; w < SW_VERDICT_COUNT; w++) {
			const size_t *row = r->backends[i].matrix[w];
			if (!(row[0] + row[1] + row[2]))
				continue;
			fprintf(to, "%-22s %-16s", r->backends[i].name,
			        sw_verdict_name((sw_verdict)w));
			for (int g = 0; g < SW_VERDICT_COUNT; g++)
				fprintf(to, " %14zu", row[g]);
			fputc('\n', to);
		}
	for (size_t i = 0; i < r->n_backends; i++)
		if (r->backends[i].kinds[SW_OUTCOME_WRONG]) {
			fprintf(to, "  %s\n", r->backends[i].name);
			print_matrix(to, &r->backends[i]);
		}
}

static void print_coverage(FILE *to, const sw_corpus_report *r)
{
	size_t hit = 0, causes = 0, shown = 0;
	for (size_t i = 0; i < r->n_sigs; i++)
		hit += r->sigs[i].cases > 0;
	for (size_t i = 0; i < r->n_causes; i++)
		causes += r->causes[i].cases > 0;
	fprintf(to, "\nsignatures exercised by a case: %zu of %zu (%.1f %%)\n", hit, r->n_sigs,
	        r->n_sigs ? 100.0 * (double)hit / (double)r->n_sigs : 0.0);
	for (size_t i = 0; i < r->n_sigs; i++)
		if (!r->sigs[i].cases)
			fprintf(to, "%s%s", shown++ ? ", " : "  never: ", r->sigs[i].sig->id);
	fprintf(to, "%scauses with a case: %zu of %zu\n", shown ? "\n" : "", causes, r->n_causes);
	shown = 0;
	for (size_t i = 0; i < r->n_causes; i++)
		if (!r->causes[i].cases)
			fprintf(to, "%s%s", shown++ ? ", " : "  without: ", r->causes[i].slug);
	if (shown)
		fputc('\n', to);
}

void corpus_print_text(FILE *to, const sw_corpus_report *r)
{
	for (size_t i = 0; i < r->n_outcomes; i++)
		if (is_failure(&r->outcomes[i]))
			fprintf(to, "%s: %s: %s\n", r->outcomes[i].path,
			        outcome_names[r->outcomes[i].kind],
			        r->outcomes[i].detail ? r->outcomes[i].detail : "");
	print_backends(to, r);
	print_confusion(to, r);
	print_coverage(to, r);
	if (r->metamorphic)
		fprintf(to, "metamorphic relations: %zu tried, %zu broken\n", r->metamorphic,
		        r->metamorphic_failed);
	fprintf(to, "%zu cases: %zu right, %zu wrong, %zu todo",
	        r->n_outcomes - r->metamorphic_failed, r->kinds[SW_OUTCOME_RIGHT],
	        r->kinds[SW_OUTCOME_WRONG], r->kinds[SW_OUTCOME_TODO]);
	if (r->kinds[SW_OUTCOME_TODO_PASSES])
		fprintf(to, ", %zu todo that pass", r->kinds[SW_OUTCOME_TODO_PASSES]);
	if (r->kinds[SW_OUTCOME_BROKEN])
		fprintf(to, ", %zu broken files", r->kinds[SW_OUTCOME_BROKEN]);
	fputc('\n', to);
}

/* ---- JSON ---- */

static json_t *backend_json(const sw_backend_tally *t)
{
	json_t *o = json_object(), *confusion = json_object(), *agreement = json_object();
	json_object_set_new(o, "backend", json_string(t->name));
	json_object_set_new(o, "cases", json_integer((json_int_t)t->cases));
	json_object_set_new(o, "negative", json_integer((json_int_t)t->negative));
	for (int k = 0; k < SW_OUTCOME_BROKEN; k++)
		json_object_set_new(o, outcome_names[k], json_integer((json_int_t)t->kinds[k]));
	for (int w = 0; w < SW_VERDICT_COUNT; w++) {
		json_t *row = json_object();
		for (int g = 0; g < SW_VERDICT_COUNT; g++)
			json_object_set_new(row, sw_verdict_name((sw_verdict)g),
			                    json_integer((json_int_t)t->matrix[w][g]));
		json_object_set_new(confusion, sw_verdict_name((sw_verdict)w), row);
	}
	for (int i = 0; i < SW_MISS_KINDS; i++) {
		if (!t->expects[i])
			continue;
		json_t *pair = json_object();
		json_object_set_new(pair, "right",
		                    json_integer((json_int_t)(t->expects[i] - t->misses[i])));
		json_object_set_new(pair, "of", json_integer((json_int_t)t->expects[i]));
		json_object_set_new(agreement, sw_miss_names[i], pair);
	}
	json_object_set_new(o, "confusion", confusion);
	json_object_set_new(o, "agreement", agreement);
	return o;
}

static json_t *outcome_json(const sw_case_outcome *c)
{
	json_t *o = json_object(), *misses = json_array();
	json_object_set_new(o, "case", sw_json_z(c->name));
	json_object_set_new(o, "backend", sw_json_z(c->backend));
	json_object_set_new(o, "file", sw_json_z(c->path));
	json_object_set_new(o, "outcome", json_string(outcome_names[c->kind]));
	for (int i = 0; i < SW_MISS_KINDS; i++)
		if (c->misses >> i & 1)
			json_array_append_new(misses, json_string(sw_miss_names[i]));
	json_object_set_new(o, "misses", misses);
	json_object_set_new(o, "detail", sw_json_z(c->detail));
	return o;
}

json_t *corpus_report_json(const sw_corpus_report *r)
{
	json_t *o = json_object(), *backends = json_array(), *cases = json_array(),
	       *sigs = json_array(), *causes = json_array();
	for (size_t i = 0; i < r->n_backends; i++)
		json_array_append_new(backends, backend_json(&r->backends[i]));
	for (size_t i = 0; i < r->n_outcomes; i++)
		json_array_append_new(cases, outcome_json(&r->outcomes[i]));
	for (size_t i = 0; i < r->n_sigs; i++) {
		json_t *s = json_object();
		json_object_set_new(s, "id", json_string(r->sigs[i].sig->id));
		json_object_set_new(s, "backend", json_string(r->sigs[i].backend));
		json_object_set_new(s, "cases", json_integer((json_int_t)r->sigs[i].cases));
		json_object_set_new(s, "decided", json_integer((json_int_t)r->sigs[i].decided));
		json_array_append_new(sigs, s);
	}
	for (size_t i = 0; i < r->n_causes; i++) {
		json_t *c = json_object();
		json_object_set_new(c, "cause", json_string(r->causes[i].slug));
		json_object_set_new(c, "cases", json_integer((json_int_t)r->causes[i].cases));
		json_array_append_new(causes, c);
	}
	json_object_set_new(o, "all_right", json_boolean(sw_corpus_all_right(r)));
	for (int k = 0; k < SW_OUTCOME_COUNT; k++)
		json_object_set_new(o, outcome_names[k], json_integer((json_int_t)r->kinds[k]));
	json_object_set_new(o, "metamorphic", json_integer((json_int_t)r->metamorphic));
	json_object_set_new(o, "metamorphic_broken",
	                    json_integer((json_int_t)r->metamorphic_failed));
	json_object_set_new(o, "backends", backends);
	json_object_set_new(o, "cases", cases);
	json_object_set_new(o, "signatures", sigs);
	json_object_set_new(o, "causes", causes);
	return o;
}

/* ---- TAP and JUnit ---- */

void corpus_print_tap(FILE *to, const sw_corpus_report *r)
{
	fprintf(to, "TAP version 13\n1..%zu\n", r->n_outcomes);
	for (size_t i = 0; i < r->n_outcomes; i++) {
		const sw_case_outcome *o = &r->outcomes[i];
		bool bad = is_failure(o) || o->kind == SW_OUTCOME_TODO;
		fprintf(to, "%sok %zu - %s/%s%s\n", bad ? "not " : "", i + 1, o->backend, o->name,
		        o->kind == SW_OUTCOME_TODO ? " # TODO" : "");
		if (is_failure(o) && o->detail)
			fprintf(to, "# %s\n", o->detail);
	}
}

static void put_xml(FILE *to, const char *z)
{
	for (; z && *z; z++) {
		unsigned char c = (unsigned char)*z;
		if (c == '&' || c == '<' || c == '>' || c == '"')
			fprintf(to, "&#%d;", c);
		else if (c >= 0x20 || c == '\n' || c == '\t')
			fputc(c, to);
	}
}

int corpus_write_junit(const char *path, const sw_corpus_report *r)
{
	FILE *to = fopen(path, "we");
	if (!to) {
		sw_error err;
		sw_error_set(&err, SW_EIO, "cannot write %.200s: %m", path);
		return cli_fail(&err);
	}
	size_t failures = 0;
	for (size_t i = 0; i < r->n_outcomes; i++)
		failures += is_failure(&r->outcomes[i]);
	fprintf(to,
	        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites><testsuite "
	        "name=\"corpus\" tests=\"%zu\" "
	        "failures=\"%zu\" skipped=\"%zu\">\n",
	        r->n_outcomes, failures, r->kinds[SW_OUTCOME_TODO]);
	for (size_t i = 0; i < r->n_outcomes; i++) {
		const sw_case_outcome *o = &r->outcomes[i];
		fputs("<testcase classname=\"", to);
		put_xml(to, o->backend);
		fputs("\" name=\"", to);
		put_xml(to, o->name);
		fputs("\">", to);
		if (is_failure(o) || o->kind == SW_OUTCOME_TODO) {
			fputs(is_failure(o) ? "<failure message=\"" : "<skipped message=\"", to);
			put_xml(to, o->detail);
			fputs("\"/>", to);
		}
		fputs("</testcase>\n", to);
	}
	fputs("</testsuite></testsuites>\n", to);
	if (fclose(to) == 0)
		return CLI_OK;
	sw_error err;
	sw_error_set(&err, SW_EIO, "cannot write %.200s: %m", path);
	return cli_fail(&err);
}
