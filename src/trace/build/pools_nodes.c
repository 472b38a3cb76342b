/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segments as they are at one moment: `alive` by address, in each node its
 * live blocks by address, the gaps between them being its free blocks.
 */
#include "pools_internal.h"

#include <string.h>

/* Position in `alive` of the first node with addr > at. */
size_t frag_pool_alive_above(const struct frag_pool_inferrer *p, frag_addr_t at)
{
	size_t low = 0, high = p->alive_count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (p->nodes[p->alive[mid]].addr <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

uint32_t frag_pool_node_at(const struct frag_pool_inferrer *p, frag_addr_t at)
{
	size_t i = frag_pool_alive_above(p, at);

	if (!i || at >= p->nodes[p->alive[i - 1]].end)
		return UINT32_MAX;
	return p->alive[i - 1];
}

/* pre: fewer than nodes_cap nodes. */
uint32_t frag_pool_add_node(struct frag_pool_inferrer *p, struct frag_pool_node n)
{
	size_t i = frag_pool_alive_above(p, n.addr);
	uint32_t number = (uint32_t)p->nodes_count;

	n.dirty = true;
	n.label = FRAG_POOL_UNKNOWN;
	p->nodes[p->nodes_count++] = n;
	memmove(p->alive + i + 1, p->alive + i, (p->alive_count - i) * sizeof(*p->alive));
	p->alive[i] = number;
	p->alive_count++;
	return number;
}

void frag_pool_end_node(struct frag_pool_inferrer *p, uint32_t number)
{
	size_t i = frag_pool_alive_above(p, p->nodes[number].addr);

	/* several may start at one address in a hostile file: look for ours */
	while (i && p->alive[i - 1] != number)
		i--;
	if (!i)
		return;
	memmove(p->alive + i - 1, p->alive + i, (p->alive_count - i) * sizeof(*p->alive));
	p->alive_count--;
}

size_t frag_pool_span_above(const struct frag_pool_node *n, frag_addr_t at)
{
	size_t low = 0, high = n->live_count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (n->live[mid].addr <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The free gap that begins where span i - 1 ends (0: at the start of the segment). */
struct frag_pool_span frag_pool_gap_at(const struct frag_pool_node *n, size_t i)
{
	frag_addr_t from = i ? n->live[i - 1].addr + n->live[i - 1].bytes : n->addr;
	frag_addr_t to = i < n->live_count ? n->live[i].addr : n->end;

	return (struct frag_pool_span){ from, to > from ? to - from : 0 };
}

int frag_pool_put_live(struct frag_pool_inferrer *p, struct frag_pool_node *n, frag_addr_t addr,
		       uint64_t bytes)
{
	size_t i = frag_pool_span_above(n, addr);
	size_t cap = n->live_cap;

	FRAG_TRY(frag_grow(&n->live, n->live_count, &cap, sizeof(*n->live), "pools", p->err));
	n->live_cap = (uint32_t)cap;
	memmove(n->live + i + 1, n->live + i, (n->live_count - i) * sizeof(*n->live));
	n->live[i] = (struct frag_pool_span){ addr, bytes };
	p->moves += n->live_count++ - i;
	n->dirty = true;
	return 0;
}

void frag_pool_take_live(struct frag_pool_inferrer *p, frag_addr_t addr)
{
	uint32_t number = frag_pool_node_at(p, addr);
	struct frag_pool_node *n;
	size_t i;

	if (number == UINT32_MAX)
		return;
	n = &p->nodes[number];
	i = frag_pool_span_above(n, addr);
	if (!i || n->live[i - 1].addr != addr)
		return;
	memmove(n->live + i - 1, n->live + i, (n->live_count - i) * sizeof(*n->live));
	p->moves += n->live_count-- - i;
	n->dirty = true;
}

uint64_t frag_pool_max_free(struct frag_pool_inferrer *p, struct frag_pool_node *n)
{
	if (!n->dirty)
		return n->max_free;
	n->dirty = false;
	n->max_free = 0;
	for (size_t i = 0; i <= n->live_count; i++)
		n->max_free = FRAG_MAX(n->max_free, frag_pool_gap_at(n, i).bytes);
	p->work += n->live_count + 1;
	return n->max_free;
}
