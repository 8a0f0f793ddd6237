/*
 * seal.c - closing a segment: its rollups are written, then one row binds the head of
 * the chain, the rollups and the time, signed where the key is at hand.
 */
#include <nettle/eddsa.h>
#include <string.h>

#include "store_int.h"

bool st_seal_due(const sw_store *s, int64_t now)
{
	if (s->no_seal || s->head.seq <= s->head.sealed_seq)
		return false;
	return s->head.seq - s->head.sealed_seq >= s->segment_rows ||
	       (s->head.unsealed_ns && now - s->head.unsealed_ns >= s->segment_age_ns);
}

static int seal_rows(sw_store *s, int64_t now, sw_error *err)
{
	st_head *h = &s->head;
	st_facts f = {0};
	uint8_t rollup[32], head[32], print[32], sig[64], uuid[16], message[ST_MESSAGE_MAX];
	int code = st_facts_of_rows(s, h->sealed_seq + 1, h->seq, &f, err);
	if (code == 0)
		code = st_rollup_store(s, &f, err);
	if (code == 0)
		code = st_rollup_digest(rollup, &f);
	st_facts_free(&f);
	if (code != 0)
		return code;
	memcpy(head, h->hash, 32);
	st_cell c[C_SEAL_N] = {
	    [C_SEAL_SEGMENT] = st_int(h->segments + 1),
	    [C_SEAL_AT] = st_int(now),
	    [C_SEAL_FIRST] = st_int((int64_t)h->sealed_seq + 1),
	    [C_SEAL_LAST] = st_int((int64_t)h->seq),
	    [C_SEAL_HEAD] = st_blob(head, 32),
	    [C_SEAL_ROLLUP] = st_blob(rollup, 32),
	    /* Closed without a key: the reports are fast, but nothing is proved. */
	    [C_SEAL_KEY] = st_blob("", 0),
	    [C_SEAL_SIG] = st_blob("", 0),
	};
	sw_error e;
	code = st_key_current(s, &e);
	if (code == SW_ENOMEM) /* that there is no key is another thing */
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	if (code == 0) {
		code = st_uuid(s, uuid, err);
		if (code != 0)
			return code;
		st_sha256(print, s->key_public, 32);
		c[C_SEAL_KEY] = st_blob(print, 8);
		size_t n = st_seal_message(message, uuid, c);
		ed25519_sha512_sign(s->key_public, s->key_secret, n, message, sig);
		c[C_SEAL_SIG] = st_blob(sig, 64);
	}
	uint64_t seq;
	code = st_append(s, T_SEAL, c, &seq, err);
	if (code != 0)
		return code;
	if (c[C_SEAL_KEY].n) {
		s->signed_seq = seq;
		memcpy(s->signed_hash, h->hash, 32);
	}
	h->sealed_seq = seq;
	h->sealed_ns = now;
	h->segments++;
	h->unsealed_ns = 0;
	return 0;
}

int st_seal_now(sw_store *s, int64_t now, sw_error *err)
{
	return s->head.seq <= s->head.sealed_seq ? 0 : seal_rows(s, now, err);
}

/* Whether the newest segment was closed without a key, and nothing was added since. */
static bool closed_unsigned(sw_store *s)
{
	sqlite3_stmt *q = NULL;
	bool yes = false;
	if (s->head.sealed_seq && s->head.seq == s->head.sealed_seq &&
	    sqlite3_prepare_v2(s->db, "SELECT length(key)=0 FROM seal WHERE seq=?1", -1, &q,
	                       NULL) == SQLITE_OK) {
		sqlite3_bind_int64(q, 1, (int64_t)s->head.sealed_seq);
		yes = sqlite3_step(q) == SQLITE_ROW && sqlite3_column_int(q, 0);
	}
	sqlite3_finalize(q);
	return yes;
}

int sw_store_seal(sw_store *s, bool *sealed, sw_error *err)
{
	if (sealed)
		*sealed = false;
	int code = st_begin(s, err);
	if (code != 0)
		return code;
	code = st_key_current(s, err);
	bool any = code == 0 && (s->head.seq > s->head.sealed_seq || closed_unsigned(s));
	if (any)
		code = seal_rows(s, sw_now_ns(), err);
	if (code != 0) {
		st_abort(s);
		return code;
	}
	code = st_commit(s, err);
	if (code == 0 && sealed)
		*sealed = any;
	return code;
}
