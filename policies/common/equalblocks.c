/* SPDX-License-Identifier: Apache-2.0 */
/* The shared half of pools of equal blocks; see equalblocks.h. */
#include "equalblocks.h"

void frag_equal_release(struct frag_equal *e)
{
	for (struct frag_chunk *c = frag_upstream_first(e->up); c; c = frag_upstream_next(e->up, c))
		if (c->owner == e)
			frag_host_free(c->head);
	e->ops->release(e);
}

void frag_equal_inside(const struct frag_chunk *c, const struct frag_visitor *v)
{
	const struct frag_equal *e = c->owner;
	uint64_t releasable = e->gives_back && e->ops->idle(c) ? e->block_bytes : 0;

	for (uint64_t i = 0; i < e->chunk_blocks; i++)
		v->block(v->ctx, c->addr + i * e->block_bytes, e->block_bytes, e->ops->state(c, i),
			 releasable);
}

void frag_equal_usage(const struct frag_equal *e, struct frag_usage *out)
{
	uint64_t blocks = e->chunks_count * e->chunk_blocks;
	uint64_t free_count = blocks - e->live_count - e->waiting_count;

	out->allocated_bytes += e->live_count * e->block_bytes;
	out->waiting_bytes += e->waiting_count * e->block_bytes;
	out->free_bytes += free_count * e->block_bytes;
	out->releasable_bytes += e->idle_count * e->chunk_blocks * e->block_bytes;
	out->non_releasable_bytes +=
		(free_count - e->idle_count * e->chunk_blocks) * e->block_bytes;
	out->blocks_count += blocks;
	if (free_count)
		out->largest_free_bytes = FRAG_MAX(out->largest_free_bytes, e->block_bytes);
}

int frag_equal_check(struct frag_equal *e, struct frag_err *err)
{
	uint64_t chunks = 0, live = 0, waiting = 0, idle = 0;

	for (struct frag_chunk *c = frag_upstream_first(e->up); c;
	     c = frag_upstream_next(e->up, c)) {
		if (c->owner != e)
			continue;
		chunks++;
		idle += e->gives_back && e->ops->idle(c);
		if (c->bytes != e->block_bytes * e->chunk_blocks)
			return frag_fail(err, FRAG_ECHECK, "chunk 0x%llx has a wrong size",
					 (unsigned long long)c->addr);
	}
	FRAG_TRY(e->ops->check(e, &live, &waiting, err));
	if (chunks != e->chunks_count || live != e->live_count || waiting != e->waiting_count ||
	    idle != e->idle_count)
		return frag_fail(err, FRAG_ECHECK, "counters differ from the blocks of %llu bytes",
				 (unsigned long long)e->block_bytes);
	return 0;
}

/* ---- a policy around one ---------------------------------------------------------- */

static struct frag_equal *pool_of(void *self)
{
	return &((struct frag_equal_policy *)self)->e;
}

int frag_equal_op_alloc(void *self, const struct frag_request *req, struct frag_block *out,
			struct frag_err *err)
{
	struct frag_equal *e = pool_of(self);

	return req->bytes > e->block_bytes ? FRAG_OOM : e->ops->alloc(e, req->stream, out, err);
}

int frag_equal_op_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	(void)err;
	pool_of(self)->ops->free(pool_of(self), block);
	return 0;
}

void frag_equal_op_free_requested(void *self, const struct frag_block *block)
{
	pool_of(self)->ops->free_requested(pool_of(self), block);
}

void frag_equal_op_release(void *self)
{
	frag_equal_release(pool_of(self));
}

void frag_equal_op_inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v)
{
	(void)self;
	frag_equal_inside(c, v);
}

void frag_equal_op_usage(void *self, struct frag_usage *out)
{
	frag_equal_usage(pool_of(self), out);
}

int frag_equal_op_check(void *self, struct frag_err *err)
{
	return frag_equal_check(pool_of(self), err);
}
