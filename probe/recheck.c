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

/* Only names of the backends table become file names. */
static char *note_file(const char *state_dir, const char *backend)
{
	char *dir = pr_backend_find(backend) ? folder(state_dir) : NULL, *z = NULL;
	if (dir && asprintf(&z, "%s/%s", dir, backend) < 0)
		z = NULL;
	free(dir);
	return z;
}

static bool plain(const char *z, size_t max)
{
	size_t n = strlen(z);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)z[i] < 0x20 || (unsigned char)z[i] > 0x7e)
			return false;
	return n <= max;
}

int sw_probe_note_failure(const char *state_dir, const char *backend, const char *cause,
                          const char *invocation, sw_error *err)
{
	char *dir = folder(state_dir), *file = note_file(state_dir, backend), *temp = NULL;
	char now[40], text[NOTE_MAX];
	int rc = SW_OK;
	if (!file) { /* a backend that no probe knows: nothing to probe afresh */
		free(dir);
		return SW_OK;
	}
	sw_time_format(sw_now_ns(), now);
	cause = cause && plain(cause, 64) ? cause : "unknown";
	invocation = invocation && plain(invocation, 64) ? invocation : "";
	int n = snprintf(text, sizeof(text), "%s %s %s\n", now, cause, invocation);
	if (asprintf(&temp, "%s.%ld.new", file, (long)getpid()) < 0)
		temp = NULL;
	if (!dir || !temp)
		rc = sw_error_set(err, SW_ENOMEM, "out of memory");
	else if (!(rc = sw_mkdirs(dir, 0700, err))) {
		int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
		bool ok = fd >= 0 && !sw_write_all(fd, text, (size_t)n);
		if (fd >= 0)
			ok = !close(fd) && ok;
		if (!ok || rename(temp, file)) {
			rc = sw_error_set(err, SW_EIO, "the runner failure cannot be noted: %s",
			                  strerror(errno));
			if (err)
				sw_error_more(err, file, NULL, NULL);
			unlink(temp);
		}
	}
	free(temp);
	free(file);
	free(dir);
	return rc;
}

bool pr_recheck_pending(const char *state_dir, const char *backend, char *why, size_t n)
{
	char *file = note_file(state_dir, backend), text[NOTE_MAX];
	struct stat st;
	int fd = file ? open(file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK) : -1;
	ssize_t got = -1;
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		got = read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	free(file);
	if (got < 0)
		return false;
	text[got] = '\0';
	text[strcspn(text, "\n")] = '\0';
	char at[40] = "", cause[65] = "", invocation[65] = "";
	if (!plain(text, NOTE_MAX) || sscanf(text, "%39s %64s %64s", at, cause, invocation) < 1)
		snprintf(why, n, "a run ended in runner_failed");
	else
		snprintf(why, n, "a run ended in runner_failed at %s%s%s%s%s", at,
		         cause[0] ? ", cause " : "", cause, invocation[0] ? ", invocation " : "",
		         invocation);
	return true;
}

void pr_recheck_clear(const char *state_dir, const char *backend)
{
	char *file = note_file(state_dir, backend);
	if (file)
		unlink(file);
	free(file);
}
