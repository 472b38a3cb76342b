/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning against recordings: offline placements of every trace in the repository, checked by the
 * independent sweep; plans of steps, made from a part. Absent recordings are skipped. fit and tune are
 * checked by their commands (tests/cli fit_brackets, tune_gnn; run.py).
 */
#include <unistd.h>

#include <frag/plan.h>

#include "must.h"
#include "test.h"

#define SECOND 1000000000ull

static const struct frag_sim_config h200 = { .context_bytes = UINT64_MAX };

static struct frag_trace *load(const char *path)
{
	struct frag_trace *t = must_read(path);

	for (uint32_t d = 0; d < t->devs_count; d++)
		if (t->devs[d].has_evidence && frag_resolve(t, d, &h200, UINT64_MAX, &test_err))
			fail_msg("%s: %s", path, test_err.msg);
	return t;
}

/* ---- placements ------------------------------------------------------------------ */

/* Every order with every rule, and the improved one: none overlaps, none is below the load.
 * within: the best may be so much above it. */
static void place_all(const struct frag_trace_dev *dev, bool at_request, double within)
{
	struct frag_improve_options improve = { .budget_ns = 60 * SECOND, .rounds_max = 1 };
	FRAG_AUTO_FREE uint64_t *offsets = NULL;
	uint64_t height, best, bound;
	FRAG_AUTO(frag_buffers_release) struct frag_buffers b = { 0 };
	bool few;

	SUCCEEDS(frag_buffers_init(&b, dev, 512, at_request, NULL));
	offsets = frag_host_calloc(b.count + 1, sizeof(*offsets));
	assert_non_null(offsets);
	SUCCEEDS(frag_load_bound(&b, &bound, NULL, NULL));
	best = UINT64_MAX;
	few = test_is_quick() || b.count > (test_is_nightly() ? 50000 : 10000);
	for (unsigned k = 0; k < FRAG_ORDER_COUNT * FRAG_GAP_COUNT; k++) {
		unsigned order = k / FRAG_GAP_COUNT, rule = k % FRAG_GAP_COUNT;

		/* largest first into the smallest gap, and each of the other rules once */
		if (few && order != rule)
			continue;
		SUCCEEDS(frag_place_greedy(&b, order, rule, NULL, offsets, &height, NULL));
		if (frag_place_check(&b, offsets, 512, height, &test_err))
			fail_msg("order %u, gap rule %u: %s", order, rule, test_err.msg);
		assert_true(height >= bound);
		best = FRAG_MIN(best, height);
	}
	if (!few) {
		SUCCEEDS(frag_place_improve(&b, &improve, offsets, &height, NULL));
		if (frag_place_check(&b, offsets, 512, height, &test_err))
			fail_msg("improved: %s", test_err.msg);
		best = FRAG_MIN(best, height);
	}
	if ((double)best > (1 + within) * (double)bound)
		fail_msg("%.4f of the load", (double)best / (double)bound);
}

static void placements(void **state)
{
	const char *path = *state;
	AUTO_TRACE t = load(path);

	for (uint32_t d = 0; d < t->devs_count; d++) {
		if (test_is_quick() && t->devs[d].events_count > 100000)
			continue;
		place_all(&t->devs[d], false, strstr(path, "varlen") ? 0.01 : 0.05);
	}
}

/* ---- plans of steps -------------------------------------------------------------- */

/* Events after the planned steps do not affect the plan: the same trace cut off
 * there gives the same plan. */
static void plan_sees_a_part(void **state)
{
	AUTO_TRACE t = load(*state);
	struct frag_trace_dev dev = t->devs[0];
	FRAG_AUTO(frag_step_plan_release) struct frag_step_plan whole = { 0 }, part = { 0 };
	struct frag_step_options opt = { .slack = -1, .budget_ns = 600 * SECOND };
	uint32_t steps = 0;

	SUCCEEDS(frag_step_plan_make(&dev, &opt, &whole, NULL));
	assert_true(whole.trained_count < whole.steps_count);
	opt.train = whole.trained_count;
	if (whole.windows) {
		size_t allocs = 0;

		for (size_t i = 0; i < dev.events_count; i++)
			allocs += dev.events[i].kind == FRAG_EV_ALLOC;
		opt.window_requests = (allocs + 15) / 16;
	}
	/* up to the last trained step, and as many requests more as its end is put off */
	for (size_t i = 0, allocs = 0, last = 0; i < t->devs[0].events_count; i++) {
		const struct frag_event *e = &t->devs[0].events[i];

		allocs += e->kind == FRAG_EV_ALLOC;
		steps += e->kind == FRAG_EV_MARK && e->flags & FRAG_EVF_STEP &&
			 e->flags & FRAG_EVF_END;
		if (whole.windows)
			last = opt.train * opt.window_requests;
		else if (!last && steps == opt.train)
			last = allocs + whole.skip;
		if (last && allocs > last) {
			dev.events_count = i + 1;
			break;
		}
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

struct planned_row {
	const char *path;
	double efficiency; /* at least */
};

/* Planned from the first half of the steps, run on all of them. */
static void planned_efficiency(void **state)
{
	const struct planned_row *row = *state;
	struct frag_step_options opt = { .slack = -1, .budget_ns = 600 * SECOND };
	FRAG_AUTO(frag_step_plan_release) struct frag_step_plan plan = { 0 };
	const char *path;
	AUTO_TRACE t = NULL;
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };
	char text[128];

	recorded_or_skip(row->path);
	t = load(row->path);
	SUCCEEDS(frag_step_plan_make(&t->devs[0], &opt, &plan, &test_err));
	path = test_path("plan");
	SUCCEEDS(frag_step_plan_write(&plan, "test", path, NULL));
	snprintf(text, sizeof(text), "planned:plan=%s", path);
	r = must_replay(text, &t->devs[0], NULL, NULL);
	unlink(path);
	assert_true(r.completed);
	if (r.m.efficiency_ratio < row->efficiency)
		fail_msg("%s: %.4f", row->path, r.m.efficiency_ratio);
}

/* ---- all ------------------------------------------------------------------------- */

static const struct planned_row planned_rows[] = {
	{ TORCH "gpt2.default.pickle.xz", 0.999 }, { TORCH "gpt2ckpt.default.pickle.xz", 0.999 },
	{ TORCH "lora.default.pickle.xz", 0.95 },  { "traces/vision.default.cft", 0.999 },
	{ "traces/varlen.default.cft", 0.9 },	   { "traces/gnn.default.cft", 0.75 },
};

TESTS
{
	if (!test_add_files(placements, "traces/*.cft", ""))
		abort();
	test_add(plan_sees_a_part, "traces/vision.default.cft", "plan of a part: vision");
	test_add(plan_sees_a_part, "traces/gnn.default.cft", "plan of a part: gnn");
	test_add(plan_sees_a_part, "traces/streams.default.cft", "plan of a part: streams");
	for (size_t i = 0; i < FRAG_ARRAY_LEN(planned_rows); i++)
		test_add(planned_efficiency, &planned_rows[i], "planned %s", planned_rows[i].path);
}
