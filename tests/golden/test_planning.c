/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning against recordings: offline placements of every trace in the repository, checked by the
 * independent sweep; plans of steps, made from a part; fit, whose answers are replayed on both
 * sides; tune, whose predictions must be what was recorded. Absent recordings are skipped.
 */
#include <unistd.h>

#include <frag/plan.h>

#include "recorded.h"

#define SECOND 1000000000ull

static struct frag_trace *load(const char *path)
{
	struct frag_trace *t = must_read(path);

	for (uint32_t d = 0; d < t->devs_count; d++)
		if (t->devs[d].has_evidence &&
		    frag_resolve(t, d, &recorded_card, UINT64_MAX, &test_err))
			fail_msg("%s: %s", path, test_err.msg);
	return t;
}

static struct frag_plan_env make_env(void)
{
	struct frag_plan_env env = { .threads = 2 };
	const struct frag_gpu *h200 = frag_gpu_find("h200");

	env.card = (struct frag_sim_config){ .total_bytes = h200->total_bytes,
					     .context_bytes = h200->context_bytes };
	frag_run_options_defaults(&env.run);
	return env;
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

	SUCCEEDS(frag_step_plan_make_with(&dev, &opt, &whole, NULL));
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
	SUCCEEDS(frag_step_plan_make_with(&dev, &opt, &part, NULL));
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
	struct frag_plan_env env = make_env();
	FRAG_AUTO(frag_step_plan_release) struct frag_step_plan plan = { 0 };
	const char *path;
	AUTO_TRACE t = NULL;
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };
	char text[128];

	recorded_or_skip(row->path);
	t = load(row->path);
	SUCCEEDS(frag_step_plan_make(&t->devs[0], 0, -1, 600 * SECOND, NULL, &plan, &test_err));
	path = test_path("plan");
	SUCCEEDS(frag_step_plan_write(&plan, "test", path, NULL));
	snprintf(text, sizeof(text), "planned:plan=%s", path);
	r = must_replay(text, &t->devs[0], &env.card, &env.run);
	unlink(path);
	assert_true(r.completed);
	if (r.m.efficiency_ratio < row->efficiency)
		fail_msg("%s: %.4f", row->path, r.m.efficiency_ratio);
}

/* ---- fit ------------------------------------------------------------------------- */

struct fit_row {
	const char *policy;
	uint64_t recorded_peak; /* of gnn under it, from the notes of the recordings */
};

static bool completes(const char *policy, const struct frag_trace_dev *dev, uint64_t total)
{
	struct frag_plan_env env = make_env();
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };
	bool completed;

	env.card.total_bytes = total;
	r = must_replay(policy, dev, &env.card, &env.run);
	completed = r.completed;
	return completed;
}

/* At the answer it completes, 2 MiB below not; nothing is retried with room for the recorded peak. */
static void fit_brackets(void **state)
{
	static const struct fit_row rows[] = {
		{ "pytorch", 15493758976 },
		{ "pytorch:expandable_segments:True", 10359930880 },
		{ "pytorch:max_split_size_mb:128", 89433047040 },
	};
	struct frag_fit_task tasks[FRAG_ARRAY_LEN(rows)] = { 0 };
	struct frag_plan_env env = make_env();
	struct frag_policy_spec *specs[FRAG_ARRAY_LEN(rows)];
	AUTO_TRACE t = NULL;

	if (access(*state, R_OK) != 0)
		skip();
	t = load(*state);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		specs[i] = must_parse_policy(rows[i].policy);
		tasks[i] = (struct frag_fit_task){ .spec = specs[i], .dev = &t->devs[0] };
	}
	SUCCEEDS(frag_fit_run(&env, 0, NULL, 0, tasks, FRAG_ARRAY_LEN(rows), NULL));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		const struct frag_fit *f = &tasks[i].fit;

		assert_int_equal(tasks[i].rc, 0);
		assert_true(f->complete && f->possible);
		assert_true(completes(rows[i].policy, &t->devs[0], f->min_capacity_bytes));
		assert_false(
			completes(rows[i].policy, &t->devs[0], f->min_capacity_bytes - FRAG_PAGE));
		assert_true(f->peak_reserved_bytes == rows[i].recorded_peak);
		assert_true(f->ample_capacity_bytes ==
			    rows[i].recorded_peak + env.card.context_bytes);
		assert_true(f->safe_capacity_bytes <= f->ample_capacity_bytes);
		frag_policy_spec_destroy(specs[i]);
	}
}

/* ---- tune ------------------------------------------------------------------------ */

/* A recording under other settings; from NAME.default they are predicted. */
struct tune_row {
	const char *model, *setting;
};

static void tune_predicts(void **state)
{
	const struct tune_row *row = *state;
	struct frag_plan_env env = make_env();
	char from[512], like[512];
	const char *policy;
	struct frag_tune_options opt = { .spaces = &policy, .budget = 1 };
	const struct frag_trace_dev *dev;
	AUTO_TRACE t = NULL;
	struct frag_tune out;
	json_t *notes;

	snprintf(from, sizeof(from), TORCH "%s.default.pickle.xz", row->model);
	snprintf(like, sizeof(like), TORCH "%s.%s.pickle.xz", row->model, row->setting);
	recorded_or_skip(from);
	notes = recorded_notes(like);
	if (!notes)
		skip();
	policy = opt.baseline = recorded_policy(notes, "");
	env.run.limit_bytes = recorded_limit(notes);
	t = load(from);
	dev = &t->devs[0];
	SUCCEEDS(frag_tune_run(&env, &dev, 1, &opt, &out, &test_err));
	assert_true(out.tries[out.baseline].completed);
	must_be_peak(out.tries[out.baseline].peak_reserved_bytes, recorded_peak(notes), row->model,
		     policy);
	frag_tune_release(&out);
	json_decref(notes);
}

struct best_row {
	const char *path;
	uint64_t recorded; /* the least peak that was recorded without a limit */
};

static void tune_finds(void **state)
{
	const struct best_row *row = *state;
	struct frag_plan_env env = make_env();
	const char *space = "pytorch";
	struct frag_tune_options opt = {
		.spaces = &space, .spaces_count = 1, .baseline = "pytorch", .budget = 60
	};
	const struct frag_trace_dev *dev;
	AUTO_TRACE t = NULL;
	FRAG_AUTO(frag_tune_release) struct frag_tune out = { 0 };

	recorded_or_skip(row->path);
	t = load(row->path);
	dev = &t->devs[0];
	SUCCEEDS(frag_tune_run(&env, &dev, 1, &opt, &out, NULL));
	assert_true(out.tries[0].completed);
	if (out.tries[0].peak_reserved_bytes > row->recorded)
		fail_msg("%s: %llu, recorded %llu", out.tries[0].text,
			 (ull)out.tries[0].peak_reserved_bytes, (ull)row->recorded);
}

/* ---- all ------------------------------------------------------------------------- */

static const struct planned_row planned_rows[] = {
	{ TORCH "gpt2.default.pickle.xz", 0.999 }, { TORCH "gpt2ckpt.default.pickle.xz", 0.999 },
	{ TORCH "lora.default.pickle.xz", 0.95 },  { "traces/vision.default.cft", 0.999 },
	{ "traces/varlen.default.cft", 0.9 },	   { "traces/gnn.default.cft", 0.75 },
};

/* Not here: varlen.split128 (its card was full of others) and moe.pow2list (other requests). */
static const struct tune_row tune_rows[] = {
	{ "gnn", "bigseg" },
	{ "gnn", "expandable" },
	{ "gnn", "gc" },
	{ "gnn", "pow2" },
	{ "gnn", "round" },
	{ "gnn", "split128" },
	{ "gpt2", "expandable" },
	{ "serve", "expandable" },
	{ "varlen", "expandable" },
	{ "varlen", "gc" },
	{ "varlen", "pow2" },
	{ "vision", "expandable" },
	{ "modelpar", "expandable" },
};

static const struct best_row best_rows[] = {
	{ "traces/gnn.default.cft", 10359930880 },
	{ "traces/varlen.default.cft", 22900899840 },
	{ "traces/vision.default.cft", 9244246016 },
	{ "traces/serve.default.cft", 3147825152 },
	{ TORCH "moe.default.pickle.xz", 11418992640 },
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
	test_add(fit_brackets, "traces/gnn.default.cft", "fit, bundled gnn");
	test_add(fit_brackets, TORCH "gnn.default.pickle.xz", "fit, recorded gnn");
	for (size_t i = 0; i < FRAG_ARRAY_LEN(tune_rows); i++)
		test_add(tune_predicts, &tune_rows[i], "tune predicts %s.%s", tune_rows[i].model,
			 tune_rows[i].setting);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(best_rows); i++)
		test_add(tune_finds, &best_rows[i], "tune finds the best of %s", best_rows[i].path);
}
