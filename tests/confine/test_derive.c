/* What an argv guarantees: the table of docs/levels.md, and attempts to get around it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	    {BASE "--bind /proc/self/root /x sh", "", "fs_write,fs_read"},
	    {BASE "--bind /proc/1/cwd/x /x sh", "", "fs_write"},
	    {BASE "--overlay / /w/ws /x sh", "", "fs_write"},
	    {BASE "--dev-bind /dev /dev sh", "", "fs_write"},
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
	    {BASE "--ro-bind / / sh", "fs_write", "fs_read"},
	    {BASE "--ro-bind / / --tmpfs /home sh", "fs_write,fs_read", ""},
	    {BASE "--ro-bind / / --tmpfs /home/u sh", "fs_read", ""},
	    {BASE "--tmpfs /home --ro-bind / / sh", "", "fs_read"},
	    {BASE "--ro-bind / / --tmpfs /home/v sh", "", "fs_read"},
	    {BASE "--ro-bind / /host --tmpfs /home sh", "", "fs_read"},
	    {BASE "--ro-bind / /host --tmpfs /host/home sh", "fs_read", ""},
	    {BASE "--ro-bind / / --tmpfs /home --ro-bind /home/u /y sh", "", "fs_read"},
	    {BASE "--ro-bind /home/u/.ssh /keys sh", "", "fs_read"},
	    {BASE "--ro-bind /home/u/.aws/credentials /c sh", "", "fs_read"},
	    {BASE "--ro-bind /root /r sh", "", "fs_read"},
	    {BASE "--ro-bind /proc/self/root/home /r sh", "", "fs_read"},
	    {BASE "--ro-bind /usr /usr --ro-bind /etc /etc sh", "fs_read", ""},
	    {BASE "--ro-bind-fd 5 /x sh", "fs_write", "fs_read"},
	    {BASE "--overlay-src / --tmp-overlay /x sh", "fs_write", "fs_read"},
	    {BASE "--overlay-src /usr --overlay-src /home/u --ro-overlay /x sh", "", "fs_read"},
	    {BASE "--ro-bind /run/docker.sock /d sh", "", "fs_write,fs_read,network,pid"},
	    {BASE "--ro-bind /var/run/docker.sock /d sh", "", "fs_write,fs_read,network"},
	};
	check(rows, sizeof(rows) / sizeof(*rows), &user);
	/* root reads every home */
	const row as_root[] = {
	    {BASE "--ro-bind / / --tmpfs /root sh", "", "fs_read"},
	    {BASE "--ro-bind / / --tmpfs /root --tmpfs /home sh", "fs_read", ""},
	};
	check(as_root, sizeof(as_root) / sizeof(*as_root), &root);
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
	    {"bwrap --cap-drop ALL --cap-add CAP_SYS_ADMIN --ro-bind /usr /usr sh", "", "fs_write"},
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

#define RUN "docker run --rm --network none "

static void containers(void **state)
{
	(void)state;
	const row rows[] = {
	    {RUN "debian sh", "fs_write,fs_read,network,pid,ipc,env,syscalls,tree_kill",
	     "resources"},
	    {"docker run debian", "fs_write", "network"},
	    {"docker run --net=none debian", "network", ""},
	    {"podman --runtime /usr/bin/crun run --network none debian", "fs_write", ""},
	    {"docker run --runtime=runsc --network none debian", "fs_write", ""},
	    {"docker run --network host --network none debian", "", "network"},
	    {"docker run --network=host debian", "", "network"},
	    {"docker run --network container:x debian", "", "network"},
	    {"podman run --network none -it --rm=true debian", "network,syscalls", ""},
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
	    {RUN "--pid=container:x debian", "", "pid"},
	    {RUN "--ipc host debian", "pid", "ipc"},
	    {RUN "--security-opt seccomp=unconfined debian", "fs_write", "syscalls"},
	    {RUN "--security-opt=seccomp:unconfined debian", "", "syscalls"},
	    {RUN "--security-opt seccomp=/x.json debian", "", "syscalls"},
	    {RUN "--security-opt no-new-privileges debian", "syscalls", ""},
	    {RUN "--security-opt systempaths=unconfined debian", "", "fs_write"},
	    {RUN "--cap-add ALL debian", "", "fs_write,syscalls"},
	    {RUN "--cap-add=CAP_SYS_ADMIN debian", "", "fs_write,fs_read"},
	    {RUN "--cap-add chown,sys_admin debian", "", "fs_write"},
	    {RUN "--cap-add NET_BIND_SERVICE debian", "fs_write", ""},
	    {RUN "--device /dev/sda debian", "", "fs_write,fs_read"},
	    {RUN "--device /dev/fuse debian", "fs_write", ""},
	    {RUN "-d debian", "", "tree_kill"},
	    {RUN "-dit debian", "", "tree_kill"},
	    {RUN "--env-file /x -e A=b debian", "env", ""},
	    {"podman run --network none --env-host debian", "", "env"},
	    {"podman run --network none -e * debian", "", "env"},
	    {"podman run --network none --pod x debian", "", "ipc"},
	    {"podman run --network none --rootfs /", "", "fs_write,fs_read"},
	    {"podman run --network none --rootfs /srv/r:O", "fs_write,fs_read", ""},
	    {"podman run --network none --rootfs /usr:O", "fs_write", ""},
	    {"podman run --network none --rootfs /usr", "", "fs_write"},
	    {"podman run --network none --cgroups=disabled -m 1g --pids-limit 5 debian", "",
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
	    {RUN "-v /etc:/x:ro,z debian", "fs_write,fs_read", ""},
	    {RUN "-v /home/u/.ssh:/k:ro debian", "fs_write", "fs_read"},
	    {RUN "-v /var/run/docker.sock:/s debian", "", "fs_write,fs_read,network,pid"},
	    {RUN "-v /var/run:/s:ro debian", "", "fs_write"},
	    {RUN "-v data:/data debian", "fs_write", ""},
	    {RUN "-v /data debian", "fs_write", ""},
	    {RUN "--mount type=bind,source=/,target=/x debian", "", "fs_write"},
	    {RUN "--mount type=bind,src=/w,dst=/w debian", "fs_write", ""},
	    {RUN "--mount type=bind,src=/etc,dst=/e,readonly debian", "fs_write", ""},
	    {RUN "--mount type=bind,src=/etc,dst=/e,readonly=false debian", "", "fs_write"},
	    {RUN "--mount type=bind,\"source=/etc\",target=/e debian", "", "fs_write"},
	    {RUN "--mount type=tmpfs,target=/x debian", "fs_write", ""},
	    {RUN "--tmpfs /tmp debian", "fs_write", ""},
	    /* an engine mounts by depth: nothing covers anything */
	    {RUN "-v /:/a/b -v x:/a debian", "", "fs_write"},
	    {RUN "--use-api-socket debian", "", "fs_write,network"},
	    {RUN "-v ../etc:/x debian", "", "fs_write"},
	};
	check(rows, sizeof(rows) / sizeof(*rows), &user);
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
	                                    "--unshare-all"};
	size_t n_words = sizeof(words) / sizeof(*words);
	for (int i = 0; i < (getenv("SW_TEST_SMOKE") ? 2000 : 50000); i++) {
		char *argv[16];
		size_t n = (size_t)(random_number() % 14);
		for (size_t k = 0; k < n; k++)
			argv[k] = (char *)words[random_number() % n_words];
		argv[n] = NULL;
		sw_derived d;
		sw_derive(&d, argv, n, random_number() & 1 ? &user : NULL);
		if (d.basis == SW_BASIS_UNKNOWN)
			assert_int_equal(d.guarantees, 0);
		assert_true(d.command <= n);
		sw_derived_clear(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bwrap_namespaces), cmocka_unit_test(bwrap_writes),
	    cmocka_unit_test(bwrap_reads),      cmocka_unit_test(bwrap_as_root),
	    cmocka_unit_test(granted_roots),    cmocka_unit_test(links_are_followed),
	    cmocka_unit_test(containers),       cmocka_unit_test(container_mounts),
	    cmocka_unit_test(not_to_be_judged), cmocka_unit_test(facts),
	    cmocka_unit_test(supervised),       cmocka_unit_test(any_argv),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
