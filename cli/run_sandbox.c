/* `run --sandbox`: choosing a backend and wrapping the command, or refusing to. */
#include "run_cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int refuse(run_cli_sandbox *b, const char *cause, const char *why, const char *fix)
{
	snprintf(b->cause, sizeof b->cause, "%s", cause);
	snprintf(b->why, sizeof b->why, "%s", why);
	snprintf(b->fix, sizeof b->fix, "%s", fix ? fix : "");
	return 1;
}

/* The best that is proved to work here, now. A pinned backend is taken as it is. */
static int choose(run_cli_sandbox *b, const run_cli_options *o, uint32_t minimum,
                  const char **backend, sw_error *memory)
{
	if (o->backend) {
		*backend = o->backend;
		return 0;
	}
	sw_probe_options p = {.image = o->policy.policy.image};
	sw_error err = {0};
	probe_cli_defaults(&p);
	/* run ends the tree itself, and what is granted need not hold */
	minimum &= ~SW_G(TREE_KILL);
	if (o->policy.policy.network)
		minimum &= ~SW_G(NETWORK);
	int rc = sw_probe_choose(&b->chosen, &p, minimum, &err);
	if (rc == SW_ENOMEM) {
		*memory = err;
		return rc;
	}
	if (rc) {
		char why[1024];
		snprintf(why, sizeof why, "%s%s%.300s", err.what, err.why[0] ? ": " : "", err.why);
		return refuse(b, "no-usable-sandbox", why, err.fix);
	}
	*backend = b->chosen->id;
	return 0;
}

static const char *program_of(const char *backend)
{
	static const char *const programs[][2] = {{"bwrap", "bwrap"},
	                                          {"docker", "docker"},
	                                          {"podman", "podman"},
	                                          {"seatbelt", "sandbox-exec"}};
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
		if (!strcmp(programs[i][0], backend))
			return programs[i][1];
	return NULL;
}

int run_cli_sandbox_plan(run_cli_sandbox *b, run_cli_options *o, uint32_t minimum, sw_error *err)
{
	sw_confine_policy *p = &o->policy.policy;
	memset(b, 0, sizeof *b);
	if (p->mode == SW_MODE_DANGER_FULL_ACCESS)
		return 0;
	if (sw_sandbox_disabled(b->disabled, sizeof b->disabled)) {
		if (o->allow_unconfined)
			return 0;
		char why[256];
		snprintf(why, sizeof why, "the sandbox is switched off by %s", b->disabled);
		return refuse(b, "sandbox-disabled", why,
		              "unset the variable, or say --allow-unconfined to run without");
	}
	const char *backend = NULL;
	int rc = choose(b, o, minimum, &backend, err);
	if (rc)
		return rc;
	if (probe_cli_policy_finish(&o->policy))
		return sw_error_set(err, SW_EINVAL, "the policy cannot be used");
	ssize_t len = readlink("/proc/self/exe", b->self, sizeof b->self - 1);
	if (len > 0)
		p->self = b->self;
	if (b->chosen && b->chosen->result == SW_PROBE_PARTIAL && !strcmp(backend, "bwrap"))
		p->partial = true;
	const char *program = program_of(backend);
	if (program) {
		b->runner = b->chosen && b->chosen->path
		                ? strdup(b->chosen->path)
		                : sw_find_program(program, NULL, NULL, NULL, 0);
		p->runner = b->runner;
		if (!b->runner && ((b->chosen && b->chosen->path) || sw_text_lacked()))
			return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	sw_str *argv = calloc((size_t)o->argc + 1, sizeof *argv);
	if (!argv)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	for (int i = 0; i < o->argc; i++)
		argv[i] = sw_str_of(o->argv[i]);
	rc = sw_confine(&b->confined, backend, p, argv, (size_t)o->argc, err);
	free(argv);
	return rc;
}

void run_cli_sandbox_free(run_cli_sandbox *b)
{
	sw_backend_status_free(b->chosen);
	sw_confined_free(b->confined);
	free(b->runner);
}
