/*
 * Build tool: writes files as C arrays with their content type and an ETag of their
 * bytes. usage: embed OUT.c FILE...
 */
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *content_type(const char *name)
{
	static const char *const types[][2] = {
	    {".html", "text/html; charset=utf-8"},
	    {".css", "text/css; charset=utf-8"},
	    {".js", "text/javascript; charset=utf-8"},
	    {".json", "application/json"},
	    {".svg", "image/svg+xml"},
	};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(dot, types[i][0]))
			return types[i][1];
	return NULL;
}

static int embed(FILE *out, FILE *table, const char *path, int index)
{
	struct sha256_ctx ctx;
	unsigned char buf[4096], digest[12];
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	const char *type = content_type(name);
	FILE *in = fopen(path, "rb");
	size_t n, total = 0;

	if (!in || !type) {
		fprintf(stderr, "embed: %s: %s\n", path, in ? "unknown ending" : "cannot be read");
		if (in)
			fclose(in);
		return 1;
	}
	sha256_init(&ctx);
	fprintf(out, "static const unsigned char file_%d[] = {", index);
	while ((n = fread(buf, 1, sizeof(buf), in)) > 0) {
		sha256_update(&ctx, n, buf);
		for (size_t i = 0; i < n; i++, total++)
			fprintf(out, "%s%u,", total % 24 ? "" : "\n", buf[i]);
	}
	fputs("0};\n", out);
	fclose(in);
	sha256_digest(&ctx, sizeof(digest), digest);
	fprintf(table, "\t{\"%s\", \"%s\", \"", name, type);
	for (size_t i = 0; i < sizeof(digest); i++)
		fprintf(table, "%02x", digest[i]);
	fprintf(table, "\", (const char *)file_%d, %zu},\n", index, total);
	return 0;
}

int main(int argc, char **argv)
{
	FILE *out = argc > 2 ? fopen(argv[1], "w") : NULL;
	FILE *table = tmpfile();
	int failed = 0, c;

	if (!out || !table) {
		fprintf(stderr, "usage: embed OUT.c FILE...\n");
		return 1;
	}
	fputs("/* made by http/embed.c */\n#include \"assets.h\"\n", out);
	for (int i = 2; i < argc; i++)
		failed |= embed(out, table, argv[i], i - 2);
	fputs("const http_asset http_assets[] = {\n", out);
	rewind(table);
	while ((c = getc(table)) != EOF)
		putc(c, out);
	fprintf(out, "};\nconst size_t http_n_assets = %d;\n", argc - 2);
	failed |= ferror(out) != 0;
	failed |= fclose(out) != 0;
	if (failed)
		remove(argv[1]);
	return failed;
}
