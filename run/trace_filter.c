/*
 * Seccomp filters of the sandbox's own, under `run --trace`.
 *
 * Where two filters disagree the kernel takes the stricter answer: an error of theirs hides
 * the call from ours. So a thread that is under such a filter is stopped at the beginning and
 * at the end of each of its calls. It costs more, and only there. What the command itself sets up
 * is not the sandbox's doing.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "run_internal.h"
#include "trace.h"

/* How many filters the thread is under; -1: the kernel does not say (before 5.9). */
static int count_filters(pid_t pid)
{
	char path[64], *text, *at;
	size_t n;
	int count = -1;
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (sw_read_file(path, 1 << 16, &text, &n, NULL))
		return -1;
	at = strstr(text, "\nSeccomp_filters:");
	if (at)
		count = atoi(at + sizeof "\nSeccomp_filters:" - 1);
	free(text);
	return count;
}

/* Whether the program can answer with an error. What cannot be read can. */
static bool answers_with_errors(pid_t pid, uint64_t program)
{
	struct sock_fprog prog;
	struct sock_filter f[BPF_MAXINSNS];
	struct iovec mine = {&prog, sizeof prog};
	struct iovec its = {(void *)(uintptr_t)program, sizeof prog};
	if (process_vm_readv(pid, &mine, 1, &its, 1, 0) != (ssize_t)sizeof prog ||
	    prog.len > BPF_MAXINSNS)
		return true;
	mine = (struct iovec){f, prog.len * sizeof f[0]};
	its = (struct iovec){prog.filter, mine.iov_len};
	if (process_vm_readv(pid, &mine, 1, &its, 1, 0) != (ssize_t)mine.iov_len)
		return true;
	for (unsigned i = 0; i < prog.len; i++) {
		bool fixed = f[i].code == (BPF_RET | BPF_K);
		if (BPF_CLASS(f[i].code) == BPF_RET &&
		    (!fixed || (f[i].k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO))
			return true;
	}
	return false;
}

void run_trace_filter_set(run_trace *t, pid_t pid, run_trace_slot *s)
{
	if (t->command) {
		/* a program that shuts itself in would meet the same refusals outside */
		t->filtered_itself = true;
		return;
	}
	if (!answers_with_errors(pid, s->args[2]))
		return;
	t->filtered = s->under_filter = true;
	t->sandbox_filters = count_filters(pid);
}

bool run_trace_filter_itself(const run_trace *t, pid_t pid)
{
	if (!t->filtered_itself)
		return false;
	int n = count_filters(pid);
	return n < 0 || n > t->sandbox_filters;
}

bool run_trace_filter_inherited(run_trace *t, pid_t pid)
{
	if (!t->filtered)
		return false;
	int n = count_filters(pid);
	return n < 0 || n > t->own_filters;
}

void run_trace_filter_first(run_trace *t, pid_t pid)
{
	int n = t->own_filters ? 0 : count_filters(pid);
	if (n > 0)
		t->own_filters = n;
}
