/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bfc: best fit with coalescing, the allocator of XLA (JAX, TensorFlow) and of ONNX Runtime.
 *
 * Rules of variant=xla (openxla/xla, xla/tsl/framework/bfc_allocator.cc, 2026; policies.md 5):
 *  - Requests are rounded up to 256 B. The smallest free chunk that fits serves it, the lowest
 *    address among equals. (The source's 21 bins are ranges of size in ascending order, and each
 *    is ordered by size and address: together one ordered set, which is what is used here.)
 *  - Split if the chunk is at least twice the rounded request, or at least max-internal
 *    (128 MiB, or fragmentation-fraction of the limit) larger. The head is handed out, the tail
 *    stays free. Else the whole chunk is granted.
 *  - Free merges with the chunk behind, then with the one before, of the same region.
 *  - Regions are bounded by fraction of the card (JAX: 0.75). growth=false takes one region of
 *    that size at first use. growth=true: the step starts at 2 MiB; it doubles until it holds
 *    the request, and after a region that needed no doubling; a region is the step, at most what is left of the
 *    limit. When the device refuses, 0.9 of it (in single precision, rounded to 256 B) is asked until it is below
 *    the request.
 *  - When that fails: with gc=true all idle regions are given back, if limit - reserved + idle
 *    is enough for the request, and a region is asked for again. Then the framework
 *    waits for frees and tries once more (retry).
 *  - Nothing is given back otherwise, and there is no empty_cache.
 * Not modelled: regions that merge because their addresses touch (only for sub-allocators that
 * allow it, cudaMalloc does not), timestamped chunks (off by default), the two-ended mode.
 *
 * variant=ort (microsoft/onnxruntime, onnxruntime/core/framework/bfc_arena.cc) differs:
 *  - No limit of its own by default; the step starts at `initial` (1 MiB) and is doubled also when the device then
 *    refuses; extend=exact takes the rounded request instead. A step stops growing at max-extend (1 GiB); above
 *    that a request gets its exact size. Gives up below 8 KiB.
 *  - A chunk belongs to the stream it was first given to; new regions and tails cut from them to none.
 *    A stream takes its own chunks, those of none, and those stamped before the last synchronisation;
 *    with cross-stream=true, where it finds none, the best one of another stream, whole.
 *    Merging needs the same stream.
 *  - trim (Shrink) gives every idle region back, but the very first only with extend=exact, and the next
 *    step starts at 2 MiB.
 *
 * Structure: common/segheap for regions and chunks; ordered sets of the free ones: `shared`
 * for chunks that every stream may take, one per stream for the others.
 * piece->tag: 0 no stream, else stream + 1. piece->link[0]: stamp, the number of synchronisations
 * when it was given to its stream.
 * Invariants: every free chunk is in the set that its tag and stamp say; no two
 * neighbours of the same tag are free.
 */
#include "bset.h"
#include "segheap.h"

#include <inttypes.h>

#define UNIT 256u
#define XLA_FIRST_STEP (2 * FRAG_MIB)
#define ORT_SHRUNK_STEP (2 * FRAG_MIB)
#define ORT_GIVE_UP (8 * FRAG_KIB)
#define NO_LIMIT (1ull << 62)

enum variant { VARIANT_XLA, VARIANT_ORT };
enum extend_rule { EXTEND_POW2, EXTEND_EXACT };

struct params {
	uint64_t variant, extend, max_internal, initial, max_extend;
	double fraction, fragmentation_fraction;
	bool growth, gc, retry, cross_stream;
};

static const char *const variant_words[] = { "xla", "ort", NULL };
static const char *const extend_words[] = { "pow2", "exact", NULL };

static const struct frag_opt opts[] = {
	FRAG_OPT_ENUM("variant", struct params, variant, VARIANT_XLA, variant_words,
		      "whose rules: XLA and TensorFlow, or ONNX Runtime"),
	FRAG_OPT_BOOL("growth", struct params, growth, 1,
		      "xla: take regions as needed; false: one region at first use"),
	FRAG_OPT_DOUBLE("fraction", struct params, fraction, 0, 0, 1,
			"of the card that may be reserved; 0 = 0.75 for xla, all for ort"),
	FRAG_OPT_BOOL("gc", struct params, gc, 0, "xla: give idle regions back before out of memory"),
	FRAG_OPT_BOOL("retry", struct params, retry, 1,
		      "xla: wait for pending frees and try again before out of memory"),
	FRAG_OPT_BYTES("max-internal", struct params, max_internal, 128 * FRAG_MIB, UNIT, 1ull << 50,
		       "a chunk this much larger than the request is split, bytes"),
	FRAG_OPT_DOUBLE("fragmentation-fraction", struct params, fragmentation_fraction, 0, 0, 1,
			"xla: max-internal as a part of the limit; 0 = use max-internal"),
	FRAG_OPT_ENUM("extend", struct params, extend, EXTEND_POW2, extend_words,
		      "ort: size of a new region, growing steps or the request"),
	FRAG_OPT_BYTES("initial", struct params, initial, FRAG_MIB, UNIT, 1ull << 40,
		       "ort: first step, bytes"),
	FRAG_OPT_BYTES("max-extend", struct params, max_extend, FRAG_GIB, FRAG_MIB, 1ull << 50,
		       "ort: largest step, bytes"),
	FRAG_OPT_BOOL("cross-stream", struct params, cross_stream, 0,
		      "ort: take a chunk of another stream where none else fits"),
	FRAG_OPT_END,
};

struct self {
	const struct params *params;
	bool ort;
	uint64_t max_internal;
	uint64_t limit; /* of the sum of all regions */
	uint64_t region_bytes;
	uint64_t step; /* next region, before it is cut to what is left */
	uintptr_t syncs;
	struct frag_bset_pool nodes;
	struct frag_bset shared;
	struct frag_bset *own; /* [own_count], by stream */
	uint32_t own_count;
	struct frag_heap heap;
};

static uint64_t round_unit(uint64_t bytes)
{
	return (bytes + UNIT - 1) & ~(uint64_t)(UNIT - 1);
}

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->variant == VARIANT_ORT && !p->growth)
		return frag_fail(err, FRAG_EUSAGE, "growth=false is for variant=xla only");
	if (p->variant == VARIANT_ORT && p->gc)
		return frag_fail(err, FRAG_EUSAGE, "gc is for variant=xla only; ort shrinks on trim");
	if (p->variant == VARIANT_XLA && p->cross_stream)
		return frag_fail(err, FRAG_EUSAGE, "cross-stream is for variant=ort only");
	return 0;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	const struct params *p = params;
	struct self *s = frag_host_calloc(1, sizeof(*s));
	double fraction;

	if (!s)
		return frag_fail_nomem(err, "policy bfc");
	s->params = p;
	s->ort = p->variant == VARIANT_ORT;
	fraction = p->fraction > 0 ? p->fraction : 0.75;
	s->limit = s->ort && !(p->fraction > 0) ?
			   NO_LIMIT :
			   (uint64_t)((double)env->device_total_bytes * fraction);
	s->max_internal = p->fragmentation_fraction > 0 && !s->ort ?
				  (uint64_t)(p->fragmentation_fraction * (double)s->limit) :
				  p->max_internal;
	s->step = s->ort     ? p->initial :
		  p->growth ? XLA_FIRST_STEP :
			      s->limit;
	s->step = round_unit(FRAG_MAX(FRAG_MIN(s->step, s->limit), 1));
	frag_heap_init(&s->heap, env, s->ort);
	frag_bset_pool_init(&s->nodes);
	frag_bset_init_shared(&s->shared, &s->nodes);
	*out = s;
	return 0;
}

static void destroy(void *self)
{
	struct self *s = self;

	frag_heap_release(&s->heap);
	frag_bset_pool_release(&s->nodes);
	frag_host_free(s->own);
	frag_host_free(s);
}

/* ---- sets of free chunks ------------------------------------------------------------- */

static uintptr_t stamp_of(const struct frag_piece *p)
{
	return (uintptr_t)p->link[0];
}

static struct frag_bset *set_of(struct self *s, const struct frag_piece *p)
{
	return !p->tag || stamp_of(p) < s->syncs ? &s->shared : &s->own[p->tag - 1];
}

static void put(void *self, struct frag_piece *p)
{
	struct self *s = self;

	frag_bset_insert(set_of(s, p), p->bytes, p->addr, p);
}

static void cut(void *self, struct frag_piece *p)
{
	struct self *s = self;

	frag_bset_erase(set_of(s, p), p->bytes, p->addr);
}

/* Host memory for anything that one request or free can do. */
static int reserve(struct self *s, uint32_t stream)
{
	if (FRAG_UNLIKELY(s->ort && stream >= s->own_count)) {
		struct frag_bset *own = frag_host_realloc(s->own, stream + 1ul, sizeof(*own));

		if (!own)
			return FRAG_ENOMEM;
		s->own = own;
		while (s->own_count <= stream)
			frag_bset_init_shared(&own[s->own_count++], &s->nodes);
	}
	if (FRAG_UNLIKELY(s->nodes.limit < s->heap.pieces_count + 2) &&
	    frag_bset_pool_reserve(&s->nodes, s->heap.pieces_count + 2))
		return FRAG_ENOMEM;
	return frag_heap_reserve(&s->heap, 2);
}

static struct frag_piece *piece_at(struct frag_bset_pos at)
{
	return at.leaf ? frag_bset_value(at) : NULL;
}

/* The earlier of two in the order of the sets; NULL comes last. */
static struct frag_piece *first_of(struct frag_piece *a, struct frag_piece *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? a : b;
	return a->addr < b->addr ? a : b;
}

/* The chunk that serves a request, or NULL. *whole: it may not be split. */
static struct frag_piece *find(struct self *s, uint64_t bytes, uint32_t stream, bool *whole)
{
	struct frag_piece *p = piece_at(frag_bset_lower(&s->shared, bytes, 0));
	uint32_t i;

	*whole = false;
	if (!s->ort)
		return p;
	p = first_of(p, piece_at(frag_bset_lower(&s->own[stream], bytes, 0)));
	if (p || !s->params->cross_stream)
		return p;
	*whole = true;
	for (i = 0; i < s->own_count; i++)
		p = first_of(p, piece_at(frag_bset_lower(&s->own[i], bytes, 0)));
	return p;
}

/* ---- regions ---------------------------------------------------------------------------- */

/* Size of the next region for a request; `left`: of the limit. Changes the step. */
static uint64_t next_region(struct self *s, uint64_t bytes, uint64_t left, bool *doubled)
{
	*doubled = false;
	if (s->ort && (s->params->extend == EXTEND_EXACT || bytes > s->params->max_extend)) {
		*doubled = true;
		return bytes;
	}
	while (bytes > s->step) {
		s->step *= 2;
		*doubled = true;
	}
	if (s->ort)
		s->step = FRAG_MIN(s->step, s->params->max_extend);
	return FRAG_MIN(s->step, left);
}

static void double_step(struct self *s)
{
	if (s->step <= 1ull << 60)
		s->step *= 2;
	if (s->ort)
		s->step = FRAG_MIN(s->step, s->params->max_extend);
}

/* The next smaller size to ask for. */
static uint64_t back_off(uint64_t bytes)
{
	uint64_t less = round_unit((uint64_t)((float)bytes * 0.9f));

	return less < bytes ? less : bytes - UNIT;
}

/* A region that holds the request: 0, FRAG_OOM or an error. */
static int extend(struct self *s, uint64_t bytes, uint32_t stream, struct frag_err *err)
{
	uint64_t left = (s->limit - s->region_bytes) / UNIT * UNIT, size;
	struct frag_piece *p;
	bool doubled;
	int rc;

	if (bytes > left)
		return FRAG_OOM;
	if (reserve(s, stream))
		return frag_fail_nomem(err, "policy bfc");
	size = next_region(s, bytes, left, &doubled);
	if (s->ort && !doubled)
		double_step(s);
	rc = frag_heap_grow(&s->heap, size, stream, &p, err);
	while (rc == FRAG_OOM) {
		size = back_off(size);
		if (size < bytes || (s->ort && size < ORT_GIVE_UP))
			return FRAG_OOM;
		rc = frag_heap_grow(&s->heap, size, stream, &p, err);
	}
	if (rc)
		return rc;
	if (!s->ort && !doubled)
		double_step(s);
	if (s->ort && s->params->extend == EXTEND_POW2 && !s->region_bytes)
		frag_heap_keep(&s->heap, p->seg);
	s->region_bytes += size;
	put(s, p);
	return 0;
}

/* Gives every region without live chunks back, lowest first, except a kept one. */
static int give_back(struct self *s, struct frag_err *err)
{
	static const struct frag_heap_index sets = { cut, put };
	uint64_t held = s->heap.free_bytes;
	int rc = frag_heap_drop_idle(&s->heap, &sets, s, err);

	s->region_bytes -= held - s->heap.free_bytes;
	return rc;
}

/* Idle regions go, if that can help, and a new one comes. */
static int collect(struct self *s, uint64_t bytes, uint32_t stream, struct frag_err *err)
{
	uint64_t idle = s->heap.idle_bytes;

	if (!s->params->gc || !idle || bytes > s->limit - s->region_bytes + idle)
		return FRAG_OOM;
	FRAG_TRY(give_back(s, err));
	return extend(s, bytes, stream, err);
}

/* When no chunk fits. 0 and *p, FRAG_OOM or an error. */
static int make_room(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **p,
		     enum frag_class *cls, struct frag_err *err)
{
	bool whole, again = s->params->retry && !s->ort && s->heap.env.sync;
	int rc;

	*cls = FRAG_CLASS_GROW;
	for (;;) {
		rc = extend(s, bytes, stream, err);
		if (rc == FRAG_OOM) {
			*cls = FRAG_CLASS_RELEASE;
			rc = collect(s, bytes, stream, err);
		}
		if (rc != FRAG_OOM)
			break;
		if (!again)
			return FRAG_OOM;
		again = false;
		s->heap.env.sync(s->heap.env.sync_ctx);
		*p = find(s, bytes, stream, &whole);
		if (*p)
			return 0;
	}
	if (!rc)
		*p = find(s, bytes, stream, &whole);
	return rc;
}

/* ---- hooks ---------------------------------------------------------------------------------- */

static bool must_split(const struct self *s, const struct frag_piece *p, uint64_t bytes)
{
	return p->bytes >= 2 * bytes || p->bytes - bytes >= s->max_internal;
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	uint64_t bytes = round_unit(req->bytes);
	enum frag_class cls = FRAG_CLASS_HIT;
	struct frag_piece *p;
	bool whole;

	if (FRAG_UNLIKELY(req->bytes > FRAG_HEAP_REQUEST_MAX))
		return FRAG_OOM;
	if (reserve(s, req->stream))
		return frag_fail_nomem(err, "policy bfc");
	p = find(s, bytes, req->stream, &whole);
	if (FRAG_UNLIKELY(!p)) {
		FRAG_TRY(make_room(s, bytes, req->stream, &p, &cls, err));
		whole = false;
		if (reserve(s, req->stream))
			return frag_fail_nomem(err, "policy bfc");
	}
	cut(s, p);
	if (!whole && must_split(s, p, bytes)) {
		struct frag_piece *rest = frag_heap_split(&s->heap, p, bytes);

		rest->link[0] = p->link[0];
		put(s, rest);
		if (cls == FRAG_CLASS_HIT)
			cls = FRAG_CLASS_SPLIT;
	}
	if (s->ort && !p->tag) {
		p->tag = req->stream + 1;
		p->link[0] = (void *)s->syncs;
	}
	frag_heap_take(&s->heap, p);
	out->addr = p->addr;
	out->granted = p->bytes;
	out->handle = (uintptr_t)p;
	out->cls = (uint8_t)cls;
	return 0;
}

/* Joins p with the free chunk behind it; both are in no set. */
static void absorb(struct self *s, struct frag_piece *p)
{
	uintptr_t stamp = FRAG_MAX(stamp_of(p), stamp_of(p->next));

	frag_heap_join(&s->heap, p);
	p->link[0] = (void *)stamp;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p = (void *)(uintptr_t)block->handle, *q;

	(void)err;
	frag_heap_give(&s->heap, p);
	q = frag_piece_free_next(p);
	if (q && q->tag == p->tag) {
		cut(s, q);
		absorb(s, p);
	}
	q = frag_piece_free_prev(p);
	if (q && q->tag == p->tag) {
		cut(s, q);
		absorb(s, q);
		p = q;
	}
	put(s, p);
	return 0;
}

static void free_requested(void *self, const struct frag_block *block)
{
	struct self *s = self;

	frag_heap_wait(&s->heap, (void *)(uintptr_t)block->handle);
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	struct self *s = self;

	(void)pool;
	if (!s->ort)
		return 0;
	s->step = ORT_SHRUNK_STEP;
	return give_back(s, err);
}

/* What was free or in use until now is safe for every stream. */
static int synced(void *self, struct frag_err *err)
{
	struct self *s = self;
	struct frag_bset_pos at;
	uint32_t i;

	(void)err;
	s->syncs++;
	for (i = 0; i < s->own_count; i++)
		while ((at = frag_bset_first(&s->own[i])).leaf) {
			struct frag_piece *p = frag_bset_value(at);

			frag_bset_erase_at(&s->own[i], at);
			put(s, p);
		}
	return 0;
}

static void visit(void *self, const struct frag_visitor *v)
{
	struct self *s = self;

	frag_heap_visit(&s->heap, v);
}

static uint64_t largest(const struct frag_bset *set)
{
	struct frag_bset_pos at = frag_bset_last(set);

	return at.leaf ? frag_bset_size(at) : 0;
}

static void usage(void *self, struct frag_usage *out)
{
	struct self *s = self;
	uint64_t most = largest(&s->shared);
	uint32_t i;

	for (i = 0; i < s->own_count; i++)
		most = FRAG_MAX(most, largest(&s->own[i]));
	frag_heap_usage(&s->heap, most, out);
}

/* ---- check -------------------------------------------------------------------------------------- */

static bool indexed(void *ctx, const struct frag_piece *p)
{
	const struct frag_piece *next = frag_piece_free_next(p);

	if (next && next->tag == p->tag)
		return false; /* should have been merged */
	return piece_at(frag_bset_lower(set_of(ctx, p), p->bytes, p->addr)) == p;
}

static int check(void *self, struct frag_err *err)
{
	struct self *s = self;
	const char *bad = frag_bset_broken(&s->shared);
	size_t n = frag_bset_count(&s->shared);
	uint64_t regions = s->heap.live_bytes + s->heap.waiting_bytes + s->heap.free_bytes;
	uint32_t i;

	for (i = 0; i < s->own_count && !bad; i++) {
		bad = frag_bset_broken(&s->own[i]);
		n += frag_bset_count(&s->own[i]);
	}
	if (bad)
		return frag_fail(err, FRAG_ECHECK, "set of free chunks: %s", bad);
	if (n != s->heap.free_count)
		return frag_fail(err, FRAG_ECHECK, "%zu chunks in the sets, %zu are free", n,
				 s->heap.free_count);
	if (regions != s->region_bytes || regions > s->limit)
		return frag_fail(err, FRAG_ECHECK, "regions of %" PRIu64 " bytes, limit %" PRIu64,
				 regions, s->limit);
	return frag_heap_check(&s->heap, indexed, s, err);
}

const struct frag_policy_ops frag_policy_bfc = {
	.abi = FRAG_POLICY_ABI,
	.name = "bfc",
	.summary = "best fit with coalescing: JAX and TensorFlow, ONNX Runtime",
	.source = "openxla/xla xla/tsl/framework/bfc_allocator.cc (2026); "
		  "microsoft/onnxruntime onnxruntime/core/framework/bfc_arena.cc",
	.needs = FRAG_CAN_MALLOC,
	.opts = opts,
	.params_size = sizeof(struct params),
	.validate = validate,
	.create = create,
	.destroy = destroy,
	.alloc = alloc,
	.free = release,
	.free_requested = free_requested,
	.trim = trim,
	.synced = synced,
	.visit = visit,
	.usage = usage,
	.check = check,
};
