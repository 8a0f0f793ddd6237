/* Setting up and taking down the supervision of one command. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"
#include "trace.h"

extern char **environ;

/* text: what stands before the value, after it, and whether `text` of the note follows. */
static const struct {
	const char *name, *before, *after;
	bool value, text;
} note_table[] = {
    [SW_RUN_NOTE_LEFTOVER] = {"leftover", "", " process(es) were still there and were ended", true,
                              false},
    [SW_RUN_NOTE_CUT] = {"cut", "the output was cut ",
                         " ms after the command ended: something "
                         "kept it open",
                         true, false},
    [SW_RUN_NOTE_SURVIVOR] = {"survivor", "", " process(es) could not be ended", true, false},
    [SW_RUN_NOTE_STDOUT_CLOSED] = {"stdout_closed",
                                   "the output could not be passed on, only judged: ", "", false,
                                   true},
    [SW_RUN_NOTE_OUTPUT_DROPPED] = {"output_dropped", "",
                                    " bytes were not passed on: the reader was too slow", true,
                                    false},
    [SW_RUN_NOTE_FORWARDED] = {"forwarded", "signal ", " was passed on", true, true},
    [SW_RUN_NOTE_DEADLINE] = {"deadline", "the deadline ended the command", "", false, false},
    [SW_RUN_NOTE_RUNNER_LOST] = {"runner_lost", "the runner was lost after the command had started",
                                 "", false, false},
    [SW_RUN_NOTE_NOT_ATTESTED] = {"not_attested", "no proof of start: ", "", false, true},
    [SW_RUN_NOTE_FORGED] = {"forged",
                            "something other than the runner wrote to the runner's "
                            "status channel and was ignored",
                            "", false, false},
    [SW_RUN_NOTE_CONTAINER] = {"container", "what the runner kept running was stopped: ", "", false,
                               true},
    [SW_RUN_NOTE_BLIND] = {"blind",
                           "processes could not be looked at (no file can be opened): what is left "
                           "is counted by children alone",
                           "", false, false},
    [SW_RUN_NOTE_TRACE] = {"trace", "trace: ", "", false, true},
};

const char *sw_run_note_name(sw_run_note_kind kind)
{
	return (size_t)kind < sizeof note_table / sizeof note_table[0] ? note_table[kind].name
	                                                               : NULL;
}

int sw_run_note_text(const sw_run_note *note, char *out, size_t n)
{
	if (!sw_run_note_name(note->kind))
		return snprintf(out, n, "unknown");
	char value[32] = "";
	if (note_table[note->kind].value)
		snprintf(value, sizeof value, "%lld", (long long)note->value);
	return snprintf(out, n, "%s%s%s%s", note_table[note->kind].before, value,
	                note_table[note->kind].after,
	                note_table[note->kind].text ? note->text : "");
}

void run_note(run_loop *l, sw_run_note_kind kind, int64_t value, const char *text)
{
	sw_run_note note = {.kind = kind, .value = value};
	if (text)
		snprintf(note.text, sizeof note.text, "%s", text);
	/* said once: the command can have the same happen again and again */
	for (size_t i = 0; i < l->r->n_notes; i++)
		if (l->r->notes[i].kind == kind && l->r->notes[i].value == value &&
		    !strcmp(l->r->notes[i].text, note.text))
			return;
	if (l->r->n_notes < SW_RUN_NOTES_MAX)
		l->r->notes[l->r->n_notes++] = note;
	if (l->o->on_note)
		l->o->on_note(l->o->ctx, &note);
}

/* 0, 1, 2 must exist: a pipe of ours in their place would be taken for them. */
static int hold_standard_descriptors(sw_error *err)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0) {
			int got = open("/dev/null", O_RDWR);
			if (got != fd) {
				if (got >= 0)
					close(got);
				return sw_error_set(err, SW_EIO,
				                    "descriptor %d is closed and "
				                    "/dev/null cannot take its place",
				                    fd);
			}
		}
	return SW_OK;
}

#define KEEP_MAX 160 /* more than options can name and --keep-fd can give */

typedef struct keep_list {
	int fds[KEEP_MAX];
	size_t n;
	bool all;
} keep_list;

/* Only what we inherited ourselves: a number that is free now may soon be one of our pipes. */
static void keep_inherited(keep_list *k, int fd)
{
	int flags = fcntl(fd, F_GETFD);
	if (fd > 2 && flags >= 0 && !(flags & FD_CLOEXEC) && k->n < KEEP_MAX - 1)
		k->fds[k->n++] = fd;
}

static void choose_kept(keep_list *k, const sw_run_options *o, char *const *argv,
                        const sw_run_shape *shape)
{
	run_named_fds named;
	run_fds_named(argv, shape, &named);
	k->n = 0;
	k->all = named.all;
	for (size_t i = 0; i < named.n; i++)
		keep_inherited(k, named.fds[i]);
	for (size_t i = 0; i < o->n_keep_fds; i++)
		keep_inherited(k, o->keep_fds[i]);
}

/* What the process was before, to be put back. */
typedef struct process_state {
	int subreaper, dumpable;
} process_state;

static void enter(process_state *p)
{
	p->subreaper = 0;
	prctl(PR_GET_CHILD_SUBREAPER, &p->subreaper);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	p->dumpable = prctl(PR_GET_DUMPABLE);
}

/*
 * Not dumpable: a command of the same user that shares our pid namespace could otherwise
 * open our descriptors through /proc and write a verdict of its own. Not before the child
 * is made: it would inherit that, and could not be followed.
 */
static void conceal(void)
{
	prctl(PR_SET_DUMPABLE, 0);
}

static void leave(const process_state *p)
{
	prctl(PR_SET_CHILD_SUBREAPER, p->subreaper);
	if (p->dumpable == 1)
		prctl(PR_SET_DUMPABLE, 1);
}

/* The child's output ends: read end in l->in, the write end returned, or negative. */
static int make_pipe(run_loop *l, sw_error *err)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC))
		return sw_error_set(err, SW_EIO, "no pipe: %s", strerror(errno));
	fcntl(p[0], F_SETFL, O_NONBLOCK);   /* of our end alone */
	fcntl(p[0], F_SETPIPE_SZ, 1 << 18); /* fewer switches; may fail */
	l->in = p[0];
	return p[1];
}

static int spawn(run_loop *l, const keep_list *keep, sw_error *err)
{
	const sw_run_options *o = l->o;
	int null = o->quiet_stdin ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
	int out = make_pipe(l, err);
	if (out < 0) {
		if (null >= 0)
			close(null);
		return out;
	}
	run_spawn s = {.path = l->r->program.path,
	               .argv = l->attest->argv,
	               .env = o->env ? o->env : environ,
	               .cwd = o->cwd,
	               .in = null,
	               .out = o->no_merge ? (o->out_fd == 1 ? -1 : o->out_fd) : out,
	               .err = out,
	               .keep = keep->fds,
	               .n_keep = keep->n,
	               .keep_all = keep->all,
	               .watch = l->attest->wants_watch ? &l->attest->watch : NULL,
	               .program = &l->r->program,
	               .cgroup = run_cgroup_make(&l->cgroup) ? &l->cgroup : NULL,
	               .own_group = !strcmp(l->r->shape.backend, "bwrap"),
	               .signals = &l->signals};
	int exec_errno = 0;
	struct sock_fprog filter = {0};
	if (l->attest->watch.trace && run_trace_filter(&filter) == SW_OK)
		s.filter = &filter;
	l->tree.watch = s.watch;
	pid_t pid = run_spawn_child(&s, &exec_errno, err);
	conceal();
	run_trace_filter_free(&filter);
	close(out);
	if (null >= 0)
		close(null);
	if (pid < 0)
		return (int)pid;
	l->r->pid = pid;
	run_tree_main(&l->tree, pid);
	l->r->spawn_errno = exec_errno;
	l->r->spawned = exec_errno == 0;
	run_attest_spawned(l->attest, pid);
	return SW_OK;
}

static void not_executed(sw_run_report *r, int e)
{
	r->spawned = false;
	r->spawn_errno = e;
	r->exit = sw_exit_code(e == ENOENT ? 127 : 126);
	r->started = SW_STARTED_NO;
	r->source = SW_SOURCE_EXEC_PIPE;
}

static void fill_report(run_loop *l)
{
	sw_run_report *r = l->r;
	if (r->spawn_errno) {
		not_executed(r, r->spawn_errno);
		return;
	}
	int sig = l->tree.main_signal;
	if (l->tree.main_done && !sig)
		r->exit = sw_exit_code(l->tree.main_code);
	else
		r->exit = (sw_exit){.signal = sig}; /* 0 where it did not even die */
	r->exit.timed_out = r->timed_out;
	/* a signal ended the runner: was it one that run sent it? an exit: had run begun to end
	 * all? */
	bool ours = sig ? l->sent_to_runner >> (sig - 1) & 1 : l->ending_runner;
	if (l->attest->watch.trace && !l->attest->watch.trace->on)
		run_note(l, SW_RUN_NOTE_TRACE, 0, "the system does not permit it");
	run_attest_conclude(l->attest, l->tree.main_code, sig, ours);
	r->started = l->attest->started;
	r->source = l->attest->source;
	r->runner_lost = l->attest->lost;
	r->oom_killed = l->attest->oom_killed;
	if (r->runner_lost)
		run_note(l, SW_RUN_NOTE_RUNNER_LOST, sig, NULL);
	if (l->attest->foreign)
		run_note(l, SW_RUN_NOTE_FORGED, 0, NULL);
	if (l->attest->refusal)
		run_note(l, SW_RUN_NOTE_NOT_ATTESTED, 0, l->attest->refusal);
	char text[200] = "";
	if ((r->timed_out || r->runner_lost) && l->attest->method &&
	    l->attest->method->end_outside && l->attest->running) {
		l->attest->method->end_outside(l->attest, text, sizeof text);
		if (text[0])
			run_note(l, SW_RUN_NOTE_CONTAINER, 0, text);
	}
}

static int watch(run_loop *l, const keep_list *keep, sw_error *err)
{
	process_state state;
	int rc = run_signals_hold(&l->signals, err);
	if (rc)
		return rc;
	enter(&state);
	rc = run_tree_init(&l->tree, err);
	if (!rc && l->o->out_fd >= 0 && !l->o->no_merge)
		rc = run_pump_new(&l->pump, l->o->out_fd, err);
	if (!rc && l->o->no_merge && l->o->err_fd >= 0)
		rc = run_pump_new(&l->pump, l->o->err_fd, err);
	l->start = sw_monotonic_ns();
	l->r->started_ns = sw_now_ns();
	if (!rc)
		rc = spawn(l, keep, err);
	if (!rc) {
		if (l->o->deadline_ns > 0)
			l->deadline = l->start + l->o->deadline_ns;
		run_loop_run(l);
		l->r->ended_ns = sw_now_ns();
		l->r->duration_ns = sw_monotonic_ns() - l->start;
		fill_report(l);
	}
	run_pump_free(l->pump);
	if (l->in >= 0)
		close(l->in);
	run_cgroup_remove(&l->cgroup);
	run_tree_free(&l->tree);
	leave(&state);
	run_signals_release(&l->signals);
	return rc;
}

/* Tracing where it is asked for and can be had; else a note says why not. */
static void plan_trace(run_loop *l, run_trace *trace)
{
	if (!l->o->trace)
		return;
	const char *why = !trace ? "it belongs to a verdict" : run_trace_refusal(&l->r->program);
	siginfo_t si;
	if (!why && (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD))
		why = "this process has children of its own";
	if (why) {
		run_note(l, SW_RUN_NOTE_TRACE, 0, why);
		return;
	}
	bool unconfined = !strcmp(l->r->shape.backend, "none");
	trace->program = unconfined ? NULL : &l->r->program;
	l->attest->watch.trace = trace;
	l->attest->wants_watch = true;
	/* without a runner the command is there from its first instruction */
	trace->command = unconfined;
	trace->uid = geteuid();
	trace->userns = run_trace_userns(getpid());
}

static int supervise(const sw_run_options *o, run_trace *trace, sw_run_report *r, sw_error *err)
{
	memset(r, 0, sizeof *r);
	if (!o->argv || !o->argv[0]) {
		sw_error_set(err, SW_EINVAL, "no command is given");
		return sw_error_more(err, NULL, NULL, "put it behind --"), SW_EINVAL;
	}
	char *const *argv = o->argv;
	int rc = hold_standard_descriptors(err);
	if (rc)
		return rc;
	sw_run_detect(argv, &r->shape);
	if (r->shape.merge_wrapper && !o->no_merge) { /* merging is what we do anyway */
		argv += 4;
		sw_run_detect(argv, &r->shape);
	}
	if (o->backend)
		r->shape.backend = o->backend;
	r->command = argv[r->shape.command]; /* at most argc, where NULL stands */
	keep_list keep;
	choose_kept(&keep, o, argv, &r->shape);
	const char *path = NULL;
	for (char *const *e = o->env; e && *e; e++)
		if (!strncmp(*e, "PATH=", 5))
			path = *e + 5;
	int missing = sw_run_find_program(argv[0], path, &r->program);
	if (o->before_spawn && (rc = o->before_spawn(o->ctx, err)))
		return rc;
	if (missing) {
		r->started_ns = r->ended_ns = sw_now_ns();
		not_executed(r, r->program.error);
		return SW_OK;
	}
	run_loop *l = calloc(1, sizeof *l);
	if (!l)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	l->o = o;
	l->r = r;
	l->in = l->signals.fd = -1;
	l->kernel_log = run_kernel_log_open();
	l->grace = o->grace_ns > 0 ? o->grace_ns : SW_RUN_GRACE_NS;
	l->drain = o->drain_ns > 0 ? o->drain_ns : SW_RUN_DRAIN_NS;
	rc = run_attest_new(&l->attest, argv, &r->shape, &r->program, o->cwd, !o->no_attest, err);
	if (!rc) {
		/* the pair's end is the one descriptor of ours that the child must have */
		if (l->attest->child_fd >= 0)
			keep.fds[keep.n++] = l->attest->child_fd;
		plan_trace(l, trace);
		rc = watch(l, &keep, err);
	}
	run_attest_free(l->attest);
	if (l->kernel_log >= 0)
		close(l->kernel_log);
	free(l);
	return rc;
}

/*
 * `/usr/bin/env -i A=1 /path/of/runner ...`, as `confine` prints it: the same environment
 * without env(1) in between, so that the runner is the process that is watched. How many
 * arguments to skip; *env is then a new array, else NULL.
 */
static size_t unwrap_env(char *const *argv, char ***env)
{
	*env = NULL;
	if (strcmp(argv[0], "/usr/bin/env") != 0 || !argv[1] || strcmp(argv[1], "-i") != 0)
		return 0;
	size_t n = 2;
	while (argv[n] && strchr(argv[n], '=') && argv[n][0] != '=' && argv[n][0] != '-')
		n++;
	if (!argv[n] || argv[n][0] != '/')
		return 0;
	char **list = calloc(n, sizeof *list);
	if (!list)
		return 0;
	size_t k = 0;
	for (size_t i = 2; i < n; i++) {
		size_t name = strcspn(argv[i], "=") + 1, at = 0;
		while (at < k && strncmp(list[at], argv[i], name) != 0)
			at++;
		list[at] = argv[i]; /* the last assignment of a name holds */
		if (at == k)
			k++;
	}
	*env = list;
	return n;
}

int run_supervise(const sw_run_options *given, run_trace *trace, sw_run_report *r, sw_error *err)
{
	sw_run_options changed = *given;
	const sw_run_options *o = &changed;
	char **env = NULL;
	size_t skip = given->argv && given->argv[0] ? unwrap_env(given->argv, &env) : 0;
	if (skip) {
		changed.argv = given->argv + skip;
		changed.env = env;
	}
	int rc = supervise(o, trace, r, err);
	free(env);
	return rc;
}

int sw_run_supervise(const sw_run_options *options, sw_run_report *report, sw_error *err)
{
	return run_supervise(options, NULL, report, err);
}

int sw_run_exit_status(const sw_run_report *r)
{
	if (r->exit.has_code)
		return (int)(r->exit.code & 0xff);
	return r->exit.signal ? 128 + r->exit.signal : 128 + 9;
}
