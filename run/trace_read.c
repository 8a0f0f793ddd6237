/* What a stopped process asked for: paths made absolute, addresses made readable. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "run_internal.h"
#include "trace.h"

/* Up to n bytes of the process; how many, at least up to the end of a page. */
static size_t read_memory(pid_t pid, uint64_t from, void *to, size_t n)
{
	size_t got = 0;
	while (got < n) {
		/* page by page, so that a string at the end of a mapping is readable */
		size_t piece = 4096 - (from + got) % 4096;
		if (piece > n - got)
			piece = n - got;
		struct iovec mine = {(char *)to + got, piece};
		struct iovec its = {(void *)(uintptr_t)(from + got), piece};
		ssize_t k = process_vm_readv(pid, &mine, 1, &its, 1, 0);
		if (k <= 0)
			break;
		got += (size_t)k;
		if ((size_t)k < piece || memchr((char *)to + got - k, 0, (size_t)k))
			break;
	}
	return got;
}

bool run_trace_string(pid_t pid, uint64_t from, char *to, size_t n)
{
	size_t got = read_memory(pid, from, to, n - 1);
	to[got] = '\0';
	return got > 0 && memchr(to, 0, got) != NULL;
}

/* The folder that a relative path starts from. */
static bool start_of(pid_t pid, int64_t dirfd, char *out, size_t n)
{
	char link[64];
	if ((int)dirfd == AT_FDCWD)
		snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
	else
		snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, (int)dirfd);
	ssize_t k = readlink(link, out, n - 1);
	if (k <= 0)
		return false;
	out[k] = '\0';
	return out[0] == '/';
}

/* "x/.." and the like, which name no entry of a folder. */
static bool ends_in_dots(const char *name)
{
	size_t n = strlen(name);
	while (n && name[n - 1] == '/')
		n--;
	size_t dots = 0;
	while (dots < n && name[n - 1 - dots] == '.')
		dots++;
	return (dots == 1 || dots == 2) && (dots == n || name[n - 1 - dots] == '/');
}

static void absolute(run_failed_call *f, int dirfd, int path, char *out, size_t n)
{
	char name[PATH_MAX] = "", start[PATH_MAX];
	int64_t at = dirfd >= 0 ? (int32_t)f->args[dirfd] : AT_FDCWD;
	out[0] = '\0';
	if (path >= 0 && f->args[path] &&
	    !run_trace_string(f->pid, f->args[path], name, sizeof name))
		return;
	f->dotted |= ends_in_dots(name);
	if (name[0] == '/') {
		snprintf(out, n, "%s", name);
		return;
	}
	if (!start_of(f->pid, at, start, sizeof start))
		return;
	const char *rest = name;
	while (!strncmp(rest, "./", 2))
		rest += 2;
	if (!rest[0] || !strcmp(rest, "."))
		snprintf(out, n, "%s", start);
	else if (snprintf(out, n, "%s/%s", strcmp(start, "/") ? start : "", rest) >= (int)n)
		out[0] = '\0'; /* half a name is another one */
}

/* Of sendmsg() and sendmmsg() the address stands in the first header. */
static bool address_place(run_failed_call *f, uint64_t *from, uint64_t *n)
{
	struct msghdr h;
	*from = f->args[f->call->path];
	if (f->call->extra >= 0) {
		*n = f->args[f->call->extra];
		return true;
	}
	struct iovec mine = {&h, sizeof h}, its = {(void *)(uintptr_t)*from, sizeof h};
	if (process_vm_readv(f->pid, &mine, 1, &its, 1, 0) != (ssize_t)sizeof h)
		return false;
	*from = (uint64_t)(uintptr_t)h.msg_name;
	*n = h.msg_namelen;
	f->control = h.msg_controllen > 0;
	return true;
}

static void address(run_failed_call *f)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un local;
		char room[sizeof(struct sockaddr_un) + 1];
	} a;
	memset(&a, 0, sizeof a);
	uint64_t from, n;
	if (!address_place(f, &from, &n) || !from || n < sizeof(sa_family_t))
		return;
	if (n > sizeof a.local)
		n = sizeof a.local;
	struct iovec mine = {&a, n}, its = {(void *)(uintptr_t)from, n};
	if (process_vm_readv(f->pid, &mine, 1, &its, 1, 0) != (ssize_t)n)
		return;
	char text[INET6_ADDRSTRLEN];
	if (a.any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a.v4.sin_addr, text, sizeof text);
		snprintf(f->path, sizeof f->path, "%s:%u", text, ntohs(a.v4.sin_port));
		f->resource_kind = "host";
	} else if (a.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a.v6.sin6_addr, text, sizeof text);
		snprintf(f->path, sizeof f->path, "[%s]:%u", text, ntohs(a.v6.sin6_port));
		f->resource_kind = "host";
	} else if (a.any.sa_family == AF_UNIX && a.local.sun_path[0]) {
		char start[PATH_MAX] = "";
		if (a.local.sun_path[0] != '/' &&
		    (!start_of(f->pid, AT_FDCWD, start,
		               sizeof start - 1 - sizeof a.local.sun_path)))
			return;
		int k =
		    snprintf(f->path, sizeof f->path, "%s%s%.*s", strcmp(start, "/") ? start : "",
		             start[0] ? "/" : "", (int)sizeof a.local.sun_path, a.local.sun_path);
		if (k < 0 || (size_t)k >= sizeof f->path)
			f->path[0] = '\0';
		f->resource_kind = "path";
	}
}

/* Whether the call goes through a link at the end of its path. */
static bool follows(const run_failed_call *f)
{
	/* the argument whose AT_SYMLINK_NOFOLLOW says no; -1: always */
	static const struct {
		int nr, flags;
	} calls[] = {
#ifdef SYS_chmod
	    {SYS_chmod, -1},     {SYS_chown, -1},       {SYS_utime, -1},    {SYS_utimes, -1},
	    {SYS_futimesat, -1},
#endif
	    {SYS_fchmodat, -1},  {SYS_fchownat, 4},     {SYS_utimensat, 3}, {SYS_truncate, -1},
	    {SYS_setxattr, -1},  {SYS_removexattr, -1}, {SYS_execve, -1},   {SYS_execveat, 4},
	    {SYS_connect, -1},   {SYS_sendto, -1},      {SYS_sendmsg, -1},  {SYS_sendmmsg, -1},
	};
	const run_call *c = f->call;
	if (c->kind == CALL_OPEN || c->kind == CALL_OPENAT2) {
		uint64_t flags = c->extra >= 0 ? f->args[c->extra] : O_CREAT;
		return !(flags & O_NOFOLLOW) && !((flags & O_CREAT) && (flags & O_EXCL));
	}
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
		if (calls[i].nr == c->nr)
			return calls[i].flags < 0 ||
			       !(f->args[calls[i].flags] & AT_SYMLINK_NOFOLLOW);
	return c->path < 0; /* an open file is one already */
}

/* A socket is told apart by its family. */
static void socket_family(run_failed_call *f)
{
	static const struct {
		int family;
		const char *name;
	} names[] = {{AF_UNIX, "AF_UNIX"},     {AF_INET, "AF_INET"},
	             {AF_INET6, "AF_INET6"},   {AF_NETLINK, "AF_NETLINK"},
	             {AF_PACKET, "AF_PACKET"}, {AF_VSOCK, "AF_VSOCK"},
	             {AF_ALG, "AF_ALG"},       {AF_BLUETOOTH, "AF_BLUETOOTH"}};
	int family = (int)f->args[0], type = (int)f->args[1] & 0xf;
	f->raw_socket = family == AF_PACKET || (family != AF_NETLINK && type == SOCK_RAW);
	const char *raw = f->raw_socket && family != AF_PACKET ? ", SOCK_RAW" : "";
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].family == family) {
			snprintf(f->path, sizeof f->path, "socket(%s%s)", names[i].name, raw);
			return;
		}
	snprintf(f->path, sizeof f->path, "socket(%d%s)", family, raw);
}

void run_trace_read(run_failed_call *f)
{
	const run_call *c = f->call;
	f->path[0] = f->path2[0] = '\0';
	f->dotted = f->control = false;
	f->resource_kind = "syscall";
	if (c->kind == CALL_CONNECT || c->kind == CALL_BIND) {
		address(f);
		f->follow = follows(f);
		return;
	}
	if (c->kind == CALL_SOCKET)
		socket_family(f);
	if (c->path < 0 && c->dirfd < 0)
		return;
	absolute(f, c->dirfd, c->path, f->path, sizeof f->path);
	if (c->path2 >= 0)
		absolute(f, c->dirfd2, c->path2, f->path2, sizeof f->path2);
	f->resource_kind = "path";
	/* for openat2 the flags stand in memory; they take the place of the pointer */
	if (c->kind == CALL_OPENAT2) {
		uint64_t flags = 0;
		struct iovec mine = {&flags, sizeof flags};
		struct iovec its = {(void *)(uintptr_t)f->args[c->extra], sizeof flags};
		if (process_vm_readv(f->pid, &mine, 1, &its, 1, 0) == (ssize_t)sizeof flags)
			f->args[c->extra] = flags;
	}
	f->follow = follows(f);
}

bool run_trace_reads(const run_failed_call *f)
{
	const run_call *c = f->call;
	return (c->kind == CALL_OPEN || c->kind == CALL_OPENAT2) && c->extra >= 0 &&
	       (f->args[c->extra] & (O_ACCMODE | O_CREAT | O_TRUNC)) == O_RDONLY;
}
