/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What build.c (entries to events), build_dev.c (before and after) and doubt.c
 * share. Ownership: the builder lives on the stack of frag_build_dev.
 */
#ifndef FRAG_TRACE_BUILD_INTERNAL_H
#define FRAG_TRACE_BUILD_INTERNAL_H

#include "addr_map.h"
#include "build.h"
#include "pools.h"

struct frag_build_slot {
	frag_addr_t addr;
	uint64_t bytes; /* requested */
	uint16_t stream, pool;
	bool waiting, used;
};

/* Looks for a sign of private pools in a history that names none. */
struct frag_doubt {
	struct frag_doubt_segment {
		frag_addr_t addr;
		uint64_t bytes;
		uint16_t stream;
		bool small;
	} * segments; /* by address, not expandable ones */
	size_t count, cap;
	struct frag_doubt_span {
		frag_addr_t addr;
		uint64_t bytes;
	} * spans; /* scratch */
	size_t spans_cap;
	uint64_t work;
	bool off, found;
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
	uint64_t grown_bytes; /* segments taken less those given back */
	bool pools_named;     /* entries name their pools (2.12 and later) */
	bool one_free_kind;   /* only one of the two free kinds was recorded */
	struct frag_pool_map pools;
	struct frag_doubt doubt;
};

static inline bool frag_raw_is_release(unsigned action)
{
	return action == FRAG_RAW_SEGMENT_FREE || action == FRAG_RAW_SEGMENT_UNMAP;
}

/* The program lets go of a block. */
static inline bool frag_raw_is_free(unsigned action)
{
	return action == FRAG_RAW_FREE || action == FRAG_RAW_FREE_REQUESTED;
}

static inline bool frag_raw_is_growth(unsigned action)
{
	return action == FRAG_RAW_SEGMENT_ALLOC || action == FRAG_RAW_SEGMENT_MAP;
}

/* Events for the initial blocks; pre: arrays have room. */
int frag_build_initial(struct frag_builder *b);
/* Events for all entries. */
int frag_build_entries(struct frag_builder *b);

/* A segment came or went (entry i); small: kind of a new one. */
int frag_doubt_segment(struct frag_builder *b, size_t i, bool small);
int frag_doubt_initial(struct frag_builder *b);
/* A new segment served a request of `bytes` (rounded): should a free block have done? */
int frag_doubt_growth(struct frag_builder *b, size_t i, uint64_t rounded);
void frag_doubt_release(struct frag_doubt *d);

#endif
