/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loss in chunks of an eighth of the tokens. The largest block that the loss requests is the
 * logits, in 32 or 16 bits. Blocks of this size, half or double, from shortly before the loss to
 * the end of the backward pass, are taken for the logits, their copies and gradients; each becomes
 * an eighth.
 */
#include "edit.h"

#define PIECES 8u
#define BEFORE 64u /* requests before the loss that may be the logits */

static bool is_loss(const struct frag_trace *t, uint32_t stack)
{
	static const char *const names[] = { "cross_entropy", "nll_loss", "log_softmax",
					     "ForCausalLMLoss" };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(names); i++)
		if (frag_stack_has(t, stack, NULL, names[i]))
			return !frag_stack_has(t, stack, NULL, "binary_cross_entropy");
	return false;
}

static bool alike(uint64_t bytes, uint64_t logits)
{
	return bytes == logits || 2 * bytes == logits || bytes == 2 * logits;
}

/* The largest block of the loss in one round. */
static size_t largest(const struct frag_story *s, const uint8_t *loss, size_t from, size_t end)
{
	size_t best = SIZE_MAX;

	for (size_t i = from; i < end; i++)
		if (s->lives[i].stack < s->sites.stacks_count && loss[s->lives[i].stack] &&
		    frag_life_span(s, &s->lives[i])->phase == FRAG_PHASE_FORWARD &&
		    (best == SIZE_MAX || s->lives[i].bytes > s->lives[best].bytes))
			best = i;
	return best;
}

static int edit(const struct frag_advice_plan *p, struct frag_edit *e, struct frag_proposal *o,
		struct frag_err *err)
{
	FRAG_AUTO_FREE uint8_t *loss = NULL;
	const struct frag_story *s = p->story;

	FRAG_TRY_CALLOC(loss, s->sites.stacks_count, "advice", err);
	for (uint32_t i = 1; i < s->sites.stacks_count; i++)
		loss[i] = s->phases[i] == FRAG_PHASE_FORWARD && is_loss(s->trace, i);
	for (size_t i = 0, end; i < s->count; i = end) {
		uint32_t round = frag_life_span(s, &s->lives[i])->round;
		size_t most, from;

		for (end = i; end < s->count && frag_life_span(s, &s->lives[end])->round == round;)
			end++;
		most = largest(s, loss, i, end);
		if (most == SIZE_MAX)
			continue;
		o->stack = s->lives[most].stack;
		from = most - i > BEFORE ? most - BEFORE : i;
		for (size_t l = from; l < end; l++)
			if (frag_life_span(s, &s->lives[l])->phase != FRAG_PHASE_OPTIMIZER &&
			    alike(s->lives[l].bytes, s->lives[most].bytes))
				FRAG_TRY(frag_edit_resize(e, s->lives[l].born,
							  (s->lives[l].bytes + PIECES - 1) / PIECES,
							  err));
	}
	return 0;
}

const struct frag_proposal frag_edit_logits[] = {
	{ .change = "chunked loss",
	  .edit = edit,
	  .what = "logits and loss for an eighth of the tokens at a time (a fused linear "
		  "cross-entropy, or a loop with torch.utils.checkpoint); assumed: blocks of the "
		  "size of the logits are these, their copies and gradients" },
	{ 0 },
};
