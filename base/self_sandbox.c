/* Landlock and seccomp for ourselves. */
#include "self_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SELF_PATHS_MAX = 64 };

/* ---- Landlock: own constants, for headers are older than kernels ---- */

#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#define __NR_landlock_restrict_self 446
#endif
#define LL_VERSION_FLAG 1u
#define LL_RULE_PATH_BENEATH 1
#define LL_EXECUTE (1ull << 0)
#define LL_WRITE_FILE (1ull << 1)
#define LL_READ_FILE (1ull << 2)
#define LL_READ_DIR (1ull << 3)
#define LL_REMOVE_FILE (1ull << 5)
#define LL_TRUNCATE (1ull << 14)

typedef struct ll_ruleset {
	uint64_t fs, net, scoped;
} ll_ruleset;

typedef struct ll_beneath {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed)) ll_beneath;

/* Rights that each ABI can restrict: kernel documentation, userspace-api/landlock. */
static ll_ruleset handled(int abi, bool service)
{
	static const uint64_t fs[] = {0,
	                              (1ull << 13) - 1,
	                              (1ull << 14) - 1,
	                              (1ull << 15) - 1,
	                              (1ull << 15) - 1,
	                              (1ull << 16) - 1};
	ll_ruleset r = {.fs = fs[abi < 5 ? abi : 5]};
	if (abi >= 4)
		r.net = 3; /* bind and connect; accepting on what listens already is neither */
	if (abi >= 6) {
		const char *notify = service ? getenv("NOTIFY_SOCKET") : NULL;
		/* signals to others, and abstract sockets, where the manager's is none */
		r.scoped = notify && *notify == '@' ? 2 : 3;
	}
	return r;
}

static size_t ruleset_size(int abi)
{
	return abi >= 6 ? sizeof(ll_ruleset) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

static bool allow(int ruleset, const char *path, uint64_t rights)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR;
	ll_beneath b = {.allowed = rights, .fd = fd};
	bool ok = syscall(__NR_landlock_add_rule, ruleset, LL_RULE_PATH_BENEATH, &b, 0) == 0;
	if (!ok && errno == EINVAL) { /* a plain file takes no rights of folders */
		b.allowed = rights & (LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE);
		ok = syscall(__NR_landlock_add_rule, ruleset, LL_RULE_PATH_BENEATH, &b, 0) == 0;
	}
	close(fd);
	return ok;
}

static uint64_t rights(sw_self_access access, uint64_t known)
{
	static const uint64_t of[] = {[SW_SELF_READ] = LL_READ_FILE | LL_READ_DIR,
	                              [SW_SELF_WRITE] = ~LL_EXECUTE,
	                              [SW_SELF_REMOVE] = LL_REMOVE_FILE};
	return of[access] & known;
}

static bool landlock(sw_self_profile profile, const sw_self_path *paths, size_t n)
{
	long abi = syscall(__NR_landlock_create_ruleset, NULL, 0, LL_VERSION_FLAG);
	if (abi < 1)
		return false;
	ll_ruleset r = handled((int)(abi > 6 ? 6 : abi), profile == SW_SELF_SERVICE);
	int fd = (int)syscall(__NR_landlock_create_ruleset, &r, ruleset_size((int)abi), 0);
	if (fd < 0)
		return false;
	bool ok = true;
	for (size_t i = 0; i < n && ok; i++)
		ok = !paths[i].path || allow(fd, paths[i].path, rights(paths[i].access, r.fs));
	ok = ok && syscall(__NR_landlock_restrict_self, fd, 0) == 0;
	close(fd);
	return ok;
}

/* ---- seccomp ---- */

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef ARCH
/* What reading open descriptors, memory and the end need. */
static const int pure_calls[] = {
    __NR_read,
    __NR_readv,
    __NR_write,
    __NR_writev,
    __NR_lseek,
    __NR_close,
    __NR_fstat,
    __NR_newfstatat,
    __NR_mmap,
    __NR_munmap,
    __NR_mprotect,
    __NR_mremap,
    __NR_madvise,
    __NR_brk,
    __NR_exit,
    __NR_exit_group,
    __NR_rt_sigreturn,
    __NR_rt_sigprocmask,
    __NR_rt_sigaction,
    __NR_futex,
    __NR_getrandom,
    __NR_clock_gettime,
    __NR_getpid,
    __NR_gettid,
    __NR_tgkill,
    __NR_ioctl,
    __NR_fcntl,
    __NR_restart_syscall,
    __NR_sched_getaffinity,
    __NR_sched_yield,
    __NR_prlimit64,
    __NR_membarrier,
    __NR_sysinfo,
};

/* What an SQLite reader does besides. */
static const int reader_calls[] = {
    __NR_openat,     __NR_pread64,    __NR_pwrite64,   __NR_statx,  __NR_faccessat,
    __NR_getcwd,     __NR_readlinkat, __NR_getdents64, __NR_flock,  __NR_fsync,
    __NR_fdatasync,  __NR_ftruncate,  __NR_unlinkat,   __NR_umask,  __NR_getuid,
    __NR_geteuid,    __NR_getgid,     __NR_getegid,    __NR_uname,  __NR_clock_nanosleep,
    __NR_nanosleep,  __NR_fallocate,  __NR_fchmod,     __NR_fchown, __NR_mkdirat,
    __NR_renameat,   __NR_statfs,     __NR_fstatfs,
#ifdef __NR_open
    __NR_open,       __NR_stat,       __NR_lstat,      __NR_access, __NR_readlink,
    __NR_unlink,     __NR_mkdir,      __NR_rename,     __NR_rmdir,
#endif
#ifdef __NR_faccessat2
    __NR_faccessat2,
#endif
};

/* A service keeps what it needs by being denied only what it never does. */
static const int service_denied[] = {
    __NR_execve,
    __NR_execveat,
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_mount,
    __NR_umount2,
    __NR_pivot_root,
    __NR_chroot,
    __NR_unshare,
    __NR_setns,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_userfaultfd,
    __NR_keyctl,
    __NR_add_key,
    __NR_request_key,
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_kexec_load,
    __NR_reboot,
    __NR_swapon,
    __NR_swapoff,
    __NR_acct,
    __NR_quotactl,
    __NR_open_by_handle_at,
    __NR_io_uring_setup, /* its operations pass no filter */
#ifdef __NR_fork
    __NR_fork,
    __NR_vfork,
#endif
};

enum { PROGRAM_MAX = 256 };

/* Both architectures are little endian: the low half of a 64-bit argument comes first. */
#define ARG_LOW(n) (offsetof(struct seccomp_data, args) + 8 * (n))

typedef struct program {
	struct sock_filter code[PROGRAM_MAX];
	unsigned short n;
} program;

static void emit(program *p, unsigned short op, unsigned char jt, unsigned char jf, uint32_t k)
{
	if (p->n < PROGRAM_MAX)
		p->code[p->n++] = (struct sock_filter){op, jt, jf, k};
}

static void on_calls(program *p, const int *calls, size_t n, uint32_t action)
{
	for (size_t i = 0; i < n; i++) {
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)calls[i]);
		emit(p, BPF_RET | BPF_K, 0, 0, action);
	}
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Calls of a service that are refused by their arguments. The number is loaded. */
static void service_arguments(program *p, uint32_t refuse)
{
#ifdef __x86_64__
	/* the same calls under the numbers of x32 */
	emit(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000u);
	emit(p, BPF_RET | BPF_K, 0, 0, refuse);
#endif
	/* its flags are out of reach: the C library falls back to clone() */
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, __NR_clone3);
	emit(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS);
	/* a process or namespace of its own, where only threads are needed */
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, __NR_clone);
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, ARG_LOW(0));
	emit(p, BPF_JMP | BPF_JSET | BPF_K, 0, 1, 0x10000u /* CLONE_THREAD */);
	emit(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
	emit(p, BPF_RET | BPF_K, 0, 0, refuse);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, __NR_socket);
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, ARG_LOW(0));
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 1 /* AF_UNIX */);
	emit(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
	emit(p, BPF_RET | BPF_K, 0, 0, refuse);
}

static bool seccomp(sw_self_profile profile)
{
	program p = {.n = 0};
	uint32_t refuse = SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA);
	emit(&p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
	emit(&p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCH);
	emit(&p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
	emit(&p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
	if (profile == SW_SELF_SERVICE) {
		on_calls(&p, service_denied, COUNT(service_denied), refuse);
		service_arguments(&p, refuse);
		emit(&p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
	} else {
		on_calls(&p, pure_calls, COUNT(pure_calls), SECCOMP_RET_ALLOW);
		if (profile == SW_SELF_READER)
			on_calls(&p, reader_calls, COUNT(reader_calls), SECCOMP_RET_ALLOW);
		emit(&p, BPF_RET | BPF_K, 0, 0, refuse);
	}
	if (p.n == PROGRAM_MAX)
		return false;
	struct sock_fprog prog = {.len = p.n, .filter = p.code};
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}
#else
static bool seccomp(sw_self_profile profile)
{
	(void)profile;
	return false;
}
#endif

sw_self_result sw_self_sandbox_paths(sw_self_profile profile, const sw_self_path *paths, size_t n)
{
	sw_self_result r = {false, false};
#ifdef SW_NO_SELF_SANDBOX /* run-times of sanitizers and coverage need the system until the end */
	(void)profile, (void)paths, (void)n;
	return r;
#endif
	const char *off = getenv("SANDWITNESS_NO_SELF_SANDBOX");
	if ((off && off[0] && strcmp(off, "0") != 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return r;
	r.landlock = landlock(profile, paths, n);
	r.seccomp = seccomp(profile);
	return r;
}

sw_self_result sw_self_sandbox(sw_self_profile profile, const char *const *readable,
                               const char *const *writable)
{
	sw_self_path paths[SELF_PATHS_MAX];
	size_t n = 0;
	for (size_t i = 0; readable && readable[i] && n < SELF_PATHS_MAX; i++)
		paths[n++] = (sw_self_path){readable[i], SW_SELF_READ};
	for (size_t i = 0; writable && writable[i] && n < SELF_PATHS_MAX; i++)
		paths[n++] = (sw_self_path){writable[i], SW_SELF_WRITE};
	return sw_self_sandbox_paths(profile, paths, n);
}
