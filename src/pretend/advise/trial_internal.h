/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of trial.c: one run measured, and what the program offers (trial_measure.c); runs with changes (trial_runs.c).
 */
#ifndef FRAG_ADVISE_TRIAL_INTERNAL_H
#define FRAG_ADVISE_TRIAL_INTERNAL_H

#include "trial.h"

#define FRAG_TRIAL_LARGE (1ull << 40) /* more than any card has */
#define FRAG_TRIAL_REPLAYED 4u	      /* replayed changes, at most */
#define FRAG_TRIAL_UNTRIED "could not be tried: "

/* Path of a file or folder of run n. */
void frag_trials_path(const struct frag_advising *a, unsigned n, const char *name, char *path,
		      size_t room);
/* Makes the folder of a new run; path[4096]. */
int frag_trials_folder(struct frag_advising *a, unsigned *n, char *path, struct frag_err *err);

int frag_trial_measure(const struct frag_advising *a, const struct frag_trace *trace,
		       struct frag_trial *t, struct frag_err *err);
/* Reads the recording of run n. *out_of_memory: a request was refused. Errors: there is none. */
int frag_trial_collect(struct frag_advising *a, unsigned n, int status, struct frag_trial *t,
		       bool *out_of_memory, struct frag_err *err);

/* Is the name in the list (NULL: all)? *number: of "name=number", or 0. */
bool frag_offer_asked(const char *only, const char *name, unsigned *number);
void frag_offer_number(struct frag_advising *a, struct frag_advice *x, const char *name,
		       unsigned n);
int frag_trial_offers(struct frag_advising *a, struct frag_err *err);

/* Runs the program with these changes, as "checkpoint+fused", and waits for its end. What the run as it is had imported is loaded
 * once, in a server from which these are forked. */
int frag_trial_alone(struct frag_advising *a, const char *names, struct frag_trial *t,
		     struct frag_err *err);
/* Runs the program with each change of the list, several at a time. */
int frag_trial_each(struct frag_advising *a, struct frag_err *err);
/* Finds the smallest number of each numbered change with which the program fits. */
int frag_trial_numbers(struct frag_advising *a, struct frag_err *err);

static inline bool frag_trial_fits(const struct frag_advising *a, const struct frag_advice_peaks *p)
{
	return frag_advice_need(p) <= frag_advising_room(a, true);
}

#endif
