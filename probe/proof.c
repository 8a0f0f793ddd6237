/* proof.c - see proof.h. */
#include "probe_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * POSIX sh with builtins only: nothing of the image is needed but the shell, not even
 * /dev/null, which some runners leave out, and no time goes into processes. printf and
 * read are no special builtins: a refused redirection fails them and the script goes on;
 * what the shell says about it is part of the output.
 *   $1 nonce  $2 workspace  $3 outside  $4 secret file  $5 port  $6 shm key  $7 pid
 *   $8 elsewhere
 */
static const char script[] =
    "printf 'sandwitness-probe start %s\\n' \"$1\"\n"
    "printf '%s' \"$1\" >\"$2/permitted\"\n"
    "printf '%s' \"$1\" >\"$3/forbidden\"\n"
    "if [ -n \"$8\" ]; then printf '%s' \"$1\" >\"$8/forbidden\"; fi\n"
    "if read -r x <\"$4\" || [ -n \"$x\" ]; then printf 'read %s\\n' \"$x\"; fi\n"
    "printf 'env %s\\n' \"${" PF_CANARY "-unset}\"\n"
    "if [ -r /proc/net/tcp ]; then\n"
    "while read -r l; do case $l in *\" 0100007F:$5 \"*) printf 'tcp shared\\n';; esac; done "
    "</proc/net/tcp\n"
    "printf 'tcp seen\\n'; fi\n"
    "if [ -r /proc/sysvipc/shm ]; then\n"
    "while read -r k l; do if [ \"$k\" = \"$6\" ]; then printf 'shm shared\\n'; fi; done "
    "</proc/sysvipc/shm\n"
    "printf 'shm seen\\n'; fi\n"
    "if read -r c </proc/$7/comm; then printf 'pid %s\\n' \"$c\"; fi\n"
    "if [ -r /proc/self/status ]; then\n"
    "while read -r k v; do if [ \"$k\" = Seccomp: ]; then printf 'seccomp %s\\n' \"$v\"; fi; done "
    "</proc/self/status\n"
    "printf 'proc seen\\n'; fi\n"
    "printf 'sandwitness-probe end %s\\n' \"$1\"\n";

void pf_step(sw_backend_status *b, const char *name, sw_step_result r, const char *fmt, ...)
{
	if (b->n_steps == SW_PROBE_STEPS_MAX)
		return;
	sw_probe_step *s = &b->steps[b->n_steps++];
	va_list ap;
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->result = r;
	va_start(ap, fmt);
	vsnprintf(s->detail, sizeof(s->detail), fmt, ap);
	va_end(ap);
}

static bool random_hex(char out[33])
{
	unsigned char raw[16];
	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return false;
	for (size_t i = 0; i < sizeof(raw); i++)
		snprintf(out + 2 * i, 3, "%02x", raw[i]);
	return true;
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	bool ok = !sw_write_all(fd, text, strlen(text));
	return !close(fd) && ok;
}

/* An own folder outside of what the command may write. */
static bool plant_outside(pf_proof *p, const char *home)
{
	const char *places[] = {home, "/var/tmp", "/dev/shm"};
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (!places[i] || strlen(places[i]) > 400)
			continue;
		snprintf(p->outside, sizeof(p->outside), "%s/.sandwitness-probe-XXXXXX",
		         strcmp(places[i], "/") ? places[i] : "");
		if (mkdtemp(p->outside)) {
			p->in_home = i == 0;
			return true;
		}
	}
	p->outside[0] = '\0';
	return false;
}

static void plant_elsewhere(pf_proof *p)
{
	if (!p->in_home)
		return;
	snprintf(p->elsewhere, sizeof(p->elsewhere), "/var/tmp/.sandwitness-probe-XXXXXX");
	if (!mkdtemp(p->elsewhere))
		p->elsewhere[0] = '\0';
}

static void plant_port(pf_proof *p)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(a);
	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->listener >= 0 &&
	    (bind(p->listener, (struct sockaddr *)&a, n) || listen(p->listener, 1) ||
	     getsockname(p->listener, (struct sockaddr *)&a, &n))) {
		close(p->listener);
		p->listener = -1;
	}
	snprintf(p->port_hex, sizeof(p->port_hex), "%04X", ntohs(a.sin_port));
}

static void plant_shm(pf_proof *p)
{
	for (int tries = 0; tries < 4 && p->shm < 0; tries++) {
		int key = 0;
		if (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key))
			return;
		key &= 0x7fffffff;
		if (!key)
			continue;
		p->shm = shmget((key_t)key, 4096, IPC_CREAT | IPC_EXCL | 0600);
		snprintf(p->shm_key, sizeof(p->shm_key), "%d", key);
	}
}

int pf_plant(pf_proof *p, const char *home, sw_error *err)
{
	*p = (pf_proof){.listener = -1, .shm = -1};
	snprintf(p->base, sizeof(p->base), "/tmp/sandwitness-probe-XXXXXX");
	if (!random_hex(p->nonce) || !random_hex(p->secret) || !random_hex(p->canary) ||
	    !mkdtemp(p->base)) {
		int rc = errno == ENOMEM ? SW_ENOMEM : SW_EIO;
		sw_error_set(err, rc, "cannot make a folder for the probe: %s", strerror(errno));
		if (err)
			sw_error_more(err, "/tmp", NULL, "make /tmp writable for this user");
		p->base[0] = '\0';
		return rc;
	}
	snprintf(p->workspace, sizeof(p->workspace), "%s/workspace", p->base);
	bool ok = !mkdir(p->workspace, 0700) && plant_outside(p, home);
	if (ok) {
		snprintf(p->secret_file, sizeof(p->secret_file), "%s/secret", p->outside);
		ok = write_file(p->secret_file, p->secret);
	}
	if (!ok) {
		int rc = errno == ENOMEM ? SW_ENOMEM : SW_EIO;
		sw_error_set(err, rc, "cannot plant the probe's files: %s", strerror(errno));
		if (err)
			sw_error_more(err, p->outside[0] ? p->outside : p->workspace, NULL,
			              "a probe needs a writable /tmp, and a writable home, "
			              "/var/tmp or /dev/shm");
		pf_clear(p);
		return rc;
	}
	plant_elsewhere(p);
	plant_port(p);
	plant_shm(p);
	pr_read_word("/proc/self/comm", p->comm, sizeof(p->comm));
	snprintf(p->pid, sizeof(p->pid), "%ld", (long)getpid());
	return SW_OK;
}

static void remove_in(const char *folder, const char *name)
{
	char path[640];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unlink(path);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path) && errno != ENOENT && errno != EBUSY ? -1 : 0;
}

void pf_clear(pf_proof *p)
{
	if (p->listener >= 0)
		close(p->listener);
	if (p->shm >= 0)
		shmctl(p->shm, IPC_RMID, NULL);
	if (p->outside[0]) {
		remove_in(p->outside, "secret");
		remove_in(p->outside, "forbidden");
		rmdir(p->outside);
	}
	if (p->elsewhere[0]) {
		remove_in(p->elsewhere, "forbidden");
		rmdir(p->elsewhere);
	}
	if (p->base[0]) {
		/* a runner may have made mount points in it; links are not followed, and what is
		 * still mounted is left alone */
		nftw(p->base, remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
		/* where that got no memory */
		remove_in(p->workspace, "permitted");
		rmdir(p->workspace);
		rmdir(p->base);
	}
	*p = (pf_proof){.listener = -1, .shm = -1};
}

size_t pf_command(const pf_proof *p, sw_str out[PF_ARGS_MAX])
{
	const char *args[] = {"/bin/sh",   "-c",         script,     "sh",
	                      p->nonce,    p->workspace, p->outside, p->secret_file,
	                      p->port_hex, p->shm_key,   p->pid,     p->elsewhere};
	size_t n = sizeof(args) / sizeof(*args);
	for (size_t i = 0; i < n; i++)
		out[i] = sw_str_of(args[i]);
	return n;
}

/* ---- judging ---- */

static bool has_line(const char *out, size_t n, const char *line)
{
	size_t len = strlen(line);
	for (const char *p = out; p && p < out + n;) {
		const char *end = memchr(p, '\n', (size_t)(out + n - p));
		size_t got = end ? (size_t)(end - p) : (size_t)(out + n - p);
		if (got && p[got - 1] == '\r')
			got--;
		if (got == len && !memcmp(p, line, len))
			return true;
		p = end ? end + 1 : NULL;
	}
	return false;
}

static bool holds(const char *out, size_t n, const char *what)
{
	return memmem(out, n, what, strlen(what)) != NULL;
}

static bool exists(const char *folder, const char *name)
{
	char path[640];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return !lstat(path, &st);
}

static bool permitted_arrived(const pf_proof *p)
{
	char path[640], buf[64] = "";
	snprintf(path, sizeof(path), "%s/permitted", p->workspace);
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, buf, sizeof(buf) - 1) : -1;
	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(p->nonce) && !memcmp(buf, p->nonce, (size_t)n);
}

/* One guarantee read off the inside: refuted, proved, or not seen. */
static void weigh(pf_verdict *v, sw_backend_status *b, uint32_t expected, uint32_t g,
                  const char *name, bool refuted, bool seen, const char *good, const char *bad)
{
	if (refuted)
		v->refuted |= g;
	else if (seen)
		v->proved |= g;
	if (!(expected & g))
		return;
	pf_step(b, name,
	        refuted ? SW_STEP_FAILED
	        : seen  ? SW_STEP_OK
	                : SW_STEP_UNKNOWN,
	        "%s",
	        refuted ? bad
	        : seen  ? good
	                : "could not be looked at from inside");
}

pf_verdict pf_judge(const pf_proof *p, const char *out, size_t n, uint32_t expected,
                    sw_backend_status *b)
{
	pf_verdict v = {0};
	char start[64], end[64], pid_line[64];
	snprintf(start, sizeof(start), "sandwitness-probe start %s", p->nonce);
	snprintf(end, sizeof(end), "sandwitness-probe end %s", p->nonce);
	snprintf(pid_line, sizeof(pid_line), "pid %s", p->comm);
	v.started = has_line(out, n, start);
	v.finished = has_line(out, n, end);
	v.permitted = permitted_arrived(p);
	v.escaped = exists(p->outside, "forbidden") ||
	            (p->elsewhere[0] && exists(p->elsewhere, "forbidden"));
	v.leaked = holds(out, n, p->secret);
	bool proc = has_line(out, n, "proc seen");

	pf_step(b, "permitted-write", v.permitted ? SW_STEP_OK : SW_STEP_FAILED,
	        v.permitted ? "the write in the workspace arrived"
	                    : "the write in the workspace did not arrive");
	weigh(&v, b, SW_G(FS_WRITE), SW_G(FS_WRITE), "forbidden-write", v.escaped, v.finished,
	      p->elsewhere[0] ? "writes to the home and to /var/tmp were refused"
	      : p->in_home    ? "the write to the home was refused"
	                      : "the write outside was refused",
	      "the forbidden write succeeded");
	weigh(&v, b, expected, SW_G(FS_READ), "private-read", v.leaked, v.finished,
	      p->in_home
	          ? "the file planted in the home could not be read"
	          : "the file planted outside could not be read (there is no home to plant in)",
	      "the planted file could be read");
	weigh(&v, b, expected, SW_G(ENV), "env", holds(out, n, p->canary), v.finished,
	      "the planted variable is gone", "the planted variable was passed on");
	weigh(&v, b, expected, SW_G(NETWORK), "network", has_line(out, n, "tcp shared"),
	      v.finished && p->listener >= 0 && has_line(out, n, "tcp seen"),
	      "a network of its own: this side's sockets are not in it", "the network is shared");
	weigh(&v, b, expected, SW_G(PID), "pid", has_line(out, n, pid_line),
	      v.finished && proc && p->comm[0], "this process is not visible inside",
	      "processes of the host are visible");
	weigh(&v, b, expected, SW_G(IPC), "ipc", has_line(out, n, "shm shared"),
	      v.finished && p->shm >= 0 && has_line(out, n, "shm seen"),
	      "this side's shared memory is not in it", "shared memory of the host is visible");
	weigh(&v, b, expected, SW_G(SYSCALLS), "syscalls", has_line(out, n, "seccomp 0"),
	      v.finished && has_line(out, n, "seccomp 2"), "a system call filter is in force",
	      "no system call filter");
	return v;
}
