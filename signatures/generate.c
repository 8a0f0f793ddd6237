/*
 * Build-time program: packs and causes as C tables, so that the finished program
 * works alone and parses nothing at start.
 *
 *   generate PACKS.c INFOS.c [--set NAME FILE...]... -- FILE...
 */
#include "core.h"
#include "loader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void put_string(FILE *f, const char *z, size_t n)
{
	fputc('"', f);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)z[i];
		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f || c == '?')
			fprintf(f, "\\%03o", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

static void put_z(FILE *f, const char *z)
{
	if (z)
		put_string(f, z, strlen(z));
	else
		fputs("NULL", f);
}

static void put_list(FILE *f, const char *name, size_t a, size_t b, const char *const *list,
                     size_t n)
{
	if (!n)
		return;
	fprintf(f, "static const char *const %s_%zu_%zu[] = {", name, a, b);
	for (size_t i = 0; i < n; i++) {
		put_z(f, list[i]);
		fputs(", ", f);
	}
	fputs("};\n", f);
}

static void put_exits(FILE *f, const char *name, size_t a, size_t b, const int64_t *list, size_t n)
{
	if (!n)
		return;
	fprintf(f, "static const int64_t %s_%zu_%zu[] = {", name, a, b);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "INT64_C(%" PRId64 "), ", list[i]);
	fputs("};\n", f);
}

/* Literals that look at a gram, by its hash: where many do, each hit is compared with all of them.
 */
static uint16_t users[1u << SW_GRAM_MAP_BITS];

static uint16_t *users_of(const char *p)
{
	uint32_t g;
	memcpy(&g, p, sizeof(g));
	return &users[((g | SW_GRAM_FOLD) * SW_GRAM_FACTOR) >> (32 - SW_GRAM_MAP_BITS)];
}

/* The place that ordinary logs seldom hold and few other literals look at. */
static uint32_t find_place(const char *folded, uint32_t n)
{
	enum { HIT_WEIGHT = 8 };
	uint32_t grams = n >= SW_LONG_MIN ? 4 : 1, best = 0;
	uint64_t best_cost = UINT64_MAX;
	for (uint32_t at = 0; at + grams + 3 <= n; at++) {
		uint64_t cost = 0;
		for (uint32_t k = 0; k < grams; k++)
			cost += HIT_WEIGHT * (uint64_t)sw_gram_hits(folded + at + k) +
			        *users_of(folded + at + k);
		if (cost < best_cost) {
			best_cost = cost;
			best = at;
		}
	}
	for (uint32_t k = 0; k < grams; k++)
		++*users_of(folded + best + k);
	return best;
}

/* Where the scan looks in each literal, worked out once here. */
static void put_places(FILE *f, size_t a, size_t b, const sw_sig_def *d)
{
	if (!d->n_literals)
		return;
	fprintf(f, "static const uint16_t places_%zu_%zu[] = {", a, b);
	for (size_t i = 0; i < d->n_literals; i++) {
		char folded[513];
		size_t n = strlen(d->literals[i]);
		bool known = n >= SW_LITERAL_MIN && n < sizeof(folded) &&
		             !strstr(d->literals[i], "{runner}");
		for (size_t k = 0; known && k < n; k++)
			folded[k] = (char)sw_fold((unsigned char)d->literals[i][k]);
		fprintf(f, "%u, ", known ? find_place(folded, (uint32_t)n) : SW_PLACE_UNKNOWN);
	}
	fputs("};\n", f);
}

static void put_ref(FILE *f, const char *field, const char *name, size_t a, size_t b, size_t n)
{
	if (n)
		fprintf(f, "\t .%s = %s_%zu_%zu, .n_%s = %zu,\n", field, name, a, b, field, n);
}

static void put_sig(FILE *f, size_t a, size_t b, const sw_sig_def *d)
{
	fputs("\t{.id = ", f);
	put_z(f, d->id);
	fprintf(f, ", .kind = SW_KIND_%d_, .regex = ", (int)d->kind);
	put_z(f, d->regex);
	fputs(", .cause = ", f);
	put_z(f, d->cause);
	fputs(",\n", f);
	put_ref(f, "literals", "literals", a, b, d->n_literals);
	if (d->n_literals)
		fprintf(f, "\t .places = places_%zu_%zu,\n", a, b);
	put_ref(f, "only_exit", "only", a, b, d->n_only_exit);
	put_ref(f, "except_exit", "except", a, b, d->n_except_exit);
	fprintf(f,
	        "\t .stage = (sw_stage)%d, .operation = (sw_operation)%d, .confidence = "
	        "(sw_confidence)%d, .decides = (sw_decides)%d, .with = %uu,\n",
	        (int)d->stage, (int)d->operation, (int)d->confidence, (int)d->decides, d->with);
	fprintf(f,
	        "\t .scope = (sw_scope)%d, .position = %d, .generic = %d, .full_line = %d, .limit "
	        "= (sw_limit_kind)%d, .certainty = (sw_certainty)%d, .lowers = %uu,\n",
	        (int)d->scope, d->position, d->generic, d->full_line, (int)d->limit,
	        (int)d->certainty, d->lowers);
	fputs("\t .origin = ", f);
	put_z(f, d->origin);
	fputs("},\n", f);
}

static void put_pack(FILE *f, size_t a, const sw_pack_def *d)
{
	put_list(f, "extends", a, 0, d->extends, d->n_extends);
	put_list(f, "prefixes", a, 0, d->prefixes, d->n_prefixes);
	put_list(f, "prefix_regexes", a, 0, d->prefix_regexes, d->n_prefix_regexes);
	put_list(f, "names", a, 0, d->names, d->n_names);
	for (size_t b = 0; b < d->n_sigs; b++) {
		put_list(f, "literals", a, b, d->sigs[b].literals, d->sigs[b].n_literals);
		put_places(f, a, b, &d->sigs[b]);
		put_exits(f, "only", a, b, d->sigs[b].only_exit, d->sigs[b].n_only_exit);
		put_exits(f, "except", a, b, d->sigs[b].except_exit, d->sigs[b].n_except_exit);
	}
	if (d->n_sigs) {
		fprintf(f, "static const sw_sig_def sigs_%zu[] = {\n", a);
		for (size_t b = 0; b < d->n_sigs; b++)
			put_sig(f, a, b, &d->sigs[b]);
		fputs("};\n", f);
	}
	if (d->n_adjusts) {
		fprintf(f, "static const sw_adjust_def adjusts_%zu_0[] = {\n", a);
		for (size_t b = 0; b < d->n_adjusts; b++) {
			fputs("\t{.id = ", f);
			put_z(f, d->adjusts[b].id);
			fprintf(f,
			        ", .decides = %d, .with = %uu, .confidence = %d, .disable = %d},\n",
			        d->adjusts[b].decides, d->adjusts[b].with, d->adjusts[b].confidence,
			        d->adjusts[b].disable);
		}
		fputs("};\n", f);
	}
	fprintf(f,
	        "extern const sw_pack_def sw_builtin_def_%zu;\nconst sw_pack_def "
	        "sw_builtin_def_%zu = {.backend = ",
	        a, a);
	put_z(f, d->backend);
	fputs(", .title = ", f);
	put_z(f, d->title);
	fputs(", .origin = ", f);
	put_z(f, d->origin);
	fputs(",\n", f);
	put_ref(f, "extends", "extends", a, 0, d->n_extends);
	put_ref(f, "prefixes", "prefixes", a, 0, d->n_prefixes);
	put_ref(f, "prefix_regexes", "prefix_regexes", a, 0, d->n_prefix_regexes);
	put_ref(f, "names", "names", a, 0, d->n_names);
	put_ref(f, "adjusts", "adjusts", a, 0, d->n_adjusts);
	if (d->n_sigs)
		fprintf(f, "\t .sigs = sigs_%zu, .n_sigs = %u,\n", a, d->n_sigs);
	fprintf(f,
	        "\t .priority_prefix = %d, .fatal_position = (sw_position)%d, .windows = %d, "
	        ".utf16le = %d, .unconfined = %d};\n\n",
	        d->priority_prefix, (int)d->fatal_position, d->windows, d->utf16le, d->unconfined);
}

static void put_samples(FILE *f, const char *name, size_t a, size_t b, const sw_sample *list,
                        size_t n)
{
	if (!n)
		return;
	fprintf(f, "static const sw_sample %s_%zu_%zu[] = {\n", name, a, b);
	for (size_t i = 0; i < n; i++) {
		fputs("\t{.line = ", f);
		put_string(f, list[i].line, list[i].line_len);
		fprintf(f, ", .line_len = %zu, .resource = ", list[i].line_len);
		put_z(f, list[i].resource);
		fputs(", .resource_kind = ", f);
		put_z(f, list[i].resource_kind);
		fprintf(f, ", .exit = INT64_C(%" PRId64 "), .has_exit = %d},\n", list[i].exit,
		        list[i].has_exit);
	}
	fputs("};\n", f);
}

static void put_infos(FILE *f, size_t a, const sw_pack_file *p)
{
	for (size_t b = 0; b < p->def->n_sigs; b++) {
		put_samples(f, "samples", a, b, p->infos[b].samples, p->infos[b].n_samples);
		put_samples(f, "near_misses", a, b, p->infos[b].near_misses,
		            p->infos[b].n_near_misses);
	}
	fprintf(f, "extern const sw_pack_def sw_builtin_def_%zu;\n", a);
	fprintf(f, "static const sw_sig_info infos_%zu[] = {\n", a);
	for (size_t b = 0; b < p->def->n_sigs; b++) {
		fputs("\t{.versions = ", f);
		put_z(f, p->infos[b].versions);
		fputs(", .source = ", f);
		put_z(f, p->infos[b].source);
		fputs(",\n", f);
		put_ref(f, "samples", "samples", a, b, p->infos[b].n_samples);
		put_ref(f, "near_misses", "near_misses", a, b, p->infos[b].n_near_misses);
		fputs("\t},\n", f);
	}
	fputs("\t{0}};\n", f);
}

static void put_causes(FILE *f, const sw_cause *causes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		put_list(f, "checks", i, 0, causes[i].checks, causes[i].n_checks);
		if (!causes[i].n_remedies)
			continue;
		fprintf(f, "static const sw_remedy remedies_%zu_0[] = {\n", i);
		for (size_t k = 0; k < causes[i].n_remedies; k++) {
			const sw_remedy *r = &causes[i].remedies[k];
			fputs("\t{.for_whom = ", f);
			put_z(f, r->for_whom);
			fputs(", .what = ", f);
			put_z(f, r->what);
			fputs(", .risk = ", f);
			put_z(f, r->risk);
			fprintf(f, ", .tested = %d},\n", r->tested);
		}
		fputs("};\n", f);
	}
	fputs("static const sw_cause causes[] = {\n", f);
	for (size_t i = 0; i < n; i++) {
		const sw_cause *c = &causes[i];
		const char *const texts[][2] = {{"slug", c->slug},
		                                {"title", c->title},
		                                {"why", c->why},
		                                {"verify", c->verify},
		                                {"cannot_help", c->cannot_help},
		                                {"origin", c->origin}};
		fputs("\t{", f);
		for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
			fprintf(f, ".%s = ", texts[k][0]);
			put_z(f, texts[k][1]);
			fputs(", ", f);
		}
		fputs("\n", f);
		put_ref(f, "checks", "checks", i, 0, c->n_checks);
		put_ref(f, "remedies", "remedies", i, 0, c->n_remedies);
		fputs("\t},\n", f);
	}
	fprintf(f,
	        "\t{0}};\n\nsize_t sw_builtin_causes(const sw_cause **out)\n{\n\t*out = "
	        "causes;\n\treturn %zu;\n}\n",
	        n);
}

typedef struct set_range {
	const char *name; /* NULL: the default set */
	size_t first, n;
} set_range;

static void put_ranges(FILE *packs, FILE *infos, const set_range *sets, size_t n_sets)
{
	for (size_t s = 0; s < n_sets; s++) {
		fprintf(infos, "static const sw_pack_file set_%zu[] = {", s);
		for (size_t i = sets[s].first; i < sets[s].first + sets[s].n; i++)
			fprintf(infos, "{&sw_builtin_def_%zu, infos_%zu}, ", i, i);
		fputs("{NULL, NULL}};\n", infos);
		if (sets[s].name)
			continue;
		fputs("static const sw_pack_def *const default_defs[] = {", packs);
		for (size_t i = sets[s].first; i < sets[s].first + sets[s].n; i++)
			fprintf(packs, "&sw_builtin_def_%zu, ", i);
		fprintf(packs,
		        "NULL};\nstatic const sw_pack_set default_set = {default_defs, %zu};\n",
		        sets[s].n);
		fprintf(infos,
		        "size_t sw_builtin_files(const sw_pack_file **out)\n{\n\t*out = "
		        "set_%zu;\n\treturn %zu;\n}\n",
		        s, sets[s].n);
	}
	fputs("const sw_pack_set *sw_builtin_packs(void)\n{\n\treturn &default_set;\n}\n", packs);
	fputs("static const struct {\n\tconst char *name;\n\tconst sw_pack_file *files;\n\tsize_t "
	      "n;\n} named[] = {\n",
	      infos);
	for (size_t s = 0; s < n_sets; s++)
		if (sets[s].name)
			fprintf(infos, "\t{\"%s\", set_%zu, %zu},\n", sets[s].name, s, sets[s].n);
	fputs(
	    "\t{NULL, NULL, 0}};\n\nsize_t sw_builtin_set(const char *name, const sw_pack_file "
	    "**out)\n{\n"
	    "\t*out = NULL;\n\tfor (size_t i = 0; named[i].name; i++) {\n\t\tif "
	    "(strcmp(named[i].name, name) == 0) {\n"
	    "\t\t\t*out = named[i].files;\n\t\t\treturn named[i].n;\n\t\t}\n\t}\n\treturn 0;\n}\n",
	    infos);
}

int main(int argc, char **argv)
{
	sw_loaded *l;
	sw_error err;
	set_range sets[16] = {{0}};
	size_t n_sets = 0;
	if (argc < 4 || sw_loaded_new(&l, &err))
		return 1;
	for (int i = 3; i < argc; i++) {
		bool named = strcmp(argv[i], "--set") == 0;
		if ((named && i + 1 < argc) || strcmp(argv[i], "--") == 0) {
			if (n_sets == 16)
				return 1;
			sets[n_sets++] = (set_range){named ? argv[++i] : NULL, l->n_files, 0};
			continue;
		}
		if (!n_sets || sw_load_file(l, argv[i], &err)) {
			sw_error_print(stderr, &err);
			return 1;
		}
		sets[n_sets - 1].n = l->n_files - sets[n_sets - 1].first;
	}
	FILE *packs = fopen(argv[1], "w"), *infos = fopen(argv[2], "w");
	if (!packs || !infos)
		return 1;
	fputs("/* Generated from signatures/. Do not edit. */\n#include \"sandwitness.h\"\n\n",
	      packs);
	for (int k = 0; k < SW_KIND_COUNT; k++)
		fprintf(packs, "#define SW_KIND_%d_ ((sw_kind)%d)\n", k, k);
	fputs("/* Generated from signatures/. Do not edit. */\n#include "
	      "\"signatures.h\"\n\n#include <string.h>\n\n",
	      infos);
	for (size_t i = 0; i < l->n_files; i++) {
		put_pack(packs, i, l->files[i].def);
		put_infos(infos, i, &l->files[i]);
	}
	put_ranges(packs, infos, sets, n_sets);
	put_causes(infos, l->causes, l->n_causes);
	fputs("\nconst sw_cause *sw_cause_find(const char *slug)\n{\n\tfor (size_t i = 0; "
	      "causes[i].slug; i++)\n"
	      "\t\tif (slug && strcmp(causes[i].slug, slug) == 0)\n\t\t\treturn "
	      "&causes[i];\n\treturn NULL;\n}\n",
	      infos);
	bool bad = fclose(packs) != 0;
	bad |= fclose(infos) != 0;
	sw_loaded_free(l);
	return bad;
}
