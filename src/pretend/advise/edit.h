/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates from a recording what a change would save: edits the lifetimes of the blocks as it
 * would, and replays the result. The sentence of each estimate names its assumptions.
 *
 * A change is a file edit_NAME.c with frag_edit_NAME, a list of proposals (below); make lists it.
 */
#ifndef FRAG_ADVISE_EDIT_H
#define FRAG_ADVISE_EDIT_H

#include <frag/plan.h>

#include "change_advice.h"
#include "answer/answer.h"
#include "explain/life_edit.h"
#include "recording/recording.h"
#include "recording/sites.h"

/* ---- lives (lives.c) ------------------------------------------------------------------ */

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
 * Ownership: a story borrows the recording and owns its arrays. 60 bytes per request.
 */
#define FRAG_NO_LIFE UINT32_MAX

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
	uint32_t *of;		 /* [events]: the life, or FRAG_NO_LIFE */
	struct frag_span *spans; /* they cover all events */
	size_t spans_count, spans_cap;
	uint8_t *phases; /* [stacks_count], of requests outside optimizer steps */
	bool stacks;	 /* the recording has them */
	bool may_train;	 /* it ended before any backward pass; one is assumed to follow */
	struct frag_sites sites;
	size_t steps; /* spans of optimizer steps */
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

/* ---- loops (loops.c) ------------------------------------------------------------------ */

/*
 * The repeated blocks of a model, found in the stacks of a forward pass. The stacks form a tree of
 * calls. A node is a loop if its children recur in turn, at least three times, for most of the
 * saved bytes below it. An instance begins where the first of these children recurs.
 *
 * Ownership: loops own their instances.
 */
struct frag_instance {
	uint64_t first, end; /* events */
	uint32_t span;
};

struct frag_loop {
	uint32_t stack; /* one example: its outermost `depth` frames are the calls */
	size_t depth;
	uint32_t head; /* the frame below with which an instance begins */
	uint64_t saved_bytes;
	struct frag_instance *list; /* of all forward phases, in order */
	size_t count, cap;
};

struct frag_loops {
	struct frag_loop *list;
	size_t count, cap;
};

/* Searches the forward phase that saves most. Finds none without stacks. Errors: FRAG_ENOMEM. */
int frag_loops_find(const struct frag_story *s, struct frag_loops *out, struct frag_err *err);
void frag_loops_release(struct frag_loops *l);
/* The line that calls them, in new memory: the innermost forward() outside PyTorch. */
char *frag_loop_line(const struct frag_story *s, const struct frag_loop *loop);
/* The instance that an event belongs to; NULL = none. */
const struct frag_instance *frag_loops_instance(const struct frag_loops *l, uint64_t event);

/* ---- proposals (edits.c) ------------------------------------------------------------- */

/*
 * Advice from a recording, the largest saving first. Changes that save less than 1 % of a peak are
 * dropped. Of several devices the one with the highest peak is used. pre: the events are in memory
 * (FRAG_EUSAGE). settings: of a program; only other settings and allocators, whose replay is exact.
 * only: names of changes with commas; NULL: all.
 * unchanged: the recorded policy (`change`), its peak (before.reserved; 0 = not known) and replay
 * (`after`, `curve`); where these differ, no settings are tried. The caller frees *out, `texts` own
 * what it points to. Errors: FRAG_ENOMEM, FRAG_EINPUT, FRAG_EINTR, those of replays.
 */
int frag_advise_edits(const struct frag_recording *rec, bool settings, const char *only,
		      struct frag_answer *texts, struct frag_advice *unchanged,
		      struct frag_advice **out, size_t *n, struct frag_err *err);

struct frag_advice_plan {
	const struct frag_story *story;
	struct frag_answer *texts;
	const char *only;
	struct frag_loops loops;
	struct frag_plan_env env;
	struct frag_catalog catalog;
	struct frag_headroom headroom;
	struct frag_policy_spec *plain, *expandable; /* expandable NULL: not PyTorch's allocator */
	struct frag_advice_peaks before;
	struct frag_advice *list;
	size_t count, cap;
};

struct frag_proposal {
	const char *change;
	const char *what;     /* a sentence, which the edit may write */
	const char *numerics; /* NULL: none */
	/* Edits e, and completes the proposal. */
	int (*edit)(const struct frag_advice_plan *p, struct frag_edit *e, struct frag_proposal *o,
		    struct frag_err *err);
	bool trains; /* it is about a backward pass, which may only be assumed */
	int way;     /* for the edit */
	/* from the edit */
	const char *left_out; /* why there is no estimate */
	uint32_t stack;	      /* of which the line is shown; FRAG_NO_STACK: none */
	char *line;	      /* shown in its place */
	struct frag_advice_cost cost;
};

/* The last one of a list has no edit. */
#define FRAG_ENTRY(name) extern const struct frag_proposal frag_edit_##name[];
#include "edit_list.inc"
#undef FRAG_ENTRY

#endif
