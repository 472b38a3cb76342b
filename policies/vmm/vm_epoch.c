/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epochs of frees: what the device has completed.
 *
 * A fence closes an epoch after about a millisecond of frees; it is queried only when the answer
 * is needed. A mapping is removed only when the epoch of the last free at its address is done.
 */
#include "vm.h"

#define EPOCH_NS 1000000u /* a fence per millisecond of frees … */
#define EPOCH_FREES 256u  /* … or this many frees */
#define UNASKED_MAX 4u	  /* both double up to this many times, while nothing depends on them */

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

bool vm_is_done(const struct vm_arena *a, const struct vm_page *head)
{
	for (size_t i = 0; i < (size_t)1 << head->span; i++)
		if (head[i].epoch >= a->done_epoch)
			return false;
	return true;
}

static int ask(struct vm *v, const struct vm_arena *a, uint32_t epoch, bool *done,
	       struct frag_err *err)
{
	return frag_dev_fence_done(v->dev, a->fences[epoch % VM_FENCES], v->params->lag_us * 1000,
				   done, err);
}

/* The stream does its work in order: what a fence says holds for those before it. */
static int update(struct vm *v, struct vm_arena *a, struct frag_err *err)
{
	uint32_t open = a->epoch; /* the first that is known not to be done */
	uint32_t at = a->done_epoch;

	while (a->done_epoch < open) {
		bool done = false;

		FRAG_TRY(ask(v, a, at, &done, err));
		if (done)
			a->done_epoch = at + 1;
		else
			open = at;
		at = a->done_epoch + (open - a->done_epoch) / 2;
	}
	return 0;
}

int vm_epoch_update(struct vm *v, struct vm_arena *a, struct frag_err *err)
{
	a->unasked = 0;
	return update(v, a, err);
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
	unsigned k;

	vm_touched(a, addr, size, &from, &to);
	vm_young(v, a, from, to - from);
	k = FRAG_MIN(a->unasked, UNASKED_MAX);
	if (a->epoch_frees >= EPOCH_FREES << k || v->dev->now_ns - a->epoch_ns >= EPOCH_NS << k) {
		a->unasked++;
		if (a->epoch - a->done_epoch >= VM_FENCES)
			FRAG_TRY(update(v, a, err));
		return vm_epoch_close(v, a, err);
	}
	return 0;
}

int vm_close_epochs(struct vm *v, struct frag_err *err)
{
	FRAG_TRY(frag_dev_sync_all(v->dev, err));
	for (struct vm_arena *a = v->arenas; a; a = a->next) {
		a->epoch++;
		a->done_epoch = a->epoch;
		a->epoch_frees = 0;
	}
	return 0;
}
