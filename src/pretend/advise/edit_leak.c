/* SPDX-License-Identifier: Apache-2.0 */
/* Frees what accumulates over the steps at the end of its step: blocks of the lines that diagnose reports (find_leak.c). */
#include "edit.h"

#include "explain/diagnose/diagnose.h"

static int drop(struct frag_edit *e, const struct frag_history *h, struct frag_err *err)
{
	const struct frag_story *s = e->story;

	for (size_t i = 0; i < s->count; i++) {
		const struct frag_life *l = &s->lives[i];
		size_t step = frag_history_step(h, l->born);

		if (!step || step + 1 >= h->count || l->stack >= h->stacks_count ||
		    h->grew[l->stack] <= 0 || l->died < h->steps[step + 1].end)
			continue;
		FRAG_TRY(frag_edit_end(e, i, h->steps[step].end, err));
	}
	return 0;
}

static int edit(const struct frag_advice_plan *p, struct frag_edit *e, struct frag_proposal *o,
		struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer texts = { 0 };
	FRAG_AUTO(frag_findings_release) struct frag_findings found = { .texts = &texts };
	FRAG_AUTO(frag_checkup_destroy_at) struct frag_checkup *c = NULL;

	FRAG_TRY_CALLOC(c, 1, "advice", err);
	c->about = "";
	c->in = (struct frag_case){ .events = p->story->unit->events,
				    .spec = p->plain,
				    .target.card = p->env.card,
				    .threads = 1 };
	FRAG_TRY(frag_case_open(&c->in, FRAG_BY_LINE, NULL, err));
	if (c->in.history.from != FRAG_STEPS_MARKS) /* layers repeat as evenly as steps */
		return 0;
	FRAG_TRY(frag_find_leak(c, &found, err));
	if (!found.count)
		return 0;
	o->line = found.list[0].line ? frag_host_strdup(found.list[0].line) : NULL;
	return drop(e, &c->in.history, err);
}

int frag_edit_leak(struct frag_advice_plan *p, struct frag_err *err)
{
	return frag_plan_try(
		p, edit,
		(struct frag_proposal){ .change = "no tensors kept",
					.what = "nothing kept from step to step here: .item() or "
						".detach() of what is remembered; assumed: all "
						"that grows is dropped at the end of its step" },
		err);
}
