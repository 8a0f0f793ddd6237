/* Facts from options: exit, started, mode, network, roots. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	int number;
} signals[] = {{"HUP", 1},   {"INT", 2},   {"QUIT", 3},  {"ILL", 4},   {"TRAP", 5},  {"ABRT", 6},
               {"BUS", 7},   {"FPE", 8},   {"KILL", 9},  {"USR1", 10}, {"SEGV", 11}, {"USR2", 12},
               {"PIPE", 13}, {"ALRM", 14}, {"TERM", 15}, {"XCPU", 24}, {"XFSZ", 25}, {"SYS", 31}};

void cli_facts_init(cli_facts *f)
{
	memset(f, 0, sizeof(*f));
}

int cli_parse_signal(const char *z, int *out, sw_error *err)
{
	const char *name = strncmp(z, "SIG", 3) == 0 ? z + 3 : z;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (strcmp(signals[i].name, name) == 0) {
			*out = signals[i].number;
			return 0;
		}
	}
	char *end;
	errno = 0;
	long v = strtol(z, &end, 10);
	if (errno || end == z || *end || v < 1 || v > 64) {
		sw_error_set(err, SW_EINVAL, "\"%.40s\" is no signal", z);
		return sw_error_more(err, "--signal", NULL,
		                     "a number from 1 to 64, or a name such as SIGSYS");
	}
	*out = (int)v;
	return 0;
}

int cli_parse_exit(const char *z, sw_exit *out, sw_error *err)
{
	char *end;
	errno = 0;
	long long v = strtoll(z, &end, 0);
	if (end == z || *end) {
		sw_error_set(err, SW_EINVAL, "\"%.40s\" is no exit", z);
		return sw_error_more(
		    err, "--exit", NULL,
		    "an integer, as a shell reports it; use --signal for a signal's name");
	}
	if (errno || v < -2147483648LL || v > 4294967295LL) {
		sw_error_set(err, SW_EINVAL, "exit %.40s is out of range", z);
		return sw_error_more(err, "--exit", NULL,
		                     "an integer from -2147483648 to 4294967295");
	}
	out->code = v;
	out->has_code = true;
	return 0;
}

static int bad_name(sw_error *err, const char *option, const char *value, const char *known)
{
	char where[64];
	snprintf(where, sizeof(where), "--%s", option);
	sw_error_set(err, SW_EINVAL, "unknown value \"%.40s\"", value);
	return sw_error_more(err, where, NULL, known);
}

static int set_exit(cli_facts *f, const char *name, const char *value, sw_error *err)
{
	bool is_signal = strcmp(name, "signal") == 0;
	if (f->has_exit) {
		sw_error_set(err, SW_EINVAL, "exit and signal together, or twice");
		return sw_error_more(err, is_signal ? "--signal" : "--exit",
		                     "one process ends in one way", "give one of them");
	}
	f->has_exit = true;
	return is_signal ? cli_parse_signal(value, &f->exit.signal, err)
	                 : cli_parse_exit(value, &f->exit, err);
}

static int add_path(const char *option, sw_str *list, size_t max, size_t *n, const char *value,
                    sw_error *err)
{
	char where[64];
	snprintf(where, sizeof(where), "--%s", option);
	if (value[0] != '/') {
		sw_error_set(err, SW_EINVAL, "\"%.80s\" is not absolute", value);
		return sw_error_more(err, where, NULL, "write a path that begins with /");
	}
	if (*n == max) {
		sw_error_set(err, SW_ETOOBIG, "more than %zu paths", max);
		return sw_error_more(err, where, NULL, NULL);
	}
	list[(*n)++] = sw_str_of(value);
	return 0;
}

int cli_facts_option(cli_facts *f, const char *name, const char *value, sw_error *err)
{
	size_t len = strlen(value);
	int rc = 0;
	if (strcmp(name, "exit") == 0 || strcmp(name, "signal") == 0)
		rc = set_exit(f, name, value, err);
	else if (strcmp(name, "started") == 0) {
		rc = sw_started_parse(value, len, &f->started)
		         ? bad_name(err, name, value, "yes, no or unknown")
		         : 0;
		f->source = f->started == SW_STARTED_UNKNOWN ? SW_SOURCE_NONE : SW_SOURCE_CALLER;
	} else if (strcmp(name, "mode") == 0)
		rc = sw_mode_parse(value, len, &f->facts.mode)
		         ? bad_name(err, name, value,
		                    "read_only, workspace_write, danger_full_access or unknown")
		         : 0;
	else if (strcmp(name, "network") == 0)
		rc = sw_network_parse(value, len, &f->facts.network)
		         ? bad_name(err, name, value, "allowed, denied or unknown")
		         : 0;
	else if (strcmp(name, "enforcement") == 0)
		rc = sw_enforcement_parse(value, len, &f->facts.enforcement)
		         ? bad_name(err, name, value, "full, partial, none or unknown")
		         : 0;
	else if (strcmp(name, "writable-root") == 0) {
		rc = add_path(name, f->roots, 64, &f->facts.n_writable_roots, value, err);
		f->facts.writable_roots = f->roots;
	} else if (strcmp(name, "accessible") == 0) {
		rc = add_path(name, f->accessible, 64, &f->facts.n_accessible, value, err);
		f->facts.accessible = f->accessible;
	} else if (strcmp(name, "cwd") == 0) {
		size_t n = 0;
		rc = add_path(name, &f->facts.cwd, 1, &n, value, err);
	} else
		return 0;
	return rc ? rc : 1;
}
