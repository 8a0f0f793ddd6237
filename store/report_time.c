/*
 * report_time.c - the timeline: verdicts in equal stretches of time, in one pass. Where
 * the period is open the stretches grow while the pass goes on, so that there are never
 * more than TL_MAX of them.
 */
#include <string.h>

#include "report_int.h"

#define MINUTE INT64_C(60000000000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

/* Each divides the next, so that merging keeps every count in its place. */
static const int64_t widths[] = {MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR,      6 * HOUR,
                                 DAY,    10 * DAY,   30 * DAY,    360 * DAY, 3600 * DAY};
enum { N_WIDTHS = sizeof widths / sizeof *widths, TL_MAX = 60, TL_WANTED = 40, TL_BITS = 7 };

struct timeline {
	const rp_shapes *shapes;
	int width; /* index */
	int64_t base;
	size_t n;
	uint64_t total[TL_MAX], bits[TL_MAX][TL_BITS];
};

static int64_t slot_of(int64_t ns, int64_t width)
{
	return ns / width - (ns % width < 0);
}

static void widen(struct timeline *t)
{
	struct timeline to = {.shapes = t->shapes, .width = t->width + 1};
	const int64_t factor = widths[to.width] / widths[t->width];
	to.base = slot_of(t->base, factor);
	for (size_t i = 0; i < t->n; i++) {
		size_t k = (size_t)(slot_of(t->base + (int64_t)i, factor) - to.base);
		to.total[k] += t->total[i];
		for (int b = 0; b < TL_BITS; b++)
			to.bits[k][b] += t->bits[i][b];
		to.n = k + 1;
	}
	*t = to;
}

/* Makes room before the first one. */
static void shift(struct timeline *t, size_t by)
{
	memmove(t->total + by, t->total, t->n * sizeof *t->total);
	memmove(t->bits + by, t->bits, t->n * sizeof *t->bits);
	memset(t->total, 0, by * sizeof *t->total);
	memset(t->bits, 0, by * sizeof *t->bits);
	t->base -= (int64_t)by;
	t->n += by;
}

static int add(void *arg, const st_fact *x)
{
	struct timeline *t = arg;
	unsigned cls = x->shape < t->shapes->n ? t->shapes->class[x->shape] : 0;
	int64_t at;
	for (;; widen(t)) {
		at = slot_of(x->time, widths[t->width]);
		if (!t->n)
			t->base = at;
		int64_t first = at < t->base ? at : t->base;
		int64_t last = t->base + (int64_t)t->n - 1;
		if ((at > last ? at : last) - first < TL_MAX || t->width == N_WIDTHS - 1)
			break;
	}
	if (at < t->base - TL_MAX || at >= t->base + TL_MAX)
		return 0; /* centuries away from the others: no chart shows both */
	if (at < t->base)
		shift(t, (size_t)(t->base - at));
	size_t i = (size_t)(at - t->base);
	if (i >= t->n)
		t->n = i + 1;
	t->total[i]++;
	for (int b = 0; b < TL_BITS; b++)
		t->bits[i][b] += cls >> b & 1;
	return 0;
}

int rp_timeline(sw_store *s, const st_filter *f, json_t *rows, sw_error *err)
{
	/* in the order of the classes' bits */
	static const char *const names[TL_BITS] = {
	    "ok",         "runner_failed", "sandbox_denied", "sandbox_unavailable",
	    "downgrades", "unexplained",   "violations"};
	rp_shapes shapes;
	int code = rp_shapes_load(&shapes, s, err);
	if (code != 0)
		return code;
	struct timeline t = {.shapes = &shapes};
	if (f->since != INT64_MIN) {
		int64_t until = f->until != INT64_MAX ? f->until : sw_now_ns();
		while (t.width < N_WIDTHS - 1 && until > f->since &&
		       (until - f->since) / widths[t.width] > TL_WANTED)
			t.width++;
	}
	code = st_scan(s, f, 1u << F_SHAPE | 1u << F_TIME, add, &t, err);
	rp_shapes_free(&shapes);
	for (size_t i = 0; code == 0 && i < t.n; i++) {
		json_t *row = json_object();
		int64_t start = (t.base + (int64_t)i) * widths[t.width];
		json_object_set_new(row, "start", rp_time(start));
		json_object_set_new(row, "end", rp_time(start + widths[t.width]));
		json_object_set_new(row, "invocations", json_integer((json_int_t)t.total[i]));
		for (int b = 0; b < TL_BITS; b++)
			json_object_set_new(row, names[b], json_integer((json_int_t)t.bits[i][b]));
		json_array_append_new(rows, row);
	}
	return code;
}
