/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saved activations on the host (torch.autograd.graph.save_on_cpu). A saved block is freed when the
 * function that made it returns, which is at the next request from elsewhere or from its next call.
 * It is requested again where the backward work that frees it begins.
 */
#include "edit.h"

#include <string.h>

#define LEAVE_ALLOCS 256u /* requests after which a block is freed at the latest */
#define LEAST_BYTES 4096u /* smaller blocks are not moved */

/* Depth, from the outermost frame, of the innermost forward() outside PyTorch. *passed: a container
 * (Sequential) below it called the operator, and keeps no reference. */
static size_t owner_depth(const struct frag_story *s, uint32_t stack, bool *passed)
{
	size_t n;
	const uint32_t *f = frag_stack_frames(s->trace, stack, &n);

	*passed = false;
	for (size_t i = 0; i < n; i++) {
		const struct frag_frame *frame = &s->trace->stacks.frames[f[i]];

		*passed |= strstr(frag_trace_string(s->trace, frame->file), "modules/"
									    "container.py") != NULL;

		if (!strcmp(frag_trace_string(s->trace, frame->name), "forward") &&
		    !strstr(frag_trace_string(s->trace, frame->file), "torch/"))
			return n - i;
	}
	return n;
}

/* Do both stacks have the same calls above the owner? The line within the owner may differ. */
static bool same_call(const struct frag_story *s, uint32_t a, uint32_t b, size_t depth)
{
	size_t n, m;
	const uint32_t *x = frag_stack_frames(s->trace, a, &n);
	const uint32_t *y = frag_stack_frames(s->trace, b, &m);

	if (a == b)
		return true;
	if (m < depth || n < depth)
		return false;
	for (size_t d = 1; d < depth; d++)
		if (x[n - d] != y[m - d])
			return false;
	return true;
}

/* The event before which the block is freed. */
static uint64_t leaves(const struct frag_advice_plan *p, size_t life)
{
	const struct frag_story *s = p->story;
	const struct frag_life *l = &s->lives[life];
	const struct frag_instance *in = frag_loops_instance(&p->loops, l->born);
	uint64_t end = in ? in->end : s->spans[l->span].end;
	bool passed = false;
	size_t depth = s->stacks ? owner_depth(s, l->stack, &passed) : 0;

	if (passed)
		return frag_life_consumed(s, life, end);
	for (size_t i = life + 1; i < s->count && i <= life + LEAVE_ALLOCS; i++) {
		if (s->lives[i].born >= end)
			return end;
		if (s->stacks && !same_call(s, l->stack, s->lives[i].stack, depth))
			return s->lives[i].born;
	}
	return FRAG_MIN(end, life + LEAVE_ALLOCS < s->count ? s->lives[life + LEAVE_ALLOCS].born
							    : s->dev->events_count);
}

static int edit(const struct frag_advice_plan *p, struct frag_edit *e, struct frag_proposal *o,
		struct frag_err *err)
{
	const struct frag_story *s = p->story;

	for (size_t i = 0; i < s->count; i++) {
		const struct frag_life *l = &s->lives[i];
		uint64_t away;

		if (l->back == FRAG_NEVER || l->bytes < LEAST_BYTES)
			continue;
		away = leaves(p, i);
		if (away >= l->back)
			continue;
		o->cost.moved += 2 * l->bytes;
		o->cost.calls += 2;
		FRAG_TRY(frag_edit_end(e, l->born, l->died, away, err));
		FRAG_TRY(frag_edit_add(e, l->born, l->back, l->died, err));
	}
	o->what = frag_answer_print(
		p->texts,
		"all that the forward pass saves on the host (torch.autograd.graph.save_on_cpu); "
		"assumed: it leaves %s, and is back when the backward pass needs it",
		s->stacks ? "when its function returns"
			  : "256 requests later, and the forward pass ends at the peak of its "
			    "step (no stacks)");
	return 0;
}

const struct frag_proposal frag_edit_offload[] = {
	{ .change = "save_on_cpu", .edit = edit, .trains = true },
	{ 0 },
};
