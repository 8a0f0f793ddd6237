/* Deriving guarantees from an argv: any words, one a line. */
#include <string.h>

#include "derive.h"
#include "fuzz.h"

static bool follow(void *ctx, const char *path, char *out, size_t n)
{
	(void)ctx;
	/* every path with an "l" in it is a link to the root */
	if (!strchr(path, 'l') || n < 2)
		return false;
	memcpy(out, "/", 2);
	return true;
}

static void look(char *const *argv, size_t argc, const sw_derive_options *o)
{
	sw_derived d;
	char reason[512], names[SW_GUARANTEES_TEXT_MAX];
	sw_derive(&d, argv, argc, o);
	MUST(d.basis == SW_BASIS_DERIVED || d.basis == SW_BASIS_UNKNOWN);
	MUST(d.basis == SW_BASIS_DERIVED || (!d.guarantees && d.unknown_why[0]));
	MUST(!(d.guarantees & ~SW_GUARANTEES_ALL));
	MUST(d.command <= argc && d.n_writable <= SW_DERIVE_PATHS_MAX);
	MUST(d.n_notes <= SW_DERIVE_NOTES_MAX);
	sw_derived_reason(&d, SW_GUARANTEES_ALL & ~d.guarantees, reason, sizeof(reason));
	MUST(memchr(reason, '\0', sizeof(reason)));
	sw_guarantees_text(d.guarantees, names);
	sw_derived_clear(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *argv[512];
	size_t argc = 0;
	MUST(text);
	memcpy(text, data, size);
	text[size] = '\0';
	for (char *word = strtok(text, "\n"); word && argc < 511; word = strtok(NULL, "\n"))
		argv[argc++] = word;
	argv[argc] = NULL;
	const char *granted[] = {"/w", "/tmp"};
	sw_derive_options o = {.uid = 1000};
	look(argv, argc, NULL);
	look(argv, argc, &o);
	o = (sw_derive_options){
	    .cwd = "/w", .home = "/home/u", .uid = 0, .supervised = true, .resolve = follow};
	look(argv, argc, &o);
	o.writable = granted;
	o.n_writable = 2;
	look(argv, argc, &o);
	free(text);
	return 0;
}
