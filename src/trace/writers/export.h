/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording, or what a policy would have done with it, in formats of other tools. A format is one
 * file export_<name>.c with one constant
 *
 *	const struct frag_export_format frag_export_<name> = { … };
 *
 * and make finds it. All see the same walk: the events in order, and with each what the replay did
 * for it.
 *
 * Ownership: a job borrows everything. Output goes to job->to; the caller sees its errors on
 * commit.
 */
#ifndef FRAG_EXPLAIN_EXPORT_H
#define FRAG_EXPLAIN_EXPORT_H

#include <stdio.h>

#include <frag/replay.h>

#include "recording/target.h"
#include "replay/run.h"
#include "trace/events.h"

struct frag_export_job {
	const struct frag_trace *trace;
	const char *path; /* of the .cft that the events are read from, NULL = in memory */
	const struct frag_policy_spec *spec;
	/* the evidence of the recording instead of a replay, where it has some; a replay begins
	 * with the live blocks when the recording began, where that is known */
	bool as_recorded;
	struct frag_target target;
	const char *name, *policy; /* shown */
	uint64_t after;		   /* npz: the event; UINT64_MAX = all events, not a moment */
	FILE *to;
};

struct frag_export_format {
	bool takes_moment; /* job->after */
	int (*write)(const struct frag_export_job *job, struct frag_err *err);
};

/* All of them and their names, by name, ended by NULL. */
extern const struct frag_export_format *const frag_export_formats[];
extern const char *const frag_export_words[];

/* A segment allocated, freed, mapped or unmapped, in the order of events. */
struct frag_export_change {
	uint64_t bytes;
	frag_addr_t addr;
	uint32_t stream;
	uint8_t kind; /* enum frag_segment_event */
};

/* One event and what was done for it. */
struct frag_told {
	uint64_t index;
	const struct frag_event *e;
	frag_addr_t addr; /* of the block that comes or goes; FRAG_NO_ADDR = none */
	bool refused;	  /* ALLOC, REFUSED: not served */
	bool dropped;	  /* of a block that was never served: nothing to tell */
	const struct frag_export_change *changes;
	size_t changes_count;
	uint64_t requested, allocated, active, reserved; /* after it */
	struct frag_run *run;
};
typedef int (*frag_told_fn)(void *ctx, const struct frag_told *t, struct frag_err *err);
/* Replays device `dev` until fn returns 1; done (or NULL) gets the state that is left. */
int frag_export_walk(const struct frag_export_job *job, uint32_t dev, frag_told_fn fn,
		     int (*done)(void *ctx, struct frag_run *run, struct frag_err *err), void *ctx,
		     struct frag_err *err);

/* Text in a JSON string, or a label of OpenMetrics: without the quotes. */
void frag_export_escaped(FILE *to, const char *text);

/* ---- the heap at a moment ----
 *
 * The segments of a replay as they are now, each with its blocks, in the order in which the policy
 * lists them. A part that is not mapped splits a segment in two, as in PyTorch's lists.
 *
 * Ownership: the list is the caller's, zero before the first take, which adds to it; release frees
 * it.
 */

struct frag_listed_block {
	frag_addr_t addr;
	uint64_t bytes, requested; /* requested: bytes where it is free */
	uint32_t slot;		   /* FRAG_NO_SLOT: free, or the policy's own */
	uint8_t state;		   /* enum frag_block_state */
};

struct frag_listed_segment {
	frag_addr_t addr;
	uint64_t bytes;
	size_t first_block, blocks_count;
	uint32_t stream; /* index */
};

struct frag_heap_list {
	struct frag_listed_segment *segments;
	struct frag_listed_block *blocks;
	size_t segments_count, segments_cap, blocks_count, blocks_cap;
};

/* Errors: FRAG_ENOMEM. */
int frag_heap_list_take(struct frag_heap_list *list, struct frag_run *run, struct frag_err *err);
void frag_heap_list_release(struct frag_heap_list *list);

#endif
