/* The pack set in force: built-in packs, and the user's in front of them. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define SYSTEM_DIR "/etc/sandwitness/signatures.d"

/* One set and its packs for the life of the program; the command line is one thread. */
static struct {
	bool ready;
	sw_loaded *loaded;
	sw_pack_set set;
	const sw_pack_def **defs;
	sw_pack_file *files;
	size_t n_files;
	struct {
		sw_pack *pack;
	} packs[64];
	size_t n_packs;
} in_force;

static void broken(void *payload, const sw_error *e)
{
	bool *any = payload;
	*any = true;
	fputs("sandwitness: warning: this pack is left out\n", stderr);
	sw_error_print(stderr, e);
}

/* Folders need not exist, but one named on the command line must. */
static bool load_dir(const char *dir, bool must)
{
	sw_error err;
	bool any_broken = false;
	if (!dir)
		return true;
	int rc = sw_load_dir(in_force.loaded, dir, broken, &any_broken, &err);
	if (rc && (must || rc != SW_ENOTFOUND)) {
		cli_fail(&err);
		return false;
	}
	return true;
}

const sw_pack_set *cli_pack_set(const char *signatures_dir, const char *pack_set)
{
	if (in_force.ready)
		return &in_force.set;
	const sw_pack_file *builtin;
	size_t n = pack_set && strcmp(pack_set, "default") != 0 ? sw_builtin_set(pack_set, &builtin)
	                                                        : sw_builtin_files(&builtin);
	if (!n) {
		sw_error err;
		sw_error_set(&err, SW_ENOTFOUND, "no pack set \"%.60s\"", pack_set);
		sw_error_more(&err, "--pack-set", NULL, "default or compat-nous");
		sw_error_print(stderr, &err);
		return NULL;
	}
	sw_error err;
	char *home = sw_xdg_path("XDG_CONFIG_HOME", "signatures.d");
	if (!home && sw_text_lacked()) { /* the user's signatures must not be passed over */
		cli_no_memory();
		return NULL;
	}
	if (sw_loaded_new(&in_force.loaded, &err)) {
		free(home);
		cli_fail(&err);
		return NULL;
	}
	bool ok =
	    load_dir(signatures_dir, true) && load_dir(SYSTEM_DIR, false) && load_dir(home, false);
	free(home);
	if (!ok)
		return NULL;
	const sw_pack_file *user;
	size_t n_user = sw_loaded_files(in_force.loaded, &user);
	in_force.files = calloc(n + n_user + 1, sizeof(*in_force.files));
	in_force.defs = calloc(n + n_user + 1, sizeof(*in_force.defs));
	if (!in_force.files || !in_force.defs) {
		cli_no_memory();
		return NULL;
	}
	if (n_user)
		memcpy(in_force.files, user, n_user * sizeof(*user));
	memcpy(in_force.files + n_user, builtin, n * sizeof(*builtin));
	in_force.n_files = n + n_user;
	for (size_t i = 0; i < in_force.n_files; i++)
		in_force.defs[i] = in_force.files[i].def;
	in_force.set = (sw_pack_set){in_force.defs, in_force.n_files};
	in_force.ready = true;
	return &in_force.set;
}

size_t cli_pack_files(const sw_pack_file **out)
{
	*out = in_force.files;
	return in_force.n_files;
}

const char *cli_pack_origin(const sw_pack_def *def)
{
	const sw_pack_file *builtin;
	size_t n = sw_builtin_files(&builtin);
	for (size_t i = 0; i < n; i++)
		if (builtin[i].def == def)
			return "built-in";
	return def->origin;
}

static int unknown_backend(const sw_pack_set *set, const char *backend, sw_error *err)
{
	char known[384] = "known:";
	for (size_t i = 0; i < set->n_defs; i++) {
		const char *b = set->defs[i]->backend;
		bool seen = strcmp(b, "common") == 0;
		for (size_t k = 0; k < i && !seen; k++)
			seen = strcmp(set->defs[k]->backend, b) == 0;
		size_t n = strlen(known);
		if (!seen)
			snprintf(known + n, sizeof(known) - n, " %s", b);
	}
	sw_error_set(err, SW_ENOTFOUND, "unknown backend \"%.60s\"", backend);
	return sw_error_more(err, "backend", NULL, known);
}

static bool is_known(const sw_pack_set *set, const char *backend)
{
	for (size_t i = 0; i < set->n_defs; i++)
		if (strcmp(set->defs[i]->backend, backend) == 0)
			return strcmp(backend, "common") != 0;
	return false;
}

const sw_pack *cli_pack_quiet(const sw_pack_set *set, const char *backend, sw_error *err)
{
	for (size_t i = 0; i < in_force.n_packs; i++)
		if (strcmp(sw_pack_backend(in_force.packs[i].pack), backend) == 0)
			return in_force.packs[i].pack;
	sw_pack *pack;
	if (!is_known(set, backend)) {
		unknown_backend(set, backend, err);
		return NULL;
	}
	if (sw_pack_new(&pack, set, backend, err))
		return NULL;
	if (in_force.n_packs == sizeof(in_force.packs) / sizeof(in_force.packs[0]))
		sw_pack_free(in_force.packs[--in_force.n_packs].pack);
	in_force.packs[in_force.n_packs++].pack = pack;
	return pack;
}

const sw_pack *cli_pack(const sw_pack_set *set, const char *backend)
{
	sw_error err;
	const sw_pack *pack = cli_pack_quiet(set, backend, &err);
	if (!pack)
		cli_fail(&err);
	return pack;
}

char *cli_db_path(const char *opt)
{
	const char *env = getenv("SANDWITNESS_DB");
	const char *given = opt ? opt : env && env[0] ? env : NULL;
	if (!given)
		return sw_xdg_path("XDG_STATE_HOME", "audit.db");
	char *path = strdup(given);
	if (!path)
		sw_text_lacks();
	return path;
}

int cli_no_db_path(sw_error *err)
{
	if (sw_text_lacked())
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	sw_error_set(err, SW_EINVAL, "no place for the audit trail");
	return sw_error_more(err, "--db", "XDG_STATE_HOME or HOME is longer than a path may be",
	                     "give --db PATH");
}
