/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the settings of recordings; see tune_recordings.h. */
#include "tune_recordings.h"

#include <stdio.h>
#include <string.h>

#include "base/term.h"

#define BUDGET 800u /* settings */
/* Driver calls of all replays; recordings have a few thousand each. */
#define CALLS_MAX (1ull << 22)
/* frag_tune_settings: events replayed, at most, but at least so many tries */
#define SETTINGS_EVENTS 20000000ull
#define SETTINGS_MIN 12ull

/* The recorded settings if all traces agree on them, else PyTorch's defaults. New memory. */
static int find_baseline(const struct frag_recordings *u, char **out, bool *agree,
			 struct frag_err *err)
{
	*out = NULL;
	*agree = true;
	for (size_t i = 0; i < u->units_count; i++) {
		struct frag_policy_spec *spec;
		bool same;

		FRAG_TRY(frag_recording_spec(u->units[i].trace, "recorded", &spec, err));
		same = spec && (!i || !strcmp(*out, frag_policy_spec_text(spec)));
		if (same && !i)
			*out = frag_host_strdup(frag_policy_spec_text(spec));
		*agree &= same || (!spec && !i);
		frag_policy_spec_destroy(spec);
		if (!same) {
			frag_host_free(*out);
			*out = frag_host_strdup("pytorch");
			break;
		}
	}
	return *out ? 0 : frag_fail_nomem(err, "baseline");
}

/* The releases that may have made the recordings, or the target's; both 0: not known. */
static void find_releases(struct frag_tuning *t)
{
	t->first_release = t->last_release = t->target->torch;
	for (size_t i = 0; i < t->units.units_count && !t->target->torch; i++) {
		const struct frag_trace_settings *s = &t->units.units[i].trace->settings;

		if (!s->torch_last)
			continue;
		if (!t->first_release || s->torch_first < t->first_release)
			t->first_release = s->torch_first;
		t->last_release = FRAG_MAX(t->last_release, s->torch_last);
	}
}

/* The worst of those recorded, and which baselines begin as the recordings did. */
static void find_recorded(struct frag_tuning *t, const uint64_t *limits, bool *restores)
{
	bool known = true;

	for (size_t i = 0; i < t->units.units_count; i++) {
		const struct frag_trace_dev *dev = t->units.units[i].dev;
		uint64_t peak = frag_target_recorded_peak(t->target, dev);

		known &= peak > 0;
		t->recorded_peak_bytes = FRAG_MAX(t->recorded_peak_bytes, peak);
		restores[i] = peak && frag_settled_restores(dev, &t->target->card, limits[i]);
	}
	if (!known)
		t->recorded_peak_bytes = 0;
}

bool frag_tuning_reproduces(const struct frag_tuning *t)
{
	const struct frag_tune_try *base = &t->found.tries[t->found.baseline];

	return !t->recorded_peak_bytes || !t->found.tries_count || !base->completed ||
	       base->peak_reserved_bytes == t->recorded_peak_bytes;
}

int frag_tuning_search(struct frag_tuning *t, unsigned threads, struct frag_err *err)
{
	const struct frag_recordings *u = &t->units;
	FRAG_AUTO_FREE const struct frag_trace_dev **devs =
		frag_host_calloc(u->units_count, sizeof(*devs));
	FRAG_AUTO_FREE uint64_t *limits = frag_host_calloc(u->units_count, sizeof(*limits));
	FRAG_AUTO_FREE bool *restores = frag_host_calloc(u->units_count, sizeof(*restores));
	bool agree = false;
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;
	struct frag_tune_options opt = t->options;
	FRAG_AUTO_FREE char *baseline = NULL;
	struct frag_plan_env env;
	char label[128];

	snprintf(label, sizeof(label), "tuning %.80s", u->units[0].label);
	frag_progress_begin(&progress, label);
	FRAG_CHECK_ALLOC(devs && limits && restores, "tune", err);
	find_releases(t);
	if (frag_policy_is_recorded(opt.baseline)) {
		FRAG_TRY(find_baseline(u, &baseline, &agree, err));
		opt.baseline = baseline;
	}
	opt.calls_max = opt.budget ? 0 : CALLS_MAX;
	opt.budget = opt.budget ? opt.budget : BUDGET;
	opt.seed = t->target->seed;
	opt.release = t->first_release;
	for (size_t i = 0; i < u->units_count; i++) {
		devs[i] = u->units[i].dev;
		limits[i] = frag_target_limit_for(t->target, u->units[i].dev);
	}
	/* the search for the smallest card goes without it */
	opt.limits = opt.objective == FRAG_TUNE_CARD ? NULL : limits;
	if (agree && opt.limits && !t->cap_bytes) {
		find_recorded(t, limits, restores);
		opt.restores = restores;
	}
	frag_plan_env_init(&env, t->target, threads);
	if (t->cap_bytes)
		env.run.limit_bytes = FRAG_MIN(env.run.limit_bytes, t->cap_bytes);
	env.run.limit_changes = opt.limits && !t->target->limit.text && !t->target->card_given;
	env.watch = progress.watch;
	return frag_tune_run(&env, devs, u->units_count, &opt, &t->found, err);
}

int frag_tune_settings(const struct frag_plan_env *env, const struct frag_trace_dev *dev,
		       struct frag_tune_options opt, struct frag_tune *out, struct frag_err *err)
{
	const char *const space = "pytorch";
	uint64_t tries = SETTINGS_EVENTS / (dev->events_count + 1);

	opt.spaces = &space;
	opt.spaces_count = 1;
	opt.budget = FRAG_MIN(FRAG_MAX(tries, SETTINGS_MIN), (uint64_t)BUDGET);
	opt.calls_max = CALLS_MAX;
	opt.release = opt.release ?: env->run.source_release ?: dev->source_release;
	return frag_tune_run(env, &dev, 1, &opt, out, err);
}

size_t frag_tune_pick(const struct frag_tune *t)
{
	const struct frag_tune_try *x = t->tries, *best = x;
	size_t found = 0;

	for (size_t i = 1; t->baseline && i < t->tries_count; i++)
		if (x[i].completed && x[i].refused_count <= best->refused_count &&
		    i != t->baseline && x[i].changed_count < x[found].changed_count &&
		    (double)x[i].peak_reserved_bytes < 1.01 * (double)best->peak_reserved_bytes)
			found = i;
	return found;
}

void frag_tuning_release(struct frag_tuning *t)
{
	frag_tune_release(&t->found);
	frag_recordings_release(&t->units);
}
