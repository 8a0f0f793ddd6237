/* sandwitness explain-cause [SLUG] */
#include "args.h"

#include <string.h>

static json_t *cause_json(const sw_cause *c)
{
	json_t *o = json_object(), *checks = json_array(), *remedies = json_array();
	json_object_set_new(o, "slug", sw_json_z(c->slug));
	json_object_set_new(o, "title", sw_json_z(c->title));
	json_object_set_new(o, "why", sw_json_z(c->why));
	for (uint16_t i = 0; i < c->n_checks; i++)
		json_array_append_new(checks, sw_json_z(c->checks[i]));
	json_object_set_new(o, "check", checks);
	for (uint16_t i = 0; i < c->n_remedies; i++) {
		json_t *r = json_object();
		json_object_set_new(r, "for", sw_json_z(c->remedies[i].for_whom));
		json_object_set_new(r, "do", sw_json_z(c->remedies[i].what));
		json_object_set_new(r, "risk", sw_json_z(c->remedies[i].risk));
		json_object_set_new(r, "tested", json_boolean(c->remedies[i].tested));
		json_array_append_new(remedies, r);
	}
	json_object_set_new(o, "remedies", remedies);
	json_object_set_new(o, "verify", sw_json_z(c->verify));
	json_object_set_new(o, "cannot_help", sw_json_z(c->cannot_help));
	return o;
}

static void print_cause(const sw_cause *c)
{
	printf("%s: %s\n\n  %s\n", c->slug, c->title, c->why);
	if (c->n_checks)
		fputs("\nLook at:\n", stdout);
	for (uint16_t i = 0; i < c->n_checks; i++)
		printf("  $ %s\n", c->checks[i]);
	for (uint16_t i = 0; i < c->n_remedies; i++) {
		const sw_remedy *r = &c->remedies[i];
		printf("\nRemedy%s%s:\n  %s\n  risk: %s\n  %s\n", r->for_whom ? ", " : "",
		       r->for_whom ? r->for_whom : "", r->what, r->risk,
		       r->tested ? "tested by us" : "not tested by us");
	}
	if (c->verify)
		printf("\nVerify:\n  $ %s\n", c->verify);
	if (c->cannot_help)
		printf("\nCannot help where:\n  %s\n", c->cannot_help);
}

static int run(int argc, char **argv)
{
	cli_args a;
	bool as_json = false;
	const char *slug = NULL;
	const cli_verb *self = cli_verb_find("explain-cause");
	cli_args_init(&a, self, argc, argv);
	for (int t; (t = cli_args_next(&a));) {
		if (t == 2 && !slug)
			slug = a.inline_value;
		else if (t == 1 && strcmp(a.name, "json") == 0)
			as_json = true;
		else
			return t == 1 ? cli_args_unknown(&a)
			              : cli_usage_error(self, "one cause at a time");
	}
	const sw_cause *all;
	size_t n = sw_builtin_causes(&all);
	if (!slug) {
		for (size_t i = 0; i < n; i++) {
			if (as_json)
				cli_print_json(stdout, cause_json(&all[i]));
			else
				printf("%-34s %s\n", all[i].slug, all[i].title);
		}
		return CLI_OK;
	}
	const sw_cause *c = sw_cause_find(slug);
	if (!c)
		return cli_usage_error(
		    self, "unknown cause \"%.60s\"; `sandwitness explain-cause` lists them", slug);
	if (as_json)
		cli_print_json(stdout, cause_json(c));
	else
		print_cause(c);
	return CLI_OK;
}

const cli_verb cli_verb_explain_cause = {
    .name = "explain-cause",
    .summary = "explain a cause: why, what to check, what mends it",
    .usage = "[SLUG] [--json]",
    .help = "Without SLUG lists all causes.\n\n"
            "Examples:\n"
            "  $ sandwitness explain-cause userns-uid-map-denied\n"
            "  $ sandwitness explain-cause --json userns-uid-map-denied\n",
    .run = run,
};
