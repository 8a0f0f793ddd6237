/* sandwitnessd: the service. `sandwitness serve` runs it. */
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http.h"
#include "listen.h"

/* lock-free, so that the handler may: it runs on any thread */
static atomic_int stop_requested;

static void on_signal(int number)
{
	(void)number;
	atomic_store(&stop_requested, 1);
}

static void announce(const http_server *s, const http_config *c)
{
	bool is_tcp, tty = isatty(STDOUT_FILENO);
	char *address;

	for (size_t i = 0; (address = http_server_address(s, i, &is_tcp)); i++) {
		if (!is_tcp)
			printf("listening on %s\n", address);
		else if (tty || c->print_token)
			/* after '#': never sent, so in no log; in a pipe it would end up in a
			 * journal */
			printf("dashboard: %s#token=%s\n", address, s->token);
		else
			printf("listening on %s (token: see --token-file, or --print-token)\n",
			       address);
		free(address);
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal};
	http_config config;
	http_server *server = NULL;
	sw_error err = {0};
	bool answered;

	http_config_init(&config);
	if (http_config_parse(&config, argc, argv, &answered, &err)) {
		sw_error_print(stderr, &err);
		http_config_free(&config);
		return 1;
	}
	if (answered) {
		http_config_free(&config);
		return 0;
	}
	umask(077);
	signal(SIGPIPE, SIG_IGN);
	sw_survive_file_limit();
	sw_json_whole_or_none();
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	if (http_server_start(&server, &config, &err)) {
		sw_error_print(stderr, &err);
		http_config_free(&config);
		return err.code == SW_EINVAL || err.code == SW_ENOTFOUND ? 1 : 2;
	}
	announce(server, &config);
	http_notify("READY=1\nSTATUS=answering");
	http_server_run(server, &stop_requested);
	http_notify("STOPPING=1");
	/* a second signal ends it at once */
	sa.sa_handler = SIG_DFL;
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	http_server_stop(server);
	http_config_free(&config);
	return 0;
}
