/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paddle: PaddlePaddle's auto-growth best-fit allocator.
 *
 * Rules (PaddlePaddle/Paddle, paddle/phi/core/memory/allocation/
 * auto_growth_best_fit_allocator.cc, 2025; before in paddle/fluid):
 *  - Requests are rounded up to 256 B. One set of free blocks by size, then address, for all
 *    streams; the smallest block that fits serves the request.
 *  - Split exactly: the TAIL of the block is handed out, the rest stays free at its head.
 *  - Miss: a chunk of max(request, chunk-size) from cudaMalloc; chunk-size is 0 unless the flag
 *    is set, so then of just the request. Cut in the same way.
 *  - Free merges with the block before, then with the one behind, of the same chunk.
 *  - Idle chunks (one free block) are given back after each free (free-idle-chunk), or at each
 *    miss (free-when-no-cache-hit), else when the driver refuses, which is then asked once more.
 *    With free-when-no-cache-hit there is no second try.
 *  - trim gives the idle chunks back. (Paddle goes through its chunks in order of creation, here
 *    it is order of address.)
 * Not modelled: the layers above it (a pool per stream, waiting two seconds for other threads).
 *
 * Structure: common/bestfit for chunks and blocks. Invariant: with free-idle-chunk no chunk is
 * idle, unless the driver failed to take it.
 */
#include "bestfit.h"

#define ALIGNMENT 256u

struct params {
	uint64_t chunk_size;
	bool free_idle_chunk, free_when_no_cache_hit;
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("chunk-size", struct params, chunk_size, 0, 0, 1ull << 50,
		       "smallest chunk taken from the driver, bytes; 0 = as needed",
		       .tune = "0,2M,16M,64M"),
	FRAG_OPT_BOOL("free-idle-chunk", struct params, free_idle_chunk, 0,
		      "give idle chunks back after each free"),
	FRAG_OPT_BOOL("free-when-no-cache-hit", struct params, free_when_no_cache_hit, 0,
		      "give idle chunks back at each miss, and do not ask the driver twice"),
	FRAG_OPT_END,
};

struct self {
	struct frag_best best; /* first: its hooks are used as they are */
	const struct params *params;
	uint64_t chunk_size;
};

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s;

	FRAG_TRY(frag_best_create(env, sizeof(*s), NULL, "policy paddle", out, err));
	s = *out;
	s->params = params;
	s->chunk_size = FRAG_MAX(aligned(s->params->chunk_size), ALIGNMENT);
	return 0;
}

static int grow(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **p,
		uint8_t *cls, struct frag_err *err)
{
	uint64_t chunk = FRAG_MAX(bytes, s->chunk_size);
	bool at_miss = s->params->free_when_no_cache_hit;
	int rc;

	*cls = FRAG_CLASS_GROW;
	if (at_miss && s->best.heap.idle_count) {
		*cls = FRAG_CLASS_RELEASE;
		FRAG_TRY(frag_heap_drop_idle(&s->best.heap, err));
	}
	rc = frag_best_grow(&s->best, chunk, stream, p, err);
	if (rc == FRAG_OOM && !at_miss) {
		*cls = FRAG_CLASS_RELEASE;
		FRAG_TRY(frag_heap_drop_idle(&s->best.heap, err));
		rc = frag_best_grow(&s->best, chunk, stream, p, err);
	}
	return rc;
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	uint64_t bytes = aligned(FRAG_MAX(req->bytes, 1));
	struct frag_piece *p;

	if (FRAG_UNLIKELY(req->bytes > FRAG_HEAP_REQUEST_MAX))
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(!frag_best_reserve(&s->best, 0, 2), "policy paddle", err);
	p = frag_best_find(s, bytes);
	if (FRAG_LIKELY(p != NULL))
		out->cls = p->bytes == bytes ? FRAG_CLASS_HIT : FRAG_CLASS_SPLIT;
	else
		FRAG_TRY(grow(s, bytes, req->stream, &p, &out->cls, err));
	frag_best_cut(s, p);
	if (p->bytes > bytes) {
		struct frag_piece *head = p;

		p = frag_heap_split(&s->best.heap, head, head->bytes - bytes);
		frag_best_put(s, head);
	}
	frag_heap_grant(&s->best.heap, p, out);
	return 0;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_seg *seg = frag_piece_of(block)->seg;

	FRAG_TRY(frag_best_op_free(s, block, err));
	return s->params->free_idle_chunk && frag_seg_is_idle(seg)
		       ? frag_best_drop(&s->best, seg->first, err)
		       : 0;
}

const struct frag_policy_ops frag_policy_paddle = {
	.name = "paddle",
	.summary = "Paddle's auto-growth: best fit over all streams, hands out the tail",
	.source = "PaddlePaddle/Paddle paddle/phi/core/memory/allocation/"
		  "auto_growth_best_fit_allocator.cc (2025)",
	.trims = "wholly free chunks",
	.checked = "Paddle at 11ef52e5, compiled",
	FRAG_BEST_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.free = release,
	.trim = frag_heap_op_trim,
};
