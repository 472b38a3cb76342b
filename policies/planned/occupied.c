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

/* Below `from` to *a, the rest to *b. */
static void split(struct occupied_node *n, uint32_t t, uint64_t from, uint32_t *a, uint32_t *b)
{
	while (t != OCCUPIED_NONE) {
		if (n[t].from < from) {
			*a = t;
			a = &n[t].right;
			t = n[t].right;
		} else {
			*b = t;
			b = &n[t].left;
			t = n[t].left;
		}
	}
	*a = *b = OCCUPIED_NONE;
}

static void join(struct occupied_node *n, uint32_t a, uint32_t b, uint32_t *at)
{
	while (a != OCCUPIED_NONE && b != OCCUPIED_NONE) {
		if (n[a].heat > n[b].heat) {
			*at = a;
			at = &n[a].right;
			a = n[a].right;
		} else {
			*at = b;
			at = &n[b].left;
			b = n[b].left;
		}
	}
	*at = a != OCCUPIED_NONE ? a : b;
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
	uint32_t t = take_node(o), at = o->root, *link = &o->root;

	if (t == OCCUPIED_NONE)
		return t;
	o->rng ^= o->rng << 13; /* xorshift32 */
	o->rng ^= o->rng >> 17;
	o->rng ^= o->rng << 5;
	o->nodes[t] = (struct occupied_node){ .from = from, .to = to, .heat = o->rng };
	while (at != OCCUPIED_NONE && o->nodes[at].heat >= o->rng) {
		link = o->nodes[at].from < from ? &o->nodes[at].right : &o->nodes[at].left;
		at = *link;
	}
	split(o->nodes, at, from, &o->nodes[t].left, &o->nodes[t].right);
	*link = t;
	return t;
}

void occupied_remove(struct occupied *o, uint32_t node)
{
	struct occupied_node *n = o->nodes;
	uint32_t *link = &o->root;

	while (*link != node) {
		FRAG_ASSERT(*link != OCCUPIED_NONE);
		link = n[*link].from < n[node].from ? &n[*link].right : &n[*link].left;
	}
	join(n, n[node].left, n[node].right, link);
	n[node].left = o->free;
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
