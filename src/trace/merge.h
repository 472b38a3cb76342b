/* SPDX-License-Identifier: Apache-2.0 */
/* Several traces (the ranks of one job) as one trace with several devices. */
#ifndef FRAG_TRACE_MERGE_H
#define FRAG_TRACE_MERGE_H

#include <frag/trace.h>

/*
 * The devices of all parts, in order, on one clock; numbered anew from 0 if two have the same
 * ordinal. Settings are those of the first part, the note of an estimate that of
 * the first that has one. Devices and settings are moved out:
 * the parts stay the caller's, fit only to be destroyed, also after an error.
 * Errors: FRAG_EINPUT if the parts lie too far apart in time; FRAG_ENOMEM.
 */
int frag_trace_merge(struct frag_trace *const *parts, size_t count, struct frag_trace **out,
		     struct frag_err *err);

#endif
