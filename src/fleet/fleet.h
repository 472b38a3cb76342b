/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of a sweep as a capacity plan.
 *
 *   fleet_load.c    results -> jobs: what each rank needs under each policy
 *   fleet_choose.c  for each job today's card and setting, and the cheapest that would do
 *   fleet_pack.c    several ranks on one card: first fit decreasing beside its lower bound
 *   fleet_answer.c  the plan as an answer; fleet_charts.c its charts
 *
 * Words. unit: one device of one trace, that is one rank, which has a card (or a MIG slice) to
 * itself or shares one. job: the units whose paths differ only in the number behind "rank", and all
 * devices of a trace; its units run at the same time, on cards of one kind, one unit of a job on a
 * card. need: most bytes reserved; of a job that of its worst unit. today: the settings that were
 * recorded, or, if no file says them, the first policy of the sweep. Sums compare the same jobs
 * throughout: those that have a card today. Jobs that only the plan gives a card are summed on
 * their own; the others are in no sum.
 */
#ifndef FRAG_FLEET_FLEET_H
#define FRAG_FLEET_FLEET_H

#include <stdbool.h>
#include <stdint.h>

#include <frag/device.h>
#include <frag/error.h>

#include "answer/answer.h"

struct frag_fleet_point {
	uint64_t us, bytes; /* from this moment on, since the trace began */
};

/* One unit under one policy. */
struct frag_fleet_use {
	bool seen, completed;
	uint64_t reserved_bytes; /* the peak */
	uint64_t bound_bytes;	 /* no allocator can reserve less */
	struct frag_fleet_point *curve;
	size_t curve_count;
};

struct frag_fleet_unit {
	size_t job;
	char *label;	   /* "path device 1" */
	uint64_t start_us; /* Unix time, 0 = not recorded */
	uint64_t duration_us;
	struct frag_fleet_use *uses; /* [policies_count] */
};

/* A choice for a job: a policy and the cheapest card for it. card NULL: none. */
struct frag_fleet_choice {
	size_t policy;
	uint64_t need_bytes;
	const struct frag_gpu *card;
};

struct frag_fleet_job {
	char *name;
	size_t first_unit, units_count;
	bool today_recorded, estimate;	  /* estimate: a trace of it was recorded without a GPU */
	const struct frag_gpu_chip *chip; /* that it was recorded on; NULL = not known */
	bool ended;	      /* a trace of it ended out of memory: what the job needs is unknown */
	bool unreproduced;    /* nor what another setting saves: it stays, and is in no sum */
	uint64_t bound_bytes; /* of the worst unit */
	struct frag_fleet_choice today, best;
};

/* Cards of one kind with several units each. */
struct frag_fleet_pack {
	const struct frag_gpu *card; /* NULL: not asked for, or nothing fits */
	size_t units, cards;	     /* what was packed onto how many, peaks added up */
	size_t bound;		     /* no packing needs fewer */
	size_t cards_measured;	     /* at the recorded times; 0 = these are not known */
	size_t left_out;	     /* units of jobs that do not fit the card */
	/* of units packed, a card each as in the plan; all that have a card, shared or not */
	double own_price, total_cost;
	uint64_t own_bytes;
};

struct frag_fleet {
	struct frag_headroom headroom; /* what stays free on each card */
	struct frag_catalog catalog;
	char **policies;
	bool *settable; /* [policies_count]: settings of PyTorch, a line to paste */
	size_t policies_count, policies_cap;
	struct frag_fleet_unit *units; /* those of a job next to each other */
	size_t units_count, units_cap;
	struct frag_fleet_job *jobs; /* by name */
	size_t jobs_count, jobs_cap;
	/* traces that failed; jobs that are estimates, ended, not reproduced */
	size_t failures, estimates, ended, unreproduced;
	struct frag_fleet_pack today, best; /* sharing under today's settings and the best ones */
};

int frag_fleet_load(struct frag_fleet *f, const char *path, struct frag_err *err);
void frag_fleet_release(struct frag_fleet *f);

/* only: the one policy text to move to, NULL = any of the sweep. */
void frag_fleet_advise(struct frag_fleet *f, const char *only);
enum frag_fleet_which {
	FRAG_FLEET_TODAY,  /* jobs that have a card today */
	FRAG_FLEET_PLAN,   /* the same jobs */
	FRAG_FLEET_GAINED, /* jobs that have one only with the plan */
};
/* Cards and money per hour of these jobs; price: 0 where a card has none. */
struct frag_fleet_sum {
	size_t cards, jobs, jobs_without; /* without: of all jobs, those without a card */
	size_t moved;			  /* jobs on a smaller card than today */
	uint64_t reserved_bytes, live_bytes, card_bytes;
	int64_t card_bytes_saved; /* by those that moved */
	double price, price_saved;
	bool priced;
};
struct frag_fleet_sum frag_fleet_sum(const struct frag_fleet *f, enum frag_fleet_which which);

/* Need of the worst unit of a job under a policy; false, *need 0: it does not run, or unknown. */
bool frag_fleet_need(const struct frag_fleet *f, const struct frag_fleet_job *job, size_t policy,
		     uint64_t *need);
/* Does a job's choice fit this card, with what has to stay free? */
bool frag_fleet_fits(const struct frag_fleet *f, const struct frag_fleet_choice *c,
		     const struct frag_gpu *card);
/* One policy for the jobs that have a card today; one that was not swept under it, or was refused
 * memory, stays as it is. */
struct frag_fleet_setting {
	size_t tried, moved, refused; /* jobs swept; that a smaller card then does; refused */
	size_t gained;		      /* jobs that have a card only so; in no sum here */
	uint64_t reserved_bytes;
	int64_t card_bytes_saved;
	double price_saved; /* an hour, where all cards in question have a price */
};
struct frag_fleet_setting frag_fleet_setting(const struct frag_fleet *f, size_t policy);

/* share NULL: the card that needs least money, or memory, for all; or none if that saves nothing. */
int frag_fleet_share(struct frag_fleet *f, const struct frag_gpu *share, struct frag_err *err);
/* Of a number of cards: money, or without prices for all of the catalogue their memory. */
double frag_fleet_cost(const struct frag_fleet *f, const struct frag_gpu *card, size_t count);

/* Need of every rank, cards of each kind, one setting for all (fleet_charts.c). Errors: FRAG_ENOMEM. */
int frag_fleet_charts(const struct frag_fleet *f, struct frag_answer *a, struct frag_err *err);
/* The plan as an answer, which borrows the fleet. top: jobs in the text. Errors: FRAG_ENOMEM. */
extern const struct frag_shape frag_fleet_shape;
int frag_fleet_answer(const struct frag_fleet *f, size_t top, struct frag_answer *a,
		      struct frag_err *err);

#endif
