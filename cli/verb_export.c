/* sandwitness export */
#include "store_cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_verb cli_verb_export;

static int write_out(void *arg, const char *p, size_t n)
{
	return fwrite(p, 1, n, arg) == n ? 0 : -1;
}

static int export_to(sw_store *s, const store_options *o, bool csv, FILE *to)
{
	sw_error err = {0};
	int code = csv ? sw_store_export_csv(s, &o->q, write_out, to, &err)
	               : sw_store_export(s, write_out, to, &err);
	if (code == 0 && fflush(to) != 0) {
		code = sw_error_set(&err, SW_EIO, "the export could not be written");
		sw_error_more(&err, NULL, strerror(errno), NULL);
	}
	return code == 0 ? CLI_OK : cli_fail(&err);
}

/* Audit data: for this user alone, and never over something else. */
static FILE *create(sw_new_file *file, const char *path, int *status)
{
	sw_error err = {0};
	if (sw_new_file_create(file, path, &err) != 0) {
		*status = cli_fail(&err);
		return NULL;
	}
	int fd = dup(file->fd);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!f) {
		sw_error_set(&err, SW_EIO, "cannot write the export: %s", strerror(errno));
		*status = cli_fail(&err);
		sw_new_file_drop(file);
	}
	return f;
}

static int finish(FILE *f, int status)
{
	if (status == CLI_OK && fsync(fileno(f)) != 0)
		status = CLI_IO;
	if (fclose(f) != 0)
		status = CLI_IO;
	return status;
}

static int run(int argc, char **argv)
{
	store_options o = {0};
	const char *out = NULL, *format = NULL;
	int status = CLI_OK;
	cli_args a;
	cli_args_init(&a, &cli_verb_export, argc, argv);
	for (int t; status == CLI_OK && (t = cli_args_next(&a));) {
		if (t == 2) {
			status = cli_usage_error(&cli_verb_export, "use --out FILE");
			continue;
		}
		const char **text = strcmp(a.name, "out") == 0      ? &out
		                    : strcmp(a.name, "format") == 0 ? &format
		                                                    : NULL;
		if (text) {
			if (!(*text = cli_args_value(&a)))
				status = CLI_USAGE;
			continue;
		}
		int taken = store_option(&o, &a);
		if (taken <= 0)
			status = taken < 0 ? CLI_USAGE : cli_args_unknown(&a);
	}
	bool csv = o.csv || (format && strcmp(format, "csv") == 0);
	if (status == CLI_OK && format && !csv && strcmp(format, "ndjson") != 0)
		status = cli_usage_error(&cli_verb_export, "--format: ndjson or csv");
	if (status == CLI_OK && !csv && o.filtered)
		status = cli_usage_error(&cli_verb_export,
		                         "filters go with --csv: NDJSON is the whole chain");
	sw_new_file file = {.fd = -1};
	FILE *f =
	    status == CLI_OK && out && strcmp(out, "-") != 0 ? create(&file, out, &status) : NULL;
	if (status == CLI_OK && store_confine_begin(&o.confine, &status)) {
		sw_store *s = store_open_confined(&o, &status);
		if (s)
			status = export_to(s, &o, csv, f ? f : stdout);
		sw_store_close(s);
		if (f)
			status = finish(f, status);
		store_confine_end(&o.confine);
	} else if (f) {
		fclose(f);
	}
	/* It gets its name when it is whole, from the process that may still give it one. */
	sw_error err = {0};
	if (f && o.confine.apart)
		sw_new_file_leave(&file);
	else if (f && status != CLI_OK)
		sw_new_file_drop(&file);
	else if (f && sw_new_file_keep(&file, &err) != 0)
		status = cli_fail(&err);
	store_options_free(&o);
	return store_finish(status);
}

const cli_verb cli_verb_export = {
    .name = "export",
    .summary = "the whole chain as NDJSON that verifies by itself, or invocations as CSV",
    .usage = "[--csv " STORE_FILTER_USAGE "] [--out FILE] [--no-self-sandbox] [--db PATH]",
    .help = "NDJSON holds every row of the chain with its hash, seals and keys included:\n"
            "`sandwitness verify FILE` needs nothing else. CSV has one line per invocation.\n\n"
            "  --out FILE   a new file of mode 0600; else stdout\n" STORE_CONFINE_HELP
            "\n" STORE_FILTER_HELP "\n  $ sandwitness export --csv --since week-ago\n",
    .run = run};
