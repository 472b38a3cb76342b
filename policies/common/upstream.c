/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of upstream.h.
 *
 * Invariants: by_addr holds exactly the chunks of the slab; bytes and granted
 * are the sums over them; over a policy each chunk is one of its live blocks.
 */
#include "upstream.h"
#include "environment.h"

#include <string.h>

int frag_upstream_create(const struct frag_policy_env *env, const char *text,
			 const struct frag_upstream_parts *parts, void **self, struct frag_err *err)
{
	FRAG_AUTO_FREE struct frag_upstream *up = frag_host_calloc(1, parts->bytes);

	FRAG_CHECK_ALLOC(up, "pool", err);
	*up = (struct frag_upstream){ .a.env = *env, .parts = parts };
	if (env->inner)
		text = env->inner;
	if (*text && strcmp(text, "device") != 0)
		FRAG_TRY(frag_inner_open(text, env, &up->a.inner, err));
	frag_slab_init(&up->chunks, sizeof(struct frag_chunk));
	frag_slab_init(&up->pieces, sizeof(struct frag_piece));
	frag_bset_init(&up->by_addr);
	*self = FRAG_GIVE(up);
	return 0;
}

void frag_upstream_op_destroy(void *self)
{
	struct frag_upstream *up = self;
	struct frag_chunk *c;

	up->parts->release(self);
	/* an inner policy gives back its segments, whatever is live in them */
	if (frag_upstream_is_device(up))
		for (c = frag_upstream_first(up); c; c = frag_upstream_next(up, c))
			frag_dev_free(up->a.env.dev, c->block.addr, c->block.granted, NULL);
	else
		frag_inner_close(&up->a.inner);
	frag_bset_release(&up->by_addr);
	frag_slab_release(&up->chunks);
	frag_slab_release(&up->pieces);
	frag_host_free(up);
}

static int take_device(struct frag_upstream *up, uint64_t bytes, struct frag_block *out,
		       struct frag_err *err)
{
	if (frag_env_over_limit(&up->a.env, bytes))
		return FRAG_OOM;
	out->granted = bytes;
	return frag_dev_alloc(up->a.env.dev, bytes, &out->addr, err);
}

static int take_inner(struct frag_upstream *up, uint64_t bytes, uint32_t stream,
		      struct frag_block *out, struct frag_err *err)
{
	struct frag_request req = { .bytes = bytes, .stream = stream };

	out->stream = stream;
	out->requested = bytes;
	return frag_adaptor_alloc(up, &req, out, err);
}

/* How many parts of the grant the pool cannot use. */
static size_t slacks(const struct frag_chunk *c)
{
	frag_addr_t end = c->block.addr + c->block.granted;

	return (c->addr != c->block.addr) + (c->addr + c->bytes != end);
}

int frag_upstream_take_aligned(struct frag_upstream *up, uint64_t bytes, uint64_t alignment,
			       uint32_t stream, struct frag_chunk **out, struct frag_err *err)
{
	struct frag_block b = { 0 };
	struct frag_chunk *c;
	int rc;

	if (bytes > FRAG_UPSTREAM_MAX)
		return FRAG_OOM;
	if (frag_slab_reserve(&up->chunks, 1) ||
	    frag_bset_reserve(&up->by_addr, frag_upstream_count(up) + 1))
		return frag_fail_nomem(err, "chunks of a pool");
	rc = frag_upstream_is_device(up) ? take_device(up, bytes + alignment, &b, err)
					 : take_inner(up, bytes + alignment, stream, &b, err);
	if (rc)
		return rc;
	c = frag_slab_alloc(&up->chunks);
	*c = (struct frag_chunk){ .addr = alignment ? frag_round_up(b.addr, alignment) : b.addr,
				  .bytes = bytes,
				  .block = b,
				  .stream = stream };
	frag_bset_insert(&up->by_addr, b.addr, 0, c);
	up->bytes += bytes;
	up->granted += b.granted;
	up->slack_count += slacks(c);
	if (frag_upstream_is_device(up))
		frag_env_journal(&up->a.env, FRAG_SEGMENT_ALLOC, b.addr, b.granted, stream);
	*out = c;
	return 0;
}

int frag_upstream_take(struct frag_upstream *up, uint64_t bytes, uint32_t stream,
		       struct frag_chunk **out, struct frag_err *err)
{
	return frag_upstream_take_aligned(up, bytes, 0, stream, out, err);
}

int frag_upstream_give(struct frag_upstream *up, struct frag_chunk *c, bool *gone,
		       struct frag_err *err)
{
	int rc;

	*gone = false;
	if (frag_upstream_is_device(up)) {
		FRAG_TRY(frag_dev_free(up->a.env.dev, c->block.addr, c->block.granted, err));
		frag_env_journal(&up->a.env, FRAG_SEGMENT_FREE, c->block.addr, c->block.granted,
				 c->stream);
		rc = 0;
	} else {
		/* the block is free even where this fails */
		rc = frag_adaptor_free(up, &c->block, err);
	}
	frag_bset_erase(&up->by_addr, c->block.addr, 0);
	up->bytes -= c->bytes;
	up->granted -= c->block.granted;
	up->slack_count -= slacks(c);
	frag_slab_free(&up->chunks, c);
	*gone = true;
	return rc;
}

static struct frag_chunk *chunk_from(const struct frag_upstream *up, frag_addr_t addr)
{
	struct frag_bset_node *at = frag_bset_lower(&up->by_addr, addr, 0);

	return frag_bset_value(at);
}

struct frag_chunk *frag_upstream_first(const struct frag_upstream *up)
{
	return chunk_from(up, 0);
}

struct frag_chunk *frag_upstream_next(const struct frag_upstream *up,
				      const struct frag_chunk *chunk)
{
	return chunk_from(up, chunk->block.addr + 1);
}

/* ---- pieces of chunks ------------------------------------------------------------ */

void frag_pieces_free_requested(void *self, const struct frag_block *block)
{
	struct frag_upstream *up = self;
	struct frag_piece *p = frag_piece_of(block);

	FRAG_ASSERT(p->state == FRAG_STATE_LIVE);
	p->state = FRAG_STATE_WAITING;
	up->live_bytes -= p->bytes;
	up->waiting_bytes += p->bytes;
}

static bool is_idle(const struct frag_chunk *c)
{
	const struct frag_piece *p = c->head;

	return frag_piece_is_free(p) && frag_piece_is_whole(p);
}

void frag_chunk_visit(const struct frag_chunk *c, const struct frag_visitor *v, bool gives_back)
{
	frag_pieces_visit(c->head, v, gives_back && is_idle(c));
}

int frag_chunks_check(const struct frag_upstream *up, const void *owner, size_t indexed,
		      bool (*index)(void *ctx, const struct frag_piece *p), void *ctx,
		      struct frag_err *err)
{
	size_t count = 0;

	for (struct frag_chunk *c = frag_upstream_first(up); c; c = frag_upstream_next(up, c))
		for (const struct frag_piece *p = c->owner == owner ? c->head : NULL; p;
		     p = p->next) {
			if (!frag_piece_is_free(p))
				continue;
			if (!index(ctx, p))
				return frag_fail(err, FRAG_ECHECK,
						 "free piece 0x%llx is not in its index",
						 (unsigned long long)p->addr);
			count++;
		}
	return count == indexed
		       ? 0
		       : frag_fail(err, FRAG_ECHECK, "%zu free pieces are listed, %zu exist",
				   indexed, count);
}

/* ---- walking ------------------------------------------------------------------- */

struct relay {
	struct frag_upstream *up;
	const struct frag_visitor *v;
};

static void relay_segment(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	const struct relay *r = ctx;

	if (r->v->segment)
		r->v->segment(r->v->ctx, addr, bytes, stream);
}

/* A live block of the inner policy that is one of our chunks is shown from inside. */
static void relay_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
			uint64_t releasable)
{
	const struct relay *r = ctx;
	struct frag_chunk *c = state == FRAG_STATE_LIVE ? chunk_from(r->up, addr) : NULL;
	frag_addr_t end;

	if (!r->v->block)
		return;
	if (!c || c->block.addr != addr) {
		r->v->block(r->v->ctx, addr, bytes, state, releasable);
		return;
	}
	if (c->addr > addr)
		r->v->block(r->v->ctx, addr, c->addr - addr, FRAG_STATE_FREE, 0);
	r->up->parts->inside(r->up, c, r->v);
	end = c->addr + c->bytes;
	if (addr + bytes > end)
		r->v->block(r->v->ctx, end, addr + bytes - end, FRAG_STATE_FREE, 0);
}

void frag_upstream_op_visit(void *self, const struct frag_visitor *v)
{
	struct frag_upstream *up = self;
	struct relay r = { up, v };
	struct frag_visitor hook = { .ctx = &r, .segment = relay_segment, .block = relay_block };
	struct frag_chunk *c;

	if (!frag_upstream_is_device(up)) {
		frag_adaptor_visit(up, &hook);
		return;
	}
	for (c = frag_upstream_first(up); c; c = frag_upstream_next(up, c)) {
		if (v->segment)
			v->segment(v->ctx, c->addr, c->bytes, c->stream);
		if (v->block)
			up->parts->inside(self, c, v);
	}
}

/* What the upstream holds besides the chunks. *largest_known: false if the inner policy does not
 * tell its largest free block. */
static void usage_besides(struct frag_upstream *up, struct frag_usage *out, bool *largest_known)
{
	uint64_t slack = up->granted - up->bytes;

	*out = (struct frag_usage){ 0 };
	*largest_known = true;
	if (frag_upstream_is_device(up)) {
		out->segments_count = frag_upstream_count(up);
		return;
	}
	frag_adaptor_usage(up, out);
	*largest_known = out->largest_free_bytes || !out->free_bytes;
	out->allocated_bytes -= up->granted;
	out->blocks_count += up->slack_count - frag_upstream_count(up);
	out->free_bytes += slack;
	out->non_releasable_bytes += slack;
	/* parts of slack are not told apart: which one is the largest takes a walk */
	*largest_known = *largest_known && !slack;
}

void frag_upstream_op_usage(void *self, struct frag_usage *out)
{
	struct frag_upstream *up = self;
	bool known;

	usage_besides(up, out, &known);
	up->parts->usage(self, out);
	if (!known)
		out->largest_free_bytes = 0;
}

int frag_upstream_op_check(void *self, struct frag_err *err)
{
	struct frag_upstream *up = self;

	FRAG_TRY(up->parts->check(self, err));
	return frag_adaptor_check(up, err);
}
