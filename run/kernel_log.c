/*
 * The kernel's own records of what it killed: seccomp (with the system call) and lack of
 * memory. Read while they come, since a process is tied to the tree by its ancestors,
 * and those are known only until it is reaped. Needs /dev/kmsg and the first pid
 * namespace (the kernel counts in that one); elsewhere there are no records.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run_internal.h"
#include "trace.h"

#define FIRST_PID_NAMESPACE 0xEFFFFFFCU /* PROC_PID_INIT_INO of the kernel */
#define RECORD_MAX 8192
#define ANCESTORS_MAX 64

int run_kernel_log_open(void)
{
	struct stat st;
	if (stat("/proc/self/ns/pid", &st) || st.st_ino != FIRST_PID_NAMESPACE)
		return -1;
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

static bool below(pid_t pid, pid_t ancestor)
{
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		char path[64], text[512];
		snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
		if (fd >= 0)
			close(fd);
		if (n <= 0)
			return false;
		text[n] = '\0';
		char *end = strrchr(text, ')');
		int parent = 0;
		if (!end || sscanf(end + 1, " %*c %d", &parent) != 1)
			return false;
		if (parent == ancestor)
			return true;
		pid = parent;
	}
	return false;
}

static long number_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

/* A name between two marks; what a process may choose is cut to harmless letters. */
static void name_between(const char *text, const char *from, char to, char *out, size_t n)
{
	const char *at = strstr(text, from);
	size_t k = 0;
	if (at)
		for (at += strlen(from); *at && *at != to && k + 1 < n; at++)
			out[k++] = isgraph((unsigned char)*at) ? *at : '?';
	out[k] = '\0';
}

static bool parse(const char *text, sw_run_kernel_record *out)
{
	memset(out, 0, sizeof *out);
	if (strstr(text, "type=1326") && number_after(text, " sig=") == 31) {
		out->seccomp = true;
		out->pid = (pid_t)number_after(text, " pid=");
		out->syscall = (int)number_after(text, " syscall=");
		name_between(text, "comm=\"", '"', out->comm, sizeof out->comm);
	} else if (strstr(text, "ut of memory: Killed process ")) {
		out->pid = (pid_t)number_after(text, "Killed process ");
		name_between(text, "(", ')', out->comm, sizeof out->comm);
	}
	return out->pid > 0;
}

void run_kernel_log_read(int fd, pid_t self, sw_run_report *r)
{
	char text[RECORD_MAX];
	for (;;) {
		ssize_t n = read(fd, text, sizeof text - 1);
		if (n < 0 && (errno == EINTR || errno == EPIPE)) /* EPIPE: some were overwritten */
			continue;
		if (n <= 0)
			return;
		text[n] = '\0';
		const char *message = strchr(text, ';');
		sw_run_kernel_record record;
		if (message && parse(message + 1, &record) && below(record.pid, self) &&
		    r->n_kernel < SW_RUN_KERNEL_MAX)
			r->kernel[r->n_kernel++] = record;
	}
}

int run_kernel_log_tell(const sw_run_report *r, sw_result *result)
{
	for (size_t i = 0; i < r->n_kernel; i++) {
		const sw_run_kernel_record *k = &r->kernel[i];
		const run_call *call = k->seccomp ? run_call_find(k->syscall) : NULL;
		char line[160], name[24];
		snprintf(name, sizeof name, "%d", k->syscall);
		if (k->seccomp)
			snprintf(line, sizeof line,
			         "kernel: seccomp killed %s (pid %d) at system call %s", k->comm,
			         (int)k->pid, call ? call->name : name);
		else
			snprintf(line, sizeof line, "kernel: out of memory, killed %s (pid %d)",
			         k->comm, (int)k->pid);
		sw_outside o = {.kind = SW_OBSERVATION_KERNEL_RECORD,
		                .denied = k->seccomp,
		                .operation = SW_OPERATION_PROCESS,
		                .cause = k->seccomp ? "seccomp-killed" : NULL,
		                .evidence = SW_EVIDENCE_ATTESTED,
		                .source = SW_SOURCE_KERNEL,
		                .line = sw_str_of(line),
		                .resource = sw_str_of(k->seccomp ? call ? call->name : name : ""),
		                .resource_kind = "syscall"};
		int rc = sw_result_outside(result, &o);
		if (rc)
			return rc;
		if (!k->seccomp && result->rule == 6) {
			result->limit = SW_LIMIT_MEMORY;
			result->limit_certainty = SW_CERTAINTY_PROVEN;
		}
	}
	return SW_OK;
}
