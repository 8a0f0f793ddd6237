#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "events.h"
#include "glue.h"
#include "guard.h"
#include "metrics.h"
#include "packs.h"
#include "probes.h"
#include "self_sandbox.h"
#include "writer.h"

enum { TICK_MS = 100, TOKEN_PATH_MAX = 4096 };

/* Streams get so long to take their last event; one that reads nothing is not waited for. */
#define LAST_EVENT_NS INT64_C(1000000000)

/* The parts besides those that handlers see. */
typedef struct server_all {
	http_server shared; /* first: the public pointer is to it */
	http_conns *conns;
	http_daemon daemons[HTTP_LISTENERS_MAX];
	size_t n_daemons;
	http_helper *helper; /* NULL: the service itself looks */
} server_all;

static server_all *all_of(const http_server *s)
{
	return (server_all *)s;
}

static void on_committed(void *arg)
{
	http_server *s = arg;

	if (s->events)
		http_events_poke(s->events);
}

static int open_listeners(server_all *a, const http_config *c, sw_error *err)
{
	http_listener passed[HTTP_LISTENERS_MAX];
	size_t n = 0;
	int code = http_listener_inherited(passed, HTTP_LISTENERS_MAX, &n, err);

	for (size_t i = 0; !code && i < n; i++)
		a->daemons[a->n_daemons++].listener = passed[i];
	for (size_t i = 0; !code && i < c->n_listen; i++) {
		if (a->n_daemons == HTTP_LISTENERS_MAX)
			return sw_error_set(err, SW_ETOOBIG, "more than %d listeners",
			                    HTTP_LISTENERS_MAX);
		code = http_listener_open(&a->daemons[a->n_daemons].listener, &c->listen[i],
		                          (mode_t)c->socket_mode, err);
		a->n_daemons += !code;
	}
	if (code || a->n_daemons)
		return code;
	http_listen_spec spec = {.kind = HTTP_LISTEN_UNIX, .path = http_default_socket()};
	if (!spec.path)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	code = http_listener_open(&a->daemons[0].listener, &spec, (mode_t)c->socket_mode, err);
	a->n_daemons = !code;
	free(spec.path);
	return code;
}

/* "http-token" beside the audit trail. */
static int load_token(server_all *a, const http_config *c, sw_error *err)
{
	bool tcp = false;
	char path[TOKEN_PATH_MAX];
	const char *slash = strrchr(a->shared.db_path, '/');

	for (size_t i = 0; i < a->n_daemons; i++)
		tcp |= a->daemons[i].listener.kind == HTTP_LISTEN_TCP;
	if (!tcp)
		return 0;
	int n = snprintf(path, sizeof(path), "%.*shttp-token",
	                 slash ? (int)(slash - a->shared.db_path) + 1 : 0, a->shared.db_path);
	if (n < 0 || (size_t)n >= sizeof(path))
		return sw_error_set(err, SW_ETOOBIG, "the token file's path is too long");
	return http_token_load(&a->shared.token, c->token_file ? c->token_file : path, err);
}

static char *db_path(const http_config *c)
{
	const char *env = getenv("SANDWITNESS_DB");
	const char *state = getenv("STATE_DIRECTORY");
	char *path = NULL;

	if (c->db)
		return strdup(c->db);
	if (env && *env)
		return strdup(env);
	if (state && *state == '/') /* given by the service manager; the first of a list */
		return asprintf(&path, "%.*s/audit.db", (int)strcspn(state, ":"), state) < 0 ? NULL
		                                                                             : path;
	return sw_xdg_path("XDG_STATE_HOME", "audit.db");
}

/* The folder a file lies in; freed by the caller. */
static char *folder_of(const char *file)
{
	const char *slash = strrchr(file, '/');

	if (!slash)
		return strdup(".");
	return strndup(file, slash == file ? 1 : (size_t)(slash - file));
}

/*
 * Before the first thread, for the kernel confines threads one by one. Left within reach:
 * the trail's folder, that of its key and of the token where they lie elsewhere, the
 * socket files' folders to remove these at the end, and the time zone.
 */
static int confine(server_all *a, const http_config *c, sw_error *err)
{
	const char *key = getenv("SANDWITNESS_SEAL_KEY");
	char *real = realpath(a->shared.db_path, NULL); /* a link may lead elsewhere */
	char *owned[4 + HTTP_LISTENERS_MAX] = {folder_of(a->shared.db_path)};
	sw_self_path paths[6 + HTTP_LISTENERS_MAX] = {{owned[0], SW_SELF_WRITE},
	                                              {"/etc/localtime", SW_SELF_READ},
	                                              {"/usr/share/zoneinfo", SW_SELF_READ}};
	size_t n = 1, n_paths = 3;
	int code = owned[0] ? 0 : sw_error_set(err, SW_ENOMEM, "out of memory");

	/* a folder that is made later could not be reached */
	if (!code && access(owned[0], F_OK))
		code = sw_mkdirs(owned[0], 0700, err);
	const char *const elsewhere[] = {key && *key ? key : NULL, c->token_file, real};
	for (size_t i = 0; i < 3; i++)
		if (elsewhere[i] && (owned[n] = folder_of(elsewhere[i])))
			paths[n_paths++] = (sw_self_path){owned[n++], SW_SELF_WRITE};
	for (size_t i = 0; i < a->n_daemons; i++)
		if (a->daemons[i].listener.kind == HTTP_LISTEN_UNIX &&
		    !a->daemons[i].listener.activated &&
		    (owned[n] = folder_of(a->daemons[i].listener.path)))
			paths[n_paths++] = (sw_self_path){owned[n++], SW_SELF_REMOVE};
	/* SQLite's files for sorting, which it removes as it opens them */
	if (!code && !getenv("SQLITE_TMPDIR"))
		setenv("SQLITE_TMPDIR", owned[0], 1);
	tzset();
	if (!code)
		sw_self_sandbox_paths(SW_SELF_SERVICE, paths, n_paths);
	for (size_t i = 0; i < n; i++)
		free(owned[i]);
	free(real);
	return code;
}

static int start_parts(server_all *a, const http_config *c, sw_error *err)
{
	http_server *s = &a->shared;
	int code = 0;

	if (http_metrics_new(&s->metrics) || http_conns_new(&a->conns, c) ||
	    !(s->db_path = db_path(c)))
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	code = http_packs_load(&s->packs, c, err);
	/* forked while there is nothing to inherit: no listener, no thread, no confinement */
	if (!code && !c->no_self_sandbox)
		code = http_helper_start(&a->helper, c, s->packs, err);
	if (!code)
		code = open_listeners(a, c, err);
	if (!code && !c->no_self_sandbox)
		code = confine(a, c, err);
	/* the writer makes the trail and its folder; the token lies there too */
	if (!code)
		code = http_writer_start(&s->writer, s->db_path, c, on_committed, s, err);
	if (!code)
		code = load_token(a, c, err);
	if (!code && http_readers_new(&s->readers, s->db_path))
		code = sw_error_set(err, SW_ENOMEM, "out of memory");
	if (!code)
		code = http_events_start(&s->events, s->readers, c, err);
	if (!code)
		code = http_probes_start(&s->probes, c, s->packs, a->helper, err);
	for (size_t i = 0; !code && i < a->n_daemons; i++) {
		a->daemons[i].server = s;
		a->daemons[i].conns = a->conns;
		code = http_daemon_start(&a->daemons[i], err);
	}
	return code;
}

static void log_head(http_server *s, const char *when)
{
	sw_store *store;
	sw_store_head h;
	char hex[65];

	if (s->config->quiet || http_readers_take(s->readers, &store, NULL))
		return;
	int code = sw_store_head_get(store, &h, NULL);
	http_readers_give(s->readers, store, code != 0);
	if (code)
		return;
	for (size_t i = 0; i < sizeof(h.hash); i++)
		snprintf(hex + 2 * i, 3, "%02x", h.hash[i]);
	/* kept outside the file, it shows a cut tail: verify --anchor SEQ:HASH */
	fprintf(stderr, "sandwitnessd: %s: chain head %" PRIu64 ":%s\n", when, h.seq, hex);
}

int http_server_start(http_server **out, const http_config *config, sw_error *err)
{
	server_all *a = calloc(1, sizeof(*a));
	sw_error local = {0};

	if (!a)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	for (size_t i = 0; i < HTTP_LISTENERS_MAX; i++)
		a->daemons[i].listener.fd = -1;
	/* a thread per connection must not mean an arena per connection */
	mallopt(M_ARENA_MAX, 4);
	a->shared.config = config;
	pthread_mutex_init(&a->shared.gate_lock, NULL);
	pthread_cond_init(&a->shared.gate_wake, NULL);
	a->shared.started_ns = sw_now_ns();
	int code = start_parts(a, config, &local);
	if (code) {
		http_server_stop(&a->shared);
		if (err)
			*err = local;
		return code;
	}
	log_head(&a->shared, "started");
	*out = &a->shared;
	return 0;
}

static void wait_for_requests(http_server *s)
{
	int64_t now = sw_monotonic_ns(), until = now + s->config->shutdown_ns;
	int64_t streams_until = now + LAST_EVENT_NS;
	const struct timespec tick = {.tv_nsec = 5000000};
	http_events_stats events = {0};

	if (s->events)
		http_events_stats_get(s->events, &events);
	while ((atomic_load(&s->in_flight) > 0 && now < until) ||
	       (events.streams && now < streams_until)) {
		nanosleep(&tick, NULL);
		now = sw_monotonic_ns();
		if (s->events)
			http_events_stats_get(s->events, &events);
	}
}

void http_server_stop(http_server *s)
{
	if (!s)
		return;
	server_all *a = all_of(s);
	atomic_store(&s->stopping, true);
	for (size_t i = 0; i < a->n_daemons; i++)
		http_daemon_quiesce(&a->daemons[i]);
	if (s->events)
		http_events_shut(s->events);
	wait_for_requests(s);
	for (size_t i = 0; i < a->n_daemons; i++)
		http_daemon_stop(&a->daemons[i]);
	for (size_t i = 0; i < a->n_daemons; i++)
		http_listener_close(&a->daemons[i].listener);
	http_writer_stop(s->writer);
	http_probes_stop(s->probes);
	http_helper_stop(a->helper);
	if (s->readers)
		log_head(s, "stopped");
	http_events_free(s->events);
	http_readers_free(s->readers);
	http_packs_free(s->packs);
	http_metrics_free(s->metrics);
	http_conns_free(a->conns);
	pthread_mutex_destroy(&s->gate_lock);
	pthread_cond_destroy(&s->gate_wake);
	free(s->token);
	free(s->db_path);
	free(a);
}

char *http_server_address(const http_server *s, size_t n, bool *is_tcp)
{
	const server_all *a = all_of(s);
	char *text = NULL;

	if (n >= a->n_daemons)
		return NULL;
	const http_listener *l = &a->daemons[n].listener;
	*is_tcp = l->kind == HTTP_LISTEN_TCP;
	int rc = !*is_tcp
	             ? asprintf(&text, "unix:%s", l->path)
	             : asprintf(&text, strchr(l->host, ':') ? "http://[%s]:%d/" : "http://%s:%d/",
	                        l->host, l->port);
	return rc < 0 ? NULL : text;
}

void http_server_run(http_server *s, const atomic_int *stop)
{
	server_all *a = all_of(s);
	const struct timespec tick = {.tv_nsec = TICK_MS * 1000000L};
	int64_t watchdog = http_watchdog_interval_ns(), last_dog = 0, last_head = sw_monotonic_ns();

	while (!atomic_load(stop)) {
		nanosleep(&tick, NULL);
		int64_t now = sw_monotonic_ns();
		http_metrics_cut(s->metrics, http_conns_reap(a->conns, now));
		http_metrics_connections(s->metrics, http_conns_count(a->conns, true),
		                         http_conns_count(a->conns, false));
		/* a writer that hangs on a dead disk must not look alive */
		if (watchdog && now - last_dog >= watchdog) {
			http_notify("WATCHDOG=1");
			last_dog = now;
		}
		if (now - last_head >= INT64_C(3600) * 1000000000) {
			log_head(s, "hourly");
			last_head = now;
		}
	}
}
