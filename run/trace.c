/*
 * `run --trace`: the calls that were refused, whatever the command says about them.
 *
 * A seccomp filter stops the tree at the beginning of each call of interest; from there
 * it runs to the end of the call, where the result is read. All other calls run at full
 * speed. Nothing is changed: not an argument, not a result.
 */
#include <ctype.h>
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

#include "ask.h"
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

/* What the call was about as it began, for another thread can change it before its end. */
static void forget_paths(run_trace_slot *s)
{
	free(s->path);
	free(s->path2);
	s->path = s->path2 = NULL;
}

void run_trace_gone(run_trace *t, pid_t pid)
{
	if (!t->cap_slots)
		return;
	run_trace_slot *s = slot_of(t, pid);
	if (s->pid != pid)
		return;
	forget_paths(s);
	/* closing the gap keeps every chain whole */
	size_t mask = t->cap_slots - 1, hole = (size_t)(s - t->slots);
	t->slots[hole] = (run_trace_slot){0};
	t->n_slots--;
	for (size_t i = (hole + 1) & mask; t->slots[i].pid; i = (i + 1) & mask) {
		run_trace_slot moved = t->slots[i];
		t->slots[i] = (run_trace_slot){0}; /* its paths move along */
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
	bool filtered = !run_trace_follows(t, pid) && run_trace_filter_inherited(t, pid);
	bool runner = !t->command && t->program;
	run_trace_slot *s = filtered || runner ? slot_for(t, pid) : NULL;
	if (!s)
		return;
	s->under_filter |= filtered;
	s->runner |= runner;
}

void run_trace_executed(run_trace *t, pid_t pid, bool first)
{
	run_trace_slot *s = t->cap_slots ? slot_of(t, pid) : NULL;
	if (s && s->pid == pid &&
	    (first || !t->program || (t->command && run_other_program_runs(pid, t->program, 0))))
		s->runner = false;
	if (first) {
		t->command = true;
		t->uid = run_trace_user(pid);
		t->userns = run_trace_userns(pid);
	}
	/* a thread that executes takes its leader's number */
	if (t->filtered)
		run_trace_born(t, pid);
}

/* Keeps what begins; false: of no interest. */
static bool begins(run_trace *t, pid_t pid, uint64_t nr, const uint64_t args[6])
{
	const run_call *c = t->command ? run_call_of((int)nr, args) : NULL;
	bool wanted = c || run_trace_sets_filter((int)nr, args);
	run_trace_slot *s = wanted ? slot_for(t, pid) : NULL;
	if (!s)
		return false;
	s->nr = (int)nr;
	memcpy(s->args, args, sizeof s->args);
	/* the kernel's clock for times of files */
	clock_gettime(CLOCK_REALTIME_COARSE, &s->began);
	t->calls++;
	forget_paths(s);
	if (!c)
		return true;
	run_failed_call f = {.call = c, .pid = pid};
	memcpy(f.args, args, sizeof f.args);
	run_trace_read(&f);
	s->path = f.path[0] ? strdup(f.path) : NULL;
	s->path2 = f.path2[0] ? strdup(f.path2) : NULL;
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
	if (run_trace_unseen(info.arch, info.seccomp.nr)) {
		t->unseen = true;
		return false;
	}
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

/* The process's arguments, each with its NUL; freed by the caller. NULL: gone. */
static char *command_line(pid_t pid, size_t *n)
{
	char path[64], *text;
	snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
	return sw_read_file(path, 1 << 16, &text, n, NULL) ? NULL : text;
}

/* One of the words stands in the process's command line. */
static bool command_has(pid_t pid, const char *const *words)
{
	size_t n = 0;
	bool found = false;
	char *text = command_line(pid, &n);
	for (const char *p = text; p && p < text + n && !found; p += strlen(p) + 1)
		for (size_t i = 0; words[i] && !found; i++)
			found = !strcmp(p, words[i]);
	free(text);
	return found;
}

/* npm that runs a script of the project's: "npm test", or node with npm's file and then "test". */
static bool runs_npm_script(pid_t pid)
{
	static const char *const verbs[] = {"test",     "run",     "start",     "run-script",
	                                    "npm test", "npm run", "npm start", NULL};
	static const char *const titles[] = {"npm run", "npm test", "npm start"};
	size_t n = 0;
	char *text = command_line(pid, &n);
	bool npm = false, script = false;
	for (size_t i = 0; text && i < sizeof titles / sizeof titles[0]; i++)
		script |= !strncmp(text, titles[i], strlen(titles[i]));
	for (const char *p = text; p && p < text + n; p += strlen(p) + 1) {
		const char *slash = strrchr(p, '/');
		const char *leaf = slash ? slash + 1 : p;
		npm |= !strncmp(leaf, "npm", 3) &&
		       (leaf[3] == '\0' || leaf[3] == ' ' || leaf[3] == '-');
		for (size_t i = 0; verbs[i]; i++)
			script |= !strcmp(p, verbs[i]);
	}
	free(text);
	return npm && script;
}

/* Programs try these and go on without: refused, but nobody's reason to fail. */
static bool is_harmless(const run_failed_call *f)
{
	static const char *const looks[] = {"status", "diff", "describe", "log", "show", NULL};
	static const char *const compiles[] = {"compileall", "py_compile", NULL};
	static const char *const caches[] = {"/.pytest_cache", "/.cargo/.package-cache",
	                                     "/.cargo/.global-cache", "/.npm/_logs",
	                                     "/.npm/_update-notifier"};
	if (f->error == EXDEV && !f->one_mount)
		return true; /* two mounts: it is copied then */
	if (run_trace_reads(f) && (!strncmp(f->path, "/sys/", 5) || !strncmp(f->path, "/proc/", 6)))
		return true;
	if (strstr(f->path, "/.git/index.lock"))
		return command_has(f->pid, looks);
	if (f->call->kind == CALL_CONNECT && runs_npm_script(f->pid))
		return true; /* it asks whether there is a newer npm */
	if (strstr(f->path, "/__pycache__"))
		return !command_has(f->pid, compiles);
	for (size_t i = 0; i < sizeof caches / sizeof caches[0]; i++)
		if (strstr(f->path, caches[i]))
			return true;
	return false;
}

typedef struct harm {
	run_failed_call call;
	bool none;
} harm;

static void look_for_harm(void *arg)
{
	harm *h = arg;
	h->none = is_harmless(&h->call);
}

/* The command line is memory of the process's, which may lie in a file that never answers. */
static bool harmless(const run_failed_call *f)
{
	harm h = {.call = *f};
	return !run_ask(look_for_harm, &h, sizeof h) || h.none;
}

static void keep(run_trace *t, const run_failed_call *f)
{
	char *path = t->n_denials < RUN_TRACE_DENIALS_MAX ? strdup(label_of(f)) : NULL;
	if (!path) {
		t->lost++;
		return;
	}
	t->denials[t->n_denials++] =
	    (run_trace_denial){.call = f->call,
	                       .error = f->error,
	                       .resource_kind = f->path[0] ? f->resource_kind : "syscall",
	                       .raw_socket = f->raw_socket,
	                       .reads = run_trace_reads(f),
	                       .harmless = harmless(f),
	                       .path = path,
	                       .count = 1,
	                       .order = t->failures};
}

static bool counted_again(run_trace *t, const run_failed_call *f)
{
	for (size_t i = 0; i < t->n_denials; i++) {
		run_trace_denial *d = &t->denials[i];
		if (d->call == f->call && d->error == f->error && !strcmp(d->path, label_of(f))) {
			d->count++;
			d->order = t->failures;
			return true;
		}
	}
	return false;
}

/* Whether the same was asked a moment ago; else it is noted. Equal hashes can only hide. */
static bool asked_before(run_trace *t, const run_failed_call *f)
{
	const uint64_t who[] = {run_trace_user(f->pid), f->args[1], f->args[2], f->args[3]};
	uint64_t h = 1469598103934665603u;
	for (size_t i = 0; i < sizeof who / sizeof who[0]; i++)
		if (i == 0 || f->call->kind == CALL_CHOWN)
			h = (h ^ who[i]) * 1099511628211u;
	for (const char *p = f->path; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211u;
	for (const char *p = f->path2; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211u;
	if (f->call->kind == CALL_OPEN && f->call->extra >= 0)
		h = (h ^ f->args[f->call->extra]) * 1099511628211u;
	for (size_t i = 0; i < RUN_TRACE_ASKED; i++)
		if (t->asked[i].call == f->call && t->asked[i].error == f->error &&
		    t->asked[i].hash == h)
			return true;
	t->asked[t->n_asked++ % RUN_TRACE_ASKED] = (run_trace_asked){f->call, f->error, h};
	return false;
}

static void note_refused(run_trace *t, const run_failed_call *f)
{
	run_trace_refused *r = &t->refused[t->n_refused++ % RUN_TRACE_REFUSED];
	const char *slash = strrchr(f->path, '/');
	char path[64], *text;
	size_t n;
	r->error = f->error;
	snprintf(r->name, sizeof r->name, "%s", slash && slash[1] ? slash + 1 : f->call->name);
	snprintf(path, sizeof path, "/proc/%d/comm", (int)f->pid);
	r->program[0] = '\0';
	if (sw_read_file(path, sizeof r->program, &text, &n, NULL) == 0) {
		snprintf(r->program, sizeof r->program, "%.*s", (int)strcspn(text, "\n"), text);
		free(text);
	}
}

static bool same(const char *before, const char *now)
{
	return !strcmp(before ? before : "", now);
}

static void failed(run_trace *t, run_trace_slot *s, run_failed_call *f)
{
	t->failures++;
	t->failed[f->error & 0xff] = true;
	memcpy(f->args, s->args, sizeof f->args);
	f->filtered = s->under_filter;
	f->began = s->began;
	run_trace_read(f);
	bool raced = !same(s->path, f->path) || !same(s->path2, f->path2);
	t->raced |= raced;
	if (counted_again(t, f) || asked_before(t, f))
		return;
	run_outside outside = OUTSIDE_UNKNOWN;
	if (!raced && (!s->under_filter || !run_trace_filter_itself(t, f->pid)))
		outside = run_trace_ask(f, t);
	if (f->changed) /* asked again, it may stand still */
		t->asked[--t->n_asked % RUN_TRACE_ASKED].call = NULL;
	if (outside == OUTSIDE_REFUSED)
		note_refused(t, f);
	else
		t->other[f->error & 0xff] = true;
	if (outside == OUTSIDE_ALLOWED)
		keep(t, f);
}

static void ends(run_trace *t, pid_t pid, run_trace_slot *s, int error)
{
	run_failed_call f = {.call = run_call_of(s->nr, s->args), .pid = pid, .error = error};
	if (run_trace_sets_filter(s->nr, s->args) && !error)
		run_trace_filter_set(t, pid, s);
	s->nr = -1;
	if (!f.call || !t->command || !error || !run_call_refusal(f.call, error))
		return;
	/* what the runner has left there sets up, it does not obey; a runner inside does */
	if (s->runner && !run_other_program_runs(pid, t->program, 0))
		return;
	failed(t, s, &f);
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
	for (size_t i = 0; i < t->cap_slots; i++)
		forget_paths(&t->slots[i]);
	for (size_t i = 0; i < t->n_denials; i++)
		free(t->denials[i].path);
	free(t->slots);
	t->slots = NULL;
	t->n_slots = t->cap_slots = t->n_denials = 0;
}

/* ---- telling ---- */

static const char *errno_word(int e)
{
	static const struct {
		int error;
		const char *name;
	} names[] = {{EROFS, "EROFS"},
	             {EACCES, "EACCES"},
	             {EPERM, "EPERM"},
	             {ENETUNREACH, "ENETUNREACH"},
	             {ENETDOWN, "ENETDOWN"},
	             {EHOSTUNREACH, "EHOSTUNREACH"},
	             {EXDEV, "EXDEV"},
	             {EAFNOSUPPORT, "EAFNOSUPPORT"},
	             {EINVAL, "EINVAL"},
	             {ENOSPC, "ENOSPC"},
	             {EUSERS, "EUSERS"},
	             {EBUSY, "EBUSY"},
	             {EADDRNOTAVAIL, "EADDRNOTAVAIL"},
	             {ENOSYS, "ENOSYS"}};
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

/* The newest refusal is the likeliest reason of the end. */
static int newest_first(const void *a, const void *b)
{
	const run_trace_denial *x = *(const run_trace_denial *const *)a;
	const run_trace_denial *y = *(const run_trace_denial *const *)b;
	return x->order > y->order ? -1 : x->order < y->order;
}

static bool says(const sw_result *r, int error)
{
	const char *words = strerror(error);
	return memmem(r->hit.line.ptr, r->hit.line.len, words, strlen(words)) != NULL;
}

static bool is_word_part(unsigned char c)
{
	return isalnum(c) || c == '_' || c >= 0x80;
}

static bool names(const sw_result *r, const char *word)
{
	const char *p = r->hit.line.ptr, *end = p + r->hit.line.len;
	size_t n = strlen(word);
	while (n && (p = memmem(p, (size_t)(end - p), word, n))) {
		bool before = p > r->hit.line.ptr && is_word_part((unsigned char)p[-1]);
		bool after = p + n < end && is_word_part((unsigned char)p[n]);
		if (!before && !after)
			return true;
		p++;
	}
	return false;
}

/*
 * A line that says "Operation not permitted" is not the sandbox's doing where it tells of a call
 * that would fail outside as well, and all that failed like this would.
 */
static bool refuted(const run_trace *t, const sw_result *r)
{
	if (!t->on || !t->command || t->lost || t->raced || t->unseen || !r->has_hit ||
	    r->evidence != SW_EVIDENCE_TEXT || r->verdict != SW_VERDICT_SANDBOX_DENIED)
		return false;
	/* only the watched calls fail like this, and none did: the line is made up */
	if (!t->failed[EROFS] && says(r, EROFS))
		return true;
	for (size_t i = 0; i < RUN_TRACE_REFUSED && i < t->n_refused; i++) {
		const run_trace_refused *f = &t->refused[i];
		if (says(r, f->error) && !t->other[f->error & 0xff] &&
		    (names(r, f->name) || names(r, f->program)))
			return true;
	}
	return false;
}

int run_trace_tell(const run_trace *t, sw_result *result)
{
	if (refuted(t, result))
		sw_result_withdraw_denial(result);
	const run_trace_denial *list[RUN_TRACE_DENIALS_MAX];
	for (size_t i = 0; i < t->n_denials; i++)
		list[i] = &t->denials[i];
	/* who plays with the names of its files while they are looked up proves nothing */
	if (t->raced)
		return SW_OK;
	qsort(list, t->n_denials, sizeof list[0], newest_first);
	for (size_t i = 0; i < t->n_denials; i++) {
		const run_trace_denial *d = list[i];
		char line[PATH_MAX + 200];
		bool itself = !strcmp(d->resource_kind, "syscall");
		int n = snprintf(line, sizeof line, "trace: %s%s%s: %s (%s)%s",
		                 itself ? "" : d->call->name, itself ? "" : " ", d->path,
		                 errno_word(d->error), strerror(d->error),
		                 d->count > 1 ? ", repeatedly" : "");
		sw_outside o = {
		    .kind = SW_OBSERVATION_TRACED_DENIAL,
		    .denied = !d->harmless,
		    .operation = d->reads ? SW_OPERATION_READ : d->call->operation,
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
