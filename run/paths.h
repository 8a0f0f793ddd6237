/*
 * paths.h - what a path of the host gives away, by its text alone.
 *
 * Pure: nothing is looked up; symbolic links are the caller's business (it passes
 * canonical paths where it can). All paths are absolute; functions accept any text.
 */
#ifndef SW_RUN_PATHS_H
#define SW_RUN_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#define SW_PATH_MAX 4096

/*
 * Lexical form without "//", "." and "..", no slash at the end but for "/". Relative
 * paths are put under `base` (NULL: refused). False: relative without base, empty, or
 * longer than n - 1.
 */
bool sw_path_normal(const char *path, const char *base, char *out, size_t n);
/* `inner` is `outer` or lies below it; both normal. */
bool sw_path_covers(const char *outer, const char *inner);
/* Number of components: "/" 0, "/usr" 1. */
size_t sw_path_depth(const char *path);

/*
 * True where reading `path` and everything below reads private files of people on this
 * host: the root folder, /home, /root, a whole home, a folder of credentials in a home
 * (.ssh, .aws, .gnupg, .config, ...), the real `home` (NULL: not known), and links of
 * /proc that lead out of any root.
 */
bool sw_path_private(const char *path, const char *home);
/* Links of the kernel that leave any root: /proc/PID/root, /proc/PID/cwd, /proc/PID/fd. */
bool sw_path_proc_link(const char *path);
/* True where writing there changes the system or other users: "/", /etc, /usr, /home, ... */
bool sw_path_system(const char *path, const char *home);

#endif
