/*
 * places.h - the places of a host that give more away than the files in them: sockets of
 * daemons, shared memory, files that the host executes later, secrets that only root reads.
 *
 * One table for all runners. Pure: by text alone; paths are absolute and normal.
 */
#ifndef SW_RUN_PLACES_H
#define SW_RUN_PLACES_H

#include "levels.h"

typedef enum {
	SW_PLACE_SOCKET, /* who reaches it has things done outside, as far as `loses` says */
	SW_PLACE_SHARED, /* reading it is enough */
	SW_PLACE_LATER,  /* what is written there is executed outside */
	SW_PLACE_SECRET  /* only root can read it */
} sw_place_kind;

typedef struct sw_place {
	const char *path;
	sw_place_kind kind;
	uint32_t loses; /* 0: harmless, an exception to the place it lies in */
	/* Only what lies in it counts, not a folder above it: the others say more exactly what
	 * is there. */
	bool only_inside;
	/* The other way round: many things lie in it, only all of it gives something away. */
	bool only_whole;
	/* Not there on most hosts, and in a folder that is often shared: a bind of the folder
	 * counts only where a look at the host shows it. */
	bool rare;
} sw_place;

extern const sw_place sw_places[];
extern const size_t sw_places_n;

/* Folders with an entry for each user, which nobody else but root can read. */
typedef struct sw_place_users {
	const char *path;
	bool disks; /* what lies in an entry are whole disks: a named one is granted */
} sw_place_users;
extern const sw_place_users sw_places_users[];
extern const size_t sw_places_users_n;
/* `path` is such an entry of this user (NULL: of anybody), or lies in it; a disk does not. */
bool sw_place_of_user(const char *path, const char *user);
/* By text: an entry of this user is seen in `path`. Disks count in the folder itself only. */
bool sw_place_shows_user(const char *path, const char *user);

/* /var/run is /run on every system of today. */
const char *sw_place_alias(const char *path, char *out, size_t n);
/* The innermost place of this kind that `path` is or lies in; NULL: none. */
const sw_place *sw_place_of(const char *path, sw_place_kind kind);
/* What binding `path` gives away through sockets and shared memory: in a place, or above. */
uint32_t sw_place_loses(const char *path);
/* A name that says that it is a socket: docker.sock, snapd.socket, system_bus_socket. */
bool sw_place_socket_name(const char *path);
/* An entry of a home that the owner's programs execute or obey: .bashrc, .local/bin. `rest`
 * is the path below the home, without a slash in front. */
bool sw_place_home_later(const char *rest);
/* A device through which nothing of the host is reached. */
bool sw_place_device_harmless(const char *path);

#endif
