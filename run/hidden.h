/* Hidden or absent: what the host says about paths that the output calls missing or closed. */
#ifndef SW_RUN_HIDDEN_H
#define SW_RUN_HIDDEN_H

#include "run.h"

#define RUN_HIDDEN_LINES 16
#define RUN_HIDDEN_LINE_MAX 1024

typedef struct run_hidden {
	char lines[RUN_HIDDEN_LINES][RUN_HIDDEN_LINE_MAX];
	size_t n;
	char tail[RUN_HIDDEN_LINE_MAX]; /* the line that is not complete yet, its end */
	size_t tail_len;
	bool tail_cut;
} run_hidden;

/* Keeps the lines that say that something does not exist; the first few of them. */
void run_hidden_output(run_hidden *h, const void *bytes, size_t n);
/*
 * Asks the host, changes nothing there, and tells the result: a path that exists outside
 * was hidden; a path that this user may use outside was refused by the sandbox. Only for
 * backends whose sandbox shows the host's own files. traced: the calls of the command were seen, so
 * that refusals are known already. 0 or SW_ENOMEM.
 */
int run_hidden_look(const run_hidden *h, const sw_run_report *report, const char *command,
                    const sw_facts *facts, bool traced, sw_result *result);

#endif
