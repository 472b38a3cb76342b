/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that reads and decompresses a file a few blocks ahead of its parser.
 *
 * Ownership: only the thread may use the context of `read` between start and stop. A block is valid
 * until the next call of next.
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

/* NULL without memory, a thread or enough processors: the caller then reads by itself. */
struct frag_input_ahead *frag_input_ahead_start(frag_input_read_fn read, void *ctx,
						unsigned processors);
/*
 * The next block: *got bytes at *data, 0 at the end; or the error of `read`. End and error repeat.
 * The caller may write FRAG_INPUT_PEEK_MAX bytes before *data and FRAG_INPUT_MARGIN after the
 * block. The previous block stays valid until the next call.
 */
int frag_input_ahead_next(struct frag_input_ahead *a, unsigned char **data, size_t *got,
			  struct frag_err *err);
/* Waits for the thread, for one call of `read` at most. NULL is allowed. */
void frag_input_ahead_stop(struct frag_input_ahead *a);

#endif
