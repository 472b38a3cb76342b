/* SPDX-License-Identifier: Apache-2.0 */
/* MiniMalloc's CSV: one buffer per line, id, lower, upper (exclusive), size. */
#ifndef FRAG_TRACE_MINIMALLOC_H
#define FRAG_TRACE_MINIMALLOC_H

#include <frag/trace.h>

/*
 * Writes the allocations of a device: ids from 0, times are event indices, sizes as requested. A
 * block ends when its free completed, or at the end of the trace. The file appears when it is
 * complete; "-" = stdout. Errors: FRAG_EOUTPUT, FRAG_ENOMEM.
 */
int frag_minimalloc_write(const struct frag_trace_dev *dev, const char *path, struct frag_err *err);

#endif
