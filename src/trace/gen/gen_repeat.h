/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long trace made of a recorded one, by doing a stretch of it again and again: the beginning
 * as it was, the window `times` times, and the end as it was. Once is the recorded trace.
 *
 * Glossary. window: events [from, to) of a device. begun: blocks that live (or wait for a
 * stream) where the window begins and that it ends or changes; left: those that it leaves
 * behind instead. Where the window comes again, what one round has left goes on as what
 * the next one finds: blocks of the same size, pool, stream and state take each other's place
 * (carried). What is left and finds no place is freed between the rounds (rest); what is
 * looked for and not there is not freed again (void). So every round ends as the first did.
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
	uint32_t steps;	    /* of the recording; 0 = it has no marks of steps */
};

/*
 * Chooses the window of a device and sees what is carried. first, last: whole steps, from 1;
 * 0 = choose: all steps but the first (which warms up), or without steps the longest
 * stretch between two moments with the same blocks live.
 * Errors: FRAG_EUSAGE for steps that are not there, FRAG_ENOMEM.
 */
int frag_window_init(struct frag_window_of_dev *w, const struct frag_trace_dev *dev, uint32_t first,
		     uint32_t last, struct frag_err *err);
void frag_window_release(struct frag_window_of_dev *w);

struct frag_repeat_options {
	uint64_t times;	      /* 0: as often as `events` wants */
	uint64_t events;      /* of all devices, at least */
	uint32_t first, last; /* steps, see frag_window_init */
};

struct frag_repeat {
	const struct frag_trace *trace; /* borrowed */
	struct frag_trace head;		/* of what will come: exact counts, no evidence */
	struct frag_window_of_dev *windows;
	uint64_t times, period_us, events;
};

/* Plans it: r->head can then be written. Borrows the trace until release.
 * Errors: FRAG_EUSAGE where it cannot be done, FRAG_ENOMEM. */
int frag_repeat_init(struct frag_repeat *r, const struct frag_trace *trace,
		     const struct frag_repeat_options *opt, struct frag_err *err);
void frag_repeat_release(struct frag_repeat *r);

/* Takes events in order, device by device; what it returns, if not 0, ends the run. */
typedef int (*frag_event_sink_fn)(void *ctx, const struct frag_event *events, size_t count,
				  struct frag_err *err);
/* Makes the events, with the memory of one round's blocks. */
int frag_repeat_run(const struct frag_repeat *r, frag_event_sink_fn sink, void *ctx,
		    struct frag_err *err);

#endif
