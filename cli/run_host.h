/* run_host.h - what the levels of `run` depend on outside its arguments. */
#ifndef SW_CLI_RUN_HOST_H
#define SW_CLI_RUN_HOST_H

#include "run_cli.h"

#define RUN_HOST_FDS_MAX 132
#define RUN_HOST_MOUNTED_MAX 4096

typedef struct run_host {
	char cwd[4096], home[4096], user[256];
	sw_derive_fd fds[RUN_HOST_FDS_MAX];
	char *paths[RUN_HOST_FDS_MAX];
	size_t n_fds;
	char **mounted;
	size_t n_mounted;
	bool no_memory;      /* something was not seen for that reason: nothing holds */
	sw_derive_options d; /* filled, but for what the caller states */
} run_host;

/* argv: what is executed in the end. Free with run_host_free(). */
void run_host_look(run_host *h, const run_cli_options *o, char *const *argv);
void run_host_free(run_host *h);
/* Takes the level away where the argv's names are not to be trusted, or where variables steer
 * the engine. */
void run_host_doubt(const run_host *h, const run_cli_options *o, char *const *argv, sw_derived *d);

#endif
