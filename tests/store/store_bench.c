/*
 * store_bench - measures the audit trail beside the disk it is on, in one run.
 *
 *   store_bench rate DIR [N]            one process, one record per transaction, against
 *                                       4 KiB append + fdatasync and against itself
 *   store_bench many DIR PROCS N        PROCS processes, N records in all: rate, worst wait
 *   store_bench generate DB N [SEED]    N invocations over 90 days, as a busy fleet makes them
 *   store_bench kill DIR ROUNDS [SEED]  kill -9 at random instants while four processes write;
 *                                       whatever was acknowledged must be there
 *   store_bench reports DB              every report with every filter: seconds, peak memory
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"
#include "store.h"

static double seconds(void)
{
	return (double)sw_monotonic_ns() / 1e9;
}

static void die(const char *what, const sw_error *e)
{
	fprintf(stderr, "%s\n", what);
	if (e)
		sw_error_print(stderr, e);
	exit(1);
}

static uint64_t state = 88172645463325252ull;
static uint32_t rnd(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 11) % n);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* 4 KiB append + fdatasync on a growing file: what a durable record costs at least. */
struct raw {
	char path[4096];
	int fd;
};

static void raw_open(struct raw *r, const char *dir)
{
	snprintf(r->path, sizeof r->path, "%s/raw.%d.tmp", dir, (int)getpid());
	r->fd = open(r->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (r->fd < 0)
		die("cannot write beside the trail", NULL);
}

static double raw_one(struct raw *r)
{
	static char page[4096];
	double a = seconds();
	if (write(r->fd, page, sizeof page) != sizeof page || fdatasync(r->fd) != 0)
		die("append failed", NULL);
	return seconds() - a;
}

static void raw_close(struct raw *r)
{
	close(r->fd);
	unlink(r->path);
}

static double sum_of(const double *t, int n)
{
	double s = 0;
	for (int i = 0; i < n; i++)
		s += t[i];
	return s;
}

static void fill(sw_record *r, sw_str argv[4], char *session, size_t n, uint64_t i)
{
	memset(r, 0, sizeof *r);
	snprintf(session, n, "s-%llu", (unsigned long long)i / 100);
	argv[0] = SW_STR("/usr/bin/bwrap");
	argv[1] = SW_STR("--ro-bind");
	argv[2] = SW_STR("/");
	argv[3] = SW_STR("make -j4 check");
	r->argv = argv;
	r->argc = 4;
	r->backend = SW_STR("bwrap");
	r->session = sw_str_of(session);
	r->actor = SW_STR("bench");
	r->runtime = SW_STR("bench");
	r->requested = SW_STR("bwrap");
	r->effective = SW_STR("bwrap");
	r->level.basis = SW_BASIS_DERIVED;
	r->outcome.verdict = SW_RECORD_OK;
	r->outcome.has_exit = true;
	r->outcome.exit.has_code = true;
	r->outcome.rule = 2;
}

/*
 * In turns of 50, so that whatever else the machine does hits both alike; the bar is on
 * the sums, everything included (checkpoints, seals).
 */
static int rate(const char *dir, int n)
{
	struct raw raw;
	char path[4096], session[40];
	sw_error e = {0};
	sw_store *s = NULL;
	double *a = calloc((size_t)n, sizeof *a), *b = calloc((size_t)n, sizeof *b);
	snprintf(path, sizeof path, "%s/rate.db", dir);
	raw_open(&raw, dir);
	if (!a || !b || sw_store_open(&s, path, SW_STORE_WRITE, NULL, &e) != 0)
		die("open", &e);
	for (int i = 0; i < n; i += 50) {
		for (int k = i; k < i + 50 && k < n; k++)
			a[k] = raw_one(&raw);
		for (int k = i; k < i + 50 && k < n; k++) {
			sw_record r;
			sw_str argv[4];
			fill(&r, argv, session, sizeof session, (uint64_t)k);
			double t = seconds();
			if (sw_store_complete(s, &r, NULL, &e) != 0)
				die("record", &e);
			b[k] = seconds() - t;
		}
	}
	sw_store_close(s);
	raw_close(&raw);
	double x = n / sum_of(a, n), y = n / sum_of(b, n);
	qsort(a, (size_t)n, sizeof *a, by_value);
	qsort(b, (size_t)n, sizeof *b, by_value);
	printf("append+fdatasync %7.0f/s (median %4.0f us, worst %6.2f ms)\n", x, a[n / 2] * 1e6,
	       a[n - 1] * 1e3);
	printf("durable record   %7.0f/s (median %4.0f us, worst %6.2f ms)\n", y, b[n / 2] * 1e6,
	       b[n - 1] * 1e3);
	printf("%.0f %% of append+fdatasync (bar: 80 %%)\n", 100 * y / x);
	free(a);
	free(b);
	return y / x >= 0.8 ? 0 : 10;
}

struct shared {
	double worst[64];
	uint64_t acked[64];
	double sync[100000]; /* seconds of single fdatasyncs, taken while the writers run */
	int n_sync;
	volatile int done;
};

static void sample_disk(struct shared *m, const char *dir)
{
	struct raw raw;
	raw_open(&raw, dir);
	while (!m->done && m->n_sync < 100000) {
		m->sync[m->n_sync++] = raw_one(&raw);
		usleep(2000);
	}
	raw_close(&raw);
	_exit(0);
}

static int many(const char *dir, int procs, int n)
{
	struct shared *m =
	    mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char path[4096];
	snprintf(path, sizeof path, "%s/many.db", dir);
	pid_t sampler = fork();
	if (sampler == 0)
		sample_disk(m, dir);
	double begin = seconds();
	for (int p = 0; p < procs; p++) {
		if (fork() != 0)
			continue;
		sw_error e = {0};
		sw_store *s = NULL;
		if (sw_store_open(&s, path, SW_STORE_WRITE, NULL, &e) != 0)
			die("open", &e);
		for (int i = p; i < n; i += procs) {
			sw_record r;
			sw_str argv[4];
			char session[40];
			fill(&r, argv, session, sizeof session, (uint64_t)i);
			double a = seconds();
			if (sw_store_complete(s, &r, NULL, &e) != 0)
				die("record", &e);
			a = seconds() - a;
			m->worst[p] = a > m->worst[p] ? a : m->worst[p];
			m->acked[p]++;
		}
		sw_store_close(s);
		_exit(0);
	}
	int status, bad = 0;
	for (int left = procs; left > 0;) {
		pid_t who = wait(&status);
		if (who < 0)
			break;
		bad |= status;
		left -= who != sampler;
	}
	double all = seconds() - begin, worst = 0;
	m->done = 1;
	waitpid(sampler, &status, 0);
	qsort(m->sync, (size_t)m->n_sync, sizeof *m->sync, by_value);
	double median = m->n_sync ? m->sync[m->n_sync / 2] : 1e-4;
	uint64_t acked = 0;
	for (int p = 0; p < procs; p++) {
		worst = m->worst[p] > worst ? m->worst[p] : worst;
		acked += m->acked[p];
	}
	printf(
	    "%d processes: %llu records in %.2f s = %.0f/s, worst wait %.2f ms = %.0f medians of "
	    "fdatasync (%.0f us)\n",
	    procs, (unsigned long long)acked, all, (double)acked / all, worst * 1e3, worst / median,
	    median * 1e6);
	sw_error e = {0};
	sw_store *s = NULL;
	json_t *j = NULL;
	int verdict = 0;
	sw_store_counts c;
	if (sw_store_open(&s, path, SW_STORE_READ, NULL, &e) != 0 ||
	    sw_store_verify(s, NULL, &verdict, &j, &e) != 0 || sw_store_counts_get(s, &c, &e) != 0)
		die("verify", &e);
	printf("verify %d, %llu records there\n", verdict, (unsigned long long)c.total);
	bool exact = c.total == acked && acked == (uint64_t)n;
	json_decref(j);
	sw_store_close(s);
	return bad || !exact || (verdict != 0 && verdict != 3) ? 1 : worst > 80 * median ? 10 : 0;
}

/* ---- ten million ---- */

static const char *const backends[] = {"bwrap",    "docker", "landlock",
                                       "seatbelt", "podman", "firejail"};
static const char *const causes[] = {"userns-uid-map-denied", "daemon-not-running",
                                     "mount-source-missing", "userns-not-permitted",
                                     "image-not-found"};
static const char *const denials[] = {"write-outside-workspace", "network-denied",
                                      "permission-denied"};

struct made {
	char id[40], session[40], actor[24], device[24], resource[64], team[16];
	sw_label labels[2];
	sw_str argv[4];
	sw_record r;
};

static void make_one(struct made *m, uint64_t i, uint64_t n, int64_t begin)
{
	sw_record *r = &m->r;
	sw_outcome *o = &r->outcome;
	memset(r, 0, sizeof *r);
	uint64_t session = i / 100 + rnd(4);
	snprintf(m->session, sizeof m->session, "session-%07llu", (unsigned long long)session);
	snprintf(m->actor, sizeof m->actor, "actor-%03u", (unsigned)(session * 7919 % 200));
	snprintf(m->device, sizeof m->device, "device-%02u", (unsigned)(session * 104729 % 40));
	snprintf(m->team, sizeof m->team, "team-%u", (unsigned)(session % 9));
	int64_t span = 90LL * 86400 * 1000000000;
	r->started_ns = begin + (int64_t)((double)i / (double)n * (double)span) + rnd(1000000);
	r->ended_ns = r->started_ns + 1000000 + rnd(2000000000);
	r->session = sw_str_of(m->session);
	r->actor = sw_str_of(m->actor);
	r->device = sw_str_of(m->device);
	r->platform = SW_STR("linux-x86_64");
	r->runtime = SW_STR("generated");
	m->labels[0] = (sw_label){SW_STR("team"), sw_str_of(m->team)};
	m->labels[1] = (sw_label){SW_STR("env"), session % 3 ? SW_STR("prod") : SW_STR("test")};
	r->labels = m->labels;
	r->n_labels = 2;
	m->argv[0] = SW_STR("bwrap");
	m->argv[1] = SW_STR("--ro-bind");
	m->argv[2] = SW_STR("/usr");
	m->argv[3] = SW_STR("cargo test --workspace");
	r->argv = m->argv;
	r->argc = 4;
	uint32_t b = rnd(100);
	r->backend = sw_str_of(backends[b < 60 ? 0 : b < 80 ? 1 : b < 90 ? 2 : 3 + rnd(3)]);
	r->mode = SW_MODE_WORKSPACE_WRITE;
	r->network = rnd(4) ? SW_NETWORK_DENIED : SW_NETWORK_ALLOWED;
	sw_level_input in = {.has_requested = true, .basis = SW_BASIS_DERIVED};
	sw_level_parse(sw_builtin_levels(), SW_STR("bwrap"), &in.requested, NULL, NULL);
	in.effective = in.requested;
	r->requested = r->effective = SW_STR("bwrap");
	uint32_t roll = rnd(1000);
	if (roll < 40) {
		in.effective &= ~SW_G(NETWORK);
		r->effective = SW_STR("bwrap_partial");
		in.reason = roll < 30 ? SW_REASON_EXPLAINED : SW_REASON_NONE;
		r->reason =
		    roll < 30 ? SW_STR("host network requested by manifest") : (sw_str){"", 0};
	}
	if (roll < 4) {
		in.has_minimum = true;
		in.minimum = in.requested;
		r->minimum = SW_STR("bwrap");
	}
	o->has_exit = true;
	o->exit.has_code = true;
	o->rule = 2;
	roll = rnd(1000);
	if (roll < 20) {
		o->verdict = SW_RECORD_RUNNER_FAILED;
		o->stage = rnd(3) ? SW_STAGE_SETUP : SW_STAGE_EXEC;
		o->cause = sw_str_of(causes[rnd(5)]);
		o->signature = o->cause;
		o->exit.code = 1;
		o->evidence = SW_EVIDENCE_TEXT;
		in.not_run = true;
	} else if (roll < 90) {
		o->verdict = SW_RECORD_SANDBOX_DENIED;
		o->cause = sw_str_of(denials[rnd(3)]);
		o->signature = o->cause;
		o->operation = SW_OPERATION_WRITE;
		snprintf(m->resource, sizeof m->resource, "/etc/generated/%u.conf", rnd(3000));
		o->resource = sw_str_of(m->resource);
		o->resource_kind = SW_STR("path");
		o->exit.code = 1;
		o->evidence = SW_EVIDENCE_TEXT;
	}
	r->reason_class = in.reason;
	r->level = sw_level_compare(&in);
}

static int generate(const char *path, uint64_t n, uint64_t seed)
{
	sw_error e = {0};
	sw_store *s = NULL;
	struct made *m = calloc(SW_STORE_GROUP_MAX, sizeof *m);
	sw_store_op *ops = calloc(SW_STORE_GROUP_MAX, sizeof *ops);
	state ^= seed * 0x9e3779b97f4a7c15ull;
	if (!m || !ops || sw_store_open(&s, path, SW_STORE_WRITE, NULL, &e) != 0)
		die("open", &e);
	int64_t begin = sw_now_ns() - 90LL * 86400 * 1000000000;
	double t = seconds();
	for (uint64_t i = 0; i < n;) {
		size_t k = 0;
		for (; k < SW_STORE_GROUP_MAX && i < n; k++, i++) {
			make_one(&m[k], i, n, begin);
			ops[k] = (sw_store_op){.kind = SW_STORE_COMPLETE, .record = &m[k].r};
		}
		if (sw_store_write(s, ops, k, &e) != 0)
			die("record", &e);
		if (i % (1024 * 256) == 0)
			fprintf(stderr, "\r%llu", (unsigned long long)i);
	}
	if (sw_store_seal(s, NULL, &e) != 0)
		die("seal", &e);
	fprintf(stderr, "\r%llu records in %.0f s\n", (unsigned long long)n, seconds() - t);
	sw_store_close(s);
	free(m);
	free(ops);
	return 0;
}

static long peak_kib(void)
{
	long kib = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

/* Each in its own process: its time and its memory are its own. */
static int one_report(const char *path, const char *report, const char *key, const char *value)
{
	double *out = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fflush(stdout);
	if (fork() == 0) {
		sw_error e = {0};
		sw_store *s = NULL;
		sw_query q = {0};
		json_t *j = NULL;
		double t = seconds();
		if (sw_store_open(&s, path, SW_STORE_READ, NULL, &e) != 0 ||
		    (key && sw_query_set(&q, key, value, sw_now_ns(), &e) != 0) ||
		    sw_store_report(s, report, &q, &j, &e) != 0)
			die(report, &e);
		out[0] = seconds() - t;
		out[1] = (double)peak_kib() / 1024;
		out[2] = (double)json_array_size(json_object_get(j, "rows"));
		_exit(0);
	}
	int status;
	wait(&status);
	bool slow = out[0] > 2 || out[1] > 64;
	printf("%-12s %-9s %-26s %5.2f s %6.1f MiB %5.0f rows%s\n", report, key ? key : "-",
	       value ? value : "-", out[0], out[1], out[2], slow ? "  OVER THE BAR" : "");
	int rc = status ? 1 : slow ? 10 : 0;
	munmap(out, 4096);
	return rc;
}

static int reports(const char *path)
{
	static const char *const filters[][2] = {{NULL, NULL},
	                                         {"since", "7d"},
	                                         {"until", "24h"},
	                                         {"backend", "bwrap"},
	                                         {"verdict", "ok"},
	                                         {"level", "bwrap_partial"},
	                                         {"cause", "daemon-not-running"},
	                                         {"session", "session-0000500"},
	                                         {"actor", "actor-007"},
	                                         {"device", "device-07"},
	                                         {"label", "team=team-3"}};
	const char *const *names = sw_report_names(NULL);
	int rc = 0;
	one_report(path, "summary", NULL, NULL); /* warms the cache */
	for (int i = 0; names[i]; i++)
		for (size_t f = 0; f < sizeof filters / sizeof *filters; f++) {
			int one = one_report(path, names[i], filters[f][0], filters[f][1]);
			rc = one > rc ? one : rc;
		}
	return rc;
}

/* ---- kill -9 ---- */

/* Writes until it is killed, and says on fd what was acknowledged: "b ID" or "e ID". */
static void write_until_killed(const char *path, int fd, int who, int round)
{
	sw_error e = {0};
	sw_store *s = NULL;
	/* Small segments: seals and rollups are in the middle of it as well. */
	sw_store_options o = {.segment_rows = 64};
	if (sw_store_open(&s, path, SW_STORE_WRITE, &o, &e) != 0)
		die("open", &e);
	for (int i = 0;; i++) {
		sw_record r;
		sw_str argv[4];
		char session[40], id[64], ack[80];
		fill(&r, argv, session, sizeof session, (uint64_t)i);
		snprintf(id, sizeof id, "k-%d-%d-%d", round, who, i);
		r.id = sw_str_of(id);
		bool whole = i % 3 == 0;
		if ((whole ? sw_store_complete(s, &r, NULL, &e)
		           : sw_store_begin(s, &r, NULL, &e)) != 0)
			die("record", &e);
		int n = snprintf(ack, sizeof ack, "%c %s\n", whole ? 'e' : 'b', id);
		if (write(fd, ack, (size_t)n) != n)
			_exit(1);
		if (whole || i % 3 == 1)
			continue; /* every third is never ended */
		if (sw_store_end(s, &r, NULL, &e) != 0)
			die("end", &e);
		n = snprintf(ack, sizeof ack, "e %s\n", id);
		if (write(fd, ack, (size_t)n) != n)
			_exit(1);
	}
}

static int check_acked(const char *path, const char *acks, uint64_t *acked)
{
	sw_error e = {0};
	sw_store *s = NULL;
	char line[128], id[100], kind;
	int bad = 0, verdict = 0;
	json_t *j = NULL;
	if (sw_store_open(&s, path, SW_STORE_WRITE, NULL, &e) != 0)
		die("reopen", &e);
	FILE *f = fopen(acks, "re");
	while (f && fgets(line, sizeof line, f)) {
		if (!strchr(line, '\n') || sscanf(line, "%c %99s", &kind, id) != 2)
			continue; /* killed while it said so */
		json_t *o = NULL;
		if (sw_store_invocation(s, id, &o, &e) != 0) {
			fprintf(stderr, "acknowledged and lost: %s", line);
			bad++;
			continue;
		}
		const char *verdict_now = json_string_value(json_object_get(o, "verdict"));
		if (kind == 'e' && strcmp(verdict_now, "unfinished") == 0) {
			fprintf(stderr, "acknowledged end is lost: %s", line);
			bad++;
		}
		json_decref(o);
		++*acked;
	}
	if (f)
		fclose(f);
	if (sw_store_verify(s, NULL, &verdict, &j, &e) != 0)
		die("verify", &e);
	if (verdict != 0 && verdict != 3) {
		char *z = json_dumps(j, JSON_INDENT(1));
		fprintf(stderr, "verify says %d: %s\n", verdict, z);
		bad++;
	}
	json_decref(j);
	sw_store_close(s);
	return bad;
}

/* Until so many acknowledgements are there, 2 s at most. */
static void wait_for(int fd, uint32_t lines)
{
	struct stat st;
	for (int i = 0; i < 2000; i++) {
		if (fstat(fd, &st) == 0 && st.st_size >= (off_t)lines * 10)
			return;
		usleep(1000);
	}
}

static int kill_rounds(const char *dir, int rounds, uint64_t seed)
{
	char path[4096], acks[4096];
	uint64_t acked = 0;
	int bad = 0;
	state ^= seed * 0x9e3779b97f4a7c15ull;
	snprintf(acks, sizeof acks, "%s/acks", dir);
	for (int round = 0; round < rounds; round++) {
		/* a new trail now and then: creation is killed as well */
		snprintf(path, sizeof path, "%s/kill.%d.db", dir, round / 10);
		int fd = open(acks, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
		pid_t pids[4];
		for (int p = 0; p < 4; p++)
			if ((pids[p] = fork()) == 0)
				write_until_killed(path, fd, p, round);
		/* First one of them, then all: the others must get over its death. The instants
		 * follow the work done, so that a slow machine does not kill only beginners. */
		wait_for(fd, round % 10 == 0 ? 0 : rnd(60));
		usleep(rnd(8000));
		kill(pids[rnd(4)], SIGKILL);
		wait_for(fd, rnd(100));
		usleep(rnd(8000));
		for (int p = 0; p < 4; p++)
			kill(pids[p], SIGKILL);
		for (int p = 0; p < 4; p++) {
			int status;
			waitpid(pids[p], &status, 0);
			if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
				fprintf(stderr, "round %d: a writer ended by itself (%x)\n", round,
				        status);
				bad++;
			}
		}
		close(fd);
		bad += check_acked(path, acks, &acked);
	}
	printf("%d kills of four writers each: %llu acknowledged, %d wrong\n", rounds,
	       (unsigned long long)acked, bad);
	return bad ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	if (strcmp(what, "rate") == 0)
		return rate(argv[2], argc > 3 ? atoi(argv[3]) : 3000);
	if (strcmp(what, "many") == 0 && argc == 5 && atoi(argv[3]) > 0 && atoi(argv[3]) <= 64)
		return many(argv[2], atoi(argv[3]), atoi(argv[4]));
	if (strcmp(what, "generate") == 0 && argc > 3)
		return generate(argv[2], strtoull(argv[3], NULL, 10),
		                argc > 4 ? strtoull(argv[4], NULL, 10) : 1);
	if (strcmp(what, "kill") == 0 && argc > 3)
		return kill_rounds(argv[2], atoi(argv[3]),
		                   argc > 4 ? strtoull(argv[4], NULL, 10) : 1);
	if (strcmp(what, "reports") == 0)
		return reports(argv[2]);
	fprintf(stderr,
	        "usage: store_bench rate DIR [N] | many DIR PROCS N | kill DIR ROUNDS [SEED] | "
	        "generate DB N [SEED] | "
	        "reports DB\n");
	return 2;
}
