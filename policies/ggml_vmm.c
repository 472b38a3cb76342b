/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ggml-vmm: the pool of llama.cpp over virtual memory, a stack.
 *
 * Rules (ggml-org/llama.cpp, ggml/src/ggml-cuda/ggml-cuda.cu, struct ggml_cuda_pool_vmm, 2026):
 *  - A pool per stream: 32 GiB of address space, reserved at the first request; a request that
 *    would go beyond is refused.
 *  - Requests are rounded up to 128 B and taken from the top of what is in use.
 *  - When the mapped part is too short, the missing bytes, rounded up to the granule, are created
 *    as one handle, mapped behind it, released (the mapping keeps it) and made accessible.
 *  - Frees must come in reverse order of allocations (per pool); the source asserts that. Here
 *    a free in another order is an error: the block becomes a hole, which goes when all above it
 *    is gone.
 *  - Nothing is unmapped before the end; trim has nothing to do. The only loss is the rest of the
 *    last granule: no policy can reserve less for a trace of this shape.
 *
 * Structure: per pool an array of blocks in order of address; the handle of a block is its
 * number there.
 * Invariants: blocks follow each other from the base of the pool without a gap; the last one is
 * not free; in use <= open <= address space. Memory that is created but not open yet, because a
 * call failed, counts as free behind the rest.
 */
#include "environment.h"

#include <inttypes.h>

#include "lib/grow.h"

#define ALIGNMENT 128u

struct params {
	uint64_t reserve;
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("reserve", struct params, reserve, 32 * FRAG_GIB, 2 * FRAG_MIB, 1ull << 46,
		       "address space of a pool, bytes, rounded up to the granule"),
	FRAG_OPT_END,
};

struct block {
	uint64_t bytes;
	enum frag_block_state state;
};

/* How far a new handle has come. When a driver call fails, the next growth goes on from there. */
enum stage { NONE, CREATED, MAPPED, OPEN };

struct pool {
	frag_addr_t base;     /* 0 = not reserved yet */
	uint64_t used, open;  /* bytes that are in use, that may be used */
	uint64_t next_handle; /* behind what is open */
	uint64_t next_bytes;
	enum stage stage;
	struct block *blocks;
	size_t count, cap;
};

struct self {
	struct frag_policy_env env;
	uint64_t granule, space;
	struct pool *pools; /* by stream */
	uint32_t pools_count;
	uint64_t live_bytes, waiting_bytes, held_bytes;
	size_t blocks_count; /* without the free rest of each pool */
};

/* Bytes of the pool, also those that are on their way. */
static uint64_t held(const struct pool *q)
{
	return q->open + (q->stage == CREATED || q->stage == MAPPED ? q->next_bytes : 0);
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	const struct params *p = params;
	struct self *s;
	struct frag_device_info info;

	FRAG_TRY_CALLOC(s, 1, "policy ggml-vmm", err);
	frag_dev_info(env->dev, &info);
	s->env = *env;
	s->granule = info.granule_bytes ? info.granule_bytes : FRAG_PAGE;
	s->space = frag_round_up(p->reserve, s->granule);
	*out = s;
	return 0;
}

/* A call that fails is tried once more, so that one failure does not leak the pool. */
static void pool_release(struct self *s, struct pool *q)
{
	struct frag_device *dev = s->env.dev;
	uint64_t mapped = q->open + (q->stage == MAPPED ? q->next_bytes : 0);

	if (mapped && frag_dev_unmap(dev, q->base, mapped, NULL))
		frag_dev_unmap(dev, q->base, mapped, NULL);
	if (q->stage != NONE && frag_dev_release(dev, q->next_handle, q->next_bytes, NULL))
		frag_dev_release(dev, q->next_handle, q->next_bytes, NULL);
	if (q->base && frag_dev_unreserve(dev, q->base, s->space, NULL))
		frag_dev_unreserve(dev, q->base, s->space, NULL);
	frag_host_free(q->blocks);
}

static void destroy(void *self)
{
	struct self *s = self;
	uint32_t i;

	for (i = 0; i < s->pools_count; i++)
		pool_release(s, &s->pools[i]);
	FRAG_FREE(s->pools, s);
}

/* ---- growth ------------------------------------------------------------------------------- */

/* Host memory for one block more, and address space. */
static int reserve(struct self *s, uint32_t stream, struct pool **out, struct frag_err *err)
{
	struct pool *q;

	if (stream >= s->pools_count) {
		q = frag_host_realloc(s->pools, stream + 1ul, sizeof(*q));
		FRAG_CHECK_ALLOC(q, "policy ggml-vmm", err);
		s->pools = q;
		while (s->pools_count <= stream)
			q[s->pools_count++] = (struct pool){ 0 };
	}
	q = &s->pools[stream];
	FRAG_TRY(FRAG_GROW(q->blocks, q->count, q->cap, "policy ggml-vmm", err));
	if (!q->base)
		FRAG_TRY(frag_dev_reserve(s->env.dev, s->space, 0, &q->base, err));
	*out = q;
	return 0;
}

/* Brings a new handle to its place. On failure it stays at its stage. */
static int map_new(struct self *s, struct pool *q, uint32_t stream, struct frag_err *err)
{
	struct frag_device *dev = s->env.dev;
	frag_addr_t addr = q->base + q->open;

	if (q->stage == CREATED) {
		FRAG_TRY(frag_dev_map(dev, addr, q->next_bytes, q->next_handle, err));
		q->stage = MAPPED;
	}
	if (q->stage == MAPPED) {
		FRAG_TRY(frag_dev_set_access(dev, addr, q->next_bytes, err));
		q->stage = OPEN;
		q->open += q->next_bytes;
		frag_env_journal(&s->env, FRAG_SEGMENT_MAP, addr, q->next_bytes, stream);
	}
	if (q->stage == OPEN)
		FRAG_TRY(frag_dev_release(dev, q->next_handle, q->next_bytes, err));
	q->stage = NONE;
	return 0;
}

/* Makes the pool long enough for `bytes` more: by one handle, after one that is on its way. */
static int grow(struct self *s, struct pool *q, uint64_t bytes, uint32_t stream,
		struct frag_err *err)
{
	uint64_t more;

	FRAG_TRY(map_new(s, q, stream, err));
	if (bytes <= q->open - q->used)
		return 0;
	more = frag_round_up(bytes - (q->open - q->used), s->granule);
	if (more > s->space - q->open || frag_env_over_limit(&s->env, more))
		return FRAG_OOM;
	FRAG_TRY(frag_dev_create(s->env.dev, more, &q->next_handle, err));
	q->next_bytes = more;
	q->stage = CREATED;
	s->held_bytes += more;
	return map_new(s, q, stream, err);
}

/* ---- hooks -------------------------------------------------------------------------------- */

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	struct pool *q = NULL;
	uint64_t bytes;

	if (req->bytes > s->space)
		return FRAG_OOM;
	FRAG_TRY(reserve(s, req->stream, &q, err));
	bytes = frag_round_up(FRAG_MAX(req->bytes, 1), ALIGNMENT);
	out->cls = FRAG_CLASS_SPLIT;
	if (bytes > q->open - q->used) {
		FRAG_TRY(grow(s, q, bytes, req->stream, err));
		out->cls = FRAG_CLASS_GROW;
	}
	out->addr = q->base + q->used;
	out->granted = bytes;
	out->handle = q->count;
	q->blocks[q->count++] = (struct block){ bytes, FRAG_STATE_LIVE };
	q->used += bytes;
	s->live_bytes += bytes;
	s->blocks_count++;
	return 0;
}

static uint64_t *sum_of(struct self *s, enum frag_block_state state)
{
	return state == FRAG_STATE_LIVE ? &s->live_bytes : &s->waiting_bytes;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct pool *q = &s->pools[block->stream];
	struct block *b = &q->blocks[block->handle];
	size_t above = q->count - 1 - block->handle;

	FRAG_ASSERT(block->handle < q->count && b->state != FRAG_STATE_FREE);
	*sum_of(s, b->state) -= b->bytes;
	b->state = FRAG_STATE_FREE;
	while (q->count && q->blocks[q->count - 1].state == FRAG_STATE_FREE) {
		q->used -= q->blocks[--q->count].bytes;
		s->blocks_count--;
	}
	if (FRAG_LIKELY(!above))
		return 0;
	return frag_fail(err, FRAG_EPOLICY,
			 "ggml-vmm is a stack: block at 0x%" PRIx64 " is freed before %zu that "
			 "were allocated after it; this trace needs another policy (ggml)",
			 block->addr, above);
}

static void free_requested(void *self, const struct frag_block *block)
{
	struct self *s = self;
	struct block *b = &s->pools[block->stream].blocks[block->handle];

	if (b->state != FRAG_STATE_LIVE)
		return;
	b->state = FRAG_STATE_WAITING;
	s->live_bytes -= b->bytes;
	s->waiting_bytes += b->bytes;
}

/* ---- walk --------------------------------------------------------------------------------- */

static void visit_pool(const struct pool *q, uint32_t stream, const struct frag_visitor *v)
{
	frag_addr_t at = q->base;
	size_t i;

	if (v->segment)
		v->segment(v->ctx, q->base, held(q), stream);
	for (i = 0; v->block && i < q->count; at += q->blocks[i++].bytes)
		v->block(v->ctx, at, q->blocks[i].bytes, q->blocks[i].state, 0);
	if (v->block && held(q) > q->used)
		v->block(v->ctx, at, held(q) - q->used, FRAG_STATE_FREE, 0);
}

/* The pool with memory and the lowest base above `from`; pools_count if there is none. */
static uint32_t next_pool(const struct self *s, frag_addr_t from)
{
	uint32_t best = s->pools_count, i;

	for (i = 0; i < s->pools_count; i++)
		if (held(&s->pools[i]) && s->pools[i].base > from &&
		    (best == s->pools_count || s->pools[i].base < s->pools[best].base))
			best = i;
	return best;
}

static void visit(void *self, const struct frag_visitor *v)
{
	const struct self *s = self;
	uint32_t i;

	for (i = next_pool(s, 0); i < s->pools_count; i = next_pool(s, s->pools[i].base))
		visit_pool(&s->pools[i], i, v);
}

static void usage(void *self, struct frag_usage *out)
{
	const struct self *s = self;
	uint64_t free_bytes = s->held_bytes - s->live_bytes - s->waiting_bytes;
	uint64_t largest = 0;
	uint32_t i, segments = 0, rests = 0;

	for (i = 0; i < s->pools_count; i++) {
		const struct pool *q = &s->pools[i];

		segments += held(q) != 0;
		rests += held(q) != q->used;
		largest = FRAG_MAX(largest, held(q) - q->used);
	}
	*out = (struct frag_usage){
		.allocated_bytes = s->live_bytes,
		.waiting_bytes = s->waiting_bytes,
		.non_releasable_bytes = free_bytes,
		.largest_free_bytes = largest,
		.free_bytes = free_bytes,
		.segments_count = segments,
		.blocks_count = s->blocks_count + rests,
	};
}

const struct frag_policy_ops frag_policy_ggml_vmm = {
	.name = "ggml-vmm",
	.summary = "llama.cpp's pool: a stack in mapped address space, per stream",
	.source = "ggml-org/llama.cpp ggml/src/ggml-cuda/ggml-cuda.cu, ggml_cuda_pool_vmm (2026)",
	.trims = "nothing",
	.checked = "llama.cpp of 2026, compiled once",
	.flags = FRAG_POLICY_STACK,
	.needs = FRAG_CAN_VMM,
	FRAG_POLICY_PARAMS(struct params),
	FRAG_POLICY_HOOKS,
	.free_requested = free_requested,
	.visit = visit,
	.usage = usage,
};
