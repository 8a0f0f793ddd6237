/* Exits: what is one exit, and whom a gate admits. */
#include "core.h"

#define SIGNALS_MAX 64

bool sw_exit_normal(const sw_pack *pack, sw_exit e, int64_t *out)
{
	if (!e.has_code) {
		if (!e.signal)
			return false;
		*out = 128 + e.signal;
		return true;
	}
	if (pack->windows)
		*out = (int64_t)(uint32_t)e.code;
	else
		*out = e.code < 0 && e.code >= -SIGNALS_MAX ? 128 - e.code : e.code;
	return true;
}

bool sw_exit_is_zero(sw_exit e)
{
	return e.has_code && e.code == 0 && e.signal == 0;
}

static bool listed(const sw_pack *pack, const int64_t *list, uint16_t n, int64_t code)
{
	for (uint16_t i = 0; i < n; i++) {
		int64_t v;
		if (sw_exit_normal(pack, sw_exit_code(list[i]), &v) && v == code)
			return true;
	}
	return false;
}

bool sw_exit_admits(const sw_pack *pack, const sw_sig_def *def, sw_exit e)
{
	int64_t code;
	if (!sw_exit_normal(pack, e, &code))
		return def->n_only_exit == 0;
	if (def->n_only_exit && !listed(pack, def->only_exit, def->n_only_exit, code))
		return false;
	return !listed(pack, def->except_exit, def->n_except_exit, code);
}
