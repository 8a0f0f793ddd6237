/* Building a backend's pack from definitions in memory. */
#include "core.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define RUNNER "{runner}"
#define COMMON "common"
#define CHUNK_SIZE 16384

typedef struct builder {
	sw_pack *pack;
	const sw_pack_set *set;
	const sw_pack_def *own[64]; /* the definitions that name the runner and adjust, own first */
	size_t n_own;
	const char *visited[32];
	size_t n_visited;
	const char **ids; /* hash set of the ids taken so far */
	size_t ids_mask;
	sw_error *err;
} builder;

static int out_of_memory(sw_error *err)
{
	return sw_error_set(err, SW_ENOMEM, "out of memory while building a pack");
}

/* ---- memory: many small texts that live as long as the pack ---- */

typedef struct sw_chunk {
	struct sw_chunk *next;
	size_t used, size;
	max_align_t bytes[];
} sw_chunk;

static void *pack_alloc(sw_pack *pack, size_t n)
{
	n = (n + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
	sw_chunk *c = pack->chunks;
	if (!c || c->size - c->used < n) {
		size_t size = n > CHUNK_SIZE ? n : CHUNK_SIZE;
		c = malloc(sizeof(*c) + size);
		if (!c)
			return NULL;
		*c = (sw_chunk){.next = pack->chunks, .size = size};
		pack->chunks = c;
	}
	void *p = (char *)c->bytes + c->used;
	c->used += n;
	return p;
}

static char *fold_copy(sw_pack *pack, const char *z)
{
	size_t n = strlen(z);
	char *p = pack_alloc(pack, n + 1);
	for (size_t i = 0; p && i <= n; i++)
		p[i] = (char)sw_fold((unsigned char)z[i]);
	return p;
}

/* z with each {runner} replaced. */
static char *substitute(sw_pack *pack, const char *z, const char *with)
{
	size_t mark = strlen(RUNNER), count = 0;
	for (const char *p = z; (p = strstr(p, RUNNER)); p += mark)
		count++;
	char *out = pack_alloc(pack, strlen(z) + count * strlen(with) + 1), *o = out;
	if (!out)
		return NULL;
	for (;;) {
		const char *p = strstr(z, RUNNER);
		size_t n = p ? (size_t)(p - z) : strlen(z);
		memcpy(o, z, n);
		o += n;
		if (!p)
			break;
		o = stpcpy(o, with);
		z = p + mark;
	}
	*o = '\0';
	return out;
}

/* The backend's runner names, in order; fn may be called several times. */
static size_t runner_names(const builder *b, const char **names, size_t max)
{
	size_t n = 0;
	for (size_t i = 0; i < b->n_own; i++) {
		if (strcmp(b->own[i]->backend, b->pack->backend) != 0)
			continue;
		for (uint16_t k = 0; k < b->own[i]->n_names && n < max; k++)
			names[n++] = b->own[i]->names[k];
	}
	return n;
}

static char *regex_of_names(sw_pack *pack, const char *const *names, size_t n)
{
	size_t size = 16;
	for (size_t i = 0; i < n; i++)
		size += 2 * strlen(names[i]) + 2;
	char *out = pack_alloc(pack, size), *o = out;
	if (!out)
		return NULL;
	o = stpcpy(o, "(?:");
	for (size_t i = 0; i < n; i++) {
		if (i)
			*o++ = '|';
		for (const char *p = names[i]; *p; p++) {
			if (strchr(".+*?()[]{}|^$\\-", *p))
				*o++ = '\\';
			*o++ = *p;
		}
	}
	stpcpy(o, ")");
	return out;
}

static bool same_gate(const sw_sig_def *a, const sw_sig_def *b)
{
	return a->n_only_exit == b->n_only_exit && a->n_except_exit == b->n_except_exit &&
	       (a->n_only_exit == 0 ||
	        memcmp(a->only_exit, b->only_exit, a->n_only_exit * sizeof(int64_t)) == 0) &&
	       (a->n_except_exit == 0 ||
	        memcmp(a->except_exit, b->except_exit, a->n_except_exit * sizeof(int64_t)) == 0);
}

static int gate_of(builder *b, sw_sig *sig, uint32_t index)
{
	sw_pack *pack = b->pack;
	if (sig->def->kind != SW_KIND_DENIAL || sig->exit_only ||
	    (!sig->def->n_only_exit && !sig->def->n_except_exit))
		return 0;
	for (uint32_t g = 1; g <= pack->n_gates; g++) {
		if (same_gate(pack->sigs[pack->gate_sig[g]].def, sig->def)) {
			sig->gate = (uint8_t)g;
			return 0;
		}
	}
	if (pack->n_gates == SW_GATES_MAX) {
		sw_error_set(b->err, SW_EPACK,
		             "%s: more than %d different exit gates among denials", sig->def->id,
		             SW_GATES_MAX);
		return sw_error_more(b->err, sig->def->origin, NULL,
		                     "reuse an exit gate of another denial");
	}
	sig->gate = (uint8_t)++pack->n_gates;
	pack->gate_sig[sig->gate] = (uint16_t)index;
	return 0;
}

static int add_literal(builder *b, sw_sig *sig, const char *folded)
{
	if (!folded)
		return out_of_memory(b->err);
	size_t n = strlen(folded);
	bool unfiltered = sig->def->kind == SW_KIND_INFORMATIONAL || sig->def->kind == SW_KIND_VETO;
	if ((!unfiltered && n < SW_LITERAL_MIN) || n > SW_LITERAL_MAX) {
		sw_error_set(b->err, SW_EPACK, "%s: a literal of %zu bytes", sig->def->id, n);
		return sw_error_more(b->err, sig->def->origin, "literals have 4 to 512 bytes",
		                     "choose another part of the line");
	}
	sig->literals[sig->n_literals] = folded;
	sig->literal_lens[sig->n_literals++] = (uint32_t)n;
	return 0;
}

static bool wants_runner(const sw_sig_def *def)
{
	if (def->regex && strstr(def->regex, RUNNER))
		return true;
	for (uint16_t i = 0; i < def->n_literals; i++)
		if (strstr(def->literals[i], RUNNER))
			return true;
	return false;
}

static int expand(builder *b, sw_sig *sig, bool wants, const char *const *names, size_t n_names)
{
	const sw_sig_def *def = sig->def;
	size_t most = (size_t)def->n_literals * (wants ? n_names : 1);
	sig->literals = pack_alloc(b->pack, (most + 1) * sizeof(*sig->literals));
	sig->literal_lens = pack_alloc(b->pack, (most + 1) * sizeof(*sig->literal_lens));
	if (!sig->literals || !sig->literal_lens)
		return out_of_memory(b->err);
	for (uint16_t i = 0; i < def->n_literals; i++) {
		bool each = wants && strstr(def->literals[i], RUNNER);
		for (size_t k = 0; k < (each ? n_names : 1); k++) {
			const char *z = each ? substitute(b->pack, def->literals[i], names[k])
			                     : def->literals[i];
			int rc = add_literal(b, sig, z ? fold_copy(b->pack, z) : NULL);
			if (rc)
				return rc;
		}
	}
	/* Places are those of the literals as written. */
	sig->places = wants ? NULL : def->places;
	sig->regex = def->regex;
	if (def->regex && wants) {
		char *alternatives = regex_of_names(b->pack, names, n_names);
		sig->regex = alternatives ? substitute(b->pack, def->regex, alternatives) : NULL;
		if (!sig->regex)
			return out_of_memory(b->err);
	}
	return 0;
}

static bool adjust_applies(const sw_adjust_def *a, const char *id)
{
	size_t n = strlen(a->id);
	if (n && a->id[n - 1] == '*')
		return strncmp(a->id, id, n - 1) == 0;
	return strcmp(a->id, id) == 0;
}

static bool anchored(sw_kind k)
{
	return k == SW_KIND_FATAL || k == SW_KIND_DOWNGRADE || k == SW_KIND_INFORMATIONAL;
}

static int find_prefix(builder *b, sw_sig *sig)
{
	char text[SW_PREFIX_MAX];
	if (!sig->regex || !anchored(sig->def->kind))
		return 0;
	sig->prefix_len = sw_regex_prefix(sig->regex, text);
	char *copy = pack_alloc(b->pack, SW_PREFIX_MAX);
	if (!copy)
		return out_of_memory(b->err);
	memcpy(copy, text, sig->prefix_len);
	sig->prefix = copy;
	return 0;
}

/* The backend's own adjustments win over those of the packs that it extends. */
static bool adjusted(const builder *b, sw_sig *sig, const char *owner)
{
	for (size_t i = b->n_own; i-- > 0;) {
		const sw_pack_def *d = b->own[i];
		if (strcmp(d->backend, owner) == 0)
			continue; /* a pack adjusts what it takes over, not its own */
		for (uint16_t k = 0; k < d->n_adjusts; k++) {
			const sw_adjust_def *a = &d->adjusts[k];
			if (!adjust_applies(a, sig->def->id))
				continue;
			if (a->disable)
				return false;
			if (a->decides >= 0) {
				sig->decides = (uint8_t)a->decides;
				sig->with = a->with;
			}
			if (a->confidence >= 0)
				sig->confidence = (uint8_t)a->confidence;
		}
	}
	return true;
}

/* True where the id is new; false where an earlier definition has it. */
static bool take_id(builder *b, const char *id)
{
	uint32_t h = 2166136261u;
	for (const char *p = id; *p; p++)
		h = (h ^ (unsigned char)*p) * 16777619u;
	for (size_t i = h & b->ids_mask;; i = (i + 1) & b->ids_mask) {
		if (!b->ids[i]) {
			b->ids[i] = id;
			return true;
		}
		if (strcmp(b->ids[i], id) == 0)
			return false;
	}
}

static void sig_free(sw_sig *sig)
{
	sw_regex_free(atomic_load(&sig->code));
	memset(sig, 0, sizeof(*sig));
}

static int add_sig(builder *b, const sw_pack_def *from, const sw_sig_def *def)
{
	sw_pack *pack = b->pack;
	const char *names[32];
	size_t n_names = runner_names(b, names, 32);
	bool wants = wants_runner(def);
	/* The first definition of an id wins: user packs stand before the built-in ones. */
	if (!take_id(b, def->id) || (!n_names && wants))
		return 0;
	if (pack->n_sigs == SW_SIGS_MAX)
		return sw_error_set(b->err, SW_EPACK, "more than %d signatures", SW_SIGS_MAX);
	sw_sig *sig = &pack->sigs[pack->n_sigs];
	memset(sig, 0, sizeof(*sig));
	sig->def = def;
	sig->decides = (uint8_t)def->decides;
	sig->with = def->with;
	sig->confidence = (uint8_t)def->confidence;
	sig->position =
	    (uint8_t)(def->position >= 0 ? def->position : (int8_t)from->fatal_position);
	sig->exit_only = !def->n_literals && !def->regex;
	if (!adjusted(b, sig, from->backend))
		return 0;
	int rc = expand(b, sig, wants, names, n_names);
	if (!rc)
		rc = find_prefix(b, sig);
	if (!rc)
		rc = gate_of(b, sig, pack->n_sigs);
	if (rc) {
		sig_free(sig);
		return rc;
	}
	if (def->kind == SW_KIND_FATAL && !sig->exit_only) {
		pack->needs_first |=
		    sig->position == SW_POSITION_FIRST || sig->position == SW_POSITION_ALONE;
		pack->needs_last |=
		    sig->position == SW_POSITION_LAST || sig->position == SW_POSITION_ALONE;
	}
	pack->n_sigs++;
	return 0;
}

static int add_prefixes(builder *b, const sw_pack_def *d)
{
	sw_pack *pack = b->pack;
	sw_text *t = realloc(pack->prefixes, (pack->n_prefixes + d->n_prefixes + 1u) * sizeof(*t));
	if (!t)
		return out_of_memory(b->err);
	pack->prefixes = t;
	sw_pattern *pp =
	    realloc(pack->prefix_patterns,
	            (pack->n_prefix_patterns + d->n_prefix_regexes + 1u) * sizeof(*pp));
	if (!pp)
		return out_of_memory(b->err);
	pack->prefix_patterns = pp;
	for (uint16_t i = 0; i < d->n_prefixes; i++) {
		char *z = fold_copy(pack, d->prefixes[i]);
		if (!z)
			return out_of_memory(b->err);
		t[pack->n_prefixes++] = (sw_text){z, (uint32_t)strlen(z)};
	}
	for (uint16_t i = 0; i < d->n_prefix_regexes; i++) {
		char *z = strdup(d->prefix_regexes[i]);
		if (!z)
			return out_of_memory(b->err);
		memset(&pp[pack->n_prefix_patterns], 0, sizeof(*pp));
		pp[pack->n_prefix_patterns].source = z;
		pp[pack->n_prefix_patterns].prefix_len =
		    sw_regex_prefix(z, pp[pack->n_prefix_patterns].prefix);
		pack->n_prefix_patterns++;
	}
	return 0;
}

/* Collects the definitions of a backend and what they extend, in matching order. origin: of the
 * pack that extends it. */
static int collect(builder *b, const char *backend, const char *origin)
{
	for (size_t i = 0; i < b->n_visited; i++)
		if (strcmp(b->visited[i], backend) == 0)
			return 0;
	if (b->n_visited == 32)
		return sw_error_set(b->err, SW_EPACK, "%s extends too many packs",
		                    b->pack->backend);
	b->visited[b->n_visited++] = backend;
	size_t first = b->n_own;
	for (size_t i = 0; i < b->set->n_defs; i++) {
		const sw_pack_def *d = b->set->defs[i];
		if (strcmp(d->backend, backend) != 0)
			continue;
		if (b->n_own == sizeof(b->own) / sizeof(b->own[0]))
			return sw_error_set(b->err, SW_EPACK, "%s: too many pack files", backend);
		b->own[b->n_own++] = d;
	}
	size_t last = b->n_own;
	if (first == last && strcmp(backend, COMMON) != 0) {
		sw_error_set(b->err, SW_ENOTFOUND, "no pack for backend \"%.64s\"", backend);
		return sw_error_more(b->err, origin, NULL,
		                     "`sandwitness signatures list` shows the backends known");
	}
	for (size_t i = first; i < last; i++) {
		for (uint16_t k = 0; k < b->own[i]->n_extends; k++) {
			int rc = collect(b, b->own[i]->extends[k], b->own[i]->origin);
			if (rc)
				return rc;
		}
	}
	return 0;
}

static int index_kinds(sw_pack *pack)
{
	for (uint32_t i = 0; i < pack->n_sigs; i++)
		pack->n_order[pack->sigs[i].def->kind]++;
	for (int k = 0; k < SW_KIND_COUNT; k++) {
		pack->order[k] = calloc(pack->n_order[k] + 1u, sizeof(uint16_t));
		if (!pack->order[k])
			return SW_ENOMEM;
		pack->n_order[k] = 0;
	}
	pack->denial_words = calloc(pack->n_sigs / 32 + 1u, sizeof(*pack->denial_words));
	if (!pack->denial_words)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < pack->n_sigs; i++) {
		sw_kind k = pack->sigs[i].def->kind;
		pack->order[k][pack->n_order[k]++] = (uint16_t)i;
		if (k == SW_KIND_DENIAL)
			pack->denial_words[i / 32] |= 1u << (i % 32);
	}
	return 0;
}

/* Vetoes and notices are looked at on candidate lines only, so they stay out of the filter. */
static bool filtered(const sw_sig *sig)
{
	return sig->def->kind != SW_KIND_VETO && sig->def->kind != SW_KIND_INFORMATIONAL;
}

static bool has_short_literal(const sw_sig *sig)
{
	for (uint16_t k = 0; k < sig->n_literals; k++)
		if (sig->literal_lens[k] < SW_LITERAL_MIN)
			return true;
	return false;
}

static int build_filter(sw_pack *pack, sw_filter *filter, bool (*wanted)(const sw_sig *))
{
	size_t n = 0, at = 0;
	for (uint32_t i = 0; i < pack->n_sigs; i++)
		n += wanted(&pack->sigs[i]) ? pack->sigs[i].n_literals : 0;
	if (n > SW_LITERALS_MAX)
		return SW_EPACK;
	sw_literal_use *uses = calloc(n + 1, sizeof(*uses));
	if (!uses)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < pack->n_sigs; i++) {
		const sw_sig *sig = &pack->sigs[i];
		for (uint16_t k = 0; wanted(sig) && k < sig->n_literals; k++)
			uses[at++] = (sw_literal_use){.text = sig->literals[k],
			                              .len = sig->literal_lens[k],
			                              .sig = i,
			                              .place = sig->places ? sig->places[k]
			                                                   : SW_PLACE_UNKNOWN};
	}
	int rc = sw_filter_build(filter, uses, (uint32_t)n);
	free(uses);
	return rc;
}

static bool filtered_veto(const sw_sig *sig)
{
	return sig->def->kind == SW_KIND_VETO && !has_short_literal(sig);
}

static int build_vetoes(sw_pack *pack)
{
	pack->short_vetoes = calloc(pack->n_order[SW_KIND_VETO] + 1u, sizeof(*pack->short_vetoes));
	if (!pack->short_vetoes)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < pack->n_sigs; i++)
		if (pack->sigs[i].def->kind == SW_KIND_VETO && has_short_literal(&pack->sigs[i]))
			pack->short_vetoes[pack->n_short_vetoes++] = (uint16_t)i;
	return build_filter(pack, &pack->vetoes, filtered_veto);
}

static uint32_t total_sigs(const builder *b)
{
	uint32_t n = 1;
	for (size_t i = 0; i < b->n_own; i++)
		n += b->own[i]->n_sigs;
	return n;
}

static uint32_t most_sigs(const builder *b)
{
	uint32_t n = total_sigs(b);
	return n < SW_SIGS_MAX ? n : SW_SIGS_MAX;
}

static int fill(builder *b)
{
	sw_pack *pack = b->pack;
	int rc = collect(b, pack->backend, NULL);
	if (!rc && strcmp(pack->backend, COMMON) != 0)
		rc = collect(b, COMMON, NULL);
	if (rc)
		return rc;
	pack->sigs = calloc(most_sigs(b) + 1u, sizeof(*pack->sigs));
	size_t slots = 64;
	while (slots < 2 * (size_t)total_sigs(b))
		slots *= 2;
	b->ids = calloc(slots, sizeof(*b->ids));
	b->ids_mask = slots - 1;
	if (!pack->sigs || !b->ids)
		return out_of_memory(b->err);
	for (size_t i = 0; i < b->n_own && !rc; i++) {
		const sw_pack_def *d = b->own[i];
		if (strcmp(d->backend, pack->backend) == 0) {
			pack->windows |= d->windows;
			pack->utf16le |= d->utf16le;
			pack->unconfined |= d->unconfined;
		}
		pack->priority_prefix |= d->priority_prefix;
		rc = add_prefixes(b, d);
		for (uint16_t k = 0; k < d->n_sigs && !rc; k++)
			rc = add_sig(b, d, &d->sigs[k]);
	}
	if (!rc)
		rc = index_kinds(pack);
	if (!rc)
		rc = build_filter(pack, &pack->filter, filtered);
	if (!rc)
		rc = build_vetoes(pack);
	if (rc == SW_ENOMEM)
		return out_of_memory(b->err);
	return rc;
}

int sw_pack_new(sw_pack **out, const sw_pack_set *set, const char *backend, sw_error *err)
{
	sw_pack *pack = calloc(1, sizeof(*pack));
	if (!pack)
		return out_of_memory(err);
	pack->backend = strdup(backend);
	if (!pack->backend) {
		free(pack);
		return out_of_memory(err);
	}
	builder b = {.pack = pack, .set = set, .err = err};
	int rc = fill(&b);
	free(b.ids);
	if (rc) {
		sw_pack_free(pack);
		return rc;
	}
	*out = pack;
	return 0;
}

void sw_pack_free(sw_pack *pack)
{
	if (!pack)
		return;
	for (uint32_t i = 0; i < pack->n_sigs; i++)
		sig_free(&pack->sigs[i]);
	for (uint32_t i = 0; i < pack->n_prefix_patterns; i++) {
		free(pack->prefix_patterns[i].source);
		sw_regex_free(atomic_load(&pack->prefix_patterns[i].code));
	}
	for (int k = 0; k < SW_KIND_COUNT; k++)
		free(pack->order[k]);
	sw_filter_free(&pack->filter);
	sw_filter_free(&pack->vetoes);
	free(pack->short_vetoes);
	free(pack->denial_words);
	for (sw_chunk *c = pack->chunks, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(pack->prefixes);
	free(pack->prefix_patterns);
	free(pack->sigs);
	free(pack->backend);
	free(pack);
}

const char *sw_pack_backend(const sw_pack *pack)
{
	return pack->backend;
}

size_t sw_pack_sig_count(const sw_pack *pack)
{
	return pack->n_sigs;
}

const sw_sig_def *sw_pack_sig(const sw_pack *pack, size_t i)
{
	return i < pack->n_sigs ? pack->sigs[i].def : NULL;
}

static int does_not_compile(sw_error *err, const sw_regex_error *e, const char *what,
                            const char *origin)
{
	if (!e->why)
		return out_of_memory(err);
	sw_error_set(err, SW_EPACK, "%s: the regex does not compile at byte %zu: %s", what, e->at,
	             e->why);
	return sw_error_more(err, origin, NULL, "mend the pattern; see docs/signatures.md");
}

int sw_pack_compile_all(sw_pack *pack, sw_error *err)
{
	sw_regex_error e;
	for (uint32_t i = 0; i < pack->n_prefix_patterns; i++) {
		sw_pattern *p = &pack->prefix_patterns[i];
		if (atomic_load(&p->code))
			continue;
		sw_regex *code = sw_regex_new(p->source, SW_REGEX_ANCHORED, &e);
		if (!code)
			return does_not_compile(err, &e, p->source, pack->backend);
		atomic_store(&p->code, code);
	}
	for (uint32_t i = 0; i < pack->n_sigs; i++) {
		const sw_sig *sig = &pack->sigs[i];
		bool no_memory = false;
		if (!sig->regex || sw_sig_code(sig, &no_memory))
			continue;
		e = (sw_regex_error){0};
		if (!no_memory)
			sw_regex_free(
			    sw_regex_new(sig->regex, sw_kind_regex_flags(sig->def->kind), &e));
		return does_not_compile(err, &e, sig->def->id, sig->def->origin);
	}
	return 0;
}
