/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag gen: a longer trace, made from a recording. */
#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>
#include "trace/gen/gen_repeat.h"
#include "cli/common.h"

struct options {
	const char *output;
	uint64_t events, times; /* 0 = not given */
	uint32_t first, last;	/* steps, 0 = not given */
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	static const char *const kinds[] = { "repeat", NULL };
	const struct options *o = values;
	const char *name = cli->operands[0], *near = frag_nearest(name, kinds);
	const struct frag_repeat_options opt = {
		.times = o->times, .events = o->events, .first = o->first, .last = o->last
	};
	FRAG_AUTO(frag_recording_release) struct frag_recording in = { 0 };
	FRAG_AUTO(frag_repeat_release) struct frag_repeat r = { 0 };

	if (strcmp(name, kinds[0]) != 0)
		return FRAG_USAGE(err,
				  near ? "unknown kind '%.60s'; did you mean '%s'?"
				       : "unknown kind of trace '%.60s'; use repeat",
				  name, near);
	if (!o->output)
		return FRAG_USAGE(err, "no output file; name it with -o");
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
	{ 0 },
};

const struct frag_cmd frag_cmd_gen = {
	.name = "gen",
	.summary = "a longer trace, made by repeating steps of a recording",
	.group = FRAG_GROUP_RECORD,
	.rank = 3,
	.operands = "repeat TRACE",
	.operands_min = 1,
	.about = "repeat: repeats whole steps of a trace between its beginning and its end; "
		 "without step marks, the longest stretch between two moments with the same live "
		 "blocks. Each round starts from the previous round's state. Recorded addresses "
		 "and segments are left out. The trace is written as it is made, so memory use "
		 "does not depend on its length.",
	.examples = "  cufrag gen repeat traces/varlen.default.cft --events 100M -o long.cft\n"
		    "  cufrag gen repeat traces/gnn.default.cft --steps 3..20 --times 1000 -o "
		    "long.cft\n",
	.answer = &frag_written_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
};
