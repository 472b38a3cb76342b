/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a program: its recording replayed, untrusted reports of its processes, their offers. */
#include "trial.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <frag/metrics.h>

#include <jansson.h>

#include "base/clean.h"

#define CHANGES_MAX 64u

/* ---- texts, curves ------------------------------------------------------------------------ */

const char *frag_advice_text(struct frag_answer *texts, const char *text)
{
	const size_t len = text ? strlen(text) : 0;
	char *copy = frag_answer_copy(texts, text ? text : "", len + 1);

	return copy ? frag_clean_text(copy, len) : "";
}

void frag_advice_keep(struct frag_advice *x, struct frag_answer *texts)
{
	const char **all[] = { &x->change,   &x->what,	&x->where,  &x->numerics,
			       &x->left_out, &x->group, &x->pattern };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(all); i++)
		*all[i] = frag_advice_text(texts, *all[i]);
}

/* A point has the maximum up to the next point, so no peak is lost. */
void frag_curve_take(struct frag_curve *c, const struct frag_series *s)
{
	c->count = 0;
	for (size_t i = 0; i < s->count && c->count < FRAG_CURVE_POINTS; i++)
		c->points[c->count++] =
			(struct frag_curve_sample){ .time_us = s->windows[i].first_us,
						    .requested = s->windows[i].requested_max,
						    .active = s->windows[i].active_max,
						    .reserved = s->windows[i].reserved_max };
}

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

static int take_peaks(const struct frag_advising *a, const struct frag_trace *trace,
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
		if (dev->events_count && trace->devs_count == 1) /* else ranks wait in host time */
			t->span_ns = FRAG_MAX(t->span_ns,
					      dev->events[dev->events_count - 1].time_us * 1000);
	}
	return 0;
}

/* The report of the process of run n with most steps; a new reference, or NULL. */
static json_t *read_facts(const struct frag_advising *a, unsigned n)
{
	char folder[4096], path[4400];
	json_t *best = NULL;
	struct dirent *entry;
	DIR *dir;

	frag_trials_path(a, n, "", folder, sizeof(folder));
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		json_t *facts;

		if (!frag_ends_with(entry->d_name, ".advise"))
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

static uint64_t count_of(const json_t *facts, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(facts, key));

	return n > 0 ? (uint64_t)n : 0;
}

int frag_trial_collect(struct frag_advising *a, unsigned n, int status, struct frag_trial *t,
		       bool *out_of_memory, struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	json_auto_t *facts = read_facts(a, n);
	char folder[4096];

	*t = (struct frag_trial){ .status = status,
				  .steps = count_of(facts, "steps"),
				  .updated = count_of(facts, "updated"),
				  .moved = count_of(facts, "moved") };
	frag_trials_path(a, n, "", folder, sizeof(folder));
	FRAG_TRY(frag_pretend_collect(&a->trials.launch, folder, status, &trace, err));
	*out_of_memory = frag_vary_refusals(trace) != 0;
	t->done = !status;
	FRAG_TRY(take_peaks(a, trace, t, err));
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

/* The change with a number: "name=4", and its sentence with {n}; for n = 0 the name alone. */
void frag_offer_number(struct frag_advising *a, struct frag_advice *x, const char *name, unsigned n)
{
	const char *at = strstr(x->pattern, "{n}");

	x->change = n ? frag_answer_print(a->texts, "%s=%u", name, n) : name;
	x->what = at ? frag_answer_print(a->texts, "%.*s%u%s", (int)(at - x->pattern), x->pattern,
					 n ? n : 2, at + 3)
		     : x->pattern;
}

static void add_offer(struct frag_advising *a, const json_t *row)
{
	const char *name = text_of(row, "name"), *group = text_of(row, "group");
	unsigned most = (unsigned)FRAG_MIN(count_of(row, "most"), UINT16_MAX), number;
	struct frag_advice *x = &a->list[a->count];

	if (!is_name(name) || !frag_offer_asked(a->only, name, &number) ||
	    (!a->only && json_is_true(json_object_get(row, "idle"))))
		return;
	number = most ? number : 0;
	*x = (struct frag_advice){ .where = text_of(row, "where"),
				   .numerics = text_of(row, "numerics"),
				   .left_out = text_of(row, "left_out"),
				   .group = most && !*group ? name : group,
				   .pattern = text_of(row, "what"),
				   .compiled = json_is_true(json_object_get(row, "compiled")),
				   .most = number ? 0 : most,
				   .untimed = json_is_true(json_object_get(row, "untimed")),
				   .before = a->first.peaks };
	frag_offer_number(a, x, name, number);
	frag_advice_keep(x, a->texts);
	a->count++;
}

int frag_trial_offers(struct frag_advising *a, struct frag_err *err)
{
	json_auto_t *facts = read_facts(a, 0);
	const json_t *changes = json_object_get(facts, "changes");
	size_t i, n = FRAG_MIN(json_array_size(changes), CHANGES_MAX);

	/* a numbered change may have two rows */
	FRAG_TRY_CALLOC(a->list, 2 * n + FRAG_TRIAL_REPLAYED + 1, "advice", err);
	for (i = 0; i < 2 * n; i++) { /* changes that compile take longest, so they start first */
		json_t *row = json_array_get(changes, i % n);

		if (json_is_true(json_object_get(row, "untimed")) == (i < n))
			add_offer(a, row);
	}
	return 0;
}
