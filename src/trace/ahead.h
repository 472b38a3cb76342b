/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that makes the next few pieces of something ahead of time, each in a slot of its own:
 * the bytes of a file, the events of a trace.
 *
 * Ownership: only the thread may use the context between start and stop.
 */
#ifndef FRAG_TRACE_AHEAD_H
#define FRAG_TRACE_AHEAD_H

#include <frag/base.h>
#include <frag/error.h>

struct frag_ahead;
/* Makes the next piece: 1, 0 at the end, or an error. */
typedef int (*frag_ahead_fn)(void *ctx, void *slot, struct frag_err *err);

/* Slots of `bytes` bytes; the last two that were given out stay as they are. Without a thread, next
 * makes the pieces. NULL: host memory is short. */
struct frag_ahead *frag_ahead_start(frag_ahead_fn make, void *ctx, size_t bytes);
/* What make said, and the slot. The end and errors repeat. */
int frag_ahead_next(struct frag_ahead *a, void **slot, struct frag_err *err);
/* Waits for the thread, for one call of make at most. NULL is allowed. */
void frag_ahead_stop(struct frag_ahead *a);

#endif
