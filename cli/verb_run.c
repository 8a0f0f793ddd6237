/* sandwitness run: a command under watch. */
#include "run_cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct session {
	const run_cli_options *o;
	run_cli_level level;
	bool has_level;
	run_cli_record *record; /* NULL: none is kept */
	int notes;              /* where a failure of the runner is noted; negative: nowhere */
	char **argv;
	size_t argc;
	const char *backend;
	run_cli_sandbox box;
} session;

static int refused(const sw_error *err)
{
	sw_error_print(stderr, err);
	fputs("sandwitness: run: nothing was executed\n", stderr);
	return SW_RUN_EXIT_REFUSED;
}

/* Refused by policy: said, recorded, published. */
static int unavailable(session *s, const char *cause, const char *why, const char *fix)
{
	sw_error err;
	sw_error_set(&err, SW_EINVAL, "%s", why);
	sw_error_more(&err, "run", NULL, fix);
	int status = refused(&err);
	if (s->record && run_cli_record_refused(s->record, &s->level, cause, why, &err))
		sw_error_print(stderr, &err);
	json_t *j = run_cli_refusal_json(s->backend, cause, why, s->has_level ? &s->level : NULL,
	                                 run_cli_record_id(s->record));
	if (run_cli_publish(s->o, j, &err))
		sw_error_print(stderr, &err);
	return status;
}

static void on_output(void *ctx, const void *bytes, size_t n)
{
	session *s = ctx;
	if (s->record)
		run_cli_record_output(s->record, bytes, n);
}

/* The record must be on disk before anything is executed. */
static int before_spawn(void *ctx, sw_error *err)
{
	session *s = ctx;
	if (!s->record)
		return 0;
	int rc = run_cli_record_begin(s->record, &s->level, err);
	if (!rc || s->o->audit != RUN_AUDIT_BEST_EFFORT)
		return rc;
	sw_error_print(stderr, err);
	fputs("sandwitness: run: not recorded (--audit=best-effort)\n", stderr);
	run_cli_record_free(s->record);
	s->record = NULL;
	return 0;
}

static int open_record(session *s, sw_error *err)
{
	if (s->o->audit == RUN_AUDIT_OFF)
		return 0;
	int rc = run_cli_record_new(&s->record, s->o, &s->level, s->argv, s->argc, err);
	if (!rc || s->o->audit != RUN_AUDIT_BEST_EFFORT)
		return rc;
	sw_error_print(stderr, err);
	fputs("sandwitness: run: not recorded (--audit=best-effort)\n", stderr);
	return 0;
}

/*
 * Whoever should read it may have stopped reading, and must not keep the run from its end.
 * `instead`, which may be NULL, where there was no memory for the text.
 */
static void speak(const session *s, FILE *f, char **text, size_t *n, const char *instead)
{
	int64_t limit = s->o->deadline_ns > 0 ? RUN_SAY_NS : 0;
	bool whole = f && !ferror(f);
	if (f && fclose(f))
		whole = false;
	if (whole && *text)
		run_cli_write(STDERR_FILENO, *text, *n, limit);
	else if (instead)
		run_cli_write(STDERR_FILENO, instead, strlen(instead), limit);
	free(*text);
	*text = NULL;
	*n = 0;
}

static void say_note(const session *s, FILE *f, const sw_run_note *note)
{
	bool wanted = note->kind == SW_RUN_NOTE_NOT_ATTESTED || note->kind == SW_RUN_NOTE_FORWARDED
	                  ? s->o->verbose
	                  : true;
	if (!wanted)
		return;
	char text[300];
	sw_run_note_text(note, text, sizeof text);
	char *safe = sw_escape_tty(text, strlen(text));
	fprintf(f, "sandwitness: run: %s\n", safe ? safe : "");
	free(safe);
}

static void say(const session *s, FILE *f, const sw_run_report *report, const sw_result *r)
{
	if (s->o->quiet)
		return;
	for (size_t i = 0; i < report->n_notes; i++)
		say_note(s, f, &report->notes[i]);
	if (!report->spawned)
		fprintf(f, "sandwitness: run: %s: %s\n", s->argv[0],
		        report->spawn_errno == ENOENT && !strchr(s->argv[0], '/')
		            ? "command not found"
		            : strerror(report->spawn_errno));
	bool nothing_to_say = r->verdict == SW_VERDICT_OK && r->rule <= 2 && !s->o->verbose;
	if (!nothing_to_say) {
		fputs("sandwitness: ", f);
		cli_print_verdict(f, r, s->o->verbose, sw_colour_wanted(STDERR_FILENO));
	}
	if (s->level.outcome.downgrade) {
		char lost[SW_GUARANTEES_TEXT_MAX];
		sw_guarantees_text(s->level.outcome.lost, lost);
		fprintf(f, "sandwitness: downgrade: lost %s (basis %s%s)\n", lost,
		        sw_basis_name(s->level.outcome.basis),
		        s->level.outcome.unexplained ? ", unexplained" : "");
	}
}

#define RAN_BUT "sandwitness: run: the command ran, but "
static const char UNRECORDED[] = RAN_BUT "its end could not be recorded\n";
static const char UNTOLD[] = RAN_BUT "there is no memory to tell what came of it\n";
static const char UNWRITTEN[] = RAN_BUT "its verdict could not be written\n";

/*
 * The record first: whoever should read the rest may not read it, or not let this process write.
 */
static int finish(session *s, const sw_run_report *report, const sw_result *r)
{
	sw_error err;
	char *text = NULL;
	size_t n = 0;
	int status = sw_run_exit_status(report);
	const char *instead = s->o->quiet ? NULL : UNTOLD;
	FILE *f = open_memstream(&text, &n);
	run_cli_level_after(&s->level, r);
	if (f)
		say(s, f, report, r);
	if (s->record && run_cli_record_end(s->record, &s->level, report, r, &err)) {
		/* it ran, and what came of it is not on record: that must not look like success */
		if (f) {
			sw_error_print(f, &err);
			fputs(UNRECORDED, f);
		}
		instead = UNRECORDED;
		if (s->o->audit == RUN_AUDIT_REQUIRED)
			status = SW_RUN_EXIT_REFUSED;
	}
	speak(s, f, &text, &n, instead);
	instead = NULL;
	f = open_memstream(&text, &n);
	json_t *j = run_cli_json(r, report, &s->level, run_cli_record_id(s->record));
	if (run_cli_publish(s->o, j, &err)) {
		if (f) {
			sw_error_print(f, &err);
			fputs(UNWRITTEN, f);
		}
		instead = UNWRITTEN;
	}
	if (r->verdict == SW_VERDICT_RUNNER_FAILED) /* the next status probes afresh */
		sw_probe_note_failure(s->notes, s->backend, r->cause, run_cli_record_id(s->record),
		                      NULL);
	speak(s, f, &text, &n, instead);
	return status;
}

/* It ran, and there is no verdict: neither the status nor the words may look like one. */
static int unjudged(session *s, const sw_error *err)
{
	sw_error_print(stderr, err);
	fputs(RAN_BUT "what came of it could not be judged; its record stays without an end\n",
	      stderr);
	json_t *j = run_cli_unjudged_json(s->backend, err->what, s->has_level ? &s->level : NULL,
	                                  run_cli_record_id(s->record));
	sw_error again;
	if (run_cli_publish(s->o, j, &again))
		sw_error_print(stderr, &again);
	return SW_RUN_EXIT_REFUSED;
}

/*
 * The command may have made this process a background one of its terminal, where writing would
 * stop it (SIGTTOU) before the verdict is out. Nothing is started any more that would inherit it.
 */
static void write_in_the_background(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static int supervise(session *s, const sw_pack *pack)
{
	const run_cli_options *o = s->o;
	sw_error err;
	sw_facts facts = o->f.facts;
	run_cli_level_facts(&s->level, &facts);
	if (o->cwd && o->cwd[0] == '/' && !facts.cwd.len)
		facts.cwd = sw_str_of(o->cwd);
	const sw_confined *c = s->box.confined;
	sw_run_options run = {.argv = c ? c->argv : s->argv,
	                      .env = c ? c->envp : NULL,
	                      .backend = s->backend,
	                      .cwd = o->cwd,
	                      .deadline_ns = o->deadline_ns,
	                      .grace_ns = o->grace_ns,
	                      .no_merge = o->no_merge,
	                      .no_attest = o->no_attest,
	                      .quiet_stdin = o->quiet_stdin,
	                      .trace = o->trace,
	                      .out_fd = o->json ? STDERR_FILENO : STDOUT_FILENO,
	                      .err_fd = STDERR_FILENO,
	                      .keep_fds = o->keep_fds,
	                      .n_keep_fds = o->n_keep_fds,
	                      .on_output = on_output,
	                      .before_spawn = before_spawn,
	                      .ctx = s};
	sw_run_report *report = calloc(1, sizeof *report);
	sw_result *result = NULL;
	s->notes = sw_probe_notes_open(NULL, NULL);
	if (!report)
		return sw_error_set(&err, SW_ENOMEM, "out of memory"), refused(&err);
	int rc = sw_run_command(&run, pack, &facts, report, &result, &err);
	write_in_the_background();
	int status = !rc           ? finish(s, report, result)
	             : report->pid ? unjudged(s, &err)
	                           : refused(&err);
	if (s->notes >= 0)
		close(s->notes);
	sw_result_free(result);
	free(report);
	return status;
}

static int minimum_met(session *s, int *status)
{
	const sw_level_outcome *l = &s->level.outcome;
	if (!l->violation)
		return 1;
	char missing[SW_GUARANTEES_TEXT_MAX], why[512];
	sw_guarantees_text(l->violated, missing);
	snprintf(why, sizeof why,
	         "the minimum is not met: %s is missing (effective level %s, basis %s)", missing,
	         s->level.effective, sw_basis_name(l->basis));
	*status = unavailable(s, "sandbox-minimum-unmet", why,
	                      "add the runner's options that give it, or lower --minimum");
	return 0;
}

/* Wraps the command, or says why it is not run. 0: go on; else the exit status. */
static int enter_sandbox(session *s, run_cli_options *o)
{
	sw_error err;
	uint32_t minimum = 0;
	if (o->minimum &&
	    sw_level_parse(sw_builtin_levels(), sw_str_of(o->minimum), &minimum, NULL, &err))
		return refused(&err);
	int rc = run_cli_sandbox_plan(&s->box, o, minimum, &err);
	if (rc < 0)
		return refused(&err);
	s->backend = s->box.confined ? s->box.confined->backend : "none";
	if (run_cli_level_built(&s->level, o, &s->box, &err))
		return refused(&err);
	s->has_level = true;
	if (rc == 0)
		return 0;
	if (open_record(s, &err))
		return refused(&err);
	return unavailable(s, s->box.cause, s->box.why, s->box.fix);
}

static int prepare(session *s, run_cli_options *o)
{
	sw_error err;
	if (o->policy.policy.mode != SW_MODE_UNKNOWN)
		return enter_sandbox(s, o);
	sw_run_shape shape;
	sw_run_detect(s->argv, &shape);
	s->backend = o->backend ? o->backend : shape.backend;
	if (run_cli_level_init(&s->level, o, s->argv, s->argc, s->backend, &err))
		return refused(&err);
	s->has_level = true;
	return 0;
}

static int run_session(session *s, run_cli_options *o)
{
	sw_error err;
	const sw_pack_set *set = cli_pack_set(o->signatures, o->pack_set);
	if (!set)
		return SW_RUN_EXIT_REFUSED;
	s->o = o;
	s->argv = o->argv;
	s->argc = (size_t)o->argc;
	int status = prepare(s, o);
	if (status)
		return status;
	const sw_pack *pack = cli_pack(set, s->backend);
	if (!pack)
		return SW_RUN_EXIT_REFUSED;
	if (open_record(s, &err))
		return refused(&err);
	return minimum_met(s, &status) ? supervise(s, pack) : status;
}

static int run(int argc, char **argv)
{
	int elsewhere = run_cli_apart();
	if (elsewhere >= 0)
		return elsewhere;
	run_cli_options *o = calloc(1, sizeof *o);
	session *s = calloc(1, sizeof *s);
	int status = SW_RUN_EXIT_REFUSED;
	if (!o || !s)
		cli_no_memory();
	else if (run_cli_parse(o, cli_verb_find("run"), argc, argv) == 0)
		status = run_session(s, o);
	if (s) {
		run_cli_record_free(s->record);
		run_cli_level_free(&s->level);
		run_cli_sandbox_free(&s->box);
	}
	if (o) {
		run_place_close(&o->place);
		probe_cli_policy_free(&o->policy);
	}
	free(s);
	free(o);
	return status;
}

const cli_verb cli_verb_run = {
    .name = "run",
    .summary = "run a wrapped command under watch",
    .usage = "[options] -- ARGV...",
    .help =
        "Runs ARGV, which a sandbox runner (bwrap, docker, ...) wraps already, passes its output\n"
        "through and says what came of it. The answer for people goes to stderr.\n\n"
        "  --sandbox MODE       wrap ARGV first: read_only, workspace_write, danger_full_access;\n"
        "                       the best backend that a probe proves here, or --backend B "
        "unprobed\n"
        "  --workspace DIR, --readable P, --writable P, --env NAME, --network, --image I,\n"
        "  --memory-mb N, --cpus N\n"
        "                       what the wrapped command gets, as for confine\n"
        "  --allow-unconfined   run without where SANDWITNESS_SANDBOX switches it off\n"
        "  --backend B          the runner, where ARGV does not show it\n"
        "  --deadline D         end the command and all it started after D (30s, 5m)\n"
        "  --grace D            between TERM and KILL (default 1s)\n"
        "  --no-merge           keep stdout and stderr apart; the verdict rests on stderr\n"
        "  --json               the verdict alone on stdout, the command's output on stderr\n"
        "  --verdict-fd N       the JSON verdict to descriptor N\n"
        "  --verdict-file F     the JSON verdict to file F\n"
        "  --quiet, --verbose   say less, say more\n"
        "  --requested L        the level this invocation was to have\n"
        "  --minimum L          refuse to run with less\n"
        "  --reason TEXT        why it has less than requested; --exempt: by design\n"
        "  --mode M, --network allowed|denied, --writable-root P, --accessible P\n"
        "                       facts for the verdict, as for classify\n"
        "  --cwd DIR            run it there\n"
        "  --null-stdin         nothing on stdin (else it is inherited)\n"
        "  --keep-fd N          an inherited descriptor that the command may keep\n"
        "  --trace              watch calls that are refused, even if the command is silent about\n"
        "                       them; slower\n"
        "  --no-attest          add no option to the runner's argv\n"
        "  --label K=V, --session S, --actor A, --runtime R, --device D, --id ID\n"
        "                       for the record\n"
        "  --db PATH            the audit trail\n"
        "  --server unix:PATH   record through a running service (sandwitness serve) instead\n"
        "  --audit A            required (default): refuse to run what cannot be recorded;\n"
        "                       best-effort; off\n"
        "  --keep-output N      keep up to N bytes of the output with the record\n"
        "  --signatures DIR, --pack-set NAME\n\n"
        "Exit status: the command's own, 128 + signal; 125: refused or not recordable.\n\n"
        "Examples:\n"
        "  $ sandwitness run -- bwrap --ro-bind / / --unshare-all true\n"
        "  $ sandwitness run --sandbox read_only -- ls /\n"
        "  $ sandwitness run --deadline 30s -- bwrap --ro-bind / / --unshare-all sh -c 'echo hi'\n",
    .run = run};
