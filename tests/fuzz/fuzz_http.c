/*
 * The service's own reading of a request: guard, routes, query of raw bodies, JSON bodies. (The
 * request line and headers are libmicrohttpd's.) Input: lines Host, Origin, Sec-Fetch-Site,
 * Content-Type, Authorization, path; the rest is the body.
 */
#include <string.h>

#include "fuzz.h"
#include "guard.h"
#include "http.h"
#include "input.h"

static char *next_line(const char **p, size_t *n)
{
	const char *lf = *n ? memchr(*p, '\n', *n) : NULL;
	size_t len = lf ? (size_t)(lf - *p) : *n;
	char *z = strndup(*p, len);
	MUST(z);
	*p += lf ? len + 1 : len;
	*n -= lf ? len + 1 : len;
	return z;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data;
	size_t n = size;
	char *lines[6], detail[320], arg[HTTP_PATH_ARG_MAX];
	http_config config;
	sw_error err = {0};
	memset(&config, 0, sizeof(config));
	for (int i = 0; i < 6; i++)
		lines[i] = next_line(&p, &n);
	http_head h = {.method = size & 1 ? "POST" : "GET",
	               .port = 8765,
	               .is_unix = size & 2,
	               .is_public = size & 4};
	http_once *fields[] = {&h.host, &h.origin, &h.sec_fetch_site, &h.content_type,
	                       &h.authorization};
	for (int i = 0; i < 5; i++)
		if (lines[i][0])
			*fields[i] = (http_once){.value = lines[i], .count = 1};
	http_problem problem = http_guard(&config, "0123456789abcdef0123456789abcdef", &h, detail);
	/* No token, no entry over TCP but to what is public. */
	if (!h.is_unix && !h.is_public && !strstr(lines[4], "0123456789abcdef0123456789abcdef"))
		MUST(problem != HTTP_PROBLEM_NONE);
	http_route_find(lines[5], arg);
	http_listen_spec spec;
	memset(&spec, 0, sizeof(spec));
	if (http_listen_parse(&spec, lines[0], &err) == 0) {
		/* Loopback only, whatever was asked. */
		MUST(spec.kind == HTTP_LISTEN_UNIX || !strcmp(spec.host, "127.0.0.1") ||
		     !strcmp(spec.host, "::1"));
		free(spec.path);
		free(spec.host);
	}
	json_t *object = sw_json_parse(p, n, &err);
	if (object) {
		http_input in;
		memset(&in, 0, sizeof(in));
		int rc = http_input_from_json(&in, object, &err);
		MUST(rc == 0 || err.what[0]);
		http_input_free(&in);
	}
	for (int i = 0; i < 6; i++)
		free(lines[i]);
	return 0;
}
