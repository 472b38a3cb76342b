/* SPDX-License-Identifier: Apache-2.0 */
/* Traces that ask for more than can be are refused; see sums.h. */
#include "sums.h"

int frag_sums_add(struct frag_sums *s, const struct frag_event *events, size_t count,
		  uint64_t first, struct frag_err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct frag_event *e = &events[i];

		if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED)
			s->live -= FRAG_MIN(s->live, (uint64_t)e->bytes);
		if (e->kind != FRAG_EV_ALLOC && e->kind != FRAG_EV_REFUSED)
			continue;
		s->live += e->kind == FRAG_EV_ALLOC ? e->bytes : 0;
		s->flow += e->bytes;
		if (s->live > FRAG_LIVE_MAX)
			return frag_fail(err, FRAG_EINPUT,
					 "more than 1 PiB is live at event %llu: no device has so "
					 "much",
					 (unsigned long long)(first + i));
		if (s->flow > FRAG_FLOW_MAX)
			return frag_fail(err, FRAG_EINPUT,
					 "the requests up to event %llu ask for more than 4 EiB",
					 (unsigned long long)(first + i));
	}
	return 0;
}
