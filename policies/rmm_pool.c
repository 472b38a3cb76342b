/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's pool memory resource, in its own rules (rapidsai/rmm
 * cpp/include/rmm/mr/detail/{stream_ordered_memory_resource,coalescing_free_list}.hpp,
 * cpp/src/mr/detail/pool_memory_resource_impl.cpp, 2026).
 *
 *	Sizes are rounded up to 256 B. Each stream has a free list; the search is
 *	best fit, the lowest address among equals. A stream without a fit steals from
 *	the others as streamlists.h says. Every fit is split exactly, whatever is left.
 *	A freed block goes to the list of its stream and merges there with the
 *	neighbours that are free in the same list, never across chunks.
 *
 *	Growth: without a maximum the larger of request and pool (so it doubles); with
 *	one, r = what is left of it, and the larger of request and r / 2 if the request
 *	fits r. A refusal halves the attempt down to the request itself.
 *	Where the request does not fit r, chunks that are wholly free are given back,
 *	lowest address first, until it does (since rmm's pull request 2470 of July 2026;
 *	reclaim=false is as it was before). Otherwise nothing is given back before the
 *	end.
 *
 * Structure: chunks in pieces (pieces.h); per stream an ordered set of its free
 * pieces. RMM's lists are linear; the choices here are the same in O(log n).
 *
 * Invariants: a free piece is in exactly one list, by (size, address); two
 * neighbours are never free in one list.
 */
#include <frag/policy.h>

#include <bset.h>
#include "lib/slabs.h"
#include <streamlists.h>
#include <upstream.h>

#define ALIGNMENT 256u

struct params {
	uint64_t initial, maximum;
	bool reclaim;
	char upstream[FRAG_OPT_STRING_MAX];
};

static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("initial", struct params, initial, 0, 0, FRAG_UPSTREAM_MAX,
		       "size of the first chunk, a multiple of 256 B; 0: the first request decides",
		       .unit = ALIGNMENT, .tune = "256M,1G,2G,4G,6G,8G,12G,16G,24G,32G"),
	FRAG_OPT_BYTES("maximum", struct params, maximum, UINT64_MAX, ALIGNMENT, UINT64_MAX,
		       "largest size of the pool, a multiple of 256 B; max: no maximum",
		       .unit = ALIGNMENT),
	FRAG_OPT_BOOL("reclaim", struct params, reclaim, 1,
		      "at the maximum, give idle chunks back to make room for a larger one"),
	FRAG_UPSTREAM_OPT(struct params, upstream, "device"), FRAG_OPT_END
};

struct list {
	struct frag_bset free; /* (size, addr) */
};

struct pool {
	struct frag_upstream up; /* first: see upstream.h */
	const struct params *p;
	struct frag_streams streams;
	struct frag_slab nodes; /* of all lists */
	bool started;		/* the initial chunk has been taken */
};

/* ---- lists ------------------------------------------------------------------------ */

/* Room for `more` pieces, in lists and as objects: afterwards no insert fails. */
static int room(struct pool *a, size_t more, struct frag_err *err)
{
	if (frag_slab_reserve(&a->up.pieces, more) ||
	    frag_bset_nodes_reserve(&a->nodes, frag_slab_live(&a->up.pieces) + more))
		return frag_fail_nomem(err, "rmm-pool: blocks");
	return 0;
}

static int list_init(void *self, void *list)
{
	struct pool *a = self;
	struct list *l = list;

	frag_bset_init_shared(&l->free, &a->nodes);
	/* one set more needs more nodes: the room promised so far must hold */
	if (!room(a, 0, NULL))
		return 0;
	frag_bset_release(&l->free);
	return FRAG_ENOMEM;
}

static void list_release(void *list)
{
	frag_bset_release(&((struct list *)list)->free);
}

static bool list_fits(const void *list, uint64_t bytes)
{
	struct frag_bset_node *last = frag_bset_last(&((const struct list *)list)->free);

	return last && last->by.key >= bytes;
}

/* Best fit, taken out; NULL if there is none. */
static inline struct frag_piece *list_take(struct list *l, uint64_t bytes)
{
	struct frag_bset_node *at = frag_bset_lower(&l->free, bytes, 0);
	struct frag_piece *p;

	if (!at)
		return NULL;
	p = at->value;
	frag_bset_erase_at(&l->free, at);
	p->state = FRAG_STATE_LIVE;
	return p;
}

static bool free_in(const struct frag_piece *p, const struct list *l)
{
	return p && p->state == FRAG_STATE_FREE && p->list == l;
}

/* Puts a piece into a list, merged with its neighbours there. */
static void list_put(struct pool *a, struct list *l, struct frag_piece *p)
{
	p->state = FRAG_STATE_FREE;
	if (free_in(p->next, l)) {
		frag_bset_erase(&l->free, p->next->bytes, p->next->addr);
		frag_piece_join(&a->up.pieces, p);
	}
	if (free_in(p->prev, l)) {
		p = p->prev;
		frag_bset_erase(&l->free, p->bytes, p->addr);
		frag_piece_join(&a->up.pieces, p);
	}
	p->list = l;
	frag_bset_insert(&l->free, p->bytes, p->addr, p);
}

/* The smaller list moves into the larger: each piece moves O(log n) times. */
static void lists_merge(void *self, void **own, void **other)
{
	struct list *from = *other, *to = *own;

	if (frag_bset_count(&from->free) > frag_bset_count(&to->free)) {
		*own = from;
		*other = to;
		from = *other;
		to = *own;
	}
	while (frag_bset_count(&from->free)) {
		struct frag_bset_node *last = frag_bset_last(&from->free);
		struct frag_piece *p = last->value;

		frag_bset_erase_at(&from->free, last);
		list_put(self, to, p);
	}
}

static const struct frag_streams_ops list_ops = {
	.bytes = sizeof(struct list),
	.init = list_init,
	.release = list_release,
	.fits = list_fits,
	.merge = lists_merge,
};

/* ---- growth ----------------------------------------------------------------------- */

/* Takes a chunk of `try` bytes, or after refusals of less, never below `bytes`. */
static int expand(struct pool *a, uint64_t try, uint64_t bytes, uint32_t stream,
		  struct frag_piece **out, struct frag_err *err)
{
	struct frag_chunk *c;
	int rc;

	for (;;) {
		rc = frag_upstream_take(&a->up, try, stream, &c, err);
		if (rc != FRAG_OOM || try == bytes)
			break;
		try = FRAG_MAX(bytes, try / 2);
	}
	if (!rc)
		*out = frag_chunk_piece(&a->up, c);
	return rc;
}

/* Bytes below the maximum. Odd chunks, which halving makes, can take the pool a little above it,
 * because the source rounds what is left up. */
static uint64_t left_of(const struct pool *a)
{
	return a->p->maximum - FRAG_MIN(a->up.bytes, a->p->maximum);
}

/* Room for the request below the maximum. pre: all free pieces are in the one list `l`. */
static int reclaim(struct pool *a, struct list *l, uint64_t bytes, struct frag_err *err)
{
	struct frag_chunk *c = frag_upstream_first(&a->up), *next;

	if (!a->p->reclaim || bytes > a->p->maximum)
		return FRAG_OOM;
	for (; c && bytes > left_of(a); c = next) {
		struct frag_piece *p = c->head;
		bool gone;
		int rc;

		next = frag_upstream_next(&a->up, c);
		if (!free_in(p, l) || !frag_piece_is_whole(p))
			continue;
		rc = frag_upstream_give(&a->up, c, &gone, err);
		if (gone) {
			frag_bset_erase(&l->free, p->bytes, p->addr);
			frag_slab_free(&a->up.pieces, p);
		}
		if (rc)
			return rc;
	}
	return 0;
}

static int grow(struct pool *a, uint64_t bytes, uint32_t stream, struct frag_piece **out,
		struct frag_err *err)
{
	uint64_t left;

	if (a->p->maximum == UINT64_MAX)
		return expand(a, FRAG_MAX(bytes, a->up.bytes), bytes, stream, out, err);
	if (bytes > frag_round_up(left_of(a), ALIGNMENT))
		FRAG_TRY(reclaim(a, a->streams.list[stream], bytes, err));
	left = frag_round_up(left_of(a), ALIGNMENT);
	if (bytes > left)
		return FRAG_OOM;
	return expand(a, FRAG_MAX(bytes, left / 2), bytes, stream, out, err);
}

/* The constructor's chunk; it belongs to the default stream. */
static int start(struct pool *a, struct frag_err *err)
{
	struct frag_piece *p;
	struct list *l;

	if (a->p->initial) {
		l = frag_streams_get(&a->streams, 0, err);
		if (!l)
			return FRAG_ENOMEM;
		FRAG_TRY(room(a, 1, err));
		FRAG_TRY(expand(a, a->p->initial, a->p->initial, 0, &p, err));
		list_put(a, l, p);
	}
	a->started = true;
	return 0;
}

/* ---- the policy ------------------------------------------------------------------- */

static inline uint64_t rounded(uint64_t bytes)
{
	return bytes ? (bytes + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1) : ALIGNMENT;
}

static int pool_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		      struct frag_err *err)
{
	uint64_t bytes = rounded(req->bytes);
	enum frag_class cls = FRAG_CLASS_HIT;
	struct pool *a = self;
	size_t chunks = frag_upstream_count(&a->up);
	struct frag_piece *p;
	struct list *l;
	void *from;

	if (FRAG_UNLIKELY(req->bytes > FRAG_UPSTREAM_MAX))
		return FRAG_OOM;
	if (FRAG_UNLIKELY(!a->started))
		FRAG_TRY(start(a, err));
	l = frag_streams_get(&a->streams, req->stream, err);
	if (FRAG_UNLIKELY(!l))
		return FRAG_ENOMEM;
	FRAG_TRY(room(a, 2, err));
	p = list_take(l, bytes);
	if (FRAG_UNLIKELY(!p)) {
		FRAG_TRY(frag_streams_steal(&a->streams, req->stream, bytes, &from, err));
		l = from ? from : a->streams.list[req->stream];
		if (from)
			p = list_take(l, bytes);
		else
			FRAG_TRY(grow(a, bytes, req->stream, &p, err));
	}
	if (p->bytes > bytes) {
		list_put(a, l, frag_piece_split(&a->up.pieces, p, bytes));
		cls = FRAG_CLASS_SPLIT;
	}
	if (FRAG_UNLIKELY(frag_upstream_count(&a->up) != chunks))
		cls = FRAG_CLASS_GROW;
	a->up.live_bytes += bytes;
	p->stream = req->stream;
	frag_piece_grant(p, out);
	out->cls = cls;
	return 0;
}

static int pool_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct frag_piece *p = frag_piece_of(block);
	struct pool *a = self;

	(void)err;
	FRAG_ASSERT(p->state != FRAG_STATE_FREE);
	*(p->state == FRAG_STATE_LIVE ? &a->up.live_bytes : &a->up.waiting_bytes) -= p->bytes;
	list_put(a, a->streams.list[p->stream], p);
	return 0;
}

static void inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v)
{
	(void)self;
	frag_chunk_visit(c, v, false);
}

static void pool_usage(void *self, struct frag_usage *out)
{
	struct pool *a = self;
	uint64_t free_bytes = a->up.bytes - a->up.live_bytes - a->up.waiting_bytes;

	out->allocated_bytes += a->up.live_bytes;
	out->waiting_bytes += a->up.waiting_bytes;
	out->free_bytes += free_bytes;
	out->non_releasable_bytes += free_bytes;
	out->blocks_count += frag_slab_live(&a->up.pieces);
	for (uint32_t i = 0; i < a->streams.count; i++) {
		const struct list *l = a->streams.list[i];

		if (l)
			out->largest_free_bytes =
				FRAG_MAX(out->largest_free_bytes, frag_bset_largest(&l->free));
	}
}

static bool indexed(void *self, const struct frag_piece *p)
{
	const struct list *l = p->list;

	(void)self;
	return frag_bset_has(&l->free, p->bytes, p->addr, p) && !free_in(p->next, l);
}

static int pool_check(void *self, struct frag_err *err)
{
	struct pool *a = self;
	size_t listed = 0;

	for (uint32_t i = 0; i < a->streams.count; i++) {
		const struct list *l = a->streams.list[i];

		listed += l ? frag_bset_count(&l->free) : 0;
	}
	return frag_chunks_check(&a->up, NULL, listed, indexed, a, err);
}

static int validate(const void *params, struct frag_err *err)
{
	const struct params *p = params;

	if (p->initial > p->maximum)
		return FRAG_USAGE(err, "initial is above maximum");
	return 0;
}

static void release(void *self)
{
	struct pool *a = self;

	frag_streams_release(&a->streams);
	frag_slab_release(&a->nodes);
}

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	static const struct frag_upstream_parts parts = {
		sizeof(struct pool), release, inside, pool_usage, pool_check,
	};
	const struct params *p = params;
	struct pool *a;

	FRAG_TRY(frag_upstream_create(env, p->upstream, &parts, self, err));
	a = *self;
	a->p = p;
	frag_bset_nodes_init(&a->nodes);
	frag_streams_init(&a->streams, &list_ops, a, env->dev);
	return 0;
}

const struct frag_policy_ops frag_policy_rmm_pool = {
	.abi = FRAG_POLICY_ABI,
	.name = "rmm-pool",
	.summary = "RMM's pool: best fit with a free list per stream, doubles, keeps its chunks",
	.source = "rapidsai/rmm cpp/src/mr/detail/pool_memory_resource_impl.cpp, 2026",
	FRAG_UPSTREAM_RMM,
	FRAG_UPSTREAM_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.validate = validate,
	.create = create,
	.alloc = pool_alloc,
	.free = pool_free,
	.free_requested = frag_pieces_free_requested,
};
