/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leak: the bytes kept at the ends of steps grow, and still grow in the second half. What only a
 * larger batch needs is not kept; a cache that fills up stops growing. The line to blame is the one
 * whose bytes stay (frag_blame); the slope is the Theil-Sen estimate.
 */
#include "diagnose.h"

#include <frag/opt.h>

#include "recording/recording.h"

#define SLACK 0.05 /* of blame: what a caller leaks beside the line is less */
#define STEPS_MIN 8u
#define WARM_UP 10u /* leaves out 1/10 of the steps at the beginning, at least one */
#define P_MAX 0.001
#define Z_HALF_MIN 2.3 /* of the second half: p < 0.01 */
#define PACE_MIN 0.33  /* second half against first */
#define PACE_SURE 0.7  /* below it, what came through the line must have stayed */
#define PACE_BLIND 0.5 /* below it, where there are no lines to ask */
#define STAYED_MIN 0.5
#define TAU_STRICT 0.85 /* where the points are not ends of steps */
#define FLOOR_MIN 0.3	/* of the growth, that the feet of the series must rise */
#define GROWN_PART 0.005

/* The least of the last third less the least of the first: saw teeth rise, their feet do not. */
static double floor_rise(const double *y, size_t n)
{
	double first = y[0], last = y[n - 1];

	for (size_t i = 0; i < n / 3; i++) {
		first = FRAG_MIN(first, y[i]);
		last = FRAG_MIN(last, y[n - 1 - i]);
	}
	return last - first;
}

int frag_climbs(const double *kept, size_t n, bool strict, double least_bytes,
		struct frag_climb *out, bool *climbs, struct frag_err *err)
{
	struct frag_trend all, first, second;

	*climbs = false;
	*out = (struct frag_climb){ .p = 1 };
	if (n < STEPS_MIN)
		return 0;
	FRAG_TRY(frag_trend_of(kept, n, &all, err));
	FRAG_TRY(frag_trend_of(kept, n / 2, &first, err));
	FRAG_TRY(frag_trend_of(kept + n / 2, n - n / 2, &second, err));
	*out = (struct frag_climb){ .per_step = all.slope,
				    .first_half = first.slope,
				    .second_half = second.slope,
				    .z = all.z,
				    .p = all.p,
				    .tau = all.tau,
				    .grown = all.slope * (double)(n - 1) };
	*climbs = all.p < P_MAX && second.z > (n < 16 ? 1.6 : Z_HALF_MIN) && all.slope > 0 &&
		  second.slope >= PACE_MIN * first.slope && second.slope > 0 &&
		  out->grown >= least_bytes && floor_rise(kept, n) >= FLOOR_MIN * out->grown &&
		  (!strict || all.tau >= TAU_STRICT);
	return 0;
}

/* The part of what this line allocated in the second half of the steps that stayed. */
static double stayed(const struct frag_checkup *c, uint32_t frame)
{
	double grew = 0, flow = 0;

	for (uint32_t s = 1; s < c->in.history.stacks_count; s++) {
		size_t n, i = 0;
		const uint32_t *frames = frag_stack_frames(c->in.events.trace, s, &n);

		while (i < n && frames[i] != frame)
			i++;
		if (i == n)
			continue;
		grew += c->in.history.grew[s];
		flow += c->in.history.flow[s];
	}
	return flow > 0 ? grew / flow : 1;
}

/* A cache that fills up: its pace falls, and most of what it takes replaces what it had. */
static bool fades(const struct frag_checkup *c, const struct frag_climb *climb,
		  struct frag_err *err)
{
	double share;
	uint32_t frame;

	if (climb->second_half >= PACE_SURE * climb->first_half)
		return false;
	frame = frag_blame(&c->in.sites, c->in.history.grew, c->in.history.flow, SLACK, &share,
			   err);
	if (frame == UINT32_MAX)
		return climb->second_half < PACE_BLIND * climb->first_half;
	return stayed(c, frame) < STAYED_MIN;
}

static void tell_lines(const struct frag_checkup *c, struct frag_finding *f, double share)
{
	if (f->line)
		frag_finding_say(f, "; %.0f %% of it is requested at %s", 100 * share, f->line);
	else if (frag_sites_known(&c->in.sites))
		frag_finding_say(f, "; it comes from requests without a Python stack (the "
				    "backward pass)");
	else
		frag_finding_say(f, "; record with stacks to see the lines (%s)",
				 frag_stacks_hint(c->in.events.trace));
}

/* When is the card full, if the slope goes on? */
static void tell_end(const struct frag_checkup *c, struct frag_finding *f, double slope)
{
	const struct frag_sim_config *card = &c->in.target.card;
	uint64_t peak = c->peak_reserved_bytes, room = c->in.limit_bytes;
	double steps;

	if (c->in.limit_guessed)
		return;
	if (room == UINT64_MAX)
		room = card->total_bytes - card->context_bytes;
	if (room <= peak || slope <= 0)
		return;
	steps = (double)(room - peak) / slope;
	frag_finding_number(f, "steps_until_full", steps);
	if (steps < 1e9)
		frag_finding_say(f, "; at this rate %s is full after %.0f more steps",
				 c->in.limit_bytes == UINT64_MAX ? "the card" : "the limit", steps);
}

static int tell(struct frag_checkup *c, const struct frag_climb *climb, struct frag_findings *out,
		struct frag_err *err)
{
	const struct frag_history *h = &c->in.history;
	struct frag_finding *f = frag_findings_add(out, FRAG_FOUND_LEAK, c->about);
	double slope = climb->per_step / h->stride, share;
	uint32_t frame;

	frame = frag_blame(&c->in.sites, h->grew, h->flow, SLACK, &share, err);
	if (frame != UINT32_MAX && share >= 0.3)
		frag_finding_line(f, frag_frame_name(c->in.events.trace, frame));
	frag_finding_say(f,
			 "memory that outlives its step grows by %s per step, %s over %zu steps "
			 "(Mann-Kendall z = %.1f, Theil-Sen slope)",
			 FRAG_BYTES((uint64_t)(slope + 0.5)),
			 FRAG_BYTES((uint64_t)(climb->grown + 0.5)), h->count * h->stride,
			 climb->z);
	tell_lines(c, f, share);
	tell_end(c, f, slope);
	frag_finding_number(f, "bytes_per_step", slope);
	frag_finding_number(f, "grown_bytes", climb->grown);
	frag_finding_number(f, "steps_count", (double)(h->count * h->stride));
	frag_finding_number(f, "mann_kendall_z", climb->z);
	frag_finding_number(f, "mann_kendall_p", climb->p);
	frag_finding_number(f, "second_half_bytes_per_step", climb->second_half / h->stride);
	frag_finding_number(f, "line_share_ratio", share);
	return 0;
}

int frag_find_leak(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err)
{
	const struct frag_history *h = &c->in.history;
	size_t skip = 1 + h->count / WARM_UP, n = 0;
	FRAG_AUTO_FREE double *kept = NULL;
	struct frag_climb climb;
	double least;
	bool climbs;

	if (h->count < STEPS_MIN)
		return 0;
	FRAG_TRY_CALLOC(kept, h->count, "diagnosis", err);
	for (size_t i = FRAG_MIN(skip, h->count / 2); i < h->count; i++)
		kept[n++] = (double)h->steps[i].kept_end;
	least = FRAG_MAX(GROWN_PART * (double)h->peak_live, (double)FRAG_MIB);
	FRAG_TRY(frag_climbs(kept, n, h->from == FRAG_STEPS_WINDOWS, least, &climb, &climbs, err));
	if (!climbs || fades(c, &climb, err))
		return 0;
	return tell(c, &climb, out, err);
}
