/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saved activations on the host (torch.autograd.graph.save_on_cpu). A saved block is freed when the
 * function that made it returns, which is at the next request from elsewhere or from its next call.
 * It is requested again where the backward work that frees it begins. Call sites are ranked by
 * bytes x idle time of their blocks at the peak.
 */
#include "edit.h"

#include <stdlib.h>
#include <string.h>

#define SITES_MAX 3u
#define LEAVE_ALLOCS 256u /* requests after which a block is freed at the latest */
#define NEARLY_ALL 0.95	  /* a call site with this share is no advice of its own beside "all" */
#define LEAST_BYTES 4096u /* smaller blocks are not moved */

struct idle {
	double score;
	uint64_t bytes; /* at the peak */
	uint32_t site, stack;
};

/* Depth, from the outermost frame, of the function that made a block: the innermost forward() outside PyTorch. *passed: a
 * container (Sequential) below it called the operator, and keeps no reference. */
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
	const struct frag_loop *loop;
	const struct frag_instance *in = frag_loops_instance(&p->loops, l->born, &loop);
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

/* Moves the blocks of a call site (UINT32_MAX = all) to the host and back. */
static int move(struct frag_advice_plan *p, struct frag_edit *e, uint32_t site,
		struct frag_advice_cost *cost, struct frag_err *err)
{
	const struct frag_story *s = p->story;

	for (size_t i = 0; i < s->count; i++) {
		const struct frag_life *l = &s->lives[i];
		uint64_t away;

		if (l->back == FRAG_NEVER || l->bytes < LEAST_BYTES ||
		    (site != UINT32_MAX && frag_site_of(&s->sites, l->stack) != site))
			continue;
		away = leaves(p, i);
		if (away >= l->back)
			continue;
		cost->moved += 2 * l->bytes;
		cost->calls += 2;
		FRAG_TRY(frag_edit_end(e, i, away, err));
		FRAG_TRY(frag_edit_add(e, i, l->back, l->died, err));
	}
	return 0;
}

FRAG_COMPARE(by_score, struct idle, FRAG_ORDER(y->score, x->score), FRAG_ORDER(x->site, y->site))

/* list: [sites]. */
static size_t rank(const struct frag_advice_plan *p, struct idle *list)
{
	const struct frag_story *s = p->story;
	const struct frag_event *ev = s->dev->events;
	uint64_t last = s->dev->events_count - 1;
	size_t n = 0;

	for (size_t i = 0; i < s->count && s->lives[i].born <= s->peak_event; i++) {
		const struct frag_life *l = &s->lives[i];
		uint32_t site = frag_site_of(&s->sites, l->stack);
		uint64_t away;

		if (l->back == FRAG_NEVER || l->back <= s->peak_event)
			continue;
		away = leaves(p, i);
		if (away > s->peak_event)
			continue;
		list[site].site = site;
		list[site].stack = l->stack;
		list[site].bytes += l->bytes;
		list[site].score +=
			(double)l->bytes *
			(1 + (double)(ev[FRAG_MIN(l->back, last)].time_us - ev[away].time_us));
	}
	for (size_t i = 0; i < s->sites.count; i++)
		if (list[i].score > 0)
			list[n++] = list[i];
	qsort(list, n, sizeof(*list), by_score);
	return n;
}

static int propose_site(struct frag_advice_plan *p, const struct idle *site, struct frag_err *err)
{
	FRAG_AUTO(frag_edit_release) struct frag_edit e = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text what = { 0 };
	struct frag_proposal o = { .change = "save_on_cpu" };

	FRAG_TRY(frag_edit_init(&e, p->story, err));
	FRAG_TRY(move(p, &e, site ? site->site : UINT32_MAX, &o.cost, err));
	if (site)
		frag_text_addf(&what,
			       "what the forward pass saves here, %s at the peak, on the host, as "
			       "above",
			       FRAG_BYTES(site->bytes));
	else
		frag_text_addf(&what,
			       "all that the forward pass saves on the host "
			       "(torch.autograd.graph.save_on_cpu); assumed: it leaves %s, and is "
			       "back when the backward pass needs it",
			       p->story->stacks ? "when its function returns"
						: "256 requests later, and the forward pass ends "
						  "at the peak of its step (no stacks)");
	if (!site && p->story->may_train)
		frag_text_add(&what, " (it ended before any; that it trains is assumed)");
	FRAG_TRY(frag_text_check(&what, err));
	o.what = what.s;
	o.stack = site ? site->stack : FRAG_NO_STACK;
	return frag_plan_propose(p, &e, &o, err);
}

int frag_edit_offload(struct frag_advice_plan *p, struct frag_err *err)
{
	FRAG_AUTO_FREE struct idle *list = NULL;
	uint64_t all = 0;
	size_t n;

	FRAG_TRY_CALLOC(list, p->story->sites.count + 1, "advice", err);
	n = rank(p, list);
	if (!n)
		return 0;
	FRAG_TRY(propose_site(p, NULL, err));
	for (size_t i = 0; i < n; i++)
		all += list[i].bytes;
	for (size_t i = 0; i < FRAG_MIN(n, (size_t)SITES_MAX); i++)
		if ((double)list[i].bytes < NEARLY_ALL * (double)all)
			FRAG_TRY(propose_site(p, &list[i], err));
	return 0;
}
