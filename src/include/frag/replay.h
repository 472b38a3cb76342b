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

/* What is done to every block on a device with real memory. */
enum frag_fill {
	FRAG_FILL_NONE,
	FRAG_FILL_TOUCH,  /* the first byte of each page is written after the alloc */
	FRAG_FILL_VERIFY, /* a pattern into all bytes, and compared before the free */
};

struct frag_run_options {
	uint64_t limit_bytes; /* UINT64_MAX = none */
	uint64_t seed;
	unsigned source_release; /* of the allocator that is simulated; 0 = of the recording's */
	uint64_t sync_every;	 /* synchronise the device after every n operations; 0 = never */
	bool restore;  /* start from the state that a recording began with (policies that can) */
	bool skip_oom; /* --on-oom=skip: drop what cannot be served and go on */
	bool free_at_request; /* replay deferred frees at their request */
	bool check;	      /* the policy's check after every event */
	size_t windows_max;   /* time series length, 0 = 1024 */
	bool losses;	      /* also sample where the bytes are over time, and at a refusal */
	bool latency;	      /* sample host latency per call */
	bool only_peaks;      /* searches: how much was reserved, not where the bytes were then */
	enum frag_fill fill;  /* FRAG_ENOTSUP at create where the device has no contents */
	uint64_t work_ns;     /* every alloc queues work of this length on its stream; 0 = none */
	bool paced;	      /* wait until an event is due by the recorded time */
	/* Of whole replays (frag_replay_sim): non-zero ends one early with FRAG_EINTR; NULL = never. */
	const volatile sig_atomic_t *stop;
	/* Told how many more events are done, now and then, on the replaying thread; may be NULL. */
	void (*progress)(void *ctx, uint64_t events);
	void *progress_ctx;
};
void frag_run_options_defaults(struct frag_run_options *o);

struct frag_run;
/* dev_hdr: streams, pools, slots of the device's trace. */
int frag_run_create(const struct frag_policy_spec *spec, struct frag_device *dev,
		    const struct frag_trace_dev *dev_hdr, const struct frag_run_options *opt,
		    struct frag_run **out, struct frag_err *err);
/* Feeds events in order. Stops early after an OOM (unless skip_oom): see frag_run_stopped. */
int frag_run_feed(struct frag_run *run, const struct frag_event *events, size_t count,
		  struct frag_err *err);
bool frag_run_stopped(const struct frag_run *run);
/* Ends the run: frees what is live, destroys the policy, checks for leaks. */
int frag_run_finish(struct frag_run *run, struct frag_result *out, struct frag_err *err);
/* Only the figures of a run that goes next, with its device: nothing is freed or looked for, and giving
 * back costs nothing from here on. For searches, which make many runs. */
int frag_run_measure(struct frag_run *run, struct frag_result *out, struct frag_err *err);
void frag_run_destroy(struct frag_run *run);
/* Writes into a result which policy it is of. Errors: FRAG_ENOMEM. */
int frag_result_name(struct frag_result *r, const struct frag_policy_spec *spec,
		     struct frag_err *err);

/* All at once on one simulated card (a fresh one of this configuration). */
int frag_replay_sim(const struct frag_policy_spec *spec, const struct frag_sim_config *card,
		    const struct frag_trace_dev *trace, const struct frag_run_options *opt,
		    struct frag_result *out, struct frag_err *err);

/* ---- verify: is the simulation what really happened? -------------------- */

/* Why a card made other segments than were recorded. */
enum frag_verify_cause {
	FRAG_CAUSE_NONE,      /* nothing differs, or nobody asked (frag_verify) */
	FRAG_CAUSE_ADDRESSES, /* shown on a simulated card: its addresses, and nothing else */
	FRAG_CAUSE_INPUT,     /* at the recorded addresses it differs, too: settings, limit, size */
	FRAG_CAUSE_UNKNOWN,   /* at the same addresses a simulated card does not do the same */
};

struct frag_verify_result {
	uint32_t device_ordinal;
	uint64_t allocs, allocs_same;
	uint64_t segments, segments_same; /* segment events */
	uint64_t ooms, ooms_same;
	uint64_t finals, finals_same; /* blocks of the final snapshot */
	uint64_t refusals;	      /* times the real driver refused memory (inferred) */
	uint64_t uncertain;	      /* initial blocks whose size the file does not determine */
	uint64_t trims;		      /* releases taken for an empty_cache */
	uint64_t pools;		      /* private pools, recorded or inferred */
	bool identical;
	bool undetermined; /* not identical, but not different either: see struct frag_settled */
	char first_difference[400]; /* "" if none; undetermined: why, from which event on */
	enum frag_verify_cause cause;
	char cause_text[900]; /* and what shows it; "" if FRAG_CAUSE_NONE */
	struct frag_counter
		*counters; /* the policy's own statistics at the end, as in struct frag_result */
	uint64_t peak_reserved_bytes;
};
void frag_verify_result_release(struct frag_verify_result *r);

/*
 * Replays the recorded settings on a simulated card that follows the recorded
 * addresses and refusals, and compares every segment event, address, oom and
 * the final state. Resolves first (frag_resolve), so the events may be edited.
 * card: total and context, NULL = the card of the recordings; limit: UINT64_MAX =
 * none known. conf: settings text, NULL = those recorded.
 */
int frag_verify(struct frag_trace *trace, uint32_t dev, const struct frag_sim_config *card,
		uint64_t limit_bytes, const char *conf, struct frag_verify_result *out,
		struct frag_err *err);

/*
 * The same settings on a real card: what does not depend on addresses is compared, that is
 * requests served and refused, and the segments of each event by kind and size. finals are
 * not. `device` is the caller's, empty, simulated or not; card: as above, for what the file
 * leaves open. After a difference two more replays, on simulated cards as large as the device,
 * find its cause: addresses decide ties between blocks of one size. One of them is given
 * those that the device gave, which are written down on the way (24 bytes for each, 32 for
 * each change of a segment). Errors: FRAG_ENOTSUP where the recording began late, FRAG_EINPUT
 * where there is no evidence.
 */
int frag_verify_card(struct frag_trace *trace, uint32_t dev, struct frag_device *device,
		     const struct frag_sim_config *card, uint64_t limit_bytes, const char *conf,
		     struct frag_verify_result *out, struct frag_err *err);

/*
 * Settles what a reader cannot know without simulating: which releases were
 * an empty_cache and which the retry of a malloc, which frees completed inside
 * a synchronisation. Edits trace->devs[dev].events. Idempotent.
 */
int frag_resolve(struct frag_trace *trace, uint32_t dev, const struct frag_sim_config *card,
		 uint64_t limit_bytes, struct frag_err *err);

/*
 * Settles every device of a recording, once, as every command does first: resolves it, and
 * finds out whether the replay of its settings is what was recorded. The result is devs[].settled.
 *
 * limit_bytes: as the caller gives it, UINT64_MAX = not given. One that is given is tried first; with
 * `only`, nothing else is. Then what the file says; else what was reserved, retried, released,
 * collected and refused leaves an interval, and one with which the replay is identical is looked
 * for in it. card: NULL = that of the recordings. Does nothing without evidence.
 * O(events) times a bounded number. Errors: those of the simulation.
 */
int frag_settle(struct frag_trace *trace, const struct frag_sim_config *card, uint64_t limit_bytes,
		bool only, struct frag_err *err);
/* The settings of the recording are `conf`, whatever the file says. Errors: FRAG_EUSAGE, FRAG_ENOMEM. */
int frag_settings_use(struct frag_trace *trace, const char *conf, struct frag_err *err);
/* "limit 16.78 GiB, inferred: between 16.70 GiB and 16.80 GiB; verified identical", or what differs
 * and from which event on; "" where there is nothing to say. */
char *frag_settled_text(const struct frag_settled *s, char *buf, size_t size);

/* The limit of a device of a recording: that with which its replay is identical, else what the file
 * says; UINT64_MAX = none that is known. */
uint64_t frag_settled_limit(const struct frag_trace *trace, uint32_t dev);
/* Can a replay of the recorded settings begin with what was there when the recording began
 * (frag_run_options.restore)? Under the limit and on a card with which it is identical. */
bool frag_settled_restores(const struct frag_trace_dev *td, const struct frag_sim_config *card,
			   uint64_t limit_bytes);

/* Most bytes that the recorded allocator held in segments at once, by the evidence. */
uint64_t frag_recorded_peak(const struct frag_trace_dev *dev);

#endif
