/* derive_engine.h - shared by derive_engine*.c. */
#ifndef SW_RUN_DERIVE_ENGINE_H
#define SW_RUN_DERIVE_ENGINE_H

#include "derive_int.h"

typedef struct eng {
	dv *d;
	bool podman;
	bool network_none, network_other, privileged, detach, read_only, rootfs;
	bool memory, swap_open, pids;
	bool plain_user, no_new_privs;
	bool remapped;   /* a number inside can be any outside */
	bool no_systemd; /* --systemd=false */
	bool groups;     /* or capabilities: more rights than those of the user */
	const char *workdir, *entrypoint;
} eng;

typedef enum { V_SWITCH, V_VALUE } eng_arity;
typedef struct eng_option eng_option;
struct eng_option {
	const char *name;
	char letter; /* 0: none */
	eng_arity takes;
	void (*handle)(eng *e, const char *value); /* NULL: changes no guarantee */
};
typedef struct eng_table {
	const eng_option *list;
	size_t n;
} eng_table;

/* Options before the sub-command, and those of `run`. */
extern const eng_table dv_engine_global, dv_engine_run;

#endif
