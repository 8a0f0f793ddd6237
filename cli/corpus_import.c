/* `corpus import`: labelled outputs, one JSON object per line, become cases. */
#include <stdlib.h>
#include <string.h>

#include "corpus_cli.h"

#define IMPORT_MAX (256u << 20)
#define CELLS_MAX 5

/* A table of tab-separated cells in a file; lines of '#' are remarks. */
typedef struct table {
	char *text;
	char **cells; /* CELLS_MAX per row, "" where missing */
	size_t rows;
} table;

static void table_free(table *t)
{
	free(t->text);
	free(t->cells);
}

static int table_load(table *t, const char *path, sw_error *err)
{
	size_t n = 0, lines = 1;
	memset(t, 0, sizeof(*t));
	if (!path)
		return 0;
	int rc = sw_read_file(path, 8u << 20, &t->text, &n, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++)
		lines += t->text[i] == '\n';
	t->cells = calloc(lines * CELLS_MAX, sizeof(char *));
	if (!t->cells)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	char *save = NULL;
	for (char *line = strtok_r(t->text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char **row = t->cells + t->rows * CELLS_MAX, *rest = line;
		if (line[0] == '#')
			continue;
		for (int i = 0; i < CELLS_MAX; i++) {
			char *cell = strsep(&rest, "\t");
			row[i] = cell ? cell : (char *)(uintptr_t) "";
		}
		t->rows++;
	}
	return 0;
}

typedef struct importer {
	const corpus_options *o;
	json_t *taken; /* names of this run: ids may differ in case only */
	const sw_pack_set *set;
	table map, notes;
	size_t imported, todo, unmapped, bad;
	const char *file;
	size_t line;
} importer;

static const char *text_of(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

/* ---- labels corrected by label-notes.tsv ---- */

static const char *row_key(const char *field)
{
	static const char *const pairs[][2] = {{"verdict", "expect"},
	                                       {"resource", "denied_resource"}};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (!strcmp(pairs[i][0], field))
			return pairs[i][1];
	return field;
}

/* Applies the corrections to the row and says them in `corrected`. */
static json_t *correct(const importer *im, json_t *row)
{
	json_t *list = json_array();
	const char *id = text_of(row, "id");
	for (size_t i = 0; id && im->notes.cells && i < im->notes.rows; i++) {
		char **cell = im->notes.cells + i * CELLS_MAX;
		if (!cell[0] || strcmp(cell[0], id) != 0)
			continue;
		if (!strcmp(cell[1],
		            "also")) { /* no correction: another runner's words are in it */
			json_t *also = json_object_get(row, "also");
			if (!also && json_object_set_new(row, "also", also = json_array()))
				continue;
			json_array_append_new(also, json_string(cell[2]));
			continue;
		}
		json_t *o = json_object();
		const json_t *was = json_object_get(row, row_key(cell[1]));
		json_object_set_new(o, "label", json_string(cell[1]));
		json_object_set_new(o, "was",
		                    json_is_string(was) ? json_copy((json_t *)(uintptr_t)was)
		                                        : json_null());
		json_object_set_new(o, "reason", json_string(cell[3]));
		json_array_append_new(list, o);
		if (!strcmp(cell[1], "undecidable"))
			json_object_set_new(row, cell[1], json_boolean(!strcmp(cell[2], "yes")));
		else if (!cell[2][0] || !strcmp(cell[2], "-"))
			json_object_del(row, row_key(cell[1]));
		else
			json_object_set_new(row, row_key(cell[1]), json_string(cell[2]));
	}
	if (json_array_size(list))
		return list;
	json_decref(list);
	return NULL;
}

/* ---- what is expected ---- */

static bool is_slug(const char *z)
{
	return sw_cause_find(z) != NULL;
}

static json_t *slugs_of(const importer *im, const char *words, const char *backend)
{
	const char *own = NULL, *any = NULL;
	for (size_t i = 0; i < im->map.rows; i++) {
		char **cell = im->map.cells + i * CELLS_MAX;
		if (strcmp(cell[0], words) != 0)
			continue;
		if (!cell[2][0])
			any = cell[1];
		else if (!strcmp(cell[2], backend))
			own = cell[1];
	}
	const char *slugs = own ? own : any ? any : is_slug(words) ? words : NULL;
	char *copy = slugs ? strdup(slugs) : NULL, *save = NULL;
	json_t *list = json_array();
	for (char *z = copy ? strtok_r(copy, " ,", &save) : NULL; z;
	     z = strtok_r(NULL, " ,", &save))
		json_array_append_new(list, json_string(z));
	free(copy);
	return list;
}

static void expect_line(json_t *expect, const json_t *line)
{
	const char *z = json_string_value(line);
	size_t n = json_string_length(line);
	while (n && (z[n - 1] == '\r' || z[n - 1] == '\n'))
		n--;
	if (z)
		json_object_set_new(expect, "line", json_stringn(z, n));
}

static void expect_cause(importer *im, json_t *expect, const json_t *row)
{
	const char *words = text_of(row, "cause");
	json_t *slugs = words ? slugs_of(im, words, text_of(row, "backend")) : json_array();
	if (words && !json_array_size(slugs)) {
		im->unmapped++;
		if (!im->o->quiet)
			fprintf(stderr, "%s:%zu: no slug for the cause \"%s\" in the map\n",
			        im->file, im->line, words);
	}
	if (json_array_size(slugs) == 1)
		json_object_set(expect, "cause", json_array_get(slugs, 0));
	else if (json_array_size(slugs))
		json_object_set(expect, "cause", slugs);
	json_decref(slugs);
}

static json_t *expectation(importer *im, const json_t *row)
{
	json_t *expect = json_object();
	const char *verdict = text_of(row, "expect"), *stage = text_of(row, "stage");
	json_object_set_new(expect, "verdict", sw_json_z(verdict));
	if (verdict && !strcmp(verdict, "runner_failed")) {
		if (stage)
			json_object_set_new(expect, "stage", json_string(stage));
		else if (text_of(row, "line")) /* labels say `exec` and leave the others out */
			json_object_set_new(expect, "stage", json_pack("[s, s]", "setup", "lost"));
		expect_line(expect, json_object_get(row, "line"));
		expect_cause(im, expect, row);
	}
	return expect;
}

/* The label names a thing that the text may hold exactly, within something, or not at all. */
static void expect_resource(json_t *expect, const json_t *row, const sw_result *r,
                            const char *output, size_t n)
{
	const char *label = text_of(row, "denied_resource"), *verdict = text_of(row, "expect");
	/* Words such as "socket" or "setuid" say what kind of thing it was, not which one. */
	if (!label || !strpbrk(label, "/.") || !verdict || strcmp(verdict, "sandbox_denied") != 0)
		return;
	sw_str want = sw_str_of(label), got = r->has_hit ? r->hit.resource : (sw_str){NULL, 0};
	const char *colon = label[0] == '/' ? NULL : strrchr(label, ':');
	size_t visible = colon ? (size_t)(colon - label) : want.len;
	if (!visible || !memmem(output, n, label, visible))
		return;
	bool exact = sw_str_eq(want, got) || !sw_resource_within(want, got);
	json_object_set_new(expect, exact ? "resource" : "resource_within", json_string(label));
}

/* ---- provenance ---- */

static json_t *provenance_of(const json_t *row)
{
	static const char *const kept[][2] = {{"runner_version", "runner"},
	                                      {"argv", "command"},
	                                      {"user", "user"},
	                                      {"env", "environment"},
	                                      {"exit_known", "exit_known"},
	                                      {"wording", "wording"},
	                                      {"hidden_denial", "hidden_denial"},
	                                      {"undecidable", "undecidable"},
	                                      {"denied_resource", "denied_resource"},
	                                      {"note", "note"}};
	json_t *p = json_object();
	json_object_set_new(p, "kind", sw_json_z(text_of(row, "provenance")));
	json_object_set_new(p, "id", sw_json_z(text_of(row, "id")));
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		json_t *v = json_object_get(row, kept[i][0]);
		if (v && !json_is_false(v))
			json_object_set(p, kept[i][1], v);
	}
	return p;
}

/* ---- one row ---- */

static int output_of(const json_t *row, char **out, size_t *n)
{
	const json_t *text = json_object_get(row, "output"),
	             *b64 = json_object_get(row, "output_b64");
	if (json_is_string(b64))
		return sw_base64_decode(json_string_value(b64), json_string_length(b64), out, n);
	*n = json_string_length(text);
	*out = malloc(*n + 1);
	if (!*out)
		return SW_ENOMEM;
	memcpy(*out, *n ? json_string_value(text) : "", *n);
	return 0;
}

static sw_facts facts_of(const json_t *row)
{
	sw_facts f = {0};
	const char *network = text_of(row, "network"), *mode = text_of(row, "mode");
	if (network)
		sw_network_parse(network, strlen(network), &f.network);
	if (mode)
		sw_mode_parse(mode, strlen(mode), &f.mode);
	return f;
}

static const char *todo_reason(const json_t *row)
{
	const char *verdict = text_of(row, "expect");
	if (!verdict || !strcmp(verdict, "ok"))
		return "The text is that of a denial or a failure; only evidence outside the "
		       "output tells that it was none.";
	return "The same bytes come from commands that were not stopped; only evidence outside the "
	       "output tells.";
}

static char *free_name(importer *im, const char *backend, const char *id)
{
	char *name = sw_case_name(id);
	for (int i = 2; name && i < 100; i++) {
		char key[300];
		snprintf(key, sizeof(key), "%.100s/%.150s", backend, name);
		if (!json_object_get(im->taken, key)) {
			json_object_set_new(im->taken, key, json_true());
			return name;
		}
		free(name);
		snprintf(key, sizeof(key), "%.90s-%d", id, i);
		name = sw_case_name(key);
	}
	return name;
}

static int import_row(importer *im, json_t *row, sw_error *err)
{
	const char *id = text_of(row, "id"), *backend = text_of(row, "backend");
	if (!id || !backend || !text_of(row, "expect") ||
	    !json_is_integer(json_object_get(row, "exit")))
		return sw_error_set(err, SW_EINVAL, "id, backend, exit and expect are needed");
	const sw_pack *pack = cli_pack_quiet(im->set, backend, err);
	if (!pack)
		return err->code;
	json_t *corrected = correct(im, row), *doc = json_object();
	char *output = NULL, *name = free_name(im, backend, id);
	size_t n = 0;
	sw_result *r = NULL;
	sw_facts facts = facts_of(row);
	int rc = name ? output_of(row, &output, &n) : SW_ENOMEM;
	if (!rc)
		rc = sw_classify(pack, &facts,
		                 sw_exit_code(json_integer_value(json_object_get(row, "exit"))),
		                 SW_STARTED_UNKNOWN, SW_SOURCE_NONE, output, n, &r, err);
	if (!rc) {
		json_t *expect = expectation(im, row);
		expect_resource(expect, row, r, output, n);
		json_object_set(doc, "exit", json_object_get(row, "exit"));
		static const char *const copied[] = {"network", "mode", "also"};
		for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++)
			if (json_object_get(row, copied[i]))
				json_object_set(doc, copied[i], json_object_get(row, copied[i]));
		bool right = !strcmp(sw_verdict_name(r->verdict), text_of(row, "expect"));
		if (json_is_true(json_object_get(row, "undecidable")) && !right) {
			json_object_set_new(doc, "state", json_string("todo"));
			json_object_set_new(doc, "reason", json_string(todo_reason(row)));
			im->todo++;
		}
		json_object_set_new(doc, "truth", sw_json_z(text_of(row, "truth")));
		json_object_set_new(doc, "expect", expect);
		json_object_set_new(doc, "provenance", provenance_of(row));
		if (corrected)
			json_object_set(doc, "corrected", corrected);
		rc = sw_case_write(im->o->dir, backend, name, doc, output, n, im->o->replace, err);
	}
	im->imported += rc == 0;
	sw_result_free(r);
	json_decref(doc);
	json_decref(corrected);
	free(output);
	free(name);
	return rc;
}

static void import_line(importer *im, const char *p, size_t n)
{
	sw_error err = {0};
	json_t *row = sw_json_parse(p, n, &err);
	int rc = row ? import_row(im, row, &err) : SW_EINVAL;
	json_decref(row);
	if (!rc)
		return;
	im->bad++;
	fprintf(stderr, "%s:%zu: ", im->file, im->line);
	sw_error_print(stderr, &err);
}

static int import_file(importer *im, const char *path)
{
	char *text;
	size_t n;
	sw_error err = {0};
	if (sw_read_file(path, IMPORT_MAX, &text, &n, &err))
		return cli_fail(&err);
	im->file = path;
	im->line = 0;
	for (size_t at = 0; at < n;) {
		const char *lf = memchr(text + at, '\n', n - at);
		size_t len = lf ? (size_t)(lf - (text + at)) : n - at;
		im->line++;
		if (len)
			import_line(im, text + at, len);
		at += len + 1;
	}
	free(text);
	return CLI_OK;
}

int corpus_import(const corpus_options *o, const cli_verb *self)
{
	importer im = {
	    .o = o, .set = cli_pack_set(o->signatures, o->pack_set), .taken = json_object()};
	sw_error err = {0};
	if (!im.set)
		return CLI_USAGE;
	if (o->argc < 1)
		return cli_usage_error(self,
		                       "import takes files of labelled outputs (JSON lines), or -");
	int rc = CLI_OK;
	if (table_load(&im.map, o->map, &err) || table_load(&im.notes, o->notes, &err))
		rc = cli_fail(&err);
	for (int i = 0; !rc && i < o->argc; i++)
		rc = import_file(&im, o->argv[i]);
	table_free(&im.map);
	table_free(&im.notes);
	json_decref(im.taken);
	if (!rc)
		printf("%zu cases written to %s, %zu of them todo, %zu without a known cause, %zu "
		       "lines refused\n",
		       im.imported, o->dir, im.todo, im.unmapped, im.bad);
	return rc ? rc : im.bad ? CLI_RUNNER_FAILED : CLI_OK;
}
