/*
 * The least that libmicrohttpd can do: one fixed JSON answer, in the same mode and with the same
 * number of bytes as GET /livez. What the service's answers are measured against.
 * usage: bench-http-bare PORT THREADS-PER-CONNECTION(0|1)
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char body[] = "{\"live\":true}";

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **con_cls)
{
	static int seen;
	(void)cls;
	(void)url;
	(void)method;
	(void)version;
	(void)data;
	(void)size;

	if (!*con_cls) {
		*con_cls = &seen;
		return MHD_YES;
	}
	struct MHD_Response *r =
	    MHD_create_response_from_buffer(sizeof(body) - 1, (void *)body, MHD_RESPMEM_PERSISTENT);
	MHD_add_response_header(r, "Content-Type", "application/json");
	enum MHD_Result rc = MHD_queue_response(c, 200, r);
	MHD_destroy_response(r);
	return rc;
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
	                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	unsigned mode = MHD_USE_INTERNAL_POLLING_THREAD;

	if (argc < 3)
		return 1;
	addr.sin_port = htons((uint16_t)atoi(argv[1]));
	mode |= atoi(argv[2]) ? MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL : MHD_USE_EPOLL;
	struct MHD_Daemon *d = MHD_start_daemon(mode, 0, NULL, NULL, on_request, NULL,
	                                        MHD_OPTION_SOCK_ADDR, &addr, MHD_OPTION_END);
	if (!d)
		return 2;
	puts("ready");
	fflush(stdout);
	/* ends with its parent: the pipe closes */
	char c;
	while (read(STDIN_FILENO, &c, 1) > 0) {
	}
	MHD_stop_daemon(d);
	return 0;
}
