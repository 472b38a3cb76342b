/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag explain: who holds the memory at one moment, and why the rest of it is of no use. */
#include <string.h>

#include "cli/common.h"
#include "compare/lanes.h"
#include "trace/writers/live_stacks.h"
#include "explain/moment/explain.h"

struct options {
	struct frag_at at;
	const char *policy, *frame, *stacks;
	uint64_t top, device;
	unsigned by;
};

static int set_at(void *whole, const char *text, struct frag_err *err)
{
	return frag_at_parse(text, &((struct options *)whole)->at, err);
}

/* ---- outputs --------------------------------------------------------------------------- */

/* The format is that of the name's ending. */
static int put_stacks(const char *path, const struct frag_live_stacks *stacks, struct frag_err *err)
{
	const char *ending = strrchr(path, '.');

	if (!frag_sites_known(stacks->sites))
		return FRAG_INPUT(
			err, "'%s' was recorded without stacks: nothing to fold (%s keeps them)",
			stacks->name,
			frag_stacks_hint(stacks->sites->trace) ?: "no log of its pool");
	if (ending && !strcmp(ending, ".json"))
		return frag_live_stacks_put_speedscope(stacks, path, err);
	if (ending && !strcmp(ending, ".pb"))
		return frag_live_stacks_put_pprof(stacks, path, err);
	return frag_live_stacks_put_folded(stacks, path, err);
}

static int put_all(const struct frag_cli *cli, const struct options *o,
		   const struct frag_recording *in, struct frag_policy_spec *spec,
		   struct frag_explained *x, const char *name, struct frag_err *err)
{
	const struct frag_live_stacks stacks = { name, &x->in.sites, &x->view };
	const uint64_t event = x->m.event; /* a state's answer has none */

	x->texts->quiet = o->stacks && !strcmp(o->stacks, "-");
	if (o->stacks)
		FRAG_TRY(put_stacks(o->stacks, &stacks, err));
	FRAG_TRY(frag_explained_answer(x, name, frag_policy_spec_text(x->in.spec), err));
	if (cli->out)
		FRAG_TRY(frag_lanes_page(&FRAG_CLI_LANES(cli), in, &spec, 1,
					 x->in.restores ? 0 : SIZE_MAX, event, x->m.text, x->texts,
					 err));
	return frag_cli_show_answer(cli, x->texts, err);
}

/* ---- the command ----------------------------------------------------------------- */

/* The device asked for, else one that ran out of memory, else the one that needed most. */
static int choose_device(const struct options *o, const struct frag_recording *in,
			 const struct frag_unit **unit, struct frag_err *err)
{
	bool peak = o->at.what != FRAG_AT_AUTO && o->at.what != FRAG_AT_OOM, ended = false;
	uint64_t most = 0;

	*unit = in->units;
	if (o->device != UINT64_MAX)
		return frag_recording_unit(in, o->device, unit, err);
	for (uint32_t d = 0; d < in->trace->devs_count && in->trace->devs_count > 1; d++) {
		uint64_t bytes = frag_recorded_peak(&in->trace->devs[d]);
		bool ends = !peak && in->trace->devs[d].ending.out_of_memory;

		if (ends == ended ? bytes <= most : ended)
			continue;
		most = bytes;
		ended = ends;
		*unit = &in->units[d];
	}
	return 0;
}

static const struct frag_arg options[] = {
	{ FRAG_ARG_OWN, "at", .set = set_at, .value = "MOMENT",
	  .help = "peak (of live memory), reserved (the peak of reserved memory), oom or oom:N "
		  "(the N-th refused request; oom is the last), event:N, or time:T as in 1.5s "
		  "(default: oom if a request was refused, else peak)" },
	{ FRAG_ARG_TEXT, "policy", FRAG_ARG_AT(struct options, policy), .value = "POLICY",
	  .help = "replay under this policy (default: recorded)" },
	{ FRAG_ARG_UINT, "of-device", FRAG_ARG_AT(struct options, device), .value = "N",
	  .max = UINT32_MAX, .rare = true,
	  .help = "device of the trace (default: one that ran out of memory, else the one that "
		  "reserved most)" },
	{ FRAG_ARG_UINT, "top", FRAG_ARG_AT(struct options, top), .value = "N", .min = 1,
	  .max = 100000, .def = "10", .help = "rows of each table" },
	{ FRAG_ARG_WORD, "by", FRAG_ARG_AT(struct options, by), .words = frag_site_by_words,
	  .def = "line", .help = "what a call site is" },
	{ FRAG_ARG_TEXT, "frame", FRAG_ARG_AT(struct options, frame), .value = "WHICH",
	  .rare = true,
	  .help = "frame of a stack that counts: user (the innermost one of your own code), inner, "
		  "outer, or a text that its file contains (default: user)" },
	{ FRAG_ARG_TEXT, "stacks", FRAG_ARG_AT(struct options, stacks), .value = "FILE",
	  .file = FRAG_ARG_WRITES,
	  .help = "write live bytes by stack: FILE.json for speedscope.app, FILE.pb for pprof (go "
		  "tool pprof, Pyroscope), else folded, for flamegraph.pl and inferno" },
	{ 0 },
};

static void init(void *values)
{
	((struct options *)values)->device = UINT64_MAX;
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct options *o = values;
	const struct frag_explain_options opt = { .at = o->at,
						  .by = o->by,
						  .frame = o->frame,
						  .top = o->top,
						  .series = cli->out != NULL };
	struct frag_case c = { .recorded = frag_policy_is_recorded(o->policy),
			       .threads = cli->threads };
	FRAG_AUTO(frag_recording_release) struct frag_recording in = { 0 };
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	FRAG_AUTO(frag_answer_release) struct frag_answer answer = { 0 };
	FRAG_AUTO(frag_explained_destroy_at) struct frag_explained *x = NULL;
	FRAG_AUTO(frag_progress_end) struct frag_progress progress = { 0 };
	const struct frag_unit *unit;

	FRAG_TRY(frag_recording_open(&in, cli->operands[0], &cli->target, 0, err));
	FRAG_TRY(choose_device(o, &in, &unit, err));
	FRAG_TRY(frag_cli_spec(cli, &in, o->policy, &spec, err));
	c.target = cli->target;
	c.events = unit->events;
	c.spec = spec;
	FRAG_TRY_CALLOC(x, 1, "explanation", err);
	frag_cli_show(&progress, "explaining", unit->label);
	FRAG_TRY(frag_explain(&c, &opt, &answer, x, err));
	frag_progress_end(&progress);
	return put_all(cli, o, &in, spec, x, unit->label, err);
}

const struct frag_cmd frag_cmd_explain = {
	.name = "explain",
	.summary = "who holds the memory at a moment, and why it ran out",
	.group = FRAG_GROUP_UNDERSTAND,
	.operands = "TRACE",
	.about = "Replays a recording up to a moment, under its own settings or any policy, and "
		 "shows who holds the memory: live bytes by line of the program with their age and "
		 "purpose; free memory that cannot be returned, by the blocks that pin its "
		 "segments; and, if a request was refused, whether fragmentation was the reason "
		 "and what would have served it, each checked by replay. Without stacks, blocks "
		 "are grouped by size and step.",
	.examples = "  cufrag explain traces/leak.frames.cft\n"
		    "  cufrag explain oom.pickle --at oom --out report\n"
		    "  cufrag explain run.pickle --at peak --policy "
		    "pytorch:expandable_segments:True\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_PAGE,
	.texts = true,
	.answer = &frag_moment_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.init = init,
	.run = run,
};
