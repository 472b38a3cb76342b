/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lifetimes of the blocks of a recording, and the phase in which each begins: forward, backward
 * or optimizer step. A recording has only the request and the free of a block; its uses are
 * inferred from these.
 *
 * Phases. optimizer: between the marks of an optimizer step, or below torch/optim. backward:
 * requested by the autograd engine, whose threads have no Python stack of the program (they begin
 * in torch/autograd, torch/utils/checkpoint.py, or have none). forward: the rest. Without stacks,
 * the time between two optimizer steps is forward up to its peak.
 *
 * A block is saved if it is requested in a forward phase and freed in the backward phase that
 * follows. `back`: the beginning of the backward work that frees it, which is the first request
 * after another saved block was freed. The block must be in memory from there.
 *
 * Ownership: a story borrows the recording and owns its arrays. 56 bytes per request.
 */
#ifndef FRAG_ADVISE_LIVES_H
#define FRAG_ADVISE_LIVES_H

#include "recording/recording.h"
#include "recording/sites.h"

#define FRAG_NEVER UINT64_MAX

enum frag_phase { FRAG_PHASE_FORWARD, FRAG_PHASE_BACKWARD, FRAG_PHASE_OPTIMIZER };

struct frag_life {
	uint64_t born, died; /* events; FRAG_NEVER */
	uint64_t bytes;
	uint64_t back; /* of a saved block, else FRAG_NEVER; number of events: never reached */
	uint32_t stack, span;
};

/* Events [first, end) of one phase. */
struct frag_span {
	uint64_t first, end;
	uint32_t allocs, round; /* round: a forward phase and the backward phase that follows */
	uint8_t phase;
};

struct frag_story {
	const struct frag_unit *unit;
	const struct frag_trace *trace;
	const struct frag_trace_dev *dev;
	struct frag_life *lives; /* [count], by `born` */
	size_t count;
	struct frag_span *spans; /* they cover all events */
	size_t spans_count, spans_cap;
	uint8_t *phases; /* [stacks_count], of requests outside optimizer steps */
	bool stacks;	 /* the recording has them */
	bool may_train;	 /* it ended before any backward pass; one is assumed to follow */
	struct frag_sites sites;
	uint64_t peak_bytes, peak_event; /* requested */
	size_t steps;			 /* spans of optimizer steps */
};

/* pre: the events are in memory. Errors: FRAG_ENOMEM, FRAG_EINPUT. */
int frag_story_make(struct frag_story *s, const struct frag_unit *unit, struct frag_err *err);
void frag_story_release(struct frag_story *s);

/* The first life that is born at or after `event`; count if none. */
size_t frag_story_born(const struct frag_story *s, uint64_t event);
/* The event at which a block can be freed if only the next operation reads it: before the second
 * later saved block of a similar size, at `end` at the latest. */
uint64_t frag_life_consumed(const struct frag_story *s, size_t life, uint64_t end);
static inline const struct frag_span *frag_life_span(const struct frag_story *s,
						     const struct frag_life *l)
{
	return &s->spans[l->span];
}
/* Does a frame of this stack contain `file` in its path and `name` in its function? NULL: any. */
bool frag_stack_has(const struct frag_trace *t, uint32_t stack, const char *file, const char *name);

#endif
