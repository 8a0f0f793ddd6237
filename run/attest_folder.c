/*
 * The file in which a runner leaves its record, and what happened to it meanwhile. The
 * command may reach the folder (root in a container that has /tmp), so neither the file's
 * absence nor its content counts by itself: inotify tells whether anybody wrote in the
 * folder at all, and whether it was one writer, once. The kernel keeps these events; who
 * removes the file does not remove them.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run_internal.h"

#define EVENTS                                                                          \
	(IN_OPEN | IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | \
	 IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)
#define RUINED (IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF)

/* A folder that only this user can enter, for the runner to write its record into. */
static bool own_folder(run_attest *a, const char *leaf)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	if (!base || base[0] != '/' || stat(base, &st) || st.st_uid != geteuid() ||
	    strlen(base) > 80)
		base = "/tmp";
	snprintf(a->dir, sizeof a->dir, "%s/sandwitness-run.XXXXXX", base);
	if (!mkdtemp(a->dir)) {
		a->dir[0] = '\0';
		return false;
	}
	a->record_leaf = leaf;
	snprintf(a->record, sizeof a->record, "%s/%s", a->dir, leaf);
	/* whatever stands under that name later: this is the folder */
	a->dir_fd = open(a->dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return a->dir_fd >= 0;
}

static bool watch_folder(run_attest *a, const char *folder)
{
	a->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (a->fd >= 0 && inotify_add_watch(a->fd, folder, EVENTS | IN_ONLYDIR) < 0) {
		close(a->fd);
		a->fd = -1;
	}
	return a->fd >= 0;
}

const char *run_record_own(run_attest *a, const char *leaf)
{
	if (!own_folder(a, leaf))
		return "no folder for the record could be made";
	return watch_folder(a, a->dir) ? NULL : "the record's folder cannot be watched";
}

void run_record_remove(run_attest *a)
{
	if (a->dir_fd >= 0) {
		unlinkat(a->dir_fd, a->record_leaf, 0);
		close(a->dir_fd);
		a->dir_fd = -1;
	}
	if (a->dir[0])
		rmdir(a->dir);
	a->dir[0] = '\0';
}

/*
 * The caller's own record file. Where it lies the command may write as well, and so may
 * others before; it serves only to find the container that is to be ended.
 */
void run_record_callers(run_attest *a, const char *path)
{
	char folder[sizeof a->record];
	struct stat st;
	const char *cwd = path[0] != '/' && a->cwd ? a->cwd : "";
	a->callers_record = true;
	if ((size_t)snprintf(a->record, sizeof a->record, "%s%s%s", cwd, *cwd ? "/" : "", path) >=
	        sizeof a->record ||
	    lstat(a->record, &st) == 0) { /* an old one: whoever it names is not this run's */
		a->record[0] = '\0';
		return;
	}
	snprintf(folder, sizeof folder, "%s", a->record);
	char *slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder ? 1 : 0] = '\0';
	watch_folder(a, slash ? folder : ".");
}

/* The first word of the record file; empty: absent, empty or no plain file. */
static void read_word(const run_attest *a, char *out, size_t n)
{
	char path[sizeof a->record], *text;
	size_t len;
	out[0] = '\0';
	if (a->dir_fd >= 0)
		snprintf(path, sizeof path, "/proc/self/fd/%d/%s", a->dir_fd, a->record_leaf);
	else
		snprintf(path, sizeof path, "%s", a->record);
	if (!path[0] || sw_read_plain_file(path, 4096, &text, &len, NULL))
		return;
	size_t k = 0;
	while (k < len && k + 1 < n && isalnum((unsigned char)text[k])) {
		out[k] = text[k];
		k++;
	}
	out[k] = '\0';
	free(text);
}

/*
 * What one writer does, once: make the file, write, close, perhaps rename it into place.
 * Anything else may have brought other content: a second file, writer or close, a file that
 * came from another folder. True: there may be something to read.
 */
static bool take_event(run_attest *a, const struct inotify_event *e)
{
	uint32_t mask = e->mask;
	bool moved_in = (mask & IN_MOVED_TO) && (e->cookie != a->record_cookie);
	if (mask & RUINED)
		a->record_touched = a->record_written = true;
	if (mask & (IN_MODIFY | IN_MOVED_TO))
		a->record_written = true;
	if ((mask & IN_DELETE) || moved_in || ((mask & IN_MODIFY) && a->record_closes))
		a->record_touched = true;
	if ((mask & IN_CREATE) && a->record_creates++)
		a->record_touched = true;
	if ((mask & IN_CLOSE_WRITE) && a->record_closes++)
		a->record_touched = true;
	a->record_cookie = mask & IN_MOVED_FROM ? e->cookie : 0;
	return mask & (IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO);
}

void run_record_readable(run_attest *a)
{
	char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;
	bool news = false;
	while (a->fd >= 0 &&
	       ((n = read(a->fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)))
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(bytes + at);
			news |= take_event(a, e);
			at += (ssize_t)(sizeof *e + e->len);
		}
	/* the first word that was ever there: the runner writes it before it starts the command */
	if (news && !a->id[0]) /* not without news: our own opening is an event as well */
		read_word(a, a->id, sizeof a->id);
}

void run_record_look(run_attest *a)
{
	run_record_readable(a);
	if (!a->id[0])
		read_word(a, a->id, sizeof a->id);
}

bool run_record_never_written(const run_attest *a)
{
	return a->fd >= 0 && !a->callers_record && !a->record_written && !a->id[0];
}

bool run_record_untouched(const run_attest *a)
{
	return a->fd >= 0 && !a->callers_record && !a->record_touched;
}
