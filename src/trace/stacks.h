/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a struct frag_stacks: equal frames and equal stacks become one.
 * Ownership: arrays that were taken are the caller's (frag_stacks_release, also after an error).
 */
#ifndef FRAG_TRACE_STACKS_H
#define FRAG_TRACE_STACKS_H

#include <frag/trace.h>

struct frag_stack_table;

int frag_stack_table_create(struct frag_stack_table **out, struct frag_err *err);
void frag_stack_table_destroy(struct frag_stack_table *t); /* NULL is allowed */
FRAG_AUTO_AT(struct frag_stack_table *, frag_stack_table_destroy)
/* Number of the frame. Errors: FRAG_ENOMEM. */
int frag_stack_table_frame(struct frag_stack_table *t, struct frag_frame frame, uint32_t *number,
			   struct frag_err *err);
/* Index of the stack of n frames, innermost first; 0 for n = 0, or if there are too many. */
int frag_stack_table_stack(struct frag_stack_table *t, const uint32_t *frames, size_t n,
			   uint32_t *stack, struct frag_err *err);
/* All so far. Errors: FRAG_ENOMEM. */
int frag_stack_table_take(const struct frag_stack_table *t, struct frag_stacks *out,
			  struct frag_err *err);
void frag_stacks_release(struct frag_stacks *s);

#endif
