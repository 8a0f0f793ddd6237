#include "conn.h"

#include <stdlib.h>
#include <sys/socket.h>

struct http_conns {
	pthread_mutex_t lock;
	http_conn *first;
	size_t count[2];
	int64_t deadline[HTTP_PHASE_COUNT]; /* 0: none */
};

int http_conns_new(http_conns **out, const http_config *config)
{
	http_conns *c = calloc(1, sizeof(*c));

	if (!c)
		return SW_ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	c->deadline[HTTP_PHASE_HEAD] = config->timeout_ns;
	c->deadline[HTTP_PHASE_BODY] = 3 * config->timeout_ns;
	c->deadline[HTTP_PHASE_ANSWER] = 3 * config->timeout_ns;
	/* after stall_ns a stream is told that it is dropped, if it ever reads again */
	c->deadline[HTTP_PHASE_STREAM_OUT] = 2 * config->stall_ns;
	*out = c;
	return 0;
}

void http_conns_free(http_conns *conns)
{
	if (!conns)
		return;
	pthread_mutex_destroy(&conns->lock);
	free(conns);
}

http_conn *http_conns_add(http_conns *conns, int fd, bool is_unix, int port)
{
	http_conn *c = calloc(1, sizeof(*c));
	struct ucred cred;
	socklen_t n = sizeof(cred);

	if (!c)
		return NULL;
	c->fd = fd;
	c->port = port;
	c->peer.is_unix = is_unix;
	if (is_unix && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n)) {
		c->peer.has_credentials = true;
		c->peer.uid = cred.uid;
		c->peer.gid = cred.gid;
		c->peer.pid = cred.pid;
	}
	http_conn_phase(c, HTTP_PHASE_HEAD);
	pthread_mutex_lock(&conns->lock);
	c->next = conns->first;
	if (c->next)
		c->next->prev = c;
	conns->first = c;
	conns->count[is_unix]++;
	pthread_mutex_unlock(&conns->lock);
	return c;
}

void http_conns_remove(http_conns *conns, http_conn *conn)
{
	if (!conn)
		return;
	pthread_mutex_lock(&conns->lock);
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		conns->first = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	conns->count[conn->peer.is_unix]--;
	pthread_mutex_unlock(&conns->lock);
	free(conn);
}

void http_conn_phase(http_conn *conn, http_phase phase)
{
	if (!conn)
		return;
	atomic_store(&conn->since_ns, sw_monotonic_ns());
	atomic_store(&conn->phase, (int)phase);
}

size_t http_conns_reap(http_conns *conns, int64_t now_ns)
{
	size_t n = 0;

	/* the lock keeps remove(), and so the close of the descriptor, out */
	pthread_mutex_lock(&conns->lock);
	for (http_conn *c = conns->first; c; c = c->next) {
		int64_t limit = conns->deadline[atomic_load(&c->phase)];
		if (c->cut || !limit || now_ns - atomic_load(&c->since_ns) <= limit)
			continue;
		shutdown(c->fd, SHUT_RDWR);
		c->cut = true;
		n++;
	}
	pthread_mutex_unlock(&conns->lock);
	return n;
}

size_t http_conns_count(http_conns *conns, bool is_unix)
{
	pthread_mutex_lock(&conns->lock);
	size_t n = conns->count[is_unix];
	pthread_mutex_unlock(&conns->lock);
	return n;
}
