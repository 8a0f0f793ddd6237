/* sandwitness signatures list | show | check */
#include "args.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct options {
	const char *action, *backend, *signatures, *pack_set, *neutral;
	const char *names[256];
	size_t n_names;
	bool json;
} options;

static int parse(options *o, const cli_verb *self, int argc, char **argv)
{
	const cli_flag flags[] = {{"json", &o->json}, {NULL, NULL}};
	const cli_text texts[] = {{"backend", &o->backend},
	                          {"signatures", &o->signatures},
	                          {"pack-set", &o->pack_set},
	                          {"neutral", &o->neutral},
	                          {NULL, NULL}};
	cli_args a;
	cli_args_init(&a, self, argc, argv);
	for (int t; (t = cli_args_next(&a));) {
		if (t == 2) {
			if (!o->action)
				o->action = a.inline_value;
			else if (o->n_names == 256)
				return cli_usage_error(self, "too many arguments");
			else
				o->names[o->n_names++] = a.inline_value;
			continue;
		}
		int taken = cli_args_take(&a, flags, texts);
		if (taken <= 0)
			return taken ? CLI_USAGE : cli_args_unknown(&a);
	}
	return 0;
}

static json_t *strings(const char *const *list, size_t n)
{
	json_t *a = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, sw_json_z(list[i]));
	return a;
}

static json_t *exits(const int64_t *list, size_t n)
{
	json_t *a = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_integer(list[i]));
	return a;
}

static json_t *samples(const sw_sample *list, size_t n)
{
	json_t *a = json_array();
	for (size_t i = 0; i < n; i++) {
		json_t *o = json_object();
		json_object_set_new(o, "line",
		                    sw_json_text((sw_str){list[i].line, list[i].line_len}));
		if (list[i].resource)
			json_object_set_new(o, list[i].resource_kind, sw_json_z(list[i].resource));
		if (list[i].has_exit)
			json_object_set_new(o, "exit", json_integer(list[i].exit));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *sig_json(const sw_pack_file *f, size_t i, bool full)
{
	const sw_sig_def *d = &f->def->sigs[i];
	json_t *o = json_object();
	json_object_set_new(o, "id", sw_json_z(d->id));
	json_object_set_new(o, "backend", sw_json_z(f->def->backend));
	json_object_set_new(o, "kind", sw_json_z(sw_kind_name(d->kind)));
	json_object_set_new(o, "cause", sw_json_z(d->cause));
	json_object_set_new(o, "origin", sw_json_z(cli_pack_origin(f->def)));
	json_object_set_new(o, "file", sw_json_z(d->origin));
	if (!full)
		return o;
	json_object_set_new(o, "literal", strings(d->literals, d->n_literals));
	json_object_set_new(o, "regex", sw_json_z(d->regex));
	json_object_set_new(o, "only_exit", exits(d->only_exit, d->n_only_exit));
	json_object_set_new(o, "except_exit", exits(d->except_exit, d->n_except_exit));
	if (d->kind == SW_KIND_FATAL) {
		json_object_set_new(o, "stage", sw_json_z(sw_stage_name(d->stage)));
		json_object_set_new(
		    o, "position",
		    sw_json_z(sw_position_name(d->position >= 0 ? (sw_position)d->position
		                                                : f->def->fatal_position)));
		json_object_set_new(o, "generic", json_boolean(d->generic));
	}
	if (d->kind == SW_KIND_DENIAL) {
		json_object_set_new(o, "operation", sw_json_z(sw_operation_name(d->operation)));
		json_object_set_new(o, "scope", sw_json_z(sw_scope_name(d->scope)));
		json_object_set_new(o, "decides", sw_json_z(sw_decides_name(d->decides)));
		json_t *with = json_array();
		for (int k = 0; k < SW_FACT_COUNT; k++)
			if (d->with & 1u << k)
				json_array_append_new(with, json_string(sw_fact_name((sw_fact)k)));
		json_object_set_new(o, "with", with);
	}
	if (d->kind == SW_KIND_FATAL || d->kind == SW_KIND_DENIAL)
		json_object_set_new(o, "confidence", sw_json_z(sw_confidence_name(d->confidence)));
	if (d->kind == SW_KIND_LIMIT) {
		json_object_set_new(o, "limit", sw_json_z(sw_limit_name(d->limit)));
		json_object_set_new(o, "certainty", sw_json_z(sw_certainty_name(d->certainty)));
	}
	json_object_set_new(o, "versions", sw_json_z(f->infos[i].versions));
	json_object_set_new(o, "source", sw_json_z(f->infos[i].source));
	json_object_set_new(o, "samples", samples(f->infos[i].samples, f->infos[i].n_samples));
	json_object_set_new(o, "near_misses",
	                    samples(f->infos[i].near_misses, f->infos[i].n_near_misses));
	return o;
}

/* The definition in force: the first of its id. */
static bool overridden(const sw_pack_file *files, size_t f, const char *id)
{
	for (size_t k = 0; k < f; k++)
		for (uint16_t i = 0; i < files[k].def->n_sigs; i++)
			if (strcmp(files[k].def->sigs[i].id, id) == 0)
				return true;
	return false;
}

static int list(const options *o)
{
	const sw_pack_file *files;
	size_t n = cli_pack_files(&files), shown = 0;
	for (size_t f = 0; f < n; f++) {
		const sw_pack_def *d = files[f].def;
		if (o->backend && strcmp(d->backend, o->backend) != 0)
			continue;
		shown++;
		for (uint16_t i = 0; i < d->n_sigs; i++) {
			if (overridden(files, f, d->sigs[i].id))
				continue;
			if (o->json)
				cli_print_json(stdout, sig_json(&files[f], i, false));
			else
				printf("%-44s %-13s %-32s %s\n", d->sigs[i].id,
				       sw_kind_name(d->sigs[i].kind),
				       d->sigs[i].cause ? d->sigs[i].cause : "-",
				       cli_pack_origin(d));
		}
	}
	if (!shown && o->backend)
		return cli_usage_error(cli_verb_find("signatures"), "no pack for backend \"%.60s\"",
		                       o->backend);
	return CLI_OK;
}

static void put_escaped(const char *label, const char *p, size_t n)
{
	char *safe = sw_escape_tty(p, n);
	printf("  %-12s %s\n", label, safe ? safe : "");
	free(safe);
}

static void put_z(const char *label, const char *z)
{
	if (z)
		put_escaped(label, z, strlen(z));
}

static void show_text(const sw_pack_file *f, size_t i)
{
	const sw_sig_def *d = &f->def->sigs[i];
	const sw_sig_info *info = &f->infos[i];
	printf("%s (%s, %s)\n", d->id, sw_kind_name(d->kind), d->origin);
	for (uint16_t k = 0; k < d->n_literals; k++)
		put_z("literal", d->literals[k]);
	put_z("regex", d->regex);
	put_z("cause", d->cause);
	if (d->kind == SW_KIND_FATAL)
		put_z("stage", sw_stage_name(d->stage));
	if (d->kind == SW_KIND_DENIAL) {
		put_z("operation", sw_operation_name(d->operation));
		put_z("decides", sw_decides_name(d->decides));
		put_z("scope", sw_scope_name(d->scope));
		put_z("confidence", sw_confidence_name(d->confidence));
	}
	put_z("versions", info->versions);
	put_z("source", info->source);
	for (uint16_t k = 0; k < info->n_samples; k++)
		put_escaped("matches", info->samples[k].line, info->samples[k].line_len);
	for (uint16_t k = 0; k < info->n_near_misses; k++)
		put_escaped("not", info->near_misses[k].line, info->near_misses[k].line_len);
}

static int show(const options *o, const cli_verb *self)
{
	const sw_pack_file *files;
	size_t n = cli_pack_files(&files);
	if (o->n_names != 1)
		return cli_usage_error(self, "show takes one signature id");
	for (size_t f = 0; f < n; f++) {
		for (uint16_t i = 0; i < files[f].def->n_sigs; i++) {
			if (strcmp(files[f].def->sigs[i].id, o->names[0]) != 0)
				continue;
			if (o->json)
				cli_print_json(stdout, sig_json(&files[f], i, true));
			else
				show_text(&files[f], i);
			return CLI_OK;
		}
	}
	return cli_usage_error(
	    self, "no signature is called \"%.100s\"; `sandwitness signatures list` shows them",
	    o->names[0]);
}

/* ---- check ---- */

typedef struct check_out {
	bool json;
	size_t broken;
} check_out;

static void print_problem(void *payload, const sw_error *e)
{
	const check_out *out = payload;
	if (!out->json) {
		printf("%s: %s\n", e->where, e->what);
		if (e->why[0])
			printf("  why: %s\n", e->why);
		if (e->fix[0])
			printf("  fix: %s\n", e->fix);
		return;
	}
	json_t *o = json_object();
	json_object_set_new(o, "where", sw_json_z(e->where));
	json_object_set_new(o, "what", sw_json_z(e->what));
	json_object_set_new(o, "why", sw_json_z(e->why));
	json_object_set_new(o, "fix", sw_json_z(e->fix));
	cli_print_json(stdout, o);
}

static void broken_file(void *payload, const sw_error *e)
{
	((check_out *)payload)->broken++;
	print_problem(payload, e);
}

static int load_named(const options *o, sw_loaded *l, check_out *out)
{
	for (size_t i = 0; i < o->n_names; i++) {
		struct stat st;
		sw_error err;
		bool is_dir = stat(o->names[i], &st) == 0 && S_ISDIR(st.st_mode);
		int rc = is_dir ? sw_load_dir(l, o->names[i], broken_file, out, &err)
		                : sw_load_file(l, o->names[i], &err);
		if (rc && is_dir)
			return cli_fail(&err);
		if (rc)
			broken_file(out, &err);
	}
	return CLI_OK;
}

static int check(const options *o)
{
	check_out out = {.json = o->json};
	sw_check_report report = {.problem = print_problem, .payload = &out};
	const sw_pack_file *builtin, *files;
	const sw_cause *causes, *own;
	size_t n_builtin = sw_builtin_files(&builtin), n = n_builtin,
	       n_causes = sw_builtin_causes(&causes);
	sw_loaded *l = NULL;
	sw_cause *all = NULL;
	sw_error err;
	files = builtin;
	if (o->n_names) {
		if (sw_loaded_new(&l, &err))
			return cli_fail(&err);
		int rc = load_named(o, l, &out);
		if (rc) {
			sw_loaded_free(l);
			return rc;
		}
		n = sw_loaded_files(l, &files);
		size_t n_own = sw_loaded_causes(l, &own);
		all = calloc(n_causes + n_own + 1, sizeof(*all));
		if (!all) {
			sw_loaded_free(l);
			return cli_no_memory();
		}
		memcpy(all, causes, n_causes * sizeof(*all));
		if (n_own)
			memcpy(all + n_causes, own, n_own * sizeof(*all));
		causes = all;
		n_causes += n_own;
	}
	int rc = sw_check_packs(files, n, o->n_names ? builtin : NULL, o->n_names ? n_builtin : 0,
	                        causes, n_causes, o->neutral, &report, &err);
	free(all);
	sw_loaded_free(l);
	if (rc)
		return cli_fail(&err);
	size_t problems = report.problems + out.broken;
	if (!o->json)
		printf("%zu files, %zu signatures, %zu samples, %zu near misses: %zu problem%s\n",
		       report.files, report.signatures, report.samples, report.near_misses,
		       problems, problems == 1 ? "" : "s");
	return problems ? 10 : CLI_OK;
}

static int run(int argc, char **argv)
{
	const cli_verb *self = cli_verb_find("signatures");
	options o = {0};
	int rc = parse(&o, self, argc, argv);
	if (rc)
		return rc;
	if (!o.action)
		return cli_usage_error(self, "say list, show or check");
	if (strcmp(o.action, "check") == 0)
		return check(&o);
	if (!cli_pack_set(o.signatures, o.pack_set))
		return CLI_USAGE;
	if (strcmp(o.action, "list") == 0)
		return list(&o);
	if (strcmp(o.action, "show") == 0)
		return show(&o, self);
	return cli_usage_error(self, "unknown action \"%.40s\"; list, show or check", o.action);
}

const cli_verb cli_verb_signatures = {
    .name = "signatures",
    .summary = "list, show and check signatures",
    .usage = "list | show ID | check [FILE | DIR]... [options]",
    .help = "  list                 every signature in force, with its origin\n"
            "  show ID              all about one\n"
            "  check [FILE|DIR]...  the checks of docs/signatures.md; without a name, of the\n"
            "                       built-in packs. Exit status 10 where something is wrong\n"
            "  --backend B          list that backend's only\n"
            "  --neutral DIR        check that no fatal signature matches in these logs\n"
            "  --signatures DIR     user packs in front of the built-in ones\n"
            "  --pack-set NAME      another set of packs (compat-nous)\n"
            "  --json               one object per line\n\n"
            "Examples:\n"
            "  $ sandwitness signatures list --backend bwrap\n"
            "  $ sandwitness signatures show common.erofs.quoted\n"
            "  $ sandwitness signatures check\n",
    .run = run,
};
