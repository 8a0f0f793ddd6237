#include "probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"
#include "probe.h"

#define X_NAME(s, n) n,
static const char *const results[] = {SW_PROBE_RESULT_LIST(X_NAME)};
static const char *const backend_names[] = {SW_BACKEND_LIST(X_NAME)};
#undef X_NAME

struct http_probes {
	const http_config *config;
	http_packs *packs;
	http_helper *helper;
	pthread_mutex_t running; /* held while proofs run: one at a time */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stopping, started;
	pthread_t thread;
	json_t *last; /* backend id -> probe object */
};

static bool known_backend(const char *id)
{
	for (size_t i = 0; i < sizeof(backend_names) / sizeof(backend_names[0]); i++)
		if (!strcmp(backend_names[i], id))
			return true;
	return false;
}

/* Keeps what was proved, and shows what is kept. */
static void remember(http_probes *p, json_t *status)
{
	json_t *backend;
	size_t i;

	pthread_mutex_lock(&p->lock);
	json_array_foreach(json_object_get(status, "backends"), i, backend)
	{
		const char *id = json_string_value(json_object_get(backend, "id"));
		json_t *probe = json_object_get(backend, "probe");
		const char *result = json_string_value(json_object_get(probe, "result"));
		if (!id || !result || !known_backend(id))
			continue;
		if (strcmp(result, "not_probed") != 0)
			json_object_set_new(p->last, id, json_deep_copy(probe));
		json_t *last = json_object_get(p->last, id);
		json_object_set_new(backend, "last_probe",
		                    last ? json_deep_copy(last) : json_null());
	}
	pthread_mutex_unlock(&p->lock);
}

int http_probes_status(http_probes *p, bool probe, const char *only, json_t **out, sw_error *err)
{
	const sw_probe_options o = {
	    .only = only,
	    .probe = probe,
	    .deadline_ms = (int)(p->config->probe_timeout_ns / 1000000),
	    .packs = http_packs_set(p->packs),
	    /* a plain look must stay a look: the background proofs catch noted failures */
	    .no_recheck = !probe,
	    .confined_service = p->config->confined,
	};

	if (probe && pthread_mutex_trylock(&p->running)) {
		sw_error_set(err, SW_EBUSY, "probes are running already");
		return sw_error_more(err, "probe", NULL,
		                     "ask without probe=; last_probe will show them");
	}
	json_t *j = NULL;
	int code = 0;
	if (p->helper)
		code = http_helper_status(p->helper, probe, only, &j, err);
	else if (!(j = sw_status_read_json(&o, err)))
		code = err && err->code ? err->code : SW_EIO;
	if (probe)
		pthread_mutex_unlock(&p->running);
	if (code)
		return code;
	remember(p, j);
	*out = j;
	return 0;
}

static void *probes_main(void *arg)
{
	http_probes *p = arg;
	struct timespec until;

	pthread_mutex_lock(&p->lock);
	while (!p->stopping) {
		json_t *j = NULL;
		pthread_mutex_unlock(&p->lock);
		if (!http_probes_status(p, true, NULL, &j, NULL))
			json_decref(j);
		pthread_mutex_lock(&p->lock);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += p->config->probe_age_ns / 1000000000 + 1;
		while (!p->stopping)
			if (pthread_cond_timedwait(&p->wake, &p->lock, &until) == ETIMEDOUT)
				break;
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int http_probes_start(http_probes **out, const http_config *config, http_packs *packs,
                      http_helper *helper, sw_error *err)
{
	http_probes *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;

	if (!p || !(p->last = json_object())) {
		free(p);
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	p->config = config;
	p->packs = packs;
	p->helper = helper;
	pthread_mutex_init(&p->running, NULL);
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (config->probe_age_ns && !config->confined)
		p->started = !pthread_create(&p->thread, NULL, probes_main, p);
	*out = p;
	return 0;
}

void http_probes_stop(http_probes *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	if (p->started)
		pthread_join(p->thread, NULL);
	json_decref(p->last);
	pthread_mutex_destroy(&p->running);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->wake);
	free(p);
}

void http_probes_text(http_probes *p, sw_buf *b)
{
	const char *id;
	json_t *probe;

	http_metrics_head(b, "sandwitness_probe_result", "gauge",
	                  "1 for the result of a backend's last probe by this service.");
	pthread_mutex_lock(&p->lock);
	json_object_foreach(p->last, id, probe)
	{
		const char *result = json_string_value(json_object_get(probe, "result"));
		for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
			sw_buf_addf(b,
			            "sandwitness_probe_result{backend=\"%s\",result=\"%s\"} %d\n",
			            id, results[i], result && !strcmp(result, results[i]));
	}
	pthread_mutex_unlock(&p->lock);
}
