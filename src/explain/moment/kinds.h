/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What blocks are for, judged by how they behave over the steps (history.h). The first rule that
 * holds decides:
 *	permanent	allocated in the first step before its optimizer runs; live to the end of all steps
 *	optimizer	allocated in the first optimizer step; live to the end of all steps
 *	kept		allocated later; live for two steps or more
 *	gradient-like	allocated before an optimizer step; freed after it, before the next allocation
 *	carried over	allocated in one step, freed in the next
 *	temporary	freed within its step after at most 2 % of its requests (at least 8), or allocated
 *			and freed within an optimizer step
 *	activation	otherwise allocated and freed within one step
 * If steps are not marked, activation is "within a step", and optimizer and gradient-like do not
 * occur. The confidence of a block's kind is the part of all blocks of its stack (without stacks:
 * of its size) that behaved the same.
 */
#ifndef FRAG_EXPLAIN_KINDS_H
#define FRAG_EXPLAIN_KINDS_H

#include "explain/history.h"
#include "explain/replay_cursor.h"

#define FRAG_KIND_LIST(X) \
	X(PERMANENT, "permanent") \
	X(OPTIMIZER, "optimizer") \
	X(GRADIENT, "gradient-like") \
	X(ACTIVATION, "activation") \
	X(TEMPORARY, "temporary") \
	X(CARRIED, "carried over") \
	X(KEPT, "kept") \
	X(WITHIN, "within a step") \
	X(UNKNOWN, "unknown")
enum frag_kind {
#define FRAG_X_(name, text) FRAG_KIND_##name,
	FRAG_KIND_LIST(FRAG_X_)
#undef FRAG_X_
		FRAG_KINDS
};
const char *frag_kind_name(enum frag_kind kind);

struct frag_kind_of {
	uint8_t kind;
	float confidence; /* 0 … 1 */
};

/* Kinds of the blocks of a view, out[view->count], from a pass over all events. */
int frag_kinds_find(const struct frag_events *ev, const struct frag_history *h,
		    const struct frag_heap_view *view, struct frag_kind_of *out,
		    struct frag_err *err);

#endif
