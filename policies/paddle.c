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
 * Structure: common/segheap for chunks and blocks, one ordered set of the free blocks.
 * Invariants: every free block is in the set; no two neighbours are free; with free-idle-chunk
 * no chunk is idle, unless the driver failed to take it.
 */
#include "bset.h"
#include "segheap.h"

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
	struct frag_heap heap; /* first: its hooks are used as they are */
	const struct params *params;
	struct frag_bset free; /* by (size, address) */
	uint64_t chunk_size;
};

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

static const struct frag_heap_index index;

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s;

	FRAG_TRY(frag_heap_create(env, sizeof(*s), &index, "policy paddle", out, err));
	s = *out;
	s->params = params;
	s->chunk_size = FRAG_MAX(aligned(s->params->chunk_size), ALIGNMENT);
	frag_bset_init(&s->free);
	return 0;
}

static void destroy(void *self)
{
	struct self *s = self;

	frag_heap_release(&s->heap);
	frag_bset_release(&s->free);
	frag_host_free(s);
}

static void put(void *self, struct frag_piece *p)
{
	struct self *s = self;

	frag_bset_insert(&s->free, p->bytes, p->addr, p);
}

static void cut(void *self, struct frag_piece *p)
{
	struct self *s = self;

	frag_bset_erase(&s->free, p->bytes, p->addr);
}

static const struct frag_heap_index index = { cut, put };

/* ---- hooks ------------------------------------------------------------------------------- */

static int grow(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **p,
		uint8_t *cls, struct frag_err *err)
{
	uint64_t chunk = FRAG_MAX(bytes, s->chunk_size);
	bool at_miss = s->params->free_when_no_cache_hit;
	int rc;

	*cls = FRAG_CLASS_GROW;
	if (at_miss && s->heap.idle_count) {
		*cls = FRAG_CLASS_RELEASE;
		FRAG_TRY(frag_heap_drop_idle(&s->heap, err));
	}
	rc = frag_heap_grow(&s->heap, chunk, stream, p, err);
	if (rc == FRAG_OOM && !at_miss) {
		*cls = FRAG_CLASS_RELEASE;
		FRAG_TRY(frag_heap_drop_idle(&s->heap, err));
		rc = frag_heap_grow(&s->heap, chunk, stream, p, err);
	}
	return rc;
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	uint64_t bytes = aligned(FRAG_MAX(req->bytes, 1));
	struct frag_bset_node *at;
	struct frag_piece *p;

	if (FRAG_UNLIKELY(req->bytes > FRAG_HEAP_REQUEST_MAX))
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(!frag_bset_reserve(&s->free, s->heap.pieces_count + 2) &&
				 !frag_heap_reserve(&s->heap, 2),
			 "policy paddle", err);
	at = frag_bset_lower(&s->free, bytes, 0);
	if (FRAG_LIKELY(at != NULL)) {
		p = at->value;
		frag_bset_erase_at(&s->free, at);
		out->cls = p->bytes == bytes ? FRAG_CLASS_HIT : FRAG_CLASS_SPLIT;
	} else {
		FRAG_TRY(grow(s, bytes, req->stream, &p, &out->cls, err));
	}
	if (p->bytes > bytes) {
		struct frag_piece *head = p;

		p = frag_heap_split(&s->heap, head, head->bytes - bytes);
		put(s, head);
	}
	frag_heap_grant(&s->heap, p, out);
	return 0;
}

/* The chunk of a block that was just freed, and is in no set, if it is idle now. */
static int drop_chunk(struct self *s, struct frag_piece *p, struct frag_err *err)
{
	int rc = frag_heap_drop(&s->heap, p->seg, err);

	if (rc)
		put(s, p);
	return rc;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p = frag_piece_of(block);

	p = frag_heap_give_merged(&s->heap, p, cut, s);
	if (s->params->free_idle_chunk && frag_seg_is_idle(p->seg))
		return drop_chunk(s, p, err);
	put(s, p);
	return 0;
}

static void usage(void *self, struct frag_usage *out)
{
	struct self *s = self;

	frag_heap_usage(&s->heap, frag_bset_largest(&s->free), out);
}

static bool indexed(void *ctx, const struct frag_piece *p)
{
	const struct self *s = ctx;

	return !frag_piece_free_next(p) && frag_bset_has(&s->free, p->bytes, p->addr, p);
}

static int check(void *self, struct frag_err *err)
{
	struct self *s = self;

	return frag_heap_check(&s->heap, frag_bset_count(&s->free), indexed, s, err);
}

const struct frag_policy_ops frag_policy_paddle = {
	.name = "paddle",
	.summary = "Paddle's auto-growth: best fit over all streams, hands out the tail",
	.source = "PaddlePaddle/Paddle paddle/phi/core/memory/allocation/"
		  "auto_growth_best_fit_allocator.cc (2025)",
	.trims = "wholly free chunks",
	.checked = "Paddle at 11ef52e5, compiled",
	FRAG_HEAP_OPS,
	FRAG_POLICY_PARAMS(struct params),
	FRAG_POLICY_HOOKS,
	.trim = frag_heap_op_trim,
	.usage = usage,
	.check = check,
};
