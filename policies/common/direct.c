/* SPDX-License-Identifier: Apache-2.0 */
/* The records of blocks that a device hands out one by one; see direct.h. */
#include "direct.h"

#include <stdlib.h>

#include "lib/links.h"

void frag_direct_init(struct frag_direct *d)
{
	*d = (struct frag_direct){ 0 };
	frag_slab_init(&d->slab, sizeof(struct frag_direct_block));
}

void frag_direct_release(struct frag_direct *d)
{
	frag_slab_release(&d->slab);
}

int frag_direct_room(struct frag_direct *d, struct frag_err *err)
{
	return frag_slab_reserve(&d->slab, 1) ? frag_fail_nomem(err, "blocks") : 0;
}

struct frag_direct_block *frag_direct_add(struct frag_direct *d, frag_addr_t addr, uint64_t bytes,
					  uint32_t stream)
{
	struct frag_direct_block *b = frag_slab_alloc(&d->slab);

	*b = (struct frag_direct_block){ .addr = addr, .bytes = bytes, .stream = stream };
	FRAG_LINK_FIRST(d->first, b);
	d->live_bytes += bytes;
	d->count++;
	return b;
}

void frag_direct_free_requested(void *self, const struct frag_block *block)
{
	struct frag_direct *d = self;
	struct frag_direct_block *b = (void *)(uintptr_t)block->handle;

	b->waiting = true;
	d->live_bytes -= b->bytes;
	d->waiting_bytes += b->bytes;
}

int frag_direct_freed(struct frag_direct *d, struct frag_direct_block *b, int rc)
{
	*(b->waiting ? &d->waiting_bytes : &d->live_bytes) -= b->bytes;
	FRAG_UNLINK(d->first, b);
	d->count--;
	if (rc) {
		b->prev = NULL;
		b->next = d->orphans;
		d->orphans = b;
	} else {
		frag_slab_free(&d->slab, b);
	}
	return rc;
}

FRAG_COMPARE(by_addr, struct frag_direct_block *, FRAG_ORDER((*x)->addr, (*y)->addr))

/* All blocks by address; NULL when host memory is short. */
static struct frag_direct_block **sorted(const struct frag_direct *d)
{
	struct frag_direct_block **list =
		frag_host_alloc(d->count * sizeof(struct frag_direct_block *));
	size_t n = 0;

	if (!list)
		return NULL;
	for (struct frag_direct_block *b = d->first; b; b = b->next)
		list[n++] = b;
	qsort(list, n, sizeof(struct frag_direct_block *), by_addr);
	return list;
}

void frag_direct_visit(void *self, const struct frag_visitor *v)
{
	const struct frag_direct *d = self;
	FRAG_AUTO_FREE struct frag_direct_block **list = sorted(d);

	for (size_t i = 0; list && i < d->count; i++) {
		if (v->segment)
			v->segment(v->ctx, list[i]->addr, list[i]->bytes, list[i]->stream);
		if (v->block)
			v->block(v->ctx, list[i]->addr, list[i]->bytes,
				 list[i]->waiting ? FRAG_STATE_WAITING : FRAG_STATE_LIVE, 0);
	}
}

void frag_direct_usage(void *self, struct frag_usage *out)
{
	const struct frag_direct *d = self;
	*out = (struct frag_usage){ .allocated_bytes = d->live_bytes,
				    .waiting_bytes = d->waiting_bytes,
				    .segments_count = d->count,
				    .blocks_count = d->count };
}
