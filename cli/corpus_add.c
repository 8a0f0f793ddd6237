/* `corpus add` and `corpus capture`: a case from one output, in one step. */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "corpus_cli.h"
#include "run.h"

#define CAPTURE_MAX (16u << 20)

static void set_text(json_t *o, const char *key, const char *value)
{
	if (value)
		json_object_set_new(o, key, json_string(value));
}

static void set_bytes(json_t *o, const char *key, const char *key_b64, sw_str s)
{
	if (sw_utf8_valid(s.ptr, s.len)) {
		json_object_set_new(o, key, json_stringn(s.ptr, s.len));
		return;
	}
	char *b64 = sw_base64(s.ptr, s.len);
	json_object_set_new(o, key_b64, sw_json_z(b64));
	free(b64);
}

/* What the classifier says now: right where a person has looked at it, which the output asks for.
 */
static json_t *expect_result(const sw_result *r)
{
	json_t *e = json_object();
	set_text(e, "verdict", sw_verdict_name(r->verdict));
	if (r->verdict == SW_VERDICT_RUNNER_FAILED)
		set_text(e, "stage", sw_stage_name(r->stage));
	set_text(e, "cause", r->cause);
	if (r->has_hit && r->hit.line.len)
		set_bytes(e, "line", "line_b64", r->hit.line);
	if (r->has_hit && r->hit.resource.len &&
	    sw_utf8_valid(r->hit.resource.ptr, r->hit.resource.len))
		json_object_set_new(e, "resource",
		                    json_stringn(r->hit.resource.ptr, r->hit.resource.len));
	if (r->verdict == SW_VERDICT_SANDBOX_DENIED)
		set_text(e, "operation", sw_operation_name(r->operation));
	if (r->has_hit && r->hit.sig)
		set_text(e, "signature", r->hit.sig->id);
	if (r->limit != SW_LIMIT_NONE)
		set_text(e, "limit", sw_limit_name(r->limit));
	return e;
}

/* What the caller says it should be. */
static json_t *expect_options(const corpus_options *o)
{
	json_t *e = json_object();
	set_text(e, "verdict", o->expect);
	set_text(e, "stage", o->stage);
	set_text(e, "cause", o->cause);
	set_text(e, "line", o->line);
	set_text(e, "resource", o->resource);
	return e;
}

static json_t *paths(const sw_str *list, size_t n)
{
	json_t *a = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_stringn(list[i].ptr, list[i].len));
	return a;
}

static json_t *document(const corpus_options *o, const sw_result *r, json_t *provenance)
{
	const cli_facts *f = &o->facts;
	json_t *doc = json_object();
	if (f->exit.has_code)
		json_object_set_new(doc, "exit", json_integer((json_int_t)f->exit.code));
	if (f->exit.signal)
		json_object_set_new(doc, "signal", json_integer(f->exit.signal));
	if (f->exit.timed_out)
		json_object_set_new(doc, "timed_out", json_true());
	if (f->started != SW_STARTED_UNKNOWN) {
		set_text(doc, "started", sw_started_name(f->started));
		set_text(doc, "source", sw_source_name(f->source));
	}
	if (f->facts.network != SW_NETWORK_UNKNOWN)
		set_text(doc, "network", sw_network_name(f->facts.network));
	if (f->facts.mode != SW_MODE_UNKNOWN)
		set_text(doc, "mode", sw_mode_name(f->facts.mode));
	if (f->facts.n_writable_roots)
		json_object_set_new(doc, "writable_roots",
		                    paths(f->facts.writable_roots, f->facts.n_writable_roots));
	if (f->facts.n_accessible)
		json_object_set_new(doc, "accessible",
		                    paths(f->facts.accessible, f->facts.n_accessible));
	if (f->facts.cwd.len)
		json_object_set_new(doc, "cwd", json_stringn(f->facts.cwd.ptr, f->facts.cwd.len));
	if (o->todo) {
		set_text(doc, "state", "todo");
		set_text(doc, "reason", o->reason ? o->reason : "not looked into yet");
	}
	set_text(doc, "truth", o->truth);
	json_object_set_new(doc, "expect", o->expect ? expect_options(o) : expect_result(r));
	json_object_set_new(doc, "provenance", provenance);
	set_text(doc, "note", o->note);
	return doc;
}

int corpus_write_capture(const corpus_options *o, const char *name, json_t *provenance,
                         const char *output, size_t n)
{
	const sw_pack_set *set = cli_pack_set(o->signatures, o->pack_set);
	const sw_pack *pack = set ? cli_pack(set, o->backend) : NULL;
	sw_error err = {0};
	sw_result *r = NULL;
	sw_verdict v = SW_VERDICT_OK;
	if (!pack) {
		json_decref(provenance);
		return CLI_USAGE;
	}
	if (o->expect && sw_verdict_parse(o->expect, strlen(o->expect), &v)) {
		json_decref(provenance);
		sw_error_set(&err, SW_EINVAL, "no verdict \"%.40s\"", o->expect);
		sw_error_more(&err, "--expect", NULL, "ok, runner_failed or sandbox_denied");
		return cli_fail(&err);
	}
	if (sw_classify(pack, &o->facts.facts, o->facts.exit, o->facts.started, o->facts.source,
	                output, n, &r, &err)) {
		json_decref(provenance);
		return cli_fail(&err);
	}
	json_t *doc = document(o, r, provenance);
	char *file = sw_case_name(name);
	int rc = file && file[0]
	             ? sw_case_write(o->dir, o->backend, file, doc, output, n, o->replace, &err)
	             : sw_error_set(&err, SW_EINVAL, "no name can be made of \"%.60s\"", name);
	if (!rc) {
		printf("%s/%s/%s.yaml\n", o->dir, o->backend, file);
		cli_print_verdict(stdout, r, true, false);
		if (!o->expect)
			puts("look at it: what the classifier says now is what the case expects");
	}
	free(file);
	json_decref(doc);
	sw_result_free(r);
	return rc ? cli_fail(&err) : CLI_OK;
}

int corpus_add(const corpus_options *o, const cli_verb *self)
{
	char *output;
	size_t n;
	sw_error err = {0};
	if (o->argc != 1 || !o->backend || !o->facts.has_exit || !o->name)
		return cli_usage_error(
		    self,
		    "add takes --backend, --exit (or --signal), --name and one file (- is stdin)");
	if (sw_read_file(o->argv[0], SW_CASE_OUTPUT_MAX, &output, &n, &err))
		return cli_fail(&err);
	json_t *provenance = json_object();
	set_text(provenance, "kind", o->output ? "documented" : "captured");
	set_text(provenance, "source", o->output);
	int rc = corpus_write_capture(o, o->name, provenance, output, n);
	free(output);
	return rc;
}

/* ---- capture ---- */

typedef struct capture {
	sw_buf bytes;
} capture;

static void keep(void *ctx, const void *bytes, size_t n)
{
	capture *c = ctx;
	sw_buf_add(&c->bytes, bytes, n);
}

static char *runner_version(const char *program)
{
	char *const argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t) "--version", NULL};
	capture c;
	sw_run_report report;
	sw_buf_init(&c.bytes, 65536);
	sw_run_options options = {.argv = argv,
	                          .backend = "none",
	                          .deadline_ns = 5000000000,
	                          .quiet_stdin = true,
	                          .out_fd = -1,
	                          .err_fd = -1,
	                          .on_output = keep,
	                          .ctx = &c};
	char *line = NULL;
	if (sw_run_supervise(&options, &report, NULL) == 0 && c.bytes.len && report.exit.has_code &&
	    report.exit.code == 0)
		line = strndup(c.bytes.ptr, strcspn(c.bytes.ptr, "\r\n"));
	sw_buf_free(&c.bytes);
	if (line && !sw_utf8_valid(line, strlen(line))) {
		free(line);
		line = NULL;
	}
	return line;
}

static json_t *capture_provenance(const corpus_options *o, const sw_run_report *report)
{
	json_t *p = json_object(), *command = json_array();
	struct utsname u;
	set_text(p, "kind", "captured");
	for (int i = 0; i < o->argc; i++)
		json_array_append_new(command, sw_json_text(sw_str_of(o->argv[i])));
	json_object_set_new(p, "command", command);
	char *version = runner_version(o->argv[report->shape.runner]);
	set_text(p, "runner", version);
	free(version);
	set_text(p, "user", geteuid() == 0 ? "root" : "plain user");
	if (uname(&u) == 0) {
		char system[200];
		snprintf(system, sizeof(system), "%.60s %.60s %.60s", u.sysname, u.release,
		         u.machine);
		set_text(p, "system", system);
	}
	if (report->started != SW_STARTED_UNKNOWN) {
		set_text(p, "observed_started", sw_started_name(report->started));
		set_text(p, "observed_source", sw_source_name(report->source));
	}
	return p;
}

int corpus_capture(const corpus_options *given, const cli_verb *self)
{
	corpus_options o = *given;
	capture c;
	sw_run_report report;
	sw_error err = {0};
	if (o.argc < 1 || !o.name)
		return cli_usage_error(
		    self, "capture takes --name and, behind --, a command under its runner");
	sw_buf_init(&c.bytes, CAPTURE_MAX);
	sw_run_options options = {.argv = o.argv,
	                          .backend = o.backend,
	                          .quiet_stdin = true,
	                          .deadline_ns = 60000000000,
	                          .out_fd = -1,
	                          .err_fd = -1,
	                          .on_output = keep,
	                          .ctx = &c};
	if (sw_run_supervise(&options, &report, &err)) {
		sw_buf_free(&c.bytes);
		return cli_fail(&err);
	}
	if (c.bytes.error) {
		sw_buf_free(&c.bytes);
		sw_error_set(&err, SW_ETOOBIG, "the output is larger than %u bytes", CAPTURE_MAX);
		return cli_fail(&err);
	}
	if (!o.backend)
		o.backend = report.shape.backend;
	o.facts.exit = report.exit;
	o.facts.exit.timed_out = report.timed_out;
	o.facts.has_exit = true;
	if (o.facts.facts.network == SW_NETWORK_UNKNOWN)
		o.facts.facts.network = report.shape.network;
	/* The case is about the text alone unless the caller asks for the proof: --started yes |
	 * no. */
	int rc = corpus_write_capture(&o, o.name, capture_provenance(&o, &report),
	                              c.bytes.ptr ? c.bytes.ptr : "", c.bytes.len);
	sw_buf_free(&c.bytes);
	return rc;
}
