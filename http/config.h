/*
 * config.h - every setting of the service, with its default and range. The table in
 * config.c is the one list behind the options, `--help` and docs/http.md.
 *
 * Ownership: strings are copied; http_config_free() frees them. Threads: read-only
 * after the start.
 */
#ifndef SW_HTTP_CONFIG_H
#define SW_HTTP_CONFIG_H

#include <stdint.h>
#include <stdio.h>

#include "sandwitness.h"

enum { HTTP_LISTENERS_MAX = 8, HTTP_NAMES_MAX = 16 };

typedef enum { HTTP_LISTEN_UNIX, HTTP_LISTEN_TCP } http_listen_kind;

typedef struct http_listen_spec {
	http_listen_kind kind;
	char *path; /* unix */
	char *host; /* tcp: "127.0.0.1" or "::1" */
	int port;   /* tcp; 0: any free one */
} http_listen_spec;

typedef struct http_config {
	http_listen_spec listen[HTTP_LISTENERS_MAX];
	size_t n_listen;
	char *allow_host[HTTP_NAMES_MAX]; /* "name" or "name:port", lower case */
	size_t n_allow_host;
	char *allow_origin[HTTP_NAMES_MAX]; /* "https://name[:port]" */
	size_t n_allow_origin;
	char *db;         /* NULL: the default */
	char *token_file; /* NULL: the default */
	char *signatures; /* NULL: none besides the usual places */
	char *pack_set;   /* NULL: the built-in one */
	int64_t socket_mode;
	int64_t max_connections; /* per listener */
	int64_t timeout_ns;      /* to send a request's head, or idle */
	int64_t max_body;
	int64_t max_body_total; /* of all requests at one moment */
	int64_t max_header;
	int64_t max_streams; /* event streams */
	int64_t heartbeat_ns;
	int64_t stall_ns;  /* a stream that takes nothing for so long is ended */
	int64_t max_queue; /* writes waiting */
	int64_t max_group; /* records in one commit */
	int64_t poll_ns;   /* looks for other processes' commits */
	int64_t shutdown_ns;
	int64_t probe_age_ns; /* background probes are repeated after; 0: no probes */
	int64_t probe_timeout_ns;
	bool confined; /* the service itself runs confined: probes would only test that */
	bool no_self_sandbox;
	bool quiet;
	bool print_token; /* the dashboard's address with the token on stdout */
} http_config;

void http_config_init(http_config *c);
void http_config_free(http_config *c);

/* 0; SW_EINVAL with what is understood. *help is set where --help or --version was answered
 * on stdout. */
int http_config_parse(http_config *c, int argc, char **argv, bool *answered, sw_error *err);
/* "unix:PATH", "/PATH", "127.0.0.1:PORT", "[::1]:PORT", "localhost:PORT", each with or
 * without "tcp:". Anything but loopback is refused. */
int http_listen_parse(http_listen_spec *out, const char *word, sw_error *err);
void http_config_help(FILE *to);

#endif
