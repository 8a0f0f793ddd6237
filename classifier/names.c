/* Name tables, made from the lists in names.h. */
#include "sandwitness.h"

#include <string.h>

#define SW_NAME_ROW(s, n) n,

static int parse(const char *const *names, int count, const char *s, size_t n)
{
	for (int i = 0; i < count; i++)
		if (strlen(names[i]) == n && memcmp(names[i], s, n) == 0)
			return i;
	return -1;
}

#define SW_DEFINE_NAMES(type, stem, LIST)                                                          \
	static const char *const stem##_names[] = {LIST(SW_NAME_ROW)};                             \
	const char *sw_##stem##_name(type v)                                                       \
	{                                                                                          \
		size_t i = (size_t)v;                                                              \
		return i < sizeof(stem##_names) / sizeof(stem##_names[0]) ? stem##_names[i]        \
		                                                          : NULL;                  \
	}                                                                                          \
	int sw_##stem##_parse(const char *s, size_t n, type *out)                                  \
	{                                                                                          \
		int i = parse(stem##_names, (int)(sizeof(stem##_names) / sizeof(stem##_names[0])), \
		              s, n);                                                               \
		if (i < 0)                                                                         \
			return SW_ENOTFOUND;                                                       \
		*out = (type)i;                                                                    \
		return 0;                                                                          \
	}

SW_DEFINE_NAMES(sw_verdict, verdict, SW_VERDICT_LIST)
SW_DEFINE_NAMES(sw_stage, stage, SW_STAGE_LIST)
SW_DEFINE_NAMES(sw_evidence, evidence, SW_EVIDENCE_LIST)
SW_DEFINE_NAMES(sw_source, source, SW_EVIDENCE_SOURCE_LIST)
SW_DEFINE_NAMES(sw_kind, kind, SW_KIND_LIST)
SW_DEFINE_NAMES(sw_confidence, confidence, SW_CONFIDENCE_LIST)
SW_DEFINE_NAMES(sw_operation, operation, SW_OPERATION_LIST)
SW_DEFINE_NAMES(sw_limit_kind, limit, SW_LIMIT_LIST)
SW_DEFINE_NAMES(sw_certainty, certainty, SW_CERTAINTY_LIST)
SW_DEFINE_NAMES(sw_mode, mode, SW_MODE_LIST)
SW_DEFINE_NAMES(sw_network, network, SW_NETWORK_LIST)
SW_DEFINE_NAMES(sw_started, started, SW_STARTED_LIST)
SW_DEFINE_NAMES(sw_enforcement, enforcement, SW_ENFORCEMENT_LIST)
SW_DEFINE_NAMES(sw_position, position, SW_POSITION_LIST)
SW_DEFINE_NAMES(sw_scope, scope, SW_SCOPE_LIST)
SW_DEFINE_NAMES(sw_decides, decides, SW_DECIDES_LIST)
SW_DEFINE_NAMES(sw_fact, fact, SW_FACT_LIST)
SW_DEFINE_NAMES(sw_guarantee, guarantee, SW_GUARANTEE_LIST)
SW_DEFINE_NAMES(sw_basis, basis, SW_BASIS_LIST)
SW_DEFINE_NAMES(sw_probe_result, probe_result, SW_PROBE_RESULT_LIST)
SW_DEFINE_NAMES(sw_observation_kind, observation, SW_OBSERVATION_LIST)

static const char *const near_names[SW_NEAR_COUNT] = {
    [SW_NEAR_COLUMN] = "column",     [SW_NEAR_EXIT] = "exit",
    [SW_NEAR_POSITION] = "position", [SW_NEAR_INFORMATIONAL] = "informational",
    [SW_NEAR_VETO] = "veto",         [SW_NEAR_SCOPE] = "scope",
    [SW_NEAR_FACTS] = "facts",       [SW_NEAR_STARTED] = "started",
    [SW_NEAR_BOTH] = "both",         [SW_NEAR_REGEX] = "regex",
};

const char *sw_near_name(sw_near_kind k)
{
	return (size_t)k < SW_NEAR_COUNT ? near_names[k] : NULL;
}
