/* SPDX-License-Identifier: Apache-2.0 */
/* Traces into files. */
#ifndef FRAG_TRACE_WRITE_TRACE_H
#define FRAG_TRACE_WRITE_TRACE_H

#include <frag/trace.h>

/*
 * The ending of the file says the format: .csv is a list of buffers for MiniMalloc, all else a
 * .cft; "-" = stdout. Errors: FRAG_EUSAGE for a .csv of several devices, FRAG_EOUTPUT, FRAG_ENOMEM.
 */
int frag_trace_write(const struct frag_trace *trace, const char *path, struct frag_err *err);
/*
 * MiniMalloc's CSV, a buffer per line: id (from 0), lower and upper (exclusive; indices of events),
 * size as requested. A block ends when its free completed, or at the end of the trace. The file
 * appears when it is complete. Errors: FRAG_EOUTPUT, FRAG_ENOMEM.
 */
int frag_minimalloc_write(const struct frag_trace_dev *dev, const char *path, struct frag_err *err);
/* What the recorder saw of its own allocator goes; the requests stay. */
void frag_trace_drop_evidence(struct frag_trace *trace);

#endif
