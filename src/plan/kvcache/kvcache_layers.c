/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of layers: what a request holds in them, and how many of one length the cache holds. */
#include "kvcache.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_MOST (1u << 20)
#define DRAFT_MOST 1024u
#define USUAL_STEP 8192u /* tokens, vLLM's on large cards */

/* The length of a comma and a group at `at`; 0: neither. */
static int read_group(struct frag_kvcache *k, const char *at)
{
	struct frag_kvcache_group g = { UINT64_MAX, 1 };
	uint64_t count = 1;
	int n = 5, more = 0;

	if (sscanf(at, ",draft=%" SCNu64 "%n", &k->draft, &n) == 1)
		return k->draft <= DRAFT_MOST ? n : 0;
	if (!strncmp(at, ",state", 6))
		g.window = 0, n = 6;
	else if (strncmp(at, ",full", 5) != 0 &&
		 (sscanf(at, ",window=%" SCNu64 "%n", &g.window, &n) != 1 || !g.window ||
		  g.window > FRAG_KVCACHE_TOKENS_MAX))
		return 0;
	sscanf(at + n, "*%" SCNu64 "%n", &count, &more);
	if (!count || count > FRAG_KVCACHE_GROUPS - k->groups_count)
		return 0;
	while (count--)
		k->groups[k->groups_count++] = g;
	return n + more;
}

int frag_kvcache_layers(void *cache, const char *text, struct frag_err *err)
{
	struct frag_kvcache *k = cache;
	int n = 0;
	bool ok = sscanf(text, "%" SCNu64 "%n", &k->block, &n) == 1 && k->block &&
		  k->block <= BLOCK_MOST;

	k->groups_count = k->draft = 0;
	for (const char *at = text + n; ok && *at; at += n)
		ok = (n = read_group(k, at)) != 0;
	if (ok)
		return 0;
	return FRAG_USAGE(err,
			  "unknown layers '%.60s': expected 16 tokens, or groups, too: "
			  "16,full,window=1024*5 or 544,full,state*3,draft=2",
			  text);
}

uint64_t frag_kvcache_group_needs(const struct frag_kvcache *k, const struct frag_kvcache_group *g,
				  uint64_t slots, uint64_t step)
{
	uint64_t block = k->block * g->times, n = frag_kvcache_blocks(block, slots);

	if (!g->window)
		return 1 + k->draft;
	return step && g->window < slots
		       ? FRAG_MIN(n, frag_kvcache_blocks(block, g->window - 1 + step) + 1)
		       : n;
}

uint64_t frag_kvcache_needs(const struct frag_kvcache *k, uint64_t slots, uint64_t step)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < k->groups_count; i++)
		sum += frag_kvcache_group_needs(k, &k->groups[i], slots, step);
	return sum;
}

static void hold(struct frag_kvcache *k, bool agree)
{
	const struct frag_engine_log *e = &k->engine;
	double most = (double)e->hundredths / 100 * (double)e->request_tokens;
	uint64_t tokens = k->request_tokens, blocks = k->tokens / k->block,
		 shared = FRAG_MIN(k->prefix, tokens - 1) / (k->block * k->align) * k->full,
		 need = frag_kvcache_needs(k, tokens, k->batched_tokens),
		 later = frag_kvcache_needs(k, tokens, 1 + k->draft);

	if (later < need)
		k->slid = (blocks - FRAG_MIN(shared, blocks)) / (later - shared);
	if (e->full_tokens || e->slots) /* of SGLang: a pool for each kind of layers */
		need = frag_kvcache_blocks(k->block, tokens);
	k->held = (blocks - FRAG_MIN(shared, blocks)) / (need - shared);
	if (e->slots)
		k->held = FRAG_MIN(k->held, e->slots);
	for (size_t i = 0; i < k->groups_count && e->window_tokens; i++)
		if (k->groups[i].window && k->groups[i].window != UINT64_MAX)
			k->held = FRAG_MIN(k->held, e->window_tokens /
							    FRAG_MIN(tokens, k->groups[i].window));
	if (!e->hundredths || k->prefix)
		return;
	k->at_least = k->uniform && !agree && tokens != e->request_tokens;
	if (k->at_least)
		k->held = (uint64_t)fmin((double)k->held, most / (double)tokens);
	if (k->at_least && tokens < e->request_tokens)
		k->held = FRAG_MAX(k->held, e->hundredths / 100);
	if (tokens == e->request_tokens)
		k->held = e->hundredths / 100;
}

/* The log's figures are rounded. */
static void check(struct frag_kvcache *k, uint64_t blocks)
{
	uint64_t whole = k->tokens / k->block;
	double here = (double)whole;

	if (fabs((double)blocks - here) > 1 + here / 33)
		k->otherwise = blocks;
}

void frag_kvcache_take(struct frag_kvcache *k, const struct frag_engine_log *said)
{
	double most = (double)said->hundredths / 100,
	       requests = (double)said->tokens / (double)said->request_tokens, blocks;
	/* since 0.21 vLLM prints its requests times their length as tokens */
	bool agree = said->hundredths && fabs(requests - most) <= 0.01 + requests / 100;

	k->engine = *said;
	if (!k->block)
		k->block = FRAG_MIN(said->block ?: k->state_block ?: FRAG_KVCACHE_BLOCK, BLOCK_MOST);
	if (said->tokens)
		k->tokens = said->blocks
				    ? FRAG_MIN(said->blocks, FRAG_KVCACHE_TOKENS_MAX / k->block) *
					      k->block
				    : said->tokens;
	k->uniform = !k->groups_count;
	if (k->uniform)
		k->groups[k->groups_count++] = (struct frag_kvcache_group){ UINT64_MAX, 1 };
	if (!k->batched_tokens)
		k->batched_tokens =
			said->batched_tokens || k->uniform ? said->batched_tokens : USUAL_STEP;
	for (size_t i = 0; i < k->groups_count; i++)
		k->align = FRAG_MAX(k->align, k->groups[i].times);
	for (size_t i = 0; i < k->groups_count; i++)
		if (k->groups[i].window == UINT64_MAX)
			k->full += k->align / k->groups[i].times;
	if ((k->groups_count > 1 || !k->full) && said->hundredths) {
		blocks = (double)frag_kvcache_needs(k, said->request_tokens, k->batched_tokens);
		blocks = ceil((agree ? requests : most) * blocks);
		k->tokens = (uint64_t)fmin(blocks, floor((double)FRAG_KVCACHE_TOKENS_MAX /
							 (double)k->block)) *
			    k->block;
		if (!agree && said->batched_tokens)
			check(k, said->tokens / k->block * k->groups_count);
	}
	if (k->token_bytes && said->cache_bytes && !said->full_tokens && !said->slots)
		check(k, said->cache_bytes / k->token_bytes / k->block);
	if (k->request_tokens)
		hold(k, agree);
}
