/* The supervisor's state while a command runs; shared by supervise.c and loop.c only. */
#ifndef SW_RUN_LOOP_H
#define SW_RUN_LOOP_H

#include "run_internal.h"

typedef enum { RUN_GOING, RUN_TERM_SENT, RUN_KILLED } run_phase;

typedef struct run_loop {
	const sw_run_options *o;
	sw_run_report *r;
	run_tree tree;
	run_cgroup cgroup;
	run_attest *attest;
	run_pump *pump; /* NULL: the output goes nowhere */
	run_signals signals;
	int in;         /* read end of the command's output; -1: ended or cut */
	int kernel_log; /* -1: none */
	run_phase phase;
	int64_t start; /* monotonic, as all below; 0: not set */
	int64_t deadline, grace, drain;
	int64_t term_at, main_done_at;
	int64_t owed;            /* with cut: bytes that lay in the pipe then */
	bool cut;                /* who writes on is not heard any more */
	uint64_t sent_to_runner; /* bit n-1: signal n was sent to it while it lived */
	bool ending_runner;      /* run had begun to end everything while it lived */
	int endings;             /* signals that ask for an end, not from the terminal */
	bool hurry;              /* nobody waits for a slow reader any more */
	bool blocked;            /* the ring is full */
	bool abandoned;          /* the reader was given up: what comes now is dropped */
	bool told_closed, looked_at_output;
	uint64_t dropped;
	char scratch[65536];
} run_loop;

void run_note(run_loop *l, sw_run_note_kind kind, int64_t value, const char *text);
/* Until the command has ended, its output is drained and no descendant is left. */
void run_loop_run(run_loop *l);

#endif
