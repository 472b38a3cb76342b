/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best settings for recordings: each with its own limit, only settings that every release of
 * PyTorch knows that may have made them, compared with the settings that they were recorded with.
 *
 *	struct frag_tuning t = { .target = &target, .options = { … } };
 *	frag_recordings_open(&t.units, …);
 *	frag_tuning_search(&t, threads, err) ?: frag_tuning_answer(&t, top, &answer, err);
 */
#ifndef FRAG_PLAN_TUNE_RECORDINGS_H
#define FRAG_PLAN_TUNE_RECORDINGS_H

#include <frag/plan.h>

#include "answer/answer.h"
#include "recording/recording.h"

struct frag_tuning {
	const struct frag_target *target;
	struct frag_recordings units;
	/* spaces, objective, baseline ("recorded" or NULL: theirs if all agree, else pytorch) and
	 * budget (0: the default) are the caller's; search fills in the others */
	struct frag_tune_options options;
	uint64_t cap_bytes;		      /* most that may be reserved; 0 = the card */
	unsigned first_release, last_release; /* of PyTorch, 0 = not known */
	struct frag_tune found;
	/* of the worst; 0 = not known, or something else is compared than what was recorded */
	uint64_t recorded_peak_bytes;
};

/* Errors: those of the search; an interruption is none. */
int frag_tuning_search(struct frag_tuning *t, unsigned threads, struct frag_err *err);
/* Does the baseline reserve what was recorded? Else there is no saving to tell. */
bool frag_tuning_reproduces(const struct frag_tuning *t);
void frag_tuning_release(struct frag_tuning *t);

extern const struct frag_shape frag_tune_shape;
/* top: settings to show. */
int frag_tuning_answer(const struct frag_tuning *t, size_t top, struct frag_answer *a,
		       struct frag_err *err);

#endif
