/* From the tree to instructions, and what is known of every match beforehand. */
#include "regex_tree.h"

#include <stdlib.h>
#include <string.h>

#define CODE_MAX 20000
#define ANCHOR_MIN 4
#define NEEDLE_MIN 3
#define LOOK_MAX 1000 /* instructions of a look-around, which recurses */

typedef struct compiler {
	sw_regex *re;
	rx_tree *t;
	sw_regex_error error;
	bool failed;
	bool in_look;
} compiler;

static void refuse(compiler *c, int32_t node, const char *why)
{
	if (!c->failed)
		c->error = (sw_regex_error){c->t->nodes[node].source, why};
	c->failed = true;
}

/* ---- what a part of the tree can be ---- */

static uint32_t add_lengths(uint32_t a, uint32_t b)
{
	return a == RX_INF || b == RX_INF || a + (uint64_t)b >= RX_INF ? RX_INF : a + b;
}

static uint32_t times(uint32_t a, uint32_t n)
{
	if (a == 0 || n == 0)
		return 0;
	return a == RX_INF || n == RX_INF || (uint64_t)a * n >= RX_INF ? RX_INF : a * n;
}

static void lengths(const rx_tree *t, int32_t i, uint32_t *min, uint32_t *max)
{
	const rx_node *n = &t->nodes[i];
	uint32_t a, b;
	*min = *max = n->kind == RX_SET;
	if (n->kind == RX_REPEAT || n->kind == RX_GROUP) {
		lengths(t, n->child, min, max);
		if (n->kind == RX_REPEAT) {
			*min = times(*min, n->min);
			*max = times(*max, n->max);
		}
	} else if (n->kind == RX_CAT) {
		for (int32_t k = n->child; k >= 0; k = t->nodes[k].next) {
			lengths(t, k, &a, &b);
			*min = add_lengths(*min, a);
			*max = add_lengths(*max, b);
		}
	} else if (n->kind == RX_ALT) {
		*min = RX_INF;
		for (int32_t k = n->child; k >= 0; k = t->nodes[k].next) {
			lengths(t, k, &a, &b);
			*min = a < *min ? a : *min;
			*max = b > *max ? b : *max;
		}
	}
}

static void join_sets(rx_set *a, const rx_set *b)
{
	for (int i = 0; i < 8; i++)
		a->bits[i] |= b->bits[i];
}

/*
 * Adds the bytes that a match of the part can begin (or end) with to *set; true where it
 * can match without a byte, so that what follows counts too. Behind byte 0 no ^ matches.
 */
static bool edge(const rx_tree *t, int32_t i, bool last, bool no_bol, rx_set *set)
{
	const rx_node *n = &t->nodes[i];
	int32_t kids[2] = {RX_NONE, RX_NONE};
	bool empty = false;
	switch (n->kind) {
	case RX_SET:
		join_sets(set, &t->sets[n->set]);
		return false;
	case RX_BOL:
		return !no_bol;
	case RX_GROUP:
		return edge(t, n->child, last, no_bol, set);
	case RX_REPEAT:
		return n->max == 0 || edge(t, n->child, last, no_bol, set) || n->min == 0;
	case RX_ALT:
		for (int32_t k = n->child; k >= 0; k = t->nodes[k].next)
			empty |= edge(t, k, last, no_bol, set);
		return empty;
	case RX_CAT:
		if (!last) {
			for (int32_t k = n->child; k >= 0; k = t->nodes[k].next)
				if (!edge(t, k, last, no_bol, set))
					return false;
			return true;
		}
		/* From the end: the last part that takes a byte, and the empty ones after. */
		for (;;) {
			kids[0] = RX_NONE;
			for (int32_t k = n->child; k != kids[1]; k = t->nodes[k].next)
				kids[0] = k;
			if (kids[0] < 0)
				return true;
			if (!edge(t, kids[0], last, no_bol, set))
				return false;
			kids[1] = kids[0];
		}
	default:
		return true;
	}
}

static uint16_t first_set(compiler *c, int32_t i)
{
	rx_set s = {{0}};
	if (edge(c->t, i, false, false, &s))
		return RX_NO_SET;
	int32_t id = rx_set_add(c->t, &s);
	return id < 0 ? RX_NO_SET : (uint16_t)id;
}

/* ---- instructions ---- */

static uint32_t emit(compiler *c, rx_op op, int32_t node)
{
	sw_regex *re = c->re;
	if (re->n_code == CODE_MAX)
		refuse(c, node, "the pattern is too large");
	if (!c->failed && re->n_code == re->cap_code) {
		uint32_t cap = re->cap_code ? re->cap_code * 2 : 32;
		rx_insn *p = realloc(re->code, cap * sizeof(*p));
		if (p) {
			re->code = p;
			re->cap_code = cap;
		}
		c->failed |= !p;
	}
	if (c->failed)
		return 0;
	re->code[re->n_code] = (rx_insn){.op = (uint8_t)op, .set = RX_NO_SET, .memo = RX_NONE};
	return re->n_code++;
}

static void emit_tree(compiler *c, int32_t i);

/* The next instruction can be reached in several ways. */
static void join_here(compiler *c)
{
	uint32_t at = c->re->n_code;
	(void)emit(c, RX_OP_JUMP, 0);
	if (c->failed)
		return;
	c->re->code[at].x = at + 1;
	c->re->code[at].join = true;
}

static void emit_set(compiler *c, int32_t i)
{
	int one = rx_single(&c->t->sets[c->t->nodes[i].set]);
	uint32_t at = emit(c, one >= 0 ? RX_OP_CHAR : RX_OP_IN, i);
	if (c->failed)
		return;
	c->re->code[at].x = (uint32_t)one;
	c->re->code[at].set = c->t->nodes[i].set;
}

static void emit_run(compiler *c, int32_t i)
{
	const rx_node *n = &c->t->nodes[i];
	uint32_t at = emit(c, RX_OP_RUN, i);
	if (c->failed)
		return;
	rx_insn *in = &c->re->code[at];
	in->set = c->t->nodes[n->child].set;
	in->min = n->min;
	in->max = n->max;
	in->mode = (uint8_t)n->mode;
	in->x = c->re->n_runs++;
	if (n->min != n->max && n->mode != RX_POSSESSIVE)
		join_here(c);
}

/* Split to what comes next, else to a place that is filled in later. */
static uint32_t emit_split(compiler *c, int32_t node, int32_t inner, bool lazy)
{
	uint32_t at = emit(c, RX_OP_SPLIT, node);
	if (c->failed)
		return 0;
	c->re->code[at].mode = lazy;
	c->re->code[at].x = at + 1;
	uint16_t set = first_set(c, inner);
	c->re->code[at].set = set;
	return at;
}

static void emit_repeat(compiler *c, int32_t i)
{
	rx_node n = c->t->nodes[i];
	if (c->t->nodes[n.child].kind == RX_SET) {
		emit_run(c, i);
		return;
	}
	uint32_t min, max, first = RX_INF;
	lengths(c->t, n.child, &min, &max);
	for (uint32_t k = 0; k < n.min && !c->failed; k++)
		emit_tree(c, n.child);
	if (n.max == RX_INF) {
		if (min == 0)
			refuse(c, i, "a group that can match nothing, repeated without end");
		if (c->in_look)
			refuse(c, i, "a group repeated without end inside a look-around");
		join_here(c);
		uint32_t split = emit_split(c, i, n.child, n.mode == RX_LAZY);
		emit_tree(c, n.child);
		uint32_t jump = emit(c, RX_OP_JUMP, i);
		if (c->failed)
			return;
		c->re->code[jump].x = split - 1;
		c->re->code[split].y = c->re->n_code;
		join_here(c);
		return;
	}
	/* Chained through y until the end is known. */
	for (uint32_t k = n.min; k < n.max && !c->failed; k++) {
		uint32_t split = emit_split(c, i, n.child, n.mode == RX_LAZY);
		if (c->failed)
			return;
		c->re->code[split].y = first;
		first = split;
		emit_tree(c, n.child);
	}
	while (!c->failed && first != RX_INF) {
		uint32_t before = c->re->code[first].y;
		c->re->code[first].y = c->re->n_code;
		first = before;
	}
	if (n.max > n.min)
		join_here(c);
}

static void emit_alternatives(compiler *c, int32_t i)
{
	uint32_t jumps = RX_INF;
	for (int32_t k = c->t->nodes[i].child; k >= 0 && !c->failed; k = c->t->nodes[k].next) {
		bool more = c->t->nodes[k].next >= 0;
		uint32_t split = more ? emit_split(c, k, k, false) : 0;
		emit_tree(c, k);
		if (!more || c->failed)
			break;
		uint32_t jump = emit(c, RX_OP_JUMP, k);
		if (c->failed)
			break;
		c->re->code[jump].x = jumps;
		jumps = jump;
		c->re->code[split].y = c->re->n_code;
	}
	while (!c->failed && jumps != RX_INF) {
		uint32_t before = c->re->code[jumps].x;
		c->re->code[jumps].x = c->re->n_code;
		jumps = before;
	}
	join_here(c);
}

static void emit_look(compiler *c, int32_t i)
{
	rx_node n = c->t->nodes[i];
	uint32_t min, max, at = emit(c, RX_OP_LOOK, i);
	bool outer = c->in_look;
	lengths(c->t, n.child, &min, &max);
	if (n.behind && min != max)
		refuse(c, i, "a look-behind of several lengths");
	c->in_look = true;
	emit_tree(c, n.child);
	c->in_look = outer;
	(void)emit(c, RX_OP_ACCEPT, i);
	if (!c->failed && c->re->n_code - at > LOOK_MAX)
		refuse(c, i, "the look-around is too large");
	if (c->failed)
		return;
	rx_insn *in = &c->re->code[at];
	in->negative = n.negative;
	in->behind = n.behind;
	in->min = n.behind ? min : 0;
	in->x = c->re->n_code;
}

static int byte_of(const rx_tree *t, int32_t i)
{
	return i >= 0 && t->nodes[i].kind == RX_SET ? rx_single(&t->sets[t->nodes[i].set]) : -1;
}

static bool room_for_text(compiler *c, uint32_t n)
{
	sw_regex *re = c->re;
	if (!c->failed && re->n_text + n > re->cap_text) {
		uint32_t cap = re->cap_text * 2 + n + 64;
		char *p = realloc(re->text, cap);
		if (p) {
			re->text = p;
			re->cap_text = cap;
		}
		c->failed |= !p;
	}
	return !c->failed;
}

/* A string from here on, as long as it goes: the number of nodes it takes. */
static uint32_t emit_string(compiler *c, int32_t i)
{
	sw_regex *re = c->re;
	uint32_t n = 0;
	for (int32_t k = i; byte_of(c->t, k) >= 0; k = c->t->nodes[k].next)
		n++;
	if (n < 2)
		return 0;
	uint32_t at = emit(c, RX_OP_STRING, i);
	if (!room_for_text(c, n))
		return n;
	re->code[at].x = re->n_text;
	re->code[at].y = n;
	re->code[at].min = (uint32_t)i; /* for find_anchor() */
	for (uint32_t k = 0; k < n; k++, i = c->t->nodes[i].next)
		re->text[re->n_text++] = (char)byte_of(c->t, i);
	return n;
}

static void emit_sequence(compiler *c, int32_t i)
{
	for (int32_t k = c->t->nodes[i].child; k >= 0 && !c->failed;) {
		uint32_t taken = emit_string(c, k);
		if (!taken) {
			emit_tree(c, k);
			taken = 1;
		}
		while (taken--)
			k = c->t->nodes[k].next;
	}
}

static void emit_group(compiler *c, int32_t i)
{
	uint32_t group = c->t->nodes[i].group, at = emit(c, RX_OP_SAVE, i);
	if (!c->failed)
		c->re->code[at].x = 2 * group;
	emit_tree(c, c->t->nodes[i].child);
	at = emit(c, RX_OP_SAVE, i);
	if (!c->failed)
		c->re->code[at].x = 2 * group + 1;
}

static void emit_tree(compiler *c, int32_t i)
{
	if (c->failed)
		return;
	switch (c->t->nodes[i].kind) {
	case RX_EMPTY:
		break;
	case RX_SET:
		emit_set(c, i);
		break;
	case RX_CAT:
		emit_sequence(c, i);
		break;
	case RX_ALT:
		emit_alternatives(c, i);
		break;
	case RX_REPEAT:
		emit_repeat(c, i);
		break;
	case RX_GROUP:
		emit_group(c, i);
		break;
	case RX_BOL:
		(void)emit(c, RX_OP_BOL, i);
		break;
	case RX_EOL:
		(void)emit(c, RX_OP_EOL, i);
		break;
	case RX_WORD:
		(void)emit(c, RX_OP_WORD, i);
		break;
	case RX_NOT_WORD:
		(void)emit(c, RX_OP_NOT_WORD, i);
		break;
	case RX_LOOK:
		emit_look(c, i);
		break;
	}
}

/* ---- the anchor ---- */

typedef struct anchor_search {
	const rx_tree *t;
	/* before the place reached */
	uint32_t min, max;
	rx_set last;
	bool any_last;
	/* the best so far */
	int32_t node;
	uint32_t len;
	sw_regex *re;
} anchor_search;

/* Walks what every match goes through, in order. */
static void search_anchor(anchor_search *s, int32_t i)
{
	const rx_tree *t = s->t;
	if (t->nodes[i].kind == RX_GROUP) {
		search_anchor(s, t->nodes[i].child);
		return;
	}
	if (t->nodes[i].kind == RX_CAT) {
		for (int32_t k = t->nodes[i].child, in_string = 0; k >= 0; k = t->nodes[k].next) {
			uint32_t n = 0;
			for (int32_t m = k; !in_string && byte_of(t, m) >= 0; m = t->nodes[m].next)
				n++;
			if (n >= ANCHOR_MIN && n > s->len) {
				s->node = k;
				s->len = n;
				s->re->head_min = s->min;
				s->re->head_max = s->max;
				s->re->head_last = s->last;
				s->re->head_any = s->any_last;
			}
			in_string = byte_of(t, k) >= 0;
			search_anchor(s, k);
		}
		return;
	}
	uint32_t min, max;
	lengths(t, i, &min, &max);
	s->min = add_lengths(s->min, min);
	s->max = add_lengths(s->max, max);
	rx_set last = {{0}};
	if (!edge(t, i, true, false, &last)) {
		s->last = last;
		s->any_last = false;
	} else if (max) {
		join_sets(&s->last, &last);
	}
}

static uint64_t hash_text(const char *z, uint64_t factor)
{
	uint64_t h = 14695981039346656037u;
	for (; *z; z++)
		h = (h ^ (unsigned char)*z) * factor;
	return h;
}

/* Letters by how common they are in logs; what is not among them is rarer. */
static uint32_t rarest_byte(const char *p, uint32_t n)
{
	static const char common[] = " etaoinsrlcdupmhgf/.b:wvyk-x";
	uint32_t best = 0;
	size_t best_rank = 0;
	for (uint32_t i = 0; i < n; i++) {
		const char *k = p[i] ? strchr(common, p[i]) : NULL;
		size_t rank = k ? (size_t)(k - common) : sizeof(common);
		if (rank > best_rank) {
			best = i;
			best_rank = rank;
		}
	}
	return best;
}

static void find_anchor(compiler *c, int32_t root)
{
	sw_regex *re = c->re;
	anchor_search s = {.t = c->t, .node = RX_NONE, .any_last = true, .re = re};
	search_anchor(&s, root);
	if (s.node < 0)
		return;
	/* Strings stand in the text in the order of the tree: find this one's instruction. */
	for (uint32_t i = 0; i < re->n_code; i++) {
		const rx_insn *in = &re->code[i];
		if (in->op != RX_OP_STRING || in->min != (uint32_t)s.node)
			continue;
		re->has_anchor = true;
		re->anchor = (rx_needle){in->x, in->y, rarest_byte(re->text + in->x, in->y)};
		re->anchor_next = i + 1;
		re->anchor_source = c->t->nodes[s.node].source;
		const char *rest = re->source + re->anchor_source;
		re->anchor_hash = hash_text(rest, 1099511628211u) ^ re->flags;
		re->anchor_hash_2 = hash_text(rest, 6364136223846793005u);
		return;
	}
}

/* ---- needles ---- */

typedef struct choice {
	uint32_t n, shortest; /* n 0: nothing is known */
	struct {
		int32_t node;
		uint32_t len;
	} s[RX_NEEDLES];
} choice;

/* Strings of which every match of the part holds one: the longest there are. */
static choice required(const rx_tree *t, int32_t i)
{
	const rx_node *n = &t->nodes[i];
	choice best = {0};
	if (n->kind == RX_GROUP || (n->kind == RX_REPEAT && n->min))
		return required(t, n->child);
	if (n->kind == RX_SET && byte_of(t, i) >= 0)
		return (choice){1, 1, {{i, 1}}};
	for (int32_t k = n->child; n->kind == RX_ALT && k >= 0; k = t->nodes[k].next) {
		choice c = required(t, k);
		if (!c.n || best.n + c.n > RX_NEEDLES)
			return (choice){0};
		memcpy(best.s + best.n, c.s, c.n * sizeof(c.s[0]));
		best.shortest = best.n && best.shortest < c.shortest ? best.shortest : c.shortest;
		best.n += c.n;
	}
	for (int32_t k = n->child; n->kind == RX_CAT && k >= 0;) {
		uint32_t bytes = 0;
		int32_t from = k;
		for (; byte_of(t, k) >= 0; k = t->nodes[k].next)
			bytes++;
		choice c = bytes ? (choice){1, bytes, {{from, bytes}}} : required(t, k);
		if (c.n && c.shortest > best.shortest)
			best = c;
		if (!bytes)
			k = t->nodes[k].next;
	}
	return best;
}

static void find_needles(compiler *c, int32_t root)
{
	sw_regex *re = c->re;
	if (re->has_anchor)
		return;
	choice found = required(c->t, root);
	if (found.shortest < NEEDLE_MIN)
		return;
	for (uint32_t i = 0; i < found.n && room_for_text(c, found.s[i].len); i++) {
		rx_needle *needle = &re->needles[re->n_needles++];
		int32_t node = found.s[i].node;
		*needle = (rx_needle){re->n_text, found.s[i].len, 0};
		for (uint32_t k = 0; k < needle->len; k++, node = c->t->nodes[node].next)
			re->text[re->n_text++] = (char)byte_of(c->t, node);
		needle->rare = rarest_byte(re->text + needle->at, needle->len);
	}
}

static void number_memos(sw_regex *re)
{
	for (uint32_t i = 0; i < re->n_code; i++) {
		if (!re->code[i].join)
			continue;
		re->code[i].memo = (int32_t)re->n_memos;
		re->n_memos += 2; /* failed; in look-arounds: succeeded */
	}
}

sw_regex *sw_regex_new(const char *pattern, unsigned flags, sw_regex_error *err)
{
	rx_tree t = {0};
	sw_regex_error none;
	sw_regex *re = calloc(1, sizeof(*re));
	compiler c = {.re = re, .t = &t};
	err = err ? err : &none;
	*err = (sw_regex_error){0};
	if (!re || !(re->source = strdup(pattern))) {
		sw_regex_free(re);
		return NULL;
	}
	re->flags = flags;
	int32_t root = rx_parse(&t, pattern);
	if (root >= 0) {
		uint32_t max;
		emit_tree(&c, root);
		(void)emit(&c, RX_OP_MATCH, root);
		lengths(&t, root, &re->min_length, &max);
		re->nullable = re->min_length == 0;
		re->start_any = edge(&t, root, false, false, &re->start);
		re->first_any = edge(&t, root, false, true, &re->first);
		if (!c.failed)
			find_anchor(&c, root);
		if (!c.failed)
			find_needles(&c, root);
		number_memos(re);
		re->sets = t.sets;
		t.sets = NULL;
	}
	*err = root < 0 ? t.error : c.error;
	rx_tree_free(&t);
	if (root < 0 || c.failed) {
		sw_regex_free(re);
		return NULL;
	}
	return re;
}

void sw_regex_free(sw_regex *re)
{
	if (!re)
		return;
	free(re->code);
	free(re->sets);
	free(re->text);
	free(re->source);
	free(re);
}

bool sw_regex_matches_empty(const sw_regex *re)
{
	return re->nullable;
}

size_t sw_regex_size(const sw_regex *re)
{
	return re->n_code;
}
