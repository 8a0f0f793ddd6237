#include "guard.h"

#include <nettle/memops.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool host_is(const char *host, const char *name, int port)
{
	size_t n = strlen(name);
	char text[8];

	if (strncasecmp(host, name, n) != 0)
		return false;
	if (!host[n])
		return true;
	if (host[n] != ':' || !port)
		return false;
	snprintf(text, sizeof(text), "%d", port);
	return !strcmp(host + n + 1, text);
}

bool http_guard_host(const http_config *c, bool is_unix, int port, const char *host)
{
	static const char *const own[] = {"localhost", "127.0.0.1", "[::1]"};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (host_is(host, own[i], is_unix ? 0 : port))
			return true;
	if (is_unix && !strcasecmp(host, "sandwitness"))
		return true;
	for (size_t i = 0; i < c->n_allow_host; i++)
		if (host_is(host, c->allow_host[i], is_unix ? 0 : port))
			return true;
	return false;
}

bool http_guard_origin(const http_config *c, const char *host, const char *origin)
{
	/* the page that this service itself gave out */
	if (host && !strncasecmp(origin, "http://", 7) && !strcasecmp(origin + 7, host))
		return true;
	for (size_t i = 0; i < c->n_allow_origin; i++)
		if (!strcasecmp(origin, c->allow_origin[i]))
			return true;
	return false;
}

bool http_guard_token(const char *token, const char *authorization)
{
	size_t n = strlen(token);

	if (strncasecmp(authorization, "Bearer ", 7) != 0)
		return false;
	authorization += 7;
	authorization += strspn(authorization, " ");
	return strlen(authorization) == n && nettle_memeql_sec(token, authorization, n);
}

bool http_guard_content_type(const char *content_type)
{
	static const char *const known[] = {"application/json", "application/octet-stream"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t n = strlen(known[i]);
		if (strncasecmp(content_type, known[i], n) != 0)
			continue;
		n += strspn(content_type + n, " \t");
		if (!content_type[n] || content_type[n] == ';')
			return true;
	}
	return false;
}

static http_problem framing(const http_head *h, char detail[320])
{
	/* two readers of one byte stream must not see two different requests */
	if (h->content_length.count > 1 || h->transfer_encoding.count > 1 ||
	    (h->content_length.count && h->transfer_encoding.count)) {
		snprintf(detail, 320, "the body's length is given more than once");
		return HTTP_PROBLEM_BAD_REQUEST;
	}
	if (h->content_length.odd || h->transfer_encoding.odd) {
		snprintf(detail, 320, "a NUL in the body's length");
		return HTTP_PROBLEM_BAD_REQUEST;
	}
	if (h->transfer_encoding.count && strcasecmp(h->transfer_encoding.value, "chunked") != 0) {
		snprintf(detail, 320, "only the chunked transfer coding is understood");
		return HTTP_PROBLEM_BAD_REQUEST;
	}
	return HTTP_PROBLEM_NONE;
}

static http_problem sender(const http_config *c, const http_head *h, char detail[320])
{
	if (h->host.count != 1 || h->host.odd ||
	    !http_guard_host(c, h->is_unix, h->port, h->host.value)) {
		if (h->host.count != 1)
			snprintf(detail, 320, "%u Host headers; exactly one is needed",
			         h->host.count);
		else
			snprintf(
			    detail, 320,
			    "Host '%.100s' is not in the list (localhost, 127.0.0.1, [::1]%s, and "
			    "what --allow-host adds)",
			    h->host.value,
			    h->is_unix ? ", sandwitness" : " with this listener's port");
		return HTTP_PROBLEM_HOST;
	}
	if (h->origin.count > 1 || h->origin.odd ||
	    (h->origin.count &&
	     !http_guard_origin(c, h->is_unix ? NULL : h->host.value, h->origin.value))) {
		snprintf(
		    detail, 320,
		    "Origin '%.100s' is not this service's own, and not added with --allow-origin",
		    h->origin.value);
		return HTTP_PROBLEM_ORIGIN;
	}
	const http_once *site = &h->sec_fetch_site;
	if (site->count > 1 || site->odd ||
	    (site->count && strcmp(site->value, "same-origin") != 0 &&
	     strcmp(site->value, "none") != 0)) {
		snprintf(detail, 320, "Sec-Fetch-Site '%.40s': only same-origin and none may pass",
		         site->value);
		return HTTP_PROBLEM_ORIGIN;
	}
	return HTTP_PROBLEM_NONE;
}

http_problem http_guard(const http_config *c, const char *token, const http_head *h,
                        char detail[320])
{
	detail[0] = '\0';
	http_problem p = sender(c, h, detail);

	if (p == HTTP_PROBLEM_NONE)
		p = framing(h, detail);
	if (p != HTTP_PROBLEM_NONE)
		return p;
	if (!strcmp(h->method, "POST") && (h->content_type.count != 1 || h->content_type.odd ||
	                                   !http_guard_content_type(h->content_type.value))) {
		if (h->content_type.count)
			snprintf(detail, 320, "'%.100s' is not taken", h->content_type.value);
		else
			snprintf(detail, 320, "the request has no Content-Type");
		return HTTP_PROBLEM_MEDIA_TYPE;
	}
	if (h->is_unix || h->is_public)
		return HTTP_PROBLEM_NONE;
	if (!h->authorization.count)
		return HTTP_PROBLEM_TOKEN_MISSING;
	if (h->authorization.count > 1 || h->authorization.odd || !token ||
	    !http_guard_token(token, h->authorization.value))
		return HTTP_PROBLEM_TOKEN_WRONG;
	return HTTP_PROBLEM_NONE;
}
