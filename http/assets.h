/*
 * assets.h - files compiled into the program (http/embed.c makes the table).
 */
#ifndef SW_HTTP_ASSETS_H
#define SW_HTTP_ASSETS_H

#include <stddef.h>

typedef struct http_asset {
	const char *name; /* "dashboard.html" */
	const char *content_type;
	const char *etag; /* of its bytes */
	const char *bytes;
	size_t len;
} http_asset;

extern const http_asset http_assets[];
extern const size_t http_n_assets;

#endif
