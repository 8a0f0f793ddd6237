/* sandwitness doctor */
#include "probe_cli.h"

#include <string.h>
#include <unistd.h>

enum { DOCTOR_WARNINGS = 10, DOCTOR_BROKEN = 11 };

static const char *const marks[SW_CHECK_COUNT] = {"[ok]", "[!]", "[x]", "[-]"};
static const char *const colours[SW_CHECK_COUNT] = {"\033[32m", "\033[33m", "\033[31m", ""};

static int verdict(const sw_check *c, size_t n)
{
	int rc = CLI_OK;
	for (size_t i = 0; i < n; i++) {
		if (c[i].status == SW_CHECK_BROKEN)
			return DOCTOR_BROKEN;
		if (c[i].status == SW_CHECK_WARNING)
			rc = DOCTOR_WARNINGS;
	}
	return rc;
}

static const char *word(int rc)
{
	return rc == CLI_OK ? "ok" : rc == DOCTOR_WARNINGS ? "warnings" : "broken";
}

static void print_checks(const sw_check *c, size_t n, int rc)
{
	bool colour = sw_colour_wanted(STDOUT_FILENO);
	for (size_t i = 0; i < n; i++) {
		printf("%s%-4s%s %-28s ", colour ? colours[c[i].status] : "", marks[c[i].status],
		       colour && colours[c[i].status][0] ? "\033[0m" : "", c[i].id);
		probe_cli_puts(stdout, c[i].message);
		putchar('\n');
		if (c[i].fix[0]) {
			fputs("       fix: ", stdout);
			probe_cli_puts(stdout, c[i].fix);
			putchar('\n');
		}
	}
	printf("\n%s\n", rc == CLI_OK            ? "everything is fine"
	                 : rc == DOCTOR_WARNINGS ? "it works; the lines with [!] could be better"
	                                         : "broken: mend the lines with [x]");
}

static json_t *checks_json(const sw_check *c, size_t n, int rc)
{
	json_t *o = json_object(), *list = json_array();
	for (size_t i = 0; i < n; i++) {
		json_t *k = json_object();
		json_object_set_new(k, "id", sw_json_z(c[i].id));
		json_object_set_new(k, "status", sw_json_z(sw_check_status_name(c[i].status)));
		json_object_set_new(k, "message", sw_json_text(sw_str_of(c[i].message)));
		json_object_set_new(k, "fix",
		                    c[i].fix[0] ? sw_json_text(sw_str_of(c[i].fix)) : json_null());
		json_array_append_new(list, k);
	}
	json_object_set_new(o, "schema", json_integer(1));
	json_object_set_new(o, "status", sw_json_z(word(rc)));
	json_object_set_new(o, "checks", list);
	return o;
}

static int run(int argc, char **argv)
{
	const cli_verb *self = cli_verb_find("doctor");
	sw_probe_options o = {.probe = true, .no_recheck = true};
	bool json = false;
	const char *os_release = NULL;
	cli_args a;
	cli_args_init(&a, self, argc, argv);
	for (int t; (t = cli_args_next(&a));) {
		if (t == 2)
			return cli_usage_error(self, "no argument is taken: \"%.60s\"",
			                       a.inline_value);
		if (!strcmp(a.name, "os-release")) {
			if (!(os_release = cli_args_value(&a)))
				return CLI_USAGE;
			continue;
		}
		int taken = probe_cli_option(&a, &o, &json);
		if (taken < 0)
			return -taken;
		if (!taken)
			return cli_args_unknown(&a);
	}
	sw_status *s = NULL;
	sw_error e;
	probe_cli_defaults(&o);
	if (sw_status_read(&s, &o, &e))
		return cli_fail(&e);
	sw_check checks[SW_CHECKS_MAX];
	size_t n = sw_doctor(s, os_release, checks);
	int rc = verdict(checks, n);
	if (json)
		cli_print_json(stdout, checks_json(checks, n, rc));
	else
		print_checks(checks, n, rc);
	sw_status_free(s);
	return rc;
}

const cli_verb cli_verb_doctor = {
    .name = "doctor",
    .summary = "a checklist: what is right here, what is not, one fix per line",
    .usage = "[--deadline 5s] [--image I] [--os-release FILE] [--json]",
    .help = "Probes every backend and looks at the host; changes nothing and uses no network.\n"
            "Ids are stable. Exit status: 0 fine, 10 warnings, 11 broken (nothing confines).\n\n"
            "  --os-release FILE  give install commands for another system than this one\n\n"
            "Examples:\n"
            "  $ sandwitness doctor\n"
            "  $ sandwitness doctor --json\n",
    .run = run,
};
