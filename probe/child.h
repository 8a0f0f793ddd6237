/*
 * child.h - one child with a deadline, its output kept in memory; for probes.
 *
 * The child gets a session of its own, /dev/null as stdin, one pipe for stdout and
 * stderr, and no other descriptor. At the deadline its process group is killed. No
 * process-wide state is touched, so that a service may probe from any thread.
 */
#ifndef SW_PROBE_CHILD_H
#define SW_PROBE_CHILD_H

#include "probe.h"

typedef struct pb_command {
	char *const *argv;
	char *const *envp;
	const char *cwd; /* NULL: / */
	int deadline_ms; /* at least 1 */
	/* Runs in a forked child instead of executing argv[0]; its result is the exit status. */
	int (*child)(int argc, char **argv);
} pb_command;

typedef struct pb_outcome {
	bool spawned; /* false: spawn_errno says why */
	int spawn_errno;
	bool timed_out;
	int code; /* exit status; -1 where a signal ended it */
	int signal;
	char *out; /* NUL-terminated, at most SW_PROBE_OUTPUT_MAX bytes */
	size_t n;
	double ms;
} pb_outcome;

void pb_run(const pb_command *c, pb_outcome *out);
void pb_outcome_free(pb_outcome *out);
sw_exit pb_exit(const pb_outcome *o);

#endif
