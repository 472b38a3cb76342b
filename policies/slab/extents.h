/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extents of whole pages over segments from the device: the page heap under the slab
 * policy.
 *
 * The smallest free extent that fits serves a request, the lowest address among equals; it
 * is cut exactly, the low part goes on. Freed extents merge with free neighbours at once.
 * Growth and giving back: see the head of slab.c.
 *
 * Invariants: every free piece of the heap is in `free`, and has no free neighbour. The
 * pool of nodes also serves sets of the caller that hold live pieces, each at most once.
 */
#ifndef FRAG_SLAB_EXTENTS_H
#define FRAG_SLAB_EXTENTS_H

#include "bset.h"
#include "segheap.h"

struct frag_extents {
	struct frag_heap heap;
	struct frag_slab nodes;
	struct frag_bset free;
	uint64_t page, grow; /* bytes */
};

void frag_extents_init(struct frag_extents *x, const struct frag_policy_env *env, uint64_t page,
		       uint64_t grow);
/* Gives everything back to the device. */
void frag_extents_release(struct frag_extents *x);
/*
 * An extent of exactly `bytes`, whole pages, live, link[0] NULL. 0 and *out and how,
 * FRAG_OOM, or an error. May call env->sync, so the caller's free may run inside.
 */
int frag_extents_take(struct frag_extents *x, uint64_t bytes, uint32_t stream,
		      struct frag_piece **out, enum frag_class *cls, struct frag_err *err);
void frag_extents_give(struct frag_extents *x, struct frag_piece *p);
/* Bytes of the largest free extent. */
uint64_t frag_extents_largest(const struct frag_extents *x);
int frag_extents_check(struct frag_extents *x, struct frag_err *err);

#endif
