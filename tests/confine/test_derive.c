/* What an argv guarantees: the table of docs/levels.md, and attempts to get around it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "derive.h"

#define ARGS_MAX 64

/* Words separated by blanks; "''" is an empty word. */
/* A small generator: the same numbers everywhere. */
static uint32_t seed = 20261;
static uint32_t random_number(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed;
}

static size_t split(const char *line, char *store, char **argv)
{
	size_t n = 0;
	strcpy(store, line);
	for (char *z = strtok(store, " "); z && n < ARGS_MAX; z = strtok(NULL, " "))
		argv[n++] = strcmp(z, "''") ? z : z + 2;
	return n;
}

typedef struct row {
	const char *line;
	const char *has;  /* guarantees that must hold, joined by commas */
	const char *lost; /* that must not */
} row;

static uint32_t bits(const char *z)
{
	uint32_t out = 0;
	if (*z)
		assert_int_equal(
		    sw_level_parse(sw_builtin_levels(), sw_str_of(z), &out, NULL, NULL), 0);
	return out;
}

static void derive(sw_derived *d, const char *line, const sw_derive_options *o)
{
	char store[2048], *argv[ARGS_MAX + 1];
	size_t n = split(line, store, argv);
	argv[n] = NULL;
	sw_derive(d, argv, n, o);
}

static const sw_derive_options user = {.cwd = "/w", .home = "/home/u", .uid = 1000};
static const sw_derive_options root = {.cwd = "/w", .home = "/root", .uid = 0};

static void check(const row *rows, size_t n, const sw_derive_options *o)
{
	for (size_t i = 0; i < n; i++) {
		sw_derived d;
		char got[SW_GUARANTEES_TEXT_MAX];
		derive(&d, rows[i].line, o);
		sw_guarantees_text(d.guarantees, got);
		if (d.basis != SW_BASIS_DERIVED)
			fail_msg("%s: unknown: %s", rows[i].line, d.unknown_why);
		if (bits(rows[i].has) & ~d.guarantees)
			fail_msg("%s: must hold %s, has %s", rows[i].line, rows[i].has, got);
		if (bits(rows[i].lost) & d.guarantees)
			fail_msg("%s: must lack %s, has %s", rows[i].line, rows[i].lost, got);
		/* whatever is lacking has a reason */
		char why[2048];
		sw_derived_reason(&d, SW_GUARANTEES_ALL & ~d.guarantees, why, sizeof(why));
		for (int g = 0; g < SW_GUARANTEE_COUNT; g++)
			if (!(d.guarantees & (1u << g)) &&
			    !strstr(why, sw_guarantee_name((sw_guarantee)g)))
				fail_msg("%s: no reason for %s in: %s", rows[i].line,
				         sw_guarantee_name((sw_guarantee)g), why);
		sw_derived_clear(&d);
	}
}

#define BASE "bwrap --unshare-all --die-with-parent --clearenv --cap-drop ALL "
#define RUN "docker run --rm --network none "
#define SYSTEMD "podman run --network none --memory 1g --pids-limit 9 "
#define PLAIN "--user 1000:1000 --security-opt no-new-privileges "
/* the whole host, without its daemons' sockets and its shared memory */
#define HOST BASE "--ro-bind / / --tmpfs /run --tmpfs /var --dev /dev "

static void bwrap_namespaces(void **state)
{
	(void)state;
	const row rows[] = {
	    {BASE "--ro-bind /usr /usr sh", "fs_write,fs_read,network,pid,ipc,env,tree_kill",
	     "syscalls,resources"},
	    {"bwrap --bind / / sh", "",
	     "fs_write,fs_read,network,pid,ipc,env,syscalls,resources,tree_kill"},
	    {"bwrap --ro-bind /usr /usr --unshare-pid sh", "fs_write,pid",
	     "network,ipc,env,tree_kill"},
	    {"bwrap --unshare-net --ro-bind /usr /usr sh", "network", "pid,ipc,env"},
	    {"bwrap --unshare-all --share-net --ro-bind /usr /usr sh", "pid,ipc", "network"},
	    /* the last word counts, as in bwrap */
	    {"bwrap --unshare-all --share-net --unshare-net --ro-bind /usr /usr sh", "network", ""},
	    {"bwrap --share-net --unshare-all --ro-bind /usr /usr sh", "network", ""},
	    {"bwrap --unshare-pid --ro-bind /usr /usr sh", "pid", "tree_kill"},
	    {"bwrap --die-with-parent --ro-bind /usr /usr sh", "", "tree_kill,pid"},
	    {"bwrap --seccomp 10 --ro-bind /usr /usr sh", "syscalls", "network"},
	    {"bwrap --add-seccomp-fd 10 --ro-bind /usr /usr sh", "syscalls", ""},
	    {"bwrap --unsetenv A --setenv B c --ro-bind /usr /usr sh", "", "env"},
	    {"env -i A=b bwrap --ro-bind /usr /usr sh", "env,fs_write", "network"},
	    {"timeout 30 nice -n 5 bwrap --clearenv --ro-bind /usr /usr sh", "env", "network"},
	    /* what the command's own arguments say does not count */
	    {"bwrap --ro-bind /usr /usr sh --unshare-net --clearenv", "fs_write", "network,env"},
	    {"bwrap --ro-bind /usr /usr -- --unshare-net", "fs_write", "network"},
	};
	check(rows, sizeof(rows) / sizeof(*rows), &user);
}

static void bwrap_writes(void **state)
{
	(void)state;
	const row rows[] = {
	    {BASE "--bind /w /w sh", "fs_write,fs_read", ""},
	    {BASE "--bind /home/u/project /home/u/project sh", "fs_write,fs_read", ""},
	    {BASE "--bind / / sh", "", "fs_write,fs_read"},
	    {BASE "--bind-try / / sh", "", "fs_write"},
	    {BASE "--dev-bind / / sh", "", "fs_write,fs_read"},
	    {BASE "--bind /etc /etc sh", "", "fs_write"},
	    {BASE "--bind /usr/lib /x sh", "", "fs_write"},
	    {BASE "--bind /home/u /home/u sh", "", "fs_write,fs_read"},
	    {BASE "--bind /home /home sh", "", "fs_write,fs_read"},
	    {BASE "--bind /var/lib /var/lib sh", "", "fs_write"},
	    {BASE "--bind /w/../etc /x sh", "", "fs_write"},
	    {BASE "--bind //etc/. /x sh", "", "fs_write"},
	    {BASE "--bind ../etc /x sh", "", "fs_write"},
	    {BASE "--bind /proc/self/root /x sh", "env", "fs_write,fs_read,network,pid,ipc"},
	    {BASE "--bind /proc/1/cwd/x /x sh", "", "fs_write"},
	    {BASE "--overlay / /w/ws /x sh", "", "fs_write"},
	    {BASE "--dev-bind /dev /dev sh", "", "fs_write,fs_read,ipc"},
	    {BASE "--dev-bind /dev/vda /x sh", "network", "fs_write,fs_read"},
	    {BASE "--dev-bind-try /dev/vda /x sh", "", "fs_write,fs_read"},
	    {BASE "--dev-bind /dev/null /dev/null --dev-bind /dev/dri /dev/dri sh",
	     "fs_write,fs_read,ipc", ""},
	    {BASE "--bind /var/spool/cron /x sh", "", "fs_write"},
	    {BASE "--bind /var/spool/cron/crontabs /x sh", "", "fs_write"},
	    {BASE "--bind /etc/cron.d /x sh", "", "fs_write"},
	    {BASE "--bind /home/u/.config/systemd /x sh", "", "fs_write"},
	    {BASE "--bind /home/u/.bashrc /x sh", "", "fs_write"},
	    {BASE "--bind /home/u/.local /x sh", "", "fs_write"},
	    {BASE "--bind /home/u/.local/share/x /x sh", "fs_write", ""},
	    {BASE "--bind /var/lib/jenkins/ws /x sh", "fs_write", ""},
	    {BASE "--overlay /w/up /etc /x sh", "", "fs_write"},
	    /* covered by something later: as if it were not there */
	    {BASE "--bind / / --ro-bind /usr / sh", "fs_write,fs_read", ""},
	    {BASE "--bind /etc /x --tmpfs /x sh", "fs_write", ""},
	    {BASE "--bind /etc /x/y --tmpfs /x sh", "fs_write", ""},
	    /* covered in part, or before: not */
	    {BASE "--bind / / --ro-bind /usr /usr sh", "", "fs_write"},
	    {BASE "--tmpfs /x --bind /etc /x sh", "", "fs_write"},
	    /* made read-only afterwards, but not what is mounted below it */
	    {BASE "--bind / / --remount-ro / sh", "", "fs_write"},
	};
	check(rows, sizeof(rows) / sizeof(*rows), &user);
}

static void bwrap_reads(void **state)
{
	(void)state;
	const row rows[] = {
	    {HOST "sh", "fs_write", "fs_read"},
	    {HOST "--tmpfs /home sh", "fs_write,fs_read,network,pid,ipc", ""},
	    {HOST "--tmpfs /home/u sh", "fs_read", ""},
	    {BASE "--tmpfs /home --ro-bind / / --tmpfs /run --tmpfs /var sh", "", "fs_read"},
	    {HOST "--tmpfs /home/v sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind / /host --tmpfs /home sh", "", "fs_read"},
	    {BASE "--ro-bind / /host --tmpfs /host/home --tmpfs /host/run --tmpfs /host/var sh",
	     "fs_read", ""},
	    {HOST "--tmpfs /home --ro-bind /home/u /y sh", "fs_write", "fs_read"},
	    /* what may be left out covers nothing, but can be covered */
	    {HOST "--ro-bind-try /nonexistent /home sh", "fs_write", "fs_read"},
	    {HOST "--bind-try /w /home sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind-try / / --tmpfs /run --tmpfs /var --tmpfs /home sh", "fs_read", ""},
	    {BASE "--bind /etc /x --ro-bind-try /usr /x sh", "", "fs_write"},
	    /* nor does what may lie elsewhere */
	    {HOST "--symlink /w /h --tmpfs /h/home sh", "", "fs_read"},
	    {BASE "--bind /etc /x/l/../y --tmpfs /x sh", "", "fs_write"},
	    {BASE "--symlink z /x/l --bind /etc /x/l/y --tmpfs /x sh", "", "fs_write"},
	    {BASE "--ro-bind /home/u/.ssh /keys sh", "", "fs_read"},
	    {BASE "--ro-bind /home/u/.aws/credentials /c sh", "", "fs_read"},
	    {BASE "--ro-bind /home/u/.local /c sh", "", "fs_read"},
	    {BASE "--ro-bind /home/u/.cargo /c sh", "", "fs_read"},
	    {BASE "--ro-bind /home/u/.local/share/x /c sh", "fs_read", ""},
	    {BASE "--ro-bind /home/u/.pgpass /c sh", "", "fs_read"},
	    {BASE "--ro-bind /run/secrets /c sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /root /r sh", "", "fs_read"},
	    {BASE "--ro-bind /proc/self/root/home /r sh", "", "fs_read"},
	    {BASE "--ro-bind /usr /usr --ro-bind /etc /etc sh", "fs_read", ""},
	    {BASE "--overlay-src / --tmp-overlay /x sh", "", "fs_read"},
	    {BASE "--overlay-src /usr --overlay-src /home/u --ro-overlay /x sh", "", "fs_read"},
	    {BASE "--ro-bind /run/docker.sock /d sh", "", "fs_write,fs_read,network,pid"},
	    {BASE "--ro-bind /var/run/docker.sock /d sh", "", "fs_write,fs_read,network"},
	};
	check(rows, sizeof(rows) / sizeof(*rows), &user);
	/* a user namespace by descriptor may hold the host's processes as well */
	const row joined[] = {
	    {BASE "--ro-bind /usr /usr --ro-bind /proc /p sh", "fs_write,fs_read", ""},
	    {"bwrap --userns 5 --ro-bind /usr /usr --ro-bind /proc /p sh", "", "fs_write,fs_read"},
	    {"bwrap --unshare-net --userns 5 --ro-bind /usr /usr --proc /proc sh", "network",
	     "fs_write,fs_read"},
	    {BASE "--userns2 5 --ro-bind /usr /usr --ro-bind /proc /p sh", "network",
	     "fs_write,fs_read"},
	    {"bwrap --unshare-pid --userns 5 --ro-bind /usr /usr --proc /proc sh",
	     "fs_write,fs_read", ""},
	};
	check(joined, sizeof(joined) / sizeof(*joined), &user);
	/* root reads every home */
	const row as_root[] = {
	    {HOST "--tmpfs /root sh", "fs_write", "fs_read"},
	    /* and everything else that a host holds: only named folders of the system are known */
	    {HOST "--tmpfs /root --tmpfs /home sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /usr /usr --ro-bind /opt /opt --bind /w /w sh", "fs_read,fs_write",
	     ""},
	    {BASE "--ro-bind /etc /etc sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /etc/ssl /etc/ssl sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /etc/ssl /etc/ssl --tmpfs /etc/ssl/private sh", "fs_read", ""},
	    {BASE "--ro-bind /etc/passwd /etc/passwd --ro-bind /etc/ssl/certs /c sh", "fs_read",
	     ""},
	    {BASE "--ro-bind /etc/shadow /x sh", "", "fs_read"},
	    {BASE "--ro-bind /var/lib/x /x sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /boot /b sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /srv /b sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /srv/x /b sh", "fs_write,fs_read", ""},
	};
	check(as_root, sizeof(as_root) / sizeof(*as_root), &root);
}

/* One table of places for every runner; a folder above one is as good. */
static void sockets_and_memory(void **state)
{
	(void)state;
	static const char *const out[] = {"/run",
	                                  "/run/systemd",
	                                  "/run/dbus",
	                                  "/run/k3s",
	                                  "/run/incus",
	                                  "/run/user/1000",
	                                  "/var/lib/lxd",
	                                  "/var/run",
	                                  "/run/unknown",
	                                  "/run/systemd/private",
	                                  "/w/x.sock",
	                                  "/var/lib",
	                                  "/run/docker",
	                                  "/var",
	                                  "/run/snapd.socket",
	                                  "/",
	                                  "/run/initctl",
	                                  "/tmp/.X11-unix"};
	for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++) {
		char line[4][200];
		snprintf(line[0], 200, BASE "--ro-bind %s /x sh", out[i]);
		snprintf(line[1], 200, "docker run --network none -v %s:/x:ro debian", out[i]);
		snprintf(line[2], 200,
		         "podman run --network none --mount type=bind,src=%s,dst=/x debian sh",
		         out[i]);
		snprintf(line[3], 200, "sandwitness __landlock --clearenv --ro %s -- sh", out[i]);
		const row rows[] = {{line[0], "env", "fs_write,fs_read,network,pid,ipc"},
		                    {line[1], "env", "fs_write,fs_read,network,pid,ipc"},
		                    {line[2], "env", "fs_write,fs_read,network,pid,ipc"},
		                    {line[3], "env", "fs_write,fs_read"}};
		check(rows, 4, &user);
	}
	const row rows[] = {
	    {BASE "--ro-bind /run /run --tmpfs /run sh", "fs_write,network", ""},
	    {BASE "--ro-bind /var /var --tmpfs /var/lib --tmpfs /var/snap sh", "fs_write", ""},
	    {BASE "--ro-bind /run/current-system /x sh", "fs_write,fs_read,network", ""},
	    {BASE "--ro-bind /run/systemd/resolve /x sh", "fs_write,pid", "network"},
	    {BASE "--ro-bind /dev/shm /x sh", "fs_write,network", "ipc"},
	    {BASE "--dev-bind /dev /dev --tmpfs /dev/shm --tmpfs /dev/mqueue sh", "ipc",
	     "fs_write"},
	    {"docker run --network none -v /dev/shm:/dev/shm debian", "pid", "ipc"},
	    {"docker run --network none -v /dev:/d:ro debian", "", "ipc,fs_write"},
	};
	check(rows, sizeof(rows) / sizeof(*rows), &user);
}

static void bwrap_as_root(void **state)
{
	(void)state;
	/* Root keeps every capability without --cap-drop ALL: "mount -o remount,rw,bind /" works.
	 */
	const row rows[] = {
	    {"bwrap --unshare-all --ro-bind /usr /usr sh", "network,pid,ipc", "fs_write,fs_read"},
	    {"bwrap --unshare-all --cap-drop ALL --ro-bind /usr /usr sh", "fs_write,fs_read", ""},
	    {"bwrap --unshare-all --cap-drop all --ro-bind /usr /usr sh", "fs_write,fs_read", ""},
	    {"bwrap --unshare-all --cap-drop CAP_CHOWN --ro-bind /usr /usr sh", "", "fs_write"},
	    {"bwrap --unshare-all --uid 1000 --ro-bind /usr /usr sh", "fs_write", ""},
	    {"bwrap --unshare-all --uid 00 --ro-bind /usr /usr sh", "", "fs_write"},
	    {"bwrap --unshare-all --uid 4294967296 --ro-bind /usr /usr sh", "", "fs_write"},
	    {"bwrap --cap-drop ALL --cap-add CAP_SYS_ADMIN --ro-bind /usr /usr sh", "", "fs_write"},
	    /* bwrap takes any number, with anything behind it */
	    {BASE "--cap-add 21 --ro-bind /usr /usr sh", "network", "fs_write,fs_read"},
	    {BASE "--cap-add 0x15 --ro-bind /usr /usr sh", "", "fs_write,fs_read"},
	    {BASE "--cap-add 21x --ro-bind /usr /usr sh", "", "fs_write,fs_read"},
	    {BASE "--cap-add sys_admin --ro-bind /usr /usr sh", "", "fs_write,fs_read"},
	    {BASE "--cap-add cap_newer --ro-bind /usr /usr sh", "", "fs_write,fs_read"},
	    {BASE "--cap-add 21 --cap-drop ALL --ro-bind /usr /usr sh", "fs_write", ""},
	    /* those of the host itself, and /proc of its processes */
	    {"bwrap --unshare-net --unshare-pid --ro-bind /usr /usr sh", "",
	     "fs_write,fs_read,network,pid"},
	    {"bwrap --unshare-pid --cap-drop ALL --ro-bind /usr /usr --ro-bind /proc /proc sh", "",
	     "fs_write,fs_read"},
	    {"bwrap --unshare-net --cap-drop ALL --ro-bind /usr /usr --proc /proc sh", "network",
	     "fs_write,fs_read"},
	    {"bwrap --unshare-pid --cap-drop ALL --ro-bind /usr /usr --proc /proc sh", "fs_write",
	     ""},
	    {"bwrap --cap-drop ALL --cap-add cap_net_bind_service --ro-bind /usr /usr sh",
	     "fs_write", ""},
	};
	check(rows, sizeof(rows) / sizeof(*rows), &root);
}

static void granted_roots(void **state)
{
	(void)state;
	const char *const granted[] = {"/data/out", "/w"};
	sw_derive_options o = user;
	o.writable = granted;
	o.n_writable = 2;
	const row rows[] = {
	    {BASE "--bind /w /w --bind /data/out/x /x sh", "fs_write", ""},
	    {BASE "--bind /data /data sh", "", "fs_write"},
	    {BASE "--bind /data/output /x sh", "", "fs_write"},
	    {BASE "--bind /srv/x /x sh", "", "fs_write"},
	    {BASE "--bind . /w sh", "fs_write", ""},
	};
	check(rows, sizeof(rows) / sizeof(*rows), &o);
}

static bool one_link(void *ctx, const char *path, char *out, size_t n)
{
	(void)ctx;
	if (strcmp(path, "/w/link") != 0)
		return false;
	snprintf(out, n, "/");
	return true;
}

/* HOME as it stands, its plain form, and the account's: each hides what lies there. */
static void homes(void **state)
{
	(void)state;
	sw_derive_options o = user;
	o.home = "/x/a";
	o.env_home = "/x/u/";
	const row two[] = {
	    {BASE "--ro-bind /x/u/.ssh /k sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /x/a/.ssh /k sh", "fs_write", "fs_read"},
	    {HOST "--tmpfs /x/u sh", "fs_write", "fs_read"},
	    {HOST "--tmpfs /x/a sh", "fs_write", "fs_read"},
	    {HOST "--tmpfs /x sh", "fs_write,fs_read", ""},
	    {BASE "--bind /x/u /u sh", "", "fs_write,fs_read"},
	};
	check(two, sizeof(two) / sizeof(*two), &o);
	/* an account without a home: what HOME says is not all */
	o.home = NULL;
	const row none[] = {
	    {HOST "--tmpfs /x/u sh", "fs_write", "fs_read"},
	    {HOST "--tmpfs /x/u --tmpfs /home --tmpfs /root sh", "fs_write,fs_read", ""},
	};
	check(none, sizeof(none) / sizeof(*none), &o);
}

static void descriptors(void **state)
{
	(void)state;
	static const struct {
		sw_derive_fd fd;
		const char *has, *lost;
	} cases[] = {
	    {{.fd = 0, .type = S_IFDIR, .writable = true, .path = "/root"},
	     "env",
	     "fs_read,fs_write"},
	    {{.fd = 0, .type = S_IFDIR, .path = "/usr"}, "fs_write", "fs_read"},
	    {{.fd = 7, .type = S_IFBLK, .path = "/dev/vda"}, "network", "fs_read,fs_write"},
	    {{.fd = 7, .type = S_IFCHR, .path = "/dev/mem"}, "network", "fs_read,fs_write"},
	    {{.fd = 0, .type = S_IFCHR, .path = "/dev/null"}, "fs_read,fs_write,network", ""},
	    {{.fd = 0, .type = S_IFREG, .path = "/etc/x", .writable = true}, "fs_read", "fs_write"},
	    {{.fd = 0, .type = S_IFREG, .path = "/etc/x"}, "fs_read,fs_write", ""},
	    {{.fd = 0, .type = S_IFREG, .path = "/w/x", .writable = true}, "fs_read,fs_write", ""},
	    {{.fd = 3, .type = S_IFREG, .path = "/home/u/.ssh/k"}, "fs_write", "fs_read"},
	    {{.fd = 0, .type = S_IFSOCK, .internet = true}, "fs_write", "network"},
	    {{.fd = 0, .type = S_IFSOCK}, "network", ""},
	    {{.fd = 0, .type = S_IFIFO}, "network,fs_read", ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		sw_derive_options o = user;
		o.fds = &cases[i].fd;
		o.n_fds = 1;
		const row rows[] = {{BASE "--ro-bind /usr /usr sh", cases[i].has, cases[i].lost}};
		check(rows, 1, &o);
	}
	/* an engine's container has the client's copies of 0 to 2 */
	sw_derive_options o = user;
	o.fds = &cases[0].fd;
	o.n_fds = 1;
	const row rows[] = {{RUN "debian", "fs_read,fs_write", ""}};
	check(rows, 1, &o);
}

static void terminals(void **state)
{
	(void)state;
	sw_derive_options o = user;
	o.terminal = SW_DERIVE_TERMINAL_OPEN;
	const row open[] = {
	    {BASE "--ro-bind /usr /usr sh", "env", "fs_write,fs_read,network,pid,ipc"},
	    {BASE "--new-session --ro-bind /usr /usr sh", "fs_write,network", ""},
	    {"setsid " BASE "--ro-bind /usr /usr sh", "fs_write,network", ""},
	    {"sandwitness __landlock --ro /usr -- sh", "", "fs_write"},
	    {"sandwitness __landlock --new-session --ro /usr -- sh", "fs_write", ""},
	    {RUN "-it debian", "fs_write,network", ""},
	};
	check(open, sizeof(open) / sizeof(*open), &o);
	o.terminal = SW_DERIVE_TERMINAL_SAFE;
	const row safe[] = {{BASE "--ro-bind /usr /usr sh", "fs_write,network", "pid"},
	                    {BASE "--new-session --ro-bind /usr /usr sh", "pid", ""}};
	check(safe, 2, &o);
}

static void landlock(void **state)
{
	(void)state;
#define LL "sandwitness __landlock --clearenv "
	const row rows[] = {
	    {LL "--ro /usr --rw /w -- sh", "fs_write,fs_read,env", "network,pid,ipc"},
	    {LL "--rw /etc -- sh", "", "fs_write"},
	    {LL "--ro /usr --dev-try /dev/null --dev-try /dev/pts -- sh", "fs_write,fs_read", ""},
	    {LL "--ro /usr --dev-try /dev/vda -- sh", "env", "fs_write,fs_read"},
	    {LL "--ro /usr --dev-try / -- sh", "", "fs_write,fs_read"},
	};
	check(rows, sizeof(rows) / sizeof(*rows), &user);
	const row as_root[] = {
	    {LL "--ro /etc/ssl -- sh", "fs_write", "fs_read"},
	    {LL "--ro /etc/ssl --hide /etc/ssl/private -- sh", "fs_read", ""},
	    /* a grant of its own is stronger than a hidden folder above */
	    {LL "--ro /etc/ssl --hide /etc -- sh", "", "fs_read"},
	    /* a value that reads like the option */
	    {LL "--ro /etc/ssl --setenv --hide /etc/ssl/private -- sh", "", "fs_read"},
	};
	check(as_root, sizeof(as_root) / sizeof(*as_root), &root);
}

/* /w/l leads to /home/u/d: what follows `..` is /home/u, not /w. */
static bool a_tree(void *ctx, const char *path, char *out, size_t n)
{
	(void)ctx;
	static const char *const tree[][2] = {
	    {"/w/l/..", "/home/u"},  {"/w/l", "/home/u/d"}, {"/w", "/w"},
	    {"/x/u", "/data/u"},     {"/x/u/", "/data/u"},  {"/data/u", "/data/u"},
	    {"/w/t", "/data/t"},     {"/w/g/..", "/data"},  {"/w/l/../.ssh", "/home/u/.ssh"},
	    {"/w/./l/..", "/home/u"}};
	errno = strstr(path, "closed") ? EACCES : ENOENT;
	for (size_t i = 0; i < sizeof(tree) / sizeof(*tree); i++)
		if (!strcmp(tree[i][0], path)) {
			snprintf(out, n, "%s", tree[i][1]);
			return true;
		}
	return false;
}

/* A host where u has mail and a disk, and v a disk. */
static bool u_has_mail(void *ctx, const char *path, char *out, size_t n)
{
	(void)ctx;
	static const char *const tree[] = {
	    "/",      "/var",     "/var/mail",     "/var/mail/u", "/home", "/home/u",
	    "/media", "/media/u", "/media/u/disk", "/media/v",    "/w"};
	const char *mail = "/var/spool/mail";
	char real[4096];
	if (!strncmp(path, mail, strlen(mail))) {
		snprintf(real, sizeof(real), "/var/mail%s", path + strlen(mail));
		path = real;
	}
	for (size_t i = 0; i < sizeof(tree) / sizeof(*tree); i++)
		if (!strcmp(tree[i], path)) {
			snprintf(out, n, "%s", path);
			return true;
		}
	errno = ENOENT;
	return false;
}

/* Mail and disks are as private as a home. */
static void mail_and_disks(void **state)
{
	(void)state;
#define MAIL "--tmpfs /var/mail "
#define DISKS "--tmpfs /media "
#define VAR                                                                                  \
	BASE "--ro-bind / / --dev /dev --tmpfs /run --tmpfs /home --tmpfs /var/lib --tmpfs " \
	     "/var/snap "
	const row by_text[] = {
	    {BASE "--ro-bind /var/mail/u /m sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /var/mail/u/new /m sh", "", "fs_read"},
	    {BASE "--ro-bind /var/spool/mail/u /m sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /var/spool /m sh", "", "fs_read"},
	    {BASE "--ro-bind /media/u /m sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /media /m sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /run/media/u /m sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /var/run/media/u /m sh", "fs_write", "fs_read"},
	    /* a disk by its name is granted */
	    {BASE "--ro-bind /media/u/disk /m sh", "fs_write,fs_read", ""},
	    {VAR "sh", "fs_write", "fs_read"},
	    {VAR MAIL "--tmpfs /var/spool/mail sh", "fs_write,fs_read", ""},
	    {RUN PLAIN "-v /var/mail/u:/m:ro debian", "fs_write", "fs_read"},
	    {RUN "-v /media/u:/m:ro debian", "", "fs_read"},
	    {"podman run --network none -v /run/media/u:/m:ro debian sh", "", "fs_read"},
	    {LL "--ro /var/mail/u -- sh", "fs_write", "fs_read"},
	};
	check(by_text, sizeof(by_text) / sizeof(*by_text), &user);
	sw_derive_options o = user;
	o.user = "u";
	o.resolve = u_has_mail;
	const sw_derive_fd spool = {.fd = 3, .type = S_IFREG, .path = "/var/mail/u"};
	const row seen[] = {
	    {HOST "--tmpfs /home " DISKS "sh", "fs_write,fs_read", ""},
	    {HOST "--tmpfs /home sh", "fs_write", "fs_read"},
	    {HOST "--tmpfs /home --tmpfs /media/v sh", "fs_write", "fs_read"},
	    {HOST "--tmpfs /home --tmpfs /media/u sh", "fs_write,fs_read", ""},
	    {HOST "--tmpfs /home " DISKS "--ro-bind /var/spool/mail/u /m sh", "fs_write",
	     "fs_read"},
	    {VAR DISKS "sh", "fs_write", "fs_read"},
	    {VAR DISKS "--tmpfs /var/spool/mail sh", "fs_write", "fs_read"},
	    {VAR DISKS MAIL "sh", "fs_write,fs_read", ""},
	    /* others' cannot be read */
	    {BASE "--ro-bind /media/v /m sh", "fs_write,fs_read", ""},
	    {RUN PLAIN "-v /media/v:/m:ro debian", "fs_write", "fs_read"},
	};
	check(seen, sizeof(seen) / sizeof(*seen), &o);
	o.fds = &spool;
	o.n_fds = 1;
	const row inherited[] = {{BASE "--ro-bind /usr /usr sh", "fs_write", "fs_read"}};
	check(inherited, 1, &o);
	o = user;
	o.user = "w";
	o.resolve = u_has_mail;
	const row none[] = {{HOST "--tmpfs /home sh", "fs_write,fs_read", ""}};
	check(none, 1, &o);
	/* root reads everybody's */
	o = root;
	o.user = "root";
	const row as_root[] = {
	    {BASE "--ro-bind /media/v /m sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /run/media /m sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /run/media/v /m sh", "fs_write", "fs_read"},
	};
	check(as_root, sizeof(as_root) / sizeof(*as_root), &o);
}

static bool x11_and_tmux(void *ctx, const char *path, bool near)
{
	(void)ctx;
	return !strcmp(path, near ? "/tmp" : "/tmp/.X11-unix");
}

/* Where the host can be looked at, only what is there counts. */
static void sockets_that_are_there(void **state)
{
	(void)state;
	sw_derive_options o = user;
	o.has_socket = x11_and_tmux;
	const row rows[] = {
	    {BASE "--ro-bind / / --dev /dev --tmpfs /home --tmpfs /tmp --tmpfs /var/mail "
	          "--tmpfs /var/spool/mail sh",
	     "fs_write,fs_read,network,ipc", ""},
	    {BASE "--ro-bind / / --dev /dev --tmpfs /home sh", "", "fs_write,network"},
	    {BASE "--bind /tmp /tmp sh", "", "fs_write,network"},
	    {BASE "--bind /tmp/x /tmp sh", "fs_write,network", ""},
	    {BASE "--ro-bind /tmp/.X11-unix/X0 /x sh", "", "fs_write,network"},
	    {RUN "-v /tmp:/x debian", "", "fs_write,network"},
	    /* Landlock leaves sockets alone, whatever is granted */
	    {"sandwitness __landlock --rw /tmp -- sh", "fs_write", ""},
	};
	check(rows, sizeof(rows) / sizeof(*rows), &o);
	o = root;
	o.no_userns = true;
	const row no[] = {{"bwrap --unshare-all --ro-bind /usr /usr sh", "", "network,pid"}};
	check(no, 1, &o);
}

static void dots_after_links(void **state)
{
	(void)state;
	sw_derive_options o = user;
	o.resolve = a_tree;
	const row rows[] = {
	    {BASE "--ro-bind /w/l/.. /s sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind l/.. /s sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind l/../.ssh /s sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind /w/../usr/x /s sh", "", "fs_read,fs_write"}, /* cannot be told */
	    {BASE "--ro-bind /w/new /s sh", "fs_write,fs_read", ""},
	    {BASE "--ro-bind /closed/x /s sh", "", "fs_read,fs_write"},
	    {RUN "-v ./l/..:/s:ro debian", "fs_write", "fs_read"},
	    {RUN "--mount type=bind,src=/w/l/..,dst=/s,ro debian", "fs_write", "fs_read"},
	    /* a target that a link moves covers nothing else */
	    {BASE "--ro-bind /w /w --bind /etc /w/t/x --tmpfs /w sh", "", "fs_write"},
	};
	check(rows, sizeof(rows) / sizeof(*rows), &o);
	/* homes and grants as well */
	o.env_home = "/x/u";
	const row home[] = {{BASE "--ro-bind /data/u/.ssh /s sh", "fs_write", "fs_read"}};
	check(home, 1, &o);
	static const char *const granted[] = {"/w/g/.."};
	o.writable = granted;
	o.n_writable = 1;
	const row grant[] = {{BASE "--bind /w /w sh", "", "fs_write"},
	                     {BASE "--bind /data/u /w sh", "fs_write", ""}};
	check(grant, 2, &o);
}

static void doubt(void **state)
{
	(void)state;
	sw_derived d;
	derive(&d, "timeout 5 bwrap --ro-bind /usr /usr sh", &user);
	assert_int_equal(d.n_programs, 2);
	assert_int_equal(d.programs[0], 0);
	assert_int_equal(d.programs[1], 2);
	sw_derived_doubt(&d, "%s is not trusted", "x");
	assert_int_equal(d.basis, SW_BASIS_UNKNOWN);
	assert_int_equal(d.guarantees, 0);
	assert_string_equal(d.unknown_why, "x is not trusted");
	sw_derived_clear(&d);
}

static void links_are_followed(void **state)
{
	(void)state;
	sw_derive_options o = user;
	sw_derived d;
	derive(&d, BASE "--bind /w/link /w sh", &o);
	assert_true(d.guarantees & SW_G(FS_WRITE));
	sw_derived_clear(&d);
	o.resolve = one_link;
	derive(&d, BASE "--bind /w/link /w sh", &o);
	assert_false(d.guarantees & SW_G(FS_WRITE));
	sw_derived_clear(&d);
}

static void containers(void **state)
{
	(void)state;
	const row rows[] = {
	    {RUN "debian sh", "fs_write,fs_read,network,pid,ipc,env,syscalls,tree_kill",
	     "resources"},
	    {"docker run debian", "fs_write", "network"},
	    {"docker run --net=none debian", "network", ""},
	    {"podman --runtime /usr/bin/crun run --network none debian sh", "fs_write", ""},
	    {"docker run --runtime=runsc --network none debian", "fs_write", ""},
	    {"docker run --network host --network none debian", "", "network"},
	    {"docker run --network=host debian", "", "network"},
	    {"docker run --network container:x debian", "", "network"},
	    {"podman run --network none -it --rm=true debian sh", "network,syscalls", ""},
	    {"docker --context x container run --network none debian", "network", ""},
	    {"docker -H tcp://h:1 run --network none debian", "network", ""},
	    {RUN "--privileged debian", "env",
	     "fs_write,fs_read,network,pid,ipc,syscalls,resources"},
	    {RUN "--privileged=false debian", "fs_write", ""},
	    {RUN "--memory 1g --pids-limit 10 debian", "resources", ""},
	    {RUN "-m1g --pids-limit=10 debian", "resources", ""},
	    {RUN "--memory 1g --pids-limit -1 debian", "", "resources"},
	    {RUN "--memory 1g debian", "", "resources"},
	    {RUN "--pid host debian", "network", "pid,tree_kill"},
	    {RUN "--pid=container:x debian", "", "pid,fs_write"},
	    {RUN "--pid frob --ipc frob debian", "", "pid,ipc"},
	    {RUN "--pid private --ipc private debian", "pid,ipc", ""},
	    {RUN "--memory 1g --pids-limit 10 --memory-swap -1 debian", "", "resources"},
	    {RUN "--memory 1g --pids-limit 10 --memory-swap 2g debian", "resources", ""},
	    {RUN "--memory 1g --memory 0 --pids-limit 10 debian", "", "resources"},
	    {"podman run --network none --seccomp-policy image debian sh", "fs_write", "syscalls"},
	    {"podman run --network none --seccomp-policy default debian sh", "syscalls", ""},
	    {"podman run --network none --log-opt path=/etc/cron.d/x debian sh", "", "fs_write"},
	    {"podman run --network none --log-opt path=/w/log debian sh", "fs_write", ""},
	    {"podman run --network none --memory 1g --pids-limit 9 debian /sbin/init", "network",
	     "fs_write,resources"},
	    {"podman run --systemd=false --memory 1g --pids-limit 9 debian /sbin/init",
	     "fs_write,resources", ""},
	    {SYSTEMD "debian /opt/systemd", "network", "fs_write,resources"},
	    {SYSTEMD "debian systemd --system", "network", "fs_write,resources"},
	    {SYSTEMD "debian /bin/sh -c /usr/sbin/init", "network", "fs_write,resources"},
	    {SYSTEMD "debian /bin/sh -c true", "fs_write,resources", ""},
	    {SYSTEMD "debian make systemd /sbin/init", "fs_write,resources", ""},
	    {SYSTEMD "--entrypoint /sbin/init debian", "network", "fs_write,resources"},
	    {SYSTEMD "--entrypoint=/usr/sbin/init debian sh", "", "fs_write,resources"},
	    {SYSTEMD "--entrypoint /usr/local/sbin/init debian sh", "", "fs_write,resources"},
	    {SYSTEMD "--entrypoint /x/systemd debian sh", "", "fs_write,resources"},
	    {SYSTEMD "--entrypoint /x/systemd/ debian sh", "", "fs_write,resources"},
	    {SYSTEMD "--entrypoint [\"/sbin/init\"] debian sh", "", "fs_write,resources"},
	    {SYSTEMD "--entrypoint null debian", "", "fs_write,resources"},
	    {SYSTEMD "--entrypoint node debian", "fs_write,resources", ""},
	    {SYSTEMD "--entrypoint /bin/make debian /sbin/init", "fs_write,resources", ""},
	    {SYSTEMD "--entrypoint '' debian /sbin/init", "", "fs_write,resources"},
	    {SYSTEMD "--entrypoint '' debian sh", "fs_write,resources", ""},
	    /* the image's own command is not known */
	    {SYSTEMD "debian", "network", "fs_write,resources"},
	    {SYSTEMD "--entrypoint '' debian", "network", "fs_write,resources"},
	    {SYSTEMD "--systemd=false debian", "fs_write,resources", ""},
	    {SYSTEMD "--systemd=false --entrypoint /sbin/init debian", "fs_write,resources", ""},
	    {SYSTEMD "--rootfs /srv/r:O", "fs_write,resources", ""},
	    {RUN "--memory 1g --pids-limit 9 --entrypoint /sbin/init debian", "fs_write,resources",
	     ""},
	    {"podman --out /etc/cron.d/x run --network none debian sh", "", "fs_write"},
	    {RUN "--log-driver syslog debian", "", "network"},
	    {RUN "--restart always debian", "", "tree_kill"},
	    {RUN "--ipc host debian", "pid", "ipc"},
	    {RUN "--security-opt seccomp=unconfined debian", "fs_write", "syscalls"},
	    {RUN "--security-opt=seccomp:unconfined debian", "", "syscalls"},
	    {RUN "--security-opt seccomp=/x.json debian", "", "syscalls"},
	    {RUN "--security-opt seccomp=builtin debian", "syscalls", ""},
	    {"podman run --network none --security-opt seccomp=builtin debian sh", "fs_write",
	     "syscalls"},
	    {RUN "--security-opt no-new-privileges debian", "syscalls", ""},
	    {RUN "--security-opt systempaths=unconfined debian", "", "fs_write"},
	    {RUN "--cap-add ALL debian", "", "fs_write,syscalls"},
	    {RUN "--cap-add=CAP_SYS_ADMIN debian", "", "fs_write,fs_read"},
	    {RUN "--cap-add chown,sys_admin debian", "", "fs_write"},
	    {RUN "--cap-add \"SYS_ADMIN\" debian", "", "fs_write,fs_read,pid"},
	    {RUN "--cap-add chown,\"SYS_ADMIN\" debian", "", "fs_write"},
	    {RUN "--cap-add \tsys_admin debian", "", "fs_write"},
	    {RUN "--cap-add \tchown debian", "fs_write", ""},
	    {RUN "--cap-add 21 debian", "", "fs_write"},
	    {RUN "--cap-add CAP_NEWER debian", "", "fs_write"},
	    {RUN "--cap-add NET_BIND_SERVICE debian", "fs_write", ""},
	    {RUN "--device /dev/sda debian", "", "fs_write,fs_read"},
	    {RUN "--device /dev/fuse debian", "fs_write", ""},
	    {RUN "-d debian", "", "tree_kill"},
	    {RUN "-dit debian", "", "tree_kill"},
	    {RUN "--env-file /x -e A=b debian", "env", ""},
	    {"podman run --network none --env-file /x debian sh", "", "env"},
	    {"podman run --network none --env AWS* debian sh", "", "env"},
	    {"podman run --network none --env AWS=* --env A debian sh", "env", ""},
	    {"podman run --network none --env-host debian sh", "", "env"},
	    {"podman run --network none -e * debian sh", "", "env"},
	    {"podman run --network none --rootfs /", "", "fs_write,fs_read"},
	    {"podman run --network none --rootfs /:idmap", "", "fs_write,fs_read"},
	    {"podman run --network none --rootfs /:O,upperdir=/etc,workdir=/w/k", "",
	     "fs_write,fs_read"},
	    {"podman run --network none --rootfs /srv/r:O,upperdir=/etc,workdir=/w/k", "fs_read",
	     "fs_write"},
	    {"podman run --network none --rootfs /srv/r:O", "fs_write,fs_read", ""},
	    {"podman run --network none --rootfs /usr:O", "fs_write", ""},
	    {"podman run --network none --rootfs /usr", "", "fs_write"},
	    {"podman run --network none --cgroups=disabled -m 1g --pids-limit 5 debian sh", "",
	     "resources"},
	};
	check(rows, sizeof(rows) / sizeof(*rows), &user);
}

static void container_mounts(void **state)
{
	(void)state;
	const row rows[] = {
	    {RUN "-v /w:/w debian", "fs_write,fs_read", ""},
	    {RUN "-v/w:/w debian", "fs_write", ""},
	    {RUN "-v /:/host debian", "", "fs_write,fs_read,network"},
	    {RUN "-v /:/host:ro debian", "", "fs_read,fs_write"},
	    {RUN "--volume=/etc:/x debian", "", "fs_write"},
	    {RUN "-v /usr:/x:ro,z debian", "fs_write,fs_read", ""},
	    /* root of the container is root for them; a number without a way back is not */
	    {RUN "-v /etc:/x:ro,z debian", "fs_write", "fs_read"},
	    {RUN "-v /etc:/x:ro --user 1000:1000 debian", "", "fs_read"},
	    {RUN "-v /etc:/x:ro --user 1000:1000 --security-opt no-new-privileges debian",
	     "fs_write,fs_read", ""},
	    {RUN "-v /etc:/x:ro --user 1000:42 --security-opt no-new-privileges debian", "",
	     "fs_read"},
	    {RUN "-v /etc:/x:ro --user 1000:1000 --security-opt no-new-privileges "
	         "--cap-add dac_override debian",
	     "fs_write", "fs_read"},
	    {RUN "-v /etc:/x:ro --user u --security-opt no-new-privileges debian", "", "fs_read"},
	    {"podman run --network none -v /etc:/x:ro debian sh", "fs_write,fs_read", ""},
	    /* rw, another owner and named layers write on the host */
	    {RUN "-v /etc:/x:ro,rw debian", "", "fs_write"},
	    {RUN "-v /etc:/x:ro,U debian", "", "fs_write"},
	    {"podman run --network none -v /w/l:/x:O,upperdir=/etc,workdir=/w/k debian sh",
	     "fs_read", "fs_write"},
	    {"podman run --network none -v /etc:/x:O debian sh", "fs_write", ""},
	    {RUN "-v /sys:/s:ro debian", "", "fs_write"},
	    {RUN "-v /run/systemd:/x debian", "", "network,pid"},
	    {"docker --context x run --network none -v /w:/w debian", "", "fs_write,fs_read"},
	    {"docker -H tcp://h run --network none -v /w:/w debian", "", "fs_write,fs_read"},
	    {"podman -r run --network none -v /w:/w debian sh", "", "fs_write,fs_read"},
	    {"podman-remote run --network none -v /w:/w debian sh", "", "fs_write,fs_read"},
	    {RUN "-v /home/u/.ssh:/k:ro debian", "fs_write", "fs_read"},
	    {RUN "-v /var/run/docker.sock:/s debian", "", "fs_write,fs_read,network,pid"},
	    {RUN "-v /var/run:/s:ro debian", "", "fs_write"},
	    {RUN "-v data:/data debian", "fs_write", ""},
	    {RUN "-v /data debian", "fs_write", ""},
	    {RUN "--mount type=bind,source=/,target=/x debian", "", "fs_write"},
	    {RUN "--mount type=bind,src=/w,dst=/w debian", "fs_write", ""},
	    {RUN "--mount type=bind,src=/usr,dst=/e,readonly debian", "fs_write,fs_read", ""},
	    {RUN "--mount type=bind,src=/etc,dst=/e,readonly=false debian", "", "fs_write"},
	    {RUN "--mount type=bind,\"source=/etc\",target=/e debian", "", "fs_write"},
	    {RUN "--mount type=tmpfs,target=/x debian", "fs_write", ""},
	    {RUN "--tmpfs /tmp debian", "fs_write", ""},
	    /* an engine mounts by depth: nothing covers anything */
	    {RUN "-v /:/a/b -v x:/a debian", "", "fs_write"},
	    {RUN "--use-api-socket debian", "", "fs_write,network"},
	    {RUN "-v ../etc:/x debian", "", "fs_write"},
	    /* a process of the same user is a way out of the host's /proc */
	    {RUN PLAIN "-v /proc:/host:ro debian", "network,pid", "fs_write,fs_read"},
	    {RUN PLAIN "--mount type=bind,src=/proc,dst=/h,ro debian", "network",
	     "fs_write,fs_read"},
	    {RUN PLAIN "-v /proc/7:/h:ro debian", "network", "fs_write,fs_read"},
	    {RUN "-v /proc:/host:ro debian", "network", "fs_write,fs_read"},
	    {"podman run --network none -v /proc:/host:O debian sh", "network", "fs_write,fs_read"},
	    /* and its links are any folder, with the sockets in it */
	    {RUN PLAIN "-v /proc/1/root:/h:ro debian", "env", "fs_write,fs_read,network,pid,ipc"},
	    {RUN PLAIN "--mount type=bind,src=/proc/1/cwd,dst=/h,ro debian", "env",
	     "fs_write,fs_read,network,pid,ipc"},
	    {RUN PLAIN "-v /usr:/host:ro debian", "fs_write,fs_read", ""},
	};
	check(rows, sizeof(rows) / sizeof(*rows), &user);
	const row as_root[] = {
	    {"podman run --network none -v /proc:/host:ro debian sh", "network",
	     "fs_write,fs_read"},
	    {"podman run --network none --userns auto -v /proc:/host:ro debian sh", "network",
	     "fs_write,fs_read"},
	    {"podman run --network none -v /usr:/host:ro debian sh", "fs_write,fs_read", ""},
	};
	check(as_root, sizeof(as_root) / sizeof(*as_root), &root);
}

static void not_to_be_judged(void **state)
{
	(void)state;
	static const char *const lines[] = {
	    "make test",
	    "sh -c bwrap",
	    "bwrap",
	    "bwrap --ro-bind /usr /usr",
	    "bwrap --args 3 sh",
	    "bwrap --frobnicate sh",
	    "bwrap --bind /w",
	    "bwrap --bind-fd 3 /x sh",
	    "bwrap --ro-bind-fd 3 /x sh",
	    "bwrap --ro-bind /dev/fd/0 /x sh",
	    "bwrap --ro-bind /proc/self/fd/7 /x sh",
	    "bwrap --ro-bind /dev/stdin /x sh",
	    "docker run -v /dev/fd/0:/x debian",
	    "env PATH=/w bwrap --ro-bind /usr /usr sh",
	    "env LD_PRELOAD=/w/x.so bwrap --ro-bind /usr /usr sh",
	    "env DOCKER_HOST=tcp://h docker run debian",
	    "evil __landlock --ro /usr -- sh",
	    "podman run --pod x debian",
	    "podman run --pod=new:x debian",
	    "podman --module /x run debian",
	    "podman --conmon /x run debian",
	    "podman --hooks-dir /x run debian",
	    "podman --runtime-flag log=/x run debian",
	    "podman --runtime /w/crun run debian",
	    "podman --volumepath /home run -v u:/x debian",
	    "podman run --preserve-fds 1 debian",
	    "podman run --log-driver passthrough debian",
	    "podman run --annotation a=b debian",
	    "docker run --mount type=glob,src=/roo*,dst=/x debian",
	    "docker run --mount type=bind,src=/w,src=/,dst=/x debian",
	    "docker run --mount type=bind,src=/w,dst=/x,frob debian",
	    "docker run -v /w:/x:frob debian",
	    "docker run -v /w:/x:dev debian",
	    "docker run -v a/b:/x debian",
	    "docker run --volume-driver x -v a:/x debian",
	    "docker run --log-opt frob=x debian",
	    "sudo bwrap --unshare-all --ro-bind /usr /usr sh",
	    "firejail --net=none sh",
	    "nsjail -- sh",
	    "runsc do sh",
	    "docker exec x sh",
	    "docker start x",
	    "docker compose run x",
	    "docker run",
	    "docker run --rm",
	    "docker run --frobnicate debian",
	    "docker run --memory",
	    "docker run -Z debian",
	    "docker run --volumes-from x debian",
	    "docker run --security-opt frob=1 debian",
	    "docker run --mount type=volume,dst=/x,volume-opt=device=/ debian",
	    "docker run --mount type=frob,dst=/x debian",
	    "docker run -v ~/x:/x debian",
	    "docker --frob run debian",
	    "podman --runtime /tmp/evil run debian",
	    "docker run --runtime evil debian",
	    "",
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		sw_derived d;
		derive(&d, lines[i], &user);
		if (d.basis != SW_BASIS_UNKNOWN)
			fail_msg("%s: judged", lines[i]);
		assert_int_equal(d.guarantees, 0);
		assert_true(d.unknown_why[0]);
		sw_level_input in = {.effective = d.guarantees, .basis = d.basis};
		assert_false(sw_level_compare(&in).contained);
		sw_derived_clear(&d);
	}
	/* another runner than the caller says */
	sw_derive_options o = user;
	sw_derived d;
	o.backend = "docker";
	derive(&d, "bwrap --ro-bind /usr /usr sh", &o);
	assert_int_equal(d.basis, SW_BASIS_UNKNOWN);
	sw_derived_clear(&d);
	/* a relative source without a folder to start from */
	o = user;
	o.cwd = NULL;
	derive(&d, "bwrap --bind x /x sh", &o);
	assert_int_equal(d.basis, SW_BASIS_UNKNOWN);
	sw_derived_clear(&d);
	/* backend none is known: nothing holds */
	o = user;
	o.backend = "none";
	derive(&d, "make test", &o);
	assert_int_equal(d.basis, SW_BASIS_DERIVED);
	assert_int_equal(d.guarantees, 0);
	sw_derived_clear(&d);
}

static void facts(void **state)
{
	(void)state;
	sw_derived d;
	derive(&d, "/usr/bin/bwrap --unshare-net --bind /w /ws --chdir /ws -- make all", &user);
	assert_string_equal(d.backend, "bwrap");
	assert_int_equal(d.network, SW_NETWORK_DENIED);
	assert_int_equal(d.n_writable, 1);
	assert_string_equal(d.writable[0], "/ws");
	assert_true(d.writable_known);
	assert_string_equal(d.cwd, "/ws");
	assert_int_equal(d.command, 8);
	sw_derived_clear(&d);
	derive(&d, "docker run --rm -w /x -v /w:/x debian make", &user);
	assert_string_equal(d.backend, "docker");
	assert_int_equal(d.network, SW_NETWORK_ALLOWED);
	assert_string_equal(d.cwd, "/x");
	assert_int_equal(d.command, 8);
	sw_derived_clear(&d);
}

static void supervised(void **state)
{
	(void)state;
	sw_derive_options o = user;
	sw_derived d;
	o.supervised = true;
	derive(&d, "bwrap --ro-bind /usr /usr sh", &o);
	assert_true(d.guarantees & SW_G(TREE_KILL));
	sw_derived_clear(&d);
	/* nobody waits for this one */
	derive(&d, "docker run -d debian", &o);
	assert_false(d.guarantees & SW_G(TREE_KILL));
	sw_derived_clear(&d);
}

/* Any argv at all: no crash, no guarantee without a recognised runner. */
static void any_argv(void **state)
{
	(void)state;
	static const char *const words[] = {"bwrap",
	                                    "docker",
	                                    "podman",
	                                    "run",
	                                    "--bind",
	                                    "--ro-bind",
	                                    "/",
	                                    "/w",
	                                    "--",
	                                    "-v",
	                                    "/:/",
	                                    "a:b:c:d",
	                                    "--mount",
	                                    "type=bind,\"source=/",
	                                    "--rootfs",
	                                    "-it",
	                                    "-",
	                                    "--network=",
	                                    "--args",
	                                    "--overlay-src",
	                                    "--tmp-overlay",
	                                    "--overlay",
	                                    "env",
	                                    "-i",
	                                    "timeout",
	                                    "9",
	                                    "sh",
	                                    "-c",
	                                    "exec \"$@\" 2>&1",
	                                    "sandwitness",
	                                    "__landlock",
	                                    "--rw",
	                                    "--ro",
	                                    "--chdir",
	                                    "",
	                                    "-e",
	                                    "*",
	                                    "--cap-add",
	                                    "ALL,",
	                                    "--security-opt",
	                                    "seccomp",
	                                    "--device",
	                                    ":",
	                                    "--tmpfs",
	                                    "../../..",
	                                    "--unshare-all",
	                                    "--symlink",
	                                    "--hide",
	                                    "--dev-try",
	                                    "--dev-bind",
	                                    "--ro-bind-try",
	                                    "l/../.ssh",
	                                    "/w/l/..",
	                                    "/run",
	                                    "--tmpfs",
	                                    "--user",
	                                    "1:100",
	                                    "--log-opt",
	                                    "path=x",
	                                    "--out",
	                                    "-v",
	                                    "a:b:O,upperdir=/x,workdir=",
	                                    "type=bind,src=.,dst=/x,ro",
	                                    "--proc",
	                                    "/proc/self/fd/0",
	                                    "--uid"};
	const sw_derive_fd fds[] = {{.fd = 0, .type = S_IFDIR},
	                            {.fd = 3, .type = S_IFREG, .writable = true, .path = "/etc/x"}};
	sw_derive_options looking = user;
	looking.resolve = a_tree;
	looking.has_socket = x11_and_tmux;
	looking.fds = fds;
	looking.n_fds = 2;
	looking.terminal = SW_DERIVE_TERMINAL_OPEN;
	const sw_derive_options *const by[] = {&user, &root, &looking, NULL};
	size_t n_words = sizeof(words) / sizeof(*words);
	for (int i = 0; i < (getenv("SW_TEST_SMOKE") ? 2000 : 50000); i++) {
		char *argv[16];
		size_t n = (size_t)(random_number() % 14);
		for (size_t k = 0; k < n; k++)
			argv[k] = (char *)words[random_number() % n_words];
		argv[n] = NULL;
		sw_derived d;
		sw_derive(&d, argv, n, by[random_number() % 4]);
		if (d.basis == SW_BASIS_UNKNOWN)
			assert_int_equal(d.guarantees, 0);
		assert_true(d.command <= n);
		sw_derived_clear(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bwrap_namespaces),
	    cmocka_unit_test(bwrap_writes),
	    cmocka_unit_test(bwrap_reads),
	    cmocka_unit_test(bwrap_as_root),
	    cmocka_unit_test(granted_roots),
	    cmocka_unit_test(links_are_followed),
	    cmocka_unit_test(sockets_and_memory),
	    cmocka_unit_test(homes),
	    cmocka_unit_test(mail_and_disks),
	    cmocka_unit_test(descriptors),
	    cmocka_unit_test(terminals),
	    cmocka_unit_test(landlock),
	    cmocka_unit_test(dots_after_links),
	    cmocka_unit_test(doubt),
	    cmocka_unit_test(sockets_that_are_there),
	    cmocka_unit_test(containers),
	    cmocka_unit_test(container_mounts),
	    cmocka_unit_test(not_to_be_judged),
	    cmocka_unit_test(facts),
	    cmocka_unit_test(supervised),
	    cmocka_unit_test(any_argv),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
