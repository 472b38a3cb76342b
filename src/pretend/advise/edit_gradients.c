/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients released in the backward pass: each parameter is updated at once and its gradient freed
 * at the next request, so the optimizer step has no temporaries.
 */
#include "edit.h"

/* Is it used by an optimizer step before another backward pass accumulates into it? */
static bool is_gradient(const struct frag_story *s, const struct frag_life *l)
{
	size_t i = l->span + 1;

	if (frag_life_span(s, l)->phase != FRAG_PHASE_BACKWARD)
		return false;
	while (i < s->spans_count && s->spans[i].phase == FRAG_PHASE_FORWARD)
		i++;
	return i < s->spans_count && s->spans[i].phase == FRAG_PHASE_OPTIMIZER &&
	       l->died >= s->spans[i].end;
}

static int release(const struct frag_advice_plan *p, struct frag_edit *e, struct frag_proposal *o,
		   struct frag_err *err)
{
	const struct frag_story *s = p->story;

	for (size_t i = 0; i < s->count; i++) {
		const struct frag_life *l = &s->lives[i];
		const struct frag_span *sp = frag_life_span(s, l);

		if (is_gradient(s, l)) {
			uint64_t at = i + 1 < s->count ? s->lives[i + 1].born : sp->end;

			o->cost.calls++;
			FRAG_TRY(frag_edit_add(e, i, at, at, err)); /* temporary of its update */
			FRAG_TRY(frag_edit_end(e, i, at, err));
		} else if (sp->phase == FRAG_PHASE_OPTIMIZER && l->died < sp->end) {
			frag_edit_remove(e, i);
		}
	}
	if (!o->cost.calls)
		e->edited_bytes = 0; /* nothing to propose */
	return 0;
}

int frag_edit_gradients(struct frag_advice_plan *p, struct frag_err *err)
{
	return frag_plan_try(
		p, release,
		(struct frag_proposal){ .change = "gradients released",
					.what = "each parameter updated as soon as its gradient is "
						"there, which then goes "
						"(register_post_accumulate_grad_hook, an optimizer "
						"per parameter); not with gradient clipping" },
		err);
}
