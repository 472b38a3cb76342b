/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a recording: replays the recorded settings on a simulated card that places and refuses as
 * recorded, event by event, up to the first difference.
 */
#ifndef FRAG_VERIFY_FOLLOW_H
#define FRAG_VERIFY_FOLLOW_H

#include "replay/run.h"

enum follow_diff {
	FOLLOW_SAME,
	FOLLOW_ADDR,	/* served from another block than recorded */
	FOLLOW_REFUSED, /* recorded as served, refused here */
	FOLLOW_SERVED,	/* recorded as refused, served here */
	FOLLOW_SEGMENT, /* another segment event than recorded */
	FOLLOW_MISSING, /* a recorded segment event did not happen */
	FOLLOW_FINAL,	/* the final blocks differ */
};

/* The driver refused memory, as far as the recording shows. */
struct follow_refusal {
	uint64_t event;
	uint64_t bytes;	      /* requested bytes */
	uint64_t held_bytes;  /* bytes held by the policy at that moment */
	uint64_t begin_bytes; /* bytes held when the event began, before anything was returned */
	bool synced;	      /* released everything cached, then asked again */
	bool served;	      /* and was then served */
};

struct follow_report {
	enum follow_diff diff;
	uint64_t event;	       /* of the difference */
	size_t seen;	       /* the evidence expected next */
	frag_addr_t want, got; /* FOLLOW_ADDR, FOLLOW_SEGMENT */
	uint64_t got_room;     /* FOLLOW_ADDR: free bytes from `got` on */
	bool got_release;      /* FOLLOW_SEGMENT: the simulation returned `got` */
	bool open;	       /* the unknown part of the initial state may be the cause */
	char text[400];
	uint64_t allocs, allocs_same, segments_same, ooms, ooms_same, finals, finals_same;
	uint64_t peak_held_bytes;
	uint64_t begin_bytes; /* bytes held when the differing event began */
	struct follow_refusal *refusals;
	size_t refusals_count, refusals_cap;
	struct frag_counter *counters;
};

/*
 * Errors come only from the simulation itself; a difference is a result. The caller frees the
 * report (follow_report_release).
 */
int follow_recording(const struct frag_trace_dev *td, const struct frag_policy_spec *spec,
		     const struct frag_sim_config *card, uint64_t limit_bytes,
		     struct follow_report *out, struct frag_err *err);
void follow_report_release(struct follow_report *r);
/* Numbers to follow: events of a kind, without those that only set up the initial state; segment
 * events of the evidence. */
uint64_t follow_events(const struct frag_trace_dev *td, enum frag_event_kind kind);
uint64_t follow_segments(const struct frag_trace_dev *td);

/* The policy with the recorded settings (or with `conf`). */
int follow_spec(const struct frag_trace *trace, const char *conf, struct frag_policy_spec **out,
		struct frag_err *err);

/* FRAG_EINPUT if the device has no evidence to follow. */
int follow_check(const struct frag_trace *trace, uint32_t dev, struct frag_err *err);

static inline bool follow_never_splits(const struct frag_trace_dev *td, uint16_t pool)
{
	return pool < td->pools_count && td->pools[pool].b & FRAG_POOL_NO_SPLIT;
}

/* ---- for follow*.c ---- */

struct follow {
	const struct frag_trace_dev *td;
	struct frag_device *dev;
	struct frag_run *run;
	struct follow_report *r;
	size_t cursor; /* next segment event of the evidence */
	uint64_t event;
	bool restoring;
	size_t restored; /* initial segments placed so far */
	struct {
		frag_addr_t base;
		uint64_t bytes;
		uint64_t mapped;
	} * ranges; /* existing reservations */
	size_t ranges_count, ranges_cap;
	uint64_t syncs_before, begin_bytes;
	bool short_of_memory;
};

/* The segment event that the recording shows next for the current event, NULL if none. */
static inline const struct frag_evidence *expected(const struct follow *f)
{
	const struct frag_evidence *e = &f->td->seen[f->cursor];

	return f->cursor < f->td->seen_count && e->before == f->event ? e : NULL;
}

/* follow_card.c: the card's place hook (frag_sim_config.place); FRAG_OOM: refused. */
int follow_place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr);
/* Updates the pages of a reservation, which ends with its last page. */
void follow_note_pages(struct follow *f, enum frag_segment_event kind, frag_addr_t addr,
		       uint64_t bytes);

/* Index of the reservation with this address; ranges_count if there is none. */
size_t follow_range_at(const struct follow *f, frag_addr_t addr);

/* follow_late.c */

/* A block that begins at an address: is it free; its bytes and those that are free behind it. */
struct follow_room {
	uint64_t bytes;
	bool is_free;
};
struct follow_room follow_room_at(const struct follow *f, frag_addr_t at);
/* Can the unknown part of the initial state cause the difference? pre: a difference,
 * with the policy in that state. */
bool follow_is_open(const struct follow *f);

#endif
