/* Walking an argument list. */
#include "args.h"

#include <string.h>

void cli_args_init(cli_args *a, const cli_verb *verb, int argc, char **argv)
{
	*a = (cli_args){.verb = verb, .argc = argc, .argv = argv, .at = 1};
}

int cli_args_next(cli_args *a)
{
	a->name = a->inline_value = NULL;
	if (a->at >= a->argc)
		return 0;
	char *z = a->argv[a->at++];
	if (!a->only_positional && strcmp(z, "--") == 0) {
		a->only_positional = true;
		return cli_args_next(a);
	}
	if (a->only_positional || z[0] != '-' || z[1] == '\0') {
		a->inline_value = z;
		return 2;
	}
	a->name = z + 1 + (z[1] == '-');
	char *eq = strchr(z, '=');
	if (eq) {
		*eq = '\0';
		a->inline_value = eq + 1;
	}
	return 1;
}

const char *cli_args_value(cli_args *a)
{
	if (a->inline_value)
		return a->inline_value;
	if (a->at < a->argc)
		return a->argv[a->at++];
	cli_usage_error(a->verb, "--%s needs a value", a->name);
	return NULL;
}

int cli_args_take(cli_args *a, const cli_flag *flags, const cli_text *texts)
{
	for (; flags && flags->name; flags++) {
		if (strcmp(a->name, flags->name) == 0) {
			*flags->to = true;
			return 1;
		}
	}
	for (; texts && texts->name; texts++) {
		if (strcmp(a->name, texts->name) == 0) {
			*texts->to = cli_args_value(a);
			return *texts->to ? 1 : -1;
		}
	}
	return 0;
}

int cli_args_fact(cli_args *a, cli_facts *f)
{
	bool known = false;
#define CLI_KNOWN(n) known |= strcmp(a->name, n) == 0;
	CLI_FACT_OPTIONS(CLI_KNOWN)
	if (!known)
		return 0;
	const char *value = cli_args_value(a);
	sw_error err;
	if (!value)
		return -1;
	if (cli_facts_option(f, a->name, value, &err) >= 0)
		return 1;
	sw_error_print(stderr, &err);
	return -1;
}

int cli_args_all(cli_args *a, const cli_flag *flags, const cli_text *texts, cli_facts *facts,
                 const char **file)
{
	for (int t; (t = cli_args_next(a));) {
		if (t == 2) {
			if (*file)
				return cli_usage_error(a->verb, "one file at a time");
			*file = a->inline_value;
			continue;
		}
		int taken = cli_args_take(a, flags, texts);
		if (!taken && facts)
			taken = cli_args_fact(a, facts);
		if (taken <= 0)
			return taken ? CLI_USAGE : cli_args_unknown(a);
	}
	return 0;
}

int cli_args_unknown(const cli_args *a)
{
	return cli_usage_error(a->verb, "unknown option --%s", a->name);
}
