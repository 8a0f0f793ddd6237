/* backends.c - which backends there are, and the probes of bwrap, Landlock, sandbox-exec. */
#include "probe_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "landlock.h"

#ifdef __linux__
#define LINUX true
#else
#define LINUX false
#endif
#ifdef __APPLE__
#define MACOS true
#else
#define MACOS false
#endif
#ifdef _WIN32
#define WINDOWS true
#else
#define WINDOWS false
#endif

const pr_backend pr_backends[] = {
    {"bwrap", "bwrap", LINUX, pr_probe_bwrap},
    {"landlock", NULL, LINUX, pr_probe_landlock},
    {"podman", "podman", !WINDOWS, pr_probe_podman},
    {"docker", "docker", !WINDOWS, pr_probe_docker},
    {"firejail", "firejail", LINUX, pr_probe_wrapper},
    {"nsjail", "nsjail", LINUX, pr_probe_wrapper},
    {"systemd-run", "systemd-run", LINUX, pr_probe_wrapper},
    {"runc", "runc", LINUX, pr_probe_oci},
    {"crun", "crun", LINUX, pr_probe_oci},
    {"gvisor", "runsc", LINUX, pr_probe_oci},
    {"seatbelt", "sandbox-exec", MACOS, pr_probe_seatbelt},
    {"appcontainer", NULL, WINDOWS, NULL},
};
const size_t pr_backends_n = sizeof(pr_backends) / sizeof(*pr_backends);

const pr_backend *pr_backend_find(const char *id)
{
	for (size_t i = 0; i < pr_backends_n; i++)
		if (!strcmp(pr_backends[i].id, id))
			return &pr_backends[i];
	return NULL;
}

/* The argv under proof is the one that `run --sandbox` uses: built by confine. */
static sw_confined *build(const pr_call *c, const sw_backend_status *b, const pf_proof *p,
                          bool partial, const char *runner)
{
	sw_str argv[PF_ARGS_MAX];
	size_t n = pf_command(p, argv);
	sw_confine_policy policy = {.mode = SW_MODE_WORKSPACE_WRITE,
	                            .workspace = p->workspace,
	                            .runner = runner,
	                            .partial = partial,
	                            .host = &c->host};
	sw_confined *out = NULL;
	int rc = sw_confine(&out, b->id, &policy, argv, n, NULL);
	if (rc == SW_ENOMEM)
		*c->no_memory = true;
	return rc ? NULL : out;
}

/* Once with this argv. */
static void attempt(const pr_call *c, sw_backend_status *b, bool partial, const char *runner,
                    int (*child)(int, char **), uint32_t expected)
{
	pf_proof p;
	pb_outcome o;
	if (!pr_planted(c, b, &p))
		return;
	sw_confined *argv = build(c, b, &p, partial, runner);
	if (argv) {
		pr_spawn(c, &p, argv->argv, child, &o);
		pr_conclude(c, b, &p, &o, expected & argv->guarantees, argv->guarantees,
		            partial ? SW_PROBE_PARTIAL : SW_PROBE_FULL);
		pb_outcome_free(&o);
	} else {
		b->result = SW_PROBE_UNKNOWN;
		pf_step(b, "prepare", SW_STEP_FAILED, "the argv could not be built");
	}
	sw_confined_free(argv);
	pf_clear(&p);
}

#define EVERY_PROOF                                                                           \
	(SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(ENV) | SW_G(NETWORK) | SW_G(PID) | SW_G(IPC) | \
	 SW_G(SYSCALLS))

void pr_probe_bwrap(const pr_call *c, sw_backend_status *b)
{
	attempt(c, b, false, b->path, NULL, EVERY_PROOF);
	/* Only where the runner itself failed is the reduced base worth a try: a bwrap that
	 * does not confine, or that hangs, is not made better by asking for less. */
	if (b->result != SW_PROBE_UNUSABLE || !strcmp(b->cause, "probe-not-confined") ||
	    !strcmp(b->cause, "probe-no-command"))
		return;
	sw_backend_status full = *b, reduced = *b;
	reduced.n_steps = 0;
	attempt(c, &reduced, true, b->path, NULL, EVERY_PROOF);
	if (!strcmp(reduced.cause, PR_NO_MEMORY)) {
		*b = reduced;
		return;
	}
	b->n_steps = 0;
	char why[200];
	snprintf(why, sizeof(why), "%.190s", full.line);
	pf_step(b, "full", SW_STEP_FAILED, "%s", why);
	if (reduced.result != SW_PROBE_PARTIAL) {
		pf_step(b, "reduced", SW_STEP_FAILED, "%.190s", reduced.line);
		return;
	}
	for (size_t i = 0; i < reduced.n_steps; i++)
		pf_step(b, reduced.steps[i].name, reduced.steps[i].result, "%s",
		        reduced.steps[i].detail);
	b->result = SW_PROBE_PARTIAL;
	b->guarantees = reduced.guarantees;
	/* cause, advice and line stay those of the full attempt: what to mend */
}

static int launcher(int argc, char **argv)
{
	return sw_landlock_main(argc - 1, argv + 1);
}

void pr_probe_landlock(const pr_call *c, sw_backend_status *b)
{
	const char *own = c->opts->landlock_launcher;
	int abi = sw_landlock_abi();
	if (abi < SW_LANDLOCK_ABI_MIN) {
		b->result = SW_PROBE_UNUSABLE;
		if (abi < 0) {
			pf_step(b, "abi", SW_STEP_FAILED, "%s", strerror(-abi));
			pr_set_cause(c, b, "landlock-unsupported");
		} else {
			pf_step(b, "abi", SW_STEP_FAILED,
			        "ABI %d: truncation is free below %d, refused", abi,
			        SW_LANDLOCK_ABI_MIN);
			pr_set_cause(c, b, "landlock-abi-too-old");
		}
		return;
	}
	pf_step(b, "abi", SW_STEP_OK, "ABI %d%s%s", abi, abi >= 4 ? ", TCP" : ", no TCP rules",
	        abi >= 6 ? ", signals and abstract sockets" : "");
	attempt(c, b, false, own, own ? NULL : launcher, EVERY_PROOF);
}

void pr_probe_seatbelt(const pr_call *c, sw_backend_status *b)
{
	attempt(c, b, false, b->path, NULL, EVERY_PROOF);
}
