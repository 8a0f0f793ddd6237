#include <stdlib.h>
#include <string.h>

#include "writer.h"

enum { KEPT_MAX = 8 };

struct http_readers {
	pthread_mutex_t lock;
	char *path;
	sw_store *kept[KEPT_MAX];
	size_t n;
};

int http_readers_new(http_readers **out, const char *path)
{
	http_readers *r = calloc(1, sizeof(*r));

	if (!r || !(r->path = strdup(path))) {
		free(r);
		return SW_ENOMEM;
	}
	pthread_mutex_init(&r->lock, NULL);
	*out = r;
	return 0;
}

void http_readers_free(http_readers *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		sw_store_close(r->kept[i]);
	pthread_mutex_destroy(&r->lock);
	free(r->path);
	free(r);
}

int http_readers_take(http_readers *r, sw_store **out, sw_error *err)
{
	sw_store *s = NULL;

	pthread_mutex_lock(&r->lock);
	if (r->n)
		s = r->kept[--r->n];
	pthread_mutex_unlock(&r->lock);
	if (!s) {
		int code = sw_store_open(&s, r->path, SW_STORE_READ, NULL, err);
		if (code)
			return code;
	}
	*out = s;
	return 0;
}

void http_readers_give(http_readers *r, sw_store *store, bool broken)
{
	pthread_mutex_lock(&r->lock);
	if (!broken && r->n < KEPT_MAX) {
		r->kept[r->n++] = store;
		store = NULL;
	}
	pthread_mutex_unlock(&r->lock);
	sw_store_close(store);
}
