/* What `run` says: the verdict object with what only the supervisor knows. */
#include "run_cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static json_t *notes(const sw_run_report *report)
{
	json_t *a = json_array();
	for (size_t i = 0; i < report->n_notes; i++) {
		char text[300];
		sw_run_note_text(&report->notes[i], text, sizeof text);
		json_t *n = json_object();
		json_object_set_new(n, "note", sw_json_z(sw_run_note_name(report->notes[i].kind)));
		json_object_set_new(n, "text", sw_json_text(sw_str_of(text)));
		json_array_append_new(a, n);
	}
	return a;
}

json_t *run_cli_json(const sw_result *r, const sw_run_report *report, const run_cli_level *level,
                     const char *id)
{
	json_t *o = cli_result_json(r, id);
	json_t *run = json_object();
	char from[40], to[40];
	if (!o || !run) {
		json_decref(o);
		json_decref(run);
		return NULL;
	}
	sw_time_format(report->started_ns, from);
	sw_time_format(report->ended_ns, to);
	json_object_set_new(run, "status", json_integer(sw_run_exit_status(report)));
	json_object_set_new(run, "spawned", json_boolean(report->spawned));
	json_object_set_new(run, "timed_out", json_boolean(report->timed_out));
	json_object_set_new(run, "runner_lost", json_boolean(report->runner_lost));
	json_object_set_new(run, "started_at", json_string(from));
	json_object_set_new(run, "ended_at", json_string(to));
	json_object_set_new(run, "duration_ms", json_real((double)report->duration_ns / 1e6));
	json_object_set_new(run, "output_bytes", json_integer((json_int_t)report->output_bytes));
	json_object_set_new(run, "program",
	                    report->program.path[0] ? sw_json_text(sw_str_of(report->program.path))
	                                            : json_null());
	json_object_set_new(run, "leftovers", json_integer(report->leftovers));
	json_object_set_new(run, "survivors", json_integer(report->survivors));
	json_object_set_new(run, "notes", notes(report));
	json_object_set_new(o, "level", run_cli_level_json(level));
	json_object_set_new(o, "run", run);
	return o;
}

/* What there is to say where no verdict was reached. */
static json_t *without_result(const char *backend, const char *verdict, const char *cause,
                              sw_started started, const char *why, const run_cli_level *level,
                              const char *id)
{
	json_t *o = json_object();
	if (!o)
		return NULL;
	json_object_set_new(o, "schema", json_integer(SW_RESULT_SCHEMA));
	json_object_set_new(o, "id", sw_json_z(id));
	json_object_set_new(o, "backend", sw_json_z(backend));
	json_object_set_new(o, "exit", json_null());
	json_object_set_new(o, "verdict", sw_json_z(verdict));
	json_object_set_new(o, "cause", sw_json_z(cause));
	json_object_set_new(o, "started", json_string(sw_started_name(started)));
	json_object_set_new(o, "reason", sw_json_text(sw_str_of(why)));
	if (level)
		json_object_set_new(o, "level", run_cli_level_json(level));
	json_t *run = json_object();
	json_object_set_new(run, "status", json_integer(SW_RUN_EXIT_REFUSED));
	json_object_set_new(run, "spawned", json_boolean(started != SW_STARTED_NO));
	json_object_set_new(o, "run", run);
	return o;
}

json_t *run_cli_refusal_json(const char *backend, const char *cause, const char *why,
                             const run_cli_level *level, const char *id)
{
	return without_result(backend, "sandbox_unavailable", cause, SW_STARTED_NO, why, level, id);
}

json_t *run_cli_unjudged_json(const char *backend, const char *why, const run_cli_level *level,
                              const char *id)
{
	return without_result(backend, NULL, NULL, SW_STARTED_UNKNOWN, why, level, id);
}

/*
 * To a descriptor that is not ours alone, so it stays as it blocks: but never more at once than
 * a pipe with room takes.
 */
int run_cli_write(int fd, const char *text, size_t n, int64_t limit_ns)
{
	int64_t until = limit_ns ? sw_monotonic_ns() + limit_ns : 0;
	/* a reader that has gone is an error to report, not a reason to die */
	struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
	sigaction(SIGPIPE, &ignore, &old);
	int number = 0;
	while (n && !number) {
		struct pollfd pf = {.fd = fd, .events = POLLOUT};
		int64_t left = until ? until - sw_monotonic_ns() : -1;
		int ready = sw_poll(&pf, 1, until && left < 0 ? 0 : left);
		if (ready == 0)
			number = ETIMEDOUT;
		else if (ready < 0 && errno != EINTR)
			number = errno;
		if (ready <= 0)
			continue;
		ssize_t w = write(fd, text, n < PIPE_BUF ? n : PIPE_BUF);
		if (w >= 0) {
			text += w;
			n -= (size_t)w;
		} else if (errno != EINTR && errno != EAGAIN) {
			number = errno;
		}
	}
	sigaction(SIGPIPE, &old, NULL);
	errno = number;
	return number ? SW_EIO : 0;
}

static int file_error(sw_error *err, const char *path)
{
	sw_error_set(err, SW_EIO, "the verdict cannot be written: %s", strerror(errno));
	sw_error_more(err, path, NULL, NULL);
	return SW_EIO;
}

int run_cli_publish(const run_cli_options *o, json_t *j, sw_error *err)
{
	char *text = j ? sw_json_dump(j) : NULL;
	json_decref(j);
	if (!text)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	size_t n = strlen(text);
	char *line = realloc(text, n + 2);
	if (!line) {
		free(text);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	line[n++] = '\n';
	line[n] = '\0';
	int rc = 0;
	int64_t limit = o->deadline_ns > 0 ? RUN_VERDICT_NS : 0;
	if (o->json && (rc = run_cli_write(STDOUT_FILENO, line, n, limit)))
		file_error(err, "stdout");
	if (!rc && o->verdict_fd >= 0 && (rc = run_cli_write(o->verdict_fd, line, n, limit)))
		file_error(err, "--verdict-fd");
	if (!rc && o->verdict_file) {
		struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
		sigaction(SIGPIPE, &ignore, &old);
		rc = run_place_write(&o->place, line, n, err);
		sigaction(SIGPIPE, &old, NULL);
	}
	free(line);
	return rc;
}
