/*
 * The calls that a sandbox refuses, which errors count, and the filter that stops only
 * these. Reading, writing and stat are left out: they are many. A question (access) that is
 * answered with "no" has refused nothing; whether something may be written is watched all
 * the same, for its EROFS is true.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "trace.h"

#define W SW_OPERATION_WRITE
#define R SW_OPERATION_READ
#define N SW_OPERATION_NETWORK
#define X SW_OPERATION_EXEC
#define P SW_OPERATION_PROCESS
#define V SW_OPERATION_PRIVILEGE
#define NONE -1
#define PATH_CALL(name, kind, op, dir, path, extra)                                                \
	{                                                                                          \
		SYS_##name, #name, kind, op, dir, path, NONE, NONE, extra, NONE, CALL_ALWAYS, 0, 0 \
	}
#define TWO_PATHS(name, kind, dir, path, dir2, path2)                                             \
	{                                                                                         \
		SYS_##name, #name, kind, W, dir, path, dir2, path2, NONE, NONE, CALL_ALWAYS, 0, 0 \
	}
#define CAP_CALL(name, cap)                                                              \
	{                                                                                \
		SYS_##name, #name, CALL_PRIVILEGE, V, NONE, NONE, NONE, NONE, NONE, cap, \
		    CALL_ALWAYS, 0, 0                                                    \
	}
/* access() with W_OK */
#define ASKS(name, dir, path, mode)                                                           \
	{                                                                                     \
		SYS_##name, #name, CALL_ASK, W, dir, path, NONE, NONE, NONE, NONE, CALL_BITS, \
		    mode, W_OK                                                                \
	}
/* ioctl() on an open file */
#define CHANGES(request)                                                                           \
	{                                                                                          \
		SYS_ioctl, "ioctl", CALL_FLAGS, W, 0, NONE, NONE, NONE, NONE, NONE, CALL_EQUAL, 1, \
		    request                                                                        \
	}

static const run_call calls[] = {
    PATH_CALL(openat, CALL_OPEN, W, 0, 1, 2),
#ifdef SYS_openat2
    PATH_CALL(openat2, CALL_OPENAT2, W, 0, 1, 2),
#endif
    PATH_CALL(mkdirat, CALL_MAKE, W, 0, 1, NONE),
    PATH_CALL(mknodat, CALL_MKNOD, W, 0, 1, 2),
    PATH_CALL(unlinkat, CALL_REMOVE, W, 0, 1, 2),
    PATH_CALL(symlinkat, CALL_MAKE, W, 1, 2, NONE),
    TWO_PATHS(linkat, CALL_LINK, 0, 1, 2, 3),
#ifdef SYS_renameat
    TWO_PATHS(renameat, CALL_RENAME, 0, 1, 2, 3),
#endif
    TWO_PATHS(renameat2, CALL_RENAME, 0, 1, 2, 3),
    PATH_CALL(fchmodat, CALL_CHMOD, W, 0, 1, NONE),
#ifdef SYS_fchmodat2
    PATH_CALL(fchmodat2, CALL_CHMOD, W, 0, 1, NONE),
#endif
    PATH_CALL(fchmod, CALL_CHMOD, W, 0, NONE, NONE),
    PATH_CALL(fchownat, CALL_CHOWN, W, 0, 1, 2),
    PATH_CALL(fchown, CALL_CHOWN, W, 0, NONE, 1),
    PATH_CALL(utimensat, CALL_TIMES, W, 0, 1, 2),
    PATH_CALL(truncate, CALL_WRITE_PATH, W, NONE, 0, NONE),
    PATH_CALL(setxattr, CALL_XATTR, W, NONE, 0, NONE),
    PATH_CALL(lsetxattr, CALL_XATTR, W, NONE, 0, NONE),
    PATH_CALL(fsetxattr, CALL_XATTR, W, 0, NONE, NONE),
    PATH_CALL(removexattr, CALL_XATTR, W, NONE, 0, NONE),
    PATH_CALL(lremovexattr, CALL_XATTR, W, NONE, 0, NONE),
    PATH_CALL(fremovexattr, CALL_XATTR, W, 0, NONE, NONE),
    CHANGES(FS_IOC_SETFLAGS),
    CHANGES(FS_IOC_FSSETXATTR),
    ASKS(faccessat, 0, 1, 2),
#ifdef SYS_faccessat2
    ASKS(faccessat2, 0, 1, 2),
#endif
    PATH_CALL(execve, CALL_EXEC, X, NONE, 0, NONE),
    PATH_CALL(execveat, CALL_EXEC, X, 0, 1, NONE),
#ifdef SYS_open
    ASKS(access, NONE, 0, 1),
    PATH_CALL(open, CALL_OPEN, W, NONE, 0, 1),
    PATH_CALL(creat, CALL_OPEN, W, NONE, 0, NONE),
    PATH_CALL(mkdir, CALL_MAKE, W, NONE, 0, NONE),
    PATH_CALL(mknod, CALL_MKNOD, W, NONE, 0, 1),
    PATH_CALL(unlink, CALL_REMOVE, W, NONE, 0, NONE),
    PATH_CALL(rmdir, CALL_RMDIR, W, NONE, 0, NONE),
    PATH_CALL(symlink, CALL_MAKE, W, NONE, 1, NONE),
    TWO_PATHS(link, CALL_LINK, NONE, 0, NONE, 1),
    TWO_PATHS(rename, CALL_RENAME, NONE, 0, NONE, 1),
    PATH_CALL(chmod, CALL_CHMOD, W, NONE, 0, NONE),
    PATH_CALL(chown, CALL_CHOWN, W, NONE, 0, 1),
    PATH_CALL(lchown, CALL_CHOWN, W, NONE, 0, 1),
    PATH_CALL(utime, CALL_TIMES, W, NONE, 0, 1),
    PATH_CALL(utimes, CALL_TIMES, W, NONE, 0, 1),
    PATH_CALL(futimesat, CALL_TIMES, W, 0, 1, 2),
#endif
    PATH_CALL(connect, CALL_CONNECT, N, NONE, 1, 2),
    PATH_CALL(sendto, CALL_CONNECT, N, NONE, 4, 5),
    PATH_CALL(sendmsg, CALL_CONNECT, N, NONE, 1, NONE),
    PATH_CALL(sendmmsg, CALL_CONNECT, N, NONE, 1, NONE),
    PATH_CALL(bind, CALL_BIND, N, NONE, 1, 2),
    PATH_CALL(socket, CALL_SOCKET, N, NONE, NONE, NONE),
    PATH_CALL(unshare, CALL_UNSHARE, V, NONE, NONE, 0),
    {SYS_clone, "clone", CALL_UNSHARE, V, NONE, NONE, NONE, NONE, 0, NONE, CALL_BITS, 0,
     RUN_TRACE_NAMESPACES},
    PATH_CALL(ptrace, CALL_TRACER, V, NONE, NONE, NONE),
    CAP_CALL(mount, CAP_SYS_ADMIN),
    CAP_CALL(umount2, CAP_SYS_ADMIN),
#ifdef SYS_fsopen
    CAP_CALL(fsopen, CAP_SYS_ADMIN),
    CAP_CALL(fspick, CAP_SYS_ADMIN),
    CAP_CALL(fsmount, CAP_SYS_ADMIN),
    CAP_CALL(move_mount, CAP_SYS_ADMIN),
#endif
#ifdef SYS_mount_setattr
    CAP_CALL(mount_setattr, CAP_SYS_ADMIN),
#endif
    CAP_CALL(pivot_root, CAP_SYS_ADMIN),
    CAP_CALL(setns, CAP_SYS_ADMIN),
    CAP_CALL(sethostname, CAP_SYS_ADMIN),
    CAP_CALL(setdomainname, CAP_SYS_ADMIN),
    CAP_CALL(swapon, CAP_SYS_ADMIN),
    CAP_CALL(swapoff, CAP_SYS_ADMIN),
    CAP_CALL(chroot, CAP_SYS_CHROOT),
    CAP_CALL(reboot, CAP_SYS_BOOT),
    CAP_CALL(init_module, CAP_SYS_MODULE),
    CAP_CALL(finit_module, CAP_SYS_MODULE),
    CAP_CALL(delete_module, CAP_SYS_MODULE),
    CAP_CALL(settimeofday, CAP_SYS_TIME),
    CAP_CALL(clock_settime, CAP_SYS_TIME),
    CAP_CALL(acct, CAP_SYS_PACCT),
    CAP_CALL(setgroups, CAP_SETGID),
    CAP_CALL(setresuid, CAP_SETUID),
    CAP_CALL(setresgid, CAP_SETGID),
    CAP_CALL(setreuid, CAP_SETUID),
    CAP_CALL(setregid, CAP_SETGID),
    CAP_CALL(setuid, CAP_SETUID),
    CAP_CALL(setgid, CAP_SETGID),
    CAP_CALL(setpriority, CAP_SYS_NICE),
    CAP_CALL(sched_setscheduler, CAP_SYS_NICE),
    CAP_CALL(bpf, CAP_SYS_ADMIN),
    CAP_CALL(syslog, CAP_SYSLOG),
};

#define N_CALLS (sizeof calls / sizeof calls[0])

size_t run_calls(const run_call **out)
{
	*out = calls;
	return N_CALLS;
}

const run_call *run_call_find(int nr)
{
	for (size_t i = 0; i < N_CALLS; i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

const run_call *run_call_of(int nr, const uint64_t args[6])
{
	for (size_t i = 0; i < N_CALLS; i++) {
		const run_call *c = &calls[i];
		uint32_t word = (uint32_t)args[c->arg];
		if (c->nr == nr &&
		    (c->when == CALL_ALWAYS || (c->when == CALL_BITS && (word & c->value)) ||
		     (c->when == CALL_EQUAL && word == c->value)))
			return c;
	}
	return NULL;
}

bool run_call_refusal(const run_call *c, int error)
{
	switch (error) {
	case EROFS:
		return true;
	case EACCES:
		/* the capability that is missing says EPERM; setpriority() alone says this */
		return c->kind != CALL_ASK && c->kind != CALL_FLAGS &&
		       (c->kind != CALL_PRIVILEGE || c->capability == CAP_SYS_NICE);
	case EPERM:
		return c->kind != CALL_ASK;
	case ENETUNREACH:
	case ENETDOWN:
	case EHOSTUNREACH:
		return c->kind == CALL_CONNECT;
	case EADDRNOTAVAIL: /* no interface has it, not even loopback */
		return c->kind == CALL_CONNECT || c->kind == CALL_BIND;
	case EBUSY: /* something is mounted over it */
		return c->kind == CALL_RENAME || c->kind == CALL_REMOVE || c->kind == CALL_RMDIR;
	case EXDEV: /* Landlock's answer to a move between folders */
		return c->kind == CALL_RENAME || c->kind == CALL_LINK;
	case EAFNOSUPPORT:
		return c->kind == CALL_SOCKET;
	case EINVAL: /* a user that the namespace does not know */
		return c->kind == CALL_CHOWN ||
		       (c->kind == CALL_PRIVILEGE &&
		        (c->capability == CAP_SETUID || c->capability == CAP_SETGID));
	case ENOSPC: /* the limit of user namespaces */
	case EUSERS:
		return c->kind == CALL_UNSHARE;
	case ENOSYS:
		return true;
	default:
		return false;
	}
}

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#define NATIVE_ARCH 0
#endif

/* x32: numbers with this bit, under the same architecture. */
#define OTHER_ABI 0x40000000

bool run_trace_unseen(uint32_t arch, uint64_t nr)
{
#ifdef SYS_io_uring_setup
	if (nr == SYS_io_uring_setup)
		return true;
#endif
	return arch != NATIVE_ARCH || nr >= OTHER_ABI;
}

bool run_trace_sets_filter(int nr, const uint64_t args[6])
{
	return nr == SYS_seccomp
	           ? args[0] == SECCOMP_SET_MODE_FILTER
	           : nr == SYS_prctl && args[0] == PR_SET_SECCOMP && args[1] == SECCOMP_MODE_FILTER;
}

enum { PART_MAX = 6 };

/* Stops at call `nr`, where its argument says so; adds at most PART_MAX instructions. */
static unsigned short part(struct sock_filter *f, int nr, run_call_when when, int arg,
                           uint32_t value)
{
	const struct sock_filter stop =
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | RUN_TRACE_DATA);
	if (when == CALL_ALWAYS) {
		f[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1);
		f[1] = stop;
		return 2;
	}
	uint16_t test = when == CALL_BITS ? BPF_JSET : BPF_JEQ;
	f[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 4);
	/* the low half: both processors above are little endian */
	f[1] = (struct sock_filter)BPF_STMT(
	    BPF_LD | BPF_W | BPF_ABS,
	    (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)arg));
	f[2] = (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, 0, 1);
	f[3] = stop;
	f[4] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	                                    offsetof(struct seccomp_data, nr));
	return 5;
}

int run_trace_filter(struct sock_fprog *out)
{
	if (NATIVE_ARCH == 0)
		return SW_EUNSUPPORTED;
	struct sock_filter *f = calloc((N_CALLS + 5) * PART_MAX, sizeof *f);
	if (!f)
		return SW_ENOMEM;
	unsigned short n = 0;
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	                                      offsetof(struct seccomp_data, arch));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | RUN_TRACE_DATA);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	                                      offsetof(struct seccomp_data, nr));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, OTHER_ABI, 0, 1);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | RUN_TRACE_DATA);
	for (size_t i = 0; i < N_CALLS; i++)
		n += part(f + n, calls[i].nr, calls[i].when, calls[i].arg, calls[i].value);
#ifdef SYS_io_uring_setup
	n += part(f + n, SYS_io_uring_setup, CALL_ALWAYS, 0, 0);
#endif
	/* what gives a process a filter of its own */
	n += part(f + n, SYS_seccomp, CALL_EQUAL, 0, SECCOMP_SET_MODE_FILTER);
	n += part(f + n, SYS_prctl, CALL_EQUAL, 0, PR_SET_SECCOMP);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	out->len = n;
	out->filter = f;
	return SW_OK;
}

void run_trace_filter_free(struct sock_fprog *p)
{
	free(p->filter);
	p->filter = NULL;
}
