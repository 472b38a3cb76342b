/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the PyTorch allocator from the state of a recording whose history
 * began late: segments with their occupied blocks are given, the space between
 * the blocks is free. Only current values of the statistics can be rebuilt.
 */
#include "pt.h"

struct restoring {
	struct pt *a;
	const struct frag_initial_state *initial;
	uint64_t *handles;
	struct frag_err *err;
};

static struct pt_seg *range_of(struct pt *a, const struct pt_set *set, frag_addr_t addr)
{
	for (struct pt_seg *g = a->segs; g; g = g->next)
		if (g->page && g->set == set && addr >= g->base && addr < g->base + g->bytes)
			return g;
	return NULL;
}

/* A new block behind `last` (or the first of the segment). */
static int append(struct restoring *s, struct pt_seg *g, struct pt_block **last, frag_addr_t addr,
		  uint64_t size, struct pt_block **out)
{
	FRAG_TRY(pt_room(s->a, 1, s->err));
	*out = pt_block_new(s->a, g, addr, size);
	if (*last)
		FRAG_LINK_AFTER(*last, *out);
	else
		g->first = *out;
	*last = *out;
	return 0;
}

static int append_free(struct restoring *s, struct pt_seg *g, struct pt_block **last,
		       frag_addr_t from, frag_addr_t to)
{
	struct pt_block *b;

	return from == to ? 0 : append(s, g, last, from, to - from, &b);
}

static void count_live(struct pt *a, const struct pt_block *b)
{
	struct pt_use *u = &a->st.use[b->kind];

	if (b->state == PT_WAITING) {
		u->waiting++;
		u->waiting_bytes += (int64_t)b->size;
		u->begun_waiting++;
		u->begun_waiting_bytes += (int64_t)b->size;
	} else if (b->size >= a->max_split) {
		pt_up(&a->st.oversize_allocations, 1);
	}
	pt_use_up(a, b);
}

/* Occupied blocks of one initial segment and the free space between them. */
static int append_blocks(struct restoring *s, const struct frag_initial_segment *sg,
			 struct pt_seg *g, struct pt_block **last)
{
	frag_addr_t at = sg->addr, end = sg->addr + sg->bytes;

	for (uint32_t i = sg->first_block; i < sg->first_block + sg->blocks_count; i++) {
		const struct frag_initial_block *sb = &s->initial->blocks[i];
		struct pt_block *b;

		if (sb->addr < at || sb->bytes > end - sb->addr)
			return frag_fail(s->err, FRAG_EINPUT, "initial blocks overlap at 0x%llx",
					 (unsigned long long)sb->addr);
		FRAG_TRY(append_free(s, g, last, at, sb->addr));
		FRAG_TRY(append(s, g, last, sb->addr, sb->bytes, &b));
		b->state = sb->waiting ? PT_WAITING : PT_LIVE;
		b->requested = sb->requested;
		s->handles[i] = (uintptr_t)b;
		count_live(s->a, b);
		at = sb->addr + sb->bytes;
	}
	return append_free(s, g, last, at, end);
}

/* The chain is complete: free blocks may now be told from split ones. */
static void insert_free(struct pt *a, struct pt_seg *g)
{
	for (struct pt_block *b = g->first; b; b = b->next) {
		if (b->state != PT_FREE)
			continue;
		pt_free_insert(a, b);
		if (!b->ranged && pt_is_split(b)) {
			pt_up2(a, b->kind, PT_INACTIVE_SPLIT, 1);
			pt_up2(a, b->kind, PT_INACTIVE_SPLIT_BYTES, (int64_t)b->size);
		}
	}
}

static int restore_segment(struct restoring *s, const struct frag_initial_segment *sg,
			   struct pt_set *set)
{
	struct pt *a = s->a;
	struct pt_seg *g = pt_seg_new(a, set, sg->bytes, 0);
	struct pt_block *last = NULL;
	unsigned kind = pt_kind_of(set->pool);
	frag_addr_t base;
	int rc;

	FRAG_CHECK_ALLOC(g, "pytorch: segment", s->err);
	rc = frag_dev_alloc(a->dev, sg->bytes, &base, s->err);
	if (rc) {
		pt_seg_drop(a, g);
		return rc;
	}
	pt_seg_place(a, g, base);
	if (base != sg->addr)
		return frag_fail(s->err, FRAG_EPOLICY,
				 "the device did not place an initial segment at 0x%llx",
				 (unsigned long long)sg->addr);
	FRAG_TRY(append_blocks(s, sg, g, &last));
	insert_free(a, g);
	a->total += sg->bytes;
	pt_up2(a, kind, PT_SEGMENT, 1);
	pt_up2(a, kind, PT_RESERVED_BYTES, (int64_t)sg->bytes);
	if (sg->bytes >= a->max_split)
		pt_up(&a->st.oversize_segments, 1);
	return 0;
}

/* The unmapped block of a range that holds addr. */
static struct pt_block *unmapped_at(struct pt_seg *g, frag_addr_t addr)
{
	struct pt_block *b = g->first;

	while (b && addr >= b->addr + b->size)
		b = b->next;
	return b && b->state == PT_UNMAPPED ? b : NULL;
}

/* Cuts the run [addr, addr + bytes) out of an unmapped block; *last: what stands before it. */
static int cut_run(struct restoring *s, struct pt_block *u, frag_addr_t addr, uint64_t bytes,
		   struct pt_block **before, struct pt_block **after)
{
	struct pt *a = s->a;
	frag_addr_t end = u->addr + u->size;

	if (addr + bytes > end)
		return frag_fail(s->err, FRAG_EINPUT, "initial segments overlap at 0x%llx",
				 (unsigned long long)addr);
	FRAG_TRY(pt_room(a, 3, s->err));
	pt_unmapped_erase(u);
	*before = u->prev;
	if (addr > u->addr) {
		struct pt_block *n = pt_block_new(a, u->seg, u->addr, addr - u->addr);

		FRAG_LINK_BEFORE(u->seg->first, u, n);
		pt_unmapped_insert(n);
		*before = n;
	}
	*after = u;
	u->rank = pt_rank_behind(a, u, addr + bytes - u->addr);
	u->addr = addr + bytes;
	u->size = end - u->addr;
	if (u->size) {
		pt_unmapped_insert(u);
		return 0;
	}
	*after = u->next;
	pt_unlink(a, u);
	return 0;
}

/*
 * Where the reservation of a run began. What the recording shows is its lowest
 * page known; if its first pages were given back before, it began lower:
 * reservations do not reach into the next one. Pages of the same set are of another one, if they
 * are not on its grid, or reach beyond its end. Where nothing is lower (addresses of
 * Windows and WSL), the card was smaller, and so was the reservation.
 */
static frag_addr_t range_base(const struct restoring *s, const struct frag_initial_segment *sg,
			      const struct pt_set *set, uint64_t *size)
{
	uint64_t page = pt_range_page(s->a, set->pool->small);
	uint64_t bytes = *size = pt_range_bytes(s->a, set->pool->small), lower;
	frag_addr_t base = sg->range_addr ? sg->range_addr : sg->addr;

	for (size_t i = 0; i < s->initial->segments_count; i++) {
		const struct frag_initial_segment *o = &s->initial->segments[i];
		frag_addr_t other = o->range_addr;
		bool same = o->stream == sg->stream && o->pool == sg->pool && o->small == sg->small;

		if (same && (o->addr - sg->addr) % page == 0 && o->addr + o->bytes <= base + bytes)
			continue;
		if (other <= base || other - base >= bytes)
			continue;
		lower = frag_round_up(bytes - (other - base), page);
		if (lower < base)
			base -= lower;
		else
			*size = FRAG_MIN(*size, FRAG_MAX((other - base) / page * page, page));
	}
	return base;
}

static int restore_run(struct restoring *s, const struct frag_initial_segment *sg,
		       struct pt_set *set)
{
	struct pt_seg *g = range_of(s->a, set, sg->addr);
	struct pt_block *u, *before = NULL, *after = NULL, *last;
	uint64_t bytes;

	if (!g) {
		frag_addr_t base = range_base(s, sg, set, &bytes);

		FRAG_TRY(pt_range_add(s->a, set, base, bytes, &u, s->err));
		g = u->seg;
	}
	u = unmapped_at(g, sg->addr);
	if (!u || g->base > sg->addr || (sg->addr - g->base) % g->page || sg->bytes % g->page ||
	    sg->bytes > u->addr + u->size - sg->addr)
		return frag_fail(s->err, FRAG_EINPUT,
				 "initial segment 0x%llx does not fit the page grid of its "
				 "reservation",
				 (unsigned long long)sg->addr);
	FRAG_TRY(pt_pages_map(s->a, g, sg->addr, sg->bytes, s->err));
	FRAG_TRY(cut_run(s, u, sg->addr, sg->bytes, &before, &after));
	last = before;
	FRAG_TRY(append_blocks(s, sg, g, &last));
	if (!before && after) {
		/* appended at the front: join the chains */
		last->next = after;
		after->prev = last;
	}
	s->a->total += sg->bytes;
	pt_up2(s->a, pt_kind_of(set->pool), PT_RESERVED_BYTES, (int64_t)sg->bytes);
	return 0;
}

int pt_restore(void *self, const struct frag_initial_state *initial, uint64_t *handles,
	       struct frag_err *err)
{
	struct restoring s = { .a = self, .initial = initial, .handles = handles, .err = err };

	for (size_t i = 0; i < initial->segments_count; i++) {
		const struct frag_initial_segment *sg = &initial->segments[i];
		struct pt_set *set;

		FRAG_TRY(pt_set_make(s.a, sg->pool, sg->small, sg->stream, &set, err));
		FRAG_TRY(sg->expandable ? restore_run(&s, sg, set) : restore_segment(&s, sg, set));
	}
	for (struct pt_seg *g = s.a->segs; g; g = g->next)
		if (g->page)
			insert_free(s.a, g);
	return pt_learn_begin(s.a, err);
}
