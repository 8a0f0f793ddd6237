#include "client.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { TOKEN_MAX = 512, HEAD_MAX = 64 * 1024 };

typedef struct target {
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} addr;
	socklen_t len;
	char host[80];
	char token[TOKEN_MAX + 1]; /* "" none */
} target;

static int fail(sw_error *err, int code, const char *where, const char *what, const char *why,
                const char *fix)
{
	sw_error_set(err, code, "%s", what);
	return sw_error_more(err, where, why, fix);
}

static int read_token(target *t, sw_error *err)
{
	const char *path = getenv("SANDWITNESS_TOKEN_FILE");
	char *text = NULL;
	size_t n = 0;

	if (!path || !*path)
		return fail(err, SW_EINVAL, "--server", "TCP needs the service's token", NULL,
		            "set SANDWITNESS_TOKEN_FILE to its token file, or use unix:PATH");
	int code = sw_read_file(path, TOKEN_MAX, &text, &n, err);
	if (code)
		return code;
	while (n && isspace((unsigned char)text[n - 1]))
		n--;
	/* it becomes a header's value */
	for (size_t i = 0; i < n && !code; i++)
		if (!isgraph((unsigned char)text[i]))
			code =
			    fail(err, SW_EINVAL, path, "the token file holds no token", NULL, NULL);
	if (!code)
		snprintf(t->token, sizeof(t->token), "%.*s", (int)n, text);
	free(text);
	return code;
}

static int parse_tcp(target *t, const char *rest, sw_error *err)
{
	static const struct {
		const char *text;
		bool six;
	} hosts[] = {{"127.0.0.1:", false}, {"localhost:", false}, {"[::1]:", true}};

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		size_t n = strlen(hosts[i].text);
		char *end;
		if (strncmp(rest, hosts[i].text, n) != 0)
			continue;
		unsigned long port = strtoul(rest + n, &end, 10);
		if (end == rest + n || (*end && strcmp(end, "/") != 0) || port < 1 || port > 65535)
			break;
		if (hosts[i].six) {
			t->addr.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
			                                   .sin6_port = htons((uint16_t)port),
			                                   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
			t->len = sizeof(t->addr.v6);
		} else {
			t->addr.v4 =
			    (struct sockaddr_in){.sin_family = AF_INET,
			                         .sin_port = htons((uint16_t)port),
			                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
			t->len = sizeof(t->addr.v4);
		}
		snprintf(t->host, sizeof(t->host), "%s%lu", hosts[i].text, port);
		return read_token(t, err);
	}
	return fail(err, SW_EINVAL, "--server", "not a service's address", NULL,
	            "write unix:PATH, http://127.0.0.1:PORT or http://[::1]:PORT");
}

static int parse(target *t, const char *server, sw_error *err)
{
	const char *path = !strncmp(server, "unix:", 5) ? server + 5 : server;

	memset(t, 0, sizeof(*t));
	if (!strncmp(server, "http://", 7))
		return parse_tcp(t, server + 7, err);
	if (*path != '/')
		return parse_tcp(t, "", err);
	if (strlen(path) >= sizeof(t->addr.un.sun_path))
		return fail(err, SW_EINVAL, "--server", "the socket's path is too long", NULL,
		            "a path under 108 bytes is needed");
	t->addr.un.sun_family = AF_UNIX;
	strcpy(t->addr.un.sun_path, path);
	t->len = sizeof(t->addr.un);
	strcpy(t->host, "localhost");
	return 0;
}

static int dial(const target *t, const char *server, sw_error *err)
{
	struct timeval wait = {.tv_sec = CLI_SERVER_TIMEOUT_S};
	int fd = socket(t->addr.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
		if (!connect(fd, &t->addr.any, t->len))
			return fd;
	}
	int number = errno;
	if (fd >= 0)
		close(fd);
	fail(err, SW_EIO, server, "the service cannot be reached", strerror(number),
	     "start it: sandwitness serve");
	return -1;
}

/* MSG_NOSIGNAL: a service that answers early and closes must not kill the program. */
static int send_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return SW_EIO;
		p += sent;
		n -= (size_t)sent;
	}
	return 0;
}

static int send_request(int fd, const target *t, const char *path, const char *body)
{
	sw_buf head;
	size_t n = body ? strlen(body) : 0;

	sw_buf_init(&head, HEAD_MAX);
	sw_buf_addf(&head, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n",
	            body ? "POST" : "GET", path, t->host);
	if (*t->token)
		sw_buf_addf(&head, "Authorization: Bearer %s\r\n", t->token);
	if (body)
		sw_buf_addf(&head, "Content-Type: application/json\r\nContent-Length: %zu\r\n", n);
	sw_buf_adds(&head, "\r\n");
	int code = head.error ? head.error : send_all(fd, head.ptr, head.len);
	/* an error here may still have an answer: 413 comes before the body's end */
	if (!code && body)
		(void)send_all(fd, body, n);
	sw_buf_free(&head);
	return code;
}

static int receive(int fd, sw_buf *all)
{
	char block[65536];
	ssize_t n;

	while ((n = recv(fd, block, sizeof(block), 0)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		/* a reset after the answer is no loss */
		if (n < 0)
			return all->len ? 0 : SW_EIO;
		int code = sw_buf_add(all, block, (size_t)n);
		if (code)
			return code;
	}
	return 0;
}

int cli_server_problem(const json_t *problem, sw_error *err)
{
	static const struct {
		int status, code;
	} map[] = {{404, SW_ENOTFOUND}, {409, SW_ECONFLICT}, {413, SW_ETOOBIG}, {503, SW_EBUSY}};
	int status = (int)json_integer_value(json_object_get(problem, "status"));
	int code = status >= 400 && status < 500 ? SW_EINVAL : SW_EIO;
	const char *title = json_string_value(json_object_get(problem, "title"));

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (map[i].status == status)
			code = map[i].code;
	sw_error_set(err, code, "%s", title ? title : "the service refused");
	sw_error_more(err, "", json_string_value(json_object_get(problem, "detail")),
	              json_string_value(json_object_get(problem, "fix")));
	return code;
}

/* Status line, headers, body. The service sends whole answers with their length. */
static int take_answer(const sw_buf *all, const char *server, json_t **answer, sw_error *err)
{
	const char *end = all->len ? memmem(all->ptr, all->len, "\r\n\r\n", 4) : NULL;
	int status = 0;
	long long length = -1;

	if (!end || sscanf(all->ptr, "HTTP/1.%*d %d", &status) != 1)
		return fail(err, SW_EIO, server,
		            "the service ended the connection without an answer", NULL,
		            "see its log; a record may be sent again with the same id");
	for (const char *p = all->ptr; p < end; p = strstr(p, "\r\n") + 2)
		if (!strncasecmp(p, "Content-Length:", 15))
			length = strtoll(p + 15, NULL, 10);
	const char *body = end + 4;
	size_t n = all->len - (size_t)(body - all->ptr);
	if (length >= 0 && (unsigned long long)length != n)
		return fail(err, SW_EIO, server, "the service's answer was cut off", NULL,
		            "a record may be sent again with the same id");
	bool no_memory;
	json_t *j = sw_json_load(body, n, JSON_ALLOW_NUL, NULL, &no_memory);
	if (no_memory || all->error == SW_ENOMEM) {
		json_decref(j);
		return fail(err, SW_ENOMEM, server, "out of memory for the service's answer", NULL,
		            "a record may be sent again with the same id");
	}
	if (j && status >= 200 && status < 300) {
		*answer = j;
		return 0;
	}
	int code = j ? cli_server_problem(j, err)
	             : fail(err, SW_EIO, server, "the service's answer is not understood", NULL,
	                    "is this sandwitnessd?");
	json_decref(j);
	return code;
}

int cli_server_call(const char *server, const char *path, const json_t *body, json_t **answer,
                    sw_error *err)
{
	target t = {0};
	sw_buf all;
	char *text = body ? sw_json_dump(body) : NULL;
	int code =
	    body && !text ? sw_error_set(err, SW_ENOMEM, "out of memory") : parse(&t, server, err);
	int fd = code ? -1 : dial(&t, server, err);

	sw_buf_init(&all, CLI_ANSWER_MAX);
	if (!code && fd < 0)
		code = SW_EIO;
	if (!code && (code = send_request(fd, &t, path, text)))
		fail(err, code, server, "the request could not be sent", strerror(errno), NULL);
	if (!code && (code = receive(fd, &all)))
		fail(err, code, server, "the answer could not be read",
		     code == SW_ETOOBIG ? "it is over 64 MiB" : strerror(errno),
		     "ask for less: --limit");
	if (!code)
		code = take_answer(&all, server, answer, err);
	if (fd >= 0)
		close(fd);
	sw_buf_free(&all);
	free(text);
	return code;
}

void cli_server_escape(sw_buf *path, const char *value)
{
	for (const char *p = value; *p; p++) {
		if (isalnum((unsigned char)*p) || strchr("-._~", *p))
			sw_buf_add(path, p, 1);
		else
			sw_buf_addf(path, "%%%02X", (unsigned char)*p);
	}
}

void cli_server_param(sw_buf *path, const char *name, const char *value)
{
	if (!value)
		return;
	sw_buf_addf(path, "%s%s=", path->ptr && strchr(path->ptr, '?') ? "&" : "?", name);
	cli_server_escape(path, value);
}
