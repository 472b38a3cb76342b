/* SPDX-License-Identifier: Apache-2.0 */
/* The foreach implementation of optimizers has temporaries for all parameters at once; with foreach=False at most two are live. */
#include "edit.h"

int frag_edit_foreach(struct frag_advice_plan *p, struct frag_err *err)
{
	FRAG_AUTO(frag_edit_release) struct frag_edit e = { 0 };
	const struct frag_story *s = p->story;
	uint32_t stack = FRAG_NO_STACK;
	uint64_t count = 0;

	FRAG_TRY(frag_edit_init(&e, s, err));
	for (size_t i = 0; s->stacks && i + 1 < s->count; i++) {
		const struct frag_life *l = &s->lives[i];
		const struct frag_span *sp = frag_life_span(s, l);
		uint64_t end;

		if (sp->phase != FRAG_PHASE_OPTIMIZER || l->died >= sp->end ||
		    !frag_stack_has(s->trace, l->stack, "torch/optim/", "_multi_tensor"))
			continue;
		stack = l->stack;
		count++;
		end = FRAG_MIN(s->lives[i + 1].born, sp->end);
		FRAG_TRY(frag_edit_end(&e, i, end, err));
		FRAG_TRY(frag_edit_add(&e, i, l->born + 1, end, err));
	}
	return frag_plan_propose(
		p, &e,
		&(struct frag_proposal){ .change = "foreach",
					 .what = "the optimizer with foreach=False, or fused=True: "
						 "no temporaries of all parameters at once",
					 .stack = stack,
					 .cost.calls = count },
		err);
}
