/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording leaves open; see settle.h. */
#include "settle.h"

#include <frag/replay.h>

int frag_cli_settle(const struct frag_cli *cli, uint64_t limit_bytes, struct frag_trace *trace,
		    struct frag_err *err)
{
	const struct frag_sim_config *card = &cli->card;

	/* --torch is about the replay, but where the file does not tell it is all there is */
	if (cli->torch && !trace->settings.torch_last)
		frag_trace_set_torch(trace, cli->torch, cli->torch);
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		uint64_t peak = frag_recorded_peak(&trace->devs[d]);
		bool fits = peak <= card->total_bytes - card->context_bytes;

		if (trace->devs[d].has_evidence)
			FRAG_TRY(frag_resolve(trace, d, fits ? card : NULL,
					      peak <= limit_bytes ? limit_bytes : UINT64_MAX, err));
	}
	return 0;
}

int frag_cli_settle_recorded(const struct frag_cli *cli, struct frag_trace *trace,
			     struct frag_err *err)
{
	uint64_t limit = frag_cli_limit(cli, cli->card.total_bytes);

	if (cli->torch)
		frag_trace_set_torch(trace, cli->torch, cli->torch);
	if (limit == UINT64_MAX && trace->settings.limit_known)
		limit = trace->settings.limit_bytes;
	for (uint32_t d = 0; d < trace->devs_count; d++)
		if (trace->devs[d].has_evidence)
			FRAG_TRY(frag_resolve(trace, d, &cli->card, limit, err));
	return 0;
}
