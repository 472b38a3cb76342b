/* SPDX-License-Identifier: Apache-2.0 */
/* Beginnings and ends of buffers, in order of time (buffers.c). */
#ifndef FRAG_PLAN_EDGES_H
#define FRAG_PLAN_EDGES_H

#include <frag/plan.h>

/* A buffer begins or ends. */
struct frag_edge {
	uint64_t when, bytes;
	bool begins;
};

/* edges[2 * b->count] belongs to the caller. At the same moment, ends come before beginnings. */
void frag_edges_sort(const struct frag_buffers *b, struct frag_edge *edges);

#endif
