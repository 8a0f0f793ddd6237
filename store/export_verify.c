/*
 * export_verify.c - an NDJSON export verifies by itself: the same judge, fed from lines.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "prepare.h"
#include "verify_int.h"

#define LINE_MAX_BYTES (16u << 20)

struct reader {
	vf *v;
	uint64_t head_seq;
	uint8_t head_hash[32];
	bool has_head, ended;
	/* the digest that the next "kept" line must have */
	uint64_t kept_seq;
	uint8_t kept_digest[32];
	bool kept_due;
	void *owned[ST_COLS_MAX];
	size_t n_owned;
	uint64_t line;
	bool no_memory; /* what was found since may not be so */
};

static int bad(struct reader *r, const char *what)
{
	vf_find(r->v, VF_CHANGED, NULL, 0, st_null(), "line %llu: %s", (unsigned long long)r->line,
	        what);
	return 0;
}

/* The cell as it was hashed. */
static bool cell_of(struct reader *r, const json_t *v, st_cell *out)
{
	if (json_is_null(v)) {
		*out = st_null();
	} else if (json_is_integer(v)) {
		*out = st_int(json_integer_value(v));
	} else if (json_is_string(v)) {
		*out = st_text(json_string_value(v), json_string_length(v));
	} else if (json_is_object(v)) {
		const json_t *b = json_object_get(v, "b64"), *t = json_object_get(v, "text_b64");
		const json_t *z = b ? b : t;
		char *p = NULL;
		size_t n = 0;
		int code = json_is_string(z) ? sw_base64_decode(json_string_value(z),
		                                                json_string_length(z), &p, &n)
		                             : SW_EINVAL;
		r->no_memory |= code == SW_ENOMEM;
		if (code)
			return false;
		r->owned[r->n_owned++] = p;
		*out = b ? st_blob(p, n) : st_text(p, n);
	} else {
		return false;
	}
	return true;
}

static void release(struct reader *r)
{
	while (r->n_owned)
		free(r->owned[--r->n_owned]);
}

/* Read back and written again it must be the same: what an export does not hold, in a place
 * where nobody looks, is a change as well. */
static bool as_written(struct reader *r, const json_t *o, json_t *again)
{
	bool same = again && json_equal(o, again);
	r->no_memory |= !again || sw_json_lacks(false);
	json_decref(again);
	if (!same)
		bad(r, "not as an export is written");
	return same;
}

static int take_kept(struct reader *r, const json_t *o)
{
	uint8_t sum[32];
	st_cell data;
	uint64_t seq = (uint64_t)json_integer_value(json_object_get(o, "seq"));
	int64_t cut = json_integer_value(json_object_get(o, "cut"));
	if (!r->kept_due || seq != r->kept_seq)
		return bad(r, "a kept output that belongs to no record");
	r->kept_due = false;
	if (!cell_of(r, json_object_get(o, "data"), &data))
		return bad(r, "not a kept output");
	as_written(r, o, st_export_kept(seq, cut, data));
	st_kept_digest(sum, (uint64_t)cut, data.p, data.n);
	if (memcmp(sum, r->kept_digest, 32) != 0)
		vf_find(r->v, VF_CHANGED, "kept", seq, st_null(),
		        "the kept output is not the recorded one");
	return 0;
}

static void kept_missing(struct reader *r)
{
	if (r->kept_due)
		vf_find(r->v, VF_MISSING, "kept", r->kept_seq, st_null(),
		        "the kept output of this record");
	r->kept_due = false;
}

static int take_row(struct reader *r, const json_t *o, st_table t)
{
	st_cell cells[ST_COLS_MAX];
	uint8_t hash[32];
	const json_t *seq = json_object_get(o, "seq"), *h = json_object_get(o, "hash");
	for (int i = 0; i < st_tables[t].n; i++)
		if (!cell_of(r, json_object_get(o, st_tables[t].cols[i]), &cells[i]))
			return bad(r, "a column is missing or of no known kind");
	if (!json_is_integer(seq) || json_integer_value(seq) < 1)
		return bad(r, "no row number");
	bool good = json_is_string(h) && json_string_length(h) == 64 &&
	            st_unhex(json_string_value(h), 64, hash) == 0;
	uint64_t n = (uint64_t)json_integer_value(seq);
	st_cell stored = good ? st_blob(hash, 32) : st_null();
	kept_missing(r);
	if (good) /* another hash is told by the chain */
		as_written(r, o, st_export_row(t, n, cells, stored));
	vf_row(r->v, t, n, cells, stored);
	if (t == T_RECORD && cells[C_REC_KEPT_DIGEST].n == 32 && n > r->v->pruned_to) {
		r->kept_due = true;
		r->kept_seq = n;
		memcpy(r->kept_digest, cells[C_REC_KEPT_DIGEST].p, 32);
	}
	return 0;
}

static int take_header(struct reader *r, const json_t *o, sw_error *err, const char *path)
{
	const json_t *version = json_object_get(o, "sandwitness_export");
	const json_t *p = json_object_get(o, "pruned"), *schema = json_object_get(o, "schema");
	const char *program = json_string_value(json_object_get(o, "program"));
	const json_t *a = json_object_get(p, "resume"), *b = json_object_get(p, "dict");
	uint8_t resume[32], dict[32];
	json_t *pruned = NULL;
	if (!json_is_integer(version))
		return st_err(err, SW_EINVAL, path, "the first line is not an export's",
		              "make one: sandwitness export", "not an export of an audit trail");
	if (json_integer_value(version) > 1 || json_integer_value(schema) > SW_STORE_SCHEMA)
		return st_err(err, SW_EUNSUPPORTED, path, "written by a newer program",
		              "use the newer program", "this export cannot be read");
	if (json_string_length(a) == 64 && json_string_length(b) == 64 &&
	    st_unhex(json_string_value(a), 64, resume) == 0 &&
	    st_unhex(json_string_value(b), 64, dict) == 0) {
		json_int_t to = json_integer_value(json_object_get(p, "to"));
		vf_pruned(r->v, (uint64_t)to, resume, dict);
		pruned = st_export_pruned(to, st_blob(resume, 32), st_blob(dict, 32));
	}
	as_written(r, o, st_export_header(program ? program : "", pruned ? pruned : json_null()));
	return 0;
}

static void take_head(struct reader *r, const json_t *o)
{
	const json_t *h = json_object_get(o, "hash");
	r->head_seq = (uint64_t)json_integer_value(json_object_get(o, "seq"));
	r->has_head =
	    json_string_length(h) == 64 && st_unhex(json_string_value(h), 64, r->head_hash) == 0;
	if (r->has_head)
		as_written(r, o, st_export_head(r->head_seq, r->head_hash));
}

static int take_line(struct reader *r, const char *p, size_t n, const char *path, sw_error *err)
{
	sw_json_lacks(false);
	bool no_memory;
	json_t *o = sw_json_load(p, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL, &no_memory);
	int code = 0;
	r->no_memory |= no_memory;
	const char *name = json_string_value(json_object_get(o, "table"));
	r->line++;
	if (r->has_head && !r->ended)
		bad(r, "the head is not the last line");
	r->ended = r->has_head;
	if (r->line == 1) {
		code = take_header(r, o, err, path);
	} else if (!name) {
		code = bad(r, "not a row");
	} else if (strcmp(name, "kept") == 0) {
		code = take_kept(r, o);
	} else if (strcmp(name, "head") == 0) {
		take_head(r, o);
	} else {
		int t = 0;
		while (t < T_COUNT && strcmp(st_tables[t].name, name) != 0)
			t++;
		code =
		    t < T_COUNT ? take_row(r, o, (st_table)t) : bad(r, "a row of no known table");
	}
	release(r);
	json_decref(o);
	if (r->no_memory)
		return sw_error_set(err, SW_ENOMEM, "out of memory");
	return code;
}

/* No line of ours is as long: the first one says that this is no export, another that it was
 * changed. */
static int too_long(struct reader *r, const char *path, sw_error *err)
{
	if (r->line == 0)
		return st_err(err, SW_EINVAL, path, "its first line is longer than 16 MiB",
		              "make one: sandwitness export", "not an export of an audit trail");
	r->line++;
	bad(r, "longer than any line of an export: what follows was not read");
	return 0;
}

struct lines {
	char *buf;
	size_t cap, have, from;
	bool end;
};

/* 1: more bytes are there, 0: the end, or a line over the maximum; negative: a failure. */
static int fill(struct lines *l, int fd, const char *path, sw_error *err)
{
	if (l->from)
		memmove(l->buf, l->buf + l->from, l->have - l->from);
	l->have -= l->from;
	l->from = 0;
	if (l->have == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 1 << 16;
		if (l->cap >= LINE_MAX_BYTES)
			return 0;
		char *more = realloc(l->buf, cap);
		if (!more)
			return st_err(err, SW_ENOMEM, path, NULL, NULL, "out of memory");
		l->buf = more;
		l->cap = cap;
	}
	ssize_t got;
	do {
		got = read(fd, l->buf + l->have, l->cap - l->have);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return st_err(err, SW_EIO, path, strerror(errno), NULL, "cannot read the export");
	l->have += (size_t)got;
	l->end = got == 0;
	return got > 0;
}

static int read_lines(struct reader *r, int fd, const char *path, sw_error *err)
{
	struct lines l = {0};
	int code = 0;
	size_t seen = 0; /* of the line being read: no end so far */
	while (code == 0) {
		char *p = l.buf ? l.buf + l.from : NULL;
		char *nl = p ? memchr(p + seen, '\n', l.have - l.from - seen) : NULL;
		if (!nl && !l.end) {
			seen = l.have - l.from;
			int more = fill(&l, fd, path, err);
			if (more < 0)
				code = more;
			if (more != 0 || l.end)
				continue;
			code = too_long(r, path, err);
			break;
		}
		if (!nl && l.from == l.have)
			break;
		size_t n = nl ? (size_t)(nl - p) : l.have - l.from;
		l.from += n + (nl != NULL);
		seen = 0;
		while (n && p[n - 1] == '\r')
			n--;
		if (n)
			code = take_line(r, p, n, path, err);
	}
	free(l.buf);
	return code;
}

static int open_export(const char *path, int *fd, sw_error *err)
{
	struct stat st;
	*fd = strcmp(path, "-") == 0 ? STDIN_FILENO
	                             : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (*fd < 0)
		return st_err(err, errno == ENOENT ? SW_ENOTFOUND : SW_EIO, path, strerror(errno),
		              NULL, "cannot open the export");
	if (*fd == STDIN_FILENO || fstat(*fd, &st) != 0 || S_ISREG(st.st_mode))
		return 0;
	close(*fd);
	st_not_regular(path, st.st_mode, "cannot read the export", err);
	sw_error_more(err, NULL, NULL, "name a file, or give it by stdin: sandwitness verify -");
	return SW_EIO;
}

int sw_export_verify(const char *path, const sw_verify_options *o, int *status, json_t **out,
                     sw_error *err)
{
	int fd, code = open_export(path, &fd, err);
	if (code != 0)
		return code;
	vf *v = malloc(sizeof *v);
	code = v ? vf_init(v, o, err) : sw_error_set(err, SW_ENOMEM, "out of memory");
	if (code == 0) {
		struct reader r = {.v = v};
		code = read_lines(&r, fd, path, err);
		if (code == 0 && r.line == 0)
			code = st_err(err, SW_EINVAL, path, "it is empty", NULL,
			              "not an export of an audit trail");
		if (code == 0) {
			kept_missing(&r);
			vf_end(v, r.has_head ? r.head_seq : 0, r.has_head ? r.head_hash : NULL);
			if (!r.has_head)
				vf_find(v, VF_MISSING, "head", 0, st_null(),
				        "the last line: the export was cut off");
			*status = vf_judgement(v);
			*out = vf_report(v, *status);
		}
		vf_free(v);
	}
	free(v);
	if (fd != STDIN_FILENO)
		close(fd);
	return code;
}
