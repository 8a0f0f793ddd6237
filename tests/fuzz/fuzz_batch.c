/* `classify --batch`: any bytes as one line; an answer comes for each. */
#include <string.h>

#include "batch.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const sw_pack_set *set = cli_pack_set(NULL, NULL);
	MUST(set);
	char *line = malloc(size + 1);
	MUST(line);
	memcpy(line, data, size);
	line[size] = 0;
	FILE *in = fmemopen(line, size ? size : 1, "r");
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	MUST(in && out);
	cli_batch(in, out, set, data && size && data[0] & 1 ? "bwrap" : NULL, size & 1);
	fclose(in);
	fclose(out);
	/* Each line of the answer is JSON with a verdict or an error. */
	for (char *p = text, *end; p && *p; p = end + 1) {
		end = strchr(p, '\n');
		MUST(end);
		sw_error err;
		json_t *j = sw_json_parse(p, (size_t)(end - p), &err);
		MUST(j && (json_object_get(j, "verdict") || json_object_get(j, "error")));
		json_decref(j);
	}
	free(text);
	free(line);
	return 0;
}
