/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optimizer states: in 8 bits, on the host, or none. A block that an optimizer step requests is a
 * state if it outlives the next step, else a temporary, which these optimizers do not have.
 */
#include "edit.h"

#define SMALL_BYTES 16384u /* bitsandbytes leaves states of fewer than 4,096 elements as they are */
#define BLOCK 64u	   /* one scale of 4 bytes for 256 of 8 bits */

enum what { EIGHT_BITS, HOST, NONE };

static uint64_t next_step(const struct frag_story *s, uint32_t span)
{
	for (size_t i = span + 1; i < s->spans_count; i++)
		if (s->spans[i].phase == FRAG_PHASE_OPTIMIZER)
			return s->spans[i].first;
	return FRAG_NEVER;
}

static int edit(struct frag_edit *e, enum what what, uint64_t *states, uint64_t *count)
{
	const struct frag_story *s = e->story;

	for (size_t i = 0; i < s->count; i++) {
		const struct frag_life *l = &s->lives[i];
		const struct frag_span *sp = frag_life_span(s, l);

		if (sp->phase != FRAG_PHASE_OPTIMIZER)
			continue;
		if (l->died < next_step(s, l->span)) {
			if (l->died < sp->end)
				frag_edit_remove(e, i);
			continue;
		}
		*states += l->bytes;
		++*count;
		if (what != EIGHT_BITS)
			frag_edit_remove(e, i);
		else if (l->bytes >= SMALL_BYTES)
			frag_edit_resize(e, i, l->bytes / 4 + l->bytes / 4 / BLOCK);
	}
	return 0;
}

static int one(struct frag_advice_plan *p, enum what what, struct frag_err *err)
{
	static const struct frag_proposal proposals[] = {
		[EIGHT_BITS] = { .change = "8-bit states",
				 .what = "optimizer states in 8 bits (bitsandbytes' AdamW8bit, "
					 "torchao's _AdamW8bit); assumed: they have 32 now",
				 .numerics = "states are rounded to 8 bits in blocks of 256" },
		[HOST] = { .change = "states on the host",
			   .what = "optimizer states and the optimizer's work on the host "
				   "(torchao's CPUOffloadOptimizer)" },
		[NONE] = { .change = "SGD",
			   .what = "SGD without momentum in place of this optimizer",
			   .numerics = "another optimizer: the learning rate has to be found "
				       "anew" },
	};
	FRAG_AUTO(frag_edit_release) struct frag_edit e = { 0 };
	struct frag_proposal o = proposals[what];
	uint64_t states = 0, count = 0;

	FRAG_TRY(frag_edit_init(&e, p->story, err));
	FRAG_TRY(edit(&e, what, &states, &count));
	if (!states)
		return 0;
	if (what == HOST) /* half of the states of Adam: gradients to the host, weights back */
		o.cost.moved = states * p->story->steps;
	return frag_plan_propose(p, &e, &o, err);
}

int frag_edit_states(struct frag_advice_plan *p, struct frag_err *err)
{
	return one(p, EIGHT_BITS, err) ?: one(p, HOST, err) ?: one(p, NONE, err);
}
