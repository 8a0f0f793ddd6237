/* From what the supervisor saw to a verdict. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run_internal.h"

typedef struct glue {
	const sw_run_options *outer;
	sw_scan *scan;
	int error;
} glue;

static void on_output(void *ctx, const void *bytes, size_t n)
{
	glue *g = ctx;
	int rc = sw_scan_feed(g->scan, bytes, n);
	if (rc && !g->error)
		g->error = rc;
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

/*
 * What text cannot say, since the runner was not there to say it: its program is missing,
 * or it was killed over a running command. Rule 3's "attested", with the stage known.
 */
static void add_process_knowledge(const sw_run_report *r, sw_result *v)
{
	if (v->exit.has_code && v->exit.code == 0)
		return; /* rule 2 */
	if (v->rule == 1)
		return;
	if (!r->spawned && v->verdict == SW_VERDICT_RUNNER_FAILED && !v->has_hit) {
		v->stage = SW_STAGE_SETUP;
		v->cause = r->spawn_errno == ENOENT ? "runner-missing" : "runner-not-executable";
	}
	if (r->runner_lost) {
		v->verdict = SW_VERDICT_RUNNER_FAILED;
		v->rule = 4;
		v->stage = SW_STAGE_LOST;
		v->cause = "runner-lost";
		v->confidence = SW_CONFIDENCE_CERTAIN;
		v->evidence = SW_EVIDENCE_ATTESTED;
		v->evidence_source = r->source;
		v->has_hit = false;
	}
}

int sw_run_command(const sw_run_options *options, const sw_pack *pack, const sw_facts *facts,
                   sw_run_report *report, sw_result **result, sw_error *err)
{
	glue g = {.outer = options};
	int rc = sw_scan_begin(&g.scan, pack, facts, err);
	if (rc)
		return rc;
	sw_run_options inner = *options;
	inner.on_output = on_output;
	inner.on_note = on_note;
	inner.before_spawn = before_spawn;
	inner.ctx = &g;
	if (!inner.backend)
		inner.backend = sw_pack_backend(pack);
	rc = sw_run_supervise(&inner, report, err);
	if (!rc && g.error)
		rc = sw_error_set(err, g.error, "the output could not be classified");
	if (!rc)
		rc = sw_scan_finish(g.scan, report->exit, report->started, report->source, result,
		                    err);
	sw_scan_free(g.scan);
	if (!rc)
		add_process_knowledge(report, *result);
	return rc;
}
