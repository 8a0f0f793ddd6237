/* sandwitness report */
#include "client.h"
#include "store_cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_verb cli_verb_report;

static void footer(const json_t *report)
{
	const json_t *next = json_object_get(report, "next");
	if (json_array_size(json_object_get(report, "rows")) == 0)
		puts("(none)");
	if (json_is_string(next))
		printf("more: --cursor %s\n", json_string_value(next));
	printf("-- ");
	store_print_head(stdout, json_object_get(report, "head"));
}

/* Advice is text, not a column. */
static void advice(const json_t *rows)
{
	size_t i;
	json_t *row;
	json_array_foreach((json_t *)rows, i, row)
	{
		const json_t *a = json_object_get(row, "advice");
		const json_t *cause = json_object_get(row, "cause");
		if (!json_is_string(a))
			continue;
		char *c = store_cell_text(cause, "text");
		printf("\n%s\n", c ? c : "");
		free(c);
		for (const char *p = json_string_value(a); p && *p;) {
			size_t n = strcspn(p, "\n");
			char *z = sw_escape_tty(p, n);
			printf("  %s\n", z ? z : "");
			free(z);
			p += n + (p[n] == '\n');
		}
	}
}

static void print_people(const char *name, const json_t *report)
{
	json_t *columns = json_deep_copy(json_object_get(report, "columns"));
	const json_t *rows = json_object_get(report, "rows");
	size_t n = json_array_size(columns);
	bool advised =
	    n && strcmp(json_string_value(json_object_get(json_array_get(columns, n - 1), "name")),
	                "advice") == 0;
	if (advised)
		json_array_remove(columns, n - 1);
	if (strcmp(name, "summary") == 0) {
		size_t i;
		json_t *row;
		json_array_foreach((json_t *)rows, i, row)
		{
			const json_t *v = json_object_get(row, "value");
			char *z = store_cell_text(v, json_is_string(v) ? "time" : "text");
			printf("%-20s  %s\n", json_string_value(json_object_get(row, "name")),
			       z ? z : "");
			free(z);
		}
	} else if (json_array_size(rows)) {
		store_print_table(stdout, columns, rows);
	}
	if (advised)
		advice(rows);
	json_decref(columns);
	footer(report);
}

static int from_server(const store_options *o, const char *name, json_t **report, sw_error *err)
{
	sw_buf path;
	sw_buf_init(&path, 4096);
	sw_buf_adds(&path, "/v1/reports/");
	cli_server_escape(&path, name);
	int code = path.error ? sw_error_set(err, SW_ETOOBIG, "the name is too long")
	                      : store_server_get(o, path.ptr, report, err);
	sw_buf_free(&path);
	return code;
}

static int run(int argc, char **argv)
{
	store_options o = {0};
	const char *name = NULL;
	int status = CLI_OK;
	cli_args a;
	cli_args_init(&a, &cli_verb_report, argc, argv);
	for (int t; status == CLI_OK && (t = cli_args_next(&a));) {
		if (t == 2) {
			if (name)
				status = cli_usage_error(&cli_verb_report, "one report at a time");
			name = a.inline_value;
			continue;
		}
		int taken = store_option(&o, &a);
		if (taken <= 0)
			status = taken < 0 ? CLI_USAGE : cli_args_unknown(&a);
	}
	if (status == CLI_OK && o.json && o.csv)
		status = cli_usage_error(&cli_verb_report, "--json and --csv together");
	const char *which = name ? name : "summary";
	if (status == CLI_OK && !o.server && !store_confine_begin(&o.confine, &status)) {
		store_options_free(&o);
		return status;
	}
	sw_store *s = status == CLI_OK && !o.server ? store_open_confined(&o, &status) : NULL;
	if (s || (status == CLI_OK && o.server)) {
		sw_error err = {0};
		json_t *report = NULL;
		int code = s ? sw_store_report(s, which, &o.q, &report, &err)
		             : from_server(&o, which, &report, &err);
		code = store_whole(code, &err);
		if (code != 0)
			status = cli_fail(&err);
		else if (o.json)
			store_print_json(report);
		else if (o.csv)
			store_print_csv(stdout, json_object_get(report, "columns"),
			                json_object_get(report, "rows"));
		else
			print_people(which, report);
		json_decref(report);
		sw_store_close(s);
	}
	store_confine_end(&o.confine);
	store_options_free(&o);
	return store_finish(status);
}

const cli_verb cli_verb_report = {
    .name = "report",
    .summary = "count what was recorded: verdicts, downgrades, failures, denials, ...",
    .usage = "[NAME] " STORE_FILTER_USAGE
             " [--json | --csv] [--no-self-sandbox] [--db PATH | --server unix:PATH]",
    .help = "NAME is one of\n"
            "  summary      the period in a few numbers (the default)\n"
            "  timeline     the verdicts in equal stretches of time\n"
            "  verdicts     how invocations ended\n"
            "  downgrades   less containment than requested, what was lost and why\n"
            "  unexplained  downgrades that nobody gave a reason for\n"
            "  violations   below the required minimum\n"
            "  failures     the sandbox itself broke or was refused; advice once per cause\n"
            "  denials      what the sandbox denied: paths, hosts, calls\n"
            "  levels, backends, causes, signatures, sessions, devices\n"
            "  unfinished   begun and never ended\n\n" STORE_FILTER_HELP
            "  --json, --csv          the same rows for programs\n" STORE_CONFINE_HELP "\n"
            "The last line names the head of the chain: keep it elsewhere, and\n"
            "`sandwitness verify --anchor SEQ:HASH` later proves that nothing was cut off.\n\n"
            "  $ sandwitness report downgrades --since week-ago\n"
            "  $ sandwitness report denials --session s-17 --json\n",
    .run = run};
