/* sandwitness verify */
#include "store_cli.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const cli_verb cli_verb_verify;

typedef struct options {
	const char *db, *file, *key;
	const char *anchors[64];
	size_t n_anchors;
	bool json, seal;
	store_confine confine;
} options;

static void progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	if (total)
		fprintf(stderr, "\rverifying: %llu of %llu rows (%.0f %%)",
		        (unsigned long long)done, (unsigned long long)total,
		        100.0 * (double)done / (double)total);
}

static long long number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static void print_people(const json_t *r)
{
	static const struct {
		const char *status, *text;
	} texts[] = {{"intact", "intact, and sealed to the last row"},
	             {"intact_not_sealed", "intact, but not sealed to the last row"},
	             {"changed", "CHANGED"},
	             {"missing", "ROWS ARE MISSING"},
	             {"reordered", "ROWS WERE REORDERED"},
	             {"truncated", "CUT OFF"},
	             {"bad_seal", "BAD SEAL"}};
	const char *status = json_string_value(json_object_get(r, "status"));
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (strcmp(texts[i].status, status) == 0)
			puts(texts[i].text);
	size_t i;
	json_t *f;
	json_array_foreach(json_object_get(r, "findings"), i, f)
	{
		const json_t *seq = json_object_get(f, "seq");
		char *table = store_cell_text(json_object_get(f, "table"), "text");
		char *id = store_cell_text(json_object_get(f, "id"), "text");
		char *what = store_cell_text(json_object_get(f, "what"), "text");
		printf("  %s", json_string_value(json_object_get(f, "kind")));
		if (table && strcmp(table, "-") != 0)
			printf("  %s", table);
		if (json_is_integer(seq))
			printf("  row %lld", (long long)json_integer_value(seq));
		if (id && strcmp(id, "-") != 0)
			printf("  (id %s)", id);
		printf("  %s\n", what ? what : "");
		free(table);
		free(id);
		free(what);
	}
	long long total = number(r, "findings_total"), shown = (long long)i;
	if (total > shown)
		printf("  and %lld more\n", total - shown);
	printf("%lld rows, %lld segments, %lld rows after the last good seal\n", number(r, "rows"),
	       number(r, "segments"), number(r, "unsealed_rows"));
	json_array_foreach(json_object_get(r, "pruned"), i, f)
	    printf("rows %lld to %lld were pruned (%lld records)\n", number(f, "from"),
	           number(f, "to"), number(f, "rows"));
	json_array_foreach(json_object_get(r, "anchors"), i, f) printf(
	    "anchor %lld: %s\n", number(f, "seq"), json_string_value(json_object_get(f, "state")));
	const json_t *key = json_object_get(r, "key");
	if (json_is_string(key))
		printf("key %s, %s\n", json_string_value(key),
		       json_is_true(json_object_get(r, "key_pinned"))
		           ? "pinned"
		           : "as the file itself names it: pin it with --public-key");
	else
		puts("no key was ever announced here: nothing shows who wrote it");
	const json_t *head = json_object_get(r, "head");
	printf("head %lld:%s\n", number(head, "seq"),
	       json_string_value(json_object_get(head, "hash")));
}

static bool is_export(const char *path)
{
	char c[2] = {0};
	size_t n = strlen(path);
	if (strcmp(path, "-") == 0 || (n > 7 && strcmp(path + n - 7, ".ndjson") == 0))
		return true;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	bool yes = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && read(fd, c, 1) == 1 &&
	           c[0] == '{';
	if (fd >= 0)
		close(fd);
	return yes;
}

static int seal_first(const char *db)
{
	int status = CLI_OK;
	sw_error err = {0};
	sw_store *s = store_open_cli(db, SW_STORE_WRITE | SW_STORE_NO_CREATE, &status);
	if (s && sw_store_seal(s, NULL, &err) != 0)
		status = cli_fail(&err);
	sw_store_close(s);
	return status;
}

static int parse(options *o, int argc, char **argv)
{
	cli_args a;
	cli_args_init(&a, &cli_verb_verify, argc, argv);
	for (int t; (t = cli_args_next(&a));) {
		if (t == 2) {
			if (o->file)
				return cli_usage_error(&cli_verb_verify, "one file at a time");
			o->file = a.inline_value;
			continue;
		}
		bool anchor = strcmp(a.name, "anchor") == 0;
		const char **text = strcmp(a.name, "db") == 0           ? &o->db
		                    : strcmp(a.name, "public-key") == 0 ? &o->key
		                    : anchor && o->n_anchors < 64       ? &o->anchors[o->n_anchors]
		                                                        : NULL;
		if (strcmp(a.name, "json") == 0) {
			o->json = true;
		} else if (strcmp(a.name, "seal") == 0) {
			o->seal = true;
		} else if (strcmp(a.name, "no-self-sandbox") == 0) {
			o->confine.off = true;
		} else if (anchor && !text) {
			return cli_usage_error(&cli_verb_verify, "more than 64 anchors");
		} else if (text) {
			if (!(*text = cli_args_value(&a)))
				return CLI_USAGE;
			o->n_anchors += anchor;
		} else {
			return cli_args_unknown(&a);
		}
	}
	return CLI_OK;
}

/* A trail that cannot even be opened was changed as well; a path where none is, is a mistake. */
static int judge_trail(const options *o, const sw_verify_options *v, int *verdict, json_t **report,
                       sw_error *err)
{
	sw_store *s = NULL;
	char *path = cli_db_path(o->db);
	if (!path)
		return cli_no_db_path(err);
	int code = sw_store_open(&s, path, SW_STORE_READ, NULL, err);
	if (code == 0) {
		store_confine_now(&o->confine, path, NULL);
		code = sw_store_verify(s, v, verdict, report, err);
	} else if (code == SW_ECORRUPT || (code == SW_ENOTFOUND && access(path, F_OK) == 0)) {
		const sw_error why = *err;
		memset(err, 0, sizeof *err);
		code = sw_verify_unopened(path, &why, v, verdict, report, err);
	}
	sw_store_close(s);
	free(path);
	return code;
}

static int run(int argc, char **argv)
{
	options o = {0};
	int status = parse(&o, argc, argv);
	if (status != CLI_OK)
		return status;
	bool file = o.file && is_export(o.file);
	if (o.file && !file)
		o.db = o.file;
	if (o.seal && file)
		return cli_usage_error(&cli_verb_verify, "an export cannot be sealed");
	if (o.seal && (status = seal_first(o.db)) != CLI_OK)
		return status;
	o.confine.also = o.key;
	if (!store_confine_begin(&o.confine, &status))
		return status;
	sw_verify_options v = {.anchors = o.anchors,
	                       .n_anchors = o.n_anchors,
	                       .public_key = o.key,
	                       .progress = isatty(STDERR_FILENO) ? progress : NULL};
	sw_error err = {0};
	json_t *report = NULL;
	int code = 0, verdict = 0;
	if (file) {
		store_confine_now(&o.confine, NULL, strcmp(o.file, "-") == 0 ? NULL : o.file);
		code = sw_export_verify(o.file, &v, &verdict, &report, &err);
	} else {
		code = judge_trail(&o, &v, &verdict, &report, &err);
	}
	code = store_whole(code, &err);
	store_confine_end(&o.confine);
	if (v.progress)
		fputs("\r\033[K", stderr);
	if (code != 0)
		return cli_fail(&err);
	if (o.json)
		store_print_json(report);
	else
		print_people(report);
	json_decref(report);
	return store_finish(verdict);
}

const cli_verb cli_verb_verify = {
    .name = "verify",
    .summary = "check that the audit trail, or an export of it, is what was written",
    .usage = "[FILE] [--anchor SEQ:HASH]... [--public-key KEY] [--seal] [--json] "
             "[--no-self-sandbox] [--db PATH]",
    .help =
        "FILE is a trail or an NDJSON export. Checks the chain of hashes over every field of\n"
        "every row, the seals and their signatures, the names that rows use, rollups, kept\n"
        "outputs, the list of unfinished invocations and the file's own structure.\n\n"
        "  --anchor SEQ:HASH   a head noted earlier (report footer, GET /v1/chain): nothing up\n"
        "                      to it was cut off or rewritten; may be repeated\n"
        "  --public-key KEY    64 hex digits or the .pub file; else TRAIL.pub, else the key that\n"
        "                      the file itself names (then a forger could have renamed it)\n"
        "  --seal              seal what is not sealed yet first (needs the key)\n"
        "  --no-self-sandbox   keep other files, the network and programs within reach\n\n"
        "Exit status: 0 intact, 3 intact but not sealed to the end, 20 changed, 21 missing,\n"
        "22 reordered, 23 truncated against an anchor, 24 bad seal.\n\n"
        "  $ sandwitness verify --seal\n"
        "  $ sandwitness export --out trail.ndjson && sandwitness verify trail.ndjson\n",
    .run = run};
