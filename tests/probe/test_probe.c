/* The probe library: proofs that catch, notes of failures, choosing, finding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "landlock.h"
#include "probe.h"
#include "proof.h"

static char place[64];

static int setup(void **state)
{
	(void)state;
	strcpy(place, "/tmp/sandwitness-test.XXXXXX");
	return mkdtemp(place) && !chmod(place, 0755) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char *argv[] = {"/bin/rm", "-rf", place, NULL}, *envp[] = {NULL};
	pb_command c = {.argv = argv, .envp = envp, .deadline_ms = 10000};
	pb_outcome o;
	pb_run(&c, &o);
	int rc = o.code;
	pb_outcome_free(&o);
	return rc;
}

static char *script(const char *name, const char *body)
{
	char *path = NULL;
	assert_true(asprintf(&path, "%s/%s", place, name) > 0);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", body);
	fclose(f);
	assert_int_equal(chmod(path, 0755), 0);
	return path;
}

static sw_status *status(sw_probe_options o)
{
	sw_status *s = NULL;
	sw_error e = {0};
	o.state_dir = o.state_dir ? o.state_dir : place;
	if (sw_status_read(&s, &o, &e))
		fail_msg("%s", e.what);
	return s;
}

static const sw_probe_step *step(const sw_backend_status *b, const char *name)
{
	for (size_t i = 0; i < b->n_steps; i++)
		if (!strcmp(b->steps[i].name, name))
			return &b->steps[i];
	return NULL;
}

/* ---- Landlock ---- */

static bool landlock_here(void)
{
	return sw_landlock_abi() >= SW_LANDLOCK_ABI_MIN;
}

static void landlock_is_proved(void **state)
{
	(void)state;
	if (!landlock_here())
		skip();
	sw_status *s = status((sw_probe_options){.probe = true, .only = "landlock"});
	const sw_backend_status *b = sw_status_backend(s, "landlock");
	assert_int_equal(b->result, SW_PROBE_FULL);
	assert_int_equal(b->guarantees, SW_G(FS_WRITE) | SW_G(FS_READ) | SW_G(ENV));
	assert_int_equal(step(b, "private-read")->result, SW_STEP_OK);
	assert_int_equal(step(b, "forbidden-write")->result, SW_STEP_OK);
	sw_status_free(s);
}

/* A launcher that grants one rule more than it was asked to. */
static void one_rule_too_many(const char *rule, const char *failed_step)
{
	const char *program = getenv("SANDWITNESS");
	char body[1024];
	if (!landlock_here() || !program || access(program, X_OK))
		skip();
	snprintf(body, sizeof(body), "shift; exec '%s' __landlock %s \"$@\"", program, rule);
	char *launcher = script("launcher", body);
	sw_status *s = status(
	    (sw_probe_options){.probe = true, .only = "landlock", .landlock_launcher = launcher});
	const sw_backend_status *b = sw_status_backend(s, "landlock");
	if (failed_step) {
		assert_int_equal(b->result, SW_PROBE_UNUSABLE);
		assert_string_equal(b->cause, "probe-not-confined");
		assert_int_equal(step(b, failed_step)->result, SW_STEP_FAILED);
		assert_int_equal(b->guarantees, 0);
		assert_true(b->advice[0]);
	} else {
		assert_int_equal(b->result, SW_PROBE_FULL);
	}
	sw_status_free(s);
	free(launcher);
}

static void a_rule_too_many_is_caught(void **state)
{
	(void)state;
	one_rule_too_many("", NULL); /* the launcher itself works */
	one_rule_too_many("--ro /", "private-read");
	one_rule_too_many("--rw /", "forbidden-write");
	/* the rest of the home, or /var/tmp: whichever the probe plants in */
	one_rule_too_many("--rw /var/tmp --rw-try \"$(getent passwd \"$(id -u)\" | cut -d: -f6)\"",
	                  "forbidden-write");
}

static void a_launcher_that_does_nothing(void **state)
{
	(void)state;
	if (!landlock_here())
		skip();
	char *launcher =
	    script("launcher", "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"");
	sw_status *s = status(
	    (sw_probe_options){.probe = true, .only = "landlock", .landlock_launcher = launcher});
	const sw_backend_status *b = sw_status_backend(s, "landlock");
	assert_int_equal(b->result, SW_PROBE_UNUSABLE);
	assert_string_equal(b->cause, "probe-not-confined");
	sw_status_free(s);
	free(launcher);
}

/* ---- the launcher's report of the start ---- */

static pb_outcome launch(char *const *args, char *report, size_t n)
{
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (!pid) {
		char fd[16], *argv[32] = {"__landlock", "--exec-fd", fd};
		size_t k = 3;
		snprintf(fd, sizeof(fd), "%d", fds[1]);
		close(fds[0]);
		while (*args)
			argv[k++] = *args++;
		argv[k] = NULL;
		int null = open("/dev/null", O_RDWR);
		dup2(null, 1);
		dup2(null, 2);
		_exit(sw_landlock_main((int)k, argv));
	}
	close(fds[1]);
	size_t len = 0;
	ssize_t got;
	while (len + 1 < n && (got = read(fds[0], report + len, n - 1 - len)) > 0)
		len += (size_t)got;
	report[len] = '\0';
	close(fds[0]);
	pb_outcome o = {0};
	int status_word;
	waitpid(pid, &status_word, 0);
	o.code = WIFEXITED(status_word) ? WEXITSTATUS(status_word) : -1;
	return o;
}

static void the_exec_pipe(void **state)
{
	(void)state;
	char report[256];
	if (!landlock_here())
		skip();
	char *fine[] = {"--ro-try", "/usr", "--ro-try", "/bin", "--ro-try", "/lib", "--ro-try",
	                "/lib64",   "--",   "/bin/sh",  "-c",   "exit 7",   NULL};
	assert_int_equal(launch(fine, report, sizeof(report)).code, 7);
	assert_string_equal(report, "ready\n");
	char *absent[] = {"--ro-try", "/usr", "--", "/usr/bin/nosuch-program", NULL};
	assert_int_equal(launch(absent, report, sizeof(report)).code, SW_LANDLOCK_EXIT_ABSENT);
	assert_string_equal(report, "ready\nfailed exec 2\n");
	char *denied[] = {"--ro-try", "/etc", "--", "/bin/sh", NULL};
	assert_int_equal(launch(denied, report, sizeof(report)).code, SW_LANDLOCK_EXIT_EXEC);
	assert_string_equal(report, "ready\nfailed exec 13\n");
	char *setup_fails[] = {"--ro", "/nonexistent", "--", "/bin/sh", NULL};
	assert_int_equal(launch(setup_fails, report, sizeof(report)).code, SW_LANDLOCK_EXIT_SETUP);
	assert_string_equal(report, "failed setup 2\n");
	char *unknown[] = {"--frob", "--", "/bin/sh", NULL};
	assert_int_equal(launch(unknown, report, sizeof(report)).code, SW_LANDLOCK_EXIT_SETUP);
	char *nothing[] = {"--ro-try", "/usr", NULL};
	assert_int_equal(launch(nothing, report, sizeof(report)).code, SW_LANDLOCK_EXIT_SETUP);
}

/* ---- the child with a deadline ---- */

static void a_deadline_ends_the_session(void **state)
{
	(void)state;
	char *argv[] = {"/bin/sh", "-c", "trap '' TERM INT HUP; echo begun; sleep 30 & sleep 30",
	                NULL};
	char *envp[] = {"PATH=/usr/bin:/bin", NULL};
	pb_command c = {.argv = argv, .envp = envp, .deadline_ms = 200};
	pb_outcome o;
	pb_run(&c, &o);
	assert_true(o.spawned && o.timed_out);
	assert_true(o.ms < 15000);
	assert_string_equal(o.out, "begun\n");
	pb_outcome_free(&o);
}

static void output_is_bounded(void **state)
{
	(void)state;
	char *argv[] = {"/bin/sh", "-c", "head -c 1000000 /dev/zero", NULL};
	char *envp[] = {"PATH=/usr/bin:/bin", NULL};
	pb_command c = {.argv = argv, .envp = envp, .deadline_ms = 10000};
	pb_outcome o;
	pb_run(&c, &o);
	assert_int_equal(o.code, 0);
	assert_int_equal(o.n, SW_PROBE_OUTPUT_MAX);
	pb_outcome_free(&o);
}

static void a_writer_left_behind_does_not_hold_it_up(void **state)
{
	(void)state;
	char *argv[] = {"/bin/sh", "-c", "sleep 20 & echo done; exit 4", NULL};
	char *envp[] = {"PATH=/usr/bin:/bin", NULL};
	pb_command c = {.argv = argv, .envp = envp, .deadline_ms = 10000};
	pb_outcome o;
	pb_run(&c, &o);
	assert_int_equal(o.code, 4);
	assert_false(o.timed_out);
	assert_true(o.ms < 15000);
	pb_outcome_free(&o);
}

static void nothing_is_inherited(void **state)
{
	(void)state;
	int leak = open("/etc/passwd", O_RDONLY);
	char *argv[] = {"/bin/sh", "-c", "ls /proc/self/fd | wc -l; env | grep -c PLANTED", NULL};
	char *envp[] = {"PATH=/usr/bin:/bin", NULL};
	setenv("PLANTED", "1", 1);
	pb_command c = {.argv = argv, .envp = envp, .deadline_ms = 10000};
	pb_outcome o;
	pb_run(&c, &o);
	close(leak);
	assert_string_equal(o.out, "4\n0\n"); /* 0, 1, 2 and the folder that ls reads */
	pb_outcome_free(&o);
	char *absent[] = {"/nonexistent/program", NULL};
	c.argv = absent;
	pb_run(&c, &o);
	assert_false(o.spawned);
	assert_int_equal(o.spawn_errno, ENOENT);
	pb_outcome_free(&o);
}

/* ---- judging what came back ---- */

/* A script's output with this proof's nonce around `middle`. */
static pf_verdict judge(const pf_proof *p, const char *middle, uint32_t expected,
                        sw_backend_status *b)
{
	char text[2048];
	int n =
	    snprintf(text, sizeof(text), "sandwitness-probe start %s\n%ssandwitness-probe end %s\n",
	             p->nonce, middle, p->nonce);
	return pf_judge(p, text, (size_t)n, expected, b);
}

#define ALL_SAID "env unset\ntcp seen\nshm seen\nseccomp 2\nproc seen\n"

static void words_prove_nothing_alone(void **state)
{
	(void)state;
	pf_proof p;
	sw_backend_status b = {0};
	assert_int_equal(pf_plant(&p, place, NULL), 0);
	/* everything said, the permitted write is missing */
	pf_verdict v = judge(&p, ALL_SAID, SW_GUARANTEES_ALL, &b);
	assert_true(v.started && v.finished);
	assert_false(v.permitted);
	/* another run's nonce */
	pf_verdict other = pf_judge(&p, "sandwitness-probe end 00\n", 25, 0, &b);
	assert_false(other.finished);
	/* the forbidden file counts, whatever was said */
	char path[700];
	snprintf(path, sizeof(path), "%s/forbidden", p.outside);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	v = judge(&p, ALL_SAID, SW_GUARANTEES_ALL, &b);
	assert_true(v.escaped);
	assert_true(v.refuted & SW_G(FS_WRITE));
	pf_clear(&p);
}

static void breaches_are_seen(void **state)
{
	(void)state;
	pf_proof p;
	sw_backend_status b = {0};
	char text[1024];
	assert_int_equal(pf_plant(&p, place, NULL), 0);
	snprintf(text, sizeof(text),
	         "read %s\nenv %s\ntcp shared\ntcp seen\nshm shared\nshm seen\npid %s\nseccomp 0\n"
	         "proc seen\n",
	         p.secret, p.canary, p.comm);
	pf_verdict v = judge(&p, text, SW_GUARANTEES_ALL, &b);
	assert_true(v.leaked);
	uint32_t all =
	    SW_G(FS_READ) | SW_G(ENV) | SW_G(NETWORK) | SW_G(PID) | SW_G(IPC) | SW_G(SYSCALLS);
	assert_int_equal(v.refuted & all, all);
	assert_int_equal(v.proved & all, 0);
	/* what could not be looked at is neither */
	v = judge(&p, "", SW_GUARANTEES_ALL, &b);
	assert_int_equal(
	    (v.proved | v.refuted) & (SW_G(NETWORK) | SW_G(PID) | SW_G(IPC) | SW_G(SYSCALLS)), 0);
	pf_proof gone = p;
	assert_int_equal(access(gone.base, F_OK), 0);
	pf_clear(&p);
	assert_int_equal(access(gone.base, F_OK), -1);
	assert_int_equal(access(gone.outside, F_OK), -1);
}

/* ---- notes of real failures ---- */

static int note(const char *folder, const char *backend, const char *cause, const char *id)
{
	sw_error e;
	int notes = sw_probe_notes_open(folder, &e);
	int rc = notes < 0 ? notes : sw_probe_note_failure(notes, backend, cause, id, &e);
	if (notes >= 0)
		close(notes);
	return rc;
}

/* What a command with the state folder in reach may put there before, or while it runs. */
static void a_folder_of_notes_that_was_replaced(void **state)
{
	(void)state;
	char own[160], file[200], away[160], target[200], text[32] = "";
	sw_error e;
	snprintf(own, sizeof own, "%s/recheck", place);
	snprintf(away, sizeof away, "%s/recheck.away", place);
	snprintf(target, sizeof target, "%s/elsewhere", place);
	assert_int_equal(note(place, "bwrap", "c", "i"), 0);
	assert_int_equal(mkdir(target, 0700), 0);
	snprintf(file, sizeof file, "%s/bwrap", target);
	int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, 0755);
	assert_int_equal(write(fd, "program", 7), 7);
	close(fd);
	/* while it runs: the note goes where it was to go */
	int notes = sw_probe_notes_open(place, &e);
	assert_true(notes >= 0);
	assert_int_equal(rename(own, away), 0);
	assert_int_equal(symlink(target, own), 0);
	assert_int_equal(sw_probe_note_failure(notes, "bwrap", "c", "i", &e), 0);
	close(notes);
	/* before: it is no folder of notes; nothing is read, replaced or removed through it */
	assert_true(sw_probe_notes_open(place, &e) < 0);
	assert_string_equal(e.where, own);
	sw_status *s = status((sw_probe_options){.search_path = "/nonexistent"});
	assert_string_equal(sw_status_backend(s, "bwrap")->recheck, "");
	sw_status_free(s);
	fd = open(file, O_RDONLY);
	assert_int_equal(read(fd, text, sizeof text), 7);
	close(fd);
	/* nor is one that others may write */
	assert_int_equal(unlink(own), 0);
	assert_int_equal(rename(away, own), 0);
	assert_int_equal(chmod(own, 0777), 0);
	assert_true(sw_probe_notes_open(place, &e) < 0);
	assert_int_equal(chmod(own, 0700), 0);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(target), 0);
	snprintf(file, sizeof file, "%s/bwrap", own);
	assert_int_equal(unlink(file), 0);
}

static void a_noted_failure_is_probed_once(void **state)
{
	(void)state;
	assert_int_equal(note(place, "landlock", "landlock-apply-failed", "id-1"), 0);
	/* status without a probe, and a look that must not probe */
	sw_status *s = status((sw_probe_options){.no_recheck = true});
	assert_int_equal(sw_status_backend(s, "landlock")->result, SW_PROBE_NOT_PROBED);
	sw_status_free(s);
	s = status((sw_probe_options){0});
	const sw_backend_status *b = sw_status_backend(s, "landlock");
	assert_int_not_equal(b->result, SW_PROBE_NOT_PROBED);
	assert_non_null(strstr(b->recheck, "landlock-apply-failed"));
	assert_non_null(strstr(b->recheck, "id-1"));
	assert_int_equal(sw_status_backend(s, "bwrap")->result, SW_PROBE_NOT_PROBED);
	sw_status_free(s);
	s = status((sw_probe_options){0});
	assert_int_equal(sw_status_backend(s, "landlock")->result, SW_PROBE_NOT_PROBED);
	sw_status_free(s);
}

static void hostile_notes(void **state)
{
	(void)state;
	char file[160];
	struct stat st;
	/* names that are no backend become no file */
	assert_int_equal(note(place, "../../x", "c", "i"), 0);
	assert_int_equal(note(place, "", "c", "i"), 0);
	/* text that is not plain is not kept */
	assert_int_equal(note(place, "bwrap", "evil\033[2J", "a\nb"), 0);
	snprintf(file, sizeof(file), "%s/recheck/bwrap", place);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	snprintf(file, sizeof(file), "%s/recheck", place);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	sw_status *s = status((sw_probe_options){.search_path = "/nonexistent"});
	const char *why = sw_status_backend(s, "bwrap")->recheck;
	assert_null(strchr(why, '\033'));
	assert_null(strchr(why, '\n'));
	sw_status_free(s);
	/* a link in the place of a note is not followed; a pipe does not block */
	snprintf(file, sizeof(file), "%s/recheck/docker", place);
	assert_int_equal(symlink("/etc/passwd", file), 0);
	snprintf(file, sizeof(file), "%s/recheck/podman", place);
	assert_int_equal(mkfifo(file, 0600), 0);
	s = status((sw_probe_options){.search_path = "/nonexistent"});
	assert_string_equal(sw_status_backend(s, "docker")->recheck, "");
	assert_string_equal(sw_status_backend(s, "podman")->recheck, "");
	sw_status_free(s);
	assert_true(note("/proc/nonexistent", "bwrap", "c", "i") < 0);
}

/* ---- the rest ---- */

static void a_confined_service_says_so(void **state)
{
	(void)state;
	sw_status *s = status((sw_probe_options){.probe = true, .confined_service = true});
	for (size_t i = 0; i < s->n_backends; i++) {
		assert_int_equal(s->backends[i].result, SW_PROBE_NOT_PROBED);
		if (s->backends[i].here)
			assert_string_equal(s->backends[i].cause, "service-confined");
	}
	sw_status_free(s);
}

static void choosing(void **state)
{
	(void)state;
	sw_backend_status *b = NULL;
	sw_error e = {0};
	sw_probe_options o = {.search_path = "/nonexistent", .state_dir = place};
	if (landlock_here()) {
		assert_int_equal(sw_probe_choose(&b, &o, SW_G(FS_WRITE), &e), 0);
		assert_string_equal(b->id, "landlock");
		sw_backend_status_free(b);
	}
	/* a minimum that nothing here holds */
	b = NULL;
	assert_int_equal(sw_probe_choose(&b, &o, SW_G(NETWORK) | SW_G(RESOURCES), &e),
	                 SW_ENOTFOUND);
	assert_null(b);
	assert_true(e.why[0] && e.fix[0]);
	if (landlock_here())
		assert_non_null(strstr(e.why, "landlock: lacks network"));
}

/* What a worker found: its argument, answered in place. */
typedef struct {
	const char *state_dir;
	int found;
} job;

static void *worker(void *arg)
{
	job *j = arg;
	sw_probe_options o = {
	    .probe = true, .only = "bwrap", .state_dir = j->state_dir, .no_recheck = true};
	sw_status *s = NULL;
	if (sw_status_read(&s, &o, NULL))
		return NULL;
	j->found = 1 + (int)sw_status_backend(s, "bwrap")->result;
	sw_status_free(s);
	return NULL;
}

static void side_by_side(void **state)
{
	(void)state;
	pthread_t t[4];
	job jobs[4];
	for (size_t i = 0; i < 4; i++) {
		jobs[i] = (job){place, 0};
		assert_int_equal(pthread_create(&t[i], NULL, worker, &jobs[i]), 0);
	}
	for (size_t i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_not_equal(jobs[0].found, 0);
	for (size_t i = 1; i < 4; i++)
		assert_int_equal(jobs[i].found, jobs[0].found);
}

static void status_as_json(void **state)
{
	(void)state;
	sw_probe_options o = {.state_dir = place};
	json_t *j = sw_status_read_json(&o, NULL);
	assert_non_null(j);
	static const char *const first[] = {"bwrap_available", "bwrap_path", "disabled_via_env",
	                                    "active",          "backends",   "host"};
	size_t i = 0;
	for (void *it = json_object_iter(j); it && i < 6; it = json_object_iter_next(j, it))
		assert_string_equal(json_object_iter_key(it), first[i++]);
	assert_int_equal(i, 6);
	json_decref(j);
	o.only = "frob";
	sw_error e = {0};
	assert_null(sw_status_read_json(&o, &e));
	assert_int_equal(e.code, SW_ENOTFOUND);
}

/* ---- doctor over made-up machines ---- */

static const sw_check *check(const sw_check *c, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(c[i].id, id))
			return &c[i];
	fail_msg("no check %s", id);
	return NULL;
}

static void a_machine_without_anything(void **state)
{
	(void)state;
	sw_backend_status b[] = {{.id = "bwrap", .here = true},
	                         {.id = "landlock", .here = true},
	                         {.id = "docker", .here = true}};
	sw_host_fact f[] = {
	    {.id = "landlock_abi", .known = true, .value = "0 (not in this kernel)"},
	    {.id = "max_user_namespaces", .known = true, .value = "0"},
	    {.id = "unprivileged_userns_clone", .known = true, .value = "0"}};
	sw_status s = {.backends = b,
	               .n_backends = 3,
	               .facts = f,
	               .n_facts = 3,
	               .context = {.container = "none"}};
	sw_check c[SW_CHECKS_MAX];
	char file[128];
	snprintf(file, sizeof(file), "%s/os-release", place);
	FILE *os = fopen(file, "w");
	fputs("ID=fedora\n", os);
	fclose(os);
	size_t n = sw_doctor(&s, file, c);
	assert_int_equal(check(c, n, "sandbox.usable")->status, SW_CHECK_BROKEN);
	assert_string_equal(check(c, n, "sandbox.usable")->fix, "sudo dnf install bubblewrap");
	assert_int_equal(check(c, n, "backend.bwrap")->status, SW_CHECK_BROKEN);
	assert_int_equal(check(c, n, "kernel.user-namespaces")->status, SW_CHECK_WARNING);
	assert_int_equal(check(c, n, "kernel.userns-clone")->status, SW_CHECK_WARNING);
	assert_true(check(c, n, "kernel.landlock")->fix[0]);
	/* found, but it does not work: its own advice is the fix */
	b[0].found = true;
	b[0].result = SW_PROBE_UNUSABLE;
	strcpy(b[0].cause, "userns-disabled");
	strcpy(b[0].advice, "one line\nand another");
	n = sw_doctor(&s, file, c);
	assert_string_equal(check(c, n, "sandbox.usable")->fix, "one line");
	assert_int_equal(check(c, n, "backend.bwrap")->status, SW_CHECK_WARNING);
	/* a partial one is usable, and could be better */
	b[0].result = SW_PROBE_PARTIAL;
	n = sw_doctor(&s, file, c);
	assert_int_equal(check(c, n, "sandbox.usable")->status, SW_CHECK_OK);
	assert_int_equal(check(c, n, "backend.bwrap")->status, SW_CHECK_WARNING);
	/* no verdict is not usable */
	b[0].result = SW_PROBE_UNKNOWN;
	n = sw_doctor(&s, file, c);
	assert_int_equal(check(c, n, "sandbox.usable")->status, SW_CHECK_BROKEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	    T(landlock_is_proved),
	    T(a_rule_too_many_is_caught),
	    T(a_launcher_that_does_nothing),
	    T(the_exec_pipe),
	    T(a_deadline_ends_the_session),
	    T(output_is_bounded),
	    T(a_writer_left_behind_does_not_hold_it_up),
	    T(nothing_is_inherited),
	    T(words_prove_nothing_alone),
	    T(breaches_are_seen),
	    T(a_noted_failure_is_probed_once),
	    T(hostile_notes),
	    T(a_folder_of_notes_that_was_replaced),
	    T(a_confined_service_says_so),
	    T(choosing),
	    T(side_by_side),
	    T(status_as_json),
	    T(a_machine_without_anything),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
