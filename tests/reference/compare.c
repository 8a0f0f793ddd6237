/* compare.c - the oracle's answer beside the classifier's. */
#include "reference.h"

#include <stdio.h>
#include <string.h>

static const char *sig_id(const sw_sig_def *d)
{
	return d && d->id ? d->id : "-";
}

static bool differ(char *why, size_t size, const char *what, const char *want, const char *got)
{
	snprintf(why, size, "%s: oracle %s, classifier %s", what, want ? want : "-",
	         got ? got : "-");
	return false;
}

static bool differ_number(char *why, size_t size, const char *what, uint64_t want, uint64_t got)
{
	snprintf(why, size, "%s: oracle %llu, classifier %llu", what, (unsigned long long)want,
	         (unsigned long long)got);
	return false;
}

static bool same_z(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

bool ref_agrees(const ref_result *want, const sw_result *got, char *why, size_t size)
{
	if (want->gave_up)
		return true;
	if (want->verdict != got->verdict)
		return differ(why, size, "verdict", sw_verdict_name(want->verdict),
		              sw_verdict_name(got->verdict));
	if (want->rule != got->rule)
		return differ_number(why, size, "rule", (uint64_t)want->rule, (uint64_t)got->rule);
	const sw_sig_def *sig = got->has_hit ? got->hit.sig : NULL;
	if (want->sig != sig)
		return differ(why, size, "signature", sig_id(want->sig), sig_id(sig));
	if (!same_z(want->cause, got->cause))
		return differ(why, size, "cause", want->cause, got->cause);
	if (want->stage != got->stage)
		return differ(why, size, "stage", sw_stage_name(want->stage),
		              sw_stage_name(got->stage));
	if (want->confidence != got->confidence)
		return differ(why, size, "confidence", sw_confidence_name(want->confidence),
		              sw_confidence_name(got->confidence));
	if (want->evidence != got->evidence)
		return differ(why, size, "evidence", sw_evidence_name(want->evidence),
		              sw_evidence_name(got->evidence));
	if (want->source != got->evidence_source)
		return differ(why, size, "source", sw_source_name(want->source),
		              sw_source_name(got->evidence_source));
	if (want->operation != got->operation)
		return differ(why, size, "operation", sw_operation_name(want->operation),
		              sw_operation_name(got->operation));
	if (want->denied_lines != got->denied_lines)
		return differ_number(why, size, "denied_lines", want->denied_lines,
		                     got->denied_lines);
	if (want->has_line) {
		size_t len =
		    want->line_len < SW_LINE_REPORT_MAX ? want->line_len : SW_LINE_REPORT_MAX;
		if (got->hit.offset != want->line_offset)
			return differ_number(why, size, "offset", want->line_offset,
			                     got->hit.offset);
		if (got->hit.line_number != want->line_number)
			return differ_number(why, size, "line_number", want->line_number,
			                     got->hit.line_number);
		if (got->hit.line.len != len)
			return differ_number(why, size, "line length", len, got->hit.line.len);
		if (len && memcmp(got->hit.line.ptr, want->bytes + want->line_offset, len) != 0)
			return differ(why, size, "line", "one", "another");
		if (got->hit.line_truncated != (want->line_len > SW_LINE_REPORT_MAX))
			return differ_number(why, size, "line_truncated",
			                     want->line_len > SW_LINE_REPORT_MAX,
			                     got->hit.line_truncated);
		if (got->hit.line_windowed != (want->line_len > SW_WINDOW_SIZE))
			return differ_number(why, size, "line_windowed",
			                     want->line_len > SW_WINDOW_SIZE,
			                     got->hit.line_windowed);
	} else if (got->has_hit && got->hit.line.len) {
		return differ(why, size, "line", "none", "one");
	}
	if (!same_z(want->resource_kind, got->has_hit ? got->hit.resource_kind : NULL))
		return differ(why, size, "resource kind", want->resource_kind,
		              got->hit.resource_kind);
	if (want->resource_kind &&
	    (want->resource_len != got->hit.resource.len ||
	     memcmp(want->resource, got->hit.resource.ptr, want->resource_len) != 0))
		return differ(why, size, "resource", want->resource, "another");
	if (want->limit != got->limit)
		return differ(why, size, "limit", sw_limit_name(want->limit),
		              sw_limit_name(got->limit));
	if (want->limit_certainty != got->limit_certainty)
		return differ(why, size, "limit certainty",
		              sw_certainty_name(want->limit_certainty),
		              sw_certainty_name(got->limit_certainty));
	if (want->limit_sig != got->limit_hit.sig)
		return differ(why, size, "limit signature", sig_id(want->limit_sig),
		              sig_id(got->limit_hit.sig));
	if (want->lowers != got->lowers)
		return differ_number(why, size, "lowers", want->lowers, got->lowers);
	if (want->n_downgrades != got->n_downgrades && got->n_downgrades < 16)
		return differ_number(why, size, "downgrades", want->n_downgrades,
		                     got->n_downgrades);
	for (size_t i = 0; i < got->n_downgrades; i++)
		if (want->downgrades[i] != got->downgrades[i].sig)
			return differ(why, size, "downgrade", sig_id(want->downgrades[i]),
			              sig_id(got->downgrades[i].sig));
	return true;
}
