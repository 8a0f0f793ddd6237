/*
 * The patterns' own machine against PCRE2: every pattern of the built-in packs and a list of
 * shapes, on samples, near misses, and lines put together from pieces; and its bound: a small
 * multiple of (instructions) x (bytes), whatever the line.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core.h"
#include "signatures.h"

#define LINE_MAX_BYTES 4000

static uint64_t seed = 7;

static uint32_t dice(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return n ? (uint32_t)(seed >> 33) % n : 0;
}

typedef struct pattern {
	const char *source;
	sw_regex *fast;
	pcre2_code *slow;
	unsigned flags;
} pattern;

static pattern *patterns;
static size_t n_patterns;
static const char **pieces; /* samples, literals and separators */
static size_t n_pieces, compared, matched;
static sw_regex_work *work;
static pcre2_match_data *data;
static pcre2_match_context *limits;

static pcre2_code *with_pcre2(const char *source, unsigned flags)
{
	int e;
	PCRE2_SIZE at;
	uint32_t options = PCRE2_CASELESS | PCRE2_DOLLAR_ENDONLY;
	if (flags & SW_REGEX_ANCHORED)
		options |= PCRE2_ANCHORED;
	if (flags & SW_REGEX_WHOLE)
		options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED;
	pcre2_code *code =
	    pcre2_compile((PCRE2_SPTR)source, PCRE2_ZERO_TERMINATED, options, &e, &at, NULL);
	if (code)
		pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
	return code;
}

static void add_pattern(const char *source, unsigned flags)
{
	for (size_t i = 0; i < n_patterns; i++)
		if (patterns[i].flags == flags && strcmp(patterns[i].source, source) == 0)
			return;
	sw_regex_error e;
	pattern p = {.source = strdup(source), .flags = flags};
	p.fast = sw_regex_new(source, flags, &e);
	if (!p.fast)
		fail_msg("%s: at %zu: %s", source, e.at, e.why);
	p.slow = with_pcre2(source, flags);
	if (!p.slow)
		fail_msg("PCRE2 refuses %s", source);
	patterns = realloc(patterns, (n_patterns + 1) * sizeof(*patterns));
	assert_non_null(patterns);
	patterns[n_patterns++] = p;
}

static void add_piece(const char *z)
{
	pieces = realloc(pieces, (n_pieces + 1) * sizeof(*pieces));
	assert_non_null(pieces);
	pieces[n_pieces++] = z;
}

static void show(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];
		print_message(c < 32 || c > 126 || c == '\\' ? "\\x%02x" : "%c", c);
	}
	print_message("\n");
}

static void compare(const pattern *p, const char *line, size_t n)
{
	char folded[LINE_MAX_BYTES + 1];
	sw_regex_spans spans;
	assert_true(n <= LINE_MAX_BYTES);
	for (size_t i = 0; i < n; i++)
		folded[i] = (char)sw_fold((unsigned char)line[i]);
	int want = pcre2_match(p->slow, (PCRE2_SPTR)line, n, 0, 0, data, limits);
	if (want < 0 && want != PCRE2_ERROR_NOMATCH)
		return; /* more than PCRE2 was allowed */
	uint64_t before = sw_regex_steps(work);
	int got = sw_regex_match(p->fast, work, folded, n, &spans);
	uint64_t steps = sw_regex_steps(work) - before;
	compared++;
	matched += got == 1;
	bool same = got == (want >= 0);
	PCRE2_SIZE *ov = pcre2_get_ovector_pointer(data);
	for (int g = 0; same && got && g < SW_REGEX_GROUPS; g++) {
		int k =
		    pcre2_substring_number_from_name(p->slow, (PCRE2_SPTR)sw_regex_group_names[g]);
		if (k > 0 && ov[2 * k] != PCRE2_UNSET)
			same = spans.at[2 * g] == ov[2 * k] && spans.at[2 * g + 1] == ov[2 * k + 1];
		else
			same = spans.at[2 * g] == SIZE_MAX;
	}
	if (!same || steps > SW_REGEX_STEPS * sw_regex_size(p->fast) * (n + 2)) {
		show(line, n);
		fail_msg("%s: PCRE2 %d, ours %d, %llu steps", p->source, want, got,
		         (unsigned long long)steps);
	}
}

static size_t add_text(char *line, size_t n, const char *z, size_t len)
{
	if (len > LINE_MAX_BYTES - n)
		len = LINE_MAX_BYTES - n;
	memcpy(line + n, z, len);
	return n + len;
}

/* A line of pieces, cut, doubled and mutated. */
static size_t make_line(char *line, size_t most)
{
	size_t n = 0;
	for (uint32_t k = 1 + dice(4); k > 0; k--) {
		const char *z = pieces[dice((uint32_t)n_pieces)];
		size_t len = strlen(z), from = dice(3) ? 0 : dice((uint32_t)len + 1);
		size_t take = dice(3) ? len - from : dice((uint32_t)(len - from) + 1);
		for (uint32_t times = dice(6) ? 1 : 1 + dice(30); times > 0; times--)
			n = add_text(line, n, z + from, take);
	}
	n = n > most ? most : n;
	for (uint32_t k = dice(4); n && k > 0; k--)
		line[dice((uint32_t)n)] = " :'\"/.=()[]x0A\0\xe2\t-"[dice(19)];
	return n;
}

static void collect_built_in(void)
{
	const sw_pack_set *set = sw_builtin_packs();
	for (size_t i = 0; i < set->n_defs; i++) {
		sw_pack *pack;
		assert_int_equal(sw_pack_new(&pack, set, set->defs[i]->backend, NULL), 0);
		for (uint32_t k = 0; k < pack->n_sigs; k++)
			if (pack->sigs[k].regex)
				add_pattern(pack->sigs[k].regex,
				            sw_kind_regex_flags(pack->sigs[k].def->kind));
		for (uint32_t k = 0; k < pack->n_prefix_patterns; k++)
			add_pattern(pack->prefix_patterns[k].source, SW_REGEX_ANCHORED);
		for (uint32_t k = 0; k < pack->n_sigs; k++)
			for (uint16_t l = 0; l < pack->sigs[k].n_literals; l++)
				add_piece(strdup(pack->sigs[k].literals[l]));
		sw_pack_free(pack);
	}
}

static void collect_samples(void)
{
	static const char *const more[] = {
	    "=/",
	    "=a/",
	    " /a",
	    "a/",
	    "[../",
	    "'a",
	    "a: ",
	    "connect to a",
	    " a.b.c.d",
	    "/srv/ws/file.txt",
	    "': ",
	    ": ",
	    " -> ",
	    "(",
	    ")",
	    "\"",
	    "unable to ",
	    "open ",
	    ": permission denied",
	    ": operation not permitted",
	    ": read-only file system",
	    " permission denied for table",
	    "host.example.org:443",
	    "[Errno 13] ",
	    "x",
	};
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		for (int k = 0; k < 40; k++)
			add_piece(more[i]);
	const sw_pack_file *files;
	size_t n = sw_builtin_files(&files);
	for (size_t f = 0; f < n; f++)
		for (size_t i = 0; i < files[f].def->n_sigs; i++) {
			const sw_sig_info *info = &files[f].infos[i];
			for (size_t k = 0; k < info->n_samples; k++)
				add_piece(info->samples[k].line);
			for (size_t k = 0; k < info->n_near_misses; k++)
				add_piece(info->near_misses[k].line);
		}
}

static void built_in_patterns_agree(void **state)
{
	char line[LINE_MAX_BYTES];
	const char *rounds = getenv("SW_REGEX_ROUNDS");
	long n = rounds ? atol(rounds) : 200;
	for (size_t i = 0; i < n_pieces; i++) {
		size_t len = strlen(pieces[i]);
		if (len > LINE_MAX_BYTES || i % 40 != (size_t)dice(40))
			continue;
		sw_regex_work_line(work);
		for (size_t k = 0; k < n_patterns; k++)
			compare(&patterns[k], pieces[i], len);
	}
	for (long r = 0; r < n; r++) {
		size_t len = make_line(line, dice(20) ? 400 : LINE_MAX_BYTES);
		sw_regex_work_line(work);
		for (size_t k = 0; k < n_patterns; k++)
			compare(&patterns[k], line, len);
	}
	print_message("%zu patterns, %zu comparisons, %zu matches\n", n_patterns, compared,
	              matched);
	assert_true(matched > 1000);
}

/* Shapes that packs may hold, on short lines of the bytes that matter to them. */
static void shapes_agree(void **state)
{
	static const char *const shapes[] = {
	    "a",
	    "abc",
	    "a|b",
	    "ab|a",
	    "(?:a|ab)(?:c|bcd)",
	    "a*b",
	    "a+?b",
	    "a{2,3}b",
	    "a{2,}?b",
	    "a?b?c",
	    "a++b",
	    "[ab]*+c",
	    "(?:ab)*c",
	    "(?:a|b)+c",
	    "(?:ab?){2,3}c",
	    "^a|b$",
	    "^(?:a|b)*$",
	    "\\ba+\\b",
	    "\\Ba",
	    "(?=ab)a",
	    "(?!ab)a",
	    "(?<=a)b",
	    "(?<!a)b",
	    "(?<!ab)c",
	    "a(?=.*c)b",
	    "(?<path>a+)b",
	    "(?<path>a*?)b",
	    "(?<path>a|ab)(?<host>c|bcd)",
	    "(?<path>(?:ab?)+)c",
	    "(?:(?<path>a)|b)+c",
	    "(?<path>[^ab]+)a",
	    "(?<path>.+)b",
	    "[a-c]{0,4}c",
	    "[^a]b",
	    "[]a]b",
	    "[^]a]b",
	    "[a-]b",
	    "[\\w-]+ ",
	    "[[:alpha:]]c",
	    "\\x61\\x{62}",
	    "a.c",
	    "\\d\\s\\S",
	    "(?:a(?:b(?:c)?)?)?a",
	    "(?=(?:a|b){2}c).",
	    "(?!.*c)a",
	    "(?:a{1,2}){2}b",
	    "(?:^|b)a+",
	    "a(?:$|b)",
	    "(?<syscall>\\w+)\\(a",
	    "x{0}a",
	    "(?:ab){0}c",
	    "(?:a|)b",
	    "(a)(b)",
	    "\\Aa",
	    "a\\z",
	    "\\Na",
	};
	char line[16];
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		for (unsigned flags = 0; flags <= SW_REGEX_WHOLE; flags++) {
			add_pattern(shapes[i], flags);
			for (int r = 0; r < 3000; r++) {
				size_t len = dice(sizeof(line));
				for (size_t k = 0; k < len; k++)
					line[k] = "aabbcC A(-]1"[dice(r % 2 ? 5 : 12)];
				sw_regex_work_line(work);
				compare(&patterns[n_patterns - 1], line, len);
			}
		}
	}
}

static void what_has_no_bound_is_refused(void **state)
{
	static const struct {
		const char *source, *why;
	} rows[] = {
	    {"(a)\\1", "back-reference"},
	    {"(?R)a", "recursion"},
	    {"(?1)(a)", "recursion"},
	    {"(*UTF)a", "a verb"},
	    {"a(*SKIP)b", "a verb"},
	    {"a(?C1)b", "a callout"},
	    {"(?(1)a|b)", "a condition"},
	    {"(?>a*)b", "an atomic group"},
	    {"(?i)a", "flags"},
	    {"a\\Cb", "an escape"},
	    {"[z", "missing"},
	    {"(a", "missing"},
	    {"a)", "without its"},
	    {"*a", "nothing to repeat"},
	    {"a\\", "a backslash"},
	    {"[b-a]", "backwards"},
	    {"a{5,2}", "numbers"},
	    {"(?:a?)*b", "match nothing"},
	    {"(?=(?:ab)*)c", "look-around"},
	    {"(?<=a+)b", "several lengths"},
	    {"(?<nope>a)", "are called"},
	    {"(?<path>a)(?<path>b)", "two groups"},
	    {"(?:(?:ab|c){99}d){99}", "too large"},
	    {"a**", "repeat of a repeat"},
	    {"\\p{L}", "an escape"},
	    {"a{,3}", "write {0,n}"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sw_regex_error e = {0};
		sw_regex *re = sw_regex_new(rows[i].source, 0, &e);
		if (re || !e.why || !strstr(e.why, rows[i].why) || e.at > strlen(rows[i].source))
			fail_msg("%s: %s at %zu", rows[i].source, e.why ? e.why : "accepted", e.at);
	}
}

/* Near misses that cost a backtracking matcher the square of the line or more. */
static void steps_are_bounded(void **state)
{
	static const char *const units[] = {
	    "=/",   "=a/",     " /a",          "=./", "a: ",  "'a",    "a.",
	    "[../", "open a ", "connect to a", "x",   "-> a", "\"a\" "};
	static const char *const ends[] = {
	    " permission denied operation not permitted read-only file system",
	    ": permission denied for : operation not permitted for : read-only file system\"",
	    "' : permission denied\\: operation not permitted\\: read-only file system\\"};
	/* sanitizers slow it tenfold; the bound is the same for shorter lines */
	size_t n = getenv("ASAN_BUILD") || getenv("TSAN_BUILD") ? 6000 : 60000;
	char *line = malloc(n + 200);
	assert_non_null(line);
	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		for (size_t e = 0; e < sizeof(ends) / sizeof(ends[0]); e++) {
			size_t len = 0, unit = strlen(units[u]);
			for (; len + unit <= n; len += unit)
				memcpy(line + len, units[u], unit);
			memcpy(line + len, ends[e], strlen(ends[e]));
			len += strlen(ends[e]);
			sw_regex_work_line(work);
			for (size_t k = 0; k < n_patterns; k++) {
				uint64_t before = sw_regex_steps(work);
				assert_true(
				    sw_regex_match(patterns[k].fast, work, line, len, NULL) >= 0);
				uint64_t steps = sw_regex_steps(work) - before;
				if (steps > 200 * (uint64_t)len)
					fail_msg("%s: %s...%s: %llu steps for %zu bytes",
					         patterns[k].source, units[u], ends[e],
					         (unsigned long long)steps, len);
			}
		}
	}
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(built_in_patterns_agree),
	    cmocka_unit_test(steps_are_bounded),
	    cmocka_unit_test(shapes_agree),
	    cmocka_unit_test(what_has_no_bound_is_refused),
	};
	work = sw_regex_work_new();
	data = pcre2_match_data_create(64, NULL);
	limits = pcre2_match_context_create(NULL);
	if (!work || !data || !limits)
		return 1;
	pcre2_set_match_limit(limits, 1000000);
	collect_built_in();
	collect_samples();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
