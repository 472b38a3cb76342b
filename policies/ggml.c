/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ggml: the older pool of llama.cpp, for cards without virtual memory management.
 *
 * Rules (ggml-org/llama.cpp, ggml/src/ggml-cuda/ggml-cuda.cu, struct ggml_cuda_pool_leg, 2026):
 *  - A pool per stream: an array of 256 slots for cached buffers.
 *  - The smallest cached buffer that holds the request serves it, the lowest slot among equals,
 *    if it is less than 64 GiB larger. The whole buffer is granted: no split, no merge.
 *  - Miss: cudaMalloc of look-ahead (1.05) times the request, cut to whole bytes, rounded up to
 *    256 B.
 *  - Free: into the first empty slot; cudaFree when all slots are taken.
 *  - When the driver refuses (retry): the device is synchronised, every buffer cached for the
 *    stream is given back in order of slots, and the driver asked once more. Versions before
 *    2026 gave up at once.
 *  - trim does that giving back for every stream. (llama.cpp itself has no such call: a pool
 *    goes with its context.)
 *
 * Structure: common/segheap, one piece per segment. The source scans its slots; here a set of
 * the cached buffers by (size, slot) and a bitmap of the empty slots make the same choices.
 * piece->tag: slot; seg->stream: pool.
 * Invariant: a slot is empty, or holds a free piece that is in the set of the same pool.
 */
#include "bset.h"
#include "lib/bits.h"
#include "segheap.h"

#include <inttypes.h>

#define ALIGNMENT 256u
#define SLOTS_MAX 4096u
#define WORDS (SLOTS_MAX / 64u)
#define WASTE_LIMIT (1ull << 36) /* of the source's search for the smallest difference */

struct params {
	uint64_t buffers;
	double look_ahead;
	bool retry;
};

static const struct frag_opt opts[] = {
	FRAG_OPT_UINT("buffers", struct params, buffers, 256, 1, SLOTS_MAX,
		      "cached buffers per stream", .tune = "64,256,1024,4096"),
	FRAG_OPT_DOUBLE("look-ahead", struct params, look_ahead, 1.05, 1, 4,
			"size of a new buffer, as a multiple of the request"),
	FRAG_OPT_BOOL("retry", struct params, retry, 1,
		      "give the stream's buffers back and ask again when the driver refuses"),
	FRAG_OPT_END,
};

struct pool {
	struct frag_piece **slots; /* NULL = empty */
	struct frag_bset cached;   /* by (size, slot) */
	uint64_t empty[WORDS];
	uint64_t empty_words; /* bit per word of empty[] */
};

struct self {
	struct frag_heap heap; /* first: its hooks are used as they are */
	const struct params *params;
	struct frag_slab nodes;
	struct pool **pools; /* by stream */
	uint32_t pools_count;
};

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s;

	FRAG_TRY(frag_heap_create(env, sizeof(*s), NULL, "policy ggml", out, err));
	s = *out;
	s->params = params;
	frag_bset_nodes_init(&s->nodes);
	return 0;
}

static void destroy(void *self)
{
	struct self *s = self;
	uint32_t i;

	frag_heap_release(&s->heap);
	for (i = 0; i < s->pools_count; i++) {
		if (s->pools[i])
			frag_bset_release(&s->pools[i]->cached);
		frag_host_free(s->pools[i]);
	}
	frag_slab_release(&s->nodes);
	FRAG_FREE(s->pools, s);
}

/* ---- slots -------------------------------------------------------------------------------- */

static struct pool *pool_new(struct self *s)
{
	size_t n = s->params->buffers, i;
	struct pool *q = frag_host_calloc(1, sizeof(*q) + n * sizeof(q->slots[0]));

	if (!q)
		return NULL;
	q->slots = (struct frag_piece **)(q + 1);
	for (i = 0; i < n; i++)
		frag_bits_add(q->empty, &q->empty_words, (uint32_t)i);
	frag_bset_init_shared(&q->cached, &s->nodes);
	return q;
}

/* The pool of a stream, and host memory for every free there can be; NULL when that is short. */
static struct pool *pool_get(struct self *s, uint32_t stream)
{
	uint32_t i;

	if (FRAG_UNLIKELY(stream >= s->pools_count)) {
		struct pool **pools = frag_host_realloc(s->pools, stream + 1ul, sizeof(*pools));

		if (!pools)
			return NULL;
		for (i = s->pools_count; i <= stream; i++)
			pools[i] = NULL;
		s->pools = pools;
		s->pools_count = stream + 1;
	}
	if (FRAG_UNLIKELY(!s->pools[stream]))
		s->pools[stream] = pool_new(s);
	if (!s->pools[stream] || frag_bset_nodes_reserve(&s->nodes, s->heap.pieces_count + 1))
		return NULL;
	return s->pools[stream];
}

/* Into the first empty slot; false if there is none. */
static bool put(struct pool *q, struct frag_piece *p)
{
	uint32_t slot;

	if (!q->empty_words)
		return false;
	slot = frag_bits_first(q->empty, q->empty_words);
	frag_bits_drop(q->empty, &q->empty_words, slot);
	q->slots[slot] = p;
	p->tag = slot;
	frag_bset_insert(&q->cached, p->bytes, slot, p);
	return true;
}

/* Empties a slot that is out of the set. */
static void vacate(struct pool *q, struct frag_piece *p)
{
	q->slots[p->tag] = NULL;
	frag_bits_add(q->empty, &q->empty_words, p->tag);
}

static struct frag_piece *take(struct pool *q, uint64_t bytes)
{
	struct frag_bset_node *at = frag_bset_lower(&q->cached, bytes, 0);
	struct frag_piece *p;

	if (!at || at->by.key - bytes >= WASTE_LIMIT)
		return NULL;
	p = at->value;
	frag_bset_erase_at(&q->cached, at);
	vacate(q, p);
	return p;
}

/* ---- giving back -------------------------------------------------------------------------- */

static int clear_pool(struct self *s, struct pool *q, struct frag_err *err)
{
	size_t i;

	for (i = 0; i < s->params->buffers && frag_bset_count(&q->cached); i++) {
		struct frag_piece *p = q->slots[i];

		if (!p)
			continue;
		frag_bset_erase(&q->cached, p->bytes, p->tag);
		vacate(q, p);
		FRAG_TRY(frag_heap_retire(&s->heap, p, err));
	}
	return 0;
}

/* ---- hooks -------------------------------------------------------------------------------- */

static int grow(struct self *s, struct pool *q, uint64_t bytes, uint32_t stream,
		struct frag_piece **p, uint8_t *cls, struct frag_err *err)
{
	uint64_t ahead = (uint64_t)(s->params->look_ahead * (double)bytes);
	int rc;

	ahead = frag_round_up(FRAG_MAX(ahead, bytes), ALIGNMENT);
	*cls = FRAG_CLASS_GROW;
	rc = frag_heap_grow(&s->heap, ahead, stream, p, err);
	if (rc == FRAG_OOM && s->params->retry) {
		*cls = FRAG_CLASS_RELEASE;
		FRAG_TRY(frag_dev_sync_all(s->heap.env.dev, err));
		FRAG_TRY(frag_heap_drop_idle(&s->heap, err));
		FRAG_TRY(clear_pool(s, q, err));
		rc = frag_heap_grow(&s->heap, ahead, stream, p, err);
	}
	return rc;
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p;
	struct pool *q;

	if (FRAG_UNLIKELY(req->bytes > FRAG_HEAP_REQUEST_MAX / 4))
		return FRAG_OOM;
	q = pool_get(s, req->stream);
	FRAG_CHECK_ALLOC(q, "policy ggml", err);
	p = take(q, req->bytes);
	out->cls = FRAG_CLASS_HIT;
	if (!p)
		FRAG_TRY(grow(s, q, FRAG_MAX(req->bytes, 1), req->stream, &p, &out->cls, err));
	frag_heap_grant(&s->heap, p, out);
	return 0;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p = frag_piece_of(block);

	frag_heap_give(&s->heap, p);
	if (FRAG_LIKELY(put(s->pools[p->seg->stream], p)))
		return 0;
	return frag_heap_retire(&s->heap, p, err);
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	struct self *s = self;
	uint32_t i;

	(void)pool;
	FRAG_TRY(frag_heap_drop_idle(&s->heap, err));
	for (i = 0; i < s->pools_count; i++)
		if (s->pools[i])
			FRAG_TRY(clear_pool(s, s->pools[i], err));
	return 0;
}

/* ---- check -------------------------------------------------------------------------------- */

static int check(void *self, struct frag_err *err)
{
	struct self *s = self;
	size_t n = 0;

	for (uint32_t i = 0; i < s->pools_count; i++) {
		const struct pool *q = s->pools[i];
		size_t taken = 0;

		for (size_t k = 0; q && k < s->params->buffers; k++) {
			const struct frag_piece *p = q->slots[k];

			taken += p && frag_bset_has(&q->cached, p->bytes, k, p);
		}
		if (q && taken != frag_bset_count(&q->cached))
			return frag_fail(err, FRAG_ECHECK,
					 "pool of stream %" PRIu32 ": set and slots differ", i);
		n += taken;
	}
	return frag_heap_check(&s->heap, n, NULL, NULL, err);
}

const struct frag_policy_ops frag_policy_ggml = {
	.name = "ggml",
	.summary = "llama.cpp's older pool: 256 cached buffers per stream, granted whole",
	.source = "ggml-org/llama.cpp ggml/src/ggml-cuda/ggml-cuda.cu, ggml_cuda_pool_leg (2026)",
	.trims = "every cached buffer",
	.checked = "ggml of 2026-08-21, compiled",
	.flags = FRAG_POLICY_STREAMS,
	FRAG_HEAP_OPS,
	FRAG_POLICY_PARAMS(struct params),
	FRAG_POLICY_HOOKS,
	.trim = trim,
	.usage = frag_heap_op_usage,
	.check = check,
};
