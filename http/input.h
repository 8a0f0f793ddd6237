/*
 * input.h - what POST /v1/classify takes: an object with the names of the command
 * line's batch input, or raw bytes with the same names as query parameters.
 */
#ifndef SW_HTTP_INPUT_H
#define SW_HTTP_INPUT_H

#include "http.h"

enum { HTTP_ROOTS_MAX = 64 };

typedef struct http_input {
	const char *id; /* NULL: none */
	const char *backend;
	sw_exit exit;
	sw_started started;
	sw_facts facts;
	sw_str output;
	sw_str roots[HTTP_ROOTS_MAX];
	sw_str accessible[HTTP_ROOTS_MAX];
	json_t *object; /* owns the strings; NULL with raw bytes */
	char *decoded;
} http_input;

/* 0; SW_EINVAL names the member. The object's reference is taken over in any case. */
int http_input_from_json(http_input *out, json_t *object, sw_error *err);
int http_input_from_query(http_input *out, const http_request *req, sw_error *err);
void http_input_free(http_input *in);

#endif
