/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rewound state does not say by itself: how long its blocks are, and
 * which pages belong together.
 *
 * A block of the small pool or of an expandable segment is its rounded request.
 * In the large pool it may own up to 1 MiB more, because a rest that short
 * is not split off: so a shorter gap behind a block is its own, and a
 * longer one tells nothing until somebody allocates in it. What stays open begins
 * with the least size; resolving makes it longer where a request shows that (src/verify/ends.h).
 *
 * Source of the split rule: PyTorch 2.11, should_split.
 */
#include "rewind.h"
#include "lib/bisect.h"

#include <stdlib.h>
#include <string.h>

#define RANGE_MAX (1ull << 38) /* no reservation is longer: 9/8 of the card, 169 GB on an H200 */
#define SLACK FRAG_MIB /* what a block of the large pool may own beyond its rounded request */

/* A block of the large pool with more than SLACK behind it: where does it end? */
struct open_end {
	frag_addr_t addr, low, high; /* the end lies in [low, high] */
	size_t block;
	bool known, gone; /* its end is known; it was freed before */
};

struct sizer {
	const struct frag_raw_dev *raw;
	struct frag_rewound *out;
	struct frag_err *err;
	bool no_completed;
	const uint32_t *roundup;
	uint64_t max_split;
	struct open_end *open;
	size_t open_count, open_cap;
};

static uint64_t open_size(struct sizer *z, size_t block, uint64_t rounded, uint64_t gap)
{
	struct frag_initial_block *s = &z->out->blocks[block];

	if (gap <= SLACK)
		return rounded + gap;
	if (FRAG_GROW(z->open, z->open_count, z->open_cap, "rewind", z->err))
		return 0;
	z->open[z->open_count++] = (struct open_end){ .addr = s->addr,
						      .low = s->addr + rounded,
						      .high = s->addr + rounded + SLACK,
						      .block = block };
	return rounded;
}

/* Blocks [first, first + n) lie in seg; known sizes are kept, the others follow from the gaps. */
static int size_blocks(struct sizer *z, const struct frag_initial_segment *seg)
{
	struct frag_rewound *out = z->out;
	frag_addr_t end = seg->addr + seg->bytes;

	for (size_t i = seg->first_block; i < seg->first_block + seg->blocks_count; i++) {
		struct frag_initial_block *s = &out->blocks[i];
		bool last = i + 1 == seg->first_block + seg->blocks_count;
		frag_addr_t next = last ? end : out->blocks[i + 1].addr;
		uint64_t rounded = s->bytes ? s->bytes : frag_torch_round(s->requested, z->roundup);

		if (rounded > next - s->addr)
			return frag_fail(z->err, FRAG_EINPUT,
					 "device %u: blocks that were live at the start overlap at "
					 "0x%llx",
					 z->raw->ordinal, (unsigned long long)next);
		if (s->bytes)
			continue;
		if (seg->small || seg->expandable)
			s->bytes = rounded;
		else if (rounded >= z->max_split)
			s->bytes = next - s->addr;
		else
			s->bytes = open_size(z, i, rounded, next - s->addr - rounded);
		if (!s->bytes)
			return FRAG_ENOMEM;
	}
	return 0;
}

static int open_order(const void *a, const void *b)
{
	const struct open_end *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The open end with the largest addr <= at. */
static struct open_end *open_below(struct sizer *z, frag_addr_t at)
{
	size_t above;

	FRAG_BISECT(above, 0, z->open_count, z->open[above].addr <= at);
	return above ? &z->open[above - 1] : NULL;
}

/*
 * Allocations start at the low end of a free block, so the first one that
 * lands in the doubtful part while the block still lives shows where it ends. Returns how many
 * stay open.
 */
static size_t bound_open(struct sizer *z)
{
	const struct frag_raw_dev *raw = z->raw;
	size_t uncertain = z->open_count, left = uncertain;

	if (left)
		qsort(z->open, left, sizeof(*z->open), open_order);
	for (size_t i = 0; i < raw->entries_count && left; i++) {
		const struct frag_raw_entry *e = &raw->entries[i];
		bool gone = e->action == FRAG_RAW_FREE || e->action == FRAG_RAW_FREE_COMPLETED ||
			    (z->no_completed && e->action == FRAG_RAW_FREE_REQUESTED);
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
			z->out->blocks[o->block].bytes = e->addr - o->addr;
			o->known = true;
			uncertain--;
		}
		left--;
	}
	return uncertain;
}

/* ---- expandable segments ------------------------------------------------------ */

static int final_order(const void *a, const void *b)
{
	const struct frag_raw_segment *x = *(const struct frag_raw_segment *const *)a;
	const struct frag_raw_segment *y = *(const struct frag_raw_segment *const *)b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/*
 * Pages that were unmapped later have no final segment that tells their kind: a
 * run that holds only small blocks is of the small pool.
 */
static int guess_kinds(struct sizer *z)
{
	const struct frag_raw_dev *raw = z->raw;
	struct frag_rewound *out = z->out;
	const struct frag_raw_segment **finals;
	size_t next = 0;

	finals = frag_host_realloc(NULL, raw->segments_count, sizeof(*finals));
	if (!finals)
		return frag_fail_nomem(z->err, "rewind");
	for (size_t i = 0; i < raw->segments_count; i++)
		finals[i] = &raw->segments[i];
	if (raw->segments_count)
		qsort(finals, raw->segments_count, sizeof(*finals), final_order);
	for (size_t i = 0; i < out->segments_count; i++) {
		struct frag_initial_segment *s = &out->segments[i];
		bool large = false;

		while (next < raw->segments_count &&
		       finals[next]->addr + finals[next]->bytes <= s->addr)
			next++;
		if (!s->expandable || !s->blocks_count ||
		    (next < raw->segments_count && finals[next]->addr < s->addr + s->bytes))
			continue;
		for (size_t k = s->first_block; k < s->first_block + s->blocks_count; k++)
			large |= out->blocks[k].requested > FRAG_MIB;
		s->small = !large;
	}
	frag_host_free(finals);
	return 0;
}

static int range_order(const void *a, const void *b)
{
	const struct frag_initial_segment *x = *(struct frag_initial_segment *const *)a;
	const struct frag_initial_segment *y = *(struct frag_initial_segment *const *)b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->pool != y->pool)
		return x->pool - y->pool;
	if (x->small != y->small)
		return x->small - y->small;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The lowest run of a stream, pool and kind is taken as the base of its reservation. */
static int guess_bases(struct sizer *z)
{
	struct frag_rewound *out = z->out;
	struct frag_initial_segment **runs =
		frag_host_realloc(NULL, out->segments_count, sizeof(*runs));
	size_t n = 0;

	if (!runs)
		return frag_fail_nomem(z->err, "rewind");
	for (size_t i = 0; i < out->segments_count; i++)
		if (out->segments[i].expandable)
			runs[n++] = &out->segments[i];
	if (n)
		qsort(runs, n, sizeof(*runs), range_order);
	for (size_t i = 0; i < n; i++) {
		const struct frag_initial_segment *before = i ? runs[i - 1] : NULL;
		bool same = before && before->stream == runs[i]->stream &&
			    before->pool == runs[i]->pool && before->small == runs[i]->small &&
			    runs[i]->addr - before->range_addr < RANGE_MAX;

		runs[i]->range_addr = same ? before->range_addr : runs[i]->addr;
	}
	frag_host_free(runs);
	return 0;
}

int frag_rewind_sizes(const struct frag_raw_dev *raw, bool no_completed, struct frag_rewound *out,
		      struct frag_err *err)
{
	const struct frag_trace_settings *set = raw->settings;
	struct sizer z = { .raw = raw,
			   .out = out,
			   .err = err,
			   .no_completed = no_completed,
			   .roundup = set ? set->roundup : NULL,
			   .max_split = set && set->present ? set->max_split_bytes : UINT64_MAX };
	int rc;

	FRAG_TRY(guess_kinds(&z));
	FRAG_TRY(guess_bases(&z));
	rc = 0;
	for (size_t i = 0; i < out->segments_count && !rc; i++)
		rc = size_blocks(&z, &out->segments[i]);
	if (!rc)
		out->uncertain = bound_open(&z);
	frag_host_free(z.open);
	return rc;
}
