/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that are tried; see trial.h. What the processes of the program wrote is read as any input. */
#include "trial.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <frag/clock.h>

#include "advise/edit.h"
#include "base/clean.h"
#include "base/last_words.h"
#include "launch/vary.h"

#define LARGE (1ull << 40)	   /* more than any card has */
#define PCIE_BYTES_PER_SECOND 25e9 /* of pinned memory, PCIe 4.0 x16 */
#define REPLAYED_MAX 4u		   /* changes that need no run */
#define UNTRIED "could not be tried: "
#define TOGETHER_MAX 6u /* runs that look for the best combination */

uint64_t frag_advising_room(const struct frag_advising *a, bool headroom)
{
	static const struct frag_headroom none;

	return frag_gpu_room(&a->card, headroom ? &a->headroom : &none);
}

/* ---- one run, measured ------------------------------------------------------------------- */

static int replay(const struct frag_advising *a, const struct frag_trace_dev *dev,
		  const char *policy, struct frag_result *out, struct frag_err *err)
{
	struct frag_policy_spec *spec = NULL;
	struct frag_sim_config card = a->program.target.card;
	struct frag_run_options options;
	int rc;

	FRAG_TRY(frag_policy_spec_parse(policy, &spec, err));
	frag_run_options_defaults(&options);
	options.seed = a->program.target.seed;
	options.skip_oom = true;
	options.windows_max = FRAG_CURVE_POINTS;
	card.total_bytes = LARGE;
	rc = frag_replay_sim(spec, &card, dev, &options, out, err);
	frag_policy_spec_destroy(spec);
	return rc;
}

static int measure(const struct frag_advising *a, const struct frag_trace *trace,
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

/* Of the processes of run n the one that made most steps; new reference, NULL: none wrote anything. */
static json_t *read_facts(const struct frag_advising *a, unsigned n)
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

static uint64_t count_of(const json_t *facts, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(facts, key));

	return n > 0 ? (uint64_t)n : 0;
}

/* Reads what run n left. *out_of_memory: a request was refused. Errors: nothing was recorded. */
static int collect(struct frag_advising *a, unsigned n, int status, struct frag_trial *t,
		   bool *out_of_memory, struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	json_t *facts = read_facts(a, n);
	char folder[4096];

	*t = (struct frag_trial){ .status = status,
				  .steps = count_of(facts, "steps"),
				  .updated = count_of(facts, "updated"),
				  .moved = count_of(facts, "moved") };
	json_decref(facts);
	frag_trials_path(&a->trials, n, "", folder, sizeof(folder));
	FRAG_TRY(frag_pretend_collect(&a->trials.launch, folder, status, &trace, err));
	*out_of_memory = frag_vary_refusals(trace) != 0;
	t->done = !status;
	FRAG_TRY(measure(a, trace, t, err));
	if (!n) {
		frag_trace_destroy(a->base);
		a->base = trace;
		trace = NULL;
	}
	return 0;
}

/* ---- what the program offers ----------------------------------------------------------- */

static const char *text_of(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

static char *clean_copy(const char *text)
{
	char *copy = frag_host_strdup(text);

	return copy ? frag_clean_text(copy, strlen(copy)) : NULL;
}

/* Is the name in the list, or is there none? *number: that stands behind it, or 0. */
static bool is_asked(const char *only, const char *name, unsigned *number)
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

/* A name of a change goes into a line for the server, and into the environment. */
static bool is_name(const char *name)
{
	return *name && strlen(name) < 60 &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

/* "name=4", or its name alone. */
static char *numbered(const char *name, unsigned n)
{
	char text[80];

	if (!n)
		return frag_host_strdup(name);
	snprintf(text, sizeof(text), "%s=%u", name, n);
	return frag_host_strdup(text);
}

static char *sentence(const char *pattern, unsigned n)
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
	const char *name = text_of(row, "name"), *group = text_of(row, "group");
	struct frag_offer *o = &a->offers[a->count];
	struct frag_advice *x = &a->list[a->count];
	unsigned number;

	if (!is_name(name) || !is_asked(a->only, name, &number))
		return 0;
	o->most = (unsigned)FRAG_MIN(count_of(row, "most"), UINT16_MAX);
	o->group = clean_copy(o->most && !*group ? name : group);
	o->pattern = clean_copy(text_of(row, "what"));
	o->compiled = json_is_true(json_object_get(row, "compiled"));
	number = o->most ? number : 0;
	*x = (struct frag_advice){ .change = numbered(name, number),
				   .what = o->pattern ? sentence(o->pattern, number ? number : 2)
						      : NULL,
				   .where = clean_copy(text_of(row, "where")),
				   .numerics = clean_copy(text_of(row, "numerics")),
				   .left_out = clean_copy(text_of(row, "left_out")),
				   .before = a->first.peaks };
	x->untimed = json_is_true(json_object_get(row, "untimed"));
	o->most = number ? 0 : o->most; /* nothing is looked for */
	a->count++;
	if (!x->change || !x->what || !x->where || !x->numerics || !x->left_out || !o->group)
		return frag_fail_nomem(err, "advice");
	return 0;
}

static int read_offers(struct frag_advising *a, struct frag_err *err)
{
	json_t *facts = read_facts(a, 0), *row;
	const json_t *changes = json_object_get(facts, "changes");
	size_t i, n = FRAG_MIN(json_array_size(changes), FRAG_TRIALS_MAX / 2);
	const size_t cap = 2 * n + REPLAYED_MAX + 1; /* one with a number may come twice */
	int rc = 0;

	a->list = frag_host_calloc(cap, sizeof(*a->list));
	a->offers = frag_host_calloc(cap, sizeof(*a->offers));
	if (!a->list || !a->offers)
		rc = frag_fail_nomem(err, "advice");
	for (i = 0; !rc && i < 2 * n; i++) { /* what compiles takes longest, and begins first */
		row = json_array_get(changes, i % n);
		if (json_is_true(json_object_get(row, "untimed")) == (i < n))
			rc = add_offer(a, row, err);
	}
	json_decref(facts);
	return rc;
}

/* ---- runs with changes ------------------------------------------------------------------ */

/* Is that still the program? */
static void check(const struct frag_advising *a, struct frag_trial *t, unsigned n, bool late)
{
	char line[250], path[4096];

	if (late)
		snprintf(t->why, sizeof(t->why), "%snot at its end after %u s", UNTRIED,
			 a->seconds);
	else if (!t->done) {
		frag_trials_path(&a->trials, n, "log", path, sizeof(path));
		frag_last_words(path, line, sizeof(line));
		if (!*line)
			snprintf(line, sizeof(line), "it ended with status %d", t->status);
		snprintf(t->why, sizeof(t->why), UNTRIED "%.250s", line);
	} else if (t->steps != a->first.steps)
		snprintf(t->why, sizeof(t->why), "refused: %llu steps of the optimizer, not %llu",
			 (unsigned long long)t->steps, (unsigned long long)a->first.steps);
	else if (t->updated != a->first.updated)
		snprintf(t->why, sizeof(t->why), "refused: %llu weights are updated, not %llu",
			 (unsigned long long)t->updated, (unsigned long long)a->first.updated);
	t->done &= !*t->why;
}

static void take_run(struct frag_advising *a, unsigned n, int status, bool late,
		     struct frag_trial *t)
{
	struct frag_err err;
	char folder[4096];
	bool oom;

	*t = (struct frag_trial){ .status = status };
	if (!late && collect(a, n, status, t, &oom, &err))
		t->done = false;
	check(a, t, n, late);
	frag_trials_path(&a->trials, n, "", folder, sizeof(folder));
	if (*t->why && getenv("CUFRAG_CHANGES_DEBUG"))
		return;
	frag_launch_folder_remove(folder);
}

static void fill(struct frag_advising *a, struct frag_advice *x, const struct frag_trial *t)
{
	const struct frag_gpu *card;

	if (!t->done) {
		frag_host_free(x->left_out);
		x->left_out = clean_copy(t->why);
		return;
	}
	x->tried = true;
	x->after = t->peaks;
	x->curve = t->curve;
	x->cost = (struct frag_advice_cost){
		.moved = t->moved,
		.calls = frag_advice_above(t->calls, a->first.calls),
		.seconds = ((double)t->span_ns - (double)a->first.span_ns) / 1e9 +
			   (double)t->moved / PCIE_BYTES_PER_SECOND,
	};
	card = frag_catalog_pick(&a->catalog, frag_advice_need(&t->peaks), &a->headroom);
	x->card = card ? card->name : NULL;
	a->tried++;
}

/* One run to its end, alone. */
static int run_alone(struct frag_advising *a, const char *names, struct frag_trial *t,
		     struct frag_err *err)
{
	unsigned n;
	int status;
	bool late;

	FRAG_TRY(frag_trials_start(&a->trials, names, a->seconds, &n, err));
	while (!frag_trials_ended(&a->trials, n, &status, &late)) {
		if ((a->interrupted |= frag_launch_interrupted()))
			return 0;
		usleep(5000);
	}
	take_run(a, n, status, late, t);
	return 0;
}

struct running {
	unsigned n; /* number of the run */
	struct frag_advice *x;
};

/* Takes what has ended. One that failed beside another, perhaps for a file that both write, runs again alone. */
static void take_ended(struct frag_advising *a, struct running *runs, size_t *on, bool *again)
{
	for (size_t i = 0; i < *on;) {
		struct frag_advice *x = runs[i].x;
		struct frag_trial t;
		int status;
		bool late;

		if (!frag_trials_ended(&a->trials, runs[i].n, &status, &late)) {
			i++;
			continue;
		}
		take_run(a, runs[i].n, status, late, &t);
		again[x - a->list] = !t.done && !late && a->workers > 1;
		fill(a, x, &t);
		runs[i] = runs[--*on];
		if (a->progress)
			a->progress(a->ctx, a, x);
	}
}

static int try_again(struct frag_advising *a, const bool *again, struct frag_err *err)
{
	for (size_t i = 0; i < a->count && !a->interrupted; i++) {
		struct frag_trial t;

		if (!again[i])
			continue;
		FRAG_TRY(run_alone(a, a->list[i].change, &t, err));
		if (a->interrupted)
			return 0;
		if (t.done)
			a->list[i].left_out[0] = '\0';
		fill(a, &a->list[i], &t);
	}
	return 0;
}

/* All of the list, some at a time. */
static int try_all(struct frag_advising *a, struct frag_err *err)
{
	struct running runs[8];
	size_t next = 0, on = 0;
	FRAG_AUTO_FREE bool *again = NULL;

	FRAG_TRY_CALLOC(again, a->count + 1, "advice", err);
	for (;;) {
		while (next < a->count && on < a->workers) {
			struct frag_advice *x = &a->list[next++];

			if (*x->left_out)
				continue;
			runs[on].x = x;
			FRAG_TRY(frag_trials_start(&a->trials, x->change, a->seconds, &runs[on].n,
						   err));
			on++;
		}
		if (!on || (a->interrupted |= frag_launch_interrupted()))
			break;
		take_ended(a, runs, &on, again);
		usleep(5000);
	}
	return try_again(a, again, err);
}

/* ---- as many parts as are needed --------------------------------------------------------------- */

static bool fits(const struct frag_advising *a, const struct frag_advice_peaks *p)
{
	return frag_advice_need(p) <= frag_advising_room(a, true);
}

/* The row of change i with another number. */
static int add_numbered(struct frag_advising *a, size_t i, unsigned n, const struct frag_trial *t,
			struct frag_err *err)
{
	const struct frag_advice *from = &a->list[i];
	struct frag_advice *x = &a->list[a->count];

	a->offers[a->count].group = clean_copy(a->offers[i].group);
	*x = (struct frag_advice){ .change = numbered(from->change, n),
				   .what = sentence(a->offers[i].pattern, n),
				   .where = clean_copy(from->where),
				   .numerics = clean_copy(from->numerics),
				   .left_out = clean_copy(""),
				   .untimed = from->untimed,
				   .before = from->before };
	if (!a->offers[a->count++].group || !x->change || !x->what || !x->where || !x->numerics ||
	    !x->left_out)
		return frag_fail_nomem(err, "advice");
	fill(a, x, t);
	if (a->progress)
		a->progress(a->ctx, a, x);
	return 0;
}

/* The least number with which it fits, by doubling, then by bisection; with none, the largest. */
static int find_number(struct frag_advising *a, size_t i, struct frag_err *err)
{
	struct frag_trial t, best = { 0 };
	unsigned low = 2, high = 0, n, found = 0;

	while (high ? high - low > 1 : low < a->offers[i].most) {
		FRAG_AUTO_FREE char *name = NULL;

		n = high ? low + (high - low) / 2 : FRAG_MIN(2 * low, a->offers[i].most);
		name = numbered(a->list[i].change, n);
		FRAG_CHECK_ALLOC(name, "advice", err);
		FRAG_TRY(run_alone(a, name, &t, err));
		if (a->interrupted)
			return 0;
		if (t.done && fits(a, &t.peaks))
			high = n;
		else
			low = n;
		if (t.done && (high == n || !high)) {
			best = t;
			found = n;
		}
	}
	return found ? add_numbered(a, i, found, &best, err) : 0;
}

static int find_numbers(struct frag_advising *a, struct frag_err *err)
{
	const size_t n = a->count;

	if (!a->named || fits(a, &a->first.peaks))
		return 0;
	for (size_t i = 0; i < n && !a->interrupted; i++)
		if (a->offers[i].most > 2 && a->list[i].tried && !fits(a, &a->list[i].after))
			FRAG_TRY(find_number(a, i, err));
	return 0;
}

/* ---- what needs no run ----------------------------------------------------------------------- */

static int add_one(struct frag_advising *a, struct frag_advice *x, struct frag_err *err)
{
	struct frag_offer *o = &a->offers[a->count];

	a->list[a->count] = *x;
	*x = (struct frag_advice){ 0 };
	x = &a->list[a->count++];
	x->change = frag_host_strdup(x->change);
	o->group = frag_host_strdup("allocator");
	return x->change && o->group ? 0 : frag_fail_nomem(err, "advice");
}

/* Settings and another allocator: the recording of the program as it is, replayed. What cannot be replayed is left out. */
static int add_replayed(struct frag_advising *a, struct frag_err *err)
{
	FRAG_AUTO(frag_recording_release) struct frag_recording r = { 0 };
	struct frag_trace *base = a->base;
	struct frag_advice *list = NULL;
	unsigned number;
	bool settings = is_asked(a->only, "settings", &number);
	size_t n = 0;
	int rc;

	if (!settings && !is_asked(a->only, "vmm", &number))
		return 0;
	a->base = NULL;
	rc = frag_recording_take(&r, base, &a->program.target, 0, err)
		     ?: frag_advise_settings(&r, &list, &n, err);
	if (rc && rc != FRAG_EINTR && rc != FRAG_ENOMEM) {
		struct frag_advice x = { .change = settings ? "settings" : "vmm",
					 .what = clean_copy(""),
					 .where = clean_copy(""),
					 .numerics = clean_copy(""),
					 .left_out = clean_copy(err->msg),
					 .before = a->first.peaks };

		return add_one(a, &x, err);
	}
	for (size_t i = 0; !rc && i < n && i < REPLAYED_MAX; i++)
		if (is_asked(a->only, list[i].change, &number))
			rc = add_one(a, &list[i], err);
	frag_advices_release(list, n);
	return rc;
}

/* ---- together ------------------------------------------------------------------------------ */

static uint64_t saving(const struct frag_advice *x)
{
	return x->tried || x->replayed ? frag_advice_above(frag_advice_need(&x->before),
							   frag_advice_need(&x->after))
				       : 0;
}

static int by_saving(const void *p, const void *q)
{
	const struct frag_advice *x = p, *y = q;

	return FRAG_ORDER(y->tried || y->replayed, x->tried || x->replayed) ?: FRAG_ORDER(saving(y), saving(x)) ?: strcmp(x->change, y->change);
}

static const char *group_of(const struct frag_advising *a, const struct frag_advice *x)
{
	return a->offers[x - a->list].group;
}

static bool excluded(const struct frag_advising *a, const struct frag_advice *x)
{
	for (size_t i = 0; i < a->members_count; i++)
		if (*group_of(a, x) && !strcmp(group_of(a, x), group_of(a, a->members[i])))
			return true;
	return false;
}

/* Runs the members and x together; x may be NULL. */
static int run_together(struct frag_advising *a, const struct frag_advice *x, struct frag_trial *t,
			struct frag_err *err)
{
	char names[600];
	size_t len = 0;

	for (size_t i = 0; i < a->members_count; i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? "+" : "",
					a->members[i]->change);
	if (x)
		snprintf(names + len, sizeof(names) - len, "+%s", x->change);
	return run_alone(a, names, t, err);
}

/* The single change that is enough: one that leaves the numbers as they are first, then the one that costs least time. */
static const struct frag_advice *enough_alone(const struct frag_advising *a)
{
	const struct frag_advice *best = NULL;

	for (const struct frag_advice *x = a->list; x < a->list + a->count; x++) {
		if (!x->tried || !fits(a, &x->after))
			continue;
		if (!best || !*x->numerics > !*best->numerics ||
		    (!*x->numerics == !*best->numerics && x->cost.seconds < best->cost.seconds))
			best = x;
	}
	return best;
}

static struct frag_trial as_tried(const struct frag_advice *x)
{
	return (struct frag_trial){ .done = true, .peaks = x->after, .curve = x->curve };
}

/* Does it at most double the time, if that is known? */
static bool is_cheap(const struct frag_advising *a, const struct frag_advice *x)
{
	return !a->first.span_ns || x->cost.seconds * 1e9 <= (double)a->first.span_ns;
}

/* Adds the changes of one kind, the largest saving first, while it is not enough and each saves another 1 %. */
static int add_members(struct frag_advising *a, bool numerics, bool cheap, unsigned *runs,
		       struct frag_err *err)
{
	for (size_t i = 0; i < a->count && *runs < TOGETHER_MAX && !a->fits; i++) {
		const struct frag_advice *x = &a->list[i];
		uint64_t before =
			frag_advice_need(a->members_count ? &a->best.peaks : &a->first.peaks);
		struct frag_trial t = { 0 };

		if (!x->tried || saving(x) * 100 < frag_advice_need(&x->before) ||
		    (*x->numerics != '\0') != numerics || is_cheap(a, x) != cheap ||
		    excluded(a, x) || a->members_count == FRAG_ARRAY_LEN(a->members))
			continue;
		if (a->members_count) {
			FRAG_TRY(run_together(a, x, &t, err));
			++*runs;
		} else {
			t = as_tried(x);
		}
		if (a->interrupted)
			return 0;
		if (!t.done || frag_advice_need(&t.peaks) + before / 100 > before)
			continue;
		a->members[a->members_count++] = x;
		a->best = t;
		a->fits = fits(a, &t.peaks) && a->named;
	}
	return 0;
}

static int combine(struct frag_advising *a, struct frag_err *err)
{
	const struct frag_advice *alone = a->named ? enough_alone(a) : NULL;
	unsigned runs = 0;

	if (a->named && fits(a, &a->first.peaks)) {
		a->fits = true;
		return 0;
	}
	if (alone && !*alone->numerics) {
		a->members[a->members_count++] = alone;
		a->best = as_tried(alone);
		a->fits = true;
		return 0;
	}
	/* with a card until it fits: then each does nothing; without one, of the first kind that there is */
	for (unsigned kind = 0; kind < 4; kind++)
		if (a->named || !a->members_count)
			FRAG_TRY(add_members(a, kind & 2, !(kind & 1), &runs, err));
	return 0;
}

/* Runs what was found on the card that is meant, if all runs had a larger one: then the program adapts to it and frees what it must. */
static int complete(struct frag_advising *a, struct frag_err *err)
{
	const char *const conf = "PYTORCH_CUDA_ALLOC_CONF", *before = getenv(conf);
	FRAG_AUTO_FREE char *kept = before ? frag_host_strdup(before) : NULL;
	const struct frag_launch launch = a->trials.launch;
	const int ask = a->trials.ask;
	struct frag_trial t = { 0 };
	int rc;

	if (!a->enlarged || !a->fits || !a->members_count || a->interrupted) {
		a->completed = a->fits && !a->enlarged;
		return 0;
	}
	a->trials.launch = frag_program_launch(&a->real);
	a->trials.ask = -1;
	if (a->best.peaks.expandable < a->best.peaks.reserved)
		setenv(conf, "expandable_segments:True", 1);
	rc = run_together(a, NULL, &t, err);
	if (kept)
		setenv(conf, kept, 1);
	else
		unsetenv(conf);
	a->trials.launch = launch;
	a->trials.ask = ask;
	a->completed = !rc && t.done;
	if (!rc && !t.done && !a->interrupted) {
		snprintf(a->why, sizeof(a->why), "%.250s",
			 t.why + (strncmp(t.why, UNTRIED, strlen(UNTRIED)) ? 0 : strlen(UNTRIED)));
		a->fits = false;
	}
	return rc;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int begin(struct frag_advising *a, struct frag_err *err)
{
	struct frag_program *p = &a->program;
	bool oom = false;
	int rc;

	a->trials = (struct frag_trials){ .launch = frag_program_launch(p),
					  .pretend = a->pretend,
					  .program = p->words,
					  .seconds = a->seconds };
	a->trials.launch.stdout_to_stderr = true;
	FRAG_TRY(frag_trials_begin(&a->trials, err));
	rc = collect(a, 0, a->trials.status, &a->first, &oom, err);
	if (rc == FRAG_EINPUT && a->trials.status)
		frag_err_prefix(err, "the program ended with status %d", a->trials.status);
	FRAG_TRY(rc);
	if (!oom || !a->first.status || a->enlarged)
		return a->first.status ? frag_fail(err, FRAG_EINPUT,
						   "the program ended with status %d, and not for "
						   "want of memory",
						   a->first.status)
				       : 0;
	frag_launch_note(&a->trials.launch, "runs out of memory on this card as it is; recorded "
					    "with enough of it");
	frag_trials_end(&a->trials);
	a->enlarged = true;
	p->target.card.total_bytes = LARGE;
	p->target.limit = (struct frag_limit){ 0 };
	return begin(a, err);
}

static void sort(struct frag_advising *a)
{
	/* offers belong to rows: keep them beside while rows move */
	for (size_t i = 1; i < a->count; i++)
		for (size_t k = i; k && by_saving(&a->list[k - 1], &a->list[k]) > 0; k--) {
			struct frag_advice x = a->list[k];
			struct frag_offer offer = a->offers[k];

			a->list[k] = a->list[k - 1];
			a->offers[k] = a->offers[k - 1];
			a->list[k - 1] = x;
			a->offers[k - 1] = offer;
		}
}

int frag_advise_try(struct frag_advising *a, struct frag_err *err)
{
	const uint64_t begun = frag_clock_ns();

	a->real = a->program;
	FRAG_TRY(begin(a, err));
	if (!a->seconds)
		a->seconds = (unsigned)(60 + 10 * a->trials.took_ns / 1000000000);
	FRAG_TRY(read_offers(a, err));
	FRAG_TRY(try_all(a, err));
	FRAG_TRY(find_numbers(a, err));
	if (!a->interrupted)
		FRAG_TRY(add_replayed(a, err));
	sort(a);
	if (!a->interrupted)
		FRAG_TRY(combine(a, err));
	FRAG_TRY(complete(a, err));
	a->took_ns = frag_clock_ns() - begun;
	return 0;
}

int frag_advise_recording(struct frag_advising *a, const struct frag_recording *r,
			  struct frag_err *err)
{
	const uint64_t begun = frag_clock_ns();

	snprintf(a->name, sizeof(a->name), "%s", r->trace->name);
	FRAG_TRY(measure(a, r->trace, &a->first, err));
	FRAG_TRY(frag_advise_edits(r, &a->list, &a->count, err));
	a->took_ns = frag_clock_ns() - begun;
	return 0;
}

void frag_advising_release(struct frag_advising *a)
{
	frag_trials_end(&a->trials);
	frag_trace_destroy(a->base);
	for (size_t i = 0; a->offers && i < a->count; i++)
		FRAG_FREE((char *)(uintptr_t)a->list[i].change, a->offers[i].group,
			  a->offers[i].pattern);
	frag_advices_release(a->list, a->count);
	frag_host_free(a->offers);
	frag_catalog_release(&a->catalog);
}
