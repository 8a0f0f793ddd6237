/*
 * record_time.c - when a JSON record started and ended.
 */
#include <string.h>

#include "record_int.h"

static int one_time(const json_t *v, const char *field, int64_t *out, sw_error *err)
{
	if (!v || json_is_null(v))
		return 0;
	if (json_is_number(v)) {
		double s = json_number_value(v);
		if (!(s >= 0 && s < 9e9))
			return rj_fail(err, field, "seconds since 1970, or RFC 3339", NULL);
		*out = json_is_integer(v) ? json_integer_value(v) * 1000000000 : (int64_t)(s * 1e9);
		return 0;
	}
	/* Words such as "yesterday" are for people; a record says when. */
	const char *z = json_is_string(v) ? json_string_value(v) : "";
	if (strlen(z) < 10 || strlen(z) != json_string_length(v) || z[4] != '-')
		return rj_fail(err, field, "seconds since 1970, or RFC 3339", NULL);
	int code = sw_time_parse(z, 0, out, err);
	if (code != 0)
		sw_error_more(err, field, NULL, NULL);
	else if (*out < 0)
		return rj_fail(err, field, "a time since 1970", NULL);
	return code;
}

int rj_times(sw_record_parsed *p, sw_error *err)
{
	const json_t *o = p->object, *d = json_object_get(o, "duration_ms");
	int code = one_time(json_object_get(o, "started_at"), "started_at", &p->r.started_ns, err);
	if (code == 0)
		code = one_time(json_object_get(o, "ended_at"), "ended_at", &p->r.ended_ns, err);
	if (code != 0 || !d || json_is_null(d))
		return code;
	double ms = json_is_number(d) ? json_number_value(d) : -1;
	if (!(ms >= 0 && ms < 1e12))
		return rj_fail(err, "duration_ms", "a number of milliseconds, up to 10^12", NULL);
	if (p->kind == SW_STORE_BEGIN)
		return rj_fail(err, "duration_ms", "a begin has not ended yet",
		               "post it with event \"end\"");
	int64_t length = (int64_t)(ms * 1e6), *start = &p->r.started_ns, *end = &p->r.ended_ns;
	if (*start && *end)
		return 0; /* a clock that was set between them does not change what they say */
	if (*start && __builtin_add_overflow(*start, length, end))
		return rj_fail(err, "duration_ms", "a run that ends before 2262", NULL);
	if (*start)
		return 0;
	if (*end && *end <= length)
		return rj_fail(err, "duration_ms", "a run that began after 1970", NULL);
	if (*end)
		*start = *end - length;
	else
		p->r.duration_ns = length ? length : 1; /* 0 is "not known" */
	return 0;
}
