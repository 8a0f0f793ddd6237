/*
 * The patterns' machine against PCRE2: both find the same match with the same groups, within the
 * bound of steps. Input: a byte of flags, the pattern up to a line feed, the subject.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string.h>

#include "core.h"
#include "fuzz.h"

enum { SUBJECT_MAX = 512, PATTERN_MAX = 300 };

static void compare(const sw_regex *fast, pcre2_code *slow, const char *subject, size_t n)
{
	char folded[SUBJECT_MAX];
	sw_regex_spans spans;
	sw_regex_work *work = sw_regex_work_new();
	pcre2_match_data *data = pcre2_match_data_create_from_pattern(slow, NULL);
	pcre2_match_context *limits = pcre2_match_context_create(NULL);
	MUST(work && data && limits);
	pcre2_set_match_limit(limits, 100000);
	for (size_t i = 0; i < n; i++)
		folded[i] = (char)sw_fold((unsigned char)subject[i]);
	int want = pcre2_match(slow, (PCRE2_SPTR)subject, n, 0, 0, data, limits);
	sw_regex_work_line(work);
	int got = sw_regex_match(fast, work, folded, n, &spans);
	MUST(sw_regex_steps(work) <= SW_REGEX_STEPS * (uint64_t)sw_regex_size(fast) * (n + 2));
	if (want >= 0 || want == PCRE2_ERROR_NOMATCH) {
		MUST(got == (want >= 0));
		PCRE2_SIZE *ov = pcre2_get_ovector_pointer(data);
		for (int g = 0; got == 1 && g < SW_REGEX_GROUPS; g++) {
			int k = pcre2_substring_number_from_name(
			    slow, (PCRE2_SPTR)sw_regex_group_names[g]);
			bool set = k > 0 && k < want && ov[2 * k] != PCRE2_UNSET;
			MUST(set ? spans.at[2 * g] == ov[2 * k] &&
			               spans.at[2 * g + 1] == ov[2 * k + 1]
			         : spans.at[2 * g] == SIZE_MAX);
		}
	}
	pcre2_match_context_free(limits);
	pcre2_match_data_free(data);
	sw_regex_work_free(work);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	unsigned flags = data[0] % 3; /* none, anchored, whole */
	const char *p = (const char *)data + 1;
	const char *lf = memchr(p, '\n', size - 1);
	size_t len = lf ? (size_t)(lf - p) : size - 1;
	size_t n = lf ? size - 2 - len : 0;
	if (len > PATTERN_MAX || n > SUBJECT_MAX || memchr(p, 0, len))
		return 0;
	char *pattern = strndup(p, len);
	MUST(pattern);
	sw_regex_error e = {0};
	sw_regex *fast = sw_regex_new(pattern, flags, &e);
	if (fast) {
		int code;
		PCRE2_SIZE at;
		uint32_t options = PCRE2_CASELESS | PCRE2_DOLLAR_ENDONLY;
		if (flags == SW_REGEX_ANCHORED)
			options |= PCRE2_ANCHORED;
		if (flags == SW_REGEX_WHOLE)
			options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED;
		pcre2_code *slow =
		    pcre2_compile((PCRE2_SPTR)pattern, len, options, &code, &at, NULL);
		if (slow) /* of what PCRE2 refuses there is nothing to compare */
			compare(fast, slow, lf ? lf + 1 : "", n);
		pcre2_code_free(slow);
		sw_regex_free(fast);
	} else {
		MUST(e.at <= len && e.why);
	}
	free(pattern);
	return 0;
}
