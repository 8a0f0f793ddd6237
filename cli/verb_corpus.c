/* sandwitness corpus check | add | capture | import */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "corpus_cli.h"

static const sw_pack *pack_for(void *payload, const char *backend, sw_error *err)
{
	return cli_pack_quiet(payload, backend, err);
}

static void progress(void *payload, size_t done)
{
	(void)payload;
	if (done % 100 == 0)
		fprintf(stderr, "\r%zu cases", done);
}

int corpus_check(const corpus_options *o)
{
	const sw_pack_set *set = cli_pack_set(o->signatures, o->pack_set);
	sw_corpus_report report;
	sw_error err = {0};
	if (!set)
		return CLI_USAGE;
	const sw_pack_file *files;
	size_t n = cli_pack_files(&files);
	bool show = isatty(2) && !o->quiet;
	sw_corpus_options options = {.backend = o->backend,
	                             .name = o->name,
	                             .metamorphic = o->metamorphic,
	                             .pack = pack_for,
	                             .payload = (void *)(uintptr_t)set,
	                             .progress = show ? progress : NULL};
	if (sw_corpus_check(o->dir, files, n, &options, &report, &err))
		return cli_fail(&err);
	if (show)
		fputs("\r              \r", stderr);
	if (!report.n_outcomes) {
		sw_corpus_report_free(&report);
		sw_error_set(&err, SW_ENOTFOUND, "no case in %.200s fits", o->dir);
		sw_error_more(
		    &err, NULL, NULL,
		    "name a folder that holds BACKEND/NAME.yaml, or another --backend or --name");
		return cli_fail(&err);
	}
	int rc = o->junit ? corpus_write_junit(o->junit, &report) : CLI_OK;
	if (o->json)
		cli_print_json(stdout, corpus_report_json(&report));
	else if (o->tap)
		corpus_print_tap(stdout, &report);
	else
		corpus_print_text(stdout, &report);
	bool right = sw_corpus_all_right(&report);
	sw_corpus_report_free(&report);
	return rc ? rc : right ? CLI_OK : CLI_RUNNER_FAILED;
}

typedef struct text_option {
	const char *name;
	const char **to;
} text_option;

typedef struct flag_option {
	const char *name;
	bool *to;
} flag_option;

/* 1: taken, 0: not one of these, -1: no value. */
static int take(corpus_options *o, cli_args *a)
{
	const text_option texts[] = {{"dir", &o->dir},           {"backend", &o->backend},
	                             {"name", &o->name},         {"signatures", &o->signatures},
	                             {"pack-set", &o->pack_set}, {"junit", &o->junit},
	                             {"causes", &o->map},        {"notes", &o->notes},
	                             {"documented", &o->output}, {"expect", &o->expect},
	                             {"stage", &o->stage},       {"cause", &o->cause},
	                             {"line", &o->line},         {"resource", &o->resource},
	                             {"truth", &o->truth},       {"reason", &o->reason},
	                             {"note", &o->note}};
	const flag_option flags[] = {
	    {"json", &o->json},       {"tap", &o->tap},   {"metamorphic", &o->metamorphic},
	    {"replace", &o->replace}, {"todo", &o->todo}, {"quiet", &o->quiet}};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!strcmp(a->name, texts[i].name))
			return (*texts[i].to = cli_args_value(a)) ? 1 : -1;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (!strcmp(a->name, flags[i].name)) {
			*flags[i].to = true;
			return 1;
		}
	return 0;
}

static int take_fact(corpus_options *o, cli_args *a)
{
	sw_error err = {0};
	const char *value = "";
	int known = 0;
#define KNOWN(n) known |= !strcmp(a->name, n);
	CLI_FACT_OPTIONS(KNOWN)
#undef KNOWN
	if (!known)
		return cli_args_unknown(a);
	if (!(value = cli_args_value(a)))
		return CLI_USAGE;
	if (cli_facts_option(&o->facts, a->name, value, &err) < 0)
		return cli_fail(&err);
	return 0;
}

static int parse(corpus_options *o, const cli_verb *self, int argc, char **argv,
                 const char **action)
{
	cli_args a;
	cli_args_init(&a, self, argc, argv);
	o->argv = calloc((size_t)argc + 1, sizeof(char *));
	if (!o->argv)
		return cli_no_memory();
	for (int t; (t = cli_args_next(&a));) {
		if (t == 2) {
			if (!*action)
				*action = a.inline_value;
			else
				o->argv[o->argc++] = (char *)(uintptr_t)a.inline_value;
			continue;
		}
		int taken = take(o, &a);
		int rc = taken < 0 ? CLI_USAGE : taken ? 0 : take_fact(o, &a);
		if (rc)
			return rc;
	}
	return 0;
}

static int run_verb(int argc, char **argv)
{
	const cli_verb *self = cli_verb_find("corpus");
	corpus_options o = {.dir = NULL};
	const char *action = NULL;
	cli_facts_init(&o.facts);
	int rc = parse(&o, self, argc, argv, &action);
	bool check = action && !strcmp(action, "check");
	if (!rc && check && o.argc > 1)
		rc = cli_usage_error(self, "check takes one folder");
	if (!o.dir)
		o.dir = check && o.argc ? o.argv[0] : "corpus";
	if (rc)
		;
	else if (check)
		rc = corpus_check(&o);
	else if (action && !strcmp(action, "add"))
		rc = corpus_add(&o, self);
	else if (action && !strcmp(action, "capture"))
		rc = corpus_capture(&o, self);
	else if (action && !strcmp(action, "import"))
		rc = corpus_import(&o, self);
	else
		rc = cli_usage_error(self, "%s",
		                     action ? "unknown action"
		                            : "no action: check, add, capture or import");
	free(o.argv);
	return rc;
}

const cli_verb cli_verb_corpus = {
    .name = "corpus",
    .summary = "check the regression corpus, add cases to it",
    .usage = "check [DIR] | add FILE | capture -- ARGV... | import FILE...",
    .help =
        "check classifies every case of DIR (default: corpus) and compares. It never stops early.\n"
        "Exit status: 0 all right, 10 something wrong.\n"
        "  --backend B, --name PART   only these cases\n"
        "  --metamorphic              also the relations that hold of every case (docs/corpus.md)\n"
        "  --json, --tap              as JSON, as TAP; --junit FILE writes JUnit beside it\n"
        "  --signatures DIR, --pack-set NAME\n"
        "\n"
        "add makes a case of a captured output in one step. What the classifier says now is "
        "expected,\n"
        "unless --expect VERDICT (with --stage, --cause, --line, --resource) says otherwise.\n"
        "  --name NAME, --backend B, --exit N | --signal N, facts as in classify\n"
        "  --dir DIR, --replace, --todo --reason TEXT, --truth WORD, --note TEXT\n"
        "  --documented SOURCE        the output comes from a document, not from a run\n"
        "\n"
        "capture runs ARGV, which holds its runner, and makes a case of what it printed.\n"
        "  --name NAME and the options of add\n"
        "\n"
        "import makes cases of labelled outputs, one JSON object per line.\n"
        "  --causes FILE              words for causes and their slugs (tests/data/cause-map.tsv)\n"
        "  --notes FILE               labels found wrong (tests/data/label-notes.tsv)\n"
        "\n"
        "Examples:\n"
        "  $ sandwitness corpus check corpus --backend bwrap --quiet\n"
        "  $ printf 'bwrap: execvp nosuch: No such file or directory\\n' | sandwitness corpus add "
        "- --dir /tmp/sandwitness-corpus --backend bwrap --exit 1 --name missing-program "
        "--replace\n"
        "  $ sandwitness corpus capture --dir /tmp/sandwitness-corpus --name missing-bind "
        "--replace -- bwrap --ro-bind /nosuch /nosuch true\n",
    .run = run_verb,
};
