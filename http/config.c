#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base.h"

typedef enum {
	OPT_LISTEN,
	OPT_HOST,
	OPT_ORIGIN,
	OPT_TEXT,
	OPT_INT,
	OPT_SIZE,
	OPT_MODE,
	OPT_TIME,
	OPT_YES
} opt_kind;

typedef struct option_row {
	const char *name;
	opt_kind kind;
	size_t at;         /* offset in http_config */
	const char *value; /* placeholder */
	const char *preset;
	int64_t min, max;
	const char *help;
} option_row;

#define AT(field) offsetof(http_config, field)
#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define MS INT64_C(1000000)
#define SEC (1000 * MS)

static const option_row options[] = {
    {"listen", OPT_LISTEN, 0, "WHERE", NULL, 0, 0,
     "unix:PATH, 127.0.0.1:PORT or [::1]:PORT; repeatable (default: a unix socket in the runtime "
     "directory)"},
    {"db", OPT_TEXT, AT(db), "PATH", NULL, 0, 0, "audit trail (default: as for the command line)"},
    {"token-file", OPT_TEXT, AT(token_file), "PATH", NULL, 0, 0,
     "bearer token for TCP; made with mode 0600 if absent (default: http-token beside the trail)"},
    {"allow-host", OPT_HOST, 0, "NAME[:PORT]", NULL, 0, 0,
     "accept this Host header too, as behind a reverse proxy; repeatable"},
    {"allow-origin", OPT_ORIGIN, 0, "ORIGIN", NULL, 0, 0,
     "accept requests that a browser sends for this origin; repeatable"},
    {"socket-mode", OPT_MODE, AT(socket_mode), "MODE", "0600", 0, 0777, "mode of the unix socket"},
    {"max-connections", OPT_INT, AT(max_connections), "N", "64", 1, 4096,
     "connections per listener; further ones are closed at once"},
    {"timeout", OPT_TIME, AT(timeout_ns), "TIME", "10s", 100 * MS, 3600 * SEC,
     "for a request's head, and for an idle connection; bodies and answers get three times that"},
    {"max-body", OPT_SIZE, AT(max_body), "SIZE", "8MiB", KIB, 1024 * MIB, "body of one request"},
    {"max-body-total", OPT_SIZE, AT(max_body_total), "SIZE", "64MiB", KIB, 65536 * MIB,
     "bodies of all requests at one moment"},
    {"max-header", OPT_SIZE, AT(max_header), "SIZE", "16KiB", KIB, MIB,
     "request line and headers of one request"},
    {"max-streams", OPT_INT, AT(max_streams), "N", "16", 0, 1024, "event streams at one moment"},
    {"heartbeat", OPT_TIME, AT(heartbeat_ns), "TIME", "5s", 100 * MS, 600 * SEC,
     "a comment on an event stream that has had no news for so long"},
    {"stall", OPT_TIME, AT(stall_ns), "TIME", "30s", 100 * MS, 3600 * SEC,
     "an event stream whose client takes nothing for so long is ended"},
    {"max-queue", OPT_INT, AT(max_queue), "N", "256", 1, 65536, "writes waiting for a commit"},
    {"max-group", OPT_INT, AT(max_group), "N", "128", 1, 4096, "records in one commit"},
    {"poll", OPT_TIME, AT(poll_ns), "TIME", "250ms", 10 * MS, 60 * SEC,
     "how often commits of other processes are looked for"},
    {"shutdown-timeout", OPT_TIME, AT(shutdown_ns), "TIME", "10s", 0, 600 * SEC,
     "for accepted requests to finish after SIGTERM"},
    {"probe-age", OPT_TIME, AT(probe_age_ns), "TIME", "10m", 0, 86400 * SEC,
     "probes shown by the status are repeated after so long; 0s: only on request"},
    {"probe-timeout", OPT_TIME, AT(probe_timeout_ns), "TIME", "5s", 100 * MS, 120 * SEC,
     "deadline of one backend's probe"},
    {"signatures", OPT_TEXT, AT(signatures), "DIR", NULL, 0, 0, "further signature packs"},
    {"pack-set", OPT_TEXT, AT(pack_set), "NAME", NULL, 0, 0, "another built-in set of packs"},
    {"confined", OPT_YES, AT(confined), NULL, NULL, 0, 0,
     "the service runs confined, as under its systemd unit: probes answer not_probed"},
    {"no-self-sandbox", OPT_YES, AT(no_self_sandbox), NULL, NULL, 0, 0,
     "keep files, network and programs within reach that the service never needs"},
    {"print-token", OPT_YES, AT(print_token), NULL, NULL, 0, 0,
     "print the dashboard's address with the token even where stdout is no terminal"},
    {"quiet", OPT_YES, AT(quiet), NULL, NULL, 0, 0, "log problems only"},
};
enum { N_OPTIONS = sizeof(options) / sizeof(options[0]) };

static int set_text(char **to, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return SW_ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

static int parse_size(const char *word, int64_t *out)
{
	static const struct {
		const char *unit;
		int64_t factor;
	} units[] = {{"", 1},           {"b", 1},           {"k", KIB},   {"kib", KIB},
	             {"m", MIB},        {"mib", MIB},       {"kb", 1000}, {"mb", 1000000},
	             {"g", 1024 * MIB}, {"gib", 1024 * MIB}};
	char *end;

	if (!isdigit((unsigned char)*word))
		return SW_EINVAL;
	errno = 0;
	long long n = strtoll(word, &end, 10);
	if (errno)
		return SW_EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcasecmp(end, units[i].unit))
			return __builtin_mul_overflow((int64_t)n, units[i].factor, out) ? SW_EINVAL
			                                                                : 0;
	return SW_EINVAL;
}

static int parse_port(const char *word, int *out)
{
	char *end;

	if (!isdigit((unsigned char)*word))
		return SW_EINVAL;
	errno = 0;
	long port = strtol(word, &end, 10);
	if (errno || *end || port < 0 || port > 65535)
		return SW_EINVAL;
	*out = (int)port;
	return 0;
}

int http_listen_parse(http_listen_spec *out, const char *word, sw_error *err)
{
	static const struct {
		const char *text, *host;
	} hosts[] = {{"127.0.0.1:", "127.0.0.1"}, {"localhost:", "127.0.0.1"}, {"[::1]:", "::1"}};
	http_listen_spec spec = {0};
	const char *rest = word;

	if (!strncmp(word, "unix:", 5) || *word == '/') {
		rest = *word == '/' ? word : word + 5;
		if (!*rest) {
			sw_error_set(err, SW_EINVAL, "unix: needs a path");
			return sw_error_more(err, "--listen", NULL,
			                     "write unix:/run/user/1000/x.sock");
		}
		spec.kind = HTTP_LISTEN_UNIX;
		if (!(spec.path = strdup(rest)))
			return sw_error_set(err, SW_ENOMEM, "out of memory");
		*out = spec;
		return 0;
	}
	if (!strncmp(word, "tcp:", 4))
		rest = word + 4;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		size_t n = strlen(hosts[i].text);
		if (strncasecmp(rest, hosts[i].text, n) != 0)
			continue;
		if (parse_port(rest + n, &spec.port)) {
			sw_error_set(err, SW_EINVAL, "'%s': not a port", rest + n);
			return sw_error_more(err, "--listen", NULL,
			                     "a port is 0 to 65535; 0 takes any free one");
		}
		spec.kind = HTTP_LISTEN_TCP;
		if (!(spec.host = strdup(hosts[i].host)))
			return sw_error_set(err, SW_ENOMEM, "out of memory");
		*out = spec;
		return 0;
	}
	sw_error_set(err, SW_EINVAL, "'%s': not an address this service listens on", word);
	return sw_error_more(
	    err, "--listen",
	    "records and commands must not be reachable from other machines without "
	    "encryption",
	    "use unix:PATH, 127.0.0.1:PORT or [::1]:PORT, and a reverse proxy with "
	    "TLS in front for other machines (docs/operations.md)");
}

static int add_name(char **names, size_t *n, const char *value, const option_row *row,
                    sw_error *err)
{
	bool origin = row->kind == OPT_ORIGIN;

	if (*n == HTTP_NAMES_MAX) {
		sw_error_set(err, SW_ETOOBIG, "more than %d of --%s", HTTP_NAMES_MAX, row->name);
		return sw_error_more(err, row->name, NULL, "name the ones that are really used");
	}
	bool bad = !*value || strchr(value, '*') || strpbrk(value, " \t,\\@");
	if (origin)
		bad = bad ||
		      (strncmp(value, "http://", 7) != 0 && strncmp(value, "https://", 8) != 0) ||
		      strchr(strstr(value, "://") + 3, '/');
	else
		bad = bad || strchr(value, '/') || !strcmp(value, "0.0.0.0");
	if (bad) {
		sw_error_set(err, SW_EINVAL, "'%s': not %s", value,
		             origin ? "an origin" : "a host name");
		return sw_error_more(err, row->name, "the list is exact: no patterns",
		                     origin ? "write https://name or https://name:port"
		                            : "write name or name:port");
	}
	char *copy = strdup(value);
	if (!copy)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	for (char *p = copy; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	names[(*n)++] = copy;
	return 0;
}

static int apply(http_config *c, const option_row *row, const char *value, sw_error *err)
{
	void *at = (char *)c + row->at;
	int64_t n = 0;
	int code = 0;

	switch (row->kind) {
	case OPT_LISTEN:
		if (c->n_listen == HTTP_LISTENERS_MAX) {
			sw_error_set(err, SW_ETOOBIG, "more than %d listeners", HTTP_LISTENERS_MAX);
			return sw_error_more(err, "--listen", NULL, "name fewer");
		}
		code = http_listen_parse(&c->listen[c->n_listen], value, err);
		c->n_listen += !code;
		return code;
	case OPT_HOST:
		return add_name(c->allow_host, &c->n_allow_host, value, row, err);
	case OPT_ORIGIN:
		return add_name(c->allow_origin, &c->n_allow_origin, value, row, err);
	case OPT_TEXT:
		return set_text(at, value) ? sw_error_set(err, SW_ENOMEM, "out of memory") : 0;
	case OPT_YES:
		*(bool *)at = true;
		return 0;
	case OPT_TIME:
		/* "0s" is a time here, whatever the parser of durations thinks of zero */
		code = !strcmp(value, "0s") || !strcmp(value, "0")
		           ? 0
		           : sw_duration_parse(value, &n, NULL);
		break;
	case OPT_SIZE:
		code = parse_size(value, &n);
		break;
	case OPT_INT:
	case OPT_MODE: {
		char *end;
		errno = 0;
		n = strtoll(value, &end, row->kind == OPT_MODE ? 8 : 10);
		code = errno || *end || !isdigit((unsigned char)*value) ? SW_EINVAL : 0;
		break;
	}
	}
	if (code || n < row->min || n > row->max) {
		sw_error_set(err, SW_EINVAL, "'%s': not a %s in range", value, row->value);
		return sw_error_more(err, row->name, row->help, "leave it out for the default");
	}
	*(int64_t *)at = n;
	return 0;
}

void http_config_init(http_config *c)
{
	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (options[i].preset)
			apply(c, &options[i], options[i].preset, NULL);
}

void http_config_free(http_config *c)
{
	for (size_t i = 0; i < c->n_listen; i++) {
		free(c->listen[i].path);
		free(c->listen[i].host);
	}
	for (size_t i = 0; i < c->n_allow_host; i++)
		free(c->allow_host[i]);
	for (size_t i = 0; i < c->n_allow_origin; i++)
		free(c->allow_origin[i]);
	free(c->db);
	free(c->token_file);
	free(c->signatures);
	free(c->pack_set);
	memset(c, 0, sizeof(*c));
}

static const option_row *find(const char *name, size_t n)
{
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (strlen(options[i].name) == n && !memcmp(options[i].name, name, n))
			return &options[i];
	return NULL;
}

int http_config_parse(http_config *c, int argc, char **argv, bool *answered, sw_error *err)
{
	*answered = false;
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];
		if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
			http_config_help(stdout);
			*answered = true;
			return 0;
		}
		if (!strcmp(arg, "--version")) {
			printf("sandwitnessd %s\n", SW_VERSION);
			*answered = true;
			return 0;
		}
		const char *value = NULL;
		const option_row *row = NULL;
		if (!strncmp(arg, "--", 2)) {
			size_t n = strcspn(arg + 2, "=");
			row = find(arg + 2, n);
			if (row && arg[2 + n] == '=')
				value = arg + 3 + n;
		}
		if (!row) {
			sw_error_set(err, SW_EINVAL, "'%s' is not known here", arg);
			return sw_error_more(err, "serve", NULL,
			                     "sandwitnessd --help lists the options");
		}
		bool takes = row->kind != OPT_YES;
		if (takes && !value) {
			if (i + 1 == argc) {
				sw_error_set(err, SW_EINVAL, "--%s needs %s", row->name,
				             row->value);
				return sw_error_more(err, row->name, NULL, row->help);
			}
			value = argv[++i];
		} else if (!takes && value) {
			sw_error_set(err, SW_EINVAL, "--%s takes no value", row->name);
			return sw_error_more(err, row->name, NULL, row->help);
		}
		int code = apply(c, row, value, err);
		if (code)
			return code;
	}
	return 0;
}

void http_config_help(FILE *to)
{
	fputs("usage: sandwitness serve [OPTION]...\n\n"
	      "Answers over HTTP on a unix socket and, on request, on loopback TCP: status,\n"
	      "classification, the audit trail, reports, events, metrics and a dashboard.\n\n",
	      to);
	for (size_t i = 0; i < N_OPTIONS; i++) {
		char left[64];
		snprintf(left, sizeof(left), "--%s%s%s", options[i].name,
		         options[i].value ? " " : "", options[i].value ? options[i].value : "");
		fprintf(to, "  %-28s %s", left, options[i].help);
		if (options[i].preset)
			fprintf(to, " (default: %s)", options[i].preset);
		fputc('\n', to);
	}
	fputs("\nexamples:\n"
	      "  sandwitness serve --listen 127.0.0.1:8765\n"
	      "  sandwitness serve --listen unix:/run/sandwitness/api.sock --listen '[::1]:8765'\n",
	      to);
}
