/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording leaves open; see settle.h. */
#include "settle.h"

#include <frag/replay.h>

/* Most that the recorded allocator held at once. */
static uint64_t recorded_peak(const struct frag_trace_dev *d)
{
	uint64_t now = 0, peak;

	for (size_t i = 0; i < d->seed.segments_count; i++)
		now += d->seed.segments[i].bytes;
	peak = now;
	for (size_t i = 0; i < d->seen_count; i++) {
		const struct frag_evidence *e = &d->seen[i];

		if (e->kind == FRAG_SEEN_SEGMENT_ALLOC || e->kind == FRAG_SEEN_SEGMENT_MAP)
			now += e->bytes;
		else if (e->kind == FRAG_SEEN_SEGMENT_FREE || e->kind == FRAG_SEEN_SEGMENT_UNMAP)
			now -= FRAG_MIN(now, e->bytes);
		peak = FRAG_MAX(peak, now);
	}
	return peak;
}

int frag_cli_settle(const struct frag_cli *cli, uint64_t limit_bytes, struct frag_trace *trace,
		    struct frag_err *err)
{
	const struct frag_sim_config *card = &cli->card;

	for (uint32_t d = 0; d < trace->devs_count; d++) {
		uint64_t peak = recorded_peak(&trace->devs[d]);
		bool fits = peak <= card->total_bytes - card->context_bytes;

		if (trace->devs[d].has_evidence)
			FRAG_TRY(frag_resolve(trace, d, fits ? card : NULL,
					      peak <= limit_bytes ? limit_bytes : UINT64_MAX, err));
	}
	return 0;
}
