/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What blocks are for, judged by how they behave over the steps (history.h). Of the rules below that hold the first decides in the order
 * permanent or optimizer, kept, gradient-like, carried over, temporary, activation. If steps are not marked, activation is "within a
 * step", and optimizer and gradient-like do not occur. The confidence of a block's kind is the part of all blocks of its stack (without
 * stacks: of its size) that behaved the same.
 */
#ifndef FRAG_EXPLAIN_KINDS_H
#define FRAG_EXPLAIN_KINDS_H

#include "explain/history.h"
#include "explain/replay_cursor.h"

/* temporary: or freed after 8 requests at most, or allocated and freed within an optimizer step */
#define FRAG_KIND_LIST(X) \
	X(PERMANENT, "permanent", "allocated in the first step, live to the end: weights") \
	X(OPTIMIZER, "optimizer", "allocated in the first optimizer step, live to the end") \
	X(GRADIENT, "gradient-like", \
	  "live through the optimizer step, freed before the next allocation") \
	X(ACTIVATION, "activation", "allocated and freed before the optimizer runs in its step") \
	X(TEMPORARY, "temporary", "freed within 2 % of the requests of its step") \
	X(CARRIED, "carried over", "allocated in one step, freed in the next: a batch, a loss") \
	X(KEPT, "kept", "allocated after the first step, live for two steps or more") \
	X(WITHIN, "within a step", "allocated and freed within one step") \
	X(UNKNOWN, "unknown", "no steps to tell by, or the same stacks do otherwise, too")
#define FRAG_KIND_SURE 0.5f /* confidence below which no kind is shown */
enum frag_kind {
#define FRAG_X_(name, text, rule) FRAG_KIND_##name,
	FRAG_KIND_LIST(FRAG_X_)
#undef FRAG_X_
		FRAG_KINDS
};
const char *frag_kind_name(enum frag_kind kind);
const char *frag_kind_rule(enum frag_kind kind);

struct frag_kind_of {
	uint8_t kind;
	float confidence; /* 0 … 1 */
};

/* Kinds of the blocks of a view, out[view->count], from a pass over all events. */
int frag_kinds_find(const struct frag_events *ev, const struct frag_history *h,
		    const struct frag_heap_view *view, struct frag_kind_of *out,
		    struct frag_err *err);

#endif
