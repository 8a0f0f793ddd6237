/* landlock.c - the Landlock launcher; see landlock.h. Raw system calls: Debian 12's headers
 * know less than the kernels this runs on. */
#include "landlock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/capability.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "paths.h"

extern char **environ;

/* Numbers of the kernel's interface (uapi/linux/landlock.h). */
enum { NR_CREATE = 444, NR_ADD_RULE = 445, NR_RESTRICT = 446 };
enum { CREATE_VERSION = 1, RULE_PATH_BENEATH = 1 };
#define FS_EXECUTE (1ull << 0)
#define FS_WRITE_FILE (1ull << 1)
#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_TRUNCATE (1ull << 14)
#define FS_IOCTL_DEV (1ull << 15)
#define FS_ABI_1 ((1ull << 13) - 1)
#define FS_REFER (1ull << 13)
#define FS_READ (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)
/* What may be asked for where the path is no folder. */
#define FS_OF_FILE (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)
#define NET_TCP 3ull   /* bind, connect */
#define SCOPE_ALL 3ull /* abstract unix sockets, signals */

struct ruleset_attr {
	uint64_t handled_fs, handled_net, scoped;
};
struct path_beneath_attr {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

typedef enum {
	OPT_NONE,
	OPT_RO,
	OPT_RO_TRY,
	OPT_RW,
	OPT_RW_TRY,
	OPT_DEV_TRY,
	OPT_HIDE,
	OPT_DENY_TCP,
	OPT_CLEARENV,
	OPT_SETENV,
	OPT_CHDIR,
	OPT_SESSION,
	OPT_DIE,
	OPT_EXEC_FD
} option;
static const struct {
	const char *name;
	option id;
	int values;
} options[] = {
    {"--ro", OPT_RO, 1},
    {"--ro-try", OPT_RO_TRY, 1},
    {"--rw", OPT_RW, 1},
    {"--rw-try", OPT_RW_TRY, 1},
    {"--dev-try", OPT_DEV_TRY, 1},
    {"--hide", OPT_HIDE, 1},
    {"--deny-tcp", OPT_DENY_TCP, 0},
    {"--clearenv", OPT_CLEARENV, 0},
    {"--setenv", OPT_SETENV, 2},
    {"--chdir", OPT_CHDIR, 1},
    {"--new-session", OPT_SESSION, 0},
    {"--die-with-parent", OPT_DIE, 0},
    {"--exec-fd", OPT_EXEC_FD, 1},
};
#define HIDE_MAX 256
#define EXPAND_DEPTH_MAX 8

typedef struct {
	int argc, command; /* argv[command] is the command */
	char **argv;
	int abi, exec_fd, ruleset;
	bool deny_tcp, clearenv, session, die;
	const char *chdir_to;
	char *hide[HIDE_MAX];
	size_t n_hide;
	uint64_t handled;
} launch;

int sw_landlock_abi(void)
{
	long abi = syscall(NR_CREATE, NULL, 0, CREATE_VERSION);
	return abi < 0 ? -errno : (int)abi;
}

static void report(const launch *l, const char *text)
{
	if (l->exec_fd < 0)
		return;
	ssize_t n = write(l->exec_fd, text, strlen(text));
	(void)n; /* nobody listens: the exit status says the same */
}

/* One message, one exit status. `error`: an errno or 0. */
static int fail(const launch *l, const char *what, const char *on, int error)
{
	char line[64];
	snprintf(line, sizeof(line), "failed setup %d\n", error);
	report(l, line);
	fprintf(stderr, SW_LANDLOCK_PREFIX "%s%s%s%s%s\n", what, on ? " " : "", on ? on : "",
	        error ? ": " : "", error ? strerror(error) : "");
	return SW_LANDLOCK_EXIT_SETUP;
}

static option option_find(const char *z, int *values)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (!strcmp(options[i].name, z)) {
			*values = options[i].values;
			return options[i].id;
		}
	return OPT_NONE;
}

/* First pass: everything but the grants, which need the ruleset. */
static int parse(launch *l)
{
	for (int i = 1; i < l->argc;) {
		char *z = l->argv[i];
		int values = 0;
		if (!strcmp(z, "--")) {
			l->command = i + 1;
			break;
		}
		option o = option_find(z, &values);
		if (o == OPT_NONE)
			return fail(l, "unknown option", z, 0);
		if (i + values >= l->argc)
			return fail(l, "no value for", z, 0);
		char *value = l->argv[i + 1];
		switch (o) {
		case OPT_HIDE:
			if (l->n_hide == HIDE_MAX)
				return fail(l, "too many --hide", NULL, 0);
			l->hide[l->n_hide++] = value;
			break;
		case OPT_DENY_TCP:
			l->deny_tcp = true;
			break;
		case OPT_CLEARENV:
			l->clearenv = true;
			break;
		case OPT_CHDIR:
			l->chdir_to = value;
			break;
		case OPT_SESSION:
			l->session = true;
			break;
		case OPT_DIE:
			l->die = true;
			break;
		case OPT_EXEC_FD:
			l->exec_fd = atoi(value);
			if (l->exec_fd < 3 || fcntl(l->exec_fd, F_GETFD) < 0) {
				l->exec_fd = -1;
				return fail(
				    l, "--exec-fd is not an open descriptor above 2:", value, 0);
			}
			break;
		default:
			break;
		}
		i += 1 + values;
	}
	return l->command && l->command < l->argc ? 0 : fail(l, "no command after --", NULL, 0);
}

/* ---- rules ---- */

static bool same_path(const char *a, const char *hidden)
{
	size_t n = strlen(hidden);
	while (n > 1 && hidden[n - 1] == '/')
		n--;
	return !strncmp(a, hidden, n) && a[n] == '\0';
}

static bool hides_below(const launch *l, const char *path)
{
	for (size_t i = 0; i < l->n_hide; i++)
		if (sw_path_covers(path, l->hide[i]) && !same_path(path, l->hide[i]))
			return true;
	return false;
}

static bool is_hidden(const launch *l, const char *path)
{
	for (size_t i = 0; i < l->n_hide; i++)
		if (same_path(path, l->hide[i]))
			return true;
	return false;
}

static int rule_fd(const launch *l, int fd, uint64_t access)
{
	struct stat st;
	if (fstat(fd, &st))
		return errno;
	if (!S_ISDIR(st.st_mode))
		access &= FS_OF_FILE;
	struct path_beneath_attr rule = {access & l->handled, fd};
	return syscall(NR_ADD_RULE, l->ruleset, RULE_PATH_BENEATH, &rule, 0) ? errno : 0;
}

static int rule_add(const launch *l, const char *path, uint64_t access)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno;
	int error = rule_fd(l, fd, access);
	close(fd);
	return error;
}

/*
 * Landlock can only grant. A folder with something to hide in it is granted entry by
 * entry, and by itself for listing. Links need no rule: what they point to decides.
 */
static int grant(const launch *l, const char *path, uint64_t access, int depth)
{
	if (is_hidden(l, path))
		return 0;
	if (depth == EXPAND_DEPTH_MAX || !hides_below(l, path))
		return rule_add(l, path, access);
	int error = rule_add(l, path, FS_READ_DIR);
	DIR *d = error ? NULL : opendir(path);
	if (!d)
		return error ? error : errno;
	for (struct dirent *e; !error && (e = readdir(d));) {
		char child[SW_PATH_MAX];
		struct stat st;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (snprintf(child, sizeof(child), "%s/%s", strcmp(path, "/") ? path : "",
		             e->d_name) >= (int)sizeof(child) ||
		    lstat(child, &st) || S_ISLNK(st.st_mode))
			continue;
		error = grant(l, child, access, depth + 1);
		if (error == ENOENT) /* gone since it was listed */
			error = 0;
	}
	closedir(d);
	return error;
}

static int grants(launch *l)
{
	for (int i = 1; i < l->command - 1;) {
		int values = 0;
		option o = option_find(l->argv[i], &values);
		const char *path = l->argv[i + 1];
		uint64_t access = 0;
		bool try = o == OPT_RO_TRY || o == OPT_RW_TRY || o == OPT_DEV_TRY;
		if (o == OPT_RO || o == OPT_RO_TRY)
			access = FS_READ;
		else if (o == OPT_RW || o == OPT_RW_TRY)
			access = l->handled;
		else if (o == OPT_DEV_TRY)
			access =
			    FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV | FS_READ_DIR;
		int error = access ? grant(l, path, access, 0) : 0;
		if (error && !(try && (error == ENOENT || error == ENOTDIR || error == EACCES)))
			return fail(l, "cannot open rule path", path, error);
		i += 1 + values;
	}
	return 0;
}

static int build_ruleset(launch *l)
{
	l->abi = sw_landlock_abi();
	if (l->abi == -ENOSYS)
		return fail(l, "Landlock is not supported", NULL, ENOSYS);
	if (l->abi < 0)
		return fail(l, "Landlock is not supported", NULL, -l->abi);
	if (l->abi < SW_LANDLOCK_ABI_MIN) {
		char need[96];
		snprintf(need, sizeof(need),
		         "Landlock ABI %d is too old: truncation is free below ABI %d", l->abi,
		         SW_LANDLOCK_ABI_MIN);
		return fail(l, need, NULL, 0);
	}
	struct ruleset_attr attr = {.handled_fs = FS_ABI_1 | FS_REFER | FS_TRUNCATE};
	size_t size = sizeof(attr.handled_fs);
	if (l->abi >= 5)
		attr.handled_fs |= FS_IOCTL_DEV;
	if (l->abi >= 4) {
		size += sizeof(attr.handled_net);
		attr.handled_net = l->deny_tcp ? NET_TCP : 0;
	}
	if (l->abi >= 6) {
		size += sizeof(attr.scoped);
		attr.scoped = SCOPE_ALL;
	}
	l->handled = attr.handled_fs;
	l->ruleset = (int)syscall(NR_CREATE, &attr, size, 0);
	if (l->ruleset < 0)
		return fail(l, "landlock_create_ruleset", NULL, errno);
	fcntl(l->ruleset, F_SETFD, FD_CLOEXEC);
	return grants(l);
}

/* ---- the rest of the confinement ---- */

/* Root without capabilities cannot mount, load a module or trace its way out. */
static int drop_capabilities(void)
{
	for (int cap = 0; cap < 64; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {{0}};
	return syscall(SYS_capset, &head, none) ? errno : 0;
}

static void leave_terminal(void)
{
	if (setsid() >= 0)
		return;
	/* A group leader cannot begin a session; it can let go of its terminal. */
	int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (tty >= 0) {
		void (*before)(int) = signal(SIGHUP, SIG_IGN);
		ioctl(tty, TIOCNOTTY);
		signal(SIGHUP, before);
		close(tty);
	}
}

static void close_on_exec_above_2(void)
{
#ifdef SYS_close_range
	if (!syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */))
		return;
#endif
	long max = sysconf(_SC_OPEN_MAX);
	for (int fd = 3; fd < (max > 0 && max < 65536 ? max : 65536); fd++) {
		int flags = fcntl(fd, F_GETFD);
		if (flags >= 0)
			fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
	}
}

static int environment(const launch *l)
{
	if (l->clearenv && clearenv())
		return ENOMEM;
	for (int i = 1; i < l->command - 1;) {
		int values = 0;
		option o = option_find(l->argv[i], &values);
		if (o == OPT_SETENV && setenv(l->argv[i + 1], l->argv[i + 2], 1))
			return errno;
		i += 1 + values;
	}
	return l->chdir_to ? setenv("PWD", l->chdir_to, 1) ? errno : 0 : 0;
}

static int confine_self(launch *l)
{
	int error;
	if (l->die && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return fail(l, "prctl(PR_SET_PDEATHSIG)", NULL, errno);
	if (l->session)
		leave_terminal();
	if ((error = environment(l)))
		return fail(l, "setenv", NULL, error);
	if (l->chdir_to && chdir(l->chdir_to))
		return fail(l, "chdir", l->chdir_to, errno);
	close_on_exec_above_2();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return fail(l, "prctl(PR_SET_NO_NEW_PRIVS)", NULL, errno);
	if ((error = drop_capabilities()))
		return fail(l, "dropping capabilities", NULL, error);
	if (syscall(NR_RESTRICT, l->ruleset, 0))
		return fail(l, "landlock_restrict_self", NULL, errno);
	close(l->ruleset);
	return 0;
}

int sw_landlock_main(int argc, char **argv)
{
	launch l = {.argc = argc, .argv = argv, .exec_fd = -1, .ruleset = -1};
	int rc = parse(&l);
	if (!rc)
		rc = build_ruleset(&l);
	if (!rc)
		rc = confine_self(&l);
	if (rc)
		return rc;

	report(&l, "ready\n");
	execvp(argv[l.command], argv + l.command);
	int error = errno;
	char line[64];
	snprintf(line, sizeof(line), "failed exec %d\n", error);
	report(&l, line);
	fprintf(stderr, SW_LANDLOCK_PREFIX "exec %s: %s\n", argv[l.command], strerror(error));
	return error == ENOENT ? SW_LANDLOCK_EXIT_ABSENT : SW_LANDLOCK_EXIT_EXEC;
}

#else

int sw_landlock_abi(void)
{
	return -ENOSYS;
}

int sw_landlock_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fprintf(stderr, SW_LANDLOCK_PREFIX "Landlock is a feature of Linux\n");
	return SW_LANDLOCK_EXIT_SETUP;
}

#endif
