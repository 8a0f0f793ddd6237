/* sandwitness classify */
#include "args.h"
#include "batch.h"
#include "self_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct options {
	const char *backend, *file, *signatures, *pack_set;
	bool json, batch, exit_code, verbose, no_self_sandbox;
	cli_facts f;
} options;

static int parse(options *o, const cli_verb *self, int argc, char **argv)
{
	const cli_flag flags[] = {{"json", &o->json},
	                          {"batch", &o->batch},
	                          {"exit-code", &o->exit_code},
	                          {"timed-out", &o->f.exit.timed_out},
	                          {"verbose", &o->verbose},
	                          {"observe-ok", &o->f.facts.observe_ok},
	                          {"no-self-sandbox", &o->no_self_sandbox},
	                          {NULL, NULL}};
	const cli_text texts[] = {{"backend", &o->backend},
	                          {"signatures", &o->signatures},
	                          {"pack-set", &o->pack_set},
	                          {NULL, NULL}};
	cli_args a;
	cli_args_init(&a, self, argc, argv);
	return cli_args_all(&a, flags, texts, &o->f, &o->file);
}

static int feed_file(sw_scan *scan, int fd, const char *name, sw_error *err)
{
	static char chunk[1 << 18];
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			sw_error_set(err, SW_EIO, "cannot read: %s", strerror(errno));
			return sw_error_more(err, name, NULL, NULL);
		}
		if (n == 0)
			return 0;
		int rc = sw_scan_feed(scan, chunk, (size_t)n);
		if (rc)
			return sw_error_set(err, rc, "out of memory");
	}
}

static int answer(const options *o, const sw_result *r)
{
	if (o->json)
		cli_print_json(stdout, cli_result_json(r, NULL));
	else
		cli_print_verdict(stdout, r, o->verbose, sw_colour_wanted(STDOUT_FILENO));
	if (!o->exit_code || r->verdict == SW_VERDICT_OK)
		return CLI_OK;
	return r->verdict == SW_VERDICT_RUNNER_FAILED ? CLI_RUNNER_FAILED : CLI_SANDBOX_DENIED;
}

static int classify_one(const options *o, const sw_pack_set *set)
{
	sw_error err;
	const char *name = o->file ? o->file : "-";
	int fd = strcmp(name, "-") == 0 ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		sw_error_set(&err, SW_EIO, "cannot open: %s", strerror(errno));
		sw_error_more(&err, name, NULL,
		              "name the file that holds the captured output, or - for stdin");
		return cli_fail(&err);
	}
	const sw_pack *pack = cli_pack(set, o->backend);
	sw_scan *scan = NULL;
	sw_result *r = NULL;
	int status = CLI_USAGE;
	if (pack && !o->no_self_sandbox)
		sw_self_sandbox(SW_SELF_PURE, NULL, NULL);
	if (pack) {
		int rc = sw_scan_begin(&scan, pack, &o->f.facts, &err);
		if (!rc)
			rc = feed_file(scan, fd, name, &err);
		if (!rc)
			rc = sw_scan_finish(scan, o->f.exit, o->f.started, o->f.source, &r, &err);
		status = rc ? cli_fail(&err) : answer(o, r);
	}
	sw_result_free(r);
	sw_scan_free(scan);
	if (fd != STDIN_FILENO)
		close(fd);
	return status;
}

static int classify_batch(const options *o, const sw_pack_set *set)
{
	FILE *in = o->file && strcmp(o->file, "-") != 0 ? fopen(o->file, "re") : stdin;
	if (!in) {
		sw_error err;
		sw_error_set(&err, SW_EIO, "cannot open: %s", strerror(errno));
		sw_error_more(&err, o->file, NULL, NULL);
		return cli_fail(&err);
	}
	if (!o->no_self_sandbox)
		sw_self_sandbox(SW_SELF_PURE, NULL, NULL);
	int status = cli_batch(in, stdout, set, o->backend, o->f.facts.observe_ok);
	if (in != stdin)
		fclose(in);
	return status;
}

static int run(int argc, char **argv)
{
	const cli_verb *self = cli_verb_find("classify");
	options o = {0};
	cli_facts_init(&o.f);
	int rc = parse(&o, self, argc, argv);
	if (rc)
		return rc;
	const sw_pack_set *set = cli_pack_set(o.signatures, o.pack_set);
	if (!set)
		return CLI_USAGE;
	if (o.batch)
		return classify_batch(&o, set);
	if (!o.backend)
		return cli_usage_error(
		    self, "--backend is missing; `sandwitness signatures list` shows the backends");
	if (!o.f.has_exit && !o.f.exit.timed_out)
		return cli_usage_error(self, "--exit is missing (or --signal, or --timed-out)");
	return classify_one(&o, set);
}

const cli_verb cli_verb_classify = {
    .name = "classify",
    .summary = "say what came out: ok, runner_failed or sandbox_denied",
    .usage = "--backend B (--exit N | --signal S | --timed-out) [options] [FILE]",
    .help =
        "Reads the captured merged output from FILE or stdin. An `ok` means that no denial\n"
        "was observed, never that none occurred; and never loosen a sandbox because of a\n"
        "verdict whose evidence is `text`: the command can print anything.\n\n"
        "  --backend B          the runner around the command\n"
        "  --exit N             its exit, -2147483648..4294967295\n"
        "  --signal S           or the signal that ended it, 1..64 or a name\n"
        "  --timed-out          it was ended by a deadline\n"
        "  --started S          yes, no, unknown: whether the command is known to have started\n"
        "  --mode M             read_only, workspace_write, danger_full_access\n"
        "  --network N          allowed, denied\n"
        "  --enforcement E      full, partial, none\n"
        "  --writable-root P    a path the command may write; repeatable\n"
        "  --accessible P       a path this user may access outside the sandbox; repeatable\n"
        "  --cwd P              the command's working directory\n"
        "  --observe-ok         give observations for exit 0 too\n"
        "  --json               one JSON object\n"
        "  --verbose            cause and advice on lines of their own\n"
        "  --exit-code          exit 10 for runner_failed, 11 for sandbox_denied\n"
        "  --batch              NDJSON in, NDJSON out, same order; a bad line gives\n"
        "                       {\"id\",\"error\"}, the rest goes on, and the exit status is 1\n"
        "  --signatures DIR     user packs in front of the built-in ones\n"
        "  --pack-set NAME      another set of packs (compat-nous)\n"
        "  --no-self-sandbox    do not confine this program while it reads the output\n\n"
        "Examples:\n"
        "  $ echo 'bwrap: setting up uid map: Permission denied' | sandwitness classify --backend "
        "bwrap --exit 1\n"
        "  $ echo 'touch: cannot touch /etc/x: Read-only file system' | sandwitness classify "
        "--backend bwrap --exit 1 --json\n"
        "  $ echo '{\"id\":\"a\",\"backend\":\"bwrap\",\"exit\":159,\"output\":\"\"}' | "
        "sandwitness classify --batch\n",
    .run = run,
};
