/*
 * levels.h - containment levels as sets of guarantees, and the one pure function
 * that compares what was requested with what an invocation really had.
 *
 * A level is a set of sw_guarantee bits (1u << SW_GUARANTEE_X), not a number:
 * Landlock and docker cannot be put on one scale. signatures/levels.yaml holds the
 * known levels; it is compiled in at build time. docs/levels.md is the manual.
 *
 * Purity and threads: no clock, no I/O, no globals but the constant tables; every
 * function may be called from any thread. Nothing here allocates.
 */
#ifndef SW_LEVELS_H
#define SW_LEVELS_H

#include "sandwitness.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SW_G(NAME) (1u << SW_GUARANTEE_##NAME)
#define SW_GUARANTEES_ALL ((1u << SW_GUARANTEE_COUNT) - 1u)
/*
 * Guarantees of which one at least must hold before anything may be called
 * isolated: a cleared environment, limits or a tree that dies at its deadline keep
 * nobody away from a file.
 */
#define SW_GUARANTEES_ISOLATING \
	(SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(NETWORK) | SW_G(PID) | SW_G(IPC) | SW_G(SYSCALLS))
/* Room for every guarantee's name joined with ", ", NUL included. */
#define SW_GUARANTEES_TEXT_MAX 96

typedef struct sw_level_def {
	const char *id;
	const char *title;
	const char *family; /* levels of one runner: bwrap and bwrap_partial are "bwrap" */
	const char *const *aliases;
	uint16_t n_aliases;
	uint32_t guarantees;
	const char *note;       /* what it does not do, for people */
	const char *downgrades; /* when a runner falls back to it, NULL: never */
} sw_level_def;

typedef struct sw_level_set {
	const sw_level_def *levels;
	size_t n;
} sw_level_set;

/* signatures/levels.yaml at build time (library sw_levels). Never NULL. */
SW_API const sw_level_set *sw_builtin_levels(void);

/* By id or alias, ASCII case-insensitive, '-' and '_' alike. NULL: unknown. */
SW_API const sw_level_def *sw_level_find(const sw_level_set *set, sw_str name);

/*
 * A level as people write it: "bwrap", "bwrap,syscalls", "docker,-network",
 * "fs_write,network": level names and guarantees joined by commas, '-' in front
 * takes away. At most 32 parts. SW_EINVAL names the part that is unknown.
 * *def (may be NULL) becomes the level where the word is one level alone, else NULL.
 */
SW_API int sw_level_parse(const sw_level_set *set, sw_str word, uint32_t *guarantees,
                          const sw_level_def **def, sw_error *err);

/*
 * The best name for a set: the level of `family` (a level id, alias or backend; may
 * be empty) that equals it, else the largest of that family which it contains, else
 * "partial" where something isolates, "process_group" where only tree_kill holds,
 * "none". Never claims a guarantee that `guarantees` lacks; callers add what was granted
 * away on purpose (bwrap with the network allowed is still bwrap). Borrowed.
 */
SW_API const char *sw_level_name(const sw_level_set *set, sw_str family, uint32_t guarantees);

/* "fs_write, network" in the order of names.h; "" for none. Returns the length. */
SW_API size_t sw_guarantees_text(uint32_t guarantees, char out[SW_GUARANTEES_TEXT_MAX]);

typedef enum {
	SW_REASON_NONE,      /* nobody said why */
	SW_REASON_EXPLAINED, /* a reason is given */
	SW_REASON_EXEMPT,    /* by design: a documented exemption */
	SW_REASON_COUNT
} sw_reason_class;
SW_API const char *sw_reason_class_name(sw_reason_class c); /* "none", "explained", "exempt" */

/* What one invocation asked for and what is known about what it got. */
typedef struct sw_level_input {
	bool has_requested; /* false: nothing was asked for, so nothing can be lost */
	uint32_t requested;
	bool has_minimum;
	uint32_t minimum;
	uint32_t granted;   /* guarantees given away on purpose: network where it is allowed */
	uint32_t effective; /* ignored where basis is UNKNOWN */
	sw_basis basis;
	uint32_t lowered; /* lost by downgrade notices in the output (sw_result.lowers) */
	sw_reason_class reason;
	bool not_run; /* runner_failed or sandbox_unavailable: there was nothing to contain */
} sw_level_input;

typedef struct sw_level_outcome {
	uint32_t requested; /* without what was granted away */
	uint32_t minimum;   /* the same */
	uint32_t effective; /* what is known to have held; 0 where the basis is unknown */
	uint32_t lost;      /* requested, not known to have held */
	uint32_t violated;  /* minimum, not known to have held */
	sw_basis basis;
	bool known;       /* the basis is not UNKNOWN */
	bool isolated;    /* known, and an isolating guarantee held */
	bool downgrade;   /* lost is not empty */
	bool unexplained; /* a downgrade without a reason */
	bool exempt;      /* a downgrade by design */
	bool violation;   /* violated is not empty; no reason cures it */
	bool contained;   /* ran, isolated, nothing lost, no violation: may be shown as contained */
	sw_enforcement enforcement; /* the seeds' word: full, partial, none, unknown */
} sw_level_outcome;

/*
 * Compares. An unknown basis holds nothing: what was requested counts as lost, the
 * minimum as violated, and the outcome is never contained. A granted guarantee is
 * neither requested nor required ("no route unless granted"). A notice in the output
 * can only lower. With exempt the downgrade stays one, marked.
 */
SW_API sw_level_outcome sw_level_compare(const sw_level_input *in);

#ifdef __cplusplus
}
#endif
#endif
