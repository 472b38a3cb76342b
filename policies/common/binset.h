/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordered set of blocks by (size, rank) for the hottest paths: the nodes are
 * part of the blocks, and sizes are sorted into bins, so that a change or a search
 * is a few instructions where bset.h walks a tree.
 *
 * Bins are log-linear: 512 B steps up to 16 KiB, then 16 steps per power of two. A
 * bitmap of two levels finds the next bin in use. A bin is a list in order; one in which an
 * insert or a search has taken more than FRAG_BINSET_LIST steps is kept in a tree (bset.h)
 * until it is empty, so nothing is worse than O(log n), amortised.
 *
 * Ownership: nodes are the caller's and must not change key while they are in the set, other than
 * by frag_binset_rekey. The trees of many sets share their nodes: inserts cannot fail while those
 * were reserved (frag_bset_nodes_reserve) for as many as are in all the sets.
 */
#ifndef FRAG_COMMON_BINSET_H
#define FRAG_COMMON_BINSET_H

#include "bset.h"

#define FRAG_BINSET_LIST 32u /* steps in a list before it becomes a tree */
#define FRAG_BINSET_FINE 4u  /* log2 of the steps per power of two */
/* sizes below 2^64 are below 2^55 in units of 512 B; whole words of the bitmap */
#define FRAG_BINSET_BINS ((((56u - FRAG_BINSET_FINE) << FRAG_BINSET_FINE) + 63u) / 64u * 64u)
#define FRAG_BINSET_WORDS (FRAG_BINSET_BINS / 64u)

struct frag_bin_node {
	/* order among equal sizes, unique there: the address, or what the owner likes */
	uint64_t rank;
	uint64_t size;
	struct frag_bin_node *bin_prev, *bin_next; /* inside a list bin */
	/* written by the set: the bin, and the lowest bit of the size that tells bins apart */
	uint16_t bin;
	uint8_t bin_bit;
	/* never looked at: room that would be padding, for small fields of the owner */
	uint8_t owner[5];
};

struct frag_binset {
	struct frag_bin_node **heads; /* by bin; of a tree: FRAG_BINSET_TREE */
	uint64_t words_used;	      /* bit per word of used[] */
	uint64_t used[FRAG_BINSET_WORDS];
	struct frag_bset tree;
	size_t count;
};

/* In place of a list: the bin is in the tree. */
#define FRAG_BINSET_TREE ((struct frag_bin_node *)(uintptr_t)1)

/* slim: without bins, and so without a table of 7 KB: one tree. For sets of which there are very
 * many. 0 or FRAG_ENOMEM. */
int frag_binset_init(struct frag_binset *s, struct frag_slab *nodes, bool slim);
void frag_binset_release(struct frag_binset *s);

/* The slow halves, for bins that are trees. */
void frag_binset_insert_tree(struct frag_binset *s, struct frag_bin_node *n);
void frag_binset_erase_tree(struct frag_binset *s, struct frag_bin_node *n);
/* Makes a tree of a bin that is still a list. What the set holds and answers is as before. */
void frag_binset_crowd(struct frag_binset *s, unsigned bin);
/* In one bin; crowds it. */
struct frag_bin_node *frag_binset_lower_tree(struct frag_binset *s, unsigned bin, uint64_t size);

struct frag_bin_node *frag_binset_first(const struct frag_binset *s);
struct frag_bin_node *frag_binset_last(const struct frag_binset *s);
struct frag_bin_node *frag_binset_next(const struct frag_binset *s, const struct frag_bin_node *n);
struct frag_bin_node *frag_binset_prev(const struct frag_binset *s, const struct frag_bin_node *n);

/* Power of two of the steps of its bin, in units of 512 B: 0 up to 16 KiB. */
static inline unsigned frag_binset_step(uint64_t size)
{
	return frag_log2(size >> 9 | 1u << FRAG_BINSET_FINE) - FRAG_BINSET_FINE;
}

static inline unsigned frag_binset_bin(uint64_t size)
{
	unsigned step = frag_binset_step(size);

	return (step << FRAG_BINSET_FINE) + (unsigned)(size >> 9 >> step);
}

/* First bin in use from `bin` on, FRAG_BINSET_BINS if there is none. */
static inline unsigned frag_binset_used_from(const struct frag_binset *s, unsigned bin)
{
	unsigned w = bin / 64;
	uint64_t bits;

	if (FRAG_UNLIKELY(bin >= FRAG_BINSET_BINS))
		return FRAG_BINSET_BINS;
	bits = s->used[w] >> (bin % 64) << (bin % 64);
	if (!bits) {
		uint64_t words = w == 63 ? 0 : s->words_used >> (w + 1) << (w + 1);

		if (!words)
			return FRAG_BINSET_BINS;
		w = (unsigned)__builtin_ctzll(words);
		bits = s->used[w];
	}
	return w * 64 + (unsigned)__builtin_ctzll(bits);
}

static inline void frag_binset_mark(struct frag_binset *s, unsigned bin)
{
	s->used[bin / 64] |= 1ull << (bin % 64);
	s->words_used |= 1ull << (bin / 64);
}

static inline void frag_binset_unmark(struct frag_binset *s, unsigned bin)
{
	s->used[bin / 64] &= ~(1ull << (bin % 64));
	if (!s->used[bin / 64])
		s->words_used &= ~(1ull << (bin / 64));
}

static inline bool frag_bin_before(const struct frag_bin_node *a, const struct frag_bin_node *b)
{
	return a->size < b->size || (a->size == b->size && a->rank < b->rank);
}

/* Into a list, in order: how many nodes it walked past. */
static inline unsigned frag_bin_link(struct frag_bin_node **head, struct frag_bin_node *n)
{
	struct frag_bin_node *prev = NULL, *at = *head;
	unsigned steps = 0;

	while (at && frag_bin_before(at, n)) {
		prev = at;
		at = at->bin_next;
		steps++;
	}
	n->bin_prev = prev;
	n->bin_next = at;
	if (at)
		at->bin_prev = n;
	if (prev)
		prev->bin_next = n;
	else
		*head = n;
	return steps;
}

/* Out of a list. true: that is empty now. */
static inline bool frag_bin_unlink(struct frag_bin_node **head, struct frag_bin_node *n)
{
	if (n->bin_next)
		n->bin_next->bin_prev = n->bin_prev;
	if (n->bin_prev) {
		n->bin_prev->bin_next = n->bin_next;
		return false;
	}
	*head = n->bin_next;
	return !n->bin_next;
}

/* pre: reserved, not in the set. */
static inline void frag_binset_insert(struct frag_binset *s, struct frag_bin_node *n)
{
	unsigned step = frag_binset_step(n->size);
	unsigned bin = (step << FRAG_BINSET_FINE) + (unsigned)(n->size >> 9 >> step);
	struct frag_bin_node **head = &s->heads[bin];

	n->bin = (uint16_t)bin;
	n->bin_bit = (uint8_t)(step + 9);
	s->count++;
	if (!*head)
		frag_binset_mark(s, bin);
	if (FRAG_UNLIKELY(*head == FRAG_BINSET_TREE)) {
		frag_binset_insert_tree(s, n);
		return;
	}
	if (FRAG_UNLIKELY(frag_bin_link(head, n) > FRAG_BINSET_LIST))
		frag_binset_crowd(s, bin);
}

/* pre: in the set. */
static inline void frag_binset_erase(struct frag_binset *s, struct frag_bin_node *n)
{
	struct frag_bin_node **head = &s->heads[n->bin];

	s->count--;
	if (FRAG_UNLIKELY(*head == FRAG_BINSET_TREE)) {
		frag_binset_erase_tree(s, n);
		return;
	}
	if (frag_bin_unlink(head, n))
		frag_binset_unmark(s, n->bin);
}

/* Gives a node of the set another key: where its place in the list stays, nothing moves. */
static inline void frag_binset_rekey(struct frag_binset *s, struct frag_bin_node *n, uint64_t rank,
				     uint64_t size)
{
	struct frag_bin_node key = { .rank = rank, .size = size };

	if (!((n->size ^ size) >> n->bin_bit) && s->heads[n->bin] != FRAG_BINSET_TREE &&
	    (!n->bin_prev || frag_bin_before(n->bin_prev, &key)) &&
	    (!n->bin_next || frag_bin_before(&key, n->bin_next))) {
		n->rank = rank;
		n->size = size;
		return;
	}
	frag_binset_erase(s, n);
	n->rank = rank;
	n->size = size;
	frag_binset_insert(s, n);
}

/* First node that is not smaller than `size`, NULL if there is none. */
static inline struct frag_bin_node *frag_binset_lower(const struct frag_binset *s, uint64_t size)
{
	unsigned bin = frag_binset_bin(size), steps = 0;
	struct frag_bin_node *n;

	if (FRAG_UNLIKELY(!s->count))
		return NULL;
	for (n = s->heads[bin]; n; n = n->bin_next) {
		if (FRAG_UNLIKELY(n == FRAG_BINSET_TREE || ++steps > FRAG_BINSET_LIST)) {
			n = frag_binset_lower_tree((struct frag_binset *)s, bin, size);
			if (n)
				return n;
			break;
		}
		if (n->size >= size)
			return n;
	}
	bin = frag_binset_used_from(s, bin + 1);
	if (FRAG_UNLIKELY(bin == FRAG_BINSET_BINS))
		return NULL;
	n = s->heads[bin];
	return FRAG_LIKELY(n != FRAG_BINSET_TREE)
		       ? n
		       : frag_binset_lower_tree((struct frag_binset *)s, bin, 0);
}

#endif
