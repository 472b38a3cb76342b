/* SPDX-License-Identifier: Apache-2.0 */
/* The greatest number that a card takes, by bisection; see fit_vary.h. */
#include "fit_vary.h"

static int probe(struct frag_vary *v, uint64_t n, bool *completes, struct frag_err *err)
{
	struct frag_vary_probe *p = &v->probes[v->probes_count];

	FRAG_ASSERT(v->probes_count < FRAG_VARY_PROBES);
	p->value = n;
	FRAG_TRY(v->record(v->ctx, p, err));
	v->probes_count++;
	*completes = p->completes;
	return 0;
}

int frag_vary_search(struct frag_vary *v, struct frag_err *err)
{
	uint64_t low = v->first, high = v->last; /* low completes, above high nothing does */

	FRAG_TRY(probe(v, low, &v->any, err));
	while (v->any && low < high) {
		/* the end first: often all of the range fits */
		uint64_t mid =
			high == v->last && low == v->first ? high : low + (high - low + 1) / 2;
		bool completes;

		FRAG_TRY(probe(v, mid, &completes, err));
		if (completes)
			low = mid;
		else
			high = mid - 1;
	}
	v->best = low;
	return 0;
}
