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

/*
 * A record is parsed from its front to its end: what a process may choose (its name, its
 * program's path, a security label) then stands where it belongs, and cannot pass for
 * anything else. Records of other facilities than the kernel's are somebody's words.
 */
typedef struct reader {
	const char *at;
	bool bad;
} reader;

static bool skip(reader *r, const char *word)
{
	size_t n = strlen(word);
	bool there = !r->bad && !strncmp(r->at, word, n);
	if (there)
		r->at += n;
	return there;
}

static void expect(reader *r, const char *word)
{
	r->bad |= !skip(r, word);
}

/* Digits of that base; a sign where `sign`. */
static long number(reader *r, int base, bool sign)
{
	char *end;
	if (r->bad || !(isxdigit((unsigned char)*r->at) || (sign && *r->at == '-'))) {
		r->bad = true;
		return -1;
	}
	long v = (long)strtoull(r->at, &end, base);
	r->bad = end == r->at;
	r->at = end;
	return v;
}

/* " key=NUMBER" */
static long field(reader *r, const char *key, int base)
{
	expect(r, key);
	return number(r, base, base == 10);
}

static void put_letter(char *out, size_t n, size_t *k, int c)
{
	if (out && *k + 1 < n)
		out[(*k)++] = isgraph(c) ? (char)c : '?';
}

/* What a process may choose, as the audit code writes it: "in quotes", HEX, or (null). */
static void chosen(reader *r, char *out, size_t n)
{
	size_t k = 0;
	if (skip(r, "\"")) {
		for (; *r->at && *r->at != '"'; r->at++)
			put_letter(out, n, &k, (unsigned char)*r->at);
		expect(r, "\"");
	} else if (!skip(r, "(null)") && !skip(r, "?")) {
		size_t digits = strspn(r->at, "0123456789ABCDEFabcdef");
		r->bad |= digits == 0 || digits % 2 != 0;
		for (size_t i = 0; !r->bad && i < digits; i += 2) {
			char two[3] = {r->at[i], r->at[i + 1], '\0'};
			put_letter(out, n, &k, (int)strtol(two, NULL, 16));
		}
		r->at += digits;
	}
	if (out)
		out[k] = '\0';
}

/* subj=LABEL, or AppArmor's subj=LABEL (mode) */
static void label(reader *r)
{
	if (!skip(r, " subj="))
		return;
	r->at += strcspn(r->at, " ");
	if (skip(r, " (")) {
		r->at += strspn(r->at, "abcdefghijklmnopqrstuvwxyz");
		expect(r, ")");
	}
}

static bool parse_seccomp(const char *text, sw_run_kernel_record *out)
{
	reader r = {text, false};
	expect(&r, "audit: type=1326 audit(");
	number(&r, 10, false);
	expect(&r, ".");
	number(&r, 10, false);
	expect(&r, ":");
	number(&r, 10, false);
	expect(&r, "):");
	field(&r, " auid=", 10);
	field(&r, " uid=", 10);
	field(&r, " gid=", 10);
	field(&r, " ses=", 10);
	label(&r);
	out->pid = (pid_t)field(&r, " pid=", 10);
	expect(&r, " comm=");
	chosen(&r, out->comm, sizeof out->comm);
	expect(&r, " exe=");
	chosen(&r, NULL, 0);
	long sig = field(&r, " sig=", 10);
	field(&r, " arch=", 16);
	out->syscall = (int)field(&r, " syscall=", 10);
	field(&r, " compat=", 10);
	expect(&r, " ip=0x");
	number(&r, 16, false);
	expect(&r, " code=0x");
	number(&r, 16, false);
	out->seccomp = true;
	return !r.bad && *r.at == '\0' && sig == 31;
}

static bool parse_memory(const char *text, sw_run_kernel_record *out)
{
	static const char *const heads[] = {
	    "Out of memory: Killed process ", "Memory cgroup out of memory: Killed process ",
	    "Out of memory (oom_kill_allocating_task): Killed process "};
	reader r = {text, false};
	bool there = false;
	for (size_t i = 0; i < sizeof heads / sizeof heads[0] && !there; i++)
		there = skip(&r, heads[i]);
	r.bad = !there;
	out->pid = (pid_t)number(&r, 10, false);
	expect(&r, " (");
	if (r.bad)
		return false;
	/* the name may hold anything, a bracket too; 15 bytes, escaped */
	const char *end = strstr(r.at, ") total-vm:");
	if (!end)
		return false;
	size_t k = 0;
	for (; r.at < end; r.at++)
		put_letter(out->comm, sizeof out->comm, &k, (unsigned char)*r.at);
	out->comm[k] = '\0';
	return true;
}

bool run_kernel_log_parse(const char *record, sw_run_kernel_record *out)
{
	char *end, text[RECORD_MAX];
	unsigned long prefix = strtoul(record, &end, 10);
	const char *message = strchr(record, ';');
	memset(out, 0, sizeof *out);
	if (end == record || *end != ',' || prefix >> 3 != 0 || !message)
		return false;
	/* the message is one line; dictionary lines follow */
	size_t n = strcspn(++message, "\n");
	if (n >= sizeof text)
		return false;
	memcpy(text, message, n);
	text[n] = '\0';
	if (parse_seccomp(text, out))
		return out->pid > 0;
	memset(out, 0, sizeof *out);
	return parse_memory(text, out) && out->pid > 0;
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
		sw_run_kernel_record record;
		if (run_kernel_log_parse(text, &record) && run_is_below(record.pid, self) == 1 &&
		    r->n_kernel < SW_RUN_KERNEL_MAX)
			r->kernel[r->n_kernel++] = record;
	}
}

int run_kernel_log_tell(const sw_run_report *r, bool filtered, sw_result *result)
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
		                .denied = k->seccomp && filtered,
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
