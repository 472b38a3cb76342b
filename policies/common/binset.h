/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordered set of blocks by (size, address) for the hottest paths: the nodes are
 * part of the blocks, and sizes are sorted into bins, so that a change or a search
 * is a few instructions where bset.h walks a tree.
 *
 * Bins are log-linear: 512 B steps up to 64 KiB, then 64 steps per power of two. A
 * bitmap of two levels finds the next bin in use. A bin is a list in order; one
 * that grows beyond FRAG_BINSET_LIST is kept in a B+tree (bset.h) until it is
 * empty, so nothing is worse than O(log n).
 *
 * Ownership: nodes are the caller's and must not change key while they are in
 * the set. After frag_binset_reserve(s, n) inserts cannot fail while at most n
 * nodes are in the set.
 */
#ifndef FRAG_COMMON_BINSET_H
#define FRAG_COMMON_BINSET_H

#include "bset.h"

#define FRAG_BINSET_LIST 32u   /* steps of an insert before a bin becomes a tree */
#define FRAG_BINSET_BINS 3264u /* 128 + 49 * 64 */
#define FRAG_BINSET_WORDS (FRAG_BINSET_BINS / 64u)

struct frag_bin_node {
	frag_addr_t addr;
	uint64_t size;
	struct frag_bin_node *bin_prev, *bin_next; /* inside a list bin */
};

struct frag_binset {
	struct frag_bin_node **heads; /* by bin; of a tree bin: NULL */
	uint64_t words_used;	      /* bit per word of used[] */
	uint64_t used[FRAG_BINSET_WORDS];
	uint64_t crowded[FRAG_BINSET_WORDS]; /* bins kept in the tree */
	struct frag_bset tree;
	size_t count;
};

void frag_binset_init(struct frag_binset *s);
void frag_binset_release(struct frag_binset *s);
int frag_binset_reserve(struct frag_binset *s, size_t n);
/* For `check` of policies: NULL, or what is broken. O(n log n). */
const char *frag_binset_broken(const struct frag_binset *s);

/* The slow halves, for bins that are trees (or become one). */
void frag_binset_insert_tree(struct frag_binset *s, struct frag_bin_node *n, unsigned bin);
void frag_binset_erase_tree(struct frag_binset *s, struct frag_bin_node *n, unsigned bin);
struct frag_bin_node *frag_binset_lower_tree(const struct frag_binset *s, unsigned bin,
					     uint64_t size);

struct frag_bin_node *frag_binset_first(const struct frag_binset *s);
struct frag_bin_node *frag_binset_last(const struct frag_binset *s);
struct frag_bin_node *frag_binset_next(const struct frag_binset *s, const struct frag_bin_node *n);
struct frag_bin_node *frag_binset_prev(const struct frag_binset *s, const struct frag_bin_node *n);

static inline unsigned frag_binset_bin(uint64_t size)
{
	uint64_t u = size >> 9;
	unsigned e;

	if (u < 128)
		return (unsigned)u;
	e = frag_log2(u);
	return 128 + (e - 7) * 64 + ((unsigned)(u >> (e - 6)) & 63);
}

static inline bool frag_binset_is_tree(const struct frag_binset *s, unsigned bin)
{
	return s->crowded[bin / 64] >> (bin % 64) & 1;
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
	return a->size < b->size || (a->size == b->size && a->addr < b->addr);
}

/* pre: reserved, not in the set. */
static inline void frag_binset_insert(struct frag_binset *s, struct frag_bin_node *n)
{
	unsigned bin = frag_binset_bin(n->size), steps = 0;
	struct frag_bin_node *prev = NULL, *at;

	s->count++;
	at = s->heads[bin];
	if (FRAG_UNLIKELY(!at)) {
		if (FRAG_UNLIKELY(frag_binset_is_tree(s, bin))) {
			frag_binset_insert_tree(s, n, bin);
			return;
		}
		frag_binset_mark(s, bin);
	}
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
		s->heads[bin] = n;
	if (FRAG_UNLIKELY(steps > FRAG_BINSET_LIST))
		frag_binset_insert_tree(s, NULL, bin);
}

static inline void frag_binset_erase(struct frag_binset *s, struct frag_bin_node *n)
{
	unsigned bin = frag_binset_bin(n->size);

	s->count--;
	if (FRAG_UNLIKELY(!s->heads[bin])) {
		frag_binset_erase_tree(s, n, bin);
		return;
	}
	if (n->bin_next)
		n->bin_next->bin_prev = n->bin_prev;
	if (n->bin_prev) {
		n->bin_prev->bin_next = n->bin_next;
		return;
	}
	s->heads[bin] = n->bin_next;
	if (!n->bin_next)
		frag_binset_unmark(s, bin);
}

/* First node that is not smaller than `size`, NULL if there is none. */
static inline struct frag_bin_node *frag_binset_lower(const struct frag_binset *s, uint64_t size)
{
	unsigned bin = frag_binset_bin(size);
	struct frag_bin_node *n;

	if (!s->count)
		return NULL;
	for (n = s->heads[bin]; n; n = n->bin_next)
		if (n->size >= size)
			return n;
	if (FRAG_UNLIKELY(frag_binset_is_tree(s, bin))) {
		n = frag_binset_lower_tree(s, bin, size);
		if (n)
			return n;
	}
	bin = frag_binset_used_from(s, bin + 1);
	if (bin == FRAG_BINSET_BINS)
		return NULL;
	n = s->heads[bin];
	return FRAG_LIKELY(n != NULL) ? n : frag_binset_lower_tree(s, bin, 0);
}

#endif
