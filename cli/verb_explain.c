/* sandwitness explain */
#include "args.h"
#include "self_sandbox.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUTPUT_MAX (256u << 20)

typedef struct options {
	const char *backend, *file, *signatures, *pack_set;
	bool json, no_self_sandbox;
	cli_facts f;
} options;

static const char *const near_texts[SW_NEAR_COUNT] = {
    [SW_NEAR_COLUMN] = "ignored: fatal counts at column 0 only",
    [SW_NEAR_EXIT] = "ignored: its exit gate does not admit this exit",
    [SW_NEAR_POSITION] =
        "ignored: lines of the command stand where the runner could not have spoken",
    [SW_NEAR_INFORMATIONAL] = "dropped: a notice of the runner",
    [SW_NEAR_VETO] = "removed by a veto on its line",
    [SW_NEAR_SCOPE] = "not seen: the line is the runner's own",
    [SW_NEAR_FACTS] = "does not decide with the facts given",
    [SW_NEAR_STARTED] = "not the runner's line: the command is known to have started",
    [SW_NEAR_BOTH] = "fatal and denial at once: counted as denial",
    [SW_NEAR_REGEX] = "the words are there, the pattern does not agree",
};

static int parse(options *o, const cli_verb *self, int argc, char **argv)
{
	const cli_flag flags[] = {{"json", &o->json},
	                          {"timed-out", &o->f.exit.timed_out},
	                          {"no-self-sandbox", &o->no_self_sandbox},
	                          {NULL, NULL}};
	const cli_text texts[] = {{"backend", &o->backend},
	                          {"signatures", &o->signatures},
	                          {"pack-set", &o->pack_set},
	                          {NULL, NULL}};
	cli_args a;
	cli_args_init(&a, self, argc, argv);
	return cli_args_all(&a, flags, texts, &o->f, &o->file);
}

static void put_line(sw_str s, size_t most)
{
	char *safe = sw_escape_tty(s.ptr, s.len < most ? s.len : most);
	fputs(safe ? safe : "", stdout);
	if (s.len > most)
		fputs("...", stdout);
	fputc('\n', stdout);
	free(safe);
}

/* A caret below what decided: the resource, else the literal, else column 0. */
static void put_caret(const sw_hit *h, int indent)
{
	const char *at = NULL;
	size_t width = 1;
	if (h->resource_kind && h->resource.len) {
		at = memmem(h->line.ptr, h->line.len, h->resource.ptr, h->resource.len);
		width = h->resource.len;
	}
	for (uint16_t i = 0; !at && i < h->sig->n_literals; i++) {
		at = strcasestr(h->line.ptr, h->sig->literals[i]);
		width = strlen(h->sig->literals[i]);
	}
	size_t column = at ? (size_t)(at - h->line.ptr) : 0;
	if (column > 400)
		return;
	/* As wide as what stands before it when escaped. */
	char *before = sw_escape_tty(h->line.ptr, column),
	     *mark = sw_escape_tty(h->line.ptr + column, at ? width : 1);
	size_t pad = before ? strlen(before) : 0, carets = mark ? strlen(mark) : 1;
	printf("%*s^", indent + (int)pad, "");
	for (size_t i = 1; i < carets && i < 200; i++)
		fputc('~', stdout);
	fputc('\n', stdout);
	free(before);
	free(mark);
}

static void put_decision(const sw_result *r)
{
	if (!r->has_hit)
		return;
	printf("\ndecided by %s (%s)\n", r->hit.sig->id, r->hit.sig->origin);
	if (r->hit.line_number) {
		int indent = printf("%6llu | ", (unsigned long long)r->hit.line_number);
		put_line(r->hit.line, 400);
		put_caret(&r->hit, indent);
	}
}

static void put_text(const sw_explanation *e, const options *o)
{
	const sw_result *r = e->result;
	cli_print_verdict(stdout, r, true, sw_colour_wanted(STDOUT_FILENO));
	put_decision(r);
	fputs("\nrules\n", stdout);
	for (size_t i = 0; i < e->n_rules; i++)
		printf("  %s %d  %s\n", e->rules[i].applied ? "=>" : "  ", e->rules[i].rule,
		       e->rules[i].text);
	if (e->n_nears)
		fputs("\nnear misses\n", stdout);
	for (size_t i = 0; i < e->n_nears; i++) {
		const sw_near *n = &e->nears[i];
		printf("%6llu | ", (unsigned long long)n->line_number);
		put_line(n->line, 160);
		printf("         %s (%s): column %llu, %s\n", n->sig->id, n->sig->origin,
		       (unsigned long long)n->column, near_texts[n->kind]);
	}
	if (r->n_observations)
		fputs("\nobservations\n", stdout);
	for (size_t i = 0; i < r->n_observations; i++) {
		const sw_observation *ob = &r->observations[i];
		printf("  %s%s%s\n", sw_observation_name(ob->kind), ob->hit.sig ? ": " : "",
		       ob->hit.sig ? ob->hit.sig->id : "");
	}
	if (e->n_unclaimed_total)
		printf("\nlines that no signature claims: %llu%s\n",
		       (unsigned long long)e->n_unclaimed_total,
		       e->n_unclaimed < e->n_unclaimed_total ? ", the first of them" : "");
	for (size_t i = 0; i < e->n_unclaimed; i++) {
		printf("%6llu | ", (unsigned long long)e->unclaimed_numbers[i]);
		put_line(e->unclaimed[i], 160);
	}
	printf("\nmake it a corpus case:\n  sandwitness corpus add --backend %s ", r->backend);
	if (r->exit.has_code)
		printf("--exit %lld ", (long long)r->exit.code);
	else if (r->exit.signal)
		printf("--signal %d ", r->exit.signal);
	printf("--expect %s %s\n", sw_verdict_name(r->verdict),
	       o->file && strcmp(o->file, "-") != 0 ? o->file : "OUTPUT-FILE");
}

static json_t *to_json(const sw_explanation *e)
{
	json_t *o = cli_result_json(e->result, NULL), *rules = json_array(), *nears = json_array(),
	       *lines = json_array();
	json_object_set_new(o, "signature_file",
	                    sw_json_z(e->result->has_hit ? e->result->hit.sig->origin : NULL));
	for (size_t i = 0; i < e->n_rules; i++) {
		json_t *x = json_object();
		json_object_set_new(x, "rule", json_integer(e->rules[i].rule));
		json_object_set_new(x, "applied", json_boolean(e->rules[i].applied));
		json_object_set_new(x, "text", sw_json_z(e->rules[i].text));
		json_array_append_new(rules, x);
	}
	for (size_t i = 0; i < e->n_nears; i++) {
		const sw_near *n = &e->nears[i];
		json_t *x = json_object();
		json_object_set_new(x, "kind", sw_json_z(sw_near_name(n->kind)));
		json_object_set_new(x, "why", sw_json_z(near_texts[n->kind]));
		json_object_set_new(x, "signature", sw_json_z(n->sig->id));
		json_object_set_new(x, "signature_file", sw_json_z(n->sig->origin));
		json_object_set_new(x, "line_number", json_integer((json_int_t)n->line_number));
		json_object_set_new(x, "column", json_integer((json_int_t)n->column));
		json_object_set_new(
		    x, "line",
		    sw_json_text((sw_str){n->line.ptr, n->line.len < SW_LINE_REPORT_MAX
		                                           ? n->line.len
		                                           : SW_LINE_REPORT_MAX}));
		json_array_append_new(nears, x);
	}
	for (size_t i = 0; i < e->n_unclaimed; i++) {
		json_t *x = json_object();
		sw_str s = e->unclaimed[i];
		json_object_set_new(x, "line_number",
		                    json_integer((json_int_t)e->unclaimed_numbers[i]));
		json_object_set_new(
		    x, "line",
		    sw_json_text(
		        (sw_str){s.ptr, s.len < SW_LINE_REPORT_MAX ? s.len : SW_LINE_REPORT_MAX}));
		json_array_append_new(lines, x);
	}
	json_object_set_new(o, "rules", rules);
	json_object_set_new(o, "near_misses", nears);
	json_object_set_new(o, "unclaimed", lines);
	json_object_set_new(o, "unclaimed_total", json_integer((json_int_t)e->n_unclaimed_total));
	return o;
}

static int run(int argc, char **argv)
{
	const cli_verb *self = cli_verb_find("explain");
	options o = {0};
	cli_facts_init(&o.f);
	int rc = parse(&o, self, argc, argv);
	if (rc)
		return rc;
	if (!o.backend)
		return cli_usage_error(
		    self, "--backend is missing; `sandwitness signatures list` shows the backends");
	if (!o.f.has_exit && !o.f.exit.timed_out)
		return cli_usage_error(self, "--exit is missing (or --signal, or --timed-out)");
	const sw_pack_set *set = cli_pack_set(o.signatures, o.pack_set);
	const sw_pack *pack = set ? cli_pack(set, o.backend) : NULL;
	if (!pack)
		return CLI_USAGE;
	char *text;
	size_t n;
	sw_error err;
	if (sw_read_file(o.file ? o.file : "-", OUTPUT_MAX, &text, &n, &err)) {
		sw_error_print(stderr, &err);
		return CLI_IO;
	}
	sw_explanation *e = NULL;
	if (!o.no_self_sandbox)
		sw_self_sandbox(SW_SELF_PURE, NULL, NULL);
	rc = sw_explain(pack, &o.f.facts, o.f.exit, o.f.started, o.f.source, text, n, &e, &err);
	free(text);
	if (rc)
		return cli_fail(&err);
	if (o.json)
		cli_print_json(stdout, to_json(e));
	else
		put_text(e, &o);
	sw_explanation_free(e);
	return CLI_OK;
}

const cli_verb cli_verb_explain = {
    .name = "explain",
    .summary = "show the whole decision about an output",
    .usage = "--backend B (--exit N | --signal S | --timed-out) [options] [FILE]",
    .help = "Takes the options of `classify` (--no-self-sandbox too) and shows the deciding line, "
            "the signature with its\n"
            "file and line, the rules in order, what nearly matched and why it did not, what no\n"
            "signature claims, and the command that makes this a corpus case.\n\n"
            "Examples:\n"
            "  $ echo 'bwrap: setting up uid map: Permission denied' | sandwitness explain "
            "--backend bwrap --exit 1\n"
            "  $ echo '  bwrap: setting up uid map: Permission denied' | sandwitness explain "
            "--backend bwrap --exit 1 --json\n",
    .run = run,
};
