/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One moment of a replay explained: who holds the memory, who keeps the free part of it from being
 * given back, what everything is for; and where a request was refused, why, and what would have
 * served it.
 *
 * Ownership: struct frag_explained owns everything it points to (frag_explained_release), but for what its case borrows.
 */
#ifndef FRAG_EXPLAIN_EXPLAIN_H
#define FRAG_EXPLAIN_EXPLAIN_H

#include "explain/case.h"
#include "kinds.h"

enum frag_at_what { FRAG_AT_AUTO, FRAG_AT_PEAK, FRAG_AT_OOM, FRAG_AT_EVENT, FRAG_AT_TIME };
struct frag_at {
	enum frag_at_what what;
	uint64_t n; /* OOM: which, from 1, 0 = the last; EVENT; TIME: us */
};
/* "at the peak", by enum frag_at_what */
extern const char *const frag_at_words[];
/* "peak", "oom", "oom:2", "event:1000", "time:1.5" (seconds; or with us, ms, s). */
int frag_at_parse(const char *text, struct frag_at *out, struct frag_err *err);

struct frag_explain_options {
	struct frag_at at;
	enum frag_site_by by;
	const char *frame; /* see sites.h */
	size_t top;	   /* rows whose removal is replayed */
	bool series;	   /* also over time */
};

struct frag_row_key {
	uint64_t a, b; /* site, 0; or size, step */
};

/* A call site; without stacks, the blocks of one size from one step. */
struct frag_row {
	const char *name;
	char *own_name; /* NULL: that of a call site */
	struct frag_row_key key;
	uint64_t allocated_bytes, requested_bytes, blocks_count, waiting_bytes;
	double share_ratio;			      /* of all allocated bytes */
	uint64_t oldest_event, newest_event;	      /* births */
	uint64_t oldest_us, newest_us, oldest_age_us; /* age: at the moment */
	uint64_t oldest_step, newest_step;	      /* from 1; UINT64_MAX: in none */
	uint64_t non_releasable_bytes;		      /* its share of what blocks pin */
	double non_releasable_share_ratio;	      /* of all non-releasable bytes */
	uint64_t segments_count, largest_hole_bytes;
	uint64_t alone_bytes; /* non-releasable in segments where nothing else lives */
	uint64_t
		regained_bytes; /* what a trim gives back more without its blocks; UINT64_MAX = unknown */
	uint64_t kind_bytes[FRAG_KINDS];
	const char *kind; /* of most of its bytes */
	double kind_confidence_ratio;
};

enum frag_remedy_kind {
	FRAG_REMEDY_SETTING,	  /* of the allocator: conf, or how many were tried in vain */
	FRAG_REMEDY_EMPTY_CACHE,  /* before the request */
	FRAG_REMEDY_FREE_PINNING, /* the blocks of `site`, which pin `bytes` */
	FRAG_REMEDY_FREE_LIVE,	  /* the blocks of `site`, of which `bytes` are live */
	FRAG_REMEDY_BATCH,	  /* smaller by `ratio` */
	FRAG_REMEDY_CARD,	  /* this one or a larger one */
	FRAG_REMEDIES_MAX
};

struct frag_remedy {
	enum frag_remedy_kind kind;
	bool served; /* the request, in a replay */
	char *conf;
	const char *site, *card;
	uint64_t bytes, tried_count;
	double ratio;
};

struct frag_refused_request {
	bool happened;
	uint64_t request_bytes;
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
	char *live_names[FRAG_CURVES], *pinned_names[FRAG_CURVES];
	size_t live_count, pinned_count;
	size_t points;
	uint64_t events[FRAG_CURVE_POINTS], us[FRAG_CURVE_POINTS];
	uint64_t reserved[FRAG_CURVE_POINTS], active[FRAG_CURVE_POINTS];
	uint64_t live[FRAG_CURVE_POINTS][FRAG_CURVES + 1]; /* the last: all others */
	uint64_t pinned[FRAG_CURVE_POINTS][FRAG_CURVES + 1];
};

struct frag_explained {
	struct frag_case in;
	struct frag_explain_options opt;
	struct frag_at at; /* as it was understood */
	uint64_t event, time_us;
	size_t step;
	struct frag_loss loss;	    /* then */
	struct frag_heap_view view; /* the blocks then */
	struct frag_kind_of *kinds; /* [view.count] */
	struct frag_row *rows;	    /* by allocated bytes, the largest first */
	size_t rows_count;
	size_t *pinned; /* [pinned_count] rows with non-releasable bytes, the most first */
	size_t pinned_count;
	uint64_t kind_bytes[FRAG_KINDS], kind_blocks[FRAG_KINDS];
	uint64_t peak_reserved_bytes, peak_event; /* of the whole replay; 0 = it was not needed */
	struct frag_refused_request refused;
	struct frag_curves *curves; /* NULL = not asked for */
};

/* in: not opened yet; out has a copy of its own. Errors: FRAG_EINPUT where the moment does not exist, those of replays,
 * FRAG_ENOMEM. */
int frag_explain(const struct frag_case *in, const struct frag_explain_options *opt,
		 struct frag_explained *out, struct frag_err *err);
void frag_explained_release(struct frag_explained *x);

/* Parts of it, one file each. */
int frag_explain_rows(struct frag_explained *x, struct frag_err *err);
int frag_explain_regained(struct frag_explained *x, struct frag_err *err);
int frag_explain_oom(struct frag_explained *x, struct frag_err *err);
int frag_explain_curves(struct frag_explained *x, struct frag_err *err);
/* Frees the blocks of a row in a replay that is at the moment. */
int frag_explain_free_row(const struct frag_explained *x, const struct frag_row *row,
			  struct frag_cursor *s, struct frag_err *err);

#endif
