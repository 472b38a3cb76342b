/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag plan: how low a trace could be placed with all knowledge, by several
 * methods, each placement checked; and a plan of its first steps for policy `planned`.
 */
#include <stdlib.h>
#include <string.h>

#include <frag/clock.h>

#include "plan_print.h"

#define SEARCH_MAX 5000u /* buffers: beyond that the search is hopeless, greedy is good */
#define MANY 20000u	 /* buffers: beyond that nothing slow is done for what is optimal already */
#define SEARCH_EASY \
	1000u /* up to here it nearly always finds something, and gets most of the time */
/* Improving the order: a fixed effort where a search follows, all the time where none does. */
#define IMPROVE_ROUNDS 200000u
#define IMPROVE_ROUNDS_SMALL 1000u

struct options {
	const char *output, *placement;
	uint64_t train, target, time_ns, align, nodes;
	uint64_t window_requests, window_us;
	double slack; /* negative = not given */
	bool at_request;
};

/* ---- methods --------------------------------------------------------------------- */

/* One piece of work after the other, each with its own line of progress. */
struct work {
	const struct frag_cli *cli;
	const struct options *o;
	struct frag_progress progress;
};

static const struct frag_watch *begin_work(struct work *w, const struct frag_plan_sheet *s,
					   const char *what)
{
	char label[160];

	snprintf(label, sizeof(label), "placing %.80s, %s", s->unit->label, what);
	frag_progress_begin(&w->progress, label);
	return &w->progress.watch;
}

/* Every placement is checked before it counts. */
static int note(struct frag_plan_sheet *s, const char *name, uint64_t height, uint64_t ns,
		struct frag_err *err)
{
	if (frag_place_check(&s->b, s->offsets, s->align, height, err))
		return frag_err_prefix(err, "placement by %s", name);
	s->methods[s->methods_count++] = (struct frag_plan_method){ name, height, ns };
	if (height < s->best) {
		s->best = height;
		memcpy(s->best_offsets, s->offsets, s->b.count * sizeof(*s->offsets));
	}
	return 0;
}

static int greedy(struct frag_plan_sheet *s, struct work *w, struct frag_err *err)
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
		uint64_t height, begin = frag_clock_ns();
		int rc;

		/* gaps are looked for among all pairs that live at the same time */
		if (rules[i].rule != FRAG_GAP_TOP && s->best <= s->target && s->b.count > MANY)
			continue;
		rc = frag_place_greedy(&s->b, rules[i].order, rules[i].rule,
				       begin_work(w, s, rules[i].name), s->offsets, &height, err);

		frag_progress_end(&w->progress);
		FRAG_TRY(rc);
		FRAG_TRY(note(s, rules[i].name, height, frag_clock_ns() - begin, err));
	}
	return 0;
}

static int improve(struct frag_plan_sheet *s, struct work *w, bool small, struct frag_err *err)
{
	bool easy = s->b.count <= SEARCH_EASY;
	uint64_t begin = frag_clock_ns(), most = w->o->time_ns, height;
	struct frag_improve_options opt = {
		.target_bytes = s->target,
		.watch = begin_work(w, s, "improved order"),
		.budget_ns = easy    ? most / 10
			     : small ? most / 2
				     : most,
		.rounds_max = easy ? IMPROVE_ROUNDS_SMALL : IMPROVE_ROUNDS,
	};
	int rc = frag_place_improve(&s->b, &opt, s->offsets, &height, err);

	frag_progress_end(&w->progress);
	return rc ? rc : note(s, "improved order", height, frag_clock_ns() - begin, err);
}

static int search(struct frag_plan_sheet *s, struct work *w, uint64_t spent_ns,
		  struct frag_err *err)
{
	struct frag_search_options opt = {
		.target_bytes = s->target,
		.budget_ns = w->o->time_ns - FRAG_MIN(w->o->time_ns, spent_ns),
		.nodes_max = w->o->nodes,
		.seed = w->cli->target.seed,
		.threads = w->cli->threads,
		.watch = begin_work(w, s, "branch and bound"),
	};
	uint64_t begin = frag_clock_ns(), height = s->best;
	int rc;

	memcpy(s->offsets, s->best_offsets, s->b.count * sizeof(*s->offsets));
	rc = frag_place_search(&s->b, &opt, s->offsets, &height, &s->answer, &s->nodes, err);
	frag_progress_end(&w->progress);
	s->searched = !rc;
	return rc ? rc : note(s, "branch and bound", height, frag_clock_ns() - begin, err);
}

/* Greedy placements, then (while the target is not reached) a better order, and for small traces
 * the search. */
static int place(struct frag_plan_sheet *s, struct work *w, struct frag_err *err)
{
	bool small = s->b.count <= SEARCH_MAX;
	uint64_t begin;

	FRAG_TRY(greedy(s, w, err));
	begin = frag_clock_ns();
	if (s->best > s->target)
		FRAG_TRY(improve(s, w, small, err));
	if (s->best > s->target && small && !frag_interrupted())
		FRAG_TRY(search(s, w, frag_clock_ns() - begin, err));
	return 0;
}

static int sheet_init(struct frag_plan_sheet *s, const struct frag_unit *unit,
		      const struct options *o, struct frag_err *err)
{
	/* the sizes of MiniMalloc's files are in units of their own */
	bool bare = !strcmp(unit->trace->format, "minimalloc");

	*s = (struct frag_plan_sheet){ .unit = unit, .best = UINT64_MAX };
	s->align = o->align ? o->align : bare ? 1 : 512;
	FRAG_TRY(frag_buffers_init(&s->b, unit->dev, s->align, o->at_request, err));
	FRAG_TRY_CALLOC(s->offsets, 2 * s->b.count + 1, "plan", err);
	s->best_offsets = s->offsets + s->b.count;
	FRAG_TRY(frag_load_bound(&s->b, &s->bound, &s->when, err));
	s->target = FRAG_MAX(o->target, s->bound);
	return 0;
}

static void sheet_release(struct frag_plan_sheet *s)
{
	frag_buffers_release(&s->b);
	frag_host_free(s->offsets);
	frag_step_plan_release(&s->steps);
}

static int plan_steps(struct frag_plan_sheet *s, struct work *w, struct frag_err *err)
{
	const struct options *o = w->o;
	const struct frag_step_options opt = { .train = (uint32_t)o->train,
					       .slack = o->slack,
					       .budget_ns = o->time_ns,
					       .window_requests = o->window_requests,
					       .window_us = o->window_us,
					       .watch = begin_work(w, s, "the plan") };
	int rc = frag_step_plan_make_with(s->unit->dev, &opt, &s->steps, err);
	char comment[200];

	frag_progress_end(&w->progress);
	FRAG_TRY(rc);
	if (frag_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted"); /* a worse plan is none */
	snprintf(comment, sizeof(comment), "%.100s, %u of %u %s, period %u", s->unit->label,
		 s->steps.trained_count, s->steps.steps_count,
		 s->steps.windows ? "windows" : "steps", s->steps.period);
	return frag_step_plan_write(&s->steps, comment, o->output, err);
}

/* An interruption is no error here: what is in the sheet was checked. */
static int do_unit(struct frag_plan_sheet *s, struct work *w, struct frag_err *err)
{
	int rc = place(s, w, err);

	if (s->methods_count && w->o->placement && (!rc || rc == FRAG_EINTR))
		FRAG_TRY(frag_plan_write_placement(s, w->o->placement, err));
	if (!rc && w->o->output && !frag_interrupted())
		rc = plan_steps(s, w, err);
	s->complete = !rc && !frag_interrupted();
	return rc == FRAG_EINTR ? 0 : rc;
}

/* ---- the command ----------------------------------------------------------------- */

static int do_units(const struct frag_recordings *units, struct work *w,
		    struct frag_plan_sheet *sheets, struct frag_err *err)
{
	size_t done = 0, complete = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < units->units_count && !frag_interrupted(); i++) {
		rc = sheet_init(&sheets[i], &units->units[i], w->o, err)
			     ?: do_unit(&sheets[i], w, err);
		done++;
		complete += !rc && sheets[i].complete;
	}
	if (!rc)
		rc = frag_plan_print(w->cli, units, w->o->output, sheets, done,
				     complete == units->units_count, err);
	if (!rc && complete < units->units_count)
		rc = frag_fail(err, FRAG_EINTR, "interrupted: %zu of %zu devices are complete",
			       complete, units->units_count);
	for (size_t i = 0; i < done; i++)
		sheet_release(&sheets[i]);
	return rc;
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct options *o = values;
	struct work w = { .cli = cli, .o = o };
	FRAG_AUTO_FREE struct frag_plan_sheet *sheets = NULL;
	FRAG_AUTO(frag_recordings_release) struct frag_recordings units = { 0 };

	FRAG_TRY(frag_recordings_open(&units, cli->operands, cli->operands_count, &cli->target, 0,
				      err));
	FRAG_TRY_CALLOC(sheets, units.units_count, "plan", err);
	if ((o->output || o->placement) && units.units_count != 1)
		return frag_fail(err, FRAG_EUSAGE,
				 "a plan is made for one device, here are %zu; take one out with "
				 "cufrag import --device N",
				 units.units_count);
	return do_units(&units, &w, sheets, err);
}

static int set_time(void *ns, const char *arg, struct frag_err *err)
{
	char *end;
	double seconds = strtod(arg, &end);

	if (end == arg || *end || !(seconds > 0 && seconds <= 86400))
		return frag_fail(err, FRAG_EUSAGE, "'%.40s' is no time in seconds, as 5 or 0.5",
				 arg);
	*(uint64_t *)ns = (uint64_t)(seconds * 1e9);
	return 0;
}

static int set_slack(void *field, const char *arg, struct frag_err *err)
{
	double *slack = field;
	char *end;

	*slack = strtod(arg, &end) / 100;
	if (end == arg || *end || !(*slack >= 0 && *slack <= 10))
		return frag_fail(err, FRAG_EUSAGE, "'%.40s' is no slack in percent, as 5", arg);
	return 0;
}

/* "1000" requests, or a time as "250ms". */
static int set_window(void *whole, const char *arg, struct frag_err *err)
{
	static const struct {
		const char *name;
		double us;
	} units[] = { { "", 0 }, { "us", 1 }, { "ms", 1e3 }, { "s", 1e6 } };
	struct options *o = whole;
	char *end;
	double n = strtod(arg, &end);

	o->window_requests = o->window_us = 0;
	for (size_t i = 0; end != arg && i < FRAG_ARRAY_LEN(units); i++) {
		if (strcmp(end, units[i].name) != 0 || !(n >= 1e-6 && n <= 1e12))
			continue;
		if (units[i].us > 0)
			o->window_us = (uint64_t)(n * units[i].us);
		else if (n == (double)(uint64_t)n)
			o->window_requests = (uint64_t)n;
	}
	if (o->window_requests || o->window_us)
		return 0;
	return frag_fail(err, FRAG_EUSAGE,
			 "'%.40s' is no window: a number of requests, as 1000, or a time, as 250ms",
			 arg);
}

#define AT(field) FRAG_ARG_AT(struct options, field)

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "output", 'o', AT(output), .value = "FILE", .file = FRAG_ARG_WRITES,
	  .help = "write a plan of the steps for --policy planned:plan=FILE" },
	{ FRAG_ARG_UINT, "train", AT(train), .value = "N", .min = 1, .max = 1000000,
	  .help = "steps that the plan may look at (default: half of them)" },
	{ FRAG_ARG_OWN, "window", .set = set_window, .value = "N|TIME",
	  .help = "plan windows of N requests, or of a time as 250ms, instead of steps (default "
		  "for "
		  "a trace that marks fewer than three steps: 16 of equally many requests)" },
	{ FRAG_ARG_OWN, "slack", AT(slack), .set = set_slack, .value = "PERCENT",
	  .help = "room above the plan for requests that are not in it (default: 0 where steps "
		  "repeat, else 4)" },
	{ FRAG_ARG_BYTES, "target", AT(target), .value = "SIZE",
	  .help = "a height that is good enough (default: the lower bound)" },
	{ FRAG_ARG_OWN, "time", AT(time_ns), .set = set_time, .value = "SECONDS", .def = "10",
	  .help = "most that improving and searching may take" },
	{ FRAG_ARG_UINT, "nodes", AT(nodes), .value = "N", .min = 1, .max = 1ull << 60,
	  .help = "end the search after about N decisions: the same on any machine, if --time "
		  "suffices" },
	{ FRAG_ARG_TEXT, "placement", AT(placement), .value = "FILE", .file = FRAG_ARG_WRITES,
	  .help = "write the lowest placement: MiniMalloc's CSV with a column offset; moments are "
		  "events" },
	{ FRAG_ARG_BYTES, "align", AT(align), .value = "SIZE", .min = 1, .max = FRAG_GIB,
	  .help = "sizes and offsets are multiples of this (default: 512; 1 for MiniMalloc's "
		  "files)" },
	{ FRAG_ARG_FLAG, "at-request", AT(at_request),
	  .help = "a block ends when its free was requested, not when all streams were done" },
	{ 0 },
};

static void init(void *values)
{
	((struct options *)values)->slack = -1;
}

const struct frag_cmd frag_cmd_plan = {
	.name = "plan",
	.summary = "the lowest placement with all knowledge, and plans for policy planned",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 5,
	.operands = "TRACE...",
	.operands_min = 1,
	.operands_max = 4096,
	.about = "Prints the load lower bound (no allocator can reserve less) and how near to it "
		 "placements come that know all lives in advance: greedy ones, an improved order, "
		 "and for small traces a branch and bound. Every placement is checked by an "
		 "independent sweep. With -o, the first steps become a plan that policy 'planned' "
		 "follows.",
	.examples = "  cufrag plan traces/varlen.default.cft\n"
		    "  cufrag plan buffers.csv --target 1048576 --time 60\n"
		    "  cufrag plan run.pickle -o run.plan\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_JSON | FRAG_CLI_CSV | FRAG_CLI_SEED |
		  FRAG_CLI_THREADS,
	.options = FRAG_CMD_OPTIONS(options),
	.options_size = sizeof(struct options),
	.init = init,
	.run = run,
};
