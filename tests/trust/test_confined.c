/* Each profile in a process of its own: what must be out of reach is, what must work does. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "self_sandbox.h"

static char folder[] = "/tmp/sandwitness-trust.XXXXXX";
static char inside[64], outside[64], socket_file[64];

/* 0: done; else the errno. */
static int opens(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int connects(int family)
{
	struct sockaddr_in to = {
	    .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(family, SOCK_STREAM, 0);
	if (fd < 0)
		return errno;
	int e = family != AF_INET                                     ? 0
	        : connect(fd, (struct sockaddr *)&to, sizeof to) == 0 ? 0
	                                                              : errno;
	close(fd);
	return e;
}

static int executes(void)
{
	char name[] = "/bin/true", *argv[] = {name, NULL}, *envp[] = {NULL};
	execve(argv[0], argv, envp);
	return errno;
}

static int forks(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return errno;
	waitpid(pid, NULL, 0);
	return 0;
}

static int traces(void)
{
	return ptrace(PTRACE_SEIZE, getppid(), 0, 0) == 0 ? 0 : errno;
}

static void *thread(void *arg)
{
	return arg;
}

static int starts_thread(void)
{
	pthread_t t;
	int e = pthread_create(&t, NULL, thread, NULL);
	if (e == 0)
		pthread_join(t, NULL);
	return e;
}

static int refused(int e)
{
	return e == EPERM || e == EACCES;
}

/* Numbers of what went wrong, as an exit status. */
#define MUST(n, condition)        \
	do {                      \
		if (!(condition)) \
			_exit(n); \
	} while (0)

static void both_work(sw_self_result r)
{
	MUST(1, r.landlock && r.seccomp);
	MUST(2, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	MUST(3, prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2);
}

static void pure(void)
{
	int kept = open(inside, O_RDONLY);
	char c;
	sw_self_result r = sw_self_sandbox(SW_SELF_PURE, NULL, NULL);
	MUST(1, r.landlock && r.seccomp);
	MUST(10, refused(opens("/etc/passwd", O_RDONLY)));
	MUST(11, refused(opens(inside, O_RDONLY)));
	MUST(12, refused(connects(AF_INET)));
	MUST(13, refused(connects(AF_UNIX)));
	MUST(14, refused(executes()));
	MUST(15, refused(forks()));
	MUST(16, refused(traces()));
	MUST(17, refused(kill(getppid(), 0) == 0 ? 0 : errno));
	MUST(18, read(kept, &c, 1) == 1);
	MUST(19, write(STDOUT_FILENO, "", 0) == 0);
	char *big = malloc(64u << 20);
	MUST(20, big != NULL);
	memset(big, 1, 64u << 20);
	free(big);
}

static void reader(void)
{
	const char *const readable[] = {folder, "/nosuch/folder", NULL};
	const char *const writable[] = {inside, NULL};
	sw_self_result r = sw_self_sandbox(SW_SELF_READER, readable, writable);
	MUST(1, r.landlock && r.seccomp);
	MUST(10, refused(opens("/etc/passwd", O_RDONLY)));
	MUST(11, opens(outside, O_RDONLY) == 0);
	MUST(12, refused(opens(outside, O_WRONLY)));
	MUST(13, opens(inside, O_RDWR) == 0);
	char fresh[80];
	snprintf(fresh, sizeof fresh, "%s/new", folder);
	MUST(14, refused(opens(fresh, O_WRONLY | O_CREAT)));
	MUST(15, refused(unlink(outside) == 0 ? 0 : errno));
	MUST(16, refused(connects(AF_INET)));
	MUST(17, refused(executes()));
	MUST(18, refused(forks()));
	MUST(19, refused(opens("/proc/1/environ", O_RDONLY)));
}

static void service(void)
{
	const sw_self_path paths[] = {{inside, SW_SELF_WRITE}, {folder, SW_SELF_REMOVE}};
	both_work(sw_self_sandbox_paths(SW_SELF_SERVICE, paths, 2));
	MUST(10, refused(opens("/etc/passwd", O_RDONLY)));
	MUST(11, refused(opens(outside, O_RDONLY)));
	MUST(12, opens(inside, O_RDWR) == 0);
	MUST(13, refused(connects(AF_INET)));
	MUST(14, refused(connects(AF_INET6)));
	MUST(15, refused(connects(AF_NETLINK)));
	MUST(16, connects(AF_UNIX) == 0);
	MUST(17, refused(executes()));
	MUST(18, refused(forks()));
	MUST(19, refused(traces()));
	MUST(20, starts_thread() == 0);
	MUST(21, unlink(socket_file) == 0);
	MUST(22, syscall(SYS_unshare, 0x10000000) != 0 && refused(errno));
	MUST(23, syscall(SYS_io_uring_setup, 1, NULL) != 0 && refused(errno));
#ifdef __x86_64__
	/* execve under its number of the x32 interface */
	MUST(24, syscall(0x40000000 + 520, "/bin/true", NULL, NULL) != 0 &&
	             (refused(errno) || errno == ENOSYS));
#endif
}

static void switched_off(void)
{
	setenv("SANDWITNESS_NO_SELF_SANDBOX", "1", 1);
	sw_self_result r = sw_self_sandbox(SW_SELF_PURE, NULL, NULL);
	MUST(1, !r.landlock && !r.seccomp);
	MUST(10, opens("/etc/passwd", O_RDONLY) == 0);
}

static int status_of(void (*body)(void))
{
	int how;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		unsetenv("SANDWITNESS_NO_SELF_SANDBOX");
		body();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &how, 0), pid);
	return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static void make_file(const char *path)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs("text\n", f);
	fclose(f);
}

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(inside, sizeof inside, "%s/inside", folder);
	snprintf(outside, sizeof outside, "%s/outside", folder);
	snprintf(socket_file, sizeof socket_file, "%s/socket", folder);
	make_file(inside);
	make_file(outside);
	make_file(socket_file);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(inside);
	unlink(outside);
	unlink(socket_file);
	rmdir(folder);
	return 0;
}

/* Where the kernel has no confinement there is nothing to test. */
static bool here(void)
{
	return syscall(444 /* landlock_create_ruleset */, NULL, 0, 1) >= 4;
}

static void profile(void (*body)(void))
{
	if (!here())
		skip();
	assert_int_equal(status_of(body), 0);
}

static void pure_keeps_what_is_open_and_nothing_else(void **state)
{
	(void)state;
	profile(pure);
}

static void a_reader_reads_its_folder_and_writes_one_file(void **state)
{
	(void)state;
	profile(reader);
}

static void a_service_starts_threads_but_no_program(void **state)
{
	(void)state;
	profile(service);
}

static void the_environment_turns_it_off(void **state)
{
	(void)state;
	profile(switched_off);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pure_keeps_what_is_open_and_nothing_else),
	    cmocka_unit_test(a_reader_reads_its_folder_and_writes_one_file),
	    cmocka_unit_test(a_service_starts_threads_but_no_program),
	    cmocka_unit_test(the_environment_turns_it_off),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
