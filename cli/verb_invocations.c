/* sandwitness invocations */
#include "client.h"
#include "store_cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_verb cli_verb_invocations;

static int collect(void *arg, json_t *o)
{
	json_array_append(arg, o);
	return 0;
}

static int print_one(void *arg, json_t *o)
{
	(void)arg;
	store_print_json(o);
	return ferror(stdout);
}

static json_t *list_columns(void)
{
	static const char *const c[][2] = {{"started_at", "time"}, {"id", "id"},
	                                   {"backend", "text"},    {"verdict", "text"},
	                                   {"exit", "number"},     {"requested", "text"},
	                                   {"effective", "text"},  {"lost", "set"},
	                                   {"cause", "text"},      {"command", "command"}};
	json_t *a = json_array();
	for (size_t i = 0; i < sizeof c / sizeof *c; i++)
		json_array_append_new(a, json_pack("{s:s,s:s}", "name", c[i][0], "kind", c[i][1]));
	return a;
}

/* As sw_store_invocations(), from a service. */
static int list_from_server(const store_options *o, json_t *rows, char **next, sw_error *err)
{
	json_t *answer = NULL, *row;
	size_t i;
	int code = store_server_get(o, "/v1/invocations", &answer, err);
	json_array_foreach(json_object_get(answer, "invocations"), i, row)
	{
		if (o->json)
			store_print_json(row);
		else
			json_array_append(rows, row);
	}
	const char *cursor = json_string_value(json_object_get(answer, "next"));
	if (cursor && !(*next = strdup(cursor)))
		sw_text_lacks();
	json_decref(answer);
	return code;
}

static int list(sw_store *s, const store_options *o)
{
	sw_error err = {0};
	char *next = NULL;
	json_t *rows = json_array();
	int code = !s        ? list_from_server(o, rows, &next, &err)
	           : o->json ? sw_store_invocations(s, &o->q, print_one, NULL, &next, &err)
	                     : sw_store_invocations(s, &o->q, collect, rows, &next, &err);
	code = store_whole(code, &err);
	int status = code == 0 ? CLI_OK : cli_fail(&err);
	if (code == 0 && !o->json) {
		json_t *columns = list_columns();
		if (o->csv)
			store_print_csv(stdout, columns, rows);
		else if (json_array_size(rows))
			store_print_table(stdout, columns, rows);
		else
			puts("(none)");
		json_decref(columns);
		if (next && !o->csv)
			printf("more: --cursor %s\n", next);
	}
	json_decref(rows);
	free(next);
	return status;
}

static void print_about(const json_t *o)
{
	const char *key;
	json_t *v;
	json_object_foreach((json_t *)o, key, v)
	{
		if (strcmp(key, "output") == 0 || strcmp(key, "output_b64") == 0)
			continue;
		if (json_is_null(v) || (json_is_array(v) && !json_array_size(v)) ||
		    (json_is_object(v) && !json_object_size(v)))
			continue;
		char *z;
		if (json_is_array(v) && !json_is_string(json_array_get(v, 0))) {
			char *j = sw_json_dump(v);
			z = j ? sw_escape_tty(j, strlen(j)) : NULL;
			free(j);
		} else {
			z = store_cell_text(v, strcmp(key, "command") == 0 ? "command" : "text");
		}
		printf("%-22s  %s\n", key, z ? z : "");
		free(z);
	}
	const json_t *out = json_object_get(o, "output");
	if (!json_is_string(out))
		return;
	puts("\noutput (kept):");
	const char *p = json_string_value(out), *end = p + json_string_length(out);
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = nl ? (size_t)(nl - p) : (size_t)(end - p);
		char *z = sw_escape_tty(p, n);
		printf("  %s\n", z ? z : "");
		free(z);
		p += n + 1;
	}
}

static int one_from_server(const store_options *o, const char *id, json_t **j, sw_error *err)
{
	sw_buf path;
	sw_buf_init(&path, 4096);
	sw_buf_adds(&path, "/v1/invocations/");
	cli_server_escape(&path, id);
	int code = path.error ? sw_error_set(err, SW_ETOOBIG, "the id is too long")
	                      : cli_server_call(o->server, path.ptr, NULL, j, err);
	sw_buf_free(&path);
	return code;
}

static int show(sw_store *s, const store_options *o, const char *id)
{
	sw_error err = {0};
	json_t *j = NULL;
	int code = s ? sw_store_invocation(s, id, &j, &err) : one_from_server(o, id, &j, &err);
	if (store_whole(code, &err) != 0) {
		json_decref(j);
		return cli_fail(&err);
	}
	if (o->json)
		store_print_json(j);
	else
		print_about(j);
	json_decref(j);
	return CLI_OK;
}

static int run(int argc, char **argv)
{
	store_options o = {0};
	const char *words[2] = {NULL, NULL};
	size_t n = 0;
	int status = CLI_OK;
	cli_args a;
	cli_args_init(&a, &cli_verb_invocations, argc, argv);
	for (int t; status == CLI_OK && (t = cli_args_next(&a));) {
		if (t == 2) {
			if (n == 2)
				status = cli_usage_error(&cli_verb_invocations, "one id at a time");
			else
				words[n++] = a.inline_value;
			continue;
		}
		int taken = store_option(&o, &a);
		if (taken <= 0)
			status = taken < 0 ? CLI_USAGE : cli_args_unknown(&a);
	}
	if (status == CLI_OK && n && (strcmp(words[0], "show") != 0 || n != 2))
		status =
		    cli_usage_error(&cli_verb_invocations, n == 1 && strcmp(words[0], "show") == 0
		                                               ? "show needs an id"
		                                               : "only \"show ID\" is understood");
	if (status == CLI_OK && !o.server && !store_confine_begin(&o.confine, &status)) {
		store_options_free(&o);
		return status;
	}
	sw_store *s = status == CLI_OK && !o.server ? store_open_confined(&o, &status) : NULL;
	if (s || (status == CLI_OK && o.server)) {
		status = n ? show(s, &o, words[1]) : list(s, &o);
		sw_store_close(s);
	}
	store_confine_end(&o.confine);
	store_options_free(&o);
	return store_finish(status);
}

const cli_verb cli_verb_invocations = {
    .name = "invocations",
    .summary = "list what was recorded, newest first; show one",
    .usage = "[show ID] " STORE_FILTER_USAGE
             " [--json | --csv] [--no-self-sandbox] [--db PATH | --server unix:PATH]",
    .help = STORE_FILTER_HELP
    "  --json                 one object per line, the verdict's fields at the top "
    "level\n" STORE_CONFINE_HELP
    "  show ID                all that is known about one, its kept output included\n\n"
    "  $ sandwitness invocations --limit 5\n"
    "  $ sandwitness invocations --verdict runner_failed --since today --json\n",
    .run = run};
