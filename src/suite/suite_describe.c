/* SPDX-License-Identifier: Apache-2.0 */
/* What the workloads are like, and how far apart by size, lifetime and phase; see suite.h. */
#include "suite.h"

#include <math.h>
#include <string.h>

#include "base/term.h"

#define BINS 64u  /* powers of two: of sizes; of lifetimes in events, the last: never freed */
#define PARTS 64u /* of the events: how much is live, over the peak */
#define ALIKE 0.1 /* two workloads with all distances below it are too much alike */

struct shape_of {
	double sizes[BINS], lives[BINS], phases[PARTS]; /* parts of 1; 0 to 1 */
};

#define LIKE(F, P, S) \
	F(S, TEXT, workload, "workload", "its name") \
	F(S, TEXT, class, "class", "that it is one of", .spare = 5) \
	F(S, COUNT, events_count, "events", "that are replayed", .grouped = true) \
	F(S, COUNT, requests_count, NULL, "allocations among them") \
	F(S, BYTES, live_peak_bytes, "live peak", "largest sum of live requests", .unit = "mem", \
	  .spare = 6) \
	F(S, BYTES, size_p50_bytes, "size", "of the median request, a power of two", .spare = 2) \
	F(S, COUNT, life_p50_count, "life", \
	  "events until half of the blocks are freed, a power of two", .spare = 1) \
	F(S, COUNT, streams_count, "streams", "of the recording", .spare = 3) \
	F(S, TEXT, nearest, "nearest", "the workload that is most like it", .spare = 4) \
	F(S, REAL, size_distance, "by size", "part of the requests that would need another size", \
	  .precision = 2) \
	F(S, REAL, life_distance, "by life", "the same of lifetimes", .precision = 2) \
	F(S, REAL, phase_distance, "by phase", "mean difference of live over peak, over the run", \
	  .precision = 2) \
	F(S, TEXT, about, NULL, "what it stands for")
FRAG_ROW_AS(, frag_suite_like_shape, like_row, "suite_workload", LIKE, "a workload of the suite");

static void scale(double *bins, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += bins[i];
	for (size_t i = 0; i < count && sum > 0; i++)
		bins[i] /= sum;
}

static int look(const struct frag_suite_trace *t, struct shape_of *s, struct frag_err *err)
{
	const struct frag_trace_dev *dev = t->dev;
	FRAG_AUTO_FREE size_t *born = NULL; /* index + 1 of the alloc of a slot */
	uint64_t live = 0;

	*s = (struct shape_of){ 0 };
	FRAG_TRY_CALLOC(born, dev->slots_count + 1, "lifetimes", err);
	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];
		size_t part = i * PARTS / dev->events_count;

		if (e->kind == FRAG_EV_ALLOC) {
			live += e->bytes;
			s->sizes[frag_log2(FRAG_MAX(e->bytes, 1u))]++;
			born[e->slot] = i + 1;
		} else if (e->kind <= FRAG_EV_FREE_COMPLETED && born[e->slot]) {
			live -= FRAG_MIN(live, (uint64_t)e->bytes);
			s->lives[frag_log2(i + 2 - born[e->slot])]++;
			born[e->slot] = 0;
		}
		s->phases[part] = fmax(s->phases[part],
				       (double)live / (double)FRAG_MAX(t->live_peak_bytes, 1u));
	}
	for (uint32_t i = 0; i < dev->slots_count; i++)
		s->lives[BINS - 1] += born[i] != 0;
	scale(s->sizes, BINS);
	scale(s->lives, BINS);
	return 0;
}

/* 2 to the bin that holds the median. */
static uint64_t median_bin(const double *bins)
{
	double sum = 0;
	unsigned i = 0;

	while (i < BINS - 1 && (sum += bins[i]) < 0.5)
		i++;
	return 1ull << i;
}

/* Half of the sum of differences: of two histograms, the part that would have to move. */
static double distance(const double *x, const double *y, size_t count, double factor)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += fabs(x[i] - y[i]);
	return sum * factor;
}

/* In each row its nearest; alike ones are told. Returns how many pairs are. */
static size_t compare(struct like_row *rows, const struct shape_of *shapes, size_t count,
		      struct frag_answer *a)
{
	size_t alike = 0;

	for (size_t i = 0; i < count; i++) {
		double best = INFINITY;

		for (size_t k = 0; k < count; k++) {
			const struct shape_of *x = &shapes[i], *y = &shapes[k];
			double size = distance(x->sizes, y->sizes, BINS, 0.5),
			       life = distance(x->lives, y->lives, BINS, 0.5),
			       phase = distance(x->phases, y->phases, PARTS, 1.0 / PARTS),
			       most = fmax(size, fmax(life, phase));

			if (k > i && most < ALIKE) {
				alike++;
				frag_answer_warn(a,
						 "%s and %s are alike: below %.1f by size, life "
						 "and phase",
						 rows[i].workload, rows[k].workload, ALIKE);
			}
			if (k == i || most >= best)
				continue;
			best = most;
			rows[i].nearest = rows[k].workload;
			rows[i].size_distance = size;
			rows[i].life_distance = life;
			rows[i].phase_distance = phase;
		}
	}
	return alike;
}

static int fill(const struct frag_suite_manifest *m, const struct frag_target *target,
		struct like_row *rows, struct shape_of *shapes, struct frag_err *err)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;

	frag_progress_show(&progress, "reading the workloads");
	for (size_t i = 0; i < m->workloads_count; i++) {
		const struct frag_suite_workload *w = &m->workloads[i];
		FRAG_AUTO(frag_suite_trace_release) struct frag_suite_trace t = { 0 };

		frag_progress_update(&progress, i, m->workloads_count);
		FRAG_TRY(frag_suite_trace_open(m, w, target, &t, err));
		FRAG_TRY(look(&t, &shapes[i], err));
		rows[i] = (struct like_row){ .workload = w->name,
					     .class = w->class,
					     .about = w->about,
					     .events_count = t.dev->events_count,
					     .requests_count = t.requests,
					     .live_peak_bytes = t.live_peak_bytes,
					     .size_p50_bytes = median_bin(shapes[i].sizes),
					     .life_p50_count = median_bin(shapes[i].lives),
					     .streams_count = t.dev->streams_count,
					     .size_distance = NAN,
					     .life_distance = NAN,
					     .phase_distance = NAN };
	}
	return 0;
}

int frag_suite_describe(const struct frag_suite_manifest *m, const struct frag_target *target,
			struct frag_answer *a, struct frag_err *err)
{
	size_t n = m->workloads_count, alike;
	struct like_row *rows = frag_answer_new(a, n, sizeof(*rows));
	struct shape_of *shapes = frag_answer_new(a, n, sizeof(*shapes));
	struct frag_suite_data *data = frag_answer_new(a, 1, sizeof(*data));

	FRAG_CHECK_ALLOC(rows && shapes && data, "answer", err);
	FRAG_TRY(fill(m, target, rows, shapes, err));
	*data = (struct frag_suite_data){ .version = frag_answer_print(a, "%s", m->version),
					  .workloads = { rows, n } };
	a->title = "suite list";
	a->question = "Which workloads are there, and how far apart?";
	frag_answer_data(a, &frag_suite_shape, data);
	frag_answer_csv(a, &frag_suite_like_shape, rows, n);
	frag_answer_remark(a, "cufrag suite %s: %zu workloads in %zu classes", m->version, n,
			   m->classes_count);
	frag_answer_table(a, &frag_suite_like_shape, rows, n);
	for (size_t i = 0; i < m->classes_count; i++)
		frag_answer_item(a, "%s: %s", m->classes[i], m->abouts[i]);
	alike = compare(rows, shapes, n, a);
	if (alike)
		frag_answer_conclude(a, "%zu pairs of workloads are alike", alike);
	else
		frag_answer_conclude(a, "no two workloads are alike by size, lifetime and phase");
	return 0;
}
