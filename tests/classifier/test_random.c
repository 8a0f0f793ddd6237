/*
 * The fast classifier against the oracle: random outputs made of the packs' own wordings and of
 * what disturbs them, mutated, and cut at every place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "packs.h"
#include "reference.h"

static uint64_t seed;

static uint32_t dice(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static const char *const words[] = {"box: uid map: Permission denied",
                                    "box: execvp /bin/no such: No such file",
                                    "box: child died too early",
                                    "box: connection lost",
                                    "box: apply: Operation not permitted",
                                    "box: apply: fine",
                                    "box: odd end",
                                    "cannot start container",
                                    "box: something else",
                                    "box: entering the box",
                                    "box: pid 4711",
                                    "BOX: UID MAP",
                                    "box: warning: no seccomp",
                                    "it runs without isolation",
                                    "box: run runs without isolation",
                                    "boxhelper: x: Read-only file system",
                                    "box[12]: y",
                                    "<3>box: uid map",
                                    "<9>box: uid map",
                                    "<3>",
                                    "<",
                                    "touch: cannot touch '/etc/x': Read-only file system",
                                    "EROFS",
                                    "erofs: Read-Only File System",
                                    "connect: Network is unreachable",
                                    "Could not resolve host: files.example.org",
                                    "mount(): operation not permitted",
                                    "sh: 1: cannot create /etc/y: Permission denied",
                                    "cat: ../up/z: Permission denied",
                                    "/srv/ws/a: Permission denied",
                                    "Permission denied (publickey)",
                                    "permission denied for column of table",
                                    "EROFS of table",
                                    "write refused by policy",
                                    "mode forbids",
                                    "Out of memory",
                                    "No space left on device",
                                    "bash: line 1: box: command not found",
                                    "box.static: command not found",
                                    "jail: setup failed",
                                    "jail: speaks any time",
                                    "jail notice",
                                    "head: setup",
                                    "tail: setup",
                                    "outer: boom",
                                    "winbox: x",
                                    "hello world",
                                    "make: *** [all] Error 2",
                                    "\x1b[1;31m",
                                    "\x1b[0m",
                                    "\x1b",
                                    "\x1b]0;t\x07",
                                    "\x1b]0;unterminated",
                                    "\x1bP+q\x1b\\",
                                    "\x1b(B",
                                    "\x1bM",
                                    "\x1b[",
                                    " ",
                                    "\t",
                                    "\n",
                                    "\n",
                                    "\n",
                                    "\n",
                                    "\n",
                                    "\r",
                                    "\r\n",
                                    "\n\n",
                                    "",
                                    "'",
                                    ": ",
                                    "\xff\xfe",
                                    "\xc3\xa4",
                                    "box",
                                    "box: ",
                                    "bo",
                                    "x: uid map"};
#define N_WORDS (sizeof(words) / sizeof(words[0]))

typedef struct buffer {
	char *p;
	size_t n, cap;
} buffer;

static void add(buffer *b, const void *p, size_t n)
{
	if (!b->p || b->n + n > b->cap) {
		b->cap = (b->n + n) * 2 + 64;
		b->p = realloc(b->p, b->cap);
		assert_non_null(b->p);
	}
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

/* Mostly whole lines, so that most inputs mean something; some noise. */
static void make_output(buffer *b)
{
	b->n = 0;
	for (uint32_t i = dice(12); i > 0; i--) {
		for (uint32_t k = 1 + dice(dice(3) ? 1 : 4); k > 0; k--) {
			const char *w = words[dice(N_WORDS)];
			add(b, w, strlen(w));
		}
		if (dice(12) == 0)
			add(b, "\0", 1);
		if (dice(8))
			add(b, "\n", 1);
	}
	/* Mutations: flip, drop, double, case. */
	for (uint32_t i = dice(4); i > 0 && b->n; i--) {
		size_t at = dice((uint32_t)b->n);
		switch (dice(5)) {
		case 0:
			b->p[at] = (char)dice(256);
			break;
		case 1:
			memmove(b->p + at, b->p + at + 1, b->n - at - 1);
			b->n--;
			break;
		case 2:
			add(b, b->p + at, 1);
			break;
		case 3:
			b->p[at] ^= 0x20;
			break;
		default:
			b->p[at] = '\n';
			break;
		}
	}
}

static const char *const backends[] = {"box",  "box",   "box", "jail", "head",
                                       "tail", "outer", "win", "free"};
static const int64_t exits[] = {1,   1,  1,   0,   2,   9,   77,  125,        126,        127,
                                137, -9, 153, 159, -31, 217, 255, 0xC0000142, -1073741502};

typedef struct setting {
	const char *backend;
	sw_facts facts;
	sw_exit exit;
	sw_started started;
	sw_source source;
} setting;

static void make_setting(setting *s)
{
	static const sw_str roots[] = {{"/srv/ws", 7}, {"/tmp/", 5}},
	                    accessible[] = {{"/etc", 4}, {"/srv", 4}};
	memset(s, 0, sizeof(*s));
	s->backend = backends[dice(sizeof(backends) / sizeof(backends[0]))];
	s->exit = sw_exit_code(exits[dice(sizeof(exits) / sizeof(exits[0]))]);
	if (dice(12) == 0)
		s->exit = (sw_exit){.signal = (int)(1 + dice(40))};
	if (dice(20) == 0)
		s->exit.timed_out = true;
	if (dice(40) == 0)
		s->exit = (sw_exit){.timed_out = true};
	s->started = (sw_started)(dice(3) ? 0 : dice(SW_STARTED_COUNT));
	s->source = s->started ? SW_SOURCE_STATUS_FD : SW_SOURCE_NONE;
	s->facts.network = (sw_network)dice(SW_NETWORK_COUNT);
	s->facts.mode = (sw_mode)dice(dice(10) ? 3 : SW_MODE_COUNT);
	if (dice(2)) {
		s->facts.writable_roots = roots;
		s->facts.n_writable_roots = 1 + dice(2);
	}
	if (dice(2)) {
		s->facts.accessible = accessible;
		s->facts.n_accessible = 1 + dice(2);
	}
	if (dice(2))
		s->facts.cwd = SW_STR("/srv/ws/deep");
	s->facts.runner_lost = dice(10) == 0;
}

static sw_result *one_shot(const setting *s, const buffer *b)
{
	sw_result *r = NULL;
	assert_int_equal(sw_classify(test_pack(s->backend), &s->facts, s->exit, s->started,
	                             s->source, b->p, b->n, &r, NULL),
	                 0);
	return r;
}

static sw_result *streamed(const setting *s, const buffer *b, size_t cut, size_t step)
{
	sw_scan *scan = NULL;
	sw_result *r = NULL;
	assert_int_equal(sw_scan_begin(&scan, test_pack(s->backend), &s->facts, NULL), 0);
	for (size_t at = 0; at < b->n;) {
		size_t n = cut ? (at < cut ? cut : b->n - at) : step;
		if (n > b->n - at)
			n = b->n - at;
		/* A block of its own, so that a read behind the piece is noticed. */
		char *piece = malloc(n ? n : 1);
		assert_non_null(piece);
		memcpy(piece, b->p + at, n);
		assert_int_equal(sw_scan_feed(scan, piece, n), 0);
		free(piece);
		at += n;
	}
	assert_int_equal(sw_scan_finish(scan, s->exit, s->started, s->source, &r, NULL), 0);
	sw_scan_free(scan);
	return r;
}

static void show(const setting *s, const buffer *b, const char *why, const char *how)
{
	print_message(
	    "%s\n%s, backend %s, exit %lld signal %d, started %s, network %s, mode %s, output:\n",
	    why, how, s->backend, (long long)s->exit.code, s->exit.signal,
	    sw_started_name(s->started), sw_network_name(s->facts.network),
	    sw_mode_name(s->facts.mode));
	for (size_t i = 0; i < b->n && i < 4000; i++) {
		unsigned char c = (unsigned char)b->p[i];
		print_message(c == '\n'                        ? "\\n\n"
		              : c < 32 || c > 126 || c == '\\' ? "\\x%02x"
		                                               : "%c",
		              c);
	}
	print_message("\n");
}

static ref_pack *oracle(const char *backend)
{
	static struct {
		const char *name;
		ref_pack *pack;
	} cache[16];
	for (size_t i = 0; i < 16; i++) {
		if (cache[i].name && !strcmp(cache[i].name, backend))
			return cache[i].pack;
		if (!cache[i].name) {
			cache[i].name = backend;
			cache[i].pack = ref_pack_new(&test_packs, backend);
			assert_non_null(cache[i].pack);
			return cache[i].pack;
		}
	}
	fail();
	return NULL;
}

static bool agrees(const setting *s, const buffer *b, const ref_result *want, sw_result *got,
                   const char *how)
{
	char why[400];
	assert_false(want->gave_up);
	bool same = ref_agrees(want, got, why, sizeof(why));
	if (!same)
		show(s, b, why, how);
	sw_result_free(got);
	return same;
}

static void run(uint64_t from, uint32_t rounds, bool every_cut)
{
	buffer b = {0};
	uint32_t differ = 0;
	for (uint32_t i = 0; i < rounds && differ < 3; i++) {
		setting s;
		ref_result want;
		seed = from + i * 7919u;
		make_setting(&s);
		make_output(&b);
		ref_classify(oracle(s.backend), &s.facts, s.exit, s.started, s.source, b.p, b.n,
		             &want);
		bool same = agrees(&s, &b, &want, one_shot(&s, &b), "one call");
		if (same && every_cut) {
			for (size_t cut = 1; cut < b.n && same; cut++)
				same =
				    agrees(&s, &b, &want, streamed(&s, &b, cut, 0), "cut in two");
			same =
			    same && agrees(&s, &b, &want, streamed(&s, &b, 0, 1), "byte by byte");
		}
		differ += !same;
		ref_result_free(&want);
	}
	free(b.p);
	assert_int_equal(differ, 0);
}

static uint32_t scaled(uint32_t n)
{
	const char *share = getenv("SW_TEST_SHARE");
	if (getenv("SW_TEST_SMOKE"))
		return n / 100 + 1;
	return share ? n / (uint32_t)atoi(share) + 1 : n;
}

static void random_outputs_agree_with_the_oracle(void **state)
{
	(void)state;
	run(1, scaled(60000), false);
}

static void every_cut_agrees_with_the_oracle(void **state)
{
	(void)state;
	run(900000001, scaled(1500), true);
}

/* Long lines: windows, their overlap, escapes across their edges. */
static void long_lines_agree_with_the_oracle(void **state)
{
	static const size_t lengths[] = {65535,  65536,  65537,  61440, 69632,
	                                 126976, 126977, 131072, 200000};
	static const char *const inserts[] = {"box: uid map",   "'/etc/x': Read-only file system",
	                                      "EROFS",          "\x1b[31mEROFS",
	                                      "EROFS of table", "apply: Operation not permitted",
	                                      "No space left",  "box: warning: no seccomp",
	                                      "\x1b]0;box"};
	buffer b = {0};
	(void)state;
	for (uint32_t i = 0; i < scaled(400); i++) {
		setting s;
		ref_result want;
		seed = 77 + i * 104729u;
		make_setting(&s);
		b.n = 0;
		if (dice(2))
			add(&b, "first line\n", 11);
		size_t begin = b.n, len = lengths[dice(9)] + dice(3) - 1;
		if (dice(3) == 0)
			add(&b, "box: uid map", 12);
		while (b.n < begin + len)
			add(&b, dice(50) ? "a" : "\x1b[m", 1);
		b.n = begin + len;
		for (uint32_t k = dice(4); k > 0; k--) {
			const char *w = inserts[dice(9)];
			static const size_t edges[] = {0,     61430,  61440, 65520,
			                               65536, 122870, 126976};
			size_t at = begin + edges[dice(7)] + dice(40);
			if (at + strlen(w) < begin + len)
				memcpy(b.p + at, w, strlen(w));
		}
		if (dice(2))
			add(&b, "\n'/etc/y': Read-only file system\n", 34);
		ref_classify(oracle(s.backend), &s.facts, s.exit, s.started, s.source, b.p, b.n,
		             &want);
		bool same = agrees(&s, &b, &want, one_shot(&s, &b), "one call");
		static const size_t steps[] = {1000, 4096, 65536, 61440, 70000};
		for (int k = 0; same && k < 5; k++)
			same = agrees(&s, &b, &want, streamed(&s, &b, 0, steps[k]), "in steps");
		for (size_t cut = 65530; same && cut < 65542; cut++)
			same = agrees(&s, &b, &want, streamed(&s, &b, cut, 0),
			              "cut at a window's edge");
		ref_result_free(&want);
		assert_true(same);
	}
	free(b.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(random_outputs_agree_with_the_oracle),
	    cmocka_unit_test(every_cut_agrees_with_the_oracle),
	    cmocka_unit_test(long_lines_agree_with_the_oracle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
