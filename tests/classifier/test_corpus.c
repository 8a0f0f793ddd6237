/*
 * The fast classifier against the oracle on every case of the corpus, with the built-in packs: as
 * captured, under other exits, facts and starts, under other backends, and mutated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "case.h"
#include "corpus.h"
#include "reference.h"

#define BACKENDS_MAX 64
#define BIG_OUTPUT 20000 /* bytes; the oracle is slow */

static struct {
	char name[40];
	sw_pack *fast;
	ref_pack *slow;
} packs[BACKENDS_MAX];
static size_t n_packs, compared, differ, cases;
static uint64_t seed = 42;

static uint32_t dice(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static size_t pack_index(const char *backend)
{
	for (size_t i = 0; i < n_packs; i++)
		if (!strcmp(packs[i].name, backend))
			return i;
	assert_true(n_packs < BACKENDS_MAX);
	snprintf(packs[n_packs].name, sizeof(packs[n_packs].name), "%s", backend);
	sw_error err = {0};
	int rc = sw_pack_new(&packs[n_packs].fast, sw_builtin_packs(), backend, &err);
	if (rc)
		print_message("%s: %s\n", backend, err.what);
	assert_int_equal(rc, 0);
	packs[n_packs].slow = ref_pack_new(sw_builtin_packs(), backend);
	assert_non_null(packs[n_packs].slow);
	return n_packs++;
}

static void compare(const sw_case *c, const char *backend, const sw_facts *facts, sw_exit exit,
                    sw_started started, const char *p, size_t n, const char *how)
{
	size_t i = pack_index(backend);
	ref_result want;
	sw_result *got = NULL;
	char why[400];
	sw_source source = started == SW_STARTED_UNKNOWN ? SW_SOURCE_NONE : SW_SOURCE_CALLER;
	assert_int_equal(sw_classify(packs[i].fast, facts, exit, started, source, p, n, &got, NULL),
	                 0);
	ref_classify(packs[i].slow, facts, exit, started, source, p, n, &want);
	compared++;
	assert_false(want.gave_up);
	if (!ref_agrees(&want, got, why, sizeof(why)) && differ++ < 10)
		print_message("%s/%s with backend %s, exit %lld, started %s, %s: %s\n", c->backend,
		              c->name, backend, (long long)exit.code, sw_started_name(started), how,
		              why);
	ref_result_free(&want);
	sw_result_free(got);
}

static void mutated(const sw_case *c)
{
	char *p = malloc(c->output_len * 2 + 64);
	size_t n = c->output_len;
	assert_non_null(p);
	memcpy(p, c->output, n);
	for (uint32_t k = 1 + dice(6); k > 0 && n > 2; k--) {
		size_t at = dice((uint32_t)n - 1);
		static const char bytes[] = "\n\r\x1b \0'\"/:<3>";
		switch (dice(4)) {
		case 0:
			p[at] = bytes[dice(sizeof(bytes) - 1)];
			break;
		case 1:
			memmove(p + at, p + at + 1, n - at - 1);
			n--;
			break;
		case 2: /* a line moves to the end */
			if (n < c->output_len * 2) {
				size_t len = dice(80) + 1;
				len = len < n - at ? len : n - at;
				len = n + len + 1 < c->output_len * 2 ? len : 0;
				memcpy(p + n, p + at, len);
				n += len;
			}
			break;
		default:
			p[at] ^= 0x20;
			break;
		}
	}
	sw_facts facts = c->facts;
	facts.network = (sw_network)dice(SW_NETWORK_COUNT);
	compare(c, c->backend, &facts, c->exit, (sw_started)dice(SW_STARTED_COUNT), p, n,
	        "mutated");
	free(p);
}

static int one(void *payload, const char *yaml)
{
	sw_case c;
	sw_error err = {0};
	(void)payload;
	int rc = sw_case_load(&c, yaml, &err);
	if (rc) {
		print_message("%s: %s\n", err.where, err.what);
		return rc;
	}
	const char *part = getenv("SW_TEST_SHARE");
	size_t share = getenv("SW_TEST_SMOKE") ? 200 : part ? (size_t)atoi(part) : 1;
	if (cases++ % share) {
		sw_case_free(&c);
		return 0;
	}
	compare(&c, c.backend, &c.facts, c.exit, c.started, c.output, c.output_len, "as captured");
	if (c.output_len < BIG_OUTPUT) {
		static const int64_t exits[] = {0, 1, 125, 126, 127, 137, 159, 255};
		sw_facts facts = c.facts;
		facts.network = (sw_network)dice(SW_NETWORK_COUNT);
		facts.mode = (sw_mode)dice(SW_MODE_DANGER_FULL_ACCESS);
		compare(&c, c.backend, &facts, sw_exit_code(exits[dice(8)]), c.started, c.output,
		        c.output_len, "other exit");
		compare(&c, c.backend, &c.facts, c.exit, SW_STARTED_NO, c.output, c.output_len,
		        "not started");
		compare(&c, c.backend, &c.facts, c.exit, SW_STARTED_YES, c.output, c.output_len,
		        "started");
		static const char *const others[] = {
		    "bwrap", "docker", "podman", "seatbelt", "landlock", "systemd-run", "wsl"};
		compare(&c, others[dice(7)], &c.facts, c.exit, SW_STARTED_UNKNOWN, c.output,
		        c.output_len, "other backend");
		for (int k = 0; k < 3; k++)
			mutated(&c);
	}
	sw_case_free(&c);
	return 0;
}

static void corpus_agrees_with_the_oracle(void **state)
{
	char dir[4096];
	sw_error err = {0};
	const char *root = getenv("SW_SOURCE_DIR");
	(void)state;
	snprintf(dir, sizeof(dir), "%s/corpus", root ? root : ".");
	assert_int_equal(sw_corpus_each(dir, one, NULL, &err), 0);
	print_message("%zu comparisons, %zu differences\n", compared, differ);
	assert_true(compared > 20);
	assert_int_equal(differ, 0);
	for (size_t i = 0; i < n_packs; i++) {
		sw_pack_free(packs[i].fast);
		ref_pack_free(packs[i].slow);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(corpus_agrees_with_the_oracle)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
