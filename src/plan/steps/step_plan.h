/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the plans of steps: what is looked at, and which part of it repeats. */
#ifndef FRAG_PLAN_STEP_PLAN_H
#define FRAG_PLAN_STEP_PLAN_H

#include <frag/plan.h>

#define STEP_UNIT 512u /* sizes and offsets are multiples of it */

struct step_maker {
	struct frag_buffers b; /* all allocations of the device */
	uint32_t *cut;	       /* [steps]: requests before the mark, later with the skip */
	uint32_t *marks;       /* [steps]: calls of mark up to and with it */
	uint32_t steps, trained, period;
	bool windows; /* steps are not marked: windows of requests or of time */
	uint64_t *scratch;
};

/* Events of the beginning and the end of the period, and of the end of what was looked at. */
struct step_window {
	uint32_t first, end; /* requests */
	uint64_t begins, ends, seen;
};
struct step_window step_window_of(const struct step_maker *m);
/* Does a life that crosses the end reach its own beginning again? */
bool step_is_too_long(const struct step_window *w, const struct frag_buffer *x);

/* Fills out->bytes, offsets, requests_count, height, bound; checked. */
int step_place(const struct step_maker *m, uint64_t budget_ns, const struct frag_watch *watch,
	       struct frag_step_plan *out, struct frag_err *err);

#endif
