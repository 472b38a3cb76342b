/* SPDX-License-Identifier: Apache-2.0 */
/* planned: plans made from steps, and runs that follow them, under `check`: no two blocks meet. */
#include "must.h"
#include "test.h"

#include <frag/plan.h>

#include "trace/build/build.h"

/* ---- steps ----------------------------------------------------------------------- */

struct maker {
	struct frag_event *list;
	size_t count;
	uint32_t free[64], free_count, slots;
};

static void add(struct maker *m, struct frag_event e)
{
	e.time_us = m->count;
	m->list[m->count++] = e;
}

static uint32_t put(struct maker *m, uint64_t bytes)
{
	uint32_t slot = m->free_count ? m->free[--m->free_count] : m->slots++;

	add(m, (struct frag_event){ .bytes = bytes, .slot = slot, .kind = FRAG_EV_ALLOC });
	return slot;
}

static void drop(struct maker *m, uint32_t slot, uint64_t bytes)
{
	add(m, (struct frag_event){ .bytes = bytes, .slot = slot, .kind = FRAG_EV_FREE });
	m->free[m->free_count++] = slot;
}

static void mark(struct maker *m, unsigned flags)
{
	add(m,
	    (struct frag_event){ .kind = FRAG_EV_MARK, .flags = (uint8_t)(FRAG_EVF_STEP | flags) });
}

/* Weights; then steps of activations; an output that lives until the next one is there. again: and
 * one more of its size. */
static void make_steps(struct frag_trace_dev *dev, unsigned steps, bool same, bool again)
{
	struct maker m = { .list = frag_host_calloc(4096, sizeof(*m.list)) };
	uint32_t output = 0, slots[8];
	uint64_t last = 0;

	assert_non_null(m.list);
	put(&m, 50 * MIB);
	put(&m, 3000);
	for (unsigned s = 0; s < steps; s++) {
		uint64_t base = (same ? 7 : 7 + 3 * (s * 5 % 11)) * MIB, kept = 9 * base;
		uint32_t now;

		for (unsigned k = 0; k < 8; k++)
			slots[k] = put(&m, base * (1 + k % 3));
		now = put(&m, kept);
		if (s)
			drop(&m, output, last);
		output = now;
		last = kept;
		if (again)
			drop(&m, put(&m, kept), kept);
		for (unsigned k = 0; k < 8; k++)
			drop(&m, slots[7 - k], base * (1 + (7 - k) % 3));
		mark(&m, 0);
		mark(&m, FRAG_EVF_END);
	}
	*dev = (struct frag_trace_dev){ .events = m.list,
					.events_count = m.count,
					.slots_count = m.slots,
					.streams_count = 1,
					.pools_count = 1 };
}

static int64_t counter(const struct frag_result *r, const char *name)
{
	for (const struct frag_counter *c = r->counters; c && c->name; c++)
		if (!strcmp(c->name, name))
			return c->value;
	return -1;
}

/* A trace, its plan, and a run that follows it. */
struct planned {
	struct frag_trace_dev dev;
	struct frag_step_plan plan;
	struct frag_result r;
};

static void release(struct planned *x)
{
	frag_result_release(&x->r);
	frag_step_plan_release(&x->plan);
	frag_trace_dev_release(&x->dev);
}
#define PLANNED FRAG_AUTO(release) struct planned x = { 0 }

static void plan_and_run(struct planned *x, uint64_t total)
{
	const char *path = test_make_file("plan", "", 0);
	struct frag_sim_config card = { .total_bytes = total };
	struct frag_run_options opt = default_run();
	struct frag_step_options steps = { .slack = -1, .budget_ns = 1000000000 };
	char text[64];

	frag_result_release(&x->r);
	frag_step_plan_release(&x->plan);
	SUCCEEDS(frag_step_plan_make(&x->dev, &steps, &x->plan, &test_err));
	SUCCEEDS(frag_step_plan_write(&x->plan, "test", path, NULL));
	snprintf(text, sizeof(text), "check/planned:plan=%s", path);
	opt.check = true;
	x->r = must_replay(text, &x->dev, &card, &opt);
}

/* Steps that repeat: every request finds its place, two outputs take turns, nothing is lost. */
TEST(test_repeated)
{
	PLANNED;

	make_steps(&x.dev, 12, true, false);
	plan_and_run(&x, GIB * 10);
	assert_int_equal(x.plan.period, 2);
	assert_true(x.plan.similarity == 1);
	assert_true(x.r.completed);
	assert_int_equal(counter(&x.r, "planned.not_in_plan"), 0);
	assert_int_equal(counter(&x.r, "planned.place_taken"), 0);
	assert_true(x.r.m.peak_reserved_bytes - x.plan.reserve_bytes < FRAG_PAGE);
	assert_true(x.r.m.efficiency_ratio > 0.95);
}

/* Too few steps for two outputs to take turns: the fallback serves them. */
TEST(test_too_long)
{
	PLANNED;

	make_steps(&x.dev, 5, true, true);
	plan_and_run(&x, GIB * 10);
	assert_int_equal(x.plan.period, 1);
	assert_true(x.r.completed);
	assert_in_range(counter(&x.r, "planned.not_in_plan"), 1, 5);
	assert_int_equal(counter(&x.r, "planned.place_taken"), 0);
}

/* Steps that change: the beginning only, the others in gaps or by the fallback. */
TEST(test_changing)
{
	PLANNED;

	make_steps(&x.dev, 12, false, false);
	plan_and_run(&x, GIB * 10);
	assert_int_equal(x.plan.period, 0);
	assert_true(x.r.completed);
	assert_true(counter(&x.r, "planned.in_a_gap") > 0);
	assert_true(counter(&x.r, "planned.not_in_plan") > 0);
	/* a card on which the plan itself has no room: the fallback does it all */
	plan_and_run(&x, x.plan.reserve_bytes - FRAG_PAGE);
	assert_int_equal(counter(&x.r, "planned.hits"), 0);
}

/* A trace that marks too few steps is cut into windows of requests; one may ask for others, or for
 * windows of time. Nothing tells a run when they begin, so the plan is of the beginning. */
TEST(test_windows)
{
	struct frag_step_options opt = { .slack = -1, .budget_ns = 1000000000 };
	const struct frag_trace_dev none = { 0 };
	uint32_t half;
	PLANNED;

	make_steps(&x.dev, 2, true, false);
	plan_and_run(&x, GIB * 10);
	assert_true(x.plan.windows && x.plan.period == 0);
	assert_in_range(x.plan.steps_count, 8, 16);
	half = (uint32_t)x.plan.requests_count;
	assert_true(x.r.completed);
	assert_true(counter(&x.r, "planned.hits") >= (int64_t)half);
	frag_step_plan_release(&x.plan);
	opt.window_requests = 10;
	opt.train = 2;
	SUCCEEDS(frag_step_plan_make(&x.dev, &opt, &x.plan, NULL));
	assert_int_equal(x.plan.requests_count, 20);
	frag_step_plan_release(&x.plan);
	opt.window_requests = 0;
	for (size_t i = 0; i < x.dev.events_count; i++)
		x.dev.events[i].time_us = 1000 + i;
	opt.window_us = x.dev.events_count / 4;
	SUCCEEDS(frag_step_plan_make(&x.dev, &opt, &x.plan, NULL));
	assert_in_range(x.plan.steps_count, 4, 5);
	assert_in_range(x.plan.requests_count, half * 3 / 5, half * 3 / 2);
	frag_step_plan_release(&x.plan);
	opt.train = 7;
	assert_int_equal(frag_step_plan_make(&x.dev, &opt, &x.plan, &test_err), FRAG_EINPUT);
	for (size_t i = 0; i < x.dev.events_count; i++)
		x.dev.events[i].time_us = i << 24;
	opt.window_us = 1;
	assert_int_equal(frag_step_plan_make(&x.dev, &opt, &x.plan, &test_err), FRAG_EUSAGE);
	opt = (struct frag_step_options){ .slack = -1, .budget_ns = 1000000 };
	assert_int_equal(frag_step_plan_make(&none, &opt, &x.plan, &test_err), FRAG_EINPUT);
}

/* Events after the planned steps do not affect the plan: the same trace cut off there gives the same
 * plan. */
static void plan_sees_a_part(void **state)
{
	const struct frag_sim_config h200 = { .context_bytes = UINT64_MAX };
	struct frag_step_options opt = { .slack = -1, .budget_ns = 600000000000 };
	FRAG_AUTO(frag_step_plan_release) struct frag_step_plan whole = { 0 }, part = { 0 };
	AUTO_TRACE t = must_read_bundled(*state);
	struct frag_trace_dev dev = t->devs[0];
	size_t allocs = 0, last;

	SUCCEEDS(frag_resolve(t, 0, &h200, UINT64_MAX, &test_err));
	SUCCEEDS(frag_step_plan_make(&dev, &opt, &whole, NULL));
	assert_true(whole.trained_count < whole.steps_count);
	opt.train = whole.trained_count;
	for (size_t i = 0; i < dev.events_count && whole.windows; i++)
		allocs += dev.events[i].kind == FRAG_EV_ALLOC;
	opt.window_requests = (allocs + 15) / 16;
	last = whole.windows ? opt.train * opt.window_requests : 0;
	/* up to the last trained step, and as many requests more as its end is put off */
	allocs = 0;
	for (size_t i = 0, steps = 0; i < dev.events_count && (!last || allocs <= last); i++) {
		const struct frag_event *e = &dev.events[i];

		allocs += e->kind == FRAG_EV_ALLOC;
		steps += e->kind == FRAG_EV_MARK && e->flags & FRAG_EVF_STEP &&
			 e->flags & FRAG_EVF_END;
		if (!last && steps == opt.train)
			last = allocs + whole.skip;
		if (last && allocs > last)
			dev.events_count = i + 1;
	}
	assert_true(dev.events_count < t->devs[0].events_count);
	SUCCEEDS(frag_step_plan_make(&dev, &opt, &part, NULL));
	assert_true(part.steps_count < whole.steps_count);
	assert_int_equal(part.requests_count, whole.requests_count);
	assert_true(part.reserve_bytes == whole.reserve_bytes);
	assert_memory_equal(part.bytes, whole.bytes, whole.requests_count * sizeof(*whole.bytes));
	assert_memory_equal(part.offsets, whole.offsets,
			    whole.requests_count * sizeof(*whole.offsets));
}

TESTS
{
	if (!test_is_quick()) /* the longest by far */
		test_add(plan_sees_a_part, "vision.default", "plan of a part: vision");
	test_add(plan_sees_a_part, "gnn.default", "plan of a part: gnn");
	test_add(plan_sees_a_part, "streams.default", "plan of a part: streams");
}
