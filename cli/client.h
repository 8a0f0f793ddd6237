/*
 * client.h - talking to a running sandwitnessd (`--server unix:PATH`), for verbs that can
 * take their answers from there instead of from the file.
 *
 * One request per connection; whole answers in memory, at most CLI_ANSWER_MAX bytes.
 * Nothing is sent twice: what was not answered may have been recorded, and callers that
 * record send the same id again.
 */
#ifndef SW_CLI_CLIENT_H
#define SW_CLI_CLIENT_H

#include "cli.h"

#define CLI_ANSWER_MAX (64u << 20)
#define CLI_SERVER_TIMEOUT_S 60

/*
 * server: "unix:PATH", "/PATH", or "http://127.0.0.1:PORT" with the token in the file named by
 * $SANDWITNESS_TOKEN_FILE. path: with its query. body NULL: GET, else POST of that JSON.
 * 0 and *answer (a new reference) for 2xx; else the problem as an error: SW_EINVAL for what
 * the caller did wrong, SW_ENOTFOUND, SW_ECONFLICT, SW_EBUSY, SW_EIO.
 */
int cli_server_call(const char *server, const char *path, const json_t *body, json_t **answer,
                    sw_error *err);
/* Turns a problem object (of an array's element, for example) into an error; returns its code. */
int cli_server_problem(const json_t *problem, sw_error *err);
/* Adds the value escaped for a path or query. */
void cli_server_escape(sw_buf *path, const char *value);
/* Adds "?name=value" or "&name=value" with the value escaped; nothing where value is NULL. */
void cli_server_param(sw_buf *path, const char *name, const char *value);

#endif
