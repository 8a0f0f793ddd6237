/* JSON records that runtimes post, and query filters. */
#include <string.h>

#include "fuzz.h"
#include "base.h"
#include "store.h"

static const sw_pack *find(void *arg, const char *backend)
{
	static sw_pack *bwrap;
	(void)arg;
	if (strcmp(backend, "bwrap") != 0)
		return NULL;
	if (!bwrap)
		MUST(sw_pack_new(&bwrap, sw_builtin_packs(), "bwrap", NULL) == 0);
	return bwrap;
}

static void query(const char *p, size_t n)
{
	static const char *const keys[] = {"since",  "until", "backend", "verdict",
	                                   "level",  "cause", "session", "actor",
	                                   "device", "label", "limit",   "cursor"};
	char *z = strndup(p, n);
	sw_query q;
	sw_error err;
	MUST(z);
	memset(&q, 0, sizeof(q));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		sw_query_set(&q, keys[i], z, 1700000000000000000, &err);
	sw_query_free(&q);
	free(z);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_error err = {0};
	json_t *object = sw_json_parse((const char *)data, size, &err);
	sw_record_parsed *parsed = NULL;
	if (object) {
		int rc = sw_record_parse(&parsed, object, find, NULL, &err);
		MUST(rc == 0 ? parsed != NULL : err.what[0] != 0);
		sw_record_parsed_free(parsed);
		json_decref(object);
	}
	query((const char *)data, size);
	size_t n = 0;
	char *redacted = sw_redact(data, size, &n);
	MUST(redacted || !size);
	free(redacted);
	return 0;
}
