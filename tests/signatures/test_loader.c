/* The loader: every refusal says file:line:column, what, and how to mend it. */
#include "signatures.h"
#include "yaml_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "schema: 1\nbackend: demo\n"

static int load(const char *text, sw_loaded **l, sw_error *err)
{
	assert_int_equal(sw_loaded_new(l, err), 0);
	return sw_load_text(*l, "demo.yaml", text, strlen(text), err);
}

static void good_pack(void **state)
{
	static const char text[] = HEAD
	    "title: Demo\n"
	    "runner: {names: [demo], prefixes: ['demo: '], prefix_regexes: ['demo\\[\\d+\\]: '], "
	    "priority_prefix: true}\n"
	    "extends: [runc]\n"
	    "fatal_position: alone\n"
	    "exit_codes: windows\n"
	    "encoding: utf-16le\n"
	    "informational:\n"
	    "  - line: 'demo: hello'\n"
	    "fatal:\n"
	    "  - {id: demo.a, literal: ['demo: broken', 'demo: crashed'], cause: unknown, stage: "
	    "exec, only_exit: [1, 0xC0000142, SIGSYS], generic: true, position: first}\n"
	    "denial:\n"
	    "  - {id: demo.d, literal: 'no no no', regex: 'no no no: (?<path>\\S+)', cause: x, "
	    "operation: write, confidence: weak, decides: {with: [read_only, network_denied]}, "
	    "samples: [{line: 'no no no: /x', path: /x}], near_misses: ['no']}\n"
	    "veto: [{id: demo.v, literal: 'joke'}]\n"
	    "limit: [{id: demo.l, only_exit: [137], limit: memory, certainty: possible}]\n"
	    "downgrade: [{id: demo.w, literal: 'demo: weaker', lowers: [network, pid]}]\n"
	    "adjust: [{id: 'common.x.*', decides: no, confidence: likely}, {id: common.y, disable: "
	    "true}]\n";
	sw_loaded *l;
	sw_error err = {0};
	int rc = load(text, &l, &err);
	if (rc)
		fail_msg("%s: %s", err.where, err.what);
	const sw_pack_file *files;
	assert_int_equal(sw_loaded_files(l, &files), 1);
	const sw_pack_def *d = files[0].def;
	assert_string_equal(d->backend, "demo");
	assert_true(d->windows && d->utf16le && d->priority_prefix);
	assert_int_equal(d->fatal_position, SW_POSITION_ALONE);
	assert_int_equal(d->n_sigs, 6);
	assert_int_equal(d->n_adjusts, 2);
	assert_int_equal(d->adjusts[0].decides, SW_DECIDES_NO);
	assert_true(d->adjusts[1].disable);
	const sw_sig_def *info = &d->sigs[0], *fatal = &d->sigs[1], *denial = &d->sigs[2];
	assert_int_equal(info->kind, SW_KIND_INFORMATIONAL);
	assert_string_equal(info->id, "demo.info.1");
	assert_true(info->full_line);
	assert_int_equal(fatal->kind, SW_KIND_FATAL);
	assert_int_equal(fatal->stage, SW_STAGE_EXEC);
	assert_int_equal(fatal->n_literals, 2);
	assert_int_equal(fatal->n_only_exit, 3);
	assert_true(fatal->only_exit[1] == 0xC0000142 && fatal->only_exit[2] == 159);
	assert_int_equal(fatal->position, SW_POSITION_FIRST);
	assert_int_equal(denial->decides, SW_DECIDES_WITH);
	assert_int_equal(denial->with, 1u << SW_FACT_READ_ONLY | 1u << SW_FACT_NETWORK_DENIED);
	assert_string_equal(files[0].infos[2].samples[0].resource, "/x");
	assert_string_equal(denial->origin, "demo.yaml:14");
	sw_loaded_free(l);
}

static void refusals(void **state)
{
	static const struct {
		const char *text, *where, *what;
	} rows[] = {
	    {"", "demo.yaml", "an empty file"},
	    {"a: [", "demo.yaml:", "not YAML"},
	    {"backend: demo\n", "demo.yaml:1:1", "no schema"},
	    {"schema: 2\nbackend: demo\n", "demo.yaml:1:9", "schema 2"},
	    {"schema: 1\n", "demo.yaml:1:1", "no backend"},
	    {HEAD "colour: red\n", "demo.yaml:3:1", "unknown key \"colour\""},
	    {HEAD "title: a\ntitle: b\n", "demo.yaml:4:1", "stands twice"},
	    {HEAD "---\nschema: 1\n", "demo.yaml:", "a second document"},
	    {HEAD "title: &x a\nextends: [*x]\n", "demo.yaml:", "an alias"},
	    {HEAD "title: !!binary aGk=\n", "demo.yaml:3:8", "the tag"},
	    {HEAD "title: \"a\\0b\"\n", "demo.yaml:3:8", "a NUL"},
	    {HEAD "title: ''\n", "demo.yaml:3:8", "title is empty"},
	    {HEAD "fatal_position: middle\n", "demo.yaml:3:17",
	     "unknown fatal_position \"middle\""},
	    {HEAD "runner: {colour: red}\n", "demo.yaml:3:10", "unknown key \"colour\" of runner"},
	    {HEAD "fatal: {}\n", "demo.yaml:3:8", "fatal is no list"},
	    {HEAD "fatal: [{literal: 'demo: x', cause: unknown}]\n", "demo.yaml:3:9", "without id"},
	    {HEAD "fatal: [{id: 'Demo X', literal: 'demo: x', cause: unknown}]\n", "demo.yaml:3:14",
	     "the id \"Demo X\""},
	    {HEAD "fatal: [{id: demo.x, literal: 'demo: x'}]\n", "demo.yaml:3:9", "has no cause"},
	    {HEAD "fatal: [{id: demo.x, cause: unknown}]\n", "demo.yaml:3:9", "nothing to match"},
	    {HEAD "fatal: [{id: demo.x, regex: 'demo: x', cause: unknown}]\n", "demo.yaml:3:9",
	     "regex without literal"},
	    {HEAD "fatal: [{id: demo.x, literal: 'abc', cause: unknown}]\n", "demo.yaml:3:31",
	     "has 3 bytes"},
	    {HEAD "fatal: [{id: demo.x, literal: \"demo:\\nx\", cause: unknown}]\n",
	     "demo.yaml:3:31", "a line end or an escape"},
	    {HEAD "fatal: [{id: demo.x, literal: 'demo: x', cause: unknown, operation: write}]\n",
	     "demo.yaml:3:58", "does not belong"},
	    {HEAD "fatal: [{id: demo.x, literal: 'demo: x', cause: unknown, only_exit: [x]}]\n",
	     "demo.yaml:3:70", "\"x\" is no exit"},
	    {HEAD
	     "fatal: [{id: demo.x, literal: 'demo: x', cause: unknown, only_exit: [4294967296]}]\n",
	     "demo.yaml:3:70", "is no exit"},
	    {HEAD "fatal: [{id: demo.x, literal: 'demo: x', cause: unknown}, {id: demo.x, literal: "
	          "'demo: y', cause: unknown}]\n",
	     "demo.yaml:3:59", "stands twice"},
	    {HEAD
	     "denial: [{id: demo.x, literal: 'no no', cause: c, scope: any, only_exit: [1]}]\n",
	     "demo.yaml:3:10", "scope any and an exit gate"},
	    {HEAD "denial: [{id: demo.x, literal: 'no no', cause: c, decides: {with: []}}]\n",
	     "demo.yaml:3:67", "names no fact"},
	    {HEAD "denial: [{id: demo.x, literal: 'no no', cause: c, decides: {with: [moon]}}]\n",
	     "demo.yaml:3:68", "unknown fact \"moon\""},
	    {HEAD "limit: [{id: demo.x, literal: 'no more'}]\n", "demo.yaml:3:9", "which limit"},
	    {HEAD "downgrade: [{id: demo.x, literal: 'weaker'}]\n", "demo.yaml:3:13",
	     "lowers nothing"},
	    {HEAD "downgrade: [{id: demo.x, literal: 'weaker', lowers: [gravity]}]\n",
	     "demo.yaml:3:54", "unknown guarantee \"gravity\""},
	    {HEAD "adjust: [{decides: no}]\n", "demo.yaml:3:10", "an adjustment without id"},
	    {"- title: x\n", "demo.yaml:1:3", "lacks slug"},
	    {"- {slug: a, title: b, why: c, remedies: [{do: x}]}\n", "demo.yaml:1:42",
	     "without `do` or `risk`"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sw_loaded *l;
		sw_error err = {0};
		int rc = load(rows[i].text, &l, &err);
		if (rc != SW_EPACK ||
		    strncmp(err.where, rows[i].where, strlen(rows[i].where)) != 0 ||
		    !strstr(err.what, rows[i].what))
			fail_msg("row %zu (%s): rc %d, %s: %s", i, rows[i].what, rc, err.where,
			         err.what);
		const sw_pack_file *files;
		assert_int_equal(sw_loaded_files(l, &files), 0);
		sw_loaded_free(l);
	}
}

/* A broken file leaves what was loaded before it as it was. */
static void broken_file_keeps_the_rest(void **state)
{
	static const char good[] =
	    HEAD "fatal: [{id: demo.x, literal: 'demo: x', cause: unknown}]\n";
	static const char bad[] =
	    HEAD "fatal: [{id: demo.y, literal: 'demo: y', cause: unknown}, {id: demo.z}]\n";
	sw_loaded *l;
	sw_error err;
	assert_int_equal(load(good, &l, &err), 0);
	assert_int_equal(sw_load_text(l, "bad.yaml", bad, strlen(bad), &err), SW_EPACK);
	const sw_pack_file *files;
	assert_int_equal(sw_loaded_files(l, &files), 1);
	assert_string_equal(files[0].def->sigs[0].id, "demo.x");
	sw_loaded_free(l);
}

static void nul_byte(void **state)
{
	static const char text[] = "schema: 1\nbackend: de\0mo\n";
	sw_loaded *l;
	sw_error err;
	assert_int_equal(sw_loaded_new(&l, &err), 0);
	assert_int_equal(sw_load_text(l, "x.yaml", text, sizeof(text) - 1, &err), SW_EPACK);
	sw_loaded_free(l);
}

/* libyaml takes the square of the depth for a document: these are refused before it makes one. */
static void nested_too_deep(void **state)
{
	static const char *const units[] = {"[", "{a: ", "- "};
	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		size_t unit = strlen(units[u]), n = SW_PACK_FILE_MAX / unit * unit - 100 * unit;
		char *text = malloc(n + 1);
		assert_non_null(text);
		for (size_t i = 0; i < n; i += unit)
			memcpy(text + i, units[u], unit);
		sw_loaded *l;
		sw_error err = {0};
		assert_int_equal(sw_loaded_new(&l, &err), 0);
		assert_int_equal(sw_load_text(l, "x.yaml", text, n, &err), SW_EPACK);
		assert_string_equal(err.what, "nested deeper than 64");
		assert_memory_equal(err.where, "x.yaml:1:", 9);
		text[n] = '\0';
		assert_null(sw_yaml_read(text, 60000 / unit * unit, "case.yaml", &err));
		assert_string_equal(err.what, "nested deeper than 64");
		sw_loaded_free(l);
		free(text);
	}
}

static void too_large(void **state)
{
	size_t n = SW_PACK_FILE_MAX + 1;
	char *text = malloc(n);
	memset(text, '#', n);
	sw_loaded *l;
	sw_error err;
	assert_int_equal(sw_loaded_new(&l, &err), 0);
	assert_int_equal(sw_load_text(l, "x.yaml", text, n, &err), SW_ETOOBIG);
	sw_loaded_free(l);
	free(text);
}

/* A user pack's signature replaces the built-in one of its id and comes first. */
static void user_pack_overrides_by_id(void **state)
{
	static const char first[] =
	    HEAD "fatal: [{id: demo.x, literal: 'demo: user', cause: mine}]\n";
	static const char second[] =
	    HEAD "fatal: [{id: demo.x, literal: 'demo: builtin', cause: theirs}, {id: demo.y, "
	         "literal: 'demo: other', cause: theirs}]\n";
	sw_loaded *l;
	sw_error err;
	assert_int_equal(load(first, &l, &err), 0);
	assert_int_equal(sw_load_text(l, "b.yaml", second, strlen(second), &err), 0);
	const sw_pack_file *files;
	size_t n = sw_loaded_files(l, &files);
	const sw_pack_def *defs[2] = {files[0].def, files[1].def};
	sw_pack_set set = {defs, n};
	sw_pack *pack;
	assert_int_equal(sw_pack_new(&pack, &set, "demo", &err), 0);
	assert_int_equal(sw_pack_sig_count(pack), 2);
	assert_string_equal(sw_pack_sig(pack, 0)->cause, "mine");
	assert_string_equal(sw_pack_sig(pack, 1)->id, "demo.y");
	sw_pack_free(pack);
	sw_loaded_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(good_pack),
	    cmocka_unit_test(refusals),
	    cmocka_unit_test(broken_file_keeps_the_rest),
	    cmocka_unit_test(nul_byte),
	    cmocka_unit_test(nested_too_deep),
	    cmocka_unit_test(too_large),
	    cmocka_unit_test(user_pack_overrides_by_id),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
