/* From what the supervisor saw to a verdict. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hidden.h"
#include "run_internal.h"
#include "trace.h"

typedef struct glue {
	const sw_run_options *outer;
	sw_scan *scan;
	run_hidden *hidden;
	int error;
} glue;

static void on_output(void *ctx, const void *bytes, size_t n)
{
	glue *g = ctx;
	int rc = sw_scan_feed(g->scan, bytes, n);
	if (rc && !g->error)
		g->error = rc;
	run_hidden_output(g->hidden, bytes, n);
	if (g->outer->on_output)
		g->outer->on_output(g->outer->ctx, bytes, n);
}

static void on_note(void *ctx, const sw_run_note *note)
{
	glue *g = ctx;
	if (g->outer->on_note)
		g->outer->on_note(g->outer->ctx, note);
}

static int before_spawn(void *ctx, sw_error *err)
{
	glue *g = ctx;
	return g->outer->before_spawn ? g->outer->before_spawn(g->outer->ctx, err) : SW_OK;
}

/* The runner's program could not be executed: no text says so, the kernel did. */
static void add_missing_runner(const sw_run_report *r, sw_result *v)
{
	if (r->spawned || v->verdict != SW_VERDICT_RUNNER_FAILED || v->has_hit)
		return;
	v->stage = SW_STAGE_SETUP;
	v->cause = r->spawn_errno == ENOENT    ? "runner-missing"
	           : r->spawn_errno == EACCES  ? "runner-not-executable"
	           : r->spawn_errno == ENOEXEC ? "exec-format"
	                                       : "exec-failed";
}

int sw_run_command(const sw_run_options *options, const sw_pack *pack, const sw_facts *facts,
                   sw_run_report *report, sw_result **result, sw_error *err)
{
	glue g = {.outer = options, .hidden = calloc(1, sizeof(run_hidden))};
	int rc = g.hidden ? sw_scan_begin(&g.scan, pack, facts, err)
	                  : sw_error_set(err, SW_ENOMEM, "out of memory");
	if (rc) {
		free(g.hidden);
		return rc;
	}
	sw_run_options inner = *options;
	inner.on_output = on_output;
	inner.on_note = on_note;
	inner.before_spawn = before_spawn;
	inner.ctx = &g;
	if (!inner.backend)
		inner.backend = sw_pack_backend(pack);
	run_trace *trace = options->trace ? calloc(1, sizeof *trace) : NULL;
	rc = run_supervise(&inner, trace, report, err);
	if (!rc && g.error)
		rc = sw_error_set(err, g.error, "the output could not be classified");
	if (!rc && report->runner_lost)
		sw_scan_runner_lost(g.scan);
	if (!rc)
		rc = sw_scan_finish(g.scan, report->exit, report->started, report->source, result,
		                    err);
	sw_scan_free(g.scan);
	if (!rc) {
		add_missing_runner(report, *result);
		if (report->oom_killed && (*result)->rule == 6) {
			(*result)->limit = SW_LIMIT_MEMORY;
			(*result)->limit_certainty = SW_CERTAINTY_PROVEN;
		}
		bool filtered = run_sets_filter(options->argv, &report->shape) &&
		                !(trace && trace->filtered_itself);
		rc = run_kernel_log_tell(report, filtered, *result);
		if (!rc && trace)
			rc = run_trace_tell(trace, *result);
		if (!rc)
			rc = run_hidden_look(g.hidden, report, report->command, facts,
			                     trace && trace->on && trace->command &&
			                         !trace->raced && !trace->lost,
			                     *result);
		if (rc)
			sw_error_set(err, rc, "out of memory");
	}
	if (trace)
		run_trace_free(trace);
	free(trace);
	free(g.hidden);
	return rc;
}
