#include <string.h>

#include "http.h"

#define FILTERS                                                                                 \
	"since", "until", "backend", "verdict", "level", "cause", "session", "actor", "device", \
	    "label"

static const char *const p_none[] = {NULL};
static const char *const p_status[] = {"probe", NULL};
static const char *const p_classify[] = {"id",        "backend", "exit",        "signal",
                                         "timed_out", "started", "mode",        "network",
                                         "cwd",       "observe", "enforcement", NULL};
static const char *const p_list[] = {FILTERS, "limit", "cursor", NULL};
static const char *const p_one[] = {"explain", NULL};
static const char *const p_events[] = {"after", NULL};
static const char *const p_signatures[] = {"backend", NULL};

const http_route http_routes[] = {
    {"status", "/v1/status", HTTP_GET, false, p_status, http_api_status, NULL},
    {"classify", "/v1/classify", HTTP_POST, false, p_classify, NULL, http_api_classify},
    {"invocations", "/v1/invocations", HTTP_GET | HTTP_POST, false, p_list,
     http_api_invocations_list, http_api_invocations_post},
    {"invocation", "/v1/invocations/{id}", HTTP_GET, false, p_one, http_api_invocation, NULL},
    {"reports", "/v1/reports", HTTP_GET, false, p_none, http_api_reports, NULL},
    {"report", "/v1/reports/{name}", HTTP_GET, false, p_list, http_api_report, NULL},
    {"signatures", "/v1/signatures", HTTP_GET, false, p_signatures, http_api_signatures, NULL},
    {"cause", "/v1/causes/{slug}", HTTP_GET, false, p_none, http_api_cause, NULL},
    {"chain", "/v1/chain", HTTP_GET, false, p_none, http_api_chain, NULL},
    {"events", "/v1/events", HTTP_GET, false, p_events, http_api_events, NULL},
    {"metrics", "/metrics", HTTP_GET, false, p_none, http_api_metrics, NULL},
    {"livez", "/livez", HTTP_GET, true, p_none, http_api_livez, NULL},
    {"readyz", "/readyz", HTTP_GET, true, p_none, http_api_readyz, NULL},
    {"openapi", "/openapi.json", HTTP_GET, true, p_none, http_api_openapi, NULL},
    {"dashboard", "/", HTTP_GET, true, p_none, http_api_ui, NULL},
    {"asset", "/ui/{file}", HTTP_GET, true, p_none, http_api_ui, NULL},
};
const size_t http_n_routes = sizeof(http_routes) / sizeof(http_routes[0]);

const http_route *http_route_find(const char *path, char arg[HTTP_PATH_ARG_MAX])
{
	arg[0] = '\0';
	for (size_t i = 0; i < http_n_routes; i++) {
		const char *pattern = http_routes[i].pattern;
		const char *brace = strchr(pattern, '{');
		if (!brace) {
			if (!strcmp(path, pattern))
				return &http_routes[i];
			continue;
		}
		size_t n = (size_t)(brace - pattern);
		size_t rest = strlen(path);
		if (strncmp(path, pattern, n) != 0)
			continue;
		rest -= n;
		/* the rest is one segment; an id may hold an escaped slash, a file name may not */
		if (!rest || rest >= HTTP_PATH_ARG_MAX)
			continue;
		memcpy(arg, path + n, rest + 1);
		return &http_routes[i];
	}
	return NULL;
}
