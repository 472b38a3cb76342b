/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of one device, wherever they are: in memory, or in a .cft that is read again for
 * each pass. Nothing here holds more than a batch.
 */
#ifndef FRAG_TRACE_EVENTS_H
#define FRAG_TRACE_EVENTS_H

#include <frag/trace.h>

struct frag_events {
	const struct frag_trace *trace; /* head, stacks, strings; borrowed */
	uint32_t dev;			/* index */
	const char *path;		/* of the .cft; NULL: they are in trace->devs[dev].events */
};

/* Returns 0, 1 = that is enough, or an error. first: index of events[0]. */
typedef int (*frag_events_fn)(void *ctx, const struct frag_event *events, size_t count,
			      uint64_t first, struct frag_err *err);
/* Calls fn with all events in order. Errors: those of fn and of the file. */
int frag_events_each(const struct frag_events *ev, frag_events_fn fn, void *ctx,
		     struct frag_err *err);

/* Events of all devices of a trace, or those that its head announces. */
static inline uint64_t frag_trace_events_count(const struct frag_trace *trace)
{
	uint64_t n = 0;

	for (uint32_t d = 0; d < trace->devs_count; d++)
		n += trace->devs[d].events_count;
	return n;
}

static inline const struct frag_trace_dev *frag_events_dev(const struct frag_events *ev)
{
	return &ev->trace->devs[ev->dev];
}

#endif
