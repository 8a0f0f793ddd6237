/* The corpus: finding the cases, classifying them, counting. */
#include "corpus.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core.h"

/* ---- finding ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

typedef struct names {
	char **list;
	size_t n, cap;
} names;

static void names_free(names *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->list[i]);
	free(l->list);
}

/* The entries of a folder that end in `ending` ("": sub-folders), sorted. */
static int read_names(const char *dir, const char *ending, names *out)
{
	DIR *d = opendir(dir);
	if (!d)
		return errno == ENOENT || errno == ENOTDIR ? SW_ENOTFOUND : SW_EIO;
	size_t end = strlen(ending);
	int rc = 0;
	for (struct dirent *e; !rc && (e = readdir(d));) {
		size_t n = strlen(e->d_name);
		char *path = NULL;
		struct stat st;
		if (e->d_name[0] == '.' || n < end || strcmp(e->d_name + n - end, ending) != 0)
			continue;
		if (asprintf(&path, "%s/%s", dir, e->d_name) < 0) {
			rc = SW_ENOMEM;
			break;
		}
		bool wanted =
		    stat(path, &st) == 0 && (end ? S_ISREG(st.st_mode) : S_ISDIR(st.st_mode));
		if (out->n == out->cap) {
			size_t cap = out->cap ? out->cap * 2 : 64;
			char **list = realloc(out->list, cap * sizeof(*list));
			if (!list) {
				free(path);
				rc = SW_ENOMEM;
				break;
			}
			out->list = list;
			out->cap = cap;
		}
		if (wanted && out->n < SW_CORPUS_CASES_MAX)
			out->list[out->n++] = path;
		else
			free(path);
	}
	closedir(d);
	if (out->n)
		qsort(out->list, out->n, sizeof(*out->list), by_name);
	return rc;
}

int sw_corpus_each(const char *dir, int (*fn)(void *payload, const char *yaml), void *payload,
                   sw_error *err)
{
	names folders = {0};
	int rc = read_names(dir, "", &folders);
	if (rc) {
		names_free(&folders);
		sw_error_set(err, rc, "cannot read the corpus \"%.200s\"", dir);
		return sw_error_more(err, NULL, NULL, "name a folder that holds BACKEND/NAME.yaml");
	}
	for (size_t i = 0; !rc && i < folders.n; i++) {
		names files = {0};
		const char *slash = strrchr(folders.list[i], '/');
		if (!strcmp(slash + 1, SW_CORPUS_NEUTRAL))
			continue; /* logs of ordinary work, no cases */
		rc = read_names(folders.list[i], ".yaml", &files);
		for (size_t k = 0; !rc && k < files.n; k++)
			rc = fn(payload, files.list[k]);
		names_free(&files);
	}
	names_free(&folders);
	return rc;
}

/* ---- counting ---- */

typedef struct run {
	sw_corpus_report *report;
	const sw_corpus_options *options;
	const sw_pack_file *files;
	size_t n_files;
	sw_matcher matcher;
	uint32_t *words; /* bit set of a pack's signatures */
	char *strip;
	size_t strip_cap;
	sw_error *err;
} run;

static sw_backend_tally *tally_of(sw_corpus_report *r, const char *name)
{
	for (size_t i = 0; i < r->n_backends; i++)
		if (!strcmp(r->backends[i].name, name))
			return &r->backends[i];
	if (r->n_backends == SW_CORPUS_BACKENDS_MAX)
		return NULL;
	sw_backend_tally *t = &r->backends[r->n_backends];
	t->name = strdup(name);
	if (!t->name)
		return NULL;
	r->n_backends++;
	return t;
}

static sw_sig_hits *hits_of(sw_corpus_report *r, const sw_sig_def *sig)
{
	for (size_t i = 0; i < r->n_sigs; i++)
		if (r->sigs[i].sig == sig)
			return &r->sigs[i];
	return NULL;
}

static void count_cause(sw_corpus_report *r, const char *slug)
{
	for (size_t i = 0; slug && i < r->n_causes; i++)
		if (!strcmp(r->causes[i].slug, slug))
			r->causes[i].cases++;
}

static int list_signatures(sw_corpus_report *r, const sw_pack_file *files, size_t n)
{
	size_t total = 0;
	const sw_cause *causes;
	for (size_t i = 0; i < n; i++)
		total += files[i].def->n_sigs;
	r->sigs = calloc(total + 1, sizeof(*r->sigs));
	r->n_causes = sw_builtin_causes(&causes);
	r->causes = calloc(r->n_causes + 1, sizeof(*r->causes));
	r->backends = calloc(SW_CORPUS_BACKENDS_MAX, sizeof(*r->backends));
	if (!r->sigs || !r->causes || !r->backends)
		return SW_ENOMEM;
	for (size_t i = 0; i < r->n_causes; i++)
		r->causes[i].slug = causes[i].slug;
	for (size_t i = 0; i < n; i++)
		for (uint16_t k = 0; k < files[i].def->n_sigs; k++)
			r->sigs[r->n_sigs++] = (sw_sig_hits){.sig = &files[i].def->sigs[k],
			                                     .backend = files[i].def->backend};
	return 0;
}

/* ---- which signatures a case exercises ---- */

typedef struct note {
	const sw_pack *pack;
	uint32_t *words;
} note;

static bool note_literal(void *payload, uint32_t literal, size_t at)
{
	note *n = payload;
	const sw_literal *l = &n->pack->filter.literals[literal];
	(void)at;
	for (uint32_t u = l->users; u; u = n->pack->filter.users[u].next) {
		uint32_t sig = n->pack->filter.users[u].sig;
		n->words[sig / 32] |= 1u << (sig % 32);
	}
	return true;
}

static void set_bit(uint32_t *words, size_t i)
{
	words[i / 32] |= 1u << (i % 32);
}

static bool get_bit(const uint32_t *words, size_t i)
{
	return words[i / 32] >> (i % 32) & 1;
}

/* hit: one bit per signature, kept over the lines of a case. */
static void exercise_line(run *r, const sw_pack *pack, const sw_visible *v, uint32_t *hit)
{
	uint32_t n_words = (pack->n_sigs + 31) / 32;
	note n = {pack, r->words};
	bool denied = false;
	memset(r->words, 0, n_words * sizeof(uint32_t));
	sw_matcher_line(&r->matcher, v);
	sw_filter_all(&pack->filter, v->ptr, v->len, note_literal, &n);
	for (uint32_t i = 0; i < pack->n_sigs; i++) {
		sw_capture c = {0};
		if (!get_bit(r->words, i) ||
		    sw_sig_match(pack, &pack->sigs[i], &r->matcher, v, &c) != SW_MATCH_YES)
			continue;
		denied |= pack->sigs[i].def->kind == SW_KIND_DENIAL;
		set_bit(hit, i);
	}
	const sw_sig *notice = sw_informational(pack, &r->matcher, v);
	if (notice)
		set_bit(hit, (size_t)(notice - pack->sigs));
	for (uint32_t k = 0; denied && k < pack->n_order[SW_KIND_VETO]; k++) {
		uint32_t i = pack->order[SW_KIND_VETO][k];
		sw_capture c = {0};
		if (sw_literal_in(&pack->sigs[i], v->ptr, v->len, NULL) &&
		    sw_sig_match(pack, &pack->sigs[i], &r->matcher, v, &c) == SW_MATCH_YES)
			set_bit(hit, i);
	}
}

static int exercise(run *r, const sw_pack *pack, const sw_case *c)
{
	size_t n_words = (pack->n_sigs + 31) / 32 + 1;
	uint32_t *hit = calloc(n_words, sizeof(*hit));
	if (c->output_len > r->strip_cap) {
		char *p = realloc(r->strip, c->output_len);
		if (p) {
			r->strip = p;
			r->strip_cap = c->output_len;
		}
	}
	if (!hit || c->output_len > r->strip_cap) {
		free(hit);
		return SW_ENOMEM;
	}
	for (size_t at = 0; at < c->output_len;) {
		size_t end = at;
		while (end < c->output_len && c->output[end] != '\n' && c->output[end] != '\r')
			end++;
		size_t len = end - at < SW_WINDOW_SIZE ? end - at : SW_WINDOW_SIZE;
		sw_visible v = {.ptr = r->strip,
		                .len = sw_strip_escapes(r->strip, c->output + at, len),
		                .column0 = true,
		                .full_line = end - at <= SW_WINDOW_SIZE};
		if (v.len)
			exercise_line(r, pack, &v, hit);
		at = end + 1;
	}
	for (uint32_t i = 0; i < pack->n_sigs; i++) {
		const sw_sig *s = &pack->sigs[i];
		int64_t code;
		if (s->exit_only && !sw_exit_is_zero(c->exit) &&
		    sw_exit_normal(pack, c->exit, &code) && sw_exit_admits(pack, s->def, c->exit))
			set_bit(hit, i);
		sw_sig_hits *h = get_bit(hit, i) ? hits_of(r->report, s->def) : NULL;
		if (h)
			h->cases++;
	}
	free(hit);
	return 0;
}

/* ---- one case ---- */

static void put(char *out, size_t n, const char *fmt, ...) SW_PRINTF(3, 4);

static void put(char *out, size_t n, const char *fmt, ...)
{
	size_t len = strlen(out);
	va_list ap;
	va_start(ap, fmt);
	if (len < n)
		vsnprintf(out + len, n - len, fmt, ap);
	va_end(ap);
}

static void put_text(char *out, size_t n, sw_str s)
{
	char *safe = s.ptr ? sw_escape_tty(s.ptr, s.len < 160 ? s.len : 160) : NULL;
	put(out, n, safe ? "\"%s\"" : "none", safe ? safe : "");
	free(safe);
}

void sw_case_describe(const sw_case *c, const sw_result *r, unsigned misses, char *out, size_t n)
{
	sw_str none = {NULL, 0};
	const char *id = r->has_hit && r->hit.sig ? r->hit.sig->id : "none";
	out[0] = '\0';
	if (misses & SW_MISS_VERDICT)
		put(out, n, "verdict: wanted %s, got %s; ", sw_verdict_name(c->verdict),
		    sw_verdict_name(r->verdict));
	if (misses & SW_MISS_STAGE)
		put(out, n, "stage: got %s; ", sw_stage_name(r->stage));
	if (misses & SW_MISS_CAUSE)
		put(out, n, "cause: wanted %s%s, got %s; ", c->causes[0],
		    c->n_causes > 1 ? " or others" : "", r->cause ? r->cause : "none");
	if (misses & SW_MISS_LINE) {
		put(out, n, "line: wanted ");
		put_text(out, n, c->line);
		put(out, n, ", got ");
		put_text(out, n, r->has_hit ? r->hit.line : none);
		put(out, n, "; ");
	}
	if (misses & SW_MISS_RESOURCE) {
		put(out, n, "resource: wanted ");
		put_text(out, n, c->resource.ptr ? c->resource : c->resource_within);
		put(out, n, ", got ");
		put_text(out, n, r->has_hit ? r->hit.resource : none);
		put(out, n, "; ");
	}
	if (misses & SW_MISS_OPERATION)
		put(out, n, "operation: wanted %s, got %s; ", sw_operation_name(c->operation),
		    sw_operation_name(r->operation));
	if (misses & SW_MISS_SIGNATURE)
		put(out, n, "signature: wanted %s; ", c->signature);
	if (misses & SW_MISS_LIMIT)
		put(out, n, "limit: wanted %s, got %s; ", sw_limit_name(c->limit),
		    sw_limit_name(r->limit));
	put(out, n, "by %s", id);
}

static sw_case_outcome *add_outcome(sw_corpus_report *r, const char *name, const char *backend,
                                    const char *path)
{
	if (r->n_outcomes == r->cap_outcomes) {
		size_t cap = r->cap_outcomes ? r->cap_outcomes * 2 : 256;
		sw_case_outcome *list = realloc(r->outcomes, cap * sizeof(*list));
		if (!list)
			return NULL;
		r->outcomes = list;
		r->cap_outcomes = cap;
	}
	sw_case_outcome *o = &r->outcomes[r->n_outcomes];
	*o = (sw_case_outcome){
	    .name = strdup(name), .backend = strdup(backend), .path = strdup(path)};
	if (!o->name || !o->backend || !o->path) {
		free(o->name);
		free(o->backend);
		free(o->path);
		return NULL;
	}
	r->n_outcomes++;
	return o;
}

static int add_broken(run *r, const char *yaml, const sw_error *e)
{
	sw_case_outcome *o = add_outcome(r->report, yaml, "", yaml);
	if (!o)
		return SW_ENOMEM;
	o->kind = SW_OUTCOME_BROKEN;
	r->report->kinds[SW_OUTCOME_BROKEN]++;
	return asprintf(&o->detail, "%s: %s%s%s", e->where, e->what, e->fix[0] ? "; " : "",
	                e->fix) < 0
	           ? SW_ENOMEM
	           : 0;
}

typedef struct meta_failure {
	run *run;
	const sw_case *c;
	int rc;
} meta_failure;

static void metamorphic_failed(void *payload, const char *relation, const char *detail)
{
	meta_failure *f = payload;
	char name[300];
	snprintf(name, sizeof(name), "%s: %s", f->c->name, relation);
	sw_case_outcome *o = add_outcome(f->run->report, name, f->c->backend, f->c->path);
	f->run->report->metamorphic_failed++;
	if (!o || asprintf(&o->detail, "%s: %s", relation, detail) < 0) {
		f->rc = SW_ENOMEM;
		return;
	}
	o->kind = SW_OUTCOME_WRONG;
}

static void count(run *r, const sw_case *c, const sw_result *res, unsigned misses,
                  sw_case_outcome *o)
{
	sw_backend_tally *t = tally_of(r->report, c->backend);
	o->misses = misses;
	o->expects = sw_case_expects(c);
	o->has_verdict = true;
	o->wanted = c->verdict;
	o->got = res->verdict;
	o->kind = c->todo ? (misses ? SW_OUTCOME_TODO : SW_OUTCOME_TODO_PASSES)
	                  : (misses ? SW_OUTCOME_WRONG : SW_OUTCOME_RIGHT);
	r->report->kinds[o->kind]++;
	if (!t)
		return;
	t->cases++;
	t->kinds[o->kind]++;
	t->negative += c->verdict == SW_VERDICT_OK;
	if (c->todo)
		return;
	t->matrix[c->verdict][res->verdict]++;
	for (int i = 0; i < SW_MISS_KINDS; i++) {
		t->expects[i] += o->expects >> i & 1;
		t->misses[i] += misses >> i & 1;
	}
}

static int check_case(run *r, const sw_case *c)
{
	sw_error err = {0};
	sw_result *res = NULL;
	const sw_pack *pack = r->options->pack(r->options->payload, c->backend, &err);
	if (!pack || sw_classify(pack, &c->facts, c->exit, c->started, c->source, c->output,
	                         c->output_len, &res, &err))
		return add_broken(r, c->path, &err);
	unsigned misses = sw_case_compare(c, res);
	sw_case_outcome *o = add_outcome(r->report, c->name, c->backend, c->path);
	int rc = o ? 0 : SW_ENOMEM;
	if (o) {
		count(r, c, res, misses, o);
		if (misses && (o->detail = calloc(1, SW_CORPUS_DETAIL_MAX)))
			sw_case_describe(c, res, misses, o->detail, SW_CORPUS_DETAIL_MAX);
		else if (o->kind == SW_OUTCOME_TODO_PASSES)
			o->detail =
			    strdup("marked todo, but right now: remove `state` and `reason`");
		sw_sig_hits *h =
		    res->has_hit && res->hit.sig ? hits_of(r->report, res->hit.sig) : NULL;
		if (h)
			h->decided++;
		count_cause(r->report, res->cause);
		rc = exercise(r, pack, c);
	}
	sw_result_free(res);
	if (!rc && r->options->metamorphic) {
		meta_failure f = {r, c, 0};
		r->report->metamorphic += sw_case_metamorphic(c, pack, r->options, r->files,
		                                              r->n_files, metamorphic_failed, &f);
		rc = f.rc;
	}
	return rc;
}

/* ---- logs that no sandbox touched ---- */

static bool first_of_backend(const run *r, size_t i)
{
	const char *name = r->files[i].def->backend;
	for (size_t k = 0; k < i; k++)
		if (!strcmp(r->files[k].def->backend, name))
			return false;
	return strcmp(name, "common") != 0;
}

/* Such a log is ok under every backend, whatever the exit of its command was. */
static int check_neutral(run *r, const char *path)
{
	static const int64_t exits[] = {1, 127};
	char *text = NULL;
	size_t n = 0;
	sw_error err = {0};
	const char *slash = strrchr(path, '/');
	char name[200];
	snprintf(name, sizeof(name), "%.*s", (int)(strlen(slash + 1) - strlen(".out")), slash + 1);
	if (r->options->name && !strstr(name, r->options->name))
		return 0;
	if (sw_read_file(path, SW_CASE_OUTPUT_MAX, &text, &n, &err))
		return add_broken(r, path, &err);
	sw_case_outcome *o = add_outcome(r->report, name, SW_CORPUS_NEUTRAL, path);
	sw_backend_tally *t = o ? tally_of(r->report, SW_CORPUS_NEUTRAL) : NULL;
	int rc = t ? 0 : SW_ENOMEM;
	for (size_t i = 0; !rc && i < r->n_files && !o->detail; i++) {
		const char *backend = r->files[i].def->backend;
		const sw_pack *pack = first_of_backend(r, i)
		                          ? r->options->pack(r->options->payload, backend, &err)
		                          : NULL;
		sw_facts facts = {.network = SW_NETWORK_DENIED};
		for (size_t e = 0; pack && e < sizeof(exits) / sizeof(exits[0]) && !o->detail;
		     e++) {
			sw_result *res = NULL;
			if (sw_classify(pack, &facts, sw_exit_code(exits[e]), SW_STARTED_UNKNOWN,
			                SW_SOURCE_NONE, text, n, &res, &err))
				rc = SW_ENOMEM;
			else if (res->verdict != SW_VERDICT_OK &&
			         res->evidence == SW_EVIDENCE_TEXT &&
			         asprintf(&o->detail, "%s under %s, exit %d, by %s, line %llu",
			                  sw_verdict_name(res->verdict), backend, (int)exits[e],
			                  res->hit.sig->id,
			                  (unsigned long long)res->hit.line_number) < 0)
				rc = SW_ENOMEM;
			sw_result_free(res);
		}
	}
	free(text);
	if (rc)
		return rc;
	o->kind = o->detail ? SW_OUTCOME_WRONG : SW_OUTCOME_RIGHT;
	o->expects = SW_MISS_VERDICT;
	o->misses = o->detail ? SW_MISS_VERDICT : 0;
	r->report->kinds[o->kind]++;
	t->cases++;
	t->negative++;
	t->kinds[o->kind]++;
	return 0;
}

static int check_neutrals(run *r, const char *dir)
{
	names files = {0};
	char *folder = NULL;
	if (r->options->backend && strcmp(r->options->backend, SW_CORPUS_NEUTRAL) != 0)
		return 0;
	if (asprintf(&folder, "%s/%s", dir, SW_CORPUS_NEUTRAL) < 0)
		return SW_ENOMEM;
	int rc = read_names(folder, ".out", &files);
	if (rc == SW_ENOTFOUND)
		rc = 0;
	for (size_t i = 0; !rc && i < files.n; i++)
		rc = check_neutral(r, files.list[i]);
	names_free(&files);
	free(folder);
	return rc;
}

static int one_file(void *payload, const char *yaml)
{
	run *r = payload;
	sw_case c;
	sw_error err = {0};
	int rc = sw_case_load(&c, yaml, &err);
	if (rc == SW_ENOMEM)
		return rc;
	if (rc)
		return add_broken(r, yaml, &err);
	bool wanted = (!r->options->backend || !strcmp(r->options->backend, c.backend)) &&
	              (!r->options->name || strstr(c.name, r->options->name));
	if (wanted)
		rc = check_case(r, &c);
	sw_case_free(&c);
	if (wanted && r->options->progress)
		r->options->progress(r->options->payload, r->report->n_outcomes);
	return rc;
}

int sw_corpus_check(const char *dir, const sw_pack_file *files, size_t n_files,
                    const sw_corpus_options *options, sw_corpus_report *out, sw_error *err)
{
	run r = {.report = out, .options = options, .files = files, .n_files = n_files, .err = err};
	memset(out, 0, sizeof(*out));
	int rc = list_signatures(out, files, n_files);
	r.words = calloc(SW_SIGS_MAX / 32 + 1, sizeof(*r.words));
	if (!rc)
		rc = r.words ? sw_matcher_init(&r.matcher) : SW_ENOMEM;
	if (!rc)
		rc = sw_corpus_each(dir, one_file, &r, err);
	if (!rc)
		rc = check_neutrals(&r, dir);
	if (rc == SW_ENOMEM)
		sw_error_set(err, rc, "out of memory");
	sw_matcher_free(&r.matcher);
	free(r.words);
	free(r.strip);
	if (rc)
		sw_corpus_report_free(out);
	return rc;
}

void sw_corpus_report_free(sw_corpus_report *r)
{
	for (size_t i = 0; i < r->n_outcomes; i++) {
		free(r->outcomes[i].name);
		free(r->outcomes[i].backend);
		free(r->outcomes[i].path);
		free(r->outcomes[i].detail);
	}
	for (size_t i = 0; i < r->n_backends; i++)
		free(r->backends[i].name);
	free(r->outcomes);
	free(r->backends);
	free(r->sigs);
	free(r->causes);
	memset(r, 0, sizeof(*r));
}

bool sw_corpus_all_right(const sw_corpus_report *r)
{
	return !r->kinds[SW_OUTCOME_WRONG] && !r->kinds[SW_OUTCOME_BROKEN] &&
	       !r->kinds[SW_OUTCOME_TODO_PASSES] && !r->metamorphic_failed;
}
