/*
 * record_level.c - levels of a JSON record: the words of three runtimes and our own.
 */
#include <string.h>

#include "record_int.h"

static int parse(const json_t *v, const char *field, uint32_t *out, bool *has, sw_str *name,
                 sw_error *err)
{
	const sw_level_def *def = NULL;
	if (!v || json_is_null(v))
		return 0;
	sw_str s = rj_text(v);
	if (!s.len)
		return rj_fail(err, field, "a level's name is expected", NULL);
	int code = sw_level_parse(sw_builtin_levels(), s, out, &def, err);
	if (code != 0) {
		sw_error_more(err, field, NULL, NULL);
		return code;
	}
	*has = true;
	*name = def ? sw_str_of(def->id) : s;
	return 0;
}

static int granted(sw_record_parsed *p, const json_t *list, sw_error *err)
{
	size_t i;
	json_t *v;
	json_array_foreach((json_t *)list, i, v)
	{
		sw_guarantee g;
		sw_str s = rj_text(v);
		if (sw_guarantee_parse(s.ptr, s.len, &g) != 0)
			return rj_fail(err, "granted", "not a guarantee",
			               "fs_write, fs_read, network, ...");
		p->level.granted |= 1u << g;
	}
	if (p->r.network == SW_NETWORK_ALLOWED)
		p->level.granted |= SW_G(NETWORK);
	return 0;
}

/* What a paired device tries first where nothing else is said. */
static const struct {
	const char *platform, *level;
} defaults[] = {{"windows", "appcontainer"}, {"linux", "bwrap"}};

/*
 * "sandbox" and "sandbox_downgrade_reason" say what was applied and why that is less,
 * but not less than what: without "requested" it is the platform's default.
 */
static void default_request(sw_record_parsed *p)
{
	if (p->level.has_requested || !json_object_get(p->object, "sandbox_downgrade_reason"))
		return;
	for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
		size_t n = strlen(defaults[i].platform);
		if (p->r.platform.len >= n &&
		    strncasecmp(p->r.platform.ptr, defaults[i].platform, n) == 0) {
			p->level.has_requested = true;
			p->r.requested = sw_str_of(defaults[i].level);
			sw_level_parse(sw_builtin_levels(), p->r.requested, &p->level.requested,
			               NULL, NULL);
			return;
		}
	}
}

static bool derive(sw_record_parsed *p)
{
	char *argv[256];
	char store[16384];
	size_t used = 0, n = 0;
	const sw_record *r = &p->r;
	if (r->argc < 2 || r->argc > 255)
		return false;
	for (; n < r->argc; n++) {
		if (memchr(r->argv[n].ptr, 0, r->argv[n].len) ||
		    used + r->argv[n].len + 1 > sizeof store)
			return false;
		argv[n] = memcpy(store + used, r->argv[n].ptr, r->argv[n].len);
		argv[n][r->argv[n].len] = 0;
		used += r->argv[n].len + 1;
	}
	char backend[64], cwd[4096];
	const char *roots[RJ_ROOTS_MAX];
	char root_text[RJ_ROOTS_MAX][512];
	size_t n_roots = 0;
	snprintf(backend, sizeof backend, "%.*s", (int)r->backend.len, r->backend.ptr);
	snprintf(cwd, sizeof cwd, "%.*s", (int)r->cwd.len, r->cwd.len ? r->cwd.ptr : "");
	for (size_t i = 0; i < p->facts.n_writable_roots && p->roots[i].len < 512; i++) {
		snprintf(root_text[i], 512, "%.*s", (int)p->roots[i].len, p->roots[i].ptr);
		roots[n_roots++] = root_text[i];
	}
	sw_derive_options o = {.backend = backend,
	                       .cwd = *cwd ? cwd : NULL,
	                       .writable = n_roots ? roots : NULL,
	                       .n_writable = n_roots,
	                       .uid = SW_DERIVE_UID_UNKNOWN};
	sw_derive(&p->derived, argv, n, &o);
	p->has_derived = true;
	return p->derived.basis == SW_BASIS_DERIVED;
}

/* full / partial / none, where no level is named. */
static bool from_enforcement(sw_record_parsed *p)
{
	char partial[80];
	const sw_level_def *d;
	uint32_t full = p->level.has_requested ? p->level.requested : 0;
	if (!p->level.has_requested &&
	    (d = sw_level_find(sw_builtin_levels(), p->r.backend)) != NULL)
		full = d->guarantees;
	switch (p->facts.enforcement) {
	case SW_ENFORCEMENT_NONE:
		p->level.effective = 0;
		return true;
	case SW_ENFORCEMENT_FULL:
		p->level.effective = full;
		return full != 0;
	case SW_ENFORCEMENT_PARTIAL:
		snprintf(partial, sizeof partial, "%.*s_partial", (int)p->r.backend.len,
		         p->r.backend.ptr);
		d = sw_level_find(sw_builtin_levels(), sw_str_of(partial));
		if (d)
			p->level.effective = full ? full & d->guarantees : d->guarantees;
		return d != NULL;
	default:
		return false;
	}
}

static int effective(sw_record_parsed *p, sw_error *err)
{
	const json_t *o = p->object;
	const json_t *v = json_object_get(o, "effective");
	const char *field = "effective";
	bool has = false;
	if (!v || json_is_null(v)) {
		v = json_object_get(o, "sandbox");
		field = "sandbox";
	}
	int code = parse(v, field, &p->level.effective, &has, &p->said_effective, err);
	if (code != 0)
		return code;
	if (has) {
		p->level.basis = SW_BASIS_DECLARED;
	} else if (p->r.mode == SW_MODE_DANGER_FULL_ACCESS ||
	           (p->r.backend.len == 4 && memcmp(p->r.backend.ptr, "none", 4) == 0)) {
		/* Confinement was off: nothing held, and that is known. */
		p->level.effective = 0;
		p->level.basis = SW_BASIS_DECLARED;
	} else if (derive(p)) {
		p->level.effective = p->derived.guarantees;
		p->level.basis = SW_BASIS_DERIVED;
	} else if (from_enforcement(p)) {
		p->level.basis = SW_BASIS_DECLARED;
	} else {
		p->level.basis = SW_BASIS_UNKNOWN;
	}
	return 0;
}

static int reason(sw_record_parsed *p, sw_error *err)
{
	const json_t *o = p->object;
	p->said_reason = rj_text(json_object_get(o, "reason"));
	if (!p->said_reason.len)
		p->said_reason = rj_text(json_object_get(o, "sandbox_downgrade_reason"));
	p->level.reason = p->said_reason.len ? SW_REASON_EXPLAINED : SW_REASON_NONE;
	const json_t *class = json_object_get(o, "reason_class");
	if (json_is_true(json_object_get(o, "exempt")))
		p->level.reason = SW_REASON_EXEMPT;
	for (int i = 0; json_is_string(class) && i <= SW_REASON_COUNT; i++) {
		if (i == SW_REASON_COUNT)
			return rj_fail(err, "reason_class", "none, explained or exempt", NULL);
		if (strcmp(sw_reason_class_name((sw_reason_class)i), json_string_value(class)) ==
		    0) {
			p->level.reason = (sw_reason_class)i;
			break;
		}
	}
	if (p->level.reason == SW_REASON_EXEMPT && !p->said_reason.len)
		return rj_fail(err, "reason", "an exemption says by what rule", "give \"reason\"");
	return 0;
}

int rj_levels(sw_record_parsed *p, sw_error *err)
{
	const json_t *o = p->object;
	int code = parse(json_object_get(o, "requested"), "requested", &p->level.requested,
	                 &p->level.has_requested, &p->r.requested, err);
	if (code == 0)
		code = parse(json_object_get(o, "minimum"), "minimum", &p->level.minimum,
		             &p->level.has_minimum, &p->r.minimum, err);
	if (code == 0)
		code = granted(p, json_object_get(o, "granted"), err);
	if (code == 0)
		code = reason(p, err);
	if (code != 0)
		return code;
	default_request(p);
	code = effective(p, err);
	static const char *const says[] = {"effective", "sandbox",     "requested",
	                                   "minimum",   "enforcement", "mode",
	                                   "network",   "granted",     "reason"};
	p->r.has_level = p->kind != SW_STORE_END;
	for (size_t i = 0; i < sizeof says / sizeof *says; i++)
		p->r.has_level |= json_object_get(o, says[i]) != NULL;
	return code;
}

void rj_levels_after(sw_record_parsed *p)
{
	sw_level_input *in = &p->level;
	sw_record *r = &p->r;
	if (p->result)
		in->lowered = p->result->lowers;
	in->not_run =
	    p->kind != SW_STORE_BEGIN &&
	    (r->outcome.verdict == SW_RECORD_SANDBOX_UNAVAILABLE ||
	     (r->outcome.verdict == SW_RECORD_RUNNER_FAILED && r->outcome.stage != SW_STAGE_LOST));
	if (in->lowered && in->reason == SW_REASON_NONE && p->result && p->result->n_downgrades) {
		in->reason = SW_REASON_EXPLAINED; /* the runner itself said why */
		p->said_reason = p->result->downgrades[0].line;
	}
	r->level = sw_level_compare(in);
	r->granted = in->granted;
	r->reason_class = in->reason;
	r->reason = p->said_reason;
	if (r->level.lost && !r->reason.len && p->has_derived) {
		if (p->derived.basis == SW_BASIS_DERIVED)
			sw_derived_reason(&p->derived, r->level.lost, p->why, sizeof p->why);
		else
			snprintf(p->why, sizeof p->why, "%s", p->derived.unknown_why);
		r->reason = sw_str_of(p->why);
	}
	const sw_level_def *d =
	    p->said_effective.len ? sw_level_find(sw_builtin_levels(), p->said_effective) : NULL;
	if (!r->level.known)
		r->effective = sw_str_of("unknown");
	else if (d && d->guarantees == r->level.effective)
		r->effective = sw_str_of(d->id);
	else {
		/* what was granted on purpose does not change the name */
		uint32_t named = r->level.effective | (r->level.isolated ? r->granted : 0);
		snprintf(p->effective, sizeof p->effective, "%s",
		         sw_level_name(sw_builtin_levels(), r->backend, named));
		r->effective = sw_str_of(p->effective);
	}
}
