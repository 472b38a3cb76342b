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
 * Structure: common/segheap, one piece per segment; a list of the cached blocks of each bin in the
 * order of their frees. As in the source a search goes through it, so with several streams it takes
 * time in proportion to the blocks that are not done yet.
 * link[0], link[1]: next and previous in the list; tag: stream; mark: bin; seg->tag: event.
 * Invariants: every free piece is in the list of its bin.
 */
#include "segheap.h"

#define BINS 64u
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

struct list {
	struct frag_piece *first, *last;
};

struct self {
	struct frag_heap heap; /* first: its hooks are used as they are */
	const struct params *params;
	struct list bins[BINS];
	uint64_t *asked; /* by stream: the search that has asked for its event */
	uint32_t streams;
	uint64_t searches;
	uint64_t cached_bytes;
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
		return FRAG_USAGE(err, "min-bin is above max-bin");
	if (power(p->growth, p->min_bin) > 1ull << 40)
		return FRAG_USAGE(err, "the smallest bin is above 1 TiB");
	return 0;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	struct self *s;

	FRAG_TRY(frag_heap_create(env, sizeof(*s), NULL, "policy cub", out, err));
	s = *out;
	s->params = params;
	return 0;
}

static void destroy(void *self)
{
	struct self *s = self;

	frag_heap_release(&s->heap);
	FRAG_FREE(s->asked, s);
}

/* ---- cached blocks ------------------------------------------------------------------------ */

static void push(struct self *s, struct frag_piece *p)
{
	struct list *l = &s->bins[p->mark];

	p->link[0] = NULL;
	p->link[1] = l->last;
	*(l->last ? &l->last->link[0] : &l->first) = p;
	l->last = p;
	s->cached_bytes += p->bytes;
}

static void cut(struct self *s, struct frag_piece *p)
{
	struct list *l = &s->bins[p->mark];

	*(p->link[1] ? &p->link[1]->link[0] : &l->first) = p->link[0];
	*(p->link[0] ? &p->link[0]->link[1] : &l->last) = p->link[1];
	s->cached_bytes -= p->bytes;
}

static int reserve_stream(struct self *s, uint32_t stream)
{
	uint64_t *asked;

	if (FRAG_LIKELY(stream < s->streams))
		return 0;
	asked = frag_host_realloc(s->asked, stream + 1ul, sizeof(*asked));
	if (!asked)
		return FRAG_ENOMEM;
	s->asked = asked;
	while (s->streams <= stream)
		asked[s->streams++] = 0;
	return 0;
}

/* 0 and the block that serves the request, or NULL. */
static int find(struct self *s, unsigned bin, uint32_t stream, struct frag_piece **out,
		struct frag_err *err)
{
	struct frag_piece *p = s->bins[bin].first;
	bool done = false;

	s->searches++;
	for (; p && p->tag != stream; p = p->link[0]) {
		if (s->asked[p->tag] == s->searches)
			continue;
		s->asked[p->tag] = s->searches;
		if (p->seg->tag != NO_EVENT)
			FRAG_TRY(frag_dev_fence_done(s->heap.env.dev, p->seg->tag,
						     s->params->lag_us * 1000, &done, err));
		if (done)
			break;
	}
	*out = p;
	return 0;
}

/* ---- giving back -------------------------------------------------------------------------- */

static int drop_all(struct self *s, struct frag_err *err)
{
	FRAG_TRY(frag_heap_drop_idle(&s->heap, err));
	for (unsigned bin = 0; s->cached_bytes && bin < BINS; bin++)
		while (s->bins[bin].first) {
			struct frag_piece *p = s->bins[bin].first;

			cut(s, p);
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
	struct frag_piece *p = NULL;
	unsigned bin;

	if (FRAG_UNLIKELY(bytes > FRAG_HEAP_REQUEST_MAX))
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(!reserve_stream(s, req->stream), "policy cub", err);
	bin = bin_of(s, &bytes);
	if (bin != NO_BIN)
		FRAG_TRY(find(s, bin, req->stream, &p, err));
	if (p) {
		cut(s, p);
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
	push(s, p);
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

static int check(void *self, struct frag_err *err)
{
	struct self *s = self;
	size_t count = 0;
	uint64_t bytes = 0;

	for (unsigned bin = 0; bin < BINS; bin++) {
		const struct frag_piece *p = s->bins[bin].first, *last = NULL;

		for (; p && frag_piece_is_free(p) && p->link[1] == last; p = p->link[0]) {
			last = p;
			count++;
			bytes += p->bytes;
		}
		if (p || s->bins[bin].last != last)
			return frag_fail(err, FRAG_ECHECK, "the list of bin %u is broken", bin);
	}
	if (bytes != s->cached_bytes)
		return frag_fail(err, FRAG_ECHECK, "the cached bytes are miscounted");
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
