/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source read by a thread of its own, a few batches ahead of who uses them.
 *
 * Ownership: the source is the caller's, and not to be touched between open and close. A
 * batch is valid until the next call of next.
 */
#ifndef FRAG_TRACE_AHEAD_H
#define FRAG_TRACE_AHEAD_H

#include <frag/trace.h>

struct frag_ahead;

/* Without a thread to be had it reads in line; what comes out is the same. Errors: FRAG_ENOMEM. */
int frag_ahead_open(struct frag_source *src, struct frag_ahead **out, struct frag_err *err);
/* As frag_source_next. */
int frag_ahead_next(struct frag_ahead *a, struct frag_batch *out, struct frag_err *err);
/* Ends the reading, wherever it is: batches that nobody has asked for are lost. NULL is allowed. */
void frag_ahead_close(struct frag_ahead *a);

#endif
