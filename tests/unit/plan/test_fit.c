/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit and tune on made-up traces, whose answers are known or can be replayed. That the answer completes
 * and less does not, that threads change nothing, and what is left after Ctrl-C: tests/cli fit_brackets,
 * tune_gnn, fit_interrupted, tune_interrupted, and tests/agree.
 */
#include "test.h"

#include <frag/plan.h>

#include "must.h"
#include "trace/build/build.h"

#define CONTEXT (100 * MIB)

/* Random blocks of 1 to 40 MiB, at most `live` at a time. */
static void make_trace(struct frag_trace_dev *dev, uint64_t seed, size_t count, uint32_t live)
{
	uint64_t bytes[64] = { 0 };

	*dev = (struct frag_trace_dev){ .slots_count = live, .streams_count = 1, .pools_count = 1 };
	dev->events = frag_host_calloc(count, sizeof(*dev->events));
	assert_non_null(dev->events);
	for (size_t i = 0; i < count; i++) {
		uint32_t slot;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		slot = (uint32_t)(seed >> 40) % live;
		dev->events[i] =
			(struct frag_event){ .time_us = i,
					     .slot = slot,
					     .kind = bytes[slot] ? FRAG_EV_FREE : FRAG_EV_ALLOC };
		if (!bytes[slot])
			bytes[slot] = MIB + (seed >> 20) % (39 * MIB);
		dev->events[i].bytes = bytes[slot];
		if (dev->events[i].kind == FRAG_EV_FREE)
			bytes[slot] = 0;
	}
	dev->events_count = count;
}

static struct frag_plan_env make_env(unsigned threads)
{
	struct frag_plan_env env = {
		.threads = threads, .card = { .total_bytes = GIB * 100, .context_bytes = CONTEXT }
	};

	frag_run_options_defaults(&env.run);
	return env;
}

static bool completes(const char *policy, const struct frag_trace_dev *dev, uint64_t total)
{
	struct frag_sim_config card = { .total_bytes = total, .context_bytes = CONTEXT };
	AUTO_SPEC spec = must_parse_policy(policy);
	struct frag_run_options opt = default_run();
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };
	bool completed;

	SUCCEEDS(frag_replay_sim(spec, &card, dev, &opt, &r, NULL));
	completed = r.completed;
	return completed;
}

/* Traces on which a larger card fails where a smaller one does: found, bracketed, and said. */
TEST(test_fit_not_monotonic)
{
	static const struct {
		uint64_t seed;
		const char *policy;
	} rows[] = { { 5, "pytorch" }, { 8, "pytorch:max_split_size_mb:21" }, { 2, "bfc" } };
	struct frag_plan_env env = make_env(1);

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		struct frag_fit_task task = { .spec = must_parse_policy(rows[i].policy) };
		const struct frag_fit *f = &task.fit;
		FRAG_AUTO(frag_trace_dev_release) struct frag_trace_dev dev = { 0 };

		make_trace(&dev, rows[i].seed, 3000, 30);
		task.dev = &dev;
		SUCCEEDS(frag_fit_run(&env, NULL, 0, &task, 1, NULL));
		assert_true(f->gaps_seen > 0 &&
			    f->gaps_count == FRAG_MIN(f->gaps_seen, (size_t)FRAG_FIT_GAPS));
		assert_true(f->min_capacity_bytes < f->gaps[0].first_bytes);
		assert_true(completes(rows[i].policy, &dev, f->min_capacity_bytes));
		assert_false(completes(rows[i].policy, &dev, f->min_capacity_bytes - FRAG_PAGE));
		for (size_t g = 0; g < f->gaps_count; g++) {
			assert_false(completes(rows[i].policy, &dev, f->gaps[g].first_bytes));
			assert_false(completes(rows[i].policy, &dev, f->gaps[g].last_bytes));
		}
		assert_true(completes(rows[i].policy, &dev, f->safe_capacity_bytes));
		assert_false(completes(rows[i].policy, &dev, f->safe_capacity_bytes - FRAG_PAGE));
		frag_policy_spec_destroy((struct frag_policy_spec *)task.spec);
	}
}

/* ---- tune ------------------------------------------------------------------------ */

static void tune(const struct frag_trace_dev *dev, unsigned threads, uint64_t budget,
		 enum frag_tune_objective objective, struct frag_tune *out)
{
	static const char *const spaces[] = { "pytorch" };
	struct frag_tune_options opt = { .spaces = spaces,
					 .spaces_count = 1,
					 .baseline = "pytorch",
					 .objective = objective,
					 .budget = budget,
					 .seed = 1 };
	struct frag_plan_env env = make_env(threads);

	SUCCEEDS(frag_tune_run(&env, &dev, 1, &opt, out, NULL));
	assert_true(out->complete);
}

/* No two of the front, and nothing outside of it, contradict its definition. */
TEST(test_tune_front)
{
	FRAG_AUTO(frag_trace_dev_release) struct frag_trace_dev dev = { 0 };
	FRAG_AUTO(frag_tune_release) struct frag_tune t = { 0 };

	make_trace(&dev, 8, 800, 25);
	tune(&dev, 2, 120, FRAG_TUNE_TIME, &t);
	assert_true(t.front_count > 0);
	for (size_t k = 0; k < t.front_count; k++)
		for (size_t i = 0; i < t.tries_count; i++)
			assert_false(t.tries[i].completed &&
				     t.tries[i].peak_reserved_bytes <
					     t.tries[t.front[k]].peak_reserved_bytes &&
				     t.tries[i].driver_ns < t.tries[t.front[k]].driver_ns);
	for (size_t i = 0; i < t.tries_count; i++)
		assert_true(t.tries[0].driver_ns <= t.tries[i].driver_ns || !t.tries[i].completed);
	frag_tune_release(&t);
	tune(&dev, 2, 20, FRAG_TUNE_CARD, &t);
	assert_true(completes(t.tries[0].text, &dev, t.tries[0].capacity_bytes));
	assert_false(completes(t.tries[0].text, &dev, t.tries[0].capacity_bytes - FRAG_PAGE));
}

/* Several ranks: the worst peak and the sum of times. A cap holds beside a limit that is a
 * fraction of the card. */
TEST(test_tune_units_and_limits)
{
	static const char *const spaces[] = { "pytorch" };
	struct frag_tune_options opt = {
		.spaces = spaces, .spaces_count = 1, .baseline = "pytorch", .budget = 20
	};
	struct frag_plan_env env = make_env(2);
	const struct frag_trace_dev *units[2];
	FRAG_AUTO(frag_trace_dev_release) struct frag_trace_dev small = { 0 }, large = { 0 };
	FRAG_AUTO(frag_tune_release) struct frag_tune both = { 0 };
	struct frag_tune alone[2];

	make_trace(&small, 3, 300, 10);
	make_trace(&large, 4, 900, 30);
	units[0] = &small;
	units[1] = &large;
	SUCCEEDS(frag_tune_run(&env, units, 2, &opt, &both, NULL));
	for (size_t u = 0; u < 2; u++) {
		opt.baseline = both.tries[0].text;
		SUCCEEDS(frag_tune_run(&env, &units[u], 1, &opt, &alone[u], &test_err));
	}
	assert_true(both.tries[0].peak_reserved_bytes ==
		    FRAG_MAX(alone[0].tries[alone[0].baseline].peak_reserved_bytes,
			     alone[1].tries[alone[1].baseline].peak_reserved_bytes));
	assert_true(both.tries[0].driver_ns == alone[0].tries[alone[0].baseline].driver_ns +
						       alone[1].tries[alone[1].baseline].driver_ns);
	opt.baseline = "pytorch";
	env.limit_fraction = 0.9;
	env.run.limit_bytes = both.tries[both.baseline].peak_reserved_bytes - FRAG_PAGE;
	frag_tune_release(&both);
	SUCCEEDS(frag_tune_run(&env, units, 2, &opt, &both, NULL));
	for (size_t i = 0; i < both.tries_count; i++)
		assert_true(!both.tries[i].completed ||
			    both.tries[i].peak_reserved_bytes <= env.run.limit_bytes);
	frag_tune_release(&alone[0]);
	frag_tune_release(&alone[1]);
}
