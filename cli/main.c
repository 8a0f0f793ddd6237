/* The program: finds the verb and runs it. */
#include "cli.h"
#include "config.h"
#include "landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The table is made of the verbs whose file is in the build. */
#define CLI_WEAK(v) extern const cli_verb cli_verb_##v __attribute__((weak));
CLI_VERB_LIST(CLI_WEAK)

static const cli_verb *verb_at(size_t i)
{
	const cli_verb *all[] = {
#define CLI_ROW(v) &cli_verb_##v,
	    CLI_VERB_LIST(CLI_ROW)};
	return i < sizeof(all) / sizeof(all[0]) ? all[i] : (const cli_verb *)-1;
}

const cli_verb *cli_verb_next(size_t *i)
{
	for (;;) {
		const cli_verb *v = verb_at((*i)++);
		if (v == (const cli_verb *)-1)
			return NULL;
		if (v)
			return v;
	}
}

const cli_verb *cli_verb_find(const char *name)
{
	size_t i = 0;
	for (const cli_verb *v; (v = cli_verb_next(&i));)
		if (strcmp(v->name, name) == 0)
			return v;
	return NULL;
}

int cli_usage_error(const cli_verb *v, const char *fmt, ...)
{
	va_list ap;
	fputs("sandwitness", stderr);
	if (v)
		fprintf(stderr, " %s", v->name);
	fputs(": ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	if (v)
		fprintf(stderr, "usage: sandwitness %s %s\n  `sandwitness help %s` tells more.\n",
		        v->name, v->usage, v->name);
	else
		fputs("  `sandwitness help` lists the verbs.\n", stderr);
	return CLI_USAGE;
}

static bool no_memory_said;

int cli_fail(const sw_error *e)
{
	no_memory_said |= e->code == SW_ENOMEM;
	sw_error_print(stderr, e);
	switch (e->code) {
	case SW_EINVAL:
	case SW_EPACK:
	case SW_ENOTFOUND:
	case SW_ECONFLICT:
		return CLI_USAGE;
	default:
		return CLI_IO;
	}
}

int cli_no_memory(void)
{
	no_memory_said = true;
	sw_text_lacks();
	fputs("sandwitness: out of memory\n", stderr);
	return CLI_IO;
}

void cli_help(const cli_verb *v, FILE *to)
{
	fprintf(to, "sandwitness %s - %s\n\nusage: sandwitness %s %s\n\n%s", v->name, v->summary,
	        v->name, v->usage, v->help);
}

/*
 * Nothing of ours may take the number of a standard descriptor that our caller closed: it would
 * be taken for that. Those of `run` become the command's; elsewhere they fail as closed ones do.
 */
static void hold_standard_descriptors(bool usable)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", usable ? O_RDWR : fd == 0 ? O_WRONLY : O_RDONLY);
}

static int finish_stdout(int rc)
{
	errno = 0;
	if (fflush(stdout) != 0 || ferror(stdout)) {
		if (rc != CLI_IO) /* else it was said */
			fprintf(stderr, "sandwitness: cannot write to stdout: %s\n",
			        strerror(errno ? errno : EIO));
		if (rc == CLI_OK)
			rc = CLI_IO;
	}
	return rc;
}

int main(int argc, char **argv)
{
	/* Not at start: `run` must hand on what it inherited, and pipes break loudly elsewhere. */
	if (argc < 2)
		return cli_usage_error(NULL, "no verb given");
	const char *name = argv[1];
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	if (strcmp(name, "--version") == 0)
		name = "version";
	/* Not a verb for people: how `run` and `confine` start the Landlock launcher. */
	if (strcmp(name, "__landlock") == 0)
		return sw_landlock_main(argc - 1, argv + 1);
	sw_survive_file_limit();
	sw_json_whole_or_none();
	hold_standard_descriptors(strcmp(name, "run") == 0);
	const cli_verb *v = cli_verb_find(name);
	if (!v)
		return cli_usage_error(NULL, "unknown verb \"%.60s\"", argv[1]);
	if (argc == 3 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
		cli_help(v, stdout);
		return CLI_OK;
	}
	cli_config config = {0};
	sw_error err;
	if (cli_config_read(&config, v, argc - 1, argv + 1, &err)) {
		int failed = cli_fail(&err);
		/* `run` says with 125 that nothing was executed */
		return strcmp(v->name, "run") == 0 ? 125 : failed;
	}
	int rc = config.argv ? v->run(config.argc, config.argv) : v->run(argc - 1, argv + 1);
	if (rc == CLI_USAGE && config.argv)
		fprintf(stderr, "  (options were added from %s)\n", config.file);
	cli_config_free(&config);
	/* the status of `run` is the command's, and it says all itself */
	if ((no_memory_said || sw_text_lacked()) && strcmp(v->name, "run") != 0) {
		if (!no_memory_said)
			fputs("sandwitness: out of memory: the answer is not whole\n", stderr);
		rc = CLI_IO;
	}
	return finish_stdout(rc);
}
