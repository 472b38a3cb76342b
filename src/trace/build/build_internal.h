/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by build.c (entries to events) and build_dev.c (initial state and final snapshot). The
 * builder is a local variable of frag_build_dev. */
#ifndef FRAG_TRACE_BUILD_INTERNAL_H
#define FRAG_TRACE_BUILD_INTERNAL_H

#include "lib/addr_map.h"
#include "build.h"

struct frag_build_slot {
	frag_addr_t addr;
	uint64_t bytes; /* requested */
	uint16_t stream, pool;
	bool waiting, used;
};

struct frag_builder {
	const struct frag_raw_dev *raw;
	struct frag_trace_dev *out;
	struct frag_err *err;
	uint16_t *stream_of;	   /* raw stream -> dense */
	struct frag_addr_map live; /* address -> slot */
	struct frag_build_slot *slots;
	uint32_t *free_slots; /* stack */
	size_t slots_cap, free_count;
	size_t events_cap;
	size_t next_mark;
	uint64_t mark_us; /* time of the next mark */
	uint64_t last_us; /* event time never decreases */
	size_t kinds[FRAG_RAW_COUNT];
	uint64_t grown_bytes; /* segments allocated less those released */
	bool one_free_kind;   /* only one of the two free kinds was recorded */
};

static inline bool frag_raw_is_release(unsigned action)
{
	return action == FRAG_RAW_SEGMENT_FREE || action == FRAG_RAW_SEGMENT_UNMAP;
}

/* The program frees a block. */
static inline bool frag_raw_is_free(unsigned action)
{
	return action == FRAG_RAW_FREE || action == FRAG_RAW_FREE_REQUESTED;
}

static inline bool frag_raw_is_growth(unsigned action)
{
	return action == FRAG_RAW_SEGMENT_ALLOC || action == FRAG_RAW_SEGMENT_MAP;
}

/* Events for the initial blocks. pre: the arrays have room. */
int frag_build_initial(struct frag_builder *b);
/* Events for all entries. */
int frag_build_entries(struct frag_builder *b);

#endif
