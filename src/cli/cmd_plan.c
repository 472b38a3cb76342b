/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag plan: how low a trace could be placed if all were known; plans for policy `planned`. */
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "plan/placing.h"

/* ---- values of options ----------------------------------------------------------- */

/* "1000" requests, or a time as "250ms". */
static int set_window(void *whole, const char *arg, struct frag_err *err)
{
	static const struct {
		const char *name;
		double us;
	} units[] = { { "", 0 }, { "us", 1 }, { "ms", 1e3 }, { "s", 1e6 } };
	struct frag_step_options *o = &((struct frag_placing_options *)whole)->steps;
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
	return FRAG_USAGE(err,
			  "invalid window '%.40s': expected a number of requests, as 1000, or a "
			  "time, as 250ms",
			  arg);
}

/* ---- the command ----------------------------------------------------------------- */

#define AT(field) FRAG_ARG_AT(struct frag_placing_options, field)

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "output", 'o', AT(plan), .value = "FILE", .file = FRAG_ARG_WRITES,
	  .help = "write a plan of the steps for --policy planned:plan=FILE" },
	{ FRAG_ARG_UINT, "train", AT(steps.train), .value = "N", .min = 1, .max = 1000000,
	  .help = "steps that the plan may look at (default: half of them)" },
	{ FRAG_ARG_OWN, "window", .set = set_window, .value = "N|TIME",
	  .help = "plan windows of N requests, or of a time as 250ms, instead of steps (default "
		  "for a trace that marks fewer than three steps: 16 of equally many requests)" },
	{ FRAG_ARG_REAL, "slack", AT(steps.slack), .value = "PERCENT", .fmax = 1000, .rare = true,
	  .help = "room above the plan for requests that are not in it (default: 0 where steps "
		  "repeat, else 4)" },
	{ FRAG_ARG_BYTES, "target", AT(target), .value = "SIZE",
	  .help = "a height that is good enough (default: the lower bound)" },
	{ FRAG_ARG_REAL, "time", AT(time_s), .value = "SECONDS", .fmin = 1e-3, .fmax = 86400,
	  .def = "10", .rare = true, .help = "most that improving and searching may take" },
	{ FRAG_ARG_UINT, "nodes", AT(nodes), .value = "N", .min = 1, .max = 1ull << 60,
	  .rare = true,
	  .help = "end the search after about N decisions: the same on any machine, if --time "
		  "suffices" },
	{ FRAG_ARG_TEXT, "placement", AT(placement), .value = "FILE", .file = FRAG_ARG_WRITES,
	  .help = "write the lowest placement: MiniMalloc's CSV with a column offset; moments are "
		  "events" },
	{ FRAG_ARG_BYTES, "align", AT(align), .value = "SIZE", .min = 1, .max = FRAG_GIB,
	  .rare = true,
	  .help = "sizes and offsets are multiples of this (default: 512; 1 for MiniMalloc's "
		  "files)" },
	{ FRAG_ARG_FLAG, "at-request", AT(at_request), .rare = true,
	  .help = "a block ends when its free was requested, not when all streams were done" },
	{ 0 },
};

static void init(void *values)
{
	((struct frag_placing_options *)values)->steps.slack = -1;
}

static int place_all(struct frag_placing *list, const struct frag_recordings *units,
		     const struct frag_placing_options *o, struct frag_cli *cli,
		     struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	size_t begun = 0, complete = 0;

	while (begun < units->units_count && !frag_interrupted()) {
		FRAG_TRY(frag_placing_run(&list[begun], &units->units[begun], o, err));
		complete += list[begun++].complete;
	}
	FRAG_TRY(frag_placing_answer(list, begun, units, &cli->target, o, &a, err));
	FRAG_TRY(frag_cli_show_answer(cli, &a, err));
	if (complete < units->units_count)
		return frag_fail(err, FRAG_EINTR, "interrupted: %zu of %zu devices are complete",
				 complete, units->units_count);
	return 0;
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	struct frag_placing_options *o = values;
	FRAG_AUTO(frag_recordings_release) struct frag_recordings units = { 0 };
	FRAG_AUTO_FREE struct frag_placing *list = NULL;
	int rc;

	if (o->steps.slack > 0)
		o->steps.slack /= 100;
	o->seed = cli->target.seed;
	FRAG_TRY(frag_recordings_open(&units, cli->operands, cli->operands_count, &cli->target,
				      FRAG_OPEN_HISTORY, err));
	FRAG_TRY_CALLOC(list, units.units_count, "plan", err);
	if ((o->plan || o->placement) && units.units_count != 1)
		return FRAG_USAGE(err,
				  "--output and --placement handle one device, the traces have "
				  "%zu; extract one with cufrag import --device N",
				  units.units_count);
	rc = place_all(list, &units, o, cli, err);
	for (size_t i = 0; i < units.units_count; i++)
		frag_placing_release(&list[i]);
	return rc;
}

const struct frag_cmd frag_cmd_plan = {
	.name = "plan",
	.summary = "how low memory could go if all requests were known, and plans for policy "
		   "planned",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 5,
	.operands = "TRACE...",
	.operands_max = 4096,
	.about =
		"Prints the load lower bound (no allocator can reserve less) and how close offline "
		"placements come, which know all lifetimes in advance: greedy ones, an improved "
		"order, and for small traces branch and bound. An independent sweep checks every "
		"placement. With -o, the first steps become a plan that policy 'planned' follows.",
	.examples = "  cufrag plan run.pickle\n"
		    "  cufrag plan buffers.csv --target 1048576 --time 60\n"
		    "  cufrag plan run.pickle -o run.plan\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_PAGE,
	.answer = &frag_plan_shape,
	FRAG_CMD_OPTIONS(struct frag_placing_options, options),
	.init = init,
	.run = run,
};
