/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay: events -> policy -> metrics. One run is one policy instance on one
 * device, fed with batches of events; nothing is shared between runs.
 *
 * Ownership: the run borrows device and spec until frag_run_destroy; the
 * result is moved out to the caller (frag_result_release).
 */
#ifndef FRAG_REPLAY_H
#define FRAG_REPLAY_H

#include <frag/base.h>
#include <frag/device.h>
#include <frag/error.h>
#include <frag/metrics.h>
#include <frag/policy.h>
#include <frag/trace.h>

#include <signal.h>

struct frag_run_options {
	uint64_t limit_bytes; /* UINT64_MAX = none */
	bool limit_changes;   /* the recording's changes of it hold, too (FRAG_EVF_LIMIT) */
	uint64_t seed;
	unsigned source_release; /* release of the simulated allocator; 0 = that of the recording */
	uint64_t sync_every;	 /* synchronise the device after every n operations; 0 = never */
	bool restore;		 /* start from the recording's initial state (if the policy can) */
	bool skip_oom;		 /* --on-oom=skip: skip requests that cannot be served */
	bool free_at_request;	 /* replay deferred frees at their request */
	bool check;		 /* the policy's check after every event */
	size_t windows_max;	 /* time series length, 0 = 1024 */
	bool losses;		 /* also sample the use of the bytes over time, and at a refused
			       * request */
	bool latency;		 /* sample host latency per call */
	bool only_peaks;	 /* for searches: only how much was reserved, not the use of the
			       * bytes */
	bool fill;  /* all bytes of a block with a pattern, which is compared before its
				  * free; FRAG_ENOTSUP at create if the device has no contents */
	bool paced; /* wait for each event's recorded time */
	/* For whole replays (frag_replay_sim): non-zero ends it with FRAG_EINTR; NULL = never. */
	const volatile sig_atomic_t *stop;
	/* Called on the replaying thread with the number of further events done; may be NULL. */
	void (*progress)(void *ctx, uint64_t events);
	void *progress_ctx;
};
void frag_run_options_defaults(struct frag_run_options *o);

struct frag_run;
/* dev_hdr: streams, pools and slots of the device's trace. */
int frag_run_create(const struct frag_policy_spec *spec, struct frag_device *dev,
		    const struct frag_trace_dev *dev_hdr, const struct frag_run_options *opt,
		    struct frag_run **out, struct frag_err *err);
/* Feeds events in order. Stops early after an OOM (unless skip_oom): see frag_run_stopped. */
int frag_run_feed(struct frag_run *run, const struct frag_event *events, size_t count,
		  struct frag_err *err);
bool frag_run_stopped(const struct frag_run *run);
/* Ends the run: frees what is live, destroys the policy, checks for leaks. */
int frag_run_finish(struct frag_run *run, struct frag_result *out, struct frag_err *err);
/* Metrics without teardown or leak check, for searches, which make many runs. Destroy run and
 * device next; from here on, returning memory is free of charge. */
int frag_run_measure(struct frag_run *run, struct frag_result *out, struct frag_err *err);
void frag_run_destroy(struct frag_run *run); /* NULL: nothing */
FRAG_AUTO_AT(struct frag_run *, frag_run_destroy)
/* Writes the name of the policy into a result. Errors: FRAG_ENOMEM. */
int frag_result_name(struct frag_result *r, const struct frag_policy_spec *spec,
		     struct frag_err *err);

/* A whole replay on a new simulated card of this configuration. */
int frag_replay_sim(const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		    const struct frag_trace_dev *trace, const struct frag_run_options *opt,
		    struct frag_result *out, struct frag_err *err);

/* ---- verify: is the simulation what really happened? -------------------- */

/* Why a card made other segments than the recording. */
enum frag_verify_cause {
	FRAG_CAUSE_NONE,      /* nothing differs, or the cause was not checked (frag_verify) */
	FRAG_CAUSE_ADDRESSES, /* only the card's addresses, as proven on a simulated card */
	FRAG_CAUSE_INPUT,     /* differs at the recorded addresses, too: settings, limit, size */
	FRAG_CAUSE_UNKNOWN,   /* a simulated card with the same addresses behaves differently */
};

struct frag_verify_result {
	uint32_t device_ordinal;
	uint64_t allocs, allocs_same;
	uint64_t segments, segments_same; /* segment events */
	uint64_t ooms, ooms_same;
	uint64_t finals, finals_same; /* blocks of the final snapshot */
	uint64_t refusals;	      /* number of times that the real driver refused memory
				       * (inferred) */
	uint64_t uncertain;	      /* initial blocks whose size the file does not determine */
	uint64_t trims;		      /* releases interpreted as an empty_cache */
	uint64_t pools;		      /* private pools, recorded or inferred */
	bool identical;
	bool undetermined; /* not identical, but not different either: see struct frag_settled */
	char first_difference[400]; /* "" if none; undetermined: why, from which event on */
	enum frag_verify_cause cause;
	char cause_text[900];	       /* and what shows it; "" if FRAG_CAUSE_NONE */
	struct frag_counter *counters; /* the policy's own, as in struct frag_result */
	uint64_t peak_reserved_bytes;
};
void frag_verify_result_release(struct frag_verify_result *r);

/*
 * Replays the recorded settings on a simulated card that follows the recorded
 * addresses and refusals, and compares every segment event, address, oom and
 * the final state. Settles first (frag_settle), so the events may be edited.
 * card: total and context, NULL = the card of the recordings; limit: UINT64_MAX =
 * none known. conf: settings text, NULL = those recorded.
 */
int frag_verify(struct frag_trace *trace, uint32_t dev, const struct frag_sim_config *card,
		uint64_t limit_bytes, const char *conf, struct frag_verify_result *out,
		struct frag_err *err);

/*
 * The same settings on a real card. Compares what does not depend on addresses: requests served and
 * refused, and the segments of each event by kind and size; finals are not compared. `device` is
 * the caller's, empty, simulated or real; card: as above, for what the file leaves open. After a
 * difference, two more replays on simulated cards as large as the device find its cause, because
 * addresses decide ties between blocks of one size. One of them gets the device's addresses, which
 * are logged (24 bytes for each, 32 for each change of a segment). Errors: FRAG_ENOTSUP if the
 * recording began late, FRAG_EINPUT if there is no evidence.
 */
int frag_verify_card(struct frag_trace *trace, uint32_t dev, struct frag_device *device,
		     const struct frag_sim_config *card, uint64_t limit_bytes, const char *conf,
		     struct frag_verify_result *out, struct frag_err *err);

/*
 * Settles every device of a recording, once; every command does this first. Finds by simulation
 * what a reader cannot know: which releases were an empty_cache and which the retry of a malloc,
 * which frees completed inside a synchronisation. Edits the events, and checks whether the replay
 * of its settings matches the recording. The result is devs[].settled.
 *
 * limit_bytes: the caller's limit, tried first (with `only`, no other is tried); UINT64_MAX = none.
 * Next comes the file's limit, or that none was set. Otherwise, where a refusal or a collection
 * shows a limit, what was reserved, retried, released, collected and refused leaves an interval,
 * which is searched for a limit with an identical replay. card: NULL = the card of the bundled
 * recordings. Does nothing without evidence. O(events) times a bounded
 * number. Errors: those of the simulation.
 */
int frag_settle(struct frag_trace *trace, const struct frag_sim_config *card, uint64_t limit_bytes,
		bool only, struct frag_err *err);
/* Sets the recording's settings to `conf`. Errors: FRAG_EUSAGE, FRAG_ENOMEM. */
int frag_settings_use(struct frag_trace *trace, const char *conf, struct frag_err *err);
/* "limit 16.78 GiB, inferred: between 16.70 GiB and 16.80 GiB; verified identical", or the
 * difference and its event; "" if there is nothing to report. */
char *frag_settled_text(const struct frag_settled *s, char *buf, size_t size);

/* The limit of a recording's device: with an identical replay, else the file's; UINT64_MAX. */
uint64_t frag_settled_limit(const struct frag_trace *trace, uint32_t dev);
/* Can a replay of the recorded settings start from the initial state (frag_run_options.restore)?
 * Only under the limit, and on a card, with which it is identical. */
bool frag_settled_restores(const struct frag_trace_dev *td, const struct frag_sim_config *card,
			   uint64_t limit_bytes);

/* Most that was reserved when it was recorded, from its snapshots and segment events, and so the
 * same in every answer; 0 = the file does not say. */
uint64_t frag_recorded_peak(const struct frag_trace_dev *dev);

#endif
