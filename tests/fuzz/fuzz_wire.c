/*
 * The whole service behind its sockets: whatever a client sends, each connection is answered or
 * closed in time, the first answer is never an internal error, and the service goes on.
 *
 * Input: a byte of setting (1: TCP instead of the unix socket, 2: the request arrives in two
 * pieces, 4: the client goes away without reading), then the bytes of the connection. On TCP the
 * token is "fuzz-token-0123456789abcdef-0123456789".
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base.h"
#include "fuzz.h"
#include "http.h"

enum { ANSWER_MS = 10000, RUNS_PER_TRAIL = 20000 };

static http_server *server;
static http_config config;
static char folder[64];
static struct sockaddr_un local;
static struct sockaddr_in tcp;

static void stop(void)
{
	http_server_stop(server);
	http_config_free(&config);
	server = NULL;
	DIR *d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(folder);
}

static void start(void)
{
	char socket_path[200], trail[200], token[200], *argv[16];
	int argc = 0;
	bool answered, is_tcp;
	sw_error err = {0};

	snprintf(folder, sizeof(folder), "%s/sw-wire.XXXXXX",
	         access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	MUST(mkdtemp(folder));
	snprintf(socket_path, sizeof(socket_path), "unix:%s/s", folder);
	snprintf(trail, sizeof(trail), "%s/audit.db", folder);
	snprintf(token, sizeof(token), "%s/token", folder);
	umask(077);
	FILE *f = fopen(token, "w");
	MUST(f && fputs("fuzz-token-0123456789abcdef-0123456789\n", f) >= 0 && fclose(f) == 0);
	/* no runner is found: a probe that is asked for must not start one in each run */
	setenv("PATH", "/nonexistent", 1);
	for (const char *const *word =
	         (const char *const[]){"fuzz", "--listen", socket_path, "--listen", "127.0.0.1:0",
	                               "--db", trail, "--token-file", token, "--no-self-sandbox",
	                               "--quiet", "--probe-age=0s", NULL};
	     *word; word++)
		argv[argc++] = (char *)*word;
	argv[argc] = NULL;
	http_config_init(&config);
	MUST(http_config_parse(&config, argc, argv, &answered, &err) == 0);
	MUST(http_server_start(&server, &config, &err) == 0);
	local.sun_family = AF_UNIX;
	snprintf(local.sun_path, sizeof(local.sun_path), "%s/s", folder);
	char *address = http_server_address(server, 1, &is_tcp);
	MUST(address && is_tcp);
	tcp.sin_family = AF_INET;
	tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	tcp.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	free(address);
}

static int dial(bool over_tcp)
{
	int fd = socket(over_tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(fd >= 0);
	int rc = over_tcp ? connect(fd, (struct sockaddr *)&tcp, sizeof(tcp))
	                  : connect(fd, (struct sockaddr *)&local, sizeof(local));
	if (rc && over_tcp && errno == EADDRNOTAVAIL) { /* thousands wait for their last packet */
		close(fd);
		return dial(false);
	}
	MUST(rc == 0);
	return fd;
}

/* The service may have answered and closed already: what it does not take is not its fault. */
static void send_some(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
		if (k <= 0)
			return;
		p += k;
		n -= (size_t)k;
	}
}

/* Reads until the service closes, or a stream of events has begun. */
static void receive(int fd)
{
	static char answer[1 << 16];
	size_t kept = 0;
	int64_t until = sw_monotonic_ns() + ANSWER_MS * INT64_C(1000000);
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		MUST(sw_monotonic_ns() < until);
		if (poll(&p, 1, 1000) <= 0)
			continue;
		char rest[4096];
		bool keep = kept < sizeof(answer) - 1;
		ssize_t n = keep ? recv(fd, answer + kept, sizeof(answer) - 1 - kept, 0)
		                 : recv(fd, rest, sizeof(rest), 0);
		if (n <= 0)
			break;
		kept += keep ? (size_t)n : 0;
		answer[kept] = '\0';
		if (strstr(answer, "text/event-stream"))
			break;
	}
	if (kept >= 12 && !strncmp(answer, "HTTP/1.", 7))
		MUST(strncmp(answer + 9, "500", 3) != 0);
	else
		MUST(kept ==
		     0); /* closed without a word: libmicrohttpd's answer to what is no HTTP */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned runs;
	if (size < 2)
		return 0;
	if (!server) {
		signal(SIGPIPE, SIG_IGN);
		start();
		atexit(stop);
	} else if (++runs % RUNS_PER_TRAIL == 0) {
		stop();
		start();
	}
	uint8_t setting = *data++;
	size--;
	int fd = dial(setting & 1);
	size_t first = setting & 2 ? size / 2 : size;
	send_some(fd, data, first);
	if (first < size) {
		struct timespec pause = {.tv_nsec = 1000000};
		nanosleep(&pause, NULL);
		send_some(fd, data + first, size - first);
	}
	shutdown(fd, SHUT_WR);
	if (!(setting & 4))
		receive(fd);
	close(fd);
	return 0;
}
