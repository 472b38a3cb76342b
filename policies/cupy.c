/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupy: the memory pool of CuPy (one device).
 *
 * Rules (cupy/cupy, cupy/cuda/memory.pyx, v13 and main of August 2026):
 *  - Requests are rounded up to 512 B. Every stream has an arena of free chunks of its own;
 *    nothing moves between arenas.
 *  - The smallest chunk of the arena that fits serves the request. Which of several equal ones
 *    is the accident of a hash set there; here the one that was freed last. On a card the peak
 *    of a run differed by up to 1.3 % for it, in both directions.
 *  - Split exactly: the head is handed out, whatever is left stays free in the same arena.
 *  - Free merges with the chunk behind, then with the one before, if they are free.
 *  - Miss: cudaMalloc of exactly the rounded size. With a limit (in bytes, or as a part of the
 *    card) a request above the limit fails at once; one that only the chunks at hand do not
 *    leave room for gives every whole segment back first. (Up to v14 both did.)
 *  - When the driver refuses: every chunk of all arenas that is a whole segment is given back
 *    and the driver asked again; then the same once more, after the garbage collector of the
 *    host, which has nothing to do in a replay. Then out of memory.
 *  - trim (free_all_blocks) gives all whole segments back. Private pools share the arenas.
 *
 * Structure: common/bestfit for segments and chunks, an arena is a set of it.
 * Invariant: every free chunk is in the arena of its segment's stream.
 */
#include "bestfit.h"

#define UNIT 512u

struct params {
	uint64_t limit;
	double limit_fraction;
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("limit", struct params, limit, 0, 0, 1ull << 50,
		       "most that the pool takes from the driver, bytes; 0 = no limit"),
	FRAG_OPT_DOUBLE("limit-fraction", struct params, limit_fraction, 0, 0, 1,
			"the same as a part of the card; 0 = no limit"),
	FRAG_OPT_END,
};

struct self {
	struct frag_best best; /* first: its hooks are used as they are */
	uint64_t limit;	       /* on the sum of the segments; UINT64_MAX = none */
};

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->limit && p->limit_fraction > 0)
		return FRAG_USAGE(err, "give limit or limit-fraction, not both");
	return 0;
}

static uint32_t arena_of(const void *self, const struct frag_piece *p)
{
	(void)self;
	return p->seg->stream;
}

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	static const struct frag_best_rules rules = { .set = arena_of };
	const struct params *p = params;
	struct self *s;

	FRAG_TRY(frag_best_create(env, sizeof(*s), &rules, "policy cupy", out, err));
	s = *out;
	s->limit = p->limit ? p->limit : UINT64_MAX;
	if (p->limit_fraction > 0)
		s->limit = (uint64_t)((double)env->device_total_bytes * p->limit_fraction);
	s->best.latest = true;
	return 0;
}

static uint64_t held_bytes(const struct self *s)
{
	const struct frag_heap *h = &s->best.heap;

	return h->live_bytes + h->waiting_bytes + h->free_bytes;
}

/* No chunk fits: a segment of just this size. */
static int grow(struct self *s, uint64_t bytes, uint32_t stream, struct frag_piece **p,
		uint8_t *cls, struct frag_err *err)
{
	int rc, left = 2;

	if (bytes > s->limit)
		return FRAG_OOM;
	if (held_bytes(s) > s->limit - bytes) {
		*cls = FRAG_CLASS_RELEASE;
		FRAG_TRY(frag_heap_drop_idle(&s->best.heap, err));
		if (held_bytes(s) > s->limit - bytes)
			return FRAG_OOM;
	}
	rc = frag_best_grow(&s->best, bytes, stream, p, err);
	while (rc == FRAG_OOM && left--) {
		*cls = FRAG_CLASS_RELEASE;
		FRAG_TRY(frag_heap_drop_idle(&s->best.heap, err));
		rc = frag_best_grow(&s->best, bytes, stream, p, err);
	}
	return rc;
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	uint64_t bytes = (FRAG_MAX(req->bytes, 1) + UNIT - 1) & ~(uint64_t)(UNIT - 1);
	struct frag_piece *p;

	if (FRAG_UNLIKELY(req->bytes > FRAG_HEAP_REQUEST_MAX))
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(!frag_best_reserve(&s->best, req->stream, 2), "policy cupy", err);
	p = frag_best_find_in(&s->best, req->stream, bytes);
	out->cls = FRAG_CLASS_HIT;
	if (FRAG_UNLIKELY(!p)) {
		out->cls = FRAG_CLASS_GROW;
		FRAG_TRY(grow(s, bytes, req->stream, &p, &out->cls, err));
	}
	frag_best_take(&s->best, p, bytes, &out->cls);
	frag_heap_grant(&s->best.heap, p, out);
	return 0;
}

const struct frag_policy_ops frag_policy_cupy = {
	.name = "cupy",
	.summary = "CuPy's pool: an arena per stream, best fit, exact splits, exact growth",
	.source = "cupy/cupy cupy/cuda/memory.pyx (v13 to August 2026)",
	.trims = "free chunks that are not split (free_all_blocks)",
	.checked = "CuPy of August 2026, read",
	.flags = FRAG_POLICY_STREAMS,
	FRAG_BEST_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.validate = validate,
	.free = frag_best_op_free,
	.trim = frag_heap_op_trim,
};
