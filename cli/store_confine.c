/* Reading the audit trail in a process that can do nothing else. */
#include "store_confine.h"

#include "self_sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What does not fit into memory is sorted in files; SQLite removes each as it opens it. */
static void make_folder(store_confine *c)
{
	const char *const places[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (!places[i] || places[i][0] != '/')
			continue;
		int n = snprintf(c->tmp, sizeof c->tmp, "%s/sandwitness-sort.XXXXXX", places[i]);
		if (n > 0 && (size_t)n < sizeof c->tmp && mkdtemp(c->tmp)) {
			setenv("SQLITE_TMPDIR", c->tmp, 1);
			return;
		}
	}
	c->tmp[0] = 0;
}

/* The child's end is ours. */
static int hand_on(int how)
{
	if (WIFEXITED(how))
		return WEXITSTATUS(how);
	int sig = WTERMSIG(how);
	if (sig == SIGPIPE || sig == SIGINT || sig == SIGTERM || sig == SIGHUP) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
	fprintf(stderr,
	        "sandwitness: the process that read the trail was ended by signal %d (%s)\n", sig,
	        strsignal(sig));
	return CLI_IO;
}

bool store_confine_begin(store_confine *c, int *status)
{
	if (c->off)
		return true;
	make_folder(c);
	fflush(NULL);
	pid_t parent = getpid(), pid = fork();
	if (pid < 0)
		return true;
	if (pid == 0) {
		c->apart = true;
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(CLI_IO);
		return true;
	}
	int how;
	/* a terminal's signal reaches both: the reader decides, and there is tidying to do */
	struct sigaction ignore = {.sa_handler = SIG_IGN}, was;
	sigaction(SIGINT, &ignore, &was);
	while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &was, NULL);
	store_confine_end(c);
	*status = hand_on(how);
	return false;
}

void store_confine_end(store_confine *c)
{
	if (c->tmp[0] && !c->apart)
		rmdir(c->tmp);
	c->tmp[0] = 0;
}

void store_confine_now(const store_confine *c, const char *db, const char *file)
{
	if (c->off)
		return;
	char folder[4352], shm[4352];
	char *real = db ? realpath(db, NULL) : NULL;
	folder[0] = shm[0] = 0;
	if (real && strlen(real) < 4096) {
		snprintf(shm, sizeof shm, "%s-shm", real);
		snprintf(folder, sizeof folder, "%s", real);
		char *slash = strrchr(folder, '/');
		slash[slash == folder] = 0;
	}
	free(real);
	tzset(); /* reads the zone now */
	/* Readers write in the shared index of the write-ahead log, nowhere else. */
	const sw_self_path paths[] = {{folder[0] ? folder : NULL, SW_SELF_READ},
	                              {shm[0] ? shm : NULL, SW_SELF_WRITE},
	                              {c->tmp[0] ? c->tmp : NULL, SW_SELF_WRITE},
	                              {file, SW_SELF_READ},
	                              {c->also, SW_SELF_READ}};
	sw_self_sandbox_paths(SW_SELF_READER, paths, sizeof paths / sizeof *paths);
}
