/*
 * recheck.c - runner failures of real runs, noted for the next status.
 *
 * One small file for each backend in STATE/recheck/, mode 0600 in a folder of mode 0700,
 * written beside and renamed. What is read back is used as text for people and as a
 * reason to probe, nothing more; a file that is not this user's is ignored.
 */
#include "probe_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTE_MAX 1024

static char *folder(const char *state_dir)
{
	if (!state_dir)
		return sw_xdg_path("XDG_STATE_HOME", "recheck");
	char *z = NULL;
	return asprintf(&z, "%s/recheck", state_dir) < 0 ? NULL : z;
}

/*
 * Commands that ran before may have written where the folder lies. It counts only if it is a
 * folder, ours, and no other's to write; a link in its place is not followed. Else whatever it
 * led to would be read as notes, replaced or removed.
 */
static int open_folder(const char *state_dir, bool make, sw_error *err)
{
	char *dir = folder(state_dir);
	struct stat st;
	int fd = SW_ENOMEM;
	if (!dir)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	if (!make || !(fd = sw_mkdirs(dir, 0700, err))) {
		fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			fd = sw_error_set(err, SW_EIO, "runner failures cannot be noted: %s",
			                  strerror(errno));
		else if (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & 022)) {
			close(fd);
			fd = sw_error_set(err, SW_EIO,
			                  "runner failures cannot be noted: the folder is not this "
			                  "user's alone");
		}
		if (fd < 0 && err)
			sw_error_more(err, dir, NULL, NULL);
	}
	free(dir);
	return fd;
}

int sw_probe_notes_open(const char *state_dir, sw_error *err)
{
	return open_folder(state_dir, true, err);
}

static bool plain(const char *z, size_t max)
{
	size_t n = strlen(z);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)z[i] < 0x20 || (unsigned char)z[i] > 0x7e)
			return false;
	return n <= max;
}

int sw_probe_note_failure(int notes, const char *backend, const char *cause, const char *invocation,
                          sw_error *err)
{
	char now[40], text[NOTE_MAX], temp[37];
	if (notes < 0 || !pr_backend_find(backend)) /* no probe knows it: nothing to probe afresh */
		return SW_OK;
	sw_time_format(sw_now_ns(), now);
	sw_uuid7(temp);
	cause = cause && plain(cause, 64) ? cause : "unknown";
	invocation = invocation && plain(invocation, 64) ? invocation : "";
	int n = snprintf(text, sizeof(text), "%s %s %s\n", now, cause, invocation);
	/* the command that ran may write here too: a new file or none */
	int fd = openat(notes, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool ok = fd >= 0 && !sw_write_all(fd, text, (size_t)n);
	if (fd >= 0)
		ok = !close(fd) && ok;
	if (ok && !renameat(notes, temp, notes, backend))
		return SW_OK;
	int rc =
	    sw_error_set(err, SW_EIO, "the runner failure cannot be noted: %s", strerror(errno));
	if (fd >= 0)
		unlinkat(notes, temp, 0);
	return rc;
}

int pr_recheck_pending(const char *state_dir, const char *backend, char *why, size_t n)
{
	char text[NOTE_MAX];
	struct stat st;
	int notes = open_folder(state_dir, false, NULL);
	if (notes == SW_ENOMEM)
		return SW_ENOMEM;
	int fd =
	    notes < 0 ? -1 : openat(notes, backend, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t got = -1;
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		got = read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (notes >= 0)
		close(notes);
	if (got < 0)
		return 0;
	text[got] = '\0';
	text[strcspn(text, "\n")] = '\0';
	char at[40] = "", cause[65] = "", invocation[65] = "";
	if (!plain(text, NOTE_MAX) || sscanf(text, "%39s %64s %64s", at, cause, invocation) < 1)
		snprintf(why, n, "a run ended in runner_failed");
	else
		snprintf(why, n, "a run ended in runner_failed at %s%s%s%s%s", at,
		         cause[0] ? ", cause " : "", cause, invocation[0] ? ", invocation " : "",
		         invocation);
	return 1;
}

void pr_recheck_clear(const char *state_dir, const char *backend)
{
	int notes = open_folder(state_dir, false, NULL);
	if (notes < 0)
		return;
	unlinkat(notes, backend, 0);
	close(notes);
}
