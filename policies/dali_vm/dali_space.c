/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces, runs and regions of address space, see dali.h. */
#include "dali.h"

#include <string.h>

#include "lib/links.h"

int dali_room(struct dali *d, size_t more)
{
	return frag_slab_reserve(&d->pieces, more)
		       ?: frag_bset_nodes_reserve(&d->nodes,
						  4 * (frag_slab_live(&d->pieces) + more));
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

/* ---- runs --------------------------------------------------------------------------------- */

/* A mapped piece is in a run if a neighbour is free, because that is a hole then. */
static bool in_run(const struct dali_piece *p)
{
	return p->state == DALI_HOLE || dali_is_free(p->prev) || dali_is_free(p->next);
}

static uint64_t run_bytes(const struct dali_piece *first)
{
	return dali_end(first->run_last) - first->addr;
}

/* Takes the run of a free piece out of the sets; returns its first piece. */
static struct dali_piece *dissolve(struct dali *d, const struct dali_piece *p)
{
	struct frag_bset_node *at = frag_bset_below(&d->runs_at, p->addr + 1, 0);
	struct dali_piece *first = at->value;

	frag_bset_erase_at(&d->runs_at, at);
	frag_bset_erase(&d->runs, run_bytes(first), first->addr);
	return first;
}

/* Puts the run of free pieces from first to last into the sets, if there is a hole in it. */
static void form(struct dali *d, struct dali_piece *first, struct dali_piece *last)
{
	if (first == last && first->state == DALI_MAPPED)
		return;
	first->run_last = last;
	frag_bset_insert(&d->runs, run_bytes(first), first->addr, first);
	frag_bset_insert(&d->runs_at, first->addr, 0, first);
}

struct dali_piece *dali_find_run(const struct dali *d, uint64_t bytes, uint64_t alignment,
				 frag_addr_t *at)
{
	struct frag_bset_node *pos = frag_bset_lower(&d->runs, bytes, 0);

	for (; pos; pos = frag_bset_next(&d->runs, pos)) {
		struct dali_piece *first = pos->value;
		uint64_t pad = -first->addr & (alignment - 1);

		if (pos->by.key < bytes + pad)
			continue;
		*at = first->addr + pad;
		return first;
	}
	return NULL;
}

/* ---- free pieces -------------------------------------------------------------------------- */

static void sets_insert(struct dali *d, struct dali_piece *p)
{
	if (p->state == DALI_HOLE) {
		d->holes_count++;
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
		d->holes_count--;
		return;
	}
	frag_bset_erase(&d->mapped, p->bytes, p->addr);
	if (dali_whole(d, p))
		frag_bset_erase(&d->whole, p->addr, 0);
	d->whole_blocks -= dali_whole(d, p);
}

void dali_take_out(struct dali *d, struct dali_piece *p)
{
	struct dali_piece *first, *last;

	sets_erase(d, p);
	p->was = p->state;
	if (FRAG_LIKELY(!in_run(p))) {
		p->state = DALI_OUT;
		return;
	}
	first = dissolve(d, p);
	last = first->run_last;
	p->state = DALI_OUT;
	if (first != p)
		form(d, first, p->prev);
	if (last != p)
		form(d, p->next, last);
}

void dali_give(struct dali *d, struct dali_piece *p, enum dali_state state)
{
	struct dali_piece *l = dali_is_free(p->prev) ? p->prev : NULL;
	struct dali_piece *r = dali_is_free(p->next) ? p->next : NULL;
	struct dali_piece *first = p, *last = p;

	/* p is not free yet, so in_run and dissolve see l and r as ends */
	if (l)
		first = in_run(l) ? dissolve(d, l) : l;
	if (r) {
		last = r;
		if (in_run(r)) {
			dissolve(d, r);
			last = r->run_last;
		}
	}
	p->state = (uint8_t)state;
	if (l && l->state == state) {
		sets_erase(d, l);
		last = last == p ? l : last;
		p = l;
		dali_join(d, p);
	}
	if (r && r->state == state) {
		sets_erase(d, r);
		last = last == r ? p : last;
		dali_join(d, p);
	}
	sets_insert(d, p);
	form(d, first, last);
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
	/* what is free on both sides of the seam becomes one run */
	if (dali_is_free(p)) {
		enum dali_state state = p->state;

		l->next = NULL;
		p->prev = NULL;
		dali_take_out(d, p);
		l->next = p;
		p->prev = l;
		dali_give(d, p, state);
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
