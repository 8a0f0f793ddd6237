/*
 * The audit record of one run: begun durably before the command is spawned, ended after.
 * Without the store in the build, every call says so, and --audit=off is the way.
 */
#include "run_cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEEP_BUFFER_MAX (4u << 20) /* a longer output is recorded by size and digest alone */

#ifdef HAVE_SW_STORE

#include <nettle/sha2.h>

#include "run_server.h"
#include "store.h"

struct run_cli_record {
	sw_store *store;    /* NULL: the service */
	const char *server; /* or NULL */
	uint32_t effective_at_begin;
	sw_network network_said;
	char id[SW_RECORD_ID_MAX + 1];
	bool begun;
	sw_label labels[RUN_LABELS_MAX];
	sw_str *argv;
	sw_record record;
	struct sha256_ctx digest;
	sw_buf kept;
	bool keep, overflow;
};

static void set_labels(run_cli_record *r, const run_cli_options *o)
{
	for (size_t i = 0; i < o->n_labels; i++) {
		const char *eq = strchr(o->labels[i], '=');
		r->labels[i].key = (sw_str){o->labels[i], (size_t)(eq - o->labels[i])};
		r->labels[i].value = sw_str_of(eq + 1);
	}
	r->record.labels = r->labels;
	r->record.n_labels = o->n_labels;
}

/* How long a trail that somebody keeps locked is waited for: no longer than the command is. */
static int patience_ms(const run_cli_options *o)
{
	enum { LEAST = 1000, MOST = 10000 };
	int64_t ms = o->deadline_ns / 1000000;
	return o->deadline_ns <= 0 || ms > MOST ? MOST : ms < LEAST ? LEAST : (int)ms;
}

int run_cli_record_new(run_cli_record **out, const run_cli_options *o, const run_cli_level *level,
                       char *const *argv, size_t argc, sw_error *err)
{
	run_cli_record *r = calloc(1, sizeof *r);
	if (!r || !(r->argv = calloc(argc + 1, sizeof *r->argv))) {
		free(r);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	if (o->id)
		snprintf(r->id, sizeof r->id, "%s", o->id);
	else
		sw_uuid7(r->id);
	for (size_t i = 0; i < argc; i++)
		r->argv[i] = sw_str_of(argv[i]);
	r->record = (sw_record){.id = sw_str_of(o->id ? o->id : r->id),
	                        .device = sw_str_of(o->device),
	                        .runtime = sw_str_of(o->runtime),
	                        .session = sw_str_of(o->session),
	                        .actor = sw_str_of(o->actor),
	                        .argv = r->argv,
	                        .argc = argc,
	                        .cwd = sw_str_of(o->cwd),
	                        .backend = sw_str_of(level->backend),
	                        .mode = o->f.facts.mode,
	                        .network = o->f.facts.network,
	                        .requested = sw_str_of(o->requested),
	                        .minimum = sw_str_of(o->minimum)};
	set_labels(r, o);
	sha256_init(&r->digest);
	r->keep = o->keep_output > 0;
	r->record.keep_output = o->keep_output;
	sw_buf_init(&r->kept, KEEP_BUFFER_MAX);
	r->server = o->server;
	r->network_said = o->f.facts.network;
	if (r->server) {
		*out = r;
		return 0;
	}
	char *path = cli_db_path(o->db);
	sw_store_options how = {.busy_ms = patience_ms(o)};
	int rc =
	    path ? sw_store_open(&r->store, path, SW_STORE_WRITE, &how, err) : cli_no_db_path(err);
	free(path);
	if (rc) {
		run_cli_record_free(r);
		return rc;
	}
	*out = r;
	return 0;
}

const char *run_cli_record_id(const run_cli_record *r)
{
	return r ? r->id : NULL;
}

static void set_level(run_cli_record *r, const run_cli_level *level)
{
	r->record.has_level = true;
	if (r->record.network == SW_NETWORK_UNKNOWN)
		r->record.network = level->derived.network;
	r->record.effective = sw_str_of(level->effective);
	r->record.granted = level->in.granted;
	r->record.level = level->outcome;
	r->record.reason_class = level->in.reason;
	r->record.reason = sw_str_of(level->reason);
}

/* Into the file, or to the service. */
static int write_record(run_cli_record *r, sw_store_op_kind kind, const run_cli_level *level,
                        sw_error *err)
{
	static int (*const calls[])(sw_store *, const sw_record *, sw_receipt *,
	                            sw_error *) = {sw_store_begin, sw_store_end, sw_store_complete};
	sw_receipt receipt;
	if (!r->server)
		return calls[kind](r->store, &r->record, &receipt, err);
	/* the same as at the begin stays as it is; only a notice in the output changes it */
	const uint32_t effective = level->outcome.effective;
	r->record.has_level = kind != SW_STORE_END || effective != r->effective_at_begin;
	r->effective_at_begin = effective;
	/* what the argv does about the network is no grant of the caller's */
	sw_record sent = r->record;
	sent.network = r->network_said;
	return run_server_post(r->server, kind, &sent, err);
}

int run_cli_record_begin(run_cli_record *r, const run_cli_level *level, sw_error *err)
{
	set_level(r, level);
	r->record.started_ns = sw_now_ns();
	int rc = write_record(r, SW_STORE_BEGIN, level, err);
	r->begun = rc == 0;
	return rc;
}

void run_cli_record_output(run_cli_record *r, const void *bytes, size_t n)
{
	sha256_update(&r->digest, n, bytes);
	if (r->keep && !r->overflow && sw_buf_add(&r->kept, bytes, n))
		r->overflow = true;
}

int run_cli_record_end(run_cli_record *r, const run_cli_level *level, const sw_run_report *report,
                       const sw_result *result, sw_error *err)
{
	json_t *detail = sw_outcome_detail(result);
	set_level(r, level);
	sw_outcome_of_result(&r->record.outcome, result);
	r->record.outcome.detail = detail;
	r->record.outcome.has_exit = true;
	r->record.outcome.output_size = report->output_bytes;
	sha256_digest(&r->digest, 32, r->record.outcome.output_digest);
	r->record.outcome.has_output_digest = true;
	if (r->keep && r->overflow) {
		char text[160];
		int n = snprintf(text, sizeof text,
		                 "sandwitness: run: the output is over %u bytes: only its size and "
		                 "digest are recorded\n",
		                 KEEP_BUFFER_MAX);
		run_cli_write(STDERR_FILENO, text, (size_t)n, RUN_SAY_NS);
	} else if (r->keep) {
		r->record.output = (sw_str){r->kept.ptr ? r->kept.ptr : "", r->kept.len};
	}
	r->record.ended_ns = report->ended_ns;
	int rc = write_record(r, r->begun ? SW_STORE_END : SW_STORE_COMPLETE, level, err);
	r->record.outcome.detail = NULL;
	json_decref(detail);
	return rc;
}

int run_cli_record_refused(run_cli_record *r, const run_cli_level *level, const char *cause,
                           const char *why, sw_error *err)
{
	set_level(r, level);
	if (!r->record.reason.len)
		r->record.reason = sw_str_of(why);
	r->record.outcome =
	    (sw_outcome){.verdict = SW_RECORD_SANDBOX_UNAVAILABLE, .cause = sw_str_of(cause)};
	r->record.outcome.started = SW_STARTED_NO;
	return write_record(r, SW_STORE_COMPLETE, level, err);
}

void run_cli_record_free(run_cli_record *r)
{
	if (!r)
		return;
	sw_store_close(r->store);
	sw_buf_free(&r->kept);
	free(r->argv);
	free(r);
}

#else

static int absent(sw_error *err)
{
	sw_error_set(err, SW_EUNSUPPORTED, "this build has no audit trail");
	return sw_error_more(err, NULL, NULL, "build with store/, or say --audit=off");
}

int run_cli_record_new(run_cli_record **out, const run_cli_options *o, const run_cli_level *level,
                       char *const *argv, size_t argc, sw_error *err)
{
	(void)out, (void)o, (void)level, (void)argv, (void)argc;
	return absent(err);
}

const char *run_cli_record_id(const run_cli_record *r)
{
	(void)r;
	return NULL;
}

int run_cli_record_begin(run_cli_record *r, const run_cli_level *level, sw_error *err)
{
	(void)r, (void)level;
	return absent(err);
}

void run_cli_record_output(run_cli_record *r, const void *bytes, size_t n)
{
	(void)r, (void)bytes, (void)n;
}

int run_cli_record_end(run_cli_record *r, const run_cli_level *level, const sw_run_report *report,
                       const sw_result *result, sw_error *err)
{
	(void)r, (void)level, (void)report, (void)result;
	return absent(err);
}

int run_cli_record_refused(run_cli_record *r, const run_cli_level *level, const char *cause,
                           const char *why, sw_error *err)
{
	(void)r, (void)level, (void)cause, (void)why;
	return absent(err);
}

void run_cli_record_free(run_cli_record *r)
{
	(void)r;
}

#endif
