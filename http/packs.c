#include "packs.h"

#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#define X_ONE(s, n) +1
enum { N_BACKENDS = 0 SW_BACKEND_LIST(X_ONE), EXTRA_MAX = 64 };
#undef X_ONE

struct http_packs {
	sw_loaded *loaded;
	const sw_pack_def **defs;
	sw_pack_set set;
	json_t *broken;
	char tag[33];
	pthread_mutex_t lock;
	/* one per backend, made on first use; extra ones are user backends of the set */
	struct {
		const char *backend;
		sw_pack *pack;
	} made[N_BACKENDS + EXTRA_MAX];
	size_t n_made;
};

static void note_broken(void *payload, const sw_error *e)
{
	http_packs *p = payload;

	json_array_append_new(p->broken, json_pack("{s:o, s:o, s:o, s:o}", "where",
	                                           sw_json_text(sw_str_of(e->where)), "what",
	                                           sw_json_text(sw_str_of(e->what)), "why",
	                                           sw_json_text(sw_str_of(e->why)), "fix",
	                                           sw_json_text(sw_str_of(e->fix))));
	fprintf(stderr, "sandwitnessd: pack left out: ");
	sw_error_print(stderr, e);
}

static int load_user_packs(http_packs *p, const http_config *config, sw_error *err)
{
	char *own = sw_xdg_path("XDG_CONFIG_HOME", "signatures.d");
	const char *const dirs[] = {config->signatures, own, "/etc/sandwitness/signatures.d"};
	int code = sw_loaded_new(&p->loaded, err);

	for (size_t i = 0; !code && i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (!dirs[i])
			continue;
		code = sw_load_dir(p->loaded, dirs[i], note_broken, p, err);
		/* only the folder that was asked for must be there */
		if (code == SW_ENOTFOUND && dirs[i] != config->signatures)
			code = 0;
	}
	free(own);
	return code;
}

static void hash_text(struct sha256_ctx *ctx, const char *z)
{
	if (z)
		sha256_update(ctx, strlen(z), (const uint8_t *)z);
	sha256_update(ctx, 1, (const uint8_t *)"");
}

static void make_tag(http_packs *p)
{
	struct sha256_ctx ctx;
	uint8_t digest[16];

	sha256_init(&ctx);
	hash_text(&ctx, SW_VERSION);
	for (size_t i = 0; i < p->set.n_defs; i++) {
		hash_text(&ctx, p->set.defs[i]->backend);
		for (size_t k = 0; k < p->set.defs[i]->n_sigs; k++) {
			const sw_sig_def *s = &p->set.defs[i]->sigs[k];
			hash_text(&ctx, s->id);
			hash_text(&ctx, s->regex);
			hash_text(&ctx, s->cause);
			for (size_t l = 0; l < s->n_literals; l++)
				hash_text(&ctx, s->literals[l]);
		}
	}
	sha256_digest(&ctx, sizeof(digest), digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(p->tag + 2 * i, 3, "%02x", digest[i]);
}

int http_packs_load(http_packs **out, const http_config *config, sw_error *err)
{
	http_packs *p = calloc(1, sizeof(*p));
	const sw_pack_file *user = NULL, *chosen = NULL;
	const sw_pack_set *builtin = sw_builtin_packs();

	if (!p || !(p->broken = json_array())) {
		free(p);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	pthread_mutex_init(&p->lock, NULL);
	int code = load_user_packs(p, config, err);
	size_t n_chosen = 0;
	if (!code && config->pack_set && !(n_chosen = sw_builtin_set(config->pack_set, &chosen))) {
		sw_error_set(err, SW_ENOTFOUND, "no pack set is called '%s'", config->pack_set);
		code = sw_error_more(err, "--pack-set", NULL,
		                     "sandwitness signatures list names them");
	}
	size_t n_user = code ? 0 : sw_loaded_files(p->loaded, &user);
	size_t n = n_user + (chosen ? n_chosen : builtin->n_defs);
	if (!code)
		p->defs = calloc(n ? n : 1, sizeof(const sw_pack_def *));
	if (!p->defs) {
		http_packs_free(p);
		return code ? code : sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	n = 0;
	for (size_t i = 0; i < n_user; i++)
		p->defs[n++] = user[i].def;
	for (size_t i = 0; chosen && i < n_chosen; i++)
		p->defs[n++] = chosen[i].def;
	for (size_t i = 0; !chosen && i < builtin->n_defs; i++)
		p->defs[n++] = builtin->defs[i];
	p->set = (sw_pack_set){p->defs, n};
	make_tag(p);
	*out = p;
	return 0;
}

void http_packs_free(http_packs *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_made; i++)
		sw_pack_free(p->made[i].pack);
	sw_loaded_free(p->loaded);
	json_decref(p->broken);
	pthread_mutex_destroy(&p->lock);
	free((void *)p->defs);
	free(p);
}

const sw_pack_set *http_packs_set(const http_packs *p)
{
	return &p->set;
}

const sw_pack *http_packs_get(http_packs *p, const char *backend, sw_error *err)
{
	sw_pack *pack = NULL;
	int code = 0;

	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->n_made && !pack; i++)
		if (!strcmp(p->made[i].backend, backend))
			pack = p->made[i].pack;
	if (!pack) {
		if (p->n_made == N_BACKENDS + EXTRA_MAX)
			code = sw_error_set(err, SW_ETOOBIG, "too many backends");
		/* where writable code is forbidden, as by the unit, it works without */
		if (!code)
			code = sw_pack_new(&pack, &p->set, backend, err);
		if (!code) {
			p->made[p->n_made].backend = sw_pack_backend(pack);
			p->made[p->n_made++].pack = pack;
		}
	}
	pthread_mutex_unlock(&p->lock);
	return code ? NULL : pack;
}

const sw_pack *http_packs_find(void *arg, const char *backend)
{
	http_packs_finder *f = arg;

	return http_packs_get(f->packs, backend, &f->error);
}

const sw_cause *http_packs_cause(const http_packs *p, const char *slug)
{
	const sw_cause *causes;
	size_t n = sw_loaded_causes(p->loaded, &causes);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(causes[i].slug, slug))
			return &causes[i];
	return sw_cause_find(slug);
}

json_t *http_packs_advice(const http_packs *p, const char *slug)
{
	const sw_cause *c = slug ? http_packs_cause(p, slug) : NULL;
	json_t *remedies;

	if (!c || !(remedies = json_array()))
		return json_null();
	for (size_t i = 0; i < c->n_remedies; i++) {
		const sw_remedy *r = &c->remedies[i];
		json_array_append_new(
		    remedies, json_pack("{s:o, s:o, s:o, s:b}", "for", sw_json_z(r->for_whom), "do",
		                        sw_json_z(r->what), "risk", sw_json_z(r->risk), "tested",
		                        (int)r->tested));
	}
	return json_pack("{s:o, s:o, s:o}", "title", sw_json_z(c->title), "why", sw_json_z(c->why),
	                 "remedies", remedies);
}

json_t *http_packs_json(const http_packs *p)
{
	json_int_t signatures = 0;

	for (size_t i = 0; i < p->set.n_defs; i++)
		signatures += p->set.defs[i]->n_sigs;
	return json_pack("{s:I, s:I, s:O}", "files", (json_int_t)p->set.n_defs, "signatures",
	                 signatures, "broken", p->broken);
}

const char *http_packs_tag(const http_packs *p)
{
	return p->tag;
}
