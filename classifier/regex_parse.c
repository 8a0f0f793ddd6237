/* Reading a pattern. Everything that is not known here is refused, with its place. */
#include "regex_tree.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64
#define NODES_MAX 60000
#define REPEAT_MAX 65535

const char *const sw_regex_group_names[SW_REGEX_GROUPS] = {"path", "host", "syscall"};

typedef struct parser {
	rx_tree *t;
	const char *p, *begin;
	int depth;
	bool seen[SW_REGEX_GROUPS];
	int in_look;
} parser;

static int32_t parse_alternatives(parser *s);

static int32_t refuse(parser *s, const char *at, const char *why)
{
	if (!s->t->error.why)
		s->t->error = (sw_regex_error){(size_t)(at - s->begin), why};
	return RX_NONE;
}

static int32_t add_node(parser *s, rx_kind kind, const char *at)
{
	rx_tree *t = s->t;
	if (t->n_nodes == NODES_MAX)
		return refuse(s, at, "the pattern is too large");
	if (t->n_nodes == t->cap_nodes) {
		int32_t cap = t->cap_nodes ? t->cap_nodes * 2 : 32;
		rx_node *p = realloc(t->nodes, (size_t)cap * sizeof(*p));
		if (!p)
			return RX_NONE;
		t->nodes = p;
		t->cap_nodes = cap;
	}
	t->nodes[t->n_nodes] = (rx_node){
	    .kind = kind, .child = RX_NONE, .next = RX_NONE, .source = (size_t)(at - s->begin)};
	return t->n_nodes++;
}

void rx_tree_free(rx_tree *t)
{
	free(t->nodes);
	free(t->sets);
	memset(t, 0, sizeof(*t));
}

/* ---- sets of bytes ---- */

int rx_single(const rx_set *s)
{
	int found = -1;
	for (int i = 0; i < 8; i++) {
		if (!s->bits[i])
			continue;
		if (found >= 0 || (s->bits[i] & (s->bits[i] - 1)))
			return -1;
		found = i * 32 + __builtin_ctz(s->bits[i]);
	}
	return found;
}

int32_t rx_set_add(rx_tree *t, const rx_set *s)
{
	for (uint32_t i = 0; i < t->n_sets; i++)
		if (memcmp(&t->sets[i], s, sizeof(*s)) == 0)
			return (int32_t)i;
	if (t->n_sets == RX_SETS_MAX)
		return RX_NONE;
	if (t->n_sets == t->cap_sets) {
		uint32_t cap = t->cap_sets ? t->cap_sets * 2 : 16;
		rx_set *p = realloc(t->sets, cap * sizeof(*p));
		if (!p)
			return RX_NONE;
		t->sets = p;
		t->cap_sets = cap;
	}
	t->sets[t->n_sets] = *s;
	return (int32_t)t->n_sets++;
}

static void put(rx_set *s, unsigned char c)
{
	s->bits[c >> 5] |= 1u << (c & 31);
}

static void put_range(rx_set *s, unsigned from, unsigned to)
{
	for (unsigned c = from; c <= to; c++)
		put(s, (unsigned char)c);
}

static void complement(rx_set *s)
{
	for (int i = 0; i < 8; i++)
		s->bits[i] = ~s->bits[i];
}

/* Subjects are folded: capitals stand for their small letters and never occur. */
static void fold_set(rx_set *s, bool negative)
{
	for (unsigned c = 'A'; c <= 'Z'; c++)
		if (rx_in(s, (unsigned char)c))
			put(s, (unsigned char)(c + 32));
	for (unsigned c = 'a'; negative && c <= 'z'; c++)
		if (rx_in(s, (unsigned char)c))
			put(s, (unsigned char)(c - 32));
	if (negative)
		complement(s);
	for (unsigned c = 'A'; c <= 'Z'; c++)
		s->bits[c >> 5] &= ~(1u << (c & 31));
}

static void put_kind(rx_set *s, char kind)
{
	rx_set k = {{0}};
	switch (kind | 0x20) {
	case 'd':
		put_range(&k, '0', '9');
		break;
	case 'w':
		put_range(&k, '0', '9');
		put_range(&k, 'A', 'Z');
		put_range(&k, 'a', 'z');
		put(&k, '_');
		break;
	case 's':
		put_range(&k, '\t', '\r');
		put(&k, ' ');
		break;
	case 'h':
		put(&k, '\t');
		put(&k, ' ');
		put(&k, 0xa0);
		break;
	default: /* v */
		put_range(&k, '\n', '\r');
		put(&k, 0x85);
		break;
	}
	if (!(kind & 0x20))
		complement(&k);
	for (int i = 0; i < 8; i++)
		s->bits[i] |= k.bits[i];
}

static bool put_posix(rx_set *s, const char *name, size_t n)
{
	static const struct {
		const char *name, *ranges; /* pairs */
	} kinds[] = {{"alpha", "AZaz"},
	             {"digit", "09"},
	             {"alnum", "09AZaz"},
	             {"upper", "AZaz"},
	             {"lower", "AZaz"},
	             {"space", "\t\r  "},
	             {"blank", "\t\t  "},
	             {"punct", "!/:@[`{~"},
	             {"xdigit", "09AFaf"},
	             {"word", "09AZaz__"},
	             {"print", " ~"},
	             {"graph", "!~"},
	             {"cntrl", "\x01\x1f\x7f\x7f"}};
	bool negative = n && name[0] == '^';
	rx_set k = {{0}};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strlen(kinds[i].name) != n - negative ||
		    strncmp(kinds[i].name, name + negative, n - negative) != 0)
			continue;
		for (const char *r = kinds[i].ranges; *r; r += 2)
			put_range(&k, (unsigned char)r[0], (unsigned char)r[1]);
		if (strcmp(kinds[i].name, "cntrl") == 0)
			put(&k, 0);
		if (negative)
			complement(&k);
		for (int b = 0; b < 8; b++)
			s->bits[b] |= k.bits[b];
		return true;
	}
	return false;
}

static int hex(char c)
{
	return c >= '0' && c <= '9'                     ? c - '0'
	       : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
	                                                : -1;
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* An escape that stands for one byte, after the backslash; -1: it does not. */
static int escaped_byte(parser *s)
{
	static const char names[] = "tnrfea", bytes[] = "\t\n\r\f\x1b\a";
	char c = *s->p;
	const char *k = c ? strchr(names, c) : NULL;
	if (!c)
		return -1;
	if (k) {
		s->p++;
		return (unsigned char)bytes[k - names];
	}
	if (c == 'x') {
		bool braces = s->p[1] == '{';
		const char *q = s->p + 1 + braces;
		int value = 0, digits = 0;
		for (; digits < 2 && hex(*q) >= 0; digits++)
			value = value * 16 + hex(*q++);
		if (!digits || (braces && *q != '}'))
			return -1;
		s->p = q + braces;
		return value;
	}
	if (is_alnum(c))
		return -1;
	s->p++;
	return (unsigned char)c;
}

/* One member of a class: its byte, or -1 where a kind went into the set, -2: refused. */
static int class_member(parser *s, rx_set *set)
{
	if (*s->p == '[' && (s->p[1] == ':' || s->p[1] == '.' || s->p[1] == '=')) {
		const char *end = s->p[1] == ':' ? strstr(s->p, ":]") : NULL;
		if (!end || !put_posix(set, s->p + 2, (size_t)(end - s->p) - 2)) {
			refuse(s, s->p, "no such class of bytes");
			return -2;
		}
		s->p = end + 2;
		return -1;
	}
	if (*s->p != '\\')
		return (unsigned char)*s->p++;
	const char *at = s->p++;
	if (*s->p && strchr("dDwWsShHvV", *s->p)) {
		put_kind(set, *s->p++);
		return -1;
	}
	if (*s->p == 'b') {
		s->p++;
		return '\b';
	}
	int c = escaped_byte(s);
	if (c < 0) {
		refuse(s, at, "an escape that is not used in patterns");
		return -2;
	}
	return c;
}

static int32_t no_set(parser *s, const char *at)
{
	return s->t->n_sets == RX_SETS_MAX ? refuse(s, at, "too many different classes") : RX_NONE;
}

static int32_t set_node(parser *s, const rx_set *set, bool negative, const char *at)
{
	rx_set folded = *set;
	fold_set(&folded, negative);
	int32_t id = rx_set_add(s->t, &folded),
	        node = id < 0 ? no_set(s, at) : add_node(s, RX_SET, at);
	if (node >= 0)
		s->t->nodes[node].set = (uint16_t)id;
	return node;
}

static int32_t parse_class(parser *s)
{
	const char *at = s->p++;
	rx_set set = {{0}};
	bool negative = *s->p == '^', first = true;
	s->p += negative;
	for (; *s->p && (first || *s->p != ']'); first = false) {
		int from = class_member(s, &set);
		if (from == -2)
			return RX_NONE;
		if (from < 0)
			continue;
		if (s->p[0] == '-' && s->p[1] && s->p[1] != ']') {
			const char *dash = s->p++;
			int to = class_member(s, &set);
			if (to == -2)
				return RX_NONE;
			if (to < 0) {
				put(&set, '-'); /* [a-\d] */
			} else if (to < from) {
				return refuse(s, dash, "a range that runs backwards");
			} else {
				put_range(&set, (unsigned)from, (unsigned)to);
				continue;
			}
		}
		put(&set, (unsigned char)from);
	}
	if (*s->p != ']')
		return refuse(s, at, "the ] that ends the class is missing");
	s->p++;
	return set_node(s, &set, negative, at);
}

/* ---- items ---- */

/* Most of a pattern is plain text: its sets are found without a search. */
static int32_t byte_node(parser *s, unsigned char c, const char *at)
{
	rx_tree *t = s->t;
	c = c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
	if (!t->of_byte[c]) {
		rx_set set = {{0}};
		put(&set, c);
		int32_t id = rx_set_add(t, &set);
		if (id < 0)
			return no_set(s, at);
		t->of_byte[c] = (uint16_t)(id + 1);
	}
	int32_t node = add_node(s, RX_SET, at);
	if (node >= 0)
		t->nodes[node].set = (uint16_t)(t->of_byte[c] - 1);
	return node;
}

static int32_t parse_escape(parser *s)
{
	static const struct {
		char name;
		rx_kind kind;
	} places[] = {{'b', RX_WORD}, {'B', RX_NOT_WORD}, {'A', RX_BOL}, {'z', RX_EOL}};
	const char *at = s->p++;
	rx_set set = {{0}};
	if (*s->p && strchr("dDwWsShHvV", *s->p)) {
		put_kind(&set, *s->p++);
		return set_node(s, &set, false, at);
	}
	if (*s->p == 'N') {
		s->p++;
		put(&set, '\n');
		return set_node(s, &set, true, at);
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (*s->p != places[i].name)
			continue;
		s->p++;
		return add_node(s, places[i].kind, at);
	}
	if ((*s->p >= '1' && *s->p <= '9') || *s->p == 'k' || *s->p == 'g')
		return refuse(s, at, "a back-reference or recursion");
	int c = escaped_byte(s);
	return c < 0 ? refuse(s, at,
	                      *s->p ? "an escape that is not used in patterns"
	                            : "a backslash at the end")
	             : byte_node(s, (unsigned char)c, at);
}

static int32_t named_group(parser *s, const char *at, char closing)
{
	const char *end = strchr(s->p, closing);
	size_t n = end ? (size_t)(end - s->p) : 0;
	int group = -1;
	if (!n)
		return refuse(s, at, "a group without a name");
	for (int i = 0; i < SW_REGEX_GROUPS; i++)
		if (strlen(sw_regex_group_names[i]) == n &&
		    strncmp(s->p, sw_regex_group_names[i], n) == 0)
			group = i;
	if (group < 0)
		return refuse(s, at, "groups are called path, host or syscall");
	if (s->seen[group])
		return refuse(s, at, "two groups of one name");
	if (s->in_look)
		return refuse(s, at, "a named group inside a look-around");
	s->seen[group] = true;
	s->p = end + 1;
	int32_t node = add_node(s, RX_GROUP, at), child = parse_alternatives(s);
	if (node < 0 || child < 0)
		return RX_NONE;
	s->t->nodes[node].group = (uint16_t)group;
	s->t->nodes[node].child = child;
	return node;
}

static int32_t look_around(parser *s, const char *at, bool behind, bool negative)
{
	s->in_look++;
	int32_t node = add_node(s, RX_LOOK, at), child = parse_alternatives(s);
	s->in_look--;
	if (node < 0 || child < 0)
		return RX_NONE;
	s->t->nodes[node].behind = behind;
	s->t->nodes[node].negative = negative;
	s->t->nodes[node].child = child;
	return node;
}

static bool skip_text(parser *s, const char *z)
{
	size_t n = strlen(z);
	if (strncmp(s->p, z, n) != 0)
		return false;
	s->p += n;
	return true;
}

static int32_t parse_group(parser *s)
{
	const char *at = s->p++;
	int32_t node;
	if (s->depth == DEPTH_MAX)
		return refuse(s, at, "groups are nested too deep");
	s->depth++;
	if (*s->p == '*')
		return refuse(s, at, "a verb (*...)");
	if (*s->p != '?' || skip_text(s, "?:"))
		node = parse_alternatives(s);
	else if (skip_text(s, "?="))
		node = look_around(s, at, false, false);
	else if (skip_text(s, "?!"))
		node = look_around(s, at, false, true);
	else if (skip_text(s, "?<="))
		node = look_around(s, at, true, false);
	else if (skip_text(s, "?<!"))
		node = look_around(s, at, true, true);
	else if (skip_text(s, "?<") || skip_text(s, "?P<"))
		node = named_group(s, at, '>');
	else if (skip_text(s, "?'"))
		node = named_group(s, at, '\'');
	else if (s->p[1] == 'C')
		return refuse(s, at, "a callout");
	else if (s->p[1] == 'R' || s->p[1] == '&' || s->p[1] == 'P' || s->p[1] == '+' ||
	         (s->p[1] >= '0' && s->p[1] <= '9'))
		return refuse(s, at, "a back-reference or recursion");
	else if (s->p[1] == '(')
		return refuse(s, at, "a condition (?(...)...)");
	else if (s->p[1] == '>')
		return refuse(s, at, "an atomic group; a line is matched in linear time without");
	else
		return refuse(s, at, "flags, comments and (?|...) are not used in patterns");
	if (node < 0)
		return RX_NONE;
	if (*s->p != ')')
		return refuse(s, at, "the ) that ends the group is missing");
	s->p++;
	s->depth--;
	return node;
}

/* {3} {3,} {3,5}; false: the brace is an ordinary byte. */
static bool braces(const char *p, uint32_t *min, uint32_t *max, const char **end)
{
	uint32_t n[2] = {0, RX_INF};
	const char *q = p + 1;
	for (int k = 0; k < 2; k++) {
		size_t digits = strspn(q, "0123456789");
		if (digits > 6 || (digits == 0 && k == 0))
			return false;
		if (digits)
			n[k] = (uint32_t)strtoul(q, NULL, 10);
		q += digits;
		if (k == 0 && *q == '}') {
			n[1] = n[0];
			break;
		}
		if (k == 0 && *q++ != ',')
			return false;
	}
	if (*q != '}')
		return false;
	*min = n[0];
	*max = n[1];
	*end = q + 1;
	return true;
}

static int32_t parse_atom(parser *s)
{
	const char *at = s->p, *end;
	rx_set newline = {{0}};
	switch (*at) {
	case '(':
		return parse_group(s);
	case '[':
		return parse_class(s);
	case '\\':
		return parse_escape(s);
	case '.':
		s->p++;
		put(&newline, '\n');
		return set_node(s, &newline, true, at);
	case '^':
		s->p++;
		return add_node(s, RX_BOL, at);
	case '$':
		s->p++;
		return add_node(s, RX_EOL, at);
	case '*':
	case '+':
	case '?':
		return refuse(s, at, "nothing to repeat");
	case '{':
		if (braces(at, &(uint32_t){0}, &(uint32_t){0}, &end))
			return refuse(s, at, "nothing to repeat");
		s->p++;
		return byte_node(s, '{', at);
	default:
		s->p++;
		return byte_node(s, (unsigned char)*at, at);
	}
}

static int32_t parse_repeated(parser *s)
{
	const char *at = s->p, *end;
	int32_t node = parse_atom(s);
	uint32_t min = 0, max = RX_INF;
	if (node < 0)
		return node;
	if (*s->p == '{' && s->p[1 + strspn(s->p + 1, " ")] == ',')
		return refuse(s, s->p, "write {0,n}, or \\{ for the brace");
	if (*s->p == '*' || *s->p == '+' || *s->p == '?') {
		min = *s->p == '+';
		max = *s->p == '?' ? 1 : RX_INF;
		end = s->p + 1;
	} else if (*s->p != '{' || !braces(s->p, &min, &max, &end)) {
		return node;
	}
	if (min > REPEAT_MAX || (max != RX_INF && (max > REPEAT_MAX || max < min)))
		return refuse(s, s->p, "a repeat with wrong or too large numbers");
	rx_kind kind = s->t->nodes[node].kind;
	if (kind == RX_BOL || kind == RX_EOL || kind == RX_WORD || kind == RX_NOT_WORD ||
	    kind == RX_LOOK)
		return refuse(s, s->p, "a repeat of what takes no bytes");
	s->p = end;
	rx_mode mode = *end == '?' ? RX_LAZY : *end == '+' ? RX_POSSESSIVE : RX_GREEDY;
	s->p += mode != RX_GREEDY;
	if (mode == RX_POSSESSIVE && kind != RX_SET)
		return refuse(s, end,
		              "a possessive group; a line is matched in linear time "
		              "without");
	if (*s->p == '*' || *s->p == '+' || *s->p == '?' ||
	    (*s->p == '{' && braces(s->p, &(uint32_t){0}, &(uint32_t){0}, &end)))
		return refuse(s, s->p, "a repeat of a repeat");
	int32_t repeat = add_node(s, RX_REPEAT, at);
	if (repeat < 0)
		return RX_NONE;
	rx_node *r = &s->t->nodes[repeat];
	r->child = node;
	r->min = min;
	r->max = max;
	r->mode = mode;
	return repeat;
}

static int32_t parse_sequence(parser *s)
{
	int32_t cat = add_node(s, RX_CAT, s->p), last = RX_NONE;
	while (cat >= 0 && *s->p && *s->p != '|' && *s->p != ')') {
		int32_t item = parse_repeated(s);
		if (item < 0)
			return RX_NONE;
		if (last < 0)
			s->t->nodes[cat].child = item;
		else
			s->t->nodes[last].next = item;
		last = item;
	}
	return cat;
}

static int32_t parse_alternatives(parser *s)
{
	const char *at = s->p;
	int32_t first = parse_sequence(s);
	if (first < 0 || *s->p != '|')
		return first;
	int32_t alt = add_node(s, RX_ALT, at), last = first;
	if (alt < 0)
		return RX_NONE;
	s->t->nodes[alt].child = first;
	while (*s->p == '|') {
		s->p++;
		int32_t next = parse_sequence(s);
		if (next < 0)
			return RX_NONE;
		s->t->nodes[last].next = next;
		last = next;
	}
	return alt;
}

int32_t rx_parse(rx_tree *t, const char *pattern)
{
	parser s = {.t = t, .p = pattern, .begin = pattern};
	int32_t root = parse_alternatives(&s);
	if (root >= 0 && *s.p)
		return refuse(&s, s.p, "a ) without its (");
	return root;
}
