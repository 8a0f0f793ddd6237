/* sandwitness version */
#include "cli.h"

#include <string.h>

static int run(int argc, char **argv)
{
	const sw_pack_file *files;
	const sw_cause *causes;
	size_t n = sw_builtin_files(&files), sigs = 0;
	for (size_t i = 0; i < n; i++)
		sigs += files[i].def->n_sigs;
	bool as_json = argc > 1 && strcmp(argv[1], "--json") == 0;
	if (argc > 1 && !as_json)
		return cli_usage_error(cli_verb_find("version"), "unknown argument %s", argv[1]);
	if (as_json) {
		json_t *o = json_object();
		json_object_set_new(o, "version", json_string(SW_VERSION));
		json_object_set_new(o, "result_schema", json_integer(SW_RESULT_SCHEMA));
		json_object_set_new(o, "pack_files", json_integer((json_int_t)n));
		json_object_set_new(o, "signatures", json_integer((json_int_t)sigs));
		json_object_set_new(o, "causes",
		                    json_integer((json_int_t)sw_builtin_causes(&causes)));
		cli_print_json(stdout, o);
	} else {
		printf("sandwitness %s (%zu signatures in %zu pack files, %zu causes)\n",
		       SW_VERSION, sigs, n, sw_builtin_causes(&causes));
	}
	return CLI_OK;
}

const cli_verb cli_verb_version = {
    .name = "version",
    .summary = "print the version",
    .usage = "[--json]",
    .help = "Examples:\n"
            "  $ sandwitness version\n",
    .run = run,
};
