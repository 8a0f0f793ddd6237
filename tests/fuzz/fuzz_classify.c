/*
 * Classification with the built-in packs: one call against a stream in pieces against the oracle.
 * Input: backend, exit, started and facts, seed of the cuts (6 bytes), then the output.
 */
#include <string.h>

#include "fuzz.h"
#include "reference.h"

#define BACKENDS_MAX 64
#define ORACLE_MAX 1024 /* bytes; the oracle is slow */

static struct {
	const char *name;
	sw_pack *fast;
	ref_pack *slow;
} packs[BACKENDS_MAX];
static size_t n_packs;

static void load(void)
{
	const sw_pack_set *set = sw_builtin_packs();
	for (size_t i = 0; i < set->n_defs && n_packs < BACKENDS_MAX; i++) {
		const char *name = set->defs[i]->backend;
		bool known = !strcmp(name, "common");
		for (size_t k = 0; k < n_packs; k++)
			known |= !strcmp(packs[k].name, name);
		if (known)
			continue;
		packs[n_packs].name = name;
		MUST(sw_pack_new(&packs[n_packs].fast, set, name, NULL) == 0);
		n_packs++;
	}
}

static void same(const sw_result *a, const sw_result *b)
{
	MUST(a->verdict == b->verdict && a->rule == b->rule && a->stage == b->stage);
	MUST(a->has_hit == b->has_hit && a->hit.sig == b->hit.sig &&
	     a->hit.offset == b->hit.offset);
	MUST(sw_str_eq(a->hit.line, b->hit.line) && sw_str_eq(a->hit.resource, b->hit.resource));
	MUST(a->hit.line_number == b->hit.line_number && a->denied_lines == b->denied_lines);
	MUST(a->limit == b->limit && a->lowers == b->lowers &&
	     a->n_observations == b->n_observations);
	MUST(a->lines == b->lines && a->output_size == b->output_size &&
	     a->n_faults == b->n_faults);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int64_t exits[] = {0,   1,   2,   125, 126, 127,
	                                137, 159, 217, 255, -9,  -1073741502};
	static const sw_str roots[] = {{"/srv/job/ws", 11}}, accessible[] = {{"/etc", 4}};
	if (!n_packs)
		load();
	MUST(n_packs > 0);
	if (size < 6)
		return 0;
	size_t backend = data[0] % n_packs;
	sw_exit exit = sw_exit_code(exits[data[1] % 12]);
	sw_started started = (sw_started)(data[2] % SW_STARTED_COUNT);
	sw_source source = started ? SW_SOURCE_STATUS_FD : SW_SOURCE_NONE;
	sw_facts facts = {.network = (sw_network)(data[3] % SW_NETWORK_COUNT),
	                  .mode = (sw_mode)(data[3] / 4 % 3),
	                  .observe_ok = data[3] & 64,
	                  .runner_lost = data[3] & 128};
	if (data[4] & 1) {
		facts.writable_roots = roots;
		facts.n_writable_roots = 1;
		facts.accessible = accessible;
		facts.n_accessible = 1;
		facts.cwd = SW_STR("/srv/job/ws");
	}
	uint32_t seed = data[5];
	const char *p = (const char *)data + 6;
	size_t n = size - 6;
	sw_result *whole = NULL, *pieces = NULL;
	sw_scan *scan = NULL;
	MUST(sw_classify(packs[backend].fast, &facts, exit, started, source, p, n, &whole, NULL) ==
	     0);
	MUST(sw_scan_begin(&scan, packs[backend].fast, &facts, NULL) == 0);
	for (size_t at = 0; at < n;) {
		seed = seed * 1103515245u + 12345u;
		size_t len = 1 + (seed >> 16) % (data[5] & 1 ? 7 : 97);
		len = len < n - at ? len : n - at;
		char *piece = malloc(len);
		MUST(piece);
		memcpy(piece, p + at, len);
		MUST(sw_scan_feed(scan, piece, len) == 0);
		free(piece);
		at += len;
	}
	MUST(sw_scan_finish(scan, exit, started, source, &pieces, NULL) == 0);
	sw_scan_free(scan);
	same(whole, pieces);
	if (n <= ORACLE_MAX && data[4] & 2) {
		ref_result want;
		char why[400];
		if (!packs[backend].slow)
			packs[backend].slow = ref_pack_new(sw_builtin_packs(), packs[backend].name);
		MUST(packs[backend].slow);
		ref_classify(packs[backend].slow, &facts, exit, started, source, p, n, &want);
		bool agree = ref_agrees(&want, whole, why, sizeof(why));
		if (!agree)
			fprintf(stderr, "%s: %s\n", packs[backend].name, why);
		MUST(agree);
		ref_result_free(&want);
	}
	if (data[4] & 4) {
		sw_explanation *e = NULL;
		MUST(sw_explain(packs[backend].fast, &facts, exit, started, source, p, n, &e,
		                NULL) == 0);
		MUST(e->result->verdict == whole->verdict && e->result->hit.sig == whole->hit.sig);
		sw_explanation_free(e);
	}
	sw_result_free(whole);
	sw_result_free(pieces);
	return 0;
}
