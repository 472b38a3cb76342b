/* SPDX-License-Identifier: Apache-2.0 */
/* Beginnings of initial reservations, from pages mapped below; see reservation_starts.h. */
#include "reservation_starts.h"

#include "trace/build/build.h"

/* The lowest initial pages above `at` in reservations for such requests, or NULL. */
static struct frag_initial_segment *pages_above(const struct frag_trace_dev *td, frag_addr_t at,
						uint32_t stream, bool small)
{
	for (size_t i = 0; i < td->initial.segments_count; i++) {
		struct frag_initial_segment *g = &td->initial_segments[i];

		if (g->expandable && g->range_addr > at && g->stream == stream && g->small == small)
			return g;
	}
	return NULL;
}

bool reservation_starts_explain(struct frag_trace_dev *td,
				const struct frag_trace_settings *settings, uint64_t range_bytes,
				const struct follow_report *rep)
{
	struct frag_initial_segment *g;
	uint64_t bytes;

	if (rep->diff != FOLLOW_SEGMENT || rep->seen >= td->seen_count ||
	    td->seen[rep->seen].kind != FRAG_SEEN_SEGMENT_MAP || rep->want == FRAG_NO_ADDR)
		return false;
	bytes = frag_torch_round(td->events[rep->event].bytes, settings->roundup);
	g = pages_above(td, rep->want, td->seen[rep->seen].stream, bytes <= FRAG_MIB);
	if (!g || g->range_addr - rep->want >= range_bytes)
		return false;
	g->range_addr = rep->want;
	return true;
}
