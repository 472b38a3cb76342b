/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Umpire's DynamicPoolList (LLNL/Umpire src/umpire/strategy/DynamicPoolList.cpp,
 * DynamicSizePool.hpp, 2026).
 *
 *	Sizes are rounded up to 16 B. Free blocks are in one list in order of address;
 *	the search walks all of it for the best fit, takes the first of equals and
 *	stops at an exact one. Every fit is split exactly. Used blocks are in a second
 *	list, newest first, and a free walks it to find its block: so both calls cost
 *	O(blocks). This is the rule, and it is kept. A freed block merges with its
 *	free neighbours unless the later of the two heads a chunk.
 *
 *	Growth, release before a second try, and the coalescing heuristics are those of
 *	QuickPool (quickcore.h).
 *
 * Structure: parts of chunks (parts.h); part->list is the next one of its
 * list. A part without one before it heads its chunk.
 *
 * Invariants: every part is in the list of its state; free neighbours of a chunk are merged.
 */
#include <frag/policy.h>

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
	struct frag_part *free_first, *used_first;
	uint64_t live_bytes, waiting_bytes;
	uint64_t releasable_bytes, releasable_count;
	uint64_t aligned_hwm;
	bool growing; /* inside a call of the upstream */
};

static struct frag_part *next_of(const struct frag_part *p)
{
	return p->list;
}

static void link_behind(struct frag_part **first, struct frag_part *prev, struct frag_part *p)
{
	p->list = prev ? prev->list : *first;
	if (prev)
		prev->list = p;
	else
		*first = p;
}

static void unlink_behind(struct frag_part **first, struct frag_part *prev, struct frag_part *p)
{
	if (prev)
		prev->list = p->list;
	else
		*first = p->list;
}

static void count_releasable(struct dynamicpool *a, const struct frag_part *p, int sign)
{
	if (!frag_part_is_whole(p))
		return;
	a->releasable_bytes += sign > 0 ? p->size : -p->size;
	a->releasable_count += sign > 0 ? 1 : -1ull;
}

/* ---- chunks ---------------------------------------------------------------------------- */

/* Gives all wholly free chunks back, in order of address. */
static int give_back(struct dynamicpool *a, struct frag_err *err)
{
	struct frag_part *p = a->free_first, *prev = NULL, *next;
	int rc = 0;

	for (; p && !rc; p = next) {
		bool gone;

		next = next_of(p);
		if (!frag_part_is_whole(p)) {
			prev = p;
			continue;
		}
		rc = frag_upstream_give(&a->up, p->chunk, &gone, err);
		if (!gone)
			return rc;
		count_releasable(a, p, -1);
		unlink_behind(&a->free_first, prev, p);
		frag_slab_free(&a->parts, p);
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

/* The last part of a list in order of address that lies below `addr`; NULL if none does. */
static struct frag_part *last_below(struct frag_part *p, frag_addr_t addr)
{
	struct frag_part *prev = NULL;

	for (; p && p->addr < addr; p = next_of(p))
		prev = p;
	return prev;
}

static int grow(struct dynamicpool *a, uint64_t bytes, uint32_t stream, struct frag_part **out,
		struct frag_part **prev, enum frag_class *cls, struct frag_err *err)
{
	bool is_first = !a->free_first && !a->used_first;
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
	*prev = last_below(a->free_first, c->addr);
	link_behind(&a->free_first, *prev, *out);
	count_releasable(a, *out, 1);
	return 0;
}

/* ---- allocation -------------------------------------------------------------------------- */

/* Best fit and the part before it in the free list; NULL if nothing fits. */
static struct frag_part *find(const struct dynamicpool *a, uint64_t bytes, struct frag_part **prev)
{
	struct frag_part *best = NULL, *before = NULL;

	*prev = NULL;
	for (struct frag_part *p = a->free_first; p; before = p, p = next_of(p)) {
		if (p->size < bytes || (best && p->size >= best->size))
			continue;
		best = p;
		*prev = before;
		if (p->size == bytes)
			break;
	}
	return best;
}

static int core_alloc(struct dynamicpool *a, uint64_t bytes, uint32_t stream,
		      struct frag_part **out, enum frag_class *cls, struct frag_err *err)
{
	struct frag_part *p, *prev;

	if (frag_slab_reserve(&a->parts, 2))
		return frag_fail_nomem(err, "dynamicpool: blocks");
	*cls = FRAG_CLASS_HIT;
	p = find(a, bytes, &prev);
	if (!p)
		FRAG_TRY(grow(a, bytes, stream, &p, &prev, cls, err));
	count_releasable(a, p, -1);
	unlink_behind(&a->free_first, prev, p);
	if (p->size != bytes) {
		link_behind(&a->free_first, prev, frag_part_split(&a->parts, p, bytes));
		if (*cls == FRAG_CLASS_HIT)
			*cls = FRAG_CLASS_SPLIT;
	}
	p->state = FRAG_STATE_LIVE;
	p->stream = stream;
	link_behind(&a->used_first, NULL, p);
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
	struct frag_part *prev = NULL, *next;

	*(p->state == FRAG_STATE_LIVE ? &a->live_bytes : &a->waiting_bytes) -= p->size;
	for (next = a->used_first; next != p; next = next_of(next)) {
		FRAG_ASSERT(next);
		prev = next;
	}
	unlink_behind(&a->used_first, prev, p);
	p->state = FRAG_STATE_FREE;
	prev = last_below(a->free_first, p->addr);
	next = prev ? next_of(prev) : a->free_first;
	if (prev && p->prev == prev) {
		frag_part_absorb_next(&a->parts, prev);
		p = prev;
	} else {
		link_behind(&a->free_first, prev, p);
	}
	if (next && p->next == next) {
		p->list = next->list;
		frag_part_absorb_next(&a->parts, p);
	}
	count_releasable(a, p, 1);
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
	if (!pool) /* all requests are in the one pool, the default one */
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
	out->pinned_bytes += free_bytes - a->releasable_bytes;
	out->blocks_count += frag_slab_live(&a->parts);
	for (const struct frag_part *p = a->free_first; p; p = next_of(p))
		out->largest_free_bytes = FRAG_MAX(out->largest_free_bytes, p->size);
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

static int check_lists(const struct dynamicpool *a, const struct frag_parts_tally *t,
		       struct frag_err *err)
{
	size_t free_count = 0, used_count = 0, used = t->count - t->free_count;
	frag_addr_t at = 0;

	for (const struct frag_part *p = a->free_first; p; p = next_of(p), free_count++) {
		if (p->state != FRAG_STATE_FREE || (free_count && p->addr <= at))
			return frag_fail(err, FRAG_ECHECK, "free list is broken at 0x%llx",
					 (unsigned long long)p->addr);
		at = p->addr;
	}
	/* a list longer than its parts goes round */
	for (const struct frag_part *p = a->used_first; p && used_count <= used; p = next_of(p)) {
		if (p->state == FRAG_STATE_FREE)
			return frag_fail(err, FRAG_ECHECK, "free block 0x%llx in the used list",
					 (unsigned long long)p->addr);
		used_count++;
	}
	if (free_count != t->free_count || used_count != used)
		return frag_fail(err, FRAG_ECHECK, "a block is in no list");
	return 0;
}

static int dynamic_check(void *self, struct frag_err *err)
{
	struct dynamicpool *a = self;
	struct frag_parts_tally t;

	FRAG_TRY(frag_upstream_check(&a->up, err));
	FRAG_TRY(frag_parts_check(&a->up, NULL, check_free, a, &t, err));
	FRAG_TRY(check_lists(a, &t, err));
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
	*self = a;
	return 0;
}

static void destroy(void *self)
{
	struct dynamicpool *a = self;

	frag_slab_release(&a->parts);
	frag_upstream_close(&a->up);
	frag_host_free(a);
}

const struct frag_policy_ops frag_policy_dynamicpool = {
	.abi = FRAG_POLICY_ABI,
	.name = "dynamicpool",
	.summary = "Umpire's DynamicPoolList: best fit by walking lists, coalesced by a heuristic",
	.source = "LLNL/Umpire src/umpire/strategy/DynamicPoolList.cpp, 2026",
	.flags = FRAG_POLICY_LINEAR,
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
