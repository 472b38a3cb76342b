/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache over time; the model is in kvcache.h.
 *
 * Blocks go out as vLLM's V1 engine (0.22) hands them out: those that were never taken first, then
 * those that were given back longest ago; of a request that ends the last first. With a prefix,
 * full blocks stay cached until they are taken again: another request with the same tokens, or the
 * same one after a preemption, finds them. Its hit is the longest for which each group has all
 * blocks that the next token sees: of a window the last ones. A block that was computed twice is
 * cached twice, found is the first of them.
 *
 * The first that runs goes on in every step (a request that the whole cache does not hold is left
 * out) and is never preempted, so there are at most as many steps as tokens.
 */
#include "kvcache.h"

#include <string.h>

#include "base/interrupt.h"
#include "lib/addr_map.h"
#include "lib/grow.h"
#include "lib/links.h"

/* Keys of cached blocks: request (0: the prefix), group, number of the block in it. */
#define GROUP_SHIFT 27 /* blocks of a request are fewer */
#define REQUEST_SHIFT 39
#define BLOCKS_MOST (1u << 25) /* that are taken */

struct block {
	struct block *older, *newer; /* of the free ones */
	struct block *same;	     /* cached later with the same key */
	uint64_t key;		     /* 0: not cached */
	uint32_t holders;
};

/* Of a request in one group. */
struct frag_kvcache_table {
	struct block **at;
	size_t first, count, cap; /* before the first they are given back */
};

struct replay {
	struct frag_kvcache *k;
	uint64_t fresh, free; /* blocks: never taken; these and freed ones */
	struct {
		struct block *oldest, *newest;
	} freed;
	struct frag_addr_map cached;
	uint64_t now_us, budget; /* of tokens in this step */
	/* in the order in which they began; from its end on, the preempted ones: the last is first */
	uint32_t *running;
	size_t running_count, preempted_count;
	size_t count, arrived, begun;	    /* of those that fit, by arrival */
	uint64_t preempted_now, least_free; /* in this step */
};

static uint64_t key_of(const struct replay *r, const struct frag_kvcache_request *q, size_t group,
		       uint64_t i)
{
	uint64_t shared = FRAG_MIN(r->k->prefix, q->prompt) / frag_kvcache_block(r->k, group);

	return (i < shared ? 0 : (uint64_t)(q - r->k->list) + 1) << REQUEST_SHIFT |
	       (uint64_t)(group + 1) << GROUP_SHIFT | i;
}

static struct block *find(const struct replay *r, const struct frag_kvcache_request *q,
			  size_t group, uint64_t i)
{
	return frag_addr_map_get(&r->cached, key_of(r, q, group, i));
}

/* The first block that the token behind `blocks` sees. */
static uint64_t seen_from(const struct frag_kvcache *k, size_t group, uint64_t blocks)
{
	uint64_t window = k->groups[group].window;

	return blocks -
	       (window == UINT64_MAX
			? blocks
			: FRAG_MIN(blocks,
				   frag_kvcache_blocks(frag_kvcache_block(k, group), window - 1)));
}

/* Tokens of the longest hit of q, which holds none: whole blocks of each group. */
static uint64_t find_hit(const struct replay *r, const struct frag_kvcache_request *q)
{
	const uint64_t unit = r->k->block * r->k->align;
	uint64_t hit = r->k->prefix ? (q->prompt + q->made - 1) / unit * unit : 0;

	for (size_t g = 0; g < r->k->groups_count; g++) {
		const uint64_t block = frag_kvcache_block(r->k, g);

		for (uint64_t i = hit / block; i-- > seen_from(r->k, g, hit / block);)
			if (!find(r, q, g, i)) {
				hit = i * block / unit * unit;
				g = SIZE_MAX; /* all again */
				break;
			}
	}
	return hit;
}

/* Whether there are blocks for `slots` tokens of q, of which `hit` are found. step: as in
 * frag_kvcache_needs. */
static bool has(const struct replay *r, const struct frag_kvcache_request *q, uint64_t hit,
		uint64_t slots, uint64_t step)
{
	uint64_t sum = 0;

	for (size_t g = 0; g < r->k->groups_count; g++) {
		uint64_t needs = frag_kvcache_group_needs(r->k, &r->k->groups[g], slots, step),
			 found = hit / frag_kvcache_block(r->k, g),
			 held = q->tables ? q->tables[g].first + q->tables[g].count : found;

		sum += needs - FRAG_MIN(held, needs);
		for (uint64_t i = seen_from(r->k, g, found); i < found; i++)
			sum += !find(r, q, g, i)->holders;
	}
	return sum <= r->free;
}

static void forget(struct replay *r, struct block *b)
{
	struct frag_addr_cell *cell = frag_addr_map_find(&r->cached, b->key);
	struct block *other = frag_addr_map_get(&r->cached, b->key);

	if (other == b && b->same)
		cell->value = (uintptr_t)b->same;
	else if (other == b)
		frag_addr_map_remove(&r->cached, cell);
	while (other->same && other->same != b)
		other = other->same;
	if (other->same)
		other->same = b->same;
	b->key = 0;
	b->same = NULL;
}

static void hold(struct replay *r, struct block *b)
{
	if (!b->holders++) {
		FRAG_QUEUE_REMOVE(&r->freed, b);
		r->free--;
	}
}

/* One that is free, behind those of t. */
static int add(struct replay *r, struct frag_kvcache_table *t, struct frag_err *err)
{
	struct block *b = r->freed.oldest;

	FRAG_TRY(FRAG_GROW(t->at, t->count, t->cap, "blocks", err));
	if (!b || (r->k->prefix && r->fresh)) {
		if (r->k->tokens / r->k->block - r->fresh == BLOCKS_MOST)
			return frag_fail(err, FRAG_ENOMEM,
					 "the requests take more than %u blocks of the cache",
					 BLOCKS_MOST);
		FRAG_TRY_CALLOC(b, 1, "blocks", err);
		FRAG_QUEUE_ADD(&r->freed, b);
		r->fresh--;
	}
	if (b->key)
		forget(r, b);
	hold(r, b);
	t->at[t->count++] = b;
	return 0;
}

/* Blocks whose tokens are all done. */
static int cache(struct replay *r, struct frag_kvcache_request *q, size_t group, uint64_t i,
		 struct frag_err *err)
{
	const struct frag_kvcache_table *t = &q->tables[group];
	struct block *other = find(r, q, group, i), *b;

	if (i < t->first)
		return 0;
	b = t->at[i - t->first];
	b->key = key_of(r, q, group, i);
	while (other && other->same)
		other = other->same;
	if (other)
		other->same = b;
	else if (frag_addr_map_reserve(&r->cached))
		return frag_fail_nomem(err, "blocks");
	else
		frag_addr_map_put(&r->cached, b->key, b);
	return 0;
}

/* Takes them, and processes `tokens` behind the hit or what is done. */
static int take(struct replay *r, struct frag_kvcache_request *q, uint64_t hit, uint64_t slots,
		uint64_t tokens, struct frag_err *err)
{
	const size_t groups = r->k->groups_count;

	if (!q->tables) {
		FRAG_TRY_CALLOC(q->tables, groups, "requests", err);
		q->done = q->cached = (uint32_t)hit;
	}
	for (size_t g = 0; g < groups && hit; g++) {
		struct frag_kvcache_table *t = &q->tables[g];
		const uint64_t found = hit / frag_kvcache_block(r->k, g);

		t->first = seen_from(r->k, g, found);
		FRAG_TRY(frag_grow_to(&t->at, found - t->first, &t->cap, sizeof(*t->at), "blocks",
				      err));
		for (uint64_t i = t->first; i < found; i++)
			hold(r, t->at[t->count++] = find(r, q, g, i));
	}
	for (size_t g = 0; g < groups; g++) {
		struct frag_kvcache_table *t = &q->tables[g];
		uint64_t needs = frag_kvcache_group_needs(r->k, &r->k->groups[g], slots, 0);

		while (t->first + t->count < needs)
			FRAG_TRY(add(r, t, err));
	}
	q->done += (uint32_t)tokens;
	slots = r->k->prefix ? FRAG_MIN(q->done, q->prompt + q->made) : 0;
	for (const uint64_t unit = r->k->block * r->k->align; q->cached + unit <= slots;
	     q->cached += (uint32_t)unit)
		for (size_t g = 0; g < groups; g++)
			for (uint64_t i = 0, block = frag_kvcache_block(r->k, g); i < unit / block;
			     i++)
				FRAG_TRY(cache(r, q, g, q->cached / block + i, err));
	return 0;
}

/* The first n that it holds, from the last on. */
static void give_back(struct replay *r, struct frag_kvcache_table *t, uint64_t n)
{
	for (size_t i = n; i-- > 0;)
		if (!--t->at[i]->holders) {
			FRAG_QUEUE_ADD(&r->freed, t->at[i]);
			r->free++;
		}
	t->first += n;
	t->count -= n;
	if (t->count)
		memmove(t->at, t->at + n, t->count * sizeof(*t->at));
}

/* Gives back what no window sees any more. */
static void skip(struct replay *r, struct frag_kvcache_request *q)
{
	for (size_t g = 0; g < r->k->groups_count; g++) {
		struct frag_kvcache_table *t = &q->tables[g];
		uint64_t window = r->k->groups[g].window, block = frag_kvcache_block(r->k, g),
			 first = window && q->done >= window ? (q->done - window + 1) / block : 0;

		if (first > t->first)
			give_back(r, t, FRAG_MIN(first - t->first, t->count));
	}
}

static void drop(struct replay *r, struct frag_kvcache_request *q)
{
	for (size_t g = 0; q->tables && g < r->k->groups_count; g++) {
		give_back(r, &q->tables[g], q->tables[g].count);
		FRAG_FREE(q->tables[g].at);
	}
	FRAG_FREE(q->tables);
	q->tables = NULL;
	q->done = 0;
	q->drafts = false;
}

/* The one that began last goes in front of those that wait. */
static void preempt(struct replay *r)
{
	struct frag_kvcache *k = r->k;
	uint32_t i = r->running[--r->running_count];
	struct frag_kvcache_request *q = &k->list[i];

	r->least_free = FRAG_MIN(r->least_free, r->free);
	drop(r, q);
	r->running[k->count - ++r->preempted_count] = i;
	r->preempted_now++;
	k->preempted_requests += !q->preempted;
	q->preempted = true;
	if (k->first_preemption_us == UINT64_MAX)
		k->first_preemption_us = r->now_us;
}

/* While there is room for all of the first that waits, and for what it processes now. */
static int begin(struct replay *r, struct frag_err *err)
{
	struct frag_kvcache *k = r->k;

	while ((r->preempted_count || r->begun < r->arrived) && r->running_count < k->max_running &&
	       r->budget) {
		uint32_t i = r->preempted_count ? r->running[k->count - r->preempted_count]
						: (uint32_t)r->begun;
		struct frag_kvcache_request *q = &k->list[i];
		uint64_t all = (uint64_t)q->prompt + q->made, hit = find_hit(r, q),
			 tokens = FRAG_MIN(all - hit, r->budget);

		if (!has(r, q, hit, all, k->batched_tokens) || !has(r, q, hit, hit + tokens, 0))
			break;
		if (r->preempted_count)
			r->preempted_count--;
		else
			r->begun++;
		k->recomputed_tokens += q->preempted ? all - hit : 0;
		r->running[r->running_count++] = i;
		r->budget -= tokens;
		FRAG_TRY(take(r, q, hit, hit + tokens, tokens, err));
	}
	return 0;
}

/* Blocks for what each running request processes now: a token and drafts, or a part of its prompt. */
static int grow(struct replay *r, struct frag_err *err)
{
	struct frag_kvcache *k = r->k;

	for (size_t n = 0; n < r->running_count && r->budget; n++) {
		struct frag_kvcache_request *q = &k->list[r->running[n]];
		uint64_t left = (uint64_t)q->prompt + q->made - q->done,
			 tokens = FRAG_MIN(left + (q->drafts ? k->draft : 0), r->budget),
			 slots = q->done + tokens + k->draft;

		skip(r, q);
		while (n < r->running_count && !has(r, q, 0, slots, 0))
			preempt(r);
		if (n == r->running_count) /* it was the last itself */
			break;
		r->budget -= tokens;
		FRAG_TRY(take(r, q, 0, slots, tokens, err));
	}
	return 0;
}

/* Each whose tokens are all processed makes one; those that are done go. */
static void make_tokens(struct replay *r)
{
	size_t left = 0;

	for (size_t n = 0; n < r->running_count; n++) {
		struct frag_kvcache_request *q = &r->k->list[r->running[n]];

		q->drafts |= q->done >= q->prompt + q->made;
		if (q->done >= q->prompt + q->made) /* drafts are refused */
			q->done = q->prompt + q->made++;
		if (q->made < q->output)
			r->running[left++] = r->running[n];
		else
			drop(r, q);
	}
	r->running_count = left;
}

static void fold(struct frag_kvcache_sample *to, struct frag_kvcache_sample s)
{
	to->blocks = FRAG_MAX(to->blocks, s.blocks);
	to->running = FRAG_MAX(to->running, s.running);
	to->waiting = FRAG_MAX(to->waiting, s.waiting);
	to->preemptions += s.preemptions;
}

static void merge(struct frag_kvcache *k)
{
	for (size_t i = 0; i < FRAG_KVCACHE_SAMPLES; i++) {
		struct frag_kvcache_sample s = k->samples[i];

		k->samples[i] = (struct frag_kvcache_sample){ 0 };
		fold(&k->samples[i / 2], s);
	}
	k->samples_count = (k->samples_count + 1) / 2;
	k->span_us *= 2;
}

static void note(struct replay *r)
{
	struct frag_kvcache *k = r->k;
	struct frag_kvcache_sample now = {
		.blocks = k->tokens / k->block - FRAG_MIN(r->least_free, r->free),
		.running = r->running_count,
		.waiting = r->preempted_count + r->arrived - r->begun,
		.preemptions = r->preempted_now,
	};

	while (r->now_us / k->span_us >= FRAG_KVCACHE_SAMPLES)
		merge(k);
	k->samples_count = FRAG_MAX(k->samples_count, (size_t)(r->now_us / k->span_us + 1));
	if (now.blocks > k->peak.blocks)
		k->peak_us = r->now_us;
	fold(&k->samples[r->now_us / k->span_us], now);
	fold(&k->peak, now);
}

/* Those that the whole cache holds come first. */
static void prepare(struct replay *r)
{
	struct frag_kvcache *k = r->k;
	uint64_t step = k->batched_tokens ? k->batched_tokens + k->draft : 0;

	for (size_t i = 0; i < k->count; i++) {
		struct frag_kvcache_request *q = &k->list[i];
		uint64_t most = (uint64_t)q->prompt + q->output - 1 + 2 * k->draft;

		if (frag_kvcache_needs(k, most, step) <= r->fresh)
			k->list[r->count++] = *q;
	}
	k->too_long = k->count - r->count;
}

static int replay(struct replay *r, struct frag_err *err)
{
	struct frag_kvcache *k = r->k;

	prepare(r);
	for (uint64_t steps = 0;; steps++) {
		if (!(steps & 1023) && frag_interrupted())
			return frag_fail(err, FRAG_EINTR, "interrupted");
		while (r->arrived < r->count && k->list[r->arrived].arrival_us <= r->now_us)
			r->arrived++;
		if (!r->running_count && !r->preempted_count && r->begun == r->arrived) {
			if (r->arrived == r->count)
				return 0;
			r->now_us = k->list[r->arrived].arrival_us;
			continue;
		}
		r->preempted_now = 0;
		r->least_free = UINT64_MAX;
		r->budget = k->batched_tokens ?: UINT64_MAX;
		FRAG_TRY(grow(r, err));
		if (!r->preempted_now)
			FRAG_TRY(begin(r, err));
		note(r);
		make_tokens(r);
		r->now_us += k->step_us;
		k->end_us = r->now_us;
	}
}

int frag_kvcache_replay(struct frag_kvcache *k, struct frag_err *err)
{
	struct replay r = { .k = k, .fresh = k->tokens / k->block, .free = k->tokens / k->block };
	struct block *b;
	int rc;

	k->span_us = k->step_us;
	k->first_preemption_us = UINT64_MAX;
	FRAG_TRY_CALLOC(r.running, k->count, "requests", err);
	rc = replay(&r, err);
	for (size_t i = 0; i < r.running_count; i++)
		drop(&r, &k->list[r.running[i]]);
	while ((b = r.freed.oldest)) {
		FRAG_QUEUE_REMOVE(&r.freed, b);
		frag_host_free(b);
	}
	frag_addr_map_release(&r.cached);
	FRAG_FREE(r.running);
	return rc;
}
