/* SPDX-License-Identifier: Apache-2.0 */
/* Traces that ask for more than can be are refused; see sums.h. */
#include "sums.h"

/* All of some events, where they may reach a bound: which one does? */
static int look(struct frag_sums s, const struct frag_event *events, size_t count, uint64_t first,
		struct frag_err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct frag_event *e = &events[i];

		if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED)
			s.live -= FRAG_MIN(s.live, (uint64_t)e->bytes);
		s.live += e->kind == FRAG_EV_ALLOC ? e->bytes : 0;
		if (s.live > FRAG_LIVE_MAX)
			return frag_fail(err, FRAG_EINPUT,
					 "more than 1 PiB is live at event %llu: no device has so "
					 "much",
					 (unsigned long long)(first + i));
	}
	return 0;
}

static int add(struct frag_sums *s, const struct frag_event *events, size_t count, uint64_t first,
	       struct frag_err *err)
{
	static const uint64_t taken[256] = { [FRAG_EV_ALLOC] = UINT64_MAX }, given[256] = {
		[FRAG_EV_FREE] = UINT64_MAX, [FRAG_EV_FREE_COMPLETED] = UINT64_MAX
	};
	uint64_t flow = 0, back = 0;

	for (size_t i = 0; i < count; i++) {
		flow += events[i].bytes & taken[events[i].kind];
		back += events[i].bytes & given[events[i].kind];
	}
	if (s->live + flow > FRAG_LIVE_MAX)
		FRAG_TRY(look(*s, events, count, first, err));
	s->live += flow - FRAG_MIN(back, s->live + flow);
	s->flow += flow;
	if (s->flow > FRAG_FLOW_MAX)
		return frag_fail(err, FRAG_EINPUT,
				 "the requests up to event %llu ask for more than 4 EiB",
				 (unsigned long long)(first + count - 1));
	return 0;
}

int frag_sums_add(struct frag_sums *s, const struct frag_event *events, size_t count,
		  uint64_t first, struct frag_err *err)
{
	/* this many of the largest requests do not overflow */
	const size_t most = 1u << 13;

	for (size_t i = 0; i < count; i += most)
		FRAG_TRY(add(s, events + i, FRAG_MIN(count - i, most), first + i, err));
	return 0;
}
