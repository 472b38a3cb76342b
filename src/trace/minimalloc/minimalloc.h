/* SPDX-License-Identifier: Apache-2.0 */
/* MiniMalloc's CSV: one buffer per line, id, lower, upper (exclusive), size. */
#ifndef FRAG_TRACE_MINIMALLOC_H
#define FRAG_TRACE_MINIMALLOC_H

#include <frag/trace.h>

/*
 * Writes the allocations of a device: id counts from 0, moments are event indices, sizes as
 * requested; what is still live at the end ends there. Frees count when they completed.
 * Complete or not at all; "-" = stdout. Errors: FRAG_EOUTPUT, FRAG_ENOMEM.
 */
int frag_minimalloc_write(const struct frag_trace_dev *dev, const char *path, struct frag_err *err);

#endif
