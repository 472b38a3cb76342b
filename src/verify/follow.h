/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following a recording: a replay of the recorded settings on a simulated card
 * that places and refuses as the recording shows, event by event, up to the
 * first difference.
 */
#ifndef FRAG_VERIFY_FOLLOW_H
#define FRAG_VERIFY_FOLLOW_H

#include <frag/replay.h>

enum follow_diff {
	FOLLOW_SAME,
	FOLLOW_ADDR,	/* served from another block than recorded */
	FOLLOW_REFUSED, /* recorded as served, refused here */
	FOLLOW_SERVED,	/* recorded as refused, served here */
	FOLLOW_SEGMENT, /* another segment event than recorded */
	FOLLOW_MISSING, /* a recorded segment event did not happen */
	FOLLOW_FINAL,	/* the final blocks differ */
};

/* The driver said no, as far as the recording shows. */
struct follow_refusal {
	uint64_t event;
	uint64_t bytes;	      /* asked for */
	uint64_t held_bytes;  /* by the policy at that moment */
	uint64_t begin_bytes; /* when the event began: before anything was given back */
	bool synced;	      /* everything cached was released, then asked again */
	bool served;	      /* and then it was served */
};

struct follow_report {
	enum follow_diff diff;
	uint64_t event;	       /* of the difference */
	size_t seen;	       /* evidence that was expected next */
	frag_addr_t want, got; /* FOLLOW_ADDR, FOLLOW_SEGMENT */
	uint64_t got_room;     /* FOLLOW_ADDR: bytes that were free from `got` on */
	bool got_release;      /* FOLLOW_SEGMENT: the simulation gave `got` back */
	bool open;	       /* what the file does not say of its start may be the cause */
	char text[400];
	uint64_t allocs, allocs_same, segments_same, ooms, ooms_same, finals, finals_same;
	uint64_t peak_held_bytes;
	uint64_t begin_bytes; /* held when the event that differs began */
	struct follow_refusal *refusals;
	size_t refusals_count, refusals_cap;
	struct frag_counter *counters;
};

/*
 * Errors are those of the simulation itself; a difference is a result. The
 * report is the caller's (follow_report_release).
 */
int follow_recording(const struct frag_trace_dev *td, const struct frag_policy_spec *spec,
		     const struct frag_sim_config *card, uint64_t limit_bytes,
		     struct follow_report *out, struct frag_err *err);
void follow_report_release(struct follow_report *r);
/* What there is to follow: events of a kind, without those that only set up what was there at the start;
 * segment events of the evidence. */
uint64_t follow_events(const struct frag_trace_dev *td, enum frag_event_kind kind);
uint64_t follow_segments(const struct frag_trace_dev *td);

/* The policy with the recorded settings (or `conf` instead of them). */
int follow_spec(const struct frag_trace *trace, const char *conf, struct frag_policy_spec **out,
		struct frag_err *err);

/* FRAG_EINPUT: the device has no evidence, nothing to follow. */
int follow_check(const struct frag_trace *trace, uint32_t dev, struct frag_err *err);

static inline bool follow_is_segment(const struct frag_evidence *e)
{
	return e->kind <= FRAG_SEEN_SEGMENT_UNMAP;
}

static inline bool follow_is_release(const struct frag_evidence *e)
{
	return e->kind == FRAG_SEEN_SEGMENT_FREE || e->kind == FRAG_SEEN_SEGMENT_UNMAP;
}

#endif
