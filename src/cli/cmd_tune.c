/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag tune: the settings that serve a trace best, as a line to export. */
#include "explain/diagnose/diagnose.h"
#include "cli/common.h"
#include "plan/tune/tune_recordings.h"

struct options {
	struct frag_policy_texts spaces;
	const char *baseline;
	enum frag_tune_objective objective;
	uint64_t budget, cap, top;
};

static const char *const objectives[] = { "peak", "card", "time", NULL };

#define AT(field) FRAG_ARG_AT(struct options, field)

static const struct frag_arg options[] = {
	FRAG_CLI_POLICIES("space", struct options, spaces,
			  "policies whose options are searched, separated by ';'; options given "
			  "there stay as they are (default: pytorch, or those of the log's "
			  "library)"),
	{ FRAG_ARG_WORD, "objective", AT(objective), .words = objectives, .def = "peak",
	  .help = "peak: least reserved; card: smallest card; time: least driver time under the "
		  "--cap" },
	{ FRAG_ARG_BYTES, "cap", AT(cap), .value = "SIZE", .rare = true,
	  .help = "most that may be reserved (default: the card)" },
	{ FRAG_ARG_UINT, "budget", AT(budget), .value = "N", .min = 1, .max = 1000000,
	  .help = "settings to try in each space; a larger space is searched, not exhausted "
		  "(default: 800; fewer where replays make millions of driver calls)" },
	{ FRAG_ARG_TEXT, "baseline", AT(baseline), .value = "POLICY", .def = "recorded",
	  .rare = true, .help = "settings to compare with" },
	{ FRAG_ARG_UINT, "top", AT(top), .value = "N", .min = 1, .max = 1000, .def = "10",
	  .help = "settings to print" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	struct options *o = values;
	FRAG_AUTO(frag_tuning_release)
	struct frag_tuning t = { .target = &cli->target, .cap_bytes = o->cap };
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	const struct frag_own_allocator *own;
	bool asked = o->spaces.count;
	size_t n;

	FRAG_TRY(frag_policy_texts_check(&o->spaces, NULL, err));
	FRAG_TRY(frag_recordings_open(&t.units, cli->operands, cli->operands_count, &cli->target,
				      FRAG_OPEN_HISTORY, err));
	own = frag_own_allocators(t.units.units[0].trace->format, &n);
	for (size_t i = 0; i < n && !asked; i++)
		FRAG_TRY(frag_policy_texts_add(&o->spaces, own[i].policy, err));
	FRAG_TRY(frag_policy_texts_default(&o->spaces, "pytorch", err));
	t.options = (struct frag_tune_options){ .spaces = (const char *const *)o->spaces.text,
						.spaces_count = o->spaces.count,
						.baseline = o->baseline,
						.objective = o->objective,
						.budget = o->budget };
	FRAG_TRY(frag_tuning_search(&t, cli->threads, err));
	a.estimated = cli->estimated; /* its title says so */
	for (size_t i = 0; i < t.units.units_count && !a.caveat; i++)
		FRAG_TRY(frag_leak_caveat(&t.units.units[i].events, &a, err));
	FRAG_TRY(frag_tuning_answer(&t, o->top, &a, err));
	FRAG_TRY(frag_cli_show_answer(cli, &a, err));
	if (!t.found.complete) {
		frag_cli_note(cli,
			      "interrupted after %zu of at most %llu settings; the answer is the "
			      "best of these",
			      t.found.tries_count,
			      (unsigned long long)(1 + t.found.budget * o->spaces.count));
		return frag_code_exit(FRAG_EINTR);
	}
	return t.found.tries[0].completed &&
			       (!t.found.tries[0].refused_count || *cli->need_unknown) &&
			       (frag_tuning_reproduces(&t) || *cli->need_unknown)
		       ? FRAG_EXIT_DONE
		       : FRAG_EXIT_CONDITION;
}

const struct frag_cmd frag_cmd_tune = {
	.name = "tune",
	.summary = "search for the best allocator settings",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 2,
	.operands = "TRACE...",
	.operands_max = 4096,
	.about = "Replays a trace under many settings of PyTorch's allocator (or of any policy: "
		 "--space). Prints the best as a PYTORCH_CUDA_ALLOC_CONF line, what it gains, the "
		 "runners-up, and the settings that no other beats in both reserved memory and "
		 "driver time. The limit of a recording applies, unless --limit gives another; the "
		 "setting that refuses fewest requests is then best. Where a replay of the "
		 "recorded settings does not reserve what was recorded, no saving is told, and the "
		 "status is 1, as in verify. garbage_collection_threshold is searched only with a "
		 "limit, since PyTorch ignores it without one. Only settings are tried that every "
		 "release of PyTorch knows that may have made the recording, or the release of "
		 "--torch. Small spaces are exhausted; larger ones are searched from the space's "
		 "own text and from random settings, always to the best setting that differs in "
		 "one option. With several traces or ranks the worst peak counts.",
	.examples =
		"  cufrag tune run.pickle\n"
		"  cufrag tune run.pickle --objective time --cap 20G\n"
		"  cufrag tune run.pickle --space 'pytorch;tlsf;buddy' --budget 2000 --json -\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_COST | FRAG_CLI_PAGE,
	.answer = &frag_tune_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
};
