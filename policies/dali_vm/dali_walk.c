/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the whole state of `dali-vm`: visit, check, usage. */
#include "dali.h"

static bool is_held(const struct dali *d, const struct dali_region *r, frag_addr_t addr)
{
	return addr - r->base < r->blocks_count * d->block &&
	       r->blocks[(addr - r->base) / d->block].stage != DALI_NONE;
}

/* End of the stretch of held blocks that begins at addr. */
static frag_addr_t stretch_end(const struct dali *d, const struct dali_region *r, frag_addr_t addr)
{
	while (is_held(d, r, addr))
		addr += d->block;
	return addr;
}

static void visit_stretch(const struct dali *d, const struct frag_visitor *v,
			  const struct dali_piece *p, frag_addr_t at, frag_addr_t end)
{
	static const enum frag_block_state states[] = {
		[DALI_LIVE] = FRAG_STATE_LIVE,
		[DALI_WAITING] = FRAG_STATE_WAITING,
		[DALI_MAPPED] = FRAG_STATE_FREE,
		[DALI_HOLE] = FRAG_STATE_FREE,
	};

	if (v->segment)
		v->segment(v->ctx, at, end - at, 0);
	for (; v->block && p && p->addr < end; p = p->next) {
		frag_addr_t to = FRAG_MIN(dali_end(p), end);

		v->block(v->ctx, at, to - at, states[p->state],
			 p->state == DALI_MAPPED ? dali_whole(d, p) * d->block : 0);
		at = to;
	}
}

static void visit_region(const struct dali *d, const struct dali_region *r,
			 const struct frag_visitor *v)
{
	const struct dali_piece *p = r->first;
	size_t i;

	for (i = 0; i < r->blocks_count; i++) {
		frag_addr_t at = r->base + i * d->block, end;

		if (!is_held(d, r, at))
			continue;
		end = stretch_end(d, r, at);
		while (dali_end(p) <= at)
			p = p->next;
		visit_stretch(d, v, p, at, end);
		i = (end - r->base) / d->block;
	}
}

/* The region with the lowest base not below `from`; NULL if there is none. */
static const struct dali_region *region_from(const struct dali *d, frag_addr_t from)
{
	const struct dali_region *best = NULL;

	for (size_t i = 0; i < d->regions_count; i++)
		if (d->regions[i].base >= from && (!best || d->regions[i].base < best->base))
			best = &d->regions[i];
	return best;
}

void dali_visit(void *self, const struct frag_visitor *v)
{
	const struct dali *d = self;
	const struct dali_region *r;

	for (r = region_from(d, 0); r; r = region_from(d, r->base + 1))
		visit_region(d, r, v);
}

void dali_usage(void *self, struct frag_usage *out)
{
	const struct dali *d = self;
	uint64_t held = d->held_count * d->block;

	*out = (struct frag_usage){
		.allocated_bytes = d->live_bytes,
		.waiting_bytes = d->waiting_bytes,
		.free_bytes = held - d->live_bytes - d->waiting_bytes,
		.largest_free_bytes = frag_bset_largest(&d->mapped),
		.segments_count = d->stretches_count,
		.blocks_count = frag_slab_live(&d->pieces) - frag_bset_count(&d->holes),
	};
	out->releasable_bytes = d->whole_blocks * d->block;
	out->non_releasable_bytes = out->free_bytes - out->releasable_bytes;
}

/* ---- check -------------------------------------------------------------------------------- */

struct tally {
	size_t mapped, whole, holes;
};

/* Is a free piece in the sets that it belongs to? */
static bool in_its_sets(const struct dali *d, const struct dali_piece *p, struct tally *t)
{
	bool whole = p->state == DALI_MAPPED && dali_whole(d, p);

	if (p->next && p->next->state == p->state)
		return false;
	t->whole += whole;
	if (p->state == DALI_HOLE) {
		t->holes++;
		return frag_bset_has(&d->holes, p->addr, 0, p);
	}
	t->mapped++;
	return frag_bset_has(&d->mapped, p->bytes, p->addr, p) &&
	       (!whole || frag_bset_has(&d->whole, p->addr, 0, p));
}

/* Has a piece memory throughout, or, a hole, none and whole blocks? */
static bool memory_sound(const struct dali *d, const struct dali_region *r,
			 const struct dali_piece *p)
{
	frag_addr_t at = dali_floor(d, p->addr);

	if (p->state == DALI_HOLE)
		return !((p->addr | p->bytes) & (d->block - 1));
	while (at < dali_end(p) && r->blocks[(at - r->base) / d->block].stage == DALI_OPEN)
		at += d->block;
	return at >= dali_end(p);
}

int dali_check(void *self, struct frag_err *err)
{
	const struct dali *d = self;
	struct tally t = { 0 };

	for (size_t i = 0; i < d->regions_count; i++)
		for (const struct dali_piece *p = d->regions[i].first; p; p = p->next)
			if (!memory_sound(d, &d->regions[i], p) ||
			    (dali_is_free(p) && !in_its_sets(d, p, &t)))
				return frag_fail(err, FRAG_ECHECK,
						 "dali-vm: the piece at 0x%llx is not in its sets, "
						 "or not with its memory",
						 (unsigned long long)p->addr);
	if (t.mapped == frag_bset_count(&d->mapped) && t.whole == frag_bset_count(&d->whole) &&
	    t.holes == frag_bset_count(&d->holes))
		return 0;
	return frag_fail(err, FRAG_ECHECK, "dali-vm: a set has too much in it");
}
