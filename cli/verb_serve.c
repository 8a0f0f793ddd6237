/* sandwitness serve: runs sandwitnessd, a program of its own so that this one stays light. */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Beside this program (a build folder, or one bin folder), then where packages put helpers. */
static void try_beside(char **argv)
{
	static const char *const places[] = {"sandwitnessd", "../libexec/sandwitness/sandwitnessd",
	                                     "../lib/sandwitness/sandwitnessd"};
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return;
	self[n] = '\0';
	char *slash = strrchr(self, '/');
	if (!slash)
		return;
	slash[1] = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", self, places[i]);
		execv(path, argv);
	}
}

static int run(int argc, char **argv)
{
	static char name[] = "sandwitnessd";

	(void)argc;
	argv[0] = name;
	try_beside(argv);
	execvp("sandwitnessd", argv);
	sw_error e = {0};
	sw_error_set(&e, SW_EIO, "sandwitnessd cannot be run");
	sw_error_more(&e, "serve", strerror(errno),
	              "install or build it: it stands beside the sandwitness program");
	return cli_fail(&e);
}

const cli_verb cli_verb_serve = {
    .name = "serve",
    .summary = "answer over HTTP: status, records, reports, events, metrics, dashboard",
    .usage = "[--listen WHERE]... [OPTION]...",
    .help =
        "Runs sandwitnessd in the foreground until SIGTERM. Without --listen it listens on a\n"
        "unix socket, $XDG_RUNTIME_DIR/sandwitness/http.sock.\n\n"
        "Options:\n"
        "  --listen WHERE       unix:PATH, 127.0.0.1:PORT or [::1]:PORT; repeatable\n"
        "  --db PATH            audit trail\n"
        "  --token-file PATH    bearer token for TCP\n"
        "  --print-token        print the dashboard's address even where stdout is no terminal\n"
        "`sandwitnessd --help` lists all, with limits and defaults; docs/http.md describes the\n"
        "service.\n\n"
        "Examples:\n"
        "  $ sandwitness help serve\n"
        "  sandwitness serve\n"
        "  sandwitness serve --listen 127.0.0.1:8765     prints the dashboard's address\n",
    .run = run,
};
