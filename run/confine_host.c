/* confine_host.c - what the builders want to know of the host; the only part of confine
 * that looks at the file system. */
#include "confine_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void mask_if_readable(cf_list *masks, const char *path)
{
	struct stat st;
	/* A link is left alone: the runner would mount over what it points to. */
	if (lstat(path, &st) || faccessat(AT_FDCWD, path, R_OK, AT_EACCESS))
		return;
	/* What everybody may read is secret only below, and there from all but root. */
	if ((st.st_mode & S_IROTH) && geteuid() != 0)
		return;
	if (S_ISREG(st.st_mode))
		cf_add(masks, path);
	else if (S_ISDIR(st.st_mode))
		cf_addf(masks, "%s/", path);
}

static void host_keys(cf_list *masks)
{
	DIR *d = opendir("/etc/ssh");
	if (!d && errno == ENOMEM)
		masks->error = SW_ENOMEM;
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d)) && masks->n < 64;) {
		size_t n = strlen(e->d_name);
		if (n > 4 && !strncmp(e->d_name, "ssh_host_", 9) &&
		    !strcmp(e->d_name + n - 4, "_key")) {
			char path[320];
			snprintf(path, sizeof(path), "/etc/ssh/%s", e->d_name);
			mask_if_readable(masks, path);
		}
	}
	closedir(d);
}

int sw_confine_host_read(sw_confine_host *out, sw_error *err)
{
	cf_list masks = {0};
	*out = (sw_confine_host){.uid = (long)geteuid(), .gid = (long)getegid()};

	struct passwd pw, *found = NULL;
	char buf[4096], *home = NULL, real[SW_PATH_MAX];
	int lookup = getpwuid_r(geteuid(), &pw, buf, sizeof(buf), &found);
	if (lookup == ENOMEM)
		masks.error = SW_ENOMEM;
	if (!lookup && found)
		home = found->pw_dir;
	if (found && !(out->user = strdup(found->pw_name)))
		masks.error = SW_ENOMEM;
	/* accounts of services name a home that is not there: then $HOME is what there is */
	const char *const homes[] = {home, getenv("HOME")};
	for (size_t i = 0; i < 2 && !out->home; i++)
		if (homes[i] && *homes[i] == '/' && realpath(homes[i], real) &&
		    strcmp(real, "/") != 0 && !(out->home = strdup(real)))
			masks.error =
			    SW_ENOMEM; /* without a home its secrets would not be hidden */
	if (out->home && homes[1] && *homes[1] == '/' && realpath(homes[1], real) &&
	    strcmp(real, "/") != 0 && strcmp(real, out->home) != 0 &&
	    !(out->env_home = strdup(real)))
		masks.error = SW_ENOMEM;

	for (size_t i = 0; i < sw_places_n; i++)
		if (sw_places[i].kind == SW_PLACE_SECRET &&
		    sw_path_covers("/etc", sw_places[i].path))
			mask_if_readable(&masks, sw_places[i].path);
	host_keys(&masks);
	if (masks.error) {
		cf_clear(&masks);
		free(out->home);
		free(out->env_home);
		free(out->user);
		out->home = out->env_home = out->user = NULL;
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	}
	out->masks = masks.v;
	out->n_masks = masks.n;
	return SW_OK;
}

void sw_confine_host_free(sw_confine_host *h)
{
	sw_argv_free(h->masks);
	free(h->home);
	free(h->env_home);
	free(h->user);
	*h = (sw_confine_host){0};
}
