/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program needs at other values of a number: recordings by value, replays of them and of
 * what is scaled from them, and the greatest value that a card takes.
 *
 *	struct frag_prediction p = { .target = &target, .name = "batch" };
 *	for each recording: open p.parts[p.parts_count].recording, set its value, p.parts_count++
 *	frag_prediction_make(&p, &policies, to, to_count, most, err) ?: frag_prediction_answer(&p, &answer, err);
 */
#ifndef FRAG_PLAN_PREDICTION_H
#define FRAG_PLAN_PREDICTION_H

#include <frag/policy.h>

#include "answer/answer.h"
#include "recording/policy_texts.h"
#include "recording/recording.h"
#include "scale.h"

#define FRAG_PREDICTION_VALUES 256u

struct frag_prediction_part { /* one recording */
	uint64_t value;
	struct frag_recording recording;
};

struct frag_prediction_cell { /* one policy at one value; of several devices the largest */
	bool completed;	      /* on a card of 1 TiB */
	bool on_card;	      /* on the target's card, at the larger bound */
	uint64_t peak_requested_bytes, low_bytes, high_bytes; /* low, high: peak reserved */
};

enum frag_prediction_source {
	FRAG_PREDICTION_RECORDED,
	FRAG_PREDICTION_SAME, /* the recordings around it make the same requests, and each size has its law */
	FRAG_PREDICTION_BEYOND, /* all recordings do, but it lies outside of them */
	FRAG_PREDICTION_ESTIMATED,
};

/* Records the program with a value. Errors: those of recording. */
typedef int (*frag_prediction_try_fn)(void *ctx, uint64_t value, bool *completes,
				      struct frag_err *err);

struct frag_prediction {
	const struct frag_target *target;
	const char *name; /* of what varies: "{batch}" or "value" */
	struct frag_prediction_part parts[FRAG_SCALING_PARTS];
	size_t parts_count;
	/* scalings[base * devices + device], made when first needed: count 0 = not yet */
	struct frag_scaling *scalings;
	uint32_t devices;
	struct frag_policy_spec **specs; /* NULL-terminated; of the largest recording */
	size_t specs_count;
	uint64_t values[FRAG_PREDICTION_VALUES]; /* ascending, recorded ones among them */
	size_t values_count;
	struct frag_prediction_cell *cells; /* [values_count][specs_count] */
	/* the last recording as the others predict it, under specs[0]; parts_count > 2 */
	bool checked;
	struct frag_prediction_cell check_predicted, check_recorded;
	/* greatest value by policy, 0 = none; UINT64_MAX = no end was found up to `most` */
	uint64_t *largest_low, *largest_high; /* if unknown sizes grow, if they do not */
	uint64_t most;
	/* found by recording at it and beside it (only specs[0]) */
	bool confirmed;
	uint64_t confirmed_value;
	unsigned confirm_runs;
};

/* Sorts the parts and fills in the rest. to[to_count]: values to predict; none: the largest recorded one, doubled
 * until no policy completes on the card, four times at most, and the greatest value of each policy. Errors: FRAG_EINPUT (the parts do not go together), FRAG_EUSAGE (two have one value). */
int frag_prediction_make(struct frag_prediction *p, const struct frag_policy_texts *policies,
			 const uint64_t *to, size_t to_count, uint64_t most, struct frag_err *err);
/* Finds the greatest value by recordings, mostly two. */
int frag_prediction_confirm(struct frag_prediction *p, frag_prediction_try_fn record, void *ctx,
			    struct frag_err *err);
/* The match behind a value, of one device. */
int frag_prediction_scaling(struct frag_prediction *p, uint64_t value, uint32_t dev,
			    const struct frag_scaling **out, struct frag_err *err);
enum frag_prediction_source frag_prediction_source(struct frag_prediction *p, uint64_t value);
/* The trace at a value, as .cft. */
int frag_prediction_write(struct frag_prediction *p, uint64_t value, const char *path,
			  struct frag_err *err);
void frag_prediction_release(struct frag_prediction *p);

extern const struct frag_shape frag_scale_shape;
/* card: as sentences name it. */
int frag_prediction_answer(struct frag_prediction *p, const char *card, struct frag_answer *a,
			   struct frag_err *err);

#endif
