/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replay that can stop after any event, to list the blocks that are there, who allocated them,
 * the segments that they pin, and where every byte is. It moves forward only.
 *
 * Ownership: a cursor owns its run, its card and the births of its blocks; events and spec are
 * borrowed until frag_cursor_close.
 */
#ifndef FRAG_EXPLAIN_REPLAY_CURSOR_H
#define FRAG_EXPLAIN_REPLAY_CURSOR_H

#include <frag/replay.h>

#include "trace/events.h"
#include "replay/hints.h"
#include "replay/run.h"

/* The allocation whose block is in a slot. */
struct frag_birth {
	uint64_t event, time_us;
	uint32_t stack;
};

struct frag_cursor {
	struct frag_events ev;
	struct frag_device *dev;
	struct frag_run *run;
	struct frag_hints hints;
	struct frag_birth *births; /* [slots_count] */
	size_t births_count;
	uint64_t next;	 /* the event that comes now */
	uint64_t now_us; /* time of the last one */
};

/* Sets skip_oom, so that it can go beyond a refused request. Do not move the cursor in memory: its
 * card refers to it. Errors: those of a replay; it is to be closed then, too. */
int frag_cursor_open(struct frag_cursor *s, const struct frag_events *ev,
		     const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		     const struct frag_run_options *opt, struct frag_err *err);
/* Replays up to and including `event`, or to the end. */
int frag_cursor_to(struct frag_cursor *s, uint64_t event, struct frag_err *err);
void frag_cursor_close(struct frag_cursor *s);

/* Trims all pools: returns to the device whatever can be returned. */
int frag_cursor_trim(struct frag_cursor *s, struct frag_err *err);
/* Bytes reserved now. */
uint64_t frag_cursor_reserved(const struct frag_cursor *s);

/* ---- live state ------------------------------------------------------------------- */

struct frag_heap_block {
	uint32_t slot, stack;
	bool waiting; /* freed, but another stream still uses it */
	uint64_t requested, granted;
	frag_addr_t addr;
	uint64_t born, born_us;	       /* event and time */
	uint64_t non_releasable_bytes; /* its share of the non-releasable bytes of its segment */
	uint64_t segment_non_releasable_bytes; /* all of them */
	uint64_t largest_hole;		       /* of them */
	uint32_t segment;		       /* number, in address order */
	bool alone;			       /* no other block is in its segment */
};

/*
 * The blocks that are there, and the free bytes that they pin. The non-releasable bytes of a
 * segment are shared equally among its blocks, because each of them alone would pin the segment;
 * the first gets the remainder, so that shares add up to the byte. ownerless: non-releasable bytes
 * in segments without a block of the replay (what a policy keeps for itself).
 */
struct frag_heap_view {
	struct frag_heap_block *list; /* by address */
	size_t count;
	uint32_t segments_count, segments_with_holes; /* all, and those with blocks and holes */
	uint64_t non_releasable, ownerless;
};
int frag_heap_view_take(struct frag_cursor *s, struct frag_heap_view *out, struct frag_err *err);
void frag_heap_view_release(struct frag_heap_view *view);

#endif
