#include "problem.h"

#include <stdio.h>

#include "base.h"

static const struct {
	const char *slug;
	int status;
	const char *title;
	const char *fix;
} problems[HTTP_PROBLEM_COUNT] = {
#define HTTP_X_PROBLEM(s, slug, status, title, fix) {slug, status, title, fix},
    HTTP_PROBLEM_LIST(HTTP_X_PROBLEM)
#undef HTTP_X_PROBLEM
};

int http_problem_status(http_problem p)
{
	return p < HTTP_PROBLEM_COUNT ? problems[p].status : 500;
}

const char *http_problem_slug(http_problem p)
{
	return p < HTTP_PROBLEM_COUNT ? problems[p].slug : NULL;
}

json_t *http_problem_json(http_problem p, const char *detail, const char *fix)
{
	char type[96];

	if (p >= HTTP_PROBLEM_COUNT)
		p = HTTP_PROBLEM_INTERNAL;
	snprintf(type, sizeof(type), HTTP_PROBLEM_TYPE_PREFIX "%s", problems[p].slug);
	json_t *j = json_pack("{s:s, s:s, s:i}", "type", type, "title", problems[p].title, "status",
	                      problems[p].status);
	if (!j)
		return NULL;
	/* what a client sent may be quoted in it: any bytes */
	if (detail && *detail)
		json_object_set_new(j, "detail", sw_json_text(sw_str_of(detail)));
	json_object_set_new(j, "fix", json_string(fix && *fix ? fix : problems[p].fix));
	return j;
}
