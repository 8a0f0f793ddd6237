/*
 * Seccomp filters of the sandbox's own, under `run --trace`.
 *
 * Where two filters disagree the kernel takes the stricter answer: an error of theirs hides
 * the call from ours. So a thread that is under such a filter is stopped at the beginning and
 * at the end of each of its calls. It costs more, and only there. What the command itself sets up
 * is not the sandbox's doing.
 */
#include <elf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

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

enum { ANSWERS_ERRORS = 1, ANSWERS_TRACER = 2 };

/* What the program can answer besides. What cannot be read can answer anything. */
static int answers(pid_t pid, uint64_t program)
{
	struct sock_fprog prog;
	struct sock_filter f[BPF_MAXINSNS];
	struct iovec mine = {&prog, sizeof prog};
	struct iovec its = {(void *)(uintptr_t)program, sizeof prog};
	if (process_vm_readv(pid, &mine, 1, &its, 1, 0) != (ssize_t)sizeof prog ||
	    prog.len > BPF_MAXINSNS)
		return ANSWERS_ERRORS | ANSWERS_TRACER;
	mine = (struct iovec){f, prog.len * sizeof f[0]};
	its = (struct iovec){prog.filter, mine.iov_len};
	if (process_vm_readv(pid, &mine, 1, &its, 1, 0) != (ssize_t)mine.iov_len)
		return ANSWERS_ERRORS | ANSWERS_TRACER;
	int can = 0;
	for (unsigned i = 0; i < prog.len; i++) {
		if (BPF_CLASS(f[i].code) != BPF_RET)
			continue;
		uint32_t action = f[i].k & SECCOMP_RET_ACTION_FULL;
		if (f[i].code != (BPF_RET | BPF_K))
			can = ANSWERS_ERRORS | ANSWERS_TRACER;
		else if (action == SECCOMP_RET_ERRNO)
			can |= ANSWERS_ERRORS;
		else if (action == SECCOMP_RET_TRACE)
			can |= ANSWERS_TRACER;
	}
	return can;
}

void run_trace_filter_set(run_trace *t, pid_t pid, run_trace_slot *s)
{
	if (t->command) {
		/* a program that shuts itself in would meet the same refusals outside */
		t->filtered_itself = true;
		return;
	}
	int can = answers(pid, s->args[2]);
	if (!can)
		return;
	t->filtered = s->under_filter = true;
	t->sandbox_traces |= (can & ANSWERS_TRACER) != 0;
	t->sandbox_filters = count_filters(pid);
}

bool run_trace_filter_answers(const run_trace *t, pid_t pid)
{
	unsigned long data;
	if (ptrace(PTRACE_GETEVENTMSG, pid, 0, &data) || data != RUN_TRACE_DATA)
		return true;
	/* Of several that ask a tracer the newest is heard: the command's own could speak for ours
	 * and hide the sandbox's. */
	if (!t->sandbox_traces)
		return false;
	int n = count_filters(pid);
	return n < 0 || n > t->sandbox_filters;
}

void run_trace_filter_refuse(pid_t pid)
{
	bool done = false;
#if defined(__x86_64__)
	struct user_regs_struct r;
	struct iovec v = {&r, sizeof r};
	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &v) == 0) {
		r.orig_rax = (unsigned long long)-1;
		r.rax = (unsigned long long)-ENOSYS;
		done = ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &v) == 0;
	}
#elif defined(__aarch64__)
	struct user_regs_struct r;
	struct iovec v = {&r, sizeof r};
	int nr = -1;
	struct iovec call = {&nr, sizeof nr};
	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &v) == 0) {
		r.regs[0] = (unsigned long long)-ENOSYS;
		done = ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &v) == 0 &&
		       ptrace(PTRACE_SETREGSET, pid, (void *)NT_ARM_SYSTEM_CALL, &call) == 0;
	}
#endif
	if (!done) /* rather no process than one that the sandbox would have stopped */
		kill(pid, SIGKILL);
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
