/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Did a recording end out of memory? Then the need of the program is unknown above what it asked
 * for until then. Answers that rest on it warn, and the command exits with 6.
 */
#ifndef FRAG_RECORDING_ENDING_H
#define FRAG_RECORDING_ENDING_H

#include <frag/trace.h>

#include "answer/answer.h"

/* What the events of one device say so far; begins as zeros. */
struct frag_ending_scan {
	uint64_t live_bytes, peak_bytes, granted_bytes; /* granted: since the last refusal */
	uint64_t events_count, refused_at, refused_live_bytes;
	struct frag_event refused; /* the last; bytes 0 = none */
};
void frag_ending_add(struct frag_ending_scan *s, const struct frag_event *events, size_t count);
/* After the last event, into trace->devs[dev].ending. Errors: FRAG_ENOMEM. */
int frag_ending_set(const struct frag_ending_scan *s, struct frag_trace *trace, uint32_t dev,
		    struct frag_err *err);

/* The field "ended_out_of_memory" of an object, and its row: NULL if it did not end so, or memory
 * is short (a->failed). label: of the device. */
extern const struct frag_shape frag_ending_shape;
const void *frag_ending_row(struct frag_answer *a, const char *label, const struct frag_ending *e);
/* Adds a prominent sentence from such a row; nothing for NULL. */
void frag_ending_warn(struct frag_answer *a, const void *row);

#endif
