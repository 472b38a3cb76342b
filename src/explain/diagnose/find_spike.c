/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spike: one step, or at most one in ten, needs far more than all others. If the excess comes from
 * stacks that other steps lack at their peaks, 1.3 times the next is enough. Otherwise inputs of
 * different sizes may be the reason, and it takes 1.6 times. The first two steps are warm-up: a
 * peak there is only a note. Without steps there is none: phases of a program differ.
 */
#include "diagnose.h"

#include <frag/opt.h>

#include <stdlib.h>

#define SLACK 0.005 /* of blame: what the model does in a spike is much the same as its cause */
#define STEPS_MIN 6u
#define WARM_UP 2u
#define RATIO_NEW 1.3
#define RATIO_SAME 1.6
#define EXCESS_NEW 0.5 /* part of the excess that new stacks must have */
#define EXCESS_MIN (64 * FRAG_MIB)

struct peak {
	uint64_t live, event;
	size_t step;
};

FRAG_COMPARE(largest_first, struct peak, FRAG_ORDER(y->live, x->live), FRAG_ORDER(x->step, y->step))

/* What is live at the peak and not at that of an ordinary step; *fresh: part of it from stacks
 * that hold next to nothing there. */
static int excess_of(struct frag_checkup *c, const struct peak *top, const struct peak *usual,
		     double *gain, double *flow, double *fresh, struct frag_err *err)
{
	size_t n = c->in.history.stacks_count;
	FRAG_AUTO_FREE double *other = NULL;
	double total = 0;

	*fresh = 0;
	FRAG_TRY_CALLOC(other, n, "diagnosis", err);
	FRAG_TRY(frag_history_live_at(&c->in.events, top->event, n, flow, err));
	FRAG_TRY(frag_history_live_at(&c->in.events, usual->event, n, other, err));
	for (size_t i = 0; i < n; i++) {
		gain[i] = flow[i] > other[i] ? flow[i] - other[i] : 0;
		total += gain[i];
		*fresh += i && other[i] < 0.05 * flow[i] ? gain[i] : 0;
	}
	*fresh = total > 0 ? *fresh / total : 0;
	return 0;
}

static int tell(struct frag_checkup *c, const struct peak *list, size_t k, const double *gain,
		const double *flow, double fresh, struct frag_findings *out, struct frag_err *err)
{
	struct frag_finding *f = frag_findings_add(out, FRAG_FOUND_SPIKE, c->about);
	double share;
	uint32_t frame;

	frame = frag_blame(&c->in.sites, gain, flow, SLACK, &share, err);
	if (frame != UINT32_MAX && share >= 0.3)
		frag_finding_line(f, frag_frame_name(c->in.events.trace, frame));
	SAY("%s needs %s", FRAG_STEP(&c->in, list[0].step), FRAG_BYTES(list[0].live));
	if (k > 1)
		SAY(" (and %zu %s like it)", k - 1, k == 2 ? "other is" : "others are");
	SAY(", every other step at most %s", FRAG_BYTES(list[k].live));
	if (f->line)
		SAY("; %.0f %% of the excess is requested at %s", 100 * share, f->line);
	frag_finding_number(f, "step", (double)(list[0].step * c->in.history.stride + 1));
	frag_finding_number(f, "event", (double)list[0].event);
	frag_finding_number(f, "peak_live_bytes", (double)list[0].live);
	frag_finding_number(f, "other_peak_live_bytes", (double)list[k].live);
	frag_finding_number(f, "excess_of_new_stacks_ratio", fresh);
	frag_finding_number(f, "line_share_ratio", share);
	return 0;
}

/* How many of the n largest stand out, 0 = none: at most a tenth, by the ratio to the next. */
static size_t outstanding(const struct peak *list, size_t n, double ratio)
{
	for (size_t k = 1; k <= FRAG_MAX(n / 10, (size_t)1) && k < n; k++)
		if ((double)list[k - 1].live >= ratio * (double)list[k].live &&
		    list[k - 1].live - list[k].live >= EXCESS_MIN)
			return k;
	return 0;
}

static int judge(struct frag_checkup *c, struct peak *list, size_t n, struct frag_findings *out,
		 struct frag_err *err)
{
	size_t stacks = c->in.history.stacks_count;
	size_t k = outstanding(list, n, RATIO_NEW);
	FRAG_AUTO_FREE double *gain = NULL;
	double *flow, fresh = 0;

	/* where most steps hold nothing here they are those of another device */
	if (!k || !list[n / 2].live)
		return 0;
	for (size_t i = 0; i < k; i++) {
		if (list[i].step >= WARM_UP)
			continue;
		NOTE("%s: the peak of %s comes during warm-up, %s; later steps need at most %s",
		     c->about, FRAG_BYTES(list[i].live), FRAG_IN_STEP(&c->in, list[i].step),
		     FRAG_BYTES(list[k].live));
		return 0;
	}
	FRAG_TRY_CALLOC(gain, 2 * stacks, "diagnosis", err);
	flow = gain + stacks;
	FRAG_TRY(excess_of(c, &list[0], &list[k], gain, flow, &fresh, err));
	if (fresh < EXCESS_NEW && !outstanding(list, n, RATIO_SAME))
		return 0;
	return tell(c, list, k, gain, flow, fresh, out, err);
}

int frag_find_spike(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err)
{
	const struct frag_history *h = &c->in.history;
	/* what follows the last step is one only where steps are known for sure */
	size_t n = h->count + (h->more && h->from == FRAG_STEPS_MARKS);
	FRAG_AUTO_FREE struct peak *list = NULL;

	if (h->count < STEPS_MIN || !frag_steps_known(h))
		return 0;
	FRAG_TRY_CALLOC(list, n, "diagnosis", err);
	for (size_t i = 0; i < n; i++)
		list[i] = (struct peak){ h->steps[i].peak_live, h->steps[i].peak_event, i };
	qsort(list, n, sizeof(*list), largest_first);
	return judge(c, list, n, out, err);
}
