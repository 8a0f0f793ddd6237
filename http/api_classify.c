#include <string.h>
#include <strings.h>

#include "input.h"
#include "metrics.h"
#include "packs.h"

static void classify(http_request *req, http_reply *reply, const http_input *in)
{
	sw_error err = {0};
	sw_result *result = NULL;
	const sw_pack *pack = http_packs_get(req->server->packs, in->backend, &err);

	if (!pack && err.code == SW_ENOMEM) {
		http_reply_error(reply, &err);
		return;
	}
	if (!pack) {
		http_reply_problem(reply, HTTP_PROBLEM_BAD_BODY, "backend: %s", err.what);
		return;
	}
	if (sw_classify(pack, &in->facts, in->exit, in->started,
	                in->started == SW_STARTED_UNKNOWN ? SW_SOURCE_NONE : SW_SOURCE_CALLER,
	                in->output.ptr, in->output.len, &result, &err)) {
		http_reply_error(reply, &err);
		return;
	}
	http_metrics_classified(req->server->metrics, result->backend,
	                        sw_verdict_name(result->verdict));
	json_t *j = sw_result_json(result, in->id);
	json_object_set_new(j, "advice", http_packs_advice(req->server->packs, result->cause));
	http_reply_json(reply, 200, j);
	sw_result_free(result);
}

void http_api_classify(http_request *req, http_reply *reply)
{
	http_input in;
	sw_error err = {0};
	int code;

	if (!strncasecmp(req->content_type, "application/json", 16)) {
		/* half of it here and half there: which would count? */
		for (const char *const *p = req->route->params; *p; p++)
			if (http_query(req, *p)) {
				http_reply_problem(
				    reply, HTTP_PROBLEM_BAD_PARAMETER,
				    "%s: parameters go with application/octet-stream; a JSON body "
				    "holds everything",
				    *p);
				return;
			}
		json_t *object = sw_json_parse(req->body, req->body_len, &err);
		if (!object) {
			http_reply_error(reply, &err);
			return;
		}
		code = http_input_from_json(&in, object, &err);
	} else {
		code = http_input_from_query(&in, req, &err);
	}
	if (code)
		http_reply_error(reply, &err);
	else
		classify(req, reply, &in);
	http_input_free(&in);
}
