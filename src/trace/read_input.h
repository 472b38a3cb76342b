/* SPDX-License-Identifier: Apache-2.0 */
/* The middle of frag_trace_read: from the bytes of an open file to a trace. */
#ifndef FRAG_TRACE_READ_INPUT_H
#define FRAG_TRACE_READ_INPUT_H

#include <frag/trace.h>

/* Finds the format and reads. path: for the trace's name. Errors as frag_trace_read. */
int frag_trace_read_input(struct frag_input *in, const char *path, const char *options,
			  struct frag_trace **out, struct frag_err *err);

#endif
