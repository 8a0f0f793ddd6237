#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"

const char *http_query(const http_request *req, const char *name)
{
	return MHD_lookup_connection_value(req->connection, MHD_GET_ARGUMENT_KIND, name);
}

bool http_query_int(const http_request *req, http_reply *reply, const char *name, int64_t min,
                    int64_t max, int64_t fallback, int64_t *out)
{
	const char *value = http_query(req, name);
	char *end;

	*out = fallback;
	if (!value)
		return true;
	errno = 0;
	long long n = strtoll(value, &end, 10);
	if (errno || end == value || *end || n < min || n > max) {
		http_reply_problem(reply, HTTP_PROBLEM_BAD_PARAMETER,
		                   "%s: '%.40s' is not a whole number from %" PRId64 " to %" PRId64,
		                   name, value, min, max);
		return false;
	}
	*out = n;
	return true;
}

void http_reply_header(http_reply *reply, const char *name, const char *fmt, ...)
{
	va_list ap;

	if (reply->n_headers == HTTP_REPLY_HEADERS_MAX)
		return;
	va_start(ap, fmt);
	int n = vsnprintf(reply->headers[reply->n_headers].value, sizeof(reply->headers[0].value),
	                  fmt, ap);
	va_end(ap);
	/* half a header would be wrong; none is only less convenient */
	if (n < 0 || (size_t)n >= sizeof(reply->headers[0].value))
		return;
	reply->headers[reply->n_headers++].name = name;
}

void http_escape(sw_buf *b, const char *z)
{
	for (; *z; z++) {
		if (isalnum((unsigned char)*z) || strchr("-._~", *z))
			sw_buf_add(b, z, 1);
		else
			sw_buf_addf(b, "%%%02X", (unsigned char)*z);
	}
}

static void drop_body(http_reply *reply)
{
	free(reply->body);
	reply->body = NULL;
	reply->fixed = NULL;
	reply->len = 0;
}

void http_reply_clear(http_reply *reply)
{
	drop_body(reply);
	reply->n_headers = 0;
}

void http_reply_json(http_reply *reply, int status, json_t *j)
{
	static const char failure[] = "{\"type\":\"" HTTP_PROBLEM_TYPE_PREFIX
	                              "internal\",\"title\":\"The service failed\",\"status\":500,"
	                              "\"detail\":\"out of memory\"}";
	drop_body(reply);
	reply->status = status;
	reply->content_type = "application/json";
	reply->body = j ? sw_json_dump(j) : NULL;
	json_decref(j);
	if (reply->body) {
		reply->len = strlen(reply->body);
		return;
	}
	reply->status = 500;
	reply->content_type = "application/problem+json";
	reply->fixed = failure;
	reply->len = sizeof(failure) - 1;
}

static void problem(http_reply *reply, http_problem p, const char *detail, const char *fix)
{
	int status = http_problem_status(p);

	reply->n_headers = 0;
	http_reply_json(reply, status, http_problem_json(p, detail, fix));
	reply->content_type = "application/problem+json";
	if (status == 401)
		http_reply_header(reply, "WWW-Authenticate", "Bearer realm=\"sandwitness\"");
	else if (status == 503)
		http_reply_header(reply, "Retry-After", "1");
}

void http_reply_problem(http_reply *reply, http_problem p, const char *detail_fmt, ...)
{
	char detail[1024];
	va_list ap;

	va_start(ap, detail_fmt);
	vsnprintf(detail, sizeof(detail), detail_fmt, ap);
	va_end(ap);
	problem(reply, p, detail, NULL);
}

void http_reply_error_as(http_reply *reply, http_problem p, const sw_error *e)
{
	char detail[1100];

	snprintf(detail, sizeof(detail), "%s%s%s%s%s", e->where, *e->where ? ": " : "", e->what,
	         *e->why ? ": " : "", e->why);
	problem(reply, p, detail, e->fix);
}

void http_reply_error(http_reply *reply, const sw_error *e)
{
	static const struct {
		int code;
		http_problem problem;
	} map[] = {
	    {SW_EINVAL, HTTP_PROBLEM_BAD_BODY},    {SW_ENOTFOUND, HTTP_PROBLEM_NOT_FOUND},
	    {SW_ECONFLICT, HTTP_PROBLEM_CONFLICT}, {SW_EBUSY, HTTP_PROBLEM_BUSY},
	    {SW_ETOOBIG, HTTP_PROBLEM_BAD_BODY},   {SW_EIO, HTTP_PROBLEM_STORE},
	    {SW_ECORRUPT, HTTP_PROBLEM_STORE},     {SW_EUNSUPPORTED, HTTP_PROBLEM_UNSUPPORTED},
	};
	http_problem p = HTTP_PROBLEM_INTERNAL;

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (map[i].code == e->code)
			p = map[i].problem;
	http_reply_error_as(reply, p, e);
}

bool http_reply_etag(const http_request *req, http_reply *reply, const char *tag)
{
	http_reply_header(reply, "ETag", "\"%s\"", tag);
	http_reply_header(reply, "Cache-Control", "private, no-cache");
	/* a list of tags, or "*"; weak comparison */
	const char *p = req->if_none_match;
	if (!p)
		return false;
	bool found = !strcmp(p, "*");
	size_t n = strlen(tag);
	while (!found && (p = strchr(p, '"'))) {
		const char *end = strchr(p + 1, '"');
		if (!end)
			break;
		found = (size_t)(end - p - 1) == n && !memcmp(p + 1, tag, n);
		p = end + 1;
	}
	if (!found)
		return false;
	drop_body(reply);
	reply->status = 304;
	reply->content_type = NULL;
	return true;
}
