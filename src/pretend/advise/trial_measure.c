/* SPDX-License-Identifier: Apache-2.0 */
/* Measures one run of a program: replays its recording, reads the untrusted reports. */
#include "trial_internal.h"

#include <dirent.h>
#include <string.h>

static int replay(const struct frag_advising *a, const struct frag_trace_dev *dev,
		  const char *policy, struct frag_result *out, struct frag_err *err)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	struct frag_sim_config card = a->program.target.card;
	struct frag_run_options options;

	FRAG_TRY(frag_policy_spec_parse(policy, &spec, err));
	frag_run_options_defaults(&options);
	options.seed = a->program.target.seed;
	options.skip_oom = true;
	options.windows_max = FRAG_CURVE_POINTS;
	card.total_bytes = FRAG_TRIAL_LARGE;
	return frag_replay_sim(spec, &card, dev, &options, out, err);
}

int frag_trial_measure(const struct frag_advising *a, const struct frag_trace *trace,
		       struct frag_trial *t, struct frag_err *err)
{
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		const struct frag_trace_dev *dev = &trace->devs[d];
		FRAG_AUTO(frag_result_release) struct frag_result plain = { 0 };
		FRAG_AUTO(frag_result_release) struct frag_result expandable = { 0 };

		FRAG_TRY(replay(a, dev, "pytorch", &plain, err));
		FRAG_TRY(replay(a, dev, "pytorch:expandable_segments:True", &expandable, err));
		const struct frag_result *better =
			plain.m.peak_reserved_bytes <= expandable.m.peak_reserved_bytes
				? &plain
				: &expandable;

		if (!d || better->m.peak_reserved_bytes > frag_advice_need(&t->peaks))
			frag_curve_take(&t->curve, &better->series);
		t->peaks.requested = FRAG_MAX(t->peaks.requested, plain.m.peak_requested_bytes);
		t->peaks.reserved = FRAG_MAX(t->peaks.reserved, plain.m.peak_reserved_bytes);
		t->peaks.expandable =
			FRAG_MAX(t->peaks.expandable, expandable.m.peak_reserved_bytes);
		t->calls += plain.m.allocs_count;
		if (dev->events_count)
			t->span_ns = FRAG_MAX(t->span_ns,
					      dev->events[dev->events_count - 1].time_us * 1000);
	}
	return 0;
}

json_t *frag_trial_facts(const struct frag_advising *a, unsigned n)
{
	char folder[4096], path[4400];
	json_t *best = NULL;
	struct dirent *entry;
	DIR *dir;

	frag_trials_path(&a->trials, n, "", folder, sizeof(folder));
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);
		json_t *facts;

		if (len < 7 || strcmp(entry->d_name + len - 7, ".advise") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%.255s", folder, entry->d_name);
		facts = json_load_file(path, 0, NULL);
		if (!best || json_integer_value(json_object_get(facts, "steps")) >
				     json_integer_value(json_object_get(best, "steps"))) {
			json_decref(best);
			best = facts;
		} else {
			json_decref(facts);
		}
	}
	if (dir)
		closedir(dir);
	return best;
}

uint64_t frag_facts_count(const json_t *facts, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(facts, key));

	return n > 0 ? (uint64_t)n : 0;
}

int frag_trial_collect(struct frag_advising *a, unsigned n, int status, struct frag_trial *t,
		       bool *out_of_memory, struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	json_auto_t *facts = frag_trial_facts(a, n);
	char folder[4096];

	*t = (struct frag_trial){ .status = status,
				  .steps = frag_facts_count(facts, "steps"),
				  .updated = frag_facts_count(facts, "updated"),
				  .moved = frag_facts_count(facts, "moved") };
	frag_trials_path(&a->trials, n, "", folder, sizeof(folder));
	FRAG_TRY(frag_pretend_collect(&a->trials.launch, folder, status, &trace, err));
	*out_of_memory = frag_vary_refusals(trace) != 0;
	t->done = !status;
	FRAG_TRY(frag_trial_measure(a, trace, t, err));
	if (!n) {
		frag_trace_destroy(a->base);
		a->base = FRAG_GIVE(trace);
	}
	return 0;
}
