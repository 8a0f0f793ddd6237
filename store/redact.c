/*
 * redact.c - secrets in free text: an argument, a line, a whole output.
 *
 * One pass; at each place where a secret of a documented kind can begin, the rules
 * below are tried. A rule errs towards hiding where a name says "password", and
 * towards keeping where only the shape of a word speaks: hashes, UUIDs and paths are
 * what operators need to read.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "redact.h"

/* ---- words with a published shape ---- */

enum { SET_ALNUM, SET_WORD, SET_UPPER, SET_HEX, SET_DOTTED };

static bool in_set(unsigned char c, int set)
{
	switch (set) {
	case SET_UPPER:
		return isupper(c) || isdigit(c);
	case SET_HEX:
		return isxdigit(c);
	case SET_ALNUM:
		return isalnum(c);
	case SET_DOTTED:
		return isalnum(c) || c == '_' || c == '-' || c == '.';
	default:
		return isalnum(c) || c == '_' || c == '-';
	}
}

static const struct token {
	const char *prefix;
	uint8_t set;
	uint8_t min, max; /* after the prefix; max 0: any */
	bool digit;       /* needs a digit: keeps words of prose */
	const char *kind;
} tokens[] = {
    {"AKIA", SET_UPPER, 16, 16, false, "aws"},
    {"ASIA", SET_UPPER, 16, 16, false, "aws"},
    {"ABIA", SET_UPPER, 16, 16, false, "aws"},
    {"ACCA", SET_UPPER, 16, 16, false, "aws"},
    {"AIza", SET_WORD, 30, 0, false, "gcp"},
    {"ya29.", SET_WORD, 20, 0, false, "gcp"},
    {"GOCSPX-", SET_WORD, 20, 0, false, "gcp"},
    {"ghp_", SET_ALNUM, 20, 0, false, "github"},
    {"gho_", SET_ALNUM, 20, 0, false, "github"},
    {"ghu_", SET_ALNUM, 20, 0, false, "github"},
    {"ghs_", SET_DOTTED, 20, 0, false, "github"},
    {"ghr_", SET_ALNUM, 20, 0, false, "github"},
    {"github_pat_", SET_WORD, 20, 0, false, "github"},
    {"glpat-", SET_DOTTED, 16, 0, false, "gitlab"},
    {"gldt-", SET_DOTTED, 16, 0, true, "gitlab"},
    {"glrt-", SET_DOTTED, 16, 0, true, "gitlab"},
    {"glptt-", SET_DOTTED, 16, 0, true, "gitlab"},
    {"glcbt-", SET_DOTTED, 16, 0, true, "gitlab"},
    {"glsoat-", SET_DOTTED, 16, 0, true, "gitlab"},
    {"glagent-", SET_DOTTED, 16, 0, true, "gitlab"},
    {"xoxa-", SET_WORD, 10, 0, false, "slack"},
    {"xoxb-", SET_WORD, 10, 0, false, "slack"},
    {"xoxc-", SET_WORD, 10, 0, false, "slack"},
    {"xoxd-", SET_WORD, 10, 0, false, "slack"},
    {"xoxe-", SET_WORD, 10, 0, false, "slack"},
    {"xoxe.", SET_DOTTED, 10, 0, false, "slack"},
    {"xoxp-", SET_WORD, 10, 0, false, "slack"},
    {"xoxr-", SET_WORD, 10, 0, false, "slack"},
    {"xoxs-", SET_WORD, 10, 0, false, "slack"},
    {"xapp-", SET_WORD, 10, 0, true, "slack"},
    {"npm_", SET_ALNUM, 30, 0, false, "npm"},
    {"sk-", SET_WORD, 20, 0, true, "openai"},
    {"sess-", SET_ALNUM, 40, 40, true, "openai"},
    {"sk_live_", SET_ALNUM, 16, 0, false, "stripe"},
    {"sk_test_", SET_ALNUM, 16, 0, false, "stripe"},
    {"rk_live_", SET_ALNUM, 16, 0, false, "stripe"},
    {"whsec_", SET_ALNUM, 16, 0, false, "stripe"},
    {"hf_", SET_ALNUM, 30, 0, false, "huggingface"},
    {"pypi-", SET_WORD, 50, 0, true, "pypi"},
    {"SG.", SET_DOTTED, 40, 0, true, "sendgrid"},
    {"dop_v1_", SET_HEX, 64, 64, false, "digitalocean"},
    {"dckr_pat_", SET_WORD, 20, 0, false, "docker"},
    {"AGE-SECRET-KEY-1", SET_UPPER, 20, 0, false, "private-key"},
};

/* Length of a token at p, 0: none. */
static size_t token_at(const char *p, size_t n, const char **kind)
{
	for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
		const struct token *t = &tokens[i];
		if (p[0] != t->prefix[0])
			continue;
		size_t k = strlen(t->prefix);
		if (n < k + t->min || memcmp(p, t->prefix, k) != 0)
			continue;
		size_t e = k;
		bool digit = false;
		while (e < n && in_set((unsigned char)p[e], t->set)) {
			digit |= isdigit((unsigned char)p[e]) != 0;
			e++;
		}
		if (e - k < t->min || (t->max && e - k > t->max) || (t->digit && !digit))
			continue;
		*kind = t->kind;
		return e;
	}
	return 0;
}

static size_t base64url_run(const char *p, size_t n)
{
	size_t i = 0;
	while (i < n && (isalnum((unsigned char)p[i]) || p[i] == '-' || p[i] == '_'))
		i++;
	return i;
}

/* header.payload.signature, both first parts being JSON objects in base64url. */
static size_t jwt_at(const char *p, size_t n)
{
	if (n < 30 || memcmp(p, "eyJ", 3) != 0)
		return 0;
	size_t a = base64url_run(p, n);
	if (a < 10 || a >= n || p[a] != '.')
		return 0;
	size_t b = base64url_run(p + a + 1, n - a - 1);
	if (b < 10)
		return 0;
	size_t e = a + 1 + b;
	if (e < n && p[e] == '.')
		e += 1 + base64url_run(p + e + 1, n - e - 1);
	return e;
}

static const char *find(const char *p, size_t n, const char *what)
{
	return memmem(p, n, what, strlen(what));
}

static size_t private_key_at(const char *p, size_t n)
{
	if (!p || n < 11 || memcmp(p, "-----BEGIN ", 11) != 0)
		return 0;
	size_t head = n < 80 ? n : 80;
	const char *mark = find(p, head, "PRIVATE KEY");
	const char *nl = memchr(p, '\n', head);
	if (!mark || (nl && nl < mark))
		return 0;
	const char *end = find(p, n, "-----END ");
	if (!end)
		return n; /* cut off: whatever follows may be key */
	const char *close = find(end + 9, n - (size_t)(end + 9 - p), "-----");
	return close ? (size_t)(close + 5 - p) : n;
}

/* ---- "Bearer x", "Basic x" outside a header ---- */

static bool same_nocase(const char *p, size_t n, const char *word)
{
	size_t k = strlen(word);
	return n >= k && strncasecmp(p, word, k) == 0;
}

static size_t credential_run(const char *p, size_t n)
{
	size_t i = 0;
	while (i < n && (isalnum((unsigned char)p[i]) || strchr("._~+/=-", p[i])) && p[i])
		i++;
	return i;
}

static size_t scheme_at(const char *p, size_t n, size_t *keep, const char **kind)
{
	size_t k = same_nocase(p, n, "bearer ") ? 7 : same_nocase(p, n, "basic ") ? 6 : 0;
	if (!k)
		return 0;
	size_t e = credential_run(p + k, n - k);
	*keep = k;
	if (k == 7) {
		bool digit = false;
		for (size_t i = 0; i < e; i++)
			digit |= isdigit((unsigned char)p[k + i]) != 0;
		*kind = "bearer";
		return e >= 8 && (digit || e >= 24) ? k + e : 0;
	}
	char *plain = NULL;
	size_t m = 0;
	bool basic = e >= 4 && sw_base64_decode(p + k, e, &plain, &m) == 0 && memchr(plain, ':', m);
	free(plain);
	*kind = "basic";
	return basic ? k + e : 0;
}

/* ---- values of assignments, headers, options ---- */

/* A shell word: quoted parts belong to it where their quote is closed on the line. */
static size_t value_end(const char *p, size_t n)
{
	size_t i = 0;
	while (i < n) {
		char c = p[i];
		if (c == '\\' && i + 1 < n && p[i + 1] != '\n') {
			i += 2;
			continue;
		}
		if (c == '"' || c == '\'') {
			size_t j = i + 1;
			while (j < n && p[j] != c && p[j] != '\n')
				j += p[j] == '\\' && c == '"' && j + 1 < n ? 2 : 1;
			if (j >= n || p[j] != c)
				break;
			i = j + 1;
			continue;
		}
		if (isspace((unsigned char)c) || c == ';' || c == '&' || c == '|' || c == 0)
			break;
		i++;
	}
	return i < n ? i : n;
}

static size_t line_end(const char *p, size_t n)
{
	size_t i = 0;
	while (i < n && p[i] != '\n' && p[i] != '\r' && p[i] != '"' && p[i] != '\'')
		i++;
	return i;
}

static const char *const secret_headers[] = {
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "x-auth-token",
    "private-token",
    "x-vault-token",
    "x-amz-security-token",
    "x-goog-api-key",
    "api-key",
    "job-token",
    "x-csrf-token",
};

static bool is_header(const char *name, size_t n, bool *cookie)
{
	for (size_t i = 0; i < sizeof secret_headers / sizeof *secret_headers; i++)
		if (strlen(secret_headers[i]) == n &&
		    strncasecmp(name, secret_headers[i], n) == 0) {
			*cookie = memmem(secret_headers[i], n, "cookie", 6) != NULL;
			return true;
		}
	return false;
}

/* Start of the name that ends at `end`, within p. */
static size_t name_start(const char *p, size_t end)
{
	size_t i = end;
	while (i > 0 && end - i < 128 &&
	       (isalnum((unsigned char)p[i - 1]) || p[i - 1] == '_' || p[i - 1] == '-' ||
	        p[i - 1] == '.'))
		i--;
	return i;
}

/* "client_secret:" anywhere, "token:" where a line begins: a key of YAML, not prose. */
static bool is_key(const char *p, size_t start, size_t end)
{
	size_t i = start;
	if (memchr(p + start, '_', end - start) || memchr(p + start, '-', end - start))
		return true;
	while (i > 0 && (p[i - 1] == ' ' || p[i - 1] == '\t'))
		i--;
	return i == 0 || p[i - 1] == '\n';
}

/*
 * At '=' or ':' (position i): how many bytes of the value to hide, beginning at *from.
 */
static size_t assigned(const char *p, size_t n, size_t i, bool whole, size_t *from,
                       const char **kind)
{
	size_t end = i;
	bool quoted = false, spaced = false;
	while (end > 0 && (p[end - 1] == ' ' || p[end - 1] == '\t') && i - end < 4) {
		end--;
		spaced = true;
	}
	if (end > 1 && p[end - 1] == '\\')
		end--;
	if (end > 0 && (p[end - 1] == '"' || p[end - 1] == '\'')) {
		quoted = true;
		end--;
		if (end > 1 && p[end - 1] == '\\') /* JSON within JSON */
			end--;
	}
	size_t start = name_start(p, end);
	if (start == end)
		return 0;
	size_t v = i + 1;
	if (p[i] == ':' && v < n && p[v] == '=') /* := */
		v++;
	while (v < n && (p[v] == ' ' || p[v] == '\t') && v - i < 8)
		v++;
	bool cookie = false;
	if (p[i] == ':' && !quoted && is_header(p + start, end - start, &cookie)) {
		size_t e = whole ? n - v : line_end(p + v, n - v);
		*from = v;
		*kind = cookie ? "cookie" : "header";
		return e;
	}
	rd_name name = rd_judge(p + start, end - start);
	if (name == NAME_PLAIN)
		return 0;
	/* "unexpected token: x" is a compiler, "token = parse()" a program: prose keeps. */
	bool strong = name == NAME_PASSWORD;
	if (p[i] == ':' && !quoted && !strong && !is_key(p, start, end))
		return 0;
	if (p[i] == '=' && v < n && (p[v] == '=' || p[v] == '~' || p[v] == '>'))
		return 0;
	if (p[i] == '=' && spaced && !strong && v < n &&
	    memchr(p + v, '(', value_end(p + v, n - v)))
		return 0;
	if (p[i] == '=' && v > i + 1 && !spaced)
		return 0; /* "PASSWORD= next": empty */
	/* In an argument of its own the value runs to the end, whatever it holds. */
	bool own = whole && start <= 2 && p[i] == '=' && !quoted && memchr(p, '\n', n) == NULL;
	if (whole && start > 0 && own)
		own = p[0] == '-';
	size_t e = own ? n - v : value_end(p + v, n - v);
	size_t skip = 0;
	if (e > 1 && (p[v] == '"' || p[v] == '\'') && p[v + e - 1] == p[v] && !own) {
		skip = 1;
		e -= 2;
	} else if (e > 0 && !own && (p[v + e - 1] == ',' || p[v + e - 1] == '}') && quoted) {
		while (e > 0 && (p[v + e - 1] == ',' || p[v + e - 1] == '}'))
			e--; /* JSON's own marks */
	}
	if (quoted && skip == 0 && e > 3 && p[v] == '"') {
		const char *close = memchr(p + v + 1, '"', e - 1); /* "a":"x","b":... */
		if (close) {
			skip = 1;
			e = (size_t)(close - (p + v)) - 1;
		}
	}
	if (!rd_is_secret(name, p + v + skip, e))
		return 0;
	*from = v + skip;
	*kind = name == NAME_COOKIE ? "cookie" : "password";
	return e;
}

/* "://user:secret@host": hides the secret; a long user alone is a token. */
static size_t userinfo(const char *p, size_t n, size_t i, size_t *from)
{
	size_t a = i + 3, at = 0;
	for (size_t k = a; k < n && k - a < 1024; k++) {
		unsigned char c = (unsigned char)p[k];
		if (c == '@')
			at = k;
		if (isspace(c) || c == '"' || c == '\'' || c == '/' || c == '?' || c == '#' ||
		    c == '<')
			break;
	}
	if (!at || p[a] == '[') /* nobody, or hidden before (or an IPv6 host) */
		return 0;
	const char *colon = memchr(p + a, ':', at - a);
	if (colon) {
		*from = (size_t)(colon + 1 - p);
		return at - *from;
	}
	*from = a;
	return at - a >= 20 ? at - a : 0;
}

/* "--password x" in a command line that is one text. */
static size_t option_at(const char *p, size_t n, size_t *from, const char **kind)
{
	if (n < 6 || p[0] != '-' || p[1] != '-')
		return 0;
	size_t e = 2;
	while (e < n && (isalnum((unsigned char)p[e]) || p[e] == '-' || p[e] == '_'))
		e++;
	if (e >= n || (p[e] != ' ' && p[e] != '\t'))
		return 0;
	rd_name name = rd_judge(p + 2, e - 2);
	if (name == NAME_PLAIN)
		return 0;
	size_t v = e;
	while (v < n && (p[v] == ' ' || p[v] == '\t'))
		v++;
	if (v < n && p[v] == '-')
		return 0;
	size_t len = value_end(p + v, n - v);
	if (!rd_is_secret(name, p + v, len))
		return 0;
	*from = v;
	*kind = name == NAME_COOKIE ? "cookie" : "password";
	return len;
}

static const struct literal {
	const char *text;
	const char *kind;
} path_secrets[] = {
    {"hooks.slack.com/services/", "slack"},
    {"discord.com/api/webhooks/", "webhook"},
    {"api.telegram.org/bot", "webhook"},
};

int rd_mark(sw_buf *b, const char *kind)
{
	return sw_buf_addf(b, "[redacted:%s]", kind);
}

int rd_text(sw_buf *out, const char *p, size_t n, bool whole)
{
	size_t done = 0, i = 0;
	if (!p)
		return out->error;
	while (i < n) {
		size_t from = i, len = 0, keep = 0;
		const char *kind = NULL;
		unsigned char c = (unsigned char)p[i];
		bool start = i == 0 || !isalnum((unsigned char)p[i - 1]);
		if (c == '=' || c == ':') {
			if (c == ':' && i + 2 < n && p[i + 1] == '/' && p[i + 2] == '/') {
				len = userinfo(p, n, i, &from);
				kind = "userinfo";
			} else {
				len = assigned(p, n, i, whole, &from, &kind);
			}
		} else if (c == '-' && (i == 0 || p[i - 1] != '-') && i + 1 < n &&
		           p[i + 1] == '-') {
			len = private_key_at(p + i, n - i);
			kind = "private-key";
			if (!len && (len = option_at(p + i, n - i, &from, &kind)) > 0)
				from += i;
		} else if (start && isalpha(c)) {
			if ((len = token_at(p + i, n - i, &kind)) == 0) {
				if (c == 'e' && (len = jwt_at(p + i, n - i)) > 0)
					kind = "jwt";
				else if ((c | 32) == 'b' &&
				         (len = scheme_at(p + i, n - i, &keep, &kind)) > 0) {
					from = i + keep;
					len -= keep;
				}
			}
			for (size_t k = 0; !len && k < sizeof path_secrets / sizeof *path_secrets;
			     k++) {
				size_t m = strlen(path_secrets[k].text);
				if (c == (unsigned char)path_secrets[k].text[0] && n - i > m &&
				    memcmp(p + i, path_secrets[k].text, m) == 0) {
					from = i + m;
					len = value_end(p + from, n - from);
					kind = path_secrets[k].kind;
				}
			}
		}
		if (!len) {
			i++;
			continue;
		}
		sw_buf_add(out, p + done, from - done);
		rd_mark(out, kind);
		done = i = from + len;
	}
	return sw_buf_add(out, p + done, n - done);
}

char *sw_redact(const void *p, size_t len, size_t *n)
{
	sw_buf b;
	/* A secret is never shorter than its mark by more than this factor. */
	sw_buf_init(&b, len * 16 + 256);
	if (rd_text(&b, p ? p : "", len, false) != 0) {
		sw_buf_free(&b);
		return NULL;
	}
	if (n)
		*n = b.len;
	if (!b.ptr)
		return strdup("");
	return sw_buf_take(&b);
}
