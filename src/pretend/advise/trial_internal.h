/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of trial.c: one run measured (trial_measure.c), what the program offers (trial_offers.c), runs with changes
 * (trial_runs.c), the best of them together (trial_together.c).
 */
#ifndef FRAG_ADVISE_TRIAL_INTERNAL_H
#define FRAG_ADVISE_TRIAL_INTERNAL_H

#include <jansson.h>

#include "trial.h"

#define FRAG_TRIAL_LARGE (1ull << 40) /* more than any card has */
#define FRAG_TRIAL_REPLAYED 4u	      /* changes that need no run */
#define FRAG_TRIAL_UNTRIED "could not be tried: "

int frag_trial_measure(const struct frag_advising *a, const struct frag_trace *trace,
		       struct frag_trial *t, struct frag_err *err);
/* Of the processes of run n the one that made most steps; new reference, NULL: none wrote anything. */
json_t *frag_trial_facts(const struct frag_advising *a, unsigned n);
uint64_t frag_facts_count(const json_t *facts, const char *key);
/* Reads what run n left. *out_of_memory: a request was refused. Errors: nothing was recorded. */
int frag_trial_collect(struct frag_advising *a, unsigned n, int status, struct frag_trial *t,
		       bool *out_of_memory, struct frag_err *err);

/* A copy without what a terminal would obey. */
char *frag_offer_text(const char *text);
/* Is the name in the list, or is there none? *number: that stands behind it, or 0. */
bool frag_offer_asked(const char *only, const char *name, unsigned *number);
/* "name=4", or its name alone. */
char *frag_offer_name(const char *name, unsigned n);
char *frag_offer_sentence(const char *pattern, unsigned n);
int frag_trial_offers(struct frag_advising *a, struct frag_err *err);

/* One run to its end, alone. */
int frag_trial_alone(struct frag_advising *a, const char *names, struct frag_trial *t,
		     struct frag_err *err);
/* All of the list, some at a time. */
int frag_trial_each(struct frag_advising *a, struct frag_err *err);
/* Of changes with a number, the least with which it fits. */
int frag_trial_numbers(struct frag_advising *a, struct frag_err *err);

static inline bool frag_trial_fits(const struct frag_advising *a, const struct frag_advice_peaks *p)
{
	return frag_advice_need(p) <= frag_advising_room(a, true);
}
/* The largest saving first. */
void frag_trial_sort(struct frag_advising *a);
int frag_trial_combine(struct frag_advising *a, struct frag_err *err);
/* Runs what was found on the card that is meant, if all runs had a larger one: then the program adapts to it and frees what it must. */
int frag_trial_complete(struct frag_advising *a, struct frag_err *err);

#endif
