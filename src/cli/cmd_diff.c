/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag diff: what a change did to the memory of a program; a regression test for CI. */
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "explain/diff/diff.h"

struct options {
	const char *policy, *frame;
	double most_ratio; /* growth that is allowed; negative: any */
	uint64_t most_bytes;
	uint64_t top;
	unsigned by;
};

/* "5%", or a size as "100M". */
static int set_growth(void *whole, const char *text, struct frag_err *err)
{
	struct options *o = whole;
	char *end;
	double v = strtod(text, &end);

	if (end != text && *end && *end != '%')
		return frag_parse_bytes(text, &o->most_bytes, err);
	if (end == text || (*end && strcmp(end, "%") != 0) || !(v >= 0 && v <= 1e6))
		return FRAG_USAGE(err, "'%.40s' is no growth; write it as 5%% or 100M", text);
	o->most_ratio = v / 100;
	return 0;
}

/* Did it grow by more than is allowed? Adds to what the guard says. */
static bool grew(const struct options *o, const char *what, uint64_t before, uint64_t after,
		 struct frag_text *t)
{
	uint64_t by = after > before ? after - before : 0;
	double ratio = before ? (double)by / (double)before : 0;
	const char *sep = t->len ? ", " : "";

	if (!before || !after)
		frag_text_addf(t, "%s%s is not known", sep, what);
	else if (!by)
		frag_text_addf(t, "%s%s did not grow", sep, what);
	else
		frag_text_addf(t, "%s%s grew by %s (%.1f %%)", sep, what, FRAG_BYTES(by),
			       100 * ratio);
	return before && ((o->most_ratio >= 0 && ratio > o->most_ratio) || by > o->most_bytes);
}

/* The guard passes, fails, or cannot tell. Returns the exit status. */
static int judge(const struct options *o, const struct frag_side *x, const struct frag_side *y,
		 struct frag_answer *a)
{
	const bool share = o->most_ratio >= 0, size = o->most_bytes != UINT64_MAX;
	const bool ended = y->ended_above_bytes != UINT64_MAX;
	const bool unknown = x->ended_above_bytes != UINT64_MAX || !x->peak_reserved_bytes ||
			     (x->devices_count != y->devices_count &&
			      FRAG_MAX(x->devices_count, y->devices_count) != UINT64_MAX);
	struct frag_text t = { 0 };
	bool fails;

	if (!share && !size)
		return FRAG_EXIT_DONE;
	fails = grew(o, "peak reserved memory", x->peak_reserved_bytes, y->peak_reserved_bytes, &t);
	fails |= grew(o, "peak live memory", x->peak_live_bytes, y->peak_live_bytes, &t);
	frag_text_add(&t, "; allowed is ");
	if (share)
		frag_text_addf(&t, "%g %%%s", 100 * o->most_ratio, size ? " and " : "");
	if (size)
		frag_text_add(&t, FRAG_BYTES(o->most_bytes));
	if (ended)
		frag_text_add(&t, ", but AFTER ended out of memory: its peak is a lower bound");
	fails = ended || (fails && !unknown);
	a->need_unknown |= unknown;
	frag_answer_conclude(a, "%s: %s",
			     fails     ? "fails"
			     : unknown ? "neither passes nor fails, the peaks do not compare"
				       : "passes",
			     frag_answer_take(a, &t));
	return fails ? FRAG_EXIT_CONDITION : FRAG_EXIT_DONE;
}

/* The device that reserves most. torch: the release that is asked for, 0 = the recording's. */
static int read_recording(const struct frag_cli *cli, const struct options *o, const char *path,
			  unsigned torch, struct frag_answer *a, struct frag_side *out,
			  struct frag_err *err)
{
	const struct frag_explain_options opt = { .by = o->by,
						  .frame = o->frame,
						  .series = cli->out != NULL };
	struct frag_case c = { .recorded = frag_policy_is_recorded(o->policy),
			       .target = cli->target,
			       .threads = cli->threads };
	FRAG_AUTO(frag_recording_release) struct frag_recording in = { 0 };
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

	c.target.torch = torch;
	FRAG_TRY(frag_recording_open(&in, path, &c.target, 0, err));
	FRAG_TRY(frag_cli_spec(cli, &in, o->policy, &spec, err));
	c.spec = spec;
	for (uint32_t d = 0; d < in.trace->devs_count; d++) {
		c.events = in.units[d].events;
		FRAG_TRY(frag_side_take(out, &c, &opt, in.units[d].label, a, err));
	}
	return 0;
}

static int read_side(const struct frag_cli *cli, const struct options *o, const char *path,
		     unsigned torch, struct frag_answer *a, struct frag_side *out,
		     struct frag_err *err)
{
	json_auto_t *root = frag_side_read_json(path);
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;

	frag_cli_show(&progress, "explaining", path);
	return root ? frag_side_of_json(root, path, a, out, err)
		    : read_recording(cli, o, path, torch, a, out, err);
}

/* ---- the command ----------------------------------------------------------------- */

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "policy", FRAG_ARG_AT(struct options, policy), .value = "POLICY",
	  .help = "replay both under this policy (default: recorded, each under its own "
		  "settings)" },
	{ FRAG_ARG_OWN, "fail-on-growth", .set = set_growth, .value = "PERCENT%|SIZE",
	  .help = "say whether peak reserved and live memory grew by no more, and exit with 1 if "
		  "they did, for CI: 5% or 100M, or give both" },
	{ FRAG_ARG_UINT, "top", FRAG_ARG_AT(struct options, top), .value = "N", .min = 1,
	  .max = 100000, .def = "10", .help = "rows of the table" },
	{ FRAG_ARG_WORD, "by", FRAG_ARG_AT(struct options, by), .words = frag_site_by_words,
	  .def = "function",
	  .help = "what a call site is; line numbers change with the program, functions stay" },
	{ FRAG_ARG_TEXT, "frame", FRAG_ARG_AT(struct options, frame), .value = "WHICH",
	  .rare = true, .help = "frame of a stack that counts, as in explain (default: user)" },
	{ 0 },
};

static void init(void *values)
{
	*(struct options *)values = (struct options){ .most_ratio = -1, .most_bytes = UINT64_MAX };
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct options *o = values;
	FRAG_AUTO(frag_answer_release) struct frag_answer answer = { 0 };
	struct frag_side before = { 0 }, after = { 0 };
	unsigned torch = cli->target.torch;
	bool one = cli->operands_count == 1;
	int status;

	if (one && !torch)
		return FRAG_USAGE(err, "'diff' compares two recordings, or one with itself under "
				       "another release of PyTorch (--torch)");
	FRAG_TRY(read_side(cli, o, cli->operands[0], one ? 0 : torch, &answer, &before, err));
	FRAG_TRY(read_side(cli, o, cli->operands[!one], torch, &answer, &after, err));
	FRAG_TRY(frag_diff(&before, &after, o->top, &answer, err));
	if (before.state && (o->most_ratio >= 0 || o->most_bytes != UINT64_MAX))
		return FRAG_INPUT(err,
				  "'%.100s' is a state without a history: --fail-on-growth is "
				  "about peaks, which it does not tell",
				  before.name);
	status = judge(o, &before, &after, &answer);
	FRAG_TRY(frag_cli_show_answer(cli, &answer, err));
	return status;
}

const struct frag_cmd frag_cmd_diff = {
	.name = "diff",
	.summary = "what a change did: peaks, causes and call sites of two runs",
	.group = FRAG_GROUP_UNDERSTAND,
	.rank = 2,
	.operands = "BEFORE [AFTER]",
	.about = "Compares two recordings, or the JSON that replay, compare or explain wrote for "
		 "an earlier run: peak reserved and live memory, what was there at the peak, and "
		 "which call sites grew, shrank, appeared or disappeared. Call sites are matched "
		 "by name, steps by number. One recording and --torch RELEASE: the same requests "
		 "under the rules of another release of PyTorch. With --fail-on-growth it is a "
		 "memory regression test for CI: it exits with 1 if memory grew by more, or if "
		 "AFTER ended out of memory; with 6 if it cannot tell, because BEFORE did or has "
		 "another number of ranks.",
	.examples = "  cufrag diff before.pickle after.pickle\n"
		    "  cufrag diff run.pickle --torch 2.15\n"
		    "  cufrag diff main.json branch.pickle --fail-on-growth 5%\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_PAGE,
	.answer = &frag_comparison_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.init = init,
	.run = run,
};
