/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a program: its recording replayed, the untrusted reports of its processes, and the changes that they offer. */
#include "trial_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHANGES_MAX 64u

/* ---- folders -------------------------------------------------------------------------- */

void frag_trials_path(const struct frag_advising *a, unsigned n, const char *name, char *path,
		      size_t room)
{
	snprintf(path, room, "%s/%u%s%s", a->trials.folder, n, *name ? "/" : "", name);
}

int frag_trials_folder(struct frag_advising *a, unsigned *n, char *path, struct frag_err *err)
{
	*n = a->trials.count++;
	frag_trials_path(a, *n, "", path, 4096);
	return mkdir(path, 0700) && errno != EEXIST
		       ? frag_fail(err, FRAG_EOUTPUT, "cannot create '%.300s': %s", path,
				   strerror(errno))
		       : 0;
}

/* ---- measured -------------------------------------------------------------------------- */

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

	frag_trials_path(a, n, "", folder, sizeof(folder));
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
	frag_trials_path(a, n, "", folder, sizeof(folder));
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

/* ---- what the program offers ----------------------------------------------------------- */

static const char *text_of(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

bool frag_offer_asked(const char *only, const char *name, unsigned *number)
{
	size_t len = strlen(name);

	*number = 0;
	for (const char *at = only; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",=") == len && !strncmp(at, name, len)) {
			*number = at[len] == '=' ? (unsigned)strtoul(at + len + 1, NULL, 10) : 0;
			return true;
		}
	return !only;
}

/* A name is sent to the fork server in a line, and is put into the environment. */
static bool is_name(const char *name)
{
	return *name && strlen(name) < 60 &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

char *frag_offer_name(const char *name, unsigned n)
{
	char text[80];

	if (!n)
		return frag_host_strdup(name);
	snprintf(text, sizeof(text), "%s=%u", name, n);
	return frag_host_strdup(text);
}

char *frag_offer_sentence(const char *pattern, unsigned n)
{
	const char *at = strstr(pattern, "{n}");
	const size_t room = strlen(pattern) + 16;
	char *text = at ? frag_host_calloc(room, 1) : frag_host_strdup(pattern);

	if (at && text)
		snprintf(text, room, "%.*s%u%s", (int)(at - pattern), pattern, n, at + 3);
	return text;
}

static int add_offer(struct frag_advising *a, const json_t *row, struct frag_err *err)
{
	const char *name = text_of(row, "name"), *group = text_of(row, "group"),
		   *pattern = text_of(row, "what");
	unsigned most = (unsigned)FRAG_MIN(frag_facts_count(row, "most"), UINT16_MAX), number;
	FRAG_AUTO_FREE char *change = NULL, *what = NULL;

	if (!is_name(name) || !frag_offer_asked(a->only, name, &number))
		return 0;
	number = most ? number : 0;
	change = frag_offer_name(name, number);
	what = frag_offer_sentence(pattern, number ? number : 2);
	FRAG_CHECK_ALLOC(change && what, "advice", err);
	a->list[a->count] =
		(struct frag_advice){ .change = change,
				      .what = what,
				      .where = text_of(row, "where"),
				      .numerics = text_of(row, "numerics"),
				      .left_out = text_of(row, "left_out"),
				      .group = most && !*group ? name : group,
				      .pattern = pattern,
				      .compiled = json_is_true(json_object_get(row, "compiled")),
				      .most = number ? 0 : most,
				      .untimed = json_is_true(json_object_get(row, "untimed")),
				      .before = a->first.peaks };
	return frag_advice_own(&a->list[a->count++], err);
}

int frag_trial_offers(struct frag_advising *a, struct frag_err *err)
{
	json_auto_t *facts = frag_trial_facts(a, 0);
	const json_t *changes = json_object_get(facts, "changes");
	size_t i, n = FRAG_MIN(json_array_size(changes), CHANGES_MAX);

	/* a numbered change may have two rows */
	FRAG_TRY_CALLOC(a->list, 2 * n + FRAG_TRIAL_REPLAYED + 1, "advice", err);
	for (i = 0; i < 2 * n; i++) { /* changes that compile take longest, so they start first */
		json_t *row = json_array_get(changes, i % n);

		if (json_is_true(json_object_get(row, "untimed")) == (i < n))
			FRAG_TRY(add_offer(a, row, err));
	}
	return 0;
}
