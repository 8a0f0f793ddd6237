/*
 * `run --trace`: the calls that were refused, whatever the command says about them.
 *
 * A seccomp filter stops the tree at the beginning of each call of interest; from there
 * it runs to the end of the call, where the result is read. All other calls run at full
 * speed. Nothing is changed: not an argument, not a result.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run_internal.h"
#include "trace.h"

#define SLOTS_MAX (1u << 20)

const char *run_trace_refusal(const sw_run_program *program)
{
	if (program->setid && geteuid() != 0)
		return "the runner is set-uid or has file capabilities, which tracing would take "
		       "from it";
	struct sock_fprog filter;
	if (run_trace_filter(&filter))
		return "not on this processor";
	run_trace_filter_free(&filter);
	return NULL;
}

int run_trace_install(const struct sock_fprog *filter)
{
	/* without CAP_SYS_ADMIN a filter may only be set by one who gives up set-uid programs */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter) == 0)
		return 0;
	if (errno != EACCES)
		return errno;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter))
		return errno;
	return 0;
}

/* ---- calls that have begun: an open hash table by thread ---- */

static run_trace_slot *slot_of(run_trace *t, pid_t pid)
{
	for (size_t i = (size_t)pid & (t->cap_slots - 1);; i = (i + 1) & (t->cap_slots - 1))
		if (t->slots[i].pid == pid || t->slots[i].pid == 0)
			return &t->slots[i];
}

static bool grow(run_trace *t)
{
	size_t cap = t->cap_slots ? t->cap_slots * 2 : 64;
	run_trace_slot *old = t->slots;
	size_t old_cap = t->cap_slots;
	run_trace_slot *more = cap > SLOTS_MAX ? NULL : calloc(cap, sizeof *more);
	if (!more)
		return false;
	t->slots = more;
	t->cap_slots = cap;
	for (size_t i = 0; i < old_cap; i++)
		if (old[i].pid)
			*slot_of(t, old[i].pid) = old[i];
	free(old);
	return true;
}

void run_trace_gone(run_trace *t, pid_t pid)
{
	if (!t->cap_slots)
		return;
	run_trace_slot *s = slot_of(t, pid);
	if (s->pid != pid)
		return;
	/* closing the gap keeps every chain whole */
	size_t mask = t->cap_slots - 1, hole = (size_t)(s - t->slots);
	t->slots[hole].pid = 0;
	t->n_slots--;
	for (size_t i = (hole + 1) & mask; t->slots[i].pid; i = (i + 1) & mask) {
		run_trace_slot moved = t->slots[i];
		t->slots[i].pid = 0;
		*slot_of(t, moved.pid) = moved;
	}
}

/* The thread's slot, made where it has none; NULL: no memory. */
static run_trace_slot *slot_for(run_trace *t, pid_t pid)
{
	if (t->n_slots * 2 >= t->cap_slots && !grow(t))
		return NULL;
	run_trace_slot *s = slot_of(t, pid);
	if (s->pid != pid) {
		*s = (run_trace_slot){.pid = pid, .nr = -1};
		t->n_slots++;
	}
	return s;
}

bool run_trace_follows(run_trace *t, pid_t pid)
{
	if (!t->filtered || !t->cap_slots)
		return false;
	const run_trace_slot *s = slot_of(t, pid);
	return s->pid == pid && s->under_filter;
}

void run_trace_born(run_trace *t, pid_t pid)
{
	run_trace_slot *s = NULL;
	if (!run_trace_follows(t, pid) && run_trace_filter_inherited(t, pid))
		s = slot_for(t, pid);
	if (s)
		s->under_filter = true;
}

/* Keeps what begins; false: of no interest. */
static bool begins(run_trace *t, pid_t pid, uint64_t nr, const uint64_t args[6])
{
	bool wanted =
	    run_trace_sets_filter((int)nr, args) || (t->command && run_call_find((int)nr) != NULL);
	run_trace_slot *s = wanted ? slot_for(t, pid) : NULL;
	if (!s)
		return false;
	s->nr = (int)nr;
	memcpy(s->args, args, sizeof s->args);
	t->calls++;
	return true;
}

bool run_trace_begin(run_trace *t, pid_t pid)
{
	struct __ptrace_syscall_info info;
	uint64_t args[6];
	/* the first call under the filter is the runner's execve: nobody has another one yet */
	run_trace_filter_first(t, pid);
	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof info, &info) <= 0 ||
	    info.op != PTRACE_SYSCALL_INFO_SECCOMP)
		return false;
	for (int i = 0; i < 6; i++)
		args[i] = info.seccomp.args[i];
	return begins(t, pid, info.seccomp.nr, args);
}

/* ---- failures ---- */

/* What it was about: a path or an address, else the call itself. */
static const char *label_of(const run_failed_call *f)
{
	return f->path[0] ? f->path : f->call->name;
}

static void keep(run_trace *t, const run_failed_call *f, run_outside outside)
{
	t->failures++;
	for (size_t i = 0; i < t->n_denials; i++) {
		run_trace_denial *d = &t->denials[i];
		if (d->call == f->call && d->error == f->error && !strcmp(d->path, label_of(f))) {
			d->count++;
			d->order = t->failures;
			return;
		}
	}
	if (t->n_denials == RUN_TRACE_DENIALS_MAX) {
		t->lost++;
		return;
	}
	run_trace_denial *d = &t->denials[t->n_denials++];
	*d = (run_trace_denial){.call = f->call,
	                        .error = f->error,
	                        .outside = outside,
	                        .resource_kind = f->path[0] ? f->resource_kind : "syscall",
	                        .raw_socket = f->raw_socket,
	                        .count = 1,
	                        .order = t->failures};
	snprintf(d->path, sizeof d->path, "%s", label_of(f));
}

static bool known(run_trace *t, const run_failed_call *f)
{
	for (size_t i = 0; i < t->n_denials; i++)
		if (t->denials[i].call == f->call && t->denials[i].error == f->error &&
		    !strcmp(t->denials[i].path, label_of(f)))
			return true;
	return false;
}

static void ends(run_trace *t, pid_t pid, run_trace_slot *s, int error)
{
	run_failed_call f = {.call = run_call_find(s->nr), .pid = pid, .error = error};
	bool sets_filter = run_trace_sets_filter(s->nr, s->args);
	if (sets_filter && !error)
		run_trace_filter_set(t, pid, s);
	s->nr = -1;
	if (!f.call || !error || !run_call_refusal(f.call, error))
		return;
	/* a program of the runner's that is still there sets up, it does not obey */
	if (t->program && !run_other_program_runs(pid, t->program, 0))
		return;
	memcpy(f.args, s->args, sizeof f.args);
	run_trace_read(&f);
	run_outside outside = known(t, &f) || (s->under_filter && run_trace_filter_itself(t, pid))
	                          ? OUTSIDE_UNKNOWN
	                          : run_trace_outside(&f);
	keep(t, &f, outside);
}

void run_trace_call(run_trace *t, pid_t pid)
{
	struct __ptrace_syscall_info info;
	if (!t->cap_slots)
		return;
	run_trace_slot *s = slot_of(t, pid);
	if (s->pid != pid || ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof info, &info) <= 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		uint64_t args[6];
		for (int i = 0; i < 6; i++)
			args[i] = info.entry.args[i];
		s->nr = -1;
		begins(t, pid, info.entry.nr, args);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && s->nr >= 0) {
		ends(t, pid, s, info.exit.is_error ? (int)-info.exit.rval : 0);
	}
}

void run_trace_free(run_trace *t)
{
	free(t->slots);
	t->slots = NULL;
	t->n_slots = t->cap_slots = 0;
}

/* ---- telling ---- */

static const char *errno_word(int e)
{
	static const struct {
		int error;
		const char *name;
	} names[] = {{EROFS, "EROFS"},       {EACCES, "EACCES"},
	             {EPERM, "EPERM"},       {ENETUNREACH, "ENETUNREACH"},
	             {ENETDOWN, "ENETDOWN"}, {EHOSTUNREACH, "EHOSTUNREACH"},
	             {EXDEV, "EXDEV"},       {EAFNOSUPPORT, "EAFNOSUPPORT"},
	             {EINVAL, "EINVAL"},     {ENOSPC, "ENOSPC"},
	             {EUSERS, "EUSERS"},     {ENOSYS, "ENOSYS"}};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].error == e)
			return names[i].name;
	return "?";
}

static const char *cause_of(const run_trace_denial *d)
{
	switch (d->call->kind) {
	case CALL_CONNECT:
		return d->error == EACCES || d->error == EPERM ? "network-denied"
		                                               : "network-unreachable";
	case CALL_BIND:
		return "bind-denied";
	case CALL_SOCKET:
		return d->error == EAFNOSUPPORT ? "address-family-denied"
		       : d->raw_socket          ? "privilege-denied"
		                                : "network-denied";
	case CALL_EXEC:
		return "exec-denied";
	case CALL_UNSHARE:
		return "namespace-denied";
	case CALL_PRIVILEGE:
		return "privilege-denied";
	case CALL_CHOWN:
		return d->error == EROFS ? "write-outside-workspace" : "privilege-denied";
	default:
		return d->error == EXDEV   ? "link-across-denied"
		       : d->error == EROFS ? "write-outside-workspace"
		                           : "permission-denied";
	}
}

/* The newest refusal that counts is the likeliest reason of the end. */
static int newest_first(const void *a, const void *b)
{
	const run_trace_denial *x = *(const run_trace_denial *const *)a;
	const run_trace_denial *y = *(const run_trace_denial *const *)b;
	bool dx = x->outside == OUTSIDE_ALLOWED, dy = y->outside == OUTSIDE_ALLOWED;
	if (dx != dy)
		return dx ? -1 : 1;
	return x->order > y->order ? -1 : x->order < y->order;
}

/*
 * A line that says "Operation not permitted" is not the sandbox's doing where every call
 * of the tree that failed like this would fail outside as well.
 */
static bool refuted(const run_trace *t, const sw_result *r)
{
	if (!t->on || t->lost || !r->has_hit || r->evidence != SW_EVIDENCE_TEXT ||
	    r->verdict != SW_VERDICT_SANDBOX_DENIED)
		return false;
	int error = 0;
	bool erofs = false;
	for (size_t i = 0; i < t->n_denials; i++)
		erofs |= t->denials[i].error == EROFS;
	/* only the watched calls can fail like this, and none did: the line is made up */
	const char *read_only = strerror(EROFS);
	if (!erofs && memmem(r->hit.line.ptr, r->hit.line.len, read_only, strlen(read_only)))
		return true;
	for (size_t i = 0; i < t->n_denials && !error; i++) {
		const char *words = strerror(t->denials[i].error);
		if (t->denials[i].outside == OUTSIDE_REFUSED &&
		    memmem(r->hit.line.ptr, r->hit.line.len, words, strlen(words)))
			error = t->denials[i].error;
	}
	for (size_t i = 0; i < t->n_denials && error; i++)
		if (t->denials[i].error == error && t->denials[i].outside != OUTSIDE_REFUSED)
			return false;
	return error != 0;
}

int run_trace_tell(const run_trace *t, sw_result *result)
{
	if (refuted(t, result))
		sw_result_withdraw_denial(result);
	const run_trace_denial *list[RUN_TRACE_DENIALS_MAX];
	for (size_t i = 0; i < t->n_denials; i++)
		list[i] = &t->denials[i];
	qsort(list, t->n_denials, sizeof list[0], newest_first);
	for (size_t i = 0; i < t->n_denials; i++) {
		const run_trace_denial *d = list[i];
		char line[1400];
		if (d->outside != OUTSIDE_ALLOWED)
			continue; /* it would be refused outside as well, or nobody knows */
		bool itself = !strcmp(d->resource_kind, "syscall");
		int n = snprintf(line, sizeof line, "trace: %s%s%s: %s (%s)%s",
		                 itself ? "" : d->call->name, itself ? "" : " ", d->path,
		                 errno_word(d->error), strerror(d->error),
		                 d->count > 1 ? ", repeatedly" : "");
		sw_outside o = {
		    .kind = SW_OBSERVATION_TRACED_DENIAL,
		    .denied = true,
		    .operation = d->call->operation,
		    .cause = cause_of(d),
		    .evidence = SW_EVIDENCE_ATTESTED,
		    .source = SW_SOURCE_KERNEL,
		    .line = {line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1},
		    .resource = sw_str_of(d->path),
		    .resource_kind = d->resource_kind};
		int rc = sw_result_outside(result, &o);
		if (rc)
			return rc;
	}
	return SW_OK;
}
