/*
 * Runners that keep a record: container engines (cidfile, then the recorded state), the
 * OCI runtimes (pid file), systemd (the unit's result). A record that was never written
 * though the runner ended by itself means that the command was never started.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run_internal.h"

#define ASK_NS INT64_C(5000000000)

/*
 * The runtime's init reports a refused execve() through the container's own stderr, after
 * every record says "started". Only such words in a short output leave it open again.
 */
static bool may_be_exec_refusal(const run_attest *a)
{
	static const char *const words[] = {"exec user process caused", "exec format error",
	                                    "exec /", "exec failed", "exec: \""};
	if (a->output == 0 || a->output > RUN_HEAD_MAX)
		return false;
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (memmem(a->head, a->head_len, words[i], strlen(words[i])))
			return true;
	return false;
}

static void settle(run_attest *a, bool yes)
{
	if (yes && may_be_exec_refusal(a))
		return;
	a->started = yes ? SW_STARTED_YES : SW_STARTED_NO;
	a->source = SW_SOURCE_RUNNER_RECORD;
}

static const char *plan_record(run_attest *a, const char *leaf)
{
	const run_engine *e = run_engine_of(a->shape->backend);
	run_engine_parse(a->argv, a->shape->runner, e, &a->call);
	if (!a->call.subcommand)
		return "only `run` leaves a record that proves a start";
	if (a->call.detached)
		return "a detached container's output is not seen here";
	if (strstr(a->program->path, "/snap/"))
		return "a snap cannot write its record where it could be read";
	a->began_s = sw_now_ns() / 1000000000;
	if (a->call.record_at) {
		if (!strcmp(e->record_option, "--cidfile")) /* for the end at the deadline */
			run_record_callers(a, a->call.record_value);
		return "the record file is the caller's own, which the command may reach";
	}
	const char *why = run_record_own(a, leaf);
	if (why)
		return why;
	if (!run_attest_insert(a, a->call.subcommand + 1, e->record_option, a->record))
		return "out of memory";
	return NULL;
}

/* ---- docker, podman, nerdctl ---- */

static const char *plan_engine(run_attest *a)
{
	return plan_record(a, "cid");
}

/* argv up to the sub-command (so that --context, --root, ... stay), then `rest`. */
static int ask(const run_attest *a, const char *const *rest, char *out, size_t n, int *code)
{
	size_t k = 0, n_rest = 0, globals = a->call.subcommand;
	while (rest[n_rest])
		n_rest++;
	const char **argv = calloc(globals + n_rest + 2, sizeof *argv);
	if (!argv)
		return SW_ENOMEM;
	argv[k++] = a->program->path;
	for (size_t i = 1; i < globals; i++)
		if (strcmp(a->argv[i], "container") != 0)
			argv[k++] = a->argv[i];
	for (size_t i = 0; i < n_rest; i++)
		argv[k++] = rest[i];
	int rc = run_helper((char *const *)(uintptr_t)argv, ASK_NS, out, n, code);
	free(argv);
	return rc;
}

/* From the state object: 1 yes, 0 no, -1 not said. */
static int started_of_state(run_attest *a, const char *text)
{
	json_t *j = json_loads(text, 0, NULL);
	const char *at = json_string_value(json_object_get(j, "StartedAt"));
	int answer = -1;
	if (at)
		answer = strncmp(at, "0001-", 5) != 0 && at[0] != '\0';
	a->running = json_is_true(json_object_get(j, "Running"));
	a->oom_killed = json_is_true(json_object_get(j, "OOMKilled"));
	json_decref(j);
	return answer;
}

/* The engine's memory of events outlives a container that --rm has removed. */
static int started_of_events(run_attest *a)
{
	char since[40], until[40], filter[200], out[4096];
	int code;
	sw_time_format((a->began_s - 1) * 1000000000, since);
	sw_time_format(sw_now_ns() + 1000000000, until); /* the second is not over yet */
	snprintf(filter, sizeof filter, "container=%s", a->id);
	const char *podman[] = {"events",         "--since",  since,         "--filter", filter,
	                        "--stream=false", "--format", "{{.Status}}", NULL};
	const char *docker[] = {"events",   "--since", since,      "--until",     until,
	                        "--filter", filter,    "--format", "{{.Action}}", NULL};
	const char *const *rest = strcmp(a->shape->backend, "podman") ? docker : podman;
	if (ask(a, rest, out, sizeof out, &code) || code != 0)
		return -1;
	bool any = false;
	for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n")) {
		any = true;
		if (!strcmp(line, "start"))
			return 1;
	}
	return any ? 0 : -1;
}

static void conclude_engine(run_attest *a, int code, int sig, bool we_killed)
{
	(void)code;
	run_record_look(a);
	if (!a->id[0]) {
		if (!we_killed && sig == 0 && run_record_never_written(a))
			settle(a, false);
		return;
	}
	char out[16384];
	int rc;
	const char *rest[] = {"inspect",         "--type", "container", "--format",
	                      "{{json .State}}", a->id,    NULL};
	int answer = -1;
	if (ask(a, rest, out, sizeof out, &rc) == SW_OK && rc == 0)
		answer = started_of_state(a, out);
	if (answer < 0)
		answer = started_of_events(a);
	/* of a record that somebody else wrote only a start is true: the command's */
	if (answer > 0 || (answer == 0 && run_record_untouched(a)))
		settle(a, answer > 0);
	/* the client is gone and the container runs on: nobody reports its end any more */
	if (a->running && a->started == SW_STARTED_YES && !we_killed)
		a->lost = true;
}

static void end_engine(run_attest *a, char *text, size_t n)
{
	run_record_look(a);
	if (!a->id[0])
		return;
	char out[1024];
	int code = 1;
	const char *rest[] = {"kill", a->id, NULL};
	if (ask(a, rest, out, sizeof out, &code) == SW_OK && code == 0)
		snprintf(text, n, "%.64s", a->id);
}

const run_attest_method run_attest_engine = {.name = "runner-record",
                                             .plan = plan_engine,
                                             .readable = run_record_readable,
                                             .conclude = conclude_engine,
                                             .end_outside = end_engine};

/* ---- runc, crun ---- */

static const char *plan_oci(run_attest *a)
{
	return plan_record(a, "pid");
}

static void conclude_oci(run_attest *a, int code, int sig, bool we_killed)
{
	(void)code;
	run_record_look(a);
	if (a->id[0])
		settle(a, true);
	else if (sig == 0 && !we_killed && run_record_never_written(a))
		settle(a, false);
	a->lost = a->id[0] && sig != 0 && !we_killed;
}

const run_attest_method run_attest_oci = {.name = "runner-record",
                                          .plan = plan_oci,
                                          .readable = run_record_readable,
                                          .conclude = conclude_oci};

/* ---- systemd-run --wait ---- */

static bool has(const run_attest *a, const char *name, const char **value)
{
	size_t n = strlen(name);
	for (size_t i = a->shape->options; i < a->argc && a->argv[i][0] == '-'; i++) {
		if (!strcmp(a->argv[i], "--"))
			return false;
		if (strncmp(a->argv[i], name, n) != 0)
			continue;
		if (a->argv[i][n] == '=' && value)
			*value = a->argv[i] + n + 1;
		else if (a->argv[i][n] == '\0' && value && i + 1 < a->argc)
			*value = a->argv[i + 1];
		if (a->argv[i][n] == '\0' || a->argv[i][n] == '=')
			return true;
	}
	return false;
}

static const char *plan_systemd(run_attest *a)
{
	const char *unit = NULL;
	if (has(a, "--scope", NULL))
		return "a scope has no main process whose result systemd keeps";
	if (!has(a, "--wait", NULL))
		return "systemd-run without --wait says nothing about the command";
	if (has(a, "--collect", NULL) || has(a, "-G", NULL))
		return "--collect removes the unit's result";
	if (has(a, "--unit", &unit) || has(a, "-u", &unit)) {
		if (!unit || strlen(unit) + 9 > sizeof a->unit)
			return "the unit's name is not understood";
		snprintf(a->unit, sizeof a->unit, "%s%s", unit,
		         strchr(unit, '.') ? "" : ".service");
		return NULL;
	}
	char id[37], option[80];
	sw_uuid7(id);
	snprintf(a->unit, sizeof a->unit, "sandwitness-%s.service", id);
	snprintf(option, sizeof option, "--unit=%s", a->unit);
	if (!run_attest_insert(a, 1, option, NULL))
		return "out of memory";
	a->own_unit = true;
	return NULL;
}

/* systemctl of the same manager: next to systemd-run, with its --user, --machine, --host. */
static int systemctl(const run_attest *a, const char *const *rest, char *out, size_t n, int *code)
{
	char path[4096 + 16];
	const char *argv[32];
	size_t k = 0;
	snprintf(path, sizeof path, "%s", a->program->path);
	char *slash = strrchr(path, '/');
	if (!slash)
		return SW_ENOTFOUND;
	strcpy(slash + 1, strstr(rest[0], "journalctl") ? "journalctl" : "systemctl");
	argv[k++] = path;
	if (has(a, "--user", NULL))
		argv[k++] = "--user";
	for (size_t i = 1; rest[i] && k < 31; i++)
		argv[k++] = rest[i];
	argv[k] = NULL;
	return run_helper((char *const *)(uintptr_t)argv, ASK_NS, out, n, code);
}

static const char *property(const char *text, const char *name, char *out, size_t n)
{
	size_t len = strlen(name);
	out[0] = '\0';
	for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (!strncmp(p, name, len) && p[len] == '=') {
			snprintf(out, n, "%.*s", (int)strcspn(p + len + 1, "\n"), p + len + 1);
			break;
		}
	return out;
}

/* The manager's own codes for a step before execve() that failed. */
static bool is_step_code(long status)
{
	return status >= 200 && status <= 245;
}

static bool journal_says_spawn_failed(const run_attest *a, int *known)
{
	char match[96], out[4096];
	int code;
	snprintf(match, sizeof match, "UNIT=%s", a->unit);
	const char *rest[] = {
	    "journalctl", "-q", "-o", "cat", "MESSAGE_ID=641257651c1b4ec9a8624d7a40a9e1e7",
	    match,        NULL};
	*known = systemctl(a, rest, out, sizeof out, &code) == SW_OK && code == 0;
	return *known && out[0] != '\0';
}

static void conclude_systemd(run_attest *a, int code, int sig, bool we_killed)
{
	(void)code;
	if (sig || we_killed)
		return;
	char out[4096], main_pid[32], main_code[32], main_status[32];
	int rc;
	const char *rest[] = {"systemctl",
	                      "show",
	                      a->unit,
	                      "-p",
	                      "ExecMainPID,ExecMainCode,ExecMainStatus,LoadState,Result",
	                      NULL};
	if (systemctl(a, rest, out, sizeof out, &rc) || rc != 0)
		return;
	char load[32];
	if (strcmp(property(out, "LoadState", load, sizeof load), "loaded") != 0)
		return; /* gone already, as after success */
	property(out, "ExecMainPID", main_pid, sizeof main_pid);
	property(out, "ExecMainCode", main_code, sizeof main_code);
	property(out, "ExecMainStatus", main_status, sizeof main_status);
	if (!main_pid[0] || !main_code[0])
		return;
	if (atol(main_pid) == 0) {
		settle(a, false);
		return;
	}
	/* 1 is CLD_EXITED; the codes of failed steps can be the command's own too */
	if (atol(main_code) != 1 || !is_step_code(atol(main_status))) {
		settle(a, true);
		return;
	}
	int known;
	bool failed = journal_says_spawn_failed(a, &known);
	if (failed)
		settle(a, false);
}

static void end_systemd(run_attest *a, char *text, size_t n)
{
	char out[256];
	int code = 1;
	const char *rest[] = {"systemctl", "kill", "--signal=KILL", a->unit, NULL};
	if (systemctl(a, rest, out, sizeof out, &code) == SW_OK && code == 0)
		snprintf(text, n, "%s", a->unit);
}

static void cleanup_systemd(run_attest *a)
{
	char out[256];
	int code;
	const char *rest[] = {"systemctl", "reset-failed", a->unit, NULL};
	if (a->own_unit && a->pid > 0)
		systemctl(a, rest, out, sizeof out, &code);
}

const run_attest_method run_attest_systemd = {.name = "runner-record",
                                              .plan = plan_systemd,
                                              .conclude = conclude_systemd,
                                              .end_outside = end_systemd,
                                              .cleanup = cleanup_systemd};
