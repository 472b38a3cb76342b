/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the two halves of moving memory: vm_move.c finds it and gives it back, vm_fill.c
 * gets new memory and maps both.
 *
 * A move has three steps. Claim: choose handles that lie wholly inside free blocks.
 * Map: their memory becomes visible at the new place as well. Commit: the new place is active,
 * the old one parked (vm_place.c). Until then nothing has changed, so that a failure
 * leaves every handle where it was or where it is now.
 */
#ifndef FRAG_VM_MOVE_H
#define FRAG_VM_MOVE_H

#include "vm.h"

/* What a piece of address space still lacks. slots[k]: how many handles of span k its gaps could
 * hold; used[k]: how many of these are taken by what was provided, of span k or above. */
struct vm_need {
	size_t slots[VM_SPANS], used[VM_SPANS];
	size_t spare[VM_SPANS]; /* how many spare handles are provided */
	size_t from, to;	/* the pages */
	uint64_t size;		/* bytes asked for */
	bool ahead;		/* pages behind these are included */
};

static inline size_t vm_need_left(const struct vm_need *n)
{
	return n->slots[0] - n->used[0];
}

static inline bool vm_need_fits(const struct vm_need *n, unsigned k)
{
	for (unsigned j = 0; j <= k; j++)
		if (n->used[j] + ((size_t)1 << (k - j)) > n->slots[j])
			return false;
	return true;
}

static inline void vm_need_fill(struct vm_need *n, unsigned k)
{
	for (unsigned j = 0; j <= k; j++)
		n->used[j] += (size_t)1 << (k - j);
}

/* Room for one more spare handle. */
int vm_spare_room(struct vm_spares *s, struct frag_err *err);
/* Claims for arena `to` until `least` pages are left to find: from itself, then from others. */
int vm_claim(struct vm *v, struct vm_arena *to, struct vm_need *n, size_t least,
	     struct frag_err *err);
void vm_unclaim(struct vm *v);
/* All spare handles of a class but those that `keep` (may be NULL) counts go back. */
int vm_release_spares(struct vm *v, struct vm_class *c, const size_t *keep, struct frag_err *err);
/* Handles that are not needed, or do not fit where they are needed, make room for others. */
int vm_make_room(struct vm *v, uint64_t bytes, struct frag_err *err);

#endif
