/*
 * packs.h - packs made for tests: one of every kind of signature, gate, scope and position, so that
 * a test names the rule it checks and not a real runner's wording.
 */
#ifndef SW_TEST_PACKS_H
#define SW_TEST_PACKS_H

#include "sandwitness.h"

/*
 * Backends of the set: `box` (position anywhere, priority prefix), `jail` (position alone),
 * `head` (first), `tail` (last), `outer` (extends box, adjusts common), `win` (Windows exits,
 * UTF-16LE), `free` (unconfined), and `common`.
 */
extern const sw_pack_set test_packs;

typedef struct test_input {
	const char *backend;
	const char *text;
	size_t len; /* 0: strlen(text) */
	int64_t exit;
	sw_started started;
	sw_network network;
	sw_mode mode;
	const sw_facts *facts; /* instead of network and mode */
} test_input;

/* Classifies in one call and fails the test on an error. The caller frees the result; the pack is
 * cached for the life of the program. */
sw_result *test_classify(test_input in);
const sw_pack *test_pack(const char *backend);
/* The reported signature's id, or "-". */
const char *test_sig(const sw_result *r);

#endif
