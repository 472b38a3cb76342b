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

struct sums {
	uint64_t bytes[3], count[FRAG_BUDDY_ORDERS];
	size_t blocks;
};

static const char *check_node(const struct frag_buddy_tree *t, const struct frag_buddy_node *n,
			      struct sums *sum)
{
	const struct frag_buddy_node *h;
	const char *bad;

	if (n->order < t->min_order || n->order >= FRAG_BUDDY_ORDERS)
		return "order out of range";
	if (n->state != FRAG_BUDDY_SPLIT) {
		sum->bytes[n->state] += 1ull << n->order;
		sum->blocks++;
		if (n->state == FRAG_STATE_FREE)
			sum->count[n->order]++;
		if (n->orders != (n->state == FRAG_STATE_FREE ? 1ull << n->order : 0))
			return "orders of a whole block wrong";
		return NULL;
	}
	h = n->pair->half;
	if (n->pair->of != n || h[0].in != n->pair || h[1].in != n->pair)
		return "tree links broken";
	if (h[0].order != n->order - 1 || h[1].order != n->order - 1 || h[0].addr != n->addr ||
	    h[1].addr != n->addr + (1ull << h[1].order))
		return "halves do not cover their block";
	if (h[0].state == FRAG_STATE_FREE && h[1].state == FRAG_STATE_FREE)
		return "two free buddies";
	bad = check_node(t, h, sum);
	if (!bad)
		bad = check_node(t, h + 1, sum);
	if (!bad && !t->lifo && n->orders != (h[0].orders | h[1].orders))
		bad = "orders of a split block wrong";
	return bad;
}

static const char *check_lists(const struct frag_buddy_tree *t, const struct sums *sum)
{
	unsigned k;

	for (k = 0; k < FRAG_BUDDY_ORDERS; k++) {
		const struct frag_buddy_node *n = t->head[k], *prev = NULL;
		uint64_t in_list = 0;

		if (t->free_count[k] != sum->count[k] ||
		    !!(t->free_orders >> k & 1) != !!sum->count[k])
			return "count of free blocks wrong";
		for (; n && in_list <= sum->count[k]; prev = n, n = n->next, in_list++)
			if (n->prev != prev || n->order != k || n->state != FRAG_STATE_FREE)
				return "list of free blocks broken";
		if (in_list != (!t->lifo ? 0 : sum->count[k]))
			return "list of free blocks incomplete";
	}
	return NULL;
}

const char *frag_buddy_broken(const struct frag_buddy_tree *t)
{
	const char *bad = frag_buddy_arenas_broken(&t->arenas, t->lifo);
	const struct frag_buddy_arena *a = frag_buddy_arenas_first(&t->arenas);
	struct sums sum = { 0 };
	uint64_t idle_bytes = 0;
	size_t idle = 0;

	for (; a && !bad; a = frag_buddy_arenas_next(a)) {
		bad = a->root.in ? "arena with a parent" : check_node(t, &a->root, &sum);
		if (a->root.state == FRAG_STATE_FREE) {
			idle++;
			idle_bytes += frag_buddy_bytes(&a->root);
		}
	}
	if (!bad)
		bad = check_lists(t, &sum);
	if (!bad && (sum.bytes[FRAG_STATE_LIVE] != t->live_bytes ||
		     sum.bytes[FRAG_STATE_WAITING] != t->waiting_bytes ||
		     sum.bytes[FRAG_STATE_FREE] != t->free_bytes || sum.blocks != t->blocks_count ||
		     idle != t->idle_count || idle_bytes != t->idle_bytes))
		bad = "counters differ from the sums over the blocks";
	return bad;
}
