/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the device has done: epochs of frees, and stale mappings that wait for it.
 *
 * A fence closes an epoch about every millisecond of frees. Memory that has
 * moved within its stream stays mapped at its old place as well, because work queued
 * before the free may still use that address; such a page is stale. Its address gets no
 * other memory until the mapping is taken down, when its epoch is done.
 */
#include "vm.h"

#include <string.h>

#define EPOCH_NS 1000000u /* a fence per millisecond of frees … */
#define EPOCH_FREES 256u  /* … or so many of them */

int vm_epoch_close(struct vm *v, struct vm_arena *a, struct frag_err *err)
{
	/* no room for another fence: the epoch just goes on */
	if (!a->epoch_frees || a->epoch - a->done_epoch >= VM_FENCES)
		return 0;
	FRAG_TRY(frag_dev_fence_record(v->dev, a->stream, &a->fences[a->epoch % VM_FENCES], err));
	a->epoch++;
	a->epoch_frees = 0;
	return 0;
}

int vm_stale_room(struct vm_arena *a, size_t more, struct frag_err *err)
{
	size_t want = a->stale_count + more, head;
	size_t *ring;

	if (want <= a->stale_cap)
		return 0;
	want = FRAG_MAX(want, 2 * a->stale_cap + 64);
	ring = frag_host_alloc(want * sizeof(*ring));
	if (!ring)
		return frag_fail_nomem(err, "vmm: stale pages");
	head = FRAG_MIN(a->stale_count, a->stale_cap - a->stale_first);
	if (a->stale_count) {
		memcpy(ring, a->stale + a->stale_first, head * sizeof(*ring));
		memcpy(ring + head, a->stale, (a->stale_count - head) * sizeof(*ring));
	}
	frag_host_free(a->stale);
	a->stale = ring;
	a->stale_first = 0;
	a->stale_cap = want;
	return 0;
}

void vm_stale_add(struct vm_arena *a, size_t page)
{
	size_t at = a->stale_first + a->stale_count++;

	a->stale[at < a->stale_cap ? at : at - a->stale_cap] = page;
	for (size_t i = 0; i < (size_t)1 << a->pages[page].span; i++)
		a->pages[page + i].stale = true;
}

/* In the order of the moves: one that is too young holds back those behind it, for a while. */
static int stale_drop(struct vm *v, struct vm_arena *a, struct frag_err *err)
{
	while (a->stale_count) {
		size_t p = a->stale[a->stale_first], n = (size_t)1 << a->pages[p].span;

		for (size_t i = 0; i < n; i++)
			if (a->pages[p + i].epoch >= a->done_epoch)
				return 0;
		FRAG_TRY(frag_dev_unmap(v->dev, a->base + ((uint64_t)p << a->shift),
					(uint64_t)n << a->shift, err));
		for (size_t i = 0; i < n; i++)
			a->pages[p + i].stale = false;
		a->stale_count--;
		if (++a->stale_first == a->stale_cap)
			a->stale_first = 0;
	}
	return 0;
}

int vm_epoch_update(struct vm *v, struct vm_arena *a, struct frag_err *err)
{
	while (a->done_epoch < a->epoch) {
		bool done = false;

		FRAG_TRY(frag_dev_fence_done(v->dev, a->fences[a->done_epoch % VM_FENCES],
					     v->params->lag_us * 1000, &done, err));
		if (!done)
			break;
		a->done_epoch++;
	}
	return stale_drop(v, a, err);
}

void vm_young(struct vm *v, struct vm_arena *a, size_t page, size_t n)
{
	for (size_t i = 0; i < n; i++)
		a->pages[page + i].epoch = a->epoch;
	if (!a->epoch_frees++)
		a->epoch_ns = v->dev->now_ns;
}

int vm_touch(struct vm *v, struct vm_arena *a, frag_addr_t addr, uint64_t size,
	     struct frag_err *err)
{
	size_t from, to;

	vm_touched(a, addr, size, &from, &to);
	vm_young(v, a, from, to - from);
	if (a->epoch_frees >= EPOCH_FREES || v->dev->now_ns - a->epoch_ns >= EPOCH_NS) {
		FRAG_TRY(vm_epoch_update(v, a, err));
		return vm_epoch_close(v, a, err);
	}
	return 0;
}

int vm_settle(struct vm *v, struct frag_err *err)
{
	FRAG_TRY(frag_dev_sync_all(v->dev, err));
	for (struct vm_arena *a = v->arenas; a; a = a->next) {
		a->epoch++;
		a->done_epoch = a->epoch;
		a->epoch_frees = 0;
		FRAG_TRY(stale_drop(v, a, err));
	}
	return 0;
}
