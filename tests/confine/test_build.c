/* The argvs that confine builds: flags, environment, refusals, and that reading them back
 * gives what they promise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "confine.h"
#include "derive.h"

/* A small generator: the same numbers everywhere. */
static uint32_t seed = 20261;
static uint32_t random_number(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed;
}

static char *masks[] = {"/etc/shadow", "/etc/ssl/private/", NULL};
static sw_confine_host host = {
    .masks = masks, .n_masks = 2, .home = "/home/u", .user = "u", .uid = 1000, .gid = 100};

static sw_confine_policy policy(void)
{
	return (sw_confine_policy){
	    .mode = SW_MODE_WORKSPACE_WRITE, .workspace = "/ws/p", .host = &host};
}

static const sw_str make[] = {{"make", 4}, {"test", 4}};

static sw_confined *build(const char *backend, const sw_confine_policy *p)
{
	sw_confined *c = NULL;
	sw_error e = {0};
	if (sw_confine(&c, backend, p, make, 2, &e))
		fail_msg("%s: %s", backend, e.what);
	assert_null(c->argv[c->argc]);
	return c;
}

/* Where these words stand one after the other; -1: nowhere before the command. */
static int at(const sw_confined *c, const char *a, const char *b, const char *d)
{
	for (size_t i = 0; i + 2 < c->argc; i++)
		if (!strcmp(c->argv[i], a) &&
		    (!b || (i + 1 < c->argc && !strcmp(c->argv[i + 1], b))) &&
		    (!d || (i + 2 < c->argc && !strcmp(c->argv[i + 2], d))))
			return (int)i;
	return -1;
}
#define HAS(c, a, b, d)         \
	if (at(c, a, b, d) < 0) \
	fail_msg("no %s %s %s", a, (b) ? (b) : "", (d) ? (d) : "")
#define HAS_NOT(c, a, b, d) assert_int_equal(at(c, a, b, d), -1)

static void bwrap_flags(void **state)
{
	(void)state;
	sw_confine_policy p = policy();
	sw_confined *c = build("bwrap", &p);
	static const char *const flags[] = {
	    "--die-with-parent", "--new-session", "--clearenv",
	    "--unshare-user",    "--unshare-ipc", "--unshare-pid",
	    "--unshare-uts",     "--unshare-net", "--unshare-cgroup-try"};
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		HAS(c, flags[i], NULL, NULL);
	HAS(c, "--cap-drop", "ALL", NULL);
	HAS(c, "--bind", "/ws/p", "/ws/p");
	HAS(c, "--setenv", "HOME", "/ws/p");
	HAS(c, "--setenv", "PATH", SW_CONFINE_PATH);
	HAS(c, "--tmpfs", "/tmp", NULL);
	HAS(c, "--ro-bind", "/dev/null", "/etc/shadow");
	HAS(c, "--tmpfs", "/etc/ssl/private", NULL);
	HAS(c, "--remount-ro", "/", NULL);
	HAS(c, "--chdir", "/ws/p", NULL);
	HAS_NOT(c, "--ro-bind-try", "/home", "/home");
	HAS_NOT(c, "--bind", "/", "/");
	/* the command stands behind "--", untouched */
	assert_string_equal(c->argv[c->argc - 3], "--");
	assert_string_equal(c->argv[c->argc - 2], "make");
	assert_string_equal(c->argv[c->argc - 1], "test");
	/* /tmp comes before a workspace in it would */
	assert_string_equal(c->writable_roots[0], "/ws/p");
	assert_int_equal(c->n_writable_roots, 1);
	assert_string_equal(c->private_roots[0], "/tmp");
	assert_string_equal(c->cwd, "/ws/p");
	assert_int_equal(c->network, SW_NETWORK_DENIED);
	sw_confined_free(c);

	p.network = true;
	c = build("bwrap", &p);
	HAS_NOT(c, "--unshare-net", NULL, NULL);
	assert_int_equal(c->granted, SW_G(NETWORK));
	assert_int_equal(c->guarantees & SW_G(NETWORK), 0);
	sw_confined_free(c);

	p = policy();
	p.mode = SW_MODE_READ_ONLY;
	c = build("bwrap", &p);
	HAS(c, "--ro-bind", "/ws/p", "/ws/p");
	HAS_NOT(c, "--bind", "/ws/p", "/ws/p");
	assert_int_equal(c->n_writable_roots, 0);
	sw_confined_free(c);

	p = policy();
	p.partial = true;
	c = build("bwrap", &p);
	HAS_NOT(c, "--unshare-pid", NULL, NULL);
	HAS_NOT(c, "--proc", NULL, NULL);
	HAS(c, "--unshare-net", NULL, NULL);
	assert_string_equal(c->level, "bwrap_partial");
	assert_int_equal(c->enforcement, SW_ENFORCEMENT_PARTIAL);
	sw_confined_free(c);
}

static void mounts_are_nested(void **state)
{
	(void)state;
	const char *readable[] = {"/ws/p/vendor", "/"};
	const char *writable[] = {"/ws/p/vendor/cache", "/data"};
	sw_confine_policy p = policy();
	p.readable = readable;
	p.n_readable = 2;
	p.writable = writable;
	p.n_writable = 2;
	sw_confined *c = build("bwrap", &p);
	int root = at(c, "--ro-bind", "/", "/"), proc = at(c, "--proc", "/proc", NULL);
	int ws = at(c, "--bind", "/ws/p", "/ws/p"),
	    vendor = at(c, "--ro-bind", "/ws/p/vendor", NULL);
	int cache = at(c, "--bind", "/ws/p/vendor/cache", NULL);
	assert_true(root >= 0 && root < proc && proc < ws && ws < vendor && vendor < cache);
	assert_true(at(c, "--ro-bind", "/dev/null", "/etc/shadow") > cache);
	/* the whole root shows the home */
	assert_int_equal(c->guarantees & SW_G(FS_READ), 0);
	sw_confined_free(c);
}

static void environment(void **state)
{
	(void)state;
	const sw_env_var env[] = {{"CARGO_HOME", "/c"},
	                          {"UNSET", NULL},
	                          {"PATH", "/evil"},
	                          {"LANG", "de_DE"},
	                          {"CARGO_HOME", "/again"}};
	sw_confine_policy p = policy();
	p.env = env;
	p.n_env = 5;
	sw_confined *c = build("bwrap", &p);
	HAS(c, "--setenv", "CARGO_HOME", "/c");
	HAS_NOT(c, "--setenv", "CARGO_HOME", "/again");
	HAS_NOT(c, "--setenv", "UNSET", NULL);
	HAS_NOT(c, "--setenv", "PATH", "/evil");
	HAS(c, "--setenv", "LANG", "de_DE");
	/* nothing else reaches the spawn */
	size_t n = 0;
	for (; c->envp[n]; n++)
		assert_true(
		    !strncmp(c->envp[n], "PATH=/usr", 9) ||
		    !strncmp(c->envp[n], "HOME=/ws/p", 12) || !strncmp(c->envp[n], "TMPDIR=", 7) ||
		    !strcmp(c->envp[n], "LANG=de_DE") || !strcmp(c->envp[n], "CARGO_HOME=/c"));
	assert_int_equal(n, 5);
	sw_confined_free(c);
	/* a container's client takes the value from its own environment: not in the argv */
	c = build("docker", &p);
	HAS(c, "--env", "CARGO_HOME", NULL);
	for (size_t i = 0; i < c->argc; i++)
		assert_null(strstr(c->argv[i], "=/c"));
	sw_confined_free(c);
}

static void docker_flags(void **state)
{
	(void)state;
	sw_confine_policy p = policy();
	p.cpus = 1.5;
	p.memory_mb = 512;
	static const char *const both[] = {"docker", "podman"};
	for (size_t i = 0; i < 2; i++) {
		sw_confined *c = build(both[i], &p);
		assert_string_equal(c->argv[0], both[i]);
		assert_string_equal(c->argv[1], "run");
		HAS(c, "--rm", NULL, NULL);
		HAS(c, "--cap-drop", "ALL", NULL);
		HAS(c, "--security-opt", "no-new-privileges", NULL);
		HAS(c, "--user", "1000:100", NULL);
		HAS(c, "--network", "none", NULL);
		HAS(c, "--memory", "512m", NULL);
		HAS(c, "--cpus", "1.50", NULL);
		HAS(c, "--pull", "never", NULL);
		HAS(c, "--mount", "type=bind,source=/ws/p,target=/ws/p", NULL);
		HAS(c, "--entrypoint", "", SW_CONFINE_IMAGE);
		/* whatever the command is called */
		assert_int_equal(at(c, "--systemd=false", NULL, NULL) >= 0, i == 1);
		sw_confined_free(c);
	}
	const char *odd[] = {"/data/a,b\"c"};
	p.readable = odd;
	p.n_readable = 1;
	sw_confined *c = build("docker", &p);
	HAS(c, "--mount", "type=bind,\"source=/data/a,b\"\"c\",\"target=/data/a,b\"\"c\",readonly",
	    NULL);
	sw_confined_free(c);
}

static void landlock_and_seatbelt(void **state)
{
	(void)state;
	sw_confine_policy p = policy();
	p.self = "/opt/sandwitness";
	sw_confined *c = build("landlock", &p);
	assert_string_equal(c->argv[0], "/opt/sandwitness");
	assert_string_equal(c->argv[1], "__landlock");
	HAS(c, "--deny-tcp", NULL, NULL);
	HAS(c, "--new-session", NULL, NULL);
	HAS(c, "--rw", "/ws/p", NULL);
	HAS(c, "--hide", "/etc/shadow", NULL);
	assert_int_equal(c->guarantees & SW_G(NETWORK), 0);
	assert_string_equal(c->writable_roots[1], "/tmp");
	sw_confined_free(c);
	p.mode = SW_MODE_READ_ONLY;
	c = build("landlock", &p);
	HAS_NOT(c, "--rw", NULL, NULL);
	sw_confined_free(c);

	p = policy();
	p.workspace = "/ws/a\"b";
	c = build("seatbelt", &p);
	assert_string_equal(c->argv[0], "/usr/bin/env");
	assert_string_equal(c->argv[1], "-i");
	int i = at(c, "-p", NULL, NULL);
	assert_true(i > 0);
	assert_non_null(strstr(c->argv[i + 1], "(deny network*)"));
	assert_non_null(strstr(c->argv[i + 1], "(subpath \"/ws/a\\\"b\")"));
	sw_confined_free(c);
}

static void danger_is_the_argv_itself(void **state)
{
	(void)state;
	sw_confine_policy p = {.mode = SW_MODE_DANGER_FULL_ACCESS};
	sw_confined *c = build("bwrap", &p);
	assert_string_equal(c->backend, "none");
	assert_int_equal(c->argc, 2);
	assert_int_equal(c->guarantees, 0);
	assert_int_equal(c->enforcement, SW_ENFORCEMENT_NONE);
	sw_confined_free(c);
}

static void refused(const char *what, const char *backend, sw_confine_policy p, const sw_str *argv,
                    size_t n)
{
	sw_confined *c = NULL;
	sw_error e = {0};
	int rc = sw_confine(&c, backend, &p, argv, n, &e);
	if (!rc)
		fail_msg("not refused: %s", what);
	assert_true(e.what[0] != '\0');
	assert_null(c);
}

static void refusals(void **state)
{
	(void)state;
	sw_confine_policy p = policy();
	static const char *const workspaces[] = {"/",           "/etc",     "/usr/local", "/home",
	                                         "/proc/self",  "work",     "/ws/../p",   "/ws//p",
	                                         "/ws/p/",      "/var/lib", "/dev",       "/sys/x",
	                                         "/home/other", "",         "/run/x"};
	for (size_t i = 0; i < sizeof(workspaces) / sizeof(*workspaces); i++) {
		p.workspace = workspaces[i];
		refused(workspaces[i], "bwrap", p, make, 2);
		p = policy();
		const char *one[] = {workspaces[i]};
		p.writable = one;
		p.n_writable = 1;
		refused(workspaces[i], "docker", p, make, 2);
		p = policy();
	}
	p.workspace = NULL;
	refused("no workspace", "bwrap", p, make, 2);
	refused("no mode", "bwrap", (sw_confine_policy){.workspace = "/ws/p"}, make, 2);
	refused("no command", "bwrap", policy(), make, 0);
	refused("no such backend", "firejail", policy(), make, 2);
	refused("none with a sandbox", "none", policy(), make, 2);
	const sw_str nul[] = {{"sh", 2}, {"a\0b", 3}};
	refused("NUL", "bwrap", policy(), nul, 2);
	p = policy();
	p.mode = SW_MODE_READ_ONLY;
	const char *w[] = {"/data"};
	p.writable = w;
	p.n_writable = 1;
	refused("writable in read_only", "bwrap", p, make, 2);
	p = policy();
	const sw_env_var bad[] = {{"A=B", "c"}};
	p.env = bad;
	p.n_env = 1;
	refused("a name with =", "bwrap", p, make, 2);
	p = policy();
	p.image = "--privileged";
	refused("an image that is an option", "docker", p, make, 2);
	p = policy();
	const char *all[] = {"/"};
	p.readable = all;
	p.n_readable = 1;
	refused("the root in a container", "podman", p, make, 2);
	/* a whole own home may be the workspace; its files can then be read */
	p = policy();
	p.workspace = "/home/u";
	sw_confined *c = build("bwrap", &p);
	assert_int_equal(c->guarantees & SW_G(FS_READ), 0);
	sw_confined_free(c);
}

static void merge_stderr(void **state)
{
	(void)state;
	char **argv = NULL;
	size_t n = 0;
	const sw_str cmd[] = {{"echo", 4}, {"a b; $(x)", 9}, {"", 0}};
	assert_int_equal(sw_confine_merge_stderr(&argv, &n, cmd, 3, NULL), 0);
	static const char *const wanted[] = {"/bin/sh",   "-c", "exec \"$@\" 2>&1", "sh", "echo",
	                                     "a b; $(x)", ""};
	assert_int_equal(n, 7);
	for (size_t i = 0; i < 7; i++)
		assert_string_equal(argv[i], wanted[i]);
	assert_null(argv[7]);
	sw_argv_free(argv);
	const sw_str nul[] = {{"e\0", 2}};
	assert_int_equal(sw_confine_merge_stderr(&argv, &n, nul, 1, NULL), SW_EINVAL);
}

static void capabilities(void **state)
{
	(void)state;
	sw_confine_policy p = policy();
	sw_confine_capability c = sw_confine_capabilities(&p, "bwrap", true);
	assert_false(c.can_reach_network || c.reaches_beyond_workspace);
	assert_true(c.private_data);
	/* not proved: nothing narrows */
	assert_true(sw_confine_capabilities(&p, "bwrap", false).can_reach_network);
	/* Landlock never earns it */
	assert_true(sw_confine_capabilities(&p, "landlock", true).can_reach_network);
	assert_true(sw_confine_capabilities(&p, "none", true).can_reach_network);
	p.network = true;
	assert_true(sw_confine_capabilities(&p, "bwrap", true).can_reach_network);
	const char *r[] = {"/opt/x"};
	p = policy();
	p.readable = r;
	p.n_readable = 1;
	assert_true(sw_confine_capabilities(&p, "docker", true).reaches_beyond_workspace);
	p.mode = SW_MODE_DANGER_FULL_ACCESS;
	c = sw_confine_capabilities(&p, "bwrap", true);
	assert_true(c.can_reach_network && c.private_data);
}

/* What is named costs what the table of places says, for root more. */
static void grants_cost(void **state)
{
	(void)state;
	static const struct {
		const char *readable;
		long uid;
		uint32_t keeps;
	} cases[] = {{"/opt/x", 0, SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(NETWORK)},
	             {"/run", 1000, 0},
	             {"/var/run", 1000, 0},
	             {"/run/dbus", 1000, 0},
	             {"/run/systemd/resolve", 1000, SW_G(FS_WRITE) | SW_G(FS_READ)},
	             {"/run/current-system", 1000, SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(NETWORK)},
	             {"/other/.ssh", 1000, SW_G(FS_WRITE) | SW_G(NETWORK)},
	             {"/var/log", 1000, SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(NETWORK)},
	             {"/var/log", 0, SW_G(FS_WRITE) | SW_G(NETWORK)},
	             {"/var/mail/u", 1000, SW_G(FS_WRITE) | SW_G(NETWORK)},
	             {"/media/u", 1000, SW_G(FS_WRITE) | SW_G(NETWORK)},
	             {"/media/v", 1000, SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(NETWORK)},
	             {"/media/v", 0, SW_G(FS_WRITE) | SW_G(NETWORK)},
	             {"/etc/ssl/private/k", 0, SW_G(FS_WRITE) | SW_G(NETWORK)}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		sw_confine_policy p = policy();
		sw_confine_host h = host;
		h.uid = cases[i].uid;
		h.env_home = (char *)"/other";
		p.host = &h;
		p.readable = &cases[i].readable;
		p.n_readable = 1;
		sw_confined *c = build("bwrap", &p);
		uint32_t of = SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(NETWORK);
		if ((c->guarantees & of) != cases[i].keeps)
			fail_msg("--readable %s as %ld: %x", cases[i].readable, cases[i].uid,
			         c->guarantees);
		sw_confined_free(c);
	}
}

/* The table that reads foreign argvs agrees with what we promise about our own. */
static void read_back(void **state)
{
	(void)state;
	static const char *const backends[] = {"bwrap", "docker", "podman", "landlock"};
	static const char *const readable[] = {"/opt/tool",  "/home/u/.ssh",     "/",
	                                       "/data/r",    "/run/docker.sock", "/run",
	                                       "/proc",      "/proc/1/root",     "/var/mail/u",
	                                       "/var/spool", "/media/u",         "/media/v",
	                                       "/media"};
	static const char *const writable[] = {"/data/w", "/ws/p/sub", "/srv/w"};
	const char *granted[5] = {"/ws/p", "/tmp"};
	for (int i = 0; i < 2000; i++) {
		sw_confine_policy p = policy();
		const char *r[2], *w[2];
		p.mode = random_number() & 1 ? SW_MODE_READ_ONLY : SW_MODE_WORKSPACE_WRITE;
		p.network = random_number() & 1;
		p.partial = random_number() % 3 == 0;
		if (random_number() % 4 == 0)
			p.workspace = "/home/u";
		for (p.n_readable = 0; p.n_readable < 2 && random_number() & 1; p.n_readable++)
			r[p.n_readable] = readable[random_number() % 12];
		for (p.n_writable = 0;
		     p.mode != SW_MODE_READ_ONLY && p.n_writable < 2 && random_number() & 1;
		     p.n_writable++)
			w[p.n_writable] = writable[random_number() % 3];
		p.readable = r;
		p.writable = w;
		const char *backend = backends[random_number() % 4];
		if (strcmp(backend, "bwrap") != 0)
			p.partial = false;
		bool client = !strcmp(backend, "docker") || !strcmp(backend, "podman");
		for (size_t k = 0; client && k < p.n_readable; k++)
			if (!strcmp(r[k], "/"))
				r[k] = "/opt";
		size_t n = 2;
		granted[0] = p.workspace;
		for (size_t k = 0; k < p.n_writable; k++)
			granted[n++] = w[k];
		sw_confined *c = build(backend, &p);
		sw_derive_options o = {.backend = backend,
		                       .cwd = "/ws/p",
		                       .home = "/home/u",
		                       .user = "u",
		                       .uid = 1000,
		                       .writable = granted,
		                       .n_writable = n};
		sw_derived d;
		sw_derive(&d, c->argv, c->argc, &o);
		char a[SW_GUARANTEES_TEXT_MAX], b[SW_GUARANTEES_TEXT_MAX];
		sw_guarantees_text(c->guarantees, a);
		sw_guarantees_text(d.guarantees, b);
		if (d.basis != SW_BASIS_DERIVED || d.guarantees != c->guarantees)
			fail_msg("%s: built %s; read back %s %s", backend, a, b, d.unknown_why);
		if (strcmp(backend, "landlock") != 0)
			assert_int_equal(d.network, c->network);
		assert_string_equal(d.cwd, p.workspace);
		assert_string_equal(c->argv[d.command], "make");
		sw_derived_clear(&d);
		sw_confined_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bwrap_flags),
	    cmocka_unit_test(mounts_are_nested),
	    cmocka_unit_test(environment),
	    cmocka_unit_test(docker_flags),
	    cmocka_unit_test(landlock_and_seatbelt),
	    cmocka_unit_test(danger_is_the_argv_itself),
	    cmocka_unit_test(refusals),
	    cmocka_unit_test(grants_cost),
	    cmocka_unit_test(merge_stderr),
	    cmocka_unit_test(capabilities),
	    cmocka_unit_test(read_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
