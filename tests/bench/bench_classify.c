/*
 * Classification speed against what bounds it and against rivals, in one run.
 *
 *   bench-classify [--size MIB] [--rounds N] [--sigs N] [--backend B] NAME=FILE...
 *
 * Each file is repeated to the size and held in memory. Methods take turns, the best
 * of the rounds counts. Prints one tab-separated row: input, size, signatures,
 * method, GB/s, ratio to a memchr newline count of the same bytes.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef HAVE_HYPERSCAN
#include <hs/hs.h>
#endif

typedef struct input {
	char *text;
	size_t n;
} input;

typedef struct bench {
	const sw_pack *pack;
	const input *in;
	uint64_t sink; /* keeps results alive */
	pcre2_code *alternation;
	pcre2_match_data *match;
#ifdef HAVE_HYPERSCAN
	hs_database_t *database;
	hs_scratch_t *scratch;
#endif
} bench;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void memchr_lines(bench *b)
{
	const char *end = b->in->text + b->in->n;
	for (const char *p = b->in->text; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
		b->sink++;
}

static void classify(bench *b)
{
	sw_result *r;
	sw_error err;
	if (sw_classify(b->pack, NULL, sw_exit_code(1), SW_STARTED_UNKNOWN, SW_SOURCE_NONE,
	                b->in->text, b->in->n, &r, &err) == 0)
		b->sink += r->lines + (uint64_t)r->verdict;
	sw_result_free(r);
}

/* The filter alone: literals found, nothing done about them. */
static bool count_hit(void *payload, uint32_t literal, size_t at)
{
	(void)literal;
	(void)at;
	((bench *)payload)->sink++;
	return true;
}

static void filter_only(bench *b)
{
	sw_filter_all(&b->pack->filter, b->in->text, b->in->n, count_hit, b);
}

/* One PCRE2 alternation of all literals, compiled to machine code. */
static void pcre2_alternation(bench *b)
{
	size_t at = 0;
	size_t n =
	    b->in->n < (4u << 20) ? b->in->n : 4u << 20; /* slow: a part, scaled by the caller */
	while (at < n && pcre2_match(b->alternation, (PCRE2_SPTR)b->in->text, n, at, 0, b->match,
	                             NULL) >= 0) {
		at = pcre2_get_ovector_pointer(b->match)[1];
		b->sink++;
	}
}

static void make_alternation(bench *b)
{
	size_t size = 16, len = 0;
	for (uint32_t i = 0; i < b->pack->filter.n_literals; i++)
		size += (size_t)b->pack->filter.literals[i].len + 8;
	char *z = malloc(size);
	for (uint32_t i = 0; i < b->pack->filter.n_literals; i++)
		len += (size_t)sprintf(z + len, "%s\\Q%s\\E", i ? "|" : "",
		                       b->pack->filter.literals[i].text);
	int e;
	PCRE2_SIZE o;
	b->alternation =
	    pcre2_compile((PCRE2_SPTR)z, len, PCRE2_CASELESS | PCRE2_NEVER_UTF, &e, &o, NULL);
	b->match = pcre2_match_data_create(2, NULL);
	if (b->alternation)
		pcre2_jit_compile(b->alternation, PCRE2_JIT_COMPLETE);
	free(z);
}

/* What runtimes do today: a few keywords, each looked for in each lower-cased line. */
static uint64_t keywords(const input *in, const char *const *words, size_t n_words,
                         const char *prefix)
{
	static char line[65536];
	uint64_t hits = 0;
	const char *end = in->text + in->n;
	for (const char *p = in->text; p < end;) {
		const char *lf = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((lf ? lf : end) - p),
		       k = n < sizeof(line) - 1 ? n : sizeof(line) - 1;
		for (size_t i = 0; i < k; i++)
			line[i] = (char)sw_fold((unsigned char)p[i]);
		line[k] = '\0';
		if (prefix && strncmp(line, prefix, strlen(prefix)) == 0)
			hits++;
		for (size_t w = 0; w < n_words; w++)
			hits += strstr(line, words[w]) != NULL;
		p += n + 1;
	}
	return hits;
}

static void three_keywords(bench *b)
{
	static const char *const words[] = {"read-only file system", "permission denied",
	                                    "operation not permitted"};
	b->sink += keywords(b->in, words, 3, "bwrap: ");
}

static void seven_keywords(bench *b)
{
	static const char *const words[] = {"operation not permitted",
	                                    "permission denied",
	                                    "read-only file system",
	                                    "seccomp",
	                                    "sandbox",
	                                    "landlock",
	                                    "failed to write file"};
	b->sink += keywords(b->in, words, 7, NULL);
}

#ifdef HAVE_HYPERSCAN
static int on_match(unsigned int id, unsigned long long from, unsigned long long to,
                    unsigned int flags, void *context)
{
	(void)id, (void)from, (void)to, (void)flags;
	((bench *)context)->sink++;
	return 0;
}

static void hyperscan(bench *b)
{
	hs_scan(b->database, b->in->text, (unsigned)b->in->n, 0, b->scratch, on_match, b);
}

static void make_hyperscan(bench *b)
{
	uint32_t n = b->pack->filter.n_literals;
	const char **texts = calloc(n, sizeof(*texts));
	unsigned *flags = calloc(n, sizeof(*flags)), *ids = calloc(n, sizeof(*ids));
	size_t *lens = calloc(n, sizeof(*lens));
	for (uint32_t i = 0; i < n; i++) {
		texts[i] = b->pack->filter.literals[i].text;
		lens[i] = b->pack->filter.literals[i].len;
		flags[i] = HS_FLAG_CASELESS;
		ids[i] = i;
	}
	hs_compile_error_t *e = NULL;
	if (hs_compile_lit_multi(texts, flags, ids, lens, n, HS_MODE_BLOCK, NULL, &b->database,
	                         &e) == HS_SUCCESS)
		hs_alloc_scratch(b->database, &b->scratch);
	else
		hs_free_compile_error(e);
	free(texts), free(flags), free(ids), free(lens);
}
#endif

typedef struct method {
	const char *name;
	void (*run)(bench *b);
	double part; /* of the input that it reads at most, in bytes; 0: all */
} method;

static void measure(bench *b, const char *name, size_t sigs, int rounds, const char *only)
{
	const method methods[] = {
	    {"memchr", memchr_lines, 0},
	    {"classify", classify, 0},
	    {"filter", filter_only, 0},
#ifdef HAVE_HYPERSCAN
	    {"hyperscan", hyperscan, 0},
#endif
	    {"pcre2-alternation", pcre2_alternation, 4 << 20},
	    {"three-keywords", three_keywords, 0},
	    {"seven-keywords", seven_keywords, 0},
	};
	size_t n = sizeof(methods) / sizeof(methods[0]);
	double best[16];
	for (size_t i = 0; i < n; i++)
		best[i] = 1e9;
	for (int r = 0; r < rounds; r++) {
		for (size_t i = 0; i < n; i++) {
			if (!only && r > 0 && best[i] > 0.5) /* a slow one once is enough */
				continue;
			if (only && strcmp(only, methods[i].name) != 0)
				continue;
			double t = now();
			methods[i].run(b);
			t = now() - t;
			best[i] = t < best[i] ? t : best[i];
		}
	}
	double base = (double)b->in->n / best[0];
	for (size_t i = 0; i < n; i++) {
		double bytes = methods[i].part > 0 && methods[i].part < (double)b->in->n
		                   ? methods[i].part
		                   : (double)b->in->n;
		double rate = bytes / best[i];
		printf("%s\t%zu\t%zu\t%s\t%.4f\t%.4f\n", name, b->in->n, sigs, methods[i].name,
		       rate / 1e9, rate / base);
	}
	fflush(stdout);
}

/* The first n signatures of the pack as a pack of their own. */
static sw_pack *smaller(const sw_pack *pack, size_t n, sw_pack_def *def, const sw_pack_def **defs,
                        sw_pack_set *set)
{
	sw_error err;
	sw_pack *out = NULL;
	size_t all = sw_pack_sig_count(pack), k = 0;
	sw_sig_def *sigs = calloc(n, sizeof(*sigs));
	for (size_t i = 0; i < all && k < n; i++)
		if (!strstr(sw_pack_sig(pack, i)->id, "missing")) /* those need runner names */
			sigs[k++] = *sw_pack_sig(pack, i);
	*def = (sw_pack_def){
	    .backend = "small", .title = "small", .sigs = sigs, .n_sigs = (uint16_t)k};
	*defs = def;
	*set = (sw_pack_set){defs, 1};
	if (sw_pack_new(&out, set, "small", &err))
		fprintf(stderr, "bench-classify: %s\n", err.what);
	return out;
}

static bool load(const char *path, size_t size, input *in)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return false;
	fseek(f, 0, SEEK_END);
	long n = ftell(f);
	rewind(f);
	if (n <= 0)
		return false;
	size_t rep = size > (size_t)n ? size / (size_t)n : 1;
	in->n = size < (size_t)n ? size : (size_t)n * rep;
	in->text = malloc((size_t)n * rep);
	size_t got = fread(in->text, 1, (size_t)n, f);
	fclose(f);
	for (size_t i = 1; i < rep; i++)
		memcpy(in->text + i * (size_t)n, in->text, (size_t)n);
	return got == (size_t)n;
}

/* Median time of one classification of the first `n` bytes, in microseconds. */
static void latency(const bench *b, const char *name, size_t n)
{
	enum { TIMES = 2001 };
	static double t[TIMES];
	for (int i = 0; i < TIMES; i++) {
		sw_result *r;
		sw_error err;
		double from = now();
		if (sw_classify(b->pack, NULL, sw_exit_code(1), SW_STARTED_UNKNOWN, SW_SOURCE_NONE,
		                b->in->text, n < b->in->n ? n : b->in->n, &r, &err))
			return;
		sw_result_free(r);
		t[i] = (now() - from) * 1e6;
	}
	for (int i = 1; i < TIMES; i++) /* insertion: nearly sorted, and no comparison function */
		for (int k = i; k > 0 && t[k - 1] > t[k]; k--) {
			double x = t[k];
			t[k] = t[k - 1];
			t[k - 1] = x;
		}
	printf("%s\t%zu\t%zu\tlatency-us\t%.2f\t%.2f\n", name, n, sw_pack_sig_count(b->pack),
	       t[TIMES / 2], t[0]);
}

int main(int argc, char **argv)
{
	size_t size = 64u << 20, sigs = 0, first = 0;
	bool dump = false;
	int rounds = 5;
	const char *backend = "bwrap", *only = NULL;
	for (int i = 1; i < argc; i++) {
		char *eq = strchr(argv[i], '=');
		sw_error err;
		if (strcmp(argv[i], "--size") == 0 && i + 1 < argc)
			size = (size_t)(strtod(argv[++i], NULL) * (1 << 20));
		else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
			rounds = atoi(argv[++i]);
		else if (strcmp(argv[i], "--sigs") == 0 && i + 1 < argc)
			sigs = strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
			backend = argv[++i];
		else if (strcmp(argv[i], "--latency") == 0 && i + 1 < argc)
			first = strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--literals") == 0) /* for grep -f */
			dump = true;
		else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) /* for profiles */
			only = argv[++i];
		else if (eq) {
			input in;
			sw_pack *pack, *small = NULL;
			sw_pack_def def;
			const sw_pack_def *defs;
			sw_pack_set set;
			*eq = '\0';
			if (!load(eq + 1, size, &in) ||
			    sw_pack_new(&pack, sw_builtin_packs(), backend, &err)) {
				fprintf(stderr, "bench-classify: cannot use %s\n", eq + 1);
				return 1;
			}
			if (sigs)
				small = smaller(pack, sigs, &def, &defs, &set);
			bench b = {.pack = small ? small : pack, .in = &in};
			if (dump) {
				for (uint32_t k = 0; k < b.pack->filter.n_literals; k++)
					puts(b.pack->filter.literals[k].text);
				return 0;
			}
			if (first) {
				latency(&b, argv[i], first);
				free(in.text);
				sw_pack_free(small);
				sw_pack_free(pack);
				continue;
			}
			make_alternation(&b);
#ifdef HAVE_HYPERSCAN
			make_hyperscan(&b);
#endif
			measure(&b, argv[i], sw_pack_sig_count(b.pack), rounds, only);
			pcre2_code_free(b.alternation);
			pcre2_match_data_free(b.match);
			sw_pack_free(small);
			sw_pack_free(pack);
			free(in.text);
		} else {
			fprintf(stderr, "usage: bench-classify [--size MIB] [--rounds N] [--sigs "
			                "N] [--backend B] NAME=FILE...\n");
			return 1;
		}
	}
	return 0;
}
