/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by build.c (entries to events), build_dev.c (initial state and final snapshot) and rewind*.c
 * (the state before the first entry). The builder is a local variable of frag_build_dev. */
#ifndef FRAG_TRACE_BUILD_INTERNAL_H
#define FRAG_TRACE_BUILD_INTERNAL_H

#include "lib/addr_map.h"
#include "build.h"

struct frag_build_slot {
	frag_addr_t addr;
	uint64_t bytes; /* requested */
	uint16_t stream, pool;
	bool waiting, used, initial;
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

/* Consecutive pages of expandable segments that were mapped at the start. */
struct frag_page_run {
	frag_addr_t addr, end;
	frag_addr_t range_addr; /* base of the reservation */
	uint16_t stream, pool;
	int32_t final; /* the segment of the final snapshot that covers it, < 0 = none does */
	bool small;
	bool pool_known, kind_known;
	bool closed; /* its pages were unmapped: later pages there are another run */
};

/* The state before the first recorded entry, into the device's initial state: the final snapshot
 * with the history undone. A history that began in an empty allocator rewinds to nothing; no
 * segments: they cannot be known. uncertain_blocks: those perhaps longer than `bytes`, the file
 * does not show it. Errors: FRAG_EINPUT with the entry that contradicts the final snapshot,
 * FRAG_ENOMEM. O(entries + live log live). */
int frag_rewind(const struct frag_builder *b);
/* Finds pool, kind and reservation of the runs, by address, and merges runs of one reservation that
 * touch. O(entries log runs). */
void frag_rewind_pages(const struct frag_builder *b, struct frag_page_run *runs, size_t *count);
/* Sizes of blocks that have none (bytes 0). pre: every block is counted in its segment. */
int frag_rewind_sizes(const struct frag_builder *b);

/* Were completed frees left out? */
static inline bool frag_lacks_completed(const struct frag_builder *b)
{
	return !b->kinds[FRAG_RAW_FREE] && !b->kinds[FRAG_RAW_FREE_COMPLETED];
}

/* FRAG_EINPUT with entry i. about: "", or " contradicts …". */
int frag_build_bad(const struct frag_raw_dev *raw, size_t i, const char *about, const char *what,
		   struct frag_err *err);
/* Events for the initial blocks. pre: the arrays have room. */
int frag_build_initial(struct frag_builder *b);
/* Events for all entries. */
int frag_build_entries(struct frag_builder *b);
/* Initial blocks that live on to the end: who holds them, where the final state tells it. */
void frag_build_name_initial(struct frag_builder *b);

#endif
