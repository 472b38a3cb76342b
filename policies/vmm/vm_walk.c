/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the whole state of `vmm`: visit, check, usage. */
#include "vm.h"

#include <stdlib.h>

static int by_base(const void *x, const void *y)
{
	const struct vm_arena *a = *(struct vm_arena *const *)x, *b = *(struct vm_arena *const *)y;

	return (a->base > b->base) - (a->base < b->base);
}

static bool mapped_at(const struct vm_arena *a, frag_addr_t addr)
{
	size_t p = (addr - a->base) >> a->shift;

	return p < a->pages_count && a->pages[p].handle;
}

/* End of the stretch that begins at addr, mapped or not like its first page, at most `end`. */
static frag_addr_t stretch(const struct vm_arena *a, frag_addr_t addr, frag_addr_t end)
{
	bool mapped = mapped_at(a, addr);
	frag_addr_t at = frag_round_down(addr - a->base, vm_page_bytes(a)) + a->base;

	/* behind the table nothing is mapped */
	if (!mapped && ((addr - a->base) >> a->shift) >= a->pages_count)
		return end;
	do
		at += vm_page_bytes(a);
	while (at < end && mapped_at(a, at) == mapped);
	return FRAG_MIN(at, end);
}

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
		at -= c->spare[k].count * (c->page << k);
	for (unsigned k = 0; k < VM_SPANS; k++) {
		for (size_t i = 0; i < c->spare[k].count; i++, at += c->page << k) {
			if (vis->segment)
				vis->segment(vis->ctx, at, c->page << k, a->stream);
			if (vis->block)
				vis->block(vis->ctx, at, c->page << k, FRAG_STATE_FREE,
					   c->page << k);
		}
	}
}

/* Each mapped run is a segment: first its length, then its blocks. */
static void visit_arena(const struct frag_visitor *vis, const struct vm_arena *a)
{
	const struct vm_block *b = a->first;
	frag_addr_t at = a->base, end = a->base + a->bytes;

	while (at < end) {
		frag_addr_t stop = stretch(a, at, end);

		if (mapped_at(a, at)) {
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
		at = stop;
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
	out->pinned_bytes = out->free_bytes - out->releasable_bytes;
	/* the largest free stretch with memory is not known without a walk: 0 */
	out->blocks_count = frag_slab_live(&v->blocks);
}

struct tally {
	uint64_t live, waiting, mapped, whole;
	size_t blocks;
};

static int check_free(const struct vm_arena *a, const struct vm_block *b, struct tally *t,
		      struct frag_err *err)
{
	size_t from = (b->addr - a->base + vm_page_bytes(a) - 1) >> a->shift;
	size_t inner = vm_inner(a, b->addr, b->size), mapped = 0, whole = 0;
	struct frag_bset_pos at;

	for (size_t p = from; p < from + inner && p < a->pages_count; p++) {
		const struct vm_page *pg = &a->pages[p];

		mapped += pg->handle != 0;
		whole += pg->handle && p - from >= pg->index &&
			 p - pg->index + ((size_t)1 << pg->span) <= from + inner;
	}
	if (b->whole != whole || b->unmapped != inner - mapped)
		return frag_fail(err, FRAG_ECHECK, "free block 0x%llx counts its pages wrongly",
				 (unsigned long long)b->addr);
	t->whole += (uint64_t)whole << a->shift;
	at = frag_bset_lower(b->unmapped ? &a->part : &a->full, b->size, b->addr);
	if (!at.leaf || frag_bset_value(at) != b)
		return frag_fail(err, FRAG_ECHECK, "free block 0x%llx is not in its set",
				 (unsigned long long)b->addr);
	if (b->next && b->next->state == VM_FREE)
		return frag_fail(err, FRAG_ECHECK, "free neighbours at 0x%llx",
				 (unsigned long long)b->addr);
	return 0;
}

static int check_used(const struct vm_arena *a, const struct vm_block *b, struct tally *t,
		      struct frag_err *err)
{
	for (frag_addr_t at = b->addr; at < b->addr + b->size; at += vm_page_bytes(a))
		if (!mapped_at(a, at))
			return frag_fail(err, FRAG_ECHECK, "live block 0x%llx has no memory",
					 (unsigned long long)b->addr);
	if (!mapped_at(a, b->addr + b->size - 1))
		return frag_fail(err, FRAG_ECHECK, "live block 0x%llx has no memory at its end",
				 (unsigned long long)b->addr);
	*(b->state == VM_LIVE ? &t->live : &t->waiting) += b->size;
	return 0;
}

/* Handles are whole, and a page has memory or is stale, or neither. */
static int check_pages(const struct vm_arena *a, struct tally *t, struct frag_err *err)
{
	size_t stale = 0;

	for (size_t p = 0; p < a->pages_count; p++) {
		const struct vm_page *pg = &a->pages[p];

		stale += pg->stale && !pg->index;
		if (!pg->handle && !pg->stale)
			continue;
		if (pg->claimed || (pg->handle && pg->stale) ||
		    (pg->index && (pg[-1].index + 1 != pg->index || pg[-1].span != pg->span ||
				   pg[-1].handle != pg->handle)))
			return frag_fail(err, FRAG_ECHECK, "page %zu of arena 0x%llx is broken", p,
					 (unsigned long long)a->base);
		if (pg->handle)
			t->mapped += vm_page_bytes(a);
	}
	if (stale != a->stale_count)
		return frag_fail(err, FRAG_ECHECK, "arena 0x%llx counts its stale handles wrongly",
				 (unsigned long long)a->base);
	return 0;
}

static int check_arena(const struct vm_arena *a, struct tally *t, struct frag_err *err)
{
	frag_addr_t end = a->base;
	size_t blocks = 0;

	for (const struct vm_block *b = a->first; b; b = b->next) {
		if (b->addr != end || (b->next && b->next->prev != b))
			return frag_fail(err, FRAG_ECHECK, "blocks do not join at 0x%llx",
					 (unsigned long long)b->addr);
		FRAG_TRY(b->state == VM_FREE ? check_free(a, b, t, err) : check_used(a, b, t, err));
		end = b->addr + b->size;
		blocks++;
	}
	if (end != a->base + a->bytes || blocks != a->blocks)
		return frag_fail(err, FRAG_ECHECK, "arena 0x%llx is not covered by its blocks",
				 (unsigned long long)a->base);
	t->blocks += blocks;
	return check_pages(a, t, err);
}

int vm_check(void *self, struct frag_err *err)
{
	const struct vm *v = self;
	struct tally t = { 0 };
	uint64_t spare = 0;

	for (const struct vm_arena *a = v->arenas; a; a = a->next)
		FRAG_TRY(check_arena(a, &t, err));
	for (unsigned c = 0; c < VM_CLASSES; c++)
		for (unsigned k = 0; k < VM_SPANS; k++)
			spare += v->classes[c].spare[k].count * (v->classes[c].page << k);
	if (t.live != v->live_bytes || t.waiting != v->waiting_bytes ||
	    t.mapped != v->mapped_bytes || t.whole != v->whole_bytes || spare != v->spare_bytes ||
	    t.blocks != frag_slab_live(&v->blocks))
		return frag_fail(err, FRAG_ECHECK, "counters differ from the blocks");
	return 0;
}
