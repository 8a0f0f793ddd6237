/*
 * landlock.h - the built-in Landlock launcher.
 *
 * Landlock restricts files (from ABI 1), truncation (3), TCP (4), device ioctls (5),
 * abstract sockets and signals (6). Below ABI 3 a file could be truncated anywhere: such
 * kernels are refused rather than half-served. UDP cannot be restricted at any ABI, so
 * the network is never claimed.
 *
 * Linux only; elsewhere every function says SW_EUNSUPPORTED.
 */
#ifndef SW_RUN_LANDLOCK_H
#define SW_RUN_LANDLOCK_H

#define SW_LANDLOCK_ABI_MIN 3
#define SW_LANDLOCK_PREFIX "sandwitness-landlock: " /* of every message, at column 0 */
#define SW_LANDLOCK_EXIT_SETUP 125  /* the sandbox could not be built; nothing was executed */
#define SW_LANDLOCK_EXIT_EXEC 126   /* built, the command could not be executed */
#define SW_LANDLOCK_EXIT_ABSENT 127 /* built, there is no such command */

/* The kernel's ABI, 1 and up; -ENOSYS: not in the kernel; -EOPNOTSUPP: not switched on. */
int sw_landlock_abi(void);

/*
 * The launcher: argv[0] is ignored, then
 *   --ro P, --ro-try P     P and all below may be read and executed (-try: if it exists)
 *   --rw P, --rw-try P     P and all below may be changed too
 *   --dev-try P            a device: read, write, ioctl
 *   --hide P               P below a --ro folder stays closed
 *   --deny-tcp             no TCP connect or bind, from ABI 4 (defence in depth)
 *   --clearenv, --setenv NAME VALUE, --chdir DIR, --new-session, --die-with-parent
 *   --exec-fd N            where to report the start: "ready\n" once the sandbox stands,
 *                          "failed setup|exec ERRNO\n" where something fails. Close-on-exec:
 *                          "ready\n" and then the end of the pipe means the command runs.
 *   -- ARGV
 * Everything that is not granted is denied. Sets no_new_privs, drops all capabilities,
 * marks inherited descriptors above 2 close-on-exec. Returns only on failure, with one
 * of the exit statuses above, the message on stderr.
 */
int sw_landlock_main(int argc, char **argv);

#endif
