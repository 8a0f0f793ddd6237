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
	SW_SELF_SERVICE /* and sockets and threads, but no program is started */
} sw_self_profile;

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

#endif
