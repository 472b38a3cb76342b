/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag plan: how low a trace could be placed with all knowledge, by several
 * methods, each placement checked; and a plan of its first steps for policy `planned`.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <frag/opt.h>

#include "../report/table.h"
#include "planning.h"

#define SEARCH_MAX 5000u /* buffers: beyond that the search is hopeless, greedy is good */
#define IMPROVE_ROUNDS 200000u
#define METHODS_MAX 8

struct options {
	const char *output;
	uint64_t train, target, time_ns, align;
	double slack; /* negative = not given */
	bool at_request;
};

struct method {
	const char *name;
	uint64_t height, ns;
};

/* One device of one trace. */
struct sheet {
	const struct frag_unit *unit;
	struct frag_buffers b;
	uint64_t align, bound, when, target, best;
	uint64_t *offsets, *best_offsets;
	struct method methods[METHODS_MAX];
	size_t methods_count;
	enum frag_search_answer answer;
	bool searched, complete;
	uint64_t nodes;
	struct frag_step_plan steps;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- methods --------------------------------------------------------------------- */

/* Every placement is checked before it counts. */
static int note(struct sheet *s, const char *name, uint64_t height, uint64_t ns,
		struct frag_err *err)
{
	if (frag_place_check(&s->b, s->offsets, s->align, height, err))
		return frag_err_prefix(err, "placement by %s", name);
	s->methods[s->methods_count++] = (struct method){ name, height, ns };
	if (height < s->best) {
		s->best = height;
		memcpy(s->best_offsets, s->offsets, s->b.count * sizeof(*s->offsets));
	}
	return 0;
}

static int greedy(struct sheet *s, const struct frag_watch *watch, struct frag_err *err)
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
		uint64_t height, begin = now_ns();

		FRAG_TRY(frag_place_greedy(&s->b, rules[i].order, rules[i].rule, watch, s->offsets,
					   &height, err));
		FRAG_TRY(note(s, rules[i].name, height, now_ns() - begin, err));
	}
	return 0;
}

/* The order is improved in a tenth of the time, then (small ones) searched in the rest. */
static int improve(struct sheet *s, const struct options *o, unsigned threads,
		   const struct frag_watch *watch, struct frag_err *err)
{
	bool small = s->b.count <= SEARCH_MAX;
	struct frag_improve_options improve = { .target_bytes = s->target,
						.watch = watch,
						.budget_ns = small ? o->time_ns / 10 : o->time_ns,
						.rounds_max = IMPROVE_ROUNDS };
	struct frag_search_options search = { .target_bytes = s->target,
					      .threads = threads,
					      .watch = watch };
	uint64_t begin = now_ns(), height;

	if (s->best > s->target) {
		FRAG_TRY(frag_place_improve(&s->b, &improve, s->offsets, &height, err));
		FRAG_TRY(note(s, "improved order", height, now_ns() - begin, err));
	}
	if (s->best <= s->target || !small || frag_interrupted())
		return 0;
	memcpy(s->offsets, s->best_offsets, s->b.count * sizeof(*s->offsets));
	search.budget_ns = o->time_ns - FRAG_MIN(o->time_ns, now_ns() - begin);
	height = s->best;
	begin = now_ns();
	FRAG_TRY(
		frag_place_search(&s->b, &search, s->offsets, &height, &s->answer, &s->nodes, err));
	s->searched = true;
	return note(s, "branch and bound", height, now_ns() - begin, err);
}

static int sheet_init(struct sheet *s, const struct frag_unit *unit, const struct options *o,
		      struct frag_err *err)
{
	/* the sizes of MiniMalloc's files are in units of their own */
	bool bare = !strcmp(unit->trace->format, "minimalloc");

	*s = (struct sheet){ .unit = unit, .best = UINT64_MAX };
	s->align = o->align ? o->align : bare ? 1 : 512;
	FRAG_TRY(frag_buffers_init(&s->b, unit->dev, s->align, o->at_request, err));
	s->offsets = frag_host_calloc(2 * s->b.count + 1, sizeof(*s->offsets));
	if (!s->offsets)
		return frag_fail_nomem(err, "plan");
	s->best_offsets = s->offsets + s->b.count;
	FRAG_TRY(frag_load_bound(&s->b, &s->bound, &s->when, err));
	s->target = FRAG_MAX(o->target, s->bound);
	return 0;
}

static void sheet_release(struct sheet *s)
{
	frag_buffers_release(&s->b);
	frag_host_free(s->offsets);
	frag_step_plan_release(&s->steps);
}

static int do_unit(struct sheet *s, const struct options *o, const struct frag_cli *cli,
		   const struct frag_watch *watch, struct frag_err *err)
{
	char comment[200];
	int rc = greedy(s, watch, err);

	if (!rc)
		rc = improve(s, o, cli->threads, watch, err);
	s->complete = !frag_interrupted();
	if (rc == FRAG_EINTR)
		rc = 0;
	if (rc || !s->complete || !o->output)
		return rc;
	FRAG_TRY(frag_step_plan_make(s->unit->dev, (uint32_t)o->train, o->slack, o->time_ns, watch,
				     &s->steps, err));
	snprintf(comment, sizeof(comment), "%.100s, %u of %u steps, period %u", s->unit->label,
		 s->steps.trained_count, s->steps.steps_count, s->steps.period);
	return frag_step_plan_write(&s->steps, comment, o->output, err);
}

/* ---- output ---------------------------------------------------------------------- */

static double over(uint64_t height, uint64_t bound)
{
	return bound ? (double)height / (double)bound : 1;
}

static void print_steps(const struct sheet *s, const struct options *o, struct frag_text *out)
{
	const struct frag_step_plan *p = &s->steps;

	frag_text_addf(out, "\nplan of %u of %u steps: ", p->trained_count, p->steps_count);
	if (p->period)
		frag_text_addf(out, "period %u, %.1f %% of a step is in an earlier one; ",
			       p->period, 100 * p->similarity);
	else
		frag_text_addf(out,
			       "they do not repeat (%.1f %% of a step is in an earlier one), so "
			       "it is of the beginning only; ",
			       100 * p->similarity);
	frag_text_addf(out, "%zu requests in ", p->requests_count);
	frag_text_add_bytes(out, p->height_bytes);
	frag_text_addf(out,
		       " (%.4f of their load)\n    cufrag replay TRACE --policy planned:plan=%s\n",
		       over(p->height_bytes, p->bound_bytes), o->output);
}

static void print_sheet(const struct sheet *s, const struct options *o, struct frag_text *out)
{
	static const struct frag_table_column columns[] = {
		{ "placement", "", true, "" }, { "height", "", false, "" },
		{ "bytes", "", false, "" },    { "of the bound", "", false, "" },
		{ "time", "", false, "" },
	};
	struct frag_table t = { 0 };
	char size[32];

	frag_text_addf(out, "# cufrag %s plan: %s, %zu buffers, aligned to %llu\n", FRAG_VERSION,
		       s->unit->label, s->b.count, (unsigned long long)s->align);
	frag_text_addf(out, "load lower bound: %llu (%s), first at event %llu\n\n",
		       (unsigned long long)s->bound,
		       frag_format_bytes(s->bound, size, sizeof(size)),
		       (unsigned long long)s->when);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(columns); i++)
		frag_table_column(&t, &columns[i]);
	for (size_t i = 0; i < s->methods_count; i++) {
		const struct method *m = &s->methods[i];
		struct frag_text time = { 0 };

		frag_text_add_ns(&time, m->ns);
		frag_table_cell(&t, "%s", m->name);
		frag_table_cell(&t, "%s", frag_format_bytes(m->height, size, sizeof(size)));
		frag_table_cell(&t, "%llu", (unsigned long long)m->height);
		frag_table_cell(&t, "%.5f", over(m->height, s->bound));
		frag_table_cell(&t, "%s", frag_text_str(&time));
		frag_text_release(&time);
	}
	frag_table_print(&t, out);
	frag_table_release(&t);
	frag_text_addf(out, "\nbest: %llu, %.5f of the bound; every placement was checked\n",
		       (unsigned long long)s->best, over(s->best, s->bound));
	if (s->best <= s->bound)
		frag_text_add(out, "optimal: no placement is lower than the load\n");
	else if (s->searched && s->answer == FRAG_SEARCH_NONE)
		frag_text_addf(out, "proved: no placement is as low as %llu\n",
			       (unsigned long long)s->target);
	if (s->steps.requests_count)
		print_steps(s, o, out);
}

static json_t *sheet_json(const struct sheet *s)
{
	json_t *methods = json_array(), *o;

	for (size_t i = 0; i < s->methods_count; i++)
		json_array_append_new(
			methods, json_pack("{s:s, s:I, s:f, s:I}", "method", s->methods[i].name,
					   "height_bytes", (json_int_t)s->methods[i].height,
					   "over_bound_ratio", over(s->methods[i].height, s->bound),
					   "host_ns", (json_int_t)s->methods[i].ns));
	o = json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:b, s:b, s:o}", "trace",
		      s->unit->trace->name, "device_ordinal", (int)s->unit->dev->ordinal,
		      "buffers_count", (json_int_t)s->b.count, "align_bytes", (json_int_t)s->align,
		      "lower_bound_bytes", (json_int_t)s->bound, "bound_event", (json_int_t)s->when,
		      "target_bytes", (json_int_t)s->target, "best_bytes", (json_int_t)s->best,
		      "over_bound_ratio", over(s->best, s->bound), "checked", true, "complete",
		      s->complete, "proved_optimal", s->best <= s->bound, "methods", methods);
	if (s->steps.requests_count)
		json_object_set_new(
			o, "plan",
			json_pack("{s:i, s:i, s:i, s:f, s:I, s:I, s:I}", "steps_count",
				  (int)s->steps.steps_count, "trained_count",
				  (int)s->steps.trained_count, "period", (int)s->steps.period,
				  "similarity_ratio", s->steps.similarity, "requests_count",
				  (json_int_t)s->steps.requests_count, "height_bytes",
				  (json_int_t)s->steps.height_bytes, "lower_bound_bytes",
				  (json_int_t)s->steps.bound_bytes));
	return o;
}

static int print(const struct frag_cli *cli, const struct options *o, const struct sheet *sheets,
		 size_t count, struct frag_err *err)
{
	struct frag_text out = { 0 };
	int rc = 0;

	if (cli->json) {
		json_t *root = frag_cli_json_head(cli), *results = json_array();

		for (size_t i = 0; i < count; i++)
			json_array_append_new(results, sheet_json(&sheets[i]));
		json_object_set_new(root, "results", results);
		FRAG_TRY(frag_cli_json_write(cli, root, err));
		if (!strcmp(cli->json, "-"))
			return 0;
	}
	for (size_t i = 0; i < count; i++) {
		if (i)
			frag_text_add(&out, "\n");
		print_sheet(&sheets[i], o, &out);
	}
	rc = frag_text_check(&out, err);
	if (!rc)
		fputs(frag_text_str(&out), stdout);
	frag_text_release(&out);
	return rc;
}

/* ---- the command ----------------------------------------------------------------- */

static int plan(const struct frag_cli *cli, const struct options *o, struct frag_err *err)
{
	struct frag_units units;
	struct sheet *sheets;
	size_t done = 0, begun = 0;
	int rc = 0;

	FRAG_TRY(frag_units_read(&units, cli, err));
	if (o->output && units.count != 1)
		rc = frag_fail(err, FRAG_EUSAGE, "a plan is made for one device, here are %zu",
			       units.count);
	sheets = frag_host_calloc(units.count, sizeof(*sheets));
	if (!rc && !sheets)
		rc = frag_fail_nomem(err, "plan");
	for (size_t i = 0; !rc && i < units.count && !frag_interrupted(); i++) {
		struct frag_watch watch;
		struct frag_eta eta;
		char label[128];

		snprintf(label, sizeof(label), "placing %.80s", units.list[i].label);
		frag_eta_begin(&eta, label, &watch);
		begun++;
		rc = sheet_init(&sheets[i], &units.list[i], o, err);
		if (!rc)
			rc = do_unit(&sheets[i], o, cli, &watch, err);
		frag_eta_end(&eta);
		done += !rc && sheets[i].methods_count;
	}
	if (!rc)
		rc = print(cli, o, sheets, done, err);
	if (!rc && frag_interrupted())
		rc = frag_fail(err, FRAG_EINTR, "interrupted: %zu of %zu devices are complete",
			       done - (done && !sheets[done - 1].complete), units.count);
	for (size_t i = 0; sheets && i < begun; i++)
		sheet_release(&sheets[i]);
	frag_host_free(sheets);
	frag_units_release(&units);
	return rc;
}

enum { KEY_TARGET = FRAG_CLI_KEY, KEY_TIME, KEY_ALIGN, KEY_TRAIN, KEY_SLACK, KEY_AT_REQUEST };

static int option_time(const char *arg, uint64_t *ns, struct frag_err *err)
{
	char *end;
	double seconds = strtod(arg, &end);

	if (end == arg || *end || !(seconds > 0 && seconds <= 86400))
		return frag_fail(err, FRAG_EUSAGE, "'%.40s' is no time in seconds, as 5 or 0.5",
				 arg);
	*ns = (uint64_t)(seconds * 1e9);
	return 0;
}

static int option_slack(const char *arg, double *slack, struct frag_err *err)
{
	char *end;

	*slack = strtod(arg, &end) / 100;
	if (end == arg || *end || !(*slack >= 0 && *slack <= 10))
		return frag_fail(err, FRAG_EUSAGE, "'%.40s' is no slack in percent, as 5", arg);
	return 0;
}

static int option(void *ctx, int key, const char *arg, struct frag_err *err)
{
	struct frag_opt number[2] = {
		{ .type = FRAG_OPT_T_UINT, .key = "train", .min = 3, .max = 1000000 }
	};
	struct options *o = ctx;

	switch (key) {
	case 'o':
		o->output = arg;
		return 0;
	case KEY_TARGET:
		return frag_parse_bytes(arg, &o->target, err)
			       ? frag_err_prefix(err, "option '--target'")
			       : 0;
	case KEY_ALIGN:
		if (frag_parse_bytes(arg, &o->align, err))
			return frag_err_prefix(err, "option '--align'");
		if (!o->align || o->align > FRAG_GIB)
			return frag_fail(err, FRAG_EUSAGE, "an alignment is 1 byte to 1 GiB");
		return 0;
	case KEY_TIME:
		return option_time(arg, &o->time_ns, err);
	case KEY_TRAIN:
		return frag_opt_set(number, &o->train, "train", arg, err);
	case KEY_SLACK:
		return option_slack(arg, &o->slack, err);
	case KEY_AT_REQUEST:
		o->at_request = true;
		return 0;
	}
	FRAG_BUG("option of plan");
}

static const struct argp_option options[] = {
	{ "output", 'o', "FILE", 0, "write a plan of the steps for --policy planned:plan=FILE", 0 },
	{ "train", KEY_TRAIN, "N", 0, "steps that the plan may look at (default: half of them)",
	  0 },
	{ "slack", KEY_SLACK, "PERCENT", 0,
	  "room above the plan for requests that are not in it (default: "
	  "0 where steps repeat, else 4)",
	  0 },
	{ "target", KEY_TARGET, "SIZE", 0,
	  "a height that is good enough (default: the lower bound)", 0 },
	{ "time", KEY_TIME, "SECONDS", 0, "for improving and searching (default: 10)", 0 },
	{ "align", KEY_ALIGN, "SIZE", 0,
	  "sizes and offsets are multiples of this (default: 512; 1 for "
	  "MiniMalloc's files)",
	  0 },
	{ "at-request", KEY_AT_REQUEST, NULL, 0,
	  "a block ends when its free was requested, not when all streams were done", 0 },
	{ 0 },
};

extern const struct frag_cmd frag_cmd_plan;

static int run(int argc, char **argv)
{
	struct options o = { .time_ns = 10000000000ull, .slack = -1 };
	struct frag_cli cli;
	struct frag_err err;

	if (frag_cli_parse(&cli, &frag_cmd_plan, &o, argc, argv))
		return cli.exit_status;
	if (plan(&cli, &o, &err))
		return frag_cli_fail(&cli, &err);
	return FRAG_EXIT_DONE;
}

const struct frag_cmd frag_cmd_plan = {
	.name = "plan",
	.summary = "the lowest placement with all knowledge, and plans for policy planned",
	.group = FRAG_GROUP_SIM,
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
	.shared = FRAG_CLI_CARD | FRAG_CLI_JSON | FRAG_CLI_THREADS,
	.options = options,
	.option = option,
	.run = run,
};
