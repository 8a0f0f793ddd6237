#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base.h"

enum { BACKLOG = 256, FIRST_PASSED_FD = 3 };

static int fail(sw_error *err, const char *where, const char *what, int number, const char *fix)
{
	sw_error_set(err, SW_EIO, "%s", what);
	return sw_error_more(err, where, number ? strerror(number) : NULL, fix);
}

char *http_default_socket(void)
{
	const char *dir = getenv("RUNTIME_DIRECTORY");
	char *path = NULL;

	/* the manager may list several, separated by colons; the first is ours */
	if (dir && *dir == '/') {
		if (asprintf(&path, "%.*s/http.sock", (int)strcspn(dir, ":"), dir) < 0)
			return NULL;
		return path;
	}
	return sw_xdg_path("XDG_RUNTIME_DIR", "http.sock");
}

static bool answers(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return true; /* not known: leave the file alone */
	bool alive = !connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ||
	             (errno != ECONNREFUSED && errno != ENOENT);
	close(fd);
	return alive;
}

/* Removes a socket file that nobody listens on. */
static int clear_stale(const struct sockaddr_un *addr, sw_error *err)
{
	struct stat st;

	if (lstat(addr->sun_path, &st))
		return errno == ENOENT
		           ? 0
		           : fail(err, addr->sun_path, "the socket's place cannot be looked at",
		                  errno, NULL);
	if (!S_ISSOCK(st.st_mode))
		return fail(err, addr->sun_path, "a file that is no socket is in the way", 0,
		            "choose another path with --listen unix:PATH");
	if (answers(addr))
		return fail(err, addr->sun_path, "another service listens on this socket", 0,
		            "stop it, or choose another path with --listen unix:PATH");
	if (unlink(addr->sun_path) && errno != ENOENT)
		return fail(err, addr->sun_path, "the old socket cannot be removed", errno, NULL);
	return 0;
}

/*
 * Whoever can rename within the socket's folder can put another service in its place. A
 * sticky folder such as /tmp lets only the owners.
 */
static int check_folder(const char *folder, sw_error *err)
{
	struct stat st;

	if (stat(folder, &st))
		return fail(err, folder, "the socket's folder cannot be looked at", errno, NULL);
	if ((st.st_uid == geteuid() || st.st_uid == 0) &&
	    (!(st.st_mode & 022) || (st.st_mode & S_ISVTX)))
		return 0;
	return fail(err, folder, "the socket's folder belongs to others, or they can write it", 0,
	            "use a folder of this user's own: --listen unix:PATH, or set XDG_RUNTIME_DIR");
}

static int open_unix(http_listener *l, const char *path, mode_t mode, sw_error *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;
	char *slash;

	if (strlen(path) >= sizeof(addr.sun_path))
		return fail(err, path, "the socket's path is too long", ENAMETOOLONG,
		            "choose a path under 108 bytes with --listen unix:PATH");
	strcpy(addr.sun_path, path);
	strcpy(l->path, path);
	slash = strrchr(l->path, '/');
	if (slash && slash != l->path) {
		*slash = '\0';
		int code = sw_mkdirs(l->path, 0700, err);
		if (!code)
			code = check_folder(l->path, err);
		*slash = '/';
		if (code)
			return code;
	}
	if (clear_stale(&addr, err))
		return SW_EIO;
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return fail(err, path, "no socket", errno, NULL);
	mode_t old = umask(0777 & ~mode);
	int rc = bind(l->fd, (const struct sockaddr *)&addr, sizeof(addr));
	int number = errno;
	umask(old);
	if (rc)
		return fail(err, path, "the socket cannot be bound", number,
		            "choose another path with --listen unix:PATH");
	if (!lstat(path, &st)) {
		l->dev = st.st_dev;
		l->ino = st.st_ino;
	}
	return 0;
}

static int open_tcp(http_listener *l, const http_listen_spec *spec, sw_error *err)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)spec->port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
	                          .sin6_port = htons((uint16_t)spec->port)};
	bool six = strchr(spec->host, ':') != NULL;
	struct sockaddr *addr = six ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
	socklen_t n = six ? sizeof(v6) : sizeof(v4);
	char where[64];
	int on = 1;

	snprintf(where, sizeof(where), six ? "[%s]:%d" : "%s:%d", spec->host, spec->port);
	snprintf(l->host, sizeof(l->host), "%s", spec->host);
	if (six)
		inet_pton(AF_INET6, spec->host, &v6.sin6_addr);
	else
		inet_pton(AF_INET, spec->host, &v4.sin_addr);
	l->fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return fail(err, where, "no socket", errno, NULL);
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (six)
		setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(l->fd, addr, n))
		return fail(err, where, "the address cannot be bound", errno,
		            "choose another port");
	if (getsockname(l->fd, addr, &n))
		return fail(err, where, "the address cannot be read back", errno, NULL);
	l->port = ntohs(six ? v6.sin6_port : v4.sin_port);
	return 0;
}

int http_listener_open(http_listener *out, const http_listen_spec *spec, mode_t mode, sw_error *err)
{
	http_listener l = {.kind = spec->kind, .fd = -1};
	int code = spec->kind == HTTP_LISTEN_UNIX ? open_unix(&l, spec->path, mode, err)
	                                          : open_tcp(&l, spec, err);

	if (!code && listen(l.fd, BACKLOG))
		code = fail(err, l.path, "the socket cannot listen", errno, NULL);
	if (code) {
		http_listener_close(&l);
		return code;
	}
	*out = l;
	return 0;
}

void http_listener_close(http_listener *l)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;

	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	if (l->kind != HTTP_LISTEN_UNIX || l->activated || !l->ino)
		return;
	/* numbers are used again at once: a successor's file may have the same */
	memcpy(addr.sun_path, l->path, sizeof(addr.sun_path));
	if (!lstat(l->path, &st) && st.st_dev == l->dev && st.st_ino == l->ino && !answers(&addr))
		unlink(l->path);
	l->ino = 0;
}

/* What a passed descriptor is; only stream sockets that listen, TCP only on loopback. */
static int describe(http_listener *l, int fd, sw_error *err)
{
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} addr;
	socklen_t n = sizeof(addr), len = sizeof(int);
	int listening = 0, type = 0;
	char where[32];

	memset(&addr, 0, sizeof(addr));
	snprintf(where, sizeof(where), "descriptor %d", fd);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) || !listening ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) || type != SOCK_STREAM ||
	    getsockname(fd, &addr.any, &n))
		return fail(err, where, "the service manager passed no listening stream socket",
		            errno, "use ListenStream= and Accept=no in the socket unit");
	*l = (http_listener){.fd = fd, .activated = true};
	if (addr.any.sa_family == AF_UNIX) {
		l->kind = HTTP_LISTEN_UNIX;
		snprintf(l->path, sizeof(l->path), "%.107s", addr.un.sun_path);
		return 0;
	}
	l->kind = HTTP_LISTEN_TCP;
	if (addr.any.sa_family == AF_INET && (ntohl(addr.v4.sin_addr.s_addr) >> 24) == 127) {
		inet_ntop(AF_INET, &addr.v4.sin_addr, l->host, sizeof(l->host));
		l->port = ntohs(addr.v4.sin_port);
		return 0;
	}
	if (addr.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&addr.v6.sin6_addr)) {
		inet_ntop(AF_INET6, &addr.v6.sin6_addr, l->host, sizeof(l->host));
		l->port = ntohs(addr.v6.sin6_port);
		return 0;
	}
	return fail(
	    err, where, "the passed socket is neither a unix socket nor on loopback", 0,
	    "listen on 127.0.0.1, [::1] or a path; put a reverse proxy with TLS in front for "
	    "other machines");
}

int http_listener_inherited(http_listener *out, size_t max, size_t *n, sw_error *err)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int count = pid && fds && strtol(pid, NULL, 10) == getpid() ? atoi(fds) : 0;

	*n = 0;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (count < 0 || (size_t)count > max)
		return fail(err, "LISTEN_FDS", "too many sockets were passed", 0, "pass fewer");
	for (int i = 0; i < count; i++) {
		int fd = FIRST_PASSED_FD + i;
		fcntl(fd, F_SETFD, FD_CLOEXEC);
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
		int code = describe(&out[i], fd, err);
		if (code)
			return code;
		(*n)++;
	}
	return 0;
}
