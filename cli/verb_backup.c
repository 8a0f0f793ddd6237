/* sandwitness backup */
#include "store_cli.h"

#include <string.h>

const cli_verb cli_verb_backup;

static int run(int argc, char **argv)
{
	const char *db = NULL, *to = NULL;
	cli_args a;
	cli_args_init(&a, &cli_verb_backup, argc, argv);
	for (int t; (t = cli_args_next(&a));) {
		if (t == 2 && !to)
			to = a.inline_value;
		else if (t == 2)
			return cli_usage_error(&cli_verb_backup, "one file at a time");
		else if (strcmp(a.name, "db") != 0)
			return cli_args_unknown(&a);
		else if (!(db = cli_args_value(&a)))
			return CLI_USAGE;
	}
	if (!to)
		return cli_usage_error(&cli_verb_backup, "where to?");
	int status = CLI_OK;
	sw_error err = {0};
	sw_store *s = store_open_cli(db, SW_STORE_READ, &status);
	if (s && sw_store_backup(s, to, &err) != 0)
		status = cli_fail(&err);
	else if (s)
		printf("copied to %s\n", to);
	sw_store_close(s);
	return store_finish(status);
}

const cli_verb cli_verb_backup = {
    .name = "backup",
    .summary = "a consistent copy of the audit trail while others write",
    .usage = "FILE [--db PATH]",
    .help = "FILE must not exist; it is created with mode 0600. The signing key is not copied:\n"
            "keep it apart. Copying the file by other means can miss what is still in its log.\n\n"
            "  $ sandwitness backup /tmp/trail-copy.db\n",
    .run = run};
