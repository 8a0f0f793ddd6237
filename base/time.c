/* Clocks, and the time words that people type. */
#include "base.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NS INT64_C(1000000000)

static int64_t clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * NS + t.tv_nsec;
}

int64_t sw_now_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

int64_t sw_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

void sw_time_format(int64_t ns, char out[40])
{
	int64_t s = ns / NS, rest = ns % NS;
	if (rest < 0) {
		rest += NS;
		s--;
	}
	time_t t = (time_t)s;
	struct tm tm;
	if (!gmtime_r(&t, &tm))
		memset(&tm, 0, sizeof(tm));
	size_t n = strftime(out, 28, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, 40 - n, ".%03dZ", (int)(rest / 1000000));
}

static const struct {
	const char *unit;
	int64_t ns;
} units[] = {
    {"ms", 1000000},  {"s", NS},         {"m", 60 * NS},
    {"h", 3600 * NS}, {"d", 86400 * NS}, {"w", 7 * 86400 * NS},
};

int sw_duration_parse(const char *word, int64_t *out_ns, sw_error *err)
{
	char *end = NULL;
	double v = isdigit((unsigned char)word[0]) ? strtod(word, &end) : -1;
	if (v >= 0 && end) {
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
			if (strcmp(end, units[i].unit) != 0 || v * (double)units[i].ns > 9e18)
				continue;
			*out_ns = (int64_t)(v * (double)units[i].ns);
			return 0;
		}
	}
	sw_error_set(err, SW_EINVAL, "\"%.40s\" is no duration", word);
	sw_error_more(err, NULL, NULL, "write a number and a unit: 250ms, 30s, 15m, 24h, 7d, 2w");
	return SW_EINVAL;
}

static int64_t local_midnight(int64_t now_ns, int days_back)
{
	time_t t = (time_t)(now_ns / NS);
	struct tm tm;
	localtime_r(&t, &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_mday -= days_back;
	tm.tm_isdst = -1;
	return (int64_t)mktime(&tm) * NS;
}

static int days_since_monday(int64_t now_ns)
{
	time_t t = (time_t)(now_ns / NS);
	struct tm tm;
	localtime_r(&t, &tm);
	return (tm.tm_wday + 6) % 7;
}

/* False outside 1677 to 2262, which is all that 64 bits of nanoseconds hold. */
static bool to_ns(int64_t seconds, int64_t frac, int64_t *out)
{
	return !__builtin_mul_overflow(seconds, NS, out) &&
	       !__builtin_add_overflow(*out, frac, out);
}

/* "+HH:MM" in seconds. */
static bool parse_offset(const char *p, int64_t *out)
{
	for (int i = 1; i < 6; i++)
		if (i == 3 ? p[i] != ':' : !isdigit((unsigned char)p[i]))
			return false;
	int h = (p[1] - '0') * 10 + p[2] - '0', m = (p[4] - '0') * 10 + p[5] - '0';
	*out = (h * 3600 + m * 60) * (*p == '-' ? -1 : 1);
	return h < 24 && m < 60;
}

/* n digits at p; -1: they are not. */
static int digits(const char *p, int n)
{
	int v = 0;
	for (int i = 0; i < n; i++) {
		if (!isdigit((unsigned char)p[i]))
			return -1;
		v = v * 10 + p[i] - '0';
	}
	return v;
}

/* YYYY-MM-DD, a day that the calendar has. */
static bool parse_date(const char *p, struct tm *tm)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int y = digits(p, 4), m = y < 0 || p[4] != '-' ? -1 : digits(p + 5, 2);
	int d = m < 1 || m > 12 || p[7] != '-' ? -1 : digits(p + 8, 2);
	bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
	if (d < 1 || d > days[m - 1] + (m == 2 && leap))
		return false;
	tm->tm_year = y - 1900;
	tm->tm_mon = m - 1;
	tm->tm_mday = d;
	return true;
}

/* HH:MM:SS; 60 seconds are a leap second. */
static bool parse_clock(const char *p, struct tm *tm)
{
	tm->tm_hour = digits(p, 2);
	tm->tm_min = tm->tm_hour < 0 || p[2] != ':' ? -1 : digits(p + 3, 2);
	tm->tm_sec = tm->tm_min < 0 || p[5] != ':' ? -1 : digits(p + 6, 2);
	return tm->tm_sec >= 0 && tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60;
}

/* RFC 3339, or a bare date (local midnight). */
static bool parse_stamp(const char *p, int64_t *out)
{
	struct tm tm;
	memset(&tm, 0, sizeof(tm));
	if (!parse_date(p, &tm))
		return false;
	p += 10;
	if (*p == '\0') {
		tm.tm_isdst = -1;
		return to_ns((int64_t)mktime(&tm), 0, out);
	}
	if ((*p != 'T' && *p != 't' && *p != ' ') || !parse_clock(p + 1, &tm))
		return false;
	p += 9;
	int64_t frac = 0;
	if (*p == '.') {
		int64_t scale = NS / 10;
		if (!isdigit((unsigned char)p[1]))
			return false;
		for (p++; isdigit((unsigned char)*p); p++, scale /= 10)
			frac += (*p - '0') * scale;
	}
	int64_t offset = 0;
	if (*p == 'Z' || *p == 'z') {
		p++;
	} else if (*p == '+' || *p == '-') {
		if (!parse_offset(p, &offset))
			return false;
		p += 6;
	} else {
		return false;
	}
	if (*p)
		return false;
	return to_ns((int64_t)timegm(&tm) - offset, frac, out);
}

int sw_time_parse(const char *word, int64_t now_ns, int64_t *out_ns, sw_error *err)
{
	int64_t d;
	if (strcmp(word, "now") == 0)
		*out_ns = now_ns;
	else if (strcmp(word, "recent") == 0)
		*out_ns = now_ns - 600 * NS;
	else if (strcmp(word, "today") == 0)
		*out_ns = local_midnight(now_ns, 0);
	else if (strcmp(word, "yesterday") == 0)
		*out_ns = local_midnight(now_ns, 1);
	else if (strcmp(word, "this-week") == 0)
		*out_ns = local_midnight(now_ns, days_since_monday(now_ns));
	else if (strcmp(word, "week-ago") == 0)
		*out_ns = local_midnight(now_ns, 7);
	else if (sw_duration_parse(word, &d, NULL) == 0)
		*out_ns = now_ns - d;
	else if (!parse_stamp(word, out_ns)) {
		sw_error_set(err, SW_EINVAL, "\"%.60s\" is no time", word);
		sw_error_more(err, NULL, NULL,
		              "write now, recent, today, yesterday, this-week, week-ago, an age "
		              "such as 24h or 7d, "
		              "a date, or RFC 3339 (years 1678 to 2261)");
		return SW_EINVAL;
	}
	return 0;
}
