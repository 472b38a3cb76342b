/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adaptor: after every event (or every n-th) it runs the inner policy's own check, and checks
 * on its own books that:
 *
 *	- a granted block is not shorter than the request and overlaps no live or waiting
 *	  block; a freed block was granted, with the same address and size;
 *	- the walk visits segments and blocks in order of address, without gaps between the
 *	  blocks of a segment (except where pages are mapped one by one), and finds as many
 *	  bytes in use as were granted and not freed;
 *	- the counters of `usage` equal the sums of the walk.
 *
 * The first broken promise is the error of the call (FRAG_ECHECK). Cost: O(blocks) per
 * event that is checked.
 *
 * Structure: the blocks in use in a set by address; `value` is the granted size.
 */
#include <frag/policy.h>

#include <adaptor.h>
#include <bset.h>

struct params {
	uint64_t every;
	bool walk;
};

static const struct frag_opt opts[] = { FRAG_OPT_UINT("every", struct params, every, 1, 1,
						      UINT64_MAX, "check once in this many events"),
					FRAG_OPT_BOOL("walk", struct params, walk, true,
						      "also walk all blocks and compare with what "
						      "was granted"),
					FRAG_OPT_END };

struct check {
	struct frag_adaptor a; /* first: see adaptor.h */
	const struct params *p;
	struct frag_bset used; /* (addr, 0) -> granted bytes */
	uint64_t used_bytes;
	uint64_t events;
	uint32_t depth; /* calls of the inner policy that we are inside of */
	int64_t checks_count;
};

#define LL(x) ((unsigned long long)(x))

static uint64_t granted_at(struct frag_bset_node *at)
{
	return (uintptr_t)at->value;
}

/* ---- the walk ----------------------------------------------------------------------------- */

struct walk {
	struct frag_usage sum;
	frag_addr_t at, end; /* in the current segment: how far the blocks are; its end */
	bool inside, holes;  /* in a segment; it may have holes */
	const char *broken;
	frag_addr_t where;
};

static void complain(struct walk *w, const char *what, frag_addr_t where)
{
	if (w->broken)
		return;
	w->broken = what;
	w->where = where;
}

static void walk_segment(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct walk *w = ctx;

	(void)stream;
	if (w->inside && (w->holes ? w->at > w->end : w->at != w->end))
		complain(w, "blocks do not fill their segment", w->at);
	if (w->inside && addr < w->end)
		complain(w, "segments out of order", addr);
	w->inside = true;
	w->at = addr;
	w->end = addr + bytes;
	w->sum.segments_count++;
}

static void walk_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		       uint64_t releasable)
{
	struct walk *w = ctx;

	if (!w->inside || (w->holes ? addr < w->at : addr != w->at) || !bytes)
		complain(w, "a block does not join the one before", addr);
	if (releasable > bytes || (releasable && state != FRAG_STATE_FREE))
		complain(w, "more is releasable than is free", addr);
	w->at = addr + bytes;
	w->sum.blocks_count++;
	if (state == FRAG_STATE_LIVE) {
		w->sum.allocated_bytes += bytes;
	} else if (state == FRAG_STATE_WAITING) {
		w->sum.waiting_bytes += bytes;
	} else {
		w->sum.free_bytes += bytes;
		w->sum.releasable_bytes += releasable;
		w->sum.non_releasable_bytes += bytes - releasable;
		w->sum.largest_free_bytes = FRAG_MAX(w->sum.largest_free_bytes, bytes);
	}
}

static int compare_usage(const struct frag_usage *walk, const struct frag_usage *told,
			 struct frag_err *err)
{
	if (walk->allocated_bytes != told->allocated_bytes ||
	    walk->waiting_bytes != told->waiting_bytes)
		return frag_fail(err, FRAG_ECHECK,
				 "usage has %llu bytes live and %llu waiting, the walk %llu and "
				 "%llu",
				 LL(told->allocated_bytes), LL(told->waiting_bytes),
				 LL(walk->allocated_bytes), LL(walk->waiting_bytes));
	if (walk->free_bytes != told->free_bytes ||
	    walk->non_releasable_bytes != told->non_releasable_bytes ||
	    walk->releasable_bytes != told->releasable_bytes)
		return frag_fail(err, FRAG_ECHECK,
				 "usage has %llu bytes free and %llu releasable, the walk %llu and "
				 "%llu",
				 LL(told->free_bytes), LL(told->releasable_bytes),
				 LL(walk->free_bytes), LL(walk->releasable_bytes));
	if (told->largest_free_bytes && told->largest_free_bytes != walk->largest_free_bytes)
		return frag_fail(err, FRAG_ECHECK,
				 "usage has %llu bytes as largest free block, the walk %llu",
				 LL(told->largest_free_bytes), LL(walk->largest_free_bytes));
	return 0;
}

static int check_walk(struct check *c, struct frag_err *err)
{
	const struct frag_policy *p = &c->a.inner.policy;
	struct walk w = { .holes = p->ops->needs & FRAG_CAN_VMM ||
				   p->ops->flags & FRAG_POLICY_ADAPTOR };
	struct frag_visitor v = { .ctx = &w, .segment = walk_segment, .block = walk_block };
	struct frag_usage told = { 0 };
	uint64_t used;

	if (!p->ops->visit)
		return 0;
	p->ops->visit(p->self, &v);
	walk_segment(&w, w.end, 0, 0); /* ends the last one */
	if (w.broken)
		return frag_fail(err, FRAG_ECHECK, "walk: %s at 0x%llx", w.broken, LL(w.where));
	used = w.sum.allocated_bytes + w.sum.waiting_bytes;
	if (used != c->used_bytes)
		return frag_fail(err, FRAG_ECHECK,
				 "the walk finds %llu bytes in use, %llu were granted", LL(used),
				 LL(c->used_bytes));
	if (!p->ops->usage)
		return 0;
	p->ops->usage(p->self, &told);
	return compare_usage(&w.sum, &told, err);
}

/* After an event; inside of another one the state is not looked at. */
static int check_now(struct check *c, struct frag_err *err)
{
	c->depth--;
	if (c->depth || ++c->events % c->p->every)
		return 0;
	c->checks_count++;
	FRAG_TRY(frag_adaptor_check(c, err));
	return c->p->walk ? check_walk(c, err) : 0;
}

/* An error of the call itself comes before what the check has to say. */
static int check_after(struct check *c, int rc, struct frag_err *err)
{
	int checked = check_now(c, rc < 0 ? NULL : err);

	return checked && rc >= 0 ? checked : rc;
}

/* ---- the policy ----------------------------------------------------------------------------- */

static int check_grant(struct check *c, const struct frag_request *req, const struct frag_block *b,
		       struct frag_err *err)
{
	struct frag_bset_node *above = frag_bset_lower(&c->used, b->addr, 0);
	struct frag_bset_node *below = frag_bset_below(&c->used, b->addr, 0);

	if (b->granted < req->bytes)
		return frag_fail(err, FRAG_ECHECK, "%llu bytes granted where %llu were requested",
				 LL(b->granted), LL(req->bytes));
	if (above && above->by.key < b->addr + b->granted)
		return frag_fail(err, FRAG_ECHECK, "block 0x%llx overlaps the one at 0x%llx",
				 LL(b->addr), LL(above->by.key));
	if (below && below->by.key + granted_at(below) > b->addr)
		return frag_fail(err, FRAG_ECHECK, "block 0x%llx overlaps the one at 0x%llx",
				 LL(b->addr), LL(below->by.key));
	return 0;
}

/* The caller will not know of the block: it goes back. */
static int take_back(struct check *c, const struct frag_request *req, struct frag_block *b, int rc)
{
	b->stream = req->stream;
	b->requested = req->bytes;
	frag_adaptor_free(c, b, NULL);
	return rc;
}

static int check_alloc(void *self, const struct frag_request *req, struct frag_block *out,
		       struct frag_err *err)
{
	struct check *c = self;
	int rc;

	FRAG_CHECK_ALLOC(!frag_bset_reserve(&c->used, frag_bset_count(&c->used) + 1), "check", err);
	c->depth++;
	rc = frag_adaptor_alloc(c, req, out, err);
	if (rc)
		return check_after(c, rc, err);
	rc = check_grant(c, req, out, err);
	if (rc) {
		c->depth--;
		return take_back(c, req, out, rc);
	}
	frag_bset_insert(&c->used, out->addr, 0, (void *)(uintptr_t)out->granted);
	c->used_bytes += out->granted;
	rc = check_now(c, err);
	if (rc) {
		frag_bset_erase(&c->used, out->addr, 0);
		c->used_bytes -= out->granted;
		return take_back(c, req, out, rc);
	}
	return 0;
}

static int check_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct check *c = self;
	struct frag_bset_node *at = frag_bset_lower(&c->used, block->addr, 0);

	if (!at || at->by.key != block->addr || granted_at(at) != block->granted)
		return frag_fail(err, FRAG_ECHECK, "block 0x%llx is freed, but not in use",
				 LL(block->addr));
	frag_bset_erase_at(&c->used, at);
	c->used_bytes -= block->granted;
	c->depth++;
	return check_after(c, frag_adaptor_free(c, block, err), err);
}

static int check_trim(void *self, uint16_t pool, struct frag_err *err)
{
	struct check *c = self;

	c->depth++;
	return check_after(c, frag_adaptor_trim(c, pool, err), err);
}

static int check_synced(void *self, struct frag_err *err)
{
	struct check *c = self;

	c->depth++;
	return check_after(c, frag_adaptor_synced(c, err), err);
}

static void check_counters(void *self, frag_counter_fn fn, void *ctx)
{
	struct check *c = self;

	frag_adaptor_counters(c, fn, ctx);
	fn(ctx, "check.checks", c->checks_count);
}

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	struct check *c;

	FRAG_TRY(frag_adaptor_create(env, env, sizeof(*c), "check", self, err));
	c = *self;
	c->p = params;
	frag_bset_init(&c->used);
	return 0;
}

static void destroy(void *self)
{
	struct check *c = self;

	frag_bset_release(&c->used);
	frag_adaptor_destroy(c);
}

const struct frag_policy_ops frag_policy_adapt_check = {
	.abi = FRAG_POLICY_ABI,
	.name = "check",
	.summary = "adaptor: checks the inner policy after every event against its own books",
	.source = "cufrag",
	FRAG_ADAPTOR_OPS,
	FRAG_POLICY_PARAMS(struct params),
	.create = create,
	.destroy = destroy,
	.alloc = check_alloc,
	.free = check_free,
	.trim = check_trim,
	.synced = check_synced,
	.counters = check_counters,
};
