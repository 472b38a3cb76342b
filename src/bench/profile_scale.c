/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cost profile for a card: the built-in one, each part of it multiplied by what replays of policies
 * took on the card over what the built-in profile says of them.
 *
 * A loop over one call does not show what a call costs between the calls of a policy, which
 * is up to twice as much; the shape of the curves is the driver's, their height the card's and the
 * host's. So only the height is measured. Left out are the first call of a replay, which finds the driver as
 * the one before left it, and calls after a long pause. Of a part in a replay counts the median of the
 * rounds, of these the median over replays; for calls that take less than CHEAP_NS each
 * replay weighs by the number of them, because they matter only where they are many.
 *
 * On a shared host all driver calls take up to 1.7 times as long for seconds or minutes. How fast it was
 * is measured before and after each round (pair_ns), and the modelled time is that of such a host; so a slow
 * spell does not get into the factors. The profile is of a host that takes the median of these, and says so
 * (host.pair): who compares times with it later can do the same.
 */
#include "profile_scale.h"

#include <math.h>
#include <stdlib.h>

#include <frag/base.h>

#define PAUSE_NS 200000u
#define CALLS_MIN 3u
#define REPLAYS_MIN 3u
#define CHEAP_NS 5000.0
#define AGREE_RATIO 1.15

#define LLU(x) ((unsigned long long)(x))

/* What is cheaper than one and a half times the dearest point of `cheap` is of that curve; what is
 * dearer, of `dear`. Told apart by what the simulated card asked for it. */
static const struct {
	unsigned call, cheap, dear;
} told_apart[] = {
	{ FRAG_CALL_MALLOC, FRAG_COST_MALLOC_HIT, FRAG_CALL_MALLOC },
	{ FRAG_CALL_FREE, FRAG_COST_FREE_HIT, FRAG_CALL_FREE },
	{ FRAG_CALL_RELEASE, FRAG_COST_RELEASE_MAPPED, FRAG_CALL_RELEASE },
	{ FRAG_CALL_ASYNC_MALLOC, FRAG_CALL_ASYNC_MALLOC, FRAG_COST_ASYNC_NEW },
	{ FRAG_CALL_POOL_TRIM, FRAG_CALL_POOL_TRIM, FRAG_COST_ASYNC_RELEASE },
};

/* Curves whose height is that of another one, in which they are measured. */
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

static uint64_t dearest(const struct frag_cost *cost, unsigned item)
{
	const struct frag_cost_curve *c = &cost->curves[item];
	double ns = 0;

	for (uint32_t i = 0; i < c->count; i++)
		ns = FRAG_MAX(ns, c->points[i].ns);
	return (uint64_t)ns;
}

/* Parts: the items of a profile, then the big ones of cudaMalloc and cudaFree. */
static unsigned big_part(unsigned item, uint64_t bytes)
{
	if (bytes < FRAG_COST_BIG || (item != FRAG_CALL_MALLOC && item != FRAG_CALL_FREE))
		return item;
	return item == FRAG_CALL_MALLOC ? FRAG_SCALE_BIG_MALLOC : FRAG_SCALE_BIG_FREE;
}

/* host_ratio: of the round, which is in the modelled time */
static unsigned part_of(const struct frag_cost *cost, const struct frag_scale_call *c,
			double host_ratio)
{
	unsigned item = c->call;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(told_apart); i++) {
		if (told_apart[i].call != c->call)
			continue;
		if ((double)c->modelled_ns <=
		    1.5 * (double)dearest(cost, told_apart[i].cheap) *
			    frag_cost_host_times(told_apart[i].cheap, c->bytes, host_ratio))
			return told_apart[i].cheap;
		item = told_apart[i].dear;
	}
	if (item == FRAG_CALL_MALLOC && c->bytes < FRAG_PAGE)
		return FRAG_COST_MALLOC_PAGE;
	if (item == FRAG_CALL_FREE && c->bytes < FRAG_PAGE)
		return FRAG_COST_FREE_PAGE;
	return big_part(item, c->bytes);
}

void frag_scale_add(struct frag_scale_round *r, const struct frag_cost *cost,
		    const struct frag_scale_call *call)
{
	struct frag_scale_sum *s;

	/* the first call of a replay is not like the others */
	if (r->calls_count++ == 0 || call->pause_ns >= PAUSE_NS)
		return;
	s = &r->sums[part_of(cost, call, frag_cost_host_ratio(cost, r->pair_ns))];
	s->measured_ns += (double)call->ns;
	s->modelled_ns += (double)call->modelled_ns;
	s->count++;
}

/* ---- factors ------------------------------------------------------------------------- */

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), frag_compare_double);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Measured over modelled time of a part in a replay, the median of the rounds; 0: too few calls. */
static double ratio_in(const struct frag_scale_replay *r, unsigned part)
{
	double ratios[FRAG_SCALE_ROUNDS_MAX];
	size_t n = 0;

	for (size_t k = 0; k < r->rounds_count; k++) {
		const struct frag_scale_sum *s = &r->rounds[k].sums[part];

		if (s->count >= CALLS_MIN && s->modelled_ns > 0)
			ratios[n++] = s->measured_ns / s->modelled_ns;
	}
	return n ? median(ratios, n) : 0;
}

bool frag_scale_agrees(const struct frag_scale_replay *r)
{
	double least = 0, most = 0;

	for (size_t k = 0; k < r->rounds_count; k++) {
		double measured = 0, modelled = 0;

		for (unsigned p = 0; p < FRAG_SCALE_PARTS; p++) {
			measured += r->rounds[k].sums[p].measured_ns;
			modelled += r->rounds[k].sums[p].modelled_ns;
		}
		if (modelled <= 0)
			continue;
		least = k ? FRAG_MIN(least, measured / modelled) : measured / modelled;
		most = FRAG_MAX(most, measured / modelled);
	}
	return most <= least * AGREE_RATIO;
}

/* How fast the host was: the median over all rounds of all replays. */
static int host_pair(const struct frag_scale_replay *replays, size_t count, uint64_t *out,
		     struct frag_err *err)
{
	FRAG_AUTO_FREE double *pairs = NULL;
	size_t n = 0;

	FRAG_TRY_CALLOC(pairs, count * FRAG_SCALE_ROUNDS_MAX + 1, "rounds", err);
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < replays[i].rounds_count; k++) {
			if (replays[i].rounds[k].pair_ns)
				pairs[n++] = (double)replays[i].rounds[k].pair_ns;
		}
	}
	*out = n ? (uint64_t)median(pairs, n) : 0;
	return 0;
}

struct weighed {
	double ratio, weight;
};

FRAG_COMPARE(compare_weighed, struct weighed, frag_compare_double(&x->ratio, &y->ratio))

static double weighed_median(struct weighed *values, size_t count)
{
	double all = 0, below = 0;
	size_t i = 0;

	qsort(values, count, sizeof(*values), compare_weighed);
	for (size_t k = 0; k < count; k++)
		all += values[k].weight;
	while (i + 1 < count && (below += values[i].weight) < all / 2)
		i++;
	return values[i].ratio;
}

static double weight_in(const struct frag_scale_replay *r, unsigned part)
{
	const struct frag_scale_sum *s = &r->rounds[0].sums[part];

	return s->count && s->modelled_ns / s->count < CHEAP_NS ? s->count : 1;
}

int frag_scale_factors(const struct frag_scale_replay *replays, size_t count,
		       struct frag_scale *out, struct frag_err *err)
{
	FRAG_AUTO_FREE struct weighed *found = frag_host_calloc(count + 1, sizeof(*found));

	*out = (struct frag_scale){ .clear = 1 };
	int rc;

	FRAG_CHECK_ALLOC(found, "factors", err);
	rc = host_pair(replays, count, &out->pair_ns, err);
	if (rc)
		return rc;
	for (unsigned part = 0; part < FRAG_SCALE_PARTS; part++) {
		size_t n = 0;

		for (size_t i = 0; i < count; i++) {
			found[n].ratio = ratio_in(&replays[i], part);
			found[n].weight = weight_in(&replays[i], part);
			n += found[n].ratio > 0;
		}
		if (n < REPLAYS_MIN)
			continue;
		out->factor[part] = weighed_median(found, n);
		out->replays_count[part] = (uint32_t)n;
	}
	return 0;
}

static double factor_of(const struct frag_scale *s, unsigned item, uint64_t bytes)
{
	unsigned part = big_part(item, bytes);

	for (size_t i = 0; i < FRAG_ARRAY_LEN(follows); i++) {
		if (follows[i].curve == item)
			part = follows[i].as;
	}
	if (s->factor[part] > 0)
		return s->factor[part];
	return s->factor[item] > 0 ? s->factor[item] : 1.0;
}

/* ---- what came of it ------------------------------------------------------------------- */

static bool near(double modelled, double measured)
{
	return modelled >= 0.75 * measured && modelled <= 1.25 * measured;
}

void frag_scale_judge(const struct frag_scale_replay *replays, size_t count,
		      struct frag_scale *scale)
{
	for (size_t i = 0; i < count; i++) {
		double before[FRAG_SCALE_ROUNDS_MAX], after[FRAG_SCALE_ROUNDS_MAX];
		size_t n = 0;

		for (size_t k = 0; k < replays[i].rounds_count; k++) {
			double measured = 0, modelled = 0, scaled = 0;

			for (unsigned p = 0; p < FRAG_SCALE_PARTS; p++) {
				const struct frag_scale_sum *s = &replays[i].rounds[k].sums[p];
				double f = scale->factor[p] > 0 ? scale->factor[p] : 1;

				measured += s->measured_ns;
				modelled += s->modelled_ns;
				scaled += s->modelled_ns * f;
			}
			if (measured > 0) {
				before[n] = modelled / measured;
				after[n++] = scaled / measured;
			}
		}
		if (!n)
			continue;
		scale->replays++;
		scale->near_before += near(median(before, n), 1);
		scale->near_after += near(median(after, n), 1);
	}
}

static const char *part_name(unsigned part)
{
	return part == FRAG_SCALE_BIG_MALLOC ? "cudaMalloc from 512 MiB"
	       : part == FRAG_SCALE_BIG_FREE ? "cudaFree from 512 MiB"
					     : frag_cost_name(part);
}

static double part_host_times(unsigned part, double host)
{
	if (part == FRAG_SCALE_BIG_MALLOC || part == FRAG_SCALE_BIG_FREE)
		return frag_cost_host_times(part == FRAG_SCALE_BIG_MALLOC ? FRAG_CALL_MALLOC
									  : FRAG_CALL_FREE,
					    FRAG_COST_BIG, host);
	return frag_cost_host_times(part, 0, host);
}

/* Three digits: what was measured is not known better. */
static uint64_t rounded(double ns)
{
	double unit = ns < 1000 ? 1 : pow(10, floor(log10(ns)) - 2);

	return (uint64_t)(floor(ns / unit + 0.5) * unit);
}

void frag_scale_profile(const struct frag_scale *s, const struct frag_cost *cost, const char *card,
			struct frag_text *out)
{
	double host = frag_cost_host_ratio(cost, s->pair_ns);

	frag_text_addf(out,
		       "# %s; the built-in profile brought to what %zu replays of policies took\n"
		       "# of them within 25 %%: %zu with the built-in profile, %zu with this one\n"
		       "# host: %.3f, in all factors as each part follows it\n",
		       card, s->replays, s->near_before, s->near_after, host);
	for (unsigned p = 0; p < FRAG_SCALE_PARTS; p++) {
		if (s->replays_count[p])
			frag_text_addf(out, "# %s: %.3f in %u replays\n", part_name(p),
				       s->factor[p] * part_host_times(p, host),
				       s->replays_count[p]);
	}
	frag_text_addf(out, "# memory.clear: %.3f\ncall,bytes,ns\n", s->clear);
	for (unsigned i = 0; i < FRAG_COST_COUNT; i++) {
		const struct frag_cost_curve *c = &cost->curves[i];

		for (uint32_t k = 0; k < c->count; k++) {
			double f = i == FRAG_COST_CLEAR	      ? s->clear
				   : i == FRAG_COST_HOST_PAIR ? 1
							      : factor_of(s, i, c->points[k].bytes);

			f *= frag_cost_host_times(i, c->points[k].bytes, host);
			frag_text_addf(out, "%s,%llu,%llu\n", frag_cost_name(i),
				       LLU(c->points[k].bytes), LLU(rounded(c->points[k].ns * f)));
		}
	}
}
