/* Case files of the corpus: reading them, and writing what was read gives the same again. */
#include "case.h"
#include "fuzz.h"
#include "yaml_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_error err = {0};
	json_t *doc = sw_yaml_read((const char *)data, size, "fuzz.yaml", &err);
	if (!doc) {
		MUST(err.what[0]);
		return 0;
	}
	if (json_is_object(doc)) {
		sw_buf b;
		sw_buf_init(&b, 8u << 20);
		if (sw_yaml_write(&b, doc) == 0 && b.len) {
			json_t *again = sw_yaml_read(b.ptr, b.len, "again.yaml", &err);
			MUST(again && json_equal(doc, again));
			json_decref(again);
		}
		sw_buf_free(&b);
	}
	json_decref(doc);
	return 0;
}
