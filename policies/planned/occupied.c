/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges in use; see occupied.h. */
#include "occupied.h"

void occupied_init(struct occupied *o)
{
	*o = (struct occupied){ .root = OCCUPIED_NONE, .free = OCCUPIED_NONE, .rng = 2463534242u };
}

void occupied_release(struct occupied *o)
{
	frag_host_free(o->nodes);
	occupied_init(o);
}

bool occupied_is_free(const struct occupied *o, uint64_t from, uint64_t to)
{
	const struct occupied_node *n = o->nodes;
	uint32_t t = o->root;

	/* ranges do not overlap, so on the way down one of the two sides is always excluded */
	while (t != OCCUPIED_NONE) {
		if (n[t].to <= from)
			t = n[t].right;
		else if (to <= n[t].from)
			t = n[t].left;
		else
			return false;
	}
	return true;
}

static void pull(struct occupied_node *n, uint32_t t)
{
	struct occupied_node *x = &n[t];

	x->low = x->from;
	x->high = x->to;
	x->gap = 0;
	if (x->left != OCCUPIED_NONE) {
		const struct occupied_node *l = &n[x->left];

		x->low = l->low;
		x->gap = FRAG_MAX(l->gap, x->from - l->high);
	}
	if (x->right != OCCUPIED_NONE) {
		const struct occupied_node *r = &n[x->right];

		x->high = r->high;
		x->gap = FRAG_MAX(x->gap, FRAG_MAX(r->gap, r->low - x->to));
	}
}

/* Below `from` to *a, the rest to *b. The depth is that of the treap. */
static void split(struct occupied_node *n, uint32_t t, uint64_t from, uint32_t *a, uint32_t *b)
{
	if (t == OCCUPIED_NONE) {
		*a = *b = t;
	} else if (n[t].from < from) {
		split(n, n[t].right, from, &n[t].right, b);
		*a = t;
		pull(n, t);
	} else {
		split(n, n[t].left, from, a, &n[t].left);
		*b = t;
		pull(n, t);
	}
}

/* All of a lie below all of b. */
static uint32_t join(struct occupied_node *n, uint32_t a, uint32_t b)
{
	if (a == OCCUPIED_NONE || b == OCCUPIED_NONE)
		return a != OCCUPIED_NONE ? a : b;
	if (n[a].heat > n[b].heat) {
		n[a].right = join(n, n[a].right, b);
		pull(n, a);
		return a;
	}
	n[b].left = join(n, a, n[b].left);
	pull(n, b);
	return b;
}

uint64_t occupied_find_gap(const struct occupied *o, uint64_t bytes, uint64_t limit)
{
	const struct occupied_node *n = o->nodes;
	uint32_t t = o->root;

	if (t == OCCUPIED_NONE)
		return bytes <= limit ? 0 : UINT64_MAX;
	if (n[t].low >= bytes)
		return 0;
	if (n[t].gap < bytes)
		return limit - n[t].high >= bytes ? n[t].high : UINT64_MAX;
	for (;;) {
		uint32_t l = n[t].left;

		if (l != OCCUPIED_NONE && n[l].gap >= bytes)
			t = l;
		else if (l != OCCUPIED_NONE && n[t].from - n[l].high >= bytes)
			return n[l].high;
		else if (n[n[t].right].low - n[t].to >= bytes)
			return n[t].to;
		else
			t = n[t].right;
	}
}

static uint32_t take_node(struct occupied *o)
{
	uint32_t t = o->free;

	if (t != OCCUPIED_NONE) {
		o->free = o->nodes[t].left;
		return t;
	}
	if (o->count == o->cap) {
		uint32_t cap = o->cap ? 2 * o->cap : 256;
		struct occupied_node *nodes = frag_host_realloc(o->nodes, cap, sizeof(*nodes));

		if (!nodes)
			return OCCUPIED_NONE;
		o->nodes = nodes;
		o->cap = cap;
	}
	return o->count++;
}

uint32_t occupied_put(struct occupied *o, uint64_t from, uint64_t to)
{
	uint32_t t = take_node(o), below, above;

	if (t == OCCUPIED_NONE)
		return t;
	o->rng ^= o->rng << 13; /* xorshift32 */
	o->rng ^= o->rng >> 17;
	o->rng ^= o->rng << 5;
	o->nodes[t] = (struct occupied_node){ .from = from,
					      .to = to,
					      .low = from,
					      .high = to,
					      .left = OCCUPIED_NONE,
					      .right = OCCUPIED_NONE,
					      .heat = o->rng };
	split(o->nodes, o->root, from, &below, &above);
	o->root = join(o->nodes, join(o->nodes, below, t), above);
	return t;
}

void occupied_remove(struct occupied *o, uint32_t node)
{
	uint32_t below, above, self;

	split(o->nodes, o->root, o->nodes[node].from, &below, &above);
	split(o->nodes, above, o->nodes[node].from + 1, &self, &above);
	FRAG_ASSERT(self == node);
	o->root = join(o->nodes, below, above);
	o->nodes[node].left = o->free;
	o->free = node;
}

void occupied_walk(const struct occupied *o,
		   void (*fn)(void *ctx, const struct occupied_node *node), void *ctx)
{
	uint64_t after = 0;
	bool first = true;

	/* the successor by a descent each: no stack, O(log n) */
	for (;;) {
		uint32_t best = OCCUPIED_NONE;

		for (uint32_t t = o->root; t != OCCUPIED_NONE;) {
			if (first || o->nodes[t].from > after) {
				best = t;
				t = o->nodes[t].left;
			} else {
				t = o->nodes[t].right;
			}
		}
		if (best == OCCUPIED_NONE)
			return;
		fn(ctx, &o->nodes[best]);
		after = o->nodes[best].from;
		first = false;
	}
}
