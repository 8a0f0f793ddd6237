/* Reading a wrapped argv: which runner, where its options and the command begin. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "run_internal.h"

/* The fixed wrapper that `confine --merge-stderr` prints; run merges by itself. */
#define MERGE_SCRIPT "exec \"$@\" 2>&1"

static size_t count(char *const *argv)
{
	size_t n = 0;
	while (argv[n])
		n++;
	return n;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool is_merge_wrapper(char *const *argv, size_t argc)
{
	return argc >= 5 && !strcmp(base_name(argv[0]), "sh") && !strcmp(argv[1], "-c") &&
	       !strcmp(argv[2], MERGE_SCRIPT);
}

/* env A=1 nice -n 5 bwrap ...: the first argument that is neither option, assignment nor number. */
static size_t through_passing(char *const *argv, size_t at, size_t argc)
{
	for (int depth = 0; depth < 8 && at < argc; depth++) {
		if (run_backend_of_program(argv[at]) || !run_is_passing_program(argv[at]))
			return at;
		size_t i = at + 1;
		for (; i < argc; i++) {
			if (run_backend_of_program(argv[i]) || run_is_passing_program(argv[i]))
				break;
			if (argv[i][0] == '-' || strchr(argv[i], '=') ||
			    (argv[i][0] >= '0' && argv[i][0] <= '9'))
				continue;
			if (i > 0 && argv[i - 1][0] == '-' && argv[i - 1][1] && !argv[i - 1][2])
				continue; /* the value of a one-letter option: sudo -u user */
			return i;
		}
		at = i;
	}
	return at;
}

static void look_at_bwrap(char *const *argv, size_t argc, sw_run_shape *s)
{
	size_t i = s->options;
	bool net = false, shared = false, understood = true;
	while (i < argc && argv[i][0] == '-' && argv[i][1] == '-') {
		if (!argv[i][2]) { /* "--" ends the options */
			i++;
			break;
		}
		const run_option *o = run_bwrap_option(argv[i]);
		if (!o) {
			understood = false;
			break;
		}
		if (!strcmp(o->name, "--unshare-net") || !strcmp(o->name, "--unshare-all")) {
			net = true;
			if (!strcmp(o->name, "--unshare-all"))
				shared = false;
		} else if (!strcmp(o->name, "--share-net")) {
			shared = true;
		} else if (!strcmp(o->name, "--args")) {
			understood = false; /* more options than are seen here */
		}
		i += 1 + (size_t)o->values;
	}
	s->command = i < argc && run_bwrap_option(argv[i]) == NULL ? i : argc;
	if (understood)
		s->network = net && !shared ? SW_NETWORK_DENIED : SW_NETWORK_ALLOWED;
}

/* `--name value` or `--name=value`; also -abc with `letters` being switches. */
static const char *value_of(char *const *argv, size_t argc, size_t i, const char *name)
{
	size_t n = strlen(name);
	if (strncmp(argv[i], name, n) != 0)
		return NULL;
	if (argv[i][n] == '=')
		return argv[i] + n + 1;
	return argv[i][n] == '\0' && i + 1 < argc ? argv[i + 1] : NULL;
}

/* How many elements the option at i takes; *known: how sure. */
static size_t option_span(char *const *argv, size_t i, const run_engine *e)
{
	const char *a = argv[i];
	if (a[1] == '-') {
		if (strchr(a, '='))
			return 1;
		return run_in_list(e->run_switches, a, strlen(a)) ? 1 : 2;
	}
	for (const char *c = a + 1; *c; c++) {
		if (strchr(e->short_switches, *c))
			continue;
		return c[1] ? 1 : 2; /* -ePATH=x carries its value, -e takes the next */
	}
	return 1;
}

void run_engine_parse(char *const *argv, size_t runner, const run_engine *e, run_engine_call *out)
{
	size_t argc = count(argv);
	memset(out, 0, sizeof *out);
	size_t i = runner + 1;
	while (i < argc && argv[i][0] == '-') {
		size_t n = strlen(argv[i]);
		i += run_in_list(e->global_values, argv[i], n) ? 2 : 1;
	}
	if (i < argc && !strcmp(argv[i], "container"))
		i++;
	if (i >= argc || strcmp(argv[i], "run") != 0)
		return;
	out->subcommand = i++;
	for (; i < argc && argv[i][0] == '-' && argv[i][1]; i += option_span(argv, i, e)) {
		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		}
		const char *v = value_of(argv, argc, i, e->record_option);
		if (v) {
			out->record_at = i;
			out->record_value = v;
		}
		if ((v = value_of(argv, argc, i, "--network")) ||
		    (v = value_of(argv, argc, i, "--net")))
			out->network = v;
		if (!strcmp(argv[i], "--rm") || !strcmp(argv[i], "--rm=true"))
			out->removes = true;
		if (!strcmp(argv[i], "--detach") || !strcmp(argv[i], "--detach=true") ||
		    (argv[i][1] != '-' && option_span(argv, i, e) == 1 && strchr(argv[i], 'd') &&
		     strspn(argv[i] + 1, e->short_switches) == strlen(argv[i] + 1)))
			out->detached = true;
	}
	out->command = i < argc ? i : 0;
}

static void look_at_engine(char *const *argv, size_t argc, sw_run_shape *s)
{
	const run_engine *e = run_engine_of(s->backend);
	run_engine_call call;
	run_engine_parse(argv, s->runner, e, &call);
	s->command = call.command ? call.command : argc;
	if (call.subcommand &&
	    e->record_option[2] == 'c') /* the OCI runtimes have it in config.json */
		s->network = call.network && !strcmp(call.network, "none") ? SW_NETWORK_DENIED
		                                                           : SW_NETWORK_ALLOWED;
}

static void look_at_unshare(char *const *argv, size_t argc, sw_run_shape *s)
{
	s->network = SW_NETWORK_ALLOWED;
	for (size_t i = s->options; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--net") || !strncmp(argv[i], "--net=", 6) ||
		    (argv[i][1] != '-' && strchr(argv[i], 'n')))
			s->network = SW_NETWORK_DENIED;
		if (!strcmp(argv[i], "--"))
			break;
	}
}

static const struct {
	const char *backend;
	void (*look)(char *const *, size_t, sw_run_shape *);
} lookers[] = {
    {"bwrap", look_at_bwrap},     {"docker", look_at_engine}, {"podman", look_at_engine},
    {"nerdctl", look_at_engine},  {"runc", look_at_engine},   {"crun", look_at_engine},
    {"unshare", look_at_unshare},
};

bool sw_run_is_launcher(char *const *argv, size_t at)
{
	if (!argv[at] || !argv[at + 1] || strcmp(argv[at + 1], "__landlock") != 0)
		return false;
	sw_run_program p;
	struct stat st;
	return sw_run_find_program(argv[at], NULL, &p) == SW_OK &&
	       stat("/proc/self/exe", &st) == 0 && st.st_dev == p.dev && st.st_ino == p.ino;
}

void sw_run_detect(char *const *argv, sw_run_shape *out)
{
	size_t argc = count(argv);
	memset(out, 0, sizeof *out);
	out->backend = "none";
	out->command = argc;
	out->network = SW_NETWORK_UNKNOWN;
	if (argc == 0)
		return;
	size_t at = 0;
	if (is_merge_wrapper(argv, argc)) {
		out->merge_wrapper = true;
		at = 4;
	}
	at = through_passing(argv, at, argc);
	const char *backend = at < argc ? run_backend_of_program(argv[at]) : NULL;
	bool own = !backend && at < argc && sw_run_is_launcher(argv, at);
	if (own)
		backend = "landlock";
	if (!backend) {
		out->runner = out->merge_wrapper ? 4 : 0;
		out->command = out->runner;
		out->options = out->runner + 1;
		return;
	}
	out->backend = backend;
	out->runner = at;
	out->options = at + 1;
	if (own) { /* sandwitness __landlock OPTIONS -- ARGV */
		out->options++;
		for (size_t i = out->options; i + 1 < argc; i++)
			if (!strcmp(argv[i], "--")) {
				out->command = i + 1;
				break;
			}
	}
	for (size_t i = 0; i < sizeof lookers / sizeof lookers[0]; i++)
		if (!strcmp(backend, lookers[i].backend))
			lookers[i].look(argv, argc, out);
}

static void name_fd(run_named_fds *out, const char *text)
{
	char *end;
	long fd = strtol(text, &end, 10);
	if (*end || end == text || fd < 3 || fd > 1 << 20)
		return;
	if (out->n == sizeof out->fds / sizeof out->fds[0]) {
		out->all = true;
		return;
	}
	out->fds[out->n++] = (int)fd;
}

void run_fds_named(char *const *argv, const sw_run_shape *shape, run_named_fds *out)
{
	memset(out, 0, sizeof *out);
	if (strcmp(shape->backend, "bwrap") != 0)
		return;
	size_t argc = count(argv);
	for (size_t i = shape->options; i < argc && argv[i][0] == '-';) {
		const run_option *o = run_bwrap_option(argv[i]);
		if (!o)
			break;
		if (!strcmp(o->name, "--args"))
			out->all = true; /* options in that descriptor may name more of them */
		if (o->fd_value >= 0 && i + 1 + (size_t)o->fd_value < argc)
			name_fd(out, argv[i + 1 + (size_t)o->fd_value]);
		i += 1 + (size_t)o->values;
	}
}

bool run_sets_filter(char *const *argv, const sw_run_shape *shape)
{
	/* how such an option, or its value, begins. What engines and firejail do unasked answers
	 * with an error and kills nobody. */
	static const struct {
		const char *backend, *start;
	} options[] = {
	    {"bwrap", "--seccomp"},
	    {"bwrap", "--add-seccomp-fd"},
	    {"docker", "seccomp="},
	    {"docker", "--security-opt=seccomp="},
	    {"podman", "seccomp="},
	    {"podman", "--security-opt=seccomp="},
	    {"nerdctl", "seccomp="},
	    {"nerdctl", "--security-opt=seccomp="},
	    {"firejail", "--seccomp"},
	    {"nsjail", "--seccomp"},
	    {"minijail", "-S"},
	    {"minijail", "--seccomp"},
	    {"systemd-run", "SystemCallFilter="},
	    {"systemd-run", "-pSystemCallFilter="},
	    {"systemd-run", "--property=SystemCallFilter="},
	};
	size_t end = shape->command;
	for (size_t at = shape->options; at < end && argv[at] && strcmp(argv[at], "--") != 0; at++)
		for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
			if (!strcmp(shape->backend, options[i].backend) &&
			    !strncmp(argv[at], options[i].start, strlen(options[i].start)) &&
			    !strstr(argv[at], "seccomp=unconfined"))
				return true;
	return false;
}

int sw_run_named_descriptors(char *const *argv, int *fds, size_t max)
{
	sw_run_shape shape;
	run_named_fds named;
	sw_run_detect(argv, &shape);
	run_fds_named(argv, &shape, &named);
	for (size_t i = 0; i < named.n && i < max; i++)
		fds[i] = named.fds[i];
	return named.all ? -1 : (int)named.n;
}
