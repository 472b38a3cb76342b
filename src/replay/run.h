/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of a run, only for src/replay: the live table and the counters of the loop. A slot is
 * EMPTY, LIVE, PENDING (freed, but not completed), HELD (completes at the synchronisation inside
 * the next malloc) or DROPPED (could not be served). PENDING and HELD slots are chained in the
 * order of their frees.
 */
#ifndef FRAG_REPLAY_RUN_H
#define FRAG_REPLAY_RUN_H

#include <frag/replay.h>

#include "metrics/series.h"
#include "contents.h"
#include "hints.h"

enum slot_state { SLOT_EMPTY, SLOT_LIVE, SLOT_PENDING, SLOT_HELD, SLOT_DROPPED };

#define FRAG_NO_SLOT UINT32_MAX

struct frag_run_slot {
	struct frag_block b;
	uint32_t prev, next; /* chain of pending slots */
	uint8_t state;
	uint8_t pad_[15]; /* 64 bytes: an index is a shift */
};
_Static_assert(sizeof(struct frag_run_slot) == 64, "a slot fills a cache line");

struct frag_run {
	struct frag_policy policy;
	const struct frag_policy_spec *spec;
	struct frag_device *dev;
	struct frag_run_options opt;
	struct frag_contents *contents; /* NULL: contents are not checked */
	struct frag_err *err;		/* event of the current call, for errors inside the sync
					 * callback */
	int upcall_rc;			/* first error inside a callback */

	struct frag_run_slot *slots;
	uint32_t slots_count;
	uint32_t pending_first, pending_last;
	uint32_t *held; /* HELD slots, in recorded order */
	uint32_t held_count;
	size_t held_cap;

	/* current bytes; active is allocated + waiting */
	uint64_t requested, allocated, waiting, bound;
	uint64_t peak_bound, peak_reserved;
	double active_time, reserved_time; /* integrals over recorded time, B * us */
	uint64_t last_us, start_reserved;

	struct frag_recorder rec;
	struct frag_loss peak;
	bool peak_stale;  /* `peak` was skipped to save walks: a second pass takes it */
	uint64_t stop_at; /* take `peak` after this event and stop; UINT64_MAX = never */
	uint64_t walk_cost;

	uint64_t events, allocs, frees, ooms, refused_again, granted_refusals, steps;
	uint64_t syncs; /* number of calls of the policy's "wait for everything" */
	uint64_t class_zero[FRAG_CLASS_COUNT], free_zero; /* calls without the driver */
	uint64_t host_ns;
	uint32_t sample; /* calls until the next host latency sample */
	bool stopped;
	bool restored;		     /* skip FRAG_EVF_INITIAL events */
	struct frag_retrace retrace; /* trace NULL: the policy is not told the next request */
	struct frag_result r;
};

/* As frag_run_create, with a listener for segment events (or NULL). */
int frag_run_create_heard(const struct frag_policy_spec *spec, struct frag_device *dev,
			  const struct frag_trace_dev *dev_hdr, const struct frag_run_options *opt,
			  frag_journal_fn journal, void *journal_ctx, struct frag_run **out,
			  struct frag_err *err);

/* Policy counters, up to a NULL name; NULL if it has none. */
int frag_run_counters(const struct frag_run *run, struct frag_counter **out, struct frag_err *err);

/* The use of the bytes now. */
void frag_run_loss(struct frag_run *run, uint64_t event, uint64_t time_us, struct frag_loss *out);
/* The same at the current event, including figures that need a walk. */
void frag_run_look(struct frag_run *run, uint64_t time_us, struct frag_loss *out);

/* Completes all pending frees: the policy's "wait for everything". */
void frag_run_sync(void *run);
/* The block of this slot is freed, but a stream still uses it. */
void frag_run_wait(struct frag_run *run, uint32_t slot);

/* Was a request refused that the recording has as served? A what-if ends there. */
static inline bool frag_run_refuses_more(const struct frag_run *run)
{
	return run->ooms > run->refused_again;
}

/* ---- whole replays on a new simulated card, from any source of events: run.c, stream.c ---- */

struct frag_feeder {
	const struct frag_trace_dev *hdr; /* counts, streams, pools; events if `feed` wants */
	/*
	 * Feeds everything from the beginning, until the run stops. hints: `trace` is hdr; the
	 * feeder fills in the rest. again: this is a second pass, up to one event.
	 */
	int (*feed)(void *ctx, struct frag_run *run, struct frag_hints *hints, bool again,
		    struct frag_err *err);
	void *ctx;
	bool once; /* a second pass is impossible */
};

/* Like frag_replay_sim. Also FRAG_ENOTSUP if a second pass is needed but impossible. */
int frag_replay_fed(const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		    const struct frag_feeder *feeder, const struct frag_run_options *opt,
		    struct frag_result *out, struct frag_err *err);

/* Feeds one batch, after asking the options' stop, with progress. FRAG_EINTR: stopped. */
int frag_feed_batch(struct frag_run *run, const struct frag_event *events, size_t count,
		    struct frag_err *err);

#endif
