/*
 * The one list of names. C enums, SQL CHECK constraints, JSON values and the
 * documentation are all made from these lists; add a name here and nowhere else.
 * X(SYMBOL, "name"): the name is what users, JSON and SQL see and never changes.
 */
#ifndef SW_NAMES_H
#define SW_NAMES_H

#define SW_VERDICT_LIST(X)               \
	X(OK, "ok")                          \
	X(RUNNER_FAILED, "runner_failed")    \
	X(SANDBOX_DENIED, "sandbox_denied")

/* What a record can hold besides a verdict: refused before anything was spawned. */
#define SW_RECORD_VERDICT_EXTRA_LIST(X)  \
	X(SANDBOX_UNAVAILABLE, "sandbox_unavailable")

#define SW_STAGE_LIST(X)                 \
	X(NONE, "none")                      \
	X(SETUP, "setup")                    \
	X(EXEC, "exec")                      \
	X(LOST, "lost")

#define SW_EVIDENCE_LIST(X)              \
	X(NONE, "none")                      \
	X(EXIT_CODE, "exit_code")            \
	X(ATTESTED, "attested")              \
	X(TEXT, "text")

#define SW_EVIDENCE_SOURCE_LIST(X)       \
	X(NONE, "none")                      \
	X(STATUS_FD, "status-fd")            \
	X(EXEC_PIPE, "exec-pipe")            \
	X(RUNNER_RECORD, "runner-record")    \
	X(KERNEL, "kernel")                  \
	X(CALLER, "caller")

#define SW_KIND_LIST(X)                  \
	X(INFORMATIONAL, "informational")    \
	X(FATAL, "fatal")                    \
	X(DENIAL, "denial")                  \
	X(VETO, "veto")                      \
	X(LIMIT, "limit")                    \
	X(DOWNGRADE, "downgrade")

#define SW_CONFIDENCE_LIST(X)            \
	X(NONE, "none")                      \
	X(WEAK, "weak")                      \
	X(LIKELY, "likely")                  \
	X(CERTAIN, "certain")

#define SW_OPERATION_LIST(X)             \
	X(NONE, "none")                      \
	X(WRITE, "write")                    \
	X(READ, "read")                      \
	X(NETWORK, "network")                \
	X(EXEC, "exec")                      \
	X(PROCESS, "process")                \
	X(DEVICE, "device")                  \
	X(PRIVILEGE, "privilege")

#define SW_LIMIT_LIST(X)                 \
	X(NONE, "none")                      \
	X(MEMORY, "memory")                  \
	X(PROCESSES, "processes")            \
	X(FILE_SIZE, "file_size")            \
	X(CPU_TIME, "cpu_time")              \
	X(DISK, "disk")                      \
	X(OPEN_FILES, "open_files")          \
	X(DEADLINE, "deadline")

#define SW_CERTAINTY_LIST(X)             \
	X(NONE, "none")                      \
	X(POSSIBLE, "possible")              \
	X(LIKELY, "likely")                  \
	X(PROVEN, "proven")

#define SW_MODE_LIST(X)                  \
	X(UNKNOWN, "unknown")                \
	X(READ_ONLY, "read_only")            \
	X(WORKSPACE_WRITE, "workspace_write") \
	X(DANGER_FULL_ACCESS, "danger_full_access")

#define SW_NETWORK_LIST(X)               \
	X(UNKNOWN, "unknown")                \
	X(ALLOWED, "allowed")                \
	X(DENIED, "denied")

#define SW_STARTED_LIST(X)               \
	X(UNKNOWN, "unknown")                \
	X(YES, "yes")                        \
	X(NO, "no")

#define SW_ENFORCEMENT_LIST(X)           \
	X(UNKNOWN, "unknown")                \
	X(FULL, "full")                      \
	X(PARTIAL, "partial")                \
	X(NONE, "none")

#define SW_POSITION_LIST(X)              \
	X(ANYWHERE, "anywhere")              \
	X(FIRST, "first")                    \
	X(LAST, "last")                      \
	X(ALONE, "alone")

#define SW_SCOPE_LIST(X)                 \
	X(COMMAND, "command")                \
	X(ANY, "any")

/* When a denial or limit match decides; WITH needs every listed fact. */
#define SW_DECIDES_LIST(X)               \
	X(YES, "yes")                        \
	X(NO, "no")                          \
	X(NETWORK, "network")                \
	X(WITH, "with")

/* Facts that "decides: {with: [...]}" can ask for; bit N of sw_sig_def.with. */
#define SW_FACT_LIST(X)                                    \
	X(NETWORK_DENIED, "network_denied")                    \
	X(READ_ONLY, "read_only")                              \
	X(WORKSPACE_WRITE, "workspace_write")                  \
	X(OUTSIDE_WRITABLE_ROOTS, "outside_writable_roots")    \
	X(ACCESSIBLE_OUTSIDE, "accessible_outside")

#define SW_GUARANTEE_LIST(X)             \
	X(FS_WRITE, "fs_write")              \
	X(FS_READ, "fs_read")                \
	X(NETWORK, "network")                \
	X(PID, "pid")                        \
	X(IPC, "ipc")                        \
	X(ENV, "env")                        \
	X(SYSCALLS, "syscalls")              \
	X(RESOURCES, "resources")            \
	X(TREE_KILL, "tree_kill")

/* How the effective level is known. */
#define SW_BASIS_LIST(X)                 \
	X(UNKNOWN, "unknown")                \
	X(BUILT, "built")                    \
	X(DERIVED, "derived")                \
	X(DECLARED, "declared")

#define SW_PROBE_RESULT_LIST(X)          \
	X(NOT_PROBED, "not_probed")          \
	X(FULL, "full")                      \
	X(PARTIAL, "partial")                \
	X(UNUSABLE, "unusable")              \
	X(UNKNOWN, "unknown")

/* What was seen and did not decide. */
#define SW_OBSERVATION_LIST(X)                             \
	X(DENIAL_NOT_DECIDING, "denial_not_deciding")          \
	X(DENIAL_AT_EXIT_0, "denial_at_exit_0")                \
	X(DENIAL_VETOED, "denial_vetoed")                      \
	X(DENIAL_BESIDE_FAILURE, "denial_beside_failure")      \
	X(FATAL_NOT_ADMITTED, "fatal_not_admitted")            \
	X(FATAL_AT_EXIT_0, "fatal_at_exit_0")                  \
	X(RUNNER_NOTICE, "runner_notice")                      \
	X(NOT_STARTED_AT_EXIT_0, "not_started_at_exit_0")      \
	X(KERNEL_RECORD, "kernel_record")                      \
	X(TRACED_DENIAL, "traced_denial")                      \
	X(HIDDEN_PATH, "hidden_path")

#define SW_BACKEND_LIST(X)                                 \
	X(NONE, "none")                                        \
	X(BWRAP, "bwrap")                                      \
	X(SEATBELT, "seatbelt")                                \
	X(DOCKER, "docker")                                    \
	X(PODMAN, "podman")                                    \
	X(RUNC, "runc")                                        \
	X(CRUN, "crun")                                        \
	X(GVISOR, "gvisor")                                    \
	X(LANDLOCK, "landlock")                                \
	X(LANDLOCK_RUN, "landlock-run")                        \
	X(LANDRUN, "landrun")                                  \
	X(SETPRIV, "setpriv")                                  \
	X(UNSHARE, "unshare")                                  \
	X(CHROOT, "chroot")                                    \
	X(FIREJAIL, "firejail")                                \
	X(NSJAIL, "nsjail")                                    \
	X(MINIJAIL, "minijail")                                \
	X(SYSTEMD_RUN, "systemd-run")                          \
	X(SYSTEMD_NSPAWN, "systemd-nspawn")                    \
	X(APPTAINER, "apptainer")                              \
	X(LXC, "lxc")                                          \
	X(CTR, "ctr")                                          \
	X(NERDCTL, "nerdctl")                                  \
	X(APPLE_CONTAINER, "apple-container")                  \
	X(SRT, "srt")                                          \
	X(CODEX_LINUX_SANDBOX, "codex-linux-sandbox")          \
	X(CODEX_WINDOWS_SANDBOX, "codex-windows-sandbox")      \
	X(WINDOWS_ACL_RUN, "windows-acl-run")                  \
	X(APPCONTAINER, "appcontainer")                        \
	X(JOB_OBJECT, "job_object")                            \
	X(WSL, "wsl")

#endif
