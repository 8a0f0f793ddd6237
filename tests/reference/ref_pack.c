/* ref_pack.c - the oracle's pack: own definitions, what they extend, then common. */
#include "ref_pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *ref_grow(void *p, size_t n)
{
	void *q = realloc(p, n ? n : 1);
	if (!q) {
		fputs("reference: out of memory\n", stderr);
		abort();
	}
	return q;
}

void *ref_alloc(size_t n)
{
	return memset(ref_grow(NULL, n), 0, n);
}

char *ref_copy(const char *p, size_t n)
{
	char *q = ref_alloc(n + 1);
	if (n)
		memcpy(q, p, n);
	return q;
}

/* All definitions that count, in the order of ownership. */
typedef struct layers {
	const sw_pack_def *defs[64];
	size_t n, n_own;
} layers;

static bool taken(const layers *l, const sw_pack_def *def)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->defs[i] == def)
			return true;
	return false;
}

static void add_backend(layers *l, const sw_pack_set *set, const char *backend)
{
	size_t first = l->n;
	for (size_t i = 0; i < set->n_defs; i++)
		if (!strcmp(set->defs[i]->backend, backend) && !taken(l, set->defs[i]) && l->n < 64)
			l->defs[l->n++] = set->defs[i];
	size_t end = l->n;
	if (first == 0)
		l->n_own = end;
	for (size_t i = first; i < end; i++)
		for (size_t k = 0; k < l->defs[i]->n_extends; k++)
			add_backend(l, set, l->defs[i]->extends[k]);
}

static char *replaced(const char *text, const char *what, const char *by)
{
	char *out = ref_copy(text, strlen(text));
	char *at = strstr(out, what);
	while (at) {
		size_t before = (size_t)(at - out);
		char *next = ref_alloc(strlen(out) + strlen(by) + 1);
		memcpy(next, out, before);
		strcpy(next + before, by);
		strcat(next, at + strlen(what));
		free(out);
		out = next;
		at = strstr(out + before + strlen(by), what);
	}
	return out;
}

/* "(?:bwrap|bwrap-static)" with every byte that means something in a regex escaped. */
static char *names_regex(const char *const *names, size_t n)
{
	char *out = ref_copy("(?:", 3);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(out);
		out = ref_grow(out, len + 2 * strlen(names[i]) + 3);
		if (i)
			out[len++] = '|';
		for (const char *p = names[i]; *p; p++) {
			if (strchr("\\^$.[]|()?*+{}-", *p))
				out[len++] = '\\';
			out[len++] = *p;
		}
		out[len] = 0;
	}
	size_t len = strlen(out);
	out = ref_grow(out, len + 2);
	strcpy(out + len, ")");
	return out;
}

static pcre2_code *compile(const char *regex, uint32_t options)
{
	int error;
	PCRE2_SIZE offset;
	pcre2_code *code =
	    pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
	                  PCRE2_CASELESS | PCRE2_DOLLAR_ENDONLY | options, &error, &offset, NULL);
	if (!code)
		fprintf(stderr, "reference: regex does not compile at %zu: %s\n", (size_t)offset,
		        regex);
	return code;
}

static bool id_fits(const char *pattern, const char *id)
{
	size_t n = strlen(pattern);
	if (!id)
		return false;
	if (n && pattern[n - 1] == '*')
		return !strncmp(pattern, id, n - 1);
	return !strcmp(pattern, id);
}

static bool id_taken(const ref_pack *p, const char *id)
{
	for (size_t i = 0; id && i < p->n_sigs; i++)
		if (p->sigs[i].def->id && !strcmp(p->sigs[i].def->id, id))
			return true;
	return false;
}

static bool add_sig(ref_pack *p, const layers *l, const sw_pack_def *from, const char *const *names,
                    size_t n_names, const sw_sig_def *def)
{
	if (id_taken(p, def->id))
		return true; /* a pack in front has replaced it */
	bool runner = def->regex && strstr(def->regex, "{runner}");
	for (size_t i = 0; i < def->n_literals; i++)
		runner |= strstr(def->literals[i], "{runner}") != NULL;
	if (runner && n_names == 0)
		return true; /* a shape without a runner to put in */
	ref_sig s = {
	    .def = def, .decides = def->decides, .with = def->with, .confidence = def->confidence};
	s.position = def->position < 0 ? from->fatal_position : (sw_position)def->position;
	bool disabled = false;
	/* A pack adjusts what it takes over, not its own; the backend's own word comes last and
	 * wins. */
	for (size_t i = l->n; i > 0; i--)
		for (size_t k = 0; k < l->defs[i - 1]->n_adjusts; k++) {
			const sw_adjust_def *a = &l->defs[i - 1]->adjusts[k];
			if (!strcmp(l->defs[i - 1]->backend, from->backend) ||
			    !id_fits(a->id, def->id))
				continue;
			disabled |= a->disable;
			if (a->decides >= 0) {
				s.decides = (sw_decides)a->decides;
				s.with = a->with;
			}
			if (a->confidence >= 0)
				s.confidence = (sw_confidence)a->confidence;
		}
	if (disabled)
		return true;
	for (size_t i = 0; i < def->n_literals; i++) {
		bool has = strstr(def->literals[i], "{runner}") != NULL;
		for (size_t k = 0; k < (has ? n_names : 1); k++) {
			s.literals = ref_grow(s.literals, (s.n_literals + 1) * sizeof(char *));
			s.literals[s.n_literals++] =
			    replaced(def->literals[i], "{runner}", has ? names[k] : "");
		}
	}
	s.exit_only = def->n_literals == 0 && !def->regex;
	if (def->regex) {
		char *by = names_regex(names, n_names);
		char *regex = replaced(def->regex, "{runner}", by);
		uint32_t options = 0;
		if (def->kind == SW_KIND_FATAL || def->kind == SW_KIND_DOWNGRADE)
			options = PCRE2_ANCHORED;
		if (def->kind == SW_KIND_INFORMATIONAL)
			options = PCRE2_ANCHORED | PCRE2_ENDANCHORED;
		s.regex = compile(regex, options);
		free(regex);
		free(by);
		if (!s.regex) {
			for (size_t i = 0; i < s.n_literals; i++)
				free(s.literals[i]);
			free(s.literals);
			return false;
		}
	}
	p->sigs = ref_grow(p->sigs, (p->n_sigs + 1) * sizeof *p->sigs);
	p->sigs[p->n_sigs++] = s;
	return true;
}

static bool add_prefixes(ref_pack *p, const sw_pack_def *def)
{
	for (size_t i = 0; i < def->n_prefixes; i++) {
		p->prefixes = ref_grow(p->prefixes, (p->n_prefixes + 1) * sizeof(char *));
		p->prefixes[p->n_prefixes++] = ref_copy(def->prefixes[i], strlen(def->prefixes[i]));
	}
	for (size_t i = 0; i < def->n_prefix_regexes; i++) {
		pcre2_code *code = compile(def->prefix_regexes[i], PCRE2_ANCHORED);
		if (!code)
			return false;
		p->prefix_regexes =
		    ref_grow(p->prefix_regexes, (p->n_prefix_regexes + 1) * sizeof(pcre2_code *));
		p->prefix_regexes[p->n_prefix_regexes++] = code;
	}
	return true;
}

ref_pack *ref_pack_new(const sw_pack_set *set, const char *backend)
{
	layers l = {.n = 0};
	add_backend(&l, set, backend);
	if (l.n == 0)
		return NULL;
	add_backend(&l, set, "common");
	ref_pack *p = ref_alloc(sizeof *p);
	const char *names[64];
	size_t n_names = 0;
	for (size_t i = 0; i < l.n_own; i++) {
		p->windows |= l.defs[i]->windows;
		p->utf16le |= l.defs[i]->utf16le;
		p->unconfined |= l.defs[i]->unconfined;
		for (size_t k = 0; k < l.defs[i]->n_names && n_names < 64; k++)
			names[n_names++] = l.defs[i]->names[k];
	}
	for (size_t i = 0; i < l.n; i++) {
		p->priority_prefix |= l.defs[i]->priority_prefix;
		bool ok = add_prefixes(p, l.defs[i]);
		for (size_t k = 0; ok && k < l.defs[i]->n_sigs; k++)
			ok = add_sig(p, &l, l.defs[i], names, n_names, &l.defs[i]->sigs[k]);
		if (!ok) {
			ref_pack_free(p);
			return NULL;
		}
	}
	return p;
}

void ref_pack_free(ref_pack *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_sigs; i++) {
		for (size_t k = 0; k < p->sigs[i].n_literals; k++)
			free(p->sigs[i].literals[k]);
		free(p->sigs[i].literals);
		pcre2_code_free(p->sigs[i].regex);
	}
	for (size_t i = 0; i < p->n_prefixes; i++)
		free(p->prefixes[i]);
	for (size_t i = 0; i < p->n_prefix_regexes; i++)
		pcre2_code_free(p->prefix_regexes[i]);
	free(p->sigs);
	free(p->prefixes);
	free(p->prefix_regexes);
	free(p);
}
