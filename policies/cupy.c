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
 * Structure: common/segheap for segments and chunks; per arena one ordered set of the free
 * chunks by size and, newest first, the number of their free (link[0]).
 * Invariants: every free chunk is in the arena of its segment's stream; no two neighbours are
 * free.
 */
#include "bset.h"
#include "segheap.h"

#include <inttypes.h>

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
	struct frag_heap heap; /* first: its hooks are used as they are */
	struct frag_slab nodes;
	struct frag_bset *arenas; /* by stream */
	uint32_t arenas_count;
	uintptr_t frees; /* number of the next free */
	uint64_t limit;	 /* on the sum of the segments; UINT64_MAX = none */
};

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->limit && p->limit_fraction > 0)
		return frag_fail(err, FRAG_EUSAGE, "give limit or limit-fraction, not both");
	return 0;
}

static const struct frag_heap_index index;

static int create(const struct frag_policy_env *env, const void *params, void **out,
		  struct frag_err *err)
{
	const struct params *p = params;
	struct self *s;

	FRAG_TRY(frag_heap_create(env, sizeof(*s), &index, "policy cupy", out, err));
	s = *out;
	s->limit = p->limit ? p->limit : UINT64_MAX;
	if (p->limit_fraction > 0)
		s->limit = (uint64_t)((double)env->device_total_bytes * p->limit_fraction);
	frag_bset_nodes_init(&s->nodes);
	return 0;
}

static void destroy(void *self)
{
	struct self *s = self;

	frag_heap_release(&s->heap);
	frag_slab_release(&s->nodes);
	FRAG_FREE(s->arenas, s);
}

/* ---- arenas ----------------------------------------------------------------------------- */

static struct frag_bset *arena_of(struct self *s, const struct frag_piece *p)
{
	return &s->arenas[p->seg->stream];
}

/* Second part of the key: the free with the highest number comes first. */
static uint64_t rank(const struct frag_piece *p)
{
	return ~(uint64_t)(uintptr_t)p->link[0];
}

static void put(void *self, struct frag_piece *p)
{
	struct self *s = self;

	p->link[0] = (void *)s->frees++;
	frag_bset_insert(arena_of(s, p), p->bytes, rank(p), p);
}

static void cut(void *self, struct frag_piece *p)
{
	frag_bset_erase(arena_of(self, p), p->bytes, rank(p));
}

static const struct frag_heap_index index = { cut, put };

/* Host memory for anything that one request can do. */
static int reserve(struct self *s, uint32_t stream)
{
	if (FRAG_UNLIKELY(stream >= s->arenas_count) &&
	    frag_bset_by_stream(&s->arenas, &s->arenas_count, stream, &s->nodes))
		return FRAG_ENOMEM;
	return frag_bset_nodes_reserve(&s->nodes, s->heap.pieces_count + 2)
		       ?: frag_heap_reserve(&s->heap, 2);
}

/* ---- hooks ------------------------------------------------------------------------------- */

static uint64_t held_bytes(const struct self *s)
{
	return s->heap.live_bytes + s->heap.waiting_bytes + s->heap.free_bytes;
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
		FRAG_TRY(frag_heap_drop_idle(&s->heap, err));
		if (held_bytes(s) > s->limit - bytes)
			return FRAG_OOM;
	}
	rc = frag_heap_grow(&s->heap, bytes, stream, p, err);
	while (rc == FRAG_OOM && left--) {
		*cls = FRAG_CLASS_RELEASE;
		FRAG_TRY(frag_heap_drop_idle(&s->heap, err));
		rc = frag_heap_grow(&s->heap, bytes, stream, p, err);
	}
	return rc;
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct self *s = self;
	uint64_t bytes = (FRAG_MAX(req->bytes, 1) + UNIT - 1) & ~(uint64_t)(UNIT - 1);
	struct frag_bset_node *at;
	struct frag_piece *p;

	if (FRAG_UNLIKELY(req->bytes > FRAG_HEAP_REQUEST_MAX))
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(!reserve(s, req->stream), "policy cupy", err);
	at = frag_bset_lower(&s->arenas[req->stream], bytes, 0);
	if (FRAG_LIKELY(at != NULL)) {
		p = at->value;
		frag_bset_erase_at(&s->arenas[req->stream], at);
		out->cls = FRAG_CLASS_HIT;
		if (p->bytes > bytes) {
			put(s, frag_heap_split(&s->heap, p, bytes));
			out->cls = FRAG_CLASS_SPLIT;
		}
	} else {
		out->cls = FRAG_CLASS_GROW;
		FRAG_TRY(grow(s, bytes, req->stream, &p, &out->cls, err));
	}
	frag_heap_grant(&s->heap, p, out);
	return 0;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct self *s = self;
	struct frag_piece *p = frag_piece_of(block);

	(void)err;
	put(s, frag_heap_give_merged(&s->heap, p, cut, s));
	return 0;
}

static void usage(void *self, struct frag_usage *out)
{
	struct self *s = self;
	uint64_t largest = 0;
	uint32_t i;

	for (i = 0; i < s->arenas_count; i++)
		largest = FRAG_MAX(largest, frag_bset_largest(&s->arenas[i]));
	frag_heap_usage(&s->heap, largest, out);
}

/* ---- check -------------------------------------------------------------------------------- */

static bool indexed(void *ctx, const struct frag_piece *p)
{
	return !frag_piece_free_next(p) && frag_bset_has(arena_of(ctx, p), p->bytes, rank(p), p);
}

static int check(void *self, struct frag_err *err)
{
	struct self *s = self;
	size_t n = 0;

	for (uint32_t i = 0; i < s->arenas_count; i++)
		n += frag_bset_count(&s->arenas[i]);
	return frag_heap_check(&s->heap, n, indexed, s, err);
}

const struct frag_policy_ops frag_policy_cupy = {
	.name = "cupy",
	.summary = "CuPy's pool: an arena per stream, best fit, exact splits, exact growth",
	.source = "cupy/cupy cupy/cuda/memory.pyx (v13 to August 2026)",
	.trims = "free chunks that are not split (free_all_blocks)",
	.checked = "CuPy of August 2026, read",
	.flags = FRAG_POLICY_STREAMS,
	FRAG_HEAP_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.validate = validate,
	FRAG_POLICY_HOOKS,
	.trim = frag_heap_op_trim,
	.usage = usage,
	.check = check,
};
