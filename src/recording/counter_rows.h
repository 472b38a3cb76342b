/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy counted for itself, for the answers of all commands that show it. */
#ifndef FRAG_RECORDING_COUNTER_ROWS_H
#define FRAG_RECORDING_COUNTER_ROWS_H

#include <frag/metrics.h>

#include "answer/answer.h"

/* The field "counters" of an object: FRAG_FIELD(MAP, …, .of = &frag_counter_shape). */
extern const struct frag_shape frag_counter_shape;
/* Its rows, copied. counters: up to the one without a name; NULL = none. Sets a->failed. */
struct frag_rows frag_counter_rows(struct frag_answer *a, const struct frag_counter *counters);

#endif
