/* SPDX-License-Identifier: Apache-2.0 */
/* Bins that are trees, and walking; see binset.h. */
#include "binset.h"

#include <frag/error.h>

_Static_assert(FRAG_BINSET_WORDS <= 64, "one word must cover the bitmap");

/* Shared by all slim sets; read-only. */
static struct frag_bin_node *all_trees[FRAG_BINSET_BINS] = { [0 ... FRAG_BINSET_BINS - 1] =
								     FRAG_BINSET_TREE };

int frag_binset_init(struct frag_binset *s, struct frag_slab *nodes, bool slim)
{
	*s = (struct frag_binset){ .heads = all_trees };
	frag_bset_init_shared(&s->tree, nodes);
	if (!slim)
		s->heads = frag_host_calloc(FRAG_BINSET_BINS, sizeof(struct frag_bin_node *));
	return s->heads ? 0 : FRAG_ENOMEM;
}

void frag_binset_release(struct frag_binset *s)
{
	frag_bset_release(&s->tree);
	if (s->heads != all_trees)
		frag_host_free(s->heads);
	*s = (struct frag_binset){ 0 };
}

/* Smallest size of a bin. */
static uint64_t bin_from(unsigned bin)
{
	unsigned step = bin >> FRAG_BINSET_FINE;

	step -= step != 0;
	return (uint64_t)(bin - (step << FRAG_BINSET_FINE)) << step << 9;
}

static struct frag_bin_node *of_bin(struct frag_bset_node *at, unsigned bin)
{
	struct frag_bin_node *n = frag_bset_value(at);

	return n && n->bin == bin ? n : NULL;
}

/* ---- changes ----------------------------------------------------------------------------- */

void frag_binset_insert_tree(struct frag_binset *s, struct frag_bin_node *n)
{
	frag_bset_insert(&s->tree, n->size, n->rank, n);
}

void frag_binset_crowd(struct frag_binset *s, unsigned bin)
{
	struct frag_bin_node *n = s->heads[bin];

	if (n == FRAG_BINSET_TREE)
		return;
	for (; n; n = n->bin_next)
		frag_bset_insert(&s->tree, n->size, n->rank, n);
	s->heads[bin] = FRAG_BINSET_TREE;
}

/* First node of a tree bin from `size` on. */
static struct frag_bin_node *lower_in(const struct frag_binset *s, unsigned bin, uint64_t size)
{
	return of_bin(frag_bset_lower(&s->tree, FRAG_MAX(size, bin_from(bin)), 0), bin);
}

void frag_binset_erase_tree(struct frag_binset *s, struct frag_bin_node *n)
{
	unsigned bin = n->bin;
	bool found = frag_bset_erase(&s->tree, n->size, n->rank);

	FRAG_ASSERT(found);
	if (s->heads == all_trees || lower_in(s, bin, 0))
		return;
	s->heads[bin] = NULL;
	frag_binset_unmark(s, bin);
}

struct frag_bin_node *frag_binset_lower_tree(struct frag_binset *s, unsigned bin, uint64_t size)
{
	if (s->heads == all_trees)
		return frag_bset_value(frag_bset_lower(&s->tree, size, 0));
	frag_binset_crowd(s, bin);
	return lower_in(s, bin, size);
}

static struct frag_bin_node *first_of(const struct frag_binset *s, unsigned bin)
{
	if (bin >= FRAG_BINSET_BINS)
		return NULL;
	return s->heads[bin] != FRAG_BINSET_TREE ? s->heads[bin] : lower_in(s, bin, 0);
}

static struct frag_bin_node *last_of(const struct frag_binset *s, unsigned bin)
{
	struct frag_bin_node *n = s->heads[bin];
	unsigned steps = 0;

	if (n != FRAG_BINSET_TREE) {
		for (; n->bin_next && steps <= FRAG_BINSET_LIST; steps++)
			n = n->bin_next;
		if (!n->bin_next)
			return n;
		frag_binset_crowd((struct frag_binset *)s, bin);
	}
	return of_bin(frag_bset_below(&s->tree, bin_from(bin + 1), 0), bin);
}

/* Last bin in use before `bin`, FRAG_BINSET_BINS if there is none. */
static unsigned used_before(const struct frag_binset *s, unsigned bin)
{
	unsigned w = bin / 64;
	uint64_t bits = w < FRAG_BINSET_WORDS ? s->used[w] & ((1ull << (bin % 64)) - 1) : 0;

	if (!bits) {
		uint64_t words = s->words_used & ((1ull << w) - 1);

		if (!words)
			return FRAG_BINSET_BINS;
		w = frag_log2(words);
		bits = s->used[w];
	}
	return w * 64 + frag_log2(bits);
}

struct frag_bin_node *frag_binset_first(const struct frag_binset *s)
{
	if (s->heads == all_trees)
		return frag_bset_value(frag_bset_first(&s->tree));
	return s->count ? first_of(s, frag_binset_used_from(s, 0)) : NULL;
}

struct frag_bin_node *frag_binset_last(const struct frag_binset *s)
{
	if (s->heads == all_trees)
		return frag_bset_value(frag_bset_last(&s->tree));
	return s->count ? last_of(s, used_before(s, FRAG_BINSET_BINS)) : NULL;
}

struct frag_bin_node *frag_binset_next(const struct frag_binset *s, const struct frag_bin_node *n)
{
	unsigned bin = n->bin;
	struct frag_bin_node *next = NULL;

	if (s->heads == all_trees)
		return frag_bset_value(frag_bset_lower(&s->tree, n->size, n->rank + 1));
	if (s->heads[bin] != FRAG_BINSET_TREE)
		next = n->bin_next;
	else
		next = of_bin(frag_bset_lower(&s->tree, n->size, n->rank + 1), bin);
	return next ? next : first_of(s, frag_binset_used_from(s, bin + 1));
}

struct frag_bin_node *frag_binset_prev(const struct frag_binset *s, const struct frag_bin_node *n)
{
	unsigned bin = n->bin, before;
	struct frag_bin_node *prev = NULL;

	if (s->heads == all_trees)
		return frag_bset_value(frag_bset_below(&s->tree, n->size, n->rank));
	if (s->heads[bin] != FRAG_BINSET_TREE)
		prev = n->bin_prev;
	else
		prev = of_bin(frag_bset_below(&s->tree, n->size, n->rank), bin);
	if (prev)
		return prev;
	before = used_before(s, bin);
	return before == FRAG_BINSET_BINS ? NULL : last_of(s, before);
}
