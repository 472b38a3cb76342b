/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learns what a recording that began late does not hold: the order of free blocks, and their ages.
 *
 * Order. From 2.12 on the order of free blocks of one size depends on when they, or their segments,
 * were made. That is not recorded for blocks older than the history. When two such blocks
 * tie, the recording shows which came first; from then on that order must hold. A pair is kept as
 * (first << 32 | second) of the numbers that the restored state was given. With expandable
 * segments the order matters through what the blocks can grow to: any order that leads to what
 * was recorded, and that nothing has refuted, is accepted.
 *
 * Ages. Garbage collection gives back what has been free for a long time. Blocks free since before
 * the history began are older than all others; how much older, the recording shows by which of
 * them it gives back.
 */
#include "lib/addr_map.h"
#include "pt.h"

#define WALK_MAX 256u /* blocks that are looked at for one request */
#define TIES_MAX 16u  /* of those that come later: what is learnt of one choice */

struct pt_learnt {
	uint64_t unknown; /* numbers up to this one were given when the state was restored */
	struct frag_addr_map pairs;
};

/* The number that decides about a block; 0: it is known. */
static uint64_t number_of(const struct pt *a, const struct pt_block *b)
{
	uint64_t n = a->order == PT_BY_BLOCK ? b->rank : b->rank >> a->rank_bits;

	return n <= a->learnt->unknown ? n : 0;
}

static bool is_learnt(const struct pt_learnt *l, uint64_t first, uint64_t second)
{
	return frag_addr_map_find(&l->pairs, first << 32 | second);
}

/* Without memory a contradiction may be missed; nothing else is lost. */
static void learn(struct pt_learnt *l, uint64_t first, uint64_t second)
{
	if (!frag_addr_map_reserve(&l->pairs))
		frag_addr_map_add(&l->pairs, first << 32 | second, true);
}

/* What the recording shows when this block is taken, or given back. */
static bool is_next(const struct pt *a, const struct pt_block *b, bool release)
{
	frag_addr_t addr = b->addr;

	if (release && b->ranged && !pt_whole_pages(b, &addr))
		return false;
	return a->env.recorded_next(a->env.recorded_ctx, release, addr);
}

/* May `b` come before `other`, which has the same size? */
static bool may_precede(const struct pt *a, const struct pt_block *b, const struct pt_block *other)
{
	uint64_t n = number_of(a, b), m = number_of(a, other);

	return n && m && n != m && !is_learnt(a->learnt, m, n);
}

/* Is there an order to be learnt? */
static bool orders(const struct pt *a)
{
	return a->learnt && a->learnt->unknown;
}

/* Of the free blocks of its size behind `c`, one that the recording has shown to come before it. */
static struct pt_block *shown_before(struct pt *a, struct pt_block *c)
{
	struct pt_block *x = c;
	uint64_t n = number_of(a, c), m;

	for (unsigned i = 0; n && i < TIES_MAX; i++) {
		x = pt_next_free(x);
		if (!x || x->size != c->size)
			return NULL;
		m = number_of(a, x);
		if (m && m != n && is_learnt(a->learnt, m, n))
			return x;
		if (m && m != n)
			learn(a->learnt, n, m);
	}
	return NULL;
}

struct pt_block *pt_learn_first(struct pt *a, struct pt_block *b, bool release)
{
	struct pt_block *c = b, *other;

	if (!orders(a))
		return b;
	while (c && c->size == b->size && !is_next(a, c, release))
		c = pt_next_free(c);
	if (!c || c->size != b->size)
		return b;
	for (struct pt_block *x = b; x != c; x = pt_next_free(x))
		if (!may_precede(a, c, x))
			return b;
	other = shown_before(a, c);
	if (other)
		return other;
	for (struct pt_block *x = b; x != c; x = pt_next_free(x))
		learn(a->learnt, number_of(a, c), number_of(a, x));
	return c;
}

struct pt_block *pt_learn_last(struct pt *a, struct pt_block *b)
{
	struct pt_block *c = b;

	if (!orders(a))
		return b;
	while (c && c->size == b->size && (c->ranged || pt_is_split(c) || !is_next(a, c, true)))
		c = pt_prev_free(c);
	if (!c || c->size != b->size)
		return b;
	for (struct pt_block *x = b; x != c; x = pt_prev_free(x))
		if (!may_precede(a, x, c))
			return b;
	for (struct pt_block *x = b; x != c; x = pt_prev_free(x))
		learn(a->learnt, number_of(a, x), number_of(a, c));
	return c;
}

/* ---- the walk over expandable blocks (prefer_inner in pytorch.c) ---- */

/* May `b` stand before `other` of its size? */
static bool may_stand_before(const struct pt *a, const struct pt_block *b,
			     const struct pt_block *other)
{
	uint64_t n = number_of(a, b), m = number_of(a, other);

	if (b->rank > other->rank)
		return may_precede(a, b, other);
	return !n || !m || !is_learnt(a->learnt, m, n);
}

/* The first block behind `b` of another size; NULL at the end. */
static struct pt_block *other_size(struct pt_block *b)
{
	struct pt_block *c = b;

	while (c && c->size == b->size)
		c = pt_next_free(c);
	return c;
}

/* Of the blocks of one size from `first` on, the one that can grow most of those that can grow to
 * less than `below`; NULL if there is none. *count: how many they are, *kept: how many below. */
static struct pt_block *greatest_below(struct pt_block *first, uint64_t below, size_t *count,
				       size_t *kept)
{
	struct pt_block *best = NULL, *end = other_size(first);

	*count = *kept = 0;
	for (struct pt_block *b = first; b != end; b = pt_next_free(b)) {
		++*count;
		if (pt_potential(b) >= below)
			continue;
		++*kept;
		if (!best || pt_potential(b) > pt_potential(best))
			best = b;
	}
	return best;
}

/*
 * Can the walk go through all blocks of one size? Then in falling order of what they can grow to.
 * *below: less than this on entry, the last one's on return.
 */
static bool passes(const struct pt *a, struct pt_block *first, uint64_t *below)
{
	struct pt_block *before = NULL;
	size_t count, kept, left = 0;

	for (size_t i = 0; !i || i < left; i++) {
		struct pt_block *b = greatest_below(first, *below, &count, &kept);

		/* all of them are left at first, then one less each time: no two alike */
		left = i ? left : count;
		if (!b || kept != left - i || (before && !may_stand_before(a, before, b)))
			return false;
		*below = pt_potential(b);
		before = b;
	}
	return true;
}

/* Can the walk end on `c`? Then a block stands behind it that can grow to as much. */
static bool ends_on(const struct pt *a, struct pt_block *first, struct pt_block *c)
{
	struct pt_block *end = other_size(first);
	bool alone = true;

	for (struct pt_block *b = first; b != end; b = pt_next_free(b)) {
		if (b == c)
			continue;
		alone = false;
		if (pt_potential(b) >= pt_potential(c) && may_stand_before(a, c, b))
			return true;
	}
	if (!alone || !end)
		return alone;
	for (first = end, end = other_size(first); first != end; first = pt_next_free(first))
		if (pt_potential(first) >= pt_potential(c))
			return true;
	return false;
}

struct pt_block *pt_learn_walk(struct pt *a, struct pt_block *b, struct pt_block *chosen)
{
	struct pt_block *c = b, *group = b;
	uint64_t below = UINT64_MAX;
	unsigned steps = 0;

	while (c && steps++ < WALK_MAX && !is_next(a, c, false))
		c = pt_next_free(c);
	if (!c || c == chosen || steps > WALK_MAX)
		return chosen;
	for (; group->size != c->size; group = other_size(group))
		if (!passes(a, group, &below))
			return chosen;
	return pt_potential(c) < below && ends_on(a, group, c) ? c : chosen;
}

void pt_learn_list(struct pt *a, struct pt_block **list, size_t n)
{
	size_t at = 0;

	if (!orders(a))
		return;
	while (at < n && list[at]->set == list[0]->set && list[at]->size == list[0]->size &&
	       !is_next(a, list[at], true))
		at++;
	if (at == n || list[at]->set != list[0]->set || list[at]->size != list[0]->size)
		return;
	for (size_t i = 0; i < at; i++)
		if (!may_precede(a, list[at], list[i]))
			return;
	for (size_t i = at; i > 0; i--) {
		struct pt_block *b = list[i];

		learn(a->learnt, number_of(a, b), number_of(a, list[i - 1]));
		list[i] = list[i - 1];
		list[i - 1] = b;
	}
}

/* ---- ages, for garbage collection ---- */

bool pt_learn_ageless(const struct pt *a, const struct pt_block *b)
{
	return a->learnt && !b->gc_base;
}

bool pt_learn_collected(const struct pt *a, const struct pt_block *b)
{
	return is_next(a, b, true);
}

int pt_learn_begin(struct pt *a, struct frag_err *err)
{
	if (!a->env.recorded_next)
		return 0;
	FRAG_TRY_CALLOC(a->learnt, 1, "pytorch: order", err);
	if (a->order != PT_BY_ADDRESS)
		a->learnt->unknown = a->made < UINT32_MAX ? a->made : 0;
	/* what was put among the free blocks before the first search is older than all others */
	for (uint32_t i = 0; i < a->pools_count; i++)
		a->pools[i].calls = 1;
	return 0;
}

void pt_learn_end(struct pt *a)
{
	if (a->learnt)
		frag_addr_map_release(&a->learnt->pairs);
	frag_host_free(a->learnt);
	a->learnt = NULL;
}
