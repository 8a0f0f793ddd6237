/*
 * redact_argv.c - secrets in an argument list: names, and options whose value is the
 * next argument.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "redact.h"

static const char *const password_words[] = {"password", "passwd",    "passphrase", "passwort",
                                             "pwd",      "passwords", "pgpassword", "passcode"};
static const char *const secret_words[] = {
    "secret", "secrets",       "token",       "apikey",    "credential", "credentials",
    "pass",   "authtoken",     "accesstoken", "secretkey", "accesskey",  "privatekey",
    "bearer", "authorization", "sig",         "signature"};
/* "key" alone is a column name; with one of these before it, it opens something. */
static const char *const key_kinds[] = {"api",     "access",     "private", "secret",  "auth",
                                        "signing", "encryption", "account", "storage", "master",
                                        "shared",  "session",    "service", "deploy"};
/* A name that ends so holds where the secret is, how many, or what it is called. */
static const char *const harmless_ends[] = {
    "file",    "path",   "dir",     "name",  "id",    "count", "limit",  "length", "type", "url",
    "ttl",     "age",    "size",    "hash",  "env",   "stdin", "prompt", "policy", "max",  "min",
    "expires", "expiry", "expired", "scope", "usage", "index", "used",   "helper"};

typedef struct word {
	const char *p;
	size_t n;
} word;

static bool in_list(word w, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(list[i]) == w.n && strncasecmp(w.p, list[i], w.n) == 0)
			return true;
	return false;
}
#define IN(w, list) in_list(w, list, sizeof(list) / sizeof *(list))

/* Words of snake_case, kebab-case, dotted and camelCase names. */
static size_t split(const char *p, size_t n, word *out, size_t max)
{
	size_t k = 0, i = 0;
	while (i < n && k < max) {
		while (i < n && !isalnum((unsigned char)p[i]))
			i++;
		size_t a = i;
		while (i < n && isalnum((unsigned char)p[i])) {
			if (i > a && isupper((unsigned char)p[i]) &&
			    islower((unsigned char)p[i - 1]))
				break;
			i++;
		}
		if (i > a)
			out[k++] = (word){p + a, i - a};
	}
	return k;
}

rd_name rd_judge(const char *name, size_t n)
{
	word w[12];
	size_t k = split(name, n, w, 12);
	/* SECRET_1, TOKEN2 */
	while (k > 1 && w[k - 1].n <= 3 && isdigit((unsigned char)w[k - 1].p[0]))
		k--;
	if (k == 0 || (k > 1 && IN(w[k - 1], harmless_ends)))
		return NAME_PLAIN;
	rd_name best = NAME_PLAIN;
	for (size_t i = 0; i < k; i++) {
		word x = w[i];
		while (x.n > 1 && isdigit((unsigned char)x.p[x.n - 1]))
			x.n--;
		bool pwd = x.n == 3 && strncasecmp(x.p, "pwd", 3) == 0;
		/* PWD and OLDPWD are folders. */
		if (IN(x, password_words) && !(pwd && k == 1 && isupper((unsigned char)x.p[0])))
			return NAME_PASSWORD;
		/* DBPASSWORD, mypasswd */
		if (x.n > 8 && strncasecmp(x.p + x.n - 8, "password", 8) == 0)
			return NAME_PASSWORD;
		if (IN(x, secret_words) || (i > 0 && x.n == 3 && strncasecmp(x.p, "key", 3) == 0 &&
		                            IN(w[i - 1], key_kinds)))
			best = NAME_SECRET;
		if (i == k - 1 && (IN(x, ((const char *const[]){"cookie", "cookies"}))))
			best = NAME_COOKIE;
	}
	return best;
}

static bool looks_like_path(const char *v, size_t n)
{
	if (n < 2)
		return false;
	bool rooted = v[0] == '/' || (v[0] == '~' && v[1] == '/') || (v[0] == '.' && v[1] == '/');
	/* base64 may begin with a slash, but then has no second one near or an extension */
	return rooted && (memchr(v + 2, '/', n - 2) || memchr(v + 1, '.', n - 1)) &&
	       !memchr(v, '+', n) && !memchr(v, '=', n);
}

bool rd_is_secret(rd_name kind, const char *v, size_t n)
{
	static const char *const placeholders[] = {
	    "none", "null", "true", "false", "nil", "yes", "no", "prompt", "required", "undefined"};
	if (n == 0 || kind == NAME_PLAIN)
		return false;
	size_t a = v[0] == '"' || v[0] == '\'' ? 1 : 0;
	if (n == a || (n == 2 && a))
		return false;
	if (v[a] == '$' && n > a + 1 &&
	    (isalpha((unsigned char)v[a + 1]) || v[a + 1] == '{' || v[a + 1] == '(' ||
	     v[a + 1] == '_'))
		return false;
	if (n >= 10 && memcmp(v, "[redacted:", 10) == 0)
		return false;
	size_t stars = 0;
	while (stars < n && v[stars] == '*')
		stars++;
	if (stars == n || (v[0] == '<' && v[n - 1] == '>'))
		return false;
	if (kind == NAME_PASSWORD)
		return true;
	if (IN(((word){v, n}), placeholders) || looks_like_path(v + a, n - a))
		return false;
	size_t digits = 0;
	while (digits < n && (isdigit((unsigned char)v[digits]) || v[digits] == '.'))
		digits++;
	return !(digits == n && n < 8);
}

/* Options of single programs that take a secret in a form of their own. */
typedef enum { FORM_NEXT, FORM_AFTER_COLON, FORM_ATTACHED, FORM_AFTER_PERCENT } form;
static const struct special {
	const char *program, *option;
	form how;
} specials[] = {
    {"curl", "-u", FORM_AFTER_COLON},
    {"curl", "--user", FORM_AFTER_COLON},
    {"curl", "-U", FORM_AFTER_COLON},
    {"curl", "--proxy-user", FORM_AFTER_COLON},
    {"curl", "-b", FORM_NEXT},
    {"http", "-a", FORM_AFTER_COLON},
    {"http", "--auth", FORM_AFTER_COLON},
    {"https", "-a", FORM_AFTER_COLON},
    {"sshpass", "-p", FORM_NEXT},
    {"sshpass", "-p", FORM_ATTACHED},
    {"mysql", "-p", FORM_ATTACHED},
    {"mysqldump", "-p", FORM_ATTACHED},
    {"mysqladmin", "-p", FORM_ATTACHED},
    {"mariadb", "-p", FORM_ATTACHED},
    {"mariadb-dump", "-p", FORM_ATTACHED},
    {"redis-cli", "-a", FORM_NEXT},
    {"smbclient", "-U", FORM_AFTER_PERCENT},
    {"login", "-p", FORM_NEXT},
    {"openssl", "-passin", FORM_AFTER_COLON},
    {"openssl", "-passout", FORM_AFTER_COLON},
    {"openssl", "-pass", FORM_AFTER_COLON},
    {"ldapsearch", "-w", FORM_NEXT},
    {"zip", "-P", FORM_NEXT},
    {"unzip", "-P", FORM_NEXT},
};

static sw_str base_name(sw_str a)
{
	const char *slash = a.len ? memrchr(a.ptr, '/', a.len) : NULL;
	if (slash)
		return (sw_str){slash + 1, a.len - (size_t)(slash + 1 - a.ptr)};
	return a;
}

static bool eqz(sw_str a, const char *z)
{
	return a.len == strlen(z) && (a.len == 0 || memcmp(a.ptr, z, a.len) == 0);
}

static bool known_program(sw_str name)
{
	for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
		if (eqz(name, specials[i].program))
			return true;
	return false;
}

/* How many bytes at the front of argument i stay; -1: no special rule. */
static long special_keep(sw_str program, sw_str prev, sw_str arg, const char **kind)
{
	for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
		const struct special *x = &specials[i];
		if (!eqz(program, x->program))
			continue;
		size_t k = strlen(x->option);
		*kind = x->option[1] == 'b' ? "cookie" : "password";
		if (x->how == FORM_ATTACHED) {
			if (arg.len > k && memcmp(arg.ptr, x->option, k) == 0)
				return (long)k;
			continue;
		}
		if (!eqz(prev, x->option) || arg.len == 0)
			continue;
		if (x->how == FORM_NEXT)
			return 0;
		const char *c = memchr(arg.ptr, x->how == FORM_AFTER_COLON ? ':' : '%', arg.len);
		if (!c)
			continue;
		if (x->program[0] == 'o' && memcmp(arg.ptr, "pass", 4 < arg.len ? 4 : arg.len) != 0)
			continue; /* env:NAME, file:PATH */
		return c - arg.ptr + 1;
	}
	return -1;
}

int sw_redact_argv(const sw_str *argv, size_t argc, sw_str *out)
{
	sw_str program = {"", 0};
	size_t i;
	for (i = 0; i < argc; i++) {
		sw_str a = argv[i], prev = i ? argv[i - 1] : (sw_str){"", 0};
		sw_buf b;
		sw_buf_init(&b, a.len * 16 + 256);
		const char *kind = "password";
		long keep = special_keep(program, prev, a, &kind);
		rd_name name = NAME_PLAIN;
		if (keep < 0 && prev.len > 2 && prev.ptr[0] == '-' && prev.ptr[1] == '-' &&
		    !memchr(prev.ptr, '=', prev.len) && !memchr(prev.ptr, ' ', prev.len) &&
		    !(a.len && a.ptr[0] == '-'))
			name = rd_judge(prev.ptr + 2, prev.len - 2);
		if (name != NAME_PLAIN && rd_is_secret(name, a.ptr, a.len)) {
			keep = 0;
			kind = name == NAME_COOKIE ? "cookie" : "password";
		}
		int code = 0;
		if (keep >= 0) {
			sw_buf_add(&b, a.ptr, (size_t)keep);
			code = rd_mark(&b, kind);
		} else if (a.len) {
			code = rd_text(&b, a.ptr, a.len, true);
		}
		if (code != 0) {
			sw_buf_free(&b);
			break;
		}
		size_t n = b.len;
		char *p = b.ptr ? sw_buf_take(&b) : strdup("");
		if (!p)
			break;
		out[i] = (sw_str){p, n};
		sw_str name_of = base_name(a);
		if (known_program(name_of))
			program = name_of;
	}
	if (i == argc)
		return 0;
	while (i > 0)
		free((char *)out[--i].ptr);
	return SW_ENOMEM;
}
