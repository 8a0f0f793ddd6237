/*
 * guard.h - what every request must pass before it is routed. Pure functions over the
 * request's head, so that each rule has a test without a socket.
 *
 * Why each rule: a page on another site can make a visitor's browser send requests
 * here. It cannot set Host (which stops names rebound to 127.0.0.1), cannot hide
 * Origin and Sec-Fetch-Site, cannot send these content types without a preflight
 * (which is never answered), and cannot know the token.
 */
#ifndef SW_HTTP_GUARD_H
#define SW_HTTP_GUARD_H

#include "config.h"
#include "problem.h"

/* A header that must not be repeated: how often it came and its first value. */
typedef struct http_once {
	const char *value; /* borrowed, NUL-terminated; NULL: none */
	unsigned count;
	bool odd; /* holds a NUL byte */
} http_once;

typedef struct http_head {
	const char *method;
	bool is_unix;
	int port;       /* the TCP listener's */
	bool is_public; /* the route needs no token */
	http_once host, origin, sec_fetch_site, content_type, authorization, content_length,
	    transfer_encoding, if_none_match, last_event_id, accept, expect;
} http_head;

/* HTTP_PROBLEM_NONE: may pass. Else *detail says what was wrong, NUL-terminated. */
http_problem http_guard(const http_config *c, const char *token, const http_head *h,
                        char detail[320]);

/* The parts, for tests. */
bool http_guard_host(const http_config *c, bool is_unix, int port, const char *host);
bool http_guard_origin(const http_config *c, const char *host, const char *origin);
/* Constant time in the token's bytes. */
bool http_guard_token(const char *token, const char *authorization);
bool http_guard_content_type(const char *content_type);

/* ---- token file (token.c) ---- */
/* Reads the token, making the file (mode 0600, 32 random bytes in hex) where there is none.
 * A file that others can read, or a token under 32 characters, is refused. Caller frees. */
int http_token_load(char **out, const char *path, sw_error *err);

#endif
