/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of step plans: the trained steps, and the part that repeats. */
#ifndef FRAG_PLAN_STEP_PLAN_H
#define FRAG_PLAN_STEP_PLAN_H

#include <frag/plan.h>

#define STEP_UNIT 512u /* sizes and offsets are multiples of this */

struct step_maker {
	struct frag_buffers b; /* all allocations of the device */
	uint32_t *cut;	       /* [steps]: requests before the mark; later including the skip */
	uint32_t *marks;       /* [steps]: marks up to and including this step */
	uint32_t steps, trained, period;
	bool windows; /* steps are not marked: windows of requests or of time */
	uint64_t *scratch;
};

/* Events at the beginning and end of the period, and at the end of the trained steps. */
struct step_window {
	uint32_t first, end; /* requests */
	uint64_t begins, ends, seen;
};
struct step_window step_window_of(const struct step_maker *m);
/* Does a lifetime that crosses the end reach its own beginning again? */
bool step_is_too_long(const struct step_window *w, const struct frag_buffer *x);

/* Fills out->bytes, offsets, requests_count, height and bound; checks the placement. */
int step_place(const struct step_maker *m, uint64_t budget_ns, const struct frag_watch *watch,
	       struct frag_step_plan *out, struct frag_err *err);

#endif
