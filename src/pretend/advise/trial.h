/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changes save, tried: a program runs as it is, then with each change that it offers (src/pretend/python/cufrag_changes),
 * and with the best of them together.
 *
 *	struct frag_advising a = { .program = program, … };
 *	frag_catalog_init(&a.catalog, …) ?: frag_advise_try(&a, err) ?: frag_advise_answer(&a, &answer, err);
 *	frag_advising_release(&a);
 *
 * The step must still do what it did: as many steps of the optimizer, as many weights that change. A run that does
 * otherwise is left out, with the reason.
 */
#ifndef FRAG_ADVISE_TRIAL_H
#define FRAG_ADVISE_TRIAL_H

#include "pretend/advise/advice.h"
#include "answer/answer.h"
#include "pretend/start/trials.h"
#include "pretend/start/program.h"
#include "recording/recording.h"

/* One run. */
struct frag_trial {
	bool done; /* it came to its end, and did what the program does */
	int status;
	char why[300];			/* else */
	struct frag_advice_peaks peaks; /* of the device that needs most */
	uint64_t steps, updated, moved, calls, span_ns;
	struct frag_curve curve; /* of that device, in its better setting */
};

/* What the program said of a change, beside its row. */
struct frag_offer {
	char *group;   /* of changes that exclude each other; "": of none */
	char *pattern; /* its sentence, with {n} where its number goes */
	bool compiled; /* it acts within what torch.compile makes of the model */
	unsigned most; /* that the number can be; 0: it has none */
};

struct frag_advising {
	struct frag_program program;
	const struct frag_pretend *pretend;
	struct frag_catalog catalog;
	struct frag_headroom headroom;
	struct frag_gpu card; /* that was named, or the pretended one */
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
	struct frag_program real; /* on the card that is meant */
	bool enlarged; /* the card was too small for the program as it is: recorded with enough memory */
	bool interrupted;
	char name[200];		   /* of the recording that was edited; "": a program ran */
	struct frag_advice *list;  /* largest saving first, then what was not tried */
	struct frag_offer *offers; /* [count] */
	size_t count, tried;
	/* together; none: members_count 0 */
	const struct frag_advice *members[8];
	size_t members_count;
	struct frag_trial best;
	bool fits;
	bool completed; /* it ran to its end on a card of that size */
	char why[300];	/* it did not, though its peak fits */
	uint64_t took_ns;
};

/* Bytes of the card that the program may use; headroom: less the margin. */
static inline uint64_t frag_advising_room(const struct frag_advising *a, bool headroom)
{
	static const struct frag_headroom none;

	return frag_gpu_room(&a->card, headroom ? &a->headroom : &none);
}

/* From a recording alone: its lives are edited and replayed (edit.h). */
int frag_advise_recording(struct frag_advising *a, const struct frag_recording *r,
			  struct frag_err *err);
/* Errors: the program cannot be recorded. An interruption leaves what is known. */
int frag_advise_try(struct frag_advising *a, struct frag_err *err);
void frag_advising_release(struct frag_advising *a);

/* Pages: the program as it is, and with the changes `names`; nothing where a curve is missing. */
void frag_advise_chart(const struct frag_advising *v, const struct frag_trial *after,
		       const char *names, struct frag_answer *a);
extern const struct frag_shape frag_advise_shape;
int frag_advise_answer(const struct frag_advising *v, struct frag_answer *a, struct frag_err *err);

#endif
