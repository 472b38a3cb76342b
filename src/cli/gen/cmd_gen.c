/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag gen: traces that nobody recorded. A kind is one line of `kinds` and one function;
 * whatever it makes is written as a stream, so that its length costs no memory.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <frag/opt.h>
#include <frag/trace.h>

#include "trace/cft/cft_stream.h"
#include "trace/gen/gen_repeat.h"
#include "cli/common.h"
#include "cli/recordings.h"

struct options {
	const char *output;
	uint64_t events, times; /* 0 = not given */
	uint32_t first, last;	/* steps, 0 = not given */
};

/* ---- writing ---------------------------------------------------------------------- */

struct output {
	struct frag_cft_stream *stream;
	struct frag_progress progress;
	uint64_t done, total;
};

static int take(void *ctx, const struct frag_event *events, size_t count, struct frag_err *err)
{
	struct output *o = ctx;

	o->done += count;
	frag_progress_update(&o->progress, o->done, o->total);
	if (frag_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted");
	return frag_cft_stream_put(o->stream, events, count, err);
}

/* The one line: on stderr where the trace itself goes to standard output. */
static void report(const struct frag_cli *cli, const char *path, const char *what, uint64_t events)
{
	struct stat st;

	if (!strcmp(path, "-"))
		frag_cli_note(cli, "%s", what);
	else if (stat(path, &st) || !S_ISREG(st.st_mode))
		printf("%s: %s\n", path, what);
	else
		printf("%s: %s, %lld bytes, %.2f bytes per event\n", path, what,
		       (long long)st.st_size, events ? (double)st.st_size / (double)events : 0.0);
}

/* ---- repeat ------------------------------------------------------------------------- */

static int write_repeated(const struct options *o, const struct frag_repeat *r,
			  struct frag_err *err)
{
	struct output out = { .total = r->events };
	int rc;

	FRAG_TRY(frag_cft_stream_open(o->output, &r->head, &out.stream, err));
	frag_progress_begin(&out.progress, "writing");
	rc = frag_repeat_run(r, take, &out, err);
	frag_progress_end(&out.progress);
	if (!rc)
		return frag_cft_stream_close(out.stream, err);
	frag_cft_stream_abort(out.stream);
	return rc;
}

static void report_repeated(const struct frag_cli *cli, const struct options *o,
			    const struct frag_repeat *r)
{
	char text[200];

	snprintf(text, sizeof(text), "%" PRIu64 " rounds of %s, %u %s, %" PRIu64 " events",
		 r->times, r->windows[0].steps ? "whole steps" : "the steady part",
		 r->head.devs_count, r->head.devs_count == 1 ? "device" : "devices", r->events);
	report(cli, o->output, text, r->events);
}

static int repeat(const struct frag_cli *cli, const struct options *o, struct frag_err *err)
{
	const struct frag_repeat_options opt = {
		.times = o->times, .events = o->events, .first = o->first, .last = o->last
	};
	FRAG_AUTO(frag_recording_release) struct frag_recording in = { 0 };
	struct frag_repeat r;
	int rc;

	if (cli->operands_count < 2)
		return frag_fail(err, FRAG_EUSAGE,
				 "missing operand: cufrag gen repeat TRACE needs the trace to "
				 "repeat");
	if (!o->times == !o->events)
		return frag_fail(err, FRAG_EUSAGE,
				 "how long? give one of --events and --times, as --events 100M");
	FRAG_TRY(frag_recording_open(&in, cli->operands[1], &cli->target, FRAG_OPEN_AS_RECORDED,
				     err));
	rc = frag_repeat_init(&r, in.trace, &opt, err);
	if (!rc) {
		rc = write_repeated(o, &r, err);
		if (!rc)
			report_repeated(cli, o, &r);
		if (!rc && strcmp(o->output, "-") != 0)
			frag_cli_settle_say(in.trace, stdout);
		frag_repeat_release(&r);
	}
	return rc;
}

/* ---- the command ---------------------------------------------------------------------- */

static const struct kind {
	const char *name;
	int (*make)(const struct frag_cli *cli, const struct options *o, struct frag_err *err);
} kinds[] = {
	{ "repeat", repeat },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct options *o = values;
	const char *names[FRAG_ARRAY_LEN(kinds) + 1] = { NULL };
	const char *name = cli->operands[0], *near;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(kinds); i++) {
		names[i] = kinds[i].name;
		if (strcmp(name, names[i]) != 0)
			continue;
		if (!o->output)
			return frag_fail(err, FRAG_EUSAGE,
					 "where to? name the file to write with -o");
		return kinds[i].make(cli, o, err);
	}
	near = frag_nearest(name, names);
	if (near)
		return frag_fail(err, FRAG_EUSAGE, "unknown kind '%.60s'; did you mean '%s'?", name,
				 near);
	return frag_fail(err, FRAG_EUSAGE, "unknown kind of trace '%.60s'; known is repeat", name);
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
		return frag_fail(err, FRAG_EUSAGE,
				 "'%.40s' is no count; write a number up to 1000G, as 250000 or "
				 "100M",
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
		return frag_fail(err, FRAG_EUSAGE,
				 "'%.40s' is no range of steps; write it as 3..20, counted from 1",
				 arg);
	o->first = (uint32_t)first;
	o->last = (uint32_t)last;
	return 0;
}

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "output", 'o', FRAG_ARG_AT(struct options, output), .value = "FILE",
	  .file = FRAG_ARG_WRITES_TRACE, .help = "the .cft to write; - is standard output" },
	{ FRAG_ARG_OWN, "events", FRAG_ARG_AT(struct options, events), .set = set_count,
	  .value = "N",
	  .help = "repeat: so many rounds that there are at least N events, as 100M" },
	{ FRAG_ARG_OWN, "times", FRAG_ARG_AT(struct options, times), .set = set_count, .value = "N",
	  .help = "repeat: so many rounds" },
	{ FRAG_ARG_OWN, "steps", .set = set_steps, .value = "A..B",
	  .help = "repeat: these steps make a round (default: all but the first)" },
	{ 0 },
};

const struct frag_cmd frag_cmd_gen = {
	.name = "gen",
	.summary = "a trace that nobody recorded, as long as you like",
	.group = FRAG_GROUP_RECORD,
	.rank = 3,
	.operands = "repeat TRACE",
	.operands_min = 1,
	.operands_max = 2,
	.about = "repeat: does whole steps of a trace again and again, between its beginning and "
		 "its end; without marks of steps the longest stretch between two moments with the "
		 "same blocks live. What a round leaves behind is what the next one finds; "
		 "addresses and "
		 "segments of the recorder are left out. The trace is written while it is made, "
		 "with "
		 "the same memory for any length.",
	.examples = "  cufrag gen repeat traces/varlen.default.cft --events 100M -o long.cft\n"
		    "  cufrag gen repeat traces/gnn.default.cft --steps 3..20 --times 1000 -o "
		    "long.cft\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH,
	.options = FRAG_CMD_OPTIONS(options),
	.options_size = sizeof(struct options),
	.run = run,
};
