/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leak: the bytes kept at the ends of steps grow, and still grow in the second half. What only a
 * larger batch needs is not kept; a cache that fills up stops growing. The line to blame is the one
 * whose bytes stay (frag_blame); the slope is the Theil-Sen estimate. Without steps there is no
 * leak; passes without marks that keep most of what they request keep a graph (find_growth.c).
 */
#include "diagnose.h"

#include <string.h>

#include <frag/opt.h>

#include "recording/estimate.h"
#include "recording/recording.h"

#define SLACK 0.05 /* of blame: what a caller leaks beside the line is less */
#define STEPS_MIN 8u
#define WARM_UP 10u /* leaves out 1/10 of the steps at the beginning, at least one */
#define P_MAX 0.001
#define Z_HALF_MIN 2.3 /* of the second half: p < 0.01 */
#define PACE_MIN 0.33  /* second half against first */
#define PACE_SURE 0.7  /* below it, what came through the line must have stayed */
#define PACE_BLIND 0.5 /* below it, where there are no lines to ask */
#define STAYED_MIN 0.5
#define LINE_MOST 0.5	/* of the growth, of a line that is blamed for what of its flow stays */
#define GRAPH_PART 0.3	/* of what passes request: kept by graphs */
#define HELD_SLACK 1.25 /* of what is live: a period is no exact count of steps */
#define FLOOR_MIN 0.3	/* of the growth, that the feet of the series must rise */
#define GROWN_PART 0.005
#define CAPTURES 0.75 /* private pools that begin, per step */
#define LATER 1.25    /* the pace of the second half against that of all: it began late */

/* The least of the last third less the least of the first: saw teeth rise, their feet do not. */
static double floor_rise(const double *y, size_t n)
{
	double first = y[0], last = y[n - 1];

	for (size_t i = 0; i < n / 3; i++) {
		first = FRAG_MIN(first, y[i]);
		last = FRAG_MIN(last, y[n - 1 - i]);
	}
	return last - first;
}

int frag_climbs(const double *kept, size_t n, double least_bytes, struct frag_climb *out,
		bool *climbs, struct frag_err *err)
{
	struct frag_trend all, first, second;

	*climbs = false;
	*out = (struct frag_climb){ .p = 1 };
	if (n < STEPS_MIN)
		return 0;
	FRAG_TRY(frag_trend_of(kept, n, &all, err));
	FRAG_TRY(frag_trend_of(kept, n / 2, &first, err));
	FRAG_TRY(frag_trend_of(kept + n / 2, n - n / 2, &second, err));
	*out = (struct frag_climb){ .per_step = all.slope,
				    .first_half = first.slope,
				    .second_half = second.slope,
				    .z = all.z,
				    .p = all.p,
				    .tau = all.tau,
				    .grown = all.slope * (double)n };
	*climbs = all.p < P_MAX && second.z > (n < 16 ? 1.6 : Z_HALF_MIN) && all.slope > 0 &&
		  second.slope >= PACE_MIN * first.slope && second.slope > 0 &&
		  out->grown >= least_bytes && floor_rise(kept, n) >= FLOOR_MIN * out->grown;
	return 0;
}

/*
 * The step from which it grows at its later pace; 0: it does so throughout, that is, the slope
 * times the steps is what was gained.
 */
static size_t begins(const struct frag_history *h, size_t skip, const struct frag_climb *climb)
{
	const struct frag_step *last = &h->steps[h->count - 1];
	double base = (double)h->steps[skip].kept_end, gain = (double)last->kept_end - base;
	size_t from = 0;

	if (climb->per_step * (double)(h->count - 1 - skip) <= (1 + SLACK) * gain &&
	    climb->second_half <= LATER * climb->per_step)
		return 0;
	for (size_t i = skip; i + 1 < h->count; i++)
		if ((double)h->steps[i].kept_end - base < climb->second_half)
			from = i + 1;
	return from > 2 * skip ? from : 0;
}

/* The part of what this line allocated in the second half of the steps that stayed. */
static double stayed(const struct frag_checkup *c, uint32_t frame)
{
	double grew = 0, flow = 0;

	for (uint32_t s = 1; s < c->in.history.stacks_count; s++) {
		size_t n, i = 0;
		const uint32_t *frames = frag_stack_frames(c->in.events.trace, s, &n);

		while (i < n && frames[i] != frame)
			i++;
		if (i == n)
			continue;
		grew += c->in.history.grew[s];
		flow += c->in.history.flow[s];
	}
	return flow > 0 ? grew / flow : 1;
}

/* A cache that fills up: its pace falls, and most of what it takes replaces what it had. */
static bool fades(const struct frag_checkup *c, const struct frag_climb *climb,
		  struct frag_err *err)
{
	double share;
	uint32_t frame;

	if (climb->second_half >= PACE_SURE * climb->first_half)
		return false;
	frame = frag_blame(&c->in.sites, c->in.history.grew, c->in.history.flow, SLACK, &share,
			   err);
	if (frame == UINT32_MAX)
		return climb->second_half < PACE_BLIND * climb->first_half;
	return stayed(c, frame) < STAYED_MIN;
}

/* The line whose bytes stay; if most of the growth is of others, the line with most of it. */
static uint32_t blame(const struct frag_checkup *c, double *share, struct frag_err *err)
{
	const double *grew = c->in.history.grew;
	uint32_t frame = frag_blame(&c->in.sites, grew, c->in.history.flow, SLACK, share, err),
		 most;
	double part;

	if (frame == UINT32_MAX || *share >= LINE_MOST)
		return frame;
	most = frag_blame(&c->in.sites, grew, grew, SLACK, &part, err);
	if (part <= *share)
		return frame;
	*share = part;
	return most;
}

void frag_finding_lines(const struct frag_checkup *c, struct frag_finding *f, uint32_t frame,
			double share)
{
	if (frame != UINT32_MAX && share >= 0.3)
		frag_finding_line(f, frag_frame_name(c->in.events.trace, frame));
	if (f->line)
		SAY("; %.0f %% of it is requested at %s", 100 * share, f->line);
	else if (frag_sites_known(&c->in.sites))
		SAY("; it comes from requests without a Python stack (the backward pass)");
	else if (frag_stacks_hint(c->in.events.trace))
		SAY("; record with stacks to see the lines (%s)",
		    frag_stacks_hint(c->in.events.trace));
	if (frag_sites_known(&c->in.sites))
		frag_finding_number(f, "line_share_ratio", share);
}

/* The card of the recording; one that was asked for comes first. */
static const char *card_of(const struct frag_checkup *c, struct frag_answer *texts,
			   struct frag_sim_config *card)
{
	const struct frag_recorded_card *own = &frag_events_dev(&c->in.events)->card;
	const struct frag_trace *trace = c->in.events.trace;

	*card = c->in.target.card;
	if (!c->in.target.card_given && frag_estimate_card(trace, card)) {
		const struct frag_estimate *e = frag_estimate_read(texts, trace);

		card->name = e && e->card ? e->card : "the card";
	} else if (!c->in.target.card_given && own->total_bytes) {
		card->name = *own->name ? own->name : "the card";
		card->total_bytes = own->total_bytes;
		card->context_bytes = own->context_bytes;
	} else if (!c->in.target.card_given) {
		return frag_answer_print(texts, "a card like %s (--gpu names yours)", card->name);
	}
	return frag_answer_print(texts, "%s of %s",
				 strcmp(card->name, "sim") ? card->name : "the card",
				 FRAG_BYTES(card->total_bytes));
}

/* When is the card full, if it goes on? Where segments pile up, they fill it. */
static int tell_end(const struct frag_checkup *c, struct frag_finding *f, double slope,
		    struct frag_err *err)
{
	uint64_t peak = c->peak_reserved_bytes, room = c->in.limit_bytes;
	size_t half = c->in.history.count / 2, n = c->in.history.count - half;
	FRAG_AUTO_FREE double *y = NULL;
	struct frag_trend reserved;
	struct frag_sim_config card;
	const char *name;
	double steps;

	if (c->in.limit_guessed || !c->reserved ||
	    frag_events_dev(&c->in.events)->ending.out_of_memory)
		return 0;
	FRAG_TRY_CALLOC(y, n, "diagnosis", err);
	for (size_t i = 0; i < n; i++)
		y[i] = (double)c->reserved[half + i];
	FRAG_TRY(frag_trend_of(y, n, &reserved, err));
	slope = reserved.z > Z_HALF_MIN ? FRAG_MAX(slope, reserved.slope / c->in.history.stride)
					: slope;
	name = room == UINT64_MAX
		       ? card_of(c, f->texts, &card)
		       : frag_answer_print(f->texts, "the limit of %s", FRAG_BYTES(room));
	if (room == UINT64_MAX)
		room = card.total_bytes - card.context_bytes;
	if (room <= peak || slope <= 0)
		return 0;
	steps = (double)(room - peak) / slope;
	frag_finding_number(f, "steps_until_full", steps);
	if (steps < 1e9)
		SAY("; with %s more reserved per step %s is full after %.0f more steps",
		    FRAG_BYTES((uint64_t)(slope + 0.5)), name, steps);
	return 0;
}

/* from: the step in which it begins to grow. */
static int tell(struct frag_checkup *c, const struct frag_climb *climb, bool graphs, size_t from,
		struct frag_findings *out, struct frag_err *err)
{
	const struct frag_history *h = &c->in.history;
	struct frag_finding *f =
		frag_findings_add(out, graphs ? FRAG_FOUND_GROWTH : FRAG_FOUND_LEAK, c->about);
	double slope = (from ? climb->second_half : climb->per_step) / h->stride;
	double steps = (double)((h->count - from) * h->stride), share;
	uint32_t frame = blame(c, &share, err);

	SAY("memory that outlives its %s grows by %s per %s%s, %s over %.0f %s "
	    "(Mann-Kendall z = %.1f, Theil-Sen slope)",
	    graphs ? "pass" : "step", FRAG_BYTES((uint64_t)(slope + 0.5)), graphs ? "pass" : "step",
	    from ? frag_answer_print(f->texts, " from %s on", FRAG_STEP(&c->in, from)) : "",
	    FRAG_BYTES((uint64_t)(slope * steps + 0.5)), steps, graphs ? "passes" : "steps",
	    climb->z);
	frag_finding_lines(c, f, frame, share);
	if (graphs)
		SAY("; %s", FRAG_GRAPHS_REMEDY FRAG_GRAPHS_TRY);
	FRAG_TRY(tell_end(c, f, slope, err));
	frag_finding_number(f, "bytes_per_step", slope);
	frag_finding_number(f, "grown_bytes", slope * steps);
	frag_finding_number(f, "steps_count", steps);
	if (from)
		frag_finding_number(f, "steps_before_count", (double)(from * h->stride));
	frag_finding_number(f, "mann_kendall_z", climb->z);
	frag_finding_number(f, "mann_kendall_p", climb->p);
	frag_finding_number(f, "second_half_bytes_per_step", climb->second_half / h->stride);
	return 0;
}

/* Of what was requested in the second half of the steps, how much stayed. */
static double kept_part(const struct frag_history *h)
{
	double grew = 0, flow = 0;

	for (size_t i = 0; i < h->stacks_count; i++) {
		grew += h->grew[i];
		flow += h->flow[i];
	}
	return flow > 0 ? grew / flow : 0;
}

double frag_growth_until(const struct frag_checkup *c, const struct frag_finding *f, uint64_t event)
{
	const struct frag_history *h = &c->in.history;
	double per_step = frag_finding_value(f, "bytes_per_step");
	double steps = (double)(frag_history_step(h, event) * h->stride) -
		       frag_finding_value(f, "steps_before_count");

	return per_step > 0 ? per_step * steps : frag_finding_value(f, "grown_bytes");
}

bool frag_growth_is_held(const struct frag_checkup *c, const struct frag_finding *f,
			 const struct frag_refused_at *then)
{
	return frag_growth_until(c, f, then->r.event) <= HELD_SLACK * (double)then->r.live_bytes;
}

/* Was it gone when, after the last step, a request was refused? */
static bool given_back(const struct frag_checkup *c, double grown)
{
	const struct frag_history *h = &c->in.history;
	const struct frag_refused_at *last = c->refused.list + c->refused.count;

	return c->refused.count && last[-1].r.event >= h->steps[h->count - 1].end &&
	       HELD_SLACK * (double)last[-1].r.live_bytes < grown;
}

int frag_is_capturing(const struct frag_checkup *c, uint64_t from, uint64_t to, double passes,
		      bool *is, struct frag_err *err)
{
	const struct frag_trace_dev *td = frag_events_dev(&c->in.events);
	FRAG_AUTO_FREE bool *seen = NULL;
	size_t begun = 0;

	FRAG_TRY_CALLOC(seen, td->pools_count + 1, "diagnosis", err);
	for (uint64_t i = 0; i < to; i++) {
		const struct frag_event *e = &td->events[i];

		if (e->kind != FRAG_EV_ALLOC || !e->pool || seen[e->pool])
			continue;
		seen[e->pool] = true;
		begun += i >= from;
	}
	*is = (double)begun >= CAPTURES * passes;
	return 0;
}

int frag_find_leak(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err)
{
	const struct frag_history *h = &c->in.history;
	const size_t half = h->count / 2;
	size_t skip = FRAG_MIN(1 + h->count / WARM_UP, h->count / 2), n = 0;
	FRAG_AUTO_FREE double *kept = NULL;
	struct frag_climb climb;
	double least;
	bool climbs, marks = h->from == FRAG_STEPS_MARKS;
	/* of PyTorch; other libraries keep none */
	bool graphs = !marks && kept_part(h) >= GRAPH_PART &&
		      !frag_own_allocators(c->in.events.trace->format, NULL);

	if (h->count < STEPS_MIN || (!marks && h->from != FRAG_STEPS_PERIOD))
		return 0;
	FRAG_TRY_CALLOC(kept, h->count, "diagnosis", err);
	for (size_t i = skip; i < h->count; i++)
		kept[n++] = (double)h->steps[i].kept_end;
	least = FRAG_MAX(GROWN_PART * (double)h->peak_live, (double)FRAG_MIB);
	FRAG_TRY(frag_climbs(kept, n, least, &climb, &climbs, err));
	if (!climbs || given_back(c, climb.grown) || fades(c, &climb, err))
		return 0;
	FRAG_TRY(frag_is_capturing(c, h->steps[half].first, h->steps[h->count - 1].end,
				   (double)((h->count - half) * h->stride), &climbs, err));
	return climbs ? 0 : tell(c, &climb, graphs, begins(h, skip, &climb), out, err);
}

int frag_leak_caveat(const struct frag_events *events, struct frag_answer *a, struct frag_err *err)
{
	FRAG_AUTO(frag_findings_release) struct frag_findings found = { .texts = a };
	FRAG_AUTO(frag_checkup_destroy_at) struct frag_checkup *c = NULL;
	const char *each;

	if (!frag_events_dev(events)->events) /* streamed */
		return 0;
	FRAG_TRY_CALLOC(c, 1, "diagnosis", err);
	c->about = "";
	c->in = (struct frag_case){ .events = *events, .threads = 1, .limit_bytes = UINT64_MAX };
	FRAG_TRY(frag_history_make(&c->in.events, &c->in.history, err));
	if (c->in.history.refusals_count) /* what it needs is unknown anyhow */
		return 0;
	FRAG_TRY(frag_sites_init(&c->in.sites, events->trace, FRAG_BY_LINE, NULL, err));
	FRAG_TRY(frag_find_leak(c, &found, err));
	if (!found.count)
		return 0;
	each = found.list->kind == FRAG_FOUND_LEAK ? "step" : "pass";
	a->caveat = frag_answer_print(a,
				      "; memory grows from %s to %s, so that holds for what was "
				      "recorded alone: if it goes on, no card is enough (cufrag "
				      "diagnose)",
				      each, each);
	return 0;
}
