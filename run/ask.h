/* Questions to the host that may never be answered: asked by somebody else, for a bounded time. */
#ifndef SW_RUN_ASK_H
#define SW_RUN_ASK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Runs `answer` on a copy of the `size` bytes at `question`, in a thread of its own, and copies
 * them back. False after a second, or where there is no memory or thread: the bytes are as they
 * were, and what hangs is left behind. After three of these nobody is asked any more.
 */
bool run_ask(void (*answer)(void *question), void *question, size_t size);
/*
 * The same in a process of its own, without the asker's descriptors: what hangs does not keep the
 * asker from its own end, as a thread would. Not while a tree of processes is watched, which it
 * would be taken for a part of. `answer` may only make system calls (no allocation, no lock).
 */
bool run_ask_apart(void (*answer)(void *question), void *question, size_t size);

#endif
