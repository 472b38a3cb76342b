/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paged cache of keys and values of a serving engine: how many requests of one length it holds,
 * and how full it gets while given requests arrive.
 *
 * The model is vLLM's V1 scheduler (0.22) with recomputation, and nothing else: a step takes a
 * given time and makes one token for each running request. Running requests come first, in the
 * order in which they began; if no block is free, the one that began last is preempted: its blocks
 * are freed, it waits in front of all others and begins again with its prompt and the tokens it has
 * made. In a step without preemption waiting requests begin, first come first, while there are
 * blocks for all their tokens. A step processes at most batched_tokens, of longer prompts a part.
 *
 * Groups of layers take whole blocks of one pool: for all tokens; for a window, before which they
 * are given back in the next step; or for a state. There is room for drafts of speculative
 * decoding, of which none is accepted. With a `prefix`, which all prompts share, full blocks are
 * kept and found again (kvcache.c); without, none.
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
#define FRAG_KVCACHE_GROUPS 64u
#define FRAG_KVCACHE_BLOCK 16u /* tokens, the usual ones */

struct frag_kvcache_request {
	uint64_t arrival_us; /* since the first */
	uint32_t prompt, output;
	uint32_t made;	 /* tokens so far */
	uint32_t done;	 /* tokens of prompt and output whose keys and values are in the cache */
	uint32_t cached; /* tokens in blocks that others may find */
	struct frag_kvcache_table *tables; /* blocks of each group; NULL: none */
	bool drafts;			   /* it made a token in its last step: drafts follow */
	bool preempted;			   /* once or more */
};

/* Layers of one kind. window: UINT64_MAX: all tokens; 0: a state, of one block and one a draft. */
struct frag_kvcache_group {
	uint64_t window;
	uint64_t times; /* tokens of its blocks, in those of --block */
};

/* What a serving engine prints of its memory (engine_log.c): vLLM 0.6 to 0.22, SGLang. Sizes are of one card.
 * Of several lines (ranks, repetitions) the smallest cache, the largest else; 0: not printed. */
struct frag_engine_log {
	uint64_t tokens, blocks; /* of the cache; blocks alone: tokens are of 16 in each */
	uint64_t request_tokens; /* of the longest request that it takes */
	uint64_t hundredths;	 /* of requests of that length at a time */
	uint64_t block, batched_tokens;
	uint64_t full_tokens, slots; /* of SGLang's layers that keep all; states of requests */
	uint64_t window_tokens;	     /* of its layers with a window */
	uint64_t weights_bytes, profile_bytes, graphs_bytes, cache_bytes;
	bool listens;	/* it is ready for requests */
	bool too_small; /* it ended, because the card is too small for it: no memory for a cache, or too little for one request */
	char ended[240]; /* the line that says so */
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
	uint64_t draft, prefix;		   /* tokens */
	struct frag_kvcache_group groups[FRAG_KVCACHE_GROUPS];
	size_t groups_count;
	uint64_t full;	/* blocks of `align` in groups that keep all tokens */
	uint64_t align; /* most `times` of a group, a multiple of all others */
	bool uniform;	/* no groups were given */
	/* of a model, on a card: of a block by its tokens; of a token in all layers of a kind; tokens
	 * of blocks that hold a state; 0: not known */
	uint64_t token_bytes, full_bytes, window_bytes, state_block;
	uint64_t otherwise; /* blocks of the cache by another line of the log; 0: they agree */
	struct frag_engine_log engine;
	uint64_t
		held; /* requests of that length at a time; of the engine's longest, what it says */
	uint64_t slid; /* that run together at that length, when no prompt is computed any more */
	bool at_least; /* or more: its line shows several kinds of layers, and none were given */
	struct frag_kvcache_request *list; /* by arrival */
	size_t count, cap;
	/* found by frag_kvcache_replay */
	struct frag_kvcache_sample peak; /* of all */
	uint64_t peak_us;		 /* when it was first so full */
	uint64_t preempted_requests, recomputed_tokens;
	uint64_t first_preemption_us; /* UINT64_MAX = none */
	uint64_t too_long; /* requests that the whole cache does not hold; left out, last in list */
	uint64_t end_us;
	uint64_t span_us;
	struct frag_kvcache_sample samples[FRAG_KVCACHE_SAMPLES];
	size_t samples_count;
};

static inline uint64_t frag_kvcache_blocks(uint64_t block, uint64_t tokens)
{
	return tokens / block + (tokens % block != 0);
}
/* Tokens of a block of a group. */
static inline uint64_t frag_kvcache_block(const struct frag_kvcache *k, size_t group)
{
	return k->block * k->groups[group].times;
}
/* "16" or "16,full,window=1024*5,state*3,draft=2" (kvcache_layers.c). Errors: FRAG_EUSAGE. */
int frag_kvcache_layers(void *cache, const char *text, struct frag_err *err);
/* "NAME" of models.csv or "config.json", then ",tp=2", ",fp8": groups and token_bytes
 * (kvcache_model.c). Errors: FRAG_EUSAGE; FRAG_EINPUT: not understood; FRAG_ENOMEM. */
int frag_kvcache_model(struct frag_kvcache *k, const char *text, struct frag_err *err);
/* Before all that follow: takes what the engine printed for what was not given, and finds `held`. */
void frag_kvcache_take(struct frag_kvcache *k, const struct frag_engine_log *said);
/* Blocks of a request of its own with `slots` tokens, in a group and in all. step: of tokens, for
 * the most on the way there; 0: at once. */
uint64_t frag_kvcache_group_needs(const struct frag_kvcache *k, const struct frag_kvcache_group *g,
				  uint64_t slots, uint64_t step);
uint64_t frag_kvcache_needs(const struct frag_kvcache *k, uint64_t slots, uint64_t step);

/*
 * Lines "seconds,prompt tokens,output tokens", in any order; a first line of names is passed over.
 * Errors: FRAG_EINPUT with line and column.
 */
int frag_kvcache_read(struct frag_kvcache *k, const char *path, struct frag_err *err);
/*
 * Requests that arrive at random, `rate` a second, with lengths of a published distribution
 * ("sharegpt", "alpaca") or of given means ("512,128"). Errors: FRAG_EUSAGE.
 */
int frag_kvcache_generate(struct frag_kvcache *k, const char *lengths, double rate, size_t count,
			  uint64_t seed, struct frag_err *err);
/* Errors: FRAG_ENOMEM; FRAG_EINTR. */
int frag_kvcache_replay(struct frag_kvcache *k, struct frag_err *err);
void frag_kvcache_release(struct frag_kvcache *k);

/* Errors: FRAG_EINPUT: cannot read. */
int frag_engine_log_read(const char *path, struct frag_engine_log *out, struct frag_err *err);

extern const struct frag_shape frag_kvcache_shape;
int frag_kvcache_answer(const struct frag_kvcache *k, struct frag_answer *a, struct frag_err *err);

#endif
