/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a program: with a change each, and with the best of them together. */
#include "trial_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/last_words.h"

#define PCIE_BYTES_PER_SECOND 25e9 /* of pinned memory, PCIe 4.0 x16 */

/* Is the training unchanged? */
static void check(const struct frag_advising *a, struct frag_trial *t, unsigned n, bool late)
{
	char line[250], path[4096];

	if (late)
		snprintf(t->why, sizeof(t->why), "%snot at its end after %u s", FRAG_TRIAL_UNTRIED,
			 a->seconds);
	else if (!t->done) {
		frag_trials_path(a, n, "log", path, sizeof(path));
		frag_last_words(path, line, sizeof(line));
		if (!*line)
			snprintf(line, sizeof(line), "it ended with status %d", t->status);
		snprintf(t->why, sizeof(t->why), FRAG_TRIAL_UNTRIED "%.250s", line);
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
	if (!late && frag_trial_collect(a, n, status, t, &oom, &err))
		t->done = false;
	check(a, t, n, late);
	frag_trials_path(a, n, "", folder, sizeof(folder));
	if (*t->why && getenv(CUFRAG_CHANGES_DEBUG))
		return;
	frag_launch_folder_remove(folder);
}

static void fill(struct frag_advising *a, struct frag_advice *x, const struct frag_trial *t)
{
	const struct frag_gpu *card;

	if (!t->done) {
		frag_advice_leave_out(x, t->why);
		return;
	}
	frag_advice_leave_out(x, "");
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

int frag_trial_alone(struct frag_advising *a, const char *names, struct frag_trial *t,
		     struct frag_err *err)
{
	struct frag_trial_run run;
	int status;
	bool late;

	FRAG_TRY(frag_trials_start(a, names, &run, err));
	while (!frag_trials_ended(&run, &status, &late)) {
		if ((a->interrupted |= frag_launch_interrupted())) {
			frag_trials_stop(&run);
			return 0;
		}
		usleep(5000);
	}
	take_run(a, run.n, status, late, t);
	return 0;
}

/* Takes finished runs. One that failed beside others, perhaps over a file, runs again alone. */
static void take_ended(struct frag_advising *a, struct frag_trial_run *runs, size_t *on,
		       bool *again)
{
	for (size_t i = 0; i < *on;) {
		struct frag_advice *x = runs[i].x;
		struct frag_trial t;
		int status;
		bool late;

		if (!frag_trials_ended(&runs[i], &status, &late)) {
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
		FRAG_TRY(frag_trial_alone(a, a->list[i].change, &t, err));
		if (a->interrupted)
			return 0;
		fill(a, &a->list[i], &t);
	}
	return 0;
}

int frag_trial_each(struct frag_advising *a, struct frag_err *err)
{
	struct frag_trial_run runs[8];
	size_t next = 0, on = 0;
	FRAG_AUTO_FREE bool *again = NULL;

	FRAG_TRY_CALLOC(again, a->count + 1, "advice", err);
	for (;;) {
		while (next < a->count && on < a->workers) {
			struct frag_advice *x = &a->list[next++];

			if (*x->left_out)
				continue;
			runs[on].x = x;
			FRAG_TRY(frag_trials_start(a, x->change, &runs[on], err));
			on++;
		}
		if (!on || (a->interrupted |= frag_launch_interrupted()))
			break;
		take_ended(a, runs, &on, again);
		usleep(5000);
	}
	while (on) /* interrupted */
		frag_trials_stop(&runs[--on]);
	return try_again(a, again, err);
}

/* ---- changes with a number ------------------------------------------------------ */

/* Adds a row for change i with another number. */
static int add_numbered(struct frag_advising *a, size_t i, unsigned n, const struct frag_trial *t,
			struct frag_err *err)
{
	struct frag_advice *x = &a->list[a->count++];
	FRAG_AUTO_FREE char *change = frag_offer_name(a->list[i].change, n),
			    *what = frag_offer_sentence(a->list[i].pattern, n);

	*x = a->list[i];
	x->change = change;
	x->what = what;
	x->most = 0;
	x->tried = false;
	FRAG_TRY(frag_advice_own(x, err));
	fill(a, x, t);
	if (a->progress)
		a->progress(a->ctx, a, x);
	return 0;
}

/* The smallest number with which it fits, by doubling and bisection, or else the largest. */
static int find_number(struct frag_advising *a, size_t i, struct frag_err *err)
{
	struct frag_trial t, best = { 0 };
	unsigned low = 2, high = 0, n, found = 0;

	while (high ? high - low > 1 : low < a->list[i].most) {
		FRAG_AUTO_FREE char *name = NULL;

		n = high ? low + (high - low) / 2 : FRAG_MIN(2 * low, a->list[i].most);
		name = frag_offer_name(a->list[i].change, n);
		FRAG_CHECK_ALLOC(name, "advice", err);
		FRAG_TRY(frag_trial_alone(a, name, &t, err));
		if (a->interrupted)
			return 0;
		if (t.done && frag_trial_fits(a, &t.peaks))
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

int frag_trial_numbers(struct frag_advising *a, struct frag_err *err)
{
	const size_t n = a->count;

	if (!a->named || frag_trial_fits(a, &a->first.peaks))
		return 0;
	for (size_t i = 0; i < n && !a->interrupted; i++)
		if (a->list[i].most > 2 && a->list[i].tried &&
		    !frag_trial_fits(a, &a->list[i].after))
			FRAG_TRY(find_number(a, i, err));
	return 0;
}

/* ---- the best together ------------------------------------------------------------------ */

#define TOGETHER_MAX 6u /* runs that look for the best combination */

static uint64_t saving(const struct frag_advice *x)
{
	return x->tried || x->replayed ? frag_advice_above(frag_advice_need(&x->before),
							   frag_advice_need(&x->after))
				       : 0;
}

FRAG_COMPARE(by_saving, struct frag_advice,
	     FRAG_ORDER(y->tried || y->replayed, x->tried || x->replayed),
	     FRAG_ORDER(saving(y), saving(x)), strcmp(x->change, y->change))

void frag_trial_sort(struct frag_advising *a)
{
	if (a->count)
		qsort(a->list, a->count, sizeof(*a->list), by_saving);
}

static bool excluded(const struct frag_advising *a, const struct frag_advice *x)
{
	for (size_t i = 0; i < a->members_count; i++)
		if (*x->group && !strcmp(x->group, a->members[i]->group))
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
	return frag_trial_alone(a, names, t, err);
}

/* The single change that is enough: without numerical differences first, then the fastest. */
static const struct frag_advice *enough_alone(const struct frag_advising *a)
{
	const struct frag_advice *best = NULL;

	for (const struct frag_advice *x = a->list; x < a->list + a->count; x++) {
		if (!x->tried || !frag_trial_fits(a, &x->after))
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

/* Does it at most double the modelled time, as far as that is known? */
static bool is_cheap(const struct frag_advising *a, const struct frag_advice *x)
{
	return !a->first.span_ns || x->cost.seconds * 1e9 <= (double)a->first.span_ns;
}

/* Adds changes of one kind, the largest saving first, until it fits; each must save another 1 %. */
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
		a->fits = frag_trial_fits(a, &t.peaks) && a->named;
	}
	return 0;
}

int frag_trial_combine(struct frag_advising *a, struct frag_err *err)
{
	const struct frag_advice *alone = a->named ? enough_alone(a) : NULL;
	unsigned runs = 0;

	if (a->named && frag_trial_fits(a, &a->first.peaks)) {
		a->fits = true;
		return 0;
	}
	if (alone && !*alone->numerics) {
		a->members[a->members_count++] = alone;
		a->best = as_tried(alone);
		a->fits = true;
		return 0;
	}
	/* with a card, all kinds until it fits; without one, only the first kind with a change */
	for (unsigned kind = 0; kind < 4; kind++)
		if (a->named || !a->members_count)
			FRAG_TRY(add_members(a, kind & 2, !(kind & 1), &runs, err));
	return 0;
}

int frag_trial_complete(struct frag_advising *a, struct frag_err *err)
{
	const char *const conf = "PYTORCH_CUDA_ALLOC_CONF", *before = getenv(conf);
	FRAG_AUTO_FREE char *kept = before ? frag_host_strdup(before) : NULL;
	const struct frag_launch launch = a->trials.launch;
	struct frag_trial t = { 0 };
	int rc;

	if (!a->enlarged || !a->fits || !a->members_count || a->interrupted) {
		a->completed = a->fits && !a->enlarged;
		return 0;
	}
	a->trials.launch = frag_program_launch(&a->real);
	if (a->best.peaks.expandable < a->best.peaks.reserved)
		setenv(conf, "expandable_segments:True", 1);
	rc = run_together(a, NULL, &t, err);
	if (kept)
		setenv(conf, kept, 1);
	else
		unsetenv(conf);
	a->trials.launch = launch;
	a->completed = !rc && t.done;
	if (!rc && !t.done && !a->interrupted) {
		snprintf(a->why, sizeof(a->why), "%.250s",
			 t.why + (strncmp(t.why, FRAG_TRIAL_UNTRIED, strlen(FRAG_TRIAL_UNTRIED))
					  ? 0
					  : strlen(FRAG_TRIAL_UNTRIED)));
		a->fits = false;
	}
	return rc;
}
