/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces, runs and regions of address space, see dali.h. */
#include "dali.h"

#include <string.h>

#include "lib/links.h"

int dali_room(struct dali *d, size_t more)
{
	return frag_slab_reserve(&d->pieces, more)
		       ?: frag_bset_nodes_reserve(&d->nodes,
						  2 * (frag_slab_live(&d->pieces) + more));
}

/* ---- chain -------------------------------------------------------------------------------- */

struct dali_piece *dali_split(struct dali *d, struct dali_piece *p, uint64_t bytes)
{
	struct dali_piece *rest = frag_slab_alloc(&d->pieces);

	*rest = (struct dali_piece){
		.addr = p->addr + bytes,
		.bytes = p->bytes - bytes,
		.state = p->state,
		.was = p->was,
	};
	FRAG_LINK_AFTER(p, rest);
	p->bytes = bytes;
	return rest;
}

void dali_join(struct dali *d, struct dali_piece *p)
{
	struct dali_piece *q = p->next;

	p->bytes += q->bytes;
	FRAG_UNLINK_NEXT(p);
	frag_slab_free(&d->pieces, q);
}

struct dali_piece *dali_cut(struct dali *d, struct dali_piece *p, frag_addr_t lo, frag_addr_t hi,
			    enum dali_state state)
{
	struct dali_piece *rest = p;

	if (lo > p->addr) {
		rest = dali_split(d, p, lo - p->addr);
		dali_give(d, p, state);
	}
	if (dali_end(rest) > hi)
		dali_give(d, dali_split(d, rest, hi - rest->addr), state);
	return rest;
}

/* ---- free pieces -------------------------------------------------------------------------- */

static void sets_insert(struct dali *d, struct dali_piece *p)
{
	if (p->state == DALI_HOLE) {
		frag_bset_insert(&d->holes, p->addr, 0, p);
		return;
	}
	frag_bset_insert(&d->mapped, p->bytes, p->addr, p);
	if (dali_whole(d, p))
		frag_bset_insert(&d->whole, p->addr, 0, p);
	d->whole_blocks += dali_whole(d, p);
}

static void sets_erase(struct dali *d, struct dali_piece *p)
{
	if (p->state == DALI_HOLE) {
		frag_bset_erase(&d->holes, p->addr, 0);
		return;
	}
	frag_bset_erase(&d->mapped, p->bytes, p->addr);
	if (dali_whole(d, p))
		frag_bset_erase(&d->whole, p->addr, 0);
	d->whole_blocks -= dali_whole(d, p);
}

void dali_take_out(struct dali *d, struct dali_piece *p)
{
	sets_erase(d, p);
	p->was = p->state;
	p->state = DALI_OUT;
}

void dali_give(struct dali *d, struct dali_piece *p, enum dali_state state)
{
	p->state = (uint8_t)state;
	if (p->next && p->next->state == state) {
		sets_erase(d, p->next);
		dali_join(d, p);
	}
	if (p->prev && p->prev->state == state) {
		p = p->prev;
		sets_erase(d, p);
		dali_join(d, p);
	}
	sets_insert(d, p);
}

struct dali_piece *dali_find_run(const struct dali *d, uint64_t bytes, uint64_t alignment,
				 frag_addr_t *at)
{
	struct frag_bset_node *pos = frag_bset_first(&d->holes);
	struct dali_piece *best = NULL;
	uint64_t best_bytes = UINT64_MAX;

	while (pos) {
		struct dali_piece *first = pos->value, *last = first;
		uint64_t pad, run;

		while (dali_is_free(first->prev))
			first = first->prev;
		while (dali_is_free(last->next))
			last = last->next;
		pad = -first->addr & (alignment - 1);
		run = dali_end(last) - first->addr;
		if (run >= bytes + pad && run < best_bytes) {
			best = first;
			best_bytes = run;
			*at = first->addr + pad;
		}
		pos = frag_bset_lower(&d->holes, dali_end(last), 0);
	}
	return best;
}

/* ---- regions ------------------------------------------------------------------------------ */

static uint64_t region_bytes(const struct dali *d, const struct dali_region *r)
{
	return r->blocks_count * d->block;
}

/* There are few: every reservation is at least twice the one before. */
struct dali_region *dali_region_of(const struct dali *d, frag_addr_t addr)
{
	struct dali_region *r = d->regions;

	while (addr < r->base || addr - r->base >= region_bytes(d, r))
		r++;
	return r;
}

/* The region that begins (or ends) at addr, or NULL. */
static struct dali_region *region_at(const struct dali *d, frag_addr_t addr, bool ends)
{
	for (size_t i = 0; i < d->regions_count; i++) {
		struct dali_region *r = &d->regions[i];

		if (r->base + (ends ? region_bytes(d, r) : 0) == addr)
			return r;
	}
	return NULL;
}

static struct dali_piece *last_of(const struct dali_region *r)
{
	struct dali_piece *p = r->first;

	while (p->next)
		p = p->next;
	return p;
}

/* Appends `count` block places to a region, empty, or those of `from`. */
static int extend_blocks(struct dali_region *r, size_t count, const struct dali_block *from)
{
	struct dali_block *blocks =
		frag_host_realloc(r->blocks, r->blocks_count + count, sizeof(*blocks));

	if (!blocks)
		return FRAG_ENOMEM;
	if (from)
		memcpy(blocks + r->blocks_count, from, count * sizeof(*blocks));
	else
		memset(blocks + r->blocks_count, 0, count * sizeof(*blocks));
	r->blocks = blocks;
	r->blocks_count += count;
	return 0;
}

/* The region behind joins the one that ends where it begins. Without memory they stay apart. */
static void append_next(struct dali *d, struct dali_region *r)
{
	struct dali_region *n = region_at(d, r->base + region_bytes(d, r), false);
	struct dali_piece *l = last_of(r), *p;

	if (!n || extend_blocks(r, n->blocks_count, n->blocks))
		return;
	p = n->first;
	l->next = p;
	p->prev = l;
	frag_host_free(n->blocks);
	d->regions_count--;
	memmove(n, n + 1, (size_t)(&d->regions[d->regions_count] - n) * sizeof(*n));
	/* what is alike on both sides of the seam becomes one piece */
	if (dali_is_free(p)) {
		dali_take_out(d, p);
		dali_give(d, p, p->was);
	}
}

/* Address space at `addr` becomes part of a region. Memory for the piece is there. */
static int add_space(struct dali *d, frag_addr_t addr, uint64_t bytes)
{
	struct dali_region *r = region_at(d, addr, true);
	struct dali_region fresh = { .base = addr };
	struct dali_piece *p;

	if (extend_blocks(r ? r : &fresh, bytes / d->block, NULL))
		return FRAG_ENOMEM;
	p = frag_slab_alloc(&d->pieces);
	*p = (struct dali_piece){ .addr = addr, .bytes = bytes, .state = DALI_OUT };
	if (r) {
		struct dali_piece *last = last_of(r);

		FRAG_LINK_AFTER(last, p);
	} else {
		r = &d->regions[d->regions_count++];
		*r = fresh;
		r->first = p;
	}
	dali_give(d, p, DALI_HOLE);
	append_next(d, r);
	return 0;
}

/* Room for one region and one range more. */
static int room_for_space(struct dali *d)
{
	size_t n = d->ranges_count + 1;
	struct dali_region *regions = frag_host_realloc(d->regions, n, sizeof(*regions));
	struct dali_range *ranges;

	if (!regions)
		return FRAG_ENOMEM;
	d->regions = regions;
	ranges = frag_host_realloc(d->ranges, n, sizeof(*ranges));
	if (!ranges)
		return FRAG_ENOMEM;
	d->ranges = ranges;
	return dali_room(d, 1);
}

int dali_reserve(struct dali *d, uint64_t bytes, struct frag_err *err)
{
	uint64_t size = FRAG_MAX(dali_next_pow2(bytes), d->initial_va);
	struct frag_device *dev = d->env.dev;
	frag_addr_t hint = 0, addr;

	if (d->ranges_count) {
		const struct dali_region *last = &d->regions[d->regions_count - 1];

		hint = last->base + region_bytes(d, last);
		size = FRAG_MAX(size, 2 * d->ranges[d->ranges_count - 1].bytes);
	}
	size = frag_round_up(size, d->block);
	if (size > 1ull << 46)
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(!room_for_space(d), "address space of dali-vm", err);
	FRAG_TRY(frag_dev_reserve(dev, size, hint, &addr, err));
	if (addr & (d->block - 1)) {
		/* places of blocks have to be aligned: take what is needed for that on top */
		FRAG_TRY(frag_dev_unreserve(dev, addr, size, err));
		FRAG_TRY(frag_dev_reserve(dev, size + d->block, 0, &addr, err));
		d->ranges[d->ranges_count] = (struct dali_range){ addr, size + d->block };
		addr = dali_ceil(d, addr);
	} else {
		d->ranges[d->ranges_count] = (struct dali_range){ addr, size };
	}
	if (add_space(d, addr, size)) {
		const struct dali_range *g = &d->ranges[d->ranges_count];

		frag_dev_unreserve(dev, g->addr, g->bytes, NULL);
		return frag_fail_nomem(err, "address space of dali-vm");
	}
	d->ranges_count++;
	return 0;
}
