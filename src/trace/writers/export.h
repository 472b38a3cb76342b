/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording, or what a policy would have done with it, in formats of other tools, one file each.
 * All of them see the same walk: the events in order, and with each what the replay did for it.
 *
 * Ownership: a job borrows everything. Output goes to job->to; the caller sees its errors on
 * commit.
 */
#ifndef FRAG_EXPLAIN_EXPORT_H
#define FRAG_EXPLAIN_EXPORT_H

#include <stdio.h>

#include <frag/replay.h>

#include "recording/target.h"
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

/* memory_viz: a snapshot pickle of PyTorch, which pytorch.org/memory_viz opens; perfetto: Chrome
 * trace JSON with counters and steps for ui.perfetto.dev; csv: a row per event with the bytes after
 * it; openmetrics: time series for Prometheus (promtool tsdb create-blocks-from openmetrics); npz:
 * the same as arrays of NumPy, with the stacks, or the segments and blocks after one event. */
#define FRAG_EXPORT_FORMATS(X) X(memory_viz) X(perfetto) X(csv) X(openmetrics) X(npz)
extern const char *const frag_export_words[]; /* of the command line, ended by NULL */

enum frag_export_format {
#define FRAG_X_(name) FRAG_EXPORT_##name,
	FRAG_EXPORT_FORMATS(FRAG_X_)
#undef FRAG_X_
		FRAG_EXPORT_COUNT
};
int frag_export(const struct frag_export_job *job, enum frag_export_format format,
		struct frag_err *err);

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
/* Replays device `dev`, until fn returns 1; done is called at the end with the state that is left (may be NULL). */
int frag_export_walk(const struct frag_export_job *job, uint32_t dev, frag_told_fn fn,
		     int (*done)(void *ctx, struct frag_run *run, struct frag_err *err), void *ctx,
		     struct frag_err *err);

#define FRAG_X_(name) \
	int frag_export_##name(const struct frag_export_job *job, struct frag_err *err);
FRAG_EXPORT_FORMATS(FRAG_X_)
#undef FRAG_X_

/* Text in a JSON string, or a label of OpenMetrics: without the quotes. */
void frag_export_escaped(FILE *to, const char *text);

#endif
