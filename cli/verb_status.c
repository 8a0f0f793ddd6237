/* sandwitness status [--probe[=BACKEND]] */
#include "client.h"
#include "probe_cli.h"

#include <stdlib.h>
#include <string.h>

static void print_steps(const sw_backend_status *b)
{
	for (size_t i = 0; i < b->n_steps; i++) {
		printf("    %-8s %-16s ", sw_step_result_name(b->steps[i].result),
		       b->steps[i].name);
		probe_cli_puts(stdout, b->steps[i].detail);
		putchar('\n');
	}
}

static void print_backend(const sw_backend_status *b, bool verbose)
{
	if (!b->here) {
		printf("%-13s not on this platform\n", b->id);
		return;
	}
	printf("%-13s %-10s ", b->id, sw_probe_result_name(b->result));
	if (b->result == SW_PROBE_FULL || b->result == SW_PROBE_PARTIAL)
		probe_cli_guarantees(stdout, b->guarantees);
	else if (b->cause[0])
		fputs(b->cause, stdout);
	else
		fputs(b->found ? "found" : "not found", stdout);
	if (b->path)
		printf("  (%s%s%s)", b->path, b->version[0] ? ", " : "", b->version);
	else if (b->version[0])
		printf("  (%s)", b->version);
	putchar('\n');
	if (b->untrusted_path) {
		fputs("    skipped  ", stdout);
		probe_cli_puts(stdout, b->untrusted_path);
		fputs(": ", stdout);
		probe_cli_puts(stdout, b->untrusted_why);
		putchar('\n');
	}
	if (b->recheck[0])
		printf("    probed afresh: %s\n", b->recheck);
	if (verbose || (b->n_steps && b->result != SW_PROBE_FULL))
		print_steps(b);
	if (b->advice[0])
		printf("    advice: %s\n", b->advice);
}

static void print_status(const sw_status *s, bool verbose)
{
	if (s->disabled_via_env)
		printf("sandbox: switched off by %s\n\n", s->disabled_by);
	else
		printf("sandbox: %s\n\n",
		       s->active ? "active (bwrap)"
		                 : "not active: bwrap is missing or does not confine; see below");
	for (size_t i = 0; i < s->n_backends; i++)
		print_backend(&s->backends[i], verbose);
	puts("\nhost");
	for (size_t i = 0; i < s->n_facts; i++) {
		const sw_host_fact *f = &s->facts[i];
		printf("  %-38s %s%s", f->id, f->known ? "" : "unknown: ", f->value);
		if (verbose)
			printf("  [%s]", f->source);
		putchar('\n');
	}
	const sw_probe_context *c = &s->context;
	printf("\nholds for uid %ld, gid %ld, %s, seccomp %s, no_new_privs %s, container %s\n",
	       c->uid, c->gid, c->userns, c->seccomp,
	       c->no_new_privs < 0 ? "unknown"
	       : c->no_new_privs   ? "1"
	                           : "0",
	       c->container);
}

static void put_text(const json_t *v)
{
	probe_cli_puts(stdout, json_is_string(v) ? json_string_value(v) : "");
}

/* What a service sees: its own last proofs hold where it runs, not here. */
static int from_server(const char *server, const sw_probe_options *o, bool json)
{
	sw_error e = {0};
	sw_buf path;
	json_t *j = NULL, *b;
	size_t i;
	sw_buf_init(&path, 256);
	sw_buf_adds(&path, "/v1/status");
	cli_server_param(&path, "probe", !o->probe ? NULL : o->only ? o->only : "1");
	int code = path.error ? sw_error_set(&e, SW_ETOOBIG, "the backend's name is too long")
	                      : cli_server_call(server, path.ptr, NULL, &j, &e);
	sw_buf_free(&path);
	if (code)
		return cli_fail(&e);
	if (json) {
		cli_print_json(stdout, j);
		return CLI_OK;
	}
	printf("service at %s: sandbox %s\n\n", server,
	       json_is_true(json_object_get(j, "disabled_via_env")) ? "switched off there"
	       : json_is_true(json_object_get(j, "active"))         ? "active"
	                                                            : "not active");
	json_array_foreach(json_object_get(j, "backends"), i, b)
	{
		const json_t *p = json_object_get(b, "last_probe");
		if (json_is_null(json_object_get(b, "path")) && json_is_null(p))
			continue;
		printf("%-13s ", json_string_value(json_object_get(b, "id")));
		if (json_is_null(p)) {
			fputs("found, not proved", stdout);
		} else {
			put_text(json_object_get(p, "result"));
			if (json_is_string(json_object_get(p, "cause"))) {
				putchar(' ');
				put_text(json_object_get(p, "cause"));
			}
			fputs(", proved at ", stdout);
			put_text(json_object_get(p, "at"));
		}
		putchar('\n');
	}
	json_decref(j);
	return CLI_OK;
}

static int run(int argc, char **argv)
{
	const cli_verb *self = cli_verb_find("status");
	const char *server = NULL;
	sw_probe_options o = {0};
	bool json = false, verbose = false;
	cli_args a;
	cli_args_init(&a, self, argc, argv);
	for (int t; (t = cli_args_next(&a));) {
		if (t == 2)
			return cli_usage_error(self, "no argument is taken: \"%.60s\"",
			                       a.inline_value);
		if (!strcmp(a.name, "probe")) {
			o.probe = true;
			o.only = a.inline_value && *a.inline_value ? a.inline_value : o.only;
			continue;
		}
		if (!strcmp(a.name, "verbose") || !strcmp(a.name, "v")) {
			verbose = true;
			continue;
		}
		if (!strcmp(a.name, "server")) {
			if (!(server = cli_args_value(&a)))
				return CLI_USAGE;
			continue;
		}
		int taken = probe_cli_option(&a, &o, &json);
		if (taken < 0)
			return -taken;
		if (!taken)
			return cli_args_unknown(&a);
	}
	if (server)
		return from_server(server, &o, json);
	sw_status *s = NULL;
	sw_error e;
	probe_cli_defaults(&o);
	if (sw_status_read(&s, &o, &e))
		return cli_fail(&e);
	if (json)
		cli_print_json(stdout, sw_status_json(s));
	else
		print_status(s, verbose);
	sw_status_free(s);
	return CLI_OK;
}

const cli_verb cli_verb_status = {
    .name = "status",
    .summary = "does the sandbox work here, now? looks every time, proves with --probe",
    .usage = "[--probe[=BACKEND]] [--deadline 5s] [--image I] [-v] [--json] [--server unix:PATH]",
    .help =
        "Without --probe: what is installed, where, and what this host allows. \"found\" is not\n"
        "\"works\": --probe runs a command through each runner and proves both directions, a\n"
        "permitted write that arrives and a forbidden one that does not.\n\n"
        "  --probe[=BACKEND]  prove all backends, or one: bwrap, landlock, podman, docker,\n"
        "                     firejail, nsjail, systemd-run, runc, crun, gvisor\n"
        "  --deadline D       for each child (default 5s); what it kills is \"unknown\"\n"
        "  --image I          of docker and podman (default debian:stable-slim); never pulled\n"
        "  -v                 every step and the source of every fact\n\n"
        "A runner failure in a real run makes the next status probe that backend unasked.\n"
        "SANDWITNESS_SANDBOX or METNOS_SANDBOX = 0, off, no, false switches the sandbox off.\n\n"
        "Examples:\n"
        "  $ sandwitness status\n"
        "  $ sandwitness status --probe=bwrap --json\n",
    .run = run,
};
