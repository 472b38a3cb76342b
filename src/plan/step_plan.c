/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans for repeated steps, in the manner of STAlloc: lives are those of the
 * recording up to the end of the trained steps; the last steps of these (one period)
 * are taken to repeat for ever.
 *
 * Time of the placement: the beginning, then one period, whose end is also its
 * beginning. The last trained step shows how the lives go on behind the period. What is older
 * than the period and still lives at its end is resident. What was made in the period and
 * lives across its end has two parts, one at its end and one at its beginning, at the same
 * offset. Where such a life is longer than the period itself (an output that is kept until
 * the next one has replaced it), the period is doubled, so that two places take turns; if
 * that does not suffice it is left to the fallback. Steps are cut not at the mark but where the
 * least is live, a fixed number of requests (skip) after it. If no step resembles an earlier
 * one, the plan is that of the beginning (all trained steps), with period 0; its height is
 * what the policy then serves other requests from.
 */
#include <frag/plan.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/outfile.h"

#define UNIT 512u
#define SIMILAR 0.98 /* steps that share this part of their requests count as the same */
#define REPEATS 0.5  /* below this nothing is taken to repeat */
/* Where nothing repeats, other requests of about the same sum must do with other holes: 4 % of
 * room is what the LoRA recording with prompts of changing length needs. */
#define SLACK 0.04
#define ROUNDS_MAX 64u

struct maker {
	struct frag_buffers b; /* all allocations of the device */
	uint32_t *cut;	       /* [steps]: requests before the mark, later with the skip */
	uint32_t *marks;       /* [steps]: calls of mark up to and with it */
	uint32_t steps, trained, period;
	uint64_t *scratch;
};

/* A step is over at the end of its mark. */
static int find_steps(struct maker *m, const struct frag_trace_dev *dev, struct frag_err *err)
{
	uint32_t requests = 0, marks = 0;
	size_t count = 0;

	for (size_t i = 0; i < dev->events_count; i++)
		count += dev->events[i].kind == FRAG_EV_MARK;
	m->cut = frag_host_calloc(count + 1, sizeof(*m->cut));
	m->marks = frag_host_calloc(count + 1, sizeof(*m->marks));
	if (!m->cut || !m->marks)
		return frag_fail_nomem(err, "plan");
	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];

		requests += e->kind == FRAG_EV_ALLOC;
		marks += e->kind == FRAG_EV_MARK;
		if (e->kind == FRAG_EV_MARK && e->flags & FRAG_EVF_STEP &&
		    e->flags & FRAG_EVF_END) {
			m->cut[m->steps] = requests;
			m->marks[m->steps++] = marks;
		}
	}
	return 0;
}

/* ---- period ---------------------------------------------------------------------- */

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sorted sizes of the requests between the cuts k - 1 and k. */
static size_t step_sizes(const struct maker *m, uint32_t k, uint64_t *out)
{
	size_t n = 0;

	for (uint32_t i = m->cut[k - 1]; i < m->cut[k]; i++)
		out[n++] = m->b.list[i].bytes;
	qsort(out, n, sizeof(*out), compare_u64);
	return n;
}

/* Bytes that the requests of both steps have in common, by those of the larger one. */
static double similarity(const struct maker *m, uint32_t k, uint32_t l)
{
	uint64_t *a = m->scratch, *b = m->scratch + m->b.count;
	size_t na = step_sizes(m, k, a), nb = step_sizes(m, l, b), i = 0, j = 0;
	double common = 0, all_a = 0, all_b = 0;

	for (size_t x = 0; x < na; x++)
		all_a += (double)a[x];
	for (size_t x = 0; x < nb; x++)
		all_b += (double)b[x];
	while (i < na && j < nb) {
		if (a[i] == b[j]) {
			common += (double)a[i];
			i++, j++;
		} else if (a[i] < b[j]) {
			i++;
		} else {
			j++;
		}
	}
	return all_a + all_b > 0 ? common / FRAG_MAX(all_a, all_b) : 1;
}

/* The smallest number of steps after which the last trained one came before; else the one
 * that comes nearest to it. */
static void find_period(struct maker *m, double *best)
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
	/* nothing repeats: a plan for other requests is only in the way */
	if (*best < REPEATS)
		m->period = 0;
}

/* ---- cuts ------------------------------------------------------------------------ */

/* How many requests after the mark the least is live, looked for in the last trained step. */
static uint32_t find_skip(const struct maker *m, const struct frag_trace_dev *dev)
{
	uint32_t from = m->cut[m->trained - 2], to = m->cut[m->trained - 1], best = from, at = 0;
	uint64_t least = UINT64_MAX, live = 0;

	for (size_t i = 0; i < dev->events_count && at < to; i++) {
		const struct frag_event *e = &dev->events[i];
		uint64_t bytes = frag_round_up(e->bytes, UNIT);

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

/* ---- placement ------------------------------------------------------------------- */

/* Events of the beginning and the end of the period, and of the end of what was looked at. */
struct window {
	uint32_t first, end; /* requests */
	uint64_t begins, ends, seen;
};

static struct window window_of(const struct maker *m)
{
	uint32_t seen = m->cut[m->trained - 1];
	uint32_t end = m->period ? m->cut[m->trained - 2] : seen;
	struct window w = { .first = m->period ? m->cut[m->trained - 2 - m->period] : end,
			    .end = end };

	w.begins = w.first < m->b.count ? m->b.list[w.first].lower : UINT64_MAX - 1;
	w.ends = end < m->b.count ? m->b.list[end].lower : UINT64_MAX - 1;
	w.seen = seen < m->b.count ? m->b.list[seen].lower : UINT64_MAX - 1;
	return w;
}

/* Does a life that crosses the end reach its own beginning again? */
static bool is_too_long(const struct window *w, const struct frag_buffer *x)
{
	return x->upper > w->seen || w->begins + (x->upper - w->ends) > x->lower;
}

/* Twice the period where that gives every life its place and there are steps enough. */
static void settle_period(struct maker *m)
{
	struct window w = window_of(m);
	bool too_long = false;

	for (uint32_t i = w.first; i < w.end && !too_long; i++)
		too_long = m->b.list[i].upper > w.ends && m->b.list[i].upper <= w.seen &&
			   is_too_long(&w, &m->b.list[i]);
	if (too_long && 2 * m->period + 2 <= m->trained)
		m->period *= 2;
}

/* Requests of the beginning that live into the period, by end and size. */
struct entrant {
	uint64_t upper, bytes;
	uint32_t request;
};

static int compare_entrants(const void *a, const void *b)
{
	const struct entrant *x = a, *y = b;

	if (x->upper != y->upper)
		return x->upper < y->upper ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return (x->request > y->request) - (x->request < y->request);
}

static size_t list_entrants(const struct maker *m, const struct window *w, struct entrant *out)
{
	size_t n = 0;

	for (uint32_t i = 0; i < w->first; i++) {
		const struct frag_buffer *x = &m->b.list[i];

		if (x->upper > w->begins && x->upper <= w->ends)
			out[n++] = (struct entrant){ x->upper, x->bytes, i };
	}
	qsort(out, n, sizeof(*out), compare_entrants);
	return n;
}

/* Takes one of this end and size, UINT32_MAX if there is none (left). */
static uint32_t take_entrant(struct entrant *list, size_t n, uint64_t upper, uint64_t bytes)
{
	struct entrant key = { upper, bytes, 0 };
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare_entrants(&list[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < n && list[lo].upper == upper && list[lo].bytes == bytes; lo++) {
		uint32_t request = list[lo].request;

		list[lo].request = UINT32_MAX;
		if (request != UINT32_MAX)
			return request;
	}
	return UINT32_MAX;
}

/*
 * The life x of request i crosses the end. Its second part is at the beginning of the
 * period, where the first time a request of the beginning plays its role: if that one is
 * found, both get one place; else a buffer of its own.
 */
static void add_twin(struct frag_buffers *b, const struct window *w, uint32_t i,
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

/* Lives in the time of the placement: b->list[0 .. end) are the requests, behind them second
 * parts. What cannot be planned has no bytes in out and one tiny part here. */
static int fold(const struct maker *m, const struct window *w, struct frag_buffers *b,
		struct frag_step_plan *out, struct frag_err *err)
{
	struct entrant *entrants = frag_host_calloc((size_t)w->first + 1, sizeof(*entrants));
	size_t n;

	b->list = frag_host_calloc(2 * (size_t)w->end + 1, sizeof(*b->list));
	b->twins = frag_host_calloc(2 * (size_t)w->end + 1, sizeof(*b->twins));
	if (!entrants || !b->list || !b->twins) {
		frag_host_free(entrants);
		return frag_fail_nomem(err, "plan");
	}
	n = list_entrants(m, w, entrants);
	b->count = w->end;
	for (uint32_t i = 0; i < w->end; i++)
		b->twins[i] = i;
	for (uint32_t i = 0; i < w->end; i++) {
		struct frag_buffer x = m->b.list[i];

		out->bytes[i] = x.bytes;
		if (x.upper > w->ends && i >= w->first && is_too_long(w, &x)) {
			out->bytes[i] = 0;
			x = (struct frag_buffer){ x.lower, x.lower + 1, UNIT };
		} else if (x.upper > w->ends && i >= w->first) {
			add_twin(b, w, i, &x, entrants, n);
		}
		x.upper = FRAG_MIN(x.upper, w->ends);
		b->list[i] = x;
	}
	frag_host_free(entrants);
	return 0;
}

static int place_folded(struct frag_buffers *b, uint64_t *offsets, uint64_t budget_ns,
			const struct frag_watch *watch, struct frag_step_plan *out,
			struct frag_err *err)
{
	struct frag_improve_options opt = { .budget_ns = budget_ns,
					    .rounds_max = ROUNDS_MAX,
					    .watch = watch };

	FRAG_TRY(frag_load_bound(b, &out->bound_bytes, NULL, err));
	/* Where other requests are to come, what stays lies together at the bottom. */
	if (out->period)
		FRAG_TRY(frag_place_improve(b, &opt, offsets, &out->height_bytes, err));
	else
		FRAG_TRY(frag_place_greedy(b, FRAG_ORDER_LIFE, FRAG_GAP_LOWEST, watch, offsets,
					   &out->height_bytes, err));
	return frag_place_check(b, offsets, UNIT, out->height_bytes, err);
}

static int place(struct maker *m, uint64_t budget_ns, const struct frag_watch *watch,
		 struct frag_step_plan *out, struct frag_err *err)
{
	struct window w = window_of(m);
	struct frag_buffers b = { 0 };
	int rc = 0;

	out->requests_count = w.end;
	out->bytes = frag_host_calloc((size_t)w.end + 1, sizeof(*out->bytes));
	out->offsets = frag_host_calloc(2 * (size_t)w.end + 1, sizeof(*out->offsets));
	if (!out->bytes || !out->offsets)
		rc = frag_fail_nomem(err, "plan");
	if (!rc)
		rc = fold(m, &w, &b, out, err);
	if (!rc)
		rc = place_folded(&b, out->offsets, budget_ns, watch, out, err);
	frag_buffers_release(&b);
	return rc;
}

static int fill_phases(const struct maker *m, struct frag_step_plan *out, struct frag_err *err)
{
	uint32_t first = m->trained - (m->period ? 2 : 1) - m->period;

	out->phases = frag_host_calloc((size_t)m->period + 1, sizeof(*out->phases));
	if (!out->phases)
		return frag_fail_nomem(err, "plan");
	out->phases[0] = m->cut[first];
	for (uint32_t k = 1; k <= m->period; k++)
		out->phases[k] = m->cut[first + k] - m->cut[first + k - 1];
	if (!m->period)
		return 0;
	out->prefix_marks = m->marks[first];
	out->phase_marks = m->marks[first + 1] - m->marks[first];
	for (uint32_t k = first + 1; k < m->trained; k++)
		if (m->marks[k] - m->marks[k - 1] != out->phase_marks)
			return frag_fail(err, FRAG_EINPUT,
					 "steps have different numbers of marks: "
					 "no plan can follow them");
	return 0;
}

static int make(struct maker *m, const struct frag_trace_dev *dev, uint32_t train,
		uint64_t budget_ns, const struct frag_watch *watch, struct frag_step_plan *out,
		struct frag_err *err)
{
	FRAG_TRY(frag_buffers_init(&m->b, dev, UNIT, false, err));
	FRAG_TRY(find_steps(m, dev, err));
	m->scratch = frag_host_calloc(2 * m->b.count + 1, sizeof(*m->scratch));
	if (!m->scratch)
		return frag_fail_nomem(err, "plan");
	m->trained = train ? train : (m->steps + 1) / 2;
	if (m->steps < 3 || m->trained < 3 || m->trained > m->steps)
		return frag_fail(err, FRAG_EINPUT,
				 "a plan is made from three steps or more; the "
				 "trace marks %u, of which %u were to be looked at",
				 m->steps, m->trained);
	find_period(m, &out->similarity);
	out->skip = find_skip(m, dev);
	for (uint32_t k = 0; k < m->steps; k++)
		m->cut[k] = (uint32_t)FRAG_MIN((size_t)m->cut[k] + out->skip, m->b.count);
	if (m->cut[m->trained - 2] >= m->b.count ||
	    m->cut[m->trained - 3] >= m->cut[m->trained - 2])
		return frag_fail(err, FRAG_EINPUT, "the steps of the trace have no requests");
	settle_period(m);
	out->steps_count = m->steps;
	out->trained_count = m->trained;
	out->period = m->period;
	FRAG_TRY(fill_phases(m, out, err));
	return place(m, budget_ns, watch, out, err);
}

int frag_step_plan_make(const struct frag_trace_dev *dev, uint32_t train, double slack,
			uint64_t budget_ns, const struct frag_watch *watch,
			struct frag_step_plan *out, struct frag_err *err)
{
	struct maker m = { 0 };
	int rc;

	*out = (struct frag_step_plan){ 0 };
	rc = make(&m, dev, train, budget_ns, watch, out, err);
	if (slack < 0)
		slack = out->period ? 0 : SLACK;
	out->reserve_bytes =
		frag_round_up((uint64_t)((1 + slack) * (double)out->height_bytes), UNIT);
	frag_buffers_release(&m.b);
	frag_host_free(m.cut);
	frag_host_free(m.marks);
	frag_host_free(m.scratch);
	if (rc)
		frag_step_plan_release(out);
	return rc;
}

/* ---- the file -------------------------------------------------------------------- */

int frag_step_plan_write(const struct frag_step_plan *p, const char *comment, const char *path,
			 struct frag_err *err)
{
	struct frag_outfile out;
	size_t at = 0, planned = 0;

	for (size_t i = 0; i < p->requests_count; i++)
		planned += p->bytes[i] != 0;
	FRAG_TRY(frag_outfile_open(&out, path, err));
	fprintf(out.to,
		"cufrag-plan 1\n# %s\n"
		"reserve %" PRIu64 " prefix_marks %" PRIu32 " phase_marks %" PRIu32 " skip %" PRIu32
		" phases %" PRIu32 " requests %zu\n",
		comment, p->reserve_bytes, p->prefix_marks, p->phase_marks, p->skip, p->period + 1,
		planned);
	for (uint32_t k = 0; k <= p->period; k++) {
		size_t end = at + p->phases[k];

		planned = 0;
		for (size_t i = at; i < end; i++)
			planned += p->bytes[i] != 0;
		fprintf(out.to, "phase %zu\n", planned);
		for (; at < end; at++)
			if (p->bytes[at])
				fprintf(out.to, "%" PRIu64 " %" PRIu64 "\n", p->bytes[at],
					p->offsets[at]);
	}
	return frag_outfile_commit(&out, err);
}

void frag_step_plan_release(struct frag_step_plan *p)
{
	frag_host_free(p->phases);
	frag_host_free(p->bytes);
	frag_host_free(p->offsets);
	*p = (struct frag_step_plan){ 0 };
}
