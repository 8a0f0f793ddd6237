/* Would it be let through outside: what is no file: addresses, sockets, namespaces, privileges. */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_internal.h"
#include "trace.h"

long run_trace_sysctl(const char *path, long otherwise)
{
	char *text = run_trace_text(path, 64);
	long number = text ? atol(text) : otherwise;
	free(text);
	return number;
}

bool run_trace_capability(const run_failed_call *f, int cap)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2];
	if (f->uid != geteuid() || syscall(SYS_capget, &h, d))
		return false;
	return d[cap / 32].effective & (1u << (cap % 32));
}

bool run_trace_lacks(const run_failed_call *f, int cap)
{
	return run_trace_capability(f, cap) && !run_trace_has(f->pid, cap);
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
	int on = 1,
	    fd = run_trace_fd(socket(a->v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
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

/* The process's network has no address of the sixth version, not even loopback's. */
static bool without_v6(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/net/if_inet6", (int)pid);
	char *text = run_trace_text(path, 1 << 20);
	bool none = text && !text[0];
	free(text);
	return none;
}

/* A datagram socket's connect() sends nothing and still needs a route. */
static run_outside route_outside(const run_failed_call *f)
{
	address a;
	if (!read_address(f->path, &a))
		return OUTSIDE_UNKNOWN;
	/* else it is its own address or port that is taken, or gone */
	if (f->error == EADDRNOTAVAIL && !(a.v6 && without_v6(f->pid)))
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

/* ---- sockets and namespaces: tried ---- */

static run_outside make_socket(const run_failed_call *f)
{
	if (socket((int)f->args[0], (int)f->args[1], (int)f->args[2]) >= 0)
		return OUTSIDE_ALLOWED;
	return errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS
	           ? OUTSIDE_UNKNOWN
	           : OUTSIDE_REFUSED;
}

static run_outside make_namespace(const run_failed_call *f)
{
	if (unshare((int)f->args[0] & RUN_TRACE_NAMESPACES) == 0)
		return OUTSIDE_ALLOWED;
	return errno == ENOMEM ? OUTSIDE_UNKNOWN : OUTSIDE_REFUSED;
}

/*
 * In a child, which ends with what it made. Another user has no privileges of this one's; the
 * groups are that user's already.
 */
static run_outside tried(const run_failed_call *f, run_outside (*call)(const run_failed_call *))
{
	pid_t pid = fork();
	if (pid == 0) {
		bool is =
		    f->uid == geteuid() || (syscall(SYS_setresgid, f->gid, f->gid, f->gid) == 0 &&
		                            syscall(SYS_setresuid, f->uid, f->uid, f->uid) == 0);
		_exit(is ? (int)call(f) : (int)OUTSIDE_UNKNOWN);
	}
	int status = -1;
	while (pid > 0 && waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	if (pid < 0 || !WIFEXITED(status))
		return OUTSIDE_UNKNOWN;
	return (run_outside)WEXITSTATUS(status);
}

/* ---- privileges ---- */

#define GROUPS_LOOKED_AT 1024

/* Each id but -1, which is none: OUTSIDE_ALLOWED where the namespace does not know one. */
static run_outside ids_unknown(const run_failed_call *f, bool group, const uint32_t *ids, size_t n)
{
	bool mapped = true;
	for (size_t i = 0; i < n && mapped; i++)
		mapped = ids[i] == UINT32_MAX || run_trace_mapped(f->pid, group, ids[i]);
	return mapped ? OUTSIDE_UNKNOWN : OUTSIDE_ALLOWED;
}

static run_outside group_list(const run_failed_call *f)
{
	uint32_t ids[GROUPS_LOOKED_AT];
	uint32_t n = (uint32_t)f->args[0];
	if (n > NGROUPS_MAX)
		return OUTSIDE_REFUSED;
	struct iovec mine = {ids, n * sizeof ids[0]};
	struct iovec its = {(void *)(uintptr_t)f->args[1], mine.iov_len};
	if (n > GROUPS_LOOKED_AT ||
	    process_vm_readv(f->pid, &mine, 1, &its, 1, 0) != (ssize_t)mine.iov_len)
		return OUTSIDE_UNKNOWN;
	for (uint32_t i = 0; i < n; i++)
		if (ids[i] == UINT32_MAX)
			return OUTSIDE_REFUSED;
	return ids_unknown(f, true, ids, n);
}

/* EINVAL: an id that is none anywhere, or that the user namespace does not know. */
static run_outside id_outside(const run_failed_call *f)
{
	static const struct {
		int nr, ids;
		bool group;
	} calls[] = {{SYS_setuid, 1, false},  {SYS_setgid, 1, true},     {SYS_setreuid, 2, false},
	             {SYS_setregid, 2, true}, {SYS_setresuid, 3, false}, {SYS_setresgid, 3, true}};
	if (f->call->nr == SYS_setgroups)
		return group_list(f);
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		if (calls[i].nr != f->call->nr)
			continue;
		uint32_t ids[3] = {(uint32_t)f->args[0], (uint32_t)f->args[1],
		                   (uint32_t)f->args[2]};
		if (calls[i].ids == 1 && ids[0] == UINT32_MAX)
			return OUTSIDE_REFUSED;
		return ids_unknown(f, calls[i].group, ids, (size_t)calls[i].ids);
	}
	return OUTSIDE_UNKNOWN;
}

/* Calls that Landlock refuses to whoever has the capability. */
static bool changes_mounts(int nr)
{
	return nr == SYS_mount || nr == SYS_umount2 || nr == SYS_pivot_root
#ifdef SYS_move_mount
	       || nr == SYS_move_mount
#endif
	    ;
}

/* The kernel asks for the privilege first: with it the call would fail by what it asks for. */
static bool mounts_unknown_type(const run_failed_call *f)
{
	enum {
		OTHER = MS_BIND | MS_MOVE | MS_REMOUNT | MS_SHARED | MS_PRIVATE | MS_SLAVE |
		        MS_UNBINDABLE
	};
	char type[64], line[128], known[64];
	if (f->call->nr != SYS_mount || (f->args[3] & OTHER) ||
	    !run_trace_string(f->pid, f->args[2], type, sizeof type))
		return false;
	FILE *all = fopen("/proc/filesystems", "re");
	bool found = !all;
	while (all && !found && fgets(line, sizeof line, all))
		found = sscanf(line, "nodev %63s", known) == 1 || sscanf(line, " %63s", known) == 1
		            ? !strcmp(known, type)
		            : false;
	if (all)
		fclose(all);
	return !found; /* or a module's that is not loaded yet */
}

static run_outside privilege_outside(const run_failed_call *f)
{
	const run_call *c = f->call;
	if ((c->nr == SYS_sethostname || c->nr == SYS_setdomainname) && f->args[1] > HOST_NAME_MAX)
		return OUTSIDE_REFUSED;
	if (mounts_unknown_type(f))
		return OUTSIDE_UNKNOWN;
	if (f->error == EINVAL) {
		run_outside out = id_outside(f);
		if (out != OUTSIDE_ALLOWED)
			return out;
	}
	/* of its other commands each has rules of its own */
	if (c->nr == SYS_bpf && f->args[0] != BPF_MAP_CREATE && f->args[0] != BPF_PROG_LOAD)
		return OUTSIDE_UNKNOWN;
	if (c->capability == CAP_SYS_MODULE &&
	    run_trace_sysctl("/proc/sys/kernel/modules_disabled", 0) > 0)
		return OUTSIDE_REFUSED;
	if (!run_trace_capability(f, c->capability))
		return OUTSIDE_REFUSED;
	/* who has the capability is refused by the call's own rules */
	if (f->error == EPERM && !f->filtered && !changes_mounts(c->nr) &&
	    run_trace_has(f->pid, c->capability))
		return OUTSIDE_UNKNOWN;
	return OUTSIDE_ALLOWED;
}

/* On the host's own network a filter of the host's may have said no, or what a message carries. */
static bool refused_by_rules(const run_failed_call *f)
{
	return f->error == EPERM && (f->control || (!f->filtered && shares_network(f->pid)));
}

run_outside run_trace_other_outside(const run_failed_call *f)
{
	switch (f->call->kind) {
	case CALL_CONNECT:
	case CALL_BIND:
		if (!f->path[0] || refused_by_rules(f))
			return OUTSIDE_UNKNOWN;
		if (of_the_network(f->error) && shares_network(f->pid))
			return OUTSIDE_REFUSED;
		return f->call->kind == CALL_BIND ? bind_outside(f) : route_outside(f);
	case CALL_SOCKET:
		return tried(f, make_socket);
	case CALL_UNSHARE:
		return tried(f, make_namespace);
	case CALL_PRIVILEGE:
		return privilege_outside(f);
	case CALL_TRACER: /* there can be only one, and it is this program */
		return OUTSIDE_REFUSED;
	default:
		return OUTSIDE_UNKNOWN;
	}
}
