/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One moment of a replay explained: who holds the memory, who keeps the free part of it from being
 * returned, what everything is for; and where a request was refused, why, and what would have
 * served it.
 *
 * Ownership: struct frag_explained owns everything it points to (frag_explained_release), except
 * what its case borrows, and texts, which belong to the answer.
 */
#ifndef FRAG_EXPLAIN_EXPLAIN_H
#define FRAG_EXPLAIN_EXPLAIN_H

#include "answer/answer.h"
#include "answer/row.h"
#include "explain/case.h"

/*
 * What blocks are for, judged by how they behave over the steps (history.h). Of the rules below
 * that hold the first decides in the order permanent or optimizer, kept, gradient-like, carried
 * over, temporary, activation. If steps are not marked, activation is "within a step", and
 * optimizer and gradient-like do not occur. The confidence of a block's kind is the part of all
 * blocks of its stack (without stacks: of its size) that behaved the same.
 */
/* temporary: or freed after 8 requests at most, or allocated and freed within an optimizer step */
#define FRAG_KIND_LIST(X) \
	X(PERMANENT, "permanent", "allocated in the first step, live to the end: weights") \
	X(OPTIMIZER, "optimizer", "allocated in the first optimizer step, live to the end") \
	X(GRADIENT, "gradient-like", \
	  "live through the optimizer step, freed before the next allocation") \
	X(ACTIVATION, "activation", "allocated and freed before the optimizer runs in its step") \
	X(TEMPORARY, "temporary", "freed within 2 % of the requests of its step") \
	X(CARRIED, "carried over", "allocated in one step, freed in the next: a batch, a loss") \
	X(KEPT, "kept", "allocated after the first step, live for two steps or more") \
	X(WITHIN, "within a step", "allocated and freed within one step") \
	X(UNKNOWN, "unknown", "no steps to tell by, or the same stacks do otherwise, too")
#define FRAG_KIND_SURE 0.5f /* confidence below which no kind is shown */
enum frag_kind {
#define FRAG_X_(name, text, rule) FRAG_KIND_##name,
	FRAG_KIND_LIST(FRAG_X_)
#undef FRAG_X_
		FRAG_KINDS
};
const char *frag_kind_name(enum frag_kind kind);
const char *frag_kind_rule(enum frag_kind kind);

struct frag_kind_of {
	uint8_t kind;
	float confidence; /* 0 … 1 */
};

/* Kinds of the blocks of a view, out[view->count], from a pass over all events. */
int frag_kinds_find(const struct frag_events *ev, const struct frag_history *h,
		    const struct frag_heap_view *view, struct frag_kind_of *out,
		    struct frag_err *err);

enum frag_at_what {
	FRAG_AT_AUTO,
	FRAG_AT_PEAK, /* of live memory */
	FRAG_AT_RESERVED,
	FRAG_AT_OOM,
	FRAG_AT_EVENT,
	FRAG_AT_TIME
};
struct frag_at {
	enum frag_at_what what;
	uint64_t n; /* OOM: which, from 1, 0 = the last; EVENT; TIME: us */
};
/* "peak", "reserved", "oom", "oom:2", "event:1000", "time:1.5" (seconds; or with us, ms, s). */
int frag_at_parse(const char *text, struct frag_at *out, struct frag_err *err);

struct frag_explain_options {
	struct frag_at at;
	enum frag_site_by by;
	const char *frame; /* see sites.h */
	size_t top;	   /* rows shown, and whose removal is replayed */
	bool series;	   /* also over time */
};

/* Fields of the rows: JSON, CSV, tables (answer/row.h). */
#define FRAG_SITE_ROW(F, P, S) \
	F(S, BYTES, allocated_bytes, "live", "as granted") \
	F(S, RATIO, share_ratio, "share", "of all live bytes", .precision = 1) \
	F(S, BYTES, requested_bytes, NULL, "live, as requested") \
	F(S, BYTES, waiting_bytes, NULL, "freed, but used by another stream") \
	F(S, COUNT, blocks_count, "blocks", "live or waiting") \
	F(S, COUNT, oldest_event, NULL, "that allocated the oldest block") \
	F(S, COUNT, newest_event, NULL, "that allocated the newest block") \
	F(S, COUNT, oldest_step, "oldest", "step of the oldest block; null after the last step", \
	  .unit = "step", .none = "end", .spare = 4, .if_any = true) \
	F(S, COUNT, newest_step, "newest", "step of the newest block; null after the last step", \
	  .unit = "step", .none = "end", .spare = 3, .if_any = true) \
	F(S, US, oldest_us, NULL, "time of the oldest block") \
	F(S, US, newest_us, NULL, "time of the newest block") \
	F(S, US, oldest_age_us, "age", "of the oldest block", .spare = 2) \
	F(S, TEXT, kind, "kind", "use of most of its bytes; null: below 50 % sure", .spare = 5, \
	  .if_any = true) \
	F(S, RATIO, kind_confidence_ratio, "confidence", \
	  "that the kind is right: the part of the stack's blocks that behaved the same, times " \
	  "the part of the bytes that are of this kind; null without steps", \
	  .spare = 1, .if_any = true) \
	F(S, BYTES, non_releasable_bytes, NULL, "its share of the free bytes in its segments") \
	F(S, RATIO, non_releasable_share_ratio, NULL, "of all non-releasable bytes") \
	F(S, BYTES, alone_bytes, NULL, "non-releasable in segments where nothing else lives") \
	F(S, COUNT, segments_count, NULL, "that its blocks pin") \
	F(S, BYTES, largest_hole_bytes, NULL, "in these segments") \
	F(S, BYTES, regained_bytes, NULL, \
	  "how much more a trim returns without its blocks, replayed; null: " \
	  "not asked for") \
	F(S, TEXT, site, "allocated at", "call site; without stacks, size and step of its blocks")

struct frag_row_key {
	uint64_t a, b; /* site, 0; or size, step */
};

/* A call site; without stacks, the blocks of one size from one step. */
struct frag_row {
	FRAG_ROW_MEMBERS(FRAG_SITE_ROW)
	struct frag_row_key key;
	uint64_t kind_bytes[FRAG_KINDS];
};

#define FRAG_REMEDY_ROW(F, P, S) \
	F(S, BOOL, served, NULL, \
	  "the request, in a replay under every limit that it may have been") \
	F(S, BOOL, uncertain, NULL, "served under some of these limits, not under all") \
	P(S, TEXT, served_text, "served", "the request, in a replay") \
	P(S, TEXT, reach, "then", "how far the recording goes on") \
	F(S, COUNT, events_count, NULL, \
	  "after the request until another one is refused; null: none is, or it is not served") \
	F(S, TEXT, text, "change", "what to do") \
	F(S, TEXT, card, NULL, "the larger card, as --gpu takes it") \
	F(S, TEXT, line, NULL, "to paste; null if there is none") \
	F(S, COUNT, steps_count, "buys steps", \
	  "or passes, until what grows fills the rest; null: nothing does", .if_any = true) \
	F(S, BYTES, bytes, NULL, "that the change frees, or the limit that it needs")
struct frag_remedy {
	FRAG_ROW_MEMBERS(FRAG_REMEDY_ROW)
	unsigned order; /* what gets far comes first, then what can be done at once */
};

#define FRAG_REFUSAL_ROW(F, P, S) \
	F(S, TEXT, verdict, NULL, "leak if memory accumulates, else the verdict of diagnose") \
	F(S, BYTES, request_bytes, NULL, "asked for") \
	F(S, TEXT, line, NULL, "that asked") \
	F(S, BYTES, live_bytes, NULL, "then, with those that wait") \
	F(S, BYTES, reserved_bytes, NULL, "then") \
	F(S, BYTES, non_releasable_bytes, NULL, "then") \
	F(S, BYTES, largest_free_bytes, NULL, "largest hole") \
	F(S, BYTES, excess_bytes, NULL, \
	  "live memory and the request above the limit; null if they fit or the limit is " \
	  "inferred") \
	F(S, BYTES, leak_bytes_per_step, NULL, "that diagnose finds; null: no leak") \
	F(S, TEXT, leak_line, NULL, "to blame for it") \
	F(S, LIST, remedies, NULL, "changes that would have served it", .of = &frag_remedy_shape)
#define FRAG_REMEDIES_MAX 6u
struct frag_refused_request {
	FRAG_ROW_MEMBERS(FRAG_REFUSAL_ROW)
	bool fragmentation; /* else the program needs more */
	bool fits;	    /* with its live memory, and some of the limit to spare */
	const char *growth; /* inside a phase, that diagnose finds; NULL: none */
	struct frag_remedy list[FRAG_REMEDIES_MAX];
};

#define FRAG_KIND_ROW(F, P, S) \
	F(S, TEXT, kind, "kind", "use of the blocks") \
	F(S, BYTES, live_bytes, "live", "bytes of this kind") \
	P(S, RATIO, share_ratio, "share", "of all live bytes", .precision = 1) \
	P(S, COUNT, blocks_count, "blocks", "of this kind") \
	P(S, TEXT, rule, "rule", "how blocks of this kind behave")
FRAG_ROW_STRUCT(frag_kind_row, FRAG_KIND_ROW);

#define FRAG_HIGHEST_ROW(F, P, S) \
	F(S, TEXT, site, NULL, "the call site that holds most at that moment; null: none") \
	F(S, BYTES, bytes, NULL, "that it has") \
	F(S, BYTES, all_bytes, NULL, "of all") \
	F(S, RATIO, share_ratio, NULL, "bytes of all_bytes")
FRAG_ROW_STRUCT(frag_highest, FRAG_HIGHEST_ROW);

/* Active or non-releasable bytes of the largest call sites, over time. */
#define FRAG_CURVES 8u
#define FRAG_CURVE_PARTS 100u
#define FRAG_CURVE_STOPS \
	5u /* of a part: most active, reserved, non-releasable; least active; a pause */
#define FRAG_CURVE_POINTS (FRAG_CURVE_PARTS * FRAG_CURVE_STOPS)
struct frag_curve_set {
	const char *names[FRAG_CURVES];
	size_t count;
	uint64_t bytes[FRAG_CURVE_POINTS][FRAG_CURVES + 1]; /* the last: all others */
	struct frag_highest highest; /* site NULL: no call site has any of it */
};
struct frag_curves {
	size_t points;
	uint64_t events[FRAG_CURVE_POINTS], us[FRAG_CURVE_POINTS];
	uint64_t reserved[FRAG_CURVE_POINTS], active[FRAG_CURVE_POINTS];
	struct frag_curve_set live, non_releasable;
};

#define FRAG_MOMENT_ROW(F, P, S) \
	F(S, TEXT, trace, NULL, "name of the recording") \
	F(S, TEXT, policy, NULL, "the replayed policy") \
	F(S, TEXT, at, NULL, "which moment") \
	F(S, TEXT, text, NULL, "the answer as a sentence") \
	F(S, COUNT, event, "event", "number, from 0") \
	F(S, US, time_us, "time", "since the recording began") \
	F(S, COUNT, step, "step", "number, from 1; null without steps and after the last", \
	  .none = "none") \
	F(S, BYTES, limit_bytes, "limit", "that the process may reserve") \
	F(S, BYTES, limit_low_bytes, "limit, at least", "of an inferred limit") \
	F(S, BYTES, limit_high_bytes, "limit, at most", "of an inferred limit") \
	F(S, BOOL, limit_guessed, "limit assumed: the most that was reserved", \
	  "the recording does not say", .if_any = true) \
	F(S, BYTES, peak_live_bytes, NULL, "of the whole recording") \
	F(S, COUNT, peak_live_event, NULL, "of the replay: when most is live, the first") \
	F(S, US, peak_live_us, "most is live at", "null if a request was refused") \
	F(S, BYTES, peak_reserved_bytes, NULL, "of the whole replay") \
	F(S, COUNT, peak_reserved_event, NULL, "when most is reserved, the first") \
	F(S, US, peak_reserved_us, "most is reserved at", "the same") \
	F(S, BYTES, peak_reserved_live_bytes, NULL, "live then, as granted") \
	F(S, BYTES, peak_reserved_free_bytes, NULL, "reserved and free just before") \
	F(S, BYTES, reserved_bytes, "reserved", "taken from the device") \
	F(S, BYTES, allocated_bytes, "live", "as granted") \
	F(S, BYTES, requested_bytes, NULL, "live, as requested") \
	F(S, BYTES, replayed_peak_bytes, NULL, \
	  "most that the replay reserves; peak_reserved_bytes is what was recorded, if known") \
	F(S, COUNT, blocks_count, "blocks", "live or waiting") \
	F(S, COUNT, sites_count, "call sites", "that they come from") \
	F(S, BYTES, waiting_bytes, "waiting for another stream", \
	  "freed, but used by another stream", .if_any = true) \
	F(S, BYTES, non_releasable_bytes, "free, non-releasable", \
	  "free in segments with live blocks") \
	F(S, COUNT, non_releasable_segments_count, "segments with it", \
	  "free bytes and live blocks") \
	F(S, BYTES, largest_free_bytes, "largest hole", "free bytes in one piece") \
	F(S, BYTES, releasable_bytes, "free, releasable", "a trim returns them") \
	F(S, BYTES, unheld_bytes, NULL, "non-releasable without a block: the policy's own") \
	F(S, OBJECT, oom, NULL, "null unless a request was refused then", \
	  .of = &frag_refusal_shape) \
	F(S, MAP, kinds, NULL, "live bytes by kind", .of = &frag_kind_shape) \
	F(S, LIST, sites, NULL, "the largest first", .of = &frag_site_shape) \
	F(S, OBJECT, live_highest, NULL, "of active memory over time; null without --out", \
	  .of = &frag_highest_shape) \
	F(S, OBJECT, non_releasable_highest, NULL, \
	  "of non-releasable memory over time; null without --out", .of = &frag_highest_shape)
FRAG_ROW_STRUCT(frag_moment, FRAG_MOMENT_ROW);

struct frag_explained {
	struct frag_moment m;
	struct frag_answer *texts; /* owns them */
	struct frag_case in;
	struct frag_explain_options opt;
	struct frag_at at; /* as it was understood */
	size_t step;
	struct frag_loss loss;	    /* then */
	struct frag_heap_view view; /* the blocks then */
	struct frag_kind_of *kinds; /* [view.count] */
	struct frag_kind_row kind_rows[FRAG_KINDS];
	struct frag_row *rows; /* by allocated bytes, the largest first */
	size_t rows_count;
	size_t *pinning; /* [pinning_count] rows with non-releasable bytes, the most first */
	size_t pinning_count;
	uint64_t *fixed; /* [fixed_count] sizes that no batch changes, ascending */
	size_t fixed_count;
	struct frag_refusals refusals;
	const struct frag_refused_at *refusal; /* the one that is explained, or NULL */
	struct frag_refused_request refused;
	struct frag_curves *curves; /* NULL = not asked for */
};

/* in: not opened yet; out has a copy of its own. Errors: FRAG_EINPUT where the moment does not
 * exist, those of replays, FRAG_ENOMEM. */
int frag_explain(const struct frag_case *in, const struct frag_explain_options *opt,
		 struct frag_answer *texts, struct frag_explained *out, struct frag_err *err);
void frag_explained_release(struct frag_explained *x);
/* For FRAG_AUTO: one on the heap, or NULL. */
void frag_explained_destroy_at(struct frag_explained **at);

extern const struct frag_shape frag_moment_shape;
/* Into x->texts, which borrows x. trace, policy: as shown. Charts if curves. Errors: FRAG_ENOMEM. */
int frag_explained_answer(struct frag_explained *x, const char *trace, const char *policy,
			  struct frag_err *err);

/* Parts of it, one file each. */
int frag_explain_rows(struct frag_explained *x, struct frag_err *err);
int frag_explain_regained(struct frag_explained *x, struct frag_err *err);
/* The remedies. per_step: bytes that grow each step or pass, 0 = none. */
int frag_explain_oom(struct frag_explained *x, double per_step, struct frag_err *err);
int frag_explain_curves(struct frag_explained *x, struct frag_err *err);

/* What is otherwise than recorded up to a moment. */
struct frag_explain_edit {
	const struct frag_row *row; /* whose blocks are freed then; NULL: none */
	bool activations;	    /* only activations of the row */
	double smaller;		    /* batch of the moment's step, 0 = as it is */
};
/* Replays up to before `event`, at most the one after the moment. */
int frag_explain_edited(const struct frag_explained *x, const struct frag_explain_edit *edit,
			uint64_t event, struct frag_cursor *s, struct frag_err *err);
/* The size of a request with a smaller batch. */
uint64_t frag_explain_scaled(const struct frag_explained *x, uint64_t bytes, double by);

#endif
