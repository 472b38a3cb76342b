/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bfc: best fit with coalescing, the allocator of XLA (JAX, TensorFlow) and of ONNX Runtime.
 *
 * Rules of variant=xla (openxla/xla, xla/tsl/framework/bfc_allocator.cc, 2026):
 *  - Requests are rounded up to 256 B. The smallest free chunk that fits serves it, the
 *    lowest address among equals. (The source's 21 bins are ranges of size in ascending
 *    order, and each is ordered by size and address: together one ordered set, which is
 *    what is used here.)
 *  - Split if the chunk is at least twice the rounded request, or at least max-internal
 *    (128 MiB, or fragmentation-fraction of the limit) larger. The head is handed out, the
 *    tail stays free. Else the whole chunk is granted.
 *  - Free merges with the chunk behind, then with the one before, of the same region.
 *  - Regions are bounded by fraction of the card (JAX: 0.75), or by the limit of the process
 *    if that is less. growth=false takes one region of that size at first use. growth=true: the step starts at 2 MiB; it doubles until it
 *    holds the request, and after a region that needed no doubling; a region is the step,
 *    at most what is left of the limit. When the device refuses, 0.9 of it (in single
 *    precision, rounded to 256 B) is asked until it is below the request.
 *  - When that fails: with gc=true all idle regions are given back, if limit - reserved +
 *    idle is enough for the request, and a region is asked for again. Then the framework
 *    waits for frees and tries once more (retry).
 *  - Nothing is given back otherwise, and there is no empty_cache.
 * Not modelled: regions that merge because their addresses touch (only for sub-allocators that
 * allow it, cudaMalloc does not), timestamped chunks (off by default), the two-ended mode.
 *
 * variant=ort (microsoft/onnxruntime, onnxruntime/core/framework/bfc_arena.cc) differs:
 *  - By default bounded by the limit of the process alone; the step starts at `initial`
 *    (1 MiB) and is doubled also when the device then refuses; extend=exact takes the
 *    rounded request instead. After a region that needed no doubling the step becomes
 *    max-extend (1 GiB) if twice the step is not below that, also where a larger request
 *    has taken it higher. (Older releases have no such bound.) Gives up below 8 KiB.
 *  - Requests come without a stream (IAllocator::Alloc: the CPU's arena, and any arena through the
 *    C API; every one before release 1.14), and chunks have no owner.
 *  - streams=true: requests come with one, as those of a session that runs on a device (1.14 and
 *    later). A chunk belongs to the stream it was first given to; new regions and tails cut from
 *    them to none. A stream takes its own chunks, those of none, and those stamped before
 *    the last synchronisation; with cross-stream=true, where it finds none, the best one of
 *    another stream, whole. Merging needs the same stream, which costs up to as much again. The source
 *    clears their owner at the end of a session's run, which is not modelled.
 *  - trim (Shrink) gives every idle region back, but the very first only with extend=exact,
 *    and the next step starts at 2 MiB.
 *
 * Structure: common/bestfit for regions and chunks, with a set for chunks that every stream may
 * take and one per stream for the others. Invariant: no two neighbours of the same tag are free.
 * piece->tag: 0 no stream, else stream + 1; piece->stamp: the number of synchronisations when the
 * chunk was given to its stream.
 */
#include "bestfit.h"

#define UNIT 256u
#define NO_LIMIT (1ull << 62)
#define XLA_FIRST_STEP (2 * FRAG_MIB)
#define ORT_FIRST_STEP FRAG_MIB
#define ORT_SHRUNK_STEP (2 * FRAG_MIB)
#define ORT_LARGEST_STEP FRAG_GIB
#define ORT_GIVE_UP (8 * FRAG_KIB)

enum { XLA, ORT };
enum { POW2, EXACT };

struct params {
	uint64_t variant, extend, max_internal, initial, max_extend;
	double fraction, fragmentation_fraction;
	bool growth, gc, retry, streams, cross_stream;
};

static const char *const variant_words[] = { "xla", "ort", NULL };
static const char *const extend_words[] = { "pow2", "exact", NULL };

static const struct frag_opt opts[] = {
	FRAG_OPT_ENUM("variant", struct params, variant, XLA, variant_words,
		      "rules of XLA and TensorFlow, or of ONNX Runtime"),
	FRAG_OPT_BOOL("growth", struct params, growth, 1,
		      "xla: take regions as needed; false: one region at first use"),
	FRAG_OPT_DOUBLE("fraction", struct params, fraction, 0, 0, 1,
			"part of the card that may be reserved; 0 = 0.75 for xla, all of it for "
			"ort"),
	FRAG_OPT_BOOL("gc", struct params, gc, 0,
		      "xla: give idle regions back before running out of memory"),
	FRAG_OPT_BOOL("retry", struct params, retry, 1,
		      "xla: wait for pending frees and try again before running out of memory"),
	FRAG_OPT_BYTES("max-internal", struct params, max_internal, 128 * FRAG_MIB, UNIT,
		       1ull << 50,
		       "split a chunk that is at least this much larger than the request, bytes"),
	FRAG_OPT_DOUBLE("fragmentation-fraction", struct params, fragmentation_fraction, 0, 0, 1,
			"xla: max-internal as a part of the limit; 0 = use max-internal"),
	FRAG_OPT_ENUM("extend", struct params, extend, POW2, extend_words,
		      "ort: a new region is a growing step (pow2) or just the request (exact)"),
	FRAG_OPT_BYTES("initial", struct params, initial, ORT_FIRST_STEP, UNIT, 1ull << 40,
		       "ort: first step, bytes"),
	FRAG_OPT_BYTES("max-extend", struct params, max_extend, ORT_LARGEST_STEP, FRAG_MIB,
		       1ull << 50, "ort: largest step, unless a request is larger, bytes"),
	FRAG_OPT_BOOL("streams", struct params, streams, 0,
		      "ort: a chunk belongs to the stream it was first given to"),
	FRAG_OPT_BOOL("cross-stream", struct params, cross_stream, 0,
		      "ort with streams=true: use another stream's chunk when nothing else fits"),
	FRAG_OPT_END,
};

struct self {
	struct frag_best best; /* first: its hooks are used as they are */
	const struct params *params;
	bool ort;
	uint64_t max_internal;
	uint64_t limit; /* of the sum of all regions */
	uint64_t region_bytes;
	uint64_t step; /* next region, before it is cut to what is left */
	uint64_t syncs;
};

static inline uint64_t rounded(uint64_t bytes)
{
	return (bytes + UNIT - 1) & ~(uint64_t)(UNIT - 1);
}

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->variant == ORT && !p->growth)
		return FRAG_USAGE(err, "growth=false is for variant=xla only");
	if (p->variant == ORT && p->gc)
		return FRAG_USAGE(err, "gc is for variant=xla only; ort shrinks on trim");
	if (p->variant == ORT && p->fragmentation_fraction > 0)
		return FRAG_USAGE(err, "fragmentation-fraction is for variant=xla only; give "
				       "max-internal");
	if (p->variant == XLA && (p->streams || p->cross_stream))
		return FRAG_USAGE(err, "streams and cross-stream are for variant=ort only");
	if (p->cross_stream && !p->streams)
		return FRAG_USAGE(err, "cross-stream needs streams=true");
	if (p->variant == XLA && (p->extend != POW2 || p->initial != ORT_FIRST_STEP ||
				  p->max_extend != ORT_LARGEST_STEP))
		return FRAG_USAGE(err, "extend, initial and max-extend are for variant=ort only");
	return 0;
}

/* What was stamped before the last synchronisation is safe for every stream. */
static uint32_t set_of(const void *self, const struct frag_piece *p)
{
	return p->stamp < ((const struct self *)self)->syncs ? 0 : p->tag;
}

static bool merges(const struct frag_piece *p, const struct frag_piece *next)
{
	return p->tag == next->tag;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	static const struct frag_best_rules rules = { set_of, merges };
	const struct params *p = params;
	struct self *s;
	double fraction;

	FRAG_TRY(frag_best_create(env, sizeof(*s), &rules, "policy bfc", out, err));
	s = *out;
	s->params = p;
	s->ort = s->best.heap.gives_back = p->variant == ORT;
	fraction = p->fraction > 0 ? p->fraction : 0.75;
	s->limit = s->ort && !(p->fraction > 0)
			   ? NO_LIMIT
			   : (uint64_t)((double)env->device_total_bytes * fraction);
	s->limit = FRAG_MIN(s->limit, env->limit_bytes);
	s->max_internal = p->fragmentation_fraction > 0 && !s->ort
				  ? (uint64_t)(p->fragmentation_fraction * (double)s->limit)
				  : p->max_internal;
	s->step = s->ort ? p->initial : p->growth ? XLA_FIRST_STEP : s->limit;
	s->step = rounded(FRAG_MAX(FRAG_MIN(s->step, s->limit), 1));
	return 0;
}

/* Host memory for anything that one request or free can do. 0 or FRAG_ENOMEM. */
static int reserve(struct self *s, uint32_t stream)
{
	return frag_best_reserve(&s->best, s->ort ? stream + 1 : 0, 2);
}

/* ---- search ------------------------------------------------------------------------------ */

/* The earlier of two in the order of the sets; NULL comes last. */
static struct frag_piece *first_of(struct frag_piece *a, struct frag_piece *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? a : b;
	return a->addr < b->addr ? a : b;
}

/* The chunk that serves a request, or NULL. *whole: it may not be split. pre: reserved. */
static struct frag_piece *find(struct self *s, uint64_t bytes, uint32_t stream, bool *whole)
{
	struct frag_piece *p = frag_best_find(s, bytes);

	*whole = false;
	if (!s->ort)
		return p;
	p = first_of(p, frag_best_find_in(&s->best, stream + 1, bytes));
	if (p || !s->params->cross_stream)
		return p;
	*whole = true;
	for (uint32_t i = 1; i < s->best.sets_count; i++)
		p = first_of(p, frag_best_find_in(&s->best, i, bytes));
	return p;
}

/* ---- regions ---------------------------------------------------------------------------- */

/* Size of the next region for a request; `left`: of the limit. Changes the step. */
static uint64_t next_region(struct self *s, uint64_t bytes, uint64_t left, bool *doubled)
{
	*doubled = false;
	if (s->ort && s->params->extend == EXACT) {
		*doubled = true;
		return bytes;
	}
	while (bytes > s->step) {
		s->step *= 2;
		*doubled = true;
	}
	return FRAG_MIN(s->step, left);
}

static void double_step(struct self *s)
{
	if (s->ort && s->step >= (s->params->max_extend + 1) / 2)
		s->step = rounded(
			s->params->max_extend); /* less, where a request has taken it higher */
	else if (s->step <= 1ull << 60)
		s->step *= 2;
}

/* The next smaller size to ask for. */
static uint64_t back_off(uint64_t bytes)
{
	uint64_t less = rounded((uint64_t)((float)bytes * 0.9f));

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
	FRAG_CHECK_ALLOC(!reserve(s, stream), "policy bfc", err);
	size = next_region(s, bytes, left, &doubled);
	if (s->ort && !doubled)
		double_step(s);
	rc = frag_best_grow(&s->best, size, stream, &p, err);
	while (rc == FRAG_OOM) {
		size = back_off(size);
		if (size < bytes || (s->ort && size < ORT_GIVE_UP))
			return FRAG_OOM;
		rc = frag_best_grow(&s->best, size, stream, &p, err);
	}
	if (rc)
		return rc;
	if (!s->ort && !doubled)
		double_step(s);
	if (s->ort && s->params->extend == POW2 && !s->region_bytes)
		frag_heap_keep(&s->best.heap, p->seg);
	s->region_bytes += size;
	return 0;
}

static int give_back(struct self *s, struct frag_err *err)
{
	uint64_t held = s->best.heap.free_bytes;
	int rc = frag_heap_drop_idle(&s->best.heap, err);

	s->region_bytes -= held - s->best.heap.free_bytes;
	return rc;
}

/* Idle regions go, if that can help, and a new one comes. */
static int collect(struct self *s, uint64_t bytes, uint32_t stream, struct frag_err *err)
{
	uint64_t idle = s->best.heap.idle_bytes;

	if (!s->params->gc || !idle || bytes > s->limit - s->region_bytes + idle)
		return FRAG_OOM;
	FRAG_TRY(give_back(s, err));
	return extend(s, bytes, stream, err);
}

/* When no chunk fits. 0 and *p (in its set) and how, FRAG_OOM or an error. */
static int make_room(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **p,
		     uint8_t *cls, struct frag_err *err)
{
	bool whole, again = s->params->retry && !s->ort && s->best.heap.env.sync;
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
		s->best.heap.env.sync(s->best.heap.env.sync_ctx);
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
	uint64_t bytes = rounded(FRAG_MAX(req->bytes, 1));
	struct frag_piece *p;
	bool whole;

	if (FRAG_UNLIKELY(req->bytes > FRAG_HEAP_REQUEST_MAX))
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(!reserve(s, req->stream), "policy bfc", err);
	p = find(s, bytes, req->stream, &whole);
	out->cls = FRAG_CLASS_HIT;
	if (FRAG_UNLIKELY(!p)) {
		FRAG_TRY(make_room(s, bytes, req->stream, &p, &out->cls, err));
		whole = false;
		FRAG_CHECK_ALLOC(!reserve(s, req->stream), "policy bfc", err);
	}
	whole |= !must_split(s, p, bytes);
	frag_best_take(&s->best, p, whole ? p->bytes : bytes, &out->cls);
	if (s->params->streams && !p->tag) {
		p->tag = req->stream + 1;
		p->stamp = s->syncs;
	}
	frag_heap_grant(&s->best.heap, p, out);
	return 0;
}

/* Joins p with the free chunk behind it; both are in no set. */
static void absorb(struct self *s, struct frag_piece *p)
{
	p->stamp = FRAG_MAX(p->stamp, p->next->stamp);
	frag_heap_join(&s->best.heap, p);
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p = frag_piece_of(block), *q;

	(void)err;
	frag_heap_give(&s->best.heap, p);
	q = frag_piece_free_next(p);
	if (q && q->tag == p->tag) {
		frag_best_cut(s, q);
		absorb(s, p);
	}
	q = frag_piece_free_prev(p);
	if (q && q->tag == p->tag) {
		frag_best_cut(s, q);
		absorb(s, q);
		p = q;
	}
	frag_best_put(s, p);
	return 0;
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
	struct frag_bset_node *at;

	(void)err;
	s->syncs++;
	for (uint32_t i = 1; i < s->best.sets_count; i++)
		while ((at = frag_bset_first(&s->best.sets[i])) != NULL) {
			struct frag_piece *p = at->value;

			frag_bset_erase_at(&s->best.sets[i], at);
			frag_best_put(s, p);
		}
	return 0;
}

const struct frag_policy_ops frag_policy_bfc = {
	.name = "bfc",
	.summary = "best fit with coalescing: JAX and TensorFlow, ONNX Runtime",
	.source = "openxla/xla xla/tsl/framework/bfc_allocator.cc (2026); "
		  "microsoft/onnxruntime onnxruntime/core/framework/bfc_arena.cc",
	.trims = "xla: nothing, there is no such call; ort (Shrink): idle regions, the first one "
		 "only with extend=exact",
	.checked = "ONNX Runtime 1.31.1, its wheel (ort; streams read only); XLA in TensorFlow "
		   "2.21's wheel; JAX 0.11's own pool on an H100 (xla)",
	FRAG_BEST_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.validate = validate,
	.free = release,
	.trim = trim,
	.synced = synced,
};
