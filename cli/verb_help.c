/* sandwitness help [VERB] */
#include "cli.h"

static int run(int argc, char **argv)
{
	if (argc > 1) {
		const cli_verb *v = cli_verb_find(argv[1]);
		if (!v)
			return cli_usage_error(NULL, "unknown verb \"%.60s\"", argv[1]);
		cli_help(v, stdout);
		return CLI_OK;
	}
	fputs("sandwitness - what came out of a sandboxed command, and was it contained?\n\n"
	      "usage: sandwitness VERB ...\n\n",
	      stdout);
	size_t i = 0;
	for (const cli_verb *v; (v = cli_verb_next(&i));)
		printf("  %-14s %s\n", v->name, v->summary);
	fputs("\n`sandwitness help VERB` tells more, with examples.\n"
	      "Exit status: 0 answered, 1 usage or configuration, 2 input-output or internal;\n"
	      "some verbs have more, see their help.\n",
	      stdout);
	return CLI_OK;
}

const cli_verb cli_verb_help = {
    .name = "help",
    .summary = "list the verbs, or explain one",
    .usage = "[VERB]",
    .help = "Examples:\n"
            "  $ sandwitness help\n"
            "  $ sandwitness help classify\n",
    .run = run,
};
