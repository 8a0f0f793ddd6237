/* run: reading an argv (which runner, what it names) and trusting a path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"
#include "run_internal.h"
#include "trace.h"

#define ARGV(...) ((char *const[]){__VA_ARGS__, NULL})

static void backend_is_read_from_argv0(void **state)
{
	(void)state;
	static const struct {
		char *argv[8];
		const char *backend;
		size_t runner;
	} rows[] = {
	    {{"bwrap", "--ro-bind", "/", "/", "true"}, "bwrap", 0},
	    {{"/usr/bin/bwrap", "true"}, "bwrap", 0},
	    {{"docker", "run", "x"}, "docker", 0},
	    {{"sandbox-exec", "-p", "x", "true"}, "seatbelt", 0},
	    {{"minijail0", "true"}, "minijail", 0},
	    {{"runsc", "run", "x"}, "gvisor", 0},
	    {{"env", "A=1", "bwrap", "true"}, "bwrap", 2},
	    {{"env", "-i", "PATH=/bin", "nice", "-n", "5", "bwrap", "true"}, "bwrap", 6},
	    {{"timeout", "10", "podman", "run", "x"}, "podman", 2},
	    {{"sudo", "-u", "user", "unshare", "-n", "true"}, "unshare", 3},
	    {{"sh", "-c", "exec \"$@\" 2>&1", "sh", "bwrap", "true"}, "bwrap", 4},
	    {{"sh", "-c", "bwrap --ro-bind / / true"}, "none", 0},
	    {{"echo", "bwrap"}, "none", 0},
	    {{"env", "true", "bwrap"}, "none", 0},
	    {{"./bwrapper"}, "none", 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		sw_run_shape s;
		sw_run_detect(rows[i].argv, &s);
		if (strcmp(s.backend, rows[i].backend) != 0)
			fail_msg("row %zu: %s", i, s.backend);
		if (strcmp(s.backend, "none") != 0)
			assert_int_equal(s.runner, rows[i].runner);
	}
}

static void bwrap_options_give_command_and_network(void **state)
{
	(void)state;
	static const struct {
		char *argv[10];
		size_t command;
		sw_network network;
	} rows[] = {
	    {{"bwrap", "--ro-bind", "/", "/", "--unshare-net", "sh", "-c", "x"},
	     5,
	     SW_NETWORK_DENIED},
	    {{"bwrap", "--unshare-all", "--share-net", "true"}, 3, SW_NETWORK_ALLOWED},
	    {{"bwrap", "--bind", "--unshare-net", "/x", "true"}, 4, SW_NETWORK_ALLOWED},
	    {{"bwrap", "--", "sh", "--unshare-net"}, 2, SW_NETWORK_ALLOWED},
	    {{"bwrap", "--setenv", "A", "--unshare-net", "true"}, 4, SW_NETWORK_ALLOWED},
	    {{"bwrap", "--new-option", "--unshare-net", "true"}, 4, SW_NETWORK_UNKNOWN},
	    {{"bwrap", "--args", "9", "true"}, 3, SW_NETWORK_UNKNOWN},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		sw_run_shape s;
		sw_run_detect(rows[i].argv, &s);
		if (s.network != rows[i].network)
			fail_msg("row %zu: network %s", i, sw_network_name(s.network));
		if (rows[i].network != SW_NETWORK_UNKNOWN && s.command != rows[i].command)
			fail_msg("row %zu: command %zu", i, s.command);
	}
}

static void engine_options_are_told_from_the_containers_command(void **state)
{
	(void)state;
	static const struct {
		char *argv[12];
		size_t subcommand, command, record_at;
		bool detached, removes;
	} rows[] = {
	    {{"docker", "run", "--rm", "-it", "img", "sh", "-c", "x --cidfile y"}, 1, 4, 0, 0, 1},
	    {{"docker", "-H", "run", "run", "-e", "A=1", "img", "--cidfile", "x"}, 3, 6, 0, 0, 0},
	    {{"docker", "run", "--cidfile", "/c", "img"}, 1, 4, 2, 0, 0},
	    {{"docker", "run", "--cidfile=/c", "img"}, 1, 3, 2, 0, 0},
	    {{"docker", "run", "-eA=d", "img"}, 1, 3, 0, 0, 0},
	    {{"docker", "run", "-dit", "img"}, 1, 3, 0, 1, 0},
	    {{"docker", "run", "--name", "-d", "img"}, 1, 4, 0, 0, 0},
	    {{"docker", "ps"}, 0, 0, 0, 0, 0},
	    {{"podman", "--root", "/r", "container", "run", "-v", "a:b", "img", "true"},
	     4,
	     7,
	     0,
	     0,
	     0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		run_engine_call c;
		run_engine_parse(rows[i].argv, 0, run_engine_of(rows[i].argv[0]), &c);
		if (c.subcommand != rows[i].subcommand || c.command != rows[i].command ||
		    c.record_at != rows[i].record_at || c.detached != rows[i].detached ||
		    c.removes != rows[i].removes)
			fail_msg("row %zu: run %zu image %zu record %zu", i, c.subcommand,
			         c.command, c.record_at);
	}
}

static void descriptors_named_by_options_are_found(void **state)
{
	(void)state;
	char *const *argv = ARGV("bwrap", "--seccomp", "10", "--ro-bind-data", "11", "/x",
	                         "--setenv", "A", "12", "--info-fd", "13", "sh", "--seccomp", "14");
	sw_run_shape s;
	run_named_fds n;
	sw_run_detect(argv, &s);
	run_fds_named(argv, &s, &n);
	assert_int_equal(n.n, 3);
	assert_int_equal(n.fds[0], 10);
	assert_int_equal(n.fds[1], 11);
	assert_int_equal(n.fds[2], 13);
	assert_false(n.all);
	argv = ARGV("bwrap", "--args", "9", "true");
	sw_run_detect(argv, &s);
	run_fds_named(argv, &s, &n);
	assert_true(n.all);
}

static void a_path_is_trusted_only_if_nobody_else_can_change_it(void **state)
{
	(void)state;
	char dir[] = "/tmp/sw-trust.XXXXXX", bad[4096], path[256], link[256];
	assert_non_null(mkdtemp(dir));
	chmod(dir, 0755);
	snprintf(path, sizeof path, "%s/tool", dir);
	snprintf(link, sizeof link, "%s/link", dir);
	int fd = open(path, O_CREAT | O_WRONLY, 0755);
	fchmod(fd, 0755);
	close(fd);
	assert_int_equal(symlink("tool", link), 0);
	assert_true(sw_run_path_trusted(path, bad, sizeof bad)); /* /tmp itself is sticky */
	assert_true(sw_run_path_trusted(link, bad, sizeof bad));
	assert_true(sw_run_path_trusted("/usr/bin/env", bad, sizeof bad));
	assert_false(sw_run_path_trusted("tool", bad, sizeof bad));
	assert_false(sw_run_path_trusted("/nosuch/tool", bad, sizeof bad));
	chmod(path, 0757);
	assert_false(sw_run_path_trusted(path, bad, sizeof bad));
	assert_string_equal(bad, path);
	assert_false(sw_run_path_trusted(link, bad, sizeof bad));
	chmod(path, 0755);
	chmod(dir, 0777); /* somebody else could replace the file */
	assert_false(sw_run_path_trusted(path, bad, sizeof bad));
	assert_string_equal(bad, dir);
	chmod(dir, 0755);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_false(sw_run_path_trusted(path, bad, sizeof bad));
	}
	unlink(link);
	unlink(path);
	rmdir(dir);
}

static void a_program_is_looked_up_as_execvp_does(void **state)
{
	(void)state;
	sw_run_program *p = calloc(1, sizeof *p);
	assert_int_equal(sw_run_find_program("sh", "/nosuch:/bin:/usr/bin", p), 0);
	assert_string_equal(p->path, "/bin/sh");
	assert_true(p->trusted);
	assert_int_equal(sw_run_find_program("nosuchprogram", NULL, p), SW_ENOTFOUND);
	assert_int_equal(p->error, ENOENT);
	assert_int_equal(sw_run_find_program("passwd", "/etc", p), SW_ENOTFOUND);
	assert_int_equal(p->error, EACCES);
	assert_int_equal(sw_run_find_program("/etc", NULL, p), SW_ENOTFOUND);
	assert_int_equal(p->error, EACCES);
	assert_int_equal(sw_run_find_program("", NULL, p), SW_ENOTFOUND);
	free(p);
}

static void only_this_program_is_its_launcher(void **state)
{
	(void)state;
	char self[4096] = "";
	assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	struct stat named, real;
	assert_int_equal(stat(self, &named) | stat("/proc/self/exe", &real), 0);
	bool itself = named.st_ino == real.st_ino; /* valgrind executes this program in its own */
	char *own[] = {self, "__landlock", "--", "true", NULL};
	char *other[] = {"sh", "__landlock", "--", "true", NULL};
	sw_run_shape s;
	assert_int_equal(sw_run_is_launcher(own, 0), itself);
	assert_false(sw_run_is_launcher(other, 0));
	assert_false(sw_run_is_launcher(own, 1));
	assert_false(sw_run_is_launcher(own, 4));
	sw_run_detect(own, &s);
	assert_string_equal(s.backend, itself ? "landlock" : "none");
	assert_int_equal(s.command, itself ? 3 : 0);
	sw_run_detect(other, &s);
	assert_string_equal(s.backend, "none");
}

static void a_script_is_not_what_its_process_executes(void **state)
{
	(void)state;
	char path[] = "/tmp/sw-script.XXXXXX";
	int fd = mkstemp(path);
	assert_int_equal(write(fd, "#!/bin/sh\nexit 0 # more than a head\n", 35), 35);
	fchmod(fd, 0755);
	close(fd);
	sw_run_program *p = calloc(1, sizeof *p);
	assert_int_equal(sw_run_find_program("sh", NULL, p), 0);
	assert_true(p->native);
	assert_int_equal(sw_run_find_program(path, NULL, p), 0);
	assert_false(p->native);
	free(p);
	unlink(path);
}

static void the_kernels_records_are_read_whole_and_nobody_elses(void **state)
{
	(void)state;
#define AUDIT \
	"audit: type=1326 audit(1764465000.123:45): auid=4294967295 uid=0 gid=0 ses=4294967295"
#define TAIL " sig=31 arch=c000003e syscall=83 compat=0 ip=0x7f12 code=0x80000000"
#define OOM                                                                             \
	" total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB " \
	"oom_score_adj:0"
	static const struct {
		const char *record;
		int pid; /* 0: no record of a kill */
		const char *comm;
	} rows[] = {
	    {"5,1,2,-;" AUDIT " pid=77 comm=\"py\" exe=\"/usr/bin/py\"" TAIL, 77, "py"},
	    {"5,1,2,-,caller=T77;" AUDIT " subj=unconfined pid=77 comm=\"py\" exe=\"/p\"" TAIL
	     "\n SUBSYSTEM=x\n",
	     77, "py"},
	    {"5,1,2,-;" AUDIT " subj=docker-default (enforce) pid=77 comm=707920 exe=\"/p\"" TAIL,
	     77, "py?"},
	    {"5,1,2,-;" AUDIT " pid=77 comm=\"py\" exe=(null)" TAIL, 77, "py"},
	    {"3,1,2,-;Out of memory: Killed process 78 (a) b)" OOM, 78, "a)?b"},
	    {"3,1,2,-;Memory cgroup out of memory: Killed process 79 (hog)" OOM, 79, "hog"},
	    /* a file's name in another record of the kernel's */
	    {"6,1,2,-;z type=1326 pid=7 sig=31 syscall=83 x[7]: segfault at 0 ip 1 sp 2 error 6", 0,
	     ""},
	    {"6,1,2,-;x[7]: segfault at 0 in z type=1326 pid=7 sig=31 syscall=83 x[400000+1000]", 0,
	     ""},
	    {"6,1,2,-;x: " AUDIT " pid=77 comm=\"py\" exe=\"/p\"" TAIL, 0, ""},
	    {"6,1,2,-;oom-kill:task=Out of memory: Killed process 7 (x)" OOM, 0, ""},
	    /* written to /dev/kmsg: another facility */
	    {"12,1,2,-;Out of memory: Killed process 7 (x)" OOM, 0, ""},
	    {"13,1,2,-;" AUDIT " pid=77 comm=\"py\" exe=\"/p\"" TAIL, 0, ""},
	    {"8,1,2,-;" AUDIT " pid=77 comm=\"py\" exe=\"/p\"" TAIL, 0, ""},
	    /* what a process chooses does not stand in for a field */
	    {"5,1,2,-;" AUDIT " pid=77 comm=\" pid=1 \" exe=\"/p\"" TAIL, 77, "?pid=1?"},
	    {"5,1,2,-;" AUDIT " pid=77 comm=\"py\" exe=\"/p sig=31 syscall=1\""
	     " sig=11 arch=c000003e syscall=83 compat=0 ip=0x7f12 code=0x0",
	     0, ""},
	    {"5,1,2,-;" AUDIT " subj=x (a) pid=1 comm=\"a\" exe=\"b\"" TAIL
	     " pid=77 comm=\"py\" exe=\"/p\"" TAIL,
	     0, ""},
	    {"5,1,2,-;" AUDIT " subj=a b pid=1 comm=\"py\" exe=\"/p\"" TAIL, 0, ""},
	    {"5,1,2,-;" AUDIT " pid=77 comm=\"py\"x\" exe=\"/p\"" TAIL, 0, ""},
	    {"5,1,2,-;" AUDIT " pid=77 comm=707 exe=\"/p\"" TAIL, 0, ""},
	    {"5,1,2,-;audit: type=1326 audit(1.2:3): pid=7 sig=31 syscall=83", 0, ""},
	    {"5,1,2,-;" AUDIT " pid=77 comm=\"py\" exe=\"/p\" sig=31 arch=c000003e", 0, ""},
	    {"5,1,2,-;\\x0aOut of memory: Killed process 7 (x)" OOM, 0, ""},
	    {"5,1,2,-;line\nOut of memory: Killed process 7 (x)" OOM, 0, ""},
	    {"3,1,2,-;Out of memory: Killed process -7 (x)" OOM, 0, ""},
	    {"3,1,2,-;Out of memory: Killed process 7", 0, ""},
	    {"Out of memory: Killed process 7 (x)" OOM, 0, ""},
	    {";Out of memory: Killed process 7 (x)" OOM, 0, ""},
	    {"", 0, ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		sw_run_kernel_record k;
		bool got = run_kernel_log_parse(rows[i].record, &k);
		if (got != (rows[i].pid > 0) ||
		    (got && (k.pid != rows[i].pid || strcmp(k.comm, rows[i].comm) != 0)))
			fail_msg("row %zu: %d, pid %d, %s", i, got, (int)k.pid, k.comm);
		if (got && k.seccomp)
			assert_int_equal(k.syscall, 83);
	}
}

/* Two threads whose numbers fall on the same place of the table: each thing is freed once. */
static void slots_move_whole(void **state)
{
	(void)state;
	sw_run_program program;
	memset(&program, 0, sizeof program);
	run_trace t = {.on = true, .program = &program};
	run_trace_born(&t, 5);
	run_trace_born(&t, 5 + 64);
	run_trace_born(&t, 5 + 128);
	assert_int_equal(t.n_slots, 3);
	for (size_t i = 0; i < t.cap_slots; i++)
		if (t.slots[i].pid)
			t.slots[i].path = strdup("path");
	run_trace_gone(&t, 5);
	run_trace_gone(&t, 5 + 128);
	assert_int_equal(t.n_slots, 1);
	size_t paths = 0;
	for (size_t i = 0; i < t.cap_slots; i++)
		paths += t.slots[i].path != NULL;
	assert_int_equal(paths, 1);
	run_trace_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(slots_move_whole),
	    cmocka_unit_test(backend_is_read_from_argv0),
	    cmocka_unit_test(bwrap_options_give_command_and_network),
	    cmocka_unit_test(engine_options_are_told_from_the_containers_command),
	    cmocka_unit_test(descriptors_named_by_options_are_found),
	    cmocka_unit_test(a_path_is_trusted_only_if_nobody_else_can_change_it),
	    cmocka_unit_test(a_program_is_looked_up_as_execvp_does),
	    cmocka_unit_test(the_kernels_records_are_read_whole_and_nobody_elses),
	    cmocka_unit_test(only_this_program_is_its_launcher),
	    cmocka_unit_test(a_script_is_not_what_its_process_executes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
