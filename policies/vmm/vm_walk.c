/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the whole state of `vmm`: visit, check, usage. */
#include "vm.h"

static void visit_piece(const struct frag_visitor *vis, const struct vm_block *b, frag_addr_t from,
			frag_addr_t to)
{
	static const enum frag_block_state states[] = {
		[VM_FREE] = FRAG_STATE_FREE,
		[VM_LIVE] = FRAG_STATE_LIVE,
		[VM_WAITING] = FRAG_STATE_WAITING,
	};
	uint64_t releasable = 0;

	if (b->state == VM_FREE)
		releasable = (uint64_t)vm_whole(b->arena, from, to - from, 0) << b->arena->shift;
	if (vis->block)
		vis->block(vis->ctx, from, to - from, states[b->state], releasable);
}

/*
 * Handles that are mapped nowhere (a call of the driver failed half-way) have no address. They
 * are shown at the end of the space of the first arena of their class, where nothing else is.
 */
static void visit_spares(const struct frag_visitor *vis, const struct vm *v,
			 const struct vm_arena *a)
{
	const struct vm_class *c = &v->classes[a->cls];
	frag_addr_t at = a->base + a->bytes;

	for (unsigned k = 0; k < VM_SPANS; k++)
		at -= c->spare_count[k] * (c->page << k);
	for (unsigned k = 0; k < VM_SPANS; k++) {
		for (size_t i = 0; i < c->spare_count[k]; i++, at += c->page << k) {
			if (vis->segment)
				vis->segment(vis->ctx, at, c->page << k, a->stream);
			if (vis->block)
				vis->block(vis->ctx, at, c->page << k, FRAG_STATE_FREE,
					   c->page << k);
		}
	}
}

/* Each backed run of pages is a segment: first its length, then its blocks. */
static void visit_arena(const struct frag_visitor *vis, const struct vm_arena *a)
{
	const struct vm_block *b = a->first;

	for (size_t p = 0, end; p < a->pages_count; p = end) {
		frag_addr_t at = a->base + ((uint64_t)p << a->shift), stop;

		for (end = p; end < a->pages_count && a->pages[end].backed; end++)
			;
		if (end == p) {
			end++;
			continue;
		}
		stop = a->base + ((uint64_t)end << a->shift);
		if (vis->segment)
			vis->segment(vis->ctx, at, stop - at, a->stream);
		while (at < stop) {
			frag_addr_t to;

			while (b->addr + b->size <= at)
				b = b->next;
			to = FRAG_MIN(stop, b->addr + b->size);
			visit_piece(vis, b, at, to);
			at = to;
		}
	}
}

/* The lowest arena from `base` on; NULL if there is none. There are hundreds at most. */
static const struct vm_arena *arena_from(const struct vm *v, frag_addr_t base)
{
	const struct vm_arena *best = NULL;

	for (const struct vm_arena *a = v->arenas; a; a = a->next)
		if (a->base >= base && (!best || a->base < best->base))
			best = a;
	return best;
}

void vm_visit(void *self, const struct frag_visitor *vis)
{
	const struct vm *v = self;
	unsigned shown = 0;

	for (const struct vm_arena *a = arena_from(v, 0); a; a = arena_from(v, a->base + 1)) {
		visit_arena(vis, a);
		if (!(shown & 1u << a->cls))
			visit_spares(vis, v, a);
		shown |= 1u << a->cls;
	}
}

void vm_usage(void *self, struct frag_usage *out)
{
	const struct vm *v = self;

	*out = (struct frag_usage){ 0 };
	out->allocated_bytes = v->live_bytes;
	out->waiting_bytes = v->waiting_bytes;
	out->free_bytes = v->mapped_bytes + v->spare_bytes - v->live_bytes - v->waiting_bytes;
	out->releasable_bytes = v->whole_bytes + v->spare_bytes;
	out->non_releasable_bytes = out->free_bytes - out->releasable_bytes;
	/* the largest free stretch with memory is not known without a walk: 0 */
	out->blocks_count = frag_slab_live(&v->blocks);
}

/* Is every free block in the sets that it belongs to, with its pages counted, and nothing else? */
static bool sets_sound(const struct vm_arena *a)
{
	size_t full = 0, part = 0, whole = 0;

	for (const struct vm_block *b = a->first; b; b = b->next) {
		if (b->state != VM_FREE)
			continue;
		if (b->unmapped != vm_missing(a, b->addr, b->size) ||
		    b->whole != vm_whole(a, b->addr, b->size, b->unmapped) ||
		    (b->next && b->next->state == VM_FREE) ||
		    !(b->unmapped ? frag_bset_has(&a->part, 0, b->addr, b)
				  : frag_bset_has(&a->full, b->size, b->addr, b)) ||
		    (b->whole && !frag_bset_has(&a->whole, 0, b->addr, b)))
			return false;
		*(b->unmapped ? &part : &full) += 1;
		whole += b->whole != 0;
	}
	return frag_bset_count(&a->full) == full && frag_bset_count(&a->part) == part &&
	       frag_bset_count(&a->whole) == whole;
}

/* The pages of a place agree with it, and it agrees with its handle. */
static bool place_sound(const struct vm_arena *a, size_t p, const struct vm_place *pl)
{
	const struct vm_handle *h = pl->handle;
	const struct vm_page *pg = &a->pages[p];

	for (size_t i = 0; i < (size_t)1 << h->span; i++)
		if (pg[i].place != pl || pg[i].index != i || pg[i].span != h->span ||
		    pg[i].backed != (h->active == pl))
			return false;
	return pl->arena == a && pl->page == p && !h->from;
}

int vm_check(void *self, struct frag_err *err)
{
	const struct vm *v = self;
	size_t places = 0;

	for (const struct vm_arena *a = v->arenas; a; a = a->next) {
		bool sound = sets_sound(a);

		for (size_t p = 0; p < a->pages_count && sound; p++) {
			const struct vm_place *pl = a->pages[p].place;

			if (!pl)
				continue;
			sound = place_sound(a, p, pl);
			p += ((size_t)1 << pl->handle->span) - 1;
			places++;
		}
		if (!sound)
			return frag_fail(err, FRAG_ECHECK,
					 "arena 0x%llx: a free block is not in its sets, or a page "
					 "not in its place",
					 (unsigned long long)a->base);
	}
	return places == frag_slab_live(&v->places)
		       ? 0
		       : frag_fail(err, FRAG_ECHECK, "a mapping is in no arena");
}
