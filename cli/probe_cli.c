/* probe_cli.c - see probe_cli.h. */
#include "probe_cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int probe_cli_option(cli_args *a, sw_probe_options *o, bool *json)
{
	sw_error e;
	int64_t ns;
	const char *v;
	if (!strcmp(a->name, "json")) {
		*json = true;
		return 1;
	}
	bool deadline = !strcmp(a->name, "deadline"), image = !strcmp(a->name, "image");
	if (!deadline && !image)
		return 0;
	if (!(v = cli_args_value(a)))
		return -CLI_USAGE;
	if (image) {
		o->image = v;
		return 1;
	}
	if (sw_duration_parse(v, &ns, &e)) {
		sw_error_more(&e, "--deadline", NULL, NULL);
		return -cli_fail(&e);
	}
	int64_t ms = ns / 1000000;
	o->deadline_ms = ms < 1 ? 1 : ms > 3600000 ? 3600000 : (int)ms;
	return 1;
}

void probe_cli_defaults(sw_probe_options *o)
{
	if (!o->packs)
		o->packs = cli_pack_set(NULL, NULL);
}

void probe_cli_puts(FILE *to, const char *z)
{
	char *safe = sw_escape_tty(z, strlen(z));
	fputs(safe ? safe : "", to);
	free(safe);
}

void probe_cli_guarantees(FILE *to, uint32_t bits)
{
	char text[SW_GUARANTEES_TEXT_MAX];
	sw_guarantees_text(bits, text);
	fputs(text[0] ? text : "none", to);
}

json_t *probe_cli_guarantees_json(uint32_t bits)
{
	json_t *a = json_array();
	for (int g = 0; g < SW_GUARANTEE_COUNT; g++)
		if (bits & (1u << g))
			json_array_append_new(a, sw_json_z(sw_guarantee_name((sw_guarantee)g)));
	return a;
}

json_t *probe_cli_capability_json(const sw_confine_capability *c)
{
	json_t *o = json_object();
	json_object_set_new(o, "can_reach_network", json_boolean(c->can_reach_network));
	json_object_set_new(o, "reaches_beyond_workspace",
	                    json_boolean(c->reaches_beyond_workspace));
	json_object_set_new(o, "private_data", json_boolean(c->private_data));
	return o;
}

/* ---- policy ---- */

void probe_cli_policy_init(probe_cli_policy *p)
{
	*p = (probe_cli_policy){.policy = {.mode = SW_MODE_UNKNOWN}};
}

static int bad(const char *option, const char *value, const char *why, const char *fix)
{
	sw_error e;
	sw_error_set(&e, SW_EINVAL, "\"%.200s\" %s", value, why);
	sw_error_more(&e, option, NULL, fix);
	return -cli_fail(&e);
}

static int add_path(char **list, size_t *n, const char *option, const char *path)
{
	if (*n == PROBE_CLI_PATHS)
		return bad(option, path, "is one path too many", "at most 256 paths");
	char *real = realpath(path, NULL);
	if (!real)
		return bad(option, path, strerror(errno), "name a path that exists");
	list[(*n)++] = real;
	return 1;
}

static int set_number(probe_cli_policy *p, const char *name, const char *v)
{
	char *end = NULL;
	if (!strcmp(name, "memory-mb")) {
		long n = strtol(v, &end, 10);
		if (*end || end == v || n < 6 || n > 1 << 24)
			return bad("--memory-mb", v, "is no number of megabytes", "6 .. 16777216");
		p->policy.memory_mb = (unsigned)n;
		return 1;
	}
	double d = strtod(v, &end);
	if (*end || end == v || !(d > 0) || d > 4096)
		return bad("--cpus", v, "is no number of processors", "above 0, at most 4096: 1.5");
	p->policy.cpus = d;
	return 1;
}

static int set_bool(bool *to, const char *option, const char *v)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {{"true", true}, {"allowed", true}, {"yes", true},     {"on", true},
	             {"1", true},    {"false", false},  {"denied", false}, {"no", false},
	             {"off", false}, {"0", false}};
	if (!v) {
		*to = true;
		return 1;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(words[i].word, v)) {
			*to = words[i].value;
			return 1;
		}
	return bad(option, v, "is neither true nor false", "true or false");
}

int probe_cli_policy_option(probe_cli_policy *p, cli_args *a)
{
	sw_confine_policy *q = &p->policy;
	const char *n = a->name, *v;
	if (!strcmp(n, "network"))
		return set_bool(&q->network, "--network", a->inline_value);
	if (!strcmp(n, "partial"))
		return set_bool(&q->partial, "--partial", a->inline_value);
	static const char *const with_value[] = {"sandbox", "workspace", "readable",  "writable",
	                                         "env",     "image",     "memory-mb", "cpus"};
	bool known = false;
	for (size_t i = 0; i < sizeof(with_value) / sizeof(*with_value); i++)
		known |= !strcmp(with_value[i], n);
	if (!known)
		return 0;
	if (!(v = cli_args_value(a)))
		return -CLI_USAGE;
	if (!strcmp(n, "sandbox"))
		return sw_mode_parse(v, strlen(v), &q->mode) || q->mode == SW_MODE_UNKNOWN
		           ? bad("--sandbox", v, "is no mode",
		                 "read_only, workspace_write or danger_full_access")
		           : 1;
	if (!strcmp(n, "workspace")) {
		free(p->workspace);
		p->workspace = realpath(v, NULL);
		return p->workspace
		           ? 1
		           : bad("--workspace", v, strerror(errno), "name a folder that exists");
	}
	if (!strcmp(n, "readable"))
		return add_path(p->readable, &q->n_readable, "--readable", v);
	if (!strcmp(n, "writable"))
		return add_path(p->writable, &q->n_writable, "--writable", v);
	if (!strcmp(n, "env")) {
		if (q->n_env == PROBE_CLI_PATHS || !*v || strchr(v, '='))
			return bad("--env", v, "is not the name of a variable",
			           "--env NAME, without a value");
		p->env[q->n_env++] = (sw_env_var){v, getenv(v)};
		return 1;
	}
	if (!strcmp(n, "image")) {
		q->image = v;
		return 1;
	}
	return set_number(p, n, v);
}

int probe_cli_policy_finish(probe_cli_policy *p)
{
	sw_error e;
	sw_confine_policy *q = &p->policy;
	if (!p->workspace && !(p->workspace = realpath(".", NULL)))
		return -bad("--workspace", ".", strerror(errno), "name a folder that exists");
	if (sw_confine_host_read(&p->host, &e))
		return cli_fail(&e);
	q->workspace = p->workspace;
	q->readable = (const char *const *)p->readable;
	q->writable = (const char *const *)p->writable;
	q->env = p->env;
	q->host = &p->host;
	for (size_t i = 0; sw_confine_client_names[i] && i < 32; i++)
		p->client[q->n_client_env++] =
		    (sw_env_var){sw_confine_client_names[i], getenv(sw_confine_client_names[i])};
	q->client_env = p->client;
	return CLI_OK;
}

void probe_cli_policy_free(probe_cli_policy *p)
{
	for (size_t i = 0; i < p->policy.n_readable; i++)
		free(p->readable[i]);
	for (size_t i = 0; i < p->policy.n_writable; i++)
		free(p->writable[i]);
	free(p->workspace);
	sw_confine_host_free(&p->host);
}
