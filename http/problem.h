/*
 * problem.h - errors as RFC 9457 problem objects. `type` is a URN that does not
 * change: clients may compare it. docs/http.md explains each.
 */
#ifndef SW_HTTP_PROBLEM_H
#define SW_HTTP_PROBLEM_H

#include <jansson.h>

/* slug, status, title, how to mend it */
#define HTTP_PROBLEM_LIST(X)                                                                       \
	X(BAD_REQUEST, "bad-request", 400, "The request is malformed",                             \
	  "send a well-formed HTTP/1.1 request with one Content-Length or chunked coding")         \
	X(BAD_PARAMETER, "bad-parameter", 400, "A query parameter is wrong",                       \
	  "see /openapi.json for this route's parameters and their ranges")                        \
	X(BAD_BODY, "bad-body", 400, "The body is not what this route takes",                      \
	  "see /openapi.json for the members, their types and ranges")                             \
	X(TOKEN_MISSING, "token-missing", 401, "A token is needed on this listener",               \
	  "send `Authorization: Bearer TOKEN` with the content of the token file; "                \
	  "the unix socket needs none")                                                            \
	X(TOKEN_WRONG, "token-wrong", 401, "The token is not this service's",                      \
	  "read the token file again (--token-file); it changes when the file is replaced "        \
	  "and the service restarted")                                                             \
	X(ORIGIN, "origin-refused", 403, "Another site's page may not use this service",           \
	  "open the dashboard from the address that `serve` prints; a trusted front end's origin " \
	  "is added with --allow-origin")                                                          \
	X(NOT_FOUND, "not-found", 404, "There is nothing at this address",                         \
	  "see /openapi.json for the routes")                                                      \
	X(NO_SUCH_RECORD, "no-such-record", 404, "No record has this id",                          \
	  "list ids with GET /v1/invocations; old records may have been pruned")                   \
	X(NO_SUCH_REPORT, "no-such-report", 404, "No report has this name",                        \
	  "use one of the names in the detail")                                                    \
	X(METHOD, "method-not-allowed", 405, "This route does not take this method",               \
	  "use a method of the Allow header")                                                      \
	X(CONFLICT, "id-conflict", 409, "A record with this id and another content exists",        \
	  "repeat the very same body, or use another id")                                          \
	X(TOO_LARGE, "body-too-large", 413, "The body is over the limit",                          \
	  "send less (the end of an output decides most verdicts), or raise --max-body")           \
	X(MEDIA_TYPE, "media-type", 415, "A body of this content type is not taken",               \
	  "send Content-Type: application/json or application/octet-stream")                       \
	X(HOST, "host-refused", 421, "The Host header is not one of this service's names",         \
	  "use the address that `serve` prints, or add the name with --allow-host NAME[:PORT]")    \
	X(HEADER_TOO_LARGE, "header-too-large", 431,                                               \
	  "The request line and headers are over the limit",                                       \
	  "send fewer or shorter headers, or raise --max-header")                                  \
	X(INTERNAL, "internal", 500, "The service failed", "see its log; `sandwitness doctor`")    \
	X(STORE, "store-failed", 500, "The audit trail could not be used",                         \
	  "see the detail; `sandwitness verify` and docs/operations.md")                           \
	X(BUSY, "busy", 503, "A limit of this service is reached",                                 \
	  "try again after the time in Retry-After")                                               \
	X(STREAMS, "too-many-streams", 503, "All event streams are taken",                         \
	  "close other dashboards, or raise --max-streams")                                        \
	X(STOPPING, "stopping", 503, "The service is shutting down", "try again when it is back")  \
	X(UNSUPPORTED, "unsupported", 501, "This build cannot do that", "see `sandwitness version`")

typedef enum {
#define HTTP_X_PROBLEM(s, slug, status, title, fix) HTTP_PROBLEM_##s,
	HTTP_PROBLEM_LIST(HTTP_X_PROBLEM)
#undef HTTP_X_PROBLEM
	    HTTP_PROBLEM_COUNT,
	HTTP_PROBLEM_NONE = HTTP_PROBLEM_COUNT
} http_problem;

#define HTTP_PROBLEM_TYPE_PREFIX "urn:sandwitness:problem:"

int http_problem_status(http_problem p);
const char *http_problem_slug(http_problem p);
/* detail, fix NULL: none, the table's. New reference. */
json_t *http_problem_json(http_problem p, const char *detail, const char *fix);

#endif
