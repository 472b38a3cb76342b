/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth inside a phase: up to the moment of most live memory, passes of a loop follow each other
 * and each leaves about as much behind. With marked steps, the step (or what follows the last)
 * needs more than the others and the loop is not one over layers, which the others run through as
 * well. Without, stacks tell that it is not. A phase in which all that is requested stays is
 * loading, if no step came before.
 */
#include "diagnose.h"

#include <string.h>

#include <frag/opt.h>

#include "recording/recording.h"

#define GROWN_PART 0.25 /* of the peak */
#define STEP_RATIO 1.3	/* a step with such a phase against others */
#define OFTEN 4		/* as often as in an ordinary step */
#define EVEN_PART 0.75	/* of the passes, that leave between half and twice the mean */
#define LOADED 0.9	/* of what is requested stays: that is loading */
#define STAYS 0.5	/* of the peak, to the end */
#define GRAPH_PART 0.3	/* of the requests stays: graphs; of outputs, few */
#define SLACK 0.05

struct phase {
	uint64_t first, peak; /* events */
	uint64_t grown, flow; /* bytes, from the first pass on */
	uint64_t last;	      /* event: the end of the last pass */
	double kept;	      /* part of the requests */
	size_t passes, step;
};

/* The step of the peak; false where the others need about as much. */
static bool stands_out(const struct frag_history *h, struct phase *p)
{
	size_t n = h->count + h->more;
	double others = 0;

	*p = (struct phase){ .peak = h->peak_event };
	if (h->from != FRAG_STEPS_MARKS)
		return h->events > 0;
	p->step = frag_history_step(h, h->peak_event);
	p->first = h->steps[p->step].first;
	for (size_t i = 0; i < n; i++)
		others += i == p->step ? 0 : (double)h->steps[i].peak_live;
	return (double)h->peak_live * (double)(n - 1) >= STEP_RATIO * others;
}

/* Does each pass leave about as much? Fills in the phase. */
static int follow(struct frag_checkup *c, const struct frag_step_ends *ends, struct phase *p,
		  bool *climbs, struct frag_err *err)
{
	const struct frag_trace_dev *td = frag_events_dev(&c->in.events);
	FRAG_AUTO_FREE uint64_t *held = NULL, *live = NULL;
	size_t n = 0, even = 0;
	uint64_t now = 0, flow = 0;
	double blocks = 0, requests = 0;

	*climbs = false;
	FRAG_TRY_CALLOC(held, td->slots_count + 1, "diagnosis", err);
	FRAG_TRY_CALLOC(live, ends->count + 1, "diagnosis", err);
	for (uint64_t i = 0; i <= p->peak; i++) {
		const struct frag_event *e = &td->events[i];

		if (n < ends->count && i == ends->list[n]) {
			if (!n) {
				flow = 0;
				blocks = requests = 0;
			}
			live[n++] = now;
		}
		if (e->kind >= FRAG_EV_TRIM)
			continue;
		now -= held[e->slot];
		blocks -= held[e->slot] > 0;
		held[e->slot] = e->kind == FRAG_EV_ALLOC ? frag_live_bytes(e->bytes) : 0;
		now += held[e->slot];
		flow += held[e->slot];
		blocks += held[e->slot] > 0;
		requests += held[e->slot] > 0;
	}
	if (n < 3 || live[n - 1] <= live[0])
		return 0;
	p->passes = n;
	p->grown = now > live[0] ? now - live[0] : 0;
	p->flow = flow;
	p->kept = requests > 0 ? blocks / requests : 0;
	p->last = ends->list[n - 1] - 1;
	for (size_t i = 1; i < n; i++) {
		double left = (double)live[i] - (double)live[i - 1];
		double mean = (double)(live[n - 1] - live[0]) / (double)(n - 1);

		even += left >= 0.5 * mean && left <= 2 * mean;
	}
	*climbs = (double)even >= EVEN_PART * (double)(n - 1) &&
		  (double)p->grown >= GROWN_PART * (double)c->in.history.peak_live;
	return 0;
}

const char *frag_growth_remedy(const struct frag_finding *f)
{
	const bool phase = frag_finding_value(f, "repeats_count") > 0;

	return !phase || frag_finding_value(f, "kept_ratio") >= GRAPH_PART
		       ? FRAG_GRAPHS_REMEDY
		       : "move collected outputs to the host (.cpu()) as they come, and bound "
			 "caches of generated tokens";
}

static int tell(struct frag_checkup *c, const struct phase *p, struct frag_findings *out,
		struct frag_err *err)
{
	size_t n = c->in.history.stacks_count;
	struct frag_finding *f = frag_findings_add(out, FRAG_FOUND_GROWTH, c->about);
	bool marks = c->in.history.from == FRAG_STEPS_MARKS;
	FRAG_AUTO_FREE double *gain = NULL;
	double *before, share;
	uint32_t frame;

	FRAG_TRY_CALLOC(gain, 2 * n, "diagnosis", err);
	before = gain + n;
	FRAG_TRY(frag_history_live_at(&c->in.events, p->last, n, gain, err));
	FRAG_TRY(frag_history_live_at(&c->in.events, p->first, n, before, err));
	for (size_t i = 0; i < n; i++)
		gain[i] = gain[i] > before[i] ? gain[i] - before[i] : 0;
	frame = frag_blame(&c->in.sites, gain, gain, SLACK, &share, err);
	SAY("memory grows by %s pass after pass %s, to %s", FRAG_BYTES(p->grown),
	    marks ? FRAG_IN_STEP(&c->in, p->step) : "up to the peak",
	    FRAG_BYTES(c->in.history.peak_live));
	frag_finding_lines(c, f, frame, share);
	frag_finding_number(f, "kept_ratio", p->kept);
	frag_finding_number(f, "repeats_count", (double)p->passes);
	SAY("; %s%s", frag_growth_remedy(f), p->kept >= GRAPH_PART ? FRAG_GRAPHS_TRY : "");
	frag_finding_number(f, "grown_bytes", (double)p->grown);
	frag_finding_number(f, "peak_live_bytes", (double)c->in.history.peak_live);
	frag_finding_number(f, "from_event", (double)p->first);
	frag_finding_number(f, "event", (double)p->peak);
	return 0;
}

static void free_ends(struct frag_step_ends *ends)
{
	frag_host_free(ends->list);
}

/* Is no module called up to the peak, and does most that is live then stay to the end? */
static int is_loading(const struct frag_checkup *c, const struct phase *p, bool *is,
		      struct frag_err *err)
{
	const struct frag_trace *trace = c->in.events.trace;
	const struct frag_history *h = &c->in.history;
	FRAG_AUTO_FREE double *live = NULL;
	double stays = 0;

	*is = false;
	for (uint64_t i = 0; i <= p->peak; i++) {
		size_t n = 0;
		const struct frag_event *e = &frag_events_dev(&c->in.events)->events[i];
		const uint32_t *frames = frag_stack_frames(trace, e->stack, &n);

		for (size_t k = 0; e->kind == FRAG_EV_ALLOC && k < n; k++)
			if (!strcmp(frag_trace_string(trace, trace->stacks.frames[frames[k]].name),
				    "_call_impl"))
				return 0;
	}
	FRAG_TRY_CALLOC(live, h->stacks_count + 1, "diagnosis", err);
	FRAG_TRY(frag_history_live_at(&c->in.events, h->events - 1, h->stacks_count, live, err));
	for (size_t i = 0; i < h->stacks_count; i++)
		stays += live[i];
	*is = stays >= STAYS * (double)h->peak_live;
	return 0;
}

int frag_find_growth(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err)
{
	FRAG_AUTO(free_ends) struct frag_step_ends ends = { 0 };
	const struct frag_history *h = &c->in.history;
	bool marks = h->from == FRAG_STEPS_MARKS, loads = false, is;
	uint64_t outside;
	struct phase p;

	/* its remedies are PyTorch's */
	if (frag_own_allocators(c->in.events.trace->format, NULL) || !stands_out(h, &p))
		return 0;
	FRAG_TRY(frag_passes_find(&c->in.events, p.first, p.peak + 1, &ends, &outside, err));
	if (marks && outside >= h->count) /* a larger batch takes no more requests */
		is = ends.from && ends.count * h->count >= OFTEN * outside &&
		     (double)ends.allocs * (double)h->count >=
			     STEP_RATIO * (double)(h->allocs - ends.allocs);
	else
		is = ends.from == FRAG_STEPS_PERIOD && frag_sites_known(&c->in.sites);
	if (!is)
		return 0;
	FRAG_TRY(follow(c, &ends, &p, &is, err));
	if (is && h->first_mark > p.first)
		FRAG_TRY(is_loading(c, &p, &loads, err));
	if (!is || loads || (h->first_mark > p.first && (double)p.grown > LOADED * (double)p.flow))
		return 0;
	FRAG_TRY(frag_is_capturing(c, p.first, p.peak, (double)p.passes, &is, err));
	return is ? 0 : tell(c, &p, out, err);
}
