/*
 * listen.h - listening sockets: made here, or passed by the service manager
 * (LISTEN_FDS). And the manager's protocol for readiness and watchdog, which is a
 * datagram and needs no library.
 */
#ifndef SW_HTTP_LISTEN_H
#define SW_HTTP_LISTEN_H

#include <sys/types.h>

#include "config.h"

typedef struct http_listener {
	http_listen_kind kind;
	int fd;         /* owned; -1: closed */
	bool activated; /* passed by the service manager, whose file it is */
	char path[108]; /* unix */
	char host[48];  /* tcp */
	int port;       /* tcp, as bound */
	dev_t dev;      /* of the socket file, to remove only our own */
	ino_t ino;
} http_listener;

/* Opens spec. A socket file that nobody answers on is replaced; anything else is an error. */
int http_listener_open(http_listener *out, const http_listen_spec *spec, mode_t mode,
                       sw_error *err);
/* Closes, and removes the socket file where it is still the one made here. */
void http_listener_close(http_listener *l);
/* Descriptors passed by the service manager; *n = 0 where there are none. Clears the variables. */
int http_listener_inherited(http_listener *out, size_t max, size_t *n, sw_error *err);
/* The default socket's path: $RUNTIME_DIRECTORY, else $XDG_RUNTIME_DIR/sandwitness. Caller frees.
 */
char *http_default_socket(void);

/* Sends to $NOTIFY_SOCKET; does nothing where there is none. */
void http_notify(const char *state);
/* How often "WATCHDOG=1" is due; 0: not asked for. */
int64_t http_watchdog_interval_ns(void);

#endif
