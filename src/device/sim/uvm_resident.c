/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which managed memory of a real card is resident (see uvm_resident.h).
 *
 * A touch begins at the start of its request. So in a region with a single request, the resident
 * groups are always the first ones: a subtree that a fault completes contains a touched group, and
 * all groups before it are touched as well. One number per request is enough; only regions shared
 * by small requests need masks.
 */
#include "uvm_resident.h"

#include "uvm_groups.h"

#define ONE_MORE (1ull << 32) /* live request of a shared region */

void frag_uvm_resident_init(struct uvm_resident *b)
{
	*b = (struct uvm_resident){ 0 };
	frag_slab_init(&b->piece_slab, sizeof(struct uvm_piece));
}

void frag_uvm_resident_release(struct uvm_resident *b)
{
	frag_addr_map_release(&b->live);
	frag_addr_map_release(&b->pages);
	frag_slab_release(&b->piece_slab);
	frag_uvm_resident_init(b);
}

bool frag_uvm_resident_reserve(struct uvm_resident *b)
{
	return !frag_slab_reserve(&b->piece_slab, 1) && !frag_addr_map_reserve(&b->live) &&
	       !frag_addr_map_reserve(&b->pages);
}

/* Resident groups of a region after a fault on its first `end`. pre: end > p->groups. */
static uint64_t faulted(const struct uvm_piece *p, uint64_t end)
{
	uint64_t block = (end - 1) / UVM_GROUPS, start = block * UVM_GROUPS;
	uint32_t valid = frag_uvm_valid(frag_uvm_groups(p->bytes), block);
	uint64_t there = FRAG_MAX(p->groups, start) - start;
	uint32_t want = frag_uvm_mask(there, end - start);

	/* blocks before the last are wanted as a whole, so nothing is added to them */
	return start + there + frag_uvm_count(frag_uvm_dense(valid, frag_uvm_mask(0, there), want));
}

static void touch_own(struct uvm_resident *b, struct uvm_piece *p, uint64_t end, bool prefetch)
{
	if (end <= p->groups)
		return;
	if (!prefetch)
		end = faulted(p, end);
	b->resident_bytes += (end - p->groups) * UVM_GROUP;
	p->groups = end;
}

static void touch_shared(struct uvm_resident *b, struct frag_addr_cell *page, uint32_t want,
			 bool prefetch)
{
	uint32_t resident = (uint32_t)page->value;

	want &= ~resident;
	if (want && !prefetch)
		want = frag_uvm_dense(UINT32_MAX, resident, want);
	page->value |= want;
	b->resident_bytes += frag_uvm_count(want) * UVM_GROUP;
}

void frag_uvm_resident_touch(struct uvm_resident *b, frag_addr_t addr, uint64_t bytes,
			     bool prefetch)
{
	struct uvm_piece *p = frag_addr_map_get(&b->live, addr);
	uint64_t at = addr % UVM_BLOCK;

	if (p->shares)
		touch_shared(b, frag_addr_map_find(&b->pages, addr / UVM_BLOCK),
			     frag_uvm_mask(at / UVM_GROUP, frag_uvm_groups(at + bytes)), prefetch);
	else
		touch_own(b, p, frag_uvm_groups(bytes), prefetch);
}

void frag_uvm_resident_add(struct uvm_resident *b, frag_addr_t addr, uint64_t bytes)
{
	struct uvm_piece *p = frag_slab_alloc(&b->piece_slab);
	struct frag_addr_cell *page;

	/* on known cards, a request up to 2 MiB never crosses a page, or has its own region */
	*p = (struct uvm_piece){ .bytes = bytes, .shares = addr % UVM_BLOCK + bytes <= UVM_BLOCK };
	frag_addr_map_put(&b->live, addr, p);
	if (!p->shares)
		return;
	page = frag_addr_map_find(&b->pages, addr / UVM_BLOCK);
	if (page)
		page->value += ONE_MORE;
	else
		frag_addr_map_add(&b->pages, addr / UVM_BLOCK, ONE_MORE);
}

void frag_uvm_resident_free(struct uvm_resident *b, frag_addr_t addr)
{
	struct uvm_piece *p = frag_addr_map_take(&b->live, addr);
	struct frag_addr_cell *page =
		p->shares ? frag_addr_map_find(&b->pages, addr / UVM_BLOCK) : NULL;

	b->resident_bytes -= p->groups * UVM_GROUP;
	if (page && page->value >= 2 * ONE_MORE) {
		page->value -= ONE_MORE;
	} else if (page) {
		b->resident_bytes -= frag_uvm_count((uint32_t)page->value) * UVM_GROUP;
		frag_addr_map_remove(&b->pages, page);
	}
	frag_slab_free(&b->piece_slab, p);
}
