/* sandwitness prune */
#include "store_cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const cli_verb cli_verb_prune;

/* 500, 10k, 64M, 2G */
static bool parse_size(const char *z, uint64_t *out)
{
	static const struct {
		char unit;
		uint64_t factor;
	} units[] = {{'k', 1ull << 10}, {'K', 1ull << 10}, {'M', 1ull << 20}, {'G', 1ull << 30}};
	char *end;
	errno = 0;
	unsigned long long n = strtoull(z, &end, 10);
	uint64_t factor = 1;
	if (end == z || errno || *z == '-' || n == 0)
		return false;
	for (size_t i = 0; *end && i < 4; i++)
		if (units[i].unit == *end && end[1] == 0)
			factor = units[i].factor;
	if (*end && factor == 1)
		return false;
	*out = n * factor;
	return n <= UINT64_MAX / factor;
}

static int take(cli_args *a, sw_prune_options *p, const char **db)
{
	char name[20];
	snprintf(name, sizeof name, "%s", a->name);
	const char *v = cli_args_value(a);
	if (!v)
		return CLI_USAGE;
	if (strcmp(name, "db") == 0) {
		*db = v;
	} else if (strcmp(name, "why") == 0) {
		p->why = v;
	} else if (strcmp(name, "older-than") == 0) {
		sw_error err = {0};
		if (sw_time_parse(v, sw_now_ns(), &p->older_than_ns, &err) != 0)
			return cli_fail(&err);
	} else if (!parse_size(v,
	                       strcmp(name, "keep-rows") == 0 ? &p->keep_rows : &p->keep_bytes)) {
		return cli_usage_error(&cli_verb_prune, "--%s: a number such as 100000, 64M or 2G",
		                       name);
	}
	return CLI_OK;
}

static int run(int argc, char **argv)
{
	static const char *const valued[] = {"db", "why", "older-than", "keep-rows", "keep-bytes"};
	sw_prune_options p = {0};
	const char *db = NULL;
	bool json = false;
	cli_args a;
	cli_args_init(&a, &cli_verb_prune, argc, argv);
	for (int t; (t = cli_args_next(&a));) {
		bool has_value = false;
		if (t == 2)
			return cli_usage_error(&cli_verb_prune, "no argument is expected");
		for (size_t i = 0; i < sizeof valued / sizeof *valued; i++)
			has_value |= strcmp(a.name, valued[i]) == 0;
		if (strcmp(a.name, "json") == 0)
			json = true;
		else if (strcmp(a.name, "dry-run") == 0)
			p.dry_run = true;
		else if (strcmp(a.name, "compact") == 0)
			p.compact = true;
		else if (!has_value)
			return cli_args_unknown(&a);
		else if (take(&a, &p, &db) != CLI_OK)
			return CLI_USAGE;
	}
	if (!p.older_than_ns && !p.keep_rows && !p.keep_bytes)
		return cli_usage_error(&cli_verb_prune,
		                       "say what may go: --older-than, --keep-rows or "
		                       "--keep-bytes");
	int status = CLI_OK;
	sw_error err = {0};
	json_t *j = NULL;
	sw_store *s = store_open_cli(db, SW_STORE_WRITE | SW_STORE_NO_CREATE, &status);
	if (!s)
		return status;
	if (sw_store_prune(s, &p, &j, &err) != 0) {
		status = cli_fail(&err);
	} else if (json) {
		store_print_json(j);
	} else {
		printf("%s %lld records in %lld sealed segments; %lld bytes in use before, %lld "
		       "after\n",
		       p.dry_run ? "would remove" : "removed",
		       (long long)json_integer_value(json_object_get(j, "rows")),
		       (long long)json_integer_value(json_object_get(j, "segments")),
		       (long long)json_integer_value(json_object_get(j, "bytes_before")),
		       (long long)json_integer_value(json_object_get(j, "bytes_after")));
	}
	json_decref(j);
	sw_store_close(s);
	return store_finish(status);
}

const cli_verb cli_verb_prune = {
    .name = "prune",
    .summary = "remove old sealed segments, and record that",
    .usage =
        "(--older-than T | --keep-rows N | --keep-bytes N) [--dry-run] [--compact] [--why TEXT] "
        "[--json] [--db PATH]",
    .help = "Only whole sealed segments go, oldest first; the chain keeps a row that says which\n"
            "ones, when and why. It is signed, so this needs the key; what goes, and the names\n"
            "that stay, are verified first. Verify takes no other gap as intact.\n\n"
            "  --older-than T    90d, week-ago, a date\n"
            "  --keep-rows N     keep at least the newest N records\n"
            "  --keep-bytes N    64M, 2G: of the file in use\n"
            "  --compact         give the freed space back to the file system (rewrites the file)\n"
            "  --dry-run         say what would go\n\n"
            "  $ sandwitness prune --older-than 90d --dry-run\n",
    .run = run};
