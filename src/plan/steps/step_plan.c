/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans for repeated steps, like STAlloc: uses the lifetimes of the recording up to the end of the
 * trained steps, and assumes that the last of these steps (one period) repeat forever.
 *
 * Time of the placement: the beginning, then one period, whose end is also its beginning. The last
 * trained step shows how lifetimes continue after the period. Blocks older than the period that are
 * live at its end are resident. A block made in the period and live across its end has two parts,
 * one at its end and one at its beginning, at the same offset. If such a lifetime is longer than
 * the period (an output that is kept until the next one replaces it), the period is doubled, so
 * that two places alternate; if that is not enough, the fallback serves the block. Steps are not
 * cut at the mark but where the least memory is live, a fixed number of requests (skip) after it.
 * If no step resembles an earlier one, the plan covers the beginning (all trained steps), with
 * period 0; the policy then serves other requests from its height. A trace without step marks is
 * cut into windows of requests or time; nothing marks them in a run, so they have period 0, too.
 */
#include <frag/plan.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/outfile.h"
#include "lib/bisect.h"

#define SIMILAR 0.98 /* steps that share this part of their requests count as the same */
#define REPEATS 0.5  /* below this, steps do not repeat */
/* If nothing repeats, other requests of about the same total must fit other holes: the LoRA
 * recording, with prompts of varying length, needs 4 % more room. */
#define SLACK 0.04
#define STEPS_MIN 3u /* a step, its repetition, and how lifetimes continue after it */
#define WINDOWS 16u  /* of equal numbers of requests, if steps are not marked */
#define WINDOWS_MAX (1u << 20)
#define ROUNDS_MAX 64u /* of the placement */
#define STEP_UNIT 512u /* sizes and offsets are multiples of this */

struct step_maker {
	struct frag_buffers b; /* all allocations of the device */
	uint32_t *cut;	       /* [steps]: requests before the mark; later including the skip */
	uint32_t *marks;       /* [steps]: marks up to and including this step */
	uint32_t steps, trained, period;
	bool windows; /* steps are not marked: windows of requests or of time */
	uint64_t *scratch;
};

/* Events at the beginning and end of the period, and at the end of the trained steps. */
struct step_window {
	uint32_t first, end; /* requests */
	uint64_t begins, ends, seen;
};

/* ---- steps ----------------------------------------------------------------------- */

/* Steps end at the end of their marks, windows after so many requests or so much time. */
static int find_steps(struct step_maker *m, const struct frag_trace_dev *dev,
		      const struct frag_step_options *opt, struct frag_err *err)
{
	uint64_t each = opt->window_requests, us = opt->window_us;
	uint64_t begin = dev->events_count ? dev->events[0].time_us : 0;
	uint32_t requests = 0, marks = 0, marked = 0;

	for (size_t i = 0; i < dev->events_count; i++)
		marked += frag_event_ends_step(&dev->events[i]);
	m->windows = each || us || marked < STEPS_MIN;
	if (!each)
		each = FRAG_MAX((m->b.count + WINDOWS - 1) / WINDOWS, 1u);
	FRAG_TRY_CALLOC(m->cut, FRAG_MAX(marked, WINDOWS_MAX) + 1, "plan", err);
	FRAG_TRY_CALLOC(m->marks, FRAG_MAX(marked, WINDOWS_MAX) + 1, "plan", err);
	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];
		uint64_t now = FRAG_MAX(e->time_us, begin) - begin;

		for (; us && now / us > m->steps && m->steps < WINDOWS_MAX; m->steps++)
			m->cut[m->steps] = requests;
		if (m->windows && m->steps == WINDOWS_MAX)
			return FRAG_USAGE(err,
					  "windows are too short: there would be over %u of them",
					  WINDOWS_MAX);
		requests += e->kind == FRAG_EV_ALLOC;
		marks += e->kind == FRAG_EV_MARK;
		if (!m->windows ? frag_event_ends_step(e)
				: !us && e->kind == FRAG_EV_ALLOC && requests % each == 0) {
			m->cut[m->steps] = requests;
			m->marks[m->steps++] = marks;
		}
	}
	if (m->windows && (us || requests % each))
		m->cut[m->steps++] = requests;
	return 0;
}

static struct step_window step_window_of(const struct step_maker *m)
{
	uint32_t seen = m->cut[m->trained - 1];
	uint32_t end = m->period ? m->cut[m->trained - 2] : seen;
	struct step_window w = { .first = m->period ? m->cut[m->trained - 2 - m->period] : end,
				 .end = end };

	w.begins = w.first < m->b.count ? m->b.list[w.first].lower : UINT64_MAX - 1;
	w.ends = end < m->b.count ? m->b.list[end].lower : UINT64_MAX - 1;
	w.seen = seen < m->b.count ? m->b.list[seen].lower : UINT64_MAX - 1;
	return w;
}

/* Does a lifetime that crosses the end reach its own beginning again? */
static bool step_is_too_long(const struct step_window *w, const struct frag_buffer *x)
{
	return x->upper > w->seen || w->begins + (x->upper - w->ends) > x->lower;
}

/* ---- period ---------------------------------------------------------------------- */

/* Sorted sizes of the requests between the cuts k - 1 and k; adds them up. */
static size_t step_sizes(const struct step_maker *m, uint32_t k, uint64_t *out, double *sum)
{
	size_t n = 0;

	for (uint32_t i = m->cut[k - 1]; i < m->cut[k]; i++) {
		*sum += (double)m->b.list[i].bytes;
		out[n++] = m->b.list[i].bytes;
	}
	qsort(out, n, sizeof(*out), frag_compare_u64);
	return n;
}

/* Bytes that the requests of both steps have in common, by those of the larger one. */
static double similarity(const struct step_maker *m, uint32_t k, uint32_t l)
{
	uint64_t *a = m->scratch, *b = m->scratch + m->b.count;
	double common = 0, all_a = 0, all_b = 0;
	size_t na = step_sizes(m, k, a, &all_a), nb = step_sizes(m, l, b, &all_b), i = 0, j = 0;

	while (i < na && j < nb) {
		bool same = a[i] == b[j], first = a[i] <= b[j];

		common += same ? (double)a[i] : 0;
		i += first;
		j += same || !first;
	}
	return all_a + all_b > 0 ? common / FRAG_MAX(all_a, all_b) : 1;
}

/* The smallest distance to an earlier step equal to the last trained, else to the nearest. */
static void find_period(struct step_maker *m, double *best)
{
	*best = -1;
	m->period = 1;
	for (uint32_t q = 1; q + 2 <= m->trained && q + 1 < m->trained; q++) {
		double s = similarity(m, m->trained - 1, m->trained - 1 - q);

		if (s > *best) {
			*best = s;
			m->period = q;
		}
		if (s >= SIMILAR)
			return;
	}
	/* nothing repeats: a plan for other requests would only hinder */
	if (*best < REPEATS)
		m->period = 0;
}

/* ---- cuts ------------------------------------------------------------------------ */

/* Number of requests after the mark at which the least memory is live, in the last trained step. */
static uint32_t find_skip(const struct step_maker *m, const struct frag_trace_dev *dev)
{
	uint32_t from = m->cut[m->trained - 2], to = m->cut[m->trained - 1], best = from, at = 0;
	uint64_t least = UINT64_MAX, live = 0;

	for (size_t i = 0; i < dev->events_count && at < to; i++) {
		const struct frag_event *e = &dev->events[i];
		uint64_t bytes = frag_round_up(e->bytes, STEP_UNIT);

		if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED)
			live -= bytes;
		if (e->kind != FRAG_EV_ALLOC)
			continue;
		if (at >= from && live < least) {
			least = live;
			best = at;
		}
		live += bytes;
		at++;
	}
	return best - from;
}

static int fill_phases(const struct step_maker *m, struct frag_step_plan *out, struct frag_err *err)
{
	uint32_t first = m->trained - (m->period ? 2 : 1) - m->period;

	FRAG_TRY_CALLOC(out->phases, (size_t)m->period + 1, "plan", err);
	out->phases[0] = m->cut[first];
	for (uint32_t k = 1; k <= m->period; k++)
		out->phases[k] = m->cut[first + k] - m->cut[first + k - 1];
	if (!m->period)
		return 0;
	out->prefix_marks = m->marks[first];
	out->phase_marks = m->marks[first + 1] - m->marks[first];
	for (uint32_t k = first + 1; k < m->trained; k++)
		if (m->marks[k] - m->marks[k - 1] != out->phase_marks)
			return FRAG_INPUT(err, "steps have different numbers of marks: no plan can "
					       "follow them");
	return 0;
}

/* Half of the steps, but at least what a period needs, if there are that many. */
static int choose_trained(struct step_maker *m, uint32_t train, struct frag_err *err)
{
	uint32_t least = m->windows ? 1 : STEPS_MIN, half = (m->steps + 1) / 2;

	m->trained = train ? train : FRAG_MAX(half, FRAG_MIN(least, m->steps - (m->steps != 0)));
	if (m->trained >= least && m->trained <= m->steps && m->b.count)
		return 0;
	if (!m->b.count)
		return FRAG_INPUT(err, "a plan needs requests; the trace has none");
	return FRAG_INPUT(err,
			  "a plan needs %u %s or more; the trace has %u, --train allows %u of them",
			  least, m->windows ? "windows" : "steps", m->steps, m->trained);
}

static int find_pattern(struct step_maker *m, const struct frag_trace_dev *dev,
			struct frag_step_plan *out, struct frag_err *err)
{
	struct step_window w;
	bool too_long = false;

	if (m->trained >= STEPS_MIN)
		find_period(m, &out->similarity);
	out->similarity = FRAG_MAX(out->similarity, 0.0);
	if (m->windows) {
		/* the program does not mark windows, so only the beginning is planned */
		m->period = 0;
		if (!m->cut[m->trained - 1])
			return FRAG_INPUT(err, "the trained windows have no requests");
		return 0;
	}
	out->skip = find_skip(m, dev);
	for (uint32_t k = 0; k < m->steps; k++)
		m->cut[k] = (uint32_t)FRAG_MIN((size_t)m->cut[k] + out->skip, m->b.count);
	if (m->cut[m->trained - 2] >= m->b.count ||
	    m->cut[m->trained - 3] >= m->cut[m->trained - 2])
		return FRAG_INPUT(err, "the steps of the trace have no requests");
	/* twice as long where that gives every lifetime its place and there are enough steps */
	w = step_window_of(m);
	for (uint32_t i = w.first; i < w.end && !too_long; i++)
		too_long = m->b.list[i].upper > w.ends && m->b.list[i].upper <= w.seen &&
			   step_is_too_long(&w, &m->b.list[i]);
	if (too_long && 2 * m->period + 2 <= m->trained)
		m->period *= 2;
	return 0;
}

/* ---- the placement: time folded, so that the end of the period is its beginning ---- */

/* Requests of the beginning that live into the period, by end and size. */
struct entrant {
	uint64_t upper, bytes;
	uint32_t request;
};

FRAG_COMPARE(compare_entrants, struct entrant, FRAG_ORDER(x->upper, y->upper),
	     FRAG_ORDER(x->bytes, y->bytes), FRAG_ORDER(x->request, y->request))

/* Takes one with this end and size; UINT32_MAX if none is left. */
static uint32_t take_entrant(struct entrant *list, size_t n, uint64_t upper, uint64_t bytes)
{
	struct entrant key = { upper, bytes, 0 };
	uint32_t request = UINT32_MAX;
	size_t lo;

	FRAG_BISECT(lo, 0, n, compare_entrants(&list[lo], &key) < 0);
	for (;
	     lo < n && request == UINT32_MAX && list[lo].upper == upper && list[lo].bytes == bytes;
	     lo++) {
		request = list[lo].request;
		list[lo].request = UINT32_MAX;
	}
	return request;
}

/*
 * The lifetime x of request i crosses the end. Its second part is at the beginning of the period.
 * In the first period, a request of the beginning has that role: if it is found, both get the same
 * place; else the part is a separate buffer.
 */
static void add_twin(struct frag_buffers *b, const struct step_window *w, uint32_t i,
		     const struct frag_buffer *x, struct entrant *entrants, size_t n)
{
	uint64_t upper = w->begins + (x->upper - w->ends);
	uint32_t twin = take_entrant(entrants, n, upper, x->bytes);

	if (twin == UINT32_MAX) {
		twin = (uint32_t)b->count;
		b->list[b->count++] = (struct frag_buffer){ w->begins, upper, x->bytes };
	}
	b->twins[i] = twin;
	b->twins[twin] = i;
}

/* Lifetimes in the time of the placement: b->list[0 .. end) are the requests, followed by second
 * parts. Requests that cannot be planned have 0 bytes in `out` and a tiny part here. */
static int fold(const struct step_maker *m, const struct step_window *w, struct frag_buffers *b,
		struct frag_step_plan *out, struct frag_err *err)
{
	FRAG_AUTO_FREE struct entrant *entrants =
		frag_host_calloc((size_t)w->first + 1, sizeof(*entrants));
	size_t n = 0;

	b->list = frag_host_calloc(2 * (size_t)w->end + 1, sizeof(*b->list));
	b->twins = frag_host_calloc(2 * (size_t)w->end + 1, sizeof(*b->twins));
	FRAG_CHECK_ALLOC(entrants && b->list && b->twins, "plan", err);
	for (uint32_t i = 0; i < w->first; i++) {
		const struct frag_buffer *x = &m->b.list[i];

		if (x->upper > w->begins && x->upper <= w->ends)
			entrants[n++] = (struct entrant){ x->upper, x->bytes, i };
	}
	qsort(entrants, n, sizeof(*entrants), compare_entrants);
	b->count = w->end;
	for (uint32_t i = 0; i < w->end; i++)
		b->twins[i] = i;
	for (uint32_t i = 0; i < w->end; i++) {
		struct frag_buffer x = m->b.list[i];

		out->bytes[i] = x.bytes;
		if (x.upper > w->ends && i >= w->first && step_is_too_long(w, &x)) {
			out->bytes[i] = 0;
			x = (struct frag_buffer){ x.lower, x.lower + 1, STEP_UNIT };
		} else if (x.upper > w->ends && i >= w->first) {
			add_twin(b, w, i, &x, entrants, n);
		}
		x.upper = FRAG_MIN(x.upper, w->ends);
		b->list[i] = x;
	}
	return 0;
}

/* Fills out->bytes, offsets, requests_count, height and bound; checks the placement. */
static int step_place(const struct step_maker *m, const struct frag_step_options *opt,
		      struct frag_step_plan *out, struct frag_err *err)
{
	struct step_window w = step_window_of(m);
	FRAG_AUTO(frag_buffers_release) struct frag_buffers b = { 0 };
	struct frag_improve_options improve = { .budget_ns = opt->budget_ns,
						.rounds_max = ROUNDS_MAX,
						.watch = opt->watch };

	out->requests_count = w.end;
	out->bytes = frag_host_calloc((size_t)w.end + 1, sizeof(*out->bytes));
	out->offsets = frag_host_calloc(2 * (size_t)w.end + 1, sizeof(*out->offsets));
	FRAG_CHECK_ALLOC(out->bytes && out->offsets, "plan", err);
	FRAG_TRY(fold(m, &w, &b, out, err));
	FRAG_TRY(frag_load_bound(&b, &out->bound_bytes, NULL, err));
	/* If other requests will follow, long-lived buffers go together at the bottom. */
	if (out->period)
		FRAG_TRY(frag_place_improve(&b, &improve, out->offsets, &out->height_bytes, err));
	else
		FRAG_TRY(frag_place_greedy(&b, FRAG_ORDER_LIFE, FRAG_GAP_LOWEST, opt->watch,
					   out->offsets, &out->height_bytes, err));
	FRAG_TRY(frag_place_check(&b, out->offsets, STEP_UNIT, out->height_bytes, err));
	for (uint32_t i = 0; i < w.end; i++)
		if (!out->bytes[i]) {
			out->bytes[i] = m->b.list[i].bytes;
			out->offsets[i] = UINT64_MAX;
		}
	return 0;
}

static int make(struct step_maker *m, const struct frag_trace_dev *dev,
		const struct frag_step_options *opt, struct frag_step_plan *out,
		struct frag_err *err)
{
	FRAG_TRY(frag_buffers_init(&m->b, dev, STEP_UNIT, false, err));
	FRAG_TRY(find_steps(m, dev, opt, err));
	FRAG_TRY_CALLOC(m->scratch, 2 * m->b.count + 1, "plan", err);
	FRAG_TRY(choose_trained(m, opt->train, err));
	FRAG_TRY(find_pattern(m, dev, out, err));
	out->windows = m->windows;
	out->steps_count = m->steps;
	out->trained_count = m->trained;
	out->period = m->period;
	FRAG_TRY(fill_phases(m, out, err));
	return step_place(m, opt, out, err);
}

int frag_step_plan_make(const struct frag_trace_dev *dev, const struct frag_step_options *opt,
			struct frag_step_plan *out, struct frag_err *err)
{
	struct step_maker m = { 0 };
	double slack = opt->slack;
	int rc;

	*out = (struct frag_step_plan){ 0 };
	rc = make(&m, dev, opt, out, err);
	if (slack < 0)
		slack = out->period ? 0 : SLACK;
	out->reserve_bytes =
		frag_round_up((uint64_t)((1 + slack) * (double)out->height_bytes), STEP_UNIT);
	if (!rc && out->reserve_bytes >> 48)
		rc = FRAG_USAGE(err, "its plan would need %s, more than any device has",
				FRAG_BYTES(out->reserve_bytes));
	frag_buffers_release(&m.b);
	FRAG_FREE(m.cut, m.marks, m.scratch);
	if (rc)
		frag_step_plan_release(out);
	return rc;
}

/* ---- the file that policy `planned` reads; see docs/choose.md ---------------------- */

int frag_step_plan_write(const struct frag_step_plan *p, const char *comment, const char *path,
			 struct frag_err *err)
{
	struct frag_outfile out;
	size_t at = 0;

	FRAG_TRY(frag_outfile_open(&out, path, err));
	fprintf(out.to,
		"cufrag-plan 1\n# %s\n"
		"reserve %" PRIu64 " prefix_marks %" PRIu32 " phase_marks %" PRIu32 " skip %" PRIu32
		" phases %" PRIu32 " requests %zu\n",
		comment, p->reserve_bytes, p->prefix_marks, p->phase_marks, p->skip, p->period + 1,
		p->requests_count);
	for (uint32_t k = 0; k <= p->period; k++) {
		size_t end = at + p->phases[k];

		fprintf(out.to, "phase %" PRIu32 "\n", p->phases[k]);
		for (; at < end; at++)
			if (p->offsets[at] == UINT64_MAX)
				fprintf(out.to, "%" PRIu64 " -\n", p->bytes[at]);
			else
				fprintf(out.to, "%" PRIu64 " %" PRIu64 "\n", p->bytes[at],
					p->offsets[at]);
	}
	return frag_outfile_commit(&out, err);
}

void frag_step_plan_release(struct frag_step_plan *p)
{
	FRAG_FREE(p->phases, p->bytes, p->offsets);
	*p = (struct frag_step_plan){ 0 };
}
