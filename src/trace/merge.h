/* SPDX-License-Identifier: Apache-2.0 */
/* Several traces (the ranks of one job) as one trace with several devices. */
#ifndef FRAG_TRACE_MERGE_H
#define FRAG_TRACE_MERGE_H

#include <frag/trace.h>

/*
 * The devices of all parts, in order, on one clock; renumbered from 0 if two have the same ordinal.
 * Settings come from the first part, the note of an estimate from the first part that has one.
 * Devices and settings are moved out: the parts remain the caller's, but can only be destroyed,
 * also after an error. Errors: FRAG_EINPUT if the parts lie too far apart in time; FRAG_ENOMEM.
 */
int frag_trace_merge(struct frag_trace *const *parts, size_t count, struct frag_trace **out,
		     struct frag_err *err);

/* Parts that are owned. */
struct frag_trace_parts {
	struct frag_trace **list;
	size_t count;
};
/* A single part is handed over as it is, several are merged. */
int frag_trace_parts_join(struct frag_trace_parts *p, struct frag_trace **out,
			  struct frag_err *err);
void frag_trace_parts_release(struct frag_trace_parts *p);

#endif
