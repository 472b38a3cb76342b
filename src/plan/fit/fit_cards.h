/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which card, and which policy on it, for several recordings: the one that needs most decides.
 *
 * A policy has room on a card if its peak on a card without bounds fits beside the context and the
 * headroom; it is tight if it completes with less. After a recording that ended out of memory it is
 * unknown whether a card has room: it is too small, or unknown.
 *
 * A recording speaks for cards of the compute capability that it was made on: on others the program
 * chooses other kernels. Where each capability was recorded, each card has its judge.
 *
 *	struct frag_fit_cards f = { .target = &target, .headroom = headroom };
 *	frag_catalog_init(&f.catalog, …); frag_recordings_open(&f.units, …);
 *	frag_fit_cards_search(&f, &policies, threads, err) ?: frag_fit_cards_answer(&f, &answer, err);
 */
#ifndef FRAG_PLAN_FIT_CARDS_H
#define FRAG_PLAN_FIT_CARDS_H

#include <frag/plan.h>

#include "answer/answer.h"
#include "recording/policy_texts.h"
#include "recording/recording.h"

/* One policy on all units. */
struct frag_fit_row {
	const char *text;		 /* borrowed from the policy texts */
	struct frag_policy_spec **specs; /* per unit */
	struct frag_fit_task *tasks;	 /* per unit, borrowed from the cards */
	bool complete, possible;
	uint64_t min_bytes, safe_bytes, ample_bytes, peak_bytes; /* each of its worst unit */
	size_t worst; /* the unit that decides about min_bytes */
	uint64_t gpus;
	uint64_t probes;
	bool costly; /* spends much of the recorded time in the driver */
};

struct frag_fit_cards {
	const struct frag_target *target;
	/* [catalog.count]: the search over recordings for card g, with the same catalogue and
	 * policies; NULL, or NULL in it = this one */
	const struct frag_fit_cards *const *judges;
	const struct frag_gpu_chip *chip; /* that all units were recorded on; NULL = not known */
	bool shared;			  /* processes were on one card */
	bool ended;			  /* a recording did, out of memory */
	bool partial;			  /* an interruption left out recordings for other cards */
	bool failed; /* the program failed for another reason when it was recorded: nothing is known */
	struct frag_headroom headroom; /* search adds what the recordings held outside */
	struct frag_recordings units;
	struct frag_catalog catalog;
	bool borrows; /* the catalogue is another's */
	struct frag_fit_row *rows;
	size_t rows_count, interrupted; /* policies whose search did not end */
	struct frag_fit_task *tasks;
};

/* Those that are tried if none was named; then checks them all. Errors: FRAG_EUSAGE. */
int frag_fit_policies(struct frag_policy_texts *policies, struct frag_err *err);
/* Rows for the policies, each different on some unit. Errors: FRAG_EUSAGE (no policy is left),
 * those of the search; an interruption is none. */
int frag_fit_cards_search(struct frag_fit_cards *f, const struct frag_policy_texts *policies,
			  unsigned threads, struct frag_err *err);
void frag_fit_cards_release(struct frag_fit_cards *f);

/* Do these recordings speak for card g? UNKNOWN: they name no card, or g is no known one. */
enum frag_fit_basis {
	FRAG_FIT_UNKNOWN,
	FRAG_FIT_RECORDED,
	FRAG_FIT_OTHER_KERNELS,
	FRAG_FIT_FAILED
};
enum frag_fit_basis frag_fit_basis(const struct frag_fit_cards *f, size_t g);
/* What judges card g. */
const struct frag_fit_cards *frag_fit_judge(const struct frag_fit_cards *f, size_t g);
/* May card g be enough or not, for all that is known? */
bool frag_fit_open(const struct frag_fit_cards *f, size_t g);

/* What card g has for the process; what the policy reserves if nothing is short. Bytes. */
uint64_t frag_fit_room(const struct frag_fit_cards *f, size_t g, const struct frag_headroom *kept);
uint64_t frag_fit_peak(const struct frag_fit_cards *f, const struct frag_fit_row *row);
/* Does it run on card g with room for its peak and all that is to stay free? */
bool frag_fit_roomy(const struct frag_fit_cards *f, const struct frag_fit_row *row, size_t g);
/* The best policy on card g: with room before tight, then without much time in the driver, then the
 * one that reserves least; SIZE_MAX = none completes. */
size_t frag_fit_best_row(const struct frag_fit_cards *f, size_t g);
/* The smallest card, or where all have a price the cheapest, on which `row` (SIZE_MAX = the best
 * policy of each card) has room; others: also those with other kernels. SIZE_MAX = none. */
size_t frag_fit_card(const struct frag_fit_cards *f, size_t row, bool others);
/* The same card for a peak that is known: of the recorded kernels (chip; NULL = not known), else of
 * others; NULL = none. */
const struct frag_gpu *frag_fit_gpu(const struct frag_catalog *cards,
				    const struct frag_headroom *headroom,
				    const struct frag_gpu_chip *chip, uint64_t peak_bytes);
/* For the time that was recorded, a card for each device; NaN = not known. */
double frag_fit_job_price(const struct frag_fit_cards *f, const struct frag_gpu *gpu);

/* What the answer says beside its tables (fit_sentences.c): how it was searched; what fails on all
 * cards, and sizes above the smallest that fail. */
const char *frag_fit_row_name(const struct frag_fit_row *row);
/* The sentence where a replay of the recorded settings reserves something else, so that no card is
 * named; NULL: none does. */
const char *frag_fit_unreproduced(const struct frag_fit_cards *f, struct frag_answer *a);
void frag_fit_remarks(const struct frag_fit_cards *f, struct frag_answer *a);
void frag_fit_say_rows(const struct frag_fit_cards *f, struct frag_answer *a);
/* Of the command, also of --vary. */
extern const struct frag_shape frag_fit_shape;
int frag_fit_cards_answer(const struct frag_fit_cards *f, struct frag_answer *a,
			  struct frag_err *err);

/* --vary: the greatest number with which a program completes on a card. */
#define FRAG_VARY_PROBES 64u

struct frag_vary_probe {
	uint64_t value;
	bool completes; /* the program ended with status 0, and no request was refused, even if caught */
	uint64_t peak_reserved_bytes;
	int64_t exit_status;
};

struct frag_vary {
	const char *name;     /* "{batch}" */
	uint64_t first, last; /* the range, below 2^32 */
	struct frag_vary_probe probes[FRAG_VARY_PROBES];
	size_t probes_count;
	bool any; /* the first completes */
	uint64_t best;
};

/* card: as sentences name it. */
int frag_vary_answer(const struct frag_vary *v, const char *card, struct frag_answer *a,
		     struct frag_err *err);

#endif
