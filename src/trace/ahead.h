/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that reads the next few batches of a source ahead of time.
 *
 * Ownership: the source is the caller's, who must not use it between open and close. A batch is
 * valid until the next call of next.
 */
#ifndef FRAG_TRACE_AHEAD_H
#define FRAG_TRACE_AHEAD_H

#include <frag/trace.h>

struct frag_ahead;

/* If no thread can be started, next reads by itself, with the same result. Errors: FRAG_ENOMEM. */
int frag_ahead_open(struct frag_source *src, struct frag_ahead **out, struct frag_err *err);
/* As frag_source_next. */
int frag_ahead_next(struct frag_ahead *a, struct frag_batch *out, struct frag_err *err);
/* Stops reading; batches that were read but not fetched are lost. NULL is allowed. */
void frag_ahead_close(struct frag_ahead *a);

#endif
