/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paged cache of keys and values of a serving engine: how many requests of one length it holds,
 * and how full it gets while given requests arrive.
 *
 * The model is vLLM's V1 scheduler with recomputation, and nothing else: a step takes a given time
 * and makes one token for each running request; a request takes whole blocks for its prompt and the
 * tokens it has made, and gives them back at its end. Running requests come first, in the order in
 * which they began; if no block is free, the one that began last is preempted: its blocks are
 * freed, it waits in front of all others and begins again with its prompt and the tokens it has
 * made. In a step without preemption waiting requests begin, first come first, while there are
 * blocks for what the next one processes. A step processes at most batched_tokens, of longer
 * prompts a part (chunked prefill). Blocks are not shared (no prefix caching), none is kept for
 * later.
 *
 * Ownership: frag_kvcache_release; init by zeroing, then set what is asked.
 */
#ifndef FRAG_PLAN_KVCACHE_H
#define FRAG_PLAN_KVCACHE_H

#include "answer/answer.h"

#define FRAG_KVCACHE_TOKENS_MAX (1ull << 48)  /* of a cache */
#define FRAG_KVCACHE_REQUEST_MAX (1ull << 26) /* tokens of a request's prompt, and of its output */
#define FRAG_KVCACHE_REQUESTS_MAX (1u << 24)
#define FRAG_KVCACHE_ALL_MAX (1ull << 32) /* tokens of all requests of a file: each may be a step */
#define FRAG_KVCACHE_SAMPLES 512u

struct frag_kvcache_request {
	uint64_t arrival_us; /* since the first */
	uint32_t prompt, output;
	uint32_t made;	 /* tokens so far */
	uint32_t done;	 /* tokens of prompt and output whose keys and values are in the cache */
	uint32_t blocks; /* held */
	uint32_t next;	 /* that waits behind it */
	bool preempted;	 /* once or more */
};

/* The most within a span of time; spans are equally long. */
struct frag_kvcache_sample {
	uint64_t blocks, running, waiting, preemptions;
};

struct frag_kvcache {
	/* asked */
	uint64_t tokens, block; /* of the cache; tokens of a block */
	uint64_t max_running;
	uint64_t batched_tokens; /* that a step processes, at most; 0: any number */
	uint64_t step_us;
	uint64_t requests, request_tokens; /* does it hold these? 0: not asked */
	struct frag_kvcache_request *list; /* by arrival */
	size_t count, cap;
	/* found by frag_kvcache_replay */
	uint64_t peak_blocks, peak_us; /* and when it was first so full */
	uint64_t peak_running, peak_waiting;
	uint64_t preemptions, preempted_requests, recomputed_tokens;
	uint64_t first_preemption_us; /* UINT64_MAX = none */
	uint64_t too_long;	      /* requests that the whole cache does not hold; left out */
	uint64_t end_us;
	uint64_t span_us;
	struct frag_kvcache_sample samples[FRAG_KVCACHE_SAMPLES];
	size_t samples_count;
};

static inline uint64_t frag_kvcache_blocks(const struct frag_kvcache *k, uint64_t tokens)
{
	return tokens / k->block + (tokens % k->block != 0);
}
/* How many requests of `tokens` it holds at a time. pre: tokens > 0 */
static inline uint64_t frag_kvcache_holds(const struct frag_kvcache *k, uint64_t tokens)
{
	return k->tokens / k->block / frag_kvcache_blocks(k, tokens);
}

/*
 * Lines "seconds,prompt tokens,output tokens", in any order; a first line of names is passed over.
 * Errors: FRAG_EINPUT with line and column.
 */
int frag_kvcache_read(struct frag_kvcache *k, const char *path, struct frag_err *err);
/*
 * Requests that arrive at random, `rate` a second, with lengths of a published distribution
 * ("sharegpt", "alpaca") or of given means ("512,128"): see kvcache_lengths.c. Errors: FRAG_EUSAGE.
 */
int frag_kvcache_generate(struct frag_kvcache *k, const char *lengths, double rate, size_t count,
			  uint64_t seed, struct frag_err *err);
/* Errors: FRAG_ENOMEM; FRAG_EINTR. */
int frag_kvcache_replay(struct frag_kvcache *k, struct frag_err *err);
void frag_kvcache_release(struct frag_kvcache *k);

/* What a serving engine prints of its memory (engine_log.c): vLLM 0.6 to 0.22, SGLang. Sizes are of one card.
 * Of several lines (ranks, repetitions) the smallest cache, the largest else; 0: not printed. */
struct frag_engine_log {
	uint64_t tokens; /* of the cache */
	uint64_t weights_bytes, profile_bytes, graphs_bytes, cache_bytes;
	bool listens;	/* it is ready for requests */
	bool too_small; /* it ended, because the card is too small for it: no memory for a cache, or too little for one request */
};

/* block: tokens of a block, for releases that print blocks. Errors: FRAG_EINPUT: cannot read. */
int frag_engine_log_read(const char *path, uint64_t block, struct frag_engine_log *out,
			 struct frag_err *err);

extern const struct frag_shape frag_kvcache_shape;
int frag_kvcache_answer(const struct frag_kvcache *k, struct frag_answer *a, struct frag_err *err);

#endif
