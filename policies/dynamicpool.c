/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Umpire's DynamicPoolList (LLNL/Umpire src/umpire/strategy/DynamicPoolList.cpp,
 * DynamicSizePool.hpp, 2026).
 *
 *	Sizes are rounded up to 16 B. Free blocks are in one list in order of address;
 *	the search walks all of it for the best fit, takes the first of equals and
 *	stops at an exact one. Every fit is split exactly. Used blocks are in a second
 *	list, newest first, and a free walks it to find its block. A freed block merges with
 *	its free neighbours unless the later of the two heads a chunk.
 *
 *	Growth, release before a second try, and the coalescing heuristics are those of
 *	QuickPool (quickcore.h).
 *
 * Both calls cost Umpire time linear in the blocks. What they decide is the smallest block
 * that fits, the lowest of equals, so it is taken from a set by (size, address) here, in
 * O(log n): the same blocks, but host times are not Umpire's.
 *
 * Structure: parts of chunks (parts.h). A part without one before it heads its chunk.
 *
 * Invariants: `free` holds exactly the free parts, `whole` those that are all of their chunk;
 * free neighbours of a chunk are merged; both sets have room for every part there is.
 */
#include <frag/policy.h>

#include <bset.h>
#include <parts.h>
#include <quickcore.h>
#include <upstream.h>

struct params {
	struct frag_quick_params pool;
	char upstream[FRAG_OPT_STRING_MAX];
};

static const struct frag_opt opts[] = { FRAG_QUICK_OPTS(struct params),
					FRAG_UPSTREAM_OPT(struct params, upstream, "device"),
					FRAG_OPT_END };

struct dynamicpool {
	struct frag_upstream up; /* first: see upstream.h */
	const struct params *p;
	struct frag_slab parts;
	struct frag_bset free;	/* (size, addr) */
	struct frag_bset whole; /* (0, addr) */
	size_t room;		/* parts that both sets have room for */
	uint64_t live_bytes, waiting_bytes;
	uint64_t releasable_bytes, releasable_count;
	uint64_t aligned_hwm;
	bool growing; /* inside a call of the upstream */
};

/* Room for n further parts, so that neither a split nor a free can fail for want of memory. */
static int reserve(struct dynamicpool *a, size_t n, struct frag_err *err)
{
	size_t want = frag_slab_live(&a->parts) + n;

	if (want > a->room) {
		want = FRAG_MAX(2 * want, 64u);
		if (frag_bset_reserve(&a->free, want) || frag_bset_reserve(&a->whole, want))
			return frag_fail_nomem(err, "dynamicpool: free blocks");
		a->room = want;
	}
	if (frag_slab_reserve(&a->parts, n))
		return frag_fail_nomem(err, "dynamicpool: blocks");
	return 0;
}

static void insert(struct dynamicpool *a, struct frag_part *p)
{
	frag_bset_insert(&a->free, p->size, p->addr, p);
	if (!frag_part_is_whole(p))
		return;
	frag_bset_insert(&a->whole, 0, p->addr, p);
	a->releasable_bytes += p->size;
	a->releasable_count++;
}

static void erase(struct dynamicpool *a, struct frag_part *p)
{
	frag_bset_erase(&a->free, p->size, p->addr);
	if (!frag_part_is_whole(p))
		return;
	frag_bset_erase(&a->whole, 0, p->addr);
	a->releasable_bytes -= p->size;
	a->releasable_count--;
}

/* ---- chunks ---------------------------------------------------------------------------- */

/* Gives all wholly free chunks back, in order of address. */
static int give_back(struct dynamicpool *a, struct frag_err *err)
{
	struct frag_bset_pos at = frag_bset_first(&a->whole);
	int rc = 0;

	while (at.leaf && !rc) {
		struct frag_part *p = frag_bset_value(at);
		frag_addr_t addr = p->addr;
		bool gone;

		rc = frag_upstream_give(&a->up, p->chunk, &gone, err);
		if (!gone)
			return rc;
		erase(a, p);
		frag_slab_free(&a->parts, p);
		at = frag_bset_lower(&a->whole, 0, addr);
	}
	return rc;
}

static int take(struct dynamicpool *a, uint64_t bytes, uint32_t stream, struct frag_chunk **out,
		struct frag_err *err)
{
	int rc;

	a->growing = true;
	rc = frag_upstream_take_aligned(&a->up, bytes, a->p->pool.alignment, stream, out, err);
	a->growing = false;
	return rc;
}

/* A new chunk as one free part that is in no set yet. */
static int grow(struct dynamicpool *a, uint64_t bytes, uint32_t stream, struct frag_part **out,
		enum frag_class *cls, struct frag_err *err)
{
	bool is_first = !frag_slab_live(&a->parts);
	uint64_t size = FRAG_MAX(bytes, is_first ? a->p->pool.first : a->p->pool.next);
	struct frag_chunk *c;
	int rc = take(a, size, stream, &c, err);

	*cls = FRAG_CLASS_GROW;
	if (rc == FRAG_OOM) {
		FRAG_TRY(give_back(a, err));
		rc = take(a, size, stream, &c, err);
		*cls = FRAG_CLASS_RELEASE;
	}
	if (rc)
		return rc;
	*out = frag_part_whole(&a->parts, c);
	return 0;
}

/* ---- allocation -------------------------------------------------------------------------- */

static int core_alloc(struct dynamicpool *a, uint64_t bytes, uint32_t stream,
		      struct frag_part **out, enum frag_class *cls, struct frag_err *err)
{
	struct frag_bset_pos best;
	struct frag_part *p;

	FRAG_TRY(reserve(a, 2, err));
	*cls = FRAG_CLASS_HIT;
	best = frag_bset_lower(&a->free, bytes, 0);
	if (best.leaf) {
		p = frag_bset_value(best);
		erase(a, p);
	} else {
		FRAG_TRY(grow(a, bytes, stream, &p, cls, err));
	}
	if (p->size != bytes) {
		insert(a, frag_part_split(&a->parts, p, bytes));
		if (*cls == FRAG_CLASS_HIT)
			*cls = FRAG_CLASS_SPLIT;
	}
	p->state = FRAG_STATE_LIVE;
	p->stream = stream;
	a->live_bytes += bytes;
	a->aligned_hwm = FRAG_MAX(a->aligned_hwm, a->live_bytes + a->waiting_bytes);
	*out = p;
	return 0;
}

static uint64_t rounded(const struct dynamicpool *a, uint64_t bytes)
{
	uint64_t alignment = a->p->pool.alignment;

	return (FRAG_MAX(bytes, 1u) + alignment - 1) & ~(alignment - 1);
}

static int dynamic_alloc(void *self, const struct frag_request *req, struct frag_block *out,
			 struct frag_err *err)
{
	struct dynamicpool *a = self;
	struct frag_part *p;
	enum frag_class cls;

	if (req->bytes > FRAG_UPSTREAM_MAX)
		return FRAG_OOM;
	FRAG_TRY(core_alloc(a, rounded(a, req->bytes), req->stream, &p, &cls, err));
	frag_part_grant(p, req->stream, cls, out);
	return 0;
}

/* ---- freeing ------------------------------------------------------------------------------- */

static void core_free(struct dynamicpool *a, struct frag_part *p)
{
	struct frag_part *prev = p->prev, *next = p->next;

	*(p->state == FRAG_STATE_LIVE ? &a->live_bytes : &a->waiting_bytes) -= p->size;
	p->state = FRAG_STATE_FREE;
	if (next && next->state == FRAG_STATE_FREE) {
		erase(a, next);
		frag_part_absorb_next(&a->parts, p);
	}
	if (prev && prev->state == FRAG_STATE_FREE) {
		erase(a, prev);
		frag_part_absorb_next(&a->parts, prev);
		p = prev;
	}
	insert(a, p);
}

static int coalesce(struct dynamicpool *a, uint64_t size, struct frag_err *err)
{
	enum frag_class cls;
	struct frag_part *p = NULL;
	int rc;

	if (a->releasable_count <= 1)
		return 0;
	FRAG_TRY(give_back(a, err));
	if (a->up.bytes >= size)
		return 0;
	rc = core_alloc(a, rounded(a, size - a->up.bytes), 0, &p, &cls, err);
	if (!rc)
		core_free(a, p);
	return rc == FRAG_OOM ? 0 : rc; /* refused: the pool only stays smaller */
}

static void dynamic_free_requested(void *self, const struct frag_block *block)
{
	struct frag_part *p = frag_part_of(block);
	struct dynamicpool *a = self;

	FRAG_ASSERT(p->state == FRAG_STATE_LIVE);
	p->state = FRAG_STATE_WAITING;
	a->live_bytes -= p->size;
	a->waiting_bytes += p->size;
}

static int dynamic_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct dynamicpool *a = self;
	struct frag_coalesce_state s;
	uint64_t size;

	FRAG_ASSERT(frag_part_of(block)->state != FRAG_STATE_FREE);
	core_free(a, frag_part_of(block));
	/* an upstream that synchronises frees blocks of ours: not the moment to call it again */
	if (a->growing)
		return 0;
	s = (struct frag_coalesce_state){ .actual = a->up.bytes,
					  .releasable = a->releasable_bytes,
					  .aligned_hwm = a->aligned_hwm,
					  .releasable_count = a->releasable_count };
	size = frag_coalesce_size(&a->p->pool.coalesce, &s);
	return size ? coalesce(a, size, err) : 0;
}

static int dynamic_trim(void *self, uint16_t pool, struct frag_err *err)
{
	/* it knows no private pools: an empty_cache of one is of all */
	FRAG_TRY(give_back(self, err));
	return frag_upstream_op_trim(self, pool, err);
}

/* ---- looking at it ----------------------------------------------------------------------- */

static void inside(void *self, const struct frag_chunk *c, const struct frag_visitor *v)
{
	(void)self;
	frag_parts_visit(c, v, true);
}

static void dynamic_visit(void *self, const struct frag_visitor *v)
{
	frag_upstream_visit(self, v, inside, self);
}

static void dynamic_usage(void *self, struct frag_usage *out)
{
	struct dynamicpool *a = self;
	uint64_t free_bytes = a->up.bytes - a->live_bytes - a->waiting_bytes;
	bool known;

	frag_upstream_usage(&a->up, out, &known);
	out->allocated_bytes += a->live_bytes;
	out->waiting_bytes += a->waiting_bytes;
	out->free_bytes += free_bytes;
	out->releasable_bytes += a->releasable_bytes;
	out->non_releasable_bytes += free_bytes - a->releasable_bytes;
	out->blocks_count += frag_slab_live(&a->parts);
	if (frag_bset_count(&a->free))
		out->largest_free_bytes =
			FRAG_MAX(out->largest_free_bytes, frag_bset_size(frag_bset_last(&a->free)));
	if (!known)
		out->largest_free_bytes = 0;
}

static int check_free(void *self, const struct frag_part *p, struct frag_err *err)
{
	(void)self;
	if (p->next && p->next->state == FRAG_STATE_FREE)
		return frag_fail(err, FRAG_ECHECK, "free neighbours at 0x%llx",
				 (unsigned long long)p->addr);
	return 0;
}

/* Is a set sound, and are all in it free parts at their place, `whole` ones where it says so? */
static int check_set(const struct frag_bset *set, size_t count, bool whole, struct frag_err *err)
{
	struct frag_bset_pos at = frag_bset_first(set);
	const char *broken = frag_bset_broken(set);

	if (broken)
		return frag_fail(err, FRAG_ECHECK, "free blocks: %s", broken);
	if (frag_bset_count(set) != count)
		return frag_fail(err, FRAG_ECHECK, "a set holds %zu of %zu free blocks",
				 frag_bset_count(set), count);
	for (; at.leaf; at = frag_bset_next(at)) {
		const struct frag_part *p = frag_bset_value(at);

		if (p->state != FRAG_STATE_FREE || p->addr != frag_bset_addr(at) ||
		    frag_bset_size(at) != (whole ? 0 : p->size) ||
		    (whole && !frag_part_is_whole(p)))
			return frag_fail(err, FRAG_ECHECK, "block 0x%llx is in the wrong set",
					 (unsigned long long)p->addr);
	}
	return 0;
}

static int dynamic_check(void *self, struct frag_err *err)
{
	struct dynamicpool *a = self;
	struct frag_parts_tally t;

	FRAG_TRY(frag_upstream_check(&a->up, err));
	FRAG_TRY(frag_parts_check(&a->up, NULL, check_free, a, &t, err));
	FRAG_TRY(check_set(&a->free, t.free_count, false, err));
	FRAG_TRY(check_set(&a->whole, t.whole_count, true, err));
	if (t.count != frag_slab_live(&a->parts) || t.whole_count != a->releasable_count ||
	    t.whole_bytes != a->releasable_bytes || t.live_bytes != a->live_bytes ||
	    t.waiting_bytes != a->waiting_bytes || a->aligned_hwm < t.live_bytes + t.waiting_bytes)
		return frag_fail(err, FRAG_ECHECK, "counters differ from the blocks");
	return 0;
}

static int validate(const void *params, struct frag_err *err)
{
	return frag_quick_validate(&((const struct params *)params)->pool, err);
}

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	const struct params *p = params;
	struct dynamicpool *a = frag_host_calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return frag_fail_nomem(err, "dynamicpool");
	a->p = p;
	rc = frag_upstream_open(&a->up, env, env->inner ? env->inner : p->upstream, err);
	if (rc) {
		frag_host_free(a);
		return rc;
	}
	frag_slab_init(&a->parts, sizeof(struct frag_part));
	frag_bset_init(&a->free);
	frag_bset_init(&a->whole);
	*self = a;
	return 0;
}

static void destroy(void *self)
{
	struct dynamicpool *a = self;

	frag_bset_release(&a->free);
	frag_bset_release(&a->whole);
	frag_slab_release(&a->parts);
	frag_upstream_close(&a->up);
	frag_host_free(a);
}

const struct frag_policy_ops frag_policy_dynamicpool = {
	.abi = FRAG_POLICY_ABI,
	.name = "dynamicpool",
	.summary = "Umpire's DynamicPoolList: best fit, lowest of equals, coalesced by a heuristic",
	.source = "LLNL/Umpire src/umpire/strategy/DynamicPoolList.cpp, 2026",
	.needs = FRAG_CAN_MALLOC,
	.opts = opts,
	.params_size = sizeof(struct params),
	.validate = validate,
	.create = create,
	.destroy = destroy,
	.alloc = dynamic_alloc,
	.free = dynamic_free,
	.free_requested = dynamic_free_requested,
	.trim = dynamic_trim,
	.synced = frag_upstream_op_synced,
	.mark = frag_upstream_op_mark,
	.visit = dynamic_visit,
	.check = dynamic_check,
	.usage = dynamic_usage,
};
