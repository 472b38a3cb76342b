/* SPDX-License-Identifier: Apache-2.0 */
/* What settling found of recordings, and what a policy counted for itself, for the answers of all
 * commands that show it. */
#ifndef FRAG_RECORDING_SETTLED_SHAPE_H
#define FRAG_RECORDING_SETTLED_SHAPE_H

#include <frag/metrics.h>

#include "answer/answer.h"
#include "recording.h"

/* The field "recording" of an object: FRAG_FIELD(OBJECT, …, .of = &frag_settled_shape). */
extern const struct frag_shape frag_settled_shape;
/* Its row; NULL if there was nothing to compare with, or memory is short (a->failed). */
const void *frag_settled_row(struct frag_answer *a, const struct frag_settled *s);

/* A trace and its "recording", for a LIST of all units. */
extern const struct frag_shape frag_recorded_unit_shape;
struct frag_rows frag_recorded_unit_rows(struct frag_answer *a, const struct frag_recordings *all);
/* First and last release of PyTorch, for TEXTS; none where the last is 0. */
struct frag_rows frag_release_rows(struct frag_answer *a, unsigned first, unsigned last);
/* The labels of all units, for TEXTS. */
struct frag_rows frag_unit_labels(struct frag_answer *a, const struct frag_recordings *all);

/* "# cufrag 0.2.0 fit: gnn.default, leak.frames" */
void frag_recordings_head(struct frag_answer *a, const char *command,
			  const struct frag_recordings *all);
/* A warning for each unit that ended out of memory (ending.h). */
void frag_recordings_warn(struct frag_answer *a, const struct frag_recordings *all);
/* A remark for each unit that had a limit or does not replay identically. what: added where the
 * recording's limit applies. */
void frag_recordings_remark(struct frag_answer *a, const struct frag_recordings *all,
			    const struct frag_target *t, const char *what);

/* What to say where the recorded settings, replayed, reserve something else: nothing is saved of a
 * peak that the replay does not have. Text of `a`. */
const char *frag_not_reproduced_text(struct frag_answer *a, uint64_t recorded_bytes,
				     uint64_t replayed_bytes);

/* The field "counters" of an object: FRAG_FIELD(MAP, …, .of = &frag_counter_shape). */
extern const struct frag_shape frag_counter_shape;
/* Its rows, copied. counters: up to the one without a name; NULL = none. Sets a->failed. */
struct frag_rows frag_counter_rows(struct frag_answer *a, const struct frag_counter *counters);

#endif
