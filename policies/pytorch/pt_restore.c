/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the PyTorch allocator from the state of a recording whose history
 * began late: segments with their occupied blocks are given, the space between
 * the blocks is free. Only current values of the statistics can be rebuilt.
 */
#include "pt.h"

static void count_live(struct pt *a, const struct pt_block *b)
{
	struct pt_use *u = &a->st.use[b->kind];

	if (b->state == PT_WAITING) {
		u->waiting[PT_BLOCKS]++;
		u->waiting[PT_BYTES] += (int64_t)b->size;
		u->begun_waiting[PT_BLOCKS]++;
		u->begun_waiting[PT_BYTES] += (int64_t)b->size;
	} else if (b->size >= a->max_split) {
		pt_up(&a->st.oversize_allocations, 1);
	}
	pt_use_up(a, b);
}

static void let_free(struct pt *a, struct pt_block *b)
{
	pt_free_insert(a, b);
	if (b->ranged || !pt_is_split(b))
		return;
	pt_up2(a, b->kind, PT_INACTIVE_SPLIT, 1);
	pt_up2(a, b->kind, PT_INACTIVE_SPLIT_BYTES, (int64_t)b->size);
}

/* The occupied blocks of an initial segment, out of a free block around it that is in no set. */
static int occupy(struct pt *a, struct pt_block *b, const struct frag_initial_segment *sg,
		  const struct frag_initial_state *initial, uint64_t *handles, struct frag_err *err)
{
	for (uint32_t i = sg->first_block; i < sg->first_block + sg->blocks_count; i++) {
		const struct frag_initial_block *sb = &initial->blocks[i];
		struct pt_block *rest = NULL;

		if (!b || sb->addr < b->addr || sb->bytes > sg->addr + sg->bytes - sb->addr)
			return FRAG_INPUT(err, "initial blocks overlap at 0x%llx",
					  (unsigned long long)sb->addr);
		FRAG_TRY(pt_room(a, 2, err));
		if (sb->addr > b->addr) {
			struct pt_block *before = b;

			b = pt_cut_tail(a, before, sb->addr);
			let_free(a, before);
		}
		if (sb->bytes < b->size)
			rest = pt_cut_tail(a, b, sb->addr + sb->bytes);
		b->state = sb->waiting ? PT_WAITING : PT_LIVE;
		b->requested = sb->requested;
		handles[i] = (uintptr_t)b;
		count_live(a, b);
		b = rest;
	}
	if (b)
		let_free(a, b);
	return 0;
}

static int restore_segment(struct pt *a, const struct frag_initial_segment *sg, struct pt_set *set,
			   struct pt_block **out, struct frag_err *err)
{
	FRAG_TRY(pt_segment_add(a, set, sg->bytes, out, err));
	return (*out)->addr == sg->addr
		       ? 0
		       : frag_fail(err, FRAG_EPOLICY,
				   "the device did not place an initial segment at 0x%llx",
				   (unsigned long long)sg->addr);
}

static bool in_range(const struct pt *a, const struct pt_set *set, frag_addr_t addr)
{
	for (const struct pt_seg *g = a->segs; g; g = g->next)
		if (g->page && g->set == set && addr >= g->base && addr - g->base < g->bytes)
			return true;
	return false;
}

/*
 * Where the reservation of a run began. What the recording shows is its lowest
 * page known; if its first pages were given back before, it began lower:
 * reservations do not reach into the next one. Pages of the same set are of another one, if they
 * are not on its grid, or reach beyond its end. Where nothing is lower (addresses of
 * Windows and WSL), the card was smaller, and so was the reservation.
 */
static frag_addr_t range_base(const struct pt *a, const struct frag_initial_state *initial,
			      const struct frag_initial_segment *sg, uint64_t *size)
{
	uint64_t page = pt_range_page(a, sg->small);
	uint64_t bytes = *size = pt_range_bytes(a, sg->small), lower;
	frag_addr_t base = sg->range_addr ? sg->range_addr : sg->addr;

	for (size_t i = 0; i < initial->segments_count; i++) {
		const struct frag_initial_segment *o = &initial->segments[i];
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

/* Maps a run of pages, which is free and in no set then. */
static int restore_run(struct pt *a, const struct frag_initial_state *initial,
		       const struct frag_initial_segment *sg, struct pt_set *set,
		       struct pt_block **out, struct frag_err *err)
{
	frag_addr_t end = sg->addr + sg->bytes;
	struct pt_block *u;
	uint64_t bytes;

	if (!in_range(a, set, sg->addr)) {
		frag_addr_t base = range_base(a, initial, sg, &bytes);

		FRAG_TRY(pt_range_add(a, set, base, bytes, &u, err));
	}
	u = frag_bset_value(frag_bset_below(&set->unmapped, 0, sg->addr + 1));
	if (!u || sg->addr - u->addr >= u->size || (sg->addr - u->seg->base) % u->seg->page ||
	    sg->bytes % u->seg->page || sg->bytes > u->addr + u->size - sg->addr)
		return FRAG_INPUT(
			err, "initial segment 0x%llx does not fit the page grid of its reservation",
			(unsigned long long)sg->addr);
	FRAG_TRY(pt_room(a, 3, err));
	pt_unmapped_erase(u);
	if (sg->addr > u->addr)
		pt_unmapped_insert(pt_cut_front(a, u, sg->addr));
	*out = u;
	if (end < u->addr + u->size) {
		*out = pt_cut_front(a, u, end);
		pt_unmapped_insert(u);
	}
	pt_unmapped_insert(*out);
	FRAG_TRY(pt_range_map(a, *out, sg->bytes, err));
	pt_free_erase(a, *out);
	return 0;
}

int pt_restore(void *self, const struct frag_initial_state *initial, uint64_t *handles,
	       struct frag_err *err)
{
	struct pt *a = self;

	for (size_t i = 0; i < initial->segments_count; i++) {
		const struct frag_initial_segment *sg = &initial->segments[i];
		struct pt_set *set;
		struct pt_block *b;

		FRAG_TRY(pt_set_make(a, sg->pool, sg->small, sg->stream, &set, err));
		FRAG_TRY(sg->expandable ? restore_run(a, initial, sg, set, &b, err)
					: restore_segment(a, sg, set, &b, err));
		FRAG_TRY(occupy(a, b, sg, initial, handles, err));
	}
	return pt_learn_begin(a, err);
}
