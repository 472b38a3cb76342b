/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lives from step to step: gradients released in the backward pass; optimizer states in 8
 * bits, on the host, or none; nothing that accumulates. What an optimizer step requests is a state if it
 * outlives the next step, else a temporary, which 8-bit, host's and SGD's optimizers do not have.
 */
#include "edit.h"

#include "explain/diagnose/diagnose.h"
#include "lib/bisect.h"

#define SMALL_BYTES 16384u /* bitsandbytes leaves states of fewer than 4,096 elements as they are */
#define BLOCK 64u	   /* one scale of 4 bytes for 256 of 8 bits */
#define AS_MUCH 0.75

enum way { EIGHT_BITS, HOST, NONE, BUCKETS };

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

/* Each gradient goes at the next request: its parameter is updated at once, without temporaries of
 * the optimizer's step; or it is copied to its bucket, where it stays. */
static int gradients(const struct frag_advice_plan *p, struct frag_edit *e, struct frag_proposal *o,
		     struct frag_err *err)
{
	const struct frag_story *s = p->story;
	bool view = o->way == BUCKETS;
	uint64_t room = 0, n = 0; /* room: in the buckets, which the constructor makes first */

	for (size_t i = 0; i < s->count; i++) {
		const struct frag_life *l = &s->lives[i];
		const struct frag_span *sp = frag_life_span(s, l);

		if (view && frag_stack_has(s->trace, l->stack, "nn/parallel/distributed.py",
					   "_ddp_init_helper"))
			room += l->bytes;
		if (is_gradient(s, l) && (!view || l->bytes <= room)) {
			uint64_t at = i + 1 < s->count ? s->lives[i + 1].born : sp->end;

			n++;
			if (!view) /* the temporary of its update */
				FRAG_TRY(frag_edit_add(e, l->born, at, at, err));
			FRAG_TRY(frag_edit_end(e, l->born, l->died, at, err));
		} else if (!view && sp->phase == FRAG_PHASE_OPTIMIZER && l->died < sp->end) {
			FRAG_TRY(frag_edit_resize(e, l->born, 0, err));
		}
	}
	e->edited = n;
	o->cost.calls = view ? 0 : n;
	return 0;
}

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

	for (size_t i = 0; i < s->count; i++) {
		const struct frag_life *l = &s->lives[i];
		const struct frag_span *sp = frag_life_span(s, l);
		bool state = l->died >= next_step(s, l->span);

		if (sp->phase != FRAG_PHASE_OPTIMIZER)
			continue;
		bytes += state ? l->bytes : 0;
		if (state ? o->way != EIGHT_BITS : l->died < sp->end)
			FRAG_TRY(frag_edit_resize(e, l->born, 0, err));
		else if (state && l->bytes >= SMALL_BYTES)
			FRAG_TRY(frag_edit_resize(e, l->born, l->bytes / 4 + l->bytes / 4 / BLOCK,
						  err));
	}
	e->edited &= bytes > 0;
	if (o->way == HOST) /* half of the states of Adam: gradients to the host, weights back */
		o->cost.moved = bytes * s->steps;
	return 0;
}

/* What the passes of a phase leave goes at the end of the next pass, as a cache does that each pass
 * hands on: in each step that needs about as much as the worst, or in all of it. */
static int phases(const struct frag_story *s, const struct frag_case *c, struct frag_edit *e,
		  struct frag_err *err)
{
	const struct frag_history *h = &c->history;
	bool marks = h->from == FRAG_STEPS_MARKS;
	int rc = 0;

	for (size_t k = 0; !rc && k < (marks ? h->count + h->more : 1); k++) {
		const struct frag_step *step = &h->steps[k];
		uint64_t from = marks ? step->first : 0, outside;
		uint64_t to = (marks ? step->peak_event : h->peak_event) + 1;
		struct frag_step_ends ends = { 0 };
		size_t at;

		if (marks && (double)step->peak_live < AS_MUCH * (double)h->peak_live)
			continue;
		rc = frag_passes_find(&c->events, from, to, &ends, &outside, err);
		for (size_t i = frag_story_born(s, from); !rc && i < s->count; i++) {
			const struct frag_life *l = &s->lives[i];

			FRAG_BISECT(at, 0, ends.count, ends.list[at] <= l->born);
			if (at && at + 1 < ends.count)
				rc = frag_edit_end(e, l->born, l->died, ends.list[at + 1], err);
		}
		frag_host_free(ends.list);
	}
	return rc;
}

/* Blocks of the lines that diagnose reports (find_leak.c) go at the end of their step. */
static int leak(const struct frag_advice_plan *p, struct frag_edit *e, struct frag_proposal *o,
		struct frag_err *err)
{
	FRAG_AUTO(frag_findings_release) struct frag_findings found = { .texts = p->texts };
	FRAG_AUTO(frag_checkup_destroy_at) struct frag_checkup *c = NULL;
	const struct frag_story *s = p->story;
	const struct frag_history *h;

	FRAG_TRY_CALLOC(c, 1, "advice", err);
	c->about = "";
	c->in = (struct frag_case){ .events = s->unit->events,
				    .spec = p->plain,
				    .target.card = p->env.card,
				    .threads = 1 };
	FRAG_TRY(frag_case_open(&c->in, FRAG_BY_LINE, NULL, err));
	h = &c->in.history;
	FRAG_TRY(frag_find_leak(c, &found, err));
	if (!found.count)
		FRAG_TRY(frag_find_growth(c, &found, err));
	if (found.count && found.list[0].line)
		o->line = frag_host_strdup(found.list[0].line);
	if (found.count && found.list[0].kind == FRAG_FOUND_GROWTH) {
		o->change = "nothing kept in a phase";
		o->what = frag_answer_print(
			p->texts, "%s; assumed: what a pass leaves goes at the end of the next",
			frag_growth_remedy(&found.list[0]));
		if (frag_finding_value(&found.list[0], "repeats_count") > 0)
			return phases(s, &c->in, e, err);
	} else if (h->from != FRAG_STEPS_MARKS) { /* layers repeat as evenly as steps */
		return 0;
	}
	for (size_t i = 0; found.count && i < s->count; i++) {
		const struct frag_life *l = &s->lives[i];
		size_t step = frag_history_step(h, l->born);

		if (step && step + 1 < h->count && l->stack < h->stacks_count &&
		    h->grew[l->stack] > 0 && l->died >= h->steps[step + 1].end)
			FRAG_TRY(frag_edit_end(e, l->born, l->died, h->steps[step].end, err));
	}
	return 0;
}

const struct frag_proposal frag_edit_training[] = {
	{ .change = "gradients released",
	  .edit = gradients,
	  .what = "each parameter updated as soon as its gradient is there, which then goes "
		  "(register_post_accumulate_grad_hook, an optimizer per parameter); not with "
		  "gradient clipping" },
	{ .change = "gradients in buckets",
	  .edit = gradients,
	  .way = BUCKETS,
	  .what = "DistributedDataParallel(…, gradient_as_bucket_view=True): gradients lie in "
		  "its buckets, not beside them" },
	{ .change = "no tensors kept",
	  .edit = leak,
	  .what = "nothing kept from step to step here: .item() or .detach() of what is "
		  "remembered, collected outputs to the host; assumed: all that grows is dropped "
		  "at the end of its step" },
	{ .change = "8-bit states",
	  .edit = states,
	  .way = EIGHT_BITS,
	  .what = "optimizer states in 8 bits (bitsandbytes' AdamW8bit, torchao's _AdamW8bit); "
		  "assumed: they have 32 now",
	  .numerics = "states are rounded to 8 bits in blocks of 256" },
	{ .change = "states on the host",
	  .edit = states,
	  .way = HOST,
	  .what = "optimizer states and the optimizer's work on the host (torchao's "
		  "CPUOffloadOptimizer)" },
	{ .change = "SGD",
	  .edit = states,
	  .way = NONE,
	  .what = "SGD without momentum in place of this optimizer",
	  .numerics = "another optimizer: the learning rate has to be found anew" },
	{ 0 },
};
