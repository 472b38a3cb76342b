/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layouts of a job fit which cards: the program is recorded without a GPU with the values of a layout, and judged as `fit` does it.
 *
 *   layout_asked.c  from the options of the command to the plan
 *   ../axes.c     names in the command, their values, the command of a layout
 *   ../where.c    conditions that leave layouts out
 *   presets.def     launchers that name their own options
 *   config*.c       values in files that the command names
 *   border.c        which layouts have to run
 *   layout_record.c one layout, in a process of its own
 *   layout_points.c classes of cards, numbers of ranks, points of the search, and which to take
 *   layout_run.c    all of them, several at a time
 *   layout_answer.c what came of it
 *   layout_map.c    the same as a map
 *
 * Words. layout: a value for each name. class: the cards of one compute capability; one recording on a card with unlimited memory
 * stands for all of them. confirm: record an advised layout on the card itself.
 *
 * Ownership: frag_layouts_release. Texts of the plan are borrowed.
 */
#ifndef FRAG_LAYOUT_LAYOUTS_H
#define FRAG_LAYOUT_LAYOUTS_H

#include "answer/answer.h"
#include "answer/row.h"
#include "explain/moment/explain.h"
#include "fleet/sweep.h"
#include "pretend/axes.h"
#include "pretend/layout/border.h"
#include "pretend/layout/config.h"
#include "plan/kvcache/kvcache.h"
#include "pretend/start/start.h"
#include "recording/policy_texts.h"

#define FRAG_LAYOUT_CARDS 8u
#define FRAG_LAYOUT_JOBS 64u
#define FRAG_LAYOUT_WHERE 16u

enum frag_layout_status {
	FRAG_LAYOUT_UNKNOWN, /* it did not run */
	FRAG_LAYOUT_RAN,
	FRAG_LAYOUT_MEMORY,  /* out of memory on the pretended card */
	FRAG_LAYOUT_FAILED,  /* for another reason */
	FRAG_LAYOUT_ENDLESS, /* the time limit ended it */
};

/* On one card, with the best setting of the allocator. */
struct frag_layout_on_card {
	bool completes, roomy; /* no request is refused; the margin also stays free */
	char setting[96];
	uint64_t peak_reserved_bytes, room_bytes;
	uint64_t rank; /* that needs most; UINT64_MAX = unknown */
};

/* Without pointers, as it is shared with a child. */
struct frag_layout_result {
	enum frag_layout_status status;
	bool anew; /* unknown: it failed in a fork, and runs again in a new Python */
	char message[240];
	struct frag_layout_on_card cards[FRAG_LAYOUT_CARDS];
	uint64_t min_bytes;	    /* smallest card, with the best setting */
	uint64_t rank;		    /* that needs most */
	uint64_t ranks;		    /* recorded */
	uint64_t events;	    /* of all ranks */
	uint64_t kinds[FRAG_KINDS]; /* live bytes of that rank at its peak, by what they are for */
	uint64_t free_bytes;	    /* of the peak of reserved memory: the rest */
	uint64_t step_us;	    /* by the roofline; UINT64_MAX = unknown */
	double recomputed;	    /* of its time; NAN = unknown */
	struct frag_engine_log engine; /* what a serving engine printed */
	uint64_t engines;	       /* data-parallel ones, each with such a cache */
};

#define FRAG_LAYOUT_CONFIRMS 64u

/* A point, recorded on the card itself. */
struct frag_layout_confirm {
	size_t point, card;
	struct frag_layout_result result;
};

/* The options of a layout command as given; texts are borrowed. */
struct frag_layout_asked {
	const char *gpus, *world, *rising, *falling, *preset, *price;
	const char *vary[FRAG_AXES_MAX];
	size_t vary_count;
	bool serve; /* preset and degrees by the command */
	char *const *program;
	struct frag_headroom headroom;
	char degrees[3][32]; /* made, of a serving command: "pp=2" */
};

struct frag_layouts {
	struct frag_layout_asked asked;
	/* the plan */
	char **words;			     /* the command with the options of the preset */
	char *settings[FRAG_CONFIG_MAX + 1]; /* values within files; released with the rest */
	struct frag_axes axes;
	size_t world; /* the axis of ranks; SIZE_MAX = none */
	const char *where[FRAG_LAYOUT_WHERE];
	size_t where_count;
	const struct frag_gpu *cards[FRAG_LAYOUT_CARDS];
	size_t cards_count;
	double prices[FRAG_LAYOUT_CARDS]; /* of a card for an hour; NAN = not given */
	struct frag_policy_texts policies;
	struct frag_headroom headroom;
	struct frag_pretend pretend; /* ranks: of layouts with several */
	uint64_t seed;
	unsigned jobs, time_limit_s;
	uint64_t checks;
	bool fresh; /* each on the card itself, in a Python of its own, whatever was recorded before: programs that adapt to its memory */
	/* that the cache of a serving engine has to hold; 0: no engine. Engines are always recorded on the card itself, and never reused */
	uint64_t requests;
	uint64_t request_tokens;
	const char *keep;	       /* folder for the recordings; NULL = none */
	bool resume;		       /* recordings in `keep` are reused */
	struct frag_sweep_shard shard; /* every n-th group from the i-th on; n 0: all */
	const char *store;	       /* file for the results of `keep`; NULL = none */
	void (*tell)(const void *ctx, const char *text);
	const void *ctx;
	/* found */
	const char *folder;		   /* temporary, of all layouts */
	size_t classes[FRAG_LAYOUT_CARDS]; /* of each card */
	size_t classes_count;
	size_t *points; /* [border.count]: layout * classes_count + class */
	struct frag_border border;
	struct frag_layout_result *results; /* [border.count] */
	struct frag_layout_confirm confirms[FRAG_LAYOUT_CONFIRMS];
	size_t confirms_count;
	uint64_t recordings;
	bool interrupted;
};

/* Adds one --vary, one --where; sets --shard. Errors: FRAG_EUSAGE. */
int frag_layout_vary(void *layouts, const char *text, struct frag_err *err);
int frag_layout_where(void *layouts, const char *text, struct frag_err *err);
int frag_layout_shard(void *layouts, const char *text, struct frag_err *err);
/* Completes the plan from what was asked. The catalog: for --gpu. Errors: FRAG_EUSAGE. */
int frag_layouts_plan(struct frag_layouts *x, const struct frag_catalog *catalog,
		      struct frag_err *err);
/* Checks the plan and lists the layouts. Errors: FRAG_EUSAGE. */
int frag_layouts_open(struct frag_layouts *x, struct frag_err *err);
/* Runs what has to run, the checks, and the confirmations. An interruption is no error. */
int frag_layouts_run(struct frag_layouts *x, struct frag_err *err);
/* Writes what `cufrag sweep KEEP -o STORE` does, on the cards of the plan, if it was asked for. */
int frag_layouts_store(const struct frag_layouts *x, const struct frag_target *target,
		       struct frag_err *err);
void frag_layouts_release(struct frag_layouts *x);

/* Runs in a process of its own: records point i, on card `on` (SIZE_MAX: with enough memory). log: the output of the program. */
void frag_layout_record(const struct frag_layouts *x, size_t i, size_t on, const char *log,
			struct frag_layout_result *out);
/* Makes the folder of --keep, with the command. Errors: FRAG_EUSAGE if it has recordings of another one; FRAG_EOUTPUT. */
int frag_layout_open_keep(const struct frag_layouts *x, struct frag_err *err);

static inline size_t frag_layout_of(const struct frag_layouts *x, size_t i)
{
	return x->points[i] / x->classes_count;
}
/* Is card c in the class of point i? */
static inline bool frag_layout_on(const struct frag_layouts *x, size_t i, size_t c)
{
	return x->classes[c] == x->points[i] % x->classes_count;
}
/* The first card of its class. */
size_t frag_layout_card(const struct frag_layouts *x, size_t i);
/* Ranks of a layout; 1 where none were asked for. Of a serving engine that starts them itself, by its degrees tp, pp and dp. */
uint64_t frag_layout_world(const struct frag_layouts *x, size_t layout);
/* Serving engines of a layout, each with a cache: its degree dp. */
uint64_t frag_layout_engines(const struct frag_layouts *x, size_t layout);
/* The number of requests that the caches of a recorded layout hold. */
uint64_t frag_layout_held(const struct frag_layouts *x, const struct frag_layout_result *r);
/* NULL = it was not recorded on card c itself. */
const struct frag_layout_result *frag_layout_confirmed(const struct frag_layouts *x, size_t i,
						       size_t c);
/* Does point i fit card c? A confirmation overrides other results. */
bool frag_layout_fits(const struct frag_layouts *x, size_t i, size_t c);
/* The layout to advise for card c and this number of ranks: the largest along rising axes, on a tie the first; SIZE_MAX = none. */
size_t frag_layout_best(const struct frag_layouts *x, size_t c, uint64_t world);
/* The fewest ranks with which one fits; 0 = none. */
uint64_t frag_layout_fewest(const struct frag_layouts *x, size_t c);

/* For another reason than memory? */
static inline bool frag_layout_failed(const struct frag_layout_result *r)
{
	return r->status == FRAG_LAYOUT_FAILED || r->status == FRAG_LAYOUT_ENDLESS;
}

/* ---- the answer ------------------------------------------------------------------------ */

extern const struct frag_shape frag_layouts_shape;
int frag_layouts_answer(const struct frag_layouts *x, struct frag_answer *a, struct frag_err *err);

#endif
