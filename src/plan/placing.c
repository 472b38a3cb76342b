/* SPDX-License-Identifier: Apache-2.0 */
/* Placements of one device by several methods; see placing.h. */
#include "placing.h"

#include <stdio.h>
#include <string.h>

#include <frag/clock.h>

#include "base/interrupt.h"
#include "base/outfile.h"
#include "base/term.h"

#define SEARCH_MAX 5000u /* buffers: beyond that the search is hopeless, greedy is good */
#define MANY 20000u	 /* buffers: beyond that nothing slow is done for what is optimal already */
#define SEARCH_EASY \
	1000u /* up to here it nearly always finds something, and gets most of the time */
/* Improving the order: a fixed effort where a search follows, all the time where none does. */
#define IMPROVE_ROUNDS 200000u
#define IMPROVE_ROUNDS_SMALL 1000u

/* A piece of work, with its own line of progress. */
static const struct frag_watch *begin(struct frag_progress *progress, const struct frag_placing *p,
				      const char *what)
{
	char label[160];

	snprintf(label, sizeof(label), "placing %.80s, %s", p->unit->label, what);
	frag_progress_begin(progress, label);
	return &progress->watch;
}

static uint64_t budget_ns(const struct frag_placing_options *o)
{
	return (uint64_t)(o->time_s * 1e9);
}

/* Every placement is checked before it counts. */
static int note(struct frag_placing *p, const char *name, uint64_t height, uint64_t ns,
		struct frag_err *err)
{
	if (frag_place_check(&p->b, p->offsets, p->align, height, err))
		return frag_err_prefix(err, "placement by %s", name);
	p->methods[p->methods_count++] = (struct frag_placing_method){ name, height, ns };
	if (height < p->best) {
		p->best = height;
		memcpy(p->best_offsets, p->offsets, p->b.count * sizeof(*p->offsets));
	}
	return 0;
}

static int greedy(struct frag_placing *p, struct frag_err *err)
{
	static const struct {
		const char *name;
		enum frag_order order;
		enum frag_gap_rule rule;
	} rules[] = {
		{ "by size, on top (TVM)", FRAG_ORDER_SIZE, FRAG_GAP_TOP },
		{ "by conflicts, on top (TVM)", FRAG_ORDER_CONFLICTS, FRAG_GAP_TOP },
		{ "by size, smallest gap (TFLite)", FRAG_ORDER_SIZE, FRAG_GAP_BEST },
		{ "by life, lowest gap", FRAG_ORDER_LIFE, FRAG_GAP_LOWEST },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rules); i++) {
		FRAG_AUTO(frag_progress_end) struct frag_progress progress;
		uint64_t height, start = frag_clock_ns();
		const struct frag_watch *watch = begin(&progress, p, rules[i].name);

		/* gaps are looked for among all pairs that live at the same time */
		if (rules[i].rule != FRAG_GAP_TOP && p->best <= p->target && p->b.count > MANY)
			continue;
		FRAG_TRY(frag_place_greedy(&p->b, rules[i].order, rules[i].rule, watch, p->offsets,
					   &height, err));
		FRAG_TRY(note(p, rules[i].name, height, frag_clock_ns() - start, err));
	}
	return 0;
}

static int improve(struct frag_placing *p, const struct frag_placing_options *o, bool small,
		   struct frag_err *err)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;
	bool easy = p->b.count <= SEARCH_EASY;
	uint64_t start = frag_clock_ns(), height;
	struct frag_improve_options opt = {
		.target_bytes = p->target,
		.watch = begin(&progress, p, "improved order"),
		.budget_ns = budget_ns(o) / (easy    ? 10
					     : small ? 2
						     : 1),
		.rounds_max = easy ? IMPROVE_ROUNDS_SMALL : IMPROVE_ROUNDS,
	};

	FRAG_TRY(frag_place_improve(&p->b, &opt, p->offsets, &height, err));
	return note(p, "improved order", height, frag_clock_ns() - start, err);
}

static int search(struct frag_placing *p, const struct frag_placing_options *o, uint64_t spent_ns,
		  struct frag_err *err)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;
	struct frag_search_options opt = {
		.target_bytes = p->target,
		.budget_ns = budget_ns(o) - FRAG_MIN(budget_ns(o), spent_ns),
		.nodes_max = o->nodes,
		.seed = o->seed,
		.watch = begin(&progress, p, "branch and bound"),
	};
	uint64_t start = frag_clock_ns(), height = p->best;

	memcpy(p->offsets, p->best_offsets, p->b.count * sizeof(*p->offsets));
	FRAG_TRY(frag_place_search(&p->b, &opt, p->offsets, &height, &p->answer, &p->nodes, err));
	p->searched = true;
	return note(p, "branch and bound", height, frag_clock_ns() - start, err);
}

static int init(struct frag_placing *p, const struct frag_unit *unit,
		const struct frag_placing_options *o, struct frag_err *err)
{
	/* the sizes of MiniMalloc's files are in units of their own */
	bool bare = !strcmp(unit->trace->format, "minimalloc");

	*p = (struct frag_placing){ .unit = unit, .best = UINT64_MAX };
	p->align = o->align ? o->align : bare ? 1 : 512;
	FRAG_TRY(frag_buffers_init(&p->b, unit->dev, p->align, o->at_request, err));
	FRAG_TRY_CALLOC(p->offsets, 2 * p->b.count + 1, "plan", err);
	p->best_offsets = p->offsets + p->b.count;
	FRAG_TRY(frag_load_bound(&p->b, &p->bound, &p->when, err));
	p->target = FRAG_MAX(o->target, p->bound);
	return 0;
}

void frag_placing_release(struct frag_placing *p)
{
	frag_buffers_release(&p->b);
	frag_host_free(p->offsets);
	frag_step_plan_release(&p->steps);
}

static int plan_steps(struct frag_placing *p, const struct frag_placing_options *o,
		      struct frag_err *err)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;
	struct frag_step_options opt = o->steps;
	char comment[200];

	opt.budget_ns = budget_ns(o);
	opt.watch = begin(&progress, p, "the plan");
	FRAG_TRY(frag_step_plan_make(p->unit->dev, &opt, &p->steps, err));
	if (frag_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted"); /* a worse plan is none */
	snprintf(comment, sizeof(comment), "%.100s, %u of %u %s, period %u", p->unit->label,
		 p->steps.trained_count, p->steps.steps_count,
		 p->steps.windows ? "windows" : "steps", p->steps.period);
	return frag_step_plan_write(&p->steps, comment, o->plan, err);
}

/* The lowest placement as CSV. Complete or not at all. */
static int write_placement(const struct frag_placing *p, const char *path, struct frag_err *err)
{
	struct frag_outfile out;

	FRAG_TRY(frag_outfile_open(&out, path, err));
	fputs("id,lower,upper,size,offset\n", out.to);
	for (size_t i = 0; i < p->b.count; i++) {
		const struct frag_buffer *x = &p->b.list[i];

		fprintf(out.to, "%zu,%llu,%llu,%llu,%llu\n", i, (unsigned long long)x->lower,
			(unsigned long long)x->upper, (unsigned long long)x->bytes,
			(unsigned long long)p->best_offsets[i]);
	}
	return frag_outfile_commit(&out, err);
}

int frag_placing_run(struct frag_placing *p, const struct frag_unit *unit,
		     const struct frag_placing_options *o, struct frag_err *err)
{
	uint64_t start;
	bool small;
	int rc;

	FRAG_TRY(init(p, unit, o, err));
	small = p->b.count <= SEARCH_MAX;
	/* greedy placements, then up to the target a better order, and for small traces a search */
	rc = greedy(p, err);
	start = frag_clock_ns();
	if (!rc && p->best > p->target)
		rc = improve(p, o, small, err);
	if (!rc && p->best > p->target && small && !frag_interrupted())
		rc = search(p, o, frag_clock_ns() - start, err);
	if (p->methods_count && o->placement && (!rc || rc == FRAG_EINTR))
		FRAG_TRY(write_placement(p, o->placement, err));
	if (!rc && o->plan && !frag_interrupted())
		rc = plan_steps(p, o, err);
	p->complete = !rc && !frag_interrupted();
	return rc == FRAG_EINTR ? 0 : rc;
}
