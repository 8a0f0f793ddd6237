/* Pack and cause files: loading, building, checking, using. */
#include "fuzz.h"
#include "signatures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_loaded *l = NULL;
	sw_error err = {0};
	MUST(sw_loaded_new(&l, &err) == 0);
	int rc = sw_load_text(l, "fuzz.yaml", (const char *)data, size, &err);
	const sw_pack_file *files;
	size_t n = sw_loaded_files(l, &files);
	if (rc)
		MUST(err.code < 0 && err.what[0] && n == 0);
	for (size_t i = 0; i < n; i++) {
		const sw_pack_def *defs[] = {files[i].def};
		sw_pack_set set = {defs, 1};
		sw_pack *pack = NULL;
		if (sw_pack_new(&pack, &set, files[i].def->backend, &err))
			continue;
		sw_result *r = NULL;
		MUST(sw_classify(pack, NULL, sw_exit_code(1), SW_STARTED_UNKNOWN, SW_SOURCE_NONE,
		                 data, size, &r, NULL) == 0);
		sw_result_free(r);
		sw_pack_free(pack);
		sw_check_report report = {0};
		MUST(sw_check_packs(&files[i], 1, NULL, 0, NULL, 0, NULL, &report, &err) == 0 ||
		     err.code < 0);
	}
	sw_loaded_free(l);
	return 0;
}
