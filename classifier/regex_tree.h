/* regex_tree.h - what regex_parse.c hands to regex_compile.c, and that to regex_match.c. */
#ifndef SW_REGEX_TREE_H
#define SW_REGEX_TREE_H

#include "regex.h"

#define RX_INF UINT32_MAX
#define RX_NONE (-1)
#define RX_SETS_MAX 4096
#define RX_NO_SET UINT16_MAX

typedef struct rx_set {
	uint32_t bits[8];
} rx_set;

static inline bool rx_in(const rx_set *s, unsigned char c)
{
	return s->bits[c >> 5] >> (c & 31) & 1;
}

typedef enum {
	RX_EMPTY,
	RX_SET, /* one byte out of sets[set] */
	RX_CAT,
	RX_ALT,
	RX_REPEAT,
	RX_GROUP, /* a named one that is extracted */
	RX_BOL,
	RX_EOL,
	RX_WORD,
	RX_NOT_WORD,
	RX_LOOK
} rx_kind;

typedef enum { RX_GREEDY, RX_LAZY, RX_POSSESSIVE } rx_mode;

typedef struct rx_node {
	rx_kind kind;
	rx_mode mode;
	bool negative, behind;
	uint16_t set;
	uint16_t group;
	uint32_t min, max;
	int32_t child, next; /* indexes of nodes */
	size_t source;       /* byte of the pattern at which it begins */
} rx_node;

typedef struct rx_tree {
	rx_node *nodes;
	int32_t n_nodes, cap_nodes;
	rx_set *sets;
	uint32_t n_sets, cap_sets;
	uint16_t of_byte[256]; /* the set of this byte alone and one more, 0: none yet */
	sw_regex_error error;
} rx_tree;

/* The root, or RX_NONE with tree->error set. rx_tree_free() in either case. */
int32_t rx_parse(rx_tree *tree, const char *pattern);
void rx_tree_free(rx_tree *tree);
/* Its only member, or -1. */
int rx_single(const rx_set *s);
int32_t rx_set_add(rx_tree *tree, const rx_set *s);

typedef enum {
	RX_OP_CHAR,   /* x: the byte */
	RX_OP_IN,     /* set */
	RX_OP_STRING, /* x: offset in text, y: length */
	RX_OP_RUN,    /* min..max bytes of set; x: index of its cache */
	RX_OP_SPLIT,  /* x, else y; set: how what is at x must begin */
	RX_OP_JUMP,   /* x */
	RX_OP_SAVE,   /* x: index of the span */
	RX_OP_BOL,
	RX_OP_EOL,
	RX_OP_WORD,
	RX_OP_NOT_WORD,
	RX_OP_LOOK,   /* the body follows; x: after it; min: bytes to step back */
	RX_OP_ACCEPT, /* of a look-around */
	RX_OP_MATCH
} rx_op;

typedef struct rx_insn {
	uint8_t op, mode;
	bool negative, behind;
	bool join; /* several ways lead here */
	uint16_t set;
	int32_t memo; /* column of the bytes at which it was tried, or RX_NONE */
	uint32_t x, y, min, max;
} rx_insn;

#define RX_NEEDLES 16

typedef struct rx_needle {
	uint32_t at, len; /* in text */
	uint32_t rare;    /* offset of its rarest byte, which is looked for */
} rx_needle;

struct sw_regex {
	rx_insn *code;
	uint32_t n_code, cap_code;
	rx_set *sets;
	char *text; /* of the strings */
	uint32_t n_text, cap_text;
	char *source;
	uint32_t n_memos, n_runs;
	unsigned flags;
	bool nullable;
	uint32_t min_length;
	/* how a match may begin at byte 0, and behind it, where no ^ holds */
	rx_set start, first;
	bool start_any, first_any;
	/* A string that every match holds, what stands before it, and how the pattern goes on. */
	bool has_anchor;
	rx_needle anchor;
	uint32_t anchor_next;                /* instruction after it */
	size_t anchor_source;                /* byte of the source from which on it is the same */
	uint64_t anchor_hash, anchor_hash_2; /* of the source from there on, in two ways */
	uint32_t head_min, head_max;
	rx_set head_last;
	bool head_any; /* head_last says nothing */
	/* Without an anchor: strings of which every match holds one. */
	rx_needle needles[RX_NEEDLES];
	uint32_t n_needles;
};

#endif
