#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "listen.h"

void http_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof(addr.sun_path))
		return;
	size_t n = strlen(path);
	memcpy(addr.sun_path, path, n);
	if (*path == '@') /* the abstract name space begins with a NUL */
		addr.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* a manager that does not listen is not this service's problem */
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&addr,
	           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0) {
		close(fd);
		return;
	}
	close(fd);
}

int64_t http_watchdog_interval_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!usec || (pid && strtol(pid, NULL, 10) != getpid()))
		return 0;
	long long n = strtoll(usec, NULL, 10);
	/* half of the time, as the manager's documentation asks for */
	return n > 0 && n < INT64_C(1) << 42 ? n * 1000 / 2 : 0;
}
