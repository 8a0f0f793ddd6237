/* sandwitness preflight: a runtime's start-up gate */
#include "probe_cli.h"

#include <stdlib.h>
#include <string.h>

enum { PREFLIGHT_LESS = 10, PREFLIGHT_BROKEN = 11 };

typedef struct gate {
	const char *backend; /* NULL: the best one */
	bool full;           /* required */
	bool json;
	sw_probe_options probe;
	probe_cli_policy policy;
	/* the answer */
	const sw_backend_status *found;
	int rc;
	char message[512], advice[512];
} gate;

static void refuse(gate *g, int rc, const char *message, const char *advice)
{
	g->rc = rc;
	snprintf(g->message, sizeof(g->message), "%s", message);
	snprintf(g->advice, sizeof(g->advice), "%s", advice);
}

static void judge(gate *g)
{
	const sw_backend_status *b = g->found;
	char text[480];
	if (b->result == SW_PROBE_FULL || (b->result == SW_PROBE_PARTIAL && !g->full)) {
		snprintf(g->message, sizeof(g->message), "%s confines here, now (%s)", b->id,
		         sw_probe_result_name(b->result));
		g->rc = CLI_OK;
		return;
	}
	if (b->result == SW_PROBE_PARTIAL)
		snprintf(text, sizeof(text),
		         "%s confines in part only and full is required%s%.300s", b->id,
		         b->line[0] ? ": " : "", b->line);
	else if (!b->here)
		snprintf(text, sizeof(text), "%s is not on this platform", b->id);
	else if (!b->found)
		snprintf(text, sizeof(text),
		         "%s is not installed, or not on a PATH that can be trusted", b->id);
	else
		snprintf(text, sizeof(text), "the %s sandbox does not work here (%s%s%s)%s%.300s",
		         b->id, sw_probe_result_name(b->result), b->cause[0] ? ", " : "", b->cause,
		         b->line[0] ? ": " : "", b->line);
	char install[200];
	sw_install_command(NULL, !strcmp(b->id, "bwrap") ? "bubblewrap" : b->id, install,
	                   sizeof(install));
	refuse(g, b->result == SW_PROBE_PARTIAL ? PREFLIGHT_LESS : PREFLIGHT_BROKEN, text,
	       b->found || !b->here ? b->advice : install);
}

static int ask(gate *g, sw_status **status, sw_backend_status **chosen)
{
	sw_error e;
	char by[96];
	if (sw_sandbox_disabled(by, sizeof(by))) {
		char text[160];
		snprintf(text, sizeof(text), "the sandbox is switched off by %s", by);
		refuse(g, PREFLIGHT_BROKEN, text, "unset SANDWITNESS_SANDBOX METNOS_SANDBOX");
		return CLI_OK;
	}
	if (g->backend) {
		g->probe.only = g->backend;
		if (sw_status_read(status, &g->probe, &e))
			return cli_fail(&e);
		g->found = sw_status_backend(*status, g->backend);
		judge(g);
		return CLI_OK;
	}
	int rc = sw_probe_choose(chosen, &g->probe, 0, &e);
	if (rc == SW_ENOTFOUND) {
		char text[480];
		snprintf(text, sizeof(text), "no sandbox works here: %.440s", e.why);
		refuse(g, PREFLIGHT_BROKEN, text, e.fix);
		return CLI_OK;
	}
	if (rc)
		return cli_fail(&e);
	g->found = *chosen;
	judge(g);
	return CLI_OK;
}

static json_t *steps_json(const sw_backend_status *b)
{
	json_t *a = json_array();
	for (size_t i = 0; b && i < b->n_steps; i++) {
		json_t *o = json_object();
		json_object_set_new(o, "name", sw_json_z(b->steps[i].name));
		json_object_set_new(o, "result",
		                    sw_json_z(sw_step_result_name(b->steps[i].result)));
		json_object_set_new(o, "detail", sw_json_text(sw_str_of(b->steps[i].detail)));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *answer_json(const gate *g)
{
	const sw_backend_status *b = g->found;
	json_t *o = json_object();
	bool ok = g->rc == CLI_OK;
	sw_confine_capability cap = sw_confine_capabilities(
	    &g->policy.policy, b ? b->id : "none", ok && b && (b->guarantees & SW_G(NETWORK)));
	json_object_set_new(o, "schema", json_integer(1));
	json_object_set_new(o, "ok", json_boolean(ok));
	json_object_set_new(o, "backend", sw_json_z(b ? b->id : g->backend));
	json_object_set_new(o, "require", sw_json_z(g->full ? "full" : "partial"));
	json_object_set_new(o, "result",
	                    sw_json_z(sw_probe_result_name(b ? b->result : SW_PROBE_NOT_PROBED)));
	json_object_set_new(o, "guarantees", probe_cli_guarantees_json(b ? b->guarantees : 0));
	json_object_set_new(o, "capability", probe_cli_capability_json(&cap));
	json_object_set_new(o, "steps", steps_json(b));
	json_object_set_new(o, "cause", b && b->cause[0] ? sw_json_z(b->cause) : json_null());
	json_object_set_new(o, "message", sw_json_text(sw_str_of(g->message)));
	json_object_set_new(o, "advice",
	                    g->advice[0] ? sw_json_text(sw_str_of(g->advice)) : json_null());
	json_object_set_new(o, "decision", sw_json_z(ok ? "run" : "refusing to run"));
	return o;
}

static void print_answer(const gate *g)
{
	FILE *to = g->rc == CLI_OK ? stdout : stderr;
	if (g->rc != CLI_OK)
		fputs("sandbox preflight failed: ", to);
	probe_cli_puts(to, g->message);
	fputc('\n', to);
	if (g->advice[0]) {
		fputs("  fix: ", to);
		probe_cli_puts(to, g->advice);
		fputc('\n', to);
	}
	if (g->rc != CLI_OK)
		fputs("refusing to run commands unconfined; nothing was executed\n", to);
}

static int parse(gate *g, const cli_verb *self, int argc, char **argv)
{
	cli_args a;
	cli_args_init(&a, self, argc, argv);
	for (int t; (t = cli_args_next(&a));) {
		if (t == 2)
			return cli_usage_error(self, "no argument is taken: \"%.60s\"",
			                       a.inline_value);
		const char *v;
		if (!strcmp(a.name, "backend")) {
			if (!(g->backend = cli_args_value(&a)))
				return CLI_USAGE;
			continue;
		}
		if (!strcmp(a.name, "require")) {
			if (!(v = cli_args_value(&a)))
				return CLI_USAGE;
			g->full = !strcmp(v, "full");
			if (!g->full && strcmp(v, "partial") != 0)
				return cli_usage_error(self, "--require takes full or partial");
			continue;
		}
		int taken = probe_cli_option(&a, &g->probe, &g->json);
		if (!taken)
			taken = probe_cli_policy_option(&g->policy, &a);
		if (taken < 0)
			return -taken;
		if (!taken)
			return cli_args_unknown(&a);
	}
	return CLI_OK;
}

static int run(int argc, char **argv)
{
	gate *g = calloc(1, sizeof(*g));
	if (!g)
		return cli_no_memory();
	*g = (gate){
	    .full = true, .probe = {.probe = true, .no_recheck = true}, .rc = PREFLIGHT_BROKEN};
	probe_cli_policy_init(&g->policy);
	int rc = parse(g, cli_verb_find("preflight"), argc, argv);
	sw_status *status = NULL;
	sw_backend_status *chosen = NULL;
	if (!rc) {
		probe_cli_defaults(&g->probe);
		rc = ask(g, &status, &chosen);
	}
	if (!rc) {
		if (g->json)
			cli_print_json(stdout, answer_json(g));
		else
			print_answer(g);
		rc = g->rc;
	}
	sw_status_free(status);
	sw_backend_status_free(chosen);
	probe_cli_policy_free(&g->policy);
	free(g);
	return rc;
}

const cli_verb cli_verb_preflight = {
    .name = "preflight",
    .summary = "a runtime's start-up gate: prove the sandbox or refuse to run",
    .usage =
        "[--backend B] [--require full|partial] [--network] [--readable P]... [--writable P]... "
        "[--deadline 5s] [--image I] [--json]",
    .help =
        "Runs a real command through the real backend and checks what came of it. Exit status:\n"
        "0 it holds; 10 less than required; 11 broken. With --json also says what a runtime may\n"
        "tell its policy: can_reach_network narrows only because this proof holds,\n"
        "reaches_beyond_workspace is true with any extra path, private_data always.\n\n"
        "  --backend B        prove this one (default: the best that works)\n"
        "  --require R        full (default) or partial\n\n"
        "Examples:\n"
        "  $ sandwitness preflight --backend bwrap --require partial\n"
        "  $ sandwitness preflight --backend landlock --json\n",
    .run = run,
};
