/* containers.c - docker and podman in four named steps, so that "the daemon is down" is
 * not "no permission" and neither is "no image". Nothing is ever pulled. */
#include "probe_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLAIMS                                                                                \
	(SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(ENV) | SW_G(NETWORK) | SW_G(PID) | SW_G(IPC) | \
	 SW_G(SYSCALLS))

/* What differs between the two clients. */
typedef struct engine {
	const char *service;     /* name of the second step */
	const char *ask[6];      /* arguments that make the service answer; prints a version */
	const char *rootless[6]; /* prints something with "rootless" or "true" in it */
} engine;

static const engine docker = {
    "daemon",
    {"version", "--format", "{{.Server.Version}}", NULL},
    {"info", "--format", "{{.SecurityOptions}}", NULL},
};
static const engine podman = {
    "service",
    {"info", "--format", "{{.Version.Version}} rootless={{.Host.Security.Rootless}}", NULL},
    {NULL},
};

static void ask(const pr_call *c, const sw_backend_status *b, const char *const *args,
                pb_outcome *o)
{
	char *argv[8] = {b->path};
	for (size_t i = 0; i < 6 && args[i]; i++)
		argv[i + 1] = (char *)args[i];
	pr_spawn(c, NULL, argv, NULL, o);
}

/* A step that asks the client something. False: failed, and blamed. */
static bool answered(const pr_call *c, sw_backend_status *b, const char *step, pb_outcome *o)
{
	char line[200];
	pr_first_line(o, line, sizeof(line));
	if (o->spawned && !o->timed_out && o->code == 0)
		return true;
	b->result = SW_PROBE_UNUSABLE;
	if (!o->spawned) {
		pf_step(b, step, SW_STEP_FAILED, "cannot be started: %s", strerror(o->spawn_errno));
		pr_set_cause(c, b, "exec-failed");
	} else if (o->timed_out) {
		b->result = SW_PROBE_UNKNOWN;
		pf_step(b, step, SW_STEP_UNKNOWN, "no answer within %d ms", c->deadline_ms);
		pr_set_cause(c, b, "probe-timeout");
	} else {
		pr_blame(c, b, o);
		pf_step(b, step, SW_STEP_FAILED, "%.200s", b->line[0] ? b->line : line);
	}
	return false;
}

static bool service_step(const pr_call *c, sw_backend_status *b, const engine *e)
{
	pb_outcome o;
	char line[200];
	ask(c, b, e->ask, &o);
	bool ok = answered(c, b, e->service, &o);
	if (ok) {
		pr_first_line(&o, line, sizeof(line));
		bool rootless = strstr(line, "rootless=true") != NULL;
		snprintf(b->version, sizeof(b->version), "%.*s", (int)strcspn(line, " "), line);
		if (e->rootless[0]) {
			pb_outcome info;
			ask(c, b, e->rootless, &info);
			rootless = info.out && strstr(info.out, "rootless");
			pb_outcome_free(&info);
		}
		pf_step(b, e->service, SW_STEP_OK, "%.60s, %s", b->version,
		        rootless ? "rootless" : "as root");
	}
	pb_outcome_free(&o);
	return ok;
}

static bool image_step(const pr_call *c, sw_backend_status *b)
{
	pb_outcome o;
	const char *image = c->opts->image ? c->opts->image : SW_CONFINE_IMAGE;
	const char *args[] = {"image", "inspect", "--format", "{{.Id}}", image, NULL};
	ask(c, b, args, &o);
	bool ok = answered(c, b, "image", &o);
	if (ok) {
		pf_step(b, "image", SW_STEP_OK, "%.100s is present", image);
	} else if (b->result == SW_PROBE_UNUSABLE && o.spawned) {
		pr_set_cause(c, b, "image-missing");
		snprintf(b->advice, sizeof(b->advice),
		         "%s pull %.200s   (a probe never does), or name one that is there: "
		         "--image NAME",
		         b->id, image);
	}
	pb_outcome_free(&o);
	return ok;
}

/* The container goes on after its client was killed. */
static void remove_container(const pr_call *c, const sw_backend_status *b, const char *name)
{
	pb_outcome o;
	const char *args[] = {"rm", "--force", name, NULL};
	ask(c, b, args, &o);
	pb_outcome_free(&o);
}

static void run_step(const pr_call *c, sw_backend_status *b)
{
	pf_proof p;
	if (!pr_planted(c, b, &p))
		return;
	sw_str command[PF_ARGS_MAX];
	size_t n = pf_command(&p, command);
	sw_confine_policy policy = {.mode = SW_MODE_WORKSPACE_WRITE,
	                            .workspace = p.workspace,
	                            .runner = b->path,
	                            .image = c->opts->image,
	                            .host = &c->host};
	sw_confined *built = NULL;
	char name[64];
	snprintf(name, sizeof(name), "sandwitness-probe-%.16s", p.nonce);
	char **argv = NULL;
	int rc = sw_confine(&built, b->id, &policy, command, n, NULL);
	if (!rc)
		argv = calloc(built->argc + 3, sizeof(*argv));
	if (rc == SW_ENOMEM || (!rc && !argv))
		*c->no_memory = true;
	if (argv) {
		/* argv[0] is the client, argv[1] is "run" */
		argv[0] = built->argv[0];
		argv[1] = built->argv[1];
		argv[2] = (char *)"--name";
		argv[3] = name;
		memcpy(argv + 4, built->argv + 2, (built->argc - 2) * sizeof(*argv));
		pb_outcome o;
		pr_spawn(c, &p, argv, NULL, &o);
		pr_conclude(c, b, &p, &o, CLAIMS & built->guarantees, built->guarantees,
		            SW_PROBE_FULL);
		if (o.timed_out)
			remove_container(c, b, name);
		pb_outcome_free(&o);
	}
	free(argv);
	sw_confined_free(built);
	pf_clear(&p);
}

static void probe_engine(const pr_call *c, sw_backend_status *b, const engine *e)
{
	pf_step(b, "client", SW_STEP_OK, "%.200s", b->path);
	if (!service_step(c, b, e)) {
		pf_step(b, "image", SW_STEP_SKIPPED, "the %s does not answer", e->service);
		pf_step(b, "marker", SW_STEP_SKIPPED, "the %s does not answer", e->service);
	} else if (!image_step(c, b)) {
		pf_step(b, "marker", SW_STEP_SKIPPED, "there is no image to run");
	} else {
		run_step(c, b);
	}
}

void pr_probe_docker(const pr_call *c, sw_backend_status *b)
{
	probe_engine(c, b, &docker);
}

void pr_probe_podman(const pr_call *c, sw_backend_status *b)
{
	probe_engine(c, b, &podman);
}
