/*
 * proof.h - what a probe plants, the script it runs inside, and how what came back is
 * judged. One spawn proves both directions:
 *
 *   permitted-write   a file written in the workspace arrives with the right content
 *   forbidden-write   files outside (in the home, in /var/tmp) do not exist afterwards
 *   private-read      the content of a file planted in the home did not come back
 *   env               a planted variable did not come back
 *   network           a port that listens here is not in the inner /proc/net/tcp
 *   pid               this process is not in the inner /proc
 *   ipc               a shared memory segment made here is not in the inner list
 *   syscalls          the inner status says that a filter is in force
 *
 * The files and this side's secrets decide; a runner that prints what it likes proves
 * nothing. Secrets are random and reach the inside by no other way than a breach.
 */
#ifndef SW_PROBE_PROOF_H
#define SW_PROBE_PROOF_H

#include "probe.h"

#define PF_CANARY "SANDWITNESS_PROBE_CANARY"

typedef struct pf_proof {
	char base[96]; /* own folder under /tmp */
	char workspace[128];
	char outside[512];  /* own folder in the home, or in /var/tmp where there is no home */
	char elsewhere[64]; /* another one, in /var/tmp; "" where none can be made */
	char secret_file[600];
	bool in_home;
	char nonce[33], secret[33], canary[33];
	int listener; /* TCP on 127.0.0.1, -1: none could be made */
	char port_hex[5];
	int shm; /* -1: none */
	char shm_key[16];
	char pid[16];
	char comm[32];
} pf_proof;

/* 0, SW_EIO or SW_ENOMEM: nothing can be planted (the error says where). */
int pf_plant(pf_proof *p, const char *home, sw_error *err);
/* Removes everything; safe after a failed pf_plant. */
void pf_clear(pf_proof *p);

#define PF_ARGS_MAX 16
/* The command to wrap: /bin/sh -c SCRIPT ...; borrows from p. Returns the count. */
size_t pf_command(const pf_proof *p, sw_str out[PF_ARGS_MAX]);

typedef struct pf_verdict {
	bool started;     /* the inner script's first line came back */
	bool finished;    /* its last one */
	bool permitted;   /* the permitted write arrived */
	bool escaped;     /* the forbidden write succeeded */
	bool leaked;      /* the secret came back */
	uint32_t proved;  /* guarantees shown to hold */
	uint32_t refuted; /* guarantees shown not to hold */
} pf_verdict;

/* Judges, and adds one step for each proof that `expected` guarantees call for. */
pf_verdict pf_judge(const pf_proof *p, const char *output, size_t n, uint32_t expected,
                    sw_backend_status *b);

/* Adds a step; over SW_PROBE_STEPS_MAX it is dropped. */
void pf_step(sw_backend_status *b, const char *name, sw_step_result r, const char *fmt, ...)
    SW_PRINTF(4, 5);

#endif
