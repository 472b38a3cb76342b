/* SPDX-License-Identifier: Apache-2.0 */
/* A treap of arenas by address. */
#include "arenas.h"

/*
 * Heap order: Knuth's multiplicative hash (TAOCP volume 3, 6.4), 2^64 over the golden ratio. It is
 * one to one, so no two are equal, and spreads addresses at equal distances evenly.
 */
static uint64_t rank(const struct frag_buddy_arena *a)
{
	return a->root.addr * 0x9e3779b97f4a7c15ull;
}

static uint64_t below_of(const struct frag_buddy_arena *a)
{
	return a->root.orders | (a->left ? a->left->below : 0) | (a->right ? a->right->below : 0);
}

void frag_buddy_arenas_touch(struct frag_buddy_arena *a)
{
	for (; a; a = a->up) {
		uint64_t below = below_of(a);

		if (a->below == below)
			return;
		a->below = below;
	}
}

/* Puts `a` (NULL: nothing) where `old` hung below its parent. */
static void hang(struct frag_buddy_arenas *all, struct frag_buddy_arena *old,
		 struct frag_buddy_arena *a)
{
	struct frag_buddy_arena *up = old->up;

	if (!up)
		all->top = a;
	else if (up->left == old)
		up->left = a;
	else
		up->right = a;
	if (a)
		a->up = up;
}

/* Turns the edge to its parent around: `a` takes the parent's place. */
static void lift(struct frag_buddy_arenas *all, struct frag_buddy_arena *a)
{
	struct frag_buddy_arena *up = a->up, *inner;

	hang(all, up, a);
	if (up->left == a) {
		inner = a->right;
		a->right = up;
		up->left = inner;
	} else {
		inner = a->left;
		a->left = up;
		up->right = inner;
	}
	if (inner)
		inner->up = up;
	up->up = a;
	up->below = below_of(up);
	a->below = below_of(a);
}

void frag_buddy_arenas_add(struct frag_buddy_arenas *all, struct frag_buddy_arena *a)
{
	struct frag_buddy_arena **at = &all->top, *up = NULL;

	while (*at) {
		up = *at;
		at = a->root.addr < up->root.addr ? &up->left : &up->right;
	}
	*at = a;
	a->up = up;
	a->left = a->right = NULL;
	a->below = a->root.orders;
	all->count++;
	frag_buddy_arenas_touch(up);
	while (a->up && rank(a) > rank(a->up))
		lift(all, a);
}

void frag_buddy_arenas_remove(struct frag_buddy_arenas *all, struct frag_buddy_arena *a)
{
	struct frag_buddy_arena *child;

	/* counts as full before it goes down: lifting keeps the unions of its ancestors */
	a->root.orders = 0;
	frag_buddy_arenas_touch(a);
	while (a->left && a->right)
		lift(all, rank(a->left) > rank(a->right) ? a->left : a->right);
	child = a->left ? a->left : a->right;
	hang(all, a, child);
	all->count--;
}

struct frag_buddy_arena *frag_buddy_arenas_with(const struct frag_buddy_arenas *all,
						uint64_t orders)
{
	struct frag_buddy_arena *a = all->top;

	for (;;) {
		if (a->left && a->left->below & orders)
			a = a->left;
		else if (a->root.orders & orders)
			return a;
		else
			a = a->right;
	}
}

static struct frag_buddy_arena *lowest(struct frag_buddy_arena *a)
{
	while (a && a->left)
		a = a->left;
	return a;
}

struct frag_buddy_arena *frag_buddy_arenas_first(const struct frag_buddy_arenas *all)
{
	return lowest(all->top);
}

struct frag_buddy_arena *frag_buddy_arenas_next(const struct frag_buddy_arena *a)
{
	if (a->right)
		return lowest(a->right);
	while (a->up && a->up->right == a)
		a = a->up;
	return a->up;
}

/* ---- check ------------------------------------------------------------------------------ */

const char *frag_buddy_arenas_broken(const struct frag_buddy_arenas *all, bool lifo)
{
	const struct frag_buddy_arena *a = frag_buddy_arenas_first(all);
	size_t n = 0;

	for (; a && (lifo || a->below == below_of(a)); a = frag_buddy_arenas_next(a))
		n++;
	return n == all->count ? NULL : "tree of arenas broken";
}
