/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag gen: a longer trace, made from a recording, or one whose bounds are known. */
#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>
#include <frag/plan.h>

#include "trace/gen/gen_known.h"
#include "trace/gen/gen_repeat.h"
#include "trace/whole.h"
#include "cli/common.h"

#define PLACED_MAX 30000u /* blocks; of more only the fast placement is tried */

struct options {
	const char *output;
	uint64_t events, times, scale; /* 0 = not given */
	uint32_t first, last;	       /* steps, 0 = not given */
};

static int run_repeat(struct frag_cli *cli, const struct options *o, struct frag_err *err)
{
	const struct frag_repeat_options opt = {
		.times = o->times, .events = o->events, .first = o->first, .last = o->last
	};
	FRAG_AUTO(frag_recording_release) struct frag_recording in = { 0 };
	FRAG_AUTO(frag_repeat_release) struct frag_repeat r = { 0 };

	if (cli->operands_count < 2)
		return FRAG_USAGE(err, "missing operand: cufrag gen repeat TRACE needs the trace "
				       "to repeat");
	if (!o->times == !o->events)
		return FRAG_USAGE(err, "no length; give one of --events and --times, such as "
				       "--events 100M");
	FRAG_TRY(frag_recording_open(&in, cli->operands[1], &cli->target, FRAG_OPEN_AS_RECORDED,
				     err));
	FRAG_TRY(frag_repeat_init(&r, in.trace, &opt, err));
	FRAG_TRY(frag_repeat_write(&r, o->output, err));
	return frag_cli_show_written(
		cli,
		&(struct frag_written){
			.file = o->output,
			.trace = in.trace,
			.events_count = r.events,
			.rounds_count = r.times,
			.round = r.windows[0].steps ? "whole steps" : "the steady part",
		},
		err);
}

/* The peak of live bytes, and the lowest of three greedy placements, which is checked. */
static int find_bounds(const struct frag_trace *t, struct frag_written_bounds *out,
		       struct frag_err *err)
{
	static const struct {
		enum frag_order order;
		enum frag_gap_rule gap;
	} rules[] = { { FRAG_ORDER_CONFLICTS, FRAG_GAP_TOP },
		      { FRAG_ORDER_SIZE, FRAG_GAP_BEST },
		      { FRAG_ORDER_LIFE, FRAG_GAP_LOWEST } };
	FRAG_AUTO(frag_buffers_release) struct frag_buffers b = { 0 };
	FRAG_AUTO(frag_progress_end) struct frag_progress progress = { 0 };
	FRAG_AUTO_FREE uint64_t *offsets = NULL;
	uint64_t height;

	frag_progress_begin(&progress, "placing");
	FRAG_TRY(frag_buffers_init(&b, &t->devs[0], 512, false, err));
	FRAG_TRY(frag_load_bound(&b, &out->live, NULL, err));
	FRAG_TRY_CALLOC(offsets, b.count, "placement", err);
	out->placed = UINT64_MAX;
	for (unsigned i = 0; i < FRAG_ARRAY_LEN(rules) && out->placed > out->live; i++) {
		if (i && b.count > PLACED_MAX)
			break;
		FRAG_TRY(frag_place_greedy(&b, rules[i].order, rules[i].gap, &progress.watch,
					   offsets, &height, err));
		FRAG_TRY(frag_place_check(&b, offsets, 512, height, err));
		out->placed = FRAG_MIN(out->placed, height);
	}
	return 0;
}

static int run_known(struct frag_cli *cli, const struct options *o, unsigned kind,
		     struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	struct frag_written w = { .file = o->output };

	if (cli->operands_count > 1 || o->times || o->events || o->first)
		return frag_fail(err, FRAG_EUSAGE,
				 "%s takes neither a trace nor --events, --times and --steps",
				 frag_known_kinds[kind]);
	FRAG_TRY(frag_known_make(kind, cli->target.seed, o->scale, &w.bounds.online, &trace, err));
	FRAG_TRY(find_bounds(trace, &w.bounds, err));
	FRAG_TRY(frag_trace_write(trace, o->output, err));
	w.trace = trace;
	w.events_count = frag_trace_events_count(trace);
	return frag_cli_show_written(cli, &w, err);
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct options *o = values;
	const char *name = cli->operands[0];
	unsigned kind = 0;

	while (frag_known_kinds[kind] && strcmp(name, frag_known_kinds[kind]) != 0)
		kind++;
	if (!frag_known_kinds[kind])
		return frag_fail_unknown(err, "unknown kind", name, frag_known_kinds, "");
	if (!o->output)
		return frag_fail(err, FRAG_EUSAGE, "no output file; name it with -o");
	return frag_known_kinds[kind + 1] ? run_known(cli, o, kind, err) : run_repeat(cli, o, err);
}

/* "250000", "100M": with k, M and G for powers of ten, as events are counted. */
static int set_count(void *field, const char *arg, struct frag_err *err)
{
	static const char units[] = "kMG";
	const char *unit;
	uint64_t scale = 1, *out = field;
	char *end;

	*out = strtoull(arg, &end, 10);
	unit = *end ? strchr(units, *end == 'K' ? 'k' : *end) : NULL;
	for (long i = unit ? unit - units : -1; i >= 0; i--)
		scale *= 1000;
	if (end == arg || strspn(arg, "0123456789") != (size_t)(end - arg) || (*end && !unit) ||
	    (unit && end[1]) || !*out || *out > 1000000000000ull / scale)
		return FRAG_USAGE(err,
				  "'%.40s' is not a count; write a number up to 1000G, such as "
				  "250000 or 100M",
				  arg);
	*out *= scale;
	return 0;
}

/* "3..20", or "7" for one of them. */
static int set_steps(void *whole, const char *arg, struct frag_err *err)
{
	struct options *o = whole;
	char *end;
	unsigned long long first = strtoull(arg, &end, 10), last = first;
	size_t digits = strspn(arg, "0123456789");

	if (digits && !strncmp(end, "..", 2)) {
		digits = strspn(end + 2, "0123456789");
		last = strtoull(end + 2, &end, 10);
	}
	if (!digits || *end || !first || first > last || last > UINT32_MAX)
		return frag_fail(
			err, FRAG_EUSAGE,
			"'%.40s' is not a range of steps; write it as 3..20, counted from 1", arg);
	o->first = (uint32_t)first;
	o->last = (uint32_t)last;
	return 0;
}

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "output", 'o', FRAG_ARG_AT(struct options, output), .value = "FILE",
	  .file = FRAG_ARG_WRITES_TRACE, .help = "the .cft to write; - is standard output" },
	{ FRAG_ARG_OWN, "events", FRAG_ARG_AT(struct options, events), .set = set_count,
	  .value = "N", .help = "repeat: until there are at least N events, such as 100M" },
	{ FRAG_ARG_OWN, "times", FRAG_ARG_AT(struct options, times), .set = set_count, .value = "N",
	  .help = "repeat: N rounds" },
	{ FRAG_ARG_OWN, "steps", .set = set_steps, .value = "A..B",
	  .help = "repeat: the steps of a round (default: all but the first)" },
	{ FRAG_ARG_UINT, "scale", FRAG_ARG_AT(struct options, scale), .value = "N", .min = 1,
	  .max = 1000, .def = "1", .help = "the others: N times as many requests" },
	{ 0 },
};

const struct frag_cmd frag_cmd_gen = {
	.name = "gen",
	.summary = "a longer trace from a recording, or one whose bounds are known",
	.group = FRAG_GROUP_RECORD,
	.rank = 3,
	.operands = "KIND [TRACE]",
	.operands_min = 1,
	.about = "repeat: repeats whole steps of a trace between its beginning and its end; "
		 "without step marks, the longest stretch between two moments with the same live "
		 "blocks. Each round starts from the previous round's state. Recorded addresses "
		 "and segments are left out. The trace is written as it is made, so memory use "
		 "does not depend on its length. The others need no recording; what no policy "
		 "can do better is printed. comb: every second block goes, then come blocks of "
		 "twice the size. sawtooth: rises with one size, falls, rises with another. "
		 "robson: Robson's worst case, against first fit. above: sizes one byte above a "
		 "power of two. powerlaw: most blocks live briefly, a few almost for ever. "
		 "pipeline: stages on streams, each at work on what the one before freed. kvgrow: "
		 "caches that grow by a token and are copied. repack: weights that are loaded, "
		 "packed and freed, then a cache. mixed: many small blocks, a few huge ones.",
	.examples = "  cufrag gen repeat traces/varlen.default.cft --events 100M -o long.cft\n"
		    "  cufrag gen repeat traces/gnn.default.cft --steps 3..20 --times 1000 -o "
		    "long.cft\n"
		    "  cufrag gen robson --seed 1 -o robson.cft\n",
	.answer = &frag_written_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
};
