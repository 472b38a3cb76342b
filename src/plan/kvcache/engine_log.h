/* SPDX-License-Identifier: Apache-2.0 */
/* What a serving engine prints of its memory: vLLM 0.6 to 0.22, SGLang. Sizes are of one card. */
#ifndef FRAG_PLAN_ENGINE_LOG_H
#define FRAG_PLAN_ENGINE_LOG_H

#include <frag/base.h>
#include <frag/error.h>

/* Of several lines (ranks, repetitions) the smallest cache, the largest else; 0: not printed. */
struct frag_engine_log {
	uint64_t tokens; /* of the cache */
	uint64_t weights_bytes, profile_bytes, graphs_bytes, cache_bytes;
	bool listens;	/* it is ready for requests */
	bool too_small; /* it ended, because the card is too small for it: no memory for a cache, or too little for one request */
};

/* block: tokens of a block, for releases that print blocks. Errors: FRAG_EINPUT: cannot read. */
int frag_engine_log_read(const char *path, uint64_t block, struct frag_engine_log *out,
			 struct frag_err *err);

#endif
