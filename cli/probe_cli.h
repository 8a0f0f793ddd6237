/* probe_cli.h - what status, doctor, preflight and confine share. */
#ifndef SW_CLI_PROBE_H
#define SW_CLI_PROBE_H

#include "args.h"
#include "confine.h"
#include "probe.h"

/* --deadline, --image, --json. 1: taken, 0: not one of these,
 * < 0: bad value, printed. */
int probe_cli_option(cli_args *a, sw_probe_options *o, bool *json);
/* Fills the pack set and what else has a default. */
void probe_cli_defaults(sw_probe_options *o);
void probe_cli_puts(FILE *to, const char *z); /* captured text made safe for a terminal */
void probe_cli_guarantees(FILE *to, uint32_t bits);
json_t *probe_cli_guarantees_json(uint32_t bits);
json_t *probe_cli_capability_json(const sw_confine_capability *c);

#define PROBE_CLI_PATHS 256
/* The policy options of confine and preflight: --sandbox, --network, --workspace,
 * --readable, --writable, --env, --image, --memory-mb, --cpus, --partial. */
typedef struct probe_cli_policy {
	sw_confine_policy policy;
	char *readable[PROBE_CLI_PATHS], *writable[PROBE_CLI_PATHS]; /* canonical, owned */
	sw_env_var env[PROBE_CLI_PATHS], client[32];
	char *workspace; /* owned */
	sw_confine_host host;
} probe_cli_policy;
void probe_cli_policy_init(probe_cli_policy *p);
int probe_cli_policy_option(probe_cli_policy *p, cli_args *a);
/* Canonical paths, the host, values of variables. 0 or an exit status, printed. */
int probe_cli_policy_finish(probe_cli_policy *p);
void probe_cli_policy_free(probe_cli_policy *p);

#endif
