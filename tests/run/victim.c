/* Programs that make a supervisor's life hard; each mode is one of them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int daemonized(const char *seconds)
{
	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			int null = open("/dev/null", O_RDWR);
			dup2(null, 0);
			dup2(null, 1);
			dup2(null, 2);
			signal(SIGTERM, SIG_IGN);
			signal(SIGHUP, SIG_IGN);
			sleep((unsigned)atoi(seconds));
			_exit(0);
		}
		_exit(0);
	}
	wait(NULL);
	return 0;
}

static int stubborn(const char *seconds)
{
	for (int s = 1; s < 32; s++)
		signal(s, SIG_IGN);
	if (fork() == 0) {
		if (fork() == 0)
			setsid();
	}
	for (unsigned left = (unsigned)atoi(seconds); left;)
		left = sleep(left);
	return 0;
}

/* Forks and exits in a chain, so that no process lives for long. */
static int hopper(const char *unused)
{
	(void)unused;
	signal(SIGTERM, SIG_IGN);
	if (fork())
		for (;;)
			pause();
	setsid();
	for (int i = 0; i < 200000; i++)
		if (fork())
			_exit(0);
	return 0;
}

/* A crowd in which each member forks all the time; bounded, so that a failing test ends. */
static int bomb(const char *members)
{
	signal(SIGTERM, SIG_IGN);
	for (int i = atoi(members); i > 1; i--)
		if (fork() == 0)
			break;
	for (int round = 0; round < 20000; round++) {
		pid_t pid = fork();
		if (pid == 0) {
			usleep(1000);
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
	return 0;
}

static int flood(const char *bytes)
{
	static char text[65536];
	memset(text, 'x', sizeof text);
	for (size_t i = 80; i < sizeof text; i += 81)
		text[i] = '\n';
	for (long long left = atoll(bytes); left > 0;) {
		ssize_t n =
		    write(1, text, left < (long long)sizeof text ? (size_t)left : sizeof text);
		if (n < 0)
			return 1;
		left -= n;
	}
	return 0;
}

/* Descriptors other than 0-2, one a line. */
static int descriptors(const char *unused)
{
	(void)unused;
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	while (d && (e = readdir(d))) {
		int fd = atoi(e->d_name);
		if (e->d_name[0] != '.' && fd > 2 && fd != dirfd(d))
			printf("%d\n", fd);
	}
	return 0;
}

static int signals(const char *unused)
{
	(void)unused;
	sigset_t mask;
	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int s = 1; s < 65; s++) {
		struct sigaction a;
		if (sigismember(&mask, s) == 1)
			printf("blocked %d\n", s);
		if (sigaction(s, NULL, &a) == 0 && a.sa_handler != SIG_DFL)
			printf("ignored %d\n", s);
	}
	return 0;
}

/* Leaves a child that keeps writing to the same output. */
static int holder(const char *ms)
{
	printf("parent\n");
	fflush(stdout);
	if (fork() == 0) {
		for (int i = 0; i < atoi(ms) / 20; i++) {
			(void)!write(1, "child\n", 6);
			usleep(20000);
		}
		_exit(0);
	}
	return 0;
}

/* Prints each signal it gets, ends at the third or at TERM. */
static volatile sig_atomic_t got;
static void on_signal(int s)
{
	got = s;
}
static int listener(const char *unused)
{
	(void)unused;
	int list[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction a = {.sa_handler = on_signal};
	for (int i = 0; i < 4; i++)
		sigaction(list[i], &a, NULL);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		while (!got)
			pause();
		printf("signal %d\n", (int)got);
		fflush(stdout);
		if (got == SIGTERM)
			return 7;
		got = 0;
	}
}

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/*
 * Tries to reach the runner's status channel in every process above: by opening
 * /proc/PID/fd again, and by fetching the descriptor; then writes and shuts down.
 */
static void attack_process(pid_t pid, int how)
{
	static const char lie[] = "{ \"exit-code\": 0 }\n{ \"child-pid\": 1 }\n";
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *d = opendir(path);
	struct dirent *e;
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	for (int i = 3; i < 64; i++) {
		int fd = pidfd >= 0 ? (int)syscall(SYS_pidfd_getfd, pidfd, i, 0) : -1;
		if (fd < 0)
			continue;
		struct stat st;
		if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode)) {
			if (how == 'w')
				(void)!send(fd, lie, sizeof lie - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			else
				shutdown(fd, SHUT_RDWR);
			printf("reached a socket of %d\n", (int)pid);
		}
		close(fd);
	}
	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.' || atoi(e->d_name) < 3)
			continue;
		char target[64], link[320];
		snprintf(link, sizeof link, "/proc/%d/fd/%s", (int)pid, e->d_name);
		ssize_t n = readlink(link, target, sizeof target - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		if (strncmp(target, "socket:", 7) != 0 && strncmp(target, "pipe:", 5) != 0)
			continue;
		int fd = open(link, O_WRONLY | O_NONBLOCK);
		if (fd < 0)
			continue;
		(void)!write(fd, lie, sizeof lie - 1);
		printf("reopened %s of %d\n", target, (int)pid);
		close(fd);
	}
	if (d)
		closedir(d);
	if (pidfd >= 0)
		close(pidfd);
}

static pid_t parent_of(pid_t pid)
{
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	char *p = strrchr(text, ')');
	int ppid = 0;
	if (p)
		sscanf(p + 1, " %*c %d", &ppid);
	return ppid;
}

static int attacker(const char *how)
{
	signal(SIGPIPE, SIG_IGN);
	/* up to the supervisor, not beyond: who runs the test has done nothing to deserve it */
	const char *last = getenv("SW_SUPERVISOR");
	pid_t pid = getppid(), end = last ? atoi(last) : 0;
	for (int i = 0; i < 3 && pid > 1; i++) {
		attack_process(pid, how[0]);
		if (pid == end)
			break;
		pid = parent_of(pid);
	}
	for (int fd = 3; fd < 64; fd++)
		(void)!write(fd, "{ \"exit-code\": 0 }\n", 19);
	printf("bwrap: setting up uid map: Permission denied\n");
	fflush(stdout);
	return 1;
}

static const struct {
	const char *name;
	int (*run)(const char *);
} modes[] = {{"daemon", daemonized}, {"stubborn", stubborn}, {"hopper", hopper},
             {"bomb", bomb},         {"flood", flood},       {"descriptors", descriptors},
             {"signals", signals},   {"holder", holder},     {"listener", listener},
             {"attacker", attacker}};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++)
		if (!strcmp(argv[1], modes[i].name))
			return modes[i].run(argc > 2 ? argv[2] : "0");
	return 99;
}
