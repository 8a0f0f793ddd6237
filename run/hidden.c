/* See hidden.h. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>

#include "hidden.h"
#include "ask.h"
#include "run_internal.h"

/* Wordings of "it is not there"; program: the word before is a program's name. */
static const struct {
	const char *text;
	bool program;
} wordings[] = {{"No such file or directory", false},
                {"command not found", true},
                {": not found", true},
                {"ENOENT", false}};

/* Runners that show the host's files, less some; a container's files are its own. */
static const char *const showing[] = {"bwrap",
                                      "landlock",
                                      "landlock-run",
                                      "landrun",
                                      "firejail",
                                      "nsjail",
                                      "minijail",
                                      "unshare",
                                      "setpriv",
                                      "srt",
                                      "codex-linux-sandbox",
                                      "seatbelt",
                                      "systemd-run"};

static bool shows_host(const char *backend)
{
	for (size_t i = 0; i < sizeof showing / sizeof showing[0]; i++)
		if (!strcmp(backend, showing[i]))
			return true;
	return false;
}

/* ---- collecting ---- */

static bool worded(const char *p, size_t n)
{
	for (size_t i = 0; i < sizeof wordings / sizeof wordings[0]; i++)
		if (memmem(p, n, wordings[i].text, strlen(wordings[i].text)))
			return true;
	return false;
}

static void keep_line(run_hidden *h, const char *p, size_t n)
{
	while (n && p[n - 1] == '\r')
		n--;
	if (h->n == RUN_HIDDEN_LINES || n == 0 || n >= RUN_HIDDEN_LINE_MAX || memchr(p, 0, n))
		return;
	memcpy(h->lines[h->n], p, n);
	h->lines[h->n][n] = '\0';
	for (size_t i = 0; i < h->n; i++)
		if (!strcmp(h->lines[i], h->lines[h->n]))
			return;
	h->n++;
}

static void add_tail(run_hidden *h, const char *p, size_t n)
{
	if (h->tail_len + n > sizeof h->tail) {
		h->tail_cut = true; /* no message of this kind is as long */
		return;
	}
	memcpy(h->tail + h->tail_len, p, n);
	h->tail_len += n;
}

static void end_tail(run_hidden *h)
{
	if (!h->tail_cut && worded(h->tail, h->tail_len))
		keep_line(h, h->tail, h->tail_len);
	h->tail_len = 0;
	h->tail_cut = false;
}

/* Whole lines of the piece: found by their words, so that the rest is only passed over. */
static void whole_lines(run_hidden *h, const char *p, size_t n)
{
	for (size_t i = 0; i < sizeof wordings / sizeof wordings[0]; i++) {
		const char *at = p, *end = p + n;
		while (h->n < RUN_HIDDEN_LINES &&
		       (at = memmem(at, (size_t)(end - at), wordings[i].text,
		                    strlen(wordings[i].text)))) {
			const char *from = memrchr(p, '\n', (size_t)(at - p));
			const char *to = memchr(at, '\n', (size_t)(end - at));
			from = from ? from + 1 : p;
			keep_line(h, from, (size_t)(to - from));
			at = to;
		}
	}
}

void run_hidden_output(run_hidden *h, const void *bytes, size_t n)
{
	const char *p = bytes;
	if (h->n == RUN_HIDDEN_LINES || n == 0)
		return;
	const char *first = memchr(p, '\n', n);
	if (!first) {
		add_tail(h, p, n);
		return;
	}
	add_tail(h, p, (size_t)(first - p));
	end_tail(h);
	const char *last = memrchr(p, '\n', n);
	if (last > first)
		whole_lines(h, first + 1, (size_t)(last - first));
	add_tail(h, last + 1, n - (size_t)(last + 1 - p));
}

/* ---- reading a line ---- */

static bool ends_path(char c, char quote)
{
	if (quote)
		return c == quote || c == '\0';
	return c == '\0' || c == ':' || c == ';' || c == ',' || c == ')' ||
	       isspace((unsigned char)c);
}

/* The first absolute path of the line that is not the shell's own name at its start. */
static bool path_in(const char *line, char *out, size_t n)
{
	for (const char *p = line; (p = strchr(p, '/')); p++) {
		char before = p == line ? '\0' : p[-1];
		bool quoted = before == '\'' || before == '"' || before == '`';
		if (p == line || !(quoted || isspace((unsigned char)before)))
			continue;
		char quote = before == '`' ? '\'' : quoted ? before : '\0';
		size_t len = 0;
		while (!ends_path(p[len], quote))
			len++;
		if (len < 2 || len >= n)
			continue;
		memcpy(out, p, len);
		out[len] = '\0';
		return true;
	}
	return false;
}

/* "sh: 1: tool: not found", "bash: line 1: tool: command not found" */
static bool program_in(const char *line, char *out, size_t n)
{
	for (size_t i = 0; i < sizeof wordings / sizeof wordings[0]; i++) {
		const char *at = wordings[i].program ? strstr(line, wordings[i].text) : NULL;
		if (!at)
			continue;
		const char *end = at;
		while (end > line && (end[-1] == ' ' || end[-1] == ':'))
			end--;
		const char *from = end;
		while (from > line && from[-1] != ' ' && from[-1] != ':')
			from--;
		size_t len = (size_t)(end - from);
		if (len == 0 || len >= n || memchr(from, '/', len))
			continue;
		memcpy(out, from, len);
		out[len] = '\0';
		return true;
	}
	return false;
}

/* ---- the host's answer ---- */

static bool means_something_else(const char *path)
{
	return !strncmp(path, "/proc/", 6) || !strncmp(path, "/dev/fd", 7) ||
	       !strncmp(path, "/dev/pts", 8) || !strcmp(path, "/dev/tty");
}

/* A question about a path that the output names, which may lead anywhere. */
typedef struct look {
	char path[4096];
	sw_operation operation;
	bool yes;
} look;

static bool ask(void (*answer)(void *), const char *path, sw_operation operation)
{
	look l = {.operation = operation};
	size_t n = strlen(path);
	if (n >= sizeof l.path || means_something_else(path))
		return false;
	memcpy(l.path, path, n + 1);
	return run_ask_apart(answer, &l, sizeof l) && l.yes;
}

static void there_for_us(void *arg)
{
	look *l = arg;
	struct stat st;
	l->yes = lstat(l->path, &st) == 0 &&
	         (S_ISLNK(st.st_mode) || faccessat(AT_FDCWD, l->path, R_OK, AT_EACCESS) == 0 ||
	          faccessat(AT_FDCWD, l->path, X_OK, AT_EACCESS) == 0);
}

static int tell(sw_result *r, sw_observation_kind kind, const char *line, const char *path,
                const char *cause, sw_operation operation)
{
	sw_outside o = {.kind = kind,
	                .denied = true,
	                .operation = operation,
	                .cause = cause,
	                .evidence = SW_EVIDENCE_TEXT, /* the wording came from the command */
	                .source = SW_SOURCE_NONE,
	                .line = sw_str_of(line),
	                .resource = sw_str_of(path),
	                .resource_kind = "path"};
	return sw_result_outside(r, &o);
}

static int look_at_missing(const run_hidden *h, sw_result *r)
{
	for (size_t i = 0; i < h->n; i++) {
		char path[RUN_HIDDEN_LINE_MAX], name[256];
		sw_run_program program;
		bool exec = false;
		if (path_in(h->lines[i], path, sizeof path)) {
			if (!ask(there_for_us, path, SW_OPERATION_READ))
				continue;
		} else if (program_in(h->lines[i], name, sizeof name) &&
		           sw_run_find_program(name, NULL, &program) == 0) {
			snprintf(path, sizeof path, "%.1000s", program.path);
			exec = true;
		} else {
			continue;
		}
		int rc = tell(r, SW_OBSERVATION_HIDDEN_PATH, h->lines[i], path, "hidden-by-sandbox",
		              exec ? SW_OPERATION_EXEC : SW_OPERATION_READ);
		if (rc)
			return rc;
	}
	return SW_OK;
}

/* May this user do outside what "Permission denied" refused? Unknown kinds need it all. */
static void may_outside(void *arg)
{
	look *l = arg;
	struct stat st;
	if (stat(l->path, &st)) {
		char *slash = strrchr(l->path, '/');
		bool makes = l->operation != SW_OPERATION_READ && l->operation != SW_OPERATION_EXEC;
		if (!slash || slash == l->path)
			return;
		*slash = '\0';
		l->yes = makes && faccessat(AT_FDCWD, l->path, W_OK | X_OK, AT_EACCESS) == 0;
		return;
	}
	int want = l->operation == SW_OPERATION_READ    ? R_OK
	           : l->operation == SW_OPERATION_WRITE ? W_OK
	           : l->operation == SW_OPERATION_EXEC  ? X_OK
	                                                : R_OK | W_OK;
	l->yes = faccessat(AT_FDCWD, l->path, want, AT_EACCESS) == 0;
}

static int look_at_refused(const sw_facts *facts, sw_result *r)
{
	/* telling adds to the list that is walked: only those of before are looked at */
	size_t n = r->n_observations;
	for (size_t i = 0; i < n && r->verdict == SW_VERDICT_OK; i++) {
		const sw_observation *o = &r->observations[i];
		char path[4096];
		if (o->kind != SW_OBSERVATION_DENIAL_NOT_DECIDING || !o->hit.sig ||
		    !o->hit.resource_kind || strcmp(o->hit.resource_kind, "path") != 0 ||
		    !strstr(o->hit.sig->id, "eacces") || o->hit.resource.len == 0)
			continue;
		bool relative = o->hit.resource.ptr[0] != '/';
		if (relative && (!facts || !facts->cwd.len))
			continue;
		int k = relative ? snprintf(path, sizeof path, "%.*s/%.*s", (int)facts->cwd.len,
		                            facts->cwd.ptr, (int)o->hit.resource.len,
		                            o->hit.resource.ptr)
		                 : snprintf(path, sizeof path, "%.*s", (int)o->hit.resource.len,
		                            o->hit.resource.ptr);
		if (k <= 0 || (size_t)k >= sizeof path ||
		    !ask(may_outside, path, o->hit.sig->operation))
			continue;
		char line[SW_LINE_REPORT_MAX + 1];
		snprintf(line, sizeof line, "%.*s", (int)o->hit.line.len, o->hit.line.ptr);
		int rc = tell(r, SW_OBSERVATION_DENIAL_NOT_DECIDING, line, path, o->hit.sig->cause,
		              o->hit.sig->operation);
		if (rc)
			return rc;
	}
	return SW_OK;
}

int run_hidden_look(const run_hidden *h, const sw_run_report *report, const char *command,
                    const sw_facts *facts, bool traced, sw_result *r)
{
	sw_run_program program;
	if (!shows_host(report->shape.backend) || (r->exit.has_code && r->exit.code == 0))
		return SW_OK;
	if (r->verdict == SW_VERDICT_RUNNER_FAILED) {
		/* the runner's own line: it is there, the sandbox does not show it */
		if (r->stage == SW_STAGE_EXEC && command && r->cause &&
		    !strcmp(r->cause, "exec-not-found") &&
		    sw_run_find_program(command, NULL, &program) == 0)
			r->cause = "exec-hidden";
		return SW_OK;
	}
	if (r->verdict != SW_VERDICT_OK || r->rule != 6)
		return SW_OK;
	/* a trace has seen the call itself, and asked about it */
	int rc = traced ? SW_OK : look_at_refused(facts, r);
	return rc ? rc : look_at_missing(h, r);
}
