/*
 * How much memory the bodies of all requests may take once they are JSON in memory: a text of
 * `{},{},...` takes eighty times its size. The bound of a body's size alone would let few
 * clients fill the machine, so what counts is what a text becomes.
 */
#include <malloc.h>

#include "http.h"

enum { GATE_BYTES = 224 << 20, TRIM_BYTES = 1 << 20 };

size_t http_json_cost(const char *p, size_t n)
{
	/* What jansson takes on a 64-bit machine for each, the allocator's share included. */
	enum { LIST = 150, MAPPING = 250, MEMBER = 130, ITEM = 50, STRING = 95 };
	size_t cost = n;
	bool in_string = false;

	for (size_t i = 0; i < n; i++) {
		if (in_string && p[i] == '\\') {
			i++; /* what is escaped ends no string */
			continue;
		}
		if (in_string) {
			in_string = p[i] != '"';
			continue;
		}
		in_string = p[i] == '"';
		cost += p[i] == '"'   ? STRING
		        : p[i] == '[' ? LIST
		        : p[i] == '{' ? MAPPING
		        : p[i] == ':' ? MEMBER
		        : p[i] == ',' ? ITEM
		                      : 0;
	}
	return cost;
}

bool http_gate_admits(size_t cost)
{
	return cost <= GATE_BYTES;
}

void http_gate_enter(http_server *s, size_t n)
{
	pthread_mutex_lock(&s->gate_lock);
	while (s->gate_bytes && s->gate_bytes + n > GATE_BYTES)
		pthread_cond_wait(&s->gate_wake, &s->gate_lock);
	s->gate_bytes += n;
	pthread_mutex_unlock(&s->gate_lock);
}

void http_gate_leave(http_server *s, size_t n)
{
	pthread_mutex_lock(&s->gate_lock);
	s->gate_bytes -= n;
	pthread_cond_broadcast(&s->gate_wake);
	pthread_mutex_unlock(&s->gate_lock);
	/* the allocator would keep what one large request needed */
	if (n >= TRIM_BYTES)
		malloc_trim(0);
}
