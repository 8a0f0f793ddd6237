/* sandwitness seal */
#include "store_cli.h"

#include <string.h>

const cli_verb cli_verb_seal;

static int run(int argc, char **argv)
{
	const char *db = NULL;
	bool rotate = false, json = false;
	cli_args a;
	cli_args_init(&a, &cli_verb_seal, argc, argv);
	for (int t; (t = cli_args_next(&a));) {
		if (t == 2)
			return cli_usage_error(&cli_verb_seal, "no argument is expected");
		if (strcmp(a.name, "json") == 0)
			json = true;
		else if (strcmp(a.name, "rotate-key") == 0)
			rotate = true;
		else if (strcmp(a.name, "db") != 0)
			return cli_args_unknown(&a);
		else if (!(db = cli_args_value(&a)))
			return CLI_USAGE;
	}
	int status = CLI_OK;
	sw_error err = {0};
	sw_store *s = store_open_cli(db, SW_STORE_WRITE | SW_STORE_NO_CREATE, &status);
	if (!s)
		return status;
	sw_store_head head;
	int code = rotate ? sw_store_rotate_key(s, &err) : 0;
	if (code == 0)
		code = sw_store_seal(s, NULL, &err);
	if (code == 0)
		code = sw_store_head_get(s, &head, &err);
	if (code != 0) {
		status = cli_fail(&err);
	} else {
		json_t *j = sw_store_head_json(&head);
		if (json) {
			store_print_json(j);
		} else {
			printf("sealed with key %s\n", head.key);
			store_print_head(stdout, j);
		}
		json_decref(j);
	}
	sw_store_close(s);
	return store_finish(status);
}

const cli_verb cli_verb_seal = {
    .name = "seal",
    .summary = "sign everything recorded so far; change the signing key",
    .usage = "[--rotate-key] [--json] [--db PATH]",
    .help =
        "Segments are sealed by themselves after 1,024 rows or an hour; this seals now.\n\n"
        "  --rotate-key   a new key, announced in the chain and signed by the old one; also\n"
        "                 the way back after a key was lost (then nobody signs for it)\n\n"
        "The key is TRAIL.key (mode 0600) or $SANDWITNESS_SEAL_KEY, its public half TRAIL.pub.\n\n"
        "  $ sandwitness seal\n",
    .run = run};
