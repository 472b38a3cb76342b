/* SPDX-License-Identifier: Apache-2.0 */
/* The best changes together; see trial.h. */
#include "trial_internal.h"

#include <stdlib.h>
#include <string.h>

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
