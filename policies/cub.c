/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cub: CUB's CachingDeviceAllocator.
 *
 * Rules (NVIDIA/cccl, cub/cub/util_allocator.cuh, 2024-2026):
 *  - Bins are powers of growth (8), from growth^min-bin (512 B) to growth^max-bin (2 MiB). A
 *    request is rounded up to its bin. Above the top bin it is cudaMalloc and cudaFree of its
 *    exact size each time. Nothing is split or merged: every block is a segment.
 *  - A cached block of just that bin serves the request: the one cached first of those that are
 *    of the same stream, or whose event, recorded at the free, is done. It then belongs to the
 *    stream of the request.
 *  - Else cudaMalloc; when that is refused, every cached block is given back, smallest bin
 *    first, and the driver asked once more.
 *  - Free: cached, with an event on its stream, if the sum of the cached blocks stays at or
 *    below max-cached (3 * 8^7 - 1 bytes), else cudaFree.
 *  - trim (FreeAllCached) gives everything cached back. The source asks for the event of every
 *    block it passes. Events of one stream are done in order, so here it is that of the first
 *    one of each stream: the same choice, fewer calls. On the simulated card work is done after
 *    lag-us of recorded time, or a synchronisation.
 *
 * Structure: common/segheap, one piece per segment; a queue of cached blocks per stream and bin,
 * and per bin the streams whose queue is not empty, by the number of its first block. A request
 * asks for up to one event per stream, as the source does; it does not look for which is next.
 * link[0]: next in the queue; link[1]: number of the free; tag: stream; mark: bin; seg->tag:
 * event.
 * Invariants: every free piece is in the queue of its stream and bin, numbers ascending; with more
 * than one stream heads[] have the first one of every queue.
 */
#include "bset.h"
#include "segheap.h"

#include <inttypes.h>

#define NO_BIN 255u
#define NO_EVENT UINT64_MAX

struct params {
	uint64_t growth, min_bin, max_bin, max_cached, lag_us;
};

static const struct frag_opt opts[] = {
	FRAG_OPT_UINT("growth", struct params, growth, 8, 2, 1024, "ratio of two bins"),
	FRAG_OPT_UINT("min-bin", struct params, min_bin, 3, 0, 63,
		      "smallest bin, as an exponent of growth"),
	FRAG_OPT_UINT("max-bin", struct params, max_bin, 7, 0, 63,
		      "largest bin, as an exponent of growth"),
	FRAG_OPT_BYTES("max-cached", struct params, max_cached, 6291455, 0, UINT64_MAX,
		       "largest sum of cached blocks, bytes", .tune = "6291455,64M,1G,max"),
	FRAG_OPT_UINT("lag-us", struct params, lag_us, 10000, 0, 1000000000,
		      "simulated card: queued work is done after this much recorded time, "
		      "microseconds"),
	FRAG_OPT_END,
};

struct queue {
	struct frag_piece *first, *last;
};

struct self {
	struct frag_heap heap; /* first: its hooks are used as they are */
	const struct params *params;
	struct queue *queues;	 /* [stream * bins + bin - min_bin] */
	struct frag_bset *heads; /* [bin - min_bin]: (0, first number) -> its queue's stream */
	uint32_t streams, bins;
	uint64_t cached_bytes;
	uintptr_t frees; /* number of the next free, from 1 */
};

/* growth^exponent, UINT64_MAX if it is above. */
static uint64_t power(uint64_t growth, uint64_t exponent)
{
	uint64_t bytes = 1;

	while (exponent--)
		if (__builtin_mul_overflow(bytes, growth, &bytes))
			return UINT64_MAX;
	return bytes;
}

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->min_bin > p->max_bin)
		return frag_fail(err, FRAG_EUSAGE, "min-bin is above max-bin");
	if (power(p->growth, p->min_bin) > 1ull << 40)
		return frag_fail(err, FRAG_EUSAGE, "the smallest bin is above 1 TiB");
	return 0;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s;

	FRAG_TRY(frag_heap_create(env, sizeof(*s), NULL, "policy cub", out, err));
	s = *out;
	s->params = params;
	s->bins = (uint32_t)(s->params->max_bin - s->params->min_bin + 1);
	s->frees = 1;
	s->heads = frag_host_calloc(s->bins, sizeof(*s->heads));
	if (!s->heads) {
		frag_host_free(s);
		return frag_fail_nomem(err, "policy cub");
	}
	for (uint32_t i = 0; i < s->bins; i++)
		frag_bset_init(&s->heads[i]);
	return 0;
}

static void destroy(void *self)
{
	struct self *s = self;

	for (uint32_t i = 0; i < s->bins; i++)
		frag_bset_release(&s->heads[i]);
	frag_host_free(s->heads);
	frag_heap_release(&s->heap);
	FRAG_FREE(s->queues, s);
}

/* ---- queues ------------------------------------------------------------------------------- */

static uintptr_t number(const struct frag_piece *p)
{
	return (uintptr_t)p->link[1];
}

static struct queue *queue_of(struct self *s, uint32_t stream, unsigned bin)
{
	return &s->queues[(size_t)stream * s->bins + bin - s->params->min_bin];
}

/* A block is the first of its queue now, or no longer. One stream needs no order. */
static void head_insert(struct self *s, const struct frag_piece *p)
{
	struct frag_bset *heads = &s->heads[p->mark - s->params->min_bin];

	if (s->streams > 1)
		frag_bset_insert(heads, 0, number(p), (void *)(uintptr_t)p->tag);
}

static void head_erase(struct self *s, const struct frag_piece *p)
{
	if (s->streams > 1)
		frag_bset_erase(&s->heads[p->mark - s->params->min_bin], 0, number(p));
}

static void push(struct self *s, struct queue *q, struct frag_piece *p)
{
	p->link[0] = NULL;
	if (q->last) {
		q->last->link[0] = p;
	} else {
		q->first = p;
		head_insert(s, p);
	}
	q->last = p;
}

static struct frag_piece *pop(struct self *s, struct queue *q)
{
	struct frag_piece *p = q->first;

	q->first = p->link[0];
	if (!q->first)
		q->last = NULL;
	head_erase(s, p);
	if (q->first)
		head_insert(s, q->first);
	return p;
}

/* The second stream is here: from now on the order counts. */
static void order_heads(struct self *s)
{
	for (uint32_t i = 0; i < s->streams * s->bins; i++)
		if (s->queues[i].first)
			head_insert(s, s->queues[i].first);
}

static int reserve_stream(struct self *s, uint32_t stream)
{
	bool alone = s->streams <= 1;
	struct queue *queues;
	size_t i;

	if (FRAG_LIKELY(stream < s->streams))
		return 0;
	for (i = 0; i < s->bins; i++)
		if (frag_bset_reserve(&s->heads[i], stream + 1ul))
			return FRAG_ENOMEM;
	queues = frag_host_realloc(s->queues, (stream + 1ul) * s->bins, sizeof(*queues));
	if (!queues)
		return FRAG_ENOMEM;
	for (i = (size_t)s->streams * s->bins; i < (stream + 1ul) * s->bins; i++)
		queues[i] = (struct queue){ NULL, NULL };
	s->queues = queues;
	s->streams = stream + 1;
	if (alone && s->streams > 1)
		order_heads(s);
	return 0;
}

/* ---- search ------------------------------------------------------------------------------- */

/* The first queue of a bin, of another stream, with a number in (above, below), or NULL. */
static struct queue *other_queue(struct self *s, unsigned bin, uint32_t stream, uintptr_t above,
				 uintptr_t below)
{
	const struct frag_bset *heads = &s->heads[bin - s->params->min_bin];
	struct frag_bset_node *at;

	if (s->streams <= 1) {
		struct queue *q = s->streams && stream ? queue_of(s, 0, bin) : NULL;

		return q && q->first ? q : NULL;
	}
	at = frag_bset_lower(heads, 0, above + 1);
	if (at && (uint32_t)(uintptr_t)at->value == stream)
		at = frag_bset_next(heads, at);
	if (!at || at->by.tie >= below)
		return NULL;
	return queue_of(s, (uint32_t)(uintptr_t)at->value, bin);
}

/* 0 and the queue whose first block serves the request, or NULL. */
static int find(struct self *s, unsigned bin, uint32_t stream, struct queue **out,
		struct frag_err *err)
{
	struct queue *own = queue_of(s, stream, bin), *q;
	uintptr_t below = own->first ? number(own->first) : UINTPTR_MAX, above = 0;

	*out = own->first ? own : NULL;
	if (s->streams == 1)
		return 0;
	while ((q = other_queue(s, bin, stream, above, below)) != NULL) {
		uint64_t event = q->first->seg->tag;
		bool done = false;

		if (event != NO_EVENT)
			FRAG_TRY(frag_dev_fence_done(s->heap.env.dev, event,
						     s->params->lag_us * 1000, &done, err));
		if (done) {
			*out = q;
			return 0;
		}
		above = number(q->first);
	}
	return 0;
}

/* ---- giving back -------------------------------------------------------------------------- */

static int drop_all(struct self *s, struct frag_err *err)
{
	unsigned bin = (unsigned)s->params->min_bin;
	struct queue *q;

	FRAG_TRY(frag_heap_drop_idle(&s->heap, err));
	for (; s->cached_bytes && bin <= s->params->max_bin; bin++)
		while ((q = other_queue(s, bin, UINT32_MAX, 0, UINTPTR_MAX)) != NULL) {
			struct frag_piece *p = pop(s, q);

			s->cached_bytes -= p->bytes;
			FRAG_TRY(frag_heap_retire(&s->heap, p, err));
		}
	return 0;
}

/* ---- hooks -------------------------------------------------------------------------------- */

static unsigned bin_of(const struct self *s, uint64_t *bytes)
{
	uint64_t size = 1, want = *bytes;
	unsigned bin = 0;

	while (bin < s->params->min_bin || size < want) {
		if (bin == s->params->max_bin ||
		    __builtin_mul_overflow(size, s->params->growth, &size))
			return NO_BIN;
		bin++;
	}
	*bytes = size;
	return bin;
}

static int grow(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **p,
		uint8_t *cls, struct frag_err *err)
{
	int rc = frag_heap_grow(&s->heap, bytes, stream, p, err);

	*cls = FRAG_CLASS_GROW;
	if (rc == FRAG_OOM) {
		*cls = FRAG_CLASS_RELEASE;
		FRAG_TRY(drop_all(s, err));
		rc = frag_heap_grow(&s->heap, bytes, stream, p, err);
	}
	return rc;
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	uint64_t bytes = req->bytes;
	struct queue *q = NULL;
	struct frag_piece *p;
	unsigned bin;

	if (FRAG_UNLIKELY(bytes > FRAG_HEAP_REQUEST_MAX))
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(!reserve_stream(s, req->stream), "policy cub", err);
	bin = bin_of(s, &bytes);
	if (bin != NO_BIN)
		FRAG_TRY(find(s, bin, req->stream, &q, err));
	if (q) {
		p = pop(s, q);
		s->cached_bytes -= bytes;
		out->cls = FRAG_CLASS_HIT;
	} else {
		FRAG_TRY(grow(s, bytes, req->stream, &p, &out->cls, err));
		p->mark = (uint8_t)bin;
	}
	p->tag = req->stream;
	frag_heap_grant(&s->heap, p, out);
	return 0;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p = frag_piece_of(block);

	frag_heap_give(&s->heap, p);
	if (p->mark == NO_BIN || p->bytes > s->params->max_cached ||
	    s->cached_bytes > s->params->max_cached - p->bytes)
		return frag_heap_retire(&s->heap, p, err);
	p->link[1] = (void *)s->frees++;
	push(s, queue_of(s, p->tag, p->mark), p);
	s->cached_bytes += p->bytes;
	/* without its event only the own stream can have it */
	p->seg->tag = NO_EVENT;
	return frag_dev_fence_record(s->heap.env.dev, p->tag, &p->seg->tag, err);
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	(void)pool;
	return drop_all(self, err);
}

/* ---- check -------------------------------------------------------------------------------- */

static bool queue_sound(const struct queue *q, size_t *count, uint64_t *bytes)
{
	const struct frag_piece *last = NULL;

	for (const struct frag_piece *p = q->first; p; last = p, p = p->link[0]) {
		if (!frag_piece_is_free(p))
			return false;
		++*count;
		*bytes += p->bytes;
	}
	return q->last == last;
}

/* Do heads[] have the first of every queue, and nothing else? */
static bool heads_sound(const struct self *s)
{
	for (uint32_t bin = 0; s->streams > 1 && bin < s->bins; bin++) {
		size_t count = 0;

		for (uint32_t i = 0; i < s->streams; i++) {
			const struct frag_piece *p = s->queues[(size_t)i * s->bins + bin].first;

			if (!p)
				continue;
			count++;
			if (!frag_bset_has(&s->heads[bin], 0, number(p), (void *)(uintptr_t)i))
				return false;
		}
		if (count != frag_bset_count(&s->heads[bin]))
			return false;
	}
	return true;
}

static int check(void *self, struct frag_err *err)
{
	struct self *s = self;
	size_t count = 0;
	uint64_t bytes = 0;
	bool sound = heads_sound(s);

	for (size_t i = 0; i < (size_t)s->streams * s->bins; i++)
		sound &= queue_sound(&s->queues[i], &count, &bytes);
	if (!sound || bytes != s->cached_bytes)
		return frag_fail(err, FRAG_ECHECK, "the queues of free blocks are broken");
	return frag_heap_check(&s->heap, count, NULL, NULL, err);
}

const struct frag_policy_ops frag_policy_cub = {
	.name = "cub",
	.summary = "CUB's caching allocator: five bins, a few megabytes cached, no split",
	.source = "NVIDIA/cccl cub/cub/util_allocator.cuh (2024-2026)",
	.trims = "every cached block (FreeAllCached)",
	.checked = "CCCL of 2026-08-22, compiled",
	.flags = FRAG_POLICY_STREAMS,
	FRAG_HEAP_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.validate = validate,
	FRAG_POLICY_HOOKS,
	.trim = trim,
	.usage = frag_heap_op_usage,
	.check = check,
};
