/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cost profile for a card: a known one, each part of it times what replays of policies took on
 * the card over what the known one says of them.
 *
 * A loop over one call does not show what a call costs between the calls of a policy, which is up
 * to twice as much; the shape of the curves is the driver's, their height the card's and the
 * host's. So only the height is measured: of each part the median over all rounds of all replays.
 * For calls that take less than CHEAP_NS each weighs by the number of them, because they matter
 * only where they are many. Left out are the first call of a replay, which finds the driver as the
 * one before left it, and calls after a long pause.
 *
 * The modelled time is that of a host as fast as in the round, so a slow spell does not get into
 * the factors. The profile is of a host that takes the median of these (host.pair).
 */
#include "lab.h"

#include <math.h>
#include <stdlib.h>

#include "device/sim/cost.h"
#include "lib/grow.h"

#define PAUSE_NS 200000u
#define CALLS_MIN 3u
#define SAMPLES_MIN 3u
#define CHEAP_NS 5000.0

/* Parts: the items of a profile, then the big ones of cudaMalloc and cudaFree. */
#define BIG_MALLOC FRAG_COST_COUNT
#define BIG_FREE (FRAG_COST_COUNT + 1)
#define PARTS (FRAG_COST_COUNT + 2)

/* A part in one round of a replay: measured over modelled. */
struct sample {
	unsigned part;
	double ratio, weight;
};

struct lab_scale {
	const struct frag_cost *cost;
	struct sample *samples;
	size_t count, cap;
	double *pairs;
	size_t pairs_count, pairs_cap;
	double clear;
};

int lab_scale_create(const struct frag_cost *cost, struct lab_scale **out, struct frag_err *err)
{
	FRAG_TRY_CALLOC(*out, 1, "profile", err);
	**out = (struct lab_scale){ .cost = cost, .clear = 1 };
	return 0;
}

/* ---- which part of a profile a call belongs to --------------------------------------- */

/* What is cheaper than one and a half times the dearest point of `cheap` is of that curve; what is dearer, of `dear`. */
static const struct {
	unsigned call, cheap, dear;
} told_apart[] = {
	{ FRAG_CALL_MALLOC, FRAG_COST_MALLOC_HIT, FRAG_CALL_MALLOC },
	{ FRAG_CALL_FREE, FRAG_COST_FREE_HIT, FRAG_CALL_FREE },
	{ FRAG_CALL_RELEASE, FRAG_COST_RELEASE_MAPPED, FRAG_CALL_RELEASE },
	{ FRAG_CALL_ASYNC_MALLOC, FRAG_CALL_ASYNC_MALLOC, FRAG_COST_ASYNC_NEW },
	{ FRAG_CALL_POOL_TRIM, FRAG_CALL_POOL_TRIM, FRAG_COST_ASYNC_RELEASE },
};

/* Curves as high as another one, in which they are measured. */
static const struct {
	unsigned curve, as;
} follows[] = {
	{ FRAG_COST_SET_ACCESS_NEXT, FRAG_CALL_SET_ACCESS },
	{ FRAG_COST_UNMAP_NEXT, FRAG_CALL_UNMAP },
	{ FRAG_COST_ASYNC_REMAP, FRAG_COST_ASYNC_NEW },
	{ FRAG_COST_MANAGED_ZERO, FRAG_CALL_PREFETCH },
	{ FRAG_COST_MANAGED_IN, FRAG_CALL_PREFETCH },
	{ FRAG_COST_MANAGED_OUT, FRAG_CALL_PREFETCH },
	{ FRAG_COST_MANAGED_TOUCH, FRAG_CALL_PREFETCH },
	{ FRAG_COST_MANAGED_FAULT, FRAG_CALL_PREFETCH },
	{ FRAG_COST_MANAGED_FAULT_IN, FRAG_CALL_PREFETCH },
};

static double dearest(const struct frag_cost *cost, unsigned item)
{
	double ns = 0;

	for (uint32_t i = 0; i < cost->curves[item].count; i++)
		ns = FRAG_MAX(ns, cost->curves[item].points[i].ns);
	return ns;
}

static unsigned big_part(unsigned item, uint64_t bytes)
{
	if (bytes < FRAG_COST_BIG || (item != FRAG_CALL_MALLOC && item != FRAG_CALL_FREE))
		return item;
	return item == FRAG_CALL_MALLOC ? BIG_MALLOC : BIG_FREE;
}

/* modelled_ns: of the call, on a host of this ratio */
static unsigned part_of(const struct frag_cost *cost, const struct lab_call *c, double modelled_ns,
			double host_ratio)
{
	unsigned item = c->kind;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(told_apart); i++) {
		unsigned cheap = told_apart[i].cheap;

		if (told_apart[i].call != c->kind)
			continue;
		if (modelled_ns <=
		    1.5 * dearest(cost, cheap) * frag_cost_host_times(cheap, c->bytes, host_ratio))
			return cheap;
		item = told_apart[i].dear;
	}
	if (item == FRAG_CALL_MALLOC && c->bytes < FRAG_PAGE)
		return FRAG_COST_MALLOC_PAGE;
	if (item == FRAG_CALL_FREE && c->bytes < FRAG_PAGE)
		return FRAG_COST_FREE_PAGE;
	return big_part(item, c->bytes);
}

int lab_scale_add(struct lab_scale *s, const struct lab_log *real, const struct lab_log *sim,
		  struct frag_err *err)
{
	struct {
		double measured_ns, modelled_ns;
		unsigned count;
	} sums[PARTS] = { 0 };
	uint64_t pair_ns = frag_dev_host_pair(&real->observed);
	double ratio = frag_cost_host_ratio(s->cost, pair_ns);
	size_t same = FRAG_MIN(lab_difference(real, sim), real->replayed);

	for (size_t i = 1; i < same; i++) {
		const struct lab_call *c = &real->calls[i];
		double modelled_ns = (double)sim->calls[i].ns;
		unsigned part = part_of(s->cost, c, modelled_ns, ratio);

		if (c->result || c->pause_ns >= PAUSE_NS)
			continue;
		sums[part].measured_ns += (double)c->ns;
		sums[part].modelled_ns += modelled_ns;
		sums[part].count++;
	}
	for (unsigned p = 0; p < PARTS; p++) {
		bool cheap = sums[p].modelled_ns / (sums[p].count + 1e-9) < CHEAP_NS;

		if (sums[p].count < CALLS_MIN || sums[p].modelled_ns <= 0)
			continue;
		FRAG_TRY(FRAG_GROW(s->samples, s->count, s->cap, "samples", err));
		s->samples[s->count++] =
			(struct sample){ .part = p,
					 .ratio = sums[p].measured_ns / sums[p].modelled_ns,
					 .weight = cheap ? sums[p].count : 1 };
	}
	if (!pair_ns)
		return 0;
	FRAG_TRY(FRAG_GROW(s->pairs, s->pairs_count, s->pairs_cap, "samples", err));
	s->pairs[s->pairs_count++] = (double)pair_ns;
	return 0;
}

/*
 * memory.clear: one request for more than is clear waits until all that was given back is; policies
 * ask for less. So the rate counts against what the same request found on the card of the built-in
 * profile (results/h200/calls.csv).
 */
int lab_scale_clear(struct lab_scale *s, struct frag_device *dev, struct frag_err *err)
{
	const double built_in = 247111923.0 / 82241912832.0;
	uint64_t left, total, bytes, ns[3], begin;
	frag_addr_t at;

	FRAG_TRY(frag_dev_mem_info(dev, &left, &total, err));
	bytes = left / 20 * 11 / FRAG_PAGE * FRAG_PAGE;
	FRAG_TRY(frag_dev_make_ready(dev, bytes, err));
	for (unsigned i = 0; i < 2; i++) {
		begin = dev->driver_ns;
		if (frag_dev_alloc(dev, bytes, &at, err))
			return frag_fail(err, FRAG_EDEVICE, "the card has less room than it says");
		ns[2 * i] = dev->driver_ns - begin;
		begin = dev->driver_ns;
		FRAG_TRY(frag_dev_free(dev, at, bytes, err));
		ns[1] = i ? ns[1] : dev->driver_ns - begin;
	}
	s->clear = (double)(ns[2] - FRAG_MIN(ns[2], ns[0]) + ns[1]) / (double)bytes / built_in;
	return 0;
}

/* ---- factors ------------------------------------------------------------------------- */

FRAG_COMPARE(compare_samples, struct sample,
	     FRAG_ORDER(x->part, y->part) ?: frag_compare_double(&x->ratio, &y->ratio))

/* factor[PARTS]: the weighed median of each part, 0 = too few samples; sorts them. */
static void find_factors(struct lab_scale *s, double *factor)
{
	qsort(s->samples, s->count, sizeof(*s->samples), compare_samples);
	for (size_t from = 0, to; from < s->count; from = to) {
		double all = 0, below = 0;
		size_t i = from;

		for (to = from; to < s->count && s->samples[to].part == s->samples[from].part; to++)
			all += s->samples[to].weight;
		while (i + 1 < to && (below += s->samples[i].weight) < all / 2)
			i++;
		if (to - from >= SAMPLES_MIN)
			factor[s->samples[from].part] = s->samples[i].ratio;
	}
}

static double factor_of(const double *factor, unsigned item, uint64_t bytes)
{
	unsigned part = big_part(item, bytes);

	for (size_t i = 0; i < FRAG_ARRAY_LEN(follows); i++) {
		if (follows[i].curve == item)
			part = follows[i].as;
	}
	return factor[part] > 0 ? factor[part] : factor[item] > 0 ? factor[item] : 1.0;
}

/* Three digits: what was measured is not known better. */
static unsigned long long rounded(double ns)
{
	double unit = ns < 1000 ? 1 : pow(10, floor(log10(ns)) - 2);

	return (unsigned long long)(floor(ns / unit + 0.5) * unit);
}

void lab_scale_profile(struct lab_scale *s, const char *card, struct frag_text *out)
{
	double factor[PARTS] = { 0 }, host = 1;

	find_factors(s, factor);
	qsort(s->pairs, s->pairs_count, sizeof(*s->pairs), frag_compare_double);
	if (s->pairs_count)
		host = frag_cost_host_ratio(s->cost, (uint64_t)s->pairs[s->pairs_count / 2]);
	frag_text_addf(out,
		       "# %s; a known profile brought to what replays of policies took\n# host: "
		       "%.3f\n",
		       card, host);
	frag_text_addf(out, "# memory.clear: %.3f\ncall,bytes,ns\n", s->clear);
	for (unsigned i = 0; i < FRAG_COST_COUNT; i++) {
		const struct frag_cost_curve *c = &s->cost->curves[i];

		for (uint32_t k = 0; k < c->count; k++) {
			double f = i == FRAG_COST_CLEAR ? s->clear
				   : i == FRAG_COST_HOST_PAIR
					   ? 1
					   : factor_of(factor, i, c->points[k].bytes);

			f *= frag_cost_host_times(i, c->points[k].bytes, host);
			frag_text_addf(out, "%s,%llu,%llu\n", frag_cost_name(i),
				       (unsigned long long)c->points[k].bytes,
				       rounded(c->points[k].ns * f));
		}
	}
}
