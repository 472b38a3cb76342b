/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the known layouts to take: see layouts.h. */
#include "layouts.h"

const struct frag_layout_result *frag_layout_confirmed(const struct frag_layouts *x, size_t i,
						       size_t c)
{
	for (size_t k = 0; k < x->confirms_count; k++)
		if (x->confirms[k].point == i && x->confirms[k].card == c)
			return &x->confirms[k].result;
	return NULL;
}

bool frag_layout_fits(const struct frag_layouts *x, size_t i, size_t c)
{
	const struct frag_border_point *p = &x->border.points[i];
	const struct frag_layout_result *own = frag_layout_confirmed(x, i, c);

	if (!frag_layout_on(x, i, c) || !(p->fits >> c & 1))
		return false;
	return !own || (own->status == FRAG_LAYOUT_RAN && own->cards[c].roomy);
}

/* The size of a layout: the product of its levels along rising axes. */
static double size_of(const struct frag_layouts *x, size_t i)
{
	size_t layout = frag_layout_of(x, i);
	double size = 1;

	for (size_t k = 0; k < x->axes.count; k++)
		if (x->axes.list[k].order == FRAG_AXIS_RISING)
			size *= 1 + x->axes.at[layout * x->axes.count + k];
	return size;
}

size_t frag_layout_best(const struct frag_layouts *x, size_t c, uint64_t world)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < x->border.count; i++) {
		double more;

		if (!frag_layout_fits(x, i, c) ||
		    frag_layout_world(x, frag_layout_of(x, i)) != world)
			continue;
		more = best == SIZE_MAX ? 1 : size_of(x, i) - size_of(x, best);
		if (more > 0 || (!(more < 0) && frag_layout_of(x, i) < frag_layout_of(x, best)))
			best = i;
	}
	return best;
}

uint64_t frag_layout_fewest(const struct frag_layouts *x, size_t c)
{
	uint64_t fewest = 0;

	for (size_t i = 0; i < x->border.count; i++) {
		uint64_t world = frag_layout_world(x, frag_layout_of(x, i));

		if ((!fewest || world < fewest) && frag_layout_fits(x, i, c))
			fewest = world;
	}
	return fewest;
}
