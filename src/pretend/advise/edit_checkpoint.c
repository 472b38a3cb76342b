/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activation checkpointing of the repeated blocks of a model. The saved tensors of a block are
 * freed after its forward pass. Where its backward pass begins, its forward pass runs again:
 * requests and frees in the recorded order, temporaries included, up to the last saved tensor
 * (torch.utils.checkpoint stops there with use_reentrant=False). The output of a block, which the
 * backward pass of the next block frees, stays allocated.
 */
#include "edit.h"

struct block {
	const struct frag_instance *at;
	size_t first, end;  /* lives */
	uint64_t next_back; /* where the next block's backward pass last works; 0: none */
	size_t twice;	    /* a block that is kept and also recomputed; SIZE_MAX: none */
};

static bool is_saved(const struct frag_life *l)
{
	return l->back != FRAG_NEVER;
}

static size_t last_saved(const struct frag_story *s, const struct block *b)
{
	for (size_t i = b->end; i-- > b->first;)
		if (is_saved(&s->lives[i]))
			return i;
	return SIZE_MAX;
}

/* The output of the last block is its last saved tensor. */
static bool is_output(const struct frag_story *s, const struct block *b, size_t life)
{
	if (b->next_back)
		return s->lives[life].back <= b->next_back;
	return life == last_saved(s, b);
}

/* Recomputes the forward pass before event `at`. */
static int again(const struct frag_story *s, struct frag_edit *e, const struct block *b,
		 size_t last, uint64_t at, struct frag_err *err)
{
	FRAG_AUTO_FREE uint32_t *slots = NULL;

	FRAG_TRY_CALLOC(slots, last - b->first + 1, "advice", err);
	for (uint64_t event = b->at->first; event < b->at->end; event++) {
		const size_t i = s->of[event];
		const struct frag_life *l;

		if (i < b->first || i > last) /* or no life */
			continue;
		l = &s->lives[i];
		if (is_saved(l) && !is_output(s, b, i)) {
			if (event == l->born)
				FRAG_TRY(frag_edit_add(e, event, at, l->died, err));
		} else if (l->died < b->at->end) {
			if (event == l->born)
				FRAG_TRY(frag_edit_half(e, event, FRAG_EV_ALLOC,
							slots[i - b->first] = e->slots++, at, err));
			else if (event == l->died)
				FRAG_TRY(frag_edit_half(e, l->born, FRAG_EV_FREE,
							slots[i - b->first], at, err));
		}
	}
	return 0;
}

/*
 * Keeps the output if the next block's backward pass does not free it. An unsaved output (the next
 * block converts it first) stays as the input of the next block. Otherwise the first operator of
 * this block's backward pass has saved it too (an in-place ReLU): it stays, and is also recomputed.
 */
static int keep_output(const struct frag_story *s, struct frag_edit *e, struct block *b,
		       struct frag_err *err)
{
	const struct frag_life *lives = s->lives;
	size_t unsaved = SIZE_MAX, first = SIZE_MAX;

	for (size_t i = b->first; b->next_back && i < b->end; i++) {
		if (is_saved(&lives[i])) {
			if (is_output(s, b, i))
				return 0;
			if (first == SIZE_MAX || lives[i].back < lives[first].back ||
			    (lives[i].back == lives[first].back &&
			     lives[i].bytes >= lives[first].bytes))
				first = i;
		} else if (lives[i].died >= b->at->end && lives[i].died < b->next_back &&
			   (unsaved == SIZE_MAX || lives[i].bytes >= lives[unsaved].bytes)) {
			unsaved = i;
		}
	}
	if (unsaved != SIZE_MAX)
		return frag_edit_add(e, lives[unsaved].born, lives[unsaved].died, b->next_back,
				     err);
	b->twice = first;
	return 0;
}

static int one_block(const struct frag_story *s, struct frag_edit *e, struct block *b,
		     uint64_t *calls, struct frag_err *err)
{
	uint64_t back = FRAG_NEVER;
	size_t last = SIZE_MAX;

	FRAG_TRY(keep_output(s, e, b, err));
	for (size_t i = b->first; i < b->end; i++) {
		const struct frag_life *l = &s->lives[i];

		if (!is_saved(l) || is_output(s, b, i))
			continue;
		back = FRAG_MIN(back, l->back);
		last = i;
		if (i != b->twice)
			FRAG_TRY(frag_edit_end(e, l->born, l->died,
					       frag_life_consumed(s, i, b->at->end), err));
	}
	if (last == SIZE_MAX || back >= s->dev->events_count)
		return 0;
	*calls += last - b->first + 1;
	return again(s, e, b, last, back, err);
}

static struct block block_of(const struct frag_story *s, const struct frag_loop *loop, size_t i)
{
	const struct frag_instance *at = &loop->list[i], *next = at + 1;
	struct block b = { .at = at,
			   .first = frag_story_born(s, at->first),
			   .end = frag_story_born(s, at->end),
			   .twice = SIZE_MAX };

	if (i + 1 == loop->count || next->span != at->span)
		return b;
	for (size_t l = frag_story_born(s, next->first);
	     l < s->count && s->lives[l].born < next->end; l++)
		if (s->lives[l].back < s->dev->events_count)
			b.next_back = FRAG_MAX(b.next_back, s->lives[l].back);
	return b;
}

static int edit(const struct frag_advice_plan *p, struct frag_edit *e, struct frag_proposal *o,
		struct frag_err *err)
{
	const struct frag_story *s = p->story;
	const struct frag_loop *largest = p->loops.list;
	const char *more = "";

	if (s->steps && s->count && !s->stacks)
		o->left_out = "the recording has no stacks (cufrag record --frames, or "
			      "_record_memory_history with stacks)";
	for (size_t i = 0; i < p->loops.count; i++) {
		const struct frag_loop *loop = &p->loops.list[i];

		largest = loop->saved_bytes > largest->saved_bytes ? loop : largest;
		for (size_t k = 0; k < loop->count; k++) {
			struct block b = block_of(s, loop, k);

			FRAG_TRY(one_block(s, e, &b, &o->cost.calls, err));
		}
	}
	o->line = largest ? frag_loop_line(s, largest) : NULL;
	if (p->loops.count > 1)
		more = frag_answer_print(p->texts, " and at %zu more lines", p->loops.count - 1);
	o->what = frag_answer_print(
		p->texts,
		"activation checkpointing of the blocks called here%s (torch.utils.checkpoint, "
		"use_reentrant=False); assumed: a block keeps only its input, and is computed "
		"again as a whole in the backward pass",
		more);
	return 0;
}

const struct frag_proposal frag_edit_checkpoint[] = {
	{ .change = "checkpoint", .edit = edit, .trains = true },
	{ 0 },
};
