/* What `signatures check` refuses: everything that docs/signatures.md asks of a pack. */
#include "core.h"
#include "signatures.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NEUTRAL_FILE_MAX (8u << 20)
#define COST_MAX 1000 /* stops in a MiB that one literal may cost */

typedef struct checker {
	const sw_pack_file *files;
	size_t n_files;
	const sw_cause *causes;
	size_t n_causes;
	const sw_pack_def **defs; /* of the set: files, then others */
	sw_pack_set set;
	sw_check_report *report;
	sw_pack *packs[64]; /* by backend, made on first use */
	size_t n_packs;
} checker;

static void problem(checker *c, const sw_sig_def *sig, const char *where, const char *fix,
                    const char *fmt, ...) SW_PRINTF(5, 6);

static void problem(checker *c, const sw_sig_def *sig, const char *where, const char *fix,
                    const char *fmt, ...)
{
	char what[320], full[384];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(full, sizeof(full), "%.120s%s%.250s", sig ? sig->id : "", sig ? ": " : "", what);
	sw_error e;
	sw_error_set(&e, SW_EPACK, "%s", full);
	sw_error_more(&e, sig ? sig->origin : where, NULL, fix);
	c->report->problems++;
	if (c->report->problem)
		c->report->problem(c->report->payload, &e);
}

/* What is found then may not be so: whoever tells of it asks sw_text_lacked(). */
static void no_memory(bool yes)
{
	if (yes)
		sw_text_lacks();
}

static sw_pack *pack_of(checker *c, const char *backend)
{
	for (size_t i = 0; i < c->n_packs; i++)
		if (strcmp(sw_pack_backend(c->packs[i]), backend) == 0)
			return c->packs[i];
	sw_error err;
	sw_pack *pack;
	if (c->n_packs == 64)
		return NULL;
	if (sw_pack_new(&pack, &c->set, backend, &err)) {
		no_memory(err.code == SW_ENOMEM);
		problem(c, NULL, err.where[0] ? err.where : backend, err.fix, "%s", err.what);
		return NULL;
	}
	c->packs[c->n_packs++] = pack;
	return pack;
}

/* ---- patterns ---- */

/* Length of an escape at p[0] == '\\'; \Q...\E is one. */
static size_t escape_span(const char *p)
{
	if (p[1] == 'Q') {
		const char *end = strstr(p + 2, "\\E");
		return end ? (size_t)(end - p) + 2 : strlen(p);
	}
	return p[1] ? 2 : 1;
}

static size_t class_span(const char *p)
{
	size_t i = 1;
	if (p[i] == '^')
		i++;
	if (p[i] == ']')
		i++;
	while (p[i] && p[i] != ']') {
		const char *posix = p[i] == '[' && p[i + 1] == ':' ? strstr(p + i, ":]") : NULL;
		i += p[i] == '\\' ? escape_span(p + i) : posix ? (size_t)(posix - (p + i)) + 2 : 1;
	}
	return p[i] ? i + 1 : i;
}

static bool is_named_capture(const char *p)
{
	return (strncmp(p, "(?<", 3) == 0 && p[3] != '=' && p[3] != '!') ||
	       strncmp(p, "(?P<", 4) == 0 || strncmp(p, "(?'", 3) == 0;
}

static bool catch_all_before_capture(const char *regex, bool anchored)
{
	size_t n = strlen(regex);
	bool both_ends = (anchored || regex[0] == '^') && n && regex[n - 1] == '$';
	bool catch_all = false;
	for (const char *p = regex; *p;) {
		if (*p == '\\') {
			p += escape_span(p);
		} else if (*p == '[') {
			p += class_span(p);
		} else {
			if (*p == '.' && (p[1] == '*' || p[1] == '+') && p[2] != '?')
				catch_all = true;
			if (is_named_capture(p) && catch_all && !both_ends)
				return true;
			p++;
		}
	}
	return false;
}

static void check_regex(checker *c, const sw_sig_def *sig)
{
	unsigned flags = sw_kind_regex_flags(sig->kind);
	if (catch_all_before_capture(sig->regex, flags))
		problem(c, sig, NULL, "anchor both ends, or say what stands before ([^:]*, \\S+)",
		        "a catch-all before a capture: the command can choose what is captured");
	/* {runner} stands for literal names. */
	char *z = strdup(sig->regex);
	for (char *p = z; p && (p = strstr(p, "{runner}"));)
		memcpy(p, "xrunnerx", 8);
	sw_regex_error e = {0};
	sw_regex *code = z ? sw_regex_new(z, flags, &e) : NULL;
	no_memory(!code && !e.why);
	if (!code)
		problem(c, sig, NULL, "mend the pattern; docs/signatures.md says what it may hold",
		        "the regex does not compile at byte %zu: %s", e.at,
		        e.why ? e.why : "out of memory");
	else if (sw_regex_matches_empty(code))
		problem(c, sig, NULL, "require some text", "the regex can match the empty string");
	sw_regex_free(code);
	free(z);
}

/* The scan stops at each occurrence: a common word makes every output slow. */
static void check_literals(checker *c, const sw_sig_def *sig)
{
	if (sig->kind == SW_KIND_VETO || sig->kind == SW_KIND_INFORMATIONAL)
		return;
	for (uint16_t i = 0; i < sig->n_literals; i++) {
		char folded[513];
		size_t n = strlen(sig->literals[i]);
		if (n < 4 || n > 512 || strstr(sig->literals[i], "{runner}"))
			continue;
		for (size_t k = 0; k < n; k++)
			folded[k] = (char)sw_fold((unsigned char)sig->literals[i][k]);
		uint32_t cost = sw_literal_cost(folded, (uint32_t)n);
		if (cost > COST_MAX)
			problem(c, sig, NULL,
			        "choose a longer and rarer text that every such line holds, such "
			        "as the errno's words with their colon",
			        "the literal \"%.60s\" is too common: the fast scan would stop for "
			        "it %u times in a MiB of ordinary logs",
			        sig->literals[i], cost);
	}
}

static bool extracts(const sw_sig_def *sig)
{
	return sig->regex && (strstr(sig->regex, "<path>") || strstr(sig->regex, "<host>") ||
	                      strstr(sig->regex, "<syscall>"));
}

/* ---- samples ---- */

/* Facts under which everything that can decide does. */
static sw_facts helpful_facts(const sw_sig_def *sig)
{
	static const sw_str root = {"/srv/workspace-of-the-check", 27}, everything = {"/", 1};
	sw_facts f = {.network = SW_NETWORK_DENIED, .cwd = {"/", 1}, .observe_ok = true};
	f.mode = sig->with & 1u << SW_FACT_READ_ONLY ? SW_MODE_READ_ONLY : SW_MODE_WORKSPACE_WRITE;
	f.writable_roots = &root;
	f.n_writable_roots = 1;
	f.accessible = &everything;
	f.n_accessible = 1;
	return f;
}

static int64_t exit_for(const sw_sig_def *sig, const sw_sample *s)
{
	if (s->has_exit)
		return s->exit;
	if (sig->n_only_exit)
		return sig->only_exit[0];
	for (int64_t e = 1; e < 255; e++) {
		bool excepted = false;
		for (uint16_t i = 0; i < sig->n_except_exit; i++)
			excepted |= sig->except_exit[i] == e;
		if (!excepted)
			return e;
	}
	return 1;
}

static bool kinds_agree(const sw_result *r, sw_kind k)
{
	return (k == SW_KIND_FATAL && r->verdict == SW_VERDICT_RUNNER_FAILED) ||
	       (k == SW_KIND_DENIAL && r->verdict == SW_VERDICT_SANDBOX_DENIED);
}

/* Where the result shows the signature; NULL: nowhere. */
static const sw_hit *find_hit(const sw_result *r, const sw_sig_def *sig, bool only_deciding)
{
	if (r->has_hit && r->hit.sig == sig)
		return &r->hit;
	if (r->limit_hit.sig == sig)
		return &r->limit_hit;
	for (size_t i = 0; i < r->n_downgrades; i++)
		if (r->downgrades[i].sig == sig)
			return &r->downgrades[i];
	for (size_t i = 0; i < r->n_observations && !only_deciding; i++) {
		sw_observation_kind k = r->observations[i].kind;
		/* Taken away by a veto, a gate or the position: the signature did not get its line.
		 */
		if (r->observations[i].hit.sig == sig && k != SW_OBSERVATION_DENIAL_VETOED &&
		    k != SW_OBSERVATION_FATAL_NOT_ADMITTED)
			return &r->observations[i].hit;
	}
	return NULL;
}

static const char *owner(const sw_result *r, const sw_sig_def *sig)
{
	if (r->has_hit && kinds_agree(r, sig->kind))
		return r->hit.sig->id;
	for (size_t i = 0; i < r->n_observations; i++)
		if (r->observations[i].hit.sig && r->observations[i].hit.sig->kind == sig->kind)
			return r->observations[i].hit.sig->id;
	return NULL;
}

/* A veto removes a denial and a notice a fatal: they are tested through the pack, not by a verdict.
 */
static bool takes_part(const sw_pack *pack, const sw_sig_def *sig)
{
	for (size_t i = 0; i < sw_pack_sig_count(pack); i++)
		if (sw_pack_sig(pack, i) == sig)
			return true;
	return false;
}

static bool lone_match(const sw_sig_def *sig, const sw_sample *s);

/* A fatal signature whose line a denial with `scope: any` makes its own. */
static bool fatal_and_denial(const sw_result *r, const sw_sig_def *sig, const sw_sample *s)
{
	return sig->kind == SW_KIND_FATAL && r->verdict == SW_VERDICT_SANDBOX_DENIED &&
	       r->has_hit && r->hit.sig->kind == SW_KIND_DENIAL &&
	       r->hit.sig->scope == SW_SCOPE_ANY && lone_match(sig, s);
}

static void check_sample(checker *c, const sw_pack *pack, const sw_sig_def *sig, const sw_sample *s,
                         bool near)
{
	sw_facts facts = helpful_facts(sig);
	sw_result *r;
	sw_error err;
	sw_exit e = sw_exit_code(exit_for(sig, s));
	if (sw_classify(pack, &facts, e, SW_STARTED_UNKNOWN, SW_SOURCE_NONE, s->line, s->line_len,
	                &r, &err)) {
		no_memory(err.code == SW_ENOMEM);
		problem(c, sig, NULL, NULL, "%s", err.what);
		return;
	}
	const sw_hit *hit = find_hit(r, sig, sig->kind == SW_KIND_FATAL || near);
	if (near && hit) {
		problem(c, sig, NULL, "narrow the signature, or correct the near miss",
		        "matches its near miss \"%.120s\"", s->line);
	} else if (!near && !hit && fatal_and_denial(r, sig, s)) {
		/* Both match: the line is the denial's, the fatal signature is its other half. */
	} else if (!near && !hit) {
		const char *other = owner(r, sig);
		if (other)
			problem(
			    c, sig, NULL,
			    "put the specific signature before the general one, or drop this one",
			    "its sample \"%.100s\" belongs to %s", s->line, other);
		else
			problem(c, sig, NULL, "correct the pattern, the gate or the sample",
			        "does not match its sample \"%.120s\" at exit %lld", s->line,
			        (long long)e.code);
	} else if (!near && s->resource) {
		bool same = hit->resource_kind &&
		            strcmp(hit->resource_kind, s->resource_kind) == 0 &&
		            hit->resource.len == strlen(s->resource) &&
		            memcmp(hit->resource.ptr, s->resource, hit->resource.len) == 0;
		if (!same)
			problem(c, sig, NULL, NULL, "extracts \"%.80s\" and not %s \"%.80s\"",
			        hit->resource_kind ? hit->resource.ptr : "nothing",
			        s->resource_kind, s->resource);
	}
	sw_result_free(r);
}

/* Notices and vetoes by themselves: the pattern on the line, nothing else. */
static bool lone_match(const sw_sig_def *sig, const sw_sample *s)
{
	bool whole = sig->kind == SW_KIND_INFORMATIONAL;
	bool literal = sig->n_literals == 0;
	for (uint16_t i = 0; i < sig->n_literals && !literal; i++) {
		size_t n = strlen(sig->literals[i]);
		if (whole)
			literal =
			    n == s->line_len && strncasecmp(sig->literals[i], s->line, n) == 0;
		else
			literal = strcasestr(s->line, sig->literals[i]) != NULL;
	}
	if (whole && sig->n_literals && literal)
		return true;
	if (!sig->regex || !literal)
		return sig->regex ? false : literal;
	sw_regex_error e;
	sw_regex *code = sw_regex_new(sig->regex, whole ? SW_REGEX_WHOLE : 0, &e);
	sw_regex_work *work = sw_regex_work_new();
	char *folded = malloc(s->line_len + 1);
	for (size_t i = 0; folded && i < s->line_len; i++)
		folded[i] = (char)sw_fold((unsigned char)s->line[i]);
	int rc = code && work && folded ? sw_regex_match(code, work, folded, s->line_len, NULL)
	                                : (code ? -1 : 0);
	no_memory(rc < 0 || (!code && !e.why));
	sw_regex_free(code);
	sw_regex_work_free(work);
	free(folded);
	return rc == 1;
}

static void check_lone(checker *c, const sw_sig_def *sig, const sw_sample *s, bool near)
{
	if (lone_match(sig, s) == near)
		problem(c, sig, NULL, NULL,
		        near ? "matches its near miss \"%.120s\""
		             : "does not match its sample \"%.120s\"",
		        s->line);
}

static bool wants_runner(const sw_sig_def *sig)
{
	for (uint16_t i = 0; i < sig->n_literals; i++)
		if (strstr(sig->literals[i], "{runner}"))
			return true;
	return sig->regex && strstr(sig->regex, "{runner}");
}

static void check_samples(checker *c, const sw_pack_def *def, const sw_sig_def *sig,
                          const sw_sig_info *info)
{
	bool lone = sig->kind == SW_KIND_INFORMATIONAL || sig->kind == SW_KIND_VETO;
	/* The samples of {runner} shapes are written with bwrap's name. */
	const char *backend =
	    strcmp(def->backend, "common") == 0 && wants_runner(sig) ? "bwrap" : def->backend;
	sw_pack *pack = lone ? NULL : pack_of(c, backend);
	bool shown = false;
	if (!info->n_samples)
		problem(c, sig, NULL, "write samples: ['a line it must match']", "no sample");
	if (!info->n_near_misses)
		problem(c, sig, NULL, "write near_misses: ['a line it must not match']",
		        "no near miss");
	if (!lone && (!pack || !takes_part(pack, sig))) {
		if (pack)
			problem(c, sig, NULL, NULL, "takes no part in the pack of %s", backend);
		return;
	}
	for (int near = 0; near < 2; near++) {
		const sw_sample *list = near ? info->near_misses : info->samples;
		size_t n = near ? info->n_near_misses : info->n_samples;
		for (size_t i = 0; i < n; i++) {
			shown |= !near && list[i].resource;
			if (lone)
				check_lone(c, sig, &list[i], near);
			else
				check_sample(c, pack, sig, &list[i], near);
		}
		*(near ? &c->report->near_misses : &c->report->samples) += n;
	}
	if (extracts(sig) && !shown)
		problem(c, sig, NULL, "write a sample as {line: ..., path: ...}",
		        "no sample shows what it extracts");
}

/* ---- packs ---- */

static bool cause_known(const checker *c, const char *slug)
{
	for (size_t i = 0; i < c->n_causes; i++)
		if (strcmp(c->causes[i].slug, slug) == 0)
			return true;
	return false;
}

static void check_id(checker *c, size_t file, size_t at)
{
	const sw_sig_def *sig = &c->files[file].def->sigs[at];
	const char *backend = c->files[file].def->backend;
	size_t n = strlen(backend);
	if (strncmp(sig->id, backend, n) != 0 || sig->id[n] != '.')
		problem(c, sig, NULL, "ids begin with the backend and a dot",
		        "the id does not begin with %s.", backend);
	for (size_t f = 0; f <= file; f++) {
		const sw_pack_def *d = c->files[f].def;
		for (size_t i = 0; i < (f == file ? at : d->n_sigs); i++)
			if (strcmp(d->sigs[i].id, sig->id) == 0)
				problem(c, sig, NULL, "an id names one signature for ever",
				        "the id stands in %s too", d->sigs[i].origin);
	}
}

static bool has_backend(const checker *c, const char *backend)
{
	for (size_t f = 0; f < c->set.n_defs; f++)
		if (strcmp(c->set.defs[f]->backend, backend) == 0)
			return true;
	return false;
}

/* Whether what `from` extends leads to `to`. seen: by definition, so that each is asked once. */
static bool leads_to(const checker *c, const char *from, const char *to, bool *seen)
{
	for (size_t f = 0; f < c->set.n_defs; f++) {
		const sw_pack_def *d = c->set.defs[f];
		if (seen[f] || strcmp(d->backend, from) != 0)
			continue;
		seen[f] = true;
		for (uint16_t i = 0; i < d->n_extends; i++)
			if (strcmp(d->extends[i], to) == 0 || leads_to(c, d->extends[i], to, seen))
				return true;
	}
	return false;
}

static bool in_circle(const checker *c, const char *from, const char *to)
{
	bool *seen = calloc(c->set.n_defs + 1, sizeof(*seen));
	bool yes = seen && leads_to(c, from, to, seen);
	free(seen);
	return yes;
}

static void check_extends(checker *c, const sw_pack_def *def)
{
	for (uint16_t i = 0; i < def->n_extends; i++) {
		const char *other = def->extends[i];
		if (!has_backend(c, other))
			problem(c, NULL, def->origin,
			        "`sandwitness signatures list` shows the backends",
			        "extends: no pack for backend %.100s", other);
		else if (strcmp(other, def->backend) == 0)
			problem(c, NULL, def->origin, "leave it out", "extends: the pack itself");
		else if (in_circle(c, other, def->backend))
			problem(c, NULL, def->origin, "leave one of them out",
			        "extends: %.100s extends %.100s in turn", other, def->backend);
	}
}

static void check_prefixes(checker *c, const sw_pack_def *def)
{
	for (uint16_t i = 0; i < def->n_prefix_regexes; i++) {
		sw_regex *re = sw_regex_new(def->prefix_regexes[i], SW_REGEX_ANCHORED, NULL);
		if (!re || sw_regex_matches_empty(re))
			problem(c, NULL, def->origin, "require some text",
			        "prefix_regexes: \"%.100s\" %s", def->prefix_regexes[i],
			        re ? "can match the empty string" : "does not compile");
		sw_regex_free(re);
	}
}

static void check_adjusts(checker *c, const sw_pack_def *def)
{
	for (uint16_t k = 0; k < def->n_adjusts; k++) {
		const char *id = def->adjusts[k].id;
		size_t n = strlen(id);
		bool star = n && id[n - 1] == '*', found = false;
		for (size_t f = 0; f < c->set.n_defs && !found; f++)
			for (uint16_t i = 0; i < c->set.defs[f]->n_sigs && !found; i++)
				found = star ? strncmp(c->set.defs[f]->sigs[i].id, id, n - 1) == 0
				             : strcmp(c->set.defs[f]->sigs[i].id, id) == 0;
		const sw_adjust_def *a = &def->adjusts[k];
		if (!found)
			problem(c, NULL, def->origin, NULL, "adjust: no signature is called %.100s",
			        id);
		else if (!a->disable && a->decides < 0 && a->confidence < 0)
			problem(c, NULL, def->origin, "say decides, confidence or disable",
			        "adjust: nothing is changed of %.100s", id);
	}
}

/* ---- the neutral corpus ---- */

static int is_log(const struct dirent *d)
{
	size_t n = strlen(d->d_name);
	return n > 4 && strcmp(d->d_name + n - 4, ".out") == 0;
}

static void check_neutral_file(checker *c, const char *path, const char *text, size_t n)
{
	for (size_t f = 0; f < c->n_files; f++) {
		const char *backend = c->files[f].def->backend;
		sw_pack *pack = strcmp(backend, "common") == 0 ? NULL : pack_of(c, backend);
		sw_facts facts = {.observe_ok = true};
		sw_result *r;
		sw_error err;
		/* Exit 0 lists every fatal that was seen, whatever gate or position says. */
		if (!pack || sw_classify(pack, &facts, sw_exit_code(0), SW_STARTED_UNKNOWN,
		                         SW_SOURCE_NONE, text, n, &r, &err)) {
			no_memory(pack && err.code == SW_ENOMEM);
			continue;
		}
		for (size_t i = 0; i < r->n_observations; i++) {
			const sw_hit *h = &r->observations[i].hit;
			if (r->observations[i].kind == SW_OBSERVATION_FATAL_AT_EXIT_0)
				problem(
				    c, h->sig, NULL,
				    "narrow it: ordinary logs must not look like a runner failure",
				    "matches line %llu of the neutral %s",
				    (unsigned long long)h->line_number, path);
		}
		sw_result_free(r);
	}
}

static int check_neutral(checker *c, const char *dir, sw_error *err)
{
	struct dirent **names;
	int n = scandir(dir, &names, is_log, alphasort);
	if (n < 0) {
		sw_error_set(err, SW_ENOTFOUND, "no such folder");
		return sw_error_more(err, dir, NULL, "name the folder of the neutral corpus");
	}
	int rc = 0;
	for (int i = 0; i < n; i++) {
		char path[4096], *text;
		size_t len;
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		if (!rc)
			rc = sw_read_file(path, NEUTRAL_FILE_MAX, &text, &len, err);
		if (!rc) {
			check_neutral_file(c, path, text, len);
			free(text);
		}
		free(names[i]);
	}
	free(names);
	return rc;
}

int sw_check_packs(const sw_pack_file *files, size_t n, const sw_pack_file *others, size_t n_others,
                   const sw_cause *causes, size_t n_causes, const char *neutral,
                   sw_check_report *report, sw_error *err)
{
	checker c = {
	    .files = files, .n_files = n, .causes = causes, .n_causes = n_causes, .report = report};
	c.defs = calloc(n + n_others + 1, sizeof(*c.defs));
	if (!c.defs)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++)
		c.defs[i] = files[i].def;
	for (size_t i = 0; i < n_others; i++)
		c.defs[n + i] = others[i].def;
	c.set = (sw_pack_set){c.defs, n + n_others};
	for (size_t f = 0; f < n; f++) {
		const sw_pack_def *def = files[f].def;
		report->files++;
		check_adjusts(&c, def);
		check_extends(&c, def);
		check_prefixes(&c, def);
		for (uint16_t i = 0; i < def->n_sigs; i++) {
			const sw_sig_def *sig = &def->sigs[i];
			report->signatures++;
			check_id(&c, f, i);
			if (sig->cause && !cause_known(&c, sig->cause))
				problem(&c, sig, NULL,
				        "add it to signatures/causes/, or use a known one",
				        "unknown cause %.80s", sig->cause);
			if (!sig->cause && sig->kind == SW_KIND_DENIAL)
				problem(&c, sig, NULL, "name a slug of signatures/causes/",
				        "a denial without cause");
			check_literals(&c, sig);
			if (sig->regex)
				check_regex(&c, sig);
			check_samples(&c, def, sig, &files[f].infos[i]);
		}
	}
	int rc = neutral ? check_neutral(&c, neutral, err) : 0;
	for (size_t i = 0; i < c.n_packs; i++)
		sw_pack_free(c.packs[i]);
	free(c.defs);
	return rc;
}
