/* SPDX-License-Identifier: Apache-2.0 */
/* Writing .cft to a stream; frag_trace_write_cft (frag/trace.h) writes to a path. */
#ifndef FRAG_TRACE_CFT_WRITE_H
#define FRAG_TRACE_CFT_WRITE_H

#include <stdio.h>

#include "cft.h"

/* Errors: FRAG_EINPUT for a trace that breaks the rules of the format, FRAG_ENOMEM. What the
 * stream itself met is left to the caller (ferror). */
int frag_cft_write_stream(const struct frag_trace *trace, FILE *to, struct frag_err *err);

/* Checksum of a block that is the number-th (from 0) of its file. */
uint64_t frag_cft_checksum(const struct frag_cft_block *b, const void *payload, uint64_t number);

#endif
