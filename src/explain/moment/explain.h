/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One moment of a replay explained: who holds the memory, who keeps the free part of it from being
 * given back, what everything is for; and where a request was refused, why, and what would have
 * served it.
 *
 * Ownership: struct frag_explained owns everything it points to (frag_explained_release); events,
 * trace and spec are borrowed during the call and by `sites`.
 */
#ifndef FRAG_EXPLAIN_EXPLAIN_H
#define FRAG_EXPLAIN_EXPLAIN_H

#include "explain/history.h"
#include "kinds.h"
#include "recording/target.h"
#include "explain/sites.h"
#include "explain/replay_cursor.h"

enum frag_at_what { FRAG_AT_AUTO, FRAG_AT_PEAK, FRAG_AT_OOM, FRAG_AT_EVENT, FRAG_AT_TIME };
struct frag_at {
	enum frag_at_what what;
	uint64_t n; /* OOM: which, from 1, 0 = the last; EVENT; TIME: us */
};
/* "peak", "oom", "oom:2", "event:1000", "time:1.5" (seconds; or with us, ms, s). */
int frag_at_parse(const char *text, struct frag_at *out, struct frag_err *err);

struct frag_explain_options {
	struct frag_at at;
	enum frag_site_by by;
	const char *frame; /* see sites.h */
	size_t top;	   /* rows whose removal is replayed */
	const struct frag_policy_spec *spec;
	bool recorded;		   /* spec are the recorded settings */
	struct frag_target target; /* no limit: that of the recording, or found from it */
	unsigned threads;
	bool series; /* also over time */
};

struct frag_row_key {
	uint64_t a, b; /* site, 0; or size, step */
};

/* A call site; without stacks, the blocks of one size from one step. */
struct frag_row {
	char *name;
	struct frag_row_key key;
	uint64_t allocated_bytes, requested_bytes, blocks_count, waiting_bytes;
	uint64_t oldest, oldest_us, newest, newest_us; /* event and time of birth */
	uint64_t non_releasable_bytes; /* its share of what blocks keep from being given back */
	uint64_t segments_count, largest_hole_bytes;
	uint64_t alone_bytes; /* non-releasable in segments where nothing else lives */
	bool regained_known;
	uint64_t regained_bytes; /* what a trim gives back more, if its blocks were gone */
	uint64_t kind_bytes[FRAG_KINDS];
	uint8_t kind; /* that most of its bytes are of */
	double confidence;
};

struct frag_remedy {
	bool served; /* the request, in a replay */
	char *text;  /* what to do */
	char *line;  /* to type; NULL = none */
};

#define FRAG_REMEDIES_MAX 8
struct frag_oom_story {
	bool happened;
	uint64_t event, time_us, request_bytes;
	size_t step;
	uint32_t stack;
	bool fragmentation; /* else the program needs it */
	uint64_t live_bytes, reserved_bytes, non_releasable_bytes, largest_free_bytes;
	struct frag_remedy remedies[FRAG_REMEDIES_MAX];
	size_t remedies_count;
};

/* Live bytes and non-releasable bytes of the largest rows, over time. */
#define FRAG_CURVES 8u
#define FRAG_CURVE_POINTS 240u
struct frag_curves {
	char *live_names[FRAG_CURVES], *held_names[FRAG_CURVES];
	size_t live_count, held_count;
	size_t points;
	uint64_t events[FRAG_CURVE_POINTS], us[FRAG_CURVE_POINTS];
	uint64_t reserved[FRAG_CURVE_POINTS], active[FRAG_CURVE_POINTS];
	uint64_t live[FRAG_CURVE_POINTS][FRAG_CURVES + 1]; /* the last: all others */
	uint64_t held[FRAG_CURVE_POINTS][FRAG_CURVES + 1];
};

struct frag_explained {
	struct frag_history history;
	struct frag_sites sites;
	struct frag_at at; /* as it was understood */
	uint64_t event, time_us;
	size_t step;
	uint64_t limit_bytes;
	bool limit_guessed;
	bool estimate; /* of a recording that was made without a GPU */
	bool restores; /* replays begin with what was there when the recording began */
	uint64_t limit_low_bytes, limit_high_bytes; /* where it was inferred; both 0: it was not */
	struct frag_loss loss;			    /* then */
	struct frag_heap_view scene;
	struct frag_kind_of *kinds; /* [scene.count] */
	struct frag_row *rows;	    /* by allocated bytes, the largest first */
	size_t rows_count;
	size_t *held; /* [held_count] rows with non-releasable bytes, the most first */
	size_t held_count;
	uint64_t kind_bytes[FRAG_KINDS], kind_blocks[FRAG_KINDS];
	uint64_t peak_reserved_bytes, peak_event; /* of the whole replay; 0 = it was not needed */
	struct frag_oom_story oom;
	struct frag_curves *curves; /* NULL = not asked for */
};

/* Errors: FRAG_EINPUT where the moment does not exist, those of replays, FRAG_ENOMEM. */
int frag_explain(const struct frag_events *ev, const struct frag_explain_options *opt,
		 struct frag_explained *out, struct frag_err *err);
void frag_explained_release(struct frag_explained *x);

/* Parts of it, one file each. */
int frag_explain_rows(const struct frag_explain_options *opt, struct frag_explained *x,
		      struct frag_err *err);
int frag_explain_regained(const struct frag_events *ev, const struct frag_explain_options *opt,
			  struct frag_explained *x, struct frag_err *err);
int frag_explain_oom(const struct frag_events *ev, const struct frag_explain_options *opt,
		     struct frag_explained *x, struct frag_err *err);
int frag_explain_curves(const struct frag_events *ev, const struct frag_explain_options *opt,
			struct frag_explained *x, struct frag_err *err);
/* Settings of the replays of an explanation. */
void frag_explain_run_options(const struct frag_explain_options *opt,
			      const struct frag_explained *x, struct frag_run_options *run);
/* The row that a block belongs to: its site, or its size and step. Names are made once. */
struct frag_row_key frag_row_key_of(const struct frag_explained *x, const struct frag_held *h);

/* Frees every block that `gone` says, on a stage, and then gives back what can be. */
int frag_cursor_without(struct frag_cursor *s, const struct frag_heap_view *scene,
			bool (*gone)(const void *ctx, const struct frag_held *h), const void *ctx,
			struct frag_err *err);
/* Gives back what can be: all pools. */
int frag_cursor_trim(struct frag_cursor *s, struct frag_err *err);

#endif
