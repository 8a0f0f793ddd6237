/* status.c - status: looks at call time, probes where asked. */
#include "probe_int.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "landlock.h"

const char *sw_step_result_name(sw_step_result r)
{
	static const char *const names[] = {"ok", "failed", "skipped", "unknown"};
	return (unsigned)r < SW_STEP_COUNT ? names[r] : NULL;
}

static int call_begin(pr_call *c, const sw_probe_options *opts, bool *no_memory, sw_error *err)
{
	*c = (pr_call){.opts = opts, .no_memory = no_memory};
	c->deadline_ms = opts->deadline_ms > 0 ? opts->deadline_ms : SW_PROBE_DEADLINE_MS;
	c->packs = opts->packs ? opts->packs : sw_builtin_packs();
	pr_os_release(NULL, c->os_id, sizeof(c->os_id), c->os_like, sizeof(c->os_like));
	return sw_confine_host_read(&c->host, err);
}

static void look(const pr_call *c, const pr_backend *from, sw_backend_status *b)
{
	*b = (sw_backend_status){.id = from->id, .here = from->here, .result = SW_PROBE_NOT_PROBED};
	if (!from->here)
		return;
	if (!from->program) {
		b->found = sw_landlock_abi() > 0;
		return;
	}
	b->path = pr_find_program(from->program, c->opts->search_path, &b->untrusted_path,
	                          b->untrusted_why, sizeof(b->untrusted_why), c->no_memory);
	b->found = b->path != NULL;
}

static void probe(const pr_call *c, const pr_backend *from, sw_backend_status *b)
{
	if (c->opts->confined_service) {
		if (b->here)
			pr_set_cause(c, b, "service-confined");
		return;
	}
	/* Landlock that is not there has something to say; a missing program has not. */
	bool built_in = b->here && !from->program;
	if (!from->probe || !b->here || (!b->found && !built_in))
		return;
	/* Interrupted or not: what was planted is removed before this process ends. */
	sigset_t held, before;
	sigemptyset(&held);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGTERM);
	sigaddset(&held, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &held, &before);
	int64_t start = sw_monotonic_ns();
	b->at_ns = sw_now_ns();
	if (!from->program)
		snprintf(b->version, sizeof(b->version), "ABI %d",
		         sw_landlock_abi() > 0 ? sw_landlock_abi() : 0);
	else if (!strcmp(from->id, "bwrap"))
		pr_version(c, b, "--version");
	from->probe(c, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	b->duration_ms = (double)(sw_monotonic_ns() - start) / 1e6;
	if (b->result != SW_PROBE_FULL && b->result != SW_PROBE_PARTIAL)
		b->guarantees = 0;
}

static void read_backend(const pr_call *c, const pr_backend *from, sw_backend_status *b)
{
	const sw_probe_options *o = c->opts;
	bool wanted = o->probe && (!o->only || !strcmp(o->only, from->id));
	look(c, from, b);
	int noted = o->no_recheck || !b->here ? 0
	                                      : pr_recheck_pending(o->state_dir, from->id,
	                                                           b->recheck, sizeof(b->recheck));
	bool pending = noted > 0;
	if (noted < 0)
		*c->no_memory = true;
	if (*c->no_memory)
		return;
	if (!wanted && !pending)
		return;
	probe(c, from, b);
	if (*c->no_memory)
		return;
	/* a note is answered by a probe that came to a result */
	if (pending && b->result != SW_PROBE_NOT_PROBED && b->result != SW_PROBE_UNKNOWN)
		pr_recheck_clear(o->state_dir, from->id);
	if (pending && !b->found && !o->confined_service)
		pr_recheck_clear(o->state_dir, from->id);
}

static bool confines(const sw_backend_status *b)
{
	if (!b->here || !b->found)
		return false;
	if (b->result == SW_PROBE_NOT_PROBED)
		return true; /* found; whether it works was not asked */
	return b->result == SW_PROBE_FULL || b->result == SW_PROBE_PARTIAL;
}

int sw_status_read(sw_status **out, const sw_probe_options *opts, sw_error *err)
{
	pr_call c;
	if (opts->only && !pr_backend_find(opts->only)) {
		sw_error_set(err, SW_ENOTFOUND, "no backend \"%.60s\" can be probed", opts->only);
		return err ? sw_error_more(err, NULL, NULL,
		                           "bwrap, landlock, podman, docker, firejail, nsjail, "
		                           "systemd-run, runc, "
		                           "crun, gvisor, seatbelt, appcontainer")
		           : SW_ENOTFOUND;
	}
	bool no_memory = false;
	int rc = call_begin(&c, opts, &no_memory, err);
	if (rc)
		return rc;
	sw_status *s = calloc(1, sizeof(*s));
	if (s)
		s->backends = calloc(pr_backends_n, sizeof(*s->backends));
	if (!s || !s->backends) {
		free(s);
		sw_confine_host_free(&c.host);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	s->disabled_via_env = sw_sandbox_disabled(s->disabled_by, sizeof(s->disabled_by));
	pr_context(&s->context, opts->search_path);
	for (size_t i = 0; i < pr_backends_n && !no_memory; i++) {
		read_backend(&c, &pr_backends[i], &s->backends[i]);
		s->n_backends++;
	}
	const sw_backend_status *bwrap = sw_status_backend(s, "bwrap");
	s->bwrap_path = bwrap->path ? strdup(bwrap->path) : NULL;
	no_memory |= bwrap->path && !s->bwrap_path;
	s->bwrap_available = bwrap->found;
	/* the seed's word: bwrap would wrap a command now */
	s->active = !s->disabled_via_env && confines(bwrap);
	s->n_facts = pr_host_facts(&s->facts);
	sw_confine_host_free(&c.host);
	if (no_memory || !s->facts) {
		sw_status_free(s);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	*out = s;
	return SW_OK;
}

static void backend_clear(sw_backend_status *b)
{
	free(b->path);
	free(b->untrusted_path);
}

void sw_status_free(sw_status *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_backends; i++)
		backend_clear(&s->backends[i]);
	free(s->backends);
	free(s->facts);
	free(s->bwrap_path);
	free(s);
}

void sw_backend_status_free(sw_backend_status *b)
{
	if (!b)
		return;
	backend_clear(b);
	free(b);
}

const sw_backend_status *sw_status_backend(const sw_status *s, const char *id)
{
	for (size_t i = 0; i < s->n_backends; i++)
		if (!strcmp(s->backends[i].id, id))
			return &s->backends[i];
	return NULL;
}

/* ---- choosing ---- */

static void tell_tried(char *why, size_t n, const sw_backend_status *b)
{
	size_t at = strlen(why);
	const char *what = !b->found ? "not found" : sw_probe_result_name(b->result);
	snprintf(why + at, n - at, "%s%s: %s%s%s%s", at ? "; " : "", b->id, what,
	         b->cause[0] ? " (" : "", b->cause, b->cause[0] ? ")" : "");
}

int sw_probe_choose(sw_backend_status **chosen, const sw_probe_options *opts, uint32_t minimum,
                    sw_error *err)
{
	/* A container brings another userland than the caller's, so it is not a silent
	 * stand-in: it comes last, and first where the minimum asks for what Landlock lacks. */
	static const char *const order[] = {"bwrap", "seatbelt", "landlock", "podman", "docker"};
	pr_call c;
	char why[384] = "", advice[384] = "";
	bool no_memory = false;
	int rc = call_begin(&c, opts, &no_memory, err);
	if (rc)
		return rc;
	sw_backend_status *b = calloc(1, sizeof(*b));
	no_memory = !b;
	for (size_t i = 0; !no_memory && i < sizeof(order) / sizeof(*order); i++) {
		const pr_backend *from = pr_backend_find(order[i]);
		if (!from->here || (opts->only && strcmp(opts->only, order[i]) != 0))
			continue;
		look(&c, from, b);
		if (!no_memory)
			probe(&c, from, b);
		/* another one would be a weaker choice than the one that memory gives */
		no_memory |= !strcmp(b->cause, PR_NO_MEMORY);
		if (no_memory)
			break;
		bool usable = b->result == SW_PROBE_FULL || b->result == SW_PROBE_PARTIAL;
		if (usable && !(minimum & ~b->guarantees)) {
			sw_confine_host_free(&c.host);
			*chosen = b;
			return SW_OK;
		}
		if (usable) {
			char lacks[SW_GUARANTEES_TEXT_MAX];
			size_t at = strlen(why);
			sw_guarantees_text(minimum & ~b->guarantees, lacks);
			snprintf(why + at, sizeof(why) - at, "%s%s: lacks %s", at ? "; " : "",
			         b->id, lacks);
		} else {
			tell_tried(why, sizeof(why), b);
			if (!advice[0] && b->advice[0])
				snprintf(advice, sizeof(advice), "%.383s", b->advice);
		}
		backend_clear(b);
	}
	sw_confine_host_free(&c.host);
	if (no_memory) {
		char where[80];
		snprintf(where, sizeof(where), "probing %s", b && b->id ? b->id : "backends");
		sw_backend_status_free(b);
		sw_error_set(err, SW_ENOMEM, "out of memory");
		return err ? sw_error_more(err, where, NULL, NULL) : SW_ENOMEM;
	}
	free(b);
	if (!advice[0])
		sw_install_command(NULL, "bubblewrap", advice, sizeof(advice));
	sw_error_set(err, SW_ENOTFOUND, "no usable sandbox");
	return err ? sw_error_more(err, NULL, why, advice) : SW_ENOTFOUND;
}
