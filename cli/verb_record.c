/* sandwitness record */
#include "client.h"
#include "store_cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_verb cli_verb_record;

#define RECORD_LINE_MAX (24u << 20)
#define RECORD_GROUP 256
/* One request to a service: under its limits for arrays and bodies. */
#define POST_GROUP 100
#define POST_BYTES (4u << 20)

typedef struct options {
	const char *db, *server, *file, *signatures, *pack_set;
	bool json;
	long keep;
} options;

typedef struct entry {
	uint64_t line;
	json_t *id;
	sw_record_parsed *parsed;
	sw_record record; /* with the options' defaults */
	json_t *object;   /* for a service, which parses it itself */
	size_t size;
	sw_error error;
	int code;
} entry;

typedef struct recorder {
	const options *o;
	sw_store *store;
	const sw_pack_set *set;
	entry e[RECORD_GROUP];
	size_t n;
	uint64_t line, recorded, replayed, refused;
	bool failed;      /* the trail could not be written */
	bool unable;      /* some record was not refused for what it says */
	sw_error no_pack; /* why there are no signatures for the current one */
} recorder;

static const sw_pack *find(void *arg, const char *backend)
{
	recorder *r = arg;
	const sw_pack *pack = cli_pack_quiet(r->set, backend, &r->no_pack);
	if (!pack && r->no_pack.code != SW_ENOMEM)
		cli_fail(&r->no_pack);
	return pack;
}

/* An error without words has one reason. */
static void word(sw_error *e, int code)
{
	if (!e->what[0])
		sw_error_set(e, code, "%s",
		             code == SW_ENOMEM || sw_text_lacked() ? "out of memory" : "failed");
}

/* An entry that is not recorded. */
static void fault(recorder *r, entry *e)
{
	word(&e->error, e->code);
	r->refused++;
	r->unable |= e->code == SW_ENOMEM || e->code == SW_EIO || e->code == SW_EBUSY;
}

static void refuse(const recorder *r, const entry *e)
{
	if (!r->o->json) {
		fprintf(stderr, "line %llu: ", (unsigned long long)e->line);
		sw_error_print(stderr, &e->error);
		return;
	}
	sw_buf b;
	sw_buf_init(&b, 4096);
	sw_buf_adds(&b, e->error.what);
	if (*e->error.where)
		sw_buf_addf(&b, ": %s", e->error.where);
	if (*e->error.why)
		sw_buf_addf(&b, ": %s", e->error.why);
	json_t *o = json_object();
	json_object_set(o, "id", e->id ? e->id : json_null());
	json_object_set_new(o, "line", json_integer((json_int_t)e->line));
	json_object_set_new(o, "error", sw_json_text((sw_str){b.ptr, b.len}));
	json_object_set_new(o, "conflict", json_boolean(e->code == SW_ECONFLICT));
	store_print_json(o);
	json_decref(o);
	sw_buf_free(&b);
}

/* Posts entries from..to; a failure of the whole request is every entry's. */
static void post(recorder *r, size_t from, size_t to)
{
	json_t *body = json_array(), *answer = NULL;
	sw_error err = {0};
	size_t n = 0;
	int code = body ? 0 : SW_ENOMEM;
	for (size_t i = from; i < to && !code; i++)
		if (r->e[i].code == 0 && json_array_append(body, r->e[i].object))
			code = SW_ENOMEM;
	if (!code && json_array_size(body))
		code = cli_server_call(r->o->server, "/v1/invocations", body, &answer, &err);
	json_decref(body);
	if (code == SW_EIO || code == SW_EBUSY || code == SW_ENOMEM) {
		word(&err, code);
		sw_error_print(stderr, &err);
		r->failed = true;
	}
	for (size_t i = from; i < to; i++) {
		entry *e = &r->e[i];
		const json_t *one = code || e->code
		                        ? NULL
		                        : json_array_get(json_object_get(answer, "results"), n++);
		if (code && !e->code) {
			e->code = code;
			e->error = err;
		} else if (!e->code && !json_object_get(one, "seq")) {
			e->code = cli_server_problem(one, &e->error);
		}
		if (e->code != 0) {
			fault(r, e);
			if (!r->failed || r->o->json)
				refuse(r, e);
		} else {
			r->recorded++;
			r->replayed += json_is_true(json_object_get(one, "replay"));
			if (r->o->json)
				store_print_json(one);
		}
		json_decref(e->object);
		json_decref(e->id);
	}
	json_decref(answer);
}

static void flush_to_server(recorder *r)
{
	size_t from = 0, bytes = 0;
	for (size_t i = 0; i < r->n; i++) {
		if (i > from && (i - from == POST_GROUP || bytes + r->e[i].size > POST_BYTES)) {
			post(r, from, i);
			from = i;
			bytes = 0;
		}
		bytes += r->e[i].size;
	}
	if (r->n > from)
		post(r, from, r->n);
	r->n = 0;
	fflush(stdout);
}

/* Records what has been gathered, in one transaction, and answers in order. */
static void flush_group(recorder *r)
{
	if (r->o->server) {
		flush_to_server(r);
		return;
	}
	static sw_store_op ops[RECORD_GROUP];
	size_t n = 0;
	sw_error err = {0};
	for (size_t i = 0; i < r->n; i++) {
		if (r->e[i].code != 0)
			continue;
		ops[n] = (sw_store_op){.kind = sw_record_parsed_kind(r->e[i].parsed),
		                       .record = &r->e[i].record};
		n++;
	}
	int code = n ? sw_store_write(r->store, ops, n, &err) : 0;
	if (code != 0) {
		word(&err, code);
		sw_error_print(stderr, &err);
		r->failed = true;
	}
	for (size_t i = 0, k = 0; i < r->n; i++) {
		entry *e = &r->e[i];
		const sw_store_op *op = e->code == 0 ? &ops[k++] : NULL;
		if (op && op->code != 0) {
			e->code = op->code;
			e->error = op->error;
		}
		if (e->code != 0) {
			fault(r, e);
			if (code == 0 || r->o->json)
				refuse(r, e);
		} else {
			r->recorded++;
			r->replayed += op->receipt.replay;
			if (r->o->json) {
				json_t *j = sw_receipt_json(&op->receipt);
				store_print_json(j);
				json_decref(j);
			}
		}
		sw_record_parsed_free(e->parsed);
		json_decref(e->id);
	}
	r->n = 0;
	fflush(stdout);
}

static void take_line(recorder *r, const char *p, size_t n)
{
	r->line++;
	while (n && (p[n - 1] == '\r' || p[n - 1] == ' ' || p[n - 1] == '\t'))
		n--;
	if (n == 0)
		return;
	entry *e = &r->e[r->n++];
	memset(e, 0, sizeof *e);
	e->line = r->line;
	json_t *o = sw_json_parse(p, n, &e->error);
	if (!o) {
		e->code = e->error.code ? e->error.code : SW_EINVAL;
	} else {
		json_t *id = json_object_get(o, "id");
		e->id = id ? json_incref(id) : NULL;
		if (!r->o->server) {
			r->no_pack = (sw_error){0};
			e->code = sw_record_parse(&e->parsed, o, find, r, &e->error);
			if (r->no_pack.code == SW_ENOMEM) { /* not: "no signatures for it" */
				e->code = SW_ENOMEM;
				e->error = r->no_pack;
			}
		} else if (json_is_object(o)) {
			e->object = json_incref(o);
			e->size = n;
			if (r->o->keep > 0 && !json_object_get(o, "keep_output") &&
			    json_object_set_new(o, "keep_output", json_integer(r->o->keep)))
				e->code = sw_error_set(&e->error, SW_ENOMEM, "out of memory");
		} else {
			e->code = sw_error_set(&e->error, SW_EINVAL, "a JSON object is expected");
		}
		json_decref(o);
	}
	if (e->code == 0 && !r->o->server) {
		e->record = *sw_record_parsed_record(e->parsed);
		if (r->o->keep > 0 && !e->record.keep_output)
			e->record.keep_output = (size_t)r->o->keep;
	}
	if (r->n == RECORD_GROUP)
		flush_group(r);
}

/* Lines are grouped while they come quickly; the last of a burst is not kept waiting. */
static int read_all(recorder *r, int fd)
{
	size_t cap = 1 << 16, have = 0, from = 0;
	char *buf = malloc(cap);
	int status = buf ? CLI_OK : cli_no_memory();
	while (buf) {
		if (have == cap) {
			if (cap >= RECORD_LINE_MAX) {
				fprintf(stderr, "sandwitness: line %llu is longer than 24 MiB\n",
				        (unsigned long long)r->line + 1);
				status = CLI_USAGE;
				break;
			}
			char *more = realloc(buf, cap * 2);
			if (!more) {
				status = cli_no_memory();
				break;
			}
			buf = more;
			cap *= 2;
		}
		ssize_t got = read(fd, buf + have, cap - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			fprintf(stderr, "sandwitness: cannot read: %s\n", strerror(errno));
			status = CLI_IO;
		}
		if (got <= 0)
			break;
		size_t seen = have;
		have += (size_t)got;
		char *nl;
		while ((nl = memchr(buf + seen, '\n', have - seen)) != NULL) {
			take_line(r, buf + from, (size_t)(nl - buf) - from);
			from = seen = (size_t)(nl - buf) + 1;
		}
		memmove(buf, buf + from, have - from);
		have -= from;
		from = 0;
		flush_group(r);
	}
	if (buf && have && status == CLI_OK)
		take_line(r, buf, have);
	flush_group(r);
	free(buf);
	return buf ? status : CLI_IO;
}

static int parse(options *o, int argc, char **argv)
{
	cli_args a;
	cli_args_init(&a, &cli_verb_record, argc, argv);
	for (int t; (t = cli_args_next(&a));) {
		if (t == 2) {
			if (o->file)
				return cli_usage_error(&cli_verb_record, "one file at a time");
			o->file = a.inline_value;
			continue;
		}
		const char **text = strcmp(a.name, "db") == 0           ? &o->db
		                    : strcmp(a.name, "server") == 0     ? &o->server
		                    : strcmp(a.name, "signatures") == 0 ? &o->signatures
		                    : strcmp(a.name, "pack-set") == 0   ? &o->pack_set
		                                                        : NULL;
		if (strcmp(a.name, "json") == 0) {
			o->json = true;
		} else if (strcmp(a.name, "keep-output") == 0) {
			char *end;
			const char *v = cli_args_value(&a);
			if (!v)
				return CLI_USAGE;
			o->keep = strtol(v, &end, 10);
			if (*end || end == v || o->keep < 0 || o->keep > (long)SW_RECORD_OUTPUT_MAX)
				return cli_usage_error(&cli_verb_record,
				                       "--keep-output: 0 to %u bytes",
				                       SW_RECORD_OUTPUT_MAX);
		} else if (text) {
			if (!(*text = cli_args_value(&a)))
				return CLI_USAGE;
		} else {
			return cli_args_unknown(&a);
		}
	}
	return CLI_OK;
}

static int run(int argc, char **argv)
{
	options o = {0};
	int status = parse(&o, argc, argv);
	if (status != CLI_OK)
		return status;
	recorder *r = calloc(1, sizeof *r);
	if (!r)
		return cli_no_memory();
	r->o = &o;
	r->set = cli_pack_set(o.signatures, o.pack_set);
	bool closed = (!o.file || strcmp(o.file, "-") == 0) && fcntl(STDIN_FILENO, F_GETFD) < 0;
	int fd = closed                               ? -1
	         : o.file && strcmp(o.file, "-") != 0 ? open(o.file, O_RDONLY | O_CLOEXEC)
	                                              : STDIN_FILENO;
	if (fd < 0) {
		sw_error err = {0};
		sw_error_set(&err, SW_EIO, "cannot open: %s", strerror(errno));
		sw_error_more(&err, closed ? "stdin" : o.file, NULL, NULL);
		status = cli_fail(&err);
	} else if (!r->set) {
		status = CLI_USAGE;
	} else if (o.server || (r->store = store_open_cli(o.db, SW_STORE_WRITE, &status)) != NULL) {
		status = read_all(r, fd);
		sw_store_close(r->store);
		if (!o.json)
			printf("recorded %llu (%llu replayed), refused %llu\n",
			       (unsigned long long)r->recorded, (unsigned long long)r->replayed,
			       (unsigned long long)r->refused);
		if (status == CLI_OK && (r->failed || r->unable))
			status = CLI_IO;
		else if (status == CLI_OK && r->refused)
			status = CLI_USAGE;
	}
	free(r);
	return store_finish(status);
}

const cli_verb cli_verb_record = {
    .name = "record",
    .summary = "record invocations that a runtime ran by itself (NDJSON)",
    .usage =
        "[FILE] [--json] [--keep-output BYTES] [--signatures DIR] [--db PATH | --server unix:PATH] "
        "< RECORDS",
    .help =
        "One JSON object per line; docs/record.md lists the fields. Where `output` is given it\n"
        "is classified here; a verdict that is given is taken as it is. The same id with the\n"
        "same content is a replay, with another content a conflict.\n\n"
        "  --json               a receipt or an error for every line, in order\n"
        "  --server unix:PATH   let a running service (sandwitness serve) record them\n"
        "  --keep-output BYTES  keep up to so much of each output, redacted\n\n"
        "Exit status: 0 all recorded, 1 some refused, 2 some could not be recorded.\n\n"
        "  $ echo '{\"backend\":\"bwrap\",\"exit\":1,\"output\":\"bwrap: setting up uid map: "
        "Permission denied\\n\"}' | sandwitness record\n",
    .run = run};
