/* Would it be let through outside: what is no file: addresses, sockets, namespaces, privileges. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_internal.h"
#include "trace.h"

long run_trace_sysctl(const char *path, long otherwise)
{
	char *text;
	size_t n;
	if (sw_read_file(path, 64, &text, &n, NULL))
		return otherwise;
	char number[24];
	snprintf(number, sizeof number, "%.*s", (int)(n < 23 ? n : 23), text);
	free(text);
	return atol(number);
}

bool run_trace_capability(const run_failed_call *f, int cap)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2];
	if (f->uid != geteuid() || syscall(SYS_capget, &h, d))
		return false;
	return d[cap / 32].effective & (1u << (cap % 32));
}

typedef struct address {
	bool v6;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
} address;

/* "127.0.0.1:80", "[::1]:80" */
static bool read_address(const char *text, address *a)
{
	char host[128];
	const char *colon = strrchr(text, ':');
	memset(a, 0, sizeof *a);
	a->v6 = text[0] == '[';
	if (!colon || (size_t)(colon - text) >= sizeof host)
		return false;
	size_t n = (size_t)(colon - text) - (a->v6 ? 2 : 0);
	memcpy(host, text + (a->v6 ? 1 : 0), n);
	host[n] = '\0';
	uint16_t port = htons((uint16_t)atoi(colon + 1));
	a->four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
	a->six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
	return a->v6 ? inet_pton(AF_INET6, host, &a->six.sin6_addr) == 1
	             : inet_pton(AF_INET, host, &a->four.sin_addr) == 1;
}

static bool try_address(const address *a, bool bound, bool broadcast)
{
	int on = 1, fd = socket(a->v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	if (broadcast)
		setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof on);
	const struct sockaddr *to =
	    a->v6 ? (const struct sockaddr *)&a->six : (const struct sockaddr *)&a->four;
	socklen_t n = a->v6 ? sizeof a->six : sizeof a->four;
	bool ok = bound ? bind(fd, to, n) == 0 : connect(fd, to, n) == 0;
	close(fd);
	return ok;
}

static bool shares_network(pid_t pid)
{
	char path[64];
	struct stat its, ours;
	snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
	return stat(path, &its) == 0 && stat("/proc/self/ns/net", &ours) == 0 &&
	       run_trace_same_file(&its, &ours);
}

/* Errors that come from the network itself, which is the same one here. */
static bool of_the_network(int error)
{
	return error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN ||
	       error == EADDRNOTAVAIL;
}

/* A datagram socket's connect() sends nothing and still needs a route. */
static run_outside route_outside(const run_failed_call *f)
{
	address a;
	if (!read_address(f->path, &a))
		return OUTSIDE_UNKNOWN;
	if (!a.four.sin_port)
		a.four.sin_port = htons(9);
	if (!a.six.sin6_port)
		a.six.sin6_port = htons(9);
	/* who has not asked to broadcast is told EACCES everywhere */
	return run_trace_answer(try_address(&a, false, f->error != EACCES));
}

static run_outside bind_outside(const run_failed_call *f)
{
	address a;
	if (!read_address(f->path, &a))
		return OUTSIDE_UNKNOWN;
	int port = ntohs(a.v6 ? a.six.sin6_port : a.four.sin_port);
	if (f->error == EADDRNOTAVAIL) {
		a.four.sin_port = a.six.sin6_port = 0; /* whether the address is one of ours */
		return run_trace_answer(try_address(&a, true, false));
	}
	if (port == 0 || port >= 1024 || run_trace_capability(f, CAP_NET_BIND_SERVICE))
		return OUTSIDE_ALLOWED;
	long first = run_trace_sysctl("/proc/sys/net/ipv4/ip_unprivileged_port_start", 1024);
	return run_trace_answer(port >= first);
}

static run_outside socket_outside(const run_failed_call *f)
{
	int fd = socket((int)f->args[0], (int)f->args[1] | SOCK_CLOEXEC, (int)f->args[2]);
	if (fd >= 0)
		close(fd);
	return run_trace_answer(fd >= 0);
}

/* Tried in a child, which ends with what it made. */
static run_outside unshare_outside(const run_failed_call *f)
{
	int flags = (int)f->args[0];
	pid_t pid = fork();
	if (pid == 0)
		_exit(unshare(flags & RUN_TRACE_NAMESPACES) ? 1 : 0);
	int status = -1;
	while (pid > 0 && waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	if (pid < 0 || !WIFEXITED(status))
		return OUTSIDE_UNKNOWN;
	return run_trace_answer(WEXITSTATUS(status) == 0);
}

run_outside run_trace_other_outside(const run_failed_call *f)
{
	switch (f->call->kind) {
	case CALL_CONNECT:
	case CALL_BIND:
		if (!f->path[0])
			return OUTSIDE_UNKNOWN;
		if (of_the_network(f->error) && shares_network(f->pid))
			return OUTSIDE_REFUSED;
		return f->call->kind == CALL_BIND ? bind_outside(f) : route_outside(f);
	case CALL_SOCKET:
		return socket_outside(f);
	case CALL_UNSHARE:
		return unshare_outside(f);
	case CALL_PRIVILEGE:
		return run_trace_answer(run_trace_capability(f, f->call->capability));
	case CALL_TRACER: /* there can be only one, and it is this program */
		return OUTSIDE_REFUSED;
	default:
		return OUTSIDE_UNKNOWN;
	}
}
