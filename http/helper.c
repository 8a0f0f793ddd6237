#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum { ANSWER_MAX = 4 << 20, LOOK_MS = 10000, BACKENDS_PROBED = 16 };

struct http_helper {
	const http_config *config;
	int fd; /* SOCK_SEQPACKET: a message is whole, whichever thread sends it */
	pid_t pid;
};

typedef struct request {
	bool probe, confined;
	int deadline_ms;
	char only[64]; /* "" all */
} request;

/* ---- in the helper ---- */

static json_t *error_json(const sw_error *e)
{
	return json_pack("{s:{s:i, s:o, s:o, s:o, s:o}}", "error", "code", e->code, "where",
	                 sw_json_text(sw_str_of(e->where)), "what",
	                 sw_json_text(sw_str_of(e->what)), "why", sw_json_text(sw_str_of(e->why)),
	                 "fix", sw_json_text(sw_str_of(e->fix)));
}

static void answer(int fd, const request *q, const sw_pack_set *packs)
{
	const sw_probe_options o = {
	    .only = *q->only ? q->only : NULL,
	    .probe = q->probe,
	    .deadline_ms = q->deadline_ms,
	    .packs = packs,
	    /* a plain look stays a look: the service's own proofs catch noted failures */
	    .no_recheck = !q->probe,
	    .confined_service = q->confined,
	};
	sw_error err = {0};
	json_t *status = sw_status_read_json(&o, &err);
	json_t *reply = status ? json_pack("{s:o}", "status", status) : error_json(&err);
	char *text = reply ? sw_json_dump(reply) : NULL;

	char lost[64]; /* what can be said without memory */
	snprintf(lost, sizeof(lost), "{\"error\":{\"code\":%d,\"what\":\"out of memory\"}}",
	         SW_ENOMEM);
	const char *said = text ? text : lost;
	sw_write_all(fd, said, strlen(said));
	free(text);
	json_decref(reply);
}

/* One message with one descriptor. false: the service is gone. */
static bool take(int from, request *q, int *fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = q, .iov_len = sizeof(*q)};
	struct msghdr m = {.msg_iov = &iov,
	                   .msg_iovlen = 1,
	                   .msg_control = control.bytes,
	                   .msg_controllen = sizeof(control.bytes)};
	ssize_t n;

	do
		n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	*fd = -1;
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	return n == (ssize_t)sizeof(*q) && *fd >= 0;
}

static void serve(int from, const sw_pack_set *packs)
{
	static const int own[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
	request q;
	int fd;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		signal(own[i], SIG_DFL);
	signal(SIGCHLD, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "sandwitness-look");
	/* sockets of the service manager among them */
	close_range(3, (unsigned)from - 1, 0);
	close_range((unsigned)from + 1, ~0u, 0);
	while (take(from, &q, &fd)) {
		q.only[sizeof(q.only) - 1] = '\0';
		/* a process for each: a slow proof must not keep a look waiting */
		if (fork() == 0) {
			signal(SIGCHLD, SIG_DFL);
			close(from);
			answer(fd, &q, packs);
			_exit(0);
		}
		close(fd);
	}
	_exit(0);
}

/* ---- in the service ---- */

int http_helper_start(http_helper **out, const http_config *config, http_packs *packs,
                      sw_error *err)
{
	http_helper *h = calloc(1, sizeof(*h));
	int pair[2];

	if (!h)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	h->config = config;
	fflush(NULL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) || (h->pid = fork()) < 0) {
		free(h);
		sw_error_set(err, SW_EIO, "the helper for probes cannot be started");
		return sw_error_more(err, "fork", strerror(errno), "check the limits (ulimit -a)");
	}
	if (h->pid == 0)
		serve(pair[1], http_packs_set(packs));
	close(pair[1]);
	h->fd = pair[0];
	*out = h;
	return 0;
}

void http_helper_stop(http_helper *h)
{
	if (!h)
		return;
	close(h->fd);
	/* it may be gone already: a signal to the whole group reaches it too */
	while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR) {
	}
	free(h);
}

static int ask(const http_helper *h, const request *q, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = (void *)q, .iov_len = sizeof(*q)};
	struct msghdr m = {.msg_iov = &iov,
	                   .msg_iovlen = 1,
	                   .msg_control = control.bytes,
	                   .msg_controllen = sizeof(control.bytes)};

	memset(&control, 0, sizeof(control));
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(h->fd, &m, MSG_NOSIGNAL) == (ssize_t)sizeof(*q) ? 0 : SW_EIO;
}

/* Everything until the other end is closed, or the time is up. */
static int collect(int fd, int wait_ms, sw_buf *b)
{
	int64_t until = sw_monotonic_ns() + (int64_t)wait_ms * 1000000;
	char block[16384];

	for (;;) {
		int64_t left = (until - sw_monotonic_ns()) / 1000000;
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int ready = left > 0 ? poll(&p, 1, (int)left) : 0;
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return SW_EBUSY;
		ssize_t n = read(fd, block, sizeof(block));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? SW_EIO : 0;
		int code = sw_buf_add(b, block, (size_t)n);
		if (code)
			return code;
	}
}

static int unpack(const sw_buf *b, json_t **out, sw_error *err)
{
	bool no_memory = false;
	json_t *reply =
	    b->len ? sw_json_load(b->ptr, b->len, JSON_ALLOW_NUL, NULL, &no_memory) : NULL;
	if (no_memory)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	json_t *status = json_object_get(reply, "status");
	const json_t *e = json_object_get(reply, "error");
	int code = 0;

	if (status) {
		*out = json_incref(status);
	} else if (e) {
		code = (int)json_integer_value(json_object_get(e, "code"));
		const char *what = json_string_value(json_object_get(e, "what"));
		sw_error_set(err, code, "%s", what ? what : "");
		sw_error_more(err, json_string_value(json_object_get(e, "where")),
		              json_string_value(json_object_get(e, "why")),
		              json_string_value(json_object_get(e, "fix")));
	} else {
		code = sw_error_set(err, SW_EUNSUPPORTED, "the helper for probes gave no answer");
		sw_error_more(err, "status", "it is gone, or was stopped", "restart the service");
	}
	json_decref(reply);
	return code;
}

int http_helper_status(http_helper *h, bool probe, const char *only, json_t **out, sw_error *err)
{
	const int deadline_ms = (int)(h->config->probe_timeout_ns / 1000000);
	request q = {.probe = probe, .confined = h->config->confined, .deadline_ms = deadline_ms};
	int ends[2];
	sw_buf b;

	if (only && strlen(only) >= sizeof(q.only)) {
		sw_error_set(err, SW_ENOTFOUND, "no backend has so long a name");
		return sw_error_more(err, "probe", NULL, "see /v1/status for the backends");
	}
	snprintf(q.only, sizeof(q.only), "%s", only ? only : "");
	if (pipe2(ends, O_CLOEXEC)) {
		sw_error_set(err, SW_EBUSY, "no descriptors are left");
		return sw_error_more(err, "status", strerror(errno), NULL);
	}
	sw_buf_init(&b, ANSWER_MAX);
	int code = ask(h, &q, ends[1]);
	close(ends[1]);
	if (!code)
		code =
		    collect(ends[0], probe ? LOOK_MS + deadline_ms * BACKENDS_PROBED : LOOK_MS, &b);
	close(ends[0]);
	if (code == SW_EBUSY) {
		sw_error_set(err, code, "the look took too long");
		sw_error_more(err, "status", NULL,
		              "try again; sandwitness status -v shows what is slow");
	} else if (code == SW_ENOMEM) {
		sw_error_set(err, code, "out of memory");
	} else {
		code = unpack(&b, out, err);
	}
	sw_buf_free(&b);
	return code;
}
