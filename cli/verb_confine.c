/* sandwitness confine: print the argv, spawn nothing */
#include "probe_cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFINE_JSON_MAX (4u << 20)

typedef struct confine_args {
	const char *backend;
	bool merge, json, has_argv;
	probe_cli_policy policy;
	json_t *argv_json; /* owns the strings of --argv-json */
	sw_str *argv;
	size_t argc;
} confine_args;

/* Shell quoting that any POSIX shell reads back to the same bytes. */
static void put_quoted(FILE *to, const char *z)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	                            "@%+=:,./-_";
	if (*z && strspn(z, plain) == strlen(z)) {
		fputs(z, to);
		return;
	}
	fputc('\'', to);
	for (; *z; z++) {
		if (*z == '\'')
			fputs("'\\''", to);
		else
			fputc(*z, to);
	}
	fputc('\'', to);
}

static json_t *strings_json(char *const *v, size_t n)
{
	json_t *a = json_array();
	for (size_t i = 0; v && i < n && v[i]; i++)
		json_array_append_new(a, sw_json_text(sw_str_of(v[i])));
	return a;
}

/* Arguments that are no UTF-8 cannot stand in JSON as they are: then base64 beside them. */
static json_t *argv_b64_json(char *const *v, size_t n)
{
	bool all = true;
	for (size_t i = 0; v && i < n && v[i]; i++)
		all = all && sw_utf8_valid(v[i], strlen(v[i]));
	if (all)
		return NULL;
	json_t *a = json_array();
	for (size_t i = 0; i < n && v[i]; i++) {
		char *b64 = sw_base64(v[i], strlen(v[i]));
		json_array_append_new(a, sw_json_z(b64));
		free(b64);
	}
	return a;
}

static json_t *confined_json(const confine_args *c, const sw_confined *s, char *const *argv,
                             size_t n)
{
	json_t *o = json_object(), *b64 = argv_b64_json(argv, n);
	sw_confine_capability cap = sw_confine_capabilities(&c->policy.policy, s->backend, false);
	size_t n_env = 0;
	while (s->envp && s->envp[n_env])
		n_env++;
	json_object_set_new(o, "schema", json_integer(1));
	json_object_set_new(o, "backend", sw_json_z(s->backend));
	json_object_set_new(o, "level", sw_json_z(s->level));
	json_object_set_new(o, "argv", strings_json(argv, n));
	if (b64)
		json_object_set_new(o, "argv_b64", b64);
	json_object_set_new(o, "env", s->envp ? strings_json(s->envp, n_env) : json_null());
	json_object_set_new(o, "cwd", s->cwd ? sw_json_text(sw_str_of(s->cwd)) : json_null());
	json_object_set_new(o, "mode", sw_json_z(sw_mode_name(s->mode)));
	json_object_set_new(o, "network", sw_json_z(sw_network_name(s->network)));
	json_object_set_new(o, "enforcement", sw_json_z(sw_enforcement_name(s->enforcement)));
	json_object_set_new(o, "writable_roots",
	                    strings_json(s->writable_roots, s->n_writable_roots));
	json_object_set_new(o, "private_roots", strings_json(s->private_roots, s->n_private_roots));
	json_object_set_new(o, "guarantees", probe_cli_guarantees_json(s->guarantees));
	json_object_set_new(o, "granted", probe_cli_guarantees_json(s->granted));
	json_object_set_new(o, "basis", sw_json_z(sw_basis_name(SW_BASIS_BUILT)));
	json_object_set_new(o, "capability", probe_cli_capability_json(&cap));
	return o;
}

static int read_argv_json(confine_args *c, const char *file)
{
	sw_error e;
	char *text = NULL;
	size_t n = 0;
	if (sw_read_file(file, CONFINE_JSON_MAX, &text, &n, &e))
		return cli_fail(&e);
	c->argv_json = sw_json_parse(text, n, &e);
	free(text);
	if (!c->argv_json)
		return cli_fail(&e);
	if (!json_is_array(c->argv_json))
		return cli_usage_error(cli_verb_find("confine"),
		                       "--argv-json wants an array of strings");
	c->argc = json_array_size(c->argv_json);
	c->argv = calloc(c->argc + 1, sizeof(*c->argv));
	if (!c->argv)
		return cli_no_memory();
	for (size_t i = 0; i < c->argc; i++) {
		const json_t *s = json_array_get(c->argv_json, i);
		if (!json_is_string(s))
			return cli_usage_error(cli_verb_find("confine"),
			                       "--argv-json wants an array of strings");
		c->argv[i] = (sw_str){json_string_value(s), json_string_length(s)};
	}
	c->has_argv = true;
	return CLI_OK;
}

static int parse(confine_args *c, const cli_verb *self, int argc, char **argv)
{
	cli_args a;
	cli_args_init(&a, self, argc, argv);
	for (int t; (t = cli_args_next(&a));) {
		if (t == 2) {
			/* the command: this and everything after it */
			if (c->has_argv)
				return cli_usage_error(self, "the command is given twice");
			c->argc = (size_t)argc - (size_t)a.at + 1;
			c->argv = calloc(c->argc + 1, sizeof(*c->argv));
			for (size_t i = 0; c->argv && i < c->argc; i++)
				c->argv[i] = sw_str_of(argv[a.at - 1 + (int)i]);
			return c->argv ? CLI_OK : cli_no_memory();
		}
		const char *v;
		if (!strcmp(a.name, "merge-stderr")) {
			c->merge = true;
		} else if (!strcmp(a.name, "json")) {
			c->json = true;
		} else if (!strcmp(a.name, "backend")) {
			if (!(c->backend = cli_args_value(&a)))
				return CLI_USAGE;
		} else if (!strcmp(a.name, "argv-json")) {
			if (!(v = cli_args_value(&a)))
				return CLI_USAGE;
			int rc = read_argv_json(c, v);
			if (rc)
				return rc;
		} else {
			int taken = probe_cli_policy_option(&c->policy, &a);
			if (taken <= 0)
				return taken < 0 ? -taken : cli_args_unknown(&a);
		}
	}
	return CLI_OK;
}

static void print_argv(char *const *argv, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i)
			putchar(' ');
		put_quoted(stdout, argv[i]);
	}
	putchar('\n');
}

static int only_merge(const confine_args *c)
{
	sw_error e;
	char **argv = NULL;
	size_t n = 0;
	if (sw_confine_merge_stderr(&argv, &n, c->argv, c->argc, &e))
		return cli_fail(&e);
	if (c->json) {
		json_t *o = json_object(), *b64 = argv_b64_json(argv, n);
		json_object_set_new(o, "schema", json_integer(1));
		json_object_set_new(o, "argv", strings_json(argv, n));
		if (b64)
			json_object_set_new(o, "argv_b64", b64);
		cli_print_json(stdout, o);
	} else {
		print_argv(argv, n);
	}
	sw_argv_free(argv);
	return CLI_OK;
}

static const char *program_of(const char *backend)
{
	static const char *const programs[][2] = {{"bwrap", "bwrap"},
	                                          {"docker", "docker"},
	                                          {"podman", "podman"},
	                                          {"seatbelt", "sandbox-exec"}};
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		if (!strcmp(programs[i][0], backend))
			return programs[i][1];
	return NULL;
}

/* Where this program is: the Landlock launcher is part of it. */
static const char *own_path(char *buf, size_t n)
{
	ssize_t len = readlink("/proc/self/exe", buf, n - 1);
	if (len <= 0)
		return NULL;
	buf[len] = '\0';
	return buf;
}

static int build(confine_args *c)
{
	sw_error e;
	sw_confined *s = NULL;
	char self[4096];
	const char *backend = c->backend ? c->backend : "bwrap", *program = program_of(backend);
	int rc = probe_cli_policy_finish(&c->policy);
	if (rc)
		return rc;
	char *runner = program ? sw_find_program(program, NULL, NULL, NULL, 0) : NULL;
	c->policy.policy.runner = runner;
	c->policy.policy.self = own_path(self, sizeof(self));
	if (sw_confine(&s, backend, &c->policy.policy, c->argv, c->argc, &e)) {
		free(runner);
		if (e.code == SW_EUNSUPPORTED)
			e.code = SW_EINVAL; /* the caller named it */
		return cli_fail(&e);
	}
	free(runner);
	/*
	 * bwrap's own first process keeps the environment it was started with, and the command
	 * can read it in /proc/1/environ. JSON says what to spawn with; a line for a shell must
	 * bring it along. The clients of containers need theirs.
	 */
	size_t n_env = 0, n = 0;
	while (s->envp && s->envp[n_env])
		n_env++;
	bool clean = !c->json && s->envp && strcmp(s->backend, "docker") != 0 &&
	             strcmp(s->backend, "podman") != 0;
	sw_str *parts = calloc(n_env + s->argc + 3, sizeof(*parts));
	char **plain = calloc(n_env + s->argc + 3, sizeof(*plain)), **merged = NULL;
	if (parts && plain) {
		if (clean) {
			plain[n++] = (char *)"/usr/bin/env";
			plain[n++] = (char *)"-i";
			for (size_t i = 0; i < n_env; i++)
				plain[n++] = s->envp[i];
		}
		for (size_t i = 0; i < s->argc; i++)
			plain[n++] = s->argv[i];
		for (size_t i = 0; i < n; i++)
			parts[i] = sw_str_of(plain[i]);
		if (c->merge)
			rc = sw_confine_merge_stderr(&merged, &n, parts, n, &e);
	} else {
		rc = sw_error_set(&e, SW_ENOMEM, "out of memory");
	}
	char **argv = merged ? merged : plain;
	if (rc)
		rc = cli_fail(&e);
	else if (c->json)
		cli_print_json(stdout, confined_json(c, s, argv, n));
	else
		print_argv(argv, n);
	free(parts);
	free(plain);
	sw_argv_free(merged);
	sw_confined_free(s);
	return rc;
}

static int run(int argc, char **argv)
{
	const cli_verb *self = cli_verb_find("confine");
	confine_args *c = calloc(1, sizeof(*c));
	if (!c)
		return cli_no_memory();
	probe_cli_policy_init(&c->policy);
	int rc = parse(c, self, argc, argv);
	bool sandbox = c->policy.policy.mode != SW_MODE_UNKNOWN;
	if (!rc && !c->argc)
		rc = cli_usage_error(self, "no command: give it after --");
	else if (!rc && !sandbox && !c->merge)
		rc = cli_usage_error(
		    self, "give --sandbox read_only, workspace_write or danger_full_access");
	if (!rc)
		rc = sandbox ? build(c) : only_merge(c);
	probe_cli_policy_free(&c->policy);
	json_decref(c->argv_json);
	free(c->argv);
	free(c);
	return rc;
}

const cli_verb cli_verb_confine = {
    .name = "confine",
    .summary = "print the argv that confines a command, without spawning anything",
    .usage = "--sandbox MODE [--backend B] [--network] [--workspace DIR] [--readable P]... "
             "[--writable P]... [--env NAME]... [--image I] [--memory-mb N] [--cpus N] [--partial] "
             "[--merge-stderr] [--json] -- ARGV...",
    .help =
        "MODE is read_only, workspace_write or danger_full_access (argv unchanged).\n"
        "B is bwrap (default), landlock, podman, docker or seatbelt.\n"
        "--json gives argv, env to spawn with, writable roots, guarantees and what a runtime may\n"
        "say about the tool. Spawn with that env: bwrap's first process keeps what it was started\n"
        "with, and the command can read it there. Without --json: one line for a shell, which\n"
        "clears the environment itself. Values of --env variables stand in the argv of bwrap and\n"
        "landlock, where other users of the machine can see them.\n\n"
        "  --merge-stderr     wrap in  /bin/sh -c 'exec \"$@\" 2>&1' sh ARGV, so that a runtime\n"
        "                     that captures one stream sees the runner's own messages too;\n"
        "                     alone, without --sandbox, it only does that\n"
        "  --argv-json FILE   the command as a JSON array of strings (- is stdin)\n"
        "  --partial          bwrap without a process namespace, for inside containers\n\n"
        "An argument with a NUL byte is refused: the system would cut it there.\n\n"
        "Examples:\n"
        "  $ sandwitness confine --sandbox workspace_write --workspace /tmp -- make test\n"
        "  $ sandwitness confine --merge-stderr -- echo hi\n"
        "  $ sandwitness confine --json --sandbox read_only --workspace /tmp -- ls\n",
    .run = run,
};
