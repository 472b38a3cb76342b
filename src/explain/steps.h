/* SPDX-License-Identifier: Apache-2.0 */
/* Where the steps of a recording end; see history.h for the words. */
#ifndef FRAG_EXPLAIN_STEPS_H
#define FRAG_EXPLAIN_STEPS_H

#include "trace/events.h"

#define FRAG_STEPS_MAX 4096u

enum frag_steps_from { FRAG_STEPS_NONE, FRAG_STEPS_MARKS, FRAG_STEPS_PERIOD, FRAG_STEPS_WINDOWS };

struct frag_step_ends {
	enum frag_steps_from from;
	uint64_t *list; /* [count] events, ascending: a step ends before this one */
	size_t count;
	uint32_t stride;
	uint64_t allocs, last_alloc;
};
/* list is the caller's. Errors: FRAG_ENOMEM, those of the events. */
int frag_step_ends_find(const struct frag_events *ev, struct frag_step_ends *out,
			struct frag_err *err);

#endif
