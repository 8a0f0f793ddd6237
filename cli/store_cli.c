/* What the verbs of the audit trail share. */
#include "store_cli.h"

#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

int store_option(store_options *o, cli_args *a)
{
	static const char *const filters[] = {"since",  "until", "backend", "verdict",
	                                      "level",  "cause", "session", "actor",
	                                      "device", "label", "limit",   "cursor"};
	if (strcmp(a->name, "json") == 0)
		return o->json = true;
	if (strcmp(a->name, "csv") == 0)
		return o->csv = true;
	if (strcmp(a->name, "no-self-sandbox") == 0)
		return o->confine.off = true;
	bool db = strcmp(a->name, "db") == 0, server = strcmp(a->name, "server") == 0;
	bool filter = false;
	for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
		filter |= strcmp(a->name, filters[i]) == 0;
	if (!db && !filter && !server)
		return 0;
	char name[16];
	snprintf(name, sizeof name, "%s", a->name);
	const char *value = cli_args_value(a);
	if (!value)
		return -1;
	if (db || server) {
		*(db ? &o->db : &o->server) = value;
		return 1;
	}
	if (!o->params.max)
		sw_buf_init(&o->params, 1 << 16);
	cli_server_param(&o->params, name, value);
	o->filtered = true;
	sw_error err = {0};
	if (sw_query_set(&o->q, name, value, sw_now_ns(), &err) == 0)
		return 1;
	sw_error_print(stderr, &err);
	return -1;
}

void store_options_free(store_options *o)
{
	sw_query_free(&o->q);
	sw_buf_free(&o->params);
}

int store_server_get(const store_options *o, const char *path, json_t **answer, sw_error *err)
{
	sw_buf b;
	sw_buf_init(&b, 1 << 17);
	sw_buf_adds(&b, path);
	if (o->params.len)
		sw_buf_add(&b, o->params.ptr, o->params.len);
	int code = b.error || o->params.error
	               ? sw_error_set(err, SW_ETOOBIG, "the filters are too long")
	               : cli_server_call(o->server, b.ptr, NULL, answer, err);
	sw_buf_free(&b);
	return code;
}

sw_store *store_open_cli(const char *db, unsigned flags, int *status)
{
	sw_error err = {0};
	sw_store *s = NULL;
	char *path = cli_db_path(db);
	if (!path) {
		cli_no_db_path(&err);
		*status = cli_fail(&err);
		return NULL;
	}
	if (sw_store_open(&s, path, flags, NULL, &err) != 0)
		*status = cli_fail(&err);
	free(path);
	return s;
}

sw_store *store_open_confined(const store_options *o, int *status)
{
	sw_store *s = store_open_cli(o->db, SW_STORE_READ, status);
	char *path = s ? cli_db_path(o->db) : NULL;
	if (path) {
		store_confine_now(&o->confine, path, NULL);
	} else if (s) { /* unconfined it is not read */
		sw_error err;
		cli_no_db_path(&err);
		*status = cli_fail(&err);
		sw_store_close(s);
		s = NULL;
	}
	free(path);
	return s;
}

int store_whole(int code, sw_error *err)
{
	return code == 0 && sw_json_lacks(false) ? sw_error_set(err, SW_ENOMEM, "out of memory")
	                                         : code;
}

void store_print_json(const json_t *j)
{
	char *z = j ? sw_json_dump(j) : NULL;
	if (z)
		puts(z);
	else
		sw_text_lacks();
	free(z);
}

int store_finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "sandwitness: cannot write to stdout: %s\n", strerror(errno));
	return CLI_IO;
}

/* ---- tables ---- */

/* Columns that a string takes: wide and combining characters are counted as such. */
static size_t width_of(const char *z)
{
	size_t w = 0;
	for (const unsigned char *p = (const unsigned char *)z; *p;) {
		uint32_t c = *p++;
		int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
		if (more)
			c &= 0x3f >> more;
		while (more-- && (*p & 0xc0) == 0x80)
			c = c << 6 | (*p++ & 0x3f);
		bool none = (c >= 0x300 && c < 0x370) || (c >= 0x200b && c < 0x2010) ||
		            c == 0xfeff || (c >= 0xfe00 && c < 0xfe10) ||
		            (c >= 0x1ab0 && c < 0x1b00);
		bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) ||
		            (c >= 0xac00 && c < 0xd7a4) || (c >= 0xf900 && c < 0xfb00) ||
		            (c >= 0xfe30 && c < 0xfe70) || (c >= 0xff00 && c < 0xff61) ||
		            (c >= 0x1f300 && c < 0x1f650) || (c >= 0x1f900 && c < 0x1fa00) ||
		            (c >= 0x20000 && c < 0x30000);
		w += none ? 0 : wide ? 2 : 1;
	}
	return w;
}

/* Bytes of z to print in at most `max` columns; *cut: an ellipsis follows them. */
static size_t cut_to(const char *z, size_t max, bool *cut)
{
	size_t n = strlen(z);
	char *copy = NULL;
	*cut = width_of(z) > max && max >= 2 && (copy = strdup(z)) != NULL;
	while (*cut && n > 0 && width_of(copy) > max - 1) {
		do {
			n--;
		} while (n > 0 && ((unsigned char)copy[n] & 0xc0) == 0x80);
		copy[n] = 0;
	}
	free(copy);
	return n;
}

static char *joined(const json_t *a, const char *with)
{
	sw_buf b;
	sw_buf_init(&b, 1 << 20);
	size_t i;
	json_t *v;
	json_array_foreach((json_t *)a, i, v)
	{
		if (i)
			sw_buf_adds(&b, with);
		if (json_is_string(v))
			sw_buf_add(&b, json_string_value(v), json_string_length(v));
	}
	char *safe = sw_escape_tty(b.ptr ? b.ptr : "", b.len);
	sw_buf_free(&b);
	return safe;
}

static char *cell_text(const json_t *v, const char *kind)
{
	char *z = NULL;
	if (!v || json_is_null(v))
		return strdup(strcmp(kind, "count") == 0 ? "0" : "-");
	if (json_is_array(v))
		return json_array_size(v) ? joined(v, strcmp(kind, "command") == 0 ? " " : ",")
		                          : strdup("-");
	if (json_is_boolean(v))
		return strdup(json_is_true(v) ? "yes" : "no");
	if (json_is_integer(v))
		return asprintf(&z, "%lld", (long long)json_integer_value(v)) < 0 ? NULL : z;
	if (json_is_real(v)) {
		bool share = strcmp(kind, "share") == 0;
		double x = json_real_value(v) * (share ? 100 : 1);
		return asprintf(&z, share ? "%.1f %%" : "%.3f", x) < 0 ? NULL : z;
	}
	if (json_is_string(v)) {
		const char *s = json_string_value(v);
		/* Times without the milliseconds, which nobody reads in a table. */
		if (strcmp(kind, "time") == 0 && strlen(s) == 24)
			return asprintf(&z, "%.10s %.8s", s, s + 11) < 0 ? NULL : z;
		return sw_escape_tty(s, json_string_length(v));
	}
	char *j = sw_json_dump(v);
	z = j ? sw_escape_tty(j, strlen(j)) : NULL;
	free(j);
	return z;
}

char *store_cell_text(const json_t *v, const char *kind)
{
	char *z = cell_text(v, kind);
	if (!z)
		sw_text_lacks();
	return z;
}

static size_t terminal_width(FILE *to)
{
	struct winsize w;
	const char *columns = getenv("COLUMNS");
	int fd = fileno(to);
	if (fd < 0 || !isatty(fd))
		return 0;
	if (columns && atoi(columns) > 20)
		return (size_t)atoi(columns);
	return ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col : 80;
}

static bool is_number(const char *kind)
{
	return strcmp(kind, "count") == 0 || strcmp(kind, "share") == 0;
}

/* Takes from the widest text columns until the table fits. */
static void fit(size_t *w, const json_t *columns, size_t n, size_t room)
{
	for (;;) {
		size_t sum = n ? 2 * (n - 1) : 0, widest = n;
		for (size_t i = 0; i < n; i++) {
			const char *kind =
			    json_string_value(json_object_get(json_array_get(columns, i), "kind"));
			sum += w[i];
			bool may = !is_number(kind) && strcmp(kind, "time") != 0 &&
			           strcmp(kind, "id") != 0 && w[i] > 8;
			if (may && (widest == n || w[i] > w[widest]))
				widest = i;
		}
		if (room == 0 || sum <= room || widest == n)
			return;
		w[widest]--;
	}
}

static void put_cell(FILE *to, const char *z, size_t w, bool right, bool last)
{
	bool cut;
	size_t n = cut_to(z, w, &cut), have = cut ? w : width_of(z), pad = w > have ? w - have : 0;
	fprintf(to, "%*s%.*s%s", right ? (int)pad : 0, "", (int)n, z, cut ? "\xe2\x80\xa6" : "");
	if (!last)
		fprintf(to, "%*s  ", right ? 0 : (int)pad, "");
}

#define TEXT_MAX 72

void store_print_table(FILE *to, const json_t *columns, const json_t *rows)
{
	size_t n = json_array_size(columns), m = json_array_size(rows);
	size_t w[32] = {0};
	char **cells = calloc(n * (m + 1) + 1, sizeof *cells);
	if (!cells || n > 32) {
		sw_text_lacks();
		free(cells);
		return;
	}
	for (size_t r = 0; r <= m; r++) {
		for (size_t c = 0; c < n; c++) {
			const json_t *col = json_array_get(columns, c);
			const char *name = json_string_value(json_object_get(col, "name"));
			const char *kind = json_string_value(json_object_get(col, "kind"));
			char *z =
			    r == 0 ? strdup(name)
			           : store_cell_text(
			                 json_object_get(json_array_get(rows, r - 1), name), kind);
			if (!z)
				sw_text_lacks();
			cells[r * n + c] = z;
			if (z && width_of(z) > w[c])
				w[c] = width_of(z);
		}
	}
	for (size_t c = 0; c < n; c++)
		if (w[c] > TEXT_MAX)
			w[c] = TEXT_MAX; /* whole texts are for --json and --csv */
	fit(w, columns, n, terminal_width(to));
	for (size_t r = 0; r <= m; r++) {
		for (size_t c = 0; c < n; c++) {
			const char *kind =
			    json_string_value(json_object_get(json_array_get(columns, c), "kind"));
			char *z = cells[r * n + c];
			if (z)
				put_cell(to, z, w[c], is_number(kind), c + 1 == n);
			free(z);
		}
		fputc('\n', to);
	}
	free(cells);
}

static void csv_cell(FILE *to, const json_t *v)
{
	sw_buf b;
	sw_buf_init(&b, 1 << 24);
	if (json_is_string(v)) {
		sw_csv_text(&b, json_string_value(v), json_string_length(v));
	} else if (v && !json_is_null(v)) {
		char *z =
		    sw_json_dump_as(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
		if (z && (json_is_number(v) || json_is_boolean(v)))
			sw_buf_adds(&b, z);
		else if (z)
			sw_csv_text(&b, z, strlen(z));
		if (!z)
			sw_text_lacks();
		free(z);
	}
	if (b.len)
		fwrite(b.ptr, 1, b.len, to);
	sw_buf_free(&b);
}

void store_print_csv(FILE *to, const json_t *columns, const json_t *rows)
{
	size_t i, r;
	json_t *c, *row;
	json_array_foreach((json_t *)columns, i, c)
	    fprintf(to, "%s%s", i ? "," : "", json_string_value(json_object_get(c, "name")));
	fputs("\r\n", to);
	json_array_foreach((json_t *)rows, r, row)
	{
		json_array_foreach((json_t *)columns, i, c)
		{
			if (i)
				fputc(',', to);
			csv_cell(to, json_object_get(
			                 row, json_string_value(json_object_get(c, "name"))));
		}
		fputs("\r\n", to);
	}
}

void store_print_head(FILE *to, const json_t *head)
{
	const char *hash = json_string_value(json_object_get(head, "hash"));
	long long seq = json_integer_value(json_object_get(head, "seq"));
	long long sealed = json_integer_value(json_object_get(head, "sealed_seq"));
	fprintf(to, "head %lld:%s, sealed up to %lld\n", seq, hash ? hash : "", sealed);
}
