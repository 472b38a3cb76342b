/* SPDX-License-Identifier: Apache-2.0 */
/* Halving, merging and finding blocks of the buddy policy, and the check of it. */
#include "buddy_tree.h"

#include "lib/links.h"

/* Tells the parents, and the arenas above, what is free below them now. */
static void tell_up(struct frag_buddy_node *n)
{
	while (n->in) {
		const struct frag_buddy_node *h = n->in->half;
		uint64_t orders = h[0].orders | h[1].orders;

		n = n->in->of;
		if (n->orders == orders)
			return;
		n->orders = orders;
	}
	frag_buddy_arenas_touch(frag_buddy_arena_of(n));
}

/* A whole block becomes free. Without lifo the caller tells the parents when it is done. */
void frag_buddy_put_free(struct frag_buddy_tree *t, struct frag_buddy_node *n)
{
	unsigned k = n->order;

	n->state = FRAG_STATE_FREE;
	n->orders = 1ull << k;
	t->free_count[k]++;
	t->free_orders |= 1ull << k;
	if (!n->in) {
		t->idle_count++;
		t->idle_bytes += 1ull << k;
	}
	if (!t->lifo)
		return;
	FRAG_LINK_FIRST(t->head[k], n);
}

/* A free block stops being free; the caller sets its state. */
void frag_buddy_cut_free(struct frag_buddy_tree *t, struct frag_buddy_node *n)
{
	unsigned k = n->order;

	n->orders = 0;
	if (!--t->free_count[k])
		t->free_orders &= ~(1ull << k);
	if (!n->in) {
		t->idle_count--;
		t->idle_bytes -= 1ull << k;
	}
	if (!t->lifo)
		return;
	FRAG_UNLINK(t->head[k], n);
}

struct frag_buddy_node *frag_buddy_find(const struct frag_buddy_tree *t, unsigned k)
{
	uint64_t fit = t->free_orders >> k << k;
	struct frag_buddy_node *n;

	if (!fit)
		return NULL;
	k = (unsigned)__builtin_ctzll(fit);
	if (t->lifo)
		return t->head[k];
	fit = 1ull << k;
	n = &frag_buddy_arenas_with(&t->arenas, fit)->root;
	while (n->state == FRAG_BUDDY_SPLIT)
		n = n->pair->half + !(n->pair->half[0].orders & fit);
	return n;
}

/* ---- halving and merging ------------------------------------------------------------ */

struct frag_buddy_node *frag_buddy_carve(struct frag_buddy_tree *t, struct frag_buddy_node *n,
					 unsigned k)
{
	frag_buddy_cut_free(t, n);
	while (n->order > k) {
		struct frag_buddy_pair *pair = frag_slab_alloc(&t->pairs);
		struct frag_buddy_node *low = &pair->half[0], *high = &pair->half[1];
		uint8_t order = n->order - 1;

		*low = (struct frag_buddy_node){ .addr = n->addr, .in = pair, .order = order };
		*high = (struct frag_buddy_node){ .addr = n->addr + (1ull << order),
						  .in = pair,
						  .order = order };
		pair->of = n;
		n->state = FRAG_BUDDY_SPLIT;
		n->pair = pair;
		frag_buddy_put_free(t, high);
		t->blocks_count++;
		n = low;
	}
	n->state = FRAG_STATE_LIVE;
	if (!t->lifo)
		tell_up(n);
	t->live_bytes += 1ull << k;
	t->free_bytes -= 1ull << k;
	return n;
}

struct frag_buddy_node *frag_buddy_merge(struct frag_buddy_tree *t, struct frag_buddy_node *n)
{
	while (n->in) {
		struct frag_buddy_node *half = n->in->half;
		struct frag_buddy_node *buddy = half + (n == half);
		struct frag_buddy_pair *pair = n->in;

		if (buddy->state != FRAG_STATE_FREE)
			break;
		frag_buddy_cut_free(t, buddy);
		n = pair->of;
		n->pair = NULL;
		frag_slab_free(&t->pairs, pair);
		t->blocks_count--;
	}
	frag_buddy_put_free(t, n);
	if (!t->lifo)
		tell_up(n);
	return n;
}

/* ---- check ---------------------------------------------------------------------------- */

/* Counts the free blocks of each order; false: what a block says of the orders in it is wrong. */
static bool check_node(const struct frag_buddy_tree *t, const struct frag_buddy_node *n,
		       uint64_t *count)
{
	const struct frag_buddy_node *h;

	if (n->state == FRAG_STATE_FREE)
		count[n->order]++;
	if (n->state != FRAG_BUDDY_SPLIT)
		return n->orders == (n->state == FRAG_STATE_FREE ? 1ull << n->order : 0);
	h = n->pair->half;
	return !(h[0].state == FRAG_STATE_FREE && h[1].state == FRAG_STATE_FREE) &&
	       (t->lifo || n->orders == (h[0].orders | h[1].orders)) && check_node(t, h, count) &&
	       check_node(t, h + 1, count);
}

static bool check_lists(const struct frag_buddy_tree *t, const uint64_t *count)
{
	for (unsigned k = 0; k < FRAG_BUDDY_ORDERS; k++) {
		uint64_t in_list = 0;

		for (const struct frag_buddy_node *n = t->head[k]; n; n = n->next)
			in_list += n->order == k && n->state == FRAG_STATE_FREE;
		if (t->free_count[k] != count[k] || in_list != (t->lifo ? count[k] : 0) ||
		    (t->free_orders >> k & 1) != !!count[k])
			return false;
	}
	return true;
}

const char *frag_buddy_broken(const struct frag_buddy_tree *t)
{
	uint64_t count[FRAG_BUDDY_ORDERS] = { 0 };

	for (const struct frag_buddy_arena *a = frag_buddy_arenas_first(&t->arenas); a;
	     a = frag_buddy_arenas_next(a))
		if (!check_node(t, &a->root, count))
			return "orders of a block wrong";
	if (!check_lists(t, count))
		return "lists of free blocks wrong";
	return frag_buddy_arenas_broken(&t->arenas, t->lifo);
}
