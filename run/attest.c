/*
 * Proof, outside the output, that the wrapped command was started (or was not). The
 * output can be forged by the command; what is used here cannot, or is not used.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "run_internal.h"

#define LOOK_FIRST INT64_C(2000000)
#define LOOK_LAST INT64_C(250000000)

/* ---- the kernel's view ---- */

/* 1 the runner's file, 0 another, -1 it cannot be seen. */
static int runs(pid_t pid, const sw_run_program *runner)
{
	char path[64];
	struct statx st;
	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	/* it may lie on a file system whose server is the command's and does not answer */
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, &st))
		return -1;
	return makedev(st.stx_dev_major, st.stx_dev_minor) == runner->dev &&
	       st.stx_ino == runner->ino;
}

bool run_same_program_runs(pid_t pid, const sw_run_program *runner)
{
	return runs(pid, runner) == 1;
}

bool run_other_program_runs(pid_t pid, const sw_run_program *runner, int depth)
{
	if (runs(pid, runner) == 0)
		return true;
	if (depth <= 0)
		return false;
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	size_t n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = '\0';
	for (char *p = text, *end;; p = end) {
		long child = strtol(p, &end, 10);
		if (end == p || *end == '\0')
			return false;
		if (run_other_program_runs((pid_t)child, runner, depth - 1))
			return true;
	}
}

/*
 * Runners that execute nothing but the command, in their own place or in a child: another
 * program in their tree is the command. A short command may be over before anybody looks;
 * then nothing is known.
 */
static bool kernel_look(run_attest *a)
{
	return run_other_program_runs(a->pid, a->program, 2);
}

/*
 * A file of many names (busybox, toybox) may hold the command's program too and run it without
 * any execve(): that none was seen then proves nothing.
 */
static bool has_many_names(const run_attest *a)
{
	char real[PATH_MAX];
	struct stat st;
	if (!realpath(a->program->path, real) || stat(real, &st) || st.st_nlink > 1)
		return true;
	const char *backend = run_backend_of_program(real);
	return !backend || strcmp(backend, a->shape->backend) != 0;
}

/* The --map- options of unshare that it carries out by itself; by their beginnings too. */
static bool maps_by_helper(const char *arg)
{
	static const char *const alone[] = {"--map-root-user", "--map-current-user"};
	size_t n = strlen(arg);
	if (strncmp(arg, "--map-", 6) != 0)
		return false;
	for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
		if (n > 6 && !strncmp(arg, alone[i], n))
			return false;
	/* --map-users and --map-groups are others, and begin like these */
	return strcmp(arg, "--map-user") != 0 && strncmp(arg, "--map-user=", 11) != 0 &&
	       strcmp(arg, "--map-group") != 0 && strncmp(arg, "--map-group=", 12) != 0;
}

static const char *kernel_plan(run_attest *a)
{
	bool no_new_privs = !strncmp(a->shape->backend, "landlock", 8);
	for (size_t i = a->shape->options; i < a->argc && a->argv[i][0] == '-'; i++)
		if (!strcmp(a->argv[i], "--no-new-privs") || !strcmp(a->argv[i], "--nnp"))
			no_new_privs = true;
	/* values of options are not told from the command here: rather one refusal too many */
	for (size_t i = a->shape->options; i < a->argc && strcmp(a->argv[i], "--") != 0; i++)
		if (!strcmp(a->shape->backend, "unshare") && maps_by_helper(a->argv[i]))
			return "unshare starts newuidmap here, which looks like the command";
	a->many_names = has_many_names(a);
	a->wants_watch = !a->program->setid && (geteuid() == 0 || no_new_privs);
	return NULL;
}

static void kernel_conclude(run_attest *a, int code, int sig, bool we_killed)
{
	(void)code;
	if (a->kernel_seen) {
		a->started = SW_STARTED_YES;
		a->source = SW_SOURCE_KERNEL;
	} else if (a->watch.whole && !a->many_names && sig == 0 && !we_killed) {
		/* followed from its first instruction to its end, and nothing else was executed */
		a->started = SW_STARTED_NO;
		a->source = SW_SOURCE_KERNEL;
	}
}

static const run_attest_method kernel_method = {
    .name = "kernel", .plan = kernel_plan, .look = kernel_look, .conclude = kernel_conclude};

/* ---- no runner: the exec pipe has spoken for the command itself ---- */

static void exec_pipe_conclude(run_attest *a, int code, int sig, bool we_killed)
{
	(void)code;
	(void)sig;
	(void)we_killed;
	a->started = SW_STARTED_YES;
	a->source = SW_SOURCE_EXEC_PIPE;
}

static const run_attest_method exec_pipe_method = {.name = "exec-pipe",
                                                   .conclude = exec_pipe_conclude};

/* ---- which runner is proved how ---- */

static const struct {
	const char *backend;
	const run_attest_method *method;
	bool needs_trust;  /* a runner that others could have replaced proves nothing */
	bool needs_native; /* told from the command by what its process executes */
} methods[] = {
    {"none", &exec_pipe_method, false, false},    {"bwrap", &run_attest_status_fd, true, true},
    {"docker", &run_attest_engine, true, false},  {"podman", &run_attest_engine, true, false},
    {"nerdctl", &run_attest_engine, true, false}, {"runc", &run_attest_oci, true, false},
    {"crun", &run_attest_oci, true, false},       {"systemd-run", &run_attest_systemd, true, false},
    {"setpriv", &kernel_method, true, true},      {"chroot", &kernel_method, true, true},
    {"unshare", &kernel_method, true, true},      {"landrun", &kernel_method, true, true},
    {"landlock-run", &kernel_method, true, true}, {"landlock", &run_attest_launcher, false, true},
};

static int copy_argv(run_attest *a, char *const *argv, sw_error *err)
{
	while (argv[a->argc])
		a->argc++;
	a->argv = calloc(a->argc + 5, sizeof *a->argv);
	if (!a->argv)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	for (size_t i = 0; i < a->argc; i++)
		if (!(a->argv[i] = strdup(argv[i])))
			return sw_error_set(err, SW_ENOMEM, "out of memory");
	return SW_OK;
}

bool run_attest_insert(run_attest *a, size_t at, const char *one, const char *two)
{
	size_t n = two ? 2 : 1;
	char *first = strdup(one), *second = two ? strdup(two) : NULL;
	if (!first || (two && !second)) {
		free(first);
		free(second);
		return false;
	}
	memmove(a->argv + at + n, a->argv + at, (a->argc - at + 1) * sizeof *a->argv);
	a->argv[at] = first;
	if (two)
		a->argv[at + 1] = second;
	a->argc += n;
	return true;
}

static void close_ends(run_attest *a)
{
	if (a->child_fd >= 0)
		close(a->child_fd);
	if (a->fd >= 0)
		close(a->fd);
	a->child_fd = a->fd = -1;
}

int run_attest_new(run_attest **out, char *const *argv, const sw_run_shape *shape,
                   const sw_run_program *program, const char *cwd, bool wanted, sw_error *err)
{
	run_attest *a = calloc(1, sizeof *a);
	if (!a)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	a->child_fd = a->fd = a->dir_fd = -1;
	a->cwd = cwd;
	a->program = program;
	a->shape = shape;
	a->refusal = "nothing is known that proves a start under this runner";
	int rc = copy_argv(a, argv, err);
	if (rc) {
		run_attest_free(a);
		return rc;
	}
	for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
		if (strcmp(methods[i].backend, shape->backend) != 0)
			continue;
		if (!wanted && methods[i].method->plan)
			a->refusal = "it was switched off";
		else if (shape->runner != 0 && methods[i].needs_trust)
			a->refusal = "the runner is started by another program";
		else if (methods[i].needs_trust && !program->trusted)
			a->refusal = "others than root can change the runner's program";
		else if (methods[i].needs_native && !program->native)
			a->refusal = "the runner is a script, or another machine's program";
		else
			a->refusal = methods[i].method->plan ? methods[i].method->plan(a) : NULL;
		a->unproved = a->refusal && a->callers_record;
		if (!a->refusal || a->unproved)
			a->method = methods[i].method;
		else
			close_ends(a);
	}
	/* bwrap starts no helper and itself only once; its start has another proof */
	a->watch.proves = a->wants_watch || !strcmp(a->shape->backend, "bwrap");
	*out = a;
	return SW_OK;
}

void run_attest_spawned(run_attest *a, pid_t pid)
{
	a->pid = pid;
	if (a->child_fd >= 0 && a->method == &run_attest_launcher) {
		close(a->child_fd); /* its end is what tells */
		a->child_fd = -1;
	}
	if (a->method && a->method->look) {
		a->look_step = LOOK_FIRST;
		a->next_look = sw_monotonic_ns() + LOOK_FIRST;
	}
}

void run_attest_look(run_attest *a)
{
	if (!a->next_look)
		return;
	if (a->watch.seen || a->method->look(a)) {
		a->kernel_seen = true;
		a->next_look = 0;
		return;
	}
	if (a->look_step < LOOK_LAST)
		a->look_step *= 2;
	a->next_look = sw_monotonic_ns() + a->look_step;
}

void run_attest_output(run_attest *a, const void *bytes, size_t n)
{
	if (a->head_len < sizeof a->head) {
		size_t take = sizeof a->head - a->head_len;
		if (take > n)
			take = n;
		memcpy(a->head + a->head_len, bytes, take);
		a->head_len += take;
	}
	a->output += n;
}

void run_attest_conclude(run_attest *a, int code, int sig, bool we_killed)
{
	a->started = SW_STARTED_UNKNOWN;
	a->source = SW_SOURCE_NONE;
	a->lost = false;
	if (a->watch.seen)
		a->kernel_seen = true;
	if (a->method && a->method->conclude)
		a->method->conclude(a, code, sig, we_killed);
	if (a->unproved) {
		a->started = SW_STARTED_UNKNOWN;
		a->source = SW_SOURCE_NONE;
		a->lost = false;
	}
}

void run_attest_free(run_attest *a)
{
	if (!a)
		return;
	if (a->method && a->method->cleanup)
		a->method->cleanup(a);
	run_record_remove(a);
	close_ends(a);
	for (size_t i = 0; a->argv && i < a->argc; i++)
		free(a->argv[i]);
	free(a->argv);
	free(a);
}
