/* judge.c - from what a probe's child did to a result, with cause and advice. */
#include "probe_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "signatures.h"

void pr_first_line(const pb_outcome *o, char *out, size_t n)
{
	const char *p = o->out ? o->out : "", *end = p + o->n;
	while (p < end && (*p == '\n' || *p == '\r'))
		p++;
	const char *nl = memchr(p, '\n', (size_t)(end - p));
	size_t len = (size_t)((nl ? nl : end) - p);
	if (len && p[len - 1] == '\r')
		len--;
	if (len > n - 1)
		len = n - 1;
	for (size_t i = 0; i < len; i++)
		out[i] = p[i] ? p[i] : ' ';
	out[len] = '\0';
}

/* How well a remedy fits this system; 0: it does not. */
static int remedy_fit(const sw_remedy *r, const pr_call *c)
{
	const char *of = r->for_whom;
	if (!of || !strcasecmp(of, "all"))
		return 2;
	/* no service manager, no systemctl */
	if (strcasestr(of, "systemd") && access("/run/systemd/system", F_OK))
		return 0;
	if (c->os_id[0] && strcasestr(of, c->os_id))
		return 5;
	for (const char *p = c->os_like; *p;) {
		char word[64];
		size_t n = strcspn(p, " ");
		snprintf(word, sizeof(word), "%.*s", n < 60 ? (int)n : 60, p);
		if (word[0] && strcasestr(of, word))
			return 4;
		p += n + (p[n] == ' ');
	}
	return strcasestr(of, "linux") ? 3 : 0;
}

static const sw_remedy *remedy_for(const sw_cause *cause, const pr_call *c)
{
	const sw_remedy *best = cause->n_remedies ? &cause->remedies[0] : NULL;
	int fit = 0;
	for (uint16_t i = 0; i < cause->n_remedies; i++) {
		int f = remedy_fit(&cause->remedies[i], c);
		if (f > fit) {
			fit = f;
			best = &cause->remedies[i];
		}
	}
	return best;
}

void pr_set_cause(const pr_call *c, sw_backend_status *b, const char *cause)
{
	const sw_cause *known = sw_cause_find(cause);
	const sw_remedy *r = known ? remedy_for(known, c) : NULL;
	snprintf(b->cause, sizeof(b->cause), "%s", cause);
	snprintf(b->advice, sizeof(b->advice), "%s", r ? r->what : "");
}

static void set_line(sw_backend_status *b, const sw_result *r)
{
	size_t n = r->hit.line.len < sizeof(b->line) - 1 ? r->hit.line.len : sizeof(b->line) - 1;
	for (size_t i = 0; i < n; i++)
		b->line[i] = r->hit.line.ptr[i] ? r->hit.line.ptr[i] : ' ';
	b->line[n] = '\0';
}

void pr_blame(const pr_call *c, sw_backend_status *b, const pb_outcome *o)
{
	sw_pack *pack = NULL;
	sw_result *r = NULL;
	const char *cause = "unknown";
	pr_first_line(o, b->line, sizeof(b->line));
	int rc = sw_pack_new(&pack, c->packs, b->id, NULL);
	if (!rc)
		rc = sw_classify(pack, NULL, pb_exit(o), SW_STARTED_UNKNOWN, SW_SOURCE_NONE, o->out,
		                 o->n, &r, NULL);
	if (rc == SW_ENOMEM)
		*c->no_memory = true;
	if (!rc) {
		if (r->verdict == SW_VERDICT_RUNNER_FAILED && r->cause)
			cause = r->cause;
		if (r->verdict == SW_VERDICT_RUNNER_FAILED && r->has_hit && r->hit.line.len)
			set_line(b, r);
	}
	pr_set_cause(c, b, cause);
	/* a runner that got no memory has not shown that it does not work */
	if (!strcmp(cause, PR_NO_MEMORY))
		b->result = SW_PROBE_UNKNOWN;
	sw_result_free(r);
	sw_pack_free(pack);
}

bool pr_planted(const pr_call *c, sw_backend_status *b, pf_proof *p)
{
	sw_error e;
	int rc = pf_plant(p, c->host.home, &e);
	if (!rc)
		return true;
	if (rc == SW_ENOMEM)
		*c->no_memory = true;
	b->result = SW_PROBE_UNKNOWN;
	pf_step(b, "prepare", SW_STEP_FAILED, "%.120s: %.100s", e.where, e.what);
	pr_set_cause(c, b, "probe-no-place");
	return false;
}

static void blame_unconfined(const pr_call *c, sw_backend_status *b, const pf_verdict *v)
{
	b->result = SW_PROBE_UNUSABLE;
	b->guarantees = 0;
	b->line[0] = '\0';
	pr_set_cause(c, b, "probe-not-confined");
	if (v->escaped)
		snprintf(b->line, sizeof(b->line),
		         "the forbidden write succeeded: %s does not confine",
		         b->path ? b->path : b->id);
	else
		snprintf(b->line, sizeof(b->line),
		         "the planted private file could be read through %s",
		         b->path ? b->path : b->id);
}

/* Containers have four named steps; the last is the marker that must come back. */
static const char *run_step(const sw_backend_status *b)
{
	return !strcmp(b->id, "docker") || !strcmp(b->id, "podman") ? "marker" : "start";
}

void pr_conclude(const pr_call *c, sw_backend_status *b, const pf_proof *p, const pb_outcome *o,
                 uint32_t expected, uint32_t claims, sw_probe_result ok)
{
	char line[200];
	pr_first_line(o, line, sizeof(line));
	if (!o->spawned) {
		b->result = SW_PROBE_UNUSABLE;
		pf_step(b, run_step(b), SW_STEP_FAILED, "cannot be started: %s",
		        strerror(o->spawn_errno));
		pr_set_cause(c, b, o->spawn_errno == ENOENT ? "runner-missing" : "exec-failed");
		return;
	}
	if (o->timed_out) {
		/* Killed at the deadline: neither works nor does not. But an escape is an escape.
		 */
		pf_verdict v = pf_judge(p, o->out, o->n, 0, &(sw_backend_status){0});
		b->result = SW_PROBE_UNKNOWN;
		pf_step(b, run_step(b), SW_STEP_UNKNOWN, "no end within %d ms: ended by the probe",
		        c->deadline_ms);
		pr_set_cause(c, b, "probe-timeout");
		if (v.escaped || v.leaked)
			blame_unconfined(c, b, &v);
		return;
	}
	/* What the files say comes before how the runner ended. */
	sw_backend_status seen = {0};
	pf_verdict v = pf_judge(p, o->out, o->n, expected, &seen);
	bool ran = v.finished && v.permitted && o->code == 0;
	if (!ran && !v.escaped && !v.leaked) {
		b->result = SW_PROBE_UNUSABLE;
		if (o->code == 0) {
			pf_step(b, run_step(b), SW_STEP_FAILED,
			        "exited 0, but the command did not run%s%s", line[0] ? ": " : "",
			        line);
			pr_first_line(o, b->line, sizeof(b->line));
			pr_set_cause(c, b, "probe-no-command");
		} else {
			if (o->signal)
				pf_step(b, run_step(b), SW_STEP_FAILED, "signal %d%s%s", o->signal,
				        line[0] ? ": " : "", line);
			else
				pf_step(b, run_step(b), SW_STEP_FAILED, "exit %d%s%s", o->code,
				        line[0] ? ": " : "", line);
			pr_blame(c, b, o);
		}
		return;
	}
	pf_step(b, run_step(b), SW_STEP_OK, "the command ran");
	for (size_t i = 0; i < seen.n_steps; i++)
		pf_step(b, seen.steps[i].name, seen.steps[i].result, "%s", seen.steps[i].detail);
	if (v.escaped || v.leaked) {
		blame_unconfined(c, b, &v);
		return;
	}
	/* Proved by steps, plus what follows from the options alone (the tree, limits). */
	uint32_t by_options = claims & ~expected;
	b->guarantees = ((v.proved & expected) | by_options) & ~v.refuted;
	b->result = expected & v.refuted ? SW_PROBE_PARTIAL : ok;
	if (expected & v.refuted)
		pr_set_cause(c, b, "probe-not-confined");
}

/* ---- spawning ---- */

void pr_spawn(const pr_call *c, const pf_proof *p, char *const *argv, int (*child)(int, char **),
              pb_outcome *o)
{
	char vars[32][600];
	char *envp[33];
	size_t n = 0;
	if (p)
		snprintf(vars[n++], sizeof(vars[0]), PF_CANARY "=%s", p->canary);
	for (size_t i = 0; sw_confine_client_names[i] && n < 31; i++) {
		const char *name = sw_confine_client_names[i], *value = getenv(name);
		if (!strcmp(name, "PATH"))
			value = SW_CONFINE_PATH;
		if (value && strlen(value) < 500)
			snprintf(vars[n++], sizeof(vars[0]), "%s=%s", name, value);
	}
	/* the runner's own messages in English: the packs know those */
	snprintf(vars[n++], sizeof(vars[0]), "LC_ALL=C.UTF-8");
	for (size_t i = 0; i < n; i++)
		envp[i] = vars[i];
	envp[n] = NULL;
	pb_command cmd = {.argv = argv,
	                  .envp = envp,
	                  .cwd = p ? p->workspace : "/",
	                  .deadline_ms = c->deadline_ms,
	                  .child = child};
	pb_run(&cmd, o);
	if (o->spawn_errno == ENOMEM)
		*c->no_memory = true;
}

void pr_version(const pr_call *c, sw_backend_status *b, const char *option)
{
	pb_outcome o;
	char line[200];
	char *argv[] = {b->path, (char *)option, NULL};
	pr_spawn(c, NULL, argv, NULL, &o);
	pr_first_line(&o, line, sizeof(line));
	if (o.spawned && !o.timed_out && o.code == 0) {
		const char *p = line;
		while (*p &&
		       !((*p >= '0' && *p <= '9') && (p == line || p[-1] == ' ' || p[-1] == 'v')))
			p++;
		snprintf(b->version, sizeof(b->version), "%.*s", (int)strcspn(p, " ,()"), p);
	}
	pb_outcome_free(&o);
}
