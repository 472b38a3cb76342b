/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the sizes of the blocks in a rewound state.
 *
 * A block of the small pool or of an expandable segment has the size of its rounded request. In the
 * large pool it may have up to 1 MiB more, because a shorter rest is not split off: a shorter gap
 * after a block is part of it, and a longer gap shows nothing until a request is placed in it.
 * Where this stays open, the block gets its least size; resolving increases it if a request shows
 * that (src/verify/resolve_explain.c).
 *
 * Source of the split rule: PyTorch 2.11, should_split.
 */
#include "build_internal.h"
#include "lib/bisect.h"

#include <stdlib.h>
#include <string.h>

#define SLACK FRAG_MIB /* what a block of the large pool may have beyond its request */

/* A block of the large pool followed by more than SLACK: where does it end? */
struct open_end {
	frag_addr_t addr, low, high; /* the end lies in [low, high] */
	size_t block;
	bool known, gone; /* its end is known; it was freed before */
};

struct sizer {
	const struct frag_builder *b;
	const struct frag_raw_dev *raw;
	struct frag_trace_dev *out;
	const uint32_t *roundup;
	uint64_t max_split;
	struct open_end *open;
	size_t open_count, open_cap;
};

/* least: the bytes that it certainly has, more: those that it may have in addition. */
static uint64_t open_size(struct sizer *z, size_t block, uint64_t least, uint64_t more)
{
	struct frag_initial_block *s = &z->out->initial_blocks[block];

	if (FRAG_GROW(z->open, z->open_count, z->open_cap, "rewind", z->b->err))
		return 0;
	z->open[z->open_count++] = (struct open_end){ .addr = s->addr,
						      .low = s->addr + least,
						      .high = s->addr + least + more,
						      .block = block };
	return least;
}

static bool never_splits(const struct sizer *z, const struct frag_initial_segment *seg)
{
	return seg->pool && seg->pool < z->raw->pools_count &&
	       z->b->out->pools[seg->pool].b & FRAG_POOL_NO_SPLIT;
}

/* Of a block with `gap` bytes between its rounded request and the next one; 0: short of memory. */
static uint64_t size_of(struct sizer *z, const struct frag_initial_segment *seg, size_t block,
			uint64_t rounded, uint64_t gap)
{
	if (never_splits(z, seg)) {
		uint64_t page = seg->small ? FRAG_PAGE : frag_torch_large_segment(z->raw->settings);
		uint64_t least = frag_round_up(rounded, page);

		if (!seg->expandable || least >= rounded + gap)
			return rounded + gap;
		return open_size(z, block, least, rounded + gap - least);
	}
	if (seg->small || seg->expandable)
		return rounded;
	if (rounded >= z->max_split || gap <= SLACK)
		return rounded + gap;
	return open_size(z, block, rounded, SLACK);
}

/* Blocks [first, first + n) lie in seg; known sizes are kept, the others follow from the gaps. */
static int size_blocks(struct sizer *z, const struct frag_initial_segment *seg)
{
	struct frag_trace_dev *out = z->out;
	frag_addr_t end = seg->addr + seg->bytes;

	for (size_t i = seg->first_block; i < seg->first_block + seg->blocks_count; i++) {
		struct frag_initial_block *s = &out->initial_blocks[i];
		bool last = i + 1 == seg->first_block + seg->blocks_count;
		frag_addr_t next = last ? end : out->initial_blocks[i + 1].addr;
		uint64_t rounded = s->bytes ? s->bytes : frag_torch_round(s->requested, z->roundup);

		/* not rounded as under these settings: following it will show the difference */
		if (!s->bytes && rounded > next - s->addr)
			rounded = FRAG_MAX(frag_torch_round(s->requested, NULL),
					   FRAG_MIN(rounded, next - s->addr));
		if (rounded > next - s->addr)
			return frag_fail(z->b->err, FRAG_EINPUT,
					 "device %u: blocks that were live at the start overlap at "
					 "0x%llx",
					 z->raw->ordinal, (unsigned long long)next);
		if (s->bytes)
			continue;
		s->bytes = size_of(z, seg, i, rounded, next - s->addr - rounded);
		if (!s->bytes)
			return FRAG_ENOMEM;
	}
	return 0;
}

FRAG_COMPARE(open_order, struct open_end, FRAG_ORDER(x->addr, y->addr))

/* The open end with the largest addr <= at. */
static struct open_end *open_below(struct sizer *z, frag_addr_t at)
{
	size_t above;

	FRAG_BISECT(above, 0, z->open_count, z->open[above].addr <= at);
	return above ? &z->open[above - 1] : NULL;
}

/* Requests are placed at the low end of a free block: while a block is live, the first one after
 * its certain part shows where it ends. Returns how many blocks stay open. */
static size_t bound_open(struct sizer *z)
{
	const struct frag_raw_dev *raw = z->raw;
	size_t uncertain = z->open_count, left = uncertain;

	if (left)
		qsort(z->open, left, sizeof(*z->open), open_order);
	for (size_t i = 0; i < raw->entries_count && left; i++) {
		const struct frag_raw_entry *e = &raw->entries[i];
		bool gone = e->action == FRAG_RAW_FREE || e->action == FRAG_RAW_FREE_COMPLETED ||
			    (frag_lacks_completed(z->b) && e->action == FRAG_RAW_FREE_REQUESTED);
		struct open_end *o;

		if (e->action != FRAG_RAW_ALLOC && !gone)
			continue;
		o = open_below(z, e->addr);
		if (!o || o->known || o->gone)
			continue;
		if (gone ? e->addr != o->addr : e->addr < o->low || e->addr > o->high)
			continue;
		if (gone) {
			o->gone = true;
		} else {
			z->out->initial_blocks[o->block].bytes = e->addr - o->addr;
			o->known = true;
			uncertain--;
		}
		left--;
	}
	return uncertain;
}

int frag_rewind_sizes(const struct frag_builder *b)
{
	struct frag_trace_dev *out = b->out;
	const struct frag_trace_settings *set = b->raw->settings;
	struct sizer z = { .b = b,
			   .raw = b->raw,
			   .out = out,
			   .roundup = set ? set->roundup : NULL,
			   .max_split = set && set->present ? set->max_split_bytes : UINT64_MAX };
	int rc = 0;

	for (size_t i = 0; i < out->initial.segments_count && !rc; i++)
		rc = size_blocks(&z, &out->initial_segments[i]);
	if (!rc)
		out->uncertain_blocks = bound_open(&z);
	frag_host_free(z.open);
	return rc;
}

uint64_t frag_torch_round(uint64_t n, const uint32_t *roundup16)
{
	uint64_t d, unit, floor;
	unsigned log;

	if (n < 512)
		return 512;
	log = frag_log2(n);
	d = roundup16 ? roundup16[FRAG_MIN(log < 20 ? 0u : log - 20u, 15u)] : 0;
	if (d > 1 && n / 512 >= d && n > 512 * d) {
		if (frag_is_pow2(n))
			return n;
		floor = 1ull << log;
		unit = floor >> frag_log2(d);
		return frag_round_up(n, unit);
	}
	return frag_round_up(n, 512);
}

uint64_t frag_torch_large_segment(const struct frag_trace_settings *settings)
{
	const char *key = "large_segment_size_mb:";
	const char *conf = settings ? settings->conf : NULL;
	const char *at = conf ? strstr(conf, key) : NULL;
	uint64_t mib = at ? strtoull(at + strlen(key), NULL, 10) : 0;

	return FRAG_MIB * (mib && mib <= 1u << 20 ? mib : 20);
}
