/* SPDX-License-Identifier: Apache-2.0 */
/* What import, gen and record wrote, as an answer. */
#ifndef FRAG_RECORDING_WRITTEN_H
#define FRAG_RECORDING_WRITTEN_H

#include <frag/trace.h>

#include "answer/answer.h"

/* Of a trace made by gen; 0: not known of its kind. */
struct frag_written_bounds {
	uint64_t live, online, placed; /* bytes; see WRITTEN_ROW */
};

struct frag_written {
	const char *file;		/* "-" = standard output */
	const struct frag_trace *trace; /* that was written, or (rounds) repeated */
	uint64_t events_count;		/* in the file */
	uint64_t rounds_count;		/* of gen; 0 = not repeated */
	const char *round;		/* what is repeated: "whole steps" */
	bool brief;			/* one sentence, without the size */
	struct frag_written_bounds bounds;
};

extern const struct frag_shape frag_written_shape;
/* One sentence, and one for each device with a limit or with a replay that is not identical. */
void frag_written_answer(struct frag_answer *a, const struct frag_written *w);

#endif
