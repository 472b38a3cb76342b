/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache: released once by the program, or again and again, by empty_cache, by refused mallocs
 * or by garbage collection (too eager: reserving memory again costs driver time).
 */
#include "diagnose.h"

#include <frag/opt.h>

#define FALL_PART 0.2 /* of what was reserved, by one empty_cache */
#define FALL_MIN (64 * FRAG_MIB)
#define PEAK_PART 0.05	    /* of the most that was reserved */
#define AFTER_PART 0.05	    /* requests that still come: else it is the program's end */
#define EAGER_PER_STEP 0.34 /* trims or retries per step */
#define EAGER_MIN 4u
#define EAGER_TIME 0.02 /* of the recorded time, in calls that reserve and release memory */

static int tell_trim(struct frag_checkup *c, size_t i, struct frag_finding *f, struct frag_err *err)
{
	const struct frag_history *h = &c->in.history;

	SAY("the program released its cache (empty_cache) %s: reserved memory fell from %s to %s",
	    FRAG_IN_STEP(&c->in, frag_history_step(h, h->trims[i].event)),
	    FRAG_BYTES(c->trim_before[i]), FRAG_BYTES(c->trim_after[i]));
	frag_finding_number(f, "event", (double)h->trims[i].event);
	frag_finding_number(f, "before_bytes", (double)c->trim_before[i]);
	frag_finding_number(f, "after_bytes", (double)c->trim_after[i]);
	return frag_finding_holders(c, h->trims[i].event, f, err);
}

/* The largest fall by an empty_cache that is not the end of the program; SIZE_MAX = none. */
static size_t largest_fall(const struct frag_checkup *c)
{
	const struct frag_history *h = &c->in.history;
	size_t n = FRAG_MIN(h->trims_count, (uint64_t)FRAG_REFUSALS_KEPT), best = SIZE_MAX;
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t fall = c->trim_before[i] > c->trim_after[i]
					? c->trim_before[i] - c->trim_after[i]
					: 0;

		if (h->trims[i].unsure || fall < FALL_MIN ||
		    (double)fall < FALL_PART * (double)c->trim_before[i] ||
		    (double)fall < PEAK_PART * (double)c->peak_reserved_bytes ||
		    (double)h->trims[i].allocs_after < AFTER_PART * (double)h->allocs)
			continue;
		if (fall > most) {
			most = fall;
			best = i;
		}
	}
	return best;
}

static void tell_eager(const struct frag_checkup *c, double times, double time,
		       struct frag_findings *out)
{
	const struct frag_history *h = &c->in.history;
	struct frag_finding *f = frag_findings_add(out, FRAG_FOUND_CACHE, c->about);

	SAY("memory is released and reserved again: %llu times by empty_cache, %llu times to serve "
	    "a request, in %zu steps; driver calls take %.1f %% of the recorded time (modelled)",
	    (unsigned long long)h->trims_count, (unsigned long long)c->result.m.retries_count,
	    h->count * h->stride, 100 * time);
	frag_finding_number(f, "trims_count", (double)h->trims_count);
	frag_finding_number(f, "retries_count", (double)c->result.m.retries_count);
	frag_finding_number(f, "per_step", times);
	frag_finding_number(f, "driver_time_ratio", time);
	frag_finding_number(f, "modelled_ns", (double)c->result.m.modelled_ns);
}

int frag_find_cache(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err)
{
	const struct frag_history *h = &c->in.history;
	uint64_t back = h->trims_count + c->result.m.retries_count;
	double steps = (double)(h->count * h->stride);
	double times = steps > 0 ? (double)back / steps : 0;
	double time =
		h->duration_us ? (double)c->result.m.modelled_ns / 1e3 / (double)h->duration_us : 0;
	size_t fall;

	if (h->refusals_count)
		return 0; /* then it had to release all it could */
	if (back >= EAGER_MIN && times >= EAGER_PER_STEP && time >= EAGER_TIME &&
	    h->from == FRAG_STEPS_MARKS) {
		tell_eager(c, times, time, out);
		return 0;
	}
	fall = largest_fall(c);
	return fall == SIZE_MAX
		       ? 0
		       : tell_trim(c, fall, frag_findings_add(out, FRAG_FOUND_RELEASED, c->about),
				   err);
}
