/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients. Released in the backward pass: each parameter is updated at once and its gradient
 * freed at the next request, so the optimizer step has no temporaries. Set to None: gradients that
 * outlive the step are freed at its end. The next backward pass requests them again, in place of a
 * temporary of the same size that was added to the old gradient.
 */
#include "edit.h"

#define LOOK 256u /* blocks searched for the temporary of a gradient */

/* The optimizer step that uses the gradient; NULL: another backward pass comes first. */
static const struct frag_span *step_after(const struct frag_story *s, const struct frag_life *l)
{
	for (size_t i = l->span + 1; i < s->spans_count; i++) {
		if (s->spans[i].phase == FRAG_PHASE_OPTIMIZER)
			return &s->spans[i];
		if (s->spans[i].phase == FRAG_PHASE_BACKWARD)
			return NULL; /* they are accumulated */
	}
	return NULL;
}

static bool is_gradient(const struct frag_story *s, const struct frag_life *l,
			const struct frag_span **step)
{
	if (frag_life_span(s, l)->phase != FRAG_PHASE_BACKWARD)
		return false;
	*step = step_after(s, l);
	return *step && l->died >= (*step)->end;
}

static int released(struct frag_advice_plan *p, struct frag_err *err)
{
	FRAG_AUTO(frag_edit_release) struct frag_edit e = { 0 };
	const struct frag_story *s = p->story;
	const struct frag_span *step;
	uint64_t gradients = 0;

	FRAG_TRY(frag_edit_init(&e, s, err));
	for (size_t i = 0; i < s->count; i++) {
		const struct frag_life *l = &s->lives[i];
		const struct frag_span *sp = frag_life_span(s, l);

		if (is_gradient(s, l, &step)) {
			uint64_t at = i + 1 < s->count ? s->lives[i + 1].born : sp->end;

			gradients++;
			FRAG_TRY(frag_edit_add(&e, i, at, at, err)); /* temporary of its update */
			FRAG_TRY(frag_edit_end(&e, i, at, err));
		} else if (sp->phase == FRAG_PHASE_OPTIMIZER && l->died < sp->end) {
			frag_edit_remove(&e, i);
		}
	}
	if (!gradients)
		return 0;
	return frag_plan_propose(
		p, &e,
		&(struct frag_proposal){ .change = "gradients released",
					 .what = "each parameter updated as soon as its gradient "
						 "is there, which then goes "
						 "(register_post_accumulate_grad_hook, an "
						 "optimizer per parameter); not "
						 "with gradient clipping",
					 .cost.calls = gradients },
		err);
}

/* Requests a gradient again in a later backward pass. */
static int reborn(struct frag_edit *e, size_t life, const struct frag_span *back, size_t *from,
		  const struct frag_span *step, struct frag_err *err)
{
	const struct frag_story *s = e->story;

	for (size_t i = *from; i < s->count && i < *from + LOOK; i++) {
		const struct frag_life *t = &s->lives[i];

		if (t->born >= back->end)
			break;
		if (t->bytes != s->lives[life].bytes || t->died > back->end ||
		    frag_edit_touched(e, i))
			continue;
		frag_edit_remove(e, i);
		*from = i + 1;
		return frag_edit_add(e, life, t->born, step->end, err);
	}
	return frag_edit_add(e, life, back->first, step->end, err);
}

/* Frees gradients that outlive their step, and requests them again in all later backward passes. */
static int set_to_none(struct frag_advice_plan *p, struct frag_err *err)
{
	FRAG_AUTO(frag_edit_release) struct frag_edit e = { 0 };
	FRAG_AUTO_FREE size_t *list = NULL;
	const struct frag_story *s = p->story;
	const struct frag_span *step;
	size_t n = 0;

	FRAG_TRY(frag_edit_init(&e, s, err));
	FRAG_TRY_CALLOC(list, s->count + 1, "advice", err);
	for (size_t b = 0; b < s->spans_count; b++) {
		const struct frag_span *back = &s->spans[b];
		size_t from = frag_story_born(s, back->first), end = frag_story_born(s, back->end);

		if (back->phase != FRAG_PHASE_BACKWARD)
			continue;
		for (size_t i = 0; i < n; i++)
			if (s->lives[list[i]].died >= back->end)
				FRAG_TRY(reborn(&e, list[i], back, &from, back + 1, err));
		for (size_t i = from; b + 2 < s->spans_count && i < end; i++) {
			if (!is_gradient(s, &s->lives[i], &step) ||
			    s->lives[i].died < s->spans[b + 2].end || frag_edit_touched(&e, i))
				continue;
			list[n++] = i;
			FRAG_TRY(frag_edit_end(&e, i, step->end, err));
		}
	}
	return frag_plan_propose(p, &e,
				 &(struct frag_proposal){ .change = "zero_grad",
							  .what = "optimizer.zero_grad(set_to_none="
								  "True): gradients do "
								  "not outlive their step" },
				 err);
}

int frag_edit_gradients(struct frag_advice_plan *p, struct frag_err *err)
{
	return released(p, err) ?: set_to_none(p, err);
}
