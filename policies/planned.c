/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planned: addresses that were planned ahead, and a caching pool for the rest.
 *
 * A job that repeats its steps makes the same requests again. `cufrag plan TRACE -o FILE` places
 * the requests of a recording's first steps offline and writes their sizes and offsets; this policy
 * follows that plan. It allocates one segment of the planned height at the first event, not while
 * it reads the plan: reading takes so long that the card falls asleep. A request is rounded up to
 * 512 B and takes the next entry of its size in the current phase whose place is free, at most
 * LOOK_AHEAD entries ahead. If there is none (another size, more requests, another order) it takes
 * the lowest gap of the segment; if no gap fits, the fallback serves it: another policy on the same
 * device. It also serves what the plan leaves to it: lifetimes that are too long to repeat have an
 * entry without a place, so that the requests after them still find their own. Phases follow the
 * marks of the program: the beginning, then the steps of the period in turn. Without a plan the
 * fallback serves everything.
 *
 * Differences from its source: the n-th request of a size takes the n-th entry of that size, not
 * the n-th of all, so that one request more or less does not spoil the rest of a step; requests of
 * varying size take any gap, not only one that was planned as idle.
 *
 * Source: STAlloc (EuroSys 2026, arXiv 2507.16274; infinigence/STAlloc). Invariants: ranges in use
 * never overlap; once started the segment exists if and only if a plan does.
 */
#include <frag/policy.h>

#include <adaptor.h>
#include <spans.h>

#include "planned/plan_text.h"

#define UNIT 512u
#define LOOK_AHEAD 64u

struct params {
	char plan[FRAG_OPT_STRING_MAX];
	char fallback[FRAG_OPT_STRING_MAX];
};

static const struct frag_opt opts[] = {
	FRAG_OPT_STRING("plan", struct params, plan, "",
			"plan file, written by cufrag plan TRACE -o FILE; without it only the "
			"fallback"),
	FRAG_OPT_STRING("fallback", struct params, fallback, "pytorch",
			"policy for requests that are not in the plan"),
	FRAG_OPT_END,
};

struct planned {
	struct frag_adaptor a; /* first: around the fallback */
	bool started;	       /* at the first event: the segment and the fallback exist */
	struct plan plan;
	frag_addr_t base; /* of the planned segment */
	struct frag_spans spans;
	struct frag_slab slab; /* of these */
	uint64_t used_bytes, waiting_bytes;
	uint32_t phase, marks, skip_left;
	bool change; /* the next phase begins after skip_left more requests */
	int64_t hits, misses, conflicts, gaps;
};

/* ---- life ------------------------------------------------------------------------ */

static int take_segment(struct planned *s, struct frag_err *err)
{
	int rc = FRAG_OOM;

	if (!s->plan.reserve_bytes)
		return 0;
	if (s->plan.reserve_bytes <= s->a.env.limit_bytes)
		rc = frag_dev_alloc(s->a.env.dev, s->plan.reserve_bytes, &s->base, err);
	if (rc != FRAG_OOM)
		return rc;
	/* a plan that does not fit: everything goes to the fallback */
	plan_release(&s->plan);
	return 0;
}

/* The segment, then the fallback, which may take memory of its own. Again after an error. */
static int start_now(struct planned *s, struct frag_err *err)
{
	struct frag_policy_env rest = s->a.env;
	int rc;

	FRAG_CHECK_ALLOC(!frag_slab_reserve(&s->slab, 1), "policy planned", err);
	FRAG_TRY(take_segment(s, err));
	if (rest.limit_bytes != UINT64_MAX)
		rest.limit_bytes -= s->plan.reserve_bytes;
	rc = frag_policy_create(s->a.inner.spec, &rest, &s->a.inner.policy, err);
	if (rc && s->plan.reserve_bytes)
		frag_dev_free(s->a.env.dev, s->base, s->plan.reserve_bytes, NULL);
	else if (s->plan.reserve_bytes)
		frag_spans_begin(&s->slab, &s->spans, s, s->base, s->plan.reserve_bytes);
	s->started = !rc;
	return rc;
}

/* Call it before anything changes the fallback or the segment; reading needs no start. */
static inline int start(struct planned *s, struct frag_err *err)
{
	return FRAG_LIKELY(s->started) ? 0 : start_now(s, err);
}

static int create(const struct frag_policy_env *env, const void *params, void **self,
		  struct frag_err *err)
{
	struct planned *s;
	const struct params *p = params;
	int rc;

	FRAG_TRY_CALLOC(s, 1, "policy planned", err);
	s->a.env = *env;
	frag_slab_init(&s->slab, sizeof(struct frag_span));
	rc = frag_policy_spec_parse(p->fallback, &s->a.inner.spec, err);
	if (!rc && *p->plan)
		rc = plan_read(p->plan, &s->plan, err);
	if (rc) {
		frag_inner_close(&s->a.inner);
		plan_release(&s->plan);
		frag_host_free(s);
		return rc;
	}
	*self = s;
	return 0;
}

static void destroy(void *self)
{
	struct planned *s = self;

	frag_inner_close(&s->a.inner);
	if (s->started && s->plan.reserve_bytes)
		frag_dev_free(s->a.env.dev, s->base, s->plan.reserve_bytes, NULL);
	plan_release(&s->plan);
	frag_slab_release(&s->slab);
	frag_host_free(s);
}

/* ---- phases ---------------------------------------------------------------------- */

static void next_phase(struct planned *s)
{
	uint32_t repeated = s->plan.phases_count - 1;
	struct plan_phase *p;

	s->change = false;
	if (!repeated)
		return;
	s->phase = s->phase % repeated + 1;
	p = &s->plan.phases[s->phase];
	for (uint32_t i = 0; i < p->sizes_count; i++)
		s->plan.sizes[p->sizes_first + i].cursor = 0;
}

static void mark(void *self, bool begins)
{
	struct planned *s = self;

	if (start(s, NULL))
		return; /* the next request meets the same error and tells it */
	s->marks++;
	if (s->plan.phases_count > 1 && s->marks >= s->plan.prefix_marks &&
	    (s->marks - s->plan.prefix_marks) % s->plan.phase_marks == 0) {
		if (s->change)
			next_phase(s);
		s->change = true;
		s->skip_left = s->plan.skip;
	}
	frag_adaptor_mark(s, begins);
}

/* ---- requests -------------------------------------------------------------------- */

/* The place of the next entry of its size that is free, or the lowest gap; NULL: it is left to
 * the fallback. */
static struct frag_span *take_place(struct planned *s, uint64_t bytes)
{
	struct plan_size *size = plan_find(&s->plan, s->phase, bytes);
	uint32_t at = size ? size->cursor : 0, left = size ? size->count - at : 0;
	struct frag_span *n = NULL;

	for (uint32_t end = at + FRAG_MIN(left, LOOK_AHEAD); at < end; at++) {
		uint64_t offset = s->plan.entries[size->first + at].offset;

		if (offset != UINT64_MAX)
			n = frag_spans_take_at(&s->slab, &s->spans, s->base + offset, bytes);
		if (!n && offset != UINT64_MAX)
			continue;
		size->cursor = at + 1;
		*(n ? &s->hits : &s->misses) += 1;
		return n;
	}
	*(left ? &s->conflicts : &s->misses) += 1;
	n = frag_spans_take(&s->slab, &s->spans, bytes);
	s->gaps += n != NULL;
	return n;
}

static int alloc(void *self, const struct frag_request *req, struct frag_block *out,
		 struct frag_err *err)
{
	struct planned *s = self;
	uint64_t bytes = frag_round_up(FRAG_MAX(req->bytes, 1u), UNIT);
	struct frag_span *n = NULL;

	FRAG_TRY(start(s, err));
	if (s->change && !s->skip_left--)
		next_phase(s);
	/* private pools keep their memory to themselves: not in the plan */
	if (s->plan.phases_count && !req->pool) {
		FRAG_CHECK_ALLOC(!frag_slab_reserve(&s->slab, 2), "policy planned", err);
		n = take_place(s, bytes);
	}
	if (!n)
		return frag_adaptor_alloc(s, req, out, err);
	s->used_bytes += bytes;
	*out = (struct frag_block){
		.addr = n->fit.key, .granted = bytes, .handle = (uintptr_t)n, .cls = FRAG_CLASS_HIT
	};
	return 0;
}

static bool is_planned(const struct planned *s, frag_addr_t addr)
{
	return addr - s->base < s->plan.reserve_bytes;
}

static int release(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct planned *s = self;
	struct frag_span *n = frag_span_of(block);

	if (!is_planned(s, block->addr))
		return frag_adaptor_free(s, block, err);
	s->used_bytes -= block->granted;
	if (n->state == FRAG_STATE_WAITING)
		s->waiting_bytes -= block->granted;
	frag_spans_give(&s->slab, &s->spans, n);
	return 0;
}

static void free_requested(void *self, const struct frag_block *block)
{
	struct planned *s = self;

	if (is_planned(s, block->addr)) {
		frag_span_of(block)->state = FRAG_STATE_WAITING;
		s->waiting_bytes += block->granted;
	} else {
		frag_adaptor_free_requested(s, block);
	}
}

static int trim(void *self, uint16_t pool, struct frag_err *err)
{
	FRAG_TRY(start(self, err));
	return frag_adaptor_trim(self, pool, err);
}

static int synced(void *self, struct frag_err *err)
{
	FRAG_TRY(start(self, err));
	return frag_adaptor_synced(self, err);
}

/* ---- what is held ---------------------------------------------------------------- */

/* The fallback's segments, with the planned one among them by address. */
struct visit {
	struct planned *s;
	const struct frag_visitor *v;
	bool shown;
};

static void visit_planned(struct visit *w)
{
	uint64_t bytes = w->s->plan.reserve_bytes;

	w->shown = true;
	if (!bytes)
		return;
	w->v->segment(w->v->ctx, w->s->base, bytes, 0);
	frag_spans_visit(&w->s->spans, w->v);
}

static void visit_segment(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct visit *w = ctx;

	if (!w->shown && addr > w->s->base)
		visit_planned(w);
	w->v->segment(w->v->ctx, addr, bytes, stream);
}

static void visit_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
			uint64_t releasable)
{
	struct visit *w = ctx;

	w->v->block(w->v->ctx, addr, bytes, state, releasable);
}

static void visit(void *self, const struct frag_visitor *v)
{
	struct planned *s = self;
	struct visit w = { .s = s, .v = v };
	struct frag_visitor through = { &w, visit_segment, visit_block };

	if (!s->started)
		return;
	frag_adaptor_visit(s, &through);
	if (!w.shown)
		visit_planned(&w);
}

static void usage(void *self, struct frag_usage *out)
{
	struct planned *s = self;
	uint64_t idle = s->plan.reserve_bytes - s->used_bytes;

	*out = (struct frag_usage){ 0 };
	if (!s->started)
		return;
	frag_adaptor_usage(s, out);
	/* its blocks are counted by a walk only; 0 = not known */
	if (s->plan.reserve_bytes)
		out->largest_free_bytes = 0;
	out->allocated_bytes += s->used_bytes - s->waiting_bytes;
	out->waiting_bytes += s->waiting_bytes;
	out->non_releasable_bytes += idle;
	out->free_bytes += idle;
	out->segments_count += s->plan.reserve_bytes != 0;
}

static void counters(void *self, frag_counter_fn fn, void *ctx)
{
	struct planned *s = self;

	fn(ctx, "planned.reserved_bytes", (int64_t)s->plan.reserve_bytes);
	fn(ctx, FRAG_COUNTER_PLAN_HITS, s->hits);
	fn(ctx, "planned.not_in_plan", s->misses);
	fn(ctx, "planned.place_taken", s->conflicts);
	fn(ctx, "planned.in_a_gap", s->gaps);
	frag_adaptor_counters(s, fn, ctx);
}

const struct frag_policy_ops frag_policy_planned = {
	.name = "planned",
	.summary = "places planned from the first steps of a recording, a caching pool for the "
		   "rest",
	.source = "STAlloc, EuroSys 2026, arXiv 2507.16274; infinigence/STAlloc",
	.trims = "what its fallback does; the planned segment stays",
	.checked = "the paper and its code, read",
	.flags = FRAG_POLICY_PLANNED,
	.needs = FRAG_CAN_MALLOC,
	FRAG_POLICY_PARAMS(struct params),
	FRAG_POLICY_HOOKS,
	.free_requested = free_requested,
	.trim = trim,
	.synced = synced,
	.mark = mark,
	.visit = visit,
	.usage = usage,
	.check = frag_adaptor_check,
	.counters = counters,
};
