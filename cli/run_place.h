/*
 * run_place.h - where --verdict-file goes. The command may write the folder it lies in,
 * and put a link in the way while it runs; so the place is settled before it starts and
 * no name is followed afterwards.
 */
#ifndef SW_RUN_PLACE_H
#define SW_RUN_PLACE_H

#include "base.h"

#include <sys/stat.h>

typedef struct run_place {
	const char *path, *name; /* borrowed; name: the last part */
	int folder;              /* O_PATH; -1: none */
	int fd;                  /* what a link (/dev/fd/N) led to at the start, or the FIFO itself
	                          * (O_PATH); -1: none */
	bool is_fifo;
	int number; /* why there is no place, an errno; 0: there is */
} run_place;

/* path NULL: no file is wanted. Errors are told when something is to be written. */
void run_place_open(run_place *p, const char *path);
void run_place_close(run_place *p);
/* A reader of the file sees all of the text or none. 0 or SW_EIO. */
int run_place_write(const run_place *p, const char *text, size_t n, sw_error *err);

#endif
