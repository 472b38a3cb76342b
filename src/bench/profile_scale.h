/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales a cost profile to a card, part by part: the time that calls of replays took there, over
 * the time that the profile gives the same calls (profile_scale.c). profile_replays.c replays.
 */
#ifndef FRAG_BENCH_PROFILE_SCALE_H
#define FRAG_BENCH_PROFILE_SCALE_H

#include "device/sim/cost.h"
#include "answer/textbuf.h"

#define FRAG_SCALE_ROUNDS_MAX 8u
#define FRAG_SCALE_BIG_MALLOC FRAG_COST_COUNT
#define FRAG_SCALE_BIG_FREE (FRAG_COST_COUNT + 1)
#define FRAG_SCALE_PARTS (FRAG_COST_COUNT + 2)

/* One driver call on both cards. */
struct frag_scale_call {
	unsigned call; /* enum frag_call */
	uint64_t bytes, ns, modelled_ns, pause_ns;
};

struct frag_scale_sum {
	double measured_ns, modelled_ns;
	uint32_t count;
};
/* pair_ns: how fast the host was (struct frag_dev_observed), 0 = not known. The modelled time is that of a
 * host as fast as this one. */
struct frag_scale_round {
	struct frag_scale_sum sums[FRAG_SCALE_PARTS];
	uint64_t calls_count, pair_ns;
};
/* A trace under a policy, several times. */
struct frag_scale_replay {
	struct frag_scale_round rounds[FRAG_SCALE_ROUNDS_MAX];
	size_t rounds_count;
};

struct frag_scale {
	double factor
		[FRAG_SCALE_PARTS]; /* for a host as fast as the profile's; 0 = in too few replays */
	uint32_t replays_count[FRAG_SCALE_PARTS];
	uint64_t pair_ns; /* median of all rounds; 0 = not known */
	double clear;	  /* of memory.clear, which is measured by itself */
	/* replays with any call, and those whose driver time is within 25 % */
	size_t replays, near_before, near_after;
};

/* Adds the next call of a round. */
void frag_scale_add(struct frag_scale_round *r, const struct frag_cost *cost,
		    const struct frag_scale_call *call);
/* Are the rounds so far near each other, so that one more tells little? */
bool frag_scale_agrees(const struct frag_scale_replay *replay);
/* Errors: FRAG_ENOMEM. */
int frag_scale_factors(const struct frag_scale_replay *replays, size_t count,
		       struct frag_scale *out, struct frag_err *err);
void frag_scale_judge(const struct frag_scale_replay *replays, size_t count,
		      struct frag_scale *scale);
/* A profile file: `cost` with its parts scaled. card: what it was measured on. */
void frag_scale_profile(const struct frag_scale *s, const struct frag_cost *cost, const char *card,
			struct frag_text *out);

#endif
