/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the whole state of `vmm`: visit, check, usage. */
#include "vm.h"

#include <stdlib.h>

FRAG_COMPARE(by_base, struct vm_arena *, FRAG_ORDER((*x)->base, (*y)->base))

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

void vm_visit(void *self, const struct frag_visitor *vis)
{
	const struct vm *v = self;
	struct vm_arena **list;
	size_t n = 0, i = 0;
	unsigned shown = 0;

	for (struct vm_arena *a = v->arenas; a; a = a->next)
		n++;
	list = frag_host_alloc(n * sizeof(struct vm_arena *));
	if (!list)
		return;
	for (struct vm_arena *a = v->arenas; a; a = a->next)
		list[i++] = a;
	qsort(list, n, sizeof(struct vm_arena *), by_base);
	for (i = 0; i < n; i++) {
		visit_arena(vis, list[i]);
		if (!(shown & 1u << list[i]->cls))
			visit_spares(vis, v, list[i]);
		shown |= 1u << list[i]->cls;
	}
	frag_host_free(list);
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

struct tally {
	uint64_t live, waiting, mapped, whole, spare;
	size_t blocks, places, active, spares;
	size_t linked;		     /* places, as their handles count them */
	size_t full, part, in_whole; /* free blocks of one arena, by the sets they belong to */
};

static int check_free(const struct vm_arena *a, const struct vm_block *b, struct tally *t,
		      struct frag_err *err)
{
	size_t from = (b->addr - a->base + vm_page_bytes(a) - 1) >> a->shift;
	size_t inner = vm_inner(a, b->addr, b->size), backed = 0, whole = 0;
	size_t end = FRAG_MIN(from + inner, a->pages_count);

	for (size_t p = from; p < end; p++) {
		const struct vm_page *pg = &a->pages[p];

		backed += pg->backed;
		whole += pg->backed && p - from >= pg->index &&
			 p - pg->index + ((size_t)1 << pg->span) <= from + inner;
	}
	if (b->whole != whole || b->unmapped != inner - backed)
		return frag_fail(err, FRAG_ECHECK, "free block 0x%llx counts its pages wrongly",
				 (unsigned long long)b->addr);
	if (b->next && b->next->state == VM_FREE)
		return frag_fail(err, FRAG_ECHECK, "free neighbours at 0x%llx",
				 (unsigned long long)b->addr);
	if (!(b->unmapped ? frag_bset_has(&a->part, 0, b->addr, b)
			  : frag_bset_has(&a->full, b->size, b->addr, b)) ||
	    (whole && !frag_bset_has(&a->whole, 0, b->addr, b)))
		return frag_fail(err, FRAG_ECHECK, "free block 0x%llx is not in its sets",
				 (unsigned long long)b->addr);
	t->whole += (uint64_t)whole << a->shift;
	*(b->unmapped ? &t->part : &t->full) += 1;
	t->in_whole += whole != 0;
	return 0;
}

static int check_used(const struct vm_arena *a, const struct vm_block *b, struct tally *t,
		      struct frag_err *err)
{
	size_t from, to;

	vm_touched(a, b->addr, b->size, &from, &to);
	while (from < to && from < a->pages_count && a->pages[from].backed)
		from++;
	if (from < to)
		return frag_fail(err, FRAG_ECHECK, "live block 0x%llx has no memory at page %zu",
				 (unsigned long long)b->addr, from);
	*(b->state == VM_LIVE ? &t->live : &t->waiting) += b->size;
	return 0;
}

/* As many entries in a set as blocks that belong there, and were found: no others are in it. */
static int check_set(const struct frag_bset *set, size_t count, struct frag_err *err)
{
	const char *broken = frag_bset_broken(set);

	if (broken)
		return frag_fail(err, FRAG_ECHECK, "free set: %s", broken);
	if (frag_bset_count(set) != count)
		return frag_fail(err, FRAG_ECHECK,
				 "a free set has %zu entries, %zu blocks belong there",
				 frag_bset_count(set), count);
	return 0;
}

/* The pages of a place agree with it, and it agrees with its handle. */
static bool place_sound(const struct vm_arena *a, size_t p, const struct vm_place *pl)
{
	const struct vm_handle *h = pl->handle;
	const struct vm_page *pg = &a->pages[p];

	if (pl->arena != a || pl->page != p || p + ((size_t)1 << h->span) > a->pages_count)
		return false;
	for (size_t i = 0; i < (size_t)1 << h->span; i++)
		if (pg[i].place != pl || pg[i].index != i || pg[i].span != h->span ||
		    pg[i].backed != (h->active == pl))
			return false;
	return !h->from;
}

static int check_pages(const struct vm_arena *a, struct tally *t, struct frag_err *err)
{
	size_t parked = 0, n;

	for (size_t p = 0; p < a->pages_count; p += n) {
		const struct vm_place *pl = a->pages[p].place;

		n = 1;
		if (pl ? !place_sound(a, p, pl) : a->pages[p].backed)
			return frag_fail(err, FRAG_ECHECK, "page %zu of arena 0x%llx is broken", p,
					 (unsigned long long)a->base);
		if (!pl)
			continue;
		n = (size_t)1 << pl->handle->span;
		t->places++;
		if (pl->handle->active != pl) {
			parked++;
			continue;
		}
		t->active++;
		t->linked += pl->handle->places_count;
		t->mapped += (uint64_t)n << a->shift;
	}
	if (parked != a->parked_count)
		return frag_fail(err, FRAG_ECHECK, "arena 0x%llx counts its places wrongly",
				 (unsigned long long)a->base);
	return 0;
}

static int check_arena(const struct vm_arena *a, struct tally *t, struct frag_err *err)
{
	frag_addr_t end = a->base;
	size_t blocks = 0;

	t->full = t->part = t->in_whole = 0;
	for (const struct vm_block *b = a->first; b; b = b->next) {
		if (b->addr != end || (b->next && b->next->prev != b))
			return frag_fail(err, FRAG_ECHECK, "blocks do not join at 0x%llx",
					 (unsigned long long)b->addr);
		FRAG_TRY(b->state == VM_FREE ? check_free(a, b, t, err) : check_used(a, b, t, err));
		end = b->addr + b->size;
		blocks++;
	}
	if (end != a->base + a->bytes || !blocks)
		return frag_fail(err, FRAG_ECHECK, "arena 0x%llx is not covered by its blocks",
				 (unsigned long long)a->base);
	t->blocks += blocks;
	FRAG_TRY(check_set(&a->full, t->full, err));
	FRAG_TRY(check_set(&a->part, t->part, err));
	FRAG_TRY(check_set(&a->whole, t->in_whole, err));
	return check_pages(a, t, err);
}

static void count_spares(const struct vm *v, struct tally *t)
{
	for (unsigned c = 0; c < VM_CLASSES; c++) {
		for (unsigned k = 0; k < VM_SPANS; k++) {
			const struct vm_handle *h = v->classes[c].spare[k];

			t->spares += v->classes[c].spare_count[k];
			for (; h; h = h->next, t->spare += v->classes[c].page << k)
				t->linked += h->places_count;
		}
	}
}

int vm_check(void *self, struct frag_err *err)
{
	const struct vm *v = self;
	struct tally t = { 0 };

	for (const struct vm_arena *a = v->arenas; a; a = a->next)
		FRAG_TRY(check_arena(a, &t, err));
	count_spares(v, &t);
	if (t.live != v->live_bytes || t.waiting != v->waiting_bytes ||
	    t.mapped != v->mapped_bytes || t.whole != v->whole_bytes || t.spare != v->spare_bytes ||
	    t.blocks != frag_slab_live(&v->blocks))
		return frag_fail(err, FRAG_ECHECK, "counters differ from the blocks");
	if (t.places != frag_slab_live(&v->places) || t.linked != t.places ||
	    t.active + t.spares != frag_slab_live(&v->handles))
		return frag_fail(err, FRAG_ECHECK, "counters differ from the handles");
	return 0;
}
