/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that the device itself hands out one by one (a driver pool, managed
 * memory): nothing is cached or split here, so all there is to keep is which
 * blocks are out. What the device holds beyond them is its own.
 *
 * Ownership: the list owns its records; the device memory is given back by
 * the policy that uses it.
 */
#ifndef FRAG_COMMON_DIRECT_H
#define FRAG_COMMON_DIRECT_H

#include <frag/policy.h>

#include "lib/slabs.h"

struct frag_direct_block {
	struct frag_direct_block *prev, *next;
	frag_addr_t addr;
	uint64_t bytes;
	uint32_t stream;
	bool waiting;
};

struct frag_direct {
	struct frag_direct_block *first;
	struct frag_direct_block *orphans; /* freed, but the device refused to take them back */
	struct frag_slab slab;
	uint64_t live_bytes, waiting_bytes;
	size_t count;
};

void frag_direct_init(struct frag_direct *d);
void frag_direct_release(struct frag_direct *d);
/* Room for one more record, so that frag_direct_add cannot fail. 0 or FRAG_ENOMEM. */
int frag_direct_room(struct frag_direct *d, struct frag_err *err);
struct frag_direct_block *frag_direct_add(struct frag_direct *d, frag_addr_t addr, uint64_t bytes,
					  uint32_t stream);
/* After a call of the device that frees the block: with an error (rc) the device has it still, and
 * destroy offers it again; it is not counted or walked any more. Returns rc. */
int frag_direct_freed(struct frag_direct *d, struct frag_direct_block *b, int rc);

/* Hooks of policies whose struct begins with its records and whose handles are these. */
void frag_direct_free_requested(void *self, const struct frag_block *block);
/* Each block is a segment of its own. O(n log n). */
void frag_direct_visit(void *self, const struct frag_visitor *v);
void frag_direct_usage(void *self, struct frag_usage *out);
#define FRAG_DIRECT_OPS \
	.free_requested = frag_direct_free_requested, .visit = frag_direct_visit, \
	.usage = frag_direct_usage

#endif
