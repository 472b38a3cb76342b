/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open ends: blocks that were live at the start, of the large pool, with a free block
 * behind them that begins up to 1 MiB later than it seems. While such a block lives,
 * every malloc that took something worse, or a new segment, says that the
 * free block is shorter than the request: so the end lies higher. The size becomes
 * the least that agrees with all of them; it stays a guess. Where a size that is
 * not possible would be needed, something else keeps the allocator from these
 * blocks (private pools): then nothing is concluded.
 *
 * Example: 3 MiB seem free behind a block, a request of 2.9 MiB goes elsewhere:
 * less than 2.9 MiB are free, the block owns more than 0.1 MiB of the gap.
 */
#include "pools_internal.h"

#include <stdlib.h>

#include "rewind.h"

static int end_order(const void *a, const void *b)
{
	const struct frag_narrow_end *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

void frag_pool_narrow_gone(struct frag_pool_inferrer *p, frag_addr_t addr)
{
	struct frag_narrowing *w = p->narrow;
	struct frag_narrow_end key = { .addr = addr };
	struct frag_narrow_end *e = bsearch(&key, w->ends, w->count, sizeof(*w->ends), end_order);

	if (!e || e->gone)
		return;
	e->gone = true;
	w->left--;
}

/* The free block behind `e` was not taken for `bytes`: shorten it until that is right. */
static void narrow_one(struct frag_pool_inferrer *p, const struct frag_pool_node *x,
		       const struct frag_narrow_end *e, uint64_t bytes,
		       struct frag_pool_span chosen)
{
	uint32_t number = frag_pool_node_at(p, e->addr);
	struct frag_pool_node *n;
	struct frag_pool_span gap;
	uint64_t size;
	size_t i;

	if (number == UINT32_MAX)
		return;
	n = &p->nodes[number];
	if (n->stream != x->stream || n->small != x->small || n->pool != x->pool || n->expandable)
		return;
	i = frag_pool_span_above(n, e->addr);
	if (!i || n->live[i - 1].addr != e->addr)
		return;
	gap = frag_pool_gap_at(n, i);
	if (!frag_pool_better(p, gap, bytes, chosen))
		return;
	size = gap.addr + gap.bytes - bytes + 512 - e->addr;
	if (size > e->max_bytes) {
		p->narrow->other_reason = true;
		return;
	}
	n->live[i - 1].bytes = size;
	n->dirty = true;
	p->narrow->blocks[e->block].bytes = size;
}

void frag_pool_narrow(struct frag_pool_inferrer *p, uint32_t number, uint64_t bytes,
		      struct frag_pool_span chosen)
{
	struct frag_narrowing *w = p->narrow;

	if (p->nodes[number].small)
		return;
	p->work += 64 * w->count; /* a look-up in the segments, then in the blocks */
	for (size_t i = 0; i < w->count; i++)
		if (!w->ends[i].gone)
			narrow_one(p, &p->nodes[number], &w->ends[i], bytes, chosen);
}

static int walk(struct frag_pool_inferrer *p, struct frag_rewound *r)
{
	uint32_t *initial_node;
	int rc;

	FRAG_TRY(frag_pools_reserve(p, r->segments_count));
	if (!p->entry_node)
		return 0;
	initial_node = frag_host_calloc(r->segments_count, sizeof(*initial_node));
	if (!initial_node)
		return frag_fail_nomem(p->err, "rewind");
	rc = frag_pools_walk(p, r->segments, r->segments_count, r->blocks, initial_node);
	frag_host_free(initial_node);
	return rc;
}

int frag_rewind_narrow(const struct frag_raw_dev *raw, const uint16_t *stream_of,
		       struct frag_rewound *r, struct frag_err *err)
{
	struct frag_narrowing w = { .count = r->open_count,
				    .left = r->open_count,
				    .blocks = r->blocks };
	struct frag_pool_inferrer p;
	int rc;

	if (!r->open_count)
		return 0;
	w.ends = frag_host_calloc(w.count, sizeof(*w.ends));
	if (!w.ends)
		return frag_fail_nomem(err, "rewind");
	for (size_t i = 0; i < w.count; i++)
		w.ends[i] =
			(struct frag_narrow_end){ .addr = r->blocks[r->open[i].block].addr,
						  .min_bytes = r->blocks[r->open[i].block].bytes,
						  .max_bytes = r->open[i].max_bytes,
						  .block = r->open[i].block };
	qsort(w.ends, w.count, sizeof(*w.ends), end_order);
	frag_pools_init(&p, raw, stream_of, err);
	p.narrow = &w;
	rc = walk(&p, r);
	for (size_t i = 0; i < w.count && w.other_reason; i++)
		r->blocks[w.ends[i].block].bytes = w.ends[i].min_bytes;
	frag_pools_release(&p);
	frag_host_free(w.ends);
	return rc;
}
