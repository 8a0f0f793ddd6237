/* probe_int.h - shared by the files of probe/; see probe.h. */
#ifndef SW_PROBE_INT_H
#define SW_PROBE_INT_H

#include "child.h"
#include "confine.h"
#include "probe.h"
#include "proof.h"

/* One status or choose call. */
typedef struct pr_call {
	const sw_probe_options *opts;
	int deadline_ms;
	const sw_pack_set *packs;
	sw_confine_host host;
	bool *no_memory; /* set where memory failed: what was found out may then not be so */
	char os_id[64], os_like[128]; /* of /etc/os-release, for the advice */
} pr_call;

#define PR_NO_MEMORY "out-of-memory" /* the cause, of the packs */

typedef struct pr_backend pr_backend;
struct pr_backend {
	const char *id;
	const char *program; /* NULL: built in */
	bool here;           /* on this platform */
	/* Fills result, steps, cause, guarantees. b->path is set. NULL: found only. */
	void (*probe)(const pr_call *c, sw_backend_status *b);
};
extern const pr_backend pr_backends[];
extern const size_t pr_backends_n;
const pr_backend *pr_backend_find(const char *id);

void pr_probe_bwrap(const pr_call *c, sw_backend_status *b);
void pr_probe_landlock(const pr_call *c, sw_backend_status *b);
void pr_probe_docker(const pr_call *c, sw_backend_status *b);
void pr_probe_podman(const pr_call *c, sw_backend_status *b);
void pr_probe_seatbelt(const pr_call *c, sw_backend_status *b);
void pr_probe_wrapper(const pr_call *c, sw_backend_status *b); /* firejail, nsjail, systemd-run */
void pr_probe_oci(const pr_call *c, sw_backend_status *b);     /* runc, crun, runsc */

/* ---- judge.c: from a child's outcome to a result ---- */
/* A proof's spawn. `ok`: what its success is called. */
void pr_conclude(const pr_call *c, sw_backend_status *b, const pf_proof *p, const pb_outcome *o,
                 uint32_t expected, uint32_t claims, sw_probe_result ok);
/* A step that failed with this output: cause, advice and line by the backend's pack. */
void pr_blame(const pr_call *c, sw_backend_status *b, const pb_outcome *o);
/* pf_plant(), or the result that there is no place for a probe. */
bool pr_planted(const pr_call *c, sw_backend_status *b, pf_proof *p);
void pr_set_cause(const pr_call *c, sw_backend_status *b, const char *cause);
/* A first line of output for a step's detail, whatever bytes it holds. */
void pr_first_line(const pb_outcome *o, char *out, size_t n);

/* Spawns argv with a small environment and the planted canary (proof may be NULL). */
void pr_spawn(const pr_call *c, const pf_proof *p, char *const *argv, int (*child)(int, char **),
              pb_outcome *o);
/* `program --version`: the first word that begins with a digit. */
void pr_version(const pr_call *c, sw_backend_status *b, const char *option);

/* sw_find_program() that tells of a lack of memory. */
char *pr_find_program(const char *name, const char *search_path, char **untrusted, char *why,
                      size_t why_n, bool *no_memory);

/* ---- host.c, context.c, recheck.c ---- */
size_t pr_host_facts(sw_host_fact **out); /* 0: out of memory */
void pr_context(sw_probe_context *out, const char *search_path);
/* One fact's text by its id, "" where not known; for the context. */
void pr_read_word(const char *file, char *out, size_t n);
/* A note for this backend: its text into `why`, 1. 0: none, SW_ENOMEM: not known. */
int pr_recheck_pending(const char *state_dir, const char *backend, char *why, size_t n);
void pr_recheck_clear(const char *state_dir, const char *backend);
void pr_os_release(const char *file, char *id, size_t id_n, char *like, size_t like_n);

#endif
