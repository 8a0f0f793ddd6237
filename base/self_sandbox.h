/*
 * self_sandbox.h - what reads hostile bytes gives up what it does not need.
 *
 * Called once, after everything that must be opened is open, and for good: files
 * outside the paths given, the network, new programs and other processes are out of
 * reach afterwards (Landlock and seccomp, whichever the kernel has). Where neither
 * works the program goes on as it is: confinement is a second wall, not the first.
 * `run`, probes, `preflight` and `corpus capture` never call it: their children would
 * inherit it.
 */
#ifndef SW_SELF_SANDBOX_H
#define SW_SELF_SANDBOX_H

#include "base.h"

typedef enum {
	SW_SELF_PURE,   /* descriptors that are open already, memory, nothing else */
	SW_SELF_READER, /* and files below the paths given */
	SW_SELF_SERVICE /* and threads, and the listening sockets it has; it starts no program,
	                   and opens no connection but on unix sockets */
} sw_self_profile;

typedef enum {
	SW_SELF_READ,
	SW_SELF_WRITE, /* and read, make, remove; never execute */
	SW_SELF_REMOVE /* files in a folder, and nothing else: a socket's own, at the end */
} sw_self_access;

typedef struct sw_self_path {
	const char *path; /* a folder with all below it, or a file; absent ones are passed over */
	sw_self_access access;
} sw_self_path;

typedef struct sw_self_result {
	bool landlock, seccomp; /* what is in force */
} sw_self_result;

/*
 * readable, writable: NULL-terminated lists of folders or files, may be NULL; what
 * does not exist is passed over. SANDWITNESS_NO_SELF_SANDBOX=1 in the environment
 * turns it off as --no-self-sandbox does. Never fails; says what it reached.
 */
sw_self_result sw_self_sandbox(sw_self_profile profile, const char *const *readable,
                               const char *const *writable);
/*
 * The same with each path's own access. Holds for the calling thread and the threads and
 * processes it starts later: call it before there are others.
 */
sw_self_result sw_self_sandbox_paths(sw_self_profile profile, const sw_self_path *paths, size_t n);

#endif
