/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that reads, and decompresses, a file a few blocks ahead of who parses it.
 *
 * Ownership: what `read` works on belongs to the thread between start and stop. A block is
 * valid until the next call of next.
 */
#ifndef FRAG_TRACE_INPUT_AHEAD_H
#define FRAG_TRACE_INPUT_AHEAD_H

#include <stddef.h>

#include <frag/error.h>

#include "input_room.h"

/* Up to `room` bytes into dst: *got, 0 at the end of the file; or an error. */
typedef int (*frag_input_read_fn)(void *ctx, unsigned char *dst, size_t room, size_t *got,
				  struct frag_err *err);

struct frag_input_ahead;

/* NULL without memory, without a thread, or with fewer processors: the caller then reads by itself. */
struct frag_input_ahead *frag_input_ahead_start(frag_input_read_fn read, void *ctx,
						unsigned processors);
/*
 * The next block: *got bytes at *data, 0 at the end; or the error of `read`, both again and
 * again. Before *data there is room for FRAG_INPUT_PEEK_MAX bytes, behind the block for
 * FRAG_INPUT_MARGIN, and the last block is left alone until the call after this.
 */
int frag_input_ahead_next(struct frag_input_ahead *a, unsigned char **data, size_t *got,
			  struct frag_err *err);
/* Waits for the thread: for one call of `read` at most. NULL is allowed. */
void frag_input_ahead_stop(struct frag_input_ahead *a);

#endif
