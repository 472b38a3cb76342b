/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order that a recording does not hold. From 2.12 on the order of free blocks of one size
 * depends on when they, or their segments, were made. Of what was there before the history began
 * nobody recorded that. Where two such blocks tie, the recording shows which came first, and from
 * then on that is known: it may never show the contrary. A pair once seen is kept as
 * (first << 32 | second) of the numbers that the restored state was given.
 */
#include "pt.h"

struct pt_learnt {
	uint64_t unknown; /* numbers up to this one were given when the state was restored */
	uint64_t *pairs;  /* open addressing, 0 = empty */
	size_t count, cap;
};

/* The number that decides about a block; 0: it is known. */
static uint64_t number_of(const struct pt *a, const struct pt_block *b)
{
	uint64_t n = a->order == PT_BY_BLOCK ? b->rank : b->rank >> a->rank_bits;

	return n <= a->learnt->unknown ? n : 0;
}

static size_t slot_of(const struct pt_learnt *l, uint64_t pair)
{
	size_t i = (size_t)((pair * 0x9e3779b97f4a7c15ull) >> 32) & (l->cap - 1);

	while (l->pairs[i] && l->pairs[i] != pair)
		i = (i + 1) & (l->cap - 1);
	return i;
}

static bool is_learnt(const struct pt_learnt *l, uint64_t first, uint64_t second)
{
	return l->cap && l->pairs[slot_of(l, first << 32 | second)];
}

static bool grow(struct pt_learnt *l)
{
	struct pt_learnt old = *l;

	l->cap = old.cap ? 2 * old.cap : 64;
	l->pairs = frag_host_calloc(l->cap, sizeof(*l->pairs));
	if (!l->pairs) {
		*l = old;
		return false;
	}
	for (size_t i = 0; i < old.cap; i++)
		if (old.pairs[i])
			l->pairs[slot_of(l, old.pairs[i])] = old.pairs[i];
	frag_host_free(old.pairs);
	return true;
}

/* Without memory a contradiction may be missed; nothing else is lost. */
static void learn(struct pt_learnt *l, uint64_t first, uint64_t second)
{
	size_t i;

	if (2 * l->count >= l->cap && !grow(l))
		return;
	i = slot_of(l, first << 32 | second);
	l->count += !l->pairs[i];
	l->pairs[i] = first << 32 | second;
}

/* What the recording shows when this block is taken, or given back. */
static bool is_next(const struct pt *a, const struct pt_block *b, bool release)
{
	frag_addr_t addr = b->addr;

	if (release && b->ranged && !pt_whole_pages(b, &addr))
		return false;
	return a->env.recorded_next(a->env.recorded_ctx, release, addr);
}

/* May `b` come before `other`, of which it ties in size? */
static bool may_precede(const struct pt *a, const struct pt_block *b, const struct pt_block *other)
{
	uint64_t n = number_of(a, b), m = number_of(a, other);

	return n && m && n != m && !is_learnt(a->learnt, m, n);
}

struct pt_block *pt_learn_first(struct pt *a, struct pt_block *b, bool release)
{
	struct pt_block *c = b;

	if (!a->learnt)
		return b;
	while (c && c->size == b->size && !is_next(a, c, release))
		c = pt_next_free(c);
	if (!c || c->size != b->size)
		return b;
	for (struct pt_block *x = b; x != c; x = pt_next_free(x))
		if (!may_precede(a, c, x))
			return b;
	for (struct pt_block *x = b; x != c; x = pt_next_free(x))
		learn(a->learnt, number_of(a, c), number_of(a, x));
	return c;
}

void pt_learn_list(struct pt *a, struct pt_block **list, size_t n)
{
	size_t at = 0;

	if (!a->learnt)
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

int pt_learn_begin(struct pt *a, struct frag_err *err)
{
	if (a->order == PT_BY_ADDRESS || !a->env.recorded_next)
		return 0;
	a->learnt = frag_host_calloc(1, sizeof(*a->learnt));
	if (!a->learnt)
		return frag_fail_nomem(err, "pytorch: order");
	a->learnt->unknown = a->made < UINT32_MAX ? a->made : 0;
	return 0;
}

void pt_learn_end(struct pt *a)
{
	if (a->learnt)
		frag_host_free(a->learnt->pairs);
	frag_host_free(a->learnt);
	a->learnt = NULL;
}
