/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache over time; the model is in kvcache.h.
 *
 * Every step makes at least one token (a request that the whole cache does not hold is left out),
 * and preemption keeps the tokens that were made, so there are at most as many steps as tokens.
 */
#include "kvcache.h"

#include "base/interrupt.h"

#define NONE UINT32_MAX

struct replay {
	struct frag_kvcache *k;
	uint64_t free_blocks, now_us, budget; /* of tokens in this step */
	uint32_t *running;		      /* in the order in which they began */
	size_t running_count;
	uint32_t first, last; /* that wait; NONE = none */
	uint64_t waiting;
	size_t arrived;
	uint64_t preempted_now, least_free; /* in this step */
};

void frag_kvcache_release(struct frag_kvcache *k)
{
	FRAG_FREE(k->list);
}

/* Tokens of a request to process in this step. */
static uint64_t share_of(const struct frag_kvcache_request *q, uint64_t budget)
{
	return FRAG_MIN((uint64_t)q->prompt + q->made - q->done, budget);
}

/* ---- those that wait ------------------------------------------------------------------ */

static void arrive(struct replay *r)
{
	struct frag_kvcache *k = r->k;

	for (; r->arrived < k->count && k->list[r->arrived].arrival_us <= r->now_us; r->arrived++) {
		uint32_t i = (uint32_t)r->arrived;
		struct frag_kvcache_request *q = &k->list[i];

		if (frag_kvcache_blocks(k, (uint64_t)q->prompt + q->output - 1) >
		    k->tokens / k->block) {
			k->too_long++;
			continue;
		}
		q->next = NONE;
		if (r->first == NONE)
			r->first = i;
		else
			k->list[r->last].next = i;
		r->last = i;
		r->waiting++;
	}
}

/* The one that began last goes in front of those that wait. */
static void preempt(struct replay *r)
{
	struct frag_kvcache *k = r->k;
	uint32_t i = r->running[--r->running_count];
	struct frag_kvcache_request *q = &k->list[i];

	r->least_free = 0;
	r->free_blocks += q->blocks;
	q->blocks = 0;
	q->done = 0;
	q->next = r->first;
	if (r->first == NONE)
		r->last = i;
	r->first = i;
	r->waiting++;
	r->preempted_now++;
	k->preempted_requests += !q->preempted;
	q->preempted = true;
	if (k->first_preemption_us == UINT64_MAX)
		k->first_preemption_us = r->now_us;
}

static void begin(struct replay *r)
{
	struct frag_kvcache *k = r->k;

	while (r->first != NONE && r->running_count < k->max_running && r->budget) {
		struct frag_kvcache_request *q = &k->list[r->first];
		uint64_t tokens = share_of(q, r->budget), need = frag_kvcache_blocks(k, tokens);

		if (need > r->free_blocks)
			break;
		r->free_blocks -= need;
		r->budget -= tokens;
		q->blocks = (uint32_t)need;
		q->done = (uint32_t)tokens;
		k->recomputed_tokens += q->preempted ? (uint64_t)q->prompt + q->made : 0;
		r->running[r->running_count++] = r->first;
		r->first = q->next;
		r->waiting--;
	}
}

/* ---- a step ------------------------------------------------------------------------------- */

/* Blocks for what each running request processes now: a token, or a part of its prompt. */
static void grow(struct replay *r)
{
	for (size_t n = 0; n < r->running_count && r->budget; n++) {
		struct frag_kvcache_request *q = &r->k->list[r->running[n]];
		uint64_t tokens = share_of(q, r->budget),
			 need = frag_kvcache_blocks(r->k, q->done + tokens) - q->blocks;

		while (need > r->free_blocks && n < r->running_count)
			preempt(r);
		if (n == r->running_count) /* it was the last itself */
			break;
		r->free_blocks -= need;
		r->budget -= tokens;
		q->blocks += (uint32_t)need;
		q->done += (uint32_t)tokens;
	}
}

/* Each whose tokens are all processed makes one; those that are done go. */
static void make_tokens(struct replay *r)
{
	size_t left = 0;

	for (size_t n = 0; n < r->running_count; n++) {
		struct frag_kvcache_request *q = &r->k->list[r->running[n]];

		if (q->done == q->prompt + q->made)
			q->made++;
		if (q->made < q->output)
			r->running[left++] = r->running[n];
		else
			r->free_blocks += q->blocks;
	}
	r->running_count = left;
}

static void merge(struct frag_kvcache *k)
{
	for (size_t i = 0; i < FRAG_KVCACHE_SAMPLES; i++) {
		struct frag_kvcache_sample s = k->samples[i], *to = &k->samples[i / 2];

		k->samples[i] = (struct frag_kvcache_sample){ 0 };
		if (i % 2 == 0)
			*to = (struct frag_kvcache_sample){ 0 };
		to->blocks = FRAG_MAX(to->blocks, s.blocks);
		to->running = FRAG_MAX(to->running, s.running);
		to->waiting = FRAG_MAX(to->waiting, s.waiting);
		to->preemptions += s.preemptions;
	}
	k->samples_count = (k->samples_count + 1) / 2;
	k->span_us *= 2;
}

static void note(struct replay *r)
{
	struct frag_kvcache *k = r->k;
	uint64_t blocks = k->tokens / k->block - FRAG_MIN(r->least_free, r->free_blocks);
	struct frag_kvcache_sample *s;

	while (r->now_us / k->span_us >= FRAG_KVCACHE_SAMPLES)
		merge(k);
	s = &k->samples[r->now_us / k->span_us];
	k->samples_count = FRAG_MAX(k->samples_count, (size_t)(r->now_us / k->span_us + 1));
	s->blocks = FRAG_MAX(s->blocks, blocks);
	s->running = FRAG_MAX(s->running, r->running_count);
	s->waiting = FRAG_MAX(s->waiting, r->waiting);
	s->preemptions += r->preempted_now;
	if (blocks > k->peak_blocks)
		k->peak_us = r->now_us;
	k->peak_blocks = FRAG_MAX(k->peak_blocks, blocks);
	k->peak_running = FRAG_MAX(k->peak_running, r->running_count);
	k->peak_waiting = FRAG_MAX(k->peak_waiting, r->waiting);
	k->preemptions += r->preempted_now;
}

int frag_kvcache_replay(struct frag_kvcache *k, struct frag_err *err)
{
	struct replay r = {
		.k = k, .free_blocks = k->tokens / k->block, .first = NONE, .last = NONE
	};
	FRAG_AUTO_FREE uint32_t *running = NULL;

	k->span_us = k->step_us;
	k->first_preemption_us = UINT64_MAX;
	FRAG_TRY_CALLOC(running, k->count, "requests", err);
	r.running = running;
	for (uint64_t steps = 0;; steps++) {
		if (!(steps & 1023) && frag_interrupted())
			return frag_fail(err, FRAG_EINTR, "interrupted");
		arrive(&r);
		if (!r.running_count && r.first == NONE) {
			if (r.arrived == k->count)
				break;
			r.now_us = k->list[r.arrived].arrival_us;
			continue;
		}
		r.preempted_now = 0;
		r.least_free = UINT64_MAX;
		r.budget = k->batched_tokens ?: UINT64_MAX;
		grow(&r);
		if (!r.preempted_now)
			begin(&r);
		note(&r);
		make_tokens(&r);
		r.now_us += k->step_us;
		k->end_us = r.now_us;
	}
	return 0;
}
