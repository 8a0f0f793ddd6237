/* What an invocation was to have, what its argv gives, and what is lost. */
#include "run_host.h"

#include <stdlib.h>
#include <string.h>

static int parse_level(const char *word, const char *option, uint32_t *out, bool *has,
                       sw_error *err)
{
	if (!word)
		return 0;
	*has = true;
	int rc = sw_level_parse(sw_builtin_levels(), sw_str_of(word), out, NULL, err);
	if (rc)
		sw_error_more(err, option, NULL, NULL);
	return rc;
}

static void compare(run_cli_level *v)
{
	v->outcome = sw_level_compare(&v->in);
	/* what was granted on purpose does not change the name */
	uint32_t named = v->outcome.effective | (v->outcome.isolated ? v->in.granted : 0);
	snprintf(v->effective, sizeof v->effective, "%s",
	         v->outcome.known ? sw_level_name(sw_builtin_levels(), sw_str_of(v->backend), named)
	                          : "unknown");
}

/* What the argv gives, here and now. SW_ENOMEM: it is not known, which is not "nothing". */
static int derive(sw_derived *out, const run_cli_options *o, char *const *argv, size_t argc,
                  const char *const *writable, size_t n)
{
	run_host *h = calloc(1, sizeof *h);
	if (!h)
		return SW_ENOMEM;
	run_host_look(h, o, argv);
	h->d.writable = writable;
	h->d.n_writable = n;
	sw_derive(out, argv, argc, &h->d);
	bool no_memory = h->no_memory || (out->basis == SW_BASIS_UNKNOWN &&
	                                  !strcmp(out->unknown_why, "out of memory"));
	run_host_doubt(h, o, argv, out);
	run_host_free(h);
	free(h);
	if (!no_memory)
		return 0;
	sw_derived_clear(out);
	return SW_ENOMEM;
}

/*
 * What our own argv promises holds only as far as it does when it is read like anybody's: with
 * this host's homes, sockets and descriptors. The reason for less goes to `why`.
 */
static int read_back(uint32_t *guarantees, const run_cli_options *o, const sw_confined *c,
                     char *why, size_t n)
{
	const char *roots[2 * SW_DERIVE_PATHS_MAX];
	size_t n_roots = 0;
	sw_derived d;
	for (size_t i = 0; i < c->n_writable_roots && n_roots < 2 * SW_DERIVE_PATHS_MAX; i++)
		roots[n_roots++] = c->writable_roots[i];
	if (!n_roots) /* stated: none */
		roots[n_roots++] = "/nonexistent/none";
	if (!strcmp(c->backend, "seatbelt")) /* whose profile is not read */
		return 0;
	if (derive(&d, o, c->argv, c->argc, roots, n_roots))
		return SW_ENOMEM;
	const sw_level_def *full = sw_level_find(sw_builtin_levels(), sw_str_of(c->level));
	uint32_t less = (full ? full->guarantees : *guarantees) & ~c->granted & ~d.guarantees;
	*guarantees &= d.guarantees;
	if (less)
		sw_derived_reason(&d, less, why, n);
	sw_derived_clear(&d);
	return 0;
}

int run_cli_level_init(run_cli_level *v, const run_cli_options *o, char *const *argv, size_t argc,
                       const char *backend, sw_error *err)
{
	memset(v, 0, sizeof *v);
	v->backend = backend;
	int rc =
	    parse_level(o->requested, "--requested", &v->in.requested, &v->in.has_requested, err);
	if (!rc)
		rc = parse_level(o->minimum, "--minimum", &v->in.minimum, &v->in.has_minimum, err);
	if (rc)
		return rc;
	const char *writable[RUN_PATHS_MAX];
	size_t n = o->f.facts.n_writable_roots;
	if (n > RUN_PATHS_MAX)
		n = RUN_PATHS_MAX;
	for (size_t i = 0; i < n; i++)
		writable[i] = o->f.facts.writable_roots[i].ptr;
	if (derive(&v->derived, o, argv, argc, n ? writable : NULL, n))
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	v->in.basis = v->derived.basis;
	v->in.effective = v->derived.guarantees;
	if (o->f.facts.network == SW_NETWORK_ALLOWED)
		v->in.granted |= SW_G(NETWORK);
	if (o->reason)
		v->in.reason = o->exempt ? SW_REASON_EXEMPT : SW_REASON_EXPLAINED;
	compare(v);
	if (o->reason)
		snprintf(v->reason, sizeof v->reason, "%s", o->reason);
	else if (v->derived.basis == SW_BASIS_UNKNOWN)
		snprintf(v->reason, sizeof v->reason, "%s", v->derived.unknown_why);
	return 0;
}

/*
 * The requested level of a sandbox that we build is that of the best one, unless told:
 * a fallback to a weaker backend is a downgrade, not a quiet choice.
 */
int run_cli_level_built(run_cli_level *v, run_cli_options *o, const run_cli_sandbox *b,
                        sw_error *err)
{
	memset(v, 0, sizeof *v);
	v->built = true;
	v->backend = b->confined ? b->confined->backend : "none";
	v->derived.backend = v->backend;
	const char *wanted = o->requested;
	bool off = o->policy.policy.mode == SW_MODE_DANGER_FULL_ACCESS;
	if (!wanted && !off)
		o->requested = wanted = o->backend ? o->backend : "bwrap";
	int rc = parse_level(wanted, "--requested", &v->in.requested, &v->in.has_requested, err);
	if (!rc)
		rc = parse_level(o->minimum, "--minimum", &v->in.minimum, &v->in.has_minimum, err);
	if (rc)
		return rc;
	v->in.basis = SW_BASIS_BUILT;
	v->in.effective = (b->confined ? b->confined->guarantees : 0) | SW_G(TREE_KILL);
	char less[512] = "";
	if (b->confined && read_back(&v->in.effective, o, b->confined, less, sizeof less))
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	v->in.granted = b->confined ? b->confined->granted : 0;
	v->derived.network = b->confined ? b->confined->network : SW_NETWORK_ALLOWED;
	if (o->reason)
		v->in.reason = o->exempt ? SW_REASON_EXEMPT : SW_REASON_EXPLAINED;
	if (o->reason)
		snprintf(v->reason, sizeof v->reason, "%s", o->reason);
	compare(v);
	if (!o->reason && v->outcome.downgrade) {
		v->in.reason = SW_REASON_EXPLAINED;
		if (b->disabled[0])
			snprintf(v->reason, sizeof v->reason, "%s", b->disabled);
		else if (less[0])
			snprintf(v->reason, sizeof v->reason, "%s", less);
		else
			snprintf(v->reason, sizeof v->reason, "%s is the best usable here",
			         v->backend);
		compare(v);
	}
	sw_facts *f = &o->f.facts;
	f->mode = o->policy.policy.mode;
	f->network = v->derived.network;
	if (!b->confined)
		return 0;
	size_t n = 0, max = sizeof v->roots / sizeof v->roots[0];
	for (size_t i = 0; i < b->confined->n_writable_roots && n < max; i++)
		v->roots[n++] = sw_str_of(b->confined->writable_roots[i]);
	for (size_t i = 0; i < b->confined->n_private_roots && n < max; i++)
		v->roots[n++] = sw_str_of(b->confined->private_roots[i]);
	f->writable_roots = v->roots;
	f->n_writable_roots = n;
	f->enforcement = b->confined->enforcement;
	f->cwd = sw_str_of(b->confined->cwd);
	return 0;
}

void run_cli_level_facts(run_cli_level *v, sw_facts *facts)
{
	const sw_derived *d = &v->derived;
	if (v->built || d->basis == SW_BASIS_UNKNOWN)
		return;
	if (facts->network == SW_NETWORK_UNKNOWN)
		facts->network = d->network;
	if (!facts->cwd.len && d->cwd)
		facts->cwd = sw_str_of(d->cwd);
	if (!facts->n_writable_roots && d->writable_known) {
		for (size_t i = 0; i < d->n_writable; i++)
			v->roots[i] = sw_str_of(d->writable[i]);
		facts->writable_roots = v->roots;
		facts->n_writable_roots = d->n_writable;
	}
}

void run_cli_level_after(run_cli_level *v, const sw_result *r)
{
	v->in.lowered = r->lowers;
	v->in.not_run = r->verdict == SW_VERDICT_RUNNER_FAILED && r->stage != SW_STAGE_LOST;
	if (r->lowers && r->n_downgrades && v->in.reason == SW_REASON_NONE) {
		/* the runner itself said why */
		v->in.reason = SW_REASON_EXPLAINED;
		size_t n = r->downgrades[0].line.len;
		snprintf(v->reason, sizeof v->reason, "%.*s", n > 900 ? 900 : (int)n,
		         r->downgrades[0].line.ptr);
	}
	compare(v);
}

void run_cli_level_free(run_cli_level *v)
{
	if (!v->built)
		sw_derived_clear(&v->derived);
}

static json_t *guarantees(uint32_t bits)
{
	json_t *a = json_array();
	for (int g = 0; g < SW_GUARANTEE_COUNT; g++)
		if (bits & (1u << g))
			json_array_append_new(a, json_string(sw_guarantee_name((sw_guarantee)g)));
	return a;
}

json_t *run_cli_level_json(const run_cli_level *v)
{
	const sw_level_outcome *l = &v->outcome;
	json_t *o = json_object();
	json_object_set_new(o, "effective", json_string(v->effective));
	json_object_set_new(o, "basis", json_string(sw_basis_name(l->basis)));
	json_object_set_new(o, "guarantees", guarantees(l->effective));
	json_object_set_new(o, "requested", guarantees(l->requested));
	json_object_set_new(o, "lost", guarantees(l->lost));
	json_object_set_new(o, "downgrade", json_boolean(l->downgrade));
	json_object_set_new(o, "unexplained", json_boolean(l->unexplained));
	json_object_set_new(o, "violation", json_boolean(l->violation));
	json_object_set_new(o, "contained", json_boolean(l->contained));
	char why[1024] = "";
	if (l->lost && !v->built)
		sw_derived_reason(&v->derived, l->lost, why, sizeof why);
	json_object_set_new(o, "reason", sw_json_z(v->reason[0] ? v->reason : why[0] ? why : NULL));
	return o;
}
