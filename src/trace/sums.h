/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of what the requests of a device ask for. Files may hold any sizes; a trace with sums that
 * no device could reach is refused when it is read, so that code behind the readers need not expect
 * 64-bit sums to overflow.
 */
#ifndef FRAG_TRACE_SUMS_H
#define FRAG_TRACE_SUMS_H

#include <frag/trace.h>

#define FRAG_LIVE_MAX (1ull << 50) /* as much as the largest card may have that can be described */
#define FRAG_FLOW_MAX (1ull << 62)

struct frag_sums { /* of one device; init by zeroing */
	uint64_t live, flow;
};

/* The next events of a device; first: number of the first. Errors: FRAG_EINPUT. */
int frag_sums_add(struct frag_sums *s, const struct frag_event *events, size_t count,
		  uint64_t first, struct frag_err *err);

#endif
