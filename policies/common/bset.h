/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordered set of (size, addr) -> pointer, ascending by size, then by address:
 * the free set of every best-fit policy.
 *
 * A B+tree. Inner nodes hold sorted separators: separator i is not below any
 * key of child i and below every key of child i+1. Leaves hold up to 16 entries in
 * the order of their arrival, and that order in one word: nibble i of `order` is the place of
 * the i-th smallest entry, nibbles from `count` on name the unused places. So
 * an insert or erase moves no entries, and a search counts smaller keys over all
 * places (unused ones hold the largest key) and has no branch that depends on the data.
 * Leaves are linked in both directions and have the same depth; every node but
 * the root is at least a third full, or so.
 *
 * Nodes come from a pool that the set owns, or that several sets share. After
 * frag_bset_reserve(s, n) no insert fails while the set holds at most n
 * elements; policies reserve before they change anything.
 *
 * Ownership: the values are the caller's. A set with its own pool may be moved
 * in memory; a shared pool must stay where it is. Keys: size < UINT64_MAX.
 * Cost: O(log n) per change and search, O(1) for first, last, next, prev.
 */
#ifndef FRAG_COMMON_BSET_H
#define FRAG_COMMON_BSET_H

#include <frag/base.h>

#define FRAG_BSET_LEAF 16u /* entries of a leaf: as many as nibbles in a word */
#define FRAG_BSET_FAN 64u  /* children of an inner node */
/* below these: merge, or share evenly with a neighbour */
#define FRAG_BSET_LEAF_MIN 5u
#define FRAG_BSET_FAN_MIN 20u

struct frag_bset_key {
	uint64_t addr, size;
};

struct frag_bset_inner;

/* First words of leaf and inner node alike. */
struct frag_bset_node {
	struct frag_bset_inner *parent; /* NULL in the root */
	uint32_t count;			/* leaf: entries; inner: children */
};

struct frag_bset_leaf {
	struct frag_bset_node node;
	uint64_t order;
	struct frag_bset_leaf *prev, *next;
	uint64_t pad_[3]; /* arrays begin on a cache line */
	uint64_t size[FRAG_BSET_LEAF];
	uint64_t addr[FRAG_BSET_LEAF];
	void *value[FRAG_BSET_LEAF];
};

struct frag_bset_inner {
	struct frag_bset_node node;
	struct frag_bset_key sep[FRAG_BSET_FAN]; /* count - 1 in use */
	struct frag_bset_node *child[FRAG_BSET_FAN];
};

/* Nodes of one kind that are not in use: given back ones, then never used ones, which are
 * not touched until they are needed. */
struct frag_bset_spare {
	void *head; /* chain through the first word */
	char *fresh, *fresh_end;
};

struct frag_bset_nodes {
	struct frag_bset_spare leaves, inners;
	void *chunks;			   /* chain of all memory */
	size_t leaves_count, inners_count; /* owned, in use or spare */
	size_t sets_count;		   /* sets that draw from it */
	size_t limit;			   /* elements, over all sets, that the nodes suffice for */
};

struct frag_bset {
	size_t count;
	struct frag_bset_node *root; /* NULL until the first insert */
	struct frag_bset_leaf *first, *last;
	uint32_t height;	       /* inner levels above the leaves */
	bool shares;		       /* `nodes` is a pool of several sets */
	struct frag_bset_nodes *nodes; /* NULL: its own, until the first reservation */
};

/* Position of an element; leaf NULL = end. Valid until the next change of the set. */
struct frag_bset_pos {
	struct frag_bset_leaf *leaf;
	uint32_t i; /* rank in the leaf */
};

void frag_bset_init(struct frag_bset *s);
void frag_bset_release(struct frag_bset *s);
/*
 * Shared pool: the guarantee is for the sum of all elements of its sets.
 * pre of pool_release: all sets released. init_shared adds a set: reserve again
 * before inserting into it.
 */
void frag_bset_nodes_init(struct frag_bset_nodes *p);
void frag_bset_nodes_release(struct frag_bset_nodes *p);
int frag_bset_nodes_reserve(struct frag_bset_nodes *p, size_t n);
void frag_bset_init_shared(struct frag_bset *s, struct frag_bset_nodes *p);

/* 0 or FRAG_ENOMEM. Own pool only; for shared ones see frag_bset_nodes_reserve. */
int frag_bset_reserve_slow(struct frag_bset *s, size_t n);
static inline int frag_bset_reserve(struct frag_bset *s, size_t n)
{
	return FRAG_LIKELY(s->nodes && n <= s->nodes->limit) ? 0 : frag_bset_reserve_slow(s, n);
}

/* pre: reserved, key absent. */
void frag_bset_insert(struct frag_bset *s, uint64_t size, uint64_t addr, void *value);
/* false: there is no such key. */
bool frag_bset_erase(struct frag_bset *s, uint64_t size, uint64_t addr);
/* pre: pos is an element. */
void frag_bset_erase_at(struct frag_bset *s, struct frag_bset_pos pos);
/* Takes every element out; the reservation stays. */
void frag_bset_clear(struct frag_bset *s);
/* For tests and `check` of policies: NULL, or what is broken. O(n). */
const char *frag_bset_broken(const struct frag_bset *s);

static inline size_t frag_bset_count(const struct frag_bset *s)
{
	return s->count;
}

/* 1 if (s, a) < (size, addr). With a constant address of 0 one comparison is left. */
static inline unsigned frag_bset_less_(uint64_t s, uint64_t a, uint64_t size, uint64_t addr)
{
	if (__builtin_constant_p(addr) && addr == 0)
		return s < size;
	return ((unsigned __int128)s << 64 | a) < ((unsigned __int128)size << 64 | addr);
}

/* Keeps the compiler from making one long chain of several short sums. */
#define FRAG_BSET_APART_(x) __asm__("" : "+r"(x))

/* Which child: the separators below (size, addr), counted by eighths, then in one eighth. */
static inline uint32_t frag_bset_child_of_(const struct frag_bset_inner *n, uint64_t size,
					   uint64_t addr)
{
	const struct frag_bset_key *k = n->sep;
	uint32_t a, b, c;

#define FRAG_BSET_LESS_(i) frag_bset_less_(k[i].size, k[i].addr, size, addr)
	a = FRAG_BSET_LESS_(7) + FRAG_BSET_LESS_(15) + FRAG_BSET_LESS_(23) + FRAG_BSET_LESS_(31);
	FRAG_BSET_APART_(a);
	b = FRAG_BSET_LESS_(39) + FRAG_BSET_LESS_(47) + FRAG_BSET_LESS_(55);
	a = 8 * (a + b);
	k += a;
	/* separate sums, because the latency of the additions is the cost */
	FRAG_BSET_APART_(a);
	c = FRAG_BSET_LESS_(0) + FRAG_BSET_LESS_(1) + FRAG_BSET_LESS_(2) + FRAG_BSET_LESS_(3);
	FRAG_BSET_APART_(c);
	b = FRAG_BSET_LESS_(4) + FRAG_BSET_LESS_(5) + FRAG_BSET_LESS_(6) + FRAG_BSET_LESS_(7);
	FRAG_BSET_APART_(b);
#undef FRAG_BSET_LESS_
	return a + (b + c);
}

/* Rank of the key in its leaf: how many are below it. */
static inline uint32_t frag_bset_rank_of_(const struct frag_bset_leaf *n, uint64_t size,
					  uint64_t addr)
{
	uint32_t a, b, c, d;

#define FRAG_BSET_LESS_(i) frag_bset_less_(n->size[i], n->addr[i], size, addr)
	a = FRAG_BSET_LESS_(0) + FRAG_BSET_LESS_(1) + FRAG_BSET_LESS_(2) + FRAG_BSET_LESS_(3);
	FRAG_BSET_APART_(a);
	b = FRAG_BSET_LESS_(4) + FRAG_BSET_LESS_(5) + FRAG_BSET_LESS_(6) + FRAG_BSET_LESS_(7);
	FRAG_BSET_APART_(b);
	c = FRAG_BSET_LESS_(8) + FRAG_BSET_LESS_(9) + FRAG_BSET_LESS_(10) + FRAG_BSET_LESS_(11);
	FRAG_BSET_APART_(c);
	d = FRAG_BSET_LESS_(12) + FRAG_BSET_LESS_(13) + FRAG_BSET_LESS_(14) + FRAG_BSET_LESS_(15);
	FRAG_BSET_APART_(d);
#undef FRAG_BSET_LESS_
	return (a + b) + (c + d);
}

/* Place of the entry of rank i. */
static inline uint32_t frag_bset_place_(const struct frag_bset_leaf *n, uint32_t i)
{
	return n->order >> 4 * i & 15;
}

/* The leaf a key belongs to. pre: the set has a root. */
static inline struct frag_bset_leaf *frag_bset_leaf_of_(const struct frag_bset *s, uint64_t size,
							uint64_t addr)
{
	struct frag_bset_node *n = s->root;
	uint32_t h;

	for (h = s->height; h; h--) {
		struct frag_bset_inner *in = (struct frag_bset_inner *)n;

		n = in->child[frag_bset_child_of_(in, size, addr)];
	}
	return (struct frag_bset_leaf *)n;
}

/* First element that is not below (size, addr). */
static inline struct frag_bset_pos frag_bset_lower(const struct frag_bset *s, uint64_t size,
						   uint64_t addr)
{
	struct frag_bset_pos p = { NULL, 0 };

	if (!s->count)
		return p;
	p.leaf = frag_bset_leaf_of_(s, size, addr);
	p.i = frag_bset_rank_of_(p.leaf, size, addr);
	if (FRAG_UNLIKELY(p.i == p.leaf->node.count))
		p = (struct frag_bset_pos){ p.leaf->next, 0 };
	return p;
}

static inline struct frag_bset_pos frag_bset_first(const struct frag_bset *s)
{
	return (struct frag_bset_pos){ s->count ? s->first : NULL, 0 };
}

static inline struct frag_bset_pos frag_bset_last(const struct frag_bset *s)
{
	if (!s->count)
		return (struct frag_bset_pos){ NULL, 0 };
	return (struct frag_bset_pos){ s->last, s->last->node.count - 1 };
}

/* pre: pos is an element. */
static inline struct frag_bset_pos frag_bset_next(struct frag_bset_pos pos)
{
	if (++pos.i == pos.leaf->node.count)
		pos = (struct frag_bset_pos){ pos.leaf->next, 0 };
	return pos;
}

static inline struct frag_bset_pos frag_bset_prev(struct frag_bset_pos pos)
{
	if (pos.i)
		return (struct frag_bset_pos){ pos.leaf, pos.i - 1 };
	if (!pos.leaf->prev)
		return (struct frag_bset_pos){ NULL, 0 };
	return (struct frag_bset_pos){ pos.leaf->prev, pos.leaf->prev->node.count - 1 };
}

static inline void *frag_bset_value(struct frag_bset_pos pos)
{
	return pos.leaf->value[frag_bset_place_(pos.leaf, pos.i)];
}

static inline uint64_t frag_bset_size(struct frag_bset_pos pos)
{
	return pos.leaf->size[frag_bset_place_(pos.leaf, pos.i)];
}

static inline uint64_t frag_bset_addr(struct frag_bset_pos pos)
{
	return pos.leaf->addr[frag_bset_place_(pos.leaf, pos.i)];
}

/* The greatest size; 0 where the set is empty. */
static inline uint64_t frag_bset_largest(const struct frag_bset *s)
{
	struct frag_bset_pos last = frag_bset_last(s);

	return last.leaf ? frag_bset_size(last) : 0;
}

/* For checks: is `value` in the set, under just this key? */
static inline bool frag_bset_has(const struct frag_bset *s, uint64_t size, uint64_t addr,
				 const void *value)
{
	struct frag_bset_pos at = frag_bset_lower(s, size, addr);

	return at.leaf && frag_bset_value(at) == value && frag_bset_size(at) == size &&
	       frag_bset_addr(at) == addr;
}

/* Room for `n` elements in all sets that share the nodes. 0 or FRAG_ENOMEM. */
static inline int frag_bset_nodes_room(struct frag_bset_nodes *nodes, size_t n)
{
	return FRAG_LIKELY(nodes->limit >= n) ? 0 : frag_bset_nodes_reserve(nodes, n);
}

/* Sets by stream that share the nodes: the array now has one for `stream`. 0 or FRAG_ENOMEM. */
int frag_bset_by_stream(struct frag_bset **sets, uint32_t *count, uint32_t stream,
			struct frag_bset_nodes *nodes);

#endif
