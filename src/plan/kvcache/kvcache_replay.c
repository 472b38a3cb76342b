/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache over time; the model is in kvcache.h.
 *
 * The first that runs goes on in every step (a request that the whole cache does not hold is left
 * out) and is never preempted, so there are at most as many steps as tokens.
 */
#include "base/interrupt.h"
#include "kvcache_pool.h"

struct replay {
	struct frag_kvcache *k;
	struct frag_kvcache_pool pool;
	uint64_t now_us, budget; /* of tokens in this step */
	/* in the order in which they began; from its end on, the preempted ones: the last is first */
	uint32_t *running;
	size_t running_count, preempted_count;
	size_t count, arrived, begun;	    /* of those that fit, by arrival */
	uint64_t preempted_now, least_free; /* in this step */
};

void frag_kvcache_release(struct frag_kvcache *k)
{
	FRAG_FREE(k->list);
}

/* The one that began last goes in front of those that wait. */
static void preempt(struct replay *r)
{
	struct frag_kvcache *k = r->k;
	uint32_t i = r->running[--r->running_count];
	struct frag_kvcache_request *q = &k->list[i];

	r->least_free = FRAG_MIN(r->least_free, r->pool.free);
	frag_kvcache_pool_drop(&r->pool, q);
	r->running[k->count - ++r->preempted_count] = i;
	r->preempted_now++;
	k->preempted_requests += !q->preempted;
	q->preempted = true;
	if (k->first_preemption_us == UINT64_MAX)
		k->first_preemption_us = r->now_us;
}

static int process(struct replay *r, struct frag_kvcache_request *q, uint64_t hit, uint64_t tokens,
		   uint64_t slots, struct frag_err *err)
{
	FRAG_TRY(frag_kvcache_pool_take(&r->pool, q, hit, slots, err));
	r->budget -= tokens;
	q->done += (uint32_t)tokens;
	return frag_kvcache_pool_cache(&r->pool, q, err);
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
		uint64_t all = (uint64_t)q->prompt + q->made,
			 hit = frag_kvcache_pool_hit(&r->pool, q), done = hit * k->block,
			 tokens = FRAG_MIN(all - done, r->budget);

		if (!frag_kvcache_pool_has(&r->pool, q, hit, all, true) ||
		    !frag_kvcache_pool_has(&r->pool, q, hit, done + tokens, false))
			break;
		if (r->preempted_count)
			r->preempted_count--;
		else
			r->begun++;
		q->done = (uint32_t)done;
		q->cached = (uint32_t)hit;
		k->recomputed_tokens += q->preempted ? all - done : 0;
		r->running[r->running_count++] = i;
		FRAG_TRY(process(r, q, hit, tokens, done + tokens, err));
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

		frag_kvcache_pool_skip(&r->pool, q);
		while (n < r->running_count && !frag_kvcache_pool_has(&r->pool, q, 0, slots, false))
			preempt(r);
		if (n == r->running_count) /* it was the last itself */
			break;
		FRAG_TRY(process(r, q, 0, tokens, slots, err));
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
			frag_kvcache_pool_drop(&r->pool, q);
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
		.blocks = k->tokens / k->block - FRAG_MIN(r->least_free, r->pool.free),
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

		if (frag_kvcache_needs(k, most, step) <= r->pool.fresh)
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
	struct replay r = { .k = k };
	FRAG_AUTO_FREE uint32_t *running = NULL;
	int rc;

	k->span_us = k->step_us;
	k->first_preemption_us = UINT64_MAX;
	FRAG_TRY_CALLOC(running, k->count, "requests", err);
	r.running = running;
	rc = frag_kvcache_pool_init(&r.pool, k, err);
	if (!rc)
		rc = replay(&r, err);
	for (size_t i = 0; i < r.running_count; i++)
		frag_kvcache_pool_drop(&r.pool, &k->list[running[i]]);
	frag_kvcache_pool_release(&r.pool);
	return rc;
}
