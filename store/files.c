/*
 * files.c - what lies under the names of a trail: made with the right modes, refused where
 * it is no file, and noticed where it is another one than it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "store_int.h"

int st_not_regular(const char *path, mode_t mode, const char *what, sw_error *err)
{
	const char *kind = S_ISFIFO(mode)   ? "it is a pipe"
	                   : S_ISDIR(mode)  ? "it is a folder"
	                   : S_ISSOCK(mode) ? "it is a socket"
	                                    : "it is a device";
	return st_err(err, SW_EIO, path, kind,
	              "a regular file is expected: name one, or move this away", "%s", what);
}

int st_regular(const char *path, const char *what, sw_error *err)
{
	struct stat st;
	if (stat(path, &st) != 0 || S_ISREG(st.st_mode))
		return 0;
	return st_not_regular(path, st.st_mode, what, err);
}

static const char *const suffixes[3] = {"", "-wal", "-shm"};

/* SQLite opens what it finds under these names, and would wait at a pipe for ever. */
int st_check_kinds(const char *path, sw_error *err)
{
	static const char *const ends[] = {"", "-journal", "-wal", "-shm", ".lock"};
	int code = 0;
	for (size_t i = 0; code == 0 && i < sizeof ends / sizeof *ends; i++) {
		char p[4200];
		snprintf(p, sizeof p, "%s%s", path, ends[i]);
		code = st_regular(p, "the audit trail cannot be opened", err);
	}
	return code;
}

void st_note_files(sw_store *s)
{
	for (int i = 0; i < 3; i++) {
		char *p = sqlite3_mprintf("%s%s", s->path, suffixes[i]);
		struct stat st;
		if (p && !s->have_ino[i] && stat(p, &st) == 0) {
			s->dev[i] = st.st_dev;
			s->ino[i] = st.st_ino;
			s->have_ino[i] = true;
		}
		sqlite3_free(p);
	}
}

int st_check_file(sw_store *s, bool after, sw_error *err)
{
	for (int i = 0; i < 3; i++) {
		char p[4200];
		struct stat st;
		if (!s->have_ino[i])
			continue;
		snprintf(p, sizeof p, "%s%s", s->path, suffixes[i]);
		bool gone = stat(p, &st) != 0;
		if (!gone && st.st_dev == s->dev[i] && st.st_ino == s->ino[i])
			continue;
		s->broken = true;
		sw_error_set(err, SW_EIO, "the audit trail was %s under the writer",
		             gone ? "removed" : "replaced");
		sw_error_more(
		    err, p,
		    after ? "outcome unknown: the record went to the file that was there before"
		          : "nothing was recorded",
		    "find out who did it; open the trail again to start from the file that is "
		    "there");
		return SW_EIO;
	}
	return 0;
}

/* Folder 0700 and file 0600, made by us before SQLite could make them wider. */
int st_make_file(sw_store *s, sw_error *err)
{
	char *slash = strrchr(s->path, '/');
	if (slash && slash != s->path) {
		*slash = 0;
		int code = access(s->path, F_OK) == 0 ? 0 : sw_mkdirs(s->path, 0700, err);
		*slash = '/';
		if (code != 0)
			return code;
	}
	int fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno == EEXIST)
		return 0;
	st_err(err, SW_EIO, s->path, strerror(errno), "give another path with --db",
	       "cannot create the audit trail");
	return SW_EIO;
}

/* A trail on a read-only medium: nobody writes there, so the file alone is it. */
bool st_frozen(const char *path)
{
	char wal[4200], dir[4200];
	struct stat st;
	snprintf(wal, sizeof wal, "%s-wal", path);
	snprintf(dir, sizeof dir, "%s", path);
	char *slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = 0;
	return access(slash ? dir : ".", W_OK) != 0 && (stat(wal, &st) != 0 || st.st_size == 0);
}
