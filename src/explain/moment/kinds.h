/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What blocks are for, told by how they behave over the steps (history.h). Rules, the first
 * that holds:
 *	permanent	asked for in the first step, before its optimizer; there to the end of all steps
 *	optimizer	asked for within the first optimizer step; there to the end of all steps
 *	kept		asked for later, and lives through two steps or more
 *	gradient-like	asked for before an optimizer step, gone after it before any other request
 *	carried over	asked for in one step, gone in the next
 *	temporary	gone within its step after at most 2 % of its requests (8 at least), or asked
 *			for and gone within an optimizer step
 *	activation	asked for and gone within one step, otherwise
 * Where steps are not marked, optimizer, gradient-like and activation are not told apart: "within a step".
 * The confidence of a block's kind is the part of all blocks of its stack (without stacks: of its
 * size) that behaved the same.
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
