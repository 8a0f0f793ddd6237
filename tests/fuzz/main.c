/* main.c - runs a fuzz target over files and folders: seeds and findings as ordinary tests. */
#include <dirent.h>
#include <string.h>

#include "fuzz.h"

static unsigned long runs;

static void one_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	static uint8_t bytes[1 << 20];
	if (!f)
		return;
	size_t n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	/* A block of its own, so that a read behind the input is noticed. */
	uint8_t *copy = malloc(n ? n : 1);
	MUST(copy);
	memcpy(copy, bytes, n);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
	runs++;
}

static void walk(const char *path)
{
	DIR *d = opendir(path);
	if (!d) {
		one_file(path);
		return;
	}
	for (struct dirent *e; (e = readdir(d));) {
		char sub[4096];
		if (e->d_name[0] != '.' &&
		    snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name) < (int)sizeof(sub))
			walk(sub);
	}
	closedir(d);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (argv[i][0] != '-')
			walk(argv[i]);
	printf("%lu inputs\n", runs);
	return runs ? 0 : 1;
}
