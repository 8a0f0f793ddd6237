/* levels.c - see levels.h. */
#include "levels.h"

#include <string.h>

static bool level_char_eq(char a, char b)
{
	if (a >= 'A' && a <= 'Z')
		a = (char)(a - 'A' + 'a');
	if (b >= 'A' && b <= 'Z')
		b = (char)(b - 'A' + 'a');
	return (a == '-' ? '_' : a) == (b == '-' ? '_' : b);
}

static bool level_word_eq(sw_str word, const char *z)
{
	size_t i = 0;
	for (; i < word.len && z[i]; i++)
		if (!level_char_eq(word.ptr[i], z[i]))
			return false;
	return i == word.len && !z[i];
}

const sw_level_def *sw_level_find(const sw_level_set *set, sw_str name)
{
	for (size_t i = 0; i < set->n; i++)
		if (level_word_eq(name, set->levels[i].id))
			return &set->levels[i];
	for (size_t i = 0; i < set->n; i++)
		for (size_t k = 0; k < set->levels[i].n_aliases; k++)
			if (level_word_eq(name, set->levels[i].aliases[k]))
				return &set->levels[i];
	return NULL;
}

static bool guarantee_find(sw_str word, uint32_t *bit)
{
	for (int g = 0; g < SW_GUARANTEE_COUNT; g++)
		if (level_word_eq(word, sw_guarantee_name((sw_guarantee)g))) {
			*bit = 1u << g;
			return true;
		}
	return false;
}

static sw_str level_trim(sw_str s)
{
	while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
		s = (sw_str){s.ptr + 1, s.len - 1};
	while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
		s.len--;
	return s;
}

static int level_unknown(sw_error *err, sw_str part)
{
	int shown = part.len > 64 ? 64 : (int)part.len;
	sw_error_set(err, SW_EINVAL, "unknown level or guarantee \"%.*s\"", shown,
	             part.len ? part.ptr : "");
	return err ? sw_error_more(
	                 err, NULL, NULL,
	                 "give a level (bwrap, docker, landlock, process_group, none, ...) or "
	                 "guarantees joined by commas (fs_write,network); docs/levels.md "
	                 "lists both")
	           : SW_EINVAL;
}

int sw_level_parse(const sw_level_set *set, sw_str word, uint32_t *guarantees,
                   const sw_level_def **def, sw_error *err)
{
	uint32_t bits = 0;
	size_t parts = 0, at = 0;
	const sw_level_def *only = NULL;
	bool one = true;

	do {
		size_t end = at;
		while (end < word.len && word.ptr[end] != ',')
			end++;
		sw_str part = level_trim((sw_str){word.ptr + at, end - at});
		if (++parts > 32)
			return sw_error_set(err, SW_ETOOBIG, "a level has at most 32 parts");
		bool away = part.len && part.ptr[0] == '-';
		sw_str bare = away ? (sw_str){part.ptr + 1, part.len - 1} : part;
		uint32_t add = 0;
		const sw_level_def *level = NULL;
		if (!bare.len ||
		    (!guarantee_find(bare, &add) && !(level = sw_level_find(set, bare))))
			return level_unknown(err, part);
		if (level)
			add = level->guarantees;
		if (away || !level)
			one = false;
		only = level;
		bits = away ? bits & ~add : bits | add;
		at = end + 1;
	} while (at <= word.len);

	*guarantees = bits;
	if (def)
		*def = one && parts == 1 ? only : NULL;
	return SW_OK;
}

static unsigned level_count(uint32_t bits)
{
	unsigned n = 0;
	for (; bits; bits &= bits - 1)
		n++;
	return n;
}

const char *sw_level_name(const sw_level_set *set, sw_str family, uint32_t guarantees)
{
	const sw_level_def *named = family.len ? sw_level_find(set, family) : NULL;
	const sw_level_def *best = NULL;
	for (size_t i = 0; named && i < set->n; i++) {
		const sw_level_def *l = &set->levels[i];
		if (!l->guarantees || strcmp(l->family, named->family) != 0 ||
		    (l->guarantees & ~guarantees))
			continue;
		if (!best || level_count(l->guarantees) > level_count(best->guarantees))
			best = l;
	}
	if (best && (best->guarantees & SW_GUARANTEES_ISOLATING))
		return best->id;
	if (guarantees & SW_GUARANTEES_ISOLATING)
		return "partial";
	if (best)
		return best->id;
	return guarantees & SW_G(TREE_KILL) ? "process_group" : "none";
}

size_t sw_guarantees_text(uint32_t guarantees, char out[SW_GUARANTEES_TEXT_MAX])
{
	size_t n = 0;
	for (int g = 0; g < SW_GUARANTEE_COUNT; g++) {
		if (!(guarantees & (1u << g)))
			continue;
		const char *name = sw_guarantee_name((sw_guarantee)g);
		size_t len = strlen(name), sep = n ? 2 : 0;
		if (n + sep + len + 1 > SW_GUARANTEES_TEXT_MAX)
			break;
		if (sep)
			memcpy(out + n, ", ", 2);
		memcpy(out + n + sep, name, len);
		n += sep + len;
	}
	out[n] = '\0';
	return n;
}

const char *sw_reason_class_name(sw_reason_class c)
{
	static const char *const names[] = {"none", "explained", "exempt"};
	return (unsigned)c < SW_REASON_COUNT ? names[c] : NULL;
}

sw_level_outcome sw_level_compare(const sw_level_input *in)
{
	sw_level_outcome o = {.basis = in->basis};
	o.known = in->basis != SW_BASIS_UNKNOWN;
	o.requested = in->has_requested ? in->requested & ~in->granted : 0;
	o.minimum = in->has_minimum ? in->minimum & ~in->granted : 0;
	o.effective = o.known ? in->effective & ~in->lowered : 0;
	o.lost = o.requested & ~o.effective;
	o.violated = o.minimum & ~o.effective;
	o.downgrade = o.lost != 0;
	o.violation = o.violated != 0;
	o.unexplained = o.downgrade && in->reason == SW_REASON_NONE;
	o.exempt = o.downgrade && in->reason == SW_REASON_EXEMPT;
	o.isolated = o.known && (o.effective & SW_GUARANTEES_ISOLATING);
	o.contained = !in->not_run && o.isolated && !o.downgrade && !o.violation;
	if (!o.known)
		o.enforcement = SW_ENFORCEMENT_UNKNOWN;
	else if (!o.isolated)
		o.enforcement = SW_ENFORCEMENT_NONE;
	else
		o.enforcement = o.downgrade ? SW_ENFORCEMENT_PARTIAL : SW_ENFORCEMENT_FULL;
	return o;
}
