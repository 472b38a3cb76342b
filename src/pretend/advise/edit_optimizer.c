/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimizer: its states in 8 bits, on the host, or none; and fewer temporaries. A block that an
 * optimizer step requests is a state if it outlives the next step, else a temporary, which 8-bit
 * optimizers, those on the host and SGD do not have. The foreach implementation has temporaries for
 * all parameters at once; with foreach=False at most two are live.
 */
#include "edit.h"

#define SMALL_BYTES 16384u /* bitsandbytes leaves states of fewer than 4,096 elements as they are */
#define BLOCK 64u	   /* one scale of 4 bytes for 256 of 8 bits */

enum way { EIGHT_BITS, HOST, NONE };

static uint64_t next_step(const struct frag_story *s, uint32_t span)
{
	for (size_t i = span + 1; i < s->spans_count; i++)
		if (s->spans[i].phase == FRAG_PHASE_OPTIMIZER)
			return s->spans[i].first;
	return FRAG_NEVER;
}

static int states(const struct frag_advice_plan *p, struct frag_edit *e, struct frag_proposal *o,
		  struct frag_err *err)
{
	const struct frag_story *s = p->story;
	uint64_t bytes = 0;

	(void)err;
	for (size_t i = 0; i < s->count; i++) {
		const struct frag_life *l = &s->lives[i];
		const struct frag_span *sp = frag_life_span(s, l);
		bool state = l->died >= next_step(s, l->span);

		if (sp->phase != FRAG_PHASE_OPTIMIZER)
			continue;
		bytes += state ? l->bytes : 0;
		if (state ? o->way != EIGHT_BITS : l->died < sp->end)
			frag_edit_remove(e, i);
		else if (state && l->bytes >= SMALL_BYTES)
			frag_edit_resize(e, i, l->bytes / 4 + l->bytes / 4 / BLOCK);
	}
	if (!bytes)
		e->edited_bytes = 0; /* nothing to propose */
	if (o->way == HOST) /* half of the states of Adam: gradients to the host, weights back */
		o->cost.moved = bytes * s->steps;
	return 0;
}

static int one_by_one(const struct frag_advice_plan *p, struct frag_edit *e,
		      struct frag_proposal *o, struct frag_err *err)
{
	const struct frag_story *s = p->story;

	for (size_t i = 0; s->stacks && i + 1 < s->count; i++) {
		const struct frag_life *l = &s->lives[i];
		const struct frag_span *sp = frag_life_span(s, l);
		uint64_t end = FRAG_MIN(s->lives[i + 1].born, sp->end);

		if (sp->phase != FRAG_PHASE_OPTIMIZER || l->died >= sp->end ||
		    !frag_stack_has(s->trace, l->stack, "torch/optim/", "_multi_tensor"))
			continue;
		o->stack = l->stack;
		o->cost.calls++;
		FRAG_TRY(frag_edit_end(e, i, end, err));
		FRAG_TRY(frag_edit_add(e, i, l->born + 1, end, err));
	}
	return 0;
}

int frag_edit_optimizer(struct frag_advice_plan *p, struct frag_err *err)
{
	static const struct frag_proposal all[] = {
		{ .way = EIGHT_BITS,
		  .change = "8-bit states",
		  .what = "optimizer states in 8 bits (bitsandbytes' AdamW8bit, torchao's "
			  "_AdamW8bit); assumed: they have 32 now",
		  .numerics = "states are rounded to 8 bits in blocks of 256" },
		{ .way = HOST,
		  .change = "states on the host",
		  .what = "optimizer states and the optimizer's work on the host (torchao's "
			  "CPUOffloadOptimizer)" },
		{ .way = NONE,
		  .change = "SGD",
		  .what = "SGD without momentum in place of this optimizer",
		  .numerics = "another optimizer: the learning rate has to be found anew" },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(all); i++)
		FRAG_TRY(frag_plan_try(p, states, all[i], err));
	return frag_plan_try(
		p, one_by_one,
		(struct frag_proposal){ .change = "foreach",
					.what = "the optimizer with foreach=False, or fused=True: "
						"no temporaries of all parameters at once" },
		err);
}
