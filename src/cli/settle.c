/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording leaves open; see settle.h. */
#include "settle.h"

#include <frag/replay.h>

/* Card and limit asked for may be a what-if; the card is one only where the recording fits into it. */
int frag_cli_settle(const struct frag_cli *cli, uint64_t limit_bytes, struct frag_trace *trace,
		    struct frag_err *err)
{
	const struct frag_sim_config *card = &cli->card;
	bool fits = true;

	/* --torch is about the replay, but where the file does not tell it is all there is */
	if (cli->torch && !trace->settings.torch_last)
		frag_trace_set_torch(trace, cli->torch, cli->torch);
	for (uint32_t d = 0; d < trace->devs_count; d++)
		fits = fits && frag_recorded_peak(&trace->devs[d]) <=
				       card->total_bytes - card->context_bytes;
	return frag_settle(trace, fits ? card : NULL, limit_bytes, false, err);
}

int frag_cli_settle_recorded(const struct frag_cli *cli, struct frag_trace *trace,
			     struct frag_err *err)
{
	uint64_t limit = frag_cli_limit(cli, cli->card.total_bytes);

	if (cli->torch)
		frag_trace_set_torch(trace, cli->torch, cli->torch);
	return frag_settle(trace, &cli->card, limit, cli->limit != NULL, err);
}
