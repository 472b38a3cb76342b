/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a long trace from a recorded one by repeating a stretch of it: the beginning as recorded,
 * then the window `times` times, then the end as recorded. With times = 1 it is the recorded trace.
 *
 * Glossary. window: events [from, to) of a device. begun: blocks that are live (or wait for a
 * stream) when the window begins, and that it frees or changes. left: blocks that it leaves behind
 * instead. Each round starts from the state that the previous one left: a left block takes the
 * place of a begun block of the same size, pool, stream and state (carried). Left blocks without a
 * counterpart are freed between the rounds (rest); frees of begun blocks without a counterpart are
 * dropped (void). So every round ends in the same state as the first.
 */
#ifndef FRAG_TRACE_GEN_REPEAT_H
#define FRAG_TRACE_GEN_REPEAT_H

#include <frag/trace.h>

struct frag_carry {
	uint32_t left, begun; /* slots of the recording */
};

struct frag_window_of_dev {
	size_t from, to;
	struct frag_carry *carried;
	uint32_t *rest;	 /* slots at the end of the window */
	uint32_t *void_; /* slots at its beginning */
	uint32_t *left;	 /* all slots left, carried and rest */
	size_t carried_count, rest_count, void_count, left_count;
	uint64_t period_us; /* recorded time that the window takes */
	uint32_t steps;	    /* of the recording; 0 = it has no step marks */
};

/*
 * Chooses the window of a device and pairs its blocks. first, last: whole steps, from 1;
 * 0 = choose: all steps but the first (which warms up), or without steps the longest
 * stretch between two moments with the same blocks live.
 * Errors: FRAG_EUSAGE for steps that are not there, FRAG_ENOMEM.
 */
int frag_window_init(struct frag_window_of_dev *w, const struct frag_trace_dev *dev, uint32_t first,
		     uint32_t last, struct frag_err *err);
void frag_window_release(struct frag_window_of_dev *w);

struct frag_repeat_options {
	uint64_t times;	      /* 0: as often as `events` needs */
	uint64_t events;      /* of all devices, at least */
	uint32_t first, last; /* steps, see frag_window_init */
};

struct frag_repeat {
	const struct frag_trace *trace; /* borrowed */
	struct frag_trace head;		/* of the result: exact counts, no evidence */
	struct frag_window_of_dev *windows;
	uint64_t times, period_us, events;
};

/* Plans the repetition, and fills r->head. The trace must stay until release. Errors: FRAG_EUSAGE
 * if it cannot be done, FRAG_ENOMEM. */
int frag_repeat_init(struct frag_repeat *r, const struct frag_trace *trace,
		     const struct frag_repeat_options *opt, struct frag_err *err);
void frag_repeat_release(struct frag_repeat *r);

/* Into a .cft, complete or absent; "-": stdout. Errors: FRAG_EOUTPUT, FRAG_EINTR, FRAG_ENOMEM. */
int frag_repeat_write(const struct frag_repeat *r, const char *path, struct frag_err *err);

#endif
