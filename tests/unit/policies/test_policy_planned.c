/* SPDX-License-Identifier: Apache-2.0 */
/* planned: the ranges it keeps, plans made from steps, and runs that follow them. */
#include "must.h"
#include "test.h"

#include <frag/plan.h>

#include "policies/planned/occupied.h"
#include "trace/build/build.h"

/* ---- ranges in use --------------------------------------------------------------- */

#define UNITS 200u

static uint64_t lowest_gap(const uint8_t *used, uint64_t n)
{
	for (uint64_t at = 0; at + n <= UNITS; at++) {
		uint64_t k = 0;

		while (k < n && !used[at + k])
			k++;
		if (k == n)
			return at;
	}
	return UINT64_MAX;
}

/* Against an array of bytes. */
TEST(test_occupied)
{
	uint8_t used[UNITS] = { 0 };
	struct occupied_range *ranges[UNITS];
	uint32_t count = 0;
	FRAG_AUTO(occupied_release) struct occupied o = { 0 };
	uint64_t rng = 1;

	occupied_init(&o);
	for (unsigned round = 0; round < 20000; round++) {
		uint64_t from, n;
		bool free = true;

		rng = rng * 6364136223846793005ull + 1442695040888963407ull;
		n = 1 + (rng >> 33) % 20;
		assert_true(occupied_find_gap(&o, n, UNITS) == lowest_gap(used, n));
		from = (rng >> 40) % (UNITS - n);
		for (uint64_t k = 0; k < n; k++)
			free &= !used[from + k];
		assert_int_equal(occupied_is_free(&o, from, from + n), free);
		if (free && rng >> 60 < 9) {
			ranges[count] = occupied_put(&o, from, from + n);
			assert_non_null(ranges[count++]);
			memset(used + from, 1, n);
		} else if (count) {
			uint32_t k = (uint32_t)(rng >> 50) % count;
			struct occupied_range *r = ranges[k];

			memset(used + r->node.key, 0, r->to - r->node.key);
			occupied_remove(&o, r);
			ranges[k] = ranges[--count];
		}
	}
}

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
static void make_steps_with(struct frag_trace_dev *dev, unsigned steps, bool same, bool again)
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

static void make_steps(struct frag_trace_dev *dev, unsigned steps, bool same)
{
	make_steps_with(dev, steps, same, false);
}

static int64_t counter(const struct frag_result *r, const char *name)
{
	for (const struct frag_counter *c = r->counters; c && c->name; c++)
		if (!strcmp(c->name, name))
			return c->value;
	return -1;
}

static void plan_and_run(const struct frag_trace_dev *dev, uint64_t total,
			 struct frag_step_plan *plan, struct frag_result *r)
{
	const char *path = test_make_file("plan", "", 0);
	struct frag_sim_config card = { .total_bytes = total };
	struct frag_run_options opt = default_run();
	struct frag_step_options steps = { .slack = -1, .budget_ns = 1000000000 };
	char text[64];

	SUCCEEDS(frag_step_plan_make(dev, &steps, plan, &test_err));
	SUCCEEDS(frag_step_plan_write(plan, "test", path, NULL));
	snprintf(text, sizeof(text), "planned:plan=%s", path);
	opt.check = true;
	*r = must_replay(text, dev, &card, &opt);
}

/* Steps that repeat: every request finds its place, two outputs take turns, nothing is lost. */
TEST(test_repeated)
{
	FRAG_AUTO(frag_step_plan_release) struct frag_step_plan plan = { 0 };
	FRAG_AUTO(frag_trace_dev_release) struct frag_trace_dev dev = { 0 };
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };

	make_steps(&dev, 12, true);
	plan_and_run(&dev, GIB * 10, &plan, &r);
	assert_int_equal(plan.period, 2);
	assert_true(plan.similarity == 1);
	assert_true(r.completed);
	assert_int_equal(counter(&r, "planned.not_in_plan"), 0);
	assert_int_equal(counter(&r, "planned.place_taken"), 0);
	assert_true(r.m.peak_reserved_bytes - plan.reserve_bytes < FRAG_PAGE);
	if (!(r.m.efficiency_ratio > 0.95))
		fail_msg("efficiency %.4f, height %.4f of its load", r.m.efficiency_ratio,
			 (double)plan.height_bytes / (double)plan.bound_bytes);
}

/* Too few steps for two outputs to take turns: the fallback serves them. */
TEST(test_too_long)
{
	FRAG_AUTO(frag_step_plan_release) struct frag_step_plan plan = { 0 };
	FRAG_AUTO(frag_trace_dev_release) struct frag_trace_dev dev = { 0 };
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };

	make_steps_with(&dev, 5, true, true);
	plan_and_run(&dev, GIB * 10, &plan, &r);
	assert_int_equal(plan.period, 1);
	assert_true(r.completed);
	assert_in_range(counter(&r, "planned.not_in_plan"), 1, 5);
	assert_int_equal(counter(&r, "planned.place_taken"), 0);
}

/* Steps that change: the beginning only, the others in gaps or by the fallback. */
TEST(test_changing)
{
	FRAG_AUTO(frag_step_plan_release) struct frag_step_plan plan = { 0 };
	FRAG_AUTO(frag_trace_dev_release) struct frag_trace_dev dev = { 0 };
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };
	uint64_t total;

	make_steps(&dev, 12, false);
	plan_and_run(&dev, GIB * 10, &plan, &r);
	assert_int_equal(plan.period, 0);
	assert_true(r.completed);
	assert_true(counter(&r, "planned.in_a_gap") > 0);
	assert_true(counter(&r, "planned.not_in_plan") > 0);
	frag_result_release(&r);
	total = plan.reserve_bytes - FRAG_PAGE;
	frag_step_plan_release(&plan);
	/* a card on which the plan itself has no room: the fallback does it all */
	plan_and_run(&dev, total, &plan, &r);
	assert_int_equal(counter(&r, "planned.hits"), 0);
}

/* A trace that marks too few steps is cut into windows of requests; one may ask for others, or for
 * windows of time. Nothing tells a run when they begin, so the plan is of the beginning. */
TEST(test_windows)
{
	struct frag_step_options opt = { .slack = -1, .budget_ns = 1000000000 };
	FRAG_AUTO(frag_step_plan_release) struct frag_step_plan plan = { 0 };
	FRAG_AUTO(frag_trace_dev_release) struct frag_trace_dev dev = { 0 };
	const struct frag_trace_dev none = { 0 };
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };
	uint32_t half;

	make_steps(&dev, 2, true);
	plan_and_run(&dev, GIB * 10, &plan, &r);
	assert_true(plan.windows && plan.period == 0);
	assert_in_range(plan.steps_count, 8, 16);
	half = (uint32_t)plan.requests_count;
	assert_true(r.completed);
	assert_true(counter(&r, "planned.hits") >= (int64_t)half);
	frag_result_release(&r);
	frag_step_plan_release(&plan);
	opt.window_requests = 10;
	opt.train = 2;
	SUCCEEDS(frag_step_plan_make(&dev, &opt, &plan, NULL));
	assert_int_equal(plan.requests_count, 20);
	frag_step_plan_release(&plan);
	opt.window_requests = 0;
	for (size_t i = 0; i < dev.events_count; i++)
		dev.events[i].time_us = 1000 + i;
	opt.window_us = dev.events_count / 4;
	SUCCEEDS(frag_step_plan_make(&dev, &opt, &plan, NULL));
	assert_in_range(plan.steps_count, 4, 5);
	assert_in_range(plan.requests_count, half * 3 / 5, half * 3 / 2);
	frag_step_plan_release(&plan);
	opt.train = 7;
	assert_int_equal(frag_step_plan_make(&dev, &opt, &plan, &test_err), FRAG_EINPUT);
	for (size_t i = 0; i < dev.events_count; i++)
		dev.events[i].time_us = i << 24;
	opt.window_us = 1;
	assert_int_equal(frag_step_plan_make(&dev, &opt, &plan, &test_err), FRAG_EUSAGE);
	opt = (struct frag_step_options){ .slack = -1, .budget_ns = 1000000 };
	assert_int_equal(frag_step_plan_make(&none, &opt, &plan, &test_err), FRAG_EINPUT);
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
	test_add(plan_sees_a_part, "vision.default", "plan of a part: vision");
	test_add(plan_sees_a_part, "gnn.default", "plan of a part: gnn");
	test_add(plan_sees_a_part, "streams.default", "plan of a part: streams");
}
