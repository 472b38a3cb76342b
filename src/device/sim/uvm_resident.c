/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which managed memory of a real card is resident (see uvm_resident.h).
 *
 * A touch begins at the start of its request. So in a region with a single request, the resident
 * groups are always the first ones: a subtree that a fault completes contains a touched group, and
 * all groups before it are touched as well. One number per request is enough; only regions shared
 * by small requests need masks.
 *
 * Invariant: the roots in use are the cut ones, the non-tail blocks with a resident group, and the
 * pages with one.
 */
#include "uvm_resident.h"

void frag_uvm_resident_init(struct uvm_resident *b)
{
	*b = (struct uvm_resident){ 0 };
	frag_slab_init(&b->piece_slab, sizeof(struct uvm_piece));
	frag_slab_init(&b->page_slab, sizeof(struct uvm_page));
	frag_uvmroots_init(&b->roots);
}

void frag_uvm_resident_release(struct uvm_resident *b)
{
	frag_addr_map_release(&b->live);
	frag_addr_map_release(&b->pages);
	frag_slab_release(&b->piece_slab);
	frag_slab_release(&b->page_slab);
	frag_uvmroots_release(&b->roots);
	frag_uvm_resident_init(b);
}

bool frag_uvm_resident_reserve(struct uvm_resident *b)
{
	return !frag_slab_reserve(&b->piece_slab, 1) && !frag_addr_map_reserve(&b->live) &&
	       !frag_slab_reserve(&b->page_slab, 1) && !frag_addr_map_reserve(&b->pages) &&
	       frag_uvmroots_reserve(&b->roots);
}

/* ---- regions ------------------------------------------------------------------- */

/* Groups of a region before its tail. A region ends at a host page, not at a group. */
static uint64_t before_tail(const struct uvm_piece *p)
{
	return frag_round_up(p->bytes, UVM_PAGE) / UVM_BLOCK * UVM_GROUPS;
}

/* Blocks, without the tail, that contain one of the first `groups` groups of a region. */
static uint64_t blocks_begun(const struct uvm_piece *p, uint64_t groups)
{
	return (FRAG_MIN(groups, before_tail(p)) + UVM_GROUPS - 1) / UVM_GROUPS;
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

/* Group i, one of the tail. */
static void take_group(struct uvm_resident *b, struct uvm_piece *p, uint64_t i)
{
	uint64_t bytes = FRAG_MIN(frag_round_up(p->bytes, UVM_PAGE) - i * UVM_GROUP, UVM_GROUP);

	if (bytes == UVM_GROUP)
		frag_uvmroots_take_chunk(&b->roots, UVM_CHUNK_GROUP, &p->tail);
	else
		for (; bytes; bytes -= UVM_PAGE)
			frag_uvmroots_take_chunk(&b->roots, UVM_CHUNK_PAGE, &p->tail);
}

static void touch_own(struct uvm_resident *b, struct uvm_piece *p, uint64_t end, bool prefetch)
{
	uint64_t tail = before_tail(p);

	if (end <= p->groups)
		return;
	if (!prefetch)
		end = faulted(p, end);
	frag_uvmroots_take(&b->roots, blocks_begun(p, end) - blocks_begun(p, p->groups));
	for (uint64_t i = FRAG_MAX(p->groups, tail); i < end; i++)
		take_group(b, p, i);
	b->resident_bytes += (end - p->groups) * UVM_GROUP;
	p->groups = end;
}

static void touch_page(struct uvm_resident *b, struct uvm_page *page, uint32_t want, bool prefetch)
{
	want &= ~page->resident;
	if (!want)
		return;
	if (!page->resident)
		frag_uvmroots_take(&b->roots, 1);
	if (!prefetch)
		want = frag_uvm_dense(UINT32_MAX, page->resident, want);
	page->resident |= want;
	b->resident_bytes += frag_uvm_count(want) * UVM_GROUP;
}

void frag_uvm_resident_touch(struct uvm_resident *b, frag_addr_t addr, uint64_t bytes,
			     bool prefetch)
{
	struct uvm_piece *p = frag_addr_map_get(&b->live, addr);
	uint64_t at = addr % UVM_BLOCK;

	if (p->page)
		touch_page(b, p->page, frag_uvm_mask(at / UVM_GROUP, frag_uvm_groups(at + bytes)),
			   prefetch);
	else
		touch_own(b, p, frag_uvm_groups(bytes), prefetch);
}

/* ---- requests ------------------------------------------------------------------ */

static struct uvm_page *page_of(struct uvm_resident *b, uint64_t number)
{
	struct uvm_page *page = frag_addr_map_get(&b->pages, number);

	if (page)
		return page;
	page = frag_slab_alloc(&b->page_slab);
	*page = (struct uvm_page){ 0 };
	frag_addr_map_put(&b->pages, number, page);
	return page;
}

void frag_uvm_resident_add(struct uvm_resident *b, frag_addr_t addr, uint64_t bytes)
{
	struct uvm_piece *p = frag_slab_alloc(&b->piece_slab);

	*p = (struct uvm_piece){ .bytes = bytes };
	frag_addr_map_put(&b->live, addr, p);
	/* on known cards, a request up to 2 MiB never crosses a page, or has its own region */
	if (addr % UVM_BLOCK + bytes <= UVM_BLOCK) {
		p->page = page_of(b, addr / UVM_BLOCK);
		p->page->live_count++;
	}
}

void frag_uvm_resident_free(struct uvm_resident *b, frag_addr_t addr)
{
	struct uvm_piece *p = frag_addr_map_take(&b->live, addr);
	struct uvm_page *page = p->page;

	b->resident_bytes -= p->groups * UVM_GROUP;
	frag_uvmroots_give(&b->roots, blocks_begun(p, p->groups));
	frag_uvmroots_give_chunks(&b->roots, &p->tail);
	if (page && !--page->live_count) {
		b->resident_bytes -= frag_uvm_count(page->resident) * UVM_GROUP;
		frag_uvmroots_give(&b->roots, page->resident != 0);
		frag_addr_map_take(&b->pages, addr / UVM_BLOCK);
		frag_slab_free(&b->page_slab, page);
	}
	frag_slab_free(&b->piece_slab, p);
}
