/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The repeated blocks of a model, found in the stacks of a forward pass. The stacks form a tree of
 * calls. A node is a loop if its children recur in turn, at least three times, for most of the
 * saved bytes below it. An instance begins where the first of these children recurs.
 *
 * Ownership: loops own their instances.
 */
#ifndef FRAG_ADVISE_LOOPS_H
#define FRAG_ADVISE_LOOPS_H

#include "lives.h"

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
/* The instance that an event belongs to; NULL = none. *of: its loop. */
const struct frag_instance *frag_loops_instance(const struct frag_loops *l, uint64_t event,
						const struct frag_loop **of);

#endif
