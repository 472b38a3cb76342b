/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures what changes save: runs a program unchanged, then with each change that it offers
 * (src/pretend/python/cufrag_changes), then with the best of them together.
 *
 *	struct frag_advising a = { .program = program, … };
 *	frag_catalog_init(…) ?: frag_advise_try(&a, err) ?: frag_advise_answer(&a, &answer, err);
 *	frag_advising_release(&a);
 *
 * A change must not alter the training: the number of optimizer steps and of updated weights stays.
 * Otherwise it is left out, with the reason.
 */
#ifndef FRAG_ADVISE_TRIAL_H
#define FRAG_ADVISE_TRIAL_H

#include "pretend/advise/change_advice.h"
#include "answer/answer.h"
#include "pretend/start/start.h"
#include "recording/recording.h"

/* One run. */
struct frag_trial {
	bool done; /* it completed, with the same steps and updates */
	int status;
	char why[300];			/* else */
	struct frag_advice_peaks peaks; /* of the device with the highest peak */
	uint64_t steps, updated, moved, calls, span_ns;
	struct frag_curve curve; /* of that device, in its better setting */
};

/* Runs of the program: as it is, then with changes in its process, in a folder each. */
struct frag_trials {
	struct frag_launch launch;
	char folder[3000]; /* "": none */
	unsigned count;
	pid_t server;	  /* from which runs are forked (start/child.h); 0 = none */
	int status;	  /* of the run as it is, */
	uint64_t took_ns; /* and its time */
};

struct frag_advising {
	struct frag_program program;
	const struct frag_pretend *pretend;
	struct frag_answer *texts; /* owns those of the list */
	struct frag_catalog catalog;
	struct frag_headroom headroom;
	struct frag_gpu card; /* the given card, or the pretended one */
	bool named;
	const char *only; /* names of changes with commas; NULL: all */
	unsigned seconds, workers;
	/* after each change that was tried, or could not be */
	void (*progress)(void *ctx, const struct frag_advising *a, const struct frag_advice *x);
	void *ctx;
	/* made */
	struct frag_trials trials;
	struct frag_trial first;
	struct frag_trace *base;  /* of the program as it is */
	struct frag_program real; /* on the given card */
	bool enlarged; /* the unchanged program runs out of memory, so it is recorded with enough */
	bool interrupted;
	bool edited;		      /* a recording was edited; else a program ran */
	char name[200];		      /* of the edited recording, */
	struct frag_advice unchanged; /* and what is known of it (edit.h) */
	struct frag_advice *list;     /* largest saving first, untried changes last */
	size_t count, tried;
	/* the best together */
	const struct frag_advice *members[8];
	size_t members_count;
	struct frag_trial best;
	bool fits;
	bool completed; /* it completed on a card of that size */
	char why[300];	/* why it did not complete, although its peak fits */
	uint64_t took_ns;
};

/* Bytes of the card that the program may use; headroom: less the margin. */
static inline uint64_t frag_advising_room(const struct frag_advising *a, bool headroom)
{
	static const struct frag_headroom none;

	return frag_gpu_room(&a->card, headroom ? &a->headroom : &none);
}

/* Estimates from a recording (edit.h). */
int frag_advise_recording(struct frag_advising *a, const struct frag_recording *r,
			  struct frag_err *err);
/* Errors: the program cannot be recorded. After an interruption the partial result is valid. */
int frag_advise_try(struct frag_advising *a, struct frag_err *err);
void frag_advising_release(struct frag_advising *a);
/* None of the tried changes helps, and others could not be tried: why the last could not, or NULL. */
const char *frag_advising_unknown(const struct frag_advising *a, size_t *untried);

extern const struct frag_shape frag_advise_shape;
int frag_advise_answer(const struct frag_advising *v, struct frag_answer *a, struct frag_err *err);

/* ---- parts: one run measured, what the program offers (trial_measure.c); trial_runs.c ---- */

#define FRAG_TRIAL_LARGE (1ull << 40) /* more than any card has */
#define FRAG_TRIAL_REPLAYED 4u	      /* replayed changes, at most */
#define FRAG_TRIAL_UNTRIED "could not be tried: "

/* Path of a file or folder of run n. */
void frag_trials_path(const struct frag_advising *a, unsigned n, const char *name, char *path,
		      size_t room);
/* Makes the folder of a new run; path[4096]. */
int frag_trials_folder(struct frag_advising *a, unsigned *n, char *path, struct frag_err *err);

/* Reads the recording of run n. *out_of_memory: a request was refused. Errors: there is none. */
int frag_trial_collect(struct frag_advising *a, unsigned n, int status, struct frag_trial *t,
		       bool *out_of_memory, struct frag_err *err);

/* Is the name in the list (NULL: all)? *number: of "name=number", or 0. */
bool frag_offer_asked(const char *only, const char *name, unsigned *number);
void frag_offer_number(struct frag_advising *a, struct frag_advice *x, const char *name,
		       unsigned n);
int frag_trial_offers(struct frag_advising *a, struct frag_err *err);

/* Runs the program with these changes, as "checkpoint+fused", and waits for its end. It is forked
 * from a server that has loaded once what the run as it is imported. */
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
