/* Exported NDJSON trails, and database files: damaged in any way they are judged, never believed
 * blindly. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64], db[128];
	sw_error err = {0};
	sw_verify_options options = {0};
	json_t *out = NULL;
	int status = -1;
	bool database = size >= 16 && !memcmp(data, "SQLite format 3", 16);
	snprintf(path, sizeof(path), "/tmp/sw-fuzz-%d", (int)getpid());
	snprintf(db, sizeof(db), "%s.db", path);
	const char *file = database ? db : path;
	FILE *f = fopen(file, "wb");
	MUST(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
	if (!database) {
		int rc = sw_export_verify(file, &options, &status, &out, &err);
		MUST(rc == 0 ? out != NULL : err.what[0] != 0);
	} else {
		sw_store *s = NULL;
		if (sw_store_open(&s, file, SW_STORE_READ, NULL, &err) == 0) {
			sw_store_verify(s, &options, &status, &out, &err);
			sw_query q;
			memset(&q, 0, sizeof(q));
			json_t *report = NULL;
			sw_store_report(s, "summary", &q, &report, &err);
			json_decref(report);
			sw_store_close(s);
		}
	}
	json_decref(out);
	unlink(file);
	return 0;
}
