/* SPDX-License-Identifier: Apache-2.0 */
/* Short replays for searches; see probe.h. */
#include "probe.h"

#include "replay/hints.h"
#include "recording/target.h"

#define CHUNK 32768u /* events between two checks of the stop flag */
#define WINDOWS 16u  /* only peaks matter, and windows never lose them */

void frag_plan_env_init(struct frag_plan_env *env, const struct frag_target *t, unsigned threads)
{
	*env = (struct frag_plan_env){ .threads = threads, .card = t->card };
	frag_target_run_options(t, &env->run);
	if (t->limit.is_fraction && env->run.limit_bytes != UINT64_MAX) {
		env->limit_fraction = t->limit.fraction;
		env->run.limit_bytes = UINT64_MAX;
	}
}

uint64_t frag_probe_peak_live(const struct frag_trace_dev *dev, uint64_t unit)
{
	uint64_t now = 0, peak = 0;

	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];

		if (e->kind == FRAG_EV_ALLOC)
			now += frag_round_up(e->bytes, unit);
		else if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_REQUESTED)
			now -= FRAG_MIN(now, frag_round_up(e->bytes, unit));
		peak = FRAG_MAX(peak, now);
	}
	return peak;
}

static int replay(const struct frag_plan_env *env, const struct frag_policy_spec *spec,
		  struct frag_device *card, const struct frag_trace_dev *dev,
		  const struct frag_run_options *opt, struct frag_probe *out, struct frag_err *err)
{
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };
	FRAG_AUTO(frag_run_destroy_at) struct frag_run *run = NULL;

	FRAG_TRY(frag_run_create(spec, card, dev, opt, &run, err));
	for (size_t i = 0; i < dev->events_count && !frag_run_stopped(run); i += CHUNK) {
		if (frag_watch_stopped(&env->watch))
			return frag_fail(err, FRAG_EINTR, "interrupted");
		FRAG_TRY(frag_run_feed(run, dev->events + i,
				       FRAG_MIN((size_t)CHUNK, dev->events_count - i), err));
	}
	/* whole replays check that a policy leaves nothing behind */
	FRAG_TRY(frag_run_measure(run, &r, err));
	*out = (struct frag_probe){ .completed = r.completed && !r.m.ooms_count,
				    .ended = r.completed,
				    .refused = r.m.ooms_count,
				    .retries = r.m.retries_count,
				    .peak_reserved_bytes = r.m.peak_reserved_bytes,
				    .peak_active_bytes = r.m.peak_active_bytes,
				    .lower_bound_bytes = r.m.lower_bound_bytes,
				    .driver_ns = r.m.modelled_ns,
				    .driver_calls = r.m.driver_calls_count };
	return 0;
}

int frag_probe_run(const struct frag_plan_env *env, const struct frag_policy_spec *spec,
		   const struct frag_sim_config *card, const struct frag_trace_dev *dev,
		   struct frag_probe *out, struct frag_err *err)
{
	struct frag_hints hints = {
		.trace = dev, .restore = env->run.restore && frag_policy_spec_ops(spec)->restore
	};
	struct frag_run_options opt = env->run;
	FRAG_AUTO(frag_dev_close_at) struct frag_device *sim = NULL;

	if (env->limit_fraction > 0 && env->limit_fraction < 1)
		opt.limit_bytes = FRAG_MIN(opt.limit_bytes, (uint64_t)(env->limit_fraction *
								       (double)card->total_bytes));
	opt.losses = opt.latency = opt.check = false;
	opt.skip_oom = env->skip_oom;
	opt.only_peaks = true;
	opt.windows_max = WINDOWS;
	FRAG_TRY(frag_hints_open(&hints, card, &sim, err));
	return replay(env, spec, sim, dev, &opt, out, err);
}
