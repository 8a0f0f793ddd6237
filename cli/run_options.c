/* The options of `sandwitness run`. */
#include "run_cli.h"

#include "args.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
	TAKE_FLAG,
	TAKE_TEXT,
	TAKE_LIST,
	TAKE_DURATION,
	TAKE_NUMBER,
	TAKE_FD,
	TAKE_OTHER
} take;

typedef struct option_row {
	const char *name;
	take how;
	size_t offset, count; /* in run_cli_options; count: of the list's length */
	size_t max;
} option_row;

#define AT(field) offsetof(run_cli_options, field)
static const option_row rows[] = {
    {"no-merge", TAKE_FLAG, AT(no_merge), 0, 0},
    {"no-attest", TAKE_FLAG, AT(no_attest), 0, 0},
    {"null-stdin", TAKE_FLAG, AT(quiet_stdin), 0, 0},
    {"json", TAKE_FLAG, AT(json), 0, 0},
    {"quiet", TAKE_FLAG, AT(quiet), 0, 0},
    {"q", TAKE_FLAG, AT(quiet), 0, 0},
    {"verbose", TAKE_FLAG, AT(verbose), 0, 0},
    {"exempt", TAKE_FLAG, AT(exempt), 0, 0},
    {"allow-unconfined", TAKE_FLAG, AT(allow_unconfined), 0, 0},
    {"trace", TAKE_FLAG, AT(trace), 0, 0},
    {"observe-ok", TAKE_FLAG, AT(f.facts.observe_ok), 0, 0},
    {"backend", TAKE_TEXT, AT(backend), 0, 0},
    {"signatures", TAKE_TEXT, AT(signatures), 0, 0},
    {"pack-set", TAKE_TEXT, AT(pack_set), 0, 0},
    {"requested", TAKE_TEXT, AT(requested), 0, 0},
    {"minimum", TAKE_TEXT, AT(minimum), 0, 0},
    {"reason", TAKE_TEXT, AT(reason), 0, 0},
    {"session", TAKE_TEXT, AT(session), 0, 0},
    {"actor", TAKE_TEXT, AT(actor), 0, 0},
    {"runtime", TAKE_TEXT, AT(runtime), 0, 0},
    {"device", TAKE_TEXT, AT(device), 0, 0},
    {"id", TAKE_TEXT, AT(id), 0, 0},
    {"db", TAKE_TEXT, AT(db), 0, 0},
    {"server", TAKE_TEXT, AT(server), 0, 0},
    {"verdict-file", TAKE_TEXT, AT(verdict_file), 0, 0},
    {"label", TAKE_LIST, AT(labels), AT(n_labels), RUN_LABELS_MAX},
    {"deadline", TAKE_DURATION, AT(deadline_ns), 0, 0},
    {"grace", TAKE_DURATION, AT(grace_ns), 0, 0},
    {"keep-output", TAKE_NUMBER, AT(keep_output), 0, 1u << 20},
    {"verdict-fd", TAKE_FD, 0, 0, 0},
    {"keep-fd", TAKE_OTHER, 0, 0, 0},
    {"audit", TAKE_OTHER, 0, 0, 0},
    {"network", TAKE_OTHER, 0, 0, 0},
    {"cwd", TAKE_OTHER, 0, 0, 0},
};

static bool number(const char *z, long min, long max, long *out)
{
	char *end;
	errno = 0;
	long v = strtol(z, &end, 10);
	if (errno || end == z || *end || v < min || v > max)
		return false;
	*out = v;
	return true;
}

/* A descriptor that our caller gave us open. */
static bool open_fd(const char *z, int *out)
{
	long v;
	if (!number(z, 0, 1 << 20, &v) || fcntl((int)v, F_GETFD) < 0)
		return false;
	*out = (int)v;
	return true;
}

static int take_other(run_cli_options *o, cli_args *a, const char *v)
{
	const cli_verb *self = a->verb;
	if (!strcmp(a->name, "keep-fd")) {
		if (o->n_keep_fds == RUN_KEEP_FDS_MAX)
			return cli_usage_error(self, "at most %d --keep-fd", RUN_KEEP_FDS_MAX);
		if (!open_fd(v, &o->keep_fds[o->n_keep_fds]))
			return cli_usage_error(self, "--keep-fd %.20s is not an open descriptor",
			                       v);
		o->n_keep_fds++;
		return 0;
	}
	if (!strcmp(v, "required"))
		o->audit = RUN_AUDIT_REQUIRED;
	else if (!strcmp(v, "best-effort"))
		o->audit = RUN_AUDIT_BEST_EFFORT;
	else if (!strcmp(v, "off"))
		o->audit = RUN_AUDIT_OFF;
	else
		return cli_usage_error(self,
		                       "--audit is required, best-effort or off, not \"%.40s\"", v);
	return 0;
}

static int take_row(run_cli_options *o, cli_args *a, const option_row *row)
{
	char *at = (char *)o + row->offset;
	if (row->how == TAKE_FLAG) {
		if (a->inline_value)
			return cli_usage_error(a->verb, "--%s takes no value", a->name);
		*(bool *)at = true;
		return 0;
	}
	const char *v = cli_args_value(a);
	long n;
	sw_error err;
	if (!v)
		return CLI_USAGE;
	switch (row->how) {
	case TAKE_TEXT:
		*(const char **)at = v;
		return 0;
	case TAKE_LIST: {
		size_t *count = (size_t *)((char *)o + row->count);
		if (*count == row->max)
			return cli_usage_error(a->verb, "at most %zu --%s", row->max, a->name);
		((const char **)at)[(*count)++] = v;
		return 0;
	}
	case TAKE_DURATION:
		if (sw_duration_parse(v, (int64_t *)at, &err)) {
			sw_error_print(stderr, &err);
			return CLI_USAGE;
		}
		return 0;
	case TAKE_NUMBER:
		if (!number(v, 0, (long)row->max, &n))
			return cli_usage_error(a->verb, "--%s needs a number from 0 to %zu",
			                       a->name, row->max);
		*(size_t *)at = (size_t)n;
		return 0;
	case TAKE_FD:
		if (!open_fd(v, &o->verdict_fd))
			return cli_usage_error(a->verb,
			                       "--verdict-fd %.20s is not an open descriptor", v);
		fcntl(o->verdict_fd, F_SETFD, FD_CLOEXEC);
		return 0;
	default:
		return take_other(o, a, v);
	}
}

/* --network alone grants it to --sandbox; with a value it is a fact, as classify takes it. */
static int take_network(run_cli_options *o, cli_args *a)
{
	const char *v = a->inline_value;
	if (!v && a->at < a->argc &&
	    (!strcmp(a->argv[a->at], "allowed") || !strcmp(a->argv[a->at], "denied")))
		v = a->argv[a->at++];
	sw_error err;
	if (v && cli_facts_option(&o->f, "network", v, &err) < 0) {
		sw_error_print(stderr, &err);
		return CLI_USAGE;
	}
	if (!v)
		o->f.facts.network = SW_NETWORK_ALLOWED;
	o->network_allowed = o->f.facts.network == SW_NETWORK_ALLOWED;
	return 0;
}

static int take_fact(run_cli_options *o, cli_args *a)
{
	static const char *const facts[] = {"mode", "enforcement", "writable-root", "accessible"};
	bool known = false;
	for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
		known |= !strcmp(a->name, facts[i]);
	if (!known)
		return cli_args_unknown(a);
	const char *v = cli_args_value(a);
	sw_error err;
	if (!v)
		return CLI_USAGE;
	if (cli_facts_option(&o->f, a->name, v, &err) < 0) {
		sw_error_print(stderr, &err);
		return CLI_USAGE;
	}
	return 0;
}

static int take_option(run_cli_options *o, cli_args *a)
{
	if (!strcmp(a->name, "network"))
		return take_network(o, a);
	if (!strcmp(a->name, "cwd")) {
		o->cwd = cli_args_value(a);
		return o->cwd ? 0 : CLI_USAGE;
	}
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (!strcmp(a->name, rows[i].name))
			return take_row(o, a, &rows[i]);
	int taken = probe_cli_policy_option(&o->policy, a);
	if (taken)
		return taken < 0 ? -taken : 0;
	return take_fact(o, a);
}

int run_cli_parse(run_cli_options *o, const cli_verb *self, int argc, char **argv)
{
	memset(o, 0, sizeof *o);
	o->verdict_fd = -1;
	run_place_open(&o->place, NULL);
	cli_facts_init(&o->f);
	probe_cli_policy_init(&o->policy);
	/* what stands behind the first "--" is the command's, whatever it looks like */
	int split = 1;
	while (split < argc && strcmp(argv[split], "--") != 0)
		split++;
	cli_args a;
	cli_args_init(&a, self, split, argv);
	for (int t; (t = cli_args_next(&a));) {
		if (t == 2)
			return cli_usage_error(self,
			                       "\"%.60s\" before --: the command stands behind it",
			                       a.inline_value);
		int rc = take_option(o, &a);
		if (rc)
			return rc;
	}
	if (split + 1 >= argc)
		return cli_usage_error(self, "no command: put it behind --");
	for (size_t i = 0; i < o->n_labels; i++)
		if (!strchr(o->labels[i], '=') || o->labels[i][0] == '=')
			return cli_usage_error(self, "--label \"%.60s\" is not KEY=VALUE",
			                       o->labels[i]);
	o->policy.policy.network = o->network_allowed;
	run_place_open(&o->place, o->verdict_file);
	o->argv = argv + split + 1;
	o->argc = argc - split - 1;
	return 0;
}
