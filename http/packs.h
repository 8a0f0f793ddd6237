/*
 * packs.h - the signature packs of the service: the built-in ones with user packs in
 * front, loaded once at the start. Packs are immutable and shared by all threads.
 */
#ifndef SW_HTTP_PACKS_H
#define SW_HTTP_PACKS_H

#include "http.h"
#include "signatures.h"

typedef struct http_packs http_packs;

/* A broken user pack is left out and noted; the others stay. */
int http_packs_load(http_packs **out, const http_config *config, sw_error *err);
void http_packs_free(http_packs *p); /* NULL is fine */
const sw_pack_set *http_packs_set(const http_packs *p);
/* NULL and *err where there is no such backend. Borrowed. */
const sw_pack *http_packs_get(http_packs *p, const char *backend, sw_error *err);
typedef struct http_packs_finder {
	http_packs *packs;
	sw_error error; /* of the last find that gave NULL */
} http_packs_finder;
/* As sw_pack_finder; arg is an http_packs_finder. */
const sw_pack *http_packs_find(void *arg, const char *backend);
/* NULL: unknown slug. User causes first. */
const sw_cause *http_packs_cause(const http_packs *p, const char *slug);
/* {"title","why","remedies":[..]}: what a result's "advice" holds; null without a cause. */
json_t *http_packs_advice(const http_packs *p, const char *slug);
/* {"files","signatures","broken":[{"where","what","why","fix"}]}; new reference. */
json_t *http_packs_json(const http_packs *p);
/* Changes whenever a definition does; hex. */
const char *http_packs_tag(const http_packs *p);

#endif
