#include "metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define X_NAME(s, n) n,
static const char *const backends[] = {SW_BACKEND_LIST(X_NAME) "other"};
static const char *const verdicts[] = {SW_VERDICT_LIST(X_NAME)
                                           SW_RECORD_VERDICT_EXTRA_LIST(X_NAME)};
#undef X_NAME
static const int codes[] = {200, 201, 304, 400, 401, 403, 404, 405, 409,
                            413, 415, 421, 431, 500, 501, 503, 0};
static const struct {
	int64_t ns;
	const char *le;
} buckets[] = {{1000000, "0.001"}, {5000000, "0.005"}, {25000000, "0.025"},
               {100000000, "0.1"}, {500000000, "0.5"}, {2500000000, "2.5"}};

enum {
	N_BACKENDS = sizeof(backends) / sizeof(backends[0]),
	N_VERDICTS = sizeof(verdicts) / sizeof(verdicts[0]),
	N_CODES = sizeof(codes) / sizeof(codes[0]),
	N_BUCKETS = sizeof(buckets) / sizeof(buckets[0]),
	ROUTES_MAX = 32
};

struct http_metrics {
	atomic_ulong requests[ROUTES_MAX][N_CODES];
	atomic_ulong bucket[ROUTES_MAX][N_BUCKETS];
	atomic_ulong timed[ROUTES_MAX];
	_Atomic int64_t time_ns[ROUTES_MAX];
	atomic_ulong classified[N_BACKENDS][N_VERDICTS];
	atomic_ulong recorded[N_BACKENDS][N_VERDICTS];
	atomic_ulong cut;
	atomic_ulong connections[2];
};

int http_metrics_new(http_metrics **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : SW_ENOMEM;
}

void http_metrics_free(http_metrics *m)
{
	free(m);
}

static void add(atomic_ulong *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void http_metrics_request(http_metrics *m, const http_route *route, int status, int64_t ns)
{
	size_t r = route ? (size_t)(route - http_routes) : http_n_routes;
	size_t c = 0;

	while (codes[c] && codes[c] != status)
		c++;
	add(&m->requests[r][c]);
	if (!ns)
		return;
	add(&m->timed[r]);
	atomic_fetch_add_explicit(&m->time_ns[r], ns, memory_order_relaxed);
	for (size_t i = 0; i < N_BUCKETS; i++)
		if (ns <= buckets[i].ns) {
			add(&m->bucket[r][i]);
			break;
		}
}

static void count(atomic_ulong table[N_BACKENDS][N_VERDICTS], sw_str backend, const char *verdict)
{
	size_t b = 0, v = 0;

	while (b < N_BACKENDS - 1 && !sw_str_eq(backend, sw_str_of(backends[b])))
		b++;
	while (v < N_VERDICTS && (!verdict || strcmp(verdicts[v], verdict) != 0))
		v++;
	if (v < N_VERDICTS)
		add(&table[b][v]);
}

void http_metrics_classified(http_metrics *m, const char *backend, const char *verdict)
{
	count(m->classified, sw_str_of(backend), verdict);
}

void http_metrics_recorded(http_metrics *m, sw_str backend, const char *verdict)
{
	count(m->recorded, backend, verdict);
}

void http_metrics_cut(http_metrics *m, size_t connections)
{
	atomic_fetch_add(&m->cut, connections);
}

void http_metrics_connections(http_metrics *m, size_t on_unix, size_t on_tcp)
{
	atomic_store(&m->connections[0], on_unix);
	atomic_store(&m->connections[1], on_tcp);
}

void http_metrics_head(sw_buf *b, const char *name, const char *type, const char *help)
{
	sw_buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static const char *route_name(size_t r)
{
	return r < http_n_routes ? http_routes[r].name : "none";
}

static void requests_text(http_metrics *m, sw_buf *b)
{
	http_metrics_head(b, "sandwitness_http_requests_total", "counter",
	                  "Requests answered, by route and status code.");
	for (size_t r = 0; r <= http_n_routes; r++)
		for (size_t c = 0; c < N_CODES; c++) {
			unsigned long n = atomic_load(&m->requests[r][c]);
			if (!n)
				continue;
			sw_buf_addf(b, "sandwitness_http_requests_total{route=\"%s\",code=\"",
			            route_name(r));
			if (codes[c])
				sw_buf_addf(b, "%d\"} %lu\n", codes[c], n);
			else
				sw_buf_addf(b, "other\"} %lu\n", n);
		}
	const char *name = "sandwitness_http_request_duration_seconds";
	http_metrics_head(b, name, "histogram", "From a request's head to the end of its answer.");
	for (size_t r = 0; r <= http_n_routes; r++) {
		unsigned long total = atomic_load(&m->timed[r]), sum = 0;
		if (!total)
			continue;
		for (size_t i = 0; i < N_BUCKETS; i++) {
			sum += atomic_load(&m->bucket[r][i]);
			/* the counters are read one by one: never let a bucket pass the total */
			sw_buf_addf(b, "%s_bucket{route=\"%s\",le=\"%s\"} %lu\n", name,
			            route_name(r), buckets[i].le, sum < total ? sum : total);
		}
		sw_buf_addf(b, "%s_bucket{route=\"%s\",le=\"+Inf\"} %lu\n", name, route_name(r),
		            total);
		sw_buf_addf(b, "%s_sum{route=\"%s\"} %.6f\n", name, route_name(r),
		            (double)atomic_load(&m->time_ns[r]) / 1e9);
		sw_buf_addf(b, "%s_count{route=\"%s\"} %lu\n", name, route_name(r), total);
	}
}

static void table_text(atomic_ulong table[N_BACKENDS][N_VERDICTS], const char *name,
                       const char *help, sw_buf *b)
{
	http_metrics_head(b, name, "counter", help);
	for (size_t i = 0; i < N_BACKENDS; i++)
		for (size_t v = 0; v < N_VERDICTS; v++) {
			unsigned long n = atomic_load(&table[i][v]);
			if (n)
				sw_buf_addf(b, "%s{backend=\"%s\",verdict=\"%s\"} %lu\n", name,
				            backends[i], verdicts[v], n);
		}
}

void http_metrics_text(http_metrics *m, sw_buf *b)
{
	http_metrics_head(b, "sandwitness_build_info", "gauge", "The running version.");
	sw_buf_addf(b, "sandwitness_build_info{version=\"%s\"} 1\n", SW_VERSION);
	requests_text(m, b);
	http_metrics_head(b, "sandwitness_http_connections", "gauge",
	                  "Open connections, by kind of listener.");
	sw_buf_addf(b, "sandwitness_http_connections{listener=\"unix\"} %lu\n",
	            atomic_load(&m->connections[0]));
	sw_buf_addf(b, "sandwitness_http_connections{listener=\"tcp\"} %lu\n",
	            atomic_load(&m->connections[1]));
	http_metrics_head(b, "sandwitness_http_connections_cut_total", "counter",
	                  "Connections ended because a phase took too long.");
	sw_buf_addf(b, "sandwitness_http_connections_cut_total %lu\n", atomic_load(&m->cut));
	table_text(m->classified, "sandwitness_classified_total",
	           "Outputs classified by this service since its start.", b);
	table_text(m->recorded, "sandwitness_recorded_total",
	           "Invocations recorded by this service since its start.", b);
}
