/* SPDX-License-Identifier: Apache-2.0 */
/* Bins that are trees, and walking; see binset.h. */
#include "binset.h"

#include <frag/error.h>

_Static_assert(FRAG_BINSET_WORDS <= 64, "one word must cover the bitmap");

void frag_binset_init(struct frag_binset *s)
{
	*s = (struct frag_binset){ 0 };
	frag_bset_init(&s->tree);
}

void frag_binset_release(struct frag_binset *s)
{
	frag_bset_release(&s->tree);
	frag_host_free(s->heads);
	*s = (struct frag_binset){ 0 };
}

int frag_binset_reserve(struct frag_binset *s, size_t n)
{
	if (!s->heads) {
		s->heads = frag_host_calloc(FRAG_BINSET_BINS, sizeof(struct frag_bin_node *));
		if (!s->heads)
			return FRAG_ENOMEM;
	}
	return frag_bset_reserve(&s->tree, n);
}

/* Smallest size of a bin. */
static uint64_t bin_from(unsigned bin)
{
	unsigned e = (bin - 128) / 64 + 7;

	if (bin < 128)
		return (uint64_t)bin << 9;
	return ((1ull << e) + ((uint64_t)((bin - 128) % 64) << (e - 6))) << 9;
}

static struct frag_bin_node *of_bin(struct frag_bset_pos at, unsigned bin)
{
	if (!at.leaf || frag_binset_bin(frag_bset_size(at)) != bin)
		return NULL;
	return frag_bset_value(at);
}

void frag_binset_insert_tree(struct frag_binset *s, struct frag_bin_node *n, unsigned bin)
{
	if (n) {
		frag_bset_insert(&s->tree, n->size, n->addr, n);
		return;
	}
	/* the list has become too long */
	for (n = s->heads[bin]; n; n = n->bin_next)
		frag_bset_insert(&s->tree, n->size, n->addr, n);
	s->heads[bin] = NULL;
	s->crowded[bin / 64] |= 1ull << (bin % 64);
}

void frag_binset_erase_tree(struct frag_binset *s, struct frag_bin_node *n, unsigned bin)
{
	bool found = frag_bset_erase(&s->tree, n->size, n->addr);

	FRAG_ASSERT(found);
	if (frag_binset_lower_tree(s, bin, 0))
		return;
	s->crowded[bin / 64] &= ~(1ull << (bin % 64));
	frag_binset_unmark(s, bin);
}

struct frag_bin_node *frag_binset_lower_tree(const struct frag_binset *s, unsigned bin,
					     uint64_t size)
{
	return of_bin(frag_bset_lower(&s->tree, FRAG_MAX(size, bin_from(bin)), 0), bin);
}

static struct frag_bin_node *first_of(const struct frag_binset *s, unsigned bin)
{
	if (bin >= FRAG_BINSET_BINS)
		return NULL;
	return s->heads[bin] ? s->heads[bin] : frag_binset_lower_tree(s, bin, 0);
}

static struct frag_bin_node *last_of(const struct frag_binset *s, unsigned bin)
{
	struct frag_bset_pos at;
	struct frag_bin_node *n = s->heads[bin];

	if (!n) {
		at = frag_bset_lower(&s->tree, bin_from(bin + 1), 0);
		at = at.leaf ? frag_bset_prev(at) : frag_bset_last(&s->tree);
		return of_bin(at, bin);
	}
	while (n->bin_next)
		n = n->bin_next;
	return n;
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
	return s->count ? first_of(s, frag_binset_used_from(s, 0)) : NULL;
}

struct frag_bin_node *frag_binset_last(const struct frag_binset *s)
{
	return s->count ? last_of(s, used_before(s, FRAG_BINSET_BINS)) : NULL;
}

struct frag_bin_node *frag_binset_next(const struct frag_binset *s, const struct frag_bin_node *n)
{
	unsigned bin = frag_binset_bin(n->size);
	struct frag_bin_node *next = NULL;

	if (s->heads[bin])
		next = n->bin_next;
	else
		next = of_bin(frag_bset_next(frag_bset_lower(&s->tree, n->size, n->addr)), bin);
	return next ? next : first_of(s, frag_binset_used_from(s, bin + 1));
}

struct frag_bin_node *frag_binset_prev(const struct frag_binset *s, const struct frag_bin_node *n)
{
	unsigned bin = frag_binset_bin(n->size), before;
	struct frag_bin_node *prev = NULL;

	if (s->heads[bin])
		prev = n->bin_prev;
	else
		prev = of_bin(frag_bset_prev(frag_bset_lower(&s->tree, n->size, n->addr)), bin);
	if (prev)
		return prev;
	before = used_before(s, bin);
	return before == FRAG_BINSET_BINS ? NULL : last_of(s, before);
}

const char *frag_binset_broken(const struct frag_binset *s)
{
	const struct frag_bin_node *n = frag_binset_first(s), *last = NULL;
	size_t count = 0;

	for (; n && count <= s->count; n = frag_binset_next(s, n)) {
		if (last && !frag_bin_before(last, n))
			return "nodes are not in order";
		if (last && frag_binset_prev(s, n) != last)
			return "walking back does not lead where walking on came from";
		last = n;
		count++;
	}
	if (count != s->count)
		return "the count is wrong";
	return frag_bset_broken(&s->tree);
}
