/* sandwitness reclassify */
#include "corpus_cli.h"
#include "store_cli.h"

#include <stdlib.h>
#include <string.h>

const cli_verb cli_verb_reclassify;

typedef struct work {
	store_options o;
	const char *signatures, *pack_set, *to_corpus, *dir, *name;
	bool replace;
	const sw_pack_set *set;
	json_t *changed;
	uint64_t looked, no_pack;
	bool found; /* the one for the corpus */
	int status;
} work;

static sw_str text_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return json_is_string(v) ? (sw_str){json_string_value(v), json_string_length(v)}
	                         : (sw_str){"", 0};
}

/* What was known when it was recorded; writable roots are not kept. */
static void facts_of(const json_t *o, cli_facts *f)
{
	const json_t *exit = json_object_get(o, "exit"), *sig = json_object_get(o, "signal");
	sw_str mode = text_of(o, "mode"), net = text_of(o, "network"),
	       started = text_of(o, "started");
	sw_str source = text_of(o, "evidence_source"), enforcement = text_of(o, "enforcement");
	memset(f, 0, sizeof *f);
	if (json_is_integer(sig)) {
		f->exit.signal = (int)json_integer_value(sig);
	} else if (json_is_integer(exit)) {
		f->exit.code = json_integer_value(exit);
		f->exit.has_code = true;
	}
	f->exit.timed_out = json_is_true(json_object_get(o, "timed_out"));
	sw_mode_parse(mode.ptr, mode.len, &f->facts.mode);
	sw_network_parse(net.ptr, net.len, &f->facts.network);
	sw_enforcement_parse(enforcement.ptr, enforcement.len, &f->facts.enforcement);
	f->facts.cwd = text_of(o, "cwd");
	if (sw_started_parse(started.ptr, started.len, &f->started) == 0 &&
	    f->started != SW_STARTED_UNKNOWN) {
		f->source = SW_SOURCE_CALLER;
		sw_source_parse(source.ptr, source.len, &f->source);
	}
}

static bool same(const json_t *o, const char *key, const char *now)
{
	sw_str was = text_of(o, key);
	return now && strcmp(now, "none") != 0 ? sw_str_eq(was, sw_str_of(now)) : was.len == 0;
}

static json_t *name_or_null(const char *z)
{
	return z && strcmp(z, "none") != 0 ? json_string(z) : json_null();
}

static json_t *pair(const json_t *o, const char *key, const char *now)
{
	json_t *p = json_object();
	const json_t *was = json_object_get(o, key);
	json_object_set_new(p, "was", was ? json_incref((json_t *)was) : json_null());
	json_object_set_new(p, "now", name_or_null(now));
	return p;
}

static void note_change(work *w, const sw_kept *k, const sw_result *r)
{
	const json_t *o = k->invocation;
	const char *signature = r->has_hit && r->hit.sig ? r->hit.sig->id : NULL;
	const struct {
		const char *key, *now;
	} fields[] = {{"verdict", sw_verdict_name(r->verdict)},
	              {"stage", sw_stage_name(r->stage)},
	              {"cause", r->cause},
	              {"signature", signature}};
	bool any = false;
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		any |= !same(o, fields[i].key, fields[i].now);
	if (!any)
		return;
	json_t *row = json_object();
	json_object_set(row, "id", json_object_get(o, "id"));
	json_object_set(row, "started_at", json_object_get(o, "started_at"));
	json_object_set(row, "backend", json_object_get(o, "backend"));
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		json_object_set_new(row, fields[i].key, pair(o, fields[i].key, fields[i].now));
	json_object_set_new(row, "whole", json_boolean(k->whole));
	json_array_append_new(w->changed, row);
}

static int one(void *arg, const sw_kept *k)
{
	work *w = arg;
	cli_facts f;
	sw_error err = {0};
	sw_result *r = NULL;
	const char *verdict = text_of(k->invocation, "verdict").ptr;
	/* Refused before it was spawned: there was nothing to classify. */
	if (strcmp(verdict, "sandbox_unavailable") == 0)
		return 0;
	const sw_pack *pack = cli_pack(w->set, text_of(k->invocation, "backend").ptr);
	w->looked++;
	if (!pack) {
		w->no_pack++;
		return 0;
	}
	facts_of(k->invocation, &f);
	if (sw_classify(pack, &f.facts, f.exit, f.started, f.source, k->output.ptr, k->output.len,
	                &r, &err) != 0) {
		w->status = cli_fail(&err);
		return 1;
	}
	note_change(w, k, r);
	sw_result_free(r);
	return json_array_size(w->changed) >= SW_QUERY_LIMIT_MAX;
}

static int to_corpus(work *w, sw_store *s)
{
	sw_error err = {0};
	json_t *o = NULL;
	char *bytes = NULL;
	size_t n = 0;
	if (store_whole(sw_store_invocation(s, w->to_corpus, &o, &err), &err) != 0) {
		json_decref(o);
		return cli_fail(&err);
	}
	sw_str out = text_of(o, "output"), b64 = text_of(o, "output_b64");
	if (b64.len && sw_base64_decode(b64.ptr, b64.len, &bytes, &n) == 0)
		out = (sw_str){bytes, n};
	int status;
	if (!json_is_true(json_object_get(o, "output_kept"))) {
		sw_error_set(&err, SW_ENOTFOUND, "its output was not kept");
		sw_error_more(
		    &err, w->to_corpus, NULL,
		    "record with keep_output, or capture it again: sandwitness corpus capture");
		status = cli_fail(&err);
	} else {
		corpus_options c = {.dir = w->dir ? w->dir : "corpus",
		                    .backend = text_of(o, "backend").ptr,
		                    .signatures = w->signatures,
		                    .pack_set = w->pack_set,
		                    .replace = w->replace};
		facts_of(o, &c.facts);
		json_t *provenance = json_object();
		json_object_set_new(provenance, "kind", json_string("captured"));
		if (json_array_size(json_object_get(o, "command")))
			json_object_set(provenance, "command", json_object_get(o, "command"));
		json_object_set(provenance, "date", json_object_get(o, "started_at"));
		json_object_set_new(
		    provenance, "reproduce",
		    json_string(json_integer_value(json_object_get(o, "output_cut"))
		                    ? "from the audit trail; the output was shortened"
		                    : "from the audit trail"));
		status = corpus_write_capture(&c, w->name ? w->name : w->to_corpus, provenance,
		                              out.ptr, out.len);
	}
	free(bytes);
	json_decref(o);
	return status;
}

static void print_people(const work *w)
{
	size_t i;
	json_t *row;
	json_array_foreach(w->changed, i, row)
	{
		static const char *const keys[] = {"verdict", "stage", "cause", "signature"};
		char *id = store_cell_text(json_object_get(row, "id"), "id");
		char *backend = store_cell_text(json_object_get(row, "backend"), "text");
		printf("%s  %s%s\n", id, backend,
		       json_is_true(json_object_get(row, "whole"))
		           ? ""
		           : "  (its output was shortened)");
		free(id);
		free(backend);
		for (size_t k = 0; k < 4; k++) {
			const json_t *p = json_object_get(row, keys[k]);
			const json_t *was = json_object_get(p, "was"),
			             *now = json_object_get(p, "now");
			if (json_equal(was, now))
				continue;
			char *a = store_cell_text(was, "text"), *b = store_cell_text(now, "text");
			printf("  %-10s %s -> %s\n", keys[k], a, b);
			free(a);
			free(b);
		}
	}
	printf("%llu kept outputs looked at, %zu would be judged differently today\n",
	       (unsigned long long)w->looked, json_array_size(w->changed));
	if (w->no_pack)
		printf("%llu have a backend without signatures\n", (unsigned long long)w->no_pack);
}

static int parse(work *w, int argc, char **argv)
{
	const struct {
		const char *name;
		const char **to;
	} texts[] = {{"signatures", &w->signatures},
	             {"pack-set", &w->pack_set},
	             {"to-corpus", &w->to_corpus},
	             {"dir", &w->dir},
	             {"name", &w->name}};
	cli_args a;
	cli_args_init(&a, &cli_verb_reclassify, argc, argv);
	for (int t; (t = cli_args_next(&a));) {
		bool mine = false;
		if (t == 2)
			return cli_usage_error(&cli_verb_reclassify, "no argument is expected");
		if (strcmp(a.name, "replace") == 0) {
			w->replace = true;
			continue;
		}
		for (size_t i = 0; i < sizeof texts / sizeof *texts && !mine; i++) {
			if (strcmp(a.name, texts[i].name) != 0)
				continue;
			mine = true;
			if (!(*texts[i].to = cli_args_value(&a)))
				return CLI_USAGE;
		}
		int taken = mine ? 1 : store_option(&w->o, &a);
		if (taken <= 0)
			return taken < 0 ? CLI_USAGE : cli_args_unknown(&a);
	}
	return CLI_OK;
}

static int run(int argc, char **argv)
{
	work w = {0};
	sw_error err = {0};
	w.changed = json_array();
	int status = parse(&w, argc, argv);
	if (status == CLI_OK && !(w.set = cli_pack_set(w.signatures, w.pack_set)))
		status = CLI_USAGE;
	sw_store *s = status == CLI_OK ? store_open_cli(w.o.db, SW_STORE_READ, &status) : NULL;
	if (s && w.to_corpus) {
		status = to_corpus(&w, s);
	} else if (s) {
		if (sw_store_kept(s, &w.o.q, one, &w, &err) != 0)
			status = cli_fail(&err);
		else
			status = w.status;
		if (status == CLI_OK && w.o.json) {
			json_t *o = json_object();
			json_object_set_new(o, "schema", json_integer(1));
			json_object_set_new(o, "looked_at", json_integer((json_int_t)w.looked));
			json_object_set_new(o, "without_signatures",
			                    json_integer((json_int_t)w.no_pack));
			json_object_set(o, "changed", w.changed);
			store_print_json(o);
			json_decref(o);
		} else if (status == CLI_OK) {
			print_people(&w);
		}
	}
	sw_store_close(s);
	json_decref(w.changed);
	store_options_free(&w.o);
	return store_finish(status);
}

const cli_verb cli_verb_reclassify = {
    .name = "reclassify",
    .summary = "which recorded verdicts would today's signatures change",
    .usage =
        "[--since T] [filters] [--signatures DIR] [--json] [--db PATH]\n"
        "       sandwitness reclassify --to-corpus ID [--dir CORPUS] [--name NAME] [--replace]",
    .help = "Looks at outputs that were kept (keep_output, run --keep-output). The trail is not\n"
            "touched: what was judged then stays as it was judged.\n\n" STORE_FILTER_HELP
            "  --signatures DIR   with these packs in front of the built-in ones\n"
            "  --to-corpus ID     make this invocation a case of the corpus (expecting what the\n"
            "                     classifier says now: look at it)\n\n"
            "  $ sandwitness reclassify --since 30d\n",
    .run = run};
