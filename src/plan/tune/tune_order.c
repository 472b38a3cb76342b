/* SPDX-License-Identifier: Apache-2.0 */
/* tune: the order of settings, and the Pareto front. */
#include "tune_order.h"

#include <string.h>

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

int frag_tune_compare(const struct frag_tune_try *a, const struct frag_tune_try *b,
		      enum frag_tune_objective objective)
{
	int c = (int)b->completed - (int)a->completed;

	if (!c)
		c = compare_u64(a->refused_count, b->refused_count);
	if (!c && objective == FRAG_TUNE_CARD)
		c = compare_u64(a->capacity_bytes, b->capacity_bytes);
	if (!c && objective == FRAG_TUNE_TIME)
		c = compare_u64(a->driver_ns, b->driver_ns);
	if (!c)
		c = compare_u64(a->peak_reserved_bytes, b->peak_reserved_bytes);
	if (!c && a->changed_count != b->changed_count)
		c = a->changed_count < b->changed_count ? -1 : 1;
	if (!c)
		c = compare_u64(a->driver_ns, b->driver_ns);
	return c ? c : strcmp(a->params, b->params);
}

int frag_tune_front(struct frag_tune *out, struct frag_err *err)
{
	size_t n = 0;

	FRAG_TRY_CALLOC(out->front, out->tries_count, "tune", err);
	for (;;) {
		const struct frag_tune_try *last = n ? &out->tries[out->front[n - 1]] : NULL;
		size_t best = SIZE_MAX;

		for (size_t i = 0; i < out->tries_count; i++) {
			const struct frag_tune_try *t = &out->tries[i];

			if (!t->completed || t->refused_count > out->tries[0].refused_count ||
			    (last && t->driver_ns >= last->driver_ns))
				continue;
			if (best == SIZE_MAX ||
			    compare_u64(t->peak_reserved_bytes,
					out->tries[best].peak_reserved_bytes) < 0 ||
			    (t->peak_reserved_bytes == out->tries[best].peak_reserved_bytes &&
			     t->driver_ns < out->tries[best].driver_ns))
				best = i;
		}
		if (best == SIZE_MAX)
			break;
		out->front[n++] = best;
	}
	out->front_count = n;
	return 0;
}
