/*
 * verify_keys.c - who signed: keys as they were announced, the seals, and the rows
 * that say what was pruned.
 *
 * Trust begins with the pinned key (without one: with the first of the file) and goes
 * on to the keys that a trusted one signed. A seal covers everything before it, so what
 * an earlier, unknown key sealed is believed once a trusted one has sealed it again. A
 * pruning is never believed so: a seal says what is there, not what was taken away.
 */
#include <nettle/eddsa.h>
#include <string.h>

#include "verify_int.h"

static bool fits(const uint8_t public[32], size_t n, const uint8_t *message, st_cell sig)
{
	return sig.type == CELL_BLOB && sig.n == 64 &&
	       ed25519_sha512_verify(public, n, message, sig.p) == 1;
}

static const vf_key *announced(const vf *v, const uint8_t print[8])
{
	const vf_key *k = NULL;
	for (size_t i = 0; i < v->n_keys; i++)
		if (memcmp(v->keys[i].print, print, 8) == 0 && !(k && k->trusted))
			k = &v->keys[i];
	return k;
}

void vf_take_key(vf *v, uint64_t seq, const st_cell *c)
{
	uint8_t message[ST_MESSAGE_MAX], print[32];
	if (c[C_KEY_PUBLIC].type != CELL_BLOB || c[C_KEY_PUBLIC].n != 32) {
		vf_find(v, VF_BAD_SEAL, "key", seq, st_null(), "not a public key");
		return;
	}
	if (v->n_keys == VF_KEYS_MAX) {
		vf_find(v, VF_BAD_SEAL, "key", seq, st_null(), "more than %d keys", VF_KEYS_MAX);
		return;
	}
	vf_key *k = &v->keys[v->n_keys++];
	memset(k, 0, sizeof *k);
	memcpy(k->public, c[C_KEY_PUBLIC].p, 32);
	st_sha256(print, k->public, 32);
	memcpy(k->print, print, 8);
	/* Without a pinned key the first one of the file is taken at its word. */
	k->trusted = v->has_pin ? memcmp(k->public, v->pinned, 32) == 0 : v->n_keys == 1;
	v->pin_used |= v->has_pin && k->trusted;
	size_t n = st_key_message(message, v->uuid, k->public);
	for (size_t i = 0; !k->trusted && i + 1 < v->n_keys; i++)
		k->trusted =
		    v->keys[i].trusted && fits(v->keys[i].public, n, message, c[C_KEY_SIG]);
	v->any_trusted |= k->trusted;
}

static bool sound_seal(const st_cell *c)
{
	return c[C_SEAL_HEAD].type == CELL_BLOB && c[C_SEAL_HEAD].n == 32 &&
	       c[C_SEAL_ROLLUP].type == CELL_BLOB && c[C_SEAL_ROLLUP].n == 32 &&
	       c[C_SEAL_KEY].type == CELL_BLOB && c[C_SEAL_SIG].type == CELL_BLOB &&
	       ((c[C_SEAL_KEY].n == 8 && c[C_SEAL_SIG].n == 64) ||
	        (c[C_SEAL_KEY].n == 0 && c[C_SEAL_SIG].n == 0));
}

void vf_take_seal(vf *v, uint64_t seq, const st_cell *c, const uint8_t prev[32], bool in_chain)
{
	uint8_t message[ST_MESSAGE_MAX];
	v->segments++;
	uint64_t from = v->sealed_seq + 1;
	v->sealed_seq = seq;
	v->sealed_ns = c[C_SEAL_AT].i;
	v->unsealed_ns = 0;
	int64_t number = v->segment_no + 1;
	v->segment_no = c[C_SEAL_SEGMENT].i;
	if (!sound_seal(c)) {
		vf_find(v, VF_BAD_SEAL, "seal", seq, st_null(), "not a seal");
		return;
	}
	if (c[C_SEAL_SEGMENT].i != number || (uint64_t)c[C_SEAL_FIRST].i != from ||
	    (uint64_t)c[C_SEAL_LAST].i != seq - 1)
		vf_find(v, VF_BAD_SEAL, "seal", seq, st_null(),
		        "it says segment %lld, rows %lld to %lld, which is not what lies before it",
		        (long long)c[C_SEAL_SEGMENT].i, (long long)c[C_SEAL_FIRST].i,
		        (long long)c[C_SEAL_LAST].i);
	if (in_chain && memcmp(c[C_SEAL_HEAD].p, prev, 32) != 0)
		vf_find(v, VF_BAD_SEAL, "seal", seq, st_null(),
		        "the rows before it are not those that were sealed");
	if (c[C_SEAL_KEY].n == 0)
		return; /* closed without a key: proves nothing, breaks nothing */
	const vf_key *k = announced(v, c[C_SEAL_KEY].p);
	size_t n = st_seal_message(message, v->uuid, c);
	if (!k) {
		vf_find(v, VF_BAD_SEAL, "seal", seq, st_null(),
		        "signed by a key that was never announced");
	} else if (!fits(k->public, n, message, c[C_SEAL_SIG])) {
		vf_find(v, VF_BAD_SEAL, "seal", seq, st_null(), "the signature does not fit");
	} else if (k->trusted) {
		v->trusted_seq = seq;
	} else {
		v->untrusted_seq = seq;
		/* Where a trusted key is in use nobody has a reason to seal with another. */
		if (v->any_trusted && !v->intruder_seq)
			v->intruder_seq = seq;
	}
}

static bool sound_prune(const st_cell *c)
{
	return c[C_PRUNE_RESUME].type == CELL_BLOB && c[C_PRUNE_RESUME].n == 32 &&
	       c[C_PRUNE_DICT].type == CELL_BLOB && c[C_PRUNE_DICT].n == ST_PRUNE_SIGNED;
}

void vf_take_prune(vf *v, uint64_t seq, const st_cell *c)
{
	uint8_t message[ST_MESSAGE_MAX];
	const uint8_t *dict = c[C_PRUNE_DICT].p;
	bool newest = (uint64_t)c[C_PRUNE_TO].i == v->pruned_to && c[C_PRUNE_RESUME].n == 32 &&
	              c[C_PRUNE_DICT].n >= 32 && memcmp(c[C_PRUNE_RESUME].p, v->resume, 32) == 0 &&
	              memcmp(dict, v->want_dict, 32) == 0;
	v->prune_seen |= newest;
	if (!sound_prune(c)) {
		vf_find(v, VF_BAD_SEAL, "prune", seq, st_null(),
		        "it is not signed: rows up to %lld were removed without the trail's key, "
		        "or by a program from before prunings were signed",
		        (long long)c[C_PRUNE_TO].i);
		return;
	}
	const vf_key *k = announced(v, dict + ST_PRUNE_DIGEST);
	size_t n = st_prune_message(message, v->uuid, seq, c);
	if (!k || !fits(k->public, n, message, st_blob(dict + ST_PRUNE_KEYED, 64))) {
		vf_find(v, VF_BAD_SEAL, "prune", seq, st_null(), "%s",
		        k ? "the signature does not fit"
		          : "signed by a key that was never announced");
		return;
	}
	if (newest && k->trusted)
		v->prune_trusted = true;
	else if (newest)
		v->untrusted_prune = seq;
	if (c[C_PRUNE_FROM].i > 0) { /* 0: a new key says again what was pruned before */
		json_t *o = json_object();
		json_object_set_new(o, "from", json_integer(c[C_PRUNE_FROM].i));
		json_object_set_new(o, "to", json_integer(c[C_PRUNE_TO].i));
		json_object_set_new(o, "rows", json_integer(c[C_PRUNE_ROWS].i));
		json_array_append_new(v->pruned, o);
	}
}

void vf_judge_keys(vf *v)
{
	uint64_t seal = v->untrusted_seq > v->trusted_seq ? v->untrusted_seq : v->intruder_seq;
	if (seal)
		vf_find(v, VF_BAD_SEAL, "seal", seal, st_null(),
		        v->has_pin ? "sealed with a key that the pinned one did not sign"
		                   : "sealed with a key that the first one did not sign");
	if (v->untrusted_prune && !v->prune_trusted)
		vf_find(v, VF_BAD_SEAL, "prune", v->untrusted_prune, st_null(),
		        v->has_pin ? "signed with a key that the pinned one did not sign"
		                   : "signed with a key that the first one did not sign");
	/* Without its announcement whoever made this trail did without the key. */
	if (!seal && v->has_pin && !v->pin_used)
		vf_find(v, VF_BAD_SEAL, "key", 0, st_null(), "the pinned key was never used here");
}
